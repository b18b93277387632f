//! Puts the system together, and runs it: ops in, events out. Front ends hold a `Handle` and nothing else.

mod bug_report;
mod changes;
pub mod check;
mod choosing;
mod commands;
pub mod doctor;
mod forecast;
mod grants;
mod host;
mod inbox;
mod lists;
pub mod mcp;
mod models;
mod notes;
mod open;
mod places;
mod plugins;
mod reports;
mod servers;
mod settings;
mod setup;
mod shell;
mod skills;
mod styles;
mod switch;
mod waiting;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::Presence;
use crate::agent::mailbox::{Mailbox, Prompt};
use crate::agent::prefix;
use crate::agent::{Agent, Snapshot, budget, waking};
use crate::commands::Catalog;
use crate::config::Loaded;
use crate::hooks::{EndReason, Event as Hook, StartSource};
use crate::protocol::{BETWEEN, Event, Interface, Item, ModeChange, ModelInfo, Op, SessionInfo, TurnEnd};
use crate::session::{History, Session, recall};
use crate::stdx::{panics, process};
pub use host::Host;
use inbox::Inbox;
use models::Models;
pub use models::OFFLINE;
pub use places::{places, root};
pub use plugins::faults as plugin_faults;
use reports::{Look, Reading};
pub use setup::{Begin, Setup};
use shell::{Ran, Told};
pub use skills::snapshot as skills;
use waiting::Next;

/// Ops that wait while the engine is busy.
const OPS: usize = 64;
/// Events that wait while the front end is busy.
const EVENTS: usize = 256;

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
    let mailbox = Arc::new(Mailbox::new(outbox).at_home(setup.paths.user_home.clone()));
    let task = tokio::spawn(async move {
        // What it worked on is gone after a panic; nothing of it is used again.
        let ran = AssertUnwindSafe(Box::pin(work(setup, ops, mailbox.clone()))).catch_unwind().await;
        if let Err(panic) = &ran {
            let text = format!(
                "cocode crashed: {}; the session is saved: `cocode --continue` resumes it",
                panics::said(panic.as_ref())
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

async fn work(mut setup: Setup, ops: mpsc::Receiver<Op>, mailbox: Arc<Mailbox>) {
    let _calls = setup.host.as_mut().and_then(|host| host.follow(&mailbox));
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
        ran: Vec::new(),
    };
    if setup.presence == Presence::Attended {
        inbox.tell_history().await;
    }
    match Box::pin(open::open(setup, &mut inbox)).await {
        Ok(mut engine) => {
            inbox.opening = false;
            crate::boxed(|| engine.run(&mut inbox)).await;
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
    known: Known,
    /// How long nobody types until hooks hear of it.
    idle: Duration,
    /// What front ends look like as they know it.
    interface: Interface,
    /// Keeps the prompts of servers among the commands.
    _offering: Option<AbortOnDropHandle<()>>,
}

/// What was done once already, and is not done again.
#[derive(Default)]
struct Known {
    /// Whether to trust the folder was asked.
    trust: bool,
    /// What the next request will cost.
    forecast: Option<String>,
    /// The index of all sessions was brought up to date.
    indexed: bool,
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
                None => match waiting::next(self, inbox, worked).await {
                    Next::Op(op) => op,
                    Next::Ended => {
                        worked |= waiting::wake(self, inbox).await;
                        continue;
                    }
                    Next::Closed => break,
                },
            };
            worked = matches!(op, Op::Prompt { .. });
            crate::boxed(|| self.serve(op, inbox)).await;
        }
        changes::tell_receipt(self).await;
        self.session_ended(EndReason::Exit, inbox).await;
        if let Err(error) = self.agent.compaction.notes.end(&mut self.agent.conversation.session) {
            tracing::warn!(%error, "the cost of the session notes");
        }
        budget::record(&mut self.agent, None);
        if let Err(error) = self.agent.conversation.session.sync() {
            tracing::error!(%error, "cannot write the end of the session");
        }
    }

    async fn serve(&mut self, op: Op, inbox: &mut Inbox) {
        let done = op.is_work().then(|| op.clone());
        match op {
            Op::Prompt { text, attachments, thinking, data, .. } => {
                self.turn(Prompt { attachments, thinking, data, ..Prompt::new(text) }, inbox).await;
            }
            Op::Shell { command } => crate::boxed(|| self.shell(command, inbox)).await,
            Op::Command { name, args } => crate::boxed(|| self.command(&name, &args, inbox)).await,
            Op::Answer { id, answer } => self.mailbox.answer(id, answer),
            Op::Return { id, answer } => self.mailbox.returned(id, answer),
            Op::SetMode { mode } => {
                if let Err(error) = self.agent.set_mode(mode, &self.mailbox).await {
                    self.fail(error).await;
                }
            }
            Op::SetThinking { level } => self.set_thinking(level).await,
            Op::Rewind { to, what } => self.rewind(to, what).await,
            Op::Review { turn, verdicts } => self.review(turn, verdicts).await,
            Op::Commands => skills::publish(&self.catalog, &self.mailbox).await,
            Op::Remember(typed) => inbox.remember(typed),
            Op::Agent { id } => {
                lists::tell_agent(&self.agent.conversation.session.transcripts(), id, &self.mailbox).await
            }
            Op::Earlier { part } => {
                lists::tell_earlier(&self.agent.conversation.session.transcripts(), part, &self.mailbox).await;
            }
            Op::List { what } => {
                if let Some(listed) = self.look().list(what).await {
                    self.mailbox.emit(Event::Listed(listed)).await;
                    let mailbox = self.mailbox.clone();
                    self.look().listed(what, &mailbox);
                }
            }
            Op::Find { words } => lists::find(&self.setup, words, &self.mailbox),
            Op::StoreKey { provider, key } => {
                let mailbox = self.mailbox.clone();
                self.look().store_key(&provider, &key, &mailbox).await;
                if provider == self.agent.model.provider_name {
                    // It asks with the new key from now on.
                    self.take_settings();
                }
            }
            Op::Set { key, value, place } => self.set(&key, value.as_deref(), place).await,
            Op::Server { change } => {
                let mailbox = self.mailbox.clone();
                self.look().servers(&change, &mailbox).await;
            }
            Op::FindServer => self.models.find_server(&self.agent.model, &self.mailbox),
            Op::Interrupt => waking::interrupted(&mut self.agent, &self.mailbox).await,
            // Nothing runs, nothing is queued: there is nothing to move or to withdraw.
            Op::Background | Op::Unqueue { .. } | Op::Shutdown => {}
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
        if self.agent.conversation.session.read_only() {
            let text =
                "This session is open read-only because another process is writing it. `/clear` starts a new one."
                    .into();
            self.mailbox.emit(Event::Error { text, restore: Some(prompt.text) }).await;
            return;
        }
        if !self.can_run(&prompt, inbox).await {
            return;
        }
        if !forecast::confirmed(self, inbox).await {
            let text = "Not sent.".into();
            self.mailbox.emit(Event::Error { text, restore: Some(prompt.text) }).await;
            return;
        }
        crate::boxed(|| self.run_turn(Some(prompt), inbox)).await;
    }

    /// Runs a turn, of a prompt or of what the model is owed.
    async fn run_turn(&mut self, prompt: Option<Prompt>, inbox: &mut Inbox) {
        let mailbox = self.mailbox.clone();
        let cancel = match &prompt {
            Some(prompt) => mailbox.begin_with(&prompt.text),
            None => mailbox.begin(),
        };
        inbox.transcripts = Some(self.agent.conversation.session.transcripts());
        let look = Look::beside(&self.setup, &self.loaded, &self.models, &self.catalog, (&mut self.agent, &mailbox));
        let turn = async {
            match prompt {
                Some(prompt) => crate::boxed(|| self.agent.turn(prompt, &mailbox, &cancel)).await,
                None => crate::boxed(|| self.agent.wake(&mailbox, &cancel)).await,
            }
        };
        let end = inbox.attend_with(Some(&look), turn).await;
        drop(look);
        inbox.transcripts = None;
        mailbox.end();
        for ran in std::mem::take(&mut inbox.ran) {
            self.ran(ran, Told::Before).await;
        }
        // What was asked for in the last moment of the turn must not wait until it undoes a later wish.
        if let Err(error) = self.agent.take_mode(&mailbox).await {
            self.fail(error).await;
        }
        if self.setup.presence == Presence::Attended && !std::mem::replace(&mut self.known.indexed, true) {
            // So that the first search of all sessions is as fast as later ones.
            recall::remember_beside(self.setup.paths.home.clone(), recall::logs);
        }
        if end == TurnEnd::Failed {
            // The next prompts were written for a conversation that did not happen: they come back, too.
            let waiting = mailbox.take_texts();
            if !waiting.is_empty() {
                mailbox.emit(mailbox.queue()).await;
                let text = "Your queued messages were not sent because the turn failed.".into();
                mailbox.emit(Event::Error { text, restore: Some(waiting.join(BETWEEN)) }).await;
            }
        }
    }

    /// Tells the front ends what the session is now.
    async fn announce(&mut self) {
        let info = self.session_info();
        let (mode, todos) = (info.mode, self.agent.conversation.context().todos().to_vec());
        self.mailbox.emit(Event::Session(info)).await;
        self.mailbox.emit(Event::Mode(ModeChange::Changed { mode })).await;
        self.agent.tell_thinking(&self.mailbox).await;
        let mailbox = self.mailbox.clone();
        if let Err(error) = self.agent.conversation.tell_plan_mode(&mailbox).await {
            self.fail(error).await;
        }
        self.mailbox.emit(Event::Usage(self.agent.usage_info())).await;
        if !todos.is_empty() {
            self.mailbox.emit(Event::Todos { items: todos }).await;
        }
        forecast::tell(self, prefix::Next::AsIs).await;
        for notice in self.agent.conversation.session.notices() {
            self.mailbox.emit(Event::Notice { text: notice.clone() }).await;
        }
    }

    /// Whether the skill that a prompt asks for can run now. Asks for trust, where the skill wants what needs it.
    async fn can_run(&mut self, prompt: &Prompt, inbox: &mut Inbox) -> bool {
        let Some(skill) = &prompt.skill else { return true };
        if let Some(text) = self.agent.runs.refuses(&skill.name, &self.setup.project) {
            let restore = Some(prompt.text.clone());
            self.mailbox.emit(Event::Error { text, restore }).await;
            return false;
        }
        // One question a session: a no that was said to all of it holds.
        if !self.agent.runs.wants_trust(&skill.name, &self.agent.policy).is_empty() && !self.known.trust {
            self.ask_trust(inbox).await;
        }
        true
    }

    /// Runs the hooks of a session that begins; prompts wait for them, Esc ends them.
    pub(super) async fn session_started(&mut self, source: StartSource, inbox: &mut Inbox) {
        if !self.agent.hooking.hooks.listens(Hook::SessionStart) {
            return;
        }
        let mailbox = self.mailbox.clone();
        let cancel = mailbox.begin();
        let told = inbox.attend(self.agent.session_started(source, &mailbox, &cancel)).await;
        mailbox.end();
        if let Err(error) = told {
            self.fail(error).await;
        }
    }

    /// Runs the hooks of a session that ends.
    pub(super) async fn session_ended(&mut self, reason: EndReason, inbox: &mut Inbox) {
        let mailbox = self.mailbox.clone();
        let told = inbox.attend(self.agent.session_ended(reason, &mailbox)).await;
        if let Err(error) = told {
            self.fail(error).await;
        }
    }

    /// What commands look at between two turns.
    fn look(&mut self) -> Look<'_> {
        let agent = Snapshot::of(&mut self.agent);
        Look {
            setup: &self.setup,
            loaded: &self.loaded,
            models: &self.models,
            catalog: &self.catalog,
            agent,
            session: Reading::Own(&self.agent.conversation.session),
            beside: None,
        }
    }

    /// Runs a line of the user's own.
    async fn shell(&mut self, command: String, inbox: &mut Inbox) {
        if self.agent.conversation.session.read_only() {
            let text = "This session is open read-only; the command was not run.".into();
            self.mailbox.emit(Event::Error { text, restore: Some(format!("!{command}")) }).await;
            return;
        }
        let mailbox = self.mailbox.clone();
        mailbox.emit(Event::Item(Item::ShellStarted { command: command.clone() })).await;
        let cancel = mailbox.begin();
        let look = Look::beside(&self.setup, &self.loaded, &self.models, &self.catalog, (&mut self.agent, &mailbox));
        let output = inbox.attend_with(Some(&look), self.agent.user_command(&command, &cancel, &mailbox)).await;
        mailbox.end();
        match output {
            Ok(result) => self.ran(Ran::of(command, result), Told::Now).await,
            Err(error) => {
                let restore = Some(format!("!{command}"));
                mailbox.emit(Event::Item(Item::ShellDone { command, output: String::new(), code: None })).await;
                mailbox.emit(Event::Error { text: error.to_string(), restore }).await;
            }
        }
    }

    /// Logs a line that ran, once for the model and once for the screen, and then shows it where that was not done before.
    async fn ran(&mut self, ran: Ran, screen: Told) {
        let mailbox = self.mailbox.clone();
        let logged = match self.agent.conversation.push(ran.told(), &mailbox).await {
            Ok(()) => self.agent.conversation.append(ran.entry()).map(drop),
            failed => failed,
        };
        if let Err(error) = logged {
            mailbox.emit(Event::Error { text: error.to_string(), restore: None }).await;
        }
        if screen == Told::Now {
            mailbox.emit(ran.shown()).await;
        }
    }

    fn model_info(&self) -> ModelInfo {
        ModelInfo { probing: self.probing, ..self.agent.model.info() }
    }

    fn session_info(&self) -> SessionInfo {
        let session: &Session = &self.agent.conversation.session;
        let (history, older) = session.history(open::TURNS_SHOWN).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the history");
            Default::default()
        });
        SessionInfo {
            id: session.id().to_owned(),
            cwd: self.setup.project.clone(),
            title: session.title().map(str::to_owned),
            mode: self.agent.conversation.mode(),
            model: self.model_info(),
            tools: self.agent.tools(),
            history,
            older,
            log: session.log().to_path_buf(),
            read_only: session.read_only(),
            servers: mcp::rows(self.agent.policy.servers.as_ref(), &self.setup.paths),
            sandbox: self.setup.confinement(),
            plugins: self.loaded.plugins.summary(),
            agents: self.agent.family.definitions.active().map(|agent| agent.name.clone()).collect(),
            output_style: self.loaded.config.output_style.clone(),
        }
    }
}
