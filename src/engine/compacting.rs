//! `/compact`: with instructions or without, of old results alone, and back.

use super::{Engine, Inbox};
use crate::agent::{Compacted, Reminders};
use crate::commands::{Builtin, Catalog};
use crate::compact::receipt;
use crate::config::Config;

/// Keeps `/compact` from lists and completion where nothing compacts; typed, it still says so.
pub(super) fn hide(catalog: &Catalog, config: &Config) {
    catalog.hide(if config.compact.enabled { &[] } else { &[Builtin::Compact] });
}

impl Engine {
    /// Takes over what the settings say of compaction and of attachments. `/compact` is offered where it does something.
    pub(super) fn take_compaction(&mut self) {
        let config = &self.loaded.config;
        self.agent.set_compaction(config.compact.clone(), config.features);
        self.agent.settings.reminders = if config.reminders { Reminders::On } else { Reminders::Off };
        hide(&self.catalog, config);
    }

    pub(super) async fn compact(&mut self, args: &str, inbox: &mut Inbox) {
        if self.agent.session.read_only() {
            return self.fail("This session is open read-only and cannot be compacted.").await;
        }
        let (verb, rest) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
        let done = match (verb, rest.trim()) {
            ("undo", "") => self.agent.compact_undo(&self.mailbox).await,
            ("micro", "") => self.agent.compact_micro(None, &self.mailbox).await,
            ("micro", tokens) if tokens.parse::<u64>().is_ok() => {
                self.agent.compact_micro(tokens.parse().ok(), &self.mailbox).await
            }
            _ => return self.summarize(args, inbox).await,
        };
        match done {
            Ok(text) => self.tell(text).await,
            Err(error) => self.fail(error).await,
        }
    }

    async fn summarize(&mut self, instructions: &str, inbox: &mut Inbox) {
        let mailbox = self.mailbox.clone();
        let cancel = mailbox.begin();
        let instructions = Some(instructions.trim().to_owned()).filter(|text| !text.is_empty());
        let compacting = Box::pin(self.agent.compact(instructions, &mailbox, &cancel));
        let done = inbox.attend(compacting).await;
        mailbox.end();
        match done {
            Ok(Compacted::Done(receipt)) => {
                let mut text = receipt::words(&receipt);
                text.push_str("\n\nThe transcript (Ctrl+O) shows the summary; `/compact undo` reverts it.");
                self.tell(text).await;
            }
            Ok(Compacted::Refused(text)) => self.tell(text).await,
            Err(error) => self.fail(error).await,
        }
    }
}
