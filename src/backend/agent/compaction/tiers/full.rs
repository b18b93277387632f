//! The tier that asks a model for a summary: the model of the conversation, whose cache knows it already, or a summarizer
//! of its own, which reads an excerpt.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::{Attempt, Proposal, Quotes};
use crate::agent::compaction::weight as weight_of;
use crate::agent::mailbox::Mailbox;
use crate::agent::{Agent, Model, budget, thinking};
use crate::compact::excerpt::{self, Excerpt};
use crate::compact::summary::{self, Reader};
use crate::compact::{Candidate, Meter, Thresholds, Window, candidate, micro};
use crate::message::{Block, CallId, Message, Origin, Usage, tokens};
use crate::protocol::{Compaction, Event, FailureReason, Trigger};
use crate::provider::reply::Fold;
use crate::provider::{Error, Purpose, Request, StreamEvent, retry};
use crate::session;

/// Name of the tier.
const TIER: &str = "full";

/// What the user reads meanwhile.
const PHASE: &str = "Summarizing…";

/// Who summarizes where it is not the model of the conversation that is asked as ever.
const SYSTEM: &str = include_str!("../../../../../assets/prompts/summarizer.md");

/// Tokens of an answer at the least.
const LEAST_OUTPUT: u64 = 1_024;

/// Characters to which long messages are cut at the most where a window is too small for them.
const LEAST_CHARS: usize = 400;

/// How a summary is asked for.
enum Form {
    /// As the turn would ask, with the instruction behind everything: the cached prefix costs the cached price.
    Whole(Box<Request>),
    /// By a summarizer that reads an excerpt.
    Excerpt { model: Box<Model>, excerpt: Excerpt },
}

/// Why there is no summary.
struct Failed {
    reason: FailureReason,
    text: String,
    /// What the provider said, where it failed.
    error: Option<Error>,
}

/// What the requests of one compaction cost, by the models that were asked.
struct Bill {
    total: Usage,
    /// None where a model has no price.
    cost: Option<f64>,
    /// What the log does not have yet.
    open: Vec<(Model, Usage)>,
}

impl Default for Bill {
    fn default() -> Bill {
        Bill { total: Usage::default(), cost: Some(0.0), open: Vec::new() }
    }
}

impl Bill {
    fn add(&mut self, model: &Model, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        self.total.add(&usage);
        self.cost = self.cost.zip(model.spec.cost(&usage)).map(|(sum, cost)| sum + cost);
        match self.open.iter_mut().find(|(known, _)| known.name() == model.name()) {
            Some((_, sum)) => sum.add(&usage),
            None => self.open.push((model.clone(), usage)),
        }
    }
}

impl Attempt<'_> {
    /// The full tier: a model writes a summary.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn propose_full(&mut self) -> Result<Proposal, session::Error> {
        let mut bill = Bill::default();
        let phase = PHASE.to_owned();
        self.tell(Compaction::Progress { phase, received: 0 }).await;
        let text = self.ask_full(&mut bill).await?;
        self.settle(&mut bill)?;
        let (spent, cost_usd) = (bill.total, bill.cost);
        let text = match text {
            Ok(text) => text,
            Err(Failed { reason, text, .. }) => return Ok(Proposal::Failed { reason, text, spent: (spent, cost_usd) }),
        };
        let summary = summary::message(&text, self.wish.trigger, self.agent.compaction.driver.search());
        let (opening, brought) = self.brings(&summary).await;
        let summary = Arc::new(summary);
        let mut candidate = self.fit(|attempt, ration| {
            let Agent { conversation, compaction, .. } = &*attempt.agent;
            let summary = ration.summary(&summary, compaction.driver.limits());
            let keep_from = candidate::cut(conversation.context(), &compaction.driver, brought, ration);
            attempt.candidate((TIER, keep_from), (&opening, &summary), Quotes::Opening, ration)
        });
        candidate.boundary.receipt.cost_usd = cost_usd;
        Ok(Proposal::Candidate(Box::new(Candidate { spent, ..candidate })))
    }

    /// Writes down what was paid for until now.
    fn settle(&mut self, bill: &mut Bill) -> Result<(), session::Error> {
        for (model, usage) in bill.open.drain(..) {
            let Agent { spending, conversation, .. } = &mut *self.agent;
            spending.know(model.name(), &model.spec);
            spending.note(&mut conversation.session, "summary", (model.name(), &model.spec), usage)?;
        }
        Ok(())
    }

    /// Asks once. That the first request may be paid for is known before a compaction begins; here it is found out for
    /// each later one.
    async fn ask(
        &mut self,
        model: &Model,
        request: Request,
        first_call: u64,
        bill: &mut Bill,
    ) -> Result<Result<Message, Failed>, session::Error> {
        if bill.total != Usage::default() {
            self.settle(bill)?;
            let over = match self.wish.trigger {
                Trigger::Manual => budget::refused(self.agent),
                _ => budget::exhausted(self.agent, self.mailbox, self.cancel).await.then(|| "budget is used up".into()),
            };
            if let Some(over) = over {
                return Ok(Err(Failed { reason: FailureReason::Budget, text: format!("the {over}"), error: None }));
            }
        }
        Ok(stream(model, request, first_call, bill, self.mailbox, self.cancel).await)
    }

    /// The text of a summary, in as many tries as the settings have.
    async fn ask_full(&mut self, bill: &mut Bill) -> Result<Result<String, Failed>, session::Error> {
        let mut form = match self.agent.compaction.summarizer(&self.agent.runs, &self.agent.model) {
            Ok(Some(model)) => self.excerpt_for(model),
            Ok(None) => self.own_form(),
            Err(problem) => {
                let text = format!("cannot use `compact.summarization_model`, so the current model is used: {problem}");
                self.mailbox.emit(Event::Notice { text }).await;
                self.own_form()
            }
        };
        let retries = if self.agent.settings.features.compact_streaming_retry {
            self.agent.settings.compact.max_summary_retries
        } else {
            0
        };
        let mut attempt = 0;
        loop {
            attempt += 1;
            let answered = self.ask_in(&mut form, bill).await?;
            let read = answered
                .and_then(|reply| summary::read(&reply).map_err(|(reason, text)| Failed { reason, text, error: None }));
            let failed = match read {
                Ok(text) => return Ok(Ok(text)),
                Err(failed) => failed,
            };
            if attempt > retries || matches!(failed.reason, FailureReason::Interrupted | FailureReason::Budget) {
                return Ok(Err(failed));
            }
            let wait = match &failed.error {
                None => Some(Duration::ZERO),
                Some(error) => retry::delay(attempt, error, fastrand::f64()),
            };
            let others = matches!(&form, Form::Excerpt { model, .. } if model.name() != self.agent.model.name());
            let wait = match wait {
                Some(wait) => wait,
                // The summarizer cannot be asked: the model of the conversation can.
                None if others => {
                    let text = format!("The model for summaries failed; using the current model: {}", failed.text);
                    self.mailbox.emit(Event::Notice { text }).await;
                    form = self.own_form();
                    Duration::ZERO
                }
                None => return Ok(Err(failed)),
            };
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ok(Err(Failed::interrupted())),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// How to ask the model of the conversation.
    fn own_form(&mut self) -> Form {
        let inline = self.agent.settings.compact.compact_prompt.as_deref().is_some_and(Excerpt::inline);
        let instruction = self.instruction(Reader::Conversation);
        let fits = self.agent.compaction.driver.used(self.agent.conversation.context()) + tokens::text(&instruction)
            <= self.agent.compaction.driver.marks().available;
        if inline || !fits || self.agent.compaction.driver.overflowed() || !self.agent.model.spec.caches() {
            return self.excerpt_for(self.agent.model.clone());
        }
        let asks = excerpt::asks(instruction);
        let mut request = self.agent.request_before(tokens::load(&asks));
        request.messages.push(asks);
        Form::Whole(Box::new(Request { purpose: Purpose::Summary, ..request }))
    }

    /// What a summarizer is asked: the conversation as the projection has it, its old results left out as clearing would.
    fn excerpt_for(&mut self, model: Model) -> Form {
        let context = self.agent.conversation.context();
        let toolbox = self.agent.toolbox.clone();
        let clearable = move |tool: &str| toolbox.get(tool).is_some_and(|tool| tool.manners().clearable);
        let plan = match self.agent.settings.features.micro_compact {
            true => micro::plan(
                context,
                self.agent.compaction.driver.terms(self.agent.conversation.session.store(), &clearable),
                micro::Trigger::Summary,
            ),
            false => None,
        };
        let cleared: HashSet<CallId> = plan.into_iter().flat_map(|plan| plan.clear).map(|clear| clear.call).collect();
        let messages = thinking::without_foreign_wire(context.messages(), &model.provider_name);
        let text = self.instruction(Reader::Summarizer);
        let excerpt = Excerpt::new(&messages, &cleared, self.agent.settings.compact.summary_result_chars, text);
        Form::Excerpt { model: Box::new(model), excerpt }
    }

    fn instruction(&self, reader: Reader) -> String {
        let own = self.agent.settings.compact.compact_prompt.as_deref();
        let text = summary::instruction(own, self.wish.instructions.as_deref(), reader);
        let most = self.agent.compaction.driver.limits().summary;
        match own.is_none() || most < self.agent.settings.compact.max_summary_tokens {
            true => format!("{text}\n\n{}", summary::length(most)),
            false => text,
        }
    }

    /// One try. What is too long is shortened and asked again, which is not a try of its own.
    async fn ask_in(&mut self, form: &mut Form, bill: &mut Bill) -> Result<Result<Message, Failed>, session::Error> {
        if let Form::Whole(request) = &*form {
            let model = self.agent.model.clone();
            let request = (**request).clone();
            let mut answered = self.ask(&model, request.clone(), 0, bill).await?;
            // Tools are there for the cache's sake alone; an answer that calls one is asked again without.
            if answered.as_ref().is_ok_and(|reply| reply.calls().next().is_some()) {
                answered = self.ask(&model, Request { tools: Arc::new([]), ..request }, 0, bill).await?;
            }
            match answered {
                Err(Failed { reason: FailureReason::PromptTooLong, .. }) => {
                    *form = self.excerpt_for(model);
                }
                answered => return Ok(answered),
            }
        }
        loop {
            let Form::Excerpt { model, excerpt } = &mut *form else { return Ok(Err(Failed::none())) };
            let asked = self.ask_excerpt(model, excerpt, bill).await?;
            let too_long = matches!(asked, Err(Failed { reason: FailureReason::PromptTooLong, .. }));
            match excerpt.shorter().filter(|_| too_long && !self.cancel.is_cancelled()) {
                Some(shorter) => *excerpt = shorter,
                None => return Ok(asked),
            }
        }
    }

    /// Asks a summarizer, and answers what it calls meanwhile.
    async fn ask_excerpt(
        &mut self,
        model: &Model,
        excerpt: &mut Excerpt,
        bill: &mut Bill,
    ) -> Result<Result<Message, Failed>, session::Error> {
        let settings = &self.agent.settings.compact;
        let (most_rounds, most_chars) = (settings.summary_rounds, settings.summary_result_chars);
        // Of the model of the conversation more is known: what its server has said, and how it counts.
        let (window, meter) = match model.name() == self.agent.model.name() {
            true => (self.agent.compaction.driver.window(), self.agent.compaction.driver.meter.clone()),
            false => {
                let window = Window::of(model.spec.window, model.spec.known, model.spec.max_output, settings);
                (window, Meter::new(settings))
            }
        };
        let available = Thresholds::new(window, settings).available;
        let tools: Arc<[_]> = self.agent.lookup_specs().into();
        let around = tokens::text(SYSTEM) + tools.iter().map(weight_of).sum::<u64>();
        let weight = |messages: &[Arc<Message>]| -> u64 {
            let load: tokens::Load = messages.iter().map(|message| tokens::load(message)).sum();
            meter.of(load + tokens::Load { text: around, images: 0 })
        };
        // What cannot fit is not even sent.
        while weight(&excerpt.request(&[])) > available
            && let Some(shorter) = excerpt.shorter()
        {
            *excerpt = shorter;
        }
        let mut chars = excerpt.longest();
        while weight(&excerpt.request(&[])) > available && chars > LEAST_CHARS {
            chars /= 2;
            *excerpt = excerpt.clipped(chars);
        }
        if weight(&excerpt.request(&[])) > available {
            let text = "the conversation does not fit into the window of the model for summaries".into();
            return Ok(Err(Failed { reason: FailureReason::PromptTooLong, text, error: None }));
        }
        let room = |messages: &[Arc<Message>]| {
            let left = window.left(weight(messages)).max(LEAST_OUTPUT);
            model.spec.max_output.min(u32::try_from(left).unwrap_or(u32::MAX))
        };
        let request = Request {
            model: model.id.clone(),
            system: SYSTEM.trim_end().into(),
            tools,
            messages: Vec::new(),
            media: Default::default(),
            max_output: room(&[]),
            thinking: thinking::off(&model.spec),
            purpose: Purpose::Summary,
            cache_key: String::new(),
            web_search: None,
            frontier: None,
        };
        let mut rounds: Vec<Arc<Message>> = Vec::new();
        let first_call = self.agent.conversation.session.next_call();
        let mut calls_made = 0;
        for round in 0..=most_rounds {
            // What was looked up gives way where it does not fit beside the excerpt.
            let last = round == most_rounds || weight(&excerpt.request(&rounds)) > available;
            if last && weight(&excerpt.request(&rounds)) > available {
                rounds.clear();
            }
            let messages = excerpt.request(&rounds);
            let mut request = Request { max_output: room(&messages), messages, ..request.clone() };
            if last {
                request.tools = Arc::new([]);
            }
            let reply = match self.ask(model, request, first_call + calls_made, bill).await? {
                Ok(reply) => reply,
                Err(failed) => return Ok(Err(failed)),
            };
            let calls: Vec<_> = reply.calls().cloned().collect();
            if calls.is_empty() || last {
                return Ok(Ok(reply));
            }
            calls_made += calls.len() as u64;
            let mut results = Vec::with_capacity(calls.len());
            for call in calls {
                results.push(self.agent.look_up(call, self.cancel).await?);
            }
            rounds.extend(excerpt::round(reply, results, most_chars));
        }
        Ok(Err(Failed::none()))
    }
}

impl Failed {
    fn interrupted() -> Failed {
        Failed { reason: FailureReason::Interrupted, text: "it was interrupted".into(), error: None }
    }

    fn none() -> Failed {
        Failed { reason: FailureReason::NoSummary, text: "no summary was asked for".into(), error: None }
    }
}

/// Asks once; tells how much has arrived. Calls bear names that no call of the conversation has.
async fn stream(
    model: &Model,
    request: Request,
    first_call: u64,
    bill: &mut Bill,
    mailbox: &Mailbox,
    cancel: &CancellationToken,
) -> Result<Message, Failed> {
    let origin = Origin { provider: model.provider_name.clone(), model: request.model.clone() };
    let mut fold = Fold::new(first_call);
    let mut stream = model.provider.stream(Arc::new(request));
    let (mut bytes, mut told, mut ended) = (0u64, 0, false);
    loop {
        let event = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                bill.add(model, fold.usage());
                return Err(Failed::interrupted());
            }
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
                bill.add(model, fold.usage());
                let reason = match error {
                    Error::ContextTooLong { .. } => FailureReason::PromptTooLong,
                    _ => FailureReason::ApiError,
                };
                return Err(Failed { reason, text: error.to_string(), error: Some(error) });
            }
            None => break,
        }
        let received = bytes / 4;
        if received >= told + 50 {
            told = received;
            let phase = PHASE.to_owned();
            mailbox.emit(Event::Compaction(Compaction::Progress { phase, received })).await;
        }
    }
    bill.add(model, fold.usage());
    if !ended {
        let error = Error::EndedEarly;
        return Err(Failed { reason: FailureReason::ApiError, text: error.to_string(), error: Some(error) });
    }
    let mut reply = fold.finish(origin);
    for block in &mut reply.blocks {
        if let Block::ToolCall(call) = block {
            call.id = CallId(format!("summary_{}", call.id));
        }
    }
    Ok(reply)
}
