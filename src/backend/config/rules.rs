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

/// The rules in files of the user's own that let tools of a server of this name run unasked.
pub(super) fn granted<'a>(rules: &'a [RuleText], server: &str) -> Vec<&'a str> {
    let tools = format!("mcp__{server}__");
    let about = |rule: &&RuleText| {
        let name = rule.text.split('(').next().unwrap_or_default().trim();
        match name.split_once('*') {
            Some((start, _)) => start.starts_with(&tools) || start.starts_with("mcp__") && tools.starts_with(start),
            None => name == "McpCall" || name.starts_with(&tools) || tools.strip_suffix("__") == Some(name),
        }
    };
    let allows = rules.iter().filter(|rule| rule.behavior == Behavior::Allow && rule.file.is_some());
    allows.filter(about).map(|rule| rule.text.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_hold_for_a_server_are_found_by_its_name() {
        for (text, want) in [
            ("mcp__srv", true),
            ("mcp__srv__*", true),
            ("mcp__srv__one(x)", true),
            ("mcp__*", true),
            ("mcp__s*", true),
            ("McpCall", true),
            ("mcp__srv2", false),
            ("mcp__sr", false),
            ("mcp__srv2__*", false),
            ("*", false),
            ("Bash(*)", false),
        ] {
            let rule = |behavior, file| RuleText {
                behavior,
                text: text.into(),
                source: crate::permission::Source::User,
                file,
            };
            let file = || Some(PathBuf::from("f"));
            assert_eq!(!granted(&[rule(Behavior::Allow, file())], "srv").is_empty(), want, "{text}");
            assert!(granted(&[rule(Behavior::Deny, file()), rule(Behavior::Allow, None)], "srv").is_empty());
        }
    }
}
