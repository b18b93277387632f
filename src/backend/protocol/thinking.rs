//! What the engine tells of the model's thinking.

use serde::{Deserialize, Serialize};

use crate::thinking::{Keywords, Level, Source};

/// News of the model's thinking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Thinking {
    /// How hard the next prompt is thought about, unless a word in it says otherwise.
    Level(ThinkingInfo),
    /// The thoughts that were streamed are complete; the tokens are counted by the provider where it has done so by now,
    /// else estimated.
    Complete { tokens: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinkingInfo {
    pub level: Level,
    /// What was chosen; more than `level` where the model cannot do that much.
    pub asked: Level,
    pub source: Source,
    /// In tokens; none where the model takes no budget.
    pub budget: Option<u32>,
    /// The choice of this session, where there is one.
    pub session: Option<Level>,
    /// Levels that the model knows.
    pub supported: Vec<Level>,
    /// The variable that decides over every choice.
    pub locked: Option<String>,
    /// Words in a message that ask for a level.
    pub keywords: Keywords,
}
