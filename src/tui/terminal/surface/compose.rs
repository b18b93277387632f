//! What is written to get from the screen as it is to history and the next frame of the live region.

use ratatui::buffer::Buffer;
use ratatui::layout::Position;

use super::{Hold, Surface, Wipe, clamped};
use crate::tui::render::Row;
use crate::tui::terminal::ansi::{
    self, CURSOR_HIDE, CURSOR_SHOW, ERASE_DOWN, Overlong, PLACE_BACK, PLACE_KEPT, Pen, write_rows,
};
use crate::tui::terminal::live::{At, Before, Top, draw, rows_above};
use crate::tui::terminal::tty::Output;

impl<O: Output> Surface<O> {
    pub(super) fn compose(&mut self, out: &mut Vec<u8>, rows: &[Row], next: &Buffer, cursor: Option<Position>) {
        let mut pen = Pen::new();
        let (height, anchored) = (next.area.height, self.hold != Hold::Loose);
        let mut old_height = if self.drawn { self.shown.area.height } else { 0 };
        let mut before = Before::Shown;
        if self.wipe == Wipe::All {
            out.extend_from_slice(b"\x1b[r\x1b[H\x1b[2J\x1b[3J");
            (self.at, self.stray, self.top) = (At::default(), 0, Top::Known(0));
            (old_height, before) = (0, Before::Blank);
        } else if !self.drawn || self.wipe == Wipe::Region || self.drawn_size != self.size {
            self.leave_region(out);
            (old_height, before) = (0, Before::Blank);
        }
        self.wipe = Wipe::No;

        if !rows.is_empty() {
            if let Some(top) = self.region_top(rows, old_height, height) {
                self.scroll_in(out, &mut pen, rows, top);
            } else if !anchored
                && rows.len() + usize::from(height) == usize::from(old_height)
                && rows.iter().all(|row| !row.continues)
            {
                self.take_over(out, &mut pen, rows);
                old_height = height;
            } else {
                self.at.go(out, 0, 0);
                if anchored || rows.iter().any(|row| row.continues) {
                    // Where the terminal wraps by itself, rows cannot be erased one by one.
                    out.extend_from_slice(ERASE_DOWN);
                    old_height = 0;
                }
                let overlong = if anchored { Overlong::Wrapped } else { Overlong::Cut };
                write_rows(out, &mut pen, rows, self.size.width, usize::from(old_height), overlong);
                let last = self.size.height.saturating_sub(1);
                self.top = self.top.moved(|top| top.saturating_add(clamped(rows.len())).min(last));
                self.stray = 0;
                let left = usize::from(old_height).saturating_sub(rows.len());
                if left > usize::from(height) {
                    out.extend_from_slice(ERASE_DOWN);
                }
                // What is left of the old rows is written over, so that a terminal that shows half a frame never
                // shows an empty one.
                before = if left > 0 { Before::Anything } else { Before::Blank };
                old_height = 0;
            }
        }
        match cursor {
            Some(cursor) => {
                self.fit(out, old_height, height);
                draw(out, &mut pen, &mut self.at, &self.shown, next, before);
                let column = cursor.x.min(next.area.width.saturating_sub(1));
                self.at.go(out, cursor.y.min(height - 1), column);
                if !self.cursor_shown {
                    out.extend_from_slice(CURSOR_SHOW);
                }
            }
            None => {
                self.draw_parked(out, &mut pen, next, before, old_height);
                if self.cursor_shown {
                    out.extend_from_slice(CURSOR_HIDE);
                }
            }
        }
        self.drawn = true;
        self.cursor_shown = cursor.is_some();
    }

    /// Draws with the cursor at the region's first cell before and after. Rows below the cursor are the first that a
    /// shrinking screen takes, and all of them are ours. The way back up is not a count of rows: on a screen that has become
    /// lower the way down was shorter.
    fn draw_parked(&mut self, out: &mut Vec<u8>, pen: &mut Pen, next: &Buffer, before: Before, old_height: u16) {
        let height = next.area.height;
        self.at.go(out, 0, 0);
        if height > old_height {
            out.resize(out.len() + usize::from(height - 1), b'\n');
            ansi::csi(out, height - 1, b'A');
            self.top = self.top.moved(|top| top.min(self.size.height - height));
        }
        out.extend_from_slice(PLACE_KEPT);
        let start = out.len();
        if height < old_height {
            self.at.go(out, height, 0);
            out.extend_from_slice(ERASE_DOWN);
        }
        draw(out, pen, &mut self.at, &self.shown, next, before);
        if out.len() == start {
            out.truncate(start - PLACE_KEPT.len());
        } else {
            out.extend_from_slice(PLACE_BACK);
        }
        self.at = At::default();
    }

    /// Goes to where the region's first row is now, wherever the terminal has moved it, and erases from there on.
    pub(super) fn leave_region(&mut self, out: &mut Vec<u8>) {
        out.push(b'\r');
        if self.drawn {
            let cut_or_same = !self.traits.reflows || self.size.width == self.drawn_size.width;
            let above = if cut_or_same { self.at.row } else { rows_above(&self.shown, self.at, self.size.width) };
            if self.size.width > self.drawn_size.width {
                // A wider screen may have joined them: what is not certainly ours is not erased.
                let share = u32::from(self.stray) * u32::from(self.drawn_size.width) / u32::from(self.size.width);
                self.stray = u16::try_from(share).unwrap_or(0);
            }
            let above = above.saturating_add(self.stray);
            ansi::csi(out, above, b'A');
            self.stray = above.saturating_sub(self.size.height.saturating_sub(1));
        }
        out.extend_from_slice(ERASE_DOWN);
        self.at = At::default();
        self.top = Top::Unknown;
    }

    /// The region's first row when history can be scrolled in above it: both are known to fill the screen.
    fn region_top(&self, rows: &[Row], old_height: u16, height: u16) -> Option<u16> {
        let Top::Known(top) = self.top else { return None };
        let fits = old_height == height && top + height == self.size.height && top >= 2;
        (fits && self.traits.regions && self.hold == Hold::Loose && rows.len() <= usize::from(top)).then_some(top)
    }

    /// Scrolls rows in above the region, by line feeds at the bottom of a scroll region: SU would lose them in
    /// terminals built on xterm.js.
    fn scroll_in(&mut self, out: &mut Vec<u8>, pen: &mut Pen, rows: &[Row], top: u16) {
        out.extend_from_slice(b"\x1b[1;");
        ansi::number(out, top);
        out.push(b'r');
        ansi::place(out, top - 1, 0);
        out.extend_from_slice(b"\r\n");
        write_rows(out, pen, rows, self.size.width, 0, Overlong::Cut);
        // `write_rows` ends with a line feed too many; it is undone so that no blank row scrolls in.
        out.truncate(out.len() - 2);
        out.extend_from_slice(b"\x1b[r");
        let column = if self.at.column == u16::MAX { 0 } else { self.at.column };
        self.at.column = column;
        ansi::place(out, top + self.at.row, column);
    }

    /// Writes rows over the first ones of the region, which is that much smaller from now on.
    fn take_over(&mut self, out: &mut Vec<u8>, pen: &mut Pen, rows: &[Row]) {
        self.at.go(out, 0, 0);
        write_rows(out, pen, rows, self.size.width, rows.len(), Overlong::Cut);
        let cells = rows.len() * usize::from(self.shown.area.width);
        self.shown.content.drain(..cells);
        let count = clamped(rows.len());
        self.shown.area.height -= count;
        self.top = self.top.moved(|top| top + count);
        (self.at, self.stray) = (At::default(), 0);
    }

    /// Makes room for `height` rows where there are `old_height`.
    fn fit(&mut self, out: &mut Vec<u8>, old_height: u16, height: u16) {
        if height > old_height {
            let last = old_height.saturating_sub(1);
            self.at.go(out, last, 0);
            let feeds = height - 1 - last;
            out.resize(out.len() + usize::from(feeds), b'\n');
            self.at.row = height - 1;
            self.top = self.top.moved(|top| top.min(self.size.height - height));
        } else if height < old_height {
            self.at.go(out, height, 0);
            out.extend_from_slice(ERASE_DOWN);
        }
    }
}
