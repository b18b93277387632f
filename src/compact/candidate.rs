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
/// tokens of the user's earlier words fit beside them. At most half of what there is stays, or nothing would be gained.
pub fn cut(context: &Context, driver: &Driver, brought: u64) -> (Seq, u64) {
    let (limits, settings) = (driver.limits(), driver.settings());
    let messages = usize::try_from(settings.keep_recent_messages).unwrap_or(usize::MAX).min(context.len() / 2);
    let all: Load = context.shown().map(|shown| shown.load).sum();
    let budget = limits.keep_recent.min(all.total() / 2).min(room(driver, brought) * 2 / 3);
    let keep_from = rounds::keep_from(context, rounds::recent(context, budget, messages));
    (keep_from, words(context, driver, brought, keep_from))
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
