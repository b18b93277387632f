//! The surface's way to the alternate screen and back.

use std::io;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::{QUESTIONS, Surface};
use crate::tui::render::Row;
use crate::tui::terminal::ansi::{CURSOR_HIDE, CURSOR_SHOW};
use crate::tui::terminal::overlay::Overlay;
use crate::tui::terminal::restore::{self, ACTIVE, FULL, KITTY};
use crate::tui::terminal::tty::Output;

impl<O: Output> Surface<O> {
    /// Covers the screen with the alternate one.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn enter_overlay(&mut self) -> io::Result<()> {
        if self.traits.plain || self.overlay.is_some() {
            return Ok(());
        }
        self.overlay = Some(Overlay::new(self.cursor_shown));
        let mut bytes = Vec::new();
        if self.drawn {
            // Nothing of the region stays that a resize meanwhile could push out of reach.
            self.leave_region(&mut bytes);
            self.drawn = false;
        }
        bytes.extend_from_slice(b"\x1b[?1049h");
        if self.modes & (FULL | ACTIVE) == FULL {
            self.modes |= ACTIVE;
            restore::modes_on(&mut bytes, self.modes);
            if !self.asked {
                self.asked = true;
                self.unreported += 1;
                self.queries.ask_all();
                bytes.extend_from_slice(QUESTIONS);
            }
        } else {
            restore::keys_on(&mut bytes, self.modes & KITTY);
        }
        self.note();
        self.out.write_all(&bytes)
    }

    /// The overlay is there for the whole session, with the mouse, and nothing is drawn below it before the end.
    pub fn take_screen(&mut self) {
        self.modes |= FULL;
    }

    /// Rows that `release` leaves on the screen below.
    pub fn leave_behind(&mut self, rows: Vec<Row>) {
        self.queued = rows;
    }

    /// Whether the alternate screen is shown.
    pub fn in_overlay(&self) -> bool {
        self.overlay.is_some()
    }

    /// Draws the whole alternate screen; only what has changed is written. Does nothing outside the overlay.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw_overlay(&mut self, f: impl FnOnce(Rect, &mut Buffer) -> Option<Position>) -> io::Result<()> {
        let Some(overlay) = &mut self.overlay else { return Ok(()) };
        match overlay.frame(self.size, f) {
            Some(bytes) => self.out.write_all(&bytes),
            None => Ok(()),
        }
    }

    /// Shows the screen below again. What was inserted meanwhile comes with the next frame.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn leave_overlay(&mut self) -> io::Result<()> {
        if self.overlay.take().is_none() {
            return Ok(());
        }
        // tmux wraps the rows of this screen, too, and would push some of them into its history.
        let mut bytes = b"\x1b[m\x1b[H\x1b[J".to_vec();
        restore::overlay_off(&mut bytes, self.modes);
        bytes.extend_from_slice(if self.cursor_shown { CURSOR_SHOW } else { CURSOR_HIDE });
        self.note();
        self.out.write_all(&bytes)
    }
}
