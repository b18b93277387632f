//! Hooks end to end: where they come from, when they run, and what the agent does with what they say.

use cocode::permission::Mode;
use cocode::protocol::report::Report;
use cocode::protocol::{Answer, Event, Op};
use cocode::report;
use serde_json::{Value, json};

use super::support::harness::{Harness, Ran};
use super::support::program::Program;
#[cfg(unix)]
use super::support::screen::Launch;

/// One hook of an event.
fn hook(event: &str, matcher: &str, command: &str) -> Value {
    json!({ event: [{ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] }] })
}

/// As a configuration file writes them.
fn toml_of(hooks: &Value) -> String {
    toml::to_string(&json!({ "hooks": hooks })).unwrap()
}

fn hooked(event: &str, matcher: &str, command: &str) -> Harness {
    Harness::new().set(&toml_of(&hook(event, matcher, command)))
}

/// What a hook told the model.
const FROM_HOOK: &str = "attachment <system-reminder>⏎From the user's";

/// The lines of a trace that begin so.
fn lines<'a>(trace: &'a str, starts: &[&str]) -> Vec<&'a str> {
    trace.lines().filter(|line| starts.iter().any(|start| line.starts_with(start))).collect()
}

fn say(decision: &str, rest: &str) -> String {
    format!(
        r#"echo '{{"hookSpecificOutput": {{"hookEventName": "PreToolUse", "permissionDecision": "{decision}"{rest}}}}}'"#
    )
}

const TOUCH: &str = "
- reply: [tool: {name: Bash, input: {command: touch made.txt}}]
- reply: [text: Done.]
";

async fn touch(harness: Harness) -> (Ran, bool) {
    let ran = harness.script(TOUCH).prompt("go").run().await;
    let made = ran.project().join("made.txt").exists();
    (ran, made)
}

#[tokio::test]
async fn pre_tool_use_denies_asks_and_allows() {
    async fn check(command: &str, mode: Mode, rules: &str, answer: Option<Answer>, want: (&[&str], bool)) {
        let mut harness = hooked("PreToolUse", "Bash", command).mode(mode).set(rules);
        if let Some(answer) = answer {
            harness = harness.answer(answer);
        }
        let (ran, made) = touch(harness).await;
        let trace = ran.trace();
        assert_eq!(
            (lines(&trace, &["hook", "ask", "toolresult Denied"]), made),
            (want.0.to_vec(), want.1),
            "{command}\n{trace}"
        );
    }
    let denied = "toolresult Denied: Denied by the user's PreToolUse hook: not today";
    check("echo not today >&2; exit 2", Mode::Bypass, "", None, (&["hook PreToolUse:Bash blocked", denied], false))
        .await;
    check(
        &say("deny", r#", "permissionDecisionReason": "not today""#),
        Mode::Bypass,
        "",
        None,
        (&["hook PreToolUse:Bash blocked", denied], false),
    )
    .await;
    check(&say("allow", ""), Mode::Default, "", None, (&["hook PreToolUse:Bash done"], true)).await;
    let asked = "ask Bash touch made.txt []";
    check(&say("ask", ""), Mode::Bypass, "", Some(Answer::Yes), (&["hook PreToolUse:Bash done", asked], true)).await;
    // What an allow does not lift: deny rules, ask rules, and modes.
    let ruled = "toolresult Denied: Denied: deny rule Bash(touch:*) (command line).";
    check(
        &say("allow", ""),
        Mode::Default,
        "permissions.deny = ['Bash(touch:*)']",
        None,
        (&["hook PreToolUse:Bash done", ruled], false),
    )
    .await;
    check(
        &say("allow", ""),
        Mode::Default,
        "permissions.ask = ['Bash(touch:*)']",
        Some(Answer::Yes),
        (&["hook PreToolUse:Bash done", asked], true),
    )
    .await;
    check(
        &say("ask", ""),
        Mode::DontAsk,
        "permissions.allow = ['Bash(touch:*)']",
        None,
        (&["hook PreToolUse:Bash done", "toolresult Denied: Denied: a PreToolUse hook asks you to review it."], false),
    )
    .await;
    // A hook that breaks is reported, and holds nobody up.
    check(
        "echo oops >&2; exit 1",
        Mode::Bypass,
        "",
        None,
        (&["hook PreToolUse:Bash failed · PreToolUse:Bash hook `echo oops >&2; exit 1`: exit code 1: oops"], true),
    )
    .await;
    // Of another tool.
    let (ran, made) = touch(hooked("PreToolUse", "Edit|Write", "exit 2").mode(Mode::Bypass)).await;
    assert!(made && !ran.trace().contains("hook"), "{}", ran.trace());
}

#[tokio::test]
async fn a_hook_with_a_condition_runs_for_what_it_is_about() {
    async fn check(event: &str, condition: &str, command: &str, want: bool) {
        let hook = json!({ "type": "command", "command": "echo no >&2; exit 2", "if": condition });
        let hooks = toml_of(&json!({ event: [{ "matcher": "Bash", "hooks": [hook] }] }));
        let script =
            format!("- reply: [tool: {{name: Bash, input: {{command: {command:?}}}}}]\n- reply: [text: Done.]\n");
        let ran = Harness::new().set(&hooks).mode(Mode::Bypass).script(&script).prompt("go").run().await;
        let trace = ran.trace();
        assert_eq!(trace.contains(&format!("hook {event}:Bash")), want, "{condition} of {command}\n{trace}");
    }
    for event in ["PreToolUse", "PostToolUse"] {
        check(event, "Bash(touch:*)", "touch a", true).await;
        check(event, "Bash(rm:*)", "touch a", false).await;
        check(event, "Bash", "touch a", true).await;
        check(event, "Edit", "touch a", false).await;
    }
    check("PreToolUse", "Bash(touch:*)", "echo x && touch a", true).await;
    check("PreToolUse", "Bash(touch:*)", "echo $(touch a)", true).await;
    // What nobody can read, rule or line, does not justify it to skip a guard.
    check("PreToolUse", "Bash(touch", "ls", true).await;
    check("PreToolUse", "Bash(touch:*)", "$(cat line)", true).await;
}

#[tokio::test]
async fn an_allow_lifts_neither_plan_mode_nor_protected_files() {
    let script = "
- reply: [tool: {name: Write, input: {file_path: made.txt, content: x}}]
- reply: [tool: {name: Write, input: {file_path: .git/hooks/pre-commit, content: x}}]
- reply: [text: Done.]
";
    for (mode, asks) in [(Mode::Plan, 0), (Mode::Default, 1)] {
        let ran = hooked("PreToolUse", "", &say("allow", "")).mode(mode).script(script).prompt("go").run().await;
        let trace = ran.trace();
        assert_eq!(lines(&trace, &["ask Write"]).len(), asks, "{trace}");
        assert_eq!(ran.project().join("made.txt").exists(), mode == Mode::Default, "{trace}");
        assert!(!ran.project().join(".git/hooks/pre-commit").exists(), "{trace}");
    }
}

#[tokio::test]
async fn rewritten_input_is_checked_and_decided_anew() {
    async fn check(input: &str, mode: Mode, rules: &str, want: &[&str]) {
        let command = say("allow", &format!(r#", "updatedInput": {input}"#));
        let (ran, _) = touch(hooked("PreToolUse", "Bash", &command).mode(mode).set(rules)).await;
        let trace = ran.trace();
        assert_eq!(lines(&trace, &["call", "toolresult", "ask"]), want, "{trace}");
    }
    check(r#"{"command": "echo other"}"#, Mode::Default, "", &["call Bash echo other", "toolresult Ok: other⏎"]).await;
    check(
        r#"{"command": "echo other"}"#,
        Mode::Bypass,
        "permissions.deny = ['Bash(echo:*)']",
        &["toolresult Denied: Denied: deny rule Bash(echo:*) (command line)."],
    )
    .await;
    check(
        r#"{"comand": "echo other"}"#,
        Mode::Bypass,
        "",
        &["toolresult Error: Not run: a hook rewrote the arguments, and they are not valid: Parameter `command` is missing; it must be a string."],
    )
    .await;
}

#[tokio::test]
async fn permission_requests_are_answered_by_hooks() {
    async fn check(decision: &str, rules: &str, want: (&[&str], bool)) {
        let command = format!(
            r#"echo '{{"hookSpecificOutput": {{"hookEventName": "PermissionRequest", "decision": {decision}}}}}'"#
        );
        let (ran, made) = touch(hooked("PermissionRequest", "Bash", &command).set(rules)).await;
        let trace = ran.trace();
        assert_eq!(
            (lines(&trace, &["ask", "toolresult Denied", "turn ended"]), made),
            (want.0.to_vec(), want.1),
            "{trace}"
        );
    }
    check(r#"{"behavior": "allow"}"#, "", (&["turn ended Done"], true)).await;
    check(r#"{"behavior": "allow"}"#, "permissions.ask = ['Bash']", (&["turn ended Done"], true)).await;
    check(
        r#"{"behavior": "deny", "message": "no files"}"#,
        "",
        (&["toolresult Denied: Denied by the user's PermissionRequest hook: no files", "turn ended Done"], false),
    )
    .await;
    check(
        r#"{"behavior": "deny", "message": "enough", "interrupt": true}"#,
        "",
        (
            &[
                "toolresult Denied: One of the user's hooks stopped the turn. Wait for their next message.",
                "turn ended Stopped",
            ],
            false,
        ),
    )
    .await;
    check(
        r#"{"behavior": "maybe"}"#,
        "",
        (
            &[
                "ask Bash touch made.txt [\"Bash(touch made.txt)\"]",
                "toolresult Denied: The user denied this call and stopped the turn. Wait for their next message.",
                "turn ended Refused",
            ],
            false,
        ),
    )
    .await;
    // Where nothing is asked, nothing is answered.
    let (ran, made) = touch(hooked("PermissionRequest", "", "exit 2").mode(Mode::Bypass)).await;
    assert!(made && !ran.trace().contains("hook"), "{}", ran.trace());
}

#[tokio::test]
async fn a_hook_that_wants_a_person_to_look_beats_one_that_says_yes() {
    let yes = r#"echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow", "updatedInput": {"command": "touch made.txt "}}}}'"#;
    for (said, asked) in [(say("ask", ""), true), (say("allow", ""), false), ("true".into(), false)] {
        let hooks = json!({
            "PreToolUse": hook("PreToolUse", "Bash", &said)["PreToolUse"],
            "PermissionRequest": hook("PermissionRequest", "Bash", yes)["PermissionRequest"],
        });
        let (ran, made) = touch(Harness::new().set(&toml_of(&hooks))).await;
        assert_eq!((lines(&ran.trace(), &["ask"]).len() == 1, made), (asked, !asked), "{said}: {}", ran.trace());
    }
}

#[tokio::test]
async fn an_async_hook_is_not_waited_for_and_its_words_come_later() {
    // It ends only once the second call has run.
    let command = r#"until [ -e made.txt ]; do sleep 0.01; done; touch told
        echo '{"decision": "block", "hookSpecificOutput": {"additionalContext": "lint: fine"}}'"#;
    let script = "
- reply: [tool: {name: Bash, input: {command: 'true'}}]
- reply: [tool: {name: Bash, input: {command: touch made.txt}}]
- reply: [tool: {name: Bash, input: {command: 'until [ -e told ]; do sleep 0.01; done; sleep 0.2'}}]
- reply: [text: Done.]
- reply: [text: Again.]
";
    let hooks = json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [
        { "type": "command", "command": command, "async": true, "once": true },
    ] }] });
    let ran = Harness::new().set(&toml_of(&hooks)).mode(Mode::Bypass).env("COCODE_SANDBOXED", "1").script(script);
    let ran = ran.prompt("go").prompt("and now").run().await;
    let trace = ran.trace();
    let told = "attachment <system-reminder>⏎From the user's PreToolUse hook:⏎⏎lint: fine⏎";
    assert!(trace.contains(told) && !trace.contains("toolresult Denied"), "{trace}");
    // When the session ends, it may finish.
    let hooks = json!({ "Stop": [{ "hooks": [
        { "type": "command", "command": "sleep 0.3; touch late.txt", "async": true },
    ] }] });
    let ran = Harness::new().set(&toml_of(&hooks)).script("- reply: [text: Done.]").prompt("go").run().await;
    assert!(ran.project().join("late.txt").exists(), "{}", ran.trace());
}

#[tokio::test]
async fn a_hook_may_end_everything_and_has_words_for_the_user() {
    let stop = r#"echo '{"continue": false, "stopReason": "enough", "systemMessage": "look here"}'"#;
    for (event, want, made) in [
        ("UserPromptSubmit", "rejected the prompt: enough restore=Some(\"go\")", false),
        ("PreToolUse", "toolresult Denied: One of the user's hooks stopped the turn.", false),
        ("PermissionRequest", "toolresult Denied: One of the user's hooks stopped the turn.", false),
        ("PostToolUse", "notice A hook stopped the turn: enough", true),
        ("SessionStart", "notice enough", true),
    ] {
        let mode = if event == "PermissionRequest" { Mode::Default } else { Mode::Bypass };
        let harness = hooked(event, "", stop).mode(mode).env("COCODE_SANDBOXED", "1");
        let (ran, touched) = touch(harness).await;
        let trace = ran.trace();
        assert!(trace.contains(want) && touched == made, "{event}: {trace}");
        assert_eq!(trace.contains("reply Done."), event == "SessionStart", "{event}: {trace}");
        let words = ran.events.iter().find_map(|event| match event {
            Event::Hook { ran } => ran.word(),
            _ => None,
        });
        assert!(words.is_some_and(|words| words.contains("look here")), "{event}: {trace}");
    }
    // What a hook printed for itself only is not shown.
    let quiet = r#"echo '{"suppressOutput": true}'"#;
    for (command, shown) in [(quiet, false), ("echo '{}'", true)] {
        let (ran, _) = touch(hooked("PreToolUse", "", command).mode(Mode::Bypass).env("COCODE_SANDBOXED", "1")).await;
        let printed = ran.events.iter().any(|event| matches!(event, Event::Hook { ran } if !ran.stdout.is_empty()));
        assert_eq!(printed, shown, "{command}: {}", ran.trace());
    }
}

#[cfg(unix)]
#[test]
fn an_idle_user_is_told_of() {
    let program = Program::new();
    let heard = program.project().join("heard");
    assert!(std::process::Command::new("mkfifo").arg(&heard).status().unwrap().success());
    let set = format!("idle_notification_s = 0\n{}", toml_of(&hook("Notification", "idle_prompt", "cat > heard")));
    let program = program.home_file(".config/cocode/config.toml", &set);
    let script = program.script("script.yaml", "- reply: [text: Hi.]\n");
    let mut launch = Launch::new(Program::binary()).cwd(program.project()).env("HOME", program.home());
    for (name, value) in program.vars() {
        launch = launch.env(name, value.as_str());
    }
    let screen = launch.args(["--offline-script", &script]).start();
    screen.wait_text("? keys");
    screen.send("hello\r");
    screen.wait_text("Hi.");
    let (sender, told) = std::sync::mpsc::channel();
    // The pipe is read until the hook has ended.
    std::thread::spawn(move || sender.send(std::fs::read_to_string(heard)));
    let told = told.recv_timeout(std::time::Duration::from_secs(60)).expect("the hook ran").unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (told["notification_type"].as_str(), told["message"].as_str()),
        (Some("idle_prompt"), Some("cocode is waiting for your input"))
    );
}

#[tokio::test]
async fn results_are_seen_and_what_hooks_say_of_them_is_told_the_model() {
    let script = r#"
- reply: [tool: {name: Bash, input: {command: echo one}}]
- reply: [tool: {name: Bash, input: {command: "false"}}]
- reply: [text: Done.]
"#;
    let seen = r#"cat >> seen.jsonl; echo look again >&2; exit 2"#;
    let hooks = json!({
        "PostToolUse": hook("PostToolUse", "Bash", seen)["PostToolUse"],
        "PostToolUseFailure": hook("PostToolUseFailure", "", seen)["PostToolUseFailure"],
    });
    let ran = Harness::new().set(&toml_of(&hooks)).mode(Mode::Bypass).script(script).prompt("go").run().await;
    let trace = ran.trace();
    let told: Vec<&str> = lines(&trace, &[FROM_HOOK]);
    assert_eq!(told.len(), 2, "{trace}");
    assert!(told[0].contains("From the user's PostToolUse hook") && told[0].contains("look again"), "{trace}");
    assert!(told[1].contains("From the user's PostToolUseFailure hook"), "{trace}");
    let seen: Vec<Value> = ran.read("seen.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(seen[0]["tool_response"]["stdout"], "one\n");
    assert_eq!((&seen[0]["hook_event_name"], &seen[0]["tool_name"]), (&json!("PostToolUse"), &json!("Bash")));
    assert_eq!(seen[0]["permission_mode"], "bypassPermissions");
    assert_eq!(seen[1]["error"], "[Exit code 1]");
    assert!(seen.iter().all(|seen| seen["transcript_path"].as_str().unwrap().ends_with("transcript.jsonl")));
}

#[tokio::test]
async fn a_batch_a_folder_and_a_failure_are_told() {
    let script = r#"
- reply: [tool: {name: Bash, input: {command: echo one}}, tool: {name: Bash, input: {command: "mkdir sub; cd sub"}}]
- reply: [error: {kind: auth}]
"#;
    let seen = |event: &str| hook(event, "", "cat >> $CLAUDE_PROJECT_DIR/$(basename $PWD).jsonl")[event].clone();
    let told = |event: &str| hook(event, "", &format!("cat > $CLAUDE_PROJECT_DIR/{event}.json"))[event].clone();
    let hooks = json!({
        "PostToolBatch": seen("PostToolBatch"), "CwdChanged": told("CwdChanged"), "StopFailure": told("StopFailure"),
    });
    let ran = Harness::new().set(&toml_of(&hooks)).mode(Mode::Bypass).script(script).prompt("go").run().await;
    let read = |name: &str| serde_json::from_str::<Value>(&ran.read(name)).unwrap();
    let batch = read("sub.jsonl");
    let calls = batch["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2, "{batch}");
    assert_eq!((&calls[0]["tool_name"], &calls[0]["tool_response"]), (&json!("Bash"), &json!("one\n")));
    assert!(calls[1]["duration_ms"].is_u64());
    let moved = read("CwdChanged.json");
    assert_eq!(moved["new_cwd"], json!(format!("{}/sub", moved["old_cwd"].as_str().unwrap())));
    let failure = read("StopFailure.json");
    assert_eq!((&failure["error"], &failure["last_assistant_message"]), (&json!("authentication_failed"), &json!("")));
    // One that objects ends the turn.
    let ran = hooked("PostToolBatch", "", "echo enough >&2; exit 2")
        .mode(Mode::Bypass)
        .script("- reply: [tool: {name: Bash, input: {command: echo one}}]\n- reply: [text: Never said.]")
        .prompt("go")
        .run()
        .await;
    let trace = ran.trace();
    assert_eq!(
        lines(&trace, &["reply Never", "notice", "turn ended"]),
        ["notice A hook stopped the turn: enough", "turn ended Stopped"],
        "{trace}"
    );
}

#[tokio::test]
async fn a_server_may_object_and_must_answer_where_the_hook_says_so() {
    async fn check(answer: &'static str, on_failure: &str, made: bool) {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", server.local_addr().unwrap());
        std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = server.accept().unwrap();
            let mut got = Vec::new();
            while !got.ends_with(b"}\n") {
                let mut part = [0; 4096];
                let read = stream.read(&mut part).unwrap();
                got.extend_from_slice(&part[..read]);
            }
            write!(stream, "HTTP/1.1 {answer}").unwrap();
        });
        let hooks = json!({ "PreToolUse": [{ "hooks": [{ "type": "http", "url": url, "on_failure": on_failure }] }] });
        let (ran, was_made) = touch(Harness::new().mode(Mode::Bypass).set(&toml_of(&hooks))).await;
        assert_eq!(was_made, made, "{answer} {on_failure} {}", ran.trace());
    }
    const DENY: &str = "200 OK\r\nconnection: close\r\n\r\n{\"decision\": \"block\", \"reason\": \"no\"}";
    const BROKEN: &str = "500 Internal Server Error\r\nconnection: close\r\n\r\n";
    check("204 No Content\r\nconnection: close\r\n\r\n", "block", true).await;
    check(DENY, "continue", false).await;
    check(BROKEN, "continue", true).await;
    check(BROKEN, "block", false).await;
}

#[tokio::test]
async fn undo_takes_back_what_a_formatter_made_of_a_change() {
    let script = "
- reply: [tool: {name: Write, input: {file_path: a.txt, content: x}}]
- reply: [text: Done.]
";
    // What somebody saved while the hook ran looks like the hook's work: other words stay.
    for (made, undone) in [("'  x;'", true), ("'my own precious sentence'", false)] {
        let hook = hooked("PostToolUse", "Write", &format!("echo {made} > a.txt"));
        let ran = hook.mode(Mode::AcceptEdits).script(script).prompt("go").run().await;
        assert_eq!(ran.read("a.txt"), format!("{}\n", made.trim_matches('\'')));
        let ran = Harness::after(ran).prompt("/undo").run().await;
        assert_eq!(ran.project().join("a.txt").exists(), !undone, "{}", ran.trace());
        assert_eq!(ran.trace().contains("removing it would lose that change"), !undone, "{}", ran.trace());
    }
}

/// What was read without a question, or was approved, is read, or nothing is: it becomes a link while a question is open.
#[cfg(unix)]
#[tokio::test]
async fn a_file_is_read_where_it_was_decided_about() {
    const ENV: &str = "tool: {name: Read, input: {file_path: .env}}";
    for (first, meanwhile) in [
        ("tool: {name: Read, input: {file_path: ../out/a.txt}}", "rm ../out/a.txt; ln -s key ../out/a.txt"),
        ("tool: {name: Read, input: {file_path: n.txt}}", "rm n.txt; ln -s ../out/key n.txt"),
        ("tool: {name: Read, input: {file_path: d/key}}", "mv d d2; ln -s ../out d"),
        ("tool: {name: LS, input: {path: d}}", "mv d d2; ln -s ../out d"),
        ("tool: {name: Glob, input: {path: d, pattern: '*'}}", "mv d d2; ln -s ../out d"),
        ("tool: {name: Grep, input: {path: d, pattern: '.', output_mode: content}}", "mv d d2; ln -s ../out d"),
    ] {
        let script = format!("- reply: [{first}, {ENV}]\n- reply: [text: Done.]\n");
        let harness = hooked("PermissionRequest", "Read", &format!("[ -e gone ] || {{ touch gone; {meanwhile}; }}"))
            .file("n.txt", "mine\n")
            .file("d/key", "mine\n")
            .file(".env", "A=1\n")
            .script(&script)
            .answer(Answer::Yes)
            .answer(Answer::Yes);
        let out = harness.project().parent().unwrap().join("out");
        std::fs::create_dir_all(&out).unwrap();
        for (name, text) in [("a.txt", "mine"), ("key", "PRIVATE of mine"), ("secret-name", "")] {
            std::fs::write(out.join(name), text).unwrap();
        }
        let trace = harness.prompt("go").run().await.trace();
        let told = trace.contains("in the meantime") || trace.contains("came to need approval");
        assert!(told && !trace.contains("PRIVATE") && !trace.contains("secret-name"), "{first}: {trace}");
    }
}

/// What a folder's hook runs is what was trusted, to the end of the session: changing it asks in every mode, and what
/// changed all the same does not run.
#[tokio::test]
async fn a_folders_hook_runs_what_was_trusted_and_nothing_else() {
    let settings = json!({ "hooks": hook("PostToolUse", "Read", "sh ./hook.sh") }).to_string();
    let read = |file: &str| format!("- reply: [tool: {{name: Read, input: {{file_path: {file}}}}}]\n");
    let edit = |file: &str| {
        let input = format!("{{file_path: {file}, old_string: old, new_string: new}}");
        format!("- reply: [tool: {{name: Edit, input: {input}}}]\n")
    };
    let bash = |line: &str| format!("- reply: [tool: {{name: Bash, input: {{command: \"{line}\"}}}}]\n");
    for (change, asks, ran) in [
        (edit("hook.sh"), 1, "old\nlib\n"),
        (bash("sed -i s/old/new/ hook.sh"), 1, "old\nlib\n"),
        (bash("cp n.txt lib.sh"), 1, "old\nlib\n"),
        (bash("cp n.txt other.sh"), 0, "old\nlib\nold\nlib\n"),
        // A file of the same name elsewhere is not what was trusted.
        (bash("cd sub"), 0, "old\nlib\nold\nlib\n"),
    ] {
        let done = Harness::new()
            .file(".claude/settings.json", &settings)
            .file("hook.sh", "#!/bin/sh\necho old >> ran.txt\n. ./lib.sh\n")
            .file("lib.sh", "echo lib >> ran.txt\n")
            .file("n.txt", "echo new >> ran.txt\n")
            .file("sub/n.txt", "")
            .file("sub/hook.sh", "echo new >> ran.txt\n")
            .mode(Mode::AcceptEdits)
            .script(&(read("hook.sh") + &change + &read("n.txt") + "- reply: [text: Done.]\n"))
            .answer(Answer::Yes)
            .answer(Answer::Yes)
            .prompt("go")
            .run()
            .await;
        let trace = done.trace();
        assert_eq!(lines(&trace, &["ask Edit", "ask Bash"]).len(), asks, "{change}{trace}");
        assert_eq!(done.read("ran.txt"), ran, "{change}{trace}");
        assert_eq!(trace.contains("changed since you trusted"), asks > 0, "{change}{trace}");
    }
}

/// What a yes was said to is written, or nothing is: the folder, or the file, becomes a link while the question is open.
#[cfg(unix)]
#[tokio::test]
async fn an_approved_path_is_the_path_that_is_written() {
    const READ: &str = "[tool: {name: Read, input: {file_path: sub/x.txt}}]";
    const EDIT: &str = "[tool: {name: Edit, input: {file_path: sub/x.txt, old_string: one, new_string: ONE}}]";
    const MOVE: &str = "mv sub sub2; ln -s ../out sub";
    let write = |path: &str| format!("[tool: {{name: Write, input: {{file_path: {path}, content: ours}}}}]");
    for (calls, meanwhile) in [
        ([READ.to_owned(), EDIT.to_owned()], MOVE),
        ([READ.to_owned(), write("sub/new.txt")], MOVE),
        ([READ.to_owned(), write("sub/deep/new.txt")], MOVE),
        ([READ.to_owned(), write("gone/new.txt")], "ln -s .git/hooks gone"),
        ([READ.to_owned(), write("new.txt")], "ln -s ../out/made.txt new.txt"),
        ([READ.to_owned(), EDIT.to_owned()], "rm sub/x.txt; ln -s ../../out/x.txt sub/x.txt"),
    ] {
        let script =
            calls.iter().map(|call| format!("- reply: {call}\n")).collect::<String>() + "- reply: [text: Done.]\n";
        let harness = hooked("PermissionRequest", "Edit|Write", meanwhile)
            .file("sub/x.txt", "one\n")
            .file(".git/hooks/there", "")
            .script(&script)
            .answer(Answer::Yes);
        let out = harness.project().parent().unwrap().join("out");
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join("x.txt"), "one\n").unwrap();
        let ran = harness.prompt("go").run().await;
        assert!(ran.trace().contains("in the meantime"), "{meanwhile}: {}", ran.trace());
        let names: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!((names.len(), std::fs::read_to_string(out.join("x.txt")).unwrap().as_str()), (1, "one\n"));
        assert_eq!(std::fs::read_dir(ran.project().join(".git/hooks")).unwrap().count(), 1, "{meanwhile}");
    }
}

#[tokio::test]
async fn a_prompt_that_is_erased_comes_back_and_is_in_no_log() {
    let guard = r#"grep -q secret && { echo no secrets >&2; exit 2; } || echo today is Monday"#;
    let ran = hooked("UserPromptSubmit", "", guard)
        .script("- {expect: {lacks: secret}, reply: [text: Hi.]}")
        .prompt("my secret word")
        .prompt("hello")
        .run()
        .await;
    let trace = ran.trace();
    let want = "error a UserPromptSubmit hook rejected the prompt: no secrets restore=Some(\"my secret word\")";
    assert_eq!(lines(&trace, &["error"]), [want], "{trace}");
    assert_eq!(lines(&trace, &["prompt"]), ["prompt hello"], "{trace}");
    assert!(lines(&trace, &[FROM_HOOK])[0].contains("today is Monday"), "{trace}");
    assert!(!std::fs::read_to_string(ran.log()).unwrap().contains("secret word"));
}

#[tokio::test]
async fn a_steered_prompt_is_heard_too() {
    let script = r#"
- reply: [tool: {name: Bash, input: {command: echo}}]
- {expect: {lacks: "a secret"}, reply: [text: Done.]}
"#;
    let steer = Op::Prompt {
        text: "a secret".into(),
        attachments: Vec::new(),
        delivery: cocode::protocol::Delivery::Steer,
        thinking: None,
        data: Vec::new(),
    };
    let ran = hooked("UserPromptSubmit", "", "grep -q secret && exit 2 || true")
        .script(script)
        .prompt("go")
        .at("call Bash", steer)
        .run()
        .await;
    let trace = ran.trace();
    assert!(trace.contains("restore=Some(\"a secret\")"), "{trace}");
    assert_eq!(lines(&trace, &["prompt"]), ["prompt go"], "{trace}");
}

#[tokio::test]
async fn stop_hooks_send_the_agent_on_but_not_for_ever() {
    let script = "- {repeat: 40, reply: [text: Done.]}";
    let ran =
        hooked("Stop", "", "cat >> seen.jsonl; [ -e ok.txt ] || { touch ok.txt; echo run the tests >&2; exit 2; }")
            .script(script)
            .prompt("go")
            .run()
            .await;
    let trace = ran.trace();
    assert_eq!(lines(&trace, &["reply"]).len(), 2, "{trace}");
    assert!(lines(&trace, &[FROM_HOOK])[0].contains("run the tests"), "{trace}");
    let seen = ran.read("seen.jsonl");
    let active: Vec<bool> = seen.lines().map(|line| line.contains("\"stop_hook_active\":true")).collect();
    assert_eq!(active, [false, true]);
    let ran = hooked("Stop", "", "echo never >&2; exit 2").script(script).prompt("go").run().await;
    let trace = ran.trace();
    assert_eq!(
        (lines(&trace, &["reply"]).len(), lines(&trace, &["turn ended"])),
        (9, vec!["turn ended Done"]),
        "{trace}"
    );
    let ran =
        hooked("Stop", "", r#"echo '{"decision": "block", "reason": "x", "continue": false, "stopReason": "enough"}'"#)
            .script(script)
            .prompt("go")
            .run()
            .await;
    let trace = ran.trace();
    assert_eq!(
        lines(&trace, &["reply", "notice"]),
        ["reply Done.", "notice A hook stopped the turn: enough"],
        "{trace}"
    );
}

#[tokio::test]
async fn sessions_begin_and_end_with_their_hooks() {
    let hooks = json!({
        "SessionStart": hook("SessionStart", "", "cat >> ../seen.jsonl; echo it is Monday")["SessionStart"],
        "SessionEnd": hook("SessionEnd", "", "cat >> ../seen.jsonl")["SessionEnd"],
    });
    let set = toml_of(&hooks);
    let script = "- {repeat: 5, reply: [text: Hi.]}";
    let ran = Harness::new().set(&set).script(script).prompt("hello").prompt("/clear").prompt("again").run().await;
    let told = lines(&ran.trace(), &[FROM_HOOK]).len();
    assert_eq!(told, 2, "{}", ran.trace());
    let ran = Harness::after(ran).set(&set).script(script).prompt("more").run().await;
    let seen = std::fs::read_to_string(ran.project().join("../seen.jsonl")).unwrap();
    let told: Vec<String> = seen
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|seen| {
            format!("{} {}{}", seen["hook_event_name"], seen["source"], seen["reason"])
                .replace(['"'], "")
                .replace("null", "")
        })
        .collect();
    assert_eq!(
        told,
        [
            "SessionStart startup",
            "SessionEnd clear",
            "SessionStart clear",
            "SessionEnd prompt_input_exit",
            "SessionStart resume",
            "SessionEnd prompt_input_exit"
        ]
    );
}

#[tokio::test]
async fn a_session_may_begin_with_variables() {
    let command = r#"echo "export GREETING='it is Monday' HOOK_SECRET=x" >> "$CLAUDE_ENV_FILE""#;
    let script = "
- reply: [tool: {name: Bash, input: {command: 'echo \"[$GREETING]\" $CLAUDE_ENV_FILE'}}]
- reply: [text: Done.]
";
    let harness = || Harness::new().mode(Mode::Bypass).env("COCODE_SANDBOXED", "1");
    let set = toml_of(&hook("SessionStart", "", command));
    // Another model's limits do not take them away.
    let ran = harness().set(&set).home("skills/think/SKILL.md", "---\ndescription: d\nmodel: opus\n---\nThink.");
    let ran = ran.script(&script.repeat(2)).prompt("go").prompt("/think").run().await;
    assert_eq!(lines(&ran.trace(), &["toolresult"]), ["toolresult Ok: [it is Monday]⏎"; 2], "{}", ran.trace());
    let ran = harness().script(script).prompt("go").run().await;
    assert_eq!(lines(&ran.trace(), &["toolresult"]), ["toolresult Ok: []⏎"], "{}", ran.trace());
}

#[tokio::test]
async fn once_holds_over_a_resume() {
    let set = r#"[[hooks.UserPromptSubmit]]
hooks = [{ type = "command", command = "echo x >> count", once = true }]"#;
    let script = "- {repeat: 5, reply: [text: Hi.]}";
    let ran = Harness::new().set(set).script(script).prompt("one").prompt("two").run().await;
    let ran = Harness::after(ran).set(set).script(script).prompt("three").run().await;
    assert_eq!(ran.read("count"), "x\n", "{}", ran.trace());
    let ran = Harness::after(ran).set(set).script(script).prompt("/clear").prompt("four").run().await;
    assert_eq!(ran.read("count"), "x\nx\n", "{}", ran.trace());
}

#[tokio::test]
async fn a_folders_hooks_run_only_once_it_is_trusted() {
    let settings = json!({ "hooks": hook("UserPromptSubmit", "", "echo ran > ran.txt") }).to_string();
    for (answer, ran) in [(Answer::No { feedback: None }, false), (Answer::Yes, true)] {
        let done = Harness::new()
            .file(".claude/settings.json", &settings)
            .script("- reply: [text: Hi.]")
            .answer(answer)
            .prompt("hello")
            .run()
            .await;
        let trace = done.trace();
        assert!(trace.contains("hook UserPromptSubmit: echo ran > ran.txt (.claude/settings.json)"), "{trace}");
        assert_eq!(done.project().join("ran.txt").exists(), ran, "{trace}");
    }
}

#[tokio::test]
async fn interrupting_ends_a_hook_and_keeps_the_prompt() {
    let ran = hooked("UserPromptSubmit", "", "touch began; sleep 1000")
        .script("- reply: [text: Hi.]")
        .prompt("hello")
        .at("turn started", Op::Interrupt)
        .run()
        .await;
    let trace = ran.trace();
    let want = ["error interrupted before the prompt was sent restore=Some(\"hello\")", "turn ended Interrupted"];
    assert_eq!(lines(&trace, &["error", "turn ended"]), want, "{trace}");
}

#[tokio::test]
async fn notifications_run_beside() {
    // The question is answered at once; the hook waits for what comes after it.
    let command = "until [ -e made.txt ]; do sleep 0.01; done; cat > told.json; touch told";
    let script = "
- reply: [tool: {name: Bash, input: {command: touch made.txt}}]
- reply: [tool: {name: Bash, input: {command: 'until [ -e told ]; do sleep 0.01; done'}}]
- reply: [text: Done.]
";
    let ran = hooked("Notification", "permission_prompt", command)
        .set("permissions.allow = ['Bash(until:*)', 'Bash([:*)', 'Bash(sleep:*)']")
        .script(script)
        .answer(Answer::Yes)
        .answer(Answer::Yes)
        .prompt("go")
        .run()
        .await;
    let told: Value = serde_json::from_str(&ran.read("told.json")).unwrap();
    assert_eq!(told["message"], "cocode needs your permission to use Bash", "{}", ran.trace());
}

#[tokio::test]
async fn the_list_shows_sources_and_last_results() {
    let ran = hooked("UserPromptSubmit", "", "exit 1")
        .file(".claude/settings.local.json", &json!({ "hooks": hook("PreToolUse", "Bash", "true") }).to_string())
        .script("- reply: [text: Hi.]")
        .answer(Answer::Yes)
        .prompt("hello")
        .prompt("/hooks")
        .run()
        .await;
    let list = ran.events.iter().rev().find_map(|event| match event {
        Event::Report(report @ Report::Hooks(_)) => Some(report::markdown(report)),
        _ => None,
    });
    let list = list.unwrap().replace(&*ran.project().to_string_lossy(), "$P");
    let millis = regex::Regex::new(r"after \d+ ms").unwrap();
    insta::assert_snapshot!(millis.replace_all(&list, "after N ms"), @"
    **PreToolUse**

    - `Bash`: `true` ($P/.claude/settings.local.json) — has not run

    **UserPromptSubmit**

    - `exit 1` (command line) — failed after N ms
    ");
}

#[test]
fn headless_runs_tell_what_hooks_did() {
    let program = Program::new().home_file(
        ".claude/settings.json",
        &json!({ "hooks": hook("UserPromptSubmit", "", "echo '{\"systemMessage\": \"take care\"}'; exit 0") })
            .to_string(),
    );
    let script = program.script("s.yaml", "- reply: [text: Hi.]");
    let done = program.run(&["-p", "hello", "--offline-script", &script]);
    assert_eq!((done.code, &*done.out, &*done.err), (Some(0), "Hi.\n", "take care\n"));
    let done =
        program.run(&["-p", "hello", "--offline-script", &script, "--output-format", "stream-json", "--verbose"]);
    let line = done.lines().into_iter().find(|line| line["subtype"] == "hook_response").unwrap();
    assert_eq!((&line["hook_event"], &line["hook_name"]), (&json!("UserPromptSubmit"), &json!("UserPromptSubmit")));
    assert_eq!((&line["outcome"], &line["exit_code"]), (&json!("success"), &json!(0)));
    // Also why one that wrote nothing failed.
    let failing = Program::new().home_file(
        ".claude/settings.json",
        &json!({ "hooks": hook("UserPromptSubmit", "", "kill -9 $$") }).to_string(),
    );
    let done =
        failing.run(&["-p", "hello", "--offline-script", &script, "--output-format", "stream-json", "--verbose"]);
    let line = done.lines().into_iter().find(|line| line["subtype"] == "hook_response").unwrap();
    assert_eq!((&line["outcome"], &line["output"]), (&json!("error"), &json!("killed by a signal")));
    let done = program.run(&["-p", "/hooks", "--offline-script", &script]);
    assert!(done.out.contains("**UserPromptSubmit**") && done.out.contains(".claude/settings.json"), "{}", done.out);
    let blocked = Program::new().home_file(
        ".claude/settings.json",
        &json!({ "hooks": hook("UserPromptSubmit", "", "echo no >&2; exit 2") }).to_string(),
    );
    let done = blocked.run(&["-p", "hello", "--offline-script", &script]);
    assert_eq!((done.code, &*done.err), (Some(1), "error: a UserPromptSubmit hook rejected the prompt: no\n"));
    // The rows of the table stay as they are for programs that know nothing of hooks.
    let switched = Program::new().home_file(
        ".claude/settings.json",
        &json!({ "disableAllHooks": true, "hooks": hook("UserPromptSubmit", "", "exit 2") }).to_string(),
    );
    let done = switched.run(&["-p", "hello", "--offline-script", &script]);
    assert_eq!((done.code, &*done.out), (Some(0), "Hi.\n"), "{}", done.err);
}

#[test]
fn sources_add_up_and_only_the_administrator_switches_all_off() {
    use super::config::{Agreed, User};
    const USER: &str = "~/.config/cocode/config.toml";
    let stop = |command: &str| format!("[[hooks.Stop]]\nhooks = [{{ type = 'command', command = '{command}' }}]\n");
    let json = |command: &str| json!({ "hooks": hook("Stop", "", command) }).to_string();
    let user = User::new()
        .file("/etc/policy.toml", &stop("policy"))
        .file("~/.claude/settings.json", &json("user-json"))
        .file(USER, &stop("user"))
        .file(".claude/settings.json", &json("project-json"))
        .file(".cocode/config.toml", &format!("disable_all_hooks = true\n{}", stop("project")))
        .file(".claude/settings.local.json", &json("local-json"))
        .flags("hooks.Stop = [{ hooks = [{ type = 'command', command = 'flag' }] }]");
    let shown = |trust| {
        let (given, switch) = user.in_project(trust).hooks();
        let line = |given: &cocode::hooks::Given| {
            let commands: Vec<_> = given.definitions.all().map(|(_, _, hook)| hook.line()).collect();
            format!("{} {}", commands.join(","), user.plain(&given.origin))
        };
        (given.iter().map(line).collect::<Vec<_>>().join("\n"), format!("{switch:?}"))
    };
    let (own, switch) = shown(Agreed::Nothing);
    assert_eq!(
        (own.as_str(), switch.as_str()),
        (
            "user-json home/.claude/settings.json\nuser home/.config/cocode/config.toml\nflag command line\npolicy etc/policy.toml",
            "On"
        )
    );
    let withheld = user.in_project(Agreed::Nothing).withheld;
    assert!(withheld.iter().any(|line| line.starts_with("hook Stop: project (.cocode/config.toml)")), "{withheld:?}");
    let (all, switch) = shown(Agreed::Everything);
    assert_eq!((all.lines().count(), switch.as_str()), (7, "ManagedOnly"), "{all}");
    let user = user.file("/etc/policy.toml", "disable_all_hooks = true\n");
    assert_eq!(user.in_project(Agreed::Everything).hooks().1, cocode::hooks::Switch::Off);
    let user = user.file("/etc/policy.toml", "disable_all_hooks = false\n");
    assert_eq!(user.in_project(Agreed::Everything).hooks().1, cocode::hooks::Switch::On);
    for (text, want) in [
        ("hooks.PreTool = []", "unknown key `hooks.PreTool`; did you mean `hooks.PreToolUse`?"),
        ("hooks.Stop = 'x'", "`hooks.Stop` must be a list of tables, not \"x\""),
        ("[[hooks.Stop]]\nhook = []", "unknown key `hooks.Stop[0].hook`; did you mean `hooks.Stop[0].hooks`?"),
        ("[[hooks.Stop]]\nmatcher = 'x'", "`hooks`: missing field `hooks`"),
        (
            "[[hooks.Stop]]\nhooks = [{ type = 'prompt', command = 'x' }]",
            "`hooks.Stop[0].hooks[0].type` must be one of command, http, not \"prompt\"",
        ),
        (
            "[[hooks.Stop]]\nhooks = [{ type = 'command', command = 'x', timeout = 0 }]",
            "`hooks.Stop[0].hooks[0]` `timeout` must be more than 0 and at most 86400 seconds",
        ),
    ] {
        let broken = User::new().file(USER, text).own().unwrap_err().to_string();
        assert!(broken.ends_with(want), "{broken}");
    }
}
