//! Which program a name means: the first one along `PATH` that no project brings.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use super::links;

/// Where programs are looked for when nobody says: some shells would add the folder that they are in.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// The folders that sessions of this process work in, each as it is named and as it is, with the user's home.
static PROJECTS: RwLock<Vec<(PathBuf, Option<PathBuf>)>> = RwLock::new(Vec::new());

/// From now on nothing that lies in the folders is started because of its name.
pub fn keep_out<'a>(projects: impl IntoIterator<Item = &'a Path>, home: Option<&Path>) {
    let mut all = PROJECTS.write().unwrap_or_else(PoisonError::into_inner);
    for project in projects {
        let named = (project.to_owned(), home.map(Path::to_owned));
        for found in [named, (links::resolve(project), home.map(links::resolve))] {
            if !all.contains(&found) {
                all.push(found);
            }
        }
    }
}

/// The folders of a `PATH`, as it names them.
pub fn folders(path: Option<&OsStr>) -> Vec<PathBuf> {
    std::env::split_paths(path.unwrap_or(OsStr::new(USUAL))).collect()
}

/// Whether a project in `root` may have brought what lies at the path. Where a whole home folder is the project, the hidden
/// folders in it are still the user's, and so is all that lies outside of it.
pub fn brings(root: &Path, home: Option<&Path>, path: &Path) -> bool {
    let own = |home: &Path| {
        let hidden = |rest: &Path| rest.as_os_str().as_encoded_bytes().starts_with(b".");
        home.starts_with(root) && (home.parent().is_none() || path.strip_prefix(home).map_or(true, hidden))
    };
    path.starts_with(root) && !home.is_some_and(own)
}

/// Whether somebody else than the user and the system's owner may change what lies at the path, or put another in its place.
#[cfg(unix)]
pub fn others_write(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    const EVERYONE: u32 = 0o002;
    const GROUP: u32 = 0o020;
    const STICKY: u32 = 0o1000;
    let owner = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.uid());
    let (me, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // In a namespace of its own, the system may belong to an unmapped user.
    let system = [0, owner(Path::new("/"))];
    let open = |(at, path): (usize, &Path)| {
        let Ok(data) = std::fs::metadata(path) else { return false };
        let (mode, theirs) = (data.mode(), system.contains(&data.uid()));
        // Groups below a thousand are the system's; of a group of people only one's own is one's own.
        let shared = mode & GROUP != 0 && !theirs && data.gid() != group && data.gid() >= 1000;
        mode & EVERYONE != 0 && (mode & STICKY == 0 || at == 0) || at < 2 && (shared || !theirs && data.uid() != me)
    };
    !windows(path) && path.ancestors().enumerate().any(open)
}

/// Whether the path lies on a drive of Windows, which keeps its own rights and shows everything as open to all.
#[cfg(target_os = "linux")]
fn windows(path: &Path) -> bool {
    const PLAN9: rustix::fs::FsWord = 0x0102_1997;
    const WSL: rustix::fs::FsWord = 0x5346_4846;
    rustix::fs::statfs(path).is_ok_and(|system| [PLAN9, WSL].contains(&system.f_type))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn windows(_: &Path) -> bool {
    false
}

#[cfg(not(unix))]
pub fn others_write(_: &Path) -> bool {
    false
}

/// Whether everybody may read what lies at the path, or nobody: it is missing.
pub fn others_read(path: &Path) -> bool {
    #[cfg(unix)]
    if let Ok(data) = std::fs::metadata(path) {
        return std::os::unix::fs::MetadataExt::mode(&data) & 0o004 != 0;
    }
    !path.exists()
}

/// Whether the path, followed through its links, is a file that may be run.
pub fn runs(file: &Path) -> bool {
    #[cfg(unix)]
    if rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_err() {
        return false;
    }
    file.is_file()
}

/// Whether a program runs with more rights than the one who starts it: as another user or group, or with capabilities.
#[cfg(unix)]
pub fn gains(file: &Path) -> bool {
    const SET_ID: u32 = 0o6000;
    let Ok(data) = std::fs::metadata(file) else { return false };
    std::os::unix::fs::MetadataExt::mode(&data) & SET_ID != 0 || has_capabilities(file)
}

#[cfg(not(unix))]
pub fn gains(_: &Path) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn has_capabilities(file: &Path) -> bool {
    let mut none = [0_u8; 0];
    rustix::fs::getxattr(file, "security.capability", &mut none).is_ok_and(|size| size > 0)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn has_capabilities(_: &Path) -> bool {
    false
}

/// The first program of the name along the `PATH`, of those that no project brings.
///
/// # Errors
/// There is no such program. A name with a slash is taken as it is.
pub fn find(name: impl AsRef<OsStr>, path: Option<&OsStr>) -> io::Result<PathBuf> {
    let name = Path::new(name.as_ref());
    if name.components().count() > 1 || name.is_absolute() {
        return Ok(name.to_owned());
    }
    let mut all = own_folders(path).into_iter().map(|folder| folder.join(name));
    let outside = |file: &PathBuf| runs(file) && is_own(&links::resolve(file));
    all.find(outside).ok_or_else(|| {
        let brought = folders(path).iter().any(|folder| folder.is_absolute() && runs(&folder.join(name)));
        let text = format!("{} is only found where a project may have put it", name.display());
        let missing = format!("no program {} in PATH: install it, or give its full path", name.display());
        io::Error::new(io::ErrorKind::NotFound, if brought { text } else { missing })
    })
}

/// The same along the `PATH` of this process.
///
/// # Errors
/// There is no such program.
pub fn own(name: &str) -> io::Result<PathBuf> {
    find(name, std::env::var_os("PATH").as_deref())
}

/// The `PATH` of this process without the folders of projects and of other users: for what we start ourselves and what that
/// looks for in turn.
pub fn own_path() -> OsString {
    own_part(std::env::var_os("PATH").as_deref())
}

fn own_part(path: Option<&OsStr>) -> OsString {
    std::env::join_paths(own_folders(path)).unwrap_or_else(|_| USUAL.into())
}

fn own_folders(path: Option<&OsStr>) -> Vec<PathBuf> {
    let own = |folder: &PathBuf| folder.is_absolute() && is_own(folder) && is_own(&links::resolve(folder));
    folders(path).into_iter().filter(own).collect()
}

fn is_own(path: &Path) -> bool {
    let projects = PROJECTS.read().unwrap_or_else(PoisonError::into_inner);
    !projects.iter().any(|(root, home)| brings(root, home.as_deref(), path)) && !others_write(path)
}

/// Takes out of this process's `PATH` what depends on where somebody is, such as `.`: whatever is started later then never
/// finds a program in the folder that it happens to be in.
///
/// # Safety
/// Only while this is the only thread.
pub unsafe fn settle() {
    let path = std::env::var_os("PATH");
    let settled: Vec<PathBuf> = folders(path.as_deref()).into_iter().filter(|folder| folder.is_absolute()).collect();
    let joined = std::env::join_paths(settled).ok().filter(|joined| !joined.is_empty());
    let joined = joined.unwrap_or_else(|| USUAL.into());
    if path.as_ref() != Some(&joined) {
        // SAFETY: as promised by the caller.
        #[expect(clippy::disallowed_methods, reason = "children inherit it; nothing has read it yet")]
        unsafe {
            std::env::set_var("PATH", joined);
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_project_brings_no_programs() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        for file in ["p/bin/git", "own/git", "own/plain", "others/vi", "p/bin/make", "p/bin/tool"] {
            std::fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            std::fs::write(at(file), "").unwrap();
            let mode = if file.ends_with("plain") { 0o644 } else { 0o755 };
            std::fs::set_permissions(at(file), PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::set_permissions(at("others"), PermissionsExt::from_mode(0o777)).unwrap();
        symlink(at("p/bin"), at("link")).unwrap();
        symlink(at("p/bin/tool"), at("own/tool")).unwrap();
        keep_out([at("p").as_path()], None);
        let path = |folders: &[&str]| std::env::join_paths(folders.iter().map(|folder| at(folder))).unwrap();
        let all = path(&["p/bin", "link", "others", "own"]);
        let check = |name: &str, path: &OsStr, want: Option<&str>| {
            assert_eq!(find(name, Some(path)).ok(), want.map(at), "{name} {path:?}");
        };
        check("git", &all, Some("own/git"));
        check("git", &path(&["p/bin", "link"]), None);
        check("make", &all, None);
        check("vi", &all, None);
        check("plain", &all, None);
        check("tool", &all, None);
        check("git", OsStr::new(".::bin"), None);
        assert_eq!(find("p/bin/git", Some(&all)).unwrap(), Path::new("p/bin/git"));
        assert_eq!(own_part(Some(&all)), path(&["own"]));
    }

    #[test]
    fn where_the_home_folder_is_the_project() {
        for (root, home, path, want) in [
            ("/p", Some("/home/u"), "/p/bin/x", true),
            ("/p", Some("/home/u"), "/home/u/.cargo/bin/x", false),
            ("/home/u", Some("/home/u"), "/home/u/.cargo/bin/x", false),
            ("/home/u", Some("/home/u"), "/home/u/bin/x", true),
            ("/home/u/p", Some("/home/u"), "/home/u/p/.venv/bin/x", true),
            ("/", Some("/home/u"), "/usr/bin/x", false),
            ("/", Some("/home/u"), "/home/u/bin/x", true),
            ("/", Some("/"), "/usr/bin/x", false),
            ("/p", None, "/p/x", true),
        ] {
            assert_eq!(brings(Path::new(root), home.map(Path::new), Path::new(path)), want, "{root} {home:?} {path}");
        }
    }
}
