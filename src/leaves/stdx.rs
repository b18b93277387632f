//! Small things that the standard library lacks. Nothing here knows of agents.

pub mod address;
pub mod ansi;
pub mod clock;
#[cfg(unix)]
pub mod ending;
pub mod frontmatter;
pub mod fs;
pub mod git;
pub mod glob;
pub mod hash;
pub mod host;
pub mod links;
pub mod memory;
pub mod nearest;
pub mod outside;
pub mod panics;
pub mod path_text;
pub mod process;
pub mod programs;
pub mod redact;
pub mod regular;
pub mod replace;
pub mod schema;
pub mod sealed;
pub mod secrecy;
pub mod shell_word;
pub mod sparse;
pub mod sqlite;
pub mod text;
#[cfg(unix)]
pub mod way_back;
