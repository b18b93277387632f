//! Commands in the background, as tools hand them over and see them.

use std::path::PathBuf;
use std::pin::Pin;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Changed;
use crate::session::entry::{Begun, Ended};

/// Runs a command to its end: how it ended, and what it changed. Dropped, it leaves no process behind.
pub type Work = Pin<Box<dyn Future<Output = (Ended, Option<Changed>)> + Send>>;

/// A command that continues after its call was answered.
pub struct Background {
    pub begun: Begun,
    pub output: PathBuf,
    /// Ends it, with all that it has started.
    pub cancel: CancellationToken,
    pub work: Work,
}

/// One that runs, or has run, in this conversation.
#[derive(Debug, Clone)]
pub struct Shell {
    pub begun: Begun,
    pub output: PathBuf,
    pub state: State,
}

#[derive(Debug, Clone)]
pub enum State {
    Running(Stopper),
    Ended(Ended),
}

/// Ends a command, and hears of its end.
#[derive(Debug, Clone)]
pub struct Stopper {
    pub cancel: CancellationToken,
    pub ended: watch::Receiver<Option<Ended>>,
}

impl Stopper {
    /// Waits for its end. None: it was dropped, and nobody knows how it ended.
    pub async fn ended(&mut self) -> Option<Ended> {
        self.ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone())
    }
}
