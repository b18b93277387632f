//! What a sub-agent does, as text: in the output file of its task once it has one.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes that are kept for a file that may be opened later.
const KEPT: usize = 256 * 1024;

/// Cheap to clone: all clones write to the same file.
#[derive(Clone)]
pub(in crate::agent) struct Outlet(Arc<Mutex<Into>>);

enum Into {
    /// No file yet.
    Kept(String),
    File(File),
}

impl Outlet {
    pub(in crate::agent) fn new() -> Outlet {
        Outlet(Arc::new(Mutex::new(Into::Kept(String::new()))))
    }

    fn into(&self) -> MutexGuard<'_, Into> {
        // Nothing in here can be left half done by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what was kept and all that comes into this file.
    pub(in crate::agent) fn open(&self, file: File) {
        let before = std::mem::replace(&mut *self.into(), Into::File(file));
        if let Into::Kept(text) = before {
            self.write(&text);
        }
    }

    /// Adds some text. The log of the sub-agent has all of it, too: a full disk is told there.
    pub(in crate::agent) fn write(&self, text: &str) {
        match &mut *self.into() {
            Into::Kept(kept) if kept.len() + text.len() <= KEPT => kept.push_str(text),
            Into::Kept(_) => {}
            Into::File(file) => {
                if let Err(error) = file.write_all(text.as_bytes()) {
                    tracing::warn!(%error, "the output of a sub-agent");
                }
            }
        }
    }
}
