//! Replies as they come, in the events of Anthropic's streams, whatever provider they come from.

use serde_json::{Value, json};
use uuid::Uuid;

use super::lines;
use crate::message::{Block, Message};
use crate::protocol::Delta;

/// The reply under way.
#[derive(Default)]
pub(super) struct Partial {
    id: Option<String>,
    /// Kinds of the blocks that were begun; the last one is open.
    blocks: Vec<&'static str>,
}

impl Partial {
    /// The events for more of a reply.
    pub(super) fn more(&mut self, delta: &Delta, model: &str) -> Vec<Value> {
        let (kind, text) = match delta {
            Delta::Text { text } => ("text", text),
            Delta::Thinking { text } => ("thinking", text),
            Delta::Discarded { .. } => {
                // It comes again, as a message of its own.
                let events =
                    if self.id.is_some() { vec![self.stop(), json!({ "type": "message_stop" })] } else { Vec::new() };
                *self = Partial::default();
                return events;
            }
            Delta::ToolArgs { .. } | Delta::ToolOutput { .. } => return Vec::new(),
        };
        let mut events = self.begin(model);
        if self.blocks.last() != Some(&kind) {
            if !self.blocks.is_empty() {
                events.push(self.stop());
            }
            events.push(self.start(
                kind,
                match kind {
                    "text" => json!({ "type": kind, "text": "", "citations": null }),
                    _ => json!({ "type": kind, "thinking": "", "signature": "" }),
                },
            ));
        }
        let delta = match kind {
            "text" => json!({ "type": "text_delta", "text": text }),
            _ => json!({ "type": "thinking_delta", "thinking": text, "estimated_tokens": null }),
        };
        events.push(self.delta(&delta));
        events
    }

    /// The events before and after the lines of each block, and those that end the reply, which is complete. Its id goes with the lines.
    pub(super) fn end(&mut self, message: &Message) -> (String, Vec<Vec<Value>>, Vec<Value>) {
        let model = message.origin.as_ref().map_or("", |origin| origin.model.as_str());
        let mut first = self.begin(model);
        let begun = self.blocks.len();
        let mut before = Vec::new();
        let shown = message.blocks.iter().filter(|block| !matches!(**block, Block::ToolResult(_) | Block::Media(_)));
        for (at, block) in shown.enumerate() {
            let mut events = std::mem::take(&mut first);
            if at + 1 == begun {
                events.push(self.stop());
            }
            if at >= begun
                && let Some(whole) = lines::assistant_block(block)
            {
                let (kind, empty, delta) = match block {
                    Block::ToolCall(call) => {
                        let start = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
                        let json = call.input.to_string();
                        ("tool_use", start, json!({ "type": "input_json_delta", "partial_json": json }))
                    }
                    Block::Thinking { .. } => (
                        "thinking",
                        json!({ "type": "thinking", "thinking": "", "signature": "" }),
                        json!({ "type": "thinking_delta", "thinking": whole["thinking"], "estimated_tokens": null }),
                    ),
                    _ => (
                        "text",
                        json!({ "type": "text", "text": "", "citations": null }),
                        json!({ "type": "text_delta", "text": whole["text"] }),
                    ),
                };
                events.push(self.start(kind, empty));
                events.push(self.delta(&delta));
                events.push(self.stop());
            }
            before.push(events);
        }
        let delta = json!({
            "stop_reason": message.stop.as_ref().and_then(lines::stop_word),
            "stop_sequence": null,
            "stop_details": null,
            "container": null,
        });
        let usage = message.usage.unwrap_or_default();
        let end = vec![
            json!({ "type": "message_delta", "delta": delta, "usage": lines::delta_usage(&usage), "context_management": null }),
            json!({ "type": "message_stop" }),
        ];
        let id = self.id.take().unwrap_or_default();
        self.blocks.clear();
        (id, before, end)
    }

    fn begin(&mut self, model: &str) -> Vec<Value> {
        if self.id.is_some() {
            return Vec::new();
        }
        let id = format!("msg_{}", Uuid::new_v4().simple());
        let message = lines::reply(&id, model, Vec::new(), Value::Null, &Default::default());
        self.id = Some(id);
        vec![json!({ "type": "message_start", "message": message })]
    }

    fn start(&mut self, kind: &'static str, block: Value) -> Value {
        self.blocks.push(kind);
        json!({ "type": "content_block_start", "index": self.blocks.len() - 1, "content_block": block })
    }

    fn delta(&self, delta: &Value) -> Value {
        json!({ "type": "content_block_delta", "index": self.blocks.len().saturating_sub(1), "delta": delta })
    }

    fn stop(&self) -> Value {
        json!({ "type": "content_block_stop", "index": self.blocks.len().saturating_sub(1) })
    }
}
