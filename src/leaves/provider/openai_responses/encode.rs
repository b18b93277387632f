//! Request → Responses body. Nothing is stored at the server: reasoning travels encrypted in the items.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::message::{Block, Content, Role, ToolResult, Wire};
use crate::provider::body::Body;
use crate::provider::catalog::ThinkingStyle;
use crate::provider::codec::{CodecSettings, Sendable, data_url, object, replay, runs, sendable, tool_name};
use crate::provider::{Request, Thinking};

pub(super) fn body(request: &Request, settings: &CodecSettings) -> Vec<u8> {
    let mut head = object(json!({
        "model": request.model,
        "max_output_tokens": request.max_output,
        "stream": true,
        "store": false,
    }));
    if !request.cache_key.is_empty() {
        head.insert("prompt_cache_key".into(), json!(request.cache_key));
    }
    think(&mut head, &request.thinking, settings);
    if !request.system.is_empty() {
        head.insert("instructions".into(), json!(&*request.system));
    }
    let tools = tools(request);
    if !tools.is_empty() {
        head.insert("tools".into(), Value::Array(tools));
    }
    input(request, settings).finish(&head, "input")
}

/// The conversation as items.
pub(super) fn input(request: &Request, settings: &CodecSettings) -> Body {
    let mut input = Body::default();
    for (role, blocks) in runs(&request.messages) {
        input.extend(match role {
            Role::User => user(&blocks, request, settings),
            Role::Assistant => assistant(&blocks, request),
        });
    }
    input
}

fn think(head: &mut Map<String, Value>, thinking: &Thinking, settings: &CodecSettings) {
    let known = |name: &&str| settings.levels.iter().any(|level| level == name);
    let effort = match thinking {
        Thinking::Unset => None,
        Thinking::Off => ["none", "minimal"].into_iter().find(known),
        Thinking::Budget(budget) | Thinking::Interleaved(budget) if *budget < 4_096 => Some("low"),
        Thinking::Budget(budget) | Thinking::Interleaved(budget) if *budget < 20_000 => Some("medium"),
        Thinking::Budget(_) | Thinking::Interleaved(_) => Some("high"),
        Thinking::Adaptive { effort } => Some(effort.as_deref().unwrap_or("medium")),
        Thinking::Effort(effort) => Some(effort.as_str()),
    };
    // Models that do not reason refuse to hear of it.
    if settings.thinking == ThinkingStyle::None || (!settings.known && effort.is_none()) {
        return;
    }
    let reasoning = match effort {
        Some("none") => json!({ "effort": "none" }),
        Some(effort) => json!({ "effort": effort, "summary": "auto" }),
        None => json!({ "summary": "auto" }),
    };
    head.insert("reasoning".into(), reasoning);
    head.insert("include".into(), json!(["reasoning.encrypted_content"]));
}

fn tools(request: &Request) -> Vec<Value> {
    if let Some(search) = &request.web_search {
        let mut tool = json!({ "type": "web_search" });
        if !search.allowed_domains.is_empty() {
            tool["filters"] = json!({ "allowed_domains": search.allowed_domains });
        } else if !search.blocked_domains.is_empty() {
            tool["filters"] = json!({ "blocked_domains": search.blocked_domains });
        }
        return vec![tool];
    }
    request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": false,
            })
        })
        .collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn media(part: Sendable<'_>) -> Value {
    match part {
        Sendable::Image { media_type, base64 } => {
            json!({ "type": "input_image", "image_url": data_url(media_type, base64) })
        }
        Sendable::Pdf { base64 } => json!({
            "type": "input_file",
            "filename": "document.pdf",
            "file_data": data_url("application/pdf", base64),
        }),
        Sendable::Note(note) => text(&note),
    }
}

fn user(blocks: &[&Block], request: &Request, settings: &CodecSettings) -> Vec<Value> {
    let (mut input, mut content) = (Vec::new(), Vec::new());
    let flush = |content: &mut Vec<Value>, input: &mut Vec<Value>| {
        if !content.is_empty() {
            let content = std::mem::take(content);
            input.push(json!({ "type": "message", "role": "user", "content": content }));
        }
    };
    for block in blocks {
        match block {
            // What the server made of an earlier part stands for itself, in its place.
            Block::Text { wire, .. } if items(wire, request).is_some() => {
                flush(&mut content, &mut input);
                input.extend(items(wire, request).into_iter().flatten().cloned());
            }
            Block::ToolResult(answer) => input.push(result(answer, request, settings)),
            Block::Text { text: body, .. } if !body.trim().is_empty() => content.push(text(body)),
            Block::Media(part) => content.push(media(sendable(part, request, settings))),
            _ => {}
        }
    }
    flush(&mut content, &mut input);
    input
}

/// The items that this server compacted a conversation into.
fn items<'a>(wire: &'a Option<Wire>, request: &Request) -> Option<&'a Vec<Value>> {
    replay(wire, NAME, &request.model)?.get("items")?.as_array()
}

fn result(result: &ToolResult, request: &Request, settings: &CodecSettings) -> Value {
    let has_media = result.content.iter().any(|part| matches!(part, Content::Media(_)));
    let output = if has_media {
        let parts = result.content.iter().filter_map(|part| match part {
            Content::Text { text: body } if body.is_empty() => None,
            Content::Text { text: body } => Some(text(body)),
            Content::Media(part) => Some(media(sendable(part, request, settings))),
        });
        Value::Array(parts.collect())
    } else {
        let text = result.text();
        json!(if text.is_empty() { "(no output)" } else { &text })
    };
    json!({ "type": "function_call_output", "call_id": result.id.as_str(), "output": output })
}

fn assistant(blocks: &[&Block], request: &Request) -> Vec<Value> {
    let mut input: Vec<Value> = Vec::new();
    for block in blocks {
        match block {
            // An item of another kind, such as a web search, is replayed whole and has no text of its own.
            Block::Text { text, wire } => {
                let data = replay(wire, NAME, &request.model);
                if let Some(item) = data.filter(|data| data.get("type").is_some()) {
                    input.push(item.clone());
                } else if !text.trim().is_empty() {
                    let mut item = json!({
                        "type": "message",
                        "role": "assistant",
                        "content": [{ "type": "output_text", "text": text }],
                    });
                    if let Some(phase) = data.and_then(|data| data.get("phase")) {
                        item["phase"] = phase.clone();
                    }
                    input.push(item);
                }
            }
            Block::Thinking { wire, .. } => input.extend(replay(wire, NAME, &request.model).cloned()),
            Block::ToolCall(call) => input.push(json!({
                "type": "function_call",
                "call_id": call.id.as_str(),
                "name": tool_name(&call.name),
                "arguments": call.input.to_string(),
            })),
            Block::ToolResult(_) | Block::Media(_) => {}
        }
    }
    // Reasoning must be followed by what it led to; an interrupted reply may lack that.
    while input.last().is_some_and(|item| item["type"] == "reasoning") {
        input.pop();
    }
    input
}
