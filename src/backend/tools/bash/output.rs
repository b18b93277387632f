//! What a command writes: read as it comes, and kept.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::stdx::ansi::Cleaner;
use crate::tools::limit::Spool;

/// Shortest time between two pieces of live output.
const TICK: Duration = Duration::from_millis(50);

/// Most bytes of one piece of live output; the screen shows the last lines only.
const PIECE: usize = 4 * 1024;

/// Most bytes that are still read once the shell has ended: more than any pipe holds.
const DRAIN: usize = 4 * 1024 * 1024;

/// Most bytes that a command in the background may write.
const MOST: u64 = 5_000_000_000;

/// Reads what a pipe holds now.
pub(super) type Take = fn(&pipe::Receiver, &mut [u8]) -> io::Result<usize>;

/// Asks the pipe itself, whatever the runtime has heard of it: once the shell is gone nothing else is going to be heard.
pub(super) fn left(pipe: &pipe::Receiver, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(pipe, buffer)?)
}

/// The last of many records, each closed by a zero byte, read as they come so that the writer never waits.
#[derive(Default)]
pub(super) struct LastRecord {
    last: Option<Vec<u8>>,
    open: Vec<u8>,
}

impl LastRecord {
    /// Takes what is there; false at the end of the stream.
    pub(super) fn read(&mut self, pipe: &pipe::Receiver, take: Take) -> bool {
        let mut buffer = [0; 4096];
        // Bounded, since a command may write nonsense here without end.
        for _ in 0..64 {
            match take(pipe, &mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == 0 {
                self.last = Some(std::mem::take(&mut self.open));
            } else if self.open.len() < 8192 {
                self.open.push(*byte);
            }
        }
    }

    pub(super) fn value(self) -> Option<PathBuf> {
        let text = self.last?;
        #[cfg(unix)]
        let path = PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(text));
        #[cfg(not(unix))]
        let path = PathBuf::from(String::from_utf8_lossy(&text).into_owned());
        Some(path)
    }
}

/// Where output goes: as plain text to where it is kept, and now and then a piece to the screen.
pub(super) struct Sink<'a> {
    cleaner: Cleaner,
    kept: Kept<'a>,
    live: &'a mpsc::UnboundedSender<String>,
    /// What the screen has not seen yet.
    pending: String,
    /// When the next piece may go.
    pub(super) due: Instant,
}

/// Where all of it is kept.
pub(super) enum Kept<'a> {
    /// For the result of the call, which waits for it.
    Spool(Box<Spool<'a>>),
    /// In the file of a command that no call waits for.
    File(Growing),
}

/// The file of a command in the background.
pub(super) struct Growing {
    file: File,
    bytes: u64,
    most: u64,
    fault: Option<String>,
}

impl Growing {
    pub(super) fn new(file: File) -> Growing {
        Growing { file, bytes: 0, most: MOST, fault: None }
    }

    fn push(&mut self, text: &str) {
        if self.fault.is_some() {
            return;
        }
        let room = usize::try_from(self.most.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        let fits = &text[..text.floor_char_boundary(room)];
        match self.file.write_all(fits.as_bytes()) {
            Ok(()) => self.bytes += fits.len() as u64,
            Err(error) => self.fault = Some(format!("its output cannot be written: {error}")),
        }
        if fits.len() < text.len() {
            self.fault
                .get_or_insert_with(|| format!("its output reached the limit of {} GB", self.most / 1_000_000_000));
        }
    }

    /// Adds a line of ours, also where the limit is reached.
    fn note(&mut self, note: &str) {
        // The notice of its end says as much.
        let _ = writeln!(self.file, "[{note}]");
    }
}

impl<'a> Sink<'a> {
    pub(super) fn new(kept: Kept<'a>, live: &'a mpsc::UnboundedSender<String>) -> Sink<'a> {
        Sink { cleaner: Cleaner::new(), kept, live, pending: String::new(), due: Instant::now() }
    }

    /// Takes what is there now; none at the end of the stream.
    pub(super) fn read(&mut self, pipe: &pipe::Receiver, take: Take, buffer: &mut [u8]) -> Option<usize> {
        match take(pipe, buffer) {
            Ok(0) => None,
            Ok(count) => {
                let mut text = String::new();
                self.cleaner.push(&buffer[..count], &mut text);
                self.add(&text);
                Some(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(0),
            Err(_) => None,
        }
    }

    /// Takes what was written before the end and is still in the pipe.
    pub(super) fn drain(&mut self, pipe: &pipe::Receiver, buffer: &mut [u8]) {
        let mut drained = 0;
        while drained < DRAIN
            && let Some(count @ 1..) = self.read(pipe, left, buffer)
        {
            drained += count;
        }
    }

    /// Keeps everything in a file from now on, what came already included.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn continue_in(&mut self, mut file: File) -> io::Result<()> {
        self.send();
        if let Kept::Spool(spool) = &mut self.kept {
            let bytes = spool.pour(&mut file)?;
            self.kept = Kept::File(Growing { bytes, ..Growing::new(file) });
        }
        Ok(())
    }

    /// Why no more can be kept, where that ends the command.
    pub(super) fn fault(&self) -> Option<&str> {
        match &self.kept {
            Kept::Spool(_) => None,
            Kept::File(file) => file.fault.as_deref(),
        }
    }

    fn add(&mut self, text: &str) {
        match &mut self.kept {
            Kept::Spool(spool) => spool.push(text),
            // Nobody listens.
            Kept::File(file) => return file.push(text),
        }
        self.pending.push_str(text);
        if self.pending.len() > PIECE {
            let cut = self.pending.ceil_char_boundary(self.pending.len() - PIECE);
            let cut = self.pending[cut..].find('\n').map_or(cut, |at| cut + at + 1);
            self.pending.drain(..cut);
        }
        if Instant::now() >= self.due {
            self.send();
        }
    }

    pub(super) fn waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn send(&mut self) {
        if !self.pending.is_empty() {
            // Nobody listens: then nobody misses it.
            let _ = self.live.send(std::mem::take(&mut self.pending));
            self.due = Instant::now() + TICK;
        }
    }

    /// What the model gets, and whether there was no output at all. Of a file nothing: it is there.
    pub(super) fn finish(&mut self, settings: &crate::tools::Settings) -> (String, bool) {
        let mut rest = String::new();
        std::mem::take(&mut self.cleaner).finish(&mut rest);
        self.add(&rest);
        self.send();
        match &mut self.kept {
            Kept::Spool(spool) => (spool.finish(settings), spool.is_empty()),
            Kept::File(_) => (String::new(), false),
        }
    }

    /// Puts what there is to say of the command behind its output, where that is a file.
    pub(super) fn note(&mut self, notes: &[String]) {
        if let Kept::File(file) = &mut self.kept {
            notes.iter().for_each(|note| file.note(note));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_file_grows_up_to_its_limit() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let mut growing = Growing { most: 10, ..Growing::new(path.reopen().unwrap()) };
        growing.push("12345678");
        assert_eq!(growing.fault, None);
        // A character is never cut.
        growing.push("9日本");
        assert_eq!(growing.fault.as_deref(), Some("its output reached the limit of 0 GB"));
        growing.push("more");
        growing.note("Stopped");
        let mut text = String::new();
        path.reopen().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "123456789[Stopped]\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told() {
        let mut growing = Growing::new(File::options().write(true).open("/dev/full").unwrap());
        growing.push("text");
        let fault = growing.fault.unwrap();
        assert!(fault.starts_with("its output cannot be written: No space left"), "{fault}");
    }
}
