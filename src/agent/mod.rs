//! The agent: one session, one model, one toolbox, and the turn that ties them together.

pub mod desk;
mod dispatch;
mod host;
mod media;
pub mod memory;
pub mod prompt;
mod reminder;
mod sample;
mod turn;
mod voice;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::message::Usage;
use crate::permission::{Behavior, Mode, Places, Rule, RuleSet, Source, Trust};
use crate::protocol::{GrantScope, ModelInfo, UsageInfo};
use crate::provider::catalog::ModelSpec;
use crate::provider::{self, Provider, ToolSpec};
use crate::session::entry::EntryKind;
use crate::session::{self, Session};
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
    /// As front ends show it.
    pub fn info(&self) -> ModelInfo {
        ModelInfo { provider: self.provider_name.clone(), model: self.id.clone(), window: self.spec.window, known: self.spec.known, probing: false }
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
    /// Load AGENTS.md and CLAUDE.md.
    pub memory: bool,
}

/// What may run.
#[derive(Debug, Clone)]
pub struct Policy {
    pub rules: RuleSet,
    /// Folders and protected places; `cwd` follows the shell.
    pub places: Places,
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

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Provider(provider::Error),
    #[error("{0}")]
    Session(#[from] session::Error),
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
    watch: reminder::Watch,
    media: media::MediaCache,
    repeats: dispatch::Repeats,
    grants: Arc<dyn Grants>,
    git: prompt::GitStatus,
    turn_usage: Usage,
    date: String,
    clock: fn() -> Instant,
}

/// What an agent is made of besides its session.
pub struct Parts {
    pub model: Model,
    pub policy: Policy,
    pub settings: Settings,
    pub toolbox: Arc<Toolbox>,
    pub grants: Arc<dyn Grants>,
    pub git: prompt::GitStatus,
    /// Today, as the model is told.
    pub date: String,
    pub clock: fn() -> Instant,
}

impl Agent {
    pub fn new(session: Session, parts: Parts) -> Agent {
        let Parts { model, mut policy, settings, toolbox, grants, git, date, clock } = parts;
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
        let dir = session.store().dir().to_path_buf();
        policy.places.free_reads = vec![dir.join("tool-results"), dir.join("blobs")];
        let tool_specs = toolbox.specs();
        Agent {
            memory: memory::Loader::new(Some(policy.places.cocode_home.clone()), policy.places.project.clone()),
            session,
            model,
            policy,
            settings,
            toolbox,
            tool_specs,
            system: system.into(),
            watch: reminder::Watch::default(),
            media: media::MediaCache::default(),
            repeats: dispatch::Repeats::default(),
            grants,
            git,
            turn_usage: Usage::default(),
            date,
            clock,
        }
    }

    /// Gives the session back, for another one to take its place.
    pub fn into_session(self) -> Session {
        self.session
    }

    /// How much runs without asking now.
    pub fn mode(&self) -> Mode {
        self.session.facts().mode.unwrap_or_default()
    }

    fn dirs(&self) -> Dirs {
        let places = &self.policy.places;
        Dirs { project: places.project.clone(), added: places.added.clone(), cwd: self.session.context().cwd().to_path_buf() }
    }

    fn places(&self) -> Places {
        Places { cwd: self.session.context().cwd().to_path_buf(), ..self.policy.places.clone() }
    }

    fn host(&self) -> host::AgentHost {
        host::AgentHost { model: self.model.clone(), spent: Mutex::default() }
    }

    fn record_searches(&mut self, host: &host::AgentHost) -> Result<(), session::Error> {
        let spent = std::mem::take(&mut *host.spent.lock().unwrap_or_else(PoisonError::into_inner));
        for usage in spent {
            self.turn_usage.add(&usage);
            self.session.append(EntryKind::Spent { what: "web search".into(), model: self.model.id.clone(), usage })?;
        }
        Ok(())
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
        Ok(saved)
    }

    /// Where the window stands, and what the session cost.
    pub fn usage_info(&self) -> UsageInfo {
        let total = self.session.facts().usage();
        UsageInfo { total, cost_usd: self.model.spec.cost(&total), context: self.session.context().tokens(), window: self.model.spec.window }
    }
}
