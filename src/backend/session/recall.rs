//! Finds words in the logs of sessions: everything that was ever said in one, whether it is still in the context or not.
//!
//! The bytes of a log are looked through by all processors, only the lines that promise most are parsed. Which words the
//! parts of all logs have is kept beside them, so that the next search reads few of them. What was rewound away, thoughts, and what
//! looks like a key are not shown.

mod piece;
mod scan;
mod sessions;
mod terms;
mod words;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use self::piece::tool_of;
pub use self::piece::{Kind, Piece, pieces};
use self::scan::{Candidate, Scanned};
pub use self::sessions::{Hit, logs, sessions};
pub use self::terms::{Terms, Wrong};
use super::entry::Seq;
use super::line;
use crate::stdx::fs::private_dir;
use crate::stdx::{redact, regular};

/// The tool that searches here: what it found before is not found again.
pub const TOOL: &str = "Recall";

/// Lines that are parsed before the best of them are told. Few of them disappoint: the words are in their bytes.
const PARSED: usize = 80;

/// Bytes of an excerpt.
const WIDTH: usize = 260;

/// A place where words were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Which of the logs it is in.
    pub log: usize,
    pub seq: Seq,
    /// Number of the prompt that it follows, from 1; 0 before the first.
    pub turn: usize,
    pub kind: Kind,
    /// The tool of a call or a result.
    pub tool: Option<String>,
    /// Around the words, in one line, without keys.
    pub excerpt: String,
    score: f32,
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// The best first.
    pub places: Vec<Place>,
    /// Lines that hold some of the words. Not all of them were looked at.
    pub lines: usize,
    /// Prompts of the first log.
    turns: usize,
}

impl Found {
    /// Puts what the newest turn of the first log says last: it asks, and is in the context anyway.
    pub fn newest_turn_last(mut self) -> Found {
        let newest = self.turns;
        self.places.sort_by_key(|place| place.log == 0 && place.turn == newest);
        self
    }
}

/// Searches logs of a home, those that cannot be read left out.
pub fn search(home: &Path, logs: &[PathBuf], query: &Terms, most: usize) -> Found {
    let enough = PARSED.max(most * 2);
    let (scans, weights) = scan::look(home, logs, query, enough);
    let mut candidates: Vec<(f32, usize, Candidate)> = Vec::new();
    for (at, scan) in scans.iter().enumerate() {
        let live = scan.candidates.iter().filter(|candidate| scan.is_live(candidate.seq));
        candidates.extend(live.map(|candidate| (candidate.promise(&weights), at, *candidate)));
    }
    // The later of two that promise the same: it may correct the other.
    let order = |(score, log, one): &(f32, usize, Candidate), (other, at, two): &(f32, usize, Candidate)| {
        other.total_cmp(score).then(log.cmp(at)).then(two.seq.cmp(&one.seq))
    };
    candidates.sort_unstable_by(order);
    let lines = candidates.len();
    let mut places = Vec::new();
    let mut open: HashMap<usize, File> = HashMap::new();
    for (_, at, candidate) in candidates.into_iter().take(enough) {
        if let Entry::Vacant(place) = open.entry(at) {
            let Ok(log) = regular::open(&logs[at]) else { continue };
            place.insert(log);
        }
        let Some(log) = open.get_mut(&at) else { continue };
        // A line that has gone bad is passed over.
        let _ = look(log, at, candidate, query, &weights, &scans[at], &mut places);
    }
    places.sort_by(|one: &Place, two: &Place| {
        two.score.total_cmp(&one.score).then(one.log.cmp(&two.log)).then(two.seq.cmp(&one.seq))
    });
    let mut told = HashMap::new();
    places.retain(|place| told.insert(place.excerpt.clone(), ()).is_none());
    let turns = scans.first().map_or(0, |scan| scan.turn(Seq::MAX));
    Found { places, lines, turns }
}

/// Brings what is kept of the words of a home's logs up to date; ends early when told to. Does nothing while another one is
/// at it.
pub fn remember(home: &Path, logs: &[PathBuf], stop: &dyn Fn() -> bool) {
    let folder = home.join("cocode");
    let lock = || {
        private_dir(&folder)?;
        File::options().write(true).create(true).truncate(false).open(folder.join("words.lock"))
    };
    let Ok(lock) = lock() else { return };
    if lock.try_lock().is_err() {
        return;
    }
    if let Err(error) = words::update(home, logs, stop) {
        tracing::debug!(%error, "the words of the logs were not kept");
    }
}

/// The same beside what else is done, when nothing else wants a processor. An end of the program does not wait for it.
pub fn remember_beside(home: PathBuf, logs: impl FnOnce(&Path) -> Vec<PathBuf> + Send + 'static) {
    let remember = move || {
        // On Linux this is of the thread alone.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, 19);
        remember(&home, &logs(&home), &|| false);
    };
    // Without it a search only takes longer.
    let _ = std::thread::Builder::new().name("words".into()).spawn(remember);
}

/// Parses a line and adds the places in it.
fn look(
    log: &mut File,
    at: usize,
    candidate: Candidate,
    query: &Terms,
    weights: &[f32],
    scan: &Scanned,
    places: &mut Vec<Place>,
) -> io::Result<()> {
    let Some(entry) = line::parse(&candidate.read(log)?) else { return Ok(()) };
    for piece in pieces(&entry.kind).into_iter().filter(|piece| query.wants(piece.kind)) {
        let Some(rough) = query.best(&piece.text, weights) else { continue };
        let tool = match (&piece.tool, &piece.call) {
            (None, Some(call)) => tool_of(log, candidate.offset, call)?,
            (tool, _) => tool.clone(),
        };
        if tool.as_deref() == Some(TOOL) {
            continue;
        }
        // Only what is told has to be free of keys; words that were found in one alone are not found.
        let around = piece::around(&piece.text, rough.range);
        let text = redact::keys(around);
        let Some(best) = query.best(&text, weights) else { continue };
        places.push(Place {
            log: at,
            seq: entry.seq,
            turn: scan.turn(entry.seq),
            kind: piece.kind,
            tool,
            excerpt: piece::excerpt(&text, best.range, WIDTH),
            score: best.score * piece.kind.weight(),
        });
    }
    Ok(())
}

/// What one entry says, in words: each piece with what it is. None: there is no such entry, or nothing in it is told.
///
/// # Errors
/// What reading the log says.
pub fn read(log: &Path, seq: Seq) -> io::Result<Option<Vec<Piece>>> {
    let scan = scan::scan(log, &Terms::default())?;
    let Some(found) = scan.candidates.iter().find(|one| one.seq == seq && scan.is_live(seq)) else { return Ok(None) };
    let pieces =
        line::parse(&found.read(&mut regular::open(log)?)?).map(|entry| pieces(&entry.kind)).unwrap_or_default();
    let hidden = pieces.into_iter().map(|piece| Piece { text: redact::keys(&piece.text), ..piece });
    Ok(Some(hidden.collect()).filter(|pieces: &Vec<Piece>| !pieces.is_empty()))
}

#[cfg(test)]
mod tests;
