//! What a recorded command did, in one line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Most files that are named.
const NAMED: usize = 5;
/// Most things that are said to be missing.
const MISSED: usize = 5;

/// What a recorded command did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    pub created: Vec<PathBuf>,
    pub changed: Vec<PathBuf>,
    pub deleted: Vec<PathBuf>,
    /// What undo cannot restore, for people.
    pub missed: Vec<String>,
}

impl Finished {
    pub fn files(&self) -> usize {
        self.created.len() + self.changed.len() + self.deleted.len()
    }

    /// Of something that was not recorded at all.
    pub fn unseen(why: impl Into<String>) -> Finished {
        Finished { missed: vec![why.into()], ..Finished::default() }
    }

    /// One line for the model and the user; none where nothing changed. `name` makes a path short. What git keeps for itself is
    /// not told, and what it passes over by `ignores` is counted: all in a folder that it passes over, and what is new. Where
    /// nothing of that was created the command did not build but clean: what it deleted is named, for it may be missed.
    pub fn line(&self, name: impl Fn(&Path) -> String, ignores: impl Fn(&Path) -> bool) -> Option<String> {
        let mut passed = Passed { folders: HashMap::new(), left: MOST_ASKED, ignores };
        let mut counts = Vec::new();
        let mut part = |verb: &'static str, paths: &[PathBuf]| {
            let told = paths.iter().filter(|path| !is_gits(path));
            let all = verb == "deleted" && !counts.iter().any(|(_, verb)| *verb == "created");
            let over = |path: &&PathBuf| !all && passed.over(path, verb == "created");
            let (ignored, paths): (Vec<&PathBuf>, Vec<&PathBuf>) = told.partition(over);
            counts.extend((!ignored.is_empty()).then_some((ignored.len(), verb)));
            let named: Vec<String> = paths.iter().take(NAMED).map(|path| name(path)).collect();
            let more = match paths.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (!paths.is_empty()).then(|| format!("{verb} {}{more}", named.join(", ")))
        };
        let parts = [part("created", &self.created), part("changed", &self.changed), part("deleted", &self.deleted)];
        let ignored = counts.iter().map(|(count, verb)| format!("{count} {verb}")).collect::<Vec<_>>().join(", ");
        let ignored = (!ignored.is_empty()).then(|| format!("files that git ignores: {ignored}"));
        let mut line = parts.into_iter().flatten().chain(ignored).collect::<Vec<_>>().join("; ");
        if !self.missed.is_empty() {
            let missed: Vec<&str> = self.missed.iter().take(MISSED).map(String::as_str).collect();
            line.push_str(if line.is_empty() { "undo cannot restore: " } else { "; undo cannot restore: " });
            line.push_str(&missed.join("; "));
        }
        (!line.is_empty()).then_some(line)
    }
}

/// Most questions what git ignores, for one command: each reads files.
const MOST_ASKED: usize = 500;

/// Stands for the files of a folder, since patterns for folders speak of what is in them.
const ANY: &str = "any-file";

/// What git passes over; each folder is asked about once.
struct Passed<F> {
    folders: HashMap<PathBuf, bool>,
    left: usize,
    ignores: F,
}

impl<F: Fn(&Path) -> bool> Passed<F> {
    /// Whether its folder is passed over, or a file that was not there before.
    fn over(&mut self, path: &Path, new: bool) -> bool {
        path.parent().is_some_and(|folder| self.folder(folder)) || new && self.ask(path)
    }

    fn folder(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let over = folder.parent().is_some_and(|above| self.folder(above)) || self.ask(&folder.join(ANY));
        self.folders.insert(folder.to_owned(), over);
        over
    }

    fn ask(&mut self, path: &Path) -> bool {
        let left = self.left;
        self.left = left.saturating_sub(1);
        left > 0 && (self.ignores)(path)
    }
}

/// Whether git keeps it in a repository and nobody edits it: all but hooks and configuration.
fn is_gits(path: &Path) -> bool {
    let mut inside = path.components().skip_while(|part| part.as_os_str() != ".git").skip(1);
    let first = inside.next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    first.is_some_and(|name| !name.starts_with("config") && name != "hooks" && name != "info")
}
