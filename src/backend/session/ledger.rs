//! What all processes of the user spend, a line a request: `ledger.jsonl` in the state folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::message::Usage;
use crate::stdx::fs::private_dir;

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
}

impl Ledger {
    /// Without a path nothing is kept.
    pub fn new(path: Option<PathBuf>) -> Ledger {
        Ledger { path, ..Ledger::default() }
    }

    /// Adds a line, whatever other processes add meanwhile.
    ///
    /// # Errors
    /// What the file system says.
    pub fn add(&self, line: &Line) -> io::Result<()> {
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
        let day = ts.get(..10).unwrap_or(ts);
        if self.day != day {
            (self.day, self.spent, self.read) = (day.to_owned(), 0.0, 0);
        }
        if let Err(error) = self.read_on() {
            tracing::warn!(%error, "the ledger cannot be read");
        }
        self.spent
    }

    fn read_on(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
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
        let (one, two) = (Ledger::new(Some(path.clone())), Ledger::new(Some(path.clone())));
        let mut reader = Ledger::new(Some(path.clone()));
        assert_eq!(reader.of_day("2026-01-02T"), 0.0);
        one.add(&line("2026-01-01", Some(8.0))).unwrap();
        one.add(&line("2026-01-02", Some(1.0))).unwrap();
        two.add(&line("2026-01-02", None)).unwrap();
        assert_eq!(reader.of_day("2026-01-02T"), 1.0);
        // A writer was killed in the middle of its line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"ts\":\"2026-01-02T").unwrap();
        two.add(&line("2026-01-02", Some(0.5))).unwrap();
        assert_eq!(reader.of_day("2026-01-02T"), 1.5);
        assert_eq!(reader.of_day("2026-01-01T"), 8.0);
    }

    #[test]
    fn lines_of_many_writers_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let ledger = Ledger::new(Some(path.clone()));
                    (0..50).for_each(|_| ledger.add(&line("2026-01-02", Some(0.25))).unwrap());
                });
            }
        });
        assert_eq!(Ledger::new(Some(path)).of_day("2026-01-02T"), 50.0);
    }
}
