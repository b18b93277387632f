//! How many tokens stand in the window: what the provider counted, and estimates with a margin.

use super::Settings;
use crate::message::tokens::Load;
use crate::session::Context;
use crate::session::context::Count;

/// Estimates below this many tokens say nothing of how far they are off.
const TELLING: f64 = 2_000.0;
/// Most by which estimates are raised, whatever was observed.
const MOST: f64 = 4.0;

/// Turns counts of a context into tokens that thresholds are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Meter {
    /// Factor on every estimate: configured, or more where usage showed that estimates are too low.
    margin: f64,
    /// Factor on estimates of text, from the configured bytes of a token.
    density: f64,
    image: u64,
    /// Estimate of system prompt and tools, which are sent with every request.
    overhead: Load,
}

impl Meter {
    pub fn new(settings: &Settings) -> Meter {
        Meter {
            margin: settings.token_safety_multiplier.max(1.0),
            // Estimates take four bytes for a token.
            density: 4.0 / settings.approx_bytes_per_token.max(1.0),
            image: settings.tokens_per_image,
            overhead: Load::default(),
        }
    }

    /// What goes with every request beside the messages.
    pub fn set_overhead(&mut self, overhead: Load) {
        self.overhead = overhead;
    }

    /// An estimate without margin.
    fn plain(&self, load: Load) -> f64 {
        load.text as f64 * self.density + (load.images * self.image) as f64
    }

    /// Tokens that an estimate may turn out to be: with margin.
    pub fn of(&self, load: Load) -> u64 {
        (self.plain(load) * self.margin).ceil() as u64
    }

    /// Tokens of the whole request that a context makes.
    pub fn used(&self, context: &Context) -> u64 {
        let Count { counted, later, .. } = context.count();
        match counted {
            Some(counted) => counted + self.of(later),
            None => self.of(later + self.overhead),
        }
    }

    /// Tokens of a request of nothing but these messages, none of them counted yet.
    pub fn request(&self, messages: Load) -> u64 {
        self.of(messages + self.overhead)
    }

    /// Estimated tokens of messages that a request of so many tokens has room for.
    pub fn room(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.margin - self.plain(self.overhead)).max(0.0) as u64
    }

    /// Learns from a provider's count: `before` is the context that was sent, `input` what it was counted as.
    pub fn observe(&mut self, before: Count, input: u64) {
        let (known, estimated) = match before.counted {
            Some(counted) => (counted, self.plain(before.later)),
            None => (0, self.plain(before.later + self.overhead)),
        };
        if estimated >= TELLING && input > known {
            let ratio = (input - known) as f64 / estimated;
            // Upwards alone: what was dense once may be so again.
            self.margin = self.margin.max(ratio.min(MOST));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::fixture::settings;

    #[test]
    fn estimates_have_a_margin_that_grows_with_what_is_observed() {
        let mut meter = Meter::new(&settings());
        let text = |text| Load { text, images: 0 };
        assert_eq!(meter.of(text(10_000)), 13_300);
        assert_eq!(meter.of(Load { text: 0, images: 1 }), 2_660);
        meter.set_overhead(text(1_000));
        assert_eq!(meter.request(text(9_000)), 13_300);
        // Too few tokens to learn from, fewer than estimated, then half as many again, then absurdly many.
        for (counted, later, input, want) in [
            (None, 500, 5_000, 13_300),
            (None, 9_000, 8_000, 13_300),
            (None, 9_000, 15_000, 15_000),
            (Some(50_000), 10_000, 60_000, 15_000),
            (Some(50_000), 10_000, 67_000, 17_000),
            (Some(50_000), 10_000, 900_000, 40_000),
        ] {
            meter.observe(Count { counted, later: text(later), covers: 0 }, input);
            assert_eq!(meter.of(text(10_000)), want, "{counted:?} {later} {input}");
        }
        let dense = Meter::new(&Settings { approx_bytes_per_token: 2.0, tokens_per_image: 100, ..settings() });
        assert_eq!(dense.of(Load { text: 1_000, images: 10 }), 3_990);
    }
}
