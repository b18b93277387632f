//! What a command shows of files that it does not name: below a folder, or out of git.

use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::commands::{Gathered, Reach, Reads};
use super::super::confine;
use super::super::decide::{Query, Verdict, read};
use super::super::files::{Files, MAX_NAMES, Step, Walk, walk};
use super::super::glob::{self, Case};
use super::super::places::{configures_git, holds_keys, may_be_kept, only_sources};
use super::super::rule::Entry;
use super::super::search_filter::ShownAgain;
use super::super::vocabulary::Matches;
use super::super::{Behavior, Mode};
use super::{Cwd, is_no_text, paths, worse};
use crate::sandbox::Level;

/// Most names among which files with secrets are looked for; what lies nearest comes first.
const MAX_SHOWN: usize = 2 * MAX_NAMES;

/// What the kernel keeps closed to a line that it holds to reading.
#[derive(Debug, Default)]
pub(in crate::permission) struct Closed {
    paths: OnceCell<Vec<PathBuf>>,
    why: RefCell<Option<String>>,
}

impl Closed {
    /// For what is not held to that.
    pub(super) fn nothing() -> Closed {
        Closed { paths: OnceCell::from(Vec::new()), why: RefCell::default() }
    }

    /// Whether a secret is closed to the line, which rests on that from now on. Rules about files say more than its name.
    fn holds(&self, query: &Query, path: &Path, why: &str, files: &dyn Files) -> bool {
        let rules = |entry: &Entry| entry.behavior != Behavior::Allow && entry.rule.is_about(Matches::Reading);
        let held = query.level > Level::None && !query.rules.entries().iter().any(rules);
        let paths = || self.paths.get_or_init(|| confine::closed(query, files));
        let closed = held && paths().iter().any(|closed| path.starts_with(closed));
        if closed {
            self.why.borrow_mut().get_or_insert_with(|| why.to_owned());
        }
        closed
    }

    /// Why the command asks where nothing is kept closed; None where it rests on nothing of that.
    pub(in crate::permission) fn why(self) -> Option<String> {
        self.why.into_inner()
    }
}

/// Judges the files with secrets below the folders as if each were read by itself. Folders that hold too much to tell ask,
/// unless no name that may be shown is one of a secret.
pub(super) fn judge_shown(
    query: &Query,
    reads: &Reads,
    reach: Reach,
    tops: Vec<PathBuf>,
    files: &dyn Files,
    closed: &Closed,
) -> Verdict {
    let mut worst = Verdict::new(Behavior::Allow, "it only reads");
    if reads.only.as_ref().is_some_and(|globs| globs.iter().all(|glob| only_sources(glob))) {
        return worst;
    }
    // Who allowed the program did not speak of secrets. Outside, most is the system's.
    let untold = |top: &Path, reason| {
        let firm = query.mode != Mode::Bypass && query.places.inside(top, files);
        Verdict { behavior: Behavior::Ask, reason, firm }
    };
    let crowded = |top: &&PathBuf| files.names(top).len() >= MAX_NAMES;
    if let Some(top) = tops.iter().find(crowded) {
        return untold(top, format!("{} contains too many files to tell what is shown", top.display()));
    }
    let tops: Vec<PathBuf> = tops.iter().map(|top| files.resolve(top)).collect();
    let mut again = (reach == Reach::Visible).then(|| ShownAgain::of(&tops, reads.ignores, files));
    let inner = tops.iter().find(|top| query.places.inside(top, files)).or(tops.first());
    let first = inner.cloned().unwrap_or_default();
    let twins = OnceCell::new();
    let end = walk(tops, MAX_SHOWN, files, |path, link| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_no_text(path) {
            let reason = format!("{} has a name that cannot be judged", path.display());
            worse(&mut worst, untold(path, reason));
            return Step::Stop;
        }
        // Packages are what anybody may fetch, and git's objects are packed.
        if name == "node_modules" || name == "objects" && path.parent().is_some_and(|git| git.ends_with(".git")) {
            return Step::Past;
        }
        if again.as_mut().is_some_and(|again| again.passes_over(path, link, files)) {
            return Step::Past;
        }
        let fits = |globs: &Vec<String>| globs.iter().any(|glob| glob::may_fit(glob, &name, Case::Ignored));
        let secret = || {
            holds_keys(path)
                || configures_git(path)
                || files.shared(path).is_some_and(|own| twins.get_or_init(|| query.places.twins(files)).contains(&own))
        };
        // What lies in a folder is looked at by itself.
        if !link && secret() && files.is_file(path) && reads.only.as_ref().is_none_or(fits) {
            let verdict = read(query, query.vocabulary.tool(Matches::Reading), path, files);
            // Who names files, or starts git, means to read them.
            let met = reads.only.is_none() && reads.git.is_none();
            if !verdict.firm || !met || !closed.holds(query, path, &verdict.reason, files) {
                worse(&mut worst, verdict);
            }
        }
        if worst.behavior < Behavior::Deny && !worst.firm { Step::Into } else { Step::Stop }
    });
    if end == Walk::TooMany {
        let reason = format!("{} contains too many files to tell what is shown: name a folder in it", first.display());
        worse(&mut worst, untold(&first, reason));
    }
    worst
}

/// What is said of a git command that would take a secret into the repository, where git then shows it without a question.
pub(in crate::permission) fn judge_gathered(
    query: &Query,
    gathered: &Gathered,
    cwd: &Cwd,
    files: &dyn Files,
) -> Option<Verdict> {
    if query.mode == Mode::Bypass {
        return None;
    }
    let project = files.resolve(&query.places.project);
    let mut tops = Vec::new();
    for word in &gathered.paths {
        // A pattern of git's own may stand for anything.
        let plain = word.literal().is_none_or(|text| !text.contains(['*', '?', '[', ':']));
        match paths(word, cwd, query.places, files).filter(|_| plain) {
            Some(paths) => tops.extend(paths.iter().map(|path| files.resolve(path))),
            None => tops.push(project.clone()),
        }
    }
    let folders: Vec<PathBuf> = cwd.0.iter().flatten().map(|folder| files.resolve(folder)).collect();
    if tops.is_empty() {
        tops.extend(folders.iter().cloned().chain([project.clone()]));
    }
    let tracked: HashSet<PathBuf> =
        tops.iter().take(1).chain([&project]).filter_map(|top| files.tracked(top)).flatten().collect();
    let skipped = files.ignored(&project.join(".gitignore"));
    let mut found = None;
    let starts = tops.clone();
    let end = walk(tops, MAX_SHOWN, files, |path, link| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let foreign =
            || files.names(path).iter().any(|name| name == ".git") && !starts.iter().any(|start| start == path);
        let ignored = !gathered.ignored && skipped.iter().any(|skipped| *skipped == name);
        let file = link || files.is_file(path);
        if name == ".git" || ignored || !file && foreign() {
            return Step::Past;
        }
        // Meant from where git starts, which must be known.
        let below = if let [folder] = &*folders { path.strip_prefix(folder).ok() } else { None };
        let fits =
            |path: &Path, pattern: &str| path.starts_with(pattern) || glob::wildcard(pattern, &path.to_string_lossy());
        let left_out = below.is_some_and(|path| gathered.without.iter().any(|pattern| fits(path, pattern)));
        if left_out {
            return Step::Past;
        }
        let taken =
            || !tracked.contains(path) && (gathered.ignored || !files.git_ignores(path, query.places.git_user()));
        if !link && holds_keys(path) && !may_be_kept(path) && file && taken() {
            found =
                Some(Verdict::firm(format!("git would keep {}, which may hold secrets, and show it", path.display())));
            return Step::Stop;
        }
        Step::Into
    });
    let untold = || Verdict::firm("there are too many files to tell what git would keep: name a folder");
    found.or_else(|| (end == Walk::TooMany).then(untold))
}

/// Names of secrets that a pattern is tried on, whatever the folder holds now: git keeps what was removed.
const SECRETS: [&str; 9] =
    [".env", ".env.local", "prod.env", "id_rsa", "server.key", "server.pem", ".npmrc", ".netrc", "credentials"];
/// Endings of data: only few of these files are secrets, so that a pattern for them is tried on what there is.
const DATA: [&str; 7] = ["json", "yml", "yaml", "toml", "xml", "txt", "ini"];

/// Whether git may find a secret by a pattern, as if it were named.
pub(super) fn judge_patterns(query: &Query, reads: &Reads, files: &dyn Files) -> Option<Verdict> {
    let last = |pattern: &'_ String| pattern.rsplit('/').next().unwrap_or_default().to_owned();
    let suspects: Vec<&String> = reads.patterns.iter().filter(|pattern| !only_sources(&last(pattern))).collect();
    let verdict = |pattern: &str| Verdict::firm(format!("{pattern} may stand for a file with secrets"));
    if query.mode == Mode::Bypass || suspects.is_empty() {
        return None;
    }
    let data = |last: &str| last.rsplit_once('.').is_some_and(|(_, extension)| DATA.contains(&extension));
    let named = |last: &str| SECRETS.iter().any(|name| glob::may_fit(last, name, Case::Ignored));
    if let Some(pattern) = suspects.iter().find(|pattern| !data(&last(pattern)) && named(&last(pattern))) {
        return Some(verdict(pattern));
    }
    let mut found = None;
    let end = walk(query.places.workspace().map(Path::to_owned).collect(), MAX_SHOWN, files, |path, _| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let fits = |pattern: &&&String| glob::may_fit(&last(pattern), &name, Case::Ignored);
        found = if holds_keys(path) { suspects.iter().find(fits).map(|pattern| verdict(pattern)) } else { None };
        match &found {
            Some(_) => Step::Stop,
            None if path.ends_with(".git") => Step::Past,
            None => Step::Into,
        }
    });
    found.or_else(|| (end == Walk::TooMany).then(|| verdict(suspects[0])))
}
