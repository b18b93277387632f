//! Raw mode and the way back out of it: on exit, on a panic, on a signal and while another program has the terminal.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::ansi::csi;

/// The surface has switched its modes on.
pub(super) const ACTIVE: u8 = 1;
/// The terminal reports keys by the kitty protocol.
pub(super) const KITTY: u8 = 2;
/// The terminal reports modified keys xterm's way.
pub(super) const OTHER_KEYS: u8 = 4;
/// The alternate screen is shown.
pub(super) const OVERLAY: u8 = 8;

// A panic may come from any thread and must find the terminal, so these few facts are the process's own, as the
// terminal is.
static HELD: Mutex<Option<Held>> = Mutex::new(None);
static MODES: AtomicU8 = AtomicU8::new(0);
static BELOW: AtomicU16 = AtomicU16::new(0);

struct Held {
    tty: OwnedFd,
    cooked: Termios,
}

/// Remembers what the surface has switched on, and how many live rows are below the cursor.
pub(super) fn note(modes: u8, below: u16) {
    MODES.store(modes, Ordering::Relaxed);
    BELOW.store(below, Ordering::Relaxed);
}

/// The bytes that switch on what the surface needs.
pub(super) fn modes_on(out: &mut Vec<u8>, modes: u8) {
    out.extend_from_slice(b"\x1b[?2004h\x1b[?1004h");
    keys_on(out, modes);
}

/// The bytes that ask for unambiguous keys, on the screen that is shown.
pub(super) fn keys_on(out: &mut Vec<u8>, modes: u8) {
    if modes & KITTY != 0 {
        out.extend_from_slice(b"\x1b[>1u");
    }
    if modes & OTHER_KEYS != 0 {
        out.extend_from_slice(b"\x1b[>4;1m");
    }
}

/// The bytes that take back what `modes` says, the alternate screen included.
pub(super) fn modes_off(out: &mut Vec<u8>, modes: u8) {
    if modes & OVERLAY != 0 {
        overlay_off(out, modes);
    }
    out.extend_from_slice(b"\x1b[?2004l\x1b[?1004l");
    if modes & KITTY != 0 {
        out.extend_from_slice(b"\x1b[<u");
    }
    if modes & OTHER_KEYS != 0 {
        out.extend_from_slice(b"\x1b[>4m");
    }
}

/// The bytes that leave the alternate screen, which has a stack of key modes of its own.
pub(super) fn overlay_off(out: &mut Vec<u8>, modes: u8) {
    if modes & KITTY != 0 {
        out.extend_from_slice(b"\x1b[<u");
    }
    out.extend_from_slice(b"\x1b[?1049l");
}

/// Raw mode, from its opening to its drop.
#[derive(Debug)]
pub struct Session(());

impl Session {
    /// Puts the terminal into raw mode and keeps its settings for `restore`.
    ///
    /// # Errors
    /// When `tty` is no terminal.
    pub fn open(tty: OwnedFd) -> io::Result<Session> {
        let cooked = tcgetattr(&tty)?;
        set_raw(&tty, &cooked)?;
        *held() = Some(Held { tty, cooked });
        Ok(Session(()))
    }

    /// Gives the terminal its own settings back while another program has it.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn pause(&self) -> io::Result<()> {
        match &*held() {
            Some(held) => Ok(tcsetattr(&held.tty, OptionalActions::Drain, &held.cooked)?),
            None => Ok(()),
        }
    }

    /// Goes back into raw mode.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resume(&self) -> io::Result<()> {
        match &*held() {
            Some(held) => set_raw(&held.tty, &held.cooked),
            None => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        restore();
    }
}

/// Brings the terminal back to what it was, with the cursor below the last live row. Does nothing the second time.
pub fn restore() {
    let Some(Held { tty, cooked }) = held().take() else { return };
    let modes = MODES.swap(0, Ordering::Relaxed);
    if modes != 0 {
        let mut bytes = Vec::with_capacity(96);
        bytes.extend_from_slice(b"\x1b[?2026l\x1b]8;;\x1b\\\x1b[m\x1b[?7h");
        modes_off(&mut bytes, modes);
        bytes.extend_from_slice(b"\x1b[?25h");
        csi(&mut bytes, BELOW.load(Ordering::Relaxed), b'B');
        bytes.extend_from_slice(b"\r\n");
        write_all(&tty, &bytes);
    }
    // There is nobody left to tell when the terminal is gone.
    let _ = tcsetattr(&tty, OptionalActions::Drain, &cooked);
}

/// Makes a panic restore the terminal before its message is printed.
pub fn restore_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        restore();
        print(info);
    }));
}

/// Stops the whole foreground job, as Ctrl+Z does in a cooked terminal, and returns when it is continued.
///
/// # Errors
/// When the signal cannot be sent.
pub fn stop() -> io::Result<()> {
    kill_current_process_group(Signal::TSTP)?;
    // The signal may reach another thread first, and this one must not get back to the terminal before all stand.
    std::thread::sleep(Duration::from_millis(20));
    Ok(())
}

fn held() -> MutexGuard<'static, Option<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set_raw(tty: &OwnedFd, cooked: &Termios) -> io::Result<()> {
    let mut raw = cooked.clone();
    raw.make_raw();
    Ok(tcsetattr(tty, OptionalActions::Now, &raw)?)
}

fn write_all(tty: impl AsFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(&tty, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
