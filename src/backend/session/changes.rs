//! Which file changes of a session are in effect, and which were undone: a pure fold over its entries.

mod undone;
mod unit;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::undone::Undone;
pub(super) use self::unit::{Change, Ran, Read, Step};
use self::unit::{Item, Unit, find_later, steps_back};
use super::entry::{Along, Begun, Ended, EntryKind, Replaced, Restore, Seq, Version};
use crate::message::BlobId;

/// A recorded command in the background that has not ended, as far as the log tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Background {
    task: String,
    record: String,
    /// Its entry.
    ran: Seq,
    /// Start and turn of the unit that it belongs to.
    start: Seq,
    turn: u64,
}

/// In place of an entry: nothing more is undone than the last undo or redo did.
pub(super) const AGAIN: Seq = Seq::MAX;

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
    /// Entries of commands that were not wholly seen; what they were is in the log.
    commands: Vec<Seq>,
    /// Records of commands that have not ended, as far as the log tells, and their entries.
    running: Vec<(String, Seq)>,
    /// Those of them that no call waits for: they outlive their turn, and what they change is that turn's all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    background: Vec<Background>,
    /// What a change under way leaves beside its file when the program is killed.
    temporaries: Vec<Temporary>,
    /// Folders that were made for a file.
    #[serde(default)]
    made: HashSet<PathBuf>,
    /// Files of a turn that has not ended, for which folders were made.
    #[serde(default)]
    fresh: Vec<PathBuf>,
}

impl Changes {
    pub(super) fn fresh(&self) -> &[PathBuf] {
        &self.fresh
    }

    /// Whether the folder did not exist before a file in it was written.
    pub(super) fn made(&self, folder: &Path) -> bool {
        self.made.contains(folder)
    }

    /// `ts` is the time of the entry.
    pub(super) fn apply(&mut self, seq: Seq, kind: &EntryKind, ts: &str) {
        match kind {
            EntryKind::TurnStarted => {
                self.start = seq;
                self.turn += 1;
                self.temporaries.clear();
                self.fresh.clear();
                // Those that changed nothing say nothing at their end.
                self.running.clear();
            }
            EntryKind::TurnEnded { .. } => {
                self.temporaries.clear();
                self.fresh.clear();
            }
            // What comes behind a line is not the line's, nor that of the turn before it.
            EntryKind::ShellStarted { .. } | EntryKind::ShellRan { .. } => {
                self.start = seq;
                self.turn += 1;
            }
            EntryKind::FileBefore { path, blob, mode, folders } => {
                self.made.extend(path.ancestors().skip(1).take(*folders).map(Path::to_owned));
                self.fresh.extend((*folders > 0).then(|| path.clone()));
                let before = Version::of(blob.clone(), *mode);
                let during = nanos(ts).map(|at| (at, at));
                let change = Change::new(path.clone(), before, Vec::new(), false);
                self.push(Item::File(Change { during, entries: (seq, seq), ..change }));
            }
            EntryKind::FileAfter { path, blob, mode, temporary } => {
                self.temporaries.extend(temporary.clone().map(|path| Temporary { path, new: blob.clone() }));
                let after = Version::of(blob.clone(), *mode);
                let start = self.start;
                let unit = self.units.last_mut().filter(|unit| unit.start == start);
                if let Some(file) = unit.and_then(|unit| unit.file(path)) {
                    file.left.push(after);
                    (file.open, file.touched, file.entries.1) = (true, None, seq);
                    file.during = file.during.and_then(|(began, _)| Some((began, nanos(ts)?)));
                }
            }
            EntryKind::FilesSettled { paths } => {
                self.open.retain(|path| !paths.contains(path));
                let paths: HashSet<&PathBuf> = paths.iter().collect();
                for item in self.units.iter_mut().flat_map(|unit| &mut unit.items) {
                    match item {
                        Item::File(file) if paths.contains(&file.path) => file.open = false,
                        Item::File(_) | Item::Command(_) => {}
                    }
                }
            }
            EntryKind::FileTouched { path, blob } => {
                let start = self.start;
                let unit = self.units.last_mut().filter(|unit| unit.start == start);
                if let Some(file) = unit.and_then(|unit| unit.file(path)) {
                    file.touched.clone_from(blob);
                }
            }
            EntryKind::FilesRestored { to, how, files, refused, along } => {
                let temporary =
                    |file: &Replaced| Temporary { path: file.temporary.clone(), new: file.to.blob().cloned() };
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
                        let change = |file: &Replaced| {
                            let left = vec![file.to.clone()];
                            let change = Change::new(file.path.clone(), file.from.clone(), left, true);
                            let during = nanos(ts).map(|at| (at, at));
                            Item::File(Change { during, entries: (seq, seq), ..change })
                        };
                        let items = files.iter().map(change).collect();
                        self.units.push(Unit { start: seq, turn: self.turn, items });
                        // What comes behind it in the same turn is a unit of its own.
                        self.turn += 1;
                    }
                    Restore::Undo | Restore::Rewind => {
                        let first = self.units.partition_point(|unit| unit.start < *to);
                        let units = self.units.split_off(first);
                        let along = self.take_along(along);
                        self.undone.push(Undone { units, along, files: files.clone() });
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
            EntryKind::CommandRan { record: None, .. } => self.commands.push(seq),
            EntryKind::CommandRan { record: Some(record), .. } => self.running.push((record.clone(), seq)),
            EntryKind::TaskBegun(Begun { task, record: Some(record), .. }) => {
                if let Some(at) = self.running.iter().position(|(running, _)| running == record) {
                    let (record, ran) = self.running.remove(at);
                    let (task, start, turn) = (task.clone(), self.start, self.turn);
                    self.background.push(Background { task, record, ran, start, turn });
                }
            }
            // One that changed something has said so before.
            EntryKind::TaskEnded(Ended { task, .. }) => self.background.retain(|running| running.task != *task),
            EntryKind::CommandChanged { record, files, missed } => {
                let at = self.background.iter().position(|running| running.record == *record);
                let background = at.map(|at| self.background.remove(at));
                let ran = self.running.iter().find(|(running, _)| running == record).map(|(_, ran)| *ran);
                let ran = background.as_ref().map(|running| running.ran).or(ran).unwrap_or(seq);
                self.running.retain(|(running, _)| running != record);
                if !missed.is_empty() {
                    self.commands.push(ran);
                }
                let item = (*files > 0).then(|| Item::Command(Ran::new(record.clone(), ran, seq)));
                match (item, background) {
                    (Some(item), None) => self.push(item),
                    // It ends by itself, maybe long after an undo: what was undone can still be redone, as far as the files are
                    // as the undo left them.
                    (Some(item), Some(Background { start, turn, .. })) => {
                        self.stand(vec![Unit { start, turn, items: vec![item] }]);
                    }
                    (None, _) => {}
                }
            }
            _ => {}
        }
    }

    /// A new change. It ends what could be redone.
    fn push(&mut self, item: Item) {
        self.undone.clear();
        self.last = None;
        if self.units.last().is_none_or(|unit| unit.start != self.start) {
            self.units.push(Unit { start: self.start, turn: self.turn, items: Vec::new() });
        }
        self.units.last_mut().into_iter().for_each(|unit| unit.items.push(item.clone()));
    }

    /// Records of commands whose end is not in the log.
    pub(super) fn running(&self) -> Vec<String> {
        let background = self.background.iter().map(|running| running.record.clone());
        self.running.iter().map(|(record, _)| record.clone()).chain(background).collect()
    }

    /// Entries of commands that run in the background.
    pub(super) fn in_the_background(&self) -> impl Iterator<Item = Seq> {
        self.background.iter().map(|running| running.ran)
    }

    /// Whether a command, by its entry, runs in the background.
    pub(super) fn in_background(&self, ran: Seq) -> bool {
        self.background.iter().any(|running| running.ran == ran)
    }

    /// The recorded commands in effect from an entry on.
    pub(super) fn recorded_since(&self, to: Seq) -> impl Iterator<Item = &Ran> {
        let items = self.units.iter().filter(move |unit| unit.start >= to).flat_map(|unit| &unit.items);
        items.filter_map(|item| match item {
            Item::Command(ran) => Some(ran),
            Item::File(_) => None,
        })
    }

    /// All records with something in effect, or to be redone; oldest first.
    pub(super) fn records(&self) -> Vec<String> {
        let units = self.units.iter().chain(self.undone.iter().flat_map(|undone| &undone.units));
        let records = units.flat_map(|unit| &unit.items).filter_map(|item| match item {
            Item::Command(ran) => Some(ran.record.clone()),
            Item::File(_) => None,
        });
        records.collect()
    }

    /// What the last undo did not do to these files is in effect as before.
    fn keep(&mut self, paths: &[PathBuf]) {
        if let Some(last) = self.undone.pop() {
            let (kept, undone) = last.part(paths);
            self.stand(kept.along);
            self.stand(kept.units);
            self.undone.extend(Some(undone).filter(|undone| paths.is_empty() || !undone.is_empty()));
        }
    }

    /// What was undone last is in effect again, except for these files: they are left to the next redo.
    fn bring_forth(&mut self, refused: &[PathBuf]) {
        if let Some(last) = self.undone.pop() {
            let (left, forth) = last.part(refused);
            self.stand(forth.along);
            self.stand(forth.units);
            self.undone.extend(Some(left).filter(|left| !left.is_empty()));
        }
    }

    /// Parts what commands in the background did to some paths from what else they did.
    fn take_along(&mut self, along: &[Along]) -> Vec<Unit> {
        let mut taken = Vec::new();
        if along.is_empty() {
            return taken;
        }
        for unit in &mut self.units {
            let mut items = Vec::new();
            for item in &mut unit.items {
                let Item::Command(ran) = item else { continue };
                let mine = along.iter().filter(|along| along.record == ran.record);
                let mine: Vec<&Along> = mine.filter(|along| ran.counts(&along.path, u64::MAX)).collect();
                if !mine.is_empty() {
                    let paths = mine.iter().map(|along| (along.path.as_path(), along.from));
                    let (mine, rest) = ran.clone().part(paths);
                    *ran = rest;
                    items.push(Item::Command(mine));
                }
            }
            if !items.is_empty() {
                taken.push(Unit { start: unit.start, turn: unit.turn, items });
            }
        }
        taken
    }

    /// Puts units where they belong. A file's changes since one prompt are always together, so their order holds.
    fn stand(&mut self, units: Vec<Unit>) {
        for unit in units {
            match self.units.binary_search_by_key(&unit.start, |unit| unit.start) {
                Ok(at) => self.units[at].items.extend(unit.items),
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
        unit.files().rfind(|file| file.path == path)
    }

    /// The same, unless a command ran since, which may have changed the file, too.
    pub(super) fn latest(&self, path: &Path) -> Option<&Change> {
        let unit = self.units.last().filter(|unit| unit.start == self.start)?;
        let since = unit.items.iter().rev().map_while(|item| match item {
            Item::File(change) => Some(change),
            Item::Command(_) => None,
        });
        since.into_iter().find(|change| change.path == path)
    }

    /// What may lie beside files that the program was changing when it ended.
    pub(super) fn temporaries(&self) -> &[Temporary] {
        &self.temporaries
    }

    /// The newest changes of files that were never settled, those of an undo included.
    pub(super) fn unsettled(&self) -> Vec<Change> {
        let mut newest: Vec<&Change> = Vec::new();
        for change in self.units.iter().rev().flat_map(|unit| unit.files().rev()) {
            if newest.iter().all(|known| known.path != change.path) {
                newest.push(change);
            }
        }
        let undone = self.last.iter().flat_map(|(_, files)| files).filter(|file| self.open.contains(&file.path));
        let undone = undone.flat_map(|file| self.step(file.clone(), true).chain);
        newest.into_iter().filter(|change| change.open).cloned().chain(undone).collect()
    }

    /// True if changes in effect begin at an entry.
    pub(super) fn starts_at(&self, seq: Seq) -> bool {
        self.units.binary_search_by_key(&seq, |unit| unit.start).is_ok()
    }

    /// True if files changed between two entries and the change is in effect.
    pub(super) fn any_between(&self, from: Seq, until: Seq) -> bool {
        self.units.iter().any(|unit| (from..until).contains(&unit.start))
    }

    /// Undoes the last turn that changed files, if there is one.
    pub(super) fn undo(&self, read: Read<'_>) -> Option<Plan> {
        let mut end = self.units.len();
        while end > 0 {
            let turn = self.units[end - 1].turn;
            let first = self.units[..end].iter().rposition(|unit| unit.turn != turn).map_or(0, |last| last + 1);
            let plan = self.plan_back(first, self.units[first].start, read);
            // Of a command nothing may be left to undo.
            if !plan.steps.is_empty() {
                return Some(plan);
            }
            end = first;
        }
        None
    }

    /// The last undo or redo once more, for files that are still as they were before it: the program was killed
    /// meanwhile, or they could not be written.
    pub(super) fn unfinished(&self, redo: bool, still: impl Fn(&Replaced) -> bool) -> Option<Plan> {
        let (_, files) = self.last.as_ref().filter(|(how, _)| redo == (*how == Restore::Redo))?;
        let left = files.iter().filter(|file| self.open.contains(&file.path) && still(file));
        let steps: Vec<Step> = left.map(|file| self.step(file.clone(), false)).collect();
        (!steps.is_empty()).then_some(Plan { to: AGAIN, steps, commands: Vec::new() })
    }

    /// Undoes the last undo or rewind, if there is one.
    pub(super) fn redo(&self, read: Read<'_>) -> Option<Plan> {
        let undone = self.undone.last()?;
        let to = undone.units.last().map_or(0, |unit| unit.start + 1);
        let by: HashMap<PathBuf, Vec<Seq>> =
            steps_back(&undone.units, read).into_iter().map(|step| (step.path.clone(), step.commands())).collect();
        let step = |file: &Replaced| {
            let mut step = self.step(file.clone(), true);
            step.chain[0].commands = by.get(&file.path).cloned().unwrap_or_default();
            step
        };
        let steps = undone.files.iter().map(step).collect();
        Some(Plan { to, steps, commands: Vec::new() })
    }

    /// Takes everything back that changed since entry `to`.
    pub(super) fn rewind(&self, to: Seq, read: Read<'_>) -> Plan {
        self.plan_back(self.units.partition_point(|unit| unit.start < to), to, read)
    }

    fn plan_back(&self, first: usize, to: Seq, read: Read<'_>) -> Plan {
        let mut steps = steps_back(&self.units[first..], read);
        find_later(&mut steps, &self.units[..first], to, read);
        let until =
            self.undone.iter().flat_map(|undone| &undone.units).map(|unit| unit.start).min().unwrap_or(Seq::MAX);
        // What runs still is not seen yet.
        let commands = self.commands.iter().copied().chain(self.background.iter().map(|running| running.ran));
        let commands = commands.filter(|seq| (to..until).contains(seq)).collect();
        Plan { to, steps, commands }
    }

    /// What takes a turn back, by where it begins; without one, everything.
    pub(super) fn back(&self, turn: Option<Seq>, read: Read<'_>) -> Vec<Step> {
        let of = |units: &[Unit]| steps_back(units, read);
        match turn {
            None => of(&self.units),
            Some(start) => self.by_turn().find(|units| units[0].start == start).map(of).unwrap_or_default(),
        }
    }

    /// Where the turns begin whose changes are in effect, oldest first.
    pub(super) fn turns(&self) -> Vec<Seq> {
        self.by_turn().map(|units| units[0].start).collect()
    }

    fn by_turn(&self) -> impl Iterator<Item = &[Unit]> {
        self.units.chunk_by(|one, other| one.turn == other.turn)
    }

    /// Every path with a change in effect, as it was before the first of them.
    pub(super) fn firsts(&self, read: Read<'_>) -> Vec<(PathBuf, Version)> {
        let mut known = HashSet::new();
        let all = self.units.iter().flat_map(|unit| unit.changes(read));
        all.filter(|change| known.insert(change.path.clone())).map(|change| (change.path, change.before)).collect()
    }

    /// Makes a replacement again, or takes it back.
    fn step(&self, file: Replaced, back: bool) -> Step {
        let Replaced { path, from, to, .. } = file;
        let (before, left) = if back { (from, to) } else { (to, from) };
        let open = self.open.contains(&path);
        Step::of(Change::new(path, before, vec![left], open))
    }
}

/// The time of an entry, in nanoseconds since 1970.
fn nanos(ts: &str) -> Option<u64> {
    u64::try_from(ts.parse::<jiff::Timestamp>().ok()?.as_nanosecond()).ok()
}
