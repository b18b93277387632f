//! Skills over a scripted model: typed and called, with arguments, commands, rules and models of their own.

use cocode::message::Kind;
use cocode::permission::Mode;
use cocode::protocol::{Answer, Event, Item, Op};

use super::support::harness::{Harness, Ran};

fn skill(head: &str, body: &str) -> String {
    format!("---\ndescription: Does it\n{head}\n---\n{body}\n")
}

/// A harness with one skill of the user's own.
fn own(name: &str, head: &str, body: &str) -> Harness {
    Harness::new().home(&format!("skills/{name}/SKILL.md"), &skill(head, body))
}

const DONE: &str = "- reply: [text: Done.]\n";

/// What the model read of a skill.
fn told(run: &Ran) -> Vec<String> {
    run.events
        .iter()
        .filter_map(|event| match event {
            Event::Item(Item::Message { message, .. }) if message.kind == Kind::Skill => Some(message.text()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_typed_skill_is_a_turn_with_its_text() {
    let run =
        own("fix", "", "Fix $ARGUMENTS in ${CLAUDE_SKILL_DIR}.").script(DONE).prompt("/fix the  parser").run().await;
    let trace = run.trace();
    assert!(trace.contains("\nprompt /fix the  parser\n"), "{trace}");
    assert!(trace.ends_with("turn ended Done"), "{trace}");
    let folder = run.home().join("skills/fix").display().to_string();
    let want = format!(
        "Instructions of the skill `fix`. Relative paths in them start from {folder}.\n\nFix the  parser in {folder}."
    );
    assert_eq!(told(&run), [want]);
    let facts = run.session().facts().clone();
    assert_eq!(facts.title(), Some("/fix the parser"));
    assert_eq!((facts.invoked.len(), facts.invoked[0].name.as_str()), (1, "fix"));
    let shown = serde_json::to_string(&run.session().history(10).unwrap().0).unwrap();
    assert!(shown.contains("\"/fix the  parser\"") && shown.contains("Instructions of the skill"), "{shown}");
}

#[tokio::test]
async fn the_model_calls_a_skill_and_reads_its_text() {
    let run = own("fix", "argument-hint: [what]", "Fix $1.")
        .script(
            r#"
- reply: [tool: {name: Skill, input: {skill: fix, args: "'a b' c"}}]
- reply: [tool: {name: Skill, input: {skill: /fix}}]
  expect: {contains: "Fix a b."}
- reply: [text: Done.]
  expect: {contains: "already running"}
"#,
        )
        .prompt("go")
        .prompt("and again")
        .run()
        .await;
    let trace = run.trace();
    assert!(trace.contains("turn ended Done"), "{trace}");
    assert_eq!(told(&run).len(), 1);
}

#[tokio::test]
async fn what_a_skill_may_not_is_said() {
    let run = Harness::new()
        .home("skills/auto/SKILL.md", &skill("user-invocable: false", "x"))
        .home("skills/mine/SKILL.md", &skill("disable-model-invocation: true", "x"))
        .home("skills/bare/SKILL.md", "# No frontmatter\n")
        .script(
            r#"
- reply:
  - tool: {name: Skill, input: {skill: mine}}
  - tool: {name: Skill, input: {skill: mien}}
  - tool: {name: Skill, input: {skill: bare}}
- reply: [text: Done.]
"#,
        )
        .prompt("/auto")
        .prompt("/mien")
        .prompt("go")
        .run()
        .await;
    let trace = run.trace();
    for want in [
        "error `/auto` is for the model only",
        "error unknown command /mien: did you mean /mine?",
        "toolresult Error: Only the user can start the skill `mine`",
        "toolresult Error: No skill `mien`. Did you mean `mine`?",
        "toolresult Error: Only the user can start the skill `bare`, as `/bare`: its file has no description.",
    ] {
        assert!(trace.contains(want), "{want}\n{trace}");
    }
    assert_eq!(told(&run), [] as [String; 0]);
}

#[tokio::test]
async fn what_a_skill_does_not_name_asks_during_its_run_in_every_mode() {
    let calls = "- reply: [tool: {name: Bash, input: {command: \"touch a.txt\"}}, tool: {name: Write, input: {file_path: b.txt, content: b}}, tool: {name: Read, input: {file_path: c.txt}}]\n- reply: [text: Done.]\n";
    for (mode, head, want) in [
        (Mode::AcceptEdits, "allowed-tools: Bash(touch:*)", ["Write"].as_slice()),
        (Mode::Bypass, "allowed-tools: Bash(touch:*)", &["Write"]),
        (Mode::Bypass, "allowed-tools: Write", &["Bash"]),
        (Mode::AcceptEdits, "allowed-tools: Bash(touch:*), Write", &[]),
        // One that names nothing narrows nothing.
        (Mode::Bypass, "", &[]),
    ] {
        let run = own("make", head, "Make it.").mode(mode).file("c.txt", "c").script(&calls.repeat(2));
        let run = run.prompt("/make").prompt("again").run().await;
        let trace = run.trace();
        let during = trace.split("prompt again").next().unwrap_or_default();
        let asked = |trace: &str| -> Vec<String> {
            let asks = trace.lines().filter_map(|line| line.strip_prefix("ask "));
            asks.map(|ask| ask.split_whitespace().next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(asked(during), want, "{mode} {head}: {trace}");
        if mode == Mode::Bypass {
            assert_eq!(asked(&trace).len(), want.len(), "{head}: {trace}");
        }
    }
}

#[tokio::test]
async fn allowed_tools_hold_for_the_run_and_no_longer() {
    let call = "- reply: [tool: {name: Bash, input: {command: \"touch a.txt\"}}]\n- reply: [text: Done.]\n";
    let ask = |run: &Ran| run.trace().matches("\nask Bash").count();
    let harness = || own("make", "allowed-tools: Bash(touch:*)", "Touch it.").script(&call.repeat(2));
    let run = harness().prompt("/make").prompt("again").run().await;
    assert!(run.project().join("a.txt").exists());
    assert_eq!(ask(&run), 1, "only outside of the run: {}", run.trace());
    // What it may is bounded by the mode, and by rules that forbid.
    let run = harness().mode(Mode::Plan).prompt("/make").run().await;
    assert!(!run.project().join("a.txt").exists(), "{}", run.trace());
    let run = harness().set("permissions.deny = ['Bash(touch:*)']").prompt("/make").run().await;
    assert!(!run.project().join("a.txt").exists(), "{}", run.trace());
    let run = own("make", "disallowed-tools: Bash(touch:*)", "Touch it.")
        .script(&call.repeat(2))
        .mode(Mode::Bypass)
        .prompt("/make")
        .prompt("again")
        .run()
        .await;
    assert!(run.trace().contains("deny rule Bash(touch:*) (running skill)"), "{}", run.trace());
    assert!(run.project().join("a.txt").exists(), "the rule ended with the run");
}

#[tokio::test]
async fn an_interrupt_ends_the_run() {
    let run = own("make", "allowed-tools: Bash(touch:*)", "Touch it.")
        .script(
            r#"
- reply: [text: Wait., delay_ms: 60000, text: Never.]
- reply: [tool: {name: Bash, input: {command: "touch a.txt"}}]
"#,
        )
        .prompt("/make")
        .at("text Wait", Op::Interrupt)
        .prompt("go")
        .run()
        .await;
    assert_eq!(run.trace().matches("\nask Bash").count(), 1, "{}", run.trace());
}

#[tokio::test]
async fn commands_of_a_skill_run_under_the_rules() {
    let body = "Status: !`echo it is fine`\nMade: !`touch b.txt`\nEnd.";
    let run = own("look", "", body).script(DONE).prompt("/look").answer(Answer::No { feedback: None }).run().await;
    let text = &told(&run)[0];
    assert!(text.contains("Status: it is fine\nMade: [`touch b.txt` was denied: "), "{text}");
    assert!(text.trim_end().ends_with("End.") && !run.project().join("b.txt").exists(), "{text}");
    let run = own("look", "allowed-tools: Bash(touch:*)", body).script(DONE).prompt("/look").run().await;
    assert!(run.project().join("b.txt").exists() && !run.trace().contains("\nask"), "{}", run.trace());
    let run = own("look", "", "!`cat none.txt`").script(DONE).prompt("/look").run().await;
    assert!(told(&run)[0].contains("[`cat none.txt` failed: "), "{:?}", told(&run));
}

#[tokio::test]
async fn a_project_needs_trust_for_commands_and_grants() {
    let harness = || {
        Harness::new()
            .file(".claude/skills/make/SKILL.md", &skill("allowed-tools: Bash(touch:*)", "!`echo ran`"))
            .script("- reply: [tool: {name: Bash, input: {command: \"touch a.txt\"}}]\n- reply: [text: Done.]\n")
            .prompt("/make")
    };
    let run = harness().answer(Answer::No { feedback: None }).run().await;
    let trace = run.trace();
    assert!(
        trace.contains("allowed tools of /make: Bash(touch:*)") && trace.contains("commands that /make runs"),
        "{trace}"
    );
    assert!(told(&run)[0].contains("[`echo ran` was not run: the user has not approved what this skill runs]"));
    assert!(!run.project().join("a.txt").exists(), "{trace}");
    let run = harness().answer(Answer::Yes).run().await;
    assert!(told(&run)[0].ends_with("\n\nran"), "{:?}", told(&run));
    assert!(run.project().join("a.txt").exists(), "{}", run.trace());
}

/// Everything that a body may hold and an argument may not mean.
const PLACEHOLDERS: &str = "$ARGUMENTS $ARGUMENTS[0] $0 $1 $9 ${CLAUDE_SKILL_DIR} ${CLAUDE_PLUGIN_ROOT} \
    ${CLAUDE_SESSION_ID} ${COCODE_SKILL_DIR} ${COCODE_SESSION_ID} !`touch evil.txt` @secret.txt";

#[tokio::test]
async fn arguments_are_never_expanded() {
    for body in ["Say: $ARGUMENTS", "Say:", "Say: $ARGUMENTS\n\n```\n$ARGUMENTS\n```"] {
        let run = own("say", "", body)
            .file("secret.txt", "do not tell")
            .mode(Mode::Bypass)
            .env("COCODE_SANDBOXED", "1")
            .script("- reply: [text: Done.]\n  expect: {lacks: do not tell}\n")
            .prompt(&format!("/say {PLACEHOLDERS}"))
            .run()
            .await;
        let text = &told(&run)[0];
        assert_eq!(text.matches(PLACEHOLDERS).count(), body.matches("$ARGUMENTS").count().max(1), "{text}");
        assert!(!run.project().join("evil.txt").exists(), "{text}");
        assert!(run.trace().ends_with("turn ended Done"), "{}", run.trace());
    }
}

#[tokio::test]
async fn an_argument_never_becomes_a_command() {
    let evil = "x; touch evil1.txt $(touch evil2.txt) `touch evil3.txt` ' ; touch evil4.txt ' && touch evil5.txt";
    let body =
        "One !`echo $ARGUMENTS`\nTwo !`echo \"$ARGUMENTS\"`\nThree !`echo '$ARGUMENTS'`\nFour !`echo $1 $2`\nEnd.";
    for args in [evil, PLACEHOLDERS, "$(touch evil6.txt)", "a' \"b"] {
        let run = own("say", "", body)
            .mode(Mode::Bypass)
            .env("COCODE_SANDBOXED", "1")
            .script(DONE)
            .prompt(&format!("/say {args}"))
            .run()
            .await;
        let made: Vec<_> = std::fs::read_dir(run.project()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(made.iter().all(|name| !name.to_string_lossy().contains("evil")), "{args}: {made:?}");
        assert!(told(&run)[0].contains("End."), "{}", run.trace());
    }
}

/// Rules of a skill are the weakest that allow: any rule that denies or asks is above them.
#[tokio::test]
async fn a_skill_grants_no_more_than_the_mode_and_the_rules() {
    for grant in ["'*'", "Bash", "Bash(*)", "Bash(touch:*), Write, Edit"] {
        let harness = || {
            own(
                "make",
                &format!("allowed-tools: {grant}\npermission_mode: bypassPermissions\nmode: bypass"),
                "Touch it.",
            )
            .script("- reply: [tool: {name: Bash, input: {command: \"touch a.txt\"}}]\n- reply: [text: Done.]\n")
            .prompt("/make")
        };
        for (set, mode) in [
            ("", Mode::Plan),
            ("permissions.deny = ['Bash(touch:*)']", Mode::Default),
            ("permissions.deny = ['Bash']", Mode::AcceptEdits),
            ("permissions.ask = ['Bash(touch:*)']", Mode::Default),
        ] {
            let run = harness().set(set).mode(mode).answer(Answer::No { feedback: Some("no".into()) }).run().await;
            assert!(!run.project().join("a.txt").exists(), "{grant}, {set}: {}", run.trace());
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_in_a_skill_open_nothing_outside() {
    let harness =
        || own("read", "", "See @notes.md and @sub/more.md and @../../../private.txt").script(DONE).prompt("/read");
    let harness = harness();
    let home = harness.project().parent().unwrap().join(".claude");
    let outside = home.parent().unwrap().join("private.txt");
    std::fs::write(&outside, "the private words").unwrap();
    let skill = home.join("skills/read");
    std::os::unix::fs::symlink(&outside, skill.join("notes.md")).unwrap();
    std::fs::create_dir_all(home.parent().unwrap().join("elsewhere")).unwrap();
    std::fs::write(home.parent().unwrap().join("elsewhere/more.md"), "the private words").unwrap();
    std::os::unix::fs::symlink(home.parent().unwrap().join("elsewhere"), skill.join("sub")).unwrap();
    let run = harness.run().await;
    assert!(!run.trace().contains("the private words"), "{}", run.trace());
    assert_eq!(run.trace().matches("was not attached").count(), 3, "{}", run.trace());
}

#[tokio::test]
async fn a_file_beside_the_skill_is_attached_and_one_outside_is_not() {
    let run = own("read", "", "See @notes.md and @../../../outside.txt and @pytest.fixture")
        .home("skills/read/notes.md", "the notes")
        .script("- reply: [text: Done.]\n  expect: {contains: \"/read\"}\n")
        .prompt("/read")
        .run()
        .await;
    let trace = run.trace();
    assert!(trace.contains("notes.md:⏎⏎     1→the notes") && !trace.contains("pytest.fixture was"), "{trace}");
}

#[tokio::test]
async fn a_model_of_its_own_is_asked_for_the_run() {
    let run = own("think", "model: opus", "Think.").script(&DONE.repeat(2)).prompt("/think").prompt("on").run().await;
    let models: Vec<&str> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Model(info) => Some(info.model.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(models, ["opus", "script"]);
    let asked: Vec<String> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Item(Item::Message { message, .. }) => message.origin.as_ref().map(|origin| origin.model.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(asked, ["opus", "script"]);
    assert_eq!(run.session().facts().model.as_deref(), Some("offline/script"));
}

#[tokio::test]
async fn a_skill_typed_while_busy_waits_for_the_end_of_the_turn() {
    let op = Op::Command { name: "fix".into(), args: "it".into() };
    let run = own("fix", "argument-hint: [what]", "Fix $1.")
        .script("- reply: [text: Working., delay_ms: 50, text: Ready.]\n- reply: [text: Fixed.]\n  expect: {contains: Fix it.}\n")
        .prompt("go")
        .at("text Working", op)
        .run()
        .await;
    let trace = run.trace();
    assert!(trace.contains("\nqueue [\"/fix it\"]\n"), "{trace}");
    assert!(trace.find("turn ended Done") < trace.find("prompt /fix it"), "{trace}");
    assert!(trace.ends_with("reply Fixed.\nturn ended Done"), "{trace}");
}

#[tokio::test]
async fn the_model_is_told_once_and_then_of_changes() {
    let run = own("fix", "when_to_use: for bugs", "x").script(&DONE.repeat(2)).prompt("one").prompt("two").run().await;
    assert_eq!(run.trace().matches("# Skills⏎").count(), 1, "{}", run.trace());
    assert!(run.trace().contains("attachment # Skills⏎commit fix init"), "{}", run.trace());
    std::fs::create_dir_all(run.home().join("skills/newer")).unwrap();
    std::fs::write(run.home().join("skills/newer/SKILL.md"), skill("", "y")).unwrap();
    std::fs::remove_dir_all(run.home().join("skills/fix")).unwrap();
    let run = Harness::after(run).script(DONE).prompt("three").run().await;
    let trace = run.trace();
    assert!(trace.contains("# New or changed skills⏎- newer: Does it⏎Removed: fix⏎"), "{trace}");
    assert!(!trace.contains("# Skills⏎"), "{trace}");
}

#[tokio::test]
async fn an_edit_counts_at_once() {
    let run = own("fix", "", "First.").script(&DONE.repeat(2)).prompt("/fix").run().await;
    assert!(told(&run)[0].ends_with("First."));
    std::fs::write(run.home().join("skills/fix/SKILL.md"), skill("", "Second.")).unwrap();
    let run = Harness::after(run).script(DONE).prompt("/fix").run().await;
    assert!(told(&run)[0].ends_with("Second."));
}

#[tokio::test]
async fn edits_are_live_within_a_session() {
    let write = |name: &str, body: &str| {
        format!(
            "- reply: [tool: {{name: Bash, input: {{command: \"mkdir -p .claude/skills/{name} && \
             printf -- '---\\\\ndescription: d\\\\n---\\\\n{body}' > .claude/skills/{name}/SKILL.md\"}}}}]\n{DONE}"
        )
    };
    let script = [
        DONE.to_owned(),
        write("fix", "Second."),
        DONE.to_owned(),
        write("newer", "Third."),
        DONE.to_owned(),
        format!("- reply: [tool: {{name: Bash, input: {{command: rm -r .claude/skills/fix}}}}]\n{DONE}"),
    ];
    let run = Harness::new()
        .file(".claude/skills/fix/SKILL.md", &skill("", "First."))
        .mode(Mode::Bypass)
        .env("COCODE_SANDBOXED", "1")
        .script(&script.concat());
    // Even so, what could steer the agent is asked about.
    let run = run.answer(Answer::Yes).answer(Answer::Yes).answer(Answer::Yes);
    let run = run.prompt("/fix").prompt("edit").prompt("/fix").prompt("add").prompt("/newer").prompt("remove");
    let run = run.prompt("/fix").run().await;
    let ends: Vec<String> = told(&run).iter().map(|text| text[text.len() - 7..].trim().to_owned()).collect();
    assert_eq!(ends, ["First.", "Second.", "Third."], "{}", run.trace());
    assert!(run.trace().contains("\nerror unknown command /fix"), "{}", run.trace());
}

#[tokio::test]
async fn a_skill_recalls_itself() {
    let head = "normal_reminder: Mind the tests.\ndetailed_reminder: Mind the tests, all of them.";
    let harness = || own("fix", head, "x").script(&DONE.repeat(6)).prompt("/fix");
    let run = harness().prompt("1").prompt("2").prompt("3").prompt("4").run().await;
    assert_eq!(run.trace().matches("Mind the tests.⏎").count(), 4, "{}", run.trace());
    let run = harness().set("skills = {verbosity = 'detailed', include_name = true}").run().await;
    assert!(run.trace().contains("⏎fix: Mind the tests, all of them.⏎"), "{}", run.trace());
    let run = harness().set("skills.verbosity = 'sparse'").run().await;
    assert!(!run.trace().contains("Mind the tests"), "{}", run.trace());
}

#[tokio::test]
async fn lists_name_skills_and_what_stands_in_their_way() {
    let run = own("help", "", "x")
        .home("skills/fix/SKILL.md", &skill("", "user"))
        .file(".claude/skills/fix/SKILL.md", &skill("", "project"))
        .file(".claude/commands/old.md", "x")
        .script(&DONE.repeat(3))
        .prompt("/skills")
        .prompt("/skills reload")
        .prompt("/help")
        .prompt("/user:help")
        .prompt("/doctor")
        .run()
        .await;
    let trace = run.trace();
    for want in [
        "notice 1 file in `.claude/commands` is not loaded",
        "- `/user:help` — user · hidden by a built-in command · Does it",
        "- `/fix` — user · Does it",
        "- `/project:fix` — project · shadowed by ",
        "notice Reloaded ",
        "| `/fix` | Does it (user) |",
        "prompt /user:help",
        "1 shadowed by another of the same name (`cocode skills list`); 1 only available by their longer names, because built-in commands use the short ones: /user:help;",
    ] {
        assert!(trace.contains(want), "{want}\n{trace}");
    }
}

#[tokio::test]
async fn use_is_counted_unless_switched_off() {
    let run = own("fix", "", "x").script(DONE).prompt("/fix").run().await;
    let file = run.home().join("cocode/skill-usage.json");
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"fix\""));
    let run = own("fix", "", "x").set("skill_usage_tracking = false").script(DONE).prompt("/fix").run().await;
    assert!(!run.home().join("cocode/skill-usage.json").exists());
}

#[tokio::test]
async fn old_commands_load_on_request() {
    let run = Harness::new()
        .file(".claude/commands/deep/old.md", "---\nargument-hint: what\n---\nDo $1")
        .set("load_legacy_commands = true")
        .script(DONE)
        .prompt("/old it")
        .run()
        .await;
    assert!(told(&run)[0].ends_with("Do it"), "{}", run.trace());
}

#[tokio::test]
async fn a_fork_runs_as_a_sub_agent_and_only_its_report_comes_back() {
    let steps = |main: &str| {
        format!(
            "{main}- reply: [text: Done.]\n  expect: {{contains: \"Looked at it.\"}}\n\
             - for: agent:Explore\n  expect: {{contains: \"Look at x.\"}}\n  reply: [text: Looked at it.]\n"
        )
    };
    let harness = || own("away", "context: fork\nagent: Explore", "Look at $ARGUMENTS.");
    let called = "- reply: [tool: {name: Skill, input: {skill: away, args: x}}]\n";
    for (script, prompt) in [(steps(""), "/away x"), (steps(called), "go")] {
        let run = harness().script(&script).prompt(prompt).run().await;
        let trace = run.trace();
        assert!(trace.contains("task a1 Explore Done") && trace.ends_with("turn ended Done"), "{trace}");
        let told = told(&run);
        assert!(told[0].starts_with("The skill `away` ran as a sub-agent") && told.len() == 1, "{told:?}");
    }
    // Its type obeys the rules of every launch.
    let run = harness()
        .set("permissions.deny = ['Task(Explore)']")
        .script("- reply: [text: Done.]\n  expect: {contains: \"was not run as a sub-agent\"}\n")
        .prompt("/away x")
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended Done"), "{}", run.trace());
}

#[tokio::test]
async fn no_name_evades_a_rule_against_a_skill() {
    for called in ["deploy", "ship", "/ship", "user:deploy"] {
        let run = own("deploy", "aliases: [ship]", "Deploy.")
            .set("permissions.deny = ['Skill(deploy)']")
            .script(&format!("- reply: [tool: {{name: Skill, input: {{skill: {called}}}}}]\n{DONE}"))
            .prompt("go")
            .run()
            .await;
        assert!(run.trace().contains("deny rule Skill(deploy)"), "{called}: {}", run.trace());
        assert_eq!(told(&run), [] as [String; 0], "{called}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_skill_opens_no_more_than_its_own_folder() {
    let read = |path: &str| format!("- reply: [tool: {{name: Read, input: {{file_path: \"$P/{path}\"}}}}]\n{DONE}");
    // Its own folder, also where a project's parent has it; not the folder that a link in its place leads to.
    for (target, file, asks) in [("", "notes.md", 0), ("..", "out/notes.md", 1), (".", "a/notes.md", 1)] {
        let harness = Harness::new()
            .folder("project/sub")
            .set("permissions.ask = ['Read(notes.md)']")
            .script(&read(&format!(".claude/skills/x/{file}")))
            .prompt("/x")
            .answer(Answer::Yes);
        let project = harness.project();
        let skills = project.join(".claude/skills");
        std::fs::create_dir_all(&skills).unwrap();
        let target = match target {
            ".." => project.parent().unwrap().to_owned(),
            "." => project.clone(),
            _ => skills.join("x"),
        };
        std::fs::create_dir_all(target.join(file).parent().unwrap()).unwrap();
        std::fs::write(target.join("SKILL.md"), skill("", "!`echo ran`")).unwrap();
        std::fs::write(target.join(file), "the notes").unwrap();
        if target != skills.join("x") {
            std::os::unix::fs::symlink(&target, skills.join("x")).unwrap();
        }
        let run = harness.run().await;
        assert!(told(&run)[0].ends_with("ran"), "trusted: {}", run.trace());
        assert_eq!(run.trace().matches("\nask Read").count(), asks, "{target:?}: {}", run.trace());
    }
}

#[tokio::test]
async fn a_crash_ends_the_model_of_a_run() {
    let run = own("think", "model: opus", "Think.").script(DONE).prompt("/think").run().await;
    let log = run.session().log().to_owned();
    // As it is when the process dies within the run.
    let text = std::fs::read_to_string(&log).unwrap();
    let cut: Vec<&str> = text.lines().take_while(|line| !line.contains("\"turn_ended\"")).collect();
    std::fs::write(&log, cut.join("\n") + "\n").unwrap();
    let facts = run.session().facts().clone();
    assert_eq!((facts.model.as_deref(), facts.own_model), (Some("offline/opus"), None));
}

#[tokio::test]
async fn a_project_chooses_no_model_without_trust() {
    let run = Harness::new()
        .file(".claude/skills/think/SKILL.md", &skill("model: opus", "Think."))
        .script(DONE)
        .prompt("/think")
        .answer(Answer::No { feedback: None })
        .run()
        .await;
    assert!(run.trace().contains("the model opus for /think"), "{}", run.trace());
    assert!(!run.events.iter().any(|event| matches!(event, Event::Model(info) if info.model == "opus")));
}

#[tokio::test]
async fn the_rules_of_a_fork_end_with_it() {
    let run = own("outer", "", "Call the other one.")
        .home("skills/away/SKILL.md", &skill("context: fork\nallowed-tools: Bash(touch:*)", "Look."))
        .script(
            r#"
- reply: [tool: {name: Skill, input: {skill: away}}]
- reply: [tool: {name: Bash, input: {command: "touch a.txt"}}]
- reply: [text: Done.]
- for: agent:general-purpose
  reply: [text: Looked.]
"#,
        )
        .prompt("/outer")
        .answer(Answer::No { feedback: Some("no".into()) })
        .run()
        .await;
    assert_eq!(run.trace().matches("\nask Bash").count(), 1, "{}", run.trace());
}

#[tokio::test]
async fn what_a_fork_took_ends_with_it_while_another_skill_runs() {
    let hooks = "hooks: {PreToolUse: [{matcher: Bash, hooks: [{type: command, command: 'exit 2'}]}]}";
    let run = own("outer", "model: haiku", "Call the other one.")
        .home("skills/away/SKILL.md", &skill(&format!("context: fork\nmodel: opus\n{hooks}"), "Look."))
        .script(
            r#"
- reply: [tool: {name: Skill, input: {skill: away}}]
- for: agent:general-purpose
  reply: [tool: {name: Bash, input: {command: "ls"}}]
- for: agent:general-purpose
  reply: [text: Looked.]
  expect: {contains: "Denied by the user's PreToolUse hook"}
- reply: [tool: {name: Bash, input: {command: "ls"}}]
- reply: [text: Done.]
  expect: {lacks: "Denied by the user's PreToolUse hook"}
"#,
        )
        .prompt("/outer")
        .run()
        .await;
    let trace = run.trace();
    assert!(trace.ends_with("turn ended Done") && trace.contains("hook PreToolUse:Bash"), "{trace}");
    let models: Vec<&str> = run
        .events
        .iter()
        .filter_map(|event| if let Event::Model(info) = event { Some(info.model.as_str()) } else { None })
        .collect();
    assert_eq!(models, ["haiku", "opus", "haiku", "script"]);
}

#[tokio::test]
async fn an_agent_type_alone_makes_no_fork() {
    let run = own("mine", "agent: quant_analyst", "Look at it.").script(DONE).prompt("/mine").run().await;
    assert!(told(&run)[0].ends_with("Look at it."), "{}", run.trace());
}

#[tokio::test]
async fn a_skills_hooks_run_with_it_and_a_projects_only_in_a_trusted_folder() {
    let text = skill("hooks: {PreToolUse: [{hooks: [{type: command, command: touch ran.txt}]}]}", "Look.");
    let call = "- reply: [tool: {name: Read, input: {file_path: a.txt}}]\n- reply: [text: Done.]\n";
    for (answer, ran) in [(Answer::No { feedback: None }, false), (Answer::Yes, true)] {
        let run = Harness::new().file(".claude/skills/look/SKILL.md", &text).file("a.txt", "x").script(call);
        let run = run.prompt("/look").answer(answer).run().await;
        assert!(run.trace().contains("hooks of /look"), "{}", run.trace());
        assert_eq!(run.project().join("ran.txt").exists(), ran, "{}", run.trace());
    }
    let run = Harness::new().home("skills/look/SKILL.md", &text).file("a.txt", "x").script(&call.repeat(2));
    let run = run.prompt("go").run().await;
    assert!(!run.project().join("ran.txt").exists(), "without the skill: {}", run.trace());
}
