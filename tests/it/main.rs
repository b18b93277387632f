//! Integration tests.

// Helpers of tests may fail a test, too; clippy exempts only the tests themselves.
#![allow(clippy::unwrap_used)]

mod agent;
mod config;
mod readme;
=======
#![allow(clippy::unwrap_used, reason = "a test may panic")]

>>>>>>> refs/heads/wires
mod support;
mod surface;
mod tidy;
mod wires;
