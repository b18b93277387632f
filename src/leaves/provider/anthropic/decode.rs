//! Messages events → stream events.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::NAME;
use crate::message::{StopReason, Usage, Wire};
use crate::provider::codec::{Decoder, note_source, parse, sources};
use crate::provider::failure::Failure;
use crate::provider::{BlockStart, Error, StreamEvent, sse};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    message: Option<Begun>,
    usage: Option<Counts>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    text: Option<String>,
    thinking: Option<String>,
    partial_json: Option<String>,
    signature: Option<String>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Begun {
    model: Option<String>,
    usage: Option<Counts>,
}

#[derive(Deserialize, Default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

/// What an open block is.
enum Kind {
    Text,
    Thinking {
        signature: String,
    },
    /// The input that the start held, for servers that send no deltas.
    Call {
        early: Option<String>,
        streamed: bool,
    },
    /// Replayed as it came: redacted thinking, a server tool and its results.
    Whole {
        data: Value,
        input: String,
    },
}

struct Open {
    /// The server's index; some give every block the same.
    theirs: u64,
    ours: usize,
    kind: Kind,
}

#[derive(Default)]
pub(super) struct Decode {
    model: String,
    open: Vec<Open>,
    next: usize,
    started: bool,
    usage: Usage,
    stop: Option<StopReason>,
    called: bool,
    sources: Vec<(String, String)>,
    ended: bool,
}

impl Decode {
    pub(super) fn new(model: &str) -> Decode {
        Decode { model: model.to_string(), ..Decode::default() }
    }

    fn start(&mut self, model: Option<String>, out: &mut Vec<StreamEvent>) {
        if !self.started {
            self.started = true;
            out.push(StreamEvent::Start { model: model.unwrap_or_else(|| self.model.clone()) });
        }
    }

    fn count(&mut self, counts: Counts, out: &mut Vec<StreamEvent>) {
        fn set(to: &mut u64, from: Option<u64>) {
            if let Some(from) = from {
                *to = from;
            }
        }
        // A later report holds totals, but may leave out what it does not repeat.
        set(&mut self.usage.input, counts.input_tokens);
        set(&mut self.usage.output, counts.output_tokens);
        set(&mut self.usage.cache_read, counts.cache_read_input_tokens);
        set(&mut self.usage.cache_write, counts.cache_creation_input_tokens);
        out.push(StreamEvent::Usage(self.usage));
    }

    fn open(&mut self, theirs: u64, block: &Value, out: &mut Vec<StreamEvent>) {
        self.close(theirs, out);
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_string();
        let index = self.next;
        self.next += 1;
        let (start, kind) = match block["type"].as_str().unwrap_or_default() {
            "text" => (BlockStart::Text, Kind::Text),
            "thinking" => (BlockStart::Thinking, Kind::Thinking { signature: text("signature") }),
            "redacted_thinking" => (BlockStart::Thinking, Kind::Whole { data: block.clone(), input: String::new() }),
            "tool_use" => {
                self.called = true;
                // Absent, null or empty until the deltas come.
                let early = match &block["input"] {
                    Value::Object(input) if !input.is_empty() => Some(block["input"].to_string()),
                    _ => None,
                };
                (BlockStart::ToolCall { name: text("name") }, Kind::Call { early, streamed: false })
            }
            kind => {
                if kind == "web_search_tool_result" {
                    for found in block["content"].as_array().into_iter().flatten() {
                        let text = |key: &str| found[key].as_str().unwrap_or_default();
                        note_source(&mut self.sources, text("title"), text("url"));
                    }
                }
                (BlockStart::Text, Kind::Whole { data: block.clone(), input: String::new() })
            }
        };
        out.push(StreamEvent::BlockStart { index, block: start });
        match (&kind, text("text"), text("thinking")) {
            (Kind::Text, early, _) if !early.is_empty() => out.push(StreamEvent::Text { index, text: early }),
            (Kind::Thinking { .. }, _, early) if !early.is_empty() => {
                out.push(StreamEvent::Thinking { index, text: early });
            }
            _ => {}
        }
        self.open.push(Open { theirs, ours: index, kind });
    }

    fn delta(&mut self, theirs: u64, delta: Delta<'_>, out: &mut Vec<StreamEvent>) {
        // A delta for a block that never began: begin it as what the delta says.
        if !self.open.iter().any(|open| open.theirs == theirs) {
            let kind = match &*delta.kind {
                "text_delta" => "text",
                "thinking_delta" | "signature_delta" => "thinking",
                _ => return,
            };
            self.open(theirs, &json!({ "type": kind }), out);
        }
        let Some(open) = self.open.iter_mut().find(|open| open.theirs == theirs) else { return };
        let index = open.ours;
        if let Some(text) = delta.text.filter(|text| !text.is_empty()) {
            out.push(StreamEvent::Text { index, text });
        }
        if let Some(text) = delta.thinking.filter(|text| !text.is_empty()) {
            out.push(StreamEvent::Thinking { index, text });
        }
        if let Some(json) = delta.partial_json.filter(|json| !json.is_empty()) {
            match &mut open.kind {
                Kind::Call { streamed, .. } => {
                    *streamed = true;
                    out.push(StreamEvent::ToolInput { index, json });
                }
                Kind::Whole { input, .. } => input.push_str(&json),
                Kind::Text | Kind::Thinking { .. } => {}
            }
        }
        if let (Some(more), Kind::Thinking { signature }) = (delta.signature, &mut open.kind) {
            signature.push_str(&more);
        }
        if let Some(citation) = delta.citation.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()) {
            let text = |key: &str| citation[key].as_str().unwrap_or_default();
            note_source(&mut self.sources, text("title"), text("url"));
        }
    }

    fn close(&mut self, theirs: u64, out: &mut Vec<StreamEvent>) {
        let Some(at) = self.open.iter().position(|open| open.theirs == theirs) else { return };
        let Open { ours: index, kind, .. } = self.open.remove(at);
        let wire = |data| Some(Wire { wire: NAME.to_string(), model: self.model.clone(), data });
        let wire = match kind {
            Kind::Text => None,
            Kind::Thinking { signature } if signature.is_empty() => None,
            Kind::Thinking { signature } => wire(json!({ "signature": signature })),
            Kind::Call { early, streamed } => {
                if let Some(json) = early.filter(|_| !streamed) {
                    out.push(StreamEvent::ToolInput { index, json });
                }
                None
            }
            Kind::Whole { mut data, input } => {
                if let Ok(input) = serde_json::from_str::<Value>(&input) {
                    data["input"] = input;
                }
                wire(data)
            }
        };
        out.push(StreamEvent::BlockEnd { index, wire });
    }

    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        self.ended = true;
        while let Some(theirs) = self.open.first().map(|open| open.theirs) {
            self.close(theirs, out);
        }
        // A paused answer continues from its last block.
        let paused = self.stop == Some(StopReason::Pause);
        if let Some(text) = sources(&self.sources).filter(|_| !paused) {
            let index = self.next;
            out.push(StreamEvent::BlockStart { index, block: BlockStart::Text });
            out.push(StreamEvent::Text { index, text });
            out.push(StreamEvent::BlockEnd { index, wire: None });
        }
        let fallback = if self.called { StopReason::ToolUse } else { StopReason::EndTurn };
        out.push(StreamEvent::End(self.stop.take().unwrap_or(fallback)));
    }
}

fn stop(reason: String) -> StopReason {
    match reason.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        // The window is full: like a limit, and the next request says so itself.
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal(reason),
        "pause_turn" => StopReason::Pause,
        _ => StopReason::Other(reason),
    }
}

impl Decoder for Decode {
    fn event(&mut self, event: &sse::Event, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.ended || event.data == "[DONE]" {
            return Ok(());
        }
        let Some(parsed) = parse::<Event<'_>>(NAME, &event.data)? else { return Ok(()) };
        let kind = if parsed.kind.is_empty() { event.name.as_str() } else { &parsed.kind };
        let index = parsed.index.unwrap_or(0);
        match kind {
            "content_block_delta" => {
                if let Some(delta) = parsed.delta {
                    self.start(None, out);
                    self.delta(index, delta, out);
                }
            }
            "message_start" => {
                let (model, usage) = parsed.message.map_or((None, None), |message| (message.model, message.usage));
                self.start(model, out);
                if let Some(usage) = usage {
                    self.count(usage, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = parsed.content_block.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
                    self.start(None, out);
                    self.open(index, &block, out);
                }
            }
            "content_block_stop" => self.close(index, out),
            "message_delta" => {
                if let Some(usage) = parsed.usage {
                    self.count(usage, out);
                }
                if let Some(reason) = parsed.delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(stop(reason));
                }
            }
            "message_stop" => self.finish(out),
            // Gateways also send the bare report, without a type.
            _ if kind == "error" || parsed.error.is_some() => {
                let value: Value = serde_json::from_str(&event.data).unwrap_or_default();
                return Err(Failure::reported(&value).into_error(NAME));
            }
            // Pings, and what is yet to be invented.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.ended { Ok(()) } else { Err(Error::EndedEarly) }
    }
}
