//! Integration tests.

mod support;
mod surface;
