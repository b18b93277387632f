//! Files that are either written whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces a file's content in one step: a reader sees the old bytes or the new ones, never a part. Symbolic links are
/// followed, so that the link stays a link. `mode` is the permission bits; none keeps those of an existing file and gives a
/// new one the usual ones. The folder must exist.
///
/// # Errors
/// What the file system says; the old content is then untouched. Only where the folder refuses new files is an existing
/// file written in place.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let path = follow(path)?;
    let folder = path.parent().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "path has no folder"))?;
    let existing = fs::metadata(&path).ok();
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cocode-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = match builder.tempfile_in(folder) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && existing.is_some() => {
            return fs::write(&path, bytes);
        }
        Err(error) => return Err(error),
    };
    file.write_all(bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let kept = existing.map(|old| old.permissions().mode() & 0o7777);
        if let Some(mode) = mode.or(kept) {
            file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        }
    }
    #[cfg(not(unix))]
    let _ = (existing, mode);
    file.as_file().sync_data()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// Makes a folder, and those above it, that only its owner can enter.
///
/// # Errors
/// What the file system says.
pub fn private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Replaces a file of ours as a whole, making its folder; only its owner may read it.
///
/// # Errors
/// What the file system says; the old content is then untouched.
pub fn replace_private(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    private_dir(folder)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_data()?;
    temporary.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// Follows symbolic links at the end of a path, dangling ones too.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    // As many as Linux itself follows.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn keeps_mode_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link, dangling) = (dir.path().join("real"), dir.path().join("link"), dir.path().join("dangling"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o750)).unwrap();
        symlink("real", &link).unwrap();
        symlink("absent", &dangling).unwrap();
        write_atomic(&link, b"new", None).unwrap();
        write_atomic(&dangling, b"made", Some(0o600)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((fs::read_to_string(&real).unwrap().as_str(), mode(&real)), ("new", 0o750));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((fs::read_to_string(dir.path().join("absent")).unwrap().as_str(), mode(&dangling)), ("made", 0o600));
        let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["absent", "dangling", "link", "real"], "no temporary file stays");
    }

    #[test]
    fn a_loop_of_links_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        assert!(write_atomic(&dir.path().join("a"), b"x", None).is_err());
    }
}
