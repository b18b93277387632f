//! The turn: a loop of model calls and tool rounds until the model has nothing more to do.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::desk::{Desk, Prompt};
use super::dispatch::Flow;
use super::sample::Sampled;
use super::{Agent, Failure, reminder};
use crate::message::{Kind, Message, StopReason, ToolCall, Usage};
use crate::protocol::{Event, Item, Turn, TurnEnd};
use crate::provider::{Purpose, Request, Thinking};
use crate::session;
use crate::session::entry::EntryKind;

/// What the model reads in place of an answer that ran out of room.
const GO_ON: &str =
    "Your reply was cut off at the output limit. Go on exactly where it ended; split large writes into smaller calls.";
/// How often a cut reply is continued before the turn ends.
const MOST_CUTS: usize = 3;

impl Agent {
    /// Runs one turn from a prompt to its end, and tells everything on the way. Never fails: a failure is how it ends.
    pub async fn turn(&mut self, prompt: Prompt, desk: &Desk, cancel: &CancellationToken) -> TurnEnd {
        let started = (self.clock)();
        self.turn_usage = Usage::default();
        desk.emit(Event::Turn(Turn::Started)).await;
        let text = prompt.text.clone();
        let before = self.session.next_seq();
        let end = match self.run_turn(prompt, desk, cancel).await {
            Ok(end) => end,
            Err(failure) => {
                // The prompt goes back to the composer when nothing came of it: it must not be typed twice.
                let restore = (!self.answered_since(before)).then_some(text);
                desk.emit(Event::Error { text: failure.to_string(), restore }).await;
                TurnEnd::Failed
            }
        };
        self.finish_turn(end, desk).await;
        let millis = u64::try_from((self.clock)().duration_since(started).as_millis()).unwrap_or(u64::MAX);
        let cost_usd = self.model.spec.cost(&self.turn_usage);
        desk.emit(Event::Turn(Turn::Ended { end, usage: self.turn_usage, cost_usd, millis })).await;
        end
    }

    async fn finish_turn(&mut self, end: TurnEnd, desk: &Desk) {
        let name =
            serde_json::to_value(end).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
        let closed = self
            .session
            .append(EntryKind::TurnEnded { end: name, usage: self.turn_usage })
            .and_then(|_| self.session.sync());
        if let Err(error) = closed
            && end != TurnEnd::Failed
        {
            desk.emit(Event::Error { text: error.to_string(), restore: None }).await;
        }
    }

    async fn run_turn(&mut self, prompt: Prompt, desk: &Desk, cancel: &CancellationToken) -> Result<TurnEnd, Failure> {
        self.session.append(EntryKind::TurnStarted)?;
        self.open_conversation(desk, cancel).await?;
        self.say(prompt, desk).await?;
        let (mut rounds, mut cuts) = (0u32, 0usize);
        self.repeats.clear();
        loop {
            if cancel.is_cancelled() {
                return Ok(TurnEnd::Interrupted);
            }
            if self.settings.max_turns.is_some_and(|most| rounds >= most) {
                return Ok(TurnEnd::MaxTurns);
            }
            rounds += 1;
            self.boundary(desk).await?;
            let request = Arc::new(self.request());
            let mut reply = match self.sample(request, desk, cancel).await? {
                Sampled::Reply(reply) => reply,
                Sampled::Interrupted(reply) => {
                    if let Some(reply) = reply {
                        let calls: Vec<ToolCall> = reply.calls().cloned().collect();
                        self.push(reply, desk).await?;
                        self.dispatch_all(calls, desk, cancel).await?;
                    }
                    return Ok(TurnEnd::Interrupted);
                }
                Sampled::Failed(error) => return Err(Failure::Provider(error)),
            };
            let usage = reply.usage.unwrap_or_default();
            let stop = reply.stop.clone();
            if reply.blocks.is_empty() {
                reply.blocks.push(crate::message::Block::text("(no answer)"));
            }
            let calls: Vec<ToolCall> = reply.calls().cloned().collect();
            self.push(reply, desk).await?;
            self.report_usage(usage, desk).await;
            if calls.is_empty() {
                match stop {
                    Some(StopReason::MaxTokens) if cuts < MOST_CUTS => {
                        cuts += 1;
                        self.push(Message::reminder(GO_ON), desk).await?;
                        continue;
                    }
                    Some(StopReason::Pause) => continue,
                    Some(StopReason::Refusal(word)) => {
                        desk.emit(Event::Notice { text: format!("The provider refused to go on ({word}).") }).await;
                    }
                    _ => {}
                }
                let steers = desk.take_steers();
                if steers.is_empty() {
                    return Ok(TurnEnd::Done);
                }
                self.deliver(steers, desk).await?;
                continue;
            }
            match self.dispatch_all(calls, desk, cancel).await? {
                Flow::Continue => {}
                Flow::End(end) => return Ok(end),
            }
        }
    }

    /// What happens between two requests: steered prompts, mode changes, reminders.
    async fn boundary(&mut self, desk: &Desk) -> Result<(), Failure> {
        self.take_mode(desk).await?;
        for message in desk.take_context() {
            self.push(message, desk).await?;
        }
        let steers = desk.take_steers();
        self.deliver(steers, desk).await?;
        let changed = self.watch.changed(self.session.context().seen());
        if !changed.is_empty() {
            self.push(Message::reminder(&reminder::changed_files(&changed)), desk).await?;
        }
        let recall = reminder::todos(&self.session.context().messages(), self.session.context().todos());
        if let Some(text) = recall {
            self.push(Message::reminder(&text), desk).await?;
        }
        Ok(())
    }

    async fn deliver(&mut self, steers: Vec<Prompt>, desk: &Desk) -> Result<(), Failure> {
        if steers.is_empty() {
            return Ok(());
        }
        desk.emit(desk.queue()).await;
        for prompt in steers {
            self.say(prompt, desk).await?;
        }
        Ok(())
    }

    /// Puts a message into the log, then on the screen.
    pub(super) async fn push(&mut self, message: Message, desk: &Desk) -> Result<(), session::Error> {
        let message = Arc::new(message);
        let seq = self.session.append(EntryKind::Message { message: message.clone() })?;
        desk.emit(Event::Item(Item::Message { seq, message })).await;
        Ok(())
    }

    /// Takes over a mode change that was asked for meanwhile.
    pub(super) async fn take_mode(&mut self, desk: &Desk) -> Result<(), session::Error> {
        if let Some(mode) = desk.take_mode()
            && mode != self.mode()
        {
            self.session.append(EntryKind::ModeChanged { mode })?;
            desk.emit(Event::Mode { mode }).await;
        }
        Ok(())
    }

    fn answered_since(&self, seq: u64) -> bool {
        self.session.context().entries().any(|(at, message)| at >= seq && message.kind == Kind::Reply)
    }

    fn request(&mut self) -> Request {
        let messages = self.session.context().messages();
        let media = self.media.of(&messages, self.session.store());
        Request {
            model: self.model.id.clone(),
            system: self.system.clone(),
            tools: self.tool_specs.clone(),
            messages,
            media,
            max_output: self.model.spec.max_output,
            thinking: Thinking::Unset,
            purpose: Purpose::Main,
            cache_key: self.session.id().to_owned(),
            web_search: None,
        }
    }
}
