//! The turn: a loop of model calls and tool rounds until the model has nothing more to do.

mod prompts;

use std::collections::VecDeque;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::dispatch::Prepared;
use super::hooking::{Submitted, told};
use super::mailbox::{Mailbox, Prompt};
use super::sample::Sampled;
use super::skill_runs::{Caller, Expansion, Invocation};
use super::{Agent, Failure, Model, Reminders, budget, hooking, reminder, tasks, thinking};
use crate::commands::Skill;
use crate::compact::memory::Pause;
use crate::hooks::{self, Occasion, Worker};
use crate::message::{CallId, Kind, Message, Outcome, StopReason, ToolResult};
use crate::protocol::{self, BETWEEN, Event, Item, TurnEnd};
use crate::provider::Request;
use crate::session::{self, entry::EntryKind, entry::Seq};
use crate::stdx::process;
use crate::tools;

/// Read in place of an answer that ran out of room.
const GO_ON: &str = "Your reply was cut off at the output limit. Continue exactly where it ended; split large writes into smaller calls.";
/// What the model reads that ends its work without the answer in the shape that was asked for.
const ANSWER: &str = "The final answer is still missing. Call the StructuredOutput tool now, with an object that fits its schema. Nothing else you write counts as the answer.";
/// How often an answer of a given shape may be rejected or missing before the turn ends, as in Claude Code.
const MOST_ANSWERS: usize = 5;
/// How often in a row a reply that was cut, paused or empty is asked to continue before the turn ends.
const MOST_NUDGES: usize = 3;

/// One turn under way: whose it is, who hears of it, and what ends it.
pub(super) struct Turn<'a> {
    pub(super) agent: &'a mut Agent,
    pub(super) mailbox: &'a Mailbox,
    pub(super) cancel: &'a CancellationToken,
}

impl Turn<'_> {
    /// Runs a turn to its end. Without a prompt it begins with what the model is told at its first step.
    async fn run(&mut self, prompt: Option<Prompt>) -> TurnEnd {
        let started = (self.agent.clock)();
        self.mailbox.take_waited();
        budget::begin_turn(self.agent);
        self.mailbox.emit(Event::Turn(protocol::Turn::Started)).await;
        let text = prompt.as_ref().map(|prompt| prompt.text.clone()).unwrap_or_default();
        let before = self.agent.conversation.session.next_seq();
        let end = match crate::boxed(|| self.run_turn(prompt)).await {
            Ok(TurnEnd::Done) if budget::overdrawn(self.agent, self.mailbox).await => TurnEnd::Budget,
            Ok(end) => end,
            Err(failure) => {
                if let Some(kind) = failure.kind() {
                    let last = self.agent.conversation.last_said();
                    let occasion = Occasion::stop_failure(kind, &failure.to_string(), &last);
                    // What the log cannot take is told below.
                    let _ = self.agent.fire(occasion, self.mailbox, self.cancel).await;
                }
                self.give_up(&failure, before, text).await;
                TurnEnd::Failed
            }
        };
        self.agent.budget.release();
        self.agent.tasks.waking.after(end);
        self.finish_turn(end).await;
        // A person who thinks does not count as work of the agent.
        let worked = (self.agent.clock)().duration_since(started).saturating_sub(self.mailbox.take_waited());
        let millis = u64::try_from(worked.as_millis()).unwrap_or(u64::MAX);
        let (usage, cost_usd) =
            (self.agent.spending.turn.total(), self.agent.spending.turn_cost(&self.agent.model.spec));
        self.agent.end_runs(0, self.mailbox).await;
        self.mailbox.emit(Event::Turn(self.agent.spending.spent(&self.agent.conversation.session))).await;
        self.mailbox.emit(Event::Turn(protocol::Turn::Ended { end, usage, cost_usd, millis })).await;
        end
    }

    /// Says why the turn failed. Prompts of which nothing came leave the conversation and go back to the composer.
    async fn give_up(&mut self, failure: &Failure, before: Seq, typed: String) {
        let since: Vec<_> = self.agent.conversation.context().entries().filter(|(seq, _)| *seq >= before).collect();
        let answered = self.agent.spending.turn.answered;
        let prompts: Vec<_> = since.iter().filter(|(_, message)| message.kind == Kind::Prompt).collect();
        let first = prompts.first().map(|(seq, _)| *seq);
        let logged: Vec<String> = prompts.iter().map(|(_, message)| message.text()).collect();
        let restore = if logged.is_empty() { typed } else { logged.join(BETWEEN) };
        let restore = (!answered && !restore.is_empty()).then_some(restore);
        if let Some(to) = first.filter(|_| !answered) {
            // A log that cannot be written keeps the prompt, which does less harm than the failure to say why.
            if self.agent.conversation.append(EntryKind::Rewind { to }).is_ok() {
                let text = "not answered; the prompt was removed from the conversation".into();
                self.mailbox.emit(Event::Item(Item::Note { text })).await;
            }
        }
        self.mailbox.emit(Event::Error { text: failure.told(self.agent.conversation.presence), restore }).await;
    }

    async fn finish_turn(&mut self, end: TurnEnd) {
        let name =
            serde_json::to_value(end).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
        let closed = self
            .agent
            .conversation
            .append(EntryKind::TurnEnded { end: name, usage: self.agent.spending.turn.replies })
            .and_then(|_| self.agent.conversation.session.sync());
        let closed = match closed {
            Ok(()) => self.agent.conversation.watch_session(self.mailbox).await,
            Err(error) => Err(error),
        };
        if let Err(error) = closed
            && end != TurnEnd::Failed
        {
            self.mailbox.emit(Event::Error { text: error.to_string(), restore: None }).await;
        }
    }

    async fn run_turn(&mut self, prompt: Option<Prompt>) -> Result<TurnEnd, Failure> {
        self.agent.conversation.watch_session(self.mailbox).await?;
        let Some(prompt) = prompt else {
            self.agent.open_turn()?;
            self.agent.thinking.begin();
            return crate::boxed(|| self.rounds()).await;
        };
        self.agent.tasks.waking = tasks::waking::Waking::default();
        let context = match self.submit_hooks(&prompt).await? {
            Submitted::Accepted(context) => context,
            Submitted::Erased(reason) => return Err(Failure::Erased { reason }),
            Submitted::Interrupted => {
                self.mailbox.emit(Event::Error { text: hooking::INTERRUPTED.into(), restore: Some(prompt.text) }).await;
                return Ok(TurnEnd::Interrupted);
            }
        };
        let skill = self.agent.runs.next_turn(prompt.skill.as_ref()).map_err(Failure::Skill)?;
        let args = prompt.skill.as_ref().map(|call| call.args.clone()).unwrap_or_default();
        if let Some(skill) = &skill {
            self.agent.begin_run(skill, Some(&args), self.mailbox).await;
        }
        self.agent.settled = true;
        self.agent.open_turn()?;
        let (policy, model) = (&self.agent.policy, &self.agent.model.id);
        self.agent.conversation.put_opening(policy, model, self.mailbox, self.cancel).await?;
        // A sub-agent without the tool could not call a skill.
        if self.agent.settings.reminders == Reminders::On
            && self.agent.toolbox.get(tools::SKILL).is_some()
            && let Some(news) = self.agent.runs.news(self.agent.conversation.context())
        {
            self.agent.conversation.push(news, self.mailbox).await?;
        }
        self.agent.hooking.deliver_pending(&mut self.agent.conversation, self.mailbox).await?;
        self.agent.thinking.begin();
        self.push_submitted(prompt, context).await?;
        if let Some(skill) = skill {
            Expansion { agent: self.agent, mailbox: self.mailbox, cancel: self.cancel }.push(&skill, &args).await?;
        }
        crate::boxed(|| self.rounds()).await
    }

    /// Samples and dispatches until there is nothing more to do.
    async fn rounds(&mut self) -> Result<TurnEnd, Failure> {
        let (mut nudges, mut continued) = (0usize, 0u32);
        let mut owed = self.agent.toolbox.get(tools::answer::NAME).map(|_| 0);
        self.agent.repeats.clear();
        loop {
            process::may_begin().await;
            if self.cancel.is_cancelled() {
                return Ok(TurnEnd::Interrupted);
            }
            if self.agent.settings.max_turns.is_some_and(|most| self.agent.tasks.waking.requests >= most) {
                return Ok(TurnEnd::MaxTurns);
            }
            self.agent.tasks.waking.requests += 1;
            self.boundary().await?;
            if let Some(end) = self.make_room().await? {
                return Ok(end);
            }
            let request = Arc::new(self.agent.request());
            let mut reply = match self.sample(request).await? {
                Sampled::Reply(reply) => reply,
                Sampled::Interrupted(reply) => {
                    if let Some(mut reply) = reply {
                        let calls = self.agent.prepare(&mut reply);
                        let usage = reply.usage.unwrap_or_default();
                        self.agent.conversation.push(reply, self.mailbox).await?;
                        self.report_usage(usage).await?;
                        crate::boxed(|| self.agent.dispatch_all(calls, self.mailbox, self.cancel)).await?;
                    }
                    return Ok(TurnEnd::Interrupted);
                }
                Sampled::Failed(error)
                    if self.agent.compaction.recover(self.agent.conversation.context(), &error, self.mailbox).await =>
                {
                    self.agent.tasks.waking.requests -= 1;
                    continue;
                }
                Sampled::Failed(error) => return Err(Failure::Provider(error)),
                Sampled::OverBudget => return Ok(TurnEnd::Budget),
            };
            let usage = reply.usage.unwrap_or_default();
            let stop = reply.stop.clone();
            let cut = stop == Some(StopReason::MaxTokens) && !reply.blocks.is_empty();
            // An empty reply is logged for what it cost; the context leaves it out.
            let empty = reply.blocks.is_empty();
            let calls = self.agent.prepare(&mut reply);
            self.agent.conversation.push(reply, self.mailbox).await?;
            self.report_usage(usage).await?;
            if calls.is_empty() {
                let unfinished = match stop {
                    Some(StopReason::Refusal(word)) => {
                        self.mailbox
                            .emit(Event::Notice { text: format!("The provider refused to continue ({word}).") })
                            .await;
                        None
                    }
                    Some(StopReason::MaxTokens) => Some("The answer kept hitting the output limit."),
                    Some(StopReason::Pause) => Some("The provider kept pausing."),
                    _ if empty => {
                        Some("The model returned an empty answer several times. Rephrase your request, or try again.")
                    }
                    _ => None,
                };
                if let Some(notice) = unfinished {
                    nudges += 1;
                    if nudges <= MOST_NUDGES {
                        if cut {
                            self.agent.conversation.push(Message::reminder(GO_ON), self.mailbox).await?;
                        }
                        continue;
                    }
                    self.mailbox.emit(Event::Notice { text: notice.into() }).await;
                }
                // What ended while it answered is told at the next step, which there is for it.
                tasks::settle(self.agent, self.mailbox, self.cancel).await?;
                let steers = self.mailbox.take_steers();
                if steers.is_empty() && tasks::waking::continues(self.agent, None, self.mailbox).await {
                    continue;
                }
                if steers.is_empty() {
                    if let Some(missed) = &mut owed {
                        *missed += 1;
                        if *missed >= MOST_ANSWERS {
                            return Ok(TurnEnd::NoAnswer);
                        }
                        self.agent.conversation.push(Message::reminder(ANSWER), self.mailbox).await?;
                        continue;
                    }
                    if self.stop_hooks_continue(&mut continued).await? {
                        continue;
                    }
                    self.consider_notes(Pause::Reply)?;
                    return Ok(TurnEnd::Done);
                }
                self.mailbox.answered();
                self.deliver(steers).await?;
                continue;
            }
            nudges = 0;
            let answers: Vec<CallId> = calls.iter().filter_map(Prepared::answer).collect();
            if let Some(end) = crate::boxed(|| self.agent.dispatch_all(calls, self.mailbox, self.cancel)).await? {
                // A rejected answer that is given again and again.
                let none = end == TurnEnd::Repeated && owed.is_some() && !answers.is_empty();
                return Ok(if none { TurnEnd::NoAnswer } else { end });
            }
            if self.answered(&answers) {
                owed = None;
            } else if let Some(missed) = owed.as_mut().filter(|_| !answers.is_empty()) {
                *missed += 1;
                if *missed >= MOST_ANSWERS {
                    return Ok(TurnEnd::NoAnswer);
                }
            }
            self.digest_results().await?;
            self.consider_notes(Pause::Round)?;
        }
    }

    /// Whether one of these calls brought an answer that was accepted.
    fn answered(&self, calls: &[CallId]) -> bool {
        let messages = self.agent.conversation.context().messages();
        let accepted = |result: &ToolResult| result.outcome == Outcome::Ok && calls.contains(&result.id);
        !calls.is_empty() && messages.iter().rev().flat_map(|message| message.results()).any(accepted)
    }

    /// What happens between two requests: steered prompts, mode changes, reminders.
    async fn boundary(&mut self) -> Result<(), Failure> {
        self.agent.take_mode(self.mailbox).await?;
        self.agent.hooking.collect(&mut self.agent.conversation, self.mailbox).await?;
        tasks::tell(self.agent, self.mailbox).await?;
        let steers = self.mailbox.take_steers();
        self.deliver(steers).await?;
        if self.agent.settings.reminders == Reminders::Off {
            return Ok(());
        }
        self.agent.conversation.remind_of_plan(self.agent.settings.plan, self.mailbox).await?;
        let changed = self.agent.conversation.changed_files();
        if !changed.is_empty() {
            self.agent.conversation.push(Message::reminder(&reminder::changed_files(&changed)), self.mailbox).await?;
        }
        let recall =
            reminder::todos(&self.agent.conversation.context().messages(), self.agent.conversation.context().todos());
        if let Some(recall) = recall {
            self.agent.conversation.push(recall, self.mailbox).await?;
        }
        self.agent.runs.remind(&mut self.agent.conversation, self.mailbox).await?;
        Ok(())
    }

    async fn deliver(&mut self, steers: Vec<Prompt>) -> Result<(), Failure> {
        if steers.is_empty() {
            return Ok(());
        }
        self.agent.tasks.waking.steered();
        self.mailbox.emit(self.mailbox.queue()).await;
        let mut steers = VecDeque::from(steers);
        while let Some(prompt) = steers.pop_front() {
            self.mailbox.joined(&prompt.text);
            if let Err(error) = self.push_steer(prompt.clone()).await {
                steers.push_front(prompt);
                self.mailbox.put_back(steers.into());
                return Err(error.into());
            }
        }
        Ok(())
    }

    pub(super) async fn push_prompt(&mut self, prompt: Prompt) -> Result<(), session::Error> {
        prompts::push(self.agent, (self.mailbox, self.cancel), prompt).await
    }
}

impl Agent {
    /// Runs one turn from a prompt to its end, and tells everything on the way. Never fails: a failure is how it ends.
    pub async fn turn(&mut self, prompt: Prompt, mailbox: &Mailbox, cancel: &CancellationToken) -> TurnEnd {
        Turn { agent: self, mailbox, cancel }.run(Some(prompt)).await
    }

    /// Runs a turn that nobody asked for: a command in the background has ended.
    pub async fn wake(&mut self, mailbox: &Mailbox, cancel: &CancellationToken) -> TurnEnd {
        Turn { agent: self, mailbox, cancel }.run(None).await
    }

    /// Begins a turn in the log, with what its usage and its rules go back to.
    fn open_turn(&mut self) -> Result<(), session::Error> {
        let (model, project) = (self.model.name(), self.policy.places.project.clone());
        if self.conversation.facts().model.as_ref() != Some(&model) {
            self.conversation.append(self.runs.model_entry(&self.model))?;
        }
        if !self.policy.trust.is_empty() && !self.conversation.facts().trust.contains(&project) {
            self.conversation.append(EntryKind::Trusted { folder: project })?;
        }
        self.conversation.append(EntryKind::TurnStarted)?;
        Ok(())
    }

    /// Lets a skill take what it needs for its run; `said` is what the user, not the model, wants of it, where they called it.
    async fn begin_run(&mut self, skill: &Arc<Skill>, said: Option<&str>, mailbox: &Mailbox) {
        let Agent { runs, policy, hooking, .. } = self;
        let asked = runs.begin((skill, said), policy, &mut hooking.hooks, mailbox).await;
        if let Some((model, tools)) = asked.filter(|(model, _)| model.name() != self.model.name()) {
            self.runs.keep_model(self.model.clone(), self.settings.tools.clone());
            self.set_model(model, tools);
            mailbox.emit(Event::Model(self.model.info())).await;
        }
    }

    /// Ends runs of skills from this one on. Those before it continue.
    pub(super) async fn end_runs(&mut self, first: usize, mailbox: &Mailbox) {
        let before = self.runs.end_from(first, &mut self.policy, &mut self.hooking.hooks);
        if let Some((model, tools)) = before {
            self.set_model(model, Arc::unwrap_or_clone(tools));
            mailbox.emit(Event::Model(self.model.info())).await;
            if let Err(error) = self.conversation.append(self.runs.model_entry(&self.model)) {
                tracing::error!(%error, "cannot record the session's model");
            }
        }
    }

    /// Runs a skill that the model has called.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn run_skill(
        &mut self,
        call: Invocation,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        match self.runs.view().find(&call.name, Caller::Model) {
            Ok(skill) => {
                let before = self.model.clone();
                self.begin_run(&skill, None, mailbox).await;
                if self.model.name() != before.name() {
                    // What was answered until now counts for the model that did.
                    self.spending.turn.settle(&before.spec);
                    self.conversation.append(self.runs.model_entry(&self.model))?;
                }
                Expansion { agent: self, mailbox, cancel }.push(&skill, &call.args).await
            }
            Err(problem) => self.conversation.push(Message::reminder(&problem), mailbox).await,
        }
    }

    /// Takes over a change of mode or thinking that was asked for meanwhile, and rules that were granted.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn take_mode(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        if let Some(level) = mailbox.take_thinking() {
            self.set_thinking(level, mailbox).await?;
        }
        for (rule, source) in mailbox.take_granted() {
            self.policy.allow(&rule, source);
        }
        match mailbox.take_mode() {
            Some(mode) => self.set_mode(mode, mailbox).await,
            None => Ok(()),
        }
    }

    pub(super) fn request(&mut self) -> Request {
        self.request_before(crate::message::tokens::Load::default())
    }

    /// The same with so much to be put behind it.
    pub(super) fn request_before(&mut self, behind: crate::message::tokens::Load) -> Request {
        let messages = tools::mcp_call::written(self.conversation.context().messages(), &self.tool_specs);
        let choice = thinking::Choice {
            settings: &self.settings.thinking,
            session: self.conversation.facts().thinking,
            model: &self.model,
        };
        let thinking = self.thinking.of_request(&messages, &choice);
        let messages = thinking::without_foreign_wire(messages, &self.model.provider_name);
        let media = self.conversation.media.of(&messages, self.conversation.session.store());
        let (context, most) = (self.conversation.context(), self.model.spec.max_output);
        let max_output = self.compaction.room_for_output(context, behind, most);
        Request {
            model: self.model.id.clone(),
            system: self.system.clone(),
            tools: self.tool_specs.clone(),
            messages,
            media,
            max_output,
            thinking,
            purpose: self.conversation.purpose(),
            cache_key: self.conversation.session.id().to_owned(),
            web_search: None,
            frontier: self.compaction.frontier(&self.conversation, &self.toolbox),
        }
    }

    /// The next request of the conversation, to be asked beside it: of the model in use, whose cache knows it, unless
    /// another one writes summaries.
    pub(in crate::agent) fn request_beside(&mut self, behind: crate::message::tokens::Load) -> (Model, Request) {
        let request = self.request_before(behind);
        let other = self
            .compaction
            .summarizer(&self.runs, &self.model)
            .inspect_err(|problem| tracing::warn!(%problem, "no model for summaries"));
        match other.ok().flatten() {
            Some(model) => {
                let messages = thinking::without_foreign_wire(request.messages, &model.provider_name);
                let max_output = request.max_output.min(model.spec.max_output);
                let thinking = thinking::off(&model.spec);
                let request = Request { model: model.id.clone(), messages, max_output, thinking, ..request };
                (model, request)
            }
            None => (self.model.clone(), request),
        }
    }

    /// One turn of a sub-agent, with the hooks before it and the skills that it begins with.
    pub(super) async fn work(
        &mut self,
        prompt: Prompt,
        skills: &[String],
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        if let Some(Worker { id, kind, .. }) = self.hooking.worker.clone() {
            let fired = self.fire(Occasion::subagent_start(&id, &kind), mailbox, cancel).await;
            for text in fired.ok().flatten().map(|outcome| outcome.context).unwrap_or_default() {
                let reminder = told(hooks::Event::SubagentStart, &text);
                // A log that cannot be written ends the turn, which says so.
                let _ = self.conversation.push(reminder, mailbox).await;
            }
        }
        // A log that cannot be written ends the turn, too.
        let _ = Expansion { agent: self, mailbox, cancel }.preload(skills).await;
        self.turn(prompt, mailbox, cancel).await
    }
}
