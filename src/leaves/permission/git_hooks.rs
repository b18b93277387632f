//! The hooks of the project's repository: what the user agreed to of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::Files;
use super::{Bound, Use, repository};
use crate::stdx::ansi::shown;
use crate::stdx::git::User;
use crate::stdx::sealed::Sealed;

/// Hooks that git may run for a rule that was made for all folders. None by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitHooks(Arc<Agreed>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Agreed {
    hooks: Vec<PathBuf>,
    /// These with all that they run.
    runs: Sealed,
}

impl GitHooks {
    /// What of the repository around the project needs the user's word; None where git runs no hooks there, or where a rule
    /// does not count anyway.
    pub fn found(project: &Path, user: User<'_>) -> Option<(Use, GitHooks)> {
        let hooks = repository::hooks::live(project, user).ok().filter(|hooks| !hooks.is_empty())?;
        let top = repository::top(project)?;
        let mut folders: Vec<(&Path, Vec<String>)> = Vec::new();
        for (_, hook) in &hooks {
            let (folder, name) = (hook.parent()?, hook.file_name()?.to_string_lossy().into_owned());
            match folders.last_mut().filter(|(known, _)| *known == folder) {
                Some((_, names)) => names.push(name),
                None => folders.push((folder, vec![name])),
            }
        }
        let told = folders.iter().map(|(folder, names)| {
            let folder = folder.strip_prefix(&top).unwrap_or(folder);
            format!("{} ({})", names.join(", "), folder.display())
        });
        let line = shown(&format!("hooks of git: {}", told.collect::<Vec<_>>().join("; ")));
        let bound = Bound::programs(&top, &hooks);
        let hooks = hooks.into_iter().map(|(_, hook)| hook).collect();
        let used = Use::running("git hooks", line, "", &bound);
        Some((used, GitHooks(Arc::new(Agreed { hooks, runs: bound.runs().clone() }))))
    }

    /// The files that they run, themselves included.
    pub fn runs(&self) -> &Sealed {
        &self.0.runs
    }

    /// Why a rule for all folders does not cover a git that changes something in the folder: a hook that nobody agreed to, or
    /// one that is another by now.
    pub(super) fn strange(&self, folder: &Path, user: User<'_>, files: &dyn Files) -> Option<String> {
        let hooks = match files.live_hooks(folder, user) {
            Ok(hooks) => hooks,
            Err(reason) => return Some(reason),
        };
        let new = hooks.iter().find(|hook| !self.0.hooks.contains(hook));
        let changed = || Some((hooks.first()?, files.broken(&self.0.runs)?));
        match new {
            Some(hook) => Some(format!("git may run the hook {}, which you have not trusted", hook.display())),
            None => changed().map(|(hook, file)| {
                format!(
                    "git may run the hook {}, and {} has changed since you trusted it",
                    hook.display(),
                    file.display()
                )
            }),
        }
    }
}
