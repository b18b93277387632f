//! Recipes that run a project's tests and repair a failing one by trying small changes, one at a time.

use serde_json::json;

use super::suspects::{self, Change, Place};
use super::{Situation, Step, bash, listed, read, say, tail, tool, unnumbered};
use crate::provider::offline::script::Part;

/// Manifests and what they mean for testing, most telling first.
const COMMANDS: [(&str, &str); 8] = [
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("go.mod", "go test ./..."),
    ("pyproject.toml", PYTEST),
    ("setup.py", PYTEST),
    ("pytest.ini", PYTEST),
    ("Makefile", "make test"),
    ("test.sh", "sh test.sh"),
];

const PYTEST: &str = "python3 -m pytest -q";
const UNITTEST: &str = "python3 -m unittest discover";
const NODE: &str = "node --test";

/// Files of tests where no manifest says how to run them.
const TEST_FILES: &str = "**/{test_*.py,*_test.py,*.test.js,*.test.mjs,test.js,*_test.go}";

/// Calls every test function of Python files by itself, where the usual runner is missing.
const CALLED: &str = r#"python3 -c "import sys, runpy; sys.path.insert(0, '.'); [f() for p in sys.argv[1:] for n, f in list(runpy.run_path(p).items()) if n.startswith('test') and callable(f)]""#;

/// What an output says of a runner that found nothing to run, and what to try instead.
fn instead(output: &str, files: &[String]) -> Option<String> {
    let python: Vec<&str> = files.iter().map(String::as_str).filter(|file| file.ends_with(".py")).collect();
    match () {
        () if output.contains("No module named pytest") => Some(UNITTEST.into()),
        () if output.contains("Missing script") || output.contains("no test specified") => Some(NODE.into()),
        () if (output.contains("Ran 0 tests") || output.contains("NO TESTS RAN")) && !python.is_empty() => {
            Some(format!("{CALLED} {}", python.join(" ")))
        }
        () => None,
    }
}

/// Most changes that are tried.
const TRIES: usize = 10;

/// Finds the test command and runs it; then the caller continues with the result.
fn tested<'s, 'a>(situation: &'s Situation<'a>) -> Result<&'s Step<'a>, Vec<Part>> {
    let Some(found) = situation.of_tool("LS").next() else {
        return Err(vec![
            say("Looking for how this project runs its tests."),
            tool("LS", json!({ "path": "." })),
            tool("Glob", json!({ "pattern": TEST_FILES })),
        ]);
    };
    let names = listed(&found.text());
    let files: Vec<String> = situation
        .of_tool("Glob")
        .filter(|step| step.ok())
        .flat_map(|step| step.text().lines().map(|line| situation.short(line.trim()).to_owned()).collect::<Vec<_>>())
        .filter(|line| line.contains('.') && !line.contains(' '))
        .collect();
    let known = COMMANDS.iter().find(|(name, _)| names.iter().any(|listed| listed == name));
    let of_files = || {
        let has = |end: &str| files.iter().any(|file| file.ends_with(end));
        let kinds = [(".py", PYTEST), (".js", NODE), (".mjs", NODE), (".go", "go test ./...")];
        kinds.iter().find(|(end, _)| has(end)).map(|(_, command)| *command)
    };
    let Some(mut command) = known.map(|(_, command)| *command).or_else(of_files).map(str::to_owned) else {
        return Err(vec![say(
            "I found no manifest and no test files that say how to test this project. Give me the command: ``run `<command>` ``.",
        )]);
    };
    let mut opening = format!("This project runs its tests with `{command}`.");
    for ran in situation.of_tool("Bash") {
        match instead(&ran.text(), &files) {
            Some(other) if other != ran.input("command") => {
                opening = "That runner has nothing to run here. Trying another.".into();
                command = other;
            }
            _ => return Ok(ran),
        }
    }
    Err(vec![say(opening), bash(&command, "Run the tests")])
}

/// Whether an output says that tests ran.
fn empty(output: &str) -> bool {
    output.contains("Ran 0 tests") || output.contains("no tests ran")
}

pub(super) fn test(situation: &Situation) -> Vec<Part> {
    match tested(situation) {
        Err(parts) => parts,
        Ok(ran) if ran.ok() && empty(&ran.text()) => {
            vec![say(format!("The command ran no tests.\n\n{}", tail(&ran.text(), 6)))]
        }
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
    let (path, lines, called) = match source(situation, &output) {
        Ok(found) => found,
        Err(parts) => return parts,
    };
    let changes = suspects::changes(&path, &lines, &called, &output);
    let edits: Vec<&Step> = situation.of_tool("Edit").collect();
    // Each try is an edit and a run; a second edit reverts a failed one before the next.
    match (edits.len(), situation.steps.last().map(|step| step.call.name.as_str())) {
        (0, _) => attempt(&path, &changes, 0, "Trying a small edit"),
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
            let Some(change) = changes.get((edits.len() - 1) / 2) else {
                return vec![say("I lost track of this fix. Ask again, and I will start over.")];
            };
            match situation.steps.last().filter(|step| step.ok()) {
                Some(ran) => vec![say(format!(
                    "The tests pass now. This was the change, in `{}:{}`:\n\n```diff\n-{}\n+{}\n```\n\n{}",
                    situation.short(&path),
                    change.line + 1,
                    change.old.trim_start(),
                    change.new.trim_start(),
                    tail(&ran.text(), 4)
                ))],
                None => {
                    vec![say("That was not it. Undoing it."), edit(&path, &change.new_context, &change.old_context)]
                }
            }
        }
        _ => vec![say("I lost track of this fix. Ask again, and I will start over.")],
    }
}

/// The file that the failure is in, with what the failing test calls of it. Where the output names only the test, its
/// calls lead to the source.
fn source(situation: &Situation, output: &str) -> Result<(String, Vec<String>, Vec<String>), Vec<Part>> {
    let reads: Vec<&Step> = situation.of_tool("Read").collect();
    if let Some(failed) = reads.iter().find(|step| !step.ok()) {
        return Err(vec![say(format!("I cannot read it: {}", failed.text()))]);
    }
    let contents = |step: &Step| (step.input("file_path").to_owned(), unnumbered(&step.text()));
    let places = suspects::places(output, &situation.cwd);
    let Some(place) = places.iter().find(|place| !place.is_test()).or(places.first()) else {
        return Err(vec![say(format!(
            "The tests fail, but their output names no source file I could read:\n\n{}",
            tail(output, 15)
        ))]);
    };
    let Place { path, line } = place;
    let Some(read_first) = reads.first() else {
        return Err(vec![say(format!("A test fails at `{}:{line}`. Reading it.", situation.short(path))), read(path)]);
    };
    let (path, lines) = contents(read_first);
    if !place.is_test() {
        return Ok((path, lines, Vec::new()));
    }
    let called = suspects::called_near(&lines, *line);
    let Some(found) = situation.of_tool("Grep").next() else {
        if called.is_empty() {
            return Err(vec![say(format!(
                "The test at `{}:{line}` calls nothing I could look up:\n\n{}",
                situation.short(&path),
                tail(output, 15)
            ))]);
        }
        let pattern = format!(
            r"\b((fn|def|function|func|class|struct|const|let)\s+({0})\b|({0})\s*[:=]\s*(async\s*)?(function|\())",
            called.join("|")
        );
        let input = json!({ "pattern": pattern, "output_mode": "content", "-n": true, "head_limit": 50 });
        return Err(vec![say(format!("It calls `{}`. Looking for it.", called.join("`, `"))), tool("Grep", input)]);
    };
    let text = found.text();
    let mut hits: Vec<(usize, &str)> = text
        .lines()
        .filter_map(|line| {
            let (file, rest) = line.split_once(':')?;
            let declared = called.iter().position(|name| rest.contains(name.as_str()))?;
            (!suspects::is_test(file)).then_some((declared, file))
        })
        .collect();
    hits.sort_by_key(|(rank, _)| *rank);
    let Some((_, file)) = hits.first() else {
        return Err(vec![say(format!(
            "The test calls `{}`, but nothing outside the tests declares it:\n\n{}",
            called.join("`, `"),
            tail(output, 15)
        ))]);
    };
    match reads.get(1) {
        None => Err(vec![read(file)]),
        Some(step) => {
            let (path, lines) = contents(step);
            Ok((path, lines, called))
        }
    }
}

fn attempt(path: &str, changes: &[Change], at: usize, opening: &str) -> Vec<Part> {
    match changes.get(at) {
        Some(change) if at < TRIES => vec![
            say(format!("{opening}, in line {}.", change.line + 1)),
            edit(path, &change.old_context, &change.new_context),
        ],
        _ if at == 0 => vec![say(format!(
            "I read `{path}`, but none of the small slips I know is in the code the failure points to. Nothing was changed. This one needs a real model."
        ))],
        _ => vec![say(format!(
            "I tried {at} small change{}; none of them fixed it, and each was undone. This one needs a real model.",
            if at == 1 { "" } else { "s" }
        ))],
    }
}

fn edit(path: &str, old: &str, new: &str) -> Part {
    tool("Edit", json!({ "file_path": path, "old_string": old, "new_string": new }))
}
