//! What is guarded, at each call: what a command makes there, changes, or carries to another name.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType};

use super::notify::Spot;
use super::recorder::Loss;
use crate::sandbox::{Guard, Guarded};

/// Most names that are looked at when a folder is moved.
const MOST_LOOKED: usize = 20_000;

/// Answers with the path that must stay as it is.
#[derive(Debug)]
pub(super) struct Guarding {
    /// What rules forbid, whatever else is said of it.
    protected: Vec<PathBuf>,
    guard: Guard,
    /// What the command has made itself: repositories, and files in shared folders.
    own: HashSet<PathBuf>,
}

impl Guarding {
    pub(super) fn new(protected: Vec<PathBuf>, guard: Guard) -> Guarding {
        Guarding { protected, guard, own: HashSet::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.protected.is_empty() && self.guard.is_empty()
    }

    /// Something is made where nothing is.
    pub(super) fn made(&mut self, path: &Path) -> Result<(), PathBuf> {
        match self.says(path) {
            Guarded::Kept => return Err(path.to_owned()),
            Guarded::Repository => drop(self.own.insert(path.to_owned())),
            Guarded::Free if self.is_shared(path) => drop(self.own.insert(path.to_owned())),
            Guarded::Free => {}
        }
        Ok(())
    }

    /// What is there is changed, or loses its name.
    pub(super) fn changed(&self, path: &Path, loss: Loss) -> Result<(), PathBuf> {
        let stays = match self.says(path) {
            Guarded::Kept => true,
            // The times of the folder change all day.
            Guarded::Repository => loss != Loss::Attributes && !self.is_own(path),
            Guarded::Free => self.is_shared(path) && !self.is_own(path),
        };
        if stays { Err(path.to_owned()) } else { Ok(()) }
    }

    /// Something is moved, a folder with all that is in it.
    pub(super) fn moved(&mut self, (from, folder): (&Spot, bool), to: &Spot, replaces: bool) -> Result<(), PathBuf> {
        self.changed(&from.path, Loss::Name)?;
        match replaces {
            true => self.changed(&to.path, Loss::Name)?,
            false => self.made(&to.path)?,
        }
        if folder {
            for path in [&from.path, &to.path] {
                self.holds(path).map_or(Ok(()), Err)?;
            }
            self.carries(from, &to.path).map_or(Ok(()), Err)?;
        }
        let own: Vec<PathBuf> = self
            .own
            .iter()
            .filter_map(|own| own.strip_prefix(&from.path).ok())
            .map(|rest| to.path.join(rest))
            .collect();
        self.own.extend(own);
        Ok(())
    }

    fn says(&self, path: &Path) -> Guarded {
        if self.protected.iter().any(|protected| path.starts_with(protected)) {
            return Guarded::Kept;
        }
        match self.guard.says(path) {
            // A repository that came into being is the command's own, with what git obeys in it.
            Guarded::Kept if !self.guard.fixes(path) && self.is_own(path) => Guarded::Free,
            said => said,
        }
    }

    fn is_own(&self, path: &Path) -> bool {
        !self.own.is_empty() && path.ancestors().any(|path| self.own.contains(path))
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
        if !counted && !counts {
            return None;
        }
        let elsewhere = (counted != counts).then(|| from.path.clone());
        let Ok(folder) = from.folder() else { return elsewhere };
        let mut left: Vec<(OwnedFd, PathBuf)> = vec![(folder, PathBuf::new())];
        let mut looked = 0;
        while let Some((folder, below)) = left.pop() {
            let Ok(entries) = Dir::read_from(&folder) else { continue };
            for entry in entries.flatten() {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                looked += 1;
                if looked > MOST_LOOKED {
                    return elsewhere;
                }
                let rest = below.join(name);
                let (before, after) = (from.path.join(&rest), to.join(&rest));
                match (self.says(&before), self.says(&after)) {
                    (Guarded::Free, Guarded::Kept) => return Some(after),
                    (Guarded::Kept, Guarded::Free) => return Some(before),
                    (Guarded::Repository, Guarded::Free) if !self.is_own(&before) => return Some(before),
                    // One that comes from elsewhere is new here, as if it were made.
                    (Guarded::Repository, _) | (_, Guarded::Repository) => continue,
                    _ => {}
                }
                if entry.file_type() != FileType::Directory || Guard::spares(name) {
                    continue;
                }
                let spot = Spot { folder: folder.try_clone().ok()?, name: name.to_owned(), path: before };
                if let Ok(inner) = spot.folder() {
                    left.push((inner, rest));
                }
            }
        }
        None
    }
}
