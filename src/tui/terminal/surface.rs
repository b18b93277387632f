//! The inline surface: history goes into the terminal's own scrollback, and below it lives a region that is drawn
//! again and again. An overlay (the alternate screen) covers both for pagers and dialogs.
//!
//! The cursor never leaves the live region, and everything in it is reached by relative moves. So the surface can
//! draw before the terminal has said where the cursor is, and finds its rows again after a resize, because terminals
//! that wrap their rows anew carry the cursor along with the text.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use super::ansi::{self, Blanks, CURSOR_HIDE, CURSOR_SHOW, ERASE_DOWN, Pen, SYNC_BEGIN, SYNC_END, WRAP_OFF, WRAP_ON};
use super::input::{Queries, Report};
use super::live::{At, Before, draw, rows_above};
use super::restore::{self, ACTIVE, KITTY, OTHER_KEYS, OVERLAY};
use super::traits::Traits;
use crate::tui::render::Row;

/// Asked once, with the first frame: cursor, keyboard protocol, background, name, and last the question that every
/// terminal answers.
const QUESTIONS: &[u8] = b"\x1b[6n\x1b[?u\x1b]11;?\x1b\\\x1b[>q\x1b[c";
const ASK_CURSOR: &[u8] = b"\x1b[6n";

/// Where the surface's bytes go.
pub trait Output {
    /// Writes everything, in one call to the system where that takes it.
    ///
    /// # Errors
    /// When the terminal is gone.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The size that the terminal has at this moment, when it can be known.
    fn size(&self) -> Option<Size>;
}

/// A terminal device.
#[derive(Debug)]
pub struct Tty(File);

impl Tty {
    /// The terminal that a descriptor belongs to; none when it is a file or a pipe.
    ///
    /// # Errors
    /// When the process is out of descriptors.
    pub fn of(fd: impl AsFd + IsTerminal) -> io::Result<Option<Tty>> {
        if !fd.is_terminal() {
            return Ok(None);
        }
        Ok(Some(Tty(File::from(fd.as_fd().try_clone_to_owned()?))))
    }
}

impl From<Tty> for OwnedFd {
    fn from(tty: Tty) -> OwnedFd {
        tty.0.into()
    }
}

impl AsFd for Tty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Output for Tty {
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        while !bytes.is_empty() {
            match rustix::io::write(&self.0, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(rustix::io::Errno::INTR) => {}
                // Whoever shares the terminal may have made it non-blocking.
                Err(rustix::io::Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn size(&self) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(&self.0).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then(|| Size::new(size.ws_col, size.ws_row))
    }
}

/// What is known of the region's first row on the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Top {
    Unknown,
    /// Asked while the cursor was on this row of the region, which has not moved since.
    Asked(u16),
    Known(u16),
}

/// The inline surface over one terminal.
#[derive(Debug)]
pub struct Surface<O: Output> {
    out: O,
    traits: Traits,
    queries: Queries,
    size: Size,
    /// Size that the last frame was drawn for.
    drawn_size: Size,
    /// The frame on the screen, and a spare one to draw the next in.
    shown: Buffer,
    spare: Buffer,
    /// The region is on the screen, the cursor in it.
    drawn: bool,
    at: At,
    cursor_shown: bool,
    top: Top,
    /// Rows of the region that a shrinking screen has pushed into the scrollback; a growing one brings them back.
    stray: u16,
    /// What the next frame does with what is on the screen.
    wipe: Wipe,
    modes: u8,
    asked: bool,
    overlay: Option<Overlay>,
    /// History that came while the overlay hid it.
    queued: Vec<Row>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wipe {
    No,
    /// The live region, against what another program has written into it.
    Region,
    /// Screen and scrollback, before the caller gives all rows again.
    All,
}

#[derive(Debug)]
struct Overlay {
    shown: Buffer,
    spare: Buffer,
    at: At,
    cursor_shown: bool,
    drawn: bool,
}

impl<O: Output> Surface<O> {
    /// Takes over the terminal at the cursor's row. Nothing is written before the first frame.
    pub fn open(out: O, traits: Traits, queries: Queries) -> Surface<O> {
        let size = out.size().unwrap_or(Size::new(80, 24));
        Surface {
            out,
            traits,
            queries,
            size,
            drawn_size: size,
            shown: Buffer::default(),
            spare: Buffer::default(),
            drawn: false,
            at: At::default(),
            cursor_shown: true,
            top: Top::Unknown,
            stray: 0,
            wipe: Wipe::No,
            modes: 0,
            asked: false,
            overlay: None,
            queued: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Columns and rows of the screen, as of the last frame or `resize`.
    pub fn size(&self) -> Size {
        self.size
    }

    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Takes a new size in. The next frame finds the live region and draws it anew.
    pub fn resize(&mut self, size: Size) {
        if size.width > 0 && size.height > 0 {
            self.size = size;
        }
    }

    /// Takes an answer of the terminal in.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn report(&mut self, report: &Report) -> io::Result<()> {
        match report {
            Report::Cursor(position) => {
                self.top = match self.top {
                    Top::Asked(row) if position.y >= row && position.y < self.size.height => {
                        Top::Known(position.y - row)
                    }
                    Top::Known(top) => Top::Known(top),
                    Top::Asked(_) | Top::Unknown => Top::Unknown,
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
            Report::Kitty(_) | Report::Background(..) | Report::Attributes => {}
        }
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

    /// Draws the live region, `height` rows high but no higher than the screen. `f` draws into the area that it gets
    /// and says where the cursor shall stand, if anywhere. Only what has changed is written.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, height: u16, f: impl FnOnce(Rect, &mut Buffer) -> Option<Position>) -> io::Result<()> {
        self.frame(&[], height, f)
    }

    /// Puts rows above the live region, each exactly once, and leaves the region as it is.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn insert(&mut self, rows: &[Row]) -> io::Result<()> {
        let (shown, cursor) = (self.shown.clone(), self.cursor_shown.then_some(self.at));
        self.frame(rows, shown.area.height, |area, buffer| {
            for (to, from) in buffer
                .content
                .chunks_mut(usize::from(area.width).max(1))
                .zip(shown.content.chunks(usize::from(shown.area.width).max(1)))
            {
                to.iter_mut().zip(from).for_each(|(to, from)| to.clone_from(from));
            }
            cursor.map(|at| Position::new(at.column, at.row))
        })
    }

    /// Inserts rows above the live region and draws it, in one synchronized update.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn frame(
        &mut self,
        rows: &[Row],
        height: u16,
        f: impl FnOnce(Rect, &mut Buffer) -> Option<Position>,
    ) -> io::Result<()> {
        if self.traits.plain {
            return self.print(rows);
        }
        if self.overlay.is_some() {
            self.queued.extend_from_slice(rows);
            return Ok(());
        }
        if let Some(size) = self.out.size() {
            self.size = size;
        }
        let area = Rect::new(0, 0, self.size.width, height.clamp(1, self.size.height));
        let mut next = std::mem::take(&mut self.spare);
        next.resize(area);
        next.reset();
        let cursor = f(area, &mut next);

        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.begin(&mut bytes);
        let start = bytes.len();
        if self.queued.is_empty() {
            self.compose(&mut bytes, rows, &next, cursor);
        } else {
            let mut queued = std::mem::take(&mut self.queued);
            queued.extend_from_slice(rows);
            self.compose(&mut bytes, &queued, &next, cursor);
        }
        let changed = bytes.len() > start;
        self.spare = std::mem::replace(&mut self.shown, next);
        self.drawn_size = self.size;
        let result = if changed {
            self.end(&mut bytes);
            self.out.write_all(&bytes)
        } else {
            Ok(())
        };
        if bytes.capacity() > 1 << 20 {
            bytes = Vec::new();
        }
        self.bytes = bytes;
        self.note();
        result
    }

    /// Opens a synchronized update; nothing of it is sent when no change follows.
    fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(SYNC_BEGIN);
        out.extend_from_slice(WRAP_OFF);
        if self.cursor_shown && self.drawn {
            out.extend_from_slice(CURSOR_HIDE);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(WRAP_ON);
        if self.cursor_shown {
            out.extend_from_slice(CURSOR_SHOW);
        }
        if self.modes & ACTIVE == 0 {
            self.modes |= ACTIVE;
            restore::modes_on(out, self.modes);
        }
        if !self.asked {
            self.asked = true;
            self.queries.ask();
            self.top = Top::Asked(self.at.row);
            out.extend_from_slice(QUESTIONS);
        } else if self.top == Top::Unknown && self.queries.none_open() {
            self.queries.ask();
            self.top = Top::Asked(self.at.row);
            out.extend_from_slice(ASK_CURSOR);
        }
        out.extend_from_slice(SYNC_END);
    }

    /// Writes what leads from the screen as it is to history plus `next`.
    fn compose(&mut self, out: &mut Vec<u8>, rows: &[Row], next: &Buffer, cursor: Option<Position>) {
        let mut pen = Pen::new();
        let height = next.area.height;
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
            } else {
                self.at.go(out, 0, 0);
                if rows.iter().any(|row| row.continues) {
                    // Where the terminal wraps by itself, rows cannot be erased one by one.
                    out.extend_from_slice(ERASE_DOWN);
                    (old_height, before) = (0, Before::Blank);
                }
                write_rows(out, &mut pen, rows, self.size.width, usize::from(old_height));
                self.top = match self.top {
                    Top::Known(top) => {
                        Top::Known(top.saturating_add(clamped(rows.len())).min(self.size.height.saturating_sub(1)))
                    }
                    Top::Asked(_) | Top::Unknown => Top::Unknown,
                };
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
        self.fit(out, old_height, height);
        draw(out, &mut pen, &mut self.at, &self.shown, next, before);
        self.drawn = true;
        match cursor {
            Some(cursor) => {
                let column = cursor.x.min(next.area.width.saturating_sub(1));
                self.at.go(out, cursor.y.min(height - 1), column);
                if !self.cursor_shown {
                    out.extend_from_slice(CURSOR_SHOW);
                }
            }
            None => {
                if self.at.row >= height || self.at.column == u16::MAX {
                    self.at.go(out, self.at.row.min(height - 1), 0);
                }
                if self.cursor_shown {
                    out.extend_from_slice(CURSOR_HIDE);
                }
            }
        }
        self.cursor_shown = cursor.is_some();
    }

    /// Goes to where the region's first row is now, wherever the terminal has moved it, and erases from there on.
    fn leave_region(&mut self, out: &mut Vec<u8>) {
        out.push(b'\r');
        if self.drawn {
            let cut_or_same = !self.traits.reflows || self.size.width == self.drawn_size.width;
            let above = if cut_or_same { self.at.row } else { rows_above(&self.shown, self.at, self.size.width) };
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
        (fits && self.traits.regions && rows.len() <= usize::from(top)).then_some(top)
    }

    /// Scrolls rows in above the region, by line feeds at the bottom of a scroll region: SU would lose them in
    /// terminals built on xterm.js.
    fn scroll_in(&mut self, out: &mut Vec<u8>, pen: &mut Pen, rows: &[Row], top: u16) {
        out.extend_from_slice(b"\x1b[1;");
        ansi::number(out, top);
        out.push(b'r');
        ansi::place(out, top - 1, 0);
        out.extend_from_slice(b"\r\n");
        write_rows(out, pen, rows, self.size.width, 0);
        // `write_rows` ends with a line feed too many; it is taken back so that no blank row scrolls in.
        out.truncate(out.len() - 2);
        out.extend_from_slice(b"\x1b[r");
        let column = if self.at.column == u16::MAX { 0 } else { self.at.column };
        self.at.column = column;
        ansi::place(out, top + self.at.row, column);
    }

    /// Makes room for `height` rows where there are `old_height`.
    fn fit(&mut self, out: &mut Vec<u8>, old_height: u16, height: u16) {
        if height > old_height {
            let last = old_height.saturating_sub(1);
            self.at.go(out, last, 0);
            let feeds = height - 1 - last;
            out.resize(out.len() + usize::from(feeds), b'\n');
            self.at.row = height - 1;
            self.top = match self.top {
                Top::Known(top) => Top::Known(top.min(self.size.height - height)),
                Top::Asked(_) | Top::Unknown => Top::Unknown,
            };
        } else if height < old_height {
            self.at.go(out, height, 0);
            out.extend_from_slice(ERASE_DOWN);
        }
    }

    fn print(&mut self, rows: &[Row]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for row in rows {
            let text: String = row.line.spans.iter().map(|span| span.content.as_ref()).collect();
            ansi::clipped(&mut bytes, text.trim_end(), usize::MAX);
            bytes.extend_from_slice(b"\r\n");
        }
        self.out.write_all(&bytes)
    }

    fn note(&self) {
        let overlay = if self.overlay.is_some() { OVERLAY } else { 0 };
        let below = self.shown.area.height.saturating_sub(self.at.row + 1);
        restore::note(self.modes | overlay, below);
    }

    /// Makes the next frame draw every row of the live region again (Ctrl+L).
    pub fn redraw(&mut self) {
        if self.wipe == Wipe::No {
            self.wipe = Wipe::Region;
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.drawn = false;
        }
    }

    /// Makes the next frame clear the screen and the scrollback; the caller gives it the rows that shall be there.
    pub fn rebuild(&mut self) {
        self.wipe = Wipe::All;
    }

    /// Writes a sequence that shows nothing: a title, a notification, a copy.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn send(&mut self, sequence: &[u8]) -> io::Result<()> {
        if self.traits.plain { Ok(()) } else { self.out.write_all(sequence) }
    }

    /// Covers the screen with the alternate one.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn enter_overlay(&mut self) -> io::Result<()> {
        if self.traits.plain || self.overlay.is_some() {
            return Ok(());
        }
        let blank = Buffer::default();
        let shown = self.cursor_shown;
        self.overlay =
            Some(Overlay { shown: blank.clone(), spare: blank, at: At::default(), cursor_shown: shown, drawn: false });
        let mut bytes = b"\x1b[?1049h".to_vec();
        restore::keys_on(&mut bytes, self.modes & KITTY);
        self.note();
        self.out.write_all(&bytes)
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
        if let Some(size) = self.out.size() {
            self.size = size;
        }
        let Some(overlay) = &mut self.overlay else { return Ok(()) };
        let area = Rect::new(0, 0, self.size.width, self.size.height);
        let mut next = std::mem::take(&mut overlay.spare);
        next.resize(area);
        next.reset();
        let cursor = f(area, &mut next);
        let mut bytes = [SYNC_BEGIN, WRAP_OFF, CURSOR_HIDE].concat();
        let start = bytes.len();
        let mut before = Before::Shown;
        if !overlay.drawn || overlay.shown.area != area {
            bytes.extend_from_slice(b"\x1b[m\x1b[H\x1b[2J");
            (overlay.at, before) = (At::default(), Before::Blank);
        }
        draw(&mut bytes, &mut Pen::new(), &mut overlay.at, &overlay.shown, &next, before);
        if let Some(cursor) = cursor {
            overlay.at.go(&mut bytes, cursor.y.min(area.height - 1), cursor.x.min(area.width - 1));
        }
        let changed = bytes.len() > start || overlay.cursor_shown != cursor.is_some() || !overlay.drawn;
        overlay.spare = std::mem::replace(&mut overlay.shown, next);
        (overlay.drawn, overlay.cursor_shown) = (true, cursor.is_some());
        if !changed {
            return Ok(());
        }
        bytes.extend_from_slice(WRAP_ON);
        if cursor.is_some() {
            bytes.extend_from_slice(CURSOR_SHOW);
        }
        bytes.extend_from_slice(SYNC_END);
        self.out.write_all(&bytes)
    }

    /// Shows the screen below again. What was inserted meanwhile comes with the next frame.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn leave_overlay(&mut self) -> io::Result<()> {
        if self.overlay.take().is_none() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        restore::overlay_off(&mut bytes, self.modes);
        bytes.extend_from_slice(if self.cursor_shown { CURSOR_SHOW } else { CURSOR_HIDE });
        self.note();
        self.out.write_all(&bytes)
    }

    /// Erases the live region, switches all modes off and leaves the cursor where the region began: at exit, and
    /// before another program gets the terminal. The next frame takes the terminal again.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn release(&mut self) -> io::Result<()> {
        self.leave_overlay()?;
        if self.modes & ACTIVE == 0 {
            return Ok(());
        }
        if let Some(size) = self.out.size() {
            self.size = size;
        }
        let mut bytes = SYNC_BEGIN.to_vec();
        self.leave_region(&mut bytes);
        if !self.queued.is_empty() {
            write_rows(&mut bytes, &mut Pen::new(), &std::mem::take(&mut self.queued), self.size.width, 0);
        }
        bytes.extend_from_slice(SYNC_END);
        restore::modes_off(&mut bytes, self.modes);
        bytes.extend_from_slice(CURSOR_SHOW);
        // The keys that the terminal knows are remembered; only what is switched on is forgotten.
        self.modes &= !ACTIVE;
        (self.drawn, self.cursor_shown, self.stray, self.top) = (false, true, 0, Top::Unknown);
        self.shown = Buffer::default();
        restore::note(0, 0);
        self.out.write_all(&bytes)
    }
}

/// Writes rows from the first column on, each followed by a line feed, except where the next goes on after it: there
/// the terminal wraps by itself, so that it knows both for one line. The first `stale` rows stand where others were.
fn write_rows(out: &mut Vec<u8>, pen: &mut Pen, rows: &[Row], width: u16, stale: usize) {
    let mut wraps = false;
    for (index, row) in rows.iter().enumerate() {
        let goes_on = rows.get(index + 1).is_some_and(|next| next.continues);
        if goes_on && !wraps {
            out.extend_from_slice(WRAP_ON);
            wraps = true;
        }
        if index < stale {
            // Before the text, not after it: tmux forgets how long a row was only when it erases all of it.
            out.extend_from_slice(b"\x1b[K");
        }
        let columns = ansi::row(out, pen, row, width, if goes_on { Blanks::Keep } else { Blanks::Trim });
        if goes_on && columns + 1 >= width {
            continue;
        }
        if wraps {
            out.extend_from_slice(WRAP_OFF);
            wraps = false;
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn clamped(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
