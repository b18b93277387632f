//! The cells in their order, each with what was drawn of it for the viewer. What stays in memory is about what a person
//! scrolls back over: the rest of a session is in its log, and the viewer reads it from there.

use std::sync::Arc;

use super::below::Below;
use super::looked::looked;
use crate::message::{Content, Display};
use crate::session::entry::Seq;
use crate::tui::cell::note::Note;
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::theme::Theme;

/// Most cells that stay, and most bytes of them.
pub(super) const CELLS: usize = 200;
pub(super) const BYTES: usize = 256 * 1024;
/// So many times as many where the scrollback is drawn again for a new width.
const REBUILT: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Cells {
    slots: Vec<Slot>,
    /// Changes whenever a cell does.
    revision: u64,
    /// The log has what follows from this entry on.
    marked: Option<Seq>,
    /// The scrollback is drawn again from them for a new width.
    pub(super) rebuilds: bool,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) cell: Cell,
    revision: u64,
    drawn: Option<Drawn>,
    /// It begins what the log has from this entry on.
    pub(super) seq: Option<Seq>,
    /// It is in no log.
    pub(super) own: bool,
}

#[derive(Debug)]
struct Drawn {
    revision: u64,
    width: usize,
    detail: Detail,
    theme: String,
    rows: Arc<[Row]>,
}

impl Cells {
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Something that is shown has changed beside the cells.
    pub(super) fn changed(&mut self) {
        self.revision += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Cell> {
        self.slots.get(index).map(|slot| &slot.cell)
    }

    pub(super) fn last(&self) -> Option<&Cell> {
        self.slots.last().map(|slot| &slot.cell)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Cell> + ExactSizeIterator {
        self.slots.iter().map(|slot| &slot.cell)
    }

    /// The last cell of a kind.
    pub(super) fn last_of(&self, is: impl Fn(&Cell) -> bool) -> Option<usize> {
        self.iter().rposition(is)
    }

    /// A cell that is about to change.
    pub(super) fn change(&mut self, index: usize) -> &mut Cell {
        self.revision += 1;
        let slot = &mut self.slots[index];
        slot.revision = self.revision;
        &mut slot.cell
    }

    /// Adds what the log has, too.
    pub(super) fn push(&mut self, cell: Cell) {
        self.add(cell, false);
    }

    /// Adds what is in no log.
    pub(super) fn tell(&mut self, cell: Cell) {
        self.add(cell, true);
    }

    pub(super) fn aside(&mut self, text: impl Into<String>) {
        self.push(Cell::Note(Note::Aside(text.into())));
    }

    fn add(&mut self, cell: Cell, own: bool) {
        self.end_retry();
        self.revision += 1;
        self.slots.push(Slot { cell, revision: self.revision, drawn: None, seq: self.marked.take(), own });
    }

    /// A retry is over once anything follows it.
    pub(super) fn end_retry(&mut self) {
        if matches!(self.last(), Some(Cell::Retry(retry)) if !retry.over)
            && let Cell::Retry(retry) = self.change(self.len() - 1)
        {
            retry.over = true;
        }
    }

    /// The next cell begins what the log has from this entry on.
    pub(super) fn mark(&mut self, seq: Seq) {
        self.marked = Some(seq);
    }

    /// Another session begins: what was told before and not handed out is not lost.
    pub(super) fn start_over(&mut self, next: usize) {
        self.end_retry();
        self.slots = self.slots.split_off(next);
        self.slots.retain(|slot| slot.cell.is_final());
        self.marked = None;
    }

    /// Lets go of the first cells, of no more than `most`, up to a place where the log can continue.
    pub(super) fn let_go(&mut self, most: usize) -> Vec<Slot> {
        let (mut bytes, mut from) = (0, self.slots.len());
        let times = if self.rebuilds { REBUILT } else { 1 };
        while from > 0 && self.slots.len() - from < times * CELLS {
            bytes += weight(&self.slots[from - 1].cell);
            if bytes > times * BYTES {
                break;
            }
            from -= 1;
        }
        if from == 0 {
            return Vec::new();
        }
        let marked = |index: &usize| self.slots.get(*index).is_some_and(|slot| slot.seq.is_some());
        let cut = (from..=most).find(marked).or_else(|| (0..from.min(most + 1)).rev().find(marked)).unwrap_or(0);
        if cut == 0 {
            return Vec::new();
        }
        let gone = self.slots.drain(..cut).collect();
        // A burst of cells leaves no room behind that nothing needs.
        self.slots.shrink_to(2 * CELLS);
        gone
    }

    /// Where the log continues with the first cell.
    pub(super) fn begin(&self) -> Option<Seq> {
        self.slots.first().and_then(|slot| slot.seq)
    }

    /// Every row; of what is live, those that are final are folded. Cells are drawn again only when they, the width, the
    /// theme or the detail changed.
    pub(super) fn rows(&mut self, width: usize, theme: &Theme, detail: Detail, below: &mut Below) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut above = Above::Nothing;
        let mut at = 0;
        while at < self.slots.len() {
            if detail != Detail::Whole
                && let Some(looked) = looked(self, at)
            {
                above.add(&self.slots[at].cell, looked.rows(width, theme), &mut rows);
                at = looked.end;
                continue;
            }
            let slot = &mut self.slots[at];
            at += 1;
            let detail = match detail {
                Detail::Live { .. } if slot.cell.is_final() => Detail::Folded,
                detail => detail,
            };
            let fresh = slot.drawn.take().filter(|drawn| {
                let same = (drawn.revision, drawn.width, drawn.detail) == (slot.revision, width, detail);
                same && drawn.theme == theme.name && slot.cell.is_final()
            });
            let drawn = match fresh {
                Some(drawn) => drawn,
                None => {
                    let rows = Arc::from(slot.cell.rows(width, theme, detail));
                    Drawn { revision: slot.revision, width, detail, theme: theme.name.clone(), rows }
                }
            };
            above.add(&slot.cell, drawn.rows.to_vec(), &mut rows);
            slot.drawn = Some(drawn);
            if let (Cell::Call(call), Detail::Whole) = (&slot.cell, detail) {
                rows.extend(below.rows(&call.id, width, theme));
            }
        }
        rows
    }

    /// Frees what `rows` keeps.
    pub(super) fn forget_drawn(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.drawn = None);
    }

    /// Cells and bytes that are in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.len(), self.iter().map(weight).sum())
    }
}

/// What is above the next row, as far as the space between cells depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Above {
    #[default]
    Nothing,
    /// A call of one row: another one follows without space.
    Call,
    /// A decision: the call that it is about follows without space.
    Decision,
    Cell,
}

impl Above {
    /// Adds the rows of a cell, with a blank row before them where one belongs.
    pub(super) fn add(&mut self, cell: &Cell, drawn: Vec<Row>, rows: &mut Vec<Row>) {
        if drawn.is_empty() {
            return;
        }
        let line = matches!(cell, Cell::Call(_)) && drawn.len() == 1;
        let decision = matches!(cell, Cell::Note(note) if note.is_decision());
        let close = match self {
            Above::Nothing => true,
            Above::Call => line,
            Above::Decision => decision || matches!(cell, Cell::Call(_)),
            Above::Cell => false,
        };
        if !close {
            rows.push(Row::default());
        }
        *self = match cell {
            _ if line => Above::Call,
            _ if decision => Above::Decision,
            _ => Above::Cell,
        };
        rows.extend(drawn);
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
