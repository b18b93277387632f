//! The model tiers: what proposes a summary. The first one that can proposes; `room` judges and commits.

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
use crate::session::entry::Boundary;

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
        let mut spent = Usage::default();
        let request = self.summary_request(wish);
        let tries = if self.settings.features.compact_streaming_retry {
            self.settings.compact.max_summary_retries + 1
        } else {
            1
        };
        let mut answered = Err((FailureReason::NoSummary, "no summary was asked for".to_owned()));
        for _ in 0..tries {
            answered = self.ask_summary(request.clone(), &mut spent, desk, cancel).await;
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
        let mut opening = self.reopening().await;
        let context = self.session.context();
        let message = Arc::new(summary::message(&text, wish.trigger));
        let brought = opening.iter().chain([&message]).map(|message| tokens::message(message)).sum();
        let (keep_from, words) = candidate::cut(context, &self.room.driver, brought);
        opening.extend(summary::history(context, keep_from, words));
        let boundary = Boundary {
            trigger: wish.trigger,
            tier: "full".into(),
            keep_from,
            opening,
            summary: Some(message),
            ..Boundary::default()
        };
        Ok(Proposal::Candidate(Box::new(Candidate { boundary, spent, restored: Default::default() })))
    }

    /// The request that the turn would send, with the instruction as its last message: the cached prefix serves it.
    fn summary_request(&mut self, wish: &Wish) -> Request {
        let own = self.settings.compact.compact_prompt.clone();
        let text = summary::instruction(own.as_deref(), wish.instructions.as_deref());
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
