//! What a resumed session holds before the part that was shown: fetched for the viewer when it is first opened.

use std::time::Duration;

use super::Transcript;
use crate::protocol::{Earlier, HistoryItem, SessionInfo};
use crate::session::entry::Seq;
use crate::tui::cell::Detail;
use crate::tui::render::Row;
use crate::tui::theme::Theme;

#[derive(Debug, Default)]
pub(super) enum Before {
    /// All was shown.
    #[default]
    Nothing,
    /// It ends before this entry.
    Unread(Seq),
    Asked,
    Read(Box<Transcript>),
}

impl Before {
    pub(super) fn of(info: &SessionInfo) -> Before {
        let first = info.history.iter().find_map(|item| match item {
            HistoryItem::Message { seq, .. } => Some(*seq),
            _ => None,
        });
        match info.older {
            0 => Before::Nothing,
            _ => Before::Unread(first.unwrap_or(Seq::MAX)),
        }
    }

    pub(super) fn read(&mut self) -> Option<&mut Transcript> {
        match self {
            Before::Read(transcript) => Some(transcript),
            Before::Nothing | Before::Unread(_) | Before::Asked => None,
        }
    }

    /// Its rows, with a blank one after them.
    pub(super) fn rows(&mut self, width: u16, theme: &Theme) -> Vec<Row> {
        let mut rows = self.read().map_or_else(Vec::new, |before| before.render_all(width, theme, Detail::Whole));
        if !rows.is_empty() {
            rows.push(Row::default());
        }
        rows
    }
}

impl Transcript {
    /// Where that ends which is to be asked for; once.
    pub fn unread_before(&mut self) -> Option<Seq> {
        let Before::Unread(seq) = self.before else { return None };
        self.before = Before::Asked;
        Some(seq)
    }

    pub(super) fn earlier_read(&mut self, earlier: &Earlier, now: Duration) {
        let mut before = Transcript { cwd: self.cwd.clone(), ..Transcript::default() };
        if earlier.older > 0 {
            before.aside(format!("{} more before these; /export writes all of them to a file", earlier.older));
        }
        before.fold_history(&earlier.items, now);
        self.before = Before::Read(Box::new(before));
        self.revision += 1;
    }
}
