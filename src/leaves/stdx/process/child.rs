//! Starts a program in a session of its own without copying this process: a copy of a large one costs more than all else
//! about a short command.
//!
//! On Linux the child borrows our memory until it runs its program, as in `posix_spawn`, which itself can neither set the
//! limit that marks a tree nor tie the child's life to ours. Elsewhere the library's own way is used.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, WaitOptions, kill_process, waitpid};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::mark::{self, Mark};

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

/// A child process. It must be ended before it is dropped; see `Running`.
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
    pub(super) fn spawn(command: &Command, streams: Streams, mark: &Mark) -> io::Result<Child> {
        // Before the start, so that no end is missed.
        let ended = signal(SignalKind::child())?;
        let stdin = match streams.stdin {
            Some(stdin) => stdin,
            None => File::open("/dev/null")?.into(),
        };
        let pid = start(command, &[stdin, streams.stdout, streams.stderr], streams.kept.as_ref(), mark)?;
        mark.began(pid);
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
        let mut woken = false;
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            if woken {
                // It was another one, perhaps an orphan that was handed to us.
                mark::reap_orphans();
            }
            self.ended.recv().await;
            woken = true;
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
    use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, RawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::ptr;

    use super::*;
    use crate::stdx::programs;

    /// Size of the child's stack until it runs its program, in 16 bytes: some calls deep, no recursion.
    const STACK: usize = 4096;

    /// A program as the system wants it, with what its pointers point to.
    struct Strings {
        _owned: Vec<CString>,
        pointers: Vec<*const c_char>,
    }

    impl Strings {
        fn of(items: impl Iterator<Item = OsString>) -> io::Result<Strings> {
            let owned: Vec<CString> = items.map(|item| cstring(&item)).collect::<io::Result<_>>()?;
            let pointers = owned.iter().map(|item| item.as_ptr()).chain([ptr::null()]).collect();
            Ok(Strings { _owned: owned, pointers })
        }
    }

    /// What the child does before it runs its program. Made before it starts: it must not allocate.
    struct Plan<'a> {
        program: &'a CString,
        arguments: &'a Strings,
        environment: &'a Strings,
        folder: Option<&'a CString>,
        streams: [RawFd; 3],
        kept: Option<RawFd>,
        mark: u64,
        /// Why the program does not run.
        error: c_int,
    }

    pub(super) fn start(
        command: &Command,
        streams: &[OwnedFd; 3],
        kept: Option<&OwnedFd>,
        mark: &Mark,
    ) -> io::Result<Pid> {
        let environment = environment(command);
        let path = environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let program = programs::find(command.get_program(), path)?;
        let arguments = std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_owned);
        let environment = environment.into_iter().map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            entry
        });
        let (program, arguments) = (cstring(program.as_os_str())?, Strings::of(arguments)?);
        let environment = Strings::of(environment)?;
        let folder = command.get_current_dir().map(|folder| cstring(folder.as_os_str())).transpose()?;
        let mut plan = Plan {
            program: &program,
            arguments: &arguments,
            environment: &environment,
            folder: folder.as_ref(),
            streams: streams.each_ref().map(AsRawFd::as_raw_fd),
            kept: kept.map(AsRawFd::as_raw_fd),
            mark: mark.limit(),
            error: 0,
        };
        let mut stack = Vec::<u128>::with_capacity(STACK);
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack and the plan outlive the call, which returns when the child has its own memory or is gone. Every
        // signal is blocked meanwhile, so that no handler of ours runs in the child, in our memory.
        let pid = unsafe {
            let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::uninit());
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            let top = stack.as_mut_ptr().add(STACK).cast::<c_void>();
            let pid = libc::clone(child, top, flags, (&raw mut plan).cast());
            let started = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
            started
        }?;
        let pid =
            Pid::from_raw(pid).ok_or_else(|| io::Error::other("the system started a process without a number"))?;
        // SAFETY: the child has written it, if anybody, and the compiler knows nothing of the child.
        match unsafe { ptr::read_volatile(&raw const plan.error) } {
            0 => Ok(pid),
            error => {
                let _ = waitpid(Some(pid), WaitOptions::empty());
                Err(io::Error::from_raw_os_error(error))
            }
        }
    }

    /// What runs in the child, on our memory, while the thread that started it is suspended.
    extern "C" fn child(plan: *mut c_void) -> c_int {
        // SAFETY: the starting thread passes its plan and waits. Only calls follow that are allowed after a fork.
        unsafe {
            let plan = plan.cast::<Plan<'_>>();
            let error = become_program(&*plan);
            ptr::write_volatile(&raw mut (*plan).error, error);
            libc::_exit(127)
        }
    }

    /// Runs the program; returns why that failed.
    ///
    /// # Safety
    /// Only in a child, with all signals blocked.
    unsafe fn become_program(plan: &Plan<'_>) -> c_int {
        macro_rules! done {
            ($call:expr) => {
                if $call < 0 {
                    return *libc::__errno_location();
                }
            };
        }
        // SAFETY: pointers are to what the plan owns; both lists end with a null pointer.
        unsafe {
            usual_signals();
            done!(libc::setsid());
            // It ends with the thread that started it, so at the latest with us, however we end.
            done!(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL));
            let mark = libc::rlimit { rlim_cur: plan.mark as libc::rlim_t, rlim_max: plan.mark as libc::rlim_t };
            done!(libc::setrlimit(libc::RLIMIT_LOCKS, &raw const mark));
            if let Some(folder) = plan.folder {
                done!(libc::chdir(folder.as_ptr()));
            }
            for (target, stream) in (0..).zip(plan.streams) {
                done!(libc::dup2(stream, target));
            }
            if let Some(kept) = plan.kept {
                done!(libc::fcntl(kept, libc::F_SETFD, 0));
            }
            let mut none = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
            libc::execve(plan.program.as_ptr(), plan.arguments.pointers.as_ptr(), plan.environment.pointers.as_ptr());
            *libc::__errno_location()
        }
    }

    /// Takes our handlers away, and lets a closed pipe end the program, which we ignore.
    ///
    /// # Safety
    /// Only in a child.
    unsafe fn usual_signals() {
        for signal in 1..=64 {
            // SAFETY: both values live through the calls; numbers that are not a signal are refused.
            unsafe {
                let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                if libc::sigaction(signal, ptr::null(), &raw mut action) != 0 || action.sa_sigaction == libc::SIG_DFL {
                    continue;
                }
                if action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE {
                    action.sa_sigaction = libc::SIG_DFL;
                    action.sa_flags = 0;
                    libc::sigaction(signal, &raw const action, ptr::null_mut());
                }
            }
        }
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

    fn cstring(text: &OsStr) -> io::Result<CString> {
        let refused = || io::Error::new(io::ErrorKind::InvalidInput, "a zero byte cannot be handed to a program");
        // What the library's `Command` puts in the place of a text with a zero byte.
        if text == "<string-with-nul>" {
            return Err(refused());
        }
        CString::new(text.as_bytes()).map_err(|_| refused())
    }
}

#[cfg(not(target_os = "linux"))]
fn start(command: &Command, streams: &[OwnedFd; 3], kept: Option<&OwnedFd>, _: &Mark) -> io::Result<Pid> {
    use std::os::unix::process::CommandExt;

    let set = command.get_envs().find(|(name, _)| *name == "PATH").map(|(_, value)| value.map(ToOwned::to_owned));
    let path = set.unwrap_or_else(|| std::env::var_os("PATH"));
    let mut copy = Command::new(crate::stdx::programs::find(command.get_program(), path.as_deref())?);
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
    let [stdin, stdout, stderr] = streams.each_ref().map(OwnedFd::try_clone);
    let (stdin, stdout, stderr) = (stdin?, stdout?, stderr?);
    let kept = kept.map(std::os::fd::AsRawFd::as_raw_fd);
    copy.stdin(stdin).stdout(stdout).stderr(stderr);
    // SAFETY: both calls are async-signal-safe and touch no memory; the descriptor is open in the child as it is here.
    unsafe {
        copy.pre_exec(move || {
            if let Some(kept) = kept {
                let kept = std::os::fd::BorrowedFd::borrow_raw(kept);
                rustix::io::fcntl_setfd(kept, rustix::io::FdFlags::empty())?;
            }
            rustix::process::setsid()?;
            Ok(())
        });
    }
    let child = copy.spawn()?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::Error::other("a process without a number"))
}
