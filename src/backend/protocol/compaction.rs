//! What front ends are told of the window and of compaction.

use serde::{Deserialize, Serialize};

use crate::message::Usage;
use crate::session::entry::{CacheBreak, Seq};

pub use crate::session::entry::{Receipt, Trigger};

/// A step of keeping the conversation inside the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Compaction {
    /// A model tier begins; ends with `Completed` or `Failed`.
    Started {
        trigger: Trigger,
        tokens: u64,
    },
    /// What is happening, for the spinner, and how many tokens of a summary have come.
    Progress {
        phase: String,
        received: u64,
    },
    /// A boundary is in the log. `summary` is what stands for what left.
    Completed {
        receipt: Receipt,
        summary: String,
    },
    /// The context is as it was.
    Failed {
        trigger: Trigger,
        reason: FailureReason,
        text: String,
        /// What the requests for it cost all the same.
        usage: Usage,
        cost_usd: Option<f64>,
    },
    MicroApplied {
        trigger: Trigger,
        removed_results: u64,
        saved_tokens: u64,
    },
    SessionMemoryApplied {
        saved_tokens: u64,
        summary_tokens: u64,
    },
    /// A compaction was committed, and the context is still above the mark.
    ThresholdExceeded {
        tokens: u64,
        target: u64,
    },
}

/// Why a compaction came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    NoSummary,
    ApiError,
    PromptTooLong,
    Interrupted,
    /// A hook forbade it.
    Blocked,
    /// The summary would not have freed enough room.
    NoProgress,
    /// No further request for a summary may be paid for.
    Budget,
}

/// A compaction that put a boundary into the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// Entry of the boundary.
    pub seq: Seq,
    /// RFC 3339, UTC.
    pub ts: String,
    pub trigger: Trigger,
    pub tier: String,
    /// Tokens of the request before and after.
    pub before: u64,
    pub after: u64,
    /// It was undone.
    pub undone: bool,
}

/// How full the window is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fullness {
    #[default]
    Fine,
    Warning,
    Error,
    /// Nothing is sent as it is.
    Blocking,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageInfo {
    /// Of this session so far.
    pub total: Usage,
    pub cost_usd: Option<f64>,
    /// Tokens that stand in the window now, estimated where not counted yet.
    pub context: u64,
    pub window: u64,
    /// Percent of the room before automatic compaction, or before the end when it is off.
    pub left: u8,
    pub fullness: Fullness,
    /// The last request was dearer than it should have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Box<CacheBreak>>,
}
