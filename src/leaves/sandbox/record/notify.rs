//! Calls that wait for an answer, and what their programs have in memory: the text of a path, and what is at a path once it
//! is known where that leads.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use libc::{c_ulong, c_void};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags, StatxTimestamp};
use rustix::io::Errno;

use super::manifest::Stamp;

const RECEIVE: c_ulong = 0xc050_2100;
const SEND: c_ulong = 0xc018_2101;
const IS_VALID: c_ulong = 0x4008_2102;
const ADD: c_ulong = 0x4018_2103;
const SET_FLAGS: c_ulong = 0x4008_2104;
/// Wakes the one who waits on this processor, since we are about to wait ourselves. Linux 6.6.
const SYNC_WAKE_UP: u64 = 1;

/// Longest path that the kernel takes, with its end.
const LONGEST: usize = 4096;
/// A call that began and found a signal waiting: the kernel delivers it, and has the call made again or fail as the program
/// asked for.
const RESTART: i32 = 512;

/// Where calls are heard of.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) id: u64,
    pub(super) number: i32,
    pub(super) arch: u32,
    pub(super) arguments: [u64; 6],
    pub(super) program: Program,
}

/// What is to become of a call.
#[derive(Debug)]
pub(super) enum Answer {
    /// The kernel makes it, with what its arguments point to by then.
    Continue,
    /// It fails with this error number.
    Refuse(i32),
    /// It was made.
    Made,
    /// It was made, and opened this, which a program that it runs may get or not.
    Opened(OwnedFd, Inherited),
    /// It is made again, after a signal.
    Again,
}

/// Whether programs that are run keep a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inherited {
    Yes,
    No,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Heard {
    Call(Waiting),
    /// Nothing for as long as was asked.
    Nothing,
    /// Nobody is left who could make a call.
    Over,
}

/// As the kernel has it.
#[repr(C)]
struct Added {
    id: u64,
    flags: u32,
    from: u32,
    to: u32,
    to_flags: u32,
}

impl Listener {
    pub(super) fn new(fd: OwnedFd) -> Listener {
        let listener = Listener(fd);
        // Only faster; older kernels do without.
        // SAFETY: the flags are passed as a number.
        let _ = unsafe { libc::ioctl(listener.0.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
        listener
    }

    /// Waits for the next call, for so long at most.
    pub(super) fn next(&self, time: Option<Duration>) -> io::Result<Heard> {
        loop {
            let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut polled, time.and_then(|time| Timespec::try_from(time).ok()).as_ref()) {
                Ok(0) => return Ok(Heard::Nothing),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !polled[0].revents().contains(PollFlags::IN) {
                return Ok(Heard::Over);
            }
            // SAFETY: zeroed, as the kernel wants it; it fills in no more than the structure of that size.
            let mut heard: libc::seccomp_notif = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            match unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE as _, &raw mut heard) } {
                0 => {}
                _ => match io::Error::last_os_error() {
                    // It was killed meanwhile.
                    error if error.raw_os_error() == Some(libc::ENOENT) => continue,
                    error if error.kind() == io::ErrorKind::Interrupted => continue,
                    error => return Err(error),
                },
            }
            return Ok(Heard::Call(Waiting {
                id: heard.id,
                number: heard.data.nr,
                arch: heard.data.arch,
                arguments: heard.data.args,
                program: Program { thread: heard.pid },
            }));
        }
    }

    /// Whether a call still waits: what was read of its program is of that program then, and not of another one that got
    /// its number.
    pub(super) fn waits(&self, waiting: &Waiting) -> bool {
        // SAFETY: the number lives through the call.
        unsafe { libc::ioctl(self.0.as_raw_fd(), IS_VALID as _, &raw const waiting.id) == 0 }
    }

    /// Gives a program what was opened for it. Ours is closed before it continues: a program that has written to a file, and
    /// closed it, may run it.
    fn hand_over(&self, waiting: &Waiting, file: OwnedFd, inherited: Inherited) -> io::Result<i64> {
        let to_flags = if inherited == Inherited::No { libc::O_CLOEXEC.cast_unsigned() } else { 0 };
        let from = file.as_raw_fd().cast_unsigned();
        let added = Added { id: waiting.id, flags: 0, from, to: 0, to_flags };
        // SAFETY: the structure lives through the call.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), ADD as _, &raw const added) } {
            ..0 => Err(io::Error::last_os_error()),
            number => Ok(number.into()),
        }
    }

    /// Who waits no longer needs no answer.
    pub(super) fn answer(&self, waiting: &Waiting, answer: Answer) {
        let mut response = libc::seccomp_notif_resp { id: waiting.id, val: 0, error: 0, flags: 0 };
        match answer {
            Answer::Continue => response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
            Answer::Refuse(errno) => response.error = -errno,
            Answer::Again => response.error = -RESTART,
            Answer::Made => {}
            Answer::Opened(file, inherited) => match self.hand_over(waiting, file, inherited) {
                Ok(number) => response.val = number,
                Err(error) => response.error = -error.raw_os_error().unwrap_or(libc::EMFILE),
            },
        }
        // SAFETY: the structure lives through the call.
        let _ = unsafe { libc::ioctl(self.0.as_raw_fd(), SEND as _, &raw mut response) };
    }
}

/// A program that waits, by one of its threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) thread: u32,
}

/// What a path names: the folder, held open, and the name in it. Links on the way were followed.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
    pub(super) path: PathBuf,
    /// The path ended with a slash: only a folder may have the name.
    pub(super) slash: bool,
}

/// What a path names, from the outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) stamp: Stamp,
    /// Bytes that it takes on the disk.
    pub(super) taken: u64,
    /// Which device it is.
    pub(super) device: (u32, u32),
}

/// What is asked of the kernel about it.
const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

impl Seen {
    fn of(stat: &Statx) -> Seen {
        let time = |time: StatxTimestamp| time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into());
        let stamp = Stamp {
            dev: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
            ino: stat.stx_ino,
            size: stat.stx_size,
            mtime: time(stat.stx_mtime),
            ctime: time(stat.stx_ctime),
            born: if stat.stx_mask & StatxFlags::BTIME.bits() == 0 { 0 } else { time(stat.stx_btime) },
            mode: stat.stx_mode.into(),
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            links: stat.stx_nlink.into(),
        };
        let device = (stat.stx_rdev_major, stat.stx_rdev_minor);
        Seen { stamp, taken: stat.stx_blocks.saturating_mul(512), device }
    }

    /// What is held open.
    pub(super) fn open(open: impl AsFd) -> io::Result<Seen> {
        Ok(Seen::of(&rustix::fs::statx(open, "", AtFlags::EMPTY_PATH, WANTED)?))
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stamp.mode)
    }

    pub(super) fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    pub(super) fn is_folder(&self) -> bool {
        self.kind() == FileType::Directory
    }

    /// Permission bits.
    pub(super) fn mode(&self) -> u32 {
        self.stamp.mode & 0o7777
    }
}

impl Spot {
    /// What is there; none where nothing is.
    pub(super) fn seen(&self) -> io::Result<Option<Seen>> {
        match rustix::fs::statx(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW, WANTED) {
            Ok(stat) => Ok(Some(Seen::of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn target(&self) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.folder, &self.name, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// A name within the folder that this one names.
    pub(super) fn folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?)
    }
}

impl Program {
    /// A text in its memory, without the zero at its end.
    ///
    /// # Errors
    /// What the kernel says: `EPERM` for a program that nobody may look into.
    pub(super) fn text(self, address: u64) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < LONGEST {
            // Never beyond the end of a page: the next one may not be there.
            let from = address + text.len() as u64;
            let room = 256 - (from % 256) as usize;
            let start = text.len();
            text.resize(start + room, 0);
            let read = self.read(from, &mut text[start..])?;
            if let Some(end) = text[start..start + read].iter().position(|byte| *byte == 0) {
                text.truncate(start + end);
                return if text.len() < LONGEST { Ok(text) } else { Err(Errno::NAMETOOLONG.into()) };
            }
            text.truncate(start + read);
        }
        Err(Errno::NAMETOOLONG.into())
    }

    /// Fills a buffer from its memory.
    pub(super) fn read(self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: into.len() };
        let pid = self.thread.cast_signed();
        // SAFETY: writes to our buffer alone, no more than it holds; the other address is not ours to be valid.
        let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        match usize::try_from(read) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => Ok(read),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}
