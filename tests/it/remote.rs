//! The provider's own compaction: opaque items in the place of the conversation, on its wire alone.

use cocode::protocol::{Compaction, Event};
use cocode::provider::settings::WireName;
use serde_json::json;

use super::notes::{layout, over};
use super::support::fake_api::{FakeApi, Reply};
use super::support::harness::{Harness, Ran};

const SETTINGS: &str = "features = { remote_compaction = true, session_memory = false }\ncompact = { keep_recent_tokens = 0, min_messages_before_compact = 2, fallback_context_window = 200000 }\nskills = { list_budget = 0 }";

/// As the server answers: what the user said, and one item that only it can read.
fn compacted() -> Reply {
    let output = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first"}]},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "b3BhcXVlIMO8YmVyIGFsbGVz"},
    ]);
    let usage = json!({"input_tokens": 900, "input_tokens_details": {"cached_tokens": 800}, "output_tokens": 50});
    let body = json!({"id": "resp_1", "object": "response.compaction", "output": output, "usage": usage});
    Reply::raw(200, "application/json", &body.to_string())
}

fn tiers(run: &Ran) -> Vec<String> {
    let tier = |event: &Event| match event {
        Event::Compaction(Compaction::Completed { receipt, .. }) => Some(receipt.tier.clone()),
        _ => None,
    };
    run.events.iter().filter_map(tier).collect()
}

async fn run(wire: WireName, api: &FakeApi) -> Ran {
    api.allow_other_prefix();
    let long = format!("first {}", "word ".repeat(400));
    let run = over(Harness::new(), wire, api, SETTINGS).prompt(&long).prompt("/compact").prompt("second").run().await;
    api.assert_clean();
    run
}

#[tokio::test]
async fn the_servers_items_take_the_place_of_the_conversation() {
    let api = FakeApi::start([
        Reply::turn().thinking("Hm.").text("One.").input(17_000),
        compacted(),
        Reply::turn().text("Two."),
    ]);
    let ran = run(WireName::Openai, &api).await;
    assert_eq!(tiers(&ran), ["remote"], "{}", ran.trace());
    let received = api.received();
    assert_eq!(received[1].path, "/v1/responses/compact");
    let fields: Vec<&String> = received[1].body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["model", "instructions", "prompt_cache_key", "input"]);
    insta::assert_snapshot!(format!(
        "compact\n{}\nafterwards\n{}",
        layout(&received[1].body),
        layout(&received[2].body)
    ));
    let item = r#"{"type":"compaction","id":"cmp_1","encrypted_content":"b3BhcXVlIMO8YmVyIGFsbGVz"}"#;
    assert!(received[2].raw.contains(item), "{}", received[2].raw);
    assert_eq!(ran.session().facts().spent[0].usage.cache_read, 800);
    // Nobody else sees the items: another provider reads what the user said.
    let api = FakeApi::start([Reply::turn().text("Three.")]);
    over(Harness::after(ran), WireName::Anthropic, &api, SETTINGS).prompt("third").run().await;
    let raw = &api.received()[0].raw;
    assert!(!raw.contains("cmp_1") && raw.contains("no other model can read") && raw.contains("first word"), "{raw}");
}

#[tokio::test]
async fn where_the_server_fails_the_model_is_asked() {
    let error = r#"{"error":{"message":"unknown endpoint"}}"#;
    let refusals = [
        Reply::raw(404, "application/json", error),
        Reply::raw(500, "application/json", error),
        Reply::raw(200, "application/json", r#"{"output":[]}"#),
        Reply::raw(200, "text/html", "<html>"),
        compacted().cut_after(40),
    ];
    for refusal in refusals {
        let summary = Reply::turn().text("<summary>All is well.</summary>");
        let api =
            FakeApi::start([Reply::turn().text("One.").input(15_000), refusal, summary, Reply::turn().text("Two.")]);
        let ran = run(WireName::Openai, &api).await;
        assert_eq!(tiers(&ran), ["full"], "{}", ran.trace());
    }
}

#[tokio::test]
async fn other_wires_offer_nothing_of_the_kind() {
    for wire in [WireName::Anthropic, WireName::OpenaiChat, WireName::Gemini] {
        let summary = Reply::turn().text("<summary>All is well.</summary>");
        let api = FakeApi::start([Reply::turn().text("One.").input(15_000), summary, Reply::turn().text("Two.")]);
        let ran = run(wire, &api).await;
        assert_eq!(tiers(&ran), ["full"], "{wire:?} {}", ran.trace());
    }
}

#[tokio::test]
async fn nobody_is_asked_for_it_unless_the_settings_say_so() {
    let summary = Reply::turn().text("<summary>All is well.</summary>");
    let api = FakeApi::start([Reply::turn().text("One.").input(15_000), summary]);
    let settings = SETTINGS.replace("remote_compaction = true, ", "");
    let long = format!("first {}", "word ".repeat(400));
    let ran = over(Harness::new(), WireName::Openai, &api, &settings).prompt(&long).prompt("/compact").run().await;
    api.assert_clean();
    assert_eq!(tiers(&ran), ["full"], "{}", ran.trace());
    assert!(api.received().iter().all(|received| received.path == "/v1/responses"));
}
