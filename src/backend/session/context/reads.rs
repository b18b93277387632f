//! Which files the model has read, and which memory files came along: what is known while a read of it survives.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::calls::Calls;
use crate::message::{CallId, Effect, MemoryCause, ToolResult};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reads {
    /// Who saw which content of a file, oldest first.
    readers: HashMap<PathBuf, Vec<(Reader, String)>>,
    seen: HashMap<PathBuf, String>,
    memory: Vec<Memory>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reader {
    Call(CallId),
    /// An attachment holds the file whole.
    Attachment,
}

/// Memory files that one message holds.
#[derive(Debug, Clone, PartialEq)]
struct Memory {
    item: usize,
    files: Vec<PathBuf>,
    /// They came with the read of a file beside them, and leave with it.
    because: Option<MemoryCause>,
}

impl Reads {
    pub(super) fn seen(&self) -> &HashMap<PathBuf, String> {
        &self.seen
    }

    pub(super) fn see(&mut self, reader: Reader, path: &Path, sha256: &str) {
        self.seen.insert(path.to_owned(), sha256.to_owned());
        self.readers.entry(path.to_owned()).or_default().push((reader, sha256.to_owned()));
    }

    /// A result no longer shows what it read: a file whose only surviving reads are gone is not known as read anymore.
    pub(super) fn unread(&mut self, result: &ToolResult) {
        for effect in &result.effects {
            let Effect::Seen { path, .. } = effect else { continue };
            let Some(reads) = self.readers.get_mut(path) else { continue };
            reads.retain(|(reader, _)| *reader != Reader::Call(result.id.clone()));
            match reads.last() {
                Some((_, sha256)) => self.seen.insert(path.clone(), sha256.clone()),
                None => {
                    self.readers.remove(path);
                    self.seen.remove(path)
                }
            };
        }
    }

    pub(super) fn memory_files(&self) -> impl Iterator<Item = &Path> {
        self.memory.iter().flat_map(|memory| &memory.files).map(PathBuf::as_path)
    }

    /// `item` is the index of the message.
    pub(super) fn add_memory(&mut self, item: usize, files: &[PathBuf], because: Option<&MemoryCause>) {
        self.memory.push(Memory { item, files: files.to_vec(), because: because.cloned() });
    }

    /// Whether some came because of a read, and may leave with it.
    pub(super) fn any_memory_leaves(&self) -> bool {
        self.memory.iter().any(|memory| memory.because.is_some())
    }

    /// Forgets memory files that came in only because of reads that read as markers now: the messages that hold them.
    pub(super) fn leaving_memory(&mut self, calls: &Calls) -> Vec<usize> {
        let Reads { readers, memory, .. } = self;
        let cleared = |call: &CallId| calls.get(call).is_none_or(|call| call.replaced);
        let leaves = |memory: &mut Memory| match &memory.because {
            Some(cause) => cleared(&cause.call) && !readers.keys().any(|path| path.starts_with(&cause.folder)),
            None => false,
        };
        memory.extract_if(.., leaves).map(|memory| memory.item).collect()
    }
}
