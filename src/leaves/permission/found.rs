//! What a find, or git, prints for the next command of its pipeline or for a loop: names of files.

use super::commands::find::Tests;
use super::commands::{self, Reads};
use super::files::{Files, MAX_NAMES};
use super::glob::{self, Case};
use super::paths::{Cwd, below, paths};
use super::places::Places;
use super::shell::{Node, Piece, Redirect, RedirectKind, Simple, Word, parse};

/// Names that a find prints for the next command of its pipeline.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) reads: Reads,
    /// Each ends with a NUL.
    pub(super) zero: bool,
    /// The find itself.
    pub(super) words: Vec<Word>,
    tests: Tests,
    /// Patterns for the names in git's index, where it is git that prints them.
    pub(super) tracked: Option<Vec<String>>,
}

/// Whether it is one command, or a loop, that reads from its pipe.
pub(super) fn is_piped(node: &Node) -> bool {
    match node {
        Node::Simple(command) => command.redirects.iter().all(|redirect| redirect.kind == RedirectKind::Write),
        node => matches!(node, Node::Block { .. }),
    }
}

/// The command that is all of the construct.
pub(super) fn only(node: &Node) -> Option<&Simple> {
    match node {
        Node::Simple(command) => Some(command),
        Node::Sequence(nodes) if nodes.len() == 1 => only(&nodes[0]),
        _ => None,
    }
}

/// What the substitution finds that is the whole word, split into names.
pub(super) fn substituted(word: &Word) -> Option<Found> {
    let [Piece::Dynamic(one)] = word.pieces.as_slice() else { return None };
    let line = one.source.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')).filter(|_| !one.is_one())?;
    let name = line.trim_start().split(' ').next();
    matches!(name, Some("find" | "git")).then_some(())?;
    found(&Node::Simple(only(&parse(line).ok()?.node)?.clone()))
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
    if name.literal()? == "git" {
        return listed(&command.words, &texts);
    }
    if name.literal()? != "find" || texts.iter().any(|text| matches!(text.as_str(), "-printf" | "-ls" | "-print")) {
        return None;
    }
    let mut reads = commands::reads(&command.words).ok()?;
    if reads.paths.is_empty() {
        reads.paths.push(commands::plain("."));
    }
    let zero = texts.iter().any(|text| text == "-print0");
    Some(Found { reads, zero, words: command.words.clone(), tests: Tests::of(&texts), tracked: None })
}

/// What a plain `git ls-files` prints: names in the index.
fn listed(words: &[Word], texts: &[String]) -> Option<Found> {
    let (subcommand, rest) = texts.split_first()?;
    let options = rest.iter().take_while(|text| text.starts_with('-') && *text != "--").count();
    let (options, patterns) = rest.split_at(options);
    let plain = |text: &String| matches!(text.as_str(), "-z" | "-c" | "--cached");
    if subcommand != "ls-files" || !options.iter().all(plain) {
        return None;
    }
    let mut patterns: Vec<String> = patterns.iter().filter(|text| *text != "--").cloned().collect();
    // With magic before it, it may leave out what it names.
    if patterns.iter().any(|pattern| pattern.starts_with(':') || pattern.contains('\\')) {
        patterns.clear();
    }
    let zero = options.iter().any(|text| text == "-z");
    let reads = commands::reads(words).ok()?;
    Some(Found { reads, zero, words: words.to_vec(), tests: Tests::of(&[]), tracked: Some(patterns) })
}

impl Found {
    /// Every path that find may print, as one word each; None when there are too many to tell, or one of them may be more
    /// than one word for xargs.
    pub(super) fn names(&self, cwd: &Cwd, places: &Places, files: &dyn Files) -> Option<Vec<Word>> {
        let splits = |text: &str| text.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\'));
        if let Some(patterns) = &self.tracked {
            let [folder] = cwd.0.as_deref()? else { return None };
            let folder = files.resolve(folder);
            let all = files.tracked(&folder)?;
            let fits = |name: &str| {
                let below = |pattern: &str| name.starts_with(pattern.trim_start_matches("./"));
                patterns.is_empty() || patterns.iter().any(|one| below(one) || glob::may_fit(one, name, Case::Ignored))
            };
            if files.spend(all.len() * (1 + patterns.len())) {
                return None;
            }
            let mut names = vec![commands::plain(folder.to_str()?)];
            for path in &all {
                let Some(name) = path.strip_prefix(&folder).ok().map(|name| name.to_str()) else { continue };
                // Git puts others in quotes.
                let name =
                    name.filter(|name| !name.starts_with('-') && name.is_ascii() && (self.zero || !splits(name)))?;
                if fits(name) {
                    names.push(commands::plain(path.to_str()?));
                }
            }
            return (names.len() <= MAX_NAMES).then_some(names);
        }
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
