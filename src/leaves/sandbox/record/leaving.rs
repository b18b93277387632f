//! What a command left at each path, while it runs. The kernel does not tell who writes to an open file, so each path that a
//! call changes is looked at until it rests and nothing of the command can write to it. What differs from that later, and no
//! call of the command explains, somebody else did.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::manifest::{LEFT, Left, Stamp};
use super::notify::Seen;
use crate::sandbox::{Before, Saved};
use crate::stdx::process::descendants;

/// How soon a path is looked at again, and how late where nothing happens: a server may hold its log open for days.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(30);

/// Looking takes no more than one part in so many of the time.
const SHARE: u32 = 20;

/// Most paths that are looked at in one go, while calls wait.
const MOST: usize = 200;

/// Largest file whose content is kept as the command left it, in bytes, so that changes by others can be told from its own; and
/// most bytes of one command.
const LARGEST: u64 = 256 << 10;
const BUDGET: u64 = 2 << 20;

/// Why a content is not there.
const UNSAVED: &str = "what the command left there was not saved";

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Absent,
    File(Stamp),
    Link(PathBuf),
    Folder,
    Special,
}

#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// The folder of the record.
    store: PathBuf,
    /// Paths of calls that may still change something, and what was there when they were looked at since.
    fresh: HashMap<PathBuf, Option<Found>>,
    left: HashMap<PathBuf, Left>,
    /// The paths in `left` of each file: what is written to it under one of its names shows under all.
    names: HashMap<(u64, u64), Vec<PathBuf>>,
    due: Option<Instant>,
    pause: Duration,
    count: u64,
    saved: u64,
}

impl Found {
    fn at(path: &Path) -> Option<Found> {
        match fs::symlink_metadata(path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Some(Found::Absent)
            }
            Err(_) => None,
            Ok(meta) if meta.is_file() => Some(Found::File(Stamp::of(&meta))),
            Ok(meta) if meta.is_dir() => Some(Found::Folder),
            Ok(meta) if meta.is_symlink() => fs::read_link(path).ok().map(Found::Link),
            Ok(_) => Some(Found::Special),
        }
    }
}

impl Left {
    /// Whether that is still there. Times alone, and further names, do not count.
    fn is(&self, found: &Found) -> bool {
        match (&self.is, found) {
            (Before::Absent, Found::Absent)
            | (Before::Folder { .. }, Found::Folder)
            | (Before::Special, Found::Special) => true,
            (Before::Link { target }, Found::Link(found)) => target == found,
            (Before::File { .. }, Found::File(found)) => {
                self.stamp.is_some_and(|left| left.same_content(found) && left.mode == found.mode)
            }
            _ => false,
        }
    }
}

impl Leaving {
    pub(super) fn new(store: &Path) -> Leaving {
        Leaving { store: store.to_owned(), ..Leaving::default() }
    }

    /// A call is about to change a path, where this is. Returns what the command left at paths that somebody else has changed
    /// since: that one, and other names of the same file.
    pub(super) fn touched(&mut self, path: &Path, seen: Option<&Seen>) -> Vec<(PathBuf, Left)> {
        let file = seen.filter(|seen| seen.is_file());
        let mut paths = file.map(|seen| self.take_names(&seen.stamp)).unwrap_or_default();
        paths.retain(|other| other != path);
        paths.push(path.to_owned());
        self.fresh.insert(path.to_owned(), None);
        let mut changed = Vec::new();
        for path in paths {
            let Some(left) = self.left.remove(&path) else {
                continue;
            };
            match Found::at(&path) {
                Some(found) if !left.is(&found) => changed.push((path.clone(), left)),
                _ => self.forget(left),
            }
            self.fresh.insert(path, None);
        }
        self.soon();
        changed
    }

    /// The same for a file that is changed under none of its names.
    pub(super) fn stirred(&mut self, stamp: &Stamp) {
        for path in self.take_names(stamp) {
            if let Some(left) = self.left.remove(&path) {
                self.forget(left);
                self.fresh.insert(path, None);
            }
        }
        self.soon();
    }

    /// Its copy is needed no more.
    fn forget(&mut self, left: Left) {
        if let Before::File { size, saved: Saved::As(name), .. } = left.is {
            self.saved = self.saved.saturating_sub(size);
            let _ = fs::remove_file(self.store.join(name));
        }
    }

    fn soon(&mut self) {
        if !self.fresh.is_empty() && (self.due.is_none() || self.pause > SOONEST) {
            (self.due, self.pause) = (Some(Instant::now() + SOONEST), SOONEST);
        }
    }

    fn take_names(&mut self, stamp: &Stamp) -> Vec<PathBuf> {
        self.names.remove(&(stamp.dev, stamp.ino)).unwrap_or_default()
    }

    /// How long until paths are to be looked at.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Looks at paths, when it is time.
    pub(super) fn look(&mut self, now: u64) {
        let start = Instant::now();
        if self.due.is_none_or(|due| start < due) {
            return;
        }
        let paths: Vec<PathBuf> = self.fresh.keys().take(MOST).cloned().collect();
        let mut some = false;
        if let Some(open) = Open::of(&descendants(|_| false)) {
            for path in paths {
                let Some(found) = Found::at(&path) else { continue };
                let busy = matches!(&found, Found::File(stamp) if open.holds(stamp));
                let Some(last) = self.fresh.get_mut(&path) else { continue };
                if busy || last.as_ref() != Some(&found) {
                    some |= !busy;
                    *last = Some(found);
                    continue;
                }
                some = true;
                self.fresh.remove(&path);
                self.rests(path, found, now);
            }
        }
        let pause = if some { SOONEST } else { (self.pause * 2).min(LATEST) };
        self.pause = pause.max(start.elapsed() * SHARE);
        self.due = (!self.fresh.is_empty()).then(|| Instant::now() + self.pause);
    }

    /// Nothing of the command changes what is at a path until its next call there.
    fn rests(&mut self, path: PathBuf, found: Found, now: u64) {
        let left = self.keep(&path, found, now);
        if let Some(stamp) = &left.stamp {
            self.names.entry((stamp.dev, stamp.ino)).or_default().push(path.clone());
        }
        self.left.insert(path, left);
    }

    fn keep(&mut self, path: &Path, found: Found, at: u64) -> Left {
        let (is, stamp) = match found {
            Found::Absent => (Before::Absent, None),
            Found::Link(target) => (Before::Link { target }, None),
            Found::Folder => (Before::Folder { mode: mode(path) }, None),
            Found::Special => (Before::Special, None),
            Found::File(stamp) => {
                let saved = self.save(path, &stamp).map_or_else(|| Saved::Lost(UNSAVED.to_owned()), Saved::As);
                (Before::File { mode: stamp.mode & 0o7777, size: stamp.size, saved }, Some(stamp))
            }
        };
        Left { at, is, stamp }
    }

    /// The name of a copy in the store; none where it is too much.
    fn save(&mut self, path: &Path, stamp: &Stamp) -> Option<String> {
        if stamp.size > LARGEST.min(BUDGET.saturating_sub(self.saved)) {
            return None;
        }
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        let mut bytes = Vec::new();
        (&file).take(LARGEST).read_to_end(&mut bytes).ok()?;
        if !Stamp::of(&file.metadata().ok()?).same_state(stamp) {
            return None;
        }
        self.count += 1;
        self.saved += stamp.size;
        let name = format!("{}{LEFT}", self.count);
        // Under its name it is whole.
        let half = self.store.join(format!("{name}~"));
        let written = fs::write(&half, bytes).and_then(|()| fs::rename(&half, self.store.join(&name)));
        if written.is_err() {
            let _ = fs::remove_file(&half);
        }
        written.is_ok().then_some(name)
    }

    /// The command has ended. Returns what it left: where others have changed it since, or, where nobody closes its record now,
    /// everywhere.
    pub(super) fn over(&mut self, abandoned: bool, now: u64) -> Vec<(PathBuf, Left)> {
        let of_others =
            |path: &PathBuf, left: &mut Left| abandoned || Found::at(path).is_some_and(|found| !left.is(&found));
        let mut all: Vec<(PathBuf, Left)> = self.left.extract_if(of_others).collect();
        if abandoned {
            for path in std::mem::take(&mut self.fresh).into_keys() {
                if let Some(found) = Found::at(&path) {
                    let left = self.keep(&path, found, now);
                    all.push((path, left));
                }
            }
        }
        all
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).map_or(0o755, |meta| meta.mode() & 0o7777)
}

/// Files that processes can write to without a further call.
#[derive(Debug, Default)]
struct Open {
    files: HashSet<(u64, u64)>,
    /// What is mapped, by number alone: the devices that the kernel tells of those are not those of paths everywhere.
    mapped: HashSet<u64>,
}

impl Open {
    /// None: one of them may not be looked into.
    fn of(processes: &[Pid]) -> Option<Open> {
        let mut open = Open::default();
        for pid in processes {
            match open.add(Path::new(&format!("/proc/{}", pid.as_raw_nonzero()))) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
                // It is gone, and has nothing open.
                Err(_) | Ok(()) => {}
            }
        }
        Some(open)
    }

    fn add(&mut self, process: &Path) -> io::Result<()> {
        for entry in fs::read_dir(process.join("fd"))?.flatten() {
            // The owner's bits of the link are what the descriptor is good for.
            let writes = entry.metadata().is_ok_and(|link| link.mode() & 0o200 != 0);
            if let (true, Ok(meta)) = (writes, fs::metadata(entry.path()))
                && meta.is_file()
            {
                self.files.insert((meta.dev(), meta.ino()));
            }
        }
        for line in fs::read_to_string(process.join("maps"))?.lines() {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let shared = fields.next().is_some_and(|rights| rights.ends_with('s') && rights.contains('w'));
            if let (true, Some(Ok(number))) = (shared, fields.nth(2).map(str::parse)) {
                self.mapped.insert(number);
            }
        }
        Ok(())
    }

    fn holds(&self, stamp: &Stamp) -> bool {
        self.files.contains(&(stamp.dev, stamp.ino)) || self.mapped.contains(&stamp.ino)
    }
}
