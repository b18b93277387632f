//! What undo knows of the files that a session changed: the changes, and contents as blobs next to the log.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::changes::{Change, Changes, Plan, Step, Temporary};
use super::entry::{Content, EntryKind, Replaced, Seq, Version};
use super::error::Error;
use super::known::Known;
use super::names::Names;
use super::recorded::{self, Reader};
use super::store::Store;
use super::without::{Held, Source, Together, Without, failed};
use crate::message::{BlobId, CallId};
use crate::sandbox::record::{Number, Stamp};
use crate::stdx::hash::sha256_hex;
use crate::stdx::replace::Replacement;
use crate::stdx::{links, regular};

/// Largest file whose content is saved, in bytes.
pub(super) const LARGEST: u64 = 64 << 20;

/// Content that is removed is kept under a second name from this size on, in bytes.
const LINKED: u64 = 1 << 20;

/// Folder of what undo removed, in that of a session.
const REMOVED: &str = "removed";

#[derive(Debug)]
pub struct Files {
    pub(super) changes: Changes,
    pub(super) store: Store,
}

/// A path that was changed, and what was there before the first change.
#[derive(Debug, Clone)]
pub struct First {
    pub path: PathBuf,
    version: Version,
    store: Store,
}

impl First {
    /// What was there; none when nothing was. Of a link it is the target.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub fn before(&self) -> Result<Option<Vec<u8>>, String> {
        let read = |path: PathBuf| {
            fs::read(path).map(Some).map_err(|error| format!("its saved content cannot be read: {error}"))
        };
        match &self.version {
            Version::Absent => Ok(None),
            Version::Link { target } => Ok(Some(target.as_os_str().as_encoded_bytes().to_vec())),
            Version::File { content: Content::Blob(blob), .. } => read(self.store.blob_path(blob)),
            Version::File { content: Content::Kept(name), .. } => read(self.store.dir().join(name)),
            Version::File { content: Content::Lost(why), .. } => Err(format!("its old content was not saved: {why}")),
            Version::File { content: Content::Untouched | Content::Unsaved, .. } => {
                Err("only its mode changed".to_owned())
            }
            Version::Folder { .. } => Err("was a folder".to_owned()),
            Version::Special => Err("was not a regular file".to_owned()),
        }
    }

    /// Folders are told by what is in them.
    fn tells(&self) -> bool {
        match self.version {
            _ if self.path.starts_with(self.store.dir()) => false,
            Version::Folder { .. } => !self.path.is_dir() && self.path.exists(),
            Version::Absent => !self.path.is_dir(),
            _ => true,
        }
    }
}

/// A path whose new content is worked out and saved.
pub(super) struct Ready {
    pub(super) file: Replaced,
    pub(super) replacement: Replacement,
    /// What somebody else changed is in the new content.
    pub(super) kept: bool,
    /// It is undone with what commands in the background did there later.
    pub(super) along: bool,
}

impl Files {
    /// Of a log without entries.
    pub(super) fn beside(log: &Path) -> Files {
        Files { changes: Changes::default(), store: Store::beside(log) }
    }

    /// Every path with a change in effect, in the order of the first changes.
    pub fn first_versions(&self) -> Vec<First> {
        let first = |(path, version)| First { path, version, store: self.store.clone() };
        let reader = Reader::new(&self.store);
        let firsts = self.changes.firsts(&|ran| reader.read(ran)).into_iter().map(first);
        firsts.filter(First::tells).collect()
    }

    pub(super) fn undo(&self) -> Option<Plan> {
        let reader = Reader::new(&self.store);
        self.changes.undo(&|ran| reader.read(ran)).map(|plan| self.whole(plan))
    }

    pub(super) fn redo(&self) -> Option<Plan> {
        let reader = Reader::new(&self.store);
        self.changes.redo(&|ran| reader.read(ran))
    }

    /// Names commands whose records are gone, too.
    fn whole(&self, mut plan: Plan) -> Plan {
        self.by_file(&mut plan.steps);
        let recorded = self.changes.recorded_since(plan.to);
        let lost = recorded.filter(|ran| !recorded::folder(&self.store, &ran.record).exists()).map(|ran| ran.seq);
        plan.commands.extend(lost);
        plan.commands.sort_unstable();
        plan.commands.dedup();
        plan
    }

    pub(super) fn rewind(&self, to: Seq) -> Plan {
        let reader = Reader::new(&self.store);
        self.whole(self.changes.rewind(to, &|ran| reader.read(ran)))
    }

    pub(super) fn back(&self, turn: Option<Seq>) -> Vec<Step> {
        let reader = Reader::new(&self.store);
        let mut steps = self.changes.back(turn, &|ran| reader.read(ran));
        self.by_file(&mut steps);
        steps
    }

    /// A file is one, however many names it has. What it was before the first change under any of them is what it was under
    /// all of them, though commands that came later found it changed already; and what a command left under one name may be
    /// what a later one made of it under another. The steps are in the order of the first changes. One is added for each file
    /// that was changed under a name which it loses now: it has others that nobody mentions.
    fn by_file(&self, steps: &mut Vec<Step>) {
        let names = Names::read(&self.store);
        let file = |version: &Version| version.stamp().map(|stamp| names.first(stamp));
        let mut known: HashMap<Number, Known> = HashMap::new();
        for (at, step) in steps.iter().enumerate() {
            for change in &step.chain {
                let (began, ended) = change.during.unwrap_or_default();
                if let Some(file) = file(&change.before).filter(|_| !change.since) {
                    let found = &mut known.entry(file).or_default().found;
                    *found = Some(found.map_or(began, |found| found.min(began)));
                }
                if let Some(file) = file(change.after()) {
                    known.entry(file).or_default().left.extend(change.left.iter().cloned());
                }
                // What somebody else made of it was not left by a command.
                let before = Some((began, &change.before)).filter(|_| !change.since);
                for (time, version) in before.into_iter().chain([(ended, change.after())]) {
                    if let Some(file) = file(version) {
                        let known = known.entry(file).or_default();
                        known.paths.insert(at);
                        known.versions.push((time, version.clone()));
                    }
                }
            }
        }
        known.values_mut().for_each(|known| known.versions.sort_by_key(|(time, _)| *time));
        let own = self.own_steps(&known, steps, &names);
        known.retain(|_, known| known.paths.len() > 1);
        let (mut contents, mut modes) = (HashMap::new(), HashMap::new());
        for step in steps.iter_mut() {
            for change in &mut step.chain {
                let (_, ended) = change.during.unwrap_or_default();
                let later = file(change.after()).and_then(|file| known.get(&file)).map(|known| &known.versions);
                let later = later.into_iter().flatten().filter(|(time, _)| *time > ended);
                for (_, version) in later {
                    let mut version = version.clone();
                    // Of one whose bits alone were changed, the content is what it was.
                    if let (Version::File { content: new, stamp: of, .. }, Version::File { content, stamp, .. }) =
                        (&mut version, change.after())
                        && [&*new, content].contains(&&Content::Untouched)
                    {
                        (*new, *of) = (content.clone(), *stamp);
                    }
                    change.left.push(version);
                }
            }
            let Some(first) = step.chain.last_mut().map(|first| &mut first.before) else { continue };
            let Some(file) = file(first).filter(|file| known.contains_key(file)) else { continue };
            if let Version::File { content, mode, stamp } = first {
                *mode = *modes.entry(file).or_insert(*mode);
                if *content != Content::Untouched {
                    (*content, *stamp) = contents.entry(file).or_insert_with(|| (content.clone(), *stamp)).clone();
                }
            }
        }
        steps.extend(own);
    }

    /// What puts files themselves back, which are kept because they lost a name while they had others. None where a step
    /// does already.
    fn own_steps(&self, known: &HashMap<Number, Known>, steps: &[Step], names: &Names) -> Vec<Step> {
        let ours = |path: &Path| path.starts_with(self.store.dir());
        let own = |known: &Known| {
            if known.paths.iter().any(|at| ours(&steps[*at].path)) {
                return None;
            }
            let stamp = known.versions.iter().find_map(|(_, version)| version.stamp())?;
            let path = names.others(stamp).find(|path| ours(path))?.to_owned();
            let change = known.change(path.clone())?;
            Some(Step::of(change))
        };
        let mut own: Vec<Step> = known.values().filter_map(own).collect();
        own.sort_by(|one, other| one.path.cmp(&other.path));
        own
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
                let (call, record, agent) = (CallId(String::new()), None, None);
                return Ok(Some(EntryKind::CommandRan { call, command, record, agent }));
            }
            Ok(meta) => {
                let bytes = fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
                let blob = BlobId(sha256_hex(&bytes));
                if !self.changes.latest(&path).is_some_and(|change| change.explains(Some(&blob))) {
                    self.store.put_blob(&bytes).map_err(|error| Error::write(self.store.dir(), error))?;
                }
                (Some(blob), mode_of(&meta))
            }
        };
        if self.changes.latest(&path).is_some_and(|change| change.explains(blob.as_ref())) {
            return Ok(None);
        }
        let missing = |folder: &&Path| fs::symlink_metadata(folder).is_err_and(|error| is_absent(&error));
        let folders = path.ancestors().skip(1).take_while(missing).count();
        Ok(Some(EntryKind::FileBefore { path, blob, mode, folders }))
    }

    /// The entry for what hooks made of a file that a tool changed, if they did; the new content is saved.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn touched(&self, path: &Path) -> Result<Option<EntryKind>, Error> {
        // What cannot be read now is refused when it is to be undone.
        let (Some(change), Ok(bytes)) = (self.changes.current(path), bytes_of(path)) else {
            return Ok(None);
        };
        let blob = bytes.as_deref().map(|bytes| BlobId(sha256_hex(bytes)));
        if blob.as_ref() == change.after().blob() {
            return Ok(None);
        }
        let kept = bytes.map(|bytes| self.store.keep_blob(&bytes)).transpose();
        kept.map_err(|error| Error::write(self.store.dir(), error))?;
        Ok(Some(EntryKind::FileTouched { path: path.to_owned(), blob }))
    }

    /// Number of files whose content before our first change is no longer there.
    pub(super) fn lost(&self) -> usize {
        // Records of commands are looked at when they are needed.
        let firsts = self.changes.firsts(&|_| Vec::new());
        firsts
            .iter()
            .filter_map(|(_, before)| before.blob())
            .filter(|blob| !self.store.blob_path(blob).exists())
            .count()
    }

    /// Names files that a kill left in the middle of our writing them in place, with what restores them.
    pub(super) fn half_written(&self) -> Vec<String> {
        let half = |change: &Change| {
            let found = regular::read(&change.path, LARGEST).ok();
            let hash = found.as_deref().map(|bytes| BlobId(sha256_hex(bytes)));
            change.open && !change.explains(hash.as_ref()) && self.is_half_of(change, found.as_deref())
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
        let told = left.map(told).collect();
        self.changes.fresh().iter().filter(|path| !path.exists()).for_each(|path| self.remove_folders(path));
        told
    }

    /// Removes the folders that were made for a file that is gone, as far as nothing else is in them.
    pub(super) fn remove_folders(&self, file: &Path) {
        let made = file.ancestors().skip(1).take_while(|folder| self.changes.made(folder));
        for folder in made {
            match links::still(folder).and_then(|()| fs::remove_dir(folder)) {
                Err(error) if !is_absent(&error) => break,
                _ => {}
            }
        }
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

    /// Works out what the path is to hold; `None` if it already does. Saves what it holds now, so that the step can be
    /// undone.
    pub(super) fn prepare(&self, step: &Step, all: &Together<'_>, forced: Forced) -> Result<Option<Ready>, String> {
        let along = |why: String| {
            if step.later.is_empty() {
                return Err(why);
            }
            // What came later cannot stay: it goes, too, where that puts everything back.
            let ready = self.without(&step.along(), all).and_then(|without| self.ready(without, forced));
            ready.map(|ready| ready.map(|ready| Ready { along: true, ..ready })).map_err(|_| why)
        };
        self.without(step, all).and_then(|without| self.ready(without, forced)).or_else(along)
    }

    pub(super) fn ready(&self, without: Without, forced: Forced) -> Result<Option<Ready>, String> {
        let Without { path, from, now, to, mode, kept, unsaved_by } = without;
        if to == now && (mode == from.mode() || matches!(to, Held::Absent | Held::Link(_) | Held::Special)) {
            return Ok(None);
        }
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            format!("was left as it is: its {what} content cannot be saved: {error}")
        };
        let replacement = Replacement::at(path.clone()).map_err(failed)?;
        let untouched = |mode| Version::File { content: Content::Untouched, mode, stamp: None };
        let (from, to) = match (from, to) {
            (Version::File { mode: was, .. }, to) if to == now => (untouched(was), untouched(mode)),
            (from, to) => {
                let from = match from {
                    Version::File { mode, stamp: Some(stamp), .. } => {
                        let saved = self.save_now(&path, &stamp, to == Held::Absent, forced);
                        let content = saved.map_err(|error| cannot("current", &error))?;
                        if let Some(record) = unsaved_by {
                            recorded::note(&self.store, &record, &path, &content)
                                .map_err(|error| cannot("current", &error))?;
                        }
                        Version::File { content, mode, stamp: Some(stamp) }
                    }
                    from => from,
                };
                let to = match to {
                    Held::Absent => Version::Absent,
                    Held::Link(target) => Version::Link { target },
                    Held::Folder => Version::Folder { mode },
                    Held::Special => Version::Special,
                    Held::File(Source::Saved(content, stamp)) => Version::File { content, mode, stamp },
                    Held::File(source) => {
                        let bytes = self.bytes(&path, &source)?;
                        let blob = self.keep(&bytes, forced).map_err(|error| cannot("new", &error))?;
                        Version::of(Some(blob), mode)
                    }
                };
                (from, to)
            }
        };
        let temporary = replacement.temporary().to_owned();
        Ok(Some(Ready { file: Replaced { path, from, to, temporary }, replacement, kept, along: false }))
    }

    /// Saves what a file holds, which is about to be replaced or removed.
    fn save_now(&self, path: &Path, stamp: &Stamp, removed: bool, forced: Forced) -> io::Result<Content> {
        // Under further names somebody, another step of this undo included, may write to it.
        let alone = recorded::links(path)? == 1 || stamp.size > LARGEST;
        if removed && stamp.size > LINKED && alone {
            let name = format!("{REMOVED}/{}", uuid::Uuid::new_v4().simple());
            crate::stdx::fs::private_dir(&self.store.dir().join(REMOVED))?;
            if fs::hard_link(path, self.store.dir().join(&name)).is_ok() {
                return Ok(Content::Kept(name));
            }
        }
        if stamp.size > LARGEST {
            return Err(io::Error::other("it is too large"));
        }
        Ok(Content::Blob(self.keep(&fs::read(path)?, forced)?))
    }

    fn keep(&self, bytes: &[u8], forced: Forced) -> io::Result<BlobId> {
        match forced {
            Forced::Each => self.store.put_blob(bytes),
            Forced::Later => self.store.keep_blob(bytes),
        }
    }

    pub(super) fn saved(&self, blob: &BlobId) -> Result<Vec<u8>, String> {
        let bytes = self
            .store
            .blob(blob)
            .map_err(|error| format!("was left as it is: its saved content cannot be read: {error}"))?;
        match sha256_hex(&bytes) == blob.0 {
            true => Ok(bytes),
            false => Err("was left as it is: its saved content is damaged".to_owned()),
        }
    }
}

/// When what is saved is forced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forced {
    Each,
    /// All of it at once, by the caller.
    Later,
}

pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What a file holds now; nothing if it does not exist.
fn bytes_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    links::still(path)?;
    let meta = match fs::symlink_metadata(path) {
        Err(error) if is_absent(&error) => return Ok(None),
        meta => meta?,
    };
    match meta.is_file() && meta.len() <= LARGEST {
        true => fs::read(path).map(Some),
        false => Err(io::Error::other("is not a regular file, or too large")),
    }
}

#[cfg(unix)]
pub(super) fn mode_of(meta: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o7777)
}

/// The permission bits of a file.
#[cfg(unix)]
pub(super) fn bits_of(stamp: &Stamp) -> Option<u32> {
    Some(stamp.mode & 0o7777)
}

#[cfg(not(unix))]
pub(super) fn bits_of(_stamp: &Stamp) -> Option<u32> {
    None
}

#[cfg(not(unix))]
pub(super) fn mode_of(_meta: &fs::Metadata) -> Option<u32> {
    None
}
