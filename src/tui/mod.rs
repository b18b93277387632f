//! The terminal front end: speaks only Op and Event.

pub mod render;
pub mod terminal;
pub mod theme;
