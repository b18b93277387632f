//! The first tier: the notes that were kept in the background stand for what they cover. Asks no model.

use super::{Attempt, Quotes};
use crate::agent::Agent;
use crate::agent::compaction::extraction;
use crate::compact::memory::{self, TIER, Unusable};
use std::sync::Arc;

use crate::compact::{Candidate, Ration, candidate, summary};
use crate::session;
use crate::session::entry::EntryKind;

impl Attempt<'_> {
    /// The notes as a summary; none when another tier has to be asked.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn propose_notes(&mut self) -> Result<Option<Candidate>, session::Error> {
        let features = self.agent.settings.features;
        // What the user wants of the summary is nothing that the notes could heed.
        if !(features.session_memory && features.session_memory_compact) || self.wish.instructions.is_some() {
            return Ok(None);
        }
        let Agent { conversation, compaction, settings, clock, .. } = &mut *self.agent;
        compaction.notes.wait(&mut conversation.session, &settings.compact, clock(), self.cancel).await?;
        match self.noted().await {
            Ok(candidate) => Ok(Some(candidate)),
            Err(why) => {
                tracing::info!(%why, "the session notes cannot be used as a summary");
                Ok(None)
            }
        }
    }

    async fn noted(&mut self) -> Result<Candidate, Unusable> {
        let (text, mark) =
            extraction::notes(&self.agent.conversation.session).load(self.agent.compaction.driver.limits())?;
        let boundary =
            self.agent.conversation.session.last_boundary().and_then(|seq| self.agent.conversation.session.entry(seq));
        let noted = boundary
            .is_some_and(|entry| matches!(entry.kind, EntryKind::CompactBoundary(boundary) if boundary.tier == TIER));
        if self.agent.conversation.session.entry(mark.seq).is_none_or(|entry| entry.id != mark.id) {
            return Err(Unusable::Unmarked);
        }
        let summary =
            summary::message(&memory::summary(&text), self.wish.trigger, self.agent.compaction.driver.search());
        let (opening, brought) = self.brings(&summary).await;
        let context = self.agent.conversation.context();
        let recent = candidate::cut(context, &self.agent.compaction.driver, brought, Ration::WHOLE);
        let keep_from = memory::keep_from(context, mark.seq, noted, recent).ok_or(Unusable::Unmarked)?;
        let summary = Arc::new(summary);
        let candidate = self.fit(|attempt, ration| {
            let summary = ration.summary(&summary, attempt.agent.compaction.driver.limits());
            attempt.candidate((TIER, keep_from), (&opening, &summary), Quotes::Opening, ration)
        });
        memory::check(self.agent.conversation.context(), &self.agent.compaction.driver, candidate)
    }
}
