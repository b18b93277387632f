//! Memory files of nested folders: they are in the context once, as long as a read beside them is.

use super::support::harness::{Harness, Ran};

/// Reads these files, one a round, then ends.
fn reads(files: &[&str]) -> String {
    let read = |file: &&str| format!("- reply: [tool: {{name: Read, input: {{file_path: {file}}}}}]\n");
    files.iter().map(read).chain(["- reply: [text: done]\n".to_owned()]).collect()
}

fn project() -> Harness {
    [("src/AGENTS.md", "Use tabs."), ("src/a.rs", "a\n"), ("src/b.rs", "b\n"), ("c.rs", "c\n")]
        .into_iter()
        .fold(Harness::new(), |harness, (path, text)| harness.file(path, text))
}

/// How often the folder's memory is in front of the model.
fn times(run: &Ran) -> usize {
    run.session().context().messages().iter().filter(|message| message.text().contains("Use tabs.")).count()
}

#[tokio::test]
async fn a_resumed_session_is_not_told_again() {
    let first = project().script(&reads(&["src/a.rs"])).prompt("read").run().await;
    assert_eq!(times(&first), 1);
    let second = Harness::after(first).script(&reads(&["src/b.rs"])).prompt("more").run().await;
    assert_eq!(times(&second), 1);
}

#[tokio::test]
async fn it_leaves_with_the_last_read_beside_it_and_comes_back_with_the_next() {
    let archiving = "compact = { tool_output = { summary = 'heuristic', visible = 1 } }";
    for (files, want) in [
        (&["src/a.rs", "src/b.rs"][..], 1),
        (&["src/a.rs", "c.rs"], 0),
        (&["src/a.rs", "c.rs", "src/b.rs"], 1),
        (&["src/a.rs", "src/b.rs", "c.rs"], 0),
    ] {
        let run = project().script(&reads(files)).set(archiving).prompt("read").run().await;
        assert_eq!(times(&run), want, "{files:?}");
    }
}
