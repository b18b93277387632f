//! What sub-agents did, for the viewer: below the call that launched each, a transcript of its own.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use ratatui::text::Span;

use super::Transcript;
use crate::message::{CallId, Display, Kind, Message};
use crate::protocol::{AgentLog, HistoryItem};
use crate::tui::cell::call::Call;
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::theme::Theme;

/// What is before its rows.
const LEAD: &str = "  │ ";

#[derive(Debug, Default)]
pub(super) struct Below {
    by_call: HashMap<CallId, Transcript>,
    /// Sub-agents of an earlier process whose logs were asked for.
    asked: HashSet<String>,
}

impl Below {
    fn of(&mut self, call: &CallId, cwd: &Path) -> &mut Transcript {
        let transcript = || Transcript { cwd: cwd.to_owned(), ..Transcript::default() };
        self.by_call.entry(call.clone()).or_insert_with(transcript)
    }

    /// A message is in the log of the sub-agent that the call launched.
    pub(super) fn said(&mut self, call: &CallId, message: &Message, cwd: &Path, now: Duration) {
        // All of it stays as long as its call does.
        self.of(call, cwd).fold_message(0, message, now);
    }

    /// The call is no longer shown from memory.
    pub(super) fn forget(&mut self, call: &CallId) {
        self.by_call.remove(call);
    }

    /// It ended: what it had begun gets no result anymore.
    pub(super) fn ended(&mut self, call: &CallId) {
        if let Some(transcript) = self.by_call.get_mut(call) {
            transcript.abandon_running();
        }
    }

    /// Everything that the sub-agent of a call did; nothing for other calls.
    pub(super) fn rows(&mut self, call: &CallId, width: usize, theme: &Theme) -> Vec<Row> {
        let Some(transcript) = self.by_call.get_mut(call) else { return Vec::new() };
        let room = width.saturating_sub(LEAD.chars().count()).max(1);
        let mut rows = transcript.render_all(u16::try_from(room).unwrap_or(u16::MAX), theme, Detail::Whole);
        if width > 2 * LEAD.len() {
            rows.iter_mut().for_each(|row| lead(row, theme));
        }
        rows
    }

    pub(super) fn forget_drawn(&mut self) {
        self.by_call.values_mut().for_each(Transcript::forget_drawn);
    }
}

/// Moves a row to the right. It does not continue from the one above anymore: something is between.
fn lead(row: &mut Row, theme: &Theme) {
    row.line.spans.insert(0, Span::styled(LEAD, theme.dim));
    row.links.iter_mut().for_each(|(at, _)| *at += 1);
    row.continues = false;
}

/// The sub-agent that a call launched.
fn agent(call: &Call) -> Option<&str> {
    match call.result.as_ref().and_then(|result| result.display.as_ref()) {
        Some(Display::Agent { id, .. }) => Some(id),
        _ => call.task.as_ref().map(|task| task.id.as_str()),
    }
}

impl Transcript {
    /// Sub-agents whose work is not known here, each once: their calls stand in the history of a resumed session.
    pub fn unread_agents(&mut self) -> Vec<String> {
        let calls =
            self.slots.iter().filter_map(|slot| if let Cell::Call(call) = &slot.cell { Some(call) } else { None });
        let unread = calls.filter(|call| !self.below.by_call.contains_key(&call.id));
        let ids: Vec<String> = unread.filter_map(agent).map(str::to_owned).collect();
        let mut unread: Vec<String> = ids.into_iter().filter(|id| self.below.asked.insert(id.clone())).collect();
        self.earlier.transcripts().for_each(|page| unread.extend(page.unread_agents()));
        unread
    }

    /// Puts a log below the calls that it belongs to. One that continued several times has a part for each, the last for the
    /// last call: of the earlier ones not all need be here.
    pub(super) fn agent_read(&mut self, log: &AgentLog, now: Duration) {
        self.earlier.transcripts().for_each(|page| page.agent_read(log, now));
        let mut parts: Vec<Vec<HistoryItem>> = Vec::new();
        for item in &log.items {
            let begun = parts.last().is_some_and(|part| part.iter().any(is_prompt));
            match parts.last_mut() {
                Some(part) if !(begun && is_prompt(item)) => part.push(item.clone()),
                _ => parts.push(vec![item.clone()]),
            }
        }
        let calls = self.slots.iter().filter_map(|slot| match &slot.cell {
            Cell::Call(call) if agent(call) == Some(log.id.as_str()) => Some(call.id.clone()),
            _ => None,
        });
        let calls: Vec<CallId> = calls.collect();
        for (call, part) in calls.iter().rev().zip(parts.iter().rev()) {
            if !self.below.by_call.contains_key(call) {
                self.below.of(call, &self.cwd).fold_history(part, now);
            }
        }
        self.revision += 1;
    }
}

fn is_prompt(item: &HistoryItem) -> bool {
    matches!(item, HistoryItem::Message { message, .. } if message.kind == Kind::Prompt)
}
