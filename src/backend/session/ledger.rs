//! What all processes of the user spend, a line a request: `ledger.jsonl` in the state folder.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::message::Usage;
use crate::stdx::fs::private_dir;
use crate::stdx::regular;

/// Days of which lines are kept.
const KEPT: i64 = 31;

/// Bytes from which on older lines are cleared away, and of lines that are kept then.
const LARGE: u64 = if cfg!(test) { 2_000 } else { 1 << 20 };
const MOST: usize = if cfg!(test) { 12_000 } else { 4 << 20 };

/// Lines that wait until they can be written: those of all agents at work when the file fails.
const WAITING: usize = 1_000;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// RFC 3339, UTC.
    pub ts: String,
    pub session: String,
    pub model: String,
    #[serde(flatten)]
    pub usage: Usage,
    /// None: the catalog has no price.
    pub usd: Option<f64>,
}

/// The file, and what of it was read.
#[derive(Debug, Default)]
pub struct Ledger {
    path: Option<PathBuf>,
    read: u64,
    day: String,
    spent: f64,
    /// What could not be written yet.
    waiting: VecDeque<Line>,
    trouble: Option<String>,
}

impl Ledger {
    /// Without a path nothing is kept.
    pub fn new(path: Option<PathBuf>) -> Ledger {
        Ledger { path, ..Ledger::default() }
    }

    /// Adds a line, whatever other processes add meanwhile. What cannot be written waits.
    pub fn add(&mut self, line: &Line) {
        self.turn_to(&line.ts);
        self.waiting.push_back(line.clone());
        if self.waiting.len() > WAITING {
            self.waiting.pop_front();
        }
        self.write_on();
    }

    /// Why the file does not have everything, where it cannot be read or written now.
    pub fn trouble(&self) -> Option<String> {
        let path = self.path.as_ref()?.display();
        Some(format!("{path} cannot be used ({})", self.trouble.as_deref()?))
    }

    fn turn_to(&mut self, ts: &str) {
        let day = ts.get(..10).unwrap_or(ts);
        if self.day != day {
            (self.day, self.read, self.spent) = (day.to_owned(), 0, 0.0);
        }
    }

    /// Writes what waits.
    fn write_on(&mut self) {
        while let Some(line) = self.waiting.front() {
            let written = self.write(line);
            if !self.did(written) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    fn did(&mut self, done: io::Result<()>) -> bool {
        if let Err(error) = &done {
            tracing::warn!(%error, "the ledger cannot be used");
        }
        self.trouble = done.err().map(|error| error.to_string());
        self.trouble.is_none()
    }

    fn write(&self, line: &Line) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(folder) = path.parent() {
            private_dir(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        file.lock()?;
        if file.metadata()?.len() > LARGE {
            clear(&mut file, &line.ts)?;
        }
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if torn(&mut file)? {
            bytes.insert(0, b'\n');
        }
        // The lock ends with the file.
        file.write_all(&bytes)
    }

    /// What was spent on the day of this time, in dollars, by all processes. Requests without a price count nothing. While
    /// there is trouble it is not known.
    pub fn of_day(&mut self, ts: &str) -> f64 {
        self.turn_to(ts);
        self.write_on();
        if self.waiting.is_empty() {
            let read = self.read_on();
            self.did(read);
        }
        self.spent
    }

    fn read_on(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = match regular::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if file.metadata()?.len() < self.read {
            // Older days were cleared away.
            (self.read, self.spent) = (0, 0.0);
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut new = Vec::new();
        file.read_to_end(&mut new)?;
        let whole = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in new[..whole].split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
            if line.ts.starts_with(&self.day) {
                self.spent += line.usd.unwrap_or_default();
            }
        }
        self.read += whole as u64;
        Ok(())
    }
}

/// Clears away what is older than `KEPT` days, and the oldest of what is more than `MOST` bytes: with the first line of a day, so that nothing of a day that is being counted is
/// lost where the process is killed meanwhile.
fn clear(file: &mut File, now: &str) -> io::Result<()> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    let ts = |line: &str| serde_json::from_str::<Line>(line).ok().map(|line| line.ts);
    let (today, last) = (now.get(..10), text.lines().rev().find_map(ts));
    if today.is_none() || last.as_deref().and_then(|last| last.get(..10)) == today {
        return Ok(());
    }
    let date = today.and_then(|today| today.parse::<jiff::civil::Date>().ok());
    let Some(first) = date.and_then(|date| date.checked_sub(jiff::Span::new().days(KEPT)).ok()) else { return Ok(()) };
    let first = first.to_string();
    let mut room = MOST;
    let fits = |line: &&str| {
        room = room.saturating_sub(line.len());
        room > 0 && ts(line).is_some_and(|ts| ts >= first)
    };
    let mut kept: Vec<&str> = text.split_inclusive('\n').rev().take_while(fits).collect();
    kept.reverse();
    let kept = kept.concat();
    if kept.len() == text.len() {
        return Ok(());
    }
    file.set_len(0)?;
    file.write_all(kept.as_bytes())
}

/// Whether the file ends in half a line: its writer was killed.
fn torn(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(day: &str, usd: Option<f64>) -> Line {
        let usage = Usage { input: 1, ..Usage::default() };
        Line { ts: format!("{day}T10:00:00.000Z"), session: "s".into(), model: "m".into(), usage, usd }
    }

    #[test]
    fn a_day_is_what_all_writers_spent_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/ledger.jsonl");
        let (mut one, mut two) = (Ledger::new(Some(path.clone())), Ledger::new(Some(path.clone())));
        let mut reader = Ledger::new(Some(path.clone()));
        assert_eq!(reader.of_day("2026-01-02T"), 0.0);
        one.add(&line("2026-01-01", Some(8.0)));
        one.add(&line("2026-01-02", Some(1.0)));
        two.add(&line("2026-01-02", None));
        assert_eq!(reader.of_day("2026-01-02T"), 1.0);
        // A writer was killed in the middle of its line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"ts\":\"2026-01-02T").unwrap();
        two.add(&line("2026-01-02", Some(0.5)));
        assert_eq!(reader.of_day("2026-01-02T"), 1.5);
        assert_eq!(reader.of_day("2026-01-01T"), 8.0);
    }

    #[test]
    fn older_days_are_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let (mut ledger, mut other) = (Ledger::new(Some(path.clone())), Ledger::new(Some(path.clone())));
        (0..30).for_each(|_| ledger.add(&line("2026-01-25", Some(1.0))));
        (0..30).for_each(|_| ledger.add(&line("2026-02-20", Some(0.5))));
        assert_eq!((other.of_day("2026-01-25T"), other.of_day("2026-02-20T")), (30.0, 15.0));
        let days = || {
            let text = std::fs::read_to_string(&path).unwrap();
            ["2026-01-25", "2026-02-20", "2026-03-01"].map(|day| text.lines().filter(|line| line.contains(day)).count())
        };
        assert_eq!(days(), [30, 30, 0]);
        ledger.add(&line("2026-03-01", Some(0.25)));
        assert_eq!(days(), [0, 30, 1]);
        // Others count on.
        ledger.add(&line("2026-03-01", Some(0.25)));
        assert_eq!((other.of_day("2026-03-01T"), ledger.of_day("2026-03-01T")), (0.5, 0.5));
        // However many there are, the file stays small.
        (0..200).for_each(|_| ledger.add(&line("2026-03-01", Some(0.0))));
        ledger.add(&line("2026-03-02", Some(0.0)));
        assert!(std::fs::metadata(&path).unwrap().len() < MOST as u64 + 200);
    }

    #[test]
    fn what_cannot_be_written_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let mut ledger = Ledger::new(Some(path.clone()));
        ledger.add(&line("2026-01-02", Some(1.0)));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        ledger.add(&line("2026-01-02", Some(2.0)));
        ledger.of_day("2026-01-02T");
        assert!(ledger.trouble().unwrap().contains("ledger.jsonl cannot be used"));
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        assert_eq!((ledger.of_day("2026-01-02T"), ledger.trouble()), (3.0, None));
        assert_eq!(Ledger::new(Some(path)).of_day("2026-01-02T"), 3.0);
    }

    #[test]
    fn lines_of_many_writers_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut ledger = Ledger::new(Some(path.clone()));
                    (0..50).for_each(|_| ledger.add(&line("2026-01-02", Some(0.25))));
                });
            }
        });
        assert_eq!(Ledger::new(Some(path)).of_day("2026-01-02T"), 50.0);
    }
}
