//! What each call of a command changes: whether that may be, what is saved of it before, and how it is made.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::caller;
use super::calls::{self, Change, Deed, Flags, Made, Place};
use super::guarding::Moves;
use super::hand::{self, By, Setting, Work};
use super::notify::{Inherited, Seen, Spot, Waiting};
use super::places::{self, Fault, Found};
use super::recorder::Loss;
use super::supervisor::{Deal, Halt, Supervisor};
use crate::sandbox::{Before, Denied, Effect, Saved};

/// `renameat2` exchanges its two.
const EXCHANGE: u64 = 2;
/// `renameat2` replaces nothing.
const NO_REPLACE: u64 = 1;
/// `unlinkat` removes a folder.
const REMOVE_FOLDER: u64 = 0x200;
/// The terminal that controls the process that opens it.
const OWN_TERMINAL: (u32, u32) = (5, 0);

impl Supervisor<'_> {
    /// Whether a call is made, and how. What it changes is saved.
    pub(super) fn decide(&mut self, waiting: &Waiting) -> Result<Deal, Halt> {
        let Some(deed) = calls::deed(waiting.arch, waiting.number) else { return Err(Halt::Idle) };
        let arguments = &waiting.arguments;
        let entry = |own: &Self, place| own.find(waiting, |program| program.entry(place, arguments));
        let object = |own: &Self, place| own.find(waiting, |program| program.object(place, arguments));
        let opened = |own: &Self, at: usize| own.find(waiting, |program| program.open(arguments[at] as i32));
        let guards = !self.guarding.is_empty();
        Ok(match deed {
            Deed::Open { place, flags } => return self.open(waiting, place, flags),
            Deed::Truncate(place) => {
                let setting = Setting::Length(waiting.length(place.path + 1)?);
                let deal = self.change(object(self, place)?, Loss::Content, setting)?;
                return Ok(Deal { waits: &[libc::EWOULDBLOCK], ..deal });
            }
            Deed::Remove(place) if place.folder.is_some() => {
                let folder = arguments[2] & REMOVE_FOLDER != 0;
                self.remove(entry(self, place)?, folder, arguments[2] as i32)?.into()
            }
            Deed::Remove(place) => self.remove(entry(self, place)?, false, 0)?.into(),
            Deed::RemoveFolder(place) => self.remove(entry(self, place)?, true, libc::AT_REMOVEDIR)?.into(),
            Deed::Rename { from, to, flags } => {
                let (from, to) = (entry(self, from)?, entry(self, to)?);
                let flags = flags.map_or(0, |at| arguments[at]);
                if !from.is_dots() && !to.is_dots() {
                    self.rename(&from, &to, flags)?;
                }
                hand::rename(from, to, flags as u32).into()
            }
            Deed::Link { from, to } => {
                let from = object(self, from)?;
                let seen = self.source(&from)?;
                self.link(from, seen, entry(self, to)?)?.into()
            }
            Deed::Make(place, made) => {
                let spot = entry(self, place)?;
                self.birth(&spot)?;
                let mode = arguments[place.path + 1] as u32;
                let work = match made {
                    Made::Folder => hand::make_folder(spot, mode),
                    Made::Node => hand::make_node(spot, mode, arguments[place.path + 2] as u32),
                };
                Deal { makes: true, ..work.into() }
            }
            Deed::Lead(place) => {
                let spot = entry(self, place)?;
                let target = CString::new(waiting.program.text(arguments[0])?).map_err(io::Error::other)?;
                if found(&spot)?.is_none() {
                    self.guarding.led(&spot.path).map_err(Halt::refused)?;
                }
                self.birth(&spot)?;
                Deal { makes: true, ..hand::lead(target, spot).into() }
            }
            Deed::Alter(place, change) => {
                let setting = self.setting(waiting, change)?;
                return self.change(object(self, place)?, Loss::Attributes, setting);
            }
            Deed::AlterOpen(at, change) => {
                let setting = self.setting(waiting, change)?;
                return self.change(opened(self, at)?, Loss::Attributes, setting);
            }
            Deed::Command if calls::is_of_trees(arguments[1] as u32) => {
                if guards {
                    return Err(Halt::Refused(Denied::Call("a command to the file system itself (ioctl)".to_owned())));
                }
                self.miss("it gave the file system itself a command, such as for a subvolume".to_owned());
                return Err(Halt::Idle);
            }
            Deed::Command => {
                let setting = waiting.flags()?;
                let what = opened(self, 0)?;
                let told = match &what {
                    Found::Named(spot) => Some(format!("flags of {} (as by chattr)", spot.path.display())),
                    Found::Unnamed(_) => None,
                };
                let deal = self.change(what, Loss::Attributes, setting)?;
                if let Some(told) = told {
                    self.miss(told);
                }
                deal
            }
            Deed::Kernel if guards => {
                return Err(Halt::Refused(Denied::Call("having the kernel write to a file".to_owned())));
            }
            Deed::Kernel => {
                self.miss("it had the kernel write to a file by itself".to_owned());
                return Err(Halt::Idle);
            }
            Deed::Bind => return self.bind(waiting).and(Err(Halt::Idle)),
            // What is mounted elsewhere goes by another path there.
            Deed::Mount if guards => return Err(Halt::Refused(Denied::Call("mounting a file system".to_owned()))),
            Deed::Mount => {
                self.miss("it mounted something, and what it changed there was not seen".to_owned());
                return Err(Halt::Idle);
            }
            // Its calls would be made with the rights that it gives up: programs do without where the kernel has no such call.
            Deed::Restrict if guards && self.hand.is_some() => return Err(Halt::Fails(Errno::OPNOTSUPP)),
            Deed::Restrict => {
                self.hand = None;
                return Err(Halt::Idle);
            }
        })
    }

    fn open(&mut self, waiting: &Waiting, place: Place, flags: Flags) -> Result<Deal, Halt> {
        let (flags, mode) = match flags {
            Flags::In(at) => (waiting.arguments[at] as u32, waiting.arguments[at + 1] as u32),
            // Its flags are in memory, where they can be changed.
            Flags::Pointed(_) if self.hand.is_some() => return Err(Halt::Missing),
            Flags::Pointed(at) => match waiting.how(waiting.arguments[at])? {
                [flags, mode, 0] => (flags as u32, mode as u32),
                // In another root than the program's, or less of it.
                _ => return Err(Halt::Missing),
            },
            Flags::Creat => ((OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC).bits(), waiting.arguments[1] as u32),
        };
        let flags = OFlags::from_bits_retain(flags);
        let creates = flags.contains(OFlags::CREATE);
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
        if flags.contains(OFlags::PATH) || flags.contains(OFlags::TMPFILE) || !(creates || writes) {
            return Err(Halt::Idle);
        }
        let only_new = creates && flags.contains(OFlags::EXCL);
        let follow = !only_new && !flags.contains(OFlags::NOFOLLOW);
        let inherited = if flags.contains(OFlags::CLOEXEC) { Inherited::No } else { Inherited::Yes };
        let mut waits: &[i32] = if flags.contains(OFlags::NONBLOCK) { &[] } else { &[libc::EWOULDBLOCK] };
        let mut by = By::Holding;
        let found = self.find(waiting, |program| program.object_followed(place, &waiting.arguments, follow))?;
        let spot = match found {
            Found::Named(spot) => spot,
            Found::Unnamed(_) if only_new => return Err(Halt::Fails(Errno::EXIST)),
            Found::Unnamed(held) => {
                self.unnamed(&held)?;
                if creates && Seen::open(&held)?.is_folder() {
                    return Err(Halt::Fails(Errno::ISDIR));
                }
                if places::is_of_processes(&held) {
                    return Err(Halt::Fails(Errno::ACCESS));
                }
                return Ok(Deal { waits, inherited, ..hand::open_again(held, flags).into() });
            }
        };
        let seen = self::found(&spot)?;
        let makes = creates && seen.is_none();
        // The kernel takes a number for it before it makes or empties the file.
        if (makes || flags.contains(OFlags::TRUNC)) && !caller::may_open_more(waiting.program.thread) {
            return Err(Halt::Fails(Errno::MFILE));
        }
        if creates && (spot.slash || !only_new && seen.as_ref().is_some_and(Seen::is_folder)) {
            return Err(Halt::Fails(Errno::ISDIR));
        }
        if !follow {
            by = By::Name(OFlags::empty());
        } else if makes {
            // What is there by then is looked at again.
            (by, waits) = (By::Name(OFlags::EXCL), &[libc::EEXIST]);
        } else if creates && rustix::fs::fstat(&spot.folder).map_err(Halt::Fails)?.st_mode & libc::S_ISVTX != 0 {
            // In a folder that all share the kernel may refuse files of others.
            by = By::Name(OFlags::NOFOLLOW);
        }
        match &seen {
            None if creates => self.born(&spot.path)?,
            Some(seen) if seen.is_file() && writes && !only_new => self.touch(&spot, seen, Loss::Content)?,
            // A terminal, a pipe, a folder, a link that is not followed, or nothing at all.
            _ => {}
        }
        match seen {
            Some(seen) if seen.kind() == FileType::CharacterDevice && seen.device == OWN_TERMINAL => {
                let path = own_terminal(waiting).ok_or(Halt::Fails(Errno::NXIO))?;
                let folder = rustix::fs::open("/dev", OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty());
                let (folder, name) = (folder.map_err(Halt::Fails)?, path.clone().into());
                let spot = Spot { folder, name, path: Path::new("/dev").join(path), slash: false };
                return Ok(Deal { waits, inherited, ..hand::open(spot, By::Holding, flags, 0).into() });
            }
            Some(seen) if seen.kind() == FileType::Fifo && !waits.is_empty() => {
                waits = &[libc::EWOULDBLOCK, libc::ENXIO]
            }
            Some(seen) if seen.is_file() => may_open(waiting, &spot, &seen)?,
            _ => {}
        }
        Ok(Deal { makes, waits, inherited, ..hand::open(spot, by, flags, mode).into() })
    }

    fn remove(&mut self, spot: Spot, folder: bool, flags: i32) -> Result<Work, Halt> {
        match if spot.is_dots() { None } else { found(&spot)? } {
            Some(seen) if folder == seen.is_folder() => {
                self.touch(&spot, &seen, Loss::Name)?;
                self.guarding.removed(&spot.path);
            }
            _ => {}
        }
        Ok(hand::remove(spot, flags))
    }

    fn rename(&mut self, from: &Spot, to: &Spot, flags: u64) -> Result<(), Halt> {
        let Some(moved) = found(from)? else { return Ok(()) };
        let there = found(to)?;
        let same = |seen: &Seen| seen.stamp.same_file(&moved.stamp);
        // Two names of one file: nothing happens.
        if there.as_ref().is_some_and(same) || there.is_some() && flags & NO_REPLACE != 0 {
            return Ok(());
        }
        let replaced = there.as_ref().map(|there| Moves { spot: to, kind: there.kind() });
        let (moves, swap) = (Moves { spot: from, kind: moved.kind() }, flags & EXCHANGE != 0);
        self.guarding.may_move(moves, to, replaced.is_some()).map_err(Halt::refused)?;
        if let Some(replaced) = replaced.filter(|_| swap) {
            self.guarding.may_move(replaced, from, true).map_err(Halt::refused)?;
        }
        // From one file system to another nothing is moved: programs copy then. Folders tell, since what they hold may lie in
        // another layer.
        let device = |spot: &Spot| rustix::fs::fstat(&spot.folder).map_err(io::Error::from).map(|data| data.st_dev);
        if device(from)? != device(to)? {
            return Ok(());
        }
        self.guarding.moved(&from.path, &to.path, replaced.map(|there| there.kind), swap);
        if let Some(there) = &there {
            self.keep(to, there, Loss::Name)?;
        }
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let stopped = |stop| Halt::Stopped(from.path.clone(), stop);
        recorder.moved(from, &moved, &to.path).map_err(stopped)?;
        match there.filter(|_| flags & EXCHANGE != 0) {
            Some(there) => recorder.moved(to, &there, &from.path).map_err(stopped),
            None => Ok(()),
        }
    }

    /// What is to get another name; none for what has no name yet.
    fn source(&self, from: &Found) -> Result<Option<Seen>, Halt> {
        match from {
            Found::Named(spot) => Ok(Some(found(spot)?.ok_or(Halt::Fails(Errno::NOENT))?)),
            Found::Unnamed(_) => Ok(None),
        }
    }

    fn link(&mut self, from: Found, seen: Option<Seen>, to: Spot) -> Result<Work, Halt> {
        if to.is_dots() || found(&to)?.is_some() {
            return Ok(hand::link(from, to));
        }
        // A write through the new name changes the old one, too. A file without a name has none to change.
        match (&from, seen) {
            (Found::Named(spot), Some(seen)) => {
                let loss = self.recorder.as_ref().map_or(Loss::Name, |recorder| recorder.loss_of_name(&to.path));
                self.touch(spot, &seen, loss)?;
                if seen.kind() == FileType::Socket {
                    self.note_born(&to.path)?;
                    return Ok(hand::link(from, to));
                }
            }
            (Found::Unnamed(held), _) => self.unnamed(held)?,
            _ => {}
        }
        self.born(&to.path)?;
        Ok(hand::link(from, to))
    }

    /// A socket with a path.
    fn bind(&mut self, waiting: &Waiting) -> Result<(), Halt> {
        let mut address = [0; 110];
        let length = usize::try_from(waiting.arguments[2]).unwrap_or(0).min(address.len());
        if length <= 2 {
            return Ok(());
        }
        waiting.program.read(waiting.arguments[1], &mut address[..length])?;
        let path = address[2..length].split(|byte| *byte == 0).next().unwrap_or_default();
        if i32::from(u16::from_ne_bytes([address[0], address[1]])) != libc::AF_UNIX || path.is_empty() {
            return Ok(());
        }
        let spot = match waiting.program.entry_here(path) {
            Err(Fault::Fails(_)) => return Ok(()),
            spot => spot?,
        };
        match self.listener.waits(waiting) && !spot.is_dots() && found(&spot)?.is_none() {
            // Nobody runs or obeys a socket, such as ssh's in its folder.
            true => self.note_born(&spot.path),
            false => Ok(()),
        }
    }

    /// What to set, as the call says it.
    fn setting(&self, waiting: &Waiting, change: Change) -> Result<Setting, Halt> {
        let foreign = || self.hand.is_some() && !caller::shares(waiting.program.thread, "user");
        match change {
            // The same numbers mean other users in there, and attributes may hold some.
            Change::Owner(_) | Change::OwnerShort(_) | Change::Attribute(_) if foreign() => {
                Err(Halt::Beyond("a program with users of its own"))
            }
            Change::Newer if self.hand.is_some() && !self.guarding.is_empty() => Err(Halt::Missing),
            change => waiting.setting(change),
        }
    }

    fn change(&mut self, what: Found, loss: Loss, setting: Setting) -> Result<Deal, Halt> {
        match &what {
            Found::Unnamed(held) => self.unnamed(held)?,
            Found::Named(spot) => {
                if let Some(seen) = found(spot)? {
                    if spot.slash && !seen.is_folder() {
                        return Err(Halt::Fails(Errno::NOTDIR));
                    }
                    let counts = match seen.kind() {
                        FileType::RegularFile => true,
                        FileType::Directory => loss == Loss::Attributes,
                        _ => false,
                    };
                    if counts {
                        self.touch(spot, &seen, loss)?;
                    }
                }
            }
        }
        Ok(hand::set(what, setting).into())
    }

    /// What has no name that is known is changed, or gets one.
    fn unnamed(&mut self, held: &OwnedFd) -> Result<(), Halt> {
        let seen = Seen::open(held)?;
        if !seen.is_file() || seen.stamp.links == 0 {
            return Ok(());
        }
        // Such as one that was made without a name, and got one.
        if !self.guarding.is_empty() && !self.guarding.is_new(seen.stamp.born) {
            return Err(Halt::Beyond("a change of a file whose name cannot be told"));
        }
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        recorder.part(&seen).map_err(|stop| Halt::Stopped(PathBuf::from("a file without a name"), stop))
    }

    /// Something is made if nothing is there.
    fn birth(&mut self, spot: &Spot) -> Result<(), Halt> {
        if spot.is_dots() || found(spot)?.is_some() { Ok(()) } else { self.born(&spot.path) }
    }

    fn born(&mut self, path: &Path) -> Result<(), Halt> {
        self.guarding.made(path).map_err(Halt::refused)?;
        self.note_born(path)
    }

    fn note_born(&mut self, path: &Path) -> Result<(), Halt> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        recorder.born(path).map_err(|stop| Halt::Stopped(path.to_owned(), stop))
    }

    fn touch(&mut self, spot: &Spot, seen: &Seen, loss: Loss) -> Result<(), Halt> {
        if seen.kind() != FileType::Socket {
            self.guarding.changed(&spot.path, loss).map_err(Halt::refused)?;
        }
        self.keep(spot, seen, loss)
    }

    /// Saves what is about to be lost.
    fn keep(&mut self, spot: &Spot, seen: &Seen, loss: Loss) -> Result<(), Halt> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let before = recorder.touch(spot, seen, loss).map_err(|stop| Halt::Stopped(spot.path.clone(), stop))?;
        if let Some(before @ Before::File { saved: Saved::Lost(_), .. }) = before {
            self.watcher.tell(Effect::Touched { path: spot.path.clone(), before });
        }
        Ok(())
    }
}

/// What is there.
fn found(spot: &Spot) -> Result<Option<Seen>, Halt> {
    spot.seen().map_err(|error| match Errno::from_io_error(&error) {
        Some(errno) => Halt::Fails(errno),
        None => Halt::Blind(error),
    })
}

/// Files in which the kernel shows a process are opened for those who may trace it, and we may more than the program: it gets
/// those of its own command. Others show what the one who opens them lives in.
fn may_open(waiting: &Waiting, spot: &Spot, seen: &Seen) -> Result<(), Halt> {
    if rustix::fs::major(seen.stamp.dev) != 0 || !places::is_of_processes(&spot.folder) {
        return Ok(());
    }
    let thread = waiting.program.thread;
    match caller::process_of(&spot.path) {
        Some(process) if caller::is_below_us(process) => Ok(()),
        None if ["net", "ipc", "uts", "user"].iter().all(|kind| caller::shares(thread, kind)) => Ok(()),
        _ => Err(Halt::Fails(Errno::ACCESS)),
    }
}

/// Where the terminal is that controls a program, below the folder of devices.
fn own_terminal(waiting: &Waiting) -> Option<String> {
    match caller::terminal(waiting.program.thread)? {
        (major @ 136..=143, minor) => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        (4, minor @ 0..64) => Some(format!("tty{minor}")),
        _ => None,
    }
}
