//! Files that must still hold what they held when somebody agreed to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::hash::sha256_hex;
use super::regular;

/// Most bytes of a file that are hashed; beyond them its length and its time count.
const MOST: u64 = 4 << 20;

/// Files with a hash of each; none where there was no such file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sealed(BTreeMap<PathBuf, Option<String>>);

impl Sealed {
    /// Seals a file with what `content` said of it. What was sealed before stays so.
    pub fn add(&mut self, path: &Path, content: Option<&Content>) {
        self.0.entry(path.to_owned()).or_insert_with(|| content.map(|content| content.hash.clone()));
    }

    /// Takes over what others sealed.
    pub fn join(&mut self, other: &Sealed) {
        other.0.iter().for_each(|(path, hash)| {
            self.0.entry(path.clone()).or_insert_with(|| hash.clone());
        });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn holds(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The first file that holds something else now. Reads all of them: a time can be set back.
    pub fn broken(&self) -> Option<&Path> {
        let now = |path: &Path| content(path).map(|content| content.hash);
        self.0.iter().find(|(path, hash)| now(path) != **hash).map(|(path, _)| path.as_path())
    }
}

/// What a regular file holds, or the start of it.
#[derive(Debug)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub hash: String,
}

/// Reads a file once, so that what is looked at is what is sealed. None: it cannot be read, nor run.
pub fn content(path: &Path) -> Option<Content> {
    let bytes = regular::read(path, MOST).ok()?;
    let mut hash = sha256_hex(&bytes);
    if bytes.len() as u64 == MOST
        && let Ok(data) = path.metadata()
    {
        let _ = write!(hash, "{} {:?}", data.len(), data.modified().ok());
    }
    Some(Content { bytes, hash })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_seal_breaks_with_the_content_alone() {
        let temp = tempfile::tempdir().unwrap();
        let (one, two) = (temp.path().join("one"), temp.path().join("two"));
        fs::write(&one, "1").unwrap();
        let mut sealed = Sealed::default();
        [&one, &two].into_iter().for_each(|path| sealed.add(path, content(path).as_ref()));
        assert_eq!(sealed.broken(), None);
        let when = fs::metadata(&one).unwrap().modified().unwrap();
        fs::write(&one, "2").unwrap();
        fs::File::options().write(true).open(&one).unwrap().set_modified(when).unwrap();
        assert_eq!(sealed.broken(), Some(one.as_path()));
        fs::write(&one, "1").unwrap();
        assert_eq!(sealed.broken(), None);
        fs::write(&two, "").unwrap();
        assert_eq!(sealed.broken(), Some(two.as_path()));
    }
}
