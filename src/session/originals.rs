//! The files that a session changed, as they were before it did.

use std::path::PathBuf;

use super::session::Session;

/// A file that was changed, and its content before the first change; none when it did not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    pub path: PathBuf,
    /// The inner error says why it cannot be told.
    pub before: Result<Option<Vec<u8>>, String>,
}

impl Session {
    /// Every file with a tool's change in effect, in the order of the first changes.
    pub fn first_versions(&self) -> Vec<First> {
        let first = |(path, version): (&std::path::Path, &super::entry::Version)| {
            let blob = version.blob.as_ref().map(|blob| self.store().blob(blob)).transpose();
            let before = blob.map_err(|error| format!("its saved content cannot be read: {error}"));
            First { path: path.to_path_buf(), before }
        };
        self.changes.firsts().into_iter().map(first).collect()
    }
}
