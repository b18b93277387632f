//! What people read of a call: what it does, in place of the tool's name. The transcript view has the names.

use std::borrow::Cow;
use std::collections::HashSet;

use super::call::Call;
use crate::message::{Content, Display, Outcome, Todo, TodoStatus};
use crate::tui::render::Row;
use crate::tui::render::wrap::{self, Piece, Prefix};
use crate::tui::theme::Theme;

/// What only looks: several in a row are one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Read,
    Listed,
    Searched,
    /// git was asked for something, and nothing else ran.
    Git,
}

/// A tool, what it is asked to do, does and did, and whether that only looks.
struct Words {
    tool: &'static str,
    verbs: [&'static str; 3],
    look: Option<Look>,
}

const fn words(tool: &'static str, verbs: [&'static str; 3], look: Option<Look>) -> Words {
    Words { tool, verbs, look }
}

const WORDS: [Words; 17] = [
    words("Read", ["Read", "Reading", "Read"], Some(Look::Read)),
    words("LS", ["List", "Listing", "Listed"], Some(Look::Listed)),
    words("Grep", ["Search for", "Searching for", "Searched for"], Some(Look::Searched)),
    words("Glob", ["Look for", "Looking for", "Looked for"], Some(Look::Searched)),
    words("Edit", ["Edit", "Editing", "Edited"], None),
    words("NotebookEdit", ["Edit", "Editing", "Edited"], None),
    words("Write", ["Write", "Writing", "Wrote"], None),
    words("Bash", ["Run", "Running", "Ran"], None),
    words("WebFetch", ["Fetch", "Fetching", "Fetched"], None),
    words("WebSearch", ["Search the web for", "Searching the web for", "Searched the web for"], None),
    words("Recall", ["Recall", "Recalling", "Recalled"], None),
    words("Task", ["Agent", "Agent", "Agent"], None),
    words("Skill", ["Skill", "Skill", "Skill"], None),
    words("TodoWrite", ["Todos", "Todos", "Todos"], None),
    words("AskUserQuestion", ["Question", "Question", "Question"], None),
    words("EnterPlanMode", ["Plan first", "Plan first", "Plan first"], None),
    words("ExitPlanMode", ["Plan", "Plan", "Plan"], None),
];

fn of(tool: &str) -> Option<&'static Words> {
    WORDS.iter().find(|words| words.tool == tool)
}

/// What a tool does while it works, for the spinner.
pub fn doing(tool: &str) -> String {
    match of(tool).map(|words| (words.tool, words.verbs[1])) {
        Some(("Bash", _)) => "Running a command".to_owned(),
        Some(("TodoWrite", _)) => "Updating the todos".to_owned(),
        Some(("AskUserQuestion" | "EnterPlanMode" | "ExitPlanMode", _)) => "Waiting for you".to_owned(),
        Some(("Task", _)) => "Waiting for an agent".to_owned(),
        Some(("Skill", _)) => "Running a skill".to_owned(),
        Some((_, verb)) => verb.trim_end_matches(" for").to_owned(),
        None => format!("Running {tool}"),
    }
}

/// What the model writes while it asks for a tool, for the spinner.
pub fn preparing(tool: &str) -> String {
    match tool {
        "Edit" | "NotebookEdit" => "Preparing an edit".to_owned(),
        "Write" => "Writing a file".to_owned(),
        "Bash" => "Preparing a command".to_owned(),
        "TodoWrite" => "Updating the todos".to_owned(),
        "ExitPlanMode" | "EnterPlanMode" => "Preparing a plan".to_owned(),
        "AskUserQuestion" => "Preparing a question".to_owned(),
        "Task" => "Briefing an agent".to_owned(),
        _ => match of(tool) {
            Some(Words { look: Some(Look::Searched), .. }) => "Preparing a search".to_owned(),
            Some(Words { look: Some(_), .. }) => "Looking for what to read".to_owned(),
            _ => format!("Preparing {tool}"),
        },
    }
}

/// How many are done: `1 of 5`.
pub(super) fn progress(items: &[Todo]) -> String {
    let done = items.iter().filter(|item| item.status == TodoStatus::Completed).count();
    format!("{done} of {}", items.len())
}

impl Call {
    fn exit_code(&self) -> Option<i32> {
        match self.result.as_ref()?.display {
            Some(Display::Command { code, .. }) => code,
            _ => None,
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        self.result.as_ref().map(|result| result.outcome)
    }

    /// What it does in words, and what follows them; none for a tool that has none.
    pub(super) fn words(&self) -> Option<(String, Cow<'_, str>)> {
        let words = of(&self.tool)?;
        if let Some(commit) = self.commit() {
            return Some(("Committed".to_owned(), Cow::Owned(format!("{} \"{}\"", commit.hash, commit.subject))));
        }
        let [wants, runs, ran] = words.verbs;
        let verb = match self.outcome() {
            Some(Outcome::Ok) => ran,
            // It ran to its end, whatever it said there.
            Some(Outcome::Error) if self.exit_code().is_some() => ran,
            None if !self.abandoned => runs,
            _ => wants,
        };
        Some(match self.result.as_ref().and_then(|result| result.display.as_ref()) {
            Some(Display::Todos { items }) => (format!("{verb}: {}", progress(items)), Cow::Borrowed("")),
            Some(Display::Diff(diff)) if diff.created && self.outcome() == Some(Outcome::Ok) => {
                ("Created".to_owned(), Cow::Borrowed(self.title.as_str()))
            }
            _ if words.tool == "Glob" => (verb.to_owned(), files(&self.title)),
            _ => (verb.to_owned(), Cow::Borrowed(self.title.as_str())),
        })
    }

    /// The line of the user's decision tells all of it: the answer to a question, or a plain no.
    pub(super) fn is_decision(&self) -> bool {
        let asks = matches!(self.tool.as_str(), "AskUserQuestion" | "EnterPlanMode" | "ExitPlanMode");
        match self.result.as_ref().map(|result| (result.outcome, &result.display)) {
            Some((Outcome::Ok, _)) => asks,
            Some((Outcome::Denied, Some(Display::Said { answers }))) => answers.is_empty(),
            _ => false,
        }
    }

    fn look(&self) -> Option<Look> {
        if self.tool == "Bash" && asks_git(&self.title) { Some(Look::Git) } else { of(&self.tool)?.look }
    }

    /// git was asked for something: what it said is for the model, and counted.
    pub(super) fn asked_git(&self) -> bool {
        self.look() == Some(Look::Git) && self.only_looks()
    }

    /// The commit that it made, where it did that and no more.
    pub(super) fn commit(&self) -> Option<Commit<'_>> {
        let commits = self.title.starts_with("git commit")
            || self.title.starts_with("git add ") && self.title.contains("&& git commit");
        let result = self.result.as_ref().filter(|result| result.outcome == Outcome::Ok)?;
        match (self.tool == "Bash" && commits, result.content.as_slice()) {
            (true, [Content::Text { text }]) => Commit::read(text),
            _ => None,
        }
    }

    /// It only looks, or looked, and nothing is to be said of how it went.
    pub fn only_looks(&self) -> bool {
        self.look().is_some() && matches!(self.outcome(), None | Some(Outcome::Ok)) && !self.abandoned
    }
}

/// Most kinds of files that are named.
const KINDS: usize = 4;

/// The files that a pattern means, in words where it is one of the usual ones.
fn files(title: &str) -> Cow<'_, str> {
    let (pattern, place) = title.split_at(title.find(" in ").unwrap_or(title.len()));
    let name = pattern.strip_prefix("**/").unwrap_or(pattern);
    let plain = |text: &str| !text.is_empty() && !text.contains(['*', '?', '[', ']', '{', '}', '\\', '/', ',']);
    let listed = |inner: &str, before: &str, after: &str| {
        let kinds: Vec<&str> = inner.split(',').collect();
        let named = kinds.iter().take(KINDS).map(|kind| format!("{before}{kind}")).collect::<Vec<_>>().join(", ");
        match kinds.len().saturating_sub(KINDS) {
            0 => format!("{named}{after}"),
            more => format!("{named} and {more} more kinds of files"),
        }
    };
    let words = match name {
        "*" | "**" => "all files".to_owned(),
        _ if plain(name) => name.to_owned(),
        _ => match (name.strip_prefix("*."), name.strip_prefix("*.{").and_then(|rest| rest.strip_suffix('}'))) {
            (Some(end), _) if plain(end) => format!(".{end} files"),
            (_, Some(ends)) if ends.split(',').all(plain) => listed(ends, ".", " files"),
            _ => match name.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(names) if !names.contains(['{', '}']) => listed(names, "", ""),
                _ => return Cow::Borrowed(title),
            },
        },
    };
    Cow::Owned(format!("{words}{place}"))
}

/// Whether a command line is one call of git that only reads.
fn asks_git(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("git ") else { return false };
    let reads = matches!(rest.split(' ').next(), Some("status" | "diff" | "log" | "show" | "rev-parse" | "ls-files"));
    reads && !rest.contains([';', '&', '|', '<', '>', '`', '$', '\n', '…']) && !rest.contains("--output")
}

/// What git says of a commit that it made.
pub(super) struct Commit<'a> {
    hash: &'a str,
    subject: &'a str,
    /// How many files, and how many lines came and went.
    files: &'a str,
    lines: [&'a str; 2],
}

impl<'a> Commit<'a> {
    /// Reads `[main 1a2b3c4] subject`, and below it nothing but what git adds to that. What hooks say is above.
    fn read(text: &'a str) -> Option<Commit<'a>> {
        let made = |line: &'a str| {
            let (place, subject) = line.strip_prefix('[')?.split_once("] ")?;
            let hash = place.rsplit(' ').next()?;
            (hash.len() >= 7 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some((hash, subject))
        };
        let mut lines = text.trim_end().lines();
        let (hash, subject) = lines.by_ref().find_map(made)?;
        let mut commit = Commit { hash, subject, files: "", lines: ["0"; 2] };
        for line in lines {
            let line = line.strip_prefix(' ')?;
            for part in line.split(", ").filter(|_| line.contains(" changed")) {
                match part.split_once(' ') {
                    Some((count, what)) if what.starts_with("file") => commit.files = count,
                    Some((count, what)) if what.starts_with("insertion") => commit.lines[0] = count,
                    Some((count, what)) if what.starts_with("deletion") => commit.lines[1] = count,
                    _ => {}
                }
            }
        }
        Some(commit)
    }

    /// `2 files, +3 −1`.
    pub(super) fn size(&self) -> String {
        let [added, removed] = self.lines;
        match self.files {
            "" => String::new(),
            files => format!("{files} file{}, +{added} −{removed}", if files == "1" { "" } else { "s" }),
        }
    }
}

/// One line for several calls that only looked: `Read 2 files, listed 1 folder, searched twice`.
pub fn looked<'a>(calls: impl Iterator<Item = &'a Call> + Clone, width: usize, theme: &Theme) -> Vec<Row> {
    let different = |look: Look| {
        let titles = calls.clone().filter(|call| call.look() == Some(look)).map(|call| call.title.as_str());
        titles.collect::<HashSet<_>>().len()
    };
    let counted = |verb: &str, count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(format!("{verb} 1 {one}")),
        _ => Some(format!("{verb} {count} {more}")),
    };
    let times = |did: &str, look: Look| match calls.clone().filter(|call| call.look() == Some(look)).count() {
        0 => None,
        1 => Some(format!("{did} once")),
        2 => Some(format!("{did} twice")),
        times => Some(format!("{did} {times} times")),
    };
    let parts = [
        counted("read", different(Look::Read), "file", "files"),
        counted("listed", different(Look::Listed), "folder", "folders"),
        times("searched", Look::Searched),
        times("checked git", Look::Git),
    ];
    let mut said = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if let Some(first) = said.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let mark = Prefix::hanging("● ", theme.success);
    let rows = wrap::wrap(&[Piece::new(said, theme.text), Piece::new(" (ctrl+o)", theme.dim)], width, &mark);
    debug_assert!(!rows.is_empty(), "there are calls");
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_files_in_words() {
        for (title, want) in [
            ("**/*.rs", ".rs files"),
            ("*.md in docs", ".md files in docs"),
            ("**/*.{rs,py}", ".rs, .py files"),
            ("**/*.{rs,py,js,ts,go,c}", ".rs, .py, .js, .ts and 2 more kinds of files"),
            ("**/{test_*.py,*_test.go}", "test_*.py, *_test.go"),
            ("**/Cargo.toml", "Cargo.toml"),
            ("**/*", "all files"),
            ("** in src", "all files in src"),
            ("src/**/*.rs", "src/**/*.rs"),
            ("**/*.{rs,p{y,l}}", "**/*.{rs,p{y,l}}"),
            ("[ab]*", "[ab]*"),
            ("", ""),
        ] {
            assert_eq!(files(title), want, "{title}");
        }
    }
}
