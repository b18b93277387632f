//! Soft wrap: which part of the text is on which row. Costs what is visible, not what is there.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::chip::{self, Chip};

/// Splits one line (no newline in it) into rows of at most `width` cells; offsets are relative to the line. A row that
/// is exactly full at the line's end is followed by an empty one, so that the cursor always has a cell.
pub fn wrap(line: &str, width: usize, chips: &[Chip]) -> Vec<Range<usize>> {
    let width = width.max(1);
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0);
    // End of the last space of the row, and the cells up to there.
    let mut gap: Option<(usize, usize)> = None;
    let mut step = |at: usize, next: usize, cells: usize, space: bool| {
        while used + cells > width && at > start {
            let (end, kept) = gap.take().filter(|(end, _)| *end > start).unwrap_or((at, used));
            rows.push(start..end);
            start = end;
            used -= kept;
        }
        used += cells;
        if space {
            gap = Some((next, used));
        }
    };
    if line.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        for (at, byte) in line.bytes().enumerate() {
            step(at, at + 1, 1, byte == b' ');
        }
    } else {
        for (at, grapheme) in line.grapheme_indices(true) {
            step(at, at + grapheme.len(), chip::cells(grapheme, chips), grapheme == " ");
        }
    }
    rows.push(start..line.len());
    if used >= width {
        rows.push(line.len()..line.len());
    }
    rows
}

/// The line (without its newline) around a byte offset.
pub fn line_at(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    start..end
}

/// The rows of the line around `at`, as offsets into the text, and which of them holds `at`.
pub fn rows_at(text: &str, at: usize, width: usize, chips: &[Chip]) -> (Vec<Range<usize>>, usize) {
    let line = line_at(text, at);
    let rows: Vec<Range<usize>> = wrap(&text[line.clone()], width, chips)
        .into_iter()
        .map(|row| line.start + row.start..line.start + row.end)
        .collect();
    let row = rows.iter().rposition(|row| row.start <= at).unwrap_or(0);
    (rows, row)
}

/// Rows from the one that starts at or before `from`, downwards, at most `most`.
pub fn down(text: &str, from: usize, width: usize, chips: &[Chip], most: usize) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut rows, mut skip) = rows_at(text, from, width, chips);
    loop {
        let end = rows.last().map_or(text.len(), |row| row.end);
        out.extend(rows.into_iter().skip(skip).take(most - out.len()));
        if out.len() >= most || end >= text.len() {
            return out;
        }
        (rows, skip) = (rows_at(text, end + 1, width, chips).0, 0);
    }
}

/// Starts of the rows from the one that holds `from`, upwards, at most `most`.
pub fn up(text: &str, from: usize, width: usize, chips: &[Chip], most: usize) -> Vec<usize> {
    let mut out = Vec::new();
    let mut at = from;
    loop {
        let (rows, row) = rows_at(text, at, width, chips);
        out.extend(rows[..=row].iter().rev().map(|row| row.start).take(most - out.len()));
        let start = rows.first().map_or(0, |row| row.start);
        if out.len() >= most || start == 0 {
            return out;
        }
        at = start - 1;
    }
}

/// Cells from the start of a row to `at`.
pub fn column(text: &str, row: &Range<usize>, at: usize, chips: &[Chip]) -> usize {
    text[row.start..at.clamp(row.start, row.end)].graphemes(true).map(|grapheme| chip::cells(grapheme, chips)).sum()
}

/// The offset in a row that is nearest to a column without passing it. The end of a wrapped row belongs to the next one,
/// so there it stops one grapheme before.
pub fn at_column(text: &str, row: &Range<usize>, column: usize, last: bool, chips: &[Chip]) -> usize {
    let mut used = 0;
    let mut before = row.start;
    for (at, grapheme) in text[row.clone()].grapheme_indices(true) {
        let cells = chip::cells(grapheme, chips);
        if used + cells > column {
            return row.start + at;
        }
        used += cells;
        before = row.start + at;
    }
    if last { row.end } else { before }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, width: usize, want: &[&str]) {
        let rows: Vec<&str> = wrap(line, width, &[]).into_iter().map(|row| &line[row]).collect();
        assert_eq!(rows, want, "{line:?} at {width}");
    }

    #[test]
    fn rows_break_at_spaces_then_anywhere() {
        check("", 5, &[""]);
        check("hello world", 8, &["hello ", "world"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("abc", 3, &["abc", ""]);
        check("日本語で", 5, &["日本", "語で"]);
        check("e\u{301}e\u{301}e\u{301}", 2, &["e\u{301}e\u{301}", "e\u{301}"]);
        check("🇩🇪🇫🇷", 3, &["🇩🇪", "🇫🇷"]);
        // Wider than the whole row: it is alone rather than never.
        check("日", 1, &["日", ""]);
    }

    #[test]
    fn walks_both_ways() {
        let text = "one two\nthree\n\nfour";
        let rows: Vec<&str> = down(text, 0, 4, &[], 4).into_iter().map(|row| &text[row]).collect();
        assert_eq!(rows, ["one ", "two", "thre", "e"]);
        assert_eq!(up(text, text.len(), 10, &[], 9), [15, 14, 8, 0]);
        assert_eq!(up(text, text.len(), 10, &[], 2), [15, 14]);
    }
}
