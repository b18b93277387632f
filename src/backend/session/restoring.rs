//! Puts paths back: removes what is to go, deepest first, then makes what is to come, so that a file can take the place of a
//! folder and a folder that of a file.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::entry::{Content, Replaced, Version};
use super::files::{Files, LARGEST, Ready};
use super::names::Names;
use super::recorded;
use crate::sandbox::record::Stamp;
use crate::stdx::hash::sha256_hex;
use crate::stdx::replace::{self, Expected};
use crate::stdx::{links, sparse};

/// How one path was put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// A folder that holds what somebody else put there: it stays.
    Stays,
}

impl Files {
    /// Puts paths back. What became of each, in the order in which they came.
    pub(super) fn put(&self, ready: &[Ready]) -> Vec<Result<Put, replace::Error>> {
        let mut done: Vec<Result<Put, replace::Error>> = ready.iter().map(|_| Ok(Put::Done)).collect();
        let mut order: Vec<usize> = (0..ready.len()).collect();
        let depth = |at: &usize| ready[*at].file.path.components().count();
        order.sort_by_key(depth);
        for at in &order {
            let Replaced { path, from, to, .. } = &ready[*at].file;
            // A folder that its owner may not change is opened meanwhile.
            if let Version::Folder { mode: Some(mode) } = from {
                let _ = set_mode(path, to.mode().unwrap_or(*mode) | 0o700);
            }
        }
        let mut names = Names::read(&self.store);
        let mut parted = vec![false; ready.len()];
        order.sort_by_key(|at| std::cmp::Reverse(depth(at)));
        for at in &order {
            let Replaced { path, from, to, .. } = &ready[*at].file;
            if *from != Version::Absent && (!same_kind(from, to) || parts(path, (from, to), &names)) {
                parted[*at] = true;
                done[*at] = self.remove(&ready[*at], path, from);
            }
        }
        // What is written to a file itself shows under all of its names: they come after it.
        let stays: Vec<bool> =
            ready.iter().map(|ready| self.is_live(&ready.file.path) || stays(&ready.file, &names)).collect();
        order.sort_by_key(|at| (!stays[*at], depth(at)));
        // Nothing becomes a further name of what is about to get another content.
        let mut pending: HashSet<&Path> = ready.iter().map(|ready| ready.file.path.as_path()).collect();
        for at in &order {
            let file = &ready[*at].file;
            pending.remove(file.path.as_path());
            if done[*at].is_ok() && file.to != Version::Absent {
                done[*at] = match done[*at] {
                    Ok(Put::Stays) => {
                        Err(io::Error::other("a folder with files of somebody else is in its place").into())
                    }
                    _ if stays[*at] => self.make(&ready[*at], file, !parted[*at]).map(|()| {
                        // One with a single name was made again.
                        if let Version::File { stamp: Some(stamp), .. } = &file.to {
                            names.made(&file.path, stamp);
                        }
                        Put::Done
                    }),
                    _ => self.make_named(&ready[*at], (&mut names, &pending), !parted[*at]).map(|()| Put::Done),
                };
            }
        }
        order.sort_by_key(depth);
        for at in order.iter().rev() {
            let Replaced { path, to, .. } = &ready[*at].file;
            if let (Ok(_), Version::Folder { mode: Some(mode) }) = (&done[*at], to)
                && let Err(error) = set_mode(path, *mode)
            {
                done[*at] = Err(error.into());
            }
        }
        for at in order.iter().rev().filter(|at| done[**at].is_ok() && ready[**at].file.to == Version::Absent) {
            self.remove_folders(&ready[*at].file.path);
        }
        let restored = order.iter().filter(|at| done[**at].is_ok()).map(|at| &ready[*at].file);
        // Without it a file is read where its stamp would have told as much.
        let _ = recorded::note_restored(&self.store, restored);
        done
    }

    fn remove(&self, ready: &Ready, path: &Path, from: &Version) -> Result<Put, replace::Error> {
        match from {
            Version::Absent => {}
            Version::File { content, stamp, .. } => match self.load(content) {
                Ok(old) => ready.replacement.remove(&old)?,
                Err(_) => {
                    unchanged(path, *stamp)?;
                    fs::remove_file(path)?;
                }
            },
            Version::Link { target } => {
                parent_still(path)?;
                if fs::read_link(path)? != *target {
                    return Err(replace::Error::Changed);
                }
                fs::remove_file(path)?;
            }
            Version::Folder { .. } => {
                parent_still(path)?;
                match fs::remove_dir(path) {
                    Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => return Ok(Put::Stays),
                    done => done?,
                }
            }
            Version::Special => {
                parent_still(path)?;
                let kind = fs::symlink_metadata(path)?.file_type();
                if kind.is_file() || kind.is_dir() || kind.is_symlink() {
                    return Err(replace::Error::Changed);
                }
                fs::remove_file(path)?;
            }
        }
        Ok(Put::Done)
    }

    /// Makes what is to come. What was another name of a file that is there becomes that again.
    /// `pending` are the paths that are still to be put back.
    fn make_named(
        &self,
        ready: &Ready,
        (names, pending): (&mut Names, &HashSet<&Path>),
        there: bool,
    ) -> Result<(), replace::Error> {
        let Replaced { path, from, to, temporary } = &ready.file;
        let Version::File { content, stamp: Some(stamp), mode } = to else {
            return self.make(ready, &ready.file, there);
        };
        let there = there && same_kind(from, to);
        let is = |path: &Path| fs::symlink_metadata(path).ok().map(|meta| Stamp::of(&meta));
        let other = names.others(stamp).find(|other| {
            let known = is(other).is_some_and(|is| super::files::bits_of(&is) == *mode);
            *other != path.as_path() && !pending.contains(*other) && known && self.holds(other, content)
        });
        match other.map(Path::to_owned) {
            Some(other) if !there || is(&other).zip(is(path)).is_none_or(|(one, own)| !one.same_file(&own)) => {
                if let Some(folder) = path.parent() {
                    parent_still(path)?;
                    fs::create_dir_all(folder)?;
                }
                fs::hard_link(&other, temporary)?;
                let taken = match (there, from) {
                    (true, Version::File { stamp, .. }) => unchanged(path, *stamp),
                    _ if fs::symlink_metadata(path).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
                    _ => Ok(()),
                };
                if let Err(error) = taken.and_then(|()| fs::rename(temporary, path)) {
                    let _ = fs::remove_file(temporary);
                    return Err(error.into());
                }
            }
            _ => self.make(ready, &ready.file, there)?,
        }
        names.made(path, stamp);
        Ok(())
    }

    /// Whether a path is that of a file that is kept itself, beside the copy of what it held.
    fn is_live(&self, path: &Path) -> bool {
        path.starts_with(self.store.dir())
    }

    /// Whether a file holds this.
    fn holds(&self, path: &Path, content: &Content) -> bool {
        match content {
            Content::Blob(blob) => fs::read(path).is_ok_and(|bytes| sha256_hex(&bytes) == blob.0),
            Content::Kept(name) => recorded::same_files(path, &self.store.dir().join(name)).unwrap_or(false),
            Content::Untouched | Content::Unsaved | Content::Lost(_) => false,
        }
    }

    /// Makes what is to come; `there` is what it takes the place of, unless that was removed.
    fn make(&self, ready: &Ready, file: &Replaced, there: bool) -> Result<(), replace::Error> {
        let Replaced { path, from, to, .. } = file;
        if let Some(folder) = path.parent() {
            parent_still(path)?;
            fs::create_dir_all(folder)?;
        }
        let there = there && same_kind(from, to);
        match to {
            Version::Absent => {}
            Version::Folder { .. } if there => {}
            Version::Folder { .. } => fs::create_dir(path)?,
            Version::Link { target } => {
                if there {
                    fs::remove_file(path)?;
                }
                link(target, path)?;
            }
            Version::Special => return Err(io::Error::other("a pipe, socket or device cannot be made again").into()),
            Version::File { content: Content::Untouched, mode, .. } => {
                links::still(path)?;
                mode.map_or(Ok(()), |mode| set_mode(path, mode))?;
            }
            Version::File { content, mode, .. } => {
                let old = match from {
                    Version::File { content, .. } if there => Some(self.load(content).map_err(io::Error::other)?),
                    _ => None,
                };
                match self.load(content) {
                    Ok(new) => {
                        let expected = old.as_deref().map_or(Expected::Absent, Expected::Content);
                        match ready.replacement.write(&new, expected, *mode) {
                            // Under another of its names it was put back already.
                            Err(replace::Error::Changed) if there && fs::read(path).is_ok_and(|found| found == new) => {
                                mode.map_or(Ok(()), |mode| set_mode(path, mode))?;
                            }
                            written => written?,
                        }
                    }
                    Err(_) => self.make_large(ready, file, content, *mode)?,
                }
            }
        }
        Ok(())
    }

    /// What does not fit into memory is copied.
    fn make_large(
        &self,
        ready: &Ready,
        file: &Replaced,
        content: &Content,
        mode: Option<u32>,
    ) -> Result<(), replace::Error> {
        let Content::Kept(name) = content else {
            return Err(io::Error::other("its saved content cannot be read").into());
        };
        let temporary = ready.replacement.temporary();
        let to = File::options().write(true).create_new(true).open(temporary)?;
        let written = sparse::copy(&File::open(self.store.dir().join(name))?, &to)
            .and_then(|_| mode.map_or(Ok(()), |mode| set_mode(temporary, mode)))
            .and_then(|()| match &file.from {
                Version::File { stamp, .. } => unchanged(&file.path, *stamp),
                _ if fs::symlink_metadata(&file.path).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
                _ => Ok(()),
            })
            .and_then(|()| fs::rename(temporary, &file.path));
        if written.is_err() {
            let _ = fs::remove_file(temporary);
        }
        Ok(written?)
    }

    /// What a content holds.
    ///
    /// # Errors
    /// Why it cannot be told, for people.
    pub(super) fn load(&self, content: &Content) -> Result<Vec<u8>, String> {
        match content {
            Content::Blob(blob) => self.saved(blob),
            Content::Kept(name) => {
                let failed = |error| format!("was left as it is: its saved content cannot be read: {error}");
                let path = self.store.dir().join(name);
                if fs::metadata(&path).map_err(failed)?.len() > LARGEST {
                    return Err("is too large".to_owned());
                }
                fs::read(&path).map_err(failed)
            }
            Content::Lost(why) => Err(format!("cannot be restored: {why}")),
            Content::Untouched | Content::Unsaved => Err("cannot be restored: nobody saved its content".to_owned()),
        }
    }
}

/// Whether a path keeps its file, which only gets another content.
fn stays(file: &Replaced, names: &Names) -> bool {
    match (&file.from, &file.to) {
        (_, Version::File { content: Content::Untouched, .. }) => true,
        (Version::File { stamp: Some(is), .. }, Version::File { stamp: Some(was), .. }) => names.same(is, was),
        _ => false,
    }
}

fn same_kind(one: &Version, other: &Version) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Whether one file took the place of another one that has further names: those are not to get the content of this one.
fn parts(path: &Path, (from, to): (&Version, &Version), names: &Names) -> bool {
    match (from, to) {
        (Version::File { stamp: Some(is), .. }, Version::File { stamp: Some(was), .. }) => {
            !names.same(is, was) && recorded::links(path).is_ok_and(|links| links > 1)
        }
        _ => false,
    }
}

/// No folder above a path has become a link.
fn parent_still(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), links::still)
}

fn unchanged(path: &Path, stamp: Option<Stamp>) -> io::Result<()> {
    links::still(path)?;
    let found = Stamp::of(&fs::symlink_metadata(path)?);
    match stamp.is_some_and(|stamp| stamp.same_content(&found)) {
        true => Ok(()),
        false => Err(io::Error::other("it was changed in the meantime")),
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
fn link(_target: &Path, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
