//! What was handed out to the scrollback, and what is drawn in the live region because it may still change.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use super::cells::{Above, Cells};
use super::looked::{Looked, looked};
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::render::highlight::beside::{Coloured, Job};
use crate::tui::render::markdown::{Share, Stream};
use crate::tui::theme::Theme;

/// Fewest rows that are kept of what was handed out: another screen shows them again.
const RECENT: usize = 60;

#[derive(Debug, Default)]
pub struct Scrollback {
    /// The first cell that was not handed out to its end.
    pub(super) next: usize,
    /// How far that cell was handed out, when it is a reply.
    pub(super) stream: Stream,
    /// More can be handed out at once.
    behind: bool,
    /// Its code is coloured elsewhere, and so is that of the next ones.
    beside: bool,
    /// Number of streams so far: it tells them apart.
    streams: u64,
    /// What the scrollback ends in.
    above: Above,
    /// What the next rows begin with.
    first: Option<Cell>,
    /// A turn is under way: what only looked at the end of the cells may be followed by more of it.
    gathering: bool,
    /// The last rows that were handed out, and how many of them are kept at least.
    recent: VecDeque<Row>,
    wanted: usize,
}

impl Scrollback {
    /// The rows of `cells` that became final since the last call, each exactly once, in order; of what is new no more than
    /// `share`. See `behind`.
    pub(super) fn take(&mut self, cells: &Cells, width: usize, theme: &Theme, mut share: Share) -> Vec<Row> {
        let mut rows = Vec::new();
        self.behind = false;
        if let Some(first) = self.first.take() {
            self.above.add(&first, first.rows(width, theme, Detail::Folded), &mut rows);
        }
        while let Some(cell) = cells.get(self.next) {
            if share.is_spent() {
                self.behind = true;
                break;
            }
            if let Some(looked) = looked(cells, self.next) {
                if self.gathering && !looked.over {
                    break;
                }
                let drawn = looked.rows(width, theme);
                share.count(drawn.len());
                self.above.add(cell, drawn, &mut rows);
                self.next = looked.end;
                continue;
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
        let most = self.wanted.max(RECENT);
        self.recent.extend(rows.iter().skip(rows.len().saturating_sub(most)).cloned());
        self.recent.drain(..self.recent.len().saturating_sub(most));
        rows
    }

    /// The last rows that were handed out.
    pub(super) fn recent(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.recent.iter()
    }

    /// So many rows are kept of what is handed out.
    pub fn keep(&mut self, rows: usize) {
        self.wanted = rows;
    }

    /// From now on what only looked waits for more of it.
    pub(super) fn gather(&mut self) {
        self.gathering = true;
    }

    /// Nothing more comes.
    pub(super) fn settle(&mut self) {
        self.gathering = false;
    }

    /// Other cells begin; what of the old ones was not handed out is the first of them.
    pub(super) fn start_over(&mut self) {
        (self.next, self.behind) = (0, false);
    }

    /// Begins again with the cell `from`, behind `first`: nothing of what was handed out is there anymore.
    pub(super) fn hand_out_again(&mut self, from: usize, first: Option<Cell>) {
        self.start_over();
        self.recent.clear();
        let above = if from == 0 { Above::Nothing } else { Above::Cell };
        (self.next, self.stream, self.above, self.first) = (from, self.fresh_stream(), above, first);
    }

    /// Nothing is left of other cells: they were not on this screen.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
        (self.stream, self.above) = (self.fresh_stream(), Above::Nothing);
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

    fn fresh_stream(&mut self) -> Stream {
        self.streams += 1;
        if self.beside { Stream::beside(self.streams) } else { Stream::new() }
    }

    /// Undoes what was read of a streamed cell but not handed out; the part of its source that stays.
    pub(super) fn take_back<'a>(&mut self, index: usize, source: &'a str) -> &'a str {
        let keep = match index.cmp(&self.next) {
            Ordering::Less => source.len(),
            // Complete: only its colors are missing.
            Ordering::Equal if self.stream.finished() => source.len(),
            Ordering::Equal if self.stream.started() => self.stream.rewind(),
            Ordering::Equal => {
                self.stream = self.fresh_stream();
                0
            }
            Ordering::Greater => 0,
        };
        &source[..keep]
    }

    /// What was not handed out yet, as it looks at the time `now`; at most `height` rows, the last ones.
    pub(super) fn live(&self, cells: &Cells, width: usize, height: usize, theme: &Theme, now: Instant) -> Vec<Row> {
        let tail = match cells.get(self.next) {
            Some(Cell::Reply(_)) => self.stream.tail(width, theme),
            _ => Vec::new(),
        };
        let mut rows = Vec::new();
        // Where there is little room, the heads of the running calls say more than the output of the last one.
        for lines in [5, 3, 1, 0] {
            rows = self.live_rows(cells, &tail, width, height, theme, Detail::Live { lines, now });
            if rows.len() <= height {
                break;
            }
        }
        rows.drain(..rows.len().saturating_sub(height));
        rows
    }

    /// What is one line of the cells up to `end`, in their order.
    fn folded<'a>(&self, cells: &'a Cells, end: usize) -> Vec<(Range<usize>, Looked<'a>)> {
        let mut folded = Vec::new();
        let mut at = self.next;
        while at < end {
            match looked(cells, at) {
                Some(looked) => {
                    let range = at..looked.end;
                    at = looked.end;
                    folded.push((range, looked));
                }
                None => at += 1,
            }
        }
        folded
    }

    /// Only the last cells are drawn, as far as they show; what follows a reply that is not read yet comes after it.
    fn live_rows(
        &self,
        cells: &Cells,
        tail: &[Row],
        width: usize,
        height: usize,
        theme: &Theme,
        detail: Detail,
    ) -> Vec<Row> {
        let most = if self.behind { 1 } else { usize::MAX };
        let mut shown: Vec<(usize, &Cell, Vec<Row>)> = Vec::new();
        let mut count = 0;
        let end = cells.len().min(self.next.saturating_add(most));
        let mut folded = self.folded(cells, end);
        let mut index = end;
        while index > self.next {
            index -= 1;
            let drawn = match (folded.last(), &cells.get(index)) {
                (_, None) => continue,
                (Some((range, looked)), _) if range.contains(&index) => {
                    index = range.start;
                    let drawn = looked.rows(width, theme);
                    folded.pop();
                    drawn
                }
                (_, Some(Cell::Reply(_))) if index == self.next => tail.to_vec(),
                (_, Some(cell)) => cell.rows(width, theme, detail),
            };
            let Some(cell) = cells.get(index) else { continue };
            count += drawn.len();
            shown.push((index, cell, drawn));
            if count > height {
                break;
            }
        }
        let mut rows = Vec::new();
        let mut above =
            if shown.last().is_none_or(|(index, ..)| *index == self.next) { self.above } else { Above::Cell };
        for (index, cell, drawn) in shown.into_iter().rev() {
            if index == self.next && self.stream.started() {
                rows.extend(drawn);
            } else {
                above.add(cell, drawn, &mut rows);
            }
        }
        rows
    }
}
