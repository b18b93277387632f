//! Keeps the conversation within the model's window: the driver that decides, and what it is told.

pub(super) mod extraction;
mod fresh_context;
mod restore;
mod rounds;
mod tiers;
mod window;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::extraction::Extraction;
pub(super) use self::tiers::{Attempt, Wish};
use super::mailbox::Mailbox;
use super::skill_runs::Runs;
use super::{Conversation, Model, Settings};
use crate::compact::{self, Driver, Search, Window, apply};
use crate::message::{Attachment, CallId, Kind, Message, Usage, tokens};
use crate::protocol::report::Freed;
use crate::protocol::{self, Event, Fullness, Trigger};
use crate::provider::{self, ToolSpec};
use crate::session::context::{CLEARED, Count, Held};
use crate::session::entry::EntryKind;
use crate::session::{self, Context, recall};
use crate::stdx::text::short;
use crate::tools::Toolbox;

/// How long providers keep a prefix in their cache after it was last used, unless more is paid for.
const CACHED: Duration = Duration::from_secs(5 * 60);

/// Compaction of the agent's session.
pub struct Compaction {
    pub(super) driver: Driver,
    /// What the driver's overhead was last reckoned from.
    overhead: Option<(Arc<str>, Arc<[ToolSpec]>)>,
    /// The count of the context that was sent last.
    sent: Count,
    /// When that was.
    sent_at: Option<Instant>,
    pub notes: Extraction,
}

impl Compaction {
    pub(super) fn new(settings: &Settings, model: &Model) -> Compaction {
        let window = window_of(settings, model);
        let driver = Driver::new(settings.compact.clone(), settings.features, window);
        Compaction { driver, overhead: None, sent: Count::default(), sent_at: None, notes: Extraction::default() }
    }

    /// Whether the provider's cache has nothing of the conversation any more. What another process sent may still be in it.
    fn is_cold(&self, now: Instant) -> bool {
        self.sent_at.is_some_and(|sent| now.duration_since(sent) >= CACHED)
    }

    /// The call whose result is cleared next.
    pub(super) fn frontier(&self, conversation: &Conversation, toolbox: &Toolbox) -> Option<CallId> {
        let clearable = |tool: &str| toolbox.get(tool).is_some_and(|tool| tool.manners().clearable);
        let terms = self.driver.terms(conversation.session.store(), &clearable);
        compact::micro::frontier(conversation.context(), terms)
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

    /// What the user should know of the settings at the start.
    pub fn warning(&self) -> Option<String> {
        let (marks, settings) = (self.driver.marks(), self.driver.settings());
        let early = settings.enabled && settings.auto && marks.blocking < marks.tiers;
        early.then(|| {
            format!(
                "`compact.blocking_limit` ({} tokens) is below the compaction threshold ({}): old content is trimmed there instead of summarized.",
                short(marks.blocking),
                short(marks.tiers)
            )
        })
    }

    /// Takes over what the settings say of compaction now.
    pub(super) fn configure(&mut self, settings: &Settings, model: &Model) {
        self.driver.set_settings(settings.compact.clone(), settings.features, window_of(settings, model));
        // The meter is a new one.
        self.overhead = None;
    }

    /// Most tokens of an answer to the conversation with this much behind it.
    pub(super) fn room_for_output(&self, context: &Context, behind: tokens::Load, most: u32) -> u32 {
        most.min(u32::try_from(self.driver.room_for_output(context, behind)).unwrap_or(u32::MAX))
    }

    /// Another model counts system prompt and tools in its own way.
    pub(super) fn forget_overhead(&mut self) {
        self.overhead = None;
    }

    /// Reckons what goes with every request beside the messages, and what of it searches the log, when that changed.
    pub(super) fn weigh_overhead(&mut self, system: &Arc<str>, specs: &Arc<[ToolSpec]>) {
        let same =
            self.overhead.as_ref().is_some_and(|(old, known)| Arc::ptr_eq(old, system) && Arc::ptr_eq(known, specs));
        if !same {
            let text = tokens::text(system) + specs.iter().map(weight).sum::<u64>();
            self.driver.meter.set_overhead(tokens::Load { text, images: 0 });
            let search = specs.iter().any(|spec| spec.name == recall::TOOL);
            self.driver.set_search(if search { Search::Recall } else { Search::None });
            self.overhead = Some((system.clone(), specs.clone()));
        }
    }

    /// The model that writes summaries, where it is another one than that of the conversation.
    ///
    /// # Errors
    /// It cannot be asked; the text names the fix.
    pub(super) fn summarizer(&self, models: &Runs, model: &Model) -> Result<Option<Model>, String> {
        let settings = self.driver.settings();
        let Some(id) = &settings.summarization_model else { return Ok(None) };
        let name = match &settings.summarization_model_provider_id {
            Some(provider) => format!("{provider}/{id}"),
            None => id.clone(),
        };
        (models.settings.models)(&name).map(|(other, _)| Some(other).filter(|other| other.name() != model.name()))
    }

    /// Takes note of what the provider counted of the request that was sent last.
    pub(super) fn counted(&mut self, usage: &Usage) {
        self.driver.answered(self.sent, usage);
    }

    /// After a request that the provider found too long: whether it is worth another try.
    pub(super) async fn recover(&mut self, context: &Context, error: &provider::Error, mailbox: &Mailbox) -> bool {
        let provider::Error::ContextTooLong { limit, .. } = error else { return false };
        if !self.driver.too_long(context, *limit) {
            return false;
        }
        let text = "The provider rejected the conversation as too long. Compacting it and trying again.";
        mailbox.emit(Event::Notice { text: text.into() }).await;
        true
    }

    /// Two automatic runs close together: says what fills the window.
    async fn tell_close_runs(&mut self, context: &Context, mailbox: &Mailbox) {
        if !self.driver.ran() {
            return;
        }
        let mut large: Vec<(u64, String)> = context
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

    /// Why nothing is summarized when the user asks for it.
    pub(super) fn refuses(&self, context: &Context) -> Option<&'static str> {
        let (settings, count) = (self.driver.settings(), compact::rounds::spoken(context));
        match count {
            _ if !settings.enabled => Some(OFF),
            0 => Some("No messages to compact."),
            count if count < settings.min_messages_before_compact => Some("Not enough messages to compact."),
            _ => None,
        }
    }

    /// Clears old results now. The inner error says why nothing changed.
    pub(super) async fn micro(
        &mut self,
        target: Option<u64>,
        conversation: &mut Conversation,
        toolbox: &Toolbox,
        mailbox: &Mailbox,
    ) -> Result<Result<Freed, String>, session::Error> {
        if !self.driver.settings().enabled {
            return Ok(Err(OFF.into()));
        }
        if !self.driver.features().micro_compact {
            return Ok(Err("Clearing old results is off (`features.micro_compact`, or DISABLE_MICROCOMPACT).".into()));
        }
        let clearable = |tool: &str| toolbox.get(tool).is_some_and(|tool| tool.manners().clearable);
        let trigger = compact::micro::Trigger::Asked { target };
        let terms = self.driver.terms(conversation.session.store(), &clearable);
        let Some(plan) = compact::micro::plan(conversation.context(), terms, trigger) else {
            return Ok(Err("There are no old tool results to clear.".into()));
        };
        let cleared = apply::clear(&mut conversation.session, &plan)?;
        tell_cleared(cleared, (Trigger::Manual, self.driver.search()), conversation, mailbox).await?;
        let [results, kept] = [cleared.results, cleared.kept].map(|count| count as u64);
        Ok(Ok(Freed::Cleared { results, tokens: cleared.tokens, kept }))
    }

    /// Takes the last boundary back, if the conversation still fits then. The inner error says why nothing changed.
    pub(super) fn undo(
        &mut self,
        of: Undo,
        conversation: &mut Conversation,
    ) -> Result<Result<Freed, String>, session::Error> {
        if !self.driver.settings().enabled {
            return Ok(Err(OFF.into()));
        }
        let Some(seq) = conversation.session.last_boundary() else {
            return Ok(Err("No compaction to undo.".into()));
        };
        let entry = conversation.session.entry(seq);
        let plan = entry.is_some_and(
            |entry| matches!(entry.kind, EntryKind::CompactBoundary(boundary) if boundary.trigger == Trigger::Plan),
        );
        match (of, plan) {
            (Undo::Compaction, true) => {
                return Ok(Err(
                    "The last cut is the fresh start with the approved plan, not a compaction. `/compact undo \
                               plan` takes it back."
                        .into(),
                ));
            }
            (Undo::Plan, false) => return Ok(Err("No fresh start with a plan to undo.".into())),
            _ => {}
        }
        let undone = EntryKind::BoundaryUndone { seq };
        let preview = conversation.session.preview(&undone)?;
        let (after, blocking) = (self.driver.used(&preview), self.driver.marks().blocking);
        if after >= blocking {
            return Ok(Err(format!(
                "The compaction stays: without it the conversation would have about {} tokens, and the limit is {}.",
                short(after),
                short(blocking)
            )));
        }
        conversation.append(undone)?;
        conversation.forget_read();
        self.driver.undone();
        Ok(Ok(Freed::Undone { tokens: after, plan }))
    }
}

/// What is to be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undo {
    Compaction,
    /// The fresh start with an approved plan.
    Plan,
}

/// What is known of a model's window.
pub(super) fn window_of(settings: &Settings, model: &Model) -> Window {
    Window::of(model.spec.window, model.spec.known, model.spec.max_output, &settings.compact)
}

/// Tells the model and the front ends that old results were cleared.
async fn tell_cleared(
    cleared: apply::Cleared,
    (trigger, search): (Trigger, Search),
    conversation: &mut Conversation,
    mailbox: &Mailbox,
) -> Result<(), session::Error> {
    if cleared.results == 0 {
        return Ok(());
    }
    // One reminder stands for all clearings: the projection drops the one before it.
    let whole = |held: &Held<'_>| held.result.text().starts_with(CLEARED);
    let (were, file) = match conversation.context().results().filter(whole).count() {
        1 => ("1 older tool result was".to_owned(), "It says where its content was saved"),
        count => (format!("{count} older tool results were"), "Each one says where its content was saved"),
    };
    let search = if search == Search::Recall { " search it with Recall," } else { "" };
    let text = format!(
        "{were} cleared to free space. {file}; read the file,{search} or run the call again, if you still need it."
    );
    conversation.push(Message::attachment(Attachment::Cleared, &text), mailbox).await?;
    mailbox
        .emit(Event::Compaction(protocol::Compaction::MicroApplied {
            trigger,
            removed_results: cleared.results as u64,
            saved_tokens: cleared.tokens,
        }))
        .await;
    Ok(())
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
