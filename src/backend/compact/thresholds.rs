//! From a window's size to the marks at which something happens.

use super::{Limits, Settings};
use crate::protocol::report::Marks;

/// What is known of a model's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Tokens that fit, answer included. None: unknown, and no fallback is configured.
    pub tokens: Option<u64>,
    /// Most tokens of one answer.
    pub max_output: u64,
}

impl Window {
    /// The window of a model. One that is only assumed does not count where messages are to be counted instead.
    pub fn of(tokens: u64, known: bool, max_output: u32, settings: &Settings) -> Window {
        let counts = known || settings.fallback_context_window > 0;
        let tokens = counts.then_some(tokens);
        Window { tokens, max_output: u64::from(max_output) }
    }

    /// Tokens that are left for an answer to a request of so many at most. A provider may count denser than was seen of it
    /// until now, and servers that add input and answer up refuse what does not fit.
    pub fn left(self, most: u64) -> u64 {
        self.tokens.map_or(u64::MAX, |tokens| tokens.saturating_sub(most + most / 50))
    }
}

/// Marks in tokens: `0 <= warning <= target <= blocking <= available`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// The window without what is reserved for the answer.
    pub available: u64,
    /// What every compaction has to come under.
    pub target: u64,
    /// Where the model tiers start: the target, unless requests are blocked before.
    pub tiers: u64,
    /// What counts as full when the user is told how much is left.
    pub effective: u64,
    pub warning: u64,
    pub error: u64,
    /// From here on nothing is sent as it is.
    pub blocking: u64,
    /// Messages that trigger instead of tokens, when the window is unknown.
    pub max_messages: Option<u64>,
}

impl Thresholds {
    /// The marks that front ends show.
    pub fn marks(&self) -> Marks {
        let Thresholds { available, warning, target, blocking, max_messages, .. } = *self;
        Marks { available, warning, target, blocking, max_messages }
    }

    pub fn new(window: Window, settings: &Settings) -> Thresholds {
        let Some(tokens) = window.tokens else {
            let endless = u64::MAX / 4;
            return Thresholds {
                available: endless,
                target: endless,
                tiers: endless,
                effective: endless,
                warning: endless,
                error: endless,
                blocking: endless,
                max_messages: Some(settings.max_messages),
            };
        };
        let usual = window.max_output.min(settings.max_reserved_output).min(tokens / 4);
        let available = tokens.saturating_sub(settings.reserved_output.unwrap_or(usual));
        let limits = Limits::new(settings, available);
        let highest = available - limits.free_space;
        let asked = settings.blocking_limit.filter(|limit| *limit > 0);
        let tiers = match settings.auto {
            true => lowered(settings, available).map_or(highest, |lower| lower.min(highest)),
            false => highest,
        };
        // Below the tiers only where that was asked for: then the trim comes before them.
        let usual = available - limits.remaining;
        let blocking = asked.unwrap_or(if settings.auto { usual.max(tiers) } else { usual }).min(available);
        let target = tiers.min(blocking);
        let effective = if settings.auto { target } else { available };
        Thresholds {
            available,
            target,
            tiers,
            effective,
            warning: effective.saturating_sub(limits.warning).min(target),
            error: effective.saturating_sub(limits.error).min(target),
            blocking,
            max_messages: None,
        }
    }

    /// Percent of the window that is left before automatic compaction, or before the end when it is off.
    pub fn percent_left(&self, used: u64) -> u8 {
        if self.effective == 0 {
            return 0;
        }
        let left = self.effective as f64 - used as f64;
        (left / self.effective as f64 * 100.0).round().clamp(0.0, 100.0) as u8
    }
}

/// The first override that is set, in tokens.
fn lowered(settings: &Settings, available: u64) -> Option<u64> {
    let share = |share: f64| (available as f64 * share) as u64;
    let threshold = settings.auto_compact_threshold.filter(|tokens| *tokens > 0.0);
    let percent = settings.auto_compact_pct_override.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    let threshold = threshold.map(|tokens| if tokens <= 1.0 { share(tokens) } else { tokens as u64 });
    threshold.or(percent.map(|percent| share(percent / 100.0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compact::fixture::settings;

    fn of(tokens: u64, change: impl FnOnce(&mut Settings)) -> Thresholds {
        let mut settings = settings();
        change(&mut settings);
        Thresholds::new(Window { tokens: Some(tokens), max_output: 64_000 }, &settings)
    }

    #[test]
    fn marks_of_common_windows() {
        fn check(got: Thresholds, [available, target, effective, warning, blocking]: [u64; 5]) {
            let Thresholds { available: a, target: t, effective: e, warning: w, blocking: b, .. } = got;
            assert_eq!([a, t, e, w, b], [available, target, effective, warning, blocking]);
        }
        check(of(200_000, |_| {}), [180_000, 167_000, 167_000, 147_000, 177_000]);
        check(of(8_192, |_| {}), [6_144, 5_120, 5_120, 3_584, 5_760]);
        check(of(1_000_000, |_| {}), [980_000, 967_000, 967_000, 947_000, 977_000]);
        check(of(200_000, |settings| settings.auto = false), [180_000, 167_000, 180_000, 160_000, 177_000]);
        check(
            of(200_000, |settings| settings.auto_compact_threshold = Some(0.5)),
            [180_000, 90_000, 90_000, 70_000, 177_000],
        );
        check(
            of(200_000, |settings| settings.auto_compact_threshold = Some(10_000.0)),
            [180_000, 10_000, 10_000, 0, 177_000],
        );
        // Lowered, never raised; the threshold before the percentage; an invalid percentage is ignored.
        check(
            of(200_000, |settings| settings.auto_compact_threshold = Some(999_999.0)),
            [180_000, 167_000, 167_000, 147_000, 177_000],
        );
        check(
            of(200_000, |settings| {
                (settings.auto_compact_threshold, settings.auto_compact_pct_override) = (Some(100_000.0), Some(10.0));
            }),
            [180_000, 100_000, 100_000, 80_000, 177_000],
        );
        check(
            of(200_000, |settings| settings.auto_compact_pct_override = Some(101.0)),
            [180_000, 167_000, 167_000, 147_000, 177_000],
        );
        // Any positive limit counts; one below the target makes room there.
        check(of(200_000, |settings| settings.blocking_limit = Some(1)), [180_000, 1, 1, 0, 1]);
        let early = of(200_000, |settings| settings.blocking_limit = Some(50_000));
        check(early, [180_000, 50_000, 50_000, 30_000, 50_000]);
        assert_eq!(early.tiers, 167_000);
        check(
            of(200_000, |settings| (settings.reserved_output, settings.blocking_limit) = (Some(0), Some(0))),
            [200_000, 187_000, 187_000, 167_000, 197_000],
        );
    }

    #[test]
    fn percent_left() {
        let marks = of(200_000, |_| {});
        for (used, want) in [(0, 100), (83_500, 50), (166_000, 1), (166_999, 0), (167_000, 0), (u64::MAX, 0)] {
            assert_eq!(marks.percent_left(used), want, "{used}");
        }
        assert_eq!(Thresholds { effective: 0, ..marks }.percent_left(0), 0);
    }

    #[test]
    fn assumed_windows_count_or_messages_do() {
        let mut settings = settings();
        let window = |settings: &Settings| Window::of(200_000, false, 8_000, settings);
        assert_eq!(window(&settings).tokens, Some(200_000));
        settings.fallback_context_window = 0;
        assert_eq!(Thresholds::new(window(&settings), &settings).max_messages, Some(50));
        assert_eq!(Window::of(200_000, true, 8_000, &settings).tokens, Some(200_000));
    }

    proptest! {
        #[test]
        fn marks_keep_their_order(
            window in 2_000u64..2_000_000,
            max_output in 1u64..200_000,
            auto: bool,
            threshold in prop::option::of(prop_oneof![0.0f64..1.5, 0.0f64..3e6]),
            percent in prop::option::of(-5.0f64..150.0),
            blocking in prop::option::of(0u64..3_000_000),
            reserved in prop::option::of(0u64..3_000_000),
            offsets in prop::array::uniform4(0u64..3_000_000),
            used in 0u64..3_000_000,
        ) {
            let mut settings = settings();
            (settings.auto, settings.auto_compact_threshold, settings.auto_compact_pct_override) = (auto, threshold, percent);
            (settings.blocking_limit, settings.reserved_output) = (blocking, reserved);
            [settings.free_space_buffer, settings.warning_threshold, settings.error_threshold, settings.min_context_remaining] = offsets;
            let marks = Thresholds::new(Window { tokens: Some(window), max_output }, &settings);
            prop_assert!(marks.warning <= marks.target && marks.error <= marks.target, "{marks:?}");
            prop_assert!(marks.target <= marks.blocking && marks.blocking <= marks.available, "{marks:?}");
            prop_assert!(marks.available <= window && marks.percent_left(used) <= 100);
            // Without overrides there is room to work in.
            if reserved.is_none() {
                prop_assert!(marks.available >= window - window / 4);
            }
        }
    }
}
