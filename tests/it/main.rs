//! Integration tests.

mod config;
mod readme;
mod tidy;
