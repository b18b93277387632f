//! Looks through the bytes of logs on several threads: which lines may hold what is looked for, and which still count.
//!
//! Parts of a log whose words are known are looked through only where they have those of the query: the most promising
//! first, and no more of them when nothing better can come.

use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::piece::Kind;
use super::terms::Terms;
use super::words::{self, Index};
use crate::session::entry::{Entry, EntryKind, Seq};
use crate::session::line::{self, Tag, glance};
use crate::stdx::regular;

/// Bytes from which on another thread pays.
const SHARE: u64 = 4 << 20;
const THREADS: usize = 8;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;

/// Bytes of promising parts that are looked through before it is asked whether anything better can come; twice as many the
/// next time.
const WAVE: u64 = if cfg!(test) { 4 << 10 } else { 8 << 20 };

/// Bytes of a line up to which it says what it says; a longer one may hold the words anywhere.
const PLAIN: usize = 8_000;

/// What a plain line is worth more.
const PLAINER: f32 = 1.15;

/// Who said a line, as far as it matters for what it may be worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Prompt,
    Reply,
    Other,
}

impl Said {
    pub(super) const ALL: [Said; 3] = [Said::Prompt, Said::Reply, Said::Other];

    /// None: nobody said it.
    pub(super) fn of(tag: Tag) -> Option<Said> {
        match tag {
            Tag::Prompt => Some(Said::Prompt),
            Tag::Reply => Some(Said::Reply),
            Tag::Results | Tag::Message | Tag::Projected => Some(Said::Other),
            Tag::Part
            | Tag::Discarded
            | Tag::TurnStarted
            | Tag::TurnEnded
            | Tag::Other
            | Tag::Request
            | Tag::Frozen => None,
        }
    }

    fn weight(self) -> f32 {
        let kind = match self {
            Said::Prompt => Kind::Prompt,
            Said::Reply => Kind::Reply,
            Said::Other => Kind::Result,
        };
        kind.weight()
    }

    /// Whether such lines may hold what is looked for.
    fn is_wanted(self, query: &Terms) -> bool {
        match self {
            Said::Prompt => query.wants(Kind::Prompt),
            Said::Reply => query.wants(Kind::Reply) || query.wants(Kind::Call),
            Said::Other => [Kind::Prompt, Kind::Result, Kind::Summary].into_iter().any(|kind| query.wants(kind)),
        }
    }
}

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
    /// The bytes of the line.
    pub(super) fn read(&self, log: &mut File) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len];
        log.seek(SeekFrom::Start(self.offset))?;
        log.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// What it may be worth, before it is read.
    pub(super) fn promise(&self, weights: &[f32]) -> f32 {
        let said = Said::of(self.tag).unwrap_or(Said::Other);
        let plain = if self.len < PLAIN { PLAINER } else { 1.0 };
        worth(self.words, weights) * said.weight() * plain
    }
}

/// What words are worth together, a bit each.
fn worth(words: u16, weights: &[f32]) -> f32 {
    weights.iter().enumerate().map(|(at, weight)| f32::from(words >> at & 1) * weight).sum()
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
        self.prompts.partition_point(|prompt| *prompt <= seq)
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
        let mut prompts = std::mem::take(&mut self.prompts);
        prompts.retain(|prompt| self.is_live(*prompt));
        prompts.sort_unstable();
        Scanned { prompts, ..self }
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

/// A part of a log that may hold words of the query.
struct Part {
    log: usize,
    from: u64,
    to: u64,
    lines: usize,
    /// Which words each of those who speak there may have said, a bit each.
    may: [u16; Said::ALL.len()],
    looked: bool,
}

impl Part {
    /// What a line of it may be worth at most.
    fn bound(&self, weights: &[f32]) -> f32 {
        let of = |(said, words): (Said, u16)| worth(words, weights) * said.weight() * PLAINER;
        Said::ALL.into_iter().zip(self.may).map(of).fold(0.0, f32::max)
    }

    fn any(&self) -> u16 {
        self.may.iter().fold(0, |all, words| all | words)
    }
}

/// Looks through logs for the lines that promise most, `enough` of them if there are so many; with what each word is worth.
/// A log that cannot be read says nothing.
pub(super) fn look(home: &Path, logs: &[PathBuf], query: &Terms, enough: usize) -> (Vec<Scanned>, Vec<f32>) {
    let index = Index::open(home);
    let may = index.may(query);
    let each = |at: usize| survey((&index, &may), &logs[at], at, query).unwrap_or_default();
    let (mut scans, parts): (Vec<Scanned>, Vec<Vec<Part>>) = together(logs.len(), each).into_iter().unzip();
    let mut parts: Vec<Part> = parts.into_iter().flatten().collect();
    let mut weights = weigh(&scans, &parts, query);
    let (mut first, mut most) = (0, WAVE);
    while first < parts.len() {
        // The most promising first, of those that promise the same the newest.
        parts[first..].sort_by(|one, two| {
            let order = two.bound(&weights).total_cmp(&one.bound(&weights));
            order.then((one.log, Reverse(one.from)).cmp(&(two.log, Reverse(two.from))))
        });
        let best = parts[first].bound(&weights);
        let promise = |scan: &Scanned| {
            let live = scan.candidates.iter().filter(|one| scan.is_live(one.seq));
            live.filter(|one| one.promise(&weights) >= best).count()
        };
        if scans.iter().map(promise).sum::<usize>() >= enough {
            break;
        }
        let mut bytes = 0;
        let wave = parts[first..].iter().take_while(|part| {
            let more = bytes < most;
            bytes += part.to - part.from;
            more
        });
        let wave = first..first + wave.count();
        let of = |at: usize| {
            let Part { log, from, to, .. } = parts[wave.start + at];
            let mut found = Scanned::of(query);
            // A part that cannot be read says nothing.
            let _ = regular::open(&logs[log]).and_then(|mut file| found.look_at(&mut file, query, from, to));
            (log, found)
        };
        for (log, found) in together(wave.len(), of) {
            scans[log].candidates.extend(found.candidates);
            scans[log].of_term.iter_mut().zip(found.of_term).for_each(|(mine, more)| *mine += more);
        }
        parts[wave.clone()].iter_mut().for_each(|part| part.looked = true);
        (first, most) = (wave.end, most * 2);
        weights = weigh(&scans, &parts, query);
    }
    (scans, weights)
}

/// What each word is worth by the lines that have it: those that were seen, and as many in the parts that were not as in
/// those that were.
fn weigh(scans: &[Scanned], parts: &[Part], query: &Terms) -> Vec<f32> {
    let seen = |term: usize| {
        let found: usize = scans.iter().map(|scan| scan.of_term[term]).sum();
        let lines = |looked: bool| -> usize {
            let have = parts.iter().filter(|part| part.looked == looked && part.any() >> term & 1 == 1);
            have.map(|part| part.lines).sum()
        };
        let (looked, left) = (lines(true), lines(false));
        // Before anything was seen: a word that a part has at all is in one line of eight.
        let share = if looked == 0 { 0.125 } else { found as f64 / looked as f64 };
        found + (left as f64 * share.min(1.0)) as usize
    };
    let all = scans.iter().map(|scan| scan.lines).sum();
    query.weights(&(0..query.terms()).map(seen).collect::<Vec<_>>(), all)
}

/// Does so many pieces of work on several threads; the results in order.
pub(super) fn together<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS).min(count);
    if threads < 2 {
        return (0..count).map(work).collect();
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let some = || {
        let take = || Some(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)).filter(|at| *at < count);
        std::iter::from_fn(|| take().map(|at| (at, work(at)))).collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        for thread in others {
            done.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What is known of a log without looking through it, and the parts of it that may hold what is looked for. What the index
/// does not know is looked through.
fn survey(
    (index, may): (&Index, &[Vec<[u16; Said::ALL.len()]>]),
    log: &Path,
    at: usize,
    query: &Terms,
) -> io::Result<(Scanned, Vec<Part>)> {
    let (mut seen, mut parts) = (Scanned::of(query), Vec::new());
    let known = index.known(log);
    for [file, part] in known.parts {
        let words::Part { from, to, lines, ref prompts, ref rewinds, .. } = *index.part([file, part]);
        seen.lines += lines as usize;
        seen.prompts.extend(prompts);
        seen.rewinds.extend(rewinds);
        let mut may = may[file][part];
        Said::ALL.into_iter().filter(|said| !said.is_wanted(query)).for_each(|said| may[said as usize] = 0);
        if may != [0; Said::ALL.len()] {
            parts.push(Part { log: at, from, to, lines: lines as usize, may, looked: false });
        }
    }
    let rest = if known.length > known.end { scan_from(log, query, known.end)? } else { Scanned::of(query) };
    Ok((seen.join(rest).settle(), parts))
}

/// Looks through a log.
///
/// # Errors
/// What the file system says.
pub(super) fn scan(log: &Path, query: &Terms) -> io::Result<Scanned> {
    scan_from(log, query, 0).map(Scanned::settle)
}

/// Looks through a log from the beginning of a line on, on several threads where that pays.
fn scan_from(log: &Path, query: &Terms, from: u64) -> io::Result<Scanned> {
    let len = std::fs::metadata(log)?.len().saturating_sub(from);
    let shares = (len / SHARE + 1).min(THREADS as u64);
    let share = len.div_ceil(shares);
    let part = |at: usize| -> io::Result<Scanned> {
        let (start, end) = (from + at as u64 * share, from + (at as u64 + 1) * share);
        let mut found = Scanned::of(query);
        found.look_through(&mut regular::open(log)?, query, start, end)?;
        Ok(found)
    };
    together(shares as usize, part).into_iter().try_fold(Scanned::of(query), |all, part| Ok(all.join(part?)))
}

/// The entry that a line goes back to, if it is a rewind.
pub(super) fn rewinds(line: &[u8], tag: Tag) -> Option<Seq> {
    let start = &line[..line.len().min(200)];
    if tag != Tag::Other || !start.windows(8).any(|window| window == b"\"rewind\"") {
        return None;
    }
    match line::parse(line)? {
        Entry { kind: EntryKind::Rewind { to }, .. } => Some(to),
        _ => None,
    }
}

impl Scanned {
    fn of(query: &Terms) -> Scanned {
        Scanned { of_term: vec![0; query.terms()], ..Scanned::default() }
    }

    /// Looks through the lines of a part of which the rest is known: at those only that have what is looked for.
    fn look_at(&mut self, file: &mut File, query: &Terms, from: u64, to: u64) -> io::Result<()> {
        let mut bytes = Vec::with_capacity((to - from) as usize);
        file.seek(SeekFrom::Start(from))?;
        file.by_ref().take(to - from).read_to_end(&mut bytes)?;
        let (mut at, mut scratch) = (0, Vec::new());
        while let Some(hit) = query.next(&bytes, at).filter(|hit| *hit < bytes.len()) {
            let start = bytes[at..hit].iter().rposition(|byte| *byte == b'\n').map_or(at, |end| at + end + 1);
            let end = bytes[hit..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| hit + end);
            let line = &bytes[start..end];
            if let Some(seen) = glance(line) {
                self.candidate(query, from + start as u64, line, (seen.seq, seen.tag), &mut scratch);
            }
            at = (end + 1).min(bytes.len());
        }
        Ok(())
    }

    /// Looks through the lines that begin between two offsets.
    fn look_through(&mut self, file: &mut File, query: &Terms, from: u64, to: u64) -> io::Result<()> {
        // The line that begins before is of the part before.
        let mut at = from.saturating_sub(1);
        let mut skip = from > 0;
        file.seek(SeekFrom::Start(at))?;
        let (mut bytes, mut scratch) = (Vec::with_capacity(CHUNK), Vec::new());
        while at < to {
            // Up to where the last line begins; and on to its end, however long it is.
            let left = (to - at).saturating_sub(bytes.len() as u64).min(CHUNK as u64) as usize;
            let wanted = if left > 0 { left } else { bytes.len().max(1 << 16) };
            let read = file.by_ref().take(wanted as u64).read_to_end(&mut bytes)?;
            let (mut rest, mut hit) = (bytes.as_slice(), None);
            while at < to {
                let mut line = rest;
                let length = line.skip_until(b'\n')?;
                let whole = rest[..length].last() == Some(&b'\n');
                // Without its end it may be a part of a line only, unless nothing follows.
                if length == 0 || !whole && read > 0 {
                    break;
                }
                let text = &rest[..length - usize::from(whole)];
                let start = bytes.len() - rest.len();
                if hit.is_none_or(|hit| hit < start) {
                    hit = Some(query.next(&bytes, start).unwrap_or(usize::MAX));
                }
                let may = hit.is_some_and(|hit| hit < start + length);
                if !std::mem::take(&mut skip)
                    && let Some(seen) = glance(text)
                {
                    self.line(query, at, text, (seen.seq, seen.tag, may), &mut scratch);
                }
                at += length as u64;
                rest = line;
            }
            if read == 0 {
                break;
            }
            let left = bytes.len() - rest.len();
            bytes.drain(..left);
        }
        Ok(())
    }

    fn line(
        &mut self,
        query: &Terms,
        offset: u64,
        line: &[u8],
        (seq, tag, may): (Seq, Tag, bool),
        scratch: &mut Vec<u8>,
    ) {
        self.rewinds.extend(rewinds(line, tag).map(|to| (seq, to)));
        if Said::of(tag).is_none() {
            return;
        }
        if tag == Tag::Prompt {
            self.prompts.push(seq);
        }
        self.lines += 1;
        if may {
            self.candidate(query, offset, line, (seq, tag), scratch);
        }
    }

    /// Takes note of a line that has words of the query.
    fn candidate(&mut self, query: &Terms, offset: u64, line: &[u8], (seq, tag): (Seq, Tag), scratch: &mut Vec<u8>) {
        let Some(said) = Said::of(tag) else { return };
        let wanted = match tag {
            Tag::Results => query.wants(Kind::Result),
            Tag::Projected => query.wants(Kind::Summary),
            Tag::Message => !query.wants(Kind::Reply) && !query.wants(Kind::Call) || query.wants(Kind::Prompt),
            _ => said.is_wanted(query),
        };
        if let Some(words) = wanted.then(|| query.in_line(line, scratch)).flatten() {
            for (term, count) in self.of_term.iter_mut().enumerate() {
                *count += usize::from(words >> term & 1);
            }
            self.candidates.push(Candidate { offset, len: line.len(), seq, tag, words });
        }
    }
}
