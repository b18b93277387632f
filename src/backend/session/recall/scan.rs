//! Looks through the bytes of a log on several threads: which lines may hold what is looked for, and which still count.

use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::piece::Kind;
use super::terms::Terms;
use crate::session::entry::{Entry, EntryKind, Seq};
use crate::session::line::{self, Tag, glance};
use crate::session::log::Line;
use crate::stdx::regular;

/// Bytes from which on another thread pays.
const SHARE: u64 = 4 << 20;
const THREADS: usize = 8;

/// A line that may hold words of the query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) offset: u64,
    len: usize,
    pub(super) seq: Seq,
    tag: Tag,
    /// Which words its bytes hold.
    words: u16,
}

impl Candidate {
    pub(super) fn line(&self) -> Line {
        Line { offset: self.offset, len: self.len, seq: self.seq, tag: self.tag, carries: false }
    }

    /// What it may be worth, before it is read.
    pub(super) fn promise(&self, weights: &[f32]) -> f32 {
        let words: f32 = weights.iter().enumerate().map(|(at, weight)| f32::from(self.words >> at & 1) * weight).sum();
        let kind = match self.tag {
            Tag::Prompt => Kind::Prompt,
            Tag::Reply => Kind::Reply,
            _ => Kind::Result,
        };
        // A short line says what it says; a long one may hold the words anywhere.
        let plain = if self.len < 8_000 { 1.15 } else { 1.0 };
        words * kind.weight() * plain
    }
}

/// What looking through a log found.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) candidates: Vec<Candidate>,
    /// Lines with each word.
    pub(super) of_term: Vec<usize>,
    /// Lines that say something.
    pub(super) lines: usize,
    prompts: Vec<Seq>,
    /// Each rewind, with the entry that it went back to.
    rewinds: Vec<(Seq, Seq)>,
    /// Entries between two of these do not count, first included, last excluded.
    dead: Vec<(Seq, Seq)>,
}

impl Scanned {
    /// Whether an entry was not rewound away.
    pub(super) fn is_live(&self, seq: Seq) -> bool {
        !self.dead.iter().any(|(from, to)| (*from..*to).contains(&seq))
    }

    /// The number of the prompt that an entry follows, or is.
    pub(super) fn turn(&self, seq: Seq) -> usize {
        self.prompts.iter().filter(|prompt| **prompt <= seq && self.is_live(**prompt)).count()
    }

    /// Works out what was rewound away. Following the log back from its end, each rewind leads to the entry before its
    /// target; what lies between is dead.
    fn settle(mut self) -> Scanned {
        let mut end = Seq::MAX;
        for (at, to) in self.rewinds.iter().rev().copied() {
            if at < end && to <= at {
                self.dead.push((to, at + 1));
                end = to;
            }
        }
        self
    }

    fn join(mut self, other: Scanned) -> Scanned {
        self.candidates.extend(other.candidates);
        self.prompts.extend(other.prompts);
        self.rewinds.extend(other.rewinds);
        self.lines += other.lines;
        self.of_term.iter_mut().zip(other.of_term).for_each(|(mine, more)| *mine += more);
        self
    }
}

/// Looks through logs, several at a time; one that cannot be read says nothing.
pub(super) fn all(logs: &[PathBuf], query: &Terms) -> Vec<Scanned> {
    let each = |logs: &[PathBuf]| logs.iter().map(|log| scan(log, query).unwrap_or_default()).collect::<Vec<_>>();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    if logs.len() < 2 || threads == 1 {
        return each(logs);
    }
    std::thread::scope(|scope| {
        let shares = logs.chunks(logs.len().div_ceil(threads));
        let running: Vec<_> = shares.map(|share| scope.spawn(move || each(share))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Vec<Scanned>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().flat_map(join).collect()
    })
}

/// Looks through a log.
///
/// # Errors
/// What the file system says.
pub(super) fn scan(log: &Path, query: &Terms) -> io::Result<Scanned> {
    let len = std::fs::metadata(log)?.len();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let shares = usize::try_from(len / SHARE + 1).unwrap_or(1).min(threads) as u64;
    let share = len.div_ceil(shares);
    let parts: Vec<io::Result<Scanned>> = std::thread::scope(|scope| {
        let part = |at: u64| scope.spawn(move || look_through(log, query, at * share, (at + 1) * share));
        let running: Vec<_> = (1..shares).map(part).collect();
        let first = look_through(log, query, 0, share);
        let others =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    });
    let mut all: Option<Scanned> = None;
    for part in parts {
        let part = part?;
        all = Some(match all {
            Some(all) => all.join(part),
            None => part,
        });
    }
    Ok(all.unwrap_or_default().settle())
}

/// Looks through the lines that begin between two offsets.
fn look_through(log: &Path, query: &Terms, from: u64, to: u64) -> io::Result<Scanned> {
    let mut found = Scanned { of_term: vec![0; query.terms()], ..Scanned::default() };
    let mut reader = BufReader::with_capacity(1 << 18, regular::open(log)?);
    let mut at = from.saturating_sub(1);
    reader.seek(SeekFrom::Start(at))?;
    if from > 0 {
        at += reader.skip_until(b'\n')? as u64;
    }
    let (mut bytes, mut scratch) = (Vec::new(), Vec::new());
    while at < to {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            break;
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if let Some(seen) = glance(line) {
            found.line(query, at, line, seen.seq, seen.tag, &mut scratch);
        }
        at += read;
    }
    Ok(found)
}

impl Scanned {
    fn line(&mut self, query: &Terms, offset: u64, line: &[u8], seq: Seq, tag: Tag, scratch: &mut Vec<u8>) {
        match tag {
            Tag::Prompt => self.prompts.push(seq),
            Tag::Other => {
                let start = &line[..line.len().min(200)];
                if start.windows(8).any(|window| window == b"\"rewind\"")
                    && let Some(Entry { kind: EntryKind::Rewind { to }, .. }) = line::parse(line)
                {
                    self.rewinds.push((seq, to));
                }
                return;
            }
            Tag::Part | Tag::Discarded | Tag::TurnStarted | Tag::TurnEnded | Tag::Request | Tag::Frozen => return,
            Tag::Reply | Tag::Results | Tag::Message | Tag::Projected => {}
        }
        self.lines += 1;
        let may = |kind| query.wants(kind);
        let wanted = match tag {
            Tag::Prompt => may(Kind::Prompt),
            Tag::Reply => may(Kind::Reply) || may(Kind::Call),
            Tag::Results => may(Kind::Result),
            Tag::Projected => may(Kind::Summary),
            _ => !may(Kind::Reply) && !may(Kind::Call) || may(Kind::Prompt),
        };
        if let Some(words) = wanted.then(|| query.in_line(line, scratch)).flatten() {
            for (term, count) in self.of_term.iter_mut().enumerate() {
                *count += usize::from(words >> term & 1);
            }
            self.candidates.push(Candidate { offset, len: line.len(), seq, tag, words });
        }
    }
}
