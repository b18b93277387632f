//! The session's folder for bytes that are too large for the log: blobs by content, spilled tool output by call.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::log::is_main;
use crate::message::BlobId;
use crate::stdx::fs::private_dir;
use crate::stdx::hash::sha256_hex;

/// Folder of the output of commands in the background.
pub const TASKS: &str = "tasks";

/// Writes beside one session's log. Cheap to clone: it holds only the folder.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
    /// Stands before the names of spilled output: sub-agents count their calls from 1, too.
    prefix: String,
}

impl Store {
    /// `dir` is the session's own folder; sub-folders are made on first use.
    pub fn new(dir: PathBuf) -> Store {
        Store { dir, prefix: String::new() }
    }

    /// The folder of a log. Spilled output of a sub-agent does not meet that of others there.
    pub(super) fn beside(log: &Path) -> Store {
        let agent = log.file_stem().filter(|_| !is_main(log)).unwrap_or_default().to_string_lossy();
        let prefix = if agent.is_empty() { String::new() } else { format!("{agent}-") };
        Store { dir: log.parent().map(Path::to_owned).unwrap_or_default(), prefix }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where a blob lies, whether it exists or not.
    pub fn blob_path(&self, id: &BlobId) -> PathBuf {
        self.dir.join("blobs").join(&id.0)
    }

    /// Saves bytes under their hash, forced to disk; the same bytes are stored once.
    ///
    /// # Errors
    /// What the file system says; a partly written blob is never left under its name.
    pub fn put_blob(&self, bytes: &[u8]) -> io::Result<BlobId> {
        let id = self.keep_blob(bytes)?;
        File::open(self.blob_path(&id))?.sync_data()?;
        Ok(id)
    }

    /// As `put_blob`, but left to the system to bring to disk: for what is missed little after a power failure.
    ///
    /// # Errors
    /// As `put_blob`.
    pub fn keep_blob(&self, bytes: &[u8]) -> io::Result<BlobId> {
        let id = BlobId(sha256_hex(bytes));
        let path = self.blob_path(&id);
        // What a power failure left of one is written again.
        if fs::read(&path).is_ok_and(|found| found == bytes) {
            return Ok(id);
        }
        let folder = self.dir.join("blobs");
        private_dir(&folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(bytes)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(id)
    }

    /// Forces everything that was kept to disk.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn force(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(File::open(&self.dir)?)?;
        Ok(())
    }

    /// A blob's bytes, if they are there and are what their name says.
    pub fn sound_blob(&self, id: &BlobId) -> Option<Vec<u8>> {
        self.blob(id).ok().filter(|bytes| sha256_hex(bytes) == id.0)
    }

    /// Reads a blob back.
    ///
    /// # Errors
    /// What the file system says.
    pub fn blob(&self, id: &BlobId) -> io::Result<Vec<u8>> {
        fs::read(self.blob_path(id))
    }

    /// Where the output of a call is spilled, whether it exists or not.
    pub fn spill_path(&self, call: &str, extension: &str) -> PathBuf {
        self.dir.join("tool-results").join(format!("{}{call}.{extension}", self.prefix))
    }

    /// Opens a new file for the output of a call. Our own call ids are plain names; anything else in one is refused.
    ///
    /// # Errors
    /// What the file system says, or invalid input for an id that is not a plain name.
    pub fn spill(&self, call: &str, extension: &str) -> io::Result<(PathBuf, File)> {
        if call.is_empty() || !call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "call id is not a plain name"));
        }
        private_dir(&self.dir.join("tool-results"))?;
        let path = self.spill_path(call, extension);
        let file = private_file(&path)?;
        Ok((path, file))
    }

    /// The name of a call's command once it is in the background: as unique as the call.
    pub fn task(&self, call: &str) -> String {
        format!("{}b{}", self.prefix, call.strip_prefix("call_").unwrap_or(call))
    }

    /// Where the output of a command in the background is, whether it exists or not.
    pub fn task_output(&self, task: &str) -> PathBuf {
        self.dir.join(TASKS).join(format!("{task}.output"))
    }

    /// Opens a new file for the output of a command in the background.
    ///
    /// # Errors
    /// What the file system says.
    pub fn begin_task_output(&self, task: &str) -> io::Result<File> {
        private_dir(&self.dir.join(TASKS))?;
        private_file(&self.task_output(task))
    }
}

/// A new file in the place of whatever lies there: what a link, a pipe or another name of a file leads to is not written.
fn private_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn an_output_takes_the_place_of_what_lies_there() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::new(root.path().join("session"));
        let (other, path) = (root.path().join("other"), store.task_output("b1"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let pipe = |path: &Path| {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        };
        let plant: [&dyn Fn(&Path); 5] = [
            &|path| symlink(&other, path).unwrap(),
            &|path| symlink("nowhere", path).unwrap(),
            &|path| fs::hard_link(&other, path).unwrap(),
            &pipe,
            &|path| fs::write(path, "of another session").unwrap(),
        ];
        for plant in plant {
            let _ = fs::remove_file(&path);
            fs::write(&other, "kept").unwrap();
            plant(&path);
            store.begin_task_output("b1").unwrap().write_all(b"out").unwrap();
            assert_eq!(
                (fs::read_to_string(&path).unwrap(), fs::read_to_string(&other).unwrap()),
                ("out".into(), "kept".into())
            );
            let found = fs::symlink_metadata(&path).unwrap();
            assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o600, "{found:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(store.begin_task_output("b1").is_err());
    }
}
