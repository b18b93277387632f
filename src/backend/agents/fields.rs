//! From a file's frontmatter to a definition: each field does what it says, or a diagnostic names what to write instead.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::definition::{Definition, Source, Tools};
use crate::hooks;
use crate::permission::Mode;
use crate::stdx::frontmatter::Taken;
use crate::thinking::Level;

/// Longest system prompt, in characters.
const PROMPT: usize = 60_000;
/// Longest description, in characters.
const DESCRIPTION: usize = 2_000;
/// Longest name, in characters.
const NAME: usize = 64;

/// Fields that mean something here.
const KNOWN: [&str; 11] = [
    "name",
    "description",
    "tools",
    "disallowed_tools",
    "model",
    "permission_mode",
    "max_turns",
    "skills",
    "hooks",
    "effort",
    "thinking",
];
/// Fields of other programs, with what a user may expect of them.
const WITHOUT_EFFECT: [(&str, &str); 6] = [
    ("color", "agents have no color of their own"),
    ("memory", "agents have no memory of their own; they read the project's memory files"),
    ("background", "the reply always waits for its agents"),
    ("isolation", "agents work in the session's folder"),
    ("mcp_servers", "cocode does not start servers for an agent"),
    ("initial_prompt", "the prompt comes from the call"),
];

/// Reads the fields and the body of a file; `stem` is its name without the ending. What is wrong with single fields is
/// told to `problem`, and the field is left out.
pub(super) fn definition(
    stem: &str,
    source: Source,
    fields: &Map<String, Value>,
    body: &str,
    problem: &mut dyn FnMut(String),
) -> Definition {
    let mut fields = Fields { fields, problem };
    fields.judge_keys();
    let mut name = fields.text("name").unwrap_or_else(|| stem.to_owned());
    if !plain(&name) {
        (fields.problem)(format!(
            "the name {name:?} is not made of letters, digits, `-`, `_` and `:`; it is called {stem:?}"
        ));
        name = stem.to_owned();
    }
    let first = || body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    let description = fields.text("description").unwrap_or_else(|| {
        (fields.problem)("no `description`: the model cannot know when to use it".into());
        first().unwrap_or("no description").to_owned()
    });
    if body.trim().is_empty() {
        (fields.problem)("no text below the frontmatter, which would be its system prompt".into());
    }
    let (prompt, whole) = cut(body.trim().to_owned(), PROMPT);
    if !whole {
        (fields.problem)(format!("the prompt is longer than {PROMPT} characters; the rest is ignored"));
    }
    let thinking = fields.effort("thinking").or_else(|| fields.effort("effort"));
    Definition {
        name,
        description: cut(description, DESCRIPTION).0,
        source,
        tools: fields.tools(),
        reading: false,
        disallowed: fields.names("disallowed_tools"),
        model: fields.text("model").filter(|model| model != "inherit"),
        mode: fields.parsed::<Mode>("permission_mode"),
        thinking,
        max_turns: fields.max_turns(),
        skills: fields.names("skills"),
        hooks: fields.hooks(),
        sealed: crate::stdx::sealed::Sealed::default(),
        prompt: prompt.into(),
    }
}

struct Fields<'a, 'p> {
    fields: &'a Map<String, Value>,
    problem: &'p mut dyn FnMut(String),
}

impl<'a> Fields<'a, '_> {
    fn judge_keys(&mut self) {
        for key in self.fields.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            (self.problem)(match WITHOUT_EFFECT.iter().find(|(known, _)| known == key) {
                Some((_, why)) => format!("`{key}` has no effect: {why}"),
                None => format!("unknown field `{key}`; the fields are {}", KNOWN.join(", ")),
            });
        }
    }

    /// The value, unless it is empty.
    fn given(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let value = self.given(key)?;
        let Some(text) = Taken::Strictly.text(value).map(|text| text.trim().to_owned()) else {
            (self.problem)(format!("`{key}` is {value}, not text"));
            return None;
        };
        if text.is_empty() {
            (self.problem)(format!("`{key}` is empty and ignored"));
            return None;
        }
        Some(text)
    }

    fn parsed<T: FromStr<Err: std::fmt::Display>>(&mut self, key: &str) -> Option<T> {
        let word = self.text(key)?;
        word.parse().map_err(|error| (self.problem)(format!("`{key}`: {error}"))).ok()
    }

    /// A level under one of its own names or under those of other programs.
    fn effort(&mut self, key: &str) -> Option<Level> {
        self.parsed(key)
    }

    fn max_turns(&mut self) -> Option<u32> {
        let value = self.given("max_turns")?;
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        let turns = number.and_then(|number| u32::try_from(number).ok()).filter(|turns| *turns > 0);
        if turns.is_none() {
            (self.problem)(format!("`max_turns` is {value}, not a number from 1"));
        }
        turns
    }

    /// Names in a list, or in one text.
    fn names(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.given(key) else { return Vec::new() };
        let mut odd = Vec::new();
        let names = Taken::Strictly.names(value, &mut odd);
        for value in odd {
            (self.problem)(format!("`{key}` holds {value}, not a name"));
        }
        names
    }

    fn tools(&mut self) -> Tools {
        if self.given("tools").is_none() {
            return Tools::All;
        }
        let mut names = self.names("tools");
        for name in names.iter_mut().filter(|name| name.contains('(')) {
            (self.problem)(format!("`tools` only takes tool names: the parentheses of `{name}` have no effect"));
            name.truncate(name.find('(').unwrap_or(name.len()));
        }
        if names.iter().any(|name| name == "*") { Tools::All } else { Tools::Only(names) }
    }

    fn hooks(&mut self) -> Option<Value> {
        let hooks = self.given("hooks")?.clone();
        for fault in hooks::Definitions::read(&hooks).1 {
            (self.problem)(fault);
        }
        hooks.is_object().then_some(hooks)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a field leads to, and what is said of it.
    #[test]
    fn every_field_works_or_is_named() {
        let read = |field: Value| {
            let mut fields = json!({ "description": "d" }).as_object().unwrap().clone();
            fields.extend(field.as_object().unwrap().clone());
            let mut problems = Vec::new();
            let definition =
                definition("a", Source::Builtin, &fields, "You.", &mut |problem: String| problems.push(problem));
            (definition, problems)
        };
        let plain = read(json!({})).0;
        let check = |field: Value, change: &dyn Fn(&mut Definition), want: &[&str]| {
            let (definition, problems) = read(field.clone());
            let mut wanted = plain.clone();
            change(&mut wanted);
            assert_eq!(definition, wanted, "{field}");
            assert_eq!(problems.len(), want.len(), "{field}: {problems:?}");
            for (problem, want) in problems.iter().zip(want) {
                assert!(problem.starts_with(want), "{field}: {problem}");
            }
        };
        check(json!({"name": "b"}), &|d| d.name = "b".into(), &[]);
        check(json!({"name": 7}), &|d| d.name = "7".into(), &[]);
        check(json!({"name": ["b"]}), &|_| (), &["`name` is [\"b\"], not text"]);
        check(
            json!({"description": true}),
            &|d| d.description = "You.".into(),
            &["`description` is true, not text", "no `description`"],
        );
        check(
            json!({"tools": ["Read", 3]}),
            &|d| d.tools = Tools::Only(vec!["Read".into()]),
            &["`tools` holds 3, not a name"],
        );
        check(json!({"tools": null}), &|_| (), &[]);
        check(json!({"tools": "Read, *"}), &|_| (), &[]);
        check(json!({"disallowed_tools": "Bash(rm:*)"}), &|d| d.disallowed = vec!["Bash(rm:*)".into()], &[]);
        check(json!({"model": "opus"}), &|d| d.model = Some("opus".into()), &[]);
        check(json!({"model": "inherit"}), &|_| (), &[]);
        check(json!({"model": ""}), &|_| (), &["`model` is empty"]);
        check(json!({"permission_mode": "plan"}), &|d| d.mode = Some(Mode::Plan), &[]);
        check(json!({"permission_mode": "yolo"}), &|_| (), &["`permission_mode`: unknown permission mode \"yolo\""]);
        check(json!({"max_turns": "4"}), &|d| d.max_turns = Some(4), &[]);
        check(json!({"max_turns": -1}), &|_| (), &["`max_turns` is -1, not a number from 1"]);
        check(json!({"skills": "a, b"}), &|d| d.skills = vec!["a".into(), "b".into()], &[]);
        check(json!({"skills": {"a": 1}}), &|_| (), &["`skills` holds {\"a\":1}, not a name"]);
        check(json!({"effort": "high"}), &|d| d.thinking = Some(Level::UltraThink), &[]);
        check(json!({"thinking": "deep"}), &|d| d.thinking = Some(Level::DeepThink), &[]);
        check(json!({"thinking": "hard"}), &|_| (), &["`thinking`: no thinking level \"hard\""]);
        check(json!({"hooks": []}), &|_| (), &["`hooks` is ignored: it must be an object"]);
        let hooks = json!({"Nonsense": []});
        check(
            json!({"hooks": hooks}),
            &|d| d.hooks = Some(hooks.clone()),
            &["`hooks.Nonsense` is ignored: no such event"],
        );
        check(json!({"color": "red"}), &|_| (), &["`color` has no effect: agents have no color"]);
        check(json!({"mcp_servers": []}), &|_| (), &["`mcp_servers` has no effect"]);
        check(json!({"toolz": "Read"}), &|_| (), &["unknown field `toolz`; the fields are name, "]);
    }
}
