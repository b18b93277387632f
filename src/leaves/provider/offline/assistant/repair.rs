//! Recipes that run a project's tests and repair a failing one by trying small changes, one at a time.

use super::slips::{self, Failure, Source};
use super::{
    Recipe, Situation, Step, bash, code, glob, listed, look, ls, once, read, say, suspects, tail, tell, tool,
    unnumbered,
};
use crate::provider::offline::script::Part;
use serde_json::json;

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
        () if output.contains("No rule to make target 'test'") => Some("make".into()),
        () if nothing_ran(output) && !python.is_empty() => Some(format!("{CALLED} {}", python.join(" "))),
        () => None,
    }
}

/// Whether an output says that a runner ran, and no test.
fn nothing_ran(output: &str) -> bool {
    ["Ran 0 tests", "NO TESTS RAN", "no tests ran", "# tests 0\n"].iter().any(|mark| output.contains(mark))
}

/// Whether the runner itself is not there, or could not begin.
fn not_there(step: &Step) -> bool {
    !step.ok() && !began(step.input("command"), &step.text())
}

/// What runners say once they got as far as the code of a project: `cargo` and `go` in their own words, since their
/// installers fail in others; any other one in one of the usual ways.
const SIGNS: [(&str, &[&str]); 3] = [
    ("cargo ", &["test result: FAILED", "panicked at", "could not compile", "error[", " --> "]),
    ("go ", &["--- FAIL", "FAIL\t", "[build failed]", "[setup failed]", "panic:"]),
    ("", &["FAIL", "fail", "panicked", "error[", "-->", "Error", "ssert", "xpected", "not ok"]),
];

/// Whether a run that failed got as far as the project: it speaks of a test, or of a place in a file.
fn began(command: &str, output: &str) -> bool {
    if output.contains("command not found") || output.contains("[Exit code 127]") {
        return false;
    }
    let place = |(at, _): (usize, &str)| output[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let signs = SIGNS.iter().find(|(runner, _)| command.starts_with(runner));
    signs.is_some_and(|(runner, signs)| {
        signs.iter().any(|sign| output.contains(sign)) || runner.is_empty() && output.match_indices(':').any(place)
    })
}

/// Most changes that are tried.
const TRIES: usize = 20;

/// Finds the test command and runs it.
fn tested<'s, 'a>(situation: &'s Situation<'a>) -> Result<&'s Step<'a>, Vec<Part>> {
    let [top, files] = situation.need("Looking for how this project runs its tests.", [ls(), glob(TEST_FILES)])?;
    let (names, files) = (listed(&top.text()), situation.paths_of(files));
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
    loop {
        situation.need(&opening, [bash(&command, "Run the tests")])?;
        // The results of the calls live as long as the request.
        let Some(ran) = situation.of_tool("Bash").find(|step| step.input("command") == command) else {
            return Err(Vec::new());
        };
        match instead(&ran.text(), &files) {
            Some(other) if other != command => {
                opening = "That runner has nothing to run here. Trying another.".into();
                command = other;
            }
            _ => return Ok(ran),
        }
    }
}

/// One sentence on what the project's tests say after a change.
pub(super) fn verdict(situation: &Situation) -> Result<String, Vec<Part>> {
    let ran = match tested(situation) {
        Ok(ran) => ran,
        Err(parts) if parts.iter().any(|part| matches!(part, Part::Tool { .. })) => return Err(parts),
        Err(_) => return Ok("I know no command that tests this project, so nothing was run.".into()),
    };
    let command = ran.input("command");
    let command = if command.starts_with(CALLED) { "the test functions" } else { command };
    Ok(match ran.ok() {
        true if nothing_ran(&ran.text()) => format!("`{command}` found no tests to run, so this is not verified."),
        true => format!("The tests pass (`{command}`)."),
        false if not_there(ran) => format!("I could not verify it: `{command}` does not run on this machine."),
        false => format!("`{command}` fails now:\n\n{}\n\n`/undo` reverts the change.", tail(&ran.text(), 15)),
    })
}

/// Runs one command.
pub(super) fn run(situation: &Situation, command: &str) -> Recipe {
    let [ran] = situation.need(&format!("Running `{command}`."), [bash(command, "Run what was asked for")])?;
    let verdict = if ran.ok() { "It ran." } else { "It failed." };
    tell(format!("{verdict} The end of its output:\n\n{}", tail(&ran.text(), 15)))
}

pub(super) fn test(situation: &Situation) -> Recipe {
    let ran = tested(situation)?;
    let text = ran.text();
    let shown = summary(&text);
    tell(match ran.ok() {
        true if nothing_ran(&text) => format!("The command ran no tests.\n\n{shown}"),
        true if worried(&situation.prompt) => format!(
            "The tests pass. If there is a bug, no test shows it, and judging code takes a real model.\n\n{shown}"
        ),
        true => format!("The tests pass.\n\n{shown}"),
        false if not_there(ran) => format!("`{}` does not run on this machine:\n\n{shown}", ran.input("command")),
        false => {
            let place = suspects::places(&text, &situation.cwd).into_iter().next();
            let place = place.map_or(String::new(), |place| {
                format!(" The first place it names is `{}:{}`.", place.path, place.line)
            });
            let pair = suspects::expected(&text).into_iter().next();
            let pair = pair.map_or(String::new(), |(one, other)| format!(" It compared `{one}` with `{other}`."));
            format!(
                "The tests fail.{place}{pair}\n\n{shown}\n\nSay `fix the failing test`, and I will try small changes."
            )
        }
    })
}

/// Whether a prompt asks for more than a run of the tests.
fn worried(prompt: &str) -> bool {
    let lower = prompt.to_lowercase();
    ["bug", "mistake", "wrong", "fehler"].iter().any(|word| lower.contains(word))
}

/// The lines of a test run that say how it went.
fn summary(text: &str) -> String {
    let results: Vec<&str> = text
        .lines()
        .filter(|line| {
            let ran = !line.contains(" 0 passed; 0 failed");
            line.starts_with("test result:") && ran
                || line.starts_with("# pass")
                || line.starts_with("# fail")
                || line.starts_with("ok ") && line.contains('\t')
        })
        .collect();
    match text.contains("FAILED") || text.contains("not ok") || results.is_empty() {
        true => tail(text, 20),
        false => format!("```text\n{}\n```", results.into_iter().map(counted).collect::<Vec<_>>().join("\n")),
    }
}

/// A line of results without what it counted none of: it fits a terminal then.
fn counted(line: &str) -> String {
    let counts = |part: &&str| !part.starts_with("0 ") || part.ends_with("failed");
    line.split("; ").filter(counts).collect::<Vec<_>>().join("; ")
}

pub(super) fn fix(situation: &Situation, named: &[String], in_tests: bool) -> Recipe {
    let first = tested(situation)?;
    if first.ok() {
        let text = "The tests pass, so nothing here tells me what to fix. A test that fails is what I work from: `add a test for <name>` starts one.";
        return tell(format!("{text}\n\n{}", summary(&first.text())));
    }
    let output = first.text().replace(['\u{2018}', '\u{2019}'], "'");
    if not_there(first) {
        let text = format!("I cannot check a fix: `{}` does not run on this machine.", first.input("command"));
        return tell(format!("{text}\n\n{}", tail(&output, 5)));
    }
    let (sources, called, wanted) = sources(situation, &output, named, in_tests)?;
    let failure = Failure { output: &output, called: &called, wanted: wanted.as_deref(), in_tests };
    let changes = slips::changes(&sources, &failure);
    let files: Vec<String> = sources.iter().map(|source| format!("`{}`", source.path)).collect();
    // Each try is an edit and a run; the edit that reverts a failed one comes with the next.
    let runs: Vec<&Step> =
        situation.of_tool("Bash").filter(|step| step.input("command") == first.input("command")).collect();
    let tries = runs.len() - 1;
    let edits: Vec<&Step> = situation.of_tool("Edit").collect();
    if let Some(failed) = edits.iter().find(|step| !step.ok()) {
        return tell(format!("An edit did not work, so I stopped: {}", failed.text()));
    }
    let last = tries.checked_sub(1).and_then(|at| changes.get(at));
    if let (Some(ran), Some(change)) = (runs.last().filter(|ran| ran.ok()), last) {
        let diff = |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
        return tell(format!(
            "The tests pass now. This was the change, in `{}:{}`:\n\n```diff\n{}{}```\n\n{}",
            situation.short(&change.path),
            change.line + 1,
            diff('-', &change.old),
            diff('+', &change.new),
            summary(&ran.text())
        ));
    }
    let undo = last
        .filter(|_| edits.len() < 2 * tries)
        .map(|change| edit(&change.path, &change.new_context, &change.old_context));
    let Some(change) = changes.get(tries).filter(|_| tries < TRIES) else {
        if let Some(undo) = undo {
            return Err(vec![say("That was not it either. Undoing it."), undo]);
        }
        let end = tail(&output, 12);
        return tell(match tries {
            0 => format!(
                "I read {}, but none of the small slips I know is in the code the failure points to. Nothing was changed. This one needs a real model.\n\n{end}",
                files.join(", ")
            ),
            _ => format!(
                "I tried {tries} small change{} in {}; none of them made the tests pass, and each was undone. This one needs a real model.\n\n{end}",
                super::s(tries),
                files.join(", ")
            ),
        });
    };
    let opening = if tries == 0 { "Trying a small edit" } else { "That was not it. Undoing it and trying the next" };
    let mut parts = vec![say(format!("{opening}, in `{}:{}`.", situation.short(&change.path), change.line + 1))];
    parts.extend(undo);
    parts.push(edit(&change.path, &change.old_context, &change.new_context));
    parts.push(bash(first.input("command"), "Run the tests again"));
    Err(parts)
}

/// The files that may be wrong, what the failing test calls of them, and what it wants.
type Suspects = (Vec<Source>, Vec<String>, Option<String>);

/// Finds the files that a failure, the prompt and the failing test point to.
fn sources(situation: &Situation, output: &str, named: &[String], in_tests: bool) -> Result<Suspects, Vec<Part>> {
    let ends: Vec<&str> = code::SOURCES.iter().map(|end| end.trim_start_matches('.')).collect();
    let [all] = situation.need("Looking at the code behind it.", [glob(&format!("**/*.{{{}}}", ends.join(",")))])?;
    let all = situation.paths_of(all);
    let places = suspects::places(output, &situation.cwd);
    // The test that fails; where the output names none, files of tests that it mentions, or all there are.
    let mentioned = |file: &&String| output.contains(file.rsplit('/').next().unwrap_or(file));
    let mut tests: Vec<String> =
        places.iter().filter(|place| code::is_test(&place.path)).map(|place| place.path.clone()).collect();
    tests.extend(all.iter().filter(|file| code::is_test(file)).filter(mentioned).cloned());
    tests.dedup();
    if tests.is_empty() {
        tests = all.iter().filter(|file| code::is_test(file)).take(2).cloned().collect();
    }
    tests.truncate(2);
    let known = |path: &String| Source { path: path.clone(), lines: Vec::new() };
    let mut tests: Vec<Source> = tests.iter().map(known).collect();
    for test in &mut tests {
        let [step] = situation.need("", [read(&test.path)])?;
        test.lines = if step.ok() { unnumbered(&step.text()) } else { Vec::new() };
    }
    let (mut called, mut wanted) = (Vec::new(), None);
    called.extend(named.iter().filter(|name| !name.contains(['.', '/'])).cloned());
    for test in &tests {
        let lines: Vec<usize> = places.iter().filter(|place| place.path == test.path).map(|place| place.line).collect();
        let literal = |line: usize| test.lines.get(line.checked_sub(1)?).and_then(|line| literal(line));
        wanted = wanted.or_else(|| lines.iter().rev().find_map(|line| literal(*line)));
        for line in lines.iter().take(3) {
            called.extend(suspects::called_near(&test.lines, *line));
        }
        if lines.is_empty() {
            called.extend(code::calls(&test.lines));
        }
    }
    let mut called = once(called);
    called.truncate(8);
    if in_tests {
        return Ok((tests, called, wanted));
    }
    let hits = if called.is_empty() { Vec::new() } else { look::mentions(situation, &called)? };
    let declares = |file: &String| {
        hits.iter().any(|hit| {
            hit.file == *file
                && code::declared(&hit.code).is_some_and(|(_, name)| called.iter().any(|known| known == name))
        })
    };
    let score = |file: &&String| {
        let name = file.rsplit('/').next().unwrap_or(file);
        let stem = name.split('.').next().unwrap_or(name);
        8 * i32::from(named.iter().any(|named| file.ends_with(named.as_str())))
            + 6 * i32::from(places.iter().any(|place| place.path == **file))
            + 5 * i32::from(declares(file))
            + 3 * i32::from(tests.iter().any(|test| {
                test.lines.iter().any(|line| code::brings(line) && code::words(line).any(|word| word == stem))
            }))
            + 2 * i32::from(output.contains(name))
    };
    let code = |file: &&String| !code::is_test(file) && !file.ends_with(".h");
    let mut ranked: Vec<&String> = all.iter().filter(code).filter(|file| score(file) > 0).collect();
    ranked.sort_by_key(|file| -score(file));
    if ranked.is_empty() {
        ranked = all.iter().filter(code).take(3).collect();
    }
    // A test may be what does not compile.
    let broken =
        places.first().filter(|place| code::is_test(&place.path) && output.contains("error[")).map(|place| &place.path);
    ranked.extend(broken);
    let ranked: Vec<&String> = ranked.into_iter().take(4).collect();
    let opening = ranked.first().map_or(String::new(), |file| format!("The failure points to `{file}`."));
    let found = situation.need_all(&opening, ranked.iter().map(|file| read(file)).collect())?;
    let found = found.iter().zip(&ranked).filter(|(step, _)| step.ok());
    let found: Vec<Source> =
        found.map(|(step, path)| Source { path: (*path).clone(), lines: unnumbered(&step.text()) }).collect();
    if found.is_empty() {
        return Err(vec![say(format!(
            "The tests fail, but I found no source file to work on:\n\n{}",
            tail(output, 15)
        ))]);
    }
    Ok((found, called, wanted))
}

/// The value that an assertion compares with: what comes last in it.
fn literal(line: &str) -> Option<String> {
    let inner = line.trim().trim_end_matches(';').strip_suffix(')').unwrap_or(line.trim());
    let (_, last) = inner.rsplit_once(", ").or_else(|| inner.rsplit_once("== "))?;
    // A text may have the comma in it.
    let quote = last.chars().last().filter(|c| ['"', '\''].contains(c) && last.matches(*c).count() == 1);
    let last = quote.and_then(|quote| Some(&inner[inner[..inner.len() - 1].rfind(quote)?..])).unwrap_or(last);
    let value = last.starts_with(['"', '\'', '[', '{'])
        || last.parse::<f64>().is_ok()
        || ["None", "null", "True", "False", "true", "false"].contains(&last);
    value.then(|| last.to_owned())
}

fn edit(path: &str, old: &str, new: &str) -> Part {
    tool("Edit", json!({ "file_path": path, "old_string": old, "new_string": new }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_fit_a_terminal() {
        for (line, want) in [
            (
                "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                "test result: ok. 2 passed; 0 failed; finished in 0.00s",
            ),
            (
                "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 10 filtered out; finished in 0.10s",
                "test result: ok. 1 passed; 0 failed; 1 ignored; 10 filtered out; finished in 0.10s",
            ),
            ("# pass 3", "# pass 3"),
        ] {
            assert_eq!(summary(&format!("{line}\n")), format!("```text\n{want}\n```"));
        }
    }

    #[test]
    fn a_runner_that_cannot_begin_is_no_failing_test() {
        let backtrace = "error: rustup could not choose a version of cargo to run\nStack backtrace:\n   0: <unknown>\n  \
                         12: __libc_start_main_impl\n             at ./csu/../csu/libc-start.c:360:3";
        for (command, output, want) in [
            ("cargo test", backtrace, false),
            ("cargo test", "error: failed to download `serde v1.0.0`", false),
            ("python3 -m pytest -q", "bash: line 1: pytest: command not found\n[Exit code 127]", false),
            ("cargo test", "error: could not find `Cargo.toml` in `/p` or any parent directory", false),
            ("cargo test", "test result: FAILED. 1 passed; 1 failed", true),
            ("cargo test", "error[E0425]: cannot find value `b`\n --> src/lib.rs:3:5", true),
            ("make test", "a.c:3:5: error: expected ';'", true),
            ("go test ./...", "# p\n./a.go:3:5: undefined: b\nFAIL\tp [build failed]", true),
            ("go test ./...", "go: downloading go1.30 failed: dial tcp: lookup proxy.golang.org: no such host", false),
            ("python3 -m pytest -q", "E       assert 3 == 2", true),
            ("node --test", "not ok 1 - adds", true),
        ] {
            assert_eq!(began(command, output), want, "{command}: {output}");
        }
    }
}
