//! Tool calls of other programs, as ours would have been made.

use serde_json::{Map, Value};

use crate::message::FileDiff;

/// Their tools that are ours under another name.
const NAMES: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("shell", "Bash"),
    ("shell_command", "Bash"),
    ("local_shell", "Bash"),
    ("exec_command", "Bash"),
    ("container.exec", "Bash"),
    ("read", "Read"),
    ("read_file", "Read"),
    ("view_image", "Read"),
    ("write", "Write"),
    ("edit", "Edit"),
    ("apply_patch", "Edit"),
    ("patch", "Edit"),
    ("grep", "Grep"),
    ("grep_files", "Grep"),
    ("glob", "Glob"),
    ("find", "Glob"),
    ("ls", "LS"),
    ("list", "LS"),
    ("list_dir", "LS"),
    ("webfetch", "WebFetch"),
    ("websearch", "WebSearch"),
    ("web_search", "WebSearch"),
    ("todowrite", "TodoWrite"),
    ("task", "Task"),
    ("Agent", "Task"),
    ("skill", "Skill"),
];

/// Arguments that are ours under another name, and the only tool where that is so.
const FIELDS: &[(&str, &str, Option<&str>)] = &[
    ("cmd", "command", None),
    ("filePath", "file_path", None),
    ("oldString", "old_string", None),
    ("newString", "new_string", None),
    ("replaceAll", "replace_all", None),
    ("path", "file_path", Some("Read")),
    ("path", "file_path", Some("Write")),
    ("path", "file_path", Some("Edit")),
    ("subagent", "subagent_type", Some("Task")),
];

/// What says in one line what a call does, the first that there is.
const TITLES: &[&str] = &["command", "file_path", "pattern", "query", "url", "description", "path", "name"];

pub(super) fn name(theirs: &str) -> &str {
    NAMES.iter().find(|(name, _)| *name == theirs).map_or(theirs, |(_, ours)| ours)
}

/// The arguments of a call of our tool.
pub(super) fn input(tool: &str, theirs: Value) -> Value {
    let Value::Object(theirs) = theirs else { return theirs };
    let field = |(name, value): (String, Value)| {
        let ours = FIELDS.iter().find(|(field, _, of)| *field == name && of.is_none_or(|of| of == tool));
        let value = if matches!(name.as_str(), "command" | "cmd") { line_of(value) } else { value };
        (ours.map_or(name, |(_, ours, _)| (*ours).to_owned()), value)
    };
    Value::Object(theirs.into_iter().map(field).collect::<Map<String, Value>>())
}

/// A command line that may have come in words: `["bash", "-lc", "ls"]`.
fn line_of(command: Value) -> Value {
    let Value::Array(words) = &command else { return command };
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    Value::String(match words.as_slice() {
        [shell, "-c" | "-lc", line] if shell.ends_with("sh") => (*line).to_owned(),
        words => words.join(" "),
    })
}

pub(super) fn title(input: &Value) -> Option<String> {
    let text = TITLES.iter().find_map(|field| input.get(field)?.as_str())?;
    Some(text.lines().next().unwrap_or_default().chars().take(120).collect())
}

/// A patch of Codex as what is drawn of it: the name of its first file, and the patch as it was.
pub(super) fn patch(text: &str) -> Option<FileDiff> {
    let (how, path) = text.lines().find_map(|line| {
        line.strip_prefix("*** ")?.split_once(" File: ").filter(|(how, _)| matches!(*how, "Add" | "Update" | "Delete"))
    })?;
    let body: Vec<&str> = text.lines().filter(|line| !line.starts_with("*** ")).collect();
    let count = |sign: char| body.iter().filter(|line| line.starts_with(sign)).count() as u32;
    Some(FileDiff {
        path: path.trim().to_owned(),
        added: count('+'),
        removed: count('-'),
        created: how == "Add",
        unified: body.join("\n"),
    })
}
