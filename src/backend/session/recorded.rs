//! What recorded commands changed: their manifests, closed with what each path holds once the command has ended.

mod closing;
mod finished;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::closing::Closing;
pub use self::finished::Finished;
use super::changes::{Change, Ran};
use super::entry::{Content, Replaced, Version};
use super::names::Names;
use super::store::Store;
use crate::sandbox::record::{LIVE, MANIFEST, Manifest, Number, Stamp, Touched};
use crate::stdx::{path_text, sparse};

/// Folder of the records in that of a session.
const FOLDER: &str = "commands";
/// What a command changed, path by path.
const CHANGES: &str = "changes.jsonl";
/// What it had left there, saved when it was undone.
const CONTENTS: &str = "contents.jsonl";

/// Stamps of files that undo wrote: the same content under another stamp.
const RESTORED: &str = "restored.jsonl";

/// Largest file whose content after a command is kept, so that later changes of others can be merged, in bytes; and most
/// bytes of one command.
const AFTER: u64 = 256 << 10;
const AFTERS: u64 = 2 << 20;

/// Coarsest clock of a file system that counts in nanoseconds, in nanoseconds: two changes within it may bear one time.
const CLOCK: u64 = 20_000_000;

/// How soon after its end a record is closed, in nanoseconds: later, others may have changed what the command left.
const SOON: u64 = 2_000_000_000;

/// Records are kept up to this size; then the oldest go.
pub const MOST_BYTES: u64 = 2 << 30;

/// One line of what a command changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Row {
    #[serde(with = "path_text")]
    path: PathBuf,
    before: Version,
    after: Version,
    /// When the command was about to touch it for the first time, and when all had ended, in nanoseconds since 1970.
    #[serde(default)]
    during: (u64, u64),
    /// Somebody else had changed it since the command had last touched it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    since: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Later {
    #[serde(with = "path_text")]
    path: PathBuf,
    content: Content,
}

/// A file that undo wrote with a content that it once had.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Again {
    #[serde(with = "path_text")]
    pub(super) path: PathBuf,
    pub(super) was: Stamp,
    pub(super) is: Stamp,
    /// A command made it, another file with the same content: it has none of the names of the first one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) apart: bool,
}

/// Where a command's record is.
pub fn folder(store: &Store, record: &str) -> PathBuf {
    store.dir().join(FOLDER).join(record)
}

/// Closes the record of a command that has ended: keeps what changed, and how the command left it. Can be done again after a
/// kill.
///
/// # Errors
/// What the file system says.
pub fn finish(store: &Store, record: &str) -> io::Result<Finished> {
    let folder = folder(store, record);
    // As the supervisor names it.
    let folder = folder.canonicalize().unwrap_or(folder);
    let manifest = Manifest::read(&folder)?;
    if !manifest.began {
        return match rows(&folder) {
            Ok(rows) => Ok(told(&rows, Vec::new())),
            Err(_) => Ok(Finished::unseen("what it changed was not recorded")),
        };
    }
    let mut closing = Closing {
        store,
        folder: &folder,
        record,
        rows: Vec::new(),
        missed: manifest.missed,
        room: AFTERS,
        elsewhere: HashMap::new(),
        again: Vec::new(),
        names: Vec::new(),
        ended: now(),
        late: manifest.ended.filter(|ended| now().saturating_sub(*ended) > SOON),
    };
    let (live, named): (Vec<&Touched>, Vec<&Touched>) =
        manifest.touched.iter().partition(|touched| touched.path.starts_with(closing.folder));
    for touched in named {
        closing.close(touched)?;
    }
    for touched in live.into_iter().filter(|touched| touched.path.exists()) {
        closing.close_live(touched)?;
    }
    let Closing { rows, missed, again, names, .. } = closing;
    write_again(store, &again)?;
    Names::note(store, &names)?;
    let finished = told(&rows, missed);
    if rows.is_empty() {
        fs::remove_dir_all(&folder)?;
        return Ok(finished);
    }
    let live = rows.iter().filter(|row| row.path.starts_with(&folder)).filter_map(|row| row.path.file_name()?.to_str());
    let names =
        names.iter().filter(|name| name.path.starts_with(&folder)).filter_map(|name| name.path.file_name()?.to_str());
    let versions = rows.iter().flat_map(|row| [&row.before, &row.after]);
    let kept: HashSet<&str> = versions.filter_map(|version| own(version, record)).chain(live).chain(names).collect();
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    {
        let mut writer = BufWriter::new(file.as_file_mut());
        for row in &rows {
            serde_json::to_writer(&mut writer, row)?;
            writer.write_all(b"\n")?;
        }
        writer.flush()?;
    }
    file.persist(folder.join(CHANGES)).map_err(|error| error.error)?;
    // Not before: where that fails, all of it is needed once more.
    for entry in fs::read_dir(&folder)?.flatten() {
        let name = entry.file_name();
        if name != MANIFEST && name != CHANGES && !name.to_str().is_some_and(|name| kept.contains(name)) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(folder.join(MANIFEST))?;
    Ok(finished)
}

/// Closes it as `finish`, or tells what was touched where that cannot be done now, such as on a full disk: it is closed before
/// it is undone.
pub fn finish_or_tell(store: &Store, record: &str) -> Finished {
    finish(store, record).unwrap_or_else(|error| {
        let folder = folder(store, record);
        let folder = folder.canonicalize().unwrap_or(folder);
        let Manifest { touched, missed, .. } = Manifest::read(&folder).unwrap_or_default();
        let paths = touched.into_iter().map(|touched| touched.path);
        let mut known = HashSet::new();
        let changed: Vec<PathBuf> =
            paths.filter(|path| !path.starts_with(&folder) && known.insert(path.clone())).collect();
        match changed.is_empty() {
            true => Finished::unseen(format!("its record is damaged: {error}")),
            false => Finished { changed, missed, ..Finished::default() },
        }
    })
}

/// Closes what `finish_or_tell` could not close.
///
/// # Errors
/// What the file system says.
pub(super) fn finish_late(store: &Store, records: &[String]) -> io::Result<()> {
    let mut open = records.iter().filter(|record| folder(store, record).join(MANIFEST).exists());
    open.try_for_each(|record| finish(store, record).map(drop))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// How many names a file has.
pub(super) fn links(path: &Path) -> io::Result<u64> {
    let meta = fs::symlink_metadata(path)?;
    #[cfg(unix)]
    return Ok(std::os::unix::fs::MetadataExt::nlink(&meta));
    #[cfg(not(unix))]
    return Ok(u64::from(meta.is_file()));
}

/// What is at a path, from the outside.
pub(super) fn seen(path: &Path, meta: &fs::Metadata) -> io::Result<Version> {
    let mode = super::files::mode_of(meta);
    Ok(match meta.file_type() {
        kind if kind.is_file() => Version::File { content: Content::Unsaved, mode, stamp: Some(Stamp::of(meta)) },
        kind if kind.is_dir() => Version::Folder { mode },
        kind if kind.is_symlink() => Version::Link { target: fs::read_link(path)? },
        _ => Version::Special,
    })
}

/// The name of a file that this record keeps.
fn own<'a>(version: &'a Version, record: &str) -> Option<&'a str> {
    match version {
        Version::File { content: Content::Kept(name), .. } => {
            name.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_prefix(record)?.strip_prefix('/')
        }
        _ => None,
    }
}

fn told(rows: &[Row], mut missed: Vec<String>) -> Finished {
    let mut finished = Finished::default();
    let (mut firsts, mut lasts) = (Vec::new(), HashMap::new());
    // Other names of files are not known.
    for Row { path, before, after, .. } in rows.iter().filter(|row| row.path.extension() != Some(LIVE[1..].as_ref())) {
        if lasts.insert(path, after).is_none() {
            firsts.push((path, before));
        }
    }
    for (path, before) in firsts {
        let Some(after) = lasts.get(path) else { continue };
        match (before, after) {
            (Version::Folder { .. }, Version::Folder { .. }) => finished.changed.push(path.clone()),
            // Of folders that come and go, what is in them says enough.
            (Version::Absent, Version::Folder { .. }) | (Version::Folder { .. }, Version::Absent) => {}
            (Version::Absent, _) => finished.created.push(path.clone()),
            (_, Version::Absent) => finished.deleted.push(path.clone()),
            _ => finished.changed.push(path.clone()),
        }
    }
    if finished.files() == 0 {
        // Empty folders.
        let of = |gone: bool| {
            let chosen = rows.iter().filter(move |row| (row.after == Version::Absent) == gone);
            chosen.map(|row| row.path.clone()).collect::<Vec<_>>()
        };
        (finished.created, finished.deleted) = (of(false), of(true));
    }
    missed.dedup();
    finished.missed = missed;
    finished
}

fn rows(folder: &Path) -> io::Result<Vec<Row>> {
    let path = folder.join(CHANGES);
    fs::metadata(&path)?;
    Ok(lines(&path, |row| row))
}

/// Reads records, one after the other.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    store: &'a Store,
    /// By what they were.
    restored: OnceCell<HashMap<(Number, i64), Vec<Again>>>,
}

impl Reader<'_> {
    pub(super) fn new(store: &Store) -> Reader<'_> {
        Reader { store, restored: OnceCell::new() }
    }

    /// What a command changed, as far as it counts; nothing where its record is gone.
    pub(super) fn read(&self, ran: &Ran) -> Vec<Change> {
        let folder = folder(self.store, &ran.record);
        let later: HashMap<PathBuf, Content> = lines(&folder.join(CONTENTS), |Later { path, content }| (path, content));
        let change = |row: Row| {
            let Row { path, before, mut after, during, since } = row;
            if let (Version::File { content: content @ Content::Unsaved, .. }, Some(saved)) =
                (&mut after, later.get(&path))
            {
                *content = saved.clone();
            }
            let mut left = self.again(&after);
            left.push(after);
            let (record, commands, entries) = (Some(ran.record.clone()), vec![ran.seq], (ran.seq, ran.until));
            Change { record, commands, entries, during: Some(during), since, ..Change::new(path, before, left, false) }
        };
        let rows = rows(&folder).unwrap_or_default();
        rows.into_iter().filter(|row| ran.counts(&row.path, row.during.0)).map(change).collect()
    }

    /// The same content as undo wrote it again. A state of a file is the same under all of its names.
    fn again(&self, version: &Version) -> Vec<Version> {
        let Version::File { content, mode, stamp: Some(stamp) } = version else { return Vec::new() };
        let restored = self.restored.get_or_init(|| {
            let mut known: HashMap<(Number, i64), Vec<Again>> = HashMap::new();
            let all: Vec<Again> = restored(self.store);
            all.into_iter()
                .for_each(|again| known.entry((again.was.number(), again.was.mtime)).or_default().push(again));
            known
        });
        let mut stamps = vec![*stamp];
        // Each of them may itself have been written again.
        let mut at = 0;
        while let Some(stamp) = stamps.get(at).copied() {
            for Again { is, .. } in restored.get(&(stamp.number(), stamp.mtime)).into_iter().flatten() {
                if !stamps.iter().any(|known| known.same_content(is)) {
                    stamps.push(*is);
                }
            }
            at += 1;
        }
        let version = |stamp: Stamp| Version::File { content: content.clone(), mode: *mode, stamp: Some(stamp) };
        stamps.into_iter().skip(1).map(version).collect()
    }
}

/// All files that undo wrote with a content that they once had, in that order.
pub(super) fn restored(store: &Store) -> Vec<Again> {
    lines(&store.dir().join(RESTORED), |again| again)
}

/// The lines of a file that can be read.
pub(super) fn lines<T: DeserializeOwned, U, L: FromIterator<U>>(path: &Path, map: impl Fn(T) -> U) -> L {
    let file = File::open(path).ok().map(BufReader::new);
    let lines = file.into_iter().flat_map(|file| file.split(b'\n').map_while(Result::ok));
    lines.filter_map(|line| serde_json::from_slice(&line).ok()).map(map).collect()
}

/// Notes the stamps of files that were written with a content that they once had.
///
/// # Errors
/// What the file system says.
pub(super) fn note_restored<'a>(store: &Store, files: impl Iterator<Item = &'a Replaced>) -> io::Result<()> {
    let again = |file: &Replaced| {
        let Version::File { content: Content::Blob(_) | Content::Kept(_), stamp: Some(was), .. } = &file.to else {
            return None;
        };
        let is = Stamp::of(&fs::symlink_metadata(&file.path).ok()?);
        Some(Again { path: file.path.clone(), was: *was, is, apart: false })
    };
    write_again(store, &files.filter_map(again).collect::<Vec<_>>())
}

fn write_again(store: &Store, again: &[Again]) -> io::Result<()> {
    if again.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    for again in again {
        serde_json::to_writer(&mut bytes, again)?;
        bytes.push(b'\n');
    }
    let path = store.dir().join(RESTORED);
    OpenOptions::new().append(true).create(true).open(path)?.write_all(&bytes)
}

/// Notes where the content is that a command left, now that it is saved.
///
/// # Errors
/// What the file system says.
pub(super) fn note(store: &Store, record: &str, path: &Path, content: &Content) -> io::Result<()> {
    let mut line = serde_json::to_vec(&Later { path: path.to_owned(), content: content.clone() })?;
    line.push(b'\n');
    OpenOptions::new().append(true).create(true).open(folder(store, record).join(CONTENTS))?.write_all(&line)
}

/// Whether two files hold the same.
///
/// # Errors
/// What the file system says.
pub(super) fn same_files(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (is, was) = (Stamp::of(&one.metadata()?), Stamp::of(&other.metadata()?));
    if cfg!(unix) && is.same_file(&was) {
        return Ok(true);
    }
    if is.size != was.size {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let count = one.read(&mut left)?;
        if count == 0 {
            return Ok(true);
        }
        match other.read_exact(&mut right[..count]) {
            Ok(()) if left[..count] == right[..count] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Removes the oldest records until the rest takes no more than `most` bytes; the last one stays. Returns how many went.
///
/// # Errors
/// What the file system says.
pub(super) fn retain(store: &Store, records: &[String], most: u64) -> io::Result<usize> {
    let size = |record: &String| {
        let files = fs::read_dir(folder(store, record)).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|meta| sparse::allocated(&meta)).sum::<u64>()
    };
    let sizes: Vec<u64> = records.iter().map(size).collect();
    let (mut total, mut gone) = (sizes.iter().sum::<u64>(), 0);
    for (record, size) in records.iter().zip(sizes).take(records.len().saturating_sub(1)) {
        if total <= most {
            break;
        }
        if size > 0 {
            fs::remove_dir_all(folder(store, record))?;
            (total, gone) = (total - size, gone + 1);
        }
    }
    Ok(gone)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
