//! All but the front ends: what speaks `Op` and `Event`. A crate of its own, so that both compile side by side.

pub mod agent;
mod agents;
pub mod compact;
pub mod config;
pub mod engine;
pub mod mcp;
pub mod plugins;
pub mod protocol;
pub mod report;
pub mod session;
pub mod tools;

use leaves::{commands, hooks, message, permission, provider, sandbox, stdx, thinking};

/// A future on the heap, built in a frame that is gone before it runs. `Box::pin(work())` keeps room for it in the frame of
/// its caller in an unoptimized build, and that frame stays below everything that the future does.
#[inline(never)]
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> std::pin::Pin<Box<F>> {
    Box::pin(make())
}
