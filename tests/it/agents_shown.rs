//! Sub-agents on the screen: live lines, their work in the transcript viewer, and what a kill leaves of them.

use std::process::Command;

use super::support::program::Program;
use super::support::screen::Screen;
use super::terminal::{launch, leave, scripted};

const ESC: &str = "\x1b";
const CTRL_O: &str = "\x0f";

const LOOK: &str = r#"
- reply: [tool: {name: Task, input: {description: find it, prompt: Where is parse?, subagent_type: Explore}}]
- reply: [text: It is there.]
- for: agent:Explore
  reply: [text: I look around., tool: {name: Read, input: {file_path: src/parse.rs}}, tool: {name: Bash, input: {command: cat none.rs}}]
- for: agent:Explore
  reply: [text: "In `src/parse.rs`."]
- reply: [tool: {name: Task, input: {description: look again, prompt: And who calls it?, subagent_type: Explore, resume: a1}}]
- reply: [text: Nobody does.]
- for: agent:Explore
  reply: [text: No caller found.]
"#;

/// What the viewer shows, its last line of keys left out.
fn viewed(screen: &Screen, last: &str) -> String {
    screen.send(CTRL_O);
    screen.wait_until("the viewer", |state| state.parser.screen().alternate_screen());
    screen.wait_text(last);
    let text = screen.text();
    let rows: Vec<&str> = text.trim_end().lines().collect();
    screen.send("q");
    screen.wait_until("the way back", |state| !state.parser.screen().alternate_screen());
    // Counts of tokens depend on the prompts that are shipped, times on the machine.
    let row = |row: &&str| match row.split_once(" tokens · ") {
        Some((start, _)) if start.contains(" call") => format!("{} tokens", start.split(" · ").next().unwrap()),
        _ => (*row).to_owned(),
    };
    let shown = &rows[..rows.len() - 1];
    shown.iter().skip_while(|row| **row != "> go").map(row).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[test]
fn the_viewer_shows_what_they_did_live_and_after_a_restart() {
    let program = Program::new().file("src/parse.rs", "fn parse() {}\n");
    let mut screen = scripted(&program, (80, 50), LOOK);
    screen.send("go\r");
    screen.wait_text("It is there.");
    screen.send("and then\r");
    screen.wait_text("Nobody does.");
    // In the scrollback a line each.
    assert!(!screen.scrollback_text().contains("I look around."), "{}", screen.scrollback_text());
    let live = viewed(&screen, "No caller found.");
    insta::assert_snapshot!(live);
    leave(&mut screen);
    let mut screen = launch(&program, (80, 50), &["--continue", "--offline"]);
    screen.wait_text("Nobody does.");
    let again = viewed(&screen, "No caller found.");
    assert_eq!(again, live);
    leave(&mut screen);
}

/// Three that hang, of whom the second waits for a seat where there are two.
const HANG: &str = r#"
- reply:
  - tool: {name: Task, input: {description: first of three, prompt: p, subagent_type: Explore}}
  - tool: {name: Task, input: {description: second of three, prompt: p, subagent_type: Explore}}
  - tool: {name: Task, input: {description: third of three, prompt: p, subagent_type: Explore}}
- for: agent:Explore
  repeat: 3
  reply: [tool: {name: Bash, input: {command: cat pipe}}]
- reply: [text: Never said.]
"#;

fn hanging() -> Program {
    let program = Program::new();
    // Reading it ends when somebody writes to it, which nobody does.
    assert!(Command::new("mkfifo").arg(program.project().join("pipe")).status().unwrap().success());
    program
}

#[test]
fn several_have_a_live_line_each_on_every_screen() {
    for size in [(40, 12), (80, 24), (200, 60)] {
        let program = hanging();
        let mut screen = scripted(&program, size, HANG);
        screen.send("go\r");
        screen.wait_for("three that run", |text| text.matches("1 call").count() == 3);
        let text = screen.text();
        for which in ["first", "second", "third"] {
            assert!(text.contains(&format!("Explore: {which}")), "{size:?}:\n{text}");
        }
        assert_eq!(text.matches("  └ 1 call · ").count(), if size.1 == 12 { 0 } else { 3 }, "{size:?}:\n{text}");
        assert!(text.contains("> "), "the composer stays: {size:?}:\n{text}");
        screen.send(ESC);
        screen.wait_text("interrupted");
        leave(&mut screen);
    }
}

#[test]
fn a_kill_with_running_agents_leaves_all_that_they_said() {
    let program = hanging();
    let mut screen = scripted(&program, (80, 24), HANG);
    screen.send("go\r");
    screen.wait_for("three that run", |text| text.matches("1 call").count() == 3);
    screen.kill();
    drop(screen);
    // The session continues: every call has its answer, and what the agents did can be continued.
    let script = program.script(
        "on.yaml",
        r#"
- expect: {contains: continue}
  reply: [tool: {name: Task, input: {description: continue, prompt: And now?, subagent_type: Explore, resume: a2}}]
- expect: {contains: Second half}
  reply: [text: Resumed.]
- for: agent:Explore
  expect: {contains: "And now?"}
  reply: [text: Second half.]
"#,
    );
    let done = program.run(&["-p", "continue", "--continue", "--offline-script", &script]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Resumed.\n"), "{}", done.err);
    let folder = program.logs().pop().unwrap().parent().unwrap().to_owned();
    for id in ["a1", "a2", "a3"] {
        let log = std::fs::read_to_string(folder.join(format!("agent-{id}.jsonl"))).unwrap();
        assert!(log.contains("cat pipe"), "{id}: {log}");
        assert_eq!(log.contains("Second half."), id == "a2", "{id}: {log}");
    }
    let log = std::fs::read_to_string(folder.join("transcript.jsonl")).unwrap();
    for call in ["call_1", "call_2", "call_3"] {
        assert!(log.matches(call).count() >= 2, "{call} is answered: {log}");
    }
}
