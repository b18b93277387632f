//! Reads what the user wants: which class of verb, and what it is about.

mod questions;

use super::declarations::Things;
use super::facts::Topic;
use super::git::Past;
use super::words::{Is, Words, spelled};
use questions::{chat, program, question};

/// What the recipes can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    /// Small talk, and what cocode does itself: the answer is known.
    Say(String),
    Abilities,
    Explain,
    /// What the project says of itself.
    About(Vec<Topic>),
    Size,
    Past(Past),
    List(Things),
    /// A commit message, and no commit.
    Message,
    /// Something in the code: a file, a folder, a name, or words that lines may have.
    Look(Look),
    Changes,
    Run(String),
    Test,
    /// An error that somebody pasted.
    Error,
    Fix {
        /// What was named: files, functions.
        named: Vec<String>,
        /// The expectation is wrong, not the code.
        in_tests: bool,
    },
    Create {
        path: String,
        text: String,
    },
    Readme,
    Replace {
        old: String,
        new: String,
        path: Option<String>,
    },
    /// A constant gets another value.
    Set {
        terms: Vec<String>,
        value: String,
    },
    /// A comment on a function; without a text one of what its code says.
    Comment {
        names: Vec<String>,
        text: Option<String>,
    },
    WriteTest {
        names: Vec<String>,
    },
    Spaces {
        path: String,
    },
    Append {
        text: String,
        path: String,
    },
    Delete {
        path: String,
    },
    Fetch(String),
    Unknown(Vec<String>),
}

/// What is asked of something in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aspect {
    Explain,
    Where,
    Uses,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) aspect: Aspect,
    pub(super) path: Option<String>,
    pub(super) names: Vec<String>,
    pub(super) terms: Vec<String>,
}

impl Intent {
    pub(super) fn of(prompt: &str) -> Intent {
        let prompt = typed(prompt);
        match Intent::read(&Words::of(prompt, false)) {
            // Spelled otherwise it may be known.
            Intent::Unknown(words) => match Intent::read(&Words::of(prompt, true)) {
                Intent::Unknown(_) => Intent::Unknown(words),
                known => known,
            },
            known => known,
        }
    }

    fn read(words: &Words) -> Intent {
        let found = url(words).or_else(|| edit(words)).or_else(|| repair(words)).or_else(|| chat(words));
        let found = found.or_else(|| program(words).map(|text| Intent::Say(text.into())));
        found.or_else(|| question(words)).or_else(|| look(words)).unwrap_or_else(|| {
            let mut left = words.terms();
            left.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
            left.truncate(3);
            Intent::Unknown(left)
        })
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

fn url(words: &Words) -> Option<Intent> {
    let url =
        words.prompt.split_whitespace().find(|word| word.starts_with("http://") || word.starts_with("https://"))?;
    Some(Intent::Fetch(url.trim_end_matches(['.', ',', ')', '?']).to_owned()))
}

/// Changes of files.
fn edit(words: &Words) -> Option<Intent> {
    let (quoted, paths) = (&words.quoted, &words.paths);
    let asks = words.first(&[Is::How, Is::Why, Is::What, Is::Where, Is::Who, Is::When]) && !words.says("can you");
    if words.has("message subject") && words.is(Is::Commit) {
        return Some(Intent::Message);
    }
    if asks {
        return None;
    }
    if words.any(&[Is::Rename, Is::Change])
        && let Some((old, new)) = exchanged(words)
    {
        let path = paths.iter().find(|path| **path != old && **path != new).cloned();
        let set =
            words.is(Is::Change) && value(&new) && !value(&old) && quoted.len() < 2 && !words.has("replace ersetze");
        if !set && (path.is_some() || quoted.len() >= 2 || words.is(Is::Rename) || spelled(&old)) {
            return Some(Intent::Replace { old, new, path });
        }
    }
    if words.first(&[Is::Change, Is::Create])
        && let Some((before, value)) = last_to(words.prompt)
    {
        let terms = Words::of(before, false);
        let mut named = terms.names();
        named.extend(
            terms
                .all
                .into_iter()
                .filter(|(word, class)| {
                    let verb =
                        class.is_some_and(|class| [Is::Change, Is::Create, Is::What, Is::Project].contains(&class));
                    !verb && !["the", "value", "of", "default"].contains(&word.as_str())
                })
                .map(|(word, _)| word),
        );
        named.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
        if words.is(Is::Change) && !named.is_empty() {
            return Some(Intent::Set { terms: named, value: value.to_owned() });
        }
    }
    let mut candidates = words.candidates();
    // A function may be called like a verb.
    if let Some(name) = after(words.prompt, &[" test for ", " tests for "])
        && candidates.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    {
        candidates.push(name);
    }
    let makes = words.any(&[Is::Add, Is::Create]);
    if makes && words.has("tab tabs") || words.has("tabs") && words.has("spaces") {
        return Some(Intent::Spaces { path: paths.first().cloned().unwrap_or_default() });
    }
    let comment = words.is(Is::Comment) || words.says("doc comment|documentation");
    if comment && (makes || words.first(&[Is::Comment])) && !candidates.is_empty() {
        let text = quoted.iter().find(|text| text.contains(' ')).cloned();
        return Some(Intent::Comment { names: candidates, text });
    }
    if words.is(Is::Add)
        && let (Some(text), Some(path)) = (quoted.first(), paths.iter().find(|path| !quoted.contains(path)))
    {
        return Some(Intent::Append { text: text.clone(), path: path.clone() });
    }
    if makes && words.is(Is::Test) && !words.is(Is::Fails) && paths.is_empty() {
        return (!candidates.is_empty()).then_some(Intent::WriteTest { names: candidates });
    }
    if makes && words.is(Is::Readme) && quoted.is_empty() {
        return Some(Intent::Readme);
    }
    if words.is(Is::Create)
        && !words.is(Is::Fails)
        && let Some(path) = paths.first()
    {
        let text = quoted.iter().find(|text| *text != path).cloned();
        let printed = after(words.prompt, &[" that prints ", " printing ", " which prints ", " that print "]);
        let text = match printed {
            Some(words) => printing(path, text.as_deref().unwrap_or(&words)).unwrap_or(words),
            None => text.or_else(|| after(words.prompt, &[" with ", " containing ", " saying "])).unwrap_or_default(),
        };
        if text.is_empty() && !words.has("empty") && !words.first(&[Is::Create])
            || text.is_empty() && words.has("generate write")
        {
            return Some(Intent::Say(format!(
                "What should be in `{path}`? I write what you give me: ``create {path} with `text` ``."
            )));
        }
        return Some(Intent::Create { path: path.clone(), text });
    }
    // "Remove the TODO in a.rs" leaves the file: it must be what the verb is about, and alone.
    const BEFORE: &str = "delete remove rm lösche the this that a file old unused empty obsolete please pls can could would you \
        now just i want to bitte die datei";
    const BEHIND: &str = "now please pls completely entirely too for from it it's its we i as because since bitte";
    let asks = words.prompt.trim_end().ends_with('?') && !words.has("can could would");
    let whole = |path: &&String| {
        let Some((before, behind)) = words.lower.split_once(&path.to_lowercase()) else { return false };
        let among = |known: &str, word: &str| known.split_ascii_whitespace().any(|known| known == word);
        let parts = |text: &'_ str| -> Vec<String> {
            let bare = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
            bare.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        parts(before).iter().all(|word| among(BEFORE, word))
            && parts(behind).first().is_none_or(|word| among(BEHIND, word))
    };
    let whole = |path: &&String| !asks && whole(path);
    let readme = words.is(Is::Readme).then(|| "readme".to_owned());
    let path = paths.first().or(readme.as_ref()).filter(|_| words.is(Is::Delete)).filter(whole)?;
    Some(Intent::Delete { path: if paths.is_empty() { "README.md".to_owned() } else { path.clone() } })
}

/// What fails, and is to be made right or only to be seen.
fn repair(words: &Words) -> Option<Intent> {
    let asked = words.first(&[Is::How, Is::What, Is::Where, Is::Who]) || words.first(&[Is::Why]) && !words.is(Is::Fix);
    let named = || words.names().into_iter().chain(words.paths.iter().cloned()).collect();
    let passes = words.first(&[Is::Create]) && words.is(Is::Test) || words.says("get the test|tests to pass");
    if words.is(Is::Fix) && !asked && words.says("typo|spelling|grammar|wording") {
        return Some(Intent::Say(
            "Finding a slip in a text takes understanding. Name it and I put it right: ``replace `teh` with `the` in README.md``."
                .into(),
        ));
    }
    let worry = words.has("help anymore broken") && words.any(&[Is::Test, Is::Build, Is::Fails]);
    if (words.is(Is::Fix) || passes && words.any(&[Is::Fails]) || worry) && !asked {
        const TESTS: &str =
            "fix the test|fix test|correct the test|wrong expectation|test expects the wrong|repair the test";
        let in_tests = words.says(TESTS)
            && !words.says("not the test|fix the tests|fix the code|failing")
            && words.says("expect|wrong|not the code");
        return Some(Intent::Fix { named: named(), in_tests });
    }
    let pasted = words.is(Is::Error) && words.prompt.contains(": ") || super::errors::known(words.prompt).is_some();
    if pasted && !words.is(Is::Fix) {
        return Some(Intent::Error);
    }
    let seen = words.is(Is::Test) && words.is(Is::Fails) && !words.first(&[Is::Where]);
    let bug = words.is(Is::Bug) && words.any(&[Is::Where, Is::What, Is::List, Is::Show]);
    let wrong = words.first(&[Is::Why]) && words.any(&[Is::Fails, Is::Test]);
    (seen || bug || wrong || words.all.len() == 1 && words.is(Is::Test)).then_some(Intent::Test)
}

/// Something in the code.
fn look(words: &Words) -> Option<Intent> {
    let names = words.names();
    let readme = words.is(Is::Readme).then(|| "README.md".to_owned());
    let folder = || {
        let at = words.all.iter().position(|(_, class)| *class == Some(Is::Folder))?;
        let near = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| words.all.get(at));
        let plain = |word: &&(String, Option<Is>)| {
            word.1.is_none() && !["the", "a", "that", "current", "my"].contains(&word.0.as_str())
        };
        near.into_iter().find(plain).map(|(word, _)| word.clone())
    };
    let path = words.paths.first().cloned().or(readme).or_else(folder);
    let mut terms = words.terms();
    let aspect = match () {
        () if words.is(Is::Uses) && !words.any(&[Is::Explain])
            || words.any(&[Is::Who, Is::How]) && words.has("uses used calls") =>
        {
            Aspect::Uses
        }
        () if words.any(&[Is::Where, Is::Who]) => Aspect::Where,
        () if words.any(&[Is::Explain, Is::Show, Is::What, Is::How, Is::List, Is::When, Is::Why]) => Aspect::Explain,
        () if words.len() <= 3 && (path.is_some() || !names.is_empty()) => Aspect::Explain,
        () => return None,
    };
    if let Some(text) = words.quoted.first().filter(|_| names.is_empty() && aspect != Aspect::Explain) {
        terms = vec![text.clone()];
    }
    let anything = path.is_some() || !names.is_empty() || !terms.is_empty();
    anything.then_some(Intent::Look(Look { aspect, path, names, terms }))
}

fn after(prompt: &str, marks: &[&str]) -> Option<String> {
    let lower = prompt.to_lowercase();
    // Lower-casing can change lengths outside ASCII; then the offset would lie.
    marks
        .iter()
        .find_map(|mark| lower.find(mark).and_then(|at| prompt.get(at + mark.len()..)))
        .map(|text| text.trim().to_owned())
}

/// The two sides of `rename a to b` or `replace a with b in …`; quoted, they are what is quoted.
fn exchanged(words: &Words) -> Option<(String, String)> {
    if let [old, new, ..] = words.quoted.as_slice() {
        return Some((old.clone(), new.clone()));
    }
    const FILLS: &str = "the function struct class method variable constant type enum file word every all module";
    const VERBS: &str = "rename replace change swap benenne ersetze";
    let among = |of: &str, word: &str| of.split(' ').any(|known| known == word.to_lowercase());
    let all: Vec<&str> = words.prompt.split_whitespace().filter(|word| !among(FILLS, word)).collect();
    let at = all.iter().position(|word| among(VERBS, word))?;
    match all.get(at + 1..at + 4)? {
        [old, to, new] if among("to with by into as in for -> =>", to) => {
            let bare = |word: &str| {
                word.trim_matches(['`', '\'', '"', ',', '?', '!'])
                    .trim_end_matches('.')
                    .trim_end_matches("()")
                    .to_owned()
            };
            Some((bare(old), bare(new)))
        }
        _ => None,
    }
}

/// Whether a word is a value and no name.
fn value(word: &str) -> bool {
    word.parse::<f64>().is_ok() || ["true", "false", "True", "False"].contains(&word)
}

/// What comes before the last "to", and what follows it.
fn last_to(prompt: &str) -> Option<(&str, &str)> {
    let (before, value) = prompt.rsplit_once(" to ").or_else(|| prompt.rsplit_once(" = "))?;
    let value = value.trim().trim_end_matches(['.', '!', '?']).trim_matches(['`', '"']);
    (!value.is_empty() && value.split(' ').count() <= 2).then_some((before, value))
}

/// The smallest program that prints these words, in the language of the file's name.
fn printing(path: &str, words: &str) -> Option<String> {
    let quoted = serde_json::Value::from(words.trim_end_matches(['.', '!']).trim_matches(['"', '\''])).to_string();
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
    use super::*;

    fn check(prompt: &str, want: Intent) {
        assert_eq!(Intent::of(prompt), want, "{prompt:?}");
    }

    fn all(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn questions_are_read_by_what_they_ask_and_of_what() {
        let about = |topics: &[Topic]| Intent::About(topics.to_vec());
        let rows: &[(&[&str], Intent)] = &[
            (
                &[
                    "Explain this repository",
                    "whats this repo about",
                    "give me a quick overview of the code base",
                    "what does this project do?",
                    "what's in here?",
                    "Was macht dieses Projekt?",
                    "show me the directory structure",
                    "could you please tell me which files are the most important ones?",
                ],
                Intent::Explain,
            ),
            (&["how do I run the tests?", "how is this tested?"], about(&[Topic::Test])),
            (&["How can I build this?", "does this compile?", "how do i compile it"], about(&[Topic::Build])),
            (&["how can I build and start this?"], about(&[Topic::Build, Topic::Run])),
            (&["name and version of this package"], about(&[Topic::Name, Topic::Version])),
            (&["what license is this under?"], about(&[Topic::License])),
            (&["which version is this", "what version do we have?"], about(&[Topic::Version])),
            (&["which dependencies does it need", "what libraries are used?"], about(&[Topic::Dependencies])),
            (&["whats the entry point", "where starts the program?"], about(&[Topic::Entry])),
            (&["is there a config file?"], about(&[Topic::Config])),
            (&["list the public functions"], Intent::List(Things::PublicFunctions)),
            (&["how many tests are there?", "does this have tests?"], Intent::List(Things::Tests)),
            (&["are there any TODOs left?", "list all todos"], Intent::List(Things::Todos)),
            (&["how many lines of code is this?", "which files are the largest?"], Intent::Size),
            (&["show me the last commits", "what changed recently?", "summarize the git log"], Intent::Past(Past::Log)),
            (&["what was the last commit about"], Intent::Past(Past::Last)),
            (&["did someone touch pricing.py lately?"], Intent::Past(Past::File("pricing.py".into()))),
            (&["which branch am I on?"], Intent::Past(Past::Branch)),
            (&["what changed?", "What changed since the last commit?", "what did I change?"], Intent::Changes),
            (&["list the files", "List all files here", "show files"], Intent::Run("ls -p".into())),
            (
                &["run the tests", "why does the test fail?", "is there a bug in src/a.rs?", "do the tests pass?"],
                Intent::Test,
            ),
            (&["hi there", "hello, who are you?", "help"], Intent::Abilities),
        ];
        for (prompts, want) in rows {
            prompts.iter().for_each(|prompt| check(prompt, want.clone()));
        }
        check("write a commit message for this\n\ndiff --git a/x.rs b/x.rs", Intent::Message);
        check("run `cargo build`", Intent::Run("cargo build".into()));
        check("run ls -la.", Intent::Run("ls -la".into()));
        check("fetch https://example.org/x.", Intent::Fetch("https://example.org/x".into()));
        check("what does this mean? KeyError: 'a'", Intent::Error);
        check("refactor dispatcher quickly", Intent::Unknown(all(&["dispatcher", "refactor", "quickly"])));
    }

    #[test]
    fn places_in_the_code_are_named_in_many_ways() {
        fn look(prompt: &str, aspect: Aspect, path: Option<&str>, names: &[&str], terms: &[&str]) {
            let want = Look { aspect, path: path.map(str::to_owned), names: all(names), terms: all(terms) };
            check(prompt, Intent::Look(want));
        }
        look("explain src/main.rs", Aspect::Explain, Some("src/main.rs"), &[], &[]);
        look("show me the readme", Aspect::Explain, Some("README.md"), &[], &[]);
        look("what is in the src folder?", Aspect::Explain, Some("src"), &[], &["src"]);
        look("what does parse_line do?", Aspect::Explain, None, &["parse_line"], &["parse_line"]);
        look("waht does teh function total do", Aspect::Explain, None, &["total"], &["waht", "teh", "total"]);
        look("who calls retry?", Aspect::Uses, None, &[], &["retry"]);
        look("where is Lookup used", Aspect::Uses, None, &[], &["Lookup"]);
        look("Where are the links extracted?", Aspect::Where, None, &[], &["links", "extracted"]);
        look("where is the command line parsed", Aspect::Where, None, &[], &["arguments", "parsed"]);
        look("find `fn main`", Aspect::Where, None, &[], &["fn main"]);
    }

    #[test]
    fn changes_are_read_with_what_they_change() {
        let s = str::to_owned;
        let fix = |named: &[&str], in_tests| Intent::Fix { named: all(named), in_tests };
        check("fix the failing test", fix(&[], false));
        check("make the tests pass", fix(&[], false));
        check("the tests are red, please repair that", fix(&[], false));
        check("why does the test fail? fix it", fix(&[], false));
        check("it does not compile. fix it", fix(&[], false));
        check("full_name gives me None, please fix", fix(&["full_name"], false));
        check("fix the bug in cart.js", fix(&["cart.js"], false));
        check("the test expects the wrong greeting, fix the test", fix(&[], true));
        check("a test is failing, fix the code not the test", fix(&[], false));
        let replace =
            |old: &str, new: &str, path: Option<&str>| Intent::Replace { old: s(old), new: s(new), path: path.map(s) };
        check("replace `a` with `b` in x.txt", replace("a", "b", Some("x.txt")));
        check("replace a with b in x.txt", replace("a", "b", Some("x.txt")));
        check("rename the function count_words to words everywhere", replace("count_words", "words", None));
        check("change TAX_RATE to 0.2", Intent::Set { terms: all(&["TAX_RATE"]), value: s("0.2") });
        check("set the timeout to 10 seconds", Intent::Set { terms: all(&["timeout"]), value: s("10 seconds") });
        check("create notes.md with Hello World", Intent::Create { path: s("notes.md"), text: s("Hello World") });
        let prints = |path: &str, text: &str| Intent::Create { path: s(path), text: s(text) };
        check("create a file hello.py that prints hello", prints("hello.py", "print(\"hello\")"));
        check("make x.sh printing it's `a'b`", prints("x.sh", "#!/usr/bin/env bash\nprintf '%s\\n' 'a'\\''b'"));
        check("append \"two\" to a.txt", Intent::Append { text: s("two"), path: s("a.txt") });
        check("delete a.txt", Intent::Delete { path: s("a.txt") });
        check("delete the README", Intent::Delete { path: s("README.md") });
        assert!(matches!(Intent::of("fix the typo in the README"), Intent::Say(_)));
        check("Please remove the file `src/a.rs`.", Intent::Delete { path: s("src/a.rs") });
        for other in
            ["remove the TODO in src/a.rs", "delete line 3 of a.txt", "remove foo from a.rs", "delete a.txt and b.txt"]
        {
            assert!(!matches!(Intent::of(other), Intent::Delete { .. }), "{other}");
        }
        check("convert tabs to spaces in a.py", Intent::Spaces { path: s("a.py") });
        check("add a docstring to with_tax", Intent::Comment { names: all(&["with_tax"]), text: None });
        check("write a test for add", Intent::WriteTest { names: all(&["add"]) });
        check("write a unit test for render", Intent::WriteTest { names: all(&["render"]) });
        check("write a README for this project", Intent::Readme);
        check("create an empty file a.txt", Intent::Create { path: s("a.txt"), text: String::new() });
        assert!(matches!(Intent::of("generate a .gitignore"), Intent::Say(_)));
    }
}
