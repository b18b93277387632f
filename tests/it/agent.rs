//! The loop and its pipeline, over a scripted model: order of events, permissions, cancellation, retries.

use cocode::engine::Begin;
use cocode::permission::Mode;
use cocode::protocol::{Answer, Delivery, GrantScope, HistoryItem, Op};

use super::support::harness::{Harness, Ran};

#[tokio::test]
async fn reads_edits_and_answers() {
    let run = Harness::new()
        .file("a.txt", "one\n")
        .script(
            r#"
- reply: [text: Reading., tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: two}}]
  expect: {contains: one}
- reply: [text: Done.]
"#,
        )
        .prompt("change it")
        .answer(Answer::Yes)
        .run()
        .await;
    insta::assert_snapshot!(run.trace());
    assert_eq!(run.read("a.txt"), "two\n");
}

#[tokio::test]
async fn a_refusal_with_words_goes_on_and_one_without_stops() {
    let script = r#"
- reply: [tool: {name: Write, input: {file_path: a.txt, content: x}}]
- reply: [text: As you wish.]
  expect: {contains: "use b.txt"}
"#;
    let run = Harness::new()
        .script(script)
        .prompt("write")
        .answer(Answer::No { feedback: Some("use b.txt".into()) })
        .run()
        .await;
    assert!(run.trace().ends_with("reply As you wish.\nturn ended Done"), "{}", run.trace());
    let run = Harness::new().script(script).prompt("write").answer(Answer::No { feedback: None }).run().await;
    assert!(run.trace().ends_with("turn ended Refused"), "{}", run.trace());
    assert!(!run.project().join("a.txt").exists());
}

#[tokio::test]
async fn a_granted_rule_holds_from_then_on() {
    let run = Harness::new()
        .script(
            r#"
- reply: [tool: {name: Bash, input: {command: touch a.txt}}]
- reply: [tool: {name: Bash, input: {command: touch b.txt}}]
- reply: [text: Done.]
"#,
        )
        .prompt("go")
        .answer(Answer::Always { rules: vec!["Bash(touch:*)".into()], scope: GrantScope::Session })
        .run()
        .await;
    assert_eq!(run.trace().matches("\nask ").count(), 1, "{}", run.trace());
    assert!(run.project().join("b.txt").exists());
}

#[tokio::test]
async fn read_only_calls_run_side_by_side_and_answer_in_order() {
    let run = Harness::new()
        .file("a.txt", "A")
        .file("b.txt", "B")
        .script(
            r#"
- reply:
  - tool: {name: Read, input: {file_path: a.txt}}
  - tool: {name: Read, input: {file_path: b.txt}}
- reply: [text: Both.]
"#,
        )
        .prompt("read")
        .run()
        .await;
    let trace = run.trace();
    let starts: Vec<usize> = trace.match_indices("\ncall Read").map(|(at, _)| at).collect();
    let results: Vec<usize> = trace.match_indices("\ntoolresult").map(|(at, _)| at).collect();
    assert!(starts.len() == 2 && results.len() == 2 && starts[1] < results[0], "{trace}");
    assert!(trace.find("1→A") < trace.find("1→B"), "{trace}");
}

#[tokio::test]
async fn an_interrupt_answers_open_calls() {
    let run = Harness::new()
        .script(
            r#"
- reply:
  - text: Two things.
  - tool: {name: Bash, input: {command: "echo begun; sleep 60"}}
  - tool: {name: Bash, input: {command: "touch never.txt"}}
"#,
        )
        .mode(Mode::Bypass)
        .prompt("go")
        .at("output begun", Op::Interrupt)
        .run()
        .await;
    let trace = run.trace();
    assert!(trace.ends_with("turn ended Interrupted"), "{trace}");
    assert_eq!(trace.matches("toolresult Interrupted").count(), 2, "{trace}");
    assert!(!run.project().join("never.txt").exists());
}

#[tokio::test]
async fn an_interrupt_in_mid_stream_keeps_what_had_arrived() {
    let run = Harness::new()
        .script("- reply: [text: First words., delay_ms: 60000, text: Never.]")
        .prompt("go")
        .at("text First", Op::Interrupt)
        .run()
        .await;
    assert!(run.trace().ends_with("reply First words.\nturn ended Interrupted"), "{}", run.trace());
}

#[tokio::test]
async fn a_steered_prompt_arrives_at_the_next_tool_boundary() {
    let steer = Op::Prompt {
        text: "also this".into(),
        attachments: Vec::new(),
        delivery: Delivery::Steer,
        thinking: None,
        data: Vec::new(),
    };
    let run = Harness::new()
        .file("a.txt", "A")
        .script(
            r#"
- reply: [text: Looking., delay_ms: 30, tool: {name: Read, input: {file_path: a.txt}}]
- reply: [text: Both done.]
  expect: {contains: also this}
"#,
        )
        .prompt("go")
        .at("text Looking", steer)
        .run()
        .await;
    assert!(
        run.trace().ends_with("prompt also this\ntext Both done.\nreply Both done.\nturn ended Done"),
        "{}",
        run.trace()
    );
}

#[tokio::test(start_paused = true)]
async fn failures_are_asked_again_and_what_was_shown_is_discarded() {
    let run = Harness::new()
        .script(
            r#"
- reply: [text: Half an, error: {kind: ended_early}]
- reply: [error: {kind: rate_limited, retry_after_ms: 10}]
- reply: [text: Whole.]
"#,
        )
        .prompt("go")
        .run()
        .await;
    insta::assert_snapshot!(run.trace());
    let sent: Vec<String> = run.session().context().messages().iter().map(|message| message.text()).collect();
    assert!(sent.iter().all(|text| !text.contains("Half")), "{sent:?}");
}

#[tokio::test]
async fn a_failure_for_good_gives_the_prompt_back() {
    let run = Harness::new().script("- reply: [error: {kind: auth}]").prompt("precious words").run().await;
    assert!(run.trace().contains(r#"restore=Some("precious words")"#), "{}", run.trace());
    assert!(run.trace().ends_with("turn ended Failed"));
}

#[tokio::test]
async fn the_same_call_again_and_again_asks() {
    let run = Harness::new()
        .file("a.txt", "A")
        .script("- reply: [tool: {name: Read, input: {file_path: a.txt}}]\n  repeat: 9")
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended Repeated"), "{}", run.trace());
    assert_eq!(run.trace().matches("toolresult").count(), 5);
    // People are shown what the call is about, not its JSON.
    assert!(run.trace().contains(r#"{"type":"repeated","tool":"Read","title":"a.txt","times":5}"#), "{}", run.trace());
}

#[tokio::test]
async fn calls_that_go_in_circles_ask_too() {
    let run = Harness::new()
        .file("a.txt", "A")
        .script(
            r#"
- reply: [tool: {name: Read, input: {file_path: a.txt}}, tool: {name: Glob, input: {pattern: "*.txt"}}]
  repeat: 9
"#,
        )
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended Repeated"), "{}", run.trace());
}

#[tokio::test]
async fn max_turns_ends_the_turn() {
    let run = Harness::new()
        .file("a.txt", "A")
        .script("- reply: [tool: {name: LS, input: {path: .}}]\n  repeat: 9")
        .max_turns(2)
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended MaxTurns"), "{}", run.trace());
}

#[tokio::test]
async fn plan_mode_changes_nothing() {
    let run = Harness::new()
        .script(
            r#"
- reply:
  - tool: {name: Write, input: {file_path: a.txt, content: x}}
  - tool: {name: Bash, input: {command: "touch b.txt"}}
- reply: [text: Refused.]
"#,
        )
        .mode(Mode::Plan)
        .prompt("go")
        .run()
        .await;
    assert_eq!(run.trace().matches("toolresult Denied").count(), 2, "{}", run.trace());
    assert_eq!(std::fs::read_dir(run.project()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_session_goes_on_where_it_stopped() {
    let run = Harness::new().script("- reply: [text: One.]").prompt("first").run().await;
    let run = Harness::after(run).script("- reply: [text: Two.]\n  expect: {messages: 5}").prompt("second").run().await;
    assert!(run.trace().ends_with("reply Two.\nturn ended Done"), "{}", run.trace());
    assert!(run.trace().starts_with("session mode=default shown=2"), "{}", run.trace());
}

#[tokio::test]
async fn undo_puts_files_back() {
    let run = Harness::new()
        .file("a.txt", "one")
        .script(
            r#"
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: two}}]
- reply: [text: Done.]
"#,
        )
        .mode(Mode::AcceptEdits)
        .prompt("go")
        .run()
        .await;
    assert_eq!(run.read("a.txt"), "two");
    let run = Harness::after(run).prompt("/undo").run().await;
    assert_eq!(run.read("a.txt"), "one", "{}", run.trace());
}

#[tokio::test]
async fn files_changed_meanwhile_are_told() {
    let run = Harness::new()
        .file("a.txt", "one")
        .script(
            r#"
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Bash, input: {command: "echo two > a.txt"}}]
- reply: [text: Noticed.]
  expect: {contains: changed these files}
"#,
        )
        .mode(Mode::Bypass)
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended Done"), "{}", run.trace());
}

#[tokio::test]
async fn plan_mode_settles_a_question_that_waits() {
    let run = Harness::new()
        .script(
            r#"
- reply: [tool: {name: Write, input: {file_path: a.txt, content: x}}]
- reply: [text: Only planned.]
"#,
        )
        .prompt("go")
        .unanswered()
        .at("ask Write", Op::SetMode { mode: Mode::Plan })
        .run()
        .await;
    assert!(run.trace().contains("✗ no longer allowed: Write a.txt"), "{}", run.trace());
    assert!(run.trace().ends_with("turn ended Done"), "{}", run.trace());
    assert!(!run.project().join("a.txt").exists());
}

#[tokio::test]
async fn a_mode_that_allows_it_answers_no_question() {
    let call = "{name: Write, input: {file_path: a.txt, content: x}}";
    let script = format!("- reply: [tool: {call}]\n- reply: [text: Done.]");
    let passing = |then| {
        let harness = Harness::new().script(&script).prompt("go").unanswered();
        harness.at("ask Write", Op::SetMode { mode: Mode::AcceptEdits }).at("mode acceptEdits", then).run()
    };
    // On the way to plan mode somebody passes one that allows edits.
    let passed = passing(Op::SetMode { mode: Mode::Plan }).await;
    assert!(!passed.project().join("a.txt").exists(), "{}", passed.trace());
    assert!(passed.trace().contains("✗ no longer allowed: Write a.txt"), "{}", passed.trace());
    let stayed = passing(Op::Interrupt).await;
    assert!(!stayed.project().join("a.txt").exists(), "{}", stayed.trace());
    let answered = Harness::new().script(&script).answer(Answer::Yes).prompt("go");
    let answered = answered.at("ask Write", Op::SetMode { mode: Mode::AcceptEdits }).run().await;
    assert_eq!(answered.read("a.txt"), "x");
    assert!(answered.trace().contains("✓ you allowed once: Write a.txt"), "{}", answered.trace());
}

#[tokio::test]
async fn bypass_comes_from_a_flag_alone() {
    let script = "- reply: [tool: {name: Bash, input: {command: touch a.txt}}]\n- reply: [text: Done.]";
    // A front end that asks for it does not get it.
    let bypass = Op::SetMode { mode: Mode::Bypass };
    let run = Harness::new().script(script).at("turn started", bypass).prompt("go").run().await;
    assert!(run.trace().contains("\nask Bash"), "{}", run.trace());
    // A session that was left in it does not bring it back.
    let run = Harness::new().script(script).mode(Mode::Bypass).prompt("go").run().await;
    assert!(run.project().join("a.txt").exists());
    let resume = format!("/resume {}", run.session().id());
    let harness = Harness::after(run).begin(Begin::New).script(script);
    let run = harness.prompt(&resume).prompt("go").run().await;
    assert!(run.trace().contains("\nask Bash"), "{}", run.trace());
}

#[tokio::test]
async fn an_unanswered_prompt_leaves_the_conversation() {
    // Once it is compacted and asked again.
    let script = "- {repeat: 2, reply: [error: {kind: context_too_long}]}";
    let run = Harness::new().script(script).prompt("much too long").run().await;
    assert!(run.trace().contains("/clear"), "{}", run.trace());
    let run = Harness::after(run)
        .script("- reply: [text: Hello.]\n  expect: {lacks: much too long}")
        .prompt("hi")
        .run()
        .await;
    assert!(run.trace().ends_with("reply Hello.\nturn ended Done"), "{}", run.trace());
}

#[tokio::test]
async fn replies_that_lead_nowhere_end_the_turn() {
    for (reply, want) in [
        ("[stop: end_turn]", "empty answer"),
        ("[stop: pause]", "pausing"),
        ("[text: On and on, stop: max_tokens]", "output limit"),
    ] {
        let run = Harness::new().script(&format!("- reply: {reply}\n  repeat: 9")).prompt("go").run().await;
        let trace = run.trace();
        assert!(trace.contains(want) && trace.ends_with("turn ended Done"), "{trace}");
        assert_eq!(trace.matches("\nreply ").count(), 4, "{trace}");
        assert!(!trace.contains("(no answer)"), "{trace}");
    }
}

#[tokio::test]
async fn an_attached_file_can_be_edited_at_once() {
    let run = Harness::new()
        .file("a.txt", "one\n")
        .script(
            r#"
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: one, new_string: two}}]
  expect: {contains: "The user attached"}
- reply: [text: Done.]
"#,
        )
        .mode(Mode::AcceptEdits)
        .attach("a.txt")
        .prompt("change @a.txt")
        .run()
        .await;
    assert_eq!(run.read("a.txt"), "two\n", "{}", run.trace());
}

#[tokio::test]
async fn a_file_that_a_prompt_names_passes_the_same_gate_as_read() {
    let deny = "permissions.deny = ['Read(notes/**)']\npermissions.ask = ['Read(asked.txt)']\n";
    for (file, attached) in
        [("a.txt", true), ("../near.txt", true), (".env", false), ("notes/x.md", false), ("asked.txt", false)]
    {
        let want = if attached { "The user attached" } else { "was not attached: " };
        let script = format!("- reply: [text: Done.]\n  expect: {{contains: \"{want}\"}}\n");
        let run = Harness::new().file(".env", "KEY=xyzzy").file(file, "xyzzy").set(deny).script(&script);
        let run = run.attach(file).prompt("look").run().await;
        let told = run.events.iter().any(
            |event| matches!(event, cocode::protocol::Event::Notice { text } if text.contains("was not attached")),
        );
        assert!(run.trace().ends_with("turn ended Done") && told != attached, "{file}: {}", run.trace());
        let log = std::fs::read_to_string(run.log()).unwrap();
        assert_eq!(log.contains("xyzzy"), attached, "{file}");
    }
}

#[tokio::test]
async fn a_resumed_session_learns_what_changed_while_it_was_closed() {
    let run = Harness::new()
        .file("a.txt", "one")
        .script("- reply: [tool: {name: Read, input: {file_path: a.txt}}]\n- reply: [text: Read.]")
        .prompt("read")
        .run()
        .await;
    let run = Harness::after(run)
        .file("a.txt", "two")
        .script("- reply: [text: Noticed.]\n  expect: {contains: changed these files}")
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended Done"), "{}", run.trace());
}

#[tokio::test]
async fn a_memory_file_that_changed_or_went_is_told_once() {
    let noted = |run: &Ran| {
        let texts = run.session().context().messages().iter().map(|message| message.text()).collect::<Vec<_>>();
        texts.iter().filter(|text| text.contains("These changed, and now say:")).cloned().collect::<Vec<_>>()
    };
    let said = "- reply: [text: Yes.]";
    let run = Harness::new().file("CLAUDE.md", "Use tabs.").script(said).prompt("one").run().await;
    let run = Harness::after(run).script(said).prompt("two").run().await;
    assert_eq!(noted(&run), Vec::<String>::new());
    let run = Harness::after(run).file("CLAUDE.md", "Use spaces.").script(said).prompt("three").run().await;
    let run = Harness::after(run).script(said).prompt("four").run().await;
    assert!(noted(&run).len() == 1 && noted(&run)[0].contains("Use spaces."), "{:?}", noted(&run));
    std::fs::remove_file(run.project().join("CLAUDE.md")).unwrap();
    let run = Harness::after(run).script(said).prompt("five").run().await;
    let run = Harness::after(run).script(said).prompt("six").run().await;
    assert!(noted(&run).len() == 2 && noted(&run)[1].contains("was removed"), "{:?}", noted(&run));
    let run = Harness::after(run).file("CLAUDE.md", "Use tabs.").script(said).prompt("seven").run().await;
    assert!(noted(&run).len() == 3 && noted(&run)[2].contains("Use tabs."), "{:?}", noted(&run));
}

#[tokio::test]
async fn the_first_prompt_opens_the_conversation_also_after_a_shell_line() {
    let shell = Op::Shell { command: "echo mine".into() };
    let run = Harness::new().script("- reply: [text: Hi.]").at("session", shell).prompt("go").run().await;
    let session = run.session();
    let texts: Vec<String> = session.context().messages().iter().map(|message| message.text()).collect();
    assert!(texts.iter().any(|text| text.contains("# Environment")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("echo mine")), "{texts:?}");
}

#[tokio::test]
async fn usage_is_told_by_model() {
    let run = Harness::new().script("- reply: [usage: {input: 10, output: 1}, text: Whole.]").prompt("go").run().await;
    let usage = run.session().facts().usage_by_model();
    let rows: Vec<_> = usage.iter().map(|(name, usage)| (name.as_str(), usage.input, usage.output)).collect();
    assert_eq!(rows, [("offline/script", 10, 1)]);
}

#[tokio::test]
async fn what_was_queued_behind_a_failure_comes_back() {
    let queued = Op::Prompt {
        text: "and then".into(),
        attachments: Vec::new(),
        delivery: Delivery::AfterTurn,
        thinking: None,
        data: Vec::new(),
    };
    let run = Harness::new()
        .script("- reply: [text: Half, delay_ms: 20, error: {kind: auth}]")
        .prompt("first")
        .at("turn started", queued)
        .run()
        .await;
    let trace = run.trace();
    assert!(trace.contains(r#"restore=Some("first")"#) && trace.contains(r#"restore=Some("and then")"#), "{trace}");
}

#[tokio::test]
async fn a_session_of_another_folder_is_not_taken_over() {
    let run = Harness::new().script("- reply: [text: One.]").prompt("first").run().await;
    let id = run.session().id().to_owned();
    let run = Harness::after(run)
        .folder("other")
        .begin(Begin::Resume(id.clone()))
        .script("- reply: [text: Two.]")
        .run()
        .await;
    assert!(run.trace().contains(&format!("--resume {id}")), "{}", run.trace());
    let run = Harness::after(run).folder("other").begin(Begin::New).prompt(&format!("/resume {id}")).run().await;
    assert!(run.trace().contains(&format!("--resume {id}")), "{}", run.trace());
}

#[tokio::test]
async fn keys_reach_neither_commands_nor_the_log() {
    let run = Harness::new()
        .env("ANTHROPIC_API_KEY", "sk-do-not-tell")
        .set("[env]\nANTHROPIC_API_KEY = 'sk-do-not-tell'\nHARMLESS = 'yes'")
        .script("- reply: [tool: {name: Bash, input: {command: env}}]\n- reply: [text: Done.]\n  expect: {contains: HARMLESS=yes}")
        .mode(Mode::Bypass)
        .prompt("go")
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended Done"), "{}", run.trace());
    assert!(!std::fs::read_to_string(run.log()).unwrap().contains("sk-do-not-tell"));
}

#[tokio::test]
async fn a_shell_line_of_the_user_is_in_the_history() {
    let run = Harness::new()
        .script("- reply: [text: Hi.]")
        .prompt("hi")
        .at("turn ended", Op::Shell { command: "echo one".into() })
        .run()
        .await;
    let (history, _) = run.session().history(9).unwrap();
    let shown = history.iter().any(|item| matches!(item, HistoryItem::Shell { command, .. } if command == "echo one"));
    assert!(shown, "{history:#?}");
}
