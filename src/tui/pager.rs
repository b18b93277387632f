//! Scrolls through rows on the alternate screen: the transcript, live while the turn continues. It covers the screen, or
//! has the place above the composer where the whole session is on that screen.

mod marked;

use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::Line;

use self::marked::Marked;
use super::composer::field::Field;
use super::paint;
use super::render::Row;
use super::review::{Asked, Review};
use super::theme::Theme;
use super::transcript::{View, Want};
use crate::message::FileDiff;

/// Shortest time between two renders of the whole transcript.
const REFRESH: Duration = Duration::from_millis(250);

/// Where the pager is in its rows.
#[derive(Debug, Clone, Default)]
pub struct Pager {
    rows: Vec<Row>,
    /// Columns that the rows of the transcript were drawn for.
    width: usize,
    /// When the rows of the transcript were made, and its revision then; none before there are any.
    made: Option<(Instant, u64)>,
    /// A text that stays; none for the transcript, which may grow.
    page: Option<Page>,
    top: usize,
    /// At the end, and staying there as rows come in.
    follow: bool,
    /// The query that is being typed.
    typing: Option<Field>,
    /// What is typed is a comment of the review.
    comments: bool,
    /// The query that `n` and `N` continue with, in lower case.
    query: String,
    /// There is more before the rows, and in the place of one.
    older: bool,
    gap: Option<usize>,
    /// On the way to the start, which is not there yet.
    home: bool,
    /// What the mouse marks.
    marked: Option<Marked>,
    /// It is above the composer: so many rows had been there when the end was left.
    known: Option<usize>,
    /// What was not found in the rows is looked for in the pages that come this way.
    seeking: Option<Want>,
}

/// A text that stays: what its rows are made of, also for another width.
#[derive(Debug, Clone)]
pub enum Page {
    Keys,
    Changes(Review),
    Diff(FileDiff),
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Open,
    Closed,
    Ignored,
    /// The review wants its rows made again.
    Redraw,
    /// The review is done.
    Apply,
}

impl Pager {
    /// Opens at the end, before there are rows.
    pub fn open() -> Pager {
        Pager { follow: true, ..Pager::default() }
    }

    /// Opens above the composer at the end, before there are rows.
    pub fn above() -> Pager {
        Pager { known: Some(0), ..Pager::open() }
    }

    /// Opens a text that stays, at its start.
    pub fn text(page: Page, rows: Vec<Row>) -> Pager {
        Pager { rows, page: Some(page), ..Pager::default() }
    }

    /// The text that it shows.
    pub fn page(&self) -> Option<&Page> {
        self.page.as_ref()
    }

    /// It shows the transcript.
    pub fn live(&self) -> bool {
        self.page.is_none()
    }

    /// When new rows are wanted; none while the transcript is as it was.
    pub fn due(&self, revision: u64) -> Option<Instant> {
        self.made.filter(|(_, made)| *made != revision).map(|(at, _)| at + REFRESH)
    }

    /// Takes the rows as they are now, at this time and revision; what is in view stays, or the end does.
    pub fn set_view(&mut self, view: View, made: (Instant, u64), height: u16) {
        let first = self.made.replace(made).is_none();
        let moved = if self.home { 0 } else { view.moved.unwrap_or(0) };
        let old = std::mem::replace(&mut self.rows, view.rows);
        (self.older, self.gap) = (view.older, view.gap);
        let same_width = std::mem::replace(&mut self.width, view.width) == view.width;
        let now_at = |row: usize| match same_width {
            true => row.saturating_add_signed(moved),
            false => same_place(&old, row, &self.rows),
        };
        let top = now_at(self.top);
        self.known = self.known.map(|known| if first { self.rows.len() } else { now_at(known) });
        match &mut self.marked {
            Some(marked) if same_width => marked.move_by(moved),
            marked => *marked = None,
        }
        self.home &= self.older;
        self.go(if self.follow { usize::MAX } else { top }, height);
        if let Some(way) = self.seeking {
            self.find(self.top, -1, height);
            // One way to its end: rows dropped at one side would be read again from the other.
            self.seeking = self.seeking.and(self.seeks(way));
        }
    }

    /// What is to be read of the log for what is in view, or soon will be.
    pub fn take_want(&mut self, height: u16) -> Option<Want> {
        self.made?;
        let screen = usize::from(height);
        let near = self.gap.is_some_and(|gap| (self.top..self.top + 2 * screen).contains(&gap));
        let back = (self.older && self.top < screen).then_some(Want::Back);
        self.home.then_some(Want::First).or(self.seeking).or(near.then_some(Want::Forward)).or(back)
    }

    /// The way to continue with a search, while there is more that way.
    fn seeks(&self, way: Want) -> Option<Want> {
        let more = if way == Want::Forward { self.gap.is_some() } else { self.older };
        more.then_some(way)
    }

    /// Takes a key; `height` is that of the screen.
    pub fn key(&mut self, key: KeyEvent, height: u16) -> Outcome {
        if let Some(field) = &mut self.typing {
            match key.code {
                KeyCode::Enter if self.comments => {
                    let text = field.text().to_owned();
                    (self.typing, self.comments) = (None, false);
                    if let Some(Page::Changes(review)) = &mut self.page {
                        review.set_comment(&text);
                    }
                    return Outcome::Redraw;
                }
                KeyCode::Enter => {
                    self.query = field.text().to_lowercase();
                    self.typing = None;
                    self.find(self.top, 1, height);
                }
                KeyCode::Esc => (self.typing, self.comments) = (None, false),
                _ => drop(field.key(key)),
            }
            return Outcome::Open;
        }
        if let Some(Page::Changes(review)) = &mut self.page {
            match review.key(key) {
                Asked::Other => {}
                Asked::Redraw => return Outcome::Redraw,
                Asked::Apply => return Outcome::Apply,
                Asked::Comment => {
                    let mut field = Field::default();
                    field.insert(review.comment());
                    (self.typing, self.comments) = (Some(field), true);
                    return Outcome::Open;
                }
            }
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = (height.saturating_sub(2) as usize).max(1);
        let top = self.top;
        self.home = false;
        match key.code {
            KeyCode::Char('c' | 'o') if control => return Outcome::Closed,
            KeyCode::Char('d') if control => self.go(top + page / 2, height),
            KeyCode::Char('u') if control => self.go(top.saturating_sub(page / 2), height),
            KeyCode::Char('q') | KeyCode::Esc => return Outcome::Closed,
            KeyCode::Char('j') | KeyCode::Down | KeyCode::Enter => self.go(top + 1, height),
            KeyCode::Char('k') | KeyCode::Up => self.go(top.saturating_sub(1), height),
            KeyCode::Char(' ' | 'f') | KeyCode::PageDown => self.go(top + page, height),
            KeyCode::Char('b') | KeyCode::PageUp => self.go(top.saturating_sub(page), height),
            KeyCode::Char('g') | KeyCode::Home => {
                self.go(0, height);
                self.home = self.older;
            }
            KeyCode::Char('G') | KeyCode::End => self.go(usize::MAX, height),
            KeyCode::Char('/') => self.typing = Some(Field::default()),
            KeyCode::Char('n') => self.find(top + 1, 1, height),
            KeyCode::Char('N') => self.find(top.saturating_sub(1), -1, height),
            _ => return Outcome::Ignored,
        }
        Outcome::Open
    }

    /// Takes pasted text into what is being typed.
    pub fn paste(&mut self, text: &str) {
        if let Some(field) = &mut self.typing {
            field.insert(text);
        }
    }

    /// Shows rows so far from those in view.
    pub fn scroll(&mut self, by: isize, height: u16) {
        self.home = false;
        self.go(self.top.saturating_add_signed(by), height);
    }

    /// At the end, and staying there.
    pub fn at_end(&self) -> bool {
        self.follow
    }

    /// Stays where it is while what is before it is read, though there is nothing to scroll through yet.
    pub fn await_older(&mut self) {
        self.follow &= !self.older;
    }

    /// Stays in a place as high as `height`, with its last row there in view: where it was before there was a last line.
    pub fn hold(&mut self, height: u16) {
        self.top = self.rows.len().saturating_sub(height.into());
        self.follow = false;
    }

    /// The mouse marks from one cell of its place to another; the first one stays where its text is.
    pub fn mark(&mut self, from: Position, to: Position) {
        let at = |place: Position| (self.top + usize::from(place.y), place.x);
        let marked = self.marked.get_or_insert(Marked::at(at(from)));
        marked.to(at(to));
    }

    pub fn unmark(&mut self) {
        self.marked = None;
    }

    /// The text that is marked; none where it is empty.
    pub fn marked_text(&self) -> Option<String> {
        self.marked.map(|marked| marked.text(&self.rows)).filter(|text| !text.is_empty())
    }

    /// Draws the rows and a last line with keys, or with `alert` when something waits outside.
    pub fn draw(&self, mut area: Rect, buf: &mut Buffer, alert: Option<&str>, theme: &Theme) -> Option<Position> {
        let room = area.height.saturating_sub(1);
        let body = paint::take(&mut area, room);
        let end = (self.top + body.height as usize).min(self.rows.len());
        for (row, y) in self.rows[self.top.min(end)..end].iter().zip(body.y..) {
            buf.set_line(body.x, y, &row.line, body.width);
            if !self.query.is_empty() && self.matches(row) {
                buf.set_style(Rect { y, height: 1, ..body }, Modifier::REVERSED);
            }
        }
        if let Some(marked) = &self.marked {
            marked.draw(self.top, body, buf);
        }
        if let Some(field) = &self.typing {
            let label = if self.comments { "comment: " } else { "/" };
            let shift = (label.len() as u16).min(area.width);
            buf.set_stringn(area.x, area.y, label, shift.into(), theme.accent);
            let input = Rect { x: area.x + shift, width: area.width - shift, ..area };
            return field.draw(input, buf, theme.text);
        }
        let review = match &self.page {
            Some(Page::Changes(review)) => review.hint(area.width.into()),
            _ => None,
        };
        let hint = match alert {
            None if self.seeking.is_none() && review.is_some() => review.unwrap_or_default(),
            Some(alert) => format!("{alert} · q back"),
            None if self.seeking.is_some() => "searching earlier messages…".to_owned(),
            None if self.known.is_some() => self.below(end),
            None => {
                format!("{end}/{} · ↑↓ PgUp PgDn g G scroll · / search · q close", self.rows.len())
            }
        };
        paint::lines(buf, area, &[Line::styled(paint::cut(&hint, area.width as usize), theme.dim)]);
        None
    }

    /// What is below the row `end`, and the way there.
    fn below(&self, end: usize) -> String {
        let new = self.rows.len().saturating_sub(self.known.unwrap_or_default().max(end));
        let (count, kind) = if new > 0 { (new, "new ") } else { (self.rows.len() - end, "") };
        let lines = if count == 1 { "line" } else { "lines" };
        format!("↓ {count} {kind}{lines} below · click or PgDn")
    }

    /// Takes the rows of its text as they are now, and brings some of them into view.
    pub fn show(&mut self, rows: Vec<Row>, focus: std::ops::Range<usize>, height: u16) {
        self.rows = rows;
        let room = usize::from(height.saturating_sub(1));
        let mut top = self.top;
        if focus.end > top + room {
            top = focus.end - room;
        }
        // From its first row on, where it does not fit; the title shows with the first hunk.
        top = top.min(focus.start);
        self.go(if focus.start <= 2 { 0 } else { top }, height);
    }

    fn go(&mut self, to: usize, height: u16) {
        let last = self.rows.len().saturating_sub(height.saturating_sub(1) as usize);
        self.top = to.min(last);
        self.follow = self.top == last;
    }

    fn matches(&self, row: &Row) -> bool {
        let text: String = row.line.spans.iter().map(|span| span.content.as_ref()).collect();
        text.to_lowercase().contains(&self.query)
    }

    /// Goes to the next row that matches, around the end.
    fn find(&mut self, from: usize, by: isize, height: u16) {
        let count = self.rows.len();
        if self.query.is_empty() || count == 0 {
            return;
        }
        self.seeking = None;
        let at = |step: usize| (from as isize + by * step as isize).rem_euclid(count as isize) as usize;
        if let Some(found) = (0..count).map(at).find(|row| self.matches(&self.rows[*row])) {
            self.go(found, height);
        } else {
            self.seeking = self.seeks(Want::Forward).or(self.seeks(Want::Back));
        }
    }
}

/// The row of `new` that shows what the row at `row` of `old` begins with: the same text in another width.
fn same_place(old: &[Row], row: usize, new: &[Row]) -> usize {
    let letters = |row: &Row| -> usize {
        let words = row.line.spans.iter().flat_map(|span| span.content.split_whitespace());
        words.map(str::len).sum()
    };
    let before: usize = old.iter().take(row).map(letters).sum();
    let mut seen = 0;
    let shows = |row: &Row| {
        seen += letters(row);
        seen > before
    };
    new.iter().position(shows).unwrap_or(new.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize) -> Vec<Row> {
        (1..=count).map(|n| Row::from(Line::from(format!("row {n}")))).collect()
    }

    fn screen(pager: &Pager) -> String {
        let mut buf = Buffer::empty(Rect::new(0, 0, 20, 4));
        pager.draw(buf.area, &mut buf, None, &Theme::dark());
        let row = |y: u16| (0..20).map(|x| buf[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        [row(0), row(1), row(2)].join(",")
    }

    #[test]
    fn keeps_its_place_while_rows_come_in() {
        let mut pager = Pager::open();
        let mut check = |keys: &str, count: usize, want: &str| {
            for key in keys.chars() {
                let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
                assert_eq!(pager.key(KeyEvent::from(code), 4), Outcome::Open);
            }
            pager.set_view(View { rows: rows(count), ..View::default() }, (Instant::now(), 0), 4);
            assert_eq!(screen(&pager), want, "{keys}");
        };
        check("", 0, ",,");
        check("", 10, "row 8,row 9,row 10");
        check("", 12, "row 10,row 11,row 12");
        check("k", 20, "row 9,row 10,row 11");
        check("gj", 20, "row 2,row 3,row 4");
        check("/ROW 15\n", 20, "row 15,row 16,row 17");
        check("/row 2\n", 20, "row 18,row 19,row 20");
        check("G", 25, "row 23,row 24,row 25");
        check("", 2, "row 1,row 2,");
        assert_eq!(pager.key(KeyEvent::from(KeyCode::Char('q')), 4), Outcome::Closed);
    }

    #[test]
    fn keeps_its_place_in_another_width() {
        let text = |width: usize| -> Vec<Row> {
            let words: Vec<String> = (1..=60).map(|n| format!("w{n}")).collect();
            words.chunks(width).map(|row| Row::from(Line::from(row.join(" ")))).collect()
        };
        let mut pager = Pager::above();
        let mut check = |width: usize, keys: usize, want: &str| {
            pager.set_view(View { rows: text(width), width, ..View::default() }, (Instant::now(), 0), 4);
            for _ in 0..keys {
                pager.key(KeyEvent::from(KeyCode::Up), 4);
            }
            assert_eq!(screen(&pager), want, "{width}");
        };
        check(3, 7, "w31 w32 w33,w34 w35 w36,w37 w38 w39");
        check(1, 0, "w31,w32,w33");
        check(4, 0, "w29 w30 w31 w32,w33 w34 w35 w36,w37 w38 w39 w40");
        // Nothing is new for that.
        assert_eq!(pager.below(10), "↓ 5 lines below · click or PgDn");
    }
}
