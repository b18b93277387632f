//! Sessions of other agents are imported, found and resumed; importing again changes only what has changed.

use std::fs;
use std::path::Path;

use super::support::program::Program;
use super::terminal::{launch, leave};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => fs::write(to, fs::read(entry.path()).unwrap()).unwrap(),
        }
    }
}

/// A home where four agents have left sessions.
fn with_sessions() -> Program {
    let program = Program::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import");
    for (from, to) in
        [("claude", ".claude"), ("codex", ".codex"), ("opencode", ".local/share/opencode"), ("pi", ".pi/agent")]
    {
        copy(&data.join(from), &program.home().join(to));
    }
    program
}

const ALL: &str = "\
Claude Code  2 imported  (~/.claude/projects)
Codex        1 imported, 1 without a prompt of yours  (~/.codex)
opencode     3 imported  (~/.local/share/opencode)
pi           1 imported  (~/.pi/agent/sessions)
";

#[test]
fn what_four_agents_left_is_imported_once_and_found() {
    let program = with_sessions();
    let ran = program.run(&["import", "--dry-run"]);
    assert!(
        ran.out.contains("2 to import") && ran.out.contains("Cormorant census  /home/me/pier  3 prompts"),
        "{ran:?}"
    );
    assert!(program.logs().is_empty());
    let ran = program.run(&["import"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ALL), "{}", ran.err);
    for (words, want) in [
        ("listens", "turn 2 reply: The harbor server listens on port 8731."),
        ("port", "turn 2 result Read: port = 8731"),
        ("albatross", "turn 1 prompt: Remember the albatross"),
        ("count.py", "turn 1 call Bash: command: cat count.py"),
        ("pelicans", "turn 1 reply: The counter says two pelicans now."),
        ("tide", "turn 1 prompt: When is high tide? token=[hidden]"),
        ("lighthouse", "turn 1 prompt: Only in the log yet: the lighthouse"),
        ("sextants", "turn 1 reply: Old sextants."),
        ("cormorant", "turn 1 result: …cormorant commit"),
        ("newest", "turn 2 prompt: Name the newest"),
    ] {
        let found = program.run(&["find", words]);
        assert!(found.out.contains(want), "{words}: {}{}", found.out, found.err);
    }
    // What was undone, put aside or said to a sub-agent is not.
    for words in
        ["reverted", "branch", "sub-agent", "\"was withdrawn\"", "abcdef12345", "Caveat", "synthetic", "environment"]
    {
        assert_eq!(program.run(&["find", words]).code, Some(1), "{words}");
    }
    let logs: Vec<Vec<u8>> = program.logs().iter().map(|log| fs::read(log).unwrap()).collect();
    let again = program.run(&["import"]);
    assert_eq!(again.out, ALL.replace("imported", "unchanged"));
    assert_eq!(logs, program.logs().iter().map(|log| fs::read(log).unwrap()).collect::<Vec<_>>());
}

#[test]
fn a_session_that_grew_is_updated_and_one_that_was_continued_is_not() {
    let program = with_sessions();
    assert_eq!(program.run(&["import", "claude"]).code, Some(0));
    let script = program.script("one.yaml", "- reply: [text: Continued here.]\n");
    let resumed = program.run(&["-p", "continue", "-r", "Harbor port", "--offline-script", &script]);
    assert_eq!((resumed.code, resumed.out.trim()), (Some(0), "Continued here."), "{}", resumed.err);
    let folder = program.home().join(".claude/projects/-home-me-harbor");
    for (id, last) in [("11111111-2222-4333-8444-555555555555", "r2"), ("aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "a2")] {
        let file = folder.join(format!("{id}.jsonl"));
        let more = format!(
            "\n{{\"type\":\"user\",\"uuid\":\"new\",\"parentUuid\":\"{last}\",\"message\":{{\"content\":\"It grew\"}}}}\n"
        );
        fs::write(&file, fs::read_to_string(&file).unwrap() + &more).unwrap();
    }
    let ran = program.run(&["import", "claude"]);
    assert_eq!(ran.out, "Claude Code  1 updated, 1 continued here and left alone  (~/.claude/projects)\n");
    let found = program.run(&["find", "\"It grew\""]);
    assert!(found.out.lines().count() == 2 && found.out.contains("Remember the albatross"), "{}", found.out);
    assert!(program.run(&["find", "Continued here"]).out.contains("Harbor port"));
}

#[test]
fn a_resumed_import_shows_its_past() {
    let program = with_sessions();
    program.run(&["import", "codex"]);
    let mut screen = launch(&program, (100, 40), &["--offline", "--resume", "pelican"]);
    for text in
        ["Imported from Codex", "Fix the pelican counter", "Edited count.py", "two pelicans now", "And the gulls?"]
    {
        screen.wait_text(text);
    }
    leave(&mut screen);
}

#[test]
fn what_cannot_be_imported_is_said() {
    let program = Program::new();
    let ran = program.run(&["import"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), "no sessions of Claude Code, Codex, opencode or pi found\n"));
    let ran = program.run(&["import", "codex"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), "error: no sessions of Codex: ~/.codex does not exist\n"));
    let program = program.home_file(
        ".local/share/opencode/opencode.db",
        "no database, but long enough to have a header: ".repeat(3).as_str(),
    );
    let ran = program.run(&["import", "opencode"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), "error: opencode: not an SQLite database\n"));
    // Another folder may be named, and old sessions left out.
    let codex = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import/codex");
    let program = program.env("CODEX_HOME", codex.to_str().unwrap());
    let ran = program.run(&["import", "codex", "--since", "0d"]);
    assert!(ran.code == Some(0) && ran.out.starts_with("Codex        no sessions"), "{ran:?}");
}
