//! A process that is killed in the middle of a compaction: the conversation is as it was, or compacted, and the session continues.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use cocode::session::Session;

use super::support::program::Program;

const SETTINGS: &str = "features = { session_memory = false }\n";
const SUMMARY: &str = "- {for: summary, reply: [text: '<summary>S</summary>']}\n";

/// Where the process is killed.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// While a hook of this event runs.
    Hook(&'static str),
    /// While the summary is waited for.
    Summary,
}

fn settings(hook: &str, pipe: &Path) -> String {
    // The other end opens the pipe: the hook is running then.
    let command = format!("echo > '{}'; exec sleep 600", pipe.display());
    let command = toml::Value::String(command);
    format!("{SETTINGS}[[hooks.{hook}]]\nhooks = [{{ type = \"command\", command = {command}, timeout = 900 }}]\n")
}

/// Runs `/compact` and kills it there.
fn kill(program: &Program, phase: Phase) {
    let summary = match phase {
        Phase::Hook(_) => SUMMARY,
        Phase::Summary => "- {for: summary, reply: [delay_ms: 600000, text: x]}",
    };
    let script = program.script("compact.yaml", summary);
    let args =
        ["-p", "/compact", "--trust", "--continue", "--output-format", "stream-json", "--offline-script", &script];
    let pipe = program.project().join("pipe");
    let mut child = program.command(Program::binary(), &args).stdout(Stdio::piped()).spawn().unwrap();
    match phase {
        Phase::Hook(_) => drop(std::fs::read(&pipe).unwrap()),
        Phase::Summary => {
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.any(|line| line.unwrap().contains("compacting")), "the stream ended");
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_conversation_is_whole_whichever_phase_it_was() {
    for (phase, compacted) in [
        (Phase::Hook("PreCompact"), false),
        (Phase::Summary, false),
        (Phase::Hook("SessionStart"), false),
        (Phase::Hook("PostCompact"), true),
    ] {
        let program = Program::new().file(".cocode/config.toml", SETTINGS);
        let first = program.script(
            "first.yaml",
            &format!("- reply: [text: '{}', usage: {{input: 60000, output: 5}}]", "One. ".repeat(2_000)),
        );
        program.run(&["-p", "first", "--trust", "--offline-script", &first]);
        let second = program.script("second.yaml", "- reply: [text: Two., usage: {input: 90000, output: 5}]");
        let ran = program.run(&["-p", "second", "--trust", "--continue", "--offline-script", &second]);
        assert_eq!(ran.out, "Two.\n", "{}", ran.err);
        let log = program.logs().remove(0);
        let before = std::fs::read(&log).unwrap();

        let pipe = program.project().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let configured = match phase {
            Phase::Hook(event) if event != "SessionStart" => settings(event, &pipe),
            // Not the one of the start of the process.
            Phase::Hook(event) => settings(event, &pipe).replace("\nhooks =", "\nmatcher = \"compact\"\nhooks ="),
            Phase::Summary => SETTINGS.to_owned(),
        };
        let program = program.file(".cocode/config.toml", &configured);
        kill(&program, phase);

        let after = std::fs::read(&log).unwrap();
        assert!(after.starts_with(&before), "{phase:?}: a committed line is gone");
        {
            let folder = log.parent().unwrap();
            let id = folder.file_name().unwrap().to_str().unwrap();
            // Takes the lock: the killed process must not hold it any more.
            let session = Session::open(folder.parent().unwrap(), id, SystemTime::now).unwrap();
            assert_eq!(session.facts().compactions.len(), usize::from(compacted), "{phase:?}");
            let whole = session.context().messages().iter().any(|message| message.text().contains("One. One."));
            assert_eq!(whole, !compacted, "{phase:?}");
        }
        let program = program.file(".cocode/config.toml", SETTINGS);
        let third = program.script("third.yaml", "- reply: [text: Three.]");
        let ran = program.run(&["-p", "third", "--trust", "--continue", "--offline-script", &third]);
        assert_eq!(ran.out, "Three.\n", "{phase:?}: {}", ran.err);
    }
}
