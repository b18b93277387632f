//! What a yes would agree to has to be on the screen first, to its end.

use insta::assert_snapshot;

use super::super::{Run, ask};
use super::permission;
use crate::message::FileDiff;
use crate::protocol::Question;

#[test]
fn a_yes_waits_for_the_end_of_the_text() {
    let long: String = (1..=30).map(|n| format!("echo {n} && \\\n")).collect::<String>() + "rm -rf /";
    let uses = (1..=40).map(|n| format!("hook {n}")).collect();
    let trust = Question::Trust { folder: "/w".into(), plugin: None, uses, kept: Vec::new(), gone: Vec::new() };
    for size in [(40, 12), (80, 24), (40, 6), (20, 6)] {
        for (question, yes) in [(permission(&long, None), "1<enter>"), (trust.clone(), "1<enter>")] {
            let mut run = Run::new(size.0, size.1);
            run.question(1, question.clone()).live().keys(yes);
            assert_eq!(run.answers(), Vec::<String>::new(), "{size:?} {question:?}");
            let read = (0..120).any(|_| !run.keys(" ").frame().keys("1").answers().is_empty());
            assert!(read, "{size:?} {question:?}");
        }
        // A no is free; so is a diff that something can be seen of, since it can be undone.
        let mut run = Run::new(size.0, size.1);
        run.question(1, permission(&long, None)).live().keys("<esc>");
        assert_eq!(run.answers().len(), 1);
        let unified: String = (1..=90).map(|n| format!("+line {n}\n")).collect();
        let diff = FileDiff { path: "a.txt".into(), unified, added: 90, removed: 0, created: false };
        let mut run = Run::new(size.0, size.1);
        run.question(1, permission("a.txt", Some(diff))).live().keys("1");
        assert_eq!(run.answers().len(), usize::from(size.1 > 6));
    }
}

#[test]
fn what_is_read_before_a_yes() {
    let mut run = Run::new(40, 12);
    let hidden = format!("ls{}{}; rm -rf ~", " ".repeat(400), "\n".repeat(300));
    run.question(1, permission(&hidden, None)).live();
    assert_snapshot!(run.screen(), @r"
    ── Bash wants to run a command ───
    ls⟨400 blanks⟩
    ⟨299 blank lines⟩
    ; rm -rf ~
    › 1. Yes                               y
      2. Always ‹session›: Bash(touch:*)  ←→
      3. No, and say why                   n
    ↑↓ Enter choose · Esc no
    ask first · … · ? keys
    ");
    let long: String = (1..=30).map(|n| format!("echo {n}; ")).collect::<String>() + "rm -rf /";
    let mut run = Run::new(40, 12);
    run.question(1, permission(&long, None)).live();
    assert_snapshot!(run.screen(), @r"
    ── Bash wants to run a command ───
    echo 1; echo 2; echo 3; echo 4; echo 5;
    echo 6; echo 7; echo 8; echo 9; echo
    10; echo 11; echo 12; echo 13; echo 14;
    echo 15; echo 16; echo 17; echo 18;
    echo 19; echo 20; echo 21; echo 22;
    echo 23; echo 24; echo 25; echo 26;
    › 1. (read to the end first) Yes
      2. (read to the end first) Yes, always
      3. No, and say why                   n
    PgDn: 2 more rows to read before Yes · …
    ask first · … · ? keys
    ");
    run.keys("<end>").frame();
    assert_snapshot!(run.screen(), @r"
    ── Bash wants to run a command ───
    10; echo 11; echo 12; echo 13; echo 14;
    echo 15; echo 16; echo 17; echo 18;
    echo 19; echo 20; echo 21; echo 22;
    echo 23; echo 24; echo 25; echo 26;
    echo 27; echo 28; echo 29; echo 30; rm
    -rf /
    › 1. Yes                               y
      2. Always ‹session›: Bash(touch:*)  ←→
      3. No, and say why                   n
    PgUp/PgDn 2↑ 0↓ · Enter choose · Esc no
    ask first · … · ? keys
    ");
    let rules: Vec<String> = (1..=30).map(|n| format!("Bash(tool{n}:*)")).collect();
    let mut run = Run::new(40, 12);
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    run.event(ask(1, "ls", &rules)).live().keys("2");
    assert_eq!(run.answers(), Vec::<String>::new());
    assert_snapshot!(run.screen(), @r"
    ── Bash wants to run a command ───
    ls
    · npm is not known to be read-only
    “Yes, always” would stop asking for
    these:
    Bash(tool1:*)
    Bash(tool2:*)
      1. (read to the end first) Yes
    › 2. (read to the end first) Yes, always
      3. No, and say why                   n
    PgDn: 28 more rows to read before Yes ·…
    ask first · … · ? keys
    ");
    run.keys("<end>").frame().keys("2");
    assert_eq!(run.answers().len(), 1);
}
