//! What a conversation with a bit of everything looks like on each wire, and that it only ever grows at its end.

use std::sync::Arc;

use cocode::message::{
    BlobId, Block, CallId, Content, Media, Message, Outcome, StopReason, ToolCall, ToolResult, Wire,
};
use cocode::provider::catalog::Catalog;
use cocode::provider::codec::{CodecSettings, codec};
use cocode::provider::settings::WireName;
use cocode::provider::{Request, Thinking, WebSearch};
use serde_json::{Value, json};

use super::{WIRES, model, request};

fn encode(wire: WireName, request: &Request) -> String {
    let settings = CodecSettings::from(&Catalog::builtin().get(wire, &request.model));
    String::from_utf8(codec(wire).encode(request, &settings).body).unwrap()
}

fn media(media_type: &str, blob: &str) -> Media {
    Media { media_type: media_type.into(), blob: BlobId(blob.into()), bytes: 3 }
}

fn call(n: u64, name: &str, input: Value, wire: Option<Wire>) -> Block {
    Block::ToolCall(ToolCall { wire, ..ToolCall::new(CallId::nth(n), name, input) })
}

/// Thinking as the wire itself would have signed it.
fn signed(wire: WireName, model: &str) -> Block {
    let data = match wire {
        WireName::Anthropic => json!({ "signature": "c2ln" }),
        WireName::Openai => json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j" }),
        WireName::OpenaiChat => json!({ "field": "reasoning_content" }),
        WireName::Gemini => json!({ "thoughtSignature": "c2ln" }),
    };
    let wire = Wire { wire: codec(wire).name().into(), model: model.into(), data };
    Block::Thinking { text: "Let me look.".into(), wire: Some(wire) }
}

fn conversation(wire: WireName) -> Vec<Message> {
    let mut prompt = Message::prompt("What is this?");
    prompt.blocks.push(Block::Media(media("image/png", "stored")));
    prompt.blocks.push(Block::Media(media("application/pdf", "gone")));
    let picture = ToolResult {
        content: vec![Content::text("a.png"), Content::Media(media("image/png", "stored"))],
        ..ToolResult::of_text(CallId::nth(1), Outcome::Ok, "")
    };
    let denied = ToolResult::of_text(CallId::nth(2), Outcome::Denied, "The user said no.");
    let empty = ToolResult { content: vec![], ..ToolResult::of_text(CallId::nth(3), Outcome::Ok, "") };
    let foreign = WIRES.into_iter().find(|other| *other != wire).unwrap();
    let interrupted = Message {
        stop: Some(StopReason::Interrupted),
        ..Message::reply(vec![Block::text("I wa"), signed(wire, model(wire))])
    };
    vec![
        Message::reminder("Today is Saturday."),
        prompt,
        Message::reply(vec![
            signed(wire, model(wire)),
            Block::text("Looking."),
            call(1, "Read", json!({ "path": "a.png" }), None),
            call(2, "no such: tool!", json!({}), None),
        ]),
        Message::tool_results(vec![picture, denied]),
        Message::notice("Only the user sees this."),
        Message::reminder("A file changed."),
        Message::reply(vec![signed(foreign, model(foreign)), signed(wire, "another-model"), Block::text("A cat.")]),
        Message::prompt("And now?"),
        interrupted,
        Message::prompt("Continue"),
        Message::reply(vec![call(3, "LS", json!({}), None)]),
        Message::tool_results(vec![empty]),
        Message::reply(vec![Block::text("Done."), Block::text("")]),
        Message::prompt("Thanks"),
    ]
}

fn full(wire: WireName, messages: &[Message]) -> Request {
    let mut request = Arc::unwrap_or_clone(request(wire, messages));
    request.media.insert(BlobId("stored".into()), "aW1n".into());
    request
}

#[test]
fn a_bit_of_everything() {
    for wire in WIRES {
        let body: Value = serde_json::from_str(&encode(wire, &full(wire, &conversation(wire)))).unwrap();
        let text = serde_json::to_string_pretty(&body).unwrap();
        assert!(!text.contains("Only the user") && !text.contains("\"text\": \"\""), "{text}");
        insta::assert_snapshot!(codec(wire).name(), text);
    }
}

#[test]
fn a_longer_conversation_begins_with_the_bytes_of_the_shorter() {
    for wire in WIRES {
        let messages = conversation(wire);
        let ends: Vec<usize> = (1..=messages.len()).filter(|end| messages[end - 1].agent_visible).collect();
        let plain = |end: usize| {
            let body = encode(wire, &full(wire, &messages[..end]));
            body.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
        };
        for pair in ends.windows(2) {
            // Within one reply's results the media stand behind the texts.
            let before = plain(pair[0]);
            let before = before.trim_end_matches(['}', ']', '"']);
            let after = plain(pair[1]);
            let grows = after.starts_with(before);
            // A reply that is not yet answered, and a first reminder alone, are never sent.
            let sent = messages[pair[0] - 1].role == cocode::message::Role::User && pair[0] > 1;
            assert!(grows || !sent, "{wire:?} at {}:\n{before}\n{after}", pair[1]);
        }
        assert_eq!(plain(messages.len()), plain(messages.len()));
    }
}

#[test]
fn what_stays_before_the_next_clearing_is_marked() {
    let mut messages = vec![Message::prompt("go")];
    for n in 1..=5 {
        messages.push(Message::reply(vec![call(n, "LS", json!({}), None)]));
        messages.push(Message::tool_results(vec![ToolResult::of_text(CallId::nth(n), Outcome::Ok, "x")]));
    }
    let check = |system: &str, frontier: Option<u64>, want: &[usize]| {
        let mut request = full(WireName::Anthropic, &messages);
        (request.system, request.frontier) = (system.into(), frontier.map(CallId::nth));
        let body: Value = serde_json::from_str(&encode(WireName::Anthropic, &request)).unwrap();
        let turns = body["messages"].as_array().unwrap();
        let marked = |at: &usize| turns[*at].to_string().contains("cache_control");
        assert_eq!((0..turns.len()).filter(marked).collect::<Vec<_>>(), want, "{frontier:?}");
        // Four are allowed; one is that of system prompt and tools.
        assert_eq!(body.to_string().matches("cache_control").count(), want.len() + 1, "{system:?}");
    };
    check("Be brief.", None, &[8, 10]);
    check("Be brief.", Some(1), &[0, 8, 10]);
    check("Be brief.", Some(3), &[4, 8, 10]);
    check("Be brief.", Some(5), &[8, 10]);
    check("", Some(3), &[4, 8, 10]);
}

#[test]
fn thinking_in_each_wires_words() {
    let check = |wire: WireName, id: &str, thinking: Thinking, want: Value| {
        let mut request = full(wire, &[Message::prompt("hi")]);
        (request.model, request.thinking) = (id.into(), thinking.clone());
        let body: Value = serde_json::from_str(&encode(wire, &request)).unwrap();
        let fields = ["thinking", "output_config", "reasoning", "reasoning_effort", "chat_template_kwargs"];
        let found =
            fields.iter().filter(|key| body.get(**key).is_some()).map(|key| (key.to_string(), body[*key].clone()));
        let config =
            body.pointer("/generationConfig/thinkingConfig").map(|config| ("config".to_string(), config.clone()));
        let got: serde_json::Map<String, Value> = found.chain(config).collect();
        assert_eq!(Value::Object(got), want, "{id} {thinking:?}");
    };
    let effort = |effort: &str| Thinking::Effort(effort.into());
    let adaptive = || Thinking::Adaptive { effort: Some("high".into()) };
    use WireName::{Anthropic, Gemini, Openai, OpenaiChat};
    check(Anthropic, "claude-haiku-4-5", Thinking::Unset, json!({}));
    check(Anthropic, "claude-haiku-4-5", Thinking::Off, json!({ "thinking": { "type": "disabled" } }));
    check(
        Anthropic,
        "claude-haiku-4-5",
        Thinking::Budget(2_000),
        json!({ "thinking": { "type": "enabled", "budget_tokens": 2_000 } }),
    );
    // The budget has to stay below the limit of the answer.
    check(
        Anthropic,
        "claude-haiku-4-5",
        Thinking::Budget(9_999),
        json!({ "thinking": { "type": "enabled", "budget_tokens": 3_072 } }),
    );
    check(
        Anthropic,
        "claude-sonnet-5",
        adaptive(),
        json!({ "thinking": { "type": "adaptive", "display": "summarized" }, "output_config": { "effort": "high" } }),
    );
    check(Openai, "gpt-5.4", effort("xhigh"), json!({ "reasoning": { "effort": "xhigh", "summary": "auto" } }));
    check(Openai, "gpt-5.4", Thinking::Off, json!({ "reasoning": { "effort": "none" } }));
    check(Openai, "gpt-4.1", effort("high"), json!({}));
    check(OpenaiChat, "unheard-of", effort("high"), json!({}));
    check(OpenaiChat, "gpt-oss:20b", effort("high"), json!({ "reasoning_effort": "high" }));
    check(OpenaiChat, "qwen3:8b", Thinking::Off, json!({ "chat_template_kwargs": { "enable_thinking": false } }));
    check(
        Gemini,
        "gemini-3-flash-preview",
        effort("high"),
        json!({ "config": { "thinkingLevel": "high", "includeThoughts": true } }),
    );
    check(Gemini, "gemini-3-flash-preview", Thinking::Off, json!({ "config": { "thinkingLevel": "minimal" } }));
    check(
        Gemini,
        "gemini-2.5-flash",
        Thinking::Budget(900),
        json!({ "config": { "thinkingBudget": 900, "includeThoughts": true } }),
    );
}

#[test]
fn web_search_replaces_the_tools() {
    let check = |wire: WireName, want: Value| {
        let mut request = full(wire, &[Message::prompt("hi")]);
        request.web_search = Some(WebSearch { allowed_domains: vec!["rust-lang.org".into()], blocked_domains: vec![] });
        let body: Value = serde_json::from_str(&encode(wire, &request)).unwrap();
        assert_eq!(body["tools"], want, "{wire:?}");
    };
    let anthropic = json!({ "type": "web_search_20250305", "name": "web_search", "max_uses": 5, "allowed_domains": ["rust-lang.org"] });
    check(WireName::Anthropic, json!([anthropic]));
    check(WireName::Openai, json!([{ "type": "web_search", "filters": { "allowed_domains": ["rust-lang.org"] } }]));
    check(WireName::OpenaiChat, Value::Null);
    check(WireName::Gemini, json!([{ "google_search": {} }]));
}
