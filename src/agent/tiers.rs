//! The model tiers: what proposes a summary. The first one that can proposes; `room` judges and commits.

mod notes;
mod remote;

use std::sync::Arc;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::desk::Desk;
use crate::compact::{Candidate, candidate, summary};
use crate::message::{Block, Kind, Message, Origin, Usage, tokens};
use crate::protocol::{Compaction, Event, FailureReason, Trigger};
use crate::provider::reply::Fold;
use crate::provider::{Error, Purpose, Request, StreamEvent};
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

/// Name of the tier that asks the model for a summary.
const FULL: &str = "full";

/// Where the user's own earlier words stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// Before the summary.
    Opening,
    /// In the summary itself.
    Summary,
}

/// How one request for a summary ended.
type Answered = Result<Message, (FailureReason, String)>;

impl Agent {
    /// Asks the tiers in turn.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn propose(
        &mut self,
        wish: &Wish,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Result<Proposal, session::Error> {
        if let Some(candidate) = self.propose_notes(wish, cancel).await? {
            return Ok(Proposal::Candidate(Box::new(candidate)));
        }
        if let Some(candidate) = self.propose_remote(wish, desk, cancel).await? {
            return Ok(Proposal::Candidate(Box::new(candidate)));
        }
        self.propose_full(wish, desk, cancel).await
    }

    /// The full tier: the model writes a summary.
    async fn propose_full(
        &mut self,
        wish: &Wish,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Result<Proposal, session::Error> {
        let mut spent = Usage::default();
        let mut request = self.summary_request(wish);
        let tries = if self.settings.features.compact_streaming_retry {
            self.settings.compact.max_summary_retries + 1
        } else {
            1
        };
        let mut answered = Err((FailureReason::NoSummary, "no summary was asked for".to_owned()));
        for _ in 0..tries {
            answered = self.ask_summary(request.clone(), &mut spent, desk, cancel).await;
            while matches!(answered, Err((FailureReason::PromptTooLong, _)))
                && let Some(messages) = summary::without_oldest(&request.messages)
            {
                request.messages = messages;
                answered = self.ask_summary(request.clone(), &mut spent, desk, cancel).await;
            }
            // Tools are there for the cache's sake alone; an answer that calls one is asked again without.
            if answered.as_ref().is_ok_and(|reply| reply.calls().next().is_some()) {
                let bare = Request { tools: Arc::new([]), ..request.clone() };
                answered = self.ask_summary(bare, &mut spent, desk, cancel).await;
            }
            let again = match &answered {
                Ok(reply) => summary::read(reply).is_err(),
                Err((reason, _)) => *reason == FailureReason::ApiError,
            };
            if !again {
                break;
            }
        }
        if spent != Usage::default() {
            self.spend("summary", spent)?;
        }
        let text = match answered.and_then(|reply| summary::read(&reply)) {
            Ok(text) => text,
            Err((reason, text)) => return Ok(Proposal::Failed { reason, text }),
        };
        let summary = summary::message(&text, wish.trigger);
        let (opening, brought) = self.brings(&summary).await;
        let (keep_from, _) = candidate::cut(self.session.context(), &self.room.driver, brought);
        let candidate = self.candidate(FULL, wish, keep_from, opening, summary, Quotes::Opening);
        Ok(Proposal::Candidate(Box::new(Candidate { spent, ..candidate })))
    }

    /// What stands before a summary, and what both weigh with what is put back at most.
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
        let restored = self.restored(keep_from);
        if quotes == Quotes::Opening {
            opening.extend(self.quotes(keep_from, weight(&opening, &summary) + restored.tokens()));
        }
        let mut boundary = Boundary {
            trigger: wish.trigger,
            tier: tier.into(),
            keep_from,
            opening,
            summary: Some(Arc::new(summary)),
            ..Boundary::default()
        };
        let restored = restored.join(&mut boundary);
        Candidate { boundary, spent: Usage::default(), restored }
    }

    /// The user's own words that leave with a boundary, as many as fit beside so many tokens that it brings along.
    fn quotes(&self, keep_from: Seq, brought: u64) -> Option<Arc<Message>> {
        let context = self.session.context();
        summary::history(context, keep_from, candidate::words(context, &self.room.driver, brought, keep_from))
    }

    /// The request that the turn would send, with the instruction as its last message: the cached prefix serves it.
    fn summary_request(&mut self, wish: &Wish) -> Request {
        let own = self.settings.compact.compact_prompt.clone();
        let mut text = summary::instruction(own.as_deref(), wish.instructions.as_deref());
        let most = self.room.driver.limits().summary;
        if most < self.settings.compact.max_summary_tokens {
            text = format!("{text}\n\n{}", summary::length(most));
        }
        let request = self.request();
        let mut messages = request.messages;
        messages.push(Arc::new(Message {
            kind: Kind::Attachment,
            user_visible: false,
            blocks: vec![Block::text(text)],
            ..Message::prompt("")
        }));
        Request { messages, purpose: Purpose::Summary, ..request }
    }

    async fn ask_summary(
        &self,
        request: Request,
        spent: &mut Usage,
        desk: &Desk,
        cancel: &CancellationToken,
    ) -> Answered {
        let origin = Origin { provider: self.model.provider_name.clone(), model: request.model.clone() };
        let mut fold = Fold::new(0);
        let mut stream = self.model.provider.stream(Arc::new(request));
        let (mut bytes, mut told, mut ended) = (0u64, 0, false);
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err((FailureReason::Interrupted, "it was interrupted".into())),
                event = stream.next() => event,
            };
            match event {
                Some(Ok(event)) => {
                    if let StreamEvent::Text { text, .. } | StreamEvent::Thinking { text, .. } = &event {
                        bytes += text.len() as u64;
                    }
                    ended |= matches!(event, StreamEvent::End(_));
                    fold.push(event);
                }
                Some(Err(error)) => {
                    spent.add(&fold.usage().unwrap_or_default());
                    let reason = match error {
                        Error::ContextTooLong { .. } => FailureReason::PromptTooLong,
                        _ => FailureReason::ApiError,
                    };
                    return Err((reason, error.to_string()));
                }
                None => break,
            }
            let received = bytes / 4;
            if received >= told + 50 {
                told = received;
                let phase = "Summarising".to_owned();
                desk.emit(Event::Compaction(Compaction::Progress { phase, received })).await;
            }
        }
        spent.add(&fold.usage().unwrap_or_default());
        if !ended {
            return Err((FailureReason::ApiError, Error::EndedEarly.to_string()));
        }
        Ok(fold.finish(origin))
    }
}

fn weight(opening: &[Arc<Message>], summary: &Message) -> u64 {
    opening.iter().map(|message| tokens::message(message)).sum::<u64>() + tokens::message(summary)
}
