//! What a setting is, and where it comes from.

use std::path::Path;

use toml::Value;

use super::layer::{Layer, Source, adds_up, leaves, path_of};
use super::shape::Shape;
use super::{Loaded, aliases, claude, find};
use crate::protocol::report::{Given, Setting};

impl Loaded {
    /// The value of a key as TOML; `None` if it is not set.
    ///
    /// # Errors
    /// There is no such key; names the nearest.
    pub fn get(&self, key: &str) -> Result<Option<Value>, String> {
        let path = path_of(key);
        Shape::new().node(&path)?;
        Ok(find(&self.merged, &path).cloned())
    }

    /// What becomes of a key of Claude Code's settings.json that is not one of ours, with the settings that it sets.
    ///
    /// # Errors
    /// Neither of them has such a key; names the nearest.
    pub fn explain_foreign(&self, key: &str) -> Result<(String, Vec<Setting>), String> {
        let Some((text, ours)) = claude::keys::explain(key) else {
            return Err(match claude::keys::near(key) {
                Some(near) => {
                    format!("unknown setting {key:?}: did you mean `{near}` of Claude Code's settings.json?")
                }
                None => format!("unknown setting {key:?}"),
            });
        };
        let settings = ours.into_iter().filter_map(|name| self.explain(name).ok()).flatten().collect();
        Ok((text, settings))
    }

    /// A key, or every key of a table: its value, where it came from, and what it overrides.
    ///
    /// # Errors
    /// There is no such key; names the nearest.
    pub fn explain(&self, key: &str) -> Result<Vec<Setting>, String> {
        let key = aliases::own_name(key).unwrap_or(key);
        let path = path_of(key);
        Shape::new().node(&path)?;
        let mut keys = Vec::new();
        match find(&self.merged, &path) {
            Some(Value::Table(table)) => {
                leaves(table, key, &mut |key, value| keys.push((key.to_owned(), value.clone())))
            }
            Some(value) => keys.push((key.to_owned(), value.clone())),
            None => return Ok(vec![Setting { key: key.to_owned(), value: None, given: Vec::new(), adds_up: false }]),
        }
        let explain = |(key, value): (String, Value)| {
            let path = path_of(&key);
            let adds_up = adds_up(&key) && value.is_array();
            let given = |layer: &Layer| {
                let value = find(&layer.table, &path).filter(|value| **value != Value::Array(Vec::new()))?;
                let place = match layer.source {
                    Source::Default => "built-in defaults".to_owned(),
                    source => match layer.place(&key) {
                        place if place == source.to_string() => place,
                        place => format!("{source}, {place}"),
                    },
                };
                Some(Given { value: value.to_string(), place })
            };
            let given = self.layers.iter().rev().filter_map(given).collect();
            Setting { key, value: Some(value.to_string()), given, adds_up }
        };
        Ok(keys.into_iter().map(explain).collect())
    }

    /// Whose value of a key counts where a file's does not; none where it does.
    pub fn wins_over(&self, key: &str, file: &Path) -> Option<String> {
        let path = path_of(key);
        let layer = self.layers.iter().rev().find(|layer| find(&layer.table, &path).is_some())?;
        let adds = adds_up(key) && find(&self.merged, &path).is_some_and(Value::is_array);
        (layer.file.as_deref() != Some(file) && !adds).then(|| layer.place(key))
    }
}
