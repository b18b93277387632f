//! What is switched on in the terminal, and what it answers.

use std::io;

use super::*;

impl<O: Output> Surface<O> {
    /// Takes an answer of the terminal in.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn report(&mut self, report: &Report) -> io::Result<()> {
        match report {
            Report::Cursor(position) => {
                self.unreported = self.unreported.saturating_sub(1);
                self.top = match self.top {
                    // An older answer than the one that is waited for says where the region was before it moved.
                    Top::Asked(row) if self.unreported == 0 && position.y >= row && position.y < self.size.height => {
                        Top::Known(position.y - row)
                    }
                    // An impossible answer is ignored, and asking again would not bring a better one.
                    top => top,
                };
            }
            Report::Kitty(_) if self.modes & KITTY == 0 => self.add_mode(KITTY)?,
            Report::Version(version) => {
                self.traits.learn(version);
                let other_keys = version.starts_with("XTerm(") || version.starts_with("tmux");
                if other_keys && self.modes & (KITTY | OTHER_KEYS) == 0 {
                    self.add_mode(OTHER_KEYS)?;
                }
            }
            Report::Status => {
                self.traits.status = true;
                self.progress(self.progress)?;
            }
            Report::Kitty(_) | Report::Background(..) | Report::Attributes => {}
        }
        Ok(())
    }

    /// Says what the program is at. What ends it, or breaks it off, takes that back.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn progress(&mut self, progress: Progress) -> io::Result<()> {
        self.progress = progress;
        let bytes = message::progress(progress, self.traits);
        if bytes.is_empty() || self.traits.plain {
            return Ok(());
        }
        for (on, mode) in [(self.traits.progress, PROGRESS), (self.traits.status, STATUS)] {
            self.modes |= if on { mode } else { 0 };
        }
        self.out.write_all(&bytes)?;
        self.note();
        Ok(())
    }

    fn add_mode(&mut self, mode: u8) -> io::Result<()> {
        self.modes |= mode;
        let mut bytes = Vec::new();
        restore::keys_on(&mut bytes, mode);
        self.out.write_all(&bytes)?;
        self.note();
        Ok(())
    }

    pub(super) fn note(&self) {
        let overlay = if self.overlay.is_some() { OVERLAY } else { 0 };
        let below = if self.drawn { self.shown.area.height.saturating_sub(self.at.row + 1) } else { 0 };
        restore::note(self.modes | overlay, below);
    }
}
