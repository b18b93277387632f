//! Memory files on their way into the conversation: with its opening, and when a file below them was read.

use std::collections::VecDeque;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::mailbox::Mailbox;
use super::memory::{self, Asked, Memory, MemoryFile};
use super::skill_runs::Runs;
use super::{Conversation, Policy};
use crate::message::{Attachment, CallId, Effect, MemoryCause, Message};
use crate::protocol::{Answer, Event, Question};
use crate::session;

impl Conversation {
    /// Puts environment and memory files in front of the first prompt; later turns find them there.
    pub(super) async fn put_opening(
        &mut self,
        policy: &Policy,
        model: &str,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        if self.is_opened() {
            return self.tell_of_memory(policy, mailbox).await;
        }
        let mut memory = self.load(policy, |loader, project, judge| loader.start(project, judge));
        let mut files = std::mem::take(&mut memory.files);
        files.extend(self.imports(memory, policy, mailbox, cancel).await);
        self.loaded.extend(files.iter().map(|file| (file.path.clone(), file.because)));
        let opening = self.opening(&policy.places, model, &files).await;
        self.push(opening, mailbox).await
    }

    /// Tells once what the memory files of the opening say since they changed: the opening stays as it was sent.
    async fn tell_of_memory(&mut self, policy: &Policy, mailbox: &Mailbox) -> Result<(), session::Error> {
        let fresh = self.memory.fresh();
        let loader = std::mem::replace(&mut self.memory, fresh);
        let files = self.load(policy, |loader, project, judge| loader.start(project, judge)).files;
        self.memory = loader;
        let (mut told, mut known) = (Vec::new(), Vec::new());
        for (_, message) in self.context().entries() {
            for effect in &message.effects {
                if let Effect::Memory { files, because: None } = effect {
                    told.push(message.attached());
                    known.extend(files.iter().cloned());
                }
            }
        }
        // The opening of a trimmed conversation may be gone.
        if told.is_empty() {
            return Ok(());
        }
        let is_told = |made: &str| {
            let header = made.lines().next().unwrap_or_default();
            let last = told.iter().rev().find_map(|text| text.rfind(header).map(|at| &text[at..]));
            let after = last.and_then(|last| last.strip_prefix(made));
            after.is_some_and(|after| after.trim().is_empty() || after.trim_start().starts_with("Contents of "))
        };
        let is_gone = |path: &&PathBuf| std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == NotFound);
        let gone: Vec<MemoryFile> = known.iter().filter(is_gone).map(|path| MemoryFile::gone(path)).collect();
        let as_told = |file: &&MemoryFile| {
            let made = Message::attachment(Attachment::Memory, &memory::render(std::slice::from_ref(*file))).attached();
            !is_told(&made)
        };
        let mut changed: Vec<MemoryFile> = files.iter().chain(&gone).filter(as_told).cloned().collect();
        changed.dedup();
        if changed.is_empty() {
            return Ok(());
        }
        let text = format!("# Memory files\nThese changed, and now say:\n\n{}", memory::render(&changed));
        let files = changed.into_iter().map(|file| file.real).collect();
        let effects = vec![Effect::Memory { files, because: None }];
        self.push(Message { effects, ..Message::attachment(Attachment::Memory, &text) }, mailbox).await
    }

    /// The opening once more, with memory files as they are now; imports that were allowed before are loaded unasked.
    pub(super) async fn opening_again(&mut self, policy: &Policy, model: &str) -> Message {
        self.memory = self.memory.fresh();
        let files = self.load(policy, |loader, project, judge| loader.start(project, judge)).files;
        self.loaded.extend(files.iter().map(|file| (file.path.clone(), "compact")));
        self.opening(&policy.places, model, &files).await
    }

    /// What every boundary brings along of the opening; nothing before there is one.
    pub(super) async fn reopening(&mut self, policy: &Policy, model: &str, skills: &Runs) -> Vec<Arc<Message>> {
        if !self.is_opened() {
            return Vec::new();
        }
        let opening = self.opening_again(policy, model).await;
        [Some(opening), skills.list_again(self.context())].into_iter().flatten().map(Arc::new).collect()
    }

    /// Loads memory files as far as the permission engine lets them be read, as any file.
    fn load(
        &mut self,
        policy: &Policy,
        load: impl FnOnce(&mut memory::Loader, &Path, memory::Judge) -> Memory,
    ) -> Memory {
        let mut loader = std::mem::take(&mut self.memory);
        let judge = |path: &Path, whose| policy.grounds(self).memory(path, whose);
        let memory = load(&mut loader, &policy.places.project, &judge);
        self.memory = loader;
        memory
    }

    /// Asks for files that are not read silently, and loads what was allowed.
    async fn imports(
        &mut self,
        memory: Memory,
        policy: &Policy,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Vec<MemoryFile> {
        let mut files = Vec::new();
        for (file, reason) in memory.denied {
            let text = format!("skipped memory file {}: {reason}", file.display());
            mailbox.emit(Event::Notice { text }).await;
        }
        let (mut waiting, mut unasked) = (VecDeque::from(memory.asked), memory.unasked);
        while let Some(asked) = waiting.pop_front() {
            let Asked { from, path, reason, .. } = asked.clone();
            let question = Question::Import { file: from, import: path.clone(), reason };
            match mailbox.ask(question, cancel).await {
                Some(Answer::Yes | Answer::Always { .. }) => {}
                Some(_) => {
                    self.memory.refuse(&asked);
                    continue;
                }
                None => continue,
            }
            let mut loaded = self.load(policy, |loader, _, judge| loader.import(&asked, judge));
            if loaded.asked.iter().any(|again| again.path == path) {
                let text = format!("{} was not read: it leads elsewhere since you were asked.", path.display());
                mailbox.emit(Event::Notice { text }).await;
            }
            files.append(&mut loaded.files);
            unasked.append(&mut loaded.unasked);
            // What it imports may ask as well.
            for more in loaded.asked.into_iter().filter(|more| more.path != path) {
                if waiting.iter().any(|asked| asked.real == more.real) {
                    continue;
                }
                match self.memory.questions(waiting.len()) {
                    0 => drop(unasked.insert(more.real)),
                    _ => waiting.push_back(more),
                }
            }
        }
        if !unasked.is_empty() {
            let more =
                if unasked.len() == 1 { "1 more memory file" } else { &format!("{} more memory files", unasked.len()) };
            let text = format!("{more} outside the project left out: a session asks about a few only.");
            mailbox.emit(Event::Notice { text }).await;
        }
        files
    }

    /// Adds memory files that lie between the project and a file that was just read or changed, and rules about it.
    pub(super) async fn nested_memory(
        &mut self,
        (call, read): (CallId, &Path),
        policy: &Policy,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        self.memory.set_loaded(self.session.context().memory_files());
        let mut memory = self.load(policy, |loader, _, judge| loader.below(read, judge));
        let mut files = std::mem::take(&mut memory.files);
        files.extend(self.imports(memory, policy, mailbox, cancel).await);
        // The first file is the outermost: the others lie below its folder, or are its imports.
        let Some(first) = files.first() else { return Ok(()) };
        let of_first = memory::folder_of(&first.path).and_then(|folder| folder.canonicalize().ok());
        // The user's own rules are about a file wherever it is.
        let around = |folder: &PathBuf| read.canonicalize().is_ok_and(|read| read.starts_with(folder));
        let beside = || read.parent()?.canonicalize().ok();
        let Some(folder) = of_first.filter(around).or_else(beside) else { return Ok(()) };
        let files_read = memory::render(&files);
        let text = format!("Memory files for the folder of {}:\n\n{files_read}", read.display());
        self.loaded.extend(files.iter().map(|file| (file.path.clone(), file.because)));
        let because = Some(MemoryCause { call, folder });
        let files = files.into_iter().map(|file| file.real).collect();
        let effects = vec![Effect::Memory { files, because }];
        self.push(Message { effects, ..Message::attachment(Attachment::Memory, &text) }, mailbox).await
    }
}
