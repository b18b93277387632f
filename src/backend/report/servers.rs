//! Servers of the Model Context Protocol, in words.

use std::fmt::Write;

use super::fenced;
use crate::protocol::report::{ServerRow, ServerState, ServersChanged};
use crate::stdx::ansi::visible;
use crate::stdx::text::short;

/// Most lines of what a server wrote to its error stream.
const TAIL: usize = 5;

/// A block for each server.
pub fn words(rows: &[ServerRow]) -> String {
    if rows.is_empty() {
        return "No MCP servers. `cocode mcp add` sets one up; a project keeps its own in `.mcp.json`.".to_owned();
    }
    rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

/// What is wrong with each server, and what to do about it.
pub fn checked(rows: &[ServerRow]) -> String {
    let mut text = String::new();
    for row in rows {
        let (mark, mut lines) = match (row.state, &row.error) {
            (ServerState::Connected, odd) => {
                let mut lines = vec![format!("connected: {}", offers(row))];
                if let Some((version, cause)) = &row.version {
                    let ms = row.handshake_ms.unwrap_or_default();
                    lines.push(format!("protocol {version} ({}), ready after {ms} ms", visible(cause)));
                }
                let nothing = row.tools + row.prompts + row.resources == 0;
                lines.extend(nothing.then(|| "it offers nothing that cocode can use".to_owned()));
                lines.extend(odd.iter().map(|odd| format!("note: {}", visible(odd))));
                (if nothing || odd.is_some() { "warn" } else { "ok" }, lines)
            }
            (ServerState::Disabled, why) => ("off", why.iter().map(|why| visible(why)).collect()),
            (_, why) => {
                let why = why.as_deref().unwrap_or("it is not there");
                ("FAIL", vec![visible(why)])
            }
        };
        lines.extend(row.fix.iter().map(|fix| format!("fix: {}", visible(fix))));
        let tail = row.tail.lines().rev().take(TAIL).collect::<Vec<_>>().into_iter().rev();
        if mark == "FAIL" {
            lines.extend(tail.map(|line| format!("| {}", visible(line))));
        }
        let _ =
            writeln!(text, "{mark:<4}  {}: {} ({}, {})", row.name, visible(&row.line), row.scope, visible(&row.place));
        for line in lines {
            let _ = writeln!(text, "      {line}");
        }
    }
    text
}

/// What a server offers: `2 tools, 1 prompt`.
fn offers(row: &ServerRow) -> String {
    let count = |count: u64, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        count => Some(format!("{count} {what}s")),
    };
    let further = [count(row.prompts, "prompt"), count(row.resources, "resource")];
    let tools = count(row.tools, "tool").unwrap_or_else(|| "0 tools".to_owned());
    std::iter::once(tools).chain(further.into_iter().flatten()).collect::<Vec<_>>().join(", ")
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
        let _ = write!(text, " · {}, about {} tokens, not sent with requests", offers(row), short(row.tokens));
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
    if let Some(fix) = &row.fix {
        let _ = write!(text, "\n- fix: {}", visible(fix));
    }
    if !row.tail.is_empty() && row.state != ServerState::Connected {
        let lines: Vec<&str> = row.tail.lines().collect();
        let last = lines[lines.len().saturating_sub(8)..].join("\n");
        let _ = write!(text, "\n\n{}", fenced(&last));
    }
    text
}
