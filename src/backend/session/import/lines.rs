//! Lines of a file that another program writes: of any length, cut off in the middle, of any bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::stdx::regular;

/// Bytes of a line that are read; a longer one is passed over. Pictures make lines of ten megabytes.
const LONGEST: u64 = 32 << 20;

pub(super) struct Lines {
    reader: BufReader<File>,
    /// Where the next line begins.
    next: u64,
    /// Lines that were passed over.
    pub(super) long: u64,
}

impl Lines {
    /// # Errors
    /// What the file system says; only regular files are opened.
    pub(super) fn open(path: &Path) -> io::Result<Lines> {
        Ok(Lines { reader: BufReader::with_capacity(1 << 18, regular::open(path)?), next: 0, long: 0 })
    }

    /// Reads the next line, and tells where it begins. None at the end.
    pub(super) fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
        loop {
            line.clear();
            let at = self.next;
            let read = (&mut self.reader).take(LONGEST).read_until(b'\n', line)? as u64;
            self.next += read;
            if read == LONGEST && line.last() != Some(&b'\n') {
                self.next += self.reader.skip_until(b'\n')? as u64;
                self.long += 1;
                continue;
            }
            return Ok((read > 0).then_some(at));
        }
    }

    /// Reads the line that begins there.
    pub(super) fn at(&mut self, offset: u64, line: &mut Vec<u8>) -> io::Result<()> {
        if offset != self.next {
            self.reader.seek(SeekFrom::Start(offset))?;
            self.next = offset;
        }
        self.next(line).map(|_| ())
    }
}
