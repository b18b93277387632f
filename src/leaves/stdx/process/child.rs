//! Starts a program in a session of its own without copying this process: a copy of a large one costs more than all else
//! about a short command.
//!
//! `start` does it on Linux; elsewhere the library's own way is used.

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
fn start(command: &Command, streams: &[OwnedFd; 3], kept: Option<&OwnedFd>, mark: &Mark) -> io::Result<Pid> {
    use std::os::fd::AsRawFd;

    use super::start::{Bonds, Ends, Program, start};

    let kept = kept.map(|kept| (kept.as_raw_fd(), kept.as_raw_fd()));
    let ends = Ends { streams: streams.each_ref().map(AsRawFd::as_raw_fd), kept };
    start(&Program::of(command)?, ends, Bonds { with_us: true, mark: Some(mark.limit()), confined: None, joined: None })
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
