//! Reads a log back. Of messages only what still counts is parsed; the rest is known at a glance.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::changes::Changes;
use super::context::Context;
use super::entry::{Entry, EntryKind, Seq};
use super::error::Error;
use super::facts::Facts;
use super::line::{self, Tag};
use super::log::{Line, Lines, Scan, scan_after};
use super::offsets;
use super::timeline::Timeline;
use crate::message::{CallId, Effect, Message, Usage};

/// Highest number of a call that is believed.
const MAX_CALL: u64 = 1 << 53;

/// A log as it was read through.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) lines: Vec<Line>,
    pub(super) timeline: Timeline,
    pub(super) facts: Facts,
    pub(super) changes: Changes,
    pub(super) scan: Scan,
    pub(super) next_seq: Seq,
    pub(super) next_call: u64,
    /// Number of lines that the index knew.
    pub(super) indexed: usize,
}

impl Loaded {
    /// Reads what its index does not know.
    pub(super) fn read(file: &File, log: &Path) -> io::Result<Loaded> {
        let mut loaded = offsets::restore(log, file).unwrap_or_else(|| Loaded { next_call: 1, ..Loaded::default() });
        loaded.indexed = loaded.lines.len();
        // Usage of replies that no end of a turn has counted yet.
        let mut open = Vec::new();
        let mut damaged = 0;
        let found = scan_after(file, loaded.scan.clone(), |line, bytes| {
            if !loaded.add(line, bytes, &mut open) {
                damaged += 1;
            }
        })?;
        open.into_iter().for_each(|usage| loaded.facts.reply(usage));
        loaded.scan = Scan { damaged: found.damaged + damaged, ..found };
        Ok(loaded)
    }

    /// False: the line is damaged after all.
    fn add(&mut self, mut line: Line, bytes: &[u8], open: &mut Vec<Option<Usage>>) -> bool {
        match line.tag {
            Tag::Reply => {
                self.next_call = self.next_call.max(next_call_in(bytes));
                open.push(usage_of(bytes));
            }
            Tag::Results | Tag::Message => line.carries = carries(bytes),
            Tag::Prompt if self.facts.has_prompt() => {}
            Tag::Part | Tag::Discarded => {}
            Tag::Prompt | Tag::TurnStarted | Tag::TurnEnded | Tag::Projected | Tag::Other => {
                let Some(entry) = line::parse(bytes) else { return false };
                match &entry.kind {
                    EntryKind::TurnEnded { usage, .. } if *usage != Usage::default() => open.clear(),
                    EntryKind::TurnEnded { .. } | EntryKind::TurnStarted | EntryKind::ModelChanged { .. } => {
                        open.drain(..).for_each(|usage| self.facts.reply(usage));
                    }
                    _ => {}
                }
                self.facts.record(&entry);
                self.changes.apply(line.seq, &entry.kind);
                self.push(line, &entry.kind);
                return true;
            }
        }
        if line.tag == Tag::Prompt {
            self.changes.prompt(line.seq);
        }
        self.push(line, &EntryKind::Unknown);
        true
    }

    pub(super) fn push(&mut self, line: Line, kind: &EntryKind) {
        self.timeline.push(line.seq, kind);
        self.next_seq = self.next_seq.max(line.seq + 1);
        self.lines.push(line);
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
        if self.facts.header.is_none() {
            notices.push("the session's first entry is damaged: its folder is unknown".to_owned());
        }
        notices
    }
}

/// Folds what counts of a log into a context. Also the number of lines that turned out to be damaged.
///
/// # Errors
/// What the file system says.
pub(super) fn fold(path: &Path, lines: &[Line], timeline: &Timeline, cwd: PathBuf) -> Result<(Context, u64), Error> {
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
        Tag::TurnStarted | Tag::TurnEnded | Tag::Discarded | Tag::Other => false,
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
            Tag::Prompt | Tag::Results | Tag::Message | Tag::Other => {}
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
            | Effect::Memory { .. } => {}
        }
    }
}

impl Line {
    pub(super) fn new(offset: u64, len: usize, entry: &Entry) -> Line {
        let tag = Tag::of(&entry.kind);
        let sets = |effect: &Effect| matches!(effect, Effect::Todos { .. } | Effect::Cwd { .. });
        let carries = match &entry.kind {
            EntryKind::Message { message } if matches!(tag, Tag::Results | Tag::Message) => {
                message.results().any(|result| result.effects.iter().any(sets))
            }
            _ => false,
        };
        Line { offset, len, seq: entry.seq, tag, carries }
    }
}

/// Whether a line may set the todo list or the working directory. Text that looks so is escaped in a line.
fn carries(line: &[u8]) -> bool {
    static EFFECT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""type":\s?"(?:todos|cwd)""#).ok());
    EFFECT.as_ref().is_none_or(|effect| effect.is_match(line))
}

/// The number after the highest call of an entry, or 1.
pub(super) fn next_call(kind: &EntryKind) -> u64 {
    let EntryKind::Message { message } = kind else { return 1 };
    let number = |id: &CallId| id.as_str().strip_prefix("call_").and_then(|number| number.parse::<u64>().ok());
    let numbers = message.calls().filter_map(|call| number(&call.id)).filter(|number| *number < MAX_CALL);
    numbers.max().map_or(1, |number| number + 1)
}

/// As `next_call`, from a line that is not parsed. Arguments that look like a call only make it higher.
fn next_call_in(line: &[u8]) -> u64 {
    static CALL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""id":\s?"call_[0-9]{1,16}""#).ok());
    let Some(call) = CALL.as_ref() else { return 1 };
    let number = |found: &[u8]| {
        let digits: Vec<u8> = found.iter().copied().filter(u8::is_ascii_digit).collect();
        str::from_utf8(&digits).ok().and_then(|digits| digits.parse::<u64>().ok())
    };
    let numbers = call.find_iter(line).filter_map(|found| number(found.as_bytes()));
    numbers.filter(|number| *number < MAX_CALL).max().map_or(1, |number| number + 1)
}

/// The usage of a reply, without parsing its blocks: it is at the end of the line.
fn usage_of(line: &[u8]) -> Option<Usage> {
    const NAME: &[u8] = b"\"usage\":{";
    let tail = &line[line.len().saturating_sub(600)..];
    let at = tail.windows(NAME.len()).rposition(|window| window == NAME)?;
    let object = &tail[at + NAME.len() - 1..];
    serde_json::Deserializer::from_slice(object).into_iter::<Usage>().next()?.ok()
}
