//! One sub-agent: who it is, what it may use, and how far it may go.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::permission::Mode;
use crate::stdx::sealed::Sealed;
use crate::thinking::Level;

/// Where a definition comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Builtin,
    /// Of the program that runs us.
    Outside,
    User(PathBuf),
    Project(PathBuf),
    Plugin(PathBuf),
}

impl Source {
    /// Where it is written; none for one of the program's own.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            Source::Builtin | Source::Outside => None,
            Source::User(file) | Source::Project(file) | Source::Plugin(file) => Some(file),
        }
    }
}

/// Which tools an agent is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tools {
    /// All that a sub-agent can have.
    All,
    Only(Vec<String>),
}

/// A kind of sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// As `subagent_type` names it.
    pub name: String,
    /// When the model should use it.
    pub description: String,
    pub source: Source,
    pub tools: Tools,
    /// All of them are tools that change nothing; known once they were looked for.
    pub reading: bool,
    /// Tools, or rules like `Bash(rm:*)`, that it never gets.
    pub disallowed: Vec<String>,
    /// A role, an id or `provider/id`. None: the model of the session.
    pub model: Option<String>,
    /// Counts only where it is stricter than the mode of the session.
    pub mode: Option<Mode>,
    /// How hard it thinks. None: as the session does.
    pub thinking: Option<Level>,
    /// Model calls in one run.
    pub max_turns: Option<u32>,
    /// Skills that it begins with.
    pub skills: Vec<String>,
    /// Hooks that are alive while it runs, in the shape of settings files.
    pub hooks: Option<Value>,
    /// Files of the project that its hooks run, as they were when it was read.
    pub sealed: Sealed,
    /// Its system prompt.
    pub prompt: Arc<str>,
}

impl Definition {
    /// Whether nothing that it does can change anything: the engine holds it to that.
    pub fn read_only(&self) -> bool {
        self.mode == Some(Mode::Plan) || self.reading
    }

    /// Whether it is offered a tool, as far as the definition goes.
    pub fn offers(&self, tool: &str) -> bool {
        let listed = match &self.tools {
            Tools::All => true,
            Tools::Only(names) => names.iter().any(|name| name == tool),
        };
        listed && !self.disallowed.iter().any(|name| name == tool)
    }

    /// Whether it names a tool among those that it is offered.
    pub fn names(&self, tool: &str) -> bool {
        matches!(self.tools, Tools::Only(_)) && self.offers(tool)
    }

    /// Rules among `disallowed`: what is in parentheses is denied, the tool itself is offered.
    pub fn denied(&self) -> impl Iterator<Item = &str> {
        self.disallowed.iter().map(String::as_str).filter(|text| text.contains('('))
    }

    /// The tools in words.
    pub fn tools_told(&self) -> String {
        let offered = match &self.tools {
            Tools::All => "all".to_owned(),
            Tools::Only(names) => names.join(", "),
        };
        match self.disallowed.as_slice() {
            [] => offered,
            without => format!("{offered}, except {}", without.join(", ")),
        }
    }

    /// The mode that it runs in below an agent in mode `parent`: never a laxer one.
    pub fn mode_below(&self, parent: Mode) -> Mode {
        let Some(own) = self.mode else { return parent };
        let strictness = |mode: Mode| match mode {
            Mode::Plan => 0,
            Mode::DontAsk => 1,
            Mode::Default => 2,
            Mode::Edits => 3,
            Mode::AcceptEdits => 4,
            Mode::Bypass => 5,
        };
        if strictness(own) < strictness(parent) { own } else { parent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_definition_is_laxer_than_its_session() {
        let definition = |mode| Definition { mode, ..super::super::files::builtin().remove(0) };
        use Mode::{AcceptEdits, Bypass, Default, DontAsk, Plan};
        for (own, parent, want) in [
            (None, AcceptEdits, AcceptEdits),
            (Some(Bypass), Default, Default),
            (Some(AcceptEdits), Default, Default),
            (Some(Default), AcceptEdits, Default),
            (Some(AcceptEdits), Bypass, AcceptEdits),
            (Some(Bypass), Plan, Plan),
            (Some(Default), DontAsk, DontAsk),
            (Some(DontAsk), Plan, Plan),
            (Some(DontAsk), Default, DontAsk),
            (Some(Plan), DontAsk, Plan),
            (Some(Plan), Bypass, Plan),
        ] {
            assert_eq!(definition(own).mode_below(parent), want, "{own:?} below {parent:?}");
        }
    }
}
