//! The user's own `!` lines: run at once, without asking; line and output join the context.

use super::{Engine, Inbox};
use crate::message::{Attachment, Display, Message, Outcome};
use crate::protocol::{Event, Item};
use crate::session::entry::EntryKind;

impl Engine {
    pub(super) async fn shell(&mut self, command: String, inbox: &mut Inbox) {
        if self.agent.session.read_only() {
            let text = "This session is open read-only; the command was not run.".into();
            self.mailbox.emit(Event::Error { text, restore: Some(format!("!{command}")) }).await;
            return;
        }
        let mailbox = self.mailbox.clone();
        mailbox.emit(Event::Item(Item::ShellStarted { command: command.clone() })).await;
        let cancel = mailbox.begin();
        let output = inbox.attend(self.agent.user_command(&command, &cancel, &mailbox)).await;
        mailbox.end();
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                let restore = Some(format!("!{command}"));
                mailbox.emit(Event::Item(Item::ShellDone { command, output: String::new(), code: None })).await;
                return mailbox.emit(Event::Error { text: error.to_string(), restore }).await;
            }
        };
        let text = output.content.iter().filter_map(|part| match part {
            crate::message::Content::Text { text } => Some(text.as_str()),
            crate::message::Content::Media(_) => None,
        });
        let text: String = text.collect();
        let code = match output.display {
            Some(Display::Command { code, .. }) => code,
            _ => None,
        };
        let how = match output.outcome {
            Outcome::Interrupted => "and interrupted it",
            Outcome::Ok => "and it succeeded",
            Outcome::Error | Outcome::Denied => "and it failed",
        };
        // Logged before it is shown, once for the model and once for the screen.
        let told = format!("The user ran a command of their own, {how}:\n$ {command}\n{text}");
        let ran = EntryKind::ShellRan { command: command.clone(), output: text.clone(), code };
        let logged = match self.agent.note(Message::attachment(Attachment::Shell, &told), &mailbox).await {
            Ok(()) => self.agent.session.append(ran).map(drop),
            failed => failed,
        };
        if let Err(error) = logged {
            mailbox.emit(Event::Error { text: error.to_string(), restore: None }).await;
        }
        mailbox.emit(Event::Item(Item::ShellDone { command, output: text, code })).await;
    }
}
