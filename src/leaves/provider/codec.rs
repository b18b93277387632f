//! What every wire does: encode a request, decode the events of its answer, classify a refusal. Pure.

use serde_json::{Value, json};

use super::catalog::{ModelSpec, ThinkingParam, ThinkingStyle};
use super::settings::WireName;
use super::{Compacted, Error, Request, StreamEvent, failure, sse};
use crate::message::{Block, Content, Media, Message, Role, ToolResult, Wire};

/// What a codec has to know about the model besides the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecSettings {
    /// The catalog has the model; otherwise nothing is sent that was not asked for.
    pub known: bool,
    /// Images may be sent; otherwise a note replaces them.
    pub images: bool,
    /// PDF documents may be sent.
    pub pdf: bool,
    pub thinking: ThinkingStyle,
    /// The efforts or levels that the model knows, weakest first.
    pub levels: Vec<String>,
    /// How a chat-completions server is told to think.
    pub thinking_param: ThinkingParam,
    /// The limit is called `max_completion_tokens` on chat completions.
    pub completion_tokens: bool,
}

impl From<&ModelSpec> for CodecSettings {
    fn from(spec: &ModelSpec) -> CodecSettings {
        CodecSettings {
            known: spec.known,
            images: spec.images,
            pdf: spec.pdf,
            thinking: spec.thinking,
            levels: spec.levels.clone(),
            thinking_param: spec.thinking_param,
            completion_tokens: spec.completion_tokens,
        }
    }
}

/// A request as it goes over HTTP, without its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Version segment of the address, for example `/v1`; left out when the base address has its own.
    pub version: &'static str,
    /// The rest of the path, beginning with a slash.
    pub path: String,
    /// Without the question mark; empty for none.
    pub query: &'static str,
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Vec<u8>,
}

impl Encoded {
    /// A request below `/v1` without headers of its own.
    pub fn v1(path: &str, body: Vec<u8>) -> Encoded {
        Encoded { version: "/v1", path: path.to_owned(), query: "", headers: Vec::new(), body }
    }
}

/// The header of a key as OAuth has it.
pub fn bearer(key: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {key}"))
}

/// One wire.
pub trait Codec: Send + Sync {
    /// What `message::Wire` data is tagged with.
    fn name(&self) -> &'static str;

    /// Encodes a request. The same conversation gives the same bytes, a longer one begins with those of the shorter.
    fn encode(&self, request: &Request, settings: &CodecSettings) -> Encoded;

    /// Makes the decoder of one answer; `model` is the id that was asked for.
    fn decoder(&self, model: &str) -> Box<dyn Decoder>;

    /// Name and value of the header that carries the key.
    fn key_header(&self, key: &str) -> (&'static str, String);

    /// Asks the endpoint for its models. Without a body: it is a GET.
    fn listing(&self) -> Encoded {
        Encoded::v1("/models", Vec::new())
    }

    /// How the server compacts a conversation; none where the wire has no such thing.
    fn compaction(&self) -> Option<&'static dyn Compaction> {
        None
    }

    /// Says what a refusal means: by default in anybody's shape, since gateways pass on each other's errors.
    fn classify(&self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Error {
        failure::classify(self.name(), status, headers, body)
    }
}

/// Compaction by the server: one document for another.
pub trait Compaction: Send + Sync {
    /// Encodes the conversation that is to be compacted.
    fn encode(&self, request: &Request, settings: &CodecSettings) -> Encoded;

    /// Reads the answer; `model` is the id that was asked for.
    ///
    /// # Errors
    /// It is not what the wire promises.
    fn decode(&self, model: &str, body: &[u8]) -> Result<Compacted, Error>;
}

/// Decodes one answer.
pub trait Decoder: Send {
    /// Takes one event and appends what it means.
    ///
    /// # Errors
    /// When the server reports a failure or breaks the format; the answer is over then.
    fn event(&mut self, event: &sse::Event, out: &mut Vec<StreamEvent>) -> Result<(), Error>;

    /// Takes the end of the body.
    ///
    /// # Errors
    /// `EndedEarly` when the reply was not complete.
    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Error>;
}

/// The codec of a wire.
pub fn codec(wire: WireName) -> &'static dyn Codec {
    match wire {
        WireName::Anthropic => &super::anthropic::Anthropic,
        WireName::Openai => &super::openai_responses::OpenaiResponses,
        WireName::OpenaiChat => &super::openai_chat::OpenaiChat,
        WireName::Gemini => &super::gemini::Gemini,
    }
}

/// Parses the data of one event. None: valid JSON that does not look like an event of this wire, to be ignored unless it
/// reports a failure.
pub(super) fn parse<'a, T: serde::Deserialize<'a>>(wire: &'static str, data: &'a str) -> Result<Option<T>, Error> {
    if let Ok(event) = serde_json::from_str(data) {
        return Ok(Some(event));
    }
    match serde_json::from_str::<Value>(data) {
        Ok(value) => match failure::Failure::find(&value) {
            Some(failure) => Err(failure.into_error(wire)),
            None => Ok(None),
        },
        Err(error) => Err(malformed(wire, format!("an event is not JSON: {error}"))),
    }
}

/// What an event is that belongs to another wire, with how to reach it; none where it may be one of `wire`'s own.
pub(super) fn of_another(wire: &'static str, event: &Value) -> Option<String> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
    let (object, kind) = (text("object"), text("type"));
    let chunk =
        event.pointer("/choices/0").is_some_and(|choice| choice["delta"].is_object() || choice["message"].is_object());
    let legacy = object == "text_completion" || event.pointer("/choices/0/text").is_some();
    let (name, theirs) = match () {
        () if legacy && !chunk => {
            return Some("it sends chunks of legacy completions, which know neither chats nor tools: use an address that offers /chat/completions".into());
        }
        () if chunk || object.starts_with("chat.completion") => ("Chat Completions", WireName::OpenaiChat),
        () if kind.starts_with("response.") || object == "response" => ("Responses", WireName::Openai),
        () if kind == "message_start" || kind.starts_with("content_block_") => {
            ("Anthropic Messages", WireName::Anthropic)
        }
        () if event.get("candidates").is_some_and(Value::is_array) => ("Gemini", WireName::Gemini),
        () if event.get("done").is_some_and(Value::is_boolean) && event.get("model").is_some() => {
            return Some(
                "it speaks Ollama's own API: use the address that ends in /v1, with wire = \"openai-chat\"".into(),
            );
        }
        () => return None,
    };
    let own = codec(theirs).name();
    (own != wire).then(|| format!("it speaks {name}: set wire = \"{own}\" for this provider in config.toml"))
}

pub(super) fn malformed(wire: &'static str, message: impl Into<String>) -> Error {
    // The address is filled in by the one who knows it.
    Error::Malformed { url: String::new(), wire, message: message.into() }
}

/// Runs of messages of one role, each to be sent as one message. What is empty is left out by the caller.
pub(super) fn runs<'a>(messages: &'a [std::sync::Arc<Message>]) -> Vec<(Role, Vec<&'a Block>)> {
    let mut runs: Vec<(Role, Vec<&'a Block>)> = Vec::new();
    for message in messages.iter().filter(|message| message.agent_visible) {
        match runs.last_mut() {
            Some((role, blocks)) if *role == message.role => blocks.extend(&message.blocks),
            _ => runs.push((message.role, message.blocks.iter().collect())),
        }
    }
    runs
}

/// The data to replay, when this wire and model made it.
pub(super) fn replay<'a>(wire: &'a Option<Wire>, name: &str, model: &str) -> Option<&'a Value> {
    wire.as_ref().filter(|wire| wire.wire == name && wire.model == model).map(|wire| &wire.data)
}

/// A medium as the wire can take it.
pub(super) enum Sendable<'a> {
    Image {
        media_type: &'a str,
        base64: &'a str,
    },
    Pdf {
        base64: &'a str,
    },
    /// It cannot be sent; the model is told so.
    Note(String),
}

pub(super) fn sendable<'a>(media: &'a Media, request: &'a Request, settings: &CodecSettings) -> Sendable<'a> {
    let is_pdf = media.media_type == "application/pdf";
    let name = if is_pdf { "PDF document" } else { "image" };
    if !(if is_pdf { settings.pdf } else { settings.images }) {
        return Sendable::Note(format!("[{name} of {} bytes: this model cannot read it]", media.bytes));
    }
    match request.media.get(&media.blob) {
        None => Sendable::Note(format!("[{name} of {} bytes: no longer stored]", media.bytes)),
        Some(base64) if is_pdf => Sendable::Pdf { base64 },
        Some(base64) => Sendable::Image { media_type: &media.media_type, base64 },
    }
}

/// The texts of a result, for wires whose results hold nothing else: its media go behind all results, each with its label.
pub(super) fn texts<'a>(
    result: &'a ToolResult,
    request: &'a Request,
    settings: &CodecSettings,
    mut behind: impl FnMut(String, Sendable<'a>),
) -> Vec<String> {
    let text = |part: &'a Content| match part {
        Content::Text { text } => text.clone(),
        Content::Media(part) => match sendable(part, request, settings) {
            Sendable::Note(note) => note,
            part => {
                behind(format!("[output of {}]", result.id), part);
                format!("[attached below as output of {}]", result.id)
            }
        },
    };
    result.content.iter().map(text).collect()
}

/// A tool name as every wire accepts it: models invent names that cannot be sent back.
pub(super) fn tool_name(name: &str) -> String {
    let name: String = name
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect();
    if name.is_empty() { "unnamed".to_string() } else { name }
}

pub(super) fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => serde_json::Map::new(),
    }
}

/// Sources of a web search, as a last text block.
pub(super) fn sources(found: &[(String, String)]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let lines: Vec<String> = found.iter().map(|(title, url)| format!("- [{title}]({url})")).collect();
    Some(format!("Sources:\n{}", lines.join("\n")))
}

pub(super) fn note_source(found: &mut Vec<(String, String)>, title: &str, url: &str) {
    if !url.is_empty() && !found.iter().any(|(_, known)| known == url) {
        found.push((if title.is_empty() { url } else { title }.to_string(), url.to_string()));
    }
}

/// The data URL of a medium.
pub(super) fn data_url(media_type: &str, base64: &str) -> Value {
    json!(format!("data:{media_type};base64,{base64}"))
}
