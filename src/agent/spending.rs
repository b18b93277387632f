//! What the requests of a turn and of a session cost.

use std::sync::PoisonError;

use super::{Agent, host};
use crate::message::Usage;
use crate::protocol::UsageInfo;
use crate::provider::catalog::ModelSpec;
use crate::session;
use crate::session::entry::EntryKind;

/// What the requests of a turn cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnUsage {
    /// A reply came, also when a boundary has put it away since.
    pub(super) answered: bool,
    pub(super) replies: Usage,
    /// Requests of the turn whose answers are not replies; each has a `Spent` entry.
    beside: Usage,
    /// What these cost by the prices of their models; none where one has no price.
    beside_cost: Option<f64>,
}

impl Default for TurnUsage {
    fn default() -> TurnUsage {
        TurnUsage { answered: false, replies: Usage::default(), beside: Usage::default(), beside_cost: Some(0.0) }
    }
}

impl TurnUsage {
    /// Counts what was replied until now for the model that did it.
    pub(super) fn settle(&mut self, spec: &ModelSpec) {
        let earlier = std::mem::take(&mut self.replies);
        self.add_beside(spec, &earlier);
    }

    fn add_beside(&mut self, spec: &ModelSpec, usage: &Usage) {
        let (sum, cost) = (self.beside_cost, spec.cost(usage));
        self.beside_cost = sum.zip(cost).map(|(sum, cost)| sum + cost);
        self.beside.add(usage);
    }

    pub(super) fn total(&self) -> Usage {
        let mut total = self.replies;
        total.add(&self.beside);
        total
    }
}

impl Agent {
    pub(super) fn record_searches(&mut self, host: &host::AgentHost<'_>) -> Result<(), session::Error> {
        let spent = std::mem::take(&mut *host.spent.lock().unwrap_or_else(PoisonError::into_inner));
        for usage in spent {
            self.spend("web search", usage)?;
        }
        Ok(())
    }

    /// Notes what a request cost whose answer is not a reply of the conversation.
    pub(super) fn spend(&mut self, what: &str, usage: Usage) -> Result<(), session::Error> {
        let (model, spec) = (self.model.name(), self.model.spec.clone());
        self.spend_of(what, model, &spec, usage)
    }

    /// Notes what a request to some model cost.
    pub(super) fn spend_of(
        &mut self,
        what: &str,
        model: String,
        spec: &ModelSpec,
        usage: Usage,
    ) -> Result<(), session::Error> {
        self.turn_usage.add_beside(spec, &usage);
        self.session.append(EntryKind::Spent { what: what.into(), model, usage })?;
        Ok(())
    }

    /// What the turn under way cost so far; none where a model has no price.
    pub(super) fn turn_cost(&self) -> Option<f64> {
        let replies = self.model.spec.cost(&self.turn_usage.replies);
        replies.zip(self.turn_usage.beside_cost).map(|(replies, beside)| replies + beside)
    }

    /// Where the window is, and what the session cost.
    pub fn usage_info(&self) -> UsageInfo {
        let facts = self.session.facts();
        let costs = facts.usage_by_model().into_iter().map(|(name, usage)| self.used.get(&name)?.cost(&usage));
        let (left, fullness) = self.fullness();
        UsageInfo {
            total: facts.usage(),
            cost_usd: costs.sum(),
            context: self.used(),
            window: self.model.spec.window,
            left,
            fullness,
        }
    }
}
