//! What messages tell: the cells of a session, of a page of its log, or of a sub-agent. Of a resumed session they tell less
//! than events did.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::below::{self, Below};
use super::calls::Calls;
use super::cells::Cells;
use super::growing;
use crate::message::{Block, CallId, Kind, Media, Message};
use crate::protocol::task::Step;
use crate::protocol::{AgentLog, HistoryItem, Receipt, Task};
use crate::session::entry::Seq;
use crate::tui::cell::call::Shell;
use crate::tui::cell::compaction::Compacted;
use crate::tui::cell::note::Note;
use crate::tui::cell::prompt::Prompt;
use crate::tui::cell::skill::SkillText;
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::theme::Theme;

#[derive(Debug, Default)]
pub struct History {
    pub(super) cells: Cells,
    pub(super) calls: Calls,
    /// What sub-agents did, by the call that launched them.
    pub(super) below: Below,
    pub(super) cwd: PathBuf,
}

impl History {
    pub(super) fn new(cwd: &Path) -> History {
        History { cwd: cwd.to_owned(), ..History::default() }
    }

    /// Folds what is shown of a resumed session.
    pub(super) fn fold(&mut self, items: &[HistoryItem], now: Instant) {
        items.iter().for_each(|item| self.item(item, now));
        self.calls.abandon(&mut self.cells);
    }

    pub(super) fn item(&mut self, item: &HistoryItem, now: Instant) {
        match item {
            HistoryItem::Message { seq, message } => self.message(*seq, message, now),
            HistoryItem::Shell { command, output, code } => {
                let done = Some((output.clone(), *code));
                self.cells.push(Cell::Shell(Shell { command: command.clone(), since: now, done }));
            }
            HistoryItem::Compacted { receipt, summary } => self.compacted(receipt.clone(), summary.clone()),
            HistoryItem::Note { text } => {
                let inside = format!("{}/", self.cwd.to_string_lossy().trim_end_matches('/'));
                // Where it is not known, nothing is inside.
                let text = if inside == "/" { text.clone() } else { text.replace(&inside, "") };
                self.cells.aside(text);
            }
        }
    }

    /// The receipt of a compaction.
    pub fn compacted(&mut self, receipt: Receipt, summary: String) {
        self.cells.push(Cell::Compacted(Compacted { receipt, summary }));
    }

    /// Folds a message; of a reply nothing was told before, and its calls count as begun.
    pub(super) fn message(&mut self, seq: Seq, message: &Message, now: Instant) {
        match message.kind {
            Kind::Prompt if message.user_visible => {
                self.cells.mark(seq);
                let media = message.blocks.iter().filter_map(|block| match block {
                    Block::Media(media) => Some(line_of(media)),
                    _ => None,
                });
                self.cells.push(Cell::Prompt(Prompt { text: message.text(), folded: None, media: media.collect() }));
            }
            Kind::Reply => {
                growing::whole(&mut self.cells, message);
                for call in message.calls() {
                    let title = self.short(call.title());
                    self.calls.start(&mut self.cells, call.id.clone(), call.name.clone(), title, now);
                }
            }
            Kind::ToolResult => {
                for result in message.results() {
                    self.calls.done(&mut self.cells, result, now);
                }
                // What follows begins with every call before it answered.
                self.cells.mark(seq + 1);
            }
            Kind::Skill if message.user_visible => self.cells.push(Cell::Skill(SkillText { text: message.text() })),
            Kind::Notice if message.user_visible => self.cells.push(Cell::Note(Note::Notice(message.text()))),
            Kind::CompactSummary | Kind::ToolSummary if message.user_visible => self.cells.aside(message.text()),
            Kind::Prompt | Kind::Notice | Kind::CompactSummary | Kind::ToolSummary => {}
            Kind::ToolResultArchived | Kind::Attachment(_) | Kind::Skill => {}
        }
    }

    /// A sub-agent made progress: its figures are below the call that launched it, and in the viewer what it did.
    pub fn task(&mut self, task: Task, now: Instant) {
        match &task.step {
            Step::Said { message } => {
                self.below.said(&task.call, message, &self.cwd, now);
                return self.cells.changed();
            }
            Step::Done { .. } => self.below.ended(&task.call),
            Step::Started | Step::Doing { .. } => {}
        }
        if let Some(call) = self.calls.running(&mut self.cells, &task.call) {
            call.task = Some(task);
        }
    }

    /// Sub-agents whose work is not known here, each once: their calls stand in the history of a resumed session.
    pub(super) fn unread_agents(&mut self) -> Vec<String> {
        let calls = self.cells.iter().filter_map(|cell| if let Cell::Call(call) = cell { Some(call) } else { None });
        self.below.unread(calls)
    }

    /// Puts a sub-agent's log below the calls that it belongs to.
    pub(super) fn agent_read(&mut self, log: &AgentLog, now: Instant) {
        let calls = self.cells.iter().filter_map(|cell| match cell {
            Cell::Call(call) if below::agent(call) == Some(log.id.as_str()) => Some(call.id.clone()),
            _ => None,
        });
        let calls: Vec<CallId> = calls.collect();
        self.below.read(&calls, log, &self.cwd, now);
        self.cells.changed();
    }

    /// Every row of what is in memory.
    pub(super) fn rows(&mut self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        self.cells.rows(width.max(1), theme, detail, &mut self.below)
    }

    pub(super) fn forget_drawn(&mut self) {
        self.cells.forget_drawn();
        self.below.forget_drawn();
    }

    /// A path or title without the session's folder.
    pub(super) fn short(&self, title: &str) -> String {
        let cwd = self.cwd.to_string_lossy();
        let inside = title.strip_prefix(cwd.as_ref()).and_then(|rest| rest.strip_prefix('/'));
        inside.filter(|rest| !rest.is_empty() && !cwd.is_empty()).unwrap_or(title).to_string()
    }
}

/// One line for an attachment.
fn line_of(media: &Media) -> String {
    format!("{}, {} kB", media.media_type, media.bytes.div_ceil(1000))
}
