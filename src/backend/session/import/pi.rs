//! pi: `sessions/--<folder>--/<time>_<uuid>.jsonl`, a tree of entries. What counts is the way from the last one to the root.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::lines::Lines;
use super::tree::{Node, Tree};
use super::writer::Writer;
use super::{Archive, Found, files, flat, millis, text};
use crate::message::{Attachment, Origin, Outcome};
use crate::session::entry::Seq;
use crate::stdx::hash;

pub(super) struct Pi {
    root: PathBuf,
}

impl Pi {
    /// `root` is `~/.pi/agent/sessions`.
    pub(super) fn new(root: &Path) -> Pi {
        Pi { root: root.to_owned() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    id: Option<String>,
    parent_id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
}

impl Archive for Pi {
    fn sessions(&mut self) -> io::Result<Vec<Found>> {
        std::fs::read_dir(&self.root)?;
        let of = |(name, path, meta): (String, PathBuf, _)| {
            let id = name.rsplit_once('_').map_or(name.as_str(), |(_, id)| id).to_owned();
            Found::file(id, path, &meta)
        };
        Ok(files(&self.root, 1, ".jsonl").into_iter().map(of).collect())
    }

    fn read(&mut self, found: &Found, log: &mut Writer<'_>) -> io::Result<bool> {
        let mut lines = Lines::open(&found.path)?;
        let (mut nodes, mut line): (Vec<Node>, Vec<u8>) = (Vec::new(), Vec::new());
        while let Some(offset) = lines.next(&mut line)? {
            let Ok(seen) = serde_json::from_slice::<Seen>(&line) else { continue };
            if seen.kind == "session" {
                let header: Value = serde_json::from_slice(&line)?;
                log.at(millis(&header, "timestamp"));
                log.cwd(text(&header, "cwd"));
                continue;
            }
            let number = |id: &str| hash::short(&[id.as_bytes()]);
            // The first version had no ids: each entry follows the one before it.
            let id = seen.id.as_deref().map_or(offset, number);
            let before = || nodes.last().map(|node| node.id);
            let parent = if seen.id.is_some() { seen.parent_id.as_deref().map(number) } else { before() };
            nodes.push(Node { offset, id, parent });
        }
        let mut places = HashMap::new();
        let tree = Tree::new(nodes);
        let mut live: Vec<usize> =
            tree.nodes.len().checked_sub(1).map(|leaf| tree.up(leaf).collect()).unwrap_or_default();
        live.reverse();
        for at in live {
            lines.at(tree.nodes[at].offset, &mut line)?;
            if let Ok(entry) = serde_json::from_slice(&line) {
                tell(&entry, &mut places, log)?;
            }
        }
        Ok(true)
    }
}

/// `places` are the entries of the log that theirs became.
fn tell(entry: &Value, places: &mut HashMap<String, Seq>, log: &mut Writer<'_>) -> io::Result<()> {
    log.at(millis(entry, "timestamp"));
    match text(entry, "type") {
        Some("message") => {
            let message = entry.get("message").unwrap_or(&Value::Null);
            if text(message, "role") != Some("toolResult") {
                let place = log.place()?;
                text(entry, "id").map(|id| places.insert(id.to_owned(), place));
            }
            said(message, log)
        }
        Some("session_info") => {
            log.title(text(entry, "name"));
            Ok(())
        }
        Some("compaction") => {
            let keep = text(entry, "firstKeptEntryId").and_then(|id| places.get(id).copied());
            let before = entry.get("tokensBefore").and_then(Value::as_u64).unwrap_or(0);
            log.boundary(text(entry, "summary").unwrap_or_default(), before, keep)
        }
        Some("branch_summary") => log.note(Attachment::Hook, text(entry, "summary").unwrap_or_default()),
        Some("custom_message") => log.note(Attachment::Hook, &flat(entry.get("content").unwrap_or(&Value::Null))),
        _ => Ok(()),
    }
}

fn said(message: &Value, log: &mut Writer<'_>) -> io::Result<()> {
    let content = message.get("content").unwrap_or(&Value::Null);
    match text(message, "role") {
        Some("user") => log.prompt(&flat(content)),
        Some("assistant") => {
            let named = |name| text(message, name).unwrap_or_default().to_owned();
            log.reply(None, Some(Origin { provider: named("provider"), model: named("model") }))?;
            for block in content.as_array().into_iter().flatten() {
                match text(block, "type") {
                    Some("thinking") => log.think(text(block, "thinking").unwrap_or_default()),
                    Some("toolCall") => log.call(
                        text(block, "id").unwrap_or_default(),
                        text(block, "name").unwrap_or_default(),
                        block.get("arguments").cloned().unwrap_or_default(),
                    ),
                    _ => log.say(&flat(block)),
                }
            }
            Ok(())
        }
        Some("toolResult") => {
            let failed = message.get("isError").and_then(Value::as_bool) == Some(true);
            let outcome = if failed { Outcome::Error } else { Outcome::Ok };
            log.result(text(message, "toolCallId").unwrap_or_default(), outcome, &flat(content));
            Ok(())
        }
        // A line that the user ran, and what it wrote. What is kept from the model is not imported.
        Some("bashExecution") if message.get("excludeFromContext").and_then(Value::as_bool) != Some(true) => {
            let part = |name| text(message, name).unwrap_or_default();
            log.note(Attachment::Shell, &format!("$ {}\n{}", part("command"), part("output")))
        }
        Some("branchSummary" | "compactionSummary") => {
            log.note(Attachment::Hook, text(message, "summary").unwrap_or_default())
        }
        Some("custom") => log.note(Attachment::Hook, &flat(content)),
        _ => Ok(()),
    }
}
