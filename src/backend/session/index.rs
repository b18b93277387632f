//! The sessions of a home: listed for `--continue`, `--resume` and the picker, and cleared away when old.
//!
//! `<home>/cocode/session-index.json` remembers what was found of each; it is a cache, and only what changed since is asked of
//! the session's own folder again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::Error;
use super::import;
use super::load::Loaded;
use super::log::FILE;
use super::meta::Meta;
use crate::stdx::fs::replace_private;
use crate::stdx::regular;

/// Version of the cache's schema; another one is rebuilt.
const VERSION: u32 = 2;

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub id: String,
    pub title: Option<String>,
    pub cwd: PathBuf,
    /// Last change, in milliseconds since 1970.
    pub changed_ms: u64,
    pub prompts: u64,
    /// Size of the log.
    pub bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Cache {
    version: u32,
    /// By id. None: looked at, and no session.
    sessions: BTreeMap<String, Seen>,
}

/// What a log was when it was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Seen {
    changed_ns: u128,
    bytes: u64,
    summary: Option<Summary>,
}

/// Lists the sessions of a home, the last changed first; with `cwd` only those that were started there. Other folders,
/// and sessions that nobody has used, are left out.
///
/// # Errors
/// What the file system says about the home itself; one that does not exist has no sessions.
pub fn list(home: &Path, cwd: Option<&Path>) -> Result<Vec<Summary>, Error> {
    let file = home.join("cocode").join("session-index.json");
    let known = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Cache>(&bytes).ok());
    let known = known.filter(|cache| cache.version == VERSION).map(|cache| cache.sessions).unwrap_or_default();
    let mut sessions = BTreeMap::new();
    for (id, log) in logs(home)? {
        let Ok(meta) = fs::metadata(&log) else { continue };
        let changed = meta.modified().unwrap_or(UNIX_EPOCH).duration_since(UNIX_EPOCH).unwrap_or_default();
        let (changed_ns, bytes) = (changed.as_nanos(), meta.len());
        let seen = match known.get(&id) {
            Some(seen) if seen.changed_ns == changed_ns && seen.bytes == bytes => seen.clone(),
            _ => Seen { changed_ns, bytes, summary: summarize(&id, &log, changed, bytes) },
        };
        sessions.insert(id, seen);
    }
    let mut found: Vec<Summary> = sessions.values().filter_map(|seen| seen.summary.clone()).collect();
    if sessions != known {
        let cache = Cache { version: VERSION, sessions };
        // The list is right without its cache; a home that cannot be written only makes it slower.
        let _ = serde_json::to_vec(&cache).map(|bytes| replace_private(&file, &bytes));
    }
    found.retain(|session| cwd.is_none_or(|cwd| session.cwd == cwd));
    found.sort_by(|a, b| (b.changed_ms, &b.id).cmp(&(a.changed_ms, &a.id)));
    Ok(found)
}

/// The sessions whose id begins with `query`, or whose title, folder or id holds all of its words; the last changed first.
///
/// # Errors
/// As `list`.
pub fn search(home: &Path, query: &str) -> Result<Vec<Summary>, Error> {
    let sessions = list(home, None)?;
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let matches = |session: &Summary| {
        let title = session.title.as_deref().unwrap_or_default();
        let text = format!("{} {title} {}", session.id, session.cwd.display()).to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    Ok(sessions.into_iter().filter(matches).collect())
}

/// Most sessions that an error names.
const SHOWN: usize = 5;

/// The id of the one session that `--resume query` means: an id, the beginning of one, an exact title, or words that only
/// one session has. An error says how old the others are.
///
/// # Errors
/// `NotFound` or `Ambiguous`; otherwise as `list`.
pub fn resolve(home: &Path, query: &str, now: SystemTime) -> Result<String, Error> {
    let query = query.trim();
    if Uuid::parse_str(query).is_ok_and(|id| home.join(id.to_string()).join(FILE).is_file()) {
        return Ok(query.to_lowercase());
    }
    let found = search(home, query)?;
    let lower = query.to_lowercase();
    let by_id: Vec<&Summary> = found.iter().filter(|session| session.id.starts_with(&lower)).collect();
    let by_title: Vec<&Summary> =
        found.iter().filter(|session| session.title.as_deref().is_some_and(|title| title == query)).collect();
    let all: Vec<&Summary> = found.iter().collect();
    match (by_id.as_slice(), by_title.as_slice(), all.as_slice()) {
        _ if query.is_empty() => Err(Error::NotFound { query: query.to_owned() }),
        ([one], ..) | (_, [one], _) | (_, _, [one]) => Ok(one.id.clone()),
        (.., []) => Err(Error::NotFound { query: query.to_owned() }),
        (.., several) => {
            let row = |session: &&&Summary| {
                let when = ago(now, UNIX_EPOCH + Duration::from_millis(session.changed_ms));
                format!("  {}  {when}  {}", session.id, session.title.as_deref().unwrap_or("untitled"))
            };
            let mut rows: Vec<String> = several.iter().take(SHOWN).map(|session| row(&session)).collect();
            rows.extend((several.len() > SHOWN).then(|| format!("  and {} more", several.len() - SHOWN)));
            Err(Error::Ambiguous { query: query.to_owned(), rows })
        }
    }
}

/// How long ago, for people.
pub fn ago(now: SystemTime, then: SystemTime) -> String {
    let passed = now.duration_since(then).unwrap_or(Duration::ZERO).as_secs();
    let (count, unit) = match passed {
        0..60 => return "just now".into(),
        60..3_600 => (passed / 60, "minute"),
        3_600..86_400 => (passed / 3_600, "hour"),
        _ => (passed / 86_400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

/// How old things are by what was done since, not by the clock alone: between two uses of the program no more than a part
/// of the time to keep counts, so that a clock that jumps by years makes nothing old at once.
struct Age {
    now: SystemTime,
    /// When sessions were used last, the oldest first.
    uses: Vec<SystemTime>,
    /// The most that counts between two of them.
    most: Duration,
}

impl Age {
    /// None: something was changed in the future, so the clock is wrong, or was.
    fn new(uses: Vec<SystemTime>, keep: Duration, now: SystemTime) -> Option<Age> {
        /// What clocks of two machines may differ by.
        const SLACK: Duration = Duration::from_secs(86_400);
        let mut uses = uses;
        uses.sort();
        let ahead = uses.last().and_then(|last| last.duration_since(now).ok()).unwrap_or_default();
        (ahead <= SLACK).then_some(Age { now, uses, most: keep / 4 })
    }

    fn of(&self, changed: SystemTime) -> Duration {
        let later = self.uses.iter().copied().filter(|at| *at > changed && *at < self.now).chain([self.now]);
        let gap = |from: &mut SystemTime, until: SystemTime| {
            let gap = until.duration_since(std::mem::replace(from, until)).unwrap_or_default();
            Some(gap.min(self.most))
        };
        later.scan(changed, gap).sum()
    }
}

/// Deletes sessions that nobody changed for `keep` while others were used, with their plans, and returns their number.
/// Those that a process writes stay, and so does a plan that was changed since.
///
/// # Errors
/// What the file system says about the home itself; a session that cannot be deleted is left.
pub fn cleanup(home: &Path, keep: Duration, now: SystemTime) -> Result<usize, Error> {
    let mut deleted = 0;
    let logs = logs(home)?;
    let uses = logs.iter().filter_map(|(_, log)| used(log)).collect();
    let Some(age) = Age::new(uses, keep, now) else { return Ok(0) };
    let old = |meta: fs::Metadata| meta.modified().is_ok_and(|changed| age.of(changed) > keep);
    for (_, log) in logs {
        let Ok(file) = regular::open(&log) else { continue };
        // The lock is held until the folder is gone, so that nobody opens the session meanwhile.
        if used(&log).is_some_and(|used| age.of(used) > keep)
            && file.try_lock().is_ok()
            && let Some(folder) = log.parent()
        {
            let slug = Loaded::read(&file, &log).ok().and_then(|loaded| loaded.folds.facts.plan_slug);
            if fs::remove_dir_all(folder).is_ok() {
                deleted += 1;
                slug.iter().for_each(|slug| remove_plans(&home.join("plans"), slug, old));
            }
        }
    }
    Ok(deleted)
}

/// When a session was used last. An import is a use, too: what was imported is as old as the session that it comes from.
fn used(log: &Path) -> Option<SystemTime> {
    let changed = fs::metadata(log).and_then(|meta| meta.modified()).ok()?;
    Some(import::imported_at(log).map_or(changed, |at| at.max(changed)))
}

/// Removes a session's plan and those of its sub-agents.
fn remove_plans(folder: &Path, slug: &str, old: impl Fn(fs::Metadata) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".md")) else { continue };
        let own = name.strip_prefix(slug).is_some_and(|rest| rest.is_empty() || rest.starts_with("-agent-"));
        // Of the entry itself: a link is not a plan of ours.
        if own && entry.metadata().is_ok_and(|meta| meta.is_file() && old(meta)) {
            // One that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Id and log of each folder that bears a session's name. Links are not followed.
fn logs(home: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let folder = match fs::read_dir(home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        folder => folder.map_err(|error| Error::io("read", home, error))?,
    };
    let mut logs = Vec::new();
    for entry in folder.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let id = Uuid::parse_str(&name).is_ok_and(|id| id.to_string() == name);
        if id && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let log = entry.path().join(FILE);
            if fs::symlink_metadata(&log).is_ok_and(|meta| meta.is_file()) {
                logs.push((name, log));
            }
        }
    }
    Ok(logs)
}

fn summarize(id: &str, log: &Path, changed: Duration, bytes: u64) -> Option<Summary> {
    let Meta { title, cwd, prompts, used, .. } = Meta::of(log)?;
    let changed_ms = u64::try_from(changed.as_millis()).unwrap_or(u64::MAX);
    let cwd = cwd?;
    used.then(|| Summary { id: id.to_owned(), title, cwd, changed_ms, prompts, bytes })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use super::*;
    use crate::message::Message;
    use crate::session::Session;
    use crate::session::entry::EntryKind;

    const DAY: Duration = Duration::from_secs(86_400);

    /// A session that was used last at that time.
    fn used(home: &Path, at: SystemTime) {
        let id = session(home, "/daily", &["work"]);
        File::options().append(true).open(home.join(id).join(FILE)).unwrap().set_modified(at).unwrap();
    }

    /// Uses the program on each of the thirty days that follow; how often.
    fn use_daily(home: &Path, from: SystemTime) -> usize {
        (1..=30).map(|day| used(home, from + DAY * day)).count()
    }

    #[test]
    fn a_clock_that_jumps_deletes_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let (home, now) = (temp.path(), SystemTime::now());
        let clean = |days: i32| {
            let by = DAY * days.unsigned_abs();
            cleanup(home, DAY * 30, if days < 0 { now - by } else { now + by }).unwrap()
        };
        used(home, now);
        assert_eq!([clean(-9_000), clean(0), clean(45), clean(9_000)], [0; 4]);
        // It was used while the clock was wrong, and again when it was right.
        used(home, now + DAY * 3_000);
        assert_eq!([clean(3_001), clean(9_000), clean(1), clean(-9_000)], [0; 4]);
        used(home, now - DAY * 3_000);
        assert_eq!([clean(0), clean(3_001)], [0; 2]);
    }

    /// A session that is closed again; its id.
    fn session(home: &Path, cwd: &str, prompts: &[&str]) -> String {
        let mut session = Session::create(home, Path::new(cwd), "1", SystemTime::now);
        for prompt in prompts {
            session.append(EntryKind::Message { message: Arc::new(Message::prompt(*prompt)) }).unwrap();
        }
        session.id().to_owned()
    }

    #[test]
    fn lists_finds_and_clears_sessions() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path();
        assert_eq!(list(&home.join("none"), None).unwrap(), []);
        let first = session(home, "/a", &["fix the parser", "and test it"]);
        let second = session(home, "/b", &["explain the parser"]);
        let third = session(home, "/a", &[]);
        assert!(!home.join(third).exists());
        let shell =
            |command: &str| EntryKind::ShellRan { command: command.into(), output: String::new(), code: Some(0) };
        let lines = {
            let mut session = Session::create(home, Path::new("/c"), "1", SystemTime::now);
            for line in ["ls  -l", "pwd"] {
                session.append(shell(line)).unwrap();
            }
            session.id().to_owned()
        };
        // What else lives in a home.
        fs::create_dir_all(home.join("projects")).unwrap();
        fs::create_dir_all(home.join(Uuid::now_v7().to_string())).unwrap();
        fs::write(home.join("settings.json"), "{}").unwrap();
        let empty = home.join(Uuid::now_v7().to_string());
        fs::create_dir_all(&empty).unwrap();
        fs::write(empty.join(FILE), "no json\n").unwrap();

        let rows = |sessions: Vec<Summary>| {
            let rows = sessions.into_iter().map(|session| (session.id, session.title.unwrap(), session.prompts));
            rows.collect::<Vec<_>>()
        };
        let one = (first.clone(), "fix the parser".to_owned(), 2);
        let two = (second.clone(), "explain the parser".to_owned(), 1);
        let three = (lines, "! ls -l".to_owned(), 0);
        let cache = home.join("cocode/session-index.json");
        // Cold, warm, and with a cache that is damaged.
        for _ in 0..3 {
            assert_eq!(rows(list(home, None).unwrap()), [three.clone(), two.clone(), one.clone()]);
            assert_eq!(rows(list(home, Some(Path::new("/a"))).unwrap()), std::slice::from_ref(&one));
            assert_eq!(rows(search(home, "PARSER explain").unwrap()), std::slice::from_ref(&two));
            if fs::read(&cache).unwrap().starts_with(b"{") {
                fs::write(&cache, "damaged").unwrap();
            }
        }

        for (query, want) in [
            (first.as_str(), Ok(&first)),
            (&first[..30], Ok(&first)),
            ("fix the parser", Ok(&first)),
            ("explain", Ok(&second)),
            ("parser", Err(true)),
            ("nothing like it", Err(false)),
            ("", Err(false)),
            ("../etc", Err(false)),
        ] {
            let found =
                resolve(home, query, SystemTime::now()).map_err(|error| matches!(error, Error::Ambiguous { .. }));
            assert_eq!(found.as_ref(), want.as_ref().map(|id| *id), "{query}");
        }

        let open = Session::open(home, &first, SystemTime::now).unwrap();
        let now = SystemTime::now();
        assert_eq!(cleanup(home, DAY * 30, now).unwrap(), 0);
        // The damaged one goes, too; the one that is open stays.
        let uses = use_daily(home, now);
        assert_eq!(cleanup(home, DAY * 30, now + DAY * 31).unwrap(), 3);
        assert_eq!(list(home, None).unwrap().len(), 1 + uses);
        drop(open);
    }

    #[test]
    fn an_old_session_takes_its_plans_along() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path();
        let plans = home.join("plans");
        fs::create_dir_all(&plans).unwrap();
        for (slug, prompt) in [("calm-fox-running", "one"), ("calm-fox-running-2", "two")] {
            let mut session = Session::create(home, Path::new("/a"), "1", SystemTime::now);
            let id = session.id().to_owned();
            session.append(EntryKind::PlanSlug { session: id, slug: slug.into() }).unwrap();
            session.append(EntryKind::Message { message: Arc::new(Message::prompt(prompt)) }).unwrap();
        }
        let names =
            ["calm-fox-running", "calm-fox-running-agent-a1", "calm-fox-running-2", "calm-fox-runningly", "other"];
        names.iter().for_each(|name| fs::write(plans.join(format!("{name}.md")), "# Plan").unwrap());
        let now = SystemTime::now();
        let uses = use_daily(home, now);
        let now = now + DAY * 31;
        let later = File::options().write(true).open(plans.join("calm-fox-running-2.md")).unwrap();
        later.set_modified(now).unwrap();
        assert_eq!((cleanup(home, DAY * 30, now).unwrap(), uses), (2, 30));
        let mut left: Vec<_> = fs::read_dir(plans).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        // Changed since, of another name, nobody's.
        assert_eq!(left, ["calm-fox-running-2.md", "calm-fox-runningly.md", "other.md"]);
    }
}
