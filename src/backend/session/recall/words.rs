//! `<home>/cocode/words/`: which words each part of the logs has, so that a search reads only the parts that may have what
//! is looked for.
//!
//! A cache, made beside a search and never at the start; deleting it does no harm. A few files, each with the words of
//! several logs, since most logs have the same words. What a log has behind the last part that is known is read from the
//! log. A part counts only for a log that has, where its last one ends, the bytes that stood there. A file that has parts of
//! a log which is gone or was rewritten is made again without them.

mod gather;
mod segment;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use self::gather::Gathered;
pub(super) use self::segment::Part;
use self::segment::{Segment, Stat};
use super::scan::{Said, together};
use super::terms::Terms;
use crate::stdx::fs::{private_dir, replace_private};
use crate::stdx::{hash, regular};

/// Bytes of log in one part, at least: smaller ones are told apart better, and say the same words again more often.
const PART: usize = if cfg!(test) { 1 << 10 } else { 64 << 10 };

/// Bytes of logs that the index does not know from which on it is brought up to date: so many are looked through in a
/// millisecond or two.
const WORTH: u64 = if cfg!(test) { 1 << 9 } else { 1 << 20 };

/// Bytes of logs in one file, at most: more take more memory to gather, and fewer say the same words in more files.
const FILE: u64 = if cfg!(test) { 16 << 10 } else { 32 << 20 };

/// Bytes before the end of a part that tell whether the log is still the same.
const CHECKED: u64 = 256;

/// The folder of the index.
pub(super) fn folder(home: &Path) -> PathBuf {
    home.join("cocode").join("words")
}

/// The index of a home, open.
pub(super) struct Index {
    home: PathBuf,
    segments: Vec<Segment>,
    /// Files that are of no use.
    broken: Vec<PathBuf>,
    /// Where the parts of each log are: the file, the log in it, and the part.
    of: HashMap<String, Vec<[usize; 3]>>,
}

/// What is known of a log.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// In order: the file and the part in it.
    pub(super) parts: Vec<[usize; 2]>,
    /// Where they end.
    pub(super) end: u64,
    /// Size of the log.
    pub(super) length: u64,
}

impl Index {
    pub(super) fn open(home: &Path) -> Index {
        let (segments, broken) = segment::all(&folder(home));
        let mut of: HashMap<String, Vec<[usize; 3]>> = HashMap::new();
        for (file, segment) in segments.iter().enumerate() {
            for (log, covered) in segment.table.logs.iter().enumerate() {
                let parts = covered.parts.clone().map(|part| [file, log, part]);
                of.entry(covered.log.clone()).or_default().extend(parts);
            }
        }
        Index { home: home.to_owned(), segments, broken, of }
    }

    fn name<'a>(&self, log: &'a Path) -> Option<&'a str> {
        log.strip_prefix(&self.home).ok()?.to_str()
    }

    pub(super) fn part(&self, [file, part]: [usize; 2]) -> &Part {
        &self.segments[file].table.parts[part]
    }

    /// What is known of a log as it is now.
    pub(super) fn known(&self, log: &Path) -> Known {
        let Ok(stat) = std::fs::metadata(log).map(|meta| Stat::of(&meta)) else { return Known::default() };
        let nothing = Known { length: stat.length, ..Known::default() };
        let Some(all) = self.name(log).and_then(|name| self.of.get(name)) else { return nothing };
        let bounds = |[file, _, part]: [usize; 3]| {
            let part = self.part([file, part]);
            (part.from, part.to)
        };
        let mut all = all.clone();
        // Of two that begin at one place, as after an end in the middle of an update, the longer.
        all.sort_by_key(|at| (bounds(*at).0, u64::MAX - bounds(*at).1));
        let mut known = Known { length: stat.length, ..Known::default() };
        let mut last = None;
        for at in all {
            let (from, to) = bounds(at);
            if from == known.end && to > from {
                known.parts.push([at[0], at[2]]);
                (known.end, last) = (to, Some(at));
            }
        }
        let Some([file, covered, part]) = last else { return nothing };
        let same = self.segments[file].table.logs[covered].stat == stat
            || regular::open(log).and_then(|mut log| check_of(&mut log, known.end)).ok()
                == Some(self.part([file, part]).check);
        if same { known } else { nothing }
    }

    /// Which words of a query each part of each file may have, by who said them, a bit each.
    pub(super) fn may(&self, query: &Terms) -> Vec<Vec<[u16; Said::ALL.len()]>> {
        let of = |file: usize| {
            let segment = &self.segments[file];
            // What cannot be read may hold anything.
            segment.may(query).unwrap_or_else(|_| vec![[u16::MAX; Said::ALL.len()]; segment.table.parts.len()])
        };
        together(self.segments.len(), of)
    }

    /// Files that are made again, with so many new bytes: those that hold what is not so any more, and small ones, so that
    /// there are few.
    fn to_fold(&self, new: u64) -> Vec<usize> {
        let mut in_use: HashSet<[usize; 2]> = HashSet::new();
        for name in self.of.keys() {
            in_use.extend(self.known(&self.home.join(name)).parts);
        }
        let whole = |file: usize| (0..self.segments[file].table.parts.len()).all(|part| in_use.contains(&[file, part]));
        let (mut good, mut fold): (Vec<usize>, Vec<usize>) = (0..self.segments.len()).partition(|file| whole(*file));
        if new < WORTH && fold.is_empty() {
            return fold;
        }
        let mut sum = new + fold.iter().map(|file| self.segments[*file].bytes()).sum::<u64>();
        good.sort_by_key(|file| self.segments[*file].bytes());
        for file in good {
            let bytes = self.segments[file].bytes();
            if bytes > 4 * sum || sum + bytes > FILE {
                break;
            }
            sum += bytes;
            fold.push(file);
        }
        fold
    }
}

/// What a log holds before an offset, as a number.
fn check_of(log: &mut File, to: u64) -> io::Result<u64> {
    let from = to.saturating_sub(CHECKED);
    let mut bytes = vec![0; (to - from) as usize];
    log.seek(SeekFrom::Start(from))?;
    log.read_exact(&mut bytes)?;
    Ok(hash::short(&[&bytes]))
}

/// What words are made of here: nothing that JSON escapes.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Brings the index up to date for these logs; ends early when told to. One at a time.
///
/// # Errors
/// What the file system says of the index.
pub(super) fn update(home: &Path, logs: &[PathBuf], stop: &dyn Fn() -> bool) -> io::Result<()> {
    let index = Index::open(home);
    // What is to be read, by log.
    let mut ranges: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    let mut new = 0;
    for log in logs {
        let Some(name) = index.name(log) else { continue };
        let Known { end, length, .. } = index.known(log);
        if length > end && ranges.insert(name, vec![(end, length)]).is_none() {
            new += length - end;
        }
    }
    let fold = index.to_fold(new);
    if new < WORTH && fold.is_empty() && index.broken.is_empty() {
        return Ok(());
    }
    for name in index.of.keys() {
        let known = index.known(&index.home.join(name));
        let again = known.parts.iter().filter(|[file, _]| fold.contains(file)).map(|at| index.part(*at));
        let again: Vec<(u64, u64)> = again.map(|part| (part.from, part.to)).collect();
        if !again.is_empty() {
            ranges.entry(name).or_default().extend(again);
        }
    }
    let mut gathered = Gathered::default();
    for (name, mut ranges) in ranges {
        ranges.sort_unstable();
        ranges.dedup_by(|next, one| {
            let joins = one.1 == next.0;
            one.1 = if joins { next.1 } else { one.1 };
            joins
        });
        for (mut from, to) in ranges {
            while from < to {
                // A log that cannot be read is not known.
                let Ok(end) = gathered.read((name, &home.join(name)), (from, to, FILE), stop) else { break };
                if stop() {
                    return Ok(());
                }
                if gathered.bytes() >= FILE {
                    write(&index, std::mem::take(&mut gathered).encode())?;
                }
                if end == from {
                    break;
                }
                from = end;
            }
        }
    }
    if !gathered.is_empty() {
        write(&index, gathered.encode())?;
    }
    let gone = fold.iter().map(|file| &index.segments[*file].path).chain(&index.broken);
    gone.for_each(|path| _ = std::fs::remove_file(path));
    Ok(())
}

/// Writes a file of the index under a name of its own.
fn write(index: &Index, bytes: Vec<u8>) -> io::Result<()> {
    let folder = folder(&index.home);
    private_dir(&folder)?;
    let names = (0u32..).map(|number| folder.join(format!("{number:06}.words")));
    let free = |path: &PathBuf| !path.exists();
    names.filter(free).take(1).try_for_each(|path| replace_private(&path, &bytes))
}
