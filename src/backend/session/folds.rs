//! What a session knows from its entries: one set of folds, whether an entry was just written or is read back.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::context::Context;
use super::entry::{Entry, EntryKind, Seq};
use super::error::Error;
use super::facts::Facts;
use super::files::Files;
use super::line::{self, Tag};
use super::load::project;
use super::log::Line;
use super::meta::Count;
use super::packed::Packed;
use super::timeline::Timeline;
use crate::message::{CallId, Message, Role, Usage};

/// Highest number of a call that is believed.
const MAX_CALL: u64 = 1 << 53;

#[derive(Debug)]
pub(super) struct Folds {
    pub(super) lines: Packed,
    pub(super) timeline: Timeline,
    pub(super) facts: Facts,
    pub(super) files: Files,
    pub(super) count: Count,
    pub(super) next_seq: Seq,
    /// Larger than the number of any call in the log, rewound ones included.
    pub(super) next_call: u64,
}

/// What the folds need of an entry: of a reply so little that it is found in its line without parsing it.
pub(super) enum Said<'a> {
    Reply {
        usage: Option<Usage>,
        /// The number after its highest call, or 1.
        next_call: u64,
    },
    Entry(&'a Entry),
    /// Nothing but the kind of line that it is.
    Tag,
}

impl Said<'_> {
    pub(super) fn of(entry: &Entry) -> Said<'_> {
        match &entry.kind {
            EntryKind::Message { message } if message.role == Role::Assistant => {
                Said::Reply { usage: message.usage, next_call: next_call(message) }
            }
            _ => Said::Entry(entry),
        }
    }
}

impl Folds {
    /// Those of a log without entries.
    pub(super) fn new(log: &Path) -> Folds {
        Folds {
            lines: Packed::default(),
            timeline: Timeline::default(),
            facts: Facts::default(),
            files: Files::beside(log),
            count: Count::default(),
            next_seq: 0,
            next_call: 1,
        }
    }

    /// Folds a line that is read back, parsed only where the folds need it. None: it is damaged after all.
    pub(super) fn read(&mut self, mut line: Line, bytes: &[u8]) -> Option<()> {
        let parsed;
        let said = match line.tag {
            Tag::Reply => Said::Reply { usage: usage_of(bytes), next_call: next_call_in(bytes) },
            Tag::Results | Tag::Message => {
                line.carries = carries(bytes);
                if line.carries && tells(bytes) {
                    parsed = line::parse(bytes)?;
                    Said::Entry(&parsed)
                } else {
                    Said::Tag
                }
            }
            Tag::Prompt if self.facts.has_prompt() => Said::Tag,
            Tag::Part | Tag::Discarded | Tag::Request | Tag::Frozen => Said::Tag,
            Tag::Prompt | Tag::TurnStarted | Tag::TurnEnded | Tag::Projected | Tag::Other => {
                parsed = line::parse(bytes)?;
                Said::Entry(&parsed)
            }
        };
        self.fold(line, said);
        Some(())
    }

    /// Adds the next entry of the log. True if the projection must be folded from scratch.
    pub(super) fn fold(&mut self, line: Line, said: Said<'_>) -> bool {
        if line.tag == Tag::Prompt {
            self.files.changes.prompt(line.seq);
        }
        match said {
            Said::Reply { usage, next_call } => {
                self.facts.reply(usage);
                self.next_call = self.next_call.max(next_call);
                self.place(line, &EntryKind::Unknown)
            }
            Said::Entry(entry) => {
                self.facts.record(entry);
                self.files.changes.apply(line.seq, &entry.kind, &entry.ts);
                self.place(line, &entry.kind)
            }
            Said::Tag => self.place(line, &EntryKind::Unknown),
        }
    }

    /// The part of `fold` that the index of a log leaves to be done.
    pub(super) fn place(&mut self, line: Line, kind: &EntryKind) -> bool {
        self.count.add(line.tag);
        self.lines.push(line);
        self.next_seq = self.next_seq.max(line.seq + 1);
        self.timeline.push(line.seq, kind)
    }

    /// The projection of the entries that count, and the number of lines that turned out to be damaged.
    ///
    /// # Errors
    /// What reading the log says.
    pub(super) fn project(&self, log: &Path) -> Result<(Context, u64), Error> {
        project(log, &self.unpacked(), &self.timeline, self.cwd())
    }

    /// The position of every line, for callers that look through all of them.
    pub(super) fn unpacked(&self) -> Vec<Line> {
        self.lines.iter().collect()
    }

    /// Where the session began.
    pub(super) fn cwd(&self) -> PathBuf {
        self.facts.header.as_ref().map_or_else(|| PathBuf::from("."), |header| header.cwd.clone())
    }
}

fn next_call(reply: &Message) -> u64 {
    let number = |id: &CallId| id.as_str().strip_prefix("call_").and_then(|number| number.parse::<u64>().ok());
    let numbers = reply.calls().filter_map(|call| number(&call.id)).filter(|number| *number < MAX_CALL);
    numbers.max().map_or(1, |number| number + 1)
}

/// Whether a line may set what outlives a boundary. Text that looks so is escaped in a line.
fn carries(line: &[u8]) -> bool {
    static EFFECT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""type":\s?"(?:todos|cwd|told)""#).ok());
    EFFECT.as_ref().is_none_or(|effect| effect.is_match(line))
}

/// Whether a line may tell the model how a task ended.
fn tells(line: &[u8]) -> bool {
    static TOLD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""type":\s?"told""#).ok());
    TOLD.as_ref().is_none_or(|told| told.is_match(line))
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
