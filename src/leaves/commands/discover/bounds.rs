//! How far a search for skills goes: what others bring along leads nowhere that the user did not choose.

use std::path::{Path, PathBuf};

use super::{Diagnostic, FOLDERS, Walk};
use crate::stdx::links;

/// Most folders below one root of a plugin, and most outside a repository that its links lead to: neither was chosen by the user.
const BROUGHT: usize = 2_000;
pub(super) const OUTSIDE: usize = 500;

/// How far the links of a root may lead.
pub(super) enum Bounds {
    /// They are the user's own.
    Anywhere,
    /// Out of this repository to skills alone.
    Repository(PathBuf),
    /// Not out of this plugin.
    Plugin(PathBuf),
}

impl Walk<'_> {
    pub(super) fn bound(&mut self, bounds: Bounds) {
        (self.bounds, self.outside) = (bounds, OUTSIDE);
        self.left = self.most();
    }

    /// Whether a folder may be entered; says why not.
    pub(super) fn admits(&mut self, folder: &Path) -> bool {
        let top = match &self.bounds {
            Bounds::Anywhere => return true,
            Bounds::Repository(top) | Bounds::Plugin(top) => top,
        };
        let Ok(real) = folder.canonicalize() else { return false };
        if real.starts_with(top) {
            return true;
        }
        let told = if matches!(self.bounds, Bounds::Plugin(_)) {
            let what = format!("is a link to {}, outside the plugin", real.display());
            Some([what, "skills in it are not loaded".into(), "put a copy of the folder here".into()])
        } else {
            let first = self.outside == 1;
            self.outside = self.outside.saturating_sub(1);
            if self.outside > 0 {
                return true;
            }
            let what = format!("a link leads to more than {OUTSIDE} folders outside the project");
            first.then(|| [what, "further skills there are not found".into(), "link the skills alone".into()])
        };
        if let Some([what, effect, fix]) = told {
            self.found.problems.push(Diagnostic::error(folder, None, [what.as_str(), &effect, &fix]));
        }
        false
    }

    /// Most folders below a root.
    pub(super) fn most(&self) -> usize {
        if matches!(self.bounds, Bounds::Plugin(_)) { BROUGHT } else { FOLDERS }
    }

    /// Why a file may not be loaded from where it really lies.
    pub(super) fn refuses(&self, path: &Path) -> Option<String> {
        let real = path.canonicalize().ok()?;
        match &self.bounds {
            Bounds::Plugin(top) if !real.starts_with(top) => {
                Some(format!("is a link to {}, outside the plugin", real.display()))
            }
            Bounds::Repository(top) | Bounds::Plugin(top) if !links::is_definition(path, &real, top) => {
                Some(format!("is a link to {}, which is not a skill", real.display()))
            }
            _ => None,
        }
    }
}
