//! The text under the cursor: graphemes, words, kill ring, grouped undo. Knows no keys and draws nothing.
//!
//! Not built on `tui_textarea`: that counts in `char`s, undoes one character a step and wraps the whole text at each key.
//! One-line fields (`field`) use it.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::chip::{Chip, Draft};
use super::layout;

/// Most states that undo goes back to, and most bytes of text that they hold together.
const UNDO_STEPS: usize = 1_000;
const UNDO_BYTES: usize = 8 << 20;
const KILLS: usize = 32;

/// What one step of the cursor or of a deletion covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Grapheme,
    Word,
    /// Up to white space, as Ctrl+W of a shell.
    Chunk,
    /// To the start or end of the line; at it, over the newline.
    Line,
    /// To the start or end of the text.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Back,
    Forward,
}

/// Consecutive edits of one kind are undone together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Typing,
    Deleting,
}

#[derive(Debug, Clone, PartialEq)]
struct State {
    text: String,
    cursor: usize,
}

/// A text with a cursor.
#[derive(Debug, Clone, Default)]
pub struct Editor {
    draft: Draft,
    /// Byte offset; always between graphemes.
    cursor: usize,
    /// Byte offset where the first visible row starts.
    top: usize,
    /// Column that Up and Down keep to.
    goal: Option<usize>,
    undo: Vec<State>,
    redo: Vec<State>,
    group: Option<Group>,
    /// All edits from here on belong to the state that was kept last.
    joined: bool,
    kills: Vec<Draft>,
    killing: bool,
    /// The last yank: what it covers and which kill it is.
    yanked: Option<(Range<usize>, usize)>,
    revision: u64,
}

impl Editor {
    pub fn text(&self) -> &str {
        &self.draft.text
    }

    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    pub fn chips(&self) -> &[Chip] {
        &self.draft.chips
    }

    /// Byte offset of the cursor.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn is_empty(&self) -> bool {
        self.draft.text.is_empty()
    }

    /// Changes with every edit.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Replaces everything as one step that can be undone; the cursor goes to the end.
    pub fn set(&mut self, draft: Draft) {
        self.joined = false;
        self.checkpoint(None);
        if draft.chips.is_empty() {
            // Older states may still name chips, so the list only grows.
            self.draft.text = draft.text;
        } else {
            self.draft.text.clear();
            self.cursor = 0;
            self.splice(0..0, &draft);
        }
        self.moved_to(self.draft.text.len());
        self.top = 0;
        self.revision += 1;
    }

    /// Takes the draft out and starts over: nothing is left to undo. The kill ring stays.
    pub fn take(&mut self) -> Draft {
        let kills = std::mem::take(&mut self.kills);
        let revision = self.revision + 1;
        std::mem::replace(self, Editor { kills, revision, ..Editor::default() }).draft
    }

    /// Inserts typed text.
    pub fn type_text(&mut self, text: &str) {
        let word_ends = text.chars().next().is_some_and(char::is_whitespace)
            && self.text()[..self.cursor].chars().next_back().is_some_and(|c| !c.is_whitespace());
        if word_ends {
            self.group = None;
        }
        self.checkpoint(Some(Group::Typing));
        self.put(text);
    }

    /// Inserts text as one step of its own.
    pub fn insert(&mut self, text: &str) {
        self.checkpoint(None);
        self.put(text);
    }

    /// Inserts a chip; as text when there are too many of them.
    pub fn insert_chip(&mut self, chip: Chip) {
        self.checkpoint(None);
        match self.draft.add(chip.clone()) {
            Some(c) => self.put(c.encode_utf8(&mut [0; 4])),
            None => match chip {
                Chip::Paste { text, .. } => self.put(&text),
                Chip::Image { picture, .. } => self.put(&picture.path.to_string_lossy()),
            },
        }
    }

    /// Puts a draft in front of what is there; the cursor stays at its place in the old text.
    pub fn put_before(&mut self, draft: &Draft) {
        self.checkpoint(None);
        let cursor = self.cursor;
        let old = self.text().len();
        if !self.is_empty() {
            self.draft.text.insert(0, '\n');
        }
        self.splice(0..0, draft);
        let grown = self.text().len() - old;
        self.moved_to(if old == 0 { self.text().len() } else { cursor + grown });
        self.revision += 1;
    }

    /// Replaces a range that lies on grapheme boundaries; the cursor goes behind it.
    pub fn replace(&mut self, range: Range<usize>, text: &str) {
        self.checkpoint(None);
        self.draft.text.replace_range(range.clone(), text);
        self.moved_to(range.start + text.len());
        self.revision += 1;
    }

    /// Inserts a part of a draft, this one or another.
    pub fn insert_draft(&mut self, draft: &Draft) {
        self.checkpoint(None);
        let cursor = self.cursor;
        let old = self.text().len();
        self.splice(cursor..cursor, draft);
        self.moved_to(cursor + self.text().len() - old);
        self.revision += 1;
    }

    /// Makes one step of undo of all edits until `part`.
    pub fn join(&mut self) {
        if !std::mem::replace(&mut self.joined, true) {
            self.keep();
        }
    }

    /// Ends what `join` began.
    pub fn part(&mut self) {
        self.pause();
        if std::mem::take(&mut self.joined) && self.undo.last().is_some_and(|state| state.text == self.draft.text) {
            self.undo.pop();
        }
    }

    /// Moves the cursor to a place between graphemes.
    pub fn go(&mut self, to: usize) {
        self.pause();
        self.moved_to(to);
    }

    /// From behind the last character of a line onto it; the column of Up and Down stays.
    pub fn rest(&mut self) {
        let line = layout::line_at(self.text(), self.cursor);
        if self.cursor == line.end && !line.is_empty() {
            let goal = self.goal;
            self.moved_to(self.target(Unit::Grapheme, Way::Back));
            self.goal = goal;
        }
    }

    /// From the last character of a line behind it, where Up and Down keep to the ends. False: they do not.
    pub fn rest_at_end(&mut self) -> bool {
        let aims = self.goal == Some(usize::MAX);
        let end = layout::line_at(self.text(), self.cursor).end;
        if aims && self.target(Unit::Grapheme, Way::Forward) == end {
            self.moved_to(end);
            self.aim_at_ends();
        }
        aims
    }

    /// Up and Down keep to the ends of the lines from here on.
    pub fn aim_at_ends(&mut self) {
        self.goal = Some(usize::MAX);
    }

    /// Moves the cursor. False when it was at the end already.
    pub fn step(&mut self, unit: Unit, way: Way) -> bool {
        self.pause();
        let to = self.target(unit, way);
        let moved = to != self.cursor;
        self.moved_to(to);
        moved
    }

    /// To the start or end of the line, without crossing it.
    pub fn line_edge(&mut self, way: Way) {
        self.pause();
        let line = layout::line_at(self.text(), self.cursor);
        self.moved_to(if way == Way::Back { line.start } else { line.end });
    }

    /// One visual row up or down at this width. False at the edge.
    pub fn row(&mut self, way: Way, width: usize) -> bool {
        self.pause();
        let text = &self.draft.text;
        let chips = &self.draft.chips;
        let (rows, at) = layout::rows_at(text, self.cursor, width, chips);
        let goal = self.goal.unwrap_or_else(|| layout::column(text, &rows[at], self.cursor, chips));
        let (line, row) = match way {
            Way::Back if at > 0 => (rows, at - 1),
            Way::Forward if at + 1 < rows.len() => (rows, at + 1),
            Way::Back if rows[0].start > 0 => {
                let above = layout::rows_at(text, rows[0].start - 1, width, chips).0;
                let last = above.len() - 1;
                (above, last)
            }
            Way::Forward if rows.last().is_some_and(|row| row.end < text.len()) => {
                (layout::rows_at(text, rows[at].end.max(rows[rows.len() - 1].end) + 1, width, chips).0, 0)
            }
            _ => return false,
        };
        let to = layout::at_column(text, &line[row], goal, row + 1 == line.len(), chips);
        self.moved_to(to);
        self.goal = Some(goal);
        true
    }

    /// The same for a cursor that rests on characters: an empty row behind a full one does not count.
    pub fn row_of_characters(&mut self, way: Way, width: usize) -> bool {
        let (start, goal) = (self.cursor, self.goal);
        loop {
            if !self.row(way, width) {
                self.moved_to(start);
                self.goal = goal;
                return false;
            }
            let (rows, at) = layout::rows_at(self.text(), self.cursor, width, self.chips());
            if at == 0 || !rows[at].is_empty() {
                self.rest();
                return true;
            }
        }
    }

    /// Deletes without keeping it.
    pub fn delete(&mut self, unit: Unit, way: Way) {
        let to = self.target(unit, way);
        if to != self.cursor {
            self.checkpoint(Some(Group::Deleting));
            self.cut_to(to);
        }
    }

    /// Deletes into the kill ring; kills in a row become one entry.
    pub fn kill(&mut self, unit: Unit, way: Way) {
        let to = self.target(unit, way);
        if to == self.cursor {
            return;
        }
        let more = self.killing && !self.kills.is_empty();
        self.checkpoint(None);
        let cut = self.draft.part(to.min(self.cursor)..to.max(self.cursor));
        self.cut_to(to);
        match (more, self.kills.last_mut(), way) {
            (true, Some(last), Way::Back) => *last = cut.followed_by(last),
            (true, Some(last), Way::Forward) => *last = std::mem::take(last).followed_by(&cut),
            _ => {
                self.kills.push(cut);
                if self.kills.len() > KILLS {
                    self.kills.remove(0);
                }
            }
        }
        self.killing = true;
    }

    /// Inserts the last kill.
    pub fn yank(&mut self) {
        let Some(kill) = self.kills.last().cloned() else { return };
        let start = self.cursor;
        self.insert_draft(&kill);
        self.yanked = Some((start..self.cursor, self.kills.len() - 1));
    }

    /// Right after a yank: puts the kill before it in its place.
    pub fn yank_pop(&mut self) {
        let Some((range, at)) = self.yanked.clone() else { return };
        let at = at.checked_sub(1).unwrap_or(self.kills.len() - 1);
        let kill = self.kills[at].clone();
        self.checkpoint(None);
        let left = self.text().len() - range.len();
        self.splice(range.clone(), &kill);
        self.moved_to(range.start + self.text().len() - left);
        self.revision += 1;
        self.yanked = Some((range.start..self.cursor, at));
    }

    pub fn undo(&mut self) {
        self.part();
        if let Some(state) = self.undo.pop() {
            let now = self.swap(state);
            self.redo.push(now);
        }
    }

    pub fn redo(&mut self) {
        self.part();
        if let Some(state) = self.redo.pop() {
            let now = self.swap(state);
            self.undo.push(now);
        }
    }

    /// Scrolls so that the cursor is within `height` rows, and no row is left empty without need.
    pub fn settle(&mut self, width: usize, height: usize) {
        let (text, chips) = (&self.draft.text, &self.draft.chips);
        let height = height.max(1);
        let above = layout::up(text, self.cursor, width, chips, height);
        let top = if self.top > above[0] {
            above[0]
        } else if above.contains(&self.top) {
            self.top
        } else {
            above[above.len() - 1]
        };
        let below = layout::down(text, top, width, chips, height).len();
        let lift = layout::up(text, top, width, chips, height - below + 1);
        self.top = lift[lift.len() - 1];
    }

    /// The rows to draw, as offsets into the text, and row and column of the cursor among them.
    pub fn visible(&self, width: usize, height: usize) -> (Vec<Range<usize>>, (usize, usize)) {
        let (text, chips) = (self.text(), self.chips());
        let rows = layout::down(text, self.top.min(text.len()), width, chips, height.max(1));
        let row = rows.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0);
        let column = layout::column(text, &rows[row], self.cursor, chips);
        (rows, (row, column.min(width.saturating_sub(1))))
    }

    /// Rows that the text needs, counted up to `most`.
    pub fn height(&self, width: usize, most: usize) -> usize {
        layout::down(self.text(), 0, width, self.chips(), most.max(1)).len()
    }

    fn put(&mut self, text: &str) {
        self.draft.text.insert_str(self.cursor, text);
        self.moved_to(self.cursor + text.len());
        self.revision += 1;
    }

    /// Inserts another draft's text; its chips get new characters here.
    fn splice(&mut self, range: Range<usize>, from: &Draft) {
        self.draft.text.replace_range(range.clone(), "");
        self.draft.splice(range.start, from);
    }

    fn cut_to(&mut self, to: usize) {
        let range = to.min(self.cursor)..to.max(self.cursor);
        self.draft.text.replace_range(range.clone(), "");
        self.moved_to(range.start);
        self.revision += 1;
    }

    fn moved_to(&mut self, at: usize) {
        let text = &self.draft.text;
        let at = at.min(text.len());
        // An edit may have joined what stood on both sides of the cursor into one grapheme.
        let mut cursor = GraphemeCursor::new(at, text.len(), true);
        self.cursor = match cursor.is_boundary(text, 0) {
            Ok(false) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
            _ => at,
        };
        self.goal = None;
        self.top = if self.top > text.len() || !text.is_char_boundary(self.top) { 0 } else { self.top };
    }

    /// Ends a group of edits, a run of kills and the right to yank-pop.
    fn pause(&mut self) {
        self.group = None;
        self.killing = false;
        self.yanked = None;
    }

    /// Keeps the state before an edit, unless the edit continues with the group of the last one.
    fn checkpoint(&mut self, group: Option<Group>) {
        let goes_on = group.is_some() && group == self.group;
        self.pause();
        self.group = group;
        self.redo.clear();
        if !goes_on && !self.joined {
            self.keep();
        }
    }

    fn keep(&mut self) {
        self.undo.push(State { text: self.draft.text.clone(), cursor: self.cursor });
        let mut bytes: usize = self.undo.iter().map(|state| state.text.len()).sum();
        let mut drop = self.undo.len().saturating_sub(UNDO_STEPS);
        bytes -= self.undo[..drop].iter().map(|state| state.text.len()).sum::<usize>();
        while bytes > UNDO_BYTES && drop + 1 < self.undo.len() {
            bytes -= self.undo[drop].text.len();
            drop += 1;
        }
        self.undo.drain(..drop);
    }

    fn swap(&mut self, state: State) -> State {
        self.pause();
        let cursor = std::mem::replace(&mut self.cursor, 0);
        let text = std::mem::replace(&mut self.draft.text, state.text);
        self.moved_to(state.cursor);
        self.revision += 1;
        State { text, cursor }
    }

    fn target(&self, unit: Unit, way: Way) -> usize {
        let (before, after) = self.text().split_at(self.cursor);
        let at = self.cursor;
        match (unit, way) {
            (Unit::Grapheme, Way::Back) => at - before.graphemes(true).next_back().map_or(0, str::len),
            (Unit::Grapheme, Way::Forward) => at + after.graphemes(true).next().map_or(0, str::len),
            (Unit::Word, Way::Back) => {
                before.split_word_bound_indices().rev().find(|(_, word)| is_word(word)).map_or(0, |(start, _)| start)
            }
            (Unit::Word, Way::Forward) => after
                .split_word_bound_indices()
                .find(|(_, word)| is_word(word))
                .map_or(self.text().len(), |(start, word)| at + start + word.len()),
            (Unit::Chunk, Way::Back) => {
                let trimmed = before.trim_end();
                trimmed.char_indices().rfind(|(_, c)| c.is_whitespace()).map_or(0, |(i, c)| i + c.len_utf8())
            }
            (Unit::Chunk, Way::Forward) => {
                let gap = after.len() - after.trim_start().len();
                after[gap..].find(char::is_whitespace).map_or(self.text().len(), |end| at + gap + end)
            }
            (Unit::Line, Way::Back) => match layout::line_at(self.text(), at).start {
                start if start == at => at.saturating_sub(1),
                start => start,
            },
            (Unit::Line, Way::Forward) => match layout::line_at(self.text(), at).end {
                end if end == at => (at + 1).min(self.text().len()),
                end => end,
            },
            (Unit::All, Way::Back) => 0,
            (Unit::All, Way::Forward) => self.text().len(),
        }
    }
}

fn is_word(part: &str) -> bool {
    part.chars().any(|c| c.is_alphanumeric() || super::chip::index(c).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs single-letter operations on a text; `|` is the cursor in both.
    fn check(start: &str, operations: &str, want: &str) {
        let mut editor = Editor::default();
        editor.insert(&start.replace('|', ""));
        editor.cursor = start.find('|').unwrap_or(start.len());
        for operation in operations.split_whitespace() {
            match operation {
                "left" => drop(editor.step(Unit::Grapheme, Way::Back)),
                "right" => drop(editor.step(Unit::Grapheme, Way::Forward)),
                "wleft" => drop(editor.step(Unit::Word, Way::Back)),
                "wright" => drop(editor.step(Unit::Word, Way::Forward)),
                "home" => editor.line_edge(Way::Back),
                "end" => editor.line_edge(Way::Forward),
                "up" => drop(editor.row(Way::Back, 10)),
                "down" => drop(editor.row(Way::Forward, 10)),
                "bs" => editor.delete(Unit::Grapheme, Way::Back),
                "del" => editor.delete(Unit::Grapheme, Way::Forward),
                "^w" => editor.kill(Unit::Chunk, Way::Back),
                "^k" => editor.kill(Unit::Line, Way::Forward),
                "^u" => editor.kill(Unit::Line, Way::Back),
                "M-d" => editor.kill(Unit::Word, Way::Forward),
                "M-bs" => editor.kill(Unit::Word, Way::Back),
                "^y" => editor.yank(),
                "M-y" => editor.yank_pop(),
                "undo" => editor.undo(),
                "redo" => editor.redo(),
                "_" => editor.type_text(" "),
                typed => typed.graphemes(true).for_each(|grapheme| editor.type_text(grapheme)),
            }
        }
        let mut got = editor.text().to_owned();
        got.insert(editor.cursor, '|');
        assert_eq!(got, want, "{start:?} {operations}");
    }

    #[test]
    fn moves_and_deletes_whole_graphemes() {
        check("a👩‍👩‍👧|b", "bs", "a|b");
        check("a|👩‍👩‍👧b", "del", "a|b");
        check("🇩🇪🇫🇷|", "bs", "🇩🇪|");
        check("cafe\u{301}|", "bs", "caf|");
        check("👍🏽x|", "left left", "|👍🏽x");
        check("日本|", "left", "日|本");
        check("|", "bs del left right", "|");
    }

    #[test]
    fn moves_by_words_lines_and_rows() {
        check("one two-three|", "wleft", "one two-|three");
        check("|one two", "wright wright", "one two|");
        check("日本語|", "wleft", "日本|語");
        check("one\ntwo|", "home left", "one|\ntwo");
        check("one\ntw|o", "up", "on|e\ntwo");
        check("lon|ger\na\nlonger", "down down", "longer\na\nlon|ger");
        check("word word wo|rd", "up", "wo|rd word word");
        check("日本語\nabcde|", "up", "日本|語\nabcde");
        check("one|", "up", "one|");
        check("ab\n\n|c", "up up", "|ab\n\nc");
    }

    #[test]
    fn kills_and_yanks() {
        check("git commit -m|", "^w ^w ^y", "git commit -m|");
        check("one two|", "^u left ^y", "one two|");
        check("a|b\nc", "^k ^k", "a|c");
        check("one |two three", "M-d", "one | three");
        check("one two|", "M-bs _ x", "one  x|");
        check("a b|", "^w left ^w ^y M-y", "b| ");
        check("|x", "^y M-y", "|x");
    }

    #[test]
    fn undo_goes_by_words_and_runs() {
        check("|", "one _ two undo", "one|");
        check("|", "one _ two undo undo", "|");
        check("|", "one _ two undo undo redo redo", "one two|");
        check("one|", "bs bs undo", "one|");
        check("one two|", "^w x undo undo redo", "one |");
        check("|", "a undo b redo", "b|");
    }

    #[test]
    fn the_window_follows_the_cursor() {
        let mut editor = Editor::default();
        editor.insert("1\n2\n3\n4\n5");
        editor.settle(10, 3);
        let text = |editor: &Editor| {
            let (rows, (row, column)) = editor.visible(10, 3);
            let rows: Vec<&str> = rows.into_iter().map(|row| &editor.text()[row]).collect();
            format!("{} @{row},{column}", rows.join(","))
        };
        assert_eq!(text(&editor), "3,4,5 @2,1");
        editor.row(Way::Back, 10);
        editor.settle(10, 3);
        assert_eq!(text(&editor), "3,4,5 @1,1");
        for _ in 0..3 {
            editor.row(Way::Back, 10);
            editor.settle(10, 3);
        }
        assert_eq!(text(&editor), "1,2,3 @0,1");
        editor.step(Unit::All, Way::Forward);
        editor.delete(Unit::Line, Way::Back);
        editor.delete(Unit::Line, Way::Back);
        editor.settle(10, 3);
        assert_eq!(text(&editor), "2,3,4 @2,1");
    }

    #[test]
    fn drafts_join_without_losing_chips() {
        let mut sent = Editor::default();
        sent.insert_chip(Chip::Paste { text: "long".into(), lines: 99 });
        let sent = sent.take();
        let mut editor = Editor::default();
        editor.insert_chip(Chip::Image {
            picture: super::super::chip::Picture { path: "a.png".into(), bytes: 1 },
            number: 1,
        });
        editor.type_text("typed");
        editor.put_before(&sent);
        assert_eq!(editor.draft().expanded(), "long\n[Image 1]typed");
        assert_eq!(editor.cursor(), editor.text().len());
        editor.undo();
        assert_eq!(editor.draft().expanded(), "[Image 1]typed");
    }
}
