//! What sub-agents did, for the viewer: below the call that launched each, a history of its own.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Instant;

use ratatui::text::Span;

use super::history::History;
use crate::message::{CallId, Display, Kind, Message};
use crate::protocol::{AgentLog, HistoryItem};
use crate::tui::cell::Detail;
use crate::tui::cell::call::Call;
use crate::tui::render::Row;
use crate::tui::theme::Theme;

/// What is before its rows.
const LEAD: &str = "  │ ";

#[derive(Debug, Default)]
pub(super) struct Below {
    by_call: HashMap<CallId, History>,
    /// Sub-agents of an earlier process whose logs were asked for.
    asked: HashSet<String>,
}

impl Below {
    fn of(&mut self, call: &CallId, cwd: &Path) -> &mut History {
        self.by_call.entry(call.clone()).or_insert_with(|| History::new(cwd))
    }

    /// A message is in the log of the sub-agent that the call launched.
    pub(super) fn said(&mut self, call: &CallId, message: &Message, cwd: &Path, now: Instant) {
        // All of it stays as long as its call does.
        self.of(call, cwd).message(0, message, now);
    }

    /// The call is no longer shown from memory.
    pub(super) fn forget(&mut self, call: &CallId) {
        self.by_call.remove(call);
    }

    /// It ended: what it had begun gets no result anymore.
    pub(super) fn ended(&mut self, call: &CallId) {
        if let Some(history) = self.by_call.get_mut(call) {
            history.calls.abandon(&mut history.cells);
        }
    }

    /// Everything that the sub-agent of a call did; nothing for other calls.
    pub(super) fn rows(&mut self, call: &CallId, width: usize, theme: &Theme) -> Vec<Row> {
        let Some(history) = self.by_call.get_mut(call) else { return Vec::new() };
        let room = width.saturating_sub(LEAD.chars().count());
        let mut rows = history.rows(room, theme, Detail::Whole);
        if width > 2 * LEAD.len() {
            rows.iter_mut().for_each(|row| lead(row, theme));
        }
        rows
    }

    pub(super) fn forget_drawn(&mut self) {
        self.by_call.values_mut().for_each(History::forget_drawn);
    }

    /// The sub-agents of these calls that are not known here, each once.
    pub(super) fn unread<'a>(&mut self, calls: impl Iterator<Item = &'a Call>) -> Vec<String> {
        let unread = calls.filter(|call| !self.by_call.contains_key(&call.id)).filter_map(agent);
        unread.filter(|id| self.asked.insert((*id).to_owned())).map(str::to_owned).collect()
    }

    /// Puts a log below the calls that it belongs to. One that continued several times has a part for each, the last for the
    /// last call: of the earlier ones not all need be here.
    pub(super) fn read(&mut self, calls: &[CallId], log: &AgentLog, cwd: &Path, now: Instant) {
        let mut begun = false;
        let continues = |item: &HistoryItem, next: &HistoryItem| {
            begun |= is_prompt(item);
            !begun || !is_prompt(next)
        };
        let parts: Vec<&[HistoryItem]> = log.items.chunk_by(continues).collect();
        for (call, part) in calls.iter().rev().zip(parts.iter().rev()) {
            if !self.by_call.contains_key(call) {
                self.of(call, cwd).fold(part, now);
            }
        }
    }
}

/// Moves a row to the right. It does not continue from the one above anymore: something is between.
fn lead(row: &mut Row, theme: &Theme) {
    row.line.spans.insert(0, Span::styled(LEAD, theme.dim));
    row.links.iter_mut().for_each(|(at, _)| *at += 1);
    row.continues = false;
}

/// The sub-agent that a call launched.
pub(super) fn agent(call: &Call) -> Option<&str> {
    match call.result.as_ref().and_then(|result| result.display.as_ref()) {
        Some(Display::Agent { id, .. } | Display::Launched { id, .. }) => Some(id),
        _ => call.task.as_ref().map(|task| task.id.as_str()),
    }
}

fn is_prompt(item: &HistoryItem) -> bool {
    matches!(item, HistoryItem::Message { message, .. } if message.kind == Kind::Prompt)
}
