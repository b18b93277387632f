//! The words of rules: names of tools, and what a rule of each matches. The tools state it; nothing here knows one by name.

use super::rule::{Rule, RuleError};
use crate::stdx::nearest::nearest;

/// Every name that a rule may begin with.
#[derive(Debug, Clone, Copy)]
pub struct Vocabulary(pub &'static [(&'static str, Ruled)]);

/// What rules have to do with a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruled {
    pub matches: Matches,
    /// Rules of this tool speak of its calls, too.
    pub under: Option<&'static str>,
    /// What its results show of the files below a folder.
    pub shows: Option<Shows>,
}

/// What is between the parentheses of a tool's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matches {
    /// A name; nothing, where calls have none.
    Name,
    Path,
    /// A path. Rules of the one tool that has this speak of whatever reads a file, a command line included.
    Reading,
    /// As for reading, of whatever changes one.
    Editing,
    /// A path. A redirection is judged as a call of the one tool that has this.
    Writing,
    /// A command line.
    Command,
    /// `domain:` and a host.
    Domain,
}

/// How much of a file is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    Names,
    Lines,
}

impl Ruled {
    pub const BY_NAME: Ruled = Ruled { matches: Matches::Name, under: None, shows: None };
}

impl Vocabulary {
    /// What is known of a tool; another one is matched by its name.
    pub fn of(&self, tool: &str) -> Ruled {
        self.0.iter().find(|(name, _)| *name == tool).map_or(Ruled::BY_NAME, |(_, ruled)| *ruled)
    }

    /// The tool whose rules match this.
    pub(super) fn tool(&self, matches: Matches) -> &'static str {
        self.0.iter().find(|(_, ruled)| ruled.matches == matches).map_or("", |(name, _)| name)
    }

    /// The tools whose calls rules of this one speak of besides its own.
    pub(super) fn below(&self, tool: &str) -> Vec<&'static str> {
        self.0.iter().filter(|(_, ruled)| ruled.under == Some(tool)).map(|(name, _)| *name).collect()
    }

    /// Reads a rule.
    ///
    /// # Errors
    /// When it is not `Tool` or `Tool(specifier)`, or this tool has no such specifier.
    pub fn rule(&self, text: &str) -> Result<Rule, RuleError> {
        Rule::read(text, *self)
    }

    /// What a rule that can be read probably got wrong: a name like that of a tool, but not quite.
    pub fn misspelt(&self, rule: &Rule) -> Option<RuleError> {
        let name = rule.tool();
        let known = self.0.iter().any(|(known, _)| *known == name) || name.starts_with("mcp__");
        let near = nearest(name, self.0.iter().map(|(known, _)| *known)).filter(|_| !known)?;
        Some(RuleError {
            rule: rule.to_string(),
            problem: format!("no tool is named {name}, so it matches nothing"),
            fix: format!("did you mean {near}?"),
        })
    }
}

/// Tools as the program has them, for the tests here: the real list lies above, and a test there reads each tool's own row.
#[cfg(test)]
pub(super) const TOOLS: Vocabulary = {
    const fn tool(matches: Matches, under: Option<&'static str>, shows: Option<Shows>) -> Ruled {
        Ruled { matches, under, shows }
    }
    Vocabulary(&[
        ("Read", tool(Matches::Reading, None, None)),
        ("Write", tool(Matches::Writing, Some("Edit"), None)),
        ("Edit", tool(Matches::Editing, None, None)),
        ("Bash", tool(Matches::Command, None, None)),
        ("Grep", tool(Matches::Path, Some("Read"), Some(Shows::Lines))),
        ("Glob", tool(Matches::Path, Some("Read"), Some(Shows::Names))),
        ("LS", tool(Matches::Path, Some("Read"), Some(Shows::Names))),
        ("TodoWrite", Ruled::BY_NAME),
        ("WebFetch", tool(Matches::Domain, None, None)),
        ("NotebookEdit", tool(Matches::Path, Some("Edit"), None)),
        ("Skill", Ruled::BY_NAME),
        ("Task", tool(Matches::Name, Some("Agent"), None)),
        ("Agent", tool(Matches::Name, Some("Task"), None)),
        ("MultiEdit", tool(Matches::Path, Some("Edit"), None)),
    ])
};
