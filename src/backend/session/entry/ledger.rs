//! What is remembered of a conversation line by line: the state of a fold, as a boundary carries it on.

use serde::{Deserialize, Serialize};

use super::Seq;

/// Lines by the order in which the log said them; a line that was said again counts from then on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Entries before this one are in it.
    pub upto: Seq,
    /// Other agents worked for this one: what they changed is in logs of their own.
    #[serde(default)]
    pub delegated: bool,
    /// The prompts are the task of another agent, not the user's words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub task: bool,
    pub lines: Vec<Line>,
}

impl Ledger {
    /// True when nothing was read into it: that of a log from before there were ledgers.
    pub fn is_empty(&self) -> bool {
        self.upto == 0
    }
}

/// One thing to remember, in the words of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub seq: Seq,
    pub sort: Sort,
    pub who: Who,
    /// How much it tells beside others of its sort: more is better.
    pub rank: u8,
    /// A path, an error, or a sentence.
    pub text: String,
    /// What it is about: a later line about the same takes its place. Of a path why it changed, of an error what was called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Of an error: what was done until the same call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

/// In the order in which they stay when room is short. Open todos come behind the choices; the projection has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    Constraint,
    Choice,
    Path,
    Error,
    Figure,
    Name,
}

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    User,
    Model,
    Tool,
}
