//! What people run every day, as approved commands in the workspace sandbox: what works there, and what does not.

use cocode::protocol::Answer;
use cocode::sandbox::{Level, Sandbox};
use serde_json::json;

use super::support::harness::Harness;
use super::support::program::Program;

/// A wheel with one module, as `pip` takes it without any network.
const WHEEL: &str = r#"python3 - <<'END'
import zipfile
with zipfile.ZipFile("word-1.0-py3-none-any.whl", "w") as wheel:
    info = "word-1.0.dist-info/"
    wheel.writestr("word.py", "said = 1\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: word\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "word.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n")
END
python3 -m venv w && w/bin/pip install -q --no-index word-1.0-py3-none-any.whl && w/bin/python -c 'import word'"#;

const NPM: &str = "mkdir -p js/dep && cd js && echo '{\"name\": \"dep\", \"version\": \"1.0.0\"}' > dep/package.json && \
    echo '{\"name\": \"top\", \"version\": \"1.0.0\", \"dependencies\": {\"dep\": \"file:dep\"}}' > package.json && \
    npm install --offline --no-audit --no-fund && rm -r node_modules && npm ci --offline --no-audit --no-fund && \
    [ -e node_modules/dep/package.json ]";

const LISTENS: &str = r#"python3 - <<'END'
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
END"#;

/// Lines with the programs that they take, and whether they work.
const LINES: &[(&str, &[&str], bool, &str)] = &[
    ("git add, commit", &["git"], true, "echo one > a && git add a && git commit -qm one && git log --oneline"),
    (
        "git fetch, push (local)",
        &["git"],
        true,
        "git clone -q --bare . up.git && git fetch -q ./up.git && git push -q ./up.git HEAD:new",
    ),
    (
        "cargo build --offline",
        &["cargo", "cc"],
        true,
        "cargo init -q --vcs none --name made rs && cd rs && cargo build -q --offline && target/debug/made",
    ),
    ("npm ci --offline", &["npm"], true, NPM),
    ("pip install (offline, in a virtual environment)", &["python3"], true, WHEEL),
    ("pytest", &["pytest"], true, "echo 'def test_one(): assert 1' > test_one.py && pytest -q test_one.py"),
    ("python venv", &["python3"], true, "python3 -m venv --without-pip v && v/bin/python -c 'print(1)'"),
    (
        "make -j",
        &["make"],
        true,
        "printf 'all: a1 a2 a3 a4\\na%%:\\n\\techo $@ > $@\\n' > Makefile && make -s -j4 && cat a1 a2 a3 a4",
    ),
    (
        "heredocs",
        &["bash"],
        true,
        "cat <<END > here\n$((1 + 1))\nEND\nbash <<'END' && [ \"$(< here)\" = 2 ]\necho inner\nEND",
    ),
    ("temporary files", &["mktemp"], true, "f=$(mktemp) && echo x > \"$f\" && sort \"$f\" && rm \"$f\""),
    ("ps", &["ps"], true, "ps -e | grep -q ps"),
    (
        "sqlite3",
        &["sqlite3"],
        true,
        "sqlite3 db 'create table t (a); insert into t values (1); select * from t' | grep -q 1",
    ),
    ("vim -es", &["vim"], true, "echo one > text; vim -es -u NONE -i NONE +'s/one/two/' +wq text; grep -q two text"),
    // The kernel lets a command connect to the port of the proxy alone, its own port included.
    ("listening on a port", &["python3"], false, LISTENS),
    // Only through the proxy, which asks, and nobody is there.
    ("fetching a page", &["curl"], false, "curl -sf --max-time 20 http://example.invalid/"),
];

#[tokio::test]
async fn what_works_in_the_workspace_sandbox() {
    if Sandbox::new(Some(Program::binary().into())).probe().await == Level::None {
        eprintln!("skipped: nothing confines commands here");
        return;
    }
    let harness = Harness::new().unattended();
    let (mut steps, mut left) = (Vec::new(), Vec::new());
    for (nth, (what, programs, _, line)) in LINES.iter().enumerate() {
        let found = |program: &&str| cocode::stdx::programs::own(program).is_ok();
        if !programs.iter().all(found) {
            eprintln!("skipped: {what}, without {programs:?}");
            left.push(nth);
            continue;
        }
        // What a script redirects is no matter of the rule.
        std::fs::write(harness.project().join(format!("line-{nth}.sh")), line).unwrap();
        let command = format!("bash line-{nth}.sh && touch done-{nth}");
        steps.push(json!({"reply": [{"tool": {"name": "Bash", "input": {"command": command, "timeout": 120_000}}}]}));
    }
    steps.push(json!({"reply": [{"text": "Done."}]}));
    let home = harness.project().parent().unwrap().join("own");
    std::fs::create_dir(&home).unwrap();
    let home = home.display();
    let rustup = std::env::var("RUSTUP_HOME").unwrap_or_else(|_| format!("{}/.rustup", std::env::var("HOME").unwrap()));
    let harness = harness
        .set("sandbox.approved = 'workspace'")
        .set("permissions.allow = ['Bash']")
        .set(&format!("[env]\nHOME = '{home}'\nRUSTUP_HOME = '{rustup}'\nGIT_CONFIG_GLOBAL = '{home}/git'"));
    std::fs::write(
        harness.project().parent().unwrap().join("own/git"),
        "[user]\nname = a\nemail = a@b\n[init]\ndefaultBranch = main\n",
    )
    .unwrap();
    // Its hooks and its configuration are protected from commands in there.
    if cocode::stdx::programs::own("git").is_ok() {
        let mut git = std::process::Command::new("git");
        assert!(git.args(["init", "-q"]).current_dir(harness.project()).status().unwrap().success());
    }
    let ran = harness.script(&serde_json::Value::from(steps).to_string()).prompt("go").run().await;
    let works = |nth: usize| ran.project().join(format!("done-{nth}")).exists();
    let wrong: Vec<&str> = LINES
        .iter()
        .enumerate()
        .filter(|(nth, (_, _, want, _))| !left.contains(nth) && works(*nth) != *want)
        .map(|(_, (what, ..))| *what)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}: {}", std::fs::read_to_string(ran.log()).unwrap());
}

fn bash(commands: &[&str]) -> String {
    let step = |command: &&str| json!({"reply": [{"tool": {"name": "Bash", "input": {"command": command}}}]});
    let done = json!({"reply": [{"text": "Done."}]});
    serde_json::Value::from_iter(commands.iter().map(step).chain([done])).to_string()
}

async fn is_confined() -> bool {
    Sandbox::new(Some(Program::binary().into())).probe().await > Level::None
}

/// Nobody is there to be asked: what the sandbox holds runs, what it does not hold is denied, and what a command that nobody
/// saw does to protected files is undone.
#[tokio::test]
async fn what_the_sandbox_holds_runs_unasked() {
    if !is_confined().await {
        return;
    }
    let hidden = "echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/old; rm .git/config; echo fine > ok\n";
    let harness = Harness::new().unattended().set("sandbox.auto_allow = true").file("w.sh", hidden);
    let harness = harness.file(".git/hooks/old", "old\n").file(".git/config", "[core]\n").file(".env", "KEY=5ecret\n");
    let lines = ["sh w.sh", "touch ../outside", "touch .envrc", "sh -c 'cat .env' > told", "touch inside"];
    let no = || Answer::No { feedback: Some("no".into()) };
    let ran = harness.script(&bash(&lines)).answer(no()).answer(no()).prompt("go").run().await;
    let (project, told) = (ran.project(), std::fs::read_to_string(ran.log()).unwrap());
    let exists = |name: &str| project.join(name).exists();
    assert!(exists("ok") && exists("inside"), "{told}");
    assert!(!exists("../outside") && !exists(".envrc") && !exists(".git/hooks/pre-commit"), "{told}");
    assert_eq!(ran.read(".git/config"), "[core]\n");
    let mode = std::fs::metadata(project.join(".git/hooks/old")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o111, 0, "{told}");
    let kept = ["protected files were put back", "which is protected"].iter().any(|words| told.contains(words));
    assert!(kept && !told.contains("5ecret"), "{told}");
}

/// One question offers it; the answer holds at once and is kept.
#[tokio::test]
async fn one_question_offers_to_run_commands_unasked() {
    if !is_confined().await {
        return;
    }
    let harness = Harness::new().script(&bash(&["touch a", "touch b"])).answer(Answer::Unasked);
    let ran = harness.prompt("go").run().await;
    assert!(ran.project().join("a").exists() && ran.project().join("b").exists(), "{}", ran.trace());
    let config = ran.project().parent().unwrap().join(".config/cocode/config.toml");
    let kept: toml::Table = std::fs::read_to_string(config).unwrap().parse().unwrap();
    assert_eq!(kept["sandbox"]["auto_allow"], toml::Value::Boolean(true));
    // Only what is offered can be chosen.
    let harness = Harness::new().set("permissions.ask = ['Bash(touch a)']").script(&bash(&["touch a"]));
    let ran = harness.answer(Answer::Unasked).prompt("go").run().await;
    assert!(!ran.project().join("a").exists(), "{}", ran.trace());
}
