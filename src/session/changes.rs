//! Which file changes of a session stand, and which were taken back: a pure fold over its entries.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::entry::{EntryKind, Restore, Seq};
use crate::message::{BlobId, Kind, Role};

/// What a file was at some time. No blob: it did not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) blob: Option<BlobId>,
    /// Unix permission bits, where they are known.
    pub(super) mode: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Change {
    path: PathBuf,
    before: Version,
    after: Option<Version>,
}

impl Change {
    fn after(&self) -> &Version {
        self.after.as_ref().unwrap_or(&self.before)
    }
}

/// File changes since one prompt. A turn has one unit more for each prompt that joined it, so that a rewind to such a
/// prompt keeps what came before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Unit {
    /// The prompt, or where there is none the start of the turn.
    start: Seq,
    turn: u64,
    files: Vec<Change>,
}

/// What is to become of one file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) path: PathBuf,
    /// What we left there; anything else is a change of somebody else's.
    pub(super) expected: Version,
    pub(super) target: Version,
}

/// All steps of one undo, redo or rewind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// Changes from this entry on are taken back once it is done.
    pub(super) to: Seq,
    pub(super) steps: Vec<Step>,
    /// Commands that ran meanwhile.
    pub(super) commands: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Changes {
    units: Vec<Unit>,
    /// The first units stand; those from here on were taken back.
    standing: usize,
    /// Start and turn of the unit that the next change belongs to.
    start: Seq,
    turn: u64,
    commands: Vec<(Seq, String)>,
}

impl Changes {
    pub(super) fn apply(&mut self, seq: Seq, kind: &EntryKind) {
        match kind {
            EntryKind::TurnStarted => {
                self.start = seq;
                self.turn += 1;
            }
            EntryKind::Message { message } if message.role == Role::User && message.kind == Kind::Prompt => {
                self.prompt(seq);
            }
            EntryKind::FileBefore { path, blob, mode } => {
                // A new change ends what could be redone.
                self.units.truncate(self.standing);
                if self.units.last().is_none_or(|unit| unit.start != self.start) {
                    self.units.push(Unit { start: self.start, turn: self.turn, files: Vec::new() });
                }
                self.standing = self.units.len();
                let before = Version { blob: blob.clone(), mode: *mode };
                if let Some(unit) = self.units.last_mut()
                    && !unit.files.iter().any(|file| file.path == *path)
                {
                    unit.files.push(Change { path: path.clone(), before, after: None });
                }
            }
            EntryKind::FileAfter { path, blob, mode } => {
                let after = Version { blob: blob.clone(), mode: *mode };
                let start = self.start;
                let unit = self.units[..self.standing].last_mut().filter(|unit| unit.start == start);
                if let Some(file) = unit.and_then(|unit| unit.files.iter_mut().find(|file| file.path == *path)) {
                    file.after = Some(after);
                }
            }
            EntryKind::FilesRestored { to, how, .. } => {
                let standing = self.units.partition_point(|unit| unit.start < *to);
                self.standing = match how {
                    Restore::Redo => standing.max(self.standing),
                    Restore::Undo | Restore::Rewind => standing.min(self.standing),
                };
                // A change after this one is a change of its own, also within the same turn.
                self.start = self.start.max(seq);
            }
            EntryKind::CommandRan { command, .. } => self.commands.push((seq, command.clone())),
            _ => {}
        }
    }

    /// A prompt stands at `seq`.
    pub(super) fn prompt(&mut self, seq: Seq) {
        self.start = seq;
    }

    /// Content before the changes of the unit under way, if the file was changed in it already.
    pub(super) fn before(&self, path: &Path) -> Option<&Version> {
        Some(&self.current(path)?.before)
    }

    /// Content that the last change of the unit under way left.
    pub(super) fn after(&self, path: &Path) -> Option<&Version> {
        Some(self.current(path)?.after())
    }

    fn current(&self, path: &Path) -> Option<&Change> {
        let unit = self.units[..self.standing].last().filter(|unit| unit.start == self.start)?;
        unit.files.iter().find(|file| file.path == path)
    }

    /// True when files changed between two entries and the change stands.
    pub(super) fn any_between(&self, from: Seq, until: Seq) -> bool {
        self.units[..self.standing].iter().any(|unit| (from..until).contains(&unit.start))
    }

    /// Takes the last turn back that changed files. None: there is none.
    pub(super) fn undo(&self) -> Option<Plan> {
        let turn = self.units[..self.standing].last()?.turn;
        let first = self.units[..self.standing].iter().rposition(|unit| unit.turn != turn).map_or(0, |last| last + 1);
        Some(self.plan_back(first, self.units[first].start))
    }

    /// Brings the turn forth again that was taken back last. None: there is none.
    pub(super) fn redo(&self) -> Option<Plan> {
        let undone = &self.units[self.standing..];
        let turn = undone.first()?.turn;
        let count = undone.iter().take_while(|unit| unit.turn == turn).count();
        let to = undone[count - 1].start + 1;
        let steps = self
            .steps(self.standing, self.standing + count, |first, last| (first.before.clone(), last.after().clone()));
        Some(Plan { to, steps, commands: Vec::new() })
    }

    /// Takes everything back that changed since entry `to`.
    pub(super) fn rewind(&self, to: Seq) -> Plan {
        self.plan_back(self.units.partition_point(|unit| unit.start < to).min(self.standing), to)
    }

    fn plan_back(&self, first: usize, to: Seq) -> Plan {
        let steps = self.steps(first, self.standing, |first, last| (last.after().clone(), first.before.clone()));
        let until = self.units.get(self.standing).map_or(Seq::MAX, |unit| unit.start);
        let commands = self.commands.iter().filter(|(seq, _)| (to..until).contains(seq));
        Plan { to, steps, commands: commands.map(|(_, command)| command.clone()).collect() }
    }

    /// Every file whose change stands, as it was before the first of them.
    pub(super) fn firsts(&self) -> Vec<(&Path, &Version)> {
        let mut files: Vec<(&Path, &Version)> = Vec::new();
        for change in self.units[..self.standing].iter().flat_map(|unit| &unit.files) {
            if files.iter().all(|(path, _)| *path != change.path) {
                files.push((&change.path, &change.before));
            }
        }
        files
    }

    /// One step for each file of some units; `ends` gets its first and its last change and says (expected, target).
    fn steps(&self, from: usize, until: usize, ends: impl Fn(&Change, &Change) -> (Version, Version)) -> Vec<Step> {
        let mut files: Vec<(&Change, &Change)> = Vec::new();
        for change in self.units[from..until].iter().flat_map(|unit| &unit.files) {
            match files.iter_mut().find(|(first, _)| first.path == change.path) {
                Some((_, last)) => *last = change,
                None => files.push((change, change)),
            }
        }
        let step = |(first, last): (&Change, &Change)| {
            let (expected, target) = ends(first, last);
            Step { path: first.path.clone(), expected, target }
        };
        files.into_iter().map(step).collect()
    }
}
