//! The way back to a terminal as it was. What has to be known for it is kept in memory that another process may share, so
//! that the terminal is brought back also when this one is killed.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{Action, OptionalActions, QueueSelector, Termios, tcflow, tcflush, tcsetattr};

/// Something was switched on in the terminal at all.
pub const ACTIVE: u8 = 1;
/// The terminal reports keys by the kitty protocol.
pub const KITTY: u8 = 2;
/// The terminal reports modified keys xterm's way.
pub const OTHER_KEYS: u8 = 4;
/// The alternate screen is shown.
pub const OVERLAY: u8 = 8;
/// A bar of progress may be shown, and a status be known.
pub const PROGRESS: u8 = 16;
pub const STATUS: u8 = 32;
/// The whole session is on the alternate screen, and the terminal reports the mouse.
pub const FULL: u8 = 64;

/// How long a terminal that nobody reads is waited for once more, after what waits there was given up.
const HURRY: Duration = Duration::from_millis(100);

/// Whose the terminal is.
const GIVEN_BACK: u8 = 0;
const HELD: u8 = 1;

/// All that it takes to bring a terminal back, without the terminal. Every part is written on its own: the process that
/// wrote it may be gone when it is read.
#[derive(Debug)]
#[repr(C)]
pub struct WayBack {
    state: AtomicU8,
    modes: AtomicU8,
    /// The terminal owes an answer.
    owed: AtomicBool,
    /// Live rows below the cursor.
    below: AtomicU16,
    /// The process group that has the terminal meanwhile, and the session whose terminal it is.
    group: AtomicI32,
    session: AtomicI32,
    /// Written once, before the state says that the terminal is held.
    cooked: UnsafeCell<MaybeUninit<Termios>>,
}

// SAFETY: what is not atomic is written before others are told of it, by the release of the state, and never again.
unsafe impl Sync for WayBack {}

/// Who else has a terminal when the process is gone that held it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Nobody: the group of the process is still in the foreground.
    Nobody,
    /// The shell that it was started from, which sets its own modes, but does not know of ours.
    Shell,
    /// Another program, or nobody knows.
    Program,
}

impl WayBack {
    /// Memory for it that lives as long as the process, and on Linux the file behind it, for another process to share.
    pub fn new() -> (&'static WayBack, Option<OwnedFd>) {
        #[cfg(target_os = "linux")]
        if let Some((shared, file)) = shared() {
            return (shared, Some(file));
        }
        (Box::leak(Box::new(WayBack::empty())), None)
    }

    const fn empty() -> WayBack {
        WayBack {
            state: AtomicU8::new(GIVEN_BACK),
            modes: AtomicU8::new(0),
            owed: AtomicBool::new(false),
            below: AtomicU16::new(0),
            group: AtomicI32::new(0),
            session: AtomicI32::new(0),
            cooked: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// The terminal, which was set like this, is held from now on. Once for each memory.
    pub fn hold(&self, cooked: &Termios) {
        // SAFETY: nobody reads it before the state says so.
        unsafe { (*self.cooked.get()).write(cooked.clone()) };
        // Both are 0 where their leader is outside our namespace of processes, which rustix's `Pid` cannot say.
        // SAFETY: neither call has a precondition.
        let (group, session) = unsafe { (libc::getpgrp(), libc::getsid(0)) };
        self.group.store(group, Ordering::Relaxed);
        self.session.store(session, Ordering::Relaxed);
        self.state.store(HELD, Ordering::Release);
    }

    /// Another program has the terminal for a while, and has it as it was; or that while is over.
    pub fn lend(&self, lent: bool) {
        self.state.store(if lent { GIVEN_BACK } else { HELD }, Ordering::Release);
    }

    /// Remembers what was switched on, and how many live rows are below the cursor.
    pub fn note(&self, modes: u8, below: u16) {
        self.modes.store(modes, Ordering::Relaxed);
        self.below.store(below, Ordering::Relaxed);
    }

    /// Remembers whether the terminal owes an answer.
    pub fn asked(&self, open: bool) {
        self.owed.store(open, Ordering::Release);
    }

    /// Whether the terminal owes an answer.
    pub fn owed(&self) -> bool {
        self.owed.load(Ordering::Acquire)
    }

    /// Brings the terminal back to what it was, with the cursor below the last live row. A terminal that nobody reads is
    /// waited for that long; then what waits there is given up. Allocates nothing and takes no lock.
    pub fn give_back(&self, tty: impl AsFd, patience: Duration) {
        let modes = self.modes.swap(0, Ordering::Relaxed);
        let mut bytes = Few::default();
        if modes != 0 {
            self.write_off(&mut bytes, modes);
        }
        if !write(&tty, bytes.all(), patience) {
            // Nobody reads, or the user has stopped the output: what waits there is given up for what must get through.
            let _ = tcflow(&tty, Action::OOn);
            let _ = tcflush(&tty, QueueSelector::OFlush);
            write(&tty, bytes.all(), HURRY);
        }
        if self.owed() {
            // Part of the answer may have come, and a shell would take it for typing. Where nothing is owed, somebody types ahead.
            let _ = tcflush(&tty, QueueSelector::IFlush);
        }
        // SAFETY: it is read only where it was held, so after it was written.
        let cooked = unsafe { (*self.cooked.get()).assume_init_ref() };
        // There is nobody left to tell when the terminal is gone.
        let _ = tcsetattr(&tty, OptionalActions::Now, cooked);
        // Last, so that the process that survives us finishes what we began.
        self.state.store(GIVEN_BACK, Ordering::Release);
    }

    fn write_off(&self, bytes: &mut Few, modes: u8) {
        bytes.extend(*b"\x1b[?2026l\x1b]8;;\x1b\\\x1b[m\x1b[?7h");
        modes_off(bytes, modes);
        bytes.extend(*b"\x1b[?25h");
        bytes.down(self.below.load(Ordering::Relaxed));
        bytes.extend(*b"\r\n");
    }

    /// The same for a process that was killed before it could: nothing where it did, or where another program has the
    /// terminal by now. A shell has its own settings back already, so that only what it does not know of is switched off.
    pub fn give_back_for_the_dead(&self, tty: impl AsFd, patience: Duration) {
        if self.state.load(Ordering::Acquire) != HELD {
            return;
        }
        match self.others() {
            Others::Nobody => self.give_back(tty, patience),
            Others::Shell => {
                let mut bytes = Few::default();
                match self.modes.swap(0, Ordering::Relaxed) {
                    0 => {}
                    modes => self.write_off(&mut bytes, modes),
                }
                write(&tty, bytes.all(), patience);
            }
            Others::Program => {}
        }
    }

    fn others(&self) -> Others {
        let (group, session) = (self.group.load(Ordering::Relaxed), self.session.load(Ordering::Relaxed));
        // Nobody but its own session may ask the terminal itself.
        let stat = std::fs::read_to_string(format!("/proc/{session}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        // State, parent, group, session, terminal, and the group in front.
        let front = fields.clone().nth(5).and_then(|field| field.parse::<i32>().ok());
        let leader = fields.clone().nth(2).and_then(|field| field.parse::<i32>().ok());
        match front {
            Some(front) if front == group => Others::Nobody,
            Some(_) if front == leader => Others::Shell,
            _ => Others::Program,
        }
    }
}

/// Memory in a file without a name.
#[cfg(target_os = "linux")]
fn shared() -> Option<(&'static WayBack, OwnedFd)> {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    let file = memfd_create("cocode-terminal", MemfdFlags::CLOEXEC).ok()?;
    ftruncate(&file, size_of::<WayBack>() as u64).ok()?;
    let mapped = map(&file)?;
    // SAFETY: the memory is new, large enough, aligned to a page, and stays mapped; zeros are an empty one.
    Some((unsafe { &*mapped }, file))
}

/// The memory of the process that sent the file, for one that brings back the terminal when it is gone.
///
/// # Errors
/// It is not such a file.
#[cfg(target_os = "linux")]
pub fn of_another(file: &OwnedFd) -> io::Result<&'static WayBack> {
    let size = rustix::fs::fstat(file)?.st_size;
    if size != size_of::<WayBack>() as i64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mapped = map(file).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: as above; the same program wrote it.
    Ok(unsafe { &*mapped })
}

#[cfg(target_os = "linux")]
fn map(file: &OwnedFd) -> Option<*const WayBack> {
    use std::os::fd::AsRawFd;

    let (size, access) = (size_of::<WayBack>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping at a place that the kernel chooses.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    (mapped != libc::MAP_FAILED).then(|| mapped.cast_const().cast())
}

/// The bytes that undo what `modes` says, including the alternate screen.
pub fn modes_off(out: &mut impl Extend<u8>, modes: u8) {
    if modes & OVERLAY != 0 {
        overlay_off(out, modes);
    }
    out.extend(*b"\x1b[?2004l\x1b[?1004l");
    if modes & FULL != 0 {
        out.extend(*b"\x1b[?1002l\x1b[?1006l");
    }
    // Where the whole session was on the other screen, this one's keys were never changed.
    if modes & (KITTY | FULL) == KITTY {
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
pub fn overlay_off(out: &mut impl Extend<u8>, modes: u8) {
    if modes & KITTY != 0 {
        out.extend(*b"\x1b[<u");
    }
    out.extend(*b"\x1b[?1049l");
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
    bytes: [u8; 192],
    count: usize,
}

impl Default for Few {
    fn default() -> Few {
        Few { bytes: [0; 192], count: 0 }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_brings_it_back_fits_without_memory() {
        let check = |modes: u8, below: &[u16], want: &str| {
            let mut bytes = Few::default();
            modes_off(&mut bytes, modes);
            below.iter().for_each(|rows| bytes.down(*rows));
            assert_eq!(String::from_utf8_lossy(bytes.all()), want);
        };
        let all = ACTIVE | KITTY | OTHER_KEYS | OVERLAY | PROGRESS | STATUS;
        let tail = "\x1b[>4m\x1b]9;4;0;0\x1b\\\x1b]7501;state=clear\x1b\\";
        let screen = "\x1b[<u\x1b[?1049l\x1b[?2004l\x1b[?1004l";
        check(all, &[0, 60_205, 7], &format!("{screen}\x1b[<u{tail}\x1b[60205B\x1b[7B"));
        // The keys of the screen below are as they were, and the mouse is the terminal's again.
        check(all | FULL, &[], &format!("{screen}\x1b[?1002l\x1b[?1006l{tail}"));
        let mut bytes = Few::default();
        let way_back = WayBack::empty();
        way_back.below.store(u16::MAX, Ordering::Relaxed);
        way_back.write_off(&mut bytes, u8::MAX);
        assert!(bytes.count < bytes.bytes.len() && bytes.all().ends_with(b"\x1b[?25h\x1b[65535B\r\n"));
    }
}
