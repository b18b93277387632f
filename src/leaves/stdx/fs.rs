//! Folders and files that only their owner may read.

use std::fs;
use std::io;
use std::path::Path;

use super::replace::replace;

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
    replace(file, bytes, Some(0o600))
}
