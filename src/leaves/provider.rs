//! Asks a model and streams its answer. Codecs are pure; only `http` and `offline` do I/O.

pub mod anthropic;
mod body;
mod bounds;
pub mod cache;
pub mod catalog;
pub mod codec;
mod failure;
pub mod gemini;
pub mod http;
pub mod key;
pub mod offline;
pub mod openai_chat;
pub mod openai_responses;
pub mod probe;
pub mod reply;
pub mod retry;
pub mod settings;
pub mod sse;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{BlobId, CallId, Message, StopReason, Usage, Wire};

/// What the model is told of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the input: an object, no `$schema`, no `title`, no unusual `format`.
    pub schema: Value,
}

/// Final thinking parameters; a client knows nothing of levels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Thinking {
    /// The parameter is left out.
    #[default]
    Unset,
    /// Explicitly off, where the wire can say so.
    Off,
    /// At most so many tokens.
    Budget(u32),
    /// At most so many tokens, also between tool calls, where that has to be asked for.
    Interleaved(u32),
    /// The model decides; the effort is its hint (`low`, `medium`, `high`, `xhigh`).
    Adaptive { effort: Option<String> },
    /// An effort or level by name, in the wire's own word.
    Effort(String),
}

/// Who asks. Scripted models choose their replies by it; usage is listed by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    Main,
    Memory,
    Summary,
    /// A query for the provider's own web search.
    Search,
    Agent(String),
}

/// Asks the provider's server-side web search to answer, instead of tools of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSearch {
    pub allowed_domains: Vec<String>,
    pub blocked_domains: Vec<String>,
}

/// One request, the same for every wire.
#[derive(Debug, Clone)]
pub struct Request {
    /// The provider's id of the model.
    pub model: String,
    pub system: Arc<str>,
    pub tools: Arc<[ToolSpec]>,
    /// In order; consecutive messages of one role are merged by the codec where its wire needs it. Every call has exactly one
    /// result, in a later message. Messages that are not agent-visible never get here.
    pub messages: Vec<Arc<Message>>,
    /// Base64 of every blob that `messages` mention. A missing one is encoded as a note in its place.
    pub media: HashMap<BlobId, Arc<str>>,
    /// Most tokens of the answer.
    pub max_output: u32,
    pub thinking: Thinking,
    pub purpose: Purpose,
    /// Stable per session; wires with a cache key send it.
    pub cache_key: String,
    pub web_search: Option<WebSearch>,
    /// The call whose result is cleared next. Wires with explicit cache marks set one before it, so that everything up to
    /// there is still read from the cache afterwards.
    pub frontier: Option<CallId>,
}

/// What kind of block starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BlockStart {
    Text,
    Thinking,
    ToolCall { name: String },
}

/// One step of a reply. Blocks may interleave; `index` tells them apart and orders them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StreamEvent {
    /// The reply began. `model` is the server's own name for what answers.
    Start {
        model: String,
    },
    BlockStart {
        index: usize,
        block: BlockStart,
    },
    /// More of a text block.
    Text {
        index: usize,
        text: String,
    },
    /// More of a thinking block.
    Thinking {
        index: usize,
        text: String,
    },
    /// More of a call's arguments: a fragment of JSON.
    ToolInput {
        index: usize,
        json: String,
    },
    /// The block is complete; `wire` is what has to be replayed with it.
    BlockEnd {
        index: usize,
        wire: Option<Wire>,
    },
    /// Totals so far; a later one replaces an earlier one.
    Usage(Usage),
    /// The reply is complete. A stream that ends without it failed.
    End(StopReason),
}

/// Why a model call failed, split by who must act.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Wait and ask again.
    #[error("the provider is rate limiting requests: {message}")]
    RateLimited { message: String, retry_after: Option<Duration> },
    /// Wait and ask again: 408, 409, 5xx, 529, an overload reported in the stream.
    #[error("the provider failed ({status}): {message}")]
    Server { status: u16, message: String, retry_after: Option<Duration> },
    /// No connection.
    #[error("cannot reach {url}: {message}")]
    Connect { url: String, message: String },
    /// This machine refuses the connection: nothing listens there, and waiting alone changes nothing.
    #[error("no server is listening at {url}")]
    NoServer { url: String },
    #[error("the provider sent nothing for {0:?}")]
    Idle(Duration),
    #[error("the stream ended before the reply was complete")]
    EndedEarly,
    /// The connection stood, and failed on the way: it was closed before an answer, or an event of a good stream is damaged.
    #[error("the connection to the provider broke: {message}")]
    Broken { message: String },
    /// 401, 403. `hint` names the variable or setting that holds the key; never the key.
    #[error("{} ({status}): {message}; {hint}", refused(*status))]
    Auth { status: u16, message: String, hint: String },
    /// The key is right, and the account has nothing left.
    #[error(
        "the account has no quota or credit left ({status}): {message}; check its plan and balance with the provider"
    )]
    Quota { status: u16, message: String },
    #[error("the provider does not know the model or address ({status}): {message}; {hint}")]
    NotFound { status: u16, message: String, hint: String },
    #[error("the provider rejected the request ({status}): {message}")]
    BadRequest { status: u16, message: String },
    /// The conversation does not fit the model's window; figures where the provider gave them.
    #[error("the conversation is too long for the model{}", figures(*tokens, *limit))]
    ContextTooLong { tokens: Option<u64>, limit: Option<u64> },
    /// Not what the wire promises: HTML, a wrong content type, broken JSON.
    #[error("{url} does not speak the {wire:?} protocol: {message}; check `base_url` and `wire` of this provider")]
    Malformed { url: String, wire: &'static str, message: String },
    /// No key where one is needed; nothing was sent.
    #[error("no key for provider {provider}: {hint}")]
    NoKey { provider: String, hint: String },
    #[error("{0}")]
    Other(String),
}

fn refused(status: u16) -> &'static str {
    // A key that is known may still not be allowed to do something, or not from there.
    if status == 403 { "the provider refused access" } else { "the provider refused the key" }
}

fn figures(tokens: Option<u64>, limit: Option<u64>) -> String {
    match (tokens, limit) {
        (Some(tokens), Some(limit)) => format!(" ({tokens} tokens; the limit is {limit})"),
        (Some(tokens), None) => format!(" ({tokens} tokens)"),
        (None, Some(limit)) => format!(" (the limit is {limit} tokens)"),
        (None, None) => String::new(),
    }
}

impl Error {
    /// Whether the same request may succeed later without anybody's doing.
    pub fn retryable(&self) -> bool {
        match self {
            Error::RateLimited { .. }
            | Error::Server { .. }
            | Error::Connect { .. }
            | Error::NoServer { .. }
            | Error::Idle(_)
            | Error::EndedEarly
            | Error::Broken { .. } => true,
            Error::Auth { .. }
            | Error::Quota { .. }
            | Error::NotFound { .. }
            | Error::BadRequest { .. }
            | Error::ContextTooLong { .. }
            | Error::Malformed { .. }
            | Error::NoKey { .. }
            | Error::Other(_) => false,
        }
    }
}

/// The answer to one try of one request. Dropping it drops the connection. After an error it yields nothing more.
pub type ReplyStream = std::pin::Pin<Box<dyn Stream<Item = Result<StreamEvent, Error>> + Send>>;

/// What a server made of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// Stands for the conversation from now on; opaque to everybody else.
    pub wire: Wire,
    pub usage: Usage,
}

/// The answer to one try of one compaction. Dropping it drops the connection.
pub type CompactedFuture = std::pin::Pin<Box<dyn Future<Output = Result<Compacted, Error>> + Send>>;

/// A model behind some wire.
pub trait Provider: Send + Sync {
    /// Name of the wire, which `message::Wire` data is tagged with.
    fn wire(&self) -> &'static str;

    /// The address that requests go to: what is cached there is cached nowhere else.
    fn route(&self) -> String {
        self.wire().to_owned()
    }

    /// Whether it is asked on this machine.
    fn local(&self) -> bool {
        false
    }

    /// Sends the request once; never retries. Cancel by dropping the stream.
    fn stream(&self, request: Arc<Request>) -> ReplyStream;

    /// Has the server compact the request's conversation; none where it does not offer that.
    fn compact(&self, _request: Arc<Request>) -> Option<CompactedFuture> {
        None
    }
}
