//! What is guarded, at each call: what a command makes there, changes, or carries to another name.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::notify::Spot;
use super::recorder::Loss;
use crate::sandbox::{Guard, Guarded};

/// Most names that are looked at when a folder is moved. One that holds more stays where it is.
const MOST_LOOKED: usize = 100_000;

/// How far the clock of a file system may be behind ours: it moves by ticks.
const TICK: Duration = Duration::from_millis(20);

/// Answers with the path that must stay as it is.
#[derive(Debug)]
pub(super) struct Guarding {
    /// What rules forbid, whatever else is said of it.
    protected: Vec<PathBuf>,
    guard: Guard,
    /// What the command has made itself, or was about to: repositories, and files in shared folders. A name alone proves
    /// nothing, for the call may have failed and something else have it by now: what has it must be younger than the command.
    own: HashSet<PathBuf>,
    began: SystemTime,
}

/// What is to be moved: where it is, and what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moves<'a> {
    pub(super) spot: &'a Spot,
    pub(super) kind: FileType,
}

impl Guarding {
    pub(super) fn new(protected: Vec<PathBuf>, guard: Guard) -> Guarding {
        Guarding { protected, guard, own: HashSet::new(), began: SystemTime::now() - TICK }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.protected.is_empty() && self.guard.is_empty()
    }

    /// Something is made where nothing is.
    pub(super) fn made(&mut self, path: &Path) -> Result<(), PathBuf> {
        self.may_be_made(path)?;
        if self.is_owned(path) {
            self.own.insert(path.to_owned());
        }
        Ok(())
    }

    /// What is there is changed, or loses its name.
    pub(super) fn changed(&self, path: &Path, loss: Loss) -> Result<(), PathBuf> {
        let stays = match self.says(path) {
            Guarded::Kept => true,
            // The times of the folder change all day.
            Guarded::Repository => loss != Loss::Attributes && !self.is_own(path),
            Guarded::Once => !self.is_own(path),
            Guarded::Free => self.is_shared(path) && !self.is_own(path),
        };
        if stays { Err(path.to_owned()) } else { Ok(()) }
    }

    /// Nothing has the name anymore.
    pub(super) fn removed(&mut self, path: &Path) {
        self.own.remove(path);
    }

    /// Something was moved, with all that is in it, to where nothing was or in place of something; two that are exchanged
    /// take each other's place.
    pub(super) fn moved(&mut self, from: &Path, to: &Path, there: Option<FileType>, swap: bool) {
        let mut names = Vec::new();
        // Over a folder that is not empty nothing moves: what is in it would pass for what was to come.
        let arrives = swap || there != Some(FileType::Directory);
        self.own.retain(|own| {
            let away = own.strip_prefix(from).map(|rest| arrives.then(|| to.join(rest)));
            let back = own.strip_prefix(to).map(|rest| swap.then(|| from.join(rest)));
            match away.or(back) {
                Ok(name) => names.extend(name),
                Err(_) => return true,
            }
            false
        });
        names.extend(there.is_none().then(|| to.to_owned()));
        // What is called otherwise now is nobody's own: it may be given the name of something else.
        names.retain(|name| self.is_owned(name));
        self.own.extend(names);
    }

    /// A link is made that leads elsewhere, or comes there.
    pub(super) fn led(&self, path: &Path) -> Result<(), PathBuf> {
        if self.guard.leads(path) && !self.is_own(path) { Err(path.to_owned()) } else { Ok(()) }
    }

    fn may_be_made(&self, path: &Path) -> Result<(), PathBuf> {
        if self.says(path) == Guarded::Kept { Err(path.to_owned()) } else { Ok(()) }
    }

    /// Whether something may be moved, a folder with all that is in it.
    pub(super) fn may_move(&self, from: Moves, to: &Spot, replaces: bool) -> Result<(), PathBuf> {
        self.changed(&from.spot.path, Loss::Name)?;
        match replaces {
            true => self.changed(&to.path, Loss::Name)?,
            false => self.may_be_made(&to.path)?,
        }
        if from.kind == FileType::Symlink {
            self.led(&to.path)?;
        }
        if from.kind == FileType::Directory {
            for path in [&from.spot.path, &to.path] {
                self.holds(path).map_or(Ok(()), Err)?;
            }
            self.carries(from.spot, &to.path).map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Whether it matters there who made something.
    fn is_owned(&self, path: &Path) -> bool {
        matches!(self.guard.says(path), Guarded::Repository | Guarded::Once) || self.is_shared(path)
    }

    fn says(&self, path: &Path) -> Guarded {
        if self.guard.refuses(path) || self.protected.iter().any(|protected| path.starts_with(protected)) {
            return Guarded::Kept;
        }
        match self.guard.says(path) {
            // A repository that came into being is the command's own, with what git obeys in it.
            Guarded::Kept if !self.guard.fixes(path) && self.is_own(path) => Guarded::Free,
            said => said,
        }
    }

    fn is_own(&self, path: &Path) -> bool {
        if self.own.is_empty() {
            return false;
        }
        // The innermost repository counts: an old one may have been moved into a new one.
        let repository = |path: &&Path| matches!(self.guard.says(path), Guarded::Repository | Guarded::Once);
        let owns = |path: &Path| self.own.contains(path) && self.is_younger(path);
        path.ancestors().find(repository).map_or_else(|| path.ancestors().any(owns), owns)
    }

    /// Whether what came into being then, in nanoseconds since 1970, did so after the command. Zero: nobody knows.
    pub(super) fn is_new(&self, born: i64) -> bool {
        let born = u64::try_from(born).unwrap_or(0);
        born > 0 && SystemTime::UNIX_EPOCH + Duration::from_nanos(born) >= self.began
    }

    /// Whether what has the name came into being after the command. Where the file system does not tell, the name has to do.
    fn is_younger(&self, path: &Path) -> bool {
        let Ok(there) = std::fs::symlink_metadata(path) else { return false };
        there.created().map_or(true, |born| born >= self.began)
    }

    fn is_shared(&self, path: &Path) -> bool {
        self.guard.shared.iter().any(|shared| path.starts_with(shared))
    }

    /// What lies below a folder and is protected by its path: under another name it could be changed.
    fn holds(&self, folder: &Path) -> Option<PathBuf> {
        let forbidden = self.protected.iter().find(|protected| protected.starts_with(folder));
        forbidden.map(PathBuf::as_path).or_else(|| self.guard.holds(folder)).map(Path::to_owned)
    }

    /// What is protected by its name before a folder moves, or after, and not both.
    fn carries(&self, from: &Spot, to: &Path) -> Option<PathBuf> {
        let (counted, counts) = (self.guard.counts(&from.path), self.guard.counts(to));
        if !counted && !counts && self.guard.refused.is_empty() {
            return None;
        }
        // Whatever cannot be looked at may hold what is protected.
        let unseen = || Some(from.path.clone());
        let Ok(top) = from.folder() else { return unseen() };
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Paths and not open folders: there may be more of these than a process may have open.
        let (mut left, mut looked) = (vec![PathBuf::from(".")], 0);
        while let Some(below) = left.pop() {
            let entries = match rustix::fs::openat2(&top, &below, flags, Mode::empty(), inside).map(Dir::new) {
                Ok(Ok(entries)) => entries,
                // It is gone by now, or was no folder.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                _ => return unseen(),
            };
            for entry in entries {
                let Ok(entry) = entry else { return unseen() };
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                looked += 1;
                if looked > MOST_LOOKED {
                    return unseen();
                }
                let rest = below.join(name);
                let rest = rest.strip_prefix(".").unwrap_or(&rest);
                let (before, after) = (from.path.join(rest), to.join(rest));
                match (self.says(&before), self.says(&after)) {
                    (Guarded::Free, Guarded::Kept) => return Some(after),
                    (Guarded::Kept, Guarded::Free) => return Some(before),
                    // Where it was, another could be made.
                    (Guarded::Once | Guarded::Repository, _) if !self.is_own(&before) => return Some(before),
                    // One that comes from elsewhere is new here, as if it were made.
                    (Guarded::Repository, _) | (_, Guarded::Repository) => continue,
                    _ => {}
                }
                // Some file systems do not tell what it is.
                let folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
                if folder && !Guard::spares(name) {
                    left.push(rest.to_owned());
                }
            }
        }
        None
    }
}
