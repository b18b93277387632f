//! What runs without a person's own yes, by a rule or because the sandbox holds it, and what it must leave alone: every line
//! runs for real, below the real helper.

use std::path::Path;
use std::process::Command;

use cocode::sandbox::{Level, Sandbox};
use serde_json::json;

use super::support::harness::{Harness, Ran};
use super::support::program::Program;

/// What is there before each line: a repository whose other branch, stash and archive bring what is protected.
const TREE: &str = "set -e
    git init -q -b main; git config user.name a; git config user.email a@b
    mkdir src; echo one > src/a; printf 'out/\\n' > .gitignore; git add .; git commit -qm first
    git checkout -q -b other; mkdir .claude; echo evil > .claude/settings.json; echo two > src/a; git add .; git commit -qm evil
    git checkout -q main; echo evil > .mcp.json; git add .; git stash -q
    mkdir -p ../evil/.git/hooks ../evil/plain; echo evil > ../evil/.git/hooks/pre-commit; echo x > ../evil/plain/x
    tar cf ../evil.tar -C ../evil .; tar cf ../plain.tar -C ../evil plain; mkdir .husky; echo own > .husky/pre-push
    git init -q sub; git worktree add -q --detach ../tree
    printf 'hook:\\n\\techo evil > .git/hooks/pre-commit\\nfolder:\\n\\tmv .git x && echo evil > x/hooks/pre-commit; mv x .git\\nplain:\\n\\tmkdir -p out && echo x > out/x\\n' > Makefile
    printf 'failed:\\n\\tmkdir -p k/.git; mv k/.git y; mv -T y src; echo evil > src/.mcp.json\\n' >> Makefile
    printf 'gone:\\n\\tmkdir -p t/.git; rmdir t/.git t; mv sub t; echo evil > t/.git/hooks/pre-commit\\n' >> Makefile
    printf 'leads:\\n\\techo evil > .git/worktrees/tree/commondir\\n' >> Makefile
    printf 'replaced:\\n\\techo evil > x; mv x .git/worktrees/tree/commondir\\n' >> Makefile
    printf 'away:\\n\\tmv .git/worktrees/tree .git/worktrees/x\\n' >> Makefile
    printf 'new:\\n\\tgit worktree add -q --detach out/tree && git init -q out/r && echo x > out/r/.git/hooks/y && mv out/r out/s\\n' >> Makefile
    printf 'deleted:\\n\\tmkdir \"d (deleted)\"; echo evil > \"d (deleted)/x\"; mv \"d (deleted)/x\" .git/hooks/pre-commit\\n' >> Makefile
    printf 'leading:\\n\\tmkdir e; echo evil > e/config.toml; ln -s e .cargo\\n' >> Makefile
    printf 'kernel:\\n\\t: >> /proc/sys/kernel/core_pattern\\n' >> Makefile
    printf 'bin:\\n\\tmkdir -p ../.config/zsh && echo evil > ../.config/zsh/.zshrc\\n' >> Makefile";

fn is_there(program: &str) -> bool {
    cocode::stdx::programs::own(program).is_ok()
}

async fn confines() -> bool {
    let sandbox = Sandbox::new(Some(Program::binary().into()));
    sandbox.probe().await > Level::None && sandbox.records()
}

fn lines(commands: &[&str]) -> String {
    let step = |command: &&str| json!({"reply": [{"tool": {"name": "Bash", "input": {"command": command}}}]});
    serde_json::Value::from_iter(commands.iter().map(step).chain([json!({"reply": [{"text": "Done."}]})])).to_string()
}

/// Runs the lines by these rules, with nobody there to be asked.
async fn ran(rules: &str, commands: &[&str]) -> Ran {
    let harness = Harness::new().unattended().set(&format!("permissions.allow = [{rules}]"));
    let made = Command::new("bash").args(["-c", TREE]).current_dir(harness.project()).env("HOME", "/nowhere").output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    harness.script(&lines(commands)).prompt("go").run().await
}

fn text(root: &Path, file: &str) -> String {
    std::fs::read_to_string(root.join(file)).unwrap_or_default()
}

#[tokio::test]
async fn a_rule_does_not_speak_for_what_is_protected() {
    if !confines().await || !is_there("git") || !is_there("make") {
        return;
    }
    // The rule, the line, and the path whose denial it is told, unless the line is asked about; empty: it works.
    for (rule, line, denied) in [
        ("Bash(git checkout:*)", "git checkout other", ".claude"),
        ("Bash(git stash:*)", "git stash pop", ".mcp.json"),
        ("Bash(git clean:*)", "git clean -fdq", ".husky/pre-push"),
        ("Bash(tar:*)", "tar xf ../evil.tar", ".git/hooks/pre-commit"),
        ("Bash(make:*)", "make hook", ".git/hooks/pre-commit"),
        ("Bash(make:*)", "make folder", ".git"),
        ("Bash(make:*)", "make failed", "src/.mcp.json"),
        ("Bash(make:*)", "make gone", "sub/.git"),
        ("Bash(make:*)", "make deleted", ".git/hooks/pre-commit"),
        ("Bash(make:*)", "make leading", ".cargo"),
        ("Bash(make:*)", "make leads", ".git/worktrees/tree/commondir"),
        ("Bash(make:*)", "make replaced", ".git/worktrees/tree/commondir"),
        ("Bash(make:*)", "make away", ".git/worktrees/tree/commondir"),
        ("Bash(make:*)", "make bin", "../.config/zsh"),
        ("Bash(make:*)", "make kernel", "/proc/sys/kernel/core_pattern"),
        ("Bash(make:*)", "make new", ""),
        ("Bash(git branch:*)", "git branch --set-upstream-to=main other", ".git/config"),
        ("Bash(git config:*)", "git config core.fsmonitor ./evil", ".git/config"),
        ("Bash(git remote:*)", "git remote add x /x", ".git/config"),
        ("Bash(git:*)", "git checkout -q --no-track -b third && git commit -q --allow-empty -m second", ""),
        ("Bash(git:*)", "git tag t && git gc -q && git stash list", ""),
        ("Bash(git:*)", "git checkout -q other -- src/a && git reset -q --hard && git merge -q --no-commit main", ""),
        ("Bash(make:*)", "make plain", ""),
        ("Bash(make:*)', 'Edit(/.git/hooks/**)", "make hook", "granted"),
    ] {
        let ran = ran(&format!("'{rule}'"), &[line]).await;
        let (project, told) = (ran.project(), text(Path::new("/"), ran.log().to_str().unwrap()));
        let hook = text(&project, ".git/hooks/pre-commit");
        if denied == "granted" {
            assert_eq!(hook, "evil\n", "{told}");
            continue;
        }
        assert_eq!((hook.as_str(), text(&project, ".claude/settings.json").as_str()), ("", ""), "{line}: {told}");
        assert_eq!(
            (text(&project, ".mcp.json"), text(&project, ".husky/pre-push")),
            (String::new(), "own\n".to_owned())
        );
        let settings = text(&project, ".git/config");
        assert!(
            !settings.contains("fsmonitor") && !settings.contains("remote") && !settings.contains("branch"),
            "{line}"
        );
        match denied {
            "" => {
                assert!(told.contains("\"outcome\":\"ok\"") && !told.contains("The sandbox denied"), "{line}: {told}")
            }
            // What the words say already is asked about before anything runs.
            _ if told.contains("\"matter\":\"call\",\"yes\":false") => {}
            path => {
                let project = project.canonicalize().unwrap();
                let whole = match path.strip_prefix("../") {
                    Some(rest) => project.parent().unwrap().join(rest),
                    None => project.join(path),
                };
                let want = format!("denied changing {}", whole.display());
                let rule = format!("Edit(/{}", whole.display());
                assert!(told.contains(&want) && told.contains(&rule), "{line}: {want}\n{told}");
            }
        }
    }
}

/// What undo keeps of a file that was moved is no other name of it.
#[tokio::test]
async fn a_file_that_one_command_moved_can_be_written_by_the_next() {
    if !confines().await {
        return;
    }
    let rules = "'Bash(mv:*)', 'Bash(tee:*)'";
    let ran = ran(rules, &["mv src/a src/b", "echo two | tee src/b", "echo three | tee -a src/b"]).await;
    let told = text(Path::new("/"), ran.log().to_str().unwrap());
    assert_eq!(text(&ran.project(), "src/b"), "two\nthree\n", "{told}");
}

/// A rule-allowed command does not take hold of a process that it did not start: through one it would do what the guard never
/// sees. Root may trace everybody, so this is the kernel's word.
#[tokio::test]
async fn a_rule_does_not_reach_into_other_processes() {
    if !confines().await || !is_there("python3") {
        return;
    }
    let mut outside = Command::new("sleep").arg("1000").spawn().unwrap();
    const SEIZE: u32 = 0x4206;
    let harness = Harness::new().unattended().set("permissions.allow = ['Bash(python3:*)']");
    let program = format!(
        "import ctypes, os, subprocess\n\
         own = subprocess.Popen(['sleep', '1000'])\n\
         libc = ctypes.CDLL(None)\n\
         trace = lambda pid: libc.ptrace({SEIZE}, pid, 0, 0)\n\
         def memory(pid):\n    try: return os.open(f'/proc/{{pid}}/mem', os.O_RDWR) > 0\n    except OSError: return False\n\
         keeper, name = os.getppid(), ''\n\
         while name != 'sbx-keeper' and keeper > 1:\n\
         \x20   name, *rest = open(f'/proc/{{keeper}}/stat').read().split('(')[1].split(')')\n\
         \x20   keeper = keeper if name == 'sbx-keeper' else int(rest[0].split()[1])\n\
         print('outside', trace({pid}), memory({pid}), name, trace(keeper), memory(keeper), 'own', trace(own.pid))\n\
         own.kill()\n",
        pid = outside.id(),
    );
    std::fs::write(harness.project().join("reach.py"), program).unwrap();
    let ran = harness.script(&lines(&["python3 reach.py"])).prompt("go").run().await;
    outside.kill().unwrap();
    outside.wait().unwrap();
    let told = text(Path::new("/"), ran.log().to_str().unwrap());
    assert!(told.contains("outside -1 False sbx-keeper -1 False own 0"), "{told}");
}

/// What git tracks it can read, also in a folder whose name says that it holds secrets: else it takes it for changed.
#[tokio::test]
async fn git_reads_what_it_tracks() {
    if !confines().await || !is_there("git") {
        return;
    }
    let harness = Harness::new().unattended();
    let make = "git init -q -b main && mkdir secrets && echo x > secrets/p.txt && git add . && \
        git -c user.name=a -c user.email=a@b commit -qm first && touch -d 2001-01-01 secrets/p.txt";
    let made = Command::new("bash").args(["-c", make]).current_dir(harness.project()).env("HOME", "/nowhere").output();
    assert!(made.unwrap().status.success());
    let ran = harness.script(&lines(&["git status --short && git diff --stat"])).prompt("go").run().await;
    let told = text(Path::new("/"), ran.log().to_str().unwrap());
    assert!(told.contains("\"outcome\":\"ok\"") && told.contains("(no output)"), "{told}");
}

/// A program that nobody was asked about sees of the home folder what programs need.
#[tokio::test]
async fn what_runs_unasked_reads_no_secrets_at_home() {
    if !confines().await || !is_there("git") {
        return;
    }
    let secrets = [
        ".claude/.credentials.json",
        ".codex/auth.json",
        ".env",
        "id_rsa",
        ".electrum/wallets/w",
        ".mozilla/x",
        ".ssh/id",
        ".cargo/credentials.toml",
        ".config/gh/hosts.yml",
        ".config/some/token",
        "notes.txt",
        "other/.env",
        ".cache/x/token",
        ".local/share/app/db",
        ".ivy2/.credentials",
        ".npmrc",
        ".git-credentials",
    ];
    let open = [
        ".gitconfig",
        ".cargo/registry/a",
        ".rustup/settings.toml",
        ".local/bin/tool",
        ".config/git/ignore",
        "go/pkg/a",
    ];
    let harness = Harness::new().unattended().set("sandbox.auto_allow = true");
    let home = harness.project().parent().unwrap().canonicalize().unwrap();
    let all =
        |files: &[&str]| files.iter().map(|file| home.join(file).display().to_string()).collect::<Vec<_>>().join(" ");
    let script = format!(
        "for f in {}; do cat $f && echo LEAKED $f; done\nfor f in {}; do cat \"$f\" > /dev/null || echo CLOSED $f; done\n\
         echo new > made && cat made && git status --short && mkdir -p deep && echo x > deep/x && cat deep/x; exit 1\n",
        all(&secrets),
        all(&open)
    );
    let harness = harness.file("w.sh", &script);
    for file in secrets.iter().chain(&open) {
        let path = home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = if file.ends_with("gitconfig") { "[user]\nname = a\n" } else { "5ecret\n" };
        std::fs::write(path, content).unwrap();
    }
    assert!(Command::new("git").args(["init", "-q"]).current_dir(harness.project()).status().unwrap().success());
    let ran = harness.script(&lines(&["sh w.sh"])).prompt("go").run().await;
    let told = text(Path::new("/"), ran.log().to_str().unwrap());
    assert!(told.contains("new\\n") && told.contains("?? w.sh"), "{told}");
    assert!(!told.contains("5ecret") && !told.contains("LEAKED /") && !told.contains("CLOSED /"), "{told}");
    let rule = format!("Read(/{}/.env)", home.display());
    assert!(told.contains("The sandbox denied reading") && told.contains(&rule), "{rule}: {told}");
}

/// A search of everything runs unasked, since the kernel keeps the secrets that it would come by closed to it. What may do
/// more than read asks.
#[tokio::test]
async fn a_search_that_nobody_was_asked_about_opens_no_secret() {
    if !confines().await {
        return;
    }
    for (line, runs) in [("grep -rn KEY .", true), ("grep -rn KEY . > out", false)] {
        let harness = Harness::new().unattended().file("src/a", "a KEY\n").file("conf/.env", "KEY=5ecret\n");
        let ran = harness.script(&lines(&[line])).prompt("go").run().await;
        let told = text(Path::new("/"), ran.log().to_str().unwrap());
        assert_eq!(told.contains("src/a:1:a KEY") && told.contains("conf/.env: Permission denied"), runs, "{told}");
        assert!(!told.contains("5ecret") && !ran.project().join("out").exists(), "{line}: {told}");
    }
}
