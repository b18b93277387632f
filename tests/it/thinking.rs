//! Thinking from the user's choice to the bytes on every wire.

use cocode::protocol::{Answer, Event, Op, Thinking, ThinkingInfo};
use cocode::provider::settings::WireName;
use cocode::thinking::{Level, Source};
use serde_json::{Value, json};

use crate::support::fake_api::{FakeApi, MODELS, Received, Reply};
use crate::support::harness::{Harness, Ran};

/// A harness that asks `model` at the fake server, over one wire.
fn over(harness: Harness, api: &FakeApi, wire: WireName, model: &str) -> Harness {
    harness.set(&format!("model = 'fake/{model}'\n{}", provider("fake", api, wire)))
}

fn provider(name: &str, api: &FakeApi, wire: WireName) -> String {
    let wire_name = serde_json::to_value(wire).unwrap();
    format!("[providers.{name}]\nwire = {wire_name}\nbase_url = '{}'\n", api.base_url(wire))
}

/// What a request says of thinking, whatever the wire.
fn thinking(request: &Received) -> Value {
    let body = &request.body;
    let mut found = serde_json::Map::new();
    for key in ["thinking", "output_config", "reasoning", "reasoning_effort", "chat_template_kwargs"] {
        if let Some(value) = body.get(key) {
            found.insert(key.into(), value.clone());
        }
    }
    if let Some(config) = body.pointer("/generationConfig/thinkingConfig") {
        found.insert("thinkingConfig".into(), config.clone());
    }
    Value::Object(found)
}

fn levels(ran: &Ran) -> Vec<ThinkingInfo> {
    let info = |event: &Event| match event {
        Event::Thinking(Thinking::Level(info)) => Some(info.clone()),
        _ => None,
    };
    ran.events.iter().filter_map(info).collect()
}

/// For each wire and style: the bodies for no choice and for each level.
#[tokio::test]
async fn every_level_over_every_wire_and_style() {
    async fn check(wire: WireName, model: &str, models: &str, want: [Value; 4]) {
        for (flag, want) in [None, Some("none"), Some("deep"), Some("ultra")].into_iter().zip(want) {
            let api = FakeApi::start([Reply::turn().text("Yes.")]);
            let mut harness = over(Harness::new(), &api, wire, model).prompt("hi");
            if !models.is_empty() {
                harness = harness.set(models);
            }
            if let Some(flag) = flag {
                harness = harness.thinking(flag);
            }
            let ran = harness.run().await;
            api.assert_clean();
            let received = api.received();
            assert_eq!(received.len(), 1, "{}", ran.trace());
            assert_eq!(thinking(&received[0]), want, "{model} over {wire:?} with {flag:?}");
            // The budget leaves room for an answer.
            let body = &received[0].body;
            if let Some(budget) = body.pointer("/thinking/budget_tokens").and_then(Value::as_u64) {
                assert!(budget + 1_024 <= body["max_tokens"].as_u64().unwrap());
            }
        }
    }
    use WireName::{Anthropic, Gemini, Openai, OpenaiChat};
    let enabled = |budget: u32| json!({ "thinking": { "type": "enabled", "budget_tokens": budget } });
    let disabled = || json!({ "thinking": { "type": "disabled" } });
    check(Anthropic, "claude-haiku-4-5", "", [json!({}), disabled(), enabled(16_000), enabled(32_000)]).await;
    check(Anthropic, "claude-opus-4-1", "", [json!({}), disabled(), enabled(16_000), enabled(30_976)]).await;
    let adaptive = |effort: &str| json!({ "thinking": { "type": "adaptive", "display": "summarized" }, "output_config": { "effort": effort } });
    check(Anthropic, "claude-opus-5", "", [json!({}), disabled(), adaptive("high"), adaptive("xhigh")]).await;
    check(Anthropic, "claude-unheard-of", "", [json!({}), disabled(), adaptive("high"), adaptive("high")]).await;

    let reasoning = |effort: &str| json!({ "reasoning": { "effort": effort, "summary": "auto" } });
    let unsaid = || json!({ "reasoning": { "summary": "auto" } });
    let off = || json!({ "reasoning": { "effort": "none" } });
    check(Openai, "gpt-5.4", "", [unsaid(), off(), reasoning("high"), reasoning("xhigh")]).await;
    // A model of which the catalog says that it takes a budget: this wire has efforts only.
    let budget = "[models.gpt-budget]\nthinking = 'budget'\nmax_budget = 50000\nmax_output = 64000";
    check(Openai, "gpt-budget", budget, [unsaid(), unsaid(), reasoning("medium"), reasoning("high")]).await;
    check(Openai, "gpt-unheard-of", "", [json!({}), json!({}), reasoning("high"), reasoning("high")]).await;

    let effort = |effort: &str| json!({ "reasoning_effort": effort });
    check(OpenaiChat, "gpt-oss", "", [json!({}), json!({}), effort("high"), effort("high")]).await;
    let tokens = |tokens: u32| json!({ "reasoning": { "max_tokens": tokens } });
    let router =
        "[models.routed]\nthinking = 'budget'\nmax_budget = 20000\nmax_output = 64000\nthinking_param = 'reasoning'";
    let refused = json!({ "reasoning": { "enabled": false } });
    check(OpenaiChat, "routed", router, [json!({}), refused, tokens(16_000), tokens(20_000)]).await;
    let enable = |yes: bool| json!({ "chat_template_kwargs": { "enable_thinking": yes } });
    check(OpenaiChat, "qwen3:8b", "", [json!({}), enable(false), enable(true), enable(true)]).await;
    check(OpenaiChat, "unheard-of", "", [json!({}), json!({}), json!({}), json!({})]).await;

    let config = |config: Value| json!({ "thinkingConfig": config });
    let unsaid = || config(json!({ "includeThoughts": true }));
    let level = |level: &str| config(json!({ "thinkingLevel": level, "includeThoughts": true }));
    let low = |level: &str| config(json!({ "thinkingLevel": level }));
    let tokens = |tokens: u32| config(json!({ "thinkingBudget": tokens, "includeThoughts": true }));
    let none = config(json!({ "thinkingBudget": 0 }));
    check(Gemini, "gemini-3-flash-preview", "", [unsaid(), low("minimal"), level("medium"), level("high")]).await;
    check(Gemini, "gemini-unheard-of", "", [json!({}), low("low"), level("high"), level("high")]).await;
    check(Gemini, "gemini-2.5-flash", "", [unsaid(), none, tokens(16_000), tokens(24_576)]).await;
}

/// What has to come back as it was: thoughts with their signature, or an encrypted item.
fn opaque(wire: WireName) -> &'static str {
    match wire {
        WireName::Anthropic => "signature",
        WireName::Openai => "encrypted_content",
        WireName::OpenaiChat => "reasoning_content",
        WireName::Gemini => "thoughtSignature",
    }
}

/// Every value of a key, wherever it is.
fn values(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if name == key && value.is_string() {
                    found.push(value.as_str().unwrap().to_owned());
                }
                values(value, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values(item, key, found)),
        _ => {}
    }
}

#[tokio::test]
async fn signatures_come_back_in_tool_loops_and_go_to_nobody_else() {
    for (wire, model) in MODELS {
        let api = FakeApi::start([
            Reply::turn().thinking("Let me look: é日本 \"quoted\".").call("LS", json!({ "path": "." })),
            Reply::turn().thinking("And again.").call("LS", json!({ "path": "." })),
            Reply::turn().text("Done."),
            Reply::turn().text("Hello."),
        ]);
        api.allow_other_prefix();
        let ran = over(Harness::new(), &api, wire, model)
            .set(&format!("{}{}", provider("fake", &api, wire), provider("other", &api, wire)))
            .thinking("deep")
            .prompt("go")
            .prompt(&format!("/model other/{model}"))
            .prompt("who are you?")
            .run()
            .await;
        api.assert_clean();
        let received = api.received();
        assert_eq!(received.len(), 4, "{wire:?}: {}", ran.trace());
        let sent: Vec<Vec<String>> = received
            .iter()
            .map(|request| {
                let mut found = Vec::new();
                values(&request.body, opaque(wire), &mut found);
                found
            })
            .collect();
        assert_eq!((sent[0].len(), sent[1].len(), sent[2].len()), (0, 1, 2), "{wire:?}: {sent:?}");
        assert_eq!(sent[1][0], sent[2][0], "{wire:?}");
        // What the server had said, as the log keeps it, byte for byte.
        let log = std::fs::read_to_string(ran.log()).unwrap();
        for opaque in &sent[2] {
            assert!(log.contains(serde_json::to_string(opaque).unwrap().trim_matches('"')), "{wire:?}: {opaque}");
        }
        // The same model at another provider: the signatures are not that one's.
        let foreign: Vec<&String> = sent[3].iter().filter(|value| sent[2].contains(value)).collect();
        assert!(foreign.is_empty(), "{wire:?}: {foreign:?}");
        assert!(!received[3].raw.contains("And again."), "{wire:?}");
    }
}

#[tokio::test]
async fn a_change_during_a_turn_waits_where_the_wire_refuses_it() {
    async fn check(model: &str, want: [Value; 3]) {
        let api = FakeApi::start([
            Reply::turn().call("Bash", json!({ "command": "touch x" })),
            Reply::turn().text("Done."),
            Reply::turn().text("Hello."),
        ]);
        api.allow_other_prefix();
        let ran = over(Harness::new(), &api, WireName::Anthropic, model)
            .prompt("go")
            .answer(Answer::Yes)
            .at("ask Bash", Op::SetThinking { level: Some(Level::DeepThink) })
            .prompt("and now?")
            .run()
            .await;
        api.assert_clean();
        assert_eq!(api.received().iter().map(thinking).collect::<Vec<_>>(), want, "{model}: {}", ran.trace());
        // The front ends were told while the call ran.
        let told = ran.events.iter().rposition(
            |event| matches!(event, Event::Thinking(Thinking::Level(info)) if info.session == Some(Level::DeepThink)),
        );
        let ended =
            ran.events.iter().position(|event| matches!(event, Event::Turn(cocode::protocol::Turn::Ended { .. })));
        assert!(told < ended, "{}", ran.trace());
    }
    let deep = json!({ "thinking": { "type": "enabled", "budget_tokens": 16_000 } });
    check("claude-haiku-4-5", [json!({}), json!({}), deep]).await;
    let adaptive = json!({
        "thinking": { "type": "adaptive", "display": "summarized" }, "output_config": { "effort": "high" },
    });
    check("claude-opus-5", [json!({}), adaptive.clone(), adaptive]).await;
}

/// Effort of each request to a model that knows efforts.
fn efforts(api: &FakeApi) -> Vec<String> {
    let effort =
        |request: &Received| request.body.pointer("/reasoning/effort").and_then(Value::as_str).map(str::to_owned);
    api.received().iter().map(|request| effort(request).unwrap_or_default()).collect()
}

#[tokio::test]
async fn a_keyword_counts_for_its_message() {
    let text = || Reply::turn().text("Yes.");
    let call = Reply::turn().call("LS", json!({ "path": "." }));
    let api = FakeApi::start([text(), call, text(), text(), text(), text()]);
    api.allow_other_prefix();
    over(Harness::new(), &api, WireName::Openai, "gpt-5.4")
        .prompt("hi")
        .prompt("please Ultrathink")
        .prompt("and `ultrathink`?")
        .prompt("请deepthink一下")
        .prompt("ultrathinking is not a word")
        .run()
        .await;
    api.assert_clean();
    assert_eq!(efforts(&api), ["", "xhigh", "xhigh", "", "high", ""]);
    let said = api.received()[1].raw.contains("please Ultrathink");
    assert!(said, "the word stays in the message");
}

#[tokio::test]
async fn the_interleaved_header_is_asked_for() {
    async fn check(model: &str, set: &str, want: Option<&str>) {
        let api = FakeApi::start([Reply::turn().text("Yes.")]);
        over(Harness::new(), &api, WireName::Anthropic, model).set(set).thinking("deep").prompt("hi").run().await;
        let received = api.received();
        let header = received[0].headers.get("anthropic-beta").map(|value| value.to_str().unwrap());
        assert_eq!(header, want, "{model} {set}");
    }
    check("claude-haiku-4-5", "", None).await;
    check("claude-haiku-4-5", "thinking.interleaved = true", Some("interleaved-thinking-2025-05-14")).await;
    check("claude-opus-5", "thinking.interleaved = true", None).await;
}

#[tokio::test]
async fn the_session_remembers_its_level() {
    let api = FakeApi::start((0..4).map(|_| Reply::turn().text("Yes.")));
    api.allow_other_prefix();
    let on = |harness: Harness| over(harness, &api, WireName::Openai, "gpt-5.4");
    let ran = on(Harness::new()).prompt("/thinking ultra").prompt("one").run().await;
    let set = levels(&ran).pop().unwrap();
    assert_eq!((set.level, set.source, set.session), (Level::UltraThink, Source::Session, Some(Level::UltraThink)));
    let ran = on(Harness::after(ran)).prompt("two").prompt("/effort low").prompt("three").run().await;
    let ran = on(Harness::after(ran)).prompt("/thinking auto").prompt("four").run().await;
    assert_eq!(efforts(&api), ["xhigh", "xhigh", "none", ""]);
    assert_eq!(levels(&ran).pop().unwrap().source, Source::Default);
}

#[tokio::test]
async fn the_command_says_what_holds_and_why() {
    async fn check(setup: impl FnOnce(Harness) -> Harness, command: &str, want: &str) {
        let ran = setup(Harness::new().script("- reply:\n  - text: unused")).prompt(command).run().await;
        let told = ran.trace();
        let told: Vec<&str> =
            told.lines().filter(|line| line.starts_with("notice") || line.starts_with("error")).collect();
        let told = told.join("\n");
        assert!(told.contains(want), "{command}: {told}");
    }
    check(|run| run, "/thinking", "Thinking: **none**.⏎⏎This model supports `none`, `deep`, `ultra`.").await;
    check(|run| run, "/thinking deep", "Thinking: **deep**, chosen for this session").await;
    check(|run| run, "/effort max", "**ultra**").await;
    check(|run| run, "/effort medium", "**deep**").await;
    check(|run| run, "/effort low", "**none**, chosen for this session").await;
    check(|run| run, "/thinking hard", "error no thinking level \"hard\": choose none, deep or ultra, or auto").await;
    check(|run| run.thinking("deep:9000"), "/thinking", "**deep**, chosen by `--thinking`").await;
    check(|run| run.set("thinking.default_level = 'deep'"), "/thinking", "by the setting `thinking.default_level`")
        .await;
    check(|run| run.set("thinking.auto_enable = true"), "/thinking", "**deep**, chosen as the default of this model")
        .await;
    check(|run| run.env("COCODE_THINKING_LEVEL", "deep"), "/thinking", "chosen by COCODE_THINKING_LEVEL").await;
    check(
        |run| run.env("COCODE_MAX_THINKING_TOKENS", "0"),
        "/thinking",
        "**none**, chosen by COCODE_MAX_THINKING_TOKENS",
    )
    .await;
    check(
        |run| run.env("COCODE_THINKING_LEVEL", "deep"),
        "/thinking ultra",
        "error The level is locked by COCODE_THINKING_LEVEL",
    )
    .await;
}
