//! Sends `tracing` to a file of the state folder: one a day, a week of them, for the owner alone. Never to the screen.
//!
//! Callers must not log keys, headers or request bodies: nothing here could tell them from other text.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::LevelFilter;

use super::paths::Paths;
use super::settings::{Log, LogLevel};
use crate::stdx::fs::private_dir;

/// Days whose files are kept.
const KEEP: usize = 7;
/// Most lines that wait to be written; more are lost. (Room is taken, and touched, for all of them at the start: the
/// appender's own 128,000 cost 4 MiB and a millisecond.)
const WAITING: usize = 1024;
/// Where the system keeps its time zone.
const LOCALTIME: &str = "/etc/localtime";

/// Starts logging; dropping the guard writes what is pending. None when the level is `off`, or when a subscriber is
/// there already. No file is touched before the first line is logged.
pub fn start(paths: &Paths, log: &Log, today: fn() -> String) -> Option<WorkerGuard> {
    let level = match log.level {
        LogLevel::Off => return None,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let file = DailyFile { folder: paths.state_dir.clone(), today, open: None };
    let (writer, guard) = NonBlockingBuilder::default().buffered_lines_limit(WAITING).thread_name("log").finish(file);
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_max_level(level).with_writer(writer).finish();
    tracing::subscriber::set_global_default(subscriber).ok().map(|()| guard)
}

/// Today as `YYYY-MM-DD`, for `start`.
pub fn today() -> String {
    // Where `TZ` says nothing, the system's file alone tells; to find its name jiff would walk the whole database.
    let system = match std::env::var_os("TZ") {
        None => fs::read(LOCALTIME).ok().and_then(|tzif| TimeZone::tzif("local", &tzif).ok()),
        Some(_) => None,
    };
    jiff::Timestamp::now().to_zoned(system.unwrap_or_else(TimeZone::system)).date().to_string()
}

/// Opens its file on the first write, and another one when the day has changed. (The appender's own rolling file opens
/// at once, and with the process's umask.)
struct DailyFile {
    folder: PathBuf,
    today: fn() -> String,
    open: Option<(String, File)>,
}

impl DailyFile {
    fn current(&mut self) -> io::Result<&mut File> {
        let day = (self.today)();
        let open = match self.open.take() {
            Some((of, file)) if of == day => (of, file),
            _ => {
                private_dir(&self.folder)?;
                let mut options = OpenOptions::new();
                options.create(true).append(true);
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                let path = self.folder.join(format!("cocode.{day}.log"));
                let file = options.open(&path)?;
                remove_old(&self.folder, &path);
                (day, file)
            }
        };
        Ok(&mut self.open.insert(open).1)
    }
}

impl Write for DailyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.current()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |(_, file)| file.flush())
    }
}

fn remove_old(folder: &Path, current: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let ours = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("cocode.") && name.ends_with(".log"))
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(ours).collect();
    // Names end in dates, so they sort by age.
    files.sort();
    // A clock that went back makes the newest one look old.
    for file in files.iter().rev().skip(KEEP).filter(|file| *file != current) {
        let _ = fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn today_is_what_the_database_says() {
        // Asked twice, since midnight may fall between.
        let whole = || jiff::Zoned::now().date().to_string();
        let (before, ours, after) = (whole(), today(), whole());
        assert!(ours == before || ours == after, "{ours}, not {after}");
    }

    #[test]
    fn a_file_a_day_and_a_week_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        let mut log = DailyFile { folder: folder.clone(), today: || "2026-11-21".into(), open: None };
        assert!(!folder.exists(), "nothing is opened before the first line");
        log.write_all(b"one\n").unwrap();
        for day in 10..20 {
            fs::write(folder.join(format!("cocode.2026-11-{day}.log")), "old").unwrap();
        }
        fs::write(folder.join("notes.log"), "mine").unwrap();
        log.today = || "2026-11-22".into();
        log.write_all(b"two\n").unwrap();
        log.write_all(b"three\n").unwrap();
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let days = ["15", "16", "17", "18", "19", "21", "22"].map(|day| format!("cocode.2026-11-{day}.log"));
        assert_eq!(names, days.iter().map(String::as_str).chain(["notes.log"]).collect::<Vec<_>>());
        log.today = || "2016-01-01".into();
        log.write_all(b"back\n").unwrap();
        assert_eq!(fs::read_to_string(folder.join("cocode.2016-01-01.log")).unwrap(), "back\n");
        let newest = folder.join("cocode.2026-11-22.log");
        assert_eq!(fs::read_to_string(&newest).unwrap(), "two\nthree\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&newest).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
