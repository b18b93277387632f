//! What an agent is set to at one moment, without its session: for those who look while a turn has the agent.

use std::sync::Arc;

use super::Model;
use super::skill_runs::{Caller, View};
use crate::agents::Definitions;
use crate::compact::Driver;
use crate::hooks::{self, Hooks};
use crate::protocol::report::Agents;
use crate::provider::ToolSpec;

/// Cheap to take.
pub struct Snapshot {
    pub model: Model,
    /// How many rules there are.
    pub rules: u64,
    /// The user agreed to something that the folder brings along.
    pub trusted: bool,
    pub(super) hooks: Hooks,
    pub(super) definitions: Arc<Definitions>,
    pub(super) skills: View,
    pub(super) driver: Driver,
    /// Automatic compaction is on.
    pub(super) auto: bool,
    pub(super) system: Arc<str>,
    pub(super) tool_specs: Arc<[ToolSpec]>,
}

impl Snapshot {
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
}
