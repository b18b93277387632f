//! A session on disk: an append-only log, and the context as a projection of it.

pub mod entry;
pub mod store;
