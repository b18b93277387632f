//! Plan mode from the way in to the way out: the file, the review, the reminders, and what never happens by itself.

use cocode::message::{Effect, Message, PlanNote};
use cocode::permission::Mode;
use cocode::protocol::{Answer, Approval, Op};

use super::support::harness::{Harness, Ran};

/// Writes a plan, submits it, and does what came of it.
const PLANNED: &str = r##"
- reply:
  - text: I plan first.
  - tool: {name: Write, input: {file_path: "{plan_file}", content: "# Plan\n1. Write a.txt.\n"}}
- reply: [tool: {name: ExitPlanMode, input: {}}]
- reply: [tool: {name: Write, input: {file_path: a.txt, content: x}}]
- reply: [text: Done.]
"##;

fn planned() -> Harness {
    Harness::new().script(PLANNED).mode(Mode::Plan).prompt("write a.txt")
}

fn approve(how: Approval) -> Answer {
    Answer::Approve { how }
}

/// What the model was told of plan mode, in order, over all that is in the context.
pub(crate) fn notes(run: &Ran) -> Vec<PlanNote> {
    let note = |message: &Message| {
        message.effects.iter().find_map(|effect| match effect {
            Effect::Plan { note, .. } => Some(*note),
            _ => None,
        })
    };
    run.session().context().entries().filter_map(|(_, message)| note(message)).collect()
}

#[tokio::test]
async fn a_plan_is_written_reviewed_and_carried_out() {
    let run = planned().answer(approve(Approval::AcceptEdits)).run().await;
    // Which skills are shipped does not matter here.
    let trace = run.trace();
    let lines: Vec<&str> = trace.lines().filter(|line| !line.contains("# Skills")).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!((run.read("a.txt").as_str(), run.plan().as_str()), ("x", "# Plan\n1. Write a.txt.\n"));
    assert_eq!(notes(&run), [PlanNote::Full, PlanNote::Exit]);
}

#[tokio::test]
async fn approval_leads_to_the_mode_that_was_chosen_and_no_further() {
    for (how, mode, asks) in [
        (Approval::AcceptEdits, Mode::AcceptEdits, 0),
        (Approval::AskEach, Mode::Default, 1),
        (Approval::FreshContext, Mode::Default, 1),
    ] {
        for started in [Mode::Default, Mode::AcceptEdits, Mode::Bypass, Mode::DontAsk] {
            let run = Harness::new()
                .script(PLANNED)
                .mode(started)
                .prompt("/plan write a.txt")
                .answer(approve(how))
                .answer(Answer::Yes)
                .run()
                .await;
            let trace = run.trace();
            assert_eq!(run.session().facts().mode, Some(mode), "{how:?} {started}\n{trace}");
            assert_eq!(trace.matches("\nask Write").count(), asks, "{how:?} {started}\n{trace}");
            assert_eq!(trace.matches("plan mode left, approved=true").count(), 1, "{trace}");
        }
    }
}

#[tokio::test]
async fn keeping_on_planning_tells_the_model_why_and_stays() {
    let script = r##"
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# One"}}]
- reply: [tool: {name: ExitPlanMode, input: {}}]
- reply: [tool: {name: Write, input: {file_path: a.txt, content: x}}]
  expect: {contains: "use b.txt"}
- reply: [text: So be it.]
  expect: {contains: "Plan mode is on: change nothing except the plan file"}
"##;
    let words = Answer::No { feedback: Some("use b.txt".into()) };
    let run = Harness::new().script(script).mode(Mode::Plan).prompt("go").answer(words).run().await;
    assert!(run.trace().ends_with("reply So be it.\nturn ended Done"), "{}", run.trace());
    // Without words the turn waits for them.
    let run = planned().answer(Answer::No { feedback: None }).run().await;
    assert!(run.trace().ends_with("turn ended Refused"), "{}", run.trace());
    assert_eq!(run.session().facts().mode, Some(Mode::Plan));
    assert!(!run.project().join("a.txt").exists());
}

#[tokio::test]
async fn nothing_but_the_user_leaves_plan_mode() {
    let stays = async |run: &Ran| {
        assert_eq!(run.session().facts().mode, Some(Mode::Plan), "{}", run.trace());
        assert!(!run.trace().contains("plan mode left"), "{}", run.trace());
    };
    // Interrupted while the review is open; the model has nothing to show; it is asked in vain.
    let run = planned().unanswered().at("ask {\"type\":\"plan\"", Op::Interrupt).run().await;
    assert!(run.trace().ends_with("turn ended Interrupted"), "{}", run.trace());
    stays(&run).await;
    let script = r##"
- reply: [tool: {name: ExitPlanMode, input: {}}, tool: {name: Write, input: {file_path: a.txt, content: x}}]
- reply: [tool: {name: ExitPlanMode, input: {plan: "an own text"}}, tool: {name: EnterPlanMode, input: {}}]
  expect: {contains: "Write"}
- reply: [text: I cannot.]
- reply: [error: {kind: bad_request, message: no}]
- reply: [text: Resumed.]
"##;
    let run = Harness::new().script(script).mode(Mode::Plan).prompt("go").prompt("again").run().await;
    let trace = run.trace();
    assert!(trace.contains("Error: There is no plan yet: write it to $PLAN with the Write tool"), "{trace}");
    assert!(!trace.contains("\nask "), "{trace}");
    stays(&run).await;
    // A new process continues in it, with the same plan file.
    let slug = run.session().facts().plan_slug.clone();
    let again = Harness::after(run).script("- reply: [text: Resumed.]").prompt("on").run().await;
    stays(&again).await;
    assert!(slug.is_some());
    assert_eq!(again.session().facts().plan_slug, slug);
    assert_eq!(notes(&again), [PlanNote::Full]);
    // Undo, redo and a rewind do not, either.
    let run = Harness::after(again).script("").prompt("/undo").prompt("/redo").prompt("/rename x").run().await;
    stays(&run).await;
    // The user does.
    let run = Harness::after(run).script("").prompt("/plan exit").run().await;
    assert_eq!(run.session().facts().mode, Some(Mode::Default), "{}", run.trace());
}

#[tokio::test]
async fn the_command_goes_in_and_back_to_the_mode_before() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::DontAsk, Mode::Bypass] {
        let run = Harness::new()
            .script("- reply: [text: Hi.]")
            .mode(mode)
            .prompt("/plan exit")
            .prompt("/plan")
            .prompt("/plan")
            .prompt("/plan exit")
            .prompt("hello")
            .run()
            .await;
        let trace = run.trace();
        assert!(trace.contains("notice Plan mode is not on."), "{trace}");
        assert!(trace.contains("plan mode left, approved=false\n"), "{trace}");
        assert_eq!(run.session().facts().mode, Some(mode), "{trace}");
        // It came and went before the first request: the model hears nothing of it.
        assert_eq!(notes(&run), []);
    }
    // What a flag allowed is not brought back by a session that lacks it.
    let run = Harness::new().script("- reply: [text: Hi.]").mode(Mode::Bypass).prompt("/plan hello").run().await;
    let run = Harness::after(run).script("").prompt("/plan exit").run().await;
    assert_eq!(run.session().facts().mode, Some(Mode::Default), "{}", run.trace());
}

#[tokio::test]
async fn the_model_may_ask_for_plan_mode() {
    let script = r##"
- reply: [tool: {name: EnterPlanMode, input: {reason: Many files.}}, tool: {name: Write, input: {file_path: a.txt, content: x}}]
- reply: [text: Thinking it over.]
"##;
    let run = Harness::new().script(script).mode(Mode::AcceptEdits).prompt("go").answer(Answer::Yes).run().await;
    assert_eq!(run.session().facts().mode, Some(Mode::Plan), "{}", run.trace());
    assert!(!run.project().join("a.txt").exists(), "what follows the yes is judged in plan mode");
    assert_eq!(notes(&run), [PlanNote::Full]);
    let no = Answer::No { feedback: None };
    let run = Harness::new().script(script).mode(Mode::AcceptEdits).prompt("go").answer(no).run().await;
    assert_eq!(run.session().facts().mode, Some(Mode::AcceptEdits), "{}", run.trace());
    assert_eq!(run.read("a.txt"), "x");
}

#[tokio::test]
async fn a_fresh_context_opens_with_the_plan_and_the_request() {
    let script = r##"
- reply: [text: Hello to you.]
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# Plan\n1. Write a.txt.\n"}}]
- reply:
  - tool: {name: ExitPlanMode, input: {}}
  - tool: {name: Read, input: {file_path: b.txt}}
- reply: [text: Done.]
  expect: {contains: "write a.txt", lacks: "Hello to you", messages: 3}
"##;
    let run = Harness::new()
        .file("b.txt", "b")
        .file("AGENTS.md", "Use tabs.")
        .script(script)
        .prompt("hello")
        .prompt("/plan write a.txt")
        .answer(approve(Approval::FreshContext))
        .run()
        .await;
    // Commands are served before prompts.
    let trace = run.trace();
    assert!(trace.ends_with("reply Done.\nturn ended Done"), "{trace}");
    let texts: Vec<String> = run.session().context().messages().iter().map(|message| message.text()).collect();
    assert!(texts[0].contains("# Environment") && texts[0].contains("Use tabs."), "{texts:#?}");
    assert!(texts[1].contains("# The approved plan") && texts[1].contains("1. Write a.txt."), "{texts:#?}");
    assert_eq!(&texts[2..], ["write a.txt", "Done."]);
    assert_eq!(notes(&run), [PlanNote::Exit]);
    // Undoing a compaction does not bring back the conversation from before the plan.
    let run = Harness::after(run).prompt("/compact undo").prompt("/compact undo plan").run().await;
    let trace = run.trace();
    assert!(trace.contains("not a compaction. `/compact undo plan` takes it back."), "{trace}");
    assert!(trace.contains("The fresh start with the plan is undone."), "{trace}");
    assert!(run.session().context().messages().iter().any(|message| message.text() == "Hello to you."));
}

#[tokio::test]
async fn the_offline_model_plans_listens_and_carries_on() {
    for (how, edits) in [(Approval::AskEach, 1), (Approval::AcceptEdits, 0), (Approval::FreshContext, 1)] {
        let run = Harness::new()
            .file("pets.txt", "a cat\n")
            .prompt("/plan replace `cat` with `dog` in pets.txt")
            .answer(Answer::No { feedback: Some("keep the article".into()) })
            .answer(approve(how))
            .answer(Answer::Yes)
            .run()
            .await;
        let trace = run.trace();
        assert_eq!(run.read("pets.txt"), "a dog\n", "{how:?}: {trace}");
        assert!(
            run.plan().contains("1. Replace `cat` with `dog`.") && run.plan().contains("keep the article"),
            "{trace}"
        );
        assert_eq!(trace.matches("\nask Edit").count(), edits, "{how:?}: {trace}");
    }
}

#[tokio::test]
async fn a_failure_after_a_fresh_context_gives_nothing_back() {
    let script = r##"
- reply: [tool: {name: Write, input: {file_path: "{plan_file}", content: "# Plan"}}]
- reply: [tool: {name: ExitPlanMode, input: {}}]
- reply: [error: {kind: bad_request, message: "no"}]
"##;
    let run =
        Harness::new().script(script).mode(Mode::Plan).prompt("go").answer(approve(Approval::FreshContext)).run().await;
    assert!(run.trace().contains("restore=None\nturn ended Failed"), "{}", run.trace());
    assert_eq!(notes(&run), [PlanNote::Exit], "the fresh context stays");
}
