//! The user's own `!` lines: run, and told to the model and the screen.

use super::reports::Look;
use super::{Engine, Inbox};
use crate::message::{Attachment, Content, Display, Message, Outcome, ToolResult};
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
        let text = result.content.iter().filter_map(|part| match part {
            Content::Text { text } => Some(text.as_str()),
            Content::Media(_) => None,
        });
        let code = match result.display {
            Some(Display::Command { code, .. }) => code,
            _ => None,
        };
        Ran { output: text.collect(), command, code, outcome: result.outcome }
    }

    /// As the screen hears of it.
    pub(super) fn shown(&self) -> Event {
        let Ran { command, output, code, .. } = self;
        Event::Item(Item::ShellDone { command: command.clone(), output: output.clone(), code: *code })
    }
}

impl Engine {
    /// Runs a line of the user's own.
    pub(super) async fn shell(&mut self, command: String, inbox: &mut Inbox) {
        if self.agent.conversation.session.read_only() {
            let text = "This session is open read-only; the command was not run.".into();
            self.mailbox.emit(Event::Error { text, restore: Some(format!("!{command}")) }).await;
            return;
        }
        let mailbox = self.mailbox.clone();
        mailbox.emit(Event::Item(Item::ShellStarted { command: command.clone() })).await;
        let cancel = mailbox.begin();
        let look = Look::beside(&self.setup, &self.loaded, &self.models, &self.catalog, (&mut self.agent, &mailbox));
        let output = inbox.attend_with(Some(&look), self.agent.user_command(&command, &cancel, &mailbox)).await;
        mailbox.end();
        match output {
            Ok(result) => self.ran(Ran::of(command, result), Told::Now).await,
            Err(error) => {
                let restore = Some(format!("!{command}"));
                mailbox.emit(Event::Item(Item::ShellDone { command, output: String::new(), code: None })).await;
                mailbox.emit(Event::Error { text: error.to_string(), restore }).await;
            }
        }
    }

    /// Logs a line that ran, once for the model and once for the screen, and then shows it where that was not done before.
    pub(super) async fn ran(&mut self, ran: Ran, screen: Told) {
        let mailbox = self.mailbox.clone();
        let how = match ran.outcome {
            Outcome::Interrupted => "and interrupted it",
            Outcome::Ok => "and it succeeded",
            Outcome::Error | Outcome::Denied => "and it failed",
        };
        let told = format!("The user ran a command of their own, {how}:\n$ {}\n{}", ran.command, ran.output);
        let entry = EntryKind::ShellRan { command: ran.command.clone(), output: ran.output.clone(), code: ran.code };
        let logged = match self.agent.conversation.push(Message::attachment(Attachment::Shell, &told), &mailbox).await {
            Ok(()) => self.agent.conversation.append(entry).map(drop),
            failed => failed,
        };
        if let Err(error) = logged {
            mailbox.emit(Event::Error { text: error.to_string(), restore: None }).await;
        }
        if screen == Told::Now {
            mailbox.emit(ran.shown()).await;
        }
    }
}
