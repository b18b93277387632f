//! The list of what runs in the background: kept up to date, and what its keys do.

use super::*;
use crate::protocol::report::{Load, Report, TaskRow};
use crate::session::entry::TaskSort;

fn row(task: &str, title: &str, tail: &str) -> TaskRow {
    TaskRow {
        task: task.to_owned(),
        sort: TaskSort::Shell,
        title: title.to_owned(),
        owner: None,
        load: Load::default(),
        ended: None,
        millis: Some(3_000),
        tail: vec![tail.to_owned()],
        output: format!("/s/tasks/{task}.output").into(),
    }
}

fn found(rows: &[TaskRow]) -> Event {
    Event::Report(Report::Tasks(rows.to_vec()))
}

/// What runs in the background is shown live, also between turns, until it is closed.
#[test]
fn the_list_of_what_runs_stays_up_to_date() {
    let found = |line: &str| found(&[row("b1", "make", line)]);
    const ASKS: &str = r#"{"op":"command","name":"tasks","args":""}"#;
    for busy in [false, true] {
        let mut run = Run::new(60, 24);
        if busy {
            run.busy();
        }
        run.event(found("one"));
        let screen = run.screen();
        assert!(screen.contains("▸ b1 make · 3 s") && screen.contains("one"), "{screen}");
        assert_eq!(run.sent(), "");
        let due = run.app.panel.as_ref().unwrap().due().unwrap();
        run.now = due;
        run.msg(Msg::Tick);
        assert_eq!(run.sent(), ASKS);
        run.event(found("two"));
        assert!(run.screen().contains("two"), "{}", run.screen());
        // The end of one is shown at once.
        run.event(Event::Background { running: vec![], ended: None });
        assert!(run.sent().ends_with(ASKS));
        // What comes of that opens nothing again.
        run.keys("<esc>").event(found("three"));
        assert!(run.app.panel.is_none());
        run.event(found("four"));
        assert!(run.app.panel.is_some());
    }
}

#[test]
fn keys_open_stop_and_tell_what_is_chosen() {
    let load = Load { doing: "Grep(parse)".into(), tools: 3, tokens: 12_300, usd: 0.02 };
    let agent = TaskRow {
        sort: TaskSort::Agent { id: "a1".into(), agent: "Explore".into() },
        load,
        ..row("a1", "Explore: find the parser", "> Grep(parse)")
    };
    let below = TaskRow { owner: Some("a1".into()), ..row("a1-b2", "make", "cc parse.c") };
    let over = TaskRow { ended: Some("completed (exit code 0)".into()), ..row("b1", "cargo test", "ok") };
    let rows = [agent, below, over];
    let mut run = Run::new(40, 12);
    run.event(found(&rows));
    insta::assert_snapshot!(run.screen());
    let mut run = Run::new(80, 24);
    run.event(found(&rows));
    insta::assert_snapshot!(run.screen());
    run.keys("<delete>");
    assert_eq!(run.sent(), r#"{"op":"command","name":"tasks","args":"stop a1"}"#);
    // The choice stays with its row when the list changes.
    run.keys("<down>").event(found(&[&rows[1..2], &rows[..]].concat())).keys("<delete>");
    assert!(run.sent().ends_with(r#"{"op":"command","name":"tasks","args":"stop a1-b2"}"#));
    run.event(found(&rows)).keys("<up><up><tab>");
    assert_eq!(run.app.composer.editor.text(), "/tasks tell a1 ");
    // What is being written is not the list's.
    run.sent();
    run.keys("<delete>");
    assert!(!run.sent().contains("stop"));
    let mut run = Run::new(80, 24);
    run.event(found(&rows)).keys("<down><down><delete>");
    assert_eq!(run.sent(), "");
    run.keys("<enter>");
    assert_eq!(run.sent(), "EditFile(\"/s/tasks/b1.output\")");
    run.keys("<up><up><enter>");
    assert!(run.app.pager.is_some());
}
