//! Whole turns with tool calls over each wire, against a server that checks every request.

use cocode::message::tokens;
use cocode::protocol::{Answer, Approval, Op};
use cocode::provider::settings::WireName;
use serde_json::json;

use super::support::fake_api::{FakeApi, Received, Reply};
use super::support::harness::{Harness, Ran};

const WIRES: [WireName; 4] = [WireName::Anthropic, WireName::Openai, WireName::OpenaiChat, WireName::Gemini];
/// Bytes of the first request of a turn.
const FIRST_REQUEST: usize = 18_000;
/// Estimated tokens of system prompt and tools.
const OVERHEAD: u64 = 4_500;

/// An engine that asks this server over this wire.
fn over(wire: WireName, api: &FakeApi) -> Harness {
    let harness = Harness::new().file("a.txt", "one\n");
    if wire == WireName::OpenaiChat {
        let url = api.base_url(wire);
        let table = format!("model = \"x/m-1\"\n[providers.x]\nwire = \"openai-chat\"\nbase_url = \"{url}\"\n");
        return harness.set(&table);
    }
    api.env(wire).iter().fold(harness, |harness, (name, value)| harness.env(name, value))
}

fn work() -> Vec<Reply> {
    vec![
        Reply::turn().thinking("Let me look.").text("Reading.").call("Read", json!({"file_path": "a.txt"})),
        Reply::turn()
            .thinking("So it is one.")
            .call("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        Reply::turn().call("Bash", json!({"command": "cat a.txt"})).call("LS", json!({"path": "."})).chunks(5),
        Reply::turn().text("It says two."),
    ]
}

async fn turn(wire: WireName, api: &FakeApi) -> Ran {
    over(wire, api).prompt("make it two").answer(Answer::Yes).run().await
}

#[tokio::test]
async fn a_turn_with_tools_over_each_wire() {
    for wire in WIRES {
        let api = FakeApi::start(work());
        let run = turn(wire, &api).await;
        let trace = run.trace();
        assert!(trace.ends_with("reply It says two.\nturn ended Done"), "{wire:?}:\n{trace}");
        assert_eq!(run.read("a.txt"), "two\n", "{wire:?}");
        api.assert_clean();
        let received = api.received();
        assert!(received.len() == 4 && received.iter().all(|request| request.wire == wire), "{wire:?}");
        let last = &received[3].raw;
        // What the provider signed goes back with the calls that it led to.
        let signed = match wire {
            WireName::Anthropic => Some("\"signature\":\"c2lnbmVk\""),
            WireName::Openai => Some("\"encrypted_content\":"),
            WireName::Gemini => Some("\"thoughtSignature\":"),
            WireName::OpenaiChat => None,
        };
        assert!(signed.is_none_or(|signed| last.contains(signed)), "{wire:?}: no signature in {last}");
    }
}

#[tokio::test]
async fn a_prompt_after_a_cancelled_stream_is_valid() {
    for wire in WIRES {
        let cut = Reply::turn()
            .thinking("A thought.")
            .text("Some words that are long enough to be cut.")
            .call("Read", json!({"file_path": "a.txt"}));
        let api = FakeApi::start([cut.chunks(40).hang_after(1_400), Reply::turn().text("Here again.")]);
        let run = over(wire, &api).prompt("go").prompt("continue").at("text Some", Op::Interrupt).run().await;
        let trace = run.trace();
        assert!(trace.contains("turn ended Interrupted"), "{wire:?}:\n{trace}");
        assert!(trace.ends_with("reply Here again.\nturn ended Done"), "{wire:?}:\n{trace}");
        api.assert_clean();
    }
}

#[tokio::test]
async fn another_provider_gets_no_foreign_signatures() {
    let api = FakeApi::start(work().into_iter().chain([Reply::turn().text("Still two.")]));
    let first = turn(WireName::Anthropic, &api).await;
    let mut again = Harness::after(first).prompt("still?").set("model = \"openai/gpt-5.4\"");
    for (name, value) in api.env(WireName::Openai) {
        again = again.env(name, &value);
    }
    let run = again.run().await;
    assert!(run.trace().ends_with("reply Still two.\nturn ended Done"), "{}", run.trace());
    api.assert_clean();
    let received = api.received();
    let last = received.last().unwrap();
    assert_eq!(last.wire, WireName::Openai);
    assert!(!last.raw.contains("c2lnbmVk") && !last.raw.contains("\"reasoning\","), "{}", last.raw);
    assert!(last.raw.contains("It says two."), "{}", last.raw);
}

fn overhead(request: &Received) -> u64 {
    let body = &request.body;
    let text: String =
        ["system", "instructions", "systemInstruction", "tools"].iter().map(|key| body[key].to_string()).collect();
    tokens::text(&text)
}

#[tokio::test]
async fn the_first_request_is_small() {
    for wire in WIRES {
        let api = FakeApi::start([Reply::turn().text("Hello.")]);
        over(wire, &api).prompt("hello").run().await;
        let received = api.received();
        let (bytes, tokens) = (received[0].raw.len(), overhead(&received[0]));
        assert!(bytes < FIRST_REQUEST && tokens < OVERHEAD, "{wire:?}: {bytes} bytes, {tokens} tokens");
    }
}

#[tokio::test]
async fn plans_and_questions_over_each_wire() {
    let question = json!({"questions": [{"question": "Which store?", "header": "Store", "multiSelect": true, "options": [
        {"label": "SQLite", "description": "one file"}, {"label": "Files", "description": "no database"}]}]});
    for wire in WIRES {
        let api = FakeApi::start([
            Reply::turn().thinking("Plan first.").call("EnterPlanMode", json!({"reason": "seven modules"})),
            Reply::turn().call("AskUserQuestion", question.clone()).call("ExitPlanMode", json!({})),
            Reply::turn().text("I write it next."),
            Reply::turn()
                .thinking("It is there.")
                .call("Read", json!({"file_path": "a.txt"}))
                .call("ExitPlanMode", json!({})),
            Reply::turn().call("Read", json!({"file_path": "a.txt"})),
            Reply::turn().text("Done."),
        ]);
        let chosen = Answer::Chosen { answers: vec![vec!["Files".into(), "a cloud".into()]] };
        let run = over(wire, &api).prompt("plan it").answer(Answer::Yes).answer(chosen).run().await;
        let trace = run.trace();
        assert!(trace.contains("Ok: The user answered:⏎- Which store? → Files; a cloud"), "{wire:?}: {trace}");
        assert!(trace.contains("Error: There is no plan yet"), "{wire:?}: {trace}");
        api.assert_clean();
        // A fresh context starts over.
        api.allow_other_prefix();
        let slug = run.session().facts().plan_slug.clone().unwrap();
        let plans = run.project().parent().unwrap().join(".claude/plans");
        std::fs::write(plans.join(format!("{slug}.md")), "# The plan\nDo it.\n").unwrap();
        let mut again = Harness::after(run).prompt("continue").answer(Answer::Approve { how: Approval::FreshContext });
        if wire == WireName::OpenaiChat {
            let url = api.base_url(wire);
            let table = format!("model = \"x/m-1\"\n[providers.x]\nwire = \"openai-chat\"\nbase_url = \"{url}\"\n");
            again = again.set(&table);
        } else {
            for (name, value) in api.env(wire) {
                again = again.env(name, &value);
            }
        }
        let run = again.run().await;
        api.assert_clean();
        assert!(run.trace().ends_with("reply Done.\nturn ended Done"), "{wire:?}: {}", run.trace());
        api.assert_clean();
        let received = api.received();
        assert_eq!(received.len(), 6, "{wire:?}");
        for (request, wants) in [(&received[4].raw, true), (&received[5].raw, true), (&received[3].raw, false)] {
            assert_eq!(request.contains("# The approved plan"), wants, "{wire:?}: {request}");
            assert_eq!(request.contains("seven modules"), !wants, "{wire:?}: {request}");
        }
    }
}

#[tokio::test]
async fn a_sub_agent_over_each_wire() {
    for wire in WIRES {
        let task = json!({"description": "look", "prompt": "What is in a.txt?", "subagent_type": "Explore"});
        let api = FakeApi::start(vec![
            Reply::turn().call("Task", task),
            Reply::turn().call("Read", json!({"file_path": "a.txt"})),
            Reply::turn().text("It says one."),
            Reply::turn().text("One."),
        ]);
        // Two conversations take turns.
        api.allow_other_prefix();
        let run = over(wire, &api).prompt("look").run().await;
        let trace = run.trace();
        assert!(trace.contains("task a1 Explore Done after 1 calls"), "{wire:?}:\n{trace}");
        assert!(trace.ends_with("reply One.\nturn ended Done"), "{wire:?}:\n{trace}");
        api.assert_clean();
        let received = api.received();
        let says = |at: usize, text: &str| received[at].raw.contains(text);
        assert!(says(1, "What is in a.txt?") && !says(1, "subagent_type"), "{wire:?}: {}", received[1].raw);
        assert!(says(3, "It says one."), "{wire:?}: {}", received[3].raw);
        // The tools of the main agent stay as they were, so that the cached prefix holds.
        assert!(says(0, "subagent_type") && received[0].body["tools"] == received[3].body["tools"], "{wire:?}");
    }
}
