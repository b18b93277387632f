//! What must not go wrong however odd the conversation, the server or the moment is.

use std::sync::Arc;
use std::time::SystemTime;

use cocode::message::{Block, CallId, Message, Outcome, ToolCall, ToolResult};
use cocode::protocol::{Compaction, Event, Op};
use cocode::provider::settings::WireName;
use cocode::session::Session;
use cocode::session::entry::EntryKind;
use serde_json::json;

use super::notes::over;
use super::support::fake_api::{FakeApi, Reply};
use super::support::harness::{Harness, Ran};

const SETTINGS: &str = "features = { session_memory = false }\nskills = { list_budget = 0 }\n";

fn tiers(run: &Ran) -> Vec<String> {
    let tier = |event: &Event| match event {
        Event::Compaction(Compaction::Completed { receipt, .. }) => Some(receipt.tier.clone()),
        Event::Compaction(Compaction::Failed { reason, .. }) => Some(format!("{reason:?}")),
        _ => None,
    };
    run.events.iter().filter_map(tier).collect()
}

/// Everything wrong with the order of calls and results in what the model reads.
fn problems(session: &Session) -> Vec<String> {
    let mut open: Vec<CallId> = Vec::new();
    let mut problems = Vec::new();
    for message in session.context().messages() {
        let answered: Vec<CallId> = message.results().map(|result| result.id.clone()).collect();
        if answered != open {
            problems.push(format!("{open:?} are answered by {answered:?}"));
        }
        open = message.calls().map(|call| call.id.clone()).collect();
    }
    if !open.is_empty() {
        problems.push(format!("{open:?} are never answered"));
    }
    problems
}

/// How each wire says that a conversation is too long: status, and body in the vendor's own words.
fn refusals(wire: WireName) -> Vec<(u16, serde_json::Value)> {
    match wire {
        WireName::Anthropic => vec![
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}}),
            ),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"}}),
            ),
            (
                413,
                json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
            ),
        ],
        WireName::Openai => vec![(
            400,
            json!({"error": {"message": "Your input exceeds the context window of this model. Please adjust your input and try again.", "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}}),
        )],
        WireName::OpenaiChat => vec![
            (
                400,
                json!({"error": {"message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. Please reduce the length of the messages.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}),
            ),
            (
                400,
                json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 131072, "n_ctx": 128000}}),
            ),
        ],
        WireName::Gemini => vec![(
            400,
            json!({"error": {"code": 400, "message": "The input token count (1048600) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}),
        )],
    }
}

#[tokio::test]
async fn what_a_provider_finds_too_long_is_recovered_once_on_every_wire() {
    let settings = format!("{SETTINGS}compact = {{ keep_recent_tokens = 0, fallback_context_window = 200000 }}");
    let prompts = |harness: Harness| harness.prompt("first").prompt("second").prompt("third");
    for wire in [WireName::Anthropic, WireName::Openai, WireName::OpenaiChat, WireName::Gemini] {
        for (status, body) in refusals(wire) {
            let refusal = || Reply::raw(status, "application/json", &body.to_string());
            let talk = || vec![Reply::turn().text("One."), Reply::turn().text("Two.").input(60_000), refusal()];
            let summary = || Reply::turn().text("<summary>All is well.</summary>");
            let api = FakeApi::start(talk().into_iter().chain([summary(), Reply::turn().text("Three.")]));
            api.allow_other_prefix();
            let run = prompts(over(Harness::new(), wire, &api, &settings)).run().await;
            api.assert_clean();
            assert_eq!(tiers(&run), ["full"], "{wire:?} {body}\n{}", run.trace());
            assert!(run.trace().ends_with("reply Three.\nturn ended Done"), "{}", run.trace());
            // Refused again, it is told; the prompt comes back.
            let api = FakeApi::start(talk().into_iter().chain([summary(), refusal()]));
            api.allow_other_prefix();
            let run = prompts(over(Harness::new(), wire, &api, &settings)).run().await;
            assert_eq!(api.received().len(), 5, "{wire:?} {body}");
            let trace = run.trace();
            assert!(trace.contains("too long") && trace.contains("restore=Some(\"third\")"), "{trace}");
        }
    }
}

/// Servers that run a model themselves count what is sent and what may come back, and the window is unknown until they say so.
#[tokio::test]
async fn a_strict_server_is_sent_what_fits_with_room_for_the_answer() {
    let limit = 16_384;
    for words in [
        "This model's maximum context length is 16384 tokens. However, you requested 18000 tokens (14000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
        "'max_tokens' is too large: 4000. This model's maximum context length is 16384 tokens and your request has 14000 input tokens",
    ] {
        let refusal =
            Reply::raw(400, "application/json", &json!({"error": {"message": words, "code": 400}}).to_string());
        let talk = || (0..5).map(|n| Reply::turn().text(&format!("Answer {n}.")).input(6_000 + 2_000 * n));
        let summary = Reply::turn().text("<summary>All is well.</summary>");
        let after = [refusal, summary, Reply::turn().text("Six."), Reply::turn().text("Seven.")];
        let api = FakeApi::start(talk().chain(after));
        api.allow_other_prefix();
        let long = "Look at this part, too. ".repeat(300);
        let run = (0..7).fold(over(Harness::new(), WireName::OpenaiChat, &api, SETTINGS), |run, _| run.prompt(&long));
        let run = run.run().await;
        api.assert_clean();
        assert!(run.trace().ends_with("reply Seven.\nturn ended Done"), "{words}\n{}", run.trace());
        for received in &api.received()[6..] {
            let most = [&received.body["max_tokens"], &received.body["max_completion_tokens"]];
            let output = most.iter().find_map(|most| most.as_u64()).unwrap();
            let input = received.raw.len() as u64 / 4;
            assert!(output > 0 && input + output <= limit, "{words}: {input} + {output}");
        }
    }
}

/// A model may count far denser than texts are estimated; a server that adds up input and answer refuses what does not fit
/// both. Without a cache the summary is asked for with an excerpt, of which nothing was ever counted.
#[tokio::test]
async fn a_summary_is_asked_for_within_the_window_as_the_provider_counts() {
    let (limit, dense) = (32_000, |bytes: usize| bytes as u64 * 8 / 20);
    let long = "Look at this part, too. ".repeat(100);
    let talk = (1..=60).map(|n| Reply::turn().text("So it is.").input(5_440 + dense(n * (long.len() + 9))));
    let api = FakeApi::start(talk);
    api.allow_other_prefix();
    let harness = over(Harness::new(), WireName::OpenaiChat, &api, SETTINGS);
    (0..20).fold(harness, |run, _| run.prompt(&long)).run().await;
    let received = api.received();
    let asked = received.iter().find(|received| received.raw.contains("<analysis>")).expect("a summary was asked for");
    let said = asked.body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_str());
    // The excerpt is other text than what was counted, and may be a little denser.
    let input = dense(said.map(str::len).sum()) * 101 / 100;
    let most = [&asked.body["max_tokens"], &asked.body["max_completion_tokens"]];
    let output = most.iter().find_map(|most| most.as_u64()).unwrap();
    assert!(input > 9_000 && input + output <= limit, "{input} + {output}");
}

#[tokio::test]
async fn what_is_larger_than_the_window_is_clipped_until_it_fits() {
    // A window of 8k: a prompt of 50k tokens, then a result that nothing cut.
    let settings = format!(
        "{SETTINGS}compact = {{ fallback_context_window = 8192 }}\ntools = {{ max_bytes = 10000000, max_lines = 1000000, window_share = 1 }}"
    );
    let giant = "日本語 and words ".repeat(12_000);
    let api = FakeApi::start([Reply::turn().text("One."), Reply::turn().text("Two.")]);
    api.allow_other_prefix();
    let run = over(Harness::new(), WireName::OpenaiChat, &api, &settings).prompt(&giant).prompt("second").run().await;
    api.assert_clean();
    assert!(run.trace().ends_with("reply Two.\nturn ended Done"), "{:?}", tiers(&run));
    for received in api.received() {
        assert!(received.raw.len() < 8_192 * 4, "{} bytes", received.raw.len());
    }
    let api = FakeApi::start([
        Reply::turn().call("Bash", json!({"command": "head -c 2000000 /dev/zero | tr '\\0' x | fold -w 80"})),
        Reply::turn().text("Done."),
    ]);
    api.allow_other_prefix();
    let run = over(Harness::new(), WireName::OpenaiChat, &api, &settings)
        .mode(cocode::permission::Mode::Bypass)
        .prompt("go")
        .run()
        .await;
    let received = api.received();
    let last = received.last().unwrap();
    assert!(last.raw.len() < 8_192 * 4 && last.raw.contains("tool_call_id"), "{} bytes", last.raw.len());
    assert!(run.trace().ends_with("turn ended Done"), "{:?}", tiers(&run));
}

#[tokio::test]
async fn a_second_compaction_with_nothing_to_gain_changes_nothing() {
    let run = Harness::new()
        .script(
            "
- reply: [text: one]
- reply: [text: two, usage: {input: 60000, output: 5}]
- {for: summary, repeat: 2, reply: [text: '<summary>S</summary>']}
- reply: [text: three]
",
        )
        .set("compact = { keep_recent_tokens = 0, keep_recent_messages = 2, min_messages_before_compact = 1 }")
        .prompt("first")
        .prompt("second")
        .prompt("/compact x")
        .prompt("/compact x")
        .prompt("third")
        .run()
        .await;
    assert_eq!(tiers(&run), ["full", "NoProgress"], "{}", run.trace());
    assert!(run.trace().contains("notice Nothing was compacted: "), "{}", run.trace());
    assert_eq!(problems(&run.session()), [""; 0]);
}

#[tokio::test]
async fn a_sub_agent_compacts_its_own_conversation() {
    let run = Harness::new()
        .script(
            "
- reply: [tool: {name: Task, input: {description: looks, prompt: look, subagent_type: Explore}}]
- {for: 'agent:Explore', reply: [tool: {name: Glob, input: {pattern: '*.txt'}}, usage: {input: 60000, output: 5}]}
- {for: 'agent:Explore', reply: [tool: {name: Glob, input: {pattern: '*.rs'}}, usage: {input: 170000, output: 5}]}
- {for: summary, reply: [text: '<summary>What was seen.</summary>']}
- {for: 'agent:Explore', reply: [text: found]}
- {expect: {contains: found}, reply: [text: done]}
",
        )
        .set("features = { session_memory = false }\ncompact = { keep_recent_tokens = 0, min_messages_before_compact = 2 }")
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().ends_with("reply done\nturn ended Done"), "{}", run.trace());
    // The one above keeps its own.
    assert_eq!(run.session().last_boundary(), None);
    let log = std::fs::read_to_string(run.log().with_file_name("agent-a1.jsonl")).unwrap();
    assert!(log.contains("compact_boundary"), "{log}");
}

/// A conversation that is worth a summary, with hooks.
fn worth(summary: &str, hooks: &str) -> Harness {
    Harness::new()
        .file("a.txt", "alpha\n")
        .script(&format!(
            "
- reply: [tool: {{name: Read, input: {{file_path: a.txt}}}}]
- reply: [text: one, usage: {{input: 60000, output: 5}}]
- {{for: summary, repeat: 2, reply: [{summary}]}}
- reply: [text: two]
- reply: [text: three]
"
        ))
        .set(&format!("features = {{ session_memory = false }}\ncompact = {{ keep_recent_tokens = 0, min_messages_before_compact = 2 }}\n{hooks}"))
        .prompt("first")
}

fn hook(event: &str, command: &str) -> String {
    let matcher = if event == "SessionStart" { "compact" } else { "*" };
    format!(
        "[[hooks.{event}]]\nmatcher = \"{matcher}\"\nhooks = [{{ type = \"command\", command = \"{command}\", timeout = 1 }}]\n"
    )
}

#[tokio::test]
async fn esc_in_any_phase_leaves_the_conversation_as_it_was() {
    let good = "text: '<summary>S</summary>'";
    let slow = "text: '<summary>S', delay_ms: 60000, text: '</summary>'";
    let long_hook = |event| hook(event, "sleep 30").replace("timeout = 1", "timeout = 60");
    for (name, at, summary, hooks) in [
        ("while PreCompact hooks run", "phase Running PreCompact", good, long_hook("PreCompact")),
        ("before the answer", "compacting", "delay_ms: 60000, text: x", String::new()),
        ("in the answer", "compacting", slow, String::new()),
        ("while SessionStart hooks run", "phase Running SessionStart", good, long_hook("SessionStart")),
    ] {
        let run = worth(summary, &hooks).at(at, Op::Interrupt).prompt("/compact").prompt("second").run().await;
        assert_eq!(tiers(&run), ["Interrupted"], "{name}: {}", run.trace());
        assert!(run.trace().contains("notice Compaction canceled."), "{name}");
        let session = run.session();
        assert_eq!((session.last_boundary(), problems(&session)), (None, vec![]), "{name}");
        assert_eq!(
            session.context().messages().iter().filter(|message| message.text() == "first").count(),
            1,
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_hook_that_hangs_is_left_behind() {
    for event in ["PreCompact", "SessionStart", "PostCompact"] {
        let run = worth("text: '<summary>S</summary>'", &hook(event, "sleep 60"))
            .prompt("/compact")
            .prompt("second")
            .run()
            .await;
        assert_eq!(tiers(&run), ["full"], "{event}: {}", run.trace());
        assert!(run.trace().ends_with("reply two\nturn ended Done"), "{event}: {}", run.trace());
    }
}

#[tokio::test]
async fn a_summary_that_breaks_off_is_asked_for_once_more() {
    let settings = format!("{SETTINGS}compact = {{ keep_recent_tokens = 0 }}");
    let summary = || Reply::turn().text("<summary>All is well, and this is how it continues.</summary>");
    for (second, want) in [(summary(), "full"), (summary().cut_after(200), "ApiError")] {
        let api = FakeApi::start([
            Reply::turn().text("One."),
            Reply::turn().text("Two.").input(60_000),
            summary().cut_after(200),
            second,
            Reply::turn().text("Three."),
        ]);
        api.allow_other_prefix();
        let run = over(Harness::new(), WireName::Anthropic, &api, &settings)
            .prompt("first")
            .prompt("second")
            .prompt("/compact")
            .prompt("third")
            .run()
            .await;
        api.assert_clean();
        assert_eq!(tiers(&run), [want], "{}", run.trace());
        assert!(run.trace().ends_with("reply Three.\nturn ended Done"), "{}", run.trace());
    }
}

#[tokio::test]
async fn a_smaller_model_makes_room_first() {
    let settings = format!(
        "{SETTINGS}[models.m-2]\nwindow = 8192\nmax_output = 1024\n[models.m-1]\nwindow = 200000\nmax_output = 8000\n"
    );
    let long = "some words of a long prompt ".repeat(1_500);
    let api = FakeApi::start([
        Reply::turn().text("One.").input(15_000),
        Reply::turn().text("Two.").input(30_000),
        Reply::turn().text("<summary>All is well.</summary>"),
        Reply::turn().text("Three."),
    ]);
    api.allow_other_prefix();
    let run = over(Harness::new(), WireName::OpenaiChat, &api, &settings)
        .prompt(&long)
        .prompt(&long)
        .prompt("/model x/m-2")
        .prompt("third")
        .run()
        .await;
    api.assert_clean();
    assert!(run.trace().ends_with("turn ended Done") && !run.trace().contains("\nerror "), "{:?}", tiers(&run));
    assert!(!tiers(&run).is_empty());
    let received = api.received();
    for received in received.iter().filter(|received| received.body["model"] == "m-2") {
        assert!(received.raw.len() < 8_192 * 4, "{} bytes", received.raw.len());
    }
}

#[tokio::test]
async fn ten_thousand_messages_are_compacted() {
    let harness = Harness::new();
    let home = harness.project().with_file_name(".claude");
    std::fs::create_dir_all(&home).unwrap();
    {
        let mut session = Session::create(&home, &harness.project(), "1", SystemTime::now);
        for turn in 0..2_500_u64 {
            let id = CallId::nth(turn + 1);
            let call = ToolCall::new(id.clone(), "Read", json!({"file_path": "a"}));
            for message in [
                Message::prompt(format!("prompt {turn}")),
                Message::reply(vec![Block::text("I look."), Block::ToolCall(call)]),
                Message::tool_results(vec![ToolResult::of_text(id, Outcome::Ok, "some words of a result ".repeat(12))]),
                Message::reply(vec![Block::text("Seen.")]),
            ] {
                session.append(EntryKind::Message { message: Arc::new(message) }).unwrap();
            }
        }
        assert_eq!(session.context().len(), 10_000);
    }
    let run = harness
        .begin(cocode::engine::Begin::Continue)
        .script("- {for: summary, repeat: 2, reply: [text: '<summary>S</summary>']}\n- reply: [text: done]")
        .set("features = { session_memory = false, micro_compact = false }")
        .prompt("continue")
        .run()
        .await;
    assert_eq!(tiers(&run), ["full"], "{}", run.trace());
    assert!(run.trace().ends_with("reply done\nturn ended Done"));
    let session = run.session();
    assert!(session.context().len() < 2_000 && problems(&session).is_empty(), "{}", session.context().len());
}

#[tokio::test]
async fn ids_of_the_provider_name_no_file_of_ours() {
    // Twice the same id, and one that would leave the folder.
    let call = |id: &str, command: &str| {
        let arguments = json!({"command": command}).to_string();
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "m-1", "choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": "Bash", "arguments": arguments}}]}, "finish_reason": null}]});
        let end = json!({"id": "c", "object": "chat.completion.chunk", "model": "m-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        Reply::raw(200, "text/event-stream", &format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n"))
    };
    let long = |word: &str| format!("for i in $(seq 1200); do echo {word} $i; done");
    let ids = ["call_0", "call_0", "../../call_0", "/etc/x", "call_0"];
    let calls = ids.iter().zip(["one", "two", "three", "four", "five"]).map(|(id, word)| call(id, &long(word)));
    let api = FakeApi::start(calls.chain([Reply::turn().text("Done.").input(60_000), Reply::turn().text("On.")]));
    api.allow_other_prefix();
    let settings = format!("{SETTINGS}compact = {{ fallback_context_window = 200000 }}");
    let run = over(Harness::new(), WireName::OpenaiChat, &api, &settings)
        .mode(cocode::permission::Mode::Bypass)
        .prompt("go")
        .prompt("/compact micro 1")
        .prompt("on")
        .run()
        .await;
    api.assert_clean();
    assert!(run.trace().contains("\ncleared 2\n"), "{:?}", run.trace().lines().last());
    let folder = run.log().with_file_name("tool-results");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["call_1.txt", "call_2.txt"]);
    for (name, word) in [("call_1.txt", "one 1200"), ("call_2.txt", "two 1200")] {
        assert!(std::fs::read_to_string(folder.join(name)).unwrap().contains(word), "{name}");
    }
    assert_eq!(problems(&run.session()), [""; 0]);
}

#[tokio::test]
async fn a_process_that_dies_at_any_entry_of_a_compaction_goes_on() {
    let run = worth("text: '<summary>S</summary>'", &hook("PreCompact", "echo mind the tests"))
        .prompt("/compact")
        .prompt("second")
        .run()
        .await;
    assert_eq!(tiers(&run), ["full"], "{}", run.trace());
    let (log, whole) = (run.log(), std::fs::read(run.log()).unwrap());
    let id = log.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    // After each entry, and in the middle of each.
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let middles = ends.windows(2).map(|pair| (pair[0] + pair[1]) / 2);
    let mut seen = [0; 2];
    for cut in ends.iter().copied().chain(middles) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(&id);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("transcript.jsonl"), &whole[..cut]).unwrap();
        let mut session = Session::open(home.path(), &id, SystemTime::now).unwrap();
        assert_eq!(problems(&session), [""; 0], "cut at {cut}");
        seen[usize::from(session.last_boundary().is_some())] += 1;
        let context = session.context().messages().iter().map(|message| message.text()).collect::<String>();
        // Either the conversation or its summary, never neither.
        assert!(
            cut < ends[ends.len() / 2] || context.contains("first") || context.contains("no longer fits"),
            "cut at {cut}: {context}"
        );
        session.append(EntryKind::Message { message: Arc::new(Message::prompt("on")) }).unwrap();
    }
    assert!(seen[0] > 5 && seen[1] > 2, "{seen:?}");
}
