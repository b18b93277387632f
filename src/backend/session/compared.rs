//! What changed in some folders, where nobody could watch: all names before and after, without what was in the files.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::recorded::Finished;
use crate::sandbox::record::Stamp;

/// Most names that are looked at: beyond it a command would wait for longer than it is worth.
const MOST: usize = 200_000;

/// Files and links below some folders, as they were.
#[derive(Debug)]
pub struct Compared {
    roots: Vec<PathBuf>,
    files: HashMap<PathBuf, Stamp>,
}

impl Compared {
    /// Looks at everything below the folders. None where that is too much.
    pub fn look(roots: &[PathBuf]) -> Option<Compared> {
        let mut files = HashMap::new();
        let mut left = MOST;
        roots.iter().all(|root| look(root, &mut files, &mut left)).then(|| Compared { roots: roots.to_vec(), files })
    }

    /// What is different now.
    pub fn since(&self) -> Finished {
        let Some(now) = Compared::look(&self.roots) else {
            return Finished::unseen("there are too many files to see which of them changed");
        };
        let mut finished = Finished::default();
        for (path, seen) in &now.files {
            match self.files.get(path) {
                None => finished.created.push(path.clone()),
                Some(was) if was != seen => finished.changed.push(path.clone()),
                Some(_) => {}
            }
        }
        finished.deleted = self.files.keys().filter(|path| !now.files.contains_key(*path)).cloned().collect();
        for paths in [&mut finished.created, &mut finished.changed, &mut finished.deleted] {
            paths.sort();
        }
        finished
    }
}

/// False: there are too many. What cannot be read is left out.
fn look(folder: &Path, files: &mut HashMap<PathBuf, Stamp>, left: &mut usize) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            if !look(&entry.path(), files, left) {
                return false;
            }
        } else {
            files.insert(entry.path(), Stamp::of(&meta));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir(root.join("d")).unwrap();
        for name in ["a", "b", "d/c", "e"] {
            fs::write(root.join(name), "one").unwrap();
        }
        let looked = Compared::look(&[root.to_owned()]).unwrap();
        assert_eq!(looked.since(), Finished::default());
        fs::write(root.join("a"), "two").unwrap();
        fs::remove_file(root.join("d/c")).unwrap();
        fs::write(root.join("new"), "").unwrap();
        let mut permissions = fs::metadata(root.join("e")).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(root.join("e"), permissions).unwrap();
        let found = looked.since().line(|path| path.strip_prefix(root).unwrap().display().to_string(), |_| false);
        assert_eq!(found.unwrap(), "created new; changed a, e; deleted d/c");
    }
}
