//! Memory files in the context: they come with the read of a file beside them, and leave with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::calls::Calls;
use super::{Change, Context};
use crate::message::tokens::{self, Load};
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

    /// Whether some came because of a read, and may leave with it.
    pub(super) fn any_leave(&self) -> bool {
        self.0.iter().any(|held| held.because.is_some())
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

    /// Results were replaced: once for all of an entry.
    pub(super) fn forget_replaced(&mut self) {
        self.calls.forget_replaced();
        self.forget_memory();
    }

    /// Takes out memory files that came in only because of reads that read as markers now.
    fn forget_memory(&mut self) {
        let cleared = |calls: &Calls, call: &CallId| calls.get(call).is_none_or(|call| call.replaced);
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
                let gone = tokens::load(&item.shown);
                Arc::make_mut(&mut item.shown).blocks.clear();
                item.kept = Some(Vec::new());
                Change { gone, come: Load::default() }
            });
        }
    }
}
