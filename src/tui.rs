//! The terminal front end: speaks only Op and Event.

pub mod app;
pub mod asks;
pub mod cell;
pub mod changes;
mod clipboard;
pub mod composer;
pub mod dialog;
mod drafts;
pub mod files;
mod first;
mod fold;
mod fullscreen;
pub mod keymap;
mod keys;
mod leaving;
mod lists;
pub mod msg;
mod notes;
pub mod pager;
pub mod paint;
pub mod panel;
pub mod popup;
pub mod render;
pub mod review;
pub mod run;
pub mod spinner;
pub mod start;
pub mod status;
pub mod terminal;
pub mod theme;
pub mod thinking;
pub mod transcript;
pub mod update;
pub mod view;
mod viewer;

pub use start::{Start, start};

#[cfg(test)]
mod tests;
