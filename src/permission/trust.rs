//! What a project brings along, and what of it the user agreed to: line by line, each bound to what was shown.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::stdx::hash::sha256_hex;
use crate::stdx::regular;

/// Most bytes of a script that are hashed; beyond them its length and its time count.
const SCRIPT: u64 = 4 << 20;

/// One thing of a project that executes, sends or grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// What is set, and in which file: another value under the same key is a change.
    pub key: String,
    /// As the user is shown it.
    pub line: String,
    /// Over the key, the line and everything else that it stands for.
    hash: String,
}

impl Use {
    /// `bound` is what the line stands for and does not say itself.
    pub fn new(key: impl Into<String>, line: impl Into<String>, bound: &str) -> Use {
        let (key, line) = (key.into(), line.into());
        // Lengths keep two fields from passing for one.
        let all = format!("{} {key}{} {line}{bound}", key.len(), line.len());
        Use { hash: sha256_hex(all.as_bytes()), key, line }
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
    /// Lines that go on working.
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
                    format!("{} – changed: what it runs or says in a file", used.line)
                }
                Some(old) => format!("{} – changed, it was: {}", used.line, old.line),
                None => used.line.clone(),
            });
        }
        difference.gone = gone.into_iter().map(|old| old.line.clone()).collect();
        difference
    }
}

/// The hashes of all files of the project that a command line names: a script that is rewritten is another command.
pub fn scripts(project: &Path, command: &str) -> String {
    // What is only written is no part of it.
    let plain = command.replace(['"', '\''], "").replace('>', " > ");
    let mut words =
        plain.split(|c: char| c.is_whitespace() || ";|&()<`=:,".contains(c)).filter(|word| !word.is_empty());
    let mut hashes = String::new();
    while let Some(word) = words.next() {
        if word == ">" {
            words.by_ref().find(|word| *word != ">");
            continue;
        }
        let below = match word.strip_prefix('$') {
            Some(rest) => rest.split_once('/').map_or("", |(_, below)| below),
            None => word,
        };
        let near = project.join(below.trim_start_matches('/'));
        let file = if Path::new(below).starts_with(project) { Path::new(below) } else { near.as_path() };
        // A folder is none, and what cannot be read cannot be run.
        let Ok(bytes) = regular::read(file, SCRIPT) else { continue };
        hashes.push_str(&sha256_hex(&bytes));
        if bytes.len() as u64 == SCRIPT
            && let Ok(data) = file.metadata()
        {
            hashes.push_str(&format!("{} {:?}", data.len(), data.modified().ok()));
        }
    }
    hashes
}
