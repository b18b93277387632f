//! Blocks → the stream that each provider would send for them.

use std::fmt::Write;

use cocode::provider::settings::WireName;
use serde_json::{Value, json};

use super::Part;
use super::cache::Counted;

/// Characters in one delta.
const DELTA: usize = 9;

/// The body of a whole answer to a request that counts for so many tokens, or for what a cache makes of them.
pub(super) fn answer(wire: WireName, parts: &[Part], input: u64, cached: Option<Counted>) -> String {
    match wire {
        WireName::Anthropic => anthropic(parts, cached.unwrap_or((input - 8, 5, 3))),
        WireName::Openai => openai(parts, input),
        WireName::OpenaiChat => openai_chat(parts, input),
        WireName::Gemini => gemini(parts, input),
    }
}

fn deltas(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<char>>().chunks(DELTA).map(|chunk| chunk.iter().collect()).collect()
}

fn calls(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Call { .. }))
}

/// Events that carry their type as name and in the data.
fn named(body: &mut String, event: Value) {
    let _ = write!(body, "event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
}

fn anthropic(parts: &[Part], (input, read, written): Counted) -> String {
    let mut body = String::new();
    named(
        &mut body,
        json!({ "type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": input, "cache_creation_input_tokens": written, "cache_read_input_tokens": read, "output_tokens": 1 },
        } }),
    );
    named(&mut body, json!({ "type": "ping" }));
    for (index, part) in parts.iter().enumerate() {
        let (block, deltas): (Value, Vec<Value>) = match part {
            Part::Thinking(text) => {
                let texts = deltas(text).into_iter().map(|text| json!({ "type": "thinking_delta", "thinking": text }));
                let signature = json!({ "type": "signature_delta", "signature": "c2lnbmVk" });
                (json!({ "type": "thinking", "thinking": "", "signature": "" }), texts.chain([signature]).collect())
            }
            Part::Text(text) => {
                let texts = deltas(text).into_iter().map(|text| json!({ "type": "text_delta", "text": text }));
                (json!({ "type": "text", "text": "" }), texts.collect())
            }
            Part::Call { name, input } => {
                let pieces = deltas(&input.to_string());
                let pieces = pieces.iter().map(|json| json!({ "type": "input_json_delta", "partial_json": json }));
                let start = json!({ "type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {} });
                (start, pieces.collect())
            }
        };
        named(&mut body, json!({ "type": "content_block_start", "index": index, "content_block": block }));
        for delta in deltas {
            named(&mut body, json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        named(&mut body, json!({ "type": "content_block_stop", "index": index }));
    }
    let reason = if calls(parts) { "tool_use" } else { "end_turn" };
    named(
        &mut body,
        json!({
            "type": "message_delta",
            "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": 20 },
        }),
    );
    named(&mut body, json!({ "type": "message_stop" }));
    body
}

fn openai(parts: &[Part], input_tokens: u64) -> String {
    let mut body = String::new();
    let mut output = Vec::new();
    named(
        &mut body,
        json!({ "type": "response.created", "response": { "id": "resp_1", "model": "gpt-test", "status": "in_progress" } }),
    );
    for (index, part) in parts.iter().enumerate() {
        let (added, stream, done): (Value, Vec<Value>, Value) = match part {
            Part::Thinking(text) => (
                json!({ "type": "reasoning", "id": format!("rs_{index}"), "summary": [] }),
                deltas(text)
                    .iter()
                    .map(|delta| {
                        json!({
                            "type": "response.reasoning_summary_text.delta",
                            "output_index": index, "summary_index": 0, "delta": delta,
                        })
                    })
                    .collect(),
                json!({
                    "type": "reasoning", "id": format!("rs_{index}"), "encrypted_content": "ZW5jcnlwdGVk",
                    "summary": [{ "type": "summary_text", "text": text }],
                }),
            ),
            Part::Text(text) => (
                json!({ "type": "message", "id": format!("msg_{index}"), "role": "assistant", "content": [] }),
                deltas(text)
                    .iter()
                    .map(|delta| {
                        json!({
                            "type": "response.output_text.delta",
                            "output_index": index, "content_index": 0, "delta": delta,
                        })
                    })
                    .collect(),
                json!({
                    "type": "message", "id": format!("msg_{index}"), "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "text": text, "annotations": [] }],
                }),
            ),
            Part::Call { name, input } => {
                let call = |arguments: String| {
                    json!({
                        "type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_x{index}"),
                        "name": name, "arguments": arguments,
                    })
                };
                let json = input.to_string();
                let mut stream: Vec<Value> = deltas(&json)
                    .iter()
                    .map(|delta| {
                        json!({
                            "type": "response.function_call_arguments.delta", "output_index": index, "delta": delta,
                        })
                    })
                    .collect();
                stream.push(json!({
                    "type": "response.function_call_arguments.done", "output_index": index, "arguments": json,
                }));
                (call(String::new()), stream, call(json))
            }
        };
        named(&mut body, json!({ "type": "response.output_item.added", "output_index": index, "item": added }));
        stream.into_iter().for_each(|event| named(&mut body, event));
        named(&mut body, json!({ "type": "response.output_item.done", "output_index": index, "item": done }));
        output.push(done);
    }
    named(
        &mut body,
        json!({ "type": "response.completed", "response": {
            "id": "resp_1", "model": "gpt-test", "status": "completed", "output": output,
            "usage": {
                "input_tokens": input_tokens, "input_tokens_details": { "cached_tokens": 5 },
                "output_tokens": 20, "output_tokens_details": { "reasoning_tokens": 4 },
                "total_tokens": input_tokens + 20,
            },
        } }),
    );
    body
}

fn openai_chat(parts: &[Part], input_tokens: u64) -> String {
    let mut body = String::new();
    let mut chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "chat-test",
            "choices": choices, "usage": usage,
        });
        let _ = write!(body, "data: {chunk}\n\n");
    };
    let mut delta = |delta: Value, reason: Option<&str>| {
        chunk(json!([{ "index": 0, "delta": delta, "finish_reason": reason }]), Value::Null);
    };
    delta(json!({ "role": "assistant", "content": "" }), None);
    let mut number = 0;
    for part in parts {
        match part {
            Part::Thinking(text) => {
                deltas(text).iter().for_each(|text| delta(json!({ "reasoning_content": text }), None));
            }
            Part::Text(text) => deltas(text).iter().for_each(|text| delta(json!({ "content": text }), None)),
            Part::Call { name, input } => {
                let function = json!({ "name": name, "arguments": "" });
                let id = format!("chatcmpl-tool-{number}");
                let start = json!({ "index": number, "id": id, "type": "function", "function": function });
                delta(json!({ "tool_calls": [start] }), None);
                for json in deltas(&input.to_string()) {
                    let more = json!({ "index": number, "function": { "arguments": json } });
                    delta(json!({ "tool_calls": [more] }), None);
                }
                number += 1;
            }
        }
    }
    delta(json!({}), Some(if calls(parts) { "tool_calls" } else { "stop" }));
    chunk(
        json!([]),
        json!({
            "prompt_tokens": input_tokens, "completion_tokens": 20, "total_tokens": input_tokens + 20,
            "prompt_tokens_details": { "cached_tokens": 5 },
        }),
    );
    body.push_str("data: [DONE]\n\n");
    body
}

fn gemini(parts: &[Part], input_tokens: u64) -> String {
    let mut body = String::new();
    let mut chunk = |parts: Vec<Value>, reason: Option<&str>| {
        let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
        if let Some(reason) = reason {
            candidate["finishReason"] = json!(reason);
        }
        let chunk = json!({
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": input_tokens, "cachedContentTokenCount": 5, "candidatesTokenCount": 16,
                "thoughtsTokenCount": 4, "totalTokenCount": input_tokens + 20,
            },
            "modelVersion": "gemini-test",
        });
        let _ = write!(body, "data: {chunk}\r\n\r\n");
    };
    for part in parts {
        match part {
            Part::Thinking(text) => {
                deltas(text).iter().for_each(|text| chunk(vec![json!({ "text": text, "thought": true })], None));
            }
            Part::Text(text) => deltas(text).iter().for_each(|text| chunk(vec![json!({ "text": text })], None)),
            Part::Call { name, input } => chunk(
                vec![json!({ "functionCall": { "name": name, "args": input }, "thoughtSignature": "c2lnbmVk" })],
                None,
            ),
        }
    }
    chunk(vec![json!({ "text": "" })], Some("STOP"));
    body
}
