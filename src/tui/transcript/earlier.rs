//! What the session's log has before the part in memory: pages of it, read for the viewer while it is open.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

use super::history::History;
use crate::protocol::{self, HistoryItem, Part, SessionInfo};
use crate::session::entry::Seq;
use crate::tui::cell::note::Note;
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::theme::Theme;

/// Most pages that are held at once.
const PAGES: usize = 8;

/// What the viewer has come to need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The page before the first one that is there.
    Back,
    /// The page after the last one, where the next ones are in the log.
    Forward,
    /// The first page of all.
    First,
}

/// Everything that the viewer shows.
#[derive(Debug, Clone, Default)]
pub struct View {
    pub rows: Vec<Row>,
    /// Columns that they were drawn for.
    pub width: usize,
    /// How far what was shown before has moved down; none where nothing of it is there anymore.
    pub moved: Option<isize>,
    /// More is before the first row.
    pub older: bool,
    /// The row in whose place the log has more.
    pub gap: Option<usize>,
}

#[derive(Debug, Default)]
pub struct Earlier {
    /// The part in memory begins with this entry; 0: it is the whole session.
    end: Seq,
    /// One after the other; the last one ends where the part in memory begins, or at a gap.
    pages: VecDeque<Page>,
    asked: Option<Want>,
    /// What was told and is in no log, with the entry that it stood behind.
    notes: VecDeque<(Seq, Cell)>,
    /// The row of the last view that the part in memory began at.
    start: Option<usize>,
}

#[derive(Debug)]
struct Page {
    from: Seq,
    until: Seq,
    /// Messages before it, in it, and between it and what is in memory.
    older: u64,
    messages: u64,
    newer: u64,
    history: History,
    /// The row of the last view that it began at.
    start: Option<usize>,
}

impl Earlier {
    pub(super) fn of(info: &SessionInfo) -> Earlier {
        let first = info.history.iter().find_map(|item| match item {
            HistoryItem::Message { seq, .. } => Some(*seq),
            _ => None,
        });
        let end = if info.older == 0 { 0 } else { first.unwrap_or(Seq::MAX) };
        Earlier { end, ..Earlier::default() }
    }

    pub(super) fn end(&self) -> Seq {
        self.end
    }

    pub(super) fn end_at(&mut self, seq: Seq) {
        self.end = seq;
    }

    pub(super) fn keep(&mut self, at: Seq, note: Cell, most: usize) {
        self.notes.push_back((at, note));
        if self.notes.len() > most {
            self.notes.pop_front();
        }
    }

    /// What is to be asked of the log, when the viewer needs it and nothing was asked yet.
    pub fn want(&mut self, want: Want) -> Option<Part> {
        let (first, last) = (self.pages.front(), self.pages.back());
        let part = match want {
            _ if self.end == 0 || self.asked.is_some() => None,
            Want::Back => match first {
                None => Some(Part::Before(self.end)),
                Some(page) => (page.older > 0).then_some(Part::Before(page.from)),
            },
            Want::Forward => last.filter(|page| page.newer > 0).map(|page| Part::Between(page.until, self.end)),
            Want::First => first.is_none_or(|page| page.older > 0).then_some(Part::Between(0, self.end)),
        }?;
        self.asked = Some(want);
        Some(part)
    }

    /// Whether the viewer has nothing of the log yet.
    pub fn unread(&self) -> bool {
        self.pages.is_empty()
    }

    /// Makes a page of what was read of the log, for the session in the folder `cwd`.
    pub(super) fn read(&mut self, read: &protocol::Earlier, cwd: &Path, now: Instant) {
        // The viewer may have been closed since.
        let Some(want) = self.asked.take() else { return };
        let mut history = History::new(cwd);
        let within = |seq: &Seq| (read.from..read.until).contains(seq);
        let mut notes = self.notes.iter().filter(|(seq, _)| within(seq)).peekable();
        let mut messages = 0;
        for item in &read.items {
            if let HistoryItem::Message { seq, .. } = item {
                messages += 1;
                while let Some((_, note)) = notes.next_if(|(at, _)| at < seq) {
                    history.cells.push(note.clone());
                }
            }
            history.item(item, now);
        }
        notes.for_each(|(_, note)| history.cells.push(note.clone()));
        history.calls.abandon(&mut history.cells);
        let (from, until, older, newer) = (read.from, read.until, read.older, read.newer);
        self.add(want, Page { from, until, older, messages, newer, history, start: None });
    }

    fn add(&mut self, want: Want, page: Page) {
        match want {
            Want::Back => {
                self.pages.push_front(page);
                if self.pages.len() > PAGES
                    && let (Some(gone), Some(last)) = (self.pages.pop_back(), self.pages.back_mut())
                {
                    last.newer = gone.newer + gone.messages.max(1);
                }
            }
            Want::Forward => {
                self.pages.push_back(page);
                if self.pages.len() > PAGES {
                    self.pages.pop_front();
                }
            }
            Want::First => {
                self.pages = VecDeque::from([page]);
                self.start = None;
            }
        }
    }

    pub(super) fn histories(&mut self) -> impl Iterator<Item = &mut History> {
        self.pages.iter_mut().map(|page| &mut page.history)
    }

    /// Lets go of the pages: the viewer is closed.
    pub(super) fn close(&mut self) {
        self.pages.clear();
        (self.asked, self.start) = (None, None);
    }

    /// Everything that the viewer shows: pages of the log, then what is in memory.
    pub(super) fn view(&mut self, history: &mut History, width: usize, theme: &Theme, detail: Detail) -> View {
        // More is before what is shown.
        let older = self.end > 0 && self.pages.front().is_none_or(|page| page.older > 0);
        let mut view = View { older, width, ..View::default() };
        let mark = |rows: &mut Vec<Row>, count: u64, what: &str| {
            if count > 0 {
                let one = if count == 1 { "message" } else { "messages" };
                let note = Cell::Note(Note::Aside(format!("{count} {what} {one}")));
                rows.extend(note.rows(width, theme, Detail::Whole));
                rows.push(Row::default());
            }
        };
        let mut moved = |before: &mut Option<usize>, now: usize| {
            if let Some(before) = before.replace(now) {
                view.moved = view.moved.or(Some(now as isize - before as isize));
            }
        };
        let rows = &mut view.rows;
        mark(rows, self.pages.front().map_or(0, |page| page.older), "older");
        for page in &mut self.pages {
            moved(&mut page.start, rows.len());
            let drawn = page.history.rows(width, theme, detail);
            if !drawn.is_empty() {
                rows.extend(drawn);
                rows.push(Row::default());
            }
        }
        let newer = self.pages.back().map_or(0, |page| page.newer);
        view.gap = (newer > 0).then_some(rows.len());
        mark(rows, newer, "more");
        moved(&mut self.start, rows.len());
        view.rows.extend(history.rows(width, theme, detail));
        view
    }
}
