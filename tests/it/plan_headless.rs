//! Plan mode and thinking without a screen: `/plan`, and lines that say how hard their turn is thought about.

use cocode::provider::settings::WireName;
use serde_json::{Value, json};

use super::support::fake_api::{FakeApi, Reply};
use super::support::program::{Done, Program};

const PLANNING: &str = r##"
- expect: {contains: "Plan mode is on"}
  reply: [tool: {name: Bash, input: {command: touch made}}, tool: {name: Write, input: {file_path: "{plan_file}", content: "# Plan\n1. Do it.\n"}}]
- reply: [text: Here it is., tool: {name: ExitPlanMode, input: {}}]
- reply: [text: Never said.]
"##;

fn run(program: &Program, yaml: &str, prompt: &str, flags: &[&str]) -> Done {
    let script = program.script("script.yaml", yaml);
    program.run(&[&["-p", prompt, "--offline-script", &script], flags].concat())
}

#[test]
fn a_task_to_plan_prints_the_plan_and_changes_nothing() {
    let program = Program::new();
    let done = run(&program, PLANNING, "/plan do it", &["--allowed-tools", "Bash"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "# Plan\n1. Do it.\n"), "{}", done.err);
    assert!(!program.project().join("made").exists());
    // The session stays in plan mode; it is left on purpose only.
    let write = "- reply: [tool: {name: Bash, input: {command: touch made}}]\n- reply: [text: Done.]\n";
    let go = |program: &Program| run(program, write, "go", &["--continue", "--allowed-tools", "Bash"]);
    let done = go(&program);
    assert!(done.code == Some(0) && !program.project().join("made").exists(), "{done:#?}");
    let done = run(&program, "", "/plan", &["--continue"]);
    assert!(done.code == Some(0) && done.out.starts_with("Plan mode is on. The plan has 2 lines in"), "{done:#?}");
    let done = run(&program, "", "/plan exit", &["--continue"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Plan mode is off.\n"), "{}", done.err);
    let done = run(&program, "", "/plan exit", &["--continue"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Plan mode is not on.\n"), "{}", done.err);
    let done = go(&program);
    assert!(done.code == Some(0) && program.project().join("made").exists(), "{done:#?}");
}

#[test]
fn an_answer_without_a_plan_is_printed() {
    let done = run(&Program::new(), "- reply: [text: Nothing to plan.]\n", "/plan why?", &["--output-format", "json"]);
    let result = &done.lines()[0];
    assert_eq!(
        (done.code, &result["result"], &result["is_error"]),
        (Some(0), &json!("Nothing to plan."), &json!(false))
    );
}

#[test]
fn a_line_says_how_hard_its_turn_is_thought_about() {
    let api = FakeApi::start((0..5).map(|_| Reply::turn().text("Yes.")));
    api.allow_other_prefix();
    let mut program = Program::new();
    for (name, value) in api.env(WireName::Openai) {
        program = program.env(name, &value);
    }
    let line = |text: &str, thinking: Value| {
        let message = json!({ "role": "user", "content": text });
        json!({ "type": "user", "message": message, "thinking": thinking }).to_string()
    };
    let lines = [
        line("one", json!("ultra")),
        line("two", Value::Null),
        line("three, ultrathink", json!("none")),
        line("four", json!("deep:9000")),
        line("five", json!("none")),
    ];
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--model", "openai/gpt-5.4"];
    let done = program.stdin(&lines.join("\n")).run(&[&["-p", "--thinking", "deep"], &flags[..]].concat());
    assert_eq!(done.code, Some(0), "{done:#?}");
    let effort = |body: &Value| body.pointer("/reasoning/effort").and_then(Value::as_str).unwrap_or("-").to_owned();
    let efforts: Vec<String> = api.received().iter().map(|request| effort(&request.body)).collect();
    assert_eq!(efforts, ["xhigh", "high", "xhigh", "high", "none"]);

    let wrong = |line: String, code: i32, want: &str| {
        let done = Program::new().stdin(&line).run(&[&["-p"], &flags[..4]].concat());
        assert!(done.code == Some(code) && done.err.contains(want), "{done:#?}");
        assert_eq!(done.lines().last().unwrap()["is_error"], true, "{done:#?}");
    };
    wrong(line("x", json!("hard")), 2, "`thinking` of an input line: no thinking level \"hard\"");
    wrong(line("x", json!(9000)), 2, "`thinking` of an input line is 9000, not a level such as \"deep:12000\"");
    wrong(line("/cost", json!("deep")), 0, "`thinking` only applies to messages, not to /cost: use --thinking");
}
