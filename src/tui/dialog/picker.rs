//! A list to choose from: sessions, models, rules, prompts to go back to. Typing filters it.

use std::path::PathBuf;

use nucleo_matcher::Config;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::commands::report::SkillRow;
use crate::permission::Behavior;
use crate::protocol::RewindWhat;
use crate::protocol::{ListKind, Listed, MemoryRow, ModelRow, RuleRow, SessionRow};
use crate::session::entry::Seq;
use crate::tui::composer::field::Field;
use crate::tui::paint;
use crate::tui::popup;
use crate::tui::theme::Theme;

/// What a row stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    Session(String),
    Model(String),
    /// A rule that can be revoked.
    Rule(String),
    /// A prompt to go back to before.
    Prompt(Seq),
    Rewind(Seq, RewindWhat),
    Revoke(String),
    /// A file to open in the editor.
    File(PathBuf),
    /// Only to be read, or the way out.
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
struct Item {
    label: String,
    detail: String,
    choice: Choice,
}

/// What a key did.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Open,
    Closed,
    Chosen(Choice),
    /// Test the line typed into the rules list.
    Test(String),
    Ignored,
}

/// An open list.
#[derive(Debug, Clone)]
pub struct Picker {
    title: String,
    /// The list that it waits for; none when it is complete.
    wait: Option<ListKind>,
    kind: Option<ListKind>,
    filter: Field,
    items: Vec<Item>,
    /// Items that match the filter, best first.
    shown: Vec<usize>,
    selected: usize,
}

impl Picker {
    fn new(title: impl Into<String>, wait: Option<ListKind>, items: Vec<Item>) -> Picker {
        let shown = (0..items.len()).collect();
        let title = title.into();
        Picker { title, wait, kind: wait, filter: Field::default(), items, shown, selected: 0 }
    }

    /// Opens a list that is still being gathered.
    pub fn waiting(kind: ListKind) -> Picker {
        let title = match kind {
            ListKind::Sessions => "Resume which session?",
            ListKind::Models => "Which model?",
            ListKind::Rules => "Permission rules",
            ListKind::Memory => "Open which memory file?",
            ListKind::Prompts => "Rewind to where?",
            ListKind::History => "Earlier prompts",
            ListKind::Skills => "Open which skill?",
            ListKind::Changes => "Changes",
        };
        Picker::new(title, Some(kind), Vec::new())
    }

    /// Opens the list of prompts, newest first.
    pub fn prompts(prompts: &[(Seq, String)]) -> Picker {
        let item = |(seq, text): &(Seq, String)| Item {
            label: text.clone(),
            detail: String::new(),
            choice: Choice::Prompt(*seq),
        };
        let items = prompts.iter().rev().map(item).collect();
        Picker { kind: Some(ListKind::Prompts), ..Picker::new("Rewind to before which prompt?", None, items) }
    }

    /// What row `number`, counted from 1, stands for.
    pub fn row(&self, number: usize) -> Option<Choice> {
        Some(self.items.get(number.checked_sub(1)?)?.choice.clone())
    }

    /// Asks what to rewind.
    pub fn rewind(seq: Seq) -> Picker {
        let rows = [
            ("Code and conversation", RewindWhat::Both),
            ("Conversation only", RewindWhat::Conversation),
            ("Code only", RewindWhat::Code),
        ];
        let item = |(label, what): (&str, RewindWhat)| Item {
            label: label.into(),
            detail: String::new(),
            choice: Choice::Rewind(seq, what),
        };
        Picker::new("Restore what?", None, rows.map(item).into())
    }

    /// Asks before a rule is revoked.
    pub fn revoke(rule: &str) -> Picker {
        let row = |label: &str, choice| Item { label: label.into(), detail: String::new(), choice };
        let rows = vec![row("Revoke it", Choice::Revoke(rule.into())), row("Keep it", Choice::Nothing)];
        Picker::new(format!("Revoke {rule}?"), None, rows)
    }

    /// Takes the gathered rows, when they are the ones waited for.
    pub fn listed(&mut self, listed: Listed) {
        let (kind, items): (ListKind, Vec<Item>) = match listed {
            Listed::Sessions(rows) => {
                let item =
                    |row: SessionRow| Item { label: row.title, detail: row.detail, choice: Choice::Session(row.id) };
                (ListKind::Sessions, rows.into_iter().map(item).collect())
            }
            Listed::Models(rows) => {
                let item = |row: ModelRow| Item {
                    label: row.id.clone(),
                    detail: if row.current { format!("✓ {}", row.detail) } else { row.detail },
                    choice: Choice::Model(row.id),
                };
                (ListKind::Models, rows.into_iter().map(item).collect())
            }
            Listed::Rules(rows) => {
                let item = |row: RuleRow| Item {
                    label: format!("{} {}", behavior(row.behavior), row.rule),
                    detail: row.source,
                    choice: if row.revocable { Choice::Rule(row.rule) } else { Choice::Nothing },
                };
                (ListKind::Rules, rows.into_iter().map(item).collect())
            }
            Listed::Memory(rows) => {
                let item = |row: MemoryRow| Item {
                    label: row.path.display().to_string(),
                    detail: match row.lines {
                        Some(lines) => format!("{lines} line{}", if lines == 1 { "" } else { "s" }),
                        None => "new: instructions for the agent in this project".into(),
                    },
                    choice: Choice::File(row.path),
                };
                (ListKind::Memory, rows.into_iter().map(item).collect())
            }
            Listed::Skills(rows) => {
                let item = |row: SkillRow| Item {
                    label: row.command.unwrap_or(row.name),
                    detail: row.detail,
                    choice: row.path.map_or(Choice::Nothing, Choice::File),
                };
                (ListKind::Skills, rows.into_iter().map(item).collect())
            }
            // The view folds the prompts from events, and keeps the history itself.
            Listed::Prompts(_) | Listed::History(_) | Listed::Changes(_) | Listed::Agent(_) | Listed::Earlier(_) => {
                return;
            }
        };
        if self.wait == Some(kind) {
            self.wait = None;
            self.items = items;
            self.filter();
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        let most = self.shown.len();
        match key.code {
            KeyCode::Esc => return Outcome::Closed,
            KeyCode::Enter => match self.shown.get(self.selected) {
                Some(at) => return Outcome::Chosen(self.items[*at].choice.clone()),
                None => return Outcome::Open,
            },
            KeyCode::Tab if self.kind == Some(ListKind::Rules) && !self.filter.is_empty() => {
                return Outcome::Test(self.filter.text().to_owned());
            }
            KeyCode::Up => self.selected = self.selected.checked_sub(1).unwrap_or(most.saturating_sub(1)),
            KeyCode::Down => self.selected = if self.selected + 1 < most { self.selected + 1 } else { 0 },
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(8),
            KeyCode::PageDown => self.selected = (self.selected + 8).min(most.saturating_sub(1)),
            _ if self.filter.key(key) => self.filter(),
            _ => return Outcome::Ignored,
        }
        Outcome::Open
    }

    pub fn paste(&mut self, text: &str) {
        self.filter.insert(text);
        self.filter();
    }

    /// Rows that it wants, at most `most`.
    pub fn height(&self, most: u16) -> u16 {
        // The height does not follow the filter: a list that jumps is hard to read.
        let rows = if self.wait.is_some() { 8 } else { self.items.len().clamp(1, 12) };
        (rows as u16 + 4).min(most)
    }

    pub fn draw(&self, mut area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let width = area.width as usize;
        paint::rule(buf, paint::take(&mut area, 1), "", theme.border);
        let title = paint::cut(&self.title, width);
        paint::lines(buf, paint::take(&mut area, 1), &[Line::styled(title, theme.heading)]);
        let rest = area.height;
        let field = paint::take(&mut area, u16::from(rest > 2));
        buf.set_stringn(field.x, field.y, if field.height > 0 { "filter: " } else { "" }, width, theme.dim);
        let input = Rect { x: field.x + 8.min(field.width), width: field.width.saturating_sub(8), ..field };
        let cursor = self.filter.draw(input, buf, theme.text);

        let rest = area.height;
        let list = paint::take(&mut area, rest.saturating_sub(1).max(1));
        let rows = list.height as usize;
        let first = (self.selected + 1).saturating_sub(rows);
        let lines: Vec<Line> = match (self.wait, self.shown.is_empty()) {
            (Some(_), _) => vec![Line::styled("  gathering…", theme.dim)],
            (None, true) => vec![Line::styled(paint::cut(&format!("  {}", self.nothing()), width), theme.dim)],
            (None, false) => {
                let shown = self.shown.iter().enumerate().skip(first).take(rows);
                shown.map(|(row, at)| self.line(row, &self.items[*at], width, theme)).collect()
            }
        };
        paint::lines(buf, list, &lines);
        let hint = match self.kind {
            Some(ListKind::Rules) => "Esc close · Enter revoke · type to filter · Tab test what you typed",
            _ => "type to filter · ↑↓ Enter choose · Esc close",
        };
        paint::lines(buf, area, &[Line::styled(paint::cut(hint, width), theme.dim)]);
        cursor
    }

    /// Why no row is shown.
    fn nothing(&self) -> &'static str {
        match self.kind {
            _ if !self.items.is_empty() => "nothing matches",
            Some(ListKind::Sessions) => "no earlier sessions in this folder",
            Some(ListKind::Rules) => "no rules yet: anything not known to be read-only asks",
            Some(ListKind::Prompts) => "no prompts yet",
            Some(ListKind::Skills) => "no skills yet: `cocode skills new <name>` creates one",
            _ => "nothing there",
        }
    }

    fn line(&self, row: usize, item: &Item, width: usize, theme: &Theme) -> Line<'static> {
        let chosen = row == self.selected;
        let style = if chosen { theme.selected } else { theme.text };
        let room = width.saturating_sub(2);
        let detail = paint::cut(&item.detail, room / 2);
        let label = paint::cut(&item.label, room.saturating_sub(paint::width(&detail) + 2));
        let gap = room.saturating_sub(paint::width(&label) + paint::width(&detail));
        Line::from(vec![
            Span::styled(if chosen { "› " } else { "  " }, theme.accent),
            Span::styled(label, style),
            Span::raw(" ".repeat(gap)),
            Span::styled(detail, theme.dim),
        ])
    }

    fn filter(&mut self) {
        let texts: Vec<String> = self.items.iter().map(|item| format!("{} {}", item.label, item.detail)).collect();
        self.shown = popup::ranked(self.filter.text(), texts.iter().map(String::as_str), Config::DEFAULT, usize::MAX);
        self.selected = 0;
    }
}

fn behavior(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Allow => "allow",
        Behavior::Ask => "ask  ",
        Behavior::Deny => "deny ",
    }
}
