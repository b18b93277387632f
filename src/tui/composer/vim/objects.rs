//! Text objects: `iw`, `a"`, `i(`, `ip` and their like. Pure.

use std::ops::Range;

use super::motions::{class, closing, lines_down, next, opening, prev};
use crate::tui::composer::layout::line_at;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Word {
        big: bool,
    },
    /// Between two of the same character in one line.
    Quoted(char),
    Block(char, char),
    Paragraph,
    Sentence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) shape: Shape,
    /// `a`: with what surrounds it.
    pub(super) around: bool,
}

/// A part of the text, and whether it means whole lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) range: Range<usize>,
    pub(super) lines: bool,
}

impl Region {
    /// What a way passes over that does not count its end: one that ends at the start of a line ends before it; from the
    /// start of another, it means the lines.
    pub(super) fn up_to(text: &str, range: Range<usize>) -> Region {
        let Range { start, end } = range;
        if end <= start || !text[..end].ends_with('\n') {
            return Region { range, lines: false };
        }
        let lines = text[line_at(text, start).start..start].trim().is_empty();
        Region { range: start..end - 1, lines }
    }
}

impl Shape {
    pub(super) fn of(key: char) -> Option<Shape> {
        Some(match key {
            'w' => Shape::Word { big: false },
            'W' => Shape::Word { big: true },
            '"' | '\'' | '`' => Shape::Quoted(key),
            '(' | ')' | 'b' => Shape::Block('(', ')'),
            '[' | ']' => Shape::Block('[', ']'),
            '{' | '}' | 'B' => Shape::Block('{', '}'),
            '<' | '>' => Shape::Block('<', '>'),
            'p' => Shape::Paragraph,
            's' => Shape::Sentence,
            _ => return None,
        })
    }
}

/// The object around `at`; `None` where no object begins.
pub(super) fn find(text: &str, at: usize, object: Object, count: usize) -> Option<Region> {
    let chars = |range| Region { range, lines: false };
    match object.shape {
        Shape::Word { big } => word(text, at, big, object.around, count).map(chars),
        Shape::Quoted(mark) => quoted(text, at, mark, object.around).map(chars),
        Shape::Block(open, close) => block(text, at, (open, close), object.around, count),
        Shape::Sentence => sentence(text, at, object.around, count),
        Shape::Paragraph => Some(Region { range: paragraph(text, at, object.around, count)?, lines: true }),
    }
}

/// The run of one kind of character around a place, within its line.
fn run(text: &str, at: usize, big: bool) -> Range<usize> {
    let line = line_at(text, at);
    let (mut start, mut end) = (at, at);
    let kind = class(text, at, big);
    while start > line.start && class(text, prev(text, start), big) == kind {
        start = prev(text, start);
    }
    while end < line.end && class(text, end, big) == kind {
        end = next(text, end);
    }
    start..end
}

fn word(text: &str, at: usize, big: bool, around: bool, count: usize) -> Option<Range<usize>> {
    let line = line_at(text, at);
    if line.is_empty() {
        return None;
    }
    let mut range = run(text, at, big);
    let on_blank = class(text, at, big) == 0;
    // Around a word goes its blank behind, or the one before where none follows; around a blank, the word behind.
    for part in 0..count {
        let blank_behind = |end: usize| end < line.end && class(text, end, big) == 0;
        if part > 0 && range.end < line.end && (!around || !on_blank || blank_behind(range.end)) {
            range.end = run(text, range.end, big).end;
        }
        if around && range.end < line.end && (on_blank || blank_behind(range.end)) {
            range.end = run(text, range.end, big).end;
        }
    }
    let trailing = range.end > range.start && class(text, prev(text, range.end), big) == 0;
    if around && !on_blank && !trailing && range.start > line.start {
        let before = run(text, prev(text, range.start), big);
        if class(text, before.start, big) == 0 {
            range.start = before.start;
        }
    }
    Some(range)
}

fn quoted(text: &str, at: usize, mark: char, around: bool) -> Option<Range<usize>> {
    let line = line_at(text, at);
    let mut escaped = false;
    let mut marks = Vec::new();
    for (offset, c) in text[line.clone()].char_indices() {
        if c == mark && !escaped {
            marks.push(line.start + offset);
        }
        escaped = c == '\\' && !escaped;
    }
    let pair = marks.chunks_exact(2).find(|pair| at <= pair[1])?;
    let (open, close) = (pair[0], pair[1]);
    if !around {
        return Some(open + 1..close);
    }
    let mut range = open..close + 1;
    let blanks = |part: &str| part.len() - part.trim_start().len();
    let behind = blanks(&text[range.end..line.end]);
    range.end += behind;
    if behind == 0 {
        range.start -= text[line.start..open].len() - text[line.start..open].trim_end().len();
    }
    Some(range)
}

fn block(text: &str, at: usize, pair: (char, char), around: bool, count: usize) -> Option<Region> {
    let mut open = match text[at..].starts_with(pair.0) {
        true => at,
        // Outside of any, the next one is meant.
        false => opening(text, at, pair).or_else(|| Some(at + text[at..].find(pair.0)?))?,
    };
    for _ in 1..count {
        open = opening(text, open, pair)?;
    }
    let close = closing(text, open, pair)?;
    if around {
        return Some(Region { range: open..close + 1, lines: false });
    }
    let inner = open + 1..close;
    // Brackets at the ends of their own lines: what is inside are the lines between them.
    let before = line_at(text, close).start;
    if text[inner.clone()].starts_with('\n') && before > inner.start + 1 && text[before..close].trim().is_empty() {
        return Some(Region { range: inner.start + 1..before - 1, lines: true });
    }
    Some(Region { range: inner, lines: false })
}

fn paragraph(text: &str, at: usize, around: bool, count: usize) -> Option<Range<usize>> {
    let blank = |start: usize| text[line_at(text, start)].trim().is_empty();
    let mut start = line_at(text, at).start;
    let kind = blank(start);
    while start > 0 && blank(start - 1) == kind {
        start = line_at(text, start - 1).start;
    }
    let run_end = |from: usize| {
        let (mut at, kind) = (from, blank(from));
        while let Some(line) = lines_down(text, at, 1).filter(|line| blank(*line) == kind) {
            at = line;
        }
        at
    };
    let parts = if around { 2 * count } else { count };
    let mut last = run_end(at);
    let mut taken = 1;
    while taken < parts
        && let Some(line) = lines_down(text, last, 1)
    {
        last = run_end(line);
        taken += 1;
    }
    // No blank lines behind: those before.
    if around && taken < parts && !kind {
        while start > 0 && blank(start - 1) {
            start = line_at(text, start - 1).start;
        }
    }
    Some(start..line_at(text, last).end)
}

/// A sentence, or the blanks between two of them.
struct Piece {
    range: Range<usize>,
    blank: bool,
}

/// The sentences of a text and what is between them. An empty line ends one, and is a blank of its own; blanks before the
/// first one of a paragraph are part of it.
fn pieces(text: &str) -> Vec<Piece> {
    let blank = |at: usize| text[at..].chars().next().is_some_and(char::is_whitespace);
    let empty = |at: usize| text[at..].starts_with('\n') && (at == 0 || text[..at].ends_with('\n'));
    let (mut pieces, mut at, mut opens) = (Vec::new(), 0, true);
    while at < text.len() {
        let start = at;
        let between = empty(at) || !opens && blank(at);
        if empty(at) {
            (at, opens) = (at + 1, true);
        } else if between {
            while blank(at) && !(at > start && empty(at)) {
                at = next(text, at);
            }
        } else {
            let lead = text[at..].len() - text[at..].trim_start().len();
            (at, opens) = (sentence_end(text, at + lead), false);
        }
        pieces.push(Piece { range: start..at, blank: between });
    }
    pieces
}

/// Where a sentence ends: behind its mark and what closes after that, or before an empty line.
fn sentence_end(text: &str, from: usize) -> usize {
    let mut marked = false;
    for (offset, c) in text[from..].char_indices() {
        let at = from + offset;
        if c.is_whitespace() && (marked || c == '\n' && text[at + 1..].starts_with('\n')) {
            return at;
        }
        marked = matches!(c, '.' | '!' | '?') || marked && matches!(c, ')' | ']' | '"' | '\'');
    }
    text.len()
}

fn sentence(text: &str, at: usize, around: bool, count: usize) -> Option<Region> {
    let pieces = pieces(text);
    let first = pieces.iter().position(|piece| at < piece.range.end).or(pieces.len().checked_sub(1))?;
    let parts = if around { count.saturating_mul(2) } else { count };
    let last = first.saturating_add(parts - 1).min(pieces.len() - 1);
    let (mut start, mut end) = (pieces[first].range.start, pieces[last].range.end);
    // Around the last one go the blanks before it.
    if around
        && !pieces[first].blank
        && !pieces[last].blank
        && let Some(before) = first.checked_sub(1).map(|before| &pieces[before])
        && before.blank
        && !text[before.range.clone()].contains('\n')
    {
        start = before.range.start;
    }
    end += usize::from(!pieces[last].blank && text[end..].starts_with('\n'));
    Some(Region::up_to(text, start..end))
}
