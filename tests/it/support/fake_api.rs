//! A model server on a loopback port that plays scripted answers over all four wires, and checks every request.
//!
//! It runs on a thread of its own, so that tests without a runtime can point the binary at it.

mod cache;
mod check;
mod encode;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use cocode::provider::settings::WireName;
use futures_util::stream;
use serde_json::Value;

/// One block of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Thinking(String),
    Text(String),
    Call { name: String, input: Value },
}

#[derive(Debug, Clone)]
enum Content {
    Parts(Vec<Part>),
    /// Sent as it is: content type and body.
    Raw(String, String),
}

/// What follows when the bytes to be sent are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    /// The body ends as HTTP wants it.
    Clean,
    /// The connection breaks after so many bytes.
    Cut(usize),
    /// Nothing more comes after so many bytes; the connection stays.
    Hang(usize),
}

/// One scripted answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    content: Content,
    /// What the request counts for, in tokens.
    input: u64,
    chunk: usize,
    ending: Ending,
}

impl Reply {
    /// An answer without blocks yet.
    pub(crate) fn turn() -> Reply {
        let content = Content::Parts(Vec::new());
        Reply { status: 200, headers: Vec::new(), content, input: 18, chunk: usize::MAX, ending: Ending::Clean }
    }

    /// Counts the request for so many tokens, at least 18.
    pub(crate) fn input(self, tokens: u64) -> Reply {
        Reply { input: tokens.max(18), ..self }
    }

    /// A body as it is.
    pub(crate) fn raw(status: u16, content_type: &str, body: &str) -> Reply {
        Reply { status, content: Content::Raw(content_type.into(), body.into()), ..Reply::turn() }
    }

    pub(crate) fn text(self, text: &str) -> Reply {
        self.part(Part::Text(text.into()))
    }

    pub(crate) fn thinking(self, text: &str) -> Reply {
        self.part(Part::Thinking(text.into()))
    }

    pub(crate) fn call(self, name: &str, input: Value) -> Reply {
        self.part(Part::Call { name: name.into(), input })
    }

    fn part(mut self, part: Part) -> Reply {
        if let Content::Parts(parts) = &mut self.content {
            parts.push(part);
        }
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends so many bytes at a time.
    pub(crate) fn chunks(self, size: usize) -> Reply {
        Reply { chunk: size.max(1), ..self }
    }

    /// Breaks the connection after so many bytes of the body.
    pub(crate) fn cut_after(self, bytes: usize) -> Reply {
        Reply { ending: Ending::Cut(bytes), ..self }
    }

    /// Goes silent after so many bytes of the body.
    pub(crate) fn hang_after(self, bytes: usize) -> Reply {
        Reply { ending: Ending::Hang(bytes), ..self }
    }
}

/// A model of each wire, one that thinks where the catalog knows one.
pub(crate) const MODELS: [(WireName, &str); 4] = [
    (WireName::Anthropic, "claude-opus-5"),
    (WireName::Openai, "gpt-5.4"),
    (WireName::OpenaiChat, "gpt-oss"),
    (WireName::Gemini, "gemini-3-flash-preview"),
];

/// A request that was received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) wire: WireName,
    /// With the query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) raw: String,
    pub(crate) body: Value,
}

/// What happens to the cache once a request was counted.
type Then = Box<dyn FnOnce(&mut cache::Cache) + Send>;

#[derive(Default)]
struct Inner {
    replies: VecDeque<Reply>,
    received: Vec<Received>,
    problems: Vec<String>,
    /// Compaction and undo change the beginning of a conversation on purpose.
    prefix_may_change: bool,
    cache: Option<cache::Cache>,
    then: Vec<(usize, Then)>,
    counted: Vec<cache::Counted>,
}

/// The server. It ends when dropped.
pub(crate) struct FakeApi {
    url: String,
    inner: Arc<Mutex<Inner>>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl FakeApi {
    /// Starts a server that gives these answers, one a request, in order.
    pub(crate) fn start(replies: impl IntoIterator<Item = Reply>) -> FakeApi {
        let inner = Arc::new(Mutex::new(Inner { replies: replies.into_iter().collect(), ..Inner::default() }));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (bound, address) = std::sync::mpsc::channel();
        let shared = inner.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                bound.send(listener.local_addr().unwrap()).unwrap();
                let app = axum::Router::new().fallback(answer).with_state(shared);
                tokio::select! {
                    served = axum::serve(listener, app).into_future() => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        FakeApi { url: format!("http://{}", address.recv().unwrap()), inner, _stop: stop }
    }

    /// `http://127.0.0.1:<port>`, the base address of the anthropic and gemini wires.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The base address that a provider of this wire is configured with.
    pub(crate) fn base_url(&self, wire: WireName) -> String {
        match wire {
            WireName::Anthropic | WireName::Gemini => self.url.clone(),
            WireName::Openai | WireName::OpenaiChat => format!("{}/v1", self.url),
        }
    }

    /// Variables that point the binary here over one of the hosted wires.
    pub(crate) fn env(&self, wire: WireName) -> Vec<(&'static str, String)> {
        let (key, base) = match wire {
            WireName::Anthropic => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            WireName::Openai | WireName::OpenaiChat => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
            WireName::Gemini => ("GEMINI_API_KEY", "GEMINI_BASE_URL"),
        };
        vec![(key, "test-key-of-the-fake-api".to_string()), (base, self.base_url(wire))]
    }

    /// Adds an answer behind those that are left.
    pub(crate) fn push(&self, reply: Reply) {
        self.inner.lock().unwrap().replies.push_back(reply);
    }

    /// From now on the beginning of the conversation may change between requests.
    pub(crate) fn allow_other_prefix(&self) {
        self.inner.lock().unwrap().prefix_may_change = true;
    }

    /// From now on requests over the Messages wire count for what a prompt cache makes of them.
    pub(crate) fn caching(&self, clock: fn() -> SystemTime) {
        self.inner.lock().unwrap().cache = Some(cache::Cache::new(clock));
    }

    /// What happens once so many requests have come.
    pub(crate) fn after(&self, requests: usize, then: impl FnOnce(&mut cache::Cache) + Send + 'static) {
        self.inner.lock().unwrap().then.push((requests, Box::new(then)));
    }

    /// What the cache made of each request.
    pub(crate) fn counted(&self) -> Vec<cache::Counted> {
        self.inner.lock().unwrap().counted.clone()
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.inner.lock().unwrap().received.clone()
    }

    /// Panics when any request broke a rule of its wire.
    pub(crate) fn assert_clean(&self) {
        let problems = self.inner.lock().unwrap().problems.clone();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}

fn wire_of(path: &str) -> Option<WireName> {
    match path {
        "/v1/messages" => Some(WireName::Anthropic),
        "/v1/responses" | "/v1/responses/compact" => Some(WireName::Openai),
        "/v1/chat/completions" => Some(WireName::OpenaiChat),
        path if path.starts_with("/v1beta/models/") && path.ends_with(":streamGenerateContent") => {
            Some(WireName::Gemini)
        }
        _ => None,
    }
}

async fn answer(State(inner): State<Arc<Mutex<Inner>>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let Some(wire) = wire_of(uri.path()) else {
        return respond(
            Reply::raw(404, "application/json", r#"{"error":{"message":"no such path"}}"#),
            WireName::OpenaiChat,
            None,
        );
    };
    let raw = String::from_utf8_lossy(&body).into_owned();
    let value: Value = serde_json::from_str(&raw).unwrap_or_default();
    let path = uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let received = Received { wire, path, headers, raw, body: value };
    let (reply, cached) = {
        let mut inner = inner.lock().unwrap();
        let inner = &mut *inner;
        let mut problems = check::request(&received);
        if let Some(before) = inner.received.iter().rev().find(|before| before.wire == wire)
            && !inner.prefix_may_change
        {
            problems.extend(check::prefix(before, &received));
        }
        let cached = (wire == WireName::Anthropic).then_some(inner.cache.as_mut()).flatten();
        let host = received.headers.get("host").map(|host| host.to_str().unwrap().to_owned()).unwrap_or_default();
        let number = inner.received.len() + 1;
        let cached = cached.map(|cache| {
            let counted = cache.count(&host, &received.body);
            let due = inner.then.extract_if(.., |(after, _)| *after == number);
            due.for_each(|(_, then)| then(cache));
            inner.counted.push(counted);
            counted
        });
        inner.received.push(received);
        let reply = inner.replies.pop_front();
        if reply.is_none() {
            problems.push("no answer is left for it".to_string());
        }
        let problems: Vec<String> = problems.iter().map(|problem| format!("request {number}: {problem}")).collect();
        inner.problems.extend(problems.clone());
        let reply = match reply {
            Some(reply) if problems.is_empty() => reply,
            // As a real server would: the one under test sees it at once.
            _ => Reply::raw(
                400,
                "application/json",
                &serde_json::json!({ "error": { "message": problems } }).to_string(),
            ),
        };
        (reply, cached)
    };
    respond(reply, wire, cached)
}

fn respond(reply: Reply, wire: WireName, cached: Option<cache::Counted>) -> Response {
    let (content_type, body) = match reply.content {
        Content::Parts(parts) => ("text/event-stream".to_string(), encode::answer(wire, &parts, reply.input, cached)),
        Content::Raw(content_type, body) => (content_type, body),
    };
    let mut bytes = body.into_bytes();
    if let Ending::Cut(length) | Ending::Hang(length) = reply.ending {
        bytes.truncate(length);
    }
    let chunks: VecDeque<Bytes> =
        bytes.chunks(reply.chunk.min(bytes.len().max(1))).map(Bytes::copy_from_slice).collect();
    let ending = reply.ending;
    let body = stream::unfold((chunks, false), move |(mut chunks, over)| async move {
        if let Some(chunk) = chunks.pop_front() {
            return Some((Ok(chunk), (chunks, false)));
        }
        match ending {
            Ending::Clean => None,
            Ending::Cut(_) if over => None,
            Ending::Cut(_) => {
                // The server writes out what it holds when it has to wait.
                tokio::task::yield_now().await;
                Some((Err(std::io::Error::other("cut")), (chunks, true)))
            }
            Ending::Hang(_) => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                None
            }
        }
    });
    let mut response = Response::builder().status(reply.status).header("content-type", content_type);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from_stream(body)).unwrap()
}
