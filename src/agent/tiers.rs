//! The model tiers: what proposes a summary. The first one that can proposes; `room` judges and commits.

mod full;
mod notes;
mod remote;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::mailbox::Mailbox;
use crate::compact::{Candidate, candidate, digest, summary};
use crate::message::{Message, Usage, tokens};
use crate::protocol::{FailureReason, Trigger};
use crate::session;
use crate::session::entry::{Boundary, Seq};

/// What a compaction was asked for with.
pub(super) struct Wish {
    pub(super) trigger: Trigger,
    pub(super) instructions: Option<String>,
}

/// What the tiers came to.
pub(super) enum Proposal {
    Candidate(Box<Candidate>),
    Failed { reason: FailureReason, text: String },
}

/// Where the user's own earlier words stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// Before the summary.
    Opening,
    /// In the summary itself.
    Summary,
}

impl Agent {
    /// Asks the tiers in turn.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn propose(
        &mut self,
        wish: &Wish,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<Proposal, session::Error> {
        if let Some(candidate) = self.propose_notes(wish, cancel).await? {
            return Ok(Proposal::Candidate(Box::new(candidate)));
        }
        if let Some(candidate) = self.propose_remote(wish, mailbox, cancel).await? {
            return Ok(Proposal::Candidate(Box::new(candidate)));
        }
        self.propose_full(wish, mailbox, cancel).await
    }

    /// What is before a summary, and what both weigh with what is put back at most.
    async fn brings(&mut self, summary: &Message) -> (Vec<Arc<Message>>, u64) {
        let opening = self.reopening().await;
        let brought = weight(&opening, summary) + self.most_restored();
        (opening, brought)
    }

    /// A boundary as every tier makes it around its summary.
    fn candidate(
        &self,
        tier: &str,
        wish: &Wish,
        keep_from: Seq,
        mut opening: Vec<Arc<Message>>,
        summary: Message,
        quotes: Quotes,
    ) -> Candidate {
        let settings = &self.settings.compact;
        let archived = digest::plan_from(self.session.context(), keep_from, settings.keep_recent_results)
            .map(|plan| plan.archived(settings.tool_output.heuristic_chars));
        let restored = self.restored(keep_from, archived.as_ref().map_or(&[], |archived| &archived.calls));
        if quotes == Quotes::Opening {
            opening.extend(self.quotes(keep_from, weight(&opening, &summary) + restored.tokens()));
        }
        let mut boundary = Boundary {
            trigger: wish.trigger,
            tier: tier.into(),
            keep_from,
            opening,
            summary: Some(Arc::new(summary)),
            archived,
            ..Boundary::default()
        };
        let restored = restored.join(&mut boundary);
        Candidate { boundary, spent: Usage::default(), restored }
    }

    /// The user's own words that leave with a boundary, as many as fit beside so many tokens that it brings along.
    fn quotes(&self, keep_from: Seq, brought: u64) -> Option<Arc<Message>> {
        let context = self.session.context();
        summary::history(context, keep_from, candidate::words(context, &self.compaction.driver, brought, keep_from))
    }
}

fn weight(opening: &[Arc<Message>], summary: &Message) -> u64 {
    opening.iter().map(|message| tokens::message(message)).sum::<u64>() + tokens::message(summary)
}
