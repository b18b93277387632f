//! The recording of one command: prepared before it starts, joined by it on its way to its program, served until it has ended.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::filter::{Filter, receive, waits_for_answers};
use super::guarding::Guarding;
use super::hand::{Hand, own_umask};
use super::recorder::Recorder;
use super::supervisor::{Watcher, serve};
use crate::sandbox::{Guard, Record};
use crate::stdx::process::start::{Confined, Join};

/// A recording that is about to begin.
#[derive(Debug)]
pub struct Recording {
    filter: Filter,
    recorder: Option<Recorder>,
    guarding: Guarding,
    ours: UnixStream,
    theirs: UnixStream,
}

/// What the child does to join it. Made before it starts: it must not allocate.
#[derive(Debug, Clone, Copy)]
pub struct Joining<'a> {
    filter: &'a Filter,
    socket: RawFd,
}

impl Join for Joining<'_> {
    /// Puts the child under the filter. Where that cannot be, it runs all the same, and nothing of it is recorded.
    fn join(&self) {
        // The kernel writes a core by no call that anybody hears of, also over a file of that name.
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        let _ = setrlimit(Resource::Core, none);
        let _ = self.filter.install_and_send(self.socket);
    }
}

impl Recording {
    /// Prepares one. What is guarded is not changed.
    ///
    /// # Errors
    /// What the file system says of the store.
    pub fn new(record: Option<&Record>, protected: Vec<PathBuf>, guard: Guard) -> io::Result<Recording> {
        let filter = Filter::new().ok_or(io::ErrorKind::Unsupported)?;
        let recorder = record.map(Recorder::begin).transpose()?;
        let (ours, theirs) = UnixStream::pair()?;
        Ok(Recording { filter, recorder, guarding: Guarding::new(protected, guard), ours, theirs })
    }

    pub fn joining(&self) -> Joining<'_> {
        Joining { filter: &self.filter, socket: self.theirs.as_raw_fd() }
    }

    /// Once the child runs its program: answers its calls, on a thread, until nobody is left who could make one. What the child
    /// was confined to holds for calls that are made for it, too.
    ///
    /// # Errors
    /// The child could not join: nothing is recorded.
    pub fn serve(self, confined: Option<&Confined>, mut watcher: impl Watcher) -> io::Result<JoinHandle<()>> {
        let Recording { recorder, guarding, ours, theirs, .. } = self;
        drop(theirs);
        let listener: OwnedFd = receive(&ours)?;
        let hand = if waits_for_answers() { Some(Hand::new(confined)?) } else { None };
        std::thread::Builder::new().name("recording".to_owned()).spawn(move || {
            own_umask();
            // Once it is closed, calls fail that would have been held.
            let _ = serve(listener, recorder, guarding, hand, &mut watcher);
        })
    }
}
