//! A connection to one server: requests that always end, whatever the server does.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::definition::Way;
use super::era::{Era, MODERN};
use super::http::Http;
use super::inbound::{Heard, Inbound, cancelled, short};
use super::outside;
use super::stdio::Stdio;

/// Progress that waits to be shown.
const PROGRESS: usize = 16;
/// How long a server is given to take a word that needs no answer.
const WORD: Duration = Duration::from_secs(2);

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The server's own error.
    Rpc { code: i64, message: String, data: Option<Value> },
    /// HTTP said no.
    Status { status: u16, said: String },
    /// The server wants to know who asks.
    Login { status: u16 },
    /// Nothing came for so long.
    Silent(Duration),
    /// The program does not start.
    Unstarted { command: String, why: String, missing: bool },
    /// The connection is gone, or never was there.
    Closed(String),
    /// What came is not an answer.
    Broken(String),
}

impl Fault {
    pub(super) fn of_error(error: &Value) -> Fault {
        Fault::Rpc {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().map(short).unwrap_or_default(),
            data: error.get("data").cloned(),
        }
    }

    /// What to do about it, for people; none where its own words say all that is known.
    pub(super) fn fix(&self, way: &Way) -> Option<String> {
        let program = matches!(way, Way::Program { .. });
        Some(match self {
            Fault::Unstarted { command, missing: true, .. } => {
                format!("install `{command}`, or name it with its full path: it is not on the PATH")
            }
            Fault::Unstarted { command, .. } => format!("make sure that `{command}` is a program you may run"),
            Fault::Status { status: 404 | 405, .. } => {
                "check the path of the URL, which often ends in /mcp; older servers need the type \"sse\"".to_owned()
            }
            Fault::Status { status: 500.., .. } => "look into the log of the server, or try again later".to_owned(),
            Fault::Silent(_) if program => "let it write MCP messages to its standard output and all else to standard \
                                            error; MCP_TIMEOUT gives it more time"
                .to_owned(),
            Fault::Silent(_) => "check the URL and the proxy; MCP_TIMEOUT gives it more time".to_owned(),
            Fault::Closed(_) if program => "run its command in a terminal to see why".to_owned(),
            Fault::Closed(_) => "check that it runs, and the URL, port and proxy".to_owned(),
            Fault::Rpc { .. } | Fault::Status { .. } | Fault::Login { .. } | Fault::Broken(_) => return None,
        })
    }

    /// Whether another try may help.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Fault::Silent(_) | Fault::Closed(_) | Fault::Status { status: 500.., .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Rpc { code, message, .. } if message.is_empty() => write!(f, "the server reports error {code}"),
            Fault::Rpc { code, message, .. } => write!(f, "the server reports: {message} ({code})"),
            Fault::Status { status, said } if said.is_empty() => write!(f, "the server answered {status}"),
            Fault::Status { status, said } => write!(f, "the server answered {status}: {said}"),
            Fault::Login { status } => write!(
                f,
                "the server wants a login ({status}), which cocode does not support yet: put a token in its `headers`"
            ),
            Fault::Silent(time) => write!(f, "no answer within {}", crate::stdx::text::duration(*time)),
            Fault::Unstarted { command, why, .. } => write!(f, "cannot start `{command}`: {why}"),
            Fault::Closed(why) | Fault::Broken(why) => write!(f, "{why}"),
        }
    }
}

/// Who waits for an answer.
pub trait Caller: Send + Sync {
    /// Hears of progress.
    fn heard(&self, _progress: String) {}

    /// Answers what the server asks the user: the params of its request, and the result.
    fn asked<'a>(&'a self, _params: &'a Value) -> BoxFuture<'a, Value> {
        Box::pin(async { cancelled() })
    }
}

/// Somebody who only wants the answer.
pub(super) struct Plain;

impl Caller for Plain {}

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Without an answer and without progress.
    pub idle: Duration,
    /// In all.
    pub total: Duration,
}

impl Limits {
    pub(super) fn all(time: Duration) -> Limits {
        Limits { idle: time, total: time }
    }
}

/// The way to the server.
pub(super) enum Link {
    Stdio(Stdio),
    Http(Http),
    Outside(outside::Link),
}

/// See the module.
pub(super) struct Peer {
    link: Link,
    pub(super) inbound: Arc<Inbound>,
    next: AtomicU64,
}

impl Peer {
    pub(super) fn new(link: Link, inbound: Arc<Inbound>) -> Peer {
        Peer { link, inbound, next: AtomicU64::new(1) }
    }

    /// Sends a request and waits for its answer. `mirrored` are headers that say again what is in it, for HTTP. A dropped future tells the server that nobody waits, as far as that is possible
    /// without waiting for it.
    ///
    /// # Errors
    /// See `Fault`.
    pub(super) async fn request(
        &self,
        (method, mut params): (&str, Map<String, Value>),
        (era, mirrored): (Option<&Era>, &[(String, String)]),
        limits: Limits,
        caller: &dyn Caller,
    ) -> Result<Value, Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let modern = era.is_some_and(Era::is_modern);
        let mut meta = Map::new();
        if modern {
            meta.insert("io.modelcontextprotocol/protocolVersion".into(), MODERN.into());
            meta.insert("io.modelcontextprotocol/clientCapabilities".into(), super::era::capabilities());
            meta.insert("io.modelcontextprotocol/clientInfo".into(), super::era::client());
        }
        if method == "tools/call" {
            meta.insert("progressToken".into(), id.into());
        }
        if !meta.is_empty() {
            params.insert("_meta".into(), Value::Object(meta));
        }
        let mut message = Map::from_iter([
            ("jsonrpc".to_owned(), Value::from("2.0")),
            ("id".to_owned(), id.into()),
            ("method".to_owned(), method.into()),
        ]);
        if !params.is_empty() {
            message.insert("params".into(), Value::Object(params));
        }
        if let Some(why) = self.inbound.closed.borrow().clone() {
            return Err(Fault::Closed(why));
        }
        let (heard, mut told) = mpsc::channel(PROGRESS);
        let mut answer = self.inbound.expect(id, heard, method == "tools/call");
        let mut open = Open { peer: self, id, settled: false };
        let mut last = Instant::now() + limits.total;
        let sending = async {
            match &self.link {
                Link::Stdio(stdio) => stdio.send(&Value::Object(message)).await,
                Link::Http(http) => http.request((id, method, &message), (era, mirrored)).await,
                Link::Outside(outside) => outside.request(id, method, Value::Object(message)).await,
            }
        };
        tokio::pin!(sending);
        let (mut sent, mut quiet) = (false, Instant::now() + limits.idle);
        let mut asking: Option<(Instant, Value, BoxFuture<'_, Value>)> = None;
        let answered = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer.unwrap_or_else(|_| Err(Fault::Closed("the connection was closed".into()))),
                Some(heard) = told.recv(), if asking.is_none() => {
                    quiet = Instant::now() + limits.idle;
                    match heard {
                        Heard::Progress(text) if text.is_empty() => {}
                        Heard::Progress(text) => caller.heard(text),
                        Heard::Asked(question, params) => {
                            let answering = Box::pin(async move { caller.asked(&params).await });
                            asking = Some((Instant::now(), question, answering));
                        }
                    }
                }
                result = async { match &mut asking {
                    Some((_, _, answering)) => answering.await,
                    None => std::future::pending().await,
                } } => {
                    if let Some((since, question, _)) = asking.take() {
                        self.reply(json!({"jsonrpc": "2.0", "id": question, "result": result})).await;
                        // The time of a person is not the server's.
                        last += since.elapsed();
                        quiet = Instant::now() + limits.idle;
                    }
                }
                outcome = &mut sending, if !sent => {
                    sent = true;
                    if let Err(fault) = outcome {
                        break Err(fault);
                    }
                }
                () = tokio::time::sleep_until(last.min(quiet)), if asking.is_none() => {
                    break Err(Fault::Silent(if last <= quiet { limits.total } else { limits.idle }));
                }
            }
        };
        // What ended by itself needs no word.
        open.settled = !matches!(answered, Err(Fault::Silent(_)));
        answered
    }

    /// Answers something that the server asked.
    async fn reply(&self, message: Value) {
        match &self.link {
            Link::Stdio(stdio) => drop(timeout(WORD, stdio.send(&message)).await),
            Link::Http(http) => http.reply(message),
            // The program asks nothing on this way.
            Link::Outside(_) => {}
        }
    }

    /// Says something that needs no answer.
    pub(super) async fn notify(&self, method: &str, params: Value, era: Option<&Era>) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let sent = match &self.link {
            Link::Stdio(stdio) => timeout(WORD, stdio.send(&message)).await,
            Link::Http(http) => timeout(WORD, http.tell(&message, era)).await,
            Link::Outside(outside) => timeout(WORD, outside.send(message)).await.map(|sent| sent.map(drop)),
        };
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!(method, "an MCP server did not take a notice");
        }
    }

    /// Listens to what the server says by itself.
    pub(super) fn listen(&self, era: &Era) {
        if let Link::Http(http) = &self.link {
            http.listen(era);
        }
    }

    /// Waits until the connection is gone, and says why.
    pub(super) async fn closed(&self) -> String {
        let mut closed = self.inbound.closed.subscribe();
        let why = closed.wait_for(Option::is_some).await.map(|why| why.clone());
        why.ok().flatten().unwrap_or_default()
    }
}

/// A request that is open. Dropped before it is settled, it is withdrawn.
struct Open<'a> {
    peer: &'a Peer,
    id: u64,
    settled: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.peer.inbound.forget(self.id);
        if self.settled {
            return;
        }
        let params = json!({"requestId": self.id, "reason": "nobody waits for it any longer"});
        let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        match &self.peer.link {
            Link::Stdio(stdio) => stdio.offer(&message),
            Link::Http(http) => http.withdraw(message),
            // The program hears of it by the call that is withdrawn with its future.
            Link::Outside(_) => {}
        }
    }
}
