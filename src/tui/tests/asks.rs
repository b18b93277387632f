//! Questions come up while somebody writes, reads or waits: what is typed is never an answer, and never lost.

mod read;

use insta::assert_snapshot;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use serde_json::json;

use super::contacts::connect;
use super::{Run, ask};
use crate::message::{CallId, FileDiff};
use crate::protocol::*;
use crate::tui::msg::Msg;

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];

/// Letters that mean something in one dialog or another, digits, and blanks.
const SENTENCE: &str = "rename it to 2, y or n? ecjk bgG 1 4 a";

fn permission(command: &str, diff: Option<FileDiff>) -> Question {
    Question::Permission {
        call: CallId::nth(1),
        tool: if diff.is_some() { "Edit" } else { "Bash" }.into(),
        title: command.into(),
        input: json!({ "command": command }),
        all_edits: diff.is_some(),
        diff,
        reasons: Vec::new(),
        suggestions: vec!["Bash(touch:*)".into()],
        session_only: false,
        confined: false,
        unasked: false,
        preset: None,
    }
}

/// One question of every kind.
fn kinds() -> Vec<Question> {
    let diff = FileDiff { path: "a.txt".into(), unified: "-a\n+b\n".into(), added: 1, removed: 1, created: false };
    let option = |label: &str| ChoiceOption { label: label.into(), description: String::new() };
    let options = vec![option("x"), option("y")];
    let choices = |multi| Choices { header: "H".into(), question: "Which?".into(), multi, options: options.clone() };
    let all = vec![
        permission("touch danger.txt", None),
        permission("a.txt", Some(diff)),
        Question::Trust {
            folder: "/w".into(),
            plugin: None,
            uses: vec!["a hook: touch danger.txt".into()],
            kept: Vec::new(),
            gone: Vec::new(),
        },
        connect(),
        Question::LocalServer { url: "http://127.0.0.1:11434".into(), model: "m".into() },
        Question::Repeated { tool: "Bash".into(), title: "ls".into(), times: 5 },
        Question::Unrecorded { path: "/w/a.txt".into() },
        Question::Locked { session: "s".into() },
        Question::Import { file: "/w/AGENTS.md".into(), import: "/etc/x".into(), reason: "it is outside".into() },
        Question::EnterPlan { reason: None },
        Question::Plan { plan: "# Plan\n".into(), path: "/w/p.md".into() },
        Question::Choices { questions: vec![choices(false)] },
        Question::Choices { questions: vec![choices(true), choices(false)] },
    ];
    for question in &all {
        match question {
            Question::Permission { .. }
            | Question::Connect { .. }
            | Question::Trust { .. }
            | Question::LocalServer { .. }
            | Question::Repeated { .. }
            | Question::Unrecorded { .. }
            | Question::Locked { .. }
            | Question::Import { .. }
            | Question::EnterPlan { .. }
            | Question::Plan { .. }
            | Question::Choices { .. } => {}
        }
    }
    all
}

impl Run {
    fn question(&mut self, id: u64, question: Question) -> &mut Run {
        self.event(Event::Ask(Ask { id: AskId(id), question, asker: None }))
    }

    /// Types as a person does, while the loop keeps ticking and drawing.
    pub(super) fn types(&mut self, text: &str) -> &mut Run {
        for c in text.chars() {
            self.wait(60).frame().keys(&c.to_string());
        }
        self
    }

    pub(super) fn answers(&mut self) -> Vec<String> {
        self.sent().lines().filter(|line| line.contains("\"answer\"")).map(str::to_owned).collect()
    }
}

#[test]
fn a_sentence_answers_nothing_and_loses_no_letter() {
    // Milliseconds from the arrival of the question to the next letter; frames are drawn where one is due.
    let moments: [&[u64]; 8] = [&[0], &[1], &[500], &[999], &[1_000], &[1_000, 1], &[1_000, 250], &[1_000, 499]];
    for size in SIZES {
        for question in kinds() {
            for split in if size == SIZES[0] { 0..3 } else { 1..2 }.map(|at| 11 * at) {
                for moment in moments {
                    let mut run = Run::new(size.0, size.1);
                    let (before, after) = SENTENCE.split_at(split);
                    run.busy().types(before).question(1, question.clone());
                    for millis in moment {
                        run.wait(*millis);
                        // At the very opening the frame is not there yet.
                        if *moment != [1_000] {
                            run.frame();
                        }
                    }
                    run.keys(&after[..1]).types(&after[1..]);
                    let what = format!("{size:?} {question:?} {split} {moment:?}");
                    assert_eq!((run.answers(), run.app.draft().text.as_str()), (Vec::new(), SENTENCE), "{what}");
                    assert!(run.app.asks.waiting().is_some(), "{what}");
                    // What is there can be sent meanwhile, and the question is still to be answered.
                    run.keys("<enter>");
                    assert!(run.sent().contains(r#""op":"prompt""#), "{what}");
                    run.live();
                }
            }
        }
    }
}

#[test]
fn no_key_answers_what_has_just_come_up() {
    let keys = [
        "<enter>",
        "1",
        "2",
        "<esc>",
        " ",
        "y",
        "<tab>",
        "<down><enter>",
        "<up><enter>",
        "3<enter>",
        "n",
        "a",
        "d",
        "<backtab>",
        "<right><enter>",
    ];
    for size in SIZES {
        for question in kinds() {
            for keys in keys {
                for opened in ["", "<tab>"] {
                    let mut run = Run::new(size.0, size.1);
                    run.question(1, question.clone());
                    match opened {
                        "" => run.wait(1_000),
                        tab => run.keys(tab),
                    };
                    assert!(run.app.asks.open().is_some());
                    run.frame().wait(499).keys(keys);
                    assert_eq!(run.answers(), Vec::<String>::new(), "{size:?} {question:?} {keys}");
                }
            }
        }
    }
}

#[test]
fn enter_works_half_a_second_after_the_frame() {
    let mut run = Run::new(80, 24);
    // Somebody stopped the output: nothing can be read for as long as it takes.
    run.event(ask(1, "ls", &[])).wait(1_000).wait(60_000).frame();
    // One that is held down answers only after it was let go.
    for _ in 0..60 {
        run.wait(33).keys("<enter>");
    }
    assert!(run.answers().is_empty());
    run.wait(499).keys("<enter>").wait(500).keys("<enter>");
    assert_eq!(run.sent(), r#"{"op":"answer","id":1,"answer":{"type":"yes"}}"#);
}

/// Esc and Enter that come in one read over a slow line.
#[test]
fn an_enter_with_a_modifier_answers_nothing() {
    for question in kinds() {
        for key in ["<alt+enter>", "<ctrl+enter>", "<shift+enter>"] {
            let mut run = Run::new(80, 24);
            run.question(1, question.clone()).live().keys(key);
            assert!(run.answers().is_empty() && run.app.asks.live(), "{key} {question:?}");
        }
    }
}

#[test]
fn keys_that_were_pressed_before_are_dealt_with_before_time_goes_on() {
    // The loop was held up for long: the keys are older than what is due.
    let mut run = Run::new(80, 24);
    run.keys("dra").event(ask(1, "ls", &[]));
    run.now += std::time::Duration::from_secs(60);
    run.keys("ft 1<enter>");
    assert_eq!((run.answers(), run.app.asks.open().is_none()), (Vec::new(), true));
    run.wait(1_000).frame();
    run.now += std::time::Duration::from_secs(60);
    run.keys("<enter>1");
    assert_eq!((run.answers(), run.app.draft().text.as_str()), (Vec::new(), "1"));
}

#[test]
fn the_key_that_answers_one_question_answers_no_other() {
    let mut run = Run::new(80, 24);
    run.event(ask(1, "ls", &[])).event(ask(2, "pwd", &[])).live();
    run.keys("1<enter>1<esc>2");
    assert_eq!(run.answers(), [r#"{"op":"answer","id":1,"answer":{"type":"yes"}}"#]);
    run.keys("<ctrl+c>").live().keys("<down><enter>use fd<enter>");
    assert_eq!(run.answers(), [r#"{"op":"answer","id":2,"answer":{"type":"no","feedback":"use fd"}}"#]);
    // The engine withdraws the one in front while a finger is on its way.
    run.event(ask(3, "ls", &[])).event(ask(4, "pwd", &[])).live().event(Event::AskClosed { id: AskId(3) });
    run.keys("1<enter>").frame();
    assert_eq!(run.answers(), Vec::<String>::new());
    run.event(ask(5, "ls", &[])).live().event(Event::AskClosed { id: AskId(5) }).keys("1");
    assert_eq!(run.answers(), [r#"{"op":"answer","id":4,"answer":{"type":"yes"}}"#]);
}

#[test]
fn the_same_question_asked_again_waits_again() {
    let mut run = Run::new(80, 24);
    run.event(ask(1, "ls", &[])).live().event(ask(1, "rm -rf /", &[])).keys("1");
    assert_eq!((run.answers(), run.app.draft().text.as_str()), (Vec::new(), "1"));
}

#[test]
fn a_paste_is_the_prompts() {
    for question in kinds() {
        for stage in [0, 1, 2, 3] {
            let mut run = Run::new(40, 12);
            run.keys("a ").question(1, question.clone());
            match stage {
                0 => &mut run,
                1 => run.wait(1_000),
                2 => run.wait(1_000).frame(),
                _ => run.live(),
            };
            run.paste("1\n2\ny").wait(60).frame();
            let what = format!("{question:?} {stage}");
            assert_eq!((run.answers(), run.app.draft().text.as_str()), (Vec::new(), "a 1\n2\ny"), "{what}");
            assert!(run.app.asks.waiting().is_some(), "{what}");
        }
    }
    // Where words are being written, they are the dialog's.
    let mut run = Run::new(80, 24);
    run.event(ask(1, "ls", &[])).live().keys("2").paste("use\nfd").keys("<enter>");
    assert_eq!(run.answers(), [r#"{"op":"answer","id":1,"answer":{"type":"no","feedback":"use fd"}}"#]);
}

#[test]
fn what_else_had_the_screen_starts_the_half_second_again() {
    for away in ["<ctrl+z>", "<ctrl+g>", "e"] {
        let mut run = Run::new(80, 24);
        run.question(1, Question::Plan { plan: "# Plan\n".into(), path: "/w/p.md".into() }).live().keys(away);
        run.frame().keys("<enter>").wait(499).keys("<enter>");
        assert_eq!(run.answers(), Vec::<String>::new(), "{away}");
        run.wait(500).keys("<enter>");
        assert_eq!(run.answers().len(), 1, "{away}");
    }
}

#[test]
fn text_that_comes_at_once_chooses_nothing_and_loses_no_letter() {
    let key = |c: char| KeyEvent::from(if c == '\r' { KeyCode::Enter } else { KeyCode::Char(c) });
    for size in SIZES {
        for question in kinds() {
            for text in ["yes please", "yarn test", "yyyy", "1+1\r", "y\r", "2nd one", "nn", "a1", "1 2"] {
                // In one read; or in several that follow each other at once.
                for gap in [None, Some(0), Some(49)] {
                    let mut run = Run::new(size.0, size.1);
                    run.busy().question(1, question.clone()).live();
                    let what = format!("{size:?} {question:?} {text:?} {gap:?}");
                    // Typing at such a question writes the answer.
                    if gap.is_some() && matches!(question, Question::Choices { .. }) {
                        continue;
                    }
                    for c in text.chars() {
                        match gap {
                            None => run.msg(Msg::Written(key(c))),
                            Some(gap) => run.msg(Msg::Key(key(c))).wait(gap),
                        };
                    }
                    run.wait(60);
                    let done = run.sent();
                    assert!(!done.contains(r#""answer""#), "{what}: {done}");
                    let (want, sent) = text.strip_suffix('\r').map_or((text, false), |line| (line, true));
                    if sent {
                        assert!(
                            done.contains(r#""op":"prompt""#) && done.contains(&format!(r#""{want}""#)),
                            "{what}: {done}"
                        );
                    } else {
                        assert_eq!(run.app.draft().text, want, "{what}");
                    }
                    assert!(run.app.asks.waiting().is_some(), "{what}");
                }
            }
        }
    }
    // Where words are being written, it is part of them.
    let mut run = Run::new(80, 24);
    run.event(ask(1, "ls", &[])).live().keys("n");
    for c in "use fd\r".chars() {
        run.msg(Msg::Written(key(c)));
    }
    assert_eq!(run.answers(), [r#"{"op":"answer","id":1,"answer":{"type":"no","feedback":"use fd"}}"#]);
}

#[test]
fn a_letter_chooses_when_it_stands_alone() {
    let yes = r#"{"op":"answer","id":1,"answer":{"type":"yes"}}"#;
    let y = || Msg::Key(KeyEvent::from(KeyCode::Char('y')));
    let mut run = Run::new(80, 24);
    run.event(ask(1, "ls", &[])).live().msg(y());
    assert_eq!(run.app.wake(run.now), Some(run.now + crate::tui::asks::ALONE));
    assert_eq!(run.wait(49).answers(), Vec::<String>::new());
    assert_eq!(run.wait(1).answers(), [yes]);
    // What leads elsewhere takes its place; what takes the screen away takes the key as well.
    for msg in [Msg::Key(KeyEvent::from(KeyCode::Down)), Msg::Torn, Msg::Resize(80, 24)] {
        let mut run = Run::new(80, 24);
        run.event(ask(1, "ls", &[])).live().msg(y()).msg(msg).wait(60);
        assert_eq!((run.answers(), run.app.draft().text.as_str()), (Vec::new(), ""));
    }
}

#[test]
fn what_may_have_left_the_screen_or_come_torn_has_to_be_read_again() {
    for size in SIZES {
        for question in kinds() {
            for msg in [Msg::Torn, Msg::Resize(size.0, size.1)] {
                let mut run = Run::new(size.0, size.1);
                run.question(1, question.clone()).live().msg(msg.clone());
                run.wait(60_000).frame().keys("<enter>").wait(499).keys("<enter>");
                assert_eq!(run.answers(), Vec::<String>::new(), "{size:?} {question:?} {msg:?}");
                run.wait(500);
                assert!(run.app.asks.live(), "{size:?} {question:?} {msg:?}");
            }
        }
    }
}

#[test]
fn tab_looks_now_where_it_means_nothing_else() {
    let check = |before: &str, opens: bool| {
        let mut run = Run::new(80, 24);
        run.keys(before).event(ask(1, "ls", &[])).keys("<tab>");
        assert_eq!(run.app.asks.open().is_some(), opens, "{before:?}");
    };
    check("", true);
    check("some words", true);
    check("/mo", false);
    check("<ctrl+r>", false);
}

#[test]
fn a_resize_moves_nothing_on() {
    let mut run = Run::new(80, 24);
    run.keys("dr").event(ask(1, "ls", &[])).msg(Msg::Resize(40, 12)).keys("1");
    assert_eq!((run.answers(), run.app.draft().text.as_str()), (Vec::new(), "dr1"));
    run.wait(1_000);
    // The screen was drawn for another size than the one that it has.
    run.app.drawn((80, 24), run.now);
    run.wait(500).keys("<enter>");
    assert_eq!(run.answers(), Vec::<String>::new());
    run.live().msg(Msg::Resize(80, 24)).frame().wait(500).keys("1");
    assert_eq!(run.answers(), [r#"{"op":"answer","id":1,"answer":{"type":"yes"}}"#]);
}

#[test]
fn a_question_waits_in_one_line() {
    let mut run = Run::new(80, 12);
    run.busy().keys("also rename it").event(ask(1, "touch danger.txt", &[])).event(ask(2, "ls", &[]));
    assert_snapshot!(run.screen(), @r"
    ? Bash wants to run a command · waiting until you stop typing (Tab: open now)
    ───
    > also rename it▏
    ───
    ask first · … · 1 more question
    ");
    run.wait(1_000);
    assert_snapshot!(run.screen(), @r"
    ── Bash wants to run a command ─────────────────────────────────────── 1 of 2 ───
    touch danger.txt
    · npm is not known to be read-only
    › 1. Yes                                                       y
      2. No, and say why                                           n
    keys work in a moment
    ask first · … · 1 more question
    ");
    run.frame().wait(1_000);
    assert_snapshot!(run.screen(), @r"
    ── Bash wants to run a command ─────────────────────────────────────── 1 of 2 ───
    touch danger.txt
    · npm is not known to be read-only
    › 1. Yes                                                       y
      2. No, and say why                                           n
    ↑↓ Enter choose · Esc no
    ask first · … · 1 more question
    ");
    let mut run = Run::new(40, 12);
    let asker = Some(Asker { agent: "Explore".into(), description: "find the parser".into() });
    run.event(Event::Ask(Ask { id: AskId(1), question: permission("ls", None), asker })).keys("x");
    assert_snapshot!(run.screen(), @r"
    ? Explore (find the parser)… · Tab: open
    ───
    > x▏
    ───
    ask first · … · ? keys
    ");
    run.keys("<ctrl+r>");
    assert_snapshot!(run.screen(), @r"
    ? Explore (find the parser): … · waiting
    ───
    search: ▏
    type to search earlier prompts
    ───
    ask first · … · ? keys
    ");
}
