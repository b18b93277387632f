//! The alternate screen's frames.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use super::ansi::{CURSOR_HIDE, CURSOR_SHOW, Pen, SYNC_BEGIN, SYNC_END, WRAP_OFF, WRAP_ON};
use super::live::{At, Before, draw};

/// What the alternate screen shows.
#[derive(Debug)]
pub(super) struct Overlay {
    shown: Buffer,
    spare: Buffer,
    at: At,
    cursor_shown: bool,
    /// `shown` is on the screen.
    drawn: bool,
}

impl Overlay {
    pub(super) fn new(cursor_shown: bool) -> Overlay {
        Overlay { shown: Buffer::default(), spare: Buffer::default(), at: At::default(), cursor_shown, drawn: false }
    }

    /// Makes the next frame draw everything.
    pub(super) fn redraw(&mut self) {
        self.drawn = false;
    }

    /// Draws a frame and returns the bytes that lead to it, if it differs from the last.
    pub(super) fn frame(
        &mut self,
        size: Size,
        f: impl FnOnce(Rect, &mut Buffer) -> Option<Position>,
    ) -> Option<Vec<u8>> {
        let area = Rect::new(0, 0, size.width, size.height);
        let mut next = std::mem::take(&mut self.spare);
        next.resize(area);
        next.reset();
        let cursor = f(area, &mut next);
        let mut bytes = [SYNC_BEGIN, WRAP_OFF, CURSOR_HIDE].concat();
        let start = bytes.len();
        let mut before = Before::Shown;
        if !self.drawn || self.shown.area != area {
            bytes.extend_from_slice(b"\x1b[m\x1b[H\x1b[2J");
            (self.at, before) = (At::default(), Before::Blank);
        }
        draw(&mut bytes, &mut Pen::new(), &mut self.at, &self.shown, &next, before);
        if let Some(cursor) = cursor {
            let (row, column) = (cursor.y.min(area.height - 1), cursor.x.min(area.width - 1));
            self.at.go(&mut bytes, row, column);
        }
        let changed = bytes.len() > start || self.cursor_shown != cursor.is_some();
        self.spare = std::mem::replace(&mut self.shown, next);
        (self.drawn, self.cursor_shown) = (true, cursor.is_some());
        bytes.extend_from_slice(WRAP_ON);
        if cursor.is_some() {
            bytes.extend_from_slice(CURSOR_SHOW);
        }
        bytes.extend_from_slice(SYNC_END);
        changed.then_some(bytes)
    }
}
