//! What a command must not change though it may write around it: what programs run or obey later, outside of any sandbox.
//! The supervisor asks at each call; the paths are real ones.

mod names;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::stdx::glob::{self, Case};
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

/// What other programs obey in their repositories.
const OTHERS: [&[&str]; 3] = [&[".hg", "hgrc"], &[".jj", "repo", "config.toml"], &[".svn", "config"]];

/// Most parts of a name that counts in a home.
const DEEPEST: usize = 4;

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
    /// What rules refuse by its name, whether it is there or not.
    pub refused: Vec<Refused>,
}

/// Paths below a folder that a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    #[serde(with = "path_text")]
    pub base: PathBuf,
    /// The parts of a pattern; a folder that fits it stands for all that is in it.
    pub parts: Vec<String>,
}

impl Refused {
    fn covers(&self, path: &Path) -> bool {
        let Ok(rest) = path.strip_prefix(&self.base) else { return false };
        // A name that counts everywhere is not one of git's own files, nor one of a package's.
        let anywhere = self.parts.first().is_some_and(|part| part == "**");
        let apart = |part: &OsStr| same(part, ".git") || is_one_of(&PACKAGES, part);
        if anywhere && rest.iter().any(apart) {
            return false;
        }
        let rest: Vec<_> = rest.iter().map(OsStr::to_string_lossy).collect();
        glob::path(&self.parts, &rest.iter().map(|part| &**part).collect::<Vec<_>>(), Case::Ignored)
    }
}

/// What a guard says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    Free,
    /// The name of a repository's own folder: it may be made, and stays where it is.
    Repository,
    /// It may be made, and then stays what it is, with the folder that it is in: what leads git from a work tree to the
    /// folder that it obeys.
    Once,
    Kept,
}

impl Guard {
    pub fn is_empty(&self) -> bool {
        *self == Guard::default()
    }

    /// Whether a rule refuses the path, whatever else is said of it.
    pub fn refuses(&self, path: &Path) -> bool {
        self.refused.iter().any(|refused| refused.covers(path))
    }

    /// What may become of a path, by where it lies and what it is called.
    pub fn says(&self, path: &Path) -> Guarded {
        if self.free.iter().any(|free| path.starts_with(free)) {
            return Guarded::Free;
        }
        if self.fixes(path) {
            return Guarded::Kept;
        }
        let said = self.below(&self.roots, path).map_or(Guarded::Free, |(_, rest)| {
            let counting = (0..rest.len()).take_while(|at| !is_one_of(&PACKAGES, rest[*at]));
            counting.map(|at| named(&rest[at..])).find(|said| *said != Guarded::Free).unwrap_or(Guarded::Free)
        });
        match said {
            Guarded::Free => self.under_home(path).map_or(Guarded::Free, |rest| at_home(&rest)),
            said => said,
        }
    }

    /// The parts of a path below the deepest of some folders that it lies in.
    fn below<'a>(&self, folders: &'a [PathBuf], path: &'a Path) -> Option<(&'a PathBuf, Vec<&'a OsStr>)> {
        let depth = |folder: &&PathBuf| folder.components().count();
        let folder = folders.iter().filter(|folder| path.starts_with(folder)).max_by_key(depth)?;
        let rest = path.strip_prefix(folder).ok()?;
        Some((folder, rest.components().map(|part| part.as_os_str()).collect()))
    }

    /// The parts of a path below a home, unless it lies in a project there.
    fn under_home<'a>(&'a self, path: &'a Path) -> Option<Vec<&'a OsStr>> {
        let (home, rest) = self.below(&self.homes, path)?;
        let project = self.below(&self.roots, path).is_some_and(|(root, _)| !home.starts_with(root));
        (!project).then_some(rest)
    }

    /// Whether what is protected may lie below the path: a link there would lead to something else.
    pub fn leads(&self, path: &Path) -> bool {
        if self.free.iter().any(|free| path.starts_with(free)) {
            return false;
        }
        let inside = |rest: &[&OsStr]| {
            let counting = (0..rest.len()).take_while(|at| !is_one_of(&PACKAGES, rest[*at]));
            counting.into_iter().any(|at| is_above(&rest[at..], false))
        };
        self.holds(path).is_some()
            || self.below(&self.roots, path).is_some_and(|(_, rest)| inside(&rest))
            || self.under_home(path).is_some_and(|rest| is_above(&rest, true))
    }

    /// Whether the path is protected by itself, whatever it is called.
    pub fn fixes(&self, path: &Path) -> bool {
        self.paths.iter().any(|kept| path.starts_with(kept)) && !self.free.iter().any(|free| path.starts_with(free))
    }

    /// The first path that is protected by itself and lies below this one, which is moved as a whole.
    pub fn holds(&self, path: &Path) -> Option<&Path> {
        let below = |kept: &&PathBuf| kept.starts_with(path) && !self.free.iter().any(|free| kept.starts_with(free));
        self.paths.iter().chain(&self.roots).find(below).map(PathBuf::as_path)
    }

    /// Whether names count there: a folder that comes from elsewhere, or goes elsewhere, is looked through.
    pub fn counts(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
            || self.under_home(path).is_some_and(|rest| rest.len() < DEEPEST)
    }

    /// The names that are obeyed at the top of a home.
    pub fn names_at_home() -> impl Iterator<Item = PathBuf> {
        let paths = PROFILE_PATHS.iter().chain(names::HOME).map(|parts| parts.iter().collect::<PathBuf>());
        paths.chain(PROFILES.iter().map(PathBuf::from)).chain([PathBuf::from(names::SETTINGS)])
    }

    /// Whether a folder of this name holds packages.
    pub fn spares(name: &OsStr) -> bool {
        is_one_of(&PACKAGES, name)
    }
}

fn same(name: &OsStr, known: &str) -> bool {
    name.eq_ignore_ascii_case(known)
}

fn ends(name: &OsStr, ending: &str) -> bool {
    let name = name.as_encoded_bytes();
    name.len() >= ending.len() && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
}

fn is_one_of(list: &[&str], name: &OsStr) -> bool {
    list.iter().any(|known| same(name, known))
}

/// What the first of some parts says, with those behind it.
fn named(parts: &[&OsStr]) -> Guarded {
    let [first, rest @ ..] = parts else { return Guarded::Free };
    let told = |kept: bool| if kept { Guarded::Kept } else { Guarded::Free };
    // A bare repository has its name before that.
    if ends(first, ".git") {
        return match rest {
            [] => Guarded::Repository,
            [first, _, third] if same(first, "worktrees") && same(third, "commondir") => Guarded::Once,
            _ => told(obeyed(rest)),
        };
    }
    // Of other repositories, too, what they obey: the rest is their work.
    if let Some(own) = OTHERS.iter().find(|own| same(first, own[0])) {
        return told(begins(parts, own));
    }
    let file = rest.is_empty()
        && (is_one_of(PROFILES, first)
            || PROFILE_ENDINGS.iter().any(|ending| first.len() > ending.len() && ends(first, ending)));
    told(file || is_one_of(&FOLDERS, first) || PROFILE_PATHS.iter().any(|path| begins(parts, path)))
}

/// The same for the parts below a home.
fn at_home(parts: &[&OsStr]) -> Guarded {
    let settings = matches!(parts, [first, rest @ ..] if same(first, names::SETTINGS)
        && !rest.is_empty() && !names::STATES.iter().any(|state| begins(rest, state)));
    match settings || names::HOME.iter().any(|path| begins(parts, path)) {
        true => Guarded::Kept,
        false => named(parts),
    }
}

/// Whether the parts lead to a folder in which something of a known name is protected.
fn is_above(parts: &[&OsStr], home: bool) -> bool {
    let above =
        |path: &&[&str]| path.len() > parts.len() && path.iter().zip(parts).all(|(known, part)| same(part, known));
    let in_git = matches!(parts, [first, second, ..]
        if ends(first, ".git") && is_one_of(&["modules", "worktrees"], second));
    in_git
        || PROFILE_PATHS.iter().chain(&OTHERS).any(above)
        || home && (names::HOME.iter().any(above) || matches!(parts, [only] if same(only, names::SETTINGS)))
}

fn begins(parts: &[&OsStr], path: &[&str]) -> bool {
    parts.len() >= path.len() && path.iter().zip(parts).all(|(known, part)| same(part, known))
}

/// Whether git obeys what lies there in a repository's own folder, or in that of one of its modules or work trees.
fn obeyed(parts: &[&OsStr]) -> bool {
    match parts {
        [first, ..] if is_one_of(&OF_GIT, first) => true,
        [first, _, rest @ ..] if same(first, "worktrees") => obeyed(rest),
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
        use Guarded::{Free, Kept, Once, Repository};
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect();
        let guard = Guard {
            paths: paths(&["/h/.claude", "/p/run.sh"]),
            roots: paths(&["/p", "/p/.claude/worktrees/x"]),
            homes: paths(&["/h"]),
            free: paths(&["/p/.idea", "/h/.cargo/registry"]),
            ..Guard::default()
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
            ("/p/bare.git", Repository),
            ("/p/bare.git/hooks/update", Kept),
            ("/p/bare.git/objects/x", Free),
            ("/p/.git/commondir", Kept),
            ("/p/.git/worktrees/w/commondir", Once),
            ("/p/.git/worktrees/w/config.worktree", Kept),
            ("/p/.git/worktrees/w/modules/sub/hooks/x", Kept),
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
            ("/h/.config/other/config", Kept),
            ("/h/.config/go/telemetry/x", Free),
            ("/h/.config", Free),
            ("/h/.vim/plugin/x.vim", Kept),
            ("/h/.claude.json", Kept),
            ("/h/CLAUDE.md", Kept),
            ("/p/CLAUDE.md", Free),
            ("/h/sub/.vim/plugin/x.vim", Free),
            ("/h/.cargo/env", Kept),
            ("/p/.config/nextest.toml", Free),
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
        for (path, leads) in [
            ("/p/.cargo", true),
            ("/p/a/.hg", true),
            ("/p/.git/modules/sub", true),
            ("/p/.git/x", false),
            ("/p/.config", true),
            ("/p/src", false),
            ("/p/node_modules/.cargo", false),
            ("/h/.gradle", true),
            ("/h/.local/share", true),
            ("/h/x", false),
            ("/h/x/.gradle", false),
        ] {
            assert_eq!(guard.leads(Path::new(path)), leads, "{path}");
        }
        let at_home = Guard { roots: paths(&["/h"]), homes: paths(&["/h"]), ..Guard::default() };
        assert_eq!(at_home.says(Path::new("/h/.vim/x")), Kept);
        assert_eq!(at_home.says(Path::new("/h/a/.mcp.json")), Kept);
    }
}
