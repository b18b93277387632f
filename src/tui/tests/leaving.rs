//! Leaving while something runs in the background.

use super::*;

const ASKS: &str = "Exit? 2 tasks run in the background";
const SHUTDOWN: &str = r#"{"op":"shutdown"}"#;

fn running(count: usize) -> Event {
    let task = |n: usize| Begun::command(format!("b{n}"), CallId::nth(1), "make");
    Event::Background { running: (0..count).map(task).collect(), ended: None }
}

#[test]
fn who_leaves_commands_running_is_asked_once() {
    for (keys, asks, sent) in [
        ("<ctrl+d>", true, ""),
        ("/exit<enter>", true, r#"{"op":"remember","text":"/exit"}"#),
        ("<ctrl+c><ctrl+c>", true, ""),
        ("<ctrl+d><enter>", false, ""),
        ("<ctrl+d><down><enter>", false, SHUTDOWN),
        ("<ctrl+d><down><down><enter>", false, ""),
        ("<ctrl+d><esc>", false, ""),
        // The same key again, or the one that always ends, does not ask.
        ("<ctrl+d><ctrl+c>", false, SHUTDOWN),
        ("<ctrl+d><esc><ctrl+d>", true, ""),
    ] {
        let mut run = Run::new(80, 24);
        run.event(running(2)).keys(keys);
        assert_eq!((run.screen().contains(ASKS), run.sent().as_str()), (asks, sent), "{keys}");
    }
    let mut run = Run::new(80, 24);
    run.event(running(0)).keys("<ctrl+d>");
    assert_eq!(run.sent(), SHUTDOWN);
}

#[test]
fn waiting_ends_with_the_last_command() {
    let mut run = Run::new(80, 24);
    run.event(running(2)).keys("<ctrl+d><enter>");
    assert!(run.screen().contains("exiting once the background tasks have ended"), "{}", run.screen());
    run.event(running(1));
    assert_eq!(run.sent(), "");
    run.event(running(0));
    assert_eq!(run.sent(), SHUTDOWN);
}

#[test]
fn what_has_ended_is_not_asked_about() {
    let mut run = Run::new(80, 24);
    run.event(running(2)).keys("<ctrl+d>").event(running(0));
    let screen = run.screen();
    assert!(!screen.contains("Exit?") && screen.contains("you can exit now"), "{screen}");
    assert_eq!(run.keys("<ctrl+d>").sent(), SHUTDOWN);
}

#[test]
fn a_key_ends_the_waiting_and_work_is_not_cut_off() {
    let mut run = Run::new(80, 24);
    run.event(running(1)).keys("<ctrl+d><enter>x").event(running(0));
    assert_eq!((run.sent().as_str(), run.app.draft().text.as_str()), ("", "x"));

    let mut run = Run::new(80, 24);
    run.busy().event(running(1)).keys("<ctrl+d><enter>").event(running(0));
    assert_eq!(run.sent(), "");
    let ended = Turn::Ended { end: TurnEnd::Done, usage: Default::default(), cost_usd: None, millis: 1 };
    run.event(Event::Turn(ended));
    assert_eq!(run.sent(), SHUTDOWN);
}

#[test]
fn the_question_fits_a_small_screen() {
    let mut run = Run::new(40, 12);
    run.event(running(1)).keys("<ctrl+d>");
    assert_snapshot!(run.screen(), @r"
        ───
        Exit? 1 task runs in the background
        filter: ▏
        › Wait, then exit
          Stop and exit  What they wrote is kept
          Stay
        type to filter · ↑↓ Enter choose
        ask first · 1 in background · … · ? keys
        ");
}
