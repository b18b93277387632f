//! Keeps the notes of the session: a fork of the conversation brings them up to date in the background. The turn never
//! waits for it, the conversation never shows it, and it dies with the session.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::dispatch::{Confined, Nobody, Runner};
use crate::agent::{Agent, Model, side_request, thinking};
use crate::compact::memory::{self, Metadata, Notes, Pause};
use crate::compact::{self, excerpt};
use crate::message::{Message, Outcome, Usage, tokens};
use crate::provider::{Purpose, Request, Thinking};
use crate::session::entry::EntryKind;
use crate::session::{self, Session};
use crate::tools;

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
pub(in crate::agent) struct Extraction {
    running: Option<Running>,
    /// When the last one began.
    began: Option<Instant>,
    /// In a row.
    failures: u32,
}

/// One that is under way. Dropping it ends it.
#[derive(Debug)]
struct Running {
    task: AbortHandle,
    /// Why it came to nothing, where it did.
    outcome: oneshot::Receiver<Result<(), String>>,
    cancel: CancellationToken,
    /// What its requests cost so far.
    spent: Arc<Mutex<Usage>>,
    model: String,
    began: Instant,
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
    pub(in crate::agent) fn collect(&mut self, session: &mut Session) -> Result<(), session::Error> {
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
    pub(in crate::agent) fn end(&mut self, session: &mut Session) -> Result<(), session::Error> {
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

impl Agent {
    /// Begins to bring the notes up to date when it is time.
    ///
    /// # Errors
    /// The log cannot be written: what an earlier one cost is noted first.
    pub(in crate::agent) fn consider_notes(&mut self, pause: Pause) -> Result<(), session::Error> {
        self.compaction.notes.collect(&mut self.conversation.session)?;
        let (settings, features) = (&self.settings.compact, self.settings.features);
        let off = !(settings.enabled && features.session_memory) || self.conversation.presence == Presence::Unattended;
        if off
            || self.compaction.notes.running.is_some()
            || self.compaction.notes.failures >= settings.guards.max_failures
        {
            return Ok(());
        }
        let cooldown = Duration::from_secs(settings.session_memory.cooldown_s);
        let now = (self.clock)();
        if self.compaction.notes.began.is_some_and(|began| now.duration_since(began) < cooldown) {
            return Ok(());
        }
        let (context, driver) = (self.conversation.context(), &self.compaction.driver);
        // Cheap figures first: this is asked after every reply.
        if driver.used(context) < settings.session_memory.first_tokens.min(driver.marks().available / 4) {
            return Ok(());
        }
        let notes = notes(&self.conversation.session);
        let since = notes
            .metadata()
            .and_then(|metadata| metadata.last_summarized_seq)
            .map(|seq| memory::since(context, &driver.meter, seq));
        if memory::due(driver.used(context), since, pause, driver.marks(), settings) {
            self.compaction.notes.began = Some(now);
            self.compaction.notes.running = self.fork(notes, now);
        }
        Ok(())
    }

    /// Forks the conversation as it is. None when there is nothing to cover, or the notes cannot be read.
    fn fork(&mut self, notes: Notes, began: Instant) -> Option<Running> {
        let (seq, messages) = memory::covered(self.conversation.context())?;
        let metadata = Metadata {
            last_summarized_id: Some(self.conversation.session.entry(seq)?.id),
            last_summarized_seq: Some(seq),
            last_extraction: self.conversation.session.now(),
            summary_token_count: 0,
            messages_summarized: messages,
        };
        let text = notes.begin().inspect_err(|error| tracing::warn!(%error, "the session notes")).ok()?;
        let limit = memory::limit(&self.settings.compact, self.compaction.driver.marks());
        let cancel = CancellationToken::new();
        let edit = self.toolbox.get(tools::EDIT)?.clone();
        let tools = &self.settings.tools;
        let runner = Runner::new(&self.policy, &self.conversation, tools, Arc::new(Nobody), &cancel);
        let grounds = self.policy.grounds(&self.conversation);
        let confined = Confined::new(edit, (notes.file(), &text), grounds, runner);
        let (model, mut request) = self.request_beside();
        request.purpose = Purpose::Memory;
        request.messages.push(excerpt::asks(memory::instruction(&notes.file(), &text, limit)));
        let spent = Arc::new(Mutex::new(Usage::default()));
        let name = model.name();
        self.spending.know(name.clone(), &model.spec);
        let first_call = self.conversation.session.next_call();
        let fork = Fork { model, request, confined, notes, limit, first_call, spent: spent.clone() };
        tracing::debug!(messages, "updating the session notes");
        let (send, outcome) = oneshot::channel();
        let task = tokio::spawn(async move {
            // The caller that waited may be gone.
            let _ = send.send(fork.run(metadata).await);
        });
        Some(Running { task: task.abort_handle(), outcome, cancel, spent, model: name, began })
    }

    /// The next request of the conversation, to be asked beside it: of the model in use, whose cache knows it, unless
    /// another one writes summaries.
    pub(in crate::agent) fn request_beside(&mut self) -> (Model, Request) {
        let request = self.request();
        let other = self.model_of_summaries().inspect_err(|problem| tracing::warn!(%problem, "no model for summaries"));
        match other.ok().flatten() {
            Some(model) => {
                let messages = thinking::without_foreign_wire(request.messages, &model.provider_name);
                let max_output = request.max_output.min(model.spec.max_output);
                let request =
                    Request { model: model.id.clone(), messages, max_output, thinking: Thinking::Unset, ..request };
                (model, request)
            }
            None => (self.model.clone(), request),
        }
    }

    /// The model that writes summaries, where it is another one than that of the conversation.
    ///
    /// # Errors
    /// It cannot be asked; the text names the fix.
    pub(in crate::agent) fn model_of_summaries(&self) -> Result<Option<Model>, String> {
        let settings = &self.settings.compact;
        let Some(id) = &settings.summarization_model else { return Ok(None) };
        let name = match &settings.summarization_model_provider_id {
            Some(provider) => format!("{provider}/{id}"),
            None => id.clone(),
        };
        self.model_named(&name).map(|model| Some(model).filter(|model| model.name() != self.model.name()))
    }
}

/// The conversation as it stood, on its own.
struct Fork {
    model: Model,
    request: Request,
    confined: Confined,
    notes: Notes,
    limit: u64,
    first_call: u64,
    spent: Arc<Mutex<Usage>>,
}

impl Fork {
    /// Asks until nothing more is called, then says what the notes cover. Without a change they cover what they did before.
    async fn run(mut self, metadata: Metadata) -> Result<(), String> {
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
