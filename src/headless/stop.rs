//! The signals that end a run without a screen.

use std::io;

use tokio::sync::mpsc;

use super::Exit;

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
