//! What the next request will cost: all of it where the provider's cache is cold.

use crate::agent::Agent;
use crate::protocol::report::Forecast;
use crate::provider::cache::{self, Grain};

/// What is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    AsIs,
    /// The level has changed, which some providers keep messages apart by.
    ThoughtAboutOtherwise,
}

/// Looks at the last request of the log alone.
pub fn forecast(agent: &Agent, next: Next) -> Forecast {
    let (session, model) = (&agent.conversation.session, &agent.model);
    let tokens = agent.compaction.driver.used(session.context());
    let promise = cache::promise(model.provider.wire(), &model.id);
    let warm = session
        .last_request()
        .is_some_and(|(at, sent)| sent.model == model.name() && !super::gone(at, session.time(), promise.ttl));
    let warm = warm && (next == Next::AsIs || promise.grain != Grain::Marks);
    let cost = |price: f64| tokens as f64 * price / 1e6;
    let prices = model.spec.prices;
    let cold_usd = prices.map(|prices| cost(prices.cache_write.max(prices.input)));
    let warm_usd = prices.map(|prices| cost(prices.cache_read));
    Forecast { tokens, cold: !warm, usd: if warm { warm_usd } else { cold_usd }, warm_usd }
}
