//! Files as the model may have them: opened without ever blocking, and changed only as it last saw them.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::message::{BlobId, Display, Effect, FileDiff};
use crate::permission::Permit;
use crate::session::store::Store;
use crate::stdx::ansi::visible;
use crate::stdx::hash::sha256_hex;
use crate::stdx::links;
use crate::stdx::regular;
use crate::stdx::replace::{self, Expected, Replacement};

use super::{Context, FileChange, Output, Seen, diff};

/// Longest path that is looked at, in bytes: `PATH_MAX` of Linux.
const MAX_PATH: usize = 4_096;

/// Largest file that can be edited, and whose content is remembered as seen.
pub(super) const EDITABLE: u64 = 64 * 1024 * 1024;

/// As `open_at`, wherever the path leads now.
pub(super) fn open(path: &Path) -> Result<(File, Metadata), String> {
    open_at(path, &links::resolve(path))
}

/// Opens the regular file that `path` led to, links followed, when it was decided about. Never waits for a writer, a device
/// or a terminal.
///
/// # Errors
/// A sentence for the model that says what is there and what to do instead.
pub(super) fn open_at(path: &Path, real: &Path) -> Result<(File, Metadata), String> {
    let shown = path.display();
    // Looked at before it is opened: opening alone has effects on some devices.
    let before = std::fs::metadata(real).map_err(|error| cannot_read(path, &error))?;
    if let Some(refusal) = refuse_kind(path, &before) {
        return Err(refusal);
    }
    let file = regular::open(real).map_err(|error| cannot_read(path, &error))?;
    links::opened(&file, real)
        .map_err(|error| format!("{shown} was not read: {error}. Repeat the call to ask again."))?;
    let metadata = file.metadata().map_err(|error| format!("Cannot read {shown}: {error}."))?;
    match refuse_kind(path, &metadata) {
        Some(refusal) => Err(refusal),
        None => Ok((file, metadata)),
    }
}

fn refuse_kind(path: &Path, metadata: &Metadata) -> Option<String> {
    let shown = path.display();
    let kind = metadata.file_type();
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some(format!("{shown} is a folder. Use LS to list it, or Glob to find files in it."));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some(format!(
                "{shown} is a named pipe (FIFO), which has no content of its own. If a program writes to it, read it in Bash with a timeout: timeout 5 cat."
            ));
        }
        if kind.is_socket() {
            return Some(format!("{shown} is a socket. Use a suitable program in Bash to talk to it."));
        }
    }
    Some(format!("{shown} is a device. If you need its content, read a part of it in Bash: head -c 1000."))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => match similar(path) {
            Some(name) => format!("{shown} does not exist. Did you mean {name}?"),
            None => format!("{shown} does not exist. Use Glob or LS to find the file."),
        },
        ErrorKind::PermissionDenied => format!("Cannot read {shown}: permission denied."),
        _ => format!("Cannot read {shown}: {error}."),
    }
}

/// A file in the same folder whose name differs in case or extension only.
fn similar(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let (name, stem) = (path.file_name()?.to_string_lossy(), path.file_stem()?.to_string_lossy());
    let mut best: Option<(bool, PathBuf)> = None;
    for entry in std::fs::read_dir(folder).ok()?.take(5000).flatten() {
        let other = entry.path();
        let same = entry.file_name().to_string_lossy().eq_ignore_ascii_case(&name);
        let near = other.file_stem().is_some_and(|other| other.to_string_lossy().eq_ignore_ascii_case(&stem));
        if (same || near) && best.as_ref().is_none_or(|(was_same, path)| (!same, &other) < (!*was_same, path)) {
            best = Some((same, other));
        }
    }
    best.map(|(_, path)| visible(&path.display().to_string()))
}

/// Whether the first bytes look like text.
pub(super) fn is_text(start: &[u8]) -> bool {
    !start.contains(&0)
}

/// A file's content at one moment.
pub(super) struct Snapshot {
    pub bytes: Vec<u8>,
    pub hash: String,
}

/// Reads a whole file that may be edited; none when there is no such file.
///
/// # Errors
/// A sentence for the model.
pub(super) fn snapshot(path: &Path) -> Result<Option<Snapshot>, String> {
    // A dangling link counts as absent: writing makes its target.
    if let Err(error) = std::fs::metadata(path)
        && error.kind() == ErrorKind::NotFound
    {
        return Ok(None);
    }
    let (file, metadata) = open(path)?;
    let too_large = || format!("{} is larger than 64 MiB. Change it in Bash instead.", path.display());
    if metadata.len() > EDITABLE {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(EDITABLE + 1).read_to_end(&mut bytes).map_err(|error| cannot_read(path, &error))?;
    if bytes.len() as u64 > EDITABLE {
        return Err(too_large());
    }
    let hash = sha256_hex(&bytes);
    Ok(Some(Snapshot { bytes, hash }))
}

/// Checks that the model knows what it is about to change.
///
/// # Errors
/// A sentence that tells it to read the file, again if it changed.
pub(super) fn check_seen(path: &Path, snapshot: &Snapshot, seen: &Seen) -> Result<(), String> {
    match seen.get(path) {
        Some(hash) if *hash == snapshot.hash => Ok(()),
        Some(_) => Err(changed(path)),
        None => {
            Err(format!("{} exists, but you have not read it; nothing was written. Read it first.", path.display()))
        }
    }
}

/// A change to one file that is worked out but not made.
pub(super) struct Change {
    pub path: PathBuf,
    pub before: Option<Snapshot>,
    pub after: Vec<u8>,
    /// What the model is told once it is made.
    pub told: String,
}

impl Change {
    /// The diff that people see.
    pub(super) fn diff(&self) -> FileDiff {
        let before = self.before.as_ref().map(|snapshot| snapshot.bytes.as_slice());
        diff::of(&self.path, before, &self.after)
    }

    /// Checks that the model knows what it is about to change.
    ///
    /// # Errors
    /// A sentence that tells it to read the file, again if it changed.
    pub(super) fn check_seen(&self, seen: &Seen) -> Result<(), String> {
        self.before.as_ref().map_or(Ok(()), |before| check_seen(&self.path, before, seen))
    }

    /// Makes the change, after checking that the file is still the one that the model has seen. Once begun it is finished,
    /// also when the future is dropped.
    pub(super) async fn make(self, context: &Context) -> Output {
        let Some(target) = context.permit.target().map(Path::to_owned) else {
            return Output::error("Not done: no permission was given for this file.");
        };
        if let Err(refusal) = self.check_seen(&context.seen) {
            return Output::error(refusal);
        }
        if context.cancel.is_cancelled() {
            return interrupted();
        }
        let store = context.store.clone();
        let prepared = tokio::task::spawn_blocking(move || self.prepare(&store, target)).await;
        let (change, replacement, blob, made) = match prepared {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(refusal)) => return Output::error(refusal),
            Err(error) => return Output::error(format!("The tool failed: {error}.")),
        };
        let noted =
            FileChange { path: replacement.path().to_owned(), blob, temporary: replacement.temporary().to_owned() };
        if let Err(error) = context.host.will_change(noted).await {
            return Output::error(format!("Not done because it could not be undone: {error}."));
        }
        let path = replacement.path().to_owned();
        let write = move || {
            let done = change.write(&replacement);
            if done.0.outcome == super::Outcome::Ok {
                made.keep();
            }
            done
        };
        let (output, settled) = match tokio::task::spawn_blocking(write).await {
            Ok(done) => done,
            Err(error) => return Output::error(format!("The tool failed: {error}.")),
        };
        // Without this word undo takes the file for one that may be half written; the change is all the same.
        if settled && let Err(error) = context.host.settled(path).await {
            tracing::warn!(%error, "cannot log that a file was written");
        }
        output
    }

    fn prepare(self, store: &Store, target: PathBuf) -> Result<(Change, Replacement, BlobId, Made), String> {
        let cannot = |error: std::io::Error| format!("Cannot write {}: {error}.", self.path.display());
        links::still(&target).map_err(cannot)?;
        let folder = target.parent().unwrap_or(Path::new("/"));
        let made = Made::folder(folder).map_err(cannot)?;
        let replacement = Replacement::at(target).map_err(cannot)?;
        let blob = store.keep_blob(&self.after);
        let blob = blob.map_err(|error| format!("Not done because it could not be undone: {error}."))?;
        Ok((self, replacement, blob, made))
    }

    /// Also whether no half of it can stand in the file.
    fn write(self, replacement: &Replacement) -> (Output, bool) {
        let expected = self.before.as_ref().map_or(Expected::Absent, |before| Expected::Content(&before.bytes));
        match replacement.write(&self.after, expected, None) {
            Ok(()) => {}
            Err(replace::Error::Changed) => return (Output::error(changed(&self.path)), true),
            Err(error) => {
                let torn = matches!(error, replace::Error::Torn { .. });
                return (Output::error(format!("Cannot write {}: {error}.", self.path.display())), !torn);
            }
        }
        let diff = self.diff();
        let seen = Effect::Seen { path: self.path, sha256: sha256_hex(&self.after) };
        (Output { display: Some(Display::Diff(diff)), effects: vec![seen], ..Output::ok(self.told) }, true)
    }
}

/// Folders that were made for a file: they go again unless it is written.
struct Made(Vec<PathBuf>);

impl Made {
    fn folder(folder: &Path) -> std::io::Result<Made> {
        let missing =
            |folder: &&Path| folder.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        // What was made before an error goes, too.
        let made = Made(folder.ancestors().take_while(missing).map(Path::to_owned).collect());
        std::fs::create_dir_all(folder)?;
        Ok(made)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // Not one in which somebody put something meanwhile.
        for folder in &self.0 {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

fn changed(path: &Path) -> String {
    format!(
        "{} changed on disk since you read it; nothing was written. Read it again, then repeat the change.",
        path.display()
    )
}

/// The answer of a call that was stopped before it did anything.
pub(super) fn interrupted() -> Output {
    Output { outcome: super::Outcome::Interrupted, ..Output::ok("Interrupted by the user before it was done.") }
}

/// Runs blocking file work off the async threads; a panic in it becomes a failed call.
pub(super) async fn blocking(work: impl FnOnce() -> Output + Send + 'static) -> Output {
    match tokio::task::spawn_blocking(work).await {
        Ok(output) => output,
        Err(error) => Output::error(format!("The tool failed: {error}.")),
    }
}

/// Checks that a path still leads to the file that was decided about, before anything is read there.
///
/// # Errors
/// A sentence for the model.
pub(super) fn check_target(path: &Path, target: Option<&Path>) -> Result<(), String> {
    let now = links::resolve(path);
    match target {
        Some(target) if target == now => links::still(target).map_err(|error| format!("Not done: {error}.")),
        _ => Err(format!(
            "{} changed in the meantime and now leads to {}; nothing was done. Repeat the call to ask again.",
            path.display(),
            now.display()
        )),
    }
}

/// The same for a place that is only looked at. Without a target nothing was asked, or decided.
pub(super) fn check_place(path: &Path, permit: &Permit) -> Result<(), String> {
    permit.target().map_or(Ok(()), |target| check_target(path, Some(target)))
}

/// Refuses paths that no file can have.
///
/// # Errors
/// A sentence for the model.
pub(super) fn named(path: &str) -> Result<(), String> {
    if path.trim().is_empty() {
        return Err("The path is empty.".into());
    }
    if path.contains('\0') {
        return Err("The path contains a NUL character.".into());
    }
    // The system opens none, and every part of it would be looked at.
    if path.len() > MAX_PATH {
        return Err(format!("The path is longer than {MAX_PATH} bytes."));
    }
    Ok(())
}

/// One line for the screen, without control characters, of at most 200 characters.
pub(super) fn one_line(text: &str) -> String {
    let text = visible(text.trim());
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let mut line: String = first.chars().take(200).collect();
    if line.len() < first.len() || lines.next().is_some() {
        line.push('…');
    }
    line
}

/// A path as short as it can be said: relative to the working directory where it lies below it.
pub(super) fn shown(path: &Path, cwd: &Path) -> String {
    let short = path.strip_prefix(cwd).ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(path);
    visible(&short.display().to_string()).replace('\n', "\u{240a}")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_no_system_opens_is_not_looked_at() {
        assert_eq!(named(&"a/".repeat(2_048)), Ok(()));
        assert_eq!(named(&"a/".repeat(2_049)), Err("The path is longer than 4096 bytes.".into()));
    }

    #[test]
    fn only_what_was_decided_about_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("there", root.join("link")).unwrap();
        let check = |path: &str, target: Option<&str>, want: bool| {
            let target = target.map(|target| root.join(target));
            assert_eq!(check_target(&root.join(path), target.as_deref()).is_ok(), want, "{path}");
        };
        check("link", Some("there"), true);
        check("link", Some("elsewhere"), false);
        check("link", Some("link"), false);
        check("new/deep", Some("new/deep"), true);
        check("new", None, false);
    }

    #[test]
    fn only_regular_files_open() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("Main.rs"), "text").unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap();
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (path, want) in [
            (at("Main.rs"), "ok"),
            (at("fifo"), "is a named pipe"),
            (at("socket"), "is a socket"),
            (dir.path().into(), "is a folder. Use LS"),
            ("/dev/tty".into(), "is a device"),
            ("/dev/zero".into(), "is a device"),
            (at("gone"), "does not exist. Use Glob or LS"),
            (at("main.rs"), "Main.rs?"),
            (at("main.txt"), "Main.rs?"),
            (at("Main.rs/x"), "does not exist"),
        ] {
            let got = open(&path).map_or_else(|error| error, |_| "ok".into());
            assert!(got.contains(want), "{}: {got}", path.display());
        }
    }
}
