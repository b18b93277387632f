//! The first tier: the notes that were kept in the background stand for what they cover. Asks no model.

use tokio_util::sync::CancellationToken;

use super::{Quotes, Wish};
use crate::agent::{Agent, extraction};
use crate::compact::memory::{self, TIER, Unusable};
use crate::compact::{Candidate, candidate, summary};
use crate::session;
use crate::session::entry::EntryKind;

impl Agent {
    /// The notes as a summary; none when another tier has to be asked.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn propose_notes(
        &mut self,
        wish: &Wish,
        cancel: &CancellationToken,
    ) -> Result<Option<Candidate>, session::Error> {
        let features = self.settings.features;
        // What the user wants of the summary is nothing that the notes could heed.
        if !(features.session_memory && features.session_memory_compact) || wish.instructions.is_some() {
            return Ok(None);
        }
        self.await_notes(cancel).await?;
        match self.noted(wish).await {
            Ok(candidate) => Ok(Some(candidate)),
            Err(why) => {
                tracing::info!(%why, "the session notes cannot be used as a summary");
                Ok(None)
            }
        }
    }

    async fn noted(&mut self, wish: &Wish) -> Result<Candidate, Unusable> {
        let (text, mark) = extraction::notes(&self.session).load(self.compaction.driver.limits())?;
        let boundary = self.session.last_boundary().and_then(|seq| self.session.entry(seq));
        let noted = boundary
            .is_some_and(|entry| matches!(entry.kind, EntryKind::CompactBoundary(boundary) if boundary.tier == TIER));
        if self.session.entry(mark.seq).is_none_or(|entry| entry.id != mark.id) {
            return Err(Unusable::Unmarked);
        }
        let summary = summary::message(&memory::summary(&text), wish.trigger);
        let (opening, brought) = self.brings(&summary).await;
        let context = self.session.context();
        let (recent, _) = candidate::cut(context, &self.compaction.driver, brought);
        let keep_from = memory::keep_from(context, mark.seq, noted, recent).ok_or(Unusable::Unmarked)?;
        let candidate = self.candidate(TIER, wish, keep_from, opening, summary, Quotes::Opening);
        memory::check(self.session.context(), &self.compaction.driver, candidate)
    }
}
