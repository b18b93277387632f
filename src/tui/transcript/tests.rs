//! Events in, rows out: order, once each, and the same however they come.

mod floods;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::commands::Registry;
use crate::message::{Block, Display, FileDiff, Outcome, ToolCall, ToolResult, Usage};
use crate::permission::Mode;
use crate::protocol::{self, Author, ChangedBy, Delta, Event, HistoryItem, Item, Listed, ModelInfo, Part, Turn};
use crate::tui::app::{App, Options};
use crate::tui::cell::Detail;
use crate::tui::keymap::Keymap;
use crate::tui::render::highlight::Runs;
use crate::tui::render::highlight::beside::{Coloured, Job};
use crate::tui::render::wrap::{shown, spans_width};

/// A view with a clock and everything that its transcript handed out.
struct Screen {
    app: App,
    theme: Theme,
    width: u16,
    now: Instant,
    given: Vec<Row>,
}

impl Screen {
    fn new() -> Screen {
        let options = Options {
            theme: Theme::dark(),
            theme_name: "dark".into(),
            highlight: true,
            keymap: Keymap::default(),
            commands: Registry::of(Vec::new()),
            reduced_motion: true,
            notifications: false,
        };
        let app = App::new(options, (60, 20));
        Screen { app, theme: Theme::dark(), width: 60, now: Instant::now(), given: Vec::new() }
    }

    fn apply(&mut self, events: impl IntoIterator<Item = Event>) -> &mut Screen {
        for event in events {
            self.app.apply(event, self.now);
            let rows = self.app.transcript.take_committed(self.width, &self.theme, Share::ALL);
            assert!(rows.iter().all(|row| spans_width(&row.line.spans) <= usize::from(self.width)));
            self.given.extend(rows);
        }
        self
    }

    fn after(&mut self, seconds: u64) -> &mut Screen {
        self.now += Duration::from_secs(seconds);
        self
    }

    fn given(&self) -> String {
        shown(&self.given)
    }

    fn live(&self, height: u16) -> String {
        shown(&self.app.transcript.live(self.width, height, &self.theme, self.now))
    }
}

fn text(text: &str) -> Event {
    Event::Delta(Delta::Text { text: text.into() })
}

fn thinking(text: &str) -> Event {
    Event::Delta(Delta::Thinking { text: text.into() })
}

fn message(message: Message) -> Event {
    Event::Item(Item::Message { seq: 0, message: Arc::new(message) })
}

fn prompt(text: &str) -> Event {
    message(Message::prompt(text))
}

fn reply(text: &str) -> Event {
    message(Message::reply(vec![Block::text(text)]))
}

fn tool_call(n: u64, name: &str, input: serde_json::Value) -> Block {
    let title = input.as_object().and_then(|input| input.values().next()?.as_str()?.lines().next()).map(str::to_owned);
    Block::ToolCall(ToolCall { title, ..ToolCall::new(CallId::nth(n), name, input) })
}

fn started(n: u64, tool: &str, title: &str) -> Event {
    Event::Item(Item::CallStarted { call: CallId::nth(n), tool: tool.into(), title: title.into() })
}

fn done(n: u64, outcome: Outcome, text: &str) -> Event {
    let result = ToolResult::of_text(CallId::nth(n), outcome, text);
    Event::Item(Item::Message { seq: 0, message: Arc::new(Message::tool_results(vec![result])) })
}

fn told(n: u64, line: &str) -> Event {
    let display = Some(Display::Line { text: line.into() });
    let result = ToolResult { display, ..ToolResult::of_text(CallId::nth(n), Outcome::Ok, "x") };
    Event::Item(Item::Message { seq: 0, message: Arc::new(Message::tool_results(vec![result])) })
}

fn output(n: u64, text: &str) -> Event {
    Event::Delta(Delta::ToolOutput { call: CallId::nth(n), text: text.into() })
}

fn ended(end: TurnEnd, millis: u64) -> Event {
    Event::Turn(Turn::Ended { end, usage: Usage::default(), cost_usd: None, millis })
}

fn session(probing: bool, history: Vec<HistoryItem>) -> Event {
    let model = ModelInfo {
        provider: "offline".into(),
        model: "scripted".into(),
        window: 1000,
        known: true,
        probing,
        local: false,
    };
    let (cwd, log) = (PathBuf::from("/code"), PathBuf::from("/log"));
    let older = history.len() as u64;
    Event::Session(SessionInfo {
        id: "1".into(),
        cwd,
        title: None,
        mode: Mode::Default,
        model,
        tools: Vec::new(),
        history,
        older,
        log,
        read_only: false,
        sandbox: crate::sandbox::Status { level: crate::sandbox::Level::Kernel, why: "why".into() },
        servers: Vec::new(),
        plugins: Default::default(),
        agents: Vec::new(),
        output_style: String::new(),
    })
}

#[test]
fn a_turn_from_prompt_to_end() {
    let mut screen = Screen::new();
    screen.apply([session(false, Vec::new()), Event::Turn(Turn::Started), prompt("fix it")]);
    screen.apply([thinking("hm, let me"), thinking(" see")]);
    assert_eq!(screen.after(3).live(9), "\n✻ thinking… 3 s\n  hm, let me see");
    screen.apply([Event::Thinking(crate::protocol::Thinking::Complete { tokens: 3_120 })]);
    screen.apply([text("Looking at "), text("it.\n\nFirst")]);
    assert_eq!(screen.live(9), "\nFirst");
    let blocks = vec![
        Block::Thinking { text: "hm, let me see".into(), wire: None },
        Block::text("Looking at it.\n\nFirst."),
        tool_call(1, "Read", json!({"file_path": "/code/a.rs"})),
        tool_call(2, "Grep", json!({"pattern": "x"})),
        tool_call(3, "Bash", json!({"command": "rm x"})),
    ];
    screen.apply([text("."), message(Message::reply(blocks))]);
    screen.apply([started(1, "Read", "/code/a.rs"), started(2, "Grep", "x"), output(2, "one\ntwo\n")]);
    assert_eq!(screen.live(9), "\n○ Reading a.rs\n\n○ Searching for x\n  └ one\n    two");
    screen.apply([told(2, "2 lines"), told(1, "1 line"), done(3, Outcome::Denied, "No.")]);
    let results = [1, 2, 3].map(|n| ToolResult::of_text(CallId::nth(n), Outcome::Ok, "again"));
    screen.apply([message(Message::tool_results(results.into())), text("Done."), reply("Done.")]);
    screen.apply([ended(TurnEnd::Done, 12_000)]);
    assert_eq!(screen.live(9), "");
    insta::assert_snapshot!("a_turn", screen.given());
    assert_eq!(screen.app.transcript.last_answer(), Some("Done."));
}

#[test]
fn a_resumed_session_looks_as_it_did() {
    let diff =
        FileDiff { path: "a.rs".into(), unified: "@@ -1 +1 @@\n-a\n+b\n".into(), added: 1, removed: 1, created: false };
    let mut result = ToolResult::of_text(CallId::nth(1), Outcome::Ok, "ok");
    result.display = Some(Display::Diff(diff));
    let call = tool_call(1, "Edit", json!({"file_path": "/code/a.rs", "old_string": "a"}));
    let lost = tool_call(2, "Bash", json!({"command": "sleep 1\nsleep 2"}));
    let messages = [
        Message::prompt("change it"),
        Message::reply(vec![Block::text("On it."), call]),
        Message::tool_results(vec![result]),
        Message::reminder("not shown"),
        Message::reply(vec![Block::text("Now this:\n\n```sh\nls\n```"), lost]),
    ];
    let item = |message| HistoryItem::Message { seq: 0, message: Arc::new(message) };
    let mut history: Vec<HistoryItem> = messages.into_iter().map(item).collect();
    history.push(HistoryItem::Note { text: "Undid the changes of /code/a.rs, /b".into() });
    history.push(HistoryItem::Shell { command: "ls".into(), output: "a\nb\n[Exit code 2]".into(), code: Some(2) });
    let mut screen = Screen::new();
    screen.apply([session(false, history)]);
    insta::assert_snapshot!("resumed", screen.given());
    let code = CodeBlock { language: "sh".into(), code: "ls\n".into() };
    assert_eq!(screen.app.transcript.code_blocks(), [code]);
}

#[test]
fn the_final_message_replaces_only_what_was_not_given() {
    let check = |deltas: &[&str], last: &str, given: &str| {
        let mut screen = Screen::new();
        screen.apply(deltas.iter().map(|delta| text(delta)));
        screen.apply([reply(last)]);
        assert_eq!((screen.given().as_str(), screen.live(9).as_str()), (given, ""), "{deltas:?} {last:?}");
    };
    check(&["one\n\ntw", "o"], "one\n\ntwo", "one\n\ntwo");
    check(&["one\n\ntw"], "one\n\ntwo and more", "one\n\ntwo and more");
    check(&["one\n\ntwo"], "one\n\nthree", "one\n\nthree");
    check(&["one"], "other", "other");
    check(&["one\n\ntwo"], "other", "one\n\nother");
    check(&[], "only\n\nthis", "only\n\nthis");
    check(&["\n\n"], "", "");
}

#[test]
fn what_was_discarded_leaves_a_note_only_where_it_was_seen() {
    let discarded = || Event::Delta(Delta::Discarded { reason: "cut off".into() });
    let mut screen = Screen::new();
    screen.apply([text("unseen"), discarded()]);
    assert_eq!((screen.given().as_str(), screen.live(9).as_str()), ("", ""));
    screen.apply([text("seen\n\nunseen"), discarded(), text("Again."), reply("Again.")]);
    assert_eq!(
        screen.given(),
        "seen\n\n· this answer was discarded and is not in the conversation:\n  cut off\n\nAgain."
    );
}

#[test]
fn retries_count_down_and_become_one_row() {
    let retry = |attempt| Event::Retrying { attempt, of: 3, delay_ms: 4_000, reason: "overloaded".into() };
    let mut screen = Screen::new();
    screen.apply([prompt("x"), retry(1)]).after(1).apply([retry(2)]);
    assert_eq!(screen.after(1).live(9), "\n↻ overloaded · retry 2 of 3 in 3 s");
    screen.apply([text("ok"), reply("ok")]);
    assert_eq!(screen.given(), "> x\n\n↻ overloaded · retried 2 times\n\nok");
}

#[test]
fn what_only_looks_is_one_line() {
    let looks = |n: u64, tool: &str, title: &str| [started(n, tool, title), told(n, "1 line")];
    let mut screen = Screen::new();
    screen.apply([Event::Turn(Turn::Started), prompt("look")]);
    screen.apply(looks(1, "Read", "a.rs"));
    // More may follow, also in the next reply.
    assert_eq!((screen.given().as_str(), screen.live(9).as_str()), ("> look", "\n● Read a.rs  1 line"));
    screen.apply([reply("")]).apply(looks(2, "Read", "a.rs")).apply(looks(3, "Read", "b.rs"));
    screen.apply([started(4, "LS", "src")]);
    assert_eq!(screen.live(9), "\n● Read 2 files (ctrl+o)\n○ Listing src");
    screen.apply([told(4, "2 entries")]).apply(looks(5, "Grep", "x")).apply(looks(6, "Glob", "*"));
    assert_eq!(screen.given(), "> look");
    let all = "Read 2 files, listed 1 folder, searched twice (ctrl+o)";
    assert_eq!(screen.live(9), format!("\n● {all}"));
    screen.apply([started(7, "Bash", "make")]);
    assert_eq!(screen.given(), format!("> look\n\n● {all}"));
    screen.apply([done(7, Outcome::Ok, "")]);
    // What failed, or was said in between, is a line of its own.
    screen.apply(looks(8, "Read", "c.rs"));
    screen.apply([started(9, "Read", "no.rs"), done(9, Outcome::Error, "no.rs does not exist")]);
    screen.apply([text("Well.\n\n"), reply("Well.")]).apply(looks(10, "Read", "d.rs")).apply(looks(11, "Read", "e.rs"));
    assert_eq!(screen.live(9), "\n● Read 2 files (ctrl+o)");
    screen.apply([ended(TurnEnd::Done, 10)]);
    assert_eq!(screen.live(9), "");
    let want = format!(
        "> look\n\n● {all}\n● Ran make\n● Read c.rs  1 line\n\n✗ Read no.rs\n  └ no.rs does not exist\n\nWell.\n\n● Read 2 files (ctrl+o)"
    );
    assert_eq!(screen.given(), want);
    // A long row of them does not wait in memory for its end.
    screen.given.clear();
    screen.apply([Event::Turn(Turn::Started)]);
    for n in 100..250 {
        screen.apply(looks(n, "Grep", "x"));
    }
    assert_eq!(
        (screen.given().trim(), screen.live(9).as_str()),
        ("● Searched 100 times (ctrl+o)", "● Searched 50 times (ctrl+o)")
    );
    // What git says is for the model.
    screen.apply(looks(300, "Bash", "git status --short")).apply(looks(301, "Bash", "git diff --cached"));
    assert_eq!(screen.live(9), "● Searched 50 times, checked git twice (ctrl+o)");
    // The viewer has each of them, under its name.
    let whole = shown(&screen.app.transcript.history.rows(60, &Theme::dark(), Detail::Whole));
    assert!(whole.contains("● Read(a.rs)  1 line") && whole.contains("● Glob(*)  1 line"), "{whole}");
}

#[test]
fn calls_without_a_result_do_not_hold_up_the_rest() {
    let mut screen = Screen::new();
    screen.apply([started(1, "Bash", "sleep 100"), output(1, "half\n")]);
    screen.apply([Event::Notice { text: "news".into() }]);
    assert_eq!(screen.given(), "");
    screen.apply([ended(TurnEnd::Interrupted, 100)]);
    assert_eq!(screen.given(), "■ Run sleep 100  interrupted\n  └ half\n\n· news\n\n· interrupted");
}

#[test]
fn shell_lines_rewinds_and_restores() {
    let mut screen = Screen::new();
    screen.apply([session(false, Vec::new())]);
    screen.given.clear();
    screen.apply([Event::Item(Item::ShellStarted { command: "ls".into() })]);
    assert_eq!((screen.given().as_str(), screen.live(9).as_str()), ("", "\n! ls"));
    let item = |item| Event::Item(item);
    screen.apply([
        item(Item::ShellDone { command: "ls".into(), output: "a\n".into(), code: Some(0) }),
        item(Item::Rewound { to: 3, prompt: "do this\nand that".into() }),
        item(Item::FilesRestored {
            how: Restore::Undo,
            turn: Some("do this".into()),
            restored: vec!["/code/a".into()],
            merged: vec!["/code/a".into()],
            refused: vec!["/code/b was deleted since".into()],
            by: vec![ChangedBy {
                path: "/code/a".into(),
                by: vec![Author { command: "rm a".into(), agent: Some("Explore".into()) }],
            }],
            unseen: vec!["make".into()],
        }),
        item(Item::FilesRestored {
            how: Restore::Undo,
            turn: Some("do this".into()),
            restored: vec![],
            merged: vec![],
            refused: vec!["/code/b was deleted since".into(), "/code/c was changed since".into()],
            by: vec![],
            unseen: vec![],
        }),
        Event::Error { text: "no key".into(), restore: None },
    ]);
    insta::assert_snapshot!("shell_and_undo", screen.given());
}

#[test]
fn the_names_of_files_that_were_put_back_stay_whole() {
    let mut screen = Screen::new();
    screen.apply([session(false, Vec::new())]);
    screen.given.clear();
    let names = ["src/some-part/first-file.rs", "src/some-part/second-file.rs", "src/some-part/third-file.rs"];
    screen.apply([Event::Item(Item::FilesRestored {
        how: Restore::Undo,
        turn: Some("a turn with a long name, cut…".into()),
        restored: names.iter().map(|name| format!("/code/{name}").into()).collect(),
        merged: vec![],
        refused: vec![],
        by: vec![],
        unseen: vec![],
    })]);
    let given = screen.given();
    for name in names {
        assert!(given.contains(name), "{name}: {given}");
    }
}

#[test]
fn what_follows_code_waits_with_it_for_its_colours() {
    let mut screen = Screen::new();
    screen.app.transcript.scrollback.colour_beside();
    screen.apply([text("So:\n```rust\nlet a = 1;\n```\n"), reply("So:\n```rust\nlet a = 1;\n```\n")]);
    screen.apply([prompt("thanks")]);
    assert_eq!(screen.given(), "So:");
    assert_eq!(screen.live(20), "\nlet a = 1;\n\n> thanks");
    let Some((stream, jobs)) = screen.app.transcript.scrollback.take_jobs() else {
        panic!("the line is to be coloured")
    };
    assert_eq!(jobs, [Job::Open("rust".into()), Job::Line("let a = 1;".into())]);
    screen.app.transcript.scrollback.coloured(Coloured { stream, lines: vec![Runs::default()], peeked: None });
    let rows = screen.app.transcript.take_committed(60, &screen.theme, Share::ALL);
    screen.given.extend(rows);
    assert_eq!((screen.given().as_str(), screen.live(20).as_str()), ("So:\n\nlet a = 1;\n\n> thanks", ""));
}

#[test]
fn the_live_region_keeps_to_its_height() {
    let mut screen = Screen::new();
    let lines: String = (0..20).map(|line| format!("{line}\n")).collect();
    screen.apply((1..=3).flat_map(|n| [started(n, "Bash", "make"), output(n, &lines)]));
    assert_eq!(screen.live(40).lines().count(), 3 * 6 + 2);
    assert_eq!(screen.live(14).lines().count(), 3 * 4 + 2);
    assert_eq!(screen.live(4), "○ Running make\n○ Running make\n○ Running make");
    assert_eq!(screen.live(2), "○ Running make\n○ Running make");
    assert_eq!(screen.live(0), "");
    let mut screen = Screen::new();
    screen.apply([text(&"word ".repeat(100))]);
    assert_eq!(screen.live(3).lines().count(), 3);
}

#[test]
fn a_model_still_looked_for_is_named_when_found() {
    let mut screen = Screen::new();
    screen.apply([session(true, Vec::new())]);
    assert!(screen.live(9).contains("looking for a model…"), "{}", screen.live(9));
    let Event::Session(info) = session(false, Vec::new()) else { return };
    screen.apply([Event::Model(info.model)]);
    assert!(screen.given().contains("scripted · offline"), "{}", screen.given());
}

#[test]
fn a_new_session_starts_over_and_loses_nothing_told_before() {
    let mut screen = Screen::new();
    for event in [Event::Notice { text: "early".into() }, text("half"), session(false, Vec::new())] {
        screen.app.apply(event, screen.now);
    }
    screen.apply([prompt("a"), session(false, Vec::new()), prompt("b")]);
    let welcome = format!("✻ cocode {}\n  scripted · offline\n  /code", env!("CARGO_PKG_VERSION"));
    assert_eq!(screen.given(), format!("· early\n\nhalf\n\n{welcome}\n\n> a\n\n{welcome}\n\n> b"));
    let all = shown(&screen.app.transcript.history.rows(60, &Theme::dark(), Detail::Folded));
    assert_eq!(all, format!("{welcome}\n\n> b"));
}

#[test]
fn the_viewer_shows_everything_and_draws_again_only_what_changed() {
    let mut screen = Screen::new();
    let lines: String = (0..20).map(|line| format!("{line}\n")).collect();
    screen.apply([started(1, "Bash", "make"), done(1, Outcome::Ok, &lines), thinking("deep"), text("a"), reply("a")]);
    let all = |screen: &mut Screen, detail| shown(&screen.app.transcript.history.rows(60, &Theme::dark(), detail));
    assert_eq!(all(&mut screen, Detail::Folded), screen.given());
    let whole = all(&mut screen, Detail::Whole);
    assert!(whole.contains("\n  10\n") && whole.contains("\n  deep\n"), "{whole}");
    assert_eq!(all(&mut screen, Detail::Whole), whole);
    let revision = screen.app.transcript.revision();
    screen.apply([Event::Notice { text: "more".into() }]);
    assert_ne!(screen.app.transcript.revision(), revision);
    assert_eq!(all(&mut screen, Detail::Whole), format!("{whole}\n\n· more"));
}

/// Events of a conversation, with the reply text cut into deltas at any place.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = prop_oneof![
        4 => "[a-z*`#\\- \n]{1,12}".prop_map(|delta| text(&delta)),
        1 => "[a-z \n]{1,12}".prop_map(|delta| thinking(&delta)),
        1 => (0..4u64).prop_map(|n| started(n, "Bash", "make")),
        1 => (0..4u64).prop_map(|n| output(n, "a\nb\n")),
        1 => (0..4u64).prop_map(|n| done(n, Outcome::Ok, "a\nb")),
        1 => Just(prompt("go")),
        1 => Just(reply("final\n\ntext")),
        1 => Just(Event::Delta(Delta::Discarded { reason: "r".into() })),
        1 => Just(Event::Retrying { attempt: 1, of: 2, delay_ms: 1, reason: "r".into() }),
        1 => Just(ended(TurnEnd::Interrupted, 1)),
    ];
    prop::collection::vec(one, 0..60)
}

/// A log that pages are read from as the engine reads them.
struct Log(Vec<HistoryItem>);

impl Log {
    fn read(&self, part: Part) -> protocol::Earlier {
        let (from, end) = match part {
            Part::Before(seq) => (seq.saturating_sub(250), seq),
            Part::Between(from, before) => (from, before),
        };
        let until = end.min(from + 250);
        let items = self.0[from as usize..until as usize].to_vec();
        protocol::Earlier { items, from, until, older: from, newer: end - until }
    }

    /// The viewer's rows once it has what it wants.
    fn view(&self, screen: &mut Screen, want: Want) -> View {
        if let Some(part) = screen.app.transcript.earlier.want(want) {
            let read = Event::Listed(Listed::Earlier(self.read(part)));
            screen.app.apply(read, screen.now);
        }
        screen.app.transcript.view(60, &Theme::dark(), Detail::Whole)
    }
}

/// Texts that a frame must not be read whole in: what a line or an item of them is, and how often it comes.
const FLOODS: &[(&str, &str, usize)] = &[
    ("one word", "x", 400_000),
    ("one word of wide characters", "漢", 100_000),
    ("list items", "- x\n", 20_000),
    ("paragraphs", "a b\n\n", 20_000),
    ("empty lines", "\n", 100_000),
    ("code", "let a = 1;\n", 20_000),
    ("a table", "| a | b |\n", 10_000),
    ("a quote of quotes", "> > > > > > > > > a\n", 10_000),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_given_once_and_as_the_viewer_shows_them(events in events(), end in Just(ended(TurnEnd::Done, 0))) {
        let mut screen = Screen::new();
        screen.apply(events).apply([end]);
        prop_assert_eq!(screen.live(99), "");
        prop_assert!(screen.app.transcript.take_committed(60, &Theme::dark(), Share::ALL).is_empty());
        let all = shown(&screen.app.transcript.history.rows(60, &Theme::dark(), Detail::Folded));
        prop_assert_eq!(screen.given(), all);
    }

    #[test]
    fn given_and_live_rows_together_are_what_will_be_given(events in events()) {
        let mut screen = Screen::new();
        screen.apply(events);
        let mut shadow = screen.given.clone();
        shadow.extend(screen.app.transcript.live(60, 9999, &Theme::dark(), screen.now));
        // Open replies end as they stand; what still runs would change its look.
        let Transcript { history, growing, .. } = &screen.app.transcript;
        let open = growing.open.and_then(|index| history.cells.get(index));
        if history.calls.running.is_empty() && open.is_none_or(|cell| matches!(cell, Cell::Reply(_))) {
            let retrying = matches!(history.cells.last(), Some(Cell::Retry(_)));
            screen.apply([ended(TurnEnd::Done, 0)]);
            prop_assert!(retrying || shown(&shadow) == screen.given());
        }
    }
}
