//! Whatever shape the processes of a command take, and however the program ends: nothing of it survives.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::support::program::Program;

/// Longest wait for anything; only a fault takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ways in which a command starts something that is to live on; `SLEEP` is a program that runs for hours.
const SHAPES: [&str; 20] = [
    "SLEEP &",
    "nohup SLEEP >/dev/null 2>&1 &",
    "(SLEEP &)",
    "(SLEEP & disown)",
    "setsid SLEEP &",
    "setsid -f SLEEP",
    "(setsid SLEEP & exit) &",
    "(setsid env -i SLEEP <&- >&- 2>&- &)",
    "(trap '' TERM HUP INT; SLEEP) &",
    "setsid bash -c 'trap \"\" TERM HUP; while :; do SLEEP; done' &",
    "coproc SLEEP",
    "SLEEP & until read -r comm < /proc/$!/comm && [ $comm = sleep ]; do :; done; kill -STOP $!",
    "bash -c 'bash -c \"SLEEP & wait\" & wait' &",
    "bash -c 'kill -STOP $$; SLEEP' & SLEEP &",
    "echo x | xargs -I{} setsid SLEEP &",
    "(exec -a other SLEEP) &",
    "cd / && (umask 0; setsid SLEEP &)",
    "bash -c 'exec SLEEP' < <(SLEEP) &",
    "(while :; do SLEEP & wait; done) &",
    "python3 -c 'import os, sys\nfor _ in range(2):\n    if os.fork(): os._exit(0)\n    os.setsid()\nos.execvp(\"sleep\", \"SLEEP\".split())' || SLEEP &",
];

/// Processes whose command line holds this word, but for those that only look for it.
fn alive(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let line = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.starts_with("sleep ") || line.starts_with("other ")).then_some(line)
    };
    entries.filter_map(line).filter(|line| line.contains(word)).collect()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A run of the program in the middle of a command that has started every shape, and what names each.
fn begin(program: &Program, run: usize) -> (Child, Vec<String>) {
    let word = |nth: usize| format!("7{run}{nth:02}.{}", std::process::id());
    let words: Vec<String> = (0..SHAPES.len()).map(word).collect();
    let lines: Vec<String> =
        SHAPES.iter().zip(&words).map(|(shape, word)| shape.replace("SLEEP", &format!("sleep {word}"))).collect();
    let command = format!("{}\nwhile :; do sleep 7999.{}; done", lines.join("\n"), std::process::id());
    let steps = json!([{"reply": [{"tool": {"name": "Bash", "input": {"command": command}}}]}]);
    let script = program.script("script.yaml", &steps.to_string());
    let args = ["-p", "go", "--offline-script", &script, "--dangerously-skip-permissions"];
    let child = program.command(Program::binary(), &args).spawn().unwrap();
    for (word, shape) in words.iter().zip(SHAPES) {
        wait_until(shape, || !alive(word).is_empty());
    }
    (child, words)
}

#[test]
fn no_shape_of_process_survives_the_program() {
    for (run, signal) in [Signal::KILL, Signal::TERM, Signal::ILL].into_iter().enumerate() {
        let program = Program::new().env("COCODE_SANDBOXED", "1");
        let (mut child, words) = begin(&program, run);
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        for (word, shape) in words.iter().zip(SHAPES) {
            wait_until(shape, || alive(word).is_empty());
        }
    }
}
