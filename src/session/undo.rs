//! Takes file changes back and brings them forth again, without git: contents are blobs beside the log.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::changes::{Plan, Step, Version};
use super::entry::{EntryKind, Restore, Seq};
use super::error::Error;
use super::session::Session;
use crate::message::{BlobId, CallId};
use crate::protocol::RewindWhat;
use crate::stdx::hash::sha256_hex;

/// Largest file whose content is saved, in bytes.
const LARGEST: u64 = 64 << 20;

/// What became of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub how: Restore,
    /// Files that are as they were before, or again as they were after.
    pub restored: Vec<PathBuf>,
    /// Files that were left alone; a line each, with the reason.
    pub refused: Vec<String>,
    /// Commands that ran in the turns in question, whose changes cannot be seen.
    pub unseen: Vec<String>,
}

/// What a rewind did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewound {
    /// What the user had typed there.
    pub prompt: String,
    /// None: files were not asked for.
    pub files: Option<Restored>,
    /// True when the conversation went back.
    pub conversation: bool,
}

impl Session {
    /// Saves a file's content before its first change since the last prompt. Call it right before a tool changes `path`,
    /// which is absolute; whoever does syncs the log then.
    ///
    /// # Errors
    /// What the file system or the log says; the change must not go on then.
    pub fn before_change(&mut self, path: &Path) -> Result<(), Error> {
        let path = resolve(path);
        if self.changes.before(&path).is_some() {
            return Ok(());
        }
        let (blob, mode) = match fs::symlink_metadata(&path) {
            Err(error) if is_absent(&error) => (None, None),
            Err(error) => return Err(Error::io("read", &path, error)),
            Ok(meta) if !meta.is_file() => return Ok(()),
            Ok(meta) if meta.len() > LARGEST => {
                let command = format!("change of {} (too large to be saved)", path.display());
                self.append(EntryKind::CommandRan { call: CallId(String::new()), command })?;
                return Ok(());
            }
            Ok(meta) => {
                let bytes = fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
                let blob = self.store().put_blob(&bytes).map_err(|error| Error::write(self.store().dir(), error))?;
                (Some(blob), mode_of(&meta))
            }
        };
        self.append(EntryKind::FileBefore { path, blob, mode })?;
        Ok(())
    }

    /// Notes what a tool left in a file, also when it failed. Does nothing when the file is as it was.
    ///
    /// # Errors
    /// What the log says.
    pub fn after_change(&mut self, path: &Path) -> Result<(), Error> {
        let path = resolve(path);
        let Some(known) = self.changes.after(&path) else { return Ok(()) };
        match version_of(&path) {
            Ok((version, _)) if version != *known => {
                self.append(EntryKind::FileAfter { path, blob: version.blob, mode: version.mode })?;
                Ok(())
            }
            // What cannot be read now is refused when it is to be taken back.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Takes the file changes of the last turn back that made some; again, those of the turn before.
    ///
    /// # Errors
    /// `Nothing` when no turn is left; otherwise what the log says, and no file was touched.
    pub fn undo(&mut self) -> Result<Restored, Error> {
        let plan = self.changes.undo().ok_or(Error::Nothing("undo"))?;
        self.carry_out(Restore::Undo, plan)
    }

    /// Brings the file changes forth again that `undo` or a rewind took back, a turn at a time.
    ///
    /// # Errors
    /// `Nothing` when there are none, or a new change came after; otherwise what the log says.
    pub fn redo(&mut self) -> Result<Restored, Error> {
        let plan = self.changes.redo().ok_or(Error::Nothing("redo"))?;
        self.carry_out(Restore::Redo, plan)
    }

    /// Goes back to before the prompt at `to`: files, conversation or both.
    ///
    /// # Errors
    /// `NoSuchMessage` when no prompt that counts stands there; otherwise what the log says.
    pub fn rewind(&mut self, to: Seq, what: RewindWhat) -> Result<Rewound, Error> {
        let prompt = self.prompt_at(to)?.ok_or(Error::NoSuchMessage { to })?;
        if self.read_only() {
            return Err(Error::ReadOnly);
        }
        let files = match what {
            RewindWhat::Conversation => None,
            RewindWhat::Code | RewindWhat::Both => Some(self.carry_out(Restore::Rewind, self.changes.rewind(to))?),
        };
        let conversation = what != RewindWhat::Code;
        if conversation {
            self.append(EntryKind::Rewind { to })?;
        }
        Ok(Rewound { prompt, files, conversation })
    }

    /// Decides file by file, writes the entry, then changes the files.
    fn carry_out(&mut self, how: Restore, plan: Plan) -> Result<Restored, Error> {
        let mut done = Restored { how, restored: Vec::new(), refused: Vec::new(), unseen: plan.commands };
        let mut ready = Vec::new();
        for step in plan.steps {
            match self.prepare(&step) {
                Ok(Some(bytes)) => ready.push((step, bytes)),
                Ok(None) => {}
                Err(reason) => done.refused.push(format!("{}: {reason}", step.path.display())),
            }
        }
        let paths = ready.iter().map(|(step, _)| step.path.clone()).collect();
        self.append(EntryKind::FilesRestored { to: plan.to, how, paths })?;
        self.sync()?;
        for (step, bytes) in ready {
            match write_version(&step, bytes.as_deref()) {
                Ok(()) => done.restored.push(step.path),
                Err(error) => done.refused.push(format!("{}: {error}", step.path.display())),
            }
        }
        Ok(done)
    }

    /// The bytes that the file is to hold; the outer none: it is already as it shall be. Saves what it holds now, so that
    /// the step can be taken back.
    fn prepare(&self, step: &Step) -> Result<Option<Option<Vec<u8>>>, String> {
        let (current, bytes) = version_of(&step.path).map_err(|error| error.to_string())?;
        if current.blob == step.target.blob {
            return Ok(None);
        }
        if current.blob != step.expected.blob {
            return Err("changed since, left as it is".to_owned());
        }
        if let Some(bytes) = bytes {
            self.store().put_blob(&bytes).map_err(|error| format!("what it holds now cannot be saved: {error}"))?;
        }
        let Some(blob) = &step.target.blob else { return Ok(Some(None)) };
        let bytes = self.store().blob(blob).map_err(|error| format!("its saved content cannot be read: {error}"))?;
        if sha256_hex(&bytes) != blob.0 {
            return Err("its saved content is damaged".to_owned());
        }
        Ok(Some(Some(bytes)))
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What a file holds now, and the bytes themselves. Anything but a regular file, or none, is an error.
fn version_of(path: &Path) -> io::Result<(Version, Option<Vec<u8>>)> {
    let meta = match fs::symlink_metadata(path) {
        Err(error) if is_absent(&error) => return Ok((Version { blob: None, mode: None }, None)),
        meta => meta?,
    };
    if !meta.is_file() {
        return Err(io::Error::other("is no regular file any more, left as it is"));
    }
    if meta.len() > LARGEST {
        return Err(io::Error::other("too large, left as it is"));
    }
    let bytes = fs::read(path)?;
    Ok((Version { blob: Some(BlobId(sha256_hex(&bytes))), mode: mode_of(&meta) }, Some(bytes)))
}

#[cfg(unix)]
fn mode_of(meta: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o7777)
}

#[cfg(not(unix))]
fn mode_of(_meta: &fs::Metadata) -> Option<u32> {
    None
}

/// Follows links, so that the file itself is saved and restored. A path that leads nowhere yet is followed as far as it
/// goes.
fn resolve(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many links as a kernel follows.
    for _ in 0..40 {
        if let Ok(real) = fs::canonicalize(&path) {
            return real;
        }
        let Some((folder, name)) = path.parent().zip(path.file_name()) else { return path };
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return folder.join(name),
        }
    }
    path
}

fn write_version(step: &Step, bytes: Option<&[u8]>) -> io::Result<()> {
    let Some(bytes) = bytes else { return fs::remove_file(&step.path) };
    let folder = step.path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    if let Some(mode) = step.target.mode {
        file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    }
    file.as_file().sync_data()?;
    file.persist(&step.path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::message::Message;

    /// A session in a folder of its own.
    struct Fixture {
        temp: tempfile::TempDir,
        session: Session,
    }

    impl Fixture {
        fn new(files: &[(&str, &str)]) -> Fixture {
            let temp = tempfile::tempdir().unwrap();
            let session = Session::create(&temp.path().join("home"), temp.path(), "1", SystemTime::now);
            let fixture = Fixture { temp, session };
            files.iter().for_each(|(name, text)| fs::write(fixture.path(name), text).unwrap());
            fixture
        }

        fn path(&self, name: &str) -> PathBuf {
            fs::canonicalize(self.temp.path()).unwrap().join(name)
        }

        fn turn(&mut self) -> Seq {
            self.session.append(EntryKind::TurnStarted).unwrap();
            self.steer()
        }

        fn steer(&mut self) -> Seq {
            self.session.append(EntryKind::Message { message: Arc::new(Message::prompt("go")) }).unwrap()
        }

        /// What a tool does; no text removes the file.
        fn change(&mut self, name: &str, text: Option<&str>) {
            let path = self.path(name);
            self.session.before_change(&path).unwrap();
            match text {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            self.session.after_change(&path).unwrap();
        }

        fn command(&mut self, command: &str) {
            let kind = EntryKind::CommandRan { call: CallId::nth(1), command: command.into() };
            self.session.append(kind).unwrap();
        }

        /// Restored, refused (names alone), unseen; then what each file holds.
        fn check(&mut self, done: Restored, restored: &[&str], refused: &[&str], unseen: &[&str], files: &[&str]) {
            let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            let found: Vec<String> = done.restored.iter().map(|path| name(path.to_str().unwrap())).collect();
            assert_eq!(found, restored);
            let found: Vec<String> = done.refused.iter().map(|line| name(line.split(':').next().unwrap())).collect();
            assert_eq!(found, refused, "{:?}", done.refused);
            assert_eq!(done.unseen, unseen);
            self.holds(files);
            // The same after a resume.
            let home = self.temp.path().join("home");
            let read = Session::open_read_only(&home, self.session.id(), SystemTime::now).unwrap();
            assert_eq!(read.changes.undo(), self.session.changes.undo());
            assert_eq!(read.changes.redo(), self.session.changes.redo());
        }

        /// Files a, b, c: their text, or `-` for none.
        fn holds(&self, files: &[&str]) {
            let text = |name| fs::read_to_string(self.path(name)).unwrap_or_else(|_| "-".to_owned());
            let found: Vec<String> = ["a", "b", "c"].into_iter().take(files.len()).map(text).collect();
            assert_eq!(found, files);
        }
    }

    #[test]
    fn undo_goes_back_turn_by_turn_and_redo_forth() {
        let mut it = Fixture::new(&[("a", "a0"), ("c", "c0")]);
        it.turn();
        it.change("a", Some("a1"));
        it.change("a", Some("a2"));
        it.change("b", Some("b1"));
        it.command("make");
        it.turn();
        it.change("a", Some("a3"));
        it.change("c", None);
        it.turn();
        it.command("rm x");
        it.holds(&["a3", "b1", "-"]);

        let done = it.session.undo().unwrap();
        it.check(done, &["a", "c"], &[], &["rm x"], &["a2", "b1", "c0"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a", "b"], &[], &["make"], &["a0", "-", "c0"]);
        assert!(matches!(it.session.undo(), Err(Error::Nothing("undo"))));
        let done = it.session.redo().unwrap();
        it.check(done, &["a", "b"], &[], &[], &["a2", "b1", "c0"]);
        let done = it.session.redo().unwrap();
        it.check(done, &["a", "c"], &[], &[], &["a3", "b1", "-"]);
        assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));
        // A new change ends what could be redone.
        it.session.undo().unwrap();
        it.turn();
        assert!(it.session.changes.redo().is_some());
        it.change("b", Some("b9"));
        assert!(matches!(it.session.redo(), Err(Error::Nothing("redo"))));
        let done = it.session.undo().unwrap();
        it.check(done, &["b"], &[], &[], &["a2", "b1", "c0"]);
    }

    #[test]
    fn what_somebody_else_changed_is_refused() {
        let mut it = Fixture::new(&[("a", "a0"), ("b", "b0")]);
        it.turn();
        it.change("a", Some("a1"));
        it.change("b", Some("b1"));
        it.change("c", Some("c1"));
        fs::write(it.path("a"), "mine").unwrap();
        fs::remove_file(it.path("b")).unwrap();
        fs::remove_file(it.path("c")).unwrap();
        // The last one is already as it was before.
        let done = it.session.undo().unwrap();
        it.check(done, &[], &["a", "b"], &[], &["mine", "-", "-"]);
        let done = it.session.redo().unwrap();
        // Nobody saved what the removed one held.
        it.check(done, &[], &["a", "b", "c"], &[], &["mine", "-", "-"]);
        // A folder in its place; saved bytes that are gone or damaged.
        fs::create_dir(it.path("c")).unwrap();
        fs::write(it.path("a"), "a1").unwrap();
        fs::write(it.path("b"), "b1").unwrap();
        let blob = |text: &str| it.session.store().blob_path(&BlobId(sha256_hex(text.as_bytes())));
        fs::remove_file(blob("a0")).unwrap();
        fs::write(blob("b0"), "other").unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &[], &["a", "b", "c"], &[], &["a1", "b1"]);
    }

    #[test]
    fn a_rewind_keeps_what_came_before_its_prompt() {
        let mut it = Fixture::new(&[("a", "a0")]);
        let first = it.turn();
        it.change("a", Some("a1"));
        let steered = it.steer();
        it.change("a", Some("a2"));
        it.change("b", Some("b2"));
        let second = it.turn();
        it.command("make");
        let prompts = |it: &Fixture| it.session.prompts().unwrap();
        let rows: Vec<(Seq, bool)> = prompts(&it).into_iter().map(|row| (row.seq, row.changed_files)).collect();
        assert_eq!(rows, [(first, true), (steered, true), (second, false)]);
        assert!(matches!(it.session.rewind(second + 1, RewindWhat::Both), Err(Error::NoSuchMessage { .. })));

        let rewound = it.session.rewind(second, RewindWhat::Conversation).unwrap();
        assert_eq!(rewound, Rewound { prompt: "go".into(), files: None, conversation: true });
        assert_eq!(prompts(&it).len(), 2);
        assert!(matches!(it.session.rewind(second, RewindWhat::Both), Err(Error::NoSuchMessage { .. })));
        let done = it.session.rewind(steered, RewindWhat::Code).unwrap().files.unwrap();
        it.check(done, &["a", "b"], &[], &["make"], &["a1", "-"]);
        assert_eq!(prompts(&it).len(), 2);
        let done = it.session.rewind(first, RewindWhat::Both).unwrap().files.unwrap();
        it.check(done, &["a"], &[], &[], &["a0", "-"]);
        assert_eq!(prompts(&it), []);
        // Forth again, although the prompts are gone: the files know no conversation.
        let done = it.session.redo().unwrap();
        it.check(done, &["a", "b"], &[], &[], &["a2", "b2"]);
        let done = it.session.undo().unwrap();
        it.check(done, &["a", "b"], &[], &["make"], &["a0", "-"]);
    }

    #[cfg(unix)]
    #[test]
    fn modes_and_links_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let mut it = Fixture::new(&[("real", "r0")]);
        symlink("real", it.path("a")).unwrap();
        symlink("new", it.path("b")).unwrap();
        let mode = |path: PathBuf| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(it.path("real"), fs::Permissions::from_mode(0o750)).unwrap();
        it.turn();
        it.change("a", Some("r1"));
        it.change("b", Some("n1"));
        fs::set_permissions(it.path("real"), fs::Permissions::from_mode(0o600)).unwrap();
        let done = it.session.undo().unwrap();
        it.check(done, &["real", "new"], &[], &[], &["r0", "-"]);
        assert_eq!(mode(it.path("real")), 0o750);
        assert!(fs::read_link(it.path("a")).is_ok() && fs::read_link(it.path("b")).is_ok());
        let done = it.session.redo().unwrap();
        it.check(done, &["real", "new"], &[], &[], &["r1", "n1"]);
    }
}
