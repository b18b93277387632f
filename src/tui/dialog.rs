//! A question of the engine: one panel each for plain questions, the plan's review, and choices.

mod choices;
pub mod picker;
mod plain;
mod plan;
mod question;

use std::path::{Path, PathBuf};

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use self::choices::Form;
use self::plain::Plain;
use self::plan::Review;
use super::paint;
use super::theme::Theme;
use crate::message::FileDiff;
use crate::protocol::{Answer, Ask, AskId, Question};

/// What a key did.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Open,
    Answered(Answer),
    Ignored,
    /// Open the file in the editor, and show its text afterwards.
    Edit(PathBuf),
    Copy(String),
    /// Show the whole change.
    Diff(FileDiff),
    /// Open what an edit would write in the editor.
    Rewrite(String),
    /// Yes to this edit, and to those beside it.
    Together,
}

/// Columns of the type of a sub-agent that asks, and of what it works on.
const ABOUT: usize = 24;
/// Columns below which no title tells what is asked.
const NARROW: u16 = 20;
/// What is shown in place of a question that cannot be read.
const CRAMPED: &str = "Make the window larger to answer · Esc no";
/// Columns of a choice's mark and digit.
const DIGIT: usize = 5;

/// An open question.
#[derive(Debug, Clone)]
pub struct Dialog {
    id: AskId,
    headline: String,
    panel: Panel,
    /// It needs the whole screen, which has this size.
    covers: bool,
    size: (u16, u16),
    /// There is no room for its title and a row of what it is about: nothing but a no is taken.
    cramped: bool,
    /// Which of several questions it is: `2 of 3`.
    place: String,
}

#[derive(Debug, Clone)]
enum Panel {
    Plain(Box<Plain>),
    Plan(Box<Review>),
    Choices(Box<Form>),
}

impl Dialog {
    pub fn new(ask: Ask) -> Dialog {
        let title = paint::dense(&question::title(&ask.question));
        let headline = match &ask.asker {
            Some(asker) => {
                format!("{} ({}): {title}", paint::cut(&asker.agent, ABOUT), paint::cut(&asker.description, ABOUT))
            }
            None => title,
        };
        let panel = match ask.question {
            Question::Plan { plan, path } => Panel::Plan(Box::new(Review::new(plan, path))),
            Question::Choices { questions } => Panel::Choices(Box::new(Form::new(questions))),
            question => Panel::Plain(Box::new(Plain::new(question, headline.clone()))),
        };
        Dialog { id: ask.id, headline, panel, covers: false, size: (0, 0), cramped: false, place: String::new() }
    }

    pub fn id(&self) -> AskId {
        self.id
    }

    /// One line that says what is asked, for a notification.
    pub fn headline(&self) -> &str {
        &self.headline
    }

    /// The file of an edit that may be answered together with others.
    pub fn edit(&self) -> Option<&str> {
        match &self.panel {
            Panel::Plain(plain) => plain.edit(),
            Panel::Plan(_) | Panel::Choices(_) => None,
        }
    }

    /// What else waits: which of how many this is, and the files of other edits.
    pub fn among(&mut self, (nth, all): (usize, usize), others: Vec<String>) {
        self.place = if all > 1 { format!("{nth} of {all}") } else { String::new() };
        if let Panel::Plain(plain) = &mut self.panel {
            plain.beside(others);
        }
    }

    /// Wants the whole (alternate) screen. A tall dialog in the live region would be pushed into the scrollback when
    /// the screen shrinks, and stay there.
    pub fn covers(&self) -> bool {
        self.covers
    }

    /// Rows that it may take of a screen where it covers everything.
    pub fn rows(&self, screen: u16) -> u16 {
        match self.panel {
            Panel::Plan(_) => screen,
            Panel::Plain(_) | Panel::Choices(_) => screen.saturating_sub(1).max(1),
        }
    }

    /// Takes a key; `size` is what the dialog may take of the screen.
    pub fn key(&mut self, key: KeyEvent, size: (u16, u16), theme: &Theme) -> Outcome {
        let outcome = match &mut self.panel {
            Panel::Plain(plain) => plain.key(key, size, theme),
            Panel::Plan(review) => review.key(key, size, theme),
            Panel::Choices(form) => form.key(key, size, theme),
        };
        match outcome {
            Outcome::Answered(Answer::No { .. }) => outcome,
            Outcome::Answered(_) | Outcome::Together if self.cramped => Outcome::Open,
            outcome => outcome,
        }
    }

    /// Whether words are being written in it.
    pub fn writing(&self) -> bool {
        match &self.panel {
            Panel::Plain(plain) => plain.writing(),
            Panel::Plan(review) => review.writing(),
            Panel::Choices(form) => form.writing(),
        }
    }

    /// Whether a key may be a choice by its letter or digit, and so might be the beginning of a text as well.
    pub fn chooses(&self, key: KeyEvent) -> bool {
        let letters = matches!(self.panel, Panel::Plain(_));
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        plain
            && !self.writing()
            && matches!(key.code, KeyCode::Char(c) if c.is_ascii_digit() || letters && c.is_alphabetic())
    }

    /// It is on the screen as it was last settled. True when it looks different for that.
    pub fn drawn(&mut self, theme: &Theme) -> bool {
        let ((width, _), height) = (self.size, self.area(theme));
        match &mut self.panel {
            Panel::Plain(plain) => plain.drawn(width, height, theme),
            Panel::Plan(_) | Panel::Choices(_) => false,
        }
    }

    /// Rows that it gets of the screen that it was settled for.
    fn area(&self, theme: &Theme) -> u16 {
        let (width, screen) = self.size;
        if self.covers { self.rows(screen) } else { self.height(width, screen, theme) }
    }

    /// The file that can be edited before the question is answered.
    pub fn file(&self) -> Option<&Path> {
        match &self.panel {
            Panel::Plan(review) => Some(review.path()),
            Panel::Plain(_) | Panel::Choices(_) => None,
        }
    }

    /// The file has been edited.
    pub fn edited(&mut self, text: String) {
        if let Panel::Plan(review) = &mut self.panel {
            review.edited(text);
        }
    }

    /// Takes pasted text. False when there is no field for it.
    pub fn paste(&mut self, text: &str) -> bool {
        match &mut self.panel {
            Panel::Plain(plain) => plain.paste(text),
            Panel::Plan(review) => review.paste(text),
            Panel::Choices(form) => form.paste(text),
        }
    }

    /// Lays out what is long, where that has changed, for a screen of `size`.
    pub fn settle(&mut self, size: (u16, u16), theme: &Theme) {
        match &mut self.panel {
            Panel::Plain(plain) => plain.settle(size.0, theme),
            Panel::Plan(review) => review.settle(size.0, theme),
            Panel::Choices(_) => {}
        }
        let tall = self.height(size.0, size.1, theme) > size.1 / 3 * 2;
        // A step within the dialog, which may be short, does not take it back.
        self.covers = tall || (self.covers && self.size == size);
        self.size = size;
        let area = self.area(theme);
        if let Panel::Plain(plain) = &mut self.panel {
            plain.fit(size.0, area, theme);
        }
        self.cramped = size.0 < NARROW
            || !match &self.panel {
                Panel::Plain(plain) => plain.legible(size.0, area, theme),
                Panel::Plan(review) => review.legible(size.0, area, theme),
                Panel::Choices(_) => Form::legible(area),
            };
    }

    /// Rows that it wants at a width, at most `most`.
    pub fn height(&self, width: u16, most: u16, theme: &Theme) -> u16 {
        match &self.panel {
            Panel::Plain(plain) => plain.height(width, most, theme),
            Panel::Plan(_) => most,
            Panel::Choices(form) => form.height(width, most, theme),
        }
    }

    /// Draws it; `word` is a short word to the user that takes the place of the keys.
    pub fn draw(&self, area: Rect, buf: &mut Buffer, word: Option<&str>, theme: &Theme) -> Option<Position> {
        if self.cramped {
            paint::lines(buf, area, &paint::folded(CRAMPED, usize::from(area.width), theme.warning));
            return None;
        }
        match &self.panel {
            Panel::Plain(plain) => plain.draw(area, buf, (word, &self.place), theme),
            Panel::Plan(review) => review.draw(area, buf, word, theme),
            Panel::Choices(form) => form.draw(area, buf, word, theme),
        }
    }
}

/// As many parts of a hint as fit, the first ones first.
pub(super) fn fitting(parts: &[&str], width: usize) -> String {
    let mut hint = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let longer = if hint.is_empty() { (*part).to_owned() } else { format!("{hint} · {part}") };
        if hint.is_empty() || paint::width(&longer) <= width {
            hint = longer;
        }
    }
    hint
}

/// Choices with their digits, one marked; each takes at most `rows` rows. A key is beside its choice where there is
/// room, and ends at the column `keys` or behind the label.
fn numbered(
    labels: &[(String, &str)],
    selected: usize,
    rows: usize,
    (width, keys): (u16, usize),
    theme: &Theme,
) -> Vec<Line<'static>> {
    let room = (width as usize).saturating_sub(DIGIT);
    // One label that reaches beyond the column moves it for all.
    let ends = labels.iter().map(|(label, key)| DIGIT + paint::width(label) + 2 + paint::width(key));
    let keys = if keys > 0 { ends.filter(|end| *end <= width as usize).fold(keys, usize::max) } else { 0 };
    let mut lines = Vec::new();
    for (at, (label, key)) in labels.iter().enumerate() {
        let chosen = at == selected;
        let style = if chosen { theme.selected } else { theme.text };
        let mut folded = paint::fold(label, room);
        if folded.len() > rows {
            let last = paint::cut(&folded[rows - 1..].concat(), room);
            folded.truncate(rows - 1);
            folded.push(last);
        }
        for (row, text) in folded.into_iter().enumerate() {
            let mark = match (row, chosen) {
                (0, true) => format!("› {}. ", at + 1),
                (0, false) => format!("  {}. ", at + 1),
                _ => " ".repeat(DIGIT),
            };
            let (used, beside) = (DIGIT + paint::width(&text), paint::width(key));
            let gap = keys.min(width as usize).saturating_sub(used + beside).max(2);
            let mut spans = vec![Span::styled(mark, style), Span::styled(text, style)];
            if row == 0 && beside > 0 && used + gap + beside <= width as usize {
                spans.push(Span::styled(format!("{}{key}", " ".repeat(gap)), theme.dim));
            }
            lines.push(Line::from(spans));
        }
    }
    lines
}
