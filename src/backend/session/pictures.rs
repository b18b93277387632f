//! Pictures of prompts, so that recall brings them back: `<home>/cocode/pictures/<hash>/<name>`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::stdx::fs::replace_private;
use crate::stdx::hash::sha256_hex;
use crate::stdx::regular;

/// Largest picture that is kept, and most bytes of all of them.
pub const LARGEST: u64 = 20 << 20;
const ALL: u64 = 64 << 20;

/// Where pictures are kept. The oldest go when there are too many.
#[derive(Debug, Clone)]
pub struct Pictures {
    folder: PathBuf,
}

impl Pictures {
    pub fn new(home: &Path) -> Pictures {
        Pictures { folder: home.join("cocode").join("pictures") }
    }

    /// Where a picture that is kept here really lies; none for any other file.
    pub fn find(&self, path: &Path) -> Option<PathBuf> {
        let (path, folder) = (path.canonicalize().ok()?, self.folder.canonicalize().ok()?);
        path.starts_with(folder).then_some(path)
    }

    /// Keeps a copy of a file, unless it is one of ours. Returns where it lies.
    ///
    /// # Errors
    /// It is too large or not a regular file; otherwise what the file system says.
    pub fn keep_file(&self, path: &Path) -> io::Result<PathBuf> {
        if path.starts_with(&self.folder) {
            return Ok(path.to_owned());
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        self.keep(name, &regular::read(path, LARGEST + 1)?)
    }

    /// Keeps a picture under a name. Returns where it lies.
    ///
    /// # Errors
    /// It is too large; otherwise what the file system says.
    pub fn keep(&self, name: &OsStr, bytes: &[u8]) -> io::Result<PathBuf> {
        if bytes.len() as u64 > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let path = self.folder.join(&sha256_hex(bytes)[..16]).join(name);
        // Written again where it exists: it is the newest again.
        replace_private(&path, bytes)?;
        self.clear(&path);
        Ok(path)
    }

    /// Removes the oldest over the limit. Nothing waits for it, and nothing is lost that was not left over.
    fn clear(&self, newest: &Path) {
        let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries(&self.folder)
            .flat_map(|folder| entries(&folder.path()))
            .filter_map(|entry| {
                let meta = entry.metadata().ok()?;
                Some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .filter(|(_, _, path)| path != newest)
            .collect();
        files.sort();
        let mut room = ALL - std::fs::metadata(newest).map_or(0, |meta| meta.len());
        for (_, bytes, path) in files.into_iter().rev() {
            match room.checked_sub(bytes) {
                Some(left) => room = left,
                None => {
                    let _ = std::fs::remove_file(&path);
                    // Only an empty one goes.
                    let _ = path.parent().map(std::fs::remove_dir);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_and_the_newest_stays() {
        let home = tempfile::tempdir().unwrap();
        let pictures = Pictures::new(home.path());
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let kept: Vec<PathBuf> = (0..4u8)
            .map(|n| {
                let path = pictures.keep(OsStr::new("a.png"), &vec![n; 20 << 20]).unwrap();
                std::fs::File::options().write(true).open(&path).unwrap().set_modified(at(u64::from(n))).unwrap();
                path
            })
            .collect();
        assert_eq!(kept.iter().map(|path| path.exists()).collect::<Vec<_>>(), [false, true, true, true]);
        assert!(!kept[0].parent().unwrap().exists());
        assert!(pictures.keep(OsStr::new("b.png"), &vec![0; (20 << 20) + 1]).is_err());
        assert!(pictures.keep_file(Path::new("/dev/zero")).is_err());
        std::fs::write(home.path().join("cocode/credentials.toml"), "key").unwrap();
        let out = home.path().join("cocode/pictures/../credentials.toml");
        assert_eq!((pictures.find(&kept[3]), pictures.find(&out)), (kept[3].canonicalize().ok(), None));
    }
}
