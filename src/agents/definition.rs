//! One sub-agent: who it is, what it may use, and how far it may go.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::permission::Mode;

/// Where a definition comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Builtin,
    User(PathBuf),
    Project(PathBuf),
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
    /// Tools, or rules like `Bash(rm:*)`, that it never gets.
    pub disallowed: Vec<String>,
    /// A role, an id or `provider/id`. None: the model of the session.
    pub model: Option<String>,
    /// Counts only where it is stricter than the mode of the session.
    pub mode: Option<Mode>,
    /// Model calls in one run.
    pub max_turns: Option<u32>,
    /// Skills that it begins with.
    pub skills: Vec<String>,
    /// Hooks that are alive while it runs, in the shape of settings files.
    pub hooks: Option<Value>,
    /// Its system prompt.
    pub prompt: Arc<str>,
}

/// Tools that change nothing, whatever their input.
const READ_ONLY: [&str; 7] = ["Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "TodoWrite"];

/// Longest system prompt, in characters.
const PROMPT: usize = 60_000;
/// Longest description, in characters.
const DESCRIPTION: usize = 2_000;
/// Longest name, in characters.
const NAME: usize = 64;

pub(super) fn builtin() -> Vec<Definition> {
    let of = |name: &str, description: &str, tools: Tools, mode: Option<Mode>, prompt: &str| Definition {
        name: name.into(),
        description: description.into(),
        source: Source::Builtin,
        tools,
        disallowed: Vec::new(),
        model: None,
        mode,
        max_turns: None,
        skills: Vec::new(),
        hooks: None,
        prompt: prompt.trim().into(),
    };
    let reading = ["Read", "Grep", "Glob", "LS", "Bash", "WebFetch", "WebSearch", "TodoWrite"];
    let reading = || Tools::Only(reading.map(str::to_owned).to_vec());
    vec![
        of(
            "general-purpose",
            "Works on a task of several steps on its own: searching where you do not know the place, changing code, checking it.",
            Tools::All,
            None,
            include_str!("../../assets/prompts/agents/general-purpose.md"),
        ),
        of(
            "Explore",
            "Finds its way through a code base and reports, with paths and lines. Changes nothing. Say how thorough it shall be: quick, medium or very thorough.",
            reading(),
            Some(Mode::Plan),
            include_str!("../../assets/prompts/agents/explore.md"),
        ),
        of(
            "Plan",
            "Works out how a change should be made: steps, critical files, trade-offs. Changes nothing.",
            reading(),
            Some(Mode::Plan),
            include_str!("../../assets/prompts/agents/plan.md"),
        ),
    ]
}

impl Definition {
    /// Whether nothing that it does can change anything: the engine holds it to that.
    pub fn read_only(&self) -> bool {
        self.mode == Some(Mode::Plan)
            || matches!(&self.tools, Tools::Only(names) if names.iter().all(|name| READ_ONLY.contains(&name.as_str())))
    }

    /// Whether it is offered a tool, as far as the definition goes.
    pub fn offers(&self, tool: &str) -> bool {
        let listed = match &self.tools {
            Tools::All => true,
            Tools::Only(names) => names.iter().any(|name| name == tool),
        };
        listed && !self.disallowed.iter().any(|name| name == tool)
    }

    /// Rules among `disallowed`: what stands in parentheses is denied, the tool itself is offered.
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
            without => format!("{offered}, but for {}", without.join(", ")),
        }
    }

    /// The mode that it runs in below an agent in mode `parent`: never a laxer one.
    pub fn mode_below(&self, parent: Mode) -> Mode {
        let Some(own) = self.mode else { return parent };
        let strictness = |mode: Mode| match mode {
            Mode::Plan => 0,
            Mode::DontAsk => 1,
            Mode::Default => 2,
            Mode::AcceptEdits => 3,
            Mode::Bypass => 4,
        };
        if strictness(own) < strictness(parent) { own } else { parent }
    }

    /// Makes a definition of a file's fields and body; `stem` is the file's name without its ending. What is wrong with
    /// single fields is told to `problem`, and the field is left out.
    pub(super) fn of_file(
        stem: &str,
        source: Source,
        fields: &Map<String, Value>,
        body: &str,
        problem: &mut dyn FnMut(String),
    ) -> Definition {
        let text = |key: &str| match fields.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => None,
        };
        let mut name = text("name").unwrap_or_else(|| stem.to_owned());
        if !plain(&name) {
            problem(format!(
                "the name {name:?} is not made of letters, digits, `-`, `_` and `:`; it is called {stem:?}"
            ));
            name = stem.to_owned();
        }
        let first = || body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
        let description = text("description").unwrap_or_else(|| {
            problem("it has no `description`: the model cannot know when to use it".into());
            first().unwrap_or("no description").to_owned()
        });
        if body.trim().is_empty() {
            problem("there is no text below the frontmatter: that would be its system prompt".into());
        }
        let mode = text("permission_mode").and_then(|word| match word.parse::<Mode>() {
            Ok(mode) => Some(mode),
            Err(error) => {
                problem(format!("`permission_mode`: {error}"));
                None
            }
        });
        let max_turns = fields.get("max_turns").and_then(|value| {
            let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
            let turns = number.and_then(|number| u32::try_from(number).ok()).filter(|turns| *turns > 0);
            if turns.is_none() {
                problem(format!("`max_turns` is {value}, not a number from 1"));
            }
            turns
        });
        let tools = match fields.get("tools") {
            None | Some(Value::Null) => Tools::All,
            Some(value) => {
                let mut names = list(value);
                for name in names.iter_mut().filter(|name| name.contains('(')) {
                    problem(format!(
                        "`tools` names tools only: what stands in the parentheses of `{name}` has no effect"
                    ));
                    name.truncate(name.find('(').unwrap_or(name.len()));
                }
                if names.iter().any(|name| name == "*") { Tools::All } else { Tools::Only(names) }
            }
        };
        let model = text("model").filter(|model| model != "inherit");
        Definition {
            name,
            description: cut(description, DESCRIPTION).0,
            source,
            tools,
            disallowed: fields.get("disallowed_tools").map(list).unwrap_or_default(),
            model,
            mode,
            max_turns,
            skills: fields.get("skills").map(list).unwrap_or_default(),
            hooks: fields.get("hooks").filter(|hooks| hooks.is_object()).cloned(),
            prompt: {
                let (prompt, whole) = cut(body.trim().to_owned(), PROMPT);
                if !whole {
                    problem(format!("the prompt is longer than {PROMPT} characters; the rest is left out"));
                }
                prompt.into()
            },
        }
    }
}

fn plain(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= NAME
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

/// At most so many characters, and whether that is all.
fn cut(text: String, most: usize) -> (String, bool) {
    match text.char_indices().nth(most) {
        Some((at, _)) => (text[..at].to_owned(), false),
        None => (text, true),
    }
}

/// A list, or names in one text with commas or blanks between them; what stands in parentheses stays together.
fn list(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(list).collect(),
        Value::String(text) => {
            let (mut names, mut name, mut depth) = (Vec::new(), String::new(), 0usize);
            for c in text.chars() {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 0 && (c == ',' || c.is_whitespace()) {
                    names.push(std::mem::take(&mut name));
                } else {
                    name.push(c);
                }
            }
            names.push(name);
            names.retain(|name| !name.is_empty());
            names
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_definition_is_laxer_than_its_session() {
        let definition = |mode| Definition { mode, ..builtin().remove(0) };
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

    #[test]
    fn lists_are_read_in_every_spelling() {
        for (value, want) in [
            (serde_json::json!("Read, Grep"), vec!["Read", "Grep"]),
            (serde_json::json!("Read Bash(git diff, x)"), vec!["Read", "Bash(git diff, x)"]),
            (serde_json::json!(["Read", "Grep,LS"]), vec!["Read", "Grep", "LS"]),
            (serde_json::json!(3), vec![]),
        ] {
            assert_eq!(list(&value), want, "{value}");
        }
    }

    #[test]
    fn what_changes_nothing_is_known() {
        let tools = |names: &str| Definition { tools: Tools::Only(list(&names.into())), ..builtin().remove(0) };
        for (definition, want) in [
            (tools("Read, Grep"), true),
            (tools("Read, Bash"), false),
            (tools("Read, Write"), false),
            (builtin().remove(0), false),
            (builtin().remove(1), true),
            (builtin().remove(2), true),
        ] {
            assert_eq!(definition.read_only(), want, "{definition:?}");
        }
    }
}
