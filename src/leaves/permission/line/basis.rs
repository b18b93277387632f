//! What a line that passes unasked rests on: what somebody allowed, or its text alone, which the kernel then has to hold.

use std::path::PathBuf;

use super::super::decide::{Query, Verdict};
use super::super::paths::Cwd;
use super::super::plain;
use super::super::shell::Word;
use super::super::{Behavior, Mode};
use super::Part;
use super::judge::Judge;
use crate::sandbox::Level;

/// What lets a part pass, if something does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// That it only reads, as far as its text says.
    Text,
    /// The same, and it is on the list of plain commands.
    Plain,
    /// A rule.
    Leave,
    /// The mode, which lets commands through that change files of the workspace alone.
    Edit,
    /// It does nothing outside of the line.
    Nothing,
}

/// What the whole line rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rests {
    /// It passes only because the kernel holds it to reading.
    pub(super) confined: bool,
    /// What it reads outside of the workspace; None where it may do more than read.
    pub(super) reads: Option<Vec<PathBuf>>,
}

/// What lets a command pass that only reads, where its verdict does.
pub(super) fn of(judge: &Judge, verdict: &Verdict, words: &[Word], cwd: &Cwd) -> Basis {
    let allowed = verdict.behavior == Behavior::Allow;
    let sets = words[0].literal().is_some_and(|name| matches!(name.as_str(), "set" | "read" | "export"));
    match judge.query.places {
        _ if allowed && sets => Basis::Nothing,
        places if allowed && plain::is_plain(words, cwd, places, judge.files) => Basis::Plain,
        _ if allowed && judge.is_allowed(words, cwd) => Basis::Leave,
        _ => Basis::Text,
    }
}

/// Why what only seems to read asks where nothing can confine it.
const UNCONFINED: &str = "it looks read-only, but this machine cannot confine it";

/// The same where the line has to be able to do more.
const BESIDE: &str =
    "it looks read-only, but cannot be confined beside a command that does more: run it as a line of its own";

/// The reason of a part that was only refused because nothing confines it.
pub(super) fn unconfined(verdict: &Verdict) -> Option<&str> {
    [UNCONFINED, BESIDE].contains(&verdict.reason.as_str()).then_some(verdict.reason.as_str())
}

/// Finds out what the line rests on. What rests on its text alone asks where the kernel does not hold the whole line to
/// reading: one shell runs all of it.
pub(super) fn rests(query: &Query, line: &str, parts: &mut [Part]) -> Rests {
    if query.mode == Mode::Bypass {
        return Rests::default();
    }
    let passes = |part: &Part| part.verdict.behavior == Behavior::Allow;
    // In plan mode no rule says more about what a command does than its text.
    let ruled = |part: &Part| part.basis == Basis::Leave && query.mode != Mode::Plan;
    let given = |part: &Part| ruled(part) || part.basis == Basis::Edit;
    let reads = parts.iter().all(|part| part.read_only && part.basis != Basis::Edit && !part.writes);
    // Beside what somebody allowed, the grammar that was good enough for their rule is good enough for a plain command.
    let plain = !reads || parts.iter().any(|part| passes(part) && given(part)) || is_as_written(line, parts);
    let text = |part: &Part| {
        let alone = match part.basis {
            Basis::Text => true,
            Basis::Plain => !plain,
            Basis::Leave => !ruled(part),
            Basis::Edit | Basis::Nothing => false,
        };
        alone && passes(part)
    };
    let confined = parts.iter().any(text);
    let why = match query.level {
        Level::None => Some(UNCONFINED),
        Level::Kernel | Level::Mount if !reads => Some(BESIDE),
        Level::Kernel | Level::Mount => None,
    };
    if let Some(why) = why.filter(|_| confined) {
        for part in parts.iter_mut().filter(|part| text(part)) {
            part.verdict = match &part.closed {
                Some(reason) => Verdict::firm(reason.clone()),
                None => Verdict::new(Behavior::Ask, why),
            };
            part.read_only = false;
        }
    }
    let outside = || parts.iter().flat_map(|part| part.outside.iter().cloned()).collect();
    Rests { confined: confined && why.is_none(), reads: reads.then(outside) }
}

/// Why a part passes that the workspace profile holds.
const HELD: &str = "it runs in the sandbox, and `sandbox.auto_allow` is on";

/// Lets everything pass that only asks because it may change something: the workspace profile is to hold it. What asks in
/// every mode still does, and so does reading outside of the workspace. Whether anything passes by that.
pub(super) fn hold(parts: &mut [Part]) -> bool {
    let asks = |part: &&mut Part| part.verdict.behavior == Behavior::Ask && !part.verdict.firm && !part.read_only;
    let held = parts.iter_mut().filter(asks).map(|part| part.verdict = Verdict::new(Behavior::Allow, HELD));
    held.count() > 0
}

/// Whether the commands of the line are just those that a reader finds which knows next to nothing of shells.
fn is_as_written(line: &str, parts: &[Part]) -> bool {
    let commands = parts.iter().filter(|part| part.basis != Basis::Nothing);
    let read: Option<Vec<Vec<String>>> = commands.map(|part| plain::texts(&part.words)).collect();
    read.is_some() && plain::commands(line) == read
}
