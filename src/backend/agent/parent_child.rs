//! Parent and child agents: mode, level and granted rules flow down, reports flow up.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::agents::Definitions;
use crate::message::{CallId, Usage};
use crate::permission::{Mode, Source};
use crate::provider::catalog::ModelSpec;
use crate::session::entry::Decided;
use crate::session::recorded::Finished;
use crate::session::{self, Session};
use crate::thinking::Level;
use crate::tools::FileChange;

/// What an agent shares with those that it launches.
pub struct Family {
    pub definitions: Arc<Definitions>,
    /// How many sub-agents run at a time.
    pub(super) seats: Arc<Semaphore>,
    standing: watch::Sender<Standing>,
}

/// What holds for all agents of a session, and may change while they run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Standing {
    pub(super) mode: Mode,
    /// Rules that were granted since the session was opened, with where they are kept.
    pub(super) granted: Vec<(String, Source)>,
    /// What the user chose for the session.
    pub(super) thinking: Option<Level>,
}

/// The agent that launched this one.
#[derive(Clone)]
pub(super) struct Above {
    /// The type of this agent.
    pub(super) agent: String,
    /// Its own plan file, where the agent above plans.
    pub(super) plan: Option<PathBuf>,
    pub(super) words: mpsc::UnboundedSender<Word>,
}

/// What the session's log must know of a change before it happens, so that it can be undone, or once it has.
pub(super) enum Note {
    /// A file is to be changed.
    Before(PathBuf),
    /// A file is about to hold this.
    Change(FileChange),
    /// What `Change` announced was written, or nothing of it.
    Settled(PathBuf),
    /// A command is to run; what it changes is recorded under this name.
    Command { call: CallId, command: String, record: Option<String>, agent: Option<String> },
    /// It has ended, and changed this. All records together take no more than `most` bytes.
    Ended { record: String, finished: Finished, most: u64 },
}

/// What a sub-agent tells the agent above, whose log belongs to the session.
pub(super) enum Word {
    /// The sub-agent waits for the answer.
    Note {
        note: Note,
        noted: oneshot::Sender<Result<(), session::Error>>,
    },
    Granted {
        rule: String,
        source: Source,
    },
    Decided(Decided),
    /// The user answered that edits no longer ask.
    AcceptEdits,
    Spent {
        what: String,
        model: String,
        spec: ModelSpec,
        usage: Usage,
    },
}

impl Family {
    pub(super) fn new(definitions: Arc<Definitions>, seats: usize, session: &Session) -> Family {
        let mode = session.facts().mode.unwrap_or_default();
        Family {
            definitions,
            seats: Arc::new(Semaphore::new(seats.max(1))),
            standing: watch::Sender::new(Standing { mode, granted: Vec::new(), thinking: session.facts().thinking }),
        }
    }

    /// Lets so many sub-agents run at a time, from the next turn on.
    pub(super) fn seat(&mut self, seats: usize) {
        self.seats = Arc::new(Semaphore::new(seats.max(1)));
    }

    /// Tells those that run now, and those that will.
    pub(super) fn set_mode(&self, mode: Mode) {
        self.standing.send_if_modified(|standing| std::mem::replace(&mut standing.mode, mode) != mode);
    }

    /// As for the mode.
    pub(super) fn set_thinking(&self, level: Option<Level>) {
        self.standing.send_if_modified(|standing| std::mem::replace(&mut standing.thinking, level) != level);
    }

    pub(super) fn granted(&self, rule: String, source: Source) {
        self.standing.send_modify(|standing| standing.granted.push((rule, source)));
    }

    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }
}

/// Tells the agent whose log belongs to the session, and waits until it has noted it.
///
/// # Errors
/// What its log says, or that its turn was dropped: nothing may continue then.
pub(super) async fn note(words: &mpsc::UnboundedSender<Word>, note: Note) -> Result<(), session::Error> {
    let gone = || session::Error::Nothing("tell the agent above");
    let (noted, answer) = oneshot::channel();
    words.send(Word::Note { note, noted }).map_err(|_| gone())?;
    answer.await.map_err(|_| gone())?
}

impl Above {
    pub(super) fn decided(&self, decided: Decided) {
        let _ = self.words.send(Word::Decided(Decided { agent: Some(self.agent.clone()), ..decided }));
    }

    pub(super) fn accept_edits(&self) {
        let _ = self.words.send(Word::AcceptEdits);
    }

    pub(super) fn granted(&self, rule: &str, source: Source) {
        let _ = self.words.send(Word::Granted { rule: rule.to_owned(), source });
    }
}
