//! One try of a compaction: hooks may forbid it, the first tier that can proposes a summary, the driver judges it, and it
//! is committed.

mod full;
mod notes;
mod remote;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::millis;
use crate::agent::mailbox::Mailbox;
use crate::agent::{Agent, budget, hooking};
use crate::compact::candidate::{self, Made, Quotes};
use crate::compact::{self, Candidate, Ration, Summarized, receipt, trim};
use crate::hooks::{Event as Hook, Occasion, StartSource, Trigger as HookTrigger};
use crate::message::{Message, Usage, tokens};
use crate::protocol::report::Freed;
use crate::protocol::{Compaction, Event, FailureReason, Receipt, Trigger};
use crate::session;
use crate::session::entry::{Boundary, EntryKind, Kept, Seq};

/// What a compaction was asked for with.
pub(in crate::agent) struct Wish {
    pub(in crate::agent) trigger: Trigger,
    pub(in crate::agent) instructions: Option<String>,
    /// What hooks added to them.
    pub(in crate::agent) hooks: Vec<String>,
}

impl Wish {
    pub(in crate::agent) fn new(trigger: Trigger, instructions: Option<String>) -> Wish {
        Wish { trigger, instructions, hooks: Vec::new() }
    }
}

/// What the tiers came to.
enum Proposal {
    Candidate(Box<Candidate>),
    Failed { reason: FailureReason, text: String, spent: Spent },
}

/// What requests cost that were made for a summary; no sum where a price is unknown.
type Spent = (Usage, Option<f64>);

/// One try of a compaction, for the tiers.
pub(in crate::agent) struct Attempt<'a> {
    pub(in crate::agent) agent: &'a mut Agent,
    pub(in crate::agent) wish: Wish,
    pub(in crate::agent) mailbox: &'a Mailbox,
    pub(in crate::agent) cancel: &'a CancellationToken,
}

impl Attempt<'_> {
    /// As the user wants it.
    pub(in crate::agent) async fn asked(mut self) -> Result<Freed, session::Error> {
        if let Some(over) = budget::refused(self.agent) {
            return Ok(Freed::Refused { why: format!("Nothing was compacted: the {over}") });
        }
        let before = self.agent.usage_info().cost_usd.unwrap_or_default();
        let done = self.summarize().await?;
        let spent = self.agent.usage_info().cost_usd.unwrap_or_default() - before;
        let cost = if spent > 0.0 { format!(" The attempt cost ${spent:.4}.") } else { String::new() };
        Ok(match done {
            Ok(receipt) => {
                self.agent.compaction.driver.summarized(Summarized::Committed);
                Freed::Summarized { receipt: Box::new(receipt) }
            }
            Err((FailureReason::Interrupted, _)) => Freed::Refused { why: format!("Compaction canceled.{cost}") },
            Err((_, text)) => {
                Freed::Refused { why: format!("Nothing was compacted: {}.{cost}", text.trim_end_matches('.')) }
            }
        })
    }

    /// Runs the model tiers and commits what one of them proposes.
    pub(super) async fn summarize(&mut self) -> Result<Result<Receipt, (FailureReason, String)>, session::Error> {
        let started = (self.agent.clock)();
        let Agent { conversation, compaction, .. } = &mut *self.agent;
        compaction.driver.follow(conversation.context());
        let (tokens, trigger) =
            (self.agent.compaction.driver.used(self.agent.conversation.context()), self.wish.trigger);
        self.tell(Compaction::Started { trigger, tokens }).await;
        let (judged, cost) = match self.before_compaction().await? {
            Ok(()) => match self.propose().await? {
                Proposal::Candidate(candidate) => {
                    let cost_usd = candidate.boundary.receipt.cost_usd;
                    let cost = (candidate.spent, cost_usd.or_else(|| self.agent.model.spec.cost(&candidate.spent)));
                    let judged = self.agent.compaction.driver.judge(self.agent.conversation.context(), *candidate);
                    (judged.map_err(|rejected| (FailureReason::NoProgress, rejected.to_string())), cost)
                }
                Proposal::Failed { reason, text, spent } => (Err((reason, text)), spent),
            },
            Err(forbidden) => (Err(forbidden), Spent::default()),
        };
        let Candidate { mut boundary, spent, restored } = match judged {
            Ok(candidate) => candidate,
            Err((reason, text)) => return Ok(Err(self.failed(reason, text, cost).await)),
        };
        if !self.hooks_join(&mut boundary).await? {
            return Ok(Err(self.failed(FailureReason::Interrupted, "it was interrupted".into(), cost).await));
        }
        let mut receipt = receipt::of(self.agent.conversation.context(), &boundary);
        receipt.kept = Kept { messages: receipt.kept.messages, ..restored };
        receipt.usage = spent;
        receipt.cost_usd = cost.1;
        receipt.hooks = std::mem::take(&mut self.wish.hooks);
        receipt.millis = millis((self.agent.clock)().duration_since(started));
        let summary = boundary.told();
        self.agent
            .conversation
            .append(EntryKind::CompactBoundary(Boundary { receipt: receipt.clone(), ..boundary }))?;
        self.agent.conversation.session.sync()?;
        self.agent.conversation.forget_read();
        let summary_tokens = tokens::text(&summary);
        self.tell(Compaction::Completed { receipt: receipt.clone(), summary }).await;
        crate::stdx::memory::give_back();
        if receipt.tier == compact::memory::TIER {
            let saved_tokens = receipt.before.saturating_sub(receipt.after);
            self.tell(Compaction::SessionMemoryApplied { saved_tokens, summary_tokens }).await;
        } else {
            self.agent.compaction.notes.forget(&mut self.agent.conversation.session);
        }
        let (tokens, target) = (
            self.agent.compaction.driver.used(self.agent.conversation.context()),
            self.agent.compaction.driver.marks().target,
        );
        if tokens >= target {
            self.tell(Compaction::ThresholdExceeded { tokens, target }).await;
        }
        let info = self.agent.usage_info();
        self.mailbox.emit(Event::Usage(info)).await;
        if let Some(occasion) = occasion(&receipt) {
            self.agent.fire(occasion, self.mailbox, self.cancel).await?;
        }
        Ok(Ok(receipt))
    }

    /// Tells that nothing was compacted, why, and what that cost.
    async fn failed(&self, reason: FailureReason, text: String, (usage, cost_usd): Spent) -> (FailureReason, String) {
        let trigger = self.wish.trigger;
        self.tell(Compaction::Failed { trigger, reason, text: text.clone(), usage, cost_usd }).await;
        (reason, text)
    }

    async fn tell(&self, what: Compaction) {
        self.mailbox.emit(Event::Compaction(what)).await;
    }

    /// Says that the hooks of a compaction are waited for.
    async fn tell_hooks(&self, event: Hook) {
        if self.agent.hooking.hooks.listens(event) {
            let phase = format!("Running {event} hooks…");
            self.tell(Compaction::Progress { phase, received: 0 }).await;
        }
    }

    /// Lets PreCompact hooks forbid a compaction, or add to its instructions.
    ///
    /// # Errors
    /// The log cannot be written.
    async fn before_compaction(&mut self) -> Result<Result<(), (FailureReason, String)>, session::Error> {
        let Some(trigger) = of_hooks(self.wish.trigger) else { return Ok(Ok(())) };
        self.tell_hooks(Hook::PreCompact).await;
        let own = self.wish.instructions.as_deref().unwrap_or_default();
        let Some(outcome) = self.agent.fire(Occasion::pre_compact(trigger, own), self.mailbox, self.cancel).await?
        else {
            return Ok(Err((FailureReason::Interrupted, "it was interrupted".into())));
        };
        if let Some(reason) = outcome.block.or(outcome.stop) {
            let text = format!("a PreCompact hook forbids compaction: {reason}");
            return Ok(Err((FailureReason::Blocked, text)));
        }
        self.wish.hooks.clone_from(&outcome.context);
        let all: Vec<String> = self.wish.instructions.take().into_iter().chain(outcome.context).collect();
        self.wish.instructions = (!all.is_empty()).then(|| all.join("\n\n"));
        Ok(Ok(()))
    }

    /// SessionStart hooks run once a tier passed its checks; what they print joins the context. False when the user
    /// interrupted them.
    ///
    /// # Errors
    /// The log cannot be written.
    async fn hooks_join(&mut self, boundary: &mut Boundary) -> Result<bool, session::Error> {
        self.tell_hooks(Hook::SessionStart).await;
        let occasion = Occasion::session_start(StartSource::Compact);
        let Some(outcome) = self.agent.fire(occasion, self.mailbox, self.cancel).await? else { return Ok(false) };
        if let Some(reason) = outcome.stop.filter(|reason| !reason.is_empty()) {
            self.mailbox.emit(Event::Notice { text: reason }).await;
        }
        if outcome.context.is_empty() {
            return Ok(true);
        }
        let most = self.agent.compaction.driver.limits().hooks;
        let text = trim::shortened(&outcome.context.join("\n\n"), most);
        let message = hooking::told(Hook::SessionStart, &text);
        boundary.post_tokens += self.agent.compaction.driver.meter.likely(tokens::load(&message));
        boundary.attachments.push(Arc::new(message));
        Ok(true)
    }

    /// Asks the tiers in turn.
    ///
    /// # Errors
    /// The log cannot be written.
    async fn propose(&mut self) -> Result<Proposal, session::Error> {
        if let Some(candidate) = self.propose_notes().await? {
            return Ok(Proposal::Candidate(Box::new(candidate)));
        }
        if let Some(candidate) = self.propose_remote().await? {
            return Ok(Proposal::Candidate(Box::new(candidate)));
        }
        self.propose_full().await
    }

    /// What is before a summary, and what both weigh with what is put back at most.
    async fn brings(&mut self, summary: &Message) -> (Vec<Arc<Message>>, u64) {
        let Agent { conversation, compaction, policy, settings, model, runs, .. } = &mut *self.agent;
        let opening = conversation.reopening(policy, &model.id, runs).await;
        let brought = candidate::weight(&opening, summary)
            + compaction.restored((Seq::MAX, &[], 100), conversation, policy, settings).tokens();
        (opening, brought)
    }

    /// The largest of a tier's candidates that passes.
    fn fit(&self, make: impl Fn(&Self, Ration) -> Candidate) -> Candidate {
        let Agent { conversation, compaction, .. } = &*self.agent;
        candidate::fit(conversation.context(), &compaction.driver, |ration| make(self, ration))
    }

    /// A boundary as every tier makes it around its summary.
    fn candidate(
        &self,
        (tier, keep_from): (&str, Seq),
        (opening, summary): (&[Arc<Message>], &Arc<Message>),
        quotes: Quotes,
        ration: Ration,
    ) -> Candidate {
        let Agent { conversation, compaction, policy, settings, .. } = &*self.agent;
        let (opening, summary) = (opening.to_vec(), summary.clone());
        let made = Made { tier, trigger: self.wish.trigger, keep_from, opening, summary, quotes };
        made.candidate(conversation.context(), &compaction.driver, ration, |archived| {
            compaction.restored((keep_from, archived, ration.restored), conversation, policy, settings)
        })
    }
}

/// PostCompact hooks hear of every boundary but that of a plan.
pub(super) fn occasion(receipt: &Receipt) -> Option<Occasion> {
    let trigger = of_hooks(receipt.trigger)?;
    Some(Occasion::post_compact(trigger, &receipt.tier, receipt.before, receipt.after))
}

fn of_hooks(trigger: Trigger) -> Option<HookTrigger> {
    match trigger {
        Trigger::Manual => Some(HookTrigger::Manual),
        Trigger::Auto => Some(HookTrigger::Auto),
        Trigger::Plan => None,
    }
}
