//! What `/diff` reviews, hunk by hunk, and what the user decides about it.

use std::fmt;
use std::path::{Path, PathBuf};

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
    /// The commands that changed it, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<Author>,
}

/// A command that changed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// How its first line begins.
    pub command: String,
    /// The sub-agent that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.command)?;
        self.agent.iter().try_for_each(|agent| write!(f, " ({agent})"))
    }
}

/// A file, and the commands that changed it, in the order in which they ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedBy {
    pub path: PathBuf,
    pub by: Vec<Author>,
}

impl ChangedBy {
    /// The commands in one line, for people.
    pub fn told(&self) -> String {
        authors(&self.by)
    }
}

/// That a file was restored, and what had changed it.
pub fn restored_line(path: &Path, by: &[ChangedBy]) -> String {
    match by.iter().find(|by| by.path == path) {
        Some(by) => format!("restored {} (changed by {})", path.display(), by.told()),
        None => format!("restored {}", path.display()),
    }
}

/// Commands in one line, for people.
pub fn authors(by: &[Author]) -> String {
    by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
