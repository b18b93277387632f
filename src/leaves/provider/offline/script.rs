//! Scripted conversations: a list of steps, each the reply to one request.
//!
//! ```yaml
//! - for: main                       # main, memory, summary, search or agent:<type>; main when left out
//!   expect: { contains: "fix it" }  # asserts parts of the request; a miss fails the request with the difference
//!   chunk: 12                       # characters in a delta
//!   pace_ms: 30                     # pause after each delta; none when left out
//!   repeat: 3                       # the step counts so many times
//!   reply:
//!     - thinking: Let me look.
//!     - text: I read the file first.
//!     - tool: { name: Read, input: { file_path: src/lib.rs } }   # {plan_file} stands for the plan's path
//! ```

use serde::Deserialize;
use serde_json::Value;

use crate::message::{Attachment, Block, Content, Effect, Kind, StopReason};
use crate::provider::{Purpose, Request};

/// A conversation that is played step by step.
#[derive(Debug, Clone, Default)]
pub struct Script {
    steps: Vec<Step>,
}

/// One reply, and what is asserted of the request that gets it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(default = "main", rename = "for")]
    pub purpose: String,
    #[serde(default)]
    pub expect: Option<Expect>,
    /// Characters in one delta.
    #[serde(default = "chunk")]
    pub chunk: usize,
    /// Pause after each delta, in milliseconds.
    #[serde(default)]
    pub pace_ms: u64,
    #[serde(default = "once")]
    pub repeat: usize,
    pub reply: Vec<Part>,
}

fn main() -> String {
    "main".into()
}

fn chunk() -> usize {
    24
}

fn once() -> usize {
    1
}

/// What a request must be like.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Stands in the last message: in its text or in a tool result.
    #[serde(default)]
    pub contains: Option<String>,
    /// Stands in no message.
    #[serde(default)]
    pub lacks: Option<String>,
    /// How many messages are sent.
    #[serde(default)]
    pub messages: Option<usize>,
}

/// One part of a scripted reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Text(String),
    Thinking(String),
    Tool {
        name: String,
        input: Value,
    },
    DelayMs(u64),
    Error(Failure),
    Usage {
        input: u64,
        output: u64,
    },
    /// `end_turn`, `tool_use`, `max_tokens`, `pause`, or the provider's word for a refusal.
    Stop(String),
    /// Panics, before anything of the reply is said: for tests of that. No release has it.
    #[cfg(debug_assertions)]
    Panic(String),
}

/// A failure instead of the rest of the reply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// `rate_limited`, `server`, `connect`, `ended_early`, `auth`, `bad_request`, `context_too_long`.
    pub kind: String,
    #[serde(default)]
    pub message: Option<String>,
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    #[serde(default)]
    pub tokens: Option<u64>,
    #[serde(default)]
    pub limit: Option<u64>,
}

impl Step {
    /// A step that answers whatever is asked.
    pub fn of(reply: Vec<Part>) -> Step {
        Step { purpose: main(), expect: None, chunk: chunk(), pace_ms: 0, repeat: 1, reply }
    }
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// A sentence with the line where the YAML or a step is wrong.
    pub fn parse(yaml: &str) -> Result<Script, String> {
        let options = serde_yaml::options! { strict_booleans: true, with_snippet: false };
        let steps: Vec<Step> = serde_yaml::from_str_with_options(yaml, options)
            .map_err(|error| format!("the script is not a list of steps: {error}"))?;
        Ok(Script { steps })
    }

    /// Takes the next step for the request's purpose.
    ///
    /// # Errors
    /// No step is left, or the request is not what the step expects.
    pub fn next(&mut self, request: &Request) -> Result<Step, String> {
        let purpose = match &request.purpose {
            Purpose::Main => "main".to_owned(),
            Purpose::Memory => "memory".into(),
            Purpose::Summary => "summary".into(),
            Purpose::Search => "search".into(),
            Purpose::Agent(kind) => format!("agent:{kind}"),
        };
        let at = self
            .steps
            .iter()
            .position(|step| step.purpose == purpose && step.repeat > 0)
            .ok_or_else(|| format!("the script has no more replies for {purpose}"))?;
        self.steps[at].repeat -= 1;
        let step = self.steps[at].clone();
        if let Some(expect) = &step.expect {
            check(expect, request).map_err(|miss| format!("step {} of the script: {miss}", at + 1))?;
        }
        let mut step = step;
        for (place, file) in [("{plan_file}", plan_file(request)), ("{notes_file}", notes_file(request))] {
            for part in &mut step.reply {
                if let (Part::Tool { input, .. }, Some(file)) = (part, &file) {
                    fill(input, place, file);
                }
            }
        }
        Ok(step)
    }
}

/// Where the plan goes, as plan mode said last.
pub(super) fn plan_file(request: &Request) -> Option<String> {
    let effects = request.messages.iter().rev().flat_map(|message| &message.effects);
    let mut files = effects.filter_map(|effect| if let Effect::Plan { file, .. } = effect { Some(file) } else { None });
    files.next().map(|file| file.to_string_lossy().into_owned())
}

/// Where the session's notes are, as the message says that asks for them.
pub(super) fn notes_file(request: &Request) -> Option<String> {
    let asked =
        request.messages.iter().rev().find(|message| message.kind == Kind::Attachment(Attachment::Instruction))?.text();
    let line = asked.lines().find_map(|line| line.strip_prefix("The notes are in "))?;
    line.split_once(", which you").map(|(file, _)| file.to_owned())
}

/// Puts a file in its place: a script cannot know its name.
fn fill(input: &mut Value, place: &str, file: &str) {
    match input {
        Value::String(text) => *text = text.replace(place, file),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, place, file)),
        Value::Object(fields) => fields.values_mut().for_each(|item| fill(item, place, file)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn check(expect: &Expect, request: &Request) -> Result<(), String> {
    let texts: Vec<String> = request.messages.iter().map(|message| everything(&message.blocks)).collect();
    let last = texts.last().map(String::as_str).unwrap_or_default();
    if let Some(want) = &expect.contains
        && !last.contains(want.as_str())
    {
        return Err(format!("expected {want:?} in the last message, which is {last:?}"));
    }
    if let Some(lacks) = &expect.lacks
        && texts.iter().any(|text| text.contains(lacks.as_str()))
    {
        return Err(format!("expected no {lacks:?} in the request"));
    }
    if let Some(count) = expect.messages
        && texts.len() != count
    {
        return Err(format!("expected {count} messages, got {}", texts.len()));
    }
    Ok(())
}

fn everything(blocks: &[Block]) -> String {
    let mut all = String::new();
    for block in blocks {
        match block {
            Block::Text { text, .. } | Block::Thinking { text, .. } => all.push_str(text),
            Block::ToolCall(call) => all.push_str(&call.input.to_string()),
            Block::ToolResult(result) => {
                for part in &result.content {
                    if let Content::Text { text } = part {
                        all.push_str(text);
                    }
                }
            }
            Block::Media(media) => all.push_str(&media.media_type),
        }
        all.push('\n');
    }
    all
}

/// Reads a stop reason of a script.
pub fn stop_reason(word: String) -> StopReason {
    match word.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "pause" => StopReason::Pause,
        _ => StopReason::Refusal(word),
    }
}
