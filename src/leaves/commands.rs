//! Slash commands and skills: one list of them, whatever they come from.

mod builtin;
pub mod catalog;
mod complete;
pub mod diagnostic;
pub mod discover;
pub mod expand;
mod interface;
mod plugin;
mod registry;
pub mod report;
pub mod skill;
pub mod usage;

pub use builtin::{Builtin, ListKind, Screen, Server, memory_note};
pub use catalog::Catalog;
pub use complete::Completion;
pub use diagnostic::{Diagnostic, Severity};
pub use interface::Interface;
pub use plugin::Plugin;
pub use registry::{Command, Kind, LoadedFrom, Parsed, Registry, SERVED, Source, Standing};
pub use skill::Skill;
