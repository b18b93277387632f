//! The terminal front end: speaks only Op and Event.

pub mod composer;
pub mod dialog;
pub mod keymap;
pub mod msg;
pub mod paint;
pub mod popup;
pub mod render;
pub mod theme;
