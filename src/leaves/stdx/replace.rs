//! The only way in which the content of an existing file is replaced: as a whole or not at all, and never over something
//! that somebody else saved in the meantime.
//!
//! The new content is written beside the file and takes its name. Where that would cost the file something (its owner,
//! its other names, the mount that it is) or the folder takes no new files, it is written in place, after the room for it
//! was taken.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use super::links;

mod inherit;

use inherit::inherit;

/// How the names of our temporary files begin.
pub const TEMPORARY: &str = ".cocode-";

/// What must stand in the file's place until the last moment.
#[derive(Debug, Clone, Copy)]
pub enum Expected<'a> {
    Anything,
    Absent,
    Content(&'a [u8]),
}

/// Why a file was not replaced. Unless the text says otherwise, it is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it was changed in the meantime")]
    Changed,
    #[error("it was changed in the meantime; one of the versions saved then is now {}", kept.display())]
    Kept { kept: PathBuf },
    #[error("{source}; it could not be restored either ({restoring}), undo brings it back")]
    Torn { source: io::Error, restoring: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error {
            Error::Io(error) => error,
            error => io::Error::other(error.to_string()),
        }
    }
}

/// Replaces a file's content whatever it holds. Symbolic links are followed. `mode` is the permission bits; none keeps
/// those of an existing file and gives a new one the usual ones. The folder must exist.
///
/// # Errors
/// What the file system says; the old content is then untouched.
pub fn replace(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    Ok(Replacement::of(path)?.write(bytes, Expected::Anything, mode)?)
}

/// A replacement that is about to happen. Making one touches nothing, so that it can be logged first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Links followed.
    path: PathBuf,
    temporary: PathBuf,
}

/// Why the new content did not take the file's name.
enum Beside {
    /// It cannot, or not without a loss, but the file may still be written in place.
    Refused(io::Error),
    Failed(Error),
}

impl From<io::Error> for Beside {
    fn from(error: io::Error) -> Beside {
        Beside::Failed(error.into())
    }
}

impl Replacement {
    /// Follows links, now and never again.
    ///
    /// # Errors
    /// Links that lead in a circle, and a path without a folder.
    pub fn of(path: &Path) -> io::Result<Replacement> {
        let real = links::resolve(&std::path::absolute(path)?);
        match fs::read_link(&real) {
            Ok(_) => Err(io::Error::other("too many levels of symbolic links")),
            Err(_) => Replacement::at(real),
        }
    }

    /// The same for a path that `links::resolve` gave. Should a part of it be a link by the time of the writing, nothing is
    /// written.
    ///
    /// # Errors
    /// A path without a folder.
    pub fn at(path: PathBuf) -> io::Result<Replacement> {
        let folder = path.parent().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "path has no folder"))?;
        let temporary = folder.join(format!("{TEMPORARY}{}", uuid::Uuid::new_v4().simple()));
        Ok(Replacement { path, temporary })
    }

    /// The file that is replaced, links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file beside it that exists meanwhile, and stays behind when the process is killed.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Replaces the content, forced to disk.
    ///
    /// # Errors
    /// What the file system says, or that the file is not as expected.
    pub fn write(&self, bytes: &[u8], expected: Expected<'_>, mode: Option<u32>) -> Result<(), Error> {
        Held::of(self)?.write(bytes, expected, mode)
    }

    /// Removes the file. It is taken aside first, so that what somebody saved a moment ago comes back.
    ///
    /// # Errors
    /// As `write`.
    pub fn remove(&self, expected: &[u8]) -> Result<(), Error> {
        Held::of(self)?.remove(expected)
    }
}

/// A replacement under way, whose folder is held open: a link that takes the folder's name meanwhile leads nothing astray,
/// and what is left to be removed is found.
struct Held<'a> {
    of: &'a Replacement,
    /// The file and the temporary one, below the open folder where the system can say so.
    path: PathBuf,
    temporary: PathBuf,
    _folder: Option<File>,
}

impl Held<'_> {
    #[cfg(target_os = "linux")]
    fn of(of: &Replacement) -> io::Result<Held<'_>> {
        use rustix::fs::{Mode, OFlags};
        let (Some(parent), Some(name), Some(other)) = (of.path.parent(), of.path.file_name(), of.temporary.file_name())
        else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let folder =
            File::from(rustix::fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
        links::opened(&folder, parent)?;
        let here = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder)));
        match here.is_dir() {
            true => Ok(Held { of, path: here.join(name), temporary: here.join(other), _folder: Some(folder) }),
            // Without /proc.
            false => Ok(Held { of, path: of.path.clone(), temporary: of.temporary.clone(), _folder: None }),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(of: &Replacement) -> io::Result<Held<'_>> {
        Ok(Held { of, path: of.path.clone(), temporary: of.temporary.clone(), _folder: None })
    }

    fn write(&self, bytes: &[u8], expected: Expected<'_>, mode: Option<u32>) -> Result<(), Error> {
        links::still(&self.of.path)?;
        let old = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            old => Some(old?),
        };
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file").into());
        }
        match self.beside(old.as_ref(), bytes, expected, mode) {
            Ok(()) => Ok(()),
            Err(Beside::Failed(error)) => Err(error),
            Err(Beside::Refused(error)) if old.is_none() => Err(error.into()),
            Err(Beside::Refused(_)) => self.in_place(bytes, expected, mode),
        }
    }

    fn remove(&self, expected: &[u8]) -> Result<(), Error> {
        links::still(&self.of.path)?;
        if fs::read(&self.path)? != expected {
            return Err(Error::Changed);
        }
        links::still(&self.of.path)?;
        fs::rename(&self.path, &self.temporary)?;
        if fs::read(&self.temporary).is_ok_and(|found| found == expected) {
            return Ok(fs::remove_file(&self.temporary)?);
        }
        match take_name(&self.temporary, &self.path) {
            Ok(()) => Err(Error::Changed),
            Err(_) => Err(Error::Kept { kept: self.of.temporary.clone() }),
        }
    }

    /// Writes the new content beside the file and gives it the file's name.
    fn beside(
        &self,
        old: Option<&Metadata>,
        bytes: &[u8],
        expected: Expected<'_>,
        mode: Option<u32>,
    ) -> Result<(), Beside> {
        if let Some(old) = old
            && is_bound(&self.path, old)
        {
            return Err(Beside::Refused(ErrorKind::ResourceBusy.into()));
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(
            &mut options,
            if old.is_some() || mode.is_some() { 0o600 } else { 0o666 },
        );
        let file = options.open(&self.temporary).map_err(refused)?;
        let done = self.fill(file, old, bytes, mode).and_then(|()| self.swap(expected));
        if !matches!(done, Ok(()) | Err(Beside::Failed(Error::Kept { .. }))) {
            // What is left of it is ours, and the failure says more than this one could.
            let _ = fs::remove_file(&self.temporary);
        }
        done
    }

    fn fill(&self, mut file: File, old: Option<&Metadata>, bytes: &[u8], mode: Option<u32>) -> Result<(), Beside> {
        if let Some(old) = old {
            inherit(&self.path, old, &file).map_err(Beside::Refused)?;
        }
        file.write_all(bytes)?;
        #[cfg(unix)]
        if let Some(mode) = mode.or(old.map(bits)) {
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        }
        file.sync_data()?;
        Ok(())
    }

    /// Gives the temporary file the name, if what bears it is as expected.
    fn swap(&self, expected: Expected<'_>) -> Result<(), Beside> {
        // Writing may have taken long.
        links::still(&self.of.path)?;
        let want = match expected {
            Expected::Anything => return fs::rename(&self.temporary, &self.path).map_err(refused),
            Expected::Absent => {
                return take_name(&self.temporary, &self.path).map_err(|error| match error.kind() {
                    ErrorKind::AlreadyExists => Beside::Failed(Error::Changed),
                    _ => Beside::Failed(error.into()),
                });
            }
            Expected::Content(want) => want,
        };
        if fs::read(&self.path).map_err(gone)? != want {
            return Err(Beside::Failed(Error::Changed));
        }
        self.exchange(want)
    }

    /// Exchanges the two names, looks at what the file held at that very moment, and exchanges them back when it is not
    /// what was expected. Where the file system cannot, a save of the last microseconds is missed.
    fn exchange(&self, want: &[u8]) -> Result<(), Beside> {
        match exchange(&self.temporary, &self.path) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {
                return fs::rename(&self.temporary, &self.path).map_err(refused);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(gone(error)),
            Err(error) => return Err(refused(error)),
        }
        let kept = || Beside::Failed(Error::Kept { kept: self.of.temporary.clone() });
        let ours = identity(&self.path);
        if fs::read(&self.temporary).is_ok_and(|found| found == want) {
            fs::remove_file(&self.temporary)?;
            return Ok(());
        }
        exchange(&self.temporary, &self.path).map_err(|_| kept())?;
        // Somebody saved between the two exchanges as well: that file is not ours to remove.
        match ours.is_some() && identity(&self.temporary) == ours {
            true => Err(Beside::Failed(Error::Changed)),
            false => Err(kept()),
        }
    }

    /// Overwrites the file. What needs room is written first, so that a full disk is met while the old bytes still stand.
    fn in_place(&self, bytes: &[u8], expected: Expected<'_>, mode: Option<u32>) -> Result<(), Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        #[cfg(unix)]
        {
            let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
        }
        let mut file = options.open(&self.path)?;
        links::still(&self.of.path)?;
        let mut old = Vec::new();
        file.read_to_end(&mut old)?;
        match expected {
            Expected::Content(want) if old != want => return Err(Error::Changed),
            Expected::Absent => return Err(Error::Changed),
            Expected::Content(_) | Expected::Anything => {}
        }
        #[cfg(unix)]
        if let Some(mode) = mode.filter(|mode| file.metadata().is_ok_and(|old| bits(&old) != *mode)) {
            match file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode)) {
                // A file of somebody else's that we may write keeps the bits that its owner gave it.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
                done => done?,
            }
        }
        let (head, tail) = bytes.split_at(old.len().min(bytes.len()));
        let before = old.len() as u64;
        let room = reserve(&file, bytes.len() as u64).and_then(|()| write_at(&file, tail, before));
        let room = room.and_then(|()| if tail.is_empty() { Ok(()) } else { file.sync_data() });
        if let Err(source) = room {
            return Err(match file.set_len(before) {
                Ok(()) => source.into(),
                Err(restoring) => Error::Torn { source, restoring },
            });
        }
        let written = write_at(&file, head, 0).and_then(|()| file.set_len(bytes.len() as u64));
        if let Err(source) = written.and_then(|()| file.sync_data()) {
            let restored = write_at(&file, &old, 0).and_then(|()| file.set_len(before)).and_then(|()| file.sync_data());
            return Err(match restored {
                Ok(()) => source.into(),
                Err(restoring) => Error::Torn { source, restoring },
            });
        }
        Ok(())
    }
}

/// Whether a file can be what is left of replacing `old` by `new` in place when the process was killed in between, or could
/// not put it back: a longer `new` begins with its tail, then its head goes over the old bytes from the start, then a longer
/// `old` is cut.
pub fn is_half_written(found: &[u8], old: &[u8], new: &[u8]) -> bool {
    let head = old.len().min(new.len());
    let Some((start, rest)) = found.split_at_checked(head) else { return false };
    // Where new bytes stand: from the first place that differs from the old to the last one.
    let differs = |at: &usize| start[*at] != old[*at];
    let first = (0..head).find(differs);
    let last = (0..head).rfind(differs);
    let run = first.zip(last).is_none_or(|(first, last)| start[first..=last] == new[first..=last]);
    let tail = match old.len() < new.len() {
        true => rest == &new[head..] || first.is_none() && new[head..].starts_with(rest),
        false => rest == &old[head..] || rest.is_empty() && start == new,
    };
    run && tail
}

/// What a folder says that takes no new files, or does not let this one go.
fn refused(error: io::Error) -> Beside {
    use ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    match error.kind() {
        PermissionDenied | ReadOnlyFilesystem | ResourceBusy | CrossesDevices => Beside::Refused(error),
        _ => Beside::Failed(error.into()),
    }
}

fn gone(error: io::Error) -> Beside {
    match error.kind() {
        ErrorKind::NotFound => Beside::Failed(Error::Changed),
        _ => Beside::Failed(error.into()),
    }
}

/// Gives a file a name that must be free.
fn take_name(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {}
            done => return done,
        }
    }
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(unix)]
fn bits(meta: &Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o7777
}

/// Device and inode.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<(u64, u64)> {
    None
}

/// Whether the file is more than this one name: it has others, or something is mounted on it.
#[cfg(unix)]
fn is_bound(path: &Path, meta: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(meta) > 1 || is_mount(path)
}

#[cfg(not(unix))]
fn is_bound(_path: &Path, _meta: &Metadata) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn is_mount(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE)
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_mount(_path: &Path) -> bool {
    false
}

/// Takes room for so many bytes, where the file system can promise it. The length stays.
#[cfg(target_os = "linux")]
fn reserve(file: &File, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    if len == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, len).map_err(io::Error::from) {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => Ok(()),
        done => done,
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}

fn write_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    io::Seek::seek(&mut file, io::SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

#[cfg(unix)]
#[cfg(test)]
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
        replace(&link, b"new", None).unwrap();
        replace(&dangling, b"made", Some(0o600)).unwrap();
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
        assert!(replace(&dir.path().join("a"), b"x", None).is_err());
    }

    fn replacement(path: &Path) -> Replacement {
        Replacement::of(path).unwrap()
    }

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_save_in_the_meantime_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let check = |saved: Option<&str>, expected: Expected<'_>, other_name: bool, fits: bool| {
            let _ = fs::remove_file(&path);
            saved.iter().for_each(|text| fs::write(&path, text).unwrap());
            if other_name && saved.is_some() {
                fs::hard_link(&path, dir.path().join("b")).unwrap();
            }
            let done = replacement(&path).write(b"new", expected, None);
            let found = fs::read_to_string(&path).ok();
            let _ = fs::remove_file(dir.path().join("b"));
            match done {
                Ok(()) => assert!(fits && found.as_deref() == Some("new"), "{saved:?} {expected:?}"),
                Err(Error::Changed) => assert!(!fits && found.as_deref() == saved, "{saved:?} {expected:?}"),
                Err(error) => panic!("{error}"),
            }
            assert_eq!(names(&dir), if found.is_some() { vec!["a"] } else { vec![] });
        };
        for other_name in [false, true] {
            check(Some("old"), Expected::Content(b"old"), other_name, true);
            check(Some("mine"), Expected::Content(b"old"), other_name, false);
            check(None, Expected::Content(b"old"), other_name, false);
            check(None, Expected::Absent, other_name, true);
            check(Some("mine"), Expected::Absent, other_name, false);
            check(Some("mine"), Expected::Anything, other_name, true);
        }
        // Between the last look and the exchange.
        let it = replacement(&path);
        fs::write(it.temporary(), "new").unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(matches!(Held::of(&it).unwrap().exchange(b"old"), Err(Beside::Failed(Error::Changed))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        // A removal looks, too.
        fs::remove_file(it.temporary()).unwrap();
        assert!(matches!(it.remove(b"old"), Err(Error::Changed)));
        it.remove(b"mine").unwrap();
        assert_eq!(names(&dir), [""; 0]);
    }

    #[test]
    fn a_link_that_was_put_in_the_path_is_not_followed() {
        for (made, link) in [("d/a", "d"), ("d/a", "d/a"), ("d/new", "d"), ("d/new", "d/new")] {
            let dir = tempfile::tempdir().unwrap();
            let (at, text) = (|name: &str| dir.path().join(name), |name: &str| fs::read_to_string(name).unwrap());
            fs::create_dir(at("d")).unwrap();
            fs::create_dir(at("out")).unwrap();
            [at("d/a"), at("out/a")].iter().for_each(|path| fs::write(path, "old").unwrap());
            let it = replacement(&at(made));
            let _ = fs::rename(at(link), at("aside"));
            let to = if link == "d" { at("out") } else { at("out").join(at(made).file_name().unwrap()) };
            symlink(&to, at(link)).unwrap();
            let expected = if made == "d/a" { Expected::Content(b"old") } else { Expected::Absent };
            let told =
                [it.write(b"new", expected, None), it.write(b"new", Expected::Anything, None), it.remove(b"old")];
            assert!(told.iter().all(|told| told.as_ref().is_err_and(|error| error.to_string().contains("meantime"))));
            assert_eq!(
                (names_in(&at("out")), text(at("out/a").to_str().unwrap())),
                (vec!["a".to_owned()], "old".into())
            );
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_begun_in_a_folder_ends_there() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        [at("d"), at("out")].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(at("d/a"), "old").unwrap();
        let it = replacement(&at("d/a"));
        let held = Held::of(&it).unwrap();
        fs::write(&held.temporary, "half").unwrap();
        fs::rename(at("d"), at("aside")).unwrap();
        symlink("out", at("d")).unwrap();
        // Neither what lies there already nor what is made now is left behind, or leaves the folder.
        fs::remove_file(&held.temporary).unwrap();
        let old = fs::metadata(at("aside/a")).unwrap();
        assert!(held.beside(Some(&old), b"new", Expected::Content(b"old"), None).is_err());
        assert_eq!((names_in(&at("aside")), names_in(&at("out"))), (vec!["a".to_owned()], vec![]));
    }

    fn names_in(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn other_names_stay_names_of_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::hard_link(&path, &other).unwrap();
        for text in ["longer than it was", "short", "", "again"] {
            replacement(&path).write(text.as_bytes(), Expected::Anything, None).unwrap();
            assert_eq!(fs::read_to_string(&other).unwrap(), text);
        }
        assert_eq!(identity(&path), identity(&other));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn owner_group_and_attributes_stay() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        let attribute = rustix::fs::setxattr(&path, "user.note", b"kept", rustix::fs::XattrFlags::empty()).is_ok();
        // Only root may give a file away.
        let given = std::os::unix::fs::chown(&path, Some(12345), Some(54321)).is_ok();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o2754)).unwrap();
        let before = fs::metadata(&path).unwrap();
        replacement(&path).write(b"new", Expected::Content(b"old"), None).unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.uid(), after.gid(), after.mode()), (before.uid(), before.gid(), before.mode()));
        assert!(!given || after.uid() == 12345);
        let mut value = [0; 16];
        let len = rustix::fs::getxattr(&path, "user.note", &mut value).unwrap_or(0);
        assert_eq!(&value[..len], if attribute { &b"kept"[..] } else { b"" });
    }

    #[test]
    fn a_half_written_file_is_known() {
        for (found, old, new, want) in [
            ("aaaa", "aaaa", "bb", true),
            ("bbaa", "aaaa", "bb", true),
            ("bb", "aaaa", "bb", true),
            ("aabbcc", "aa", "bbbbcc", true),
            ("b", "aaaa", "bb", false),
            ("aaaaa", "aaaa", "bb", false),
            ("axaa", "aaaa", "bb", false),
            ("bab", "aaa", "bbb", false),
            ("abaa", "aaaa", "bbbb", true),
            ("aab", "aa", "bbbb", true),
            ("bab", "aa", "bbbb", false),
            ("babb", "aa", "bbbb", true),
            ("ba", "aaaa", "bb", false),
        ] {
            assert_eq!(is_half_written(found.as_bytes(), old.as_bytes(), new.as_bytes()), want, "{found}");
        }
    }
}
