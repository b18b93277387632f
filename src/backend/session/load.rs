//! Reads a log back. Of messages only what still counts is parsed; the rest is known at a glance.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::entry::{Entry, EntryKind};
use super::error::Error;
use super::folds::Folds;
use super::line::{self, Tag};
use super::log::{Line, Lines, Scan, scan};
use super::offsets;
use super::timeline::Timeline;
use crate::message::{Effect, Message};

/// A log as it was read through.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) folds: Folds,
    pub(super) scan: Scan,
    /// Number of lines that the index knew.
    pub(super) indexed: usize,
}

impl Loaded {
    /// Reads what its index does not know.
    pub(super) fn read(file: &File, log: &Path) -> io::Result<Loaded> {
        let mut loaded = offsets::restore(log, file).unwrap_or_else(|| Loaded {
            folds: Folds::new(log),
            scan: Scan::default(),
            indexed: 0,
        });
        let mut damaged = 0;
        let found = scan(file, loaded.scan, |line, bytes| {
            damaged += u64::from(loaded.folds.read(line, bytes).is_none());
        })?;
        loaded.scan = Scan { damaged: found.damaged + damaged, ..found };
        Ok(loaded)
    }

    /// What the user should know of damage.
    pub(super) fn notices(&self) -> Vec<String> {
        let Scan { torn, damaged, newer, .. } = self.scan;
        let mut notices = Vec::new();
        if torn > 0 {
            notices.push(format!("the last line of the session's log was cut off ({torn} bytes) and is ignored"));
        }
        if damaged > 0 {
            notices.push(format!(
                "skipped {damaged} damaged {} of the session's log",
                if damaged == 1 { "line" } else { "lines" }
            ));
        }
        if newer > 0 {
            notices.push(format!(
                "{newer} {} from a newer version; anything unknown to this version is ignored",
                if newer == 1 { "entry is" } else { "entries are" }
            ));
        }
        if self.folds.facts.header.is_none() {
            notices.push("the session's first entry is damaged: its folder is unknown".to_owned());
        }
        notices
    }
}

/// Makes the context of what counts of a log. Also the number of lines that turned out to be damaged.
///
/// # Errors
/// What the file system says.
pub(super) fn project(path: &Path, lines: &[Line], timeline: &Timeline, cwd: PathBuf) -> Result<(Context, u64), Error> {
    let failed = |error| Error::io("read", path, error);
    let live = timeline.live();
    let mut context = Context::new(cwd);
    let mut reader = Lines::open(path)?;
    let mut bytes = Vec::new();
    let mut damaged = 0;
    if let Some(boundary) = live.boundary {
        let before = timeline.back().skip(live.kept);
        let (mut todos, mut cwd) = (None, None);
        for index in before.filter(|index| lines[*index].carries) {
            reader.read(lines[index], &mut bytes).map_err(failed)?;
            if let Some(Entry { kind: EntryKind::Message { message }, .. }) = line::parse(&bytes) {
                state_after(&message, &mut todos, &mut cwd);
            }
            if todos.is_some() && cwd.is_some() {
                break;
            }
        }
        context.set_state(todos, cwd);
        reader.read(lines[boundary], &mut bytes).map_err(failed)?;
        if let Some(Entry { seq, kind: EntryKind::CompactBoundary(boundary), .. }) = line::parse(&bytes) {
            context.begin(seq, &boundary);
        }
    }
    let replaced = replaced_parts(lines, &live.entries);
    let entries: Vec<Line> = live.entries.iter().map(|index| lines[*index]).collect();
    let wanted = |(line, replaced): (&Line, &bool)| match line.tag {
        Tag::Part => !replaced,
        Tag::Prompt | Tag::Reply | Tag::Results | Tag::Message | Tag::Projected => true,
        Tag::TurnStarted | Tag::TurnEnded | Tag::Discarded | Tag::Request | Tag::Frozen | Tag::Other => false,
    };
    let read: Vec<Line> = entries.iter().zip(&replaced).filter(|pair| wanted(*pair)).map(|(line, _)| *line).collect();
    let mut parsed = parse_all(path, &read)?.into_iter();
    for pair in entries.iter().zip(&replaced) {
        let line = pair.0;
        match line.tag {
            // What else these say does not touch the context.
            Tag::TurnStarted | Tag::TurnEnded => context.apply(line.seq, &EntryKind::TurnStarted),
            Tag::Discarded => context.apply(line.seq, &EntryKind::ReplyDiscarded { reason: String::new() }),
            _ if wanted(pair) => match parsed.next().flatten() {
                Some(kind) => context.apply(line.seq, &kind),
                None => damaged += 1,
            },
            _ => {}
        }
    }
    Ok((context, damaged))
}

/// Lines from which on a second thread pays.
const MANY: usize = 4_000;

/// Parses lines, many of them on several threads. None: the line is damaged.
fn parse_all(path: &Path, lines: &[Line]) -> Result<Vec<Option<EntryKind>>, Error> {
    let parse = |lines: &[Line]| -> Result<Vec<Option<EntryKind>>, Error> {
        let mut reader = Lines::open(path)?;
        let mut bytes = Vec::new();
        let mut parsed = Vec::with_capacity(lines.len());
        for line in lines {
            reader.read(*line, &mut bytes).map_err(|error| Error::io("read", path, error))?;
            parsed.push(line::parse(&bytes).map(|entry| entry.kind));
        }
        Ok(parsed)
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(4));
    if lines.len() < MANY || threads == 1 {
        return parse(lines);
    }
    std::thread::scope(|scope| {
        let chunks = lines.chunks(lines.len().div_ceil(threads));
        let running: Vec<_> = chunks.map(|chunk| scope.spawn(move || parse(chunk))).collect();
        let mut parsed = Vec::with_capacity(lines.len());
        for thread in running {
            parsed.append(&mut thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(parsed)
    })
}

/// Which entries are parts of a reply whose message, or whose end, follows: they need not be read.
fn replaced_parts(lines: &[Line], entries: &[usize]) -> Vec<bool> {
    let mut replaced = vec![false; entries.len()];
    let mut gone = false;
    for (at, index) in entries.iter().enumerate().rev() {
        match lines[*index].tag {
            Tag::Reply | Tag::Discarded => gone = true,
            Tag::TurnStarted | Tag::TurnEnded | Tag::Projected => gone = false,
            Tag::Part => replaced[at] = gone,
            Tag::Prompt | Tag::Results | Tag::Message | Tag::Request | Tag::Frozen | Tag::Other => {}
        }
    }
    replaced
}

/// The last todo list and working directory that the results of a message set, where a later one has not done so already.
fn state_after(message: &Message, todos: &mut Option<Vec<crate::message::Todo>>, cwd: &mut Option<PathBuf>) {
    let effects: Vec<&Effect> = message.results().flat_map(|result| &result.effects).collect();
    for effect in effects.into_iter().rev() {
        match effect {
            Effect::Todos { items } if todos.is_none() => *todos = Some(items.clone()),
            Effect::Cwd { path } if cwd.is_none() => *cwd = Some(path.clone()),
            Effect::Todos { .. }
            | Effect::Cwd { .. }
            | Effect::Seen { .. }
            | Effect::Plan { .. }
            | Effect::Skills { .. }
            | Effect::Memory { .. }
            | Effect::Told { .. } => {}
        }
    }
}
