//! What must not be forgotten, told from the log without a model: constraints and choices of the user, paths that changed
//! and why, errors and what fixed them, figures, names.
//!
//! A fold over the messages of the projection, an entry at a time. A boundary carries its state on, so that resume, undo,
//! rewind and fork have the ledger of the log that they stand in, and nothing is ever written twice. Open todos are a state
//! of the projection already.

mod lexis;
mod read;
mod shown;
mod supersede;

use std::collections::HashMap;
use std::sync::Arc;

pub(super) use self::read::{ASKED, users_words};
pub use self::shown::{Known, message};
use crate::message::{Block, CallId, Content, Kind, Message, TodoStatus};
use crate::session::Context;
use crate::session::entry::{Ledger, Line, Seq, Sort, Who};
use crate::stdx::redact;

/// Paths that are remembered.
const MOST_PATHS: usize = 80;

/// Most lines that a boundary carries on, by sort: what is rendered is far less.
const MOST: [(Sort, usize); 6] = [
    (Sort::Constraint, 80),
    (Sort::Choice, 60),
    (Sort::Path, MOST_PATHS),
    (Sort::Error, 30),
    (Sort::Figure, 110),
    (Sort::Name, 50),
];

/// Bytes that are read before a request: a window of a million tokens is read in as many requests as fill half of it.
const A_LITTLE: usize = 64 * 1024;

/// The fold, and how far it has come.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    ledger: Arc<Ledger>,
    /// Another agent gave the task.
    task: bool,
    /// The boundary that the projection began with.
    boundary: Option<Seq>,
    /// Messages of the projection that are in it, and the entry of the last one.
    read: usize,
    last: Option<Seq>,
    pending: Pending,
}

/// What a later message refers to.
#[derive(Debug, Clone, Default)]
struct Pending {
    /// What the user asked for last.
    prompt: String,
    /// The question with which the model ended, until the user says something.
    question: String,
    /// Calls without a result: the tool, and what was called.
    calls: HashMap<CallId, (String, String)>,
}

impl Fold {
    /// That of an agent which works for another one, or for the user.
    pub fn new(task: bool) -> Fold {
        Fold { task, ledger: Arc::new(Ledger { task, ..Ledger::default() }), ..Fold::default() }
    }

    /// Whether another agent gave the task.
    pub fn is_task(&self) -> bool {
        self.task
    }

    /// The ledger of everything that a context came of. Costs what is new; where the log took another turn, what the
    /// projection holds.
    pub fn follow(&mut self, context: &Context) -> &Arc<Ledger> {
        self.read_on(context, usize::MAX);
        &self.ledger
    }

    /// Reads on from where it stopped, a little.
    pub fn approach(&mut self, context: &Context) {
        self.read_on(context, A_LITTLE);
    }

    fn read_on(&mut self, context: &Context, most: usize) {
        if !self.continues(context) {
            let carried = context.carried();
            *self = Fold { boundary: carried.map(|(seq, _)| seq), ..Fold::new(self.task) };
            if let Some((_, ledger)) = carried {
                self.ledger = Arc::clone(ledger);
            }
        }
        self.read = self.read.max(context.len() - context.logged_from(0).count());
        let mut bytes = 0;
        for (seq, message) in context.logged_from(self.read) {
            if bytes > most {
                return;
            }
            bytes += size(message);
            self.read += 1;
            self.last = Some(seq);
            if seq < self.ledger.upto {
                // A boundary had it already; what follows may refer to it all the same.
                read::pending(&mut self.pending, message);
                continue;
            }
            let ledger = Arc::make_mut(&mut self.ledger);
            read::message(&mut Reader { ledger, pending: &mut self.pending, seq }, message);
            ledger.upto = seq + 1;
        }
    }

    /// The ledger as far as it was read.
    pub fn read(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// The same without taking note of how far it has come.
    pub fn of(&self, context: &Context) -> Arc<Ledger> {
        match self.continues(context) && self.read == context.len() {
            true => Arc::clone(&self.ledger),
            false => Arc::clone(self.clone().follow(context)),
        }
    }

    /// Whether the context is the one that was read, with more behind it.
    fn continues(&self, context: &Context) -> bool {
        let same = self.boundary == context.carried().map(|(seq, _)| seq) && self.read <= context.len();
        let last = self.read.checked_sub(1).and_then(|last| context.shown_from(last).next());
        same && last.filter(|last| !last.lead).map(|last| last.seq) == self.last
    }
}

/// Bytes of what is said, roughly.
fn size(message: &Message) -> usize {
    let of = |content: &Content| if let Content::Text { text } = content { text.len() } else { 0 };
    let block = |block: &Block| match block {
        Block::Text { text, .. } => text.len(),
        Block::ToolResult(result) => result.content.iter().map(of).sum(),
        Block::ToolCall(_) | Block::Thinking { .. } | Block::Media(_) => 0,
    };
    message.blocks.iter().map(block).sum()
}

/// Whether a line of a summary must not stay: it gives orders, as nobody but the user does; it says that the user agreed to
/// what nobody ever named; or that all is done while todos are open.
pub(super) fn refuted(line: &str, context: &Context) -> bool {
    let line = line.trim_start_matches(|c: char| !c.is_alphabetic());
    let named = |word: &str| context.shown().any(|shown| says(shown.message, word));
    let invented = || lexis::marks(line).into_iter().chain(lexis::capitals(line)).any(|word| !named(word));
    lexis::COMMANDS.found_in(line) && !prompted(line.trim_end_matches('"'), context)
        || lexis::CONSENTS.found_in(line) && invented()
        || lexis::ENDS.found_in(line) && context.todos().iter().any(|todo| todo.status != TodoStatus::Completed)
}

/// Whether the user said it.
fn prompted(line: &str, context: &Context) -> bool {
    context.shown().any(|shown| shown.message.kind == Kind::Prompt && says(shown.message, line))
}

fn says(message: &Message, word: &str) -> bool {
    message.blocks.iter().any(|block| match block {
        Block::Text { text, .. } => text.contains(word),
        Block::ToolResult(result) => {
            result.content.iter().any(|part| matches!(part, Content::Text { text } if text.contains(word)))
        }
        Block::ToolCall(_) | Block::Thinking { .. } | Block::Media(_) => false,
    })
}

/// Puts one entry into the ledger.
struct Reader<'a> {
    ledger: &'a mut Ledger,
    pending: &'a mut Pending,
    seq: Seq,
}

impl Reader<'_> {
    /// Adds a line, unless it says nothing new; what it supersedes leaves. What looks like a key is not remembered: of the
    /// user's words it was taken out before, and what others say of it is not worth the risk.
    fn add(&mut self, (sort, who, rank): (Sort, Who, u8), text: String, about: String) {
        if who != Who::User && [&text, &about].into_iter().any(|said| redact::keys(said) != *said) {
            return;
        }
        let line = Line { seq: self.seq, sort, who, rank, text, about, fixed: None };
        supersede::add(&mut self.ledger.lines, line);
        let most = MOST.iter().find(|(of, _)| *of == sort).map_or(0, |(_, most)| *most);
        let lines = &mut self.ledger.lines;
        if lines.iter().filter(|line| line.sort == sort).count() > most {
            // Of the least telling the oldest leaves.
            let of_sort = lines.iter().enumerate().filter(|(_, line)| line.sort == sort);
            if let Some((at, _)) = of_sort.min_by_key(|(_, line)| (line.fixed.is_none(), line.rank)) {
                lines.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
