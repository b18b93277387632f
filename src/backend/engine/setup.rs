//! What an engine is made of.

use std::path::PathBuf;

use super::Host;
use crate::agent::Presence;
use crate::config::Loaded;
use crate::config::paths::{Env, Paths};
use crate::permission::{Mode, Sandbox};
use crate::stdx::clock::Clocks;
use crate::stdx::schema::Schema;

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
    /// Mode Bypass may be chosen later, though it is not what the session begins in.
    pub may_bypass: bool,
    /// How hard to think, by flag.
    pub thinking: Option<crate::thinking::Override>,
    pub system: Option<String>,
    pub append_system: Option<String>,
    /// What the final answer has to be: offered as a tool whose input is checked against this schema.
    pub output_schema: Option<Schema>,
    /// What the user says is around us.
    pub sandbox: Sandbox,
    /// What commands run in.
    pub commands: crate::sandbox::Sandbox,
    /// What was piped in: it goes with the first prompt, and is never read as a command or as words to us.
    pub piped: Option<String>,
    /// Whether a person works in the session.
    pub presence: Presence,
    /// The program that runs us, where it has a part in the session.
    pub host: Option<Host>,
    /// The id of a new session, where it was chosen.
    pub session_id: Option<String>,
    /// Of a resumed session: what comes behind this message is left.
    pub resume_at: Option<uuid::Uuid>,
    /// The only tools that the model gets.
    pub only_tools: Option<Vec<String>>,
    pub clocks: Clocks,
}

impl Setup {
    /// How far commands are confined, as far as it was found out.
    pub(super) fn confinement(&self) -> crate::sandbox::Status {
        let unknown = || crate::sandbox::Status { level: crate::sandbox::Level::None, why: "not looked at yet".into() };
        self.commands.status().unwrap_or_else(unknown)
    }
}
