//! What must stay as it is while a command runs that nobody was asked about: saved before, and put back once all of it has
//! ended, by its keeper, which outlives us.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::PutBack;
use crate::stdx::replace::replace;

/// Most bytes and names that are saved: what is larger cannot be kept, so the command asks.
const BYTES: u64 = 16 << 20;
const NAMES: usize = 5_000;

/// Files, folders and links as they were.
#[derive(Debug)]
pub(super) struct Kept {
    roots: Vec<PathBuf>,
    before: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    File {
        mode: u32,
        bytes: Vec<u8>,
    },
    Folder {
        mode: u32,
    },
    Link(PathBuf),
    /// A pipe, a socket or a device: only that it is there.
    Other,
}

impl Kept {
    /// # Errors
    /// It is too much, or cannot be read.
    pub(super) fn save(roots: &[PathBuf]) -> Result<Kept, String> {
        let before = look(roots)?;
        Ok(Kept { roots: roots.to_vec(), before })
    }

    /// Puts back what was changed, once nothing of the command runs anymore.
    pub(super) fn put_back(self) -> PutBack {
        let Ok(after) = look(&self.roots) else { return PutBack { back: Vec::new(), lost: self.roots } };
        let (mut back, mut lost) = (Vec::new(), Vec::new());
        let mut count = |path: &Path, done: std::io::Result<()>| match done {
            Ok(()) => back.push(path.to_owned()),
            Err(_) => lost.push(path.to_owned()),
        };
        // What is inside a folder comes behind it: gone from the inside out, made from the outside in.
        for (path, entry) in after.iter().rev() {
            if self.before.get(path).is_none_or(|before| kind(before) != kind(entry)) {
                count(path, remove(path, entry));
            }
        }
        for (path, entry) in &self.before {
            if after.get(path) != Some(entry) {
                count(path, make(path, entry));
            }
        }
        back.dedup();
        PutBack { back, lost }
    }
}

fn kind(entry: &Entry) -> u8 {
    match entry {
        Entry::File { .. } => 0,
        Entry::Folder { .. } => 1,
        Entry::Link(_) => 2,
        Entry::Other => 3,
    }
}

fn remove(path: &Path, entry: &Entry) -> std::io::Result<()> {
    if let Entry::Folder { .. } = entry { std::fs::remove_dir(path) } else { std::fs::remove_file(path) }
}

fn make(path: &Path, entry: &Entry) -> std::io::Result<()> {
    match entry {
        Entry::File { mode, bytes } => replace(path, bytes, Some(*mode)),
        Entry::Link(target) => {
            // A link that leads elsewhere now is in the way.
            let _ = std::fs::remove_file(path);
            std::os::unix::fs::symlink(target, path)
        }
        Entry::Folder { mode } => {
            if !path.is_dir() {
                std::fs::create_dir(path)?;
            }
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))
        }
        Entry::Other => Err(std::io::ErrorKind::Unsupported.into()),
    }
}

fn look(roots: &[PathBuf]) -> Result<BTreeMap<PathBuf, Entry>, String> {
    let (mut found, mut left, mut bytes) = (BTreeMap::new(), roots.to_vec(), 0);
    while let Some(path) = left.pop() {
        let failed = |error: std::io::Error| format!("{} cannot be saved: {error}", path.display());
        let data = match path.symlink_metadata() {
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                continue;
            }
            data => data.map_err(failed)?,
        };
        bytes += if data.is_file() { data.len() } else { 0 };
        if bytes > BYTES || found.len() > NAMES {
            return Err(format!("{} is too large to be saved", path.display()));
        }
        let entry = entry(&path, &data).map_err(failed)?;
        if matches!(entry, Entry::Folder { .. }) {
            for inner in std::fs::read_dir(&path).map_err(failed)? {
                left.push(inner.map_err(failed)?.path());
            }
        }
        found.insert(path, entry);
    }
    Ok(found)
}

fn entry(path: &Path, data: &Metadata) -> std::io::Result<Entry> {
    let mode = data.mode() & 0o7777;
    Ok(match data {
        data if data.is_dir() => Entry::Folder { mode },
        data if data.is_file() => Entry::File { mode, bytes: std::fs::read(path)? },
        data if data.is_symlink() => Entry::Link(std::fs::read_link(path)?),
        _ => Entry::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_is_put_back() {
        for (change, changed) in [
            ("true", ""),
            ("echo x > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
            ("echo x >> .git/config", ".git/config"),
            ("chmod +x .git/config", ".git/config"),
            ("rm -r .git/hooks", ".git/hooks .git/hooks/old"),
            ("rm -r .git/hooks; echo x > .git/hooks", ".git/hooks .git/hooks/old"),
            ("rm .git/config; mkdir -p .git/config/a", ".git/config .git/config/a"),
            ("rm link; ln -s /etc link", "link"),
            ("mkdir .claude; touch .claude/a", ".claude .claude/a"),
            ("echo x > free", ""),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let root = temp.path().canonicalize().unwrap();
            std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
            std::fs::write(root.join(".git/hooks/old"), "old").unwrap();
            std::fs::write(root.join(".git/config"), "config").unwrap();
            std::os::unix::fs::symlink("free", root.join("link")).unwrap();
            let roots: Vec<PathBuf> =
                [".git/hooks", ".git/config", ".claude", "link"].iter().map(|name| root.join(name)).collect();
            let before = look(&roots).unwrap();
            let kept = Kept::save(&roots).unwrap();
            let ran = std::process::Command::new("bash").args(["-c", change]).current_dir(&root).status().unwrap();
            assert!(ran.success(), "{change}");
            let PutBack { back, lost } = kept.put_back();
            let mut named: Vec<String> =
                back.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect();
            named.sort();
            named.dedup();
            assert_eq!((named.join(" ").as_str(), lost.len()), (changed, 0), "{change}");
            assert_eq!(look(&roots).unwrap(), before, "{change}");
        }
    }
}
