//! `/bug-report`: a file with what a maintainer needs to know. Nothing is sent, and nothing of the conversation is in it.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::open::rules;
use super::reports::{Look, findings};
use crate::permission::{Behavior, Entry, RuleSet};
use crate::report;
use crate::session::Session;
use crate::stdx::address::bare;
use crate::stdx::ansi::visible;
use crate::stdx::fs::replace_private;
use crate::stdx::redact::{self, HIDDEN};

/// Lines of the log that go along, the last ones.
const LINES: usize = 200;
/// Most bytes of the log's end that are read.
const TAIL: u64 = 256 * 1024;

/// Writes the file.
///
/// # Errors
/// It cannot be written.
pub(super) async fn write(look: &Look<'_>, session: &Session) -> Result<PathBuf, String> {
    let text = bundle(look, session).await;
    let file = look.setup.paths.state_dir.join("bug-reports").join(format!("{}.md", uuid::Uuid::now_v7()));
    match replace_private(&file, text.as_bytes()) {
        Ok(()) => Ok(file),
        Err(error) => Err(format!("cannot write {}: {error}", file.display())),
    }
}

async fn bundle(look: &Look<'_>, session: &Session) -> String {
    let (model, paths, config) = (&look.agent.model, &look.setup.paths, &look.loaded.config);
    let usage = session.facts().usage();
    let mut facts = String::new();
    for (name, value) in [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("session", session.id().to_owned()),
        ("model", format!("{} (window {})", model.name(), model.spec.window)),
        ("mode", session.facts().mode.unwrap_or_default().name().to_owned()),
        ("log entries", session.next_seq().to_string()),
        ("messages in context", session.context().messages().len().to_string()),
        ("tokens", format!("{} in, {} cached, {} out", usage.input, usage.cache_read, usage.output)),
        ("rules", look.agent.rules().entries().len().to_string()),
        ("hooks", look.agent.hooks().len().to_string()),
    ] {
        let _ = writeln!(facts, "{name}: {value}");
    }
    for notice in session.notices() {
        let _ = writeln!(facts, "notice: {notice}");
    }
    let (rules, _) = rules(look.loaded);
    let mut settings = String::new();
    for key in look.loaded.given_keys() {
        settings.push_str(&match RULES.iter().find(|(rules, _)| *rules == key) {
            Some((_, behavior)) => format!("{key} = {}\n", tools_of(&rules, *behavior)),
            None if secret_key(&key) => format!("{key} = {HIDDEN}\n"),
            None => report::explained(&look.loaded.explain(&key).unwrap_or_default()),
        });
    }
    let log = last_lines(&paths.state_dir).unwrap_or_else(|error| format!("cannot be read: {error}"));
    let doctor = report::doctor(&findings(look.setup).await);
    let parts = [("Facts", facts), ("Doctor", doctor), ("Changed settings", settings), ("Log", log)];
    let text = parts.iter().fold(String::from("# cocode bug report\n"), |text, (title, part)| {
        format!("{text}\n## {title}\n\n{}\n", report::fenced(&visible(part)))
    });
    let names = config.secret_env();
    let secrets: Vec<&str> = names.iter().filter_map(|name| look.setup.env.get(name)).collect();
    redact(&text, &secrets, paths.user_home.as_deref())
}

/// The tools that rules are about, without what they say of them.
fn tools_of(rules: &RuleSet, behavior: Behavior) -> String {
    let entries = rules.entries().iter().filter(|entry| entry.behavior == behavior);
    let tools: Vec<String> = entries
        .map(|Entry { rule, source, .. }| {
            let whole = rule.to_string() == rule.tool();
            format!("{}{} from {source}", rule.tool(), if whole { "" } else { "([hidden])" })
        })
        .collect();
    tools.join(", ")
}

/// Settings that hold rules. They come from commands that were run, which may hold anything.
const RULES: [(&str, Behavior); 3] =
    [("permissions.allow", Behavior::Allow), ("permissions.ask", Behavior::Ask), ("permissions.deny", Behavior::Deny)];

/// Whether a setting's value may be a key, whatever it looks like.
fn secret_key(key: &str) -> bool {
    let parts: Vec<&str> = key.split('.').collect();
    matches!(parts.as_slice(), ["env", ..] | ["hooks", ..] | ["providers", _, "headers", ..])
        || key.ends_with("api_key_command")
        || key.ends_with("search_url")
}

/// Hides keys: those that are known, those that look like one, and all of an address but host and path. The home folder becomes `~`.
fn redact(text: &str, secrets: &[&str], home: Option<&Path>) -> String {
    // Before all else: a pattern may hide the half of an address and leave the other.
    let mut text = bare(text);
    for secret in secrets.iter().filter(|secret| secret.len() >= 4) {
        text = text.replace(secret, HIDDEN);
    }
    if let Ok(rule) = Regex::new(r#"(permission rule )"(?:[^"\\]|\\.)*""#) {
        text = rule.replace_all(&text, "$1[hidden]").into_owned();
    }
    let text = redact::keys(&text);
    match home.and_then(Path::to_str).filter(|home| home.len() > 1) {
        Some(home) => text.replace(home, "~"),
        None => text,
    }
}

/// The end of the newest log file; empty when nothing was logged.
fn last_lines(folder: &Path) -> io::Result<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(String::new()) };
    let logs = entries.flatten().map(|entry| entry.path());
    let newest: Option<PathBuf> = logs.filter(|path| path.extension().is_some_and(|ext| ext == "log")).max();
    let Some(newest) = newest else { return Ok(String::new()) };
    let mut file = std::fs::File::open(newest)?;
    let start = file.metadata()?.len().saturating_sub(TAIL);
    io::Seek::seek(&mut file, io::SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden_and_the_rest_stays() {
        fn check(text: &str, want: &str) {
            assert_eq!(redact(text, &["hunter22"], Some(Path::new("/home/me"))), want, "{text}");
        }
        check("model = \"openai/gpt-5\"", "model = \"openai/gpt-5\"");
        check("it said hunter22!", "it said [hidden]!");
        check("sk-ant-api03-abcDEF_123-x and sk-1", "[hidden] and sk-1");
        check("AIzaSyA1234567890abcdefg", "[hidden]");
        check("Authorization: Bearer abc.def-123", "Authorization: Bearer [hidden]");
        check("https://user:pw@host/v1 http://tok@h", "https://[hidden]@host/v1 http://[hidden]@h");
        check("url = \"https://g.example/v1?key=x1y2\"", "url = \"https://g.example/v1?[hidden]\"");
        check("https://x.example/?q=1&api_key=hunter22", "https://x.example/?[hidden]");
        check("OPENAI_API_KEY=abcdef, x", "OPENAI_API_KEY=[hidden], x");
        check("my-token: xyz123", "my-token: [hidden]");
        check(r#"permission rule "Bsh(x -p \"a b\")": no"#, "permission rule [hidden]: no");
        check("api_key_env = \"OPENAI_API_KEY\"", "api_key_env = \"OPENAI_API_KEY\"");
        check("/home/me/x max_tokens = 5", "~/x max_tokens = 5");
        check("ghp_0123456789abcdef", "[hidden]");
    }

    #[test]
    fn some_settings_are_never_told() {
        let hidden =
            ["env.FOO", "hooks.Stop", "providers.a.headers.x", "providers.a.api_key_command", "tools.search_url"];
        assert!(hidden.iter().all(|key| secret_key(key)));
        assert!(!["model", "providers.a.base_url", "tui.theme"].iter().any(|key| secret_key(key)));
    }

    #[test]
    fn the_newest_log_ends_the_report() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last_lines(&dir.path().join("none")).unwrap(), "");
        let lines: Vec<String> = (0..LINES + 5).map(|line| format!("line {line}")).collect();
        std::fs::write(dir.path().join("cocode.2026-01-01.log"), "old").unwrap();
        std::fs::write(dir.path().join("cocode.2026-01-02.log"), lines.join("\n")).unwrap();
        let text = last_lines(dir.path()).unwrap();
        assert!(text.starts_with("line 5\n") && text.ends_with("line 204"), "{text}");
    }
}
