//! Who makes a call: what counts of a thread when the kernel decides what it may change, and as whom it makes files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::Mode;

/// CAP_SETGID and CAP_SETUID: who may be somebody else for a moment.
const BECOMING: u64 = 1 << 6 | 1 << 7;
/// CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_FSETID: for whom nothing of the rest matters but to what they make.
const ALL_FILES: u64 = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4;
/// CAP_SYS_PTRACE: who may see what another process works on. It opens no file.
const SEEING: u64 = 1 << 19;

/// CAP_SETFCAP: without it nobody says that root in a user namespace is root outside of it. Attributes, to which it matters
/// as well, are not set for such a program.
const MAPPING: u64 = 1 << 31;

/// What counts of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    user: u32,
    group: u32,
    groups: Vec<u32>,
    /// Its capabilities, as bits.
    capabilities: u64,
    /// What the modes of new files lack.
    umask: u32,
    /// A signal waits for it that it does not ignore.
    pub(super) signaled: bool,
}

/// The form of sets of capabilities that holds 64 of them.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    thread: i32,
}

impl Caller {
    /// Us, that is this thread.
    pub(super) fn us() -> io::Result<Caller> {
        Caller::of_file("/proc/thread-self/status")
    }

    /// A thread of a command. In a user namespace of its own its capabilities count for nothing outside of that.
    pub(super) fn of(thread: u32) -> io::Result<Caller> {
        let caller = Caller::of_file(&format!("/proc/{thread}/status"))?;
        match caller.capabilities != 0 && !shares(thread, "user") {
            true => Ok(Caller { capabilities: if caller.user == 0 { MAPPING } else { 0 }, ..caller }),
            false => Ok(caller),
        }
    }

    fn of_file(file: &str) -> io::Result<Caller> {
        let mut buffer = [0; 8192];
        let read = File::open(file)?.read(&mut buffer)?;
        Caller::parsed(&String::from_utf8_lossy(&buffer[..read])).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parsed(status: &str) -> Option<Caller> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let bits = |name: &str| field(name).and_then(|text| u64::from_str_radix(text, 16).ok());
        // Real, effective, saved, and the one that counts for files.
        let counting = |name: &str| field(name)?.split_whitespace().nth(3)?.parse().ok();
        let waiting = bits("SigPnd:")? | bits("ShdPnd:")?;
        Some(Caller {
            user: counting("Uid:")?,
            group: counting("Gid:")?,
            groups: field("Groups:")?.split_whitespace().filter_map(|group| group.parse().ok()).collect(),
            capabilities: bits("CapEff:")?,
            umask: u32::from_str_radix(field("Umask:")?, 8).ok()?,
            signaled: waiting & !bits("SigBlk:")? & !bits("SigIgn:")? != 0,
        })
    }

    /// Whether a thread may do with files what we may, under any name.
    pub(super) fn equals(&self, thread: u32) -> bool {
        self.capabilities & ALL_FILES == ALL_FILES
            && effective(thread).is_ok_and(|theirs| theirs == self.capabilities)
            && shares(thread, "user")
    }

    /// Whether nothing of it matters but the modes of what it makes.
    pub(super) fn is_unprivileged(&self) -> bool {
        self.user != 0 && self.capabilities == 0
    }

    /// Looks for something as this caller would, on this thread, which is `us`; still as somebody who may see what the
    /// caller works on.
    ///
    /// # Errors
    /// As `act`.
    pub(super) fn look<T>(&self, us: &Caller, work: impl FnOnce() -> T) -> io::Result<T> {
        match self.is_other(us) || self.capabilities & us.capabilities != us.capabilities {
            true => Caller { capabilities: self.capabilities | SEEING, ..self.clone() }.act(us, work),
            false => Ok(work()),
        }
    }

    fn is_other(&self, us: &Caller) -> bool {
        (self.user, self.group, &self.groups) != (us.user, us.group, &us.groups)
    }

    /// Does something as this caller would, on this thread, which is `us`.
    ///
    /// # Errors
    /// We cannot: nothing was done.
    pub(super) fn act<T>(&self, us: &Caller, work: impl FnOnce() -> T) -> io::Result<T> {
        let other = self.is_other(us);
        let capabilities = self.capabilities & us.capabilities;
        if other && us.capabilities & BECOMING != BECOMING {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let umask = rustix::process::umask(Mode::from_bits_truncate(self.umask));
        let _back = Back { us, other, umask };
        if other {
            become_(self)?;
        }
        if other || capabilities != us.capabilities {
            set_capabilities(capabilities)?;
        }
        Ok(work())
    }
}

/// Makes this thread us again.
struct Back<'a> {
    us: &'a Caller,
    other: bool,
    umask: Mode,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        rustix::process::umask(self.umask);
        let back =
            set_capabilities(self.us.capabilities).and_then(|()| if self.other { become_(self.us) } else { Ok(()) });
        if back.is_err() {
            // Nothing may be done as somebody else by mistake.
            std::process::abort();
        }
    }
}

/// Takes the identity with which this thread reaches files, and only this thread.
fn become_(caller: &Caller) -> io::Result<()> {
    // SAFETY: the list lives through the call; the others take numbers. The library's own would do it to all threads.
    unsafe {
        if libc::syscall(libc::SYS_setgroups, caller.groups.len(), caller.groups.as_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        for (call, id) in [(libc::SYS_setfsgid, caller.group), (libc::SYS_setfsuid, caller.user)] {
            libc::syscall(call, id);
            // They answer with the one from before, whether they worked or not.
            if libc::syscall(call, u32::MAX) != i64::from(id) as libc::c_long {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
    }
    Ok(())
}

/// The capabilities that a thread has now.
fn effective(thread: u32) -> io::Result<u64> {
    let header = Header { version: VERSION, thread: thread.cast_signed() };
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: header and sets live through the call, and are of the sizes that the version says.
    match unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) } {
        0 => Ok(u64::from(sets[0][0]) | u64::from(sets[1][0]) << 32),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_capabilities(effective: u64) -> io::Result<()> {
    let header = Header { version: VERSION, thread: 0 };
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: header and sets live through the calls, and are of the sizes that the version says.
    unsafe {
        if libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        if [sets[0][0], sets[1][0]] == [effective as u32, (effective >> 32) as u32] {
            return Ok(());
        }
        (sets[0][0], sets[1][0]) = (effective as u32, (effective >> 32) as u32);
        match libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether a program may have one more file open. Where nobody can tell, it may. The number of its files is told by Linux 6.2.
pub(super) fn may_open_more(thread: u32) -> bool {
    // SAFETY: zeroed, and filled in by the kernel.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: writes to the structure alone.
    let told =
        unsafe { libc::prlimit(thread.cast_signed(), libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit) == 0 };
    !told || fs::metadata(format!("/proc/{thread}/fd")).map_or(true, |files| files.size() < limit.rlim_cur)
}

/// Whether a thread is in the same namespace of a kind as we are.
pub(super) fn shares(thread: u32, kind: &str) -> bool {
    static OURS: OnceLock<Option<u64>> = OnceLock::new();
    let number = |process: &str| fs::metadata(format!("/proc/{process}/ns/{kind}")).map(|data| data.ino()).ok();
    let ours = if kind == "user" { *OURS.get_or_init(|| number("self")) } else { number("self") };
    ours.is_some() && number(&thread.to_string()) == ours
}

/// The process of which a path tells.
pub(super) fn process_of(path: &Path) -> Option<u32> {
    let rest = path.strip_prefix("/proc").ok()?;
    rest.components().next()?.as_os_str().to_str()?.parse().ok()
}

/// Whether a process comes from us: what a command has started, and nothing else, is below its keeper.
pub(super) fn is_below_us(process: u32) -> bool {
    let us = std::process::id();
    let mut at = process;
    while at > 1 {
        let Ok(text) = fs::read_to_string(format!("/proc/{at}/stat")) else { return false };
        let above = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        match above {
            Some(above) if above == us => return true,
            Some(above) => at = above,
            None => return false,
        }
    }
    false
}

/// The device number of the terminal that controls a process; none where nothing does.
pub(super) fn terminal(thread: u32) -> Option<(u32, u32)> {
    let text = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    let number: u32 = text.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
    (number != 0).then_some(((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00)))
}
