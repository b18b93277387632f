//! Compaction over a scripted model: when it comes, what the model reads afterwards, how it fails, and back.

use cocode::permission::Mode;

use super::support::harness::{Harness, Ran};

/// A conversation of small talk whose third request finds the window full.
fn full(script: &str) -> Harness {
    let talk = "
- reply: [text: one]
- reply: [text: two, usage: {input: 170000, output: 5}]
";
    Harness::new().script(&format!("{talk}{script}")).prompt("first").prompt("second").prompt("third")
}

/// The trace from the third prompt on.
fn end(run: &Ran) -> String {
    let trace = run.trace();
    let end = &trace[trace.find("prompt third").expect("a third prompt")..];
    let lines = end.lines().filter(|line| !line.starts_with("attachment "));
    lines.map(|line| line.split(", others").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_full_window_is_summarised_before_the_next_request() {
    let run = full(
        "
- {for: summary, expect: {contains: '<summary>'}, reply: [text: '<analysis>a</analysis><summary>All is well.</summary>']}
- {expect: {contains: third, lacks: '<analysis>'}, reply: [text: done]}
",
    )
    .set("compact = { keep_recent_tokens = 0 }")
    .run()
    .await;
    insta::assert_snapshot!(end(&run));
    let texts = run.session().context().messages().iter().map(|message| message.text()).collect::<Vec<_>>();
    // The skills that are shipped change.
    assert!(texts[1].starts_with("<system-reminder>\n# Skills\n"), "{}", texts[1]);
    insta::assert_snapshot!(texts[2..].join("\n=====\n"));
}

#[tokio::test]
async fn a_summary_that_fails_leaves_the_trim() {
    for reply in ["error: {kind: server}", "text: ''", "text: '<summary>half', stop: max_tokens"] {
        let run = full(&format!(
            "
- {{for: summary, repeat: 2, reply: [{reply}]}}
- reply: [text: done]
"
        ))
        .run()
        .await;
        let end = end(&run);
        assert!(end.contains("compaction failed") && end.ends_with("reply done\nturn ended Done"), "{reply}: {end}");
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_is_compacted_and_sent_again_once() {
    let script = "
- reply: [text: one]
- reply: [text: two, usage: {input: 60000, output: 5}]
- reply: [error: {kind: context_too_long, tokens: 99000, limit: 50000}]
- {for: summary, reply: [text: '<summary>short</summary>']}
";
    let prompts = |harness: Harness| harness.prompt("first").prompt("second").prompt("third");
    let run = prompts(Harness::new().script(&format!("{script}\n- reply: [text: done]"))).run().await;
    insta::assert_snapshot!(end(&run));
    let again = "\n- reply: [error: {kind: context_too_long}]";
    let run = prompts(Harness::new().script(&format!("{script}{again}"))).run().await;
    assert!(end(&run).contains("turn ended Failed") && end(&run).contains("/rewind"), "{}", end(&run));
}

#[tokio::test]
async fn switched_off_it_says_so() {
    let run = full("").set("compact = { enabled = false, blocking_limit = 168000 }").prompt("/compact").run().await;
    assert!(end(&run).contains("DISABLE_COMPACT"), "{}", end(&run));
    assert!(end(&run).contains("restore=Some(\"third\")"), "{}", end(&run));
    assert!(run.trace().contains("notice Compaction is off"), "{}", run.trace());
}

#[tokio::test]
async fn compact_by_hand_and_back() {
    let run = Harness::new()
        .script(
            "
- reply: [text: one]
- reply: [text: two, usage: {input: 60000, output: 5}]
- {for: summary, expect: {contains: heed the tests}, reply: [text: '<summary>S</summary>']}
- {expect: {contains: third}, reply: [text: three]}
",
        )
        .set("compact = { keep_recent_tokens = 0 }")
        .prompt("/compact")
        .prompt("first")
        .prompt("second")
        .prompt("/compact heed the tests")
        .prompt("third")
        .run()
        .await;
    // Sizes and the number of messages change with every prompt and skill that is shipped.
    let told = |run: &Ran| {
        let trace = run.trace();
        let lines = trace.lines().filter(|line| !line.starts_with("text ") && !line.starts_with("attachment "));
        let lines = lines.map(|line| match line.starts_with("notice ") {
            true => line.replace(|c: char| c.is_ascii_digit(), ""),
            false => line.split(" Kept ").next().unwrap_or(line).to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(told(&run));
    let run = Harness::after(run)
        .script("- {expect: {lacks: no longer fits into the context window}, reply: [text: four]}")
        .prompt("/compact undo")
        .prompt("/compact undo")
        .prompt("fourth")
        .run()
        .await;
    insta::assert_snapshot!(told(&run));
}

#[tokio::test]
async fn the_window_is_drawn() {
    let script = "
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [text: done, usage: {input: 30000, output: 5}]
- {for: summary, reply: [text: '<summary>S</summary>']}
- reply: [text: gone on]
";
    let run = Harness::new()
        .file("a.txt", &"some words in a line\n".repeat(400))
        .file("AGENTS.md", "Answer in rhymes.")
        .script(script)
        .set("compact = { keep_recent_tokens = 0 }")
        .prompt("read it twice")
        .prompt("/context")
        .prompt("/compact")
        .prompt("continue")
        .run()
        .await;
    let told = |run: &Ran| run.trace().split("notice ").nth(1).expect("a notice").replace('⏎', "\n");
    let first = &told(&run);
    let again = Harness::after(run).prompt("/context").run().await;
    let second = &told(&again);
    let row = |text: &str, name: &str| text.lines().find(|row| row.trim_start().starts_with(name)).map(str::to_owned);
    for name in ["system prompt", "tools", "memory files", "messages", "prompts", "tool results", "free", "c compacted"]
    {
        assert!(row(first, name).is_some(), "{name}: {first}");
    }
    assert!(first.contains("30k of") && first.contains("a.txt`: 2 times"), "{first}");
    assert!(!first.contains("Compactions"), "{first}");
    assert!(row(second, "summary").is_some() && row(second, "tool results").is_none(), "{second}");
    assert!(second.contains("UTC: full, on request, 30k → ") && !second.contains("2 times"), "{second}");
    let meta = std::fs::read_to_string(again.log().with_file_name("meta.json")).unwrap();
    assert!(meta.contains(r#""trigger":"manual""#), "{meta}");
}

#[tokio::test]
async fn old_results_are_cleared_on_request() {
    let mut script = String::new();
    for file in 1..=5 {
        script.push_str(&format!("\n- reply: [tool: {{name: Read, input: {{file_path: {file}.txt}}}}]"));
    }
    script.push_str("\n- reply: [text: done]\n- {expect: {contains: were cleared}, reply: [text: continue]}");
    let harness = (1..=5).fold(Harness::new(), |harness, file| {
        harness.file(&format!("{file}.txt"), &"some words in a line\n".repeat(500))
    });
    let run = harness
        .script(&script)
        .mode(Mode::Default)
        .prompt("read")
        .prompt("/compact micro 100")
        .prompt("/compact micro 100")
        .prompt("more")
        .run()
        .await;
    let trace = run.trace();
    assert!(trace.contains("\ncleared 2\n") && trace.contains("There are no old tool results to clear."), "{trace}");
    let cleared = run.log().with_file_name("tool-results").join("call_1.txt");
    assert!(std::fs::read_to_string(cleared).unwrap().contains("some words in a line"));
}

#[tokio::test]
async fn files_todos_and_the_words_of_hooks_come_back() {
    let big = "many words of a large file\n".repeat(2_000);
    let run = Harness::new()
        .file("small.txt", "the whole of a small file\n")
        .file("big.txt", &big)
        .file("gone.txt", "soon gone\n")
        .set("[compact]\nkeep_recent_tokens = 0\n[[hooks.PreCompact]]\nhooks = [{ type = \"command\", command = \"echo mind the tests\" }]\n[[hooks.SessionStart]]\nmatcher = \"compact\"\nhooks = [{ type = \"command\", command = \"echo the build is green\" }]\n[[hooks.PostCompact]]\nhooks = [{ type = \"command\", command = \"cat > after.json\" }]")
        .script(
            "
- reply: [tool: {name: Read, input: {file_path: gone.txt}}, tool: {name: Read, input: {file_path: small.txt}}, tool: {name: Read, input: {file_path: big.txt, limit: 900}}]
- reply: [tool: {name: TodoWrite, input: {todos: [{content: write it, activeForm: writing, status: in_progress}]}}, tool: {name: Bash, input: {command: rm gone.txt}}]
- reply: [text: read]
- {for: summary, expect: {contains: mind the tests}, reply: [text: '<summary>S</summary>']}
- reply: [tool: {name: Edit, input: {file_path: small.txt, old_string: whole, new_string: half}}]
- reply: [tool: {name: Edit, input: {file_path: big.txt, old_string: many, new_string: few}}]
- reply: [text: done]
",
        )
        .mode(Mode::Bypass)
        .prompt("first")
        .prompt("/compact")
        .prompt("second")
        .run()
        .await;
    let texts: Vec<String> = run.session().context().messages().iter().map(|message| message.text()).collect();
    let at = |words: &str| texts.iter().position(|text| text.contains(words));
    let order =
        ["ran out of context", "too large to restore", "whole of a small file", "- [~] write it", "build is green"];
    let places: Vec<_> = order.iter().map(|words| at(words)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {texts:#?}");
    assert_eq!(at("soon gone"), None);
    let read = |name: &str| std::fs::read_to_string(run.project().join(name)).unwrap();
    // What came back whole may be edited; a note does not count as a read.
    assert_eq!(read("small.txt"), "the half of a small file\n", "{}", run.trace());
    assert_eq!(read("big.txt"), big);
    let after: serde_json::Value = serde_json::from_str(&read("after.json")).unwrap();
    assert_eq!((&after["trigger"], &after["tier"]), (&"manual".into(), &"full".into()));
    assert!(after["tokens_after"].as_u64() < after["tokens_before"].as_u64(), "{after}");
}

#[tokio::test]
async fn a_hook_forbids_every_tier_but_the_trim() {
    let hook = "[[hooks.PreCompact]]\nhooks = [{ type = \"command\", command = \"echo not now >&2; exit 2\" }]";
    let run = full("- reply: [text: done]").set(hook).prompt("/compact").run().await;
    let trace = run.trace();
    assert_eq!(trace.matches("compaction failed").count(), 2, "{trace}");
    assert!(trace.contains("forbids compaction: not now") && trace.contains("reply done"), "{trace}");
    // Above the blocking mark the trim goes its way.
    let talk = "
- reply: [text: one]
- reply: [text: two, usage: {input: 178000, output: 5}]
- reply: [text: done]
";
    let prompts = Harness::new().script(talk).set(hook).prompt("first").prompt("second").prompt("third");
    let run = prompts.run().await;
    assert!(run.session().last_boundary().is_some() && run.trace().contains("reply done"), "{}", run.trace());
}

#[tokio::test]
async fn what_would_no_longer_fit_is_not_taken_back() {
    let run = full(
        "
- {for: summary, reply: [text: '<summary>S</summary>']}
- reply: [text: done]
",
    )
    .set("compact = { keep_recent_tokens = 0 }")
    .run()
    .await;
    assert!(run.session().last_boundary().is_some());
    // What left was counted as 170k; a window of which less is available cannot hold it again.
    let run = Harness::after(run).set("compact = { reserved_output = 199000 }").prompt("/compact undo").run().await;
    assert!(run.session().last_boundary().is_some(), "{}", run.trace());
    let trace = run.trace();
    assert!(trace.contains("The compaction stays: without it the conversation would have about"), "{trace}");
}
