//! Recipes that change files. The permission engine asks; these only call.

use serde_json::json;

use super::{Situation, bash, read, say, tool, unnumbered};
use crate::provider::offline::script::Part;

pub(super) fn create(situation: &Situation, path: &str, text: &str) -> Vec<Part> {
    match situation.of_tool("Write").next() {
        None => vec![
            say(format!("Writing `{path}`.")),
            tool("Write", json!({ "file_path": path, "content": with_newline(text) })),
        ],
        Some(step) if step.ok() => vec![say(format!("Wrote `{path}`."))],
        Some(step) => vec![say(format!("The write failed: {}", step.text()))],
    }
}

pub(super) fn replace(situation: &Situation, old: &str, new: &str, path: Option<&str>) -> Vec<Part> {
    let Some(path) = path else { return everywhere(situation, old) };
    let Some(file) = situation.of_tool("Read").next() else {
        return vec![say(format!("Reading `{path}` first.")), read(path)];
    };
    if !file.ok() {
        return vec![say(format!("I cannot read it: {}", file.text()))];
    }
    match situation.of_tool("Edit").next() {
        None => {
            let count = unnumbered(&file.text()).join("\n").matches(old).count();
            if count == 0 {
                return vec![say(format!("`{path}` does not contain `{old}`. Nothing was changed."))];
            }
            vec![
                say(format!("`{path}` contains `{old}` {count} time{}.", if count == 1 { "" } else { "s" })),
                tool("Edit", json!({ "file_path": path, "old_string": old, "new_string": new, "replace_all": true })),
            ]
        }
        Some(step) if step.ok() => vec![say(format!("Done: replaced `{old}` with `{new}` in `{path}`."))],
        Some(step) => vec![say(format!("The edit did not work: {}", step.text()))],
    }
}

/// No file was named: finds the files, and says which.
fn everywhere(situation: &Situation, old: &str) -> Vec<Part> {
    let Some(hits) = situation.of_tool("Grep").next() else {
        let pattern: String =
            old.chars().flat_map(|c| if c.is_alphanumeric() || c == ' ' { vec![c] } else { vec!['\\', c] }).collect();
        return vec![
            say("No file was named; looking for it."),
            tool("Grep", json!({ "pattern": pattern, "output_mode": "files_with_matches" })),
        ];
    };
    let text = hits.text();
    let files: Vec<String> = text
        .lines()
        .map(|line| situation.short(line.trim()))
        .filter(|file| !file.is_empty() && !file.contains(' '))
        .take(20)
        .map(|file| format!("- `{file}`\n"))
        .collect();
    if files.is_empty() {
        return vec![say(format!("Nothing in this folder contains `{old}`. Nothing was changed."))];
    }
    vec![say(format!("`{old}` is in:\n\n{}\nName the file, and I will change it there.", files.concat()))]
}

pub(super) fn append(situation: &Situation, text: &str, path: &str) -> Vec<Part> {
    let Some(file) = situation.of_tool("Read").next() else {
        return vec![say(format!("Reading `{path}` first.")), read(path)];
    };
    match situation.of_tool("Write").next() {
        None => {
            let mut lines = if file.ok() { unnumbered(&file.text()) } else { Vec::new() };
            lines.push(text.to_owned());
            vec![tool("Write", json!({ "file_path": path, "content": with_newline(&lines.join("\n")) }))]
        }
        Some(step) if step.ok() => vec![say(format!("Added the line to the end of `{path}`."))],
        Some(step) => vec![say(format!("The write failed: {}", step.text()))],
    }
}

pub(super) fn delete(situation: &Situation, path: &str) -> Vec<Part> {
    match situation.of_tool("Bash").next() {
        None => {
            let quoted = path.replace('\'', r"'\''");
            vec![say(format!("Removing `{path}`.")), bash(&format!("rm -- '{quoted}'"), "Remove the file")]
        }
        Some(step) if step.ok() => vec![say(format!("Removed `{path}`."))],
        Some(step) => vec![say(format!("Could not remove it: {}", step.text()))],
    }
}

fn with_newline(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
