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
