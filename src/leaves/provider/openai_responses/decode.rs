//! Responses events → stream events. Items are told apart by output index: their ids may change within a stream.

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
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    delta: Option<String>,
    text: Option<String>,
    refusal: Option<String>,
    arguments: Option<String>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    annotation: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Call,
    /// Replayed whole, if at all: a web search.
    Other,
}

struct Item {
    theirs: u64,
    ours: usize,
    kind: Kind,
    /// Anything was streamed, so the finished item repeats it.
    streamed: bool,
    /// Which part of a text or summary the last delta belonged to.
    part: Option<u64>,
    ended: bool,
}

#[derive(Default)]
pub(super) struct Decode {
    model: String,
    started: bool,
    items: Vec<Item>,
    next: usize,
    refusal: String,
    sources: Vec<(String, String)>,
    ended: bool,
}

impl Decode {
    pub(super) fn new(model: &str) -> Decode {
        Decode { model: model.to_string(), ..Decode::default() }
    }

    fn start(&mut self, response: Option<&Value>, out: &mut Vec<StreamEvent>) {
        if !self.started {
            self.started = true;
            let model = response.and_then(|response| response["model"].as_str()).unwrap_or(&self.model);
            out.push(StreamEvent::Start { model: model.to_string() });
        }
    }

    fn begin(&mut self, theirs: u64, kind: Kind, name: &str, out: &mut Vec<StreamEvent>) -> usize {
        let block = match kind {
            Kind::Text | Kind::Other => BlockStart::Text,
            Kind::Thinking => BlockStart::Thinking,
            Kind::Call => BlockStart::ToolCall { name: name.to_string() },
        };
        out.push(StreamEvent::BlockStart { index: self.next, block });
        self.items.push(Item { theirs, ours: self.next, kind, streamed: false, part: None, ended: false });
        self.next += 1;
        self.items.len() - 1
    }

    fn find(&self, theirs: u64) -> Option<usize> {
        self.items.iter().rposition(|item| item.theirs == theirs)
    }

    /// The open item that a delta belongs to; a delta whose item never began begins it.
    fn item(&mut self, theirs: Option<u64>, kind: Kind, out: &mut Vec<StreamEvent>) -> usize {
        let found = match theirs {
            Some(theirs) => self.find(theirs),
            None => self.items.iter().rposition(|item| item.kind == kind && !item.ended),
        };
        found.unwrap_or_else(|| self.begin(theirs.unwrap_or(0), kind, "", out))
    }

    fn text(&mut self, at: usize, part: Option<u64>, text: String, out: &mut Vec<StreamEvent>) {
        let item = &mut self.items[at];
        if text.is_empty() || item.ended {
            return;
        }
        let separate = item.streamed && item.part != part;
        (item.streamed, item.part) = (true, part);
        let index = item.ours;
        let text = if separate { format!("\n\n{text}") } else { text };
        out.push(match item.kind {
            Kind::Thinking => StreamEvent::Thinking { index, text },
            Kind::Call => StreamEvent::ToolInput { index, json: text },
            Kind::Text | Kind::Other => StreamEvent::Text { index, text },
        });
    }

    fn add_item(&mut self, theirs: Option<u64>, item: &Value, out: &mut Vec<StreamEvent>) -> usize {
        let kind = match item["type"].as_str().unwrap_or_default() {
            "message" => Kind::Text,
            "reasoning" => Kind::Thinking,
            "function_call" => Kind::Call,
            _ => Kind::Other,
        };
        self.begin(theirs.unwrap_or(self.next as u64), kind, item["name"].as_str().unwrap_or_default(), out)
    }

    /// Ends an item; what of it was not streamed is taken from its finished form.
    fn end_item(&mut self, theirs: Option<u64>, item: &Value, out: &mut Vec<StreamEvent>) {
        let at = match theirs {
            Some(theirs) => self.find(theirs),
            None => self.items.iter().position(|item| !item.ended),
        };
        let at = at.unwrap_or_else(|| self.add_item(theirs, item, out));
        if self.items[at].ended {
            return;
        }
        if !self.items[at].streamed {
            match self.items[at].kind {
                Kind::Call => {
                    let json = item["arguments"].as_str().unwrap_or_default().to_string();
                    self.text(at, None, json, out);
                }
                Kind::Text => {
                    for (part, content) in item["content"].as_array().into_iter().flatten().enumerate() {
                        if let Some(refusal) = content["refusal"].as_str() {
                            self.refusal.push_str(refusal);
                        }
                        let text = content["text"].as_str().or(content["refusal"].as_str()).unwrap_or_default();
                        self.text(at, Some(part as u64), text.to_string(), out);
                    }
                }
                Kind::Thinking => {
                    let parts = ["summary", "content"].iter().filter_map(|key| item[key].as_array()).flatten();
                    for (part, content) in parts.enumerate() {
                        let text = content["text"].as_str().unwrap_or_default();
                        self.text(at, Some(part as u64), text.to_string(), out);
                    }
                }
                Kind::Other => {}
            }
        }
        for content in item["content"].as_array().into_iter().flatten() {
            for annotation in content["annotations"].as_array().into_iter().flatten() {
                self.cite(annotation);
            }
        }
        let keep = |data: Value| Some(Wire { wire: NAME.to_string(), model: self.model.clone(), data });
        let wire = match self.items[at].kind {
            // Without its encrypted content a reasoning item lives at the server, where nothing is stored.
            Kind::Thinking if item["encrypted_content"].is_string() => keep(item.clone()),
            Kind::Text => item.get("phase").filter(|p| p.is_string()).and_then(|phase| keep(json!({ "phase": phase }))),
            Kind::Other | Kind::Thinking | Kind::Call => None,
        };
        self.close(at, wire, out);
    }

    fn close(&mut self, at: usize, wire: Option<Wire>, out: &mut Vec<StreamEvent>) {
        let item = &mut self.items[at];
        item.ended = true;
        out.push(StreamEvent::BlockEnd { index: item.ours, wire });
    }

    fn cite(&mut self, annotation: &Value) {
        let text = |key: &str| annotation[key].as_str().unwrap_or_default();
        note_source(&mut self.sources, text("title"), text("url"));
    }

    fn finish(&mut self, kind: &str, response: &Value, out: &mut Vec<StreamEvent>) {
        self.ended = true;
        self.start(Some(response), out);
        // A server that streams nothing but the end.
        for (theirs, item) in response["output"].as_array().into_iter().flatten().enumerate() {
            let missing = self.items.is_empty() || self.find(theirs as u64).is_some_and(|at| !self.items[at].ended);
            if missing || self.find(theirs as u64).is_none() && self.items.len() <= theirs {
                self.end_item(Some(theirs as u64), item, out);
            }
        }
        for at in 0..self.items.len() {
            if !self.items[at].ended {
                self.close(at, None, out);
            }
        }
        if let Some(text) = sources(&self.sources) {
            out.push(StreamEvent::BlockStart { index: self.next, block: BlockStart::Text });
            out.push(StreamEvent::Text { index: self.next, text });
            out.push(StreamEvent::BlockEnd { index: self.next, wire: None });
        }
        out.extend(usage(&response["usage"]).map(StreamEvent::Usage));
        let reason = response["incomplete_details"]["reason"].as_str();
        let stop = match reason {
            Some("max_output_tokens" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal("content_filter".to_string()),
            Some(other) => StopReason::Other(other.to_string()),
            None if !self.refusal.is_empty() => StopReason::Refusal(std::mem::take(&mut self.refusal)),
            None if self.items.iter().any(|item| item.kind == Kind::Call) => StopReason::ToolUse,
            None if kind == "response.incomplete" => StopReason::Other("incomplete".to_string()),
            None => StopReason::EndTurn,
        };
        out.push(StreamEvent::End(stop));
    }
}

/// What a request cost; none where the server does not say.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let cache_read = count("/input_tokens_details/cached_tokens");
    usage.is_object().then(|| Usage {
        input: count("/input_tokens").saturating_sub(cache_read),
        output: count("/output_tokens"),
        cache_read,
        cache_write: 0,
        reasoning: count("/output_tokens_details/reasoning_tokens"),
    })
}

fn value(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn failed(report: &Value) -> Error {
    let report = if report["error"].is_object() { report.clone() } else { json!({ "error": report }) };
    Failure::reported(&report).into_error(NAME)
}

impl Decoder for Decode {
    fn event(&mut self, event: &sse::Event, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.ended || event.data == "[DONE]" {
            return Ok(());
        }
        let Some(parsed) = parse::<Event<'_>>(NAME, &event.data)? else { return Ok(()) };
        let kind = if parsed.kind.is_empty() { event.name.as_str() } else { &parsed.kind };
        let index = parsed.output_index;
        let delta = parsed.delta.unwrap_or_default();
        match kind {
            "response.output_text.delta" => {
                let at = self.item(index, Kind::Text, out);
                self.text(at, parsed.content_index, delta, out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let at = self.item(index, Kind::Thinking, out);
                self.text(at, parsed.summary_index.or(parsed.content_index), delta, out);
            }
            "response.function_call_arguments.delta" => {
                let at = self.item(index, Kind::Call, out);
                self.text(at, None, delta, out);
            }
            "response.refusal.delta" => {
                self.refusal.push_str(&delta);
                let at = self.item(index, Kind::Text, out);
                self.text(at, parsed.content_index, delta, out);
            }
            // What the finished part repeats counts only where nothing was streamed.
            "response.function_call_arguments.done" => {
                let at = self.item(index, Kind::Call, out);
                if !self.items[at].streamed {
                    self.text(at, None, parsed.arguments.unwrap_or_default(), out);
                }
            }
            "response.output_text.done" | "response.refusal.done" => {
                let at = self.item(index, Kind::Text, out);
                let (text, refusal) = (parsed.text, parsed.refusal);
                if !self.items[at].streamed {
                    self.refusal.push_str(refusal.as_deref().unwrap_or_default());
                    self.text(at, parsed.content_index, text.or(refusal).unwrap_or_default(), out);
                }
            }
            "response.output_text.annotation.added" => self.cite(&value(parsed.annotation)),
            "response.created" | "response.in_progress" | "response.queued" => {
                self.start(Some(&value(parsed.response)), out);
            }
            "response.output_item.added" => {
                self.start(None, out);
                self.add_item(index, &value(parsed.item), out);
            }
            "response.output_item.done" => {
                self.start(None, out);
                self.end_item(index, &value(parsed.item), out);
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.finish(kind, &value(parsed.response), out);
            }
            "response.failed" | "response.cancelled" => return Err(failed(&value(parsed.response)["error"])),
            _ if kind == "error" || parsed.error.is_some() => {
                return Err(failed(&serde_json::from_str(&event.data).unwrap_or_default()));
            }
            // Progress of parts and of server-side tools, and what is yet to be invented.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.ended { Ok(()) } else { Err(Error::EndedEarly) }
    }
}
