//! The program under the Claude Agent SDKs: a host of our own speaks their envelope with the binary.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::support::program::{Program, end};

/// How the SDK for TypeScript starts it.
const MINIMUM: [&str; 5] = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
const FINE: &str = "- reply: [text: Fine.]\n";
const TOUCH: &str =
    "- reply: [text: Trying., tool: {name: Bash, input: {command: touch made}}]\n- reply: [text: Done.]\n";

/// The other end of the lines.
struct Host {
    child: Child,
    input: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
    /// What came so far.
    lines: Vec<Value>,
    /// The folders that it runs in, where nobody else keeps them.
    _program: Option<Program>,
}

impl Host {
    fn start(program: &Program, yaml: &str, flags: &[&str]) -> Host {
        let script = program.script("script.yaml", yaml);
        let args = [&MINIMUM[..], &["--offline-script", &script], flags].concat();
        let mut child = program.command(Program::binary(), &args).stdin(Stdio::piped()).spawn().unwrap();
        let (input, out) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Host { child, input, out, lines: Vec::new(), _program: None }
    }

    fn fresh(yaml: &str, flags: &[&str]) -> Host {
        let program = Program::new();
        let host = Host::start(&program, yaml, flags);
        Host { _program: Some(program), ..host }
    }

    fn say(&mut self, line: &Value) -> &mut Host {
        self.raw(&format!("{line}\n"))
    }

    fn raw(&mut self, text: &str) -> &mut Host {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        self
    }

    fn prompt(&mut self, text: &str) -> &mut Host {
        self.say(&json!({"type": "user", "message": {"role": "user", "content": text}}))
    }

    fn request(&mut self, id: &str, request: Value) -> &mut Host {
        self.say(&json!({"type": "control_request", "request_id": id, "request": request}))
    }

    fn initialize(&mut self, more: Value) -> Value {
        let mut request = json!({"subtype": "initialize"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.request("init", request).response("init").unwrap()
    }

    /// The next line that is like this.
    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "it ended after {:#?}", self.lines);
            let line: Value = serde_json::from_str(&line).unwrap();
            self.lines.push(line.clone());
            if is(&line) {
                return line;
            }
        }
    }

    fn result(&mut self) -> Value {
        self.until(|line| line["type"] == "result")
    }

    /// The answer to a request.
    fn response(&mut self, id: &str) -> Result<Value, String> {
        let line = self.until(|line| line["type"] == "control_response" && line["response"]["request_id"] == id);
        match line["response"]["subtype"].as_str().unwrap() {
            "success" => Ok(line["response"]["response"].clone()),
            _ => Err(line["response"]["error"].as_str().unwrap().to_owned()),
        }
    }

    /// What the program asks next.
    fn asked(&mut self, subtype: &str) -> (String, Value) {
        let line = self.until(|line| line["type"] == "control_request" && line["request"]["subtype"] == subtype);
        (line["request_id"].as_str().unwrap().to_owned(), line["request"].clone())
    }

    fn answer(&mut self, id: &str, response: Value) -> &mut Host {
        let response = json!({"subtype": "success", "request_id": id, "response": response});
        self.say(&json!({"type": "control_response", "response": response}))
    }

    /// Nothing more comes in: it ends well.
    fn end(mut self) -> Vec<Value> {
        drop(self.input.take());
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            self.lines.push(serde_json::from_str(&line).unwrap());
            line.clear();
        }
        let done = end(self.child);
        assert_eq!(done.code, Some(0), "{done:#?} {:#?}", self.lines);
        self.lines
    }
}

#[test]
fn nothing_is_told_before_it_is_asked_for() {
    let mut host = Host::fresh(&FINE.repeat(2), &[]);
    let answer = host.initialize(json!({"agents": {"heron": {"description": "Watches", "prompt": "Watch."}}}));
    assert_eq!(host.lines[0]["type"], "control_response", "{:#?}", host.lines);
    assert_eq!(answer["hook_on_failure_supported"], true);
    let has = |list: &str, name: &str| answer[list].as_array().unwrap().iter().any(|row| row["name"] == name);
    assert!(has("commands", "compact") && has("agents", "heron"), "{answer:#}");
    assert!(!answer["models"].as_array().unwrap().is_empty(), "{answer:#}");
    host.prompt("one").result();
    host.prompt("two").result();
    assert!(host.request("again", json!({"subtype": "initialize"})).response("again").is_err());
    let lines = host.end();
    let inits: Vec<&Value> = lines.iter().filter(|line| line["subtype"] == "init").collect();
    assert_eq!(inits.len(), 2, "one for each turn");
    assert!(inits[0]["agents"].as_array().unwrap().contains(&json!("heron")), "{}", inits[0]);
}

/// What the session lists of the SDKs read: a copy where Claude Code would have it.
#[test]
fn a_copy_of_the_session_is_where_the_sdks_look() {
    let program = Program::new();
    let cwd = program.project();
    let name: String =
        cwd.to_str().unwrap().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let folder = program.home().join(".claude/projects").join(name);
    let script = "- reply: [text: Looking., tool: {name: LS, input: {path: .}}]\n- reply: [text: Done.]\n";
    let mut host = Host::start(&program, script, &["--session-mirror"]);
    let id = "0190f5fe-7c00-7a00-8000-000000000009";
    host.say(&json!({"type": "user", "uuid": id, "message": {"role": "user", "content": "go"}})).result();
    host.request("r", json!({"subtype": "rename_session", "title": "A walk"})).response("r").unwrap();
    let lines = host.end();
    let session = lines[0]["session_id"].as_str().unwrap().to_owned();
    let path = folder.join(format!("{session}.jsonl"));
    let read = |path: &std::path::Path| -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let entries = read(&path);
    let told: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "transcript_mirror" && line["filePath"] == path.to_str().unwrap())
        .flat_map(|line| line["entries"].as_array().unwrap())
        .collect();
    assert_eq!(told, entries.iter().collect::<Vec<_>>(), "the program gets what is written");
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "assistant", "user", "assistant", "custom-title"]);
    assert_eq!(entries[0]["message"], json!({"role": "user", "content": "go"}));
    assert_eq!((&entries[0]["uuid"], &entries[0]["parentUuid"]), (&json!(id), &Value::Null));
    assert_eq!(entries[5]["customTitle"], "A walk");
    // Each has the name of its line, and answers the one before it.
    let uuids: Vec<&Value> = entries.iter().take(5).map(|entry| &entry["uuid"]).collect();
    for (at, entry) in entries.iter().enumerate().take(5).skip(1) {
        assert_eq!(&entry["parentUuid"], uuids[at - 1], "{at}");
        assert!(lines.iter().any(|line| line["uuid"] == *uuids[at] && line["message"] == entry["message"]), "{at}");
        assert_eq!((&entry["sessionId"], &entry["cwd"]), (&json!(session), &json!(cwd)), "{at}");
    }
    // A session that continues continues its copy, also behind a torn line; a fork has all of it in its own.
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"type\":\"us").unwrap();
    let mut host = Host::start(&program, FINE, &["--resume", &session]);
    host.prompt("more").result();
    host.end();
    let text = std::fs::read_to_string(&path).unwrap();
    let more: Vec<Value> = text.lines().skip(7).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&more[0]["parentUuid"], &more[0]["message"]["content"]), (uuids[4], &json!("more")));
    let mut host = Host::start(&program, FINE, &["--resume", &session, "--fork-session"]);
    host.prompt("elsewhere").result();
    let fork = host.end()[0]["session_id"].as_str().unwrap().to_owned();
    let forked = read(&folder.join(format!("{fork}.jsonl")));
    assert_ne!(fork, session);
    assert_eq!(forked.iter().filter(|entry| entry["type"] == "user").count(), 4, "{forked:#?}");
    // Nobody asked for a copy here.
    let plain = program.run(&["-p", "hello", "--offline"]);
    assert_eq!(plain.code, Some(0), "{plain:#?}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}

/// Keys that the SDKs read, by kind of line.
#[test]
fn lines_have_what_the_sdks_read() {
    let script =
        "- reply: [thinking: Hmm., text: Looking., tool: {name: LS, input: {path: .}}]\n- reply: [text: Done.]\n";
    let mut host = Host::fresh(script, &["--include-partial-messages", "--replay-user-messages"]);
    let uuid = "0190f5fe-7c00-7a00-8000-000000000001";
    host.say(&json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": "go"}}));
    // The same name again is the same prompt.
    host.say(&json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": "go"}}));
    host.result();
    let lines = host.end();
    assert_eq!(lines.iter().filter(|line| line["type"] == "result").count(), 1, "{lines:#?}");
    let check = |kind: &str, subtype: Option<&str>, keys: &[&str]| {
        let of = |line: &&Value| line["type"] == kind && subtype.is_none_or(|subtype| line["subtype"] == subtype);
        let found: Vec<&Value> = lines.iter().filter(of).collect();
        assert!(!found.is_empty(), "no {kind} {subtype:?} in {lines:#?}");
        for line in found {
            for key in ["/uuid", "/session_id"].iter().chain(keys) {
                assert!(line.pointer(key).is_some(), "{kind} has no {key}: {line:#}");
            }
        }
    };
    let init = [
        "/apiKeySource",
        "/claude_code_version",
        "/cwd",
        "/tools",
        "/mcp_servers",
        "/model",
        "/permissionMode",
        "/slash_commands",
        "/output_style",
        "/skills",
        "/agents",
        "/plugins",
        "/capabilities",
    ];
    check("system", Some("init"), &init);
    let assistant = [
        "/message/id",
        "/message/type",
        "/message/role",
        "/message/model",
        "/message/content/0",
        "/message/stop_reason",
        "/message/stop_sequence",
        "/message/usage/input_tokens",
        "/parent_tool_use_id",
    ];
    check("assistant", None, &assistant);
    check("user", None, &["/message/content", "/parent_tool_use_id"]);
    check("stream_event", None, &["/event/type", "/parent_tool_use_id"]);
    let result = [
        "/duration_ms",
        "/duration_api_ms",
        "/is_error",
        "/num_turns",
        "/result",
        "/stop_reason",
        "/total_cost_usd",
        "/usage",
        "/modelUsage",
        "/permission_denials",
        "/terminal_reason",
        "/user_message_uuid",
    ];
    check("result", Some("success"), &result);
    let replay = lines.iter().find(|line| line["isReplay"] == true).unwrap();
    assert_eq!(replay["uuid"], uuid);
    let events = |kind: &str| lines.iter().filter(|line| line["event"]["type"] == kind).count();
    assert_eq!((events("message_start"), events("message_stop")), (2, 2));
    assert_eq!(events("content_block_start"), 4);
    assert_eq!(events("content_block_stop"), 4);
    // One line a block, and all of a reply with one id.
    let replies: Vec<&Value> = lines.iter().filter(|line| line["type"] == "assistant").collect();
    assert!(replies.iter().all(|line| line["message"]["content"].as_array().unwrap().len() == 1), "{replies:#?}");
    assert_eq!(replies[0]["message"]["id"], replies[2]["message"]["id"]);
    assert_ne!(replies[2]["message"]["id"], replies[3]["message"]["id"]);
}

#[test]
fn permissions_are_asked_for_at_the_other_end() {
    let check = |answer: Value, made: &str, denials: usize, told: &str| {
        let program = Program::new();
        let mut host = Host::start(&program, TOUCH, &["--permission-prompt-tool", "stdio"]);
        host.prompt("go");
        let (id, request) = host.asked("can_use_tool");
        assert_eq!((&request["tool_name"], &request["input"]), (&json!("Bash"), &json!({"command": "touch made"})));
        assert_eq!(request["tool_use_id"], "call_1", "{request:#}");
        let result = host.answer(&id, answer.clone()).result();
        let lines = host.end();
        let files: Vec<String> = std::fs::read_dir(program.project())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(files.join(" "), made, "{answer} {lines:#?}");
        assert_eq!(result["permission_denials"].as_array().unwrap().len(), denials, "{result:#}");
        assert!(lines.iter().any(|line| line.to_string().contains(told)), "{told}: {lines:#?}");
    };
    check(json!({"behavior": "allow", "updatedInput": {"command": "touch made"}}), "made", 0, "Done.");
    check(json!({"behavior": "allow", "updatedInput": {"command": "touch other"}}), "other", 0, "Done.");
    check(json!({"behavior": "allow", "updatedInput": {}}), "", 0, "rewrote the arguments");
    check(json!({"behavior": "deny", "message": "not today"}), "", 1, "not today");
    check(json!({"behavior": "deny", "message": "stop it", "interrupt": true}), "", 1, "error_during_execution");
    check(json!({"nonsense": 1}), "", 1, "was not valid");
}

/// An answer with the suggestions is not asked for again; one that is withdrawn says so.
#[test]
fn a_suggestion_that_is_taken_holds() {
    let call = "- reply: [tool: {name: Bash, input: {command: touch made}}]\n";
    let program = Program::new();
    let mut host = Host::start(&program, &format!("{call}{call}{FINE}{call}"), &["--permission-prompt-tool", "stdio"]);
    host.prompt("go");
    let (id, request) = host.asked("can_use_tool");
    let mut updates = request["permission_suggestions"].clone();
    updates[0]["destination"] = "session".into();
    host.answer(&id, json!({"behavior": "allow", "updatedInput": request["input"], "updatedPermissions": updates}));
    assert_eq!(host.result()["result"], "Fine.");
    let asked = host.lines.iter().filter(|line| line["type"] == "control_request").count();
    assert_eq!(asked, 1, "{:#?}", host.lines);
    host.end();
    let mut host = Host::fresh(call, &["--permission-prompt-tool", "stdio"]);
    host.prompt("go");
    let (id, _) = host.asked("can_use_tool");
    host.request("stop", json!({"subtype": "interrupt"}));
    host.until(|line| line["type"] == "control_cancel_request" && line["request_id"] == id.as_str());
    assert_eq!(host.result()["subtype"], "error_during_execution");
    host.end();
}

#[test]
fn hooks_are_answered_at_the_other_end() {
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["guard"], "onFailure": "block"}]});
    let check = |answer: Option<Value>, runs: bool| {
        let program = Program::new();
        let mut host = Host::start(&program, TOUCH, &["--allowedTools=Bash"]);
        host.initialize(json!({"hooks": hooks}));
        host.prompt("go");
        let (id, request) = host.asked("hook_callback");
        assert_eq!((&request["callback_id"], &request["tool_use_id"]), (&json!("guard"), &json!("call_1")));
        assert_eq!(request["input"]["hook_event_name"], "PreToolUse");
        match &answer {
            Some(answer) => drop(host.answer(&id, answer.clone())),
            None => {
                let response = json!({"subtype": "error", "request_id": id, "error": "broken"});
                host.say(&json!({"type": "control_response", "response": response}));
            }
        }
        host.result();
        let lines = host.end();
        assert_eq!(program.project().join("made").exists(), runs, "{answer:?} {lines:#?}");
    };
    let says =
        |decision: &str| json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}});
    check(Some(json!({})), true);
    check(Some(says("deny")), false);
    check(Some(json!({"decision": "block", "reason": "no"})), false);
    check(Some(json!(["not an object"])), false);
    check(None, false);
}

/// Those of the start come before the answer to `initialize`, and one of the end finds nobody.
#[test]
fn hooks_of_the_start_and_the_end_hold_nothing_up() {
    let mut host = Host::fresh(FINE, &[]);
    let hooks = json!({"SessionStart": [{"hookCallbackIds": ["start"]}], "SessionEnd": [{"hookCallbackIds": ["end"]}]});
    host.request("init", json!({"subtype": "initialize", "hooks": hooks}));
    let (id, request) = host.asked("hook_callback");
    assert_eq!(request["callback_id"], "start");
    host.answer(&id, json!({}));
    assert!(host.response("init").is_ok());
    assert_eq!(host.prompt("go").result()["result"], "Fine.");
    host.end();
}

/// A guard that says nothing in time holds, though it was not told to block when it fails.
#[test]
fn a_silent_guard_blocks() {
    let program = Program::new();
    let mut host = Host::start(&program, TOUCH, &["--allowedTools=Bash"]);
    host.initialize(json!({"hooks": {"PreToolUse": [{"hookCallbackIds": ["guard"], "timeout": 0.05}]}}));
    host.prompt("go");
    let (id, _) = host.asked("hook_callback");
    host.until(|line| line["type"] == "control_cancel_request" && line["request_id"] == id.as_str());
    // Too late, and to nothing.
    host.answer(&id, json!({})).answer("never", json!({})).result();
    host.end();
    assert!(!program.project().join("made").exists());
}

#[test]
fn servers_may_live_at_the_other_end() {
    let script = "- reply: [tool: {name: mcp__calc__add, input: {a: 2}}]\n- reply: [text: Done.]\n";
    let config = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;
    let flags = ["--mcp-config", config, "--allowedTools", "mcp__calc__add"];
    let mut host = Host::fresh(script, &flags);
    host.request("init", json!({"subtype": "initialize"}));
    // Whatever it asks is answered until the call is done.
    let mut asked = Vec::new();
    host.prompt("go");
    loop {
        let line = host.until(|line| line["type"] == "control_request" || line["type"] == "result");
        if line["type"] == "result" {
            break;
        }
        let message = &line["request"]["message"];
        let method = message["method"].as_str().unwrap().to_owned();
        let result = match method.as_str() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}}),
            "tools/list" => json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "sum 5"}]}),
            _ => json!({}),
        };
        let response = json!({"jsonrpc": "2.0", "id": message["id"].as_u64().unwrap_or(0), "result": result});
        host.answer(line["request_id"].as_str().unwrap(), json!({"mcp_response": response}));
        asked.push(method);
    }
    assert_eq!(asked, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
    let status = host.request("s", json!({"subtype": "mcp_status"})).response("s").unwrap();
    assert_eq!(
        (&status["mcpServers"][0]["name"], &status["mcpServers"][0]["status"]),
        (&json!("calc"), &json!("connected"))
    );
    let off = json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": false});
    host.request("off", off).response("off").unwrap();
    let status = host.request("t", json!({"subtype": "mcp_status"})).response("t").unwrap();
    assert_eq!(status["mcpServers"][0]["status"], "disabled");
    let unknown = json!({"subtype": "mcp_reconnect", "serverName": "nope"});
    assert!(host.request("u", unknown).response("u").unwrap_err().contains("nope"));
    let lines = host.end();
    assert!(lines.iter().any(|line| line["type"] == "user" && line.to_string().contains("sum 5")), "{lines:#?}");
}

#[test]
fn requests_are_answered_and_none_ends_it() {
    let mut host = Host::fresh(&FINE.repeat(3), &[]);
    host.prompt("one").result();
    let mut check = |request: Value, want: Result<&str, &str>| {
        let answer = host.request("r", request.clone()).response("r").map(|answer| answer.to_string());
        let fits = match (&answer, want) {
            (Ok(answer), Ok(part)) => answer.contains(part),
            (Err(answer), Err(part)) => answer.contains(part),
            _ => false,
        };
        assert!(fits, "{request}: {answer:?}");
    };
    check(json!({"subtype": "nonsense"}), Err("\"nonsense\" is not supported"));
    check(json!({}), Err("not supported"));
    check(json!([1]), Err("not supported"));
    check(json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}), Ok("{}"));
    check(json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}), Err("has to be allowed"));
    check(json!({"subtype": "set_permission_mode", "mode": "yolo"}), Err("unknown permission mode"));
    check(json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 0}), Ok("{}"));
    check(json!({"subtype": "set_model", "model": null}), Ok("{}"));
    check(json!({"subtype": "set_model", "model": "no/such"}), Err("no"));
    check(json!({"subtype": "interrupt"}), Ok("\"still_queued\":[]"));
    check(json!({"subtype": "get_context_usage"}), Ok("totalTokens"));
    check(json!({"subtype": "get_usage"}), Ok("model_usage"));
    check(json!({"subtype": "list_models"}), Ok("models"));
    check(json!({"subtype": "list_permission_rules"}), Ok("allow"));
    check(json!({"subtype": "get_hooks_listing"}), Ok("PreToolUse"));
    check(json!({"subtype": "mcp_status"}), Ok("{\"mcpServers\":[]}"));
    check(json!({"subtype": "mcp_toggle", "serverName": "x", "enabled": true}), Err("no MCP servers"));
    check(json!({"subtype": "stop_task", "task_id": "b9"}), Err("nothing called"));
    check(json!({"subtype": "rewind_files", "user_message_id": "x"}), Ok("\"canRewind\":false"));
    check(json!({"subtype": "read_file", "path": "nope"}), Err("cannot be read"));
    check(json!({"subtype": "rename_session", "title": "Herons"}), Ok("{}"));
    host.prompt("two").result();
    // Nothing of this is a prompt, and nothing of it ends the run.
    host.raw("garbage\n{\"half\":\n\n[]\n\"text\"\n{\"type\":\"keep_alive\"}\n{\"type\":\"nonsense\"}\n\u{0}\n");
    host.say(&json!({"type": "control_response", "response": {"subtype": "success", "request_id": "?"}}));
    host.say(&json!({"type": "control_cancel_request", "request_id": "?"}));
    assert_eq!(host.prompt("three").result()["result"], "Fine.");
    let mode = host.lines.iter().rfind(|line| line["subtype"] == "init").unwrap()["permissionMode"].clone();
    assert_eq!(mode, "acceptEdits");
    host.end();
}

/// The input may end while a turn runs: the turn is finished, and what was asked counts as unanswered.
#[test]
fn the_end_of_the_input_is_not_the_end_of_the_turn() {
    let program = Program::new();
    let script = "- reply: [tool: {name: Bash, input: {command: 'until [ -e go ]; do sleep 0.01; done'}}]\n- reply: [text: Done.]\n";
    let mut host = Host::start(&program, script, &["--allowedTools=Bash"]);
    host.prompt("go").until(|line| line["type"] == "assistant");
    drop(host.input.take());
    std::fs::write(program.project().join("go"), "").unwrap();
    assert_eq!(host.result()["result"], "Done.");
    host.end();
    let program = Program::new();
    let mut host = Host::start(&program, TOUCH, &["--permission-prompt-tool", "stdio"]);
    host.prompt("go").asked("can_use_tool");
    drop(host.input.take());
    assert_eq!(host.result()["permission_denials"], json!([]));
    host.end();
    assert!(!program.project().join("made").exists());
}

#[test]
fn files_go_back_to_before_a_message() {
    let program = Program::new().file("a.txt", "one");
    let script = "- reply: [tool: {name: Read, input: {file_path: a.txt}}]\n\
                  - reply: [tool: {name: Write, input: {file_path: a.txt, content: two}}]\n- reply: [text: Done.]\n";
    let mut host = Host::start(&program, script, &["--permission-mode=acceptEdits"]);
    let uuid = "0190f5fe-7c00-7a00-8000-000000000001";
    host.say(&json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": "go"}})).result();
    let text = || std::fs::read_to_string(program.project().join("a.txt")).unwrap();
    assert_eq!(text(), "two");
    let mut rewind = json!({"subtype": "rewind_files", "user_message_id": uuid, "dry_run": true});
    let dry = host.request("dry", rewind.clone()).response("dry").unwrap();
    assert_eq!((dry["canRewind"].as_bool(), dry["filesChanged"].as_array().unwrap().len()), (Some(true), 1), "{dry}");
    assert_eq!(text(), "two");
    rewind["dry_run"] = false.into();
    let done = host.request("do", rewind).response("do").unwrap();
    assert_eq!((done["canRewind"].as_bool(), text().as_str()), (Some(true), "one"), "{done}");
    host.end();
}

#[test]
fn sessions_are_named_and_resumed_where_they_were_left() {
    let program = Program::new();
    let id = "0190f5fe-7c00-4a00-8000-000000000002";
    let mut host = Host::start(&program, &FINE.repeat(2), &["--session-id", id]);
    host.prompt("the first heron").result();
    host.prompt("the second crane").result();
    let at = host.lines.iter().find(|line| line["type"] == "assistant").unwrap()["uuid"].as_str().unwrap().to_owned();
    assert!(host.end().iter().all(|line| line["session_id"] == id));
    for fork in [&[][..], &["--fork-session"]] {
        let script = "- expect: {lacks: second crane}\n  reply: [text: Back.]\n";
        let flags = [&["--resume", id, "--resume-session-at", &at], fork].concat();
        let mut host = Host::start(&program, script, &flags);
        assert_eq!(host.prompt("more").result()["result"], "Back.", "{flags:?}");
        let lines = host.end();
        assert_eq!(lines[0]["session_id"] == id, fork.is_empty());
    }
}
