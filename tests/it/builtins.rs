//! Commands around the session: settings, changes, todos, health, the report for maintainers.

use cocode::permission::Mode;
use cocode::protocol::{Event, ListKind, Listed, Op};
use cocode::report;

use super::support::harness::{Harness, Ran};
use super::support::program::Program;

/// What the last command said.
fn last_notice(ran: &Ran) -> String {
    let text = ran.events.iter().rev().find_map(|event| match event {
        Event::Notice { text } => Some(text.clone()),
        Event::Report(report) => Some(report::markdown(report)),
        Event::Error { text, .. } => Some(format!("error: {text}")),
        _ => None,
    });
    text.unwrap().replace(&*ran.project().to_string_lossy(), "$P")
}

#[tokio::test]
async fn config_shows_explains_and_sets() {
    async fn check(commands: &[&str], want: &[&str]) {
        let mut harness = Harness::new().set("max_turns = 7");
        for command in commands {
            harness = harness.prompt(command);
        }
        let ran = harness.run().await;
        let said = last_notice(&ran);
        for part in want {
            assert!(said.contains(part), "{commands:?}: {said}");
        }
    }
    check(&["/config"], &["max_turns = 7\n  from command line", "`/config tui.theme light`"]).await;
    check(&["/config max_turns"], &["max_turns = 7\n  from command line"]).await;
    check(&["/config tui"], &["tui.highlight = true\n  from built-in defaults"]).await;
    check(&["/config tui.tehme"], &["error: unknown key `tui.tehme`; did you mean `tui.theme`?"]).await;
    check(&["/config tui.theme pink"], &["error:", "must be one of auto, dark, light"]).await;
    check(&["/config tui.theme light"], &["`tui.theme = \"light\"`, saved to `~/.config/cocode/config.toml`."]).await;
    check(&["/config log.level warn"], &["takes effect at the next start"]).await;
    check(&["/config memory.files NOTES.md"], &["takes effect in the next session"]).await;
    // What else is set holds at once; what wins over it is named.
    check(&["/config max_turns 3"], &["max_turns = 7\n  from command line\n  overrides 3 from user configuration"])
        .await;
    check(&["/config tools.max_lines 9", "/config tools.max_lines"], &["tools.max_lines = 9\n  from user"]).await;
}

#[tokio::test]
async fn a_rule_that_is_set_holds_at_once() {
    let script = "
- reply: [tool: {name: Bash, input: {command: touch a.txt}}]
- reply: [text: Done.]
";
    let ran = Harness::new().script(script).prompt("/config permissions.allow Bash(touch:*)").prompt("go").run().await;
    assert!(ran.project().join("a.txt").exists(), "{}", ran.trace());
}

const CHANGE: &str = "
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: two, new_string: 2}}]
- reply:
  - tool: {name: Write, input: {file_path: b.txt, content: \"new\\n\"}}
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: 1}}]
- reply: [text: Done.]
";

#[tokio::test]
async fn diff_compares_with_what_the_files_were_at_first() {
    let ran = Harness::new()
        .file("a.txt", "one\ntwo\n")
        .mode(Mode::AcceptEdits)
        .script(CHANGE)
        .prompt("go")
        .prompt("/diff")
        .run()
        .await;
    insta::assert_snapshot!(last_notice(&ran), @r"
    **Changed in this session**

    `a.txt` (+2 −2)

    ```diff
    @@ -1,2 +1,2 @@
    -one
    -two
    +1
    +2
    ```

    `b.txt` (+1 −0, new)

    ```diff
    @@ -0,0 +1 @@
    +new
    ```
    ");
    // What undo refuses is still to be seen, and to be undone.
    std::fs::write(ran.project().join("a.txt"), "1\n2\nby hand\n").unwrap();
    let ran =
        Harness::after(ran).prompt("/undo").prompt("/undo").prompt("/redo").prompt("/undo").prompt("/diff").run().await;
    let left = last_notice(&ran);
    assert!(left.contains("`a.txt` (+3 −2)") && !left.contains("b.txt"), "{left}");
    std::fs::write(ran.project().join("a.txt"), "1\n2\n").unwrap();
    let ran = Harness::after(ran).prompt("/undo").prompt("/diff").run().await;
    assert_eq!(last_notice(&ran), "This session has not changed any files with its tools.\n");
}

#[tokio::test]
async fn diff_knows_what_git_has_not() {
    let harness = Harness::new().file("a.txt", "one\ntwo\n");
    let project = harness.project();
    let git = |args: &[&str]| {
        let command = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(args)
            .current_dir(&project)
            .output()
            .unwrap();
        assert!(command.status.success(), "{command:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    std::fs::write(project.join("a.txt"), "one\nmine\n").unwrap();
    let ran = harness.at("mode", Op::List { what: ListKind::Changes }).prompt("/diff").run().await;
    let changes = ran.events.iter().find_map(|event| match event {
        Event::Listed(Listed::Changes(changes)) => Some(changes.clone()),
        _ => None,
    });
    let uncommitted = changes.unwrap().uncommitted.unwrap();
    assert_eq!((uncommitted[0].path.as_str(), uncommitted[0].added, uncommitted[0].removed), ("a.txt", 1, 1));
    let said = last_notice(&ran);
    let want = "`a.txt` (+1 −1)\n\n```diff\n@@ -1,2 +1,2 @@\n one\n-two\n+mine\n```\n\n";
    assert!(said.ends_with(want), "{said}");
}

#[tokio::test]
async fn todos_are_listed() {
    let script = r#"
- reply:
  - tool:
      name: TodoWrite
      input: {todos: [{content: Read, activeForm: Reading, status: completed}, {content: Write, activeForm: Writing, status: in_progress}, {content: Rest, activeForm: Resting, status: pending}]}
- reply: [text: Done.]
"#;
    let ran = Harness::new().script(script).prompt("go").prompt("/todos").run().await;
    assert_eq!(last_notice(&ran), "Todos: 1 of 3  \n☑ Read  \n◐ Writing  \n☐ Rest");
    let ran = Harness::new().prompt("/todos").run().await;
    assert_eq!(last_notice(&ran), "The agent has no todo list.");
}

#[test]
fn doctor_says_what_the_subcommand_says() {
    let program = Program::new();
    let (command, own) = (program.run(&["-p", "/doctor", "--offline"]), program.run(&["doctor"]));
    let lines = |text: &str| -> Vec<String> {
        let sessions = regex::Regex::new(r"\d+ sessions").unwrap();
        let words = |line: &str| {
            line.trim_start_matches("- ").replace("**", "").split_whitespace().collect::<Vec<_>>().join(" ")
        };
        text.lines().map(|line| sessions.replace(&words(line), "N sessions").into_owned()).collect()
    };
    assert_eq!((command.code, lines(&command.out)), (Some(0), lines(&own.out)), "{}", command.err);
}

#[test]
fn an_export_replaces_a_file_only_by_force() {
    let program = Program::new();
    let script = program.script("s.yaml", "- reply: [text: Hello.]");
    assert_eq!(program.run(&["-p", "go", "--offline-script", &script]).code, Some(0));
    let file = program.project().join("notes.md");
    let notes = || std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "mine").unwrap();
    let refused = program.run(&["export", "go", "-o", &file.to_string_lossy()]);
    assert_eq!((refused.code, notes().as_str()), (Some(1), "mine"), "{}", refused.err);
    assert!(refused.err.contains("--force replaces it"), "{}", refused.err);
    let forced = program.run(&["export", "go", "--force", "-o", &file.to_string_lossy()]);
    assert!(forced.code == Some(0) && notes().contains("Hello."), "{}", forced.err);
}

#[test]
fn a_bug_report_names_its_file_and_no_secret() {
    let program = Program::new()
        .env("OPENAI_API_KEY", "hunter22-the-key")
        .env("MY_OWN_KEY", "quite-another-key")
        .home_file(
            ".config/cocode/config.toml",
            "probe_local = false\npermissions.allow = ['Bash(curl -u me:rule-pass https://h)', 'Edit']\nlog.level = 'debug'\nenv.TOKEN = 'in-the-env'\n[providers.mine]\nwire = 'openai-chat'\n\
             base_url = 'https://me:pass-word@h/v1'\napi_key_env = 'MY_OWN_KEY'\nheaders = { x-team = 'sesame-open' }\n\
             api_key_command = 'pass show mine-entry'\n",
        )
        .home_file(".local/state/cocode/cocode.9999-01-01.log", "INFO it said hunter22-the-key and sk-abcdefgh12345678\n");
    let script = program.script("s.yaml", "- reply: [text: a private word]");
    assert_eq!(program.run(&["-p", "a private question", "--offline-script", &script]).code, Some(0));
    let done = program.run(&["-c", "-p", "/bug-report", "--offline-script", &script]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let file = done.out.split('`').nth(1).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    for secret in [
        "hunter22",
        "quite-another",
        "in-the-env",
        "pass-word",
        "sesame",
        "mine-entry",
        "rule-pass",
        "abcdefgh",
        "a private",
        &*program.home().to_string_lossy(),
    ] {
        assert!(!text.contains(secret), "{secret}\n{text}");
    }
    assert!(text.contains("\npermissions.allow = Bash([hidden]) from config.toml, Edit from config.toml\n"), "{text}");
    for part in
        ["## Facts", "version: 0", "model: offline", "## Doctor", "providers.mine.wire = \"openai-chat\"", "## Log"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).unwrap().permissions()) & 0o777, 0o600);
}
