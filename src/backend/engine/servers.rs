//! The local model servers that the user agreed to talk to.

use std::path::PathBuf;

use crate::config::paths::Paths;
use crate::stdx::fs::replace_private;

fn file_of(paths: &Paths) -> PathBuf {
    paths.home.join("cocode").join("local-servers")
}

/// Addresses that the user agreed to, one a line.
pub(super) fn known(paths: &Paths) -> String {
    std::fs::read_to_string(file_of(paths)).unwrap_or_default()
}

/// Adds one to those that `known` has read.
pub(super) fn remember(paths: &Paths, known: &str, url: &str) {
    if known.lines().any(|line| line == url) {
        return;
    }
    let file = file_of(paths);
    if let Err(error) = replace_private(&file, format!("{known}{url}\n").as_bytes()) {
        tracing::warn!(%error, "cannot remember the local server");
    }
}
