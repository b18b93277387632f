//! Gathers the words of logs for a file of the index.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use super::super::scan::{self, Said};
use super::segment::{Covered, Part, Stat, Table, Words, encode, place};
use super::{PART, check_of, is_word};
use crate::session::line::{Tag, glance};
use crate::stdx::{hash, regular};

/// What was gathered.
#[derive(Default)]
pub(super) struct Gathered {
    table: Table,
    /// Each word once, in small letters, with a line end.
    text: Vec<u8>,
    words: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    /// Of each word its last place in `places`.
    last: Vec<u32>,
    /// The word and a place of it, in the order of parts.
    places: Vec<(u32, u32)>,
    bytes: u64,
}

impl Gathered {
    /// Bytes of logs.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.parts.is_empty()
    }

    /// Reads a log on from the beginning of a line up to the last line that ends before `to`, or until it has gathered
    /// `most` bytes; where it stopped, which is `from` when it was told to stop.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn read(
        &mut self,
        (name, log): (&str, &Path),
        (from, to, most): (u64, u64, u64),
        stop: &dyn Fn() -> bool,
    ) -> io::Result<u64> {
        let (source, mut checked) = (regular::open(log)?, regular::open(log)?);
        let (stat, first) = (Stat::of(&source.metadata()?), self.table.parts.len());
        let mut lines = BufReader::with_capacity(1 << 18, source);
        lines.seek(SeekFrom::Start(from))?;
        let (mut part, mut line) = (Part { from, to: from, ..Part::default() }, Vec::new());
        let mut ends = false;
        while !ends {
            if stop() {
                return Ok(from);
            }
            line.clear();
            let read = lines.read_until(b'\n', &mut line)? as u64;
            // The last line may be on its way.
            let whole = line.last() == Some(&b'\n') && part.to + read <= to;
            if whole {
                self.line(&line, &mut part);
                part.to += read;
                self.bytes += read;
            }
            ends = !whole || part.to == to || self.bytes >= most;
            if part.to - part.from >= PART as u64 || ends && part.to > part.from {
                part.check = check_of(&mut checked, part.to)?;
                let next = Part { from: part.to, to: part.to, ..Part::default() };
                self.table.parts.push(std::mem::replace(&mut part, next));
            }
        }
        if self.table.parts.len() > first {
            self.table.logs.push(Covered { log: name.into(), stat, parts: first..self.table.parts.len() });
        }
        Ok(part.from)
    }

    fn line(&mut self, line: &[u8], part: &mut Part) {
        let line = line.trim_ascii_end();
        let Some(seen) = glance(line) else { return };
        if seen.tag == Tag::Prompt {
            part.prompts.push(seen.seq);
        }
        part.rewinds.extend(scan::rewinds(line, seen.tag).map(|to| (seen.seq, to)));
        if let Some(said) = Said::of(seen.tag) {
            part.lines += 1;
            // The envelope is of another make in each line, and nobody said it.
            let kind = line.windows(8).take(256).position(|bytes| bytes == b"\"kind\":\"").unwrap_or(0);
            self.add(&line[kind..], place(self.table.parts.len() as u32, said));
        }
    }

    /// Adds the words of a line of JSON. An escape is between two words.
    fn add(&mut self, line: &[u8], place: u32) {
        let mut at = 0;
        while at < line.len() {
            match line[at] {
                b'\\' => at += if line.get(at + 1) == Some(&b'u') { 6 } else { 2 },
                byte if is_word(byte) => {
                    let start = at;
                    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
                    while at < line.len() && is_word(line[at]) {
                        hash = (hash ^ u64::from(line[at].to_ascii_lowercase())).wrapping_mul(0x0100_0000_01B3);
                        at += 1;
                    }
                    self.word(&line[start..at], hash, place);
                }
                _ => at += 1,
            }
        }
    }

    fn word(&mut self, word: &[u8], hash: u64, place: u32) {
        let new = self.last.len() as u32;
        // Spread over the high bits, which a table looks at, too.
        let id = *self.words.entry(hash ^ (hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)).or_insert(new);
        if id == new {
            self.text.extend(word.iter().map(u8::to_ascii_lowercase));
            self.text.push(b'\n');
            self.last.push(u32::MAX);
        }
        let part = |place: u32| place >> Said::ALL.len();
        match self.places.get_mut(self.last[id as usize] as usize) {
            Some((_, known)) if part(*known) == part(place) => *known |= place,
            _ => {
                self.last[id as usize] = self.places.len() as u32;
                self.places.push((id, place));
            }
        }
    }

    /// The file.
    pub(super) fn encode(self) -> Vec<u8> {
        let Gathered { table, text, last, places, .. } = self;
        let mut ends = vec![0u32; last.len()];
        places.iter().for_each(|(word, _)| ends[*word as usize] += 1);
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        // Where those of each word begin; each that is put there moves it on, up to their end.
        let mut of_words = vec![0; places.len()];
        for (word, place) in places {
            let at = &mut ends[word as usize];
            of_words[*at as usize] = place;
            *at += 1;
        }
        encode(&table, &Words { text: &text, places: &of_words, ends: &ends })
    }
}

/// Hashes that are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash::short(&[bytes]);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
