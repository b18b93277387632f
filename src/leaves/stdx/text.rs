//! Text as a terminal shows it: width in columns, cutting, breaking into lines, and making untrusted text harmless.
//!
//! Everything counts grapheme clusters, each as wide as the screen library draws it.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use textwrap::WordSeparator;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns that the text takes on one line.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.bytes().filter(|byte| !byte.is_ascii_control()).count();
    }
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// The grapheme clusters of a text: byte offset, cluster, columns.
pub fn clusters(text: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    text.grapheme_indices(true).map(|(at, cluster)| (at, cluster, cluster.width()))
}

/// Splits at separators outside brackets, trims, and drops what is empty.
pub fn split_list(text: &str, separator: impl Fn(char) -> bool) -> Vec<String> {
    let mut depth = 0_i32;
    let parts = text.split(|c: char| {
        depth += i32::from(matches!(c, '(' | '{' | '[')) - i32::from(matches!(c, ')' | '}' | ']'));
        separator(c) && depth <= 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Cuts the text to at most `columns`; a cut text ends in `…`.
pub fn truncate(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    let mut used = 0;
    for (at, _, wide) in clusters(text) {
        if used + wide >= columns {
            // A wide cluster may leave the last column free.
            return Cow::Owned(format!("{}…", &text[..at]));
        }
        used += wide;
    }
    Cow::Borrowed(text)
}

/// Cuts the text to at most `columns` from its front, as fits paths; a cut text begins with `…`.
pub fn truncate_start(text: &str, columns: usize) -> Cow<'_, str> {
    let total = width(text);
    if total <= columns {
        return Cow::Borrowed(text);
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    let mut left = total;
    for (at, cluster, wide) in clusters(text) {
        left -= wide;
        if left < columns {
            return Cow::Owned(format!("…{}", &text[at + cluster.len()..]));
        }
    }
    Cow::Borrowed("…")
}

/// The byte ranges of the rows that one line of text (without newlines) is broken into; never empty.
pub fn breaks(line: &str, columns: usize) -> Vec<Range<usize>> {
    let columns = columns.max(1);
    if line.len() <= columns && line.is_ascii() {
        return vec![Range { start: 0, end: line.trim_end().len() }];
    }
    let mut row = Rows { rows: Vec::new(), start: 0, end: 0, used: 0, columns };
    if line.is_ascii() {
        let bytes = line.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let end = bytes[at..].iter().position(|&byte| byte == b' ').map_or(bytes.len(), |space| at + space);
            let next = bytes[end..].iter().position(|&byte| byte != b' ').map_or(bytes.len(), |word| end + word);
            row.word(line, at..end, next - end);
            at = next;
        }
    } else {
        let (mut start, mut at) = (0, 0);
        for word in WordSeparator::UnicodeBreakProperties.find_words(line) {
            let end = at + word.word.len();
            at = end + word.whitespace.len();
            // No break after the slash that begins `/commit` or `~/notes`.
            let begins = line[start..end].ends_with('/') && !line[start..end].contains(char::is_alphanumeric);
            if !begins || at > end || at == line.len() {
                row.word(line, start..end, at - end);
                start = at;
            }
        }
    }
    row.rows.push(row.start..row.end.max(row.start));
    row.rows
}

/// Rows under construction in `breaks`.
struct Rows {
    rows: Vec<Range<usize>>,
    /// Where the open row starts, and where its last word ends.
    start: usize,
    end: usize,
    /// Columns of the open row with the spaces after its last word.
    used: usize,
    columns: usize,
}

impl Rows {
    fn word(&mut self, line: &str, word: Range<usize>, spaces: usize) {
        let wide = width(&line[word.clone()]);
        if self.used + wide > self.columns && self.used > 0 {
            self.rows.push(self.start..self.end.max(self.start));
            self.start = word.start;
            self.used = 0;
        }
        if wide > self.columns {
            for (at, _, wide) in clusters(&line[word.clone()]) {
                if self.used + wide > self.columns && self.used > 0 {
                    self.rows.push(self.start..word.start + at);
                    self.start = word.start + at;
                    self.used = 0;
                }
                self.used += wide;
            }
            self.used += spaces;
        } else {
            self.used += wide + spaces;
        }
        self.end = word.end;
    }
}

/// Makes untrusted text harmless, character by character, so that a text may be cleaned in pieces.
///
/// Newlines stay, a tab becomes four spaces. Other control characters become their visible pictures (`␛`), marks that
/// reverse the reading order become `<U+202E>`, invisible fillers vanish. Carriage returns vanish.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\r' => {}
            '\u{2028}' | '\u{2029}' | '\u{85}' => out.push('\n'),
            '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('\u{2421}'),
            '\u{80}'..='\u{9f}' => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push_str(&format!("<U+{:04X}>", c as u32)),
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => {}
            '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}'..='\u{2065}' => {}
            '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' => {}
            '\u{e0000}'..='\u{e007f}' => {}
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// `clean`, and on one line: newlines become spaces.
pub fn clean_line(text: &str) -> String {
    clean(text).trim().replace('\n', " ")
}

/// `850`, `1.2k`, `34k`, `1.2M`.
pub fn short(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..10_000 => format!("{:.1}k", count as f64 / 1e3),
        10_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// A count with its thousands apart: `28,949`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span of time: `4 s`, `1 m 12 s`, `2 h 3 m`.
pub fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} m {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} m", seconds / 3600, seconds / 60 % 60),
    }
}

/// A text for people: paths in the user's home begin with `~`.
pub fn tilde(text: &str, home: Option<&Path>) -> String {
    let home = home.and_then(Path::to_str).map(|home| home.trim_end_matches('/'));
    let Some(home) = home.filter(|home| !home.is_empty()) else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(home) {
        let (before, after) = (&rest[..at], &rest[at + home.len()..]);
        // A whole path: nothing of a name before it, and its end or a part of it behind.
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
        let begins = !before.chars().next_back().or(out.chars().next_back()).is_some_and(inside);
        let ends = after.chars().next().is_none_or(|c| c == '/' || !inside(c));
        out.push_str(before);
        out.push_str(if begins && ends { "~" } else { home });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_their_units() {
        for (seconds, want) in [(0, "0 s"), (59, "59 s"), (60, "1 m 0 s"), (3599, "59 m 59 s"), (7260, "2 h 1 m")] {
            assert_eq!(duration(Duration::from_secs(seconds)), want);
        }
    }

    #[test]
    fn widths_count_what_the_terminal_draws() {
        let check = |text: &str, want: usize| assert_eq!(width(text), want, "{text:?}");
        check("", 0);
        check("abc", 3);
        check("中文", 4);
        check("e\u{301}", 1);
        check("👩‍👩‍👧", 2);
        check("🇩🇪", 2);
    }

    #[test]
    fn truncates_within_the_columns() {
        let check = |text: &str, columns: usize, want: &str, start: &str| {
            assert_eq!(truncate(text, columns), want);
            assert_eq!(truncate_start(text, columns), start);
        };
        check("abcdef", 6, "abcdef", "abcdef");
        check("abcdef", 5, "abcd…", "…cdef");
        check("abcdef", 1, "…", "…");
        check("abcdef", 0, "", "");
        check("中文字", 5, "中文…", "…文字");
        check("中文字", 4, "中…", "…字");
    }

    #[test]
    fn wraps_between_words_and_inside_long_ones() {
        let check = |text: &str, columns: usize, want: &[&str]| {
            let rows = text.split('\n').flat_map(|line| breaks(line, columns).into_iter().map(|range| &line[range]));
            assert_eq!(rows.collect::<Vec<_>>(), want, "{text:?}");
        };
        check("", 5, &[""]);
        check("one two three", 7, &["one two", "three"]);
        check("one  two", 4, &["one", "two"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("a abcdefgh", 4, &["a", "abcd", "efgh"]);
        check("  indented text", 10, &["  indented", "text"]);
        check("a\n\nb", 5, &["a", "", "b"]);
        check("中文字符很宽", 5, &["中文", "字符", "很宽"]);
        check("naïve café", 6, &["naïve", "café"]);
        check("中", 1, &["中"]);
        check("shows · /commit [words]", 9, &["shows", "· /commit", "[words]"]);
        check("é in ~/notes/", 6, &["é in", "~/note", "s/"]);
    }

    #[test]
    fn cleans_what_could_deceive() {
        let check = |text: &str, want: &str| assert_eq!(clean(text), want);
        check("plain\ntext", "plain\ntext");
        check("a\tb\r\n", "a    b\n");
        check("\x1b[31mred\x07\u{7f}", "␛[31mred␇␡");
        check("rm\u{200b} \u{202e}txt", "rm <U+202E>txt");
        check("\u{9b}31m", "\u{fffd}31m");
        check("👩‍👩‍👧 e\u{301}", "👩‍👩‍👧 e\u{301}");
        assert_eq!(clean_line(" a\nb\u{1b}]0;x "), "a b␛]0;x");
    }
}
