//! What undo knows of the files that a session changed: the changes, and contents as blobs next to the log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::changes::{Change, Changes, Step, Temporary};
use super::entry::{EntryKind, Replaced, Version};
use super::error::Error;
use super::merge::{meeting, merge, only_formats};
use super::review::Without;
use super::store::Store;
use crate::message::{BlobId, CallId};
use crate::stdx::hash::sha256_hex;
use crate::stdx::replace::{Replacement, is_half_written};
use crate::stdx::{links, regular};

/// Largest file whose content is saved, in bytes.
const LARGEST: u64 = 64 << 20;

#[derive(Debug)]
pub struct Files {
    pub(super) changes: Changes,
    pub(super) store: Store,
}

/// A file that was changed, and its content before the first change; none when it did not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    pub path: PathBuf,
    /// The inner error says why it cannot be told.
    pub before: Result<Option<Vec<u8>>, String>,
}

/// A file whose new content is worked out and saved.
pub(super) struct Ready {
    pub(super) file: Replaced,
    pub(super) replacement: Replacement,
    pub(super) old: Option<Vec<u8>>,
    pub(super) new: Option<Vec<u8>>,
    /// What somebody else changed is in the new content.
    pub(super) kept: bool,
}

impl Files {
    /// Of a log without entries.
    pub(super) fn beside(log: &Path) -> Files {
        Files { changes: Changes::default(), store: Store::beside(log) }
    }

    /// Every file with a tool's change in effect, in the order of the first changes.
    pub fn first_versions(&self) -> Vec<First> {
        let first = |(path, version): (&Path, &Version)| {
            let blob = version.blob.as_ref().map(|blob| self.store.blob(blob)).transpose();
            let before = blob.map_err(|error| format!("its saved content cannot be read: {error}"));
            First { path: path.to_path_buf(), before }
        };
        self.changes.firsts().into_iter().map(first).collect()
    }

    /// The entry that a change of a file needs before it, if any; the content that it names is saved.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn before(&self, path: &Path) -> Result<Option<EntryKind>, Error> {
        let path = path.to_owned();
        links::still(&path).map_err(|error| Error::io("read", &path, error))?;
        let (blob, mode) = match fs::symlink_metadata(&path) {
            Err(error) if is_absent(&error) => (None, None),
            Err(error) => return Err(Error::io("read", &path, error)),
            Ok(meta) if !meta.is_file() => return Ok(None),
            Ok(meta) if meta.len() > LARGEST => {
                let command = format!("change of {} (too large to be saved)", path.display());
                return Ok(Some(EntryKind::CommandRan { call: CallId(String::new()), command }));
            }
            Ok(meta) => {
                let bytes = fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
                let blob = BlobId(sha256_hex(&bytes));
                if !self.changes.current(&path).is_some_and(|change| change.explains(Some(&blob))) {
                    self.store.put_blob(&bytes).map_err(|error| Error::write(self.store.dir(), error))?;
                }
                (Some(blob), mode_of(&meta))
            }
        };
        if self.changes.current(&path).is_some_and(|change| change.explains(blob.as_ref())) {
            return Ok(None);
        }
        Ok(Some(EntryKind::FileBefore { path, blob, mode }))
    }

    /// The entry for what hooks made of a file that a tool changed, if they did; the new content is saved.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn touched(&self, path: &Path) -> Result<Option<EntryKind>, Error> {
        // What cannot be read now is refused when it is to be undone.
        let (Some(change), Ok((version, bytes))) = (self.changes.current(path), version_of(path)) else {
            return Ok(None);
        };
        if version.blob == change.after().blob {
            return Ok(None);
        }
        let kept = bytes.map(|bytes| self.store.keep_blob(&bytes)).transpose();
        kept.map_err(|error| Error::write(self.store.dir(), error))?;
        Ok(Some(EntryKind::FileTouched { path: path.to_owned(), blob: version.blob }))
    }

    /// Number of files whose content before our first change is no longer there.
    pub(super) fn lost(&self) -> usize {
        let blobs = self.changes.firsts().into_iter().filter_map(|(_, before)| before.blob.as_ref());
        blobs.filter(|blob| !self.store.blob_path(blob).exists()).count()
    }

    /// Names files that a kill left in the middle of our writing them in place, with what restores them.
    pub(super) fn half_written(&self) -> Vec<String> {
        let half = |change: &Change| {
            let found = regular::read(&change.path, LARGEST).ok();
            let hash = found.as_deref().map(|bytes| BlobId(sha256_hex(bytes)));
            !change.explains(hash.as_ref()) && self.is_half(change, found.as_deref())
        };
        let told = |change: Change| {
            format!("{} is half-written: cocode was killed while writing it. /undo restores it.", change.path.display())
        };
        self.changes.unsettled().into_iter().filter(half).map(told).collect()
    }

    /// Removes the temporary files of changes that were under way when the program was killed. One that holds what
    /// somebody else saved at that moment stays, and is named.
    pub(super) fn remove_leftovers(&self) -> Vec<String> {
        let left = self.changes.temporaries().iter().filter(|temporary| !self.remove_leftover(temporary));
        let told = |temporary: &Temporary| {
            format!(
                "{} contains what someone saved while cocode was being killed; it was left there",
                temporary.path.display()
            )
        };
        left.map(told).collect()
    }

    /// False: it is not ours.
    fn remove_leftover(&self, Temporary { path, new }: &Temporary) -> bool {
        let Ok(meta) = fs::symlink_metadata(path) else { return true };
        let Some(found) = Some(path).filter(|_| meta.is_file()).and_then(|path| fs::read(path).ok()) else {
            return false;
        };
        let new = new.as_ref().and_then(|new| self.store.sound_blob(new));
        let ours = found.is_empty()
            || new.is_some_and(|new| new.starts_with(&found))
            || self.store.sound_blob(&BlobId(sha256_hex(&found))).is_some();
        ours && fs::remove_file(path).is_ok()
    }

    /// Works out what the file is to hold; `None` if it already does. Saves what it holds now, so that the step can be
    /// undone.
    pub(super) fn prepare(&self, step: &Step) -> Result<Option<Ready>, String> {
        self.ready(&step.path, self.without(step)?)
    }

    /// What the file would hold without some changes; everybody else's stay.
    pub(super) fn without(&self, step: &Step) -> Result<Without, String> {
        let (from, old) = version_of(&step.path).map_err(failed)?;
        let (mut new, mut mode, mut kept) = (old.clone(), from.mode, false);
        for change in &step.chain {
            let hash = new.as_deref().map(|bytes| BlobId(sha256_hex(bytes)));
            if hash == change.before.blob {
                continue;
            }
            let before = change.before.blob.as_ref().map(|blob| self.saved(blob)).transpose()?;
            // Bits that somebody else set meanwhile stay.
            if mode == change.after().mode || hash.is_none() || change.after().mode.is_none() {
                mode = change.before.mode;
            }
            if !change.explains(hash.as_ref()) && !self.is_half(change, new.as_deref()) {
                let left = change.after().blob.as_ref().map(|blob| self.saved(blob)).transpose();
                let left = left.map_err(|error| format!("was changed since: {error}"))?;
                let merged = merge(left.as_deref(), new.as_deref(), before.as_deref());
                let ours = || {
                    hash.is_some() && hash == change.touched && {
                        let [before, left, found] =
                            [&before, &left, &new].map(|text| text.as_deref().unwrap_or_default());
                        only_formats(before, left, found)
                    }
                };
                new = match merged {
                    Some(merged) => merged,
                    None if ours() => before.clone(),
                    None => return Err(apart(left.as_deref(), new.as_deref(), before.as_deref())),
                };
                kept = new != before;
            } else {
                (new, kept) = (before, false);
            }
        }
        Ok(Without { from, old, new, mode, kept })
    }

    pub(super) fn ready(&self, path: &Path, without: Without) -> Result<Option<Ready>, String> {
        let Without { from, old, new, mode, kept } = without;
        if new == old {
            return Ok(None);
        }
        let save = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| self.store.put_blob(bytes)).transpose();
        save(&old).map_err(|error| format!("was left as it is: its current content cannot be saved: {error}"))?;
        let blob =
            save(&new).map_err(|error| format!("was left as it is: its new content cannot be saved: {error}"))?;
        let replacement = Replacement::at(path.to_owned()).map_err(failed)?;
        let (path, temporary) = (path.to_owned(), replacement.temporary().to_owned());
        let file = Replaced { path, from, to: Version { blob, mode }, temporary };
        Ok(Some(Ready { file, replacement, old, new, kept }))
    }

    fn saved(&self, blob: &BlobId) -> Result<Vec<u8>, String> {
        let bytes = self
            .store
            .blob(blob)
            .map_err(|error| format!("was left as it is: its saved content cannot be read: {error}"))?;
        match sha256_hex(&bytes) == blob.0 {
            true => Ok(bytes),
            false => Err("was left as it is: its saved content is damaged".to_owned()),
        }
    }

    /// Whether the file holds what a kill left in the middle of our writing it in place: nobody else's bytes.
    fn is_half(&self, change: &Change, found: Option<&[u8]>) -> bool {
        if !change.open {
            return false;
        }
        let bytes = |version: &Version| version.blob.as_ref().and_then(|blob| self.store.sound_blob(blob));
        let versions: Vec<&Version> = [&change.before].into_iter().chain(&change.left).rev().take(2).collect();
        let [new, old] = versions.as_slice() else { return false };
        match (found, bytes(old), bytes(new)) {
            (Some(found), Some(old), Some(new)) => is_half_written(found, &old, &new),
            _ => false,
        }
    }
}

fn failed(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Other => error.to_string(),
        _ => format!("cannot be reached: {error}"),
    }
}

/// Why what somebody made of a file cannot be merged: we left `left`, it holds `found` and was to become `wanted`.
fn apart(left: Option<&[u8]>, found: Option<&[u8]>, wanted: Option<&[u8]>) -> String {
    let text = match (left, found, wanted) {
        (_, None, _) => "was deleted since: restore it, then try again",
        (None, _, _) => "was created since: move it away, then try again",
        (_, _, None) => "was changed since, and removing it would lose that change",
        (Some(left), Some(found), Some(wanted)) if [left, found, wanted].iter().any(|bytes| bytes.contains(&0)) => {
            "was changed since; binary files cannot be merged"
        }
        (Some(left), Some(found), Some(wanted)) => {
            let at = meeting(left, found, wanted).map(|lines| format!(" at {lines}")).unwrap_or_default();
            return format!(
                "was changed since{at}, on or right next to what the agent changed; revert that first, then try again"
            );
        }
    };
    text.to_owned()
}

/// Whether a file still holds what it was to lose.
pub(super) fn in_effect(file: &Replaced) -> bool {
    version_of(&file.path).is_ok_and(|(found, _)| found.blob == file.from.blob)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What a file holds now, and the bytes themselves. Anything but a regular file, or none, is an error, and so is a link in
/// its path.
fn version_of(path: &Path) -> io::Result<(Version, Option<Vec<u8>>)> {
    links::still(path).map_err(|error| io::Error::other(format!("was left as it is: {error}")))?;
    let meta = match fs::symlink_metadata(path) {
        Err(error) if is_absent(&error) => return Ok((Version { blob: None, mode: None }, None)),
        meta => meta?,
    };
    if !meta.is_file() {
        return Err(io::Error::other("is no longer a regular file"));
    }
    if meta.len() > LARGEST {
        return Err(io::Error::other("is too large"));
    }
    let bytes = fs::read(path)?;
    Ok((Version { blob: Some(BlobId(sha256_hex(&bytes))), mode: mode_of(&meta) }, Some(bytes)))
}

#[cfg(unix)]
fn mode_of(meta: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o7777)
}

#[cfg(not(unix))]
fn mode_of(_meta: &fs::Metadata) -> Option<u32> {
    None
}
