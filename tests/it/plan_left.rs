//! Plan mode is left by the user alone: whatever else happens to the turn, the session or the process, it stays on.

use cocode::message::{Kind, PlanNote};
use cocode::permission::Mode;
use cocode::protocol::{Answer, Op, RewindWhat};
use cocode::session::Session;

use super::plan::notes;
use super::support::harness::{Harness, Ran};
use super::support::program::Program;

/// Tries to change something; what comes of it shows which mode holds.
const TRY: &str = "- reply: [tool: {name: Write, input: {file_path: a.txt, content: x}}]\n- reply: [text: Tried.]\n";

fn check(name: &str, run: &Ran) {
    let trace = run.trace();
    assert_eq!(run.session().facts().mode, Some(Mode::Plan), "{name}: {trace}");
    assert!(!trace.contains("plan mode left"), "{name}: {trace}");
    assert!(!run.project().join("a.txt").exists(), "{name}: {trace}");
}

/// Goes on after what happened, in the same folders, and tries again in a new process.
async fn check_further(name: &str, run: Ran) -> Ran {
    check(name, &run);
    let slug = run.session().facts().plan_slug.clone();
    assert!(slug.is_some(), "{name}");
    // Neither what the configuration says nor an answer of a person who allows everything changes that.
    let home = "permissions.default_mode = 'acceptEdits'\npermissions.allow = ['Write', 'Edit(//**)']\n";
    let run = Harness::after(run).home("../.config/cocode/config.toml", home).script(TRY).prompt("on").run().await;
    check(name, &run);
    assert!(run.trace().contains("toolresult Denied: Denied: plan mode"), "{name}: {}", run.trace());
    assert_eq!(run.session().facts().plan_slug, slug, "{name}");
    run
}

#[tokio::test]
async fn nothing_that_happens_to_a_turn_leaves_it() {
    let planned = r##"
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# Plan"}}]
- reply: [tool: {name: ExitPlanMode, input: {}}]
- reply: [text: Done.]
"##;
    let one = |reply: &str| format!("- reply: [{reply}]\n- reply: [text: Done.]\n");
    let ask = "tool: {name: AskUserQuestion, input: {questions: [{question: Q?, header: H, options: [{label: a, description: b}, {label: c, description: d}]}]}}";
    let task = "tool: {name: Task, input: {description: d, prompt: p, subagent_type: Explore}}";
    let below = "- for: agent:Explore\n  reply: [tool: {name: Bash, input: {command: cat /dev/zero}}]\n";
    type Row<'a> = (&'a str, String, fn(Harness) -> Harness);
    let rows: [Row; 17] = [
        ("no plan to submit", one("tool: {name: ExitPlanMode, input: {}}"), |run| run),
        ("a plan as argument", one("tool: {name: ExitPlanMode, input: {plan: 'Do it.'}}"), |run| run),
        ("entered again", one("tool: {name: EnterPlanMode, input: {}}"), |run| run.answer(Answer::Yes)),
        ("a no", planned.into(), |run| run.answer(Answer::No { feedback: None })),
        ("a no with words", planned.into(), |run| run.answer(Answer::No { feedback: Some("b".into()) })),
        ("a yes that is not an approval", planned.into(), |run| run.answer(Answer::Yes)),
        ("an answer to another question", planned.into(), |run| {
            run.answer(Answer::Chosen { answers: vec![vec!["a".into()]] })
        }),
        ("cancelled at the review", planned.into(), |run| run.unanswered().at("ask {\"type\":\"plan\"", Op::Interrupt)),
        ("cancelled at a question", one(ask), |run| run.unanswered().at("ask {", Op::Interrupt)),
        ("cancelled in a reply", "- reply: [text: Half, delay_ms: 600000, text: never.]\n".into(), |run| {
            run.at("text Half", Op::Interrupt)
        }),
        ("cancelled in a sub-agent", format!("{}{below}", one(task)), |run| {
            run.at("task a1 Explore Bash", Op::Interrupt)
        }),
        ("a provider that fails", "- reply: [error: {kind: bad_request, message: no}]\n".into(), |run| run),
        ("a provider that is down", "- repeat: 9\n  reply: [error: {kind: auth, message: no}]\n".into(), |run| run),
        ("the limit of calls", one("tool: {name: LS, input: {path: .}}"), |run| run.max_turns(1)),
        ("the end of the program at the review", planned.into(), |run| {
            run.unanswered().at("ask {\"type\":\"plan\"", Op::Shutdown)
        }),
        (
            "the same call over and over",
            format!("- repeat: 9\n  reply: [{}]\n", "tool: {name: LS, input: {path: .}}"),
            |run| run,
        ),
        ("an empty reply", "- repeat: 9\n  reply: []\n".into(), |run| run),
    ];
    for (name, script, how) in rows {
        let run = how(Harness::new().script(&script).mode(Mode::Default)).prompt("/plan go").run().await;
        check_further(name, run).await;
    }
}

#[tokio::test]
async fn no_command_but_its_own_leaves_it() {
    let summary = "- {for: summary, repeat: 3, reply: [text: '<summary>All is well.</summary>']}\n";
    let talk = "- reply: [text: one]\n- reply: [text: two, usage: {input: 170000, output: 5}]\n";
    let three = format!("{talk}- reply: [text: three]\n- reply: [text: four]\n{summary}");
    for commands in [
        &["/compact heed this"][..],
        &["/compact heed this", "/compact undo"],
        &["/compact micro"],
        // The window is full: the next prompt compacts by itself.
        &["third"],
        &["/undo", "/redo"],
        &["/rename x", "/thinking deep", "/model offline/script", "/permissions", "/plan"],
        &["/hooks", "/agents", "/skills reload", "/context", "/cost", "/export a.md", "/config tui.theme light"],
    ] {
        let mut harness = Harness::new().script(&three).prompt("/plan first").prompt("second");
        for command in commands {
            harness = harness.prompt(command);
        }
        let run = harness.run().await;
        let compacted = run.trace().contains("\ncompacted ");
        assert_eq!(compacted, commands[0] == "third" || commands[0].starts_with("/compact h"), "{}", run.trace());
        let run = check_further(&commands.join(" "), run).await;
        // After a boundary the first request carries everything again.
        let told = notes(&run);
        if compacted && commands.len() == 1 {
            assert!(told.contains(&PlanNote::Full), "{told:?}");
        }
    }
}

/// Where the session's prompts stand in the log.
fn prompts(session: &Session) -> Vec<u64> {
    let entries = session.context().entries();
    entries.filter(|(_, message)| message.kind == Kind::Prompt).map(|(seq, _)| seq).collect()
}

#[tokio::test]
async fn a_rewind_to_before_it_does_not_leave_it() {
    for what in [RewindWhat::Both, RewindWhat::Conversation, RewindWhat::Code] {
        let script = "- reply: [text: Hi.]\n- reply: [text: Planning.]\n";
        let run = Harness::new().script(script).prompt("hello").prompt("/plan go").run().await;
        let to = prompts(&run.session())[0];
        let run = Harness::after(run).script("").at("session", Op::Rewind { to, what }).prompt("/status").run().await;
        assert!(run.trace().contains("\"type\":\"rewound\"") || what == RewindWhat::Code, "{}", run.trace());
        let run = check_further(&format!("{what:?}"), run).await;
        // What the model was told went with the conversation, so it is told again.
        assert_eq!(notes(&run), [PlanNote::Full], "{what:?}");
    }
}

#[tokio::test]
async fn a_new_session_goes_on_planning_with_a_plan_of_its_own() {
    let run = Harness::new().script("- reply: [text: Hi.]").prompt("/plan go").run().await;
    let (first, slug) = (run.session().id().to_owned(), run.session().facts().plan_slug.clone());
    let run = Harness::after(run).script(TRY).prompt("/clear").prompt("on").run().await;
    check("/clear", &run);
    assert!(run.trace().contains("toolresult Denied: Denied: plan mode"), "{}", run.trace());
    let session = run.session();
    assert_ne!(session.id(), first);
    assert!(session.facts().plan_slug.is_some() && session.facts().plan_slug != slug);
    // Back in the one before, which was in plan mode, too.
    let run = Harness::after(run).script("").prompt(&format!("/resume {first}")).run().await;
    assert!(run.trace().ends_with("mode plan\nplan mode entered"), "{}", run.trace());
}

#[test]
fn a_fork_goes_on_planning_with_a_copy_of_the_plan() {
    let program = Program::new();
    let plan = program.script(
        "plan.yaml",
        r##"
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# The plan\n"}}]
- reply: [text: Planned.]
"##,
    );
    assert_eq!(program.run(&["-p", "/plan go", "--offline-script", &plan]).code, Some(0));
    let tries = program.script(
        "try.yaml",
        r##"
- reply:
  - tool: {name: Write, input: {file_path: a.txt, content: x}}
  - tool: {name: Read, input: {file_path: "{plan_file}"}}
  - tool: {name: Edit, input: {file_path: "{plan_file}", old_string: The, new_string: My}}
- reply: [text: Tried.]
"##,
    );
    let flags = ["-p", "go", "--continue", "--fork-session", "--allowed-tools", "Write", "--offline-script", &tries];
    let done = program.run(&flags);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "Tried.\n"), "{}", done.err);
    assert!(!program.project().join("a.txt").exists());
    let plans = std::fs::read_dir(program.home().join(".claude/plans")).unwrap();
    let mut plans: Vec<String> = plans.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    plans.sort();
    assert_eq!(plans, ["# My plan\n", "# The plan\n"]);
}
