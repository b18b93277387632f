//! What a front end draws for a result of a tool.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Todo;

/// What a front end draws for a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Display {
    /// A change to one file. A new file has no `before`.
    Diff(FileDiff),
    /// A command that ran. No `code` if it was killed.
    Command { code: Option<i32>, millis: u64 },
    /// A one-line summary such as `120 lines` or `12 files`.
    Line { text: String },
    /// What a person answered, question by question; nothing where it was a plain no.
    Said { answers: Vec<Said> },
    /// The todo list after the call.
    Todos { items: Vec<Todo> },
    /// A sub-agent that ran: the name of its transcript, the calls it made, tokens in its window, its time.
    Agent { id: String, tools: u32, tokens: u64, millis: u64 },
    /// A sub-agent that continues in the background: the name of its transcript, where its output goes, and a word for people.
    Launched { id: String, output: PathBuf, text: String },
    /// The final answer as it was accepted: a hook may have rewritten what the model sent.
    Answer { value: serde_json::Value },
}

/// An answer of a person; the question and its short name are the model's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub words: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub header: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
}

impl Display {
    /// What a person said of a call, if anything.
    pub fn said(words: Option<&str>) -> Display {
        let said = |words: &str| Said { words: words.to_owned(), ..Said::default() };
        Display::Said { answers: words.map(said).into_iter().collect() }
    }

    /// The one line that it is, if it is one.
    pub fn line(&self) -> Option<Cow<'_, str>> {
        match self {
            Display::Line { text } | Display::Launched { text, .. } => Some(Cow::Borrowed(text)),
            Display::Said { answers } => {
                let row = |said: &Said| match said.header.as_str() {
                    "" => said.words.clone(),
                    header => format!("{header}: {}", said.words),
                };
                Some(Cow::Owned(answers.iter().map(row).collect::<Vec<_>>().join(" · ")))
            }
            _ => None,
        }
    }
}

/// A change to one file, as a unified diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    pub path: String,
    /// Unified diff with three lines of context, without file headers; capped, ends in a line saying so.
    pub unified: String,
    pub added: u32,
    pub removed: u32,
    /// True when the file did not exist before.
    pub created: bool,
}
