//! The terminal front end: speaks only Op and Event.

pub mod cell;
pub mod render;
pub mod theme;
pub mod transcript;
