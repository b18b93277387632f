//! Makes room in the window before a request: carries out what the compaction driver decides.

mod digest;
pub(super) mod extraction;
mod fresh_context;
mod restore;
mod tiers;
mod window;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::extraction::Extraction;
use self::tiers::{Attempt, Wish};
use super::mailbox::Mailbox;
use super::{Agent, Failure};
use crate::compact::{self, Driver, Step, Summarized, Surroundings, Window, apply, receipt, trim};
use crate::hooks::Occasion;
use crate::message::{Kind, Message, tokens};
use crate::protocol::{self, Event, FailureReason, Fullness, Receipt, Trigger, TurnEnd};
use crate::provider::{self, ToolSpec};
use crate::session;
use crate::session::context::Count;
use crate::session::entry::{Boundary, EntryKind};
use crate::stdx::text::short;

/// Compaction of the agent's session.
pub(super) struct Compaction {
    pub(super) driver: Driver,
    /// What the driver's overhead was last reckoned from.
    overhead: Option<(Arc<str>, Arc<[ToolSpec]>)>,
    /// The count of the context that was sent last.
    sent: Count,
    pub(super) notes: Extraction,
}

/// What came of a compaction that was asked for.
#[derive(Debug)]
pub enum Compacted {
    Done(Box<Receipt>),
    /// Nothing changed; a sentence says why.
    Refused(String),
}

impl Compaction {
    pub(super) fn new(settings: &super::Settings, model: &super::Model) -> Compaction {
        let window = window_of(settings, model);
        let driver = Driver::new(settings.compact.clone(), settings.features, window);
        Compaction { driver, overhead: None, sent: Count::default(), notes: Extraction::default() }
    }

    /// How much room is left with so many tokens used, in percent, and whether that is something to worry about.
    pub(super) fn fullness(&self, used: u64) -> (u8, Fullness) {
        let marks = self.driver.marks();
        let fullness = match used {
            used if used >= marks.blocking => Fullness::Blocking,
            used if used >= marks.error.max(1) => Fullness::Error,
            used if used >= marks.warning.max(1) => Fullness::Warning,
            _ => Fullness::Fine,
        };
        (marks.percent_left(used), fullness)
    }
}

/// What is known of a model's window.
fn window_of(settings: &super::Settings, model: &super::Model) -> Window {
    Window::of(model.spec.window, model.spec.known, model.spec.max_output, &settings.compact)
}

impl Agent {
    /// The model changed: what does not fit its window any more is compacted before the next request.
    pub(super) fn fit_window(&mut self) {
        self.compaction.driver.set_window(window_of(&self.settings, &self.model));
    }

    /// Takes over what the settings say of compaction now.
    pub fn set_compaction(&mut self, compact: compact::Settings, features: compact::Features) {
        (self.settings.compact, self.settings.features) = (compact.clone(), features);
        let window = window_of(&self.settings, &self.model);
        self.compaction.driver.set_settings(compact, features, window);
        // The meter is a new one.
        self.compaction.overhead = None;
    }

    /// Tokens of the next request as far as they are known.
    pub(super) fn used(&self) -> u64 {
        self.compaction.driver.used(self.conversation.context())
    }

    /// Most tokens of an answer: as many as the model can give and the window has left.
    pub(super) fn room_for_output(&self) -> u32 {
        const LEAST: u64 = 1_024;
        let most = self.model.spec.max_output;
        match self.compaction.driver.window().tokens {
            Some(tokens) => {
                let left = tokens.saturating_sub(self.used()).max(LEAST);
                most.min(u32::try_from(left).unwrap_or(u32::MAX))
            }
            None => most,
        }
    }

    /// Reckons what goes with every request beside the messages, when that changed.
    pub(super) fn weigh_overhead(&mut self) {
        let same =
            self.compaction.overhead.as_ref().is_some_and(|(system, specs)| {
                Arc::ptr_eq(system, &self.system) && Arc::ptr_eq(specs, &self.tool_specs)
            });
        if !same {
            let text = tokens::text(&self.system) + self.tool_specs.iter().map(weight).sum::<u64>();
            self.compaction.driver.meter.set_overhead(tokens::Load { text, images: 0 });
            self.compaction.overhead = Some((self.system.clone(), self.tool_specs.clone()));
        }
    }

    /// Makes the next request fit. Returns how the turn ends when it cannot be sent.
    ///
    /// # Errors
    /// The log cannot be written, or compaction is switched off and the request does not fit.
    pub(super) async fn make_room(
        &mut self,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Option<TurnEnd>, Failure> {
        self.weigh_overhead();
        self.compaction.driver.prepare();
        loop {
            if cancel.is_cancelled() {
                return Ok(Some(TurnEnd::Interrupted));
            }
            let toolbox = self.toolbox.clone();
            let clearable = move |tool: &str| toolbox.get(tool).is_some_and(|tool| tool.manners().clearable);
            let around = Surroundings {
                store: self.conversation.session.store(),
                clearable: &clearable,
                prices: self.model.spec.prices,
            };
            match self.compaction.driver.step(self.conversation.context(), around) {
                Step::Send => {
                    self.compaction.sent = self.conversation.context().count();
                    return Ok(None);
                }
                Step::Clear(plan) => {
                    let cleared = apply::clear(&mut self.conversation.session, &plan)?;
                    self.tell_cleared(cleared, mailbox).await?;
                }
                Step::Summarize => {
                    let wish = Wish { trigger: Trigger::Auto, instructions: None };
                    let attempt = Attempt { agent: self, wish, mailbox, cancel };
                    let what = match Box::pin(attempt.summarize()).await? {
                        Ok(_) => Summarized::Committed,
                        Err((FailureReason::Blocked, _)) => Summarized::Blocked,
                        Err((FailureReason::Interrupted, _)) => Summarized::Interrupted,
                        Err(_) => Summarized::Failed,
                    };
                    let interrupted = what == Summarized::Interrupted;
                    if what == Summarized::Committed {
                        self.tell_close_runs(mailbox).await;
                    }
                    if self.compaction.driver.summarized(what) {
                        let text = "Summarizing failed several times in a row and is off for this session. What does \
                                    not fit is still trimmed; `/compact` tries again.";
                        mailbox.emit(Event::Notice { text: text.into() }).await;
                    }
                    if interrupted {
                        return Ok(Some(TurnEnd::Interrupted));
                    }
                }
                Step::Trim { target } => self.trim(target, &clearable, mailbox, cancel).await?,
                Step::Refuse { used, blocking } => return Err(Failure::Full { used, blocking }),
            }
        }
    }

    /// After a request that the provider found too long: whether it is worth another try.
    pub(super) async fn recover(&mut self, error: &provider::Error, mailbox: &Mailbox) -> bool {
        let provider::Error::ContextTooLong { limit, .. } = error else { return false };
        if !self.compaction.driver.too_long(self.conversation.context(), *limit) {
            return false;
        }
        let text = "The provider rejected the conversation as too long. Compacting it and trying again.";
        mailbox.emit(Event::Notice { text: text.into() }).await;
        true
    }

    async fn tell_cleared(&mut self, cleared: apply::Cleared, mailbox: &Mailbox) -> Result<(), session::Error> {
        if cleared.results == 0 {
            return Ok(());
        }
        let text = format!(
            "{} older tool results were cleared to free space. Each one says where its content was saved; read the \
             file, or run the call again, if you still need it.",
            cleared.results
        );
        self.conversation.push(Message::reminder(&text), mailbox).await?;
        mailbox
            .emit(Event::Compaction(protocol::Compaction::MicroApplied {
                removed_results: cleared.results as u64,
                saved_tokens: cleared.tokens,
            }))
            .await;
        Ok(())
    }

    async fn trim(
        &mut self,
        target: u64,
        clearable: &(dyn Fn(&str) -> bool + Sync),
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        let started = (self.clock)();
        let opening = self.reopening().await;
        let context = self.conversation.context();
        let before = self.compaction.driver.used(context);
        let mut plan = trim::plan(
            context,
            self.compaction.driver.terms(self.conversation.session.store(), clearable),
            &opening,
            target,
        );
        if plan.is_empty() {
            return Ok(());
        }
        let empty = Boundary { tier: trim::TIER.into(), ..Boundary::default() };
        let mut receipt = receipt::of(context, plan.drop.as_ref().unwrap_or(&empty));
        if let Some(drop) = &mut plan.drop {
            drop.receipt = Receipt { before, after: plan.after, ..receipt.clone() };
        }
        let trimmed = apply::trim(&mut self.conversation.session, &plan, before)?;
        if trimmed.boundary.is_some() {
            self.conversation.forget_read();
            self.compaction.notes.forget(&mut self.conversation.session);
        }
        (receipt.before, receipt.after) = (before, self.used());
        receipt.millis = millis((self.clock)().duration_since(started));
        let summary = plan.drop.and_then(|drop| drop.summary).map(|note| note.text()).unwrap_or_default();
        mailbox.emit(Event::Compaction(protocol::Compaction::Completed { receipt: receipt.clone(), summary })).await;
        crate::stdx::memory::give_back();
        self.after_compaction(&receipt, mailbox, cancel).await?;
        self.tell_close_runs(mailbox).await;
        Ok(())
    }

    /// What every boundary brings along of the conversation's opening; nothing before there is one.
    pub(super) async fn reopening(&mut self) -> Vec<Arc<Message>> {
        match self.conversation.is_opened() {
            true => {
                let opening = self.conversation.opening_again(&self.policy, &self.model.id).await;
                [Some(opening), self.runs.list_again(self.conversation.context())]
                    .into_iter()
                    .flatten()
                    .map(Arc::new)
                    .collect()
            }
            false => Vec::new(),
        }
    }

    /// PostCompact hooks hear of every boundary.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn after_compaction(
        &mut self,
        receipt: &Receipt,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        let Some(trigger) = tiers::of_hooks(receipt.trigger) else { return Ok(()) };
        let occasion = Occasion::post_compact(trigger, &receipt.tier, receipt.before, receipt.after);
        self.fire(occasion, mailbox, cancel).await.map(drop)
    }

    /// Two automatic runs close together: says what fills the window.
    async fn tell_close_runs(&mut self, mailbox: &Mailbox) {
        if !self.compaction.driver.ran() {
            return;
        }
        let mut large: Vec<(u64, String)> = self
            .conversation
            .context()
            .shown()
            .map(|shown| {
                let what = match shown.message.kind {
                    Kind::Prompt => "a prompt",
                    Kind::Reply => "a reply",
                    Kind::ToolResult | Kind::ToolResultArchived | Kind::ToolSummary => "tool results",
                    Kind::CompactSummary => "the summary",
                    Kind::Skill => "a skill",
                    Kind::Attachment(_) | Kind::Notice => "an attachment",
                };
                (shown.load.total(), what.to_owned())
            })
            .collect();
        large.sort_by_key(|(tokens, _)| std::cmp::Reverse(*tokens));
        let parts: Vec<String> =
            large.iter().take(3).map(|(tokens, what)| format!("{what} of {} tokens", short(*tokens))).collect();
        let text = format!(
            "The conversation was compacted twice within a few requests. What fills the window: {}. A model with a \
             larger window, or smaller tasks, would help.",
            parts.join(", ")
        );
        mailbox.emit(Event::Notice { text }).await;
    }

    /// `/compact`, with the user's own instructions where there are any.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn compact(
        &mut self,
        instructions: Option<String>,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Compacted, session::Error> {
        self.weigh_overhead();
        if !self.settings.compact.enabled {
            return Ok(Compacted::Refused(OFF.into()));
        }
        let count = self.conversation.context().len() as u64;
        if count == 0 {
            return Ok(Compacted::Refused("No messages to compact.".into()));
        }
        if count < self.settings.compact.min_messages_before_compact {
            return Ok(Compacted::Refused("Not enough messages to compact.".into()));
        }
        let wish = Wish { trigger: Trigger::Manual, instructions };
        Ok(match (Attempt { agent: self, wish, mailbox, cancel }).summarize().await? {
            Ok(receipt) => {
                self.compaction.driver.summarized(Summarized::Committed);
                Compacted::Done(Box::new(receipt))
            }
            Err((FailureReason::Interrupted, _)) => Compacted::Refused("Compaction canceled.".into()),
            Err((_, text)) => Compacted::Refused(format!("Nothing was compacted: {}.", text.trim_end_matches('.'))),
        })
    }

    /// `/compact micro [tokens]`: clears old results now.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn compact_micro(&mut self, target: Option<u64>, mailbox: &Mailbox) -> Result<String, session::Error> {
        if !self.settings.compact.enabled {
            return Ok(OFF.into());
        }
        if !self.settings.features.micro_compact {
            return Ok("Clearing old results is off (`features.micro_compact`, or DISABLE_MICROCOMPACT).".into());
        }
        let toolbox = self.toolbox.clone();
        let clearable = move |tool: &str| toolbox.get(tool).is_some_and(|tool| tool.manners().clearable);
        let trigger = compact::micro::Trigger::Asked { target };
        let plan = compact::micro::plan(
            self.conversation.context(),
            self.compaction.driver.terms(self.conversation.session.store(), &clearable),
            trigger,
        );
        let Some(plan) = plan else { return Ok("There are no old tool results to clear.".into()) };
        let cleared = apply::clear(&mut self.conversation.session, &plan)?;
        self.tell_cleared(cleared, mailbox).await?;
        let info = self.usage_info();
        mailbox.emit(Event::Usage(info)).await;
        let kept = match cleared.kept {
            0 => String::new(),
            kept => format!(" {kept} were kept because their files could not be written."),
        };
        Ok(format!("Cleared {} tool results, about {} tokens.{kept}", cleared.results, short(cleared.tokens)))
    }

    /// `/compact undo`: takes the last boundary back, if the conversation still fits then.
    ///
    /// # Errors
    /// The log cannot be read or written.
    pub async fn compact_undo(&mut self, mailbox: &Mailbox) -> Result<String, session::Error> {
        self.weigh_overhead();
        if !self.settings.compact.enabled {
            return Ok(OFF.into());
        }
        let Some(seq) = self.conversation.session.last_boundary() else {
            return Ok("No compaction to undo.".into());
        };
        let undone = EntryKind::BoundaryUndone { seq };
        let preview = self.conversation.session.preview(&undone)?;
        let (after, marks) = (self.compaction.driver.used(&preview), *self.compaction.driver.marks());
        if after >= marks.blocking {
            return Ok(format!(
                "The compaction stays: without it the conversation would have about {} tokens, and the limit is {}.",
                short(after),
                short(marks.blocking)
            ));
        }
        self.conversation.append(undone)?;
        self.conversation.forget_read();
        self.compaction.driver.undone();
        let info = self.usage_info();
        mailbox.emit(Event::Usage(info)).await;
        Ok(format!("Compaction undone. The conversation is back to about {} tokens.", short(after)))
    }

    /// Notes what an extraction of session notes cost that has ended.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn collect_notes(&mut self) -> Result<(), session::Error> {
        self.compaction.notes.collect(&mut self.conversation.session)
    }

    /// Ends a running extraction and notes what it cost: the session ends.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn end_notes(&mut self) -> Result<(), session::Error> {
        self.compaction.notes.end(&mut self.conversation.session)
    }

    /// Takes note of what the provider counted of the request that was sent last.
    pub(super) fn counted(&mut self, usage: &crate::message::Usage) {
        self.compaction.driver.answered(self.compaction.sent, usage);
    }
}

/// What `/compact` says when it is switched off.
const OFF: &str = "Compaction is off (`compact.enabled`, or DISABLE_COMPACT).";

/// Estimate of what a tool's definition takes.
pub(super) fn weight(spec: &ToolSpec) -> u64 {
    tokens::text(&spec.name) + tokens::text(&spec.description) + tokens::text(&spec.schema.to_string())
}

fn millis(elapsed: std::time::Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
