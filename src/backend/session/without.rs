//! What a path would hold without some changes: those of everybody else stay.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::changes::{Change, Step};
use super::entry::{Content, Replaced, Version};
use super::files::{Files, LARGEST, is_absent};
use super::merge::{meeting, merge, only_formats};
use super::names::Names;
use super::recorded;
use crate::message::BlobId;
use crate::sandbox::record::Stamp;
use crate::stdx::hash::sha256_hex;
use crate::stdx::links;
use crate::stdx::replace::is_half_written;

/// What is at a path, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Held {
    Absent,
    File(Source),
    Link(PathBuf),
    Folder,
    Special,
}

/// Where the content of a file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// The file itself.
    Now(Stamp),
    Saved(Content, Option<Stamp>),
    Merged(Vec<u8>),
}

/// What a path would hold without some changes.
#[derive(Debug)]
pub(super) struct Without {
    pub(super) path: PathBuf,
    /// What it is.
    pub(super) from: Version,
    pub(super) now: Held,
    pub(super) to: Held,
    pub(super) mode: Option<u32>,
    /// What somebody else changed is in the new content.
    pub(super) kept: bool,
    /// The record of the command that left it as it is, and did not save that.
    pub(super) unsaved_by: Option<String>,
}

impl Held {
    /// Of a file that was looked at.
    fn stamp(&self) -> Option<&Stamp> {
        match self {
            Held::File(Source::Now(stamp)) => Some(stamp),
            Held::File(Source::Saved(_, stamp)) => stamp.as_ref(),
            _ => None,
        }
    }
}

/// Steps that are taken together.
#[derive(Debug)]
pub(super) struct Together<'a> {
    paths: HashSet<&'a Path>,
    names: Names,
}

impl Together<'_> {
    /// Whether a change put another file in the place of one, and that one is there, or what later took its place with the
    /// same content: the file is to be put back even where all of them hold the same, for the sake of its other names.
    fn is_replaced(&self, change: &Change, to: &Held) -> bool {
        let (Some(was), Some(is)) = (change.before.stamp(), change.after().stamp()) else { return false };
        let mut left = change.left.iter().filter_map(Version::stamp);
        let replaced = was.has_names(is) && !self.names.same(was, is);
        replaced
            && to
                .stamp()
                .is_some_and(|stamp| !self.names.same(was, stamp) && left.any(|left| self.names.same(left, stamp)))
    }
}

impl Files {
    pub(super) fn together<'a>(&self, steps: &'a [Step]) -> Together<'a> {
        Together { paths: steps.iter().map(|step| step.path.as_path()).collect(), names: Names::read(&self.store) }
    }

    /// What the path would hold without some changes; everybody else's stay.
    pub(super) fn without(&self, step: &Step, all: &Together<'_>) -> Result<Without, String> {
        let path = &step.path;
        let links = step.chain.iter().any(|change| {
            [&change.before, change.after()].iter().any(|version| matches!(version, Version::Link { .. }))
        });
        let from = match look(path, links) {
            // A folder above it is a link now, and is to be a folder again: nothing is there.
            Err(_) if first_link(path).is_some_and(|link| link != *path && all.paths.contains(link.as_path())) => {
                Version::Absent
            }
            from => from?,
        };
        let now = held(&from);
        let (mut to, mut mode, mut kept) = (now.clone(), from.mode(), false);
        let mut unsaved_by = None;
        for change in &step.chain {
            let after = change.after();
            if let Version::File { content: Content::Unsaved, .. } = after
                && to == now
            {
                unsaved_by = unsaved_by.or_else(|| change.record.clone());
            }
            let is_before = self.same(path, &to, &change.before) && !all.is_replaced(change, &to);
            // Bits that somebody else set meanwhile stay.
            let touchable = !is_before || change.before.mode() != after.mode();
            if touchable && (mode == after.mode() || to == Held::Absent || after.mode().is_none()) {
                mode = change.before.mode();
            }
            if is_before {
                continue;
            }
            if only_mode(change) && matches!(to, Held::File(_)) {
                continue;
            }
            let before = self.held_before(&change.before)?;
            if change.left.iter().any(|left| self.same(path, &to, left)) || self.is_half(change, path, &to) {
                (to, kept) = (before, false);
                continue;
            }
            to = self.merged(change, path, &to)?;
            kept = to != before;
        }
        Ok(Without { path: path.clone(), from, now, to, mode, kept, unsaved_by })
    }

    /// What a path is to hold that somebody changed since a change of ours.
    fn merged(&self, change: &Change, path: &Path, to: &Held) -> Result<Held, String> {
        let content = |held: &Held| match held {
            Held::Absent => Ok(None),
            Held::File(source) => self.bytes(path, source).map(Some),
            Held::Link(_) => Err("is no longer a regular file: it is a link now".to_owned()),
            Held::Folder | Held::Special => Err("is no longer a regular file".to_owned()),
        };
        let version = |version: &Version| match version {
            Version::Absent => Ok(None),
            Version::File { content, .. } => self.load(content).map(Some),
            Version::Link { .. } | Version::Folder { .. } | Version::Special => {
                Err("was changed since: revert that first, then try again".to_owned())
            }
        };
        if let Version::File { content: Content::Unsaved, .. } = change.after() {
            return Err("was changed since; it is too large for the changes to be told apart".to_owned());
        }
        if let Version::File { content: Content::Lost(why), .. } = change.after() {
            return Err(format!("was changed since, and {why}"));
        }
        let before = version(&change.before)?;
        let left = version(change.after()).map_err(|error| match error.starts_with("was changed since") {
            true => error,
            false => format!("was changed since: {error}"),
        })?;
        let found = content(to)?;
        let ours = || {
            let hash = found.as_deref().map(|bytes| BlobId(sha256_hex(bytes)));
            hash.is_some() && hash == change.touched && {
                let [before, left, found] = [&before, &left, &found].map(|text| text.as_deref().unwrap_or_default());
                only_formats(before, left, found)
            }
        };
        match merge(left.as_deref(), found.as_deref(), before.as_deref()) {
            Some(merged) if merged == before => self.held_before(&change.before),
            Some(merged) => Ok(merged.map_or(Held::Absent, |bytes| Held::File(Source::Merged(bytes)))),
            None if ours() => self.held_before(&change.before),
            None => Err(apart(left.as_deref(), found.as_deref(), before.as_deref())),
        }
    }

    /// What was there before a change, if that can be had.
    fn held_before(&self, version: &Version) -> Result<Held, String> {
        Ok(match version {
            Version::File { content: Content::Blob(blob), .. } => {
                self.saved(blob)?;
                held(version)
            }
            Version::File { content: Content::Kept(name), stamp, .. } => {
                let failed = |error| format!("was left as it is: its saved content cannot be read: {error}");
                let meta = fs::metadata(self.store.dir().join(name)).map_err(failed)?;
                let found = Stamp::of(&meta);
                // Only a file that is kept under a second name has the number that it had.
                if stamp.is_some_and(|stamp| found.same_file(&stamp) && !found.same_content(&stamp)) {
                    return Err("was left as it is: its saved content was changed under another name".to_owned());
                }
                held(version)
            }
            Version::File { content, .. } => {
                self.load(content)?;
                held(version)
            }
            _ => held(version),
        })
    }

    /// Whether a path holds this, or would. What cannot be read does not.
    fn same(&self, path: &Path, one: &Held, other: &Version) -> bool {
        match (one, other) {
            (Held::Absent, Version::Absent)
            | (Held::Folder, Version::Folder { .. })
            | (Held::Special, Version::Special) => true,
            (Held::Link(one), Version::Link { target }) => one == target,
            (Held::File(source), Version::File { content, stamp, .. }) => {
                let known = match source {
                    Source::Now(stamp) => Some(stamp),
                    Source::Saved(_, stamp) => stamp.as_ref(),
                    Source::Merged(_) => None,
                };
                // What can be read is not believed by its times: a program may have set them back.
                let readable = matches!((source, content), (Source::Now(_), Content::Blob(_) | Content::Kept(_)));
                if known.zip(stamp.as_ref()).is_some_and(|(one, other)| match readable {
                    true => one.same_state(other),
                    false => one.same_content(other),
                }) {
                    return true;
                }
                match (source, content) {
                    (Source::Saved(one, _), other) if one == other => true,
                    (Source::Now(_), Content::Kept(name)) => {
                        recorded::same_files(path, &self.store.dir().join(name)).unwrap_or(false)
                    }
                    (source, Content::Blob(blob)) => {
                        self.bytes(path, source).is_ok_and(|bytes| sha256_hex(&bytes) == blob.0)
                    }
                    (source, Content::Kept(_)) => self
                        .bytes(path, source)
                        .ok()
                        .zip(self.load(content).ok())
                        .is_some_and(|(one, other)| one == other),
                    (_, Content::Untouched | Content::Unsaved | Content::Lost(_)) => false,
                }
            }
            _ => false,
        }
    }

    /// What a file holds, or would.
    pub(super) fn bytes(&self, path: &Path, source: &Source) -> Result<Vec<u8>, String> {
        match source {
            Source::Now(stamp) if stamp.size > LARGEST => Err("is too large".to_owned()),
            Source::Now(_) => fs::read(path).map_err(failed),
            Source::Saved(content, _) => self.load(content),
            Source::Merged(bytes) => Ok(bytes.clone()),
        }
    }

    /// Whether the file holds what a kill left in the middle of our writing it in place: nobody else's bytes.
    fn is_half(&self, change: &Change, path: &Path, to: &Held) -> bool {
        let Held::File(source) = to else { return false };
        change.open && self.is_half_of(change, self.bytes(path, source).ok().as_deref())
    }

    pub(super) fn is_half_of(&self, change: &Change, found: Option<&[u8]>) -> bool {
        let bytes = |version: &Version| version.blob().and_then(|blob| self.store.sound_blob(blob));
        let versions: Vec<&Version> = [&change.before].into_iter().chain(&change.left).rev().take(2).collect();
        let [new, old] = versions.as_slice() else { return false };
        match (found, bytes(old), bytes(new)) {
            (Some(found), Some(old), Some(new)) => is_half_written(found, &old, &new),
            _ => false,
        }
    }

    /// Whether a path still holds what it was to lose.
    pub(super) fn in_effect(&self, file: &Replaced) -> bool {
        let links = matches!(file.from, Version::Link { .. });
        look(&file.path, links).is_ok_and(|found| {
            // One that holds something else stays.
            if found != Version::Absent && matches!((&file.from, &file.to), (Version::Folder { .. }, Version::Absent)) {
                return fs::read_dir(&file.path).is_ok_and(|mut entries| entries.next().is_none());
            }
            if let (Version::Folder { mode: was }, Version::Folder { .. }) = (&file.from, &file.to) {
                return matches!(found, Version::Folder { mode } if mode == *was);
            }
            let modes = only_modes(&file.from, &file.to);
            self.same(&file.path, &held(&found), &file.from) && (!modes || found.mode() == file.from.mode())
                || modes && matches!(found, Version::File { .. }) && found.mode() == file.from.mode()
        })
    }
}

/// Whether a change leaves the content of a file alone.
fn only_mode(change: &Change) -> bool {
    only_modes(&change.before, change.after())
}

fn only_modes(one: &Version, other: &Version) -> bool {
    let untouched = |version: &Version| matches!(version, Version::File { content: Content::Untouched, .. });
    untouched(one) && untouched(other)
}

pub(super) fn held(version: &Version) -> Held {
    match version {
        Version::Absent => Held::Absent,
        Version::File { content: Content::Unsaved, stamp: Some(stamp), .. } => Held::File(Source::Now(*stamp)),
        Version::File { content, stamp, .. } => Held::File(Source::Saved(content.clone(), *stamp)),
        Version::Link { target } => Held::Link(target.clone()),
        Version::Folder { .. } => Held::Folder,
        Version::Special => Held::Special,
    }
}

pub(super) fn failed(error: io::Error) -> String {
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

/// The first link on the way to a path.
pub(super) fn first_link(path: &Path) -> Option<PathBuf> {
    let above: Vec<&Path> = path.ancestors().collect();
    above
        .into_iter()
        .rev()
        .find(|part| fs::symlink_metadata(part).is_ok_and(|meta| meta.is_symlink()))
        .map(Path::to_owned)
}

/// What is at a path now, with no link on the way there; its content is not read. A link at its end is an error unless
/// links are expected there.
pub(super) fn look(path: &Path, links: bool) -> Result<Version, String> {
    let checked = match links {
        true => path.parent().map_or(Ok(()), links::still),
        false => links::still(path),
    };
    checked.map_err(|error| format!("was left as it is: {error}"))?;
    match fs::symlink_metadata(path) {
        Err(error) if is_absent(&error) => Ok(Version::Absent),
        meta => meta.and_then(|meta| recorded::seen(path, &meta)).map_err(failed),
    }
}
