//! Permission rules as their files have them.

use std::path::PathBuf;

use toml::Value;

use super::find;
use super::layer::{Layer, Source};
use crate::permission::{self, Behavior};

/// A permission rule as written in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    pub behavior: Behavior,
    pub text: String,
    pub source: permission::Source,
    /// None for flags and variables.
    pub file: Option<PathBuf>,
}

/// All rules of a layer.
pub(super) fn of(layer: &Layer) -> Vec<RuleText> {
    let source = match layer.source {
        Source::Default | Source::ManagedDefaults | Source::Policy => permission::Source::Managed,
        Source::UserSettings => permission::Source::User,
        Source::User => permission::Source::Config,
        Source::ProjectSettings | Source::Project => permission::Source::Project,
        Source::LocalSettings | Source::Local => permission::Source::ProjectLocal,
        Source::Environment | Source::Flags => permission::Source::CommandLine,
    };
    let mut rules = Vec::new();
    for (name, behavior) in [("allow", Behavior::Allow), ("ask", Behavior::Ask), ("deny", Behavior::Deny)] {
        let list = find(&layer.table, &["permissions".to_owned(), name.to_owned()]).and_then(Value::as_array);
        for text in list.into_iter().flatten().filter_map(Value::as_str) {
            rules.push(RuleText { behavior, text: text.to_owned(), source, file: layer.file.clone() });
        }
    }
    rules
}
