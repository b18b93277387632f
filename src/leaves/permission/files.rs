//! The only window to the file system: where a path really leads.

mod below;
mod remembered;

use std::path::{Component, Path, PathBuf};

pub(super) use self::below::{Step, Walk, walk};
pub(super) use self::remembered::{MAX_PATH, Remembered};
use super::repository;
use crate::stdx::links::resolve_with;
use crate::stdx::sealed::Sealed;
use crate::stdx::{git, programs, regular};

/// Resolves links.
pub trait Files {
    /// Where a link leads; none for what is not a link.
    fn link(&self, path: &Path) -> Option<PathBuf>;

    /// The real path of the longest prefix that exists, with the rest appended. `path` is absolute and may hold `..`,
    /// which is meant as the kernel means it: the parent of where the link before it leads.
    fn resolve(&self, path: &Path) -> PathBuf {
        resolve_with(path, |path| self.link(path))
    }

    /// Whether the path itself is a plain file: no folder, no link, and not missing.
    fn is_file(&self, path: &Path) -> bool;

    /// Whether a shell that comes past the file in `PATH` starts it.
    fn runs(&self, path: &Path) -> bool {
        self.is_file(&self.resolve(path))
    }

    /// Whether other users may change what lies there.
    fn others_write(&self, _path: &Path) -> bool {
        false
    }

    /// Whether everybody may read what lies there, or nobody: it is missing.
    fn others_read(&self, _path: &Path) -> bool {
        true
    }

    /// Whether a repository's configuration may hold a password or a token.
    fn keeps_token(&self, _config: &Path) -> bool {
        false
    }

    /// Whether an address that git would show in the folder holds an account or a token.
    fn names_account(&self, _folder: &Path, _user: git::User<'_>) -> bool {
        false
    }

    /// Which file it is, where it has other names, too.
    fn shared(&self, _path: &Path) -> Option<(u64, u64)> {
        None
    }

    /// The names in a folder, for globs; empty when it cannot be listed, at most [`MAX_NAMES`].
    fn names(&self, folder: &Path) -> Vec<String>;

    /// Whether another file system is mounted on the folder.
    fn is_mount(&self, folder: &Path) -> bool;

    /// The patterns of an ignore file that show again what is ignored or hidden.
    fn negated(&self, _file: &Path) -> Vec<String> {
        Vec::new()
    }

    /// The names of folders that an ignore file leaves out wherever they lie.
    fn ignored(&self, _file: &Path) -> Vec<String> {
        Vec::new()
    }

    /// Whether git passes over what lies there unless its index holds it.
    fn git_ignores(&self, _path: &Path, _user: git::User<'_>) -> bool {
        false
    }

    /// What git's index holds in the repository around the folder; None where that is not told.
    fn tracked(&self, _folder: &Path) -> Option<Vec<PathBuf>> {
        Some(Vec::new())
    }

    /// Whether a branch of the repository around the folder has the name, and nothing else of the repository that git would
    /// take first.
    fn is_branch(&self, _folder: &Path, _name: &str) -> bool {
        false
    }

    /// What git obeys of the repository around the folder, and of the user's own settings, beside what has its place in `.git`:
    /// folders of hooks, and files of settings.
    fn git_obeys(&self, _folder: &Path, _user: git::User<'_>) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The hooks that git would run there.
    ///
    /// # Errors
    /// Why they cannot be told.
    fn live_hooks(&self, _folder: &Path, _user: git::User<'_>) -> Result<Vec<PathBuf>, String> {
        Ok(Vec::new())
    }

    /// The first of the files that holds something else now.
    fn broken<'a>(&self, _sealed: &'a Sealed) -> Option<&'a Path> {
        None
    }

    /// What git reads of the repository around the folder, and of the user's own configuration, wherever that lies.
    fn git_reads(&self, _folder: &Path, _user: git::User<'_>) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Where the repository of a linked work tree around the folder lies, if it is one.
    fn linked_repository(&self, _folder: &Path) -> Option<PathBuf> {
        None
    }

    /// Whether git may be started in the folder without a question.
    ///
    /// # Errors
    /// What it might obey there.
    fn repository(&self, folder: &Path) -> Result<(), String>;

    /// The same of a git that changes something, where a person has allowed that: credentials and other objects may be
    /// fetched, and git-lfs's own filter may run.
    ///
    /// # Errors
    /// What it might obey there.
    fn repository_to_change(&self, folder: &Path) -> Result<(), String> {
        self.repository(folder)
    }

    /// Whether a rebase that was interrupted there runs no program once it continues.
    ///
    /// # Errors
    /// What it would run.
    fn unfinished(&self, _folder: &Path) -> Result<(), String> {
        Ok(())
    }

    /// Whether git may be started in every repository below the work tree, which its index may name by then. `top`: the folder
    /// itself must be the top of the work tree.
    ///
    /// # Errors
    /// What it might obey there.
    fn repositories(&self, _folder: &Path, _top: bool) -> Result<(), String> {
        Ok(())
    }

    /// Counts what a decision has cost so far; whether that is more than any may cost.
    fn spend(&self, _steps: usize) -> bool {
        false
    }
}

/// Most names of a folder that a glob is tried on; a folder with more makes the glob ask.
pub const MAX_NAMES: usize = 4096;

/// Largest ignore file that is read, in bytes.
const MAX_IGNORE: u64 = 1 << 16;

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn link(&self, path: &Path) -> Option<PathBuf> {
        std::fs::read_link(path).ok()
    }

    fn is_file(&self, path: &Path) -> bool {
        std::fs::symlink_metadata(path).is_ok_and(|data| data.is_file())
    }

    fn runs(&self, path: &Path) -> bool {
        programs::runs(path)
    }

    fn others_write(&self, path: &Path) -> bool {
        programs::others_write(path)
    }

    fn others_read(&self, path: &Path) -> bool {
        programs::others_read(path)
    }

    fn keeps_token(&self, config: &Path) -> bool {
        match std::fs::metadata(config).map(|data| data.is_file() && data.len() <= MAX_IGNORE) {
            Ok(true) => !std::fs::read_to_string(config).is_ok_and(|text| repository::is_plain(&text)),
            Ok(false) => true,
            Err(_) => false,
        }
    }

    fn names_account(&self, folder: &Path, user: git::User<'_>) -> bool {
        repository::names_account(folder, user)
    }

    #[cfg(unix)]
    fn shared(&self, path: &Path) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;

        let data = std::fs::symlink_metadata(path).ok()?;
        (data.is_file() && data.nlink() > 1).then(|| (data.dev(), data.ino()))
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        entries.flatten().take(MAX_NAMES).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[cfg(unix)]
    fn is_mount(&self, folder: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;

        // Of files an overlay tells the device that lies below it.
        let device =
            |path: &Path| std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_dir).map(|data| data.dev());
        let Some(own) = device(folder) else { return false };
        folder.parent().and_then(device) != Some(own)
    }

    #[cfg(not(unix))]
    fn is_mount(&self, _: &Path) -> bool {
        false
    }

    fn negated(&self, file: &Path) -> Vec<String> {
        let own = file.to_owned();
        // Of another work tree git keeps the folder elsewhere.
        let git = file.ancestors().nth(2).filter(|git| file.ends_with(".git/info/exclude") && git.is_file());
        let file = git.map_or(own, |git| git_folder(git).join("info/exclude"));
        if !file.exists() {
            return Vec::new();
        }
        // What is too large to be read may show everything.
        let Ok(bytes) = regular::read(&file, MAX_IGNORE + 1) else { return vec!["*".to_owned()] };
        if bytes.len() as u64 > MAX_IGNORE {
            return vec!["*".to_owned()];
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.trim_start_matches('\u{feff}').lines();
        lines.filter_map(|line| line.strip_prefix('!')).map(|line| line.trim_end().to_owned()).collect()
    }

    fn ignored(&self, file: &Path) -> Vec<String> {
        let Ok(bytes) = regular::read(file, MAX_IGNORE) else { return Vec::new() };
        let plain =
            |line: &&str| !line.is_empty() && line.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(|line| line.trim_end_matches('/')).filter(plain).map(str::to_owned).collect()
    }

    fn git_ignores(&self, path: &Path, user: git::User<'_>) -> bool {
        repository::ignores(path, user)
    }

    fn tracked(&self, folder: &Path) -> Option<Vec<PathBuf>> {
        repository::tracked(folder)
    }

    fn is_branch(&self, folder: &Path, name: &str) -> bool {
        repository::is_branch(folder, name)
    }

    fn git_obeys(&self, folder: &Path, user: git::User<'_>) -> Vec<PathBuf> {
        repository::obeyed(folder, user)
    }

    fn live_hooks(&self, folder: &Path, user: git::User<'_>) -> Result<Vec<PathBuf>, String> {
        Ok(repository::hooks::live(folder, user)?.into_iter().map(|(_, hook)| hook).collect())
    }

    fn broken<'a>(&self, sealed: &'a Sealed) -> Option<&'a Path> {
        sealed.broken()
    }

    fn git_reads(&self, folder: &Path, user: git::User<'_>) -> Vec<PathBuf> {
        repository::reads(folder, user)
    }

    fn linked_repository(&self, folder: &Path) -> Option<PathBuf> {
        git::linked(folder)
    }

    fn repository(&self, folder: &Path) -> Result<(), String> {
        repository::judge(folder)
    }

    fn repository_to_change(&self, folder: &Path) -> Result<(), String> {
        repository::judge_change(folder)
    }

    fn unfinished(&self, folder: &Path) -> Result<(), String> {
        repository::todo::judge(folder)
    }

    fn repositories(&self, folder: &Path, top: bool) -> Result<(), String> {
        repository::judge_all(folder, top)
    }
}

/// The folder that a `.git` file names, or the one that it shares with other work trees.
fn git_folder(git: &Path) -> PathBuf {
    let named = |file: &Path| {
        let text = String::from_utf8_lossy(&regular::read(file, 4096).ok()?).into_owned();
        let path = text.lines().next()?.trim_start_matches("gitdir:").trim().to_owned();
        Some(file.parent()?.join(path))
    };
    let folder = named(git).unwrap_or_default();
    named(&folder.join("commondir")).unwrap_or(folder)
}

/// Removes `.` and `..` by the text alone, as `cd` does.
pub fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
pub(super) mod fake {
    use super::*;

    /// Links by a table (a file that is not a link leads to itself); every other path is real.
    pub(crate) struct Table(pub(crate) &'static [(&'static str, &'static str)]);

    impl Files for Table {
        fn link(&self, path: &Path) -> Option<PathBuf> {
            let found = self.0.iter().find(|(link, target)| link != target && Path::new(link) == path);
            found.map(|(_, target)| PathBuf::from(target))
        }

        fn is_file(&self, path: &Path) -> bool {
            self.0.iter().any(|(link, target)| link == target && Path::new(link) == path) && self.names(path).is_empty()
        }

        fn names(&self, folder: &Path) -> Vec<String> {
            let inside = self.0.iter().filter(|(link, _)| Path::new(link).parent() == Some(folder));
            inside.filter_map(|(link, _)| link.rsplit('/').next()).map(str::to_owned).collect()
        }

        fn keeps_token(&self, config: &Path) -> bool {
            config.starts_with("/p/cloned")
        }

        fn names_account(&self, folder: &Path, _user: git::User<'_>) -> bool {
            folder.starts_with("/p/cloned")
        }

        fn shared(&self, path: &Path) -> Option<(u64, u64)> {
            matches!(path.to_str(), Some("/p/twin/hard.txt" | "/p/.env")).then_some((1, 2))
        }

        fn is_mount(&self, folder: &Path) -> bool {
            folder.ends_with("mounted")
        }

        fn git_ignores(&self, path: &Path, _user: git::User<'_>) -> bool {
            !path.starts_with("/p/nest/sub/fresh")
        }

        fn tracked(&self, _: &Path) -> Option<Vec<PathBuf>> {
            Some(vec!["/p/src/main.rs".into()])
        }

        fn repository(&self, _: &Path) -> Result<(), String> {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_before_parents() {
        let files = fake::Table(&[
            ("/p/link", "/q/deep"),
            ("/p/rel", "sub/x"),
            ("/p/loop", "loop"),
            ("/p/dangling", "/etc/new"),
        ]);
        let check = |path: &str, want: &str| assert_eq!(files.resolve(Path::new(path)), Path::new(want), "{path}");
        check("/p/a/../b", "/p/b");
        check("/p/link/../b", "/q/b");
        check("/p/rel/y", "/p/sub/x/y");
        check("/p/dangling", "/etc/new");
        check("/p/loop", "/");
        check("/../..", "/");
    }

    #[test]
    fn walks_look_at_what_lies_nearest_first() {
        let files = fake::Table(&[
            ("/p/a/b/c", "/p/a/b/c"),
            ("/p/a/b", "/p/a/b"),
            ("/p/a", "/p/a"),
            ("/p/z", "/p"),
            ("/p/y", "/p/y"),
        ]);
        let check = |most, past: &str, stop: &str, want: &str, end| {
            let mut seen = Vec::new();
            let found = walk(vec!["/p".into()], most, &files, |path, link| {
                let path = path.to_str().unwrap();
                seen.push(format!("{path}{}", if link { "@" } else { "" }));
                match path {
                    path if path == past => Step::Past,
                    path if path == stop => Step::Stop,
                    _ => Step::Into,
                }
            });
            assert_eq!((seen.join(" ").as_str(), found), (want, end));
        };
        check(9, "", "", "/p/a /p/z@ /p/y /p/a/b /p/a/b/c", Walk::Done);
        check(9, "/p/a", "", "/p/a /p/z@ /p/y", Walk::Done);
        check(9, "", "/p/y", "/p/a /p/z@ /p/y", Walk::Stopped);
        check(3, "", "", "/p/a /p/z@ /p/y /p/a/b", Walk::TooMany);
    }

    #[cfg(unix)]
    #[test]
    fn the_disk_agrees() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        std::os::unix::fs::symlink("real/deep", root.join("link")).unwrap();
        assert_eq!(Disk.resolve(&root.join("link/../new.txt")), root.join("real/new.txt"));
        assert_eq!(lexical(&root.join("link/../new.txt")), root.join("new.txt"));
    }
}
