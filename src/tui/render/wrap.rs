//! From styled text to rows: breaking between words, and the plain cut of code.

use std::sync::Arc;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Row;
use crate::stdx::text;

/// A run of text in one style. A newline is a hard break.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    pub text: String,
    pub style: Style,
    /// Only `http`, `https` and `file`.
    pub link: Option<Arc<str>>,
}

impl Piece {
    pub fn new(text: impl Into<String>, style: Style) -> Piece {
        Piece { text: text.into(), style, link: None }
    }
}

/// What is before the first and every other row of a wrapped text. Both are equally wide.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prefix {
    pub first: Vec<Span<'static>>,
    pub rest: Vec<Span<'static>>,
}

impl Prefix {
    /// A mark before the first row, and as many spaces before the others.
    pub fn hanging(mark: impl Into<String>, style: Style) -> Prefix {
        let mark = mark.into();
        let rest = vec![Span::raw(" ".repeat(text::width(&mark)))];
        Prefix { first: vec![Span::styled(mark, style)], rest }
    }

    /// Spaces before every row.
    pub fn indent(columns: usize) -> Prefix {
        Prefix::hanging(" ".repeat(columns), Style::new())
    }

    /// Columns that it takes of each row.
    pub fn width(&self) -> usize {
        spans_width(&self.first)
    }
}

/// Columns of a row of spans.
pub fn spans_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| text::width(&span.content)).sum()
}

/// Wraps pieces between words to rows of at most `width` columns, prefix included.
pub fn wrap(pieces: &[Piece], width: usize, prefix: &Prefix) -> Vec<Row> {
    let columns = width.saturating_sub(prefix.width()).max(1);
    let whole: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let mut starts = Vec::with_capacity(pieces.len());
    let mut at = 0;
    for piece in pieces {
        starts.push(at);
        at += piece.text.len();
    }
    let mut rows = Vec::new();
    let mut piece = 0;
    let mut line_start = 0;
    for line in whole.split('\n') {
        for range in text::breaks(line, columns) {
            let (start, end) = (line_start + range.start, line_start + range.end);
            let lead = if rows.is_empty() { &prefix.first } else { &prefix.rest };
            let blank = range.is_empty() && lead.iter().all(|span| span.content.trim().is_empty());
            let lead = if blank { Vec::new() } else { lead.clone() };
            let mut row = Row { line: Line::from(lead), links: Vec::new(), continues: false };
            while piece + 1 < pieces.len() && starts[piece + 1] <= start {
                piece += 1;
            }
            let mut index = piece;
            let mut from = start;
            while from < end && index < pieces.len() {
                let to = end.min(starts[index] + pieces[index].text.len());
                if to > from {
                    if let Some(link) = &pieces[index].link {
                        row.links.push((row.line.spans.len(), link.clone()));
                    }
                    row.line.spans.push(Span::styled(whole[from..to].to_string(), pieces[index].style));
                    from = to;
                }
                index += 1;
            }
            rows.push(row);
        }
        line_start += line.len() + 1;
    }
    rows
}

/// Wraps text in one style.
pub fn plain(text: &str, style: Style, width: usize, prefix: &Prefix) -> Vec<Row> {
    wrap(&[Piece::new(text, style)], width, prefix)
}

/// Cuts a line to at most `columns`; a cut line ends in `…`.
pub fn clip(spans: Vec<Span<'static>>, columns: usize) -> Vec<Span<'static>> {
    if spans_width(&spans) <= columns {
        return spans;
    }
    let mut left = columns;
    let mut kept = Vec::new();
    for span in spans {
        let wide = text::width(&span.content);
        if wide < left {
            left -= wide;
            kept.push(span);
            continue;
        }
        // The mark of the cut takes the last column, also where this span would just fill it.
        let cut = text::truncate(&format!("{} …", span.content), left).into_owned();
        kept.push(Span::styled(cut, span.style));
        break;
    }
    kept
}

/// Cuts one line of code into full rows: rows after the first continue where the one before ended, so that the line is
/// copied without a break. The prefix is before the first row only.
pub fn cut(spans: Vec<Span<'static>>, width: usize, prefix: &[Span<'static>]) -> Vec<Row> {
    let width = width.max(1);
    let lead = spans_width(prefix);
    let mut line: Vec<Span<'static>> = prefix.to_vec();
    if lead + spans_width(&spans) <= width {
        line.extend(spans);
        return vec![Row::from(Line::from(line))];
    }
    let mut rows = Vec::new();
    let mut used = lead;
    for span in spans {
        let mut from = 0;
        for (at, _, wide) in text::clusters(&span.content) {
            if used + wide > width && used > 0 {
                if at > from {
                    line.push(Span::styled(span.content[from..at].to_string(), span.style));
                }
                let full = Line::from(std::mem::take(&mut line));
                rows.push(Row { line: full, links: Vec::new(), continues: !rows.is_empty() });
                from = at;
                used = 0;
            }
            used += wide;
        }
        if from < span.content.len() {
            line.push(Span::styled(span.content[from..].to_string(), span.style));
        }
    }
    rows.push(Row { line: Line::from(line), links: Vec::new(), continues: !rows.is_empty() });
    rows
}

/// The text of rows, one line each; what tests compare.
#[cfg(test)]
pub(crate) fn shown(rows: &[Row]) -> String {
    let lines: Vec<String> =
        rows.iter().map(|row| row.line.spans.iter().map(|span| span.content.as_ref()).collect()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_style_and_links_across_rows() {
        let bold = Style::new().bold();
        let mut link = Piece::new("the long link", Style::new().underlined());
        link.link = Some("https://a.b".into());
        let rows = wrap(&[Piece::new("see ", bold), link], 9, &Prefix::hanging("• ", bold));
        assert_eq!(shown(&rows), "• see the\n  long\n  link");
        assert_eq!(rows[0].links, [(2, "https://a.b".into())]);
        assert_eq!(rows[1].links, [(1, "https://a.b".into())]);
        assert_eq!(rows[0].line.spans[1], Span::styled("see ", bold));
    }

    #[test]
    fn code_is_cut_where_the_row_is_full() {
        let check = |code: &str, prefix: &str, want: &str, continues: &[bool]| {
            let rows = cut(vec![Span::raw(code.to_string())], 6, &[Span::raw(prefix.to_string())]);
            assert_eq!(shown(&rows), want);
            assert_eq!(rows.iter().map(|row| row.continues).collect::<Vec<_>>(), continues);
        };
        check("abcdef", "", "abcdef", &[false]);
        check("abcdefgh", "", "abcdef\ngh", &[false, true]);
        check("abcdefgh", "  ", "  abcd\nefgh", &[false, true]);
        check("abc中中中", "", "abc中\n中中", &[false, true]);
    }
}
