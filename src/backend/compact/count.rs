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
    /// The same as the provider counted it.
    counted: Option<Counted>,
    /// What the provider counted of messages that were estimated before.
    seen: Seen,
}

/// Sums of what was estimated and what it came to: the ratio of them is what a receipt reckons with.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Seen {
    estimated: f64,
    counted: f64,
    /// The ratio of the first request as a whole, until messages alone are known.
    whole: Option<f64>,
    /// Tokens of the last request that was counted as a whole, and the estimate of its messages.
    first: Option<(f64, f64)>,
}

/// System prompt and tools, told from a request that the provider counted as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    tokens: u64,
    /// Estimate of the messages in that request: the fewer, the better the figure.
    beside: f64,
}

impl Seen {
    /// The ratio of messages alone, once they tell something.
    fn of_messages(&self) -> Option<f64> {
        (self.estimated >= TELLING).then(|| self.counted / self.estimated)
    }
}

impl Meter {
    pub fn new(settings: &Settings) -> Meter {
        Meter {
            margin: settings.token_safety_multiplier.max(1.0),
            // Estimates take four bytes for a token.
            density: 4.0 / settings.approx_bytes_per_token.max(1.0),
            image: settings.tokens_per_image,
            overhead: Load::default(),
            counted: None,
            seen: Seen::default(),
        }
    }

    /// What goes with every request beside the messages; what was counted of anything else no longer holds.
    pub fn set_overhead(&mut self, overhead: Load) {
        (self.overhead, self.counted, self.seen.first) = (overhead, None, None);
    }

    /// Tokens of system prompt and tools: as counted, or an estimate with margin until then.
    pub fn overhead(&self) -> u64 {
        self.counted.map_or_else(|| self.of(self.overhead), |counted| counted.tokens)
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
            None => self.request(later),
        }
    }

    /// Tokens of the whole request at most: what was taken out of a count may have weighed less than by estimate, and what
    /// is known of system prompt and tools came from a request that held more than those.
    pub fn most(&self, context: &Context) -> u64 {
        let Count { counted, edited, .. } = context.count();
        let estimated = if counted.is_some() { edited } else { self.overhead() / 2 };
        self.used(context) + (estimated as f64 * (self.margin - 1.0)).ceil() as u64
    }

    /// Tokens of a request of nothing but these messages, none of them counted yet.
    pub fn request(&self, messages: Load) -> u64 {
        self.of(messages) + self.overhead()
    }

    /// Estimated tokens of messages that a request of so many tokens has room for.
    pub fn room(&self, tokens: u64) -> u64 {
        (tokens.saturating_sub(self.overhead()) as f64 / self.margin) as u64
    }

    /// Tokens that a provider most likely counts for an estimate of one.
    fn ratio(&self) -> f64 {
        self.seen.of_messages().or(self.seen.whole).unwrap_or(1.0)
    }

    /// What an estimate most likely comes to: for receipts, where too much is as wrong as too little.
    pub fn likely(&self, load: Load) -> u64 {
        (self.plain(load) * self.ratio()).round() as u64
    }

    /// The same for a whole request of nothing but these messages.
    pub fn likely_request(&self, messages: Load) -> u64 {
        let overhead = match self.seen.first {
            Some((input, messages)) if self.seen.estimated >= TELLING => (input - messages * self.ratio()).max(0.0),
            _ => self.counted.map_or_else(|| self.plain(self.overhead) * self.ratio(), |counted| counted.tokens as f64),
        };
        self.likely(messages) + overhead.round() as u64
    }

    /// The same for the whole request that a context makes.
    pub fn likely_used(&self, context: &Context) -> u64 {
        let Count { counted, later, .. } = context.count();
        match counted {
            Some(counted) => counted + self.likely(later),
            None => self.likely_request(later),
        }
    }

    /// Learns from a provider's count: `before` is the context that was sent, `input` what it was counted as.
    pub fn observe(&mut self, before: Count, input: u64) {
        let messages = self.plain(before.later);
        self.compare(before, messages, input as f64);
        let known = before.counted.unwrap_or_else(|| self.learn_overhead(messages, before.later.images, input));
        let of_this = (messages >= TELLING && input > known).then(|| (input - known) as f64 / messages);
        // Upwards alone: what was dense once may be so again. In a small window only many requests together tell.
        let ratio = of_this.into_iter().chain(self.seen.of_messages()).fold(self.margin, f64::max);
        self.margin = ratio.min(MOST.max(self.margin));
    }

    /// Takes note of how far an estimate was off.
    fn compare(&mut self, before: Count, messages: f64, input: f64) {
        if before.later.images > 0 {
            return;
        }
        match before.counted {
            // What left since it was counted may have weighed anything.
            Some(known) if messages > 0.0 && input > known as f64 && before.edited == 0 => {
                let Seen { estimated, counted, .. } = &mut self.seen;
                (*estimated, *counted) =
                    (*estimated + messages, *counted + (input - known as f64).min(messages * MOST));
            }
            Some(_) => {}
            None => {
                let estimated = messages + self.plain(self.overhead);
                if estimated > 0.0 {
                    self.seen.whole = Some((input / estimated).min(MOST));
                    self.seen.first = Some((input, messages));
                }
            }
        }
    }

    /// The part of a whole request that is system prompt and tools: its share by estimate. An image may be counted as
    /// anything, so that a request with one tells nothing.
    fn learn_overhead(&mut self, messages: f64, images: u64, input: u64) -> u64 {
        let overhead = self.plain(self.overhead);
        let tells = images == 0 && overhead > 0.0 && self.counted.is_none_or(|counted| messages < counted.beside);
        if tells {
            let tokens = (input as f64 * overhead / (overhead + messages)).min(overhead * MOST).ceil() as u64;
            self.counted = Some(Counted { tokens, beside: messages });
        }
        self.overhead()
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
            (None, 500, 1_500, 13_300),
            (None, 9_000, 8_000, 13_300),
            (None, 9_000, 14_500, 15_000),
            (Some(50_000), 10_000, 60_000, 15_000),
            (Some(50_000), 10_000, 67_000, 17_000),
            (Some(50_000), 10_000, 900_000, 40_000),
        ] {
            meter.observe(Count { counted, later: text(later), ..Count::default() }, input);
            assert_eq!(meter.of(text(10_000)), want, "{counted:?} {later} {input}");
        }
        assert_eq!(meter.overhead(), 1_000);
        let dense = Meter::new(&Settings { approx_bytes_per_token: 2.0, tokens_per_image: 100, ..settings() });
        assert_eq!(dense.of(Load { text: 1_000, images: 10 }), 3_990);
    }

    /// In a small window no request alone has enough in it.
    #[test]
    fn many_small_requests_tell_what_a_large_one_would() {
        let mut meter = Meter::new(&settings());
        let text = |text| Load { text, images: 0 };
        let small = |edited| Count { counted: Some(5_000), edited, later: text(300), ..Count::default() };
        (0..6).for_each(|_| meter.observe(small(0), 5_480));
        assert_eq!(meter.of(text(1_000)), 1_330);
        meter.observe(small(0), 5_480);
        assert_eq!(meter.of(text(1_000)), 1_600);
        // What left meanwhile was less than by estimate: that says nothing of what came.
        (0..9).for_each(|_| meter.observe(small(2_000), 6_200));
        assert_eq!(meter.of(text(1_000)), 1_600);
    }

    /// A provider that counts so many tokens for each that is estimated, system prompt and tools by a ratio of their own.
    #[test]
    fn what_is_likely_is_right_within_three_percent() {
        for (ratio, around) in [(0.8, 1.1), (1.0, 1.0), (1.35, 1.0), (1.35, 0.9), (2.0, 1.5)] {
            let text = |text| Load { text, images: 0 };
            let of = |messages: u64| (messages as f64 * ratio + 4_000.0 * around) as u64;
            let mut meter = Meter::new(&settings());
            meter.set_overhead(text(4_000));
            meter.observe(Count { later: text(50), ..Count::default() }, of(50));
            let mut sent = 50;
            for later in [700, 3_000, 20, 9_000] {
                meter.observe(
                    Count { counted: Some(of(sent)), later: text(later), ..Count::default() },
                    of(sent + later),
                );
                sent += later;
            }
            for messages in [500, 8_000, 120_000] {
                let (likely, truth) = (meter.likely_request(text(messages)) as f64, of(messages) as f64);
                assert!((likely / truth - 1.0).abs() < 0.03, "{ratio} {around} {messages}: {likely} for {truth}");
            }
        }
    }

    #[test]
    fn system_prompt_and_tools_weigh_what_the_provider_counted() {
        let text = |text| Load { text, images: 0 };
        let counted = |later| Count { later, ..Count::default() };
        let mut meter = Meter::new(&settings());
        meter.set_overhead(text(3_000));
        assert_eq!(meter.request(text(1_000)), 3_990 + 1_330);
        // Of 4,000 tokens by estimate the provider counted 3,600: nine tenths of each part.
        meter.observe(counted(text(1_000)), 3_600);
        assert_eq!((meter.overhead(), meter.request(text(1_000)), meter.room(4_030)), (2_700, 4_030, 1_000));
        // A request with more messages tells less of it, one with fewer tells more, an image nothing.
        for (messages, input, want) in
            [(text(1_500), 9_000, 2_700), (Load { text: 10, images: 1 }, 4_000, 2_700), (text(0), 3_100, 3_100)]
        {
            meter.observe(counted(messages), input);
            assert_eq!(meter.overhead(), want, "{messages:?}");
        }
        meter.set_overhead(text(1_000));
        assert_eq!(meter.overhead(), 1_330);
    }
}
