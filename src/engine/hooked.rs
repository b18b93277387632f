//! Hooks around the agent: a session begins, ends, or waits for its user; `/hooks`.

use std::fmt::Write;
use std::time::Duration;

use super::{Engine, Inbox};
use crate::config::Loaded;
use crate::hooks::{EndReason, Event as Hook, Hooks, StartSource};
use crate::protocol::Op;

/// The hooks of a configuration.
pub(super) fn hooks(loaded: &Loaded) -> Hooks {
    let (given, switch) = loaded.hooks();
    Hooks::new(given, switch)
}

impl Engine {
    /// Runs the hooks of a session that begins; prompts wait for them, Esc ends them.
    pub(super) async fn session_started(&mut self, source: StartSource, inbox: &mut Inbox) {
        if !self.agent.hooking.hooks.listens(Hook::SessionStart) {
            return;
        }
        let mailbox = self.mailbox.clone();
        let cancel = mailbox.begin();
        let told = inbox.attend(self.agent.session_started(source, &mailbox, &cancel)).await;
        mailbox.end();
        if let Err(error) = told {
            self.fail(error).await;
        }
    }

    /// Runs the hooks of a session that ends.
    pub(super) async fn session_ended(&mut self, reason: EndReason) {
        let mailbox = self.mailbox.clone();
        if let Err(error) = self.agent.session_ended(reason, &mailbox).await {
            self.fail(error).await;
        }
    }

    /// The next op; hooks hear of it when it is long in coming. `worked`: the agent has done something that is waited on.
    pub(super) async fn next_op(&mut self, inbox: &mut Inbox, worked: bool) -> Option<Op> {
        if worked && self.agent.hooking.hooks.listens(Hook::Notification) {
            let idle = Duration::from_secs(self.loaded.config.idle_notification_s);
            tokio::select! {
                biased;
                op = inbox.next() => return op,
                () = tokio::time::sleep(idle) => self.agent.notify("idle_prompt", "cocode is waiting for your input"),
            }
        }
        inbox.next().await
    }

    /// Every hook with its source and its last result, as Markdown.
    pub(super) fn hooks_report(&self) -> String {
        let rows = self.agent.hooking.hooks.rows();
        if rows.is_empty() {
            return "No hooks are set. `[hooks]` in config.toml and `hooks` in .claude/settings.json define them."
                .into();
        }
        let mut text = String::new();
        if rows.iter().any(|row| row.off) {
            text.push_str("Hooks are off (`disable_all_hooks`).\n\n");
        }
        let mut event = None;
        for row in rows {
            if event.replace(row.event) != Some(row.event) {
                let _ = writeln!(text, "{}**{}**\n", if text.is_empty() { "" } else { "\n" }, row.event);
            }
            let matcher = row.matcher.filter(|text| !matches!(text.as_str(), "" | "*"));
            let matcher = matcher.map(|text| format!("`{text}`: ")).unwrap_or_default();
            let once = if row.once { ", once" } else { "" };
            let beside = if row.beside { ", in the background" } else { "" };
            let last = match row.last {
                Some((ended, millis)) => format!("{} after {millis} ms", ended.name()),
                None if row.off => "off".to_owned(),
                None => "has not run".to_owned(),
            };
            let command = row.command.replace('`', "'");
            let _ = writeln!(text, "- {matcher}`{command}` ({}{once}{beside}) — {last}", row.origin);
        }
        text
    }
}
