//! Compaction while a turn runs: makes room before each request; after each round it puts old results behind a digest, where
//! the settings want that, and keeps the notes.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::extraction::{Fork, Running};
use super::tiers::{self, Attempt, Wish};
use super::{millis, tell_cleared};
use crate::agent::dispatch::{Confined, Nobody, Runner};
use crate::agent::turn::Turn;
use crate::agent::{Agent, Failure, budget, side_request};
use crate::compact::memory::{self, Metadata, Notes, Pause};
use crate::compact::{Step, Summarized, Summary, Surroundings, apply, digest, excerpt, receipt, trim};
use crate::message::tokens::{self, Load};
use crate::message::{Message, Usage};
use crate::protocol::{self, Event, FailureReason, Receipt, Trigger, TurnEnd};
use crate::provider::{Purpose, Request, Thinking};
use crate::session;
use crate::session::entry::{Boundary, EntryKind};
use crate::tools;

/// Who speaks when a digest is asked for.
const SYSTEM: &str = "You condense tool results for a programmer who continues to work with them.";

impl Turn<'_> {
    /// Makes the next request fit. Returns how the turn ends when it cannot be sent.
    ///
    /// # Errors
    /// The log cannot be written, or compaction is switched off and the request does not fit.
    pub(in crate::agent) async fn make_room(&mut self) -> Result<Option<TurnEnd>, Failure> {
        if budget::exhausted(self.agent, self.mailbox, self.cancel).await {
            return Ok(Some(TurnEnd::Budget));
        }
        let agent = &mut *self.agent;
        if agent.frozen.outdated(&agent.conversation.session, &agent.toolbox.specs()) {
            (agent.system, agent.tool_specs) = (agent.frozen.own.clone(), agent.toolbox.specs());
        }
        let Agent { compaction, system, tool_specs, .. } = agent;
        compaction.weigh_overhead(system, tool_specs);
        compaction.driver.prepare();
        loop {
            if self.cancel.is_cancelled() {
                return Ok(Some(TurnEnd::Interrupted));
            }
            let Agent { conversation, compaction, toolbox, model, clock, .. } = &mut *self.agent;
            let now = clock();
            let toolbox = toolbox.clone();
            let clearable = move |tool: &str| toolbox.get(tool).is_some_and(|tool| tool.manners().clearable);
            let around = Surroundings {
                store: conversation.session.store(),
                clearable: &clearable,
                prices: model.spec.prices,
                cold: compaction.is_cold(now),
            };
            match compaction.driver.step(conversation.context(), around) {
                Step::Send => {
                    (compaction.sent, compaction.sent_at) = (conversation.context().count(), Some(now));
                    return Ok(None);
                }
                Step::Clear(plan) => {
                    let cleared = apply::clear(&mut conversation.session, &plan)?;
                    tell_cleared(cleared, (Trigger::Auto, compaction.driver.search()), conversation, self.mailbox)
                        .await?;
                }
                Step::Summarize => {
                    let wish = Wish::new(Trigger::Auto, None);
                    let mut attempt = Attempt { agent: self.agent, wish, mailbox: self.mailbox, cancel: self.cancel };
                    let what = match Box::pin(attempt.summarize()).await? {
                        Ok(_) => Summarized::Committed,
                        Err((FailureReason::Budget, _)) => return Ok(Some(TurnEnd::Budget)),
                        Err((FailureReason::Blocked, _)) => Summarized::Blocked,
                        Err((FailureReason::Interrupted, _)) => Summarized::Interrupted,
                        Err((FailureReason::NoProgress, _)) => Summarized::Rejected,
                        Err(_) => Summarized::Failed,
                    };
                    let interrupted = what == Summarized::Interrupted;
                    if what == Summarized::Committed {
                        self.agent.compaction.tell_close_runs(self.agent.conversation.context(), self.mailbox).await;
                    }
                    if self.agent.compaction.driver.summarized(what) {
                        let text = "Summarizing failed several times in a row and is off for this session. What does \
                                    not fit is still trimmed; `/compact` tries again.";
                        self.mailbox.emit(Event::Notice { text: text.into() }).await;
                    }
                    if interrupted {
                        return Ok(Some(TurnEnd::Interrupted));
                    }
                }
                Step::Trim { target } => self.trim(target, &clearable).await?,
                Step::Refuse { used, blocking } => return Err(Failure::Full { used, blocking }),
            }
        }
    }

    async fn trim(&mut self, target: u64, clearable: &(dyn Fn(&str) -> bool + Sync)) -> Result<(), session::Error> {
        let Agent { conversation, compaction, policy, model, runs, clock, .. } = &mut *self.agent;
        let started = clock();
        let opening = conversation.reopening(policy, &model.id, runs).await;
        let context = conversation.context();
        let before = compaction.driver.meter.likely_used(context);
        let mut plan =
            trim::plan(context, compaction.driver.terms(conversation.session.store(), clearable), &opening, target);
        if plan.is_empty() {
            return Ok(());
        }
        let empty = Boundary { tier: trim::TIER.into(), ..Boundary::default() };
        let mut receipt = receipt::of(context, plan.drop.as_ref().unwrap_or(&empty));
        if let Some(drop) = &mut plan.drop {
            drop.receipt = Receipt { before, after: drop.post_tokens, ..receipt.clone() };
        }
        let trimmed = apply::trim(&mut conversation.session, &plan, before)?;
        if trimmed.boundary.is_some() {
            conversation.forget_read();
            compaction.notes.forget(&mut conversation.session);
        }
        (receipt.before, receipt.after) = (before, compaction.driver.meter.likely_used(conversation.context()));
        receipt.millis = millis(clock().duration_since(started));
        let summary = plan.drop.map(|drop| drop.told()).unwrap_or_default();
        self.mailbox
            .emit(Event::Compaction(protocol::Compaction::Completed { receipt: receipt.clone(), summary }))
            .await;
        crate::stdx::memory::give_back();
        if let Some(occasion) = tiers::occasion(&receipt) {
            self.agent.fire(occasion, self.mailbox, self.cancel).await?;
        }
        self.agent.compaction.tell_close_runs(self.agent.conversation.context(), self.mailbox).await;
        Ok(())
    }

    /// Archives what is more than the settings leave visible.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn digest_results(&mut self) -> Result<(), session::Error> {
        let settings = self.agent.compaction.driver.settings();
        let output = &settings.tool_output;
        if output.summary == Summary::Off || !settings.enabled {
            return Ok(());
        }
        let Some(plan) = digest::plan(self.agent.conversation.context(), output.visible) else { return Ok(()) };
        let (most, heuristic) = (output.output_chars, output.heuristic_chars);
        let asked = match output.summary {
            Summary::Llm => {
                let text = plan.instruction(output.input_chars, most);
                self.ask_digest(text).await?
            }
            Summary::Heuristic | Summary::Off => None,
        };
        let text = asked.map_or_else(|| plan.heuristic(heuristic), |text| digest::clipped(&text, most));
        let digest = Arc::new(plan.message(&text));
        self.agent.conversation.append(EntryKind::ToolResultsArchived { calls: plan.calls, digest })?;
        Ok(())
    }

    /// What a model makes of the results; none when it fails.
    async fn ask_digest(&mut self, text: String) -> Result<Option<String>, session::Error> {
        let (model, request) = self.agent.request_beside(Load::default());
        let request = Request {
            system: SYSTEM.into(),
            tools: Arc::new([]),
            messages: vec![Arc::new(Message::prompt(text))],
            max_output: model.spec.max_output.min(4_000),
            thinking: Thinking::Unset,
            purpose: Purpose::Summary,
            cache_key: String::new(),
            ..request
        };
        let (reply, usage) = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Ok(None),
            asked = side_request::send(&model, request, 0) => asked,
        };
        if usage != Usage::default() {
            let session = &mut self.agent.conversation.session;
            self.agent.spending.note(session, "digest of tool results", (model.name(), &model.spec), usage)?;
        }
        match reply {
            Ok(reply) => Ok(Some(reply.text().trim().to_owned()).filter(|text| !text.is_empty())),
            Err(error) => {
                tracing::info!(%error, "the model returned no digest");
                Ok(None)
            }
        }
    }

    /// Begins to bring the notes up to date when it is time.
    pub(in crate::agent) fn consider_notes(&mut self, pause: Pause) -> Result<(), session::Error> {
        let Agent { conversation, compaction, model, clock, .. } = &mut *self.agent;
        let now = clock();
        if let Some(notes) = compaction.notes_due(conversation, pause, (model.spec.prices, now))? {
            self.agent.compaction.notes.running = self.fork(notes, now);
        }
        Ok(())
    }

    /// Forks the conversation as it is. None when there is nothing to cover, or the notes cannot be read.
    fn fork(&mut self, notes: Notes, began: Instant) -> Option<Running> {
        let Agent { conversation, compaction, policy, toolbox, settings, .. } = &*self.agent;
        let (seq, messages) = memory::covered(conversation.context())?;
        let metadata = Metadata {
            last_summarized_id: Some(conversation.session.entry(seq)?.id),
            last_summarized_seq: Some(seq),
            last_extraction: conversation.session.now(),
            summary_token_count: 0,
            messages_summarized: messages,
        };
        let text = notes.begin().inspect_err(|error| tracing::warn!(%error, "the session notes")).ok()?;
        let limit = memory::limit(compaction.driver.settings(), compaction.driver.marks());
        let cancel = CancellationToken::new();
        let edit = toolbox.get(tools::EDIT)?.clone();
        let tools = &settings.tools;
        let runner = Runner::new(policy, conversation, tools, Arc::new(Nobody), &cancel);
        let grounds = policy.grounds(conversation);
        let confined = Confined::new(edit, (notes.file(), &text), grounds, runner);
        let first_call = conversation.session.next_call();
        let asks = excerpt::asks(memory::instruction(&notes.file(), &text, limit));
        let (model, mut request) = self.agent.request_beside(tokens::load(&asks));
        request.purpose = Purpose::Memory;
        request.messages.push(asks);
        let spent = Arc::new(Mutex::new(Usage::default()));
        let name = model.name();
        self.agent.spending.know(name.clone(), &model.spec);
        let fork = Fork { model, request, confined, notes, limit, first_call, spent: spent.clone() };
        tracing::debug!(messages, "updating the session notes");
        let (send, outcome) = oneshot::channel();
        let task = tokio::spawn(async move {
            // The caller that waited may be gone.
            let _ = send.send(fork.run(metadata).await);
        });
        Some(Running { task: task.abort_handle(), outcome, cancel, spent, model: name, began })
    }
}
