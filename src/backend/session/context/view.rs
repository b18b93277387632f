//! What compaction chooses from: the messages and results of the projection with their sizes.

use std::path::Path;
use std::sync::Arc;

use super::Context;
use super::calls::Call;
use super::clip::cleared_marker;
use super::items::Tally;
use crate::message::tokens::{self, Load};
use crate::message::{Block, CallId, Message, ToolResult};
use crate::session::entry::{ClippedBlock, Ledger, Seq};

/// How large the context is: what the provider counted, and what came later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Tokens of the last reply and all before it, system prompt and tools included.
    pub counted: Option<u64>,
    /// The part of that which is an estimate: what left or came since.
    pub edited: u64,
    /// Estimate of what came later; of everything when nothing was counted.
    pub later: Load,
    /// Messages that `counted` covers.
    pub covers: usize,
}

/// One message of the projection.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// Entry that it came from; messages of a boundary bear the boundary's.
    pub seq: Seq,
    /// As the model sees it.
    pub message: &'a Arc<Message>,
    /// Estimate, digests that follow it included.
    pub load: Load,
    /// It came with the last boundary.
    pub lead: bool,
}

/// One result of the projection.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    /// Position among `Context::shown`.
    pub index: usize,
    pub seq: Seq,
    pub tool: &'a str,
    /// As the model sees it.
    pub result: &'a ToolResult,
    /// Estimate of its content.
    pub load: Load,
    /// It reads as a marker already.
    pub replaced: bool,
}

impl Context {
    /// How large the context is. Costs what came since the last append that was settled: mostly nothing.
    pub fn count(&self) -> Count {
        let Tally { counted, edited, covers, .. } = self.items.tally;
        Count { counted, edited, later: self.items.later(), covers }
    }

    /// Adds what is new to the running sum.
    pub(in crate::session) fn settle(&mut self) {
        self.items.tally.later = self.items.later();
        self.items.tally.summed = self.items.list.len();
    }

    /// The messages that the projection holds, oldest first.
    pub fn shown(&self) -> impl DoubleEndedIterator<Item = Shown<'_>> + ExactSizeIterator {
        self.shown_from(0)
    }

    /// The messages from a position on, oldest first: costs those alone.
    pub fn shown_from(&self, first: usize) -> impl DoubleEndedIterator<Item = Shown<'_>> + ExactSizeIterator {
        let items = self.items.list[first.min(self.items.list.len())..].iter().enumerate();
        items.map(move |(at, item)| Shown {
            seq: item.seq,
            message: &item.shown,
            load: item.load(),
            lead: first + at < self.items.lead,
        })
    }

    /// The messages from a position on as they are in the log, whatever was cleared or clipped since; without those that a
    /// boundary brought.
    pub fn logged_from(&self, first: usize) -> impl Iterator<Item = (Seq, &Arc<Message>)> {
        let first = first.max(self.items.lead).min(self.items.list.len());
        self.items.list[first..].iter().map(|item| (item.seq, &item.original))
    }

    /// The boundary that the projection begins with, and what it carries on of everything before it.
    pub fn carried(&self) -> Option<(Seq, &Arc<Ledger>)> {
        self.begun.as_ref().map(|(seq, ledger)| (*seq, ledger))
    }

    /// Messages that the projection holds.
    pub fn len(&self) -> usize {
        self.items.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.list.is_empty()
    }

    /// The results that the projection holds, oldest first.
    pub fn results(&self) -> impl Iterator<Item = Held<'_>> {
        let blocks = self.items.list.iter().flat_map(|item| &item.shown.blocks);
        blocks.filter_map(|block| match block {
            Block::ToolResult(result) => self.held(self.items.calls.get(&result.id)?),
            _ => None,
        })
    }

    /// The results that read as they came, oldest first: costs those alone.
    pub fn whole_results(&self) -> impl DoubleEndedIterator<Item = Held<'_>> {
        self.items.calls.whole().filter_map(|call| self.held(call))
    }

    /// The result of one call.
    pub fn result_of(&self, call: &CallId) -> Option<Held<'_>> {
        self.items.calls.get(call).and_then(|call| self.held(call))
    }

    fn held<'a>(&'a self, call: &'a Call) -> Option<Held<'a>> {
        let (index, block) = call.result?;
        let item = &self.items.list[index];
        let block = &item.shown.blocks[block];
        let Block::ToolResult(result) = block else { return None };
        let load = *call.tokens.0.get_or_init(|| tokens::load_of(block));
        Some(Held { index, seq: item.seq, tool: &call.tool, result, load, replaced: call.replaced })
    }

    /// What a result would weigh, cleared: exactly what the projection would hold.
    pub fn cleared(&self, call: &CallId, saved: Option<&Path>) -> Option<Load> {
        let (index, block) = self.items.calls.get(call).and_then(|call| call.result)?;
        let item = &self.items.list[index];
        let Block::ToolResult(original) = &item.original.blocks[item.place(block)] else { return None };
        Some(Load { text: tokens::text(&cleared_marker(original.text_len(), saved)), images: 0 })
    }

    /// What a block would weigh, clipped: exactly what the projection would hold. None when it cannot be clipped.
    pub fn clipped(&self, clipped: &ClippedBlock) -> Option<Load> {
        self.items.cut(clipped).map(|cut| tokens::load_of(&cut.block))
    }

    /// A block as it reads when it is clipped, with its place in the message that is shown.
    pub fn clipped_block(&self, clipped: &ClippedBlock) -> Option<(usize, Block)> {
        self.items.cut(clipped).map(|cut| (cut.at, cut.block))
    }

    /// Position among `shown` of the message that answers a call.
    pub fn answered_at(&self, call: &CallId) -> Option<usize> {
        self.items.calls.get(call).and_then(|call| call.result).map(|(index, _)| index)
    }
}
