//! Where a path really leads, and whether it still leads there.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

/// More links than any system follows: a path that starts in a folder behind links has those beside its own.
const MAX_LINKS: usize = 256;

/// The real path of the longest prefix that exists, with the rest appended. `path` is absolute.
pub fn resolve(path: &Path) -> PathBuf {
    resolve_with(path, |path| fs::read_link(path).ok())
}

/// Checks that a path that `resolve` gave still leads where it says: no part of it has become a link.
///
/// # Errors
/// Where it leads now.
pub fn still(real: &Path) -> io::Result<()> {
    let now = resolve(real);
    if now == real && fs::read_link(real).is_err() {
        return Ok(());
    }
    Err(changed(&now))
}

/// Checks that a file that was opened is the one at the path that `resolve` gave, whatever stood there before and since.
///
/// # Errors
/// Where it is instead.
pub fn opened(file: &File, real: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Ok(found) = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))) {
        // Saved again since.
        let mut gone = real.as_os_str().to_owned();
        gone.push(" (deleted)");
        let same = found == real || found.as_os_str() == gone;
        return if same { Ok(()) } else { Err(changed(&found)) };
    }
    let _ = file;
    still(real)
}

fn changed(now: &Path) -> io::Error {
    io::Error::other(format!("its path changed in the meantime and now leads to {}", now.display()))
}

/// Walks the path part by part and follows what `link` says is a link; dangling links are followed, too, since a write
/// through one creates its target.
pub fn resolve_with(path: &Path, link: impl Fn(&Path) -> Option<PathBuf>) -> PathBuf {
    let mut real = PathBuf::new();
    let mut left: Vec<PathBuf> = parts(path);
    let mut followed = 0;
    while let Some(part) = left.pop() {
        match part.components().next() {
            Some(Component::CurDir) | None => {}
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::Normal(_)) => {
                let next = real.join(&part);
                match link(&next) {
                    // Nobody knows where it leads: not to a place that anybody meant.
                    Some(_) if followed == MAX_LINKS => return PathBuf::from("/"),
                    Some(target) => {
                        followed += 1;
                        if target.is_absolute() {
                            real = PathBuf::new();
                        }
                        left.extend(parts(&target));
                    }
                    None => real = next,
                }
            }
            Some(_) => real.push(&part),
        }
    }
    real
}

/// The components, last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}
/// Whether a definition that comes with a repository may be read where it really lies: below `top` as Markdown, and outside
/// under the name that it has here. A link to anything else would show what no definition is, such as a key.
pub fn is_definition(path: &Path, real: &Path, top: &Path) -> bool {
    let markdown = |file: &Path| file.extension().is_some_and(|end| end.eq_ignore_ascii_case("md"));
    if real.starts_with(top) { markdown(real) } else { real.file_name() == path.file_name() }
}
