//! Where a motion leads. Pure: a text and a place in it go in, a place comes out. Places are byte offsets between
//! graphemes, so that nothing stops inside of one, and a chip is one of them.

use unicode_segmentation::UnicodeSegmentation;

use crate::tui::composer::chip;
use crate::tui::composer::layout::line_at;

/// What is searched for in a line: `f`, `F`, `t`, `T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Find {
    pub(super) target: char,
    pub(super) back: bool,
    /// Stops beside it.
    pub(super) till: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    Up,
    Down,
    /// `w` and `W`.
    Word {
        big: bool,
    },
    Back {
        big: bool,
    },
    End {
        big: bool,
    },
    /// `ge` and `gE`.
    EndBack {
        big: bool,
    },
    LineStart,
    /// The first character of the line that is not a blank.
    FirstWord,
    LineEnd,
    /// The first character that is not a blank, so many lines below or above: `+`, `-`; `_` counts the own line.
    FirstBelow,
    FirstAbove,
    FirstHere,
    /// The column with the number of the count.
    Column,
    /// The line with the number of the count: `gg` the first, `G` the last without one.
    Top,
    Bottom,
    Find(Find),
    /// `;`, and `,` the other way.
    Again {
        reverse: bool,
    },
    /// The bracket that belongs to the one here, or behind here in the line.
    Bracket,
    Sentence {
        back: bool,
    },
    Paragraph {
        back: bool,
    },
}

/// What an operator takes of the way from here to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Not what is under the farther end.
    Exclusive,
    Inclusive,
    /// Whole lines.
    Lines,
}

impl Motion {
    pub(super) fn reach(self) -> Reach {
        match self {
            Motion::Up | Motion::Down | Motion::Top | Motion::Bottom => Reach::Lines,
            Motion::FirstBelow | Motion::FirstAbove | Motion::FirstHere => Reach::Lines,
            Motion::End { .. } | Motion::EndBack { .. } | Motion::LineEnd | Motion::Bracket => Reach::Inclusive,
            Motion::Find(find) if !find.back => Reach::Inclusive,
            _ => Reach::Exclusive,
        }
    }
}

/// Where `motion` leads from `at`; none when it leads nowhere. `again` is what `;` repeats.
pub(super) fn target(
    text: &str,
    at: usize,
    motion: Motion,
    count: Option<usize>,
    again: Option<Find>,
) -> Option<usize> {
    let times = count.unwrap_or(1);
    let line = line_at(text, at);
    let repeat = |step: &dyn Fn(usize) -> Option<usize>| {
        let mut to = at;
        for done in 0..times {
            match step(to) {
                Some(next) => to = next,
                None if done == 0 => return None,
                None => break,
            }
        }
        Some(to)
    };
    match motion {
        Motion::Left => repeat(&|at| (at > line.start).then(|| prev(text, at))),
        Motion::Right => repeat(&|at| (at < line.end).then(|| next(text, at))),
        Motion::Up => lines_up(text, at, times).map(|start| column_of(text, at, start)),
        Motion::Down => lines_down(text, at, times).map(|start| column_of(text, at, start)),
        Motion::Word { big } => repeat(&|at| word(text, at, big)),
        Motion::Back { big } => repeat(&|at| back(text, at, big)),
        Motion::End { big } => repeat(&|at| end(text, at, big)),
        Motion::EndBack { big } => repeat(&|at| end_back(text, at, big)),
        Motion::LineStart => Some(line.start),
        Motion::FirstWord => Some(first_word(text, at)),
        Motion::LineEnd => {
            let start = if times > 1 { lines_down(text, at, times - 1)? } else { line.start };
            let line = line_at(text, start);
            Some(if line.is_empty() { line.end } else { prev(text, line.end) })
        }
        Motion::FirstBelow => lines_down(text, at, times).map(|start| first_word(text, start)),
        Motion::FirstAbove => lines_up(text, at, times).map(|start| first_word(text, start)),
        Motion::FirstHere if times == 1 => Some(first_word(text, at)),
        Motion::FirstHere => lines_down(text, at, times - 1).map(|start| first_word(text, start)),
        Motion::Column => {
            let columns = text[line.clone()].grapheme_indices(true).map(|(column, _)| line.start + column);
            Some(columns.take(times).last().unwrap_or(line.start))
        }
        Motion::Top => Some(first_word(text, nth_line(text, times))),
        Motion::Bottom => Some(first_word(text, count.map_or(text.len(), |count| nth_line(text, count)))),
        Motion::Find(find) => look_for(text, at, find, times, false),
        Motion::Again { reverse } => {
            let find = again?;
            look_for(text, at, Find { back: find.back != reverse, ..find }, times, true)
        }
        Motion::Bracket => bracket(text, at),
        Motion::Sentence { back } => repeat(&|at| sentence(text, at, back)),
        Motion::Paragraph { back } => repeat(&|at| paragraph(text, at, back)),
    }
}

/// The end of the word that is here: as `e`, but it stays where it is if it is on one already.
pub(super) fn end_of_word(text: &str, at: usize, big: bool) -> usize {
    let mut to = at;
    while next(text, to) < text.len() && class(text, next(text, to), big) == class(text, at, big) {
        to = next(text, to);
    }
    to
}

pub(super) fn next(text: &str, at: usize) -> usize {
    at + text[at..].graphemes(true).next().map_or(0, str::len)
}

pub(super) fn prev(text: &str, at: usize) -> usize {
    at - text[..at].graphemes(true).next_back().map_or(0, str::len)
}

/// The place where a cursor on characters rests: never behind the last one of a line.
pub(super) fn on_character(text: &str, at: usize) -> usize {
    let line = line_at(text, at);
    if at == line.end && !line.is_empty() { prev(text, at) } else { at }
}

pub(super) fn first_word(text: &str, at: usize) -> usize {
    let line = line_at(text, at);
    let blanks = text[line.clone()].find(|c: char| !c.is_whitespace());
    blanks.map_or_else(|| on_character(text, line.end), |blanks| line.start + blanks)
}

/// Starts of lines below and above.
pub(super) fn lines_down(text: &str, at: usize, count: usize) -> Option<usize> {
    let mut start = line_at(text, at).start;
    for done in 0..count {
        match text[start..].find('\n') {
            Some(newline) => start += newline + 1,
            None if done == 0 => return None,
            None => break,
        }
    }
    Some(start)
}

fn lines_up(text: &str, at: usize, count: usize) -> Option<usize> {
    let mut start = line_at(text, at).start;
    for done in 0..count {
        match start.checked_sub(1) {
            Some(newline) => start = line_at(text, newline).start,
            None if done == 0 => return None,
            None => break,
        }
    }
    Some(start)
}

fn nth_line(text: &str, number: usize) -> usize {
    match number.checked_sub(2) {
        None => 0,
        Some(nth) => text
            .match_indices('\n')
            .nth(nth)
            .or_else(|| text.match_indices('\n').next_back())
            .map_or(0, |(at, _)| at + 1),
    }
}

/// The place in another line that is as many graphemes from its start.
fn column_of(text: &str, at: usize, start: usize) -> usize {
    let column = text[line_at(text, at).start..at].graphemes(true).count();
    let line = line_at(text, start);
    line.start + text[line].graphemes(true).take(column).map(str::len).sum::<usize>()
}

fn blank_line(text: &str, at: usize) -> bool {
    line_at(text, at).is_empty()
}

/// What kind of character is here; words are runs of one kind. Blanks are 0, chips stand alone.
pub(super) fn class(text: &str, at: usize, big: bool) -> u32 {
    match text[at..].chars().next() {
        None => 0,
        Some(c) if c.is_whitespace() => 0,
        Some(c) if chip::index(c).is_some() => 100 + c as u32,
        Some(_) if big => 1,
        Some(c) => match c as u32 {
            0x3040..=0x309f => 3,
            0x30a0..=0x30ff => 4,
            0x3400..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff => 5,
            0xac00..=0xd7af => 6,
            _ if c.is_alphanumeric() || c == '_' => 1,
            0x2600..=0x27bf | 0x1_f000..=0x1_faff => 7,
            _ => 2,
        },
    }
}

fn word(text: &str, at: usize, big: bool) -> Option<usize> {
    if at >= text.len() {
        return None;
    }
    let start = class(text, at, big);
    let mut to = at;
    while start != 0 && to < text.len() && class(text, to, big) == start {
        to = next(text, to);
    }
    while to < text.len() && class(text, to, big) == 0 && (to == at || !blank_line(text, to)) {
        to = next(text, to);
    }
    Some(to)
}

fn back(text: &str, at: usize, big: bool) -> Option<usize> {
    let mut to = if at == 0 { return None } else { prev(text, at) };
    while to > 0 && class(text, to, big) == 0 && !blank_line(text, to) {
        to = prev(text, to);
    }
    if class(text, to, big) == 0 {
        return Some(to);
    }
    while to > 0 && class(text, prev(text, to), big) == class(text, to, big) {
        to = prev(text, to);
    }
    Some(to)
}

fn end(text: &str, at: usize, big: bool) -> Option<usize> {
    let mut to = next(text, at);
    while to < text.len() && class(text, to, big) == 0 {
        to = next(text, to);
    }
    if to < text.len() {
        return Some(end_of_word(text, to, big));
    }
    let last = on_character(text, text.len());
    (last > at).then_some(last)
}

fn end_back(text: &str, at: usize, big: bool) -> Option<usize> {
    let start = class(text, at, big);
    let mut to = at;
    while to > 0 && start != 0 && class(text, to, big) == start {
        to = prev(text, to);
    }
    if at == 0 {
        return None;
    }
    to = if start == 0 { prev(text, to) } else { to };
    while to > 0 && class(text, to, big) == 0 && !blank_line(text, to) {
        to = prev(text, to);
    }
    Some(to)
}

fn look_for(text: &str, at: usize, find: Find, times: usize, again: bool) -> Option<usize> {
    let line = line_at(text, at);
    // Repeated, `t` does not stop at the one next to it.
    let beside = again && find.till;
    let hit = |part: &str| part.starts_with(find.target);
    if find.back {
        let until = if beside && at > line.start { prev(text, at) } else { at };
        let mut found = text[line.start..until].grapheme_indices(true).rev().filter(|(_, part)| hit(part));
        let place = line.start + found.nth(times - 1)?.0;
        return Some(if find.till { next(text, place) } else { place });
    }
    let mut from = if at < line.end { next(text, at) } else { at };
    if beside && from < line.end {
        from = next(text, from);
    }
    let mut found = text[from..line.end].grapheme_indices(true).filter(|(_, part)| hit(part));
    let place = from + found.nth(times - 1)?.0;
    Some(if find.till { prev(text, place) } else { place })
}

const PAIRS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];

fn bracket(text: &str, at: usize) -> Option<usize> {
    let line = line_at(text, at);
    let is = |c: char| PAIRS.iter().any(|(open, close)| c == *open || c == *close);
    let from = at + text[at..line.end].find(is)?;
    let here = text[from..].chars().next()?;
    let (open, close) = *PAIRS.iter().find(|(open, close)| here == *open || here == *close)?;
    if here == open { closing(text, from, (open, close)) } else { opening(text, from, (open, close)) }
}

/// The bracket that closes the one at `from`.
pub(super) fn closing(text: &str, from: usize, (open, close): (char, char)) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text[from..].char_indices() {
        depth += usize::from(c == open);
        if c == close {
            depth -= 1;
            if depth == 0 {
                return Some(from + at);
            }
        }
    }
    None
}

/// The bracket that opens what is at `from`, which may be the closing one.
pub(super) fn opening(text: &str, from: usize, (open, close): (char, char)) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text[..from].char_indices().rev() {
        if c == close {
            depth += 1;
        } else if c == open {
            if depth == 0 {
                return Some(at);
            }
            depth -= 1;
        }
    }
    None
}

/// The start of the sentence here, or of the one before; or of the next one. Behind the last one is the end of the text.
fn sentence(text: &str, at: usize, back: bool) -> Option<usize> {
    let starts = sentences(text, back);
    let to = match back {
        true => starts.into_iter().rfind(|start| *start < at).unwrap_or(0),
        false => starts.into_iter().find(|start| *start > at).unwrap_or(text.len()),
    };
    (to != at).then_some(to)
}

/// Where sentences begin: behind a full stop or its like, with what closes behind it, and a blank; and at the nearer end of
/// a run of blank lines, and behind it.
fn sentences(text: &str, back: bool) -> Vec<usize> {
    let (mut starts, mut begins, mut at) = (Vec::new(), true, 0);
    while let Some(c) = text[at..].chars().next() {
        if c == '\n' && blank_line(text, at) {
            begins = true;
            let beside = if back { at + 1 } else { at.wrapping_sub(1) };
            if beside > text.len() || !blank_line(text, beside) {
                starts.push(at);
            }
        } else if !c.is_whitespace() && std::mem::take(&mut begins) {
            starts.push(at);
        }
        at += c.len_utf8();
        if matches!(c, '.' | '!' | '?') {
            let rest = text[at..].trim_start_matches([')', ']', '"', '\'']);
            if rest.chars().next().is_none_or(char::is_whitespace) {
                (begins, at) = (true, text.len() - rest.len());
            }
        }
    }
    starts
}

/// The blank line before or after the paragraph, or the edge of the text.
fn paragraph(text: &str, at: usize, back: bool) -> Option<usize> {
    let mut start = line_at(text, at).start;
    let mut inside = !blank_line(text, start);
    loop {
        let beside = if back { lines_up(text, start, 1) } else { lines_down(text, start, 1) };
        let Some(line) = beside else {
            let edge = if back { 0 } else { text.len() };
            return (edge != at).then_some(edge);
        };
        start = line;
        match blank_line(text, start) {
            true if inside => return Some(start),
            blank => inside |= !blank,
        }
    }
}
