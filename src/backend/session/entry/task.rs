//! A command in the background, as the log tells of it: that it began, and how it ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::CallId;
use crate::stdx::{ansi, text};

/// Most characters of a title.
const TITLE: usize = 60;

/// A command that continues after its call was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Names it, and its output: `tasks/<task>.output` in the session's folder.
    pub task: String,
    pub call: CallId,
    pub command: String,
    /// What it does, as the model says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it changes is recorded in the session's folder under this name; without one, undo does not reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

impl Begun {
    /// One line for people: what it does, else the command.
    pub fn title(&self) -> String {
        let said = self.description.as_deref().map(str::trim).filter(|said| !said.is_empty());
        let text = ansi::visible(said.unwrap_or(&self.command).trim());
        let first = text.lines().next().unwrap_or_default();
        let title: String = first.chars().take(TITLE).collect();
        if title.len() == text.len() {
            return title;
        }
        // Not within a word, unless it is one.
        let whole = if title.len() < first.len() { title.rfind(' ').filter(|at| *at > TITLE / 2) } else { None };
        format!("{}…", title[..whole.unwrap_or(title.len())].trim_end())
    }
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub task: String,
    /// As `Begun::title`.
    pub title: String,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// What ended it, where it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long it ran.
    pub millis: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With exit code 0.
    Completed,
    Failed,
    /// Somebody ended it.
    Stopped,
}

impl Ended {
    /// Where it ended with whatever ran it; nobody knows how long it had run.
    pub fn with_its_session(begun: &Begun) -> Ended {
        Ended {
            task: begun.task.clone(),
            title: begun.title(),
            status: Status::Stopped,
            code: None,
            why: Some("the session ended or was copied while it ran".into()),
            millis: 0,
        }
    }

    /// `failed (exit code 2)`, `stopped (by the user)`.
    pub fn how(&self) -> String {
        let word = match self.status {
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Stopped => "was stopped",
        };
        let code = self.code.map(|code| format!("exit code {code}"));
        match self.why.clone().or(code) {
            Some(why) => format!("{word} ({why})"),
            None => word.to_owned(),
        }
    }

    /// One line for people and models.
    pub fn line(&self) -> String {
        let after = match self.millis {
            0 => String::new(),
            millis => format!(" after {}", text::duration(Duration::from_millis(millis))),
        };
        format!("Background command {} ({}) {}{after}", self.task, self.title, self.how())
    }
}
