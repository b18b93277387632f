//! What a configuration file may say: checks a layer against the schema of `Config`, and reads single values as text.

use std::fmt::Write;

use serde_json::Value as Json;
use toml::{Table, Value};

use super::settings::Config;
use crate::stdx::nearest::nearest;
use crate::stdx::schema::{self, Problem, Schema, Step};
use crate::stdx::text::split_list;

/// The schema of the configuration.
pub(crate) struct Shape {
    json: Json,
    root: Schema,
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
        let json = schemars::schema_for!(Config).to_value();
        let mut root = json.clone();
        layer(&mut root);
        let root = Schema::new(root).expect("the schema of the configuration uses known keywords");
        Shape { json, root }
    }

    pub(crate) fn json(&self) -> &Json {
        &self.json
    }

    /// Everything in the table that is unknown or of a wrong type. Keys may be missing: lower layers may have them.
    pub(crate) fn faults(&self, table: &Table) -> Vec<Fault> {
        self.root.faults(&table_json(table)).iter().map(|fault| Self::told(fault, table)).collect()
    }

    /// The schema of one key.
    ///
    /// # Errors
    /// A sentence with the nearest key, when there is no such key.
    pub(crate) fn node(&self, path: &[String]) -> Result<&Json, String> {
        let mut node = self.root.resolve(self.root.json());
        for (depth, name) in path.iter().enumerate() {
            node = match child(node, name) {
                Some(next) => self.root.resolve(next),
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
        let value =
            match schema::kind(node).or_else(|| schema::choices(node).first().map(|_| "string")).unwrap_or("any") {
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
        let table =
            path.iter().rfold(value.clone(), |inner, name| Value::Table([(name.clone(), inner)].into_iter().collect()));
        match table.as_table().map(|table| self.faults(table)).unwrap_or_default().into_iter().next() {
            Some(fault) => Err(fault.message),
            None => Ok(value),
        }
    }

    /// What is wrong, in the words of a settings file.
    fn told(fault: &schema::Fault<'_>, table: &Table) -> Fault {
        let key = schema::place(&fault.path);
        let expected = match &fault.problem {
            Problem::Missing => unreachable!("no key of a layer is required"),
            Problem::Unknown => {
                let (name, before) = fault.path.split_last().expect("an unknown key has a name");
                let message = unknown(fault.schema, &schema::place(before), &schema::place(std::slice::from_ref(name)));
                return Fault { key, message };
            }
            Problem::Choice(value, _) => one_of(&words(fault.schema), value),
            Problem::Limit(_, limit) => limit.clone(),
            Problem::Kind(_) => match found(table, &fault.path) {
                Some(Value::Float(number)) if schema::kind(fault.schema) == Some("number") && !number.is_finite() => {
                    "a finite number".into()
                }
                _ => expected(fault.schema),
            },
        };
        let found = match found(table, &fault.path) {
            Some(Value::String(text)) => format!("{:?}", text.chars().take(40).collect::<String>()),
            Some(Value::Integer(number)) => number.to_string(),
            Some(Value::Float(number)) => number.to_string(),
            other => format!("a value of type {}", other.map_or("unknown", Value::type_str)),
        };
        Fault { message: format!("`{key}` must be {expected}, not {found}"), key }
    }
}

/// What a layer may hold: any part of the configuration, nothing that it does not name, and no null, which TOML lacks.
fn layer(schema: &mut Json) {
    let Some(keywords) = schema.as_object_mut() else { return };
    keywords.remove("required");
    if keywords.contains_key("properties") {
        keywords.entry("additionalProperties").or_insert(Json::Bool(false));
    }
    for keyword in ["type", "enum", "anyOf"] {
        if let Some(Json::Array(parts)) = keywords.get_mut(keyword) {
            parts
                .retain(|part| !part.is_null() && part != "null" && part.get("type").is_none_or(|kind| kind != "null"));
        }
    }
    for (keyword, inner) in &mut *keywords {
        match (keyword.as_str(), inner) {
            ("properties" | "$defs", Json::Object(schemas)) => schemas.values_mut().for_each(layer),
            ("anyOf" | "oneOf" | "allOf", Json::Array(parts)) => parts.iter_mut().for_each(layer),
            ("items" | "additionalProperties", inner) => layer(inner),
            _ => {}
        }
    }
    if schema::kind(schema) == Some("integer") && schema.get("maximum").is_none() {
        schema["maximum"] = u32::MAX.into();
    }
}

/// The table for the check. What JSON cannot say becomes null, which fits nothing.
fn json(value: &Value) -> Json {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(value) => (*value).into(),
        Value::Datetime(_) => Json::Null,
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Table(table) => table_json(table),
    }
}

fn table_json(table: &Table) -> Json {
    table.iter().map(|(name, value)| (name.clone(), json(value))).collect()
}

fn found<'a>(table: &'a Table, path: &[Step]) -> Option<&'a Value> {
    let (Step::Key(first), rest) = path.split_first()? else { return None };
    rest.iter().try_fold(table.get(first)?, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// The values to show of those that a key may have: its examples, where some are only read.
pub(super) fn words(schema: &Json) -> Vec<&Json> {
    match schema.get("examples").and_then(Json::as_array) {
        Some(shown) => shown.iter().collect(),
        None => schema::choices(schema),
    }
}

fn one_of(choices: &[&Json], value: &Json) -> String {
    let choices: Vec<&str> = choices.iter().filter_map(|choice| choice.as_str()).collect();
    let mut expected = format!("one of {}", choices.join(", "));
    if value == "bypassPermissions" {
        expected.push_str(" (bypassPermissions can only be set by flag: --permission-mode bypassPermissions)");
    } else if let Some(near) = value.as_str().and_then(|text| nearest(text, choices.iter().copied())) {
        let _ = write!(expected, " (did you mean {near}?)");
    }
    expected
}

/// What a key of another type must be.
fn expected(schema: &Json) -> String {
    let items = || schema.pointer("/items/type").and_then(Json::as_str);
    match schema::kind(schema) {
        Some("object") => "a table".into(),
        Some("string") if !schema::choices(schema).is_empty() => one_of(&words(schema), &Json::Null),
        Some("boolean") => "true or false".into(),
        Some("integer") => "a whole number".into(),
        Some("array") if items() == Some("number") => "a list of numbers".into(),
        Some("array") if items() == Some("object") => "a list of tables".into(),
        Some("array") => "a list of strings".into(),
        other => format!("a {}", other.unwrap_or("value")),
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
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
            "log.level = 'debgu'",
            "`log.level` must be one of off, error, warn, info, debug (did you mean debug?), not \"debgu\"",
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
