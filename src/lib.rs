//! cocode: an interactive coding agent for the terminal. `ARCHITECTURE.md` shows the levels.

pub mod agent;
mod agents;
pub mod cli;
pub mod compact;
pub mod config;
pub mod engine;
pub mod headless;
pub mod protocol;
pub mod report;
pub mod session;
pub mod tools;
pub mod tui;

pub use leaves::{commands, hooks, message, permission, provider, stdx, thinking};
