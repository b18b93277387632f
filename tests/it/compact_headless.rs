//! `/compact` without a screen: its answer, its lines, and what comes after it.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::program::Program;

/// Two turns, a summary that takes its time, one more turn.
const SCRIPT: &str = "
- reply: [text: One.]
- reply: [text: Two., usage: {input: 60000, output: 5}]
- {for: summary, reply: [delay_ms: 300, text: '<summary>S</summary>']}
- {expect: {lacks: One.}, reply: [text: Three.]}
";

const SETTINGS: &str = "features = { session_memory = false }\ncompact = { keep_recent_tokens = 0 }\n";

fn program() -> (Program, String) {
    let program = Program::new().file(".cocode/config.toml", SETTINGS);
    let script = program.script("script.yaml", SCRIPT);
    (program, script)
}

/// What of a line the reader of a stream goes by.
fn mark(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).unwrap();
    let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    match (word("type").as_str(), word("subtype").as_str()) {
        ("result", _) => Some(format!("result {}", word("result").lines().next().unwrap_or_default())),
        ("system", "status") => Some(format!("status {} {}", line["status"], line["compact_result"])),
        ("system", "compact_boundary") => {
            let metadata = &line["compact_metadata"];
            assert_eq!(metadata["pre_tokens"], json!(60_005));
            let after = metadata["post_tokens"].as_u64().unwrap();
            assert_eq!((after > 0, metadata["saved_tokens"].as_u64()), (true, Some(60_005 - after)), "{metadata}");
            Some(format!("boundary {}", metadata["trigger"]))
        }
        _ => None,
    }
}

#[test]
fn a_stream_goes_on_after_it() {
    let (program, script) = program();
    let args = [
        "-p",
        "--trust",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--offline-script",
        &script,
    ];
    let mut child =
        program.command(Program::binary(), &args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for text in ["first", "second", "/compact mind the tests", "/cost", "third"] {
        let line = json!({"type": "user", "message": {"role": "user", "content": text}});
        writeln!(input, "{line}").unwrap();
    }
    drop(input);
    let done = child.wait_with_output().unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    let marks: Vec<String> = out.lines().filter_map(mark).collect();
    let words: Vec<&str> = marks.iter().map(|mark| mark.split(" · ").next().unwrap().trim()).collect();
    assert_eq!(
        words,
        [
            "result One.",
            "result Two.",
            "status \"compacting\" null",
            "status null \"success\"",
            "boundary \"manual\"",
            "result Compacted 6 messages",
            "result | Model | Input | Cached | Output | Cost |",
            "result Three.",
        ],
        "{out}"
    );
    assert_eq!(done.status.code(), Some(0));
}

#[test]
fn a_stream_tells_failures_clearing_and_cost() {
    let settings = "features = { session_memory = false }\ncompact = { keep_recent_tokens = 0, min_messages_before_compact = 2, micro = { keep_last = 0 } }\n";
    let hook = "[[hooks.PreCompact]]\nhooks = [{ type = \"command\", command = \"cat a.txt\" }]\n";
    let program = Program::new()
        .file(".cocode/config.toml", &format!("{settings}{hook}"))
        .file("a.txt", &"mind the parser\n".repeat(400));
    let script = program.script(
        "script.yaml",
        "
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [text: Two., usage: {input: 60000, output: 5}]
- {for: summary, repeat: 2, reply: [text: '', usage: {input: 600, output: 5}]}
- {for: summary, reply: [text: '<summary>S</summary>', usage: {input: 700, output: 5}]}
",
    );
    let lines: Vec<String> = ["first", "/compact micro 1", "/compact x", "/compact x"]
        .iter()
        .map(|text| json!({"type": "user", "message": {"role": "user", "content": text}}).to_string())
        .collect();
    let args = ["-p", "--trust", "--input-format", "stream-json", "--output-format", "stream-json"];
    let out = program.stdin(&lines.join("\n")).run(&[&args[..], &["--offline-script", &script]].concat()).out;
    let found = |subtype: &str| -> Vec<Value> {
        let lines = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["subtype"] == subtype).collect()
    };
    let cleared = &found("microcompact_boundary")[0]["microcompact_metadata"];
    assert_eq!((&cleared["trigger"], &cleared["removed_results"]), (&json!("manual"), &json!(1)), "{out}");
    let failed = &found("status")[1];
    assert_eq!(
        (&failed["compact_result"], &failed["compact_metadata"]["reason"]),
        (&json!("failed"), &json!("no_summary"))
    );
    assert!(failed["compact_error"].as_str().is_some_and(|text| text.contains("empty answer")), "{failed}");
    assert_eq!(failed["compact_metadata"]["usage"]["input_tokens"], json!(1_200), "{failed}");
    let done = found("success");
    // What came to nothing was paid for as well.
    let paid: Vec<&Value> = done[2..].iter().map(|done| &done["usage"]["input_tokens"]).collect();
    assert_eq!(paid, [&json!(1_200), &json!(700)], "{out}");
    let done = &done[3];
    // What hooks added is told, cut to a line.
    assert!(
        done["result"].as_str().is_some_and(|text| text.contains("PreCompact hook: mind the parser mind")),
        "{done}"
    );
}

#[test]
fn a_single_command_waits_for_its_summary_and_can_be_stopped() {
    let (program, script) = program();
    let args = |text: &'static str| ["-p", text, "--trust", "--continue", "--offline-script", &script];
    let first = program.run(&["-p", "first", "--trust", "--offline-script", &script]);
    assert_eq!(first.out, "One.\n", "{}", first.err);
    // A script starts over with each process; here its first step has been played in the log.
    let long = program.script("long.yaml", &SCRIPT.replace("- reply: [text: One.]\n", ""));
    let second = program.run(&["-p", "second", "--trust", "--continue", "--offline-script", &long]);
    assert_eq!(second.out, "Two.\n", "{}", second.err);
    let done = program.run(&args("/compact"));
    assert!(done.out.starts_with("Compacted 6 messages · full · 60k → "), "{} {}", done.out, done.err);
    assert_eq!(done.code, Some(0));
    let undone = program.run(&args("/compact undo"));
    assert!(undone.out.starts_with("Compaction undone"), "{} {}", undone.out, undone.err);
    // Stopped in the middle, it changes nothing.
    let hanging = program.script("hang.yaml", "- {for: summary, reply: [delay_ms: 600000, text: x]}");
    let flags =
        ["-p", "/compact", "--trust", "--continue", "--output-format", "stream-json", "--offline-script", &hanging];
    let mut child = program.command(Program::binary(), &flags).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("compacting") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut out, &mut line).unwrap(), 0, "the stream ended");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let again = program.run(&args("/compact undo"));
    assert!(again.out.starts_with("No compaction"), "{} {}", again.out, again.err);
}
