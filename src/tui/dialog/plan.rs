//! The review of a plan: its Markdown, scrollable over the whole screen, and what to do with it.

use std::path::{Path, PathBuf};

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use super::{Outcome, numbered};
use crate::protocol::{Answer, Approval};
use crate::stdx::text;
use crate::tui::composer::field::Field;
use crate::tui::paint;
use crate::tui::render::{Row, markdown};
use crate::tui::theme::Theme;

/// Choices by their digits; the last one asks for words.
const CHOICES: [&str; 4] = [
    "Yes, and accept edits automatically",
    "Yes, and ask before each edit",
    "Yes, fresh context; ask for edits",
    "No, keep planning",
];
const APPROVALS: [Approval; 3] = [Approval::AcceptEdits, Approval::AskEach, Approval::FreshContext];
/// Screens from this height on have a rule and a question above the choices.
const ROOMY: u16 = 16;

/// A plan that waits for a word.
#[derive(Debug, Clone)]
pub(super) struct Review {
    /// Markdown, as the file has it.
    plan: String,
    path: PathBuf,
    selected: usize,
    /// Rows of the plan above the screen.
    top: usize,
    /// What should be different, while it is being typed.
    feedback: Option<Box<Field>>,
    laid: Option<Laid>,
}

/// The plan's rows, and what they were laid out for.
#[derive(Debug, Clone)]
struct Laid {
    width: u16,
    theme: String,
    rows: Vec<Row>,
}

impl Review {
    pub(super) fn new(plan: String, path: PathBuf) -> Review {
        Review { plan, path, selected: 0, top: 0, feedback: None, laid: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn edited(&mut self, plan: String) {
        self.plan = plan;
        self.laid = None;
    }

    pub(super) fn writing(&self) -> bool {
        self.feedback.is_some()
    }

    pub(super) fn paste(&mut self, text: &str) -> bool {
        match &mut self.feedback {
            Some(field) => {
                field.insert(text);
                true
            }
            None => false,
        }
    }

    /// Lays the plan out where width, theme or text have changed.
    pub(super) fn settle(&mut self, width: u16, theme: &Theme) {
        if self.laid.as_ref().is_none_or(|laid| laid.width != width || laid.theme != theme.name) {
            let rows = markdown::render(self.plan.trim_end(), usize::from(width), theme);
            self.laid = Some(Laid { width, theme: theme.name.clone(), rows });
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent, (width, height): (u16, u16), theme: &Theme) -> Outcome {
        self.settle(width, theme);
        let page = self.page(width, height, theme);
        let last = self.rows().len().saturating_sub(page);
        let step = page.saturating_sub(1).max(1);
        let top = self.top.min(last);
        if let Some(field) = &mut self.feedback {
            match key.code {
                KeyCode::Enter => {
                    let text = field.text().trim().to_owned();
                    return Outcome::Answered(Answer::No { feedback: (!text.is_empty()).then_some(text) });
                }
                KeyCode::Esc => self.feedback = None,
                KeyCode::PageUp => self.top = top.saturating_sub(step),
                KeyCode::PageDown => self.top = (top + step).min(last),
                _ if !field.key(key) => return Outcome::Ignored,
                _ => {}
            }
            return Outcome::Open;
        }
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Esc => return Outcome::Answered(Answer::No { feedback: None }),
            KeyCode::Enter => return self.choose(self.selected),
            KeyCode::Tab => self.selected = (self.selected + 1) % CHOICES.len(),
            KeyCode::BackTab => self.selected = (self.selected + CHOICES.len() - 1) % CHOICES.len(),
            // The plan and the choices below it are one document: arrows (and so the mouse wheel) first go through the
            // plan, then from choice to choice.
            KeyCode::Down if top < last => self.top = top + 1,
            KeyCode::Down => self.selected = (self.selected + 1).min(CHOICES.len() - 1),
            KeyCode::Up if self.selected > 0 && top == last => self.selected -= 1,
            KeyCode::Up => self.top = top.saturating_sub(1),
            KeyCode::PageUp => self.top = top.saturating_sub(step),
            KeyCode::PageDown => self.top = (top + step).min(last),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = last,
            KeyCode::Char(c) if plain => match c {
                '1'..='4' => return self.choose(c as usize - '1' as usize),
                'e' => return Outcome::Edit(self.path.clone()),
                'c' => return Outcome::Copy(self.plan.clone()),
                'j' => self.top = (top + 1).min(last),
                'k' => self.top = top.saturating_sub(1),
                ' ' => self.top = (top + step).min(last),
                'b' => self.top = top.saturating_sub(step),
                'g' => self.top = 0,
                'G' => self.top = last,
                _ => return Outcome::Ignored,
            },
            _ => return Outcome::Ignored,
        }
        Outcome::Open
    }

    pub(super) fn draw(&self, mut area: Rect, buf: &mut Buffer, word: Option<&str>, theme: &Theme) -> Option<Position> {
        let (width, height) = (area.width, area.height);
        let page = self.page(width, height, theme);
        let tail = self.tail(width, height, theme);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let path = text::truncate_start(&name, (width as usize).saturating_sub(13));
        paint::rule(
            buf,
            paint::take(&mut area, 1),
            &format!("Plan · {}", paint::cut(&path, width as usize)),
            theme.mode_plan,
        );
        let rows = self.rows();
        let top = self.top.min(rows.len().saturating_sub(page));
        let end = (top + page).min(rows.len());
        let body = paint::take(&mut area, (end - top) as u16);
        for (row, y) in rows[top..end].iter().zip(body.y..body.bottom()) {
            buf.set_line(body.x, y, &row.line, body.width);
        }
        if height >= ROOMY {
            paint::rule(buf, paint::take(&mut area, 1), "", theme.border);
        }
        let first = area.y;
        paint::lines(buf, paint::take(&mut area, tail.len() as u16), &tail);
        let place = match rows.len() {
            all if all > page => format!("{}–{end} of {all} · ", top + 1),
            _ => String::new(),
        };
        let hint = match (word, &self.feedback) {
            (Some(word), _) => Line::styled(paint::cut(word, width as usize), theme.warning),
            (None, Some(_)) => Line::styled(paint::cut("Enter send · Esc back", width as usize), theme.dim),
            (None, None) => {
                let keys = "e edit · c copy · Esc no · PgUp PgDn · Tab Enter choose";
                Line::styled(paint::cut(&format!("{place}{keys}"), width as usize), theme.dim)
            }
        };
        paint::lines(buf, area, &[hint]);
        let field = self.feedback.as_ref()?;
        let row = Rect { x: 2, y: first + tail.len() as u16 - 1, width: width.max(3) - 2, height: 1 };
        field.draw(row.intersection(buf.area), buf, theme.text)
    }

    fn choose(&mut self, at: usize) -> Outcome {
        self.selected = at;
        match APPROVALS.get(at) {
            Some(how) => Outcome::Answered(Answer::Approve { how: *how }),
            None => {
                self.feedback = Some(Box::default());
                Outcome::Open
            }
        }
    }

    fn rows(&self) -> &[Row] {
        self.laid.as_ref().map_or(&[], |laid| &laid.rows)
    }

    /// What is below the plan: choices, or the field.
    fn tail(&self, width: u16, height: u16, theme: &Theme) -> Vec<Line<'static>> {
        let columns = width as usize;
        if self.feedback.is_some() {
            let label = paint::cut("What should change? (may be empty)", columns);
            return vec![Line::styled(label, theme.text), Line::styled("> ", theme.accent)];
        }
        let labels = CHOICES.map(|label| (label.to_owned(), ""));
        let mut lines = Vec::new();
        if height >= ROOMY {
            lines.push(Line::styled(paint::cut("Go ahead with this plan?", columns), theme.heading));
        }
        lines.extend(numbered(&labels, self.selected, 1, (width, 0), theme));
        lines
    }

    /// Whether a row of the plan has room.
    pub(super) fn legible(&self, width: u16, height: u16, theme: &Theme) -> bool {
        self.page(width, height, theme) > 0
    }

    /// Rows of the plan that fit.
    fn page(&self, width: u16, height: u16, theme: &Theme) -> usize {
        let rule = usize::from(height >= ROOMY);
        (height as usize).saturating_sub(2 + rule + self.tail(width, height, theme).len())
    }
}
