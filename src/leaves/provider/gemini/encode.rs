//! Request → streamGenerateContent body.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{NAME, schema};
use crate::message::{Block, CallId, Outcome, Role, ToolResult};
use crate::provider::body::Body;
use crate::provider::catalog::ThinkingStyle;
use crate::provider::codec::{self, CodecSettings, Sendable, object, replay, runs, sendable, tool_name};
use crate::provider::{Request, Thinking};

/// What Google documents for calls that another model made.
const FOREIGN: &str = "skip_thought_signature_validator";

pub(super) fn body(request: &Request, settings: &CodecSettings) -> Vec<u8> {
    let mut config = object(json!({ "maxOutputTokens": request.max_output }));
    if let Some(thinking) = think(&request.thinking, settings) {
        config.insert("thinkingConfig".into(), thinking);
    }
    let mut head = Map::new();
    if !request.system.is_empty() {
        head.insert("systemInstruction".into(), json!({ "parts": [{ "text": &*request.system }] }));
    }
    if request.web_search.is_some() {
        // It has no lists of domains; the one who asks names them in the query.
        head.insert("tools".into(), json!([{ "google_search": {} }]));
    } else if !request.tools.is_empty() {
        let declarations: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                let mut declaration = json!({ "name": tool.name, "description": tool.description });
                if let Some(parameters) = schema::parameters(&tool.schema) {
                    declaration["parameters"] = parameters;
                }
                declaration
            })
            .collect();
        head.insert("tools".into(), json!([{ "functionDeclarations": declarations }]));
    }
    head.insert("generationConfig".into(), Value::Object(config));

    let mut names = HashMap::new();
    for call in request.messages.iter().flat_map(|message| message.calls()) {
        names.insert(&call.id, tool_name(&call.name));
    }
    let mut contents = Body::default();
    for (role, blocks) in runs(&request.messages) {
        let (role, parts) = match role {
            Role::User => ("user", user(&blocks, &names, request, settings)),
            Role::Assistant => ("model", model(&blocks, request, settings)),
        };
        if parts.is_empty() {
            continue;
        }
        match contents.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(before) = last["parts"].as_array_mut() {
                    before.extend(parts);
                }
            }
            _ => contents.push(json!({ "role": role, "parts": parts })),
        }
    }
    contents.finish(&head, "contents")
}

fn think(thinking: &Thinking, settings: &CodecSettings) -> Option<Value> {
    if settings.thinking == ThinkingStyle::None || (!settings.known && *thinking == Thinking::Unset) {
        return None;
    }
    Some(match thinking {
        Thinking::Unset => json!({ "includeThoughts": true }),
        // A model that only knows levels cannot be switched off, only down.
        Thinking::Off if settings.thinking == ThinkingStyle::Level => {
            json!({ "thinkingLevel": settings.levels.first()? })
        }
        Thinking::Off => json!({ "thinkingBudget": 0 }),
        Thinking::Budget(budget) | Thinking::Interleaved(budget) => {
            json!({ "thinkingBudget": budget, "includeThoughts": true })
        }
        Thinking::Adaptive { effort: None } => json!({ "thinkingBudget": -1, "includeThoughts": true }),
        Thinking::Adaptive { effort: Some(level) } | Thinking::Effort(level) => {
            json!({ "thinkingLevel": level, "includeThoughts": true })
        }
    })
}

fn media(part: Sendable<'_>) -> Value {
    match part {
        Sendable::Image { media_type, base64 } => json!({ "inlineData": { "mimeType": media_type, "data": base64 } }),
        Sendable::Pdf { base64 } => json!({ "inlineData": { "mimeType": "application/pdf", "data": base64 } }),
        Sendable::Note(note) => json!({ "text": note }),
    }
}

fn user(
    blocks: &[&Block],
    names: &HashMap<&CallId, String>,
    request: &Request,
    settings: &CodecSettings,
) -> Vec<Value> {
    let mut responses = Vec::new();
    let mut rest = Vec::new();
    for block in blocks {
        match block {
            Block::ToolResult(result) => responses.push(response(result, names, request, settings, &mut rest)),
            Block::Text { text, .. } if !text.is_empty() => rest.push(json!({ "text": text })),
            Block::Media(part) => rest.push(media(sendable(part, request, settings))),
            _ => {}
        }
    }
    responses.extend(rest);
    responses
}

/// A response holds text only; its media stand behind all responses.
fn response(
    result: &ToolResult,
    names: &HashMap<&CallId, String>,
    request: &Request,
    settings: &CodecSettings,
    behind: &mut Vec<Value>,
) -> Value {
    let texts = codec::texts(result, request, settings, |label, part| {
        behind.extend([json!({ "text": label }), media(part)]);
    });
    let field = if result.outcome == Outcome::Ok { "output" } else { "error" };
    let name = names.get(&result.id).map_or("unnamed", String::as_str);
    json!({
        "functionResponse": { "id": result.id.as_str(), "name": name, "response": { field: texts.join("\n") } },
    })
}

fn model(blocks: &[&Block], request: &Request, settings: &CodecSettings) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut called = false;
    for block in blocks {
        let (wire, mut part) = match block {
            Block::Text { text, wire } if !text.is_empty() || wire.is_some() => (wire, json!({ "text": text })),
            Block::Thinking { text, wire } if wire.is_some() => (wire, json!({ "text": text, "thought": true })),
            Block::ToolCall(call) => (
                &call.wire,
                json!({
                    "functionCall": { "id": call.id.as_str(), "name": tool_name(&call.name), "args": call.input },
                }),
            ),
            _ => continue,
        };
        let is_call = part.get("functionCall").is_some();
        let signature = replay(wire, NAME, &request.model).and_then(|data| data.get("thoughtSignature"));
        match signature {
            Some(signature) => part["thoughtSignature"] = signature.clone(),
            // These models refuse the first call of a step without one.
            None if is_call && !called && settings.thinking == ThinkingStyle::Level => {
                part["thoughtSignature"] = json!(FOREIGN);
            }
            None if part.get("thought").is_some() || part["text"] == "" => continue,
            None => {}
        }
        called |= is_call;
        parts.push(part);
    }
    parts
}
