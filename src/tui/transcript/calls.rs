//! Calls that have no result yet, and where their cells are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::cells::Cells;
use crate::message::{CallId, ToolResult};
use crate::tui::cell::Cell;
use crate::tui::cell::call::Call;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Begun: their cells.
    pub(super) running: HashMap<CallId, usize>,
    /// Of the last replies, not begun: tool and title.
    announced: HashMap<CallId, (String, String)>,
}

impl Calls {
    /// A reply asks for a call.
    pub(super) fn announce(&mut self, id: CallId, tool: String, title: String) {
        self.announced.insert(id, (tool, title));
    }

    pub(super) fn start(&mut self, cells: &mut Cells, id: CallId, tool: String, title: String, now: Instant) {
        self.announced.remove(&id);
        if self.running.contains_key(&id) {
            return;
        }
        self.running.insert(id.clone(), cells.len());
        let output = String::new();
        cells.push(Cell::Call(Call {
            id,
            tool,
            title,
            since: now,
            output,
            task: None,
            result: None,
            abandoned: false,
        }));
    }

    /// The cell of a call that runs, to be changed.
    pub(super) fn running<'a>(&self, cells: &'a mut Cells, id: &CallId) -> Option<&'a mut Call> {
        match cells.change(*self.running.get(id)?) {
            Cell::Call(call) => Some(call),
            _ => None,
        }
    }

    /// A call ends. A result that came before is told once.
    pub(super) fn done(&mut self, cells: &mut Cells, result: &ToolResult, now: Instant) {
        // It never began: refused, or invalid.
        if let Some((tool, title)) = self.announced.remove(&result.id) {
            self.start(cells, result.id.clone(), tool, title, now);
        }
        if let Some(call) = self.running(cells, &result.id) {
            call.output = String::new();
            call.result = Some(Arc::new(result.clone()));
            self.running.remove(&result.id);
        }
    }

    /// What has no result now gets none anymore.
    pub(super) fn abandon(&mut self, cells: &mut Cells) {
        self.announced.clear();
        for index in std::mem::take(&mut self.running).into_values() {
            if let Cell::Call(call) = cells.change(index) {
                call.abandoned = true;
            }
        }
    }
}
