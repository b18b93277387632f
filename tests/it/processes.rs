//! Cancelling a turn leaves no process behind, through the whole engine.

use std::time::{Duration, Instant};

use cocode::permission::Mode;
use cocode::protocol::Op;

use super::support::harness::Harness;

/// Processes whose command line holds this word.
fn alive(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let folder = entry.path();
            let line = std::fs::read(folder.join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            // A zombie has no command line; this test has another one.
            line.contains(word).then_some(line)
        })
        .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_interrupt_kills_whatever_a_command_has_started() {
    // A length of sleep that names the processes of this run.
    let word = format!("{}.{}", 6000, std::process::id());
    let command = format!(
        "trap '' TERM; (trap '' TERM; sleep {word} & sleep {word}) & setsid sh -c 'trap \"\" TERM; sleep {word}; :' & \
         until [ $(pgrep -f -c '^sleep {word}') = 3 ]; do :; done; echo begun; while :; do sleep {word}; done"
    );
    let script =
        format!("- reply: [tool: {{name: Bash, input: {{command: {}}}}}]", serde_json::to_string(&command).unwrap());
    let begun = Instant::now();
    let run = Harness::new()
        .script(&script)
        .mode(Mode::Bypass)
        .env("COCODE_SANDBOXED", "1")
        .prompt("go")
        .at("output begun", Op::Interrupt)
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended Interrupted"), "{}", run.trace());
    assert_eq!(alive(&word), Vec::<String>::new());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
