//! Small things that the standard library lacks. Nothing here knows of agents.

pub mod hash;
pub mod text;
