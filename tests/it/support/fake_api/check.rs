//! What every request must keep to, or the real server would refuse it.

use cocode::provider::settings::WireName;
use serde_json::Value;

use super::Received;

/// Everything that is wrong with a request.
pub(super) fn request(received: &Received) -> Vec<String> {
    let body = &received.body;
    let mut problems = Vec::new();
    // One document for another: nothing is streamed, and nothing could be stored.
    let compacts = received.path.ends_with("/compact");
    let header = |name: &str| received.headers.contains_key(name);
    match received.wire {
        WireName::Anthropic => {
            if !header("anthropic-version") {
                problems.push("no anthropic-version".to_string());
            }
            if body["max_tokens"].as_u64().is_none_or(|max| max == 0) {
                problems.push("no max_tokens".to_string());
            }
            let marks = received.raw.matches("\"cache_control\"").count();
            if marks > 4 {
                problems.push(format!("{marks} cache breakpoints, 4 are allowed"));
            }
            alternate(list(body, "messages"), &mut problems);
            anthropic(list(body, "messages"), &mut problems);
        }
        WireName::Openai => {
            if body["store"] != false && !compacts {
                problems.push("store is not false".to_string());
            }
            openai(list(body, "input"), &mut problems);
        }
        WireName::OpenaiChat => openai_chat(list(body, "messages"), &mut problems),
        WireName::Gemini => {
            if !received.path.ends_with("?alt=sse") {
                problems.push("no alt=sse".to_string());
            }
            alternate(list(body, "contents"), &mut problems);
            gemini(list(body, "contents"), &mut problems);
        }
    }
    if received.wire != WireName::Gemini && !compacts && body["stream"] != true {
        problems.push("stream is not true".to_string());
    }
    if received.raw.contains("\"text\":\"\"") {
        problems.push("an empty text".to_string());
    }
    problems
}

/// A longer conversation begins with the bytes of the shorter, but for its cache breakpoints and closing brackets.
pub(super) fn prefix(before: &Received, after: &Received) -> Option<String> {
    let plain = |raw: &str| raw.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
    let (before, after) = (plain(&before.raw), plain(&after.raw));
    let before = before.trim_end_matches(['}', ']', '"']);
    if after.starts_with(before) {
        return None;
    }
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let tail = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[same.saturating_sub(40)..(same + 80).min(text.len())]).into_owned()
    };
    Some(format!("the prefix changed at byte {same}:\n- {}\n+ {}", tail(before), tail(&after)))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn alternate(messages: &[Value], problems: &mut Vec<String>) {
    if messages.first().is_none_or(|first| first["role"] != "user") {
        problems.push("the first message is not the user's".to_string());
    }
    for (at, pair) in messages.windows(2).enumerate() {
        if pair[0]["role"] == pair[1]["role"] {
            problems.push(format!("messages {at} and {} have one role", at + 1));
        }
    }
}

fn compare(asked: &[&str], answered: &[&str], place: usize, problems: &mut Vec<String>) {
    if asked != answered {
        problems.push(format!("calls {asked:?} before message {place} are answered by {answered:?}"));
    }
}

/// The ids of the blocks of one type.
fn ids<'a>(blocks: &'a [Value], kind: &str, key: &str) -> Vec<&'a str> {
    blocks.iter().filter(|block| block["type"] == kind).filter_map(|block| block[key].as_str()).collect()
}

fn anthropic(messages: &[Value], problems: &mut Vec<String>) {
    let mut asked: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let content = list(message, "content");
        if content.is_empty() {
            problems.push(format!("message {at} is empty"));
        }
        if message["role"] == "assistant" {
            asked = ids(content, "tool_use", "id");
            if content.last().is_some_and(|last| last["type"] == "thinking") {
                problems.push(format!("message {at} ends in thinking"));
            }
            continue;
        }
        compare(&asked, &ids(content, "tool_result", "tool_use_id"), at, problems);
        asked = Vec::new();
        let first_other = content.iter().position(|block| block["type"] != "tool_result").unwrap_or(content.len());
        if content[first_other..].iter().any(|block| block["type"] == "tool_result") {
            problems.push(format!("a result comes after other content in message {at}"));
        }
    }
    compare(&asked, &[], messages.len(), problems);
}

fn openai(items: &[Value], problems: &mut Vec<String>) {
    let (mut asked, mut answered): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (at, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or_default() {
            "function_call" => asked.push(id),
            "function_call_output" => answered.push(id),
            "message" if item["role"] == "user" => {
                compare(&asked, &answered, at, problems);
                (asked, answered) = (Vec::new(), Vec::new());
            }
            "reasoning" if !items.get(at + 1).is_some_and(|next| next["role"] != "user") => {
                problems.push(format!("item {at} is reasoning that leads to nothing"));
            }
            "message" | "reasoning" | "compaction" => {}
            kind => problems.push(format!("item {at} is of type {kind:?}")),
        }
    }
    compare(&asked, &answered, items.len(), problems);
}

fn openai_chat(messages: &[Value], problems: &mut Vec<String>) {
    let (mut asked, mut answered): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            answered.push(message["tool_call_id"].as_str().unwrap_or_default());
            continue;
        }
        compare(&asked, &answered, at, problems);
        asked = list(message, "tool_calls").iter().filter_map(|call| call["id"].as_str()).collect();
        answered = Vec::new();
        if message["role"] == "assistant" && message["content"].is_null() && asked.is_empty() {
            problems.push(format!("message {at} is empty"));
        }
    }
    compare(&asked, &answered, messages.len(), problems);
}

fn gemini(contents: &[Value], problems: &mut Vec<String>) {
    let mut asked: Vec<&str> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let parts = list(content, "parts");
        if parts.is_empty() {
            problems.push(format!("content {at} is empty"));
        }
        let names = |key: &str| parts.iter().filter_map(|part| part[key]["id"].as_str()).collect::<Vec<&str>>();
        if content["role"] == "model" {
            asked = names("functionCall");
        } else {
            compare(&asked, &names("functionResponse"), at, problems);
            asked = Vec::new();
        }
    }
    compare(&asked, &[], contents.len(), problems);
}
