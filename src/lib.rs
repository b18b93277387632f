//! cocode: an interactive coding agent for the terminal. `ARCHITECTURE.md` shows the levels.

pub mod agent;
mod agents;
pub mod cli;
pub mod commands;
pub mod compact;
pub mod config;
pub mod engine;
pub mod headless;
pub mod hooks;
pub mod message;
pub mod permission;
pub mod protocol;
pub mod provider;
pub mod report;
pub mod session;
pub mod stdx;
pub mod thinking;
pub mod tools;
pub mod tui;
