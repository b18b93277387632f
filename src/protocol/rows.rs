//! Rows of the lists that front ends show.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRow {
    pub path: PathBuf,
    /// None: it does not exist yet.
    pub lines: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRow {
    /// As `/model` takes it.
    pub id: String,
    pub detail: String,
    pub current: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleRow {
    pub rule: String,
    pub behavior: Behavior,
    /// The file or flag that it comes from.
    pub source: String,
    /// `/permissions revoke` can take it back.
    pub revocable: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptRow {
    pub seq: Seq,
    pub text: String,
    /// The turn changed files that can be put back.
    pub changed_files: bool,
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
    /// What can be taken back: all of the session first, then turn by turn, the last one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub id: QueueId,
    pub text: String,
    pub delivery: Delivery,
}
