//! The messages of the projection, with their calls and sizes.

use std::sync::{Arc, OnceLock};

use super::calls::Calls;
use crate::message::tokens::{self, Load};
use crate::message::{Block, CallId, Content, Message, Outcome, Role, ToolResult};
use crate::session::entry::Seq;

/// What a call without a result is answered with.
const INTERRUPTED: &str = "[interrupted: this call did not finish; what it did until then is unknown]";

/// All of them, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Items {
    pub(super) list: Vec<Item>,
    pub(super) calls: Calls,
    pub(super) tally: Tally,
    /// Number of items that a boundary put at the start.
    pub(super) lead: usize,
    /// Every count since the last boundary, oldest first: one that is undone brings an earlier one back.
    counts: Vec<Counted>,
    /// What changed in items since they came.
    edits: Vec<Edited>,
}

/// What a provider counted with a reply.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    seq: Seq,
    tokens: u64,
    covers: usize,
}

/// An item that weighs something else than it did when it came.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Edited {
    /// Number of counts until then.
    counts: usize,
    index: usize,
    before: u64,
    after: u64,
}

/// One message that the model sees.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) seq: Seq,
    /// As it is in the log.
    pub(super) original: Arc<Message>,
    /// As the model sees it.
    pub(super) shown: Arc<Message>,
    /// Index in `original` of each block of `shown`, when some were left out.
    pub(super) kept: Option<Vec<usize>>,
    /// Digests of results that were archived here; they follow this message.
    pub(super) digests: Vec<Arc<Message>>,
    /// Estimate for `shown` and `digests`, made when it is first asked for: most messages stand before the last reply,
    /// which the provider has counted.
    pub(super) tokens: Estimate,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Estimate(pub(super) OnceLock<Load>);

/// Equal messages have equal estimates, made or not.
impl PartialEq for Estimate {
    fn eq(&self, _other: &Estimate) -> bool {
        true
    }
}

/// What an edit took from an item and brought to it, by estimate.
pub(super) struct Change {
    pub(super) gone: Load,
    pub(super) come: Load,
}

impl Item {
    /// Replaces a block that weighs `gone`. Blocks of the original stay its own; those next to it are copied.
    pub(super) fn put(&mut self, at: usize, block: Block, gone: Load) -> Change {
        let change = Change { gone, come: tokens::load_of(&block) };
        if let Some(own) = Arc::get_mut(&mut self.shown) {
            own.blocks[at] = block;
            return change;
        }
        let Message { role, kind, blocks, agent_visible, user_visible, origin, usage, stop, effects, data } =
            &*self.shown;
        let mut with = Vec::with_capacity(blocks.len());
        with.extend_from_slice(&blocks[..at]);
        with.push(block);
        with.extend_from_slice(&blocks[at + 1..]);
        let (agent_visible, user_visible, usage) = (*agent_visible, *user_visible, *usage);
        let (origin, stop, effects, data) = (origin.clone(), stop.clone(), effects.clone(), data.clone());
        self.shown = Arc::new(Message {
            role: *role,
            kind: *kind,
            blocks: with,
            agent_visible,
            user_visible,
            origin,
            usage,
            stop,
            effects,
            data,
        });
        change
    }

    /// Index in `original` of a block of `shown`.
    pub(super) fn place(&self, block: usize) -> usize {
        self.kept.as_ref().map_or(block, |kept| kept[block])
    }

    pub(super) fn load(&self) -> Load {
        let messages = std::iter::once(&self.shown).chain(&self.digests);
        *self.tokens.0.get_or_init(|| messages.map(|message| tokens::load(message)).sum())
    }
}

/// What a provider counted last.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// Tokens of the last reply and all before it, less what was cleared since.
    pub(super) counted: Option<u64>,
    /// Number of items that `counted` covers.
    pub(super) covers: usize,
    /// By how much of that was changed by estimate since then.
    pub(super) edited: u64,
    /// Sum of the estimates of the items from `covers` on, up to `summed`.
    pub(super) later: Load,
    pub(super) summed: usize,
}

/// How far the sum has got says nothing about the projection.
impl PartialEq for Tally {
    fn eq(&self, other: &Tally) -> bool {
        (self.counted, self.covers) == (other.counted, other.covers)
    }
}

impl Items {
    /// Adds a message, as it is then shown.
    pub(super) fn add(&mut self, seq: Seq, message: &Arc<Message>) -> Arc<Message> {
        let index = self.list.len();
        // Calls whose id was used before, and results that answer no open call, would make the request invalid.
        let mut kept = Vec::with_capacity(message.blocks.len());
        for (at, block) in message.blocks.iter().enumerate() {
            let keep = match (message.role, block) {
                (Role::Assistant, Block::ToolCall(call)) => self.calls.make(&call.id, &call.name),
                (Role::User, Block::ToolResult(result)) => self.calls.answer(&result.id, (index, kept.len())),
                (Role::Assistant, Block::ToolResult(_)) | (Role::User, Block::ToolCall(_)) => false,
                (_, Block::Text { .. } | Block::Thinking { .. } | Block::Media(_)) => true,
            };
            if keep {
                kept.push(at);
            }
        }
        let whole = kept.len() == message.blocks.len();
        let shown = match whole {
            true => Arc::clone(message),
            false => {
                let blocks = kept.iter().map(|at| message.blocks[*at].clone()).collect();
                Arc::new(Message { blocks, ..Message::clone(message) })
            }
        };
        let counted = message.usage.filter(|_| message.role == Role::Assistant).map_or(0, |usage| usage.context());
        self.list.push(Item {
            seq,
            original: Arc::clone(message),
            shown: Arc::clone(&shown),
            kept: (!whole).then_some(kept),
            digests: Vec::new(),
            tokens: Estimate::default(),
        });
        if counted > 0 {
            self.counts.push(Counted { seq, tokens: counted, covers: index + 1 });
            self.tally = Tally {
                counted: Some(counted),
                edited: 0,
                covers: index + 1,
                later: Load::default(),
                summed: index + 1,
            };
        }
        shown
    }

    /// A result as it is sent.
    pub(super) fn result(&self, id: &CallId) -> ToolResult {
        let held = self.calls.get(id).and_then(|call| call.result);
        let held = held.and_then(|(index, block)| self.list.get(index)?.shown.blocks.get(block));
        match held {
            Some(Block::ToolResult(result)) => Some(result.clone()),
            _ => None,
        }
        .unwrap_or_else(|| ToolResult::of_text(id.clone(), Outcome::Interrupted, INTERRUPTED))
    }

    /// Puts a marker in the place of a result's content. The result as it is then, with the index of its message; none when
    /// there is no such result, or it has a marker.
    pub(super) fn replace(&mut self, id: &CallId, marker: impl Fn(usize) -> String) -> Option<(usize, &ToolResult)> {
        let call = self.calls.get_mut(id).filter(|call| !call.replaced)?;
        let (index, block) = call.result?;
        call.replaced = true;
        let known = std::mem::take(&mut call.tokens).0.into_inner();
        let item = &self.list[index];
        let gone = known.unwrap_or_else(|| tokens::load_of(&item.shown.blocks[block]));
        let Block::ToolResult(original) = &item.original.blocks[item.place(block)] else { return None };
        let marker = vec![Content::text(marker(original.text_len()))];
        let (id, outcome, display) = (original.id.clone(), original.outcome, original.display.clone());
        let marked = ToolResult { id, outcome, content: marker, display, effects: original.effects.clone() };
        self.edit(index, |item| item.put(block, Block::ToolResult(marked), gone));
        match &self.list[index].shown.blocks[block] {
            Block::ToolResult(marked) => Some((index, marked)),
            _ => None,
        }
    }

    /// Takes everything out of a message.
    pub(super) fn empty(&mut self, index: usize) {
        self.edit(index, |item| {
            let gone = tokens::load(&item.shown);
            Arc::make_mut(&mut item.shown).blocks.clear();
            item.kept = Some(Vec::new());
            Change { gone, come: Load::default() }
        });
    }

    /// What was counted no longer holds.
    pub(super) fn uncount(&mut self) {
        (self.tally, self.counts, self.edits) = (Tally::default(), Vec::new(), Vec::new());
    }

    /// Goes back to what was counted before this boundary, less what has left the items since.
    pub(super) fn recount(&mut self, boundary: Seq) {
        let known = self.counts.iter().rposition(|counted| counted.seq < boundary).map_or(0, |last| last + 1);
        self.counts.truncate(known);
        // A count that comes later knows of them: it must not lose them once more.
        self.edits.iter_mut().for_each(|edited| edited.counts = edited.counts.min(known));
        let Some(Counted { tokens, covers, .. }) = self.counts.last().copied() else { return self.uncount() };
        let since = self.edits.iter().filter(|edited| edited.counts >= known && edited.index < covers);
        let counted = since.fold(tokens, |sum, edited| (sum + edited.after).saturating_sub(edited.before));
        let edited = counted.abs_diff(tokens);
        self.tally = Tally { counted: Some(counted), edited, covers, later: Load::default(), summed: covers };
    }

    /// Estimate of what came after the last count.
    pub(super) fn later(&self) -> Load {
        let rest: Load = self.list[self.tally.summed.min(self.list.len())..].iter().map(Item::load).sum();
        self.tally.later + rest
    }

    /// Changes what the model sees of an item, by a difference; what the provider had counted of it changes by the same.
    pub(super) fn edit(&mut self, index: usize, change: impl FnOnce(&mut Item) -> Change) {
        let item = &mut self.list[index];
        let before = item.load();
        let Change { gone, come } = change(item);
        let after = before + come - gone;
        item.tokens = Estimate(OnceLock::from(after));
        let (total, counts) = ((before.total(), after.total()), self.counts.len());
        if counts > 0 {
            self.edits.push(Edited { counts, index, before: total.0, after: total.1 });
        }
        let tally = &mut self.tally;
        if index < tally.covers {
            if let Some(counted) = &mut tally.counted {
                *counted = (*counted + after.total()).saturating_sub(before.total());
                tally.edited += after.total().abs_diff(before.total());
            }
        } else if index < tally.summed {
            tally.later = tally.later + after - before;
        }
    }
}
