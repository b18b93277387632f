//! What the requests of a turn and of a session cost.

use std::collections::HashMap;
use std::time::Duration;

use super::Model;
use super::skill_runs::Lookup;
use crate::message::Usage;
use crate::protocol::{ModelShare, Turn};
use crate::provider::catalog::ModelSpec;
use crate::session::entry::EntryKind;
use crate::session::{self, Session};

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
    /// How long models were waited for.
    pub(super) waited: Duration,
}

impl Default for TurnUsage {
    fn default() -> TurnUsage {
        TurnUsage {
            answered: false,
            replies: Usage::default(),
            beside: Usage::default(),
            beside_cost: Some(0.0),
            waited: Duration::ZERO,
        }
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

/// What an agent's requests cost.
pub(super) struct Spending {
    pub(super) turn: TurnUsage,
    /// Models that were in use, by name, for their prices.
    used: HashMap<String, ModelSpec>,
}

impl Spending {
    pub(super) fn new(model: &Model) -> Spending {
        let mut spending = Spending { turn: TurnUsage::default(), used: HashMap::new() };
        spending.know(model.name(), &model.spec);
        spending
    }

    /// Remembers the prices of a model.
    pub(super) fn know(&mut self, model: String, spec: &ModelSpec) {
        self.used.insert(model, spec.clone());
    }

    /// Notes what a request to some model cost whose answer is not a reply of the conversation.
    pub(super) fn note(
        &mut self,
        session: &mut Session,
        what: &str,
        (model, spec): (String, &ModelSpec),
        usage: Usage,
    ) -> Result<(), session::Error> {
        self.turn.add_beside(spec, &usage);
        session.append(EntryKind::Spent { what: what.into(), model, usage })?;
        Ok(())
    }

    /// What the turn under way cost so far, with replies of this model; none where a model has no price.
    pub(super) fn turn_cost(&self, spec: &ModelSpec) -> Option<f64> {
        let replies = spec.cost(&self.turn.replies);
        replies.zip(self.turn.beside_cost).map(|(replies, beside)| replies + beside)
    }

    /// What requests to a model cost; the catalog knows what was not in use yet.
    pub(super) fn price(&mut self, model: &str, usage: &Usage, models: &Lookup) -> Option<f64> {
        if !self.used.contains_key(model)
            && let Ok((found, _)) = models(model)
        {
            self.know(model.to_owned(), &found.spec);
        }
        self.used.get(model)?.cost(usage)
    }

    /// What each model was asked for in the session, and how long the turn waited.
    pub(super) fn spent(&self, session: &Session) -> Turn {
        let usage = session.facts().usage_by_model().into_iter();
        let share = |(model, usage): (String, Usage)| {
            let spec = self.used.get(&model);
            let cost_usd = spec.and_then(|spec| spec.cost(&usage));
            ModelShare { cost_usd, limits: spec.map(|spec| (spec.window, spec.max_output)), model, usage }
        };
        let api_millis = u64::try_from(self.turn.waited.as_millis()).unwrap_or(u64::MAX);
        Turn::Spent { api_millis, models: usage.map(share).collect() }
    }

    /// What the session cost; none where a model has no price.
    pub(super) fn session_cost(&self, session: &Session) -> Option<f64> {
        let usage = session.facts().usage_by_model().into_iter();
        usage.map(|(name, usage)| self.used.get(&name)?.cost(&usage)).sum()
    }
}
