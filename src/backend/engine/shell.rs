//! A `!` line of the user that ran: what the model, the screen and the log hear of it.

use crate::message::{Attachment, Display, Message, Outcome, ToolResult};
use crate::protocol::{Event, Item};
use crate::session::entry::EntryKind;

/// A line that ran.
#[derive(Debug)]
pub(super) struct Ran {
    command: String,
    output: String,
    /// None when it was killed.
    code: Option<i32>,
    outcome: Outcome,
}

/// When the screen hears of a line that ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Told {
    Now,
    /// It did, beside a turn.
    Before,
}

impl Ran {
    pub(super) fn of(command: String, result: ToolResult) -> Ran {
        let code = match result.display {
            Some(Display::Command { code, .. }) => code,
            _ => None,
        };
        Ran { output: result.text(), command, code, outcome: result.outcome }
    }

    /// As the screen hears of it.
    pub(super) fn shown(&self) -> Event {
        let Ran { command, output, code, .. } = self;
        Event::Item(Item::ShellDone { command: command.clone(), output: output.clone(), code: *code })
    }

    /// As the model reads of it.
    pub(super) fn told(&self) -> Message {
        let how = match self.outcome {
            Outcome::Interrupted => "and interrupted it",
            Outcome::Ok => "and it succeeded",
            Outcome::Error | Outcome::Denied => "and it failed",
        };
        let told = format!("The user ran a command of their own, {how}:\n$ {}\n{}", self.command, self.output);
        Message::attachment(Attachment::Shell, &told)
    }

    /// As a resumed session shows it.
    pub(super) fn entry(&self) -> EntryKind {
        let Ran { command, output, code, .. } = self;
        EntryKind::ShellRan { command: command.clone(), output: output.clone(), code: *code }
    }
}
