//! The shipped settings, and conversations for tests.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::json;

use super::{Driver, Features, Settings, Window};
use crate::message::{Block, CallId, Content, Message, Outcome, ToolCall, ToolResult, Usage};
use crate::session::entry::{EntryKind, Seq};
use crate::session::{Context, Session};

fn table(name: &str) -> toml::Value {
    let defaults: toml::Table = include_str!("../../../config/default.toml").parse().unwrap();
    defaults[name].clone()
}

/// The shipped settings.
pub(super) fn settings() -> Settings {
    table("compact").try_into().unwrap()
}

pub(super) fn features() -> Features {
    table("features").try_into().unwrap()
}

/// A driver with the shipped settings.
pub(super) fn driver(window: u64, change: impl FnOnce(&mut Settings)) -> Driver {
    let mut settings = settings();
    change(&mut settings);
    Driver::new(settings, features(), Window { tokens: Some(window), max_output: 64_000 })
}

/// Tools whose results may be cleared.
pub(super) fn clearable(tool: &str) -> bool {
    matches!(tool, "Read" | "Bash")
}

/// A text of so many tokens by estimate.
pub(super) fn text(tokens: u64) -> String {
    "abc ".repeat(usize::try_from(tokens).unwrap())
}

/// A conversation in a temporary folder.
pub(super) struct Talk {
    pub session: Session,
    _home: tempfile::TempDir,
}

impl Talk {
    pub(super) fn new() -> Talk {
        Talk::within("")
    }

    /// In a folder below the temporary one: markers name files in it.
    pub(super) fn within(folder: &str) -> Talk {
        let home = tempfile::tempdir().unwrap();
        let session = Session::create(&home.path().join(folder), Path::new("/code"), "1", SystemTime::now);
        Talk { session, _home: home }
    }

    pub(super) fn context(&self) -> &Context {
        self.session.context()
    }

    pub(super) fn push(&mut self, message: Message) -> Seq {
        self.session.append(EntryKind::Message { message: Arc::new(message) }).unwrap()
    }

    pub(super) fn prompt(&mut self, tokens: u64) -> &mut Talk {
        self.push(Message::prompt(text(tokens)));
        self
    }

    pub(super) fn reply(&mut self, tokens: u64) -> &mut Talk {
        self.push(Message::reply(vec![Block::text(text(tokens))]));
        self
    }

    /// A reply that the provider counted.
    pub(super) fn counted(&mut self, input: u64) -> &mut Talk {
        let usage = Usage { input, ..Usage::default() };
        self.push(Message { usage: Some(usage), ..Message::reply(vec![Block::text("ok")]) });
        self
    }

    /// One reply with a call of `tool` for each result of so many tokens, and the results.
    pub(super) fn round(&mut self, tool: &str, results: &[u64]) -> &mut Talk {
        self.rounds(tool, Vec::new(), results, None);
        self
    }

    /// A reply of so many tokens that the provider counted, with calls that are answered; the calls.
    pub(super) fn replies(&mut self, said: u64, results: &[u64], usage: Usage) -> Vec<CallId> {
        self.rounds("Read", vec![Block::text(text(said))], results, Some(usage))
    }

    fn rounds(&mut self, tool: &str, mut said: Vec<Block>, results: &[u64], usage: Option<Usage>) -> Vec<CallId> {
        let first = self.session.next_call();
        let ids: Vec<CallId> = (0..results.len() as u64).map(|n| CallId::nth(first + n)).collect();
        let call = |id: &CallId| Block::ToolCall(ToolCall::new(id.clone(), tool, json!({"file_path": "/a"})));
        said.extend(ids.iter().map(call));
        self.push(Message { usage, ..Message::reply(said) });
        if ids.is_empty() {
            return ids;
        }
        let of = |(n, tokens): (usize, &u64)| {
            let mut result = ToolResult::of_text(CallId::nth(first + n as u64), Outcome::Ok, text(*tokens));
            if *tokens == 0 {
                result.content = vec![Content::text("")];
            }
            result
        };
        self.push(Message::tool_results(results.iter().enumerate().map(of).collect()));
        ids
    }

    /// One word a message: role, then what it holds.
    pub(super) fn show(&self) -> String {
        let of = |message: &Arc<Message>| -> String {
            let block = |block: &Block| match block {
                Block::ToolCall(call) => format!("c{}", &call.id.as_str()[5..]),
                Block::ToolResult(result) => match result.text() {
                    text if text.starts_with("[Old tool result content cleared]") => {
                        format!("x{}", &result.id.as_str()[5..])
                    }
                    text if text.contains(" left out") => format!("~{}", &result.id.as_str()[5..]),
                    _ => format!("r{}", &result.id.as_str()[5..]),
                },
                Block::Text { text, .. } if text.contains("bytes left out") => "~text".into(),
                Block::Text { .. } => format!("{:?}", message.kind).to_lowercase(),
                Block::Media(_) => "media".into(),
                Block::Thinking { .. } => "thinking".into(),
            };
            message.blocks.iter().map(block).collect::<Vec<_>>().join("+")
        };
        self.context().messages().iter().map(of).collect::<Vec<_>>().join(" ")
    }
}
