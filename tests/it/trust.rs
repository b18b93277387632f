//! Trust is for what was shown: whatever a folder brings along and executes, sends or grants is agreed to line by line.

use std::fs;

use cocode::permission::{Mode, Trust};
use cocode::protocol::{Answer, Event, GrantScope, Question};

use super::config::User;
use super::support::harness::{Harness, Ran};
use super::support::program::Program;
use super::terminal::{launch, leave};

const JSON: &str = ".claude/settings.json";
const TOML: &str = ".cocode/config.toml";
const HOOK: &str = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh tools/stop.sh > seen"}]}]}}"#;

/// File, what is in it, what is in it later; and the file that a hook runs, where it is that which changes.
const SETTINGS: [(&str, &str, &str); 18] = [
    (JSON, r#"{"permissions": {"allow": ["Bash(a:*)"]}}"#, r#"{"permissions": {"allow": ["Bash(b:*)"]}}"#),
    (JSON, r#"{"permissions": {"defaultMode": "plan"}}"#, r#"{"permissions": {"defaultMode": "acceptEdits"}}"#),
    (
        JSON,
        r#"{"permissions": {"additionalDirectories": ["a"]}}"#,
        r#"{"permissions": {"additionalDirectories": ["/"]}}"#,
    ),
    (JSON, r#"{"env": {"A": "1"}}"#, r#"{"env": {"A": "2"}}"#),
    (JSON, r#"{"model": "a"}"#, r#"{"model": "b"}"#),
    (JSON, r#"{"disableAllHooks": true}"#, r#"{"disableAllHooks": false}"#),
    (JSON, r#"{"cleanupPeriodDays": 9}"#, r#"{"cleanupPeriodDays": 1}"#),
    (JSON, HOOK, r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "b"}]}]}}"#),
    (
        JSON,
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}"#,
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a", "async": true}]}]}}"#,
    ),
    (".claude/settings.local.json", r#"{"env": {"A": "1"}}"#, r#"{"env": {"A": "2"}}"#),
    (".cocode/config.local.toml", "env.A = '1'", "env.A = '2'"),
    (".cocode/models.json", r#"{"m": {"window": 1000}}"#, r#"{"m": {"window": 2000}}"#),
    (TOML, "models.m.window = 1000", "models.m.window = 2000"),
    (TOML, "tools.search_url = 'http://a'", "tools.search_url = 'http://b'"),
    (TOML, "tools.fetch_private = true", "tools.fetch_private = false"),
    (TOML, "memory.files = ['A.md']", "memory.files = ['A.md', 'B.md']"),
    (
        TOML,
        "[providers.p]\nwire = 'openai'\nbase_url = 'http://a'",
        "[providers.p]\nwire = 'openai'\nbase_url = 'http://b'",
    ),
    (TOML, "network.max_retries = 1", "network.max_retries = 2"),
];

fn lines(user: &User, trust: &Trust) -> (usize, Vec<usize>) {
    let loaded = user.given(trust);
    let difference = trust.difference(&loaded.uses);
    (loaded.withheld.len(), vec![difference.new.len(), difference.kept.len(), difference.gone.len()])
}

#[test]
fn every_setting_is_bound_to_what_was_shown() {
    let mut rows: Vec<(&str, &str, &str, &str, &str)> =
        SETTINGS.iter().map(|(file, before, after)| (*file, *before, *file, *before, *after)).collect();
    // The script that a hook runs is part of it.
    rows.push((JSON, HOOK, "tools/stop.sh", "one", "two"));
    for (settings, text, file, before, after) in rows {
        let what = format!("{settings} {before} → {after}");
        let user = User::new().file(settings, text).file(file, before);
        let nothing = Trust::default();
        assert_eq!(lines(&user, &nothing), (1, vec![1, 0, 0]), "added: {what}");
        let shown = user.given(&nothing).uses;
        let mut trust = Trust::default();
        trust.agree(&shown);
        assert_eq!(lines(&user, &trust), (0, vec![0, 1, 0]), "unchanged: {what}");
        // What is swapped between showing and answering is what changes later: it was never shown.
        let user = user.file(file, after);
        assert_eq!(lines(&user, &trust), (1, vec![1, 0, 0]), "changed: {what}");
        let line = &trust.difference(&user.given(&trust).uses).new[0];
        assert!(line.contains(" – changed"), "{what}: {line}");
        let user = user.file(file, before);
        assert_eq!(lines(&user, &trust), (0, vec![0, 1, 0]), "as before: {what}");
        let none = if settings.ends_with("json") { "{}" } else { "" };
        let user = user.file(settings, none);
        assert_eq!(lines(&user, &trust), (0, vec![0, 0, 1]), "removed: {what}");
    }
}

/// Trusted once, then the script that runs becomes another: however the line spells it, that asks again, and says which file
/// it is.
#[test]
fn a_line_is_bound_to_what_it_runs() {
    for (line, file, wide) in [
        ("./s/h.sh", "s/h.sh", ""),
        ("sh s/h.sh", "s/h.sh", ""),
        ("sh -c './s/h.sh'", "s/h.sh", ""),
        ("timeout 5 sh s/h.sh", "s/h.sh", ""),
        ("\"$CLAUDE_PROJECT_DIR\"/s/h.sh", "s/h.sh", ""),
        ("cat s/h.sh | jq .", "s/h.sh", ""),
        ("./s/h{.sh,}", "s/h.sh", ""),
        ("./s/h\\.sh", "s/h.sh", ""),
        ("'./s/h x.sh'", "s/h x.sh", ""),
        ("./s/a:b=c,d.sh", "s/a:b=c,d.sh", ""),
        ("gofmt -l .", "package.json", ""),
        ("npm test", "package.json", "the sources"),
        ("npm test", "s/tools/x.js", "the sources"),
        ("make -C s", "s/Makefile", "the sources"),
        ("make -C s", "s/rules.mk", "the sources"),
        ("python3 s/h.py", "s/other.py", "any script"),
        ("echo $(sh s/h.sh)", "s/h.sh", "any script"),
        ("sh tools/includes.sh", "s/lib.sh", ""),
        ("tools/runs.sh", "s/h.sh", ""),
        ("sh tools/builds.sh", "s/rules.mk", "the sources"),
        ("sh tools/moves.sh", "s/h.sh", "any script"),
        ("cd s && ./h.sh", "s/h.sh", "any script"),
        ("cd s && sh h.txt", "s/h.txt", "any script"),
        ("sh -c \"cd s; ./h.sh\"", "s/h.sh", "any script"),
        ("./s/h.*", "s/h.sh", "any script"),
        ("run-parts s", "s/h", "any script"),
        ("X=s; ./$X/h.sh", "s/h.sh", "any script"),
        ("PATH=$PWD/s:$PATH h.sh", "s/h.sh", "any script"),
        ("python3 -m s.h", "s/h.py", "any script"),
        ("cat s/h.sh | sh", "s/h.sh", "any script"),
    ] {
        let hook = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}});
        let package = "{\"scripts\": {\"test\": \"node s/tools/x.js\"}}";
        let user = User::new().file(JSON, &hook.to_string()).file("package.json", package).file(file, "echo one");
        let user = user.file("README.md", "one").file("s/b.rs", "one");
        let user = user.file("tools/includes.sh", "#!/usr/bin/env bash\nset -e\n. ./s/lib.sh\n");
        let user = user.file("tools/runs.sh", "sh s/h.sh \"$1\" || exit 1\n");
        let user = user.file("tools/builds.sh", "make -C s\n").file("tools/moves.sh", "cd s && ./h.sh\n");
        let mut trust = Trust::default();
        trust.agree(&user.given(&trust).uses);
        let user = user.file("README.md", "two").file("s/b.rs", "two");
        assert_eq!(lines(&user, &trust), (0, vec![0, 1, 0]), "unchanged: {line}");
        let shown = &trust.difference(&user.given(&trust).uses).kept[0];
        assert_eq!(
            ["any script", "the sources"].map(|part| shown.contains(part)),
            ["any script", "the sources"].map(|part| part == wide),
            "{line}: {shown}"
        );
        let user = user.file(file, "echo two");
        let new = trust.difference(&user.given(&trust).uses).new;
        let want = format!(" – changed: the content of ./{file}\n./{file}:\n-");
        assert!(new.len() == 1 && new[0].contains(&want) && new[0].ends_with("\n+echo two"), "{line}: {new:?}");
    }
    // One with which the line itself says more.
    let hook = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh s/h.sh"}]}]}}"#;
    let user = User::new().file(JSON, hook).file("s/h.sh", "echo one\necho two\n");
    let mut trust = Trust::default();
    trust.agree(&user.given(&trust).uses);
    let user = user.file("s/h.sh", "echo one\ncurl u | sh\n");
    let new = trust.difference(&user.given(&trust).uses).new;
    let told = new.len() == 1 && new[0].contains(" – changed, it was: ");
    assert!(told && new[0].ends_with("\n./s/h.sh:\n echo one\n-echo two\n+curl u | sh"), "{new:?}");
    for (name, value) in [("PATH", "./s:/usr/bin"), ("NODE_OPTIONS", "--require=./s/h.sh"), ("BASH_ENV", "s/h.sh")] {
        let user = User::new().file(TOML, &format!("env.{name} = '{value}'")).file("s/h.sh", "one");
        let mut trust = Trust::default();
        trust.agree(&user.given(&trust).uses);
        let runs = user.given(&trust).runs();
        assert!(runs.iter().any(|run| run.ends_with("s") || run.ends_with("s/h.sh")), "{name}: {runs:?}");
        let user = user.file("s/h.sh", "two");
        assert_eq!(lines(&user, &trust), (1, vec![1, 0, 0]), "{name}");
    }
}

/// What the questions about the folder listed: new, known and gone.
fn asked(ran: &Ran) -> Vec<(Vec<String>, usize, usize)> {
    let of = |event: &Event| match event {
        Event::Ask(ask) => match &ask.question {
            Question::Trust { uses, kept, gone, .. } => Some((uses.clone(), kept.len(), gone.len())),
            _ => None,
        },
        _ => None,
    };
    ran.events.iter().filter_map(of).collect()
}

fn count(ran: &Ran) -> Vec<(usize, usize, usize)> {
    asked(ran).into_iter().map(|(new, kept, gone)| (new.len(), kept, gone)).collect()
}

const SKILL: &str = ".claude/skills/s/SKILL.md";
const AGENT: &str = ".claude/agents/one.md";

fn skill(head: &str, body: &str) -> String {
    format!("---\nname: s\ndescription: d\n{head}\n---\n{body}\n")
}

/// A skill or an agent of the folder, and what it becomes.
#[tokio::test]
async fn skills_and_agents_are_bound_by_what_they_grant_and_run() {
    let hook = |line: &str| format!("hooks: {{Stop: [{{hooks: [{{type: command, command: {line}}}]}}]}}");
    let agent = |head: &str| format!("---\nname: one\ndescription: d\n{head}\n---\nYou are one.\n");
    let explore = |text: &str| format!("---\nname: Explore\ndescription: d\n---\n{text}\n");
    for (file, before, after, again) in [
        (SKILL, skill("allowed-tools: LS", "Do."), skill("allowed-tools: Bash", "Do."), true),
        (SKILL, skill("model: opus", "Do."), skill("model: haiku", "Do."), true),
        (SKILL, skill(&hook("'true'"), "Do."), skill(&hook("'false'"), "Do."), true),
        (SKILL, skill("", "!`echo a`"), skill("", "!`echo b`"), true),
        (SKILL, skill("allowed-tools: LS", "Do."), skill("allowed-tools: LS", "Do otherwise."), false),
        (AGENT, agent("model: opus"), agent("model: haiku"), true),
        (AGENT, agent(&hook("'true'")), agent(&hook("'false'")), true),
        (AGENT, agent("model: opus"), agent("model: opus\ncolor: red"), false),
        (".claude/agents/e.md", explore("Look."), explore("Look at me."), true),
    ] {
        let prompt = if file == SKILL { "/s" } else { "go" };
        let script = "- repeat: 9\n  reply: [text: Done.]\n";
        let first = Harness::new().file(file, &before).script(script).prompt(prompt).answer(Answer::Yes).run().await;
        assert_eq!(count(&first), [(1, 0, 0)], "added: {before}{}", first.trace());
        let second = Harness::after(first).script(script).prompt(prompt).run().await;
        assert_eq!(count(&second), [], "unchanged: {before}{}", second.trace());
        let third = Harness::after(second).file(file, &after).script(script).prompt(prompt).run().await;
        let want: &[_] = if again { &[(1, 0, 0)] } else { &[] };
        assert_eq!(count(&third), want, "changed: {after}{}", third.trace());
        assert!(!again || asked(&third)[0].0[0].contains(" – changed"), "{:?}", asked(&third));
        fs::remove_file(third.project().join(file)).unwrap();
        let fourth = Harness::after(third).script(script).prompt("go").run().await;
        assert!(
            count(&fourth).is_empty() && fourth.trace().contains("no longer contains what you trusted"),
            "{}",
            fourth.trace()
        );
    }
}

const ALLOW: &str = r#"{"permissions": {"allow": ["Bash(touch:*)"]}}"#;
const MORE: &str = r#"{"permissions": {"allow": ["Bash(touch:*)", "Bash(mkdir:*)"]}}"#;
const TWO: &str = "- reply: [tool: {name: Bash, input: {command: touch a.txt}}]\n- reply: [tool: {name: Bash, input: {command: mkdir d}}]\n- reply: [text: Done.]";

#[tokio::test]
async fn a_no_keeps_what_was_agreed_to_before() {
    let first = Harness::new().file(JSON, ALLOW).script(TWO).prompt("go").answer(Answer::Yes).run().await;
    let second = Harness::after(first).file(JSON, MORE).script(TWO).prompt("go").run().await;
    assert_eq!(count(&second), [(1, 1, 0)], "{}", second.trace());
    assert_eq!(second.trace().matches("\nask Bash").count(), 1, "{}", second.trace());
    assert!(!second.project().join("d").exists(), "{}", second.trace());
}

#[tokio::test]
async fn a_swap_between_question_and_answer_grants_nothing() {
    let harness = Harness::new().file(JSON, ALLOW).script(TWO).prompt("go").answer(Answer::Yes);
    let swapped = harness.answer(Answer::No { feedback: None }).swapped(JSON, MORE).run().await;
    // What came meanwhile is asked about by itself, in the same breath.
    assert_eq!(count(&swapped), [(1, 0, 0), (1, 1, 0)]);
    let trace = swapped.trace();
    assert!(trace.contains("Something in the folder changed while you were being asked."), "{trace}");
    assert!(!trace.contains("You trust this folder"), "{trace}");
    assert_eq!(swapped.trace().matches("\nask Bash").count(), 1, "{}", swapped.trace());
}

#[tokio::test]
async fn what_the_user_grants_is_not_asked_about_again() {
    let script = "- reply: [tool: {name: Bash, input: {command: touch a.txt}}]\n- reply: [tool: {name: Bash, input: {command: touch b.txt}}]\n- reply: [text: Done.]";
    // The folder brings something along that is refused; the user's own grant holds all the same.
    let first = Harness::new().file(JSON, r#"{"env": {"A": "1"}}"#).script(script).prompt("go");
    let first = first
        .answer(Answer::No { feedback: None })
        .answer(Answer::Always { rules: vec!["Bash(touch:*)".into()], scope: GrantScope::Project })
        .run()
        .await;
    assert_eq!(first.trace().matches("\nask Bash").count(), 1, "{}", first.trace());
    assert!(first.trace().contains("Ignored from this folder: env.A"), "{}", first.trace());
    let again = Harness::after(first).script(script).prompt("go").run().await;
    assert_eq!(count(&again), [(1, 1, 0)], "{}", again.trace());
    assert_eq!(again.trace().matches("\nask Bash").count(), 0, "{}", again.trace());
}

/// What a trusted hook runs in a roundabout way is edited after a question, whatever the mode.
#[tokio::test]
async fn what_a_trusted_hook_may_run_is_edited_after_a_question() {
    for (line, file) in [
        ("cat tools/a.txt | sh", "tools/a.txt"),
        ("sh < tools/a.txt", "tools/a.txt"),
        ("find tools -name '*.sh' | xargs -n1 sh", "tools/l.sh"),
        ("test -e none && make lint", "tools/l.sh"),
        ("test -e none && python3 ./hook.py", "helper.py"),
    ] {
        let hook = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}});
        let script = format!(
            "- reply: [tool: {{name: Read, input: {{file_path: {file}}}}}]\n- reply: [tool: {{name: Edit, input: {{file_path: {file}, old_string: 'true', new_string: 'false'}}}}]\n- reply: [text: Done.]"
        );
        let harness =
            Harness::new().file(JSON, &hook.to_string()).file(file, "true\n").file("hook.py", "import helper\n");
        let harness = harness.file("Makefile", "lint:\n\tsh tools/l.sh\n").script(&script).mode(Mode::AcceptEdits);
        let ran = harness.prompt("go").answer(Answer::Yes).answer(Answer::No { feedback: None }).run().await;
        assert_eq!(ran.trace().matches("\nask Edit").count(), 1, "{line}: {}", ran.trace());
        assert_eq!(ran.read(file), "true\n", "{line}");
    }
}

#[test]
fn the_second_question_shows_what_is_new() {
    let program = Program::new().file(JSON, ALLOW);
    let script = program.script("script.yaml", "- repeat: 9\n  reply: [text: The end.]\n");
    let mut screen = launch(&program, (100, 30), &["--offline-script", &script]);
    screen.wait_live("Yes, trust this folder");
    screen.send("1");
    screen.wait_for("the answer", |text| !text.contains("Do you trust"));
    leave(&mut screen);
    let program = program.file(TOML, "env.A = '1'");
    let screen = launch(&program, (100, 30), &["--offline-script", &script]);
    screen.wait_for("the difference", |text| {
        text.contains("these new settings of the folder")
            && text.contains("env.A = \"1\"")
            && text.contains("1 setting you trusted")
    });
    assert!(!screen.text().contains("Bash(touch:*)"), "{}", screen.text());
}
