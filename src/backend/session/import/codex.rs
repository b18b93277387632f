//! Codex: `sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`, one item after the other, and `archived_sessions`. Of tens of
//! gigabytes one line is in memory.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::lines::Lines;
use super::writer::Writer;
use super::{Archive, Found, files, flat, millis, text};
use crate::message::{Origin, Outcome};

/// How texts begin that the program itself puts before prompts.
const NOT_TYPED: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
];

pub(super) struct Codex {
    root: PathBuf,
}

impl Codex {
    /// `root` is `~/.codex`.
    pub(super) fn new(root: &Path) -> Codex {
        Codex { root: root.to_owned() }
    }
}

impl Archive for Codex {
    fn sessions(&mut self) -> io::Result<Vec<Found>> {
        std::fs::read_dir(&self.root)?;
        let folders = [("sessions", 3), ("archived_sessions", 3)];
        let files = folders.iter().flat_map(|(folder, depth)| files(&self.root.join(folder), *depth, ".jsonl"));
        let of = |(name, path, meta): (String, PathBuf, _)| {
            let name = name.strip_prefix("rollout-")?;
            let id = name.len().checked_sub(36).and_then(|at| name.get(at..)).unwrap_or(name);
            Some(Found::file(id.to_owned(), path, &meta))
        };
        Ok(files.filter_map(of).collect())
    }

    fn read(&mut self, found: &Found, log: &mut Writer<'_>) -> io::Result<bool> {
        let mut lines = Lines::open(&found.path)?;
        let (mut line, mut model) = (Vec::new(), String::new());
        while lines.next(&mut line)?.is_some() {
            // These say again what others say, and are most of a file.
            let start = &line[..line.len().min(160)];
            if start.windows(17).any(|window| window == b"\"type\":\"event_msg") {
                continue;
            }
            let Ok(entry) = serde_json::from_slice::<Value>(&line) else { continue };
            log.at(millis(&entry, "timestamp"));
            // The oldest files have items without an envelope.
            let item = entry.get("payload").unwrap_or(&entry);
            match text(&entry, "type") {
                Some("session_meta") => {
                    let agent = ["source", "thread_source"].iter().filter_map(|name| item.get(name));
                    if agent.clone().any(|source| source.get("subagent").is_some() || source == "subagent") {
                        return Ok(false);
                    }
                    log.cwd(text(item, "cwd"));
                }
                Some("turn_context") => {
                    log.cwd(text(item, "cwd"));
                    model = text(item, "model").unwrap_or(&model).to_owned();
                }
                Some("compacted") => log.boundary(&summary(item), 0, None)?,
                Some("world_state") => {}
                _ => tell(item, &model, log)?,
            }
        }
        Ok(true)
    }
}

/// What a compaction left: the texts that it kept, or its message.
fn summary(item: &Value) -> String {
    let kept = item.get("replacement_history").and_then(Value::as_array);
    let texts = kept.into_iter().flatten().filter(|item| spoken(item)).map(typed);
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    let message = text(item, "message").unwrap_or_default();
    if texts.is_empty() { message.to_owned() } else { texts.join("\n\n") }
}

fn spoken(item: &Value) -> bool {
    text(item, "type") == Some("message") && matches!(text(item, "role"), Some("user" | "assistant"))
}

/// The texts of a message that a person or a model wrote.
fn typed(item: &Value) -> String {
    let content = item.get("content").unwrap_or(&Value::Null);
    let blocks: Vec<&Value> = content.as_array().map_or_else(|| vec![content], |blocks| blocks.iter().collect());
    let mut texts: Vec<String> = blocks.into_iter().map(flat).collect();
    texts.retain(|text| !NOT_TYPED.iter().any(|start| text.trim_start().starts_with(start)));
    texts.join("\n")
}

fn tell(item: &Value, model: &str, log: &mut Writer<'_>) -> io::Result<()> {
    let origin = || Some(Origin { provider: "openai".to_owned(), model: model.to_owned() });
    let call = text(item, "call_id").or(text(item, "id")).unwrap_or_default();
    match text(item, "type") {
        Some("message") if text(item, "role") == Some("user") => log.prompt(&typed(item))?,
        Some("message") if spoken(item) => {
            log.reply(None, origin())?;
            log.say(&typed(item));
        }
        Some("reasoning") => {
            log.reply(None, origin())?;
            log.think(&flat(item.get("summary").unwrap_or(&Value::Null)));
        }
        Some("function_call" | "custom_tool_call") => {
            log.reply(None, origin())?;
            let name = text(item, "name").unwrap_or_default();
            let input = match (text(item, "arguments"), text(item, "input")) {
                (Some(text), _) => serde_json::from_str(text).unwrap_or_else(|_| json!({ "arguments": text })),
                (None, Some(patch)) if name == "apply_patch" => json!({ "patch": patch }),
                (None, input) => json!({ "input": input }),
            };
            log.call(call, name, input);
        }
        Some("local_shell_call") => {
            log.reply(None, origin())?;
            log.call(call, "local_shell", item.get("action").cloned().unwrap_or_default());
        }
        Some("web_search_call") => {
            log.reply(None, origin())?;
            let query = item.get("action").and_then(|action| text(action, "query")).unwrap_or_default();
            log.say(&format!("[web search: {query}]"));
        }
        Some("function_call_output" | "custom_tool_call_output" | "local_shell_call_output") => {
            let (said, failed) = output(item.get("output").unwrap_or(&Value::Null));
            log.result(call, if failed { Outcome::Error } else { Outcome::Ok }, &said);
        }
        _ => {}
    }
    Ok(())
}

/// What a call wrote, and whether it failed. It comes as text, as blocks, or as JSON in a text.
fn output(value: &Value) -> (String, bool) {
    let inner = value.as_str().filter(|text| text.starts_with('{')).and_then(|text| serde_json::from_str(text).ok());
    let value: &Value = inner.as_ref().unwrap_or(value);
    let code = value.get("metadata").and_then(|data| data.get("exit_code")?.as_i64());
    let failed = code.is_some_and(|code| code != 0) || value.get("success").and_then(Value::as_bool) == Some(false);
    (flat(value.get("output").or(value.get("content")).unwrap_or(value)), failed)
}
