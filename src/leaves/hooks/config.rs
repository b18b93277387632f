//! Hooks as files define them: the shape that Claude Code users have on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event::Event;
use super::faults::{condition_fault, fault, matcher_fault};
use super::matcher::Matcher;
use crate::stdx::ansi::one_line;
use crate::stdx::sealed::Sealed;
use crate::stdx::shell_word::quoted;

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
#[serde(try_from = "Written", into = "Written")]
pub struct Definition {
    pub does: Does,
    /// Seconds. None: the default.
    pub timeout: Option<f64>,
    /// Runs at most once in a session.
    pub once: bool,
    /// A permission rule: it only runs for the calls that the rule is about.
    pub condition: Option<String>,
    /// Nobody waits for it: it has no say, and what it adds joins the conversation later.
    pub beside: bool,
    /// What follows when it could not say anything.
    pub on_failure: OnFailure,
}

/// What a hook is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Does {
    /// A shell line.
    Line(String),
    /// A program with its arguments, without a shell.
    Program(String, Vec<String>),
    /// The event is sent to a server, and its answer is read like a command's output.
    Request(Request),
    /// The program that runs us is asked, by the name that it gave the hook. No file can define one.
    Outside(String),
}

/// Where an event is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub url: String,
    /// In their values, `$NAME` and `${NAME}` are the environment's variables.
    pub headers: BTreeMap<String, String>,
    /// Those that may be sent; the others are empty.
    pub variables: Vec<String>,
}

/// What follows when a hook could not say anything: it did not start, did not end in time, failed, or wrote no valid JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The user reads it.
    #[default]
    Continue,
    /// As if it had said no.
    Block,
}

impl Definition {
    /// What it does, in a line for people.
    pub fn line(&self) -> String {
        match &self.does {
            Does::Line(line) => line.clone(),
            Does::Program(program, arguments) => {
                let words = [program].into_iter().chain(arguments);
                words.map(|word| as_shell_word(word)).collect::<Vec<_>>().join(" ")
            }
            Does::Request(request) => {
                let sent = request.variables.iter().map(|name| format!(" ${name}")).collect::<String>();
                let sent = if sent.is_empty() { sent } else { format!(" with{sent}") };
                format!("POST {}{sent}", request.url)
            }
            Does::Outside(name) => format!("callback {name}"),
        }
    }

    /// The command that it runs, as a shell line; None where nothing runs here.
    pub fn command(&self) -> Option<String> {
        if matches!(self.does, Does::Request(_) | Does::Outside(_)) { None } else { Some(self.line()) }
    }
}

/// A word of a hook without a shell, as a shell would have it: the folders that are put into it stay names.
fn as_shell_word(word: &str) -> String {
    if !FOLDERS.iter().any(|folder| word.contains(folder)) {
        return quoted(word);
    }
    let mut quoted = String::from("\"");
    for (at, c) in word.char_indices() {
        let name = c == '$' && FOLDERS.iter().any(|folder| word[at..].starts_with(folder));
        if !name && matches!(c, '$' | '"' | '\\' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

/// What stands for a folder in the words of a hook without a shell.
pub(super) const FOLDERS: [&str; 6] = [
    "${CLAUDE_PROJECT_DIR}",
    "${COCODE_PROJECT_DIR}",
    "${CLAUDE_PLUGIN_ROOT}",
    "${COCODE_PLUGIN_ROOT}",
    "${CLAUDE_PLUGIN_DATA}",
    "${COCODE_PLUGIN_DATA}",
];

/// A hook as files write it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(default, alias = "allowedEnvVars", skip_serializing_if = "Vec::is_empty")]
    allowed_env_vars: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    once: bool,
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    #[serde(rename = "async", default, skip_serializing_if = "std::ops::Not::not")]
    beside: bool,
    #[serde(default, alias = "onFailure", skip_serializing_if = "Option::is_none")]
    on_failure: Option<OnFailure>,
}

/// The kinds of hooks, as files call them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Command,
    Http,
    /// Only written: it lives in the program that runs us.
    #[serde(skip_deserializing)]
    Callback,
}

impl TryFrom<Written> for Definition {
    type Error = String;

    fn try_from(written: Written) -> Result<Definition, String> {
        let none = |what: &str, given: bool, kind: &str| match given {
            true => Err(format!("`{what}` has no meaning for a hook of type \"{kind}\"")),
            false => Ok(()),
        };
        let does = match written.kind {
            Kind::Command => {
                none("url", written.url.is_some(), "command")?;
                none("headers", !written.headers.is_empty(), "command")?;
                none("allowed_env_vars", !written.allowed_env_vars.is_empty(), "command")?;
                let command = written.command.ok_or("a hook of type \"command\" needs `command`")?;
                match written.args {
                    None => Does::Line(command),
                    Some(args) => Does::Program(command, args),
                }
            }
            Kind::Http => {
                none("command", written.command.is_some(), "http")?;
                none("args", written.args.is_some(), "http")?;
                let url = written.url.ok_or("a hook of type \"http\" needs `url`")?;
                Does::Request(Request { url, headers: written.headers, variables: written.allowed_env_vars })
            }
            Kind::Callback => return Err("only the program that runs cocode has callbacks".to_owned()),
        };
        Ok(Definition {
            does,
            timeout: written.timeout,
            once: written.once,
            condition: written.condition,
            beside: written.beside,
            on_failure: written.on_failure.unwrap_or_default(),
        })
    }
}

impl From<Definition> for Written {
    fn from(definition: Definition) -> Written {
        let Definition { does, timeout, once, condition, beside, on_failure } = definition;
        let on_failure = Some(on_failure).filter(|on_failure| *on_failure != OnFailure::default());
        let rest = Written { timeout, once, condition, beside, on_failure, ..Written::default() };
        match does {
            Does::Line(line) => Written { command: Some(line), ..rest },
            Does::Program(program, args) => Written { command: Some(program), args: Some(args), ..rest },
            Does::Request(Request { url, headers, variables }) => {
                Written { kind: Kind::Http, url: Some(url), headers, allowed_env_vars: variables, ..rest }
            }
            Does::Outside(name) => Written { kind: Kind::Callback, command: Some(name), ..rest },
        }
    }
}

/// Keys of a hook that need no word when they are not used: they only say how it looks.
const SILENT: [&str; 3] = ["statusMessage", "name", "description"];

/// Keys of both kinds.
const KEYS: [&str; 7] = ["type", "timeout", "once", "if", "async", "onFailure", "on_failure"];
const KEYS_OF_COMMANDS: [&str; 3] = ["command", "args", "shell"];
const KEYS_OF_REQUESTS: [&str; 4] = ["url", "headers", "allowedEnvVars", "allowed_env_vars"];

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
    /// The program that runs us.
    Outside,
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
            Origin::Outside => f.write_str("the program that runs cocode"),
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
    /// What a plugin keeps over updates, for `CLAUDE_PLUGIN_DATA`; made when one of its hooks runs.
    pub data: Option<PathBuf>,
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
                problems.push(unread(event, &format!("hooks.{name}"), "it must be a list"));
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

    /// Events of which something was written that does not run, and that hooks are there to stop; `written` is what was read.
    pub fn unguarded(&self, written: &Value) -> Vec<Event> {
        let hooks = |group: &Value| group.get("hooks").and_then(Value::as_array).map_or(1, Vec::len);
        let meant = |event: Event| match written.get(event.name()) {
            None | Some(Value::Null) => 0,
            Some(Value::Array(groups)) => groups.iter().map(hooks).sum(),
            Some(_) => 1,
        };
        let runs = |event| self.0.get(&event).map_or(0, |groups| groups.iter().map(|group| group.hooks.len()).sum());
        Event::ALL.into_iter().filter(|event| event.guards() && meant(*event) > runs(*event)).collect()
    }

    /// What is wrong with hooks of a file whose shape was checked already.
    pub fn faults(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (event, groups) in &self.0 {
            for (at, group) in groups.iter().enumerate() {
                let key = format!("hooks.{event}[{at}]");
                problems.extend(matcher_fault(group.matcher.as_deref(), &key));
                for (at, hook) in group.hooks.iter().enumerate() {
                    let why = fault(*event, hook).or_else(|| condition_fault(*event, hook.condition.as_deref()));
                    problems.extend(why.map(|why| format!("`{key}.hooks[{at}]` {why}")));
                }
            }
        }
        problems
    }

    /// Takes out the shell lines that have this in them, and returns them.
    pub fn without_lines_with(&mut self, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        for group in self.0.values_mut().flatten() {
            out.extend(
                group.hooks.extract_if(.., |hook| matches!(&hook.does, Does::Line(line) if line.contains(text))),
            );
        }
        out.iter().map(Definition::line).collect()
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
            one_line(&format!("hook {event}{matcher}{condition}: {}", hook.line()))
        };
        self.all().map(line).collect()
    }
}

/// What is said of something that cannot be used.
fn unread(event: Event, key: &str, why: &str) -> String {
    match event.guards() {
        true => format!("`{key}` does not run, so it stops nothing: {why}"),
        false => format!("`{key}` is ignored: {why}"),
    }
}

fn read_group(event: Event, group: &Value, key: &str, problems: &mut Vec<String>) -> Option<Group> {
    let mut ignored = |why: &str| problems.push(unread(event, key, why));
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
    if let Some(error) = Matcher::parse(matcher.as_deref().unwrap_or_default()).err() {
        ignored(&error);
        return None;
    }
    let mut hooks = Vec::new();
    for (at, hook) in list.iter().enumerate() {
        match read_hook(event, hook) {
            Ok(definition) => {
                let own: &[&str] = match definition.does {
                    Does::Request(_) => &KEYS_OF_REQUESTS,
                    Does::Line(_) | Does::Program(..) | Does::Outside(_) => &KEYS_OF_COMMANDS,
                };
                let known = |name: &str| KEYS.contains(&name) || SILENT.contains(&name) || own.contains(&name);
                let unknown = hook.as_object().into_iter().flat_map(Map::keys).filter(|name| !known(name));
                problems.extend(unknown.map(|name| {
                    format!("`{key}.hooks[{at}].{name}` is ignored: cocode does not know it; the hook runs without it")
                }));
                hooks.push(definition);
            }
            Err(why) => problems.push(unread(event, &format!("{key}.hooks[{at}]"), &why)),
        }
    }
    (!hooks.is_empty()).then_some(Group { matcher, hooks })
}

fn read_hook(event: Event, hook: &Value) -> Result<Definition, String> {
    let object = hook.as_object().ok_or("it must be an object with `type` and `command`")?;
    let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
    let texts = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let items = items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
            items.map(Some).ok_or(format!("`{key}` must be a list of strings"))
        }
        Some(_) => Err(format!("`{key}` must be a list of strings")),
    };
    let does = match object.get("type").and_then(Value::as_str) {
        Some("command") => {
            match object.get("shell") {
                None | Some(Value::Null) => {}
                Some(shell) if shell == "bash" => {}
                Some(shell) => return Err(format!("its shell is {shell}, and cocode runs hooks with bash only")),
            }
            let command = text("command").ok_or("`command` must be a string")?;
            match texts("args")? {
                None => Does::Line(command),
                Some(args) => Does::Program(command, args),
            }
        }
        Some("http") => {
            let headers = match object.get("headers") {
                None | Some(Value::Null) => BTreeMap::new(),
                Some(headers) => {
                    let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
                    let headers = headers.as_object().and_then(|headers| headers.iter().map(pair).collect());
                    headers.ok_or("`headers` must be an object of strings")?
                }
            };
            let variables = texts("allowedEnvVars")?.or(texts("allowed_env_vars")?).unwrap_or_default();
            Does::Request(Request { url: text("url").ok_or("`url` must be a string")?, headers, variables })
        }
        Some(other) => {
            return Err(format!("type {other:?} is not supported: use \"command\" with a shell command, or \"http\""));
        }
        None => return Err("it needs `type: \"command\"`".into()),
    };
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
    let on_failure = match object.get("onFailure").or_else(|| object.get("on_failure")) {
        None | Some(Value::Null) => OnFailure::default(),
        Some(value) if value == "continue" => OnFailure::Continue,
        Some(value) if value == "block" => OnFailure::Block,
        Some(_) => return Err("`onFailure` must be \"continue\" or \"block\"".into()),
    };
    let definition = Definition { does, timeout, once, condition, beside, on_failure };
    match fault(event, &definition).or_else(|| condition_fault(event, definition.condition.as_deref())) {
        Some(why) => Err(why),
        None => Ok(definition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, want: &str) {
        let (definitions, problems) = Definitions::read(&serde_json::from_str(json).unwrap());
        let shown = |(event, matcher, hook): (Event, Option<&str>, &Definition)| {
            let beside = if hook.beside { " beside" } else { "" };
            format!("{event} {matcher:?} {} {:?} {}{beside}", hook.line(), hook.timeout, hook.once)
        };
        let lines: Vec<String> = definitions.all().map(shown).chain(problems).collect();
        assert_eq!(lines.join("\n"), want, "{json}");
        assert_eq!(definitions.faults(), [] as [String; 0]);
    }

    #[test]
    fn a_guard_that_does_not_run_is_told_of() {
        let unguarded = |json: &str| -> String {
            let written = serde_json::from_str(json).unwrap();
            let events = Definitions::read(&written).0.unguarded(&written);
            events.iter().map(|event| event.name()).collect::<Vec<_>>().join(" ")
        };
        let good = r#"{"type": "command", "command": "a"}"#;
        for (bad, why) in [
            (r#"{"type": "command", "command": "a", "onFailure": "BLOCK"}"#, "`onFailure` must be"),
            (r#"{"type": "command", "command": "a", "timeout": 0}"#, "`timeout` must be more than 0"),
            (r#"{"type": "command", "command": " "}"#, "`command` is empty"),
        ] {
            for (event, want) in [("PreToolUse", "PreToolUse"), ("UserPromptSubmit", "UserPromptSubmit"), ("Stop", "")]
            {
                let json = format!(r#"{{"{event}": [{{"hooks": [{good}, {bad}]}}]}}"#);
                assert_eq!(unguarded(&json), want, "{json}");
                let problems = Definitions::read(&serde_json::from_str(&json).unwrap()).1;
                assert!(problems[0].contains(why), "{problems:?}");
                assert_eq!(problems[0].contains("does not run, so it stops nothing"), !want.is_empty(), "{problems:?}");
            }
        }
        assert_eq!(unguarded(&format!(r#"{{"PreToolUse": [{{"hooks": [{good}]}}]}}"#)), "");
        assert_eq!(
            unguarded(r#"{"PreToolUse": 3, "PermissionRequest": [{"matcher": "["}]}"#),
            "PreToolUse PermissionRequest"
        );
    }

    #[test]
    fn a_hook_is_shown_in_one_line() {
        let hooks = r#"{"Stop": [{"hooks": [{"type": "command", "command": "a", "args": ["x\nhook Stop: harmless"]},
            {"type": "http", "url": "http://a/\nb"}]}]}"#;
        for line in Definitions::read(&serde_json::from_str(hooks).unwrap()).0.lines() {
            assert!(!line.contains('\n') && line.contains("\\n"), "{line}");
        }
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
            r#"{"PreTool": [], "FileChanged": [], "Stop": 3, "SessionEnd": [1, {"matcher": 2}, {"matcher": "a"}, {"matcher": "(", "hooks": []}]}"#,
            "`hooks.PreTool` is ignored: no such event; did you mean `PreToolUse`?\n\
             `hooks.FileChanged` is ignored: Claude Code has this event and cocode does not, so its hooks never run\n\
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
                {"type": "command", "command": "good"}, {"type": "command", "command": "fine", "asyncRewake": true},
                {"type": "command", "command": "a", "if": "Bash(git:*)"}]}]}"#,
            "Stop None good None false\n\
             Stop None fine None false\n\
             `hooks.Stop[0].hooks[0]` is ignored: it must be an object with `type` and `command`\n\
             `hooks.Stop[0].hooks[1]` is ignored: it needs `type: \"command\"`\n\
             `hooks.Stop[0].hooks[2]` is ignored: type \"prompt\" is not supported: use \"command\" with a shell command, or \"http\"\n\
             `hooks.Stop[0].hooks[3]` is ignored: `command` must be a string\n\
             `hooks.Stop[0].hooks[4]` is ignored: `command` is empty\n\
             `hooks.Stop[0].hooks[5]` is ignored: `timeout` must be a number of seconds\n\
             `hooks.Stop[0].hooks[6]` is ignored: `timeout` must be more than 0 and at most 86400 seconds\n\
             `hooks.Stop[0].hooks[7]` is ignored: `timeout` must be more than 0 and at most 86400 seconds\n\
             `hooks.Stop[0].hooks[8]` is ignored: `once` must be true or false\n\
             `hooks.Stop[0].hooks[10].asyncRewake` is ignored: cocode does not know it; the hook runs without it\n\
             `hooks.Stop[0].hooks[11]` is ignored: `if` has no meaning for Stop: it is about a tool call",
        );
    }

    #[test]
    fn programs_and_requests_are_read() {
        check(
            r#"{"PreToolUse": [{"hooks": [
                {"type": "command", "command": "${CLAUDE_PROJECT_DIR}/a b", "args": ["$x", "it's", "c"]},
                {"type": "command", "command": "a", "shell": "bash", "onFailure": "block"},
                {"type": "http", "url": "http://localhost:1/x", "headers": {"A": "$K"}, "allowedEnvVars": ["K"], "timeout": 2},
                {"type": "http", "url": "https://a.test/", "command": "x"},
                {"type": "http"}, {"type": "http", "url": "file:///etc/passwd"}, {"type": "http", "url": "http://a/", "headers": [1]},
                {"type": "command", "command": "a", "args": "x"}, {"type": "command", "command": "a", "shell": "powershell"},
                {"type": "command", "command": "a", "onFailure": "stop"}]}],
              "SessionStart": [{"hooks": [{"type": "http", "url": "http://localhost/"}]}]}"#,
            "PreToolUse None \"${CLAUDE_PROJECT_DIR}/a b\" '$x' 'it'\\''s' c None false\n\
             PreToolUse None a None false\n\
             PreToolUse None POST http://localhost:1/x with $K Some(2.0) false\n\
             PreToolUse None POST https://a.test/ None false\n\
             `hooks.PreToolUse[0].hooks[3].command` is ignored: cocode does not know it; the hook runs without it\n\
             `hooks.PreToolUse[0].hooks[4]` does not run, so it stops nothing: `url` must be a string\n\
             `hooks.PreToolUse[0].hooks[5]` does not run, so it stops nothing: its `url` must begin with http:// or https://, not file:\n\
             `hooks.PreToolUse[0].hooks[6]` does not run, so it stops nothing: `headers` must be an object of strings\n\
             `hooks.PreToolUse[0].hooks[7]` does not run, so it stops nothing: `args` must be a list of strings\n\
             `hooks.PreToolUse[0].hooks[8]` does not run, so it stops nothing: its shell is \"powershell\", and cocode runs hooks with bash only\n\
             `hooks.PreToolUse[0].hooks[9]` does not run, so it stops nothing: `onFailure` must be \"continue\" or \"block\"\n\
             `hooks.SessionStart[0].hooks[0]` is ignored: cannot be of type \"http\": a session does not wait for a server to start",
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let json = serde_json::json!({"PreToolUse": [{"hooks": [
            {"type": "command", "command": "a", "args": ["b"], "timeout": 1.5, "once": true, "if": "Bash(x)", "async": true},
            {"type": "http", "url": "http://a/", "headers": {"A": "$K"}, "allowed_env_vars": ["K"], "on_failure": "block"}]}]});
        let (definitions, problems) = Definitions::read(&json);
        assert_eq!(problems, [] as [String; 0]);
        assert_eq!(serde_json::to_value(&definitions).unwrap(), json);
        assert_eq!(serde_json::from_value::<Definitions>(json).unwrap(), definitions);
        let wrong = |hook: &str| {
            toml::from_str::<Definitions>(&format!("[[Stop]]\nhooks = [{hook}]")).unwrap_err().message().to_owned()
        };
        assert_eq!(wrong(r#"{ type = "http" }"#), "a hook of type \"http\" needs `url`");
        assert_eq!(
            wrong(r#"{ type = "http", url = "http://a/", args = [] }"#),
            "`args` has no meaning for a hook of type \"http\""
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
