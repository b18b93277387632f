//! The rows that are drawn again and again: how two frames differ, and where a reflow has moved the rows of the last.

use ratatui::buffer::{Buffer, Cell};
use unicode_width::UnicodeWidthStr;

use super::ansi::{Look, Pen, csi, number};

/// Where the cursor is, counted from the region's first cell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct At {
    pub(super) row: u16,
    pub(super) column: u16,
}

impl At {
    /// Moves the cursor there, relative to the row where it is: the region's place on the screen need not be known.
    pub(super) fn go(&mut self, out: &mut Vec<u8>, row: u16, column: u16) {
        csi(out, self.row.saturating_sub(row), b'A');
        csi(out, row.saturating_sub(self.row), b'B');
        if column != self.column {
            if column == 0 {
                out.push(b'\r');
            } else {
                out.extend_from_slice(b"\x1b[");
                number(out, column + 1);
                out.push(b'G');
            }
        }
        *self = At { row, column };
    }
}

/// What the rows on the screen hold before a frame is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Before {
    /// The last frame.
    Shown,
    /// Something else, to be overwritten.
    Anything,
    /// Nothing.
    Blank,
}

/// Writes what changes `old` into `new`, row by row. Both have the same width; rows that `old` lacks are blank.
pub(super) fn draw(out: &mut Vec<u8>, pen: &mut Pen, at: &mut At, old: &Buffer, new: &Buffer, before: Before) {
    let width = usize::from(new.area.width);
    for row in 0..new.area.height {
        let start = usize::from(row) * width;
        let cells = &new.content[start..start + width];
        let blank: &[Cell] = &[];
        let shown = match before {
            Before::Shown => old.content.get(start..start + width).unwrap_or(blank),
            Before::Anything | Before::Blank => blank,
        };
        draw_row(out, pen, at, row, shown, cells, before == Before::Anything);
    }
    pen.reset(out);
}

fn draw_row(out: &mut Vec<u8>, pen: &mut Pen, at: &mut At, row: u16, shown: &[Cell], cells: &[Cell], dirty: bool) {
    let end = extent(cells);
    let mut shown = shown;
    if dirty || extent(shown) > end {
        // All of the row, not its end alone: tmux forgets how long a row was only when it erases all of it, and would
        // wrap the blanks at the next resize.
        at.go(out, row, 0);
        pen.reset(out);
        out.extend_from_slice(b"\x1b[K");
        shown = &[];
    }
    let mut column = 0;
    // Cells below this one have been overwritten by a wide character that went or came.
    let mut torn = 0;
    while column < end {
        let cell = &cells[column];
        let wide = columns(cell);
        let old = shown.get(column).unwrap_or(&Cell::EMPTY);
        let same = if shown.is_empty() { is_blank(cell) } else { old == cell };
        if !same || column < torn {
            at.go(out, row, to_u16(column));
            pen.set(out, Look::of_cell(cell));
            put(out, cell, wide);
            at.column += to_u16(wide);
            // In or past the last column, and after a sequence that terminals do not agree about (joined emoji), the
            // cursor may be elsewhere; no later move relies on it.
            if at.column >= to_u16(cells.len()) || cell.symbol().chars().nth(1).is_some() {
                at.column = u16::MAX;
            }
            torn = torn.max(column + wide.max(columns(old)));
        }
        column += wide;
    }
}

fn put(out: &mut Vec<u8>, cell: &Cell, wide: usize) {
    let symbol = cell.symbol();
    if symbol.chars().any(char::is_control) || symbol.width() == 0 {
        out.resize(out.len() + wide, b' ');
    } else {
        out.extend_from_slice(symbol.as_bytes());
    }
}

fn columns(cell: &Cell) -> usize {
    match cell.symbol() {
        symbol if symbol.len() == 1 => 1,
        symbol => symbol.width().max(1),
    }
}

fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && Look::of_cell(cell).hides_blanks()
}

/// Columns up to the last one that shows something.
fn extent(cells: &[Cell]) -> usize {
    let last = cells.iter().rposition(|cell| !is_blank(cell));
    last.map_or(0, |last| (last + columns(&cells[last])).min(cells.len()))
}

/// Rows between the first row of `shown` and the cursor after the terminal has wrapped them at `width` columns.
pub(super) fn rows_above(shown: &Buffer, cursor: At, width: u16) -> u16 {
    let old = usize::from(shown.area.width).max(1);
    let rows = shown.content.chunks(old).take(usize::from(cursor.row) + 1);
    let mut above = 0;
    for (index, cells) in rows.enumerate() {
        let end = extent(cells);
        above += if index == usize::from(cursor.row) {
            wraps(cells, end.min(usize::from(cursor.column) + 1), width)
        } else {
            wraps(cells, end, width) + 1
        };
    }
    to_u16(above)
}

/// How often a row with these cells is broken at `width` columns; a wide character is never cut in two.
fn wraps(cells: &[Cell], end: usize, width: u16) -> usize {
    let width = usize::from(width).max(1);
    let (mut breaks, mut used, mut column) = (0, 0, 0);
    while column < end {
        let wide = columns(&cells[column]);
        if used + wide > width {
            breaks += 1;
            used = 0;
        }
        used += wide;
        column += wide;
    }
    breaks
}

fn to_u16(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Style};

    use super::*;

    fn check(old: &[&str], new: &[&str], want: &str) {
        let (old, new) = (Buffer::with_lines(old.to_vec()), Buffer::with_lines(new.to_vec()));
        let mut out = Vec::new();
        draw(&mut out, &mut Pen::new(), &mut At::default(), &old, &new, Before::Shown);
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn only_changed_cells_are_written() {
        check(&["abc", "def"], &["abc", "def"], "");
        check(&["abc", "def"], &["abc", "dxf"], "\x1b[B\x1b[2Gx");
        check(&["abc "], &["a   "], "\x1b[Ka");
        check(&["abc"], &["   "], "\x1b[K");
        check(&["日本"], &["日x "], "\x1b[K日x");
        check(&["日本x"], &["ab本x"], "ab");
        check(&["ab本x"], &["日本x"], "日");
        check(&["日bc"], &["a bc"], "a ");
    }

    #[test]
    fn colored_blanks_count_as_text() {
        let old = Buffer::empty(Rect::new(0, 0, 4, 1));
        let mut new = old.clone();
        new.set_style(Rect::new(0, 0, 2, 1), Style::new().bg(Color::Blue));
        let mut out = Vec::new();
        draw(&mut out, &mut Pen::new(), &mut At::default(), &old, &new, Before::Shown);
        assert_eq!(String::from_utf8(out).unwrap(), "\x1b[44m  \x1b[m");
    }

    #[test]
    fn reflowed_rows_are_counted() {
        let shown = Buffer::with_lines(["──────────", "> hello   ", "──────────"]);
        let check = |row, column, width, want| {
            assert_eq!(rows_above(&shown, At { row, column }, width), want, "{row} {column} {width}");
        };
        check(1, 2, 10, 1);
        check(1, 2, 9, 2);
        check(1, 2, 5, 2);
        check(1, 6, 5, 3);
        check(2, 9, 4, 3 + 2 + 2);
        check(2, 0, 20, 2);
    }

    #[test]
    fn wide_characters_are_not_cut_by_a_reflow() {
        let shown = Buffer::with_lines(["日本日本", "x       "]);
        assert_eq!(rows_above(&shown, At { row: 1, column: 0 }, 3), 4);
        assert_eq!(rows_above(&shown, At { row: 1, column: 0 }, 4), 2);
    }
}
