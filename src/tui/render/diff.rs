//! A file's change as rows: line numbers, signs, and the words that differ.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use similar::{ChangeTag, TextDiff};

use super::Row;
use super::wrap::{self, Piece, Prefix};
use crate::message::FileDiff;
use crate::stdx::text;
use crate::tui::theme::Theme;

/// Longest line, in bytes, whose changed words are looked for.
const MAX_WORDS: usize = 2_000;
/// Most bytes of one line that are shown.
const MAX_LINE: usize = 4_000;

/// One line of a unified diff.
#[derive(Debug, Clone, Copy, PartialEq)]
enum DiffLine<'a> {
    Context {
        number: u64,
        text: &'a str,
    },
    Added {
        number: u64,
        text: &'a str,
    },
    Removed {
        number: u64,
        text: &'a str,
    },
    /// Lines were left out here.
    Gap,
    /// What the tool says of the diff itself, such as that it was cut.
    Remark(&'a str),
}

/// The rows of a diff. With `max`, at most that many lines of it, and one that counts the rest.
pub fn rows(diff: &FileDiff, width: usize, theme: &Theme, max: Option<usize>) -> Vec<Row> {
    let lines = parse(&diff.unified);
    let shown = match max {
        Some(max) if lines.len() > max => max,
        _ => lines.len(),
    };
    let last = lines.iter().map(|line| line.number()).max().unwrap_or(0);
    let digits = last.to_string().len();
    let mut rows = Vec::new();
    let mut at = 0;
    while at < shown {
        let removed = lines[at..].iter().take_while(|line| matches!(line, DiffLine::Removed { .. })).count();
        let added = lines[at + removed..].iter().take_while(|line| matches!(line, DiffLine::Added { .. })).count();
        if removed == 0 && added == 0 {
            rows.extend(draw(lines[at], &[], digits, width, theme));
            at += 1;
            continue;
        }
        let pairs: Vec<_> = (0..removed.min(added))
            .map(|pair| words(lines[at + pair].text(), lines[at + removed + pair].text()))
            .collect();
        for index in 0..removed + added {
            if at + index >= shown {
                break;
            }
            let pair = pairs.get(if index < removed { index } else { index - removed });
            let changed = match pair {
                Some(Some((old, _))) if index < removed => old.as_slice(),
                Some(Some((_, new))) => new.as_slice(),
                _ => &[],
            };
            rows.extend(draw(lines[at + index], changed, digits, width, theme));
        }
        at += removed + added;
    }
    if shown < lines.len() {
        let more = format!("… +{} lines", lines.len() - shown);
        rows.push(Row::from(Line::styled(text::truncate(&more, width).into_owned(), theme.dim)));
    }
    rows
}

/// `+3 −1`, for titles.
pub fn summary(diff: &FileDiff) -> String {
    match (diff.created, diff.added, diff.removed) {
        (true, 1, _) => "new, 1 line".to_string(),
        (true, added, _) => format!("new, {added} lines"),
        (false, added, removed) => format!("+{added} −{removed}"),
    }
}

impl<'a> DiffLine<'a> {
    fn number(self) -> u64 {
        match self {
            DiffLine::Context { number, .. } | DiffLine::Added { number, .. } | DiffLine::Removed { number, .. } => {
                number
            }
            DiffLine::Gap | DiffLine::Remark(_) => 0,
        }
    }

    fn text(self) -> &'a str {
        match self {
            DiffLine::Context { text, .. } | DiffLine::Added { text, .. } | DiffLine::Removed { text, .. } => text,
            DiffLine::Gap => "",
            DiffLine::Remark(text) => text,
        }
    }
}

fn parse(unified: &str) -> Vec<DiffLine<'_>> {
    let mut lines = Vec::new();
    let (mut old, mut new) = (1, 1);
    for line in unified.lines() {
        if let Some((from, to)) = hunk(line) {
            if !lines.is_empty() {
                lines.push(DiffLine::Gap);
            }
            (old, new) = (from, to);
            continue;
        }
        let mut chars = line.chars();
        lines.push(match chars.next() {
            Some('+') => DiffLine::Added { number: new, text: chars.as_str() },
            Some('-') => DiffLine::Removed { number: old, text: chars.as_str() },
            Some(' ') => DiffLine::Context { number: new, text: chars.as_str() },
            None => DiffLine::Context { number: new, text: "" },
            Some('\\') => continue,
            Some(_) => DiffLine::Remark(line),
        });
        match lines.last() {
            Some(DiffLine::Added { .. }) => new += 1,
            Some(DiffLine::Removed { .. }) => old += 1,
            Some(DiffLine::Context { .. }) => (old, new) = (old + 1, new + 1),
            _ => {}
        }
    }
    lines
}

/// First line numbers of `@@ -old,n +new,m @@`.
fn hunk(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let first = |word: &str| word.split(',').next()?.parse::<u64>().ok();
    let old = first(words.next()?)?;
    let new = first(words.next()?.strip_prefix('+')?)?;
    Some((old.min(u64::MAX / 2), new.min(u64::MAX / 2)))
}

/// Runs of a line, each changed or not.
type Runs = Vec<(bool, String)>;

/// The words that differ in two versions of a line; none when little is the same, so that emphasis says nothing.
fn words(old: &str, new: &str) -> Option<(Runs, Runs)> {
    if old.len() > MAX_WORDS || new.len() > MAX_WORDS {
        return None;
    }
    let diff = TextDiff::from_unicode_words(old, new);
    let (mut before, mut after) = (Runs::new(), Runs::new());
    let mut same = 0;
    for change in diff.iter_all_changes() {
        let text = change.value();
        match change.tag() {
            ChangeTag::Equal => {
                same += text.trim().len();
                add(&mut before, false, text);
                add(&mut after, false, text);
            }
            ChangeTag::Delete => add(&mut before, true, text),
            ChangeTag::Insert => add(&mut after, true, text),
        }
    }
    let longest = old.trim().len().max(new.trim().len());
    (same * 5 >= longest * 2).then_some((before, after))
}

fn add(runs: &mut Runs, changed: bool, text: &str) {
    match runs.last_mut() {
        Some((same, last)) if *same == changed => last.push_str(text),
        _ => runs.push((changed, text.to_string())),
    }
}

fn draw(line: DiffLine<'_>, runs: &[(bool, String)], digits: usize, width: usize, theme: &Theme) -> Vec<Row> {
    let (sign, style, word) = match line {
        DiffLine::Added { .. } => ("+", theme.added, theme.added_word),
        DiffLine::Removed { .. } => ("-", theme.removed, theme.removed_word),
        DiffLine::Context { .. } => (" ", theme.text, theme.text),
        DiffLine::Gap => return vec![Row::from(Line::styled(format!("{:>digits$}", "⋮"), theme.dim))],
        DiffLine::Remark(remark) => {
            let remark = text::clean_line(remark);
            return wrap::plain(&remark, theme.dim, width, &Prefix::default());
        }
    };
    let cut = |text: &str| text::clean(&text[..text.floor_char_boundary(MAX_LINE)]).replace('\n', " ");
    let pieces: Vec<Piece> = match runs {
        [] => vec![Piece::new(cut(line.text()), style)],
        runs => runs.iter().map(|(changed, text)| Piece::new(cut(text), if *changed { word } else { style })).collect(),
    };
    let number = Span::styled(format!("{:>digits$} ", line.number()), theme.dim);
    let prefix = Prefix {
        first: vec![number, Span::styled(format!("{sign} "), style)],
        rest: vec![Span::styled(" ".repeat(digits + 3), Style::new())],
    };
    // A terminal narrower than the numbers has no room for them.
    let prefix = if prefix.width() + 4 > width { Prefix::hanging(sign, style) } else { prefix };
    wrap::wrap(&pieces, width, &prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::render::wrap::{shown, spans_width};

    fn diff(unified: &str) -> FileDiff {
        FileDiff { path: "a.rs".into(), unified: unified.into(), added: 2, removed: 1, created: false }
    }

    fn check(unified: &str, width: usize, max: Option<usize>, want: &str) {
        let rows = rows(&diff(unified), width, &Theme::dark(), max);
        assert_eq!(shown(&rows), want);
        assert!(rows.iter().all(|row| spans_width(&row.line.spans) <= width));
    }

    const CHANGE: &str = "@@ -9,3 +9,4 @@\n fn main() {\n-    let x = one();\n+    let x = two();\n+    // more\n }\n";

    #[test]
    fn lines_have_numbers_and_signs() {
        check(
            CHANGE,
            40,
            None,
            " 9   fn main() {\n10 -     let x = one();\n10 +     let x = two();\n11 +     // more\n12   }",
        );
        check(CHANGE, 40, Some(2), " 9   fn main() {\n10 -     let x = one();\n… +3 lines");
        check(
            "@@ -1,1 +1,1 @@\n-a\n+b\n@@ -9,1 +9,1 @@\n c\nCut here.\n",
            40,
            None,
            "1 - a\n1 + b\n⋮\n9   c\nCut here.",
        );
        check("@@ -1 +1 @@\n+a long line of text\n", 12, None, "1 + a long\n    line of\n    text");
        check("@@ -1 +1 @@\n+\x1b[31mx\n\\ No newline at end of file\n", 40, None, "1 + ␛[31mx");
        check("@@ -1 +1 @@\n+abcdef\n", 5, None, "+abcd\n ef");
        check("", 40, None, "");
    }

    #[test]
    fn changed_words_stand_out() {
        let theme = Theme::dark();
        let rows = rows(&diff(CHANGE), 40, &theme, None);
        let words = |row: &Row, style: Style| -> Vec<String> {
            row.line.spans.iter().filter(|span| span.style == style).map(|span| span.content.to_string()).collect()
        };
        assert_eq!(words(&rows[1], theme.removed_word), ["one"]);
        assert_eq!(words(&rows[2], theme.added_word), ["two"]);
        assert_eq!(words(&rows[3], theme.added_word), Vec::<String>::new());
    }

    #[test]
    fn long_lines_and_wild_numbers_do_no_harm() {
        let wild = format!("@@ -18446744073709551615 +99999999999999999999 @@\n-{}\n+b\n", "x".repeat(100_000));
        assert!(!rows(&diff(&wild), 80, &Theme::dark(), Some(30)).is_empty());
    }
}
