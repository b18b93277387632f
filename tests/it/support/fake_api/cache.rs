//! A prompt cache as the Messages API has it: a hash chain over the request, kept at its breakpoints for five minutes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime};

use serde_json::Value;

const KEPT: Duration = Duration::from_secs(300);
const LOOK_BACK: usize = 20;

/// What a request counts for: input, read from the cache, written to it.
pub(super) type Counted = (u64, u64, u64);

pub(crate) struct Cache {
    clock: fn() -> SystemTime,
    kept: HashMap<u64, SystemTime>,
}

impl Cache {
    pub(super) fn new(clock: fn() -> SystemTime) -> Cache {
        Cache { clock, kept: HashMap::new() }
    }

    /// All that was cached is lost.
    pub(crate) fn forget(&mut self) {
        self.kept.clear();
    }

    /// What a request to this host counts for.
    pub(super) fn count(&mut self, host: &str, body: &Value) -> Counted {
        let now = (self.clock)();
        let model = body["model"].to_string();
        let least = if model.contains("haiku") { 4_096 } else { 1_024 };
        let mut hasher = DefaultHasher::new();
        (host, &model).hash(&mut hasher);
        let (mut bytes, mut ends) = (0, Vec::new());
        let list = |key: &str| body[key].as_array().cloned().unwrap_or_default();
        let thinking = [&body["thinking"], &body["output_config"]].map(Value::clone);
        let messages = list("messages").into_iter().flat_map(|message| {
            let role = message["role"].to_string();
            let content = message["content"].as_array().cloned().unwrap_or_default();
            content.into_iter().map(move |block| (role.clone(), block)).collect::<Vec<_>>()
        });
        let head = list("tools").into_iter().chain(list("system")).chain(thinking).map(|part| (String::new(), part));
        for (role, mut part) in head.chain(messages) {
            let marked = part.as_object_mut().and_then(|part| part.remove("cache_control")).is_some();
            let text = part.to_string();
            (&role, &text).hash(&mut hasher);
            bytes += text.len() as u64;
            ends.push((hasher.finish(), bytes / 4, marked));
        }
        let marks: Vec<usize> = (0..ends.len()).filter(|at| ends[*at].2).collect();
        // Shorter prefixes are not kept.
        let marks: Vec<usize> = marks.into_iter().filter(|at| ends[*at].1 >= least).collect();
        let fresh = |at: &usize| self.kept.get(&ends[*at].0).is_some_and(|kept| *kept + KEPT >= now);
        let near = |mark: &usize| (mark.saturating_sub(LOOK_BACK)..=*mark).rev().find(fresh);
        let found = marks.iter().rev().find_map(near);
        let read = found.map_or(0, |at| ends[at].1);
        for at in marks.iter().chain(&found) {
            self.kept.insert(ends[*at].0, now);
        }
        let written = marks.last().map_or(0, |at| ends[*at].1) - read;
        (bytes / 4 - read - written, read, written)
    }
}
