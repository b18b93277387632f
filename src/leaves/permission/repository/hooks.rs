//! The hooks that git runs in a repository: programs that no setting has to name.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{MAX_LINE, Walk, all_settings, content};
use crate::permission::files::{Disk, Files};
use crate::stdx::git::User;
use crate::stdx::programs;

/// Most names in the folders of hooks that are looked at.
const MAX_NAMES: usize = 1000;

/// The hooks of the repository around the folder and of its submodules, each behind the work tree in which it starts: whatever
/// git could run in their folders of hooks. Hooks of the user's own for all their repositories are not the repository's.
///
/// # Errors
/// Why they cannot be told.
pub(in crate::permission) fn live(folder: &Path, user: User<'_>) -> Result<Vec<(PathBuf, PathBuf)>, String> {
    let mut walk = Walk { changes: true, ..Walk::default() };
    walk.around(folder)?;
    let mut folders: Vec<(PathBuf, PathBuf)> =
        walk.hooks.into_iter().map(|(root, folder)| (root, Disk.resolve(&folder))).collect();
    if let Some((root, settings)) = all_settings(folder, user) {
        let named = settings.into_iter().filter(|setting| setting.is("core", "hookspath"));
        let named =
            named.filter_map(|setting| setting.value).map(|path| Disk.resolve(&expanded(&root, &path, user.home)));
        // One that starts in every repository's own folder is the repository's, even if the user's settings name it.
        folders.extend(named.filter(|path| path.starts_with(&root)).map(|path| (root.clone(), path)));
    }
    folders.sort();
    folders.dedup();
    let (mut hooks, mut seen) = (Vec::new(), 0);
    for (root, folder) in folders {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(error) => return Err(format!("cannot read {}: {error}", folder.display())),
        };
        for entry in entries {
            let path = entry.map_err(|error| format!("cannot read {}: {error}", folder.display()))?.path();
            seen += 1;
            if seen > MAX_NAMES {
                return Err(format!("{} holds too many names to find every hook in it", folder.display()));
            }
            let sample = path.extension().is_some_and(|ending| ending == "sample");
            if !sample && programs::runs(&path) && !is_git_lfs(&path) {
                hooks.push((root.clone(), path));
            }
        }
    }
    hooks.sort();
    Ok(hooks)
}

/// A folder as a setting names it.
pub(super) fn expanded(root: &Path, path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => root.join(path),
    }
}

/// Whether the hook is the one that git-lfs puts into each repository: it runs git-lfs, as its filter does, and nothing else.
fn is_git_lfs(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Ok(Some(bytes)) = content(path, MAX_LINE) else { return false };
    let Ok(text) = String::from_utf8(bytes) else { return false };
    let complains = |line: &str| {
        let rest = line.strip_prefix("command -v git-lfs >/dev/null 2>&1 || { ")?;
        let said = rest.strip_suffix("\"; exit 2; }")?;
        let said =
            said.strip_prefix("printf >&2 \"\\n%s\\n\\n\" \"").or_else(|| said.strip_prefix("echo >&2 \"\\n"))?;
        let said = said.strip_suffix("\\n").unwrap_or(said);
        Some(!said.contains(['"', '$', '`', '\\']))
    };
    match text.lines().collect::<Vec<_>>().as_slice() {
        ["#!/bin/sh", complaint, run] => complains(complaint) == Some(true) && *run == format!("git lfs {name} \"$@\""),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LFS: &str = "#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 || { printf >&2 \"\\n%s\\n\\n\" \"This repository is \
        configured for Git LFS but 'git-lfs' was not found on your path. If you no longer wish to use Git LFS, remove this \
        hook by deleting the 'pre-push' file in the hooks directory (set by 'core.hookspath'; usually '.git/hooks').\"; \
        exit 2; }\ngit lfs pre-push \"$@\"\n";

    /// Settings of the user's that name a folder of every repository, also by way of another file.
    #[cfg(unix)]
    #[test]
    fn hooks_that_an_included_file_names_are_found() {
        use std::os::unix::fs::PermissionsExt as _;
        let temp = tempfile::tempdir().unwrap();
        let (home, project) = (temp.path().join("home"), temp.path().canonicalize().unwrap().join("p"));
        std::fs::create_dir_all(home.join("more")).unwrap();
        std::fs::create_dir_all(project.join("scripts")).unwrap();
        assert!(
            std::process::Command::new("git").args(["init", "-q"]).current_dir(&project).status().unwrap().success()
        );
        let hook = project.join("scripts/pre-commit");
        std::fs::write(&hook, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(home.join("more/b"), "[core]\n\thooksPath = scripts\n").unwrap();
        std::fs::write(home.join("more/a"), "[include]\n\tpath = b\n").unwrap();
        let variables = crate::stdx::git::Variables::default();
        for (settings, want) in [
            ("", 0),
            ("[core]\n\thooksPath = scripts\n", 1),
            ("[include]\n\tpath = ~/more/a\n", 1),
            ("[includeIf \"gitdir:/\"]\n\tpath = more/b\n", 1),
            ("[include]\n\tpath = .gitconfig\n", 0),
        ] {
            std::fs::write(home.join(".gitconfig"), settings).unwrap();
            let found = live(&project, User { home: Some(&home), variables: &variables }).unwrap();
            assert_eq!(found.len(), want, "{settings}: {found:?}");
        }
    }

    /// What git obeys though it lies elsewhere.
    #[cfg(unix)]
    #[test]
    fn files_that_settings_include_and_links_in_a_repository_are_found() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (home, project) = (root.join("home"), root.join("p"));
        for folder in [&home, &project.join(".git/objects"), &project.join(".git/refs"), &project.join("mine")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(project.join(".git/config"), "[include]\n\tpath = ../shared\n[core]\n\thooksPath = h\n")
            .unwrap();
        std::fs::write(project.join("shared"), "[includeIf \"gitdir:/\"]\n\tpath = ~/more\n").unwrap();
        std::fs::write(home.join("more"), "[include]\n\tpath = missing\n").unwrap();
        std::fs::write(home.join(".gitconfig"), "[include]\n\tpath = dot/git\n").unwrap();
        std::os::unix::fs::symlink("../mine", project.join(".git/hooks")).unwrap();
        let variables = crate::stdx::git::Variables::default();
        let mut found = super::super::obeyed(&project, User { home: Some(&home), variables: &variables });
        found.sort();
        found.dedup();
        let found: Vec<PathBuf> = found.iter().map(|path| Disk.resolve(path)).collect();
        let want =
            ["home/dot/git", "home/missing", "home/more", "p/shared", "p/h", "p/mine"].map(|path| root.join(path));
        let both = |all: &[PathBuf]| all.iter().cloned().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(both(&found), both(&want));
    }

    #[test]
    fn hooks_of_git_lfs_are_known_by_every_character() {
        let temp = tempfile::tempdir().unwrap();
        let older = LFS.replace("printf >&2 \"\\n%s\\n\\n\" \"", "echo >&2 \"\\n").replace(".\"; exit", ".\\n\"; exit");
        for (name, text, want) in [
            ("pre-push", LFS.to_owned(), true),
            ("pre-push", older, true),
            ("post-merge", LFS.to_owned(), false),
            ("pre-push", LFS.replace("git lfs", "./git lfs"), false),
            ("pre-push", LFS.replace("This", "$(touch x)"), false),
            ("pre-push", LFS.replace("This", "\"; touch x; \""), false),
            ("pre-push", LFS.replace("/bin/sh", "/bin/sh x"), false),
            ("pre-push", format!("{LFS}touch x\n"), false),
        ] {
            let path = temp.path().join(name);
            std::fs::write(&path, &text).unwrap();
            assert_eq!(is_git_lfs(&path), want, "{name}: {text}");
        }
    }
}
