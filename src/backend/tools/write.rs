//! Write: makes a file, or replaces one that the model has read.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::permission::{Matches, Ruled};

use super::Manners;
use super::change::{ChangesFile, Known};
use super::file::{self, Change};

pub(super) struct Write;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    file_path: String,
    /// The full content
    content: String,
}

impl ChangesFile for Write {
    type Input = Input;

    const NAME: &'static str = "Write";
    const ABOUT: &'static str = include_str!("../../../assets/tools/write.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Writing, under: Some(super::EDIT), shows: None },
        matched: "file_path",
        ..Manners::CHANGES
    };

    fn path(input: &Input) -> &str {
        &input.file_path
    }

    fn work_out(input: &Input, path: PathBuf, _known: Known<'_>) -> Result<Change, String> {
        let before = file::snapshot(&path)?;
        let after = match &before {
            Some(before) => as_before(&before.bytes, input.content.clone()),
            None => input.content.clone().into_bytes(),
        };
        let lines = after.split_inclusive(|byte| *byte == b'\n').count();
        let verb = if before.is_some() { "Replaced" } else { "Created" };
        let told = format!("{verb} {} ({lines} lines).", path.display());
        Ok(Change { path, before, after, told })
    }
}

/// Gives new content the line ends and the byte order mark of the old.
fn as_before(before: &[u8], content: String) -> Vec<u8> {
    let ends = before.iter().filter(|byte| **byte == b'\n').count();
    let windows = ends > 0 && before.windows(2).filter(|pair| *pair == b"\r\n").count() == ends;
    let content = if windows && !content.contains("\r\n") { content.replace('\n', "\r\n") } else { content };
    let mark = "\u{feff}";
    if before.starts_with(mark.as_bytes()) && !content.starts_with(mark) {
        return [mark.as_bytes(), content.as_bytes()].concat();
    }
    content.into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{Display, Outcome};
    use crate::tools::fixture::Fixture;
    use crate::tools::read::Read;

    #[tokio::test]
    async fn creates_with_folders() {
        let mut fixture = Fixture::new();
        let output = fixture.run(&Write, json!({"file_path": "a/b/c.txt", "content": "one\ntwo\n"})).await;
        assert_eq!(fixture.text(&output), "Created ROOT/a/b/c.txt (2 lines).");
        assert_eq!(fixture.content("a/b/c.txt"), "one\ntwo\n");
        let Some(Display::Diff(diff)) = output.display else { panic!("{output:?}") };
        assert_eq!((diff.added, diff.created), (2, true));
        // What it wrote itself it may write again.
        fixture.ok(&Write, json!({"file_path": "a/b/c.txt", "content": "three\n"})).await;
    }

    #[tokio::test]
    async fn a_write_that_fails_leaves_no_folders() {
        let mut fixture = Fixture::new();
        let long = format!("a/b/{}", "c".repeat(256));
        assert!(fixture.error(&Write, json!({"file_path": long, "content": "one"})).await.contains("Cannot write"));
        assert!(!fixture.root.join("a").exists());
        // What was there stays.
        fixture.file("a/x", "");
        fixture.error(&Write, json!({"file_path": long, "content": "one"})).await;
        assert!(fixture.root.join("a").exists() && !fixture.root.join("a/b").exists());
    }

    #[tokio::test]
    async fn an_existing_file_must_be_known() {
        let mut fixture = Fixture::new();
        fixture.file("a", "old\n");
        let input = json!({"file_path": "a", "content": "new\n"});
        assert!(fixture.error(&Write, input.clone()).await.contains("you have not read it"));
        fixture.ok(&Read, json!({"file_path": "a"})).await;
        fixture.file("a", "changed\n");
        assert!(fixture.error(&Write, input.clone()).await.contains("changed on disk since you read it"));
        assert_eq!(fixture.content("a"), "changed\n");
        fixture.ok(&Read, json!({"file_path": "a"})).await;
        fixture.ok(&Write, input).await;
        assert_eq!(fixture.content("a"), "new\n");
    }

    #[tokio::test]
    async fn line_ends_and_mark_stay() {
        for (old, content, want) in [
            ("a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n"),
            ("a\r\nb\n", "c\n", "c\n"),
            ("\u{feff}a\n", "c\n", "\u{feff}c\n"),
            ("a\n", "c\r\n", "c\r\n"),
        ] {
            let mut fixture = Fixture::new();
            fixture.file("a", old);
            fixture.ok(&Read, json!({"file_path": "a"})).await;
            fixture.ok(&Write, json!({"file_path": "a", "content": content})).await;
            assert_eq!(fixture.content("a"), want, "{old:?}");
        }
    }

    #[tokio::test]
    async fn refusals() {
        let mut fixture = Fixture::new();
        fixture.file("file", "");
        std::fs::create_dir(fixture.root.join("dir")).unwrap();
        for (path, want) in [
            ("dir", "is a folder"),
            ("file/x", "does not exist"),
            ("", "The path is empty."),
            ("/dev/null", "is a device"),
        ] {
            let got = fixture.error(&Write, json!({"file_path": path, "content": "x"})).await;
            assert!(got.contains(want), "{path}: {got}");
        }
        fixture.cancel.cancel();
        let output = fixture.run(&Write, json!({"file_path": "new", "content": "x"})).await;
        assert_eq!((output.outcome, fixture.root.join("new").exists()), (Outcome::Interrupted, false));
    }

    #[tokio::test]
    async fn preview_changes_nothing() {
        let mut fixture = Fixture::new();
        fixture.file("a", "old\n");
        let call = fixture.call(&Write, json!({"file_path": "a", "content": "new\n"})).unwrap();
        // Nobody is asked about what must fail.
        assert!(call.outlook(&fixture.seen).unwrap().unwrap_err().contains("you have not read it"));
        fixture.ok(&Read, json!({"file_path": "a"})).await;
        let diff = call.outlook(&fixture.seen).unwrap().unwrap();
        assert_eq!((diff.unified.as_str(), diff.created), ("@@ -1 +1 @@\n-old\n+new\n", false));
        assert_eq!(fixture.content("a"), "old\n");
    }
}
