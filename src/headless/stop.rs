//! The signals that end a run without a screen, and what is still taken in then.

use std::io;

use tokio::sync::mpsc;

use super::{Exit, Run};
use crate::engine::Handle;
use crate::protocol::{Event, Turn};

/// Listens to the signals that end a run. It ends within a second of one, also when nobody reads what it writes.
///
/// # Errors
/// When the system gives no pipe or no thread.
pub(super) fn listen() -> io::Result<mpsc::UnboundedReceiver<Exit>> {
    let (send, stops) = mpsc::unbounded_channel();
    #[cfg(unix)]
    {
        use crate::stdx::ending::{self, Ending};
        let tell = move |ending| {
            // The run may have ended already.
            let _ = send.send(match ending {
                Ending::Interrupt => Exit::Interrupted,
                Ending::Hangup => Exit::HungUp,
                Ending::Terminate | Ending::Quit | Ending::Abort => Exit::Terminated,
            });
        };
        ending::watch(tell, || {})?;
    }
    #[cfg(not(unix))]
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = send.send(Exit::Interrupted);
        }
    });
    Ok(stops)
}

/// Resolves when the process is asked to stop.
pub(super) async fn signal(mut stops: mpsc::UnboundedReceiver<Exit>) -> Exit {
    match stops.recv().await {
        Some(exit) => exit,
        None => std::future::pending().await,
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
