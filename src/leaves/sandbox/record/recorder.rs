//! What was saved of a command so far, and how the next path is saved: once for each path, and once for each file, whatever
//! names it has.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::leaving::Leaving;
use super::manifest::{LIVE, Left, Line, MANIFEST, Number, Stamp};
use super::notify::{Seen, Spot};
use crate::sandbox::{Before, Record, Saved};
use crate::stdx::fs::private_dir;
use crate::stdx::sparse;

/// Most paths that are recorded when a folder is moved.
const MOST_MOVED: usize = 500_000;

/// How a file is about to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// Its content may be overwritten: only a copy keeps it.
    Content,
    /// It loses this name, and its content stays what it is: a second name keeps it.
    Name,
    /// Its mode, owner, times.
    Attributes,
}

/// Why a call must not continue.
#[derive(Debug)]
pub(super) enum Stop {
    /// There is no room to save what would be lost.
    Full,
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Stop::Full,
            _ => Stop::Io(error),
        }
    }
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Stop {
        io::Error::from(error).into()
    }
}

/// What is known of a path that was touched.
#[derive(Debug, Clone)]
enum Known {
    /// As it was before, but for its content.
    Attributes(Before),
    Wholly,
}

/// Where the content of a file, as it was before the command, is kept.
#[derive(Debug)]
struct Kept {
    saved: Saved,
    /// It is the file itself, under a second name: a copy must be made before anybody writes to it.
    linked: bool,
    /// Its line says that its times may not be those of its stamp.
    retimed: bool,
    /// The path that was touched, and what its line says.
    path: PathBuf,
    mode: u32,
    /// Before anything was written to it.
    stamp: Stamp,
}

/// Saves what one command changes.
#[derive(Debug)]
pub(super) struct Recorder {
    record: Record,
    store: OwnedFd,
    manifest: File,
    /// Its last line may be half written.
    torn: bool,
    paths: HashMap<PathBuf, Known>,
    files: HashMap<Number, Kept>,
    /// Permission bits of files before their first change, under whatever name.
    modes: HashMap<Number, u32>,
    count: u64,
    /// Bytes that were copied.
    copied: u64,
    missed: Vec<String>,
    leaving: Leaving,
}

impl Recorder {
    /// Makes the store.
    ///
    /// # Errors
    /// What the file system says: nothing can be recorded then.
    pub(super) fn begin(record: &Record) -> io::Result<Recorder> {
        private_dir(&record.store)?;
        let mut record = record.clone();
        // Paths are compared as the kernel tells them.
        for path in record.skip.iter_mut().chain(&mut record.within) {
            *path = path.canonicalize().unwrap_or_else(|_| path.clone());
        }
        record.store = record.store.canonicalize()?;
        record.skip.push(record.store.clone());
        let leaving = Leaving::new(&record.store);
        let manifest = File::options().append(true).create(true).open(record.store.join(MANIFEST))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let store = rustix::fs::open(&record.store, flags, Mode::empty())?;
        Ok(Recorder {
            record,
            store,
            manifest,
            torn: false,
            paths: HashMap::new(),
            files: HashMap::new(),
            modes: HashMap::new(),
            count: 0,
            copied: 0,
            missed: Vec::new(),
            leaving,
        })
    }

    /// Where it is kept.
    pub(super) fn store(&self) -> &Path {
        &self.record.store
    }

    /// From now on everything is seen.
    pub(super) fn began(&mut self) -> io::Result<()> {
        self.write(&Line::Began { at: now() })
    }

    /// Whether nothing is recorded there.
    pub(super) fn skips(&self, path: &Path) -> bool {
        let depth = |folders: &[PathBuf]| {
            let inside = folders.iter().filter(|folder| path.starts_with(folder));
            inside.map(|folder| folder.components().count()).max()
        };
        depth(&self.record.skip).is_some_and(|skip| depth(&self.record.within).is_none_or(|within| within < skip))
    }

    /// Notes something that cannot be undone, once.
    pub(super) fn missed(&mut self, why: String) -> io::Result<()> {
        if self.missed.contains(&why) {
            return Ok(());
        }
        self.missed.push(why.clone());
        self.write(&Line::Missed { why })
    }

    /// Saves what is at a path. What cannot be saved is told.
    pub(super) fn touch(&mut self, spot: &Spot, seen: &Seen, loss: Loss) -> Result<Option<Before>, Stop> {
        let skipped = self.skips(&spot.path);
        if !skipped {
            self.again(&spot.path, Some(seen))?;
        }
        // A file that is kept under a second name may have been moved to where nothing is recorded.
        if seen.is_file() {
            match loss {
                Loss::Content => self.part(seen)?,
                Loss::Attributes => self.retime(seen)?,
                Loss::Name => {}
            }
        }
        if skipped {
            return Ok(None);
        }
        let known = match self.paths.get(&spot.path) {
            Some(Known::Wholly) => return Ok(None),
            Some(Known::Attributes(_)) if loss == Loss::Attributes => return Ok(None),
            Some(Known::Attributes(before)) => Some(before.clone()),
            None => None,
        };
        // The mode is the one from before its first change.
        let mode = match self.modes.get(&seen.stamp.number()).copied() {
            Some(mode) => mode,
            None if seen.is_file() && loss == Loss::Attributes => {
                self.modes.insert(seen.stamp.number(), seen.mode());
                seen.mode()
            }
            None => seen.mode(),
        };
        let before = match seen.kind() {
            FileType::RegularFile => {
                let saved =
                    if loss == Loss::Attributes { Saved::Untouched } else { self.save(spot, seen, mode, loss)? };
                Before::File { mode, size: seen.stamp.size, saved }
            }
            FileType::Symlink => Before::Link { target: spot.target()? },
            FileType::Directory => Before::Folder { mode },
            _ => Before::Special,
        };
        let before = match (before, known) {
            (before @ Before::File { .. }, Some(Before::File { .. })) | (before, None) => before,
            (_, Some(known)) => known,
        };
        // Of a file that was written under another of its names it is the one from before.
        let known = self.files.get(&seen.stamp.number()).map(|kept| kept.stamp);
        let stamp = Stamp { mode: seen.stamp.mode, ..known.unwrap_or(seen.stamp) };
        self.note(&spot.path, before.clone(), Some(stamp))?;
        let whole = loss != Loss::Attributes;
        self.paths.insert(spot.path.clone(), if whole { Known::Wholly } else { Known::Attributes(before.clone()) });
        Ok(Some(before))
    }

    /// What a file loses that gets another name: where nothing is recorded, a later command may write to it unseen.
    pub(super) fn loss_of_name(&self, to: &Path) -> Loss {
        if self.skips(to) { Loss::Content } else { Loss::Name }
    }

    /// Notes that nothing was at a path that is about to be created.
    pub(super) fn born(&mut self, path: &Path) -> Result<(), Stop> {
        if self.skips(path) {
            return Ok(());
        }
        self.again(path, None)?;
        if self.paths.contains_key(path) {
            return Ok(());
        }
        self.note(path, Before::Absent, None)?;
        self.paths.insert(path.to_owned(), Known::Wholly);
        Ok(())
    }

    /// A path that is about to be changed. What others have made of it since the command left it is theirs, and is saved as if
    /// the command had never touched it.
    fn again(&mut self, path: &Path, seen: Option<&Seen>) -> Result<(), Stop> {
        let changed = self.leaving.touched(path, seen);
        for (path, left) in changed {
            self.leave(&path, left)?;
            self.paths.remove(&path);
            if let Some(seen) = seen.filter(|seen| seen.is_file()) {
                self.part(seen)?;
                self.files.remove(&seen.stamp.number());
                self.modes.remove(&seen.stamp.number());
            }
        }
        Ok(())
    }

    fn leave(&mut self, path: &Path, Left { at, is, stamp }: Left) -> io::Result<()> {
        self.write(&Line::Left { at, path: path.to_owned(), is, stamp })
    }

    /// How long until `look` has something to do.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.leaving.pause()
    }

    /// Looks at what the command has left so far, now and then.
    pub(super) fn look(&mut self) {
        self.leaving.look(now());
    }

    /// The command has ended. Where nobody closes its record now, what it left is noted: others may change it until somebody
    /// does.
    pub(super) fn over(&mut self, abandoned: bool) -> io::Result<()> {
        for (path, left) in self.leaving.over(abandoned, now()) {
            self.leave(&path, left)?;
        }
        self.write(&Line::Ended { at: now() })
    }

    /// Saves what is about to be moved, a folder with everything below it, and notes what is born where it goes.
    pub(super) fn moved(&mut self, from: &Spot, seen: &Seen, to: &Path) -> Result<(), Stop> {
        let mut left = MOST_MOVED;
        self.moved_below(from, seen, to, &mut left)
    }

    fn moved_below(&mut self, from: &Spot, seen: &Seen, to: &Path, left: &mut usize) -> Result<(), Stop> {
        if *left == 0 {
            let why = format!("{} holds more than {MOST_MOVED} files, and was moved", from.path.display());
            return Ok(self.missed(why)?);
        }
        *left -= 1;
        self.touch(from, seen, self.loss_of_name(to))?;
        // What is there already is exchanged, or keeps this call from happening: nobody makes it.
        if fs::symlink_metadata(to).is_err() {
            self.born(to)?;
        }
        if !seen.is_folder() {
            return Ok(());
        }
        let folder = match from.folder() {
            Ok(folder) => folder,
            Err(error) => return Ok(self.missed(format!("{} cannot be read: {error}", from.path.display()))?),
        };
        let names: Vec<_> = rustix::fs::Dir::read_from(&folder)?.collect::<Result<_, _>>()?;
        for entry in names {
            let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let below =
                Spot { folder: folder.try_clone()?, name: name.to_owned(), path: from.path.join(name), slash: false };
            if let Some(seen) = below.seen()? {
                self.moved_below(&below, &seen, &to.join(name), left)?;
            }
        }
        Ok(())
    }

    /// Before somebody writes to a file that is kept under a second name: from now on it is kept as a copy.
    pub(super) fn part(&mut self, seen: &Seen) -> Result<(), Stop> {
        let key = seen.stamp.number();
        self.leaving.stirred(&seen.stamp);
        let Some(kept) = self.files.get(&key).filter(|kept| kept.linked) else { return Ok(()) };
        let Saved::As(name) = kept.saved.clone() else { return Ok(()) };
        let (path, mode, kept) = (kept.path.clone(), kept.mode, kept.stamp);
        let copy = format!("{name}~");
        let saved = match self.readable(&self.store, name.as_ref()) {
            Ok(linked) => self.copy(&linked, seen, &copy)?.map_or_else(Saved::Lost, |()| Saved::As(name.clone())),
            Err(why) => Saved::Lost(why),
        };
        match &saved {
            Saved::Lost(_) => {
                let before = Before::File { mode, size: kept.size, saved: saved.clone() };
                self.note(&path, before, None)?;
            }
            _ => {
                // Other names that nobody mentions change with this one.
                let live = self.live(&name, mode, seen)?;
                rustix::fs::renameat(&self.store, &name, &self.store, &live)?;
                rustix::fs::renameat(&self.store, &copy, &self.store, &name)?;
            }
        }
        if let Some(kept) = self.files.get_mut(&key) {
            (kept.linked, kept.saved) = (false, saved);
        }
        Ok(())
    }

    /// Before somebody sets the times of a file that is kept under a second name: its line says so.
    fn retime(&mut self, seen: &Seen) -> Result<(), Stop> {
        let kept = self.files.get_mut(&seen.stamp.number()).filter(|kept| kept.linked && !kept.retimed);
        let Some(kept) = kept else { return Ok(()) };
        kept.retimed = true;
        let before = Before::File { mode: kept.mode, size: kept.stamp.size, saved: kept.saved.clone() };
        let path = kept.path.clone();
        Ok(self.note(&path, before, None)?)
    }

    /// Keeps the content of a file. `mode` is the one from before its first change.
    fn save(&mut self, spot: &Spot, seen: &Seen, mode: u32, loss: Loss) -> Result<Saved, Stop> {
        let key = seen.stamp.number();
        // Under another of its names.
        if let Some(kept) = self.files.get(&key) {
            return Ok(kept.saved.clone());
        }
        self.count += 1;
        let name = self.count.to_string();
        let linked = loss == Loss::Name
            && rustix::fs::linkat(&spot.folder, &spot.name, &self.store, &name, AtFlags::empty()).is_ok();
        if !linked {
            let file = match self.readable(&spot.folder, &spot.name) {
                Ok(file) => file,
                Err(why) => return Ok(Saved::Lost(why)),
            };
            if let Err(why) = self.copy(&file, seen, &name)? {
                return Ok(Saved::Lost(why));
            }
        }
        let path = spot.path.clone();
        if !linked && seen.stamp.links > 1 {
            let live = self.live(&name, mode, seen)?;
            if rustix::fs::linkat(&spot.folder, &spot.name, &self.store, &live, AtFlags::empty()).is_err() {
                self.missed(format!("other names (hard links) of {}", spot.path.display()))?;
            }
        }
        let saved = Saved::As(name);
        self.files.insert(key, Kept { saved: saved.clone(), linked, retimed: false, path, mode, stamp: seen.stamp });
        Ok(saved)
    }

    /// The name in the store under which a file itself stays, beside the copy of its content: what is written to it shows
    /// under all of its names, those included that nobody mentions. It counts as a path that is touched.
    fn live(&mut self, name: &str, mode: u32, seen: &Seen) -> io::Result<String> {
        let live = format!("{name}{LIVE}");
        let before = Before::File { mode, size: seen.stamp.size, saved: Saved::As(name.to_owned()) };
        let path = self.record.store.join(&live);
        self.note(&path, before, Some(seen.stamp))?;
        Ok(live)
    }

    /// Opens a file to copy it; the error is for people.
    fn readable(&self, folder: &OwnedFd, name: &OsStr) -> Result<File, String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(folder, name, flags, Mode::empty());
        opened.map(File::from).map_err(|error| format!("it could not be read: {}", io::Error::from(error)))
    }

    /// Copies a file into the store. The inner error says why it is too much.
    fn copy(&mut self, from: &File, seen: &Seen, name: &str) -> Result<Result<(), String>, Stop> {
        let bytes = seen.stamp.size.min(seen.taken);
        let path = self.record.store.join(name);
        let to = {
            let mut options = File::options();
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.write(true).create(true).truncate(true).open(&path)?
        };
        // Shared blocks cost nothing, however many they are.
        let shared = rustix::fs::ioctl_ficlone(&to, from).is_ok();
        if !shared {
            let over = if bytes > self.record.largest {
                Some(format!(
                    "it has {}, more than the {} that undo keeps of a file",
                    units(bytes),
                    units(self.record.largest)
                ))
            } else if self.copied.saturating_add(bytes) > self.record.budget {
                Some(format!("this command had already used up its {} for undo", units(self.record.budget)))
            } else {
                None
            };
            if let Some(why) = over {
                fs::remove_file(&path)?;
                return Ok(Err(why));
            }
            match sparse::copy(from, &to) {
                Ok(copied) => self.copied += copied,
                Err(error) => {
                    fs::remove_file(&path)?;
                    return match Stop::from(error) {
                        Stop::Full => Err(Stop::Full),
                        Stop::Io(error) => Ok(Err(format!("it could not be read: {error}"))),
                    };
                }
            }
        }
        Ok(Ok(()))
    }

    fn note(&mut self, path: &Path, before: Before, stamp: Option<Stamp>) -> io::Result<()> {
        self.write(&Line::Touched { at: now(), path: path.to_owned(), before, stamp })
    }

    /// In one piece, so that a kill leaves no half of a line that another one could follow.
    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(256);
        if self.torn {
            bytes.push(b'\n');
        }
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
        let written = self.manifest.write_all(&bytes);
        self.torn = written.is_err();
        written
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn units(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(0x10_0000)),
    }
}
