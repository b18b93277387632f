//! What all processes of the user spend, a line a request: `ledger.jsonl` in the state folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::message::Usage;
use crate::stdx::fs::private_dir;
use crate::stdx::regular;

/// Days of which lines are kept.
const KEPT: i64 = 31;

/// Bytes from which on older lines are cleared away.
const LARGE: u64 = if cfg!(test) { 2_000 } else { 1 << 20 };

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
    /// What this process spent on the day, and what of that the file does not have.
    own: f64,
    lost: f64,
    trouble: Option<String>,
}

impl Ledger {
    /// Without a path nothing is kept.
    pub fn new(path: Option<PathBuf>) -> Ledger {
        Ledger { path, ..Ledger::default() }
    }

    /// Adds a line, whatever other processes add meanwhile. What cannot be written counts in this process.
    pub fn add(&mut self, line: &Line) {
        self.turn_to(&line.ts);
        let usd = line.usd.unwrap_or_default();
        self.own += usd;
        if let Err(error) = self.write(line) {
            self.lost += usd;
            self.note(&error);
        }
    }

    /// Why the file does not have everything, where it could not be read or written.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn note(&mut self, error: &io::Error) {
        tracing::warn!(%error, "the ledger cannot be used");
        self.trouble.get_or_insert_with(|| error.to_string());
    }

    fn turn_to(&mut self, ts: &str) {
        let day = ts.get(..10).unwrap_or(ts);
        if self.day != day {
            let (path, trouble) = (self.path.take(), self.trouble.take());
            *self = Ledger { path, trouble, day: day.to_owned(), ..Ledger::default() };
        }
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

    /// What was spent on the day of this time, in dollars, by all processes. Requests without a price count nothing.
    pub fn of_day(&mut self, ts: &str) -> f64 {
        self.turn_to(ts);
        match self.read_on() {
            Ok(()) => self.spent + self.lost,
            Err(error) => {
                self.note(&error);
                (self.spent + self.lost).max(self.own)
            }
        }
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

/// Clears away what is older than `KEPT` days: with the first line of a day, so that nothing of a day that is being counted is
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
    let kept: String = text.split_inclusive('\n').filter(|line| ts(line).is_some_and(|ts| ts >= first)).collect();
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
