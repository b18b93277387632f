//! What a resumed session does not draw at once is in the viewer.

use std::fmt::Write;

use super::support::program::Program;
use super::terminal::{launch, leave};

const CTRL_O: &str = "\x0f";

/// Has a session of so many turns behind it: `prompt N.`, `answer N.`.
pub(crate) fn after_turns(count: u32) -> Program {
    let program = Program::new();
    let script = (1..=count).fold(String::new(), |mut script, turn| {
        let _ = writeln!(script, "- reply: [text: answer {turn}.]");
        script
    });
    let script = program.script("turns.yaml", &script);
    let line = |turn: u32| {
        let content = format!("prompt {turn}.");
        serde_json::json!({"type": "user", "message": {"role": "user", "content": content}}).to_string()
    };
    let program = program.stdin(&(1..=count).map(line).collect::<Vec<_>>().join("\n"));
    let args = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--offline-script", &script];
    let ran = program.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    program
}

#[test]
fn the_viewer_begins_where_the_session_began() {
    let program = after_turns(14);
    let mut screen = launch(&program, (80, 60), &["--continue", "--offline"]);
    screen.wait_text("answer 14.");
    assert!(screen.text().contains("8 older messages (ctrl+o)"), "{}", screen.text());
    screen.send(CTRL_O);
    screen.wait_until("the viewer", |state| state.parser.screen().alternate_screen());
    // It comes above what is in view, which stays.
    screen.send("g");
    screen.wait_text("answer 4.");
    screen.send("g");
    screen.wait_text("answer 1.");
    let text = screen.text();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}:\n{text}"));
    assert!(at("> prompt 1.") < at("answer 1.") && at("answer 4.") < at("older messages"), "{text}");
    assert_eq!(text.matches("prompt 5.").count(), 1, "{text}");
    screen.send("q");
    leave(&mut screen);
}

#[test]
fn the_viewer_reads_a_long_session_page_by_page() {
    let program = after_turns(200);
    let mut screen = launch(&program, (80, 24), &["--continue", "--offline"]);
    screen.wait_text("answer 200.");
    screen.send(CTRL_O);
    screen.wait_until("the viewer", |state| state.parser.screen().alternate_screen());
    screen.wait_text("answer 200.");
    // To the start, and back to the end.
    screen.send("g");
    screen.wait_text("answer 1.");
    screen.send("G");
    screen.wait_text("answer 200.");
    // What is found is on none of the pages that were read.
    screen.send("/prompt 77.\r");
    screen.wait_text("answer 77.");
    screen.send("q");
    leave(&mut screen);
}
