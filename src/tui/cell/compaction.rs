//! What the transcript says of compaction: receipts and refusals.

use ratatui::text::{Line, Span};

use super::Detail;
use super::note::Note;
use crate::protocol::{Compaction, FailureReason, Receipt, Trigger};
use crate::report::compaction as words;
use crate::stdx::text::{self, short};
use crate::tui::render::Row;
use crate::tui::render::wrap::{self, Prefix};
use crate::tui::theme::Theme;

/// A boundary, and what stands for what left: the transcript view shows that whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    pub receipt: Receipt,
    pub summary: String,
}

impl Compacted {
    pub(super) fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let whole = detail == Detail::Whole;
        let mut title = vec![Span::styled("✻ ", theme.accent), Span::styled(words::title(&self.receipt), theme.accent)];
        if !whole && !self.summary.trim().is_empty() {
            title.push(Span::styled(" (ctrl+o)", theme.dim));
        }
        let mut rows = vec![Row::from(Line::from(wrap::clip(title, width)))];
        for line in words::lines(&self.receipt) {
            let mark = if rows.len() == 1 { "  └ " } else { "    " };
            rows.extend(wrap::plain(&line, theme.dim, width, &Prefix::hanging(mark, theme.dim)));
        }
        if whole && !self.summary.trim().is_empty() {
            rows.push(Row::from(Line::default()));
            rows.extend(wrap::plain(&text::clean(self.summary.trim()), theme.dim, width, &Prefix::indent(2)));
        }
        rows
    }
}

/// The row of a step that is not a receipt; none for those that the spinner tells.
pub fn note(step: &Compaction) -> Option<Note> {
    Some(Note::Aside(match step {
        Compaction::Started { .. } | Compaction::Progress { .. } | Compaction::Completed { .. } => return None,
        // Who asked for it by a command is told by the command.
        Compaction::Failed { trigger: Trigger::Manual, .. }
        | Compaction::MicroApplied { trigger: Trigger::Manual, .. } => return None,
        // Its receipt names the tier and what was saved.
        Compaction::SessionMemoryApplied { .. } => return None,
        Compaction::Failed { reason: FailureReason::Interrupted, .. } => "Compaction canceled.".into(),
        Compaction::Failed { text, .. } => format!("Compaction failed: {text}"),
        Compaction::MicroApplied { removed_results, saved_tokens, .. } => {
            let results = if *removed_results == 1 { "result" } else { "results" };
            format!("{removed_results} old tool {results} cleared · about {} tokens saved", short(*saved_tokens))
        }
        Compaction::ThresholdExceeded { tokens, target } => {
            format!("the conversation is still large: {} tokens, the target is {}", short(*tokens), short(*target))
        }
    }))
}
