//! Tells the processes of one tree from all others, whatever they did to hide: daemons that left their session, parent,
//! environment and files, too.
//!
//! The mark is the limit on file locks (`RLIMIT_LOCKS`), which no kernel has looked at since 2.4. It is inherited for good:
//! a program can lower its own, and only root raises it. A process that was handed to us and has a limit that no tree has
//! now, nor we ourselves, is left over from a tree that ended, or from one within a tree.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

/// The trees that are running: their mark, and the process that is waited for.
// Children, and the limits that they get, are the process's own as well.
static TREES: Mutex<BTreeMap<u64, Option<Pid>>> = Mutex::new(BTreeMap::new());

/// The mark of one tree; free again when dropped.
#[derive(Debug)]
pub(super) struct Mark(u64);

impl Mark {
    /// One that no other tree has.
    pub(super) fn next() -> Mark {
        let mut trees = trees();
        loop {
            // Below our own limit, since nobody but root may raise it; nearly all of 62 bits in practice.
            let mark = fastrand::u64(1..own().clamp(2, 1 << 62));
            if !trees.contains_key(&mark) || own() < 1 << 16 {
                trees.insert(mark, None);
                return Mark(mark);
            }
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn limit(&self) -> u64 {
        self.0
    }

    /// The tree has a first process.
    pub(super) fn began(&self, root: Pid) {
        trees().insert(self.0, Some(root));
    }

    /// Whether a process carries it.
    #[cfg(target_os = "linux")]
    pub(super) fn is_on(&self, pid: Pid) -> bool {
        limit(pid) == Some(self.0)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        trees().remove(&self.0);
    }
}

fn trees() -> MutexGuard<'static, BTreeMap<u64, Option<Pid>>> {
    TREES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program of the user's that has the terminal meanwhile, such as an editor: when we have to end it is asked to end, too,
/// and may take its time to save what it holds.
#[derive(Debug)]
pub struct Guest(u32);

static GUESTS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

impl Guest {
    pub fn new(pid: u32) -> Guest {
        guests().push(pid);
        Guest(pid)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        guests().retain(|pid| *pid != self.0);
    }
}

pub(super) fn guests() -> MutexGuard<'static, Vec<u32>> {
    GUESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processes that are waited for.
#[cfg(not(target_os = "linux"))]
pub(super) fn roots() -> Vec<Pid> {
    trees().values().copied().flatten().collect()
}

#[cfg(not(target_os = "linux"))]
fn own() -> u64 {
    u64::MAX
}

/// The limit that we have ourselves, and everybody whom we started otherwise.
#[cfg(target_os = "linux")]
fn own() -> u64 {
    static OWN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *OWN.get_or_init(|| limit(rustix::process::getpid()).unwrap_or(u64::MAX))
}

/// Whether a child of ours was started as part of some tree, running or not. What has our own limit was started otherwise:
/// the user's editor, and what that left behind.
#[cfg(target_os = "linux")]
pub(super) fn marked(pid: Pid) -> bool {
    limit(pid).is_some_and(|limit| limit != own())
}

/// Whether a child of ours is left over from a tree that has ended.
#[cfg(target_os = "linux")]
pub(super) fn stray(pid: Pid) -> bool {
    limit(pid).is_some_and(|limit| limit != own() && !trees().contains_key(&limit))
}

/// The limit of a process, also of a dead one that nobody has reaped. None: it is gone, or another user's.
#[cfg(target_os = "linux")]
fn limit(pid: Pid) -> Option<u64> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let pid = pid.as_raw_nonzero().get();
    // SAFETY: nothing is set, and the answer is written to a value that lives through the call.
    let code = unsafe { libc::prlimit(pid, libc::RLIMIT_LOCKS, std::ptr::null(), &raw mut found) };
    #[expect(clippy::useless_conversion, reason = "its width depends on the platform")]
    (code == 0).then(|| u64::from(found.rlim_max))
}

/// Takes the exit status of dead processes that were handed to us, never of one that somebody waits for.
pub(super) fn reap_orphans() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // Usual case: nobody is dead.
        if !matches!(waitid(WaitId::All, peek), Ok(Some(_))) {
            return;
        }
        for pid in super::tree::children(std::process::id()).into_iter().flatten() {
            let Some(pid) = Pid::from_raw(pid.cast_signed()) else { continue };
            let orphan = limit(pid).is_some_and(|limit| match trees().get(&limit) {
                Some(root) => root.is_some_and(|root| root != pid),
                None => limit != own(),
            });
            if orphan {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }
}
