//! Dialogs, lists and the pager, by keys and screens.

use std::time::Duration;

use insta::assert_snapshot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

use super::{Run, ask, prompt};
use crate::message::{CallId, FileDiff};
use crate::permission::Behavior;
use crate::protocol::*;
use crate::protocol::{Listed, ModelRow, RuleRow};
use crate::tui::dialog::Dialog;
use crate::tui::msg::Msg;
use crate::tui::pager::Pager;
use crate::tui::view;

#[test]
fn permission_is_asked_at_every_size() {
    let mut run = Run::new(40, 12);
    run.event(ask(
        1,
        "npm run build -- --mode 日本語 && npm run deploy --force",
        &["Bash(npm run build:*)", "Bash(npm run deploy:*)"],
    ));
    run.live();
    assert_snapshot!(run.screen(), @r"
    ── Bash wants to run a command ───
    npm run build -- --mode 日本語 && npm
    run deploy --force
    · npm is not known to be read-only
    “Yes, always” would stop asking for
    these:
    Bash(npm run build:*)
    › 1. (read to the end first) Yes
      2. (read to the end first) Yes, always
      3. No, and say why                   n
    PgDn: 1 more rows to read before Yes · …
    default · … · ? keys
    ");
    run.keys("<right>");
    assert_snapshot!(run.screen(), @r"
    ── Bash wants to run a command ───
    npm run build -- --mode 日本語 && npm
    run deploy --force
    · npm is not known to be read-only
    “Yes, always” would stop asking for
    these:
    Bash(npm run build:*)
      1. (read to the end first) Yes
    › 2. (read to the end first) Yes, always
      3. No, and say why                   n
    PgDn: 1 more rows to read before Yes · …
    default · … · ? keys
    ");
    run.keys("<enter>");
    assert_snapshot!(
        run.sent(),
        @r#""#
    );
}

#[test]
fn diffs_scroll_in_the_dialog() {
    let mut run = Run::new(40, 12);
    let unified: String = (1..=30).map(|n| format!("+line {n}\n")).collect();
    let diff = FileDiff { path: "src/new.rs".into(), unified, added: 30, removed: 0, created: true };
    let question = Question::Permission {
        call: CallId::nth(1),
        tool: "Write".into(),
        title: "src/new.rs".into(),
        input: json!({}),
        diff: Some(diff),
        reasons: Vec::new(),
        suggestions: Vec::new(),
        all_edits: false,
    };
    run.event(Event::Ask(Ask { id: AskId(1), question, asker: None })).live().keys("<pgdn>");
    assert_snapshot!(run.screen(), @r"
    ── Write wants to create src/new.rs (… ───
     7 + line 7
     8 + line 8
     9 + line 9
    10 + line 10
    11 + line 11
    12 + line 12
    13 + line 13
    › 1. Yes                               y
      2. No, and say why                   n
    PgUp/PgDn 6↑ 17↓ · Enter choose · Esc no
    default · … · ? keys
    ");
}

#[test]
fn lists_open_while_a_turn_runs() {
    let mut run = Run::new(80, 10);
    run.busy().keys("/model<enter>");
    assert!(run.sent().contains(r#"{"op":"list","what":"models"}"#));
}

#[test]
fn a_memory_file_is_opened_by_number_or_from_the_list() {
    let rows = || {
        let row = |path: &str| MemoryRow { path: path.into(), lines: Some(2) };
        Msg::Engine(Event::Listed(Listed::Memory(vec![row("/home/AGENTS.md"), row("/w/AGENTS.md")])))
    };
    for keys in ["/memory 2<enter>", "/memory<enter>"] {
        let mut run = Run::new(80, 24);
        run.keys(keys).msg(rows());
        if keys == "/memory<enter>" {
            run.keys("<down><enter>");
        }
        assert!(run.effects.iter().any(|effect| effect.contains(r#"EditFile("/w/AGENTS.md")"#)), "{:?}", run.effects);
    }
}

#[test]
fn lists_filter_and_choose() {
    let mut run = Run::new(60, 24);
    run.keys("/model<enter>");
    let row = |id: &str, current| ModelRow { id: id.into(), detail: "200k".into(), current };
    run.msg(Msg::Engine(Event::Listed(Listed::Models(vec![
        row("claude-opus", false),
        row("claude-sonnet", true),
        row("gpt-5", false),
    ]))));
    run.keys("son");
    assert_snapshot!(run.screen(), @r"
    ───
    Which model?
    filter: son▏
    › claude-sonnet                                       ✓ 200k


    type to filter · ↑↓ Enter choose · Esc close
    default · … · ? keys
    ");
    run.keys("<enter>/permissions<enter>");
    let rule =
        RuleRow { rule: "Bash(ls:*)".into(), behavior: Behavior::Allow, source: "session".into(), revocable: true };
    run.msg(Msg::Engine(Event::Listed(Listed::Rules(vec![rule])))).keys("<enter><enter>");
    run.keys("/permissions<enter>rm x<tab>");
    assert_snapshot!(run.sent(), @r#"
    {"op":"remember","text":"/model"}
    {"op":"list","what":"models"}
    {"op":"command","name":"model","args":"claude-sonnet"}
    {"op":"remember","text":"/permissions"}
    {"op":"list","what":"rules"}
    {"op":"command","name":"permissions","args":"revoke Bash(ls:*)"}
    {"op":"list","what":"rules"}
    {"op":"command","name":"permissions","args":"test rm x"}
    "#);
}

#[test]
fn the_pager_shows_keys_and_says_that_a_question_waits() {
    let mut run = Run::new(40, 12);
    run.keys("?");
    let draw = |run: &Run| {
        let mut buf = Buffer::empty(Rect::new(0, 0, 40, 12));
        view::draw_over(&run.app, buf.area, &mut buf);
        let row = |y: u16| (0..40).map(|x| buf[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        [row(0), row(1), row(11)].join("\n")
    };
    assert_snapshot!(draw(&run), @r"
    Compose
    Enter          send; while the agent
    11/122 · ↑↓ PgUp PgDn g G scroll · / se…
    ");
    run.event(ask(1, "ls", &[]));
    assert_snapshot!(draw(&run), @r"
    Compose
    Enter          send; while the agent
    A question is waiting · q back
    ");
    // Below the pager it goes nowhere, and comes up again from behind it.
    run.wait(9_000).frame().wait(9_000).keys("q");
    assert!(run.app.asks.open().is_none());
    run.live().keys("<ctrl+o>");
    assert!(run.app.pager().is_some_and(Pager::live));
    run.keys("<ctrl+o>").frame().wait(499).keys("<enter>");
    assert_eq!(run.sent(), "");
    run.wait(500).keys("1");
    assert_eq!(run.sent(), r#"{"op":"answer","id":1,"answer":{"type":"yes"}}"#);
}

#[test]
fn the_viewer_takes_in_what_comes_four_times_a_second() {
    let mut run = Run::new(60, 6);
    let top = |run: &Run| {
        let mut buf = Buffer::empty(Rect::new(0, 0, 60, 6));
        view::draw_over(&run.app, buf.area, &mut buf);
        (0..60).map(|x| buf[(x, 0)].symbol()).collect::<String>().trim_end().to_owned()
    };
    run.keys("<ctrl+o>").event(Event::Notice { text: "news".into() });
    assert_eq!(run.app.wake(run.now), Some(run.now + Duration::from_millis(250)));
    assert_eq!((top(run.wait(249)), top(run.wait(1))), (String::new(), "· news".into()));
    assert_eq!(run.app.wake(run.now), None);
}

#[test]
fn going_back_puts_the_prompt_into_the_composer() {
    let mut run = Run::new(60, 16);
    run.event(prompt(1, "first")).event(prompt(5, "second\nline")).keys("/rewind<enter>");
    assert_snapshot!(run.screen(), @r"
    ───
    Rewind to before which prompt?
    filter: ▏
    › second⏎line
      first
    type to filter · ↑↓ Enter choose · Esc close
    default · … · ? keys
    ");
    run.keys("<enter><enter>");
    assert_eq!(run.sent().lines().last(), Some(r#"{"op":"rewind","to":5,"what":"both"}"#));
    run.event(Event::Item(Item::Rewound { to: 5, prompt: "second\nline".into() }));
    assert_eq!(run.app.draft(), "second\nline");
    run.keys("<ctrl+c>/rewind<enter>").keys("<down>");
    run.keys("<enter><enter>");
    assert_eq!(run.sent().lines().last(), Some(r#"{"op":"rewind","to":1,"what":"both"}"#));
}

#[test]
fn a_tall_question_covers_the_screen_and_a_short_one_does_not() {
    let many: Vec<String> = (0..30).map(|n| format!("echo {n} && \\\n")).collect();
    for (command, size, want) in [
        ("ls".to_owned(), (80, 24), false),
        (many.concat(), (80, 24), true),
        (many.concat(), (80, 60), false),
        ("ls".to_owned(), (40, 6), true),
    ] {
        let mut run = Run::new(size.0, size.1);
        run.event(ask(1, &command, &["Bash(echo:*)"])).live();
        assert_eq!(run.app.covers(), want, "{size:?}");
        // The field for words is short; it stays where the question was.
        run.keys("n");
        assert_eq!(run.app.covers(), want, "{size:?}");
        run.msg(Msg::Resize(80, 60));
        assert!(!run.app.covers(), "{size:?}");
    }
}

#[test]
fn a_question_of_a_sub_agent_names_it() {
    let asker = Some(Asker { agent: "Explore".into(), description: "find the parser".into() });
    let question = Question::Locked { session: "s".into() };
    let dialog = Dialog::new(Ask { id: AskId(1), question, asker });
    assert!(dialog.headline().starts_with("Explore (find the parser): "), "{}", dialog.headline());
}
