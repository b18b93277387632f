//! What a model tier proposes, and whether it is worth it.

use std::sync::Arc;

use super::restore::Restored;
use super::{Driver, Limits, Meter, Settings, Thresholds, digest, ledger, rounds, summary, trim};
use crate::message::tokens::{self, Load};
use crate::message::{Attachment, CallId, Kind, Message, Usage};
use crate::protocol::Trigger;
use crate::session::Context;
use crate::session::context::stub;
use crate::session::entry::{Boundary, Kept, Seq};
use crate::stdx::text::grouped;

/// A compaction that is not committed yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub boundary: Boundary,
    /// What its requests cost.
    pub spent: Usage,
    /// What was put back, beside the messages that stay.
    pub restored: Kept,
}

/// How much of each thing a boundary may carry, in percent of what the limits grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ration {
    /// Files and skills; todos and plan as far as they fit.
    pub restored: u64,
    /// The newest rounds, beside the one that runs.
    pub recent: u64,
    pub summary: u64,
    /// The user's earlier words.
    pub words: u64,
    pub ledger: u64,
}

/// A candidate that is too large shrinks from the end of what matters, until it passes.
const RATIONS: [Ration; 13] = [
    Ration { restored: 100, recent: 100, summary: 100, words: 100, ledger: 100 },
    Ration { restored: 50, recent: 100, summary: 100, words: 100, ledger: 100 },
    Ration { restored: 25, recent: 100, summary: 100, words: 100, ledger: 100 },
    Ration { restored: 25, recent: 50, summary: 100, words: 100, ledger: 100 },
    Ration { restored: 25, recent: 25, summary: 100, words: 100, ledger: 100 },
    Ration { restored: 10, recent: 10, summary: 100, words: 100, ledger: 100 },
    Ration { restored: 10, recent: 0, summary: 100, words: 100, ledger: 100 },
    Ration { restored: 0, recent: 0, summary: 50, words: 100, ledger: 100 },
    Ration { restored: 0, recent: 0, summary: 25, words: 50, ledger: 100 },
    Ration { restored: 0, recent: 0, summary: 25, words: 25, ledger: 85 },
    Ration { restored: 0, recent: 0, summary: 12, words: 10, ledger: 85 },
    Ration { restored: 0, recent: 0, summary: 12, words: 10, ledger: 70 },
    Ration { restored: 0, recent: 0, summary: 12, words: 10, ledger: 50 },
];

impl Ration {
    /// All that the limits grant.
    pub const WHOLE: Ration = RATIONS[0];

    /// A summary within its share.
    pub fn summary(self, summary: &Arc<Message>, limits: &Limits) -> Arc<Message> {
        match self.summary {
            100 => Arc::clone(summary),
            share => trim::within(summary, limits.summary * share / 100),
        }
    }
}

/// The first candidate that makes progress, stays below the target and carries no more than it may; failing that, the
/// smallest that makes progress, or the smallest of all.
pub fn fit(context: &Context, driver: &Driver, make: impl Fn(Ration) -> Candidate) -> Candidate {
    let (meter, marks) = (&driver.meter, driver.marks());
    let (mut progress, mut smallest) = (None, None);
    for ration in RATIONS {
        let candidate = make(ration);
        let after = load_after(context, &candidate.boundary);
        if is_progress(context, after, meter, marks, driver.settings()).is_ok() {
            if meter.request(after) < marks.target && carries(context, &candidate.boundary) <= driver.limits().carry {
                return candidate;
            }
            progress = Some(candidate);
        } else {
            smallest = Some(candidate);
        }
    }
    progress.or(smallest).unwrap_or_else(|| make(Ration::WHOLE))
}

/// What a tier makes a boundary of; the context tells the rest.
#[derive(Debug, Clone)]
pub struct Made<'a> {
    pub tier: &'a str,
    pub trigger: Trigger,
    pub keep_from: Seq,
    pub opening: Vec<Arc<Message>>,
    pub summary: Arc<Message>,
    pub quotes: Quotes,
}

/// Where the user's own earlier words stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quotes {
    /// Before the summary.
    Opening,
    /// In the summary itself.
    Summary,
}

impl Made<'_> {
    /// The boundary as every tier makes it. `restored` chooses what is put back, given the calls whose results are archived.
    pub fn candidate(
        self,
        context: &Context,
        driver: &Driver,
        ration: Ration,
        restored: impl FnOnce(&[CallId]) -> Restored,
    ) -> Candidate {
        let Made { tier, trigger, keep_from, mut opening, summary, quotes } = self;
        let settings = driver.settings();
        let archived = digest::plan_from(context, keep_from, settings.keep_recent_results)
            .map(|plan| plan.archived(settings.tool_output.heuristic_chars));
        let restored = restored(archived.as_ref().map_or(&[], |archived| archived.calls.as_slice()));
        if quotes == Quotes::Opening {
            let brought = weight(&opening, &summary) + restored.tokens();
            opening.extend(self::quotes(context, driver, keep_from, brought, ration));
        }
        let summary = summary::vetted(&summary, context);
        let mut boundary = Boundary { trigger, tier: tier.into(), keep_from, opening, archived, ..Boundary::default() };
        boundary.ledger = driver.ledger(context);
        let restored = restored.join(&mut boundary);
        let asked = carried(context, keep_from).into_iter().filter_map(|at| context.shown_from(at).next());
        boundary.attachments.extend(asked.map(|prompt| trim::within(prompt.message, driver.limits().user_messages)));
        let mut verbatim = text_of(boundary.messages());
        if quotes == Quotes::Summary {
            verbatim.push_str(&summary.text());
        }
        let known = ledger::Known { verbatim: &verbatim, summary: &summary.text() };
        let remembered =
            ledger::message(&boundary.ledger, context.todos(), known, driver.limits().ledger * ration.ledger / 100);
        boundary.attachments.splice(0..0, remembered);
        boundary.summary = Some(summary);
        Candidate { boundary, spent: Usage::default(), restored }
    }
}

/// What messages say, as one text to look things up in.
pub(super) fn text_of<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) -> String {
    messages.map(|message| message.text()).collect::<Vec<_>>().join("\n")
}

/// Tokens of what comes before a summary and of the summary, by estimate.
pub fn weight(opening: &[Arc<Message>], summary: &Message) -> u64 {
    opening.iter().map(|message| tokens::message(message)).sum::<u64>() + tokens::message(summary)
}

/// The user's own words that leave with a boundary, as many as fit beside so many tokens that it brings along; those that are
/// being worked on come along in any case.
pub fn quotes(
    context: &Context,
    driver: &Driver,
    keep_from: Seq,
    brought: u64,
    ration: Ration,
) -> Option<Arc<Message>> {
    let budget = words(context, driver, brought, keep_from) * ration.words / 100;
    summary::history(context, keep_from, budget, &carried(context, keep_from))
}

/// The prompts that are being worked on and would leave with a boundary: they come along, so that no summary has to stand
/// for what the model was just asked.
pub fn carried(context: &Context, keep_from: Seq) -> Vec<usize> {
    let leaves = |at: &usize| {
        let shown = context.shown_from(*at).next();
        shown.is_some_and(|shown| shown.message.kind == Kind::Prompt && (shown.lead || shown.seq < keep_from))
    };
    rounds::asked(context).into_iter().filter(leaves).collect()
}

/// Why a candidate is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("the summary would not free enough space: {} tokens before, {} after", grouped(*before), grouped(*after))]
    NoProgress { before: u64, after: u64 },
}

/// Tokens that a boundary carries over: what it brings and keeps, but for the environment and what is being worked on, which
/// is the running round and what it was asked for.
pub(super) fn carries(context: &Context, boundary: &Boundary) -> u64 {
    let (running, asked) = (rounds::running(context), rounds::asked(context));
    let counts = |message: &Message| {
        !matches!(message.kind, Kind::Prompt | Kind::Attachment(Attachment::Opening { .. } | Attachment::SkillList))
    };
    let brought: u64 =
        boundary.messages().filter(|message| counts(message)).map(|message| tokens::message(message)).sum();
    let kept: Load = context
        .shown()
        .enumerate()
        .take(running)
        .filter(|(at, shown)| !shown.lead && shown.seq >= boundary.keep_from && !asked.contains(at))
        .map(|(_, shown)| shown.load)
        .sum();
    brought + kept.total()
}

/// What the messages would weigh with this boundary.
pub fn load_after(context: &Context, boundary: &Boundary) -> Load {
    let kept: Load = kept(context, boundary.keep_from).map(|shown| shown.load).sum();
    let brought: Load = boundary.messages().map(|message| tokens::load(message)).sum();
    let Some(archived) = &boundary.archived else { return kept + brought };
    let gone = || context.results().filter(|held| archived.calls.contains(&held.result.id));
    let stubs = gone().map(|held| tokens::text(&stub(held.result.text().len()))).sum();
    let gone: Load = gone().map(|held| held.load).sum();
    kept + brought + tokens::load(&archived.digest) + Load { text: stubs, images: 0 } - gone
}

fn kept(context: &Context, from: Seq) -> impl Iterator<Item = crate::session::context::Shown<'_>> {
    context.shown().filter(move |shown| !shown.lead && shown.seq >= from)
}

/// What is being worked on: no compaction takes it away.
fn working(context: &Context) -> Load {
    let (running, asked) = (rounds::running(context), rounds::asked(context));
    let shown = context.shown().enumerate().filter(|(at, _)| *at >= running || asked.contains(at));
    shown.map(|(_, shown)| shown.load).sum()
}

/// Whether a context shrinks enough for a compaction to be worth it: by one estimate of what it is and what it would be.
/// System prompt and tools never shrink, nor does what is being worked on, which may take half of the rest.
///
/// # Errors
/// Those figures, when it does not.
fn is_progress(
    context: &Context,
    after: Load,
    meter: &Meter,
    marks: &Thresholds,
    settings: &Settings,
) -> Result<(), Rejected> {
    let (before, after) = (meter.likely_used(context), meter.likely_request(after));
    let (guards, overhead) = (&settings.guards, meter.likely_request(Load::default()));
    let rest = before.saturating_sub(overhead);
    let can_shrink = rest - meter.likely(working(context)).min(rest / 2);
    let shrunk = after as f64 + can_shrink as f64 * guards.min_shrink <= before as f64;
    match shrunk || after < before && after as f64 <= marks.available as f64 * guards.max_share {
        true => Ok(()),
        false => Err(Rejected::NoProgress { before, after }),
    }
}

/// Whether a summary can make progress at all: not while what the model has not answered yet fills the window by itself.
pub(super) fn is_promising(context: &Context, driver: &Driver) -> bool {
    let meter = &driver.meter;
    let from = rounds::recent(context, 0, 0);
    let mut stays: Load = context.shown_from(from).map(|shown| shown.load).sum();
    let asked = carried(context, rounds::keep_from(context, from));
    stays = stays + asked.iter().filter_map(|at| context.shown_from(*at).next()).map(|shown| shown.load).sum();
    let limits = driver.limits();
    let summary = Load { text: limits.summary / 2, images: 0 };
    is_progress(context, stays + summary, meter, driver.marks(), driver.settings()).is_ok()
}

impl Candidate {
    /// Checks that the context shrinks by the configured share, or to the configured part of what is available. Fills in
    /// the boundary's tokens.
    ///
    /// # Errors
    /// The figures, when it does not.
    pub fn judge(
        mut self,
        context: &Context,
        meter: &Meter,
        marks: &Thresholds,
        settings: &Settings,
    ) -> Result<Candidate, Rejected> {
        let after = load_after(context, &self.boundary);
        is_progress(context, after, meter, marks, settings)?;
        self.boundary.pre_tokens = meter.likely_used(context);
        self.boundary.post_tokens = meter.likely_request(after);
        Ok(self)
    }
}

/// From which entry on a tier keeps everything that brings an opening and a summary of so many tokens along. At most half of what there is stays, or nothing would be gained; of
/// the messages that the settings keep in any case as many as leave room for that.
pub fn cut(context: &Context, driver: &Driver, brought: u64, ration: Ration) -> Seq {
    let limits = driver.limits();
    let all: Load = context.shown().map(|shown| shown.load).sum();
    let budget = limits.keep_recent.min(all.total() / 2).min(room(driver, brought) * 2 / 3) * ration.recent / 100;
    let floor = if ration.recent == 0 { 0 } else { floor(context, driver, brought) };
    rounds::keep_from(context, rounds::recent(context, budget, floor))
}

/// How many of the newest messages stay whatever they weigh: as the settings say, as long as the context still shrinks.
fn floor(context: &Context, driver: &Driver, brought: u64) -> usize {
    let wanted = usize::try_from(driver.settings().keep_recent_messages).unwrap_or(usize::MAX).min(context.len());
    if wanted == 0 {
        return 0;
    }
    // A summary of nothing would be no gain: the oldest words leave in any case.
    let oldest = context.shown().position(|shown| rounds::speaks(&shown)).unwrap_or(0);
    let least = rounds::recent(context, 0, wanted).max(oldest + 1);
    let shrinks = |cut: &usize| {
        let stays: Load = context.shown_from(*cut).map(|shown| shown.load).sum();
        let after = stays + Load { text: brought, images: 0 };
        is_progress(context, after, &driver.meter, driver.marks(), driver.settings()).is_ok()
    };
    let cut = rounds::cuts(context).into_iter().filter(|cut| *cut >= least).find(shrinks);
    cut.map_or(0, |cut| context.len() - cut)
}

/// How many tokens of the user's earlier words fit beside what stays and what is brought along.
fn words(context: &Context, driver: &Driver, brought: u64, keep_from: Seq) -> u64 {
    let asked = carried(context, keep_from);
    let stays: Load = kept(context, keep_from)
        .chain(asked.iter().filter_map(|at| context.shown_from(*at).next()))
        .map(|shown| shown.load)
        .sum();
    driver.limits().user_messages.min(room(driver, brought).saturating_sub(stays.total()))
}

/// Tokens that are left beside what is brought along, of the share of the window that a compaction has to reach.
fn room(driver: &Driver, brought: u64) -> u64 {
    let goal = (driver.marks().available as f64 * driver.settings().guards.max_share) as u64;
    driver.meter.room(goal).saturating_sub(brought)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::{Talk, driver};

    #[test]
    fn the_newest_messages_stay_as_long_as_the_context_shrinks() {
        let mut talk = Talk::new();
        (0..20).for_each(|_| _ = talk.prompt(100).reply(100));
        let kept = |window, messages| {
            let driver = driver(window, |settings| {
                (settings.keep_recent_tokens, settings.keep_recent_messages) = (0, messages);
            });
            let from = cut(talk.context(), &driver, 0, Ration::WHOLE);
            kept(talk.context(), from).count()
        };
        assert_eq!([kept(200_000, 0), kept(200_000, 6), kept(200_000, 30)], [0, 6, 30]);
        // Thirty of forty messages would be too much for a small window: as many stay as shrink it by 30%.
        assert_eq!(kept(6_000, 30), 28);
    }
}
