//! Everything shown of a session, drawn for the scrollback, the live region and the viewer.
//!
//! Cells own source; rows are made when they are asked for. What was handed out to the scrollback is never drawn again.

mod below;
mod calls;
mod cells;
mod earlier;
mod growing;
mod history;
mod looked;
mod scrollback;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::message::{CallId, Kind, Message};
use crate::protocol::{self, AgentLog, ChangedBy, ModelInfo, SessionInfo, TurnEnd};
use crate::session::entry::{Restore, Seq, not_undone, some_of};
use crate::tui::cell::call::Shell;
use crate::tui::cell::note::{Note, Retry, Welcome};
use crate::tui::cell::{Cell, Detail};
use crate::tui::render::Row;
use crate::tui::render::markdown::{self, CodeBlock, Share};
use crate::tui::theme::Theme;

use self::earlier::Earlier;
pub use self::earlier::{View, Want};
pub use self::growing::GrowKind;
use self::growing::Growing;
use self::history::History;
use self::scrollback::Scrollback;

/// A turn shorter than this ends silently.
const NOTABLE_TURN: Duration = Duration::from_secs(5);
/// Most notices that are kept when their cells are let go, since no log has them.
const NOTES: usize = 200;

/// Everything shown of a session, oldest first. It hears of what happens by values; `App` reads the events.
#[derive(Debug, Default)]
pub struct Transcript {
    /// What messages tell.
    pub history: History,
    growing: Growing,
    /// What was handed out.
    pub scrollback: Scrollback,
    /// What is in the log alone.
    pub earlier: Earlier,
}

impl Transcript {
    /// Changes whenever anything shown does: what is cached of the whole transcript is good for one revision.
    pub fn revision(&self) -> u64 {
        self.history.cells.revision()
    }

    /// The text of the last answer, as the model wrote it.
    pub fn last_answer(&self) -> Option<&str> {
        self.history.cells.iter().rev().find_map(|cell| match cell {
            Cell::Reply(reply) if !reply.source.trim().is_empty() => Some(reply.source.trim()),
            _ => None,
        })
    }

    /// The blocks of code in the last answer, in order.
    pub fn code_blocks(&self) -> Vec<CodeBlock> {
        self.last_answer().map(markdown::code_blocks).unwrap_or_default()
    }

    /// Starts over with another session.
    pub fn begin(&mut self, info: &SessionInfo, now: Instant) {
        self.end_calls(now);
        // What was told before, such as an error at the start, is not lost when no frame came in between.
        self.history.cells.start_over(self.scrollback.next);
        self.scrollback.start_over();
        let cells = std::mem::take(&mut self.history.cells);
        self.history = History { cells, ..History::new(&info.cwd) };
        self.growing = Growing::default();
        self.earlier = Earlier::of(info);
        let model = info.model.clone();
        self.history.cells.tell(Cell::Welcome(Welcome { model, cwd: info.cwd.clone(), title: info.title.clone() }));
        if info.older > 0 {
            let one = if info.older == 1 { "message" } else { "messages" };
            self.tell(Note::Aside(format!("{} older {one} (ctrl+o)", info.older)));
        }
        self.history.fold(&info.history, now);
        if info.read_only {
            self.tell(Note::Aside("opened read-only: another cocode is writing this session".into()));
        }
    }

    /// The model of the session is known.
    pub fn found(&mut self, model: &ModelInfo) {
        let cells = &mut self.history.cells;
        if let Some(index) = cells.last_of(|cell| matches!(cell, Cell::Welcome(welcome) if welcome.model.probing))
            && let Cell::Welcome(welcome) = cells.change(index)
        {
            welcome.model = model.clone();
        }
    }

    /// Adds what no log has.
    pub fn tell(&mut self, note: Note) {
        self.history.cells.tell(Cell::Note(note));
    }

    /// Adds what the log has, too.
    pub fn aside(&mut self, text: impl Into<String>) {
        self.history.cells.aside(text);
    }

    /// A request failed; what had arrived of its answer is out of the conversation.
    pub fn retrying(&mut self, retry: Retry, now: Instant) {
        self.discarded(None, now);
        let cells = &mut self.history.cells;
        match cells.last() {
            Some(Cell::Retry(last)) if !last.over => *cells.change(cells.len() - 1) = Cell::Retry(retry),
            _ => cells.tell(Cell::Retry(retry)),
        }
    }

    /// The answer comes, in parts that are not shown.
    pub fn answered(&mut self) {
        self.history.cells.end_retry();
    }

    /// More of the reply or the thinking under way.
    pub fn grow(&mut self, text: &str, kind: GrowKind, now: Instant) {
        self.growing.grow(&mut self.history.cells, text, kind, now);
    }

    /// The thoughts under way are complete.
    pub fn thought(&mut self, tokens: u64, now: Instant) {
        self.growing.thought(&mut self.history.cells, tokens, now);
    }

    /// What was streamed of the reply is out of the conversation.
    pub fn discarded(&mut self, reason: Option<&str>, now: Instant) {
        self.growing.discard(&mut self.history.cells, &mut self.scrollback, reason, now);
    }

    /// A message is in the log.
    pub fn message(&mut self, seq: Seq, message: &Message, now: Instant) {
        let history = &mut self.history;
        if message.kind != Kind::Reply {
            return history.message(seq, message, now);
        }
        self.growing.done(&mut history.cells, &mut self.scrollback, message, now);
        for call in message.calls() {
            history.calls.announce(call.id.clone(), call.name.clone(), history.short(call.title()));
        }
    }

    /// Folds the pastes of prompts that were written in an earlier run.
    pub fn fold_prompts(&mut self, folded: impl Fn(&str) -> Option<String>) {
        let cells = &mut self.history.cells;
        for index in 0..cells.len() {
            if let Some(Cell::Prompt(prompt)) = cells.get(index)
                && let Some(text) = folded(&prompt.text)
                && let Cell::Prompt(prompt) = cells.change(index)
            {
                prompt.folded = Some(text);
            }
        }
    }

    /// How the last prompt was written, with its pastes folded.
    pub fn fold_prompt(&mut self, folded: String) {
        let cells = &mut self.history.cells;
        if let Some(index) = cells.last_of(|cell| matches!(cell, Cell::Prompt(_)))
            && let Cell::Prompt(prompt) = cells.change(index)
        {
            prompt.folded = Some(folded);
        }
    }

    pub fn call_started(&mut self, id: CallId, tool: String, title: &str, now: Instant) {
        let history = &mut self.history;
        self.growing.close(&mut history.cells, now);
        let title = history.short(title);
        history.calls.start(&mut history.cells, id, tool, title, now);
    }

    /// Whether a command or a sub-agent runs that the model waits for.
    pub fn waits_for_command(&self) -> bool {
        let History { cells, calls, .. } = &self.history;
        let command = |index: &usize| matches!(cells.get(*index), Some(Cell::Call(call)) if call.tool == "Bash" || call.tool == "Task");
        calls.running.values().any(command)
    }

    /// More of what a running call puts out.
    pub fn output(&mut self, id: &CallId, text: &str) {
        if let Some(call) = self.history.calls.running(&mut self.history.cells, id) {
            call.push(text);
        }
    }

    pub fn shell_started(&mut self, command: String, now: Instant) {
        self.history.cells.push(Cell::Shell(Shell { command, since: now, done: None }));
    }

    /// A `!` line ended: its output and exit status.
    pub fn shell_done(&mut self, command: String, done: (String, Option<i32>), now: Instant) {
        let cells = &mut self.history.cells;
        let runs = |cell: &Cell| matches!(cell, Cell::Shell(shell) if shell.done.is_none() && shell.command == command);
        match cells.last_of(runs).map(|index| cells.change(index)) {
            Some(Cell::Shell(shell)) => shell.done = Some(done),
            _ => cells.push(Cell::Shell(Shell { command, since: now, done: Some(done) })),
        }
    }

    /// Files were put back: see `protocol::Item::FilesRestored`.
    pub fn restored(
        &mut self,
        how: Restore,
        turn: Option<String>,
        (restored, by): (&[PathBuf], &[ChangedBy]),
        merged: &[PathBuf],
        refused: &[String],
        unseen: &[String],
    ) {
        let verb = match how {
            Restore::Undo => "undone",
            Restore::Redo => "redone",
            Restore::Rewind => "restored",
            Restore::Review => "reverted in /diff",
        };
        let of = turn.map(|turn| format!(" from turn “{turn}”")).unwrap_or_default();
        let short = |path: &PathBuf| self.history.short(&path.to_string_lossy());
        let files: Vec<String> = restored.iter().map(short).collect();
        let mut refused = refused.iter().map(|refused| self.history.short(refused));
        let mut lines = vec![match (files.is_empty(), how.nothing()) {
            // In a row of their own names stay whole: other signs than plain ones let a path break.
            (false, _) if files.len() > 1 => format!("{verb}{of}:\n{}", some_of(files)),
            (false, _) => format!("{verb}{of}: {}", some_of(files)),
            (true, nothing) => {
                let why = refused.next();
                format!("{nothing}{of}: {}", why.as_deref().unwrap_or("the files already match"))
            }
        }];
        // One line for the files that the same commands changed.
        let mut told: Vec<(String, Vec<String>)> = Vec::new();
        for file in by {
            let (name, by) = (short(&file.path), file.told());
            match told.iter_mut().find(|(known, _)| *known == by) {
                Some((_, names)) => names.push(name),
                None => told.push((by, vec![name])),
            }
        }
        lines.extend(told.into_iter().map(|(by, names)| match names.len() == restored.len() {
            true => format!("changed by {by}"),
            false => format!("changed by {by}:\n{}", some_of(names)),
        }));
        lines.extend(merged.iter().map(|path| format!("kept later changes in {}", short(path))));
        lines.extend(refused.map(|refused| format!("left alone: {refused}")));
        lines.extend(unseen.iter().map(|command| not_undone(command)));
        self.aside(lines.join("\n"));
    }

    /// What only looks may be followed by more of it: one line for all waits until something else comes.
    pub fn turn_started(&mut self) {
        self.scrollback.gather();
    }

    pub fn turn_ended(&mut self, end: TurnEnd, took: Duration, now: Instant) {
        self.end_calls(now);
        self.growing.first = None;
        self.tell(match end {
            TurnEnd::Done if took >= NOTABLE_TURN => Note::Worked(took),
            TurnEnd::Done | TurnEnd::Failed => return self.answered(),
            TurnEnd::Interrupted => Note::Aside("interrupted".into()),
            TurnEnd::MaxTurns => Note::Aside("stopped: reached the limit of model calls".into()),
            TurnEnd::Budget => Note::Aside("stopped: a budget is used up".into()),
            TurnEnd::Repeated => Note::Aside("stopped: the same call kept returning the same result".into()),
            TurnEnd::Stopped => Note::Aside("stopped by a hook".into()),
            TurnEnd::NoAnswer => Note::Aside("stopped: no answer fits the schema".into()),
            TurnEnd::Refused => Note::Aside("Denied. Tell the agent what to do instead.".into()),
        });
    }

    /// Nothing more comes of what is under way.
    fn end_calls(&mut self, now: Instant) {
        self.growing.close(&mut self.history.cells, now);
        self.history.calls.abandon(&mut self.history.cells);
        self.scrollback.settle();
    }

    /// Sub-agents whose work is not known here, each once.
    pub fn unread_agents(&mut self) -> Vec<String> {
        let mut unread = self.history.unread_agents();
        self.earlier.histories().for_each(|page| unread.extend(page.unread_agents()));
        unread
    }

    /// Takes the log of a sub-agent.
    pub fn agent_read(&mut self, log: &AgentLog, now: Instant) {
        self.earlier.histories().for_each(|page| page.agent_read(log, now));
        self.history.agent_read(log, now);
    }

    /// Takes a part of the session's log that the viewer wants.
    pub fn earlier_read(&mut self, read: &protocol::Earlier, now: Instant) {
        self.earlier.read(read, &self.history.cwd, now);
        self.history.cells.changed();
    }

    /// The rows that became final since the last call, each exactly once, in order; of what is new no more than `share`.
    /// See `Scrollback::behind`.
    ///
    /// Its cost depends on what is new. The width may change from call to call; rows that were handed out stay as
    /// they were.
    pub fn take_committed(&mut self, width: u16, theme: &Theme, share: Share) -> Vec<Row> {
        let handed = self.scrollback.next;
        let rows = self.scrollback.take(&self.history.cells, usize::from(width).max(1), theme, share);
        if self.scrollback.next > handed {
            self.let_go();
        }
        rows
    }

    /// Lets go of cells that the scrollback has to their end.
    fn let_go(&mut self) {
        let History { cells, calls, below, .. } = &mut self.history;
        let busy = calls.running.values().copied().chain(self.growing.open).chain(self.growing.first);
        let answer = cells.last_of(|cell| matches!(cell, Cell::Reply(_)));
        let gone = cells.let_go(busy.chain(answer).fold(self.scrollback.next, usize::min));
        if gone.is_empty() {
            return;
        }
        self.scrollback.next -= gone.len();
        let growing = self.growing.open.iter_mut().chain(&mut self.growing.first);
        calls.running.values_mut().chain(growing).for_each(|index| *index -= gone.len());
        let mut at = self.earlier.end();
        for slot in gone {
            at = slot.seq.unwrap_or(at);
            match slot.cell {
                Cell::Call(call) => below.forget(&call.id),
                cell if slot.own => self.earlier.keep(at, cell, NOTES),
                _ => {}
            }
        }
        self.earlier.end_at(cells.begin().unwrap_or(at));
    }

    /// Whether the scrollback is drawn again for a new width: what it has stays in memory then, as far as there is room.
    pub fn rebuilds(&mut self) -> &mut bool {
        &mut self.history.cells.rebuilds
    }

    /// Begins again with what was handed out: the scrollback is empty.
    pub fn hand_out_again(&mut self) {
        let older = || Cell::Note(Note::Aside("older messages: ctrl+o".into()));
        self.scrollback.hand_out_again(0, (self.earlier.end() > 0).then(older));
    }

    /// Hands out the last cells again, as many as fill `height` rows: a screen that is ours is drawn for another size or
    /// theme. What was handed out is gone from it.
    pub fn hand_out_end_again(&mut self, width: u16, height: u16, theme: &Theme) {
        let (width, height) = (usize::from(width).max(1), usize::from(height));
        let cells = &self.history.cells;
        let (mut from, mut rows) = (self.scrollback.next, 0);
        // Calls that are one line together are handed out together.
        let together = |at| matches!(cells.get(at), Some(Cell::Call(call)) if call.only_looks());
        while from > 0 && (rows < height || together(from)) {
            from -= 1;
            let cell = cells.get(from).filter(|_| !together(from));
            rows += cell.map_or(0, |cell| cell.rows(width, theme, Detail::Folded).len());
        }
        self.scrollback.hand_out_again(from, None);
    }

    /// Another session begins on a screen that is ours: nothing of the last one is left there, whether or not it was handed
    /// out. What was told before the first one is shown again.
    pub fn clear_screen(&mut self, first: bool) {
        self.scrollback.next = if first { 0 } else { self.history.cells.len() };
        self.scrollback.forget();
    }

    /// The last rows of all, at most `max_height`: what was handed out, then what may still change. Call it after
    /// `take_committed`.
    pub fn end(&self, width: u16, max_height: u16, theme: &Theme, now: Instant) -> Vec<Row> {
        let live = self.live(width, max_height, theme, now);
        let recent = self.scrollback.recent();
        let skipped = (recent.len() + live.len()).saturating_sub(usize::from(max_height));
        recent.skip(skipped).cloned().chain(live).collect()
    }

    /// What was not handed out yet, as it looks at the time `now`; at most `max_height` rows, the last ones.
    ///
    /// Call it after `take_committed`, so that nothing is drawn twice.
    pub fn live(&self, width: u16, max_height: u16, theme: &Theme, now: Instant) -> Vec<Row> {
        let (width, height) = (usize::from(width).max(1), usize::from(max_height));
        self.scrollback.live(&self.history.cells, width, height, theme, now)
    }

    /// Everything, to be scrolled through: pages of the log, then what is in memory.
    pub fn view(&mut self, width: u16, theme: &Theme, detail: Detail) -> View {
        self.earlier.view(&mut self.history, usize::from(width), theme, detail)
    }

    /// Frees what `view` keeps, once the viewer is closed.
    pub fn forget_drawn(&mut self) {
        self.history.forget_drawn();
        self.earlier.close();
    }
}

#[cfg(test)]
mod tests;
