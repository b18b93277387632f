//! The signals that end a run without a screen, and what is still taken in then.

use std::io;

use super::{Exit, Run};
use crate::engine::Handle;
use crate::protocol::{Event, Turn};

/// Resolves when the process is asked to stop.
pub(super) async fn signal() -> Exit {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (interrupt, terminate, hangup) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
        let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (interrupt, terminate, hangup) else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
            _ = hangup.recv() => Exit::Terminated,
        }
    }
    #[cfg(not(unix))]
    {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Exit::Interrupted,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Run<'_> {
    /// Takes what the interrupted turn still says: the part of the answer that had arrived is its result. Returns how long
    /// the turn took, in milliseconds.
    pub(super) async fn drain(&mut self, handle: &mut Handle) -> io::Result<u64> {
        while let Some(event) = handle.events.recv().await {
            match event {
                Event::Item(item) => self.item(item, &mut Vec::new())?,
                Event::Turn(Turn::Ended { usage, cost_usd, millis, .. }) => {
                    (self.usage, self.cost) = (usage, cost_usd);
                    return Ok(millis);
                }
                Event::Closed => break,
                _ => {}
            }
        }
        Ok(0)
    }
}
