//! Notes of the session: kept beside the conversation, and a summary that asks no model.

use std::path::{Path, PathBuf};

use cocode::protocol::{Compaction, Event};
use cocode::provider::settings::WireName;
use serde_json::{Value, json};

use super::support::fake_api::{FakeApi, Reply};
use super::support::harness::{Harness, Ran};

/// The line of the template below which notes are written.
const HINT: &str = "_What is being worked on, how far it has come, and the very next step._";

/// Two turns that fill enough of the window for notes.
fn said() -> String {
    let long = "word ".repeat(30_000);
    format!(
        "
- {{chunk: 200000, reply: [text: 'one {long}']}}
- reply: [text: two, usage: {{input: 60000, output: 5}}]
"
    )
}

/// An answer that notes something.
fn noting(text: &str) -> String {
    format!(
        "
- {{for: memory, expect: {{contains: 'Open items'}}, reply: [tool: {{name: Edit, input: {{file_path: '{{notes_file}}', old_string: '{HINT}', new_string: \"{HINT}\\n- {text}\"}}}}]}}
"
    )
}

fn talk(script: &str) -> Harness {
    Harness::new()
        .script(script)
        .set("compact = { keep_recent_tokens = 0, session_memory = { start_tokens = 60000 } }")
        .prompt("first")
        .prompt("second")
}

/// The session's folder of notes.
fn folder(run: &Ran) -> PathBuf {
    run.log().with_file_name("session-memory")
}

fn tiers(run: &Ran) -> Vec<String> {
    let tier = |event: &Event| match event {
        Event::Compaction(Compaction::Completed { receipt, .. }) => Some(receipt.tier.clone()),
        _ => None,
    };
    run.events.iter().filter_map(tier).collect()
}

#[tokio::test]
async fn notes_are_a_summary_without_a_request() {
    let script = format!(
        "{}{}\n- {{expect: {{contains: third, messages: 5}}, reply: [text: three]}}",
        said(),
        noting("the parser")
    );
    let run = talk(&script).prompt("/compact").prompt("/cost").prompt("third").run().await;
    let trace = run.trace();
    assert!(trace.contains("notes applied") && trace.ends_with("reply three\nturn ended Done"), "{trace}");
    assert_eq!(tiers(&run), ["session_memory"]);
    let told = run.events.iter().find_map(|event| match event {
        Event::Compaction(Compaction::SessionMemoryApplied { saved_tokens, summary_tokens }) => {
            Some((*saved_tokens, *summary_tokens))
        }
        _ => None,
    });
    let (saved, summary) = told.unwrap();
    assert!(saved > 50_000 && summary < 200, "{saved} {summary}");
    // The conversation shows nothing of the extraction, what it cost is known.
    assert!(!trace.contains("Edit"), "{trace}");
    let session = run.session();
    let spent: Vec<&str> = session.facts().spent.iter().map(|spent| spent.what.as_str()).collect();
    assert_eq!(spent, ["session notes"]);
    let texts: Vec<String> = session.context().messages().iter().map(|message| message.text()).collect();
    let texts: Vec<&str> = texts[1..].iter().map(String::as_str).filter(|text| !text.contains("# Skills")).collect();
    insta::assert_snapshot!(texts.join("\n=====\n"));
    let metadata: Value = serde_json::from_slice(&std::fs::read(folder(&run).join("metadata.json")).unwrap()).unwrap();
    let seq = metadata["last_summarized_seq"].as_u64().unwrap();
    assert_eq!(metadata["last_summarized_id"], session.entry(seq).unwrap().id.as_str());
    assert!(metadata["messages_summarized"].as_u64() >= Some(5), "{metadata}");
}

/// A run whose notes cover all of its conversation.
async fn noted() -> Ran {
    let said = said();
    let run = talk(&format!("{said}{}", noting("the parser"))).prompt("/compact").prompt("/compact undo").run().await;
    assert_eq!(tiers(&run), ["session_memory"], "{}", run.trace());
    run
}

#[tokio::test]
async fn notes_outlive_the_process() {
    let run = Harness::after(noted().await).set("compact = { keep_recent_tokens = 0 }").prompt("/compact").run().await;
    assert_eq!(tiers(&run), ["session_memory"], "{}", run.trace());
}

#[tokio::test]
async fn another_tier_comes_when_the_notes_do_not_do() {
    async fn check(name: &str, spoil: impl FnOnce(&Path), line: &str, settings: &str) {
        let run = noted().await;
        spoil(&folder(&run));
        let run = Harness::after(run)
            .script("- {for: summary, reply: [text: '<summary>S</summary>']}")
            .set(&format!("compact = {{ keep_recent_tokens = 0 }}\n{settings}"))
            .prompt(line)
            .run()
            .await;
        assert_eq!(tiers(&run), ["full"], "{name}: {}", run.trace());
        // What the full tier leaves is nothing that the notes cover.
        let metadata = std::fs::read_to_string(folder(&run).join("metadata.json")).unwrap_or_default();
        assert!(!metadata.contains("last_summarized_id\": \""), "{name}: {metadata}");
    }
    let metadata = |change: fn(&mut Value)| {
        move |dir: &Path| {
            let file = dir.join("metadata.json");
            let mut value: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            change(&mut value);
            std::fs::write(file, value.to_string()).unwrap();
        }
    };
    check("no notes", |dir| std::fs::remove_file(dir.join("summary.md")).unwrap(), "/compact", "").await;
    check("no metadata", |dir| std::fs::write(dir.join("metadata.json"), "{").unwrap(), "/compact", "").await;
    check(
        "empty",
        |dir| std::fs::write(dir.join("summary.md"), include_str!("../../assets/prompts/notes.md")).unwrap(),
        "/compact",
        "",
    )
    .await;
    check("missing id", metadata(|value| value["last_summarized_id"] = Value::Null), "/compact", "").await;
    check("unknown id", metadata(|value| value["last_summarized_id"] = json!("another")), "/compact", "").await;
    check("unknown entry", metadata(|value| value["last_summarized_seq"] = json!(9_999)), "/compact", "").await;
    check("too long", |dir| std::fs::write(dir.join("summary.md"), "word ".repeat(40_000)).unwrap(), "/compact", "")
        .await;
    check("instructions", |_| {}, "/compact heed the tests", "").await;
    check("switched off", |_| {}, "/compact", "features = { session_memory_compact = false }").await;
}

#[tokio::test]
async fn notes_serve_automatic_compaction_too() {
    let script = format!(
        "{}{}
- reply: [text: three, usage: {{input: 170000, output: 5}}]
- {{expect: {{contains: fourth, lacks: one word}}, reply: [text: four]}}
",
        said(),
        noting("the parser")
    );
    let run = talk(&script).prompt("third").prompt("fourth").run().await;
    assert_eq!(tiers(&run), ["session_memory"], "{}", run.trace());
    let texts: Vec<String> = run.session().context().messages().iter().map(|message| message.text()).collect();
    let (_, later) = texts.split_at(texts.iter().position(|text| text.contains("- the parser")).unwrap());
    // What came after the notes follows them word for word.
    assert!(later[0].contains("Carry on"), "{later:?}");
    assert_eq!(later[1..3], ["third", "three"]);
}

#[tokio::test]
async fn nobody_waits_for_notes_that_hang() {
    let script = format!(
        "{}
- {{for: memory, reply: [delay_ms: 3600000, text: late]}}
- {{for: summary, reply: [text: '<summary>S</summary>']}}
- reply: [text: three]
",
        said()
    );
    // One more turn, then a compaction, then the end: none of them takes an hour.
    let run = Harness::new()
        .script(&script)
        .set("compact = { keep_recent_tokens = 0, session_memory = { wait_s = 0 } }")
        .prompt("first")
        .prompt("second")
        .prompt("third")
        .prompt("/compact")
        .run()
        .await;
    assert_eq!(tiers(&run), ["full"], "{}", run.trace());
}

#[tokio::test]
async fn notes_are_kept_where_a_person_works_and_not_too_often() {
    async fn check(harness: Harness, settings: &str, want: usize) {
        // As much as the first time, and late enough for the first update to have ended: another would be due.
        let long = "word ".repeat(30_000);
        let script = format!(
            "{}
- {{chunk: 200000, reply: [delay_ms: 700, text: 'three {long}', usage: {{input: 110000, output: 5}}]}}
{}{}
- {{for: summary, reply: [text: '<summary>S</summary>']}}
",
            said(),
            noting("a"),
            noting("b")
        );
        let run = harness
            .script(&script)
            .set(&format!("compact = {{ keep_recent_tokens = 0 }}\n{settings}"))
            .prompt("first")
            .prompt("second")
            .prompt("third")
            .prompt("/compact")
            .run()
            .await;
        let session = run.session();
        let noted = session.facts().spent.iter().filter(|spent| spent.what == "session notes").count();
        assert_eq!(noted, want, "{}", run.trace());
    }
    // The second update would come within the minute.
    check(Harness::new(), "", 1).await;
    check(Harness::new(), "features = { session_memory = false }", 0).await;
    check(Harness::new().unattended(), "", 0).await;
}

#[tokio::test]
async fn a_rewind_makes_notes_useless() {
    let run = noted().await;
    let to =
        run.session().context().entries().find(|(_, message)| message.text() == "second").map(|(seq, _)| seq).unwrap();
    let op = cocode::protocol::Op::Rewind { to, what: cocode::protocol::RewindWhat::Conversation };
    let run = Harness::after(run).script("- reply: [text: ok]").at("session", op).prompt("third").run().await;
    let metadata = std::fs::read_to_string(folder(&run).join("metadata.json")).unwrap();
    assert!(metadata.contains("\"last_summarized_id\": null"), "{metadata}\n{}", run.trace());
}

#[tokio::test]
async fn only_edits_of_the_notes_pass() {
    let edit = |file: &str, old: &str, new: &str| {
        format!("tool: {{name: Edit, input: {{file_path: '{file}', old_string: '{old}', new_string: '{new}'}}}}")
    };
    let said = said();
    let script = format!(
        "{said}
- {{for: memory, reply: [{}, {}, {}, {}, tool: {{name: Bash, input: {{command: 'touch $P/made'}}}}, tool: {{name: Read, input: {{file_path: $P/a.txt}}}}]}}
- {{for: memory, expect: {{contains: Only Edit}}, reply: [text: enough]}}
- {{for: summary, reply: [text: '<summary>S</summary>']}}
",
        edit("$P/a.txt", "one", "two"),
        edit("$P/new.txt", "", "made"),
        edit("{notes_file}/../../transcript.jsonl", "", "x"),
        edit("{notes_file}", HINT, &"long ".repeat(4_100)),
    );
    let run = talk(&script).file("a.txt", "one").prompt("/compact").run().await;
    assert_eq!(run.read("a.txt"), "one");
    assert!(!run.project().join("made").exists() && !run.project().join("new.txt").exists());
    let notes = std::fs::read_to_string(folder(&run).join("summary.md")).unwrap();
    assert_eq!(notes, include_str!("../../assets/prompts/notes.md"));
    assert_eq!(tiers(&run), ["full"], "{}", run.trace());
    assert!(!run.trace().contains("ask "), "{}", run.trace());
}

#[tokio::test]
async fn the_offline_model_keeps_notes() {
    let run = Harness::new()
        .file("big.rs", &"fn some_words() {}\n".repeat(1_500))
        .set("compact = { keep_recent_tokens = 0, min_messages_before_compact = 2, session_memory = { extraction_start_fraction = 0.0, first_tokens = 100, min_net_saving = 0 } }")
        .prompt("explain big.rs")
        .prompt("/compact")
        .run()
        .await;
    assert_eq!(tiers(&run), ["session_memory"], "{}", run.trace());
    let notes = std::fs::read_to_string(folder(&run).join("summary.md")).unwrap();
    assert!(notes.contains("- Asked last: explain big.rs"), "{notes}");
}

/// Roles and the first words of everything in a request, one line each.
pub(crate) fn layout(body: &Value) -> String {
    fn words(part: &Value, rows: &mut Vec<String>) {
        match part {
            Value::String(text) => {
                // Parts that a wire joins are told apart by what surrounds them.
                let mut fresh = true;
                for line in text.lines().filter(|line| !line.is_empty()) {
                    let edge = line.ends_with("system-reminder>");
                    if fresh && !edge {
                        rows.push(line.chars().take(60).collect());
                    }
                    fresh = edge;
                }
            }
            Value::Array(parts) => parts.iter().for_each(|part| words(part, rows)),
            Value::Object(map) => {
                let name = |key: &str| map.get(key).and_then(Value::as_str);
                let keys = ["text", "content", "parts", "output", "functionCall", "functionResponse"];
                let known = keys.iter().find_map(|key| map.get(*key)).filter(|part| !part.is_null());
                if let Some(calls) = map.get("tool_calls").and_then(Value::as_array) {
                    rows.extend(calls.iter().map(|call| format!("[{}]", call["function"]["name"].as_str().unwrap())));
                    if known.is_none() {
                        return;
                    }
                }
                match (known, name("name").or(name("type"))) {
                    (Some(part), _) => words(part, rows),
                    (None, Some(name)) => rows.push(format!("[{name}]")),
                    (None, None) => rows.push("[…]".into()),
                }
            }
            other => rows.push(other.to_string()),
        }
    }
    let items = ["messages", "input", "contents"].iter().find_map(|key| body[*key].as_array()).unwrap();
    let mut lines = Vec::new();
    for item in items {
        let mut rows = Vec::new();
        words(item, &mut rows);
        let who = item["role"].as_str().or(item["type"].as_str()).unwrap_or("?");
        lines.extend(rows.into_iter().map(|row| format!("{who}: {row}")));
    }
    lines.retain(|line| !line.starts_with("system: "));
    lines.join("\n")
}

/// An engine over one wire of the server.
pub(crate) fn over(harness: Harness, wire: WireName, api: &FakeApi, settings: &str) -> Harness {
    let (name, url) = (serde_json::to_value(wire).unwrap(), api.base_url(wire));
    let model = match wire {
        WireName::Anthropic => "claude-sonnet-5",
        WireName::Openai => "gpt-5.4",
        WireName::OpenaiChat => "m-1",
        WireName::Gemini => "gemini-3-flash-preview",
    };
    harness.set(&format!("model = 'x/{model}'\n{settings}\n[providers.x]\nwire = {name}\nbase_url = '{url}'\n"))
}

#[tokio::test]
async fn the_requests_on_each_wire() {
    let settings = "compact = { keep_recent_tokens = 0, session_memory = { extraction_start_fraction = 0.0, first_tokens = 100, min_net_saving = 0, weigh_cost = false } }";
    let mut layouts = Vec::new();
    for wire in [WireName::Anthropic, WireName::Openai, WireName::OpenaiChat, WireName::Gemini] {
        let api = FakeApi::start([Reply::turn().text("One.")]);
        let off = format!("{settings}\nfeatures = {{ session_memory = false }}");
        let run = over(Harness::new(), wire, &api, &off).prompt(&"word ".repeat(400)).run().await;
        let file = folder(&run).join("summary.md");
        let api = FakeApi::start([
            Reply::turn().thinking("Hm.").text("Two.").input(15_000),
            Reply::turn().call(
                "Edit",
                json!({"file_path": file, "old_string": HINT, "new_string": format!("{HINT}\n- the parser")}),
            ),
        ]);
        let run = over(Harness::after(run), wire, &api, settings).prompt("second").prompt("/compact").run().await;
        // The extraction's request begins with the bytes of the conversation's.
        api.assert_clean();
        assert_eq!(tiers(&run), ["session_memory"], "{wire:?}: {}", run.trace());
        let received = api.received();
        assert_eq!(received.len(), 2, "{wire:?}: nothing is asked for /compact");
        let memory = layout(&received[1].body);
        let api = FakeApi::start([Reply::turn().text("Three.")]);
        over(Harness::after(run), wire, &api, settings).prompt("third").run().await;
        api.assert_clean();
        layouts
            .push(format!("{wire:?}, extraction\n{memory}\n{wire:?}, afterwards\n{}", layout(&api.received()[0].body)));
    }
    insta::assert_snapshot!(layouts.join("\n\n"));
}
