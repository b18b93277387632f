//! Questions of the agent with options: one after the other, with a way back, and a look at all answers at the end.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::Outcome;
use crate::protocol::{Answer, Choices};
use crate::tui::composer::field::Field;
use crate::tui::paint;
use crate::tui::theme::Theme;

/// Columns before an option's description.
const INDENT: usize = 5;

/// Questions and what has been answered so far.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pages: Vec<Page>,
    /// The question in front; one past the last is the look at all answers.
    at: usize,
    /// Rows scrolled away by hand; none follows the selection.
    scroll: Option<usize>,
}

/// One question and its answer.
#[derive(Debug, Clone)]
struct Page {
    ask: Choices,
    /// The row of the cursor: an option, or past them the user's own words.
    selected: usize,
    /// Options that are chosen; of a single choice at most one.
    chosen: Vec<bool>,
    /// The user's own words.
    own: Field,
    /// Of a single choice: the own words are the answer.
    own_chosen: bool,
}

impl Page {
    fn new(ask: Choices) -> Page {
        let chosen = vec![false; ask.options.len()];
        Page { ask, selected: 0, chosen, own: Field::default(), own_chosen: false }
    }

    fn in_own(&self) -> bool {
        self.selected == self.ask.options.len()
    }

    fn own_text(&self) -> Option<String> {
        let text = self.own.text().trim();
        (!text.is_empty() && (self.ask.multi || self.own_chosen)).then(|| text.to_owned())
    }

    fn answers(&self) -> Vec<String> {
        let chosen = self.ask.options.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen);
        chosen.map(|(option, _)| option.label.clone()).chain(self.own_text()).collect()
    }

    /// Marks a row; of a single choice nothing else stays marked.
    fn mark(&mut self, row: usize) {
        if self.ask.multi {
            if let Some(chosen) = self.chosen.get_mut(row) {
                *chosen = !*chosen;
            }
            return;
        }
        self.chosen.iter_mut().enumerate().for_each(|(at, chosen)| *chosen = at == row);
        self.own_chosen = row == self.chosen.len();
    }
}

impl Form {
    pub(super) fn new(questions: Vec<Choices>) -> Form {
        Form { pages: questions.into_iter().map(Page::new).collect(), at: 0, scroll: None }
    }

    /// Whether the question and an option have room.
    pub(super) fn legible(height: u16) -> bool {
        room(height) > 1
    }

    pub(super) fn writing(&self) -> bool {
        self.pages.get(self.at).is_some_and(Page::in_own)
    }

    /// Pasted text goes into the user's own words, where they are being written.
    pub(super) fn paste(&mut self, text: &str) -> bool {
        let Some(page) = self.pages.get_mut(self.at).filter(|page| page.in_own()) else { return false };
        page.own.insert(text);
        true
    }

    pub(super) fn key(&mut self, key: KeyEvent, (width, height): (u16, u16), theme: &Theme) -> Outcome {
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Esc => return Outcome::Answered(Answer::No { feedback: None }),
            KeyCode::Tab => self.go(self.at + 1),
            KeyCode::BackTab => self.go(self.at.saturating_sub(1)),
            KeyCode::PageUp | KeyCode::PageDown => {
                let room = room(height);
                let (lines, selected) = self.body(width, room, theme);
                let (from, last) = (self.first(&lines, &selected, room), lines.len().saturating_sub(room));
                let step = room.saturating_sub(1).max(1);
                let to = if key.code == KeyCode::PageUp { from.saturating_sub(step) } else { (from + step).min(last) };
                self.scroll = Some(to);
            }
            _ => {
                self.scroll = None;
                return match self.pages.get(self.at) {
                    Some(page) if page.in_own() => self.key_in_own(key),
                    Some(_) => self.key_in_options(key, plain),
                    None => self.key_at_end(key, plain),
                };
            }
        }
        Outcome::Open
    }

    fn key_in_own(&mut self, key: KeyEvent) -> Outcome {
        let page = &mut self.pages[self.at];
        match key.code {
            KeyCode::Up => page.selected = page.ask.options.len().saturating_sub(1),
            KeyCode::Down => page.selected = 0,
            KeyCode::Left if page.own.is_empty() => self.go(self.at.saturating_sub(1)),
            KeyCode::Right if page.own.is_empty() => self.go(self.at + 1),
            KeyCode::Enter => {
                let row = page.selected;
                return self.take(row);
            }
            _ if !page.own.key(key) => return Outcome::Ignored,
            _ => {}
        }
        Outcome::Open
    }

    fn key_in_options(&mut self, key: KeyEvent, plain: bool) -> Outcome {
        let page = &mut self.pages[self.at];
        let rows = page.ask.options.len() + 1;
        match key.code {
            KeyCode::Up => page.selected = (page.selected + rows - 1) % rows,
            KeyCode::Down => page.selected = (page.selected + 1) % rows,
            KeyCode::Home => page.selected = 0,
            KeyCode::End => page.selected = rows - 1,
            KeyCode::Left => self.go(self.at.saturating_sub(1)),
            KeyCode::Right => self.go(self.at + 1),
            KeyCode::Enter => {
                let row = page.selected;
                return self.take(row);
            }
            KeyCode::Char(' ') => page.mark(page.selected),
            KeyCode::Char(c @ '1'..='9') if plain => {
                let row = c as usize - '1' as usize;
                if row >= rows {
                    return Outcome::Ignored;
                }
                page.selected = row;
                if page.ask.multi {
                    page.mark(row);
                } else if row + 1 < rows {
                    return self.take(row);
                }
            }
            // Who starts to write means the own words.
            KeyCode::Char(_) if plain => {
                page.selected = rows - 1;
                page.own.key(key);
            }
            _ => return Outcome::Ignored,
        }
        Outcome::Open
    }

    fn key_at_end(&mut self, key: KeyEvent, plain: bool) -> Outcome {
        match key.code {
            KeyCode::Up | KeyCode::Left => self.go(self.pages.len().saturating_sub(1)),
            KeyCode::Char(c @ '1'..='9') if plain && (c as usize - '1' as usize) < self.pages.len() => {
                self.go(c as usize - '1' as usize);
            }
            KeyCode::Enter => match self.unanswered() {
                Some(at) => self.go(at),
                None => return self.send(),
            },
            _ => return Outcome::Ignored,
        }
        Outcome::Open
    }

    /// Takes the answer of the question in front, with the row under the cursor, and continues.
    fn take(&mut self, row: usize) -> Outcome {
        let page = &mut self.pages[self.at];
        let own = row == page.ask.options.len();
        if own && page.own.text().trim().is_empty() && !(page.ask.multi && page.chosen.contains(&true)) {
            return Outcome::Open;
        }
        // With several to choose, Enter takes the row under the cursor only when nothing else is marked.
        if !page.ask.multi || page.answers().is_empty() {
            page.mark(row);
        }
        if self.pages.len() == 1 {
            return self.send();
        }
        self.go(self.at + 1);
        Outcome::Open
    }

    fn send(&self) -> Outcome {
        Outcome::Answered(Answer::Chosen { answers: self.pages.iter().map(Page::answers).collect() })
    }

    fn unanswered(&self) -> Option<usize> {
        self.pages.iter().position(|page| page.answers().is_empty())
    }

    /// Goes to a question; past the last to the look at all answers, where there are several questions.
    fn go(&mut self, at: usize) {
        let last = if self.pages.len() == 1 { 0 } else { self.pages.len() };
        self.at = at.min(last);
        self.scroll = None;
    }

    pub(super) fn height(&self, width: u16, most: u16, theme: &Theme) -> u16 {
        let (lines, _) = self.body(width, room(most), theme);
        (lines.len() + 3).min(most as usize) as u16
    }

    pub(super) fn draw(&self, mut area: Rect, buf: &mut Buffer, word: Option<&str>, theme: &Theme) -> Option<Position> {
        let width = area.width as usize;
        let room = room(area.height);
        let (lines, selected) = self.body(area.width, room, theme);
        paint::rule(buf, paint::take(&mut area, 1), "", theme.accent);
        paint::lines(buf, paint::take(&mut area, 1), &[self.tabs(width, theme)]);
        let first = self.first(&lines, &selected, room);
        let shown = &lines[first..(first + room).min(lines.len())];
        let body = paint::take(&mut area, shown.len() as u16);
        paint::lines(buf, body, shown);
        let hint = word.map_or_else(|| self.hint(first, lines.len(), room), str::to_owned);
        paint::lines(buf, area, &[Line::styled(paint::cut(&hint, width), theme.dim)]);
        let page = self.pages.get(self.at).filter(|page| page.in_own())?;
        let y = body.y + selected.start.checked_sub(first).filter(|row| *row < shown.len())? as u16;
        let x = self.own_column();
        let field = Rect { x, y, width: area.width.saturating_sub(x).max(1), height: 1 };
        page.own.draw(field.intersection(buf.area), buf, theme.text)
    }

    /// Headers of all questions, the one in front marked; where they do not fit, that one alone.
    fn tabs(&self, width: usize, theme: &Theme) -> Line<'static> {
        let count = self.pages.len();
        if count == 1 {
            return Line::styled(paint::cut(&self.pages[0].ask.header, width), theme.heading);
        }
        let mark = |page: &Page| if page.answers().is_empty() { "☐" } else { "☑" };
        let mut labels: Vec<String> =
            self.pages.iter().map(|page| format!("{} {}", mark(page), paint::cut(&page.ask.header, width))).collect();
        labels.push("Send".to_owned());
        let wide: usize = labels.iter().map(|label| paint::width(label)).sum::<usize>() + 3 * count;
        if wide > width {
            let place = format!("{}/{count} ", (self.at + 1).min(count));
            let label = paint::cut(&format!("{place}{}", labels[self.at]), width);
            return Line::styled(label, theme.heading);
        }
        let mut spans = Vec::new();
        for (at, label) in labels.into_iter().enumerate() {
            if at > 0 {
                spans.push(Span::styled(" → ", theme.border));
            }
            spans.push(Span::styled(label, if at == self.at { theme.selected } else { theme.dim }));
        }
        Line::from(spans)
    }

    /// The question and its options, and which rows hold the selected one. Where not all fits, only the selected
    /// option keeps its description.
    fn body(&self, width: u16, room: usize, theme: &Theme) -> (Vec<Line<'static>>, Range<usize>) {
        let Some(page) = self.pages.get(self.at) else { return self.overview(width, theme) };
        let (lines, selected) = self.options(page, width, Describe::All, theme);
        if lines.len() <= room { (lines, selected) } else { self.options(page, width, Describe::Selected, theme) }
    }

    fn options(
        &self,
        page: &Page,
        width: u16,
        describe: Describe,
        theme: &Theme,
    ) -> (Vec<Line<'static>>, Range<usize>) {
        let width = width as usize;
        let mut lines = paint::folded(&page.ask.question, width, theme.text);
        let mut selected = 0..0;
        for (at, option) in page.ask.options.iter().enumerate() {
            let here = at == page.selected;
            let style = if here { theme.selected } else { theme.text };
            let start = lines.len();
            let head = self.head(page, at, page.chosen[at]);
            let indent = paint::width(&head);
            for (row, text) in paint::fold(&option.label, width.saturating_sub(indent)).into_iter().enumerate() {
                let lead = if row == 0 { head.clone() } else { " ".repeat(indent) };
                lines.push(Line::from(vec![Span::styled(lead, style), Span::styled(text, style)]));
            }
            if !option.description.is_empty() && (here || describe == Describe::All) {
                for text in paint::fold(&option.description, width.saturating_sub(INDENT)) {
                    lines.push(Line::styled(format!("{}{text}", " ".repeat(INDENT)), theme.dim));
                }
            }
            if here {
                selected = start..lines.len();
            }
        }
        let own = page.ask.options.len();
        let style = if page.in_own() { theme.selected } else { theme.text };
        let head = format!("{}Other: ", self.head(page, own, page.own_text().is_some()));
        let mut spans = vec![Span::styled(head.clone(), style)];
        if page.in_own() {
            selected = lines.len()..lines.len() + 1;
        } else {
            let text = page.own.text();
            let text = if text.is_empty() { "in your own words" } else { text };
            spans.push(Span::styled(paint::cut(text, width.saturating_sub(paint::width(&head))), theme.dim));
        }
        lines.push(Line::from(spans));
        (lines, selected)
    }

    /// What is before an option: cursor, digit, and whether it is chosen.
    fn head(&self, page: &Page, row: usize, chosen: bool) -> String {
        let cursor = if row == page.selected { '›' } else { ' ' };
        let mark = match (page.ask.multi, chosen) {
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
            (false, true) => "✓ ",
            (false, false) => "",
        };
        format!("{cursor} {}. {mark}", row + 1)
    }

    /// Column of the user's own words.
    fn own_column(&self) -> u16 {
        let Some(page) = self.pages.get(self.at) else { return 0 };
        let head = self.head(page, page.ask.options.len(), page.own_text().is_some());
        (paint::width(&head) + "Other: ".len()) as u16
    }

    fn overview(&self, width: u16, theme: &Theme) -> (Vec<Line<'static>>, Range<usize>) {
        let width = width as usize;
        let mut lines = Vec::new();
        for (at, page) in self.pages.iter().enumerate() {
            let answers = page.answers();
            let (text, style) = match answers.is_empty() {
                true => ("not answered yet".to_owned(), theme.warning),
                false => (answers.join(", "), theme.text),
            };
            lines.push(Line::styled(paint::cut(&format!("{}. {}", at + 1, page.ask.question), width), theme.dim));
            for text in paint::fold(&text, width.saturating_sub(3)) {
                lines.push(Line::styled(format!("   {text}"), style));
            }
        }
        let end = lines.len();
        (lines, end..end)
    }

    /// The first row of the body that is shown: the question, as long as the selected option is in sight.
    fn first(&self, lines: &[Line<'_>], selected: &Range<usize>, room: usize) -> usize {
        let last = lines.len().saturating_sub(room);
        let follow = selected.end.saturating_sub(room).min(selected.start);
        self.scroll.unwrap_or(follow).min(last)
    }

    fn hint(&self, first: usize, rows: usize, room: usize) -> String {
        let hidden = if rows > room { format!("{first}↑ {}↓ · ", rows - room - first) } else { String::new() };
        let several = self.pages.len() > 1;
        let keys = match self.pages.get(self.at) {
            None if self.unanswered().is_some() => "Enter next open question · ← back · Esc decline",
            None => "Enter send · ← back · Esc decline",
            Some(page) if page.ask.multi && several => "Space mark · Enter next · ← → · Esc decline",
            Some(page) if page.ask.multi => "Space mark · Enter send · Esc decline",
            Some(_) if several => "↑↓ Enter choose · ← → · Esc decline",
            Some(_) => "↑↓ Enter choose · Esc decline",
        };
        format!("{hidden}{keys}")
    }
}

/// Which options show their description.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Describe {
    All,
    Selected,
}

/// Rows of the body in a dialog of that height.
fn room(height: u16) -> usize {
    (height as usize).saturating_sub(3).max(1)
}
