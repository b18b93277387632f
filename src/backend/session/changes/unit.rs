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
    /// When that was about to touch the path for the first time, and when it had ended, in nanoseconds since 1970; of a tool
    /// what the log says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::session) during: Option<(u64, u64)>,
    /// The first and the last entry that speak of it.
    #[serde(default)]
    pub(in crate::session) entries: (Seq, Seq),
    /// What was there before is what somebody else had made of what the command had left.
    #[serde(skip)]
    pub(in crate::session) since: bool,
}

impl Change {
    pub(in crate::session) fn new(path: PathBuf, before: Version, left: Vec<Version>, open: bool) -> Change {
        let (touched, record, commands) = (None, None, Vec::new());
        let (during, entries, since) = (None, (0, 0), false);
        Change { path, before, left, open, touched, record, commands, during, entries, since }
    }

    pub(in crate::session) fn after(&self) -> &Version {
        self.left.last().unwrap_or(&self.before)
    }

    /// Whether it came before another change of the same path. The log tells where one had ended before the other began; what
    /// happened at the same time is told apart by the clock.
    fn precedes(&self, other: &Change) -> bool {
        if self.entries.1 < other.entries.0 || other.entries.1 < self.entries.0 {
            return self.entries.1 < other.entries.0;
        }
        match (self.during, other.during) {
            (Some((one, _)), Some((other, _))) => one < other,
            _ => false,
        }
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
    /// The entry of its end.
    #[serde(default)]
    pub(in crate::session) until: Seq,
    /// Only what it did to these counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only: Option<Vec<Part>>,
    /// What it did to these does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    but: Vec<Part>,
}

/// A part of what a command did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    /// All of it to a path.
    Path(String),
    /// What began at a time or later, in nanoseconds since 1970.
    Since { path: String, from: u64 },
}

impl Part {
    fn of(path: &Path, from: u64) -> Part {
        match from {
            0 => Part::Path(text(path)),
            from => Part::Since { path: text(path), from },
        }
    }

    fn holds(&self, path: &str, began: u64) -> bool {
        match self {
            Part::Path(of) => of == path,
            Part::Since { path: of, from } => of == path && began >= *from,
        }
    }
}

impl Ran {
    pub(super) fn new(record: String, seq: Seq, until: Seq) -> Ran {
        Ran { record, seq, until, only: None, but: Vec::new() }
    }

    /// Whether what it began to do to a path at a time counts here.
    pub(in crate::session) fn counts(&self, path: &Path, began: u64) -> bool {
        let path = text(path);
        let listed = |parts: &[Part]| parts.iter().any(|part| part.holds(&path, began));
        self.only.as_ref().is_none_or(|only| listed(only)) && !listed(&self.but)
    }

    /// Parts it in two: what it did to `paths` from those times on, and the rest.
    pub(super) fn part<'a>(self, paths: impl Iterator<Item = (&'a Path, u64)>) -> (Ran, Ran) {
        let paths = paths.filter(|(path, _)| self.counts(path, u64::MAX));
        let only: Vec<Part> = paths.map(|(path, from)| Part::of(path, from)).collect();
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
    /// What commands in the background changed there after the first of these, the last one first: earlier turns had started
    /// them.
    pub(in crate::session) later: Vec<Change>,
}

impl Step {
    pub(in crate::session) fn of(change: Change) -> Step {
        Step { path: change.path.clone(), chain: vec![change], later: Vec::new() }
    }

    /// With what came later, too.
    pub(in crate::session) fn along(&self) -> Step {
        let mut chain: Vec<Change> = self.later.iter().chain(&self.chain).cloned().collect();
        sort(&mut chain);
        interleave(&mut chain);
        Step { path: self.path.clone(), chain, later: Vec::new() }
    }

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
                steps.push(Step::of(change));
            }
        }
    }
    for step in &mut steps {
        sort(&mut step.chain);
        interleave(&mut step.chain);
    }
    steps
}

/// Finds for each step what commands of earlier units did to its path after the first of its changes. Only such that ended
/// after entry `from` can have.
pub(super) fn find_later(steps: &mut [Step], earlier: &[Unit], from: Seq, read: Read<'_>) {
    let late = earlier.iter().flat_map(|unit| &unit.items).filter_map(|item| match item {
        Item::Command(ran) if ran.until > from => Some(ran),
        _ => None,
    });
    let late: Vec<Change> = late.flat_map(read).collect();
    if late.is_empty() {
        return;
    }
    let places: HashMap<PathBuf, usize> = steps.iter().enumerate().map(|(at, step)| (step.path.clone(), at)).collect();
    for change in late {
        let Some(step) = places.get(&change.path).map(|at| &mut steps[*at]) else { continue };
        let reaches = |first: &Change| first.precedes(&change) || overlaps(&change, first);
        if step.chain.last().is_some_and(reaches) {
            step.later.insert(0, change);
        }
    }
    steps.iter_mut().for_each(|step| sort(&mut step.later));
}

/// Whether one began before another, and had not ended by then.
fn overlaps(one: &Change, other: &Change) -> bool {
    let times = one.during.zip(other.during);
    one.record.is_some() && times.is_some_and(|((began, ended), (other, _))| began <= other && other <= ended)
}

/// Puts what happened to one file into the order in which it began, the last one first.
fn sort(chain: &mut [Change]) {
    for next in 1..chain.len() {
        let mut at = next;
        while at > 0 && chain[at - 1].precedes(&chain[at]) {
            chain.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Where nothing told apart what a command did before and after another change: what it left is what that one found.
fn interleave(chain: &mut Vec<Change>) {
    for at in 1..chain.len() {
        let (found, since) = (chain[at - 1].before.clone(), chain[at - 1].since);
        if chain[at - 1].record.is_some() && overlaps(&chain[at], &chain[at - 1]) && !since {
            chain[at].left.insert(0, found);
        }
    }
    // What it did after a change of a tool is a change of its own.
    let mut at = 1;
    while at < chain.len() {
        let (tool, command) = (&chain[at - 1], &chain[at]);
        match (tool.during, command.during) {
            (Some((began, ended)), Some((first, last)))
                if tool.record.is_none() && overlaps(command, tool) && ended < last =>
            {
                let before = tool.after().clone();
                let second = Change { before, during: Some((ended, last)), ..command.clone() };
                let left = vec![tool.before.clone()];
                chain[at] = Change { left, during: Some((first, began.saturating_sub(1))), ..command.clone() };
                chain.insert(at - 1, second);
                at = (at - 1).max(1);
            }
            _ => at += 1,
        }
    }
}
