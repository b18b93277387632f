//! Recipes that tell what git knows. Nothing here commits.

use super::{Situation, bash, say, tail};
use crate::provider::offline::script::Part;

/// What is asked of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    Log,
    Branch,
}

/// What git says of the past, or of where one is.
pub(super) fn past(situation: &Situation, what: Past) -> Vec<Part> {
    let (command, about) = match what {
        Past::Log => ("git log -n 10 --format='%h %ad %s' --date=short", "Show the latest commits"),
        Past::Branch => ("git branch --list -vv", "Show the branches"),
    };
    match situation.of_tool("Bash").next() {
        None => vec![say("Asking git."), bash(command, about)],
        Some(step) if !step.ok() => vec![say(format!("git could not tell:\n\n{}", tail(&step.text(), 5)))],
        Some(step) => vec![say(match what {
            Past::Log => format!("The latest commits:\n\n{}", tail(&step.text(), 10)),
            Past::Branch => format!("The branches; `*` marks the current one:\n\n{}", tail(&step.text(), 20)),
        })],
    }
}

/// A commit message for a diff. Nothing is committed.
pub(super) fn message(situation: &Situation) -> Vec<Part> {
    let given = situation.prompt.contains("\ndiff --git ") || situation.prompt.starts_with("diff --git ");
    let diff = match situation.of_tool("Bash").last() {
        _ if given => situation.prompt.clone(),
        None => return vec![say("Looking at the changes."), bash("git diff HEAD", "Show the changes")],
        Some(step) if !step.ok() => {
            return vec![say(format!("git could not show the changes:\n\n{}", tail(&step.text(), 5)))];
        }
        Some(step) => step.text(),
    };
    let files = changed(&diff);
    if files.is_empty() {
        return vec![say("There are no changes to write a message for: the diff is empty. Nothing was committed.")];
    }
    let all = |of: fn(&Changed) -> bool| files.iter().all(of);
    let verb = match () {
        () if all(|file| file.new) => "Add",
        () if all(|file| file.gone) => "Remove",
        () => "Update",
    };
    let what = match files.as_slice() {
        [one] => match one.within.as_slice() {
            [within] => format!("{within} in {}", one.path),
            _ => one.path.clone(),
        },
        [one, other] => format!("{} and {}", one.path, other.path),
        more => format!("{} files", more.len()),
    };
    let rows: Vec<String> = files
        .iter()
        .take(20)
        .map(|file| {
            let within = if file.within.is_empty() { String::new() } else { format!(": {}", file.within.join(", ")) };
            format!("- {} (+{} -{}){within}\n", file.path, file.added, file.removed)
        })
        .collect();
    vec![say(format!(
        "```text\n{verb} {what}\n\n{}```\n\nThe files and counts are from the diff; the reason for the change is yours to add. Nothing was committed.",
        rows.concat()
    ))]
}

/// One file of a diff.
struct Changed {
    path: String,
    added: usize,
    removed: usize,
    new: bool,
    gone: bool,
    /// Functions that hunks are in.
    within: Vec<String>,
}

fn changed(diff: &str) -> Vec<Changed> {
    let mut files: Vec<Changed> = Vec::new();
    for line in diff.lines() {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            let path = rest.rsplit_once(" b/").map_or(rest, |(_, path)| path).to_owned();
            files.push(Changed { path, added: 0, removed: 0, new: false, gone: false, within: Vec::new() });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if line.starts_with("new file") {
            file.new = true;
        } else if line.starts_with("deleted file") {
            file.gone = true;
        } else if let Some((_, around)) = line.strip_prefix("@@").and_then(|rest| rest.split_once("@@")) {
            let words: Vec<&str> = around.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let marks = ["fn", "def", "function", "func", "class", "struct", "impl"];
            let named = words.windows(2).find(|pair| marks.contains(&pair[0])).map(|pair| pair[1].to_owned());
            if let Some(name) = named.filter(|name| !name.is_empty() && !file.within.contains(name)) {
                file.within.push(name);
            }
        } else if line.starts_with('+') && !line.starts_with("+++") {
            file.added += 1;
        } else if line.starts_with('-') && !line.starts_with("---") {
            file.removed += 1;
        }
    }
    files
}
