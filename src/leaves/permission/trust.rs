//! What a project brings along, and what of it the user agreed to: line by line, each bound to what was shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Bound;
use crate::stdx::ansi::shown;
use crate::stdx::hash::sha256_hex;

/// Most files that are remembered with what was agreed to, to say later which of them changed.
const MAX_FILES: usize = 64;

/// One thing of a project that executes, sends or grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// What is set, and in which file: another value under the same key is a change.
    pub key: String,
    /// As the user is shown it.
    pub line: String,
    /// Over the key, the line and everything else that it stands for.
    hash: String,
    /// Files that it runs, with a hash of each; none when there are too many to keep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    /// What the first of these hold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    texts: BTreeMap<String, String>,
}

impl Use {
    /// `bound` is what the line stands for and does not say itself.
    pub fn new(key: impl Into<String>, line: impl Into<String>, bound: &str) -> Use {
        let (key, line) = (key.into(), line.into());
        // Lengths keep two fields from passing for one.
        let all = format!("{} {key}{} {line}{bound}", key.len(), line.len());
        Use { hash: sha256_hex(all.as_bytes()), key, line, files: BTreeMap::new(), texts: BTreeMap::new() }
    }

    /// One that runs files of the project.
    pub fn running(key: impl Into<String>, line: impl Into<String>, bound: &str, runs: &Bound) -> Use {
        let line = format!("{}{}", line.into(), runs.note());
        let (files, texts) = match runs.files().len() > MAX_FILES {
            true => Default::default(),
            false => (runs.files().clone(), runs.texts().clone()),
        };
        Use { files, texts, ..Use::new(key, line, &format!("{bound}{}", runs.text())) }
    }

    /// The files that became others since.
    fn changed<'a>(&'a self, old: &'a Use) -> Vec<&'a str> {
        let names: BTreeSet<&String> = self.files.keys().chain(old.files.keys()).collect();
        let differs = |name: &&String| self.files.get(*name) != old.files.get(*name);
        names.into_iter().filter(differs).map(String::as_str).collect()
    }

    /// What became another since, though the line is the same.
    fn since(&self, old: &Use) -> String {
        match self.changed(old).as_slice() {
            [] => "changed: something this line leaves out".into(),
            [first, second, third, rest @ ..] if !rest.is_empty() => {
                format!("changed: the content of {first}, {second}, {third} and {} more", rest.len())
            }
            all => format!("changed: the content of {}", all.join(", ")),
        }
    }

    /// The changed lines of each file whose text was kept, below its name.
    fn differences(&self, old: &Use) -> String {
        // What is missing is empty; of what is there but was not kept, nobody can tell.
        let held = |of: &Use, name: &str| match of.files.contains_key(name) {
            true => of.texts.get(name).cloned(),
            false => Some(String::new()),
        };
        let lines = |name: &str| {
            let (before, after) = (held(old, name)?, held(self, name)?);
            Some(format!("\n{name}:\n{}", difference(&before, &after).join("\n")))
        };
        // Of a line that ran nothing that was bound, every file would be new.
        let changed = if old.files.is_empty() { Vec::new() } else { self.changed(old) };
        changed.into_iter().filter_map(lines).collect()
    }
}

/// The lines that changed, with one around them.
pub fn difference(before: &str, after: &str) -> Vec<String> {
    let diff = similar::TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for (at, group) in diff.grouped_ops(1).iter().enumerate() {
        lines.extend((at > 0).then(|| "…".to_owned()));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            lines.push(format!("{}{}", change.tag(), shown(change.value().trim_end_matches('\n'))));
        }
    }
    lines
}

/// Everything that the user agreed to in one folder. Nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    agreed: BTreeSet<String>,
    /// What the folder brought along when the user was last asked.
    before: Vec<Use>,
    /// What was agreed to of what is not the folder's: nobody is told when it is gone.
    beside: Vec<Use>,
    agreed_beside: BTreeSet<String>,
}

/// How what a folder brings along differs from what the user agreed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Lines that were never agreed to; a changed one says what it was, below it how the files differ that it runs.
    pub new: Vec<String>,
    /// Lines that keep working.
    pub kept: Vec<String>,
    /// Lines that the folder no longer brings along.
    pub gone: Vec<String>,
}

impl Trust {
    /// Whether the user agreed to exactly this.
    pub fn covers(&self, used: &Use) -> bool {
        self.agreed.contains(&used.hash) || self.agreed_beside.contains(&used.hash)
    }

    /// Whether nothing of the folder was agreed to.
    pub fn is_empty(&self) -> bool {
        self.agreed.is_empty()
    }

    /// Takes these for agreed to, and for all that there is.
    pub fn agree(&mut self, all: &[Use]) {
        self.before.clear();
        self.add(all);
    }

    /// Takes these for agreed to, beside what was before.
    pub fn add(&mut self, more: &[Use]) {
        self.agreed.extend(more.iter().map(|used| used.hash.clone()));
        self.before.extend(more.iter().cloned());
    }

    /// Takes these for agreed to, and for all that there is of something that no folder brings along.
    pub fn agree_beside(&mut self, all: &[Use]) {
        self.beside.retain(|old| !all.iter().any(|used| used.key == old.key));
        self.agreed_beside.extend(all.iter().map(|used| used.hash.clone()));
        self.beside.extend(all.iter().cloned());
    }

    /// Takes over what was agreed to of something that no folder brings along.
    pub fn join_beside(&mut self, other: Trust) {
        self.agreed_beside.extend(other.agreed);
        self.beside.extend(other.before);
    }

    /// Takes over what was agreed to elsewhere.
    pub fn join(&mut self, other: Trust) {
        self.agreed.extend(other.agreed);
        let known: BTreeSet<String> = self.before.iter().map(|used| used.hash.clone()).collect();
        self.before.extend(other.before.into_iter().filter(|used| !known.contains(&used.hash)));
        self.agreed_beside.extend(other.agreed_beside);
        self.beside = other.beside;
    }

    /// What a person has to be told of what there is now.
    pub fn difference(&self, now: &[Use]) -> Difference {
        let mut difference = Difference::default();
        let mut gone: Vec<&Use> =
            self.before.iter().filter(|old| !now.iter().any(|used| used.hash == old.hash)).collect();
        for used in now {
            if self.covers(used) {
                difference.kept.push(used.line.clone());
                continue;
            }
            let old = gone.iter().position(|old| old.key == used.key).map(|at| gone.remove(at));
            let old = old.or_else(|| self.beside.iter().find(|old| old.key == used.key));
            difference.new.push(match old {
                Some(old) if old.line == used.line => {
                    format!("{} – {}{}", used.line, used.since(old), used.differences(old))
                }
                Some(old) => format!("{} – changed, it was: {}{}", used.line, old.line, used.differences(old)),
                None => used.line.clone(),
            });
        }
        difference.gone = gone.into_iter().map(|old| old.line.clone()).collect();
        difference
    }
}
