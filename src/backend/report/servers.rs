//! Servers of the Model Context Protocol, in words.

use std::fmt::Write;

use super::fenced;
use crate::protocol::report::{ServerRow, ServerState, ServersChanged};
use crate::stdx::ansi::visible;
use crate::stdx::text::short;

/// A block for each server.
pub fn words(rows: &[ServerRow]) -> String {
    if rows.is_empty() {
        return "No MCP servers. `cocode mcp add` sets one up; a project keeps its own in `.mcp.json`.".to_owned();
    }
    rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

/// What came of servers that were given, in a line.
pub fn changed(change: &ServersChanged) -> String {
    let list = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
    let mut parts: Vec<String> =
        [list("added", &change.added), list("removed", &change.removed)].into_iter().flatten().collect();
    parts.extend(change.errors.iter().map(|(name, why)| format!("{}: {}", visible(name), visible(why))));
    if parts.is_empty() { "No MCP server changed.".to_owned() } else { format!("MCP servers: {}", parts.join("; ")) }
}

fn block(row: &ServerRow) -> String {
    let state = match row.state {
        ServerState::Pending => "starting",
        ServerState::Connected => "connected",
        ServerState::NeedsAuth => "needs a login",
        ServerState::Failed => "failed",
        ServerState::Disabled => "off",
    };
    let code = |text: &str| format!("`{}`", visible(text).replace('`', "'"));
    let mut text = format!("**{}** {state} · {} · {}", row.name, row.kind, row.scope);
    if row.state == ServerState::Connected {
        let tools = if row.tools == 1 { "1 tool".to_owned() } else { format!("{} tools", row.tools) };
        let _ = write!(text, " · {tools}, about {} tokens, not sent with requests", short(row.tokens));
    }
    let _ = write!(text, "\n- {} in {}", code(&row.line), code(&row.place));
    if let Some((version, cause)) = &row.version {
        let _ = write!(text, "\n- protocol {version}: {}", visible(cause));
        if let Some(time) = row.handshake_ms {
            let _ = write!(text, "; ready after {time} ms");
        }
        let _ = write!(text, "; {} bytes sent, {} received", short(row.sent), short(row.received));
    }
    if let Some(error) = &row.error {
        let label = if row.state == ServerState::Disabled { "" } else { "last error: " };
        let _ = write!(text, "\n- {label}{}", visible(error));
    }
    if !row.tail.is_empty() && row.state != ServerState::Connected {
        let lines: Vec<&str> = row.tail.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n");
        let _ = write!(text, "\n\n{}", fenced(&last));
    }
    text
}
