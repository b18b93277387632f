//! Where the surface's bytes go: a terminal device.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ratatui::layout::Size;
use rustix::event::{PollFd, PollFlags, poll};

/// What is drawn on where the terminal does not say how large it is.
pub(super) const USUAL: Size = Size::new(80, 24);
/// Most columns and rows that are drawn on: what claims to be larger is a mistake that would cost memory.
const LARGEST: Size = Size::new(1_000, 400);

/// Where the surface's bytes go.
pub trait Output {
    /// Writes everything, in one call to the system where that takes it.
    ///
    /// # Errors
    /// When the terminal is gone.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The size that the terminal has at this moment, when it can be known.
    fn size(&self) -> Option<Size>;
}

/// A terminal device.
#[derive(Debug)]
pub struct Tty(File);

impl Tty {
    /// The terminal that a descriptor belongs to; none when it is a file or a pipe.
    ///
    /// # Errors
    /// When the process is out of descriptors.
    pub fn of(fd: impl AsFd + IsTerminal) -> io::Result<Option<Tty>> {
        if !fd.is_terminal() {
            return Ok(None);
        }
        Ok(Some(Tty(File::from(fd.as_fd().try_clone_to_owned()?))))
    }
}

impl From<Tty> for OwnedFd {
    fn from(tty: Tty) -> OwnedFd {
        tty.0.into()
    }
}

impl AsFd for Tty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Output for Tty {
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.0, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(rustix::io::Errno::INTR) => {}
                // Another process that shares the terminal may have made it non-blocking.
                Err(rustix::io::Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn size(&self) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(&self.0).ok()?;
        Some(drawable(size.ws_col, size.ws_row))
    }
}

/// The size to draw on for what a terminal claims: serial lines, containers and careless scripts say 0.
fn drawable(columns: u16, rows: u16) -> Size {
    let side = |claimed: u16, usual, largest: u16| if claimed == 0 { usual } else { claimed.min(largest) };
    Size::new(side(columns, USUAL.width, LARGEST.width), side(rows, USUAL.height, LARGEST.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_gives_a_size_to_draw_on() {
        for (claimed, want) in [
            ((0, 0), (80, 24)),
            ((0, 50), (80, 50)),
            ((132, 0), (132, 24)),
            ((1, 1), (1, 1)),
            ((300, 90), (300, 90)),
            ((u16::MAX, u16::MAX), (1_000, 400)),
        ] {
            assert_eq!(drawable(claimed.0, claimed.1), Size::from(want), "{claimed:?}");
        }
    }
}
