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
fn text_that_comes_as_keys_is_a_paste() {
    let text = "all the world is a stage \u{e9}\r".repeat(2_000);
    let program = Program::new();
    // The last line of the prompt is what the model has to see.
    let mut screen =
        scripted(&program, (80, 24), "- expect: {contains: \"stage \u{e9}\\nthe end\"}\n  reply: [text: Read it.]\n");
    screen.send(format!("{text}the end"));
    // Where the machine stops in the middle of it, it is two of them, which both have a part of one line.
    screen.wait_until("2001 pasted lines", |state| {
        let text = state.parser.screen().contents();
        let counts = text.split("[Pasted ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok());
        let counts: Vec<usize> = counts.collect();
        !counts.is_empty() && counts.iter().sum::<usize>() - (counts.len() - 1) == 2001
    });
    screen.send("\r");
    screen.wait_text("Read it.");
    leave(&mut screen);
}
