//! What may be spent: a word at 80 % of a budget, and an end between two requests where it is used up.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

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

impl Limits {
    fn is_unlimited(&self) -> bool {
        [self.request, self.turn, self.session, self.day].iter().all(Option::is_none)
    }
}

/// What an agent and those below it have spent, in all their requests.
#[derive(Debug, Default)]
pub(super) struct Purse {
    ledger: Ledger,
    /// Dollars that requests under way may cost, and who hears when less is held.
    held: f64,
    freed: Arc<Notify>,
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

/// Money that is set aside for a request, until this is dropped.
#[derive(Debug)]
struct Held {
    purse: Arc<Mutex<Purse>>,
    usd: f64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut purse = self.purse.lock().unwrap_or_else(PoisonError::into_inner);
        // Sums of fractions: what nobody holds is nothing.
        purse.held = if purse.held - self.usd < 1e-9 { 0.0 } else { purse.held - self.usd };
        purse.freed.notify_waiters();
    }
}

/// An agent's hand in the purse.
#[derive(Debug, Default)]
pub(super) struct Budget {
    pub(super) purse: Arc<Mutex<Purse>>,
    /// For the request under way.
    held: Option<Held>,
    /// The session, and how many of its requests beside the conversation the purse has paid.
    of: (String, usize),
}

impl Budget {
    pub(super) fn new(limits: &Limits, session: &Session) -> Budget {
        let of = (session.id().to_owned(), session.facts().spent.len());
        let purse = Purse { ledger: Ledger::new(limits.ledger.clone()), ..Purse::default() };
        Budget { purse: Arc::new(Mutex::new(purse)), held: None, of }
    }

    /// No request is under way.
    pub(super) fn release(&mut self) {
        self.held = None;
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

/// Pays for what was spent since it was done last: a reply, for which nothing is set aside any more, and requests beside the
/// conversation.
pub fn record(agent: &mut Agent, reply: Option<Usage>) {
    pay(agent, reply);
    if reply.is_some() {
        agent.budget.release();
    }
}

fn pay(agent: &mut Agent, reply: Option<Usage>) {
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

/// Whether a budget allows no further request; says so, and warns before. Where it does, the money is set aside until the
/// reply is paid for: what agents at work have set aside together is no more than what is left. One waits for the others
/// where it would be; one alone may overdraw a budget by its last request. Ends early when cancelled.
pub(super) async fn exhausted(agent: &mut Agent, mailbox: &Mailbox, cancel: &CancellationToken) -> bool {
    record(agent, None);
    agent.budget.held = None;
    if agent.settings.budget.is_unlimited() {
        return false;
    }
    // It reads a line of the log.
    let input = super::prefix::forecast(agent, Next::AsIs).usd;
    let output = agent.model.spec.prices.map(|prices| f64::from(agent.model.spec.max_output) * prices.output / 1e6);
    let most = input.unwrap_or_default() + output.unwrap_or_default();
    loop {
        let freed = agent.budget.purse.lock().unwrap_or_else(PoisonError::into_inner).freed.clone();
        let mut freed = std::pin::pin!(freed.notified());
        freed.as_mut().enable();
        let (verdict, notices) = look(agent, input, most, Of::Turn);
        for text in notices {
            mailbox.emit(Event::Notice { text }).await;
        }
        match verdict {
            Verdict::Free => return false,
            Verdict::Over(what) => {
                mailbox.emit(Event::Notice { text: format!("Stopped: the {what}") }).await;
                return true;
            }
            Verdict::Wait => tokio::select! {
                () = cancel.cancelled() => return false,
                () = freed => {}
            },
        }
    }
}

/// Whether a turn that is done used a budget up; says so. A sub-agent leaves that to the agent above.
pub(super) async fn overdrawn(agent: &mut Agent, mailbox: &Mailbox) -> bool {
    record(agent, None);
    agent.budget.held = None;
    if agent.conversation.above.is_some() {
        return false;
    }
    let (verdict, notices) = look(agent, Some(0.0), 0.0, Of::Turn);
    agent.budget.held = None;
    let over = if let Verdict::Over(what) = &verdict { Some(format!("The {what}")) } else { None };
    for text in notices.into_iter().chain(over) {
        mailbox.emit(Event::Notice { text }).await;
    }
    matches!(verdict, Verdict::Over(_))
}

/// Which budget allows no request that the user asks for outside a turn.
pub(super) fn refused(agent: &mut Agent) -> Option<String> {
    record(agent, None);
    let request = agent.settings.budget.request.and_then(|_| super::prefix::forecast(agent, Next::AsIs).usd);
    let verdict = look(agent, request, 0.0, Of::Session).0;
    agent.budget.held = None;
    if let Verdict::Over(what) = verdict { Some(what) } else { None }
}

/// What a request is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Turn,
    Session,
}

/// What budgets say of a request.
enum Verdict {
    /// It may be sent; what it costs at the most is set aside.
    Free,
    /// It may be too much beside what others have set aside.
    Wait,
    /// Which one is used up.
    Over(String),
}

/// Whether a request is allowed that costs so much at the most, and what is to be said. `request` is what it costs at the
/// least.
fn look(agent: &mut Agent, request: Option<f64>, most: f64, of: Of) -> (Verdict, Vec<String>) {
    let Agent { budget, conversation, spending, settings, runs, .. } = agent;
    let (limits, session) = (&settings.budget, &conversation.session);
    let mut notices = Vec::new();
    if limits.is_unlimited() {
        return (Verdict::Free, notices);
    }
    let mut purse = budget.purse.lock().unwrap_or_else(PoisonError::into_inner);
    let Purse { ledger, turn, spent, told, held, .. } = &mut *purse;
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
    // What other processes spend is not known then, and they do not know of this one.
    if let Some(trouble) = ledger.trouble().filter(|_| day.is_some()) {
        let over =
            format!("budget for the day cannot be checked: {trouble}. Repair or delete it, or unset `budget.day_usd`.");
        return (Verdict::Over(over), notices);
    }
    let rows = [
        ("request", limits.request, request.into()),
        ("turn", limits.turn.filter(|_| of == Of::Turn), *turn),
        ("session", limits.session, spent),
        ("day", limits.day, day.or(Some(0.0)).into()),
    ];
    let mut waits = false;
    for (name, limit, Sum { usd, unpriced }) in rows {
        let Some(limit) = limit else { continue };
        let of = format!("${usd:.2} of ${limit:.2} (`budget.{name}_usd`)");
        if usd >= limit {
            let over = format!("budget for the {name} is used up: {of}. `/config` raises it.");
            return (Verdict::Over(over), notices);
        }
        waits |= name != "request" && *held > 0.0 && usd + *held + most > limit;
        if unpriced && told.insert(name) {
            notices.push(format!(
                "`budget.{name}_usd` cannot be fully checked: the catalog has no price for a model that was used."
            ));
        }
        if usd >= limit * 0.8 && told.insert(name) {
            notices.push(format!("The budget for the {name} is almost used up: {of}."));
        }
    }
    if waits {
        return (Verdict::Wait, notices);
    }
    *held += most;
    budget.held = Some(Held { purse: budget.purse.clone(), usd: most });
    (Verdict::Free, notices)
}
