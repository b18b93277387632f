//! What became of a question: what was decided, by whom, and for how long.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Characters of what was decided about that are shown in its line.
const SHOWN: usize = 160;

/// One decision about something that waited for a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    pub matter: Matter,
    pub yes: bool,
    pub by: Decider,
    #[serde(default)]
    pub lasts: Lasts,
    /// The command, rules, path or answers.
    pub what: String,
    /// The type of the sub-agent that had asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// What had been asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// May a call run?
    Call,
    /// May a command connect somewhere?
    Connect,
    Trust,
    Server,
    Repeated,
    Unrecorded,
    Locked,
    Import,
    EnterPlan,
    Plan,
    Choices,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    User,
    /// A PermissionRequest hook, in the user's place.
    Hook,
    /// A mode or a path that changed while the question was open.
    Change,
    /// There was nobody to ask.
    Nobody,
}

/// How long an approved call's rule holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lasts {
    #[default]
    Once,
    Session,
    Project,
    /// In every project of the user.
    User,
}

impl Decided {
    fn did(&self) -> &'static str {
        match (self.matter, self.yes) {
            (Matter::Call | Matter::Connect, true) => match self.lasts {
                Lasts::Once => "allowed once",
                Lasts::Session => "allowed for this session",
                Lasts::Project => "allowed for this project",
                Lasts::User => "allowed in every project",
            },
            (Matter::Call | Matter::Connect, false) => "denied",
            // A folder is named by its path.
            (Matter::Trust, true) if self.what.starts_with("plugin ") => "trusted this",
            (Matter::Trust, false) if self.what.starts_with("plugin ") => "did not trust this",
            (Matter::Trust, true) => "trusted this folder",
            (Matter::Trust, false) => "did not trust this folder",
            (Matter::Server, true) => "allowed this model server",
            (Matter::Server, false) => "declined this model server",
            (Matter::Repeated, true) => "let it continue",
            (Matter::Repeated, false) => "stopped the repetition",
            (Matter::Unrecorded, true) => "let it continue without undo",
            (Matter::Unrecorded, false) => "stopped it, because the disk was full",
            (Matter::Locked, true) => "opened this session",
            (Matter::Locked, false) => "left this session closed",
            (Matter::Import, true) => "allowed this import",
            (Matter::Import, false) => "denied this import",
            (Matter::EnterPlan, true) => "chose to plan first",
            (Matter::EnterPlan, false) => "chose not to plan first",
            (Matter::Plan, true) => "approved the plan",
            (Matter::Plan, false) => "kept planning",
            (Matter::Choices, true) => "answered",
            (Matter::Choices, false) => "declined to answer",
        }
    }
}

/// One line: `✓ you allowed once: touch danger.txt`.
impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.yes { '✓' } else { '✗' };
        match self.by {
            // The event that everybody waits for, in the words that they know it by.
            Decider::User if self.matter == Matter::Plan && self.yes => write!(f, "{mark} Plan approved by you")?,
            Decider::User => write!(f, "{mark} you {}", self.did())?,
            Decider::Hook => write!(f, "{mark} a hook {}", self.did())?,
            Decider::Change => write!(f, "{mark} no longer allowed")?,
            Decider::Nobody => write!(f, "{mark} nobody could be asked")?,
        }
        if let Some(agent) = &self.agent {
            write!(f, " ({agent})")?;
        }
        if self.what.is_empty() {
            return Ok(());
        }
        let to = if self.matter == Matter::Connect { "connecting to " } else { "" };
        let line: String = self.what.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = line.chars().take(SHOWN).collect();
        write!(f, ": {to}{shown}{}", if shown.len() < line.len() { "…" } else { "" })
    }
}
