//! The real binary in a real pseudo-terminal, read through an emulator.

use std::time::Duration;

use cocode::provider::settings::WireName;

use super::support::fake_api::{FakeApi, Reply};
use super::support::program::Program;
use super::support::screen::{Launch, Screen};

/// So long without a frame, and the screen is at rest.
const REST: Duration = Duration::from_millis(200);
const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];
/// Stands in the composer while it is empty and waits.
const READY: &str = "Ask anything";
const ESC: &str = "\x1b";
const CTRL_C: &str = "\x03";
const CTRL_U: &str = "\x15";
const CTRL_O: &str = "\x0f";
const UP: &str = "\x1b[A";
const PAGE_DOWN: &str = "\x1b[6~";
const ALT_ENTER: &str = "\x1b\r";

/// Starts, and waits until it takes keys.
pub(crate) fn launch(program: &Program, size: (u16, u16), args: &[&str]) -> Screen {
    let screen = begin(program, size, args);
    // A question may be there before the composer was seen.
    screen.wait_for("the composer or a question", |screen| screen.contains("> ") || screen.contains("› 1."));
    screen
}

/// Starts what may end before anybody sees it.
pub(crate) fn begin(program: &Program, size: (u16, u16), args: &[&str]) -> Screen {
    begin_line(program, size, &[&[Program::binary()], args].concat())
}

/// The same with another program in front, which starts it.
fn begin_line(program: &Program, size: (u16, u16), line: &[&str]) -> Screen {
    let launch = Launch::new(line[0])
        .args(line[1..].iter().copied())
        .env("HOME", program.home())
        .cwd(program.project())
        .size(size.0, size.1);
    program.vars().iter().fold(launch, |launch, (name, value)| launch.env(name, value)).start()
}

/// Starts with a script, waits until the composer is there.
pub(crate) fn scripted(program: &Program, size: (u16, u16), yaml: &str) -> Screen {
    let script = program.script("script.yaml", yaml);
    launch(program, size, &["--offline-script", &script])
}

/// Answers a question once it takes keys.
pub(crate) fn answer(screen: &Screen, question: &str, key: &str) {
    screen.wait_live(question);
    screen.send(key);
}

pub(crate) fn leave(screen: &mut Screen) {
    screen.send(CTRL_C);
    screen.send(CTRL_C);
    assert_eq!(screen.wait_exit().exit_code(), 0);
    restored(screen);
}

/// The terminal is as a shell wants it.
#[track_caller]
pub(crate) fn restored(screen: &Screen) {
    screen.assert_no_lossy_scroll();
    let state = screen.state();
    let emulator = state.parser.screen();
    let left = (
        emulator.alternate_screen(),
        emulator.hide_cursor(),
        emulator.bracketed_paste(),
        emulator.application_cursor(),
        format!("{:?}", emulator.mouse_protocol_mode()),
    );
    assert_eq!(left, (false, false, false, false, "None".to_owned()));
}

#[test]
fn a_task_at_every_size() {
    for size in SIZES {
        let program = Program::new().file("a.txt", "one\ntwo\nthree\n");
        let mut screen = scripted(
            &program,
            size,
            r#"
- reply: [text: "I read 日本語 🦀 first.", tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: two, new_string: zwei}}]
- reply: [text: "Changed **it**.\n\n- done 漢字\n"]
"#,
        );
        screen.send("mach 日本 👍\r");
        screen.wait_text("Edit wants to");
        if size.1 < 24 {
            answer(&screen, "- two", PAGE_DOWN);
        }
        screen.wait_text("zwei");
        answer(&screen, "1. Yes", "1");
        screen.wait_text("done 漢字");
        screen.wait_text(READY);
        screen.wait_text("ask first");
        assert_eq!(std::fs::read_to_string(program.project().join("a.txt")).unwrap(), "one\nzwei\nthree\n");
        let rows = screen.scrollback_text();
        for shown in ["mach 日本 👍", "I read 日本語 🦀 first.", "done 漢字"] {
            assert_eq!(rows.matches(shown).count(), 1, "{size:?}, {shown}:\n{rows}");
        }
        screen.send(CTRL_O);
        screen.wait_until("the transcript", |state| state.parser.screen().alternate_screen());
        screen.wait_text("done 漢字");
        screen.send(CTRL_O);
        screen.wait_until("the way back", |state| !state.parser.screen().alternate_screen());
        screen.wait_text(READY);
        leave(&mut screen);
    }
}

#[test]
fn esc_interrupts_and_prompts_are_steered_and_queued() {
    let program = Program::new();
    let mut screen = scripted(
        &program,
        (80, 24),
        r#"
- reply: [text: Waiting., tool: {name: Bash, input: {command: "echo begun; sleep 1000"}}]
- expect: {contains: "third prompt"}
  reply: [text: Answer to both.]
"#,
    );
    screen.send("first prompt\r");
    screen.wait_text("begun");
    screen.send("second prompt\r");
    screen.wait_text("next step: second prompt");
    screen.send("third prompt");
    screen.send(ALT_ENTER);
    screen.wait_text("when done: third prompt");
    screen.send(UP);
    screen.wait_for("the prompt back in the composer", |screen| !screen.contains("after turn:"));
    screen.send(ALT_ENTER);
    screen.wait_text("when done: third prompt");
    screen.send(ESC);
    // What waited is there again, and begins nothing by itself.
    screen.wait_text("· interrupted");
    screen.wait_text("> second prompt");
    screen.send("\r");
    screen.wait_text("Answer to both.");
    leave(&mut screen);
}

#[test]
fn the_window_and_its_compaction_are_shown() {
    for size in SIZES {
        let program = Program::new();
        let mut screen = scripted(
            &program,
            size,
            r#"
- reply: [text: One.]
- reply: [text: Two., usage: {input: 150000, output: 5}]
- for: summary
  reply: [text: "<summary>The ", delay_ms: 700, text: "state of it.</summary>"]
- reply: [text: Three.]
"#,
        );
        screen.send("first\r");
        screen.wait_text("One.");
        screen.wait_text(READY);
        screen.send("second\r");
        screen.wait_text("Two.");
        screen.wait_text("10% free");
        screen.wait_text(READY);
        screen.send("/context\r");
        screen.wait_text("full at");
        screen.wait_text(READY);
        screen.send("/compact\r");
        screen.wait_text("Summarizing…");
        screen.wait_text("/compact undo");
        screen.wait_text("98% free");
        screen.wait_text(READY);
        let rows = screen.scrollback_text();
        assert_eq!(rows.matches("Compacted ").count(), 1, "{rows}");
        assert!(rows.contains("messages") && rows.contains("└ 150k → "), "{rows}");
        screen.send(CTRL_O);
        screen.wait_until("the transcript", |state| state.parser.screen().alternate_screen());
        screen.wait_text("Recall can search");
        screen.send(CTRL_O);
        screen.wait_until("the way back", |state| !state.parser.screen().alternate_screen());
        screen.send("third\r");
        screen.wait_text("Three.");
        screen.wait_text(READY);
        leave(&mut screen);
    }
}

#[test]
fn popups_and_shell_lines() {
    let program = Program::new().file("src/unusual_name.rs", "fn main() {}\n");
    let mut screen =
        scripted(&program, (80, 24), "- expect: {contains: \"unusual_name\"}\n  reply: [text: Seen it.]\n");
    screen.send("look at @unus");
    screen.wait_text("src/unusual_name.rs");
    screen.send("\t");
    screen.wait_text("@src/unusual_name.rs");
    screen.send("\r");
    screen.wait_text("Seen it.");
    screen.wait_text(READY);
    screen.send("/exp");
    screen.wait_text("/export");
    screen.send(ESC);
    screen.wait_for("the popup gone", |screen| !screen.contains("Export the conversation"));
    screen.send(CTRL_U);
    screen.wait_text(READY);
    screen.send("!");
    screen.wait_text("── shell ──");
    screen.send("echo from-the-$((40 + 2))");
    screen.wait_text("2))");
    screen.send("\r");
    screen.wait_text("from-the-42");
    screen.wait_text(READY);
    leave(&mut screen);
    // A later start finds what was typed.
    let mut screen = scripted(&program, (80, 24), "- reply: [text: x]\n");
    screen.wait_text(READY);
    // The first frame does not wait for the history.
    screen.settle(REST);
    screen.send(UP);
    screen.wait_text("echo from-the-$((40 + 2))");
    screen.send(UP);
    screen.wait_text("look at @src/unusual_name.rs");
    leave(&mut screen);
}

#[test]
fn a_signal_restores_the_terminal() {
    for (signal, code) in [(rustix::process::Signal::TERM, 143), (rustix::process::Signal::HUP, 129)] {
        let program = Program::new();
        let mut screen = scripted(&program, (80, 24), "- reply: [text: Words., delay_ms: 60000, text: Never.]\n");
        screen.send("go\r");
        screen.wait_text("Words.");
        let pid = rustix::process::Pid::from_raw(screen.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(screen.wait_exit().exit_code(), code);
        restored(&screen);
        assert_eq!(screen.scrollback_text().matches("Words.").count(), 1, "{}", screen.scrollback_text());
    }
}

/// A process has no group and no session where their leader is outside its namespace, as in some containers.
#[cfg(target_os = "linux")]
#[test]
fn a_leader_outside_the_namespace_is_no_trouble() {
    let unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let here = std::process::Command::new(unshare[0]).args(&unshare[1..]).arg("true").status();
    if !here.is_ok_and(|status| status.success()) {
        return;
    }
    let program = Program::new();
    let script = program.script("script.yaml", "- reply: [text: Words.]\n");
    let line = [&unshare[..], &[Program::binary(), "--offline-script", &script]].concat();
    let mut screen = begin_line(&program, (80, 24), &line);
    screen.wait_text(READY);
    screen.send("go\r");
    screen.wait_text("Words.");
    leave(&mut screen);
}

#[test]
fn a_signal_that_wants_a_core_file_finds_the_terminal_restored() {
    for signal in [rustix::process::Signal::QUIT, rustix::process::Signal::ABORT] {
        let program = Program::new();
        let mut screen = scripted(&program, (80, 24), "- reply: [text: Words., delay_ms: 60000, text: Never.]\n");
        screen.send("go\r");
        screen.wait_text("Words.");
        let pid = rustix::process::Pid::from_raw(screen.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_ne!(screen.wait_exit().exit_code(), 0);
        restored(&screen);
    }
}

#[test]
fn an_editor_is_asked_to_end_with_the_program() {
    let program = Program::new();
    let editor = program.script(
        "editor.sh",
        // On a busy machine it is still saving when its terminal goes away.
        "trap '' HUP; trap 'sleep 0.2; echo saved >saved; exit' TERM; echo \"${OPENAI_API_KEY:-none}\" >up; while :; do sleep 0.05; done\n",
    );
    let program = program.env("EDITOR", &format!("sh {editor}")).env("OPENAI_API_KEY", "sk-0123456789");
    let mut screen = scripted(&program, (80, 24), "- reply: [text: Fine.]\n");
    screen.wait_text(READY);
    screen.send("\x07");
    let (up, saved) = (program.project().join("up"), program.project().join("saved"));
    holds("the editor", &up, "none\n");
    let pid = rustix::process::Pid::from_raw(screen.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(screen.wait_exit().exit_code(), 143);
    holds("what the editor saved", &saved, "saved\n");
}

/// Waits until a file holds a text.
#[track_caller]
fn holds(what: &str, file: &std::path::Path, text: &str) {
    let last = std::time::Instant::now() + Duration::from_secs(20);
    while std::fs::read_to_string(file).ok().as_deref() != Some(text) {
        assert!(std::time::Instant::now() < last, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Only a binary for tests has a script that panics.
#[cfg(debug_assertions)]
#[test]
fn an_engine_that_panics_gives_prompt_and_terminal_back() {
    let program = Program::new();
    let mut screen = scripted(&program, (80, 24), "- reply: [panic: out of luck]\n");
    screen.wait_text(READY);
    screen.send("a prompt that must not be lost\r");
    assert_eq!(screen.wait_exit().exit_code(), 1);
    restored(&screen);
    let rows = screen.scrollback_text();
    assert_eq!((rows.matches("out of luck").count(), rows.matches("cocode crashed").count()), (1, 1), "{rows}");
    let raw = screen.state().raw.clone();
    let given_back = raw.windows(8).filter(|bytes| *bytes == b"\x1b[?2004l").count();
    assert_eq!(given_back, 1, "the terminal is given back once");
    let mut screen = scripted(&program, (80, 24), "- reply: [text: Fine.]\n");
    screen.wait_text("> a prompt that must not be lost");
    screen.send("\r");
    screen.wait_text("Fine.");
    leave(&mut screen);
}

#[cfg(debug_assertions)]
#[test]
fn a_prompt_that_joined_the_turn_comes_back_from_a_panic() {
    let program = Program::new();
    let script = "- { reply: [text: one two three four five six seven], chunk: 2, pace_ms: 40 }\n- reply: [panic: out of luck]\n";
    let mut screen = scripted(&program, (80, 24), script);
    screen.wait_text(READY);
    screen.send("the first prompt\r");
    screen.wait_text("one two");
    screen.send("joined meanwhile\r");
    assert_eq!(screen.wait_exit().exit_code(), 1);
    let mut screen = scripted(&program, (80, 24), "- reply: [text: Fine.]\n");
    screen.wait_text("> joined meanwhile");
    assert!(!screen.text().contains("the first prompt"), "{}", screen.text());
    leave(&mut screen);
}

#[test]
fn an_answer_commands_no_terminal() {
    let program = Program::new();
    let script = program.script(
        "script.yaml",
        r#"- reply: [text: "\e]52;c;aGk=\a\e]8;;http://x\e\\ \e[31mred\e[0m \u009b2J \u202eeslaf\r back", tool: {name: Bash, input: {command: "touch \e]0;x\a"}}]
- reply: [text: "\e]0;owned\a and \u202e."]
"#,
    );
    let args: [&[&str]; 3] =
        [&["-p", "go", "--offline-script", &script], &["export", "go"], &["export", "go", "-o", "/dev/stdout"]];
    for args in args {
        let launch = Launch::new(Program::binary()).args(args.iter().copied()).env("HOME", program.home());
        let mut screen = launch.cwd(program.project()).start();
        screen.wait_exit();
        let text = String::from_utf8(screen.state().raw.clone()).unwrap();
        let commands: Vec<char> =
            text.chars().filter(|c| (c.is_control() && !"\r\n\t".contains(*c)) || *c == '\u{202e}').collect();
        assert!(commands.is_empty() && text.contains("\u{241b}]0;owned\u{2407}"), "{args:?}: {text:?}");
    }
    // A program that reads it gets what the model said.
    let done = program.run(&["-p", "go", "--offline-script", &script]);
    assert_eq!(done.out, "\u{1b}]0;owned\u{7} and \u{202e}.\n");
}

#[test]
fn a_resize_while_streaming_loses_and_doubles_nothing() {
    const PART: usize = 60;
    const SIZES: [(u16, u16); 5] = [(100, 30), (60, 15), (40, 12), (200, 60), (80, 24)];
    const LINES: usize = PART * (SIZES.len() + 1);
    let program = Program::new();
    // The model rests between two parts: what is on its way to a terminal while its size changes was drawn for another
    // size, and no program can help that.
    let parts: Vec<String> = (0..LINES)
        .step_by(PART)
        .map(|from| {
            let text: String = (from..from + PART).map(|n| format!("row {n:04} of it\\n\\n")).collect();
            format!("text: \"{text}\", delay_ms: 800")
        })
        .collect();
    let mut screen =
        scripted(&program, (80, 24), &format!("- chunk: 7\n  reply: [{}, text: The end.]\n", parts.join(", ")));
    screen.send("count\r");
    for (part, size) in SIZES.into_iter().enumerate() {
        screen.wait_text(&format!("row {:04} of it", (part + 1) * PART - 1));
        screen.resize(size.0, size.1);
    }
    screen.wait_text("The end.");
    screen.wait_text(READY);
    let rows = screen.scrollback_text();
    let wrong: Vec<String> =
        (0..LINES).map(|n| format!("row {n:04} of it")).filter(|row| rows.matches(row.as_str()).count() != 1).collect();
    assert!(wrong.is_empty(), "lost or doubled: {wrong:?}");
    leave(&mut screen);
}

/// Where the user wants that and nowhere else, a new width clears the scrollback, and it has every row once, as wide as the
/// terminal is.
#[test]
fn the_scrollback_is_drawn_again_for_a_new_width() {
    const CLEAR: &[u8] = b"\x1b[3J";
    const WIDEST: usize = 100;
    const SHORT: usize = 40;
    let rows: String = (0..SHORT).map(|n| format!("row {n:04} of it\\n\\n")).collect();
    let long = "word ".repeat(60);
    let script = format!("- reply: [text: \"{rows}{long}\\n\\nThe end.\"]\n");
    let clears = |raw: &[u8]| raw.windows(CLEAR.len()).filter(|part| *part == CLEAR).count();
    for rebuilds in [false, true] {
        let program = Program::new().env("COCODE_TUI__RESIZE", if rebuilds { "rebuild" } else { "keep" });
        let mut screen = scripted(&program, (80, 24), &script);
        screen.send("count\r");
        screen.wait_text("The end.");
        screen.wait_text(READY);
        for (nth, (columns, height)) in [(40, 12), (200, 60), (80, 24)].into_iter().enumerate() {
            screen.resize(columns, height);
            if rebuilds {
                screen.wait_until("a cleared scrollback", |state| clears(&state.raw) == nth + 1);
                screen.wait_text("The end.");
                screen.wait_text(READY);
            }
            screen.settle(3 * REST);
            if !rebuilds {
                continue;
            }
            let text = screen.scrollback_text();
            let short = (0..SHORT).map(|n| format!("row {n:04} of it"));
            let wrong: Vec<String> = short.filter(|row| text.matches(row.as_str()).count() != 1).collect();
            assert!(wrong.is_empty(), "lost or doubled at {columns}: {wrong:?}\n{text}");
            assert_eq!((text.matches("word").count(), text.matches("The end.").count()), (60, 1), "{text}");
            let widest = text.lines().filter(|row| row.contains("word")).map(|row| row.trim_end().len()).max();
            let room = usize::from(columns).min(WIDEST);
            assert!(widest.is_some_and(|widest| (room - 8..=room).contains(&widest)), "{widest:?} of {room}:\n{text}");
        }
        assert_eq!(clears(&screen.state().raw), if rebuilds { 3 } else { 0 });
        leave(&mut screen);
    }
}

#[test]
fn sessions_come_back() {
    let program = Program::new();
    let mut screen = scripted(&program, (80, 24), "- reply: [text: The earlier answer.]\n");
    screen.send("an earlier prompt\r");
    screen.wait_text("The earlier answer.");
    screen.wait_text(READY);
    let script = program.script("more.yaml", "- reply: [text: The later answer.]\n");
    // The first process still writes it.
    let mut second = launch(&program, (80, 24), &["--continue", "--offline-script", &script]);
    second.wait_for("the question", |screen| screen.to_lowercase().contains("another process"));
    second.wait_for("both ways out", |screen| {
        screen.to_lowercase().contains("copy") || screen.to_lowercase().contains("fork")
    });
    second.kill();
    leave(&mut screen);
    let mut screen = launch(&program, (80, 24), &["--continue", "--offline-script", &script]);
    screen.wait_text("an earlier prompt");
    screen.wait_text("The earlier answer.");
    screen.send("and now\r");
    screen.wait_text("The later answer.");
    screen.wait_text(READY);
    leave(&mut screen);
    let mut screen = launch(&program, (80, 24), &["--resume", "--offline-script", &script]);
    screen.wait_text("an earlier prompt");
    screen.send("\r");
    screen.wait_text("The later answer.");
    leave(&mut screen);
}

#[test]
fn a_line_with_a_hash_is_remembered_where_the_user_says() {
    let program = Program::new().file("CLAUDE.md", "# Rules");
    let mut screen = scripted(&program, (80, 24), "- reply: [text: A prompt.]\n");
    let file = |name: &str| std::fs::read_to_string(program.project().join(name)).unwrap_or_default();
    screen.send("# it's tabs here\r");
    answer(&screen, "Project: CLAUDE.md", "1");
    screen.wait_until("the line", |_| file("CLAUDE.md") == "# Rules\n- it's tabs here\n");
    screen.wait_text(">> CLAUDE.md");
    screen.send("#mine\r");
    answer(&screen, "Local: CLAUDE.local.md", "2");
    screen.wait_until("the line", |_| file("CLAUDE.local.md") == "- mine\n");
    screen.send("#12 fails\r");
    answer(&screen, "Send it as a prompt", "4");
    screen.wait_text("A prompt.");
    screen.wait_text(READY);
    leave(&mut screen);
    assert_eq!((file("CLAUDE.md"), file("CLAUDE.local.md")), ("# Rules\n- it's tabs here\n".into(), "- mine\n".into()));
}

#[test]
fn a_session_of_shell_lines_comes_back() {
    let program = Program::new();
    let mut screen = scripted(&program, (80, 24), "[]");
    screen.send("!echo a line of $((40 + 2))");
    screen.wait_text("40 + 2");
    screen.send("\r");
    screen.wait_text("a line of 42");
    screen.wait_text(READY);
    leave(&mut screen);
    let mut screen = launch(&program, (80, 24), &["--continue", "--offline"]);
    screen.wait_text("a line of 42");
    screen.wait_text(READY);
    leave(&mut screen);
}

#[test]
fn a_folder_with_rules_of_its_own_is_asked_about() {
    let program = Program::new().file(".claude/settings.json", r#"{"permissions":{"allow":["Bash(touch:*)"]}}"#);
    let script =
        "- repeat: 2\n  reply: [tool: {name: Bash, input: {command: touch made}}]\n- reply: [text: Touched.]\n";
    let mut screen = scripted(&program, (80, 24), script);
    screen.wait_text("Bash(touch:*)");
    answer(&screen, "1. Yes", "1");
    screen.wait_text(READY);
    screen.send("go\r");
    screen.wait_text("Touched.");
    assert!(program.project().join("made").exists());
    leave(&mut screen);
}

#[test]
fn a_list_leaves_the_screen_as_it_was() {
    let text: String = (1..40).map(|n| format!("row {n}\\n\\n")).collect();
    let program = Program::new();
    let mut screen = scripted(&program, (80, 24), &format!("- reply: [text: \"{text}last row\"]\n"));
    screen.send("go\r");
    screen.wait_text("last row");
    screen.wait_for("the end of the turn", |screen| screen.contains(READY) && !screen.contains("interrupt"));
    let (rows, before) = (screen.scrollback_text(), screen.text());
    for (opens, shows) in [("/", "Show commands and keys"), ("/config\r", "Settings"), ("/model\r", "Which model?")] {
        screen.send(opens);
        screen.wait_text(shows);
        screen.send(ESC);
        screen.wait_for("the list gone", |screen| !screen.contains(shows));
        screen.send(CTRL_U);
        screen.wait_until("the screen as it was", |state| {
            state.parser.screen().contents().trim_end() == before.trim_end()
        });
        assert_eq!(screen.scrollback_text(), rows, "{opens}");
    }
    leave(&mut screen);
}

#[test]
fn a_prompt_that_failed_comes_back() {
    let api = FakeApi::start([]);
    let locale = Program::new().env("LANG", "C").env("LC_ALL", "C");
    let vars = api.env(WireName::Anthropic);
    let program = vars.iter().fold(locale, |program, (name, value)| program.env(name, value));
    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    api.push(Reply::raw(401, "application/json", body));
    api.push(Reply::turn().text("Now it works, 日本."));
    let mut screen = launch(&program, (80, 24), &[]);
    screen.wait_text("claude");
    screen.send("a prompt, schön 日本\r");
    screen.wait_text("invalid x-api-key");
    screen.wait_for("the way to fix it", |screen| screen.contains("ANTHROPIC_API_KEY"));
    screen.wait_text("> a prompt, schön 日本");
    screen.send("\r");
    screen.wait_text("Now it works, 日本.");
    assert_eq!(api.received().len(), 2);
    leave(&mut screen);
}

#[test]
fn alt_t_is_read_as_terminals_send_it() {
    let program = Program::new();
    let mut screen = scripted(&program, (80, 24), "- reply: [thinking: Hm., text: Seen it.]\n");
    // The engine has said what the model can.
    screen.wait_text("0 tokens");
    screen.send("\x1bt");
    screen.wait_text("ask first · deep · ");
    screen.send("\x1bT");
    screen.wait_text("no thinking");
    // As terminals with a richer keyboard protocol say it.
    screen.send("\x1b[116:84;4u");
    screen.wait_text("ask first · ultra · ");
    screen.send("go\r");
    screen.wait_text("Seen it.");
    screen.wait_text("thought, 1 token ");
    screen.wait_text(READY);
    leave(&mut screen);
}

#[test]
fn a_plan_is_reviewed_with_each_choice() {
    let yaml = r##"
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# The plan\n1. Write b.txt.\n"}}]
- reply: [tool: {name: ExitPlanMode, input: {}}]
- reply: [text: Something came of it.]
"##;
    for (keys, mode, shown) in [
        ("1", "accept edits", "Something came of it."),
        ("2", "ask first", "Something came of it."),
        ("3", "ask first", "Something came of it."),
        ("4", "plan", "Something came of it."),
        (ESC, "plan", "✗ you kept planning"),
    ] {
        let program = Program::new();
        let mut screen = scripted(&program, (80, 24), yaml);
        screen.send("/plan write b.txt\r");
        answer(&screen, "Write b.txt", keys);
        if keys == "4" {
            screen.wait_text("What should change?");
            screen.send("use c.txt\r");
        }
        screen.wait_text(shown);
        screen.wait_for("the composer", |text| text.contains(READY) && text.contains(mode));
        leave(&mut screen);
    }
}

/// What the terminal reports at the very end would be typed into the shell, or an editor.
#[test]
fn the_last_report_is_read_before_the_next_program_has_the_terminal() {
    let line = "\"$0\" --offline; echo it ended; IFS= read -r line; echo \"got ${#line}\"";
    // A terminal at once, one over a slow line, and one that never answers.
    for late in [Some(0), Some(100), None] {
        let program = Program::new();
        let launch = Launch::new("/bin/sh").args(["-c", line, Program::binary()]).cwd(program.project());
        let launch =
            late.map_or_else(|| launch.clone().silent(), |late| launch.clone().slow(Duration::from_millis(late)));
        let mut screen = launch.start();
        screen.wait_text(READY);
        if late.is_some() {
            screen.wait_until("the answers", |state| state.parser.callbacks().answered > 0);
        }
        screen.send("/exit\r");
        screen.wait_text("it ended");
        if late.is_some() {
            screen.wait_until("the last answer", |state| state.parser.callbacks().answered > 1);
        }
        screen.send("x\r");
        screen.wait_for("one character", |text| text.contains("got 1\n") || text.ends_with("got 1"));
        screen.wait_exit();
    }
}

/// What the terminal answers after the end of the program would be typed into the shell.
#[test]
fn no_late_answer_reaches_the_next_reader() {
    let line = "\"$0\" --offline; echo it ended; IFS= read -r line; echo \"got ${#line}\"";
    // On this machine, and over a slow line.
    for (late, end) in [(50, "\x04"), (400, "\x04"), (400, "/exit\r"), (800, "TERM")] {
        let program = Program::new();
        let launch = Launch::new("/bin/sh").args(["-c", line, Program::binary()]).cwd(program.project());
        let mut screen = launch.slow(Duration::from_millis(late)).start();
        screen.wait_until("the questions", |state| state.raw.windows(3).any(|bytes| bytes == b"\x1b[c"));
        match end {
            "TERM" => {
                let shell = screen.pid();
                let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
                let pid = children.trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("one child");
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            }
            keys => screen.send(keys),
        }
        screen.wait_text("it ended");
        screen.wait_until("the answers", |state| state.parser.callbacks().answered > 0);
        screen.send("x\r");
        // Counted: an emulator shows nothing of an answer that is printed.
        screen.wait_for("one character", |text| text.contains("got 1\n") || text.ends_with("got 1"));
        screen.wait_exit();
    }
}

#[test]
fn a_screen_reader_gets_lines_and_no_control_sequences() {
    let script = "- reply: [text: Looking., tool: {name: Write, input: {file_path: new.txt, content: one}}]\n- reply: [text: Written.]\n";
    let program = Program::new().env("COCODE_TUI__SCREEN_READER", "true");
    let mut screen = scripted(&program, (80, 24), script);
    screen.send("go\r");
    screen.wait_text("1. Yes");
    screen.settle(Duration::from_secs(1));
    screen.send("1");
    screen.wait_text("Written.");
    screen.send("\x04");
    screen.wait_exit();
    let text = screen.text();
    assert!(!screen.state().raw.contains(&0x1b), "{text}");
    let rows = ["> go", "Looking.", "wants to", "1. Yes", "Written."].map(|row| text.find(row));
    assert!(rows.is_sorted() && rows[0].is_some(), "{text}");
    assert_eq!(text.matches("1. Yes").count(), 1, "a question is printed once: {text}");
}
