//! What tools were when the user let them run: one that says something else of itself since is asked about again.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::catalog::Tool;
use super::definition::Definition;
use crate::permission::trust::difference;
use crate::stdx::fs::private_dir;
use crate::stdx::hash::sha256_hex;
use crate::stdx::regular;

/// Most bytes of the file that are read.
const FILE: u64 = 16 << 20;
/// Most characters of what a tool says of itself that are kept, to show later how it changed.
const TEXT: usize = 4096;
/// Most lines of a difference that are shown.
const SHOWN: usize = 40;

/// One tool as it was; the last line of one counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Seen {
    /// A hash of the whole definition of its server: behind another program are other tools.
    server: String,
    tool: String,
    hash: String,
    text: String,
}

/// See the module. Without a file it lasts as long as the session.
#[derive(Debug, Default)]
pub(super) struct Known {
    file: Option<PathBuf>,
    seen: Mutex<Option<HashMap<(String, String), Seen>>>,
}

impl Known {
    pub(super) fn new(file: Option<PathBuf>) -> Known {
        Known { file, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Option<HashMap<(String, String), Seen>>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_none() {
            let bytes = self.file.as_ref().and_then(|file| regular::read(file, FILE).ok()).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Seen>(line).ok());
            *seen = Some(lines.map(|one| ((one.server.clone(), one.tool.clone()), one)).collect());
        }
        seen
    }

    /// The lines that differ from what the tool was when it last ran; None where it is the same, or never ran.
    pub(super) fn change(&self, server: &Definition, tool: &Tool) -> Option<String> {
        let now = Seen::of(server, tool);
        let seen = self.seen();
        let before = seen.as_ref()?.get(&(now.server, now.tool)).filter(|before| before.hash != now.hash)?;
        let mut lines = difference(&before.text, &now.text);
        if lines.is_empty() {
            lines.push("the difference is behind what was kept".to_owned());
        }
        if lines.len() > SHOWN {
            lines.truncate(SHOWN);
            lines.push("…".to_owned());
        }
        Some(lines.join("\n"))
    }

    /// The user let it run as it is now.
    pub(super) fn keep(&self, server: &Definition, tool: &Tool) {
        let now = Seen::of(server, tool);
        let key = (now.server.clone(), now.tool.clone());
        let mut seen = self.seen();
        let Some(seen) = seen.as_mut() else { return };
        if seen.get(&key).is_some_and(|before| before.hash == now.hash) {
            return;
        }
        if let Err(error) = self.append(&now) {
            tracing::warn!(%error, "cannot remember a tool");
        }
        seen.insert(key, now);
    }

    fn append(&self, one: &Seen) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if let Some(folder) = file.parent() {
            private_dir(folder)?;
        }
        let line = serde_json::to_string(one)?;
        // One write, so that two processes cannot lose each other's.
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600).open(file)?.write_all(format!("{line}\n").as_bytes())
    }
}

impl Seen {
    fn of(server: &Definition, tool: &Tool) -> Seen {
        let Definition { name, scope, bound, .. } = server;
        let schema = serde_json::to_string_pretty(&tool.schema).unwrap_or_default();
        let read_only = if tool.read_only { "\nonly reads" } else { "" };
        let text = format!("{}{read_only}\n{schema}", tool.description);
        Seen {
            server: sha256_hex(format!("{} {name}{}{bound}", name.len(), scope.name()).as_bytes()),
            tool: tool.own.clone(),
            hash: sha256_hex(text.as_bytes()),
            text: text.chars().take(TEXT).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::catalog;
    use super::super::definition::Scope;
    use super::*;

    #[test]
    fn a_tool_that_says_something_else_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("home/mcp-tools");
        let server = |command: &str| {
            let entry = json!({"command": command});
            Definition::read("srv", &entry, (Scope::User, "f"), &|_| None, &mut |_| ()).unwrap().unwrap()
        };
        let tool = |about: &str, argument: &str| {
            let schema = json!({"type": "object", "properties": {argument: {"type": "string"}}});
            let listed = [json!({"name": "t", "description": about, "inputSchema": schema})];
            catalog::tools("srv", &listed, &mut |_| ()).remove(0)
        };
        let (own, first) = (server("npx"), tool("Adds", "a"));
        let known = Known::new(Some(file.clone()));
        assert_eq!(known.change(&own, &first), None);
        known.keep(&own, &first);
        known.keep(&own, &first);
        for known in [known, Known::new(Some(file.clone()))] {
            assert_eq!(known.change(&own, &first), None);
            assert_eq!(known.change(&own, &tool("Steals", "a")).unwrap(), "-Adds\n+Steals\n {");
            assert!(known.change(&own, &tool("Adds", "b")).unwrap().contains("+    \"b\": {"));
            // Behind another program it is another tool.
            assert_eq!(known.change(&server("uvx"), &tool("Steals", "a")), None);
        }
        let known = Known::new(Some(file.clone()));
        known.keep(&own, &tool("Steals", "a"));
        assert_eq!(Known::new(Some(file.clone())).change(&own, &tool("Steals", "a")), None);
        assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 2);
    }
}
