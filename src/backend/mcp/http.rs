//! A server behind HTTP: each message is a request of its own, and its answer one message or a stream of them. The older way,
//! where all answers come on one stream, is spoken as well.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::catalog::in_header;
use super::era::Era;
use super::inbound::{Inbound, short};
use super::peer::Fault;
use crate::provider::sse;

/// Most bytes of one answer.
const ANSWER: usize = 16 << 20;
/// Most bytes of a refusal that are read.
const REFUSAL: usize = 64 << 10;
/// How long a server is given to take a notice or an answer of ours.
const WORD: Duration = Duration::from_secs(10);
/// How often the stream of notices is opened again, and after how long.
const REOPEN: (u32, Duration) = (5, Duration::from_secs(5));

/// How often a stream that broke off is opened again without anything new in it, and after how long where the server does not
/// say; the shortest and longest time that it may say.
const RESUMES: u32 = 3;
const RESUME: Duration = Duration::from_secs(1);
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// Answers to a server's own requests that are sent at once.
const REPLIES: usize = 8;

const SESSION: &str = "mcp-session-id";

/// See the module.
pub(super) struct Http {
    post: Arc<Post>,
    /// Reads what is not an answer to a request of its own; in the older way everything.
    stream: Mutex<Option<AbortOnDropHandle<()>>>,
    older: bool,
}

/// What it takes to send something.
struct Post {
    client: Client,
    url: Url,
    headers: HeaderMap,
    session: Mutex<Option<String>>,
    /// The revision that was agreed on, which every message names.
    version: Mutex<Option<String>>,
    inbound: Arc<Inbound>,
    /// Answers that are on their way at once: a server that asks for more gets none.
    replies: Arc<Semaphore>,
}

impl Http {
    /// Touches no network yet.
    pub(super) fn new(client: Client, url: &Url, headers: &BTreeMap<String, String>, inbound: &Arc<Inbound>) -> Http {
        let post = Post {
            client,
            url: url.clone(),
            headers: read(headers),
            session: Mutex::default(),
            version: Mutex::default(),
            inbound: inbound.clone(),
            replies: Arc::new(Semaphore::new(REPLIES)),
        };
        Http { post: Arc::new(post), stream: Mutex::default(), older: false }
    }

    /// Opens the stream of the older way, and learns where messages go.
    ///
    /// # Errors
    /// The server does not speak it.
    pub(super) async fn older(
        client: Client,
        url: &Url,
        headers: &BTreeMap<String, String>,
        inbound: &Arc<Inbound>,
    ) -> Result<Http, Fault> {
        let headers = read(headers);
        let asked = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let mut answer = accepted(asked.send().await.map_err(|error| unreachable(&error))?).await?;
        let (mut parser, mut events) = (sse::Parser::new(), Vec::new());
        let endpoint = 'found: loop {
            let part = answer.chunk().await.map_err(|error| unreachable(&error))?;
            let Some(part) = part else {
                return Err(Fault::Broken("its stream ended before it named an endpoint".to_owned()));
            };
            parser.push(&part, &mut events).map_err(|error| Fault::Broken(error.to_string()))?;
            for event in events.drain(..) {
                if event.name == "endpoint" {
                    break 'found event.data;
                }
            }
        };
        let to =
            url.join(endpoint.trim()).map_err(|error| Fault::Broken(format!("its endpoint is not valid: {error}")))?;
        // What the headers hold is for this server.
        if to.origin() != url.origin() {
            return Err(Fault::Broken(format!("its endpoint is at another server: {}", short(to.as_str()))));
        }
        let post = Post {
            client,
            url: to,
            headers,
            session: Mutex::default(),
            version: Mutex::default(),
            inbound: inbound.clone(),
            replies: Arc::new(Semaphore::new(REPLIES)),
        };
        let post = Arc::new(post);
        let reader = post.clone();
        let task = tokio::spawn(async move {
            let (_, end) = reader.read(answer, (parser, events), None).await;
            let why = end.err().map_or_else(|| "the server closed its stream".to_owned(), |fault| fault.to_string());
            reader.inbound.close(&why);
        });
        Ok(Http { post, stream: Mutex::new(Some(AbortOnDropHandle::new(task))), older: true })
    }

    /// Sends a request. Its answer finds who waits for it before this ends, or this ends with an error; in the older way it
    /// comes later.
    pub(super) async fn request(
        &self,
        (id, method, message): (u64, &str, &Map<String, Value>),
        (era, mirrored): (Option<&Era>, &[(String, String)]),
    ) -> Result<(), Fault> {
        let post = &self.post;
        let mut request = post.send(Value::Object(message.clone()), era);
        for (name, value) in mirrored {
            request = request.header(name, value);
        }
        let answer = request.send().await.map_err(|error| unreachable(&error))?;
        if answer.status().as_u16() == 404 && post.session().is_some() {
            let why = "the server has ended the session";
            post.inbound.close(why);
            return Err(Fault::Closed(why.to_owned()));
        }
        let answer = accepted(answer).await?;
        if self.older {
            return Ok(());
        }
        if method == "initialize" {
            let session = answer.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
            *post.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        }
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let none = || Err(Fault::Broken("the answer does not belong to the request".to_owned()));
        if kind.starts_with("text/event-stream") {
            return post.read_to_the_answer(answer, id, era).await;
        }
        if !kind.starts_with("application/json") {
            return Err(Fault::Broken(format!(
                "the answer is {}, not JSON: is this the address of an MCP server?",
                match kind {
                    "" => "of no type".to_owned(),
                    kind => short(kind),
                }
            )));
        }
        let text = body(answer, ANSWER).await?;
        let asked = post.inbound.take(&text, Some(id));
        post.reply(asked);
        if post.inbound.waits(id) { none() } else { Ok(()) }
    }

    pub(super) async fn tell(&self, message: &Value, era: Option<&Era>) -> Result<(), Fault> {
        let answer = self.post.send(message.clone(), era).send().await.map_err(|error| unreachable(&error))?;
        accepted(answer).await.map(drop)
    }

    /// Sends the answer to something that the server asked.
    pub(super) fn reply(&self, answer: Value) {
        self.post.reply(vec![answer]);
    }

    /// Tells that nobody waits for a request. In the newer way closing it says so.
    pub(super) fn withdraw(&self, message: Value) {
        let post = self.post.clone();
        if self.older || post.session().is_some() {
            tokio::spawn(async move {
                let _ = tokio::time::timeout(WORD, post.send(message, None).send()).await;
            });
        }
    }

    /// Listens to what a server of the older era says by itself. A server may have nothing to say.
    pub(super) fn listen(&self, era: &Era) {
        if self.older || era.is_modern() {
            return;
        }
        let post = self.post.clone();
        let task = tokio::spawn(async move {
            let (times, after) = REOPEN;
            let mut left = Left::default();
            for _ in 0..times {
                let Ok(answer) = post.open(&left).await else { return };
                left = post.read(answer, (sse::Parser::new(), Vec::new()), None).await.0;
                tokio::time::sleep(left.pause.unwrap_or(after)).await;
            }
        });
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(AbortOnDropHandle::new(task));
    }
}

/// Where a stream broke off.
#[derive(Default)]
struct Left {
    /// The last event; None: the stream cannot be continued.
    id: Option<String>,
    /// How long the server wants to be left alone.
    pause: Option<Duration>,
}

impl Left {
    fn of(parser: &sse::Parser) -> Left {
        let pause = parser.retry().map(|ms| Duration::from_millis(ms).clamp(PAUSE.0, PAUSE.1));
        Left { id: parser.last_id().map(str::to_owned), pause }
    }
}

impl Post {
    fn session(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn in_session(&self, request: RequestBuilder) -> RequestBuilder {
        match self.session() {
            Some(session) => request.header(SESSION, session),
            None => request,
        }
    }

    fn send(&self, message: Value, era: Option<&Era>) -> RequestBuilder {
        let mut request = self.client.post(self.url.clone()).headers(self.headers.clone());
        request = self.in_session(request);
        request =
            request.header(ACCEPT, "application/json, text/event-stream").header(CONTENT_TYPE, "application/json");
        let version = {
            let mut agreed = self.version.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(Era::Legacy(version)) = era {
                *agreed = Some(version.clone());
            }
            era.map(|era| era.version().to_owned()).or_else(|| agreed.clone())
        };
        if let Some(version) = version {
            request = request.header("mcp-protocol-version", version);
        }
        if era.is_some_and(Era::is_modern) {
            request = request.header("mcp-method", message["method"].as_str().unwrap_or_default());
            let named = message["params"].get("name").or(message["params"].get("uri")).and_then(Value::as_str);
            if let Some(name) = named.and_then(|name| HeaderValue::from_str(&in_header(name)).ok()) {
                request = request.header("mcp-name", name);
            }
        }
        let text = message.to_string();
        self.inbound.sent.fetch_add(text.len() as u64, Ordering::Relaxed);
        request.body(text)
    }

    /// Sends answers to what the server asked.
    fn reply(self: &Arc<Post>, answers: Vec<Value>) {
        for answer in answers {
            let Ok(place) = self.replies.clone().try_acquire_owned() else { return };
            let post = self.clone();
            tokio::spawn(async move {
                let _place = place;
                let _ = tokio::time::timeout(WORD, post.send(answer, None).send()).await;
            });
        }
    }

    /// Opens the stream of a server, from its start or where it broke off.
    async fn open(&self, left: &Left) -> Result<Response, Fault> {
        let asked = self.client.get(self.url.clone()).headers(self.headers.clone());
        let mut asked = self.in_session(asked).header(ACCEPT, "text/event-stream");
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, value) in [("mcp-protocol-version", version.as_ref()), ("last-event-id", left.id.as_ref())] {
            if let Some(value) = value {
                asked = asked.header(name, value);
            }
        }
        let answer = accepted(asked.send().await.map_err(|error| unreachable(&error))?).await?;
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        match kind.starts_with("text/event-stream") {
            true => Ok(answer),
            false => Err(Fault::Broken("it answers with something that is not a stream".to_owned())),
        }
    }

    /// Reads the stream of an answer. One that the server closes before, it continues on another.
    async fn read_to_the_answer(self: &Arc<Post>, answer: Response, id: u64, era: Option<&Era>) -> Result<(), Fault> {
        let (mut left, mut ended) = self.read(answer, (sse::Parser::new(), Vec::new()), Some(id)).await;
        let mut tries = 0;
        while self.inbound.waits(id) {
            ended?;
            let continues = left.id.is_some() && tries < RESUMES && !era.is_some_and(Era::is_modern);
            if !continues {
                return Err(Fault::Closed("the stream broke off before the answer".to_owned()));
            }
            tokio::time::sleep(left.pause.unwrap_or(RESUME)).await;
            let answer = self.open(&left).await?;
            let (next, end) = self.read(answer, (sse::Parser::new(), Vec::new()), Some(id)).await;
            tries = if next.id.is_none() || next.id == left.id { tries + 1 } else { 0 };
            left = Left { id: next.id.or(left.id), pause: next.pause.or(left.pause) };
            ended = end;
        }
        Ok(())
    }

    /// Reads a stream to its end, or until nobody waits for this answer any longer; and tells where it ended. What breaks off
    /// and can be continued has ended.
    async fn read(
        self: &Arc<Post>,
        mut answer: Response,
        (mut parser, mut events): (sse::Parser, Vec<sse::Event>),
        until: Option<u64>,
    ) -> (Left, Result<(), Fault>) {
        loop {
            for event in events.drain(..).filter(|event| matches!(event.name.as_str(), "" | "message")) {
                let asked = self.inbound.take(&event.data, until);
                self.reply(asked);
            }
            if until.is_some_and(|id| !self.inbound.waits(id)) {
                return (Left::of(&parser), Ok(()));
            }
            match answer.chunk().await {
                Ok(Some(part)) => {
                    if let Err(error) = parser.push(&part, &mut events) {
                        return (Left::default(), Err(Fault::Broken(error.to_string())));
                    }
                }
                Ok(None) => break,
                Err(_) if until.is_some() && parser.last_id().is_some() => break,
                Err(error) => return (Left::of(&parser), Err(unreachable(&error))),
            }
        }
        let left = Left::of(&parser);
        if let Some(event) = parser.finish() {
            let asked = self.inbound.take(&event.data, until);
            self.reply(asked);
        }
        (left, Ok(()))
    }
}

fn read(headers: &BTreeMap<String, String>) -> HeaderMap {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
    });
    pairs.collect()
}

/// An answer that is one.
async fn accepted(answer: Response) -> Result<Response, Fault> {
    let status = answer.status().as_u16();
    if answer.status().is_success() {
        return Ok(answer);
    }
    if matches!(status, 401 | 403) {
        return Err(Fault::Login { status });
    }
    if answer.status().is_redirection() {
        let to = answer.headers().get("location").and_then(|to| to.to_str().ok()).map(short).unwrap_or_default();
        return Err(Fault::Status { status, said: format!("it redirects to {to}: use that address if you trust it") });
    }
    let text = body(answer, REFUSAL).await.unwrap_or_default();
    let json: Value = serde_json::from_str(&text).unwrap_or_default();
    match json.get("error").filter(|error| error.get("code").is_some_and(Value::is_i64)) {
        // The codes of the newer era mean something; others come with whatever status.
        Some(error) if status == 400 && matches!(error["code"].as_i64(), Some(-32022..=-32020)) => {
            Err(Fault::of_error(error))
        }
        Some(error) => Err(Fault::Status { status, said: error["message"].as_str().map(short).unwrap_or_default() }),
        None => Err(Fault::Status { status, said: short(text.lines().next().unwrap_or_default()) }),
    }
}

async fn body(mut answer: Response, most: usize) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|error| unreachable(&error))? {
        bytes.extend_from_slice(&part);
        if bytes.len() > most {
            return Err(Fault::Broken(format!("its answer is longer than {} MB", most >> 20)));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unreachable(error: &reqwest::Error) -> Fault {
    let mut source: &dyn std::error::Error = error;
    while let Some(below) = source.source() {
        source = below;
    }
    Fault::Closed(format!("the server cannot be reached: {}", short(&source.to_string())))
}
