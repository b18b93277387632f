//! The composer's vim mode: a state machine over the editor. It is given keys, says what became of them, and draws nothing.
//!
//! Keys are gathered until they read as a command (`keys`), which then runs (`act`). Insert mode leaves all keys but Esc to
//! the composer: what was inserted is found by comparing, when it ends.

mod act;
mod keys;
mod motions;
mod objects;

use std::collections::HashMap;
use std::ops::Range;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use self::keys::{Command, Stop};
use self::motions::{Find, next, prev};
use super::chip::Draft;
use super::editor::Editor;
use super::layout::line_at;
use crate::tui::keymap::Action;

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It means what it means without vim.
    Passed,
    Handled,
    /// It means what this action means.
    As(Action),
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Mode {
    #[default]
    Insert,
    Normal,
    /// Selects from `anchor` to the cursor, as long as nothing was edited since `revision`.
    Visual {
        anchor: usize,
        lines: bool,
        revision: u64,
    },
    /// `R`: what is typed takes the place of what is there; `under` is what it took.
    Overwrite {
        under: Vec<String>,
    },
}

/// What is yanked or deleted.
#[derive(Debug, Clone, Default, PartialEq)]
struct Register {
    draft: Draft,
    /// Whole lines; the newline of the last one is left out.
    lines: bool,
}

/// An insertion under way: what stood before and behind the cursor when it began.
#[derive(Debug, Clone)]
struct Entered {
    before: String,
    behind: String,
    times: usize,
    /// Each time on a line of its own.
    apart: bool,
}

/// A change that `.` makes again, with what was typed in it.
#[derive(Debug, Clone)]
struct Change {
    command: Command,
    typed: Draft,
}

/// The mode with its registers. A composer without it edits as other programs do.
#[derive(Debug, Clone, Default)]
pub struct Vim {
    mode: Mode,
    /// The beginning of a command.
    keys: Vec<char>,
    found: Option<Find>,
    registers: HashMap<char, Register>,
    last: Option<Change>,
    entered: Option<Entered>,
}

impl Vim {
    /// The mode, and what was typed of a command, for the status line.
    pub fn label(&self) -> String {
        let mode = match self.mode {
            Mode::Insert => "-- INSERT --",
            Mode::Normal => "-- NORMAL --",
            Mode::Visual { lines: false, .. } => "-- VISUAL --",
            Mode::Visual { lines: true, .. } => "-- VISUAL LINE --",
            Mode::Overwrite { .. } => "-- REPLACE --",
        };
        let keys: String = self.keys.iter().filter(|c| !c.is_control()).collect();
        if keys.is_empty() { mode.to_owned() } else { format!("{mode} {keys}") }
    }

    /// Whether keys write text.
    pub fn writes(&self) -> bool {
        matches!(self.mode, Mode::Insert | Mode::Overwrite { .. })
    }

    /// Another text is begun, in insert mode as in a shell. Registers and the last change stay.
    pub fn begin(&mut self) {
        self.mode = Mode::Insert;
        self.keys.clear();
        self.entered = None;
    }

    /// What is selected.
    pub fn selected(&self, editor: &Editor) -> Option<Range<usize>> {
        let Mode::Visual { anchor, lines, .. } = self.mode else { return None };
        let (text, cursor) = (editor.text(), editor.cursor());
        let (from, to) = (anchor.min(cursor), anchor.max(cursor));
        Some(if lines { line_at(text, from).start..line_at(text, to).end } else { from..next(text, to) })
    }

    /// Puts the cursor onto a character, and ends a selection of what is no longer there.
    pub fn settle(&mut self, editor: &mut Editor) {
        if matches!(self.mode, Mode::Visual { revision, .. } if revision != editor.revision()) {
            self.mode = Mode::Normal;
        }
        // In a selection, `$` means the end of the line, too.
        let ends = matches!(self.mode, Mode::Visual { lines: false, .. }) && editor.rest_at_end();
        if !self.writes() && !ends {
            editor.rest();
        }
    }

    /// Takes a key; `action` is what it is bound to, `width` that of the text column.
    pub fn key(&mut self, key: KeyEvent, action: Option<Action>, editor: &mut Editor, width: usize) -> Outcome {
        match &mut self.mode {
            Mode::Insert if action != Some(Action::Cancel) => Outcome::Passed,
            Mode::Overwrite { .. } if action != Some(Action::Cancel) => self.overwrite_key(key, action, editor),
            Mode::Insert | Mode::Overwrite { .. } => {
                self.leave(editor);
                Outcome::Handled
            }
            Mode::Normal | Mode::Visual { .. } => match self.character(key, action, editor) {
                Ok(c) => self.gather(c, editor, width),
                Err(outcome) => outcome,
            },
        }
    }

    fn gather(&mut self, c: char, editor: &mut Editor, width: usize) -> Outcome {
        self.keys.push(c);
        match keys::read(&self.keys, matches!(self.mode, Mode::Visual { .. })) {
            Err(Stop::More) => Outcome::Handled,
            Err(Stop::Unknown) => {
                self.keys.clear();
                Outcome::Handled
            }
            Ok(command) => {
                self.keys.clear();
                let outcome = self.run(command, editor, width);
                self.settle(editor);
                outcome
            }
        }
    }

    /// The character that a key stands for in commands, or what becomes of it otherwise.
    fn character(&mut self, key: KeyEvent, action: Option<Action>, editor: &Editor) -> Result<char, Outcome> {
        let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER);
        let control = key.modifiers == KeyModifiers::CONTROL;
        match (key.code, action) {
            (KeyCode::Char('r'), _) if control => return Ok(keys::REDO),
            (KeyCode::Char('j'), _) if control => return Ok(keys::DOWN),
            (KeyCode::Char('?'), Some(_)) if editor.is_empty() && self.keys.is_empty() => {
                return Err(Outcome::Passed);
            }
            (KeyCode::Char(c), _) if !held => return Ok(c),
            (_, Some(Action::Left)) => return Ok(keys::LEFT),
            (_, Some(Action::DeleteBack)) if !editor.is_empty() => return Ok(keys::LEFT),
            (_, Some(Action::Right)) => return Ok(keys::RIGHT),
            (_, Some(Action::Up)) => return Ok(keys::UP),
            (_, Some(Action::Down)) => return Ok(keys::DOWN),
            (_, Some(Action::DeleteForward)) => return Ok('x'),
            _ => {}
        }
        let pending = !std::mem::take(&mut self.keys).is_empty();
        match action {
            Some(Action::Cancel) if pending => Err(Outcome::Handled),
            Some(Action::Cancel) if matches!(self.mode, Mode::Visual { .. }) => {
                self.mode = Mode::Normal;
                Err(Outcome::Handled)
            }
            Some(_) => Err(Outcome::Passed),
            None => Err(Outcome::Handled),
        }
    }

    /// Begins an insertion at the cursor.
    fn enter(&mut self, editor: &Editor, times: usize, apart: bool) {
        let (before, behind) = editor.text().split_at(editor.cursor());
        self.entered = Some(Entered { before: before.to_owned(), behind: behind.to_owned(), times, apart });
        self.mode = Mode::Insert;
    }

    /// Ends an insertion: it is made as often as its count says, and kept for `.`.
    fn leave(&mut self, editor: &mut Editor) {
        if let Some(Entered { before, behind, times, apart }) = self.entered.take() {
            let typed = inserted(editor, &before, &behind);
            for _ in 1..bounded(times, typed.text.len()) {
                if apart {
                    editor.insert("\n");
                }
                editor.insert_draft(&typed);
            }
            if let Some(last) = &mut self.last {
                last.typed = typed;
            }
        } else if let (Mode::Overwrite { under }, Some(last)) = (&self.mode, &mut self.last) {
            let text = &editor.text()[..editor.cursor()];
            let start = text.grapheme_indices(true).rev().take(under.len()).last().map_or(text.len(), |(at, _)| at);
            last.typed = editor.draft().part(start..editor.cursor());
        }
        editor.part();
        let cursor = editor.cursor();
        if cursor > line_at(editor.text(), cursor).start {
            editor.go(prev(editor.text(), cursor));
        }
        self.mode = Mode::Normal;
    }

    fn overwrite_key(&mut self, key: KeyEvent, action: Option<Action>, editor: &mut Editor) -> Outcome {
        let Mode::Overwrite { under } = &mut self.mode else { return Outcome::Passed };
        let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER);
        match (key.code, action) {
            (KeyCode::Char(c), _) if !held && !c.is_control() && super::chip::index(c).is_none() => {
                under.push(overwrite(editor, c.encode_utf8(&mut [0; 4])));
                Outcome::Handled
            }
            (_, Some(Action::DeleteBack)) => {
                let cursor = editor.cursor();
                let start = prev(editor.text(), cursor);
                if let Some(old) = under.pop() {
                    editor.replace(start..cursor, &old);
                }
                editor.go(start);
                Outcome::Handled
            }
            _ => Outcome::Passed,
        }
    }
}

/// Puts a character in the place of the one under the cursor, and returns that; at the end of a line it is added.
fn overwrite(editor: &mut Editor, text: &str) -> String {
    let cursor = editor.cursor();
    let end = if cursor == line_at(editor.text(), cursor).end { cursor } else { next(editor.text(), cursor) };
    let under = editor.text()[cursor..end].to_owned();
    editor.replace(cursor..end, text);
    under
}

/// What is between the texts of before; where they were edited themselves, what is new.
fn inserted(editor: &Editor, before: &str, behind: &str) -> Draft {
    let text = editor.text();
    let same = |(a, b): &(&str, &str)| a == b;
    let graphemes = |text| UnicodeSegmentation::graphemes(text, true);
    let start: usize = graphemes(text).zip(graphemes(before)).take_while(same).map(|(part, _)| part.len()).sum();
    let rest = graphemes(&text[start..]).rev().zip(graphemes(behind).rev());
    let end: usize = rest.take_while(same).map(|(part, _)| part.len()).sum();
    editor.draft().part(start..text.len() - end)
}

/// How often something is repeated that is this long: never more than a megabyte of it.
fn bounded(times: usize, length: usize) -> usize {
    times.min((1 << 20) / length.max(1)).max(1)
}

#[cfg(test)]
mod tests;
