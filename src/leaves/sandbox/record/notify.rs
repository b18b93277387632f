//! Calls that wait for an answer, and what their programs meant by them: the text of a path, and the folder that it is in.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use libc::{c_ulong, c_void};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, StatxTimestamp};
use rustix::io::Errno;

use super::calls::{Last, Place};
use super::manifest::Stamp;

const RECEIVE: c_ulong = 0xc050_2100;
const SEND: c_ulong = 0xc018_2101;
const IS_VALID: c_ulong = 0x4008_2102;
const SET_FLAGS: c_ulong = 0x4008_2104;
/// Wakes the one who waits on this processor, since we are about to wait ourselves. Linux 6.6.
const SYNC_WAKE_UP: u64 = 1;

/// Longest path that the kernel takes, with its end.
const LONGEST: usize = 4096;
/// Most links in a row that are followed.
const MAX_LINKS: usize = 40;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Continue,
    /// It fails with this error number.
    Refuse(i32),
}

impl Listener {
    pub(super) fn new(fd: OwnedFd) -> Listener {
        let listener = Listener(fd);
        // Only faster; older kernels do without.
        // SAFETY: the flags are passed as a number.
        let _ = unsafe { libc::ioctl(listener.0.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
        listener
    }

    /// Waits for the next call. None: nobody is left who could make one.
    pub(super) fn next(&self) -> io::Result<Option<Waiting>> {
        loop {
            let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut polled, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !polled[0].revents().contains(PollFlags::IN) {
                return Ok(None);
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
            return Ok(Some(Waiting {
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

    /// Who waits no longer needs no answer.
    pub(super) fn answer(&self, waiting: &Waiting, answer: Answer) {
        let mut response = libc::seccomp_notif_resp { id: waiting.id, val: 0, error: 0, flags: 0 };
        match answer {
            Answer::Continue => response.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
            Answer::Refuse(errno) => response.error = -errno,
        }
        // SAFETY: the structure lives through the call.
        let _ = unsafe { libc::ioctl(self.0.as_raw_fd(), SEND as _, &raw mut response) };
    }
}

/// A program that waits, by one of its threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    thread: u32,
}

/// What a path names: the folder, held open, and the name in it. Links on the way were followed.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
    pub(super) path: PathBuf,
}

/// What a path names, from the outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) stamp: Stamp,
    /// Bytes that it takes on the disk.
    pub(super) taken: u64,
}

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
        Seen { stamp, taken: stat.stx_blocks.saturating_mul(512) }
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
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        match rustix::fs::statx(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
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
                return Ok(text);
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

    /// What a call names. None: nothing that could be saved, such as a pipe or a file without a name, or nothing at all.
    ///
    /// # Errors
    /// What keeps us from knowing.
    pub(super) fn spot(self, place: Place, arguments: &[u64; 6]) -> io::Result<Option<Spot>> {
        let flag = |at: usize, flag: u32| arguments[at] as u32 & flag != 0;
        let follow = match place.last {
            Last::Followed => true,
            Last::Kept => false,
            Last::FollowedUnless(at) => !flag(at, AtFlags::SYMLINK_NOFOLLOW.bits()),
            Last::FollowedIf(at) => flag(at, AtFlags::SYMLINK_FOLLOW.bits()),
        };
        self.spot_followed(place, arguments, follow)
    }

    /// The same, where the caller knows what becomes of a link at the end.
    pub(super) fn spot_followed(self, place: Place, arguments: &[u64; 6], follow: bool) -> io::Result<Option<Spot>> {
        let folder = place.folder.map(|at| arguments[at] as i32).filter(|fd| *fd != libc::AT_FDCWD);
        let text = match arguments[place.path] {
            0 => Vec::new(),
            address => self.text(address)?,
        };
        match (text.is_empty(), folder) {
            (true, Some(fd)) => self.open_spot(fd),
            (true, None) => Ok(None),
            (false, fd) => {
                let base = match fd {
                    Some(fd) => format!("/proc/{}/fd/{fd}", self.thread),
                    None => format!("/proc/{}/cwd", self.thread),
                };
                self.resolve(Path::new(&base), Path::new(OsStr::from_bytes(&text)), follow)
            }
        }
    }

    /// What a text names, links at its end not followed.
    pub(super) fn spot_of(self, text: &[u8]) -> io::Result<Option<Spot>> {
        let base = format!("/proc/{}/cwd", self.thread);
        self.resolve(Path::new(&base), Path::new(OsStr::from_bytes(text)), false)
    }

    /// What one of its open files is called now.
    pub(super) fn open_spot(self, fd: i32) -> io::Result<Option<Spot>> {
        let link = format!("/proc/{}/fd/{fd}", self.thread);
        let name = fs::read_link(&link)?;
        if !name.is_absolute() {
            return Ok(None);
        }
        let open = rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        match named(&open, &name)? {
            true => self.resolve(Path::new("/"), &name, false),
            false => Ok(None),
        }
    }

    /// Opens a folder that begins with the root, the working folder or an open folder of the program, as the program would.
    fn opened(self, folder: &Path) -> io::Result<Option<OwnedFd>> {
        let parts: Vec<Component> = folder.components().collect();
        let base = if parts.get(3).is_some_and(|part| part.as_os_str() == "fd") { 5 } else { 4 };
        let (base, rest) = parts.split_at(base.min(parts.len()));
        let rest: PathBuf = rest.iter().collect();
        let Some(base) = there(rustix::fs::open(base.iter().collect::<PathBuf>(), FOLDER, Mode::empty()))? else {
            return Ok(None);
        };
        if rest.as_os_str().is_empty() {
            return Ok(Some(base));
        }
        // What `/proc/self` leads to would be ours, and not the program's.
        match rustix::fs::openat2(&base, &rest, FOLDER, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
            Err(Errno::LOOP | Errno::NOSYS) => {}
            opened => match there(opened)? {
                Some(folder) if is_ours(&folder)? => {}
                opened => return Ok(opened),
            },
        }
        match path_of(&base)? {
            Some(base) => self.walked(base, &rest),
            None => Ok(None),
        }
    }

    /// The same part by part, where the way leads through what the kernel shows of a process.
    fn walked(self, mut at: PathBuf, rest: &Path) -> io::Result<Option<OwnedFd>> {
        let parts = |path: &Path| -> Vec<OsString> {
            path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
        };
        let (mut left, mut links) = (parts(rest), 0);
        while let Some(part) = left.pop() {
            if part == "." || part == "/" {
                continue;
            }
            if part == ".." {
                at.pop();
                continue;
            }
            let own = at == Path::new("/proc") && (part == "self" || part == "thread-self");
            let next = if own { at.join(self.thread.to_string()) } else { at.join(&part) };
            match rustix::fs::readlink(&next, Vec::new()) {
                Ok(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Ok(None);
                    }
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    left.extend(parts(&target));
                }
                Err(_) => at = next,
            }
        }
        there(rustix::fs::open(&at, FOLDER, Mode::empty()))
    }

    fn resolve(self, base: &Path, path: &Path, mut follow: bool) -> io::Result<Option<Spot>> {
        let root = PathBuf::from(format!("/proc/{}/root", self.thread));
        let below = |base: &Path, path: &Path| match path.strip_prefix("/") {
            Ok(rest) => root.join(rest),
            Err(_) => base.join(path),
        };
        let mut whole = below(base, path);
        // The kernel follows as many, and counts at least those.
        for _ in 0..=MAX_LINKS {
            // `a/.` and `a/..` name folders that have a name of their own.
            let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
                let Some(folder) = self.opened(&whole)? else { return Ok(None) };
                let Some(path) = path_of(&folder)? else { return Ok(None) };
                if path.file_name().is_none() {
                    return Ok(None);
                }
                (whole, follow) = (below(Path::new("/"), &path), false);
                continue;
            };
            let dot = whole.as_os_str().as_bytes().ends_with(b"/.");
            let Some(folder) = self.opened(parent)? else { return Ok(None) };
            let Some(parent) = path_of(&folder)? else { return Ok(None) };
            let spot = Spot { path: parent.join(name), name: name.to_owned(), folder };
            if !follow && !dot {
                return Ok(Some(spot));
            }
            match rustix::fs::readlinkat(&spot.folder, &spot.name, Vec::new()) {
                Ok(target) => {
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    // `pipe:[1]`, which is not a path.
                    if target.is_relative()
                        && parent.starts_with("/proc")
                        && target.as_os_str().as_bytes().ends_with(b"]")
                    {
                        return Ok(None);
                    }
                    whole = below(&below(Path::new("/"), &parent), &target);
                }
                Err(_) => return Ok(Some(spot)),
            }
        }
        Ok(None)
    }
}

/// Whether the name that the kernel gives for an open file is a path that is still there. It ends the names of those that are
/// gone in a word with which a file may be called as well.
fn named(open: impl AsFd, name: &Path) -> io::Result<bool> {
    if !name.is_absolute() || !name.as_os_str().as_bytes().ends_with(b" (deleted)") {
        return Ok(name.is_absolute());
    }
    let open = rustix::fs::fstat(open)?;
    Ok(rustix::fs::lstat(name).is_ok_and(|there| (there.st_dev, there.st_ino) == (open.st_dev, open.st_ino)))
}

/// How a folder is held open without reading it.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// None if it does not exist: the call fails, too. Of other failures nobody knows whether the program meets them.
fn there(opened: rustix::io::Result<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    match opened {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether it is one in which the kernel shows our own process.
fn is_ours(folder: &OwnedFd) -> io::Result<bool> {
    let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    Ok(path.starts_with(format!("/proc/{}", std::process::id())))
}

/// Where an open folder is; none if it was removed.
fn path_of(folder: &OwnedFd) -> io::Result<Option<PathBuf>> {
    let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    Ok(named(folder, &path)?.then_some(path))
}
