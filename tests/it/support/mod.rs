//! What the tests share.

pub(crate) mod fake_api;
