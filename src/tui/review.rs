//! `/diff`: what the session changed, hunk by hunk, to keep or to revert with a comment for the agent; then what is not
//! committed. Knows keys and rows; the pager scrolls and draws it.

use std::collections::BTreeMap;
use std::ops::Range;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};

use super::changes;
use super::dialog::fitting;
use super::paint;
use super::render::{Row, diff};
use super::theme::Theme;
use crate::message::FileDiff;
use crate::protocol::{Changes, Hunk, Judged, Op, Reviewed, Verdict, authors};

/// What was decided about a hunk.
#[derive(Debug, Clone, Default, PartialEq)]
struct Decision {
    revert: bool,
    comment: String,
}

/// The changes as they were when they were asked for, and the decisions so far.
#[derive(Debug, Clone, Default)]
pub struct Review {
    changes: Changes,
    /// Which of the scopes is shown, and which of its hunks the keys are about.
    scope: usize,
    at: usize,
    /// By scope and hunk. Only those of one scope are applied at a time.
    decisions: BTreeMap<(usize, usize), Decision>,
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Nothing of a review.
    Other,
    /// Rows are to be made again.
    Redraw,
    /// A comment is to be typed.
    Comment,
    Apply,
}

impl Review {
    pub fn new(changes: Changes) -> Review {
        Review { changes, ..Review::default() }
    }

    pub fn key(&mut self, key: KeyEvent) -> Asked {
        let count = self.hunks().count();
        if count == 0 || key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Asked::Other;
        }
        match key.code {
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Tab => self.at = (self.at + 1).min(count - 1),
            KeyCode::Up | KeyCode::Char('k') | KeyCode::BackTab => self.at = self.at.saturating_sub(1),
            KeyCode::Right | KeyCode::Left => {
                let scopes = self.changes.scopes.len();
                let by = if key.code == KeyCode::Right { 1 } else { scopes - 1 };
                (self.scope, self.at) = ((self.scope + by) % scopes, 0);
            }
            KeyCode::Char(' ') => {
                let decision = self.decisions.entry((self.scope, self.at)).or_default();
                decision.revert = !decision.revert;
            }
            KeyCode::Char('f') => self.turn_file(),
            KeyCode::Char('c') => return Asked::Comment,
            KeyCode::Enter if self.decided() => return Asked::Apply,
            KeyCode::Enter => {}
            _ => return Asked::Other,
        }
        Asked::Redraw
    }

    /// What was said of the hunk before.
    pub fn comment(&self) -> &str {
        self.decisions.get(&(self.scope, self.at)).map_or("", |decision| decision.comment.as_str())
    }

    pub fn set_comment(&mut self, comment: &str) {
        self.decisions.entry((self.scope, self.at)).or_default().comment = comment.trim().to_owned();
    }

    /// What is decided, for the engine.
    pub fn op(&self) -> Op {
        let mut verdicts: Vec<Verdict> = Vec::new();
        for (number, (file, _, hunk)) in self.hunks().enumerate() {
            let Some(decision) = self.decisions.get(&(self.scope, number)).filter(|decision| decided(decision)) else {
                continue;
            };
            let judged = Judged {
                span: hunk.span,
                unified: hunk.unified.clone(),
                revert: decision.revert,
                comment: decision.comment.clone(),
            };
            match verdicts.last_mut().filter(|verdict| verdict.path == file.path) {
                Some(verdict) => verdict.hunks.push(judged),
                None => verdicts.push(Verdict {
                    path: file.path.clone(),
                    name: file.name.clone(),
                    without: file.without.clone(),
                    now: file.now.clone(),
                    hunks: vec![judged],
                }),
            }
        }
        Op::Review { turn: self.changes.scopes.get(self.scope).and_then(|scope| scope.turn), verdicts }
    }

    /// Keys, for the last line.
    pub fn hint(&self, width: usize) -> Option<String> {
        self.hunks().next()?;
        let apply = if self.decided() { "Enter apply" } else { "" };
        let turns = if self.changes.scopes.len() > 1 { "←→ by turn" } else { "" };
        Some(fitting(&[apply, "Space keep/revert", "q close", "c comment", turns, "f whole file"], width))
    }

    /// The rows, and which of them show the hunk that keys are about.
    pub fn rows(&self, width: usize, theme: &Theme) -> (Vec<Row>, Range<usize>) {
        let (mut rows, mut focus) = (Vec::new(), 0..0);
        let Some(scope) = self.changes.scopes.get(self.scope) else {
            changes::section(&mut rows, "Changed in this session", &self.changes.session, width, theme);
            self.uncommitted(&mut rows, width, theme);
            return (rows, focus);
        };
        let hunks: usize = scope.files.iter().map(|file| file.hunks.len()).sum();
        let title = match scope.turn {
            None => "Changed in this session".to_owned(),
            Some(_) => format!("Changed by “{}”", scope.prompt),
        };
        let counts = format!(" · {} · {}", counted(scope.files.len(), "file"), counted(hunks, "hunk"));
        let title = paint::cut(&title, width.saturating_sub(paint::width(&counts)).max(12));
        rows.push(Row::from(Line::from(vec![
            Span::styled(title, theme.heading),
            Span::styled(paint::cut(&counts, width), theme.dim),
        ])));
        let mut number = 0;
        for file in &scope.files {
            if let Some(why) = &file.held {
                rows.push(Row::from(Line::default()));
                rows.push(Row::from(Line::styled(paint::cut(&file.name, width), theme.accent)));
                changed_by(&mut rows, file, width, theme);
                rows.extend(paint::folded(why, width, theme.warning).into_iter().map(Row::from));
            }
            for (nth, hunk) in file.hunks.iter().enumerate() {
                rows.push(Row::from(Line::default()));
                let start = rows.len();
                self.hunk(&mut rows, (file, nth, hunk), number, width, theme);
                if number == self.at {
                    focus = start..rows.len();
                }
                number += 1;
            }
        }
        if scope.turn.is_none() {
            self.uncommitted(&mut rows, width, theme);
        }
        (rows, focus)
    }

    fn hunk(
        &self,
        rows: &mut Vec<Row>,
        (file, nth, hunk): (&Reviewed, usize, &Hunk),
        number: usize,
        width: usize,
        theme: &Theme,
    ) {
        let decision = self.decisions.get(&(self.scope, number)).cloned().unwrap_or_default();
        let mark = if number == self.at { "› " } else { "  " };
        let (state, style) =
            if decision.revert { ("[✗ revert]", theme.error) } else { ("[✓ keep]", theme.success) };
        let count = format!("  {}/{}  ", nth + 1, file.hunks.len());
        let room = width.saturating_sub(paint::width(mark) + paint::width(&count) + paint::width(state));
        rows.push(Row::from(Line::from(vec![
            Span::styled(mark, theme.accent),
            Span::styled(paint::cut(&file.name, room), theme.accent),
            Span::styled(count, theme.dim),
            Span::styled(state, style),
        ])));
        if nth == 0 {
            changed_by(rows, file, width, theme);
        }
        if !decision.comment.is_empty() {
            let words = format!("  “{}”", decision.comment);
            rows.extend(paint::folded(&words, width, theme.text).into_iter().map(Row::from));
        }
        let (path, unified, created) = (file.name.clone(), hunk.unified.clone(), file.without.is_none());
        let shown = FileDiff { path, unified, added: hunk.added, removed: hunk.removed, created };
        rows.extend(diff::rows(&shown, width, theme, None));
    }

    fn uncommitted(&self, rows: &mut Vec<Row>, width: usize, theme: &Theme) {
        if let Some(files) = &self.changes.uncommitted {
            rows.push(Row::from(Line::default()));
            changes::section(rows, "Not committed", files, width, theme);
        }
    }

    /// Keeps or reverts all hunks of the file.
    fn turn_file(&mut self) {
        let Some(path) = self.hunks().nth(self.at).map(|(file, ..)| file.path.clone()) else { return };
        let of_file: Vec<usize> =
            self.hunks().enumerate().filter(|(_, (file, ..))| file.path == path).map(|(number, _)| number).collect();
        let reverted =
            |number: &usize| self.decisions.get(&(self.scope, *number)).is_some_and(|decision| decision.revert);
        let revert = !of_file.iter().all(reverted);
        for number in of_file {
            self.decisions.entry((self.scope, number)).or_default().revert = revert;
        }
    }

    fn decided(&self) -> bool {
        self.decisions.iter().any(|((scope, _), decision)| *scope == self.scope && decided(decision))
    }

    fn hunks(&self) -> impl Iterator<Item = (&Reviewed, usize, &Hunk)> {
        let files = self.changes.scopes.get(self.scope).into_iter().flat_map(|scope| &scope.files);
        files.flat_map(|file| file.hunks.iter().enumerate().map(move |(nth, hunk)| (file, nth, hunk)))
    }
}

fn decided(decision: &Decision) -> bool {
    decision.revert || !decision.comment.is_empty()
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The commands that changed a file.
fn changed_by(rows: &mut Vec<Row>, file: &Reviewed, width: usize, theme: &Theme) {
    if !file.by.is_empty() {
        let words = format!("  changed by {}", authors(&file.by));
        rows.push(Row::from(Line::styled(paint::cut(&words, width), theme.dim)));
    }
}
