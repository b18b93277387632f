//! Recipes that run a project's tests and repair a failing one by trying small changes, one at a time.

use serde_json::json;

use super::{Situation, Step, bash, listed, read, say, tail, tool, unnumbered};
use crate::provider::offline::script::Part;

/// Manifests and what they mean for testing, most telling first.
const COMMANDS: [(&str, &str); 8] = [
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("go.mod", "go test ./..."),
    ("pyproject.toml", "python3 -m pytest -q"),
    ("setup.py", "python3 -m pytest -q"),
    ("pytest.ini", "python3 -m pytest -q"),
    ("Makefile", "make test"),
    ("test.sh", "sh test.sh"),
];

/// Most changes that are tried.
const TRIES: usize = 8;

/// Finds the test command and runs it; then the caller continues with the result.
fn tested<'s, 'a>(situation: &'s Situation<'a>) -> Result<&'s Step<'a>, Vec<Part>> {
    let Some(found) = situation.of_tool("LS").next() else {
        return Err(vec![say("Looking for how this project runs its tests."), tool("LS", json!({ "path": "." }))]);
    };
    let names = listed(&found.text());
    let command =
        COMMANDS.iter().find(|(name, _)| names.iter().any(|listed| listed == name)).map(|(_, command)| *command);
    let Some(command) = command else {
        return Err(vec![say(
            "I found no manifest that says how to test this project. Give me the command: ``run `<command>` ``.",
        )]);
    };
    situation.of_tool("Bash").next().ok_or_else(|| {
        vec![say(format!("This project runs its tests with `{command}`.")), bash(command, "Run the tests")]
    })
}

pub(super) fn test(situation: &Situation) -> Vec<Part> {
    match tested(situation) {
        Err(parts) => parts,
        Ok(ran) if ran.ok() => vec![say(format!("The tests pass.\n\n{}", tail(&ran.text(), 6)))],
        Ok(ran) => {
            vec![say(format!(
                "The tests fail.\n\n{}\n\nSay `fix the failing test`, and I will try.",
                tail(&ran.text(), 20)
            ))]
        }
    }
}

pub(super) fn fix(situation: &Situation) -> Vec<Part> {
    let first = match tested(situation) {
        Err(parts) => return parts,
        Ok(ran) => ran,
    };
    if first.ok() {
        return vec![say(format!("There is nothing to fix: the tests pass.\n\n{}", tail(&first.text(), 6)))];
    }
    let output = first.text();
    let Some(read_file) = situation.of_tool("Read").next() else {
        let Some((path, line)) = place(&output) else {
            return vec![say(format!(
                "The tests fail, but their output names no source file I could read:\n\n{}",
                tail(&output, 15)
            ))];
        };
        return vec![say(format!("A test fails at `{path}:{line}`. Reading the code it tests.")), read(&path)];
    };
    if !read_file.ok() {
        return vec![say(format!("I cannot read it: {}", read_file.text()))];
    }
    let (path, lines) = (read_file.input("file_path").to_owned(), unnumbered(&read_file.text()));
    let changes = changes(&lines, &output);
    let edits: Vec<&Step> = situation.of_tool("Edit").collect();
    let runs = situation.of_tool("Bash").count();
    // Each try is an edit and a run; a second edit reverts a failed one before the next.
    match (edits.len(), situation.steps.last().map(|step| step.call.name.as_str())) {
        (0, _) => attempt(&path, &changes, 0, "One small edit should fix it"),
        (_, Some("Edit")) => {
            let last = edits[edits.len() - 1];
            if !last.ok() {
                return vec![say(format!("The edit did not work: {}", last.text()))];
            }
            if edits.len() % 2 == 1 {
                vec![bash(first.input("command"), "Run the tests again")]
            } else {
                attempt(&path, &changes, edits.len() / 2, "The next candidate")
            }
        }
        (_, Some("Bash")) => {
            let last = situation.steps.last().filter(|step| step.ok());
            if let Some(ran) = last {
                let change = &changes[(edits.len() - 1) / 2];
                return vec![say(format!(
                    "The tests pass now. The bug was in `{path}:{}`:\n\n```diff\n-{}\n+{}\n```\n\n{}",
                    change.line + 1,
                    change.old.trim_start(),
                    change.new.trim_start(),
                    tail(&ran.text(), 4)
                ))];
            }
            match changes.get((edits.len() - 1) / 2) {
                Some(change) if runs <= TRIES => {
                    vec![say("That was not it. Undoing it."), edit(&path, &change.new_context, &change.old_context)]
                }
                _ => vec![say(
                    "None of my small edits fixed it. The last one is still in place; `/undo` reverts it. This one needs a real model.",
                )],
            }
        }
        _ => vec![say("I lost track of this fix. Ask again, and I will start over.")],
    }
}

fn attempt(path: &str, changes: &[Change], at: usize, opening: &str) -> Vec<Part> {
    match changes.get(at) {
        Some(change) if at < TRIES => vec![
            say(format!("{opening}, in line {}.", change.line + 1)),
            edit(path, &change.old_context, &change.new_context),
        ],
        _ => vec![say("None of the small changes I know fixed it, so I undid them all. This one needs a real model.")],
    }
}

fn edit(path: &str, old: &str, new: &str) -> Part {
    tool("Edit", json!({ "file_path": path, "old_string": old, "new_string": new }))
}

/// The first `path:line` in an output that looks like source code.
fn place(output: &str) -> Option<(String, u32)> {
    output.split(|c: char| c.is_whitespace() || "()'\",".contains(c)).find_map(|word| {
        let mut parts = word.split(':');
        let (path, line) = (parts.next()?, parts.next()?.parse().ok()?);
        let source = [".rs", ".py", ".js", ".ts", ".go", ".c", ".rb"].iter().any(|extension| path.ends_with(extension));
        source.then(|| (path.to_owned(), line))
    })
}

/// One line, and what it could be instead.
struct Change {
    line: usize,
    old: String,
    new: String,
    /// The line with its neighbours, so that the edit is unique.
    old_context: String,
    new_context: String,
}

/// Small slips and what was meant, most common first.
const SLIPS: [(&str, &str); 16] = [
    (" - 1", ""),
    (" + 1", ""),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" - ", " + "),
    (" + ", " - "),
    (" && ", " || "),
    (" || ", " && "),
    (" == ", " != "),
    (" != ", " == "),
    ("..=", ".."),
    (" * ", " / "),
    ("true", "false"),
    ("false", "true"),
];

/// Candidates in the code before its tests; functions that the output names come first.
fn changes(lines: &[String], output: &str) -> Vec<Change> {
    let end = lines.iter().position(|line| line.contains("#[cfg(test)]")).unwrap_or(lines.len());
    // Passing tests are named in the output, too.
    let telling = |line: &&str| {
        ["FAILED", "panicked", "Error", "error"].iter().any(|word| line.contains(word)) || line.starts_with("----")
    };
    let failing: Vec<&str> = output
        .lines()
        .filter(telling)
        .flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .filter(|word| word.len() > 3)
        .collect();
    let tests = lines[end..].join("\n");
    let mut found = Vec::new();
    let mut named = false;
    for (at, line) in lines[..end].iter().enumerate() {
        if let Some(rest) = line.trim_start().trim_start_matches("pub ").strip_prefix("fn ") {
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            named = failing.contains(&name) || called(&tests, &failing, name);
        }
        let code = line.trim_start();
        if code.starts_with("//")
            || code.starts_with('#')
            || code.starts_with("fn ")
            || code.starts_with("pub fn ")
            || code.starts_with("use ")
        {
            continue;
        }
        for (rank, (slip, meant)) in SLIPS.iter().enumerate() {
            if let Some(column) = line.find(slip) {
                let new = format!("{}{meant}{}", &line[..column], &line[column + slip.len()..]);
                let (from, to) = (at.saturating_sub(1), (at + 2).min(lines.len()));
                let old_context = lines[from..to].join("\n");
                let mut changed = lines[from..to].to_vec();
                changed[at - from].clone_from(&new);
                let change = Change { line: at, old: line.clone(), new, old_context, new_context: changed.join("\n") };
                found.push((!named, rank, at, change));
            }
        }
    }
    found.sort_by_key(|(other, rank, at, _)| (*other, *rank, *at));
    found.into_iter().map(|(_, _, _, change)| change).collect()
}

/// Whether a failing test's body calls the function.
fn called(tests: &str, failing: &[&str], name: &str) -> bool {
    let mut inside = false;
    for line in tests.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("fn ") {
            let test = rest.split('(').next().unwrap_or_default();
            inside = failing.contains(&test);
        } else if inside && line.contains(&format!("{name}(")) {
            return true;
        }
    }
    false
}
