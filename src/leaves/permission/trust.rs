//! What a project brings along, and what of it the user agreed to: line by line, each bound to what was shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Bound;
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
}

impl Use {
    /// `bound` is what the line stands for and does not say itself.
    pub fn new(key: impl Into<String>, line: impl Into<String>, bound: &str) -> Use {
        let (key, line) = (key.into(), line.into());
        // Lengths keep two fields from passing for one.
        let all = format!("{} {key}{} {line}{bound}", key.len(), line.len());
        Use { hash: sha256_hex(all.as_bytes()), key, line, files: BTreeMap::new() }
    }

    /// One that runs files of the project.
    pub fn running(key: impl Into<String>, line: impl Into<String>, bound: &str, runs: &Bound) -> Use {
        let line = format!("{}{}", line.into(), runs.note());
        let files = if runs.files().len() > MAX_FILES { BTreeMap::new() } else { runs.files().clone() };
        Use { files, ..Use::new(key, line, &format!("{bound}{}", runs.text())) }
    }

    /// What became another since, though the line is the same.
    fn since(&self, old: &Use) -> String {
        let names: BTreeSet<&String> = self.files.keys().chain(old.files.keys()).collect();
        let changed: Vec<&str> = names
            .into_iter()
            .filter(|name| self.files.get(*name) != old.files.get(*name))
            .map(String::as_str)
            .collect();
        match changed.as_slice() {
            [] => "changed: something this line leaves out".into(),
            [first, second, third, rest @ ..] if !rest.is_empty() => {
                format!("changed: the content of {first}, {second}, {third} and {} more", rest.len())
            }
            all => format!("changed: the content of {}", all.join(", ")),
        }
    }
}

/// Everything that the user agreed to in one folder. Nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    agreed: BTreeSet<String>,
    /// What the folder brought along when the user was last asked.
    before: Vec<Use>,
}

/// How what a folder brings along differs from what the user agreed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Lines that were never agreed to; a changed one says what it was.
    pub new: Vec<String>,
    /// Lines that keep working.
    pub kept: Vec<String>,
    /// Lines that the folder no longer brings along.
    pub gone: Vec<String>,
}

impl Trust {
    /// Whether the user agreed to exactly this.
    pub fn covers(&self, used: &Use) -> bool {
        self.agreed.contains(&used.hash)
    }

    /// Whether nothing was agreed to.
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

    /// Takes over what was agreed to elsewhere.
    pub fn join(&mut self, other: Trust) {
        self.agreed.extend(other.agreed);
        self.before.extend(other.before.into_iter().filter(|used| !self.before.contains(used)).collect::<Vec<_>>());
    }

    /// What a person has to be told of what there is now.
    pub fn difference(&self, now: &[Use]) -> Difference {
        let mut difference = Difference::default();
        let mut gone: Vec<&Use> = self.before.iter().filter(|old| !now.contains(old)).collect();
        for used in now {
            if self.covers(used) {
                difference.kept.push(used.line.clone());
                continue;
            }
            let old = gone.iter().position(|old| old.key == used.key).map(|at| gone.remove(at));
            difference.new.push(match old {
                Some(old) if old.line == used.line => {
                    format!("{} – {}", used.line, used.since(old))
                }
                Some(old) => format!("{} – changed, it was: {}", used.line, old.line),
                None => used.line.clone(),
            });
        }
        difference.gone = gone.into_iter().map(|old| old.line.clone()).collect();
        difference
    }
}
