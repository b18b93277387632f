//! What a session starts with: which model, which mode, when the command line, the settings and an earlier session differ.

use super::support::harness::{Harness, Ran};

async fn first() -> Ran {
    Harness::new().script("- reply: [text: One.]").prompt("first").run().await
}

#[tokio::test]
async fn a_script_wins_over_the_model_of_the_session_and_over_keys() {
    let run = Harness::after(first().await)
        // Where a request would go that should not be made: nothing listens there.
        .env("ANTHROPIC_API_KEY", "sk-not-a-key")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .set("network = { max_retries = 0 }")
        .script("- reply: [text: Two.]")
        .prompt("second")
        .run()
        .await;
    assert!(run.trace().ends_with("reply Two.\nturn ended Done"), "{}", run.trace());
}
