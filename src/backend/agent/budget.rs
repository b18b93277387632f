//! What may be spent: a word at 80 % of a budget, and an end between two requests where it is used up.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::Agent;
use super::mailbox::Mailbox;
use super::prefix::Next;
use super::spending::TurnUsage;
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

/// What an agent and those below it have spent, in all their requests.
#[derive(Debug, Default)]
pub(super) struct Purse {
    ledger: Ledger,
    /// Whose money it is: the session's at the top.
    session: String,
    turn: Sum,
    /// None: not asked for yet. The log knows what was spent until then.
    spent: Option<Sum>,
    told: BTreeSet<&'static str>,
}

/// Dollars, as far as there are prices.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    usd: f64,
    unpriced: bool,
}

impl Sum {
    fn add(&mut self, usd: Option<f64>) {
        self.usd += usd.unwrap_or_default();
        self.unpriced |= usd.is_none();
    }
}

impl From<Option<f64>> for Sum {
    fn from(usd: Option<f64>) -> Sum {
        let mut sum = Sum::default();
        sum.add(usd);
        sum
    }
}

/// An agent's hand in the purse.
#[derive(Debug, Default)]
pub(super) struct Budget {
    pub(super) purse: Arc<Mutex<Purse>>,
    /// The session, and how many of its requests beside the conversation the purse has paid.
    of: (String, usize),
}

impl Budget {
    pub(super) fn new(limits: &Limits, session: &Session) -> Budget {
        let of = (session.id().to_owned(), session.facts().spent.len());
        let purse = Purse { ledger: Ledger::new(limits.ledger.clone()), ..Purse::default() };
        Budget { purse: Arc::new(Mutex::new(purse)), of }
    }

    /// What the log has until now is paid: a sub-agent did it.
    pub(super) fn paid(&mut self, session: &Session) {
        self.of.1 = session.facts().spent.len();
    }
}

/// Begins to count what a turn costs; one of a sub-agent is part of the turn above.
pub(super) fn begin_turn(agent: &mut Agent) {
    agent.spending.turn = TurnUsage::default();
    record(agent, None);
    if agent.conversation.above.is_none() {
        let mut purse = agent.budget.purse.lock().unwrap_or_else(PoisonError::into_inner);
        purse.turn = Sum::default();
        purse.told.remove("turn");
    }
}

/// Pays for what was spent since it was done last: a reply, and requests beside the conversation.
pub fn record(agent: &mut Agent, reply: Option<Usage>) {
    let Agent { budget, conversation, spending, model, runs, .. } = agent;
    let session = &conversation.session;
    let spent = &session.facts().spent;
    let mut purse = budget.purse.lock().unwrap_or_else(PoisonError::into_inner);
    if budget.of.0 != session.id() {
        budget.of = (session.id().to_owned(), spent.len());
    }
    if conversation.above.is_none() && purse.session != session.id() {
        (purse.session, purse.spent) = (session.id().to_owned(), None);
    }
    let beside = spent[budget.of.1.min(spent.len())..].iter().map(|spent| (spent.model.clone(), spent.usage));
    let reply = reply.map(|usage| (model.name(), usage));
    for (model, usage) in beside.chain(reply).filter(|(_, usage)| *usage != Usage::default()) {
        let usd = spending.price(&model, &usage, &runs.settings.models);
        purse.turn.add(usd);
        if let Some(spent) = &mut purse.spent {
            spent.add(usd);
        }
        let line = Line { ts: session.now(), session: purse.session.clone(), model, usage, usd };
        purse.ledger.add(&line);
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
    let (over, notices) = look(agent, request, begins);
    for text in notices {
        mailbox.emit(Event::Notice { text }).await;
    }
    over
}

/// Whether a budget is used up, and what is to be said.
fn look(agent: &mut Agent, request: Option<f64>, begins: &str) -> (bool, Vec<String>) {
    let Agent { budget, conversation, spending, settings, runs, .. } = agent;
    let (limits, session) = (&settings.budget, &conversation.session);
    let mut notices = Vec::new();
    if [limits.request, limits.turn, limits.session, limits.day].iter().all(Option::is_none) {
        return (false, notices);
    }
    let mut purse = budget.purse.lock().unwrap_or_else(PoisonError::into_inner);
    let Purse { ledger, turn, spent, told, .. } = &mut *purse;
    let spent = *spent.get_or_insert_with(|| {
        let mut sum = Sum::default();
        for (model, usage) in
            session.facts().usage_by_model().into_iter().filter(|(_, usage)| *usage != Usage::default())
        {
            sum.add(spending.price(&model, &usage, &runs.settings.models));
        }
        sum
    });
    let day = limits.day.map(|_| ledger.of_day(&session.now()));
    if let Some(trouble) = ledger.trouble().filter(|_| day.is_some() && told.insert("ledger")) {
        notices.push(format!("`budget.day_usd` counts this process only: `ledger.jsonl` cannot be used ({trouble})."));
    }
    let rows = [
        ("request", limits.request, request.into()),
        ("turn", limits.turn, *turn),
        ("session", limits.session, spent),
        ("day", limits.day, day.or(Some(0.0)).into()),
    ];
    for (name, limit, Sum { usd, unpriced }) in rows {
        let Some(limit) = limit else { continue };
        let of = format!("${usd:.2} of ${limit:.2} (`budget.{name}_usd`)");
        if usd >= limit {
            notices.push(format!("{begins} budget for the {name} is used up: {of}. `/config` raises it."));
            return (true, notices);
        }
        if unpriced && told.insert(name) {
            notices.push(format!(
                "`budget.{name}_usd` cannot be fully checked: the catalog has no price for a model that was used."
            ));
        }
        if usd >= limit * 0.8 && told.insert(name) {
            notices.push(format!("The budget for the {name} is almost used up: {of}."));
        }
    }
    (false, notices)
}
