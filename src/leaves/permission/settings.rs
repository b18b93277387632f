//! The `permissions` key of settings files, as Claude Code writes it too.

use serde::{Deserialize, Serialize};

use super::rule::{RuleSet, Source};
use super::{Behavior, Mode, Vocabulary};

/// Rules as text, the mode to start in, and further folders to work in. Foreign keys are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PermissionSettings {
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
    #[serde(alias = "defaultMode", skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<Mode>,
    #[serde(alias = "additionalDirectories")]
    pub additional_directories: Vec<String>,
}

impl PermissionSettings {
    /// Puts the rules into the set. A rule that cannot be read makes the source broken, so that what it could have denied
    /// asks; the returned sentences name each such rule and its fix.
    pub fn add_to(&self, rules: &mut RuleSet, source: Source, vocabulary: Vocabulary) -> Vec<String> {
        let lists = [(Behavior::Allow, &self.allow), (Behavior::Ask, &self.ask), (Behavior::Deny, &self.deny)];
        let mut problems = Vec::new();
        for (behavior, list) in lists {
            for text in list {
                match vocabulary.rule(text) {
                    Ok(rule) => rules.add(behavior, rule, source),
                    Err(error) => {
                        // A lost allow rule can only make us ask more.
                        if behavior != Behavior::Allow {
                            rules.mark_broken(source);
                        }
                        problems.push(format!("{error}"));
                    }
                }
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_claude_code_writes() {
        let json = r#"{"allow": ["Bash(ls:*)"], "deny": ["Read(.env)"], "defaultMode": "acceptEdits",
            "additionalDirectories": ["../docs"], "disableBypassPermissionsMode": "disable"}"#;
        let want = PermissionSettings {
            allow: vec!["Bash(ls:*)".into()],
            deny: vec!["Read(.env)".into()],
            default_mode: Some(Mode::AcceptEdits),
            additional_directories: vec!["../docs".into()],
            ..PermissionSettings::default()
        };
        assert_eq!(serde_json::from_str::<PermissionSettings>(json).unwrap(), want);
    }

    #[test]
    fn an_unreadable_deny_rule_breaks_its_source() {
        let mut rules = RuleSet::default();
        let settings = PermissionSettings { allow: vec!["Bash(".into()], ..PermissionSettings::default() };
        assert_eq!(settings.add_to(&mut rules, Source::User, crate::permission::vocabulary::TOOLS).len(), 1);
        assert_eq!(rules.broken(), &[]);
        let settings =
            PermissionSettings { deny: vec!["Bash(".into(), "Read".into()], ..PermissionSettings::default() };
        assert_eq!(settings.add_to(&mut rules, Source::User, crate::permission::vocabulary::TOOLS).len(), 1);
        assert_eq!(rules.broken(), &[Source::User]);
    }
}
