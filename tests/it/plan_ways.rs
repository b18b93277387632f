//! Ways around plan mode: by sub-agents, skills, hooks, what is in the plan file's place, and a kill. Rules that allow
//! everything, hooks that say yes and a user who does, too, are there in every row; what is below the project and the home
//! is compared with what was there before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cocode::message::Outcome;
use cocode::permission::Mode;
use cocode::protocol::{Answer, GrantScope};
use serde_json::{Value, json};

use super::plan_enforced::{outcomes, snapshot, victim};
use super::support::harness::{Harness, Ran};
use super::support::program::Program;

/// Allows whatever can be allowed.
const ALLOW: &str =
    r#"permissions.allow = ["Bash", "Edit", "Edit(//**)", "Write", "NotebookEdit", "Task", "Skill", "mcp__files"]"#;

/// A hook that prints this.
fn hook(event: &str, matcher: &str, says: &Value) -> String {
    format!(
        "[[hooks.{event}]]\nmatcher = '{matcher}'\nhooks = [{{ type = \"command\", command = '''echo '{says}' ''' }}]\n"
    )
}

fn yes() -> String {
    let allow = json!({ "hookSpecificOutput": { "permissionDecision": "allow", "decision": { "behavior": "allow" } } });
    [hook("PreToolUse", "*", &allow), hook("PermissionRequest", "*", &allow)].concat()
}

/// Skills that grant themselves everything, and sub-agents that do.
fn lax(harness: Harness) -> Harness {
    let tools = "tools: Read, Write, Edit, Bash, NotebookEdit";
    let agent = |harness: Harness, name: &str, head: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n{head}\n---\nYou change things.\n");
        harness.home(&format!("agents/{name}.md"), &text)
    };
    let skill = |harness: Harness, name: &str, head: &str, body: &str| {
        let head = format!("description: d\nallowed-tools: Bash, Write, Edit, NotebookEdit, Task\n{head}");
        harness.home(&format!("skills/{name}/SKILL.md"), &format!("---\n{head}\n---\n{body}\n"))
    };
    let harness = agent(harness, "bypass", &format!("{tools}\npermission_mode: bypassPermissions"));
    let harness = agent(harness, "edits", "permission_mode: acceptEdits");
    let harness = agent(harness, "writer", &format!("{tools}\npermission_mode: plan\nskills: lines"));
    let harness = agent(harness, "reader", "tools: Read, TodoWrite\npermission_mode: bypassPermissions");
    let lines = "One !`touch new.txt`, two !`echo x > a.txt`.\n!`cp a.txt {plan_file}`\nThen change a.txt.";
    let harness = skill(harness, "lines", "", lines);
    let harness = skill(harness, "forked", "context: fork\nagent: general-purpose", lines);
    skill(harness, "explored", "context: fork\nagent: Explore", lines)
}

/// Tries in one reply, one call each.
fn tries(paths: &[&str]) -> Vec<Value> {
    let mut calls: Vec<Value> =
        ["touch new.txt", "echo x > a.txt", "git commit -qam x", "sed -i s/o/x/ a.txt", "rm a.txt"]
            .map(|command| json!({ "name": "Bash", "input": { "command": command } }))
            .to_vec();
    for path in paths {
        calls.push(json!({ "name": "Write", "input": { "file_path": path, "content": "changed" } }));
        calls
            .push(json!({ "name": "Edit", "input": { "file_path": path, "old_string": "", "new_string": "changed" } }));
    }
    let cell = json!({ "notebook_path": "n.ipynb", "cell_id": "c", "new_source": "x" });
    calls.push(json!({ "name": "NotebookEdit", "input": cell }));
    calls.push(json!({ "name": "mcp__files__write", "input": { "path": "a.txt" } }));
    calls
}

fn reply(who: Option<&str>, calls: &[Value]) -> Value {
    let calls: Vec<Value> = calls.iter().map(|call| json!({ "tool": call })).collect();
    match who {
        Some(agent) => json!({ "for": format!("agent:{agent}"), "reply": calls }),
        None => json!({ "reply": calls }),
    }
}

fn says(who: Option<&str>, text: &str) -> Value {
    match who {
        Some(agent) => json!({ "for": format!("agent:{agent}"), "reply": [{ "text": text }] }),
        None => json!({ "reply": [{ "text": text }] }),
    }
}

/// What may not change: the project, and of the home all but the session's own folder and the plans.
fn all(project: &Path) -> BTreeMap<PathBuf, (u32, std::time::SystemTime, Vec<u8>)> {
    let root = project.parent().unwrap();
    let ours = |path: &PathBuf| {
        let text = path.to_string_lossy();
        // Below the root and below `.claude`, folders come and go with files of our own in them.
        let folder = matches!(&*text, ".claude" | "script.yaml" | ".claude/plans");
        let session = text.strip_prefix(".claude/").is_some_and(|rest| {
            uuid::Uuid::parse_str(rest.split('/').next().unwrap()).is_ok()
                || rest.starts_with("history")
                || rest.starts_with("cocode")
                || rest.starts_with("skill")
        });
        folder
            || session && !text.contains("SKILL.md")
            || text.starts_with(".claude/plans/")
            || text.starts_with(".local")
            || text.starts_with(".config")
            || text.starts_with(".cache")
    };
    snapshot(root).into_iter().filter(|(path, _)| !ours(path)).collect()
}

/// Runs the script in plan mode, and proves that nothing was changed. Returns what came of it.
async fn attack(settings: &str, script: &[Value]) -> Ran {
    let harness = lax(victim(Harness::new()));
    let settings = format!("{ALLOW}\n{}{settings}", yes());
    let mut harness = harness.mode(Mode::Bypass).set(&settings).script(&json!(script).to_string());
    let project = harness.project();
    let before = all(&project);
    assert!(before.keys().any(|path| path.ends_with("project/.git/config")));
    for _ in 0..20 {
        let rules = vec!["Bash".into(), "Edit".into()];
        harness = harness.answer(Answer::Always { rules, scope: GrantScope::Session });
    }
    let run = harness.prompt("/plan do it").run().await;
    let after = all(&project);
    let changed: Vec<&PathBuf> =
        after.keys().chain(before.keys()).filter(|path| after.get(*path) != before.get(*path)).collect();
    assert_eq!(changed, [] as [&PathBuf; 0], "{}", run.trace());
    assert_eq!(run.session().facts().mode, Some(Mode::Plan));
    assert!(run.trace().ends_with("turn ended Done"), "{}", run.trace());
    run
}

fn results_below(run: &Ran, id: &str) -> Vec<(Outcome, String)> {
    let session = run.session().transcripts().resume(id).unwrap();
    let messages = session.context().messages();
    messages.iter().flat_map(|message| message.results().map(|result| (result.outcome, result.text()))).collect()
}

#[tokio::test]
async fn no_sub_agent_changes_anything() {
    let launch = |agent: &str| {
        let input = json!({ "description": "d", "prompt": "Change it.", "subagent_type": agent });
        reply(None, &[json!({ "name": "Task", "input": input })])
    };
    for (agent, runs) in [
        ("Explore", true),
        ("Plan", true),
        ("writer", true),
        ("reader", true),
        ("general-purpose", false),
        ("bypass", false),
        ("edits", false),
    ] {
        let who = Some(agent);
        let calls = tries(&["a.txt", "new/deep.txt", "~/.bashrc", ".claude/settings.json"]);
        let script = [launch(agent), reply(who, &calls), says(who, "I give up."), says(None, "So do I.")];
        let run = attack("", &script).await;
        let (outcome, text) = outcomes(&run).pop().unwrap();
        if !runs {
            assert_eq!(outcome, Outcome::Denied, "{agent}: {text}");
            assert!(text.contains("plan mode only launches read-only agents"), "{agent}: {text}");
            continue;
        }
        assert_eq!(outcome, Outcome::Ok, "{agent}: {text}");
        let below = results_below(&run, "a1");
        let own = below.len() - calls.len();
        for (call, (outcome, text)) in calls.iter().zip(&below[own..]) {
            assert_ne!(*outcome, Outcome::Ok, "{agent}: {call}: {text}");
        }
    }
}

#[tokio::test]
async fn a_sub_agent_has_a_plan_file_of_its_own_and_no_other() {
    let input = json!({ "description": "d", "prompt": "Plan it.", "subagent_type": "writer" });
    let write = |path: &str| json!({ "name": "Write", "input": { "file_path": path, "content": "# Own\n" } });
    let plan = json!({ "name": "Write", "input": { "file_path": "{plan_file}", "content": "# Mine\n" } });
    let script = [
        reply(None, &[plan]),
        reply(None, &[json!({ "name": "Task", "input": input })]),
        reply(Some("writer"), &[write("{plan_file}"), write("{plan_file}/../x.md"), write("{plan_file}.md")]),
        says(Some("writer"), "Done."),
        says(None, "Done."),
    ];
    let run = attack("", &script).await;
    let below: Vec<Outcome> = results_below(&run, "a1").into_iter().map(|(outcome, _)| outcome).collect();
    assert_eq!(
        below[below.len() - 3..],
        [Outcome::Ok, Outcome::Denied, Outcome::Denied],
        "{:?}",
        results_below(&run, "a1")
    );
    let mut plans: Vec<(String, String)> = std::fs::read_dir(run.home().join("plans"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    plans.sort_by_key(|(path, _)| path.len());
    assert_eq!(plans.len(), 2, "{plans:?}");
    assert_eq!((plans[0].1.as_str(), plans[1].1.as_str()), ("# Mine\n", "# Own\n"));
    assert_eq!(plans[1].0, plans[0].0.replace(".md", "-agent-a1.md"));
}

#[tokio::test]
async fn no_skill_changes_anything() {
    for skill in ["lines", "forked", "explored"] {
        let calls = tries(&["a.txt"]);
        let call = json!({ "name": "Skill", "input": { "skill": skill } });
        let who = (skill == "explored").then_some("Explore");
        let mut script = vec![reply(None, &[call])];
        match who {
            Some(_) => script.extend([reply(who, &calls), says(who, "I give up.")]),
            None => script.push(reply(None, &calls)),
        }
        script.push(says(None, "So do I."));
        let run = attack("", &script).await;
        let told: Vec<String> = run.session().context().messages().iter().map(|message| message.text()).collect();
        let told = told.join("\n");
        // The three lines of its text were tried, and each was refused.
        let log = std::fs::read_to_string(run.log()).unwrap();
        assert!(log.matches("plan mode runs only what is known to read").count() >= 3, "{skill}: {log}");
        if skill == "forked" {
            assert!(told.contains("was not run as a sub-agent") && told.contains("read-only agents"), "{told}");
        }
        let ran: Vec<_> = match who {
            Some(_) => results_below(&run, "a1"),
            None => outcomes(&run),
        };
        for (call, (outcome, text)) in calls.iter().rev().zip(ran.iter().rev()) {
            assert_ne!(*outcome, Outcome::Ok, "{skill}: {call}: {text}");
        }
    }
}

/// A hook may put another input in the place of one that is allowed: that is judged, too.
#[tokio::test]
async fn no_hook_makes_a_change_of_something_harmless() {
    let rewrite = |event: &str, tool: &str, input: Value| {
        let decision = json!({ "behavior": "allow", "updatedInput": input });
        let output = json!({ "hookSpecificOutput": {
            "hookEventName": event, "permissionDecision": "allow", "updatedInput": input, "decision": decision,
        } });
        hook(event, tool, &output)
    };
    let launch = |agent: &str| json!({ "description": "d", "prompt": "p", "subagent_type": agent });
    for (tool, input, other) in [
        ("Bash", json!({ "command": "ls" }), json!({ "command": "touch new.txt" })),
        ("Bash", json!({ "command": "cat /etc/hostname" }), json!({ "command": "echo x > a.txt" })),
        (
            "Write",
            json!({ "file_path": "{plan_file}", "content": "p" }),
            json!({ "file_path": "a.txt", "content": "x" }),
        ),
        (
            "Edit",
            json!({ "file_path": "{plan_file}", "old_string": "", "new_string": "p" }),
            json!({ "file_path": "new.txt", "old_string": "", "new_string": "x" }),
        ),
        ("Task", launch("Explore"), launch("general-purpose")),
    ] {
        for event in ["PreToolUse", "PermissionRequest"] {
            let call = json!({ "name": tool, "input": input });
            let script =
                [reply(None, &[call]), says(None, "So be it."), reply(Some("general-purpose"), &tries(&["a.txt"]))];
            let run = attack(&rewrite(event, tool, other.clone()), &script).await;
            let (outcome, text) = outcomes(&run).pop().unwrap();
            if event == "PreToolUse" {
                assert_eq!(outcome, Outcome::Denied, "{tool} {other}: {text}");
            }
        }
    }
}

/// What is in the plan file's place, or leads to it.
#[tokio::test]
async fn nothing_beside_the_plan_file_is_reached_through_it() {
    let start = async || {
        let harness = victim(Harness::new()).mode(Mode::Plan).script("- reply: [text: Planning.]");
        harness.prompt("go").run().await
    };
    let write = |path: &str| {
        let steps = json!([
            { "reply": [
                { "tool": { "name": "Write", "input": { "file_path": path, "content": "changed" } } },
                { "tool": { "name": "NotebookEdit", "input": { "notebook_path": path, "cell_id": "c", "new_source": "x" } } },
                { "tool": { "name": "TodoWrite", "input": { "todos": [] } } },
            ] },
            { "reply": [{ "text": "Done." }] },
        ]);
        steps.to_string()
    };
    type Prepare = fn(&Path, &Path);
    let link: Prepare = |plan, project| std::os::unix::fs::symlink(project.join("a.txt"), plan).unwrap();
    let hard: Prepare = |plan, project| std::fs::hard_link(project.join("a.txt"), plan).unwrap();
    let folder: Prepare = |plan, _| std::fs::create_dir(plan).unwrap();
    let dangling: Prepare = |plan, project| std::os::unix::fs::symlink(project.join("new.txt"), plan).unwrap();
    let nothing: Prepare = |_, _| ();
    let beside: Prepare = |plan, project| std::os::unix::fs::symlink(plan, project.join("way.md")).unwrap();
    let plans: Prepare =
        |plan, project| std::os::unix::fs::symlink(plan.parent().unwrap(), project.join("way")).unwrap();
    for (prepare, path, want) in [
        (link, "{plan_file}", Outcome::Denied),
        (dangling, "{plan_file}", Outcome::Denied),
        (folder, "{plan_file}", Outcome::Error),
        // Another name of the file in the project: the plan becomes a file of its own.
        (hard, "{plan_file}", Outcome::Error),
        (nothing, "{UPPER}", Outcome::Denied),
        (nothing, "{plan_file}/../../plans/other.md", Outcome::Denied),
        (nothing, "{plan_file}/../x/../{name}", Outcome::Ok),
        // It leads to the plan file and nowhere else.
        (beside, "way.md", Outcome::Ok),
        (plans, "way/{name}", Outcome::Ok),
        (plans, "way/other.md", Outcome::Denied),
        (nothing, "{plan_file}", Outcome::Ok),
    ] {
        let run = start().await;
        let project = run.project();
        let slug = run.session().facts().plan_slug.clone().unwrap();
        let plan = run.home().canonicalize().unwrap().join(format!("plans/{slug}.md"));
        prepare(&plan, &project);
        let before = all(&project);
        let upper = plan.with_file_name(slug.to_uppercase()).with_extension("md").display().to_string();
        let path = path.replace("{UPPER}", &upper).replace("{name}", &format!("{slug}.md"));
        let run = Harness::after(run).script(&write(&path)).prompt("go").run().await;
        let outcomes: Vec<Outcome> = outcomes(&run).into_iter().map(|(outcome, _)| outcome).collect();
        assert_eq!(outcomes.len(), 3, "{}", run.trace());
        assert_eq!((outcomes[0], outcomes[2]), (want, Outcome::Ok), "{path}: {}", run.trace());
        assert_ne!(outcomes[1], Outcome::Ok, "{path}: {}", run.trace());
        assert!(all(&project) == before, "{path}: {}", run.trace());
    }
}

#[test]
fn a_kill_in_mid_planning_leaves_the_session_in_plan_mode() {
    let program = Program::new().file("a.txt", "one\n");
    let planning = program.script(
        "plan.yaml",
        r##"
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# Half a plan\n"}}]
- reply: [text: More to come., delay_ms: 600000, text: never.]
"##,
    );
    let args = ["-p", "/plan change a.txt", "--allowed-tools", "Bash", "Write", "--offline-script", &planning];
    let mut child =
        program.command(Program::binary(), &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let last = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let said = || {
        program.logs().iter().any(|log| std::fs::read_to_string(log).is_ok_and(|text| text.contains("More to come")))
    };
    while !said() && std::time::Instant::now() < last {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = snapshot(&program.project());
    let tries = program.script(
        "try.yaml",
        r##"
- reply:
  - tool: {name: Bash, input: {command: "echo x > a.txt"}}
  - tool: {name: Write, input: {file_path: new.txt, content: x}}
  - tool: {name: Edit, input: {file_path: "{plan_file}", old_string: Half a, new_string: The}}
- reply: [text: Still planning.]
"##,
    );
    for flags in [&[][..], &["--permission-mode", "plan"]] {
        let flags =
            [&["-p", "go", "--continue", "--allowed-tools", "Bash", "Write", "--offline-script", &tries], flags];
        let done = program.run(&flags.concat());
        assert_eq!((done.code, done.out.as_str()), (Some(0), "Still planning.\n"), "{}", done.err);
        assert!(snapshot(&program.project()) == before, "{done:?}");
    }
    let plans: Vec<PathBuf> =
        std::fs::read_dir(program.home().join(".claude/plans")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(plans.len(), 1, "the same plan file: {plans:?}");
    assert_eq!(std::fs::read_to_string(&plans[0]).unwrap(), "# The plan\n");
}
