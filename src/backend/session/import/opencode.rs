//! opencode: `opencode.db`, an SQLite file that it may be writing, and before that `storage`, a JSON file for each message
//! and each of its parts.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::writer::Writer;
use super::{Archive, Found, files, flat, text};
use crate::message::{Origin, Outcome};
use crate::stdx::hash;
use crate::stdx::regular;
use crate::stdx::sqlite::{Database, Place, Table};

/// Bytes of a JSON file that are read.
const LONGEST: u64 = 32 << 20;
/// How often reading begins again when the database was written meanwhile.
const TRIES: usize = 5;

const COLUMNS: [&str; 6] = ["id", "parent_id", "directory", "title", "time_updated", "revert"];

pub(super) struct Opencode {
    root: PathBuf,
    store: Option<Store>,
}

/// The database, and where the rows of each session are.
struct Store {
    database: Database,
    tables: [Table; 3],
    sessions: HashMap<String, Rows>,
}

#[derive(Default)]
struct Rows {
    session: Option<Place>,
    messages: Vec<(String, Place)>,
    /// With the message that they are parts of.
    parts: Vec<(String, String, Place)>,
}

/// What a session is, whichever way it is stored.
struct Session {
    directory: String,
    title: String,
    /// Everything from this message on was reverted.
    reverted: Option<String>,
    /// With their ids, in order, and their parts.
    messages: Vec<(String, Value, Vec<Value>)>,
}

impl Opencode {
    /// `root` is `~/.local/share/opencode`.
    pub(super) fn open(root: &Path) -> io::Result<Opencode> {
        fs::read_dir(root)?;
        let path = root.join("opencode.db");
        let store =
            if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file()) { Some(Store::open(&path)?) } else { None };
        Ok(Opencode { root: root.to_owned(), store })
    }

    /// The session as the database has it now.
    fn stored(&mut self, path: &Path, id: &str) -> io::Result<Session> {
        for _ in 0..TRIES {
            let read = self.store.as_mut().map(|store| store.session(id));
            // Half of one transaction and half of the next may look like anything.
            match read {
                Some(read) if self.store.as_ref().is_some_and(|store| store.database.is_current()) => return read,
                _ => self.store = Some(Store::open(path)?),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "opencode keeps writing its database: close it and try again"))
    }
}

impl Archive for Opencode {
    fn sessions(&mut self) -> io::Result<Vec<Found>> {
        let mut found = match &mut self.store {
            Some(store) => store.found(&self.root.join("opencode.db"))?,
            None => Vec::new(),
        };
        for (id, path, meta) in files(&self.root.join("storage/session"), 1, ".json") {
            let updated = json(&path).ok().and_then(|session| session.get("time")?.get("updated")?.as_u64());
            let messages = files(&self.root.join("storage/message").join(&id), 0, ".json").len() as u64;
            let mut one = Found::file(id, path, &meta);
            one.changed = updated.map_or(one.changed, |millis| UNIX_EPOCH + Duration::from_millis(millis));
            one.stamp ^= messages;
            found.push(one);
        }
        Ok(found)
    }

    fn read(&mut self, found: &Found, log: &mut Writer<'_>) -> io::Result<bool> {
        let session = if found.path.ends_with("opencode.db") {
            self.stored(&found.path, &found.id)?
        } else {
            let session = json(&found.path)?;
            if text(&session, "parentID").is_some() {
                return Ok(false);
            }
            self.in_files(&found.id, &session)?
        };
        session.tell(log)?;
        Ok(true)
    }
}

impl Opencode {
    fn in_files(&self, id: &str, session: &Value) -> io::Result<Session> {
        let storage = self.root.join("storage");
        let mut messages = Vec::new();
        for (id, path, _) in files(&storage.join("message").join(id), 0, ".json") {
            let parts = files(&storage.join("part").join(&id), 0, ".json").into_iter();
            // A file that is broken says nothing.
            let parts = parts.filter_map(|(_, path, _)| json(&path).ok()).collect();
            messages.extend(json(&path).ok().map(|message| (id, message, parts)));
        }
        let named = |name| text(session, name).unwrap_or_default().to_owned();
        let reverted = session.get("revert").and_then(|revert| text(revert, "messageID")).map(str::to_owned);
        Ok(Session { directory: named("directory"), title: named("title"), reverted, messages })
    }
}

fn json(path: &Path) -> io::Result<Value> {
    Ok(serde_json::from_slice(&regular::read(path, LONGEST)?)?)
}

impl Store {
    fn open(path: &Path) -> io::Result<Store> {
        let mut database = Database::open(path)?;
        let mut table = |name: &str| {
            let missing = || io::Error::new(io::ErrorKind::InvalidData, format!("the database has no table `{name}`"));
            database.table(name)?.ok_or_else(missing)
        };
        let tables = [table("session")?, table("message")?, table("part")?];
        let mut sessions: HashMap<String, Rows> = HashMap::new();
        let (session, message, part) = (&tables[0], &tables[1], &tables[2]);
        database.rows(session, &["id"], |place, row| {
            if let Some(id) = row[0].text() {
                sessions.entry(id.to_owned()).or_default().session = Some(place);
            }
            Ok(())
        })?;
        database.rows(message, &["id", "session_id"], |place, row| {
            if let (Some(id), Some(session)) = (row[0].text(), row[1].text()) {
                sessions.entry(session.to_owned()).or_default().messages.push((id.to_owned(), place));
            }
            Ok(())
        })?;
        database.rows(part, &["id", "session_id", "message_id"], |place, row| {
            if let (Some(id), Some(session), Some(message)) = (row[0].text(), row[1].text(), row[2].text()) {
                let parts = &mut sessions.entry(session.to_owned()).or_default().parts;
                parts.push((message.to_owned(), id.to_owned(), place));
            }
            Ok(())
        })?;
        for rows in sessions.values_mut() {
            // Ids are made so that they are in the order of time.
            rows.messages.sort_by(|one, two| one.0.cmp(&two.0));
            rows.parts.sort_by(|one, two| (&one.0, &one.1).cmp(&(&two.0, &two.1)));
        }
        Ok(Store { database, tables, sessions })
    }

    /// The sessions that are not those of sub-agents.
    fn found(&mut self, path: &Path) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        for (id, rows) in &self.sessions {
            let Some(place) = rows.session else { continue };
            let row = self.database.row(&self.tables[0], place, &COLUMNS)?.unwrap_or_default();
            let [_, parent, _, _, updated, _] = row.as_slice() else { continue };
            let millis = updated.integer().unwrap_or(0).max(0).cast_unsigned();
            if parent.text().is_none() {
                let stamp = hash::short(&[
                    &millis.to_be_bytes(),
                    &rows.messages.len().to_be_bytes(),
                    &rows.parts.len().to_be_bytes(),
                ]);
                let changed = UNIX_EPOCH + Duration::from_millis(millis);
                found.push(Found { id: id.clone(), path: path.to_owned(), changed, stamp });
            }
        }
        found.sort_by(|one, two| one.id.cmp(&two.id));
        Ok(found)
    }

    fn session(&mut self, id: &str) -> io::Result<Session> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the session was deleted");
        let rows = self.sessions.get(id).ok_or_else(gone)?;
        let [session, message, part] = &self.tables;
        let place = rows.session.ok_or_else(gone)?;
        let row = self.database.row(session, place, &COLUMNS)?.ok_or_else(gone)?;
        let named = |at: usize| row.get(at).and_then(|value| value.text()).unwrap_or_default();
        let mut data = |table: &Table, place: Place| -> io::Result<Option<Value>> {
            let row = self.database.row(table, place, &["data"])?.unwrap_or_default();
            Ok(row.first().and_then(|value| serde_json::from_str(value.text()?).ok()))
        };
        let mut parts: HashMap<&str, Vec<Value>> = HashMap::new();
        for (message, _, place) in &rows.parts {
            parts.entry(message).or_default().extend(data(part, *place)?);
        }
        let mut messages = Vec::new();
        for (id, place) in &rows.messages {
            let parts = parts.remove(id.as_str()).unwrap_or_default();
            messages.extend(data(message, *place)?.map(|message| (id.clone(), message, parts)));
        }
        let revert: Value = serde_json::from_str(named(5)).unwrap_or_default();
        let reverted = text(&revert, "messageID").map(str::to_owned);
        Ok(Session { directory: named(2).to_owned(), title: named(3).to_owned(), reverted, messages })
    }
}

impl Session {
    fn tell(&self, log: &mut Writer<'_>) -> io::Result<()> {
        log.cwd(Some(&self.directory));
        // The name that it gives before it has a better one.
        log.title(Some(&self.title).filter(|title| !title.starts_with("New session")).map(String::as_str));
        let live = |id: &String| self.reverted.as_ref().is_none_or(|from| id < from);
        for (id, message, parts) in self.messages.iter().filter(|(id, ..)| live(id)) {
            log.at(message.get("time").and_then(|time| time.get("created")?.as_i64()));
            let is = |part: &Value, flag: &str| part.get(flag).and_then(Value::as_bool) == Some(true);
            let texts = parts.iter().filter(|part| text(part, "type") == Some("text") && !is(part, "synthetic"));
            let texts: Vec<&str> =
                texts.filter(|part| !is(part, "ignored")).filter_map(|part| text(part, "text")).collect();
            match text(message, "role") {
                Some("assistant") if is(message, "summary") => log.boundary(&texts.join("\n"), 0, None)?,
                Some("assistant") => {
                    let named = |name| text(message, name).unwrap_or_default().to_owned();
                    log.reply(Some(id), Some(Origin { provider: named("providerID"), model: named("modelID") }))?;
                    parts.iter().for_each(|part| reply(part, log));
                }
                Some("user") => log.prompt(&texts.join("\n"))?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn reply(part: &Value, log: &mut Writer<'_>) {
    match text(part, "type") {
        Some("text") => log.say(text(part, "text").unwrap_or_default()),
        Some("reasoning") => log.think(text(part, "text").unwrap_or_default()),
        Some("tool") => {
            let state = part.get("state").unwrap_or(&Value::Null);
            let call = text(part, "callID").unwrap_or_default();
            let tool = text(part, "tool").unwrap_or_default();
            log.call(call, tool, state.get("input").cloned().unwrap_or_default());
            match text(state, "status") {
                Some("completed") => log.result(call, Outcome::Ok, &flat(state.get("output").unwrap_or(&Value::Null))),
                Some("error") => log.result(call, Outcome::Error, text(state, "error").unwrap_or_default()),
                _ => {}
            }
        }
        _ => {}
    }
}
