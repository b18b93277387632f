//! Calls that only looked, which are one line together.

use super::cells::Cells;
use crate::tui::cell::call::Call;
use crate::tui::cell::{Cell, Detail, words};
use crate::tui::render::Row;
use crate::tui::theme::Theme;

/// Most calls on one line: they wait in memory for what follows.
const LOOKED: usize = 100;

/// Cells that are one line: calls that only looked, with no text in between.
pub(super) struct Looked<'a> {
    calls: Vec<&'a Call>,
    /// The first cell behind them.
    pub(super) end: usize,
    /// Something follows that is not of them.
    pub(super) over: bool,
}

/// The calls from a cell on that only looked; none when it is something else.
pub(super) fn looked(cells: &Cells, from: usize) -> Option<Looked<'_>> {
    let mut looked = Looked { calls: Vec::new(), end: from, over: false };
    let mut at = from;
    while let Some(cell) = cells.get(at) {
        match cell {
            Cell::Call(call) if call.only_looks() && call.is_done() => {
                looked.calls.push(call);
                looked.end = at + 1;
                looked.over = looked.calls.len() == LOOKED;
                if looked.over {
                    break;
                }
            }
            // It may yet look, or say something.
            Cell::Call(call) if call.only_looks() => return looked.some(),
            cell if cell.is_silent() => {}
            _ => {
                looked.over = true;
                break;
            }
        }
        at += 1;
    }
    looked.some()
}

impl<'a> Looked<'a> {
    fn some(self) -> Option<Looked<'a>> {
        (!self.calls.is_empty()).then_some(self)
    }

    pub(super) fn rows(&self, width: usize, theme: &Theme) -> Vec<Row> {
        match self.calls.as_slice() {
            [call] => call.rows(width, theme, Detail::Folded),
            calls => words::looked(calls.iter().copied(), width, theme),
        }
    }
}
