//! `cocode -p`: shapes of the output, exit codes, flags, what goes where.

use std::io::Read;

use cocode::provider::settings::WireName;
use serde_json::{Value, json};

use super::support::fake_api::{FakeApi, MODELS, Received, Reply};
use super::support::program::{Done, Program, end};

const ANSWER: &str = "- reply: [text: Fine.]\n";
const WRITE: &str =
    "- reply: [text: Trying., tool: {name: Bash, input: {command: touch made}}]\n- reply: [text: Done.]\n";

const PLAN: &str = r##"
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# Plan\n1. Do it.\n"}}]
- reply: [text: Here it is., tool: {name: ExitPlanMode, input: {}}]
- reply: [text: Never said.]
"##;
const ASK: &str = r#"
- reply:
  - tool: {name: EnterPlanMode, input: {}}
  - tool: {name: AskUserQuestion, input: {questions: [{question: Which?, header: Which, options: [{label: a, description: b}, {label: c, description: d}]}]}}
- expect: {contains: "Nobody can be asked"}
  reply: [text: Decided.]
"#;

/// Runs one scripted prompt with further flags.
fn run(yaml: &str, flags: &[&str]) -> Done {
    let program = Program::new();
    let script = program.script("script.yaml", yaml);
    program.run(&[&["-p", "go", "--offline-script", &script], flags].concat())
}

#[test]
fn exit_codes_tell_how_it_ended() {
    let check = |yaml: &str, flags: &[&str], code: i32, out: &str| {
        let done = run(yaml, flags);
        assert_eq!((done.code, done.out.as_str()), (Some(code), out), "{flags:?}: {}", done.err);
    };
    check(ANSWER, &[], 0, "Fine.\n");
    check("- reply: [error: {kind: auth, message: no}]\n", &[], 1, "");
    check(ANSWER, &["--max-turns", "0"], 2, "");
    check(ANSWER, &["--permission-mode", "nonsense"], 2, "");
    check(WRITE, &[], 3, "Done.\n");
    check(WRITE, &["--allowed-tools", "Bash(touch:*)"], 0, "Done.\n");
    check(WRITE, &["--allowedTools", "Bash(touch:*),Read"], 0, "Done.\n");
    check(WRITE, &["--allowed-tools", "Bash", "--disallowed-tools", "Bash(touch:*)"], 0, "Done.\n");
    check(WRITE, &["--permission-mode", "plan"], 0, "Done.\n");
    check(WRITE, &["--max-turns", "1"], 4, "Trying.\n");
    // A plan that was submitted is the answer, and the end.
    check(PLAN, &["--permission-mode", "plan"], 0, "# Plan\n1. Do it.\n");
    check(ASK, &[], 0, "Decided.\n");
    let done = Program::new().run(&["-p", " ", "--offline"]);
    assert_eq!((done.code, done.err.contains("no prompt")), (Some(2), true), "{done:#?}");
}

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

#[test]
fn only_an_accepted_answer_counts() {
    let bad = |n: usize| format!("- reply: [text: Try {n}., tool: {{name: StructuredOutput, input: {{n: no{n}}}}}]\n");
    let good = "- reply: [tool: {name: StructuredOutput, input: {n: 7}}]\n- reply: [text: Done.]\n";
    let missing = "- reply: [text: \"{}\"]\n";
    let asked = "- expect: {contains: \"The final answer is still missing\"}\n  reply: [tool: {name: StructuredOutput, input: {n: 7}}]\n- reply: [text: Done.]\n";
    let many: String = (1..=5).map(bad).collect();
    let check = |yaml: &str, code: i32, out: &str| {
        let done = run(yaml, &["--json-schema", SCHEMA]);
        assert_eq!((done.code, done.out.as_str()), (Some(code), out), "{yaml}: {}", done.err);
        let done = run(yaml, &["--json-schema", SCHEMA, "--output-format", "json"]);
        let result = &done.lines()[0];
        let want = if code == 0 { "success" } else { "error_max_structured_output_retries" };
        assert_eq!((done.code, &result["subtype"], &result["is_error"]), (Some(code), &json!(want), &json!(code != 0)));
        assert_eq!(result.get("structured_output").map(Value::to_string).unwrap_or_default(), out.trim_end());
        assert_eq!(done.err.contains("gave no answer that fits the schema"), code != 0, "{}", done.err);
        let init = run(yaml, &["--json-schema", SCHEMA, "--output-format", "stream-json"]).lines().remove(0);
        let tools = init["tools"].as_array().unwrap();
        assert!(["Read", "StructuredOutput"].iter().all(|tool| tools.contains(&json!(tool))), "{tools:?}");
    };
    let seven = "{\"n\":7}\n";
    check(good, 0, seven);
    check(&format!("{}{good}", bad(1)), 0, seven);
    check(&format!("{missing}{asked}"), 0, seven);
    // What is rejected later does not withdraw what was accepted.
    check(
        &format!("- reply: [tool: {{name: StructuredOutput, input: {{n: 7}}}}]\n{}- reply: [text: Done.]\n", bad(1)),
        0,
        seven,
    );
    check(&many, 5, "");
    check(&bad(1).repeat(5), 5, "");
    check(&missing.repeat(5), 5, "");
    check(&format!("{}{}", bad(1), missing.repeat(4)), 5, "");
}

#[test]
fn an_answer_that_a_hook_rewrote_is_printed_as_it_was_accepted() {
    let says = r#"echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"n": 8}}}'"#;
    let hook = json!({ "matcher": "StructuredOutput", "hooks": [{ "type": "command", "command": says }] });
    let settings = json!({ "hooks": { "PreToolUse": [hook] } }).to_string();
    let program = Program::new().home_file(".claude/settings.json", &settings);
    let yaml = "- reply: [tool: {name: StructuredOutput, input: {n: 7}}]\n- reply: [text: Done.]\n";
    let script = program.script("script.yaml", yaml);
    let done = program.run(&["-p", "go", "--offline-script", &script, "--json-schema", SCHEMA]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "{\"n\":8}\n"), "{}", done.err);
}

#[test]
fn lines_go_on_after_a_failure_and_bring_pictures() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = json!([{"type": "text", "text": "see"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}]);
    let line = |content: Value| json!({"type": "user", "message": {"role": "user", "content": content}}).to_string();
    let unknown =
        json!({"type": "control_request", "request_id": "7", "request": {"subtype": "set_color"}}).to_string();
    let input = [line(json!("one")), unknown, line(json!("two")), line(json!("/nonsense")), line(image)].join("\n");
    let program = Program::new().stdin(&format!("{input}\n"));
    let script = "- reply: [error: {kind: auth, message: no}]\n\
                  - expect: {contains: two}\n  reply: [tool: {name: Bash, input: {command: touch made}}]\n\
                  - reply: [text: Second.]\n\
                  - expect: {contains: \"(image/png)\"}\n  reply: [text: Seen.]\n";
    let script = program.script("script.yaml", script);
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--offline-script", &script];
    let done = program.run(&[&["-p"], &flags[..]].concat());
    let told = |line: &Value| match line["type"].as_str().unwrap() {
        "result" => Some(format!(
            "{} {} {}",
            line["subtype"],
            line["permission_denials"].as_array().unwrap().len(),
            line["result"]
        )),
        "control_response" => Some(line["response"].to_string()),
        _ => None,
    };
    let told: Vec<String> = done.lines().iter().filter_map(told).collect();
    assert_eq!(done.code, Some(0), "{done:#?}");
    assert_eq!(told.len(), 5, "{told:#?}");
    assert!(told.iter().any(|line| line.contains("\"set_color\\\" is not supported")), "{told:#?}");
    let results: Vec<&String> = told.iter().filter(|line| !line.contains("request_id")).collect();
    assert!(results[0].starts_with("\"error_during_execution\" 0 \"the provider refused the key"), "{results:#?}");
    assert_eq!(results[1], "\"success\" 1 \"Second.\"");
    assert!(results[2].starts_with("\"error_during_execution\" 0 \"unknown command /nonsense"), "{results:#?}");
    assert_eq!(results[3], "\"success\" 0 \"Seen.\"");
    let log = std::fs::read_to_string(program.logs().pop().unwrap()).unwrap();
    assert!(log.contains("image/png") && log.contains("see\\n[Image 1]"), "{log}");
    // A line that nobody can use is said, and the rest is done.
    let program = Program::new().stdin(&format!("nonsense\n{}\n", line(json!("hi"))));
    let script = program.script("script.yaml", ANSWER);
    let flags = ["--input-format", "stream-json", "--output-format", "json", "--offline-script", &script];
    let done = program.run(&[&["-p"], &flags[..]].concat());
    let results: Vec<Value> = done.lines().iter().map(|line| line["is_error"].clone()).collect();
    assert_eq!((done.code, results), (Some(2), vec![json!(true), json!(false)]), "{done:#?}");
}

#[test]
fn lines_are_read_while_a_turn_runs() {
    let program = Program::new();
    let script = "- reply: [text: Busy., tool: {name: Bash, input: {command: sleep 7000}}]\n\
                  - expect: {contains: after}\n  reply: [text: Next.]\n";
    let script = program.script("script.yaml", script);
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--allowed-tools", "Bash"];
    let args = [&["-p", "--offline-script", &script], &flags[..]].concat();
    let mut command = program.command(Program::binary(), &args);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut say = |line: Value| std::io::Write::write_all(&mut input, format!("{line}\n").as_bytes()).unwrap();
    let mut until = |want: &str| {
        let mut line = String::new();
        while !line.contains(want) {
            line.clear();
            assert!(std::io::BufRead::read_line(&mut out, &mut line).unwrap() > 0, "no {want}");
        }
        line
    };
    say(json!({"type": "user", "message": {"content": "go"}}));
    until("Busy.");
    say(json!({"type": "user", "message": {"content": "after"}}));
    say(json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt"}}));
    assert!(until("control_response").contains("\"request_id\":\"r1\""));
    assert!(until("\"type\":\"result\"").contains("error_during_execution"));
    assert!(until("\"type\":\"result\"").contains("Next."));
    drop(input);
    assert_eq!(end(child).code, Some(0));
}

#[test]
fn commands_in_the_background_are_told_of_and_asked_about() {
    let program = Program::new().env("COCODE_SANDBOXED", "1");
    let command = "echo one; touch seen; until [ -e never ]; do sleep 0.01; done";
    let script = super::background::starts(command)
        + "- reply: [tool: {name: Bash, input: {command: 'until [ -e seen ]; do sleep 0.01; done'}}]\n\
           - repeat: 9\n  reply: [text: It runs.]\n";
    let script = program.script("script.yaml", &script);
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--dangerously-skip-permissions"];
    let args = [&["-p", "--offline-script", &script], &flags[..]].concat();
    let mut child = program.command(Program::binary(), &args).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut say = |line: Value| std::io::Write::write_all(&mut input, format!("{line}\n").as_bytes()).unwrap();
    let mut until = |want: &str| {
        let mut line = String::new();
        while !line.contains(want) {
            line.clear();
            assert!(std::io::BufRead::read_line(&mut out, &mut line).unwrap() > 0, "no {want}");
        }
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let ask = |subtype: &str, task: &str| {
        let request = json!({"subtype": subtype, "task_id": task});
        json!({"type": "control_request", "request_id": subtype, "request": request})
    };
    say(json!({"type": "user", "message": {"content": "go"}}));
    let started = until("task_started");
    assert_eq!((&started["task_id"], &started["description"]), (&json!("b1"), &json!("the run")), "{started}");
    assert!(started["uuid"].is_string() && started["session_id"].is_string(), "{started}");
    until("\"type\":\"result\"");
    // Between two prompts, too.
    say(ask("stop_task", "../b1"));
    assert_eq!(until("control_response")["response"]["error"], json!("nothing called \"../b1\" in the background"));
    say(ask("stop_task", "b1"));
    assert_eq!(until("control_response")["response"]["subtype"], json!("success"));
    assert_eq!(until("task_updated")["patch"], json!({"status": "killed"}));
    let told = until("task_notification");
    assert_eq!((&told["task_id"], &told["status"]), (&json!("b1"), &json!("stopped")), "{told}");
    assert!(told["output_file"].as_str().unwrap().ends_with("/tasks/b1.output"), "{told}");
    assert!(told["summary"].as_str().unwrap().contains("(the run) was stopped (by the user)"), "{told}");
    assert_eq!(until("background_tasks_changed")["tasks"], json!([]));
    say(ask("get_task_output", "b1"));
    let output = &until("control_response")["response"]["response"];
    assert!(output["output"].as_str().unwrap().starts_with("one\n"), "{output}");
    assert_eq!(output["truncated"], json!(false));
    drop(input);
    assert_eq!(end(child).code, Some(0));
}

#[test]
fn what_a_settings_file_loses_or_forbids_is_said() {
    let settings = r#"{
        // As people write them.
        "permissions": {
            "allow": ["Bash(touch:*)", 7, "Bash(ls"],
            "disableBypassPermissionsMode": "disable",
        },
        "sandbox": {"enabled": true},
        "hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "Is it done?"}]}]},
    }"#;
    let program = Program::new().home_file(".claude/settings.json", settings);
    let script = program.script("script.yaml", WRITE);
    let done = program.run(&["-p", "go", "--offline-script", &script]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Done.\n"), "{done:#?}");
    for said in [
        "`permissions.allow[1]` is ignored: it must be a string",
        "permission rule \"Bash(ls\": the closing parenthesis is missing; write Tool(specifier), like Bash(git diff:*); the rule is ignored",
        "`hooks.Stop[0].hooks[0]` is ignored: type \"prompt\" is not supported",
    ] {
        assert_eq!(done.err.matches(said).count(), 1, "{said}: {}", done.err);
    }
    let broken = r#"{"permissions": {"allow": ["Bash(touch:*)"], "deny": ["Bash(ls"]}}"#;
    let asked = Program::new().home_file(".claude/settings.json", broken);
    let asked = asked.run(&["-p", "go", "--offline-script", &script]);
    assert_eq!(
        (asked.code, asked.err.contains("until it is fixed, anything it might have denied asks")),
        (Some(3), true)
    );
    let program = program.env("COCODE_SANDBOXED", "1");
    let refused = program.run(&["-p", "go", "--offline-script", &script, "--permission-mode", "bypassPermissions"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{refused:#?}");
    assert!(
        refused.err.contains("bypassPermissions is turned off by `permissions.disable_bypass` (user settings.json"),
        "{}",
        refused.err
    );
}

#[test]
fn what_is_piped_is_never_a_command() {
    let check = |typed: Option<&str>, piped: &str, code: i32, want: &str| {
        let program = Program::new().stdin(piped).file("a.txt", "the file's own text");
        let last = serde_json::to_string(piped.trim()).unwrap();
        let yaml = format!("- expect: {{contains: {last}, lacks: \"the file's own text\"}}\n  reply: [text: Read.]\n");
        let script = program.script("script.yaml", &yaml);
        let args: Vec<&str> = ["-p"].into_iter().chain(typed).chain(["--offline-script", &script]).collect();
        let done = program.run(&args);
        let said = if code == 0 { &done.out } else { &done.err };
        assert_eq!((done.code, said.contains(want)), (Some(code), true), "{typed:?} < {piped:?}: {done:#?}");
    };
    for piped in ["/commit", "/compact", "/nonsense", "/help\n", "!touch made", "# remember this", "@a.txt", "  /exit"]
    {
        check(None, piped, 0, "Read.");
        check(Some("explain this"), piped, 0, "Read.");
    }
    check(Some("/help"), "words", 2, "/help does not read standard input");
    check(Some("/nonsense"), "words", 2, "unknown command /nonsense");
    // What is typed is a command all the same.
    let program = Program::new();
    let done = program.run(&["-p", "/help", "--offline"]);
    assert!(done.code == Some(0) && done.out.contains("/compact"), "{done:#?}");
}

#[cfg(debug_assertions)]
#[test]
fn an_engine_that_panics_is_a_failure_with_a_message() {
    for format in ["text", "json", "stream-json"] {
        let done = run("- reply: [panic: out of luck]\n", &["--output-format", format]);
        assert_eq!((done.code, done.err.matches("out of luck").count()), (Some(1), 1), "{done:#?}");
        if format != "text" {
            let result = done.lines().pop().unwrap();
            assert_eq!(result["is_error"], true, "{result:#}");
            assert!(result["result"].as_str().unwrap().contains("out of luck"), "{result:#}");
        }
    }
}

#[test]
fn signals_end_a_run_and_its_commands() {
    for (signal, code) in [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)] {
        let program = Program::new();
        let script =
            program.script("script.yaml", "- reply: [text: Now., tool: {name: Bash, input: {command: sleep 7000}}]\n");
        let flags = ["--allowed-tools", "Bash", "--output-format", "stream-json"];
        let args = [&["-p", "go", "--offline-script", &script], &flags[..]].concat();
        let mut child = program.command(Program::binary(), &args).spawn().unwrap();
        let mut seen = String::new();
        let out = child.stdout.as_mut().unwrap();
        let mut byte = [0];
        // The reply is out, so the call that it asks for is about to run.
        while !seen.contains("\"Now.\"") {
            out.read_exact(&mut byte).unwrap();
            seen.push(char::from(byte[0]));
        }
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let done = end(child);
        assert_eq!(done.code, Some(code), "{done:#?}");
        assert!(done.out.contains("\"type\":\"result\""), "{done:#?}");
    }
}

#[test]
fn an_interrupted_answer_is_the_result_as_far_as_it_came() {
    let program = Program::new();
    let script = program.script("script.yaml", "- reply: [text: Half of, delay_ms: 600000, text: it.]\n");
    let child = program
        .command(Program::binary(), &["-p", "go", "--output-format", "json", "--offline-script", &script])
        .spawn();
    let child = child.unwrap();
    // Nothing is told before the end, but the log has every part of the answer.
    let last = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !program.logs().iter().any(|log| std::fs::read_to_string(log).is_ok_and(|text| text.contains("Half of")))
        && std::time::Instant::now() < last
    {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let done = end(child);
    assert_eq!(done.code, Some(130), "{done:#?}");
    let result = &done.lines()[0];
    assert_eq!((result["result"].as_str(), result["is_error"].as_bool()), (Some("Half of"), Some(true)), "{result:#}");
}

#[test]
fn one_json_object_and_a_line_for_each_step() {
    let done = run(WRITE, &["--output-format", "json"]);
    let lines = done.lines();
    assert_eq!(lines.len(), 1, "{done:#?}");
    let denied = json!([{"tool_name": "Bash", "tool_use_id": "call_1", "tool_input": {"command": "touch made"}}]);
    let result = &lines[0];
    let told =
        ["type", "subtype", "is_error", "num_turns", "result", "permission_denials"].map(|key| result[key].clone());
    assert_eq!(told, [json!("result"), json!("success"), json!(false), json!(2), json!("Done."), denied]);
    let done = run(WRITE, &["--output-format", "stream-json", "--allowed-tools", "Bash"]);
    let lines = done.lines();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "assistant", "user", "assistant", "result"]);
    assert_eq!(lines[0]["subtype"], "init");
    assert!(["kernel", "off"].contains(&lines[0]["sandbox"]["level"].as_str().unwrap()), "{}", lines[0]);
    let id = lines[0]["session_id"].as_str().unwrap();
    assert!(lines.iter().all(|line| line["session_id"] == id), "{lines:#?}");
    assert_eq!(lines[2]["message"]["content"][0]["type"], "tool_use");
    assert_eq!(lines[1]["message"]["id"], lines[2]["message"]["id"]);
    assert_eq!(lines[3]["message"]["content"][0]["tool_use_id"], "call_1");
}

/// Nothing is run without a sandbox where it is required, and both lines say what is missing.
#[test]
fn a_sandbox_that_is_missing_is_told() {
    for (settings, denied) in
        [("[sandbox]\nenabled = false\n", false), ("[sandbox]\nenabled = false\nrequired = true\n", true)]
    {
        let program = Program::new().home_file(".config/cocode/config.toml", settings);
        let script = program.script("script.yaml", WRITE);
        let args =
            ["-p", "go", "--offline-script", &script, "--allowed-tools", "Bash", "--output-format", "stream-json"];
        let done = program.run(&args);
        let lines = done.lines();
        let told = json!({ "level": "off", "reason": "the sandbox is turned off: set sandbox.enabled to true" });
        assert_eq!(lines[0]["sandbox"], told, "{done:#?}");
        assert_eq!(program.project().join("made").exists(), !denied, "{done:#?}");
        assert_eq!(done.out.contains("`cocode doctor` says what is missing"), denied, "{done:#?}");
    }
}

#[test]
fn what_a_sub_agent_says_is_tied_to_its_call() {
    let script = "- reply: [tool: {name: Task, input: {description: d, prompt: p, subagent_type: Explore}}]\n\
                  - reply: [text: Done.]\n\
                  - for: agent:Explore\n  reply: [tool: {name: LS, input: {path: .}}]\n\
                  - for: agent:Explore\n  reply: [text: Seen.]\n";
    let lines = run(script, &["--output-format", "stream-json"]).lines();
    let told: Vec<String> = lines
        .iter()
        .map(|line| {
            let part = &line["message"]["content"][0];
            let id = part["id"].as_str().or_else(|| part["tool_use_id"].as_str()).unwrap_or("-");
            format!("{} {id} below {}", line["type"].as_str().unwrap(), line["parent_tool_use_id"])
        })
        .collect();
    let want = [
        "system - below null",
        "assistant call_1 below null",
        "assistant a1_call_1 below \"call_1\"",
        "user a1_call_1 below \"call_1\"",
        "assistant - below \"call_1\"",
        "user call_1 below null",
        "assistant - below null",
        "result - below null",
    ];
    assert_eq!(told, want);
}

#[test]
fn prompts_come_from_standard_input_too() {
    let program = Program::new();
    let script = program.script("script.yaml", "- expect: {contains: \"from a pipe\"}\n  reply: [text: Piped.]\n");
    let program = program.stdin("from a pipe\n");
    assert_eq!(program.run(&["-p", "--offline-script", &script]).out, "Piped.\n");
    assert_eq!(program.run(&["-p", "see", "--offline-script", &script]).out, "Piped.\n");
    let two = "- expect: {contains: \"number one\"}\n  reply: [text: First.]\n\
               - expect: {contains: \"number two\"}\n  reply: [text: Second.]\n";
    let script = program.script("two.yaml", two);
    let line = |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}}).to_string();
    let program = program.stdin(&format!("{}\n{}\n", line("number one"), line("number two")));
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let done = program.run(&[&["-p", "--offline-script", &script], &flags[..]].concat());
    let results: Vec<Value> =
        done.lines().into_iter().filter(|line| line["type"] == "result").map(|line| line["result"].clone()).collect();
    assert_eq!((done.code, results), (Some(0), vec![json!("First."), json!("Second.")]), "{}", done.err);
}

#[test]
fn sessions_go_on_and_fork() {
    let program = Program::new();
    let script = program.script("script.yaml", "- repeat: 9\n  reply: [text: Fine.]\n");
    let ask = |flags: &[&str]| {
        let flags =
            [&["-p", "a special prompt", "--offline-script", &script, "--output-format", "json"], flags].concat();
        let done = program.run(&flags);
        assert_eq!(done.code, Some(0), "{flags:?}: {}", done.err);
        done.lines()[0]["session_id"].as_str().unwrap().to_owned()
    };
    let first = ask(&[]);
    assert_eq!(ask(&["--continue"]), first);
    assert_eq!(ask(&["--resume", &first]), first);
    assert_eq!(ask(&["--resume", "special"]), first);
    let fork = ask(&["--continue", "--fork-session"]);
    assert_ne!(fork, first);
    assert_eq!(program.logs().len(), 2);
    let cost = program.run(&["-p", "/cost", "--continue"]);
    assert_eq!((cost.code, cost.out.starts_with("| Model")), (Some(0), true), "{cost:#?}");
    let wrong = program.run(&["-p", "/csot"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""), "{wrong:#?}");
    assert!(wrong.err.contains("did you mean /cost?"), "{}", wrong.err);
    // A command that comes while the folder's trust is still a question waits for the agent.
    let program = program.file(".claude/settings.json", r#"{"permissions":{"allow":["Bash(touch:*)"]}}"#);
    let cost = program.run(&["-p", "/cost", "--continue"]);
    assert_eq!((cost.code, cost.out.starts_with("| Model")), (Some(0), true), "{cost:#?}");
    assert!(cost.err.contains("is not trusted") && cost.err.contains("--trust"), "{}", cost.err);
    let none = Program::new().run(&["-p", "x", "--continue", "--offline-script", &script]);
    assert!(none.code == Some(1) && none.err.contains("no earlier session"), "{none:#?}");
}

#[test]
fn prompts_and_schemas_reach_the_model_and_keys_stay_here() {
    let answer = json!({"count": 3});
    let api = FakeApi::start([
        Reply::turn().call("Bash", json!({"command": "env"})),
        Reply::turn().call("StructuredOutput", answer.clone()),
        Reply::turn().text("Done."),
    ]);
    let mut program = Program::new();
    for (name, value) in api.env(WireName::Anthropic) {
        program = program.env(name, &value);
    }
    let schema = r#"{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}"#;
    let flags = ["--json-schema", schema, "--system-prompt", "SYSTEM-WORDS", "--append-system-prompt", "MORE-WORDS"];
    let done = program.run(
        &[&["-p", "count", "--verbose", "--output-format", "json", "--allowed-tools", "Bash"], &flags[..]].concat(),
    );
    assert_eq!((done.code, &done.lines()[0]["structured_output"]), (Some(0), &answer), "{done:#?}");
    api.assert_clean();
    let received = api.received();
    let system = received[0].body["system"].to_string();
    assert!(system.contains("SYSTEM-WORDS") && system.contains("MORE-WORDS"), "{system}");
    // Neither the commands of the agent, nor the transcript, nor the log gets to know the key.
    let key = "test-key-of-the-fake-api";
    let log = program.home().join(".local/state/cocode");
    let logged: String = std::fs::read_dir(&log)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default())
        .collect();
    assert!(!logged.is_empty() && !logged.contains(key), "{logged}");
    let transcript = std::fs::read_to_string(program.logs().pop().unwrap()).unwrap();
    assert!(transcript.contains("PATH=") && !transcript.contains(key), "{transcript}");
    assert!(!received[1].raw.contains(key), "{}", received[1].raw);
}

#[test]
fn permissions_are_checked_from_the_command_line() {
    let check = |stdin: &str, code: i32, decisions: &[&str]| {
        let done = Program::new().stdin(stdin).run(&["permissions", "check", "--json"]);
        let got: Vec<String> =
            done.lines().iter().map(|line| line["decision"].as_str().unwrap_or_default().to_owned()).collect();
        assert_eq!((done.code, got), (Some(code), decisions.iter().map(|d| (*d).to_owned()).collect()), "{}", done.err);
    };
    let ls = r#"{"tool":"Bash","input":{"command":"ls -l"}}"#;
    let slipped = r#"{"tool":"Bash","command":"git diff; rm -rf x","rules":{"allow":["Bash(git diff:*)"]}}"#;
    let denied = r#"{"tool":"Bash","command":"rm x","rules":{"deny":["Bash(rm:*)"]}}"#;
    check(&format!("{ls}\n\n{slipped}\n{denied}\n"), 0, &["allow", "ask", "deny"]);
    check(&format!("no json\n{ls}\n"), 2, &["allow"]);
    assert_eq!(Program::new().run(&["permissions", "check"]).code, Some(2));
}

#[test]
fn an_undo_that_refuses_a_file_is_a_failure() {
    let program = Program::new().file("a.txt", "one\n");
    let script = "- reply: [tool: {name: Read, input: {file_path: a.txt}}]\n\
                  - reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: ONE}}]\n\
                  - reply: [text: Done.]\n";
    let script = program.script("edit.yaml", script);
    program.run(&["-p", "go", "--permission-mode", "acceptEdits", "--offline-script", &script]);
    for (text, code, want) in
        [("mine\n", 1, "Nothing was undone from turn “go”\nleft alone: "), ("ONE\n", 0, "a.txt from turn “go”")]
    {
        std::fs::write(program.project().join("a.txt"), text).unwrap();
        let done = program.run(&["--continue", "-p", "/undo"]);
        assert_eq!((done.code, done.out.contains(want) || done.err.contains(want)), (Some(code), true), "{done:?}");
    }
}

#[test]
fn a_gateway_set_up_for_claude_code_is_asked_as_it_wants() {
    let refused = r#"{"type":"error","error":{"type":"authentication_error","message":"expired"}}"#;
    let keys = |api: &FakeApi| -> Vec<String> {
        let header = |request: &Received, name: &str| {
            request.headers.get(name).map_or("-".to_owned(), |value| value.to_str().unwrap().to_owned())
        };
        let line = |request: &Received| {
            let names = ["x-api-key", "authorization", "x-team"].map(|name| header(request, name));
            format!("{} {}", request.body["model"].as_str().unwrap(), names.join(" "))
        };
        api.received().iter().map(line).collect()
    };
    let api = FakeApi::start([Reply::turn().text("Hi.")]);
    let settings = json!({"env": {
        "ANTHROPIC_BASE_URL": api.base_url(WireName::Anthropic),
        "ANTHROPIC_AUTH_TOKEN": "token",
        "ANTHROPIC_CUSTOM_HEADERS": "X-Team: tools",
        "ANTHROPIC_MODEL": "sonnet",
        "ANTHROPIC_DEFAULT_SONNET_MODEL": "gate-1",
    }});
    let done = Program::new().home_file(".claude/settings.json", &settings.to_string()).run(&["-p", "hi"]);
    assert_eq!((done.out.as_str(), done.code), ("Hi.\n", Some(0)), "{done:#?}");
    assert_eq!(keys(&api), ["gate-1 - Bearer token tools"]);

    for (model, asked) in [("sonnet[1m]", "claude-sonnet-5"), ("opusplan", "claude-opus-5"), ("own[1m]", "own")] {
        let api = FakeApi::start([Reply::turn().text("Hi.")]);
        let settings = json!({ "model": model, "env": { "ANTHROPIC_BASE_URL": api.base_url(WireName::Anthropic) } });
        let program = Program::new().home_file(".claude/settings.json", &settings.to_string());
        let done = program.env("ANTHROPIC_AUTH_TOKEN", "token").run(&["-p", "hi"]);
        assert_eq!((done.out.as_str(), done.code), ("Hi.\n", Some(0)), "{done:#?}");
        assert_eq!(keys(&api), [format!("{asked} - Bearer token -")]);
    }

    // A project's own gateway sees no key of the user's.
    let api = FakeApi::start([Reply::turn().text("Hi.")]);
    let settings = json!({
        "apiKeyHelper": "echo key-${ANTHROPIC_API_KEY-none}",
        "env": {"ANTHROPIC_BASE_URL": api.base_url(WireName::Anthropic)},
    });
    let program =
        Program::new().env("ANTHROPIC_API_KEY", "sk-user").file(".claude/settings.json", &settings.to_string());
    let done = program.run(&["-p", "hi", "--trust"]);
    assert_eq!((done.out.as_str(), done.code), ("Hi.\n", Some(0)), "{done:#?}");
    assert_eq!(keys(&api), ["claude-sonnet-5 key-none Bearer key-none -"]);

    // The key that the command prints expires, and is asked for again.
    let api = FakeApi::start([Reply::raw(401, "application/json", refused), Reply::turn().text("Hi.")]);
    let settings = json!({
        "apiKeyHelper": "echo x >> \"$HOME/count\"; echo key-$(wc -l < \"$HOME/count\")",
        "env": {"ANTHROPIC_BASE_URL": api.base_url(WireName::Anthropic)},
    });
    let done = Program::new().home_file(".claude/settings.json", &settings.to_string()).run(&["-p", "hi"]);
    assert_eq!((done.out.as_str(), done.code), ("Hi.\n", Some(0)), "{done:#?}");
    assert_eq!(keys(&api), ["claude-sonnet-5 key-1 Bearer key-1 -", "claude-sonnet-5 key-2 Bearer key-2 -"]);
}

#[test]
fn without_a_key_a_script_is_told_who_answers() {
    let offline =
        |program: Program, args: &[&str]| program.run(&[&["-p", "hi", "--output-format", "json"], args].concat());
    let done = offline(Program::new(), &[]);
    assert!(done.err.contains("No key is set") && done.err.contains("--offline"), "{done:#?}");
    assert_eq!((done.lines()[0]["model"].as_str(), done.code), (Some("offline/offline"), Some(0)));
    assert_eq!(offline(Program::new(), &["--offline"]).err, "");
    // Somebody who set up a provider does not want another in its place.
    for (name, value) in [("ANTHROPIC_BASE_URL", "https://gate.invalid"), ("ANTHROPIC_MODEL", "opus")] {
        let done = offline(Program::new().env(name, value), &[]);
        assert_eq!(done.code, Some(1), "{name}: {done:#?}");
        assert!(done.err.contains("ANTHROPIC_API_KEY"), "{name}: {}", done.err);
    }
    // Nor does a folder that nobody trusts yet.
    let gateway = r#"{"env": {"ANTHROPIC_BASE_URL": "https://gate.invalid"}, "apiKeyHelper": "echo key"}"#;
    let done = offline(Program::new().file(".claude/settings.json", gateway), &[]);
    assert_eq!(done.code, Some(1), "{done:#?}");
    assert!(done.err.contains("--trust") && done.err.contains("gate.invalid"), "{}", done.err);
    let done = offline(Program::new().file(".claude/settings.json", gateway), &["--offline"]);
    assert_eq!(done.code, Some(0), "{done:#?}");
}

#[test]
fn a_provider_may_have_the_name_of_a_local_server() {
    let api = FakeApi::start([Reply::turn().text("Hi.")]);
    let url = api.base_url(WireName::OpenaiChat);
    let config = format!("model = 'local/some'\n[providers.local]\nwire = 'openai-chat'\nbase_url = '{url}'\n");
    let done = Program::new().home_file(".config/cocode/config.toml", &config).run(&["-p", "hi"]);
    assert_eq!((done.out.as_str(), done.code), ("Hi.\n", Some(0)), "{done:#?}");
}

/// Text of a request without its tools, and these by themselves.
fn apart(received: &Received) -> (String, Vec<Value>) {
    let start = received.raw.find("\"tools\":").expect("tools") + "\"tools\":".len();
    let mut tools = serde_json::Deserializer::from_str(&received.raw[start..]).into_iter::<Vec<Value>>();
    let mut list = tools.next().unwrap().unwrap();
    let rest = format!("{}{}", &received.raw[..start], &received.raw[start + tools.byte_offset()..]);
    if let Some(declared) = list[0].get("functionDeclarations").and_then(Value::as_array) {
        list = declared.clone();
    }
    // A breakpoint of the cache wanders.
    list.iter_mut().filter_map(Value::as_object_mut).for_each(|tool| drop(tool.remove("cache_control")));
    (rest.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", ""), list)
}

#[test]
fn a_tool_that_comes_or_goes_leaves_what_was_sent_as_it_was() {
    for (wire, model) in MODELS {
        let api = FakeApi::start([
            Reply::turn().text("One."),
            Reply::turn().call("StructuredOutput", json!({ "count": 2 })),
            Reply::turn().text("Two."),
            Reply::turn().text("Three."),
        ]);
        api.allow_other_prefix();
        let (name, url) = (serde_json::to_value(wire).unwrap(), api.base_url(wire));
        let config = format!("model = 'fake/{model}'\n[providers.fake]\nwire = {name}\nbase_url = '{url}'\n");
        let program = Program::new().home_file(".config/cocode/config.toml", &config);
        let run = |args: &[&str]| {
            let done = program.run(args);
            api.assert_clean();
            assert_eq!(done.code, Some(0), "{wire:?}: {}{}", done.out, done.err);
        };
        run(&["-p", "one"]);
        run(&["-c", "-p", "two", "--json-schema", r#"{"type":"object","properties":{"count":{"type":"integer"}}}"#]);
        run(&["-c", "-p", "three"]);
        let sent: Vec<_> = api.received().iter().map(apart).collect();
        for pair in sent.windows(2) {
            let (before, after) = (&pair[0].0, &pair[1].0);
            let open = before.trim_end_matches(['}', ']', '"']);
            let same = open.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
            assert_eq!(same, open.len(), "{wire:?}: {}\n{}", &open[same..], &after[same..]);
        }
        let [few, more, again, fewer] = [0, 1, 2, 3].map(|at| &sent[at].1);
        assert_eq!((few, more, few.len() + 1), (fewer, again, more.len()), "{wire:?}");
        assert_eq!(few[..], more[..few.len()], "{wire:?}");
    }
}
