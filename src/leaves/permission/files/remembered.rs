//! What a decision has seen of the file system already, and how much more it may look.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Files, MAX_NAMES};
use crate::stdx::git;
use crate::stdx::links::resolve_with;
use crate::stdx::sealed::Sealed;

/// Longest path that a word of a line may be, in bytes: looking at each folder above costs the square of it.
pub(in crate::permission) const MAX_PATH: usize = 1024;

/// Most steps of one decision; to look at one name is a step. A line that takes more is not judged: it asks.
const MAX_STEPS: usize = 100_000;

/// Asks each question once for the length of one decision: a line of thousands of words asks the same ones again and again.
pub(in crate::permission) struct Remembered<'a> {
    files: &'a dyn Files,
    links: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
    real: RefCell<HashMap<PathBuf, PathBuf>>,
    names: RefCell<HashMap<PathBuf, Vec<String>>>,
    repositories: RefCell<HashMap<(PathBuf, bool), Result<(), String>>>,
    obeyed: RefCell<HashMap<PathBuf, Vec<PathBuf>>>,
    live_hooks: RefCell<HashMap<PathBuf, Result<Vec<PathBuf>, String>>>,
    steps: Cell<usize>,
}

impl Remembered<'_> {
    pub(in crate::permission) fn new(files: &dyn Files) -> Remembered<'_> {
        Remembered {
            files,
            links: RefCell::default(),
            real: RefCell::default(),
            names: RefCell::default(),
            repositories: RefCell::default(),
            obeyed: RefCell::default(),
            live_hooks: RefCell::default(),
            steps: Cell::new(0),
        }
    }

    /// Where the path leads by where its folder does: a line may name thousands of one folder. None where that does not tell.
    fn in_folder(&self, path: &Path) -> Option<PathBuf> {
        let (folder, name) = (path.parent()?, path.file_name()?);
        let real = self.resolve(folder);
        let next = real.join(name);
        // What loops leads to the root.
        (real.parent().is_some() || folder == real).then_some(())?;
        self.link(&next).is_none().then_some(next)
    }
}

impl Files for Remembered<'_> {
    fn link(&self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.links.borrow().get(path) {
            return known.clone();
        }
        let link = self.files.link(path);
        self.links.borrow_mut().insert(path.to_owned(), link.clone());
        link
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        if let Some(known) = self.real.borrow().get(path) {
            return known.clone();
        }
        // Each folder above is looked at, and remembered, by its whole name. What is longer than any system takes is not opened.
        let length = path.as_os_str().len();
        self.spend(if length > 8 * MAX_PATH { 1 + MAX_STEPS } else { length / 64 });
        if length > 8 * MAX_PATH {
            return path.to_owned();
        }
        let real = self.in_folder(path).unwrap_or_else(|| resolve_with(path, |path| self.link(path)));
        self.real.borrow_mut().insert(path.to_owned(), real.clone());
        real
    }

    fn is_file(&self, path: &Path) -> bool {
        self.files.is_file(path)
    }

    fn runs(&self, path: &Path) -> bool {
        self.files.runs(path)
    }

    fn others_write(&self, path: &Path) -> bool {
        self.files.others_write(path)
    }

    fn others_read(&self, path: &Path) -> bool {
        self.files.others_read(path)
    }

    fn keeps_token(&self, config: &Path) -> bool {
        self.files.keeps_token(config)
    }

    fn names_account(&self, folder: &Path, user: git::User<'_>) -> bool {
        self.files.names_account(folder, user)
    }

    fn shared(&self, path: &Path) -> Option<(u64, u64)> {
        self.files.shared(path)
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        // A line of nothing but globs would be tried for minutes; as many names as this make a glob ask.
        if self.spend(0) {
            return vec![String::new(); MAX_NAMES];
        }
        let mut all = self.names.borrow_mut();
        // To ask the system costs more than to remember.
        let fresh = !all.contains_key(folder);
        let names = all.entry(folder.to_owned()).or_insert_with(|| self.files.names(folder));
        self.spend(names.len() + if fresh { 16 } else { 1 });
        names.clone()
    }

    fn is_mount(&self, folder: &Path) -> bool {
        self.files.is_mount(folder)
    }

    fn negated(&self, file: &Path) -> Vec<String> {
        self.files.negated(file)
    }

    fn ignored(&self, file: &Path) -> Vec<String> {
        self.files.ignored(file)
    }

    fn git_ignores(&self, path: &Path, user: git::User<'_>) -> bool {
        self.files.git_ignores(path, user)
    }

    fn tracked(&self, folder: &Path) -> Option<Vec<PathBuf>> {
        self.files.tracked(folder)
    }

    fn is_branch(&self, folder: &Path, name: &str) -> bool {
        self.files.is_branch(folder, name)
    }

    fn git_obeys(&self, folder: &Path, user: git::User<'_>) -> Vec<PathBuf> {
        self.obeyed.borrow_mut().entry(folder.to_owned()).or_insert_with(|| self.files.git_obeys(folder, user)).clone()
    }

    fn live_hooks(&self, folder: &Path, user: git::User<'_>) -> Result<Vec<PathBuf>, String> {
        let mut all = self.live_hooks.borrow_mut();
        all.entry(folder.to_owned()).or_insert_with(|| self.files.live_hooks(folder, user)).clone()
    }

    fn broken<'a>(&self, sealed: &'a Sealed) -> Option<&'a Path> {
        self.files.broken(sealed)
    }

    fn git_reads(&self, folder: &Path, user: git::User<'_>) -> Vec<PathBuf> {
        self.files.git_reads(folder, user)
    }

    fn linked_repository(&self, folder: &Path) -> Option<PathBuf> {
        self.files.linked_repository(folder)
    }

    fn repository(&self, folder: &Path) -> Result<(), String> {
        let mut all = self.repositories.borrow_mut();
        all.entry((folder.to_owned(), false)).or_insert_with(|| self.files.repository(folder)).clone()
    }

    fn repository_to_change(&self, folder: &Path) -> Result<(), String> {
        let mut all = self.repositories.borrow_mut();
        all.entry((folder.to_owned(), true)).or_insert_with(|| self.files.repository_to_change(folder)).clone()
    }

    fn unfinished(&self, folder: &Path) -> Result<(), String> {
        self.files.unfinished(folder)
    }

    fn repositories(&self, folder: &Path, top: bool) -> Result<(), String> {
        self.files.repositories(folder, top)
    }

    fn spend(&self, steps: usize) -> bool {
        self.steps.set(self.steps.get().saturating_add(steps));
        self.steps.get() > MAX_STEPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::files::fake;

    /// Each folder above a path is remembered by its whole name: one of 64 kB would take gigabytes.
    #[test]
    fn a_path_that_no_system_takes_ends_the_decision() {
        let table = fake::Table(&[]);
        let files = Remembered::new(&table);
        let (short, long) = ("/p/a/b", format!("/p{}", "/a".repeat(32_000)));
        files.resolve(Path::new(short));
        assert!(!files.spend(0) && files.real.borrow().len() > 1);
        let known = files.real.borrow().len();
        assert_eq!(files.resolve(Path::new(&long)), Path::new(&long));
        assert!(files.spend(0) && files.real.borrow().len() == known);
    }
}
