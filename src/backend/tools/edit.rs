//! Edit: replaces one exact text in a file that the model has read.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::permission::{Matches, Ruled};

use super::Manners;
use super::change::{ChangesFile, Known};
use super::file::{self, Change};

pub(super) struct Edit;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    file_path: String,
    /// Exact text in the file, without line numbers
    old_string: String,
    /// Replacement text
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

impl ChangesFile for Edit {
    type Input = Input;

    const NAME: &'static str = "Edit";
    const ABOUT: &'static str = include_str!("../../../assets/tools/edit.md");
    const MANNERS: Manners = Manners {
        rules: Ruled { matches: Matches::Editing, ..Ruled::BY_NAME },
        matched: "file_path",
        aliases: &["MultiEdit"],
        ..Manners::CHANGES
    };

    fn path(input: &Input) -> &str {
        &input.file_path
    }

    fn work_out(input: &Input, path: PathBuf, known: Known<'_>) -> Result<Change, String> {
        let shown = path.display();
        if input.old_string == input.new_string {
            return Err("old_string and new_string are the same; nothing would change.".into());
        }
        let Some(before) = file::snapshot(&path)? else {
            if !input.old_string.is_empty() {
                return Err(match file::open(&path) {
                    Err(reason) => reason,
                    Ok(_) => format!("{shown} has just been created. Read it first."),
                });
            }
            let after = input.new_string.clone().into_bytes();
            return Ok(Change { told: format!("Created {shown}."), path, before: None, after });
        };
        known(&path, &before)?;
        if input.old_string.is_empty() {
            return Err(format!(
                "{shown} exists, so old_string must not be empty. Give the text to replace, or use Write to replace the whole file."
            ));
        }
        let Ok(text) = std::str::from_utf8(&before.bytes) else {
            return Err(format!("{shown} is not valid UTF-8, so Edit could damage it. Change it in Bash instead."));
        };
        let (old, new) = fit_line_ends(text, &input.old_string, &input.new_string);
        let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
        match places.as_slice() {
            [] => return Err(missing(&path, text, &input.old_string)),
            [_] => {}
            _ if input.replace_all => {}
            several => {
                let lines: Vec<String> = several.iter().take(10).map(|at| line_of(text, *at).to_string()).collect();
                let more = if several.len() > 10 { ", …" } else { "" };
                return Err(format!(
                    "old_string occurs {} times in {shown} (lines {}{more}). Add surrounding lines to make it unique, or set replace_all.",
                    several.len(),
                    lines.join(", ")
                ));
            }
        }
        let after = text.replace(&old, &new).into_bytes();
        let told = match places.as_slice() {
            [at] => format!("Edited {shown} at line {}.", line_of(text, *at)),
            several => format!("Replaced {} places in {shown}.", several.len()),
        };
        Ok(Change { path, before: Some(before), after, told })
    }
}

/// Gives both strings the line ends of the file: the model sees and writes plain ones.
fn fit_line_ends(text: &str, old: &str, new: &str) -> (String, String) {
    let windows = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    let all = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
    if all || (text.contains("\r\n") && !text.contains(old)) {
        return (windows(old), windows(new));
    }
    (old.to_string(), new.to_string())
}

/// The number of the line in which a byte is, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Says that the text is not there, and shows the place that is most like it.
fn missing(path: &Path, text: &str, old: &str) -> String {
    let shown = path.display();
    if let Some(bare) = without_numbers(old)
        && text.replace("\r\n", "\n").contains(&bare)
    {
        return format!(
            "old_string was not found in {shown}, but it is there without the line numbers: leave out the numbers and the arrow."
        );
    }
    let Some((start, score)) = nearest(text, old) else {
        return format!("old_string was not found in {shown}, nor anything similar. Read the file again.");
    };
    let count = old.trim_end_matches('\n').lines().count().clamp(1, 12);
    let lines: Vec<String> =
        text.lines().enumerate().skip(start).take(count).map(|(at, line)| numbered(at + 1, line)).collect();
    let how = if score == Score::WhiteSpace { "differs only in white space" } else { "is the closest" };
    format!(
        "old_string was not found in {shown}. This place {how}; copy it exactly, without the line numbers:\n{}",
        lines.join("\n")
    )
}

fn numbered(number: usize, line: &str) -> String {
    let line: String = line.chars().take(500).collect();
    format!("{number:>6}→{line}")
}

/// The text without the numbers that Read puts before lines; none when a line has none.
fn without_numbers(text: &str) -> Option<String> {
    let bare = |line: &str| {
        let (number, rest) = line.split_once('→')?;
        number.trim().parse::<usize>().ok().map(|_| rest.to_string())
    };
    let lines: Option<Vec<String>> = text.trim_end_matches('\n').split('\n').map(bare).collect();
    lines.map(|lines| lines.join("\n"))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Score {
    /// The same words, other white space.
    WhiteSpace,
    Like,
}

/// Most lines of a file, and of a text, that are compared.
const COMPARED: (usize, usize) = (20_000, 40);

/// The line, from 0, where the file is most like a text that does not stand in it.
fn nearest(text: &str, old: &str) -> Option<(usize, Score)> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.trim_matches('\n').lines().take(COMPARED.1).map(words).collect();
    let lines: Vec<String> = text.lines().take(COMPARED.0).map(words).collect();
    let mut best: Option<(usize, f64)> = None;
    for start in 0..lines.len() {
        let window = &lines[start..lines.len().min(start + wanted.len())];
        let total: f64 = window.iter().zip(&wanted).map(|(line, wanted)| alike(line, wanted)).sum();
        let share = total / wanted.len().max(1) as f64;
        if best.is_none_or(|(_, most)| share > most) {
            best = Some((start, share));
        }
    }
    match best {
        Some((start, share)) if share > 0.9999 => Some((start, Score::WhiteSpace)),
        Some((start, share)) if share >= 0.4 => Some((start, Score::Like)),
        _ => None,
    }
}

/// How much of two lines is the same at their ends, from 0 to 1.
fn alike(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let longest = one.len().max(other.len());
    let start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let rest = one.len().min(other.len()) - start;
    let end = one.iter().rev().zip(other.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    // Never 1: the lines differ.
    (start + end) as f64 / (longest + 1) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::Display;
    use crate::tools::fixture::Fixture;
    use crate::tools::read::Read;

    async fn check(content: &str, old: &str, new: &str, all: bool, want: Result<&str, &str>) {
        let mut fixture = Fixture::new();
        fixture.file("a", content);
        fixture.ok(&Read, json!({"file_path": "a"})).await;
        let input = json!({"file_path": "a", "old_string": old, "new_string": new, "replace_all": all});
        let output = fixture.run(&Edit, input).await;
        match want {
            Ok(want) => {
                assert_eq!(fixture.content("a"), want, "{}", fixture.text(&output));
                assert!(matches!(output.display, Some(Display::Diff(_))));
            }
            Err(want) => {
                let text = fixture.text(&output);
                assert!(text.contains(want), "{text}");
                assert_eq!(fixture.content("a"), content);
            }
        }
    }

    #[tokio::test]
    async fn edits() {
        check("one\ntwo\n", "two", "2", false, Ok("one\n2\n")).await;
        check("a a a", "a", "b", true, Ok("b b b")).await;
        check("one\r\ntwo\r\n", "one\ntwo", "1\n2", false, Ok("1\r\n2\r\n")).await;
        check("one\r\ntwo\r\n", "two", "2\n3", false, Ok("one\r\n2\r\n3\r\n")).await;
        check("mixed\none\r\ntwo\r\n", "one\ntwo", "1\n2", false, Ok("mixed\n1\r\n2\r\n")).await;
        check("\u{feff}one\n", "one", "1", false, Ok("\u{feff}1\n")).await;
        check("$1 \\n", "$1", "$0\\", false, Ok("$0\\ \\n")).await;
        check("one\ntwo\n", "one\n", "", false, Ok("two\n")).await;
    }

    #[tokio::test]
    async fn refusals() {
        check("a\nb\na\n", "a", "x", false, Err("occurs 2 times in ROOT/a (lines 1, 3)")).await;
        check("a", "a", "a", false, Err("are the same")).await;
        check("a", "", "b", false, Err("old_string must not be empty")).await;
        check("fn main() {\n    run();\n}\n", "fn main() {\n  run();\n}", "x", false, Err(
            "This place differs only in white space; copy it exactly, without the line numbers:\n     1→fn main() {\n     2→    run();\n     3→}",
        ))
        .await;
        check("alpha\nlet count = items.len();\n", "let count = item.len();", "x", false, Err(
            "This place is the closest; copy it exactly, without the line numbers:\n     2→let count = items.len();",
        ))
        .await;
        check("one\ntwo\n", "     1→one\n     2→two", "x", false, Err("without the line numbers: leave out")).await;
        check("one\n", "zebra crossing", "x", false, Err("nor anything similar")).await;
    }

    #[tokio::test]
    async fn the_file_must_be_as_it_was_seen() {
        let mut fixture = Fixture::new();
        fixture.file("a", "one\n");
        let input = json!({"file_path": "a", "old_string": "one", "new_string": "1"});
        assert!(fixture.error(&Edit, input.clone()).await.contains("you have not read it"));
        fixture.ok(&Read, json!({"file_path": "a"})).await;
        fixture.file("a", "one and more\n");
        assert!(fixture.error(&Edit, input.clone()).await.contains("changed on disk since you read it"));
        std::fs::remove_file(fixture.root.join("a")).unwrap();
        assert!(fixture.error(&Edit, input).await.contains("does not exist"));
        let create = json!({"file_path": "a", "old_string": "", "new_string": "made\n"});
        assert_eq!(fixture.ok(&Edit, create).await, "Created ROOT/a.");
        // Its own change is not a change behind its back.
        fixture.ok(&Edit, json!({"file_path": "a", "old_string": "made", "new_string": "kept"})).await;
        assert_eq!(fixture.content("a"), "kept\n");
    }

    #[tokio::test]
    async fn what_is_no_text_is_left_alone() {
        let mut fixture = Fixture::new();
        fixture.file("a", b"caf\xe9 one\n");
        fixture.ok(&Read, json!({"file_path": "a"})).await;
        let input = json!({"file_path": "a", "old_string": "one", "new_string": "1"});
        assert!(fixture.error(&Edit, input).await.contains("is not valid UTF-8"));
    }
}
