//! What the engine does between turns: its start, commands that act on the session, lists, its end.

use cocode::commands::{Builtin, Server};
use cocode::engine::Begin;
use cocode::permission::Mode;
use cocode::protocol::{Answer, Event, GrantScope, Item, ListKind, Listed, Op, RewindWhat, Turn};

use super::support::harness::{Harness, Ran};

/// Reads, then changes `a.txt` from one to two, and says so.
const CHANGE: &str = r#"
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: two}}]
- reply: [text: Changed.]
"#;

/// A session of one prompt that changed `a.txt`.
async fn changed() -> Ran {
    Harness::new().file("a.txt", "one").script(CHANGE).mode(Mode::AcceptEdits).prompt("change it").run().await
}

/// Runs commands in the session of `changed`, and looks for words in what they answer.
async fn check(commands: &[&str], want: &[&str]) -> Ran {
    let mut harness = Harness::after(changed().await);
    for command in commands {
        harness = harness.prompt(command);
    }
    let run = harness.run().await;
    for words in want {
        assert!(run.trace().contains(words), "{commands:?} lacks {words:?}:\n{}", run.trace());
    }
    run
}

#[tokio::test]
async fn commands_answer() {
    for (commands, want) in [
        (&["/help"][..], &["notice ", "/rewind"][..]),
        (&["/status"], &["| Session |", "accept edits"]),
        (&["/cost"], &["| Model | Input |"]),
        (&["/memory"], &["AGENTS.md"]),
        (&["/rename parser rewrite", "/status"], &["“parser rewrite”", "| Session | parser rewrite ("]),
        (&["/rename"], &["error Which title?"]),
        (&["/clear", "/status"], &["shown=0", "untitled", "accept edits"]),
        (&["/resume"], &["Earlier sessions in this folder"]),
        (&["/resume nothing-like-it"], &["error no session matches"]),
        (&["/model"], &["(in use)"]),
        (&["/model nonsense"], &["error no provider for"]),
        (&["/model foo/bar"], &["error there is no provider \"foo\": choose one of anthropic, gemini, openai"]),
        (&["/permissions test \"git push\""], &["**ask**"]),
        (&["/permissions revoke Bash(never:*)"], &["error No rule"]),
        (&["/permissions frobnicate"], &["Unknown: `/permissions frobnicate`"]),
        (&["/undo", "/undo"], &["\"how\":\"undo\"", "Nothing to undo."]),
        (&["/undo", "/redo", "/redo"], &["\"how\":\"redo\"", "Nothing to redo."]),
        (&["/exprot"], &["error unknown command /exprot: did you mean /export?"]),
        (&["/copy"], &["needs a terminal"]),
        (&["/tasks"], &["Nothing has run in the background."]),
        (&["/tasks stop b9"], &["error Nothing called b9 is running."]),
        (&["/bashes kill b1"], &["error Unknown: `/tasks kill b1`"]),
    ] {
        check(commands, want).await;
    }
}

/// Every command at a question of the agent: what only looks answers, the rest says that it waits.
#[tokio::test]
async fn what_only_looks_runs_while_the_agent_works() {
    let script = "- reply: [tool: {name: Bash, input: {command: touch a.txt}}]\n- reply: [text: Done.]\n";
    let rows = Builtin::rows().iter().filter(|row| !matches!(row.server, Server::Screen(_)));
    let more = [
        (Builtin::Permissions, "test \"touch a.txt\""),
        (Builtin::Permissions, "revoke Bash"),
        (Builtin::Config, "max_turns"),
        (Builtin::Config, "max_turns 3"),
        (Builtin::Model, "offline"),
        (Builtin::Thinking, "deep"),
        (Builtin::Memory, "1"),
    ];
    for (builtin, args) in rows.map(|row| (row.builtin(), "")).chain(more) {
        let op = Op::builtin(builtin, args);
        let run = Harness::new().script(script).prompt("go").at("ask", op.clone()).run().await;
        let at = |wanted: &dyn Fn(&Event) -> bool| run.events.iter().position(wanted);
        let answered = at(&|event| matches!(event, Event::Report(_)));
        let line = format!("/{} {args}", builtin.name());
        let waits =
            at(&|event| matches!(event, Event::Queue { items } if items.iter().any(|item| item.text == line.trim())));
        let looks = builtin.runs_while_busy(args);
        let waits = waits.filter(|_| !looks);
        assert!(if looks { answered.is_some() } else { waits.is_some() }, "{builtin:?} {args}:\n{}", run.trace());
        let done = at(&|event| matches!(event, Event::Done { op: done } if *done == op));
        let ended = at(&|event| matches!(event, Event::Turn(Turn::Ended { .. })));
        assert!(waits.or(answered) < done, "{builtin:?} {args}");
        assert_eq!(done < ended, looks, "what changes the session comes after the turn: {builtin:?} {args}");
    }
}

/// A `!` line that only reads answers at once, any other when the turn has ended; the model learns of both.
#[tokio::test]
async fn lines_of_the_user_run_beside_a_turn_or_behind_it() {
    let script = "- reply: [tool: {name: Bash, input: {command: touch a.txt}}]\n- reply: [text: Done.]\n";
    for (command, beside) in
        [("ls", true), ("git status || cat x.txt", true), ("touch b.txt", false), ("ls > c.txt", false)]
    {
        let op = Op::Shell { command: command.into() };
        let run = Harness::new().file("x.txt", "here").script(script).prompt("go").at("ask", op.clone()).run().await;
        let at = |wanted: &dyn Fn(&Event) -> bool| run.events.iter().position(wanted);
        let done = at(&|event| matches!(event, Event::Item(Item::ShellDone { .. })));
        let ended = at(&|event| matches!(event, Event::Turn(Turn::Ended { .. })));
        assert!(done.is_some() && ended.is_some(), "{command}: {}", run.trace());
        assert_eq!(done < ended, beside, "{command}: {}", run.trace());
        let queued = at(
            &|event| matches!(event, Event::Queue { items } if items.iter().any(|item| item.text == format!("! {command}"))),
        );
        assert_eq!(queued.is_none(), beside, "{command}");
        let told = std::fs::read_to_string(run.log()).unwrap().contains(&format!("$ {command}"));
        assert!(told, "{command}: {}", run.trace());
    }
}

/// What changes while the agent works is seen at once.
#[tokio::test]
async fn what_looks_sees_what_the_turn_has_done() {
    let script = "
- reply: [tool: {name: Bash, input: {command: touch a.txt}}]
- reply: [tool: {name: Bash, input: {command: touch b.txt}}]
- reply: [text: Done.]
";
    let rule = |scope| Answer::Always { rules: vec!["Bash(touch a.txt)".into()], scope };
    for (scope, source) in [(GrantScope::Session, "this session"), (GrantScope::User, "user settings")] {
        let run = Harness::new()
            .folder(".claude")
            .folder("project")
            .script(script)
            .answer(rule(scope))
            .answer(Answer::Yes)
            .prompt("go")
            .at("ask Bash touch b.txt", Op::builtin(Builtin::Permissions, ""))
            .at("ask Bash touch b.txt", Op::builtin(Builtin::Permissions, "test touch a.txt"))
            .run()
            .await;
        let trace = run.trace();
        let at = |wanted: &str| trace.find(wanted).unwrap_or_else(|| panic!("{wanted}:\n{trace}"));
        let ended = at("\nturn ended");
        assert!(at(&format!("- allow `Bash(touch a.txt)` ({source})")) < ended, "{trace}");
        assert!(at("`touch a.txt`: **allow**") < ended, "{trace}");
    }
}

#[tokio::test]
async fn exports_are_written_once() {
    let run = check(
        &["/export out.md", "/export out.md", "/export out.json"],
        &["Exported the session to", "exists already; choose another name"],
    )
    .await;
    assert!(run.read("out.md").contains("change it"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(run.project().join("out.md").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(serde_json::from_str::<serde_json::Value>(&run.read("out.json")).is_ok());
}

#[tokio::test]
async fn a_granted_rule_can_be_revoked() {
    // The user's own settings: the home is beside the project.
    let run = Harness::new()
        .folder(".claude")
        .folder("project")
        .file("../.claude/settings.json", ALLOW)
        .prompt("/permissions revoke 'Bash(touch:*)'")
        .prompt("/permissions")
        .run()
        .await;
    assert!(run.trace().contains("Revoked `Bash(touch:*)`"), "{}", run.trace());
    assert!(run.trace().contains("No permission rules are set"), "{}", run.trace());
    assert!(!run.read("../.claude/settings.json").contains("touch"));
}

#[tokio::test]
async fn a_rule_that_stays_says_why() {
    let run = Harness::new()
        .file(".claude/settings.json", r#"{"permissions": {"deny": ["Bash(rm:*)"]}}"#)
        .file(".cocode/config.local.toml", "permissions.deny = ['Bash(dd:*)']\n")
        .set("permissions.allow = ['Bash(ls:*)']")
        .prompt("/permissions revoke Bash(rm:*)")
        .prompt("/permissions revoke Bash(ls:*)")
        .prompt("/permissions revoke Bash(dd:*)")
        .prompt("/permissions")
        .run()
        .await;
    for want in [
        "everyone in this project shares it",
        "it comes from a flag or a variable",
        "`Bash(dd:*)` is in .cocode/config.local.toml",
        "- deny `Bash(dd:*)`",
    ] {
        assert!(run.trace().contains(want), "{want}: {}", run.trace());
    }
}

#[tokio::test]
async fn a_model_that_nobody_knows_has_one_window_everywhere() {
    const SETTINGS: &str = "providers.x = { wire = 'openai-chat', base_url = 'http://127.0.0.1:9/v1' }";
    for (settings, model, want) in [
        (SETTINGS, "x/mine", "32000"),
        (SETTINGS, "x/vendor/claude-next", "200000"),
        (
            "compact.fallback_context_window = 64000\nproviders.x = { wire = 'gemini', base_url = 'http://127.0.0.1:9' }",
            "x/mine",
            "64000",
        ),
    ] {
        let run = Harness::new()
            .set(settings)
            .set(&format!("model = '{model}'"))
            .prompt(&format!("/model {model}"))
            .prompt("/status")
            .prompt("/model")
            .run()
            .await;
        let grouped = format!("{},000 tokens", want.trim_end_matches("000"));
        let thousands = format!("{}k assumed", want.trim_end_matches("000"));
        for want in [format!("a window of {want} tokens"), grouped, thousands] {
            assert!(run.trace().contains(&want), "{model} {want}: {}", run.trace());
        }
    }
}

#[tokio::test]
async fn a_rewind_takes_files_and_words_back() {
    let seq = |run: &Ran| run.session().prompts().unwrap()[0].seq;
    for (what, text, messages) in
        [(RewindWhat::Code, "one", 2), (RewindWhat::Conversation, "two", 0), (RewindWhat::Both, "one", 0)]
    {
        let run = changed().await;
        let to = seq(&run);
        let run = Harness::after(run).at("session", Op::Rewind { to, what }).run().await;
        let prompts = run.session().prompts().unwrap();
        assert_eq!((run.read("a.txt").as_str(), prompts.len()), (text, messages.min(1)), "{what:?}\n{}", run.trace());
    }
}

#[tokio::test]
async fn lists_are_brought() {
    let run = changed().await;
    let list = |what| Op::List { what };
    let remember = Op::Remember("typed".into());
    let run = Harness::after(run)
        .begin(Begin::New)
        .at("session", list(ListKind::Sessions))
        .at("session", list(ListKind::Models))
        .at("mode", remember)
        .run()
        .await;
    let listed: Vec<String> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Listed(Listed::Sessions(rows)) => {
                Some(rows.iter().map(|row| format!("{} {}", row.title, row.detail)).collect())
            }
            Event::Listed(Listed::Models(list)) => {
                Some(list.providers.iter().map(|row| format!("{}: {:?}; ", row.title, row.access)).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        listed,
        [
            "change it just now · 1 prompt",
            "Anthropic: NoKey; OpenAI: NoKey; Gemini: NoKey; Local: NoServer { ports: [11434, 8080, 1234], asked: false }; Offline: Offline; "
        ]
    );
    // What was typed is told first of all the next time.
    let again = Harness::after(run).begin(Begin::New).run().await;
    assert!(matches!(&again.events[0], Event::Listed(Listed::History(typed)) if typed[..] == ["typed".into()]));
}

/// Settings that need trust.
const ALLOW: &str = r#"{"permissions": {"allow": ["Bash(touch:*)"]}}"#;

#[tokio::test]
async fn trust_decides_over_the_rules_of_the_folder() {
    let script = "- reply: [tool: {name: Bash, input: {command: touch a.txt}}]\n- reply: [text: Done.]";
    for (answer, asks) in [(Answer::Yes, 1), (Answer::No { feedback: None }, 2)] {
        let run =
            Harness::new().file(".claude/settings.json", ALLOW).script(script).answer(answer).prompt("go").run().await;
        assert_eq!(run.trace().matches("\nask ").count(), asks, "{}", run.trace());
    }
}

#[tokio::test]
async fn a_rule_for_the_project_holds_at_once_without_trust_in_the_rest() {
    let script = "- reply: [tool: {name: Bash, input: {command: mkdir d}}]\n\
                  - reply: [tool: {name: Bash, input: {command: mkdir d}}]\n- reply: [text: Done.]";
    let always = Answer::Always { rules: vec!["Bash(mkdir d)".into()], scope: GrantScope::Project };
    let no = || Answer::No { feedback: None };
    let run = Harness::new()
        .file(".claude/settings.json", ALLOW)
        .script(script)
        .answer(no())
        .answer(always)
        .prompt("go")
        .run()
        .await;
    assert_eq!(run.trace().matches("\nask ").count(), 2, "{}", run.trace());
    // The next start asks about what was refused, and not about the rule that was granted.
    let run = Harness::after(run).begin(Begin::New).script(script).answer(no()).prompt("go").run().await;
    assert_eq!(run.trace().matches("\nask ").count(), 1, "{}", run.trace());
    assert!(!run.trace().contains("ask Bash"), "{}", run.trace());
}

#[tokio::test]
async fn a_change_is_edited_before_it_is_approved() {
    let script =
        "- reply: [tool: {name: Write, input: {file_path: a.txt, content: \"theirs\\n\"}}]\n- reply: [text: Done.]";
    let mine = || Answer::Rewrite { text: "mine\n".into() };
    let run = Harness::new().script(script).answer(mine()).answer(Answer::Yes).prompt("go").run().await;
    assert_eq!((run.read("a.txt").as_str(), run.trace().matches("\nask ").count()), ("mine\n", 2), "{}", run.trace());
    let log = std::fs::read_to_string(run.log()).unwrap();
    assert!(
        log.contains("The user edited this change before approving it") && log.contains("as you edited it"),
        "{log}"
    );
    // What would change nothing is not taken, and the question stays.
    let run = Harness::new()
        .file("a.txt", "one\n")
        .script(
            "- reply: [tool: {name: Read, input: {file_path: a.txt}}]\n\
             - reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: two}}]\n\
             - reply: [text: Done.]",
        )
        .answer(Answer::Rewrite { text: "one".into() })
        .answer(Answer::Yes)
        .prompt("go")
        .run()
        .await;
    assert_eq!((run.read("a.txt").as_str(), run.trace().matches("\nask ").count()), ("two\n", 2), "{}", run.trace());
    assert!(run.trace().contains("Your version was not taken"), "{}", run.trace());
}

#[tokio::test]
async fn what_is_sent_during_the_start_waits_for_it() {
    let cost = Op::Command { name: "cost".into(), args: String::new() };
    let run = Harness::new().file(".claude/settings.json", ALLOW).at("session", cost).run().await;
    assert!(
        run.trace().contains("No request to a model has finished yet.") && !run.trace().contains("is not available"),
        "{}",
        run.trace()
    );
}

#[tokio::test]
async fn a_question_nobody_can_answer_any_more_does_not_hold_the_end_up() {
    let run = Harness::new().file(".claude/settings.json", ALLOW).unanswered().at("ask", Op::Shutdown).run().await;
    assert!(matches!(run.events.last(), Some(Event::Closed)));
}

#[tokio::test]
async fn broken_settings_of_the_folder_are_told_and_make_it_ask() {
    let run = Harness::new()
        .file(".cocode/config.toml", "[permissions]\ndenny = ['Bash(rm:*)']")
        .script("- reply: [tool: {name: Bash, input: {command: ls}}]\n- reply: [text: Done.]")
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().contains("config.toml: ignored because it does not parse"), "{}", run.trace());
    assert!(run.trace().contains("\nask Bash"), "{}", run.trace());
}

/// A turn that only ran commands, and one that only they came after.
#[tokio::test]
async fn an_undo_that_changes_nothing_names_the_commands() {
    let script = "- reply: [tool: {name: Bash, input: {command: mv a.txt b.txt}}]\n- reply: [text: Done.]\n";
    let run = Harness::new()
        .set("undo.commands = false")
        .file("a.txt", "one")
        .script(script)
        .mode(Mode::Bypass)
        .prompt("go")
        .prompt("/undo")
        .run()
        .await;
    let want = "Nothing to undo.⏎not undone: changes made by mv a.txt b.txt";
    assert!(run.trace().contains(want), "{}", run.trace());
    let run = Harness::new()
        .set("undo.commands = false")
        .file("a.txt", "one")
        .script(&format!(
            "{CHANGE}- reply: [tool: {{name: Bash, input: {{command: echo mine > a.txt}}}}]\n- reply: [text: Seen.]"
        ))
        .mode(Mode::Bypass)
        .prompt("change it")
        .prompt("and now")
        .prompt("/undo")
        .run()
        .await;
    let trace = run.trace();
    assert!(trace.contains(r#""turn":"change it""#) && trace.contains(r#""unseen":["echo mine > a.txt"]"#), "{trace}");
    assert!(trace.contains("was changed since"), "{trace}");
}

#[tokio::test]
async fn a_line_of_the_users_own_is_named_by_undo() {
    let shell = Op::Shell { command: "echo mine > b.txt".into() };
    let run = Harness::new()
        .file("a.txt", "one")
        .script(&format!("{CHANGE}- reply: [text: Seen.]"))
        .mode(Mode::AcceptEdits)
        .prompt("change it")
        .at("turn ended", shell)
        .prompt("and now")
        .prompt("/undo")
        .prompt("/undo")
        .run()
        .await;
    // The last turn changed no file: which one was undone is said.
    let trace = run.trace();
    let undone: Vec<&str> = trace.split(r#""turn":""#).skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(undone, ["!echo mine > b.txt", "change it"], "{trace}");
    assert!(run.read("a.txt") == "one" && !run.project().join("b.txt").exists(), "{trace}");
}
