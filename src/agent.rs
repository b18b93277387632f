//! The agent: one session, one model, one toolbox, and the turn that ties them together.

mod compaction;
mod decided;
mod digest;
mod dispatch;
pub mod extraction;
mod failure;
mod forked_skills;
mod fresh_context;
mod hook_env;
pub mod hooking;
mod host;
mod intake;
pub mod mailbox;
mod media;
pub mod memory;
mod parent_child;
pub mod plan;
pub mod prompt;
mod reminder;
mod restore;
mod sample;
mod side_request;
pub mod skill_list;
pub mod skill_runs;
mod spending;
mod subagent;
pub mod thinking;
mod tiers;
mod turn;
mod window;

pub use compaction::Compacted;
pub use failure::Failure;
pub use subagent::tools_below;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::agents::Definitions;
use crate::compact;
use crate::hooks::Hooks;
use crate::message::{CallId, Message};
use crate::permission::{Access, Behavior, Disk, Files, Mode, Places, Rule, RuleSet, Source, Trust};
use crate::protocol::{Delta, Event, GrantScope, ModeChange, ModelInfo, RewindWhat};
use crate::provider::catalog::ModelSpec;
use crate::provider::{Provider, ToolSpec};
use crate::session::entry::{EntryKind, Seq};
use crate::session::{self, Rewound, Session};
use crate::tools::{self, Dirs, Toolbox};

/// Who answers: a provider, and one of its models.
#[derive(Clone)]
pub struct Model {
    pub provider: Arc<dyn Provider>,
    /// Its name in the configuration.
    pub provider_name: String,
    pub id: String,
    pub spec: ModelSpec,
}

impl Model {
    /// As sessions and `/model` name it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider_name, self.id)
    }

    /// As front ends show it.
    pub fn info(&self) -> ModelInfo {
        ModelInfo {
            provider: self.provider_name.clone(),
            model: self.id.clone(),
            window: self.spec.window,
            known: self.spec.known,
            probing: false,
        }
    }
}

/// Limits and texts; a slice of the configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    pub tools: Arc<tools::Settings>,
    /// Tries of one model call, the first included.
    pub max_tries: u32,
    /// Model calls in one turn.
    pub max_turns: Option<u32>,
    /// The user's home folder.
    pub user_home: Option<PathBuf>,
    /// Replaces the system prompt.
    pub system: Option<String>,
    /// Stands after the system prompt.
    pub append_system: Option<String>,
    /// Names of memory files, in the order in which they count.
    pub memory_names: Vec<String>,
    /// Whether the session may go into Bypass: only a flag at its start allows that.
    pub bypass: Bypass,
    /// How hard the model thinks.
    pub thinking: crate::thinking::Settings,
    pub plan: plan::Settings,
    pub reminders: Reminders,
    pub presence: extraction::Presence,
    pub compact: compact::Settings,
    pub features: compact::Features,
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

/// What may run.
#[derive(Debug, Clone)]
pub struct Policy {
    pub rules: RuleSet,
    /// Folders and protected places; `cwd` follows the shell.
    pub places: Places,
    /// What the folder brings along and the user agreed to.
    pub trust: Trust,
}

/// Keeps rules that outlive the session. Implemented by the engine over the configuration.
pub trait Grants: Send + Sync {
    /// Saves an allow rule.
    ///
    /// # Errors
    /// A sentence that names the file and the fix.
    fn save(&self, scope: GrantScope, rule: &str) -> Result<(), String>;
}

/// All that a turn needs, owned by value.
pub struct Agent {
    pub session: Session,
    pub model: Model,
    pub policy: Policy,
    pub settings: Settings,
    toolbox: Arc<Toolbox>,
    tool_specs: Arc<[ToolSpec]>,
    system: Arc<str>,
    memory: memory::Loader,
    pub hooking: hooking::Hooking,
    watch: reminder::Watch,
    media: media::MediaCache,
    repeats: dispatch::Repeats,
    thinking: thinking::Thinking,
    /// The plan that was approved with a fresh context, until that is made.
    fresh: Option<String>,
    runs: skill_runs::Runs,
    compaction: compaction::Compaction,
    extraction: extraction::Extraction,
    grants: Arc<dyn Grants>,
    git: prompt::GitStatus,
    turn_usage: spending::TurnUsage,
    family: parent_child::Family,
    /// Models that were in use, by name, for their prices.
    used: HashMap<String, ModelSpec>,
    date: String,
    clock: fn() -> Instant,
}

/// What of a session's own folder is never asked for.
fn free_reads(session: &Session) -> Vec<PathBuf> {
    let dir = session.store().dir();
    let own = [dir.join("tool-results"), dir.join("blobs")];
    own.iter().map(|folder| Disk.resolve(folder)).chain(skill_runs::opened(session)).collect()
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
    /// How many sub-agents run at a time.
    pub seats: usize,
}

impl Agent {
    pub fn new(session: Session, parts: Parts) -> Agent {
        let Parts { model, mut policy, settings, toolbox, grants, hooks, skills, git, date, clock, .. } = parts;
        let family = parent_child::Family::new(parts.definitions, parts.seats, &session);
        hooks.restart(&session.facts().hooks);
        for text in &session.facts().grants {
            if let Ok(rule) = Rule::parse(text) {
                policy.rules.add(Behavior::Allow, rule, Source::Session);
            }
        }
        let mut system = settings.system.clone().unwrap_or_else(|| prompt::SYSTEM.to_owned());
        if let Some(more) = &settings.append_system {
            system.push_str("\n\n");
            system.push_str(more);
        }
        policy.places.free_reads = free_reads(&session);
        let tool_specs = toolbox.specs();
        let compaction = compaction::Compaction::new(&settings, &model);
        let extraction = extraction::Extraction::new(settings.presence);
        Agent {
            memory: memory::Loader::new(
                settings.memory_names.clone(),
                Some(policy.places.cocode_home.clone()),
                policy.places.project.clone(),
            ),
            session,
            policy,
            settings,
            toolbox,
            tool_specs,
            system: system.into(),
            hooking: hooking::Hooking::new(hooks),
            watch: reminder::Watch::default(),
            media: media::MediaCache::default(),
            repeats: dispatch::Repeats::default(),
            thinking: thinking::Thinking::default(),
            fresh: None,
            runs: skill_runs::Runs::new(skills),
            compaction,
            extraction,
            grants,
            git,
            turn_usage: spending::TurnUsage::default(),
            family,
            used: HashMap::from([(model.name(), model.spec.clone())]),
            model,
            date,
            clock,
        }
    }

    /// How much runs without asking now.
    pub fn mode(&self) -> Mode {
        self.session.facts().mode.unwrap_or_default()
    }

    /// Loads memory files as at the start of a session.
    fn fresh_memory(&self) -> memory::Loader {
        let (names, places) = (self.settings.memory_names.clone(), &self.policy.places);
        memory::Loader::new(names, Some(places.cocode_home.clone()), places.project.clone())
    }

    fn dirs(&self) -> Dirs {
        let places = &self.policy.places;
        Dirs {
            project: places.project.clone(),
            added: places.added.clone(),
            cwd: self.session.context().cwd().to_path_buf(),
        }
    }

    fn places(&self) -> Places {
        let mut places = Places { cwd: self.session.context().cwd().to_path_buf(), ..self.policy.places.clone() };
        self.open_places(&mut places);
        places
    }

    /// Puts another session in the place of this one. What was known of files and folders stays with the old one.
    pub fn take_session(&mut self, session: Session, git: prompt::GitStatus) {
        self.leave_notes();
        self.policy.rules.clear(Source::Session);
        for text in &session.facts().grants {
            if let Ok(rule) = Rule::parse(text) {
                self.policy.rules.add(Behavior::Allow, rule, Source::Session);
            }
        }
        let places = &mut self.policy.places;
        places.free_reads = free_reads(&session);
        self.memory = self.fresh_memory();
        self.compaction.driver.reset();
        self.watch = reminder::Watch::default();
        self.git = git;
        self.hooking.hooks.restart(&session.facts().hooks);
        self.runs.forget();
        self.session = session;
        self.family.set_mode(self.mode());
    }

    /// Goes back to before the prompt at `to`.
    ///
    /// # Errors
    /// As `Session::rewind`.
    pub fn rewind(&mut self, to: Seq, what: RewindWhat) -> Result<Rewound, session::Error> {
        // What the model knows of files is older than what was last checked.
        self.watch = reminder::Watch::default();
        self.forget_notes();
        self.session.rewind(to, what)
    }

    /// Changes the mode, and says so. Bypass only where a flag allows it.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn set_mode(&mut self, mode: Mode, mailbox: &mailbox::Mailbox) -> Result<(), session::Error> {
        if mode == self.mode() {
            return Ok(());
        }
        if mode == Mode::Bypass && self.settings.bypass == Bypass::Never {
            let text = "Bypass can only be turned on at the start, with `--permission-mode bypassPermissions`.".into();
            mailbox.emit(Event::Error { text, restore: None }).await;
            // A front end that ran ahead of the answer learns what holds.
            mailbox.emit(Event::Mode(ModeChange::Changed { mode: self.mode() })).await;
            return Ok(());
        }
        self.enter_mode(mode, plan::Leave::Chosen, mailbox).await
    }

    /// Asks another model from the next request on; `tools` are the limits that fit its window.
    pub fn set_model(&mut self, model: Model, tools: tools::Settings) {
        self.settings.tools = Arc::new(tools);
        self.apply_hook_env();
        self.used.insert(model.name(), model.spec.clone());
        self.thinking.forget();
        self.model = model;
        self.fit_window();
    }

    /// Takes over other files' rules and folders; what was granted in the session stays.
    pub fn take_rules(&mut self, mut rules: RuleSet, places: Places) {
        for entry in
            self.policy.rules.entries().iter().filter(|entry| matches!(entry.source, Source::Session | Source::Skill))
        {
            rules.add(entry.behavior, entry.rule.clone(), entry.source);
        }
        let free_reads = std::mem::take(&mut self.policy.places.free_reads);
        self.policy =
            Policy { rules, places: Places { free_reads, ..places }, trust: std::mem::take(&mut self.policy.trust) };
    }

    /// Explains part by part what would happen to a command line.
    pub fn explain(&self, command: &str) -> String {
        let access = Access::Shell { command: command.to_owned(), cwd: self.session.context().cwd().to_path_buf() };
        let decision = self.decide("Bash", &access);
        let reasons: Vec<String> = decision.reasons.iter().map(|reason| format!("- {reason}")).collect();
        format!("`{command}`: **{}**\n\n{}", decision.behavior.name(), reasons.join("\n"))
    }

    /// Memory files that a session in this folder begins with, in order, with their counts of lines.
    pub fn memory_files(&self) -> Vec<(PathBuf, usize)> {
        let files =
            self.fresh_memory().start(&self.policy.places.project, &|path, whose| self.judge_memory(path, whose)).files;
        files.into_iter().map(|file| (file.path, file.text.lines().count())).collect()
    }

    /// Which memory files there are.
    pub fn memory_report(&self) -> String {
        let files = self.memory_files();
        if files.is_empty() {
            let own = self.policy.places.project.join("AGENTS.md");
            return format!(
                "No memory files yet. Create `{}` to have it read at the start of every session.",
                own.display()
            );
        }
        let lines: Vec<String> =
            files.iter().map(|(path, lines)| format!("- `{}` ({lines} lines)", path.display())).collect();
        format!("Read at the start of a session, in this order:\n\n{}", lines.join("\n"))
    }

    /// Runs a line of the user's own through the shell tool; nobody is asked.
    ///
    /// # Errors
    /// The log cannot be written; the command did not run.
    pub async fn user_command(
        &mut self,
        command: &str,
        cancel: &CancellationToken,
        mailbox: &mailbox::Mailbox,
    ) -> Result<tools::Output, session::Error> {
        let Some(tool) = self.toolbox.get("Bash").cloned() else {
            return Ok(tools::Output::error("the Bash tool is turned off"));
        };
        let (dirs, host) = (self.dirs(), self.host(mailbox, cancel));
        let (live, mut output) = tokio::sync::mpsc::unbounded_channel();
        let call = format!("user_{}", self.session.next_seq());
        self.session.append(EntryKind::CommandRan { call: CallId(call.clone()), command: command.to_owned() })?;
        self.session.sync()?;
        let context = tools::Context {
            target: None,
            call: &call,
            dirs: &dirs,
            sight: &crate::permission::Sight::default(),
            home: self.settings.user_home.as_deref(),
            seen: self.session.context().seen(),
            todos: &[],
            plan: None,
            settings: &self.settings.tools,
            store: self.session.store(),
            host: &host,
            live,
            cancel,
        };
        let running = tool.run(serde_json::json!({ "command": command }), &context);
        tokio::pin!(running);
        let id = CallId(call.clone());
        let finished = loop {
            tokio::select! {
                finished = &mut running => break finished,
                Some(text) = output.recv() => {
                    mailbox.emit(Event::Delta(Delta::ToolOutput { call: id.clone(), text })).await;
                }
            }
        };
        Ok(tools::limit::apply(finished, &self.settings.tools, self.session.store(), &call))
    }

    /// Adds what happened outside a turn to the conversation.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn note(&mut self, message: Message, mailbox: &mailbox::Mailbox) -> Result<(), session::Error> {
        self.push(message, mailbox).await
    }

    fn host<'a>(&self, mailbox: &'a mailbox::Mailbox, cancel: &'a CancellationToken) -> host::AgentHost<'a> {
        let skills = self.runs.view();
        let (model, spent) = (self.model.clone(), Mutex::default());
        host::AgentHost { model, spent, mailbox, cancel, skills, launcher: None, words: None }
    }

    /// Grants a rule from now on; the inner error says why it could not be kept beyond the session.
    fn grant(&mut self, text: &str, scope: GrantScope) -> Result<Result<(), String>, session::Error> {
        let rule = match Rule::parse(text) {
            Ok(rule) => rule,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let saved = match scope {
            GrantScope::Session => Ok(()),
            scope => self.grants.save(scope, text),
        };
        let source = match (scope, &saved) {
            (GrantScope::Project, Ok(())) => Source::ProjectLocal,
            (GrantScope::User, Ok(())) => Source::User,
            _ => {
                self.session.append(EntryKind::Granted { rule: text.to_owned() })?;
                Source::Session
            }
        };
        self.policy.rules.add(Behavior::Allow, rule, source);
        if let Some(above) = &self.family.above {
            above.granted(text, source);
        }
        Ok(saved)
    }
}
