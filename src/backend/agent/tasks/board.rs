//! What runs now of all agents of a session, also for those who look at it while a turn has the agent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::mailbox::{Mailbox, Prompt};
use crate::protocol::Delivery;
use crate::session::entry::{Begun, Ended, Status, TaskSort};
use crate::tools::background::Stopper;

/// Cheap to clone: all clones are one. The lock is never held over an await.
#[derive(Clone, Default)]
pub struct Board {
    all: Arc<Mutex<Vec<Running>>>,
    /// The sub-agent whose tasks it adds, stops and lists; none for the session's own.
    owner: Option<String>,
}

struct Running {
    begun: Begun,
    owner: Option<String>,
    since: Instant,
    cancel: CancellationToken,
    place: Place,
    /// Who or what ended it, where that was not the model.
    by: Option<&'static str>,
    ended: watch::Sender<Option<Ended>>,
    /// Where a sub-agent reads what it is told; none once it reads nothing more.
    mail: Option<Mailbox>,
    figures: Figures,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Its call waits for it.
    Foreground,
    Background,
}

/// What is known of a sub-agent at work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// What it does now, in one line.
    pub doing: String,
    /// Calls that it made.
    pub tools: u32,
    /// Tokens that stand in its window.
    pub tokens: u64,
    /// Dollars, as far as there are prices.
    pub usd: f64,
}

/// One that runs, for those who look.
pub struct Row {
    pub begun: Begun,
    /// The sub-agent that runs it.
    pub owner: Option<String>,
    pub time: Duration,
    pub figures: Figures,
}

impl Board {
    /// The same for what this sub-agent runs.
    pub(in crate::agent) fn below(&self, agent: &str) -> Board {
        Board { all: self.all.clone(), owner: Some(agent.to_owned()) }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        // Nothing in here can be left half done by a panic.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn own(&self, running: &Running) -> bool {
        running.owner == self.owner && running.place == Place::Background
    }

    /// Puts something into the background, whether or not it is here already.
    pub(super) fn add(&self, begun: Begun, cancel: CancellationToken) {
        let mut all = self.running();
        match all.iter_mut().find(|running| running.begun.task == begun.task) {
            Some(running) => running.place = Place::Background,
            None => all.push(self.entry(begun, cancel, Place::Background, None)),
        }
    }

    /// A sub-agent begins, for whose end its call waits; it reads what it is told in this mailbox. It leaves with the guard,
    /// unless it has gone to the background.
    pub(in crate::agent) fn enter(&self, begun: Begun, cancel: CancellationToken, mail: Mailbox) -> Entered {
        let entered = Entered { board: self.clone(), task: begun.task.clone() };
        self.running().push(self.entry(begun, cancel, Place::Foreground, Some(mail)));
        entered
    }

    fn entry(&self, begun: Begun, cancel: CancellationToken, place: Place, mail: Option<Mailbox>) -> Running {
        let (owner, since, ended) = (self.owner.clone(), Instant::now(), watch::Sender::new(None));
        Running { begun, owner, since, cancel, place, by: None, ended, mail, figures: Figures::default() }
    }

    /// Takes one off that has ended, and completes how it did. Whom to tell.
    pub(super) fn over(&self, ended: &mut Ended) -> Option<watch::Sender<Option<Ended>>> {
        let mut all = self.running();
        let at = all.iter().position(|running| running.begun.task == ended.task)?;
        let Running { by, ended: tell, .. } = all.remove(at);
        if ended.status == Status::Stopped {
            ended.why = by.map(str::to_owned);
        }
        Some(tell)
    }

    /// Ends those that are meant; they come as any other that has ended. Whether there are any.
    pub(in crate::agent) fn stop(&self, by: &'static str, which: impl Fn(&Begun) -> bool) -> bool {
        self.cancel(by, |running| self.own(running) && which(&running.begun))
    }

    fn cancel(&self, by: &'static str, which: impl Fn(&Running) -> bool) -> bool {
        let mut any = false;
        for running in self.running().iter_mut().filter(|running| which(running)) {
            running.by.get_or_insert(by);
            running.cancel.cancel();
            any = true;
        }
        any
    }

    /// Ends one as the user wants it, of any agent; false where none of that name runs.
    pub fn stop_task(&self, task: &str) -> bool {
        self.cancel("by the user", |running| named(&running.begun, task))
    }

    /// Gives a sub-agent at work something to read at its next step; false where none of that name reads anything.
    pub fn tell(&self, agent: &str, text: &str) -> bool {
        let all = self.running();
        let mail = all.iter().find(|running| named(&running.begun, agent)).and_then(|running| running.mail.as_ref());
        mail.map(|mail| mail.enqueue(Prompt::new(text), Delivery::Steer)).is_some()
    }

    /// What a sub-agent was told and has not read. From now on it is told nothing more, unless it is to read that.
    pub(in crate::agent) fn unread(&self, task: &str, reads_on: bool) -> Vec<Prompt> {
        let mut all = self.running();
        let running = all.iter_mut().find(|running| running.begun.task == task);
        let Some(running) = running else { return Vec::new() };
        let unread = running.mail.as_ref().map(Mailbox::take_steers).unwrap_or_default();
        running.mail.take_if(|_| !reads_on || unread.is_empty());
        unread
    }

    /// Takes how far a sub-agent is.
    pub(in crate::agent) fn at(&self, task: &str, figures: Figures) {
        if let Some(running) = self.running().iter_mut().find(|running| running.begun.task == task) {
            running.figures = figures;
        }
    }

    /// Its own, in the background.
    pub(super) fn all(&self) -> Vec<Begun> {
        self.running().iter().filter(|running| self.own(running)).map(|running| running.begun.clone()).collect()
    }

    /// Everything that runs, of all agents.
    pub fn rows(&self) -> Vec<Row> {
        let row = |running: &Running| Row {
            begun: running.begun.clone(),
            owner: running.owner.clone(),
            time: running.since.elapsed(),
            figures: running.figures.clone(),
        };
        self.running().iter().map(row).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.running().iter().any(|running| self.own(running))
    }

    /// Whether sub-agents are at work in the background.
    pub(super) fn has_agents(&self) -> bool {
        let agent = |running: &Running| self.own(running) && matches!(running.begun.sort, TaskSort::Agent { .. });
        self.running().iter().any(agent)
    }

    pub(super) fn stopper(&self, task: &str) -> Option<Stopper> {
        let all = self.running();
        let running = all.iter().find(|running| running.begun.task == task)?;
        Some(Stopper { cancel: running.cancel.clone(), ended: running.ended.subscribe() })
    }
}

/// A sub-agent may also go by the id by which it is resumed.
fn named(begun: &Begun, name: &str) -> bool {
    begun.task == name || begun.agent() == Some(name)
}

/// Takes a sub-agent off the board that its call waited for.
pub(in crate::agent) struct Entered {
    board: Board,
    task: String,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut all = self.board.running();
        all.retain(|running| running.begun.task != self.task || running.place == Place::Background);
    }
}
