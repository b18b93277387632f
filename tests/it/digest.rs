//! Old tool results behind a digest, after every round.

use super::support::harness::{Harness, Ran};

/// Reads five files, one a round, with three results visible.
async fn reading(summary: &str, digests: &str) -> Ran {
    let mut script = digests.to_owned();
    for file in 1..=5 {
        script.push_str(&format!("\n- reply: [tool: {{name: Read, input: {{file_path: {file}.txt}}}}]"));
    }
    script.push_str("\n- reply: [text: done]");
    (1..=5)
        .fold(Harness::new(), |harness, file| harness.file(&format!("{file}.txt"), &format!("content of {file}\n")))
        .script(&script)
        .set(&format!("compact = {{ tool_output = {{ summary = '{summary}', visible = 3 }} }}"))
        .prompt("read")
        .run()
        .await
}

/// What the model reads of results and digests.
fn results(run: &Ran) -> String {
    let session = run.session();
    let mut rows = Vec::new();
    for message in session.context().messages() {
        rows.extend(message.results().map(|result| result.text().trim().to_owned()));
        let text = message.text();
        if text.contains("# Digest") {
            rows.push(text);
        }
    }
    rows.join("\n").replace(run.project().to_string_lossy().as_ref(), "$P")
}

#[tokio::test]
async fn digests_take_the_place_of_old_results() {
    let run = reading("heuristic", "").await;
    insta::assert_snapshot!(results(&run));
    let run = reading("off", "").await;
    assert!(!results(&run).contains("Digest"));
    // A model that fails, then one that answers.
    let run = reading(
        "llm",
        "\n- {for: summary, reply: [error: {kind: server}]}\n- {for: summary, expect: {contains: content of 2}, reply: [text: two was read]}",
    )
    .await;
    insta::assert_snapshot!(results(&run));
    let spent: Vec<String> = run.session().facts().spent.iter().map(|spent| spent.what.clone()).collect();
    assert_eq!(spent, ["digest of tool results"]);
}
