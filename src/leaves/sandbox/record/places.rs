//! Where the path of a call leads: found once, as its program would find it, and held open from then on. What is looked at,
//! saved and changed afterwards is that, whatever the path has come to mean.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use super::caller;
use super::calls::{Last, Place};
use super::notify::{Program, Seen, Spot};

/// Most links that are followed on the way to one place.
const MAX_LINKS: usize = 40;

/// How a folder is held open without reading it.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How anything is.
const ANYTHING: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    /// A name in a folder; there may be nothing that has it.
    Named(Spot),
    /// Something that has no path, such as a pipe, or whose path cannot be told.
    Unnamed(OwnedFd),
}

/// Why it is not known where a path leads.
#[derive(Debug)]
pub(super) enum Fault {
    /// Nowhere: the call fails with this.
    Fails(Errno),
    /// Nobody can tell.
    Blind(io::Error),
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Fault {
        Fault::Fails(error)
    }
}

impl Spot {
    /// The kernel makes nothing at these, and takes nothing away.
    pub(super) fn is_dots(&self) -> bool {
        matches!(self.name.as_bytes(), b"." | b".." | b"/")
    }
}

impl Program {
    /// What a call makes, moves or removes: a name, to which nothing is asked of what has it.
    pub(super) fn entry(self, place: Place, arguments: &[u64; 6]) -> Result<Spot, Fault> {
        let text = self.path(arguments[place.path])?;
        self.named(self.start(place, arguments, &text)?, &text, &mut 0)
    }

    /// What a call changes or opens: what its path leads to.
    pub(super) fn object(self, place: Place, arguments: &[u64; 6]) -> Result<Found, Fault> {
        let flag = |at: usize, flag: AtFlags| arguments[at] as u32 & flag.bits() != 0;
        if let Last::FollowedUnless(at) | Last::FollowedIf(at) = place.last {
            let follows =
                if place.last == Last::FollowedIf(at) { AtFlags::SYMLINK_FOLLOW } else { AtFlags::SYMLINK_NOFOLLOW };
            if flag(at, !(follows | AtFlags::EMPTY_PATH)) {
                return Err(Errno::INVAL.into());
            }
        }
        let (follow, empty) = match place.last {
            Last::Followed => (true, false),
            Last::Kept => (false, false),
            Last::FollowedUnless(at) => (!flag(at, AtFlags::SYMLINK_NOFOLLOW), flag(at, AtFlags::EMPTY_PATH)),
            Last::FollowedIf(at) => (flag(at, AtFlags::SYMLINK_FOLLOW), flag(at, AtFlags::EMPTY_PATH)),
        };
        let open = place.folder.map(|at| arguments[at] as i32).filter(|fd| *fd != libc::AT_FDCWD);
        match (arguments[place.path], open) {
            // Of the calls that take none, only those that set times.
            (0, Some(fd)) => return self.open(fd),
            (0, None) => return Err(Errno::FAULT.into()),
            _ => {}
        }
        let text = self.path(arguments[place.path])?;
        match (text.is_empty() && empty, open) {
            (true, Some(fd)) => named_open(self.descriptor(fd)?),
            (true, None) => named_open(self.start(place, arguments, b".")?),
            _ => self.leads(place, arguments, text, follow),
        }
    }

    /// The same, where the caller knows what becomes of a link at the end.
    pub(super) fn object_followed(self, place: Place, arguments: &[u64; 6], follow: bool) -> Result<Found, Fault> {
        let text = self.path(arguments[place.path])?;
        self.leads(place, arguments, text, follow)
    }

    /// What one of its open files is. One that is only held by its path is not open.
    pub(super) fn open(self, fd: i32) -> Result<Found, Fault> {
        let held = self.descriptor(fd)?;
        let told = fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", self.thread)).map_err(Fault::Blind)?;
        let flags = told.lines().find_map(|line| line.strip_prefix("flags:")).map(str::trim);
        let flags = flags.and_then(|octal| u32::from_str_radix(octal, 8).ok()).unwrap_or(0);
        if OFlags::from_bits_retain(flags).contains(OFlags::PATH) {
            return Err(Errno::BADF.into());
        }
        named_open(held)
    }

    /// A name in its working folder.
    pub(super) fn entry_here(self, text: &[u8]) -> Result<Spot, Fault> {
        let base = if text.starts_with(b"/") { self.root()? } else { self.own("cwd")? };
        self.named(base, text, &mut 0)
    }

    fn path(self, address: u64) -> Result<Vec<u8>, Fault> {
        match self.text(address) {
            Err(error) => match error.raw_os_error() {
                Some(libc::EFAULT) => Err(Errno::FAULT.into()),
                Some(libc::ENAMETOOLONG) => Err(Errno::NAMETOOLONG.into()),
                _ => Err(Fault::Blind(error)),
            },
            Ok(text) => Ok(text),
        }
    }

    fn own(self, what: &str) -> Result<OwnedFd, Fault> {
        let link = format!("/proc/{}/{what}", self.thread);
        rustix::fs::open(link, ANYTHING, Mode::empty()).map_err(|error| Fault::Blind(error.into()))
    }

    fn root(self) -> Result<OwnedFd, Fault> {
        self.own("root")
    }

    fn descriptor(self, fd: i32) -> Result<OwnedFd, Fault> {
        let link = format!("/proc/{}/fd/{fd}", self.thread);
        match rustix::fs::open(link, ANYTHING, Mode::empty()) {
            Err(Errno::NOENT) => Err(Errno::BADF.into()),
            opened => opened.map_err(|error| Fault::Blind(error.into())),
        }
    }

    /// Where a path begins.
    fn start(self, place: Place, arguments: &[u64; 6], text: &[u8]) -> Result<OwnedFd, Fault> {
        let open = place.folder.map(|at| arguments[at] as i32).filter(|fd| *fd != libc::AT_FDCWD);
        match open {
            _ if text.starts_with(b"/") => self.root(),
            Some(fd) => self.descriptor(fd),
            None => self.own("cwd"),
        }
    }

    /// A name where the path without it leads.
    fn named(self, base: OwnedFd, text: &[u8], links: &mut usize) -> Result<Spot, Fault> {
        if text.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let Split { parent, last, slash } = Split::of(text);
        let folder = self.folder(base, parent, links)?;
        let name = OsStr::from_bytes(if last.is_empty() { b"/" } else { last });
        // Nothing is made in a folder that was removed, and nothing is in there.
        let path = path_of(&folder).map_err(Fault::Blind)?.ok_or(Errno::NOENT)?;
        Ok(Spot { path: path.join(name), name: name.to_owned(), folder, slash })
    }

    fn leads(self, place: Place, arguments: &[u64; 6], mut text: Vec<u8>, follow: bool) -> Result<Found, Fault> {
        let mut base = self.start(place, arguments, &text)?;
        let mut links = 0;
        loop {
            let spot = self.named(base, &text, &mut links)?;
            if spot.is_dots() {
                return named_open(self.folder(spot.folder, spot.name.as_bytes(), &mut links)?);
            }
            if !follow && !spot.slash {
                return Ok(Found::Named(spot));
            }
            match self.link(&spot.folder, spot.name.as_bytes())? {
                None => return Ok(Found::Named(spot)),
                Some(Step::There(open)) => return named_open(open),
                Some(Step::Link(mut target)) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    if spot.slash {
                        target.push(b'/');
                    }
                    (base, text) = (if target.starts_with(b"/") { self.root()? } else { spot.folder }, target);
                }
            }
        }
    }

    /// Opens a folder as the program would.
    fn folder(self, base: OwnedFd, path: &[u8], links: &mut usize) -> Result<OwnedFd, Fault> {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let path = &path[path.iter().take_while(|byte| **byte == b'/').count()..];
        if path.is_empty() {
            return Ok(base);
        }
        if self.shares_root().map_err(Fault::Blind)? {
            // What `/proc/self` leads to would be ours, and not the program's.
            match rustix::fs::openat2(&base, path, FOLDER, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
                Err(Errno::LOOP | Errno::NOSYS) => {}
                Ok(folder) if is_ours(&folder).map_err(Fault::Blind)? => {}
                opened => return Ok(opened?),
            }
        }
        self.walked(base, path, links)
    }

    /// Whether its paths begin where ours do.
    fn shares_root(self) -> io::Result<bool> {
        static OURS: OnceLock<Option<(u64, u64)>> = OnceLock::new();
        let theirs = place_at(CWD, &format!("/proc/{}/root", self.thread))?;
        Ok(*OURS.get_or_init(|| place_at(CWD, "/").ok()) == Some(theirs))
    }

    /// The same part by part, where the way leads through what the kernel shows of a process, or in another root.
    fn walked(self, mut at: OwnedFd, path: &[u8], links: &mut usize) -> Result<OwnedFd, Fault> {
        let parts =
            |path: &[u8]| -> Vec<Vec<u8>> { path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec).collect() };
        let root = self.root()?;
        let top = place_at(&root, "").map_err(Fault::Blind)?;
        let mut left = parts(path);
        while let Some(part) = left.pop() {
            match part.as_slice() {
                b"" | b"." => {}
                b".." if place_at(&at, "").map_err(Fault::Blind)? == top => {}
                b".." => at = rustix::fs::openat(&at, "..", FOLDER, Mode::empty())?,
                name => match self.link(&at, name)? {
                    None => at = rustix::fs::openat(&at, name, ANYTHING | OFlags::NOFOLLOW, Mode::empty())?,
                    Some(Step::There(next)) => at = next,
                    Some(Step::Link(target)) => {
                        *links += 1;
                        if *links > MAX_LINKS {
                            return Err(Errno::LOOP.into());
                        }
                        if target.starts_with(b"/") {
                            at = root.try_clone().map_err(Fault::Blind)?;
                        }
                        left.extend(parts(&target));
                    }
                },
            }
        }
        match Seen::open(&at).map_err(Fault::Blind)?.is_folder() {
            true => Ok(at),
            false => Err(Errno::NOTDIR.into()),
        }
    }

    /// Where the link of this name leads; none: it is not a link.
    fn link(self, at: &OwnedFd, name: &[u8]) -> Result<Option<Step>, Fault> {
        let Ok(target) = rustix::fs::readlinkat(at, name, Vec::new()) else { return Ok(None) };
        if !is_of_processes(at) {
            self.may_follow(at, name)?;
            return Ok(Some(Step::Link(target.into_bytes())));
        }
        // The number of the folder in which the kernel shows all processes.
        if rustix::fs::fstat(at)?.st_ino == 1 && matches!(name, b"self" | b"thread-self") {
            return Ok(Some(Step::Link(self.thread.to_string().into_bytes())));
        }
        match rustix::fs::openat2(at, name, ANYTHING, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
            Err(Errno::LOOP) => {
                self.may_jump(at)?;
                Ok(Some(Step::There(rustix::fs::openat(at, name, ANYTHING, Mode::empty())?)))
            }
            _ => Ok(Some(Step::Link(target.into_bytes()))),
        }
    }

    /// What belongs to a process may be reached through it by those who may trace it. We may more than the program.
    fn may_jump(self, at: &OwnedFd) -> Result<(), Fault> {
        let path = path_of(at).map_err(Fault::Blind)?.unwrap_or_default();
        match caller::process_of(&path) {
            Some(pid) if caller::is_below_us(pid) => Ok(()),
            _ => Err(Errno::ACCESS.into()),
        }
    }

    /// In a folder in which all may make links, the kernel may be told to follow only one's own.
    fn may_follow(self, at: &OwnedFd, name: &[u8]) -> Result<(), Fault> {
        static PROTECTED: OnceLock<bool> = OnceLock::new();
        if !*PROTECTED
            .get_or_init(|| fs::read("/proc/sys/fs/protected_symlinks").is_ok_and(|text| text.starts_with(b"1")))
        {
            return Ok(());
        }
        let folder = rustix::fs::fstat(at)?;
        if folder.st_mode & 0o1002 != 0o1002 {
            return Ok(());
        }
        let link = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // SAFETY: asks for nothing but a number; one that is not valid changes nothing.
        let own = unsafe { libc::syscall(libc::SYS_setfsuid, u32::MAX) };
        match i64::from(link.st_uid) == own || link.st_uid == folder.st_uid {
            true => Ok(()),
            false => Err(Errno::ACCESS.into()),
        }
    }
}

/// What a link leads to: itself, or by a path.
enum Step {
    There(OwnedFd),
    Link(Vec<u8>),
}

/// A path in two: the name at its end, and the way to it.
struct Split<'a> {
    parent: &'a [u8],
    last: &'a [u8],
    slash: bool,
}

impl Split<'_> {
    fn of(text: &[u8]) -> Split<'_> {
        let end = text.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
        let begin = text[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        Split { parent: &text[..begin], last: &text[begin..end], slash: end < text.len() }
    }
}

/// What is held open, by its name if it has one.
fn named_open(open: OwnedFd) -> Result<Found, Fault> {
    let told = fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())).map_err(Fault::Blind)?;
    let (Some(parent), Some(name)) = (told.parent().filter(|_| told.is_absolute()), told.file_name()) else {
        return Ok(Found::Unnamed(open));
    };
    let Ok(folder) = rustix::fs::open(parent, FOLDER, Mode::empty()) else { return Ok(Found::Unnamed(open)) };
    let spot = Spot { path: told.clone(), name: name.to_owned(), folder, slash: false };
    let seen = Seen::open(&open).map_err(Fault::Blind)?;
    // The kernel ends the names of those that are gone in a word with which a file may be called as well.
    match spot.seen() {
        Ok(Some(there)) if there.stamp.same_file(&seen.stamp) => Ok(Found::Named(spot)),
        _ => Ok(Found::Unnamed(open)),
    }
}

/// Whether the kernel shows processes there.
pub(super) fn is_of_processes(folder: &OwnedFd) -> bool {
    rustix::fs::fstatfs(folder).is_ok_and(|of| of.f_type == libc::PROC_SUPER_MAGIC)
}

/// Which folder it is, of which mount.
fn place_at(at: impl AsFd, path: &str) -> io::Result<(u64, u64)> {
    let flags = if path.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::empty() };
    let stat = rustix::fs::statx(at, path, flags, StatxFlags::INO | StatxFlags::MNT_ID)?;
    Ok((stat.stx_mnt_id, stat.stx_ino))
}

/// Whether it is one in which the kernel shows our own process.
fn is_ours(folder: &OwnedFd) -> io::Result<bool> {
    let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    Ok(path.starts_with(format!("/proc/{}", std::process::id())))
}

/// Where an open folder is; none if it was removed.
fn path_of(folder: &OwnedFd) -> io::Result<Option<PathBuf>> {
    let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    if !path.is_absolute() || !path.as_os_str().as_bytes().ends_with(b" (deleted)") {
        return Ok(path.is_absolute().then_some(path));
    }
    let open = rustix::fs::fstat(folder)?;
    let there = rustix::fs::lstat(Path::new(&path));
    Ok(there.is_ok_and(|there| (there.st_dev, there.st_ino) == (open.st_dev, open.st_ino)).then_some(path))
}
