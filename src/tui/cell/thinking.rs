//! The model's reasoning: its last lines while it runs, one line afterwards, all of it in the transcript view.

use std::time::{Duration, Instant};

use ratatui::text::{Line, Span};

use super::Detail;
use crate::stdx::text;
use crate::stdx::text::short;
use crate::tui::render::Row;
use crate::tui::render::wrap::{self, Prefix};
use crate::tui::theme::Theme;

/// Bytes at the end of running reasoning that its last lines are looked for in.
const TAIL: usize = 2_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    pub source: String,
    /// When it began; none in a resumed session.
    pub since: Option<Instant>,
    /// How long it took, once it ended.
    pub took: Option<Duration>,
    /// What it cost, once that is known.
    pub tokens: Option<u64>,
    pub closed: bool,
}

impl Thinking {
    /// Ends it.
    pub fn close(&mut self, now: Instant) {
        if !self.closed {
            self.closed = true;
            self.took = self.since.map(|since| now.saturating_duration_since(since));
        }
    }

    /// One line for afterwards: `thought for 12s, 3.1k tokens`.
    fn summary(&self) -> String {
        let took = self.took.filter(|took| took.as_secs() > 0);
        let took = took.map(|took| format!(" for {}", text::duration(took))).unwrap_or_default();
        let tokens = self.tokens.filter(|tokens| *tokens > 0);
        let one = |tokens| if tokens == 1 { "token" } else { "tokens" };
        let tokens = tokens.map(|tokens| format!(", {} {}", short(tokens), one(tokens))).unwrap_or_default();
        format!("thought{took}{tokens}")
    }

    pub(super) fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        if self.source.trim_start().is_empty() {
            return Vec::new();
        }
        let prefix = Prefix::indent(2);
        let words = match (detail, self.since) {
            (Detail::Live { now, .. }, Some(since)) if !self.closed => {
                format!("thinking… {}", text::duration(now.saturating_duration_since(since)))
            }
            _ => self.summary(),
        };
        let mut title = vec![Span::styled("✻ ", theme.dim), Span::styled(words, theme.thinking)];
        if detail == Detail::Folded {
            title.push(Span::styled(" (ctrl+o)", theme.dim));
        }
        let mut rows = vec![Row::from(Line::from(wrap::clip(title, width)))];
        match detail {
            Detail::Whole => {
                let (part, left_out) = super::whole(self.source.trim(), width, theme);
                rows.extend(left_out);
                rows.extend(wrap::plain(&text::clean(part), theme.thinking, width, &prefix));
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
