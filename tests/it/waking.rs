//! How far the agent continues by itself, as commands in the background end.

use cocode::protocol::Op;

use super::background::{ENDED, NOTICE, calls, harness, lines, says, starts, until};
use super::support::harness::Ran;

/// A command that ends once so many turns have.
fn after_turns(turns: usize) -> String {
    format!(
        r#"until [ "$(cat ../.claude/*/transcript.jsonl | grep -c '"kind":"turn_ended"')" -ge {turns} ]; do sleep 0.01; done"#
    )
}

/// A model that starts another command whenever it is told of an end.
fn restless(turns: usize) -> String {
    (1..=turns).map(|turn| starts(&after_turns(turn)) + &says("On.")).collect()
}

fn count(ran: &Ran, start: &str) -> usize {
    ran.trace().lines().filter(|line| line.starts_with(start)).count()
}

const HELD: &str = "notice The agent has continued 20 times in a row";

#[tokio::test]
async fn a_model_that_starts_one_for_each_end_is_stopped() {
    let script = restless(22) + "- repeat: 9\n  reply: [text: Told.]\n";
    let ran = harness(&script).prompt("go").wait_for(HELD).prompt("continue").run().await;
    // One turn of a prompt, one because of what that started, and 20 by itself; then the prompt.
    assert_eq!((count(&ran, "turn started"), count(&ran, NOTICE), count(&ran, HELD)), (23, 22, 1), "{}", ran.trace());
    let end = lines(&ran, &["prompt", NOTICE, "notice", "turn"]).lines().rev().take(5).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(end, @r"
        turn ended Done
        attachment <system-reminder>⏎Background command b22 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        prompt continue
        turn started
        notice The agent has continued 20 times in a row because background tasks of its own ended, so now it waits for you: your next prompt tells it what ended. `continue` is enough.
        ");
}

#[tokio::test]
async fn the_turn_limit_counts_over_them() {
    let ran =
        harness(&restless(4)).max_turns(5).prompt("go").wait_for("notice Your next prompt").prompt("more").run().await;
    insta::assert_snapshot!(lines(&ran, &["prompt", NOTICE, "notice", "turn ended"]), @r"
        prompt go
        turn ended Done
        attachment <system-reminder>⏎Background command b1 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Done
        attachment <system-reminder>⏎Background command b2 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended MaxTurns
        notice Your next prompt tells the agent what ended in the background. `continue` is enough.
        prompt more
        attachment <system-reminder>⏎Background command b3 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Done
        ");
}

#[tokio::test]
async fn an_interrupt_ends_the_chain() {
    let script = starts(&until("first"))
        + &says("It runs.")
        + &starts(&until("second"))
        + &calls("Bash", serde_json::json!({"command": "echo begun; sleep 1000"}))
        + "- repeat: 9\n  reply: [text: Told.]\n";
    let harness = harness(&script)
        .touch_at("turn ended Done", "first")
        .at("output begun", Op::Interrupt)
        .touch_at("turn ended Interrupted", "second");
    let ran = harness.prompt("go").wait_for("notice The agent was stopped").prompt("more").run().await;
    insta::assert_snapshot!(lines(&ran, &["prompt", NOTICE, "notice", "item {\"type\":\"note\"", "turn"]), @r#"
        turn started
        prompt go
        turn ended Done
        item {"type":"note","text":"Background command b1 (the run) completed (exit code 0) after a while"}
        turn started
        attachment <system-reminder>⏎Background command b1 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Interrupted
        item {"type":"note","text":"Background command b2 (the run) completed (exit code 0) after a while"}
        notice The agent was stopped, so it waits for you: your next prompt tells it what ended. `continue` is enough.
        turn started
        prompt more
        attachment <system-reminder>⏎Background command b2 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Done
        "#);
}

#[tokio::test]
async fn an_interrupt_between_two_turns_ends_the_chain() {
    let script = starts(&until("first"))
        + &says("It runs.")
        + &starts(&until("second"))
        + "- repeat: 9\n  reply: [text: Told.]\n";
    let harness = harness(&script)
        .touch_at("turn ended", "first")
        // It is served once nothing runs.
        .at("notice Nothing to undo", Op::Interrupt)
        .touch_at("notice The agent was stopped", "second");
    let ran = harness.prompt("go").wait_for(NOTICE).prompt("/undo").wait_for(ENDED).prompt("more").run().await;
    insta::assert_snapshot!(lines(&ran, &["prompt", NOTICE, "notice", "item {\"type\":\"note\"", "turn"]), @r#"
        turn started
        prompt go
        turn ended Done
        item {"type":"note","text":"Background command b1 (the run) completed (exit code 0) after a while"}
        turn started
        attachment <system-reminder>⏎Background command b1 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Done
        notice Nothing to undo.
        notice The agent was stopped, so it waits for you: your next prompt tells it what ended. `continue` is enough.
        item {"type":"note","text":"Background command b2 (the run) completed (exit code 0) after a while"}
        turn started
        prompt more
        attachment <system-reminder>⏎Background command b2 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Done
        "#);
}

#[tokio::test]
async fn an_interrupt_before_the_first_end_holds_it_back() {
    let script = starts(&until("first")) + "- repeat: 9\n  reply: [text: Told.]\n";
    let harness =
        harness(&script).at("notice Nothing to undo", Op::Interrupt).touch_at("notice The agent was stopped", "first");
    let ran = harness.prompt("go").prompt("/undo").wait_for(ENDED).prompt("more").run().await;
    insta::assert_snapshot!(lines(&ran, &["prompt", NOTICE, "notice The", "item {\"type\":\"note\"", "turn"]), @r#"
        turn started
        prompt go
        turn ended Done
        notice The agent was stopped, so it waits for you: your next prompt tells it what ended. `continue` is enough.
        item {"type":"note","text":"Background command b1 (the run) completed (exit code 0) after a while"}
        turn started
        prompt more
        attachment <system-reminder>⏎Background command b1 (the run) completed (exit code 0) after a while. It wrote nothing.⏎</system-reminder>
        turn ended Done
        "#);
}
