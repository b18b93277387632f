//! One file of the index: parts of logs, every word of them once, and in which parts each word is.
//!
//! The words are searched as one text, since what is typed may be in the middle of one. A mark for every few of them tells
//! where their places are, so that few places are read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use regex::bytes::Regex;

use super::super::scan::Said;
use super::super::terms::Terms;
use crate::session::entry::Seq;
use crate::stdx::{hash, regular};

/// Begins the file; another version is built again.
const MAGIC: &[u8; 16] = b"cocode words 02\n";

/// Words behind one mark.
const MARKED: usize = 16;

/// A part of a log, from the beginning of a line to the end of one.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Part {
    pub(in super::super) from: u64,
    pub(in super::super) to: u64,
    /// What the log holds at its end, as a number.
    pub(super) check: u64,
    /// Lines that say something.
    pub(in super::super) lines: u32,
    pub(in super::super) prompts: Vec<Seq>,
    /// Each rewind, with the entry that it went back to.
    pub(in super::super) rewinds: Vec<(Seq, Seq)>,
}

/// A log, by what it was when it was read, and which of the parts are its own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Covered {
    /// Its path below the home.
    pub(super) log: String,
    pub(super) stat: Stat,
    pub(super) parts: std::ops::Range<usize>,
}

/// Size and last change: of a log that has both as they were, nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) length: u64,
    changed: u64,
}

impl Stat {
    pub(super) fn of(meta: &std::fs::Metadata) -> Stat {
        let since = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).ok();
        let changed = meta.modified().ok().and_then(since).unwrap_or_default();
        Stat { length: meta.len(), changed: changed.as_nanos() as u64 }
    }
}

/// What is in a file of the index.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) logs: Vec<Covered>,
    pub(super) parts: Vec<Part>,
}

/// A file of the index.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    file: File,
    pub(super) table: Table,
    /// Where in the file the words begin, the marks, the places, and where they end.
    bounds: [u64; 4],
}

/// Which of three speakers said something, a bit each.
type Speakers = u8;

/// The word in a list of words whose places follow in the same order: see [`encode`].
pub(super) struct Words<'a> {
    /// Each with a line end.
    pub(super) text: &'a [u8],
    /// Of each word the parts that it is in, with who said it there, in order.
    pub(super) places: &'a [u32],
    /// Where the places of each word end.
    pub(super) ends: &'a [u32],
}

/// One place as a number.
pub(super) fn place(part: u32, said: Said) -> u32 {
    part << Said::ALL.len() | 1 << said as u32
}

/// The bytes of a file of the index.
pub(super) fn encode(table: &Table, words: &Words<'_>) -> Vec<u8> {
    let mut head = Vec::new();
    let number = |bytes: &mut Vec<u8>, number: u64| bytes.extend(number.to_le_bytes());
    number(&mut head, table.logs.len() as u64);
    for Covered { log, stat, parts } in &table.logs {
        let numbers = [stat.length, stat.changed, parts.len() as u64, log.len() as u64];
        numbers.into_iter().for_each(|one| number(&mut head, one));
        head.extend(log.as_bytes());
        for part in &table.parts[parts.clone()] {
            let Part { from, to, check, lines, prompts, rewinds } = part;
            let counts = [u64::from(*lines), prompts.len() as u64, rewinds.len() as u64];
            let rewinds = rewinds.iter().flat_map(|(at, to)| [*at, *to]);
            let numbers = [*from, *to, *check].into_iter().chain(counts).chain(prompts.iter().copied()).chain(rewinds);
            numbers.for_each(|one| number(&mut head, one));
        }
    }
    let (mut marks, mut places) = (Vec::new(), Vec::new());
    let (mut start, mut begins) = (0, 0);
    for (at, word) in words.text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if at % MARKED == 0 {
            marks.extend([(start as u32).to_le_bytes(), (places.len() as u32).to_le_bytes()].as_flattened());
        }
        start += word.len();
        let ends = words.ends[at] as usize;
        let of_word = &words.places[begins..ends];
        varint(&mut places, of_word.len() as u32);
        let mut last = 0;
        for place in of_word {
            let (part, said) = (place >> Said::ALL.len(), place & SPEAKERS);
            varint(&mut places, (part - last) << Said::ALL.len() | said);
            last = part;
        }
        begins = ends;
    }
    let check = hash::short(&[&head]);
    let mut bytes = MAGIC.to_vec();
    [head.len(), words.text.len(), marks.len(), places.len()].iter().for_each(|one| number(&mut bytes, *one as u64));
    number(&mut bytes, check);
    [&bytes, &head[..], words.text, &marks, &places].concat()
}

/// Bits of a place that say who said it.
const SPEAKERS: u32 = (1 << Said::ALL.len()) - 1;

fn varint(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number off the front. A damaged one is any number.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (mut number, mut shift) = (0u32, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7F).checked_shl(shift)?;
        if *byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Reads numbers of eight bytes off the front.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn some(&mut self, count: u64) -> Option<Vec<u64>> {
        // No more than there is, whatever a damaged count says.
        (count <= self.0.len() as u64 / 8).then(|| (0..count).map_while(|_| self.next()).collect())
    }

    fn text(&mut self, length: u64) -> Option<String> {
        let (text, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn table(&mut self) -> Option<Table> {
        let mut table = Table::default();
        for _ in 0..self.next()? {
            let (length, changed, parts, name) = (self.next()?, self.next()?, self.next()?, self.next()?);
            let log = self.text(name)?;
            let first = table.parts.len();
            for _ in 0..parts {
                let (from, to, check) = (self.next()?, self.next()?, self.next()?);
                let (lines, prompts, rewinds) = (self.next()?, self.next()?, self.next()?);
                let prompts = self.some(prompts)?;
                let rewinds = self.some(rewinds.checked_mul(2)?)?;
                let rewinds = rewinds.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                table.parts.push(Part { from, to, check, lines: u32::try_from(lines).ok()?, prompts, rewinds });
            }
            let stat = Stat { length, changed };
            table.logs.push(Covered { log, stat, parts: first..table.parts.len() });
        }
        Some(table)
    }
}

impl Segment {
    /// None: it is not whole, or of another version.
    pub(super) fn open(path: PathBuf) -> Option<Segment> {
        const HEAD: usize = MAGIC.len() + 5 * 8;
        let mut file = regular::open(&path).ok()?;
        let mut head = [0; HEAD];
        file.read_exact(&mut head).ok()?;
        let mut numbers = Numbers(head.strip_prefix(MAGIC)?);
        let lengths = [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
        let check = numbers.next()?;
        let mut end = HEAD as u64;
        let bounds = lengths.map(|length| {
            end = end.saturating_add(length);
            end
        });
        if file.metadata().ok()?.len() != bounds[3] {
            return None;
        }
        let mut bytes = Vec::new();
        file.by_ref().take(lengths[0]).read_to_end(&mut bytes).ok()?;
        (hash::short(&[&bytes]) == check).then_some(())?;
        let table = Numbers(&bytes).table()?;
        Some(Segment { path, file, table, bounds })
    }

    /// Bytes of logs that it knows.
    pub(super) fn bytes(&self) -> u64 {
        self.table.parts.iter().map(|part| part.to - part.from).sum()
    }

    fn read(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let length = to.min(self.bounds[3]).saturating_sub(from);
        let mut bytes = Vec::with_capacity(length as usize);
        (&self.file).seek(SeekFrom::Start(from))?;
        (&self.file).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Which words of a query each part may have, by who said them, a bit each.
    pub(super) fn may(&self, query: &Terms) -> io::Result<Vec<[u16; Said::ALL.len()]>> {
        let text = self.read(self.bounds[0], self.bounds[1])?;
        let marks = self.read(self.bounds[1], self.bounds[2])?;
        let mut may = vec![[0; Said::ALL.len()]; self.table.parts.len()];
        for (at, literals) in query.literals().enumerate() {
            let mut all = vec![SPEAKERS as Speakers; may.len()];
            for literal in literals {
                let with = self.with(literal, &text, &marks)?;
                all.iter_mut().zip(with).for_each(|(all, with)| *all &= with);
            }
            for (may, all) in may.iter_mut().zip(all) {
                may.iter_mut().enumerate().for_each(|(said, may)| *may |= u16::from(all >> said & 1) << at);
            }
        }
        Ok(may)
    }

    /// Who in each part said a word in which something is.
    fn with(&self, literal: &Regex, text: &[u8], marks: &[u8]) -> io::Result<Vec<Speakers>> {
        let mut with = vec![0; self.table.parts.len()];
        let mark = |at: usize| -> Option<(usize, u64)> {
            let (start, place) = marks.get(at * 8..at * 8 + 8)?.split_at(4);
            let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).ok();
            Some((number(start)? as usize, u64::from(number(place)?)))
        };
        let marked = marks.len() / 8;
        // Places that were read: from which mark on, and which bytes.
        let (mut block, mut read, mut reads) = (0..0, Vec::new(), 0);
        let (mut at, mut chunk) = (0, 0);
        while let Some(found) = literal.find_at(text, at).map(|found| found.start()) {
            // The last mark that is not behind it; mostly one of the next.
            while mark(chunk + 1).is_some_and(|(start, _)| start <= found) {
                chunk += 1;
            }
            let Some((start, places)) = mark(chunk) else { break };
            if !block.contains(&chunk) {
                reads += 1;
                block = if reads > READS { 0..marked } else { chunk..(chunk + 1).min(marked) };
                let at = |mark: Option<(usize, u64)>| mark.map_or(self.bounds[3], |(_, at)| self.bounds[2] + at);
                read = self.read(at(mark(block.start)), at(mark(block.end)))?;
            }
            let first = mark(block.start).map_or(0, |(_, places)| places);
            let mut rest = read.get(places.saturating_sub(first) as usize..).unwrap_or_default();
            let before = text.get(start..found).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
            for _ in 0..before {
                pass(&mut rest);
            }
            mark_places(&mut rest, &mut with);
            // On behind the word.
            at = text[found..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| found + end + 1);
        }
        Ok(with)
    }
}

/// Places of few words that are read by themselves; what is in more words than that is anywhere, and all are read at once.
const READS: usize = 32;

/// Passes over the places of a word.
fn pass(bytes: &mut &[u8]) {
    for _ in 0..number(bytes).unwrap_or(0) {
        let Some(last) = bytes.iter().position(|byte| *byte < 0x80) else { break };
        *bytes = &bytes[last + 1..];
    }
}

fn mark_places(bytes: &mut &[u8], with: &mut [Speakers]) {
    let mut part = 0usize;
    for _ in 0..number(bytes).unwrap_or(0) {
        let Some(place) = number(bytes) else { break };
        part = part.saturating_add((place >> Said::ALL.len()) as usize);
        if let Some(with) = with.get_mut(part) {
            *with |= (place & SPEAKERS) as Speakers;
        }
    }
}

/// Files of the index in a folder; those that are of no use apart.
pub(super) fn all(folder: &Path) -> (Vec<Segment>, Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "words"));
    paths.sort();
    let (mut good, mut broken) = (Vec::new(), Vec::new());
    for path in paths {
        match Segment::open(path.clone()) {
            Some(segment) => good.push(segment),
            None => broken.push(path),
        }
    }
    (good, broken)
}
