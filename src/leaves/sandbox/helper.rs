//! The helper: this binary, run again, small and single-threaded. It forks a keeper for each command, ends when we do,
//! however we end, and leaves nothing behind: no process, no scratch folder, no raw terminal.

use std::collections::HashSet;
use std::ffi::{CStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use super::{keeper, wire};
use crate::stdx::process::{OVER, descendants};
use crate::stdx::way_back::{self, WayBack};

/// The word that makes a run of the binary a helper.
pub(super) const WORD: &str = "__sandbox";
/// The descriptor of its socket.
pub(super) const SOCKET: RawFd = 3;

/// Kinds of messages to the helper.
pub(super) const COMMAND: u8 = b'c';
/// Beside it the terminal, and the memory of how it is brought back.
pub(super) const TERMINAL: u8 = b't';

/// How long a terminal may take to read what brings it back.
const TAKES: Duration = Duration::from_millis(300);

/// How long keepers may take to end what they started.
const PATIENCE: Duration = Duration::from_millis(1000);
/// Exit code of a run that is not ours.
const USAGE: u8 = 2;

/// Whether this run of the binary is to be the helper: then it is, and the exit code comes back at its end. Say it before
/// anything else is read or started.
pub fn serve(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let asked = arguments.next().is_some_and(|_| arguments.next().is_some_and(|word| word == WORD));
    asked.then(|| {
        let number = arguments.next().and_then(|number| number.to_str()?.parse::<RawFd>().ok());
        match number.and_then(|number| begin(number).ok()) {
            Some(()) => ExitCode::SUCCESS,
            // Typed by hand, it has no socket to serve.
            None => ExitCode::from(USAGE),
        }
    })
}

fn begin(number: RawFd) -> io::Result<()> {
    // SAFETY: our parent opened it for us; any other number makes the first call fail.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    // Another name than the program's: who ends all of those by name wants what they started to end, too.
    name(c"sbx-helper");
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let signals = Signals::new()?;
    let scratch = Scratch::new();
    serve_all(&socket, &signals, scratch.path())
}

/// Forks a keeper for each command, until the other end is gone.
fn serve_all(socket: &OwnedFd, signals: &Signals, scratch: Option<&Path>) -> io::Result<()> {
    let mut keepers = HashSet::new();
    let mut terminal = None;
    loop {
        let mut ready = [PollFd::new(socket, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        let (asked, signaled) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
        if signaled {
            signals.drain();
            reap(&mut keepers);
        }
        if !asked {
            continue;
        }
        let mut kind = [0];
        let (count, descriptors) = match wire::receive(socket.as_fd(), &mut kind) {
            Err(error) if keepers.is_empty() => {
                bring_back(terminal);
                return Err(error);
            }
            received => received.unwrap_or_default(),
        };
        if count == 0 {
            // First what a person sees.
            bring_back(terminal);
            end(keepers);
            return Ok(());
        }
        let mut descriptors = descriptors.into_iter();
        if kind[0] == OVER {
            // Who ends in order brings the terminal back in order.
            terminal = None;
        } else if kind[0] == TERMINAL {
            terminal = descriptors.next().zip(descriptors.next().and_then(|file| way_back::of_another(&file).ok()));
        } else if let (COMMAND, Some(channel)) = (kind[0], descriptors.next()) {
            // SAFETY: there is one thread, so that nothing is left half-done in the child.
            match unsafe { libc::fork() } {
                0 => {
                    // SAFETY: the child never comes back to what owns it here.
                    unsafe { libc::close(socket.as_raw_fd()) };
                    drop(terminal);
                    keeper::keep(channel, signals, scratch);
                    // SAFETY: ends the child, whose parent's values are not its own to drop.
                    unsafe { libc::_exit(0) }
                }
                // Without a child the channel closes: the command was not started.
                pid => keepers.extend(Pid::from_raw(pid)),
            }
        }
    }
}

/// A terminal, and how it is brought back.
type Terminal = (OwnedFd, &'static WayBack);

/// Brings the terminal back if the process that held it was killed.
fn bring_back(terminal: Option<Terminal>) {
    if let Some((tty, way_back)) = terminal {
        way_back.give_back_for_the_dead(tty, TAKES);
    }
}

/// Takes the status of children that ended. What a keeper leaves behind that was killed is killed, too.
fn reap(keepers: &mut HashSet<Pid>) {
    let mut killed = false;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        killed |= keepers.remove(&pid) && !status.exited();
    }
    if killed {
        end_others(keepers);
    }
}

/// Kills everything below this process but the keepers and what is below them.
fn end_others(keepers: &mut HashSet<Pid>) {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let left = descendants(|pid| keepers.contains(pid));
        if left.into_iter().filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
        while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
            keepers.remove(&pid);
        }
    }
}

/// Ends all commands: their keepers do it, and what they leave is killed.
fn end(mut keepers: HashSet<Pid>) {
    for keeper in &keepers {
        let _ = kill_process(*keeper, Signal::TERM);
    }
    let until = Instant::now() + PATIENCE;
    while !keepers.is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_micros(500));
        while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
            keepers.remove(&pid);
        }
    }
    end_others(&mut HashSet::new());
}

/// Names this process as `ps` shows it.
pub(super) fn name(name: &CStr) {
    // SAFETY: the name lives through the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// The signals that this process hears of, as something to read: none interrupts it, and none but SIGKILL ends it.
pub(super) struct Signals(OwnedFd);

impl Signals {
    fn new() -> io::Result<Signals> {
        // SAFETY: the sets live through the calls; the descriptor is nobody's yet.
        unsafe {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigfillset(set.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
            match libc::signalfd(-1, set.as_ptr(), libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) {
                number if number >= 0 => Ok(Signals(OwnedFd::from_raw_fd(number))),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Takes what came; whether one of them asks for an end.
    pub(super) fn drain(&self) -> bool {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let (mut bytes, mut asked) = ([0; SIZE], false);
        while let Ok(SIZE) = rustix::io::read(&self.0, &mut bytes) {
            // It begins with the number.
            asked |= bytes.first_chunk().map(|number| u32::from_ne_bytes(*number)) == Some(libc::SIGTERM as u32);
        }
        asked
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A folder that confined commands may write to, removed at the end.
struct Scratch(Option<PathBuf>);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::Builder::new().prefix("cocode-scratch-").tempdir().ok().map(tempfile::TempDir::keep))
    }

    fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
