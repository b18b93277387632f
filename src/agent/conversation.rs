//! The conversation: its log, and what was read for it from disk. The first message and the watch over files belong here.

use std::path::PathBuf;

use super::memory::{Loader, MemoryFile};
use super::prompt::{self, GitStatus};
use super::{Policy, media, reminder, skill_runs};
use crate::hooks::Hooks;
use crate::message::{Effect, Kind, Message};
use crate::permission::{Behavior, Disk, Files, Places, Rule, Source};
use crate::session::entry::{EntryKind, Seq};
use crate::session::{self, Context, Facts, Session};

/// One session, from where it is opened until another one takes its place.
pub struct Conversation {
    pub session: Session,
    pub(super) memory: Loader,
    watch: reminder::Watch,
    pub(super) media: media::MediaCache,
    pub(super) git: GitStatus,
    /// Today, as the model is told.
    pub(super) date: String,
}

impl Conversation {
    /// Opens a session: its granted rules count, what its skills opened may be read, and hooks with `once` that ran in it
    /// stay done. Nothing is known of files and folders yet.
    pub(super) fn open(
        session: Session,
        policy: &mut Policy,
        hooks: &Hooks,
        memory: Loader,
        git: GitStatus,
        date: String,
    ) -> Conversation {
        hooks.restart(&session.facts().hooks);
        for rule in session.facts().grants.iter().filter_map(|text| Rule::parse(text).ok()) {
            policy.rules.add(Behavior::Allow, rule, Source::Session);
        }
        let dir = session.store().dir();
        let own = [dir.join("tool-results"), dir.join("blobs")];
        policy.places.free_reads =
            own.iter().map(|folder| Disk.resolve(folder)).chain(skill_runs::opened(&session)).collect();
        let (watch, media) = (reminder::Watch::default(), media::MediaCache::default());
        Conversation { session, memory, watch, media, git, date }
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// As `Session::append`.
    pub fn append(&mut self, kind: EntryKind) -> Result<Seq, session::Error> {
        self.session.append(kind)
    }

    /// What is known of the session as a whole.
    pub fn facts(&self) -> &Facts {
        self.session.facts()
    }

    /// What the model has in front of it.
    pub fn context(&self) -> &Context {
        self.session.context()
    }

    /// Whether the first message is there. A `!` line may come before it; the summary of a compacted conversation brings
    /// it along.
    pub(super) fn is_opened(&self) -> bool {
        let opens = |message: &Message| prompt::opens(message) || message.kind == Kind::CompactSummary;
        self.context().entries().any(|(_, message)| opens(message))
    }

    /// The first message: the environment as it was at the start, and memory files as they are now.
    pub(super) async fn opening(&mut self, places: &Places, model: &str, files: &[MemoryFile]) -> Message {
        let environment = prompt::Environment {
            cwd: places.project.clone(),
            added: places.added.clone(),
            git: self.git.get().await,
            date: self.date.clone(),
            model: model.to_owned(),
        };
        let files_read = files.iter().map(|file| file.real.clone()).collect();
        let effects = vec![Effect::Memory { files: files_read, because: None }];
        Message { effects, ..prompt::opening(&environment, files) }
    }

    /// Files that changed on disk since the model saw them, each change once.
    pub(super) fn changed_files(&mut self) -> Vec<PathBuf> {
        self.watch.changed(self.session.context().seen())
    }

    /// What the model knows of files is no longer what was checked last: a boundary, a rewind.
    pub(super) fn forget_files(&mut self) {
        self.watch = reminder::Watch::default();
    }

    /// Puts a boundary behind the conversation: files and nested memory may come again.
    pub(super) fn forget_read(&mut self) {
        self.forget_files();
        self.memory = self.memory.fresh();
    }
}
