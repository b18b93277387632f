//! What is looked for: words, or one regular expression.

use std::ops::Range;

use regex::{Regex, RegexBuilder, bytes};

use super::piece::Kind;
use super::words::is_word;

/// Most words of a query that count.
const TERMS: usize = 10;
/// Matches of a word in one text that are looked at.
const MATCHES: usize = 200;
/// Bytes within which words belong together.
const NEAR: usize = 240;

/// Words that say nothing about what is looked for.
const COMMON: [&str; 28] = [
    "the", "a", "an", "of", "to", "in", "is", "was", "were", "and", "or", "for", "on", "what", "which", "did", "do",
    "we", "it", "that", "with", "how", "my", "our", "be", "are", "at", "by",
];

/// What to find in a log. Without words it is everything.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    terms: Vec<Term>,
    /// What the bytes of each line have that may be found. None: nothing in common.
    hint: Option<bytes::Regex>,
    /// The bytes of a line are looked at as the texts that they hold.
    unescaped: bool,
    kind: Option<Kind>,
}

#[derive(Debug, Clone)]
struct Term {
    text: Regex,
    /// As a line of the log holds it.
    raw: bytes::Regex,
    /// What words of the line have in them.
    parts: Vec<bytes::Regex>,
    /// Parts of a word count less than the word.
    share: f32,
}

/// Where in a text most of the words are together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    pub(super) range: Range<usize>,
    pub(super) score: f32,
}

/// Why a query cannot be searched for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("nothing to look for: type a word")]
    Empty,
    #[error("the regular expression is invalid: {0}")]
    Pattern(String),
}

/// The last line says what is wrong; those before it show a pattern that nobody typed so.
fn wrong(error: &regex::Error) -> Wrong {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    Wrong::Pattern(last.trim_start_matches("error: ").trim_end_matches('.').to_owned())
}

impl Terms {
    /// Reads a query: words, `"some words"` that stand together, or `/a regular expression/`. Letter case never counts.
    ///
    /// # Errors
    /// It has no word, or a pattern that cannot be used.
    pub fn new(text: &str, kind: Option<Kind>) -> Result<Terms, Wrong> {
        let text = text.trim();
        if let Some(pattern) = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|p| !p.is_empty())
        {
            let flagged = format!("(?im){pattern}");
            let raw = bytes::Regex::new(&flagged).map_err(|error| wrong(&error))?;
            let text = Regex::new(&flagged).map_err(|error| wrong(&error))?;
            let literals = literals(pattern);
            let part = |literal: &String| bytes::Regex::new(&format!("(?i){}", regex::escape(literal))).ok();
            let hint = literals.iter().max_by_key(|literal| literal.len()).and_then(part);
            let term = Term { text, raw, parts: literals.iter().filter_map(part).collect(), share: 1.0 };
            return Ok(Terms { terms: vec![term], hint, unescaped: true, kind });
        }
        let words = words(text);
        if words.is_empty() {
            return Err(Wrong::Empty);
        }
        let terms: Vec<Term> = words.iter().filter_map(|(word, share)| Term::of(word, *share)).take(TERMS).collect();
        let all: Vec<&str> = terms.iter().map(|term| term.raw.as_str()).collect();
        let hint = bytes::Regex::new(&all.join("|")).map_err(|error| wrong(&error))?;
        Ok(Terms { terms, hint: Some(hint), unescaped: false, kind })
    }

    pub(super) fn terms(&self) -> usize {
        self.terms.len()
    }

    pub(super) fn wants(&self, kind: Kind) -> bool {
        self.kind.is_none_or(|wanted| wanted == kind)
    }

    /// Where from an offset on the first line may begin, or have begun, that holds any of the words. None: nowhere.
    pub(super) fn next(&self, lines: &[u8], from: usize) -> Option<usize> {
        self.hint.as_ref().map_or(Some(from), |hint| hint.find_at(lines, from).map(|found| found.start()))
    }

    /// Which words a line may hold, a bit each; `scratch` is used again. None: none of them.
    pub(super) fn in_line(&self, line: &[u8], scratch: &mut Vec<u8>) -> Option<u16> {
        if self.terms.is_empty() {
            return Some(0);
        }
        let line = if self.unescaped { unescape(line, scratch) } else { line };
        let bits = self.terms.iter().enumerate().map(|(at, term)| u16::from(term.raw.is_match(line)) << at);
        Some(bits.sum()).filter(|bits| *bits > 0)
    }

    /// Of each word what has to be in words of a text that holds it.
    pub(super) fn literals(&self) -> impl Iterator<Item = &[bytes::Regex]> {
        self.terms.iter().map(|term| term.parts.as_slice())
    }

    /// What each word is worth, by the number of lines it is in: the rare ones tell more.
    pub(super) fn weights(&self, seen: &[usize], lines: usize) -> Vec<f32> {
        let worth = |(term, seen): (&Term, &usize)| {
            let rare = (1.0 + lines as f32 / (*seen).max(1) as f32).ln();
            (0.1 + rare) * term.share
        };
        self.terms.iter().zip(seen).map(worth).collect()
    }

    /// The place in a text with the most of the words. None if it has none of them.
    pub(super) fn best(&self, text: &str, weights: &[f32]) -> Option<Best> {
        let mut found: Vec<(Range<usize>, usize, f32)> = Vec::new();
        for (at, (term, weight)) in self.terms.iter().zip(weights).enumerate() {
            let matches = term.text.find_iter(text).filter(|found| !found.is_empty()).take(MATCHES);
            found.extend(matches.map(|found| (found.range(), at, weight * whole(text, &found.range()))));
        }
        found.sort_by_key(|(range, ..)| range.start);
        let mut best: Option<Best> = None;
        for first in 0..found.len() {
            let start = found[first].0.start;
            let (mut have, mut end) = ([0f32; TERMS], start);
            for (range, term, weight) in found[first..].iter().take_while(|(range, ..)| range.end <= start + NEAR) {
                end = end.max(range.end);
                have[*term] = have[*term].max(*weight);
            }
            let range = start..end.max(found[first].0.end.min(start + NEAR));
            let score = if end == start { found[first].2 } else { have.iter().sum() };
            if best.as_ref().is_none_or(|best| score > best.score) {
                best = Some(Best { range, score });
            }
        }
        let mut best = best?;
        // Words elsewhere in the same text still speak for it.
        let elsewhere =
            |at: usize| found.iter().filter(|(_, term, _)| *term == at).map(|(.., weight)| *weight).fold(0.0, f32::max);
        let all: f32 = (0..self.terms.len()).map(elsewhere).sum();
        best.score += 0.3 * (all - best.score).max(0.0);
        best.range.end = (best.range.start..=best.range.end).rev().find(|at| text.is_char_boundary(*at))?;
        Some(best)
    }
}

impl Term {
    fn of(word: &str, share: f32) -> Option<Term> {
        let flags = if word.is_ascii() { "(?i-u)" } else { "(?i)" };
        let escaped = serde_json::to_string(word).ok()?;
        let raw = format!("{flags}{}", regex::escape(escaped.trim_matches('"')));
        let text = RegexBuilder::new(&regex::escape(word)).case_insensitive(true).unicode(!word.is_ascii()).build();
        // Of plain letters the words have small ones only.
        let flags = if word.is_ascii() { "(?-u)" } else { "(?i)" };
        let plain = word.to_lowercase();
        let parts = plain.as_bytes().split(|byte| !is_word(*byte)).filter(|part| !part.is_empty());
        let part = |part: &[u8]| {
            let part = str::from_utf8(part).ok()?;
            bytes::Regex::new(&format!("{flags}{}", regex::escape(part))).ok()
        };
        let parts = parts.filter_map(part).collect();
        Some(Term { text: text.ok()?, raw: bytes::Regex::new(&raw).ok()?, parts, share })
    }
}

/// Letters that every match of a pattern has in it, together; none where that is not easily told.
pub(super) fn literals(pattern: &str) -> Vec<String> {
    let (mut literals, mut run) = (Vec::new(), String::new());
    let mut chars = pattern.chars().peekable();
    // An alternative, a flag that changes how the rest is read, or a class within another.
    if pattern.contains('|') || pattern.contains("(?") || pattern.matches('[').count() != pattern.matches(']').count() {
        return literals;
    }
    let mut depth = 0;
    while let Some(char) = chars.next() {
        match char {
            '\\' if chars.next().is_some_and(|escaped| "xuUpP".contains(escaped)) => return Vec::new(),
            '[' => {
                while let Some(inside) = chars.next().filter(|inside| *inside != ']') {
                    if inside == '[' || inside == '\\' {
                        return Vec::new();
                    }
                }
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            // What may be repeated may be missing.
            '*' | '?' | '{' => _ = run.pop(),
            char if depth == 0 && (char.is_alphanumeric() || char == '_') => {
                run.push(char);
                continue;
            }
            _ => {}
        }
        if char == '{' {
            chars.by_ref().find(|inside| *inside == '}');
        }
        literals.push(std::mem::take(&mut run));
    }
    literals.push(run);
    literals.retain(|literal| literal.chars().count() > 1);
    literals
}

/// A match that is a word of its own counts whole.
fn whole(text: &str, range: &Range<usize>) -> f32 {
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && c.is_ascii());
    let inside = letter(text[..range.start].chars().next_back()) || letter(text[range.end..].chars().next());
    if inside { 0.85 } else { 1.0 }
}

/// The words of a query with what they count, none twice.
fn words(text: &str) -> Vec<(String, f32)> {
    let mut words: Vec<(String, f32)> = Vec::new();
    let mut add = |word: &str, share: f32| {
        let word = word.to_lowercase();
        if !word.is_empty() && !words.iter().any(|(other, _)| *other == word) {
            words.push((word, share));
        }
    };
    for (at, part) in text.split('"').enumerate() {
        if at % 2 == 1 && text.matches('"').count() >= 2 {
            add(part.trim(), 1.5);
            continue;
        }
        let common = |word: &str| COMMON.contains(&word.to_lowercase().as_str());
        let plain = part.split_whitespace().map(|word| word.trim_matches(|c: char| ",;:!?()[]{}<>'`".contains(c)));
        let plain: Vec<&str> = plain.filter(|word| !word.is_empty()).collect();
        let only_common = plain.iter().all(|word| common(word));
        for word in plain.into_iter().filter(|word| only_common || !common(word)) {
            let stem = stem(word);
            add(stem, 1.0);
            let parts: Vec<&str> = word.split(|c: char| !c.is_alphanumeric()).filter(|part| part.len() > 2).collect();
            if parts.len() > 1 {
                parts.into_iter().for_each(|part| add(part, 0.4));
            }
        }
    }
    words
}

/// An English word without its ending, so that `timeouts` finds `timeout`.
fn stem(word: &str) -> &str {
    if !word.bytes().all(|byte| byte.is_ascii_alphabetic()) || word.ends_with("ss") {
        return word;
    }
    for (ending, least) in [("ing", 5), ("ed", 5), ("es", 5), ("s", 3)] {
        if let Some(stem) = word.strip_suffix(ending).filter(|stem| stem.len() >= least) {
            return stem;
        }
    }
    word
}

/// The texts in a line of JSON, a line each, with the escapes that matter for a search undone.
fn unescape<'a>(line: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    let mut rest = line;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\\' | b'"')) {
        scratch.extend_from_slice(&rest[..at]);
        let escaped = (rest[at] == b'\\').then(|| rest.get(at + 1).copied()).flatten();
        scratch.push(match escaped {
            None | Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(other) => other,
        });
        rest = &rest[(at + 1 + usize::from(escaped.is_some())).min(rest.len())..];
    }
    scratch.extend_from_slice(rest);
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_become_words() {
        for (query, want) in [
            ("the staging port", "staging port"),
            ("Timeouts, retried", "timeout retri"),
            ("what is it", "what is it"),
            ("\"exact words\" more", "exact words|more"),
            ("src/main.rs:12", "src/main.rs:12 src main"),
            ("rate_limit", "rate_limit rate limit"),
            ("class \"", "class"),
            ("日本 port", "日本 port"),
        ] {
            let got = words(query).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
            assert_eq!(got, want.split(if want.contains('|') { '|' } else { ' ' }).collect::<Vec<_>>(), "{query}");
        }
        assert!(Terms::new("  ", None).is_err());
        let wrong = Terms::new("/(/", None).unwrap_err().to_string();
        assert_eq!(wrong, "the regular expression is invalid: unclosed group");
    }

    #[test]
    fn a_line_is_looked_at_as_what_it_says() {
        let line =
            serde_json::to_vec(&serde_json::json!({"a": "ERROR: said \"no\"\n\tat C:\\x", "b": "naïve"})).unwrap();
        for (query, want) in [
            ("said \"no\"", true),
            ("C:\\x", true),
            ("NAÏVE", true),
            ("/^error: .*\"no\"$/", true),
            ("/^\\tat C:/", true),
            ("/^said/", false),
            ("absent", false),
        ] {
            let query = Terms::new(query, None).unwrap();
            assert_eq!(query.in_line(&line, &mut Vec::new()).is_some(), want, "{query:?}");
        }
    }

    #[test]
    fn words_that_stand_together_win() {
        let far = "x".repeat(400);
        let text = format!("port one {far} staging two {far} the staging port is 5433");
        let query = Terms::new("staging port", None).unwrap();
        let best = query.best(&text, &[1.0, 1.0]).unwrap();
        assert_eq!(&text[best.range], "staging port");
    }
}
