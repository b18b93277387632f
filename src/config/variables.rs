//! Variables under the names that Claude Code gave them. Each is also read as `COCODE_…`, which wins.

use toml::Value;

use super::layer::Problem;
use super::paths::Env;

/// How a variable's text becomes a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// A whole number of this range.
    Count(i64, i64),
    /// A number above 0 and up to 100.
    Percent,
    /// On: the setting is false.
    Disables,
}

/// Largest count that a setting takes.
const MOST: i64 = u32::MAX as i64;

/// Variable, setting, and how it is read.
const KNOWN: [(&str, &str, Reading); 14] = [
    ("CLAUDE_CODE_PLAN_V2_EXPLORE_AGENT_COUNT", "plan.explore_agents", Reading::Count(1, 5)),
    ("CLAUDE_CODE_PLAN_V2_AGENT_COUNT", "plan.plan_agents", Reading::Count(1, 5)),
    ("SLASH_COMMAND_TOOL_CHAR_BUDGET", "skills.list_budget", Reading::Count(0, 10_000_000)),
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "reminders", Reading::Disables),
    ("DISABLE_COMPACT", "compact.enabled", Reading::Disables),
    ("DISABLE_AUTO_COMPACT", "compact.auto", Reading::Disables),
    ("DISABLE_MICROCOMPACT", "features.micro_compact", Reading::Disables),
    ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "compact.auto_compact_pct_override", Reading::Percent),
    ("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "compact.blocking_limit", Reading::Count(0, MOST)),
    ("CLAUDE_SESSION_MEMORY_MIN_TOKENS", "compact.session_memory.min_net_saving", Reading::Count(0, MOST)),
    ("CLAUDE_SESSION_MEMORY_MAX_TOKENS", "compact.session_memory.max_summary", Reading::Count(0, MOST)),
    ("CLAUDE_EXTRACTION_COOLDOWN", "compact.session_memory.cooldown_s", Reading::Count(0, MOST)),
    ("CLAUDE_CONTEXT_RESTORE_MAX_FILES", "compact.restore.max_files", Reading::Count(0, MOST)),
    ("CLAUDE_CONTEXT_RESTORE_BUDGET", "compact.restore.total_file_budget", Reading::Count(0, MOST)),
];

/// A setting from one of these variables.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) variable: String,
    pub(super) key: &'static str,
    pub(super) value: Value,
}

/// Our name for a variable of Claude Code.
fn own(name: &str) -> String {
    let rest = name.strip_prefix("CLAUDE_CODE_").or_else(|| name.strip_prefix("CLAUDE_")).unwrap_or(name);
    format!("COCODE_{rest}")
}

/// Whether the name is one of these, in our spelling.
pub(super) fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|(theirs, _, _)| own(theirs) == name)
}

/// What the environment says. A value that does not parse is reported, and the default applies.
pub(super) fn read(env: &Env) -> (Vec<Found>, Vec<Problem>) {
    let (mut found, mut odd) = (Vec::new(), Vec::new());
    for (name, key, reading) in KNOWN {
        for variable in [own(name), name.to_owned()] {
            match env.get(&variable).map(|text| value(text, reading)) {
                None => continue,
                // Ours wins, even if it says that nothing changes.
                Some(Ok(None)) => break,
                Some(Ok(Some(value))) => {
                    found.push(Found { variable, key, value });
                    break;
                }
                Some(Err(want)) => odd.push(Problem {
                    place: format!("variable {variable}"),
                    message: format!("ignored: it must be {want}"),
                }),
            }
        }
    }
    (found, odd)
}

fn value(text: &str, reading: Reading) -> Result<Option<Value>, String> {
    match reading {
        Reading::Count(least, most) => match text.trim().parse::<i64>() {
            Ok(count) if (least..=most).contains(&count) => Ok(Some(count.into())),
            _ => Err(format!("a whole number from {least} to {most}, but is {text:?}")),
        },
        Reading::Percent => match text.trim().parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Some(percent.into())),
            _ => Err(format!("a number above 0 and up to 100, but is {text:?}")),
        },
        Reading::Disables => match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(Some(false.into())),
            "0" | "false" | "no" | "off" => Ok(None),
            _ => Err(format!("1 or 0, but is {text:?}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn theirs_and_ours() {
        let check = |vars: &[(&str, &str)], want: &[&str], wrong: &[&str]| {
            let (found, odd) = read(&Env::fake(Path::new("/h"), vars));
            let found: Vec<String> =
                found.iter().map(|found| format!("{} = {} ({})", found.key, found.value, found.variable)).collect();
            let odd: Vec<String> = odd.iter().map(ToString::to_string).collect();
            assert_eq!(
                (found, odd),
                (want.iter().map(ToString::to_string).collect(), wrong.iter().map(ToString::to_string).collect())
            );
        };
        check(&[], &[], &[]);
        check(
            &[("CLAUDE_CODE_PLAN_V2_AGENT_COUNT", "2"), ("COCODE_PLAN_V2_AGENT_COUNT", "3")],
            &["plan.plan_agents = 3 (COCODE_PLAN_V2_AGENT_COUNT)"],
            &[],
        );
        check(&[("DISABLE_COMPACT", "1"), ("COCODE_DISABLE_COMPACT", "0")], &[], &[]);
        // What does not read counts as not set.
        check(
            &[("DISABLE_AUTO_COMPACT", "on"), ("COCODE_DISABLE_AUTO_COMPACT", "maybe")],
            &["compact.auto = false (DISABLE_AUTO_COMPACT)"],
            &["variable COCODE_DISABLE_AUTO_COMPACT: ignored: it must be 1 or 0, but is \"maybe\""],
        );
        check(
            &[("CLAUDE_CODE_PLAN_V2_EXPLORE_AGENT_COUNT", "9")],
            &[],
            &[
                "variable CLAUDE_CODE_PLAN_V2_EXPLORE_AGENT_COUNT: ignored: it must be a whole number from 1 to 5, but is \"9\"",
            ],
        );
        check(
            &[("CLAUDE_CODE_DISABLE_ATTACHMENTS", "Yes")],
            &["reminders = false (CLAUDE_CODE_DISABLE_ATTACHMENTS)"],
            &[],
        );
        check(&[("COCODE_DISABLE_ATTACHMENTS", "0")], &[], &[]);
        check(&[("DISABLE_COMPACT", "1")], &["compact.enabled = false (DISABLE_COMPACT)"], &[]);
        check(
            &[("COCODE_AUTOCOMPACT_PCT_OVERRIDE", "72.5"), ("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "many")],
            &["compact.auto_compact_pct_override = 72.5 (COCODE_AUTOCOMPACT_PCT_OVERRIDE)"],
            &[
                "variable CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE: ignored: it must be a whole number from 0 to 4294967295, but is \"many\"",
            ],
        );
        check(
            &[("COCODE_DISABLE_ATTACHMENTS", "maybe")],
            &[],
            &["variable COCODE_DISABLE_ATTACHMENTS: ignored: it must be 1 or 0, but is \"maybe\""],
        );
    }
}
