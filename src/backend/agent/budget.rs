//! What may be spent: a word at 80 % of a budget, and an end between two requests where it is used up.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Agent;
use super::mailbox::Mailbox;
use super::prefix::Next;
use crate::message::Usage;
use crate::protocol::Event;
use crate::session::Session;
use crate::session::ledger::{Ledger, Line};

/// Budgets in dollars; none: no limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    pub request: Option<f64>,
    pub turn: Option<f64>,
    pub session: Option<f64>,
    /// Of all processes together.
    pub day: Option<f64>,
    /// Where these write down what they spend.
    pub ledger: Option<PathBuf>,
}

/// What was said and written of it.
#[derive(Debug, Default)]
pub(super) struct Budget {
    ledger: Ledger,
    /// The session, and how many of its requests beside the conversation the ledger has.
    of: (String, usize),
    told: BTreeSet<&'static str>,
}

impl Budget {
    pub(super) fn new(limits: &Limits, session: &Session) -> Budget {
        let of = (session.id().to_owned(), session.facts().spent.len());
        Budget { ledger: Ledger::new(limits.ledger.clone()), of, told: BTreeSet::new() }
    }
}

/// Writes down what was spent since it was done last: a reply, and requests beside the conversation. What a sub-agent
/// spends, the agent above is told.
pub fn record(agent: &mut Agent, reply: Option<Usage>) {
    let Agent { budget, conversation, spending, model, .. } = agent;
    let session = &conversation.session;
    if conversation.above.is_some() {
        return;
    }
    let spent = &session.facts().spent;
    if budget.of.0 != session.id() {
        budget.of = (session.id().to_owned(), spent.len());
    }
    let beside = spent[budget.of.1.min(spent.len())..].iter().map(|spent| (spent.model.clone(), spent.usage));
    let reply = reply.map(|usage| (model.name(), usage));
    for (model, usage) in beside.chain(reply).filter(|(_, usage)| *usage != Usage::default()) {
        let usd = spending.price(&model, &usage);
        let line = Line { ts: session.now(), session: session.id().to_owned(), model, usage, usd };
        if let Err(error) = budget.ledger.add(&line) {
            tracing::warn!(%error, "the ledger cannot be written");
        }
    }
    budget.of.1 = spent.len();
}

/// Whether a budget allows no further request; says so, and warns before.
pub(super) async fn exhausted(agent: &mut Agent, mailbox: &Mailbox) -> bool {
    // It reads a line of the log.
    let request = agent.settings.budget.request.and_then(|_| super::prefix::forecast(agent, Next::AsIs).usd);
    used_up(agent, request, "Stopped: the", mailbox).await
}

/// Whether a turn that is done used a budget up; says so. A sub-agent leaves that to the agent above.
pub(super) async fn overdrawn(agent: &mut Agent, mailbox: &Mailbox) -> bool {
    agent.conversation.above.is_none() && used_up(agent, Some(0.0), "The", mailbox).await
}

async fn used_up(agent: &mut Agent, request: Option<f64>, begins: &str, mailbox: &Mailbox) -> bool {
    record(agent, None);
    let Limits { request: one, turn, session, day, .. } = &agent.settings.budget;
    if [one, turn, session, day].into_iter().all(Option::is_none) {
        return false;
    }
    let Agent { budget, conversation, spending, model, settings, .. } = agent;
    let (limits, session) = (&settings.budget, &conversation.session);
    let day = limits.day.map(|_| budget.ledger.of_day(&session.now()));
    let rows = [
        ("request", limits.request, request),
        ("turn", limits.turn, spending.turn_cost(&model.spec)),
        ("session", limits.session, spending.session_cost(session)),
        ("day", limits.day, day),
    ];
    for (name, limit, spent) in rows {
        let Some(limit) = limit else { continue };
        let Some(spent) = spent else {
            if budget.told.insert(name) {
                let text = format!("`budget.{name}_usd` cannot be checked: the catalog has no price for this model.");
                mailbox.emit(Event::Notice { text }).await;
            }
            continue;
        };
        let of = format!("${spent:.2} of ${limit:.2} (`budget.{name}_usd`)");
        if spent >= limit {
            let text = format!("{begins} budget for the {name} is used up: {of}. `/config` raises it.");
            mailbox.emit(Event::Notice { text }).await;
            return true;
        }
        if spent >= limit * 0.8 && budget.told.insert(name) {
            let text = format!("The budget for the {name} is almost used up: {of}.");
            mailbox.emit(Event::Notice { text }).await;
        }
    }
    false
}
