//! Logs of sub-agents: `agent-<id>.jsonl` beside the session's own, written by the same code.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::entry::{EntryKind, Header};
use super::error::Error;
use super::history_view::read_history;
use super::session::{Clock, Session};
use crate::protocol::HistoryItem;

/// Begins and opens logs of sub-agents of one session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Transcripts {
    dir: PathBuf,
    session: String,
    version: String,
    clock: Clock,
    /// The number of the newest sub-agent of this process.
    newest: Arc<AtomicU32>,
}

/// Where the log of a sub-agent is, or would be.
pub fn log_of_agent(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("agent-{id}.jsonl"))
}

/// The number in an id of ours: `a7`.
fn number(id: &str) -> Option<u32> {
    let digits = id.strip_prefix('a')?;
    let plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

impl Transcripts {
    pub(super) fn new(header: &Header, dir: &Path, clock: Clock, newest: Arc<AtomicU32>) -> Transcripts {
        Transcripts {
            dir: dir.to_owned(),
            session: header.session.clone(),
            version: header.version.clone(),
            clock,
            newest,
        }
    }

    /// Sub-agents with a log, oldest first.
    pub fn ids(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut numbers: Vec<u32> = entries
            .filter_map(|entry| number(entry.file_name().to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl")?))
            .collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| format!("a{number}")).collect()
    }

    /// Begins the log of a new sub-agent in `cwd`, and gives it an id.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn begin(&self, agent: &str, description: &str, cwd: &Path) -> Result<(String, Session), Error> {
        let last = self.ids().last().and_then(|id| number(id)).unwrap_or(0);
        self.newest.fetch_max(last, Ordering::Relaxed);
        let id = format!("a{}", self.newest.fetch_add(1, Ordering::Relaxed) + 1);
        let header =
            Header { session: self.name(&id), cwd: cwd.to_owned(), version: self.version.clone(), forked_from: None };
        let mut session = Session::begin_at(log_of_agent(&self.dir, &id), header, self.clock);
        session.append(EntryKind::AgentStarted { agent: agent.to_owned(), description: description.to_owned() })?;
        Ok((id, session))
    }

    /// Opens the log of an earlier sub-agent to continue it.
    ///
    /// # Errors
    /// `NotFound` if the id is unknown, `Locked` while it runs; otherwise what the file system says.
    pub fn resume(&self, id: &str) -> Result<Session, Error> {
        let log = log_of_agent(&self.dir, id);
        if number(id).is_none() || !log.is_file() {
            return Err(Error::NotFound { query: id.to_owned() });
        }
        Session::open_at(log, &self.name(id), self.clock)
    }

    /// Everything that can be shown of a sub-agent's log, oldest first; also while it runs.
    ///
    /// # Errors
    /// `NotFound` if the id is unknown; otherwise what the file system says.
    pub fn history(&self, id: &str) -> Result<Vec<HistoryItem>, Error> {
        if number(id).is_none() {
            return Err(Error::NotFound { query: id.to_owned() });
        }
        read_history(&log_of_agent(&self.dir, id))
    }

    /// The log of the session itself.
    pub fn session_log(&self) -> PathBuf {
        self.dir.join(super::log::FILE)
    }

    fn name(&self, id: &str) -> String {
        format!("{}-{id}", self.session)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::message::Message;

    #[test]
    fn ids_are_counted_and_never_given_twice() {
        let temp = tempfile::tempdir().unwrap();
        let session = Session::create(temp.path(), temp.path(), "1", SystemTime::now);
        let transcripts = session.transcripts();
        let (first, mut log) = transcripts.begin("Explore", "look", temp.path()).unwrap();
        // Nothing is on disk yet, and yet the next one gets another id.
        let (second, _) = session.transcripts().begin("Explore", "look", temp.path()).unwrap();
        assert_eq!((first.as_str(), second.as_str()), ("a1", "a2"));
        assert!(matches!(transcripts.resume("a1"), Err(Error::NotFound { .. })));
        log.append(EntryKind::Message { message: Message::prompt("go").into() }).unwrap();
        assert!(matches!(transcripts.resume("a1"), Err(Error::Locked { .. })));
        drop(log);
        assert_eq!(transcripts.resume("a1").unwrap().facts().agent.as_deref(), Some("Explore"));
        for odd in ["", "a", "a01", "../a1", "1", "a1.jsonl"] {
            assert!(matches!(transcripts.resume(odd), Err(Error::NotFound { .. })), "{odd}");
        }
        // Another process counts on from what it finds.
        let fresh = Transcripts { newest: Arc::default(), ..session.transcripts() };
        assert_eq!(fresh.begin("Plan", "think", temp.path()).unwrap().0, "a2");
        assert_eq!(fresh.ids(), ["a1"]);
    }
}
