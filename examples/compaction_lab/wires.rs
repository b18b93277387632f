//! Whether a projection is valid: by its structure, and as every wire would send it.

use std::collections::HashSet;
use std::sync::Arc;

use cocode::message::{Block, CallId, Message, Role};
use cocode::provider::catalog::Catalog;
use cocode::provider::codec::{CodecSettings, codec};
use cocode::provider::settings::WireName;
use cocode::provider::{Purpose, Request, Thinking};
use serde_json::Value;

const WIRES: [(WireName, &str); 4] = [
    (WireName::Anthropic, "claude-sonnet-5"),
    (WireName::Openai, "gpt-5.4"),
    (WireName::OpenaiChat, "qwen3"),
    (WireName::Gemini, "gemini-3-flash-preview"),
];

/// Each call is answered exactly once, right after its reply, in order; what is sent ends with the user.
pub(crate) fn structure(messages: &[Arc<Message>]) -> Result<(), String> {
    let mut known: HashSet<&CallId> = HashSet::new();
    let mut awaited: Vec<&CallId> = Vec::new();
    for message in messages {
        if message.blocks.is_empty() || !message.agent_visible {
            return Err("an empty or hidden message".into());
        }
        let results: Vec<&CallId> = message.results().map(|result| &result.id).collect();
        if results != std::mem::take(&mut awaited) {
            return Err(format!("results {results:?} answer other calls"));
        }
        if message.role == Role::Assistant {
            awaited = message.calls().map(|call| &call.id).collect();
            if !awaited.iter().all(|id| known.insert(id)) {
                return Err("a call id twice".into());
            }
        }
    }
    if !awaited.is_empty() {
        return Err(format!("calls {awaited:?} without results"));
    }
    match messages.last() {
        Some(last) if last.role == Role::User => Ok(()),
        _ => Err("the request does not end with the user".into()),
    }
}

/// Encodes the request for all four wires and pairs calls with results in what would be sent.
pub(crate) fn encoded(messages: &[Arc<Message>]) -> Result<(), String> {
    let calls = messages.iter().flat_map(|message| &message.blocks);
    let calls = calls.filter(|block| matches!(block, Block::ToolCall(_))).count();
    for (wire, model) in WIRES {
        let request = Request {
            model: model.into(),
            system: "You help.".into(),
            tools: Arc::new([]),
            messages: messages.to_vec(),
            media: Default::default(),
            max_output: 1_000,
            thinking: Thinking::Unset,
            purpose: Purpose::Main,
            cache_key: "lab".into(),
            web_search: None,
        };
        let settings = CodecSettings::from(&Catalog::builtin().get(wire, model));
        let body = codec(wire).encode(&request, &settings).body;
        let body: Value = serde_json::from_slice(&body).map_err(|error| format!("{wire:?}: {error}"))?;
        let (mut made, mut answered) = (Vec::new(), Vec::new());
        pairs(&body, &mut made, &mut answered);
        if made != answered || made.len() != calls {
            return Err(format!("{wire:?}: {} calls, {} results, {calls} expected", made.len(), answered.len()));
        }
    }
    Ok(())
}

/// Ids of calls and of results, in order, in any wire's words.
fn pairs(value: &Value, made: &mut Vec<String>, answered: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| pairs(item, made, answered)),
        Value::Object(object) => {
            let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            match object.get("type").and_then(Value::as_str) {
                Some("tool_use") => return made.push(text("id")),
                Some("tool_result") => return answered.push(text("tool_use_id")),
                Some("function_call") => return made.push(text("call_id")),
                Some("function_call_output") => return answered.push(text("call_id")),
                Some("function") if object.contains_key("id") => return made.push(text("id")),
                _ => {}
            }
            if object.contains_key("tool_call_id") {
                return answered.push(text("tool_call_id"));
            }
            // Gemini pairs by order and name.
            if let Some(call) = object.get("functionCall") {
                return made.push(call["name"].to_string());
            }
            if let Some(response) = object.get("functionResponse") {
                return answered.push(response["name"].to_string());
            }
            object.values().for_each(|value| pairs(value, made, answered));
        }
        _ => {}
    }
}
