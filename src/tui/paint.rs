//! Small pieces that every drawn part uses: safe text, cells, folding, and rows put into a buffer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use crate::stdx::text;

/// Cells that a text takes on one row.
pub fn width(text: &str) -> usize {
    text::width(text)
}

/// Makes untrusted text harmless. Unlike `stdx::text::clean` nothing vanishes, since a person approves what stands here:
/// control characters get a picture, direction overrides and invisible characters show their code.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\u{0}'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('?')),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => out.push_str(&format!("<U+{:04X}>", c as u32)),
            _ => out.push(c),
        }
    }
    out
}

/// Cuts a one-line text to `max` cells; what was cut is marked by `…`.
pub fn cut(text: &str, max: usize) -> String {
    text::truncate(&visible(text).replace('\n', "⏎"), max).into_owned()
}

/// Folds text to `max` cells a row, at spaces where there are some; every character stays.
pub fn fold(text: &str, max: usize) -> Vec<String> {
    let max = max.max(1);
    let mut rows = Vec::new();
    for line in visible(text).split('\n') {
        let mut row = String::new();
        let (mut used, mut gap) = (0, None);
        for grapheme in line.graphemes(true) {
            let cells = width(grapheme);
            if used + cells > max {
                let rest = match gap {
                    Some(at) if at < row.len() => row.split_off(at),
                    _ => String::new(),
                };
                rows.push(std::mem::replace(&mut row, rest));
                (used, gap) = (width(&row), None);
            }
            row.push_str(grapheme);
            used += cells;
            if grapheme == " " {
                gap = Some(row.len());
            }
        }
        rows.push(row);
    }
    rows
}

/// Folds text into styled lines.
pub fn folded(text: &str, max: usize, style: Style) -> Vec<Line<'static>> {
    fold(text, max).into_iter().map(|row| Line::from(Span::styled(row, style))).collect()
}

/// Writes lines from the top of `area`; what does not fit is left out.
pub fn lines(buf: &mut Buffer, area: Rect, lines: &[Line<'_>]) {
    for (line, y) in lines.iter().zip(area.y..area.bottom()) {
        buf.set_line(area.x, y, line, area.width);
    }
}

/// Draws a horizontal rule with an optional label in it.
pub fn rule(buf: &mut Buffer, area: Rect, label: &str, style: Style) {
    if area.height == 0 {
        return;
    }
    let bar = "─".repeat(area.width as usize);
    buf.set_stringn(area.x, area.y, bar, area.width as usize, style);
    if !label.is_empty() && area.width > 6 {
        buf.set_stringn(area.x + 2, area.y, format!(" {label} "), area.width as usize - 4, style);
    }
}

/// Splits the first `rows` rows off an area.
pub fn take(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    let top = Rect { height: rows, ..*area };
    area.y += rows;
    area.height -= rows;
    top
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_and_cuts_by_cells() {
        let check = |text: &str, max: usize, want: &[&str]| assert_eq!(fold(text, max), want, "{text:?} at {max}");
        check("", 5, &[""]);
        check("git diff --stat", 9, &["git diff ", "--stat"]);
        check("日本語", 4, &["日本", "語"]);
        check("👩‍👩‍👧👩‍👩‍👧", 3, &["👩‍👩‍👧", "👩‍👩‍👧"]);
        check("a\nb", 5, &["a", "b"]);
        check("abcdef", 4, &["abcd", "ef"]);
        check("rm\u{1b}[2K\u{202e}x", 40, &["rm␛[2K<U+202E>x"]);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("two\nlines", 20), "two⏎lines");
        assert_eq!(cut("x", 0), "");
    }
}
