//! What the user agrees to for longer than a session, kept in their files.

use std::path::PathBuf;

use crate::agent::Grants;
use crate::config;
use crate::config::edit::{self, Target};
use crate::config::paths::Paths;
use crate::config::trust::Extent;
use crate::protocol::GrantScope;

/// Keeps granted rules in Claude Code's settings files.
pub(super) struct Files {
    pub(super) paths: Paths,
    pub(super) project: PathBuf,
}

impl Grants for Files {
    fn save(&self, scope: GrantScope, rule: &str) -> Result<(), String> {
        match config::grant::file_of(scope, &self.paths, &self.project) {
            Some(file) => config::grant::grant(&file, rule).map_err(|problem| problem.to_string())?,
            None => return Ok(()),
        }
        // What the user has just granted needs no question at the next start.
        if scope == GrantScope::Project {
            let used = config::grant::used(&self.project, rule);
            config::trust::remember(&self.paths, &self.project, Extent::More, &[used])
                .map_err(|error| format!("the rule will ask again: {error}"))?;
        }
        Ok(())
    }

    fn run_unasked(&self) -> Result<(), String> {
        let changed = edit::change(&Target::user(&self.paths), "sandbox.auto_allow", Some("true"));
        changed.map(drop).map_err(|problem| problem.to_string())
    }
}
