//! What shell commands change is undone and redone like edits, no matter who runs them, also after a kill; the horror cases of other
//! agents by name.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use cocode::permission::Mode;
use cocode::protocol::Event;
use serde_json::json;

use super::support::harness::{Harness, Ran};
use super::support::program::Program;

/// Longest wait for anything; only a fault takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Modes and contents of everything below a folder.
type Tree = BTreeMap<PathBuf, String>;

fn tree(root: &Path) -> Tree {
    fn walk(root: &Path, folder: &Path, tree: &mut Tree) {
        let meta = fs::symlink_metadata(folder).unwrap();
        let told = if meta.is_dir() {
            fs::read_dir(folder).unwrap().for_each(|entry| walk(root, &entry.unwrap().path(), tree));
            "folder".to_owned()
        } else if meta.is_symlink() {
            fs::read_link(folder).unwrap().display().to_string()
        } else {
            String::from_utf8_lossy(&fs::read(folder).unwrap()).into_owned()
        };
        let mode = meta.permissions().mode() & 0o7777;
        tree.insert(folder.strip_prefix(root).unwrap().to_owned(), format!("{mode:o} {told}"));
    }
    let mut found = Tree::new();
    walk(root, root, &mut found);
    found
}

fn shell(folder: &Path, script: &str) {
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
        command.env(who, "someone");
    }
    assert!(command.status().unwrap().success(), "{script}");
}

/// A reply that calls the shell, and one that ends the turn.
fn runs(line: &str) -> String {
    let call =
        json!([{"reply": [{"tool": {"name": "Bash", "input": {"command": line}}}]}, {"reply": [{"text": "Done."}]}]);
    call.to_string()
}

fn bypassing() -> Harness {
    Harness::new().mode(Mode::Bypass)
}

/// What calls came to, line by line.
fn results(ran: &Ran) -> Vec<String> {
    let trace = ran.trace();
    trace.lines().filter_map(|line| line.strip_prefix("toolresult ")).map(str::to_owned).collect()
}

/// What one line of the model's did, in a folder that a script has set up, is undone, redone and undone again, each by a
/// process of its own that resumes the session.
async fn check(before: &str, line: &str, told: &str) {
    let harness = bypassing().script(&runs(line));
    let project = harness.project();
    shell(&project, before);
    let old = tree(&project);
    let ran = harness.prompt("go").run().await;
    assert_eq!(results(&ran), [told], "{line}");
    let new = tree(&project);
    assert_ne!(old, new, "{line}");
    let ran = Harness::after(ran).prompt("/undo").run().await;
    assert_eq!(tree(&project), old, "undo of {line}: {}", ran.trace());
    let ran = Harness::after(ran).prompt("/redo").run().await;
    assert_eq!(tree(&project), new, "redo of {line}: {}", ran.trace());
    let ran = Harness::after(ran).prompt("/undo").run().await;
    assert_eq!(tree(&project), old, "second undo of {line}: {}", ran.trace());
}

#[tokio::test]
async fn commands_are_undone_like_edits() {
    let some = "printf 'one\\ntwo\\n' > a; printf b > b; chmod 600 b; mkdir -p d/e; printf f > d/e/f; ln -s a l";
    check(some, "echo three >> a; rm b; mkdir n; echo x > n/y", "Ok: [created n/y; changed a; deleted b]").await;
    check(some, "rm -rf d l; false", "Error: [deleted d/e/f, l]⏎[Exit code 1]").await;
    check(
        some,
        "python3 -c 'open(\"a\", \"w\").write(\"py\")' && mv a d/e/f && echo ok",
        "Ok: ok⏎[changed d/e/f; deleted a]",
    )
    .await;
}

const REPOSITORY: &str = "git init -q .; echo 1 > tracked; echo out/ > .gitignore; git add .; git commit -qm one; \
    echo 2 > tracked; git add tracked; echo 3 > tracked; mkdir out; echo built > out/a; echo mine > untracked";

/// openai/codex#8214: undo by dangling commits destroyed the user's index.
#[tokio::test]
async fn codex_8214_the_index_is_never_touched() {
    check(REPOSITORY, "echo x > tracked; rm untracked", "Ok: [changed tracked; deleted untracked]").await;
}

/// google-gemini/gemini-cli#13331: a restore deleted nearly all files of a repository.
#[tokio::test]
async fn gemini_13331_nothing_is_deleted_that_was_not_seen_being_created() {
    let harness = bypassing().script(&runs("mkdir n; echo x > n/x; echo y > a/1"));
    let project = harness.project();
    shell(&project, "for d in a b c; do mkdir $d; for i in $(seq 50); do echo $i > $d/$i; done; done");
    let ran = harness.prompt("go").run().await;
    shell(&project, "echo mine > n/mine; mkdir later; echo mine > later/mine; echo mine > b/more");
    let before = tree(&project).len();
    let _ran = Harness::after(ran).prompt("/undo").run().await;
    // Of all that is there one file alone was made by the command.
    assert_eq!(tree(&project).len(), before - 1);
    assert!(!project.join("n/x").exists() && project.join("n/mine").exists());
    assert_eq!(fs::read_to_string(project.join("a/1")).unwrap(), "1\n");
}

/// cline/cline#1675: a checkpoint's `git clean` deleted untracked output.
#[tokio::test]
async fn cline_1675_untracked_output_survives() {
    let told = "Ok: [deleted out/a, untracked]";
    check(REPOSITORY, "git clean -fdxq", told).await;
}

/// #14367: the ignore file was reverted before a clean, which then deleted what had been ignored.
#[tokio::test]
async fn a_reverted_ignore_file_deletes_nothing_14367() {
    let harness = bypassing().script(&runs("echo data/ >> .gitignore"));
    let project = harness.project();
    shell(&project, "git init -q .; echo out/ > .gitignore; git add .; git commit -qm one");
    let old = tree(&project);
    let ran = harness.prompt("go").run().await;
    shell(&project, "mkdir data; echo gigabytes > data/set");
    let _ran = Harness::after(ran).prompt("/undo").run().await;
    assert_eq!(fs::read_to_string(project.join("data/set")).unwrap(), "gigabytes\n");
    shell(&project, "rm -r data");
    assert_eq!(tree(&project), old);
}

/// anthropics/claude-code#93045: what Bash changed is not restored by a rewind.
#[tokio::test]
async fn claude_93045_what_bash_changed_is_restored() {
    let before =
        "echo one > a; echo two > b; mkdir d; echo f > d/f; printf '#!/bin/sh\\necho x > made\\n' > run; chmod +x run";
    let told = "Ok: [created e/f, made; changed a; deleted b, d/f]";
    check(before, "sed -i s/one/ONE/ a; rm b; mv d e; ./run", told).await;
}

/// The user's own lines, and those of two sub-agents that run side by side.
#[tokio::test]
async fn whoever_runs_them() {
    let harness = bypassing().file("a", "one\n");
    let project = harness.project();
    let old = tree(&project);
    let ran = harness.prompt("!echo two >> a; echo x > made").prompt("/undo").run().await;
    assert!(ran.trace().contains("[created made; changed a]"), "{}", ran.trace());
    assert_eq!(tree(&project), old, "{}", ran.trace());

    // Each line is undone and redone by itself, and so is what came before them.
    let model = json!([{"reply": [{"tool": {"name": "Write", "input": {"file_path": "f", "content": "model\n"}}}]}, {"reply": [{"text": "Done."}]}]);
    let harness = bypassing().script(&model.to_string());
    let project = harness.project();
    let mut ran =
        harness.prompt("go").prompt("!echo 1 > g").prompt("!echo 2 >> g").prompt("!true").prompt("!rm f").run().await;
    let held = || ["f", "g"].map(|name| fs::read_to_string(project.join(name)).unwrap_or_default());
    for (command, told, want) in [
        ("/undo", "!rm f", ["model\n", "1\n2\n"]),
        ("/undo", "!echo 2 >> g", ["model\n", "1\n"]),
        ("/undo", "!echo 1 > g", ["model\n", ""]),
        ("/undo", "go", ["", ""]),
        ("/redo", "", ["model\n", ""]),
        ("/redo", "", ["model\n", "1\n"]),
        ("/redo", "", ["model\n", "1\n2\n"]),
        ("/redo", "", ["", "1\n2\n"]),
    ] {
        ran = Harness::after(ran).prompt(command).run().await;
        assert_eq!(held(), want, "{command} {told}: {}", ran.trace());
        assert!(ran.trace().contains(told), "{command} {told}: {}", ran.trace());
    }

    let task = json!({"tool": {"name": "Task", "input": {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}}});
    let bash = |line: &str| json!({"for": "agent:general-purpose", "reply": [{"tool": {"name": "Bash", "input": {"command": line}}}]});
    let done = json!({"for": "agent:general-purpose", "reply": [{"text": "Done."}]});
    // Of a file that both write in one moment nobody can tell whose it was: it is refused, which is not what is tried here.
    let line = "for i in $(seq 30); do echo $$ > f$i.$$; mkdir -p s/t; echo x > s/t/$$.$i; done";
    let steps =
        json!([{"reply": [task, task]}, bash(line), bash(line), done, done, {"reply": [{"text": "All done."}]}]);
    let harness = bypassing().script(&steps.to_string()).file("f1", "mine\n");
    let project = harness.project();
    let old = tree(&project);
    let ran = harness.prompt("go").run().await;
    let new = tree(&project);
    assert_eq!(new.len(), old.len() + 60 + 2 + 60, "{}", ran.trace());
    let log = fs::read_to_string(ran.log()).unwrap();
    assert_eq!(log.matches("\"agent\":\"general-purpose\"").count(), 2);
    let ran = Harness::after(ran).prompt("/undo").run().await;
    assert_eq!(tree(&project), old, "{}", ran.trace());
    let ran = Harness::after(ran).prompt("/redo").run().await;
    assert_eq!(tree(&project), new, "{}", ran.trace());
}

#[tokio::test]
async fn what_cannot_be_undone_is_said_before_it_happens() {
    let big = "x".repeat(2 << 20);
    let harness = bypassing().set("undo.file_mb = 1").file("big", &big).script(&runs("echo y > big; echo z > small"));
    let ran = harness.prompt("go").run().await;
    let why = "it has 2 MiB, more than the 1 MiB that undo keeps of a file";
    let live: Vec<String> =
        ran.trace().lines().filter_map(|line| line.strip_prefix("output ")).map(str::to_owned).collect();
    assert_eq!(live, [format!("[Undo cannot restore big: {why}]⏎")]);
    assert_eq!(results(&ran), [format!("Ok: [created small; changed big; undo cannot restore: $P/big: {why}]")]);
    let ran = Harness::after(ran).prompt("/undo").run().await;
    let trace = ran.trace();
    assert!(!ran.project().join("small").exists() && trace.contains("more than the 1 MiB"), "{trace}");
}

#[tokio::test]
async fn it_can_be_turned_off() {
    let harness = bypassing().set("undo.commands = false").script(&runs("echo x > made"));
    let ran = harness.prompt("go").run().await;
    assert_eq!(results(&ran), ["Ok: (no output)"]);
    let ran = Harness::after(ran).prompt("/undo").run().await;
    assert!(ran.trace().contains("not undone: changes made by echo x > made"), "{}", ran.trace());
    assert!(ran.project().join("made").exists());
}

#[tokio::test]
async fn hooks_hear_of_the_files() {
    let seen =
        "python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)[\"tool_response\"][\"files\"]))' > seen";
    let hooks =
        json!({"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": seen}]}]}});
    let harness =
        bypassing().set(&toml::to_string(&hooks).unwrap()).file("a", "").script(&runs("echo x > a; echo x > b"));
    let ran = harness.prompt("go").run().await;
    let told: serde_json::Value = serde_json::from_str(&ran.read("seen")).unwrap();
    let path = |name: &str| ran.project().join(name);
    assert_eq!(told, json!({"created": [path("b")], "changed": [path("a")], "deleted": []}));
}

/// A deny rule for edits holds for whatever a command does, not only for what its text says.
#[tokio::test]
async fn a_file_that_a_rule_keeps_is_not_changed() {
    let harness = bypassing().set("permissions.deny = [\"Edit(keep)\"]").file("keep", "old");
    let script = "import sys\nname = 'k' + 'eep'\nopen(name, 'w').write('new')\n";
    let ran =
        harness.file("change.py", script).script(&runs("python3 change.py 2>&1 | tail -1")).prompt("go").run().await;
    assert_eq!(ran.read("keep"), "old");
    let told = "Ok: PermissionError: [Errno 13] Permission denied: 'keep'⏎[A rule of the user's forbids changing keep]";
    assert_eq!(results(&ran), [told]);
}

/// SIGKILL in the middle of a command: the session that is resumed undoes what it did until then.
#[test]
fn a_kill_in_the_middle_is_undone_after_a_resume() {
    let line = "for i in $(seq 200); do rm f$i; echo x > n$i; done; touch ready; sleep 1000";
    killed_in_the_middle(&runs(line));
    // One that no call waits for is undone like any other.
    killed_in_the_middle(&(super::background::starts(line) + "- repeat: 9\n  reply: [text: It runs.]\n"));
}

fn killed_in_the_middle(script: &str) {
    let program = Program::new().env("COCODE_SANDBOXED", "1");
    let project = program.project();
    shell(&project, "for i in $(seq 200); do echo $i > f$i; done");
    let old = tree(&project);
    let script = program.script("script.yaml", script);
    let args = ["-p", "go", "--offline-script", &script, "--dangerously-skip-permissions"];
    let mut child = program.command(Program::binary(), &args).spawn().unwrap();
    let begun = Instant::now();
    while !project.join("ready").exists() {
        assert!(begun.elapsed() < PATIENCE, "the command takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let done = program.run(&["--continue", "-p", "/undo", "--offline-script", &script]);
    assert_eq!(tree(&project), old, "{done:?}");
}

/// A command that nobody could record is named, and what it changed is told all the same.
#[tokio::test]
async fn without_a_record_the_changes_are_named() {
    let harness = bypassing().set("sandbox.enabled = true").without_helper().file("a", "one");
    let ran = harness.script(&runs("echo two > a; echo x > b")).prompt("go").run().await;
    let told =
        "Ok: [created b; changed a; undo cannot restore: what commands change, because they cannot be recorded here]";
    assert_eq!(results(&ran), [told]);
    let ran = Harness::after(ran).prompt("/undo").run().await;
    assert!(ran.trace().contains("not undone: changes made by echo two > a"), "{}", ran.trace());
    assert!(!ran.events.iter().any(|event| matches!(event, Event::Error { .. })), "{}", ran.trace());
}
