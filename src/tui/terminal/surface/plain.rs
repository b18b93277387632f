//! Terminals that know no sequences: rows as text, the row that is typed in drawn over itself, a question printed again
//! whenever it looks different.

use ratatui::buffer::Buffer;
use ratatui::layout::Position;

use crate::stdx::text;
use crate::tui::render::Row;
use crate::tui::terminal::ansi;

/// What is on the screen besides rows that are printed for good.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// The row that is typed in; the cursor is behind it.
    typed: String,
    /// The question that was printed last.
    asked: Vec<String>,
}

impl Plain {
    /// What is to be written so that the rows stand there, then the live region as far as it counts: the cursor's row, or
    /// all of it where there is no cursor.
    pub(super) fn frame(&mut self, rows: &[Row], live: &Buffer, cursor: Option<Position>) -> Vec<u8> {
        let mut out = Vec::new();
        let lines: Vec<String> = (0..live.area.height).map(|y| line(live, y)).collect();
        if !rows.is_empty() {
            self.erase(&mut out);
        }
        for row in rows {
            let text: String = row.line.spans.iter().map(|span| span.content.as_ref()).collect();
            print(&mut out, &text);
        }
        let Some(cursor) = cursor else {
            let asked: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            if asked != self.asked {
                self.erase(&mut out);
                asked.iter().for_each(|line| print(&mut out, line));
                self.asked = asked;
            }
            return out;
        };
        self.asked.clear();
        let typed = lines.get(usize::from(cursor.y)).cloned().unwrap_or_default();
        if typed != self.typed {
            self.erase(&mut out);
            ansi::clipped(&mut out, &typed, usize::MAX);
            self.typed = typed;
        }
        out
    }

    /// Ends the row that is typed in, so that what another program writes is below.
    pub(super) fn release(&mut self) -> &'static [u8] {
        if std::mem::take(self).typed.is_empty() { b"" } else { b"\r\n" }
    }

    fn erase(&mut self, out: &mut Vec<u8>) {
        let width = text::width(&std::mem::take(&mut self.typed));
        if width > 0 {
            out.push(b'\r');
            out.extend(std::iter::repeat_n(b' ', width));
            out.push(b'\r');
        }
    }
}

/// One row of the region. The last column stays free: a full row would wrap.
fn line(live: &Buffer, y: u16) -> String {
    let mut line = String::new();
    let mut x = 0;
    while x + 1 < live.area.width {
        let symbol = live[(live.area.x + x, live.area.y + y)].symbol();
        line.push_str(symbol);
        x += (text::width(symbol) as u16).max(1);
    }
    line.truncate(line.trim_end().len());
    line
}

fn print(out: &mut Vec<u8>, text: &str) {
    ansi::clipped(out, text.trim_end(), usize::MAX);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_the_row_that_is_typed_in_and_questions() {
        let mut plain = Plain::default();
        let mut check = |rows: &[&str], live: &[&str], cursor: Option<u16>, want: &str| {
            let rows: Vec<Row> = rows.iter().map(|row| Row::from(ratatui::text::Line::from(row.to_string()))).collect();
            let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 12, live.len() as u16));
            for (y, line) in live.iter().enumerate() {
                buffer.set_string(0, y as u16, line, ratatui::style::Style::default());
            }
            let out = plain.frame(&rows, &buffer, cursor.map(|y| Position::new(2, y)));
            assert_eq!(String::from_utf8(out).unwrap(), want);
        };
        check(&["one"], &["----", "> a", "----"], Some(1), "one\r\n> a");
        check(&[], &["----", "> a", "----"], Some(1), "");
        check(&[], &["----", "> 日", "----"], Some(1), "\r   \r> 日");
        check(&["two"], &["----", "> 日", "----"], Some(1), "\r    \rtwo\r\n> 日");
        check(&[], &["Run ls?", "", "> 1. Yes", "  2. No"], None, "\r    \rRun ls?\r\n> 1. Yes\r\n  2. No\r\n");
        check(&[], &["Run ls?", "", "> 1. Yes", "  2. No"], None, "");
        check(&[], &["Run ls?", "", "  1. Yes", "> 2. No"], None, "Run ls?\r\n  1. Yes\r\n> 2. No\r\n");
        check(&["ran"], &["> "], Some(0), "ran\r\n>");
        assert_eq!(plain.release(), b"\r\n");
        assert_eq!(plain.release(), b"");
    }
}
