//! What a configuration file may say: checks a layer against the schema of `Config`, and reads single values as text.

use std::fmt::Write;

use serde_json::Value as Json;
use toml::{Table, Value};

use super::settings::Config;
use crate::stdx::nearest::nearest;
use crate::stdx::text::split_list;

/// The schema of the configuration.
pub(crate) struct Shape {
    root: Json,
}

/// One thing that a layer says and may not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Dotted key.
    pub key: String,
    pub message: String,
}

impl Shape {
    pub(crate) fn new() -> Shape {
        Shape { root: schemars::schema_for!(Config).to_value() }
    }

    pub(crate) fn json(&self) -> &Json {
        &self.root
    }

    /// Everything in the table that is unknown or of a wrong type. Keys may be missing: lower layers may have them.
    pub(crate) fn faults(&self, table: &Table) -> Vec<Fault> {
        let mut faults = Vec::new();
        self.table(&self.root, table, "", &mut faults);
        faults
    }

    /// The schema of one key.
    ///
    /// # Errors
    /// A sentence with the nearest key, when there is no such key.
    pub(crate) fn node(&self, path: &[String]) -> Result<&Json, String> {
        let mut node = self.resolve(&self.root);
        for (depth, name) in path.iter().enumerate() {
            node = match child(node, name) {
                Some(next) => self.resolve(next),
                None => return Err(unknown(node, &path[..depth].join("."), name)),
            };
        }
        Ok(node)
    }

    /// Reads a value as a person types it on a command line: lists by commas, strings without quotes.
    ///
    /// # Errors
    /// A sentence that names what was expected.
    pub(crate) fn read(&self, path: &[String], text: &str) -> Result<Value, String> {
        let node = self.node(path)?;
        let as_toml = || text.parse::<Value>().ok();
        let value = match kind(node) {
            "string" => match as_toml() {
                Some(Value::String(quoted)) => Value::String(quoted),
                _ => Value::String(text.to_owned()),
            },
            "boolean" => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => Value::Boolean(true),
                "0" | "false" | "no" | "off" => Value::Boolean(false),
                _ => Value::String(text.to_owned()),
            },
            "array" if !text.trim_start().starts_with('[') => {
                Value::Array(split_list(text, |c| c == ',').into_iter().map(Value::String).collect())
            }
            _ => as_toml().unwrap_or_else(|| Value::String(text.to_owned())),
        };
        let mut faults = Vec::new();
        self.value(node, &value, &path.join("."), &mut faults);
        match faults.into_iter().next() {
            Some(fault) => Err(fault.message),
            None => Ok(value),
        }
    }

    fn resolve<'a>(&'a self, node: &'a Json) -> &'a Json {
        match node.get("$ref").and_then(Json::as_str).and_then(|name| name.strip_prefix('#')) {
            Some(pointer) => self.root.pointer(pointer).unwrap_or(node),
            None => node,
        }
    }

    fn table(&self, node: &Json, table: &Table, prefix: &str, faults: &mut Vec<Fault>) {
        for (name, value) in table {
            let key = join(prefix, name);
            match child(node, name) {
                Some(next) => self.value(self.resolve(next), value, &key, faults),
                None => faults.push(Fault { message: unknown(node, prefix, name), key }),
            }
        }
    }

    fn value(&self, node: &Json, value: &Value, key: &str, faults: &mut Vec<Fault>) {
        let mut wrong = |expected: String| {
            let found = match value {
                Value::String(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
                Value::Integer(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                other => format!("a value of type {}", other.type_str()),
            };
            faults.push(Fault { key: key.to_owned(), message: format!("`{key}` must be {expected}, not {found}") });
        };
        let choices = choices(node);
        match (kind(node), value) {
            ("object", Value::Table(table)) => self.table(node, table, key, faults),
            ("string", Value::String(text)) if choices.is_empty() || choices.contains(&text.as_str()) => {}
            ("string", Value::String(text)) if !choices.is_empty() => {
                let mut expected = format!("one of {}", choices.join(", "));
                if text == "bypassPermissions" {
                    expected
                        .push_str(" (bypassPermissions can only be set by flag: --permission-mode bypassPermissions)");
                } else if let Some(near) = nearest(text, choices.iter().copied()) {
                    let _ = write!(expected, " (did you mean {near}?)");
                }
                wrong(expected);
            }
            ("boolean", Value::Boolean(_)) => {}
            ("integer", Value::Integer(number)) => {
                let bound = |name: &str| node.get(name).and_then(Json::as_i64);
                let (min, max) = (bound("minimum"), bound("maximum"));
                match (min, max) {
                    (Some(min), _) if *number < min => wrong(format!("at least {min}")),
                    (_, Some(max)) if *number > max => wrong(format!("at most {max}")),
                    _ if *number > i64::from(u32::MAX) => wrong(format!("at most {}", u32::MAX)),
                    _ => {}
                }
            }
            ("array", Value::Array(values)) => {
                let Some(items) = node.get("items") else { return };
                for (index, value) in values.iter().enumerate() {
                    self.value(self.resolve(items), value, &format!("{key}[{index}]"), faults);
                }
            }
            ("object", _) => wrong("a table".into()),
            ("string", _) if !choices.is_empty() => wrong(format!("one of {}", choices.join(", "))),
            ("string", _) => wrong("a string".into()),
            ("boolean", _) => wrong("true or false".into()),
            ("integer", _) => wrong("a whole number".into()),
            ("number", Value::Float(_) | Value::Integer(_)) => {
                let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64)).unwrap_or(0.0);
                let bound = |name: &str| node.get(name).and_then(Json::as_f64);
                match (bound("minimum"), bound("maximum")) {
                    _ if !number.is_finite() => wrong("a finite number".into()),
                    (Some(min), _) if number < min => wrong(format!("at least {min}")),
                    (_, Some(max)) if number > max => wrong(format!("at most {max}")),
                    _ => {}
                }
            }
            ("number", _) => wrong("a number".into()),
            ("array", _) if node.pointer("/items/type").is_some_and(|kind| kind == "number") => {
                wrong("a list of numbers".into())
            }
            ("array", _) if node.pointer("/items/type").is_some_and(|kind| kind == "object") => {
                wrong("a list of tables".into())
            }
            ("array", _) => wrong("a list of strings".into()),
            _ => {}
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// The type that the schema asks for; `null` is not one that TOML has.
fn kind(node: &Json) -> &str {
    match node.get("type") {
        Some(Json::String(kind)) => kind,
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null").unwrap_or("any"),
        _ if !choices(node).is_empty() => "string",
        _ => "any",
    }
}

/// The strings that an enum has, however the schema spells it.
fn choices(node: &Json) -> Vec<&str> {
    match (node.get("enum"), node.get("oneOf")) {
        (Some(Json::Array(values)), _) => values.iter().filter_map(Json::as_str).collect(),
        (_, Some(Json::Array(variants))) => {
            variants.iter().filter_map(|variant| variant.get("const").and_then(Json::as_str)).collect()
        }
        _ => Vec::new(),
    }
}

fn child<'a>(node: &'a Json, name: &str) -> Option<&'a Json> {
    let named = node.get("properties").and_then(|properties| properties.get(name));
    named.or_else(|| node.get("additionalProperties").filter(|any| any.is_object()))
}

fn unknown(node: &Json, prefix: &str, name: &str) -> String {
    let known = node.get("properties").and_then(Json::as_object);
    let near = known.and_then(|known| nearest(name, known.keys().map(String::as_str)));
    let key = join(prefix, name);
    match near {
        Some(near) => format!("unknown key `{key}`; did you mean `{}`?", join(prefix, near)),
        None => format!("unknown key `{key}`; `cocode config schema` lists them all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_key_and_expectation() {
        fn check(text: &str, want: &str) {
            let faults = Shape::new().faults(&text.parse().unwrap());
            let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
            assert_eq!(messages.join("\n"), want, "{text}");
        }
        check("", "");
        check("modle = 'x'", "unknown key `modle`; did you mean `model`?");
        check("tui.tehme = 'dark'", "unknown key `tui.tehme`; did you mean `tui.theme`?");
        check("zzz = 1", "unknown key `zzz`; `cocode config schema` lists them all");
        check("model = 3", "`model` must be a string, not 3");
        check("tui = 'dark'", "`tui` must be a table, not \"dark\"");
        check(
            "tui.theme = 'lihgt'",
            "`tui.theme` must be one of auto, dark, light, ansi16, mono (did you mean light?), not \"lihgt\"",
        );
        check("tui.highlight = 'yes'", "`tui.highlight` must be true or false, not \"yes\"");
        check("max_turns = 0", "`max_turns` must be at least 1, not 0");
        check("network.max_retries = 11", "`network.max_retries` must be at most 10, not 11");
        check(
            "tools.bash_timeout_ms = 9999999999",
            "`tools.bash_timeout_ms` must be at most 4294967295, not 9999999999",
        );
        check("keys.transcript = 'ctrl+o'", "`keys.transcript` must be a list of strings, not \"ctrl+o\"");
        check("compact.token_safety_multiplier = 0.5", "`compact.token_safety_multiplier` must be at least 1, not 0.5");
        check("compact.guards.min_shrink = 2", "`compact.guards.min_shrink` must be at most 1, not 2");
        check(
            "compact.auto_compact_threshold = nan",
            "`compact.auto_compact_threshold` must be a finite number, not NaN",
        );
        check("permissions.allow = ['a', 1]", "`permissions.allow[1]` must be a string, not 1");
        check("providers.mine.wire = 'openai-chat'\nproviders.mine.headers.X = 'y'", "");
        check("models.x.windov = 1", "unknown key `models.x.windov`; did you mean `models.x.window`?");
        check("models.x.price = [1, 2.5, 'c', 0]", "`models.x.price[2]` must be a number, not \"c\"");
        check("models.x.price = 1", "`models.x.price` must be a list of numbers, not 1");
        check("providers.mine.url = 'x'", "unknown key `providers.mine.url`; `cocode config schema` lists them all");
        check(
            "providers.mine.wire = 'openai_chat'",
            "`providers.mine.wire` must be one of anthropic, openai, openai-chat, gemini (did you mean openai-chat?), not \"openai_chat\"",
        );
        check(
            "permissions.default_mode = 'bypassPermissions'",
            "`permissions.default_mode` must be one of default, acceptEdits, plan, dontAsk (bypassPermissions can only be set by flag: --permission-mode bypassPermissions), not \"bypassPermissions\"",
        );
    }

    #[test]
    fn text_becomes_what_the_key_holds() {
        fn check(key: &str, text: &str, want: Result<Value, &str>) {
            let path: Vec<String> = key.split('.').map(str::to_owned).collect();
            assert_eq!(Shape::new().read(&path, text), want.map_err(str::to_owned), "{key} = {text}");
        }
        let list = |items: &[&str]| Ok(Value::Array(items.iter().map(|item| Value::String((*item).into())).collect()));
        check("tui.theme", "light", Ok(Value::String("light".into())));
        check("tui.theme", "\"light\"", Ok(Value::String("light".into())));
        check("tui.highlight", "on", Ok(Value::Boolean(true)));
        check("tui.highlight", "maybe", Err("`tui.highlight` must be true or false, not \"maybe\""));
        check("max_turns", "5", Ok(Value::Integer(5)));
        check(
            "max_turns",
            "5 # no\nprobe_local = false",
            Err("`max_turns` must be a whole number, not \"5 # no\\nprobe_local = false\""),
        );
        check("permissions.allow", "Bash(git log --format=a,b), Read", list(&["Bash(git log --format=a,b)", "Read"]));
        check("permissions.allow", "['Read']", list(&["Read"]));
        check("keys.transcript", "ctrl+o,f2", list(&["ctrl+o", "f2"]));
        check("tui", "x", Err("`tui` must be a table, not \"x\""));
        check("tui.them", "x", Err("unknown key `tui.them`; did you mean `tui.theme`?"));
    }
}
