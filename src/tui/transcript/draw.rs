//! Rows of the transcript: what is final, once; what is not, at every frame; and all of it for the viewer.

use std::sync::Arc;
use std::time::Duration;

use super::{Drawn, Transcript};
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::render::highlight::beside::{Coloured, Job};
use crate::tui::render::markdown::Stream;
use crate::tui::theme::Theme;

/// What stands above the next row, as far as the space between cells depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Above {
    #[default]
    Nothing,
    /// A call of one row: another one follows without space.
    Call,
    Cell,
}

impl Above {
    /// Adds the rows of a cell, with a blank row before them where one belongs.
    fn add(&mut self, cell: &Cell, drawn: Vec<Row>, rows: &mut Vec<Row>) {
        if drawn.is_empty() {
            return;
        }
        let line = matches!(cell, Cell::Call(_)) && drawn.len() == 1;
        if *self == Above::Cell || (*self == Above::Call && !line) {
            rows.push(Row::default());
        }
        *self = if line { Above::Call } else { Above::Cell };
        rows.extend(drawn);
    }
}

impl Transcript {
    /// The rows that became final since the last call, each exactly once, in order.
    ///
    /// Its cost depends on what is new. The width may change from call to call; rows that were handed out stay as
    /// they were.
    pub fn take_committed(&mut self, width: u16, theme: &Theme) -> Vec<Row> {
        let width = usize::from(width).max(1);
        let mut rows = Vec::new();
        while let Some(slot) = self.slots.get(self.next) {
            let cell = &slot.cell;
            if let Cell::Reply(reply) = cell {
                let began = self.stream.started();
                let drawn = match reply.closed {
                    true => self.stream.finish(&reply.source, width, theme),
                    false => self.stream.push(&reply.source, width, theme),
                };
                if began {
                    rows.extend(drawn);
                } else {
                    self.above.add(cell, drawn, &mut rows);
                }
            } else if cell.is_final() {
                self.above.add(cell, cell.rows(width, theme, Detail::Folded), &mut rows);
            }
            if !cell.is_final() || self.stream.waits() {
                break;
            }
            self.next += 1;
            self.stream = self.fresh_stream();
        }
        rows
    }

    /// From now on code is coloured elsewhere: see `take_jobs`. Rows of code are final when their colours are there.
    pub fn colour_beside(&mut self) {
        self.beside = true;
        if !self.stream.started() {
            self.stream = self.fresh_stream();
        }
    }

    /// Waits for no colours any more.
    pub fn colour_here(&mut self) {
        self.beside = false;
        self.stream.colour_here();
    }

    /// What is to be coloured since the last call, and for which stream.
    pub fn take_jobs(&mut self) -> Option<(u64, Vec<Job>)> {
        self.stream.take_jobs()
    }

    /// Takes colours that were asked for.
    pub fn coloured(&mut self, coloured: Coloured) {
        self.stream.coloured(coloured);
    }

    pub(super) fn fresh_stream(&mut self) -> Stream {
        self.streams += 1;
        if self.beside { Stream::beside(self.streams) } else { Stream::new() }
    }

    /// What was not handed out yet, as it looks at the time `now`; at most `max_height` rows, the last ones.
    ///
    /// Call it after `take_committed`, so that nothing is drawn twice.
    pub fn live(&self, width: u16, max_height: u16, theme: &Theme, now: Duration) -> Vec<Row> {
        let (width, height) = (usize::from(width).max(1), usize::from(max_height));
        let mut rows = Vec::new();
        // Where there is little room, the heads of the running calls say more than the output of the last one.
        for lines in [5, 3, 1, 0] {
            rows = self.live_rows(width, theme, Detail::Live { lines, now });
            if rows.len() <= height {
                break;
            }
        }
        rows.drain(..rows.len().saturating_sub(height));
        rows
    }

    fn live_rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut above = self.above;
        for (index, slot) in self.slots.iter().enumerate().skip(self.next) {
            match &slot.cell {
                Cell::Reply(reply) if index == self.next => {
                    let drawn = self.stream.tail(&reply.source, width, theme);
                    if self.stream.started() {
                        rows.extend(drawn);
                    } else {
                        above.add(&slot.cell, drawn, &mut rows);
                    }
                }
                cell => above.add(cell, cell.rows(width, theme, detail), &mut rows),
            }
        }
        rows
    }

    /// Every row of the transcript, for the viewer and the full screen. Cells are drawn again only when they, the
    /// width, the theme or the detail changed.
    pub fn render_all(&mut self, width: u16, theme: &Theme, detail: Detail) -> Vec<Row> {
        let mut rows = if detail == Detail::Whole { self.before.rows(width, theme) } else { Vec::new() };
        let width = usize::from(width).max(1);
        let mut above = Above::Nothing;
        for slot in &mut self.slots {
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
                rows.extend(self.below.rows(&call.id, width, theme));
            }
        }
        rows
    }

    /// Frees what `render_all` keeps, once the viewer is closed.
    pub fn forget_drawn(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.drawn = None);
        self.below.forget_drawn();
        if let Some(before) = self.before.read() {
            before.forget_drawn();
        }
    }
}
