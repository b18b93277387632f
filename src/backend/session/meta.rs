//! `meta.json`: what a list shows of a session. A cache of its log, good while the log has the length and time of change
//! that it names.

use std::fs::{self, File, Metadata};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::facts::Facts;
use super::folds::Folds;
use super::line::Tag;
use super::load::Loaded;
use crate::permission::Mode;
use crate::protocol::Compacted;

/// The file's name in its session's folder.
pub(super) const FILE: &str = "meta.json";

/// Version of the schema; another one is rebuilt.
const VERSION: u32 = 2;

/// One session as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Meta {
    version: u32,
    /// Length of the log.
    bytes: u64,
    /// Last change of the log, in nanoseconds since 1970.
    changed_ns: u128,
    pub(super) title: Option<String>,
    /// None: the log's first entry is damaged.
    pub(super) cwd: Option<PathBuf>,
    /// In milliseconds since 1970.
    created_ms: u64,
    updated_ms: u64,
    pub(super) prompts: u64,
    /// Whether the user has said or done anything in it.
    pub(super) used: bool,
    /// Prompts, replies and results.
    messages: u64,
    model: Option<String>,
    mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    compactions: Vec<Compacted>,
}

/// How many messages of which kind a log has.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Count {
    prompts: u64,
    messages: u64,
}

impl Count {
    pub(super) fn add(&mut self, tag: Tag) {
        self.prompts += u64::from(tag == Tag::Prompt);
        self.messages += u64::from(matches!(tag, Tag::Prompt | Tag::Reply | Tag::Results | Tag::Message));
    }
}

impl Meta {
    /// What the log of a session says; none when it cannot be read.
    pub(super) fn of(log: &Path) -> Option<Meta> {
        let found = fs::metadata(log).ok()?;
        let cached = fs::read(log.with_file_name(FILE)).ok();
        let cached = cached.and_then(|bytes| serde_json::from_slice::<Meta>(&bytes).ok());
        let good =
            |meta: &Meta| (meta.version, meta.bytes, meta.changed_ns) == (VERSION, found.len(), changed_ns(&found));
        if let Some(meta) = cached.filter(good) {
            return Some(meta);
        }
        let Folds { facts, count, .. } = Loaded::read(&File::open(log).ok()?, log).ok()?.folds;
        let meta = Meta::new(log, &found, &facts, count);
        meta.save(log);
        Some(meta)
    }

    /// Keeps what is known of a log.
    pub(super) fn keep(log: &Path, facts: &Facts, count: Count) {
        if let Ok(found) = fs::metadata(log) {
            Meta::new(log, &found, facts, count).save(log);
        }
    }

    fn new(log: &Path, found: &Metadata, facts: &Facts, count: Count) -> Meta {
        let id = log.parent().and_then(Path::file_name).and_then(|name| Uuid::parse_str(name.to_str()?).ok());
        let created = id.and_then(|id| id.get_timestamp()).map_or((0, 0), |time| time.to_unix());
        let created = Duration::new(created.0, created.1);
        let changed_ns = changed_ns(found);
        Meta {
            version: VERSION,
            bytes: found.len(),
            changed_ns,
            title: facts.title().map(str::to_owned),
            cwd: facts.header.as_ref().map(|header| header.cwd.clone()),
            created_ms: u64::try_from(created.as_millis()).unwrap_or(0),
            updated_ms: u64::try_from(changed_ns / 1_000_000).unwrap_or(u64::MAX),
            prompts: count.prompts,
            used: facts.used(),
            messages: count.messages,
            model: facts.model.clone(),
            mode: facts.mode,
            compactions: facts.compactions.clone(),
        }
    }

    /// Not forced to disk, and no matter when it fails: a list is only slower without.
    fn save(&self, log: &Path) {
        let folder = log.parent().unwrap_or(Path::new("."));
        let written = serde_json::to_vec(self).map_err(std::io::Error::from).and_then(|bytes| {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&bytes)?;
            file.persist(folder.join(FILE)).map_err(|error| error.error)
        });
        if let Err(error) = written {
            tracing::debug!(%error, "{FILE} was not written");
        }
    }
}

/// When a file was changed last, in nanoseconds since 1970; 0 where nobody knows.
pub(super) fn changed_ns(found: &Metadata) -> u128 {
    let changed = found.modified().ok().and_then(|changed| changed.duration_since(UNIX_EPOCH).ok());
    changed.unwrap_or_default().as_nanos()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::message::{Message, Usage};
    use crate::session::Session;
    use crate::session::entry::{Boundary, EntryKind};

    #[test]
    fn meta_says_what_the_log_says() {
        let home = tempfile::tempdir().unwrap();
        let mut session = Session::create(home.path(), Path::new("/p"), "1", SystemTime::now);
        let say = |session: &mut Session, prompt: &str| {
            session.append(EntryKind::Message { message: Arc::new(Message::prompt(prompt)) }).unwrap();
        };
        say(&mut session, "one");
        session.append(EntryKind::ModelChanged { model: "a/b".into(), borrowed: false }).unwrap();
        session.append(EntryKind::ModeChanged { mode: Mode::Plan }).unwrap();
        session.append(EntryKind::Message { message: Arc::new(Message::reply(vec![])) }).unwrap();
        let boundary = Boundary { tier: "full".into(), pre_tokens: 9, post_tokens: 3, ..Boundary::default() };
        session.append(EntryKind::CompactBoundary(boundary)).unwrap();
        session.append(EntryKind::TurnEnded { end: "done".into(), usage: Usage::default() }).unwrap();
        let log = session.log().to_owned();
        let file = log.with_file_name(FILE);
        let good = fs::read(&file).unwrap();
        let written: Meta = serde_json::from_slice(&good).unwrap();
        assert!(written.created_ms > 0 && written.updated_ms + 1_000 > written.created_ms, "{written:?}");
        assert_eq!(written.compactions.iter().map(|done| (done.before, done.after)).collect::<Vec<_>>(), [(9, 3)]);
        for (name, bytes) in [
            ("as written", Some(good.clone())),
            ("deleted", None),
            ("truncated", Some(good[..good.len() / 2].to_vec())),
            ("corrupt", Some(b"{\"version\":2}".to_vec())),
            ("of another version", Some(String::from_utf8_lossy(&good).replacen(":2", ":3", 1).into_bytes())),
            (
                "of another log",
                Some(String::from_utf8_lossy(&good).replacen("\"bytes\":", "\"bytes\":1", 1).into_bytes()),
            ),
        ] {
            match bytes {
                Some(bytes) => fs::write(&file, bytes).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
            assert_eq!(Meta::of(&log), Some(written.clone()), "{name}");
            assert_eq!(fs::read(&file).unwrap(), good, "{name}: rebuilt");
        }
        say(&mut session, "two");
        let now = Meta::of(&log).unwrap();
        assert_eq!((now.prompts, now.messages, now.title.as_deref()), (2, 3, Some("one")), "stale");
        assert_eq!((now.model.as_deref(), now.mode), (Some("a/b"), Some(Mode::Plan)));
    }
}
