//! Hooks as files define them: the shape that Claude Code users have on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event::Event;
use super::matcher::Matcher;
use crate::stdx::sealed::Sealed;

/// Longest timeout that a hook may ask for, in seconds.
const MAX_TIMEOUT: f64 = 86_400.0;

/// `{ "<Event>": [ { "matcher": "…", "hooks": [ { "type": "command", "command": "…" } ] } ] }`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Definitions(pub BTreeMap<Event, Vec<Group>>);

/// Hooks that share a matcher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    pub hooks: Vec<Definition>,
}

/// One hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    #[serde(rename = "type")]
    pub kind: Kind,
    /// A shell line.
    pub command: String,
    /// Seconds. None: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Runs at most once in a session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// A permission rule: it only runs for the calls that the rule is about.
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Nobody waits for it: it has no say, and what it adds joins the conversation later.
    #[serde(rename = "async", default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
}

/// Keys of a hook that need no word when they are not used: they only say how it looks.
const SILENT: [&str; 9] = ["type", "command", "timeout", "once", "if", "async", "statusMessage", "name", "description"];

/// What a hook is. There is one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Command,
}

/// Who defined a hook.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `/etc/cocode/`.
    Managed(PathBuf),
    /// A file of the user's own.
    User(PathBuf),
    /// A file of the project.
    Project(PathBuf),
    /// Flags and variables.
    CommandLine,
    /// A running skill's frontmatter; its name.
    Skill(String),
    /// A running agent's frontmatter; its type.
    Agent(String),
    /// A plugin; its name.
    Plugin(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Managed(file) | Origin::User(file) | Origin::Project(file) => write!(f, "{}", file.display()),
            Origin::CommandLine => f.write_str("command line"),
            Origin::Skill(name) => write!(f, "skill {name}"),
            Origin::Agent(name) => write!(f, "agent {name}"),
            Origin::Plugin(name) => write!(f, "plugin {name}"),
        }
    }
}

/// The hooks of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    pub origin: Origin,
    /// The folder of the plugin or skill, for `CLAUDE_PLUGIN_ROOT`.
    pub root: Option<PathBuf>,
    pub definitions: Definitions,
    /// Files that commands run, and that must hold what they held when the user agreed to them.
    pub sealed: BTreeMap<String, Sealed>,
}

impl Definitions {
    /// Reads what a JSON file or a frontmatter says, and keeps what can be used. The second list names the rest, each with
    /// the reason. Keys that mean something elsewhere only are passed over.
    pub fn read(value: &Value) -> (Definitions, Vec<String>) {
        let (mut definitions, mut problems) = (Definitions::default(), Vec::new());
        let Some(events) = value.as_object() else {
            if !value.is_null() {
                problems.push("`hooks` is ignored: it must be an object of events".into());
            }
            return (definitions, problems);
        };
        for (name, groups) in events {
            let Some(event) = Event::named(name) else {
                let why = Event::unknown(name);
                problems.push(format!("`hooks.{name}` is ignored: {why}"));
                continue;
            };
            let Some(groups) = groups.as_array() else {
                problems.push(format!("`hooks.{name}` is ignored: it must be a list"));
                continue;
            };
            for (at, group) in groups.iter().enumerate() {
                if let Some(group) = read_group(event, group, &format!("hooks.{name}[{at}]"), &mut problems) {
                    definitions.0.entry(event).or_default().push(group);
                }
            }
        }
        (definitions, problems)
    }

    /// What is wrong with hooks of a file whose shape was checked already.
    pub fn faults(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (event, groups) in &self.0 {
            for (at, group) in groups.iter().enumerate() {
                let key = format!("hooks.{event}[{at}]");
                problems.extend(matcher_fault(group.matcher.as_deref(), &key));
                for (at, hook) in group.hooks.iter().enumerate() {
                    let why = fault(&hook.command, hook.timeout)
                        .or_else(|| condition_fault(*event, hook.condition.as_deref()));
                    problems.extend(why.map(|why| format!("`{key}.hooks[{at}]` {why}")));
                }
            }
        }
        problems
    }

    /// Every hook with its event and matcher.
    pub fn all(&self) -> impl Iterator<Item = (Event, Option<&str>, &Definition)> {
        self.0.iter().flat_map(|(event, groups)| {
            groups
                .iter()
                .flat_map(move |group| group.hooks.iter().map(move |hook| (*event, group.matcher.as_deref(), hook)))
        })
    }

    /// One line for each hook, for a person who is to say whether it may run: `PreToolUse (Bash): ./check.sh`.
    pub fn lines(&self) -> Vec<String> {
        let line = |(event, matcher, hook): (Event, Option<&str>, &Definition)| {
            let matcher = matcher.filter(|text| !matches!(*text, "" | "*"));
            let matcher = matcher.map(|text| format!(" ({text})")).unwrap_or_default();
            let condition = hook.condition.as_ref().map(|rule| format!(" if {rule}")).unwrap_or_default();
            format!("hook {event}{matcher}{condition}: {}", hook.command)
        };
        self.all().map(line).collect()
    }
}

fn read_group(event: Event, group: &Value, key: &str, problems: &mut Vec<String>) -> Option<Group> {
    let mut ignored = |why: &str| problems.push(format!("`{key}` is ignored: {why}"));
    let Some(object) = group.as_object() else {
        ignored("it must be an object with `hooks`");
        return None;
    };
    let matcher = match object.get("matcher") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            ignored("`matcher` must be a string");
            return None;
        }
    };
    let Some(list) = object.get("hooks").and_then(Value::as_array) else {
        ignored("it needs a `hooks` list");
        return None;
    };
    if let Some(problem) = matcher_fault(matcher.as_deref(), key) {
        problems.push(problem);
        return None;
    }
    let mut hooks = Vec::new();
    for (at, hook) in list.iter().enumerate() {
        match read_hook(event, hook) {
            Ok(definition) => {
                hooks.push(definition);
                let unknown = hook.as_object().into_iter().flat_map(Map::keys).filter(|key| !SILENT.contains(&&***key));
                problems.extend(unknown.map(|name| {
                    format!("`{key}.hooks[{at}].{name}` is ignored: cocode does not know it; the hook runs without it")
                }));
            }
            Err(why) => problems.push(format!("`{key}.hooks[{at}]` is ignored: {why}")),
        }
    }
    (!hooks.is_empty()).then_some(Group { matcher, hooks })
}

fn read_hook(event: Event, hook: &Value) -> Result<Definition, String> {
    let object = hook.as_object().ok_or("it must be an object with `type` and `command`")?;
    match object.get("type").and_then(Value::as_str) {
        Some("command") => {}
        Some(other) => {
            return Err(format!("type {other:?} is not supported: use type \"command\" with a shell command"));
        }
        None => return Err("it needs `type: \"command\"`".into()),
    }
    let command = object.get("command").and_then(Value::as_str).ok_or("`command` must be a string")?.to_owned();
    let timeout = match object.get("timeout") {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_f64().ok_or("`timeout` must be a number of seconds")?),
    };
    let flag = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(value) => value.as_bool().ok_or(format!("`{key}` must be true or false")),
    };
    let (once, beside) = (flag("once")?, flag("async")?);
    let condition = match object.get("if") {
        None | Some(Value::Null) => None,
        Some(Value::String(rule)) => Some(rule.clone()).filter(|rule| !rule.trim().is_empty()),
        Some(_) => return Err("`if` must be a permission rule, such as \"Bash(git:*)\"".into()),
    };
    match fault(&command, timeout).or_else(|| condition_fault(event, condition.as_deref())) {
        Some(why) => Err(why),
        None => Ok(Definition { kind: Kind::Command, command, timeout, once, condition, beside }),
    }
}

/// Only what happens to a call can be about one.
fn condition_fault(event: Event, condition: Option<&str>) -> Option<String> {
    condition
        .filter(|_| !event.of_a_call())
        .map(|_| format!("`if` has no meaning for {event}: it is about a tool call"))
}

fn matcher_fault(matcher: Option<&str>, key: &str) -> Option<String> {
    let error = Matcher::parse(matcher?).err()?;
    Some(format!("`{key}` is ignored: {error}"))
}

fn fault(command: &str, timeout: Option<f64>) -> Option<String> {
    if command.trim().is_empty() {
        return Some("`command` is empty".into());
    }
    if command.contains('\0') {
        return Some("`command` contains a NUL character".into());
    }
    let wrong = |seconds: &f64| !(*seconds > 0.0 && *seconds <= MAX_TIMEOUT);
    timeout.filter(wrong).map(|_| format!("`timeout` must be more than 0 and at most {MAX_TIMEOUT} seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, want: &str) {
        let (definitions, problems) = Definitions::read(&serde_json::from_str(json).unwrap());
        let shown = |(event, matcher, hook): (Event, Option<&str>, &Definition)| {
            let beside = if hook.beside { " beside" } else { "" };
            format!("{event} {matcher:?} {} {:?} {}{beside}", hook.command, hook.timeout, hook.once)
        };
        let lines: Vec<String> = definitions.all().map(shown).chain(problems).collect();
        assert_eq!(lines.join("\n"), want, "{json}");
        assert_eq!(definitions.faults(), [] as [String; 0]);
    }

    #[test]
    fn the_shape_of_claude_code_is_read() {
        check("null", "");
        check("{}", "");
        check(
            r#"{"PreToolUse": [{"matcher": "Edit|Write", "hooks": [
                {"type": "command", "command": "a", "timeout": 5, "once": true},
                {"type": "command", "command": "b", "timeout": 0.5, "statusMessage": "busy"}]}],
              "Stop": [{"hooks": [{"type": "command", "command": "c", "async": true}]}, {"matcher": "", "hooks": []}]}"#,
            "PreToolUse Some(\"Edit|Write\") a Some(5.0) true\nPreToolUse Some(\"Edit|Write\") b Some(0.5) false\nStop None c None false beside",
        );
    }

    #[test]
    fn what_cannot_be_used_is_named_and_the_rest_kept() {
        check("[]", "`hooks` is ignored: it must be an object of events");
        check(
            r#"{"PreTool": [], "PreModelSwitch": [], "Stop": 3, "SessionEnd": [1, {"matcher": 2}, {"matcher": "a"}, {"matcher": "(", "hooks": []}]}"#,
            "`hooks.PreTool` is ignored: no such event; did you mean `PreToolUse`?\n\
             `hooks.PreModelSwitch` is ignored: Claude Code has this event and cocode does not, so its hooks never run\n\
             `hooks.Stop` is ignored: it must be a list\n\
             `hooks.SessionEnd[0]` is ignored: it must be an object with `hooks`\n\
             `hooks.SessionEnd[1]` is ignored: `matcher` must be a string\n\
             `hooks.SessionEnd[2]` is ignored: it needs a `hooks` list\n\
             `hooks.SessionEnd[3]` is ignored: matcher \"(\" is not a valid regular expression: unclosed group",
        );
        check(
            r#"{"Stop": [{"hooks": [
                "x", {}, {"type": "prompt", "prompt": "x"}, {"type": "command"}, {"type": "command", "command": " "},
                {"type": "command", "command": "a", "timeout": "1"}, {"type": "command", "command": "a", "timeout": 0},
                {"type": "command", "command": "a", "timeout": 1e9}, {"type": "command", "command": "a", "once": 1},
                {"type": "command", "command": "good"}, {"type": "command", "command": "fine", "onFailure": "block"},
                {"type": "command", "command": "a", "if": "Bash(git:*)"}]}]}"#,
            "Stop None good None false\n\
             Stop None fine None false\n\
             `hooks.Stop[0].hooks[0]` is ignored: it must be an object with `type` and `command`\n\
             `hooks.Stop[0].hooks[1]` is ignored: it needs `type: \"command\"`\n\
             `hooks.Stop[0].hooks[2]` is ignored: type \"prompt\" is not supported: use type \"command\" with a shell command\n\
             `hooks.Stop[0].hooks[3]` is ignored: `command` must be a string\n\
             `hooks.Stop[0].hooks[4]` is ignored: `command` is empty\n\
             `hooks.Stop[0].hooks[5]` is ignored: `timeout` must be a number of seconds\n\
             `hooks.Stop[0].hooks[6]` is ignored: `timeout` must be more than 0 and at most 86400 seconds\n\
             `hooks.Stop[0].hooks[7]` is ignored: `timeout` must be more than 0 and at most 86400 seconds\n\
             `hooks.Stop[0].hooks[8]` is ignored: `once` must be true or false\n\
             `hooks.Stop[0].hooks[10].onFailure` is ignored: cocode does not know it; the hook runs without it\n\
             `hooks.Stop[0].hooks[11]` is ignored: `if` has no meaning for Stop: it is about a tool call",
        );
    }

    #[test]
    fn a_line_for_each_hook() {
        let json = r#"{"Stop": [{"hooks": [{"type": "command", "command": "c"}]}],
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "d", "if": "Bash(rm:*)"}]}]}"#;
        let (definitions, _) = Definitions::read(&serde_json::from_str(json).unwrap());
        assert_eq!(definitions.lines(), ["hook PreToolUse (Bash) if Bash(rm:*): d", "hook Stop: c"]);
    }
}
