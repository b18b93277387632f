//! What the words of a command name: files that are read, written, removed.

mod named;
mod shown;
mod tracked;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::commands::{Reach, Reads, Tracked};
use super::decide::{Query, Shown, Verdict, show};
use super::evaluate::evaluates;
use super::files::{Files, MAX_NAMES, MAX_PATH, Step, Walk, walk};
use super::glob::{self, Case};
use super::places::{Places, is_set_apart, only_sources};
use super::rule::{Specifier, Strictness};
use super::shell::{Node, Piece, Word};
use super::values;
use super::vocabulary::Matches;
use super::{Behavior, Mode};
pub(super) use named::{judge_raw, judge_words};
pub(super) use shown::Closed;
pub(super) use shown::judge_gathered;
use shown::{judge_patterns, judge_shown};
use tracked::judge_tracked;

/// Where the shell may be by now; None when nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Cwd(pub(super) Option<Vec<PathBuf>>);

impl Cwd {
    pub(super) fn or(self, other: Cwd) -> Cwd {
        match (self.0, other.0) {
            (Some(mut all), Some(more)) => {
                for path in more {
                    if !all.contains(&path) {
                        all.push(path);
                    }
                }
                Cwd((all.len() <= 8).then_some(all))
            }
            _ => Cwd(None),
        }
    }
}

/// The word as text with the home folder in place of `~`; None when bash decides.
pub(super) fn path_text(word: &Word, places: &Places) -> Option<String> {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Tilde => text.push_str(places.home.as_deref()?.to_str()?),
            // A line that sets it asks.
            Piece::Dynamic(expansion) if text.is_empty() && expansion.variable() == Some("HOME") => {
                text.push_str(places.home.as_deref()?.to_str()?);
            }
            Piece::Glob(_) | Piece::Dynamic(_) => return None,
        }
    }
    Some(text)
}

/// The paths that a word may name, globs expanded; None when that is not known.
pub(super) fn paths(word: &Word, cwd: &Cwd, places: &Places, files: &dyn Files) -> Option<Vec<PathBuf>> {
    if word.source.len() > MAX_PATH {
        return None;
    }
    if !word.has_glob() {
        let text = path_text(word, places)?;
        if Path::new(&text).is_absolute() {
            return Some(vec![PathBuf::from(text)]);
        }
        return Some(cwd.0.as_ref()?.iter().map(|cwd| cwd.join(&text)).collect());
    }
    // Quoted characters that look like a glob's make the pattern ambiguous as text.
    let quoted = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains(['*', '?', '[', '\\']));
    if word.is_dynamic() || word.pieces.iter().any(quoted) {
        return None;
    }
    let pattern: String = word
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Glob(c) => Some(c.to_string()),
            Piece::Tilde => places.home.as_deref().and_then(Path::to_str).map(str::to_owned),
            Piece::Dynamic(_) => None,
        })
        .collect::<Option<_>>()?;
    let bases = if pattern.starts_with('/') { vec![PathBuf::from("/")] } else { cwd.0.clone()? };
    let mut found: Vec<PathBuf> = bases.clone();
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !part.contains(['*', '?', '[']) {
            found = found.into_iter().map(|path| path.join(part)).collect();
            continue;
        }
        let mut next = Vec::new();
        for folder in &found {
            let names = files.names(folder);
            if names.len() >= MAX_NAMES || files.spend(names.len() * (1 + part.len() / 8)) {
                return None;
            }
            let hidden = part.starts_with('.');
            next.extend(
                names
                    .iter()
                    .filter(|name| (hidden || !name.starts_with('.')) && glob::may_fit(part, name, Case::Ignored))
                    .map(|name| folder.join(name)),
            );
            // A name that is not text cannot be looked up.
            if next.len() > MAX_NAMES || next.iter().any(|path| is_no_text(path)) {
                return None;
            }
        }
        found = next;
    }
    // What matches nothing is passed on as it is.
    found.extend(bases.iter().map(|base| base.join(pattern.trim_start_matches('/'))));
    Some(found)
}

/// What is said of a line that takes more steps than any may.
pub(super) fn too_much() -> Verdict {
    Verdict::new(Behavior::Ask, "it takes too long to judge")
}

/// Judges what a reading command looks at; the worst comes first.
pub(super) fn judge_reads(query: &Query, reads: &Reads, shown: Shown, cwd: &Cwd, files: &dyn Files) -> Verdict {
    judge_closed(query, reads, shown, cwd, files, &Closed::nothing())
}

/// The same for one that the kernel is to hold to reading: secrets that it does not name stay closed to it.
pub(super) fn judge_closed(
    query: &Query,
    reads: &Reads,
    shown: Shown,
    cwd: &Cwd,
    files: &dyn Files,
    closed: &Closed,
) -> Verdict {
    let mut worst = Verdict::new(Behavior::Allow, "it only reads");
    if let Err(reason) = gate(query, reads, cwd, files) {
        // Who allowed `git status` meant no program that a repository names.
        let firm = query.mode != Mode::Bypass;
        worse(&mut worst, Verdict { behavior: Behavior::Ask, reason, firm });
    }
    if reads.addresses && query.mode != Mode::Bypass {
        let folders = starts(reads, cwd, query.places, files).0.unwrap_or_default();
        if folders.iter().any(|folder| files.names_account(folder, query.places.git_user())) {
            worse(&mut worst, Verdict::firm("it shows the address of a remote with the account or token in it"));
        }
    }
    let mut all = Vec::new();
    // What git is given is meant from where it starts; the folders of `-C` come first.
    let inner = starts(reads, cwd, query.places, files);
    let entered = reads.git.as_ref().map_or(0, Vec::len);
    let mut named = HashSet::new();
    for (at, word) in reads.paths.iter().enumerate() {
        // The same glob names the same files.
        if at >= entered && !named.insert(word) {
            continue;
        }
        let cwd = if at < entered { cwd } else { &inner };
        // Standard input.
        if word.literal().as_deref() == Some("-") {
            continue;
        }
        match paths(word, cwd, query.places, files) {
            Some(paths) => {
                if let Some(verdict) = word.has_glob().then(|| may_be_ruled(query, &paths, files)).flatten() {
                    worse(&mut worst, verdict);
                }
                if matches!(word.pieces.first(), Some(Piece::Glob(_)))
                    && paths.iter().any(|path| like_option(path, cwd))
                {
                    let reason = format!("{} also names a file whose name looks like an option", word.source);
                    worse(&mut worst, Verdict::new(Behavior::Ask, reason));
                }
                all.extend(paths);
            }
            None => {
                let reason = format!("it is unknown where {} leads", word.source);
                // It may be what a rule about files forbids.
                let firm = [Behavior::Deny, Behavior::Ask]
                    .into_iter()
                    .any(|behavior| query.entries(behavior).any(|entry| entry.rule.is_about(Matches::Reading)));
                // Where the folder is unknown, the name still says what it is.
                let of_process = word.prefix().starts_with("/proc");
                let secret = query.mode != Mode::Bypass
                    && (of_process || inner.0.is_none() && may_be_secret(word, reads, query, files));
                worse(&mut worst, Verdict { behavior: Behavior::Ask, reason, firm: firm || secret });
            }
        }
    }
    if !reads.from_top.is_empty() {
        let top = tops(reads, cwd, query.places, files);
        all.extend(reads.from_top.iter().filter_map(|word| paths(word, &top, query.places, files)).flatten());
    }
    if reads.reach > Reach::Entered && reads.paths.is_empty() {
        match &cwd.0 {
            Some(cwds) => all.extend(cwds.iter().cloned()),
            None => worse(&mut worst, Verdict::new(Behavior::Ask, "it is unknown which folder it looks in")),
        }
    }
    let reach = match reads.reach {
        Reach::Entered if enters(reads, &all, cwd, query.places, files) => Reach::Everything,
        Reach::Entered => Reach::Paths,
        reach => reach,
    };
    let deep = reach > Reach::Paths;
    let rules = query.rules.entries().iter().filter(|entry| entry.rule.is_about(Matches::Reading)).count();
    let mut cleared: Vec<PathBuf> = Vec::new();
    let mut followed: Vec<PathBuf> = Vec::new();
    for path in &all {
        if files.spend(6 + rules) {
            return too_much();
        }
        if matches!(path.to_str(), Some("/dev/null" | "/dev/stdin")) {
            continue;
        }
        let mut verdict = show(query, query.vocabulary.tool(Matches::Reading), path, shown, files);
        // A rule for a program that reads thinks of no such places.
        let asks = verdict.behavior == Behavior::Ask && shown == Shown::Contents && query.mode != Mode::Bypass;
        verdict.firm |= asks && is_set_apart(&files.resolve(path), query.places.home.as_deref(), files);
        // Outside, where a rule may let it pass, names are not secret.
        let outside = reach > Reach::Names && query.mode != Mode::Bypass && verdict.behavior == Behavior::Ask;
        // What a folder reaches holds what a folder in it reaches.
        let within = || cleared.iter().any(|top| files.resolve(path).starts_with(top));
        let reached = (outside || deep && verdict.behavior == Behavior::Allow) && !within();
        worse(&mut worst, verdict);
        if reads.follows && deep {
            let led = led_to(path, files);
            if led.as_ref().is_none_or(|led| !led.is_empty()) {
                let reason = format!("it follows links, and those below {} may lead anywhere", path.display());
                // Who allowed the program meant none of what a link of the folder names.
                let beyond = led.iter().flatten().any(|real| !query.places.inside(real, files)) || led.is_none();
                let firm = beyond && reach > Reach::Names && query.mode != Mode::Bypass;
                worse(&mut worst, Verdict { behavior: Behavior::Ask, reason, firm });
            }
            followed.extend(led.into_iter().flatten());
        }
        if reached && query.places.reaches_private(path, files) {
            worse(&mut worst, Verdict::firm(format!("{} contains cocode's own files or secrets", path.display())));
        } else if reached && cleared.len() < MAX_CLEARED {
            cleared.push(files.resolve(path));
        }
    }
    if reads.tracked != Tracked::No {
        let verdicts = [judge_tracked(query, reads, cwd, files), judge_patterns(query, reads, files)];
        verdicts.into_iter().flatten().for_each(|verdict| worse(&mut worst, verdict));
    }
    for real in &followed {
        worse(&mut worst, show(query, query.vocabulary.tool(Matches::Reading), real, shown, files));
    }
    all.extend(followed);
    // Also where it asks already: a rule may answer that, and no rule speaks of secrets.
    if reach > Reach::Names && worst.behavior < Behavior::Deny && !worst.firm {
        worse(&mut worst, judge_shown(query, reads, reach, all, files, closed));
    }
    if deep {
        let ruled = |behavior| {
            query
                .entries(behavior)
                .any(|entry| entry.rule.is_about(Matches::Reading) && *entry.rule.specifier() != Specifier::Any)
        };
        if ruled(Behavior::Deny) || ruled(Behavior::Ask) {
            worse(&mut worst, Verdict::firm("it looks at everything below, and a Read rule may forbid some of it"));
        }
    }
    worst
}

/// Most folders that are kept as ones that reach nothing private.
const MAX_CLEARED: usize = 8;

/// Whether the word, in a folder that nobody knows, may name a file with secrets, or one in which such files are shown.
fn may_be_secret(word: &Word, reads: &Reads, query: &Query, files: &dyn Files) -> bool {
    let last = word.known();
    if reads.reach > Reach::Names || word.has_glob() {
        let globs = reads.only.clone().unwrap_or_else(|| vec![last.rsplit('/').next().unwrap_or_default().to_owned()]);
        return !globs.iter().all(|glob| only_sources(glob));
    }
    query.places.private(&query.places.project.join(last), files).is_some()
}

/// Whether a command that compares looks into folders. Git does outside of a repository, or where a path lies outside of it.
fn enters(reads: &Reads, all: &[PathBuf], cwd: &Cwd, places: &Places, files: &dyn Files) -> bool {
    if !all.iter().any(|path| !files.is_file(path) && !files.names(path).is_empty()) {
        return false;
    }
    if reads.git.is_none() {
        return true;
    }
    let start = starts(reads, cwd, places, files);
    let tracked = |folder: &PathBuf| {
        let real = files.resolve(folder);
        let top = real.ancestors().find(|top| files.names(top).iter().any(|name| name == ".git"));
        top.is_some_and(|top| all.iter().all(|path| files.resolve(path).starts_with(top)))
    };
    !start.0.is_some_and(|folders| folders.iter().all(tracked))
}

/// What the command reads outside of the workspace, links followed.
pub(super) fn outside(reads: &Reads, cwd: &Cwd, places: &Places, files: &dyn Files) -> Vec<PathBuf> {
    let entered = reads.git.as_ref().map_or(0, Vec::len);
    let inner = starts(reads, cwd, places, files);
    let words = reads.paths.iter().enumerate();
    let named = words.filter_map(|(at, word)| paths(word, if at < entered { cwd } else { &inner }, places, files));
    let outside = named.flatten().filter(|path| !places.inside(path, files));
    let mut outside: Vec<PathBuf> = outside.map(|path| files.resolve(&path)).collect();
    outside.dedup();
    outside
}

/// The folders that git may start in, if the command starts it.
pub(super) fn starts(reads: &Reads, cwd: &Cwd, places: &Places, files: &dyn Files) -> Cwd {
    reads.git.iter().flatten().fold(cwd.clone(), |cwd, word| Cwd(paths(word, &cwd, places, files)))
}

/// The folders of the project that may be the top of the work tree in which git starts.
fn tops(reads: &Reads, cwd: &Cwd, places: &Places, files: &dyn Files) -> Cwd {
    let inside = |folder: &&Path| folder.starts_with(&places.project);
    let above = |folder: &PathBuf| -> Vec<PathBuf> {
        folder.ancestors().skip(1).take_while(inside).map(Path::to_owned).collect()
    };
    Cwd(starts(reads, cwd, places, files).0.map(|folders| folders.iter().flat_map(above).collect()))
}

/// Whether git, if the command starts it, finds nothing to obey where it looks.
pub(super) fn gate(query: &Query, reads: &Reads, cwd: &Cwd, files: &dyn Files) -> Result<(), String> {
    if reads.git.is_none() {
        return Ok(());
    }
    let folders = starts(reads, cwd, query.places, files).0.ok_or("it is unknown which folder git starts in")?;
    folders.iter().try_for_each(|folder| files.repository(folder))
}

/// A rule that a glob may meet in a folder whose names nobody could look up. Its own text is the last of the paths.
fn may_be_ruled(query: &Query, paths: &[PathBuf], files: &dyn Files) -> Option<Verdict> {
    let [pattern] = paths else { return None };
    let (folder, name) = (pattern.parent()?, pattern.file_name()?.to_str()?);
    if !files.names(folder).is_empty() {
        return None;
    }
    [Behavior::Deny, Behavior::Ask].into_iter().find_map(|behavior| {
        let entry = query.entries(behavior).find(|entry| {
            let reads = query.vocabulary.tool(Matches::Reading);
            entry.rule.last_part().is_some_and(|last| {
                glob::may_fit(name, last, Case::Ignored)
                    && (name.starts_with('.') || !last.starts_with('.'))
                    && entry.rule.covers_path(reads, &folder.join(last), Strictness::Possible, query.places, files)
            })
        })?;
        Some(Verdict { behavior, reason: super::decide::because(entry), firm: true })
    })
}

pub(super) fn starts_with_glob(word: &Word) -> bool {
    matches!(word.pieces.first(), Some(Piece::Glob(_)))
}

/// Whether a word that starts with a glob may stand for a name that starts with a dash.
pub(super) fn may_become_option(word: &Word, cwd: &Cwd, places: &Places, files: &dyn Files) -> bool {
    starts_with_glob(word)
        && paths(word, cwd, places, files).is_none_or(|paths| paths.iter().any(|path| like_option(path, cwd)))
}

/// Whether bash passes the path on as a word that starts with a dash.
fn like_option(path: &Path, cwd: &Cwd) -> bool {
    cwd.0.iter().flatten().any(|cwd| path.strip_prefix(cwd).is_ok_and(|word| word.to_string_lossy().starts_with('-')))
}

/// Most names that are looked at for links.
const MAX_FOLLOWED: usize = 4 * MAX_NAMES;

/// Everything below the folders without what lies behind links, each with whether it is one; None when there is too much to
/// tell, or a name that nobody can write.
pub(super) fn below(tops: Vec<PathBuf>, files: &dyn Files) -> Option<Vec<(PathBuf, bool)>> {
    let mut all = Vec::new();
    let end = walk(tops, MAX_FOLLOWED, files, |path, link| {
        if is_no_text(path) {
            return Step::Stop;
        }
        all.push((path.to_owned(), link));
        Step::Into
    });
    (end == Walk::Done).then_some(all)
}

/// Whether the path was read with a name in it that is not text: it is not the path that was meant.
fn is_no_text(path: &Path) -> bool {
    path.to_str().is_none_or(|text| text.contains(char::REPLACEMENT_CHARACTER))
}

/// Where links below the folder lead that lead out of it; None when there is too much to tell.
fn led_to(top: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
    let top = files.resolve(top);
    let all = below(vec![top.clone()], files)?;
    let led = all.into_iter().filter(|(_, link)| *link).map(|(path, _)| files.resolve(&path));
    Some(led.filter(|real| !real.starts_with(&top)).collect())
}

/// Keeps the stricter of two.
pub(super) fn worse(worst: &mut Verdict, other: Verdict) {
    if (other.behavior, other.firm) > (worst.behavior, worst.firm) {
        *worst = other;
    }
}

/// Commands after which nobody knows where the shell is, or what its names mean.
pub(super) fn shell_state(name: &str) -> bool {
    const NAMES: &str = "pushd popd eval source . trap alias shopt set enable hash builtin exec unset declare typeset local \
                         export readonly read mapfile readarray";
    NAMES.split(' ').any(|known| known == name)
}

/// Whether the words do no more than export variables that change nothing.
pub(super) fn exports(words: &[Word]) -> bool {
    words.first().and_then(Word::literal).as_deref() == Some("export") && evaluates(words).is_none()
}

/// Whether anything in the construct may change the folder.
pub(super) fn moves(node: &Node) -> bool {
    match node {
        Node::Simple(command) if values::reads_names(&command.words).is_some() || exports(&command.words) => false,
        Node::Simple(command) => {
            let behind = command.words.first().is_some_and(|name| name.literal().as_deref() == Some("command"));
            command.words.iter().take(4).enumerate().any(|(at, word)| match word.literal() {
                Some(text) => text == "cd" || shell_state(&text),
                None => at == 0 || behind,
            })
        }
        Node::And(left, right) | Node::Or(left, right) => moves(left) || moves(right),
        Node::Sequence(nodes) | Node::Apart(nodes) => nodes.iter().any(moves),
        Node::Not(inner) => moves(inner),
        Node::Block { parts, .. } => parts.iter().any(moves),
        Node::Function { body, .. } => moves(body),
        Node::Redirected { body, .. } => body.as_ref().is_some_and(|body| moves(body)),
    }
}
