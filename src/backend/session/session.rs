//! A session that is open: its log, and everything that is folded from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::SystemTime;

use uuid::Uuid;

use super::context::Context;
use super::entry::{Ended, Entry, EntryKind, Frozen, Header, Sent, Seq, VERSION};
use super::error::Error;
use super::facts::Facts;
use super::files::Files;
use super::folds::{Folds, Said};
use super::line::{self, Tag};
use super::load::{Loaded, project};
use super::log::{FILE, Line, Lines, Log, Writer, is_main};
use super::meta::Meta;
use super::store::{Store, TASKS};
use super::transcripts::Transcripts;
use crate::stdx::fs::private_dir;

/// Tells the time: what entries are stamped with.
pub type Clock = fn() -> SystemTime;

/// An open session. One process writes it; others may read.
#[derive(Debug)]
pub struct Session {
    id: String,
    pub(super) log: Log,
    pub(super) folds: Folds,
    context: Context,
    clock: Clock,
    notices: Vec<String>,
    /// The number of the newest sub-agent.
    agents: Arc<AtomicU32>,
}

impl Session {
    /// Begins a session in `home`. Touches nothing: folder and log are made with the first prompt.
    pub fn create(home: &Path, cwd: &Path, version: &str, clock: Clock) -> Session {
        Session::begin(home, (Uuid::now_v7().to_string(), cwd, version), clock, None)
    }

    /// As `create`, with an id that was chosen.
    ///
    /// # Errors
    /// There is such a session already.
    pub fn create_as(id: &str, home: &Path, cwd: &Path, version: &str, clock: Clock) -> Result<Session, Error> {
        Ok(Session::begin(home, (unused(home, id.to_owned())?, cwd, version), clock, None))
    }

    pub(super) fn begin(
        home: &Path,
        (id, cwd, version): (String, &Path, &str),
        clock: Clock,
        forked_from: Option<String>,
    ) -> Session {
        let log = home.join(&id).join(FILE);
        let header = Header { session: id, cwd: cwd.to_owned(), version: version.to_owned(), forked_from };
        Session::begin_at(log, header, clock)
    }

    /// Starts a log at its own place.
    pub(super) fn begin_at(log: PathBuf, header: Header, clock: Clock) -> Session {
        let id = header.session.clone();
        let mut session = Session {
            folds: Folds::new(&log),
            log: Log::begin(log, &id),
            context: Context::new(header.cwd.clone()),
            clock,
            notices: Vec::new(),
            agents: Arc::default(),
            id,
        };
        let entry = stamp(clock, 0, EntryKind::Header(header));
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
        if loaded.folds.lines.len() == 0 {
            return Err(Error::NotASession { path: log });
        }
        if let Some(writer) = &mut writer {
            writer.resume(&loaded.scan)?;
        }
        let scan = loaded.scan.clone();
        let (context, damaged) = loaded.folds.project(&log)?;
        loaded.scan.damaged += damaged;
        let mut session = Session {
            id: id.to_owned(),
            notices: loaded.notices(),
            log: Log { path: log, writer, scan, indexed: loaded.indexed },
            folds: loaded.folds,
            context,
            clock,
            agents: Arc::default(),
        };
        session.log.save_index(&session.folds);
        if !session.read_only() {
            session.notices.extend(session.folds.files.remove_leftovers());
            session.notices.extend(session.folds.files.half_written());
            session.adopt()?;
            session.end_tasks()?;
        }
        Ok(session)
    }

    /// Begins a new session with the entries of another one before `upto`, or all of them. Blobs are linked where the
    /// file system can, else copied.
    ///
    /// # Errors
    /// What reading the one or writing the other says.
    pub fn fork(home: &Path, id: &str, upto: Option<Seq>, clock: Clock) -> Result<Session, Error> {
        Session::fork_as(Uuid::now_v7().to_string(), home, id, upto, clock)
    }

    /// As `fork`, with an id that was chosen.
    ///
    /// # Errors
    /// As `fork`, or there is such a session already.
    pub fn fork_as(own: String, home: &Path, id: &str, upto: Option<Seq>, clock: Clock) -> Result<Session, Error> {
        let parent = Session::open_read_only(home, id, clock)?;
        let header = parent.header();
        let begin = (unused(home, own)?, header.cwd.as_path(), header.version.as_str());
        let mut fork = Session::begin(home, begin, clock, Some(parent.id.clone()));
        if let Err(error) = fork.copy_from(&parent, upto) {
            // Half a copy is of no use, and the error says what is wrong.
            let _ = fs::remove_dir_all(fork.store().dir());
            return Err(error);
        }
        match fork.log.exists() {
            true => Session::load(fork.log.path, &fork.id, clock, fork.log.writer),
            false => Ok(fork),
        }
    }

    /// Notes the end of commands in the background that another process ran: it ended them when it ended.
    fn end_tasks(&mut self) -> Result<(), Error> {
        let ended: Vec<Ended> = self.facts().tasks.running().map(|task| Ended::with_its_session(&task.begun)).collect();
        ended.into_iter().try_for_each(|ended| self.append(EntryKind::TaskEnded(ended)).map(drop))
    }

    fn copy_from(&mut self, parent: &Session, upto: Option<Seq>) -> Result<(), Error> {
        link_saved(parent.store(), self.store())?;
        let mut lines = Lines::open(parent.log())?;
        let (mut bytes, mut copy) = (Vec::new(), Vec::new());
        for line in parent.folds.lines.iter().filter(|line| upto.is_none_or(|upto| line.seq < upto)) {
            lines.read(line, &mut bytes).map_err(|error| Error::io("read", parent.log(), error))?;
            let header = line.tag == Tag::Other
                && line::parse(&bytes).is_some_and(|entry| matches!(entry.kind, EntryKind::Header(_)));
            if !header {
                // Entries keep their seq, which others refer to.
                copy.extend_from_slice(&bytes);
                copy.push(b'\n');
            }
            if copy.len() > 1 << 20 {
                self.log.writer()?.commit(&copy)?;
                copy.clear();
            }
        }
        if !copy.is_empty() {
            self.log.writer()?.commit(&copy)?;
        }
        self.sync()
    }

    /// The time as entries bear it: RFC 3339, UTC, milliseconds.
    pub fn now(&self) -> String {
        time(self.clock)
    }

    /// How long ago an entry was written, in milliseconds. Reads that line alone.
    pub fn since(&self, seq: Seq) -> Option<u64> {
        let millis = |ts: &str| Some(ts.parse::<jiff::Timestamp>().ok()?.as_millisecond());
        u64::try_from(millis(&self.now())?.checked_sub(millis(&self.entry(seq)?.ts)?)?).ok()
    }

    /// The time by the session's own clock.
    pub fn time(&self) -> SystemTime {
        (self.clock)()
    }

    /// What requests begin with, as the log has it last, and its entry. Reads that line alone.
    pub fn frozen(&self) -> Option<(Seq, Arc<Frozen>)> {
        let line = self.folds.lines.iter().filter(|line| line.tag == Tag::Frozen).last()?;
        match self.entry(line.seq)?.kind {
            EntryKind::Frozen(frozen) => Some((line.seq, frozen)),
            _ => None,
        }
    }

    /// The last request that the log tells of, with its time. Reads that line alone.
    pub fn last_request(&self) -> Option<(SystemTime, Arc<Sent>)> {
        let line = self.folds.lines.iter().filter(|line| line.tag == Tag::Request).last()?;
        match self.entry(line.seq)? {
            Entry { ts, kind: EntryKind::Request(sent), .. } => {
                Some((ts.parse::<jiff::Timestamp>().ok().map(SystemTime::from)?, sent))
            }
            _ => None,
        }
    }

    /// The requests that the log tells of, oldest first, with their times. Reads their lines alone.
    pub fn requests(&self) -> Vec<(Seq, Option<SystemTime>, Arc<Sent>)> {
        let Ok(mut lines) = Lines::open(self.log()) else { return Vec::new() };
        let mut bytes = Vec::new();
        let wanted = self.folds.lines.iter().filter(|line| line.tag == Tag::Request);
        let read = wanted.filter_map(|line| {
            lines.read(line, &mut bytes).ok()?;
            match line::parse(&bytes)? {
                Entry { seq, ts, kind: EntryKind::Request(sent), .. } => {
                    Some((seq, ts.parse::<jiff::Timestamp>().ok().map(SystemTime::from), sent))
                }
                _ => None,
            }
        });
        read.collect()
    }

    /// Writes an entry, then lets it count.
    ///
    /// # Errors
    /// `Full`, `Io` or `ReadOnly`: the entry is not in the log and nothing has changed.
    pub fn append(&mut self, kind: EntryKind) -> Result<Seq, Error> {
        self.put(stamp(self.clock, self.folds.next_seq, kind))
    }

    fn put(&mut self, entry: Entry) -> Result<Seq, Error> {
        let line = self.log.append(&entry)?;
        if self.folds.fold(line, Said::of(&entry)) {
            let behind = match &entry.kind {
                EntryKind::CompactBoundary(boundary) => self.context.behind(entry.seq, boundary),
                _ => None,
            };
            match behind {
                Some(behind) => self.context = behind,
                None if self.log.exists() => self.context = self.folds.project(self.log())?.0,
                None => {}
            }
        } else {
            self.context.apply(entry.seq, &entry.kind);
        }
        self.context.settle();
        if matches!(entry.kind, EntryKind::TurnEnded { .. } | EntryKind::CompactBoundary(_)) {
            self.log.save_index(&self.folds);
            if is_main(self.log()) {
                Meta::keep(self.log(), &self.folds.facts, self.folds.count);
            }
        }
        Ok(entry.seq)
    }

    /// Forces the log to disk: at the end of a turn and before a tool changes something.
    ///
    /// # Errors
    /// What the file system says.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.log.sync()
    }

    /// Looks after the log before a turn writes to it, and after it did. Says what was found, a sentence each.
    ///
    /// # Errors
    /// `Locked` when another process has a log in its place; otherwise what the file system says. The session then has
    /// everything that it had.
    pub fn watch(&mut self) -> Result<Vec<String>, Error> {
        let (header, stamp) = (self.header(), |seq, kind| stamp(self.clock, seq, kind));
        self.log.watch(&mut self.folds, &self.context, header, stamp)
    }

    /// Where sub-agents of this session write.
    pub fn transcripts(&self) -> Transcripts {
        Transcripts::new(&self.header(), self.store().dir(), self.clock, self.agents.clone())
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the log is, or will be with the first prompt.
    pub fn log(&self) -> &Path {
        &self.log.path
    }

    /// The session's folder: blobs and spilled output.
    pub fn store(&self) -> &Store {
        &self.folds.files.store
    }

    /// The files that were changed, as undo knows them.
    pub fn files(&self) -> &Files {
        &self.folds.files
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The entry of the last boundary that counts.
    pub fn last_boundary(&self) -> Option<Seq> {
        Some(self.folds.lines.get(self.folds.timeline.live().boundary?)?.seq)
    }

    /// An entry as the log has it; `None` if it does not exist or cannot be read. Reads one line.
    pub fn entry(&self, seq: Seq) -> Option<Entry> {
        let line = self.folds.lines.find(seq)?;
        let mut bytes = Vec::new();
        Lines::open(self.log()).ok()?.read(line, &mut bytes).ok()?;
        line::parse(&bytes).filter(|entry| entry.seq == seq)
    }

    /// The context as it would be after an entry that takes a boundary back or rewinds. Nothing is written.
    ///
    /// # Errors
    /// What reading the log says.
    pub fn preview(&self, kind: &EntryKind) -> Result<Context, Error> {
        let next = self.next_seq();
        let (mut timeline, mut lines) = (self.folds.timeline.clone(), self.folds.unpacked());
        timeline.push(next, kind);
        lines.push(Line { offset: 0, len: 0, seq: next, tag: Tag::Other, carries: false });
        let mut context = project(self.log(), &lines, &timeline, self.folds.cwd())?.0;
        if !matches!(kind, EntryKind::Rewind { .. }) {
            context.apply(next, kind);
        }
        Ok(context)
    }

    /// Mode, grants, trust, model and usage as the log has them.
    pub fn facts(&self) -> &Facts {
        &self.folds.facts
    }

    pub fn title(&self) -> Option<&str> {
        self.folds.facts.title()
    }

    /// The first entry; where it was damaged, what is known without it.
    pub fn header(&self) -> Header {
        self.folds.facts.header.clone().unwrap_or_else(|| Header {
            session: self.id.clone(),
            cwd: self.folds.cwd(),
            version: String::new(),
            forked_from: None,
        })
    }

    pub fn read_only(&self) -> bool {
        self.log.writer.is_none()
    }

    /// True when nobody has prompted yet, so that nothing is on disk.
    pub fn is_empty(&self) -> bool {
        !self.folds.facts.has_prompt()
    }

    /// The number of the next call, for `CallId::nth`: larger than that of any call in the log, rewound ones included.
    pub fn next_call(&self) -> u64 {
        self.folds.next_call
    }

    /// The `seq` that the next entry gets.
    pub fn next_seq(&self) -> Seq {
        self.folds.next_seq
    }

    /// What was wrong with the log when it was opened; a sentence each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

fn stamp(clock: Clock, seq: Seq, kind: EntryKind) -> Entry {
    Entry { v: VERSION, seq, id: Uuid::now_v7().to_string(), ts: time(clock), kind }
}

fn time(clock: Clock) -> String {
    rfc3339(clock())
}

/// A time as entries bear it.
pub fn rfc3339(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The log of a session. An id that is not a UUID names no session, nor does a path.
fn log_of(home: &Path, id: &str) -> Result<PathBuf, Error> {
    let found = Uuid::parse_str(id).ok().map(|uuid| uuid.to_string()).filter(|uuid| uuid == id);
    let log = found.map(|id| home.join(id).join(FILE)).filter(|log| log.is_file());
    log.ok_or_else(|| Error::NotFound { query: id.to_owned() })
}

/// An id that no session has yet.
fn unused(home: &Path, id: String) -> Result<String, Error> {
    if home.join(&id).join(FILE).exists() { Err(Error::Exists { session: id }) } else { Ok(id) }
}

/// Folders of what a session has saved.
const SAVED: [&str; 4] = ["blobs", "commands", "removed", TASKS];

/// Takes over what another session has saved. Lists are copied, since both continue them.
fn link_saved(from: &Store, to: &Store) -> Result<(), Error> {
    for name in SAVED {
        link_folder(&from.dir().join(name), &to.dir().join(name))?;
    }
    let lists = fs::read_dir(from.dir()).into_iter().flatten().flatten().map(|entry| entry.path());
    for list in lists.filter(|path| path.ends_with("names.jsonl") || path.ends_with("restored.jsonl")) {
        private_dir(to.dir()).map_err(|error| Error::write(to.dir(), error))?;
        let target = to.dir().join(list.file_name().unwrap_or_default());
        fs::copy(&list, &target).map_err(|error| Error::write(&target, error))?;
    }
    Ok(())
}

fn link_folder(source: &Path, target: &Path) -> Result<(), Error> {
    let Ok(entries) = fs::read_dir(source) else { return Ok(()) };
    // The record of a command that still runs is not whole.
    if source.join(crate::sandbox::record::MANIFEST).exists() {
        return Ok(());
    }
    private_dir(target).map_err(|error| Error::write(target, error))?;
    for entry in entries.flatten() {
        let (from, path) = (entry.path(), target.join(entry.file_name()));
        if from.is_dir() {
            link_folder(&from, &path)?;
        } else if from.extension().is_some_and(|kind| kind == "jsonl") || fs::hard_link(&from, &path).is_err() {
            fs::copy(&from, &path).map_err(|error| Error::write(&path, error))?;
        }
    }
    Ok(())
}
