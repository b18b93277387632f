//! What runs in the background, a command or a sub-agent, as the log tells of it: that it began, and how it ended.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::CallId;
use crate::stdx::{ansi, text};

/// Most characters of a title.
const TITLE: usize = 60;

/// What a task is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TaskSort {
    #[default]
    Shell,
    /// A command whose lines the model reads as they come.
    Monitor,
    /// A sub-agent: the id by which it is resumed, and its type.
    Agent { id: String, agent: String },
}

impl TaskSort {
    fn is_shell(&self) -> bool {
        *self == TaskSort::Shell
    }

    /// For people and models.
    pub fn name(&self) -> &'static str {
        match self {
            TaskSort::Shell => "command",
            TaskSort::Monitor => "monitor",
            TaskSort::Agent { .. } => "agent",
        }
    }
}

/// A command or a sub-agent that continues after its call was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Names it, and its output: `tasks/<task>.output` in the session's folder.
    pub task: String,
    pub call: CallId,
    #[serde(default, skip_serializing_if = "TaskSort::is_shell")]
    pub sort: TaskSort,
    /// Of a sub-agent: its prompt, up to a limit.
    pub command: String,
    /// What it does, as the model says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it changes is recorded in the session's folder under this name; without one, undo does not reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

impl Begun {
    /// A command of which nothing else is known.
    pub fn command(task: impl Into<String>, call: CallId, command: impl Into<String>) -> Begun {
        let (task, command) = (task.into(), command.into());
        Begun { task, call, sort: TaskSort::Shell, command, description: None, record: None }
    }

    /// The id of the sub-agent that it is.
    pub fn agent(&self) -> Option<&str> {
        match &self.sort {
            TaskSort::Agent { id, .. } => Some(id),
            TaskSort::Shell | TaskSort::Monitor => None,
        }
    }

    /// That it has not ended, for models.
    pub fn runs(&self) -> String {
        format!("Background {} {} ({}) is still running", self.sort.name(), self.task, self.title())
    }

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
    #[serde(default, skip_serializing_if = "TaskSort::is_shell")]
    pub sort: TaskSort,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// What ended it, where it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How long it ran.
    pub millis: u64,
    /// Of a sub-agent: what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<AgentReport>,
}

/// What a sub-agent did, and what it has to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// As the model reads it, up to a limit.
    pub text: String,
    /// Calls that it made.
    pub tools: u32,
    /// Tokens that stood in its window at the end.
    pub tokens: u64,
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
    /// How something ended of which nothing else is known.
    pub fn of(begun: &Begun, status: Status) -> Ended {
        let (task, title, sort) = (begun.task.clone(), begun.title(), begun.sort.clone());
        Ended { task, title, sort, status, code: None, why: None, millis: 0, report: None }
    }

    /// Where it ended with whatever ran it; nobody knows how long it had run.
    pub fn with_its_session(begun: &Begun) -> Ended {
        let why = Some("the session ended or was copied while it ran".into());
        Ended { why, ..Ended::of(begun, Status::Stopped) }
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
        format!("Background {} {} ({}) {}{after}", self.sort.name(), self.task, self.title, self.how())
    }
}
