//! The terminal: an inline surface that history scrolls out of, one thread that reads the keys, and the way back to
//! the shell on every kind of exit.
//!
//! `Surface` writes, `Keyboard` reads, `Session` holds the terminal's modes. Only the surface puts questions to the
//! terminal and only the keyboard thread reads the answers, so that no answer races a key.

mod ansi;
mod input;
mod live;
mod message;
mod overlay;
mod parse;
mod restore;
mod surface;
mod traits;
mod tty;

pub use input::{Input, Keyboard, Mouse, Queries, Report, Signal, signals};
pub use message::{copy, notify, progress, title};
pub use restore::{Session, stop};
pub use surface::{Hold, Surface};
pub use traits::{Alert, Traits};
pub use tty::{Output, Tty};

/// Lets another program have the terminal while `run` lasts: $EDITOR, or `stop` for Ctrl+Z. The next frame draws the
/// live region again below what the program has left.
///
/// # Errors
/// When the terminal is gone.
pub fn away<O: Output, T>(
    surface: &mut Surface<O>,
    session: &Session,
    keyboard: &Keyboard,
    run: impl FnOnce() -> T,
) -> std::io::Result<T> {
    let released = surface.release();
    // It reads what the terminal still has to say to us.
    keyboard.park();
    let result = released.and_then(|()| session.pause()).map(|()| run());
    let resumed = session.resume();
    keyboard.unpark();
    resumed.and(result)
}
