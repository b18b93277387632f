//! Which folders the user trusts to bring settings, hooks and servers of their own.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::store::private_dir;

/// The trusted folders, kept in `<home>/cocode/trust.json`.
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
    folders: BTreeSet<PathBuf>,
    notice: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Saved {
    folders: BTreeSet<PathBuf>,
}

impl Trust {
    /// Reads what is trusted. A file that cannot be read trusts nothing; `notice` says so then.
    pub fn load(home: &Path) -> Trust {
        let file = home.join("cocode").join("trust.json");
        let (folders, notice) = match read(&file) {
            Ok(folders) => (folders, None),
            Err(error) => {
                let file = file.display();
                (BTreeSet::new(), Some(format!("{file}: {error}; no folder is trusted until it is mended or deleted")))
            }
        };
        Trust { file, folders, notice }
    }

    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Whether a folder, or one above it, is trusted. Links are followed; a folder that does not exist is not trusted.
    pub fn covers(&self, folder: &Path) -> bool {
        fs::canonicalize(folder).is_ok_and(|folder| folder.ancestors().any(|above| self.folders.contains(above)))
    }

    /// Trusts a folder and those below it, from now on and in later sessions.
    ///
    /// # Errors
    /// What the file system says; nothing is trusted then. A damaged file is replaced.
    pub fn add(&mut self, folder: &Path) -> Result<(), Error> {
        let folder = fs::canonicalize(folder).map_err(|error| Error::io("read", folder, error))?;
        // Another process may have added one meanwhile.
        let mut folders = read(&self.file).unwrap_or_else(|_| self.folders.clone());
        folders.insert(folder);
        let saved = Saved { folders };
        replace(&self.file, &serde_json::to_vec_pretty(&saved).unwrap_or_default())
            .map_err(|error| Error::write(&self.file, error))?;
        self.folders = saved.folders;
        self.notice = None;
        Ok(())
    }
}

fn read(file: &Path) -> io::Result<BTreeSet<PathBuf>> {
    match fs::read(file) {
        Ok(bytes) => Ok(serde_json::from_slice::<Saved>(&bytes)?.folders),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// Replaces a file of ours as a whole; only its owner may read it.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    private_dir(folder)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_data()?;
    temporary.persist(file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_folder_covers_those_below_and_links_to_it() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        for folder in ["a/b", "ab"] {
            fs::create_dir_all(temp.path().join(folder)).unwrap();
        }
        let mut trust = Trust::load(&home);
        trust.add(&temp.path().join("a")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(temp.path().join("ab"), temp.path().join("a/out")).unwrap();
        for (folder, want) in [
            ("a", true),
            ("a/b", true),
            ("a/b/../b", true),
            ("ab", false),
            ("a/out", false),
            ("", false),
            ("a/none", false),
        ] {
            assert_eq!(Trust::load(&home).covers(&temp.path().join(folder)), want, "{folder}");
        }
    }

    #[test]
    fn a_damaged_file_trusts_nothing_and_says_so() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("cocode/trust.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        for text in ["", "{", "[]", r#"{"folders":["/"#, r#"{"folders":"/"}"#] {
            fs::write(&file, text).unwrap();
            let mut trust = Trust::load(temp.path());
            assert!(!trust.covers(temp.path()), "{text}");
            assert!(trust.notice().is_some(), "{text}");
            trust.add(temp.path()).unwrap();
            assert!(Trust::load(temp.path()).covers(temp.path()), "{text}");
        }
    }
}
