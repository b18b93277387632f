//! What runs in the background as a list in which one row is chosen: it is opened, stopped or sent a message.

use std::path::PathBuf;
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::text::{Line, Span};

use crate::protocol::report::TaskRow;
use crate::report;
use crate::session::entry::TaskSort;
use crate::stdx::text;
use crate::tui::paint;
use crate::tui::render::Row;
use crate::tui::theme::Theme;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tasks {
    rows: Vec<TaskRow>,
    at: usize,
}

/// What a key asks for.
#[derive(Debug, PartialEq)]
pub enum Wish {
    /// Another row was chosen.
    Look,
    /// What a sub-agent did is below its call.
    Transcript,
    Open(PathBuf),
    Stop(String),
    /// Words for a sub-agent.
    Tell(String),
}

impl Tasks {
    pub(super) fn of(rows: &[TaskRow]) -> Tasks {
        Tasks { rows: rows.to_vec(), at: 0 }
    }

    /// With the row chosen that was chosen before, where it is still there.
    pub(super) fn choosing(self, before: Option<&Tasks>) -> Tasks {
        let chosen = before.and_then(|before| before.rows.get(before.at));
        let at = chosen.and_then(|row| self.rows.iter().position(|other| other.task == row.task));
        Tasks { at: at.unwrap_or(0), ..self }
    }

    /// Where the chosen row is.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn chosen(&self) -> Option<&TaskRow> {
        self.rows.get(self.at)
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Wish> {
        if !key.modifiers.is_empty() {
            return None;
        }
        let row = self.chosen()?;
        let runs = row.ended.is_none();
        match key.code {
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(self.rows.len() - 1),
            KeyCode::Enter if is_agent(row) => return Some(Wish::Transcript),
            KeyCode::Enter => return Some(Wish::Open(row.output.clone())),
            KeyCode::Delete if runs => return Some(Wish::Stop(row.task.clone())),
            KeyCode::Tab if runs && is_agent(row) => return Some(Wish::Tell(row.task.clone())),
            _ => return None,
        }
        Some(Wish::Look)
    }

    /// What keys do, in words: the longest first.
    pub(super) fn keys(&self, close: &str) -> Vec<String> {
        let Some(row) = self.chosen() else { return Vec::new() };
        let runs = row.ended.is_none();
        let tell = if runs && is_agent(row) { " · Tab message" } else { "" };
        let stop = if runs { " · Del stop" } else { "" };
        vec![format!("Enter open{tell}{stop} · {close} close"), format!("Enter open{stop} · {close}")]
    }

    /// Each in a row, and the end of what the chosen one wrote.
    pub(super) fn rows(&self, width: usize, theme: &Theme) -> Vec<Row> {
        if self.rows.is_empty() {
            return vec![Row::from(Line::raw("Nothing has run in the background."))];
        }
        let names = self.rows.iter().map(|row| paint::width(&row.task)).max().unwrap_or_default();
        let row = |(at, row): (usize, &TaskRow)| {
            let chosen = at == self.at;
            let (mark, style) = if chosen { ("▸ ", theme.selected) } else { ("  ", theme.text) };
            let head = format!("{mark}{:<names$} ", row.task);
            let rest = width.saturating_sub(paint::width(&head));
            let about = about(row);
            // What it is gives way to how it is.
            let room = rest.saturating_sub(paint::width(&about) + 3).max(rest / 3);
            let told = paint::cut(&format!("{} · {about}", paint::cut(&row.title, room)), rest);
            let style = if row.ended.is_some() && !chosen { theme.dim } else { style };
            Row::from(Line::from(vec![Span::styled(head, style), Span::styled(told, style)]))
        };
        let mut rows: Vec<Row> = self.rows.iter().enumerate().map(row).collect();
        if let Some(chosen) = self.chosen() {
            let tail = chosen.tail.iter().map(|line| format!("  {line}"));
            let path = format!("  {}", text::truncate_start(&chosen.output.to_string_lossy(), width.saturating_sub(2)));
            let lines = tail.chain([path]).map(|line| paint::cut(&line, width));
            rows.extend(lines.map(|line| Row::from(Line::styled(line, theme.dim))));
        }
        rows
    }
}

fn is_agent(row: &TaskRow) -> bool {
    matches!(row.sort, TaskSort::Agent { .. })
}

/// How it is: `7 s · 3 calls · 12.3k tokens`, `completed · 7 s`.
fn about(row: &TaskRow) -> String {
    let time = row.millis.map(|millis| text::duration(Duration::from_millis(millis)));
    let owner = row.owner.as_ref().map(|owner| format!("of {owner}"));
    let parts = [row.ended.clone(), time, owner, Some(report::load(&row.load)).filter(|load| !load.is_empty())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
