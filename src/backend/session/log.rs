//! `transcript.jsonl`: appended to by one process, read by any; torn and damaged lines do no harm.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::entry::{Entry, EntryKind, Seq};
use super::error::Error;
use super::folds::Folds;
use super::line::{Tag, glance};
use super::offsets;
use crate::message::Effect;
use crate::stdx::fs::private_dir;
use crate::stdx::regular;

/// The log's name in its session's folder.
pub const FILE: &str = "transcript.jsonl";

/// Whether a log is that of the session itself: what is cached of a log in its folder is of this one.
pub(super) fn is_main(log: &Path) -> bool {
    log.file_name().is_some_and(|name| name == FILE)
}

/// The log of an open session, and what is cached of it in its folder.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    /// None: open to read only.
    pub(super) writer: Option<Writer>,
    /// What the log is as a file, for its caches.
    pub(super) scan: Scan,
    /// Number of lines that the index knows.
    pub(super) indexed: usize,
}

impl Log {
    /// A log that does not exist yet.
    pub(super) fn begin(path: PathBuf, session: &str) -> Log {
        Log { writer: Some(Writer::lazy(path.clone(), session)), path, scan: Scan::default(), indexed: 0 }
    }

    pub(super) fn exists(&self) -> bool {
        self.writer.as_ref().is_some_and(Writer::exists)
    }

    pub(super) fn writer(&mut self) -> Result<&mut Writer, Error> {
        self.writer.as_mut().ok_or(Error::ReadOnly)
    }

    /// Writes an entry. What comes before the first prompt or `!` line waits for it: a session without any
    /// leaves nothing behind.
    ///
    /// # Errors
    /// `Full`, `Io` or `ReadOnly`: the entry is not in the log.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<Line, Error> {
        let mut bytes = serde_json::to_vec(entry).map_err(|error| Error::io("write", &self.path, error.into()))?;
        let len = bytes.len();
        bytes.push(b'\n');
        let writer = self.writer()?;
        let offset = writer.end();
        let says =
            matches!(entry.kind, EntryKind::Message { .. } | EntryKind::TurnStarted | EntryKind::ShellRan { .. });
        if writer.exists() || says {
            writer.commit(&bytes)?;
        } else {
            writer.defer(&bytes);
        }
        self.scan.last = Some((entry.seq, entry.id.clone()));
        Ok(Line::new(offset, len, entry))
    }

    /// Forces what was appended to disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        self.writer.as_mut().map_or(Ok(()), Writer::sync)
    }

    /// Brings the index of the log up to date, now and then. A resume is only slower without.
    pub(super) fn save_index(&mut self, folds: &Folds) {
        let Some(writer) = self.writer.as_ref().filter(|writer| writer.exists() && is_main(&self.path)) else { return };
        if !offsets::is_due(folds.lines.len(), self.indexed) {
            return;
        }
        let scan = Scan { end: writer.end(), unterminated: false, torn: 0, ..self.scan.clone() };
        match offsets::save(&self.path, folds, scan) {
            Ok(()) => self.indexed = folds.lines.len(),
            Err(error) => tracing::debug!(%error, "the log's index was not written"),
        }
    }
}

/// The position of one whole line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) offset: u64,
    /// Length in bytes without the newline.
    pub(super) len: usize,
    pub(super) seq: Seq,
    pub(super) tag: Tag,
    /// It sets what outlives a boundary: the todo list, the working directory, what the model was told of a task.
    pub(super) carries: bool,
}

impl Line {
    pub(super) fn new(offset: u64, len: usize, entry: &Entry) -> Line {
        let tag = Tag::of(&entry.kind);
        let sets = |effect: &Effect| matches!(effect, Effect::Todos { .. } | Effect::Cwd { .. } | Effect::Told { .. });
        let carries = match &entry.kind {
            EntryKind::Message { message } if matches!(tag, Tag::Results | Tag::Message) => {
                message.results().flat_map(|result| &result.effects).chain(&message.effects).any(sets)
            }
            _ => false,
        };
        Line { offset, len, seq: entry.seq, tag, carries }
    }
}

/// What reading through a log found besides its lines.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Scan {
    /// Bytes up to the end of the last complete line.
    pub(super) end: u64,
    /// The last line is complete but for its newline.
    pub(super) unterminated: bool,
    /// Bytes of a last line that was cut off in the middle.
    pub(super) torn: u64,
    /// Lines that could not be read, and duplicates.
    pub(super) damaged: u64,
    /// Lines that a newer version wrote.
    pub(super) newer: u64,
    /// The last entry's `seq` and id.
    pub(super) last: Option<(Seq, String)>,
}

/// Reads through a log from where an earlier scan ended, and hands each whole line to `visit`, in order. Its counts continue.
/// Holds one line in memory.
///
/// # Errors
/// What the file system says.
pub(super) fn scan(file: &File, earlier: Scan, mut visit: impl FnMut(Line, &[u8])) -> io::Result<Scan> {
    let mut reader = BufReader::with_capacity(1 << 18, file);
    reader.seek(SeekFrom::Start(earlier.end))?;
    let mut found = Scan { unterminated: false, torn: 0, ..earlier };
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            return Ok(found);
        }
        let whole = bytes.last() == Some(&b'\n');
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let glanced = match whole {
            true => glance(text),
            // The end of a cut line may look whole from outside, so it is parsed.
            false => glance(text).filter(|_| super::line::parse(text).is_some()),
        };
        match glanced {
            None if !whole => {
                found.torn = read;
                return Ok(found);
            }
            None => found.damaged += u64::from(!text.trim_ascii().is_empty()),
            Some(line) if found.last.as_ref().is_some_and(|(seq, id)| *seq == line.seq && *id == line.id) => {
                found.damaged += 1;
            }
            Some(line) => {
                found.newer += u64::from(line.newer);
                visit(Line { offset: found.end, len: text.len(), seq: line.seq, tag: line.tag, carries: false }, text);
                let (seq, id) = found.last.get_or_insert_default();
                *seq = line.seq;
                id.clear();
                id.push_str(&line.id);
            }
        }
        found.unterminated = !whole;
        found.end += read;
    }
}

/// Reads single lines back.
#[derive(Debug)]
pub(super) struct Lines(BufReader<File>);

impl Lines {
    /// # Errors
    /// What the file system says.
    pub(super) fn open(path: &Path) -> Result<Lines, Error> {
        let file = regular::open(path).map_err(|error| Error::io("read", path, error))?;
        Ok(Lines(BufReader::with_capacity(1 << 18, file)))
    }

    /// Reads a line's bytes into `bytes`. Lines read in ascending order share the buffer.
    pub(super) fn read(&mut self, line: Line, bytes: &mut Vec<u8>) -> io::Result<()> {
        let at = self.0.stream_position()?;
        self.0.seek_relative(line.offset as i64 - at as i64)?;
        bytes.resize(line.len, 0);
        self.0.read_exact(bytes)
    }
}

/// The writing end. Holds the lock on the log while it lives; makes no file before the first `commit`.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    session: String,
    file: Option<File>,
    /// Length of the file's good part, in bytes.
    len: u64,
    /// Lines that wait for the first commit.
    pending: Vec<u8>,
    /// A failed write may have left bytes after `len`.
    dirty: bool,
    /// Something was written since the last `sync`.
    unsynced: bool,
}

/// What became of an open log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Same,
    /// Its name is gone, or leads to another file.
    Lost,
    /// It is shorter than what was written.
    Cut,
}

impl Writer {
    /// A log that does not exist yet.
    pub(super) fn lazy(path: PathBuf, session: &str) -> Writer {
        Writer {
            path,
            session: session.to_owned(),
            file: None,
            len: 0,
            pending: Vec::new(),
            dirty: false,
            unsynced: false,
        }
    }

    /// Takes the lock on an existing log.
    ///
    /// # Errors
    /// `Locked` when another process holds it; otherwise what the file system says.
    pub(super) fn lock(path: PathBuf, session: &str) -> Result<Writer, Error> {
        // It is opened for good only after a look: a pipe in its place would never open.
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let file = regular::open(&path).and_then(|_| options.open(&path));
        let file = file.map_err(|error| Error::io("open", &path, error))?;
        take_lock(&file, &path, session)?;
        let mut writer = Writer::lazy(path, session);
        writer.file = Some(file);
        Ok(writer)
    }

    /// The file, once it exists.
    pub(super) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn exists(&self) -> bool {
        self.file.is_some()
    }

    /// Where the next line will start.
    pub(super) fn end(&self) -> u64 {
        self.len + self.pending.len() as u64
    }

    /// Goes on after what `scan` found: cuts a torn line off and ends one that lacks its newline.
    pub(super) fn resume(&mut self, scan: &Scan) -> Result<(), Error> {
        self.len = scan.end;
        self.dirty = scan.torn > 0;
        if scan.unterminated {
            self.write(b"\n")?;
        }
        Ok(())
    }

    /// Keeps a line back until the first commit, so that a session without a prompt leaves nothing behind.
    pub(super) fn defer(&mut self, line: &[u8]) {
        self.pending.extend_from_slice(line);
    }

    /// Writes a line, newline included, in one call.
    ///
    /// # Errors
    /// `Full` or `Io`; the log then ends with its last good line, and the line is not in it.
    pub(super) fn commit(&mut self, line: &[u8]) -> Result<(), Error> {
        if self.file.is_none() {
            self.create()?;
        }
        if self.pending.is_empty() {
            return self.write(line);
        }
        let mut lines = std::mem::take(&mut self.pending);
        let waiting = lines.len();
        lines.extend_from_slice(line);
        self.write(&lines).inspect_err(|_| {
            lines.truncate(waiting);
            self.pending = lines;
        })
    }

    /// Forces what was committed to disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        let Some(file) = self.file.as_ref().filter(|_| self.unsynced) else { return Ok(()) };
        file.sync_data().map_err(|error| Error::write(&self.path, error))?;
        self.unsynced = false;
        Ok(())
    }

    /// Creates the log again, with these bytes. What is in its place is kept next to it.
    ///
    /// # Errors
    /// `Locked` if another process writes the file that is there; otherwise what the file system says. The open file stays
    /// the log then.
    pub(super) fn write_anew(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let failed = |error| Error::write(&self.path, error);
        if let Ok(found) = regular::open(&self.path) {
            let ours = self.file.as_ref().and_then(|file| file.metadata().ok());
            let other =
                found.metadata().ok().zip(ours).is_none_or(|(one, other)| !super::watch::same_file(&one, &other));
            if other {
                take_lock(&found, &self.path, &self.session)?;
            }
        }
        // Whatever it is: a pipe or a link that leads nowhere is in the way, too.
        if self.path.symlink_metadata().is_ok() {
            let kept = (1..).map(|n| self.path.with_extension(format!("jsonl.found-{n}"))).find(|path| !path.exists());
            kept.map_or(Ok(()), |kept| fs::rename(&self.path, kept)).map_err(failed)?;
        }
        let (old, was) = (self.file.take(), self.len);
        (self.len, self.dirty) = (0, false);
        let written = self.create().and_then(|()| self.write(bytes)).and_then(|()| self.sync());
        if written.is_err() {
            if self.file.is_some() {
                // Half a copy must not pass for the log.
                let _ = fs::remove_file(&self.path);
            }
            (self.file, self.len) = (old, was);
        }
        written
    }

    fn create(&mut self) -> Result<(), Error> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private_dir(folder).map_err(|error| Error::write(folder, error))?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.path).map_err(|error| Error::write(&self.path, error))?;
        take_lock(&file, &self.path, &self.session)?;
        self.file = Some(file);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.dirty {
            file.set_len(self.len).map_err(|error| Error::write(&self.path, error))?;
            self.dirty = false;
        }
        self.unsynced = true;
        match file.write_all(bytes) {
            Ok(()) => {
                self.len += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // When this fails, too, the next write tries again, or the next open drops the torn line.
                self.dirty = file.set_len(self.len).is_err();
                Err(Error::write(&self.path, error))
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Closing is not enough: a process that is being started holds copies of all files until its program runs.
        if let Some(file) = &self.file {
            // What fails here is over with the file.
            let _ = file.unlock();
        }
    }
}

/// How long a lock is waited for. What a killed process was just starting holds copies of all files until its program runs.
const LOCK_TIME: Duration = Duration::from_millis(500);

fn take_lock(file: &File, path: &Path, session: &str) -> Result<(), Error> {
    let end = Instant::now() + LOCK_TIME;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(LOCK_TIME / 50),
            Err(fs::TryLockError::WouldBlock) => return Err(Error::Locked { session: session.to_owned() }),
            Err(fs::TryLockError::Error(error)) => return Err(Error::io("lock", path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_ends_with_the_writer_although_a_child_holds_the_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("s").join(FILE);
        let mut writer = Writer::lazy(path.clone(), "s");
        writer.commit(b"one\n").unwrap();
        let copy = writer.file.as_ref().unwrap().try_clone().unwrap();
        drop(writer);
        assert!(File::open(&path).unwrap().try_lock().is_ok());
        drop(copy);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_loses_the_line_that_did_not_fit_and_no_other() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("s").join(FILE);
        let mut writer = Writer::lazy(path.clone(), "s");
        writer.defer(b"header\n");
        // No room for the first lines: they wait for the next try.
        let full = || OpenOptions::new().append(true).open("/dev/full").unwrap();
        writer.file = Some(full());
        let error = writer.commit(b"one\n").unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(FILE) && text.contains("free some space"), "{text}");
        (writer.file, writer.dirty) = (None, false);
        writer.commit(b"one\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "header\none\n");

        // Half a line was written, and cutting it off failed: the next write does that first.
        let good = writer.file.replace(full());
        assert!(writer.commit(b"two\n").is_err());
        assert!(writer.dirty);
        fs::write(&path, "header\none\ntw").unwrap();
        writer.file = good;
        writer.commit(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "header\none\nthree\n");
        assert_eq!(writer.end(), 17);
    }
}
