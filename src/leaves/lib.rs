//! The parts that use no other part of cocode: a crate of its own, which compiles while the dependencies of the rest still do.

pub mod commands;
pub mod hooks;
pub mod message;
pub mod permission;
pub mod provider;
pub mod sandbox;
pub mod stdx;
pub mod thinking;
