//! A question with a title, a scrollable body and a few choices: permissions, trust, what is found at the start.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use super::question::{self, Choice, Then};
use super::{Outcome, numbered};
use crate::protocol::{Answer, Question};
use crate::tui::composer::field::Field;
use crate::tui::paint;
use crate::tui::theme::Theme;

/// Most rows of a choice, and rows of the body below which a choice has to do with one.
const LABEL_ROWS: usize = 2;
const FEW_ROWS: usize = 3;

/// Which part of the dialog the user is in.
#[derive(Debug, Clone)]
enum Stage {
    Choices,
    /// Which rules are saved, and where.
    Scope,
    /// What the agent shall do instead.
    Feedback(Box<Field>),
}

/// An open question.
#[derive(Debug, Clone)]
pub(super) struct Plain {
    question: Question,
    title: String,
    stage: Stage,
    selected: usize,
    /// Rows of the body that are scrolled away.
    scroll: usize,
    /// All of the body is in sight where it stands.
    fits: bool,
    /// The end of the body, and of the rules, has been on the screen.
    read: (bool, bool),
    /// The body as it was last laid out: a long diff is not rendered anew for each frame.
    laid: Option<Laid>,
}

/// A body, and what it was laid out for.
#[derive(Debug, Clone)]
struct Laid {
    width: u16,
    scope: bool,
    theme: String,
    lines: Vec<Line<'static>>,
}

/// How the rows of a dialog are shared out.
struct Layout {
    rule: u16,
    title: u16,
    /// Rows of the body.
    room: usize,
    choices: Vec<Line<'static>>,
}

impl Plain {
    pub(super) fn new(question: Question, title: String) -> Plain {
        Plain {
            question,
            title,
            stage: Stage::Choices,
            selected: 0,
            scroll: 0,
            fits: false,
            read: (false, false),
            laid: None,
        }
    }

    /// Takes a key; `size` is what the dialog may take of the screen.
    pub(super) fn key(&mut self, key: KeyEvent, size: (u16, u16), theme: &Theme) -> Outcome {
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if let Stage::Feedback(field) = &mut self.stage {
            match key.code {
                KeyCode::Enter => {
                    let text = field.text().trim().to_owned();
                    return Outcome::Answered(Answer::No { feedback: (!text.is_empty()).then_some(text) });
                }
                KeyCode::Esc => self.go(Stage::Choices),
                KeyCode::PageUp | KeyCode::PageDown => self.scroll(key.code, size, theme),
                _ if !field.key(key) => return Outcome::Ignored,
                _ => {}
            }
            return Outcome::Open;
        }
        let choices = self.choices();
        match key.code {
            KeyCode::Esc if matches!(self.stage, Stage::Scope) => self.go(Stage::Choices),
            KeyCode::Esc => return Outcome::Answered(Answer::No { feedback: None }),
            KeyCode::Up | KeyCode::BackTab => self.selected = (self.selected + choices.len() - 1) % choices.len(),
            KeyCode::Down | KeyCode::Tab => self.selected = (self.selected + 1) % choices.len(),
            KeyCode::PageUp | KeyCode::PageDown | KeyCode::Home | KeyCode::End => self.scroll(key.code, size, theme),
            KeyCode::Char(' ') if plain => self.scroll(KeyCode::PageDown, size, theme),
            KeyCode::Enter => return self.choose(self.selected),
            KeyCode::Char(c @ '1'..='9') if plain => {
                let at = c as usize - '1' as usize;
                if at < choices.len() {
                    return self.choose(at);
                }
            }
            _ => return Outcome::Ignored,
        }
        Outcome::Open
    }

    /// Takes pasted text. False when there is no field for it.
    pub(super) fn paste(&mut self, text: &str) -> bool {
        match &mut self.stage {
            Stage::Feedback(field) => {
                field.insert(text);
                true
            }
            Stage::Choices | Stage::Scope => false,
        }
    }

    /// Lays the body out where that has changed.
    pub(super) fn settle(&mut self, width: u16, theme: &Theme) {
        if let Cow::Owned(lines) = self.body(width, theme) {
            let scope = matches!(self.stage, Stage::Scope);
            self.laid = Some(Laid { width, scope, theme: theme.name.clone(), lines });
        }
    }

    /// Rows that it wants at a width, at most `most`.
    pub(super) fn height(&self, width: u16, most: u16, theme: &Theme) -> u16 {
        let frame = 3 + self.choice_lines(width, LABEL_ROWS, theme).len();
        (frame + self.body(width, theme).len()).min(most as usize) as u16
    }

    /// Looks whether everything is in sight in an area of this size.
    pub(super) fn fit(&mut self, width: u16, height: u16, theme: &Theme) {
        self.fits = true;
        self.fits = self.layout(width, height, theme).room >= self.body(width, theme).len();
    }

    /// It stands on the screen, so wide and so high. True when something can be chosen now that could not be before.
    pub(super) fn drawn(&mut self, width: u16, height: u16, theme: &Theme) -> bool {
        let unread = self.unread();
        let end = self.first(width, height, theme) + self.layout(width, height, theme).room;
        let whole = end >= self.body(width, theme).len();
        match self.stage {
            Stage::Scope => self.read.1 |= whole,
            Stage::Choices | Stage::Feedback(_) => self.read.0 |= whole,
        }
        unread != self.unread()
    }

    pub(super) fn draw(&self, mut area: Rect, buf: &mut Buffer, word: Option<&str>, theme: &Theme) -> Option<Position> {
        let width = area.width;
        let Layout { rule, title, room, choices } = self.layout(width, area.height, theme);
        let body = self.body(width, theme);
        paint::rule(buf, paint::take(&mut area, rule), "", theme.warning);
        let headline = paint::cut(&self.title, width as usize);
        paint::lines(buf, paint::take(&mut area, title), &[Line::styled(headline, theme.heading)]);
        let scroll = self.scroll.min(body.len().saturating_sub(room));
        let shown = &body[scroll..];
        let hidden = shown.len().saturating_sub(room);
        paint::lines(buf, paint::take(&mut area, room.min(shown.len()) as u16), shown);
        let first = area.y;
        paint::lines(buf, paint::take(&mut area, choices.len() as u16), &choices);
        let hint = match (word, &self.stage, hidden + scroll) {
            (Some(word), ..) => word.to_owned(),
            (_, Stage::Feedback(_), _) => "Enter sends · Esc goes back".to_owned(),
            (_, _, 0) => "↑↓ Enter choose · Esc no".to_owned(),
            _ if self.unread() => format!("PgDn: {hidden} more rows to read before Yes · Esc no"),
            _ => format!("PgUp/PgDn {scroll}↑ {hidden}↓ · Enter choose · Esc no"),
        };
        paint::lines(buf, area, &[Line::styled(paint::cut(&hint, width as usize), theme.dim)]);
        match &self.stage {
            Stage::Feedback(field) if first < buf.area.bottom() => {
                let row =
                    Rect { x: area.x + 2, y: first + choices.len() as u16 - 1, width: width.max(3) - 2, height: 1 };
                field.draw(row.intersection(buf.area), buf, theme.text)
            }
            _ => None,
        }
    }

    /// Shares the rows out. The choices go before the body: without them nobody gets out. But some of the body has to be
    /// there: nobody could read it otherwise.
    fn layout(&self, width: u16, height: u16, theme: &Theme) -> Layout {
        let height = height as usize;
        let body = self.body(width, theme).len();
        let mut choices = self.choice_lines(width, LABEL_ROWS, theme);
        if height < 3 + choices.len() + body.min(FEW_ROWS) {
            choices = self.choice_lines(width, 1, theme);
        }
        let spare = height.saturating_sub(choices.len() + body.min(1));
        let (rule, title) = (u16::from(spare >= 3), u16::from(spare >= 2));
        let room = height.saturating_sub(spare.min(3) + choices.len());
        Layout { rule, title, room, choices }
    }

    /// The first row of the body that is shown.
    fn first(&self, width: u16, height: u16, theme: &Theme) -> usize {
        let room = self.layout(width, height, theme).room;
        self.scroll.min(self.body(width, theme).len().saturating_sub(room))
    }

    /// Something of what a yes would allow was not on the screen yet.
    fn unread(&self) -> bool {
        match self.stage {
            Stage::Choices => question::read_first(&self.question) && !self.fits && !self.read.0,
            Stage::Scope => !self.fits && !self.read.1,
            Stage::Feedback(_) => false,
        }
    }

    fn choices(&self) -> Vec<Choice> {
        match self.stage {
            Stage::Choices => question::choices(&self.question),
            Stage::Scope => question::scopes(&self.question),
            Stage::Feedback(_) => Vec::new(),
        }
    }

    fn choice_lines(&self, width: u16, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
        if matches!(self.stage, Stage::Feedback(_)) {
            let label = paint::cut("What shall the agent do instead?", width as usize);
            return vec![Line::styled(label, theme.text), Line::styled("> ", theme.accent)];
        }
        let unread = self.unread();
        let label = |choice: Choice| match unread && !choice.then.refuses() {
            true => format!("(read to the end first) {}", choice.label),
            false => choice.label,
        };
        let labels: Vec<String> = self.choices().into_iter().map(label).collect();
        numbered(&labels, self.selected, rows, width, theme)
    }

    fn body(&self, width: u16, theme: &Theme) -> Cow<'_, [Line<'static>]> {
        let scope = matches!(self.stage, Stage::Scope);
        let fits = |laid: &&Laid| laid.width == width && laid.scope == scope && laid.theme == theme.name;
        match (self.laid.as_ref().filter(fits), scope) {
            (Some(laid), _) => Cow::Borrowed(&laid.lines),
            (None, true) => Cow::Owned(question::rules(&self.question, width as usize, theme)),
            (None, false) => Cow::Owned(question::body(&self.question, width as usize, theme)),
        }
    }

    fn choose(&mut self, at: usize) -> Outcome {
        self.selected = at;
        let then = self.choices().swap_remove(at).then;
        if self.unread() && !then.refuses() {
            return Outcome::Open;
        }
        match then {
            Then::Answer(answer) => return Outcome::Answered(answer),
            Then::Scope => self.go(Stage::Scope),
            Then::Feedback => self.go(Stage::Feedback(Box::default())),
        }
        Outcome::Open
    }

    fn go(&mut self, stage: Stage) {
        self.stage = stage;
        self.selected = 0;
        self.scroll = 0;
    }

    fn scroll(&mut self, code: KeyCode, (width, height): (u16, u16), theme: &Theme) {
        let room = self.layout(width, height, theme).room.max(1);
        let most = self.body(width, theme).len().saturating_sub(room);
        // A row of the page before stays in sight where there is room for it.
        let page = if room > FEW_ROWS { room - 1 } else { room };
        self.scroll = match code {
            KeyCode::PageUp => self.scroll.min(most).saturating_sub(page),
            KeyCode::PageDown => (self.scroll + page).min(most),
            KeyCode::Home => 0,
            _ => most,
        };
    }
}
