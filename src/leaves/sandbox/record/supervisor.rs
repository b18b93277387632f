//! Answers the calls of a command, one after the other: what each is about to change is saved first.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};

use super::calls::{self, Deed, Flags, Place};
use super::guarding::{Guarding, Moves};
use super::notify::{Answer, Listener, Seen, Spot, Waiting};
use super::recorder::{Loss, Recorder, Stop};
use crate::sandbox::{Before, Denied, Effect, Saved};

/// `renameat2` exchanges its two.
const EXCHANGE: u64 = 2;
/// `openat2` starts from the folder as if it were the root.
const IN_ROOT: u64 = 0x10;
/// `renameat2` replaces nothing.
const NO_REPLACE: u64 = 1;
/// `unlinkat` removes a folder.
const REMOVE_FOLDER: u64 = 0x200;

/// Hears of a command while it runs.
pub trait Watcher: Send + 'static {
    /// What was refused, and what cannot be undone, before it happens.
    fn tell(&mut self, effect: Effect);

    /// There is no room to save what is about to be lost there; the call waits for the answer.
    fn full(&mut self, path: &Path) -> Full;
}

/// What happens once there is no room to save anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The call fails, as on a full disk.
    Refuse,
    /// The command continues, and nothing more of it is recorded.
    Unrecorded,
}

/// Serves until nobody is left who could make a call. What is guarded is not changed: such a call fails. Whatever happens
/// here, calls are answered: once the listener is closed, each that would have been held fails, whatever it is for. Where
/// recording cannot begin, or its code fails, the command continues without it, and the manifest tells.
///
/// # Errors
/// What the kernel says of the listener.
pub(super) fn serve(
    listener: OwnedFd,
    mut recorder: Option<Recorder>,
    guarding: Guarding,
    watcher: &mut dyn Watcher,
) -> io::Result<()> {
    let mut refused = false;
    if let Some(begun) = &mut recorder
        && let Err(error) = begun.began()
    {
        refused = matches!(Stop::from(error), Stop::Full) && watcher.full(begun.store()) == Full::Refuse;
        recorder = None;
    }
    let listener = Listener::new(listener);
    let mut supervisor = Supervisor { listener: &listener, recorder, guarding, watcher };
    while let Some(waiting) = listener.next()? {
        let answer = match refused {
            true => Answer::Refuse(libc::ENOSPC),
            false => catch_unwind(AssertUnwindSafe(|| supervisor.judge(&waiting))).unwrap_or_else(|_| {
                supervisor.recorder = None;
                // What guards does not give way.
                if supervisor.guarding.is_empty() { Answer::Continue } else { Answer::Refuse(libc::EIO) }
            }),
        };
        listener.answer(&waiting, answer);
    }
    Ok(())
}

struct Supervisor<'a> {
    listener: &'a Listener,
    recorder: Option<Recorder>,
    guarding: Guarding,
    watcher: &'a mut dyn Watcher,
}

/// How a call ends before it has begun.
enum Halt {
    /// It cannot succeed, or changes nothing: there is nothing to save.
    Idle,
    /// It is answered as if the kernel did not know it.
    Missing,
    /// It must not be made.
    Refused(Denied),
    Stopped(PathBuf, Stop),
    /// Nobody knows what it does.
    Blind(io::Error),
}

impl Halt {
    fn refused(path: PathBuf) -> Halt {
        Halt::Refused(Denied::Write(path))
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        Halt::Blind(error)
    }
}

impl Supervisor<'_> {
    fn judge(&mut self, waiting: &Waiting) -> Answer {
        match self.save(waiting) {
            Ok(()) | Err(Halt::Idle) => Answer::Continue,
            Err(Halt::Missing) => Answer::Refuse(libc::ENOSYS),
            Err(Halt::Refused(what)) => {
                self.watcher.tell(Effect::Denied { what });
                Answer::Refuse(libc::EACCES)
            }
            Err(Halt::Stopped(path, stop)) => self.stop(path, stop),
            Err(Halt::Blind(error)) => {
                // The program may have been killed while it was looked at: then nothing happens anymore.
                let waits = self.listener.waits(waiting);
                let binds = calls::deed(waiting.arch, waiting.number) == Some(Deed::Bind);
                match waits && !self.guarding.is_empty() && !binds {
                    // It might be anything that is guarded.
                    true => {
                        let what = "a change by a program that hides what it does".to_owned();
                        self.watcher.tell(Effect::Denied { what: Denied::Call(what) });
                        Answer::Refuse(libc::EACCES)
                    }
                    false if waits => self.blind(&error),
                    false => Answer::Continue,
                }
            }
        }
    }

    /// What would be lost is not saved: rather than to lose it in silence, the call fails, or somebody agrees to it.
    fn stop(&mut self, path: PathBuf, stop: Stop) -> Answer {
        let errno = match stop {
            Stop::Full if self.watcher.full(&path) == Full::Unrecorded => {
                self.miss(format!("{} and everything after it: the disk was full", path.display()));
                self.recorder = None;
                return Answer::Continue;
            }
            Stop::Full => libc::ENOSPC,
            Stop::Io(error) => {
                self.miss(format!(
                    "{}: its old content could not be saved ({error}): it was not changed",
                    path.display()
                ));
                error.raw_os_error().unwrap_or(libc::EIO)
            }
        };
        Answer::Refuse(errno)
    }

    fn blind(&mut self, error: &dyn fmt::Display) -> Answer {
        self.miss(format!("a program hid what it changed ({error})"));
        Answer::Continue
    }

    fn miss(&mut self, why: String) {
        // A manifest that takes no more lines is met by the next path at the latest.
        let _ = self.recorder.as_mut().map(|recorder| recorder.missed(why));
    }

    fn save(&mut self, waiting: &Waiting) -> Result<(), Halt> {
        let Some(deed) = calls::deed(waiting.arch, waiting.number) else { return Err(Halt::Idle) };
        let arguments = &waiting.arguments;
        match deed {
            Deed::Open { place, flags } => self.open(waiting, place, flags),
            Deed::Truncate(place) => {
                let spot = self.spot(waiting, place)?;
                self.change(&spot, Loss::Content)
            }
            Deed::Remove(place) if place.folder.is_some() && arguments[2] & REMOVE_FOLDER != 0 => {
                self.remove(waiting, place, true)
            }
            Deed::Remove(place) => self.remove(waiting, place, false),
            Deed::RemoveFolder(place) => self.remove(waiting, place, true),
            Deed::Rename { from, to, flags } => {
                let (from, to) = (self.spot(waiting, from)?, self.spot(waiting, to)?);
                self.rename(&from, &to, flags.map_or(0, |at| arguments[at]))
            }
            Deed::Link { from, to } => {
                let to = self.spot(waiting, to)?;
                if found(&to)?.is_some() {
                    return Err(Halt::Idle);
                }
                // A write through the new name changes the old one, too. A file without a name has none to change.
                if let Some(from) = waiting.program.spot(from, arguments)?
                    && let Some(seen) = found(&from)?
                {
                    self.touch(&from, &seen, Loss::Name)?;
                    if seen.kind() == FileType::Socket {
                        return self.note_born(&to.path);
                    }
                }
                self.born(&to.path)
            }
            Deed::Make(place) | Deed::Lead(place) => {
                let spot = self.spot(waiting, place)?;
                if found(&spot)?.is_some() {
                    return Err(Halt::Idle);
                }
                if matches!(deed, Deed::Lead(_)) {
                    self.guarding.led(&spot.path).map_err(Halt::refused)?;
                }
                self.born(&spot.path)
            }
            Deed::Alter(place) => {
                let spot = self.spot(waiting, place)?;
                self.change(&spot, Loss::Attributes)
            }
            Deed::AlterOpen(at) => {
                let spot = waiting.program.open_spot(arguments[at] as i32)?.ok_or(Halt::Idle)?;
                self.change(&spot, Loss::Attributes)
            }
            Deed::Command => {
                let spot = waiting.program.open_spot(arguments[0] as i32)?.ok_or(Halt::Idle)?;
                self.change(&spot, Loss::Attributes)?;
                self.miss(format!("flags of {} (as by chattr)", spot.path.display()));
                Ok(())
            }
            Deed::Kernel if !self.guarding.is_empty() => {
                Err(Halt::Refused(Denied::Call("having the kernel write to a file".to_owned())))
            }
            Deed::Kernel => {
                self.miss("it had the kernel write to a file by itself".to_owned());
                Ok(())
            }
            Deed::Bind => self.bind(waiting),
            // What is mounted elsewhere goes by another path there.
            Deed::Mount if !self.guarding.is_empty() => {
                Err(Halt::Refused(Denied::Call("mounting a file system".to_owned())))
            }
            Deed::Mount => {
                self.miss("it mounted something, and what it changed there was not seen".to_owned());
                Ok(())
            }
        }
    }

    /// What a call names, once it is certain that the call still waits.
    fn spot(&self, waiting: &Waiting, place: Place) -> Result<Spot, Halt> {
        let spot = waiting.program.spot(place, &waiting.arguments)?.ok_or(Halt::Idle)?;
        if self.listener.waits(waiting) { Ok(spot) } else { Err(Halt::Idle) }
    }

    fn open(&mut self, waiting: &Waiting, place: Place, flags: Flags) -> Result<(), Halt> {
        let flags = match flags {
            Flags::In(at) => waiting.arguments[at] as u32,
            Flags::Pointed(at) => {
                let mut how = [0; 24];
                let read = waiting.program.read(waiting.arguments[at], &mut how)?;
                let [flags, _, resolve] =
                    [0, 8, 16].map(|at| how[at..].first_chunk().map_or(0, |part| u64::from_ne_bytes(*part)));
                // Another root than the program's: programs do without where the kernel has no such call.
                if read < how.len() || resolve & IN_ROOT != 0 {
                    return Err(Halt::Missing);
                }
                flags as u32
            }
            Flags::Creat => (OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC).bits(),
        };
        let flags = OFlags::from_bits_retain(flags);
        let creates = flags.contains(OFlags::CREATE);
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
        if flags.contains(OFlags::PATH) || flags.contains(OFlags::TMPFILE) || !(creates || writes) {
            return Err(Halt::Idle);
        }
        let only_new = creates && flags.contains(OFlags::EXCL);
        let follow = !only_new && !flags.contains(OFlags::NOFOLLOW);
        let spot = waiting.program.spot_followed(place, &waiting.arguments, follow)?.ok_or(Halt::Idle)?;
        if !self.listener.waits(waiting) {
            return Err(Halt::Idle);
        }
        match found(&spot)? {
            None if creates => self.born(&spot.path),
            Some(seen) if seen.is_file() && writes && !only_new => self.touch(&spot, &seen, Loss::Content),
            // A terminal, a pipe, a folder, a link that is not followed, or nothing at all.
            _ => Err(Halt::Idle),
        }
    }

    fn remove(&mut self, waiting: &Waiting, place: Place, folder: bool) -> Result<(), Halt> {
        let spot = self.spot(waiting, place)?;
        match found(&spot)? {
            Some(seen) if folder == seen.is_folder() => {
                self.touch(&spot, &seen, Loss::Name)?;
                self.guarding.removed(&spot.path);
                Ok(())
            }
            _ => Err(Halt::Idle),
        }
    }

    fn rename(&mut self, from: &Spot, to: &Spot, flags: u64) -> Result<(), Halt> {
        let Some(moved) = found(from)? else { return Err(Halt::Idle) };
        let there = found(to)?;
        let same = |seen: &Seen| seen.stamp.same_file(&moved.stamp);
        // Two names of one file: nothing happens.
        if there.as_ref().is_some_and(same) || there.is_some() && flags & NO_REPLACE != 0 {
            return Err(Halt::Idle);
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
            return Err(Halt::Idle);
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

    /// A socket with a path.
    fn bind(&mut self, waiting: &Waiting) -> Result<(), Halt> {
        let mut address = [0; 110];
        let length = usize::try_from(waiting.arguments[2]).unwrap_or(0).min(address.len());
        if length <= 2 {
            return Err(Halt::Idle);
        }
        waiting.program.read(waiting.arguments[1], &mut address[..length])?;
        let path = address[2..length].split(|byte| *byte == 0).next().unwrap_or_default();
        if i32::from(u16::from_ne_bytes([address[0], address[1]])) != libc::AF_UNIX || path.is_empty() {
            return Err(Halt::Idle);
        }
        let spot = waiting.program.spot_of(path)?.ok_or(Halt::Idle)?;
        match self.listener.waits(waiting) && found(&spot)?.is_none() {
            // Nobody runs or obeys a socket, such as ssh's in its folder.
            true => self.note_born(&spot.path),
            false => Err(Halt::Idle),
        }
    }

    fn change(&mut self, spot: &Spot, loss: Loss) -> Result<(), Halt> {
        let seen = found(spot)?.ok_or(Halt::Idle)?;
        match seen.kind() {
            FileType::RegularFile => self.touch(spot, &seen, loss),
            FileType::Directory if loss == Loss::Attributes => self.touch(spot, &seen, loss),
            _ => Err(Halt::Idle),
        }
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
    Ok(spot.seen()?)
}
