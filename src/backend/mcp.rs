//! Servers of the Model Context Protocol: what is configured, what runs, and the tools that they offer.
//!
//! | State | Owner |
//! |---|---|
//! | what the files say of a server | `Definition`, read once |
//! | whether it may run | `config::servers`, with what the user agreed to |
//! | a connection, its era and what is open on it | `Peer` |
//! | the life of one server, and what it offers | its task in `server`; others read its last `Status` |
//! | all of them | `Servers`, which the engine owns and the tools ask |
//!
//! The protocol is spoken here rather than by its official library: that reads lines of any length, starts processes past our
//! supervisor, and falls back to the older era on one error only, so most of it would have to be done again in front of it.

mod catalog;
mod definition;
mod era;
mod http;
mod inbound;
mod known;
mod outside;
mod peer;
mod server;
mod servers;
mod stdio;

pub use catalog::{Found, Prompt, Resource, Tool, is_tool, told};
pub use definition::{Definition, Scope, Way};
pub use era::Era;
pub use outside::{Manifest, Program};
pub use peer::{Caller, Fault, Limits};
pub use server::{State, Status};
pub use servers::{Named, Servers, Surroundings};
