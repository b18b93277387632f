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

/// A shop in Python, a checker in JavaScript and a buffer in C, side by side.
fn languages() -> Program {
    let program = project()
        .file("shop/pricing.py", "TAX_RATE = 0.19\n\n\ndef with_tax(amount):\n    return amount * (1 + TAX_RATE)\n\n\ndef off(amount, percent):\n    \"\"\"Takes a discount away.\"\"\"\n    if percent < 0:\n        raise ValueError(\"percent\")\n    return with_tax(amount) - percent\n")
        .file("web/fetcher.js", "const TIMEOUT_MS = 5000;\n\nfunction isAlive(url, tries) {\n  if (tries > 3) return false;\n  return fetch(url, TIMEOUT_MS);\n}\n\nmodule.exports = { isAlive };\n")
        .file("ring/ring.h", "#define RING_SIZE 8\nint ring_push(int value);\n")
        .file("ring/ring.c", "#include \"ring.h\"\n\n/* Adds a value. */\nint ring_push(int value) {\n    return value < RING_SIZE;\n}\n")
        .file("src/config.rs", "//! Reads the command line.\n\npub struct Options;\n\npub fn from_args(args: &[String]) -> Options {\n    Options\n}\n");
    git(&program.project(), &["add", "."]);
    git(&program.project(), &["commit", "-q", "-m", "More"]);
    program
}

/// The same questions in other words, and about other languages.
const OTHERS: [(&str, &str); 30] = [
    ("whats this repo about", "Counts the words of a text."),
    ("could you please tell me what this repository is for?", "Counts the words of a text."),
    ("Was macht dieses Projekt?", "Counts the words of a text."),
    ("where starts the program?", "starts in `src/main.rs`"),
    ("where is the command line parsed?", "Most likely `src/config.rs`"),
    ("where is ring_push defined?", "`ring/ring.c:4`"),
    ("what is RING_SIZE", "#define RING_SIZE 8"),
    ("what does ring_push do?", "Adds a value."),
    ("can you explain me the file ring.c", "`int ring_push(int value)` — Adds a value."),
    ("what does isAlive do?", "returns `false` when `tries > 3`"),
    ("waht does teh function off do", "raises `ValueError(\"percent\")` when `percent < 0`"),
    ("who calls with_tax?", "`shop/pricing.py:12` — `return with_tax(amount) - percent`"),
    ("walk me through count_words", "It takes `text: &str`"),
    ("what was the last commit about", "More"),
    ("did someone touch ring.c lately?", "The latest commits to `ring/ring.c`"),
    ("summarize the git log", "Begin"),
    ("is there a config file?", "src/config.rs"),
    ("what does this error mean? KeyError: 'x'", "a dictionary has no entry with that key"),
    ("convert tabs to spaces in pricing.py", "No line of `shop/pricing.py` begins with a tab. Nothing was changed."),
    ("explain nothere.py", "I found no `nothere.py` here."),
    ("change the moon to 5", "I found no constant or setting named like"),
    ("how do i undo your last change", "/undo"),
    ("which model are you?", "offline model"),
    ("can you commit this for me", "I commit nothing without that."),
    ("write a README", "There is a `README.md` already."),
    ("what are the public functions", "6 public functions"),
    ("why is TIMEOUT_MS so large?", "I cannot tell why"),
    ("what happens when a dragon comes?", "What works: "),
    ("tell me a joke", "What works: "),
    ("add a docstring to off", "has one already: Takes a discount away."),
];

#[test]
fn first_questions_get_useful_answers() {
    ask(&project(), &QUESTIONS, 1);
}

#[test]
fn other_words_and_other_languages_get_useful_answers() {
    ask(&languages(), &OTHERS, 2);
}

fn ask(program: &Program, questions: &[(&str, &str)], commits: usize) {
    let mut wrong = Vec::new();
    for (question, want) in questions {
        let done = program.run(&["-p", question, "--offline"]);
        if !done.out.contains(want) || done.code != Some(0) {
            wrong.push(format!("{question}: {:?}\n{}{}", done.code, done.out, done.err));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), questions.len(), wrong.join("\n\n"));
    let log = Command::new("git").args(["log", "--oneline"]).current_dir(program.project()).output().unwrap();
    assert_eq!(log.stdout.iter().filter(|byte| **byte == b'\n').count(), commits, "it committed something");
}

fn there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success())
}

const CRATE: &str = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";

/// Repairs: what runs the tests, the files, and what the last one contains once it is fixed.
#[tokio::test]
async fn small_slips_are_repaired() {
    type Files = &'static [(&'static str, &'static str)];
    let rows: [(&str, Files, &str); 11] = [
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
        (
            "cargo",
            &[
                ("Cargo.toml", CRATE),
                (
                    "src/lib.rs",
                    "pub fn count(words: &[&str]) -> HashMap<String, usize> {\n    let mut counts = HashMap::new();\n    for word in words {\n        *counts.entry(word.to_string()).or_insert(0) += 1;\n    }\n    counts\n}\n\n#[test]\nfn counts() {\n    assert_eq!(count(&[\"a\"])[\"a\"], 1);\n}\n",
                ),
            ],
            "use std::collections::HashMap;\npub fn count",
        ),
        (
            "python3",
            &[
                (
                    "test_greet.py",
                    "import unittest\nfrom greet import greet\n\n\nclass Greet(unittest.TestCase):\n    def test_none(self):\n        self.assertEqual(greet(None), \"Hello, stranger\")\n\n    def test_name(self):\n        self.assertEqual(greet(\"ada\"), \"Hello, Ada\")\n",
                ),
                ("greet.py", "def greet(name):\n    return \"Hello, \" + name.title()\n"),
            ],
            "    if name is None:\n        return \"Hello, stranger\"\n",
        ),
        (
            "python3",
            &[
                (
                    "test_name.py",
                    "import unittest\nfrom name import full_name\n\n\nclass Name(unittest.TestCase):\n    def test_full_name(self):\n        self.assertEqual(full_name(\"a\", \"b\"), \"a b\")\n",
                ),
                ("name.py", "def full_name(first, last):\n    name = f\"{first} {last}\"\n"),
            ],
            "    return f\"{first} {last}\"",
        ),
        (
            "node",
            &[
                ("package.json", "{\"name\": \"tiny\", \"scripts\": {\"test\": \"node --test\"}}\n"),
                (
                    "load.test.js",
                    "const test = require('node:test');\nconst assert = require('node:assert');\nconst { nameOf } = require('./load');\n\ntest('reads the name', async () => {\n  assert.strictEqual(await nameOf(3), 'item 3');\n});\n",
                ),
                (
                    "load.js",
                    "async function read(id) {\n  return { name: 'item ' + id };\n}\n\nasync function nameOf(id) {\n  const item = read(id);\n  return item.name;\n}\n\nmodule.exports = { nameOf };\n",
                ),
            ],
            "= await read(id);",
        ),
        (
            "cc",
            &[
                ("Makefile", "test: test.c max.c\n\tcc -o t test.c max.c\n\t./t\n"),
                (
                    "test.c",
                    "#include <assert.h>\nint max_of(const int *values, int n);\n\nint main(void) {\n    int a[] = {1, 5, 9};\n    assert(max_of(a, 3) == 9);\n    return 0;\n}\n",
                ),
                (
                    "max.c",
                    "int max_of(const int *values, int n) {\n    int best = values[0];\n    for (int i = 1; i < n - 1; i++)\n        if (values[i] > best)\n            best = values[i];\n    return best;\n}\n",
                ),
            ],
            "i < n; i++",
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
