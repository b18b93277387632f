//! A question with a title, a scrollable body and a few choices: permissions, trust, what is found at the start.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use super::question::{self, Choice, Then};
use super::{Outcome, fitting, numbered};
use crate::message::FileDiff;
use crate::protocol::{Answer, GrantScope, Question};
use crate::tui::composer::field::Field;
use crate::tui::paint;
use crate::tui::theme::Theme;

/// Most rows of a choice, and rows of the body below which a choice has to do with one.
const LABEL_ROWS: usize = 2;
const FEW_ROWS: usize = 3;

/// Column at which the keys beside the choices end, where there is room.
const KEYS: usize = 64;

/// Which part of the dialog the user is in.
#[derive(Debug, Clone)]
enum Stage {
    Choices,
    /// What the agent should do instead.
    Feedback(Box<Field>),
}

/// An open question.
#[derive(Debug, Clone)]
pub(super) struct Plain {
    question: Question,
    title: String,
    stage: Stage,
    selected: usize,
    /// How long suggested rules would be kept.
    scope: GrantScope,
    /// The files of other edits that wait, which one answer may cover with this one.
    others: Vec<String>,
    /// Rows of the body that are scrolled away.
    scroll: usize,
    /// All of the body is in sight where it is.
    fits: bool,
    /// The end of the body has been on the screen.
    read: bool,
    /// The body as it was last laid out: a long diff is not rendered again for each frame.
    laid: Option<Laid>,
}

/// A body, and what it was laid out for.
#[derive(Debug, Clone)]
struct Laid {
    width: u16,
    theme: String,
    lines: Vec<Line<'static>>,
}

/// How the rows of a dialog are shared out.
struct Layout {
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
            scope: GrantScope::Session,
            others: Vec::new(),
            scroll: 0,
            fits: false,
            read: false,
            laid: None,
        }
    }

    /// What it would change, where an answer for all edits may cover it: that can be undone.
    pub(super) fn edit(&self) -> Option<&str> {
        match &self.question {
            Question::Permission { title, diff: Some(_), all_edits: true, .. } => Some(title),
            _ => None,
        }
    }

    /// Other edits that wait.
    pub(super) fn beside(&mut self, others: Vec<String>) {
        self.others = others;
        self.selected = self.selected.min(self.choices(u16::MAX).len().saturating_sub(1));
    }

    /// The change that it asks about.
    fn diff(&self) -> Option<&FileDiff> {
        match &self.question {
            Question::Permission { diff, .. } => diff.as_ref(),
            _ => None,
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
        let choices = self.choices(size.0);
        let at = |key: &str| choices.iter().position(|choice| choice.then.key() == key);
        match key.code {
            KeyCode::Esc => return Outcome::Answered(Answer::No { feedback: None }),
            KeyCode::BackTab if at("shift+tab").is_some() => return self.choose(at("shift+tab"), size.0),
            KeyCode::Up | KeyCode::BackTab => self.selected = (self.selected + choices.len() - 1) % choices.len(),
            KeyCode::Down | KeyCode::Tab => self.selected = (self.selected + 1) % choices.len(),
            KeyCode::Left | KeyCode::Right if let Some(always) = at("←→").or(at("p")) => {
                if choices.get(self.selected).is_none_or(|choice| choice.then != Then::Preset) {
                    self.selected = always;
                }
                self.scope =
                    question::beside(&self.question, self.scope, if key.code == KeyCode::Left { -1 } else { 1 });
            }
            KeyCode::PageUp | KeyCode::PageDown | KeyCode::Home | KeyCode::End => self.scroll(key.code, size, theme),
            KeyCode::Char(' ') if plain => self.scroll(KeyCode::PageDown, size, theme),
            KeyCode::Enter => return self.choose(Some(self.selected), size.0),
            KeyCode::Char(c @ '1'..='9') if plain => {
                return self.choose((c as usize).checked_sub('1' as usize), size.0);
            }
            KeyCode::Char(c @ ('y' | 'n' | 'a' | 'p' | 'u')) if plain && at(c.encode_utf8(&mut [0; 4])).is_some() => {
                return self.choose(at(c.encode_utf8(&mut [0; 4])), size.0);
            }
            KeyCode::Char('e') if plain => {
                return self.question.written().map_or(Outcome::Ignored, |(_, text)| Outcome::Rewrite(text.to_owned()));
            }
            KeyCode::Char('d') if plain => {
                return self.diff().map_or(Outcome::Ignored, |diff| Outcome::Diff(diff.clone()));
            }
            _ => return Outcome::Ignored,
        }
        Outcome::Open
    }

    pub(super) fn writing(&self) -> bool {
        matches!(self.stage, Stage::Feedback(_))
    }

    /// Takes pasted text. False when there is no field for it.
    pub(super) fn paste(&mut self, text: &str) -> bool {
        match &mut self.stage {
            Stage::Feedback(field) => {
                field.insert(text);
                true
            }
            Stage::Choices => false,
        }
    }

    /// Lays the body out where that has changed.
    pub(super) fn settle(&mut self, width: u16, theme: &Theme) {
        if let Cow::Owned(lines) = self.body(width, theme) {
            self.laid = Some(Laid { width, theme: theme.name.clone(), lines });
        }
    }

    /// Rows that it wants at a width, at most `most`.
    pub(super) fn height(&self, width: u16, most: u16, theme: &Theme) -> u16 {
        let frame = 2 + self.choice_lines(width, LABEL_ROWS, theme).len();
        (frame + self.body(width, theme).len()).min(most as usize) as u16
    }

    /// Looks whether everything is in sight in an area of this size.
    pub(super) fn fit(&mut self, width: u16, height: u16, theme: &Theme) {
        self.fits = true;
        self.fits = self.layout(width, height, theme).room >= self.body(width, theme).len();
    }

    /// Whether its title and a row of what it is about have room.
    pub(super) fn legible(&self, width: u16, height: u16, theme: &Theme) -> bool {
        let Layout { title, room, .. } = self.layout(width, height, theme);
        title > 0 && room >= self.body(width, theme).len().min(1)
    }

    /// It is on the screen, so wide and so high. True when something can be chosen now that could not be before.
    pub(super) fn drawn(&mut self, width: u16, height: u16, theme: &Theme) -> bool {
        let before = (self.unread(), self.read);
        let end = self.first(width, height, theme) + self.layout(width, height, theme).room;
        self.read |= end >= self.body(width, theme).len();
        before != (self.unread(), self.read)
    }

    /// Draws it; `place` says which of several questions it is.
    pub(super) fn draw(
        &self,
        mut area: Rect,
        buf: &mut Buffer,
        (word, place): (Option<&str>, &str),
        theme: &Theme,
    ) -> Option<Position> {
        let width = area.width;
        let Layout { title, room, choices } = self.layout(width, area.height, theme);
        let body = self.body(width, theme);
        let row = paint::take(&mut area, title);
        paint::rule(buf, row, "", theme.warning);
        let (end, cells) = (if place.is_empty() { String::new() } else { format!(" {place} ──") }, width as usize);
        let headline = paint::cut(&self.title, cells.saturating_sub(5 + paint::width(&end)));
        paint::lines(
            buf,
            Rect { x: row.x + 2.min(width), width: width.saturating_sub(2), ..row },
            &[Line::styled(format!(" {headline} "), theme.heading)],
        );
        let right = (paint::width(&end) as u16).min(width);
        paint::lines(buf, Rect { x: row.right() - right, width: right, ..row }, &[Line::styled(end, theme.warning)]);
        let scroll = self.scroll.min(body.len().saturating_sub(room));
        let shown = &body[scroll..];
        let hidden = shown.len().saturating_sub(room);
        paint::lines(buf, paint::take(&mut area, room.min(shown.len()) as u16), shown);
        let first = area.y;
        paint::lines(buf, paint::take(&mut area, choices.len() as u16), &choices);
        let hint = word.map_or_else(|| self.hint(scroll, hidden, cells), str::to_owned);
        paint::lines(buf, area, &[Line::styled(paint::cut(&hint, cells), theme.dim)]);
        match &self.stage {
            Stage::Feedback(field) if first < buf.area.bottom() => {
                let row =
                    Rect { x: area.x + 2, y: first + choices.len() as u16 - 1, width: width.max(3) - 2, height: 1 };
                field.draw(row.intersection(buf.area), buf, theme.text)
            }
            _ => None,
        }
    }

    /// The keys, the most needed first, as many as fit; or what the scope that is being chosen means.
    fn hint(&self, above: usize, below: usize, width: usize) -> String {
        if matches!(self.stage, Stage::Feedback(_)) {
            return "Enter send · Esc back".to_owned();
        }
        if self.unread() {
            let rows = if below == 1 { "row" } else { "rows" };
            return format!("PgDn: {below} more {rows} to read before Yes · Esc no");
        }
        let choices = self.choices(u16::MAX);
        let scroll = if above + below > 0 { format!("PgUp/PgDn {above}↑ {below}↓") } else { String::new() };
        let always =
            choices.get(self.selected).is_some_and(|choice| matches!(choice.then, Then::Always | Then::Preset));
        let parts = [
            if always { question::means(self.scope) } else { "" },
            &scroll,
            if scroll.is_empty() { "↑↓ Enter choose" } else { "Enter choose" },
            "Esc no",
            if self.question.written().is_some() { "e edit" } else { "" },
            if self.diff().is_some() { "d whole diff" } else { "" },
        ];
        fitting(&parts, width)
    }

    /// Shares the rows out. The choices go before the body: without them nobody gets out. But some of the body has to be
    /// there, and the title next: nobody would know otherwise what is allowed.
    fn layout(&self, width: u16, height: u16, theme: &Theme) -> Layout {
        let height = height as usize;
        let body = self.body(width, theme).len();
        let mut choices = self.choice_lines(width, LABEL_ROWS, theme);
        if height < 2 + choices.len() + body.min(FEW_ROWS) {
            choices = self.choice_lines(width, 1, theme);
        }
        let spare = height.saturating_sub(choices.len() + body.min(1));
        let title = u16::from(spare >= 1);
        let room = height.saturating_sub(spare.min(2) + choices.len());
        Layout { title, room, choices }
    }

    /// The first row of the body that is shown.
    fn first(&self, width: u16, height: u16, theme: &Theme) -> usize {
        let room = self.layout(width, height, theme).room;
        self.scroll.min(self.body(width, theme).len().saturating_sub(room))
    }

    /// Something of what a yes would allow was not on the screen yet.
    fn unread(&self) -> bool {
        matches!(self.stage, Stage::Choices) && question::read_first(&self.question) && !self.fits && !self.read
    }

    /// It cannot be chosen before all was read. Rules that no row holds stand at the end of the body.
    fn blocked(&self, then: &Then, width: u16) -> bool {
        let in_body = || question::rules_in_body(&self.question, room(width));
        !then.refuses() && (self.unread() || (*then == Then::Always && !self.fits && !self.read && in_body()))
    }

    fn choices(&self, width: u16) -> Vec<Choice> {
        let mut choices = question::choices(&self.question, self.scope, room(width));
        choices.extend(question::together(&self.others));
        choices
    }

    fn choice_lines(&self, width: u16, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
        if matches!(self.stage, Stage::Feedback(_)) {
            let label = paint::cut("What should the agent do instead?", width as usize);
            return vec![Line::styled(label, theme.text), Line::styled("> ", theme.accent)];
        }
        let label = |choice: Choice| match self.blocked(&choice.then, width) {
            true if choice.then == Then::Always => ("(read to the end first) Yes, always".to_owned(), ""),
            true => (format!("(read to the end first) {}", choice.label), ""),
            false => (choice.label, choice.then.key()),
        };
        let labels: Vec<(String, &str)> = self.choices(width).into_iter().map(label).collect();
        numbered(&labels, self.selected, rows, (width, KEYS), theme)
    }

    fn body(&self, width: u16, theme: &Theme) -> Cow<'_, [Line<'static>]> {
        let fits = |laid: &&Laid| laid.width == width && laid.theme == theme.name;
        match self.laid.as_ref().filter(fits) {
            Some(laid) => Cow::Borrowed(&laid.lines),
            None => {
                let mut lines = question::body(&self.question, usize::from(width), theme);
                lines.extend(question::rules(&self.question, room(width), usize::from(width), theme));
                Cow::Owned(lines)
            }
        }
    }

    /// Takes a choice; one that is not there, or not yet, does nothing.
    fn choose(&mut self, at: Option<usize>, width: u16) -> Outcome {
        let Some((at, Choice { then, .. })) = at.and_then(|at| Some((at, self.choices(width).into_iter().nth(at)?)))
        else {
            return Outcome::Open;
        };
        self.selected = at;
        if self.blocked(&then, width) {
            return Outcome::Open;
        }
        match then {
            Then::Answer(answer) => Outcome::Answered(answer),
            Then::Always => {
                let rules = question::suggestions(&self.question).to_vec();
                Outcome::Answered(Answer::Always { rules, scope: self.scope })
            }
            Then::Preset => {
                let rules = question::preset(&self.question).to_vec();
                Outcome::Answered(Answer::Always { rules, scope: self.scope })
            }
            Then::Together => Outcome::Together,
            Then::Feedback => {
                self.go(Stage::Feedback(Box::default()));
                Outcome::Open
            }
        }
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

/// Cells of a choice's row behind its digit.
fn room(width: u16) -> usize {
    usize::from(width).saturating_sub(super::DIGIT)
}
