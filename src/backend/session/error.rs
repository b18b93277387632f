//! What can go wrong with a session on disk, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// A failure to read or write a session. The text names the file and the fix.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process writes this session.
    #[error("session {session} is open in another process: fork it, or open it read-only")]
    Locked { session: String },
    /// No room: a full disk, a quota or a limit on the file's size. Nothing of the entry is in the log.
    #[error("cannot write {}: {source}; free some space or raise the file-size limit, then send the prompt again", path.display())]
    Full { path: PathBuf, source: io::Error },
    #[error("cannot {action} {}: {source}; check that it exists and belongs to you, or choose another home with COCODE_HOME", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// The session was opened to read only.
    #[error("this session is open read-only: fork it to continue")]
    ReadOnly,
    /// The folder holds no session, or its first entry cannot be read.
    #[error("{} is not a session: its first entry cannot be read", path.display())]
    NotASession { path: PathBuf },
    #[error("no session matches \u{201c}{query}\u{201d}; `/resume` or `cocode --resume` lists all sessions")]
    NotFound { query: String },
    #[error("\u{201c}{query}\u{201d} matches several sessions; use an id or more words:\n{}", rows.join("\n"))]
    Ambiguous {
        query: String,
        /// The newest, each with its id, when it was used and its title.
        rows: Vec<String>,
    },
    /// Nothing is left to undo or redo.
    #[error("nothing to {0}")]
    Nothing(&'static str),
    #[error("there is a session {session} already: resume it, or choose another id")]
    Exists { session: String },
    #[error("no message {to} to go back to")]
    NoSuchMessage { to: u64 },
}

impl Error {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { action, path: path.to_owned(), source }
    }

    /// Tells a lack of room from other failures to write.
    pub(super) fn write(path: &Path, source: io::Error) -> Error {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, WriteZero};
        match source.kind() {
            FileTooLarge | QuotaExceeded | StorageFull | WriteZero => Error::Full { path: path.to_owned(), source },
            _ => Error::io("write", path, source),
        }
    }
}
