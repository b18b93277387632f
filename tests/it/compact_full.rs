//! The tier that asks a model: the exact requests on every wire, by the model in use and by a summarizer of its own.

use cocode::protocol::{Compaction, Event};
use cocode::provider::settings::WireName;
use serde_json::{Value, json};

use super::notes::{layout, over};
use super::support::fake_api::{FakeApi, Received, Reply};
use super::support::harness::{Harness, Ran};

const WIRES: [WireName; 4] = [WireName::Anthropic, WireName::Openai, WireName::OpenaiChat, WireName::Gemini];

/// Nothing but the summary, so that every message of a request is accounted for.
const SETTINGS: &str = "features = { session_memory = false }\nskills = { list_budget = 0 }\ncompact = { keep_recent_tokens = 0, fallback_context_window = 200000 }";

/// With another model, and provider, for summaries.
const OTHER: &str = "features = { session_memory = false }\nskills = { list_budget = 0 }\ncompact = { keep_recent_tokens = 0, fallback_context_window = 200000, summarization_model = 's-1', summarization_model_provider_id = 'y' }";

fn summary() -> Reply {
    Reply::turn().text("<analysis>a</analysis><summary>All is well.</summary>").input(9_000)
}

/// A read, an edit of the list, an answer: much of a window.
fn turns() -> Vec<Reply> {
    let todos = json!({"todos": [{"content": "write it", "activeForm": "writing it", "status": "in_progress"}]});
    vec![
        Reply::turn()
            .thinking("Let me look.")
            .call("Read", json!({"file_path": "a.txt"}))
            .call("Read", json!({"file_path": "c.txt"})),
        Reply::turn().text("I note it.").call("TodoWrite", todos),
        Reply::turn().text("One.").input(90_000),
    ]
}

fn talk(wire: WireName, api: &FakeApi, settings: &str) -> Harness {
    let big = format!("{}\n", "some words ".repeat(60)).repeat(20);
    let harness = Harness::new()
        .file("a.txt", &format!("first line\n{big}last line\n"))
        .file("c.txt", "small\n")
        .file("AGENTS.md", "Be brief.");
    over(harness, wire, api, settings).prompt("look at a.txt")
}

/// The same with a second provider, of the same server.
fn with_summarizer(wire: WireName, api: &FakeApi) -> Harness {
    let name = serde_json::to_value(wire).unwrap();
    let harness = talk(wire, api, OTHER);
    harness.set(&format!(
        "[providers.x]\nwire = {name}\nbase_url = '{0}'\n[providers.y]\nwire = {name}\nbase_url = '{0}'\n",
        api.base_url(wire)
    ))
}

/// What the model is told beside the messages: model, first words of the system prompt, tools, and thinking.
fn head(received: &Received) -> String {
    let body = &received.body;
    let system = [&body["system"], &body["instructions"], &body["systemInstruction"], &body["messages"][0]["content"]];
    let system = system.into_iter().find(|value| !value.is_null()).map_or(String::new(), Value::to_string);
    let system = system.find("You ").map_or("", |at| &system[at..]);
    let names = |list: &Value| {
        let name = |tool: &Value| {
            [&tool["name"], &tool["function"]["name"]].into_iter().find_map(|name| name.as_str().map(str::to_owned))
        };
        list.as_array().map(|tools| tools.iter().filter_map(name).collect::<Vec<_>>()).unwrap_or_default()
    };
    let tools = [names(&body["tools"]), names(&body["tools"][0]["functionDeclarations"])].concat();
    let tools = if tools.len() > 3 { vec![format!("{} tools", "all")] } else { tools };
    let thinks = ["thinking", "reasoning", "reasoning_effort"].iter().any(|key| {
        body.get(*key).is_some_and(|value| !value.is_null() && value["type"] != "disabled" && value["effort"] != "none")
    });
    let model = body["model"].as_str().unwrap_or_else(|| received.path.split(['/', ':']).nth(3).unwrap_or_default());
    format!("{model} | {} | {} | thinks: {thinks}", system.chars().take(32).collect::<String>(), tools.join(" "))
}

fn tiers(run: &Ran) -> Vec<String> {
    let tier = |event: &Event| match event {
        Event::Compaction(Compaction::Completed { receipt, .. }) => Some(receipt.tier.clone()),
        _ => None,
    };
    run.events.iter().filter_map(tier).collect()
}

/// What the next prompt is sent with.
async fn afterwards(run: Ran, wire: WireName) -> String {
    let (api, project) = (FakeApi::start([Reply::turn().text("Two.")]), run.project());
    over(Harness::after(run), wire, &api, SETTINGS).prompt("continue").run().await;
    api.assert_clean();
    layout(&api.received()[0].body).replace(project.to_string_lossy().as_ref(), "$P")
}

#[tokio::test]
async fn the_model_in_use_is_asked_as_ever() {
    let mut layouts = Vec::new();
    for wire in WIRES {
        let mut replies = turns();
        replies.push(summary());
        let api = FakeApi::start(replies);
        let run = talk(wire, &api, SETTINGS).prompt("/compact mind the tests").run().await;
        // The request begins with the bytes of the conversation's, so that its cache serves it.
        api.assert_clean();
        assert_eq!(tiers(&run), ["full"], "{wire:?} {}", run.trace());
        let received = api.received();
        let (turn, asked) = (&received[2], &received[3]);
        assert_eq!(head(turn), head(asked), "{wire:?}");
        assert!(asked.raw.contains("mind the tests") && asked.raw.contains("do not call tools"));
        let (asked, after) = (layout(&asked.body), afterwards(run, wire).await);
        layouts.push(format!("{wire:?}, asked\n{asked}\n{wire:?}, afterwards\n{after}"));
    }
    insta::assert_snapshot!(layouts.join("\n\n"));
}

#[tokio::test]
async fn a_summarizer_reads_an_excerpt() {
    let mut layouts = Vec::new();
    for wire in WIRES {
        let mut replies = turns();
        replies.push(
            Reply::turn()
                .thinking("Hm.")
                .call("Read", json!({"file_path": "b.txt"}))
                .call("Bash", json!({"command": "ls"})),
        );
        replies.push(summary());
        let api = FakeApi::start(replies);
        api.allow_other_prefix();
        let run = with_summarizer(wire, &api)
            .file("b.txt", "what was left out\n")
            .prompt("/compact mind the tests")
            .run()
            .await;
        api.assert_clean();
        assert_eq!(tiers(&run), ["full"], "{wire:?} {}", run.trace());
        let received = api.received();
        let asked = &received[4];
        // The conversation shows nothing of what was looked up.
        assert!(asked.raw.contains("what is missing") && asked.raw.contains("not available here"), "{}", asked.raw);
        assert!(asked.raw.contains("first line") && asked.raw.contains("characters omitted"), "{}", asked.raw);
        assert!(!run.trace().contains("b.txt"), "{}", run.trace());
        let spent: Vec<String> =
            run.session().facts().spent.iter().map(|spent| format!("{} {}", spent.what, spent.model)).collect();
        // A line for each request, as the budget of the next one needs it.
        assert_eq!(spent, ["summary y/s-1", "summary y/s-1"]);
        layouts.push(format!("{wire:?}: {}\n{}", head(asked), layout(&asked.body)));
    }
    insta::assert_snapshot!(layouts.join("\n\n"));
}

#[tokio::test]
async fn what_is_too_long_for_a_summary_loses_its_oldest_rounds() {
    let too_long = || {
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 214000 tokens > 200000 maximum"}});
        Reply::raw(400, "application/json", &error.to_string())
    };
    let replies = [
        Reply::turn().text("One."),
        Reply::turn().text("Two."),
        Reply::turn().text("Three.").input(90_000),
        // As the turn would ask, then an excerpt, then less and less of it.
        too_long(),
        too_long(),
        too_long(),
        summary(),
    ];
    let api = FakeApi::start(replies);
    api.allow_other_prefix();
    let run = over(Harness::new(), WireName::Anthropic, &api, SETTINGS)
        .prompt(&format!("first {}", "word ".repeat(300)))
        .prompt(&format!("second {}", "word ".repeat(300)))
        .prompt(&format!("third {}", "word ".repeat(300)))
        .prompt("/compact")
        .run()
        .await;
    api.assert_clean();
    assert_eq!(tiers(&run), ["full"], "{}", run.trace());
    let layouts: Vec<String> = api.received()[3..].iter().map(|received| layout(&received.body)).collect();
    insta::assert_snapshot!(layouts.join("\n\n"));
}

#[tokio::test]
async fn an_instruction_of_ones_own_may_hold_the_conversation() {
    let mut replies = turns();
    replies.push(summary());
    let api = FakeApi::start(replies);
    api.allow_other_prefix();
    let settings = SETTINGS.replace("compact = { ", "compact = { compact_prompt = 'Sum <{messages}> up.', ");
    let run = talk(WireName::Anthropic, &api, &settings).prompt("/compact mind the tests").run().await;
    api.assert_clean();
    assert_eq!(tiers(&run), ["full"], "{}", run.trace());
    let body = &api.received()[3].body;
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body}");
    let text = body["messages"][0]["content"][0]["text"].as_str().unwrap();
    for words in [
        "Sum <[user]",
        "look at a.txt",
        "[calls Read] {\"file_path\":\"a.txt\"}",
        "[assistant]\nOne.> up.",
        "mind the tests",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[tokio::test]
async fn a_summarizer_that_cannot_be_asked_leaves_the_model_in_use() {
    let refused = Reply::raw(404, "application/json", r#"{"error":{"type":"not_found_error","message":"model: s-1"}}"#);
    let mut replies = turns();
    replies.extend([refused, summary()]);
    let api = FakeApi::start(replies);
    api.allow_other_prefix();
    let run = with_summarizer(WireName::Anthropic, &api).prompt("/compact").run().await;
    assert_eq!(tiers(&run), ["full"], "{}", run.trace());
    let models: Vec<String> = api.received()[3..].iter().map(|received| received.body["model"].to_string()).collect();
    assert_eq!(models, ["\"s-1\"", "\"claude-sonnet-5\""]);
    assert!(run.trace().contains("notice The model for summaries failed"), "{}", run.trace());
}

#[tokio::test]
async fn a_summarizer_is_cut_off_after_some_rounds_and_asks_nobody() {
    let read = |path: &str| Reply::turn().call("Read", json!({"file_path": path}));
    let mut replies = turns();
    // Outside of the project: a person would be asked.
    replies.extend([
        read("/etc/hostname"),
        read("a.txt"),
        Reply::turn().call("Read", json!({"file_path": "a.txt"})),
        summary(),
    ]);
    let api = FakeApi::start(replies);
    api.allow_other_prefix();
    let run = with_summarizer(WireName::Anthropic, &api)
        .set(&OTHER.replace("compact = { ", "compact = { summary_rounds = 3, "))
        .prompt("/compact")
        .run()
        .await;
    api.assert_clean();
    assert_eq!(tiers(&run), ["full"], "{}", run.trace());
    assert!(!run.trace().contains("ask "), "{}", run.trace());
    let received = api.received();
    assert!(received[4].raw.contains("would need the user's approval"), "{}", received[4].raw);
    let tools: Vec<bool> = received[3..].iter().map(|received| received.body.get("tools").is_some()).collect();
    assert_eq!(tools, [true, true, true, false]);
}

#[tokio::test]
async fn where_nothing_is_cached_an_excerpt_is_cheaper() {
    for (cached, want) in [("0.1", "You are"), ("1.0", "You summ")] {
        let mut replies = turns();
        replies.push(summary());
        let api = FakeApi::start(replies);
        api.allow_other_prefix();
        let prices = format!("{SETTINGS}\n[models.m-1]\nwindow = 200000\nprice = [1.0, 2.0, {cached}, 1.0]\n");
        let run = talk(WireName::OpenaiChat, &api, &prices).prompt("/compact").run().await;
        api.assert_clean();
        assert_eq!(tiers(&run), ["full"], "{}", run.trace());
        let system = head(&api.received()[3]);
        assert!(system.contains(want), "{cached}: {system}");
    }
}
