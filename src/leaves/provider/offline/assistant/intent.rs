//! Reads what the user wants from a prompt, by words alone.

mod questions;

use super::declarations::Things;
use super::facts::Topic;
use super::git::Past;
use questions::{folder, name, program, question};

/// What the recipes can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    Greeting,
    Thanks,
    /// An answer to a question that no recipe asks.
    GoOn,
    Abilities,
    /// Something that cocode does, not a model.
    Program {
        answer: &'static str,
    },
    Explain,
    /// What the project says of itself.
    About {
        topics: Vec<Topic>,
    },
    Size,
    Past(Past),
    List(Things),
    /// Where something is declared, and how it reads.
    Symbol {
        name: String,
    },
    /// A commit message, and no commit.
    Message,
    Folder {
        path: String,
    },
    Show {
        path: String,
    },
    /// Quoted text, or stems of words, best first.
    Find {
        terms: Vec<String>,
    },
    Changes,
    Run {
        command: String,
    },
    Test,
    Fix,
    Create {
        path: String,
        text: String,
    },
    Replace {
        old: String,
        new: String,
        path: Option<String>,
    },
    Append {
        text: String,
        path: String,
    },
    Delete {
        path: String,
    },
    Fetch {
        url: String,
    },
    Unknown {
        words: Vec<String>,
    },
}

impl Intent {
    pub(super) fn of(prompt: &str) -> Intent {
        let prompt = typed(prompt);
        let lower = prompt.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
        let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
        let says = |options: &[&str]| options.iter().any(|option| lower.contains(option));
        let quoted = quoted(prompt);
        let paths: Vec<String> = paths(prompt);
        let path = || paths.first().cloned();

        if let Some(url) =
            prompt.split_whitespace().find(|word| word.starts_with("http://") || word.starts_with("https://"))
        {
            return Intent::Fetch { url: url.trim_end_matches(['.', ',', ')', '?']).to_owned() };
        }
        if has(&["message", "subject"]) && has(&["commit"]) {
            return Intent::Message;
        }
        if has(&["replace", "change", "rename", "swap"]) && quoted.len() >= 2 {
            let (old, new) = (quoted[0].clone(), quoted[1].clone());
            return Intent::Replace { path: paths.into_iter().find(|path| *path != old && *path != new), old, new };
        }
        if let Some((old, new)) = swapped(prompt)
            && let Some(path) = paths.iter().find(|path| **path != old && **path != new)
        {
            return Intent::Replace { path: Some(path.clone()), old, new };
        }
        if let Some((old, new)) = swapped(prompt).filter(|(old, _)| spelled(old)) {
            return Intent::Replace { path: None, old, new };
        }
        if has(&["append", "add"])
            && let (Some(text), Some(path)) =
                (quoted.first().cloned(), paths.iter().find(|path| !quoted.contains(path)))
        {
            return Intent::Append { text, path: path.clone() };
        }
        if has(&["create", "write", "make"])
            && let Some(path) = path()
        {
            let text = quoted.iter().find(|text| **text != path).cloned();
            let printed = after(prompt, &[" that prints ", " printing ", " which prints "]);
            let text = match printed {
                Some(words) => printing(&path, text.as_deref().unwrap_or(&words)).unwrap_or(words),
                None => text.or_else(|| after(prompt, &[" with ", " containing ", " saying "])).unwrap_or_default(),
            };
            return Intent::Create { path, text };
        }
        if has(&["delete", "remove"])
            && let Some(path) = path()
        {
            return Intent::Delete { path };
        }
        let failing = ["test", "tests", "build", "failing", "failure", "bug", "compile", "error"];
        let asked = words.first().is_some_and(|word| ["how", "why", "what", "where"].contains(word));
        if has(&["fix", "repair", "debug", "solve"]) && has(&failing) && !asked
            || has(&["make", "get"]) && has(&["test", "tests"]) && has(&["pass", "green", "work"])
        {
            return Intent::Fix;
        }
        if says(&["who are you", "what are you", "what can you", "what can i ask", "what do you do", "was kannst du"]) {
            return Intent::Abilities;
        }
        if let Some(answer) = program(&lower, &words) {
            return Intent::Program { answer };
        }
        if let Some(intent) = question(&lower, &words) {
            return intent;
        }
        if has(&["run", "execute", "start"]) {
            if let Some(command) = quoted.first() {
                return Intent::Run { command: command.clone() };
            }
            if has(&["test", "tests", "suite"]) {
                return Intent::Test;
            }
            if let Some(command) = lower.find("run ").and_then(|at| prompt.get(at + 4..)) {
                let command = command.trim().trim_end_matches('.');
                if !command.is_empty() {
                    return Intent::Run { command: command.to_owned() };
                }
            }
        }
        if words == ["test"] || (has(&["test", "tests"]) && has(&["pass", "passing", "green", "fail"])) {
            return Intent::Test;
        }
        if says(&["what changed", "git status", "git diff", "uncommitted", "changes since", "my changes", "the diff"]) {
            return Intent::Changes;
        }
        let reads = has(&["explain", "describe", "show", "what", "how", "does", "understand", "read"]);
        if let Some(name) = name(prompt, &paths).filter(|_| reads && !has(&["where", "find", "used", "uses", "calls"]))
        {
            return Intent::Symbol { name };
        }
        if let Some(path) = folder(&words).filter(|_| has(&["what", "list", "show", "look", "explain", "describe"])) {
            return Intent::Folder { path };
        }
        if has(&["readme"]) {
            return Intent::Show { path: "README.md".into() };
        }
        if has(&["explain", "describe", "summarise", "summarize", "overview", "understand", "erkläre", "erklär"])
            || says(&[
                "was ist das",
                "was macht",
                "what is this",
                "what does this",
                "tell me about",
                "walk me through",
                "in here",
                "do i start",
                "get started",
                "start reading",
                "entry point",
                "documentation",
                "how does this",
            ])
        {
            return match path() {
                Some(path) => Intent::Show { path },
                None => Intent::Explain,
            };
        }
        if has(&["show", "read", "open", "cat", "print", "view"])
            && let Some(path) = path()
        {
            return Intent::Show { path };
        }
        if has(&["where", "find", "search", "grep", "look", "locate", "which", "who"]) {
            let terms = match quoted.first() {
                Some(term) => vec![term.clone()],
                None => terms(&words),
            };
            if !terms.is_empty() {
                return Intent::Find { terms };
            }
            return Intent::Explain;
        }
        if says(&["list files", "list the files", "what files", "structure", "layout"]) {
            return Intent::Explain;
        }
        if has(&["thanks", "thank", "thx", "danke", "great", "cool", "nice"]) && words.len() <= 4 {
            return Intent::Thanks;
        }
        const GO_ON: [&str; 12] =
            ["yes", "no", "ok", "okay", "sure", "yeah", "nope", "continue", "ja", "nein", "go", "please"];
        if words.first().is_some_and(|word| GO_ON.contains(word)) && words.len() <= 3 {
            return Intent::GoOn;
        }
        if has(&["hi", "hello", "hey", "hallo", "moin", "servus", "yo"]) && words.len() <= 4 {
            return Intent::Greeting;
        }
        if has(&["help", "hilfe"])
            || says(&["what can you", "was kannst du", "who are you", "what are you", "how do you"])
        {
            return Intent::Abilities;
        }
        if let (Some(path), true) = (path(), words.len() <= 4) {
            return Intent::Show { path };
        }
        let mut words: Vec<String> =
            words.iter().filter(|word| significant(word)).map(|word| (*word).to_owned()).collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
        words.dedup();
        words.truncate(3);
        Intent::Unknown { words }
    }
}

/// The prompt without what was piped in behind it: a diff, or more than anybody types.
fn typed(prompt: &str) -> &str {
    const LONG: usize = 600;
    match prompt.split_once("\n\n") {
        Some((typed, data)) if data.starts_with("diff --git ") || data.len() > LONG => typed,
        _ => prompt,
    }
}

/// Texts between backticks, else between quotes.
fn quoted(prompt: &str) -> Vec<String> {
    for mark in ['`', '"', '\u{201c}'] {
        let close = if mark == '\u{201c}' { '\u{201d}' } else { mark };
        let mut found = Vec::new();
        let mut rest = prompt;
        while let Some((_, after)) = rest.split_once(mark) {
            let Some((inner, after)) = after.split_once(close) else { break };
            if !inner.is_empty() {
                found.push(inner.to_owned());
            }
            rest = after;
        }
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Words that look like paths: with a slash, or a name with an extension.
fn paths(prompt: &str) -> Vec<String> {
    prompt
        .split(|c: char| c.is_whitespace() || c == '`' || c == '"')
        .map(|word| {
            word.trim_start_matches('@').trim_matches(['\'', ',', ';', ':', '?', '!', '(', ')']).trim_end_matches('.')
        })
        .filter(|word| {
            let extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
                !stem.is_empty()
                    && (1..=5).contains(&extension.len())
                    && extension.chars().all(|c| c.is_ascii_alphanumeric())
                    && !extension.chars().all(|c| c.is_ascii_digit())
            });
            !word.contains("://") && (extension || (word.contains('/') && word.len() > 1))
        })
        .map(str::to_owned)
        .collect()
}

fn after(prompt: &str, marks: &[&str]) -> Option<String> {
    let lower = prompt.to_lowercase();
    // Lower-casing can change lengths outside ASCII; then the offset would lie.
    marks
        .iter()
        .find_map(|mark| lower.find(mark).and_then(|at| prompt.get(at + mark.len()..)))
        .map(|text| text.trim().to_owned())
}

/// The things that are looked for: significant words without their endings, at most three.
fn terms(words: &[&str]) -> Vec<String> {
    let stem = |word: &str| {
        let endings = ["ing", "ed", "es", "s"];
        let cut = endings.iter().find_map(|ending| word.strip_suffix(ending)).filter(|stem| stem.chars().count() > 3);
        cut.unwrap_or(word).to_owned()
    };
    words.iter().filter(|word| significant(word)).take(3).map(|word| stem(word)).collect()
}

fn significant(word: &str) -> bool {
    const COMMON: [&str; 70] = [
        "the",
        "and",
        "for",
        "are",
        "was",
        "this",
        "that",
        "with",
        "from",
        "into",
        "have",
        "has",
        "does",
        "did",
        "can",
        "could",
        "would",
        "should",
        "please",
        "you",
        "your",
        "our",
        "its",
        "what",
        "where",
        "when",
        "which",
        "who",
        "why",
        "how",
        "find",
        "search",
        "look",
        "locate",
        "show",
        "grep",
        "defined",
        "used",
        "code",
        "file",
        "files",
        "project",
        "repository",
        "repo",
        "make",
        "add",
        "use",
        "all",
        "any",
        "some",
        "there",
        "about",
        "handled",
        "implemented",
        "called",
        "declared",
        "located",
        "in",
        "is",
        "it",
        "do",
        "me",
        "function",
        "method",
        "struct",
        "class",
        "variable",
        "entry",
        "point",
        "thing",
    ];
    word.chars().count() > 2 && !COMMON.contains(&word)
}

/// The two words of `replace a with b in …`, written without quotes.
fn swapped(prompt: &str) -> Option<(String, String)> {
    let words: Vec<&str> = prompt.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| ["replace", "change", "rename", "swap"].contains(&word.to_lowercase().as_str()))?;
    match words.get(at + 1..at + 5)? {
        [old, "with" | "to" | "by" | "for", new, "in" | "everywhere"] => Some(((*old).to_owned(), (*new).to_owned())),
        _ => None,
    }
}

/// Whether a word is spelled as only names in code are.
fn spelled(word: &str) -> bool {
    word.contains('_') || word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase)
}

/// The smallest program that prints these words, in the language of the file's name.
fn printing(path: &str, words: &str) -> Option<String> {
    let quoted = serde_json::Value::from(words).to_string();
    Some(match path.rsplit_once('.')?.1 {
        "py" | "lua" => format!("print({quoted})"),
        "js" | "mjs" | "ts" => format!("console.log({quoted});"),
        "rb" => format!("puts {quoted}"),
        "sh" | "bash" => format!("#!/usr/bin/env bash\nprintf '%s\\n' '{}'", words.replace('\'', r"'\''")),
        "rs" => format!("fn main() {{\n    println!(\"{{}}\", {quoted});\n}}"),
        "go" => format!("package main\n\nimport \"fmt\"\n\nfunc main() {{\n\tfmt.Println({quoted})\n}}"),
        "c" => format!("#include <stdio.h>\n\nint main(void) {{\n    puts({quoted});\n    return 0;\n}}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Intent, Past, Things, Topic};

    fn check(prompt: &str, want: Intent) {
        assert_eq!(Intent::of(prompt), want, "{prompt:?}");
    }

    #[test]
    fn reads_prompts() {
        let s = str::to_owned;
        check("hi there", Intent::Greeting);
        check("Explain this repository", Intent::Explain);
        check("what does this project do?", Intent::Explain);
        check("explain src/main.rs", Intent::Show { path: s("src/main.rs") });
        check("Where is the config parsed?", Intent::Find { terms: vec![s("config"), s("pars")] });
        check("Thanks!", Intent::Thanks);
        check("yes please", Intent::GoOn);
        check("Was macht dieses Projekt?", Intent::Explain);
        check("who calls retry?", Intent::Find { terms: vec![s("call"), s("retry")] });
        check("find `fn main`", Intent::Find { terms: vec![s("fn main")] });
        check("fix the failing test", Intent::Fix);
        check("run the tests", Intent::Test);
        check("run `cargo build`", Intent::Run { command: s("cargo build") });
        check("run ls -la.", Intent::Run { command: s("ls -la") });
        check("replace `a` with `b` in x.txt", Intent::Replace { old: s("a"), new: s("b"), path: Some(s("x.txt")) });
        check("create notes.md with Hello World", Intent::Create { path: s("notes.md"), text: s("Hello World") });
        check("replace a with b in x.txt", Intent::Replace { old: s("a"), new: s("b"), path: Some(s("x.txt")) });
        let prints = |path: &str, text: &str| Intent::Create { path: s(path), text: s(text) };
        check("create a file hello.py that prints hello", prints("hello.py", "print(\"hello\")"));
        check("make x.sh printing it's `a'b`", prints("x.sh", "#!/usr/bin/env bash\nprintf '%s\\n' 'a'\\''b'"));
        check("write notes.txt that prints hello", prints("notes.txt", "hello"));
        check("append \"two\" to a.txt", Intent::Append { text: s("two"), path: s("a.txt") });
        check("delete a.txt", Intent::Delete { path: s("a.txt") });
        check("what changed?", Intent::Changes);
        let about = |topics: &[Topic]| Intent::About { topics: topics.to_vec() };
        check("how do I run the tests?", about(&[Topic::Test]));
        check("How can I build this?", about(&[Topic::Build]));
        check("name and version of this package", about(&[Topic::Name, Topic::Version]));
        check("what license is this under?", about(&[Topic::License]));
        check("which language is this written in?", about(&[Topic::Language]));
        check("who wrote this?", about(&[Topic::Authors]));
        check("list the public functions", Intent::List(Things::PublicFunctions));
        check("how many tests are there?", Intent::List(Things::Tests));
        check("are there any TODOs?", Intent::List(Things::Todos));
        check("how many lines of code is this?", Intent::Size);
        check("show me the last commits", Intent::Past(Past::Log));
        check("which branch am I on?", Intent::Past(Past::Branch));
        check("what does parse_line do?", Intent::Symbol { name: s("parse_line") });
        check("explain the function greet", Intent::Symbol { name: s("greet") });
        check("where is parse_line used?", Intent::Find { terms: vec![s("parse"), s("line")] });
        check("where is the main function?", Intent::Find { terms: vec![s("main")] });
        check("what is in the src folder?", Intent::Folder { path: s("src") });
        check("show me the readme", Intent::Show { path: s("README.md") });
        check("write a commit message for this", Intent::Message);
        check("write a commit message for this\n\ndiff --git a/x.rs b/x.rs", Intent::Message);
        check("make the tests pass", Intent::Fix);
        check("hello, who are you?", Intent::Abilities);
        check("what's in here?", Intent::Explain);
        check("does this compile?", about(&[Topic::Build]));
        let everywhere = Intent::Replace { old: s("count_words"), new: s("words"), path: None };
        check("rename count_words to words everywhere", everywhere);
        check("tell me about the name resolution", Intent::Explain);
        check("fetch https://example.org/x.", Intent::Fetch { url: s("https://example.org/x") });
        check(
            "refactor dispatcher quickly",
            Intent::Unknown { words: vec![s("dispatcher"), s("refactor"), s("quickly")] },
        );
    }
}
