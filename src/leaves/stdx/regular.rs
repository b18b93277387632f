//! Reads regular files, and only those: nothing else at a path can make the program wait or fill its memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading. Never waits for a writer, a device or a terminal.
///
/// # Errors
/// What the file system says; `InvalidInput` for what is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let refuse = || io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file");
    // Looked at before it is opened: opening alone has effects on some devices.
    if !std::fs::metadata(path)?.is_file() {
        return Err(refuse());
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    // Something else may have taken its place meanwhile.
    if file.metadata()?.is_file() { Ok(file) } else { Err(refuse()) }
}

/// The first `most` bytes of a regular file, however long it is.
///
/// # Errors
/// As [`open`], and what reading says.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Most bytes of a file that says what a search passes over: compiling its patterns costs hundreds of times as much.
const MAX_IGNORE: u64 = 256 << 10;

/// Whether the files of the folder that say what a search passes over can be read by a library that bounds nothing: each is
/// a regular file of ordinary size, or absent.
pub fn has_plain_ignores(folder: &Path) -> bool {
    [".gitignore", ".ignore", ".git/info/exclude"].iter().all(|name| {
        std::fs::metadata(folder.join(name)).map_or(true, |data| data.is_file() && data.len() <= MAX_IGNORE)
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_and_never_more_than_asked() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        std::fs::write(at("a"), "abcdef").unwrap();
        std::os::unix::fs::symlink("a", at("link")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        assert_eq!(read(&at("link"), 3).unwrap(), b"abc");
        for name in ["fifo", ".", "/dev/zero"] {
            assert_eq!(read(&at(name), 3).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert!(has_plain_ignores(temp.path()));
        std::os::unix::fs::symlink("fifo", at(".ignore")).unwrap();
        assert!(!has_plain_ignores(temp.path()));
        // Sparse: three gigabytes cost three bytes.
        File::create(at("huge")).unwrap().set_len(3 << 30).unwrap();
        assert_eq!(read(&at("huge"), 3).unwrap(), [0; 3]);
    }
}
