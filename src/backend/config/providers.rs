//! Which providers are set up, and what the others lack.

use toml::{Table, Value};

use super::find;
use super::layer::{Layer, Problem};

/// Whether it says where requests go or with which key, and not only which models are meant.
pub(super) fn leads_somewhere(provider: &Value) -> bool {
    ["base_url", "api_key_env", "api_key_command"].iter().any(|key| provider.get(key).is_some())
}

/// Those that nobody can ask, with what is missing.
pub(super) fn incomplete(merged: &Table, layers: &[Layer]) -> Vec<Problem> {
    let Some(Value::Table(providers)) = merged.get("providers") else { return Vec::new() };
    let missing = providers.iter().flat_map(|(name, provider)| {
        let lacks = |key: &&str| provider.get(key).is_none();
        ["wire", "base_url"].into_iter().filter(lacks).map(move |key| (name, key))
    });
    let problem = |(name, key): (&String, &str)| {
        let table = format!("providers.{name}");
        let wanted = ["providers".to_owned(), name.clone()];
        let layer = layers.iter().rev().find(|layer| find(&layer.table, &wanted).is_some());
        let place = layer.map_or_else(|| "configuration".to_owned(), |layer| layer.place(&table));
        let values = if key == "wire" { ": anthropic, openai, openai-chat or gemini" } else { "" };
        Problem { place, message: format!("`{table}` needs `{key}`{values}") }
    };
    missing.map(problem).collect()
}
