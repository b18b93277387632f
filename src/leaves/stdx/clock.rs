//! The time as an argument: what a test can set, and what the process really has.

use std::time::{Instant, SystemTime};

/// Where the time comes from.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// For durations.
    pub monotonic: fn() -> Instant,
    /// For what is written down.
    pub wall: fn() -> SystemTime,
}

impl Clocks {
    /// The machine's own clocks.
    pub fn real() -> Clocks {
        Clocks { monotonic: Instant::now, wall: SystemTime::now }
    }
}
