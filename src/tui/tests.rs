//! Keys and events in, ops and screens out.

mod approvals;
mod asks;
mod dialogs;
mod mentions;
mod review;
mod reviews;
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
        self.wait(1_000).frame().wait(500);
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
fn text_that_comes_in_one_go_runs_no_shell_line() {
    for (before, text, draft) in [
        ("", "!touch x\r", "!touch x\n"),
        ("", "!touch x\r!touch y\r", "!touch x\n!touch y\n"),
        ("!", "touch x\r", "!touch x\n"),
        ("!touch", " x\r", "!touch x\n"),
    ] {
        let mut run = Run::new(80, 24);
        run.keys(before);
        for c in text.chars() {
            let code = if c == '\r' { KeyCode::Enter } else { KeyCode::Char(c) };
            run.msg(Msg::Written(KeyEvent::from(code)));
        }
        assert_eq!((run.sent().as_str(), run.app.draft().text.as_str()), ("", draft), "{before:?} {text:?}");
    }
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
    default · … · ? keys
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
fn nothing_typed_is_lost() {
    let long: String = (1..=120).map(|n| format!("line {n}\n")).collect();
    let mut run = Run::new(80, 24);
    run.keys("see ").paste(&long);
    assert_snapshot!(run.screen(), @r"
    ───
    > see [Pasted 120 lines]▏
    ───
    default · … · ? keys
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
    default · … · ? keys
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
fn history_is_walked_and_searched() {
    let mut run = Run::new(60, 24);
    run.app.set_history(["fix the tests", "!cargo test", "write docs"].map(Into::into).into());
    run.keys("half<up><up>");
    assert_eq!(run.app.draft().text, "!cargo test");
    run.keys("<down><down>");
    assert_eq!(run.app.draft().text, "half");
    run.keys("<ctrl+r>test<ctrl+r>");
    assert_snapshot!(run.screen(), @r"
    ───
    search: test▏
    fix the tests
    ───
    default · … · ? keys
    ");
    run.keys("<esc>");
    assert_eq!(run.app.draft().text, "half");
    run.keys("<ctrl+r>cargo<enter><enter>");
    assert_eq!(run.sent().lines().last(), Some(r#"{"op":"shell","command":"cargo test"}"#));
}

#[test]
fn files_complete_after_an_at() {
    let mut run = Run::new(40, 12);
    run.keys("look at @ma");
    assert_eq!(run.sent().lines().last(), Some(r#"ListFiles("ma")"#));
    run.msg(Msg::Files { query: "m".into(), paths: vec!["stale.rs".into()] });
    run.msg(Msg::Files { query: "ma".into(), paths: vec!["src/main.rs".into(), "日本/ma p.md".into()] });
    assert_snapshot!(run.screen(), @r"
    ───
    > look at @ma▏
    ───
    › src/main.rs
      日本/ma p.md
    default · … · ? keys
    ");
    run.keys("<down><enter>please<enter>");
    let want = r#"{"op":"prompt","text":"look at @\"日本/ma p.md\" please","attachments":["日本/ma p.md"],"delivery":"steer"}"#;
    assert_eq!(run.sent().lines().last(), Some(want));
    run.paste("/tmp/shot.png").keys("what is it?<enter>");
    let want = r#"{"op":"prompt","text":"[Image 1] what is it?","attachments":["/tmp/shot.png"],"delivery":"steer"}"#;
    assert_eq!(run.sent().lines().last(), Some(want));
}

#[test]
fn skills_pop_up_as_they_want_to_look() {
    let mut run = Run::new(80, 24);
    run.keys("/wri");
    let interface = Interface {
        display_name: Some("Release notes".into()),
        short_description: Some("From the log".into()),
        brand_color: Some((255, 128, 0)),
        default_prompt: Some("since which version?".into()),
        ..Interface::default()
    };
    let skill = Command {
        name: "write-notes".into(),
        kind: crate::commands::Kind::Skill(crate::commands::Source::UserSettings),
        interface: Some(interface),
        ..Registry::builtin().find("cost").unwrap().clone()
    };
    // It comes while the list is open: an edited skill is there at the next keystroke.
    run.msg(Msg::Engine(Event::Commands { registry: Registry::of(vec![skill]) }));
    let screen = run.screen();
    assert!(screen.contains("› /write-notes  Release notes: From the log") && screen.contains("  user\n"), "{screen}");
    run.keys("<tab>");
    assert!(run.screen().contains("> /write-notes ▏since which version?"), "{}", run.screen());
    run.keys("x");
    assert!(!run.screen().contains("since which"), "{}", run.screen());
}

#[test]
fn commands_pop_up() {
    let mut run = Run::new(60, 24);
    run.keys("/c");
    assert_snapshot!(run.screen(), @r"
    ───
    > /c▏
    ───
    › /clear  Start over with an empty conversation          1/2
      /cost   What this session has cost
    default · … · ? keys
    ");
    run.keys("<esc>zz<enter>");
    assert_snapshot!(run.screen(), @r"
    ───
    > /czz▏
    ───
    unknown command /czz: /help lists all commands
    ");
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
    ┌ /todos ────────── 0↑ 3↓ · Esc closes ┐
    │ • ☐ step 1                           │
    │ • ☐ step 2                           │
    │ • ☐ step 3                           │
    │ • ☐ step 4                           │
    │ • ☐ step 5                           │
    │ • ☐ step 6                           │
    └──────────────────────────────────────┘
    ───
    > ▏Ask anything   / commands   @ files  …
    ───
    default · … · ? keys
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
fn a_line_that_comes_in_one_go_is_a_shell_line_all_the_same() {
    let mut run = Run::new(60, 24);
    run.msg(Msg::Paste { text: "!git status".into(), image: None }).keys("<enter>");
    assert!(run.sent().ends_with(r#"{"op":"shell","command":"git status"}"#));
    run.msg(Msg::Paste { text: "!".into(), image: None }).keys("<enter>");
    assert!(!run.sent().contains("shell"));
}

#[test]
fn a_prompt_comes_back_with_its_pastes_and_images() {
    let mut run = Run::new(60, 24);
    let lines: String = (1..=20).map(|n| format!("row {n}\n")).collect();
    run.msg(Msg::Paste { text: lines.clone(), image: None });
    run.msg(Msg::Paste {
        text: "/tmp/a.png".into(),
        image: Some(super::composer::chip::Picture { path: "/tmp/a.png".into(), bytes: 12_000 }),
    })
    .keys(" and?<enter>");
    let sent = run.sent();
    assert!(sent.contains("/tmp/a.png") && sent.contains("row 20"), "{sent}");
    for keys in ["<up>", "<ctrl+r>and<enter>"] {
        run.keys("<ctrl+c>").keys(keys);
        assert!(
            run.screen().contains("[Pasted 20 lines]") && run.screen().contains("[Image 1: a.png, 12 kB]"),
            "{}",
            run.screen()
        );
    }
    run.keys("<enter>");
    let again = run.sent();
    assert!(again.contains("/tmp/a.png") && again.contains("row 20"), "{again}");
}

#[test]
fn the_clipboard_is_waited_for_and_can_be_left() {
    let picture = || Msg::Picture(Ok(super::composer::chip::Picture { path: "/tmp/a.png".into(), bytes: 12_000 }));
    for (keys, sent, shown) in [
        ("look<ctrl+v>", "PasteImage", "> look[Image 1: a.png, 12 kB]"),
        // What is typed meanwhile does not cancel it, but the prompt waits.
        ("<ctrl+v>look <enter>", "PasteImage", "> look [Image 1: a.png, 12 kB]"),
        ("look<ctrl+v><ctrl+v>", "PasteImage", "> look[Image 1: a.png, 12 kB]"),
        ("look<ctrl+v><esc>", "PasteImage\nLeaveImage", "> look▏"),
        ("look<ctrl+v><ctrl+c>", "PasteImage\nLeaveImage", "> look▏"),
    ] {
        let mut run = Run::new(60, 24);
        run.keys(keys);
        let effects = run.sent();
        let effects: Vec<&str> = effects.lines().filter(|effect| effect.ends_with("Image")).collect();
        run.msg(picture());
        assert!(effects.join("\n") == sent && run.screen().contains(shown), "{keys}: {effects:?}\n{}", run.screen());
        // Enter and a second picture work as ever.
        run.keys("<ctrl+v>").msg(picture());
        assert!(run.screen().contains("a.png, 12 kB]"), "{}", run.screen());
    }
}

#[test]
fn what_is_typed_behind_the_name_does_what_it_says() {
    for (line, at_once, later) in [
        ("fix it", vec!["fix it"], ""),
        ("!ls", vec!["shell ls"], ""),
        ("!", vec!["!"], ""),
        ("/cost", vec![], r#"{"op":"command","name":"cost","args":""}"#),
        ("/usr/bin is what?", vec![], r#"{"op":"prompt","text":"/usr/bin is what?""#),
        ("/nosuch thing", vec![], ""),
    ] {
        let mut run = Run::new(60, 24);
        let ops = run.app.begin_with(line.to_owned());
        let shown = |op: &Op| match op {
            Op::Prompt { text, .. } => Some(text.clone()),
            Op::Shell { command } => Some(format!("shell {command}")),
            _ => None,
        };
        assert_eq!(ops.iter().filter_map(shown).collect::<Vec<_>>(), at_once, "{line}");
        // Skills are known by then, too.
        let registry = run.app.options.commands.clone();
        run.event(Event::Commands { registry: registry.clone() });
        let sent = run.sent();
        assert!(sent.contains(later) && (!later.is_empty() || sent.is_empty()), "{line}: {sent}");
        assert_eq!(run.screen().contains("> /nosuch thing"), line.starts_with("/nosuch"), "{line}");
        run.event(Event::Commands { registry });
        assert_eq!(run.sent(), "", "once: {line}");
    }
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

#[test]
fn large_texts_are_no_trouble() {
    let line = "日本 word ".repeat(5_000);
    let mut run = Run::new(40, 12);
    run.paste(&line).keys("!");
    assert_eq!(run.app.draft().text, format!("{line}!"));
    // What the editor left alone stays folded.
    run.msg(Msg::Edited(Ok(format!("{line}\nend\n"))));
    assert!(run.screen().contains("[Pasted 40000 characters]"), "{}", run.screen());
    let line = line.replace("word", "text");
    run.msg(Msg::Edited(Ok(format!("{line}\nend\n")))).keys("<up>x<ctrl+_>");
    assert_eq!(run.app.draft().text, format!("{line}\nend"));
    assert_eq!(run.screen().lines().count(), 7);
}
