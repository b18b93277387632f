//! Which hooks run, how often, and side by side.

use std::path::Path;

use serde_json::json;

use super::*;

fn given(origin: Origin, hooks: Value) -> Given {
    let (definitions, problems) = Definitions::read(&hooks);
    assert_eq!(problems, [] as [String; 0]);
    Given { origin, root: None, data: None, definitions, sealed: Default::default() }
}

fn user(hooks: Value) -> Hooks {
    Hooks::new(vec![given(Origin::User("u".into()), hooks)], Switch::On)
}

fn group(matcher: &str, commands: &[&str]) -> Value {
    let hooks: Vec<Value> = commands.iter().map(|command| json!({ "type": "command", "command": command })).collect();
    json!({ "matcher": matcher, "hooks": hooks })
}

fn place(dir: &Path) -> Place {
    Place {
        session: "s".into(),
        transcript: "/t".into(),
        cwd: dir.into(),
        project: dir.into(),
        mode: "default",
        agent: None,
    }
}

/// Runs the occasion; the outputs of what ran, in order.
async fn run(hooks: &Hooks, occasion: &Occasion) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let outcome = hooks.run(occasion, &place(dir.path()), &Settings::default()).await;
    outcome.reports.into_iter().map(|report| report.stdout).collect()
}

fn bash() -> Occasion {
    Occasion::pre_tool_use("Bash", &json!({}), "c")
}

#[tokio::test]
async fn what_matches_runs_and_identical_commands_run_once() {
    let hooks = user(json!({
        "PreToolUse": [group("Bash", &["echo a", "echo b"]), group("Edit", &["echo c"]), group("*", &["echo a"])],
        "Stop": [group("ignored", &["echo stop"])],
    }));
    assert_eq!(run(&hooks, &bash()).await, ["a", "b"]);
    assert_eq!(run(&hooks, &Occasion::pre_tool_use("Edit", &json!({}), "c")).await, ["c", "a"]);
    assert_eq!(run(&hooks, &Occasion::stop(false, "")).await, ["stop"]);
    assert_eq!(run(&hooks, &Occasion::session_end(EndReason::Exit)).await, [] as [String; 0]);
    assert!(hooks.listens(Event::Stop) && !hooks.listens(Event::SessionEnd));
}

#[tokio::test]
async fn hooks_run_side_by_side() {
    // Each waits for what the other makes.
    let wait = |own: &str, other: &str| format!("touch {own}; until [ -e {other} ]; do sleep 0.01; done; echo {own}");
    let hooks = user(json!({ "Stop": [group("", &[&wait("one", "two"), &wait("two", "one")])] }));
    assert_eq!(run(&hooks, &Occasion::stop(false, "")).await, ["one", "two"]);
}

#[tokio::test]
async fn once_is_once_in_a_session() {
    let hooks = user(json!({ "Stop": [{ "hooks": [{ "type": "command", "command": "echo a", "once": true }] }] }));
    let dir = tempfile::tempdir().unwrap();
    let outcome = hooks.run(&Occasion::stop(false, ""), &place(dir.path()), &Settings::default()).await;
    assert_eq!(outcome.once.len(), 1);
    assert_eq!(run(&hooks, &Occasion::stop(false, "")).await, [] as [String; 0]);
    assert_eq!(run(&hooks.branch(), &Occasion::stop(false, "")).await, [] as [String; 0]);
    hooks.restart(&BTreeSet::new());
    assert_eq!(run(&hooks, &Occasion::stop(false, "")).await, ["a"]);
    hooks.restart(&outcome.once.into_iter().collect());
    assert_eq!(run(&hooks, &Occasion::stop(false, "")).await, [] as [String; 0]);
}

#[tokio::test]
async fn registered_hooks_last_until_they_are_removed() {
    let mut hooks = Hooks::default();
    let raw = json!({ "Stop": [group("", &["echo ${CLAUDE_PLUGIN_ROOT}"])], "Halt": [] });
    let (registration, problems) =
        hooks.register(Origin::Skill("x".into()), Some("/skill".into()), &raw, &Sealed::default());
    assert_eq!(problems, ["`hooks.Halt` is ignored: no such event"]);
    assert_eq!(run(&hooks, &Occasion::stop(false, "")).await, ["/skill"]);
    let branch = hooks.branch();
    hooks.remove(registration);
    assert_eq!(run(&hooks, &Occasion::stop(false, "")).await, [] as [String; 0]);
    assert_eq!(run(&branch, &Occasion::stop(false, "")).await, ["/skill"]);
}

#[tokio::test]
async fn the_switch_leaves_the_administrators_hooks_on() {
    async fn check(switch: Switch, want: &[&str]) {
        let of = |origin, command| given(origin, json!({ "Stop": [group("", &[command])] }));
        let hooks = Hooks::new(
            vec![of(Origin::Managed("m".into()), "echo managed"), of(Origin::User("u".into()), "echo user")],
            switch,
        );
        assert_eq!(run(&hooks, &Occasion::stop(false, "")).await, want);
        assert_eq!(hooks.rows().iter().filter(|row| !row.off).count(), want.len());
        assert_eq!(hooks.listens(Event::Stop), !want.is_empty());
    }
    check(Switch::On, &["managed", "user"]).await;
    check(Switch::ManagedOnly, &["managed"]).await;
    check(Switch::Off, &[]).await;
}

#[tokio::test]
async fn rows_tell_the_last_result() {
    let hooks = user(json!({
        "Stop": [group("", &["exit 2"])], "PreToolUse": [group("Bash", &["exit 1"])], "SessionEnd": [group("", &["true"])],
    }));
    run(&hooks, &Occasion::stop(false, "")).await;
    run(&hooks, &bash()).await;
    let shown: Vec<String> = hooks
        .rows()
        .iter()
        .map(|row| format!("{} {:?} {} {}", row.event, row.last.map(|(ended, _)| ended), row.command, row.origin))
        .collect();
    assert_eq!(shown, ["PreToolUse Some(Failed) exit 1 u", "SessionEnd None true u", "Stop Some(Blocked) exit 2 u"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_does_not_say_has_ten_minutes_and_less_where_somebody_waits() {
    let dir = tempfile::tempdir().unwrap();
    for (event, timeout, occasion, want) in [
        ("Stop", None, Occasion::stop(false, ""), "timed out after 600 s"),
        ("UserPromptSubmit", None, Occasion::user_prompt_submit("x"), "timed out after 30 s"),
        ("SessionEnd", None, Occasion::session_end(EndReason::Exit), "timed out after 1.5 s"),
        ("SessionEnd", Some(7.5), Occasion::session_end(EndReason::Exit), "timed out after 7.5 s"),
    ] {
        let hook = json!({ "type": "command", "command": "sleep 1000", "timeout": timeout });
        let hooks = user(json!({ event: [{ "hooks": [hook] }] }));
        let outcome = hooks.run(&occasion, &place(dir.path()), &Settings::default()).await;
        assert_eq!(outcome.reports[0].note.as_deref(), Some(want), "{event}");
    }
}

#[tokio::test]
async fn an_async_hook_runs_apart_and_has_no_say() {
    let no = r#"echo '{"decision": "block", "reason": "no", "hookSpecificOutput": {"additionalContext": "later"}}'"#;
    let hooks = user(json!({ "PreToolUse": [{ "hooks": [
        { "type": "command", "command": no, "async": true },
        { "type": "command", "command": "echo now" },
    ]}] }));
    assert!(hooks.rows()[0].beside && !hooks.rows()[1].beside);
    assert_eq!(run(&hooks, &bash()).await, ["now"]);
    let dir = tempfile::tempdir().unwrap();
    let beside = hooks.beside(&bash(), &place(dir.path()), &Settings::default()).unwrap();
    let outcome = beside.await;
    assert_eq!((outcome.verdict, outcome.context), (None, vec!["later".to_owned()]));
    assert!(hooks.beside(&Occasion::stop(false, ""), &place(dir.path()), &Settings::default()).is_none());
}
