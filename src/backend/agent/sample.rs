//! One model call: streams the reply, logs it frame by frame, asks again when a try fails for no fault of ours.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::dispatch::take_word;
use super::turn::Turn;
use super::{Agent, budget, frozen};
use crate::hooks::Occasion;
use crate::message::{Message, Origin, Usage, tokens};
use crate::protocol::{Delta, Event, Thinking, UsageInfo};
use crate::provider::reply::Fold;
use crate::provider::{BlockStart, Error, Request, StreamEvent, retry};
use crate::session;
use crate::session::entry::EntryKind;

/// Text is logged and shown at most this often: sixty times a second.
const FRAME: Duration = Duration::from_millis(16);

/// How a model call ended.
pub(super) enum Sampled {
    Reply(Message),
    /// The user stopped it; what had arrived, if anything.
    Interrupted(Option<Message>),
    Failed(Error),
    /// A try failed, and no other may be paid for.
    OverBudget,
}

/// How one try ended.
enum Try {
    Reply(Message),
    Interrupted(Option<Message>),
    Failed {
        error: Error,
        /// Something of it was logged, and so shown.
        shown: bool,
        /// What the provider had counted until then.
        usage: Option<Usage>,
    },
}

impl Turn<'_> {
    /// Sends the request until it is answered, cannot be, or is cancelled.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn sample(&mut self, request: Arc<Request>) -> Result<Sampled, session::Error> {
        let Agent { prefix, conversation, model, frozen, settings, tools, toolbox, family, .. } = &mut *self.agent;
        // It looks at what the log has of the request before.
        let sent = prefix.sending(&request, &conversation.session, model);
        frozen.record(conversation, &request, || frozen::given(settings, tools, toolbox, &family.definitions))?;
        prefix.logged(conversation.append(EntryKind::Request(Arc::new(sent)))?);
        let mut attempt = 0;
        loop {
            let asked = Instant::now();
            let tried = self.stream_once(request.clone()).await?;
            self.agent.spending.turn.waited += asked.elapsed();
            let (error, shown, usage) = match tried {
                Try::Reply(message) => return Ok(Sampled::Reply(message)),
                Try::Interrupted(message) => return Ok(Sampled::Interrupted(message)),
                Try::Failed { error, shown, usage } => (error, shown, usage),
            };
            attempt += 1;
            tracing::warn!(attempt, %error, "model call failed");
            let delay = (attempt < self.agent.settings.max_tries)
                .then(|| retry::delay(attempt, &error, fastrand::f64()))
                .flatten();
            if shown {
                let reason = error.to_string();
                self.agent.conversation.append(EntryKind::ReplyDiscarded { reason: reason.clone() })?;
                self.mailbox.emit(Event::Delta(Delta::Discarded { reason })).await;
            }
            if let Some(usage) = usage {
                self.agent.spend("discarded answer", usage)?;
            }
            let Some(delay) = delay else { return Ok(Sampled::Failed(error)) };
            if budget::exhausted(self.agent, self.mailbox, self.cancel).await {
                return Ok(Sampled::OverBudget);
            }
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            self.mailbox
                .emit(Event::Retrying {
                    attempt,
                    of: self.agent.settings.max_tries.min(retry::tries(&error)),
                    delay_ms,
                    reason: error.to_string(),
                })
                .await;
            let wait = tokio::time::sleep(delay);
            tokio::pin!(wait);
            loop {
                tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => return Ok(Sampled::Interrupted(None)),
                    () = self.mailbox.changed() => self.agent.take_mode(self.mailbox).await?,
                    word = self.agent.tasks.said() => take_word(self.agent, word, self.mailbox).await?,
                    () = &mut wait => break,
                }
            }
        }
    }

    async fn stream_once(&mut self, request: Arc<Request>) -> Result<Try, session::Error> {
        let origin = Origin { provider: self.agent.model.provider_name.clone(), model: request.model.clone() };
        let mut fold = Fold::new(self.agent.conversation.session.next_call());
        let mut frame = Frame::default();
        let mut stream = self.agent.model.provider.stream(request);
        let (mut ended, mut error) = (false, None);
        loop {
            let due = frame.due();
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    drop(stream);
                    self.flush(&mut frame).await?;
                    return Ok(Try::Interrupted(fold.interrupted(origin)));
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.flush(&mut frame).await?,
                () = self.mailbox.changed() => self.agent.take_mode(self.mailbox).await?,
                word = self.agent.tasks.said() => take_word(self.agent, word, self.mailbox).await?,
                event = stream.next() => match event {
                    Some(Ok(event)) => {
                        ended |= matches!(event, StreamEvent::End(_));
                        frame.push(&event);
                        fold.push(event);
                    }
                    Some(Err(failure)) => {
                        error = Some(failure);
                        break;
                    }
                    None => break,
                },
            }
        }
        self.flush(&mut frame).await?;
        Ok(match error {
            Some(error) => Try::Failed { error, shown: frame.shown, usage: fold.usage() },
            None if !ended => Try::Failed { error: Error::EndedEarly, shown: frame.shown, usage: fold.usage() },
            None => Try::Reply(fold.finish(origin)),
        })
    }

    /// Logs what has arrived since the last frame, then shows it.
    async fn flush(&mut self, frame: &mut Frame) -> Result<(), session::Error> {
        let (text, thinking) = (std::mem::take(&mut frame.text), std::mem::take(&mut frame.thinking));
        if !(text.is_empty() && thinking.is_empty()) {
            self.agent.conversation.append(EntryKind::ReplyPart { text: text.clone(), thinking: thinking.clone() })?;
            frame.shown = true;
            if !thinking.is_empty() {
                self.mailbox.emit(Event::Delta(Delta::Thinking { text: thinking })).await;
            }
        }
        if let Some(tokens) = frame.thought.take() {
            self.mailbox.emit(Event::Thinking(Thinking::Complete { tokens })).await;
        }
        if !text.is_empty() {
            self.mailbox.emit(Event::Delta(Delta::Text { text })).await;
        }
        if let Some((name, bytes)) = frame.args.take() {
            self.mailbox.emit(Event::Delta(Delta::ToolArgs { name, bytes })).await;
        }
        frame.last = Some(Instant::now());
        frame.dirty = false;
        Ok(())
    }

    /// Adds up what a reply cost and tells the front ends where the window is.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn report_usage(&mut self, usage: Usage) -> Result<(), session::Error> {
        self.agent.spending.turn.answered = true;
        self.agent.spending.turn.replies.add(&usage);
        self.agent.compaction.counted(&usage);
        let broke = self.agent.prefix.answered(&usage, &self.agent.model);
        if let Some(broke) = &broke {
            self.agent.conversation.append(EntryKind::CacheBroke(broke.clone()))?;
            let told = serde_json::to_value(broke).unwrap_or_default();
            let why = told["cause"]["why"].as_str().unwrap_or_default();
            self.agent.fire(Occasion::cache_break(why, &told), self.mailbox, self.cancel).await?;
        }
        budget::record(self.agent, Some(usage));
        let info = UsageInfo { cache: broke.map(Box::new), ..self.agent.usage_info() };
        self.mailbox.emit(Event::Usage(info)).await;
        Ok(())
    }
}

/// What has arrived since the last frame.
#[derive(Default)]
struct Frame {
    text: String,
    thinking: String,
    /// All thoughts since the last text or call.
    thoughts: String,
    /// Thoughts that are complete, in tokens.
    thought: Option<u64>,
    /// Tokens of reasoning as the provider counted them so far.
    reasoning: u64,
    args: Option<(String, u64)>,
    call: String,
    last: Option<Instant>,
    dirty: bool,
    /// Something of this try reached the screen.
    shown: bool,
}

impl Frame {
    fn push(&mut self, event: &StreamEvent) {
        let ends_thought = match event {
            StreamEvent::Text { .. } | StreamEvent::ToolInput { .. } | StreamEvent::End(_) => true,
            StreamEvent::BlockStart { block, .. } => *block != BlockStart::Thinking,
            _ => false,
        };
        if ends_thought && !self.thoughts.is_empty() {
            let estimate = tokens::text(&std::mem::take(&mut self.thoughts));
            self.thought = Some(if self.reasoning > 0 { self.reasoning } else { estimate });
            self.dirty = true;
        }
        match event {
            StreamEvent::Usage(usage) => {
                self.reasoning = usage.reasoning;
                return;
            }
            StreamEvent::Text { text, .. } => self.text.push_str(text),
            StreamEvent::Thinking { text, .. } => {
                self.thinking.push_str(text);
                self.thoughts.push_str(text);
            }
            StreamEvent::BlockStart { block: BlockStart::ToolCall { name }, .. } => {
                self.call.clone_from(name);
                self.args = Some((name.clone(), 0));
            }
            StreamEvent::ToolInput { json, .. } => {
                let before = self.args.as_ref().map_or(0, |(_, bytes)| *bytes);
                self.args = Some((self.call.clone(), before + json.len() as u64));
            }
            _ => return,
        }
        self.dirty = true;
    }

    /// When what waits is to be shown; the first piece at once.
    fn due(&self) -> Option<Instant> {
        self.dirty.then(|| self.last.map_or_else(Instant::now, |last| last + FRAME))
    }
}
