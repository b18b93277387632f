//! Integration tests.

<<<<<<< HEAD
mod support;
mod surface;
=======
// Helpers of tests may fail a test, too; clippy exempts only the tests themselves.
#![allow(clippy::unwrap_used)]

mod config;
mod readme;
mod tidy;
>>>>>>> config
