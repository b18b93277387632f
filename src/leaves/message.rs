//! The conversation as plain data: messages, their blocks, and the ids that tie calls to results.
//!
//! One vocabulary serves the model, the session log, the screen and headless output.

mod attachment;
mod data;
mod display;
pub mod tokens;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use attachment::{Attachment, unmarked};
pub use data::typed;
pub use display::{Display, FileDiff, Said};

/// Names one tool call, unique in its session. Ours, never the provider's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl CallId {
    /// Makes the id of the `n`th call of a session.
    pub fn nth(n: u64) -> CallId {
        CallId(format!("call_{n}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

/// What a message is for; decides how it is shown and what compaction may do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What the user typed.
    Prompt,
    /// What the model answered.
    Reply,
    /// Results of the calls of the reply before it.
    ToolResult,
    /// Results that were archived behind a digest.
    ToolResultArchived,
    /// A digest of archived results.
    ToolSummary,
    /// What compaction left of an earlier conversation.
    CompactSummary,
    /// The instructions of a skill that was invoked; the conversation shows them folded.
    Skill,
    /// For the user only.
    Notice,
    /// Joined the conversation beside prompts and replies. Flat in JSON: `"kind": "hook"`.
    #[serde(untagged)]
    Attachment(Attachment),
}

/// What only one provider's codec understands, kept to be replayed byte for byte (a signature, an encrypted
/// reasoning item). Dropped when another provider or model is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// Name of the wire that made it, for example `anthropic`.
    pub wire: String,
    /// Model that made it.
    pub model: String,
    pub data: Value,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// The arguments; an empty object when they could not be parsed.
    pub input: Value,
    /// The arguments as they came, when they are not valid JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// One line for the screen, as the tool said it. None where it could not read the input, and in old logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
}

impl ToolCall {
    pub fn new(id: CallId, name: impl Into<String>, input: Value) -> ToolCall {
        ToolCall { id, name: name.into(), input, invalid: None, title: None, wire: None }
    }

    /// What the screen shows beside the name.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or_default()
    }
}

/// Names stored bytes by their SHA-256, in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobId(pub String);

/// An image or document that lives beside the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// `image/png`, `image/jpeg`, `image/gif`, `image/webp` or `application/pdf`.
    pub media_type: String,
    pub blob: BlobId,
    /// Length of the stored bytes.
    pub bytes: u64,
}

/// One part of what a tool answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    Text { text: String },
    Media(Media),
}

impl Content {
    pub fn text(text: impl Into<String>) -> Content {
        Content::Text { text: text.into() }
    }

    /// All text parts, joined by newlines.
    pub fn joined(parts: &[Content]) -> String {
        let texts = parts.iter().filter_map(|part| match part {
            Content::Text { text } => Some(text.as_str()),
            Content::Media(_) => None,
        });
        Vec::from_iter(texts).join("\n")
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    /// The tool failed; the text says why.
    Error,
    /// A rule, a mode, a hook or the user said no.
    Denied,
    /// The user interrupted before it ended.
    Interrupted,
}

/// The one answer to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub id: CallId,
    pub outcome: Outcome,
    pub content: Vec<Content>,
    /// What front ends draw instead of the text (a diff, an exit status). Never sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<Display>,
    /// What the call changed in the session's own state; folded by the projection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

/// A change of session state that rides on a result, so that it comes and goes with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// The model has seen this file, or written it: it may edit it while the content still has this hash.
    Seen { path: PathBuf, sha256: String },
    /// The shell's working directory for later calls.
    Cwd { path: PathBuf },
    /// The whole todo list as it is now.
    Todos { items: Vec<Todo> },
    /// What the model was told of plan mode, and of which plan file.
    Plan {
        note: PlanNote,
        #[serde(default)]
        file: PathBuf,
    },
    /// The skills that the model was told of, by name with their lines, and those that it was told are gone.
    Skills { lines: BTreeMap<String, String>, gone: Vec<String> },
    /// The message holds these memory files (real paths).
    Memory {
        files: Vec<PathBuf>,
        /// Why they came, unless they opened the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<MemoryCause>,
    },
    /// The model has read how this command in the background ended.
    Told { task: String },
}

/// The read that brought memory files of a nested folder in: they leave when it and every other read there was cleared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryCause {
    pub call: CallId,
    /// The folder whose memory it is.
    pub folder: PathBuf,
}

/// What an attachment says of plan mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanNote {
    /// It is on: all that there is to know.
    Full,
    /// It is still on.
    Sparse,
    /// It is on again, and an earlier plan exists.
    Reentry,
    /// It is over.
    Exit,
    /// It is on, and this is the plan so far: after a compaction.
    Restored,
}

impl ToolResult {
    /// A result of text alone.
    pub fn of_text(id: CallId, outcome: Outcome, text: impl Into<String>) -> ToolResult {
        ToolResult { id, outcome, content: vec![Content::text(text)], display: None, effects: Vec::new() }
    }

    /// All text parts, joined by newlines.
    pub fn text(&self) -> String {
        Content::joined(&self.content)
    }

    /// Bytes of `text`.
    pub fn text_len(&self) -> usize {
        let lengths = self.content.iter().filter_map(|part| match part {
            Content::Text { text } => Some(text.len() + 1),
            Content::Media(_) => None,
        });
        lengths.sum::<usize>().saturating_sub(1)
    }
}

/// One entry of the todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// What is to be done, imperative.
    pub content: String,
    /// The same while it is being done.
    pub active_form: String,
    pub status: TodoStatus,
}

impl Todo {
    /// Its mark, and the words for where it is now: one drawing for every list of todos.
    pub fn line(&self) -> (&'static str, &str) {
        match self.status {
            TodoStatus::Pending => ("☐", &self.content),
            TodoStatus::InProgress => ("◐", &self.active_form),
            TodoStatus::Completed => ("☑", &self.content),
        }
    }

    /// A list as the model reads it, a line for each entry: `- [ ]` waits, `- [~]` is under way, `- [x]` is done.
    pub fn checklist(items: &[Todo]) -> String {
        let line = |todo: &Todo| {
            let mark = match todo.status {
                TodoStatus::Pending => " ",
                TodoStatus::InProgress => "~",
                TodoStatus::Completed => "x",
            };
            format!("- [{mark}] {}", todo.content)
        };
        items.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<Wire>,
    },
    /// Reasoning. Redacted reasoning has no text and lives in `wire` alone.
    Thinking {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<Wire>,
    },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    Media(Media),
}

impl Block {
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text { text: text.into(), wire: None }
    }
}

/// Tokens of one request, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was neither read from nor written to the cache.
    pub input: u64,
    pub output: u64,
    #[serde(default)]
    pub cache_read: u64,
    #[serde(default)]
    pub cache_write: u64,
    /// Part of `output` spent on reasoning, where the provider says so.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// Everything that was in the window after the reply.
    pub fn context(&self) -> u64 {
        self.input + self.cache_read + self.cache_write + self.output
    }

    pub fn add(&mut self, other: &Usage) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.reasoning += other.reasoning;
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence,
    /// The provider refused; the text is its own word for it.
    Refusal(String),
    /// The provider paused a long server-side step; the same request continues.
    Pause,
    /// The user interrupted; what had arrived was kept.
    Interrupted,
    Other(String),
}

/// Which model made a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Provider's name in the configuration.
    pub provider: String,
    pub model: String,
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub kind: Kind,
    pub blocks: Vec<Block>,
    /// Sent to the model.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub agent_visible: bool,
    /// Shown in the conversation.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub user_visible: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// What an attachment changed in the session's own state: the model has seen the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// Of a prompt: bytes of its text that came with the words, such as a paste or piped input. Nobody said them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Range<usize>>,
}

impl Message {
    fn plain(role: Role, kind: Kind, blocks: Vec<Block>) -> Message {
        Message {
            role,
            kind,
            blocks,
            agent_visible: true,
            user_visible: true,
            origin: None,
            usage: None,
            stop: None,
            effects: Vec::new(),
            data: Vec::new(),
        }
    }

    /// What the user typed, with attached media after the text.
    pub fn prompt(text: impl Into<String>) -> Message {
        Message::plain(Role::User, Kind::Prompt, vec![Block::text(text)])
    }

    /// The instructions of an invoked skill.
    pub fn skill(text: impl Into<String>) -> Message {
        Message::plain(Role::User, Kind::Skill, vec![Block::text(text)])
    }

    /// A line for the user that the model never sees.
    pub fn notice(text: impl Into<String>) -> Message {
        Message { agent_visible: false, ..Message::plain(Role::User, Kind::Notice, vec![Block::text(text)]) }
    }

    pub fn reply(blocks: Vec<Block>) -> Message {
        Message::plain(Role::Assistant, Kind::Reply, blocks)
    }

    pub fn tool_results(results: Vec<ToolResult>) -> Message {
        Message::plain(Role::User, Kind::ToolResult, results.into_iter().map(Block::ToolResult).collect())
    }

    /// The calls of a reply, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The results that this message carries, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// All plain text, joined by newlines; neither thinking nor results.
    pub fn text(&self) -> String {
        let parts: Vec<&str> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        parts.join("\n")
    }
}
