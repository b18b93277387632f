//! What a compaction keeps and brings back, in which order; and how it is shown when the session continues.

use std::path::Path;

use cocode::permission::Mode;
use cocode::protocol::{Event, HistoryItem, Op, RewindWhat};
use serde_json::Value;

use super::support::harness::{Harness, Ran};

/// First words of every message that the model reads, results by their text, without the opening.
fn reads(run: &Ran) -> Vec<String> {
    let short =
        |text: &str| text.replace(run.project().to_string_lossy().as_ref(), "$P").chars().take(44).collect::<String>();
    let session = run.session();
    let mut rows = Vec::new();
    for message in session.context().messages() {
        let text = message.text();
        let line = text.trim_start_matches("<system-reminder>\n").lines().next().unwrap_or_default();
        if !line.is_empty() {
            rows.push(short(line));
        }
        rows.extend(
            message.results().map(|result| short(&format!("= {}", result.text().lines().next().unwrap_or_default()))),
        );
    }
    rows
}

/// A session with an attachment of every kind, compacted once, and a prompt later.
async fn everything() -> Ran {
    Harness::new()
        .file("AGENTS.md", "Be brief.")
        .file("a.txt", "alpha\n")
        .home("skills/tidy/SKILL.md", "---\ndescription: tidies\n---\nTidy everything up.")
        .set("[compact]\nkeep_recent_tokens = 30\n[[hooks.SessionStart]]\nmatcher = \"compact\"\nhooks = [{ type = \"command\", command = \"echo the build is green\" }]")
        .script(
            "
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [tool: {name: TodoWrite, input: {todos: [{content: write it, activeForm: writing, status: in_progress}]}}]
- reply: [text: read, usage: {input: 9000, output: 5}]
- reply: [text: tidied, usage: {input: 9500, output: 5}]
- reply: [tool: {name: Write, input: {file_path: '{plan_file}', content: The plan itself.}}]
- reply: [text: planned, usage: {input: 60000, output: 5}]
- {for: summary, reply: [text: '<summary>S</summary>']}
- reply: [text: done]
",
        )
        .prompt("look at a.txt")
        .prompt("/tidy")
        .prompt("/plan what to do")
        .prompt("/compact")
        .prompt("continue")
        .run()
        .await
}

#[tokio::test]
async fn everything_comes_back_in_its_place() {
    insta::assert_snapshot!(reads(&everything().await).join("\n"));
}

/// Changes every attachment of a log.
fn rewrite(log: &Path, change: fn(&mut Value)) {
    let text = std::fs::read_to_string(log).unwrap();
    let changed = text.lines().map(|line| {
        let mut entry: Value = serde_json::from_str(line).unwrap();
        let is_attachment = |message: &&mut Value| message["user_visible"] == false && message["role"] == "user";
        let single = entry.get_mut("message").into_iter();
        single.filter(is_attachment).for_each(change);
        for part in ["opening", "attachments"] {
            let many = entry.get_mut(part).and_then(Value::as_array_mut).into_iter().flatten();
            many.filter(is_attachment).for_each(change);
        }
        entry.to_string() + "\n"
    });
    std::fs::write(log, changed.collect::<String>()).unwrap();
}

/// Other words of the same length; what is quoted in them stays.
fn reword(message: &mut Value) {
    let quotes = message["kind"]["prompts"]["quotes"].as_u64();
    let Some(Value::String(text)) = message["blocks"][0].get_mut("text") else { return };
    let open = "<system-reminder>\n".len();
    let words = text[open..].char_indices().map(|(at, c)| match quotes.is_some_and(|quotes| at as u64 >= quotes) {
        false if c.is_ascii_alphabetic() => 'x',
        _ => c,
    });
    *text = text[..open].chars().chain(words).collect();
}

/// As attachments were written before they carried their kind.
fn without_kind(message: &mut Value) {
    message["kind"] = "attachment".into();
    if let Some(effects) = message.get_mut("effects").and_then(Value::as_array_mut) {
        effects.retain(|effect| effect["type"] != "skills");
        effects.iter_mut().filter_map(Value::as_object_mut).for_each(|effect| drop(effect.remove("file")));
    }
}

/// What is read of a session that continues over a changed log, and is compacted again.
async fn read_after(change: fn(&mut Value)) -> Vec<String> {
    let run = everything().await;
    rewrite(&run.log(), change);
    let script = "
- reply: [text: more, usage: {input: 60000, output: 5}]
- {for: summary, reply: [text: '<summary>T</summary>']}
- reply: [text: done]
";
    let harness = Harness::after(run).set("compact = { keep_recent_tokens = 0 }").script(script);
    reads(&harness.prompt("more").prompt("/compact").prompt("the end").run().await)
}

#[tokio::test]
async fn what_stays_does_not_hang_on_the_words() {
    let want = read_after(|_| {}).await;
    for kept in ["# Environment", "# Skills", "# Earlier messages from the user", "# Plan"] {
        assert_eq!(want.iter().filter(|row| *row == kept).count(), 1, "{want:#?}");
    }
    // The ledger has what is nowhere else, and so fills in for words that were changed.
    let but_ledger = |rows: Vec<String>| rows.into_iter().filter(|row| row != "# Ledger").collect::<Vec<_>>();
    assert_eq!(but_ledger(read_after(reword).await), want);
    assert_eq!(but_ledger(read_after(without_kind).await), want);
}

/// Reads of fourteen files, one a round, in a window that keeps most of them.
async fn many() -> Ran {
    let mut script = String::new();
    for file in 1..=14 {
        script.push_str(&format!("\n- reply: [tool: {{name: Read, input: {{file_path: {file}.txt}}}}]"));
    }
    script.push_str(
        "
- reply: [text: read, usage: {input: 60000, output: 5}]
- {for: summary, reply: [text: '<summary>S</summary>']}
",
    );
    let files =
        (1..=14).fold(Harness::new(), |harness, file| harness.file(&format!("{file}.txt"), &format!("text {file}\n")));
    files
        .script(&script)
        .set("compact = { keep_recent_messages = 1000, keep_recent_results = 3, restore = { max_files = 0 } }\nskills = { list_budget = 0 }")
        .prompt("read")
        .prompt("/compact")
        .run()
        .await
}

#[tokio::test]
async fn kept_results_beyond_the_newest_stand_behind_a_digest() {
    let run = many().await;
    let rows = reads(&run);
    let stubs = rows.iter().filter(|row| row.starts_with("= [result archived")).count();
    let whole: Vec<&str> =
        rows.iter().filter(|row| row.starts_with("=    ")).map(|row| row.trim_start_matches("= ").trim()).collect();
    assert!(stubs > 2, "{rows:#?}");
    assert_eq!(whole, ["1→text 12", "1→text 13", "1→text 14"], "{rows:#?}");
    assert_eq!(rows.iter().filter(|row| row.starts_with("# Digest of")).count(), 1, "{rows:#?}");
    // A file whose read is archived is not known as read any more.
    let known = |run: &Ran, name: &str| run.session().context().seen().contains_key(&run.project().join(name));
    assert!(known(&run, "14.txt") && !known(&run, "11.txt"));
    // Once undone, it is as if that had never been.
    let run = Harness::after(run).prompt("/compact undo").run().await;
    let rows = reads(&run);
    assert_eq!(rows.iter().filter(|row| row.starts_with("=    ")).count(), 14, "{rows:#?}");
    assert!(known(&run, "11.txt"));
}

#[tokio::test]
async fn the_receipt_is_shown_again() {
    let run = Harness::after(many().await).prompt("/status").run().await;
    let shown = run.events.iter().find_map(|event| match event {
        Event::Session(info) => info.history.iter().find_map(|item| match item {
            HistoryItem::Compacted { receipt, summary } => Some((receipt.clone(), summary.clone())),
            _ => None,
        }),
        _ => None,
    });
    let (receipt, summary) = shown.expect("a receipt");
    assert_eq!((receipt.tier.as_str(), receipt.before), ("full", 60_005));
    assert!(
        receipt.after < 30_000 && receipt.dropped.messages() > 0 && summary.ends_with("\n\nSummary:\nS"),
        "{receipt:?} {summary}"
    );
}

#[tokio::test]
async fn a_rewind_across_two_boundaries_brings_everything_back() {
    let script = "
- reply: [tool: {name: Read, input: {file_path: a.txt}}]
- reply: [text: one, usage: {input: 60000, output: 5}]
- {for: summary, reply: [text: '<summary>S1</summary>']}
- reply: [tool: {name: Edit, input: {file_path: a.txt, old_string: alpha, new_string: beta}}]
- reply: [text: two, usage: {input: 60000, output: 5}]
- {for: summary, reply: [text: '<summary>S2</summary>']}
- reply: [text: three]
";
    let run = Harness::new()
        .file("a.txt", "alpha\n")
        .mode(Mode::AcceptEdits)
        .script(script)
        .set("compact = { keep_recent_tokens = 0, min_messages_before_compact = 2 }\nskills = { list_budget = 0 }")
        .prompt("first")
        .prompt("/compact x")
        .prompt("second")
        .prompt("/compact x")
        .prompt("third")
        .run()
        .await;
    assert!(run.session().last_boundary().is_some());
    let prompts: Vec<(u64, String)> =
        run.session().prompts().unwrap().into_iter().map(|row| (row.seq, row.text)).collect();
    let at = |text: &str| prompts.iter().find(|(_, prompt)| prompt == text).unwrap().0;
    // To before the second prompt: the first boundary holds again, the second does not.
    let op = Op::Rewind { to: at("second"), what: RewindWhat::Conversation };
    let run = Harness::after(run).script("- reply: [text: afresh]").at("session", op).prompt("other").run().await;
    let rows = reads(&run).join("\n");
    assert!(rows.contains("other") && !rows.contains("third") && !rows.contains("second"), "{rows}");
    let context = run.session().context().messages().iter().map(|message| message.text()).collect::<String>();
    assert!(context.contains("S1") && !context.contains("S2"), "{context}");
    // Undo takes the one that is left.
    let run = Harness::after(run).prompt("/compact undo").prompt("/compact undo").run().await;
    let rows = reads(&run).join("\n");
    assert!(rows.contains("first") && rows.contains("one") && rows.contains("other"), "{rows}");
    assert!(run.trace().contains("No compaction to undo."), "{}", run.trace());
    // To before everything.
    let op = Op::Rewind { to: at("first"), what: RewindWhat::Both };
    let run = Harness::after(run).script("- reply: [text: again]").at("session", op).prompt("afresh").run().await;
    assert_eq!(run.read("a.txt"), "alpha\n");
    assert!(reads(&run).join("\n").ends_with("afresh\nagain"), "{:?}", reads(&run));
}
