//! Memory files in the context: they come with the read of a file beside them, and leave with it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Call, Context};
use crate::message::{CallId, MemoryCause};

/// Which message holds which memory files.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Files(Vec<Held>);

#[derive(Debug, Clone, PartialEq)]
struct Held {
    item: usize,
    files: Vec<PathBuf>,
    because: Option<MemoryCause>,
}

impl Files {
    /// `item` is the index of the message.
    pub(super) fn add(&mut self, item: usize, files: &[PathBuf], because: Option<&MemoryCause>) {
        self.0.push(Held { item, files: files.to_vec(), because: because.cloned() });
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().flat_map(|held| &held.files).map(PathBuf::as_path)
    }
}

impl Context {
    /// Memory files that the model has in front of it.
    pub fn memory_files(&self) -> impl Iterator<Item = &Path> {
        self.memory.paths()
    }

    /// Takes out memory files that came in only because of reads that read as markers now.
    pub(super) fn forget_memory(&mut self) {
        let cleared = |calls: &HashMap<CallId, Call>, call: &CallId| calls.get(call).is_none_or(|call| call.replaced);
        let (leave, stay): (Vec<Held>, Vec<Held>) =
            std::mem::take(&mut self.memory.0).into_iter().partition(|held| match &held.because {
                Some(cause) => {
                    cleared(&self.calls, &cause.call) && !self.reads.keys().any(|path| path.starts_with(&cause.folder))
                }
                None => false,
            });
        self.memory.0 = stay;
        for held in leave {
            self.edit(held.item, |item| {
                Arc::make_mut(&mut item.shown).blocks.clear();
                item.kept = Some(Vec::new());
            });
        }
    }
}
