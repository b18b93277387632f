//! What is wrong with a plugin, the effect, and how to fix it: told like the faults of skills.

use std::path::{Path, PathBuf};

use crate::commands::{Diagnostic, Severity};

/// One fault.
pub type Fault = Diagnostic;

/// Faults while they are gathered.
pub(super) struct Told {
    file: PathBuf,
    pub(super) faults: Vec<Fault>,
}

impl Told {
    /// `file` is meant where nothing else is named.
    pub(super) fn new(file: &Path) -> Told {
        Told { file: file.to_owned(), faults: Vec::new() }
    }

    pub(super) fn error(&mut self, what: &str, effect: &str, fix: &str) {
        self.error_in(&self.file.clone(), what, effect, fix);
    }

    pub(super) fn error_in(&mut self, file: &Path, what: &str, effect: &str, fix: &str) {
        self.faults.push(fault(file, Severity::Error, [what, effect, fix]));
    }

    pub(super) fn warning(&mut self, what: &str, effect: &str, fix: &str) {
        self.faults.push(fault(&self.file, Severity::Warning, [what, effect, fix]));
    }
}

/// A fault of a file as a whole.
pub(super) fn fault(file: &Path, severity: Severity, [what, effect, fix]: [&str; 3]) -> Fault {
    let file = file.to_owned();
    Diagnostic { file, line: None, severity, what: what.into(), effect: effect.into(), fix: fix.into() }
}
