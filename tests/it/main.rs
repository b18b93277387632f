//! Integration tests.

mod support;
mod wires;
