//! Runs the hooks of an agent, and keeps what they leave to be done. `hooks` knows nothing of agents; this file does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempPath;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::mailbox::{Mailbox, Prompt};
use super::turn::Turn;
use super::{Conversation, Failure, events, hook_env};
use crate::hooks::{self, Event as Hook, Hooks, Occasion, Outcome, Place, Worker};
use crate::message::{Attachment, Message};
use crate::protocol::Event;
use crate::session;
use crate::tools;

/// How often in one turn hooks may send the agent on that had nothing more to do.
const MOST_CONTINUED: u32 = 8;

/// How long `async` hooks may continue when the session ends.
const LATER: Duration = Duration::from_secs(5);

/// The hooks of an agent, and what they left to be done.
#[derive(Debug, Default)]
pub struct Hooking {
    pub hooks: Hooks,
    /// Who the agent is when it works for another one: its end is told as `SubagentStop`.
    pub worker: Option<Worker>,
    /// What SessionStart and `async` hooks printed: it joins the conversation with the next prompt.
    pending: Vec<(Hook, String)>,
    /// What PreToolUse hooks added: it follows the results of the round.
    pub(super) beside_calls: Vec<Message>,
    /// The calls of a reply so far, as PostToolBatch hooks are told of them.
    pub(super) batch: Vec<Value>,
    /// Notifications that nobody waits for.
    pub(super) beside: JoinSet<Outcome>,
    /// What SessionStart hooks set for the commands of the session.
    env: BTreeMap<String, String>,
    /// Where they may write it, while they run.
    env_file: Option<PathBuf>,
    /// Runs of `async` hooks. They may continue for a moment when the session ends.
    later: JoinSet<Outcome>,
}

impl Hooking {
    pub fn new(hooks: Hooks) -> Hooking {
        Hooking { hooks, ..Hooking::default() }
    }

    /// Adds the variables of hooks to those that commands get.
    pub(super) fn add_env(&self, tools: &mut Arc<tools::Settings>) {
        if !self.env.is_empty() {
            Arc::make_mut(tools).env.extend(self.env.clone());
        }
    }

    /// What hooks run with, beside commands with these settings.
    pub(super) fn settings(&self, tools: &tools::Settings) -> hooks::Settings {
        let mut env = tools.env.clone();
        if let Some(file) = &self.env_file {
            let file = file.to_string_lossy();
            env.extend(["CLAUDE", "COCODE"].map(|owner| (format!("{owner}_ENV_FILE"), file.to_string())));
        }
        let (limits, outside) = (self.hooks.limits.clone(), self.hooks.outside.clone());
        hooks::Settings { secret_env: tools.secret_env.clone(), env, limits, outside }
    }

    /// Runs the hooks of an occasion. None when the user interrupted them.
    pub(super) async fn run(
        &mut self,
        occasion: &Occasion,
        place: &Place,
        settings: &hooks::Settings,
        cancel: &CancellationToken,
    ) -> Option<Outcome> {
        self.run_later(occasion, place, settings);
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            outcome = self.hooks.run(occasion, place, settings) => Some(outcome),
        }
    }

    /// Runs hooks that can change nothing, without waiting for them. They end with the session at the latest.
    pub(super) fn run_beside(&mut self, occasion: Occasion, place: Place, settings: hooks::Settings) {
        let hooks = self.hooks.branch();
        self.run_later(&occasion, &place, &settings);
        self.beside.spawn(async move { hooks.run(&occasion, &place, &settings).await });
    }

    /// Starts the `async` hooks of an occasion.
    pub(super) fn run_later(&mut self, occasion: &Occasion, place: &Place, settings: &hooks::Settings) {
        if let Some(run) = self.hooks.beside(occasion, place, settings) {
            self.later.spawn(run);
        }
    }

    /// Reports the hooks that finished in the background, and keeps what they add.
    pub(super) async fn collect(
        &mut self,
        conversation: &mut Conversation,
        mailbox: &Mailbox,
    ) -> Result<(), session::Error> {
        let next = || self.beside.try_join_next().or_else(|| self.later.try_join_next());
        let done: Vec<Outcome> = std::iter::from_fn(next).filter_map(Result::ok).collect();
        for outcome in done {
            conversation.note_hooks(&outcome, mailbox).await?;
            let event = outcome.reports.first().map_or(Hook::Notification, |report| report.event);
            self.keep(event, outcome.context);
        }
        Ok(())
    }

    /// Keeps what hooks printed for the next prompt.
    pub(super) fn keep(&mut self, event: Hook, context: Vec<String>) {
        self.pending.extend(context.into_iter().map(|text| (event, text)));
    }

    /// Puts what SessionStart and `async` hooks printed in front of the next prompt.
    pub(super) async fn deliver_pending(
        &mut self,
        conversation: &mut Conversation,
        mailbox: &Mailbox,
    ) -> Result<(), session::Error> {
        self.collect(conversation, mailbox).await?;
        for (event, text) in std::mem::take(&mut self.pending) {
            conversation.push(told(event, &text), mailbox).await?;
        }
        Ok(())
    }

    /// Makes the file that SessionStart hooks may write variables to, where some listen.
    pub(super) fn open_env(&mut self) -> Option<TempPath> {
        let file = if self.hooks.listens(Hook::SessionStart) { hook_env::file() } else { None };
        self.env_file = file.as_ref().map(|file| file.to_path_buf());
        file
    }

    /// Takes over what they wrote into it.
    pub(super) async fn close_env(&mut self, file: Option<TempPath>, tools: &mut Arc<tools::Settings>, cwd: &Path) {
        self.env_file = None;
        if let Some(file) = file.filter(|file| std::fs::metadata(file).is_ok_and(|meta| meta.len() > 0)) {
            let set = hook_env::set_by(&file, &self.settings(tools), cwd).await;
            self.env.extend(set);
            self.add_env(tools);
        }
    }

    /// Waits a moment for `async` hooks: the session ends.
    pub(super) async fn end(
        &mut self,
        conversation: &mut Conversation,
        mailbox: &Mailbox,
    ) -> Result<(), session::Error> {
        let rest = async {
            let mut done = Vec::new();
            while let Some(outcome) = self.later.join_next().await {
                done.extend(outcome.ok());
            }
            done
        };
        for outcome in tokio::time::timeout(LATER, rest).await.unwrap_or_default() {
            conversation.note_hooks(&outcome, mailbox).await?;
        }
        self.later.shutdown().await;
        self.pending.clear();
        Ok(())
    }
}

/// What UserPromptSubmit hooks made of a prompt.
pub(super) enum Submitted {
    /// It is sent, with what hooks add to it.
    Accepted(Vec<(Hook, String)>),
    /// A hook erased it, and why.
    Erased(String),
    Interrupted,
}

/// What a hook says to the model.
pub(super) fn told(event: Hook, text: &str) -> Message {
    Message::attachment(Attachment::Hook, &format!("From the user's {event} hook:\n\n{text}"))
}

impl Turn<'_> {
    /// Lets UserPromptSubmit hooks see a prompt before anything else does.
    pub(super) async fn submit_hooks(&mut self, prompt: &Prompt) -> Result<Submitted, session::Error> {
        if self.agent.hooking.worker.is_some() {
            return Ok(Submitted::Accepted(Vec::new()));
        }
        let expansion =
            prompt.skill.as_ref().map(|skill| Occasion::user_prompt_expansion(&skill.name, &skill.args, &prompt.text));
        let mut added = Vec::new();
        for occasion in expansion.into_iter().chain([Occasion::user_prompt_submit(&prompt.text)]) {
            let event = occasion.event;
            let outcome = self.agent.fire(occasion, self.mailbox, self.cancel).await?;
            let Some(outcome) = outcome else { return Ok(Submitted::Interrupted) };
            match outcome.stop.or(outcome.block) {
                Some(reason) if reason.is_empty() => {
                    return Ok(Submitted::Erased(format!("a {event} hook rejected it")));
                }
                Some(reason) => return Ok(Submitted::Erased(reason)),
                None => added.extend(outcome.context.into_iter().map(|text| (event, text))),
            }
        }
        Ok(Submitted::Accepted(added))
    }

    /// Adds a prompt that hooks accepted, and what they added to it.
    pub(super) async fn push_submitted(
        &mut self,
        prompt: Prompt,
        context: Vec<(Hook, String)>,
    ) -> Result<(), session::Error> {
        events::instructions(self.agent);
        self.push_prompt(prompt).await?;
        for (event, text) in context {
            self.agent.conversation.push(told(event, &text), self.mailbox).await?;
        }
        Ok(())
    }

    /// Adds a prompt to a running turn; one that a hook erases goes back to where it was typed.
    pub(super) async fn push_steer(&mut self, prompt: Prompt) -> Result<(), session::Error> {
        let text = match self.submit_hooks(&prompt).await? {
            Submitted::Accepted(context) => return self.push_submitted(prompt, context).await,
            Submitted::Erased(reason) => Failure::Erased { reason }.to_string(),
            Submitted::Interrupted => INTERRUPTED.to_owned(),
        };
        self.mailbox.emit(Event::Error { text, restore: Some(prompt.text) }).await;
        Ok(())
    }

    /// Whether Stop hooks make the agent continue. `continued` counts how often they did in this turn.
    pub(super) async fn stop_hooks_continue(&mut self, continued: &mut u32) -> Result<bool, session::Error> {
        let active = *continued > 0;
        let last = self.agent.conversation.last_said();
        let occasion = match &self.agent.hooking.worker {
            Some(worker) => Occasion::subagent_stop(worker, active, &last),
            None => Occasion::stop(active, &last),
        };
        let event = occasion.event;
        let Some(outcome) = self.agent.fire(occasion, self.mailbox, self.cancel).await? else {
            // The turn's loop sees the interrupt.
            return Ok(true);
        };
        if let Some(reason) = outcome.stop {
            tell_stop(&reason, self.mailbox).await;
            return Ok(false);
        }
        // What a hook only adds continues the work, too.
        let added = (!outcome.context.is_empty()).then(|| outcome.context.join("\n\n"));
        let Some(reason) = outcome.block.or(added) else { return Ok(false) };
        if *continued >= MOST_CONTINUED {
            let text = format!("A {event} hook sent the agent on {MOST_CONTINUED} times; that is enough for one turn.");
            self.mailbox.emit(Event::Notice { text }).await;
            return Ok(false);
        }
        *continued += 1;
        self.agent.conversation.push(told(event, &format!("{reason}\n\nDo that now.")), self.mailbox).await?;
        Ok(true)
    }
}

/// Says that a hook ended the turn.
pub(super) async fn tell_stop(reason: &str, mailbox: &Mailbox) {
    let text = match reason {
        "" => "A hook stopped the turn.".to_owned(),
        reason => format!("A hook stopped the turn: {reason}"),
    };
    mailbox.emit(Event::Notice { text }).await;
}

/// Why a prompt came back when the user interrupted the hooks that saw it.
pub(super) const INTERRUPTED: &str = "interrupted before the prompt was sent";
