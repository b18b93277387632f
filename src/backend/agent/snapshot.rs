//! What an agent is set to at one moment, without its session: for those who look while a turn has the agent.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use super::parent_child::Standing;
use super::skill_runs::{Caller, View};
use super::{Agent, Board, Grounds, Model, Policy, conversation, memory, thinking};
use crate::agents::Definitions;
use crate::compact::Driver;
use crate::hooks::{self, Hooks};
use crate::mcp::Servers;
use crate::permission::{Access, Behavior, Consent, Decision, Mode, RuleSet};
use crate::protocol::ThinkingInfo;
use crate::protocol::report::{Agents, Kept};
use crate::provider::ToolSpec;
use crate::sandbox;
use crate::session::Session;
use crate::tools::{self, RULES};

/// Cheap to take.
pub struct Snapshot {
    pub model: Model,
    pub(super) policy: Policy,
    /// Brings the rules that are granted from now on; what it holds already is in the policy.
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) granted: usize,
    pub(super) hooks: Hooks,
    pub(super) definitions: Arc<Definitions>,
    pub(super) skills: View,
    pub(super) memory: memory::Loader,
    pub(super) thinking: crate::thinking::Settings,
    pub(super) driver: Driver,
    /// Automatic compaction is on.
    pub(super) auto: bool,
    pub(super) system: Arc<str>,
    pub(super) tool_specs: Arc<[ToolSpec]>,
    /// What runs in the background: not as it was, but as it is.
    pub background: Board,
}

/// How commands are confined at one moment.
pub struct Looked {
    pub reading: Option<sandbox::Policy>,
    pub approved: Option<sandbox::Policy>,
    pub unasked: Option<sandbox::Policy>,
    pub denied: Vec<Kept>,
}

/// Stands for every line that only reads, and for every other.
const READING: &str = "ls";
const ANY: &str = "make";

impl Snapshot {
    /// Of an agent as it is now.
    pub fn of(agent: &mut Agent) -> Snapshot {
        agent.compaction.weigh_overhead(&agent.system, &agent.tool_specs);
        let standing = agent.family.standing();
        let granted = standing.borrow().granted.len();
        Snapshot {
            model: agent.model.clone(),
            policy: Policy { places: agent.policy.places_of(&agent.conversation), ..agent.policy.clone() },
            standing,
            granted,
            hooks: agent.hooking.hooks.branch(),
            definitions: agent.family.definitions.clone(),
            skills: agent.runs.view(),
            memory: conversation::fresh_memory(&agent.settings, &agent.policy.places),
            thinking: agent.settings.thinking.clone(),
            driver: agent.compaction.driver.clone(),
            auto: agent.settings.compact.enabled && agent.settings.compact.auto,
            system: agent.system.clone(),
            tool_specs: agent.tool_specs.clone(),
            background: agent.tasks.board.clone(),
        }
    }

    /// The servers of the session.
    pub fn servers(&self) -> Option<&Arc<Servers>> {
        self.policy.servers.as_ref()
    }

    /// Every hook with its last result.
    pub fn hooks(&self) -> Vec<hooks::Row> {
        self.hooks.rows()
    }

    /// The sub-agents, and what is wrong with their files.
    pub fn agents(&self) -> Agents {
        let lacking = self.definitions.lacking(|name| self.skills.find(name, Caller::Model).err());
        let problems = self.definitions.diagnostics().iter().map(ToString::to_string).chain(lacking);
        Agents { agents: self.definitions.rows(), problems: problems.collect() }
    }

    /// The rules that hold by now.
    pub fn rules(&self) -> RuleSet {
        let mut rules = self.policy.rules.clone();
        for (text, source) in &self.standing.borrow().granted[self.granted..] {
            if let Ok(rule) = RULES.rule(text) {
                rules.add(Behavior::Allow, rule, *source);
            }
        }
        rules
    }

    /// What would happen to a command line in the session.
    pub async fn try_out(&self, session: &Session, command: &str) -> Decision {
        self.policy.sandbox.probe().await;
        let cwd = session.context().cwd().to_path_buf();
        let mut grounds = self.grounds(session.facts().mode.unwrap_or_default());
        grounds.places.cwd.clone_from(&cwd);
        grounds.decide(tools::BASH, &Access::Shell { command: command.into(), cwd })
    }

    /// What commands of the session are held to: one that only reads, and any other that was approved.
    pub fn confined(&self, session: &Session) -> Looked {
        let mut grounds = self.grounds(session.facts().mode.unwrap_or_default());
        session.context().cwd().clone_into(&mut grounds.places.cwd);
        let (reading, unasked) = (grounds.policy(READING, Consent::Missing), grounds.policy_unasked(ANY));
        grounds.places.approved.unasked = false;
        Looked { reading, approved: grounds.policy(ANY, Consent::Given), unasked, denied: self.policy.denials.rows() }
    }

    /// Memory files that a session in this folder begins with, in order, with their counts of lines.
    pub fn memory_files(&self) -> Vec<(PathBuf, usize)> {
        let grounds = self.grounds(Mode::Default);
        let files =
            self.memory.fresh().start(&self.policy.places.project, &|path, whose| grounds.memory(path, whose)).files;
        files.into_iter().map(|file| (file.path, file.text.lines().count())).collect()
    }

    /// How hard the next prompt of the session is thought about.
    pub fn thinking(&self, session: &Session) -> ThinkingInfo {
        let session = session.facts().thinking;
        thinking::Choice { settings: &self.thinking, session, model: &self.model }.info()
    }

    fn grounds(&self, mode: Mode) -> Grounds<'static> {
        let Policy { places, sandbox, .. } = &self.policy;
        Grounds { mode, rules: Cow::Owned(self.rules()), places: places.clone(), level: sandbox.level() }
    }
}
