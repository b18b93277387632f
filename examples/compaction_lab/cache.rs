//! The provider's side: what it counts a request as, what its cache has of it, and what that costs.

use std::collections::HashMap;

use cocode::message::Role;
use cocode::message::tokens::Load;
use cocode::provider::catalog::{Catalog, Prices};
use cocode::provider::settings::WireName;
use cocode::session::entry::Seq;

use crate::desk::Desk;

/// Seconds for which a prefix stays in the cache after it was last used.
const CACHED: u64 = 300;

/// Messages before a mark in which the provider looks for an earlier one.
const LOOK_BACK: usize = 10;

/// A price list, and how its provider's cache works.
pub(crate) struct List {
    pub(crate) model: &'static str,
    wire: WireName,
    /// The cache holds what was marked; otherwise any prefix of the last request.
    marked: bool,
}

pub(crate) const LISTS: [List; 3] = [
    List { model: "claude-sonnet-5", wire: WireName::Anthropic, marked: true },
    List { model: "gpt-5.4", wire: WireName::Openai, marked: false },
    List { model: "gpt-4.1", wire: WireName::Openai, marked: false },
];

impl List {
    pub(crate) fn prices(&self) -> Prices {
        Catalog::builtin().get(self.wire, self.model).prices.expect("the model has prices")
    }
}

/// What a provider counts for an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Density {
    /// Each message up to a quarter more or less.
    Uneven,
    /// So many percent of everything.
    Percent(u64),
}

impl Density {
    pub(crate) fn count(self, seq: Seq, load: Load) -> u64 {
        let factor = match self {
            Density::Uneven => 75 + seq.wrapping_mul(2_654_435_761) % 51,
            Density::Percent(percent) => percent,
        };
        load.total() * factor / 100
    }

    /// System prompt and tools: denser than the estimate, as JSON is.
    fn head(self, desk: &Desk) -> u64 {
        let percent = if let Density::Percent(percent) = self { percent } else { 100 };
        desk.overhead() * 115 / 100 * percent / 100
    }
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

/// One request as the cache sees it.
struct Sent {
    messages: Vec<(Seq, Load)>,
    /// Of each prefix, the empty one first; where the cache goes by marks.
    hashes: Vec<u64>,
    /// Lengths of the prefixes that are marked, shortest first.
    marks: Vec<usize>,
}

pub(crate) struct Cache {
    pub(crate) prices: Prices,
    pub(crate) density: Density,
    marked: bool,
    /// Seconds since the session began.
    now: u64,
    last: Option<u64>,
    held: Vec<(Seq, Load)>,
    /// Marked prefixes, with when they were used last.
    entries: HashMap<u64, u64>,
}

impl Cache {
    pub(crate) fn new(list: &List, density: Density) -> Cache {
        Cache {
            prices: list.prices(),
            density,
            marked: list.marked,
            now: 0,
            last: None,
            held: Vec::new(),
            entries: HashMap::new(),
        }
    }

    /// Time goes by.
    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now += seconds;
    }

    fn is_alive(&self, used: u64) -> bool {
        self.now - used < CACHED
    }

    pub(crate) fn is_cold(&self) -> bool {
        self.last.is_some_and(|last| !self.is_alive(last))
    }

    pub(crate) fn price(&self, read: u64, fresh: u64) -> f64 {
        (read as f64 * self.prices.cache_read + fresh as f64 * self.prices.uncached()) / 1e6
    }

    pub(crate) fn output(&self, tokens: u64) -> f64 {
        tokens as f64 * self.prices.output / 1e6
    }

    fn of(&self, desk: &Desk) -> Sent {
        let context = desk.session.context();
        let messages: Vec<(Seq, Load)> = context.shown().map(|shown| (shown.seq, shown.load)).collect();
        if !self.marked {
            return Sent { messages, hashes: Vec::new(), marks: Vec::new() };
        }
        let mut hash = 0xCBF2_9CE4_8422_2325_u64;
        let mut hashes = vec![hash];
        for (seq, load) in &messages {
            for part in [*seq, load.text, load.images] {
                hash = (hash ^ part).wrapping_mul(0x0100_0000_01B3).rotate_left(23);
            }
            hashes.push(hash);
        }
        // As `provider::anthropic` marks: the system prompt, what stays before the next clearing, the last two turns.
        let turns = (0..messages.len()).zip(context.shown());
        let mut ends: Vec<usize> =
            turns.filter(|(_, shown)| shown.message.role == Role::User).map(|(at, _)| at + 1).collect();
        ends.drain(..ends.len().saturating_sub(2));
        let mut marks: Vec<usize> = [0].into_iter().chain(desk.frontier()).chain(ends).collect();
        marks.sort_unstable();
        Sent { messages, hashes, marks }
    }

    /// Messages that the cache has; none when it does not even have the system prompt.
    fn has(&self, sent: &Sent) -> Option<usize> {
        if self.marked {
            let alive = |end: &usize| self.entries.get(&sent.hashes[*end]).is_some_and(|used| self.is_alive(*used));
            let found = |mark: &usize| (mark.saturating_sub(LOOK_BACK)..=*mark).rev().find(alive);
            return sent.marks.iter().rev().find_map(found);
        }
        let same = || self.held.iter().zip(&sent.messages).take_while(|(then, now)| then == now).count();
        self.last.is_some_and(|last| self.is_alive(last)).then(same)
    }

    /// The next request as the provider counts it.
    pub(crate) fn weighed(&self, desk: &Desk) -> Weighed {
        let sent = self.of(desk);
        let (has, head) = (self.has(&sent), self.density.head(desk));
        let mut weighed = match has {
            Some(_) => Weighed { same: head, ..Weighed::default() },
            None => Weighed { fresh: head, ..Weighed::default() },
        };
        let newest = self.held.last().map(|(seq, _)| *seq);
        for (at, (seq, load)) in sent.messages.iter().enumerate() {
            let tokens = self.density.count(*seq, *load);
            if at < has.unwrap_or(0) {
                weighed.same += tokens;
            } else {
                weighed.fresh += tokens;
                weighed.again += if Some(*seq) <= newest { tokens } else { 0 };
            }
        }
        let lost = self.held.iter().skip(has.unwrap_or(0));
        weighed.lost = lost.map(|(seq, load)| self.density.count(*seq, *load)).sum();
        weighed
    }

    /// The request was sent: from now on the cache holds it.
    pub(crate) fn sent(&mut self, desk: &Desk) {
        let sent = self.of(desk);
        if self.marked {
            // What is read stays alive, too.
            let used: Vec<usize> = sent.marks.iter().copied().chain(self.has(&sent)).collect();
            self.entries.extend(used.into_iter().map(|end| (sent.hashes[end], self.now)));
        }
        (self.held, self.last) = (sent.messages, Some(self.now));
        // A request and its tools take a while.
        self.pass(20);
    }
}
