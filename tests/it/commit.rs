//! `/commit` in real repositories: with the model in the binary, and over every wire.

use std::path::Path;
use std::process::Command;

use cocode::message::Outcome;
use cocode::protocol::{Answer, Event, Item};
use serde_json::json;

use crate::support::fake_api::{FakeApi, MODELS, Reply};
use crate::support::harness::{Harness, Ran};

/// Runs git; its output.
fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A repository with one commit, in the harness's project.
fn repository() -> Harness {
    let harness = Harness::new().file("a.txt", "one\n").file("b.txt", "one\n");
    let project = harness.project();
    git(&project, &["init"]);
    for (key, value) in [("user.name", "Ada"), ("user.email", "ada@example.org"), ("commit.gpgsign", "false")] {
        git(&project, &["config", key, value]);
    }
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "-m", "notes: begin"]);
    harness
}

fn subjects(ran: &Ran) -> Vec<String> {
    git(&ran.project(), &["log", "--format=%s"]).lines().map(str::to_owned).collect()
}

/// The last text of the model.
fn answer(ran: &Ran) -> String {
    let mut texts = ran.events.iter().filter_map(|event| match event {
        Event::Item(Item::Message { message, .. }) if message.origin.is_some() => Some(message.text()),
        _ => None,
    });
    texts.next_back().unwrap_or_else(|| panic!("no answer in\n{}", ran.trace()))
}

fn asked(ran: &Ran) -> Vec<String> {
    ran.trace().lines().filter(|line| line.starts_with("ask ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn no_repository_no_request() {
    let ran = Harness::new().script("[]").prompt("/commit").run().await;
    let trace = ran.trace();
    assert!(trace.contains("error This folder is not a git repository"), "{trace}");
    assert!(!trace.contains("turn started"), "{trace}");
}

#[tokio::test]
async fn what_is_staged_is_committed_and_nothing_else() {
    let run = repository().file("a.txt", "two\n").file("b.txt", "two\n").file("c.txt", "new\n");
    git(&run.project(), &["add", "a.txt"]);
    let ran = run.prompt("/commit").run().await;
    assert_eq!(subjects(&ran), ["a: update a.txt", "notes: begin"], "{}", ran.trace());
    assert_eq!(git(&ran.project(), &["status", "--porcelain"]), " M b.txt\n?? c.txt\n");
    assert_eq!(asked(&ran), Vec::<String>::new());
    let answer = answer(&ran);
    assert!(answer.contains("a: update a.txt") && answer.contains("Not committed: 2 files"), "{answer}");
}

#[tokio::test]
async fn the_user_may_name_what_to_stage_or_what_to_say() {
    async fn check(line: &str, stage: &[&str], subject: &str, left: &str) {
        let run = repository().file("a.txt", "two\n").file("b.txt", "two\n");
        if !stage.is_empty() {
            git(&run.project(), &[&["add"], stage].concat());
        }
        let ran = run.prompt(line).run().await;
        assert_eq!(subjects(&ran)[0], subject, "{line}: {}", ran.trace());
        assert_eq!(git(&ran.project(), &["status", "--porcelain"]), left, "{line}");
        assert_eq!(asked(&ran), Vec::<String>::new());
    }
    check("/commit everything", &[], "a: update a.txt and b.txt", "").await;
    check("/commit b.txt", &[], "b: update b.txt", " M a.txt\n").await;
    check("/commit it's what Ada asked for", &["a.txt"], "it's what Ada asked for", " M b.txt\n").await;
}

#[tokio::test]
async fn nothing_is_committed_where_that_would_be_wrong() {
    async fn check(run: Harness, want: &[&str]) {
        let before = git(&run.project(), &["rev-parse", "HEAD"]);
        let staged = git(&run.project(), &["diff", "--cached"]);
        let ran = run.prompt("/commit").run().await;
        let answer = answer(&ran);
        for want in want {
            assert!(answer.contains(want), "{want}: {answer}\n{}", ran.trace());
        }
        assert_eq!(git(&ran.project(), &["rev-parse", "HEAD"]), before);
        assert_eq!(git(&ran.project(), &["diff", "--cached"]), staged);
        assert_eq!(asked(&ran), Vec::<String>::new());
    }
    check(repository(), &["Nothing to commit"]).await;
    check(repository().file("b.txt", "two\n").file("c.txt", ""), &["nothing is staged", "`b.txt`", "`c.txt`"]).await;
    check(conflict("merge"), &["conflicts", "`a.txt`"]).await;
    check(conflict("rebase"), &["conflicts", "`a.txt`"]).await;
    for what in ["rebase", "cherry-pick"] {
        let resolved = conflict(what).file("a.txt", "both\n");
        git(&resolved.project(), &["add", "a.txt"]);
        check(resolved, &["Nothing was committed", &format!("`git {what} --continue`")]).await;
    }
}

/// On `theirs`, with `main` in conflict with it.
fn conflict(how: &str) -> Harness {
    let conflict = repository().file("a.txt", "ours\n");
    let project = conflict.project();
    git(&project, &["commit", "--all", "-m", "ours"]);
    git(&project, &["switch", "-c", "theirs", "HEAD~"]);
    std::fs::write(project.join("a.txt"), "theirs\n").unwrap();
    git(&project, &["commit", "--all", "-m", "theirs"]);
    assert!(git(&project, &[how, "main"]).contains("CONFLICT"));
    conflict
}

#[tokio::test]
async fn a_resolved_merge_is_concluded() {
    // The second one keeps what was there: nothing differs, and the merge is to be committed all the same.
    for (resolved, files) in [("both\n", "a.txt\n"), ("theirs\n", "")] {
        let run = conflict("merge").file("a.txt", resolved);
        git(&run.project(), &["add", "a.txt"]);
        let ran = run.prompt("/commit").run().await;
        let project = ran.project();
        assert_eq!(subjects(&ran)[0], "Merge branch 'main'", "{}", ran.trace());
        assert_eq!(git(&project, &["rev-list", "--parents", "-n", "1", "HEAD"]).split_whitespace().count(), 3);
        assert_eq!(git(&project, &["diff", "--name-only", "HEAD^1", "HEAD"]), files);
        assert_eq!(git(&project, &["status", "--porcelain"]), "");
        assert_eq!(asked(&ran), Vec::<String>::new());
    }
}

/// What every wire's model begins with, in each state of a repository; and what it reads when a hook refuses.
#[cfg(unix)]
#[tokio::test]
async fn over_every_wire_the_state_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let staged = || {
        let run = repository().file("a.txt", "two\n");
        git(&run.project(), &["add", "a.txt"]);
        run
    };
    /// Its name, a repository in it, and what the model is told.
    type State<'a> = (&'a str, &'a dyn Fn() -> Harness, &'a [&'a str]);
    let states: [State<'_>; 6] = [
        ("clean", &repository, &["nothing to commit"]),
        ("unstaged", &|| repository().file("b.txt", "two\n"), &[" M b.txt", "no changes added to commit"]),
        ("conflict", &|| conflict("merge"), &["UU a.txt", "You have unmerged paths"]),
        (
            "resolved",
            &|| {
                let run = conflict("merge").file("a.txt", "both\n");
                git(&run.project(), &["add", "a.txt"]);
                run
            },
            &["M  a.txt", "still merging"],
        ),
        (
            "detached",
            &|| {
                let run = staged();
                git(&run.project(), &["switch", "--detach"]);
                run
            },
            &["## HEAD (no branch)"],
        ),
        (
            "hook",
            &|| {
                let run = staged().file(".git/hooks/pre-commit", "#!/bin/sh\necho the linter says no\nexit 1\n");
                let hook = run.project().join(".git/hooks/pre-commit");
                std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
                run
            },
            &["M  a.txt"],
        ),
    ];
    for (wire, model) in MODELS {
        for (state, repository, wants) in states {
            let commit = Reply::turn().call("Bash", json!({ "command": "git commit -m 'notes: say two'" }));
            let api = match state {
                "hook" => FakeApi::start([commit, Reply::turn().text("The hook refused.")]),
                _ => FakeApi::start([Reply::turn().text("I see.")]),
            };
            let wire_name = serde_json::to_value(wire).unwrap();
            let ran = repository()
                .set(&format!(
                    "model = 'fake/{model}'\n[providers.fake]\nwire = {wire_name}\nbase_url = '{}'",
                    api.base_url(wire)
                ))
                .prompt("/commit")
                .run()
                .await;
            api.assert_clean();
            let received = api.received();
            for want in wants {
                assert!(received[0].raw.contains(want), "{wire:?}, {state}: {want} is not in {}", received[0].raw);
            }
            assert_eq!(asked(&ran), Vec::<String>::new(), "{wire:?}, {state}");
            if state == "hook" {
                assert!(received[1].raw.contains("the linter says no"), "{wire:?}: {}", received[1].raw);
                assert_eq!(subjects(&ran), ["notes: begin"], "{wire:?}");
            }
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_hook_that_refuses_loses_neither_message_nor_stage() {
    use std::os::unix::fs::PermissionsExt;
    let run = repository()
        .file("a.txt", "two\n")
        .file(".git/hooks/pre-commit", "#!/bin/sh\necho the linter says no\nexit 1\n");
    let project = run.project();
    std::fs::set_permissions(project.join(".git/hooks/pre-commit"), std::fs::Permissions::from_mode(0o755)).unwrap();
    git(&project, &["add", "a.txt"]);
    let ran = run.prompt("/commit").run().await;
    let answer = answer(&ran);
    for want in ["Nothing was committed", "the linter says no", "```text\na: update a.txt\n```"] {
        assert!(answer.contains(want), "{want}: {answer}");
    }
    assert_eq!(subjects(&ran), ["notes: begin"]);
    assert_eq!(git(&project, &["diff", "--cached", "--name-only"]), "a.txt\n");
    assert!(!ran.trace().contains("no-verify"), "the hook is not gone around");
}

#[tokio::test]
async fn a_commit_without_a_branch_is_told() {
    let run = repository().file("a.txt", "two\n");
    git(&run.project(), &["switch", "--detach"]);
    git(&run.project(), &["add", "a.txt"]);
    let ran = run.prompt("/commit").run().await;
    assert_eq!(subjects(&ran).len(), 2, "{}", ran.trace());
    assert!(answer(&ran).contains("git switch -c <name>"), "{}", answer(&ran));
}

#[tokio::test]
async fn the_rules_end_with_the_run() {
    let run = repository().file("a.txt", "two\n");
    git(&run.project(), &["add", "a.txt"]);
    let ran = run.prompt("/commit").prompt("run `git commit --allow-empty -m later`").run().await;
    assert_eq!(subjects(&ran).len(), 2, "{}", ran.trace());
    assert_eq!(asked(&ran).len(), 1, "{}", ran.trace());
}

/// A model that goes too far: only the commit happens unasked.
#[tokio::test]
async fn over_every_wire_exactly_the_skills_commands_run_unasked() {
    for (wire, model) in MODELS {
        let bash = |command: &str| Reply::turn().call("Bash", json!({ "command": command }));
        let api = FakeApi::start([
            bash("git diff --cached"),
            bash("git commit -m 'notes: say two' -m 'One was not enough.'"),
            bash("git push --force"),
            bash("git commit -m 'notes: again' --amend"),
            bash("git commit -m 'notes: again' --no-verify"),
            bash("git commit -m 'notes: again' -n"),
            bash("git commit -anm 'notes: again'"),
            bash("git commit -m 'notes: again' --ame"),
            bash("git commit -m 'notes: again' $HOOKS"),
            bash("git -c core.hooksPath=/dev/null commit -m 'notes: again'"),
            bash("GIT_CONFIG_COUNT=0 git commit -m 'notes: again'"),
            bash("git again -m 'notes: again'"),
            bash("git add -p"),
            bash("touch elsewhere"),
            bash("git log -n 1 --stat --format='%h %s'"),
            Reply::turn().text("Committed."),
        ]);
        let run = repository().file("a.txt", "two\n").file("b.txt", "two\n");
        git(&run.project(), &["add", "a.txt"]);
        let wire_name = serde_json::to_value(wire).unwrap();
        let ran = run
            .set(&format!(
                "model = 'fake/{model}'\n[providers.fake]\nwire = {wire_name}\nbase_url = '{}'",
                api.base_url(wire)
            ))
            .answer(Answer::No { feedback: Some("not that".into()) })
            .answer(Answer::No { feedback: Some("nor that".into()) })
            .prompt("/commit please")
            .run()
            .await;
        api.assert_clean();
        // What the model began with: the instructions, the state of the repository, and the user's words.
        let first = &api.received()[0].raw;
        for want in ["Make one git commit", "M  a.txt", " M b.txt", "notes: begin", "ARGUMENTS: please"] {
            assert!(first.contains(want), "{wire:?}: {want} is not in {first}");
        }
        assert_eq!(subjects(&ran), ["notes: say two", "notes: begin"], "{wire:?}: {}", ran.trace());
        assert_eq!(git(&ran.project(), &["status", "--porcelain"]), " M b.txt\n", "{wire:?}");
        let outcomes: Vec<Outcome> = ran
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Item(Item::Message { message, .. }) => {
                    Some(message.results().map(|result| result.outcome).collect())
                }
                _ => None,
            })
            .flat_map(|outcomes: Vec<Outcome>| outcomes)
            .collect();
        use Outcome::{Denied, Ok};
        // Four commands of the skill's own text come first.
        assert_eq!(outcomes, [&[Ok; 6][..], &[Denied; 12], &[Ok]].concat(), "{wire:?}: {}", ran.trace());
        // Only what no rule speaks of was asked.
        assert_eq!(asked(&ran).len(), 2, "{wire:?}: {:?}", asked(&ran));
        assert!(asked(&ran)[0].contains("git add -p"), "{wire:?}: {:?}", asked(&ran));
        assert!(asked(&ran)[1].contains("touch elsewhere"), "{wire:?}: {:?}", asked(&ran));
    }
}

/// What ships with the program grants nothing that the user did not call by its name: the model cannot give it to itself.
#[tokio::test]
async fn the_model_that_calls_the_skill_itself_has_to_ask() {
    let script = r#"
- reply: [tool: {name: Skill, input: {skill: commit}}]
- reply: [tool: {name: Bash, input: {command: "git commit -m hello"}}]
- reply: [text: Done.]
"#;
    let run = repository().file("a.txt", "two\n").script(script);
    git(&run.project(), &["add", "a.txt"]);
    let ran = run.prompt("look at the code").answer(Answer::No { feedback: None }).run().await;
    assert!(asked(&ran).iter().any(|line| line.contains("git commit -m hello")), "{}", ran.trace());
    assert_eq!(subjects(&ran), ["notes: begin"], "{}", ran.trace());
}

#[tokio::test]
async fn the_offline_model_writes_a_first_agents_file() {
    let ran =
        Harness::new().file("Cargo.toml", "").file("src/lib.rs", "").prompt("/init").answer(Answer::Yes).run().await;
    let text = ran.read("AGENTS.md");
    assert!(text.contains("- `cargo test`\n") && text.contains("- `src`\n"), "{text}");
    let ran = Harness::after(ran).prompt("/init").run().await;
    assert!(answer(&ran).contains("`AGENTS.md` already exists"), "{}", ran.trace());
}

/// What is shipped reads without a fault, and grants only what it says.
#[test]
fn shipped_skills_are_sound() {
    use cocode::commands::catalog::BUNDLED;
    let names: Vec<&str> = BUNDLED.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["commit", "init", "review-pr", "security-review", "simplify"]);
    for (name, text) in BUNDLED {
        let skill = cocode::commands::Skill::bundled(name, text);
        assert_eq!(skill.name, *name);
        assert!(skill.has_description && skill.description.len() <= 120, "{name}");
        assert!(text.len() < 15_000, "{name} would be cut");
        for rule in skill.allowed_tools.iter().chain(&skill.disallowed_tools) {
            cocode::tools::RULES.rule(rule).unwrap_or_else(|error| panic!("{name}: {rule}: {error}"));
        }
    }
}
