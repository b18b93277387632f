//! Sub-agents in the background: launched, moved, stopped, told something, and how each ended told to the model exactly once.

use std::process::{Child, Stdio};

use cocode::permission::Mode;
use cocode::protocol::{Answer, GrantScope, Op};
use serde_json::json;

use super::background::{ENDED, NOTICE, TOLD, calls, harness, killed_at, lines, says, until};
use super::support::harness::{Harness, Ran};
use super::support::program::{Program, end};

/// A step in which the model launches a sub-agent and does not wait for it.
fn launches(prompt: &str) -> String {
    launch(json!({"prompt": prompt, "run_in_background": true}))
}

fn launch(mut input: serde_json::Value) -> String {
    input["description"] = "the work".into();
    input["subagent_type"] = "general-purpose".into();
    calls("Task", input)
}

/// A step of a sub-agent.
fn below(reply: &str) -> String {
    format!("- for: agent:general-purpose\n  reply: [{reply}]\n")
}

fn bash(command: &str) -> String {
    below(&format!("tool: {{ name: Bash, input: {} }}", json!({ "command": command })))
}

const SAYS: &str = "- repeat: 9\n  reply: [text: Noted.]\n";

fn log_of(ran: &Ran, id: &str) -> String {
    std::fs::read_to_string(ran.log().parent().unwrap().join(format!("agent-{id}.jsonl"))).unwrap()
}

#[tokio::test]
async fn a_report_wakes_the_agent() {
    let script = launches("do it") + SAYS + &bash(&until("go")) + &below("text: All of it.");
    let ran = harness(&script).touch_at("turn ended", "go").prompt("go").wait_for(NOTICE).prompt("more").run().await;
    insta::assert_snapshot!(lines(&ran, &TOLD));
    let output = std::fs::read_to_string(ran.log().parent().unwrap().join("tasks/a1.output")).unwrap();
    insta::assert_snapshot!(output);
}

#[tokio::test]
async fn where_nobody_is_there_the_turn_waits_for_it() {
    let script = launches("do it") + SAYS + &bash(&until("go")) + &below("text: All of it.");
    let ran = harness(&script).unattended().touch_at("reply Noted.", "go").prompt("go").run().await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "reply Noted", NOTICE, "turn"]));
}

#[tokio::test]
async fn it_is_stopped_like_a_command() {
    let script = launches("do it")
        + &calls("TaskStop", json!({"task_id": "a9"}))
        + &calls("TaskStop", json!({"task_id": "a1"}))
        + SAYS
        + &below(&format!("text: First., tool: {{ name: Bash, input: {} }}", json!({"command": until("never")})));
    let ran = harness(&script).prompt("go").prompt("more").run().await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "item", NOTICE]));
}

#[tokio::test]
async fn the_user_moves_one_that_is_waited_for() {
    let script = launch(json!({"prompt": "do it"}))
        + SAYS
        + &bash(&format!("echo begun; {}", until("go")))
        + &below("text: All of it.");
    let harness = harness(&script).at("task a1 general-purpose Bash", Op::Background).touch_at("turn ended", "go");
    let ran = harness.prompt("go").wait_for(NOTICE).run().await;
    insta::assert_snapshot!(lines(&ran, &["toolresult", "item", NOTICE, "turn"]));
}

#[tokio::test]
async fn one_at_work_reads_what_it_is_told() {
    let script = launches("do it")
        + &launch(json!({"prompt": "Look at b.txt, too.", "resume": "a1"}))
        + SAYS
        + &bash(&until("go"))
        + &below("text: Both of them.");
    let tell = Op::Command { name: "tasks".into(), args: "tell a1 And hurry up.".into() };
    let harness =
        harness(&script).at("toolresult Ok: Agent a1 is still running", tell).touch_at("notice a1 reads", "go");
    let ran = harness.prompt("go").wait_for(NOTICE).run().await;
    insta::assert_snapshot!(lines(&ran, &["toolresult Ok: Agent a1 is still", "notice a1", NOTICE]));
    let log = log_of(&ran, "a1");
    assert!(log.contains("Look at b.txt, too.") && log.contains("And hurry up."), "{log}");
}

/// What came while it gave its last answer is read, too.
#[tokio::test]
async fn no_word_comes_too_late() {
    let script = launches("do it") + SAYS + &below("text: First.") + &below("text: Second.");
    let tell = Op::Command { name: "tasks".into(), args: "tell a1 More.".into() };
    let ran = harness(&script).at("task a1 general-purpose started", tell).prompt("go").wait_for(NOTICE).run().await;
    let log = log_of(&ran, "a1");
    let told = ran.trace().contains("a1 reads your message");
    assert_eq!(told, log.contains("More."), "{log}\n{}", ran.trace());
}

#[tokio::test]
async fn questions_of_several_carry_their_names() {
    let script = launches("one")
        + &launches("two")
        + SAYS
        + &bash("touch b")
        + &bash("touch c")
        + &below("text: Done.")
        + &below("text: Done.");
    let always = Answer::Always { rules: vec!["Bash(touch:*)".into()], scope: GrantScope::Session };
    let ran = Harness::new()
        .script(&script)
        .answer(always)
        .answer(Answer::Yes)
        .prompt("go")
        .wait_for(NOTICE)
        .wait_for(NOTICE)
        .run()
        .await;
    let trace = lines(&ran, &["ask"]);
    assert!(
        !trace.is_empty() && trace.lines().all(|line| line.starts_with("ask (general-purpose: the work) Bash touch ")),
        "{trace}"
    );
    assert_eq!(ran.session().facts().grants, ["Bash(touch:*)"]);
    assert!(ran.project().join("b").exists() && ran.project().join("c").exists());
}

/// What one changes between two turns is noted before, so that it can be undone.
#[tokio::test]
async fn undo_reaches_what_it_changes_meanwhile() {
    let script = launches("do it")
        + SAYS
        + &bash(&until("go"))
        + &below("tool: { name: Write, input: { file_path: $P/a.txt, content: new } }")
        + &below("text: Written.");
    let ran = harness(&script).touch_at("turn ended", "go").prompt("go").wait_for(NOTICE).prompt("/undo").run().await;
    assert!(ran.trace().contains(r#""type":"files_restored","how":"undo""#), "{}", ran.trace());
    assert!(!ran.project().join("a.txt").exists());
    let spent = ran.session().facts().spent_by_what();
    assert_eq!(spent.iter().map(|spent| spent.what.as_str()).collect::<Vec<_>>(), ["general-purpose"]);
}

#[tokio::test]
async fn its_failure_is_told() {
    let script = launches("do it") + SAYS + &below("error: { kind: bad_request, message: broken }");
    let ran = harness(&script).prompt("go").wait_for(NOTICE).run().await;
    let told = lines(&ran, &[NOTICE]);
    assert!(told.contains("Background agent a1 (the work) failed") && told.contains("The agent failed: "), "{told}");
}

#[tokio::test]
async fn one_that_ended_with_its_session_is_told_and_continues() {
    let script = launches("do it") + &says("It runs.") + &bash(&until("never"));
    let ran = harness(&script).prompt("go").wait_for("task a1 general-purpose Bash").run().await;
    insta::assert_snapshot!(lines(&ran, &["item"]));
    let script = launch(json!({"prompt": "And now?", "resume": "a1", "run_in_background": true}))
        + SAYS
        + &below("text: Resumed.");
    let ran = Harness::after(ran)
        .mode(Mode::Bypass)
        .script(&script)
        .prompt("one")
        .wait_for(ENDED)
        .prompt("/tasks")
        .run()
        .await;
    let told = lines(&ran, &["toolresult", "item", NOTICE]);
    assert!(told.contains("Agent a1.2 is running in the background"), "{told}");
    assert!(told.contains("Background agent a1.2 (the work) completed"), "{told}");
    assert_eq!(told.matches("Background agent a1 (the work) was stopped").count(), 1, "{told}");
}

/// Kills.
const POINTS: usize = 12;

fn begun(program: &Program) -> Child {
    let script = launches("one")
        + &launches("two")
        + "- repeat: 20\n  reply: [text: All run.]\n"
        + &bash("echo one; sleep 0.1")
        + &bash("echo two; sleep 0.1")
        + &below("text: Done.")
        + &below("text: Done.");
    let script = program.script("go.yaml", &script);
    let args =
        ["-p", "go", "--dangerously-skip-permissions", "--output-format", "stream-json", "--offline-script", &script];
    program.command(Program::binary(), &args).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_kill_neither_loses_nor_repeats_a_report() {
    let whole = end(begun(&Program::new().env("COCODE_SANDBOXED", "1")));
    assert_eq!(whole.code, Some(0), "{}", whole.out);
    for word in [
        r#""task_type":"local_agent""#,
        r#""subtype":"task_progress""#,
        r#""status":"async_launched""#,
        r#""tool_uses":1"#,
    ] {
        assert!(whole.out.contains(word), "{word}: {}", whole.out);
    }
    let mut random = fastrand::Rng::with_seed(15);
    for _ in 0..POINTS {
        killed_at(random.usize(1..whole.out.len()), begun, &["a1", "a2"]);
    }
}
