//! A connection to one server: requests that always end, whatever the server does.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::era::{Era, MODERN};
use super::http::Http;
use super::inbound::{Inbound, short};
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
            Fault::Closed(why) | Fault::Broken(why) => write!(f, "{why}"),
        }
    }
}

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
        heard: &mut (dyn FnMut(String) + Send),
    ) -> Result<Value, Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let modern = era.is_some_and(Era::is_modern);
        let mut meta = Map::new();
        if modern {
            meta.insert("io.modelcontextprotocol/protocolVersion".into(), MODERN.into());
            meta.insert("io.modelcontextprotocol/clientCapabilities".into(), json!({}));
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
        let (progress, mut told) = mpsc::channel(PROGRESS);
        let mut answer = self.inbound.expect(id, progress);
        let mut open = Open { peer: self, id, settled: false };
        let last = Instant::now() + limits.total;
        let sending = async {
            match &self.link {
                Link::Stdio(stdio) => stdio.send(&Value::Object(message)).await,
                Link::Http(http) => http.request((id, method, &message), (era, mirrored)).await,
                Link::Outside(outside) => outside.request(id, method, Value::Object(message)).await,
            }
        };
        tokio::pin!(sending);
        let (mut sent, mut quiet) = (false, Instant::now() + limits.idle);
        let answered = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer.unwrap_or_else(|_| Err(Fault::Closed("the connection was closed".into()))),
                Some(text) = told.recv() => {
                    quiet = Instant::now() + limits.idle;
                    if !text.is_empty() {
                        heard(text);
                    }
                }
                outcome = &mut sending, if !sent => {
                    sent = true;
                    if let Err(fault) = outcome {
                        break Err(fault);
                    }
                }
                () = tokio::time::sleep_until(last.min(quiet)) => {
                    break Err(Fault::Silent(if last <= quiet { limits.total } else { limits.idle }));
                }
            }
        };
        // What ended by itself needs no word.
        open.settled = !matches!(answered, Err(Fault::Silent(_)));
        answered
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
