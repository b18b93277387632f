//! What of a request the provider has in its cache: what was sent, what should be read back, and why it was not.
//!
//! Each message is hashed once. A request costs a comparison of pointers for what it has in common with the one before.

mod forecast;
mod pieces;
mod sent;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

pub use self::forecast::{Next, forecast};
use self::pieces::Part;
use self::sent::Content;
use super::Model;
use crate::message::Usage;
use crate::provider::cache::{self, Grain, Promise};
use crate::provider::{Provider, Request};
use crate::session::Session;
use crate::session::entry::{By, CacheBreak, Cause, Sent, Seq};

/// Fewer tokens than these are not worth a word.
const LEAST: u64 = 2_000;
/// Requests besides the last one whose prefixes may still be cached.
const EARLIER: usize = 3;
/// Tools, system prompt and parameters.
const HEAD: usize = 3;

/// A segment of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seg {
    hash: u64,
    bytes: u32,
    tokens: u32,
    seq: u32,
    block: u16,
    part: Part,
}

/// Who keeps a prefix: what one of them has, no other reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Key {
    model: String,
    route: String,
}

/// A request as it was sent last.
#[derive(Debug, Default)]
struct Chain {
    key: Key,
    /// The head, then those of the messages.
    segs: Vec<Seg>,
    marks: Vec<usize>,
    thinking: String,
    /// Its entry; what changed since comes after it.
    seq: Seq,
    at: Option<SystemTime>,
    /// None after a resume: only hashes are known then.
    content: Option<Content>,
}

impl Chain {
    fn tokens(&self, segs: usize) -> u64 {
        self.segs.iter().take(segs).map(|seg| u64::from(seg.tokens)).sum()
    }
}

/// What the provider had in its cache after the last answer.
#[derive(Debug, Clone)]
struct Cached {
    key: Key,
    seq: Seq,
    at: SystemTime,
    /// Segments up to the last breakpoint, and their tokens as the provider counted them.
    upto: usize,
    tokens: u64,
    marks: Vec<usize>,
    /// Segments of it that every request since begins with, and why they are not all.
    intact: usize,
    change: Option<Cause>,
    /// Tokens of it that stand in the request that changed it, at whichever place, as we estimate them; none: all.
    kept: Option<u64>,
}

/// A prefix that an earlier request has left in the cache.
#[derive(Debug)]
struct Earlier {
    key: Key,
    hashes: Vec<u64>,
    marks: Vec<usize>,
    at: SystemTime,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    /// The session that all this is of.
    of: String,
    last: Chain,
    cached: Option<Cached>,
    earlier: Vec<Earlier>,
    /// Providers that have ever told of their cache: of the others nothing is expected.
    telling: BTreeSet<String>,
}

impl Prefix {
    /// Compares a request with what was sent before, for the log.
    pub(super) fn sending(&mut self, request: &Request, session: &Session, model: &Model) -> Sent {
        if self.of != session.id() {
            *self = Prefix { of: session.id().to_owned(), ..Prefix::default() };
            self.restore(session);
        }
        let promise = cache::promise(model.provider.wire(), &model.id);
        let key = Key { model: model.name(), route: route(&*model.provider, request) };
        let now = session.time();
        self.earlier.retain(|earlier| !gone(earlier.at, now, promise.ttl));
        let next = self.next(request, session, key, &promise);
        self.last.at = Some(now);
        next
    }

    /// The request got this entry.
    pub(super) fn logged(&mut self, seq: Seq) {
        self.last.seq = seq;
    }

    /// Takes what an answer cost, and finds out what should have been cheaper.
    pub(super) fn answered(&mut self, usage: &Usage, model: &Model) -> Option<CacheBreak> {
        let prompt = usage.input + usage.cache_read + usage.cache_write;
        let at = self.last.at?;
        if prompt == 0 {
            return None;
        }
        if usage.cache_read + usage.cache_write > 0 {
            self.telling.insert(model.provider_name.clone());
        }
        let promise = cache::promise(model.provider.wire(), &model.id);
        let all = self.last.tokens(usize::MAX).max(1);
        let counted = |segs: usize| promise.cut(prompt * self.last.tokens(segs) / all);
        let broken = self.cached.as_ref().filter(|_| self.telling.contains(&model.provider_name)).and_then(|cached| {
            // What left, and what is new, is not paid for twice.
            let kept = cached.kept.map_or(prompt, |kept| prompt * kept / all);
            let base = cached.tokens.min(promise.cut(prompt)).min(kept);
            let read = usage.cache_read;
            if read * 10 >= base * 9 || base - read <= LEAST {
                return None;
            }
            let again = base - read;
            let price = model.spec.prices.map(|prices| prices.cache_write.max(prices.input));
            Some(CacheBreak {
                request: self.last.seq,
                before: cached.seq,
                expected: counted(self.expected(cached, at, &promise)),
                read,
                again,
                cost_usd: price.map(|price| again as f64 * price / 1e6),
                cause: self.cause(cached, at, &promise),
            })
        });
        let upto = match promise.grain {
            Grain::Marks => self.last.marks.last().map_or(0, |mark| mark + 1),
            Grain::Steps(_) | Grain::None => self.last.segs.len(),
        };
        self.cached = (promise.grain != Grain::None).then(|| Cached {
            key: self.last.key.clone(),
            seq: self.last.seq,
            at,
            upto,
            tokens: counted(upto),
            marks: self.last.marks.clone(),
            intact: upto,
            change: None,
            kept: None,
        });
        broken
    }

    /// Segments of the request that should have been read.
    fn expected(&self, cached: &Cached, at: SystemTime, promise: &Promise) -> usize {
        let key = &self.last.key;
        let fits = |marks: &[usize], common: usize| match promise.grain {
            Grain::Marks => marks.iter().map(|mark| mark + 1).filter(|end| *end <= common).max().unwrap_or(0),
            Grain::Steps(_) | Grain::None => common,
        };
        let own = match cached.key == *key && !gone(cached.at, at, promise.ttl) {
            true if cached.intact >= cached.upto => cached.upto,
            true => fits(&cached.marks, cached.intact),
            false => 0,
        };
        let others = self.earlier.iter().filter(|earlier| earlier.key == *key).map(|earlier| {
            let same = self.last.segs.iter().zip(&earlier.hashes).take_while(|(seg, hash)| seg.hash == **hash).count();
            fits(&earlier.marks, same)
        });
        others.chain([own]).max().unwrap_or(0)
    }

    fn cause(&self, cached: &Cached, at: SystemTime, promise: &Promise) -> Cause {
        let (key, gap) = (&self.last.key, passed(cached.at, at));
        if gone(cached.at, at, promise.ttl) {
            return Cause::Expired { gap: gap.as_secs(), ttl: promise.ttl };
        }
        if cached.key.model != key.model {
            let by = By::Model { from: cached.key.model.clone(), to: key.model.clone() };
            return Cause::Changed { segment: "model".into(), offset: 0, by };
        }
        if let Some(change) = cached.change.clone().filter(|_| cached.intact < cached.upto) {
            return change;
        }
        if cached.tokens < promise.minimum {
            return Cause::BelowMinimum { minimum: promise.minimum };
        }
        if let Some(blocks) = self.out_of_sight(cached, promise) {
            return Cause::BreakpointLimit { blocks };
        }
        match cached.key.route == key.route {
            true => Cause::Provider,
            false => Cause::Route { from: cached.key.route.clone(), to: key.route.clone() },
        }
    }

    /// Blocks between what is cached and the first breakpoint behind it, where the provider does not look back so far.
    fn out_of_sight(&self, cached: &Cached, promise: &Promise) -> Option<u64> {
        let next = *self.last.marks.iter().find(|mark| **mark + 1 >= cached.upto)?;
        let between = self.last.segs.get(cached.upto..=next)?;
        let mut blocks: Vec<_> = between.iter().map(|seg| (seg.seq, seg.block)).collect();
        blocks.dedup();
        let blocks = blocks.len() as u64;
        (promise.grain == Grain::Marks && blocks > cache::LOOK_BACK).then_some(blocks)
    }

    /// What is known of the last request of a session that continues, from its log.
    fn restore(&mut self, session: &Session) {
        for (seq, ts, sent) in session.requests() {
            self.last.take(seq, &sent);
            self.last.at = ts;
        }
        let (Some(at), Some((model, usage))) = (self.last.at, session.facts().counted.clone()) else { return };
        if let Some((provider, _)) = model.split_once('/').filter(|_| usage.cache_read + usage.cache_write > 0) {
            self.telling.insert(provider.to_owned());
        }
        let upto = self.last.marks.last().map_or(self.last.segs.len(), |mark| mark + 1);
        let prompt = usage.input + usage.cache_read + usage.cache_write;
        let tokens = prompt * self.last.tokens(upto) / self.last.tokens(usize::MAX).max(1);
        let Chain { key, seq, marks, .. } = &self.last;
        let (key, seq, marks) = (key.clone(), *seq, marks.clone());
        self.cached = Some(Cached { key, seq, at, upto, tokens, marks, intact: upto, change: None, kept: None });
        // The head is in the log; of the messages only the hashes are.
        self.last.content = session.frozen().map(|(_, frozen)| Content::of_head(&frozen));
    }
}

/// Some wires keep the prefixes of each session apart.
fn route(provider: &dyn Provider, request: &Request) -> String {
    match cache::promise(provider.wire(), "").keyed {
        true => format!("{}#{}", provider.route(), request.cache_key),
        false => provider.route(),
    }
}

fn passed(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or_default()
}

fn gone(from: SystemTime, to: SystemTime, ttl: u64) -> bool {
    ttl > 0 && passed(from, to) > Duration::from_secs(ttl)
}

#[cfg(test)]
mod tests;
