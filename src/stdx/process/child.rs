//! Starts a program in a session of its own without copying this process: a copy of a large one costs more than all else
//! about a short command.
//!
//! On Linux that is `posix_spawn`, which the standard library gives up as soon as a child wants a new session. Elsewhere
//! the library's own way is used.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, WaitOptions, kill_process, waitpid};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a child reads and writes. What else is open here is closed there.
#[derive(Debug)]
pub struct Streams {
    /// None: nothing, at once at its end.
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// Stays open in the child under the number that it has here.
    pub kept: Option<OwnedFd>,
}

/// A child process. Whoever drops it has ended it before; see `Running`.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    status: Option<ExitStatus>,
    /// Tells that some child ended.
    ended: Signal,
}

impl Child {
    /// Starts the command. Of it program, arguments, environment and folder count; its streams are the given ones.
    ///
    /// # Errors
    /// What the system says: no such program, no such folder, arguments too long.
    pub(super) fn spawn(command: &Command, streams: Streams) -> io::Result<Child> {
        // Before the start, so that no end is missed.
        let ended = signal(SignalKind::child())?;
        let stdin = match streams.stdin {
            Some(stdin) => stdin,
            None => File::open("/dev/null")?.into(),
        };
        let pid = start(command, [stdin, streams.stdout, streams.stderr], streams.kept)?;
        Ok(Child { pid, status: None, ended })
    }

    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits for its end. May be dropped and called again.
    ///
    /// # Errors
    /// Somebody else took its exit status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            self.ended.recv().await;
        }
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    /// Somebody else took its exit status.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let found = waitpid(Some(self.pid), WaitOptions::NOHANG)?;
            self.status = found.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.status)
    }

    /// Ends it at once, and takes its status as soon as the kernel has one: a matter of microseconds.
    pub(super) fn end_now(&mut self) {
        for _ in 0..20 {
            match self.try_wait() {
                Ok(None) => {}
                // Gone: its number may be another's by now.
                Ok(Some(_)) | Err(_) => return,
            }
            let _ = kill_process(self.pid, rustix::process::Signal::KILL);
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
    }
}

#[cfg(target_os = "linux")]
use self::linux::start;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::ffi::{CString, OsStr, OsString, c_char, c_int};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, RawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
    use std::ptr;

    use super::*;

    /// A program as the system wants it, with what its pointers point to.
    struct Strings {
        _owned: Vec<CString>,
        pointers: Vec<*mut c_char>,
    }

    impl Strings {
        fn of(items: impl Iterator<Item = OsString>) -> io::Result<Strings> {
            let owned: Vec<CString> = items.map(|item| cstring(&item)).collect::<io::Result<_>>()?;
            let pointers = owned.iter().map(|item| item.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect();
            Ok(Strings { _owned: owned, pointers })
        }
    }

    pub(super) fn start(command: &Command, streams: [OwnedFd; 3], kept: Option<OwnedFd>) -> io::Result<Pid> {
        let environment = environment(command);
        let program = find(command.get_program(), environment.get(OsStr::new("PATH")).map(OsString::as_os_str))?;
        let program = cstring(program.as_os_str())?;
        let arguments = std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_owned);
        let arguments = Strings::of(arguments)?;
        let environment = Strings::of(environment.into_iter().map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            entry
        }))?;
        let folder = command.get_current_dir().map(|folder| cstring(folder.as_os_str())).transpose()?;
        let mut actions = Actions::new()?;
        if let Some(folder) = &folder {
            actions.change_folder(folder)?;
        }
        for (target, stream) in (0..).zip(&streams) {
            actions.duplicate(stream.as_raw_fd(), target)?;
        }
        if let Some(kept) = &kept {
            // Onto itself: then it is not closed when the program starts.
            actions.duplicate(kept.as_raw_fd(), kept.as_raw_fd())?;
        }
        let attributes = Attributes::new()?;
        let mut pid = 0;
        // SAFETY: every pointer is to a value that lives to the end of this function, both lists end with a null pointer,
        // and the child shares nothing with us once the call has returned.
        check(unsafe {
            libc::posix_spawn(
                &raw mut pid,
                program.as_ptr(),
                &raw const actions.0,
                &raw const attributes.0,
                arguments.pointers.as_ptr(),
                environment.pointers.as_ptr(),
            )
        })?;
        Pid::from_raw(pid).ok_or_else(|| io::Error::other("the system started a process without a number"))
    }

    /// What the child gets: our variables with the command's changes.
    fn environment(command: &Command) -> BTreeMap<OsString, OsString> {
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => environment.insert(name.to_owned(), value.to_owned()),
                None => environment.remove(name),
            };
        }
        environment
    }

    /// Where the program is: the first one of that name in the child's `PATH` that may be run.
    fn find(program: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
        if program.as_bytes().contains(&b'/') {
            return Ok(PathBuf::from(program));
        }
        let runs = |file: &PathBuf| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
        let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        let found = std::env::split_paths(path).map(|folder| match folder.as_os_str().is_empty() {
            true => Path::new(".").join(program),
            false => folder.join(program),
        });
        { found }.find(runs).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn cstring(text: &OsStr) -> io::Result<CString> {
        let refused = || io::Error::new(io::ErrorKind::InvalidInput, "a zero byte cannot be handed to a program");
        // What the library's `Command` puts in the place of a text with a zero byte.
        if text == "<string-with-nul>" {
            return Err(refused());
        }
        CString::new(text.as_bytes()).map_err(|_| refused())
    }

    /// The functions of `posix_spawn` return the error.
    fn check(code: c_int) -> io::Result<()> {
        match code {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    struct Actions(libc::posix_spawn_file_actions_t);

    impl Actions {
        fn new() -> io::Result<Actions> {
            let mut actions = MaybeUninit::uninit();
            // SAFETY: the call initialises the value when it succeeds.
            unsafe {
                check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
                Ok(Actions(actions.assume_init()))
            }
        }

        fn change_folder(&mut self, folder: &CString) -> io::Result<()> {
            // SAFETY: both are valid; the path is copied.
            check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&raw mut self.0, folder.as_ptr()) })
        }

        fn duplicate(&mut self, from: RawFd, to: RawFd) -> io::Result<()> {
            // SAFETY: only numbers are stored.
            check(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, from, to) })
        }
    }

    impl Drop for Actions {
        fn drop(&mut self) {
            // SAFETY: initialised, and not used again.
            unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
        }
    }

    struct Attributes(libc::posix_spawnattr_t);

    impl Attributes {
        /// A session of its own, no signal blocked, and those that we handle or ignore as they are usual.
        fn new() -> io::Result<Attributes> {
            let mut attributes = MaybeUninit::uninit();
            // SAFETY: the first call initialises the value when it succeeds; the sets are filled before they are read.
            unsafe {
                check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
                let mut attributes = Attributes(attributes.assume_init());
                let mut set = MaybeUninit::<libc::sigset_t>::uninit();
                libc::sigemptyset(set.as_mut_ptr());
                check(libc::posix_spawnattr_setsigmask(&raw mut attributes.0, set.as_ptr()))?;
                libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
                check(libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, set.as_ptr()))?;
                let flags = libc::POSIX_SPAWN_SETSID as c_int
                    | libc::POSIX_SPAWN_SETSIGMASK as c_int
                    | libc::POSIX_SPAWN_SETSIGDEF as c_int;
                check(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags as libc::c_short))?;
                Ok(attributes)
            }
        }
    }

    impl Drop for Attributes {
        fn drop(&mut self) {
            // SAFETY: initialised, and not used again.
            unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn start(command: &Command, streams: [OwnedFd; 3], kept: Option<OwnedFd>) -> io::Result<Pid> {
    use std::os::unix::process::CommandExt;

    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        copy.current_dir(folder);
    }
    let [stdin, stdout, stderr] = streams;
    copy.stdin(stdin).stdout(stdout).stderr(stderr);
    // SAFETY: both calls are async-signal-safe and touch no memory; the descriptor is open in the child as it is here.
    unsafe {
        copy.pre_exec(move || {
            if let Some(kept) = &kept {
                rustix::io::fcntl_setfd(kept, rustix::io::FdFlags::empty())?;
            }
            rustix::process::setsid()?;
            Ok(())
        });
    }
    let child = copy.spawn()?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("a process without a number"))
}
