//! Rows of the transcript: what is final, once; what is not, at every frame; and all of it for the viewer.

use std::sync::Arc;
use std::time::Duration;

use super::{Drawn, Transcript};
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::render::highlight::beside::{Coloured, Job};
use crate::tui::render::markdown::{Share, Stream};
use crate::tui::theme::Theme;

/// What is above the next row, as far as the space between cells depends on it.
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
    /// The rows that became final since the last call, each exactly once, in order; of what is new no more than `share`.
    /// See `behind`.
    ///
    /// Its cost depends on what is new. The width may change from call to call; rows that were handed out stay as
    /// they were.
    pub fn take_committed(&mut self, width: u16, theme: &Theme, mut share: Share) -> Vec<Row> {
        let width = usize::from(width).max(1);
        let mut rows = Vec::new();
        self.behind = false;
        let handed = self.next;
        while let Some(slot) = self.slots.get(self.next) {
            let cell = &slot.cell;
            if share.is_spent() {
                self.behind = true;
                break;
            }
            if let Cell::Reply(reply) = cell {
                let began = self.stream.started();
                let mut drawn = self.stream.ready(width, theme);
                let full = self.stream.is_full();
                if !full {
                    drawn.extend(self.stream.push(&reply.source, width, theme, &mut share));
                }
                let unread = self.stream.read() < reply.source.len();
                if reply.closed && !unread {
                    drawn.extend(self.stream.finish(&reply.source, width, theme));
                }
                share.count(drawn.len());
                // Colors that come bring the next frame by themselves.
                self.behind = unread && !full;
                if began {
                    rows.extend(drawn);
                } else {
                    self.above.add(cell, drawn, &mut rows);
                }
                if unread {
                    break;
                }
            } else if cell.is_final() {
                let drawn = cell.rows(width, theme, Detail::Folded);
                share.count(drawn.len());
                self.above.add(cell, drawn, &mut rows);
            }
            if !cell.is_final() || self.stream.waits() {
                break;
            }
            self.next += 1;
            self.stream = self.fresh_stream();
        }
        if self.next > handed {
            self.let_go();
        }
        rows
    }

    /// More can be handed out at once: the last share was too small for all.
    pub fn behind(&self) -> bool {
        self.behind
    }

    /// From now on code is coloured elsewhere: see `take_jobs`. Rows of code are final when their colors are there.
    pub fn colour_beside(&mut self) {
        self.beside = true;
        if !self.stream.started() {
            self.stream = self.fresh_stream();
        }
    }

    /// Waits for no colors anymore.
    pub fn colour_here(&mut self) {
        self.beside = false;
        self.stream.colour_here();
    }

    /// What is to be coloured since the last call, and for which stream.
    pub fn take_jobs(&mut self) -> Option<(u64, Vec<Job>)> {
        self.stream.take_jobs()
    }

    /// Takes colors that were asked for.
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
        let tail = match self.slots.get(self.next).map(|slot| &slot.cell) {
            Some(Cell::Reply(_)) => self.stream.tail(width, theme),
            _ => Vec::new(),
        };
        let mut rows = Vec::new();
        // Where there is little room, the heads of the running calls say more than the output of the last one.
        for lines in [5, 3, 1, 0] {
            rows = self.live_rows(&tail, width, height, theme, Detail::Live { lines, now });
            if rows.len() <= height {
                break;
            }
        }
        rows.drain(..rows.len().saturating_sub(height));
        rows
    }

    /// Only the last cells are drawn, as far as they show; what follows a reply that is not read yet comes after it.
    fn live_rows(&self, tail: &[Row], width: usize, height: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let end = if self.behind { self.slots.len().min(self.next + 1) } else { self.slots.len() };
        let mut cells = Vec::new();
        let mut count = 0;
        for index in (self.next..end).rev() {
            let cell = &self.slots[index].cell;
            let drawn = match cell {
                Cell::Reply(_) if index == self.next => tail.to_vec(),
                cell => cell.rows(width, theme, detail),
            };
            count += drawn.len();
            cells.push((index, cell, drawn));
            if count > height {
                break;
            }
        }
        let mut rows = Vec::new();
        let mut above =
            if cells.last().is_none_or(|(index, ..)| *index == self.next) { self.above } else { Above::Cell };
        for (index, cell, drawn) in cells.into_iter().rev() {
            if index == self.next && self.stream.started() {
                rows.extend(drawn);
            } else {
                above.add(cell, drawn, &mut rows);
            }
        }
        rows
    }

    /// Every row of what is in memory. Cells are drawn again only when they, the
    /// width, the theme or the detail changed.
    pub fn render_all(&mut self, width: u16, theme: &Theme, detail: Detail) -> Vec<Row> {
        let mut rows = Vec::new();
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
        self.earlier.close();
    }
}
