//! Planning over each wire: the tools of plan mode, questions and sub-agents, against a server that checks every request.

use cocode::permission::Mode;
use cocode::protocol::{Answer, Approval};
use cocode::provider::settings::WireName;
use serde_json::{Value, json};

use super::support::fake_api::{FakeApi, MODELS, Reply};
use super::support::harness::Harness;

fn over(harness: Harness, api: &FakeApi, wire: WireName, model: &str) -> Harness {
    let name = serde_json::to_value(wire).unwrap();
    let base = api.base_url(wire);
    harness.set(&format!("model = 'fake/{model}'\n[providers.fake]\nwire = {name}\nbase_url = '{base}'\n"))
}

/// The tools of a request, whatever the wire.
fn tools(body: &Value) -> String {
    let tools = body.get("tools").map(Value::to_string).unwrap_or_default();
    assert!(tools.contains("ExitPlanMode") && tools.contains("AskUserQuestion") && tools.contains("Task"), "{tools}");
    tools
}

#[tokio::test]
async fn from_the_question_to_the_approval() {
    let option = |label: &str| json!({ "label": label, "description": "d" });
    let question = |text: &str, header: &str, many: bool| {
        let options = [option("left"), option("right")];
        json!({ "question": text, "header": header, "options": options, "multiSelect": many })
    };
    for (wire, model) in MODELS {
        let api = FakeApi::start([
            Reply::turn().call("EnterPlanMode", json!({ "reason": "Many files." })),
            Reply::turn().call(
                "AskUserQuestion",
                json!({ "questions": [question("Which?", "Way", true), question("How?", "How", false)] }),
            ),
            Reply::turn().call("Write", json!({ "file_path": "a.txt", "content": "x" })),
            Reply::turn().text("I plan."),
        ]);
        let chosen = vec![vec!["left".to_owned(), "right".to_owned()], vec!["in my own words".to_owned()]];
        let ran = over(Harness::new(), &api, wire, model)
            .prompt("go")
            .answer(Answer::Yes)
            .answer(Answer::Chosen { answers: chosen })
            .run()
            .await;
        assert!(!ran.project().join("a.txt").exists(), "{wire:?}");
        let slug = ran.session().facts().plan_slug.clone().unwrap();
        let plan = ran.home().canonicalize().unwrap().join(format!("plans/{slug}.md"));
        for reply in [
            Reply::turn().call("Write", json!({ "file_path": plan, "content": "# The plan\n1. Write a.txt.\n" })),
            Reply::turn().call("ExitPlanMode", json!({})),
            Reply::turn().call("Write", json!({ "file_path": "a.txt", "content": "x" })),
            Reply::turn().text("Done."),
        ] {
            api.push(reply);
        }
        let approve = Answer::Approve { how: Approval::AcceptEdits };
        let ran = over(Harness::after(ran), &api, wire, model).prompt("on").answer(approve).run().await;
        assert!(ran.trace().ends_with("reply Done.\nturn ended Done"), "{wire:?}: {}", ran.trace());
        // Nothing that was sent once is sent otherwise later: neither a mode nor a new process changes the beginning.
        api.assert_clean();
        assert_eq!((ran.read("a.txt").as_str(), ran.session().facts().mode), ("x", Some(Mode::AcceptEdits)));
        let received = api.received();
        let sent: Vec<String> = received.iter().map(|request| tools(&request.body)).collect();
        assert!(sent.iter().all(|tools| *tools == sent[0]), "{wire:?}");
        for (at, want) in [
            (1, "Plan mode is on"),
            (2, "left"),
            (2, "in my own words"),
            (3, "plan mode changes only the plan file"),
            (6, "The user approved the plan"),
            (6, "1. Write a.txt."),
            (6, "Plan mode is over"),
        ] {
            assert!(received[at].raw.contains(want), "{wire:?}: no {want:?} in request {}", at + 1);
        }
    }
}

#[tokio::test]
async fn agents_side_by_side() {
    let launch = |reply: Reply, kind: &str, prompt: &str| {
        reply.call("Task", json!({ "description": "d", "prompt": prompt, "subagent_type": kind }))
    };
    for (wire, model) in MODELS {
        let first = launch(launch(launch(Reply::turn(), "Explore", "One."), "Explore", "Two."), "Plan", "Three.");
        let look = || Reply::turn().call("LS", json!({ "path": "." }));
        let mut replies = vec![first];
        // In any order: each looks, then reports.
        replies.extend((0..3).map(|_| look()));
        replies.extend((0..3).map(|_| Reply::turn().text("Seen.")));
        replies.push(Reply::turn().text("All seen."));
        let api = FakeApi::start(replies);
        api.allow_other_prefix();
        let harness = over(Harness::new(), &api, wire, model).set("agents.max_parallel = 3").mode(Mode::Plan);
        let ran = harness.prompt("go").run().await;
        let trace = ran.trace();
        api.assert_clean();
        assert!(trace.ends_with("reply All seen.\nturn ended Done"), "{wire:?}: {trace}");
        let received = api.received();
        assert_eq!(received.len(), 8, "{wire:?}");
        for request in &received[1..7] {
            let tools = request.body["tools"].to_string();
            let below = !tools.contains("\"Task\"") && !tools.contains("ExitPlanMode") && !tools.contains("\"Write\"");
            assert!(below && tools.contains("Grep"), "{wire:?}: {tools}");
        }
        for want in ["agent a1, Explore", "agent a2, Explore", "agent a3, Plan"] {
            assert!(received[7].raw.contains(want), "{wire:?}: {want}");
        }
    }
}
