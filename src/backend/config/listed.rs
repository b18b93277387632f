//! Every setting as it is now, for a list: its value, where that is from, and how it is changed.

use serde_json::Value as Json;
use toml::Value;

use super::docs;
use super::layer::{Layer, Source, path_of};
use super::shape::Shape;
use super::{Loaded, find, themes};
use crate::protocol::report::Holds;
use crate::protocol::{SettingKind, SettingRow};
use crate::stdx::schema;

/// Stands for what may be secret.
const HIDDEN: &str = "•••";

impl Loaded {
    /// Every setting, in the order of `default.toml`, and then those that somebody named: variables, models, providers.
    /// `own_themes` are the user's own; `holds` says when a change counts.
    pub fn listed(&self, own_themes: &[String], holds: impl Fn(&str) -> Holds) -> Vec<SettingRow> {
        let shape = Shape::new();
        let known = docs::settings();
        let named = self.given_keys().into_iter().filter(|key| known.iter().all(|setting| setting.key != *key));
        let named = named.filter(|key| !key.starts_with("hooks.")).map(|key| {
            // What the table means, or the same key of the first provider, stands for all.
            let last = key.rsplit('.').next().unwrap_or(&key);
            let about = known.iter().find(|setting| {
                key.starts_with(&format!("{}.", setting.key)) || setting.key == format!("providers.anthropic.{last}")
            });
            docs::Setting { text: about.map(|setting| setting.text.clone()).unwrap_or_default(), key, default: None }
        });
        let rows: Vec<docs::Setting> = known.iter().cloned().chain(named).collect();
        rows.into_iter().map(|setting| self.row(setting, &shape, own_themes, &holds)).collect()
    }

    fn row(
        &self,
        docs::Setting { key, default, text }: docs::Setting,
        shape: &Shape,
        own_themes: &[String],
        holds: &impl Fn(&str) -> Holds,
    ) -> SettingRow {
        let path = path_of(&key);
        let value = find(&self.merged, &path);
        let layer = self
            .layers
            .iter()
            .rev()
            .find(|layer| find(&layer.table, &path).is_some_and(|value| *value != Value::Array(Vec::new())));
        let node = shape.node(&path).ok();
        let kind = match node {
            _ if key == "tui.theme" => {
                let shipped = themes::SHIPPED.iter().map(|name| (*name).to_owned());
                SettingKind::Choice { values: shipped.chain(own_themes.iter().cloned()).collect() }
            }
            Some(node) => kind(node),
            None => SettingKind::Table,
        };
        let secret = key.starts_with("env.") || key.ends_with(".headers") || key.contains(".headers.");
        let value = match value {
            Some(Value::Table(table)) if table.is_empty() => None,
            Some(Value::Table(table)) => Some(format!("{} set", table.len())),
            Some(_) if secret => Some(HIDDEN.to_owned()),
            value => value.map(typed),
        };
        let default = default.and_then(|text| text.parse::<Value>().ok()).map(|value| typed(&value));
        let source = match (&value, layer) {
            (None, _) | (_, None) => "default".to_owned(),
            (Some(_), Some(layer)) => source(layer, &key),
        };
        SettingRow { holds: holds(&key), value, source, default, about: text, kind, key }
    }
}

fn kind(node: &Json) -> SettingKind {
    let choices = super::shape::words(node);
    match schema::kind(node) {
        _ if !choices.is_empty() => {
            SettingKind::Choice { values: choices.iter().filter_map(|one| one.as_str()).map(str::to_owned).collect() }
        }
        Some("boolean") => SettingKind::Switch,
        Some("object") => SettingKind::Table,
        Some("array") if node.pointer("/items/type").and_then(Json::as_str) == Some("object") => SettingKind::Table,
        _ => SettingKind::Text,
    }
}

/// A value as one types it.
fn typed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_str) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        value => value.to_string(),
    }
}

/// Where a value is from, in few words.
fn source(layer: &Layer, key: &str) -> String {
    let who = match layer.source {
        Source::Default => return "default".to_owned(),
        Source::ManagedDefaults => "managed",
        Source::Policy => "administrator",
        Source::UserSettings | Source::User => "user",
        Source::ProjectSettings | Source::Project | Source::LocalSettings | Source::Local => "project",
        Source::Flags => return "command line".to_owned(),
        Source::Environment => return layer.place(key),
    };
    let place = layer.place(key);
    let name = place.rsplit(['/', '\\']).next().unwrap_or(&place);
    format!("{who}, {name}")
}

#[cfg(test)]
mod tests {
    use super::super::paths::{Env, Paths};
    use super::super::{edit, load};
    use super::*;
    use crate::protocol::SettingPlace;

    #[test]
    fn settings_are_listed_with_source_and_kind() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::fake(dir.path(), &[("COCODE_MAX_TURNS", "7")]);
        let paths = Paths::new(&env).unwrap();
        let project = dir.path().join("project");
        let user = edit::Target::new(&paths, &project, SettingPlace::User);
        for (key, value) in [
            ("tui.theme", "night"),
            ("env.TOKEN", "s3cret"),
            ("permissions.allow", "Read, Bash(ls:*)"),
            ("providers.mine.wire", "openai-chat"),
        ] {
            if key == "tui.theme" {
                edit::replace(&paths.themes().join("night.toml"), b"name = \"night\"\n").unwrap();
            }
            edit::change(&user, key, Some(value)).unwrap();
        }
        edit::change(&user, "providers.mine.base_url", Some("http://h/v1")).unwrap();
        let loaded = load(&paths, &env, toml::Table::new()).unwrap();
        let rows = loaded.listed(&["night".to_owned()], |_| Holds::Now);
        let check = |key: &str, want: &str| {
            let row = rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("{key} is not listed"));
            let kind = match &row.kind {
                SettingKind::Choice { values } => values.join("|"),
                kind => format!("{kind:?}"),
            };
            assert_eq!(format!("{} · {} · {kind}", row.shown(), row.source), want, "{key}");
        };
        check("tui.theme", "‹night› · user, config.toml:2 · auto|dark|light|terminal|mono|night");
        check("tui.highlight", "‹on› · default · Switch");
        check("max_turns", "7 · variable COCODE_MAX_TURNS · Text");
        check("env.TOKEN", "••• · user, config.toml:5 · Text");
        check("permissions.allow", "Read, Bash(ls:*) · user, config.toml:8 · Text");
        check("hooks", "unset · default · Table");
        check("model", "unset · default · Text");
        check("log.level", "‹info› · default · off|error|warn|info|debug");
        assert!(!format!("{rows:?}").contains("s3cret"));
        assert!(
            rows.iter().all(|row| !row.about.is_empty() || row.key.starts_with("providers.")),
            "each says what it means"
        );
    }
}
