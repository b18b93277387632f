//! The reply under way: it grows by deltas, and ends in the final message, or is dropped. What the scrollback has of it
//! stays as it is in every case.

use std::cmp::Ordering;
use std::time::Duration;

use super::Transcript;
use crate::message::{Block, Message, tokens};
use crate::tui::cell::thinking::Thinking;
use crate::tui::cell::{Cell, Reply};

/// What a delta adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrowKind {
    Reply,
    Thinking,
}

impl Transcript {
    /// Adds to the reply or the thinking under way, or begins one.
    pub(super) fn grow(&mut self, text: &str, kind: GrowKind, now: Duration) {
        // White space alone is nothing to think about, however much of it comes.
        let text = match (kind, self.open.map(|index| &self.slots[index].cell)) {
            (GrowKind::Thinking, Some(Cell::Thinking(thinking))) if !thinking.source.is_empty() => text,
            (GrowKind::Thinking, _) => text.trim_start(),
            (GrowKind::Reply, _) => text,
        };
        if text.is_empty() {
            return;
        }
        if let Some(index) = self.open {
            let grown = match (&mut self.slots[index].cell, kind) {
                (Cell::Reply(reply), GrowKind::Reply) => Some(&mut reply.source),
                (Cell::Thinking(thinking), GrowKind::Thinking) => Some(&mut thinking.source),
                _ => None,
            };
            if let Some(source) = grown {
                source.push_str(text);
                self.touch(index);
                return;
            }
        }
        self.close_open(now);
        let source = text.to_string();
        self.push(match kind {
            GrowKind::Reply => Cell::Reply(Reply { source, closed: false }),
            GrowKind::Thinking => {
                Cell::Thinking(Thinking { source, since: Some(now), took: None, tokens: None, closed: false })
            }
        });
        let index = self.slots.len() - 1;
        self.open = Some(index);
        self.reply.get_or_insert(index);
    }

    pub(super) fn close_open(&mut self, now: Duration) {
        let Some(index) = self.open.take() else { return };
        match &mut self.slots[index].cell {
            Cell::Reply(reply) => reply.closed = true,
            Cell::Thinking(thinking) => thinking.close(now),
            _ => {}
        }
        self.touch(index);
    }

    /// The thoughts under way are complete.
    pub(super) fn thought(&mut self, tokens: u64, now: Duration) {
        let Some(index) = self.open else { return };
        if let Cell::Thinking(thinking) = &mut self.slots[index].cell {
            thinking.tokens = Some(tokens);
            self.close_open(now);
        }
    }

    /// Puts what the provider counted in the place of the estimate. Only one cell can be what the whole count is of.
    fn count_thoughts(&mut self, first: usize, message: &Message) {
        let reasoning = message.usage.map_or(0, |usage| usage.reasoning);
        let thoughts = (first..self.slots.len()).filter(|index| matches!(self.slots[*index].cell, Cell::Thinking(_)));
        let thoughts: Vec<usize> = thoughts.collect();
        if let ([index], true) = (&thoughts[..], reasoning > 0)
            && let Cell::Thinking(thinking) = &mut self.slots[*index].cell
        {
            thinking.tokens = Some(reasoning);
            self.touch(*index);
        }
    }

    /// The final message takes the place of what was streamed of it.
    pub(super) fn reply_done(&mut self, message: &Message, now: Duration) {
        self.close_open(now);
        let Some(first) = self.reply.take() else {
            let first = self.slots.len();
            for block in &message.blocks {
                match block {
                    Block::Text { text, .. } if !text.trim().is_empty() => {
                        self.push(Cell::Reply(Reply { source: text.clone(), closed: true }));
                    }
                    Block::Thinking { text, .. } if !text.trim().is_empty() => {
                        let (source, tokens) = (text.clone(), Some(tokens::text(text)));
                        self.push(Cell::Thinking(Thinking { source, since: None, took: None, tokens, closed: true }));
                    }
                    _ => {}
                }
            }
            self.count_thoughts(first, message);
            return;
        };
        self.count_thoughts(first, message);
        let text = |block: &Block| match block {
            Block::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        let last: String = message.blocks.iter().filter_map(text).collect();
        let streamed: Vec<usize> =
            (first..self.slots.len()).filter(|index| matches!(self.slots[*index].cell, Cell::Reply(_))).collect();
        let so_far: String = streamed.iter().map(|index| self.source(*index)).collect();
        if so_far.trim() != last.trim() {
            self.replace(&streamed, &last);
        }
    }

    fn source(&self, index: usize) -> &str {
        match &self.slots[index].cell {
            Cell::Reply(reply) => &reply.source,
            _ => "",
        }
    }

    fn set_source(&mut self, index: usize, source: String) {
        if let Cell::Reply(reply) = &mut self.slots[index].cell {
            reply.source = source;
            self.touch(index);
        }
    }

    /// Undoes what was read of a streamed cell but not handed out; the bytes of its source that stay.
    fn take_back(&mut self, index: usize) -> usize {
        match index.cmp(&self.next) {
            Ordering::Less => self.source(index).len(),
            // Complete: only its colors are missing.
            Ordering::Equal if self.stream.finished() => self.source(index).len(),
            Ordering::Equal if self.stream.started() => self.stream.rewind(),
            Ordering::Equal => {
                self.stream = self.fresh_stream();
                0
            }
            Ordering::Greater => 0,
        }
    }

    /// Puts another text in the place of streamed cells, without touching what was handed out of them.
    fn replace(&mut self, streamed: &[usize], text: &str) {
        let mut shown = String::new();
        for index in streamed {
            let keep = self.take_back(*index);
            shown.push_str(&self.source(*index)[..keep]);
        }
        let rest = text.strip_prefix(&shown);
        let mut left = rest.unwrap_or_default();
        let next = self.next;
        for index in streamed.iter().filter(|index| **index >= next) {
            let keep = self.take_back(*index);
            let source = format!("{}{}", &self.source(*index)[..keep], std::mem::take(&mut left));
            self.set_source(*index, source);
        }
        let left = if rest.is_none() { text } else { left };
        if !left.trim().is_empty() {
            self.push(Cell::Reply(Reply { source: left.to_string(), closed: true }));
        }
    }

    /// What was streamed of the reply is out of the conversation. What the scrollback has of it stays, with a note.
    pub(super) fn discard(&mut self, reason: Option<&str>, now: Duration) {
        self.close_open(now);
        let Some(first) = self.reply.take() else { return };
        let mut seen = false;
        for index in first..self.slots.len() {
            match &mut self.slots[index].cell {
                Cell::Reply(_) => {
                    let keep = self.take_back(index);
                    let source = self.source(index)[..keep].to_string();
                    seen |= !source.trim().is_empty();
                    self.set_source(index, source);
                }
                Cell::Thinking(thinking) if index >= self.next => {
                    thinking.source.clear();
                    self.touch(index);
                }
                _ => {}
            }
        }
        if seen {
            self.aside(match reason {
                Some(reason) => format!("this answer was discarded and is not in the conversation: {reason}"),
                None => "this answer was incomplete and is not in the conversation".to_string(),
            });
        }
    }
}
