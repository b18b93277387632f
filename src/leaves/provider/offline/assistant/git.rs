//! Recipes that tell what git knows. Nothing here commits.

use super::{Recipe, Situation, bash, glob, s, say, tail, tell};
use crate::provider::offline::script::Part;

/// What is asked of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Past {
    Log,
    Last,
    Branch,
    /// What became of one file.
    File(String),
}

/// What git says of the past, or of where one is.
pub(super) fn past(situation: &Situation, what: &Past) -> Recipe {
    let file = match what {
        Past::File(path) if !path.contains('/') => {
            let [found] = situation.need("Looking for that file.", [glob(&format!("**/{path}"))])?;
            situation.paths_of(found).into_iter().find(|found| found.ends_with(path.as_str())).unwrap_or(path.clone())
        }
        Past::File(path) => path.clone(),
        _ => String::new(),
    };
    let log = "git log -n 10 --format='%h %ad %an: %s' --date=short";
    let (command, about, opening) = match what {
        Past::Log => (log.to_owned(), "Show the latest commits", "The latest commits:".to_owned()),
        Past::Last => ("git log -n 1 --stat --date=short".into(), "Show the last commit", "The last commit:".into()),
        Past::Branch => {
            ("git branch --list -vv".into(), "Show the branches", "The branches; `*` marks the current one:".into())
        }
        Past::File(_) => {
            let quoted = file.replace('\'', r"'\''");
            (format!("{log} -- '{quoted}'"), "Show the commits of the file", format!("The latest commits to `{file}`:"))
        }
    };
    let [told] = situation.need("Asking git.", [bash(&command, about)])?;
    tell(match told.text() {
        text if !told.ok() => format!("git could not tell:\n\n{}", tail(&text, 5)),
        text if text.trim().is_empty() || text.contains("no output") => {
            format!("git knows no commits{}.", if file.is_empty() { String::new() } else { format!(" to `{file}`") })
        }
        text => format!("{opening}\n\n{}", tail(&text, 20)),
    })
}

/// Shows what git knows of changes.
pub(super) fn changes(situation: &Situation) -> Recipe {
    let calls = [
        bash("git status --short --branch", "Show the working tree status"),
        bash("git diff --stat HEAD", "Show what changed"),
    ];
    let [status, diff] = situation.need("Asking git.", calls)?;
    let state = status.text();
    if !status.ok() {
        return tell(format!("git failed:\n\n{}", tail(&state, 5)));
    }
    let files = state.lines().filter(|line| !line.starts_with("##") && !line.trim().is_empty()).count();
    if files == 0 {
        let text = "Nothing has changed since the last commit. `show the last commits` tells what came before.";
        return tell(format!("{text}\n\n{}", tail(&state, 3)));
    }
    tell(format!("{files} file{} changed:\n\n{}\n\n{}", s(files), tail(&state, 30), tail(&diff.text(), 30)))
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
