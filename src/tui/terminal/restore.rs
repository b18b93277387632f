//! Raw mode and the way back out of it: on exit, on a panic, on a signal and while another program has the terminal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{Action, OptionalActions, QueueSelector, Termios, tcflow, tcflush, tcgetattr, tcsetattr};

/// The surface has switched its modes on.
pub(super) const ACTIVE: u8 = 1;
/// The terminal reports keys by the kitty protocol.
pub(super) const KITTY: u8 = 2;
/// The terminal reports modified keys xterm's way.
pub(super) const OTHER_KEYS: u8 = 4;
/// The alternate screen is shown.
pub(super) const OVERLAY: u8 = 8;

/// A bar of progress may be shown, and a status be known.
pub(super) const PROGRESS: u8 = 16;
pub(super) const STATUS: u8 = 32;

/// How long a terminal may take to read what brings it back.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same when the program has to end now.
const HURRY: Duration = Duration::from_millis(100);
/// How long its answers may take then: the program ends within a second of the signal.
const ANSWERS: Duration = Duration::from_millis(230);

// A signal and a panic may come to any thread and must find the terminal, so these few facts are the process's own, as
// the terminal is. A handler may not wait for a lock: the thread that takes the descriptor out of `TTY` restores.
static TTY: AtomicI32 = AtomicI32::new(-1);
static COOKED: AtomicPtr<Termios> = AtomicPtr::new(ptr::null_mut());
static MODES: AtomicU8 = AtomicU8::new(0);
static BELOW: AtomicU16 = AtomicU16::new(0);
static ASKED: AtomicBool = AtomicBool::new(false);

/// Remembers what the surface has switched on, and how many live rows are below the cursor.
pub(super) fn note(modes: u8, below: u16) {
    MODES.store(modes, Ordering::Relaxed);
    BELOW.store(below, Ordering::Relaxed);
}

/// Remembers whether the terminal owes an answer.
pub(super) fn asked(open: bool) {
    ASKED.store(open, Ordering::Release);
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

/// The bytes that undo what `modes` says, including the alternate screen.
pub(super) fn modes_off(out: &mut impl Extend<u8>, modes: u8) {
    if modes & OVERLAY != 0 {
        overlay_off(out, modes);
    }
    out.extend(*b"\x1b[?2004l\x1b[?1004l");
    if modes & KITTY != 0 {
        out.extend(*b"\x1b[<u");
    }
    if modes & OTHER_KEYS != 0 {
        out.extend(*b"\x1b[>4m");
    }
    if modes & PROGRESS != 0 {
        out.extend(*b"\x1b]9;4;0;0\x1b\\");
    }
    if modes & STATUS != 0 {
        out.extend(*b"\x1b]7501;state=clear\x1b\\");
    }
}

/// The bytes that leave the alternate screen, which has a stack of key modes of its own.
pub(super) fn overlay_off(out: &mut impl Extend<u8>, modes: u8) {
    if modes & KITTY != 0 {
        out.extend(*b"\x1b[<u");
    }
    out.extend(*b"\x1b[?1049l");
}

/// Raw mode, from its opening to its drop.
#[derive(Debug)]
pub struct Session {
    tty: OwnedFd,
    cooked: Termios,
}

impl Session {
    /// Puts the terminal into raw mode and keeps its settings for `restore`.
    ///
    /// # Errors
    /// When `tty` is not a terminal.
    pub fn open(tty: OwnedFd) -> io::Result<Session> {
        let cooked = tcgetattr(&tty)?;
        let way_back = opened_again(&tty).map_or_else(|| tty.try_clone(), Ok)?;
        set_raw(&tty, &cooked)?;
        // Both are kept for good: a handler may be reading them.
        COOKED.store(Box::into_raw(Box::new(cooked.clone())), Ordering::Release);
        TTY.store(way_back.into_raw_fd(), Ordering::Release);
        Ok(Session { tty, cooked })
    }

    /// Gives the terminal its own settings back while another program has it.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn pause(&self) -> io::Result<()> {
        Ok(tcsetattr(&self.tty, OptionalActions::Now, &self.cooked)?)
    }

    /// Goes back into raw mode.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resume(&self) -> io::Result<()> {
        // Given back for good: it must stay so.
        if TTY.load(Ordering::Acquire) < 0 { Ok(()) } else { set_raw(&self.tty, &self.cooked) }
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
    while ASKED.load(Ordering::Acquire) && Instant::now() < until && takes() {
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

/// Brings the terminal back to what it was, with the cursor below the last live row, once. Allocates nothing and takes no
/// lock.
fn give_back(patience: Duration) {
    let (tty, cooked) = (TTY.swap(-1, Ordering::AcqRel), COOKED.load(Ordering::Acquire));
    if tty < 0 || cooked.is_null() {
        return;
    }
    // SAFETY: neither is closed or freed before the process ends.
    let (tty, cooked) = unsafe { (BorrowedFd::borrow_raw(tty), &*cooked) };
    let modes = MODES.swap(0, Ordering::Relaxed);
    let mut bytes = Few::default();
    if modes != 0 {
        bytes.extend(*b"\x1b[?2026l\x1b]8;;\x1b\\\x1b[m\x1b[?7h");
        modes_off(&mut bytes, modes);
        bytes.extend(*b"\x1b[?25h");
        bytes.down(BELOW.load(Ordering::Relaxed));
        bytes.extend(*b"\r\n");
    }
    if !write(tty, bytes.all(), patience) {
        // Nobody reads, or the user has stopped the output: what waits there is given up for what must get through.
        let _ = tcflow(tty, Action::OOn);
        let _ = tcflush(tty, QueueSelector::OFlush);
        write(tty, bytes.all(), HURRY);
    }
    // There is nobody left to tell when the terminal is gone.
    let _ = tcsetattr(tty, OptionalActions::Now, cooked);
}

/// Writes what the terminal takes in time; false when it did not take all, though it is there.
fn write(tty: impl AsFd, mut bytes: &[u8], patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while !bytes.is_empty() {
        let timeout = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(&tty, PollFlags::OUT)], timeout.as_ref()) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return true,
        }
        match rustix::io::write(&tty, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) if Instant::now() < until => {}
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return false,
            // It is gone.
            Err(_) => return true,
        }
    }
    true
}

/// Some bytes, without memory of their own.
struct Few {
    bytes: [u8; 128],
    count: usize,
}

impl Default for Few {
    fn default() -> Few {
        Few { bytes: [0; 128], count: 0 }
    }
}

impl Few {
    fn all(&self) -> &[u8] {
        &self.bytes[..self.count]
    }

    /// Moves the cursor so many rows down.
    fn down(&mut self, rows: u16) {
        if rows == 0 {
            return;
        }
        self.extend(*b"\x1b[");
        let digits = [10_000, 1000, 100, 10, 1].map(|unit| rows / unit);
        self.extend(digits.into_iter().filter(|digit| *digit > 0).map(|digit| b'0' + (digit % 10) as u8));
        self.extend(*b"B");
    }
}

impl Extend<u8> for Few {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        for (place, byte) in self.bytes[self.count..].iter_mut().zip(bytes) {
            *place = byte;
            self.count += 1;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_brings_it_back_fits_without_memory() {
        let mut bytes = Few::default();
        modes_off(&mut bytes, ACTIVE | KITTY | OTHER_KEYS | OVERLAY | PROGRESS | STATUS);
        bytes.down(0);
        bytes.down(60_205);
        bytes.down(7);
        let want = b"\x1b[<u\x1b[?1049l\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[>4m\x1b]9;4;0;0\x1b\\\x1b]7501;state=clear\x1b\\\x1b[60205B\x1b[7B";
        assert_eq!(String::from_utf8_lossy(bytes.all()), String::from_utf8_lossy(want));
    }
}
