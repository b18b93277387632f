//! What `/diff` reviews, hunk by hunk, and what the user decides about it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::message::BlobId;
use crate::session::entry::Seq;

/// Changes that are reviewed together: all of the session, or those of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// Where the turn begins; none for all of the session.
    pub turn: Option<Seq>,
    /// How its prompt begins; empty for all of the session.
    pub prompt: String,
    pub files: Vec<Reviewed>,
}

/// A file that the agent changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reviewed {
    pub path: PathBuf,
    /// The path for people.
    pub name: String,
    /// What it would hold without the changes, and what it holds; none where there is no file.
    pub without: Option<BlobId>,
    pub now: Option<BlobId>,
    pub hunks: Vec<Hunk>,
    /// Why it has no hunks.
    pub held: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hunk {
    pub span: Span,
    pub unified: String,
    pub added: u32,
    pub removed: u32,
}

/// Lines of the two contents that differ, counted from 0; the ends are not part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub old: (usize, usize),
    pub new: (usize, usize),
}

/// What was decided about a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub path: PathBuf,
    pub name: String,
    pub without: Option<BlobId>,
    pub now: Option<BlobId>,
    pub hunks: Vec<Judged>,
}

/// A hunk that is reverted, or has a comment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    pub span: Span,
    pub unified: String,
    pub revert: bool,
    /// Empty: none.
    pub comment: String,
}
