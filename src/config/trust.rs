//! Which folders the user trusts: `<home>/cocode/trust`, one path a line, as JSON strings.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Trust;
use super::layer::read_text;
use super::paths::Paths;
use crate::stdx::fs::private_dir;

/// Looks a folder up by its real path. What cannot be read is not trusted; a folder does not inherit trust from above.
pub fn of(paths: &Paths, folder: &Path) -> Trust {
    let (Ok(folder), Ok(Some(text))) = (fs::canonicalize(folder), read_text(&file(paths))) else {
        return Trust::Untrusted;
    };
    let trusted = text.lines().filter_map(|line| serde_json::from_str::<PathBuf>(line).ok());
    if trusted.into_iter().any(|path| path == folder) { Trust::Trusted } else { Trust::Untrusted }
}

/// Remembers that the user trusts a folder. Appends one line, so that two processes cannot lose each other's.
///
/// # Errors
/// What the file system says; or the path is not UTF-8.
pub fn remember(paths: &Paths, folder: &Path) -> io::Result<()> {
    if of(paths, folder) == Trust::Trusted {
        return Ok(());
    }
    let line = serde_json::to_string(&fs::canonicalize(folder)?)?;
    private_dir(&paths.own_state())?;
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file(paths))?.write_all(format!("{line}\n").as_bytes())
}

fn file(paths: &Paths) -> PathBuf {
    paths.own_state().join("trust")
}

#[cfg(test)]
mod tests {
    use super::super::paths::Env;
    use super::*;

    #[test]
    fn only_the_folder_itself_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(&Env::fake(dir.path(), &[])).unwrap();
        let (one, below) = (dir.path().join("one\nline"), dir.path().join("one\nline/below"));
        fs::create_dir_all(&below).unwrap();
        assert_eq!(of(&paths, &one), Trust::Untrusted);
        remember(&paths, &one).unwrap();
        remember(&paths, &one.join("below/..")).unwrap();
        assert_eq!((of(&paths, &one), of(&paths, &below)), (Trust::Trusted, Trust::Untrusted));
        assert_eq!(fs::read_to_string(file(&paths)).unwrap().lines().count(), 1);
    }
}
