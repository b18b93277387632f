//! How hard the model thinks: keys, status line, words in the prompt.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::Run;
use crate::protocol::{self, Event, ThinkingInfo};
use crate::thinking::{Keywords, Level, Source};
use crate::tui::view;

fn info() -> ThinkingInfo {
    ThinkingInfo {
        level: Level::None,
        asked: Level::None,
        source: Source::Default,
        budget: None,
        session: None,
        supported: Level::ALL.to_vec(),
        locked: None,
        keywords: Keywords { deep: vec!["deepthink".into()], ultra: vec!["ultrathink".into()] },
    }
}

fn told(info: ThinkingInfo) -> Event {
    Event::Thinking(protocol::Thinking::Level(info))
}

fn begun(info: ThinkingInfo) -> Run {
    let mut run = Run::new(60, 12);
    run.event(told(info));
    run
}

/// The last line of the screen.
fn status(run: &mut Run) -> String {
    run.screen().lines().last().unwrap().to_owned()
}

#[test]
fn keys_go_round_at_once_also_while_a_turn_runs() {
    for busy in [false, true] {
        let mut run = begun(info());
        if busy {
            run.busy();
        }
        let mut check = |keys: &str, line: &str, sent: &str| {
            run.keys(keys);
            assert_eq!(status(&mut run), line, "{keys}");
            let sent =
                if sent.is_empty() { String::new() } else { format!(r#"{{"op":"set_thinking","level":"{sent}"}}"#) };
            assert_eq!(run.sent(), sent, "{keys}");
        };
        check("<alt+t>", "ask first · deep · … · ? keys", "deep");
        check("<alt+t>", "ask first · ultra · … · ? keys", "ultra");
        check("<alt+t>", "no thinking", "none");
        check("<alt+T>", "ask first · ultra · … · ? keys", "ultra");
        check("<tab>", "no thinking", "none");
        check("<tab>", "ask first · deep · … · ? keys", "deep");
    }
}

#[test]
fn what_the_engine_says_of_an_earlier_press_is_old() {
    let level = |level: Level| ThinkingInfo { level, asked: level, session: Some(level), ..info() };
    let mut run = begun(info());
    run.keys("<alt+t><alt+t>");
    let mut check = |said: Level, line: &str| {
        run.event(told(level(said)));
        assert_eq!(status(&mut run), line, "{said:?}");
    };
    check(Level::DeepThink, "ask first · ultra · … · ? keys");
    check(Level::UltraThink, "ask first · ultra · … · ? keys");
    // Changed by a command, with no press under way.
    check(Level::DeepThink, "ask first · deep · … · ? keys");
}

#[test]
fn tab_belongs_to_what_can_be_completed() {
    let sent = |keys: &str| begun(info()).keys(keys).sent();
    assert!(sent("<tab>").contains("set_thinking"));
    // A text, a popup, one that is still being filled, one that was closed, a search, a shell line.
    for keys in ["a text<tab>", "/the<tab>", "@src<tab>", "/the<esc><tab>", "<ctrl+r>x<tab>", "!ls<tab>"] {
        assert!(!sent(keys).contains("set_thinking"), "{keys}");
    }
}

#[test]
fn what_the_model_lacks_is_skipped_or_said() {
    let two = ThinkingInfo { supported: vec![Level::None, Level::DeepThink], ..info() };
    let mut run = begun(two.clone());
    run.keys("<alt+t>");
    assert_eq!(status(&mut run), "ask first · deep · … · ? keys");
    run.keys("<alt+t>");
    assert_eq!(run.sent().lines().last(), Some(r#"{"op":"set_thinking","level":"none"}"#));
    let line = |info: ThinkingInfo| status(&mut begun(info));
    let fell = ThinkingInfo { level: Level::DeepThink, asked: Level::UltraThink, ..two };
    assert_eq!(line(fell), "ask first · deep, at most · … · ? keys");
    let none = ThinkingInfo { asked: Level::DeepThink, supported: vec![Level::None], ..info() };
    assert_eq!(line(none.clone()), "ask first · cannot think · … · ? keys");
    let mut run = begun(none);
    run.keys("<alt+t>");
    assert_eq!((status(&mut run), run.sent()), ("this model cannot think".into(), String::new()));
}

#[test]
fn the_environment_locks_the_keys() {
    let locked = Some("COCODE_THINKING_LEVEL".to_owned());
    let mut run = begun(ThinkingInfo { level: Level::DeepThink, asked: Level::DeepThink, locked, ..info() });
    for key in ["<alt+t>", "<alt+T>", "<tab>"] {
        run.keys(key);
        assert_eq!((status(&mut run), run.sent()), ("locked by COCODE_THINKING_LEVEL".into(), String::new()));
        run.wait(9_000);
        assert_eq!(status(&mut run), "ask first · deep · … · ? keys");
    }
    // Words do not count either, so they are not lit.
    run.keys("ultrathink");
    assert_eq!((status(&mut run), lit(&mut run)), ("ask first · deep · … · ? keys".into(), vec![]));
}

/// What is emphasised on the screen, row by row.
fn lit(run: &mut Run) -> Vec<String> {
    let (width, height) = run.app.size;
    let rows = view::height(&run.app, 0, width, height);
    let mut buf = Buffer::empty(Rect::new(0, 0, width, rows));
    view::draw(&run.app, &[], buf.area, &mut buf, run.now);
    let row = |y: u16| -> String {
        (0..width)
            .filter(|x| buf[(*x, y)].modifier.contains(Modifier::BOLD))
            .map(|x| buf[(x, y)].symbol().to_owned())
            .collect()
    };
    (1..rows - 2).map(row).filter(|row| !row.trim().is_empty()).collect()
}

#[test]
fn words_are_lit_while_they_are_written() {
    let mut run = begun(info());
    let mut check = |keys: &str, want: &[&str], line: &str| {
        run.keys(keys);
        assert_eq!(
            (lit(&mut run), status(&mut run)),
            (want.iter().map(|word| (*word).to_owned()).collect(), line.into()),
            "{keys}"
        );
    };
    let (plain, ultra, deep) =
        ("ask first · … · ? keys", "ask first · ultra once · … · ? keys", "ask first · deep once · … · ? keys");
    check("fix it, ultrathin", &[], plain);
    check("k", &["ultrathink"], ultra);
    check("s", &[], plain);
    check("<bs> and <", &["ultrathink"], ultra);
    check("<ctrl+u>`deepthink", &["deepthink"], deep);
    check("` 请deepthink吧", &["deepthink"], deep);
    // Across a soft wrap, and in two rows.
    check(
        "<ctrl+u>aaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbb ULTRATHINK deepthink",
        &["ULTRATHINKdeepthink"],
        ultra,
    );
    check("<ctrl+u>!ultrathink", &[], plain);
}

#[test]
fn the_command_works_while_a_turn_runs() {
    let mut run = begun(info());
    run.busy().keys("/thinking deep<enter>").keys("/effort max<enter>").keys("/thinking auto<enter>");
    let sent = run.sent();
    let ops: Vec<&str> = sent.lines().filter(|line| line.contains("set_thinking")).collect();
    let want = ["\"deep\"", "\"ultra\"", "null"].map(|level| format!(r#"{{"op":"set_thinking","level":{level}}}"#));
    assert_eq!(ops, want);
    // What cannot be read is the engine's to explain.
    run.keys("/thinking hard<enter>");
    assert!(run.sent().contains(r#"{"op":"command","name":"thinking","args":"hard"}"#));
}
