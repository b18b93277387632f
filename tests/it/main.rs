//! Integration tests.

// Helpers of tests may fail a test, too; clippy exempts only the tests themselves.
#![allow(clippy::unwrap_used)]

mod agent;
mod config;
mod engine;
mod licences;
mod protocol;
mod readme;
mod start;

mod support;
mod surface;
mod tidy;
mod wires;
