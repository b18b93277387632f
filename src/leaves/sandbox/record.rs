//! Saves what a command is about to change, before it does: so that all of it can be undone, whatever did it.
//!
//! A filter in the command holds every system call that may create, change or destroy what a path names; calls that only read
//! cost nothing. The supervisor finds out once where the path leads, saves what is there when it is touched for the first time,
//! writes a line of the manifest, makes the call itself on what it has found, and hands the result over: a program that changes
//! its path meanwhile, from another thread, changes nothing. States before and after are compared by path, so a call that fails
//! or comes twice leaves nothing wrong behind.

#[cfg(target_os = "linux")]
mod caller;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod deciding;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod guarding;
#[cfg(target_os = "linux")]
mod hand;
#[cfg(target_os = "linux")]
mod leaving;
mod manifest;
#[cfg(target_os = "linux")]
mod notify;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod reading;
#[cfg(target_os = "linux")]
mod recorder;
#[cfg(target_os = "linux")]
mod recording;
#[cfg(target_os = "linux")]
mod supervisor;

pub use manifest::{LEFT, LIVE, Left, Line, MANIFEST, Manifest, Number, Stamp, Touched};
#[cfg(target_os = "linux")]
pub use recording::{Joining, Recording};
#[cfg(target_os = "linux")]
pub use supervisor::{Full, Watcher};

use std::path::PathBuf;

use super::Record;

/// What nobody wants back: temporary files, and what only looks like files.
const SKIPPED: [&str; 6] = ["/proc", "/dev", "/sys", "/run", "/tmp", "/var/tmp"];

impl Record {
    /// Of a command that works in these folders, wherever they are.
    pub fn new(store: PathBuf, within: Vec<PathBuf>, largest: u64, budget: u64) -> Record {
        let skip = SKIPPED.into_iter().map(PathBuf::from).chain([std::env::temp_dir()]).collect();
        Record { store, largest, budget, skip, within }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
