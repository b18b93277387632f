//! Decides whether a tool call may run. Asks nobody; looks at nothing but where paths lead and what git would obey.

mod approved;
pub mod bound;
mod commands;
mod confine;
pub mod decide;
mod dynamic;
mod edit;
mod evaluate;
pub mod files;
mod found;
mod git_hooks;
mod guarding;
mod installed;
mod line;
mod matching;
mod paths;
mod permit;
pub mod places;
mod plain;
mod repository;
pub mod rule;
pub mod search_filter;
pub mod settings;
mod shell;
mod suggest;
pub mod trust;
mod values;
mod vast;
pub mod vocabulary;
mod wrapper;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::sandbox::proxy::Contact;
use crate::stdx::{glob, links};

pub use approved::{Approved, Escapes, Profile};
pub use bound::Bound;
pub use commands::git::QUIET as QUIET_GIT;
pub use commands::{Listed, listed_git_options, listed_options};
pub use decide::{Decision, Query, decide};
pub use files::{Disk, Files};
pub use git_hooks::GitHooks;
pub use permit::{Consent, Permit};
pub use places::{Places, Run, WITHHELD, in_real_folder};
pub use repository::{OwnGit, VARIABLES as GIT_VARIABLES};
pub use rule::{Entry, Rule, RuleError, RuleSet, Source, Walls};
pub use search_filter::Sight;
pub use settings::PermissionSettings;
pub use shell::CommandLine;
pub use trust::{Trust, Use};
pub use vocabulary::{Matches, Ruled, Shows, Vocabulary};

/// How much runs without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    #[default]
    #[serde(rename = "default")]
    Default,
    #[serde(rename = "acceptEdits")]
    AcceptEdits,
    /// Edits as in `AcceptEdits`, and no command: somebody answered so to an edit. It cannot be chosen otherwise.
    #[serde(rename = "edits")]
    Edits,
    #[serde(rename = "plan")]
    Plan,
    #[serde(rename = "bypassPermissions")]
    Bypass,
    #[serde(rename = "dontAsk")]
    DontAsk,
}

impl Mode {
    /// Every mode that can be chosen, in the order in which help texts list them.
    pub const ALL: [Mode; 5] = [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::Bypass, Mode::DontAsk];

    /// The name in flags, settings and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::Edits => "edits",
            Mode::Plan => "plan",
            Mode::Bypass => "bypassPermissions",
            Mode::DontAsk => "dontAsk",
        }
    }

    /// What the status line shows.
    pub fn label(self) -> &'static str {
        match self {
            Mode::Default => "ask first",
            Mode::AcceptEdits => "accept edits",
            Mode::Edits => "all edits",
            Mode::Plan => "plan",
            Mode::Bypass => "bypass permissions",
            Mode::DontAsk => "don't ask",
        }
    }

    /// Why a session may not be started in this mode: Bypass as root needs a sandbox around it.
    pub fn refused(self, root: Root, sandbox: Sandbox) -> Option<&'static str> {
        (self == Mode::Bypass && root == Root::Yes && sandbox == Sandbox::None).then_some(
            "bypassPermissions is refused for root: run as another user, or set COCODE_SANDBOXED=1 inside a sandbox",
        )
    }
}

/// Whether the process has every right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    Yes,
    No,
}

/// Whether something outside of us confines the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    Outer,
    None,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        Mode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
            let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
            format!("unknown permission mode {text:?}: use one of {}", names.join(", "))
        })
    }
}

/// What a call touches, as its tool declares it. Paths are absolute and lexically clean, links not resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    Shell { command: CommandLine, cwd: PathBuf },
    /// Fetches from the web.
    Fetch { url: String },
    /// A command that runs connects somewhere.
    Connect(Contact),
    /// Asks a search engine.
    WebSearch,
    /// Reads what was said in earlier sessions of the project: `Recall(earlier)`.
    Sessions,
    /// Launches a sub-agent, whose calls are judged one by one. `read_only`: it can change nothing.
    Agent { kind: String, read_only: bool },
    /// Starts a skill, whose calls are judged one by one.
    Skill { name: String },
    /// Whatever a tool of somebody else does; `read_only` is its own word. `whole` is its name where that was too long, or
    /// another one's: what forbids that forbids this.
    /// `changed`: how it describes itself in another way than when it last ran.
    Foreign { read_only: bool, whole: Option<String>, changed: Option<String> },
}

impl Access {
    /// The file or folder that it names.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Access::Read { path } | Access::Search { root: path } | Access::Write { path } => Some(path),
            _ => None,
        }
    }

    /// Whether what the user allows of it holds for the session at most.
    pub fn session_only(&self) -> bool {
        matches!(self, Access::Sessions)
    }

    /// The same, links followed. Taken before the decision: the call goes there or nowhere.
    pub fn target(&self) -> Option<PathBuf> {
        self.path().map(links::resolve)
    }
}

/// What is to happen with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Behavior {
    Allow,
    Ask,
    Deny,
}

impl Behavior {
    /// The name in settings and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Behavior::Allow => "allow",
            Behavior::Ask => "ask",
            Behavior::Deny => "deny",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_names_round_trip() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        assert!("yolo".parse::<Mode>().unwrap_err().contains("acceptEdits"));
    }

    #[test]
    fn bypass_is_refused_for_root_outside_a_sandbox() {
        assert!(Mode::Bypass.refused(Root::Yes, Sandbox::None).is_some());
        assert_eq!(Mode::Bypass.refused(Root::Yes, Sandbox::Outer), None);
        assert_eq!(Mode::Bypass.refused(Root::No, Sandbox::None), None);
        assert_eq!(Mode::Plan.refused(Root::Yes, Sandbox::None), None);
    }
}
