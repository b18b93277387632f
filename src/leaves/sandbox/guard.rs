//! What a command must not change though it may write around it: what programs run or obey later, outside of any sandbox.
//! The supervisor asks at each call; the paths are real ones.

mod names;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::stdx::path_text;

pub use names::{FOLDERS, PROFILE_ENDINGS, PROFILE_PATHS, PROFILES};

/// Folders of packages that others wrote: they bring such files along, and nobody opens them as a project.
const PACKAGES: [&str; 11] = [
    "node_modules",
    "bower_components",
    "jspm_packages",
    ".pnpm-store",
    "site-packages",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    "vendor",
    "target",
];

/// What git obeys in its own folder; the rest of it is its work. `commondir` says where all of that lies.
pub const OF_GIT: [&str; 6] =
    ["hooks", "config", "config.lock", "config.worktree", "config.worktree.lock", "commondir"];

/// What a command must not change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// These, with all that is or comes to be below them.
    #[serde(with = "path_text::list")]
    pub paths: Vec<PathBuf>,
    /// Folders below which protected names count wherever they stand.
    #[serde(with = "path_text::list")]
    pub roots: Vec<PathBuf>,
    /// Folders in which they count at the top only: homes.
    #[serde(with = "path_text::list")]
    pub homes: Vec<PathBuf>,
    /// What may be changed all the same: caches with packages, and what a rule names.
    #[serde(with = "path_text::list")]
    pub free: Vec<PathBuf>,
    /// Folders in which a command changes only what it has made itself.
    #[serde(with = "path_text::list")]
    pub shared: Vec<PathBuf>,
}

/// What a guard says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    Free,
    /// The name of a repository's own folder: it may be made, and stays where it is.
    Repository,
    Kept,
}

impl Guard {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.roots.is_empty() && self.homes.is_empty() && self.shared.is_empty()
    }

    /// What may become of a path, by where it lies and what it is called.
    pub fn says(&self, path: &Path) -> Guarded {
        if self.free.iter().any(|free| path.starts_with(free)) {
            return Guarded::Free;
        }
        if self.fixes(path) {
            return Guarded::Kept;
        }
        let depth = |root: &&PathBuf| root.components().count();
        let below = |roots: &[PathBuf]| {
            let root = roots.iter().filter(|root| path.starts_with(root)).max_by_key(depth)?;
            let rest = path.strip_prefix(root).ok()?;
            Some(rest.components().map(|part| part.as_os_str()).collect::<Vec<_>>())
        };
        match below(&self.roots) {
            Some(rest) => (0..rest.len())
                .take_while(|at| !is_one_of(&PACKAGES, rest[*at]))
                .map(|at| named(&rest[at..]))
                .find(|said| *said != Guarded::Free)
                .unwrap_or(Guarded::Free),
            None => below(&self.homes).map_or(Guarded::Free, |rest| named(&rest)),
        }
    }

    /// Whether the path is protected by itself, whatever it is called.
    pub fn fixes(&self, path: &Path) -> bool {
        self.paths.iter().any(|kept| path.starts_with(kept)) && !self.free.iter().any(|free| path.starts_with(free))
    }

    /// The first path that is protected by itself and lies below this one, which is moved as a whole.
    pub fn holds(&self, path: &Path) -> Option<&Path> {
        let below = |kept: &&PathBuf| kept.starts_with(path) && !self.free.iter().any(|free| kept.starts_with(free));
        self.paths.iter().find(below).map(PathBuf::as_path)
    }

    /// Whether names count there: a folder that comes from elsewhere, or goes elsewhere, is looked through.
    pub fn counts(&self, path: &Path) -> bool {
        self.roots.iter().chain(&self.homes).any(|root| path.starts_with(root))
    }

    /// Whether a folder of this name holds packages.
    pub fn spares(name: &OsStr) -> bool {
        is_one_of(&PACKAGES, name)
    }
}

fn same(name: &OsStr, known: &str) -> bool {
    name.eq_ignore_ascii_case(known)
}

fn is_one_of(list: &[&str], name: &OsStr) -> bool {
    list.iter().any(|known| same(name, known))
}

/// What the first of some parts says, with those behind it.
fn named(parts: &[&OsStr]) -> Guarded {
    let [first, rest @ ..] = parts else { return Guarded::Free };
    let told = |kept: bool| if kept { Guarded::Kept } else { Guarded::Free };
    if same(first, ".git") {
        return if rest.is_empty() { Guarded::Repository } else { told(obeyed(rest)) };
    }
    // Of other repositories, too, what they obey: the rest is their work.
    let own: &[&[&str]] = &[&[".hg", "hgrc"], &[".jj", "repo", "config.toml"], &[".svn", "config"]];
    if let Some(own) = own.iter().find(|own| same(first, own[0])) {
        return told(begins(parts, own));
    }
    let file = rest.is_empty()
        && (is_one_of(PROFILES, first)
            || PROFILE_ENDINGS.iter().any(|ending| {
                let (name, ending) = (first.as_encoded_bytes(), ending.as_bytes());
                name.len() > ending.len() && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending)
            }));
    told(file || is_one_of(&FOLDERS, first) || PROFILE_PATHS.iter().any(|path| begins(parts, path)))
}

fn begins(parts: &[&OsStr], path: &[&str]) -> bool {
    parts.len() >= path.len() && path.iter().zip(parts).all(|(known, part)| same(part, known))
}

/// Whether git obeys what lies there in a repository's own folder, or in that of one of its modules or work trees.
fn obeyed(parts: &[&OsStr]) -> bool {
    match parts {
        [first, ..] if is_one_of(&OF_GIT, first) => true,
        // Its own names for others: `commondir` is how it says where a work tree belongs.
        [first, _, third, ..] if same(first, "worktrees") => is_one_of(&OF_GIT[..5], third),
        // Names of modules have any number of parts, and what follows is a folder like the one above.
        [first, rest @ ..] if same(first, "modules") => {
            let work = ["refs", "logs", "objects", "info", "lfs"];
            let own = rest.iter().skip(1).take_while(|part| !is_one_of(&work, part));
            own.into_iter().any(|part| is_one_of(&OF_GIT, part))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_stays() {
        use Guarded::{Free, Kept, Repository};
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect();
        let guard = Guard {
            paths: paths(&["/h/.claude", "/p/run.sh"]),
            roots: paths(&["/p", "/p/.claude/worktrees/x"]),
            homes: paths(&["/h"]),
            free: paths(&["/p/.idea", "/h/.cargo/registry"]),
            shared: Vec::new(),
        };
        for (path, want) in [
            ("/p/src/main.rs", Free),
            ("/p/package.json", Free),
            ("/p/.gitignore", Free),
            ("/p/run.sh", Kept),
            ("/p/.git", Repository),
            ("/p/sub/.git", Repository),
            ("/p/.git/HEAD", Free),
            ("/p/.git/index.lock", Free),
            ("/p/.git/refs/heads/config", Free),
            ("/p/.git/refs/heads/hooks/x", Free),
            ("/p/.git/config", Kept),
            ("/p/.git/config.lock", Kept),
            ("/p/.GIT/Config", Kept),
            ("/p/.git/hooks", Kept),
            ("/p/sub/.git/hooks/pre-commit", Kept),
            ("/p/.git/commondir", Kept),
            ("/p/.git/worktrees/w/commondir", Free),
            ("/p/.git/worktrees/w/config.worktree", Kept),
            ("/p/.git/modules/a/b/config", Kept),
            ("/p/.git/modules/a/b/refs/heads/config", Free),
            ("/p/.git/modules/config/HEAD", Free),
            ("/p/.hg/store/x", Free),
            ("/p/.hg/hgrc", Kept),
            ("/p/.claude/settings.json", Kept),
            ("/p/a/.cocode/skills/x", Kept),
            ("/p/.mcp.json", Kept),
            ("/p/.mcp.json/x", Free),
            ("/p/.husky/_/pre-commit", Kept),
            ("/p/a.code-workspace", Kept),
            ("/p/.cargo/config.toml", Kept),
            ("/p/.cargo/audit.toml", Free),
            ("/p/.idea/x", Free),
            // What packages bring along.
            ("/p/node_modules/a/.npmrc", Free),
            ("/p/target/package/a/.cargo/config.toml", Free),
            // A work tree in such a folder is a project like any other.
            ("/p/.claude/worktrees/x/src/a", Free),
            ("/p/.claude/worktrees/x/.mcp.json", Kept),
            ("/h/.bashrc", Kept),
            ("/h/.config/git/config", Kept),
            ("/h/.config/other/config", Free),
            ("/h/.claude/settings.json", Kept),
            ("/h/.cargo/config.toml", Kept),
            ("/h/.cargo/registry/src/a/.gitattributes", Free),
            ("/h/go/pkg/mod/a/.npmrc", Free),
            ("/tmp/x/.git/hooks/a", Free),
        ] {
            assert_eq!(guard.says(Path::new(path)), want, "{path}");
        }
        assert_eq!(guard.holds(Path::new("/h")), Some(Path::new("/h/.claude")));
        assert_eq!(guard.holds(Path::new("/p/src")), None);
    }
}
