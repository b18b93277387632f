//! Events beside calls and turns: what hooks hear of them, and what they can refuse.

use serde_json::{Value, json};

use super::support::harness::Harness;

/// A harness in which hooks of these events write what they are told into `heard`, one line each.
fn hears(events: &[&str]) -> Harness {
    let note = json!([{ "hooks": [{ "type": "command", "command": "cat >> \"$CLAUDE_PROJECT_DIR/heard\"" }] }]);
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), note.clone())).collect();
    Harness::new().set(&toml::to_string(&json!({ "hooks": hooks })).unwrap())
}

fn refuses(event: &str) -> Harness {
    let hook = json!({ event: [{ "hooks": [{ "type": "command", "command": "echo not here >&2; exit 2" }] }] });
    Harness::new().set(&toml::to_string(&json!({ "hooks": hook })).unwrap())
}

const DONE: &str = "- reply: [text: Done.]\n";

#[tokio::test]
async fn a_denied_call_is_told_with_its_reason() {
    let touch = "- reply: [tool: {name: Bash, input: {command: touch made.txt}}]\n- reply: [text: Done.]\n";
    let ran =
        hears(&["PermissionDenied"]).set("permissions.deny = ['Bash(touch:*)']").script(touch).prompt("go").run().await;
    let heard: Value = serde_json::from_str(&std::fs::read_to_string(ran.project().join("heard")).unwrap()).unwrap();
    assert_eq!(
        (&heard["tool_name"], &heard["tool_input"]["command"], &heard["reason"]),
        (&json!("Bash"), &json!("touch made.txt"), &json!("deny rule Bash(touch:*) (command line)"))
    );
}

#[tokio::test]
async fn todos_are_told_when_they_come_and_when_they_are_done() {
    let todo = |status: &str| format!("{{content: Test it, activeForm: Testing it, status: {status}}}");
    let call = |todos: &str| format!("- reply: [tool: {{name: TodoWrite, input: {{todos: [{todos}]}}}}]\n");
    let script = format!("{}{}{DONE}", call(&todo("in_progress")), call(&todo("completed")));
    let ran = hears(&["TaskCreated", "TaskCompleted"]).script(&script).prompt("go").run().await;
    let heard = std::fs::read_to_string(ran.project().join("heard")).unwrap();
    let events: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(&str, &str)> = events
        .iter()
        .map(|event| (event["hook_event_name"].as_str().unwrap(), event["task_subject"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("TaskCreated", "Test it"), ("TaskCompleted", "Test it")]);
}

#[tokio::test]
async fn a_hook_refuses_what_a_command_of_the_user_would_change() {
    let model = refuses("PreModelSwitch").script(DONE).prompt("/model anthropic/sonnet").run().await;
    assert!(model.trace().contains("a PreModelSwitch hook does not allow it: not here"), "{}", model.trace());
    let config = refuses("ConfigChange").script(DONE).prompt("/config max_turns 3").run().await;
    assert!(config.trace().contains("a ConfigChange hook does not allow it: not here"), "{}", config.trace());
}

#[tokio::test]
async fn a_skill_that_is_typed_can_be_refused_before_it_is_a_prompt() {
    let ran = refuses("UserPromptExpansion")
        .file(".claude/skills/make/SKILL.md", "---\ndescription: d\n---\nMake it.")
        .script(DONE)
        .prompt("/make")
        .run()
        .await;
    assert!(ran.trace().contains("not here"), "{}", ran.trace());
    assert!(!ran.trace().contains("Done."), "{}", ran.trace());
}

#[tokio::test]
async fn a_rule_comes_with_the_first_file_that_it_means() {
    let ran = Harness::new()
        .file(".claude/rules/rust.md", "---\npaths: '**/*.rs'\n---\nUse tabs.")
        .file("a.md", "a")
        .file("b.rs", "b")
        .script(
            "- reply: [tool: {name: Read, input: {file_path: a.md}}]\n\
             - reply: [tool: {name: Read, input: {file_path: b.rs}}]\n\
             - reply: [tool: {name: Read, input: {file_path: b.rs}}]\n- reply: [text: Done.]\n",
        )
        .prompt("read")
        .run()
        .await;
    let session = ran.session();
    let at = |words: &str| session.context().messages().iter().position(|message| message.text().contains(words));
    let told = session.context().messages().iter().filter(|message| message.text().contains("Use tabs.")).count();
    assert_eq!(told, 1);
    assert!(at("Use tabs.") > at("1\ta").or(Some(0)), "{}", ran.trace());
}
