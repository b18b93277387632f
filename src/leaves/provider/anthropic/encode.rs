//! Request → Messages body.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::message::{Block, Content, Outcome, Role, ToolResult};
use crate::provider::body::Body;
use crate::provider::codec::{CodecSettings, Sendable, object, replay, runs, sendable, tool_name};
use crate::provider::{Request, Thinking};

/// The smallest thinking budget that the API takes, in tokens; also what is left for the answer.
const LEAST: u32 = 1024;
/// What marks a block as the end of something to be cached.
const MARK: &str = "cache_control";

pub(super) fn body(request: &Request, settings: &CodecSettings) -> Vec<u8> {
    let mut head = object(json!({ "model": request.model, "max_tokens": request.max_output, "stream": true }));
    if !request.system.is_empty() {
        let mut system = json!({ "type": "text", "text": &*request.system });
        mark(&mut system);
        head.insert("system".into(), json!([system]));
    }
    let tools = tools(request);
    if !tools.is_empty() {
        head.insert("tools".into(), Value::Array(tools));
    }
    let mut messages = Body::default();
    for (role, blocks) in runs(&request.messages) {
        let (role, content) = match role {
            Role::User => ("user", user(&blocks, request, settings)),
            Role::Assistant => ("assistant", assistant(&blocks, request)),
        };
        if content.is_empty() {
            continue;
        }
        let first =
            |block: &&Block| matches!(block, Block::ToolResult(it) if Some(&it.id) == request.frontier.as_ref());
        if blocks.iter().any(first) {
            // The end of what the next clearing leaves alone: without this mark only the system prompt would be read from
            // the cache.
            mark_last(messages.latest().find(|message| message["role"] == "user"));
        }
        match messages.last_mut() {
            // A reply of which nothing can be sent leaves its neighbours side by side.
            Some(last) if last["role"] == role => lengthen(last, content),
            _ => messages.push(json!({ "role": role, "content": content })),
        }
    }
    think(&mut head, request, &mut messages);
    mark_last_turns(&mut messages);
    messages.finish(&head, "messages")
}

/// Adds to a message. A mark stays at its end.
fn lengthen(message: &mut Value, content: Vec<Value>) {
    let Some(before) = message["content"].as_array_mut() else { return };
    let marked = before.last_mut().and_then(|last| last.as_object_mut()?.shift_remove(MARK)).is_some();
    before.extend(content);
    if marked {
        mark_last(Some(message));
    }
}

fn tools(request: &Request) -> Vec<Value> {
    if let Some(search) = &request.web_search {
        let mut tool = object(json!({ "type": "web_search_20250305", "name": "web_search", "max_uses": 5 }));
        // The API takes one of the two lists.
        if !search.allowed_domains.is_empty() {
            tool.insert("allowed_domains".into(), json!(search.allowed_domains));
        } else if !search.blocked_domains.is_empty() {
            tool.insert("blocked_domains".into(), json!(search.blocked_domains));
        }
        return vec![Value::Object(tool)];
    }
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema }))
        .collect();
    // The system prompt comes behind the tools, so that its mark stands for both; there are four in all.
    if let Some(last) = tools.last_mut().filter(|_| request.system.is_empty()) {
        mark(last);
    }
    tools
}

fn think(head: &mut Map<String, Value>, request: &Request, messages: &mut Body) {
    let effort = |head: &mut Map<String, Value>, effort: &str| {
        head.insert("output_config".into(), json!({ "effort": effort }));
    };
    match &request.thinking {
        Thinking::Unset => {}
        Thinking::Off => {
            head.insert("thinking".into(), json!({ "type": "disabled" }));
        }
        Thinking::Budget(budget) | Thinking::Interleaved(budget) => {
            let budget = (*budget).min(request.max_output.saturating_sub(LEAST));
            // With a budget the API wants the calls that are being answered to stand behind their thinking, which is gone
            // when another model made them.
            if budget >= LEAST && !answers_unthought_calls(messages) {
                head.insert("thinking".into(), json!({ "type": "enabled", "budget_tokens": budget }));
            }
        }
        Thinking::Adaptive { effort: name } => {
            head.insert("thinking".into(), json!({ "type": "adaptive", "display": "summarized" }));
            if let Some(name) = name {
                effort(head, name);
            }
        }
        Thinking::Effort(name) => effort(head, name),
    }
}

fn answers_unthought_calls(messages: &mut Body) -> bool {
    let kind = |block: &Value| block["type"].as_str().unwrap_or_default().to_string();
    let mut latest = messages.latest();
    let (Some(results), Some(reply)) = (latest.next(), latest.next()) else { return false };
    let answers = results["content"].as_array().is_some_and(|blocks| blocks.iter().any(|b| kind(b) == "tool_result"));
    let first = reply["content"].get(0).map(kind).unwrap_or_default();
    answers && !matches!(first.as_str(), "thinking" | "redacted_thinking")
}

/// Marks the last two user turns: one to be read from the cache now, one for the next request.
fn mark_last_turns(messages: &mut Body) {
    for message in messages.latest().filter(|message| message["role"] == "user").take(2) {
        mark_last(Some(message));
    }
}

fn mark_last(message: Option<&mut Value>) {
    let content = message.and_then(|message| message["content"].as_array_mut());
    if let Some(last) = content.and_then(|content| content.last_mut()) {
        mark(last);
    }
}

fn mark(block: &mut Value) {
    block[MARK] = json!({ "type": "ephemeral" });
}

fn text(text: &str) -> Option<Value> {
    // The API refuses blocks of white space, too.
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn media(part: Sendable<'_>) -> Value {
    match part {
        Sendable::Image { media_type, base64 } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": base64 } })
        }
        Sendable::Pdf { base64 } => json!({
            "type": "document",
            "source": { "type": "base64", "media_type": "application/pdf", "data": base64 },
        }),
        Sendable::Note(note) => json!({ "type": "text", "text": note }),
    }
}

fn user(blocks: &[&Block], request: &Request, settings: &CodecSettings) -> Vec<Value> {
    // Results stand first: the API wants them right behind their calls.
    let results = blocks.iter().filter_map(|block| match block {
        Block::ToolResult(answer) => Some(result(answer, request, settings)),
        _ => None,
    });
    let rest = blocks.iter().filter_map(|block| match block {
        Block::Text { text: body, .. } => text(body),
        Block::Media(part) => Some(media(sendable(part, request, settings))),
        Block::ToolResult(_) | Block::Thinking { .. } | Block::ToolCall(_) => None,
    });
    results.chain(rest).collect()
}

fn result(result: &ToolResult, request: &Request, settings: &CodecSettings) -> Value {
    let content: Vec<Value> = result
        .content
        .iter()
        .filter_map(|part| match part {
            Content::Text { text: body } => text(body),
            Content::Media(part) => Some(media(sendable(part, request, settings))),
        })
        .collect();
    let mut block = json!({ "type": "tool_result", "tool_use_id": result.id.as_str(), "content": content });
    if result.outcome != Outcome::Ok {
        block["is_error"] = json!(true);
        if content.is_empty() {
            // An error must not be empty.
            block["content"] = json!([{ "type": "text", "text": "failed without output" }]);
        }
    }
    block
}

fn assistant(blocks: &[&Block], request: &Request) -> Vec<Value> {
    let own = |wire| replay(wire, NAME, &request.model);
    let mut content: Vec<Value> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { wire, text: body } => own(wire).cloned().or_else(|| text(body)),
            // Its data is the whole of a redacted block, and the signature of a plain one.
            Block::Thinking { wire, text } => own(wire).map(|data| match data.get("type") {
                Some(_) => data.clone(),
                None => json!({ "type": "thinking", "thinking": text, "signature": data["signature"] }),
            }),
            Block::ToolCall(call) => Some(json!({
                "type": "tool_use",
                "id": call.id.as_str(),
                "name": tool_name(&call.name),
                "input": call.input,
            })),
            Block::ToolResult(_) | Block::Media(_) => None,
        })
        .collect();
    // An interrupted reply may end in thinking, which the API refuses as a last block.
    while content.last().is_some_and(|last| matches!(last["type"].as_str(), Some("thinking" | "redacted_thinking"))) {
        content.pop();
    }
    content
}
