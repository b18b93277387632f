//! The words of a prompt: classes of verbs and nouns, names, paths and quoted texts.

use super::once;
use super::suspects::distance;

/// Makes the classes, each with its words.
macro_rules! vocabulary {
    ($($class:ident $words:literal)*) => {
        /// What a word asks for, or speaks of. Many words mean the same.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Is { $($class),* }

        /// The words of each class.
        const VOCABULARY: &[(Is, &str)] = &[$((Is::$class, $words)),*];
    };
}

vocabulary! {
    // What to do.
    Explain "explain describe summarize summarise summary overview understand walk about purpose tell mean means \
        does introduction erkläre erklär macht"
    Show "show read open cat print view display give zeig zeige"
    List "list all any enumerate liste"
    Where "where find locate search grep look defined declared implemented handled located wo finde"
    Uses "calls call called caller callers uses used usage usages reference references referenced invokes imports \
        imported"
    Run "run execute start starts started launch serve use starte führe"
    Build "build builds built compile compiles compiled baue"
    Install "install installed setup"
    Fix "fix fixes repair debug solve correct repariere behebe"
    Create "create write make generate erstelle schreibe"
    Add "add append insert"
    Rename "rename benenne"
    Change "change replace swap set increase decrease raise lower update ändere ersetze"
    Delete "delete remove rm lösche"
    Count "count many number zähle"
    Undo "undo revert"
    Push "push"
    // How it is asked.
    What "what whats what's which welche is are"
    How "how command wie"
    Why "why warum"
    Who "who whos wer"
    When "when"
    // What about.
    Test "test tests suite tested testing unittest tester"
    Fails "failing fails fail failed failure failures red broken breaks crash crashes wrong pass passing green"
    Bug "bug bugs mistake mistakes fehler"
    Todo "todo todos fixme fixmes"
    Readme "readme"
    Comment "comment comments docstring docstrings document"
    Name "name"
    Version "version"
    License "license licence licensed"
    Language "language languages written"
    Dependencies "dependencies dependency deps libraries library crates packages requirements"
    Authors "author authors maintainer maintainers contributors wrote maintains"
    Commit "commit commits"
    History "history log changelog"
    Recent "last latest recent recently lately newest yesterday today"
    Branch "branch branches"
    Config "config configuration settings configured"
    Lines "lines loc size"
    Large "largest biggest longest big large"
    Functions "functions methods exported api"
    Types "types structs classes enums traits interfaces"
    Files "files structure layout tree modules"
    Folder "folder directory dir"
    Entry "entry entrypoint"
    Error "error errors exception panic traceback warning"
    Model "model models ollama claude gpt gemini llm"
    Key "key keys openai anthropic"
    Project "project repo repository codebase program app application package crate projekt code this it here there \
        das"
    Public "public export"
}

/// Words that name nothing, and belong to no class.
const COMMON: &str = "quick base under the unit simple small short and for was that with from into have has did can could would \
    should please you your our its new get function method struct variable constant point thing file \
    class type module then not but just also pls out them they these those some more most everywhere \
    above below work works need want like still anymore help way let know looks got gets gives happens \
    returns return handle handles every each will doing being been there's it's i'm ist ein eine der die \
    dieses bitte und mir two one own between through other same called named say only now enum trait \
    value line go use used using when if to of in on";

fn is_common(word: &str) -> bool {
    COMMON.split(' ').any(|common| common == word)
}

/// The class of a word, spelled right.
fn class(word: &str) -> Option<Is> {
    VOCABULARY.iter().find(|(_, words)| words.split(' ').any(|known| known == word)).map(|(class, _)| *class)
}

/// The words that stand for what was asked.
pub(super) struct Words<'a> {
    pub(super) prompt: &'a str,
    pub(super) lower: String,
    /// Each word in lower case, with its class.
    pub(super) all: Vec<(String, Option<Is>)>,
    /// The same words as they were typed.
    raw: Vec<String>,
    pub(super) quoted: Vec<String>,
    pub(super) paths: Vec<String>,
}

impl<'a> Words<'a> {
    /// `corrected`: words of no class count as the one that they are nearly spelled like.
    pub(super) fn of(prompt: &'a str, corrected: bool) -> Words<'a> {
        let lower = prompt.to_lowercase();
        let bare = |c: char| !c.is_alphanumeric() && c != '\'' && c != '_';
        // Two words for one thing.
        let joined = prompt.replace("command line", "arguments").replace("command-line", "arguments");
        let split = joined.split(bare).map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty());
        let raw: Vec<String> = split.map(str::to_owned).collect();
        let near = |word: &str| {
            let far = if word.chars().count() > 6 { 2 } else { 1 };
            let fits = |known: &&str| known.len() > 3 && known.as_bytes()[0] == word.as_bytes()[0];
            let known = VOCABULARY.iter().flat_map(|(class, words)| words.split(' ').map(move |word| (class, word)));
            let ranked = known.filter(|(_, known)| fits(known)).map(|(class, known)| (distance(word, known), *class));
            ranked
                .filter(|(distance, _)| *distance <= far)
                .min_by_key(|(distance, _)| *distance)
                .map(|(_, class)| class)
        };
        let correctable = |word: &str| corrected && word.chars().count() > 3 && !is_common(word) && !word.contains('_');
        let classed = |word: String| {
            let class = class(&word).or_else(|| correctable(&word).then(|| near(&word)).flatten());
            (word, class)
        };
        let all = raw.iter().map(|word| classed(word.to_lowercase())).collect();
        Words { prompt, all, raw, quoted: quoted(prompt), paths: paths(prompt), lower }
    }

    pub(super) fn is(&self, class: Is) -> bool {
        self.all.iter().any(|(_, known)| *known == Some(class))
    }

    pub(super) fn any(&self, classes: &[Is]) -> bool {
        classes.iter().any(|class| self.is(*class))
    }

    pub(super) fn first(&self, classes: &[Is]) -> bool {
        let polite = ["please", "can", "could", "you", "pls", "bitte", "hey", "now", "would", "just", "then", "ok"];
        let first = self.all.iter().find(|(word, _)| !polite.contains(&word.as_str()));
        first.and_then(|(_, class)| *class).is_some_and(|class| classes.contains(&class))
    }

    /// Whether one of these words is among them.
    pub(super) fn has(&self, words: &str) -> bool {
        self.all.iter().any(|(word, _)| words.split(' ').any(|known| known == word))
    }

    /// Whether it contains one of these phrases, which `|` divides.
    pub(super) fn says(&self, phrases: &str) -> bool {
        phrases.split('|').any(|phrase| self.lower.contains(phrase))
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Names of the code: quoted, spelled as only code is, or behind a word such as "function". Not paths.
    pub(super) fn names(&self) -> Vec<String> {
        let plain = |word: &&str| {
            let starts = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
            starts && word.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        let mut found: Vec<String> = Vec::new();
        let mut add = |word: &str| {
            if !found.iter().any(|known| known == word) && !self.paths.iter().any(|path| path == word) {
                found.push(word.to_owned());
            }
        };
        self.quoted.iter().map(|word| word.trim_end_matches("()")).filter(plain).for_each(&mut add);
        let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '?' | '!' | ';' | ':' | '`' | '"');
        let raw: Vec<&str> = self.prompt.split(ends).filter(|word| !word.is_empty()).collect();
        for word in &raw {
            let bare = word.trim_end_matches('.').trim_end_matches("()").trim_end_matches("'s");
            if (word.contains("()") || spelled(bare)) && plain(&bare) {
                add(bare);
            }
            // `Store.add`, which is not a path.
            if let Some((_, member)) = bare.split_once('.').or_else(|| bare.rsplit_once("::"))
                && plain(&member)
                && (word.contains("()") || bare.starts_with(char::is_uppercase) || bare.contains("::"))
            {
                add(member);
            }
        }
        const KINDS: [&str; 11] = [
            "function", "struct", "class", "method", "type", "enum", "trait", "macro", "constant", "variable", "module",
        ];
        for (at, word) in raw.iter().enumerate() {
            if KINDS.contains(&word.to_lowercase().as_str()) {
                let near = [raw.get(at + 1), at.checked_sub(1).and_then(|before| raw.get(before))];
                let mut named =
                    near.into_iter().flatten().filter(|word| significant(&word.to_lowercase()) && plain(word));
                named.next().into_iter().for_each(|word| add(word));
            }
        }
        found
    }

    /// Words that are left when all that has a class or names nothing is gone.
    pub(super) fn left(&self) -> Vec<String> {
        let plain = |word: &(&(String, Option<Is>), &String)| {
            let (lower, class) = word.0;
            let path = self.paths.iter().any(|path| path.to_lowercase().contains(lower));
            class.is_none() && significant(lower) && !path
        };
        once(self.all.iter().zip(&self.raw).filter(plain).map(|(_, raw)| raw.clone()))
    }

    /// What is looked for, at most four words.
    pub(super) fn terms(&self) -> Vec<String> {
        use Is::{Config, Delete, Entry, Error, Install, Key, License, Model, Test, Version};
        const MATTERS: &[Is] = &[Config, Error, Key, Test, Entry, Version, License, Delete, Install, Model];
        let mut found = self.left();
        // "Where is the config read" is about both words.
        if found.is_empty() || self.is(Is::Where) && !self.is(Is::Project) {
            let named = self.all.iter().filter(|(_, class)| class.is_some_and(|class| MATTERS.contains(&class)));
            let named: Vec<String> = named.map(|(word, _)| word.clone()).collect();
            found.splice(0..0, named);
        }
        found.truncate(4);
        found
    }

    /// Everything that may be the name of a declaration, the surest first.
    pub(super) fn candidates(&self) -> Vec<String> {
        once(self.names().into_iter().filter(|name| !name.contains(' ')).chain(self.left()))
    }
}

/// Whether a word may be the name of something.
fn significant(word: &str) -> bool {
    word.chars().count() > 2 && class(word).is_none() && !is_common(word) || ["total", "main"].contains(&word)
}

/// Whether a word is spelled as only names in code are.
pub(super) fn spelled(word: &str) -> bool {
    word.trim_matches('_').contains('_')
        || word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase)
}

/// Texts between backticks, else between quotes.
fn quoted(prompt: &str) -> Vec<String> {
    for (open, close) in [('`', '`'), ('"', '"'), ('\u{201c}', '\u{201d}')] {
        let mut found = Vec::new();
        let mut rest = prompt;
        while let Some((_, after)) = rest.split_once(open) {
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
            let word = word.trim_start_matches('@').trim_matches(['\'', ',', ';', ':', '?', '!', '(', ')']);
            word.trim_end_matches('.').trim_end_matches("'s")
        })
        .filter(|word| {
            let named = word.rsplit_once('.').is_some_and(|(stem, extension)| {
                let letters = extension.chars().all(|c| c.is_ascii_alphanumeric());
                let number = extension.chars().all(|c| c.is_ascii_digit());
                !stem.is_empty() && (1..=5).contains(&extension.len()) && letters && !number
            });
            let file = ["Makefile", "Dockerfile", "LICENSE", "justfile", ".gitignore"].contains(word);
            !word.contains("://") && (named || file || word.contains('/') && word.len() > 1)
        })
        .map(str::to_owned)
        .collect()
}
