//! Judges a shell line construct by construct.

use std::path::Path;

use super::Behavior;
use super::decide::{Decision, Query};
use super::files::Files;

/// Decides about a whole line that is to run in `cwd`.
pub(super) fn decide(_query: &Query, _command: &str, _cwd: &Path, _files: &dyn Files) -> Decision {
    Decision { behavior: Behavior::Ask, reasons: vec!["it runs a command".into()], suggestions: Vec::new() }
}

pub(super) fn suggestions(_query: &Query, _command: &str, _cwd: &Path, _files: &dyn Files) -> Vec<String> {
    Vec::new()
}
