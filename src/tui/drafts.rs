//! What is being written and not yet sent, kept over a crash.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::protocol::Typed;
use crate::stdx::fs::{private_dir, replace_private};

/// Programs that run in one folder at once and keep what is being written; any more keep nothing.
const MOST: usize = 16;

/// A file that this process holds while it runs, so that another one in the same folder neither reads nor replaces it.
pub(super) struct Drafts {
    file: Option<PathBuf>,
    /// Locked until this is dropped or the process ends.
    held: Option<File>,
}

impl Drop for Drafts {
    /// A child that another thread has just forked shares the lock until it executes its program: closing the file
    /// would leave it locked until then.
    fn drop(&mut self) {
        let _ = self.held.as_ref().map(File::unlock);
    }
}

impl Drafts {
    /// Takes the first file that a process left behind with something in it, else the first that is free.
    pub(super) fn new(folder: &Path, name: &str) -> Drafts {
        let at = |at| folder.join(if at == 0 { name.to_owned() } else { format!("{name}-{at}") });
        let held = |file: PathBuf| {
            let mut options = OpenOptions::new();
            options.create(true).append(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let lock = options.open(file.with_extension("lock")).ok()?;
            lock.try_lock().ok().map(|()| (file, lock))
        };
        let left = || (0..MOST).map(at).filter(|file| file.exists()).find_map(held);
        let free = || (0..MOST).map(at).find_map(held);
        let (file, held) = private_dir(folder).ok().and_then(|()| left().or_else(free)).unzip();
        Drafts { file, held }
    }

    pub(super) fn read(&self) -> Option<Typed> {
        let text = fs::read_to_string(self.file.as_ref()?).ok().filter(|text| !text.is_empty())?;
        let typed = serde_json::from_str(&text).unwrap_or_else(|_| Typed::from(text.as_str()));
        Some(typed.checked(Path::is_file))
    }

    /// Keeps it; nothing is left of an empty one.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn write(&self, draft: &Typed) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if !draft.text.is_empty() {
            return replace_private(file, &serde_json::to_vec(draft)?);
        }
        match fs::remove_file(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_belongs_to_one_process_and_outlives_it() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Drafts::new(dir.path(), "folder");
        let read = |drafts: &Drafts| drafts.read().map(|typed| typed.text);
        let one = open();
        // What a fork of another thread holds for a moment.
        let _inherited = one.held.as_ref().unwrap().try_clone().unwrap();
        one.write(&Typed::from("one")).unwrap();
        let two = open();
        let _inherited = two.held.as_ref().unwrap().try_clone().unwrap();
        assert_eq!(read(&two), None);
        two.write(&Typed::from("two")).unwrap();
        assert_eq!(read(&one).as_deref(), Some("one"));
        drop(two);
        // The first still lives.
        let again = open();
        assert_eq!(read(&again).as_deref(), Some("two"));
        again.write(&Typed::from("")).unwrap();
        drop((one, again));
        assert_eq!(read(&open()).as_deref(), Some("one"));
    }
}
