//! What the mouse marks in rows, to be copied.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use unicode_segmentation::UnicodeSegmentation;

use crate::tui::paint;
use crate::tui::render::Row;

/// A row of the text, and a column of it.
type Cell = (usize, u16);

/// From one cell to another, both among it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marked {
    from: Cell,
    to: Cell,
}

impl Marked {
    pub(super) fn at(cell: Cell) -> Marked {
        Marked { from: cell, to: cell }
    }

    pub(super) fn to(&mut self, cell: Cell) {
        self.to = cell;
    }

    /// The rows have moved down by so many.
    pub(super) fn move_by(&mut self, rows: isize) {
        self.from.0 = self.from.0.saturating_add_signed(rows);
        self.to.0 = self.to.0.saturating_add_signed(rows);
    }

    /// The columns of a row that are marked; none in other rows.
    fn columns(&self, row: usize) -> Option<(u16, u16)> {
        let (first, last) = (self.from.min(self.to), self.from.max(self.to));
        let begin = if row == first.0 { first.1 } else { 0 };
        let end = if row == last.0 { last.1 } else { u16::MAX };
        (first.0..=last.0).contains(&row).then_some((begin, end))
    }

    /// Its text, without the blanks that rows end in, and without a break where the width has cut a line.
    pub(super) fn text(&self, rows: &[Row]) -> String {
        let mut text = String::new();
        for (at, row) in rows.iter().enumerate() {
            let Some((begin, end)) = self.columns(at) else { continue };
            if at > self.from.0.min(self.to.0) && !row.continues {
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
            }
            text.push_str(&within(row, begin, end));
        }
        text.truncate(text.trim_end().len());
        text
    }

    pub(super) fn draw(&self, top: usize, body: Rect, buf: &mut Buffer) {
        for (at, y) in (top..).zip(body.y..body.bottom()) {
            let Some((begin, end)) = self.columns(at) else { continue };
            let begin = begin.min(body.width);
            let width = end.saturating_add(1).min(body.width).saturating_sub(begin);
            buf.set_style(Rect { x: body.x + begin, y, width, height: 1 }, Modifier::REVERSED);
        }
    }
}

/// What a row has in these columns; a wide character belongs to its first one.
fn within(row: &Row, begin: u16, end: u16) -> String {
    let mut column = 0;
    let mut text = String::new();
    for cluster in row.line.spans.iter().flat_map(|span| span.content.graphemes(true)) {
        if (usize::from(begin)..=usize::from(end)).contains(&column) {
            text.push_str(cluster);
        }
        column += paint::width(cluster);
    }
    text
}

#[cfg(test)]
mod tests {
    use ratatui::text::Line;

    use super::*;

    #[test]
    fn what_is_marked_is_what_was_written() {
        let row = |text: &str, continues| Row { continues, ..Row::from(Line::from(text.to_owned())) };
        let rows = [row("one two", false), row("日本 a  ", false), row("cut in ", false), row("half", true)];
        let check = |from: Cell, to: Cell, want: &str| {
            let mut marked = Marked::at(from);
            marked.to(to);
            assert_eq!(marked.text(&rows), want, "{from:?} {to:?}");
        };
        check((0, 0), (0, 2), "one");
        check((0, 2), (0, 0), "one");
        check((0, 4), (1, 0), "two\n日");
        check((1, 2), (1, 90), "本 a");
        check((1, 5), (2, 2), "a\ncut");
        check((2, 0), (3, 90), "cut in half");
        check((0, 7), (0, 7), "");
        check((3, 2), (9, 0), "lf");
    }
}
