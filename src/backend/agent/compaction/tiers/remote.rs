//! The tier of the provider: its server compacts the conversation into items that only it can read.

use std::sync::Arc;

use super::{Attempt, Quotes};
use crate::agent::{Agent, prompt};
use crate::compact::{Candidate, Ration, candidate};
use crate::message::{Block, Kind, Message, Origin, Usage};
use crate::protocol::Compaction;
use crate::provider::{Purpose, Request};
use crate::session;
use crate::session::entry::Seq;

/// Name of the tier.
const TIER: &str = "remote";

/// What another provider reads in the place of the items.
const OPAQUE: &str = "An earlier part of this conversation was compacted by its provider, in a form that no other model \
                      can read. What the user said in it follows; read the files for the rest.";

impl Attempt<'_> {
    /// What the provider's server makes of the conversation; `None` if it does not offer that, refuses, or saves too little.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn propose_remote(&mut self) -> Result<Option<Candidate>, session::Error> {
        if !self.agent.settings.features.remote_compaction
            || self.wish.instructions.is_some()
            || self.cancel.is_cancelled()
        {
            return Ok(None);
        }
        // How long the provider's items are is not known yet.
        let Agent { conversation, compaction, policy, settings, .. } = &*self.agent;
        let most = compaction.restored((Seq::MAX, &[], 100), conversation, policy, settings).tokens();
        let keep_from = candidate::cut(conversation.context(), &compaction.driver, most, Ration::WHOLE);
        let request = self.agent.request();
        let messages = self.leaving(keep_from, request.messages);
        if messages.is_empty() {
            return Ok(None);
        }
        let request = Request { messages, purpose: Purpose::Summary, ..request };
        let Some(asked) = self.agent.model.provider.compact(Arc::new(request)) else { return Ok(None) };
        let phase = "Compacting at the provider…".to_owned();
        self.tell(Compaction::Progress { phase, received: 0 }).await;
        let answer = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Ok(None),
            answer = asked => answer,
        };
        let compacted = match answer {
            Ok(compacted) => compacted,
            Err(error) => {
                tracing::info!(%error, "the provider did not compact");
                return Ok(None);
            }
        };
        let spent = compacted.usage;
        if spent != Usage::default() {
            self.agent.spend("compaction at the provider", spent)?;
        }
        let quotes = candidate::quotes(
            self.agent.conversation.context(),
            &self.agent.compaction.driver,
            keep_from,
            0,
            Ration::WHOLE,
        )
        .map(|message| message.text())
        .unwrap_or_default();
        let text = format!("{OPAQUE}\n\n{quotes}").trim_end().to_owned();
        let summary = Message {
            kind: Kind::CompactSummary,
            user_visible: false,
            blocks: vec![Block::Text { text, wire: Some(compacted.wire) }],
            // Nobody else gets the items to see.
            origin: Some(Origin {
                provider: self.agent.model.provider_name.clone(),
                model: self.agent.model.id.clone(),
            }),
            ..Message::prompt("")
        };
        let (opening, _) = self.brings(&summary).await;
        let summary = Arc::new(summary);
        let candidate = self
            .fit(|attempt, ration| attempt.candidate((TIER, keep_from), (&opening, &summary), Quotes::Summary, ration));
        let candidate = Candidate { spent, ..candidate };
        Ok(match self.agent.compaction.driver.judge(self.agent.conversation.context(), candidate.clone()) {
            Ok(_) => Some(candidate),
            Err(why) => {
                tracing::info!(%why, "the provider's compaction is not used");
                None
            }
        })
    }

    /// Those of a request's messages that leave with a boundary. The opening is written again in any case.
    fn leaving(&self, keep_from: Seq, messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        let context = self.agent.conversation.context();
        let kept = context.shown().find(|shown| !shown.lead && shown.seq >= keep_from).map(|shown| shown.message);
        // The request's messages may be copies; those of the projection are the same ones in the same places.
        let projected = context.messages();
        let cut = kept
            .and_then(|kept| projected.iter().position(|message| Arc::ptr_eq(message, kept)))
            .unwrap_or(messages.len());
        messages.into_iter().take(cut).filter(|message| !prompt::opens(message)).collect()
    }
}
