//! Small pieces that every drawn part uses: safe text, cells, folding, and rows put into a buffer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use crate::stdx::text;

/// Longest run of blanks, and of blank lines, that is shown as it is where something is approved.
const BLANKS: usize = 16;
const BLANK_LINES: usize = 2;

/// Cells that a text takes on one row.
pub fn width(text: &str) -> usize {
    text::width(text)
}

/// Makes untrusted text harmless. Unlike `stdx::text::clean` nothing vanishes, since a person approves what is here:
/// control characters get a picture, direction overrides and invisible characters show their code.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for cluster in text.graphemes(true) {
        let wide = cluster.chars().next().is_some_and(|base| !base.is_ascii() && width(cluster) > 0);
        for c in cluster.chars() {
            match c {
                '\n' => out.push('\n'),
                '\t' => out.push_str("    "),
                '\u{0}'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('?')),
                '\u{7f}' => out.push('\u{2421}'),
                // They belong to an emoji, or to a letter of a script that joins.
                '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' if wide => out.push(c),
                '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{2800}' => coded(&mut out, c),
                _ if ignorable(c) => coded(&mut out, c),
                _ => out.push(c),
            }
        }
    }
    out
}

/// Unicode's Default_Ignorable_Code_Point: what a terminal draws nothing for.
fn ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn coded(out: &mut String, c: char) {
    out.push_str(&format!("<U+{:04X}>", c as u32));
}

/// Text that a person approves, without room to hide in: a run of blanks, or of blank lines, is folded to how many they
/// are, and a blank that is not a space shows its code.
pub fn dense(text: &str) -> String {
    let mut rows = Vec::new();
    let mut empty = 0;
    for line in text.split('\n') {
        if line.trim().is_empty() {
            empty += 1;
            continue;
        }
        rows.extend(empty_rows(std::mem::take(&mut empty)));
        rows.push(dense_line(line));
    }
    rows.extend(empty_rows(empty));
    rows.join("\n")
}

fn empty_rows(count: usize) -> Vec<String> {
    if count > BLANK_LINES { vec![format!("⟨{count} blank lines⟩")] } else { vec![String::new(); count] }
}

fn dense_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        let words = rest.find(char::is_whitespace).unwrap_or(rest.len());
        out.push_str(&rest[..words]);
        rest = &rest[words..];
        let run = &rest[..rest.len() - rest.trim_start().len()];
        rest = &rest[run.len()..];
        match run.chars().count() {
            count if count > BLANKS => out.push_str(&format!("⟨{count} blanks⟩")),
            _ => run.chars().for_each(|c| if c.is_ascii() { out.push(c) } else { coded(&mut out, c) }),
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
        check("a\u{2800}\u{3164}\u{200d}b⚠\u{fe0f}", 60, &["a<U+2800><U+3164><U+200D>b⚠\u{fe0f}"]);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("two\nlines", 20), "two⏎lines");
        assert_eq!(cut("x", 0), "");
    }

    #[test]
    fn nothing_hides_behind_blanks() {
        let check = |text: &str, want: &str| assert_eq!(dense(text), want, "{text:?}");
        let wide = " ".repeat(300);
        check("ls -la\n  here", "ls -la\n  here");
        check("a\n\n\nb", "a\n\n\nb");
        check("a\n\n\n\nb", "a\n⟨3 blank lines⟩\nb");
        check(&format!("ls{wide}; rm x"), "ls⟨300 blanks⟩; rm x");
        check(&format!("ls{wide}\n; rm x"), "ls⟨300 blanks⟩\n; rm x");
        check(&format!("ls\n{wide}rm x"), "ls\n⟨300 blanks⟩rm x");
        check(&format!("ls\n{wide}\n{wide}\n \n{wide}rm"), "ls\n⟨3 blank lines⟩\n⟨300 blanks⟩rm");
        check(&format!("{}x{}", "\n".repeat(99), "\n".repeat(9)), "⟨99 blank lines⟩\nx\n⟨9 blank lines⟩");
        check("a\u{a0}b\u{3000}c", "a<U+00A0>b<U+3000>c");
        check(&format!("a{}b", "\t".repeat(17)), "a⟨17 blanks⟩b");
        check("", "");
    }
}
