//! What a model tier proposes, and whether it is worth it.

use super::{Driver, Meter, Settings, Thresholds, rounds};
use crate::message::Usage;
use crate::message::tokens::{self, Load};
use crate::session::Context;
use crate::session::entry::{Boundary, Kept, Seq};

/// Tokens of the stub that replaces an archived result.
const STUB: u64 = 20;

/// A compaction that is not committed yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub boundary: Boundary,
    /// What its requests cost.
    pub spent: Usage,
    /// What was put back, beside the messages that stay.
    pub restored: Kept,
}

/// Why a candidate is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("the summary would not free enough space: {before} tokens before, {after} after")]
    NoProgress { before: u64, after: u64 },
}

/// Tokens of the request that the context would make with this boundary.
pub fn after(context: &Context, boundary: &Boundary, meter: &Meter) -> u64 {
    let kept: Load = kept(context, boundary.keep_from).map(|shown| shown.load).sum();
    let brought: Load = boundary.messages().map(|message| tokens::load(message)).sum();
    let Some(archived) = &boundary.archived else { return meter.request(kept + brought) };
    let gone: Load =
        context.results().filter(|held| archived.calls.contains(&held.result.id)).map(|held| held.load).sum();
    let stubs = Load { text: STUB * archived.calls.len() as u64, images: 0 };
    meter.request(kept + brought + tokens::load(&archived.digest) + stubs - gone)
}

fn kept(context: &Context, from: Seq) -> impl Iterator<Item = crate::session::context::Shown<'_>> {
    context.shown().filter(move |shown| !shown.lead && shown.seq >= from)
}

/// Whether a context shrinks enough for a compaction to be worth it.
fn is_progress(before: u64, after: u64, marks: &Thresholds, settings: &Settings) -> bool {
    let guards = &settings.guards;
    let shrunk = after as f64 <= before as f64 * (1.0 - guards.min_shrink);
    shrunk || after < before && after as f64 <= marks.available as f64 * guards.max_share
}

/// Whether a summary can make progress at all: not while what the model has not answered yet fills the window by itself.
pub(super) fn is_promising(context: &Context, driver: &Driver) -> bool {
    let meter = &driver.meter;
    let stays = context.shown_from(rounds::recent(context, 0, 0)).map(|shown| shown.load).sum::<Load>();
    let summary = Load { text: driver.limits().summary / 2, images: 0 };
    is_progress(meter.used(context), meter.request(stays + summary), driver.marks(), driver.settings())
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
        let (before, after) = (meter.used(context), after(context, &self.boundary, meter));
        if !is_progress(before, after, marks, settings) {
            return Err(Rejected::NoProgress { before, after });
        }
        self.boundary.pre_tokens = before;
        self.boundary.post_tokens = after;
        Ok(self)
    }
}

/// From which entry on a tier keeps everything that brings an opening and a summary of so many tokens along, and how many
/// tokens of the user's earlier words fit beside them. At most half of what there is stays, or nothing would be gained; of
/// the messages that the settings keep in any case as many as leave room for that.
pub fn cut(context: &Context, driver: &Driver, brought: u64) -> (Seq, u64) {
    let limits = driver.limits();
    let all: Load = context.shown().map(|shown| shown.load).sum();
    let budget = limits.keep_recent.min(all.total() / 2).min(room(driver, brought) * 2 / 3);
    let keep_from = rounds::keep_from(context, rounds::recent(context, budget, floor(context, driver, brought)));
    (keep_from, words(context, driver, brought, keep_from))
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
    let (meter, used) = (&driver.meter, driver.used(context));
    let shrinks = |cut: &usize| {
        let stays: Load = context.shown_from(*cut).map(|shown| shown.load).sum();
        let after = meter.request(stays + Load { text: brought, images: 0 });
        is_progress(used, after, driver.marks(), driver.settings())
    };
    let cut = rounds::cuts(context).into_iter().filter(|cut| *cut >= least).find(shrinks);
    cut.map_or(0, |cut| context.len() - cut)
}

/// How many tokens of the user's earlier words fit beside what stays and what is brought along.
pub fn words(context: &Context, driver: &Driver, brought: u64, keep_from: Seq) -> u64 {
    let stays: Load = kept(context, keep_from).map(|shown| shown.load).sum();
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
            let (from, _) = cut(talk.context(), &driver, 0);
            kept(talk.context(), from).count()
        };
        assert_eq!([kept(200_000, 0), kept(200_000, 6), kept(200_000, 30)], [0, 6, 30]);
        // Thirty of forty messages would be too much for a small window: as many stay as shrink it by 30%.
        assert_eq!(kept(8_192, 30), 27);
    }
}
