//! A session that is open: its log, and everything that is folded from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::SystemTime;

use uuid::Uuid;

use super::changes::Changes;
use super::context::Context;
use super::entry::{Entry, EntryKind, Header, Seq, VERSION};
use super::error::Error;
use super::facts::Facts;
use super::line::{self, Tag};
use super::load::{Loaded, fold};
use super::log::{FILE, Line, Lines, Scan, Writer, is_main};
use super::meta::{Count, Meta};
use super::offsets::{self, Snapshot};
use super::packed::Packed;
use super::store::Store;
use super::timeline::Timeline;
use super::transcripts::Transcripts;
use crate::stdx::fs::private_dir;

/// Tells the time: what entries are stamped with.
pub type Clock = fn() -> SystemTime;

/// An open session. One process writes it; others may read.
#[derive(Debug)]
pub struct Session {
    id: String,
    pub(super) store: Store,
    pub(super) log: PathBuf,
    /// None: open to read only.
    pub(super) writer: Option<Writer>,
    clock: Clock,
    pub(super) lines: Packed,
    pub(super) timeline: Timeline,
    pub(super) changes: Changes,
    pub(super) context: Context,
    pub(super) facts: Facts,
    pub(super) next_seq: Seq,
    next_call: u64,
    notices: Vec<String>,
    /// What the log is as a file, for its caches.
    pub(super) scan: Scan,
    count: Count,
    /// Number of lines that the index knows.
    pub(super) indexed: usize,
    /// The number of the newest sub-agent.
    agents: Arc<AtomicU32>,
}

impl Session {
    /// Begins a session in `home`. Touches nothing: folder and log are made with the first prompt.
    pub fn create(home: &Path, cwd: &Path, version: &str, clock: Clock) -> Session {
        Session::begin(home, cwd, version, clock, None)
    }

    pub(super) fn begin(home: &Path, cwd: &Path, version: &str, clock: Clock, forked_from: Option<String>) -> Session {
        let id = Uuid::now_v7().to_string();
        let dir = home.join(&id);
        let header = Header { session: id, cwd: cwd.to_owned(), version: version.to_owned(), forked_from };
        Session::begin_at(dir.join(FILE), Store::new(dir), header, clock)
    }

    /// Starts a log at its own place.
    pub(super) fn begin_at(log: PathBuf, store: Store, header: Header, clock: Clock) -> Session {
        let id = header.session.clone();
        let mut session = Session {
            store,
            writer: Some(Writer::lazy(log.clone(), &id)),
            log,
            clock,
            lines: Packed::default(),
            timeline: Timeline::default(),
            changes: Changes::default(),
            context: Context::new(header.cwd.clone()),
            facts: Facts::default(),
            next_seq: 0,
            next_call: 1,
            notices: Vec::new(),
            scan: Scan::default(),
            count: Count::default(),
            indexed: 0,
            agents: Arc::default(),
            id,
        };
        let entry = session.stamp(EntryKind::Header(header));
        // The header waits with the writer, so that this cannot fail.
        let _ = session.put(entry);
        session
    }

    /// Opens a session to continue it.
    ///
    /// # Errors
    /// `Locked` when another process writes it, `NotFound` for an invalid id, `NotASession` when no entry can be
    /// read; otherwise what the file system says.
    pub fn open(home: &Path, id: &str, clock: Clock) -> Result<Session, Error> {
        let log = log_of(home, id)?;
        Session::open_at(log, id, clock)
    }

    /// Opens the log at its own place to continue it.
    pub(super) fn open_at(log: PathBuf, id: &str, clock: Clock) -> Result<Session, Error> {
        let writer = Writer::lock(log.clone(), id)?;
        Session::load(log, id, clock, Some(writer))
    }

    /// Opens a session to look at it; also while another process writes it.
    ///
    /// # Errors
    /// As `open`, but for `Locked`.
    pub fn open_read_only(home: &Path, id: &str, clock: Clock) -> Result<Session, Error> {
        let log = log_of(home, id)?;
        Session::load(log, id, clock, None)
    }

    fn load(log: PathBuf, id: &str, clock: Clock, mut writer: Option<Writer>) -> Result<Session, Error> {
        let mut loaded = match writer.as_ref().and_then(Writer::file) {
            Some(file) => Loaded::read(file, &log),
            None => fs::File::open(&log).and_then(|file| Loaded::read(&file, &log)),
        }
        .map_err(|error| Error::io("read", &log, error))?;
        if loaded.lines.is_empty() {
            return Err(Error::NotASession { path: log });
        }
        if let Some(writer) = &mut writer {
            writer.resume(&loaded.scan)?;
        }
        let cwd = loaded.facts.header.as_ref().map_or_else(|| PathBuf::from("."), |header| header.cwd.clone());
        let scan = loaded.scan.clone();
        let (context, damaged) = fold(&log, &loaded.lines, &loaded.timeline, cwd)?;
        loaded.scan.damaged += damaged;
        let dir = log.parent().map(Path::to_owned).unwrap_or_default();
        let mut count = Count::default();
        loaded.lines.iter().for_each(|line| count.add(line.tag));
        let mut session = Session {
            id: id.to_owned(),
            store: Store::new(dir),
            log,
            writer,
            clock,
            context,
            notices: loaded.notices(),
            lines: loaded.lines.into_iter().collect(),
            timeline: loaded.timeline,
            changes: loaded.changes,
            facts: loaded.facts,
            next_seq: loaded.next_seq,
            next_call: loaded.next_call,
            agents: Arc::default(),
            scan,
            count,
            indexed: loaded.indexed,
        };
        session.save_index();
        if session.writer.is_some() {
            let left = session.remove_leftovers();
            session.notices.extend(left);
        }
        Ok(session)
    }

    /// Begins a new session with the entries of another one before `upto`, or all of them. Blobs are linked where the
    /// file system can, else copied.
    ///
    /// # Errors
    /// What reading the one or writing the other says.
    pub fn fork(home: &Path, id: &str, upto: Option<Seq>, clock: Clock) -> Result<Session, Error> {
        let parent = Session::open_read_only(home, id, clock)?;
        let header = parent.header();
        let mut fork = Session::begin(home, &header.cwd, &header.version, clock, Some(parent.id.clone()));
        if let Err(error) = fork.copy_from(&parent, upto) {
            // Half a copy is of no use, and the error says what is wrong.
            let _ = fs::remove_dir_all(fork.store.dir());
            return Err(error);
        }
        let (log, id, writer) = (fork.log.clone(), fork.id.clone(), fork.writer.take());
        match writer {
            Some(writer) if writer.exists() => Session::load(log, &id, clock, Some(writer)),
            writer => Ok(Session { writer, ..fork }),
        }
    }

    fn copy_from(&mut self, parent: &Session, upto: Option<Seq>) -> Result<(), Error> {
        link_blobs(&parent.store, &self.store)?;
        let mut lines = Lines::open(&parent.log)?;
        let (mut bytes, mut copy) = (Vec::new(), Vec::new());
        for line in parent.lines.iter().filter(|line| upto.is_none_or(|upto| line.seq < upto)) {
            lines.read(line, &mut bytes).map_err(|error| Error::io("read", &parent.log, error))?;
            let header = line.tag == Tag::Other
                && line::parse(&bytes).is_some_and(|entry| matches!(entry.kind, EntryKind::Header(_)));
            if !header {
                // Entries keep their seq, which others refer to.
                copy.extend_from_slice(&bytes);
                copy.push(b'\n');
            }
            if copy.len() > 1 << 20 {
                self.writer()?.commit(&copy)?;
                copy.clear();
            }
        }
        if !copy.is_empty() {
            self.writer()?.commit(&copy)?;
        }
        self.sync()
    }

    fn writer(&mut self) -> Result<&mut Writer, Error> {
        self.writer.as_mut().ok_or(Error::ReadOnly)
    }

    fn stamp(&self, kind: EntryKind) -> Entry {
        Entry { v: VERSION, seq: self.next_seq, id: Uuid::now_v7().to_string(), ts: self.now(), kind }
    }

    /// The time as entries bear it: RFC 3339, UTC, milliseconds.
    pub fn now(&self) -> String {
        let now = jiff::Timestamp::try_from((self.clock)()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        now.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
    }

    /// Writes an entry, then lets it count.
    ///
    /// # Errors
    /// `Full`, `Io` or `ReadOnly`: the entry is not in the log and nothing has changed.
    pub fn append(&mut self, kind: EntryKind) -> Result<Seq, Error> {
        let entry = self.stamp(kind);
        self.put(entry)
    }

    fn put(&mut self, entry: Entry) -> Result<Seq, Error> {
        let mut bytes = serde_json::to_vec(&entry).map_err(|error| Error::io("write", &self.log, error.into()))?;
        let len = bytes.len();
        bytes.push(b'\n');
        let writer = self.writer()?;
        let offset = writer.end();
        // What comes before the first prompt waits for it: a session without one leaves nothing behind.
        if writer.exists() || matches!(entry.kind, EntryKind::Message { .. } | EntryKind::TurnStarted) {
            writer.commit(&bytes)?;
        } else {
            writer.defer(&bytes);
        }
        let line = Line::new(offset, len, &entry);
        self.count.add(line.tag);
        self.lines.push(line);
        self.scan.last = Some((entry.seq, entry.id.clone()));
        self.next_seq = entry.seq + 1;
        self.next_call = self.next_call.max(super::load::next_call(&entry.kind));
        self.facts.record(&entry);
        self.changes.apply(entry.seq, &entry.kind);
        if self.timeline.push(entry.seq, &entry.kind) {
            let behind = match &entry.kind {
                EntryKind::CompactBoundary(boundary) => self.context.behind(entry.seq, boundary),
                _ => None,
            };
            match behind {
                Some(behind) => self.context = behind,
                None if self.writer()?.exists() => {
                    let cwd = self.header().cwd;
                    self.context = fold(&self.log, &self.unpacked(), &self.timeline, cwd)?.0;
                }
                None => {}
            }
        } else {
            self.context.apply(entry.seq, &entry.kind);
        }
        self.context.settle();
        if matches!(entry.kind, EntryKind::TurnEnded { .. } | EntryKind::CompactBoundary(_)) {
            self.save_index();
            if is_main(&self.log) {
                Meta::keep(&self.log, &self.facts, self.count);
            }
        }
        Ok(entry.seq)
    }

    /// Brings the index of the log up to date, now and then. A resume is only slower without.
    fn save_index(&mut self) {
        let Some(writer) = self.writer.as_ref().filter(|writer| writer.exists() && is_main(&self.log)) else { return };
        if !offsets::is_due(self.lines.len(), self.indexed) {
            return;
        }
        let scan = Scan { end: writer.end(), unterminated: false, torn: 0, ..self.scan.clone() };
        let snapshot = Snapshot {
            lines: &self.lines,
            timeline: &self.timeline,
            facts: &self.facts,
            changes: &self.changes,
            scan: &scan,
            next_call: self.next_call,
        };
        match offsets::save(&self.log, &snapshot) {
            Ok(()) => self.indexed = self.lines.len(),
            Err(error) => tracing::debug!(%error, "the log's index was not written"),
        }
    }

    /// Forces the log to disk: at the end of a turn and before a tool changes something.
    ///
    /// # Errors
    /// What the file system says.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.writer.as_mut().map_or(Ok(()), Writer::sync)
    }

    /// Where sub-agents of this session write.
    pub fn transcripts(&self) -> Transcripts {
        Transcripts::new(&self.header(), self.store.dir(), self.clock, self.agents.clone())
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the log is, or will be with the first prompt.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The session's folder: blobs and spilled output.
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The entry of the last boundary that counts.
    pub fn last_boundary(&self) -> Option<Seq> {
        Some(self.lines.get(self.timeline.live().boundary?)?.seq)
    }

    /// An entry as the log has it; `None` if it does not exist or cannot be read. Reads one line.
    pub fn entry(&self, seq: Seq) -> Option<Entry> {
        let line = self.lines.find(seq)?;
        let mut bytes = Vec::new();
        Lines::open(&self.log).ok()?.read(line, &mut bytes).ok()?;
        line::parse(&bytes).filter(|entry| entry.seq == seq)
    }

    /// The context as it would be after an entry that takes a boundary back or rewinds. Nothing is written.
    ///
    /// # Errors
    /// What reading the log says.
    pub fn preview(&self, kind: &EntryKind) -> Result<Context, Error> {
        let (mut timeline, mut lines) = (self.timeline.clone(), self.unpacked());
        timeline.push(self.next_seq, kind);
        lines.push(Line { offset: 0, len: 0, seq: self.next_seq, tag: Tag::Other, carries: false });
        let mut context = fold(&self.log, &lines, &timeline, self.header().cwd)?.0;
        if !matches!(kind, EntryKind::Rewind { .. }) {
            context.apply(self.next_seq, kind);
        }
        Ok(context)
    }

    /// The position of every line, for callers that look through all of them.
    pub(super) fn unpacked(&self) -> Vec<Line> {
        self.lines.iter().collect()
    }

    /// Mode, grants, trust, model and usage as the log has them.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    pub fn title(&self) -> Option<&str> {
        self.facts.title()
    }

    /// The first entry; where it was damaged, what is known without it.
    pub fn header(&self) -> Header {
        self.facts.header.clone().unwrap_or_else(|| Header {
            session: self.id.clone(),
            cwd: PathBuf::from("."),
            version: String::new(),
            forked_from: None,
        })
    }

    pub fn read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// True when nobody has prompted yet, so that nothing is on disk.
    pub fn is_empty(&self) -> bool {
        !self.facts.has_prompt()
    }

    /// The number of the next call, for `CallId::nth`: larger than that of any call in the log, rewound ones included.
    pub fn next_call(&self) -> u64 {
        self.next_call
    }

    /// The `seq` that the next entry gets.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// What was wrong with the log when it was opened; a sentence each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

/// The log of a session. An id that is not a UUID names no session, nor does a path.
fn log_of(home: &Path, id: &str) -> Result<PathBuf, Error> {
    let found = Uuid::parse_str(id).ok().map(|uuid| uuid.to_string()).filter(|uuid| uuid == id);
    let log = found.map(|id| home.join(id).join(FILE)).filter(|log| log.is_file());
    log.ok_or_else(|| Error::NotFound { query: id.to_owned() })
}

fn link_blobs(from: &Store, to: &Store) -> Result<(), Error> {
    let (source, target) = (from.dir().join("blobs"), to.dir().join("blobs"));
    let Ok(blobs) = fs::read_dir(&source) else { return Ok(()) };
    private_dir(&target).map_err(|error| Error::write(&target, error))?;
    for blob in blobs.flatten() {
        let path = target.join(blob.file_name());
        if fs::hard_link(blob.path(), &path).is_err() {
            fs::copy(blob.path(), &path).map_err(|error| Error::write(&path, error))?;
        }
    }
    Ok(())
}
