//! streamGenerateContent chunks → stream events.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::NAME;
use crate::message::{StopReason, Usage, Wire};
use crate::provider::codec::{Decoder, note_source, parse, sources};
use crate::provider::failure::Failure;
use crate::provider::{BlockStart, Error, StreamEvent, sse};

/// Finish reasons by which the model or the server would not answer.
const REFUSALS: [&str; 11] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "CONTENT_FILTER",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    usage_metadata: Option<Counts>,
    model_version: Option<String>,
    prompt_feedback: Option<Feedback>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    grounding_metadata: Option<Grounding>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    #[serde(borrow)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    name: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Grounding {
    grounding_chunks: Option<Vec<GroundingChunk>>,
}

#[derive(Deserialize)]
struct GroundingChunk {
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    uri: Option<String>,
    title: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
}

struct Current {
    index: usize,
    thought: bool,
    signature: Option<String>,
}

#[derive(Default)]
pub(super) struct Decode {
    model: String,
    started: bool,
    /// The block of text or thinking that continues.
    current: Option<Current>,
    next: usize,
    called: bool,
    sources: Vec<(String, String)>,
    stop: Option<StopReason>,
    ended: bool,
}

impl Decode {
    pub(super) fn new(model: &str) -> Decode {
        Decode { model: model.to_string(), ..Decode::default() }
    }

    fn wire(&self, signature: Option<String>) -> Option<Wire> {
        let data = json!({ "thoughtSignature": signature? });
        Some(Wire { wire: NAME.to_string(), model: self.model.clone(), data })
    }

    fn close(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some(Current { index, signature, .. }) = self.current.take() {
            out.push(StreamEvent::BlockEnd { index, wire: self.wire(signature) });
        }
    }

    fn begin(&mut self, block: BlockStart, out: &mut Vec<StreamEvent>) -> usize {
        let index = self.next;
        self.next += 1;
        out.push(StreamEvent::BlockStart { index, block });
        index
    }

    fn part(&mut self, part: Part<'_>, out: &mut Vec<StreamEvent>) {
        if let Some(call) = part.function_call {
            self.close(out);
            self.called = true;
            let index = self.begin(BlockStart::ToolCall { name: call.name.unwrap_or_default() }, out);
            if let Some(args) = call.args {
                out.push(StreamEvent::ToolInput { index, json: args.get().to_string() });
            }
            out.push(StreamEvent::BlockEnd { index, wire: self.wire(part.thought_signature) });
            return;
        }
        let (Some(text), thought) = (part.text, part.thought.unwrap_or(false)) else { return };
        // An empty part that carries nothing is a keep-alive.
        if text.is_empty() && part.thought_signature.is_none() {
            return;
        }
        if self.current.as_ref().is_none_or(|current| current.thought != thought) {
            // A lone signature behind text of the other kind belongs to a block of its own.
            self.close(out);
            let index = self.begin(if thought { BlockStart::Thinking } else { BlockStart::Text }, out);
            self.current = Some(Current { index, thought, signature: None });
        }
        let Some(current) = &mut self.current else { return };
        let index = current.index;
        if !text.is_empty() {
            out.push(if thought { StreamEvent::Thinking { index, text } } else { StreamEvent::Text { index, text } });
        }
        if part.thought_signature.is_some() {
            current.signature = part.thought_signature;
            // What follows a signature is another part.
            self.close(out);
        }
    }

    fn finish(&mut self, stop: StopReason, out: &mut Vec<StreamEvent>) {
        self.ended = true;
        self.close(out);
        if let Some(text) = sources(&self.sources) {
            let index = self.begin(BlockStart::Text, out);
            out.push(StreamEvent::Text { index, text });
            out.push(StreamEvent::BlockEnd { index, wire: None });
        }
        out.push(StreamEvent::End(stop));
    }
}

fn failed(raw: &RawValue) -> Error {
    let error: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    Failure::reported(&json!({ "error": error })).into_error(NAME)
}

impl Decoder for Decode {
    fn event(&mut self, event: &sse::Event, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.ended || event.data == "[DONE]" {
            return Ok(());
        }
        let Some(chunk) = parse::<Chunk<'_>>(NAME, &event.data)? else { return Ok(()) };
        if let Some(raw) = chunk.error {
            return Err(failed(raw));
        }
        if chunk.candidates.is_none() && chunk.usage_metadata.is_none() && chunk.prompt_feedback.is_none() {
            let value: Value = serde_json::from_str(&event.data).unwrap_or_default();
            return Failure::find(&value).map_or(Ok(()), |failure| Err(failure.into_error(NAME)));
        }
        if !self.started {
            self.started = true;
            out.push(StreamEvent::Start { model: chunk.model_version.unwrap_or_else(|| self.model.clone()) });
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            self.stop = Some(StopReason::Refusal(reason));
        }
        for candidate in chunk.candidates.into_iter().flatten().filter(|candidate| candidate.index.unwrap_or(0) == 0) {
            for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.part(part, out);
            }
            for found in candidate.grounding_metadata.and_then(|found| found.grounding_chunks).into_iter().flatten() {
                if let Some(web) = found.web {
                    let title = web.title.unwrap_or_default();
                    note_source(&mut self.sources, &title, &web.uri.unwrap_or_default());
                }
            }
            self.stop = match candidate.finish_reason.as_deref() {
                None | Some("" | "FINISH_REASON_UNSPECIFIED") => self.stop.take(),
                Some("STOP") => Some(if self.called { StopReason::ToolUse } else { StopReason::EndTurn }),
                Some("MAX_TOKENS") => Some(StopReason::MaxTokens),
                // The model wrote a call that the server could not read: it does better when asked again.
                Some(reason @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE")) => {
                    let message = candidate.finish_message.unwrap_or_default();
                    let message = format!("{reason} {message}").trim_end().to_string();
                    return Err(Error::Server { status: 500, message, retry_after: None });
                }
                Some(reason) if REFUSALS.contains(&reason) => Some(StopReason::Refusal(reason.to_string())),
                Some(reason) => Some(StopReason::Other(reason.to_string())),
            };
        }
        if let Some(counts) = chunk.usage_metadata {
            let cache_read = counts.cached_content_token_count.unwrap_or(0);
            let reasoning = counts.thoughts_token_count.unwrap_or(0);
            let prompt = counts.prompt_token_count.unwrap_or(0) + counts.tool_use_prompt_token_count.unwrap_or(0);
            out.push(StreamEvent::Usage(Usage {
                input: prompt.saturating_sub(cache_read),
                output: counts.candidates_token_count.unwrap_or(0) + reasoning,
                cache_read,
                cache_write: 0,
                reasoning,
            }));
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if self.ended {
            return Ok(());
        }
        // The wire has no stop event: the finish reason is it, and the last counts come with it or after it.
        match self.stop.take() {
            Some(stop) => self.finish(stop, out),
            None => return Err(Error::EndedEarly),
        }
        Ok(())
    }
}
