//! A field that a row of a list leads to: the value of a setting, or a key, which is never shown.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use super::Outcome;
use crate::protocol::{SettingPlace, SettingRow};
use crate::provider::key::Secret;
use crate::tui::composer::field::Field;
use crate::tui::paint;
use crate::tui::theme::Theme;

/// Most dots that stand for a key.
const DOTS: usize = 24;

/// What is being written.
#[derive(Clone)]
pub(super) struct Entry {
    field: Field,
    what: What,
    /// Why what was written cannot be taken.
    problem: Option<&'static str>,
}

// What is in the field may be a key.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("what", &self.what).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
enum What {
    Key { provider: String, title: String },
    Value { row: Box<SettingRow>, place: SettingPlace },
}

impl Entry {
    pub(super) fn key_of(provider: &str, title: &str) -> Entry {
        let what = What::Key { provider: provider.to_owned(), title: title.to_owned() };
        Entry { field: Field::default(), what, problem: None }
    }

    pub(super) fn value_of(row: SettingRow, place: SettingPlace) -> Entry {
        let mut field = Field::default();
        field.insert(row.value.as_deref().unwrap_or_default());
        Entry { field, what: What::Value { row: Box::new(row), place }, problem: None }
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.field.insert(text.trim());
        self.problem = None;
    }

    /// Takes a key; none leaves the field.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match key.code {
            KeyCode::Esc => return None,
            KeyCode::Enter => return Some(self.done()),
            _ if self.field.key(key) => self.problem = None,
            _ => return Some(Outcome::Ignored),
        }
        Some(Outcome::Open)
    }

    fn done(&mut self) -> Outcome {
        let text = self.field.text().trim().to_owned();
        match &self.what {
            What::Key { provider, .. } => match Secret::new(&text) {
                Some(key) if text.chars().all(|c| c.is_ascii_graphic()) => {
                    // What was typed is gone from here at once.
                    self.field = Field::default();
                    Outcome::StoreKey { provider: provider.clone(), key }
                }
                Some(_) => {
                    self.problem = Some("A key has no spaces and no accents: paste it again");
                    self.field = Field::default();
                    Outcome::Open
                }
                None => Outcome::Open,
            },
            What::Value { row, place } => Outcome::Set { key: row.key.clone(), value: Some(text), place: *place },
        }
    }

    /// Rows that it wants at a width.
    pub(super) fn height(&self, width: u16) -> u16 {
        (self.about(usize::from(width)).len() + 4) as u16
    }

    fn about(&self, width: usize) -> Vec<String> {
        let text = match &self.what {
            What::Key { .. } => {
                "It goes into credentials.toml, which only you can read. It is not shown, logged or sent to a model."
                    .to_owned()
            }
            What::Value { row, .. } => row.about.clone(),
        };
        paint::fold(&text, width)
    }

    pub(super) fn draw(&self, mut area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let width = usize::from(area.width);
        let title = match &self.what {
            What::Key { title, .. } => format!("Paste the key for {title}"),
            What::Value { row, place: SettingPlace::User } => row.key.clone(),
            What::Value { row, place: SettingPlace::Project } => format!("{} for this project", row.key),
        };
        paint::rule(buf, paint::take(&mut area, 1), "", theme.border);
        paint::lines(buf, paint::take(&mut area, 1), &[Line::styled(paint::cut(&title, width), theme.heading)]);
        // The field and the keys come before what explains them.
        let spare = area.height.saturating_sub(2);
        let about: Vec<Line> = self.about(width).into_iter().map(|row| Line::styled(row, theme.dim)).collect();
        paint::lines(buf, paint::take(&mut area, spare.min(about.len() as u16)), &about);
        let row = paint::take(&mut area, 1);
        buf.set_stringn(row.x, row.y, "> ", width, theme.accent);
        let input = Rect { x: row.x + 2.min(row.width), width: row.width.saturating_sub(2), ..row };
        let cursor = match &self.what {
            What::Value { .. } => self.field.draw(input, buf, theme.text),
            What::Key { .. } => {
                let count = self.field.text().chars().count();
                let dots = "•".repeat(count.min(DOTS).min(usize::from(input.width).saturating_sub(1)));
                let at = input.x + paint::width(&dots) as u16;
                let left = usize::from(input.width).saturating_sub(paint::width(&dots));
                let words = [format!("  {count} characters"), format!("  {count}")];
                let words = words.iter().find(|words| count > 0 && paint::width(words) < left);
                buf.set_stringn(input.x, input.y, &dots, usize::from(input.width), theme.text);
                if let Some(words) = words {
                    buf.set_stringn(at + 1, input.y, words, usize::from(input.width), theme.dim);
                }
                Some(Position { x: at, y: input.y })
            }
        };
        let (hint, style) = match (self.problem, &self.what) {
            (Some(problem), _) => (problem, theme.warning),
            (None, What::Key { .. }) => ("Enter store · Esc back", theme.dim),
            (None, What::Value { .. }) => ("Enter save · Esc back", theme.dim),
        };
        paint::lines(buf, area, &[Line::styled(paint::cut(hint, width), style)]);
        cursor
    }
}
