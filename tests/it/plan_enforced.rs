//! A model that tries everything to change something in plan mode, with rules and hooks that allow it all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cocode::message::Outcome;
use cocode::permission::Mode;
use cocode::protocol::{Answer, Event, GrantScope, Item};
use serde_json::{Value, json};

use super::support::harness::{Harness, Ran};

/// Lines that would change a file, a folder, a process or the repository, each in its own way.
const COMMANDS: &[&str] = &[
    // Redirections.
    "echo x > a.txt",
    "echo x >> a.txt",
    "echo x >| a.txt",
    "echo x &> a.txt",
    "echo x >& new.txt",
    "echo x 2> new.txt",
    "> a.txt",
    ": > a.txt",
    "cat <> new.txt",
    "cat a.txt > 'b c.txt'",
    "exec 3> new.txt",
    "{ echo x; } > new.txt",
    "(echo x) > new.txt",
    "if true; then echo x; fi > new.txt",
    "for i in 1; do echo $i > new.txt; done",
    "while read l; do echo $l; done < a.txt > new.txt",
    "f() { echo x > new.txt; }; f",
    "cat a.txt | tee new.txt",
    "cat a.txt | tee -a a.txt",
    "echo x > \"$PWD/new.txt\"",
    "echo x > ~/new.txt",
    "cat > new.txt <<'EOF'\nx\nEOF",
    // Substitutions.
    "echo $(touch new.txt)",
    "echo `touch new.txt`",
    "echo \"$(rm a.txt)\"",
    "cat <(touch new.txt)",
    "echo x > >(cat > new.txt)",
    "ls ${x:-$(touch new.txt)}",
    "echo $((a[$(touch new.txt)]))",
    "x=$(touch new.txt) ls",
    "ls; touch new.txt",
    "ls && touch new.txt",
    "ls || true; touch new.txt",
    "ls & touch new.txt",
    "ls\ntouch new.txt",
    "ls | xargs touch",
    "ls | xargs -I{} cp {} {}.bak",
    "ls | while read f; do rm $f; done",
    // Plain tools.
    "touch new.txt",
    "rm a.txt",
    "rm -rf src",
    "mv a.txt b.txt",
    "cp a.txt b.txt",
    "ln -s a.txt link",
    "ln a.txt hard",
    "mkdir new",
    "rmdir empty",
    "chmod +x a.txt",
    "chown root a.txt",
    "truncate -s 0 a.txt",
    "dd if=/dev/zero of=a.txt count=1",
    "install a.txt b.txt",
    "rsync a.txt b.txt",
    "mkfifo pipe",
    "split a.txt",
    "csplit a.txt 1",
    "shred a.txt",
    "unlink a.txt",
    "mktemp ./XXXXXX",
    "patch a.txt < /dev/null",
    "tar xf a.tar",
    "tar cf a.tar a.txt",
    "zip a.zip a.txt",
    "unzip -o a.zip",
    "gzip a.txt",
    "gunzip -k a.gz",
    "curl -o new.txt http://127.0.0.1:1/",
    "curl http://127.0.0.1:1/ > new.txt",
    "wget http://127.0.0.1:1/",
    // Readers with an option that writes or runs.
    "sort -o a.txt a.txt",
    "sort --output=a.txt a.txt",
    "sort --compress-program=touch a.txt",
    "uniq a.txt new.txt",
    "sed -i s/one/two/ a.txt",
    "sed --in-place=.bak s/one/two/ a.txt",
    "sed -n 'w new.txt' a.txt",
    "sed 's/one/touch new.txt/e' a.txt",
    "sed -n '1e touch new.txt' a.txt",
    "awk '{ print > \"new.txt\" }' a.txt",
    "awk 'BEGIN { system(\"touch new.txt\") }'",
    "awk '{ print | \"cat > new.txt\" }' a.txt",
    "gawk -i inplace '{ print }' a.txt",
    "find . -name a.txt -delete",
    "find . -name a.txt -exec rm {} ;",
    "find . -name a.txt -execdir rm {} +",
    "find . -fprint new.txt",
    "find . -fprintf new.txt %p",
    "find . -ok rm {} ;",
    "fd -x rm",
    "rg --pre 'touch new.txt' x",
    "xxd -r a.txt new.txt",
    "tree -o new.txt",
    "less -o new.txt a.txt",
    "date -s 2020-01-01",
    "hostname new",
    "yq -i . a.yaml",
    "jq -n '\"x\"' > new.txt",
    // Interpreters and what runs other commands.
    "bash -c 'touch new.txt'",
    "sh -c \"touch new.txt\"",
    "echo 'touch new.txt' | sh",
    "bash <<< 'touch new.txt'",
    "bash script.sh",
    "./script.sh",
    ". ./script.sh",
    "source script.sh",
    "eval 'touch new.txt'",
    "command touch new.txt",
    "builtin eval 'touch new.txt'",
    "env touch new.txt",
    "env -S 'touch new.txt'",
    "nice touch new.txt",
    "nohup touch new.txt",
    "timeout 5 touch new.txt",
    "stdbuf -o0 touch new.txt",
    "setsid touch new.txt",
    "sudo touch new.txt",
    "exec touch new.txt",
    "busybox touch new.txt",
    "\\touch new.txt",
    "'tou'ch new.txt",
    "t=touch; $t new.txt",
    "alias ls='touch new.txt'; ls",
    "ls() { touch new.txt; }; ls",
    "trap 'touch new.txt' EXIT",
    "python3 -c \"open('new.txt', 'w')\"",
    "python3 script.py",
    "perl -e 'open F, \">new.txt\"'",
    "ruby -e 'File.write(\"new.txt\", \"\")'",
    "node -e 'require(\"fs\").writeFileSync(\"new.txt\", \"\")'",
    "PATH=.:$PATH ls",
    "LD_PRELOAD=./x.so ls",
    "BASH_ENV=script.sh bash -c ls",
    "GIT_PAGER='touch new.txt' git log",
    "PAGER='touch new.txt' git log",
    // git.
    "git add a.txt",
    "git commit -am x",
    "git checkout -- a.txt",
    "git restore a.txt",
    "git reset --hard",
    "git stash",
    "git clean -fd",
    "git branch new",
    "git tag new",
    "git config user.name x",
    "git rm a.txt",
    "git mv a.txt b.txt",
    "git apply x.patch",
    "git init new",
    "git gc",
    "git update-index --refresh",
    "git diff --output=new.txt",
    "git log --output=new.txt",
    "git format-patch -1",
    "git archive -o new.tar HEAD",
    "git bundle create new HEAD",
    "git worktree add new",
    "git notes add -m x",
    "git -c core.pager='touch new.txt' log",
    "git -c alias.x='!touch new.txt' x",
    "git grep -O'touch new.txt' one",
    "git diff --ext-diff",
    "git remote add x y",
    "git fetch .",
    "git hash-object -w a.txt",
    "git symbolic-ref HEAD refs/heads/x",
    "git bisect start",
    // Editors and build tools.
    "vi -c wq a.txt",
    "ed a.txt",
    "ex -sc 'wq' a.txt",
    "nano a.txt",
    "emacs --batch a.txt",
    "make",
    "npm install",
    "cargo build",
    "cargo fmt",
    "pip install x",
    "go build",
    "crontab -r",
    "kill 1",
    // The plan file is for Write and Edit.
    "echo x > {plan_file}",
    "cp a.txt {plan_file}",
    "echo x | tee {plan_file}",
];

fn calls() -> Vec<Value> {
    let mut calls: Vec<Value> =
        COMMANDS.iter().map(|command| json!({"name": "Bash", "input": {"command": command}})).collect();
    // Beside the plan file: other names, ways around, and places that are like it.
    for path in [
        "a.txt",
        "new/deep.txt",
        "$P/a.txt",
        "$P/../escape.txt",
        "{plan_file}.bak",
        "{plan_file}/x.md",
        "{plan_file}/../other.md",
        "{plan_file}/../../settings.json",
        "{plan_file}/../link.md",
        "~/.bashrc",
        ".claude/settings.json",
        ".git/config",
        ".git/hooks/pre-commit",
        "script.sh",
        "/tmp/cocode-plan-mode-escape.txt",
        "PLAN",
        "plan_link.md",
    ] {
        calls.push(json!({"name": "Write", "input": {"file_path": path, "content": "changed"}}));
    }
    for (old, new) in [("one", "two"), ("", "x")] {
        calls.push(json!({"name": "Edit", "input": {"file_path": "a.txt", "old_string": old, "new_string": new}}));
    }
    for mode in ["replace", "insert", "delete"] {
        calls.push(json!({"name": "NotebookEdit", "input": {"notebook_path": "n.ipynb", "cell_id": "c", "new_source": "x", "edit_mode": mode}}));
    }
    for name in ["MultiEdit", "Delete", "mcp__files__write"] {
        calls.push(json!({"name": name, "input": {"file_path": "a.txt", "edits": []}}));
    }
    // By itself it gets no approval, nor out.
    calls.push(json!({"name": "EnterPlanMode", "input": {}}));
    calls
}

/// Everything below a folder but the session's own log: kind, mode, time and content. The index of words is left out, which is
/// written beside everything else.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<PathBuf, (u32, SystemTime, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            if entry.path().ends_with("cocode/words") {
                continue;
            }
            let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
            let below = path.strip_prefix(root).unwrap().to_path_buf();
            let content = if meta.is_dir() {
                folders.push(path);
                Vec::new()
            } else if meta.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            found.insert(below, (meta.permissions().mode(), meta.modified().unwrap(), content));
        }
    }
    found
}

pub(crate) fn git(project: &Path, args: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(args)
        .current_dir(project)
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository with something in it to destroy.
pub(crate) fn victim(harness: Harness) -> Harness {
    let notebook = json!({"cells": [{"cell_type": "code", "id": "c", "source": "1", "metadata": {}, "outputs": []}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    let harness = harness
        .file("a.txt", "one\n")
        .file("a.yaml", "a: 1\n")
        .file("src/lib.rs", "fn main() {}\n")
        .file("script.sh", "touch new.txt\n")
        .file("script.py", "open('new.txt', 'w')\n")
        .file("n.ipynb", &notebook.to_string())
        .file("Makefile", "all:\n\ttouch new.txt\n");
    let project = harness.project();
    std::fs::create_dir(project.join("empty")).unwrap();
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "first"]);
    // Newer than the index, so that git would like to refresh it.
    std::fs::write(project.join("a.txt"), "one\n").unwrap();
    harness
}

/// Everything that a call came to.
pub(crate) fn outcomes(run: &Ran) -> Vec<(Outcome, String)> {
    let message = |event: &Event| match event {
        Event::Item(Item::Message { message, .. }) => Some(message.clone()),
        _ => None,
    };
    let messages: Vec<_> = run.events.iter().filter_map(message).collect();
    messages.iter().flat_map(|message| message.results().map(|result| (result.outcome, result.text()))).collect()
}

async fn attack(started: Mode, settings: &str) {
    let calls = calls();
    assert!(calls.len() >= 100);
    // Several calls a reply, so that one that is refused does not end the others.
    let mut steps: Vec<Value> = calls
        .chunks(20)
        .map(|calls| json!({ "reply": calls.iter().map(|call| json!({ "tool": call })).collect::<Vec<_>>() }))
        .collect();
    steps.push(json!({ "reply": [{ "text": "I give up." }] }));
    let harness = victim(Harness::new()).mode(started).set(settings).script(&json!(steps).to_string());
    let project = harness.project();
    let home = project.parent().unwrap().join(".claude");
    std::os::unix::fs::symlink(project.join("a.txt"), project.join("plan_link.md")).unwrap();
    std::fs::create_dir_all(home.join("plans")).unwrap();
    std::os::unix::fs::symlink(project.join("a.txt"), home.join("plans/link.md")).unwrap();
    let before = (snapshot(&project), snapshot(&home.join("plans")));
    // Whatever were asked would be allowed.
    let mut harness = harness.prompt("/plan do it");
    for _ in 0..20 {
        let rules = vec!["Bash(touch:*)".into(), "Edit".into()];
        harness = harness.answer(Answer::Always { rules, scope: GrantScope::Session });
    }
    let run = harness.run().await;
    let after = (snapshot(&project), snapshot(&home.join("plans")));
    let changed: Vec<_> = after
        .0
        .iter()
        .chain(&after.1)
        .filter(|(path, now)| before.0.get(*path).or_else(|| before.1.get(*path)) != Some(now))
        .map(|(path, _)| path)
        .collect();
    assert!(!project.parent().unwrap().join("escape.txt").exists());
    assert!(!Path::new("/tmp/cocode-plan-mode-escape.txt").exists());
    let outcomes = outcomes(&run);
    assert_eq!(outcomes.len(), calls.len());
    for (call, (outcome, text)) in calls.iter().zip(&outcomes) {
        assert_ne!(*outcome, Outcome::Ok, "{started}: {call}: {text}");
        if *outcome == Outcome::Denied {
            assert!(text.contains("Plan mode is on: change nothing except the plan file"), "{call}: {text}");
        }
    }
    assert_eq!(changed, [] as [&PathBuf; 0], "{started}: {}", run.trace());
    assert!(before == after, "{started}");
    assert!(!run.trace().contains("\nask "), "nobody is asked: {}", run.trace());
    assert_eq!(run.session().facts().mode, Some(Mode::Plan));
}

#[tokio::test]
async fn nothing_is_changed_whatever_the_model_tries() {
    attack(Mode::Default, "").await;
}

#[tokio::test]
async fn no_rule_lifts_it() {
    attack(Mode::AcceptEdits, r#"permissions.allow = ["Bash", "Edit", "Write", "NotebookEdit", "mcp__files"]"#).await;
    attack(Mode::Bypass, r#"permissions.allow = ["Bash(*)", "Edit(//**)"]"#).await;
}

#[tokio::test]
async fn no_hook_lifts_it() {
    let allow = r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow","decision":{"behavior":"allow"}}}'"#;
    let hook = format!("[[hooks.EVENT]]\nhooks = [{{type = \"command\", command = '''{allow}'''}}]\n");
    let settings = [hook.replace("EVENT", "PreToolUse"), hook.replace("EVENT", "PermissionRequest")].concat();
    attack(Mode::Default, &settings).await;
}

#[tokio::test]
async fn the_plan_file_itself_stays_writable() {
    let script = r##"
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# One\n"}}]
- reply: [tool: {name: Edit, input: {file_path: "{plan_file}", old_string: One, new_string: Two}}]
- reply: [tool: {name: Bash, input: {command: "cat {plan_file}"}}, tool: {name: Read, input: {file_path: "{plan_file}"}}]
- reply: [text: Done.]
"##;
    let run = Harness::new().script(script).mode(Mode::Plan).prompt("go").run().await;
    let all: Vec<Outcome> = outcomes(&run).into_iter().map(|(outcome, _)| outcome).collect();
    assert_eq!(all, [Outcome::Ok; 4], "{}", run.trace());
    assert_eq!(run.plan(), "# Two\n");
    // Not outside plan mode: then it is a file of ours like any other, which asks.
    let run = Harness::after(run)
        .script(&format!(
            "- reply: [tool: {{name: Write, input: {{file_path: \"{}\", content: x}}}}]\n- reply: [text: No.]",
            "~/.claude/plans/x.md"
        ))
        .mode(Mode::AcceptEdits)
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().contains("\nask Write"), "{}", run.trace());
}
