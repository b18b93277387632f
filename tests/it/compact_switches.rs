//! Every switch of compaction: what it stops, what still works, and that it counts from the moment it is thrown.

use super::support::harness::{Harness, Ran};

/// A third request that finds so many tokens in the window of 200k, whose mark is at 167k.
fn third(tokens: u64, script: &str) -> Harness {
    let talk = format!(
        "
- reply: [text: one]
- reply: [text: two, usage: {{input: {tokens}, output: 5}}]
{script}
- {{for: summary, repeat: 2, reply: [text: '<summary>S</summary>']}}
- reply: [text: three, usage: {{input: 100000, output: 5}}]
"
    );
    Harness::new().script(&talk).prompt("first").prompt("second").prompt("third")
}

/// What compaction did and said, in order.
fn told(run: &Ran) -> Vec<String> {
    let trace = run.trace();
    let word = |line: &str| {
        let start = line.split(' ').take(3).collect::<Vec<_>>().join(" ");
        match line.split(' ').next() {
            Some("compacted") => Some(line.split(' ').take(2).collect::<Vec<_>>().join(" ")),
            Some("compaction" | "cleared" | "error") => Some(start),
            Some("notice") if line.contains(" is off (`") => Some("notice off".to_owned()),
            Some("reply") => Some(line.to_owned()),
            _ => None,
        }
    };
    trace.lines().skip_while(|line| *line != "prompt third").filter_map(word).collect()
}

async fn check(harness: Harness, variable: &str, want: &[&str]) {
    let run = harness.env(variable, "1").run().await;
    assert_eq!(told(&run), want, "{variable}");
}

#[tokio::test]
async fn without_compaction_nothing_is_done_at_all() {
    let tooled = |tokens| third(tokens, "").prompt("/compact").prompt("/compact micro").prompt("/compact undo");
    // Below the blocking mark it continues, above it the prompt is held, and every form of the command says why.
    check(tooled(170_000), "DISABLE_COMPACT", &["reply three", "notice off", "notice off", "notice off"]).await;
    check(tooled(178_000), "DISABLE_COMPACT", &["error the conversation", "notice off", "notice off", "notice off"])
        .await;
    // What the provider finds too long is not recovered, either.
    let long = "- reply: [error: {kind: context_too_long}]";
    check(third(1_000, long), "DISABLE_COMPACT", &["error the conversation"]).await;
}

#[tokio::test]
async fn without_automatic_compaction_the_rest_works() {
    let off = "DISABLE_AUTO_COMPACT";
    check(third(170_000, "").prompt("/compact"), off, &["reply three", "compacted full"]).await;
    check(third(178_000, ""), off, &["compacted trim", "reply three"]).await;
    let long = "- reply: [error: {kind: context_too_long, limit: 150000}]";
    check(third(160_000, long), off, &["compacted trim", "reply three"]).await;
    // Ours wins over theirs.
    let run = third(170_000, "").env(off, "1").env("COCODE_DISABLE_AUTO_COMPACT", "0").run().await;
    assert_eq!(told(&run), ["compacted full", "reply three"], "{}", run.trace());
}

/// Five large results, then usage above the warning mark.
fn results() -> Harness {
    let mut script = String::new();
    for file in 1..=5 {
        script.push_str(&format!("\n- reply: [tool: {{name: Read, input: {{file_path: {file}.txt}}}}]"));
    }
    script.push_str("\n- reply: [text: two, usage: {input: 160000, output: 5}]\n- reply: [text: three]");
    let text = format!("{}\n", "some words in a line ".repeat(40)).repeat(50);
    let files = (1..=5).fold(Harness::new(), |harness, file| harness.file(&format!("{file}.txt"), &text));
    files
        .script(&script)
        .set("tools = { max_bytes = 1000000 }\ncompact = { micro = { target = 20000, weigh_cost = false } }")
        .prompt("read")
        .prompt("third")
}

#[tokio::test]
async fn without_clearing_old_results_stay() {
    let run = results().run().await;
    assert_eq!(told(&run), ["cleared 2", "reply three"], "{}", run.trace());
    let off = results().prompt("/compact micro");
    check(off, "DISABLE_MICROCOMPACT", &["reply three", "notice off"]).await;
}

#[tokio::test]
async fn without_a_second_try_a_summary_is_asked_for_once() {
    for (retry, want) in [(true, "compacted full"), (false, "compaction failed ApiError")] {
        let run = third(170_000, "- {for: summary, reply: [error: {kind: server}]}")
            .set(&format!("features = {{ compact_streaming_retry = {retry} }}"))
            .run()
            .await;
        assert_eq!(told(&run)[0], want, "{}", run.trace());
    }
}

#[tokio::test]
async fn without_attachments_nothing_is_put_back() {
    let run = Harness::new()
        .file("a.txt", "content\n")
        .script(
            "
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [text: read, usage: {input: 60000, output: 5}]
- {for: summary, reply: [text: '<summary>S</summary>']}
- {expect: {lacks: content}, reply: [text: done]}
",
        )
        .set("compact = { keep_recent_tokens = 0, min_messages_before_compact = 1 }")
        .env("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")
        .prompt("read it")
        .prompt("/compact")
        .prompt("third")
        .run()
        .await;
    assert!(
        run.trace().contains("compacted full") && run.trace().contains("Kept { messages: 0, files: 0"),
        "{}",
        run.trace()
    );
}

#[tokio::test]
async fn a_switch_counts_from_the_moment_it_is_thrown() {
    let run = third(170_000, "")
        .prompt("/help")
        .prompt("/config compact.enabled false")
        .prompt("/help")
        .prompt("/compact")
        .prompt("/config compact.auto_compact_enabled false")
        .prompt("/config compact.enabled true")
        .prompt("/help")
        .run()
        .await;
    let trace = run.trace();
    let lists: Vec<bool> = trace
        .lines()
        .filter(|line| line.starts_with("notice Commands ("))
        .map(|help| help.contains("`/compact`"))
        .collect();
    assert_eq!(lists, [true, false, true], "{trace}");
    assert!(trace.contains("notice Compaction is off"), "{trace}");
    // At the start, too.
    let run =
        Harness::new().script("- reply: [text: x]").env("COCODE_DISABLE_COMPACT", "yes").prompt("/help").run().await;
    assert!(!run.trace().contains("`/compact`"), "{}", run.trace());
    // A lower mark compacts before the next request.
    let run = Harness::new()
        .script(
            "
- reply: [text: one]
- reply: [text: two, usage: {input: 60000, output: 5}]
- {for: summary, reply: [text: '<summary>S</summary>']}
- reply: [text: three]
",
        )
        .prompt("first")
        .prompt("second")
        .prompt("/config compact.auto_compact_threshold 50000")
        .prompt("third")
        .run()
        .await;
    assert_eq!(told(&run), ["compacted full", "reply three"], "{}", run.trace());
}
