//! Keeps the notes of the session: a fork of the conversation brings them up to date in the background. The turn never
//! waits for it, the conversation never shows it, and it dies with the session.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::Compaction;
use crate::agent::dispatch::Confined;
use crate::agent::{Conversation, Model, side_request};
use crate::compact;
use crate::compact::memory::{self, Metadata, Notes, Pause};
use crate::message::{Message, Outcome, Usage, tokens};
use crate::provider::Request;
use crate::provider::catalog::Prices;
use crate::session::entry::EntryKind;
use crate::session::{self, Session};

/// Requests of one extraction: one with the edits, the others to fix what was refused.
const MOST_ROUNDS: usize = 4;

/// Who sits in front of the session: notes are kept only while a person works in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Attended,
    Unattended,
}

/// The extraction of one session.
#[derive(Debug, Default)]
pub struct Extraction {
    pub(super) running: Option<Running>,
    /// When the last one began.
    began: Option<Instant>,
    /// In a row.
    failures: u32,
}

/// One that is under way. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) task: AbortHandle,
    /// Why it came to nothing, where it did.
    pub(super) outcome: oneshot::Receiver<Result<(), String>>,
    pub(super) cancel: CancellationToken,
    /// What its requests cost so far.
    pub(super) spent: Arc<Mutex<Usage>>,
    pub(super) model: String,
    pub(super) began: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.task.abort();
    }
}

impl Extraction {
    /// Notes what an extraction cost that has ended.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn collect(&mut self, session: &mut Session) -> Result<(), session::Error> {
        let Some(running) = &mut self.running else { return Ok(()) };
        match running.outcome.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => Ok(()),
            outcome => self.settle(session, outcome.ok()),
        }
    }

    /// Ends a running extraction and notes what it cost: the session ends, or its conversation takes another turn.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn end(&mut self, session: &mut Session) -> Result<(), session::Error> {
        let outcome = self.running.as_mut().and_then(|running| running.outcome.try_recv().ok());
        self.settle(session, outcome)
    }

    /// Lets go of the extraction. No outcome: it crashed, or is ended in the middle.
    fn settle(&mut self, session: &mut Session, outcome: Option<Result<(), String>>) -> Result<(), session::Error> {
        let Some(running) = self.running.take() else { return Ok(()) };
        match outcome {
            Some(Ok(())) => self.failures = 0,
            Some(Err(error)) => {
                tracing::info!(%error, "the session notes were not updated");
                self.failures += 1;
            }
            None => {}
        }
        let usage = *running.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if usage != Usage::default() {
            let (what, model) = ("session notes".into(), running.model.clone());
            session.append(EntryKind::Spent { what, model, usage })?;
        }
        Ok(())
    }

    /// Waits for an extraction that is under way, as long as the settings have it, and ends it then: it would write into
    /// notes that are in use.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn wait(
        &mut self,
        session: &mut Session,
        settings: &compact::Settings,
        now: Instant,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        let memory = &settings.session_memory;
        let (wait, stale) = (Duration::from_secs(memory.wait_s), Duration::from_secs(memory.stale_s));
        let Some(running) = &mut self.running else { return Ok(()) };
        let mut outcome = None;
        if now.duration_since(running.began) < stale {
            tokio::select! {
                biased;
                done = &mut running.outcome => outcome = done.ok(),
                () = cancel.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.settle(session, outcome)
    }

    /// Another session takes the place of this one.
    pub(in crate::agent) fn leave(&mut self, session: &mut Session) {
        if let Err(error) = self.end(session) {
            tracing::warn!(%error, "the cost of the session notes");
        }
        *self = Extraction::default();
    }

    /// What the notes cover left the conversation in another way: they wait for the next extraction.
    pub(in crate::agent) fn forget(&mut self, session: &mut Session) {
        if let Err(error) = self.end(session) {
            tracing::warn!(%error, "the cost of the session notes");
        }
        if let Err(error) = notes(session).unmark() {
            tracing::warn!(%error, "the session notes");
        }
    }
}

/// The notes of a session.
pub(in crate::agent) fn notes(session: &Session) -> Notes {
    Notes::of(session.store().dir())
}

impl Compaction {
    /// The notes, when it is time to bring them up to date.
    ///
    /// # Errors
    /// The log cannot be written: what an earlier extraction cost is noted first.
    pub(super) fn notes_due(
        &mut self,
        conversation: &mut Conversation,
        pause: Pause,
        (prices, now): (Option<Prices>, Instant),
    ) -> Result<Option<Notes>, session::Error> {
        let Compaction { driver, notes: extraction, .. } = self;
        extraction.collect(&mut conversation.session)?;
        let (settings, features) = (driver.settings(), driver.features());
        let off = !(settings.enabled && features.session_memory) || conversation.presence == Presence::Unattended;
        if off || extraction.running.is_some() || extraction.failures >= settings.guards.max_failures {
            return Ok(None);
        }
        let cooldown = Duration::from_secs(settings.session_memory.cooldown_s);
        if extraction.began.is_some_and(|began| now.duration_since(began) < cooldown) {
            return Ok(None);
        }
        let context = conversation.context();
        // Cheap figures first: this is asked after every reply.
        if driver.used(context) < settings.session_memory.first_tokens.min(driver.marks().available / 4) {
            return Ok(None);
        }
        let notes = notes(&conversation.session);
        let since = notes
            .metadata()
            .and_then(|metadata| metadata.last_summarized_seq)
            .map(|seq| memory::since(context, &driver.meter, seq));
        let due = memory::due(driver.used(context), since, pause, driver, prices);
        if due {
            extraction.began = Some(now);
        }
        Ok(due.then_some(notes))
    }
}

/// The conversation as it stood, on its own.
pub(super) struct Fork {
    pub(super) model: Model,
    pub(super) request: Request,
    pub(super) confined: Confined,
    pub(super) notes: Notes,
    pub(super) limit: u64,
    pub(super) first_call: u64,
    pub(super) spent: Arc<Mutex<Usage>>,
}

impl Fork {
    /// Asks until nothing more is called, then says what the notes cover. Without a change they cover what they did before.
    pub(super) async fn run(mut self, metadata: Metadata) -> Result<(), String> {
        let mut changed = false;
        for _ in 0..MOST_ROUNDS {
            let (reply, usage) = side_request::send(&self.model, self.request.clone(), self.first_call).await;
            self.spent.lock().unwrap_or_else(PoisonError::into_inner).add(&usage);
            let reply = reply.map_err(|error| error.to_string())?;
            let mut results = Vec::new();
            for call in reply.calls() {
                self.first_call += 1;
                let before = self.notes.begin().map_err(|error| error.to_string())?;
                let mut result = self.confined.answer(call.clone()).await;
                let after = self.notes.begin().map_err(|error| error.to_string())?;
                let length = tokens::text(&after);
                if length > self.limit && after.len() > before.len() {
                    self.notes.write(&before).map_err(|error| error.to_string())?;
                    self.confined.restored(&before);
                    let text = format!(
                        "Reverted: the notes would have {length} tokens, and the limit is {}. Make them shorter.",
                        self.limit
                    );
                    result = crate::message::ToolResult::of_text(call.id.clone(), Outcome::Error, text);
                }
                changed |= result.outcome == Outcome::Ok;
                results.push(result);
            }
            let fixed = results.iter().all(|result| result.outcome == Outcome::Ok);
            if results.is_empty() || (changed && fixed) {
                break;
            }
            self.request.messages.push(Arc::new(reply));
            self.request.messages.push(Arc::new(Message::tool_results(results)));
        }
        if !changed {
            return Err("nothing was written".into());
        }
        let text = self.notes.begin().map_err(|error| error.to_string())?;
        let metadata = Metadata { summary_token_count: tokens::text(&text), ..metadata };
        self.notes.save(&metadata).map_err(|error| error.to_string())
    }
}
