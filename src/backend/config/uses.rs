//! Which of a project's settings need the user's consent, line by line, and which have it.

use std::path::Path;

use toml::{Table, Value};

use super::layer::{Layer, adds_up};
use crate::hooks::Definitions;
use crate::permission::{Bound, Trust, Use};
use crate::stdx::ansi::{one_line, shown};

/// What a project may say without consent: it only restricts.
const HARMLESS: [&str; 9] = [
    "permissions.deny",
    "permissions.ask",
    "permissions.disable_bypass",
    "permissions.block_outside_reads",
    "permissions.block_outside_writes",
    "permissions.deny_instead_of_asking",
    "denied_models",
    "mcp.disabled_project",
    "mcp.denied",
];
/// Tables whose entries count as a whole: half a provider is useless.
const WHOLE: [&str; 2] = ["providers", "models"];

/// Where a layer lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub project: &'a Path,
    /// The file, relative to the project.
    pub name: &'a str,
}

/// Takes everything out of a layer that the user has not agreed to. Returns all that needs it, whether agreed to or not.
pub(super) fn withhold(layer: &mut Layer, place: Place, trust: &Trust) -> Vec<Use> {
    let (mut uses, runs) = (Vec::new(), &mut layer.runs);
    sift(&mut layer.table, "", &mut |key, value| {
        let (used, bound, commands) = of(place, key, value);
        let keep = trust.covers(&used);
        if keep {
            for what in commands.into_iter().chain([key.to_owned()]) {
                runs.entry(what).or_default().join(bound.runs());
            }
        }
        uses.push(used);
        keep
    });
    uses
}

/// The rule that a project's file would grant.
pub(super) fn grant(place: Place, rule: &str) -> Use {
    of(place, "permissions.allow", &Value::String(rule.to_owned())).0
}

/// Also what of the project it runs, and the commands that do.
fn of(place: Place, key: &str, value: &Value) -> (Use, Bound, Vec<String>) {
    let (name, mut commands) = (place.name, Vec::new());
    let (mut shown_value, mut bound, mut runs) = (format!("{key} = {value}"), String::new(), Bound::default());
    if let Some(event) = key.strip_prefix("hooks.") {
        let group = Table::from_iter([(event.to_owned(), Value::Array(vec![value.clone()]))]);
        let hooks: Definitions = Value::Table(group).try_into().unwrap_or_default();
        // Commands that would run are shown so that a person can judge them; the rest of the group is bound anyway.
        shown_value = hooks.lines().join("; ");
        bound = value.to_string();
        commands.extend(hooks.all().filter_map(|(_, _, hook)| hook.command()));
        runs = Bound::commands(place.project, commands.iter().map(String::as_str));
    } else if let Some(command) = value.get("api_key_command").and_then(Value::as_str) {
        commands.push(command.to_owned());
        runs = Bound::commands(place.project, [command]);
    } else if let Some(command) = value.as_str().filter(|_| key == "status_line.command") {
        commands.push(command.to_owned());
        runs = Bound::commands(place.project, [command]);
    } else if let Some(text) = value.as_str().filter(|_| key.starts_with("env.")) {
        runs = Bound::value(place.project, text);
    }
    let used =
        Use::running(format!("{key} ({name})"), shown(&one_line(&format!("{shown_value} ({name})"))), &bound, &runs);
    (used, runs, commands)
}

fn sift(table: &mut Table, prefix: &str, keep: &mut dyn FnMut(&str, &Value) -> bool) {
    table.retain(|name, value| {
        let key = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        match value {
            _ if HARMLESS.contains(&key.as_str()) => true,
            Value::Table(inner) if !WHOLE.contains(&prefix) => {
                sift(inner, &key, keep);
                !inner.is_empty()
            }
            Value::Array(items) if adds_up(&key) => {
                items.retain(|item| keep(&key, item));
                !items.is_empty()
            }
            value => keep(&key, value),
        }
    });
}
