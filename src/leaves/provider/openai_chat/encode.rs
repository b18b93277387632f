//! Request → Chat Completions body.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::message::{Block, Role, ToolResult};
use crate::provider::body::Body;
use crate::provider::catalog::ThinkingParam;
use crate::provider::codec::{self, CodecSettings, Sendable, data_url, object, replay, runs, sendable, tool_name};
use crate::provider::{Request, Thinking};

pub(super) fn body(request: &Request, settings: &CodecSettings) -> Vec<u8> {
    let limit = if settings.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    let mut head = object(json!({
        "model": request.model,
        limit: request.max_output,
        "stream": true,
        "stream_options": { "include_usage": true },
    }));
    // This wire has no server-side search: without tools the model answers from what it knows.
    if request.web_search.is_none() && !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
                })
            })
            .collect();
        head.insert("tools".into(), Value::Array(tools));
    }
    think(&mut head, request, settings);
    let mut messages = Body::default();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": &*request.system }));
    }
    for (role, blocks) in runs(&request.messages) {
        match role {
            Role::User => messages.extend(user(&blocks, request, settings)),
            Role::Assistant => messages.extend(assistant(&blocks, request)),
        }
    }
    messages.finish(&head, "messages")
}

fn think(head: &mut Map<String, Value>, request: &Request, settings: &CodecSettings) {
    let known = |name: &str| settings.levels.iter().any(|level| level == name);
    let effort = match &request.thinking {
        Thinking::Unset => return,
        Thinking::Off => None,
        Thinking::Budget(budget) | Thinking::Interleaved(budget) if *budget < 4_096 => Some("low"),
        Thinking::Budget(budget) | Thinking::Interleaved(budget) if *budget < 20_000 => Some("medium"),
        Thinking::Budget(_) | Thinking::Interleaved(_) => Some("high"),
        Thinking::Adaptive { effort } => Some(effort.as_deref().unwrap_or("medium")),
        Thinking::Effort(effort) => Some(effort.as_str()),
    };
    let (field, value) = match (settings.thinking_param, effort) {
        (ThinkingParam::None, _) => return,
        (ThinkingParam::ReasoningEffort, Some(effort)) => ("reasoning_effort", json!(effort)),
        // Only some models can be told not to think.
        (ThinkingParam::ReasoningEffort, None) => match ["none", "minimal"].into_iter().find(|name| known(name)) {
            Some(off) => ("reasoning_effort", json!(off)),
            None => return,
        },
        (ThinkingParam::Reasoning, effort) => {
            let value = match (&request.thinking, effort) {
                (Thinking::Budget(budget) | Thinking::Interleaved(budget), _) => json!({ "max_tokens": budget }),
                (_, Some(effort)) => json!({ "effort": effort }),
                (_, None) => json!({ "enabled": false }),
            };
            ("reasoning", value)
        }
        (ThinkingParam::EnableThinking, effort) => {
            ("chat_template_kwargs", json!({ "enable_thinking": effort.is_some() }))
        }
    };
    head.insert(field.into(), value);
}

fn media(part: Sendable<'_>) -> Value {
    match part {
        Sendable::Image { media_type, base64 } => {
            json!({ "type": "image_url", "image_url": { "url": data_url(media_type, base64) } })
        }
        Sendable::Pdf { base64 } => json!({
            "type": "file",
            "file": { "filename": "document.pdf", "file_data": data_url("application/pdf", base64) },
        }),
        Sendable::Note(note) => json!({ "type": "text", "text": note }),
    }
}

fn user(blocks: &[&Block], request: &Request, settings: &CodecSettings) -> Vec<Value> {
    let (mut messages, mut parts) = (Vec::new(), Vec::new());
    for block in blocks {
        match block {
            Block::ToolResult(answer) => messages.push(result(answer, request, settings, &mut parts)),
            Block::Text { text, .. } if !text.trim().is_empty() => parts.push(json!({ "type": "text", "text": text })),
            Block::Media(part) => parts.push(media(sendable(part, request, settings))),
            _ => {}
        }
    }
    if parts.is_empty() {
        return messages;
    }
    // Many servers' templates take a plain string only.
    let texts: Option<Vec<&str>> =
        parts.iter().map(|part| if part["type"] == "text" { part["text"].as_str() } else { None }).collect();
    let content = match texts {
        Some(texts) => json!(texts.join("\n\n")),
        None => Value::Array(parts),
    };
    messages.push(json!({ "role": "user", "content": content }));
    messages
}

/// A result goes into a message of its own; its media, which that cannot hold, behind all results.
fn result(result: &ToolResult, request: &Request, settings: &CodecSettings, behind: &mut Vec<Value>) -> Value {
    let texts = codec::texts(result, request, settings, |label, part| {
        behind.extend([json!({ "type": "text", "text": label }), media(part)]);
    });
    let text = texts.join("\n");
    let text = if text.is_empty() { "(no output)".to_string() } else { text };
    json!({ "role": "tool", "tool_call_id": result.id.as_str(), "content": text })
}

fn assistant(blocks: &[&Block], request: &Request) -> Option<Value> {
    let (mut texts, mut calls, mut thoughts, mut field) = (Vec::new(), Vec::new(), Vec::new(), None);
    for block in blocks {
        match block {
            Block::Text { text, .. } if !text.trim().is_empty() => texts.push(text.as_str()),
            Block::Thinking { text, wire } => {
                if let Some(name) = replay(wire, NAME, &request.model).and_then(|data| data["field"].as_str()) {
                    field = Some(name);
                    thoughts.push(text.as_str());
                }
            }
            Block::ToolCall(call) => {
                let mut entry = json!({
                    "id": call.id.as_str(),
                    "type": "function",
                    "function": { "name": tool_name(&call.name), "arguments": call.input.to_string() },
                });
                if let Some(extra) = replay(&call.wire, NAME, &request.model).and_then(|data| data.get("extra_content"))
                {
                    entry["extra_content"] = extra.clone();
                }
                calls.push(entry);
            }
            _ => {}
        }
    }
    if texts.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if texts.is_empty() { Value::Null } else { json!(texts.join("\n\n")) };
    let mut message = object(json!({ "role": "assistant", "content": content }));
    if !calls.is_empty() {
        // Servers that think between calls want the thoughts back with them; in final answers they would only cost.
        if let Some(field) = field {
            message.insert(field.into(), json!(thoughts.join("\n\n")));
        }
        message.insert("tool_calls".into(), Value::Array(calls));
    }
    Some(Value::Object(message))
}
