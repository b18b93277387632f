//! What a provider promises of its prompt cache.

/// Blocks before a breakpoint in which the Messages API looks for what it has cached.
pub const LOOK_BACK: u64 = 20;

/// How finely a prefix is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Up to the breakpoints of earlier requests.
    Marks,
    /// In steps of so many tokens.
    Steps(u64),
    /// Nothing is promised.
    None,
}

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    pub grain: Grain,
    /// Shorter prefixes are not cached, in tokens.
    pub minimum: u64,
    /// Seconds for which a prefix that nobody reads is kept; 0: it is not said.
    pub ttl: u64,
    /// The prefixes of each session are kept apart.
    pub keyed: bool,
}

impl Promise {
    /// Tokens of a prefix that can be cached.
    pub fn cut(&self, tokens: u64) -> u64 {
        match self.grain {
            Grain::Marks => tokens,
            Grain::Steps(step) if tokens >= self.minimum => tokens - tokens % step,
            Grain::Steps(_) | Grain::None => 0,
        }
    }
}

/// What holds on a wire, for a model.
pub fn promise(wire: &str, model: &str) -> Promise {
    let nothing = Promise { grain: Grain::None, minimum: 0, ttl: 0, keyed: false };
    match wire {
        "anthropic" => Promise { grain: Grain::Marks, minimum: minimum(model), ttl: 300, keyed: false },
        "openai" => Promise { grain: Grain::Steps(128), minimum: 1_024, ttl: 300, keyed: true },
        // Many servers speak it: how long they keep a prefix is not known.
        "openai-chat" => Promise { grain: Grain::Steps(128), minimum: 1_024, ..nothing },
        _ => nothing,
    }
}

fn minimum(model: &str) -> u64 {
    match model {
        model if model.contains("haiku-3") || model.contains("3-5-haiku") => 2_048,
        model if model.contains("haiku") || model.contains("opus-4-5") || model.contains("opus-4-6") => 4_096,
        _ => 1_024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_cut_to_what_is_cached() {
        for (wire, tokens, want) in [
            ("anthropic", 5_001, 5_001),
            ("openai", 1_023, 0),
            ("openai", 1_024, 1_024),
            ("openai", 5_000, 4_992),
            ("openai-chat", 5_000, 4_992),
            ("gemini", 5_000, 0),
            ("offline", 5_000, 0),
        ] {
            assert_eq!(promise(wire, "any").cut(tokens), want, "{wire} {tokens}");
        }
    }
}
