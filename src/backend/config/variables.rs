//! Variables under the names that Claude Code and the providers' own tools gave them. They stand in the environment, or
//! below `env` in a settings.json. Each is also read as `COCODE_…`, which wins.

use toml::{Table, Value};

use super::layer::Problem;

/// How a variable's text becomes a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// A whole number of this range.
    Count(i64, i64),
    /// A number above 0 and up to 100.
    Percent,
    /// On: the setting is false.
    Disables,
    Text,
    /// A model of Anthropic's or of a gateway in its place, by id or role.
    Model,
    /// Lines of `Name: value`.
    Headers,
    /// Where it is set, the setting has this value.
    Means(&'static str),
}

/// Largest count that a setting takes.
const MOST: i64 = u32::MAX as i64;

/// Variable, setting, and how it is read.
const KNOWN: [(&str, &str, Reading); 26] = [
    ("ANTHROPIC_BASE_URL", "providers.anthropic.base_url", Reading::Text),
    ("OPENAI_BASE_URL", "providers.openai.base_url", Reading::Text),
    ("GEMINI_BASE_URL", "providers.gemini.base_url", Reading::Text),
    ("ANTHROPIC_AUTH_TOKEN", "providers.anthropic.api_key_env", Reading::Means("ANTHROPIC_AUTH_TOKEN")),
    ("ANTHROPIC_AUTH_TOKEN", "providers.anthropic.key_header", Reading::Means("bearer")),
    ("ANTHROPIC_CUSTOM_HEADERS", "providers.anthropic.headers", Reading::Headers),
    ("ANTHROPIC_MODEL", "model", Reading::Model),
    // The older name of the one below it.
    ("ANTHROPIC_SMALL_FAST_MODEL", "providers.anthropic.models.haiku", Reading::Text),
    ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "providers.anthropic.models.haiku", Reading::Text),
    ("ANTHROPIC_DEFAULT_SONNET_MODEL", "providers.anthropic.models.sonnet", Reading::Text),
    ("ANTHROPIC_DEFAULT_OPUS_MODEL", "providers.anthropic.models.opus", Reading::Text),
    ("GOOGLE_API_KEY", "providers.gemini.api_key_env", Reading::Means("GOOGLE_API_KEY")),
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

/// What these variables say. A value that does not parse is reported, and the default applies.
pub(super) fn read(get: &dyn Fn(&str) -> Option<String>) -> (Vec<Found>, Vec<Problem>) {
    let (mut found, mut odd) = (Vec::new(), Vec::new());
    for (name, key, reading) in KNOWN {
        // The key itself stays under its name.
        let names =
            if matches!(reading, Reading::Means(_)) { vec![name.to_owned()] } else { vec![own(name), name.into()] };
        for variable in names {
            match get(&variable).filter(|text| !text.trim().is_empty()).map(|text| value(&text, reading)) {
                None => continue,
                // Ours wins, even if it says that nothing changes.
                Some(Ok(None)) => break,
                Some(Ok(Some(_))) if name == "GOOGLE_API_KEY" && get("GEMINI_API_KEY").is_some() => break,
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
        Reading::Text => Ok(Some(text.trim().into())),
        Reading::Means(value) => Ok(Some(value.into())),
        Reading::Model => match text.trim() {
            "" | "default" => Ok(None),
            model => Ok(Some(format!("anthropic/{model}").into())),
        },
        Reading::Headers => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let header = |line: &str| {
                let (name, value) = line.split_once(':')?;
                Some((name.trim().to_owned(), Value::String(value.trim().to_owned())))
            };
            let headers =
                lines.map(|line| header(line).ok_or("lines of `Name: value`")).collect::<Result<Table, _>>()?;
            Ok(Some(Value::Table(headers)))
        }
        Reading::Disables => match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(Some(false.into())),
            "0" | "false" | "no" | "off" => Ok(None),
            _ => Err(format!("1 or 0, but is {text:?}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theirs_and_ours() {
        let check = |vars: &[(&str, &str)], want: &[&str], wrong: &[&str]| {
            let get = |name: &str| vars.iter().find(|(found, _)| *found == name).map(|(_, value)| (*value).to_owned());
            let (found, odd) = read(&get);
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
        check(
            &[
                ("ANTHROPIC_AUTH_TOKEN", "secret"),
                ("ANTHROPIC_MODEL", "opus[1m]"),
                ("ANTHROPIC_CUSTOM_HEADERS", "A: b\nC:d"),
            ],
            &[
                "providers.anthropic.api_key_env = \"ANTHROPIC_AUTH_TOKEN\" (ANTHROPIC_AUTH_TOKEN)",
                "providers.anthropic.key_header = \"bearer\" (ANTHROPIC_AUTH_TOKEN)",
                "providers.anthropic.headers = { A = \"b\", C = \"d\" } (ANTHROPIC_CUSTOM_HEADERS)",
                "model = \"anthropic/opus[1m]\" (ANTHROPIC_MODEL)",
            ],
            &[],
        );
        check(
            &[("ANTHROPIC_MODEL", "default"), ("ANTHROPIC_CUSTOM_HEADERS", "A"), ("ANTHROPIC_BASE_URL", " ")],
            &[],
            &["variable ANTHROPIC_CUSTOM_HEADERS: ignored: it must be lines of `Name: value`"],
        );
        check(&[("GOOGLE_API_KEY", "secret"), ("GEMINI_API_KEY", "other")], &[], &[]);
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
