//! The commands of an agent that run now, also for those who look at them while a turn has the agent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::session::entry::{Begun, Ended, Status};
use crate::tools::background::Stopper;

/// Cheap to clone: all clones are one. The lock is never held over an await.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<Vec<Running>>>);

struct Running {
    begun: Begun,
    cancel: CancellationToken,
    /// Who or what ended it, where that was not the model.
    by: Option<&'static str>,
    ended: watch::Sender<Option<Ended>>,
}

impl Board {
    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        // Nothing in here can be left half done by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, begun: Begun, cancel: CancellationToken) {
        self.running().push(Running { begun, cancel, by: None, ended: watch::Sender::new(None) });
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
        let mut any = false;
        for running in self.running().iter_mut().filter(|running| which(&running.begun)) {
            running.by.get_or_insert(by);
            running.cancel.cancel();
            any = true;
        }
        any
    }

    /// Ends one as the user wants it; false where none of that name runs.
    pub fn stop_task(&self, task: &str) -> bool {
        self.stop("by the user", |begun| begun.task == task)
    }

    pub(super) fn all(&self) -> Vec<Begun> {
        self.running().iter().map(|running| running.begun.clone()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running().is_empty()
    }

    pub(super) fn stopper(&self, task: &str) -> Option<Stopper> {
        let all = self.running();
        let running = all.iter().find(|running| running.begun.task == task)?;
        Some(Stopper { cancel: running.cancel.clone(), ended: running.ended.subscribe() })
    }
}
