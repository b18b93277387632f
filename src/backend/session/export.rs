//! A session as Markdown, or as JSON, for people and other programs.

use std::fmt::Write;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::error::Error;
use super::history_view::read_history;
use super::session::Session;
use crate::message::{Block, Display, Kind, Message, Outcome, Role};
use crate::protocol::{HistoryItem, Receipt};

/// What happens to a file that an export would replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    Never,
    Forced,
}

/// The file of an export, for its owner alone: what was said may hold secrets. A terminal or a pipe is only opened.
///
/// # Errors
/// There is such a file already.
pub fn export_file(path: &Path, overwrite: Overwrite) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let stream = path.metadata().is_ok_and(|meta| !meta.is_file());
    match overwrite {
        Overwrite::Never if !stream => options.create_new(true),
        Overwrite::Never | Overwrite::Forced => options.create(true).truncate(true),
    };
    options.write(true).open(path)
}

impl Session {
    /// The whole session as Markdown: prompts, answers, calls with their results, and what left the conversation.
    ///
    /// # Errors
    /// What reading the log says.
    pub fn to_markdown(&self) -> Result<String, Error> {
        let title = self.title().unwrap_or("Untitled session");
        let header = self.header();
        let mut out = format!("# {title}\n\nSession `{}` in `{}`\n", self.id(), header.cwd.display());
        for item in self.everything()? {
            match item {
                HistoryItem::Shell { command, output, .. } => {
                    let _ = write!(out, "\n{}", fenced("console", &format!("$ {command}\n{output}")));
                }
                HistoryItem::Compacted { receipt: Receipt { tier, before, after, .. }, .. } => {
                    let _ = write!(out, "\n*The conversation was compacted ({tier}): {before} → {after} tokens*\n");
                }
                HistoryItem::Note { text } => {
                    let _ = write!(out, "\n*{text}*\n");
                }
                HistoryItem::Message { message, .. } => markdown(&mut out, &message),
            }
        }
        Ok(out)
    }

    /// The whole session as one JSON object: its header, title, usage and messages as they stand in the log.
    ///
    /// # Errors
    /// What reading the log says.
    pub fn to_json(&self) -> Result<String, Error> {
        let items: Vec<Value> = self.everything()?.into_iter().map(|item| json!(item)).collect();
        let session = json!({
            "session": self.id(),
            "title": self.title(),
            "header": self.header(),
            "usage": self.facts().usage(),
            "items": items,
        });
        Ok(format!("{session:#}\n"))
    }

    fn everything(&self) -> Result<Vec<HistoryItem>, Error> {
        if self.is_empty() { Ok(Vec::new()) } else { read_history(self.log()) }
    }
}

fn markdown(out: &mut String, message: &Message) {
    let heading = match (message.role, message.kind) {
        (_, Kind::Prompt) => "\n## You\n",
        (Role::Assistant, _) => "\n## Assistant\n",
        _ => "",
    };
    out.push_str(heading);
    if message.kind == Kind::Skill {
        let _ =
            write!(out, "\n<details><summary>Instructions</summary>\n\n{}\n\n</details>\n", message.text().trim_end());
        return;
    }
    for block in &message.blocks {
        let _ = match block {
            Block::Text { text, .. } => write!(out, "\n{}\n", text.trim_end()),
            Block::Thinking { text, .. } if text.is_empty() => Ok(()),
            Block::Thinking { text, .. } => {
                write!(out, "\n<details><summary>Thinking</summary>\n\n{}\n\n</details>\n", text.trim_end())
            }
            Block::ToolCall(call) => {
                let input = format!("{:#}", call.input);
                write!(out, "\n**{}**\n\n{}", call.name, fenced("json", &input))
            }
            Block::ToolResult(result) => {
                let outcome = match result.outcome {
                    Outcome::Ok => "Result",
                    Outcome::Error => "Error",
                    Outcome::Denied => "Denied",
                    Outcome::Interrupted => "Interrupted",
                };
                match &result.display {
                    Some(Display::Diff(diff)) => {
                        write!(out, "\n{outcome}: `{}`\n\n{}", diff.path, fenced("diff", &diff.unified))
                    }
                    _ => write!(out, "\n{outcome}:\n\n{}", fenced("", &result.text())),
                }
            }
            Block::Media(media) => write!(out, "\n[{}, {} bytes]\n", media.media_type, media.bytes),
        };
    }
}

/// A code block whose fence is longer than any in the text.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.lines().map(|line| line.trim_start().bytes().take_while(|byte| *byte == b'`').count()).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}
