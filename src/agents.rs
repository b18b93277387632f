//! Definitions of sub-agents: those that are part of the program, and Markdown files of the user's and the project's.

pub mod definition;
mod fields;
mod files;

pub use definition::{Definition, Source, Tools};
pub use files::{Folders, load};

use std::path::PathBuf;

use crate::permission::Use;
use crate::stdx::nearest::nearest;

/// What is wrong with a file, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct Diagnostic {
    pub file: PathBuf,
    pub problem: String,
}

/// All definitions of a session. Frozen when it is opened, so that what the model is told of them never changes.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// Those that count least come last; of one name the first counts.
    all: Vec<Definition>,
    diagnostics: Vec<Diagnostic>,
    /// What of the project's needs the user's word.
    uses: Vec<Use>,
}

/// Characters of one definition's description that the model is told.
const DESCRIPTION: usize = 400;
/// Characters of the whole list that the model is told.
const LIST: usize = 6_000;

impl Definitions {
    /// Those that are part of the program.
    pub fn builtin() -> Definitions {
        Definitions { all: definition::builtin(), ..Definitions::default() }
    }

    /// The definition that counts for a name; case is ignored where no name fits exactly.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        let exact = self.all.iter().find(|definition| definition.name == name);
        exact.or_else(|| self.all.iter().find(|definition| definition.name.eq_ignore_ascii_case(name)))
    }

    /// Those that can be launched, in the order in which they are listed.
    pub fn active(&self) -> impl Iterator<Item = &Definition> {
        self.all.iter().filter(|definition| self.shadowed_by(definition).is_none())
    }

    /// The definition of the same name that counts instead.
    pub fn shadowed_by(&self, definition: &Definition) -> Option<&Definition> {
        let first = self.all.iter().find(|other| other.name == definition.name)?;
        (!std::ptr::eq(first, definition)).then_some(first)
    }

    /// Every definition, those that are shadowed included.
    pub fn all(&self) -> &[Definition] {
        &self.all
    }

    /// Says what is asked of tools that no agent can have: `offered` are those that one can.
    pub fn check_tools(&mut self, offered: &[String]) {
        for definition in &self.all {
            let (Source::User(file) | Source::Project(file), Tools::Only(names)) =
                (&definition.source, &definition.tools)
            else {
                continue;
            };
            let known = |name: &String| offered.contains(name);
            let mut say = |problem| self.diagnostics.push(Diagnostic { file: file.clone(), problem });
            for name in names.iter().filter(|name| !known(name)) {
                let hint = match nearest(name, offered.iter().map(String::as_str)) {
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

    /// The list for people, in Markdown. `lacks` says why an agent cannot begin with a skill that its definition names.
    pub fn report(&self, lacks: impl Fn(&str) -> Option<String>) -> String {
        let mut text = String::from("Agents the model can launch with the Task tool:\n\n");
        for definition in &self.all {
            let mut notes = vec![match &definition.source {
                Source::Builtin => "built in".to_owned(),
                Source::User(file) | Source::Project(file) => format!("`{}`", file.display()),
            }];
            notes.push(format!("tools: {}", definition.tools_told()));
            notes.push(format!("model: {}", definition.model.as_deref().unwrap_or("the session's")));
            notes.extend(definition.thinking.map(|level| format!("thinking: {level}")));
            if !definition.skills.is_empty() {
                notes.push(format!("starts with {}", definition.skills.join(", ")));
            }
            if definition.read_only() {
                notes.push("read-only".into());
            }
            if let Some(by) = self.shadowed_by(definition) {
                notes.push(match &by.source {
                    Source::Builtin => "**shadowed** by the built-in one".to_owned(),
                    Source::User(file) | Source::Project(file) => format!("**shadowed** by `{}`", file.display()),
                });
            }
            let about = crate::stdx::text::clean_line(&definition.description);
            text.push_str(&format!("- **{}** — {about}\n  {}\n", definition.name, notes.join(" · ")));
        }
        let skills = self.all.iter().flat_map(|definition| {
            let lacking = definition.skills.iter().filter_map(|name| lacks(name));
            lacking.map(|why| format!("{}: `skills`: {why}", definition.name))
        });
        let problems: Vec<String> = self.diagnostics.iter().map(Diagnostic::to_string).chain(skills).collect();
        if !problems.is_empty() {
            text.push_str("\nProblems in files:\n\n");
            problems.iter().for_each(|problem| text.push_str(&format!("- {problem}\n")));
        }
        text.push_str("\nDefine your own in `.claude/agents/<name>.md`.\n");
        text
    }
}
