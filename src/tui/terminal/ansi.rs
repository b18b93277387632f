//! Bytes that set styles, write rows and move the cursor.

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier, Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::tui::render::Row;

/// Starts a synchronized update: the terminal shows nothing until its end.
pub(super) const SYNC_BEGIN: &[u8] = b"\x1b[?2026h";
pub(super) const SYNC_END: &[u8] = b"\x1b[?2026l";
pub(super) const WRAP_OFF: &[u8] = b"\x1b[?7l";
pub(super) const WRAP_ON: &[u8] = b"\x1b[?7h";
pub(super) const CURSOR_HIDE: &[u8] = b"\x1b[?25l";
pub(super) const CURSOR_SHOW: &[u8] = b"\x1b[?25h";
/// Erases from the cursor, which must be in the first column, to the end of the screen.
///
/// The row is erased apart from the rest, because tmux takes an erase from the very first cell for a clear and pushes
/// the whole screen into its history.
pub(super) const ERASE_DOWN: &[u8] = b"\x1b[K\x1b[C\x1b[J\r";
/// Keeps the cursor's place, and goes back to it; true as long as nothing scrolls in between.
pub(super) const PLACE_KEPT: &[u8] = b"\x1b7";
pub(super) const PLACE_BACK: &[u8] = b"\x1b8";
/// Longest link target that is written, in bytes.
const LINK_BYTES: usize = 2048;

/// How a cell looks apart from its text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    fg: Color,
    bg: Color,
    underline: Color,
    modifier: Modifier,
}

impl Look {
    pub(super) const PLAIN: Look =
        Look { fg: Color::Reset, bg: Color::Reset, underline: Color::Reset, modifier: Modifier::empty() };

    pub(super) fn of_cell(cell: &Cell) -> Look {
        Look { fg: cell.fg, bg: cell.bg, underline: cell.underline_color, modifier: cell.modifier }
    }

    fn of_style(style: Style) -> Look {
        Look {
            fg: style.fg.unwrap_or(Color::Reset),
            bg: style.bg.unwrap_or(Color::Reset),
            underline: style.underline_color.unwrap_or(Color::Reset),
            modifier: style.add_modifier.difference(style.sub_modifier),
        }
    }

    /// Whether a space in this look shows as nothing.
    pub(super) fn hides_blanks(self) -> bool {
        self.bg == Color::Reset
            && !self.modifier.intersects(Modifier::REVERSED | Modifier::UNDERLINED | Modifier::CROSSED_OUT)
    }
}

/// The style that the terminal writes with at the moment.
#[derive(Debug)]
pub(super) struct Pen(Look);

impl Pen {
    pub(super) fn new() -> Pen {
        Pen(Look::PLAIN)
    }

    /// Changes the terminal's style to `look` in as few bytes as the change needs.
    pub(super) fn set(&mut self, out: &mut Vec<u8>, look: Look) {
        let from = self.0;
        if from == look {
            return;
        }
        self.0 = look;
        if look == Look::PLAIN {
            out.extend_from_slice(b"\x1b[m");
            return;
        }
        out.extend_from_slice(b"\x1b[");
        let start = out.len();
        let mut from = from;
        // Switching single attributes off is not uniform over terminals (21, 22), so a lost one resets them all.
        if !look.modifier.contains(from.modifier) {
            out.extend_from_slice(b"0;");
            from = Look::PLAIN;
        }
        for (modifier, code) in MODIFIERS {
            if look.modifier.contains(modifier) && !from.modifier.contains(modifier) {
                out.extend_from_slice(code);
            }
        }
        if look.fg != from.fg {
            color(out, look.fg, 30);
        }
        if look.bg != from.bg {
            color(out, look.bg, 40);
        }
        if look.underline != from.underline {
            color(out, look.underline, 50);
        }
        debug_assert!(out.len() > start, "a change of look has a code");
        out.pop();
        out.push(b'm');
    }

    pub(super) fn reset(&mut self, out: &mut Vec<u8>) {
        self.set(out, Look::PLAIN);
    }
}

const MODIFIERS: [(Modifier, &[u8]); 9] = [
    (Modifier::BOLD, b"1;"),
    (Modifier::DIM, b"2;"),
    (Modifier::ITALIC, b"3;"),
    (Modifier::UNDERLINED, b"4;"),
    (Modifier::SLOW_BLINK, b"5;"),
    (Modifier::RAPID_BLINK, b"6;"),
    (Modifier::REVERSED, b"7;"),
    (Modifier::HIDDEN, b"8;"),
    (Modifier::CROSSED_OUT, b"9;"),
];

/// Writes the code of a color and a semicolon; `base` is 30 for text, 40 for background, 50 for underlines.
fn color(out: &mut Vec<u8>, color: Color, base: u16) {
    let indexed = |out: &mut Vec<u8>, index: u8| {
        number(out, base + 8);
        out.extend_from_slice(b";5;");
        number(out, u16::from(index));
    };
    let ansi = |out: &mut Vec<u8>, index: u8| match (base, index) {
        (50, index) => indexed(out, index),
        (base, 0..8) => number(out, base + u16::from(index)),
        (base, index) => number(out, base + 52 + u16::from(index)),
    };
    match color {
        Color::Reset => number(out, base + 9),
        Color::Black => ansi(out, 0),
        Color::Red => ansi(out, 1),
        Color::Green => ansi(out, 2),
        Color::Yellow => ansi(out, 3),
        Color::Blue => ansi(out, 4),
        Color::Magenta => ansi(out, 5),
        Color::Cyan => ansi(out, 6),
        Color::Gray => ansi(out, 7),
        Color::DarkGray => ansi(out, 8),
        Color::LightRed => ansi(out, 9),
        Color::LightGreen => ansi(out, 10),
        Color::LightYellow => ansi(out, 11),
        Color::LightBlue => ansi(out, 12),
        Color::LightMagenta => ansi(out, 13),
        Color::LightCyan => ansi(out, 14),
        Color::White => ansi(out, 15),
        Color::Indexed(index) => indexed(out, index),
        Color::Rgb(r, g, b) => {
            number(out, base + 8);
            out.extend_from_slice(b";2;");
            number(out, u16::from(r));
            out.push(b';');
            number(out, u16::from(g));
            out.push(b';');
            number(out, u16::from(b));
        }
    }
    out.push(b';');
}

/// Writes a number in decimal digits.
pub(super) fn number(out: &mut Vec<u8>, value: u16) {
    let digit = |value: u16| b'0' + u8::try_from(value % 10).unwrap_or_default();
    let mut divisor = match value {
        0..10 => 1,
        10..100 => 10,
        100..1000 => 100,
        1000..10000 => 1000,
        _ => 10000,
    };
    while divisor > 0 {
        out.push(digit(value / divisor));
        divisor /= 10;
    }
}

/// Writes `CSI count final`, or nothing when the count is zero.
pub(super) fn csi(out: &mut Vec<u8>, count: u16, last: u8) {
    if count > 0 {
        out.extend_from_slice(b"\x1b[");
        if count > 1 {
            number(out, count);
        }
        out.push(last);
    }
}

/// Moves the cursor to an absolute place, counted from zero.
pub(super) fn place(out: &mut Vec<u8>, row: u16, column: u16) {
    out.extend_from_slice(b"\x1b[");
    number(out, row.saturating_add(1));
    out.push(b';');
    number(out, column.saturating_add(1));
    out.push(b'H');
}

/// Whether blanks at the end of a row are written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Blanks {
    /// A copy of the row ends with its last letter.
    Trim,
    /// The terminal wraps at the row's end, so every column is filled.
    Keep,
}

/// What becomes of a row that is wider than the screen: it was made for another width, or the terminal counts a character's
/// columns in another way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Overlong {
    Cut,
    /// Nothing is lost, but nobody knows how many rows it takes: the terminal may be narrower than it has told.
    Wrapped,
}

/// Writes rows from the first column on, each followed by a line feed, except where the next continues after it: there
/// the terminal wraps by itself, so that it knows both for one line. The first `stale` rows stand where others were.
pub(super) fn write_rows(out: &mut Vec<u8>, pen: &mut Pen, rows: &[Row], width: u16, stale: usize, overlong: Overlong) {
    let mut wraps = false;
    for (index, row) in rows.iter().enumerate() {
        let goes_on = rows.get(index + 1).is_some_and(|next| next.continues);
        if !wraps && (goes_on || overlong == Overlong::Wrapped) {
            out.extend_from_slice(WRAP_ON);
            wraps = true;
        }
        if index < stale {
            // Before the text, not after it: tmux forgets how long a row was only when it erases all of it.
            out.extend_from_slice(b"\x1b[K");
        }
        let room = if overlong == Overlong::Wrapped { u16::MAX } else { width };
        let columns = row_text(out, pen, row, room, if goes_on { Blanks::Keep } else { Blanks::Trim });
        if goes_on && columns + 1 >= width {
            continue;
        }
        if wraps && overlong == Overlong::Cut {
            out.extend_from_slice(WRAP_OFF);
            wraps = false;
        }
        out.extend_from_slice(b"\r\n");
    }
    if wraps {
        out.extend_from_slice(WRAP_OFF);
    }
}

/// Writes one row of history, cut at `width` columns, and returns the columns that it fills. Control characters in
/// its text are left out. The style is plain afterwards.
fn row_text(out: &mut Vec<u8>, pen: &mut Pen, row: &Row, width: u16, blanks: Blanks) -> u16 {
    let width = usize::from(width);
    let mut column = 0;
    let mut pending = (0, Look::PLAIN);
    for (index, span) in row.line.spans.iter().enumerate() {
        let look = Look::of_style(row.line.style.patch(span.style));
        let mut text = span.content.as_ref();
        let mut blank_tail = 0;
        if look.hides_blanks() {
            text = text.trim_end_matches(' ');
            blank_tail = span.content.len() - text.len();
        }
        if !text.is_empty() {
            column += spaces(out, pen, pending, width - column);
            pending = (0, Look::PLAIN);
            let link = row.links.iter().find(|(span, _)| *span == index).and_then(|(_, target)| link_target(target));
            pen.set(out, look);
            if let Some(target) = &link {
                out.extend_from_slice(b"\x1b]8;;");
                out.extend_from_slice(target.as_bytes());
                out.extend_from_slice(b"\x1b\\");
            }
            column += clipped(out, text, width - column);
            if link.is_some() {
                out.extend_from_slice(b"\x1b]8;;\x1b\\");
            }
        }
        pending = if pending.0 == 0 { (blank_tail, look) } else { (pending.0 + blank_tail, pending.1) };
    }
    if blanks == Blanks::Keep {
        column += spaces(out, pen, pending, width - column);
    }
    pen.reset(out);
    u16::try_from(column).unwrap_or(u16::MAX)
}

fn spaces(out: &mut Vec<u8>, pen: &mut Pen, (count, look): (usize, Look), room: usize) -> usize {
    let count = count.min(room);
    if count > 0 {
        pen.set(out, look);
        out.resize(out.len() + count, b' ');
    }
    count
}

/// Writes text without its control characters in at most `room` columns and returns the columns filled.
pub(super) fn clipped(out: &mut Vec<u8>, text: &str, room: usize) -> usize {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        let shown = &text.as_bytes()[..text.len().min(room)];
        out.extend_from_slice(shown);
        return shown.len();
    }
    let mut column = 0;
    for grapheme in text.graphemes(true) {
        let wide = grapheme.width();
        if wide == 0 || grapheme.chars().any(char::is_control) {
            continue;
        }
        if column + wide > room {
            break;
        }
        out.extend_from_slice(grapheme.as_bytes());
        column += wide;
    }
    column
}

/// The link's target as it may stand in an escape sequence: printable ASCII of a known scheme.
fn link_target(target: &str) -> Option<&str> {
    let known = ["https://", "http://", "file://"].iter().any(|scheme| target.starts_with(scheme));
    let clean = target.len() <= LINK_BYTES && target.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    (known && clean).then_some(target)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ratatui::text::{Line, Span};

    use super::*;

    fn check(shown: &Row, width: u16, blanks: Blanks, want: (&str, u16)) {
        let mut out = Vec::new();
        let columns = row_text(&mut out, &mut Pen::new(), shown, width, blanks);
        assert_eq!((String::from_utf8(out).unwrap().as_str(), columns), want);
    }

    #[test]
    fn rows_change_style_only_where_it_changes() {
        let red = Style::new().fg(Color::Red);
        let bold = red.add_modifier(Modifier::BOLD);
        let line = Line::from(vec![Span::styled("a", red), Span::styled("b", bold), Span::styled("c", red)]);
        check(&line.into(), 80, Blanks::Trim, ("\x1b[31ma\x1b[1mb\x1b[0;31mc\x1b[m", 3));
        let back = Line::styled("x", Style::new().bg(Color::Rgb(1, 20, 255)).fg(Color::LightBlue));
        check(&back.into(), 80, Blanks::Trim, ("\x1b[94;48;2;1;20;255mx\x1b[m", 1));
    }

    #[test]
    fn rows_are_cut_and_blanks_at_their_end_trimmed() {
        check(&Line::from("abcdef").into(), 4, Blanks::Trim, ("abcd", 4));
        check(&Line::from("日本語").into(), 5, Blanks::Trim, ("日本", 4));
        check(&Line::from(vec![Span::raw("a  "), Span::raw("  ")]).into(), 80, Blanks::Trim, ("a", 1));
        check(&Line::from(vec![Span::raw("a  "), Span::raw("b ")]).into(), 80, Blanks::Trim, ("a  b", 4));
        check(&Line::from("a   ").into(), 3, Blanks::Keep, ("a  ", 3));
    }

    #[test]
    fn an_overlong_row_is_cut_or_left_to_the_terminal() {
        let check = |overlong, want: &str| {
            let mut out = Vec::new();
            let rows = [Row::from(Line::from("abcdef")), Row::from(Line::from("gh"))];
            write_rows(&mut out, &mut Pen::new(), &rows, 4, 0, overlong);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        };
        check(Overlong::Cut, "abcd\r\ngh\r\n");
        check(Overlong::Wrapped, "\x1b[?7habcdef\r\ngh\r\n\x1b[?7l");
    }

    #[test]
    fn text_cannot_bring_its_own_escapes() {
        check(&Line::from("a\x1b[2Jb\x07\u{9b}c").into(), 80, Blanks::Trim, ("a[2Jbc", 6));
    }

    #[test]
    fn links_are_written_when_clean() {
        let link = |target: &str| Row { line: Line::from("x"), links: vec![(0, Arc::from(target))], continues: false };
        let want = "\x1b]8;;https://a.b/c\x1b\\x\x1b]8;;\x1b\\";
        check(&link("https://a.b/c"), 80, Blanks::Trim, (want, 1));
        check(&link("https://a.b/\x1b\\evil"), 80, Blanks::Trim, ("x", 1));
        check(&link("javascript:x"), 80, Blanks::Trim, ("x", 1));
    }

    #[test]
    fn numbers_are_decimal() {
        for value in [0, 7, 10, 99, 100, 999, 1000, 10_000, u16::MAX] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
