//! Definitions of sub-agents: those that are part of the program, and Markdown files of the user's and the project's.

pub(crate) mod definition;
mod fields;
mod files;

pub(crate) use definition::{Definition, Tools};
pub(crate) use files::{Folders, load};

/// A plugin, as far as its agents need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plugin {
    /// What comes before the colon in their names.
    pub name: String,
    /// Its folder, where it really is.
    pub root: PathBuf,
    /// What it keeps over updates.
    pub data: PathBuf,
    /// Files, and folders of them.
    pub paths: Vec<PathBuf>,
}

use std::collections::HashMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::permission::{Use, Vocabulary};
use crate::stdx::nearest::nearest;
use crate::thinking::Level;

/// What is wrong with a file, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct Diagnostic {
    pub file: PathBuf,
    pub problem: String,
}

/// One sub-agent in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRow {
    pub name: String,
    pub description: String,
    /// None: it is part of the program.
    pub file: Option<PathBuf>,
    /// For people: which tools it is offered.
    pub tools: String,
    /// None: the model of the session.
    pub model: Option<String>,
    pub thinking: Option<Level>,
    /// Skills that it begins with.
    pub skills: Vec<String>,
    pub read_only: bool,
    /// The file of the one that counts instead; the inner none is one of the program.
    pub shadowed_by: Option<Option<PathBuf>>,
}

/// All definitions of a session. Frozen when it is opened, so that what the model is told of them never changes.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// Those that count least come last; of one name the first counts.
    all: Vec<Definition>,
    diagnostics: Vec<Diagnostic>,
    /// What of the project's needs the user's word.
    uses: Vec<Use>,
    /// Where the first of each name is: as it is written, and in lower case.
    exact: HashMap<String, usize>,
    folded: HashMap<String, usize>,
}

/// Characters of one definition's description that the model is told.
const DESCRIPTION: usize = 400;
/// Characters of the whole list that the model is told.
const LIST: usize = 6_000;

impl Definitions {
    /// Those that are part of the program.
    pub fn builtin() -> Definitions {
        Definitions { all: files::builtin(), ..Definitions::default() }.indexed()
    }

    /// The same, once all are there.
    fn indexed(mut self) -> Definitions {
        for (at, definition) in self.all.iter().enumerate() {
            self.exact.entry(definition.name.clone()).or_insert(at);
            self.folded.entry(definition.name.to_ascii_lowercase()).or_insert(at);
        }
        self
    }

    /// The definition that counts for a name; case is ignored where no name fits exactly.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        let at = self.exact.get(name).or_else(|| self.folded.get(&name.to_ascii_lowercase()))?;
        self.all.get(*at)
    }

    /// Those that can be launched, in the order in which they are listed.
    pub fn active(&self) -> impl Iterator<Item = &Definition> {
        self.all.iter().filter(|definition| self.shadowed_by(definition).is_none())
    }

    /// The definition of the same name that counts instead.
    pub fn shadowed_by(&self, definition: &Definition) -> Option<&Definition> {
        let first = &self.all[*self.exact.get(&definition.name)?];
        (!std::ptr::eq(first, definition)).then_some(first)
    }

    /// Says what is asked of tools that no agent can have, and finds out who only has those that change nothing: `offered` are
    /// the tools that an agent can have, with whether that is so. A rule that cannot be read stays: then the agent is not
    /// launched, rather than with more than it should have.
    pub fn check_tools(&mut self, offered: &[(&str, bool)], vocabulary: Vocabulary) {
        for definition in &mut self.all {
            let reads = |name: &String| offered.iter().any(|(offered, reads)| offered == name && *reads);
            definition.reading = matches!(&definition.tools, Tools::Only(names) if names.iter().all(reads));
        }
        let offered: Vec<&str> = offered.iter().map(|(name, _)| *name).collect();
        for definition in &self.all {
            let Some(file) = definition.source.file() else { continue };
            let mut say = |problem| self.diagnostics.push(Diagnostic { file: file.clone(), problem });
            for error in definition.disallowed.iter().filter_map(|text| vocabulary.rule(text).err()) {
                say(format!("`disallowed_tools`: {error}; the agent cannot be launched until this is fixed"));
            }
            let Tools::Only(names) = &definition.tools else { continue };
            let known = |name: &String| offered.contains(&name.as_str());
            for name in names.iter().filter(|name| !known(name)) {
                let hint = match nearest(name, offered.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", offered.join(", ")),
                };
                say(format!("`tools`: agents have no tool `{name}`; {hint}"));
            }
            if !names.iter().any(known) {
                say("none of its `tools` is available: it can only answer".into());
            }
        }
    }

    /// What of the project's definitions needs the user's word, whether agreed to or not.
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// What is wrong with files; none of it keeps other files from counting.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The list for the model: a line each, capped.
    pub fn for_model(&self) -> String {
        let mut text = String::new();
        let mut left_out = 0;
        for definition in self.active() {
            let about = crate::stdx::text::clean_line(&definition.description);
            let about: String = match about.char_indices().nth(DESCRIPTION) {
                Some((at, _)) => format!("{}…", &about[..at]),
                None => about,
            };
            let line = format!("- {}: {about} (Tools: {})\n", definition.name, definition.tools_told());
            if text.len() + line.len() > LIST {
                left_out += 1;
                continue;
            }
            text.push_str(&line);
        }
        if left_out > 0 {
            text.push_str(&format!("- … and {left_out} more\n"));
        }
        text
    }

    /// The list for people.
    pub fn rows(&self) -> Vec<AgentRow> {
        let file = |definition: &Definition| definition.source.file().cloned();
        let row = |definition: &Definition| AgentRow {
            name: definition.name.clone(),
            description: crate::stdx::text::clean_line(&definition.description),
            file: file(definition),
            tools: definition.tools_told(),
            model: definition.model.clone(),
            thinking: definition.thinking,
            skills: definition.skills.clone(),
            read_only: definition.read_only(),
            shadowed_by: self.shadowed_by(definition).map(file),
        };
        self.all.iter().map(row).collect()
    }

    /// Skills that agents cannot begin with; `lacks` says why.
    pub fn lacking(&self, lacks: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let of = |definition: &Definition| {
            let lacking = definition.skills.iter().filter_map(|name| lacks(name));
            lacking.map(|why| format!("{}: `skills`: {why}", definition.name)).collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }
}
