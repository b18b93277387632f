//! Which file changes of a session are in effect, and which were undone: a pure fold over its entries.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::entry::{EntryKind, Replaced, Restore, Seq, Version};
use crate::message::BlobId;

/// What we made of a file until someone else changed it too; our next change is a new one then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: Version,
    /// Everything that we meant to leave there. The last one counts, unless the program was killed, or failed, before it
    /// was written.
    pub(super) left: Vec<Version>,
    /// The last of them may be half written: it was never settled.
    pub(super) open: bool,
    /// The content after hooks had seen it: not certainly ours.
    pub(super) touched: Option<BlobId>,
}

impl Change {
    pub(super) fn after(&self) -> &Version {
        self.left.last().unwrap_or(&self.before)
    }

    /// Whether the file can hold this without anybody else having changed it.
    pub(super) fn explains(&self, blob: Option<&BlobId>) -> bool {
        self.left.iter().chain([&self.before]).any(|version| version.blob.as_ref() == blob)
    }
}

/// File changes since one prompt. A turn has one unit more for each prompt that joined it, so that a rewind to such a
/// prompt keeps what came before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Unit {
    /// The prompt, or the start of the turn.
    start: Seq,
    turn: u64,
    /// A file is listed once for each time that someone else changed it in between.
    files: Vec<Change>,
}

/// One undo or rewind that can be redone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Undone {
    /// What it undid.
    units: Vec<Unit>,
    files: Vec<Replaced>,
}

impl Undone {
    /// Parts it in two: what it did to `paths`, and the rest.
    fn part(self, paths: &[PathBuf]) -> (Undone, Undone) {
        let (mut of, mut rest) = (Vec::new(), Vec::new());
        for Unit { start, turn, files } in self.units {
            let (mine, others) = files.into_iter().partition(|change| paths.contains(&change.path));
            of.push(Unit { start, turn, files: mine });
            rest.push(Unit { start, turn, files: others });
        }
        let (mine, others) = self.files.into_iter().partition(|file| paths.contains(&file.path));
        for units in [&mut of, &mut rest] {
            units.retain(|unit| !unit.files.is_empty());
        }
        (Undone { units: of, files: mine }, Undone { units: rest, files: others })
    }

    fn is_empty(&self) -> bool {
        self.units.is_empty() && self.files.is_empty()
    }
}

/// In place of an entry: nothing more is undone than the last undo or redo did.
pub(super) const AGAIN: Seq = Seq::MAX;

/// What happens to one file: the changes to undo, the last one first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) path: PathBuf,
    pub(super) chain: Vec<Change>,
}

/// All steps of one undo, redo or rewind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// Changes from this entry on are undone once it is done.
    pub(super) to: Seq,
    pub(super) steps: Vec<Step>,
    /// Entries of commands that ran meanwhile.
    pub(super) commands: Vec<Seq>,
}

/// A file beside another one, which holds a part of `new` or what the other one held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Temporary {
    pub(super) path: PathBuf,
    pub(super) new: Option<BlobId>,
}

fn steps_back(units: &[Unit]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for change in units.iter().flat_map(|unit| &unit.files) {
        match steps.iter_mut().find(|step| step.path == change.path) {
            Some(step) => step.chain.insert(0, change.clone()),
            None => steps.push(Step { path: change.path.clone(), chain: vec![change.clone()] }),
        }
    }
    steps
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Changes {
    /// What is in effect, in the order of their starts.
    units: Vec<Unit>,
    /// The last one was undone last.
    undone: Vec<Undone>,
    /// The last undo, redo or rewind, while no change came after it.
    last: Option<(Restore, Vec<Replaced>)>,
    /// Files of the last undo, redo or rewind that may be half written: they were never settled.
    open: Vec<PathBuf>,
    /// Start and turn of the unit that the next change belongs to.
    start: Seq,
    turn: u64,
    /// Entries of commands that ran; what they were is in the log.
    commands: Vec<Seq>,
    /// What a change under way leaves beside its file when the program is killed.
    temporaries: Vec<Temporary>,
}

impl Changes {
    pub(super) fn apply(&mut self, seq: Seq, kind: &EntryKind) {
        match kind {
            EntryKind::TurnStarted => {
                self.start = seq;
                self.turn += 1;
                self.temporaries.clear();
            }
            EntryKind::TurnEnded { .. } => self.temporaries.clear(),
            EntryKind::FileBefore { path, blob, mode } => {
                // A new change ends what could be redone.
                self.undone.clear();
                self.last = None;
                if self.units.last().is_none_or(|unit| unit.start != self.start) {
                    self.units.push(Unit { start: self.start, turn: self.turn, files: Vec::new() });
                }
                let before = Version { blob: blob.clone(), mode: *mode };
                if let Some(unit) = self.units.last_mut() {
                    unit.files.push(Change {
                        path: path.clone(),
                        before,
                        left: Vec::new(),
                        open: false,
                        touched: None,
                    });
                }
            }
            EntryKind::FileAfter { path, blob, mode, temporary } => {
                self.temporaries.extend(temporary.clone().map(|path| Temporary { path, new: blob.clone() }));
                let after = Version { blob: blob.clone(), mode: *mode };
                let start = self.start;
                let unit = self.units.last_mut().filter(|unit| unit.start == start);
                if let Some(file) = unit.and_then(|unit| unit.files.iter_mut().rfind(|file| file.path == *path)) {
                    file.left.push(after);
                    (file.open, file.touched) = (true, None);
                }
            }
            EntryKind::FilesSettled { paths } => {
                self.open.retain(|path| !paths.contains(path));
                let changes = self.units.iter_mut().flat_map(|unit| &mut unit.files);
                changes.filter(|file| paths.contains(&file.path)).for_each(|file| file.open = false);
            }
            EntryKind::FileTouched { path, blob } => {
                let start = self.start;
                let unit = self.units.last_mut().filter(|unit| unit.start == start);
                if let Some(file) = unit.and_then(|unit| unit.files.iter_mut().rfind(|file| file.path == *path)) {
                    file.touched.clone_from(blob);
                }
            }
            EntryKind::FilesRestored { to, how, files, refused } => {
                let temporary = |file: &Replaced| Temporary { path: file.temporary.clone(), new: file.to.blob.clone() };
                self.temporaries = files.iter().map(temporary).collect();
                match how {
                    Restore::Redo if *to == AGAIN => {}
                    Restore::Redo => self.bring_forth(refused),
                    // What the undo before it could not write.
                    Restore::Undo | Restore::Rewind if *to == AGAIN && files.is_empty() => self.keep(refused),
                    // What the user reverted is a change like any other, which the next undo undoes.
                    Restore::Review => {
                        self.undone.clear();
                        self.turn += 1;
                        let change = |file: &Replaced| Change {
                            path: file.path.clone(),
                            before: file.from.clone(),
                            left: vec![file.to.clone()],
                            open: true,
                            touched: None,
                        };
                        let files = files.iter().map(change).collect();
                        self.units.push(Unit { start: seq, turn: self.turn, files });
                        // What comes behind it in the same turn is a unit of its own.
                        self.turn += 1;
                    }
                    Restore::Undo | Restore::Rewind => {
                        let first = self.units.partition_point(|unit| unit.start < *to);
                        let units = self.units.split_off(first);
                        self.undone.push(Undone { units, files: files.clone() });
                        self.keep(refused);
                    }
                }
                self.last = Some((*how, files.clone())).filter(|_| *how != Restore::Review);
                if !files.is_empty() {
                    self.open = files.iter().map(|file| file.path.clone()).collect();
                }
                // A change after this one is separate, even within the same turn.
                self.start = self.start.max(seq + u64::from(*how == Restore::Review));
            }
            // What cannot be read leaves what is known.
            EntryKind::FilesKnown { changes } => {
                if let Ok(known) = serde_json::from_value(changes.clone()) {
                    *self = known;
                }
            }
            EntryKind::CommandRan { .. } => self.commands.push(seq),
            _ => {}
        }
    }

    /// What the last undo did not do to these files is in effect as before.
    fn keep(&mut self, paths: &[PathBuf]) {
        if let Some(last) = self.undone.pop() {
            let (kept, undone) = last.part(paths);
            self.stand(kept.units);
            self.undone.extend(Some(undone).filter(|undone| paths.is_empty() || !undone.is_empty()));
        }
    }

    /// What was undone last is in effect again, except for these files: they are left to the next redo.
    fn bring_forth(&mut self, refused: &[PathBuf]) {
        if let Some(last) = self.undone.pop() {
            let (left, forth) = last.part(refused);
            self.stand(forth.units);
            self.undone.extend(Some(left).filter(|left| !left.is_empty()));
        }
    }

    /// Puts units where they belong. A file's changes since one prompt are always together, so their order holds.
    fn stand(&mut self, units: Vec<Unit>) {
        for unit in units {
            match self.units.binary_search_by_key(&unit.start, |unit| unit.start) {
                Ok(at) => self.units[at].files.extend(unit.files),
                Err(at) => self.units.insert(at, unit),
            }
        }
    }

    /// There is a prompt at `seq`.
    pub(super) fn prompt(&mut self, seq: Seq) {
        self.start = seq;
    }

    /// The last change of a file in the unit under way.
    pub(super) fn current(&self, path: &Path) -> Option<&Change> {
        let unit = self.units.last().filter(|unit| unit.start == self.start)?;
        unit.files.iter().rfind(|file| file.path == path)
    }

    /// What may lie beside files that the program was changing when it ended.
    pub(super) fn temporaries(&self) -> &[Temporary] {
        &self.temporaries
    }

    /// The newest changes of files that were never settled, those of an undo included.
    pub(super) fn unsettled(&self) -> Vec<Change> {
        let mut newest: Vec<&Change> = Vec::new();
        for change in self.units.iter().rev().flat_map(|unit| unit.files.iter().rev()) {
            if newest.iter().all(|known| known.path != change.path) {
                newest.push(change);
            }
        }
        let undone = self.last.iter().flat_map(|(_, files)| files).filter(|file| self.open.contains(&file.path));
        let undone = undone.flat_map(|file| self.step(file.clone(), true).chain);
        newest.into_iter().filter(|change| change.open).cloned().chain(undone).collect()
    }

    /// True if files changed between two entries and the change is in effect.
    pub(super) fn any_between(&self, from: Seq, until: Seq) -> bool {
        self.units.iter().any(|unit| (from..until).contains(&unit.start))
    }

    /// Undoes the last turn that changed files, if there is one.
    pub(super) fn undo(&self) -> Option<Plan> {
        let turn = self.units.last()?.turn;
        let first = self.units.iter().rposition(|unit| unit.turn != turn).map_or(0, |last| last + 1);
        Some(self.plan_back(first, self.units[first].start))
    }

    /// The last undo or redo once more, for files that are still as they were before it: the program was killed
    /// meanwhile, or they could not be written.
    pub(super) fn unfinished(&self, redo: bool, still: impl Fn(&Replaced) -> bool) -> Option<Plan> {
        let (_, files) = self.last.as_ref().filter(|(how, _)| redo == (*how == Restore::Redo))?;
        let left = files.iter().filter(|file| file.from.blob != file.to.blob && still(file));
        let steps: Vec<Step> = left.map(|file| self.step(file.clone(), false)).collect();
        (!steps.is_empty()).then_some(Plan { to: AGAIN, steps, commands: Vec::new() })
    }

    /// Undoes the last undo or rewind, if there is one.
    pub(super) fn redo(&self) -> Option<Plan> {
        let undone = self.undone.last()?;
        let to = undone.units.last().map_or(0, |unit| unit.start + 1);
        let steps = undone.files.iter().map(|file| self.step(file.clone(), true)).collect();
        Some(Plan { to, steps, commands: Vec::new() })
    }

    /// Takes everything back that changed since entry `to`.
    pub(super) fn rewind(&self, to: Seq) -> Plan {
        self.plan_back(self.units.partition_point(|unit| unit.start < to), to)
    }

    fn plan_back(&self, first: usize, to: Seq) -> Plan {
        let steps = steps_back(&self.units[first..]);
        let until =
            self.undone.iter().flat_map(|undone| &undone.units).map(|unit| unit.start).min().unwrap_or(Seq::MAX);
        let commands = self.commands.iter().copied().filter(|seq| (to..until).contains(seq)).collect();
        Plan { to, steps, commands }
    }

    /// What takes a turn back, by where it begins; without one, everything.
    pub(super) fn back(&self, turn: Option<Seq>) -> Vec<Step> {
        match turn {
            None => steps_back(&self.units),
            Some(start) => self.by_turn().find(|units| units[0].start == start).map(steps_back).unwrap_or_default(),
        }
    }

    /// Where the turns begin whose changes are in effect, oldest first.
    pub(super) fn turns(&self) -> Vec<Seq> {
        self.by_turn().map(|units| units[0].start).collect()
    }

    fn by_turn(&self) -> impl Iterator<Item = &[Unit]> {
        self.units.chunk_by(|one, other| one.turn == other.turn)
    }

    /// Every file with a change in effect, as it was before the first of them.
    pub(super) fn firsts(&self) -> Vec<(&Path, &Version)> {
        let mut files: Vec<(&Path, &Version)> = Vec::new();
        for change in self.units.iter().flat_map(|unit| &unit.files) {
            if files.iter().all(|(path, _)| *path != change.path) {
                files.push((&change.path, &change.before));
            }
        }
        files
    }

    /// Makes a replacement again, or takes it back.
    fn step(&self, file: Replaced, back: bool) -> Step {
        let Replaced { path, from, to, .. } = file;
        let (before, left) = if back { (from, to) } else { (to, from) };
        let open = self.open.contains(&path);
        Step { path: path.clone(), chain: vec![Change { path, before, left: vec![left], open, touched: None }] }
    }
}
