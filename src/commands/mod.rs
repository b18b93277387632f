//! Slash commands: one list of them, whatever they come from.

mod complete;
mod registry;

pub use complete::Completion;
pub use registry::{Command, Kind, LoadedFrom, Parsed, Registry, Source};
