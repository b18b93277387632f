//! What the integration tests share.

pub(crate) mod screen;
//! What the tests share.

pub(crate) mod fake_api;
