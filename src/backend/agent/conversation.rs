//! The conversation: its log, and what was read for it from disk. Whatever joins it goes through here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::mailbox::Mailbox;
use super::memory::{Loader, MemoryFile};
use super::parent_child::{Above, Note, note};
use super::prompt::{self, GitStatus};
use super::{Policy, Presence, Settings, media, reminder, skill_runs};
use crate::hooks::{Hooks, Outcome, Place};
use crate::message::{Attachment, Effect, Kind, Message, Role, ToolResult};
use crate::permission::{Behavior, Disk, Files, Mode, Places, Source};
use crate::protocol::{Event, Item};
use crate::provider::Purpose;
use crate::session::entry::{EntryKind, Seq};
use crate::session::store::TASKS;
use crate::session::{self, Context, Facts, Session};
use crate::thinking::Level;
use crate::tools::{Changed, FileChange, RULES, Undo};

/// One session, from where it is opened until another one takes its place.
pub struct Conversation {
    pub session: Session,
    pub(super) memory: Loader,
    /// Memory files that the model was given, and why, for hooks to hear of.
    pub(super) loaded: Vec<(PathBuf, &'static str)>,
    watch: reminder::Watch,
    pub(super) media: media::MediaCache,
    pub(super) git: GitStatus,
    /// Today, as the model is told.
    pub(super) date: String,
    /// The agent that launched this one, whose log belongs to the session. None: the user talks to this one.
    pub(super) above: Option<Above>,
    pub(super) presence: Presence,
    /// The folder of plans.
    pub(super) plans: PathBuf,
    /// What is to be said of what was written down.
    pub(super) news: Vec<String>,
}

/// Loads memory files as at the start of a session.
pub(super) fn fresh_memory(settings: &Settings, places: &Places) -> Loader {
    let home = Some(places.cocode_home.clone());
    let loader = Loader::new(settings.memory_names.clone(), home, places.project.clone());
    loader.without(settings.memory_excludes.clone())
}

impl Conversation {
    /// Opens a session: its granted rules count, what its skills opened may be read, and hooks with `once` that ran in it
    /// stay done. Nothing is known of files and folders yet.
    pub(super) fn open(
        session: Session,
        settings: &Settings,
        policy: &mut Policy,
        hooks: &Hooks,
        git: GitStatus,
        date: String,
    ) -> Conversation {
        hooks.restart(&session.facts().hooks);
        for rule in session.facts().grants.iter().filter_map(|text| RULES.rule(text).ok()) {
            policy.rules.add(Behavior::Allow, rule, Source::Session);
        }
        let dir = session.store().dir();
        let own = [dir.join("tool-results"), dir.join("blobs"), dir.join(TASKS)];
        policy.places.free_reads =
            own.iter().map(|folder| Disk.resolve(folder)).chain(skill_runs::opened(&session)).collect();
        Conversation {
            session,
            memory: fresh_memory(settings, &policy.places),
            loaded: Vec::new(),
            watch: reminder::Watch::default(),
            media: media::MediaCache::default(),
            git,
            date,
            above: None,
            presence: settings.presence,
            plans: policy.places.cocode_home.join("plans"),
            news: Vec::new(),
        }
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

    /// How much runs without asking now.
    pub fn mode(&self) -> Mode {
        self.facts().mode.unwrap_or_default()
    }

    /// Why a request is made.
    pub(super) fn purpose(&self) -> Purpose {
        match &self.above {
            Some(above) => Purpose::Agent(above.agent.clone()),
            None => Purpose::Main,
        }
    }

    /// What hooks are told of the session.
    pub(super) fn place(&self, project: &Path) -> Place {
        Place {
            session: self.session.id().to_owned(),
            transcript: self.session.log().to_path_buf(),
            cwd: self.context().cwd().to_path_buf(),
            project: project.to_owned(),
            mode: self.mode().name(),
            agent: None,
        }
    }

    /// The last text of the model that is in the context; empty when it has said nothing.
    pub(super) fn last_said(&self) -> String {
        let said = |(_, message): (Seq, &Arc<Message>)| (message.role == Role::Assistant).then(|| message.text());
        self.context().entries().rev().filter_map(said).find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Puts a message into the log, then on the screen.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn push(&mut self, message: Message, mailbox: &Mailbox) -> Result<(), session::Error> {
        let message = Arc::new(message);
        let seq = self.append(EntryKind::Message { message: message.clone() })?;
        mailbox.emit(Event::Item(Item::Message { seq, message })).await;
        self.note_decided(mailbox).await
    }

    /// Logs the result of a call and shows it.
    pub(super) async fn answer(&mut self, result: ToolResult, mailbox: &Mailbox) -> Result<(), session::Error> {
        let todos = result.effects.iter().find_map(|effect| match effect {
            Effect::Todos { items } => Some(items.clone()),
            _ => None,
        });
        self.push(Message::tool_results(vec![result]), mailbox).await?;
        if let Some(items) = todos {
            mailbox.emit(Event::Todos { items }).await;
        }
        Ok(())
    }

    /// Makes a change undoable before it happens. For a command the log is then safe on disk; a tool that changes a file
    /// says so once it knows what it will write (`tools::Host::will_change`).
    pub(super) async fn announce(&mut self, change: Option<Note>) -> Result<(), session::Error> {
        match (change, &self.above) {
            (Some(mut change), Some(above)) => {
                if let Note::Command { agent, .. } = &mut change {
                    *agent = Some(above.agent.clone());
                }
                note(&above.words, change).await
            }
            (Some(change), None) => self.note(change),
            (None, _) => Ok(()),
        }
    }

    /// Writes down what changes.
    pub(super) fn note(&mut self, note: Note) -> Result<(), session::Error> {
        match note {
            Note::Before(path) => self.session.before_change(&path),
            Note::Change(FileChange { path, blob, temporary }) => self.session.will_change(&path, blob, temporary),
            Note::Settled(path) => self.session.settled(&path),
            Note::Command { call, command, record, agent } => {
                self.append(EntryKind::CommandRan { call, command, record, agent })?;
                self.session.sync()
            }
            Note::Ended { record, finished, most } => {
                self.session.command_ended(&record, &finished)?;
                self.news.extend(self.session.retain_records(most));
                Ok(())
            }
        }
    }

    /// Writes down what a command has changed, where that was recorded.
    pub(super) async fn note_changed(
        &mut self,
        changed: Changed,
        undo: Option<Undo>,
        mailbox: &Mailbox,
    ) -> Result<(), session::Error> {
        if let (Changed { record: Some(record), finished }, Some(Undo { session, .. })) = (changed, undo) {
            self.announce(Some(Note::Ended { record, finished, most: session })).await?;
            self.tell_news(mailbox).await;
        }
        Ok(())
    }

    /// Says what came of writing something down.
    pub(super) async fn tell_news(&mut self, mailbox: &Mailbox) {
        for text in std::mem::take(&mut self.news) {
            mailbox.emit(Event::Notice { text }).await;
        }
    }

    /// Shows what hooks did, and writes down which of them are done for this session.
    pub(super) async fn note_hooks(&mut self, outcome: &Outcome, mailbox: &Mailbox) -> Result<(), session::Error> {
        for report in &outcome.reports {
            mailbox.emit(Event::Hook { ran: report.clone() }).await;
        }
        for hook in &outcome.once {
            if !self.session.read_only() {
                self.append(EntryKind::HookRan { hook: hook.clone() })?;
            }
        }
        Ok(())
    }

    /// Says what became of the session on disk.
    pub(super) async fn watch_session(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        for text in self.session.watch()? {
            mailbox.emit(Event::Notice { text }).await;
        }
        Ok(())
    }

    /// Puts mode, thinking and opening into a sub-agent's log where they do not stand there yet.
    pub(super) fn begin(
        &mut self,
        mode: Mode,
        thinking: Option<Level>,
        opening: Option<&Arc<Message>>,
    ) -> Result<(), session::Error> {
        if self.mode() != mode {
            self.append(EntryKind::ModeChanged { mode })?;
        }
        if self.facts().thinking != thinking {
            self.append(EntryKind::ThinkingChanged { level: thinking })?;
        }
        if let Some(message) = opening.filter(|_| self.session.is_empty()) {
            self.append(EntryKind::Message { message: message.clone() })?;
        }
        Ok(())
    }

    /// Whether the first message is there. A `!` line may come before it; the summary of a compacted conversation brings
    /// it along.
    pub(super) fn is_opened(&self) -> bool {
        let opens = |message: &Message| {
            prompt::opens(message)
                || matches!(message.kind, Kind::CompactSummary | Kind::Attachment(Attachment::Trimmed { .. }))
        };
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
