//! Where the lines of a log stand, at some five bytes a line: in memory, and the same in the log's index.

use super::entry::Seq;
use super::line::Tag;
use super::log::Line;

const CARRIES: u8 = 1 << 6;
/// A flag that is left to the caller.
pub(super) const FLAG: u8 = 1 << 7;

/// Lines between two places where reading can begin.
const RUN: usize = 64;

/// What is expected of the next line: it is written as the difference.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Cursor {
    offset: u64,
    seq: Seq,
}

impl Cursor {
    /// Writes the next line; `flag` is `FLAG` or nothing.
    pub(super) fn put(&mut self, bytes: &mut Vec<u8>, line: Line, flag: u8) {
        bytes.push(line.tag.number() | if line.carries { CARRIES } else { 0 } | flag);
        put(bytes, line.offset.wrapping_sub(self.offset));
        put(bytes, line.len as u64);
        put(bytes, line.seq.wrapping_sub(self.seq));
        *self =
            Cursor { offset: line.offset.wrapping_add(line.len as u64).wrapping_add(1), seq: line.seq.wrapping_add(1) };
    }

    /// Reads the next line, and whether its flag is set. `None`: that is not a line.
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> Option<(Line, bool)> {
        let (flags, rest) = bytes.split_first()?;
        *bytes = rest;
        let offset = self.offset.wrapping_add(take(bytes)?);
        let len = usize::try_from(take(bytes)?).ok()?;
        let seq = self.seq.wrapping_add(take(bytes)?);
        let tag = Tag::of_number(flags & !(CARRIES | FLAG))?;
        *self = Cursor { offset: offset.checked_add(len as u64)?.checked_add(1)?, seq: seq.checked_add(1)? };
        Some((Line { offset, len, seq, tag, carries: flags & CARRIES != 0 }, flags & FLAG != 0))
    }

    /// Where the next line starts if nothing is in between.
    pub(super) fn offset(self) -> u64 {
        self.offset
    }
}

/// The lines of a log in file order.
#[derive(Debug, Default, Clone)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    len: usize,
    end: Cursor,
    /// Where each run begins.
    runs: Vec<(usize, Cursor)>,
}

impl Packed {
    pub(super) fn push(&mut self, line: Line) {
        if self.len.is_multiple_of(RUN) {
            self.runs.push((self.bytes.len(), self.end));
        }
        self.end.put(&mut self.bytes, line, 0);
        self.len += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, index: usize) -> Option<Line> {
        self.run_from(index / RUN).nth(index % RUN)
    }

    /// The line of an entry.
    pub(super) fn find(&self, seq: Seq) -> Option<Line> {
        let run = self.runs.partition_point(|(_, cursor)| cursor.seq <= seq).saturating_sub(1);
        let found = self.run_from(run).take(RUN).find(|line| line.seq == seq);
        // Where a damaged log's numbers went astray, it may stand anywhere.
        found.or_else(|| self.iter().find(|line| line.seq == seq))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Line> {
        self.run_from(0)
    }

    fn run_from(&self, run: usize) -> impl Iterator<Item = Line> {
        let (at, mut cursor) = self.runs.get(run).copied().unwrap_or((self.bytes.len(), self.end));
        let mut bytes = &self.bytes[at..];
        std::iter::from_fn(move || cursor.take(&mut bytes).map(|(line, _)| line))
    }
}

impl FromIterator<Line> for Packed {
    fn from_iter<I: IntoIterator<Item = Line>>(lines: I) -> Packed {
        let mut packed = Packed::default();
        lines.into_iter().for_each(|line| packed.push(line));
        packed
    }
}

/// Adds a number, seven bits a byte, the lowest first.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were() {
        // With gaps, numbers that go back, and long lines.
        let line = |index: u64| Line {
            offset: index * 1_000 + index % 7,
            len: usize::try_from(index * 37 % 900).unwrap(),
            seq: if index % 50 == 49 { index / 2 } else { index + index / 100 },
            tag: [Tag::Prompt, Tag::Reply, Tag::Other][usize::try_from(index % 3).unwrap()],
            carries: index.is_multiple_of(5),
        };
        let lines: Vec<Line> = (0..1_000).map(line).collect();
        let packed: Packed = lines.iter().copied().collect();
        assert_eq!((packed.len(), packed.iter().collect::<Vec<_>>()), (1_000, lines.clone()));
        for index in [0, 1, 63, 64, 65, 500, 999, 1_000, 5_000] {
            assert_eq!(packed.get(index), lines.get(index).copied(), "{index}");
            let seq = lines.get(index).map_or(9_999, |line| line.seq);
            assert_eq!(packed.find(seq).map(|line| line.seq), lines.get(index).map(|line| line.seq), "{index}");
        }
    }
}
