//! Clears old tool results: which ones, and whether that pays.

use std::collections::{HashMap, HashSet};

use super::{MicroTrigger, Terms, Thresholds, trim};
use crate::message::tokens::Load;
use crate::message::{CallId, Content, Outcome, Role};
use crate::provider::catalog::Prices;
use crate::session::Context;
use crate::session::context::Held;

/// Results of up to so many tokens stay: clearing them loses more than it frees.
const SMALL: u64 = 30;

/// Relations of the usual price lists, for models whose prices are unknown.
const USUAL: Prices = Prices { input: 1.0, output: 5.0, cache_read: 0.1, cache_write: 1.25 };

/// Who wants results cleared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trigger {
    /// The next request, if it is large enough and clearing pays.
    /// `cold`: the provider's cache has nothing of the conversation any more.
    Automatic { used: u64, marks: Thresholds, prices: Option<Prices>, cold: bool },
    /// The user; down to so many tokens of results, or the configured ones.
    Asked { target: Option<u64> },
    /// A summary is about to be made of what is left.
    Summary,
}

/// One result to clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clear {
    pub call: CallId,
    /// Estimate of its content.
    pub tokens: u64,
    /// Its content has to be in a file first.
    pub persist: bool,
}

/// Results to clear, oldest first; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub clear: Vec<Clear>,
    /// Tokens by estimate.
    pub saved: u64,
    /// What clearing costs and brings, when that was weighed.
    pub balance: Option<Balance>,
}

/// Dollars, or shares of the usual prices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// To refill the provider's cache after the first result that is cleared.
    pub cost: f64,
    /// Input that is not sent again, and the part of the next summary that is put off.
    pub gain: f64,
    /// Tokens whose cached prefix is lost.
    pub invalidated: u64,
}

/// Whether a result can be cleared at all: its tool allows it, it is not cleared yet, and holds no media.
pub(super) fn eligible(held: &Held<'_>, clearable: &dyn Fn(&str) -> bool) -> bool {
    let text = held.result.content.iter().all(|part| matches!(part, Content::Text { .. }));
    !held.replaced && text && clearable(held.tool)
}

/// How a result is cleared, and the tokens that this frees. None when its marker would weigh as much.
pub(super) fn clear(context: &Context, terms: Terms<'_>, held: &Held<'_>) -> Option<(Clear, u64)> {
    let (call, tokens) = (&held.result.id, held.load.text);
    let persist = tokens > terms.limits.persist_above;
    // The extension depends on the content: reckon with the longer one.
    let saved = persist.then(|| terms.store.spill_path(call.as_str(), "json"));
    let marker = context.cleared(call, saved.as_deref())?.text.max(SMALL);
    (tokens > marker).then(|| (Clear { call: call.clone(), tokens, persist }, tokens - marker))
}

/// Position of the first message that the model has not read yet: what follows its last reply.
pub(super) fn unread_from(context: &Context) -> usize {
    let last = context.shown().rposition(|shown| shown.message.role == Role::Assistant);
    last.map_or(0, |last| last + 1)
}

/// Chooses what to clear; none when there is nothing, or not enough, to gain. What was cleared is never chosen again.
pub fn plan(context: &Context, terms: Terms<'_>, trigger: Trigger) -> Option<Plan> {
    let Terms { settings, limits, clearable, .. } = terms;
    let weighs = settings.micro.weigh_cost && settings.micro.trigger != MicroTrigger::Always;
    // Below the warning mark there is nothing but money to gain.
    let anywhere = match settings.micro.trigger {
        MicroTrigger::Paying => weighs,
        MicroTrigger::Warning => false,
        MicroTrigger::Always => true,
    };
    if matches!(trigger, Trigger::Automatic { used, marks, .. } if !anywhere && used < marks.warning.max(1)) {
        return None;
    }
    let unread = unread_from(context);
    let candidates: Vec<Held<'_>> = context.whole_results().filter(|held| eligible(held, clearable)).collect();
    let total: u64 = candidates.iter().map(|held| held.load.text).sum();
    let target = match trigger {
        Trigger::Asked { target: Some(target) } => target,
        _ => limits.micro_target,
    };
    let old = candidates.len().saturating_sub(settings.micro.keep_last);
    // What would have to be summarized loses more: even the newest that were read, where they take half of the room.
    let (over, room) = match trigger {
        Trigger::Automatic { used, marks, .. } if used >= marks.tiers.min(marks.blocking) => {
            let goal = trim::goal(marks.target, terms.meter);
            (used.saturating_sub(goal), terms.meter.room(goal) / 2)
        }
        _ => (0, 0),
    };
    let repeated = if total > target { repeated(context, &candidates) } else { HashSet::new() };
    let mut order: Vec<usize> = (0..candidates.len()).filter(|at| candidates[*at].index < unread).collect();
    // Stable: of those that nothing repeats the oldest goes first.
    order.sort_by_key(|at| !repeated.contains(at));
    let (mut marked, mut saved) = (0, 0);
    let mut clear = Vec::new();
    for at in order {
        let held = &candidates[at];
        let enough = at >= old || total - marked <= target;
        if enough && (saved >= over || total - marked <= room) {
            continue;
        }
        marked += held.load.text;
        if let Some((one, freed)) = self::clear(context, terms, held) {
            saved += freed;
            clear.push((at, one));
        }
    }
    clear.sort_by_key(|(at, _)| *at);
    let first = clear.first().map(|(at, _)| candidates[*at].index)?;
    let clear = clear.into_iter().map(|(_, clear)| clear).collect();
    let mut balance = None;
    if let Trigger::Automatic { used, marks, prices, cold } = trigger {
        if saved < limits.micro_saving && over == 0 {
            return None;
        }
        // What the model has not read yet is in no cache.
        let behind: u64 = context.shown_from(first).take(unread - first).map(|shown| shown.load.total()).sum();
        let invalidated = if cold { 0 } else { behind.saturating_sub(saved) };
        let clearing = Clearing { used, marks, saved, invalidated, cold };
        let past = Past::of(context, &candidates, target);
        let weighed = clearing.weigh(terms, prices.filter(|prices| prices.input > 0.0).unwrap_or(USUAL), past);
        // From the blocking mark on room matters more than money.
        if weighs && weighed.cost > weighed.gain && used < marks.blocking {
            return None;
        }
        balance = Some(weighed);
    }
    Some(Plan { clear, saved, balance })
}

/// The result that leaves first when results are cleared: until then everything before it stays the same.
pub fn frontier(context: &Context, terms: Terms<'_>) -> Option<CallId> {
    let mut whole = context.whole_results().filter(|held| eligible(held, terms.clearable));
    whole.find(|held| clear(context, terms, held).is_some()).map(|held| held.result.id.clone())
}

/// Positions of the candidates that a later one repeats: the same call was made again since, so that they are out of date.
fn repeated(context: &Context, candidates: &[Held<'_>]) -> HashSet<usize> {
    let calls = context.shown().flat_map(|shown| shown.message.calls());
    let inputs: HashMap<&CallId, &serde_json::Value> = calls.map(|call| (&call.id, &call.input)).collect();
    let mut later = HashSet::new();
    let repeats = |at: &usize| {
        let Held { tool, result, .. } = candidates[*at];
        let input = inputs.get(&result.id).filter(|_| result.outcome == Outcome::Ok);
        input.is_some_and(|input| !later.insert((tool, *input)))
    };
    (0..candidates.len()).rev().filter(repeats).collect()
}

/// What the results above the target have come to so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Past {
    /// Tokens above the target, summed over the requests that were sent with them.
    sent: u64,
    /// Those requests.
    requests: u64,
    /// What the context has grown by since the first of them.
    growth: Load,
}

impl Past {
    /// Costs what came since the results outgrew the target, not the whole context.
    fn of(context: &Context, candidates: &[Held<'_>], target: u64) -> Past {
        let (mut past, mut sum) = (Past::default(), 0);
        let outgrown = candidates.iter().position(|held| {
            sum += held.load.text;
            sum > target
        });
        let Some(outgrown) = outgrown else { return past };
        let (first, mut later) = (candidates[outgrown].index, candidates[outgrown + 1..].iter().peekable());
        for (index, shown) in (first..).zip(context.shown_from(first)) {
            while let Some(held) = later.next_if(|held| held.index <= index) {
                sum += held.load.text;
            }
            past.growth = past.growth + shown.load;
            if shown.message.role == Role::Assistant {
                past.sent += sum - target;
                past.requests += 1;
            }
        }
        past
    }
}

/// What is to be weighed.
struct Clearing {
    used: u64,
    marks: Thresholds,
    saved: u64,
    invalidated: u64,
    cold: bool,
}

impl Clearing {
    /// What clearing costs once, against what it saves. Nobody knows how many requests are to come; if there are as many
    /// as there were, old results will cost once more what they have cost so far. Clearing as soon as that is what
    /// clearing costs never pays more than twice of what was necessary, and over a long session nearly the least.
    fn weigh(&self, Terms { limits, meter, .. }: Terms<'_>, prices: Prices, past: Past) -> Balance {
        let Clearing { used, marks, saved, invalidated, cold } = *self;
        let price = |tokens: u64, dollars: f64| tokens as f64 * dollars / 1e6;
        let again = (prices.uncached() - prices.cache_read).max(0.0);
        let cost = price(invalidated, again);
        // The next summary takes old results away for nothing.
        let left = marks.target.saturating_sub(used).saturating_mul(past.requests) / meter.of(past.growth).max(1);
        let unread = price(past.sent.min(saved.saturating_mul(left)), prices.cache_read);
        let mut put_off = 0.0;
        if used >= marks.warning {
            let kept = limits.keep_recent + limits.summary / 4;
            let summary =
                price(used, prices.cache_read) + price(limits.summary / 4, prices.output) + price(kept, again);
            let share = saved as f64 / used.saturating_sub(kept).max(saved) as f64;
            // A summary is put off by that share of its time, and takes the other share away, which now stays.
            put_off = summary * share * share;
        }
        // With a cold cache everything is paid for again except what leaves.
        let unpaid = if cold { price(saved, again) } else { 0.0 };
        Balance { cost, gain: unread + put_off + unpaid, invalidated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::{Talk, clearable, driver};
    use crate::compact::{Settings, apply};

    fn clears(talk: &Talk, window: u64, trigger: impl Fn(u64, Thresholds) -> Trigger) -> Vec<String> {
        let driver = driver(window, |_| {});
        let used = driver.used(talk.context());
        let plan = plan(talk.context(), driver.terms(talk.session.store(), &clearable), trigger(used, *driver.marks()));
        plan.map(|plan| plan.clear.iter().map(|clear| clear.call.to_string()).collect()).unwrap_or_default()
    }

    fn automatic(used: u64, marks: Thresholds) -> Trigger {
        Trigger::Automatic { used, marks, prices: None, cold: false }
    }

    #[test]
    fn the_oldest_go_until_the_target_is_reached() {
        let mut talk = Talk::new();
        talk.prompt(10);
        for _ in 0..5 {
            talk.round("Read", &[30_000]).round("Other", &[5_000]);
        }
        talk.reply(1);
        // 150k of Read do not fit: even of the newest three only what half of the room holds is kept.
        assert_eq!(clears(&talk, 200_000, automatic), ["call_1", "call_3", "call_5", "call_7"]);
        // 30k a piece, target 40k, three kept: 2 go although 90k stay.
        // Below the warning mark nothing happens by itself, but what was asked for does.
        assert_eq!(clears(&talk, 1_000_000, automatic), [""; 0]);
        assert_eq!(clears(&talk, 1_000_000, |_, _| Trigger::Asked { target: None }), ["call_1", "call_3"]);
        assert_eq!(clears(&talk, 1_000_000, |_, _| Trigger::Asked { target: Some(130_000) }), ["call_1"]);
        assert_eq!(clears(&talk, 1_000_000, |_, _| Trigger::Asked { target: Some(150_000) }), [""; 0]);
    }

    #[test]
    fn what_a_later_call_repeats_goes_first() {
        let mut talk = Talk::new();
        talk.prompt(10);
        // The fixture's calls of one tool all have the same input: those of `Read` repeat one another.
        talk.round("Bash", &[30_000]).round("Read", &[30_000]).round("Read", &[10, 10, 10]).reply(1);
        let asked = |tokens| move |_, _| Trigger::Asked { target: Some(tokens) };
        assert_eq!(clears(&talk, 1_000_000, asked(30_030)), ["call_2"]);
        assert_eq!(clears(&talk, 1_000_000, asked(0)), ["call_1", "call_2"]);
        let driver = driver(1_000_000, |_| {});
        let frontier = frontier(talk.context(), driver.terms(talk.session.store(), &clearable));
        assert_eq!(frontier, Some(CallId::nth(1)));
    }

    #[test]
    fn what_the_model_has_not_read_stays() {
        let mut talk = Talk::new();
        talk.prompt(10).round("Read", &[9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 9_000]);
        assert_eq!(clears(&talk, 32_000, |_, _| Trigger::Asked { target: Some(0) }), [""; 0]);
        talk.reply(1);
        assert_eq!(clears(&talk, 32_000, |_, _| Trigger::Asked { target: Some(0) }).len(), 6);
    }

    #[test]
    fn small_windows_clear_small_results() {
        let mut talk = Talk::new();
        talk.prompt(10);
        for _ in 0..7 {
            talk.round("Bash", &[500]);
        }
        talk.reply(1);
        assert_eq!(clears(&talk, 8_192, automatic), ["call_1", "call_2", "call_3", "call_4"]);
    }

    #[test]
    fn clearing_once_is_enough_and_saves_the_contents() {
        let mut talk = Talk::new();
        talk.prompt(10).round("Read", &[30_000, 10, 50_000, 30_000, 30_000, 30_000, 30_000]).reply(1);
        let driver = driver(200_000, |_| {});
        let asked = || Trigger::Asked { target: Some(0) };
        let plan = plan(talk.context(), driver.terms(talk.session.store(), &clearable), asked()).unwrap();
        let before = driver.used(talk.context());
        let cleared = apply::clear(&mut talk.session, &plan).unwrap();
        assert_eq!((cleared.results, cleared.tokens, cleared.kept), (3, 110_000, 0));
        // What is too short to gain anything stays.
        assert_eq!(talk.show(), "prompt c1+c2+c3+c4+c5+c6+c7 x1+r2+x3+x4+r5+r6+r7 reply");
        assert_eq!(super::plan(talk.context(), driver.terms(talk.session.store(), &clearable), asked()), None);
        assert!(before - driver.used(talk.context()) >= plan.saved);
        let saved = talk.session.store().dir().join("tool-results/call_3.txt");
        assert_eq!(std::fs::read_to_string(saved).unwrap(), crate::compact::fixture::text(50_000));
    }

    #[test]
    fn a_result_that_cannot_be_saved_stays() {
        let mut talk = Talk::new();
        talk.prompt(10).round("Read", &[900, 30_000, 1, 1, 1]).reply(1);
        std::fs::write(talk.session.store().dir().join("tool-results"), "in the way").unwrap();
        let driver = driver(200_000, |_| {});
        let plan =
            plan(talk.context(), driver.terms(talk.session.store(), &clearable), Trigger::Asked { target: Some(0) })
                .unwrap();
        let cleared = apply::clear(&mut talk.session, &plan).unwrap();
        assert_eq!((cleared.results, cleared.kept), (1, 1));
        assert_eq!(talk.show(), "prompt c1+c2+c3+c4+c5 x1+r2+r3+r4+r5 reply");
    }

    /// Requests that are sent after 150k tokens of results have come, until some of them are cleared; at most 50.
    fn waits(window: u64, prices: Option<Prices>, change: impl FnOnce(&mut Settings)) -> usize {
        waits_with((window, false), prices, change)
    }

    fn waits_with((window, cold): (u64, bool), prices: Option<Prices>, change: impl FnOnce(&mut Settings)) -> usize {
        let mut talk = Talk::new();
        talk.prompt(10).round("Read", &[10_000; 15]);
        let driver = driver(window, change);
        let sent = (0..50).position(|_| {
            talk.reply(100).prompt(100);
            let used = driver.used(talk.context());
            let trigger = Trigger::Automatic { used, marks: *driver.marks(), prices, cold };
            plan(talk.context(), driver.terms(talk.session.store(), &clearable), trigger).is_some()
        });
        sent.map_or(50, |sent| sent + 1)
    }

    #[test]
    fn clearing_has_to_pay() {
        let trigger = |trigger| move |settings: &mut Settings| settings.micro.trigger = trigger;
        let usual = |read| Some(Prices { cache_read: read, ..USUAL });
        // 110k tokens too many with each request, against 40k and more that are written to the cache once more.
        assert_eq!(waits(1_000_000, usual(0.1), |_| {}), 5);
        assert_eq!(waits(1_000_000, None, |_| {}), 5);
        // A free model takes its time, which is like the usual prices.
        let free = Prices { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };
        assert_eq!(waits(1_000_000, Some(free), |_| {}), 5);
        // The dearer it is to read from the cache, the sooner; without a cheaper cache nothing is lost.
        assert_eq!(waits(1_000_000, usual(0.5), |_| {}), 1);
        assert_eq!(waits(1_000_000, usual(1.25), |_| {}), 1);
        assert_eq!(waits(1_000_000, usual(0.05), |_| {}), 10);
        // Who charges nothing for writing to the cache charges for input that is not in it.
        let unwritten = Prices { input: 2.5, output: 15.0, cache_read: 0.25, cache_write: 0.0 };
        assert_eq!(waits(1_000_000, Some(unwritten), |_| {}), 4);
        // A cold cache has to be filled again anyway.
        assert_eq!(waits_with((1_000_000, true), usual(0.1), |_| {}), 1);
        assert_eq!(waits(1_000_000, usual(0.1), trigger(MicroTrigger::Always)), 1);
        let careless = |settings: &mut Settings| settings.micro.weigh_cost = false;
        assert_eq!(waits(1_000_000, usual(0.1), careless), 50);
        assert_eq!(waits(200_000, usual(0.1), careless), 1);
        // Above the warning mark it also puts a summary off; below it, that setting waits.
        assert_eq!(waits(200_000, usual(0.1), trigger(MicroTrigger::Warning)), 1);
        assert_eq!(waits(1_000_000, usual(0.1), trigger(MicroTrigger::Warning)), 50);
    }
}
