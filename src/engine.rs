//! Puts the system together, and runs it: ops in, events out. Front ends hold a `Handle` and nothing else.

mod bug_report;
mod builtins;
mod changes;
mod commands;
mod compacting;
pub mod doctor;
mod hooked;
mod lists;
mod models;
mod open;
mod plan;
mod shell;
mod skills;
mod thinking;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::agent::Agent;
use crate::agent::extraction::Presence;
use crate::agent::mailbox::{Mailbox, Prompt};
use crate::commands::Catalog;
use crate::config::Loaded;
use crate::config::paths::{Env, Paths};
use crate::hooks::EndReason;
use crate::permission::{Mode, Sandbox};
use crate::protocol::{Delivery, Event, ListKind, Listed, ModeChange, ModelInfo, Op, SessionInfo, TurnEnd};
use crate::session::{History, Session, Transcripts};
use crate::stdx::clock::Clocks;
use crate::stdx::{panics, process};
use models::Models;
pub use open::{places, root};
use skills::Called;
pub use skills::snapshot as skills;

/// Ops that wait while the engine is busy.
const OPS: usize = 64;
/// Events that wait while the front end is busy.
const EVENTS: usize = 256;

/// Which session to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    New,
    /// The newest of this folder.
    Continue,
    /// By id, the start of an id, or words of its title.
    Resume(String),
}

/// All that the engine is made of.
pub struct Setup {
    /// Defaults, user and flags; the project's own settings are added once the engine runs.
    pub loaded: Loaded,
    pub paths: Paths,
    pub env: Env,
    /// The folder to work in: absolute.
    pub project: PathBuf,
    pub begin: Begin,
    /// Copy the session that is resumed instead of going on with it.
    pub fork: bool,
    /// The user vouches for the folder.
    pub trust: bool,
    /// Use the offline model, whatever else there is.
    pub offline: bool,
    /// Play this script instead of asking a model.
    pub script: Option<PathBuf>,
    /// Permission mode by flag.
    pub mode: Option<Mode>,
    /// How hard to think, by flag.
    pub thinking: Option<crate::thinking::Override>,
    pub system: Option<String>,
    pub append_system: Option<String>,
    /// What the final answer has to be: offered as a tool whose input is checked against this schema.
    pub output_schema: Option<serde_json::Value>,
    pub sandbox: Sandbox,
    /// What was piped in: it goes with the first prompt, and is never read as a command or as words to us.
    pub piped: Option<String>,
    /// Whether a person works in the session.
    pub presence: Presence,
    pub clocks: Clocks,
}

/// A running engine. Dropping `ops` ends it like `Op::Shutdown`.
pub struct Handle {
    pub ops: mpsc::Sender<Op>,
    pub events: mpsc::Receiver<Event>,
    /// Ends after `Event::Closed`: all that was pending is written. Panics if the engine did.
    pub task: JoinHandle<()>,
}

/// Starts an engine on the current runtime. Returns at once; what goes wrong comes as an event.
pub fn start(setup: Setup) -> Handle {
    let (sender, ops) = mpsc::channel(OPS);
    let (outbox, events) = mpsc::channel(EVENTS);
    process::outlive_size_limits();
    let mailbox = Arc::new(Mailbox::new(outbox));
    let task = tokio::spawn(async move {
        // What it worked on is gone after a panic; nothing of it is used again.
        let ran = AssertUnwindSafe(Box::pin(work(setup, ops, mailbox.clone()))).catch_unwind().await;
        if let Err(panic) = &ran {
            let text = format!(
                "cocode crashed: {}; the session is saved: `cocode --continue` resumes it",
                panicked(panic.as_ref())
            );
            mailbox.emit(Event::Error { text, restore: mailbox.unanswered() }).await;
        }
        mailbox.emit(Event::Closed).await;
        if let Err(panic) = ran {
            // The caller that waits for the task learns how it ended.
            resume_unwind(panic);
        }
    });
    Handle { ops: sender, events, task }
}

/// What a panic said, with its place where the hook has kept it.
fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let kept = panics::take();
    if !kept.is_empty() {
        return kept.join("; ");
    }
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no reason was given").to_owned()
}

async fn work(setup: Setup, ops: mpsc::Receiver<Op>, mailbox: Arc<Mailbox>) {
    let history = History::new(&setup.paths.home);
    let catalog = skills::catalog(&setup);
    let mut inbox = Inbox {
        ops,
        opening: true,
        held: VecDeque::new(),
        closed: false,
        mailbox: mailbox.clone(),
        project: setup.project.clone(),
        history,
        catalog,
        transcripts: None,
    };
    match Box::pin(open::open(setup, &mut inbox)).await {
        Ok(mut engine) => {
            inbox.opening = false;
            Box::pin(engine.run(&mut inbox)).await;
        }
        Err(text) => {
            mailbox.emit(Event::Error { text, restore: None }).await;
        }
    }
}

/// The state between two turns.
struct Engine {
    agent: Agent,
    models: Models,
    /// With the project's settings.
    loaded: Loaded,
    setup: Setup,
    mailbox: Arc<Mailbox>,
    /// A local server is still looked for.
    probing: bool,
    catalog: Arc<Catalog>,
    /// The user was asked whether to trust the folder.
    trust_asked: bool,
}

/// Receives ops, also while something runs.
struct Inbox {
    ops: mpsc::Receiver<Op>,
    /// The session and its model are still being settled: what acts on them waits in `held`.
    opening: bool,
    held: VecDeque<Op>,
    /// The front end is gone, or asked to end.
    closed: bool,
    mailbox: Arc<Mailbox>,
    project: PathBuf,
    history: History,
    catalog: Arc<Catalog>,
    /// The logs of sub-agents, while a turn has the session.
    transcripts: Option<Transcripts>,
}

impl Inbox {
    async fn next(&mut self) -> Option<Op> {
        if let Some(op) = self.held.pop_front() {
            return Some(op);
        }
        if self.closed {
            return None;
        }
        match self.ops.recv().await {
            None | Some(Op::Shutdown) => {
                self.closed = true;
                None
            }
            op => op,
        }
    }

    /// Runs something while ops keep being served as a busy agent serves them.
    async fn attend<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            if self.closed {
                // Nobody is left to answer or to wait for.
                self.mailbox.interrupt();
                return work.await;
            }
            tokio::select! {
                biased;
                done = &mut work => return done,
                op = self.ops.recv() => match op {
                    None | Some(Op::Shutdown) => {
                        self.closed = true;
                        self.mailbox.interrupt();
                    }
                    Some(op) => self.busy(op).await,
                },
            }
        }
    }

    /// What can be listed without the agent.
    fn list(&self, what: ListKind) -> Option<Listed> {
        (what == ListKind::History).then(|| Listed::History(self.history.load(&self.project, lists::HISTORY)))
    }

    /// Keeps a prompt for the history of the project. Losing one is not a reason to stop.
    fn remember(&mut self, text: &str) {
        if let Err(error) = self.history.append(&self.project, text) {
            tracing::warn!(%error, "prompt history");
        }
    }

    /// Serves a command beside what runs, or says that it has to wait.
    async fn command(&self, name: String, args: String) {
        let mailbox = &self.mailbox;
        let problem = match skills::called(&self.catalog, &name, &args) {
            Ok(Called::Skill(prompt)) => {
                mailbox.enqueue(prompt, Delivery::AfterTurn);
                return mailbox.emit(mailbox.queue()).await;
            }
            Ok(Called::Builtin(builtin)) if builtin.runs_while_busy(&args) => {
                mailbox.emit(Event::Notice { text: self.catalog.current().registry.help() }).await;
                None
            }
            Ok(Called::Builtin(_)) => {
                Some(format!("`/{name}` is not available during a turn; Esc interrupts the turn."))
            }
            Err(unknown) => Some(unknown),
        };
        if let Some(text) = problem {
            let restore = Some(format!("/{name} {args}").trim_end().to_owned());
            mailbox.emit(Event::Error { text, restore }).await;
        }
        mailbox.emit(Event::Done { op: Op::Command { name, args } }).await;
    }

    async fn busy(&mut self, op: Op) {
        let mailbox = self.mailbox.clone();
        match op {
            Op::Shell { .. }
            | Op::Command { .. }
            | Op::SetMode { .. }
            | Op::SetThinking { .. }
            | Op::Rewind { .. }
            | Op::Resume { .. }
                if self.opening =>
            {
                self.held.push_back(op);
            }
            Op::List { what } if self.opening && what != ListKind::History => self.held.push_back(op),
            Op::Interrupt => {
                mailbox.interrupt();
            }
            Op::Answer { id, answer } => mailbox.answer(id, answer),
            Op::Prompt { text, attachments, delivery, thinking } => {
                mailbox.enqueue(Prompt { attachments, thinking, ..Prompt::new(text) }, delivery);
                mailbox.emit(mailbox.queue()).await;
            }
            Op::Unqueue { id } => {
                mailbox.unqueue(id);
                mailbox.emit(mailbox.queue()).await;
            }
            Op::SetMode { mode } => mailbox.set_mode(mode),
            Op::SetThinking { level } => mailbox.set_thinking(level),
            Op::Shell { command } => {
                let text =
                    format!("! {command}\nShell commands are not available during a turn; Esc interrupts the turn.");
                mailbox.emit(Event::Error { text, restore: Some(format!("!{command}")) }).await;
                mailbox.emit(Event::Done { op: Op::Shell { command } }).await;
            }
            Op::Commands => skills::publish(&self.catalog, &mailbox).await,
            Op::Command { name, args } => self.command(name, args).await,
            Op::List { what } => {
                let listed = self.list(what);
                mailbox.emit(Event::Listed(listed.unwrap_or_else(|| what.empty()))).await;
            }
            Op::Rewind { .. } | Op::Resume { .. } => {
                mailbox.emit(Event::Notice { text: "Not while a turn is running; Esc interrupts it.".into() }).await;
                mailbox.emit(Event::Done { op }).await;
            }
            Op::Remember { text } => self.remember(&text),
            Op::Agent { id } => match &self.transcripts {
                Some(transcripts) => lists::tell_agent(transcripts, id, &mailbox).await,
                None => self.held.push_back(Op::Agent { id }),
            },
            Op::Earlier { part } => match &self.transcripts {
                Some(transcripts) => lists::tell_earlier(transcripts, part, &mailbox).await,
                None => self.held.push_back(Op::Earlier { part }),
            },
            Op::Shutdown => {}
        }
    }
}

impl Engine {
    async fn run(&mut self, inbox: &mut Inbox) {
        let mut worked = false;
        loop {
            // What was queued while the engine was busy comes first; when it is to end, nothing more is begun.
            let waited = if inbox.closed { None } else { self.mailbox.take_next() };
            let op = match waited {
                Some(op) => {
                    self.mailbox.emit(self.mailbox.queue()).await;
                    op
                }
                None => match self.next_op(inbox, worked).await {
                    Some(op) => op,
                    None => break,
                },
            };
            worked = matches!(op, Op::Prompt { .. });
            Box::pin(self.serve(op, inbox)).await;
        }
        self.session_ended(EndReason::Exit).await;
        if let Err(error) = self.agent.end_notes() {
            tracing::warn!(%error, "the cost of the session notes");
        }
        if let Err(error) = self.agent.session.sync() {
            tracing::error!(%error, "cannot write the end of the session");
        }
    }

    async fn serve(&mut self, op: Op, inbox: &mut Inbox) {
        let done = op.is_work().then(|| op.clone());
        match op {
            Op::Prompt { text, attachments, thinking, .. } => {
                self.turn(Prompt { attachments, thinking, ..Prompt::new(text) }, inbox).await;
            }
            Op::Shell { command } => self.shell(command, inbox).await,
            Op::Command { name, args } => self.command(&name, &args, inbox).await,
            Op::Answer { id, answer } => self.mailbox.answer(id, answer),
            Op::SetMode { mode } => {
                if let Err(error) = self.agent.set_mode(mode, &self.mailbox).await {
                    self.fail(error).await;
                }
            }
            Op::SetThinking { level } => self.set_thinking(level).await,
            Op::Rewind { to, what } => self.rewind(to, what).await,
            Op::Commands => skills::publish(&self.catalog, &self.mailbox).await,
            Op::Resume { session } => self.resume(&session, inbox).await,
            Op::Remember { text } => inbox.remember(&text),
            Op::Agent { id } => lists::tell_agent(&self.agent.session.transcripts(), id, &self.mailbox).await,
            Op::Earlier { part } => {
                lists::tell_earlier(&self.agent.session.transcripts(), part, &self.mailbox).await;
            }
            Op::List { what: ListKind::Changes } => {
                let changes = self.changes().await;
                self.mailbox.emit(Event::Listed(Listed::Changes(changes))).await;
            }
            Op::List { what } => {
                let listed = inbox.list(what).unwrap_or_else(|| self.list(what));
                self.mailbox.emit(Event::Listed(listed)).await;
            }
            // Nothing runs, nothing is queued: there is nothing to stop or withdraw.
            Op::Interrupt | Op::Unqueue { .. } | Op::Shutdown => {}
        }
        if let Some(op) = done {
            self.mailbox.emit(Event::Done { op }).await;
        }
    }

    async fn turn(&mut self, prompt: Prompt, inbox: &mut Inbox) {
        let prompt = match self.setup.piped.take() {
            Some(piped) => prompt.with_data(&piped),
            None => prompt,
        };
        if self.agent.session.read_only() {
            let text =
                "This session is open read-only because another process is writing it. `/clear` starts a new one."
                    .into();
            self.mailbox.emit(Event::Error { text, restore: Some(prompt.text) }).await;
            return;
        }
        if !self.can_run(&prompt, inbox).await {
            return;
        }
        let mailbox = self.mailbox.clone();
        let cancel = mailbox.begin_with(&prompt.text);
        inbox.transcripts = Some(self.agent.session.transcripts());
        let end = inbox.attend(self.agent.turn(prompt, &mailbox, &cancel)).await;
        inbox.transcripts = None;
        mailbox.end();
        // What was asked for in the last moment of the turn must not wait until it undoes a later wish.
        if let Err(error) = self.agent.take_mode(&mailbox).await {
            self.fail(error).await;
        }
        if end == TurnEnd::Failed {
            // The next prompts were written for a conversation that did not happen: they come back, too.
            let waiting = mailbox.take_texts();
            if !waiting.is_empty() {
                mailbox.emit(mailbox.queue()).await;
                let text = "Your queued messages were not sent because the turn failed.".into();
                mailbox.emit(Event::Error { text, restore: Some(waiting.join("\n\n")) }).await;
            }
        }
    }

    /// Tells the front ends what the session is now.
    async fn announce(&mut self) {
        let info = self.session_info();
        let (mode, todos) = (info.mode, self.agent.session.context().todos().to_vec());
        self.mailbox.emit(Event::Session(info)).await;
        self.mailbox.emit(Event::Mode(ModeChange::Changed { mode })).await;
        self.agent.tell_thinking(&self.mailbox).await;
        let mailbox = self.mailbox.clone();
        if let Err(error) = self.agent.tell_plan_mode(&mailbox).await {
            self.fail(error).await;
        }
        self.mailbox.emit(Event::Usage(self.agent.usage_info())).await;
        if !todos.is_empty() {
            self.mailbox.emit(Event::Todos { items: todos }).await;
        }
        for notice in self.agent.session.notices() {
            self.mailbox.emit(Event::Notice { text: notice.clone() }).await;
        }
    }

    fn model_info(&self) -> ModelInfo {
        ModelInfo { probing: self.probing, ..self.agent.model.info() }
    }

    fn session_info(&self) -> SessionInfo {
        let session: &Session = &self.agent.session;
        let (history, older) = session.history(open::TURNS_SHOWN).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the history");
            Default::default()
        });
        SessionInfo {
            id: session.id().to_owned(),
            cwd: self.setup.project.clone(),
            title: session.title().map(str::to_owned),
            mode: self.agent.mode(),
            model: self.model_info(),
            history,
            older,
            log: session.log().to_path_buf(),
            read_only: session.read_only(),
        }
    }
}

/// A prompt as a front end sends it to an idle agent.
pub fn prompt(text: impl Into<String>) -> Op {
    Op::Prompt { text: text.into(), attachments: Vec::new(), delivery: Delivery::AfterTurn, thinking: None }
}
