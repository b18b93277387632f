//! Watches over one sub-agent while it works.

use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Launcher;
use crate::agent::mailbox::Mailbox;
use crate::agent::parent_child::{Standing, Word};
use crate::agent::tasks::{Figures, Outlet};
use crate::agents::Definition;
use crate::message::{Kind, Usage};
use crate::permission::Mode;
use crate::protocol::{Answer, AskId, Asker, Event, Item, Question, Task, TurnEnd, task::Step};

/// Watches over one sub-agent: what it does becomes live lines, its questions become those of the session.
pub(super) struct Watch<'a> {
    pub(super) launcher: &'a Launcher,
    /// Of the agent above.
    pub(super) mailbox: &'a Mailbox,
    /// Of the sub-agent.
    pub(super) below: &'a Mailbox,
    pub(super) asks: FuturesUnordered<BoxFuture<'a, (AskId, Option<Answer>)>>,
    /// Questions that wait, with what takes them back.
    pub(super) open: Vec<(AskId, CancellationToken)>,
    /// Of the agent above.
    pub(super) mode: Mode,
    pub(super) started: Instant,
    pub(super) task: Task,
    /// What the task is called that it is.
    pub(super) name: &'a str,
    /// What it cost, as far as there are prices.
    pub(super) usd: f64,
    pub(super) doing: String,
    pub(super) outlet: Outlet,
    /// The last text that it said.
    pub(super) said: String,
    pub(super) failure: Option<String>,
    pub(super) model: (String, crate::provider::catalog::ModelSpec),
}

impl<'a> Watch<'a> {
    /// Follows the turn to its end.
    pub(super) async fn over(
        &mut self,
        turn: impl Future<Output = TurnEnd>,
        inbox: &mut mpsc::Receiver<Event>,
        standing: &mut watch::Receiver<Standing>,
        definition: &Definition,
    ) -> TurnEnd {
        tokio::pin!(turn);
        let (mut known, mut level) = (standing.borrow().granted.len(), standing.borrow().thinking);
        let end = loop {
            tokio::select! {
                biased;
                Some(event) = inbox.recv() => self.event(event).await,
                Ok(()) = standing.changed() => {
                    let Standing { mode, granted, thinking } = standing.borrow_and_update().clone();
                    let news = granted.get(known..).unwrap_or_default();
                    news.iter().for_each(|(rule, source)| self.below.give(rule.clone(), *source));
                    known = granted.len();
                    self.mode = mode;
                    self.below.set_mode(definition.mode_below(mode));
                    if thinking != level && definition.thinking.is_none() {
                        self.below.set_thinking(thinking);
                    }
                    level = thinking;
                }
                Some((id, answer)) = self.asks.next() => {
                    self.open.retain(|(open, _)| *open != id);
                    if let Some(answer) = answer {
                        self.below.answer(id, answer);
                    }
                }
                end = &mut turn => break end,
            }
        };
        while let Ok(event) = inbox.try_recv() {
            self.event(event).await;
        }
        end
    }

    pub(super) async fn tell(&mut self, step: Step) {
        self.task.step = step;
        let elapsed = (self.launcher.clock)().duration_since(self.started);
        self.task.millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let Task { tools, tokens, .. } = self.task;
        let doing = match &self.task.step {
            Step::Doing { what } => Some(what.clone()),
            Step::Started | Step::Done { .. } => Some(String::new()),
            Step::Said { .. } => None,
        };
        self.doing = doing.unwrap_or_else(|| std::mem::take(&mut self.doing));
        let figures = Figures { doing: self.doing.clone(), tools, tokens, usd: self.usd };
        self.launcher.board.at(self.name, figures);
        self.mailbox.emit(Event::Task(self.task.clone())).await;
    }

    pub(super) fn spent(&mut self, model: String, usage: Usage) {
        self.usd += self.model.1.cost(&usage).unwrap_or_default();
        let (what, spec) = (self.task.agent.clone(), self.model.1.clone());
        // The round that heard this is still there: it waits for this run.
        let _ = self.launcher.words.send(Word::Spent { what, model, spec, usage });
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Ask(ask) => {
                let waiting = self.open.len();
                self.ask(ask.id, ask.question);
                if self.open.len() > waiting {
                    self.tell(Step::Doing { what: "waiting for your answer".into() }).await;
                }
            }
            Event::AskClosed { id } => {
                if let Some((_, token)) = self.open.iter().find(|(open, _)| *open == id) {
                    token.cancel();
                }
            }
            Event::Item(Item::CallStarted { tool, title, .. }) => {
                self.task.tools += 1;
                let project = self.launcher.policy.places.project.to_string_lossy();
                let short = title.strip_prefix(&*project).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&title);
                let what = if short.is_empty() { tool } else { format!("{tool}({short})") };
                self.outlet.write(&format!("> {what}\n"));
                self.tell(Step::Doing { what }).await;
            }
            Event::Item(Item::Message { message, .. }) => {
                if message.kind == Kind::Reply {
                    let text = message.text();
                    if !text.trim().is_empty() {
                        self.outlet.write(&format!("{}\n", text.trim_end()));
                        self.said = text;
                    }
                    if let Some(usage) = message.usage {
                        let model = self.model.0.clone();
                        self.spent(model, usage);
                    }
                }
                self.tell(Step::Said { message }).await;
            }
            Event::Usage(usage) => self.task.tokens = usage.context,
            Event::Retrying { attempt, of, .. } => {
                self.tell(Step::Doing { what: format!("waiting for the provider, attempt {attempt} of {of}") }).await;
            }
            Event::Error { text, .. } => self.failure = Some(text),
            Event::Notice { text } => {
                let text = format!("{}: {text}", self.task.agent);
                self.mailbox.emit(Event::Notice { text }).await;
            }
            hook @ Event::Hook { .. } => self.mailbox.emit(hook).await,
            _ => {}
        }
    }

    /// Puts a question of the sub-agent to the user, in its name.
    fn ask(&mut self, id: AskId, question: Question) {
        // A definition may plan below a session that declines whatever is not allowed.
        if self.mode == Mode::DontAsk && matches!(question, Question::Permission { .. }) {
            let told = "Mode dontAsk denies what is not allowed.".to_owned();
            self.below.answer(id, Answer::Nobody { told });
            return;
        }
        let asker = Asker { agent: self.task.agent.clone(), description: self.task.description.clone() };
        let token = CancellationToken::new();
        self.open.push((id, token.clone()));
        let mailbox = self.mailbox;
        self.asks.push(Box::pin(async move { (id, mailbox.ask_as(Some(asker), question, &token).await) }));
    }
}
