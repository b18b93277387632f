//! What front ends are told of turns.

use serde::{Deserialize, Serialize};

use crate::message::Usage;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Turn {
    Started,
    /// What the session has cost so far, and how long this turn waited for models; before its end.
    Spent {
        api_millis: u64,
        models: Vec<ModelShare>,
    },
    Ended {
        end: TurnEnd,
        usage: Usage,
        cost_usd: Option<f64>,
        millis: u64,
    },
}

/// What a model was asked for in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelShare {
    /// With its provider.
    pub model: String,
    pub usage: Usage,
    /// None without prices.
    pub cost_usd: Option<f64>,
    /// Tokens that fit, and the most of one answer; none where the model is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<(u64, u32)>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    Done,
    Interrupted,
    /// `Event::Error` said why.
    Failed,
    /// `max_turns` was reached.
    MaxTurns,
    /// The same call, the same result, again and again.
    Repeated,
    /// The user said no without saying what to do instead.
    Refused,
    /// A hook said that everything is to stop.
    Stopped,
    /// A budget is used up; `Event::Notice` said which.
    Budget,
    /// An answer of a given shape was asked for, and none came that fits.
    NoAnswer,
}
