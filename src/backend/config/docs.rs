//! What `default.toml` says of its settings, as data: for the table in docs/ and the JSON schema.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::DEFAULTS;
use super::shape::Shape;

/// One setting of `default.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Dotted key.
    pub key: String,
    /// The default as TOML, if there is one.
    pub default: Option<String>,
    /// The comment above it.
    pub text: String,
}

/// All settings, in the order of the file. A table that only the user fills counts as one.
pub fn settings() -> Vec<Setting> {
    let (mut found, mut text, mut table) = (Vec::<Setting>::new(), String::new(), String::new());
    for line in DEFAULTS.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let _ = write!(text, "{}{comment}", if text.is_empty() { "" } else { " " });
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = format!("{name}.");
            if matches!(name, "keys" | "env" | "models" | "hooks" | "skills.overrides" | "plugins.enabled") {
                found.push(Setting { key: name.into(), default: None, text: std::mem::take(&mut text) });
            }
        } else if let Some((key, value)) = line.split_once(" = ") {
            let default = (!key.starts_with('#')).then(|| value.to_owned());
            let key = format!("{table}{}", key.trim_start_matches('#'));
            found.push(Setting { key, default, text: std::mem::take(&mut text) });
        }
        text.clear();
    }
    found
}

/// The settings as a Markdown table. Of the providers the first stands for all.
pub fn settings_table() -> String {
    let mut rows = String::from("| Setting | Default | Meaning |\n|---|---|---|\n");
    for setting in settings() {
        let key = match setting.key.strip_prefix("providers.") {
            Some(rest) => match rest.strip_prefix("anthropic.") {
                Some(key) => format!("providers.<name>.{key}"),
                None => continue,
            },
            None => setting.key,
        };
        let default = match setting.default {
            Some(_) if key.starts_with("providers.") => "built in for `anthropic`, `openai`, `gemini`".to_owned(),
            Some(default) => format!("`{default}`"),
            None => "unset".to_owned(),
        };
        let _ = writeln!(rows, "| `{key}` | {} | {} |", cell(&default), cell(&setting.text));
    }
    rows
}

/// The JSON Schema of a configuration file: every key may be left out, and says what it means.
pub fn schema() -> Json {
    let mut schema = Shape::new().json().clone();
    let texts: BTreeMap<String, Setting> =
        settings().into_iter().map(|setting| (setting.key.clone(), setting)).collect();
    strip(&mut schema);
    let definitions = schema.get("$defs").cloned().unwrap_or_default();
    describe(&mut schema, "", &texts, &definitions);
    if let Some(root) = schema.as_object_mut() {
        root.remove("$defs");
        root.insert("title".into(), json!("cocode configuration"));
    }
    schema
}

/// Removes what holds for the merged configuration only, and comments that are for readers of the code.
fn strip(node: &mut Json) {
    match node {
        Json::Object(object) => {
            object.remove("required");
            if object.get("description").is_some_and(Json::is_string) {
                object.remove("description");
            }
            if object.contains_key("type") || object.contains_key("$ref") {
                object.remove("default");
            }
            object.values_mut().for_each(strip);
        }
        Json::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Puts definitions in place and adds the texts and defaults of `default.toml`.
fn describe(node: &mut Json, key: &str, texts: &BTreeMap<String, Setting>, definitions: &Json) {
    let name = node.get("$ref").and_then(Json::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
    if let Some(definition) = name.and_then(|name| definitions.get(name)) {
        *node = definition.clone();
    }
    let join = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    if let Some(properties) = node.get_mut("properties").and_then(Json::as_object_mut) {
        for (name, property) in properties.iter_mut() {
            describe(property, &join(name), texts, definitions);
        }
    }
    if let Some(any) = node.get_mut("additionalProperties").filter(|any| any.is_object()) {
        let key = if key == "providers" { "providers.anthropic".to_owned() } else { join("*") };
        describe(any, &key, texts, definitions);
    }
    let (Some(setting), Some(object)) = (texts.get(key), node.as_object_mut()) else { return };
    object.insert("description".into(), json!(setting.text));
    let default = setting.default.as_ref().filter(|_| !key.starts_with("providers."));
    let value = default.and_then(|text| toml::from_str::<toml::Table>(&format!("value = {text}")).ok());
    if let Some(value) = value.and_then(|table| serde_json::to_value(table.get("value")?).ok()) {
        object.insert("default".into(), value);
    }
}

/// Text that fits into one cell of a Markdown table.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_explained_and_every_key_is_a_setting() {
        let settings = settings();
        for setting in settings.iter().filter(|setting| !setting.key.starts_with("providers.")) {
            assert!(setting.text.ends_with('.') || setting.text.ends_with(')'), "{setting:?}");
        }
        let shape = Shape::new();
        for setting in &settings {
            let path: Vec<String> = setting.key.split('.').map(str::to_owned).collect();
            shape.node(&path).unwrap();
        }
        let described = schema().to_string();
        for key in ["theme", "max_turns", "api_key_command", "search_url", "window"] {
            assert!(described.contains(&format!("\"{key}\":{{")), "{key}");
        }
    }

    #[test]
    fn every_key_of_the_schema_is_in_the_defaults() {
        fn check(node: &Json, key: &str, known: &[Setting]) {
            // Events are the names of one table that only users fill.
            if let Some(properties) = node.get("properties").and_then(Json::as_object).filter(|_| key != "hooks") {
                for (name, property) in properties {
                    check(property, &if key.is_empty() { name.clone() } else { format!("{key}.{name}") }, known);
                }
            } else if !matches!(key, "providers" | "models") {
                assert!(known.iter().any(|setting| setting.key == key), "{key} is not in default.toml");
            }
        }
        check(&schema(), "", &settings());
    }

    #[test]
    fn commented_examples_are_valid() {
        let uncommented: String = DEFAULTS
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        assert_eq!(Shape::new().faults(&uncommented.parse().unwrap()), []);
    }
}
