//! What the log keeps of a request for the provider's cache: its segments, and what became of those that were cached.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Seq;
use crate::provider::ToolSpec;

/// The start of every request of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frozen {
    /// A hash of what the user asked for in it.
    pub given: String,
    pub system: Arc<str>,
    pub tools: Arc<[ToolSpec]>,
}

/// A request that is about to be sent, told as the difference to the one before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Provider and model.
    pub model: String,
    /// The address that it goes to.
    pub route: String,
    /// How hard is thought, with the beta that may bring.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thinking: String,
    /// Seconds that the provider keeps a prefix; 0: it does not say.
    #[serde(default)]
    pub ttl: u64,
    /// Tools, system prompt and parameters, where they are not as before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub head: Vec<Segment>,
    /// Segments of messages at the start that are as before.
    pub keep: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<Segment>,
    /// Segments at the end that are as before.
    #[serde(default)]
    pub tail: usize,
    /// Numbers of segments, the head included, that end at a cache breakpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<usize>,
}

/// One segment: name, eight bytes of its SHA-256 in hex, bytes, estimated tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment(pub String, pub String, pub u32, pub u32);

/// Tokens that the provider had in its cache, and that were paid for again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheBreak {
    /// The entry of the request, and of the one that had filled the cache.
    pub request: Seq,
    pub before: Seq,
    /// Tokens that should have been read, of those that the request has in common with an earlier one.
    pub expected: u64,
    pub read: u64,
    /// Tokens that had been cached and were sent again.
    pub again: u64,
    /// What sending them again cost; none without prices.
    pub cost_usd: Option<f64>,
    pub cause: Cause,
}

/// Why they were not read, the first that holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Cause {
    /// Too much time had passed, in seconds.
    Expired { gap: u64, ttl: u64 },
    /// The request differs from `offset` on, in bytes of its segments.
    Changed { segment: String, offset: u64, by: By },
    /// Prefixes below so many tokens are not cached.
    BelowMinimum { minimum: u64 },
    /// More blocks than the provider looks back from a breakpoint.
    BreakpointLimit { blocks: u64 },
    /// Another address, or another key.
    Route { from: String, to: String },
    /// Same prefix, in time: the provider lost it.
    Provider,
}

/// What changed a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum By {
    Tools {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
    },
    System,
    Model {
        from: String,
        to: String,
    },
    Thinking {
        from: String,
        to: String,
    },
    Compaction {
        number: usize,
    },
    CompactionUndone,
    Rewind,
    Cleared,
    Clipped,
    Archived,
    /// Signatures of another provider are not sent.
    Signatures,
    /// No entry of the log says why.
    Unknown,
}
