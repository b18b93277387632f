//! What is wrong with a skill, the effect, and how to fix it.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::stdx::ansi::visible;

/// How much a fault costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Everything works; other tools may see it differently.
    Warning,
    /// Something that the author wrote does not work.
    Error,
}

/// One fault, at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub file: PathBuf,
    /// From 1; none when the whole file is meant.
    pub line: Option<usize>,
    pub severity: Severity,
    pub what: String,
    /// What happens because of it.
    pub effect: String,
    pub fix: String,
}

impl Diagnostic {
    pub(super) fn warning(file: &std::path::Path, line: Option<usize>, words: [&str; 3]) -> Diagnostic {
        let [what, effect, fix] = words.map(str::to_owned);
        Diagnostic { file: file.to_owned(), line, severity: Severity::Warning, what, effect, fix }
    }

    pub(super) fn error(file: &std::path::Path, line: Option<usize>, words: [&str; 3]) -> Diagnostic {
        Diagnostic { severity: Severity::Error, ..Diagnostic::warning(file, line, words) }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file's name and text are untrusted bytes.
        let clean = |text: &str| visible(text).replace('\n', " ");
        write!(f, "{}", clean(&self.file.display().to_string()))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, ": {severity}: {}; {}; {}", clean(&self.what), clean(&self.effect), clean(&self.fix))
    }
}
