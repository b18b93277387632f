//! The one page of an approval: letters, scopes, several edits at once, and what is in sight when it is chosen.

use insta::assert_snapshot;
use serde_json::json;

use super::{Run, ask};
use crate::message::{CallId, FileDiff};
use crate::protocol::*;
use crate::tui::msg::Msg;

#[test]
fn what_holds_for_the_session_at_most_offers_nothing_else() {
    let mut run = Run::new(100, 24);
    let question = Question::Permission {
        call: CallId::nth(1),
        tool: "Recall".into(),
        title: "earlier sessions of this project: parser".into(),
        input: json!({}),
        diff: None,
        reasons: Vec::new(),
        suggestions: vec!["Recall(earlier)".into()],
        all_edits: false,
        session_only: true,
        confined: false,
        unasked: false,
        preset: None,
    };
    run.event(Event::Ask(Ask { id: AskId(1), question, asker: None }));
    run.live().keys("<right><right>");
    let screen = run.screen();
    assert!(screen.contains("2. Yes, always: Recall(earlier)   ‹session›"), "{screen}");
    assert!(screen.contains("earlier sessions of this project: parser") && !screen.contains(" me "), "{screen}");
}

#[test]
fn the_keys_beside_the_choices_end_in_one_column() {
    let mut run = Run::new(80, 24);
    run.event(ask(1, "touch danger.txt", &["Bash(touch danger.txt)"])).live();
    let screen = run.screen();
    let ends = ["1. Yes ", "2. Yes, always", "3. No"].map(|choice| {
        let row = screen.lines().find(|row| row.contains(choice)).expect("a row of each choice");
        row.trim_end().chars().count()
    });
    assert!(ends.iter().all(|end| *end == ends[0]), "{screen}");
}

/// An edit of a file by a line, as mode `acceptEdits` would allow it.
fn edit(id: u64, path: &str) -> Event {
    let unified = "-    println!(\"hello\");\n+    println!(\"good morning\");\n";
    let diff = FileDiff { path: path.into(), unified: unified.into(), added: 1, removed: 1, created: false };
    let question = Question::Permission {
        call: CallId::nth(id),
        tool: "Edit".into(),
        title: path.into(),
        input: json!({"old_string": "hello", "new_string": "good morning"}),
        diff: Some(diff),
        reasons: Vec::new(),
        suggestions: vec!["Edit(/src/**)".into()],
        all_edits: true,
        session_only: false,
        confined: false,
        unasked: false,
        preset: None,
    };
    Event::Ask(Ask { id: AskId(id), question, asker: None })
}

#[test]
fn all_of_it_on_one_page() {
    let mut run = Run::new(80, 24);
    run.event(edit(1, "src/main.rs")).event(ask(2, "ls", &[])).event(edit(3, "src/lib.rs")).live();
    assert_snapshot!(run.screen(), @r#"
    ── Edit wants to change src/main.rs (+1 −1) ────────────────────────── 1 of 3 ───
    1 -     println!("hello");
    1 +     println!("good morning");
    › 1. Yes                                                       y
      2. Yes, all edits in this session                    shift+tab
      3. Yes, always: Edit(/src/**)   ‹session› project  me       ←→
      4. No, and say why                                           n
      5. Both edits: this, src/lib.rs                              a
    ↑↓ Enter choose · Esc no · e edit · d whole diff
    ask first · … · 2 more questions
    "#);
    run.keys("<right>");
    assert_snapshot!(run.screen(), @r#"
    ── Edit wants to change src/main.rs (+1 −1) ────────────────────────── 1 of 3 ───
    1 -     println!("hello");
    1 +     println!("good morning");
      1. Yes                                                       y
      2. Yes, all edits in this session                    shift+tab
    › 3. Yes, always: Edit(/src/**)    session ‹project› me       ←→
      4. No, and say why                                           n
      5. Both edits: this, src/lib.rs                              a
    project: .claude/settings.local.json · ↑↓ Enter choose · Esc no · e edit
    ask first · … · 2 more questions
    "#);
    run.msg(Msg::Resize(40, 12)).wait(1_000).live();
    assert_snapshot!(run.screen(), @r#"
    ── Edit wants to change src… ─ 1 of 3 ───
    1 -     println!("hello");
    1 +     println!("good morning");
      1. Yes                               y
      2. Yes, all edits in this session
    › 3. Always ‹project›: Edit(/src/**)  ←→
      4. No, and say why                   n
      5. Both edits: this, src/lib.rs      a
    project: .claude/settings.local.json
    ask first · … · 2 more questions
    "#);
    run.msg(Msg::Resize(200, 60)).wait(1_000).live();
    assert_snapshot!(run.screen(), @r#"
    ── Edit wants to change src/main.rs (+1 −1) ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────── 1 of 3 ───
    1 -     println!("hello");
    1 +     println!("good morning");
      1. Yes                                                       y
      2. Yes, all edits in this session                    shift+tab
    › 3. Yes, always: Edit(/src/**)    session ‹project› me       ←→
      4. No, and say why                                           n
      5. Both edits: this, src/lib.rs                              a
    project: .claude/settings.local.json · ↑↓ Enter choose · Esc no · e edit · d whole diff
    ask first · … · 2 more questions
    "#);
}

#[test]
fn letters_and_digits_say_the_same() {
    let yes = r#"{"type":"yes"}"#;
    let all = r#"{"type":"all_edits"}"#;
    let always = |scope: &str| format!(r#"{{"type":"always","rules":["Edit(/src/**)"],"scope":"{scope}"}}"#);
    let no = r#"{"type":"no","feedback":"use a const"}"#;
    for (keys, want) in [
        ("y", yes),
        ("1", yes),
        ("<enter>", yes),
        ("<backtab>", all),
        ("2", all),
        ("3", &always("session")),
        ("<right><enter>", &always("project")),
        ("<right><right><right>3", &always("user")),
        ("<right><right><left><enter>", &always("project")),
        ("<left><left><right><left><enter>", &always("session")),
        ("<right>y", yes),
        ("nuse a const<enter>", no),
        ("4use a const<enter>", no),
        ("a", ""),
        ("5", ""),
        ("<left>n<enter>", r#"{"type":"no","feedback":null}"#),
        ("ny<enter>", r#"{"type":"no","feedback":"y"}"#),
    ] {
        for size in [(40, 12), (80, 24), (200, 60)] {
            let mut run = Run::new(size.0, size.1);
            run.event(edit(1, "src/main.rs")).live().keys(keys);
            let want =
                if want.is_empty() { String::new() } else { format!(r#"{{"op":"answer","id":1,"answer":{want}}}"#) };
            assert_eq!(run.sent(), want, "{keys} {size:?}");
        }
    }
    // A question with two ways out has its letters, too; what is not offered does nothing.
    for (keys, want) in
        [("y", r#"{"type":"yes"}"#), ("n", r#"{"type":"no","feedback":null}"#), ("<backtab>", ""), ("a", "")]
    {
        let mut run = Run::new(80, 24);
        let question = Question::Trust {
            folder: "/w".into(),
            plugin: None,
            uses: vec!["a hook".into()],
            kept: Vec::new(),
            gone: Vec::new(),
        };
        run.event(Event::Ask(Ask { id: AskId(1), question, asker: None })).live().keys(keys);
        let want = if want.is_empty() { String::new() } else { format!(r#"{{"op":"answer","id":1,"answer":{want}}}"#) };
        assert_eq!(run.sent(), want, "{keys}");
    }
}

#[test]
fn no_letter_allows_what_was_not_read() {
    let long: String = (1..=60).map(|n| format!("echo {n} && \\\n")).collect::<String>() + "rm -rf /";
    for keys in ["y", "2", "<right><enter>", "<left>2", "<backtab>", "a"] {
        let mut run = Run::new(80, 24);
        run.event(ask(1, &long, &["Bash(echo:*)"])).live().keys(keys);
        assert_eq!(run.sent(), "", "{keys}");
    }
    let mut run = Run::new(80, 24);
    run.event(ask(1, &long, &["Bash(echo:*)"])).live().keys("<end>").frame().keys("y");
    assert_eq!(run.sent(), r#"{"op":"answer","id":1,"answer":{"type":"yes"}}"#);
}

#[test]
fn rules_are_in_sight_when_they_are_kept() {
    let many: Vec<String> = (1..=12).map(|n| format!("Bash(tool{n}:*)")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let hidden = format!("Bash(ls{}rm:*)", " ".repeat(200));
    for rules in [
        &["Bash(npm run build:*)", "Bash(npm run deploy:*)"][..],
        &many,
        &["Bash(ls:*)"],
        &[&hidden],
        &["Bash(a\nb:*)"],
    ] {
        for (width, height) in
            [20, 29, 40, 47, 63, 80, 88, 120].into_iter().flat_map(|width| [(width, 12), (width, 24)])
        {
            let mut run = Run::new(width, height);
            run.event(ask(1, "ls", rules)).live();
            let mut seen = String::new();
            for _ in 0..40 {
                seen.push_str(&run.screen().replace(['\n', ' '], ""));
                if !run.keys("2").sent().is_empty() {
                    break;
                }
                run.keys("<pgdn>").frame();
            }
            assert!(run.app.asks.is_empty(), "{rules:?} {width}x{height}");
            for rule in rules {
                let rule = crate::tui::paint::visible(&crate::tui::paint::dense(rule)).replace(['\n', ' '], "");
                assert!(seen.contains(&rule), "{rule} {width}x{height}: {seen}");
            }
            assert!(seen.contains("‹s") || seen.contains("‹session›"), "{width}x{height}: {seen}");
        }
    }
}

#[test]
fn one_answer_for_all_edits_covers_no_command() {
    let mut run = Run::new(80, 24);
    run.event(edit(1, "a.rs")).event(ask(2, "rm x", &[])).event(edit(3, "b.rs")).live();
    assert!(run.screen().contains("5. Both edits: this, b.rs"), "{}", run.screen());
    run.keys("a");
    let yes = |id: u64| format!(r#"{{"op":"answer","id":{id},"answer":{{"type":"yes"}}}}"#);
    assert_eq!(run.sent(), [yes(1), yes(3)].join("\n"));
    run.live();
    assert!(run.screen().contains("3 of 3") && !run.screen().contains("edits"), "{}", run.screen());
    // In front of a command nothing is offered, and what mode acceptEdits would not allow is not among them.
    let mut run = Run::new(80, 24);
    let Event::Ask(mut outside) = edit(4, "/etc/hosts") else { unreachable!() };
    if let Question::Permission { all_edits, .. } = &mut outside.question {
        *all_edits = false;
    }
    run.event(ask(1, "rm x", &[])).event(edit(2, "a.rs")).event(edit(3, "b.rs")).event(Event::Ask(outside)).live();
    run.keys("3").keys("4").keys("<backtab>");
    assert_eq!((run.sent().as_str(), run.screen().contains("edits")), ("", false));
    run.event(Event::AskClosed { id: AskId(1) }).live().keys("5");
    assert_eq!(run.sent(), [yes(2), yes(3)].join("\n"));
    run.live().keys("<backtab>").keys("5");
    assert_eq!(run.sent(), "");
}

#[test]
fn what_arrives_under_the_finger_is_not_answered() {
    let mut run = Run::new(80, 24);
    run.event(edit(1, "a.rs")).event(edit(2, "b.rs")).live().event(edit(3, "c.rs")).keys("5");
    assert_eq!((run.sent().as_str(), run.app.draft().text.as_str()), ("", "5"));
    run.live().event(edit(4, "d.rs")).frame().wait(999).keys("<enter>").wait(1_000).keys("a").wait(500);
    assert_eq!(run.sent().lines().count(), 4);
    // One that is withdrawn meanwhile is not answered either.
    run.event(edit(5, "a.rs")).event(edit(6, "b.rs")).event(edit(7, "c.rs")).live();
    run.event(Event::AskClosed { id: AskId(6) }).keys("a").wait(500);
    assert_eq!(run.sent().lines().count(), 2);
}

#[test]
fn who_thinks_in_the_middle_of_a_prompt_answers_nothing() {
    // Milliseconds between the frame of the question and the next key, which continues the prompt.
    for millis in [0, 499, 500, 800, 999, 1_000, 5_000] {
        let mut run = Run::new(80, 24);
        run.busy().types("and then check ").event(ask(1, "touch danger.txt", &[])).wait(1_000).frame();
        run.wait(millis).types("your 1 a n");
        let draft = run.app.draft().text;
        assert_eq!((run.answers(), draft.as_str()), (Vec::new(), "and then check your 1 a n"), "{millis}");
    }
    // Enter was meant for the prompt, too, if it comes before anybody can have read the question.
    let mut run = Run::new(80, 24);
    run.busy().types("and z ").event(ask(1, "touch danger.txt", &[])).wait(1_000).frame();
    run.wait(999).keys("<enter>");
    assert!(run.answers().is_empty());
    // A letter alone still chooses, and the draft stays.
    run.wait(1_000).keys("y").wait(500);
    assert_eq!((run.answers().len(), run.app.draft().text.as_str()), (1, "and z "));
    // Who opens it with Tab has seen it.
    let mut run = Run::new(80, 24);
    run.busy().types("and z ").event(ask(1, "touch danger.txt", &[])).keys("<tab>").frame();
    run.wait(500).keys("y").wait(50);
    assert_eq!(run.answers().len(), 1);
}

#[test]
fn the_whole_diff_opens_and_stays_at_every_width() {
    let mut run = Run::new(80, 24);
    run.event(edit(1, "src/main.rs")).live().keys("d").msg(Msg::Resize(40, 12));
    let pager = |run: &Run| {
        let mut buf = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 40, 12));
        crate::tui::view::draw_over(&run.app, buf.area, &mut buf);
        (0..3)
            .map(|y| (0..40).map(|x| buf[(x, y)].symbol()).collect::<String>().trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_snapshot!(pager(&run), @r#"
    src/main.rs  +1 −1
    1 -     println!("hello");
    1 +     println!("good morning");
    "#);
    // Behind it the question is to be read again.
    run.keys("q").keys("1").frame();
    assert_eq!((run.sent().as_str(), run.app.draft().text.as_str()), ("", "1"));
    run.live().keys("1").wait(500);
    assert_eq!(run.sent(), r#"{"op":"answer","id":1,"answer":{"type":"yes"}}"#);
    // Where nothing changes, the letter is the prompt's.
    let mut run = Run::new(80, 24);
    run.event(ask(1, "ls", &[])).live().keys("d");
    assert_eq!((run.app.pager().is_none(), run.app.draft().text.as_str()), (true, "d"));
}

#[test]
fn nothing_is_allowed_that_has_no_room_on_the_screen() {
    let questions = || {
        let asked = |id, question| Event::Ask(Ask { id: AskId(id), question, asker: None });
        let options = vec![ChoiceOption { label: "x".into(), description: String::new() }];
        let choices = Choices { header: "H".into(), question: "Which?".into(), multi: false, options };
        [
            edit(1, "src/main.rs"),
            ask(1, "rm -rf /", &[]),
            asked(
                1,
                Question::Import {
                    file: "/w/AGENTS.md".into(),
                    import: "/etc/x".into(),
                    reason: "it is outside".into(),
                },
            ),
            asked(1, Question::LocalServer { url: "http://127.0.0.1:1".into(), model: "m".into() }),
            asked(1, Question::Plan { plan: "# Plan\n".into(), path: "/w/p.md".into() }),
            asked(1, Question::Choices { questions: vec![choices] }),
        ]
    };
    let smallest = [7, 5, 5, 5, 7, 6];
    for (question, smallest) in questions().into_iter().zip(smallest) {
        for (width, height) in (1..smallest).map(|height| (40, height)).chain([(12, 24), (80, 24)]) {
            for keys in ["y", "1", "<enter>", "<right><enter>", "<backtab>"] {
                let mut run = Run::new(width, height);
                run.event(question.clone()).live();
                let what = format!("{question:?} {width}x{height} {keys}");
                let cramped = run.screen().contains("Make the") || super::reviews::over(&run).contains("Make the");
                assert_eq!(cramped, width < 80, "{what}: {}", run.screen());
                let answered = run.keys(keys).sent().contains("answer");
                assert!(if cramped { !answered } else { answered || keys != "1" }, "{what}");
            }
        }
    }
}

#[test]
fn what_an_edit_writes_can_be_edited() {
    let mut run = Run::new(80, 24);
    run.event(edit(1, "src/main.rs")).live().keys("e").wait(50);
    run.msg(Msg::Rewritten { id: AskId(1), text: Ok(None) });
    assert!(run.app.asks.front().is_some(), "nothing was changed, and the question stays");
    run.msg(Msg::Rewritten { id: AskId(1), text: Ok(Some("good evening".into())) });
    assert!(run.app.asks.front().is_none(), "it comes again with the new change");
    assert_snapshot!(run.sent(), @r#"
    Rewrite(AskId(1), "good morning")
    {"op":"answer","id":1,"answer":{"type":"rewrite","text":"good evening"}}
    "#);
}
