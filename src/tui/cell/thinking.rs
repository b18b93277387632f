//! The model's reasoning: its last lines while it runs, one line afterwards, all of it in the transcript view.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::{Detail, spell};
use crate::stdx::text;
use crate::tui::render::Row;
use crate::tui::render::wrap::{self, Prefix};
use crate::tui::theme::Theme;

/// Bytes at the end of running reasoning that its last lines are looked for in.
const TAIL: usize = 2_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    pub source: String,
    /// When it began; none in a resumed session.
    pub since: Option<Duration>,
    /// How long it took, once it ended.
    pub took: Option<Duration>,
    pub closed: bool,
}

impl Thinking {
    /// Ends it.
    pub fn close(&mut self, now: Duration) {
        if !self.closed {
            self.closed = true;
            self.took = self.since.map(|since| now.saturating_sub(since));
        }
    }

    pub(super) fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        if self.source.trim().is_empty() {
            return Vec::new();
        }
        let prefix = Prefix::indent(2);
        let words = match (detail, self.took, self.since) {
            (Detail::Live { now, .. }, None, Some(since)) if !self.closed => {
                format!("thinking… {}", spell(now.saturating_sub(since)))
            }
            (_, Some(took), _) if took.as_secs() > 0 => format!("thought for {}", spell(took)),
            _ => "thought".to_string(),
        };
        let mut title = vec![Span::styled("✻ ", theme.dim), Span::styled(words, theme.thinking)];
        if detail == Detail::Folded {
            title.push(Span::styled(" (ctrl+o)", theme.dim));
        }
        let mut rows = vec![Row::from(Line::from(wrap::clip(title, width)))];
        match detail {
            Detail::Whole => {
                rows.extend(wrap::plain(&text::clean(self.source.trim()), theme.thinking, width, &prefix));
            }
            Detail::Live { lines, .. } if !self.closed => {
                let from = self.source.len().saturating_sub(TAIL);
                let tail = &self.source[self.source.ceil_char_boundary(from)..];
                let all = wrap::plain(&text::clean(tail.trim()), theme.thinking, width, &prefix);
                let skip = all.len().saturating_sub(lines.min(3));
                rows.extend(all.into_iter().skip(skip));
            }
            Detail::Folded | Detail::Live { .. } => {}
        }
        rows
    }
}
