//! Questions in a real terminal while somebody types; and the trace that every decision leaves.

use std::thread;

use super::support::harness::Harness;
use super::support::program::Program;
use super::support::screen::Screen;
use super::terminal::{launch, leave, scripted};
use cocode::permission::Mode;
use cocode::protocol::{Answer, GrantScope, HistoryItem};

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];
const SENTENCE: &str = "also name it 2 1 y n x";
const WAITS: &str = "keys work in a moment";

/// Kinds of questions: what the model does, how the dialog can be told, the file that a yes would make.
const KINDS: [(&str, &str); 4] = [
    ("{name: Bash, input: {command: touch made}}", "Bash wants to"),
    ("{name: Write, input: {file_path: made, content: x}}", "Write wants to"),
    ("{name: EnterPlanMode, input: {}}", "The agent wants to"),
    (
        "{name: AskUserQuestion, input: {questions: [{header: H, question: Which?, multiSelect: false, options: [{label: a, description: b}, {label: c, description: d}]}]}}",
        "Which?",
    ),
];

/// What a sub-agent does.
fn below(command: &str) -> String {
    let purpose = "for: agent:general-purpose";
    format!(
        "- {purpose}\n  reply: [tool: {{name: Bash, input: {{command: {command}}}}}]\n- {purpose}\n  reply: [text: Ran it.]\n"
    )
}

/// When the sentence begins.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// With the prompt, so that the question arrives in the middle of it.
    Before,
    /// While the question is in its line.
    Waiting,
    /// As soon as the dialog can be seen.
    Opened,
    /// Behind the Tab that opens it, in one go.
    Tab,
}

fn typed(tool: &str, headline: &str, size: (u16, u16), moment: Moment) {
    let program = Program::new();
    let script = format!("- reply: [tool: {tool}]\n- repeat: 9\n  reply: [text: The end.]\n");
    let screen = scripted(&program, size, &script);
    let what = format!("{headline} {size:?} {moment:?}");
    let waits = |screen: &Screen| screen.wait_for(&what, |text| text.contains("Tab: open"));
    screen.send("go\r");
    match moment {
        Moment::Before => {}
        Moment::Waiting => waits(&screen),
        Moment::Opened => screen.wait_text(WAITS),
        Moment::Tab => {
            waits(&screen);
            screen.send("\t");
        }
    }
    for end in 1..=SENTENCE.len() {
        screen.send(&SENTENCE[end - 1..end]);
        screen.wait_for(&what, |text| text.contains(&format!("> {}", SENTENCE[..end].trim_end())));
    }
    // Every letter is in the prompt, the question waits, and nothing was done.
    waits(&screen);
    screen.wait_text(&format!("> {SENTENCE}"));
    assert!(!program.project().join("made").exists(), "{what}");
    // It comes back by itself, and a no is a no.
    screen.wait_live(headline);
    screen.send("\x1b");
    screen.wait_text(&format!("> {SENTENCE}"));
    assert!(!program.project().join("made").exists(), "{what}");
}

#[test]
fn a_sentence_in_a_terminal_answers_nothing_and_loses_no_letter() {
    for (at, (tool, headline)) in KINDS.into_iter().enumerate() {
        thread::scope(|scope| {
            for (n, moment) in [Moment::Before, Moment::Waiting, Moment::Opened, Moment::Tab].into_iter().enumerate() {
                scope.spawn(move || typed(tool, headline, SIZES[(at + n) % 3], moment));
            }
        });
    }
}

#[test]
fn a_text_that_comes_at_once_is_the_prompts() {
    for text in ["yes please", "yyyy", "2nd one"] {
        let program = Program::new();
        let script = "- reply: [tool: {name: Bash, input: {command: touch made}}]\n- reply: [text: The end.]\n";
        let screen = scripted(&program, (80, 24), script);
        screen.send("go\r");
        screen.wait_live("1. Yes");
        screen.send(text);
        screen.wait_text(&format!("> {text}"));
        screen.wait_live("1. Yes");
        assert!(!program.project().join("made").exists(), "{text}");
        screen.send("y");
        screen.wait_text("you allowed once: touch made");
    }
}

#[test]
fn the_question_about_a_folder_waits_like_any_other() {
    let program = Program::new().file(".claude/settings.json", r#"{"permissions":{"allow":["Bash(touch:*)"]}}"#);
    let script = program.script("script.yaml", "- reply: [text: x]\n");
    let mut screen = launch(&program, (80, 24), &["--offline-script", &script]);
    screen.send("1 yes\x1b[200~1\n1\x1b[201~");
    screen.wait_for("the draft", |text| text.contains("> 1 yes1") && text.contains("Do you trust this folder?"));
    screen.wait_live("Yes, trust this folder");
    screen.send("2");
    screen.wait_text("> 1 yes1");
    screen.send("\x03");
    leave(&mut screen);
}

#[test]
fn what_was_decided_stands_there_also_after_a_resume() {
    let program = Program::new();
    let script = "- reply: [tool: {name: Bash, input: {command: touch danger.txt}}]\n- reply: [text: The end.]\n";
    let mut screen = scripted(&program, (80, 24), script);
    screen.send("go\r");
    screen.wait_live("1. Yes");
    screen.send("\r");
    screen.wait_text("The end.");
    let trace = "✓ you allowed once: touch danger.txt";
    assert_eq!(screen.scrollback_text().matches(trace).count(), 1, "{}", screen.scrollback_text());
    leave(&mut screen);
    let mut screen = launch(&program, (80, 24), &["--continue", "--offline"]);
    screen.wait_text(trace);
    screen.send("\x0f");
    screen.wait_until("the transcript", |state| state.parser.screen().alternate_screen());
    screen.wait_text(trace);
    screen.send("\x0f");
    screen.wait_until("the way back", |state| !state.parser.screen().alternate_screen());
    leave(&mut screen);
}

#[tokio::test]
async fn every_decision_leaves_one_line() {
    let bash = |command: &str| format!("- reply: [tool: {{name: Bash, input: {{command: {command}}}}}]\n");
    let write = |path: &str| format!("- reply: [tool: {{name: Write, input: {{file_path: {path}, content: x}}}}]\n");
    let end = "- reply: [text: Done.]\n";
    let always = |scope| Answer::Always { rules: vec!["Bash(touch:*)".into(), "Bash(rm:*)".into()], scope };
    let plan = "- reply: [tool: {name: EnterPlanMode, input: {}}]\n";
    let choices = "- reply: [tool: {name: AskUserQuestion, input: {questions: [{header: H, question: Which?, multiSelect: false, options: [{label: a, description: b}, {label: c, description: d}]}]}}]\n";
    let chosen = Answer::Chosen { answers: vec![vec!["a".into(), "mine".into()]] };
    let task =
        "- reply: [tool: {name: Task, input: {description: look, prompt: it, subagent_type: general-purpose}}]\n";
    let long = format!("touch {}", "a ".repeat(400));
    for (script, answer, want) in [
        (bash("touch a"), Answer::Yes, "✓ you allowed once: touch a"),
        (bash("touch a"), Answer::No { feedback: None }, "✗ you denied: touch a"),
        (bash("touch a"), Answer::No { feedback: Some("no".into()) }, "✗ you denied: touch a"),
        (bash("touch a"), always(GrantScope::Session), "✓ you allowed for this session: Bash(touch:*), Bash(rm:*)"),
        (bash("touch a"), always(GrantScope::Project), "✓ you allowed for this project: Bash(touch:*), Bash(rm:*)"),
        (bash("touch a"), always(GrantScope::User), "✓ you allowed in every project: Bash(touch:*), Bash(rm:*)"),
        (bash("touch a"), Answer::AllEdits, "✗ you denied: touch a"),
        (write("a"), Answer::Yes, "✓ you allowed once: Write a"),
        (write("a"), Answer::AllEdits, "✓ you allowed for this session: all edits"),
        // Mode acceptEdits would ask about it.
        (write(".claude/settings.json"), Answer::AllEdits, "✗ you denied: Write .claude/settings.json"),
        (plan.to_owned(), Answer::AllEdits, "✗ you chose not to plan first"),
        (plan.to_owned(), Answer::Yes, "✓ you chose to plan first"),
        (plan.to_owned(), Answer::No { feedback: None }, "✗ you chose not to plan first"),
        (choices.to_owned(), chosen, "✓ you answered: a, mine"),
        (choices.to_owned(), Answer::No { feedback: None }, "✗ you declined to answer"),
        (format!("{task}{}", below("touch a")), Answer::Yes, "✓ you allowed once (general-purpose): touch a"),
        (bash(&long), Answer::Yes, &format!("✓ you allowed once: touch {}…", "a ".repeat(77))),
    ] {
        let ran = Harness::new()
            .mode(Mode::Default)
            .script(&format!("{script}{end}"))
            .answer(answer)
            .prompt("go")
            .run()
            .await;
        let notes: Vec<String> =
            ran.trace().lines().filter_map(|line| Some(line.split_once("\"text\":\"")?.1.to_owned())).collect();
        assert_eq!(notes, [format!("{want}\"}}")], "{}", ran.trace());
        let history = ran.session().history(9).unwrap().0;
        let kept = history.iter().filter(|item| matches!(item, HistoryItem::Note { text } if text == want)).count();
        assert_eq!(kept, 1, "{want}: {history:?}");
    }
}

#[tokio::test]
async fn an_edit_that_cannot_be_made_fails_before_anybody_is_asked() {
    for (path, old, asks) in [
        ("a.txt", "one", true),
        ("a.txt", "two", false),
        ("a.txt", "o", false),
        ("none.txt", "one", false),
        // What the model may not read without a question tells it nothing without one.
        ("/etc/hostname", "what is not in there", true),
    ] {
        let input = format!("{{file_path: {path}, old_string: {old}, new_string: x}}");
        let ran = Harness::new()
            .file("a.txt", "one\nor\n")
            .mode(Mode::Default)
            .script(&format!(
                "- reply: [tool: {{name: Read, input: {{file_path: a.txt}}}}]\n\
                 - reply: [tool: {{name: Edit, input: {input}}}]\n- reply: [text: Done.]\n"
            ))
            .answer(Answer::No { feedback: Some("no".into()) })
            .prompt("go")
            .run()
            .await;
        assert_eq!(ran.trace().contains("\nask "), asks, "{path} {old}: {}", ran.trace());
    }
}

#[tokio::test]
async fn all_edits_are_accepted_by_one_answer_and_nothing_else_is() {
    let call = |name: &str, input: &str| format!("tool: {{name: {name}, input: {{{input}}}}}");
    let calls = [
        call("Write", "file_path: a, content: x"),
        call("Write", "file_path: b, content: x"),
        call("Bash", "command: rm a"),
    ];
    let own: String = calls.iter().map(|call| format!("- reply: [{call}]\n")).collect();
    let task = "{name: Task, input: {description: look, prompt: it, subagent_type: general-purpose}}";
    let sub: String = calls.iter().map(|call| format!("- for: agent:general-purpose\n  reply: [{call}]\n")).collect();
    let below = format!("- reply: [tool: {task}]\n{sub}");
    for (script, agent) in [(own, ""), (below, " (general-purpose)")] {
        let ran = Harness::new()
            .mode(Mode::Default)
            .script(&script)
            .answer(Answer::AllEdits)
            .answer(Answer::No { feedback: None })
            .prompt("go")
            .run()
            .await;
        let notes: Vec<String> =
            ran.trace().lines().filter_map(|line| Some(line.split_once("\"text\":\"")?.1.to_owned())).collect();
        let want =
            [format!("✓ you allowed for this session{agent}: all edits\"}}"), format!("✗ you denied{agent}: rm a\"}}")];
        assert_eq!(notes, want, "{}", ran.trace());
        assert!(ran.trace().contains("mode edits"), "{}", ran.trace());
        assert_eq!(ran.session().facts().mode, Some(Mode::Edits));
    }
}

#[tokio::test]
async fn earlier_sessions_are_allowed_for_one_session_at_most() {
    let call = "tool: {name: Recall, input: {query: parser, earlier: true}}";
    let rules = vec!["Recall(earlier)".to_owned()];
    let ran = Harness::new()
        .mode(Mode::Default)
        .script(&format!("- reply: [{call}]\n- reply: [{call}]\n- reply: [text: Done.]\n"))
        .answer(Answer::Always { rules, scope: GrantScope::User })
        .prompt("go")
        .run()
        .await;
    let trace = ran.trace();
    assert_eq!(trace.matches("\nask ").count(), 1, "{trace}");
    assert!(trace.contains("✓ you allowed for this session: Recall(earlier)"), "{trace}");
}

#[test]
fn shift_tab_in_an_edit_lets_all_edits_run() {
    for size in SIZES {
        let program = Program::new();
        let write =
            |path: &str| format!("- reply: [tool: {{name: Write, input: {{file_path: {path}, content: x}}}}]\n");
        let screen =
            scripted(&program, size, &format!("{}{}- reply: [text: The end.]\n", write("made"), write("second")));
        screen.send("go\r");
        screen.wait_live("Yes, all edits in this session");
        assert!(!program.project().join("made").exists());
        screen.send("\x1b[Z");
        screen.wait_text("The end.");
        assert!(program.project().join("made").exists() && program.project().join("second").exists());
        assert!(screen.scrollback_text().contains("✓ you allowed for this session: all"));
    }
}
