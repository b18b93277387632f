//! A record while it is closed: what each path held before the command and holds now, and what of that is kept.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{AFTER, Again, CLOCK, FOLDER, Row, links, own, same_files, seen};
use crate::sandbox::record::{LIVE, Stamp, Touched};
use crate::sandbox::{Before, Saved};
use crate::session::entry::{Content, Version};
use crate::session::names::Name;
use crate::session::store::Store;
use crate::session::without::first_link;
use crate::stdx::sparse;

/// A record while it is closed.
pub(super) struct Closing<'a> {
    pub(super) store: &'a Store,
    pub(super) folder: &'a Path,
    pub(super) record: &'a str,
    pub(super) rows: Vec<Row>,
    pub(super) missed: Vec<String>,
    /// Bytes that may still be saved of what files hold now.
    pub(super) room: u64,
    pub(super) elsewhere: HashMap<PathBuf, bool>,
    /// Files with the same content under another stamp.
    pub(super) again: Vec<Again>,
    /// Paths that are names of files with several.
    pub(super) names: Vec<Name>,
    pub(super) ended: u64,
    /// When the command had ended, where that is so long ago that others may have changed something since.
    pub(super) late: Option<u64>,
}

/// What is said where nobody knows what a command left.
const UNKNOWN: &str = "what the command left there was not saved";

impl Closing<'_> {
    pub(super) fn close(&mut self, touched: &Touched) -> io::Result<()> {
        let path = &touched.path;
        let meta = match fs::symlink_metadata(path) {
            // What is there now is not the command's.
            _ if touched.left.is_some() || self.is_elsewhere(path) => None,
            Ok(meta) => Some(meta),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
            Err(error) => {
                self.missed.push(format!("{}: {error}", path.display()));
                return Ok(());
            }
        };
        let after = match (&touched.left, &meta) {
            (Some(left), _) => self.version(&left.is, left.stamp),
            (None, None) => Version::Absent,
            (None, Some(meta)) => self.unless_later(seen(path, meta)?),
        };
        if let (Version::File { stamp: Some(stamp), .. }, Some(_)) = (&after, &meta)
            && links(path)? > 1
        {
            self.names.push(Name::of(path, stamp));
        }
        let mut before = self.version(&touched.before, touched.stamp);
        if touched.again {
            self.retimed(path, &mut before);
        }
        if let (Some(was), Some(meta)) = (touched.stamp, &meta) {
            let is = Stamp::of(meta);
            if (was.uid, was.gid) != (is.uid, is.gid) && was.ino == is.ino {
                self.missed.push(format!("the owner of {}", path.display()));
            }
        }
        let same = match (&before, &after) {
            // The call that would have changed it had to wait until it was saved.
            (Version::File { content: Content::Untouched, .. }, Version::File { .. }) => true,
            (Version::File { stamp: Some(was), .. }, Version::File { stamp: Some(is), .. }) => {
                let settled = touched.at.saturating_sub(was.mtime.unsigned_abs()) > CLOCK;
                (was.same_state(is) && settled || was.same_content(is) && touched.saved().is_none())
                    || was.size == is.size && self.same_bytes(touched, &after)?
            }
            (Version::Special, Version::Special) => true,
            (Version::Folder { .. }, Version::Folder { .. }) => true,
            (before, after) => before == after,
        };
        if let (true, Some(was), Version::File { stamp: Some(is), .. }) = (same, touched.stamp, &after)
            && !was.same_content(is)
        {
            self.again.push(Again { path: path.clone(), was, is: *is, apart: !was.same_file(is) });
        }
        // Another file with the same content changes what is written under the names of either.
        let of = before.stamp().zip(after.stamp());
        let replaced = of.is_some_and(|(was, is)| !was.same_file(is) && was.has_names(is));
        let same = same && !replaced;
        if same && before.mode() == after.mode() {
            return Ok(());
        }
        let mut after = after;
        if let (true, Version::File { content, .. }, Version::File { content: left, .. }) =
            (same, &mut before, &mut after)
        {
            (*content, *left) = (Content::Untouched, Content::Untouched);
        } else if let Version::File { content: Content::Lost(why), .. } = &before {
            self.missed.push(format!("{}: {why}", path.display()));
        } else if before == Version::Special {
            self.missed.push(format!("{}: it was not a regular file", path.display()));
        }
        if let Some(name) = own(&before, self.record) {
            let name = name.to_owned();
            self.part(&name, &before, touched.at)?;
        }
        self.keep_after(path, &mut after);
        let until = touched.left.as_ref().map_or(self.ended, |left| left.at);
        self.rows.push(Row { path: path.clone(), before, after, during: (touched.at, until), since: touched.since });
        Ok(())
    }

    /// What is there now as what the command left; not where somebody wrote to it after the end.
    fn unless_later(&self, found: Version) -> Version {
        let later = |stamp: &Stamp| {
            self.late.is_some_and(|ended| u64::try_from(stamp.mtime.max(stamp.born)).unwrap_or_default() > ended)
        };
        match found {
            Version::File { mode, stamp: Some(stamp), .. } if later(&stamp) => {
                Version::File { content: Content::Lost(UNKNOWN.to_owned()), mode, stamp: None }
            }
            found => found,
        }
    }

    /// What is kept under a second name may have got other times since: those tell from now on that it is what it was.
    fn retimed(&mut self, path: &Path, before: &mut Version) {
        let Some(name) = own(before, self.record) else { return };
        let found = fs::symlink_metadata(self.folder.join(name)).map(|meta| Stamp::of(&meta));
        if let (Ok(is), Version::File { stamp: Some(was), .. }) = (found, before)
            && was.same_file(&is)
            && was.size == is.size
            && !was.same_content(&is)
        {
            self.again.push(Again { path: path.to_owned(), was: *was, is, apart: false });
            *was = Stamp { links: was.links, ..is };
        }
    }

    /// A file that is kept itself because it had other names. It is a change of its own where it still has one that nobody
    /// mentions, and no path that is to be restored leads to it.
    pub(super) fn close_live(&mut self, touched: &Touched) -> io::Result<()> {
        let stamp = Stamp::of(&fs::symlink_metadata(&touched.path)?);
        let is = |version: &Version| matches!(version, Version::File { stamp: Some(of), .. } if of.same_file(&stamp));
        let restored = self.rows.iter().any(|row| is(&row.before) && is(&row.after));
        let known = 1 + self.rows.iter().filter(|row| is(&row.after)).count() as u64;
        if restored || links(&touched.path)? <= known { Ok(()) } else { self.close(touched) }
    }

    /// Whether a folder above a path is a link now: through it something else is seen.
    fn is_elsewhere(&mut self, path: &Path) -> bool {
        let Some(folder) = path.parent() else { return false };
        *self.elsewhere.entry(folder.to_owned()).or_insert_with(|| first_link(folder).is_some())
    }

    fn version(&self, was: &Before, stamp: Option<Stamp>) -> Version {
        match was {
            Before::Absent => Version::Absent,
            Before::Link { target } => Version::Link { target: target.clone() },
            Before::Folder { mode } => Version::Folder { mode: Some(*mode) },
            Before::Special => Version::Special,
            Before::File { mode, saved, .. } => {
                let content = match saved {
                    Saved::As(name) => Content::Kept(format!("{FOLDER}/{}/{name}", self.record)),
                    Saved::Untouched => Content::Untouched,
                    Saved::Lost(why) => Content::Lost(why.clone()),
                };
                Version::File { content, mode: Some(*mode), stamp }
            }
        }
    }

    /// Whether a file held the same before.
    fn same_bytes(&self, touched: &Touched, after: &Version) -> io::Result<bool> {
        let Some(before) = touched.saved() else { return Ok(false) };
        match after {
            Version::File { content: Content::Unsaved, .. } => same_files(&self.folder.join(before), &touched.path),
            Version::File { .. } => match own(after, self.record) {
                Some(name) => same_files(&self.folder.join(before), &self.folder.join(name)),
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// A file that is still somewhere else under another name is copied, so that nobody who writes to that changes what is
    /// kept here. What is too large to be copied is compared when it is needed. The file itself stays beside the copy: it may
    /// get its name back.
    fn part(&mut self, name: &str, before: &Version, at: u64) -> io::Result<()> {
        let kept = self.folder.join(name);
        if links(&kept)? < 2 {
            return Ok(());
        }
        let Ok(from) = File::open(&kept) else { return Ok(()) };
        let to = tempfile::NamedTempFile::new_in(self.folder)?;
        sparse::copy(&from, to.as_file())?;
        let live = self.folder.join(format!("{name}{LIVE}"));
        if let Some(stamp) = before.stamp().filter(|_| fs::hard_link(&kept, &live).is_ok()) {
            self.names.push(Name::of(&live, stamp));
            // Names that nobody mentions have its new mode, too.
            let is = crate::session::files::mode_of(&fs::symlink_metadata(&live)?);
            if before.mode() != is {
                let only = |mode| Version::File { content: Content::Untouched, mode, stamp: Some(*stamp) };
                let (before, after) = (only(before.mode()), only(is));
                let during = (at, self.ended);
                self.rows.push(Row { path: live, before, after, during, since: false });
            }
        }
        to.persist(&kept).map_err(|error| error.error)?;
        Ok(())
    }

    /// Saves what a small file holds now.
    fn keep_after(&mut self, path: &Path, after: &mut Version) {
        if let Version::File { content: content @ Content::Unsaved, stamp: Some(stamp), .. } = after
            && stamp.size <= AFTER.min(self.room)
            && let Ok(bytes) = fs::read(path)
            && let Ok(blob) = self.store.keep_blob(&bytes)
        {
            self.room -= stamp.size;
            *content = Content::Blob(blob);
        }
    }
}
