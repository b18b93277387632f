//! What a front end shows of a session's past: every message in the order of the log, and notes of what left the
//! conversation.

use std::path::Path;
use std::sync::Arc;

use super::entry::{Entry, EntryKind, Restore, Seq, Trigger, some_of};
use super::error::Error;
use super::line::{self, Tag};
use super::load::Loaded;
use super::log::{Line, Lines};
use super::parts::Parts;
use super::session::Session;
use crate::message::Kind;
use crate::protocol::{Earlier, HistoryItem, Part};
use crate::stdx::regular;

/// A prompt that one can go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRow {
    pub seq: Seq,
    pub text: String,
    /// Files changed between this prompt and the next, and the change is in effect.
    pub changed_files: bool,
}

impl Session {
    /// The user's prompts that count, oldest first: those that a boundary put away included. A `!` line is one while
    /// what it changed is in effect.
    ///
    /// # Errors
    /// What reading the log says.
    pub fn prompts(&self) -> Result<Vec<PromptRow>, Error> {
        let mut prompts = Vec::new();
        if self.is_empty() {
            return Ok(prompts);
        }
        let lines = self.folds.unpacked();
        let changes = &self.files().changes;
        let starts = |line: &Line| line.tag == Tag::Prompt || line.tag == Tag::Other && changes.starts_at(line.seq);
        let mut found: Vec<Line> = self.folds.timeline.back().map(|index| lines[index]).filter(starts).collect();
        found.reverse();
        let mut log = Reader::open(self.log())?;
        for line in found {
            if let Some(text) = log.read(line)?.and_then(|entry| typed(entry.kind)) {
                prompts.push(PromptRow { seq: line.seq, text, changed_files: false });
            }
        }
        let mut next = Seq::MAX;
        for prompt in prompts.iter_mut().rev() {
            prompt.changed_files = changes.any_between(prompt.seq, next);
            next = prompt.seq;
        }
        Ok(prompts)
    }

    /// The prompt or `!` line at `seq`, if one that counts is there.
    pub(super) fn prompt_at(&self, seq: Seq) -> Result<Option<String>, Error> {
        let lines = self.folds.unpacked();
        let found = self.folds.timeline.back().map(|index| lines[index]).find(|line| line.seq == seq);
        let Some(line) = found.filter(|line| matches!(line.tag, Tag::Prompt | Tag::Other)) else { return Ok(None) };
        Ok(Reader::open(self.log())?.read(line)?.and_then(|entry| typed(entry.kind)))
    }

    /// The last `turns` prompts with all that followed, oldest first, and the number of messages before them.
    ///
    /// # Errors
    /// What reading the log says.
    pub fn history(&self, turns: usize) -> Result<(Vec<HistoryItem>, u64), Error> {
        let lines = self.folds.unpacked();
        if !self.folds.facts.used() || turns == 0 {
            return Ok((Vec::new(), count(&lines)));
        }
        let prompts = lines.iter().enumerate().filter(|(_, line)| line.tag == Tag::Prompt);
        let first = prompts.rev().nth(turns - 1).map_or(0, |(index, _)| index);
        let mut screen = screen(self.log(), &lines[first..])?;
        // Nobody else writes it: what is open now stays so. Where it is only read, another process may be at it.
        if !self.read_only() {
            screen.cut_off();
        }
        Ok((screen.so_far(), count(&lines[..first])))
    }
}

/// What the user typed where this is a message or the start of a `!` line.
pub(super) fn typed(kind: EntryKind) -> Option<String> {
    match kind {
        EntryKind::Message { message } => Some(message.text()),
        EntryKind::ShellStarted { command } => Some(format!("!{command}")),
        _ => None,
    }
}

/// Reads everything that can be shown of a log, oldest first; also while a session writes it.
///
/// # Errors
/// What the file system says.
pub fn read_history(log: &Path) -> Result<Vec<HistoryItem>, Error> {
    let failed = |error| Error::io("read", log, error);
    let file = regular::open(log).map_err(failed)?;
    let loaded = Loaded::read(&file, log).map_err(failed)?;
    Ok(screen(log, &loaded.folds.unpacked())?.so_far())
}

/// Reads a part of a log, about `most` entries; also while a session writes it. It begins and ends where no call waits
/// for its result.
///
/// # Errors
/// What the file system says.
pub fn read_part(log: &Path, part: Part, most: usize) -> Result<Earlier, Error> {
    let failed = |error| Error::io("read", log, error);
    let file = regular::open(log).map_err(failed)?;
    let lines = Loaded::read(&file, log).map_err(failed)?.folds.unpacked();
    let at = |seq: Seq| lines.partition_point(|line| line.seq < seq);
    let apart = |index: &usize| {
        let before = index.checked_sub(1).map(|before| lines[before].tag);
        before.is_none_or(|tag| tag == Tag::Results) || lines.get(*index).is_none_or(|line| line.tag == Tag::Prompt)
    };
    let (range, end) = match part {
        Part::Before(seq) => {
            let end = at(seq);
            let start = (0..=end.saturating_sub(most)).rev().find(apart).unwrap_or(0);
            (start..end, end)
        }
        Part::Between(from, before) => {
            let (start, end) = (at(from), at(before).max(at(from)));
            (start..((start + most).min(end)..end).find(apart).unwrap_or(end), end)
        }
    };
    Ok(Earlier {
        from: lines.get(range.start).map_or(0, |line| line.seq),
        until: range.end.checked_sub(1).map_or(0, |last| lines[last].seq + 1),
        older: count(&lines[..range.start]),
        newer: count(&lines[range.end..end]),
        items: screen(log, &lines[range])?.so_far(),
    })
}

fn count(lines: &[Line]) -> u64 {
    lines.iter().filter(|line| matches!(line.tag, Tag::Prompt | Tag::Reply | Tag::Results)).count() as u64
}

/// Reads entries back.
struct Reader<'a> {
    path: &'a Path,
    lines: Lines,
    bytes: Vec<u8>,
}

impl Reader<'_> {
    fn open(path: &Path) -> Result<Reader<'_>, Error> {
        Ok(Reader { path, lines: Lines::open(path)?, bytes: Vec::new() })
    }

    fn read(&mut self, line: Line) -> Result<Option<Entry>, Error> {
        self.lines.read(line, &mut self.bytes).map_err(|error| Error::io("read", self.path, error))?;
        Ok(line::parse(&self.bytes))
    }
}

fn screen(path: &Path, lines: &[Line]) -> Result<Screen, Error> {
    let mut log = Reader::open(path)?;
    let mut screen = Screen::default();
    for line in lines {
        if let Some(entry) = log.read(*line)? {
            screen.add(entry);
        }
    }
    Ok(screen)
}

#[derive(Default)]
struct Screen {
    items: Vec<HistoryItem>,
    parts: Parts,
    /// Where the parts began.
    at: Seq,
}

impl Screen {
    fn add(&mut self, entry: Entry) {
        match entry.kind {
            EntryKind::Message { message } => {
                if message.kind == Kind::Reply {
                    self.parts.clear();
                }
                if message.user_visible {
                    self.items.push(HistoryItem::Message { seq: entry.seq, message });
                }
            }
            EntryKind::ReplyPart { text, thinking } => {
                if self.parts.is_empty() {
                    self.at = entry.seq;
                }
                self.parts.add(&text, &thinking);
            }
            EntryKind::ReplyDiscarded { reason } => {
                self.flush();
                self.note(format!("Discarded the answer above and retried: {reason}"));
            }
            EntryKind::TurnStarted => self.cut_off(),
            EntryKind::TurnEnded { .. } => _ = self.flush(),
            EntryKind::FilesRestored { files, .. } if files.is_empty() => {}
            EntryKind::FilesRestored { how, files, .. } => {
                let files: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
                let verb = match how {
                    Restore::Undo => "Undid the changes of",
                    Restore::Redo => "Redid the changes of",
                    Restore::Rewind => "Rewound: restored",
                    Restore::Review => "Reverted in /diff:",
                };
                self.note(format!("{verb} {}", some_of(files)));
            }
            EntryKind::ShellRan { command, output, code } => {
                self.items.push(HistoryItem::Shell { command, output, code });
            }
            EntryKind::ToolResultsCleared { calls, .. } => {
                self.note(format!("Cleared {} old tool results", calls.len()));
            }
            EntryKind::BlocksClipped { blocks } => {
                self.note(format!("Clipped {} large blocks of the conversation", blocks.len()));
            }
            EntryKind::ToolResultsArchived { calls, .. } => {
                self.note(format!("Replaced {} old tool results with a digest", calls.len()));
            }
            EntryKind::CompactBoundary(boundary) => {
                self.flush();
                match boundary.trigger {
                    Trigger::Plan => self.note("the conversation restarts with the approved plan".to_owned()),
                    Trigger::Manual | Trigger::Auto => {
                        let summary = boundary.told();
                        self.items.push(HistoryItem::Compacted { receipt: boundary.receipt, summary });
                    }
                }
            }
            EntryKind::BoundaryUndone { .. } => self.note("Compaction undone".to_owned()),
            EntryKind::Rewind { .. } => {
                self.flush();
                self.note("Rewound the conversation to before an earlier prompt".to_owned());
            }
            EntryKind::Decided(decided) => self.note(decided.to_string()),
            EntryKind::TaskEnded(ended) => self.note(ended.line()),
            EntryKind::Header(_)
            | EntryKind::FileBefore { .. }
            | EntryKind::FileAfter { .. }
            | EntryKind::FilesSettled { .. }
            | EntryKind::FileTouched { .. }
            | EntryKind::FilesKnown { .. }
            | EntryKind::CommandRan { .. }
            | EntryKind::ShellStarted { .. }
            | EntryKind::CommandChanged { .. }
            | EntryKind::Title { .. }
            | EntryKind::ModeChanged { .. }
            | EntryKind::ModelChanged { .. }
            | EntryKind::ThinkingChanged { .. }
            | EntryKind::Granted { .. }
            | EntryKind::Revoked { .. }
            | EntryKind::Trusted { .. }
            | EntryKind::HookRan { .. }
            | EntryKind::PlanSlug { .. }
            | EntryKind::SkillInvoked { .. }
            | EntryKind::Spent { .. }
            | EntryKind::AgentStarted { .. }
            | EntryKind::TaskBegun(_)
            | EntryKind::Frozen(_)
            | EntryKind::Request(_)
            | EntryKind::CacheBroke(_)
            | EntryKind::Unknown => {}
        }
    }

    fn note(&mut self, text: String) {
        self.items.push(HistoryItem::Note { text });
    }

    /// Shows parts that never got their message. True where there were any.
    fn flush(&mut self) -> bool {
        let reply = self.parts.reply();
        let any = reply.is_some();
        self.items.extend(reply.map(|reply| HistoryItem::Message { seq: self.at, message: Arc::new(reply) }));
        any
    }

    /// The turn that was under way never got its end.
    fn cut_off(&mut self) {
        if self.flush() {
            self.note("cut off: cocode ended before the answer did".to_owned());
        }
    }

    /// What is shown while the answer may still grow.
    fn so_far(mut self) -> Vec<HistoryItem> {
        self.flush();
        self.items
    }
}
