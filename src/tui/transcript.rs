//! The one list of cells: folds events into it, and draws it for the scrollback, the live region and the viewer.
//!
//! Cells own source; rows are made when they are asked for. What was handed out to the scrollback is never drawn again.

mod draw;
mod history;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::message::{Block, CallId, Kind, Message, ToolResult};
use crate::protocol::{Delta, Event, Item, SessionInfo, Turn, TurnEnd};
use crate::session::entry::Restore;
use crate::tui::cell::call::{Call, Shell};
use crate::tui::cell::note::{Note, Retry, Welcome};
use crate::tui::cell::prompt::Prompt;
use crate::tui::cell::thinking::Thinking;
use crate::tui::cell::{Cell, Detail, Reply};
use crate::tui::render::Row;
use crate::tui::render::markdown::{self, CodeBlock, Stream};

use self::draw::Above;

/// A turn shorter than this ends without a word.
const NOTABLE_TURN: Duration = Duration::from_secs(5);

/// Everything shown of a session, oldest first.
#[derive(Debug, Default)]
pub struct Transcript {
    slots: Vec<Slot>,
    /// Changes whenever a cell does.
    revision: u64,
    /// The first cell that was not handed out to its end.
    next: usize,
    /// How far that cell was handed out, when it is a reply.
    stream: Stream,
    /// What the scrollback ends in.
    above: Above,
    /// The reply or thinking that grows.
    open: Option<usize>,
    /// Where the cells of the reply under way begin.
    reply: Option<usize>,
    /// Calls without a result, by where they are.
    running: HashMap<CallId, usize>,
    /// Calls of the last replies that have not begun: tool and title.
    announced: HashMap<CallId, (String, String)>,
    cwd: PathBuf,
}

/// A cell and what was drawn of it for the viewer.
#[derive(Debug)]
struct Slot {
    cell: Cell,
    revision: u64,
    drawn: Option<Drawn>,
}

#[derive(Debug)]
struct Drawn {
    revision: u64,
    width: usize,
    detail: Detail,
    theme: String,
    rows: Arc<[Row]>,
}

impl Transcript {
    pub fn new() -> Transcript {
        Transcript::default()
    }

    /// Changes whenever anything shown does: what is cached of the whole transcript is good for one revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Folds an event. `now` is the time on the clock that frames are drawn by.
    pub fn apply(&mut self, event: &Event, now: Duration) {
        match event {
            Event::Session(info) => self.begin(info, now),
            Event::Delta(delta) => self.delta(delta, now),
            Event::Item(item) => self.item(item, now),
            Event::Turn(Turn::Started) => {}
            Event::Turn(Turn::Ended { end, millis, .. }) => self.turn_ended(*end, *millis, now),
            Event::Retrying { attempt, of, delay_ms, reason } => {
                self.discard(None, now);
                let due = now + Duration::from_millis(*delay_ms);
                let retry = Retry { attempt: *attempt, of: *of, reason: reason.clone(), due, over: false };
                match self.slots.last_mut() {
                    Some(Slot { cell: Cell::Retry(last), .. }) if !last.over => *last = retry,
                    _ => self.push(Cell::Retry(retry)),
                }
                self.touch_last();
            }
            Event::Notice { text } => self.push(Cell::Note(Note::Notice(text.clone()))),
            Event::Error { text, .. } => self.push(Cell::Note(Note::Error(text.clone()))),
            Event::Model(model) => {
                if let Some(Slot { cell: Cell::Welcome(welcome), .. }) = self.slots.first_mut()
                    && welcome.model.probing
                {
                    welcome.model = model.clone();
                    self.touch(0);
                }
            }
            Event::Ask(_) | Event::AskClosed { .. } | Event::Mode { .. } | Event::Usage(_) => {}
            Event::Todos { .. } | Event::Queue { .. } | Event::Closed => {}
        }
    }

    /// The text of the last answer, as the model wrote it.
    pub fn last_answer(&self) -> Option<String> {
        self.slots.iter().rev().find_map(|slot| match &slot.cell {
            Cell::Reply(reply) if !reply.source.trim().is_empty() => Some(reply.source.trim().to_string()),
            _ => None,
        })
    }

    /// The blocks of code in the last answer, in order.
    pub fn code_blocks(&self) -> Vec<CodeBlock> {
        self.last_answer().map(|answer| markdown::code_blocks(&answer)).unwrap_or_default()
    }

    fn begin(&mut self, info: &SessionInfo, now: Duration) {
        let revision = self.revision;
        *self = Transcript { revision: revision + 1, cwd: info.cwd.clone(), ..Transcript::default() };
        let model = info.model.clone();
        self.push(Cell::Welcome(Welcome { model, cwd: info.cwd.clone(), title: info.title.clone() }));
        if info.older > 0 {
            let one = if info.older == 1 { "message" } else { "messages" };
            self.aside(format!("{} older {one} (ctrl+o)", info.older));
        }
        self.fold_history(&info.history, now);
        if info.read_only {
            self.aside("opened to read only: another cocode writes this session");
        }
    }

    fn delta(&mut self, delta: &Delta, now: Duration) {
        match delta {
            Delta::Text { text } => self.grow(text, GrowKind::Reply, now),
            Delta::Thinking { text } => self.grow(text, GrowKind::Thinking, now),
            Delta::ToolArgs { .. } => self.end_retry(),
            Delta::ToolOutput { call, text } => {
                if let Some(index) = self.running.get(call).copied()
                    && let Cell::Call(call) = &mut self.slots[index].cell
                {
                    call.push(text);
                    self.touch(index);
                }
            }
            Delta::Discarded { reason } => self.discard(Some(reason), now),
        }
    }

    /// Adds to the reply or the thinking under way, or begins one.
    fn grow(&mut self, text: &str, kind: GrowKind, now: Duration) {
        if text.is_empty() {
            return;
        }
        if let Some(index) = self.open {
            let grown = match (&mut self.slots[index].cell, kind) {
                (Cell::Reply(reply), GrowKind::Reply) => Some(&mut reply.source),
                (Cell::Thinking(thinking), GrowKind::Thinking) => Some(&mut thinking.source),
                _ => None,
            };
            if let Some(source) = grown {
                source.push_str(text);
                self.touch(index);
                return;
            }
        }
        self.close_open(now);
        let source = text.to_string();
        self.push(match kind {
            GrowKind::Reply => Cell::Reply(Reply { source, closed: false }),
            GrowKind::Thinking => Cell::Thinking(Thinking { source, since: Some(now), took: None, closed: false }),
        });
        let index = self.slots.len() - 1;
        self.open = Some(index);
        self.reply.get_or_insert(index);
    }

    fn close_open(&mut self, now: Duration) {
        let Some(index) = self.open.take() else { return };
        match &mut self.slots[index].cell {
            Cell::Reply(reply) => reply.closed = true,
            Cell::Thinking(thinking) => thinking.close(now),
            _ => {}
        }
        self.touch(index);
    }

    fn item(&mut self, item: &Item, now: Duration) {
        match item {
            Item::Message { message, .. } => {
                self.message(message, now);
                if message.kind == Kind::Reply {
                    for call in message.calls() {
                        self.announced.insert(call.id.clone(), (call.name.clone(), history::title(call)));
                    }
                }
            }
            Item::CallStarted { call, tool, title } => {
                self.close_open(now);
                self.start_call(call.clone(), tool.clone(), title, now);
            }
            Item::CallDone { result } => self.call_done(result, now),
            Item::ShellStarted { command } => {
                self.push(Cell::Shell(Shell { command: command.clone(), since: now, done: None }));
            }
            Item::ShellDone { command, output, code } => {
                let done = Some((output.clone(), *code));
                let index = self.slots.iter().rposition(|slot| match &slot.cell {
                    Cell::Shell(shell) => shell.done.is_none() && shell.command == *command,
                    _ => false,
                });
                match index.map(|index| (index, &mut self.slots[index].cell)) {
                    Some((index, Cell::Shell(shell))) => {
                        shell.done = done;
                        self.touch(index);
                    }
                    _ => self.push(Cell::Shell(Shell { command: command.clone(), since: now, done })),
                }
            }
            Item::FilesRestored { how, restored, refused, unseen } => {
                let verb = match how {
                    Restore::Undo => "undone",
                    Restore::Redo => "redone",
                    Restore::Rewind => "files put back",
                };
                let mut lines = Vec::new();
                match restored.len() {
                    0 => lines.push(format!("{verb}: no file changed")),
                    _ => lines.push(format!(
                        "{verb}: {}",
                        restored.iter().map(|path| self.short(&path.to_string_lossy())).collect::<Vec<_>>().join(", ")
                    )),
                }
                lines.extend(refused.iter().map(|refused| format!("left alone: {refused}")));
                lines.extend(unseen.iter().map(|command| format!("not undone, since a command did it: {command}")));
                self.aside(lines.join("\n"));
            }
            Item::Rewound { prompt, .. } => {
                let first = prompt.lines().next().unwrap_or_default();
                self.aside(format!("went back to before: {first}"));
            }
            Item::Note { text } => self.aside(text.clone()),
        }
    }

    /// Folds a message, live or of a resumed session.
    fn message(&mut self, message: &Message, now: Duration) {
        match message.kind {
            Kind::Prompt if message.user_visible => {
                let media = message.blocks.iter().filter_map(|block| match block {
                    Block::Media(media) => Some(history::media(media)),
                    _ => None,
                });
                self.push(Cell::Prompt(Prompt { text: message.text(), media: media.collect() }));
            }
            Kind::Reply => self.reply_done(message, now),
            Kind::ToolResult => {
                for result in message.results() {
                    if self.running.contains_key(&result.id) || self.announced.contains_key(&result.id) {
                        self.call_done(&Arc::new(result.clone()), now);
                    }
                }
            }
            Kind::Notice if message.user_visible => self.push(Cell::Note(Note::Notice(message.text()))),
            Kind::CompactSummary | Kind::ToolSummary if message.user_visible => self.aside(message.text()),
            Kind::Prompt | Kind::Notice | Kind::CompactSummary | Kind::ToolSummary => {}
            Kind::ToolResultArchived | Kind::Attachment => {}
        }
    }

    /// The final message takes the place of what was streamed of it.
    fn reply_done(&mut self, message: &Message, now: Duration) {
        self.close_open(now);
        let Some(first) = self.reply.take() else {
            for block in &message.blocks {
                match block {
                    Block::Text { text, .. } if !text.trim().is_empty() => {
                        self.push(Cell::Reply(Reply { source: text.clone(), closed: true }));
                    }
                    Block::Thinking { text, .. } if !text.trim().is_empty() => {
                        let source = text.clone();
                        self.push(Cell::Thinking(Thinking { source, since: None, took: None, closed: true }));
                    }
                    _ => {}
                }
            }
            return;
        };
        let text = |block: &Block| match block {
            Block::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        let last: String = message.blocks.iter().filter_map(text).collect();
        let streamed: Vec<usize> =
            (first..self.slots.len()).filter(|index| matches!(self.slots[*index].cell, Cell::Reply(_))).collect();
        let so_far: String = streamed.iter().map(|index| self.source(*index)).collect();
        if so_far.trim() != last.trim() {
            self.replace(&streamed, &last);
        }
    }

    fn source(&self, index: usize) -> &str {
        match &self.slots[index].cell {
            Cell::Reply(reply) => &reply.source,
            _ => "",
        }
    }

    fn set_source(&mut self, index: usize, source: String) {
        if let Cell::Reply(reply) = &mut self.slots[index].cell {
            reply.source = source;
            self.touch(index);
        }
    }

    /// Takes back what was read of a streamed cell but not handed out; the bytes of its source that stay.
    fn take_back(&mut self, index: usize) -> usize {
        match index.cmp(&self.next) {
            Ordering::Less => self.source(index).len(),
            Ordering::Equal if self.stream.started() => self.stream.rewind(),
            Ordering::Equal => {
                self.stream = Stream::new();
                0
            }
            Ordering::Greater => 0,
        }
    }

    /// Puts another text in the place of streamed cells, without touching what was handed out of them.
    fn replace(&mut self, streamed: &[usize], text: &str) {
        let mut shown = String::new();
        for index in streamed {
            let keep = self.take_back(*index);
            shown.push_str(&self.source(*index)[..keep]);
        }
        let rest = text.strip_prefix(&shown);
        let mut left = rest.unwrap_or_default();
        let next = self.next;
        for index in streamed.iter().filter(|index| **index >= next) {
            let keep = self.take_back(*index);
            let source = format!("{}{}", &self.source(*index)[..keep], std::mem::take(&mut left));
            self.set_source(*index, source);
        }
        let left = if rest.is_none() { text } else { left };
        if !left.trim().is_empty() {
            self.push(Cell::Reply(Reply { source: left.to_string(), closed: true }));
        }
    }

    /// What was streamed of the reply is out of the conversation. What the scrollback has of it stays, with a note.
    fn discard(&mut self, reason: Option<&str>, now: Duration) {
        self.close_open(now);
        let Some(first) = self.reply.take() else { return };
        let mut seen = false;
        for index in first..self.slots.len() {
            match &mut self.slots[index].cell {
                Cell::Reply(_) => {
                    let keep = self.take_back(index);
                    let source = self.source(index)[..keep].to_string();
                    seen |= !source.trim().is_empty();
                    self.set_source(index, source);
                }
                Cell::Thinking(thinking) if index >= self.next => {
                    thinking.source.clear();
                    self.touch(index);
                }
                _ => {}
            }
        }
        if seen {
            self.aside(match reason {
                Some(reason) => format!("this answer was dropped and is not in the conversation: {reason}"),
                None => "this answer broke off and is not in the conversation".to_string(),
            });
        }
    }

    fn start_call(&mut self, id: CallId, tool: String, title: &str, now: Duration) {
        self.announced.remove(&id);
        if self.running.contains_key(&id) {
            return;
        }
        let title = self.short(title);
        let output = String::new();
        let call = Call { id: id.clone(), tool, title, since: now, output, result: None, abandoned: false };
        self.push(Cell::Call(call));
        self.running.insert(id, self.slots.len() - 1);
    }

    fn call_done(&mut self, result: &Arc<ToolResult>, now: Duration) {
        if !self.running.contains_key(&result.id) {
            // It never began: refused, or invalid. A result that came before is told once.
            let Some((tool, title)) = self.announced.remove(&result.id) else { return };
            self.start_call(result.id.clone(), tool, &title, now);
        }
        if let Some(index) = self.running.remove(&result.id)
            && let Cell::Call(call) = &mut self.slots[index].cell
        {
            call.output = String::new();
            call.result = Some(result.clone());
            self.touch(index);
        }
    }

    fn turn_ended(&mut self, end: TurnEnd, millis: u64, now: Duration) {
        self.close_open(now);
        self.reply = None;
        self.announced.clear();
        self.abandon_running();
        let took = Duration::from_millis(millis);
        match end {
            TurnEnd::Done if took >= NOTABLE_TURN => self.push(Cell::Note(Note::Worked(took))),
            TurnEnd::Done | TurnEnd::Failed => self.end_retry(),
            TurnEnd::Interrupted => self.aside("interrupted"),
            TurnEnd::MaxTurns => self.aside("stopped: the limit of turns was reached"),
            TurnEnd::Repeated => self.aside("stopped: the same call gave the same result again and again"),
            TurnEnd::Refused => self.aside("stopped: you said no; tell the agent what to do instead"),
        }
    }

    /// Calls that get no result any more.
    fn abandon_running(&mut self) {
        for index in std::mem::take(&mut self.running).into_values() {
            if let Cell::Call(call) = &mut self.slots[index].cell {
                call.abandoned = true;
                self.touch(index);
            }
        }
    }

    fn aside(&mut self, text: impl Into<String>) {
        self.push(Cell::Note(Note::Aside(text.into())));
    }

    /// A path or title without the session's folder.
    fn short(&self, title: &str) -> String {
        let cwd = self.cwd.to_string_lossy();
        let inside = title.strip_prefix(cwd.as_ref()).and_then(|rest| rest.strip_prefix('/'));
        inside.filter(|rest| !rest.is_empty() && !cwd.is_empty()).unwrap_or(title).to_string()
    }

    fn push(&mut self, cell: Cell) {
        self.end_retry();
        self.revision += 1;
        self.slots.push(Slot { cell, revision: self.revision, drawn: None });
    }

    /// A retry is over once anything follows it.
    fn end_retry(&mut self) {
        if let Some(Slot { cell: Cell::Retry(retry), .. }) = self.slots.last_mut()
            && !retry.over
        {
            retry.over = true;
            self.touch_last();
        }
    }

    fn touch(&mut self, index: usize) {
        self.revision += 1;
        self.slots[index].revision = self.revision;
    }

    fn touch_last(&mut self) {
        if !self.slots.is_empty() {
            self.touch(self.slots.len() - 1);
        }
    }
}

/// What a delta adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GrowKind {
    Reply,
    Thinking,
}

#[cfg(test)]
mod tests;
