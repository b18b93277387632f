//! Definitions of sub-agents: those that are part of the program, and Markdown files of the user's and the project's.

pub mod definition;
mod files;

pub use definition::{Definition, Source, Tools};
pub use files::{Folders, load};

use std::path::PathBuf;

/// What is wrong with a file, and how to mend it.
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
}

/// Characters of one definition's description that the model is told.
const DESCRIPTION: usize = 400;
/// Characters of the whole list that the model is told.
const LIST: usize = 6_000;

impl Definitions {
    /// Those that are part of the program.
    pub fn builtin() -> Definitions {
        Definitions { all: definition::builtin(), diagnostics: Vec::new() }
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
            text.push_str(&format!("- … and {left_out} more that did not fit here\n"));
        }
        text
    }

    /// The list for people, in Markdown.
    pub fn report(&self) -> String {
        let mut text = String::from("Agents that the model can launch with the Task tool:\n\n");
        for definition in &self.all {
            let mut notes = vec![match &definition.source {
                Source::Builtin => "built in".to_owned(),
                Source::User(file) | Source::Project(file) => format!("`{}`", file.display()),
            }];
            notes.push(format!("tools: {}", definition.tools_told()));
            notes.push(format!("model: {}", definition.model.as_deref().unwrap_or("that of the session")));
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
        if !self.diagnostics.is_empty() {
            text.push_str("\nWhat is wrong with files:\n\n");
            self.diagnostics.iter().for_each(|problem| text.push_str(&format!("- {problem}\n")));
        }
        text.push_str("\nFiles of your own: `.claude/agents/<name>.md`.\n");
        text
    }
}
