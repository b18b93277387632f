//! Keys and events in, ops and screens out.

mod approvals;
mod asks;
mod contacts;
mod dialogs;
mod leaving;
mod mentions;
mod offers;
mod pastes;
mod review;
mod reviews;
mod tasks;
mod thinking;
mod vim;

use std::time::{Duration, Instant};

use insta::assert_snapshot;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use serde_json::json;

use super::app::{App, Options};
use super::keymap::Keymap;
use super::msg::{Effect, Msg};
use super::theme::Theme;
use super::update::update;
use super::view;
use crate::commands::{Command, Interface, Registry};
use crate::message::{CallId, Message, Todo, TodoStatus};
use crate::permission::Mode;
use crate::protocol::*;
use crate::session::entry::Begun;

/// An app with a clock, and the effects so far.
struct Run {
    app: App,
    now: Instant,
    effects: Vec<String>,
}

impl Run {
    fn new(width: u16, height: u16) -> Run {
        let all = Registry::builtin();
        let command = |name: &str, alias: &str, description: &str| Command {
            aliases: if alias.is_empty() { Vec::new() } else { vec![alias.into()] },
            description: description.into(),
            argument_hint: None,
            ..all.find(name).unwrap().clone()
        };
        let commands = vec![
            command("clear", "new", "Start over with an empty conversation"),
            command("cost", "", "What this session has cost"),
            command("memory", "", "Open a memory file"),
            command("model", "", "Ask another model"),
            command("permissions", "", "List, test and revoke rules"),
            command("resume", "", "Go on with an earlier session"),
            command("thinking", "effort", "Show or choose how hard the model thinks"),
            command("rewind", "", "Go back to an earlier prompt"),
            command("exit", "quit", "Leave"),
        ];
        let options = Options {
            theme: Theme::dark(),
            keymap: Keymap::default(),
            commands: Registry::of(commands),
            reduced_motion: true,
            notifications: true,
            theme_name: "dark".into(),
            highlight: true,
        };
        Run { app: App::new(options, (width, height)), now: Instant::now(), effects: Vec::new() }
    }

    fn msg(&mut self, msg: Msg) -> &mut Run {
        for effect in update(&mut self.app, msg, self.now) {
            let text = match effect {
                Effect::SaveDraft | Effect::SetTitle(_) | Effect::FindBranch | Effect::FreeMemory => continue,
                Effect::Progress(_) => continue,
                // Asked whenever the list of commands opens.
                Effect::Send(Op::Commands) => continue,
                Effect::Send(op) => serde_json::to_string(&op).unwrap(),
                other => format!("{other:?}"),
            };
            self.effects.push(text);
        }
        self
    }

    fn event(&mut self, event: Event) -> &mut Run {
        self.msg(Msg::Engine(event))
    }

    fn busy(&mut self) -> &mut Run {
        self.event(Event::Turn(Turn::Started))
    }

    fn wait(&mut self, millis: u64) -> &mut Run {
        self.now += Duration::from_millis(millis);
        self.msg(Msg::Tick)
    }

    /// A frame has been drawn.
    fn frame(&mut self) -> &mut Run {
        let size = self.app.size;
        self.app.drawn(size, self.now);
        self
    }

    /// Waits until the question in front takes keys.
    fn live(&mut self) -> &mut Run {
        let draft = !self.app.composer.is_empty();
        self.wait(1_000).frame().wait(if draft { 1_000 } else { 500 });
        assert!(self.app.asks.live());
        self
    }

    /// Presses keys: words are typed, `<ctrl+c>` and the like are keys.
    fn keys(&mut self, keys: &str) -> &mut Run {
        let mut rest = keys;
        while let Some(c) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let key = match named {
                Some((name, after)) => {
                    rest = after;
                    named_key(name)
                }
                None => {
                    rest = &rest[c.len_utf8()..];
                    KeyEvent::from(KeyCode::Char(c))
                }
            };
            self.msg(Msg::Key(key));
            // One key after the other, as a person presses them.
            if self.app.asks.holds() {
                self.wait(50);
            }
        }
        self
    }

    fn paste(&mut self, text: &str) -> &mut Run {
        let picture = |path| super::composer::chip::Picture { path, bytes: 2_000 };
        let picture = super::composer::chip::image_path(text).map(picture);
        self.msg(Msg::Paste { text: text.into(), image: picture })
    }

    /// The ops and other effects since the last call.
    fn sent(&mut self) -> String {
        std::mem::take(&mut self.effects).join("\n")
    }

    /// The live region as text; `▏` marks the cursor.
    fn screen(&mut self) -> String {
        let (width, height) = self.app.size;
        let rows = view::height(&self.app, 0, width, height);
        let mut buf = Buffer::empty(Rect::new(0, 0, width, rows));
        let cursor = view::draw(&self.app, &[], buf.area, &mut buf, self.now);
        let mut lines = Vec::new();
        for y in 0..rows {
            let mut line = String::new();
            let mut x = 0;
            while x < width {
                if cursor == Some((x, y).into()) {
                    line.push('▏');
                }
                let symbol = buf[(x, y)].symbol();
                line.push_str(symbol);
                x += super::paint::width(symbol).max(1) as u16;
            }
            let bars = line.trim_end().trim_end_matches('─');
            lines.push(if bars.len() < line.trim_end().len() { format!("{bars}───") } else { bars.to_owned() });
        }
        lines.join("\n")
    }
}

fn named_key(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.rsplit_once('+') {
        Some(("ctrl", name)) => (KeyModifiers::CONTROL, name),
        Some(("alt", name)) => (KeyModifiers::ALT, name),
        Some(("shift", name)) => (KeyModifiers::SHIFT, name),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "backtab" => KeyCode::BackTab,
        "bs" => KeyCode::Backspace,
        "end" => KeyCode::End,
        "pgdn" => KeyCode::PageDown,
        "delete" => KeyCode::Delete,
        c => KeyCode::Char(c.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}

fn ask(id: u64, command: &str, suggestions: &[&str]) -> Event {
    let question = Question::Permission {
        call: CallId::nth(id),
        tool: "Bash".into(),
        title: command.into(),
        input: json!({"command": command}),
        diff: None,
        reasons: vec!["npm is not known to be read-only".into()],
        suggestions: suggestions.iter().map(|rule| (*rule).into()).collect(),
        all_edits: false,
        session_only: false,
        confined: false,
        unasked: false,
        preset: None,
    };
    Event::Ask(Ask { id: AskId(id), question, asker: None })
}

fn prompt(seq: u64, text: &str) -> Event {
    Event::Item(Item::Message { seq, message: Message::prompt(text).into() })
}

fn queued(items: &[(u64, &str, Delivery)]) -> Event {
    let items =
        items.iter().map(|(id, text, delivery)| Queued { id: QueueId(*id), text: (*text).into(), delivery: *delivery });
    Event::Queue { items: items.collect() }
}

#[test]
fn the_user_is_called_back_when_away_and_willing() {
    for (notifications, focused, want) in
        [(true, false, "Notify(\": the turn has ended\")"), (true, true, ""), (false, false, "")]
    {
        let mut run = Run::new(80, 24);
        run.app.options.notifications = notifications;
        run.busy().msg(Msg::Focus(focused));
        run.event(Event::Turn(Turn::Ended {
            end: TurnEnd::Done,
            usage: Default::default(),
            cost_usd: None,
            millis: 1,
        }));
        assert_eq!(run.sent(), want, "notifications {notifications}, focused {focused}");
    }
}

#[test]
fn prompts_shell_lines_and_commands_are_sent() {
    let check = |keys: &str, want: &str| {
        let mut run = Run::new(80, 24);
        run.keys(keys);
        let sent = run.sent();
        let sent: Vec<&str> = sent.lines().filter(|line| !line.contains(r#""op":"remember""#)).collect();
        assert_eq!(sent.join("\n"), want, "{keys}");
    };
    check("hi <enter>", r#"{"op":"prompt","text":"hi","attachments":[],"delivery":"steer"}"#);
    check("a<ctrl+j>b<enter>", r#"{"op":"prompt","text":"a\nb","attachments":[],"delivery":"steer"}"#);
    check("a<shift+enter>b<enter>", r#"{"op":"prompt","text":"a\nb","attachments":[],"delivery":"steer"}"#);
    check("a\\<enter>b<enter>", r#"{"op":"prompt","text":"a\nb","attachments":[],"delivery":"steer"}"#);
    check("a<alt+enter>b<enter>", r#"{"op":"prompt","text":"a\nb","attachments":[],"delivery":"steer"}"#);
    check(" <enter>", "");
    check("!ls -l<enter>", r#"{"op":"shell","command":"ls -l"}"#);
    for leaves in ["!<bs>", "!<esc>", "!ls -l<ctrl+u>"] {
        let keys = format!("{leaves}x<enter>");
        check(&keys, r#"{"op":"prompt","text":"x","attachments":[],"delivery":"steer"}"#);
    }
    check("what?!<enter>", r#"{"op":"prompt","text":"what?!","attachments":[],"delivery":"steer"}"#);
    check("/cl<enter>", r#"{"op":"command","name":"clear","args":""}"#);
    check("/new<esc><enter>", r#"{"op":"command","name":"clear","args":""}"#);
    check("/model opus<enter>", r#"{"op":"command","name":"model","args":"opus"}"#);
    check("/co<tab>now<enter>", r#"{"op":"command","name":"cost","args":"now"}"#);
    check("/nothing<enter>", "");
    check(
        "/usr/bin is full<enter>",
        r#"{"op":"prompt","text":"/usr/bin is full","attachments":[],"delivery":"steer"}"#,
    );
    check("/resume <enter>", r#"{"op":"list","what":"sessions"}"#);
    check("/resume abc<enter>", r#"{"op":"command","name":"resume","args":"abc"}"#);
    check("/exit<enter>", r#"{"op":"shutdown"}"#);
    check("<shift+tab>", r#"{"op":"set_mode","mode":"acceptEdits"}"#);
    check("<ctrl+g>", r#"OpenEditor("")"#);
}

#[test]
fn esc_and_ctrl_c_mean_what_the_moment_says() {
    let interrupt = r#"{"op":"interrupt"}"#;
    let check = |busy: bool, keys: &str, want: &str, left: &str| {
        let mut run = Run::new(80, 24);
        run.event(prompt(3, "earlier"));
        if busy {
            run.busy();
        }
        run.keys(keys);
        assert_eq!((run.sent().as_str(), run.app.draft().text.as_str()), (want, left), "busy {busy}: {keys}");
    };
    check(true, "<esc>", interrupt, "");
    check(true, "text<esc>", interrupt, "text");
    check(true, "<ctrl+c>", interrupt, "");
    check(true, "text<ctrl+c>", interrupt, "text");
    check(true, "<ctrl+c><ctrl+c>", &format!("{interrupt}\n{{\"op\":\"shutdown\"}}"), "");
    check(true, "/co<esc>", "", "/co");
    check(false, "text<esc>", "", "text");
    check(false, "text<ctrl+c>", "", "");
    check(false, "text<ctrl+c><ctrl+_>", "", "text");
    check(false, "<ctrl+c>", "", "");
    check(false, "<ctrl+c><ctrl+c>", r#"{"op":"shutdown"}"#, "");
    check(false, "<ctrl+d>", r#"{"op":"shutdown"}"#, "");
    check(false, "ab<left><ctrl+d>", "", "a");
    check(false, "<ctrl+d><ctrl+d>", "{\"op\":\"shutdown\"}\nExit", "");
    check(false, "<esc>x<esc>", "", "x");
    check(false, "<esc><esc><enter><down><enter>", r#"{"op":"rewind","to":3,"what":"conversation"}"#, "");

    let mut run = Run::new(80, 24);
    run.keys("<ctrl+c>").wait(1_500).keys("<ctrl+c>");
    assert_eq!(run.sent(), "", "two presses far apart do not exit");
}

#[test]
fn ctrl_b_moves_what_runs_and_else_the_cursor() {
    let moves = r#"{"op":"background"}"#;
    for (tool, keys, want, text) in [
        (Some("Bash"), "ab<ctrl+b>c", moves, "abc"),
        (Some("Bash"), "ab<ctrl+x><ctrl+b>c", moves, "abc"),
        (Some("Task"), "ab<ctrl+b>c", moves, "abc"),
        (Some("Read"), "ab<ctrl+b>c", "", "acb"),
        (None, "ab<ctrl+b>c", "", "acb"),
        (None, "ab<ctrl+x><ctrl+b>c", "", "acb"),
        // A chord that nobody bound is two keys.
        (None, "ab<ctrl+x>c", "", "abc"),
        (None, "ab<ctrl+x><ctrl+x><ctrl+b>c", "", "acb"),
    ] {
        let mut run = Run::new(80, 24);
        if let Some(tool) = tool {
            let (call, tool, title) = (CallId::nth(1), tool.to_owned(), "make".to_owned());
            run.busy().event(Event::Item(Item::CallStarted { call, tool, title }));
        }
        run.keys(keys);
        assert_eq!((run.sent().as_str(), run.app.draft().text.as_str()), (want, text), "{tool:?}: {keys}");
    }
}

#[test]
fn what_runs_in_the_background_is_counted() {
    let begun = Begun::command("b1", CallId::nth(1), "make");
    let mut run = Run::new(40, 12);
    for (running, want) in [(vec![begun.clone(), begun], true), (Vec::new(), false)] {
        run.event(Event::Background { running, ended: None });
        assert_eq!(run.screen().contains("ask first · 2 in background"), want, "{}", run.screen());
    }
}

#[test]
fn steers_and_queues_and_takes_back() {
    let mut run = Run::new(80, 24);
    run.busy().keys("now<enter>later<alt+enter>");
    run.event(queued(&[(1, "now", Delivery::Steer), (2, "later", Delivery::AfterTurn)]));
    assert_snapshot!(run.screen(), @r"
    ● Waiting for the model (0 s · esc to interrupt)
    ↳ next step: now
    ↳ when done: later
    ───
    > ▏Ask anything   / commands   @ files   ! shell   ? keys
    ───
    ask first · … · ? keys
    ");
    run.keys("<up>");
    assert_snapshot!(run.sent(), @r#"
    {"op":"remember","text":"now"}
    {"op":"prompt","text":"now","attachments":[],"delivery":"steer"}
    {"op":"remember","text":"later"}
    {"op":"prompt","text":"later","attachments":[],"delivery":"after_turn"}
    {"op":"unqueue","id":2}
    "#);
    assert_eq!(run.app.draft().text, "later");
}

#[test]
fn an_interrupt_begins_nothing_that_waits() {
    for key in ["<esc>", "<ctrl+c>"] {
        let mut run = Run::new(80, 24);
        run.busy().event(queued(&[
            (1, "now", Delivery::Steer),
            (2, "/clear", Delivery::AfterTurn),
            (3, "later", Delivery::AfterTurn),
        ]));
        run.keys(key);
        let want = ["{\"op\":\"unqueue\",\"id\":3}", "{\"op\":\"unqueue\",\"id\":2}", "{\"op\":\"unqueue\",\"id\":1}"];
        assert_eq!(run.sent(), [&want[..], &["{\"op\":\"interrupt\"}"]].concat().join("\n"), "{key}");
        assert_eq!(run.app.draft().text, "now\nlater", "{key}");
        assert!(run.screen().contains("not done: /clear"), "{key}: {}", run.screen());
    }
}

#[test]
fn enter_runs_only_what_was_typed_or_chosen() {
    // Letters that are in a name, in this order, are not its beginning.
    for (typed, runs, left) in [
        ("/co<enter>", Some("cost"), ""),
        ("/new<enter>", Some("clear"), ""),
        ("/cst<enter>", None, "/cost "),
        ("/cst<enter><enter>", Some("cost"), ""),
        ("/cst<down><up><enter>", Some("cost"), ""),
    ] {
        let mut run = Run::new(80, 24);
        run.keys(typed);
        let sent = run.sent();
        let name = sent.split_once("\"name\":\"").and_then(|(_, rest)| rest.split_once('"')).map(|(name, _)| name);
        assert_eq!((name, run.app.draft().text.as_str()), (runs, left), "{typed}: {sent}");
    }
}

#[test]
fn nothing_typed_is_lost() {
    let long: String = (1..=120).map(|n| format!("line {n}\n")).collect();
    let mut run = Run::new(80, 24);
    run.keys("see ").paste(&long);
    assert_snapshot!(run.screen(), @r"
    ───
    > see [Pasted 120 lines]▏
    ───
    ask first · … · ? keys
    ");
    run.keys("<enter>typed since");
    let sent = format!("see {}", long.trim());
    assert!(run.sent().contains("line 120"));
    run.event(Event::Error { text: "no network".into(), restore: Some(sent.clone()) });
    assert_eq!(run.app.draft().text, format!("{sent}\ntyped since"));
    assert_snapshot!(run.screen(), @r"
    ───
    > see [Pasted 120 lines]
      typed since▏
    ───
    ask first · … · ? keys
    ");
    run.keys("<ctrl+s>");
    assert_eq!(run.app.draft().text, "");
    run.keys("other<ctrl+s>").keys("<ctrl+c><ctrl+_>");
    assert_eq!(run.app.draft().text, format!("{sent}\ntyped since"));
    run.keys("<ctrl+s>");
    assert_eq!(run.app.draft().text, "other");
    run.msg(Msg::Edited(Err("vi is not there".into())));
    assert_eq!(run.app.draft().text, "other");
}

#[test]
fn what_is_looked_at_while_the_agent_works_stands_above_the_composer() {
    let mut run = Run::new(40, 16);
    let todos = (1..=9).map(|n| Todo {
        content: format!("step {n}"),
        active_form: format!("doing {n}"),
        status: TodoStatus::Pending,
    });
    let found = Event::Report(report::Report::Todos(todos.collect()));
    run.busy().event(found.clone());
    assert_snapshot!(run.screen(), @r"
    ● Waiting for … (0 s · esc to interrupt)
    ┌ /todos ────────── 0↑ 4↓ · Esc closes ┐
    │ Todos: 0 of 9                        │
    │ ☐ step 1                             │
    │ ☐ step 2                             │
    │ ☐ step 3                             │
    │ ☐ step 4                             │
    │ ☐ step 5                             │
    └──────────────────────────────────────┘
    ───
    > ▏Ask anything   / commands   @ files  …
    ───
    ask first · … · ? keys
    ");
    run.keys("<pgdn>");
    assert!(run.screen().contains("step 9"), "{}", run.screen());
    // The first Esc is the panel's, the second the agent's.
    run.keys("<esc>");
    assert_eq!((run.sent().as_str(), run.screen().contains("/todos")), ("", false));
    run.keys("<esc>");
    assert_eq!(run.sent(), r#"{"op":"interrupt"}"#);
    // Between two turns it is an answer like any other.
    let mut run = Run::new(40, 16);
    run.event(found);
    assert!(run.app.panel.is_none());
}

#[test]
fn todos_and_modes_show() {
    let mut run = Run::new(40, 12);
    let todo = |content: &str, status| Todo { content: content.into(), active_form: format!("{content}ing"), status };
    let items = vec![
        todo("Read", TodoStatus::Completed),
        todo("Edit", TodoStatus::InProgress),
        todo("Test", TodoStatus::Pending),
    ];
    run.event(Event::Todos { items })
        .keys("<ctrl+t>")
        .event(Event::Mode(ModeChange::Changed { mode: Mode::Plan }))
        .busy()
        .keys("👩‍👩‍👧日本");
    assert_snapshot!(run.screen(), @r"
    ☑ Read
    ◐ Editing
    ☐ Test
    ● Waiting for … (0 s · esc to interrupt)
    ── plan · changes nothing ───
    > 👩‍👩‍👧日本▏
    ───
    plan · …
    ");
}

#[test]
fn every_size_draws_without_a_panic() {
    for width in [1, 2, 3, 5, 10, 40, 200] {
        for height in [1, 2, 3, 4, 6, 12, 60] {
            let mut run = Run::new(width, height);
            run.busy().keys("日本 text text<ctrl+j>").paste("/tmp/a.png").screen();
            run.keys("<ctrl+r>x").screen();
            run.keys("<esc><ctrl+c><ctrl+c>/").screen();
            run.keys("<esc><ctrl+c>@").msg(Msg::Files { query: String::new(), paths: vec!["日本.rs".into()] }).screen();
            run.event(ask(1, "echo 日本語 && ls", &["Bash(echo:*)"])).wait(200).screen();
            run.keys("<pgdn>2").screen();
            run.keys("<esc>3日本").screen();
            run.keys("<esc><esc>").event(prompt(1, "日本語")).keys("<esc><ctrl+c>/rewind<esc><enter>").screen();
        }
    }
}

#[test]
fn wakes_up_only_while_something_moves() {
    let mut run = Run::new(80, 24);
    assert_eq!(run.app.wake(run.now), None);
    run.busy();
    assert_eq!(run.app.wake(run.now), Some(run.now + Duration::from_secs(1)));
    let end = Turn::Ended { end: TurnEnd::Done, usage: Default::default(), cost_usd: None, millis: 1 };
    run.event(Event::Turn(end)).keys("<ctrl+c>");
    assert_eq!(run.app.wake(run.now), Some(run.now + Duration::from_secs(1)), "the hint goes");
    run.wait(1_000);
    assert_eq!(run.app.wake(run.now), None);
}
