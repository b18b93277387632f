//! The provider's side: what it counts a request as, and what its cache has of it.

use cocode::message::tokens::Load;
use cocode::provider::catalog::{Catalog, Prices};
use cocode::provider::settings::WireName;
use cocode::session::entry::Seq;

use crate::desk::Desk;

/// The model whose prices count.
pub(crate) const MODEL: &str = "claude-sonnet-5";

/// What the provider counts: each message up to a quarter more or less than its estimate.
pub(crate) fn true_of(seq: Seq, load: Load) -> u64 {
    let factor = 75 + seq.wrapping_mul(2_654_435_761) % 51;
    load.total() * factor / 100
}

/// Tokens of a request, by what the provider's cache has of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weighed {
    pub(crate) same: u64,
    pub(crate) fresh: u64,
    /// The part of `fresh` that the last request held, too.
    pub(crate) again: u64,
    /// What the cache held behind that, and nobody asks for any more.
    pub(crate) lost: u64,
}

/// What the last request held, message by message.
pub(crate) struct Cache {
    pub(crate) prices: Prices,
    held: Vec<(Seq, Load)>,
}

impl Cache {
    pub(crate) fn new() -> Cache {
        let prices = Catalog::builtin().get(WireName::Anthropic, MODEL).prices.expect("the model has prices");
        Cache { prices, held: Vec::new() }
    }

    pub(crate) fn price(&self, read: u64, written: u64) -> f64 {
        (read as f64 * self.prices.cache_read + written as f64 * self.prices.cache_write) / 1e6
    }

    pub(crate) fn output(&self, tokens: u64) -> f64 {
        tokens as f64 * self.prices.output / 1e6
    }

    /// The next request as the provider counts it.
    pub(crate) fn weighed(&self, desk: &Desk) -> Weighed {
        let mut weighed = Weighed { same: desk.counted_overhead(), ..Weighed::default() };
        let mut held = self.held.iter();
        let newest = self.held.last().map(|(seq, _)| *seq);
        for shown in desk.session.context().shown() {
            let now = (shown.seq, shown.load);
            let tokens = true_of(now.0, now.1);
            if weighed.fresh == 0 && held.as_slice().first() == Some(&now) {
                held.next();
                weighed.same += tokens;
            } else {
                weighed.fresh += tokens;
                weighed.again += if Some(now.0) <= newest { tokens } else { 0 };
            }
        }
        weighed.lost = held.map(|(seq, load)| true_of(*seq, *load)).sum();
        weighed
    }

    /// The request was sent: from now on the cache holds it.
    pub(crate) fn sent(&mut self, desk: &Desk) {
        self.held.clear();
        self.held.extend(desk.session.context().shown().map(|shown| (shown.seq, shown.load)));
    }
}
