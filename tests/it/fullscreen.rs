//! `--fullscreen`: the session on a screen of its own.

use std::fmt::Write;
use std::time::Duration;

use base64::Engine;
use rustix::process::{Pid, Signal, kill_process};

use super::earlier::after_turns;
use super::support::program::Program;
use super::support::screen::{Launch, Screen};
use super::terminal::{answer, launch, restored};

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];
const READY: &str = "Ask anything";
const REST: Duration = Duration::from_millis(200);
const CTRL_C: &str = "\x03";
const CTRL_G: &str = "\x07";
const CTRL_O: &str = "\x0f";
const PAGE_UP: &str = "\x1b[5~";
const PAGE_DOWN: &str = "\x1b[6~";
const HOME: &str = "\x1b[H";
const END: &str = "\x1b[F";
const WHEEL_UP: &str = "\x1b[<64;5;3M";
const WHEEL_DOWN: &str = "\x1b[<65;5;3M";

/// A reply of so many paragraphs: `row 1.`, `row 2.`.
fn rows(count: usize) -> String {
    (1..=count).fold(String::new(), |mut rows, n| {
        let _ = write!(rows, "row {n}.\\n\\n");
        rows
    })
}

fn full(program: &Program, size: (u16, u16), yaml: &str) -> Screen {
    let script = program.script("script.yaml", yaml);
    let screen = launch(program, size, &["--fullscreen", "--offline-script", &script]);
    screen.wait_text(READY);
    on_its_own(&screen);
    screen
}

/// The alternate screen is shown, and the mouse is reported.
#[track_caller]
fn on_its_own(screen: &Screen) {
    screen.wait_until("a screen of its own", |state| {
        let emulator = state.parser.screen();
        emulator.alternate_screen() && emulator.mouse_protocol_mode() == vt100::MouseProtocolMode::ButtonMotion
    });
}

/// Leaves; what is on the shell's screen then.
fn left(screen: &mut Screen) -> String {
    screen.send(CTRL_C);
    screen.send(CTRL_C);
    assert_eq!(screen.wait_exit().exit_code(), 0);
    restored(screen);
    screen.scrollback_text()
}

/// What is on the screen, without what differs from run to run and the status line.
fn seen(program: &Program, screen: &Screen) -> String {
    let text = screen.text().replace(&program.project().display().to_string(), "/a/folder/project");
    text.rsplit_once('\n').map(|(rows, _)| rows.to_owned()).unwrap_or_default()
}

/// The cell at which a text begins, counted from one as the mouse does.
#[track_caller]
fn place(screen: &Screen, text: &str) -> (usize, usize) {
    let shown = screen.text();
    let found = shown.lines().enumerate().find_map(|(row, line)| Some((line.find(text)? + 1, row + 1)));
    found.unwrap_or_else(|| panic!("{text:?} is not shown:\n{shown}"))
}

fn drag(screen: &Screen, from: (usize, usize), to: (usize, usize)) {
    let ((x, y), (to_x, to_y)) = (from, to);
    screen.send(format!("\x1b[<0;{x};{y}M\x1b[<32;{to_x};{y}M\x1b[<32;{to_x};{to_y}M\x1b[<0;{to_x};{to_y}m"));
}

#[track_caller]
fn copied(screen: &Screen, want: &str) {
    let want = base64::engine::general_purpose::STANDARD.encode(want);
    screen.wait_until("the copy", |state| state.parser.callbacks().clipboard == want);
}

#[test]
fn a_task_at_every_size() {
    for size in SIZES {
        let program = Program::new().file("a.txt", "one\ntwo\nthree\n");
        let script = format!(
            r#"
- reply: [text: "I read 日本語 🦀 first.", tool: {{name: Read, input: {{file_path: a.txt}}}}]
- reply: [tool: {{name: Edit, input: {{file_path: a.txt, old_string: two, new_string: zwei}}}}]
- reply: [text: "Changed **it**.\n\n{}- done 漢字\n"]
"#,
            rows(30)
        );
        let mut screen = full(&program, size, &script);
        screen.send("mach 日本 👍\r");
        screen.wait_text("Edit wants to");
        if size.1 < 24 {
            answer(&screen, "- two", PAGE_DOWN);
        }
        screen.wait_text("zwei");
        answer(&screen, "1. Yes", "1");
        screen.wait_text("done 漢字");
        screen.wait_text(READY);
        screen.settle(REST);
        insta::assert_snapshot!(format!("end_{}x{}", size.0, size.1), seen(&program, &screen));
        screen.send(PAGE_UP);
        screen.wait_text("below");
        insta::assert_snapshot!(format!("page_up_{}x{}", size.0, size.1), seen(&program, &screen));
        screen.send(HOME);
        screen.wait_text("mach 日本 👍");
        // The viewer covers all of it, and comes back to the end.
        screen.send(CTRL_O);
        screen.wait_text("↑↓ PgUp");
        screen.send(CTRL_O);
        screen.wait_text(READY);
        screen.wait_text("done 漢字");
        assert!(screen.state().parser.screen().alternate_screen());
        let rest = left(&mut screen);
        for shown in ["done 漢字", "Session \"mach 日本 👍\"", "resume: cocode -c"] {
            assert_eq!(rest.matches(shown).count(), 1, "{size:?}, {shown}:\n{rest}");
        }
        assert!(!rest.contains(READY) && rest.lines().count() <= usize::from(size.1), "{rest}");
    }
}

#[test]
fn what_is_new_waits_below_what_is_read() {
    let program = Program::new();
    let wait = "{name: Bash, input: {command: \"until [ -e more ]; do sleep 0.05; done\"}}";
    let more = rows(400).replace("row", "more");
    let script = format!("- reply: [text: \"{}\", tool: {wait}]\n- reply: [text: \"{more}\"]\n", rows(60))
        + "- reply: [text: Again.]\n";
    let script = program.script("script.yaml", &script);
    let args = ["--fullscreen", "--allowed-tools", "Bash", "--offline-script", &script];
    let mut screen = launch(&program, (80, 24), &args);
    screen.send("count\r");
    screen.wait_text("Running until");
    screen.send(PAGE_UP);
    screen.wait_text(" lines below");
    std::fs::write(program.project().join("more"), "").unwrap();
    let top = |screen: &Screen| screen.text().lines().next().unwrap_or_default().to_owned();
    let read = top(&screen);
    screen.wait_for("much that is new", |text| {
        let new = text.lines().find(|line| line.contains(" new lines below"));
        new.and_then(|line| line.split(' ').nth(1)?.parse::<u32>().ok()).is_some_and(|new| new > 100)
    });
    assert_eq!(top(&screen), read, "{}", screen.text());
    screen.send(WHEEL_UP);
    screen.wait_for("three rows up", |text| text.lines().next() != Some(read.as_str()));
    screen.send(WHEEL_DOWN);
    screen.wait_for("the same again", |text| text.lines().next() == Some(read.as_str()));
    // A text that is being written keeps its keys.
    screen.send("draft");
    screen.wait_text("> draft");
    screen.send(HOME);
    screen.send("a ");
    screen.wait_text("> a draft");
    assert_eq!(top(&screen), read, "{}", screen.text());
    screen.send("\x15\x0b");
    screen.wait_text(READY);
    screen.send(END);
    screen.wait_text("more 400.");
    screen.wait_for("the end", |text| !text.contains("below") && !text.contains("esc to interrupt"));
    screen.send(HOME);
    screen.wait_text("row 1.");
    // What is sent is seen.
    screen.send("again\r");
    screen.wait_for("the end", |text| !text.contains("below"));
    screen.wait_text("Again.");
    left(&mut screen);
}

/// However much comes meanwhile: what is read is not let go of.
#[test]
fn what_is_read_stays() {
    let program = Program::new();
    let wait = "{name: Bash, input: {command: \"until [ -e more ]; do sleep 0.05; done\"}}";
    let mut script = format!("- reply: [text: \"{}\", tool: {wait}]\n", rows(30));
    for n in 1..=120 {
        let _ = writeln!(script, "- reply: [text: step {n}., tool: {{name: Glob, input: {{pattern: no{n}}}}}]");
    }
    script += "- reply: [text: The end.]\n";
    let script = program.script("script.yaml", &script);
    let args = ["--fullscreen", "--allowed-tools", "Bash", "--offline-script", &script];
    let mut screen = launch(&program, (80, 24), &args);
    screen.send("go\r");
    screen.wait_text("Running until");
    screen.send(HOME);
    screen.wait_text("✻ cocode");
    let read = screen.text();
    std::fs::write(program.project().join("more"), "").unwrap();
    screen.wait_for("the end", |text| text.contains("new lines below") && !text.contains("esc to interrupt"));
    screen.settle(2 * REST);
    let rows = |text: &str| text.lines().take(18).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows(&screen.text()), rows(&read));
    screen.send(END);
    screen.wait_text("The end.");
    screen.send(HOME);
    screen.wait_text("✻ cocode");
    left(&mut screen);
}

#[test]
fn the_mouse_copies_what_it_marks() {
    let program = Program::new();
    let code = "word ".repeat(30);
    let script = format!("- reply: [text: \"{}Words to keep.\\n\\n```\\n{code}\\n```\\n\\nThe end.\"]\n", rows(40));
    let mut screen = full(&program, (80, 24), &script);
    screen.send("go\r");
    screen.wait_text("The end.");
    screen.settle(REST);
    let (x, y) = place(&screen, "Words to keep.");
    drag(&screen, (x, y), (x + 4, y));
    screen.wait_text("copied 5 characters");
    copied(&screen, "Words");
    // Backwards, and over rows that the width has cut.
    let ((_, from), (x, to)) = (place(&screen, "The end."), place(&screen, "word word"));
    drag(&screen, (8, from), (x, to));
    copied(&screen, &format!("{}\n\nThe end.", code.trim_end()));
    // Further up than the screen shows, and in what is scrolled back to.
    screen.send(PAGE_UP);
    screen.wait_text("below");
    let (x, y) = place(&screen, "row 30.");
    drag(&screen, (x, y), (x + 6, y + 2));
    copied(&screen, "row 30.\n\nrow 31.");
    // A place in the viewer, too; and a click on the last row goes to the end.
    screen.send(CTRL_O);
    screen.wait_text("↑↓ PgUp");
    let (x, y) = place(&screen, "The end.");
    drag(&screen, (x, y), (x + 2, y));
    copied(&screen, "The");
    screen.send("q");
    screen.wait_text(READY);
    screen.send(PAGE_UP);
    screen.wait_text("below");
    let (_, y) = place(&screen, "below");
    screen.send(format!("\x1b[<0;3;{y}M\x1b[<0;3;{y}m"));
    screen.wait_for("the end", |text| text.contains("The end.") && !text.contains("below"));
    left(&mut screen);
}

#[test]
fn a_new_size_draws_all_of_it_again() {
    let program = Program::new();
    let long = "word ".repeat(60);
    let script = format!("- reply: [text: \"{}{long}\\n\\nThe end.\"]\n", rows(40));
    let mut screen = full(&program, (80, 24), &script);
    screen.send("count\r");
    screen.wait_text("The end.");
    for (columns, height) in [(40, 12), (200, 60), (80, 24), (30, 60), (80, 24)] {
        screen.resize(columns, height);
        screen.wait_text("The end.");
        screen.settle(2 * REST);
        let text = screen.text();
        let body = usize::from(height) - 4;
        assert!(text.lines().take(body).filter(|row| !row.is_empty()).count() * 2 >= body, "{columns}:\n{text}");
        assert_eq!(text.matches("The end.").count(), 1, "{text}");
        if height > 12 {
            assert_eq!(text.matches("word").count(), 60, "{columns}:\n{text}");
        }
        // What was scrolled back to has the new size as well.
        screen.send(HOME);
        screen.wait_text("row 1.");
        screen.send(END);
        screen.wait_text("The end.");
    }
    // There and back before a frame: the terminal has cut what was there.
    screen.resize(20, 8);
    screen.resize(80, 24);
    screen.settle(2 * REST);
    assert_eq!(screen.text().matches("word").count(), 60, "{}", screen.text());
    // What is read stays where it is, and nothing of it is new.
    screen.send(PAGE_UP);
    screen.wait_text("below");
    let read = screen.text().lines().find(|row| row.starts_with("row ")).unwrap_or_default().to_owned();
    for (columns, height) in [(40, 24), (120, 24), (80, 24)] {
        screen.resize(columns, height);
        screen.settle(2 * REST);
        let text = screen.text();
        let first = text.lines().find(|row| row.starts_with("row "));
        assert!(
            first == Some(read.as_str()) && text.contains(" lines below") && !text.contains("new"),
            "{columns}, {read}:\n{text}"
        );
    }
    left(&mut screen);
}

#[test]
fn a_long_session_is_read_from_its_log() {
    let program = after_turns(200);
    let mut screen = launch(&program, (80, 24), &["--continue", "--offline", "--fullscreen"]);
    screen.wait_text("answer 200.");
    on_its_own(&screen);
    screen.send(WHEEL_UP);
    screen.wait_text("below");
    screen.send(HOME);
    screen.wait_text("answer 1.");
    for _ in 0..40 {
        screen.send(PAGE_DOWN);
    }
    screen.wait_for("a page further down", |text| !text.contains("answer 1.") && text.contains("answer "));
    screen.send(END);
    screen.wait_text("answer 200.");
    left(&mut screen);
}

/// What is in memory fits on the screen; the rest is in the log all the same.
#[test]
fn there_is_more_than_the_screen_shows() {
    let program = after_turns(14);
    let mut screen = launch(&program, (80, 60), &["--continue", "--offline", "--fullscreen"]);
    screen.wait_text("answer 14.");
    assert!(!screen.text().contains("answer 4."), "{}", screen.text());
    screen.send(PAGE_UP);
    screen.wait_text("answer 4.");
    screen.send(PAGE_UP);
    screen.send(HOME);
    screen.wait_text("answer 1.");
    left(&mut screen);
}

#[test]
fn another_session_begins_on_an_empty_screen() {
    let program = Program::new();
    let script = "- reply: [text: The first answer.]\n- reply: [text: The second answer.]\n";
    let mut screen = full(&program, (80, 24), script);
    screen.send("one\r");
    screen.wait_text("The first answer.");
    screen.wait_text(READY);
    screen.send("/clear\r");
    screen.wait_for("an empty screen", |text| !text.contains("The first answer.") && text.contains("✻ cocode"));
    screen.send("two\r");
    screen.wait_text("The second answer.");
    screen.wait_text(READY);
    let rest = left(&mut screen);
    assert!(rest.contains("The second answer.") && !rest.contains("The first answer."), "{rest}");
}

#[test]
fn signals_leave_the_shells_screen() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let program = Program::new();
        let mut screen = full(&program, (80, 24), "- reply: [text: Words., delay_ms: 60000, text: Never.]\n");
        screen.send("go\r");
        screen.wait_text("Words.");
        kill_process(Pid::from_raw(screen.pid().cast_signed()).unwrap(), signal).unwrap();
        assert_eq!(screen.wait_exit().exit_code(), code);
        restored(&screen);
        assert_eq!(screen.scrollback_text().matches("Words.").count(), 1, "{}", screen.scrollback_text());
    }
}

/// Only a binary for tests has a script that panics.
#[cfg(debug_assertions)]
#[test]
fn a_panic_leaves_the_shells_screen() {
    let program = Program::new();
    let mut screen = full(&program, (80, 24), "- reply: [panic: out of luck]\n");
    screen.send("a prompt\r");
    assert_eq!(screen.wait_exit().exit_code(), 1);
    restored(&screen);
    let rows = screen.scrollback_text();
    assert_eq!((rows.matches("out of luck").count(), rows.matches("cocode crashed").count()), (1, 1), "{rows}");
}

/// An editor and a shell get the screen below, with the mouse off, and the session gets its own back.
#[test]
fn others_have_the_terminal_meanwhile() {
    let program = Program::new();
    let editor = program.script("editor.sh", "printf 'in the editor\\n'; read line; printf 'edited' >\"$1\"\n");
    let line = format!("{} --fullscreen --offline\n", Program::binary());
    let mut screen = Launch::new("/bin/bash")
        .args(["--norc", "--noediting", "-i"])
        .env("PS1", "ready> ")
        .env("HOME", program.home())
        .env("EDITOR", format!("sh {editor}"))
        .cwd(program.project())
        .start();
    screen.wait_text("ready>");
    screen.send(line);
    screen.wait_text(READY);
    on_its_own(&screen);
    screen.send(CTRL_G);
    screen.wait_text("in the editor");
    lent(&screen);
    screen.send("\r");
    screen.wait_text("> edited");
    on_its_own(&screen);
    screen.send("\x1a");
    screen.wait_text("Stopped");
    lent(&screen);
    screen.send("fg\n");
    screen.wait_text("> edited");
    on_its_own(&screen);
    screen.send("\x15\x04");
    screen.wait_for("the shell", |text| text.trim_end().ends_with("\nready>"));
    screen.send("exit\n");
    screen.wait_exit();
    restored(&screen);
}

#[track_caller]
fn lent(screen: &Screen) {
    let state = screen.state();
    let (emulator, none) = (state.parser.screen(), vt100::MouseProtocolMode::None);
    assert!(!emulator.alternate_screen() && emulator.mouse_protocol_mode() == none, "{}", emulator.contents());
}

/// Nothing else is a screen of its own; and a terminal without another screen has rows instead.
#[test]
fn only_where_it_is_wanted_and_can_be() {
    let program = Program::new().env("COCODE_TUI__FULLSCREEN", "true").env("TERM", "dumb");
    let mut screen = launch(&program, (80, 24), &["--offline"]);
    screen.send("\x04");
    screen.wait_exit();
    assert!(!screen.state().raw.contains(&0x1b), "{}", screen.text());
    let program = Program::new().env("COCODE_TUI__FULLSCREEN", "true");
    let mut screen = launch(&program, (80, 24), &["--offline"]);
    on_its_own(&screen);
    left(&mut screen);
    let program = Program::new();
    let mut screen = launch(&program, (80, 24), &["--offline"]);
    screen.wait_text(READY);
    assert!(!String::from_utf8_lossy(&screen.state().raw).contains("\x1b[?1002h"));
    left(&mut screen);
}
