//! The reply under way: it grows by deltas, and ends in the final message, or is dropped. What the scrollback has of it
//! stays as it is in every case.

use std::time::Instant;

use super::cells::Cells;
use super::scrollback::Scrollback;
use crate::message::{Block, Message, tokens};
use crate::tui::cell::note::Note;
use crate::tui::cell::thinking::Thinking;
use crate::tui::cell::{Cell, Reply};

/// What a delta adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrowKind {
    Reply,
    Thinking,
}

#[derive(Debug, Default)]
pub(super) struct Growing {
    /// The cell that grows.
    pub(super) open: Option<usize>,
    /// Where the cells of the reply begin.
    pub(super) first: Option<usize>,
}

impl Growing {
    /// Adds to the reply or the thinking under way, or begins one.
    pub(super) fn grow(&mut self, cells: &mut Cells, text: &str, kind: GrowKind, now: Instant) {
        // White space alone is nothing to think about, however much of it comes.
        let text = match (kind, self.open.and_then(|index| cells.get(index))) {
            (GrowKind::Thinking, Some(Cell::Thinking(thinking))) if !thinking.source.is_empty() => text,
            (GrowKind::Thinking, _) => text.trim_start(),
            (GrowKind::Reply, _) => text,
        };
        if text.is_empty() {
            return;
        }
        if let Some(index) = self.open {
            match (cells.change(index), kind) {
                (Cell::Reply(Reply { source, .. }), GrowKind::Reply)
                | (Cell::Thinking(Thinking { source, .. }), GrowKind::Thinking) => return source.push_str(text),
                _ => {}
            }
        }
        self.close(cells, now);
        let index = cells.len();
        let source = text.to_string();
        cells.push(match kind {
            GrowKind::Reply => Cell::Reply(Reply { source, closed: false }),
            GrowKind::Thinking => {
                Cell::Thinking(Thinking { source, since: Some(now), took: None, tokens: None, closed: false })
            }
        });
        self.open = Some(index);
        self.first.get_or_insert(index);
    }

    /// Nothing more is added to what grows.
    pub(super) fn close(&mut self, cells: &mut Cells, now: Instant) {
        let Some(index) = self.open.take() else { return };
        match cells.change(index) {
            Cell::Reply(reply) => reply.closed = true,
            Cell::Thinking(thinking) => thinking.close(now),
            _ => {}
        }
    }

    /// The thoughts under way are complete.
    pub(super) fn thought(&mut self, cells: &mut Cells, tokens: u64, now: Instant) {
        let Some(index) = self.open else { return };
        if let Cell::Thinking(thinking) = cells.change(index) {
            thinking.tokens = Some(tokens);
            self.close(cells, now);
        }
    }

    /// The final message takes the place of what was streamed of it.
    pub(super) fn done(&mut self, cells: &mut Cells, scrollback: &mut Scrollback, message: &Message, now: Instant) {
        self.close(cells, now);
        let Some(first) = self.first.take() else { return whole(cells, message) };
        count_thoughts(cells, first, message);
        let text = |block: &Block| match block {
            Block::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        let last: String = message.blocks.iter().filter_map(text).collect();
        let streamed: Vec<usize> = (first..cells.len()).filter(|index| source(cells, *index).is_some()).collect();
        let so_far: String = streamed.iter().filter_map(|index| source(cells, *index)).collect();
        if so_far.trim() != last.trim() {
            replace(cells, scrollback, &streamed, &last);
        }
    }

    /// What was streamed of the reply is out of the conversation. What the scrollback has of it stays, with a note.
    pub(super) fn discard(
        &mut self,
        cells: &mut Cells,
        scrollback: &mut Scrollback,
        reason: Option<&str>,
        now: Instant,
    ) {
        self.close(cells, now);
        let Some(first) = self.first.take() else { return };
        let mut seen = false;
        for index in first..cells.len() {
            match cells.change(index) {
                Cell::Reply(reply) => {
                    let keep = scrollback.take_back(index, &reply.source).len();
                    reply.source.truncate(keep);
                    seen |= !reply.source.trim().is_empty();
                }
                Cell::Thinking(thinking) if index >= scrollback.next => thinking.source.clear(),
                _ => {}
            }
        }
        if seen {
            cells.tell(Cell::Note(Note::Aside(match reason {
                Some(reason) => format!("this answer was discarded and is not in the conversation: {reason}"),
                None => "this answer was incomplete and is not in the conversation".to_string(),
            })));
        }
    }
}

/// Adds the cells of a reply that nothing was streamed of.
pub(super) fn whole(cells: &mut Cells, message: &Message) {
    let first = cells.len();
    for block in &message.blocks {
        match block {
            Block::Text { text, .. } if !text.trim().is_empty() => {
                cells.push(Cell::Reply(Reply { source: text.clone(), closed: true }));
            }
            Block::Thinking { text, .. } if !text.trim().is_empty() => {
                let (source, tokens) = (text.clone(), Some(tokens::text(text)));
                cells.push(Cell::Thinking(Thinking { source, since: None, took: None, tokens, closed: true }));
            }
            _ => {}
        }
    }
    count_thoughts(cells, first, message);
}

/// Puts what the provider counted in the place of the estimate. Only one cell can be what the whole count is of.
fn count_thoughts(cells: &mut Cells, first: usize, message: &Message) {
    let reasoning = message.usage.map_or(0, |usage| usage.reasoning);
    let is_thought = |index: &usize| matches!(cells.get(*index), Some(Cell::Thinking(_)));
    let thoughts: Vec<usize> = (first..cells.len()).filter(is_thought).collect();
    if let ([index], true) = (&thoughts[..], reasoning > 0)
        && let Cell::Thinking(thinking) = cells.change(*index)
    {
        thinking.tokens = Some(reasoning);
    }
}

fn source(cells: &Cells, index: usize) -> Option<&str> {
    match cells.get(index) {
        Some(Cell::Reply(reply)) => Some(&reply.source),
        _ => None,
    }
}

/// Puts another text in the place of streamed cells, without touching what was handed out of them.
fn replace(cells: &mut Cells, scrollback: &mut Scrollback, streamed: &[usize], text: &str) {
    let mut shown = String::new();
    for index in streamed {
        if let Cell::Reply(reply) = cells.change(*index) {
            let keep = scrollback.take_back(*index, &reply.source).len();
            reply.source.truncate(keep);
            shown.push_str(&reply.source);
        }
    }
    let rest = text.strip_prefix(&shown);
    let next = streamed.iter().find(|index| **index >= scrollback.next);
    match (rest, next.map(|index| cells.change(*index))) {
        (Some(rest), Some(Cell::Reply(reply))) => reply.source.push_str(rest),
        _ => {
            let source = rest.unwrap_or(text).to_string();
            if !source.trim().is_empty() {
                cells.push(Cell::Reply(Reply { source, closed: true }));
            }
        }
    }
}
