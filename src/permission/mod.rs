//! Decides whether a tool call may run. Pure: asks nobody, reads nothing.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How much runs without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    #[default]
    #[serde(rename = "default")]
    Default,
    #[serde(rename = "acceptEdits")]
    AcceptEdits,
    #[serde(rename = "plan")]
    Plan,
    #[serde(rename = "bypassPermissions")]
    Bypass,
    #[serde(rename = "dontAsk")]
    DontAsk,
}

/// What a call touches, as its tool declares it. Paths are absolute and lexically clean, links not resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Access {
    /// Nothing outside the conversation (TodoWrite).
    Free,
    /// Reads a file or lists a folder (Read, LS).
    Read { path: PathBuf },
    /// Searches below a folder (Grep, Glob).
    Search { root: PathBuf },
    /// Changes or creates one file (Write, Edit, NotebookEdit).
    Write { path: PathBuf },
    /// Runs a command line in `cwd`.
    Shell { command: String, cwd: PathBuf },
    /// Fetches from the web.
    Fetch { url: String },
    /// Asks a search engine.
    WebSearch,
    /// Anything else; `specifier` is what stands between the parentheses of a rule (`Explore`, a skill's name).
    Other { specifier: Option<String>, read_only: bool },
}

/// What is to happen with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Behavior {
    Allow,
    Ask,
    Deny,
}
