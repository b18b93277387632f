//! The terminal front end: speaks only Op and Event.

pub mod app;
pub mod composer;
pub mod dialog;
pub mod keymap;
pub mod msg;
pub mod pager;
pub mod paint;
pub mod popup;
pub mod render;
pub mod spinner;
pub mod status;
pub mod terminal;
pub mod theme;
pub mod update;
pub mod view;

#[cfg(test)]
mod tests;
