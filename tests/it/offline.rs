//! The offline model: the first questions of a newcomer, small repairs, and the examples of the documentation.

use std::path::Path;
use std::process::Command;

use cocode::permission::Mode;

use crate::support::harness::Harness;
use crate::support::program::Program;

const MANIFEST: &str = "[package]\nname = \"wordy\"\nversion = \"0.3.1\"\nedition = \"2021\"\nlicense = \"MIT\"\nauthors = [\"Ada\"]\n\n[dependencies]\nserde = \"1\"\n";

const README: &str = "# Wordy\n\nCounts the words of a text.\n\n```sh\ncargo test --all\n```\n";

const LIB: &str = "//! Counting.

/// How many words a text has.
pub fn count_words(text: &str) -> usize {
    // TODO: handle hyphens
    text.split_whitespace().count()
}

pub struct Report {
    pub words: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_two() {
        assert_eq!(count_words(\"a b\"), 2);
    }

    #[test]
    fn counts_none() {
        assert_eq!(count_words(\"\"), 0);
    }
}
";

const MAIN: &str = "fn main() {\n    println!(\"{}\", wordy::count_words(\"a b\"));\n}\n";

fn git(folder: &Path, args: &[&str]) {
    let name = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let done = Command::new("git").args(name).args(args).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
}

/// A small project with one commit and one change.
fn project() -> Program {
    let program = Program::new()
        .file("Cargo.toml", MANIFEST)
        .file("README.md", README)
        .file("src/lib.rs", LIB)
        .file("src/main.rs", MAIN)
        .file("notes.md", "one\n");
    git(&program.project(), &["init", "-q", "-b", "trunk"]);
    git(&program.project(), &["add", "."]);
    git(&program.project(), &["commit", "-q", "-m", "Begin"]);
    program.file("notes.md", "one\ntwo\n")
}

/// What a newcomer asks, and what a useful answer contains.
const QUESTIONS: [(&str, &str); 26] = [
    ("hi", "run the tests"),
    ("what can you do?", "explain this repository"),
    ("what is this project?", "Counts the words of a text."),
    ("how do I run the tests?", "cargo test --all"),
    ("how do I build this?", "cargo build"),
    ("what language is this written in?", "Rust"),
    ("what dependencies does this have?", "serde"),
    ("which license is this under?", "MIT"),
    ("what version is this?", "0.3.1"),
    ("who wrote this?", "Ada: 1"),
    ("how many lines of code are there?", "lines in"),
    ("which files are the largest?", "`src/lib.rs`: 26"),
    ("list the public functions", "pub fn count_words"),
    ("what types are there?", "pub struct Report"),
    ("what does count_words do?", "text.split_whitespace().count()"),
    ("where is count_words used?", "src/main.rs:2"),
    ("where is the main function?", "src/main.rs:1"),
    ("explain lib.rs", "line 4: `pub fn count_words"),
    ("how many tests are there?", "2 tests"),
    ("are there any TODOs?", "handle hyphens"),
    ("show me the last commits", "Begin"),
    ("which branch am I on?", "* trunk"),
    ("what is in the src folder?", "main.rs"),
    ("write a commit message for my changes", "Update notes.md"),
    ("how do I use a real model?", "ANTHROPIC_API_KEY"),
    // What it cannot do, it says, with what it can.
    ("add a dark mode to the settings page", "What works: "),
];

#[test]
fn first_questions_get_useful_answers() {
    let program = project();
    let mut wrong = Vec::new();
    for (question, want) in QUESTIONS {
        let done = program.run(&["-p", question, "--offline"]);
        if !done.out.contains(want) || done.code != Some(0) {
            wrong.push(format!("{question}: {:?}\n{}{}", done.code, done.out, done.err));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), QUESTIONS.len(), wrong.join("\n\n"));
    let log = Command::new("git").args(["log", "--oneline"]).current_dir(program.project()).output().unwrap();
    assert_eq!(log.stdout.iter().filter(|byte| **byte == b'\n').count(), 1, "it committed something");
}

fn there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success())
}

const CRATE: &str = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";

/// Repairs: what runs the tests, the files, and what the last one contains once it is fixed.
#[tokio::test]
async fn small_slips_are_repaired() {
    type Files = &'static [(&'static str, &'static str)];
    let rows: [(&str, Files, &str); 6] = [
        (
            "cargo",
            &[
                ("Cargo.toml", CRATE),
                (
                    "src/lib.rs",
                    "pub fn total(items: &[u32]) -> u32 {\n    let mut sum = 0;\n    for at in 0..items.len() - 1 {\n        sum += items[at];\n    }\n    sum\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds_all() {\n        assert_eq!(super::total(&[1, 2, 3]), 6);\n    }\n}\n",
                ),
            ],
            "0..items.len() {",
        ),
        (
            "cargo",
            &[
                ("Cargo.toml", CRATE),
                ("tests/greets.rs", "#[test]\nfn greets() {\n    assert_eq!(tiny::greet(), \"Hello\");\n}\n"),
                ("src/lib.rs", "pub fn greet() -> &'static str {\n    \"Helo\"\n}\n"),
            ],
            "\"Hello\"",
        ),
        (
            "cargo",
            &[
                ("Cargo.toml", CRATE),
                (
                    "src/lib.rs",
                    "pub fn double(number: u32) -> u32 {\n    numbr * 2\n}\n\n#[test]\nfn doubles() {\n    assert_eq!(double(2), 4);\n}\n",
                ),
            ],
            "number * 2",
        ),
        (
            "python3",
            &[
                (
                    "test_prices.py",
                    "import unittest\nfrom prices import discounted\n\n\nclass Prices(unittest.TestCase):\n    def test_discount(self):\n        self.assertEqual(discounted(100, 20), 80)\n",
                ),
                ("prices.py", "def discounted(price, percent):\n    return price + price * percent / 100\n"),
            ],
            "return price - price",
        ),
        (
            "python3",
            &[
                (
                    "test_names.py",
                    "from names import initials\n\n\ndef test_initials():\n    assert initials('ada lovelace') == 'AL'\n",
                ),
                (
                    "names.py",
                    "def initials(name):\n    parts = name.split()\n    return ''.join(part[0].lower() for part in parts)\n",
                ),
            ],
            "part[0].upper()",
        ),
        (
            "node",
            &[
                ("package.json", "{\"name\": \"tiny\", \"type\": \"module\"}\n"),
                (
                    "adult.test.js",
                    "import test from 'node:test';\nimport assert from 'node:assert';\nimport { isAdult } from './adult.js';\n\ntest('eighteen is adult', () => {\n  assert.strictEqual(isAdult(18), true);\n});\n",
                ),
                ("adult.js", "export function isAdult(age) {\n  return age > 18;\n}\n"),
            ],
            "age >= 18",
        ),
    ];
    for (runner, files, want) in rows.into_iter().filter(|(runner, ..)| there(runner)) {
        let harness = files.iter().fold(Harness::new(), |harness, (path, text)| harness.file(path, text));
        let run = harness.mode(Mode::Bypass).prompt("fix the failing test").run().await;
        let (path, _) = files.last().unwrap();
        assert!(run.read(path).contains(want), "{runner} {path}: {}\n{}", run.read(path), run.trace());
        assert!(run.trace().contains("The tests pass now."), "{}", run.trace());
    }
}

#[test]
fn the_examples_of_the_documentation_work() {
    let program = project();
    let asks = |args: &[&str]| program.run(&[args, &["--offline"]].concat());
    let told = asks(&["-p", "what does this project do?"]);
    assert!(told.out.contains("Counts the words of a text."), "{told:?}");
    let told = asks(&["-p", "list the public functions", "--output-format", "json"]);
    assert!(told.lines()[0]["result"].as_str().is_some_and(|text| text.contains("pub fn count_words")), "{told:?}");
    let schema = program.script(
        "schema.json",
        r#"{"type": "object", "properties": {"name": {"type": "string"}, "version": {"type": "string"}}, "required": ["name", "version"]}"#,
    );
    let told = asks(&["-p", "name and version of this package", "--json-schema", &schema]);
    let answer: serde_json::Value = serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("{told:?}"));
    assert_eq!(answer, serde_json::json!({"name": "wordy", "version": "0.3.1"}));
    // Piped in, as a diff.
    let diff = Command::new("git").arg("diff").current_dir(program.project()).output().unwrap();
    let piped = program.stdin(&String::from_utf8(diff.stdout).unwrap());
    let told = piped.run(&["-p", "write a commit message for this", "--offline"]);
    assert!(told.out.contains("Update notes.md\n\n- notes.md (+1 -0)"), "{told:?}");
}

#[tokio::test]
async fn the_sample_is_repaired() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/sample");
    let read = |name: &str| std::fs::read_to_string(sample.join(name)).unwrap();
    let run = Harness::new()
        .file("Cargo.toml", &read("Cargo.toml"))
        .file("src/lib.rs", &read("src/lib.rs"))
        .mode(Mode::AcceptEdits)
        .set("permissions.allow = ['Bash(cargo test:*)']")
        .prompt("fix the failing test")
        .run()
        .await;
    assert!(run.trace().contains("The tests pass now."), "{}", run.trace());
}
