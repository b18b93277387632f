//! `/bug-report`: a file with what a maintainer needs to know. Nothing is sent, and nothing of the conversation is in it.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::builtins::fenced;
use super::{Engine, doctor};
use crate::stdx::address::bare;
use crate::stdx::ansi::visible;
use crate::stdx::fs::replace_private;

/// Lines of the log that go along, the last ones.
const LINES: usize = 200;
/// Most bytes of the log's end that are read.
const TAIL: u64 = 256 * 1024;
/// What takes the place of a secret.
const HIDDEN: &str = "[hidden]";

impl Engine {
    pub(super) async fn bug_report(&self) {
        let text = self.bundle().await;
        let name = format!("{}.md", uuid::Uuid::now_v7());
        let file = self.setup.paths.state_dir.join("bug-reports").join(name);
        match replace_private(&file, text.as_bytes()) {
            Ok(()) => {
                let words = "Read it before you share it: it contains settings and log lines, with keys hidden, but \
                             nothing from the conversation. Nothing was sent.";
                self.tell(format!("Wrote the report to `{}`. {words}", file.display())).await;
            }
            Err(error) => self.fail(format!("cannot write {}: {error}", file.display())).await,
        }
    }

    async fn bundle(&self) -> String {
        let (session, model, paths) = (&self.agent.session, &self.agent.model, &self.setup.paths);
        let usage = session.facts().usage();
        let mut facts = String::new();
        for (name, value) in [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
            ("session", session.id().to_owned()),
            ("model", format!("{} (window {})", model.name(), model.spec.window)),
            ("mode", self.agent.mode().name().to_owned()),
            ("log entries", session.next_seq().to_string()),
            ("messages in context", session.context().messages().len().to_string()),
            ("tokens", format!("{} in, {} cached, {} out", usage.input, usage.cache_read, usage.output)),
            ("rules", self.agent.policy.rules.entries().len().to_string()),
            ("hooks", self.agent.hooking.hooks.rows().len().to_string()),
        ] {
            let _ = writeln!(facts, "{name}: {value}");
        }
        for notice in session.notices() {
            let _ = writeln!(facts, "notice: {notice}");
        }
        let mut settings = String::new();
        for key in self.loaded.given_keys() {
            let explained = self.loaded.explain(&key).unwrap_or_default();
            settings.push_str(&if secret_key(&key) { format!("{key} = {HIDDEN}\n") } else { explained });
        }
        let log = last_lines(&paths.state_dir).unwrap_or_else(|error| format!("cannot be read: {error}"));
        let doctor = doctor::to_text(&self.findings().await);
        let parts = [("Facts", facts), ("Doctor", doctor), ("Changed settings", settings), ("Log", log)];
        let text = parts.iter().fold(String::from("# cocode bug report\n"), |text, (title, part)| {
            format!("{text}\n## {title}\n\n{}\n", fenced(&visible(part)))
        });
        let secrets: Vec<&str> =
            self.loaded.config.secret_env().iter().filter_map(|name| self.setup.env.get(name)).collect();
        redact(&text, &secrets, paths.user_home.as_deref())
    }
}

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
    for (pattern, with) in [
        (r"(?i)\b(sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf)[-_][A-Za-z0-9_\-]{8,}", HIDDEN),
        (r"\bAIza[A-Za-z0-9_\-]{16,}", HIDDEN),
        (r"\bAKIA[A-Z0-9]{12,}", HIDDEN),
        (r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+", HIDDEN),
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._\-]{6,}", "$1 [hidden]"),
        (r"(?i)\b([a-z_\-]*(?:api[_-]?key|token|secret|password|passwd))(\s*[=:]\s*)[^\s,;]{4,}", "$1$2[hidden]"),
    ] {
        if let Ok(pattern) = Regex::new(pattern) {
            text = pattern.replace_all(&text, with).into_owned();
        }
    }
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
        check("my-token: xyzabc", "my-token: [hidden]");
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
