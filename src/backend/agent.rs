//! The agent: one session, one model, one toolbox, and the turn that ties them together.

pub mod budget;
mod compaction;
mod conversation;
mod decided;
mod dispatch;
pub mod events;
mod failure;
mod frozen;
mod hook_env;
pub mod hooking;
mod host;
mod intake;
pub mod mailbox;
mod media;
pub mod memory;
mod model;
mod parent_child;
pub mod plan;
mod policy;
pub mod prefix;
pub mod prompt;
mod reminder;
mod sample;
mod side_request;
pub mod skill_list;
pub mod skill_runs;
mod snapshot;
mod spending;
mod subagent;
mod tasks;
pub mod thinking;
mod turn;

pub use compaction::Undo;
pub use compaction::extraction::Presence;
pub use conversation::Conversation;
pub use dispatch::{Beside, Grounds};
pub use failure::Failure;
pub use model::Model;
pub use policy::Policy;
pub use snapshot::Snapshot;
pub use tasks::{Board, Figures, News, board, next as next_news, note as note_news, waking};

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use self::mailbox::Mailbox;
use crate::agents::Definitions;
use crate::compact;
use crate::hooks::{self, EndReason, Event as Hook, Hooks, Occasion, StartSource};
use crate::message::Usage;
use crate::permission::{Mode, Source};
use crate::protocol::report::Freed;
use crate::protocol::{self, Event, GrantScope, ModeChange, RewindWhat, ThinkingInfo, Trigger, UsageInfo};
use crate::provider::ToolSpec;
use crate::session::entry::{EntryKind, Seq};
use crate::session::{self, Rewound, Session};
use crate::thinking::Level;
use crate::tools::{self, Toolbox};

/// Limits and texts; a slice of the configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    pub tools: Arc<tools::Settings>,
    /// Tries of one model call, the first included.
    pub max_tries: u32,
    /// Model calls in one turn.
    pub max_turns: Option<u32>,
    /// Replaces the system prompt.
    pub system: Option<String>,
    /// Stands after the system prompt.
    pub append_system: Option<String>,
    /// Names of memory files, in the order in which they count.
    pub memory_names: Vec<String>,
    /// Patterns of memory files that are not read.
    pub memory_excludes: Vec<String>,
    /// Whether the session may go into Bypass: only a flag at its start allows that.
    pub bypass: Bypass,
    /// How hard the model thinks.
    pub thinking: crate::thinking::Settings,
    pub plan: plan::Settings,
    pub reminders: Reminders,
    pub presence: Presence,
    pub compact: compact::Settings,
    pub features: compact::Features,
    /// How many sub-agents run at a time.
    pub seats: usize,
    pub budget: budget::Limits,
}

/// Whether the model is reminded between requests: of changed files, open todos, plan mode and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reminders {
    On,
    Off,
}

/// Whether Bypass can be switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bypass {
    Allowed,
    Never,
}

/// Keeps rules that outlive the session. Implemented by the engine over the configuration.
pub trait Grants: Send + Sync {
    /// Saves an allow rule.
    ///
    /// # Errors
    /// A sentence that names the file and the fix.
    fn save(&self, scope: GrantScope, rule: &str) -> Result<(), String>;

    /// Saves that commands run without a question as far as the sandbox holds them.
    ///
    /// # Errors
    /// A sentence that names the file and the fix.
    fn run_unasked(&self) -> Result<(), String>;
}

/// All that a turn needs, owned by value.
pub struct Agent {
    pub conversation: Conversation,
    pub model: Model,
    pub policy: Policy,
    pub settings: Settings,
    /// All tools that there are.
    tools: Arc<Toolbox>,
    /// Those of this session; `tool_specs` is what requests say of them.
    toolbox: Arc<Toolbox>,
    tool_specs: Arc<[ToolSpec]>,
    /// A turn was begun with these tools: whatever becomes of the window, they stay.
    settled: bool,
    system: Arc<str>,
    frozen: frozen::Head,
    pub hooking: hooking::Hooking,
    repeats: dispatch::Repeats,
    thinking: thinking::Thinking,
    /// The plan that was approved with a fresh context, until that is made.
    fresh: Option<String>,
    pub runs: skill_runs::Runs,
    pub compaction: compaction::Compaction,
    grants: Arc<dyn Grants>,
    spending: spending::Spending,
    prefix: prefix::Prefix,
    budget: budget::Budget,
    pub family: parent_child::Family,
    tasks: tasks::Tasks,
    clock: fn() -> Instant,
}

/// What an agent is made of besides its session.
pub struct Parts {
    pub model: Model,
    pub policy: Policy,
    pub settings: Settings,
    pub toolbox: Arc<Toolbox>,
    pub grants: Arc<dyn Grants>,
    pub hooks: Hooks,
    pub skills: skill_runs::Settings,
    pub git: prompt::GitStatus,
    /// Today, as the model is told.
    pub date: String,
    pub clock: fn() -> Instant,
    /// Which sub-agents there are.
    pub definitions: Arc<Definitions>,
}

impl Agent {
    pub fn new(session: Session, parts: Parts) -> Agent {
        let Parts { model, mut policy, settings, toolbox, grants, hooks, skills, git, date, clock, .. } = parts;
        let family = parent_child::Family::new(parts.definitions, settings.seats, &session);
        let system = prompt::system(&settings);
        let conversation = Conversation::open(session, &settings, &mut policy, &hooks, git, date);
        let compaction = compaction::Compaction::new(&settings, &model);
        let budget = budget::Budget::new(&settings.budget, &conversation.session);
        let mut agent = Agent {
            conversation,
            policy,
            settings,
            tool_specs: toolbox.specs(),
            tools: toolbox.clone(),
            toolbox,
            settled: false,
            system: system.clone(),
            frozen: frozen::Head::new(system),
            hooking: hooking::Hooking::new(hooks),
            repeats: dispatch::Repeats::default(),
            thinking: thinking::Thinking::default(),
            fresh: None,
            runs: skill_runs::Runs::new(skills),
            compaction,
            grants,
            spending: spending::Spending::new(&model),
            prefix: prefix::Prefix::default(),
            budget,
            family,
            tasks: tasks::Tasks::default(),
            model,
            clock,
        };
        agent.fit_tools();
        agent.thaw();
        agent
    }

    /// Chooses the tools by the window, until a turn has begun with them.
    fn fit_tools(&mut self) {
        if !self.settled {
            self.toolbox = Arc::new(self.tools.fitting(self.compaction.driver.window().tokens));
            self.tool_specs = self.toolbox.specs();
        }
    }

    /// Begins requests as the session did until now, whichever version wrote it.
    fn thaw(&mut self) {
        self.frozen.own = prompt::system(&self.settings);
        self.system = self.frozen.own.clone();
        let given = frozen::given(&self.settings, &self.tools, &self.toolbox, &self.family.definitions);
        if let Some(frozen) = self.frozen.find(&self.conversation.session, &given, &self.toolbox) {
            (self.system, self.tool_specs, self.settled) = (frozen.system.clone(), frozen.tools.clone(), true);
        }
    }

    /// Puts another session in the place of this one. What was known of files and folders stays with the old one.
    pub fn take_session(&mut self, session: Session, git: prompt::GitStatus) {
        self.compaction.notes.leave(&mut self.conversation.session);
        self.policy.rules.clear(Source::Session);
        let date = self.conversation.date.clone();
        let (settings, hooks) = (&self.settings, &self.hooking.hooks);
        self.conversation = Conversation::open(session, settings, &mut self.policy, hooks, git, date);
        self.compaction.driver.reset();
        self.settled = false;
        self.fit_tools();
        self.thaw();
        self.runs.forget();
        self.family.set_mode(self.conversation.mode());
    }

    /// Goes back to before the prompt at `to`.
    ///
    /// # Errors
    /// As `Session::rewind`.
    pub async fn rewind(&mut self, to: Seq, what: RewindWhat, mailbox: &Mailbox) -> Result<Rewound, session::Error> {
        if what != RewindWhat::Code {
            tasks::end_since(self, to, mailbox).await?;
        }
        self.conversation.forget_files();
        self.compaction.notes.forget(&mut self.conversation.session);
        self.conversation.session.rewind(to, what)
    }

    /// Changes the mode, and says so. Bypass only where a flag allows it.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn set_mode(&mut self, mode: Mode, mailbox: &Mailbox) -> Result<(), session::Error> {
        if mode == self.conversation.mode() {
            return Ok(());
        }
        if mode == Mode::Bypass && self.settings.bypass == Bypass::Never {
            let text = "Bypass can only be turned on at the start, with `--permission-mode bypassPermissions`.".into();
            mailbox.emit(Event::Error { text, restore: None }).await;
            // A front end that ran ahead of the answer learns what holds.
            mailbox.emit(Event::Mode(ModeChange::Changed { mode: self.conversation.mode() })).await;
            return Ok(());
        }
        self.enter_mode(mode, plan::Leave::Chosen, mailbox).await
    }

    async fn enter_mode(&mut self, mode: Mode, leave: plan::Leave, mailbox: &Mailbox) -> Result<(), session::Error> {
        self.conversation.enter_mode(mode, leave, mailbox).await?;
        self.family.set_mode(mode);
        Ok(())
    }

    /// Asks another model from the next request on; `tools` are the limits that fit its window.
    pub fn set_model(&mut self, model: Model, tools: tools::Settings) {
        self.settings.tools = Arc::new(tools);
        self.hooking.add_env(&mut self.settings.tools);
        self.policy.places.look_in(self.settings.tools.env.get("PATH"));
        self.spending.know(model.name(), &model.spec);
        self.thinking.forget();
        self.model = model;
        // What does not fit its window any more is compacted before the next request.
        self.compaction.driver.set_window(compaction::window_of(&self.settings, &self.model));
        self.compaction.forget_overhead();
        self.fit_tools();
    }

    /// Takes over other settings, and the model as they have it.
    pub fn take_settings(&mut self, settings: Settings, model: Model) {
        self.family.seat(settings.seats);
        let tools = tools::Settings::clone(&settings.tools);
        self.settings = settings;
        self.set_model(model, tools);
        self.compaction.configure(&self.settings, &self.model);
    }

    /// How hard the next prompt is thought about, for front ends.
    pub fn thinking_info(&self) -> ThinkingInfo {
        let session = self.conversation.facts().thinking;
        thinking::Choice { settings: &self.settings.thinking, session, model: &self.model }.info()
    }

    /// Tells the front ends how hard the next prompt is thought about.
    pub async fn tell_thinking(&self, mailbox: &Mailbox) {
        mailbox.emit(Event::Thinking(protocol::Thinking::Level(self.thinking_info()))).await;
    }

    /// Chooses a level for the session, or takes the choice back, and says so.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn set_thinking(&mut self, level: Option<Level>, mailbox: &Mailbox) -> Result<(), session::Error> {
        if level != self.conversation.facts().thinking {
            self.conversation.append(EntryKind::ThinkingChanged { level })?;
        }
        self.family.set_thinking(level);
        self.tell_thinking(mailbox).await;
        Ok(())
    }

    /// Names of the tools that the model has.
    pub fn tools(&self) -> Vec<String> {
        self.tool_specs.iter().map(|spec| spec.name.clone()).collect()
    }

    /// Where the window is, and what the session cost.
    pub fn usage_info(&mut self) -> UsageInfo {
        self.compaction.weigh_overhead(&self.system, &self.tool_specs);
        let session = &self.conversation.session;
        let used = self.compaction.driver.used(session.context());
        let (left, fullness) = self.compaction.fullness(used);
        UsageInfo {
            total: session.facts().usage(),
            cost_usd: self.spending.session_cost(session),
            context: used,
            window: self.model.spec.window,
            left,
            fullness,
            cache: None,
        }
    }

    /// Notes what a request cost whose answer is not a reply of the conversation.
    fn spend(&mut self, what: &str, usage: Usage) -> Result<(), session::Error> {
        let model = (self.model.name(), &self.model.spec);
        self.spending.note(&mut self.conversation.session, what, model, usage)?;
        budget::record(self, None);
        Ok(())
    }

    /// What hooks are told of the session, and what they run with.
    fn hooks_at(&self) -> (hooks::Place, hooks::Settings) {
        let mut place = self.conversation.place(&self.policy.places.project);
        place.agent.clone_from(&self.hooking.worker);
        (place, self.hooking.settings(&self.settings.tools))
    }

    /// Runs the hooks of an occasion and tells front ends what they did. None when the user interrupted them.
    ///
    /// # Errors
    /// The log cannot be written.
    async fn fire(
        &mut self,
        occasion: Occasion,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<hooks::Outcome>, session::Error> {
        if !self.hooking.hooks.listens(occasion.event) {
            return Ok(Some(hooks::Outcome::default()));
        }
        let (place, settings) = self.hooks_at();
        let outcome = self.hooking.run(&occasion, &place, &settings, cancel).await;
        if let Some(outcome) = &outcome {
            self.conversation.note_hooks(outcome, mailbox).await?;
        }
        Ok(outcome)
    }

    /// The user is wanted.
    pub fn notify(&mut self, kind: &str, message: &str) {
        if self.hooking.worker.is_none() && self.hooking.hooks.listens(Hook::Notification) {
            let (place, settings) = self.hooks_at();
            self.hooking.run_beside(Occasion::notification(kind, message), place, settings);
        }
    }

    /// A session begins, or continues.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn session_started(
        &mut self,
        source: StartSource,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        let file = self.hooking.open_env();
        let outcome = self.fire(Occasion::session_start(source), mailbox, cancel).await;
        self.hooking.close_env(file, &mut self.settings.tools, self.conversation.context().cwd()).await;
        self.policy.places.look_in(self.settings.tools.env.get("PATH"));
        if let Some(outcome) = outcome? {
            self.hooking.keep(Hook::SessionStart, outcome.context);
            if let Some(reason) = outcome.stop.filter(|reason| !reason.is_empty()) {
                mailbox.emit(Event::Notice { text: reason }).await;
            }
        }
        Ok(())
    }

    /// The session ends: its last hooks run, and what nobody waited for is ended.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn session_ended(&mut self, reason: EndReason, mailbox: &Mailbox) -> Result<(), session::Error> {
        tasks::end(self, "the session ended", mailbox).await?;
        self.hooking.collect(&mut self.conversation, mailbox).await?;
        self.hooking.beside.shutdown().await;
        self.fire(Occasion::session_end(reason), mailbox, &CancellationToken::new()).await?;
        self.hooking.end(&mut self.conversation, mailbox).await
    }

    /// `/compact`, with the user's own instructions where there are any.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn compact(
        &mut self,
        instructions: Option<String>,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Freed, session::Error> {
        self.compaction.weigh_overhead(&self.system, &self.tool_specs);
        if let Some(why) = self.compaction.refuses(self.conversation.context()) {
            return Ok(Freed::Refused { why: why.into() });
        }
        let wish = compaction::Wish::new(Trigger::Manual, instructions);
        compaction::Attempt { agent: self, wish, mailbox, cancel }.asked().await
    }

    /// `/compact micro [tokens]`: clears old results now.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn compact_micro(&mut self, target: Option<u64>, mailbox: &Mailbox) -> Result<Freed, session::Error> {
        let done = self.compaction.micro(target, &mut self.conversation, &self.toolbox, mailbox).await?;
        if done.is_ok() {
            mailbox.emit(Event::Usage(self.usage_info())).await;
        }
        Ok(done.unwrap_or_else(|why| Freed::Refused { why }))
    }

    /// `/compact undo`, `/compact undo plan`: takes the last boundary back where it is one of those, if the conversation
    /// still fits then.
    ///
    /// # Errors
    /// The log cannot be read or written.
    pub async fn compact_undo(&mut self, of: Undo, mailbox: &Mailbox) -> Result<Freed, session::Error> {
        self.compaction.weigh_overhead(&self.system, &self.tool_specs);
        let done = self.compaction.undo(of, &mut self.conversation)?;
        if done.is_ok() {
            mailbox.emit(Event::Usage(self.usage_info())).await;
        }
        Ok(done.unwrap_or_else(|why| Freed::Refused { why }))
    }

    /// Launches these from now on. Requests that were sent keep the tools that they were sent with.
    pub fn set_definitions(&mut self, definitions: Arc<Definitions>) {
        self.tools = Arc::new(self.tools.with_agents(definitions.clone()));
        if self.toolbox.get(tools::TASK).is_some() {
            self.toolbox = Arc::new(self.toolbox.with_agents(definitions.clone()));
            self.tool_specs = self.toolbox.specs();
        }
        self.family.definitions = definitions;
    }
}
