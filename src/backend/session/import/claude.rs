//! Claude Code: `projects/<folder>/<uuid>.jsonl`, a tree of messages. What counts is the way from its newest leaf to the
//! root, and what belongs to the same replies beside it.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::lines::Lines;
use super::tree::{Node, Tree};
use super::writer::Writer;
use super::{Archive, Found, files, flat, millis, text};
use crate::message::{Origin, Outcome};
use crate::stdx::hash;

/// How texts begin that nobody typed and no model wrote.
const NOT_TYPED: &[&str] = &[
    "<command-",
    "<local-command-",
    "<bash-",
    "<system-reminder>",
    "<task-notification>",
    "[Request interrupted by user",
    "Caveat: The messages below were generated",
];

/// What our own copies of sessions for Claude Code's lists say they come from.
pub const OWN: &str = "cocode";

pub(super) struct Claude {
    root: PathBuf,
}

impl Claude {
    pub(super) fn new(root: &Path) -> Claude {
        Claude { root: root.to_owned() }
    }
}

/// What the first look at a line keeps.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    #[serde(rename = "type")]
    kind: String,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    logical_parent_uuid: Option<String>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    entrypoint: Option<String>,
    is_compact_summary: Option<bool>,
    team_name: Option<String>,
    message: Option<Named>,
    custom_title: Option<String>,
    ai_title: Option<String>,
    last_prompt: Option<String>,
    summary: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    id: Option<String>,
}

/// A node, and what the choice among them asks.
struct Candidate {
    /// Said by the user or the model.
    speaks: bool,
    /// Part of the conversation itself.
    main: bool,
    /// The reply that it is a part of.
    reply: Option<u64>,
    results: bool,
}

#[derive(Default)]
struct Titles([Option<String>; 4]);

fn number(text: &str) -> u64 {
    hash::short(&[text.as_bytes()])
}

impl Archive for Claude {
    fn sessions(&mut self) -> io::Result<Vec<Found>> {
        std::fs::read_dir(&self.root)?;
        let found = files(&self.root, 1, ".jsonl").into_iter().filter(|(id, ..)| Uuid::parse_str(id).is_ok());
        Ok(found.map(|(id, path, meta)| Found::file(id, path, &meta)).collect())
    }

    fn read(&mut self, found: &Found, log: &mut Writer<'_>) -> io::Result<bool> {
        let mut lines = Lines::open(&found.path)?;
        let (mut nodes, mut about, mut titles) = (Vec::new(), Vec::new(), Titles::default());
        let mut line = Vec::new();
        let mut own = true;
        while let Some(offset) = lines.next(&mut line)? {
            let Ok(seen) = serde_json::from_slice::<Seen>(&line) else { continue };
            let [custom, ai, last, summary] = &mut titles.0;
            for (title, new) in [
                (custom, seen.custom_title),
                (ai, seen.ai_title),
                (last, seen.last_prompt),
                (summary, seen.summary.filter(|_| seen.kind == "summary")),
            ] {
                *title = new.or(title.take());
            }
            let Some(uuid) = seen.uuid else { continue };
            own &= seen.entrypoint.as_deref() == Some(OWN);
            // What a compaction put away is before it, under another name: it is to be found here, too.
            let parent = seen.parent_uuid.or(seen.logical_parent_uuid);
            nodes.push(Node { offset, id: number(&uuid), parent: parent.as_deref().map(number) });
            let is = |flag: Option<bool>| flag.unwrap_or(false);
            about.push(Candidate {
                speaks: matches!(seen.kind.as_str(), "user" | "assistant"),
                main: !is(seen.is_sidechain)
                    && (!is(seen.is_meta) || is(seen.is_compact_summary))
                    && seen.team_name.is_none(),
                reply: seen.message.and_then(|message| message.id).as_deref().map(number),
                results: seen.kind == "user" && line.windows(13).any(|window| window == b"\"tool_result\""),
            });
        }
        // The session itself is here already.
        if own && !nodes.is_empty() {
            return Ok(false);
        }
        let first_of = |titles: Titles| titles.0.into_iter().flatten().find(|title| !title.trim().is_empty());
        let tree = Tree::new(nodes);
        for at in kept(&tree, &about) {
            lines.at(tree.nodes[at].offset, &mut line)?;
            if let Ok(entry) = serde_json::from_slice(&line) {
                tell(&entry, log)?;
            }
        }
        log.title(first_of(titles).as_deref());
        Ok(true)
    }
}

/// The nodes of the conversation as it was last, in the order of the file.
fn kept(tree: &Tree, about: &[Candidate]) -> Vec<usize> {
    let nodes = &tree.nodes;
    let parents: HashSet<u64> = nodes.iter().filter_map(|node| node.parent).collect();
    let ends = (0..nodes.len()).filter(|at| !parents.contains(&nodes[*at].id));
    // A way that another end has taken already leads to no more.
    let mut walked = HashSet::new();
    let leaf = ends.filter_map(|end| {
        let mut way = tree.up(end).take_while(|at| walked.insert(*at));
        way.find(|at| about[*at].speaks && about[*at].main)
    });
    let Some(leaf) = leaf.max() else { return Vec::new() };
    let mut kept: HashSet<usize> = tree.up(leaf).collect();
    // Calls of one reply that ran side by side, and their results, are beside the way.
    let replies: HashSet<u64> = kept.iter().filter_map(|at| about[*at].reply).collect();
    kept.extend((0..nodes.len()).filter(|at| about[*at].reply.is_some_and(|reply| replies.contains(&reply))));
    let ids: HashSet<u64> = kept.iter().map(|at| nodes[*at].id).collect();
    let follows = |at: &usize| nodes[*at].parent.is_some_and(|parent| ids.contains(&parent));
    kept.extend((0..nodes.len()).filter(|at| about[*at].results && follows(at)));
    let mut kept: Vec<usize> = kept.into_iter().filter(|at| about[*at].main).collect();
    kept.sort_unstable();
    kept
}

fn tell(entry: &Value, log: &mut Writer<'_>) -> io::Result<()> {
    log.at(millis(entry, "timestamp"));
    log.cwd(text(entry, "cwd"));
    let (Some(kind), Some(message)) = (text(entry, "type"), entry.get("message")) else { return Ok(()) };
    let content = message.get("content").unwrap_or(&Value::Null);
    let blocks: Vec<&Value> = content.as_array().map_or_else(|| vec![content], |blocks| blocks.iter().collect());
    match kind {
        "assistant" => {
            let model = text(message, "model").unwrap_or_default();
            if model == "<synthetic>" {
                return Ok(());
            }
            let origin = Origin { provider: "anthropic".to_owned(), model: model.to_owned() };
            log.reply(text(message, "id"), Some(origin))?;
            for block in blocks {
                match text(block, "type") {
                    Some("thinking") => log.think(text(block, "thinking").unwrap_or_default()),
                    Some("redacted_thinking") => {}
                    Some("tool_use" | "server_tool_use") => log.call(
                        text(block, "id").unwrap_or_default(),
                        text(block, "name").unwrap_or_default(),
                        block.get("input").cloned().unwrap_or_default(),
                    ),
                    _ => log.say(&flat(block)),
                }
            }
        }
        "user" if entry.get("isCompactSummary").and_then(Value::as_bool) == Some(true) => {
            log.boundary(&flat(content), 0, None)?;
        }
        "user" => {
            let mut typed = Vec::new();
            for block in blocks {
                if text(block, "type") == Some("tool_result") {
                    let failed = block.get("is_error").and_then(Value::as_bool) == Some(true);
                    let outcome = if failed { Outcome::Error } else { Outcome::Ok };
                    let said = flat(block.get("content").unwrap_or(&Value::Null));
                    log.result(text(block, "tool_use_id").unwrap_or_default(), outcome, &said);
                } else {
                    typed.push(flat(block));
                }
            }
            typed.retain(|text| !NOT_TYPED.iter().any(|start| text.trim_start().starts_with(start)));
            log.prompt(&typed.join("\n"))?;
        }
        _ => {}
    }
    Ok(())
}
