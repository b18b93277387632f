//! What ran and how it went: for front ends, and for `/hooks`.

use serde::{Deserialize, Serialize};

use super::config::Origin;
use super::event::Event;

/// How a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Done,
    /// It said no, or that everything is to stop.
    Blocked,
    /// It could not say anything; work continues.
    Failed,
    TimedOut,
}

impl Ended {
    pub fn name(self) -> &'static str {
        match self {
            Ended::Done => "done",
            Ended::Blocked => "blocked",
            Ended::Failed => "failed",
            Ended::TimedOut => "timed out",
        }
    }
}

/// One run of one hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub event: Event,
    /// With what the matcher looked at: `PreToolUse:Bash`.
    pub name: String,
    pub command: String,
    pub origin: Origin,
    pub ended: Ended,
    /// None when it did not exit by itself.
    pub code: Option<i32>,
    pub millis: u64,
    /// Capped; empty when the hook asked to keep it quiet.
    pub stdout: String,
    pub stderr: String,
    /// What the user should read: a message of the hook, or why it failed.
    pub note: Option<String>,
}

impl Report {
    /// What a person should read of it, on a line or a few; none when all went as it should, or when it is told otherwise.
    pub fn word(&self) -> Option<String> {
        let (name, command) = (&self.name, crate::stdx::text::truncate(self.command.trim(), 60).replace('\n', " "));
        if let Some(note) = &self.note {
            return Some(match self.ended {
                Ended::Done => note.clone(),
                _ => format!("{name} hook `{command}`: {note}"),
            });
        }
        // Someone who was kept from something hears why.
        let told = matches!(
            self.event,
            Event::PreToolUse | Event::PermissionRequest | Event::UserPromptSubmit | Event::PreCompact
        );
        (self.ended == Ended::Blocked && !told).then(|| {
            let first = self.stderr.lines().next().unwrap_or_default();
            format!("{name} hook `{command}` objects{}{first}", if first.is_empty() { "" } else { ": " })
        })
    }

    pub(super) fn new(event: Event, name: &str, command: &str, origin: Origin) -> Report {
        Report {
            event,
            name: name.to_owned(),
            command: command.to_owned(),
            origin,
            ended: Ended::Done,
            code: None,
            millis: 0,
            stdout: String::new(),
            stderr: String::new(),
            note: None,
        }
    }
}
