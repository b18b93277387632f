//! What the integration tests share.

pub(crate) mod fake_api;
pub(crate) mod harness;
pub(crate) mod program;
pub(crate) mod screen;
