//! Dialogs, lists and the pager, by keys and screens.

use std::time::Duration;

use insta::assert_snapshot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

use super::{Run, ask, prompt};
use crate::commands::Registry;
use crate::message::{CallId, FileDiff};
use crate::permission::Behavior;
use crate::protocol::report::Holds;
use crate::protocol::*;
use crate::tui::dialog::Dialog;
use crate::tui::dialog::picker::Picker;
use crate::tui::msg::Msg;
use crate::tui::pager::Pager;
use crate::tui::theme::Theme;
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
    PgDn: 1 more row to read before Yes · E…
    ask first · … · ? keys
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
    PgDn: 1 more row to read before Yes · E…
    ask first · … · ? keys
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
        session_only: false,
        confined: false,
        unasked: false,
        preset: None,
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
    ask first · … · ? keys
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
        let row = |path: &str| MemoryRow { path: path.into(), name: path.into(), lines: Some(2) };
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

/// The models of three providers: one with a key, one without, and a server that nobody has found.
fn models(word: Option<Word>) -> Msg {
    let row = |id: &str, current| ModelRow { id: id.into(), detail: "200k".into(), current };
    let provider = |name: &str, title: &str, access, models: Vec<ModelRow>| ProviderRow {
        name: name.into(),
        title: title.into(),
        access,
        current: models.iter().any(|row| row.current),
        models,
    };
    let providers = vec![
        provider(
            "anthropic",
            "Anthropic",
            Access::Key { from: "ANTHROPIC_API_KEY".into() },
            vec![row("anthropic/claude-opus", false), row("anthropic/claude-sonnet", true)],
        ),
        provider("openai", "OpenAI", Access::NoKey, Vec::new()),
        provider("local", "Local", Access::NoServer { ports: vec![11434, 8080], asked: true }, Vec::new()),
        provider("offline", "Offline", Access::Offline, Vec::new()),
    ];
    Msg::Engine(Event::Listed(Listed::Models(ModelList { providers, word })))
}

#[test]
fn lists_filter_and_choose() {
    let mut run = Run::new(60, 24);
    run.keys("/model<enter>");
    run.msg(models(None));
    run.keys("son");
    assert_snapshot!(run.screen(), @r"
    ───
    Which model?   filter: son▏                            1 of 6
    › anthropic/claude-sonnet  200k · ✓ in use





    type to filter · ↑↓ Enter choose · Esc close
    ask first · … · ? keys
    ");
    run.keys("<enter>/permissions<enter>");
    let rule = RuleRow { rule: "Bash(ls:*)".into(), behavior: Behavior::Allow, source: "session".into(), fixed: None };
    run.msg(Msg::Engine(Event::Listed(Listed::Rules(vec![rule])))).keys("<enter><enter>");
    run.keys("/permissions<enter>rm x<tab>");
    assert_snapshot!(run.sent(), @r#"
    {"op":"remember","text":"/model"}
    {"op":"list","what":"models"}
    {"op":"command","name":"model","args":"anthropic/claude-sonnet"}
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
    11/125 · ↑↓ PgUp PgDn g G scroll · / se…
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
    Rewind to before which prompt?   filter: ▏
    › second⏎line
      first
    type to filter · ↑↓ Enter choose · Esc close
    ask first · … · ? keys
    ");
    run.keys("<enter><enter>");
    assert_eq!(run.sent().lines().last(), Some(r#"{"op":"rewind","to":5,"what":"both"}"#));
    run.event(Event::Item(Item::Rewound { to: 5, prompt: "second\nline".into() }));
    assert_eq!(run.app.draft().text, "second\nline");
    run.keys("<ctrl+c>/rewind<enter>").keys("<down>");
    run.keys("<enter><enter>");
    assert_eq!(run.sent().lines().last(), Some(r#"{"op":"rewind","to":1,"what":"both"}"#));
    // A line of the user's own is one again.
    run.event(Event::Item(Item::Rewound { to: 1, prompt: "!echo hi".into() }));
    assert_eq!(run.app.composer.editor.text(), "echo hi");
    run.keys("<enter>");
    assert_eq!(run.sent().lines().last(), Some(r#"{"op":"shell","command":"echo hi"}"#));
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

#[test]
fn the_list_of_models_takes_a_key_and_shows_it_nowhere() {
    let mut run = Run::new(80, 24);
    run.keys("/model<enter>").msg(models(None));
    run.keys("<down>");
    assert_snapshot!(run.screen(), @r"
    ───
    Which model?   filter: ▏
      Anthropic        key from ANTHROPIC_API_KEY
        claude-opus    200k
        claude-sonnet  200k · ✓ in use
    › OpenAI           no key · Enter: paste one
      Local            no server on 11434, 8080 · r: look again
      Offline          fixed recipes, no network
    type to filter · ↑↓ Enter choose · Esc close
    ask first · … · ? keys
    ");
    // What is pasted at a provider without a key is one, and never text of the filter.
    let paste = |text: &str| Msg::Paste { text: text.into(), image: None };
    run.msg(paste("sk-0123456789-0123456789\n"));
    assert_snapshot!(run.screen(), @r"
    ───
    Paste the key for OpenAI
    It goes into credentials.toml, which only you can read. It is not shown, logged
    or sent to a model.
    > ••••••••••••••••••••••••▏   24 characters
    Enter store · Esc back
    ask first · … · ? keys
    ");
    run.keys("<enter>");
    run.msg(models(Some(Word::Done { text: "Key stored in ~/.config/cocode/credentials.toml".into() })));
    assert_snapshot!(run.screen(), @r"
    ───
    Which model?   filter: ▏
      Anthropic        key from ANTHROPIC_API_KEY
        claude-opus    200k
        claude-sonnet  200k · ✓ in use
    › OpenAI           no key · Enter: paste one
      Local            no server on 11434, 8080 · r: look again
      Offline          fixed recipes, no network
    Key stored in ~/.config/cocode/credentials.toml
    ask first · … · ? keys
    ");
    // A search for a server leaves the list open.
    run.keys("<down>r");
    assert_snapshot!(run.screen(), @r"
    ───
    Which model?   filter: ▏
      Anthropic        key from ANTHROPIC_API_KEY
        claude-opus    200k
        claude-sonnet  200k · ✓ in use
      OpenAI           no key · Enter: paste one
    › Local            no server on 11434, 8080 · r: look again
      Offline          fixed recipes, no network
    Looking for a local server…
    ask first · … · ? keys
    ");
    run.keys("<esc>");
    assert_snapshot!(run.sent(), @r#"
    {"op":"remember","text":"/model"}
    {"op":"list","what":"models"}
    {"op":"store_key","provider":"openai","key":"sk-0123456789-0123456789"}
    {"op":"find_server"}
    "#);
    assert!(!format!("{:?}", run.app).contains("sk-0123"), "no state keeps the key");
}

/// Three settings.
fn settings(theme: &str, word: Option<Word>) -> Msg {
    let row = |key: &str, value: &str, kind, holds| SettingRow {
        key: key.into(),
        value: Some(value.into()),
        source: "default".into(),
        default: Some(value.into()),
        about: format!("What {key} means."),
        kind,
        holds,
    };
    let values = ["auto", "dark", "light", "terminal"].map(str::to_owned).into();
    let rows = vec![
        row("model", "opus", SettingKind::Text, Holds::NextStart),
        row("tui.notifications", "true", SettingKind::Switch, Holds::Now),
        row("tui.theme", theme, SettingKind::Choice { values }, Holds::Now),
    ];
    Msg::Engine(Event::Listed(Listed::Settings(SettingList { rows, word })))
}

#[test]
fn settings_are_found_changed_and_explained_in_a_list() {
    let mut run = Run::new(80, 24);
    run.app.picker = Some(Picker::waiting(ListKind::Settings));
    run.msg(settings("dark", None));
    assert_snapshot!(run.screen(), @r"
    ───
    Settings   filter: ▏
    › model              opus      default
      tui.notifications  ‹on›      default
      tui.theme          ‹dark›    default
    type to filter · ↑↓ move · Space change · ? what it means · Esc close
    ask first · … · ? keys
    ");
    run.keys("not ?");
    assert_snapshot!(run.screen(), @r"
    ───
    Settings   filter: not▏                                                    1 of 3
    › tui.notifications  ‹on›      default


      What tui.notifications means. Default: on.
    type to filter · ↑↓ move · Space change · ? what it means · Esc close
    ask first · … · ? keys
    ");
    run.msg(settings("dark", Some(Word::Done { text: "Saved to config.toml".into() })));
    assert_snapshot!(run.screen(), @r"
    ───
    Settings   filter: not▏                                                    1 of 3
    › tui.notifications  ‹on›      changed just now


      What tui.notifications means. Default: on.
    Saved to config.toml
    ask first · … · ? keys
    ");
    // Once somebody has moved, letters are keys of the list.
    run.keys("?<ctrl+u><down><down>pd").msg(settings("dark", None));
    run.keys("<up><up>p<enter><ctrl+u>haiku<enter>");
    assert_snapshot!(run.screen(), @r"
    ───
    Settings   filter: ▏
    › model              opus      default
      tui.notifications  ‹on›      changed just now
      tui.theme          ‹dark›    changed just now
    Space change · d default · p for this project · ? what it means · Esc close
    ask first · … · ? keys
    ");
    assert_snapshot!(run.sent(), @r#"
    {"op":"set","key":"tui.notifications","value":"false","place":"user"}
    {"op":"set","key":"tui.theme","value":null,"place":"project"}
    {"op":"set","key":"model","value":"haiku","place":"user"}
    "#);
}

#[test]
fn a_row_says_as_much_as_there_is_room_for() {
    for width in 24..48 {
        let mut run = Run::new(width, 12);
        run.app.picker = Some(Picker::waiting(ListKind::Settings));
        run.msg(settings("dark", None));
        assert!(!run.screen().contains(" d…"), "{}", run.screen());
    }
    let mut run = Run::new(60, 12);
    let row = MemoryRow { path: "/w/AGENTS.md".into(), name: "AGENTS.md".into(), lines: None };
    run.keys("/memory<enter>").msg(Msg::Engine(Event::Listed(Listed::Memory(vec![row]))));
    assert!(run.screen().contains("new: instructions for this project"), "{}", run.screen());
}

#[test]
fn a_theme_is_shown_while_a_list_offers_it() {
    let mut run = Run::new(80, 24);
    run.app.options.commands = Registry::builtin();
    run.keys("/theme<enter>").msg(settings("dark", None)).keys("<enter><down>");
    let shown = |run: &mut Run| run.effects.drain(..).filter(|effect| effect.starts_with("Theme")).collect::<Vec<_>>();
    assert_eq!(shown(&mut run), [r#"Theme { name: "light", light: false }"#]);
    run.keys("<esc>");
    assert_eq!(shown(&mut run), [r#"Theme { name: "dark", light: false }"#], "Esc shows the old one again");
    run.keys("<enter><up>");
    assert_eq!(shown(&mut run), [r#"Theme { name: "auto", light: false }"#]);
    run.msg(Msg::Background { light: true });
    assert_eq!(shown(&mut run), [r#"Theme { name: "auto", light: true }"#]);
    run.keys("<ctrl+c>");
    assert_eq!(shown(&mut run), [r#"Theme { name: "dark", light: false }"#], "the list is gone");
    let interface = Interface {
        theme: "light".into(),
        notifications: false,
        highlight: false,
        reduced_motion: true,
        vim: false,
        rebuild: false,
        keys: [("help".to_owned(), vec!["alt+h".to_owned()])].into(),
        status_line: Default::default(),
    };
    run.event(Event::Interface(interface));
    assert_eq!(shown(&mut run), [r#"Theme { name: "light", light: false }"#]);
    run.msg(Msg::Theme(Ok(Box::new(Theme::load("light").unwrap()))));
    assert_eq!((run.app.options.theme.name.as_str(), run.app.options.theme.syntax.clone()), ("light", None));
    run.keys("<alt+h>");
    assert!(run.app.pager().is_some(), "keys change while the program runs");
}
