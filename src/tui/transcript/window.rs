//! What stays in memory: about what a person scrolls back over. The rest of a session is in its log, and the viewer reads
//! it from there.

use super::Transcript;
use crate::message::{Content, Display};
use crate::session::entry::Seq;
use crate::tui::cell::Cell;

/// Most cells that stay, and most bytes of them.
pub(super) const CELLS: usize = 200;
pub(super) const BYTES: usize = 256 * 1024;
/// Most notices that are kept beyond, since no log has them.
const NOTES: usize = 200;

impl Transcript {
    /// Lets go of cells that the scrollback has to their end, up to a place where the log can continue.
    pub(super) fn let_go(&mut self) {
        let busy = self.running.values().copied().chain(self.open).chain(self.reply);
        let answer = self.slots.iter().rposition(|slot| matches!(slot.cell, Cell::Reply(_)));
        let most = busy.chain(answer).fold(self.next, usize::min);
        let (mut bytes, mut from) = (0, self.slots.len());
        while from > 0 && self.slots.len() - from < CELLS {
            bytes += weight(&self.slots[from - 1].cell);
            if bytes > BYTES {
                break;
            }
            from -= 1;
        }
        if from == 0 {
            return;
        }
        let marked = |index: &usize| self.slots.get(*index).is_some_and(|slot| slot.seq.is_some());
        let cut = (from..=most).find(marked).or_else(|| (0..from.min(most + 1)).rev().find(marked)).unwrap_or(0);
        if cut == 0 {
            return;
        }
        let mut at = self.earlier.end();
        for slot in self.slots.drain(..cut) {
            at = slot.seq.unwrap_or(at);
            match slot.cell {
                Cell::Call(call) => self.below.forget(&call.id),
                cell if slot.own => self.earlier.keep(at, cell, NOTES),
                _ => {}
            }
        }
        self.earlier.end_at(self.slots.first().and_then(|slot| slot.seq).unwrap_or(at));
        self.next -= cut;
        self.running.values_mut().chain(&mut self.open).chain(&mut self.reply).for_each(|index| *index -= cut);
        // A burst of cells leaves no room behind that nothing needs.
        self.slots.shrink_to(2 * CELLS);
    }

    /// The next cell begins what the log has from this entry on.
    pub(super) fn mark(&mut self, seq: Seq) {
        self.marked = Some(seq);
    }

    /// Cells and bytes that are in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.slots.len(), self.slots.iter().map(|slot| weight(&slot.cell)).sum())
    }
}

/// Bytes of a cell's source, roughly.
fn weight(cell: &Cell) -> usize {
    let own = match cell {
        Cell::Reply(reply) => reply.source.len(),
        Cell::Thinking(thinking) => thinking.source.len(),
        Cell::Prompt(prompt) => prompt.text.len(),
        Cell::Skill(skill) => skill.text.len(),
        Cell::Compacted(compacted) => compacted.summary.len(),
        Cell::Shell(shell) => shell.done.as_ref().map_or(0, |(output, _)| output.len()),
        Cell::Call(call) => call.result.as_ref().map_or(call.output.len(), |result| {
            let text = |content: &Content| match content {
                Content::Text { text } => text.len(),
                _ => 0,
            };
            let diff = matches!(result.display, Some(Display::Diff(_)));
            result.content.iter().map(text).sum::<usize>() + if diff { 4096 } else { 0 }
        }),
        Cell::Welcome(_) | Cell::Retry(_) | Cell::Note(_) => 0,
    };
    own + 256
}
