//! What changed files since one prompt: tools, file by file, and commands, whose changes are read when they are needed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::message::BlobId;
use crate::session::entry::{Seq, Version};
use crate::stdx::path_text;

/// What we made of a file until someone else changed it too; our next change is a new one then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::session) struct Change {
    #[serde(with = "path_text")]
    pub(in crate::session) path: PathBuf,
    pub(in crate::session) before: Version,
    /// Everything that we meant to leave there. The last one counts, unless the program was killed, or failed, before it
    /// was written.
    pub(in crate::session) left: Vec<Version>,
    /// The last of them may be half written: it was never settled.
    pub(in crate::session) open: bool,
    /// The content after hooks had seen it: not certainly ours.
    pub(in crate::session) touched: Option<BlobId>,
    /// The record of the command that made it.
    #[serde(skip)]
    pub(in crate::session) record: Option<String>,
    /// The entries of the commands that made it, or, of an undo, of those that it undid.
    #[serde(skip)]
    pub(in crate::session) commands: Vec<Seq>,
    /// When that was about to touch the path for the first time, and when it had ended, in nanoseconds since 1970.
    #[serde(skip)]
    pub(in crate::session) during: Option<(u64, u64)>,
}

impl Change {
    pub(in crate::session) fn new(path: PathBuf, before: Version, left: Vec<Version>, open: bool) -> Change {
        Change { path, before, left, open, touched: None, record: None, commands: Vec::new(), during: None }
    }

    pub(in crate::session) fn after(&self) -> &Version {
        self.left.last().unwrap_or(&self.before)
    }

    /// Whether a file that a tool changed can hold this without anybody else having changed it.
    pub(in crate::session) fn explains(&self, blob: Option<&BlobId>) -> bool {
        self.left.iter().chain([&self.before]).any(|version| match (version, blob) {
            (Version::Absent, None) => true,
            (version, Some(blob)) => version.blob() == Some(blob),
            _ => false,
        })
    }
}

/// A command that was recorded: its changes are read when they are needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::session) struct Ran {
    pub(in crate::session) record: String,
    /// Its entry.
    pub(in crate::session) seq: Seq,
    /// Only what it did to these counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only: Option<Vec<String>>,
    /// What it did to these does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    but: Vec<String>,
}

impl Ran {
    pub(super) fn new(record: String, seq: Seq) -> Ran {
        Ran { record, seq, only: None, but: Vec::new() }
    }

    /// Whether what it did to a path counts here.
    pub(in crate::session) fn counts(&self, path: &Path) -> bool {
        let listed = |paths: &[String]| paths.iter().any(|listed| *listed == text(path));
        self.only.as_ref().is_none_or(|only| listed(only)) && !listed(&self.but)
    }

    /// Parts it in two: what it did to `paths`, and the rest.
    pub(super) fn part(self, paths: &[PathBuf]) -> (Ran, Ran) {
        let only: Vec<String> = paths.iter().filter(|path| self.counts(path)).map(|path| text(path)).collect();
        let mut rest = self.clone();
        rest.but.extend(only.iter().cloned());
        (Ran { only: Some(only), ..self }, rest)
    }
}

/// A path as a text that no other path has.
fn text(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{:?}", path.as_os_str().as_encoded_bytes()), str::to_owned)
}

/// Something that changed files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Item {
    /// A tool changed one.
    File(Change),
    Command(Ran),
}

/// Reads what a command changed.
pub(in crate::session) type Read<'a> = &'a dyn Fn(&Ran) -> Vec<Change>;

/// File changes since one prompt. A turn has one unit more for each prompt that joined it, so that a rewind to such a
/// prompt keeps what came before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Unit {
    /// The prompt, or the start of the turn.
    pub(super) start: Seq,
    pub(super) turn: u64,
    /// In the order in which they came. A file is listed once for each time that someone else changed it in between.
    pub(super) items: Vec<Item>,
}

impl Unit {
    pub(super) fn files(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.items.iter().filter_map(|item| match item {
            Item::File(change) => Some(change),
            Item::Command(_) => None,
        })
    }

    pub(super) fn file(&mut self, path: &Path) -> Option<&mut Change> {
        self.items.iter_mut().rev().find_map(|item| match item {
            Item::File(change) if change.path == path => Some(change),
            _ => None,
        })
    }

    pub(super) fn changes(&self, read: Read<'_>) -> Vec<Change> {
        let changes = |item: &Item| match item {
            Item::File(change) => vec![change.clone()],
            Item::Command(ran) => read(ran),
        };
        self.items.iter().flat_map(changes).collect()
    }
}

/// What happens to one file: the changes to undo, the last one first.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::session) struct Step {
    pub(in crate::session) path: PathBuf,
    pub(in crate::session) chain: Vec<Change>,
}

impl Step {
    /// The entries of the commands that made its changes, in the order in which they ran.
    pub(in crate::session) fn commands(&self) -> Vec<Seq> {
        let mut commands: Vec<Seq> = self.chain.iter().flat_map(|change| &change.commands).copied().collect();
        commands.sort_unstable();
        commands.dedup();
        commands
    }
}

pub(super) fn steps_back(units: &[Unit], read: Read<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut places = HashMap::new();
    for change in units.iter().flat_map(|unit| unit.changes(read)) {
        match places.get(&change.path) {
            Some(place) => {
                let step: &mut Step = &mut steps[*place];
                step.chain.insert(0, change);
            }
            None => {
                places.insert(change.path.clone(), steps.len());
                steps.push(Step { path: change.path.clone(), chain: vec![change] });
            }
        }
    }
    steps.iter_mut().for_each(|step| interleave(&mut step.chain));
    steps
}

/// Puts what commands did to one file at the same time into the order in which they came to it, the last one first: what an
/// earlier one left is what the next one found.
fn interleave(chain: &mut [Change]) {
    if chain.len() < 2 {
        return;
    }
    for commands in chain.chunk_by_mut(|one, other| one.during.is_some() && other.during.is_some()) {
        commands.sort_by_key(|change| std::cmp::Reverse(change.during));
        for at in 1..commands.len() {
            let found = commands[at - 1].before.clone();
            let began = commands[at - 1].during.map(|(began, _)| began);
            if commands[at].during.is_some_and(|(_, ended)| Some(ended) >= began) {
                commands[at].left.insert(0, found);
            }
        }
    }
}
