//! Where the surface's bytes go: a terminal device.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ratatui::layout::Size;
use rustix::event::{PollFd, PollFlags, poll};

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
                // Whoever shares the terminal may have made it non-blocking.
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
        (size.ws_col > 0 && size.ws_row > 0).then(|| Size::new(size.ws_col, size.ws_row))
    }
}
