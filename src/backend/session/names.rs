//! Files with several names (hard links): which paths were names of one file, so that undo makes them names of one file again.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::recorded::{self, Again};
use super::store::Store;
use crate::sandbox::record::{Number, Stamp};
use crate::stdx::path_text;

/// Its name in the folder of a session.
const FILE: &str = "names.jsonl";

/// A path that was one of several names of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) dev: u64,
    pub(super) ino: u64,
    #[serde(default)]
    pub(super) born: i64,
    #[serde(with = "path_text")]
    pub(super) path: PathBuf,
}

impl Name {
    pub(super) fn of(path: &Path, stamp: &Stamp) -> Name {
        Name { dev: stamp.dev, ino: stamp.ino, born: stamp.born, path: path.to_owned() }
    }
}

/// What is known of such files.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The number that a file had before undo made it again, by the one that it got.
    earlier: HashMap<Number, Number>,
    paths: HashMap<Number, Vec<PathBuf>>,
}

impl Names {
    pub(super) fn read(store: &Store) -> Names {
        let mut names = Names::default();
        let again: Vec<Again> = recorded::restored(store);
        for Again { was, is, .. } in again.into_iter().filter(|again| !again.apart) {
            let (was, is) = (names.first(&was), names.first(&is));
            if was != is {
                names.earlier.insert(is, was);
            }
        }
        let known: Vec<Name> = recorded::lines(&store.dir().join(FILE), |name| name);
        for Name { dev, ino, born, path } in known {
            let number = names.first_of((dev, ino, born));
            let paths = names.paths.entry(number).or_default();
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        names
    }

    /// Notes more of them.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn note(store: &Store, names: &[Name]) -> io::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for name in names {
            serde_json::to_writer(&mut bytes, name)?;
            bytes.push(b'\n');
        }
        OpenOptions::new().append(true).create(true).open(store.dir().join(FILE))?.write_all(&bytes)
    }

    /// Whether two stamps are of one file, however often undo has made it again.
    pub(super) fn same(&self, one: &Stamp, other: &Stamp) -> bool {
        self.first(one) == self.first(other)
    }

    /// Paths that were names of the file and still are.
    pub(super) fn others<'a>(&'a self, stamp: &'a Stamp) -> impl Iterator<Item = &'a Path> {
        let paths = self.paths.get(&self.first(stamp)).into_iter().flatten();
        paths.map(PathBuf::as_path).filter(|path| {
            fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && self.same(&Stamp::of(&meta), stamp))
        })
    }

    /// A path has become a name of the file.
    pub(super) fn made(&mut self, path: &Path, stamp: &Stamp) {
        let number = self.first(stamp);
        if let Ok(meta) = fs::symlink_metadata(path) {
            let is = self.first(&Stamp::of(&meta));
            if is != number {
                self.earlier.insert(is, number);
            }
            self.paths.entry(number).or_default().insert(0, path.to_owned());
        }
    }

    /// The file, whatever numbers undo has given it: the first of them.
    pub(super) fn first(&self, stamp: &Stamp) -> Number {
        self.first_of(stamp.number())
    }

    fn first_of(&self, mut number: Number) -> Number {
        while let Some(earlier) = self.earlier.get(&number) {
            number = *earlier;
        }
        number
    }
}
