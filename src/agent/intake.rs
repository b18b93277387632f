//! What enters the conversation from outside the model: its opening, the user's prompts and what is attached to them.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::mailbox::{Mailbox, Prompt};
use super::memory::{self, Asked, Memory};
use super::{Agent, Grounds};
use crate::message::{Attachment, Block, CallId, Content, Effect, MemoryCause, Message, Outcome, ToolResult};
use crate::permission::{Behavior, Mode};
use crate::protocol::{Answer, Event, Question};
use crate::session;

impl Agent {
    /// Puts environment and memory files in front of the first prompt; later turns find them there.
    pub(super) async fn open_conversation(
        &mut self,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        if self.conversation.is_opened() {
            return Ok(());
        }
        let mut memory = self.load(|loader, project, judge| loader.start(project, judge));
        let mut files = std::mem::take(&mut memory.files);
        files.extend(self.imports(memory, mailbox, cancel).await);
        let opening = self.conversation.opening(&self.policy.places, &self.model.id, &files).await;
        self.push(opening, mailbox).await
    }

    /// The opening once more, with memory files as they are now; imports that were allowed before are loaded unasked.
    pub(super) async fn opening(&mut self) -> Message {
        self.conversation.memory = self.conversation.memory.fresh();
        let files = self.load(|loader, project, judge| loader.start(project, judge)).files;
        self.conversation.opening(&self.policy.places, &self.model.id, &files).await
    }

    /// Loads memory files as far as the permission engine lets them be read, as any file.
    fn load(&mut self, load: impl FnOnce(&mut memory::Loader, &Path, memory::Judge) -> Memory) -> Memory {
        let mut loader = std::mem::take(&mut self.conversation.memory);
        let memory = load(&mut loader, &self.policy.places.project, &|path, whose| self.judge_memory(path, whose));
        self.conversation.memory = loader;
        memory
    }

    /// What the rules say to reading a file, whatever the mode: no answer would be a refusal, and no question a permission.
    pub(super) fn judge_memory(&self, path: &Path, whose: memory::Whose) -> (Behavior, String) {
        let mut grounds = Grounds { mode: Mode::Default, ..self.grounds() };
        if whose == memory::Whose::Own {
            grounds.places.added.extend(path.canonicalize().ok().and_then(|real| Some(real.parent()?.to_path_buf())));
        }
        let decision = grounds.read(path);
        (decision.behavior, decision.reasons.into_iter().next().unwrap_or_default())
    }

    /// Asks for files that are not read without a word, and loads what was allowed.
    async fn imports(
        &mut self,
        memory: Memory,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Vec<super::memory::MemoryFile> {
        let mut files = Vec::new();
        for (file, reason) in memory.denied {
            let text = format!("skipped memory file {}: {reason}", file.display());
            mailbox.emit(Event::Notice { text }).await;
        }
        for asked in memory.asked {
            let Asked { from, path, reason, .. } = asked.clone();
            let question = Question::Import { file: from, import: path.clone(), reason };
            if !matches!(mailbox.ask(question, cancel).await, Some(Answer::Yes | Answer::Always { .. })) {
                continue;
            }
            let mut loaded = self.load(|loader, _, judge| loader.import(&asked, judge));
            if loaded.asked.iter().any(|again| again.path == path) {
                let text = format!("{} was not read: it leads elsewhere since you were asked.", path.display());
                mailbox.emit(Event::Notice { text }).await;
            }
            files.append(&mut loaded.files);
        }
        files
    }

    /// Adds memory files that lie between the project and a file that was just read.
    pub(super) async fn nested_memory(
        &mut self,
        call: CallId,
        read: &Path,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        self.conversation.memory.set_loaded(self.conversation.session.context().memory_files());
        let mut memory = self.load(|loader, _, judge| loader.below(read, judge));
        let mut files = std::mem::take(&mut memory.files);
        files.extend(self.imports(memory, mailbox, cancel).await);
        // The first file is the outermost: the others lie below its folder, or are its imports.
        let Some(folder) = files.first().and_then(|file| file.path.parent()?.canonicalize().ok()) else {
            return Ok(());
        };
        let files_read = super::memory::render(&files);
        let text = format!("Memory files for the folder of {}:\n\n{files_read}", read.display());
        let because = Some(MemoryCause { call, folder });
        let effects = vec![Effect::Memory { files: real(&files), because }];
        self.push(Message { effects, ..Message::attachment(Attachment::Memory, &text) }, mailbox).await
    }

    /// Adds what the user typed, then what they attached to it: a rewind to the prompt takes both.
    pub(super) async fn push_prompt(&mut self, prompt: Prompt, mailbox: &Mailbox) -> Result<(), session::Error> {
        self.thinking.note(&prompt, &self.settings.thinking);
        let mut blocks = vec![Block::text(prompt.text.clone())];
        let mut attached = Vec::new();
        for path in &prompt.attachments {
            // Naming a file brings it into the workspace; what is denied or asked about even there is left to the Read tool,
            // which asks.
            let mut places = self.places();
            places.added.push(self.dirs().absolute(&path.to_string_lossy()));
            match self.attach(path, places, mailbox).await {
                Err(decision) => {
                    let reason = decision.reasons.into_iter().next().unwrap_or_default();
                    let text = format!("{} was not attached: {reason}", path.display());
                    mailbox.emit(Event::Notice { text: text.clone() }).await;
                    attached.push(Message::attachment(Attachment::File, &text));
                }
                Ok(ToolResult { outcome: Outcome::Ok, content, effects, .. }) => {
                    for part in content {
                        match part {
                            Content::Media(media) => blocks.push(Block::Media(media)),
                            Content::Text { text } => {
                                let text = format!("The user attached {}:\n\n{text}", path.display());
                                attached.push(Message {
                                    effects: effects.clone(),
                                    ..Message::attachment(Attachment::File, &text)
                                });
                            }
                        }
                    }
                }
                Ok(failed) => {
                    let problem = failed.text();
                    let text = format!("The user attached {}, but it could not be read: {problem}", path.display());
                    attached.push(Message::attachment(Attachment::File, &text));
                }
            }
        }
        self.push(Message { blocks, ..Message::prompt("") }, mailbox).await?;
        for message in attached {
            self.push(message, mailbox).await?;
        }
        Ok(())
    }
}

fn real(files: &[super::memory::MemoryFile]) -> Vec<PathBuf> {
    files.iter().map(|file| file.real.clone()).collect()
}
