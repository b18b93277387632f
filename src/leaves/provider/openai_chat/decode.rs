//! Chat Completions chunks → stream events.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::NAME;
use crate::message::{StopReason, Usage, Wire};
use crate::provider::codec::{Decoder, parse};
use crate::provider::failure::Failure;
use crate::provider::{BlockStart, Error, StreamEvent, sse};

#[derive(Deserialize)]
struct Chunk<'a> {
    model: Option<String>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    // Parsed apart: odd counts must not cost the text beside them.
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// Some servers answer, or close, with the whole of it.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    // Parsed apart: an odd one must not cost the text beside it.
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    reasoning_content: Option<String>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    refusal: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

struct Call {
    /// None when the server gives none.
    theirs: Option<u64>,
    id: String,
    index: usize,
    /// Empty until the server names it; the block begins then.
    name: String,
    /// Arguments that came before the name.
    early: String,
    /// All arguments so far, to see whether they are complete; only where the server numbers nothing.
    seen: String,
    extra: Option<Value>,
}

#[derive(Default)]
pub(super) struct Decode {
    model: String,
    started: bool,
    /// The block of text or thinking that continues; `field` names where the thinking came from.
    current: Option<(usize, Option<&'static str>)>,
    next: usize,
    calls: Vec<Call>,
    refusal: String,
    stop: Option<StopReason>,
    ended: bool,
}

impl Decode {
    pub(super) fn new(model: &str) -> Decode {
        Decode { model: model.to_string(), ..Decode::default() }
    }

    fn wire(&self, data: Value) -> Option<Wire> {
        Some(Wire { wire: NAME.to_string(), model: self.model.clone(), data })
    }

    fn close_current(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some((index, field)) = self.current.take() {
            let wire = field.and_then(|field| self.wire(json!({ "field": field })));
            out.push(StreamEvent::BlockEnd { index, wire });
        }
    }

    /// The index of the current block, which is made one of this kind: no `field` for text.
    fn block(&mut self, field: Option<&'static str>, out: &mut Vec<StreamEvent>) -> usize {
        if let Some((index, current)) = self.current
            && current == field
        {
            return index;
        }
        self.close_current(out);
        let index = self.next;
        self.next += 1;
        let block = if field.is_some() { BlockStart::Thinking } else { BlockStart::Text };
        out.push(StreamEvent::BlockStart { index, block });
        self.current = Some((index, field));
        index
    }

    fn text(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let index = self.block(None, out);
            out.push(StreamEvent::Text { index, text });
        }
    }

    fn thinking(&mut self, field: &'static str, text: String, out: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            let index = self.block(Some(field), out);
            out.push(StreamEvent::Thinking { index, text });
        }
    }

    /// A string, or a list of parts as Mistral sends them.
    fn content(&mut self, raw: &RawValue, out: &mut Vec<StreamEvent>) {
        if let Some(text) = string(raw) {
            return self.text(text, out);
        }
        let parts: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        for part in parts.as_array().into_iter().flatten() {
            if let Some(text) = part["text"].as_str() {
                self.text(text.to_string(), out);
            }
            for thought in part["thinking"].as_array().into_iter().flatten() {
                self.thinking("reasoning_content", thought["text"].as_str().unwrap_or_default().to_string(), out);
            }
        }
    }

    /// Which call a delta belongs to. Servers number calls, or only name them, or neither; some number all of them 0.
    fn call(&mut self, delta: &CallDelta<'_>) -> usize {
        let name = delta.function.as_ref().and_then(|function| function.name.as_deref()).unwrap_or_default();
        let id = delta.id.as_deref().unwrap_or_default();
        let found = match delta.index {
            Some(index) => self.calls.iter().rposition(|call| call.theirs == Some(index)),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None => self.calls.len().checked_sub(1),
        };
        if let Some(at) = found {
            let call = &self.calls[at];
            let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
            let repeats = delta.index.is_none() && id.is_empty() && !call.name.is_empty() && is_whole(&call.seen);
            if name.is_empty() || !(other_id || repeats) {
                return at;
            }
        } else if delta.index.is_none() && name.is_empty() && !self.calls.is_empty() {
            // An id that changes from delta to delta says nothing.
            return self.calls.len() - 1;
        }
        self.calls.push(Call {
            theirs: delta.index,
            id: id.to_string(),
            index: self.next,
            name: String::new(),
            early: String::new(),
            seen: String::new(),
            extra: None,
        });
        self.next += 1;
        self.calls.len() - 1
    }

    fn tool_call(&mut self, delta: CallDelta<'_>, out: &mut Vec<StreamEvent>) {
        self.close_current(out);
        let at = self.call(&delta);
        let call = &mut self.calls[at];
        if let Some(extra) = delta.extra_content {
            call.extra = serde_json::from_str(extra.get()).ok();
        }
        let Some(function) = delta.function else { return };
        if let Some(name) = function.name.filter(|name| !name.is_empty() && call.name.is_empty()) {
            call.name = name.clone();
            out.push(StreamEvent::BlockStart { index: call.index, block: BlockStart::ToolCall { name } });
            let json = std::mem::take(&mut call.early);
            if !json.is_empty() {
                out.push(StreamEvent::ToolInput { index: call.index, json });
            }
        }
        // A string of JSON by the book; the object itself from some.
        let Some(raw) = function.arguments else { return };
        let json = string(raw).unwrap_or_else(|| raw.get().to_string());
        if json.is_empty() {
            return;
        }
        if call.theirs.is_none() {
            call.seen.push_str(&json);
        }
        if call.name.is_empty() {
            call.early.push_str(&json);
        } else {
            out.push(StreamEvent::ToolInput { index: call.index, json });
        }
    }

    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        self.ended = true;
        self.close_current(out);
        for call in std::mem::take(&mut self.calls) {
            if call.name.is_empty() {
                out.push(StreamEvent::BlockStart {
                    index: call.index,
                    block: BlockStart::ToolCall { name: String::new() },
                });
                if !call.early.is_empty() {
                    out.push(StreamEvent::ToolInput { index: call.index, json: call.early });
                }
            }
            let wire = call.extra.and_then(|extra| self.wire(json!({ "extra_content": extra })));
            out.push(StreamEvent::BlockEnd { index: call.index, wire });
        }
        out.push(StreamEvent::End(self.stop.take().unwrap_or(StopReason::EndTurn)));
    }

    fn stopped(&self, reason: String) -> StopReason {
        match reason.as_str() {
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal(reason),
            _ if !self.refusal.is_empty() => StopReason::Refusal(self.refusal.clone()),
            // Some servers say `stop` behind calls.
            _ if !self.calls.is_empty() => StopReason::ToolUse,
            "stop" | "tool_calls" | "function_call" | "eos" | "" => StopReason::EndTurn,
            _ => StopReason::Other(reason),
        }
    }
}

/// A JSON string; none for anything else.
fn string(raw: &RawValue) -> Option<String> {
    if raw.get().starts_with('"') { serde_json::from_str(raw.get()).ok() } else { None }
}

fn is_whole(json: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok()
}

fn failed(raw: &RawValue) -> Error {
    let error: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    Failure::reported(&json!({ "error": error })).into_error(NAME)
}

impl Decoder for Decode {
    fn event(&mut self, event: &sse::Event, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.ended {
            return Ok(());
        }
        if event.data.trim() == "[DONE]" {
            if self.stop.is_none() {
                self.stop = Some(self.stopped(String::new()));
            }
            self.finish(out);
            return Ok(());
        }
        let Some(chunk) = parse::<Chunk<'_>>(NAME, &event.data)? else { return Ok(()) };
        if let Some(error) = chunk.error {
            return Err(failed(error));
        }
        if event.name == "error" || (chunk.choices.is_none() && chunk.usage.is_none()) {
            let value: Value = serde_json::from_str(&event.data).unwrap_or_default();
            if event.name == "error" {
                return Err(Failure::reported(&value).into_error(NAME));
            }
            return match Failure::find(&value) {
                Some(failure) => Err(failure.into_error(NAME)),
                None => Ok(()),
            };
        }
        if !self.started {
            self.started = true;
            let model = chunk.model.filter(|model| !model.is_empty()).unwrap_or_else(|| self.model.clone());
            out.push(StreamEvent::Start { model });
        }
        // Only one answer was asked for.
        for choice in chunk.choices.into_iter().flatten().filter(|choice| choice.index.unwrap_or(0) == 0) {
            if let Some(error) = choice.error {
                return Err(failed(error));
            }
            let whole = choice.message.filter(|_| self.next == 0);
            if let Some(delta) = choice.delta.or(whole).filter(|_| self.stop.is_none()) {
                if let Some(text) = delta.reasoning_content {
                    self.thinking("reasoning_content", text, out);
                } else if let Some(text) = delta.reasoning.and_then(string) {
                    self.thinking("reasoning", text, out);
                }
                if let Some(raw) = delta.content {
                    self.content(raw, out);
                }
                if let Some(text) = delta.refusal {
                    self.refusal.push_str(&text);
                    self.text(text, out);
                }
                for call in delta.tool_calls.into_iter().flatten() {
                    self.tool_call(call, out);
                }
            }
            let reason = choice.finish_reason.map(|raw| string(raw).unwrap_or_else(|| raw.get().to_owned()));
            if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
                if reason == "error" {
                    return Err(Failure::default().into_error(NAME));
                }
                self.stop = Some(self.stopped(reason));
            }
        }
        if let Some(counts) = chunk.usage.and_then(|raw| serde_json::from_str::<Counts>(raw.get()).ok()) {
            let hit = counts.prompt_cache_hit_tokens;
            let cache_read =
                counts.prompt_tokens_details.and_then(|details| details.cached_tokens).or(hit).unwrap_or(0);
            out.push(StreamEvent::Usage(Usage {
                input: counts.prompt_tokens.unwrap_or(0).saturating_sub(cache_read),
                output: counts.completion_tokens.unwrap_or(0),
                cache_read,
                cache_write: 0,
                reasoning: counts.completion_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
            }));
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        // Not every server closes with [DONE].
        if !self.ended && self.stop.is_some() {
            self.finish(out);
        }
        if self.ended { Ok(()) } else { Err(Error::EndedEarly) }
    }
}
