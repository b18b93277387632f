//! cocode: an interactive coding agent for the terminal. `ARCHITECTURE.md` shows the levels.

pub mod cli;
pub mod headless;
pub mod prove;
pub mod tui;

pub use backend::{agent, compact, config, engine, mcp, plugins, protocol, report, session, tools};
pub use leaves::{commands, hooks, message, permission, provider, sandbox, stdx, thinking};
