//! Where hooks are fired, and what the agent does with what they say. `hooks` knows nothing of agents; this file does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::mailbox::{Mailbox, Prompt};
use super::turn::Turn;
use super::{Agent, Failure, hook_env};
use crate::hooks::{self, EndReason, Event as Hook, Hooks, Occasion, Outcome, Place, StartSource};
use crate::message::{Attachment, Message};
use crate::protocol::Event;
use crate::session;
use crate::session::entry::EntryKind;
use crate::tools;

/// How often in one turn hooks may send the agent on that had nothing more to do.
const MOST_CONTINUED: u32 = 20;

/// How long `async` hooks may continue when the session ends.
const LATER: Duration = Duration::from_secs(5);

/// The hooks of an agent, and what they left to be done.
#[derive(Debug, Default)]
pub struct Hooking {
    pub hooks: Hooks,
    /// Who the agent is when it works for another one.
    pub worker: Option<Worker>,
    /// What SessionStart and `async` hooks printed: it joins the conversation with the next prompt.
    pending: Vec<(Hook, String)>,
    /// What PreToolUse hooks added: it follows the results of the round.
    pub(super) beside_calls: Vec<Message>,
    /// Notifications that nobody waits for.
    beside: JoinSet<Outcome>,
    /// What SessionStart hooks set for the commands of the session.
    env: BTreeMap<String, String>,
    /// Where they may write it, while they run.
    env_file: Option<PathBuf>,
    /// Runs of `async` hooks. They may continue for a moment when the session ends.
    later: JoinSet<Outcome>,
}

/// A sub-agent: its end is told as `SubagentStop`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: String,
    /// `Explore`, for example.
    pub kind: String,
    pub transcript: PathBuf,
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
}

/// What UserPromptSubmit hooks made of a prompt.
pub(super) enum Submitted {
    /// It is sent, with what hooks add to it.
    Accepted(Vec<String>),
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
        let outcome = self.agent.fire(Occasion::user_prompt_submit(&prompt.text), self.mailbox, self.cancel).await?;
        let Some(outcome) = outcome else { return Ok(Submitted::Interrupted) };
        Ok(match outcome.stop.or(outcome.block) {
            Some(reason) if reason.is_empty() => Submitted::Erased("a UserPromptSubmit hook rejected it".into()),
            Some(reason) => Submitted::Erased(reason),
            None => Submitted::Accepted(outcome.context),
        })
    }

    /// Adds a prompt that hooks accepted, and what they added to it.
    pub(super) async fn push_submitted(&mut self, prompt: Prompt, context: Vec<String>) -> Result<(), session::Error> {
        self.agent.push_prompt(prompt, self.mailbox).await?;
        for text in context {
            self.agent.push(told(Hook::UserPromptSubmit, &text), self.mailbox).await?;
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
        let occasion = match &self.agent.hooking.worker {
            Some(worker) => Occasion::subagent_stop(&worker.id, &worker.kind, &worker.transcript, active),
            None => Occasion::stop(active),
        };
        let event = occasion.event;
        let Some(outcome) = self.agent.fire(occasion, self.mailbox, self.cancel).await? else {
            // The turn's loop sees the interrupt.
            return Ok(true);
        };
        if let Some(reason) = outcome.stop {
            self.agent.tell_stop(&reason, self.mailbox).await;
            return Ok(false);
        }
        let Some(reason) = outcome.block else { return Ok(false) };
        if *continued >= MOST_CONTINUED {
            let text = format!("A {event} hook sent the agent on {MOST_CONTINUED} times; that is enough for one turn.");
            self.mailbox.emit(Event::Notice { text }).await;
            return Ok(false);
        }
        *continued += 1;
        self.agent.push(told(event, &format!("{reason}\n\nDo that now.")), self.mailbox).await?;
        Ok(true)
    }
}

impl Agent {
    /// Runs the hooks of an occasion and tells front ends what they did. None when the user interrupted them.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn fire(
        &mut self,
        occasion: Occasion,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<Outcome>, session::Error> {
        if !self.hooking.hooks.listens(occasion.event) {
            return Ok(Some(Outcome::default()));
        }
        let (place, settings) = (self.hook_place(), self.hook_settings());
        self.fire_later(&occasion, &place, &settings);
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(None),
            outcome = self.hooking.hooks.run(&occasion, &place, &settings) => outcome,
        };
        self.report(&outcome, mailbox).await?;
        Ok(Some(outcome))
    }

    /// Runs hooks that can change nothing, without waiting for them. They end with the session at the latest.
    pub fn fire_beside(&mut self, occasion: Occasion) {
        if !self.hooking.hooks.listens(occasion.event) {
            return;
        }
        let (hooks, place, settings) = (self.hooking.hooks.branch(), self.hook_place(), self.hook_settings());
        self.fire_later(&occasion, &place, &settings);
        self.hooking.beside.spawn(async move { hooks.run(&occasion, &place, &settings).await });
    }

    /// Starts the `async` hooks of an occasion.
    pub(super) fn fire_later(&mut self, occasion: &Occasion, place: &Place, settings: &hooks::Settings) {
        if let Some(run) = self.hooking.hooks.beside(occasion, place, settings) {
            self.hooking.later.spawn(run);
        }
    }

    /// Reports the hooks that finished in the background, and keeps what they add.
    pub(super) async fn collect_background_hooks(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        let hooking = &mut self.hooking;
        let next = || hooking.beside.try_join_next().or_else(|| hooking.later.try_join_next());
        let done: Vec<Outcome> = std::iter::from_fn(next).filter_map(Result::ok).collect();
        for outcome in done {
            self.report(&outcome, mailbox).await?;
            let event = outcome.reports.first().map_or(Hook::Notification, |report| report.event);
            self.hooking.pending.extend(outcome.context.into_iter().map(|text| (event, text)));
        }
        Ok(())
    }

    pub(super) fn hook_place(&self) -> Place {
        Place {
            session: self.conversation.session.id().to_owned(),
            transcript: self.conversation.session.log().to_path_buf(),
            cwd: self.conversation.context().cwd().to_path_buf(),
            project: self.policy.places.project.clone(),
            mode: self.mode().name(),
        }
    }

    pub(super) fn hook_settings(&self) -> hooks::Settings {
        let tools = &self.settings.tools;
        let mut env = tools.env.clone();
        if let Some(file) = &self.hooking.env_file {
            let file = file.to_string_lossy();
            env.extend(["CLAUDE", "COCODE"].map(|owner| (format!("{owner}_ENV_FILE"), file.to_string())));
        }
        hooks::Settings { secret_env: tools.secret_env.clone(), env }
    }

    pub(super) async fn report(&mut self, outcome: &Outcome, mailbox: &Mailbox) -> Result<(), session::Error> {
        for report in &outcome.reports {
            mailbox.emit(Event::Hook { ran: report.clone() }).await;
        }
        for hook in &outcome.once {
            if !self.conversation.session.read_only() {
                self.conversation.append(EntryKind::HookRan { hook: hook.clone() })?;
            }
        }
        Ok(())
    }

    /// A session begins, or continues.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn session_started(
        &mut self,
        source: StartSource,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        let file = if self.hooking.hooks.listens(Hook::SessionStart) { hook_env::file() } else { None };
        self.hooking.env_file = file.as_ref().map(|file| file.to_path_buf());
        let outcome = self.fire(Occasion::session_start(source), mailbox, cancel).await;
        self.hooking.env_file = None;
        if let Some(file) = file.filter(|file| std::fs::metadata(file).is_ok_and(|meta| meta.len() > 0)) {
            let set = hook_env::set_by(&file, &self.hook_settings(), self.conversation.context().cwd()).await;
            self.hooking.env.extend(set);
            self.hooking.add_env(&mut self.settings.tools);
        }
        if let Some(outcome) = outcome? {
            self.hooking.pending.extend(outcome.context.into_iter().map(|text| (Hook::SessionStart, text)));
            if let Some(reason) = outcome.stop.filter(|reason| !reason.is_empty()) {
                mailbox.emit(Event::Notice { text: reason }).await;
            }
        }
        Ok(())
    }

    /// The session ends: its last hooks run, and what nobody waited for is ended.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn session_ended(&mut self, reason: EndReason, mailbox: &Mailbox) -> Result<(), session::Error> {
        self.collect_background_hooks(mailbox).await?;
        self.hooking.beside.shutdown().await;
        self.fire(Occasion::session_end(reason), mailbox, &CancellationToken::new()).await?;
        let rest = async {
            let mut done = Vec::new();
            while let Some(outcome) = self.hooking.later.join_next().await {
                done.extend(outcome.ok());
            }
            done
        };
        for outcome in tokio::time::timeout(LATER, rest).await.unwrap_or_default() {
            self.report(&outcome, mailbox).await?;
        }
        self.hooking.later.shutdown().await;
        self.hooking.pending.clear();
        Ok(())
    }

    /// Puts what SessionStart and `async` hooks printed in front of the next prompt.
    pub(super) async fn deliver_pending(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        self.collect_background_hooks(mailbox).await?;
        for (event, text) in std::mem::take(&mut self.hooking.pending) {
            self.push(told(event, &text), mailbox).await?;
        }
        Ok(())
    }

    /// Says that a hook ended the turn.
    pub(super) async fn tell_stop(&self, reason: &str, mailbox: &Mailbox) {
        let text = match reason {
            "" => "A hook stopped the turn.".to_owned(),
            reason => format!("A hook stopped the turn: {reason}"),
        };
        mailbox.emit(Event::Notice { text }).await;
    }

    /// The user is wanted.
    pub fn notify(&mut self, kind: &str, message: &str) {
        if self.hooking.worker.is_none() {
            self.fire_beside(Occasion::notification(kind, message));
        }
    }
}

/// Why a prompt came back when the user interrupted the hooks that saw it.
pub(super) const INTERRUPTED: &str = "interrupted before the prompt was sent";
