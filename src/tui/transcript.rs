//! The one list of cells: folds events into it, and draws it for the scrollback, the live region and the viewer.
//!
//! Cells own source; rows are made when they are asked for. What was handed out to the scrollback is never drawn again.

mod below;
mod draw;
mod earlier;
mod history;
mod reply;
mod window;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::message::{Block, CallId, Kind, Message, ToolResult};
use crate::protocol::report::{Freed, Report};
use crate::protocol::task::{Step, Task};
use crate::protocol::{Compaction, Delta, Event, Item, Listed, SessionInfo, Thinking, Turn, TurnEnd};
use crate::report;
use crate::session::entry::{Restore, Seq, not_undone};
use crate::tui::cell::call::{Call, Shell};
use crate::tui::cell::compaction;
use crate::tui::cell::note::{Note, Retry, Welcome};
use crate::tui::cell::prompt::Prompt;
use crate::tui::cell::skill::SkillText;
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::render::markdown::{self, CodeBlock, Stream};

use self::below::Below;
use self::draw::Above;
use self::earlier::Earlier;
pub use self::earlier::{View, Want};
use self::reply::GrowKind;

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
    /// More can be handed out at once.
    behind: bool,
    /// Its code is coloured elsewhere, and so is that of the next ones.
    beside: bool,
    /// Number of streams so far: it tells them apart.
    streams: u64,
    /// What the scrollback ends in.
    above: Above,
    /// The reply or thinking that grows.
    open: Option<usize>,
    /// Where the cells of the reply under way begin.
    reply: Option<usize>,
    /// Calls without a result, by where they are.
    running: HashMap<CallId, usize>,
    /// What sub-agents did, by the call that launched them.
    below: Below,
    earlier: Earlier,
    /// The log has what follows from this entry on.
    marked: Option<Seq>,
    /// What is told is in the log, too.
    logged: bool,
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
    /// It begins what the log has from this entry on.
    seq: Option<Seq>,
    /// It is in no log.
    own: bool,
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
            // Its receipt is drawn.
            Event::Report(Report::Freed(Freed::Summarized { .. })) => {
                self.push(Cell::Note(Note::Notice(report::compaction::SUMMARIZED.to_owned())));
            }
            Event::Report(report) => self.push(Cell::Note(Note::Notice(report::markdown(report)))),
            Event::Compaction(Compaction::Completed { receipt, summary }) => self.compacted(receipt, summary),
            Event::Compaction(step) => compaction::note(step).into_iter().for_each(|note| self.push(Cell::Note(note))),
            Event::Hook { ran } => ran.word().into_iter().for_each(|word| self.aside(word)),
            Event::Error { text, .. } => self.push(Cell::Note(Note::Error(text.clone()))),
            Event::Model(model) => {
                let index = self.slots.iter().rposition(|slot| matches!(slot.cell, Cell::Welcome(_)));
                if let Some(index) = index
                    && let Cell::Welcome(welcome) = &mut self.slots[index].cell
                    && welcome.model.probing
                {
                    welcome.model = model.clone();
                    self.touch(index);
                }
            }
            Event::Task(task) => self.task(task, now),
            Event::Listed(Listed::Agent(log)) => self.agent_read(log, now),
            Event::Listed(Listed::Earlier(earlier)) => self.earlier_read(earlier, now),
            Event::Ask(_) | Event::AskClosed { .. } | Event::Mode(_) | Event::Usage(_) | Event::Listed(_) => {}
            Event::Thinking(Thinking::Complete { tokens }) => self.thought(*tokens, now),
            Event::Thinking(Thinking::Level(_)) => {}
            Event::Todos { .. } | Event::Queue { .. } | Event::Commands { .. } | Event::Done { .. } | Event::Closed => {
            }
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
        // What was told before, such as an error at the start, is not lost when no frame came in between.
        self.close_open(now);
        self.abandon_running();
        self.end_retry();
        let mut slots = self.slots.split_off(self.next);
        slots.retain(|slot| slot.cell.is_final());
        *self = Transcript {
            slots,
            revision: self.revision + 1,
            stream: std::mem::take(&mut self.stream),
            beside: self.beside,
            streams: self.streams,
            above: self.above,
            earlier: Earlier::of(info),
            cwd: info.cwd.clone(),
            ..Transcript::default()
        };
        let model = info.model.clone();
        self.push(Cell::Welcome(Welcome { model, cwd: info.cwd.clone(), title: info.title.clone() }));
        if info.older > 0 {
            let one = if info.older == 1 { "message" } else { "messages" };
            self.aside(format!("{} older {one} (ctrl+o)", info.older));
        }
        self.fold_history(&info.history, now);
        if info.read_only {
            self.aside("opened read-only: another cocode is writing this session");
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

    fn item(&mut self, item: &Item, now: Duration) {
        self.logged = true;
        self.fold_new(item, now);
        self.logged = false;
    }

    fn fold_new(&mut self, item: &Item, now: Duration) {
        match item {
            Item::Message { seq, message } => {
                self.message(*seq, message, now);
                if message.kind == Kind::Reply {
                    for call in message.calls() {
                        self.announced.insert(call.id.clone(), (call.name.clone(), call.title().to_owned()));
                    }
                }
            }
            Item::CallStarted { call, tool, title } => {
                self.close_open(now);
                self.start_call(call.clone(), tool.clone(), title, now);
            }
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
            Item::FilesRestored { how, turn, restored, merged, refused, unseen } => {
                let verb = match how {
                    Restore::Undo => "undone",
                    Restore::Redo => "redone",
                    Restore::Rewind => "restored",
                };
                let of = turn.as_ref().map(|turn| format!(" from turn “{turn}”")).unwrap_or_default();
                let files: Vec<String> = restored.iter().map(|path| self.short(&path.to_string_lossy())).collect();
                let mut refused = refused.iter().map(|refused| self.short(refused));
                let mut lines = vec![match (files.is_empty(), how.nothing()) {
                    (false, _) => format!("{verb}{of}: {}", files.join(", ")),
                    (true, nothing) => {
                        let why = refused.next();
                        format!("{nothing}{of}: {}", why.as_deref().unwrap_or("the files already match"))
                    }
                }];
                let kept =
                    |path: &PathBuf| format!("kept changes by others in {}", self.short(&path.to_string_lossy()));
                lines.extend(merged.iter().map(kept));
                lines.extend(refused.map(|refused| format!("left alone: {refused}")));
                lines.extend(unseen.iter().map(|command| not_undone(command)));
                self.aside(lines.join("\n"));
            }
            Item::Rewound { prompt, .. } => {
                let first = prompt.lines().next().unwrap_or_default();
                self.aside(format!("rewound to before: {first}"));
            }
            Item::Note { text } => self.aside(text.clone()),
        }
    }

    /// Folds a message, live or of a resumed session.
    fn message(&mut self, seq: Seq, message: &Message, now: Duration) {
        match message.kind {
            Kind::Prompt if message.user_visible => {
                self.mark(seq);
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
                // What follows begins with every call before it answered.
                self.mark(seq + 1);
            }
            Kind::Skill if message.user_visible => self.push(Cell::Skill(SkillText { text: message.text() })),
            Kind::Notice if message.user_visible => self.push(Cell::Note(Note::Notice(message.text()))),
            Kind::CompactSummary | Kind::ToolSummary if message.user_visible => self.aside(message.text()),
            Kind::Prompt | Kind::Notice | Kind::CompactSummary | Kind::ToolSummary => {}
            Kind::ToolResultArchived | Kind::Attachment(_) | Kind::Skill => {}
        }
    }

    fn start_call(&mut self, id: CallId, tool: String, title: &str, now: Duration) {
        self.announced.remove(&id);
        if self.running.contains_key(&id) {
            return;
        }
        let title = self.short(title);
        let output = String::new();
        let call = Call { id: id.clone(), tool, title, since: now, output, task: None, result: None, abandoned: false };
        self.push(Cell::Call(call));
        self.running.insert(id, self.slots.len() - 1);
    }

    /// A sub-agent made progress: its figures are below the call that launched it, and in the viewer what it did.
    fn task(&mut self, task: &Task, now: Duration) {
        if let Step::Said { message } = &task.step {
            self.below.said(&task.call, message, &self.cwd, now);
            self.revision += 1;
            return;
        }
        if let Step::Done { .. } = &task.step {
            self.below.ended(&task.call);
        }
        if let Some(index) = self.running.get(&task.call).copied()
            && let Cell::Call(call) = &mut self.slots[index].cell
        {
            call.task = Some(task.clone());
            self.touch(index);
        }
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
            TurnEnd::MaxTurns => self.aside("stopped: reached the limit of model calls"),
            TurnEnd::Repeated => self.aside("stopped: the same call kept returning the same result"),
            TurnEnd::Stopped => self.aside("stopped by a hook"),
            TurnEnd::Refused => self.aside("Denied. Tell the agent what to do instead."),
        }
    }

    /// Calls that get no result anymore.
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
        let own = !self.logged && matches!(cell, Cell::Note(_) | Cell::Retry(_) | Cell::Welcome(_));
        self.slots.push(Slot { cell, revision: self.revision, drawn: None, seq: self.marked.take(), own });
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

#[cfg(test)]
mod tests;
