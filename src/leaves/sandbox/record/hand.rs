//! Makes calls for a program: on what was found of them, and with no more rights than the program has.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::{Receiver, Sender, channel};

use libc::{c_int, c_long, timespec};
use rustix::fs::{Mode, OFlags};

use super::caller::Caller;
use super::notify::Spot;
use super::places::Found;
use crate::stdx::process::start::Confined;

/// A call that is to be made, once.
pub(super) type Work = Box<dyn FnOnce() -> io::Result<Done> + Send>;

/// What came of it.
#[derive(Debug)]
pub(super) enum Done {
    Made,
    Opened(OwnedFd),
}

/// Where calls are made: on the thread that answers them, or on one that gave up what the program did.
#[derive(Debug)]
pub(super) enum Hand {
    Here(Caller),
    Apart(Sender<(Option<Caller>, Work)>, Receiver<io::Result<Done>>),
}

/// What to set on what is there.
#[derive(Debug)]
pub(super) enum Setting {
    Mode(u32),
    Owner(u32, u32),
    /// None: now.
    Times(Option<[timespec; 2]>),
    Attribute {
        name: CString,
        value: Vec<u8>,
        flags: c_int,
    },
    NoAttribute {
        name: CString,
    },
    Length(i64),
    /// What only a command to an open file sets.
    Flags {
        command: u32,
        bytes: Vec<u8>,
    },
}

impl Hand {
    /// For what a command was confined to. What only keeps it from other processes says nothing about files.
    ///
    /// # Errors
    /// The kernel does not tell who we are, or refuses to take from us what it took from the program.
    pub(super) fn new(confined: Option<&Confined>) -> io::Result<Hand> {
        let Some(confined) = confined.filter(|confined| !confined.filter.is_empty()) else {
            return Ok(Hand::Here(Caller::us()?));
        };
        let (ask, asked) = channel::<(Option<Caller>, Work)>();
        let (say, said) = channel();
        let (ruleset, capabilities) = (confined.ruleset, confined.capabilities);
        std::thread::Builder::new().name("hand".to_owned()).spawn(move || {
            own_umask();
            let prepared = Confined { ruleset, filter: Vec::new(), capabilities };
            let us = match prepared.put_on().and_then(|()| Caller::us()) {
                Ok(us) => us,
                Err(error) => return drop(say.send(Err(error))),
            };
            if say.send(Ok(Done::Made)).is_err() {
                return;
            }
            while let Ok((caller, work)) = asked.recv() {
                if say.send(by(caller.as_ref(), &us, work)).is_err() {
                    return;
                }
            }
        })?;
        said.recv().map_err(io::Error::other)??;
        Ok(Hand::Apart(ask, said))
    }

    /// Makes it as the caller would; none: as we would.
    ///
    /// # Errors
    /// What the kernel says. Without a number of its own: we cannot be that caller.
    pub(super) fn make(&self, caller: Option<Caller>, work: Work) -> io::Result<Done> {
        match self {
            Hand::Here(us) => by(caller.as_ref(), us, work),
            Hand::Apart(ask, said) => {
                ask.send((caller, work)).map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
                said.recv().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?
            }
        }
    }
}

fn by(caller: Option<&Caller>, us: &Caller, work: Work) -> io::Result<Done> {
    match caller {
        Some(caller) => caller.act(us, work)?,
        None => work(),
    }
}

/// Where the kernel lets it, what this thread says of new files is its own affair.
pub(super) fn own_umask() {
    // SAFETY: takes no memory; other threads keep what they have.
    let _ = unsafe { libc::unshare(libc::CLONE_FS) };
}

impl Spot {
    /// The name as the call said it.
    fn last(&self) -> io::Result<CString> {
        let mut name: OsString = self.name.clone();
        if self.slash {
            name.push("/");
        }
        Ok(CString::new(name.as_bytes())?)
    }
}

/// How what has a name is opened, so that no link is followed that comes meanwhile. A flag that forbids it stays with the open
/// file, so it is only given where the program asked for it, or the folder has to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Nothing has the name, or the call itself follows no link.
    Name(OFlags),
    /// What has it is held first.
    Holding,
}

/// Opens what has a name, or makes it. Nothing is waited for.
pub(super) fn open(spot: Spot, by: By, flags: OFlags, mode: u32) -> Work {
    Box::new(move || {
        let name = spot.last()?;
        match by {
            By::Name(more) => opened(spot.folder.as_raw_fd(), &name, flags | more, flags, mode),
            By::Holding => {
                let held = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                again(&rustix::fs::openat(&spot.folder, &name, held, Mode::empty())?, flags)
            }
        }
    })
}

/// The same for what is held open.
pub(super) fn open_again(held: OwnedFd, flags: OFlags) -> Work {
    Box::new(move || again(&held, flags))
}

fn again(held: &OwnedFd, flags: OFlags) -> io::Result<Done> {
    // By itself the second one asks for a device that nobody else uses.
    let creating = if flags.contains(OFlags::CREATE) { OFlags::CREATE | OFlags::EXCL } else { OFlags::empty() };
    let asked = flags.difference(creating | OFlags::NOFOLLOW);
    opened(libc::AT_FDCWD, &CString::new(shown(held))?, asked, flags, 0)
}

fn opened(folder: RawFd, name: &CString, asked: OFlags, wanted: OFlags, mode: u32) -> io::Result<Done> {
    // SAFETY: the name lives through the call, and the descriptor is nobody's yet.
    let file = unsafe {
        let asked = asked | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let number = libc::openat(folder, name.as_ptr(), asked.bits().cast_signed(), mode);
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(number)
    };
    if !wanted.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(&file, wanted)?;
    }
    Ok(Done::Opened(file))
}

/// Sets something on what a call has found.
pub(super) fn set(found: Found, setting: Setting) -> Work {
    Box::new(move || {
        let held = match found {
            Found::Unnamed(held) => held,
            Found::Named(spot) => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let held = rustix::fs::openat(&spot.folder, spot.last()?, flags, Mode::empty())?;
                let kind = rustix::fs::fstat(&held)?.st_mode & libc::S_IFMT;
                if kind == libc::S_IFLNK {
                    return set_link(&spot, setting);
                }
                held
            }
        };
        let path = CString::new(shown(&held))?;
        // SAFETY: all that is pointed to lives through the calls.
        let done = unsafe {
            match setting {
                Setting::Mode(mode) => libc::chmod(path.as_ptr(), mode),
                Setting::Owner(user, group) => libc::chown(path.as_ptr(), user, group),
                Setting::Times(times) => {
                    let times = times.as_ref().map_or(std::ptr::null(), |times| times.as_ptr());
                    libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times, 0)
                }
                Setting::Attribute { name, value, flags } => {
                    libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags)
                }
                Setting::NoAttribute { name } => libc::removexattr(path.as_ptr(), name.as_ptr()),
                // Without waiting for somebody who holds a lease on the file.
                Setting::Length(length) if rustix::fs::fstat(&held)?.st_mode & libc::S_IFMT == libc::S_IFREG => {
                    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                    let open = rustix::fs::open(&path, flags, Mode::empty())?;
                    libc::ftruncate(open.as_raw_fd(), length)
                }
                Setting::Length(length) => libc::truncate(path.as_ptr(), length),
                Setting::Flags { command, bytes } => {
                    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                    let open = rustix::fs::open(&path, flags, Mode::empty())?;
                    libc::ioctl(open.as_raw_fd(), command as _, bytes.as_ptr())
                }
            }
        };
        made(done.into())
    })
}

/// The same on a link itself.
fn set_link(spot: &Spot, setting: Setting) -> io::Result<Done> {
    let (folder, name) = (spot.folder.as_raw_fd(), spot.last()?);
    let path = CString::new([shown(&spot.folder).as_bytes(), b"/", name.as_bytes()].concat())?;
    let flag = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: as above.
    let done = unsafe {
        match setting {
            Setting::Owner(user, group) => libc::fchownat(folder, name.as_ptr(), user, group, flag),
            Setting::Times(times) => {
                let times = times.as_ref().map_or(std::ptr::null(), |times| times.as_ptr());
                libc::utimensat(folder, name.as_ptr(), times, flag)
            }
            Setting::Attribute { name, value, flags } => {
                libc::lsetxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags)
            }
            Setting::NoAttribute { name } => libc::lremovexattr(path.as_ptr(), name.as_ptr()),
            // A link has neither; one that was not to be followed came in between.
            Setting::Mode(_) | Setting::Flags { .. } => return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
            Setting::Length(_) => return Err(io::Error::from_raw_os_error(libc::ELOOP)),
        }
    };
    made(done.into())
}

pub(super) fn remove(spot: Spot, flags: c_int) -> Work {
    Box::new(move || {
        let name = spot.last()?;
        // SAFETY: the name lives through the call.
        made(unsafe { libc::unlinkat(spot.folder.as_raw_fd(), name.as_ptr(), flags) }.into())
    })
}

pub(super) fn rename(from: Spot, to: Spot, flags: u32) -> Work {
    Box::new(move || {
        let (old, new) = (from.last()?, to.last()?);
        let (from, to) = (from.folder.as_raw_fd(), to.folder.as_raw_fd());
        // SAFETY: the names live through the call.
        made(unsafe { libc::syscall(libc::SYS_renameat2, from, old.as_ptr(), to, new.as_ptr(), flags) })
    })
}

pub(super) fn link(from: Found, to: Spot) -> Work {
    Box::new(move || {
        let new = to.last()?;
        let (folder, old, flags, _held) = match from {
            Found::Named(spot) => (spot.folder.as_raw_fd(), spot.last()?, 0, spot.folder),
            Found::Unnamed(held) => (libc::AT_FDCWD, CString::new(shown(&held))?, libc::AT_SYMLINK_FOLLOW, held),
        };
        // SAFETY: the names live through the call.
        made(unsafe { libc::linkat(folder, old.as_ptr(), to.folder.as_raw_fd(), new.as_ptr(), flags) }.into())
    })
}

pub(super) fn lead(target: CString, to: Spot) -> Work {
    Box::new(move || {
        let name = to.last()?;
        // SAFETY: both texts live through the call.
        made(unsafe { libc::symlinkat(target.as_ptr(), to.folder.as_raw_fd(), name.as_ptr()) }.into())
    })
}

pub(super) fn make_folder(spot: Spot, mode: u32) -> Work {
    Box::new(move || {
        let name = spot.last()?;
        // SAFETY: the name lives through the call.
        made(unsafe { libc::mkdirat(spot.folder.as_raw_fd(), name.as_ptr(), mode) }.into())
    })
}

pub(super) fn make_node(spot: Spot, mode: u32, device: u32) -> Work {
    Box::new(move || {
        let name = spot.last()?;
        // SAFETY: the name lives through the call.
        made(unsafe { libc::syscall(libc::SYS_mknodat, spot.folder.as_raw_fd(), name.as_ptr(), mode, device) })
    })
}

/// A path to what is held open.
fn shown(held: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}

fn made(result: c_long) -> io::Result<Done> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Done::Made) }
}
