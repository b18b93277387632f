//! The `sandbox` object of Claude Code's settings: what has a meaning here becomes a setting or a permission rule, and the
//! rest is named.

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use super::super::layer::Source;
use crate::tools::{EDIT, READ, WEB_FETCH};

/// What the object says.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Of `[sandbox]`.
    pub(super) settings: Table,
    /// Rules with the list that they belong to.
    pub(super) rules: Vec<(&'static str, String)>,
    /// What is left out, and why.
    pub(super) told: Vec<String>,
}

/// Keys without a meaning here, with what holds instead.
const WITHOUT_EFFECT: [(&str, &str); 4] = [
    ("network.allowLocalBinding", "a confined command cannot listen on a port"),
    ("network.allowUnixSockets", "a confined command cannot connect to sockets in files"),
    ("network.allowAllUnixSockets", "a confined command cannot connect to sockets in files"),
    ("enableWeakerNestedSandbox", "the sandbox needs no namespaces"),
];

pub(super) fn read(given: &Map<String, Json>, source: Source) -> Read {
    let mut read = Read::default();
    read.flag(given, "enabled", |read, on| {
        let profile = if on { "workspace" } else { "off" };
        read.settings.insert("approved".into(), Value::String(profile.into()));
    });
    read.flag(given, "autoAllowBashIfSandboxed", |read, on| {
        read.settings.insert("auto_allow".into(), Value::Boolean(on));
    });
    read.flag(given, "failIfUnavailable", |read, on| {
        read.settings.insert("required".into(), Value::Boolean(on));
    });
    read.flag(given, "allowUnsandboxedCommands", |read, on| {
        read.settings.insert("allow_unsandboxed".into(), Value::Boolean(on));
    });
    // They are patterns of commands there. What runs a program outside is its name, whatever follows.
    let excluded = read.list(given, "", "excludedCommands");
    let names = excluded.iter().filter_map(|command| command.split([' ', ':']).next()).filter(|name| !name.is_empty());
    let names: Vec<Value> = names.map(|name| Value::String(name.to_owned())).collect();
    if !names.is_empty() {
        read.settings.insert("excluded".into(), Value::Array(names));
    }
    for (table, key, list, tool) in [
        ("network", "allowedDomains", "allow", WEB_FETCH),
        ("network", "deniedDomains", "deny", WEB_FETCH),
        ("filesystem", "allowWrite", "allow", EDIT),
        ("filesystem", "denyWrite", "deny", EDIT),
        ("filesystem", "denyRead", "deny", READ),
    ] {
        let Some(inner) = read.object(given, table) else { continue };
        for text in read.list(inner, &format!("{table}."), key) {
            let what = if tool == WEB_FETCH { format!("domain:{text}") } else { pattern(&text, source) };
            read.rules.push((list, format!("{tool}({what})")));
        }
    }
    read.others(given);
    read
}

/// A path of the object as a rule writes it.
fn pattern(path: &str, source: Source) -> String {
    let path = path.trim_end_matches("/**").trim_end_matches('/');
    if path.starts_with("//") || path.starts_with('~') {
        return path.to_owned();
    }
    match (path.strip_prefix('/'), source) {
        (Some(rest), _) => format!("//{rest}"),
        (None, Source::UserSettings) => format!("~/.claude/{}", path.trim_start_matches("./")),
        (None, _) => format!("/{}", path.trim_start_matches("./")),
    }
}

impl Read {
    fn wrong(&mut self, key: &str, want: &str) {
        self.told.push(format!("`sandbox.{key}` is ignored: it must be {want}"));
    }

    fn flag(&mut self, given: &Map<String, Json>, key: &str, take: impl FnOnce(&mut Read, bool)) {
        match given.get(key) {
            Some(Json::Bool(on)) => take(self, *on),
            None | Some(Json::Null) => {}
            Some(_) => self.wrong(key, "true or false"),
        }
    }

    fn object<'a>(&mut self, given: &'a Map<String, Json>, key: &str) -> Option<&'a Map<String, Json>> {
        given.get(key).and_then(Json::as_object)
    }

    fn list(&mut self, given: &Map<String, Json>, table: &str, key: &str) -> Vec<String> {
        match given.get(key) {
            None | Some(Json::Null) => Vec::new(),
            Some(Json::Array(items)) if items.iter().all(Json::is_string) => {
                items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
            }
            Some(_) => {
                self.wrong(&format!("{table}{key}"), "a list of strings");
                Vec::new()
            }
        }
    }

    /// Names what has no effect.
    fn others(&mut self, given: &Map<String, Json>) {
        const KNOWN: [&str; 10] = [
            "enabled",
            "autoAllowBashIfSandboxed",
            "failIfUnavailable",
            "allowUnsandboxedCommands",
            "excludedCommands",
            "network.allowedDomains",
            "network.deniedDomains",
            "filesystem.allowWrite",
            "filesystem.denyWrite",
            "filesystem.denyRead",
        ];
        let mut keys = Vec::new();
        for (key, value) in given {
            match (key.as_str(), value) {
                ("network" | "filesystem", Json::Object(inner)) => {
                    keys.extend(inner.iter().map(|(name, value)| (format!("{key}.{name}"), value)));
                }
                ("network" | "filesystem", Json::Null) => {}
                ("network" | "filesystem", _) => self.wrong(key, "an object"),
                _ => keys.push((key.clone(), value)),
            }
        }
        for (key, value) in keys {
            if KNOWN.contains(&key.as_str()) || !super::restricts(value) {
                continue;
            }
            let instead = WITHOUT_EFFECT.iter().find(|(known, _)| *known == key);
            let why = instead.map_or("cocode does not know it", |(_, instead)| instead);
            self.told.push(format!("`sandbox.{key}` has no effect: {why}"));
        }
    }
}
