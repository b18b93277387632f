//! What front ends are told of sub-agents.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::TurnEnd;
use crate::message::{CallId, Message};

/// A sub-agent that a question comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// Its type.
    pub agent: String,
    /// What it works on, in a few words.
    pub description: String,
}

/// A step of a sub-agent, with its figures so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Names the sub-agent within the session; its transcript is `agent-<id>.jsonl`.
    pub id: String,
    /// The call that launched it.
    pub call: CallId,
    /// Its type.
    pub agent: String,
    /// What it works on, in a few words.
    pub description: String,
    pub step: Step,
    /// Calls that it made.
    pub tools: u32,
    /// Tokens that stand in its window.
    pub tokens: u64,
    pub millis: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Step {
    Started,
    /// What it does now, in one line.
    Doing {
        what: String,
    },
    /// A message is in its own log for good.
    Said {
        message: Arc<Message>,
    },
    Done {
        end: TurnEnd,
    },
}
