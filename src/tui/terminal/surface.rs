//! The inline surface: history goes into the terminal's own scrollback, and below it lives a region that is drawn
//! again and again. An overlay (the alternate screen) covers both for pagers, dialogs and lists that would push rows out.
//!
//! As soon as the terminal has said where the cursor is, the region takes all rows from the end of the history to the
//! bottom of the screen: history then comes in over its blank rows, and the composer keeps its place. It is also what
//! keeps a resize clean: a terminal that makes rows again pushes those at the top of the screen into its scrollback,
//! where no program reaches them, so no row of ours may be up there, and no blank one below.
//!
//! The cursor never leaves the live region, and everything in it is reached by relative moves. So the surface can
//! draw before the terminal has said where the cursor is, and finds its rows again after a resize, because terminals
//! that wrap their rows again carry the cursor along with the text. While a size may be out of date, the cursor rests at
//! the region's first cell (`Hold`): then the region begins at the cursor, however often rows were made again.

mod compose;
mod modes;
mod over;
mod plain;

use std::io;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::Modifier;

use self::plain::Plain;
use super::ansi::{self, CURSOR_HIDE, CURSOR_SHOW, Overlong, Pen, SYNC_BEGIN, SYNC_END, WRAP_OFF, WRAP_ON, write_rows};
use super::input::{Queries, Report};
use super::live::{At, Top};
use super::message;
use super::overlay::Overlay;
use super::restore::{self, ACTIVE, KITTY, OTHER_KEYS, OVERLAY, PROGRESS, STATUS};
use super::traits::Traits;
use super::tty::Output;
use crate::tui::msg::Progress;
use crate::tui::render::Row;

/// Asked once, with the first frame: cursor, keyboard protocol, background, name, and last the question that every
/// terminal answers.
const QUESTIONS: &[u8] = b"\x1b[6n\x1b[?u\x1b]11;?\x1b\\\x1b]7501;?\x1b\\\x1b[>q\x1b[c";
const ASK_CURSOR: &[u8] = b"\x1b[6n";
/// Asked last, once everything is switched off: what the terminal has reported until then comes before the answer.
const ASK_LAST: &[u8] = b"\x1b[c";

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
    hold: Hold,
    top: Top,
    /// Rows of the region that a shrinking screen has pushed into the scrollback; a growing one brings them back.
    stray: u16,
    /// What the next frame does with what is on the screen.
    wipe: Wipe,
    modes: u8,
    progress: Progress,
    asked: bool,
    /// Answers about the cursor that have not come to `report`: the keyboard has read some of them already.
    unreported: u32,
    overlay: Option<Overlay>,
    /// History that came while the overlay hid it.
    queued: Vec<Row>,
    bytes: Vec<u8>,
    plain: Plain,
}

/// Where the cursor rests between two frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Hold {
    /// Where the frame says.
    Loose,
    /// At the region's first cell, with another one painted where it belongs: the terminal may have another size than it
    /// has told. It carries the cursor along with the text, so nothing above the region is ever erased, and nothing of the
    /// region stays.
    Anchored,
    /// The same, and the region is no higher than it must be: a screen that has become lower would push it into the
    /// scrollback.
    Low,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wipe {
    No,
    /// The live region, against what another program has written into it.
    Region,
    /// Screen and scrollback, before the caller gives all rows again.
    All,
}

impl<O: Output> Surface<O> {
    /// Takes over the terminal at the cursor's row. Nothing is written before the first frame.
    pub fn open(out: O, traits: Traits, queries: Queries) -> Surface<O> {
        let size = out.size().unwrap_or(super::tty::USUAL);
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
            hold: Hold::Loose,
            top: Top::Unknown,
            stray: 0,
            wipe: Wipe::No,
            modes: 0,
            progress: Progress::Idle,
            asked: false,
            unreported: 0,
            overlay: None,
            queued: Vec::new(),
            bytes: Vec::new(),
            plain: Plain::default(),
        }
    }

    /// Columns and rows of the screen, as of the last `measure` or `resize`.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Rows of the live region, as of the last frame.
    pub fn rows(&self) -> u16 {
        self.shown.area.height
    }

    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Columns and rows that the terminal has at this moment. Asked once for a frame, before its rows are made: they are
    /// written for the size that they were made for, whatever it is by then.
    pub fn measure(&mut self) -> Size {
        if let Some(size) = self.out.size() {
            self.size = size;
        }
        self.size
    }

    /// Takes a new size in. The next frame finds the live region and draws it again.
    pub fn resize(&mut self, size: Size) {
        if size.width > 0 && size.height > 0 {
            self.size = size;
        }
        // The terminal has cut what is there, even where this is the size of the last frame again.
        if let Some(overlay) = &mut self.overlay {
            overlay.redraw();
        }
    }

    /// Where the cursor rests from the next frame on.
    pub fn hold(&mut self, hold: Hold) {
        self.hold = hold;
    }

    /// Draws the live region, at least `height` rows high but no higher than the screen. `f` draws into the area that it
    /// gets and says where the cursor belongs, if anywhere. Only what has changed is written.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, height: u16, f: impl FnOnce(Rect, &mut Buffer) -> Option<Position>) -> io::Result<()> {
        self.frame(&[], height, f)
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
            return self.print(rows, height, f);
        }
        if self.overlay.is_some() {
            self.queued.extend_from_slice(rows);
            return Ok(());
        }
        let rows_in = self.queued.len() + rows.len();
        let area = Rect::new(0, 0, self.size.width, self.room(rows_in, height.clamp(1, self.size.height)));
        let mut next = std::mem::take(&mut self.spare);
        next.resize(area);
        next.reset();
        let mut cursor = f(area, &mut next);
        if self.hold != Hold::Loose
            && let Some(cell) = cursor.take().and_then(|place| next.cell_mut(place))
        {
            cell.modifier.toggle(Modifier::REVERSED);
        }

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
        let changed = bytes.len() > start || self.wants_place();
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

    /// Rows of the region once `rows` of history have come in above it, when it needs `height` of them.
    fn room(&self, rows: usize, height: u16) -> u16 {
        let (most, rows) = (self.size.height - height, clamped(rows));
        let still = self.drawn && self.wipe == Wipe::No && self.drawn_size == self.size;
        // An overlay gives the region its rows back, as far as they are still there.
        let kept = self.drawn || self.drawn_size == self.size;
        match self.top {
            Top::Known(top) if still && self.hold != Hold::Low => self.size.height - top.saturating_add(rows).min(most),
            _ if kept && self.wipe != Wipe::All && self.hold != Hold::Low => {
                self.shown.area.height.saturating_sub(rows).clamp(height, self.size.height)
            }
            _ => height,
        }
    }

    /// Asks the terminal where the cursor is, unless that question is already open.
    fn wants_place(&self) -> bool {
        self.asked && self.top == Top::Unknown && self.unreported == 0
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
            self.unreported += 1;
            self.queries.ask_all();
            self.top = Top::Asked(self.at.row);
            out.extend_from_slice(QUESTIONS);
        } else if self.wants_place() {
            self.unreported += 1;
            self.queries.ask();
            self.top = Top::Asked(self.at.row);
            out.extend_from_slice(ASK_CURSOR);
        }
        out.extend_from_slice(SYNC_END);
    }

    fn print(
        &mut self,
        rows: &[Row],
        height: u16,
        f: impl FnOnce(Rect, &mut Buffer) -> Option<Position>,
    ) -> io::Result<()> {
        let mut live = Buffer::empty(Rect::new(0, 0, self.size.width, height.clamp(1, self.size.height)));
        let cursor = f(live.area, &mut live);
        let bytes = self.plain.frame(rows, &live, cursor);
        if bytes.is_empty() { Ok(()) } else { self.out.write_all(&bytes) }
    }

    /// Makes the next frame draw every row of the live region again (Ctrl+L).
    pub fn redraw(&mut self) {
        if self.wipe == Wipe::No {
            self.wipe = Wipe::Region;
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.redraw();
        }
    }

    /// Makes the next frame clear the screen and the scrollback; the caller gives it the rows that belong there.
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

    /// Writes a line for the shell to come, once the terminal is released.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn print_after(&mut self, line: &str) -> io::Result<()> {
        let mut bytes = Vec::new();
        ansi::clipped(&mut bytes, line, usize::MAX);
        bytes.extend_from_slice(b"\r\n");
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
            let end = self.plain.release();
            return if end.is_empty() { Ok(()) } else { self.out.write_all(end) };
        }
        self.measure();
        let mut bytes = SYNC_BEGIN.to_vec();
        self.leave_region(&mut bytes);
        if !self.queued.is_empty() {
            let queued = std::mem::take(&mut self.queued);
            write_rows(&mut bytes, &mut Pen::new(), &queued, self.size.width, 0, Overlong::Cut);
        }
        bytes.extend_from_slice(SYNC_END);
        restore::modes_off(&mut bytes, self.modes);
        bytes.extend_from_slice(CURSOR_SHOW);
        if self.queries.fence() {
            bytes.extend_from_slice(ASK_LAST);
        }
        // The keys that the terminal knows are remembered; only what is switched on is forgotten.
        self.modes &= !ACTIVE;
        (self.drawn, self.cursor_shown, self.stray, self.top) = (false, true, 0, Top::Unknown);
        self.shown = Buffer::default();
        restore::note(0, 0);
        self.out.write_all(&bytes)
    }
}

fn clamped(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written, and the columns that the terminal has.
    struct Written(Vec<u8>, u16);

    impl Output for Written {
        fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }

        fn size(&self) -> Option<Size> {
            Some(Size::new(self.1, 24))
        }
    }

    #[test]
    fn what_the_terminal_may_have_cut_is_drawn_whole() {
        let mut surface = Surface::open(Written(Vec::new(), 80), Traits::USUAL, Queries::default());
        let draws = |surface: &mut Surface<Written>| {
            surface.out.0.clear();
            let draw = |area: Rect, buf: &mut Buffer| {
                buf.set_string(area.x, area.y, "row-above", ratatui::style::Style::new());
                Some(Position::new(0, 1))
            };
            surface.frame(&[], 2, draw).unwrap();
            String::from_utf8_lossy(&surface.out.0).contains("row-above")
        };
        assert!(draws(&mut surface) && !draws(&mut surface));
        // Another screen was shown, and the terminal was smaller for a while.
        surface.enter_overlay().unwrap();
        surface.leave_overlay().unwrap();
        assert!(draws(&mut surface) && !draws(&mut surface));
    }

    #[test]
    fn rows_are_written_for_the_size_that_they_were_made_for() {
        let mut surface = Surface::open(Written(Vec::new(), 80), Traits::USUAL, Queries::default());
        let row = "a row ".repeat(usize::from(surface.measure().width) / 6);
        // The window is dragged before the rows are on their way.
        surface.out.1 = 30;
        surface.frame(&[ratatui::text::Line::from(row.trim_end().to_owned()).into()], 1, |_, _| None).unwrap();
        assert!(String::from_utf8_lossy(&surface.out.0).contains(row.trim_end()));
        assert_eq!((surface.size().width, surface.measure().width), (80, 30));
    }

    #[test]
    fn an_answer_from_before_the_region_moved_says_nothing_of_where_it_is() {
        let queries = Queries::default();
        let mut surface = Surface::open(Written(Vec::new(), 80), Traits::USUAL, queries.clone());
        let frame = |surface: &mut Surface<Written>, rows: &[Row]| {
            surface.frame(rows, 4, |_, _| Some(Position::new(0, 1))).unwrap();
            surface.top
        };
        let answer = |row| Report::Cursor(Position::new(0, row));
        assert_eq!(frame(&mut surface, &[]), Top::Asked(1));
        // The keyboard has read the answer, but a key before it is drawn first.
        assert!(queries.answered());
        assert_eq!(frame(&mut surface, &[Row::default()]), Top::Unknown);
        surface.report(&answer(1)).unwrap();
        assert_eq!(frame(&mut surface, &[]), Top::Asked(1));
        assert!(queries.answered());
        surface.report(&answer(2)).unwrap();
        assert_eq!(surface.top, Top::Known(1));
    }
}
