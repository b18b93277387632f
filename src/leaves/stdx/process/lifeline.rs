//! A helper that ends with us: it holds one end of a socket whose other end only this process has, so that it learns of our end
//! however that comes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// How long a helper may take to end what it started. Then it is killed, and with it what knows of the rest.
const PATIENCE: Duration = Duration::from_secs(2);

/// The helpers that live.
// They are the process's own, as its children are.
static ALL: Mutex<Vec<(Pid, Arc<OwnedFd>)>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<(Pid, Arc<OwnedFd>)>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Our end. When it is dropped, the helper ends, and is waited for.
#[derive(Debug)]
pub struct Lifeline {
    pid: Pid,
    socket: Arc<OwnedFd>,
}

impl Lifeline {
    /// Of a child that has the other end.
    pub fn new(pid: Pid, socket: OwnedFd) -> Lifeline {
        let socket = Arc::new(socket);
        all().push((pid, socket.clone()));
        Lifeline { pid, socket }
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&*self.socket)
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        // The one that takes it out of the list waits for it.
        let ours = {
            let mut all = all();
            all.iter().position(|(pid, _)| *pid == self.pid).map(|at| all.swap_remove(at))
        };
        if let Some((pid, socket)) = ours {
            cut(&socket);
            wait(pid, Instant::now() + PATIENCE);
        }
    }
}

/// What a helper hears before its socket is closed on purpose. One whose socket just closes knows that we were killed.
pub const OVER: u8 = b'o';

/// Tells every helper that it is over.
pub(super) fn cut_all() -> Vec<Pid> {
    let ours = std::mem::take(&mut *all());
    ours.iter().for_each(|(_, socket)| cut(socket));
    ours.into_iter().map(|(pid, _)| pid).collect()
}

/// Waits for those that were told.
pub(super) fn wait_all(helpers: Vec<Pid>) {
    let until = Instant::now() + PATIENCE;
    for pid in helpers {
        wait(pid, until);
    }
}

fn cut(socket: &OwnedFd) {
    let over = [OVER];
    // SAFETY: the byte lives through the call, which does not wait. An error means that the other end is gone.
    unsafe {
        libc::send(socket.as_raw_fd(), over.as_ptr().cast(), over.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
    // SAFETY: the descriptor is open. An error means that the other end is gone.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

fn wait(pid: Pid, until: Instant) {
    while matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None)) {
        if Instant::now() > until {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A pair of connected sockets, closed when a program is run.
///
/// # Errors
/// Too many open files.
pub fn pair(kind: libc::c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    use std::os::fd::FromRawFd;

    let mut ends = [-1; 2];
    #[cfg(target_os = "linux")]
    let kind = kind | libc::SOCK_CLOEXEC;
    // SAFETY: the numbers are written to an array that lives through the call; what was opened is owned by nobody yet.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}
