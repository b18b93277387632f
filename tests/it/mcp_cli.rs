//! `cocode mcp`, and servers of a run without a screen.

use serde_json::{Value, json};

use super::support::program::Program;

/// What another program keeps in its file.
const OTHER: &str = r#"{
  "numStartups": 7,
  "projects": {
    "/elsewhere": {
      "history": [
        "a"
      ]
    }
  },
  "last": true
}
"#;

fn own(program: &Program) -> String {
    std::fs::read_to_string(program.home().join(".claude.json")).unwrap()
}

#[test]
fn entries_come_and_go_and_leave_the_rest_as_it_was() {
    let program = Program::new().home_file(".claude.json", OTHER);
    let server = program.script("server.sh", super::mcp::SERVER);
    let done = program.run(&["mcp", "add", "-e", "A=1", "one", "--", "bash", &server, "--flag"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "added one to ~/.claude.json\n"), "{done:?}");
    let header = "Authorization: Bearer ${T}";
    let done = program.run(&["mcp", "add", "-t", "http", "-s", "user", "-H", header, "two", "http://127.0.0.1:9/mcp"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = program.run(&["mcp", "add-json", "-s", "project", "three", r#"{"command": "true"}"#]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let file: Value = serde_json::from_str(&own(&program)).unwrap();
    let project = program.project();
    let one = json!({"type": "stdio", "command": "bash", "args": [server, "--flag"], "env": {"A": "1"}});
    assert_eq!(file["projects"][project.to_str().unwrap()]["mcpServers"], json!({ "one": one }));
    let two = json!({"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${T}"}});
    assert_eq!(file["mcpServers"], json!({ "two": two }));
    let done = program.run(&["mcp", "list"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(
        lines[0].starts_with("ok    one: A=… bash /") && lines[0].ends_with("(local): connected, 2 tools"),
        "{done:?}"
    );
    // It was approved by being added.
    assert!(lines[1].starts_with("FAIL  three: true (project): the server ended (exit status: 0)"), "{done:?}");
    assert!(lines[2].starts_with("FAIL  two: http http://127.0.0.1:9/mcp"), "{done:?}");
    let done = program.run(&["mcp", "get", "one"]);
    assert!(done.out.starts_with("**one** connected · stdio · local · 2 tools") && done.code == Some(0), "{done:?}");
    let done = program.run(&["mcp", "add", "gone", "--", "no-such-program-at-all"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    for (name, code, words) in [
        ("one", 0, &["ok    one: A=… bash ", "      connected: 2 tools\n", "      protocol 2025-06-18 ("][..]),
        ("three", 1, &["FAIL  three: true (project, ", "fix: run its command in a terminal to see why\n"]),
        (
            "gone",
            1,
            &["FAIL  gone: no-such-program-at-all (local, ~/.claude.json)\n", "fix: install `no-such-program-at-all`"],
        ),
    ] {
        let done = program.run(&["mcp", "doctor", name]);
        assert!(words.iter().all(|word| done.out.contains(word)) && done.code == Some(code), "{name}: {done:?}");
    }
    for name in ["one", "two", "three", "gone"] {
        let done = program.run(&["mcp", "remove", name]);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let file: Value = serde_json::from_str(&own(&program)).unwrap();
    let before: Value = serde_json::from_str(OTHER).unwrap();
    for key in ["numStartups", "last"] {
        assert_eq!(file[key], before[key]);
    }
    assert_eq!(file["projects"]["/elsewhere"], before["projects"]["/elsewhere"]);
    assert_eq!(file.as_object().unwrap().keys().next().unwrap(), "numStartups", "the order stays");
    for (args, want) in [
        (&["mcp", "remove", "one"][..], "unknown server `one`"),
        (&["mcp", "get", "one"], "unknown server `one`"),
        (&["mcp", "add", "x", "http://h"], "http://h is a URL: add `--transport http`"),
        (&["mcp", "add", "a b", "c"], "names of servers have letters"),
        (&["mcp", "add", "-e", "A", "x", "c"], "`A` is not NAME=VALUE"),
        (&["mcp", "add-json", "x", "{"], "not valid JSON"),
        (&["mcp", "add-json", "x", "{}"], "has neither `command` nor `url`: add one"),
        (&["-p", "x", "--mcp-config", "gone.json"], "--mcp-config: neither a file nor JSON"),
        (&["-p", "x", "--mcp-config", "{"], "not valid JSON"),
    ] {
        let done = program.run(args);
        assert!(done.err.contains(want) && done.code != Some(0), "{args:?}: {done:?}");
    }
}

#[test]
fn a_run_of_p_has_servers_by_flag_and_says_how_they_are() {
    let program = Program::new();
    let server = program.script("server.sh", super::mcp::SERVER);
    let config = json!({"mcpServers": {"srv": {"command": "bash", "args": [server]}}}).to_string();
    let script = program.script(
        "s.yaml",
        "- reply: [tool: {name: ToolSearch, input: {query: echo}}]\n\
         - reply: [tool: {name: McpCall, input: {tool: mcp__srv__echo, arguments: {word: hi}}}]\n- reply: [text: Done.]\n",
    );
    let own = json!({"mcpServers": {"other": {"command": "false"}}}).to_string();
    let program = program.home_file(".claude.json", &own);
    let base = ["-p", "go", "--offline-script", &script, "--output-format", "stream-json", "--mcp-config", &config];
    let args = [&base[..], &["--strict-mcp-config", "--allowed-tools", "mcp__srv"]].concat();
    let done = program.run(&args);
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["mcp_servers"][0]["name"], "srv", "{}", lines[0]);
    assert_eq!(lines[0]["mcp_servers"].as_array().unwrap().len(), 1, "only those of the flag");
    let status = lines[0]["mcp_servers"][0]["status"].as_str().unwrap();
    assert!(["pending", "connected"].contains(&status), "{status}");
    let uses = lines.iter().flat_map(|line| line["message"]["content"].as_array().into_iter().flatten());
    let names: Vec<&Value> = uses.filter(|block| block["type"] == "tool_use").map(|block| &block["name"]).collect();
    assert_eq!(names, ["ToolSearch", "mcp__srv__echo"]);
    assert!(done.out.contains("said hi"), "{done:?}");
}

/// Prompts and resources work where nobody sees them completed, also of a server that is only starting then.
#[test]
fn a_run_of_p_uses_prompts_and_resources() {
    let program = Program::new();
    let server = program.script("server.sh", super::mcp::SERVER);
    let content = json!({"role": "user", "content": {"type": "text", "text": "Sing a song."}});
    let env = json!({
        "BEGIN": super::mcp::OFFERS,
        "PROMPTS": format!("say '{}'", json!({"prompts": [{"name": "sing"}]})),
        "PROMPT": format!("say '{}'", json!({"messages": [content]})),
        "RESOURCE": format!("say '{}'", json!({"contents": [{"uri": "demo://a", "text": "It is A."}]})),
    });
    let config = json!({"mcpServers": {"srv": {"command": "bash", "args": [server], "env": env}}}).to_string();
    let script = program.script("s.yaml", "- reply: [text: Done.]\n");
    for (prompt, want) in [
        ("/mcp__srv__sing", Ok("Sing a song.")),
        ("what is @srv:demo://a?", Ok("It is A.")),
        ("/mcp__srv__dance", Err("unknown command /mcp__srv__dance")),
    ] {
        let done = program.run(&["-p", prompt, "--offline-script", &script, "--mcp-config", &config]);
        match want {
            Ok(words) => {
                assert_eq!((done.code, done.out.as_str()), (Some(0), "Done.\n"), "{prompt}: {done:?}");
                let logs: Vec<String> =
                    program.logs().iter().map(|log| std::fs::read_to_string(log).unwrap()).collect();
                assert!(logs.iter().any(|log| log.contains(words)), "{prompt}: the model never read it");
            }
            Err(problem) => assert!(done.err.contains(problem) && done.code != Some(0), "{prompt}: {done:?}"),
        }
    }
}

/// However cocode ends, its servers end as well.
#[cfg(target_os = "linux")]
#[test]
fn servers_end_with_a_process_that_is_killed() {
    let program = Program::new();
    let server = program.script("server.sh", super::mcp::SERVER);
    // It hangs in the call, once it has said who it is.
    let env = json!({"CALL": "echo $$ > pid; mv pid told"});
    let config = json!({"mcpServers": {"srv": {"command": "bash", "args": [server], "env": env}}}).to_string();
    let script = program
        .script("s.yaml", "- reply: [tool: {name: McpCall, input: {tool: mcp__srv__echo, arguments: {word: hi}}}]\n");
    let args = ["-p", "go", "--offline-script", &script, "--mcp-config", &config, "--allowed-tools", "mcp__srv"];
    let mut child = program.command(Program::binary(), &args).spawn().unwrap();
    let told = program.project().join("told");
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let begun = std::time::Instant::now();
        while !holds() {
            assert!(begun.elapsed().as_secs() < 60, "{what}");
            std::thread::yield_now();
        }
    };
    until("the server is never called", &|| told.exists());
    let pid = std::fs::read_to_string(&told).unwrap().trim().to_owned();
    let lives = || {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.contains("server.sh")
    };
    assert!(lives());
    child.kill().unwrap();
    child.wait().unwrap();
    until("the server outlives a killed cocode", &|| !lives());
}
