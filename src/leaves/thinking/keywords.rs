//! Words in a message that ask to think harder: whole words only, and none in code.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use unicode_segmentation::GraphemeCursor;

use super::Level;

/// The words of each level; a phrase may hold blanks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keywords {
    pub deep: Vec<String>,
    pub ultra: Vec<String>,
}

/// What a message asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub level: Level,
    /// As they stand in the message.
    pub words: String,
}

/// The position of a keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// In bytes, on character boundaries.
    pub range: Range<usize>,
    pub level: Level,
}

impl Keywords {
    /// What the text asks for: the highest level, by its first word.
    pub fn find(&self, text: &str) -> Option<Found> {
        let positions = extract_keyword_positions(text, self);
        let level = positions.iter().map(|position| position.level).max()?;
        let first = positions.into_iter().find(|position| position.level == level)?;
        Some(Found { level, words: text[first.range].to_owned() })
    }
}

/// Every keyword outside of code, in the order of the text, none overlapping another: of two that begin at one place the
/// longer counts, then the higher level.
pub fn extract_keyword_positions(text: &str, keywords: &Keywords) -> Vec<Position> {
    let phrases: Vec<(Level, Vec<char>)> = [(Level::UltraThink, &keywords.ultra), (Level::DeepThink, &keywords.deep)]
        .into_iter()
        .flat_map(|(level, words)| words.iter().map(move |words| (level, folded(words.trim()))))
        .filter(|(_, phrase)| !phrase.is_empty())
        .collect();
    let begins = |c: char| c.to_lowercase().next().is_some_and(|c| phrases.iter().any(|(_, phrase)| phrase[0] == c));
    let mut found = Vec::new();
    let (mut code, mut skip) = (None, 0);
    for (at, c) in text.char_indices() {
        if at < skip || !begins(c) || !boundary(text, at) {
            continue;
        }
        let hit = phrases
            .iter()
            .filter_map(|(level, phrase)| Some((at + matches(&text[at..], phrase)?, *level)))
            .filter(|(end, _)| boundary(text, *end))
            .max();
        let Some((end, level)) = hit else { continue };
        // Looked for only if there is a keyword: most messages have none.
        let code: &Vec<Range<usize>> = code.get_or_insert_with(|| code_ranges(text));
        let behind = code.partition_point(|range| range.end <= at);
        if code.get(behind).is_some_and(|range| range.start < end) {
            continue;
        }
        found.push(Position { range: at..end, level });
        skip = end;
    }
    found
}

/// A phrase in lower case, its runs of blanks as one.
fn folded(words: &str) -> Vec<char> {
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().flat_map(char::to_lowercase).collect()
}

/// Length in bytes of what the phrase matches at the start of the text.
fn matches(text: &str, phrase: &[char]) -> Option<usize> {
    let mut wanted = phrase.iter().copied().peekable();
    let mut chars = text.char_indices().peekable();
    while let Some(want) = wanted.peek().copied() {
        let (_, c) = chars.next()?;
        if want == ' ' {
            if !c.is_whitespace() {
                return None;
            }
            while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
            wanted.next();
            continue;
        }
        for lower in c.to_lowercase() {
            if wanted.next() != Some(lower) {
                return None;
            }
        }
    }
    Some(chars.peek().map_or(text.len(), |(at, _)| *at))
}

/// Whether a word may begin or end here.
fn boundary(text: &str, at: usize) -> bool {
    let whole = GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(true);
    let (before, after) = (text[..at].chars().next_back(), text[at..].chars().next());
    // Inside a word both sides are letters of it.
    whole && !(before.is_some_and(in_word) && after.is_some_and(in_word))
}

/// Letters and digits that make one word with their neighbours. Scripts that are written without blanks between words,
/// and Korean, whose particles stick to foreign words, do not.
fn in_word(c: char) -> bool {
    let apart = matches!(c as u32,
        // Thai, Lao, Burmese, Khmer
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF
        // Hangul letters, radicals, kana, ideographs, syllables, compatibility forms, the planes of ideographs
        | 0x1100..=0x11FF | 0x2E80..=0x9FFF | 0xA960..=0xA97F | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0xFF66..=0xFFDC
        | 0x1B000..=0x1B16F | 0x20000..=0x3FFFF);
    (c.is_alphanumeric() || c == '_') && !apart
}

/// Fenced blocks and inline code, in order, none overlapping.
fn code_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    // The fence that is open: where it began, its character, its length.
    let mut fence: Option<(usize, char, usize)> = None;
    // Where the paragraph under way began.
    let mut paragraph = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let indent = line.len() - line.trim_start_matches(' ').len();
        let inner = line[indent..].trim_end();
        let mark = inner.chars().next().filter(|c| matches!(c, '`' | '~')).unwrap_or('\0');
        let length = inner.chars().take_while(|c| *c == mark).count();
        let rest = &inner[length.min(inner.len())..];
        match fence {
            Some((from, open, least)) if indent <= 3 && mark == open && length >= least && rest.is_empty() => {
                ranges.push(from..end);
                (fence, paragraph) = (None, end);
            }
            Some(_) => {}
            None if indent <= 3 && mark != '\0' && length >= 3 && (mark == '~' || !rest.contains('`')) => {
                inline(text, paragraph..start, &mut ranges);
                fence = Some((start, mark, length));
            }
            None if inner.is_empty() => {
                inline(text, paragraph..start, &mut ranges);
                paragraph = end;
            }
            None => {}
        }
    }
    match fence {
        // A block that is not closed runs to the end.
        Some((from, ..)) => ranges.push(from..text.len()),
        None => inline(text, paragraph..text.len(), &mut ranges),
    }
    ranges
}

/// Adds the inline code of a paragraph: from a run of backquotes to the next of the same length.
fn inline(text: &str, paragraph: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in paragraph.filter(|at| bytes[*at] == b'`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    let mut from = 0;
    while let Some(open) = runs.get(from) {
        let close = runs[from + 1..].iter().position(|run| run.len() == open.len());
        if let Some(close) = close {
            ranges.push(open.start..runs[from + 1 + close].end);
            from += close + 1;
        }
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keywords() -> Keywords {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Keywords {
            deep: words(&["deepthink", "think deeper", ""]),
            ultra: words(&["ultrathink", "maximum thinking", "think deeper than ever"]),
        }
    }

    /// `[` and `]` in `want` stand around what is found, followed by the level's first letter.
    fn check(want: &str) {
        let text = want.replace(['⟦', '⟧'], "");
        let mut shown = String::new();
        let mut at = 0;
        for Position { range, level } in extract_keyword_positions(&text, &keywords()) {
            shown.push_str(&format!("{}⟦{}⟧", &text[at..range.start], &text[range.clone()]));
            at = range.end;
            let ultra = text[range].to_lowercase().contains("ultra")
                || shown.to_lowercase().ends_with("thinking⟧")
                || shown.ends_with("ever⟧");
            assert_eq!(level, if ultra { Level::UltraThink } else { Level::DeepThink }, "{want}");
        }
        shown.push_str(&text[at..]);
        assert_eq!(shown, want);
    }

    #[test]
    fn whole_words_outside_of_code() {
        check("⟦ultrathink⟧");
        check("please ⟦UltraThink⟧, then ⟦deepthink⟧.");
        check("(⟦ultrathink⟧): ⟦deepthink⟧! ⟦ultrathink⟧-mode \"⟦deepthink⟧\" ⟦ultrathink⟧'s");
        check(
            "ultrathinking deepthinker megaultrathink ultrathink2 ultra_ultrathink ultrathink_ éultrathink ultrathinké",
        );
        check("ultrathink\u{301} \u{301}⟦ultrathink⟧");
        check("ultra think");
        check("⟦think deeper⟧ and ⟦Think \n deeper⟧, rethink deeper, think deepers, thinkdeeper");
        check("⟦maximum thinking⟧ ⟦think deeper than ever⟧ ⟦think deeper⟧ than never");
        check("⟦ultrathin\u{212a}⟧");
        // Neighbours that are written without blanks.
        check(
            "请⟦ultrathink⟧一下。もっと⟦deepthink⟧してカ⟦deepthink⟧カ ⟦ultrathink⟧로 해줘 คิด⟦deepthink⟧นะ 𠀀⟦ultrathink⟧𠀀",
        );
        check("и⟦ultrathink⟧".replace(['⟦', '⟧'], "").as_str());
        check("🙂⟦ultrathink⟧🙂");
    }

    #[test]
    fn code_is_left_alone() {
        check("`ultrathink` ⟦ultrathink⟧ ``a ` deepthink`` ⟦deepthink⟧");
        // A run that is not closed is not code, not even in the next paragraph.
        check("`⟦ultrathink⟧\n\n ⟦deepthink⟧ ``⟦deepthink⟧`");
        check("a `b\nultrathink c` ⟦ultrathink⟧");
        check("```\nultrathink\n```\n⟦ultrathink⟧");
        check("⟦deepthink⟧\n```rust\nultrathink `x\n````\n⟦ultrathink⟧ `deepthink`");
        check("~~~\nultrathink\n```\nultrathink\n~~~ x\nultrathink\n  ~~~~ \n⟦ultrathink⟧");
        check("```\nultrathink");
        check("```not a fence` ⟦ultrathink⟧");
        check("    ```\n⟦ultrathink⟧");
        check("a ` b ⟦deepthink⟧\n```\nultrathink\n```\n` ⟦ultrathink⟧");
        check("think `x` deeper");
    }

    #[test]
    fn the_highest_level_counts() {
        let find = |text: &str| keywords().find(text).map(|found| (found.level, found.words));
        assert_eq!(find("deepthink, no: Ultrathink, ultrathink"), Some((Level::UltraThink, "Ultrathink".into())));
        assert_eq!(find("Think  deeper"), Some((Level::DeepThink, "Think  deeper".into())));
        assert_eq!(find("think"), None);
        assert_eq!(Keywords::default().find("ultrathink"), None);
    }

    #[test]
    fn long_texts_cost_little() {
        // Half a megabyte of words that nearly match, in code that never closes.
        let text = "`ultrathin deepthin think deepe ".repeat(16_000);
        assert_eq!(extract_keyword_positions(&text, &keywords()), []);
        let odd: String = (1..700).map(|length| format!("{} ", "`".repeat(length))).collect();
        assert_eq!(extract_keyword_positions(&format!("{odd}ultrathink"), &keywords()).len(), 1);
    }
}
