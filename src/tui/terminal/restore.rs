//! Raw mode and the way back out of it: on exit, on a panic, on a signal and while another program has the terminal.

use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

use crate::stdx::way_back::WayBack;
pub(super) use crate::stdx::way_back::{
    ACTIVE, FULL, KITTY, OTHER_KEYS, OVERLAY, PROGRESS, STATUS, modes_off, overlay_off,
};

/// How long a terminal may take to read what brings it back.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same when the program has to end now.
const HURRY: Duration = Duration::from_millis(100);
/// How long its answers may take then: the program ends within a second of the signal.
const ANSWERS: Duration = Duration::from_millis(230);

// A signal and a panic may come to any thread and must find the terminal, so these few facts are the process's own, as
// the terminal is. A handler may not wait for a lock: the thread that takes the descriptor out of `TTY` restores.
static TTY: AtomicI32 = AtomicI32::new(-1);
static WAY_BACK: AtomicPtr<WayBack> = AtomicPtr::new(ptr::null_mut());

/// Remembers what the surface has switched on, and how many live rows are below the cursor.
pub(super) fn note(modes: u8, below: u16) {
    if let Some(way_back) = way_back() {
        way_back.note(modes, below);
    }
}

fn way_back() -> Option<&'static WayBack> {
    // SAFETY: what is stored there lives as long as the process.
    unsafe { WAY_BACK.load(Ordering::Acquire).as_ref() }
}

/// Remembers whether the terminal owes an answer.
pub(super) fn asked(open: bool) {
    if let Some(way_back) = way_back() {
        way_back.asked(open);
    }
}

/// The bytes that switch on what the surface needs.
pub(super) fn modes_on(out: &mut Vec<u8>, modes: u8) {
    out.extend_from_slice(b"\x1b[?2004h\x1b[?1004h");
    if modes & FULL != 0 {
        out.extend_from_slice(b"\x1b[?1002h\x1b[?1006h");
    }
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

/// Raw mode, from its opening to its drop.
#[derive(Debug)]
pub struct Session {
    tty: OwnedFd,
    cooked: Termios,
    /// What a process needs that is to bring the terminal back when this one cannot.
    shared: Option<(OwnedFd, OwnedFd)>,
}

impl Session {
    /// Puts the terminal into raw mode and keeps its settings for the way back.
    ///
    /// # Errors
    /// When `tty` is not a terminal.
    pub fn open(tty: OwnedFd) -> io::Result<Session> {
        let cooked = tcgetattr(&tty)?;
        let again = opened_again(&tty).map_or_else(|| tty.try_clone(), Ok)?;
        let (way_back, file) = WayBack::new();
        let shared = file.and_then(|file| Some((again.try_clone().ok()?, file)));
        set_raw(&tty, &cooked)?;
        way_back.hold(&cooked);
        // Both are kept for good: a handler may be reading them.
        WAY_BACK.store(ptr::from_ref(way_back).cast_mut(), Ordering::Release);
        TTY.store(again.into_raw_fd(), Ordering::Release);
        Ok(Session { tty, cooked, shared })
    }

    /// The terminal, and the memory of how it is brought back, for a process that outlives this one. Once.
    pub fn share(&mut self) -> Option<(OwnedFd, OwnedFd)> {
        self.shared.take()
    }

    /// Gives the terminal its own settings back while another program has it.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn pause(&self) -> io::Result<()> {
        if way_back().is_some_and(WayBack::owed) {
            tcflush(&self.tty, QueueSelector::IFlush)?;
        }
        tcsetattr(&self.tty, OptionalActions::Now, &self.cooked)?;
        way_back().inspect(|way_back| way_back.lend(true));
        Ok(())
    }

    /// Goes back into raw mode.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resume(&self) -> io::Result<()> {
        // Given back for good: it must stay so.
        if TTY.load(Ordering::Acquire) < 0 {
            return Ok(());
        }
        way_back().inspect(|way_back| way_back.lend(false));
        set_raw(&self.tty, &self.cooked)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        give_back(PATIENCE);
    }
}

/// The same terminal, opened again: its writes can be made not to wait without changing that for others who share ours.
fn opened_again(tty: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let name = rustix::termios::ttyname(tty, Vec::new()).ok()?;
    rustix::fs::open(name, flags, Mode::empty()).ok()
}

/// Brings the terminal back to what it was, also when nobody reads it: what it has not shown yet is lost then. Does nothing
/// the second time. A signal handler may call it.
pub(super) fn let_go() {
    // The keyboard reads what is under way; a shell would take it for typing. A terminal that reads nothing answers nothing.
    let until = Instant::now() + ANSWERS;
    while way_back().is_some_and(WayBack::owed) && Instant::now() < until && takes() {
        std::thread::sleep(Duration::from_millis(5));
    }
    give_back(HURRY);
}

/// Whether the terminal is still ours and takes what is written.
fn takes() -> bool {
    let tty = TTY.load(Ordering::Acquire);
    if tty < 0 {
        return false;
    }
    // SAFETY: it is not closed before the process ends.
    let tty = unsafe { BorrowedFd::borrow_raw(tty) };
    poll(&mut [PollFd::new(&tty, PollFlags::OUT)], Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

/// Brings the terminal back, once.
fn give_back(patience: Duration) {
    let tty = TTY.swap(-1, Ordering::AcqRel);
    if let Some(way_back) = way_back().filter(|_| tty >= 0) {
        // SAFETY: it is not closed before the process ends.
        way_back.give_back(unsafe { BorrowedFd::borrow_raw(tty) }, patience);
    }
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

fn set_raw(tty: &OwnedFd, cooked: &Termios) -> io::Result<()> {
    let mut raw = cooked.clone();
    raw.make_raw();
    Ok(tcsetattr(tty, OptionalActions::Now, &raw)?)
}
