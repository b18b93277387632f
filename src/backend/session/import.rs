//! Sessions of other programs, written as logs of ours: found, resumed and recalled like any other.
//!
//! What is imported is a copy. The source is only read, links below its folder are not followed, and texts lose what looks
//! like a key. `imported.json` beside a log says where it comes from, so that a second import writes only what changed; a
//! session that was continued here is never replaced.

mod calls;
mod claude;
mod codex;
mod lines;
mod opencode;
mod pi;
mod tree;
mod writer;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::claude::OWN;
pub use self::writer::Written;
use self::writer::{Writer, id_of};
use super::log::FILE;
use crate::stdx::fs::private_dir;
use crate::stdx::hash::sha256_hex;

/// What tells of an import, in the folder of its session.
const ORIGIN: &str = "imported.json";

/// A program whose sessions can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Claude,
    Codex,
    Opencode,
    Pi,
}

impl Source {
    pub const ALL: [Source; 4] = [Source::Claude, Source::Codex, Source::Opencode, Source::Pi];

    pub fn name(self) -> &'static str {
        match self {
            Source::Claude => "Claude Code",
            Source::Codex => "Codex",
            Source::Opencode => "opencode",
            Source::Pi => "pi",
        }
    }

    /// Its name where ids are made.
    fn key(self) -> &'static str {
        match self {
            Source::Claude => "claude",
            Source::Codex => "codex",
            Source::Opencode => "opencode",
            Source::Pi => "pi",
        }
    }

    fn archive(self, root: &Path) -> io::Result<Box<dyn Archive>> {
        Ok(match self {
            Source::Claude => Box::new(claude::Claude::new(root)),
            Source::Codex => Box::new(codex::Codex::new(root)),
            Source::Opencode => Box::new(opencode::Opencode::open(root)?),
            Source::Pi => Box::new(pi::Pi::new(root)),
        })
    }
}

/// Sessions of a program.
trait Archive {
    /// All that there are, sub-agents left out where that shows.
    fn sessions(&mut self) -> io::Result<Vec<Found>>;

    /// Tells what a session says. False: it is a sub-agent's, which is not imported.
    fn read(&mut self, found: &Found, log: &mut Writer<'_>) -> io::Result<bool>;
}

/// A session that there is.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    /// Their id.
    id: String,
    path: PathBuf,
    changed: SystemTime,
    /// Changes whenever the session does.
    stamp: u64,
}

/// `imported.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Origin {
    source: Source,
    id: String,
    path: PathBuf,
    stamp: u64,
    /// SHA-256 of the log as it was imported: another one was continued here.
    hash: String,
}

/// What became of one session.
#[derive(Debug)]
pub enum Outcome {
    New,
    /// It had grown since the last import.
    Updated,
    Unchanged,
    /// It was continued here, so it stays as it is.
    Continued,
    /// It has no prompt, or is a sub-agent's.
    Nothing,
    Failed(io::Error),
}

#[derive(Debug)]
pub struct Imported {
    /// The id that the session has here.
    pub id: String,
    pub path: PathBuf,
    pub outcome: Outcome,
    /// What was read; empty where nothing had to be.
    pub written: Written,
}

/// Whether anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    Real,
    Dry,
}

/// Imports the sessions of a program that were used since then, and tells of each.
///
/// # Errors
/// The folder of the program cannot be read. One session that cannot be is told of and left out.
pub fn import(
    (source, root): (Source, &Path),
    home: &Path,
    version: &str,
    (since, run): (SystemTime, Run),
    mut tell: impl FnMut(Imported),
) -> io::Result<()> {
    let mut archive = source.archive(root)?;
    let mut seen = HashSet::new();
    for found in archive.sessions()?.into_iter().filter(|found| found.changed >= since) {
        let id = id_of(source.key(), &found.id);
        if seen.insert(id.clone()) {
            let mut written = Written::default();
            let to = To { source, home, id: &id, version };
            let outcome = to.one(archive.as_mut(), &found, run, &mut written).unwrap_or_else(Outcome::Failed);
            tell(Imported { id, path: found.path, outcome, written });
        }
    }
    Ok(())
}

/// When a session was imported, if it was.
pub(super) fn imported_at(log: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(log.with_file_name(ORIGIN)).ok()?.modified().ok()
}

/// Where a session goes.
struct To<'a> {
    source: Source,
    home: &'a Path,
    id: &'a str,
    version: &'a str,
}

impl To<'_> {
    fn one(&self, archive: &mut dyn Archive, found: &Found, run: Run, written: &mut Written) -> io::Result<Outcome> {
        let folder = self.home.join(self.id);
        let log = folder.join(FILE);
        let known = fs::read(folder.join(ORIGIN)).ok().and_then(|bytes| serde_json::from_slice::<Origin>(&bytes).ok());
        let there = log.exists();
        match &known {
            Some(known) if there && known.stamp == found.stamp => return Ok(Outcome::Unchanged),
            Some(known) if there && fs::read(&log).is_ok_and(|bytes| sha256_hex(&bytes) == known.hash) => {}
            _ if there => return Ok(Outcome::Continued),
            _ => {}
        }
        let done = if there { Outcome::Updated } else { Outcome::New };
        if run == Run::Dry {
            let read = self.write(archive, found, &mut io::sink(), written)?;
            return Ok(if read { done } else { Outcome::Nothing });
        }
        private_dir(self.home)?;
        // Beside its place until it is whole: a list knows a session by the name of its folder.
        let mut temp = tempfile::Builder::new();
        #[cfg(unix)]
        temp.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let temp = temp.prefix(".import-").tempdir_in(self.home)?;
        let mut out = BufWriter::new(private(&temp.path().join(FILE))?);
        if !self.write(archive, found, &mut out, written)? {
            return Ok(Outcome::Nothing);
        }
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let last = Duration::from_millis(written.last_ms.max(0).cast_unsigned());
        file.set_modified((UNIX_EPOCH + last).min(SystemTime::now()))?;
        file.sync_all()?;
        let (source, id, path) = (self.source, found.id.clone(), found.path.clone());
        let origin = Origin { source, id, path, stamp: found.stamp, hash: written.hash.clone() };
        private(&temp.path().join(ORIGIN))?.write_all(&serde_json::to_vec(&origin)?)?;
        if there {
            // A process that has it open would write into nothing.
            let open = File::open(&log)?;
            if open.try_lock().is_err() {
                return Ok(Outcome::Continued);
            }
            fs::remove_dir_all(&folder)?;
        }
        fs::rename(temp.path(), folder)?;
        Ok(done)
    }

    /// Writes the log. False: there is nothing in it to import.
    fn write(
        &self,
        archive: &mut dyn Archive,
        found: &Found,
        out: &mut dyn Write,
        written: &mut Written,
    ) -> io::Result<bool> {
        let notice = format!("Imported from {}: {}", self.source.name(), found.id);
        let mut log = Writer::new(out, self.id, self.version, notice);
        if !archive.read(found, &mut log)? {
            return Ok(false);
        }
        *written = log.finish()?;
        Ok(written.prompts > 0)
    }
}

/// A new file for its owner alone.
fn private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The regular files below a folder that end so, links left out; their names without the ending.
fn files(folder: &Path, depth: usize, ending: &str) -> Vec<(String, PathBuf, fs::Metadata)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Of the entry itself: a link may lead anywhere.
        let (Ok(meta), path) = (entry.metadata(), entry.path()) else { continue };
        if meta.is_dir() && depth > 0 {
            found.extend(files(&path, depth - 1, ending));
        } else if meta.is_file()
            && let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(ending))
        {
            found.push((name.to_owned(), path, meta));
        }
    }
    found.sort_by(|one, two| one.1.cmp(&two.1));
    found
}

impl Found {
    /// A session with a file of its own.
    fn file(id: String, path: PathBuf, meta: &fs::Metadata) -> Found {
        let changed = meta.modified().unwrap_or(UNIX_EPOCH);
        let nanos = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        Found { id, path, changed, stamp: nanos ^ meta.len().rotate_left(32) }
    }
}

/// A field that is text.
fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// A time in RFC 3339, as milliseconds since 1970.
fn millis(value: &Value, name: &str) -> Option<i64> {
    Some(text(value, name)?.parse::<jiff::Timestamp>().ok()?.as_millisecond())
}

/// Text that came as such, or in blocks of which some are text. What else a block is, its type tells.
fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(flat).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        block => match (text(block, "text"), text(block, "type")) {
            (Some(text), _) => text.to_owned(),
            (None, Some(kind)) if block.get("image_url").or(block.get("source")).or(block.get("data")).is_some() => {
                format!("[{kind}]")
            }
            _ => block.to_string(),
        },
    }
}

#[cfg(test)]
mod tests;
