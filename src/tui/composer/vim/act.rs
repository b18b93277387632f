//! Runs commands on the editor.

use super::keys::{Action, Command, Operator, Place, Target};
use super::motions::{Motion, Reach, class, end_of_word, first_word, lines_down, next, on_character, prev, target};
use super::objects::{self, Region};
use super::{Change, Draft, Editor, Mode, Outcome, Register, Vim, bounded, line_at, overwrite};
use crate::tui::composer::editor::Way;
use crate::tui::keymap;
use unicode_segmentation::UnicodeSegmentation;

/// What `>` puts before a line.
const INDENT: &str = "  ";

impl Vim {
    pub(super) fn run(&mut self, command: Command, editor: &mut Editor, width: usize) -> Outcome {
        let times = command.count.unwrap_or(1);
        match command.action {
            Action::Move(motion) => return self.move_to(motion, command.count, editor, width),
            Action::Select { lines } => {
                let (anchor, revision) = (editor.cursor(), editor.revision());
                self.mode = match self.mode {
                    Mode::Visual { lines: before, .. } if before == lines => Mode::Normal,
                    Mode::Visual { anchor, revision, .. } => Mode::Visual { anchor, lines, revision },
                    _ => Mode::Visual { anchor, lines, revision },
                };
            }
            Action::SelectObject(object) => {
                if let Some(region) = objects::find(editor.text(), editor.cursor(), object, times)
                    && !region.range.is_empty()
                {
                    let (anchor, revision) = (region.range.start, editor.revision());
                    let lines = region.lines && object.shape != objects::Shape::Sentence;
                    self.mode = Mode::Visual { anchor, lines, revision };
                    editor.go(prev(editor.text(), region.range.end));
                }
            }
            Action::OtherEnd => {
                if let Mode::Visual { anchor, .. } = &mut self.mode {
                    let to = std::mem::replace(anchor, editor.cursor());
                    editor.go(to);
                }
            }
            Action::Undo => (0..times).for_each(|_| editor.undo()),
            Action::Redo => (0..times).for_each(|_| editor.redo()),
            Action::Repeat => self.repeat(command.count, editor),
            Action::Search => return Outcome::As(keymap::Action::SearchHistory),
            _ => self.change(command, editor),
        }
        Outcome::Handled
    }

    fn move_to(&mut self, motion: Motion, count: Option<usize>, editor: &mut Editor, width: usize) -> Outcome {
        if let Motion::Up | Motion::Down = motion {
            let (way, action) = match motion {
                Motion::Up => (Way::Back, keymap::Action::Up),
                _ => (Way::Forward, keymap::Action::Down),
            };
            let start = editor.cursor();
            for _ in 0..count.unwrap_or(1) {
                if !editor.row_of_characters(way, width) {
                    break;
                }
            }
            // At the edge of the text it continues in the history, but nothing selected is left for that.
            let recalls = editor.cursor() == start && self.mode == Mode::Normal;
            return if recalls { Outcome::As(action) } else { Outcome::Handled };
        }
        if let Motion::Find(find) = motion {
            self.found = Some(find);
        }
        if let Some(to) = target(editor.text(), editor.cursor(), motion, count, self.found) {
            editor.go(to);
            if motion == Motion::LineEnd {
                editor.aim_at_ends();
            }
        }
        Outcome::Handled
    }

    /// Makes a change as one step of undo; an insertion ends it when it ends.
    fn change(&mut self, command: Command, editor: &mut Editor) {
        let repeatable = self.repeatable(command, editor);
        editor.join();
        let done = self.apply(command, editor);
        if matches!(self.mode, Mode::Visual { .. }) {
            self.mode = Mode::Normal;
        }
        let reads = matches!(command.action, Action::Operate(Operator::Yank, _));
        if done && !reads {
            self.last = Some(Change { command: repeatable, typed: Draft::default() });
        }
        if !self.writes() {
            editor.part();
        }
    }

    /// What `.` does after this: on as much text as is selected now.
    fn repeatable(&self, command: Command, editor: &Editor) -> Command {
        let Mode::Visual { lines, .. } = self.mode else { return command };
        let selected = self.selected(editor).map(|range| &editor.text()[range]).unwrap_or_default();
        let whole = lines || matches!(command.action, Action::Operate(_, Target::SelectedLines));
        let size = match whole {
            true => Target::Rows(selected.matches('\n').count() + 1),
            false => Target::Graphemes(selected.graphemes(true).count()),
        };
        let action = match command.action {
            Action::Operate(operator, _) => Action::Operate(operator, size),
            Action::Replace(c, _) => Action::Replace(c, size),
            Action::Join { blank, .. } => Action::Join { blank, target: size },
            action => action,
        };
        Command { action, ..command }
    }

    fn repeat(&mut self, count: Option<usize>, editor: &mut Editor) {
        let Some(Change { mut command, typed }) = self.last.clone() else { return };
        command.count = count.or(command.count);
        self.change(command, editor);
        match &mut self.mode {
            Mode::Insert => {
                editor.insert_draft(&typed);
                self.leave(editor);
            }
            Mode::Overwrite { under } => {
                for part in typed.text.graphemes(true) {
                    under.push(overwrite(editor, part));
                }
                self.leave(editor);
            }
            Mode::Normal | Mode::Visual { .. } => {}
        }
    }

    /// False when it could not be done.
    fn apply(&mut self, command: Command, editor: &mut Editor) -> bool {
        let Command { count, register, action } = command;
        let times = count.unwrap_or(1);
        match action {
            Action::Operate(operator, target) => match self.region(editor, operator, target, count) {
                Some(region) => {
                    self.operate((operator, target), region, register, times, editor);
                    true
                }
                None => false,
            },
            Action::Insert(place) => {
                self.insert(place, times, editor);
                true
            }
            Action::Overwrite => {
                self.mode = Mode::Overwrite { under: Vec::new() };
                true
            }
            Action::Put { before } => self.put(before, register, times, editor),
            Action::Replace(c, target) => self.replace(c, target, count, editor),
            Action::Join { blank, target } => self.join_lines(blank, target, count, editor),
            _ => false,
        }
    }

    fn insert(&mut self, place: Place, times: usize, editor: &mut Editor) {
        let (text, at) = (editor.text(), editor.cursor());
        let line = line_at(text, at);
        match place {
            Place::Here => {}
            Place::Behind if at < line.end => editor.go(next(text, at)),
            Place::Behind => {}
            Place::FirstWord => {
                let blanks = text[line.clone()].len() - text[line.clone()].trim_start().len();
                editor.go(line.start + blanks);
            }
            Place::LineEnd => editor.go(line.end),
            Place::LineBelow => editor.replace(line.end..line.end, "\n"),
            Place::LineAbove => {
                editor.replace(line.start..line.start, "\n");
                editor.go(line.start);
            }
        }
        self.enter(editor, times, matches!(place, Place::LineBelow | Place::LineAbove));
    }

    /// What a target covers; none when there is nothing.
    fn region(&mut self, editor: &Editor, operator: Operator, of: Target, count: Option<usize>) -> Option<Region> {
        let (text, at) = (editor.text(), editor.cursor());
        let times = count.unwrap_or(1);
        let rows = |count: usize| {
            let last = lines_down(text, at, count - 1).unwrap_or(at);
            Some(Region { range: line_at(text, at).start..line_at(text, last).end, lines: true })
        };
        match of {
            // From the last line there is no way down.
            Target::Lines if times > 1 && line_at(text, at).end == text.len() => None,
            Target::Lines => rows(times),
            Target::Rows(count) => rows(count.max(1)),
            Target::Graphemes(count) => {
                let part: usize = text[at..].graphemes(true).take(count).map(str::len).sum();
                Some(Region { range: at..at + part, lines: false })
            }
            Target::Selection => {
                let Mode::Visual { lines, .. } = self.mode else { return None };
                Some(Region { range: self.selected(editor)?, lines })
            }
            Target::SelectedLines => {
                let selected = self.selected(editor)?;
                let last = line_at(text, prev(text, selected.end).max(selected.start));
                Some(Region { range: line_at(text, selected.start).start..last.end, lines: true })
            }
            Target::Object(object) => objects::find(text, at, object, times),
            Target::Motion(motion) => {
                if let Motion::Find(find) = motion {
                    self.found = Some(find);
                }
                let region = self.passed(text, at, operator, motion, count)?;
                (!region.range.is_empty() || region.lines || operator == Operator::Change).then_some(region)
            }
        }
    }

    /// What a motion passes over.
    fn passed(
        &self,
        text: &str,
        at: usize,
        operator: Operator,
        motion: Motion,
        count: Option<usize>,
    ) -> Option<Region> {
        let times = count.unwrap_or(1);
        let line = line_at(text, at);
        let chars = |range| Some(Region { range, lines: false });
        if line.is_empty() && matches!(motion, Motion::Right | Motion::Left | Motion::LineEnd) && times == 1 {
            return chars(at..at);
        }
        if let Motion::Word { big } = motion {
            // `cw` leaves the blanks behind a word alone.
            if operator == Operator::Change && class(text, at, big) != 0 {
                let first = end_of_word(text, at, big);
                let last = match times {
                    1 => first,
                    _ => target(text, first, Motion::End { big }, Some(times - 1), None).unwrap_or(first),
                };
                return chars(at..next(text, last));
            }
            let to = target(text, at, motion, count, None)?;
            let last = if times == 1 { at } else { target(text, at, motion, Some(times - 1), None)? };
            // The last word that it passes keeps its line's end; an empty line is one.
            if operator != Operator::Change && line_at(text, last).is_empty() {
                return Some(Region::up_to(text, at..next(text, last)));
            }
            let end = text[last..to].find('\n').map_or(to, |newline| last + newline);
            return chars(at..end);
        }
        let again = match motion {
            Motion::Again { .. } => self.found,
            _ => None,
        };
        // On the last character there is no further end of a word: it is this one.
        let here = matches!(motion, Motion::End { .. }) && at < text.len();
        let to = target(text, at, motion, count, again).or(here.then_some(at))?;
        let (from, to) = (at.min(to), at.max(to));
        let reach = match (motion, again) {
            (Motion::Again { reverse }, Some(find)) if find.back == reverse => Reach::Inclusive,
            _ => motion.reach(),
        };
        match reach {
            Reach::Lines => Some(Region { range: line_at(text, from).start..line_at(text, to).end, lines: true }),
            Reach::Inclusive => chars(from..next(text, to)),
            Reach::Exclusive => Some(Region::up_to(text, from..to)),
        }
    }

    fn operate(
        &mut self,
        (operator, of): (Operator, Target),
        mut region: Region,
        register: Option<char>,
        times: usize,
        editor: &mut Editor,
    ) {
        let (text, at) = (editor.text(), editor.cursor());
        // What is selected up to the end of a line does not mean the next one.
        if !region.lines && text[region.range.clone()].ends_with('\n') && operator.is_of_lines() {
            region.range.end -= 1;
        }
        region.lines |= operator.is_of_lines();
        if region.lines {
            region.range = line_at(text, region.range.start).start..line_at(text, region.range.end).end;
        }
        let Region { range, lines } = region;
        let here = lines && line_at(text, range.start).contains(&at) && !matches!(self.mode, Mode::Visual { .. });
        match operator {
            Operator::Yank => {
                self.keep(register, editor, &range, lines, true);
                editor.go(if here { at } else { range.start });
            }
            Operator::Delete => {
                self.keep(register, editor, &range, lines, false);
                self.delete(range, lines, editor);
            }
            Operator::Change => {
                self.keep(register, editor, &range, lines, false);
                editor.replace(range, "");
                self.enter(editor, 1, false);
            }
            Operator::Indent | Operator::Outdent => {
                let deep = if matches!(of, Target::Selection | Target::Rows(_)) { times.min(100) } else { 1 };
                let moved: Vec<String> =
                    text[range.clone()].split('\n').map(|line| indented(line, operator, deep)).collect();
                let start = range.start;
                editor.replace(range, &moved.join("\n"));
                editor.go(first_word(editor.text(), start));
            }
            Operator::Toggle | Operator::Lower | Operator::Upper => {
                let changed: String = text[range.clone()].chars().map(|c| operator.cased(c)).collect();
                let start = range.start;
                editor.replace(range, &changed);
                // `~` continues.
                let goes_on = operator == Operator::Toggle && of == Target::Motion(Motion::Right);
                if !goes_on {
                    editor.go(match of {
                        Target::Lines => first_word(editor.text(), start).min(at),
                        _ if here => at,
                        _ => start,
                    });
                }
            }
        }
    }

    /// Takes a part out; the cursor goes where it was.
    fn delete(&self, range: std::ops::Range<usize>, lines: bool, editor: &mut Editor) {
        if !lines {
            return editor.replace(range, "");
        }
        let text = editor.text();
        let range = match (range.end < text.len(), range.start > 0) {
            (true, _) => range.start..range.end + 1,
            (false, true) => range.start - 1..range.end,
            (false, false) => range,
        };
        let start = range.start;
        editor.replace(range, "");
        // At the end, the newline before the lines went with them.
        let text = editor.text();
        let line = if start >= text.len() { line_at(text, text.len()).start } else { start };
        editor.go(first_word(text, line));
    }

    /// Fills registers as vim does: yanks go to 0, lines to 1 and onwards, less to the minus.
    fn keep(&mut self, name: Option<char>, editor: &Editor, range: &std::ops::Range<usize>, lines: bool, yanked: bool) {
        let new = Register { draft: editor.draft().part(range.clone()), lines };
        match name {
            Some('_') => return,
            Some(large @ 'A'..='Z') => {
                let register = self.registers.entry(large.to_ascii_lowercase()).or_default();
                let mut draft = std::mem::take(&mut register.draft);
                if !draft.text.is_empty() && (lines || register.lines) {
                    draft.text.push('\n');
                }
                register.draft = draft.followed_by(&new.draft);
                register.lines |= lines;
                let all = register.clone();
                self.registers.insert('"', all);
                return;
            }
            Some(name) => drop(self.registers.insert(name, new.clone())),
            None if yanked => drop(self.registers.insert('0', new.clone())),
            None if lines || new.draft.text.contains('\n') => {
                for number in ('2'..='9').rev() {
                    let before = char::from(number as u8 - 1);
                    if let Some(register) = self.registers.remove(&before) {
                        self.registers.insert(number, register);
                    }
                }
                self.registers.insert('1', new.clone());
            }
            None => drop(self.registers.insert('-', new.clone())),
        }
        self.registers.insert('"', new);
    }

    fn put(&mut self, before: bool, name: Option<char>, times: usize, editor: &mut Editor) -> bool {
        let name = name.unwrap_or('"').to_ascii_lowercase();
        let Some(Register { draft, lines }) = self.registers.get(&name).cloned() else { return false };
        let times = bounded(times, draft.text.len());
        let mut all = draft.clone();
        for _ in 1..times {
            if lines {
                all.text.push('\n');
            }
            all = all.followed_by(&draft);
        }
        if let Some(selected) = self.selected(editor) {
            let whole = matches!(self.mode, Mode::Visual { lines: true, .. });
            // What is replaced can be put elsewhere, unless `P` says otherwise.
            if !before {
                self.keep(None, editor, &selected, whole, false);
            }
            if lines && !whole {
                all.text.insert(0, '\n');
                all.text.push('\n');
            }
            let start = selected.start;
            editor.replace(selected, "");
            editor.insert_draft(&all);
            let end = editor.cursor();
            editor.go(match (lines, whole) {
                (true, _) => first_word(editor.text(), (start + usize::from(!whole)).min(end)),
                (false, true) => start,
                (false, false) => prev(editor.text(), end).max(start),
            });
            return true;
        }
        let (text, at) = (editor.text(), editor.cursor());
        let line = line_at(text, at);
        if lines {
            let start = if before { line.start } else { line.end + 1 };
            let place = if before { line.start } else { line.end };
            if before {
                all.text.push('\n')
            } else {
                all.text.insert(0, '\n')
            }
            editor.go(place);
            editor.insert_draft(&all);
            editor.go(first_word(editor.text(), start));
            return true;
        }
        let place = if before || at == line.end { at } else { next(text, at) };
        editor.go(place);
        editor.insert_draft(&all);
        let end = editor.cursor();
        editor.go(if all.text.contains('\n') { place } else { prev(editor.text(), end).max(place) });
        true
    }

    fn replace(&mut self, c: char, of: Target, count: Option<usize>, editor: &mut Editor) -> bool {
        let Some(region) = self.region(editor, Operator::Upper, of, count) else { return false };
        let old = &editor.text()[region.range.clone()];
        if matches!(of, Target::Motion(_)) && old.graphemes(true).count() < count.unwrap_or(1) {
            return false;
        }
        let new: String =
            old.graphemes(true).map(|part| if part == "\n" { "\n".to_owned() } else { c.to_string() }).collect();
        let (start, moved) = (region.range.start, matches!(of, Target::Motion(_)));
        editor.replace(region.range, &new);
        let end = editor.cursor();
        editor.go(if moved { prev(editor.text(), end) } else { start });
        true
    }

    fn join_lines(&mut self, blank: bool, of: Target, count: Option<usize>, editor: &mut Editor) -> bool {
        let joins = match of {
            Target::Lines => count.unwrap_or(2).max(2) - 1,
            of => {
                let Some(region) = self.region(editor, Operator::Upper, of, count) else { return false };
                let selected = &editor.text()[region.range.clone()];
                let newlines = selected.strip_suffix('\n').unwrap_or(selected).matches('\n').count();
                editor.go(region.range.start);
                newlines.max(1)
            }
        };
        let mut joined = false;
        for _ in 0..joins {
            let text = editor.text();
            let end = line_at(text, editor.cursor()).end;
            if end == text.len() {
                break;
            }
            let below = &text[line_at(text, end + 1)];
            let rest = if blank { below.trim_start() } else { below };
            let above = &text[line_at(text, end)];
            let gap = blank
                && !rest.is_empty()
                && !rest.starts_with(')')
                && !above.is_empty()
                && !above.ends_with(char::is_whitespace);
            let until = end + 1 + below.len() - rest.len();
            editor.replace(end..until, if gap { " " } else { "" });
            editor.go(if gap { end } else { on_character(editor.text(), end) });
            joined = true;
        }
        joined
    }
}

fn indented(line: &str, operator: Operator, deep: usize) -> String {
    if operator == Operator::Indent {
        return if line.is_empty() { String::new() } else { INDENT.repeat(deep) + line };
    }
    let mut rest = line;
    for _ in 0..deep {
        let blanks = rest.bytes().take(INDENT.len()).take_while(|byte| *byte == b' ').count();
        rest = rest.strip_prefix('\t').unwrap_or(&rest[blanks..]);
    }
    rest.to_owned()
}
