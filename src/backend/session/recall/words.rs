//! `transcript.words`: which words each part of a log has, so that a search reads only the parts that may have what is
//! looked for.
//!
//! A cache, made beside a search and never at the start. It counts only for a log that still has, where the last part ends,
//! the bytes that stood there; what came after that part is read from the log. Deleting it does no harm.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::scan::Said;
use crate::session::entry::Seq;
use crate::session::line::glance;
use crate::stdx::{hash, regular};

/// Begins the file; another version is built again.
const MAGIC: &[u8; 16] = b"cocode words 01\n";

/// Bytes before the first part: that, the end of the last part in the log and in the index, and its check, so that few bytes
/// tell whether anything is to be done.
const HEAD: u64 = MAGIC.len() as u64 + 24;

/// Bytes of log in one part, at least: smaller ones are told apart better, and say the same words again more often.
const PART: usize = if cfg!(test) { 1 << 10 } else { 64 << 10 };

/// Bytes of log that the index does not know from which on it is worth a new part.
const WORTH: u64 = if cfg!(test) { 1 << 9 } else { 16 << 10 };

/// Bytes before the end of a part that tell whether the log is still the same.
const CHECKED: u64 = 256;

/// The index of a log.
pub(super) fn file(log: &Path) -> PathBuf {
    log.with_extension("words")
}

/// What is known of one part of a log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) from: u64,
    pub(super) to: u64,
    check: u64,
    /// Lines that say something.
    pub(super) lines: u32,
    prompts: &'a [u8],
    rewinds: &'a [u8],
    /// By who said them, each word once, in small letters.
    pub(super) words: [&'a [u8]; Said::ALL.len()],
}

impl<'a> Part<'a> {
    fn parse(mut body: &'a [u8]) -> Option<Part<'a>> {
        let (from, to, check) = (u64_of(&mut body)?, u64_of(&mut body)?, u64_of(&mut body)?);
        let lines = u32_of(&mut body)?;
        let (prompts, rewinds) = (slice_of(&mut body)?, slice_of(&mut body)?);
        let mut words = [&body[..0]; Said::ALL.len()];
        for words in &mut words {
            *words = slice_of(&mut body)?;
        }
        (from < to).then_some(Part { from, to, check, lines, prompts, rewinds, words })
    }

    pub(super) fn prompts(self) -> impl Iterator<Item = Seq> + 'a {
        numbers(self.prompts)
    }

    /// Each rewind, with the entry that it went back to.
    pub(super) fn rewinds(self) -> impl Iterator<Item = (Seq, Seq)> + 'a {
        numbers(self.rewinds).step_by(2).zip(numbers(self.rewinds).skip(1).step_by(2))
    }
}

fn u64_of(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

fn u32_of(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

fn slice_of<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32_of(bytes)? as usize;
    let (slice, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(slice)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).filter_map(|mut number| u64_of(&mut number))
}

/// Shows all parts of a log that are known, in order, and tells where they end. None: the index is missing, or not this log's,
/// and what was shown does not count.
pub(super) fn read(log: &Path, source: &mut File, mut show: impl FnMut(Part<'_>)) -> Option<u64> {
    let mut file = BufReader::with_capacity(1 << 16, regular::open(&file(log)).ok()?);
    parts(&mut file, source, &mut show).map(|known| known.log)
}

/// How far an index goes, in the log and in itself.
struct Known {
    log: u64,
    index: u64,
}

fn parts(file: &mut impl Read, source: &mut File, show: &mut impl FnMut(Part<'_>)) -> Option<Known> {
    let mut head = [0; HEAD as usize];
    file.read_exact(&mut head).ok().filter(|()| head.starts_with(MAGIC))?;
    let mut known = Known { log: 0, index: HEAD };
    let (mut body, mut length, mut last) = (Vec::new(), [0; 4], None);
    while file.read_exact(&mut length).is_ok() {
        let size = u32::from_le_bytes(length) as usize;
        body.clear();
        // Of a part that is not whole nothing counts: it is being written, or was cut off.
        if file.take(size as u64).read_to_end(&mut body).ok()? < size || file.read_exact(&mut length).is_err() {
            break;
        }
        let Some(part) = Part::parse(&body).filter(|part| part.from == known.log) else { break };
        if u32::from_le_bytes(length) as usize != size {
            break;
        }
        show(part);
        known = Known { log: part.to, index: known.index + 8 + size as u64 };
        last = Some(part.check);
    }
    let same = last.is_none_or(|check| check_of(source, known.log).ok() == Some(check));
    same.then_some(known)
}

/// What a log holds before an offset, as a number.
fn check_of(log: &mut File, to: u64) -> io::Result<u64> {
    let from = to.saturating_sub(CHECKED);
    let mut bytes = vec![0; (to - from) as usize];
    log.seek(SeekFrom::Start(from))?;
    log.read_exact(&mut bytes)?;
    Ok(hash::short(&[&bytes]))
}

/// Whether the index knows all of a log of so many bytes, nearly.
fn is_known(index: &mut File, source: &mut File, length: u64) -> Option<bool> {
    let mut head = [0; HEAD as usize];
    index.read_exact(&mut head).ok()?;
    let mut ends = head.strip_prefix(MAGIC)?;
    let (end, own, check) = (u64_of(&mut ends)?, u64_of(&mut ends)?, u64_of(&mut ends)?);
    let whole = index.metadata().ok()?.len() == own;
    Some(whole && end + WORTH > length && check_of(source, end).ok()? == check)
}

/// Brings the index of a log up to date; ends early when told to. One at a time.
///
/// # Errors
/// What the file system says.
pub(super) fn update(log: &Path, stop: &dyn Fn() -> bool) -> io::Result<()> {
    let mut source = regular::open(log)?;
    let length = source.metadata()?.len();
    if length < WORTH {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut index = options.open(file(log))?;
    if is_known(&mut index, &mut source, length) == Some(true) {
        return Ok(());
    }
    index.rewind()?;
    let known = parts(&mut BufReader::new(&index), &mut source, &mut |_| ());
    let known = known.unwrap_or(Known { log: 0, index: 0 });
    index.set_len(known.index)?;
    index.rewind()?;
    index.write_all(&[&MAGIC[..], &[0; 24]].concat())?;
    index.seek(SeekFrom::End(0))?;
    let mut lines = BufReader::with_capacity(1 << 18, regular::open(log)?);
    lines.seek(SeekFrom::Start(known.log))?;
    let (mut next, mut line) = (Next { from: known.log, to: known.log, ..Next::default() }, Vec::new());
    while !stop() {
        line.clear();
        let read = lines.read_until(b'\n', &mut line)?;
        // The last line may be on its way.
        let ends = line.last() != Some(&b'\n');
        if !ends {
            next.line(&line);
            next.to += read as u64;
        }
        if next.to - next.from >= PART as u64 || ends && next.to > next.from {
            let check = check_of(&mut source, next.to)?;
            index.write_all(&next.take(check))?;
        }
        if ends {
            break;
        }
    }
    let (check, own) = (check_of(&mut source, next.from)?, index.stream_position()?);
    index.seek(SeekFrom::Start(MAGIC.len() as u64))?;
    index.write_all([next.from.to_le_bytes(), own.to_le_bytes(), check.to_le_bytes()].as_flattened())
}

/// The part that is being read.
#[derive(Default)]
struct Next {
    from: u64,
    to: u64,
    lines: u32,
    prompts: Vec<u8>,
    rewinds: Vec<u8>,
    words: [Words; Said::ALL.len()],
}

impl Next {
    fn line(&mut self, line: &[u8]) {
        let line = line.trim_ascii_end();
        let Some(seen) = glance(line) else { return };
        if seen.tag == crate::session::line::Tag::Prompt {
            self.prompts.extend(seen.seq.to_le_bytes());
        }
        if let Some(to) = super::scan::rewinds(line, seen.tag) {
            self.rewinds.extend([seen.seq.to_le_bytes(), to.to_le_bytes()].as_flattened());
        }
        if let Some(said) = Said::of(seen.tag) {
            self.lines += 1;
            // The envelope is of another make in each line, and nobody said it.
            let kind = line.windows(8).take(256).position(|bytes| bytes == b"\"kind\":\"").unwrap_or(0);
            self.words[said as usize].add(&line[kind..]);
        }
    }

    /// The part as it is written, and room for the next one.
    fn take(&mut self, check: u64) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend([self.from.to_le_bytes(), self.to.to_le_bytes(), check.to_le_bytes()].as_flattened());
        body.extend(self.lines.to_le_bytes());
        let words = self.words.iter().map(|words| &words.text);
        for bytes in [&self.prompts, &self.rewinds].into_iter().chain(words) {
            body.extend((bytes.len() as u32).to_le_bytes());
            body.extend(bytes);
        }
        let size = (body.len() as u32).to_le_bytes();
        self.words.iter_mut().for_each(Words::clear);
        self.prompts.clear();
        self.rewinds.clear();
        (self.from, self.lines) = (self.to, 0);
        [&size[..], &body, &size].concat()
    }
}

/// Words, each once.
#[derive(Default)]
struct Words {
    text: Vec<u8>,
    seen: HashSet<u64, BuildHasherDefault<AsIs>>,
}

impl Words {
    /// Adds the words of a line of JSON. An escape is between two words.
    fn add(&mut self, line: &[u8]) {
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
                    // Spread over the high bits, which a table looks at, too.
                    if self.seen.insert(hash ^ (hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)) {
                        self.text.extend(line[start..at].iter().map(u8::to_ascii_lowercase));
                        self.text.push(b'\n');
                    }
                }
                _ => at += 1,
            }
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.seen.clear();
    }
}

/// What words are made of here: nothing that JSON escapes.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
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
