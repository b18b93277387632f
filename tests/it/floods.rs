//! Nothing hostile makes the program slow or large.

use super::support::program::Program;
use super::terminal::{leave, scripted};

#[test]
fn a_terminal_without_a_size_works_at_80x24() {
    let program = Program::new();
    let mut screen = scripted(&program, (0, 0), "- reply: [text: It works.]\n");
    screen.send("hello\r");
    screen.wait_text("It works.");
    screen.resize(100, 30);
    screen.resize(0, 0);
    screen.send("and now");
    screen.wait_text("and now");
    let widest = screen.text().lines().map(|row| row.chars().count()).max();
    assert_eq!(widest, Some(80), "{}", screen.text());
    screen.send("\x15");
    leave(&mut screen);
}

#[test]
fn text_that_comes_as_keys_is_one_paste() {
    let text = "all the world is a stage \u{e9}\r".repeat(2_000);
    let program = Program::new();
    // The last line of the prompt is what the model has to see.
    let mut screen =
        scripted(&program, (80, 24), "- expect: {contains: \"stage \u{e9}\\nthe end\"}\n  reply: [text: Read it.]\n");
    screen.send(format!("{text}the end"));
    screen.wait_text("[Pasted 2001 lines]");
    screen.send("\r");
    screen.wait_text("Read it.");
    leave(&mut screen);
}
