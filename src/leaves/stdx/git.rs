//! What a Git repository says of itself in plain files, so that no process has to be started for it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest `.git` file or `HEAD` that is read, in bytes.
const MAX: u64 = 4096;

/// The variables by which git finds the user's own settings elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `GIT_CONFIG_GLOBAL`: this file in place of both of the usual ones.
    pub global: Option<PathBuf>,
}

/// The user, as git sees them.
#[derive(Debug, Clone, Copy)]
pub struct User<'a> {
    pub home: Option<&'a Path>,
    pub variables: &'a Variables,
}

impl User<'_> {
    /// The files of the user's settings; what a later one sets wins.
    pub fn settings(self) -> Vec<PathBuf> {
        match &self.variables.global {
            Some(file) => vec![file.clone()],
            None => self.named("config").into_iter().chain(self.home.map(|home| home.join(".gitconfig"))).collect(),
        }
    }

    /// A file of the user's folder for git.
    pub fn named(self, name: &str) -> Option<PathBuf> {
        let below_home = || self.home.map(|home| home.join(".config"));
        Some(self.variables.config_home.clone().or_else(below_home)?.join("git").join(name))
    }
}

/// The work tree around a folder; none outside a repository.
pub fn root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// The branch that is checked out in the work tree around a folder; none outside a repository, and where HEAD names no
/// branch. Control characters in the name are replaced.
pub fn branch(folder: &Path) -> Option<String> {
    let root = root(folder)?;
    let dot = root.join(".git");
    let repository = match read(&dot) {
        // A linked work tree, or a submodule.
        Some(text) => root.join(text.trim_end_matches(['\n', '\r']).strip_prefix("gitdir: ")?),
        None => dot,
    };
    let head = read(&repository.join("HEAD"))?;
    let name = head.trim_end().strip_prefix("ref: refs/heads/")?;
    // So HEAD reads where the branches are kept in another format.
    (name != ".invalid").then(|| name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect())
}

/// Where the repository of a linked work tree around a folder lies, apart from the work tree; none where it is in it. A
/// repository counts that names the work tree in turn: anybody could point a `.git` file at another folder.
pub fn linked(folder: &Path) -> Option<PathBuf> {
    let dot = root(folder)?.join(".git").canonicalize().ok()?;
    let text = read(&dot)?;
    let tree = dot.parent()?.join(text.trim_end_matches(['\n', '\r']).strip_prefix("gitdir: ")?).canonicalize().ok()?;
    let back = read(&tree.join("gitdir"))?;
    if Path::new(back.trim_end_matches(['\n', '\r'])).canonicalize().ok()? != dot {
        return None;
    }
    let common = read(&tree.join("commondir"))?;
    let common = tree.join(common.trim_end_matches(['\n', '\r'])).canonicalize().ok()?;
    tree.starts_with(common.join("worktrees")).then_some(common)
}

/// The text of a small regular file.
fn read(path: &PathBuf) -> Option<String> {
    // Looked at before it is opened: a pipe would wait.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn reads_the_branch() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let below = root.join("a/b");
        fs::create_dir_all(&below).unwrap();
        assert_eq!(branch(&below), None);
        fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(branch(&below), None);
        for (head, want) in [
            ("ref: refs/heads/main\n", Some("main")),
            ("ref: refs/heads/feat/x y", Some("feat/x y")),
            ("ref: refs/heads/a\u{1b}[2Jb\n", Some("a\u{fffd}[2Jb")),
            ("ref: refs/heads/.invalid\n", None),
            ("0123456789012345678901234567890123456789\n", None),
            ("", None),
        ] {
            fs::write(root.join(".git/HEAD"), head).unwrap();
            assert_eq!(branch(&below).as_deref(), want, "{head:?}");
        }
        let tree = root.join("tree");
        fs::create_dir_all(root.join("kept/tree")).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(root.join("kept/tree/HEAD"), "ref: refs/heads/linked\n").unwrap();
        fs::write(tree.join(".git"), "gitdir: ../kept/tree\n").unwrap();
        assert_eq!(branch(&tree).as_deref(), Some("linked"));
        fs::write(tree.join(".git"), "nonsense").unwrap();
        assert_eq!(branch(&tree), None);
    }

    #[test]
    fn a_linked_work_tree_and_its_repository_name_each_other() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (repository, tree) = (root.join("main/.git"), root.join("tree"));
        fs::create_dir_all(repository.join("worktrees/t")).unwrap();
        fs::create_dir_all(tree.join("src")).unwrap();
        let dot = format!("gitdir: {}\n", repository.join("worktrees/t").display());
        let back = format!("{}\n", tree.join(".git").display());
        for (commondir, back, want) in [
            ("../..\n", back.as_str(), true),
            ("../..\n", "/elsewhere/.git\n", false),
            ("../../..\n", back.as_str(), false),
        ] {
            fs::write(tree.join(".git"), &dot).unwrap();
            fs::write(repository.join("worktrees/t/commondir"), commondir).unwrap();
            fs::write(repository.join("worktrees/t/gitdir"), back).unwrap();
            assert_eq!(linked(&tree.join("src")), want.then(|| repository.clone()), "{commondir} {back}");
        }
        fs::write(tree.join(".git"), format!("gitdir: {}\n", root.display())).unwrap();
        assert_eq!(linked(&tree), None);
        assert_eq!(linked(&root.join("main")), None);
    }
}
