//! Write: makes a file, or replaces one that the model has read.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::message::FileDiff;
use crate::permission::Access;
use crate::provider::ToolSpec;

use super::file::{self, Change};
use super::{Context, Dirs, Output, Running, Tool, input};

pub(super) struct Write;

#[derive(Deserialize, JsonSchema)]
struct Input {
    file_path: String,
    /// The whole content
    content: String,
}

impl Tool for Write {
    fn spec(&self) -> ToolSpec {
        let description = include_str!("../../assets/tools/write.md").trim().into();
        ToolSpec { name: "Write".into(), description, schema: input::schema::<Input>() }
    }

    fn access(&self, input: &Value, dirs: &Dirs, home: Option<&Path>) -> Result<Access, String> {
        file::write_access(&input::parse::<Input>(input)?.file_path, dirs, home)
    }

    fn read_only(&self, _input: &Value) -> bool {
        false
    }

    fn title(&self, input: &Value) -> String {
        file::one_line(file::text_of(input, "file_path"))
    }

    fn preview(&self, input: &Value, dirs: &Dirs, home: Option<&Path>) -> Option<FileDiff> {
        change(input, dirs, home).ok().map(|change| change.diff())
    }

    fn run<'a>(&'a self, input: Value, context: &'a Context<'a>) -> Running<'a> {
        Box::pin(async move {
            match change(&input, context.dirs, context.home) {
                Ok(change) => change.make(context),
                Err(error) => Output::error(error),
            }
        })
    }
}

fn change(input: &Value, dirs: &Dirs, home: Option<&Path>) -> Result<Change, String> {
    let input: Input = input::parse(input)?;
    file::named(&input.file_path)?;
    let path = dirs.absolute(&input.file_path, home);
    let before = file::snapshot(&path)?;
    let after = match &before {
        Some(before) => as_before(&before.bytes, input.content),
        None => input.content.into_bytes(),
    };
    let lines = after.split_inclusive(|byte| *byte == b'\n').count();
    let verb = if before.is_some() { "Replaced" } else { "Created" };
    let told = format!("{verb} {} ({lines} lines).", path.display());
    Ok(Change { path, before, after, told })
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

    #[test]
    fn preview_changes_nothing() {
        let fixture = Fixture::new();
        fixture.file("a", "old\n");
        let diff = Write.preview(&json!({"file_path": "a", "content": "new\n"}), &fixture.dirs, None).unwrap();
        assert_eq!((diff.unified.as_str(), diff.created), ("@@ -1 +1 @@\n-old\n+new\n", false));
        assert_eq!(fixture.content("a"), "old\n");
    }
}
