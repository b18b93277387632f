//! What a compaction puts back from disk and session, and the hooks around it.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::mailbox::Mailbox;
use super::tiers::Wish;
use super::{Agent, Reminders, hooking, plan};
use crate::compact::restore::{self, Found, Restored, Sources};
use crate::hooks::{Event as Hook, Occasion, StartSource, Trigger as HookTrigger};
use crate::message::tokens::Load;
use crate::message::{CallId, tokens};
use crate::permission::{Access, Behavior};
use crate::protocol::{Compaction, Event, FailureReason, Receipt, Trigger};
use crate::session;
use crate::session::entry::{Boundary, Seq};

/// Bytes of a file beyond which it cannot come under any limit in tokens that makes sense.
const BYTES_PER_TOKEN: u64 = 16;

impl Agent {
    /// Tokens that are put back if no message stays.
    pub(super) fn most_restored(&self) -> u64 {
        self.restored(Seq::MAX, &[]).tokens()
    }

    /// What is put back beside messages from `keep_from` on, of whose results these are archived.
    pub(super) fn restored(&self, keep_from: Seq, archived: &[CallId]) -> Restored {
        // Without reminders there are no attachments at all.
        if self.settings.reminders == Reminders::Off {
            return Restored::default();
        }
        let (driver, context) = (&self.compaction.driver, self.session.context());
        // At most a third of what there is, or a short conversation would grow.
        let all: Load = context.shown().map(|shown| shown.load).sum();
        let counted = driver.used(context).saturating_sub(driver.meter.request(Load::default()));
        let budget = all.total().max(counted) / 3;
        let memory = &self.settings.memory_names;
        let paths =
            restore::reads(context, keep_from, archived).into_iter().filter(|path| !restore::excluded(path, memory));
        let sources = Sources {
            files: paths
                .filter(|path| !self.is_plan(path))
                .filter_map(|path| self.found(&path))
                .take(driver.settings().restore.max_files)
                .collect(),
            todos: context.todos(),
            plan: plan::restored(self, driver.limits().plan),
            skills: &self.session.facts().invoked,
        };
        restore::choose(sources, context, keep_from, driver.settings(), driver.limits(), budget)
    }

    fn is_plan(&self, path: &Path) -> bool {
        self.plan_file().is_some_and(|plan| plan == path)
    }

    /// The file as it is now; none where it is gone, no text, or may not be read without a question anymore.
    fn found(&self, path: &Path) -> Option<Found> {
        let access = Access::Read { path: path.to_owned() };
        let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        if self.decide("Read", &access).behavior != Behavior::Allow {
            return None;
        }
        let most = self.compaction.driver.limits().file.saturating_mul(BYTES_PER_TOKEN);
        let text = match meta.len() <= most {
            true => Some(String::from_utf8(std::fs::read(path).ok()?).ok()?),
            false => None,
        };
        Some(Found { path: path.to_owned(), text })
    }

    /// Says that the hooks of a compaction are waited for.
    async fn tell_hooks(&self, event: Hook, mailbox: &Mailbox) {
        if self.hooking.hooks.listens(event) {
            let phase = format!("Running {event} hooks…");
            mailbox.emit(Event::Compaction(Compaction::Progress { phase, received: 0 })).await;
        }
    }

    /// Lets PreCompact hooks forbid a compaction, or add to its instructions.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn before_compaction(
        &mut self,
        wish: Wish,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Result<Wish, (FailureReason, String)>, session::Error> {
        let Some(trigger) = of_hooks(wish.trigger) else { return Ok(Ok(wish)) };
        self.tell_hooks(Hook::PreCompact, mailbox).await;
        let own = wish.instructions.as_deref().unwrap_or_default();
        let Some(outcome) = self.fire(Occasion::pre_compact(trigger, own), mailbox, cancel).await? else {
            return Ok(Err((FailureReason::Interrupted, "it was interrupted".into())));
        };
        if let Some(reason) = outcome.block.or(outcome.stop) {
            let text = format!("a PreCompact hook forbids compaction: {reason}");
            return Ok(Err((FailureReason::Blocked, text)));
        }
        let all: Vec<String> = wish.instructions.into_iter().chain(outcome.context).collect();
        let instructions = (!all.is_empty()).then(|| all.join("\n\n"));
        Ok(Ok(Wish { instructions, ..wish }))
    }

    /// SessionStart hooks run once a tier passed its checks; what they print joins the context. False when the user
    /// interrupted them.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn hooks_join(
        &mut self,
        boundary: &mut Boundary,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<bool, session::Error> {
        self.tell_hooks(Hook::SessionStart, mailbox).await;
        let occasion = Occasion::session_start(StartSource::Compact);
        let Some(outcome) = self.fire(occasion, mailbox, cancel).await? else { return Ok(false) };
        if let Some(reason) = outcome.stop.filter(|reason| !reason.is_empty()) {
            mailbox.emit(Event::Notice { text: reason }).await;
        }
        if outcome.context.is_empty() {
            return Ok(true);
        }
        let most = self.compaction.driver.limits().hooks;
        let text = crate::compact::trim::shortened(&outcome.context.join("\n\n"), most);
        let message = hooking::told(Hook::SessionStart, &text);
        boundary.post_tokens += tokens::message(&message);
        boundary.attachments.push(Arc::new(message));
        Ok(true)
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
        let Some(trigger) = of_hooks(receipt.trigger) else { return Ok(()) };
        let occasion = Occasion::post_compact(trigger, &receipt.tier, receipt.before, receipt.after);
        self.fire(occasion, mailbox, cancel).await.map(drop)
    }
}

fn of_hooks(trigger: Trigger) -> Option<HookTrigger> {
    match trigger {
        Trigger::Manual => Some(HookTrigger::Manual),
        Trigger::Auto => Some(HookTrigger::Auto),
        Trigger::Plan => None,
    }
}
