//! Rows of the lists that front ends show.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::report::Holds;
use super::{Delivery, HistoryItem, QueueId, Scope};
use crate::message::FileDiff;
use crate::permission::Behavior;
use crate::session::entry::Seq;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    pub id: String,
    pub title: String,
    /// For people: `2 hours ago · 14 messages`.
    pub detail: String,
}

/// What was found in all sessions, the best first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundList {
    /// What was asked for: an answer to other words comes too late.
    pub words: String,
    pub rows: Vec<FoundRow>,
    /// What is wrong with the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A place in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundRow {
    pub session: String,
    /// Around the words, in one line.
    pub text: String,
    /// For people: `fix the parser · 2 days ago`.
    pub detail: String,
    /// For people: `turn 3 · prompt`.
    pub place: String,
    /// Where the session was started, if that is elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRow {
    pub path: PathBuf,
    /// For people: within the project, or from `~` on.
    pub name: String,
    /// None: it does not exist yet.
    pub lines: Option<u64>,
}

/// Every provider, and what came of what was last done about one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelList {
    pub providers: Vec<ProviderRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Word>,
}

/// A short word about what was done in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Word {
    Done { text: String },
    Failed { text: String },
}

impl From<Result<String, String>> for Word {
    fn from(done: Result<String, String>) -> Word {
        match done {
            Ok(text) => Word::Done { text },
            Err(text) => Word::Failed { text },
        }
    }
}

/// A provider with its models, or with what it lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderRow {
    /// As `/model name/id` takes it.
    pub name: String,
    /// For people.
    pub title: String,
    pub access: Access,
    /// The model in use is one of its own.
    pub current: bool,
    pub models: Vec<ModelRow>,
}

/// Whether a provider can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Access {
    /// With a key; where it is from: a variable, a command or the credentials file.
    Key {
        from: String,
    },
    /// It takes no key.
    Open,
    NoKey,
    /// The endpoint refused the key.
    Refused {
        from: Option<String>,
        why: String,
    },
    /// A server on this machine.
    Server {
        url: String,
    },
    /// No server answers on these ports, or nobody has looked yet.
    NoServer {
        ports: Vec<u16>,
        asked: bool,
    },
    /// It needs nothing.
    Offline,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRow {
    /// As `/model` takes it.
    pub id: String,
    /// For people: `1M · $3/$15 · default`.
    pub detail: String,
    pub current: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleRow {
    pub rule: String,
    pub behavior: Behavior,
    /// The file or flag that it comes from.
    pub source: String,
    /// Why `/permissions revoke` cannot take it back; none where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptRow {
    pub seq: Seq,
    pub text: String,
    /// The turn changed files that can be put back.
    pub changed_files: bool,
}

/// Every setting, and what came of what was last done about one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SettingList {
    pub rows: Vec<SettingRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Word>,
}

/// A setting as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRow {
    pub key: String,
    /// As one types it; none where it is not set. What may be secret is left out.
    pub value: Option<String>,
    /// For people: `default`, `user, config.toml:4`.
    pub source: String,
    pub default: Option<String>,
    pub about: String,
    pub kind: SettingKind,
    pub holds: Holds,
}

/// How a setting is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SettingKind {
    Switch,
    Choice {
        values: Vec<String>,
    },
    /// Written as text: a number, a word, a list by commas.
    Text,
    /// Only in a file.
    Table,
}

/// Where a setting is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingPlace {
    /// The user's configuration file.
    User,
    /// `.cocode/config.local.toml` of the project.
    Project,
}

impl SettingRow {
    /// The value for people.
    pub fn shown(&self) -> String {
        match (&self.kind, self.value.as_deref()) {
            (SettingKind::Switch, Some("true")) => "‹on›".to_owned(),
            (SettingKind::Switch, Some("false")) => "‹off›".to_owned(),
            (SettingKind::Choice { .. }, Some(value)) => format!("‹{value}›"),
            (_, Some("")) => "empty".to_owned(),
            (_, Some(value)) => value.to_owned(),
            (_, None) => "unset".to_owned(),
        }
    }

    /// What it does, its default, and when a change counts.
    pub fn meaning(&self) -> String {
        let default = match (&self.default, &self.kind) {
            (Some(default), SettingKind::Switch) => {
                format!(" Default: {}.", if default == "true" { "on" } else { "off" })
            }
            (Some(default), _) if !default.is_empty() => format!(" Default: {default}."),
            _ => String::new(),
        };
        let holds = match self.holds {
            Holds::Now => "",
            Holds::NextSession => " A change takes effect in the next session.",
            Holds::NextStart => " A change takes effect at the next start.",
        };
        format!("{}{default}{holds}", self.about)
    }
}

/// What a sub-agent did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentLog {
    /// Names it within the session.
    pub id: String,
    pub items: Vec<HistoryItem>,
}

/// Which part of a session's log is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The last entries before this one.
    Before(Seq),
    /// The first entries from this one on, and before that one.
    Between(Seq, Seq),
}

/// Something of an MCP server that the user can attach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceRow {
    /// What is written behind `@`: `server:uri`.
    pub mention: String,
    /// What it is, in one line.
    pub about: String,
}

/// A part of a session's log, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Earlier {
    pub items: Vec<HistoryItem>,
    /// The first entry of the part, and the one behind its last.
    pub from: Seq,
    pub until: Seq,
    /// Messages before these, and between these and the end that was asked for.
    pub older: u64,
    pub newer: u64,
}

/// What changed, file by file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Against what the files were when the session first changed them.
    pub session: Vec<FileDiff>,
    /// As git sees it; none outside of a repository.
    pub uncommitted: Option<Vec<FileDiff>>,
    /// What can be reverted: all of the session first, then turn by turn, the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub id: QueueId,
    pub text: String,
    pub delivery: Delivery,
}
