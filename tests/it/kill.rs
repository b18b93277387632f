//! A process that is killed at any byte of its output loses nothing that it has shown, and the session continues.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cocode::message::{Block, Kind, Message};
use cocode::provider::settings::WireName;
use cocode::session::Session;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::support::fake_api::{FakeApi, Reply};
use super::support::program::Program;
use super::support::screen::{Launch, Screen};

/// Kills.
const POINTS: usize = 200;
/// One kill in so many is followed by a prompt over a wire whose server checks the request.
const SENT: usize = 10;
const SEED: u64 = 0x5eed;

const TURN: &str = r#"
- reply: [thinking: I write it., text: Writing., tool: {name: Write, input: {file_path: a.txt, content: "one\ntwo\n"}}]
- reply:
  - text: Looking twice.
  - tool: {name: Read, input: {file_path: a.txt}}
  - tool: {name: LS, input: {path: .}}
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: two, new_string: three}}]
- reply: [text: All done.]
"#;

fn begin(program: &Program) -> Child {
    let script = program.script("turn.yaml", TURN);
    let args =
        ["-p", "go", "--permission-mode", "acceptEdits", "--output-format", "stream-json", "--offline-script", &script];
    program.command(Program::binary(), &args).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills the program when it has written so many bytes, and returns all that it wrote.
fn kill_at(program: &Program, bytes: usize) -> String {
    let mut child = begin(program);
    let mut out = child.stdout.take().unwrap();
    let mut seen = vec![0; bytes];
    // A run may be some bytes shorter than the one that was measured: its times have fewer digits.
    let _ = out.read_exact(&mut seen);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    seen.extend(rest);
    String::from_utf8(seen).unwrap()
}

/// Everything wrong with the order of calls and results.
fn problems(messages: &[std::sync::Arc<Message>]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        for block in &message.blocks {
            match block {
                Block::ToolCall(call) => open.push(call.id.to_string()),
                Block::ToolResult(result) if open.first().is_some_and(|id| *id == result.id.to_string()) => {
                    open.remove(0);
                }
                Block::ToolResult(result) => problems.push(format!("{:?} answers no open call", result.id)),
                Block::Text { .. } if !open.is_empty() && message.role == cocode::message::Role::User => {
                    problems.push(format!("words before {open:?} are answered"));
                }
                _ => {}
            }
        }
    }
    problems.extend(open.iter().map(|id| format!("{id} is never answered")));
    problems
}

/// What a complete line of output has shown, as it is in the log: texts and ids of calls.
fn shown(line: &str) -> Vec<String> {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
    let content = line["message"]["content"].as_array().cloned().unwrap_or_default();
    content
        .iter()
        .flat_map(|block| ["text", "id", "tool_use_id"].map(|key| block[key].as_str().map(str::to_owned)))
        .flatten()
        .collect()
}

fn open(log: &Path) -> Session {
    let folder = log.parent().unwrap();
    let id = folder.file_name().unwrap().to_str().unwrap();
    // Takes the lock: the killed process must not hold it any more.
    Session::open(folder.parent().unwrap(), id, SystemTime::now).unwrap()
}

/// No prompt is in the log yet.
fn session_is_new(messages: &[Arc<Message>]) -> bool {
    messages.iter().all(|message| message.kind != Kind::Prompt)
}

fn check(point: usize, bytes: usize) {
    let program = Program::new();
    let out = kill_at(&program, bytes);
    let whole = &out[..out.rfind('\n').map_or(0, |at| at + 1)];
    let rows: Vec<String> = whole.lines().flat_map(shown).collect();
    let logs = program.logs();
    let Some(log) = logs.first() else {
        assert!(rows.is_empty(), "killed at {bytes}: shown, but in no log:\n{out}");
        return;
    };
    let before = std::fs::read(log).unwrap();
    let committed = &before[..before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)];
    if committed.is_empty() {
        // Killed while the file was made: nothing of the prompt was taken yet.
        assert!(rows.is_empty(), "killed at {bytes}: shown, but in no log:\n{out}");
        return;
    }
    let session = open(log);
    let messages = session.context().messages();
    assert_eq!(problems(&messages), Vec::<String>::new(), "killed at {bytes}:\n{out}");
    let kept = serde_json::to_string(&messages).unwrap();
    for row in &rows {
        let row = serde_json::to_string(row).unwrap();
        assert!(kept.contains(row.trim_matches('"')), "killed at {bytes}, {row} is lost:\n{kept}");
    }
    drop(session);
    if session_is_new(&messages) {
        // Killed before the prompt was taken: there is nothing to continue, and nothing was shown.
        assert!(rows.is_empty(), "killed at {bytes}: shown, but in no log:\n{out}");
        return;
    }
    if point.is_multiple_of(SENT) {
        let api = FakeApi::start([Reply::turn().text("Here again.")]);
        let mut args = vec!["--continue", "-p", "continue"];
        args.extend(["--model", "anthropic/claude-sonnet-5"]);
        let mut command = program.command(Program::binary(), &args);
        command.envs(api.env(WireName::Anthropic));
        let done = program.wait(command);
        assert_eq!((done.code, done.out.as_str()), (Some(0), "Here again.\n"), "killed at {bytes}: {}", done.err);
        api.assert_clean();
    }
    let after = std::fs::read(log).unwrap();
    assert!(after.starts_with(committed), "killed at {bytes}: a committed line is gone");
}

#[test]
fn nothing_that_was_shown_is_lost_to_a_kill() {
    let whole = {
        let program = Program::new();
        super::support::program::end(begin(&program))
    };
    assert_eq!(whole.code, Some(0), "{}", whole.out);
    let mut random = fastrand::Rng::with_seed(SEED);
    let points: Vec<(usize, usize)> = (0..POINTS).map(|point| (point, random.usize(1..whole.out.len()))).collect();
    std::thread::scope(|scope| {
        for half in points.chunks(POINTS / 2) {
            scope.spawn(|| half.iter().for_each(|(point, bytes)| check(*point, *bytes)));
        }
    });
}

/// Calls before each of which the program is killed while it edits a file: together they stand between all states that
/// the file, the one beside it and the log can be in.
const CALLS: &[&str] = &["fdatasync", "fchmod", "renameat", "renameat2", "unlink", "fallocate", "lseek", "ftruncate"];

const EDIT: &str = "- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: two, new_string: something longer}}]
- reply: [tool: {name: Write, input: {file_path: new/deep/c.txt, content: three}}]
- reply: [text: All done.]
";

/// Kills an edit before the nth call of a kind, resumes and undoes it. None: it came to its end, or nobody may trace.
fn kill_edit(call: &str, nth: usize, other_name: bool) -> Option<()> {
    let old = "one\n".repeat(2_000) + "two\n" + &"three\n".repeat(2_000);
    let program = Program::new().file("a.txt", &old);
    let script = program.script("edit.yaml", EDIT);
    let at = |name: &str| program.project().join(name);
    if other_name {
        std::fs::hard_link(at("a.txt"), at("b.txt")).unwrap();
    }
    let inject = format!("inject={call}:signal=KILL:when={nth}");
    let traced = format!("trace={call}");
    let mut args =
        vec!["-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", &traced, "-e", &inject, Program::binary()];
    args.extend(["-p", "go", "--permission-mode", "acceptEdits", "--offline-script", &script]);
    let killed = program.command("strace", &args).output().ok().filter(|done| done.status.code().is_none())?;
    let undone = program.run(&["--continue", "-p", "/undo"]);
    let names: Vec<_> = std::fs::read_dir(program.project()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let found = std::fs::read_to_string(at("a.txt")).unwrap();
    assert!(found == old, "killed before {call} {nth}: {killed:?}\nnot undone: {undone:?}");
    assert_eq!(names.len(), 1 + usize::from(other_name), "killed before {call} {nth}: {names:?}");
    Some(())
}

#[test]
fn an_edit_that_is_killed_can_be_undone() {
    let mut points = 0;
    for other_name in [false, true] {
        for call in CALLS {
            points += (1..).map_while(|nth| kill_edit(call, nth, other_name)).count();
        }
    }
    // None where there is no strace, or nobody may trace.
    assert!(points == 0 || points > 10, "{points} points");
}

#[test]
fn a_session_whose_folder_is_removed_meanwhile_is_written_again() {
    let program = Program::new().file("away.sh", "rm -r ~/.claude/*-*-*-*-*\n");
    let script = program.script(
        "rm.yaml",
        "- reply: [text: Removing., tool: {name: Bash, input: {command: bash away.sh}}]\n- reply: [text: All done.]\n",
    );
    let args = ["-p", "go", "--offline-script", &script, "--permission-mode", "bypassPermissions"];
    let done = program.env("COCODE_SANDBOXED", "1");
    let run = done.run(&args);
    assert!(run.err.contains("the session's log was removed or replaced while it was open"), "{run:?}");
    let logs = done.logs();
    let [log] = logs.as_slice() else { panic!("{logs:?}: {run:?}") };
    let messages = serde_json::to_string(&open(log).context().messages()).unwrap();
    assert!(messages.contains("Removing.") && messages.contains("All done."), "{messages}");
}

/// A shell, not at a prompt, from which the program was started: it tells when the terminal is as it was.
const SCRIPT: &str = "stty -g > before; \"$0\" \"$@\"; until [ \"$(stty -g)\" = \"$(cat before)\" ]; do :; done; \
                      echo as it was; exec sleep 1000";

fn below(pid: u32) -> Option<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

/// How often the terminal was told so.
fn told(screen: &Screen, bytes: &[u8]) -> usize {
    screen.state().raw.windows(bytes.len()).filter(|window| window == &bytes).count()
}

/// However the program is killed, the terminal is as it was, and was told so once.
#[test]
fn the_terminal_comes_back() {
    for (signal, overlay, confines, full) in [
        (Signal::KILL, false, "true", false),
        (Signal::KILL, true, "true", false),
        (Signal::SEGV, false, "true", false),
        (Signal::ILL, true, "true", false),
        (Signal::KILL, false, "false", false),
        (Signal::KILL, true, "true", true),
        (Signal::SEGV, true, "true", true),
    ] {
        let mut args = vec!["-c", SCRIPT, Program::binary(), "--offline"];
        args.extend(full.then_some("--fullscreen"));
        let screen = Launch::new("/bin/sh").args(args).env("COCODE_SANDBOX__ENABLED", confines).start();
        screen.wait_text("Ask anything");
        screen.settle(Duration::from_millis(200));
        if overlay {
            if !full {
                screen.send("\x0f");
            }
            screen.wait_until("the alternate screen", |state| state.parser.screen().alternate_screen());
        }
        let pid = below(screen.pid()).unwrap();
        kill_process(pid, signal).unwrap();
        if signal == Signal::SEGV {
            // The first is taken for a stack overflow that it is not.
            while below(screen.pid()) == Some(pid) {
                let _ = kill_process(pid, signal);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        screen.wait_text("as it was");
        screen.wait_until("its cursor", |state| !state.parser.screen().hide_cursor());
        for (bytes, want) in [
            (&b"\x1b[?2004l"[..], 1),
            (b"\x1b[?1004l", 1),
            (b"\x1b[<u", if overlay && !full { 2 } else { 1 }),
            (b"\x1b[?1002l", usize::from(full)),
            (b"\x1b[?1006l", usize::from(full)),
            (b"\x1b[?1049l", usize::from(overlay)),
        ] {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(told(&screen, bytes), want, "{signal:?} {overlay} {shown:?}: {}", screen.text());
        }
        let state = screen.state();
        let (emulator, none) = (state.parser.screen(), vt100::MouseProtocolMode::None);
        assert!(!emulator.alternate_screen() && emulator.mouse_protocol_mode() == none, "{signal:?}");
    }
}

/// A shell at its prompt has the terminal back at once, and does not know what the program had switched on. Another program
/// that the user has started meanwhile is not disturbed.
#[test]
fn only_a_terminal_that_is_still_ours_is_brought_back() {
    for stopped in [false, true] {
        let screen = Launch::new("/bin/bash").args(["--norc", "--noediting", "-i"]).env("PS1", "ready> ").start();
        screen.wait_text("ready>");
        screen.send(format!("{} --offline\n", Program::binary()));
        screen.wait_text("Ask anything");
        screen.settle(Duration::from_millis(200));
        let pid = below(screen.pid()).unwrap();
        if stopped {
            kill_process(pid, Signal::STOP).unwrap();
            screen.wait_until("the shell", |state| state.parser.screen().contents().contains("Stopped"));
            screen.send("stty sane; echo o''ther; cat\n");
            screen.wait_text("other");
        }
        kill_process(pid, Signal::KILL).unwrap();
        match stopped {
            false => screen.wait_until("the way back", |state| {
                let raw = String::from_utf8_lossy(&state.raw);
                raw.matches("\x1b[?1004l").count() == 1 && raw.contains("Killed")
            }),
            // The helper has ended by the time that its own end is seen.
            true => {
                screen.send("here\n");
                screen.settle(Duration::from_millis(500));
            }
        }
        assert_eq!(told(&screen, b"\x1b[?1004l"), usize::from(!stopped), "{}", screen.text());
    }
}
