//! What a find prints for the next command of its pipeline.

use super::commands::find::Tests;
use super::commands::{self, Reads};
use super::files::Files;
use super::paths::{Cwd, below, paths};
use super::places::Places;
use super::shell::{Node, Redirect, RedirectKind, Word};

/// Names that a find prints for the next command of its pipeline.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) reads: Reads,
    /// Each ends with a NUL.
    pub(super) zero: bool,
    /// The find itself.
    pub(super) words: Vec<Word>,
    tests: Tests,
}

/// Whether it is one command that reads from its pipe.
pub(super) fn is_piped(node: &Node) -> bool {
    matches!(node, Node::Simple(command) if command.redirects.iter().all(|redirect| redirect.kind == RedirectKind::Write))
}

/// What the construct finds; None when it is not a find that prints just names, which start with what it was given.
pub(super) fn found(node: &Node) -> Option<Found> {
    let Node::Simple(command) = node else { return None };
    // What it complains of is not a name, and holds any text of its arguments.
    let silences = |redirect: &Redirect| {
        redirect.kind == RedirectKind::Write
            && redirect.fd == Some(2)
            && redirect.target.literal().as_deref() == Some("/dev/null")
    };
    command.redirects.iter().all(silences).then_some(())?;
    let (name, arguments) = command.words.split_first()?;
    let texts: Vec<String> = arguments.iter().map(Word::literal).collect::<Option<_>>()?;
    if name.literal()? != "find" || texts.iter().any(|text| matches!(text.as_str(), "-printf" | "-ls" | "-print")) {
        return None;
    }
    let mut reads = commands::reads(&command.words).ok()?;
    if reads.paths.is_empty() {
        reads.paths.push(commands::plain("."));
    }
    let zero = texts.iter().any(|text| text == "-print0");
    Some(Found { reads, zero, words: command.words.clone(), tests: Tests::of(&texts) })
}

impl Found {
    /// Every path that find may print, as one word each; None when there are too many to tell, or one of them may be more
    /// than one word for xargs.
    pub(super) fn names(&self, cwd: &Cwd, places: &Places, files: &dyn Files) -> Option<Vec<Word>> {
        let splits = |text: &str| text.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\'));
        let mut all = self.reads.paths.clone();
        for word in &self.reads.paths {
            if !self.zero && splits(&word.known()) {
                return None;
            }
            for (path, link) in below(paths(word, cwd, places, files)?, files)? {
                let name = path.file_name()?.to_str()?;
                if !self.zero && splits(name) {
                    return None;
                }
                if self.tests.may_pass(name, link) {
                    all.push(commands::plain(path.to_str()?));
                }
            }
        }
        Some(all)
    }
}
