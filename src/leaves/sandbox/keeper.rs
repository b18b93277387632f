//! Keeps one command: starts it under its policy, tells how it ended, and ends everything that it started. Whatever that does,
//! it stays below the keeper, to which the kernel hands the orphans.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use super::confine::Confinement;
use super::helper::{Signals, name};
use super::wire::{self, Reply, Request};
use crate::stdx::process::descendants;
use crate::stdx::process::start::{Bonds, Ends, start};

/// The byte that asks for the end of the command.
pub(super) const END: u8 = b'e';

/// How long a process may take after SIGTERM.
const GRACE: Duration = Duration::from_millis(50);
/// How long what does not die is killed again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command that comes on the channel, until it and all that it started is gone.
pub(super) fn keep(channel: OwnedFd, signals: &Signals, scratch: Option<&Path>) {
    // The setting is not inherited.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    name(c"sbx-keeper");
    match begin(&channel, scratch) {
        Ok(Some(root)) => {
            let mut command = Command { channel, root, running: true };
            let began = command.say(&Reply::Started(root.as_raw_nonzero().get().cast_unsigned()));
            let asked = began.is_ok() && command.watch(signals);
            command.end(if asked { GRACE } else { Duration::ZERO });
        }
        // The other end is gone already.
        Ok(None) => {}
        Err(error) => {
            let _ = say(&channel, &Reply::failed(&error));
        }
    }
}

/// Reads the request and starts the command.
fn begin(channel: &OwnedFd, scratch: Option<&Path>) -> io::Result<Option<Pid>> {
    let (mut read, mut streams) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 64 * 1024];
    let request = loop {
        let (count, descriptors) = wire::receive(channel.as_fd(), &mut buffer)?;
        if count == 0 {
            return Ok(None);
        }
        read.extend_from_slice(&buffer[..count]);
        streams.extend(descriptors);
        if let Some(request) = wire::take::<Request>(&mut read)? {
            break request;
        }
    };
    let [stdin, stdout, stderr, rest @ ..] = streams.as_slice() else {
        return Err(io::Error::other("a command without streams"));
    };
    let kept = rest.first().map(AsRawFd::as_raw_fd).zip(request.kept);
    let ends = Ends { streams: [stdin, stdout, stderr].map(AsRawFd::as_raw_fd), kept };
    let mut program = request.program()?;
    let confinement = Confinement::of(&request.policy, scratch)?;
    if let Some(confinement) = &confinement {
        confinement.set_up(&mut program)?;
    }
    let confined = confinement.as_ref().map(Confinement::prepared);
    start(&program, ends, Bonds { with_us: true, mark: None, confined }).map(Some)
}

struct Command {
    channel: OwnedFd,
    root: Pid,
    running: bool,
}

impl Command {
    /// Waits until all is over or the end is asked for; whether it was asked for politely.
    fn watch(&mut self, signals: &Signals) -> bool {
        loop {
            if !self.reap() && !self.running {
                return true;
            }
            let mut ready = [PollFd::new(&self.channel, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return false,
                Ok(_) => {}
            }
            let said = !ready[0].revents().is_empty();
            if !ready[1].revents().is_empty() && signals.drain() {
                return true;
            }
            if said {
                let mut byte = [0];
                return matches!(wire::receive(self.channel.as_fd(), &mut byte), Ok((1, _)) if byte[0] == END);
            }
        }
    }

    /// Takes the status of whatever ended, and tells that of the command. Whether children are left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.root && self.running => {
                    self.running = false;
                    let _ = self.say(&Reply::Ended(status.as_raw()));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Ends everything that is left: SIGTERM, up to the grace, SIGKILL.
    fn end(&mut self, grace: Duration) {
        let start = Instant::now();
        if !grace.is_zero() && self.reap() {
            signal_all(Signal::TERM);
            while start.elapsed() < grace && self.reap() {
                pause(Duration::from_millis(1));
            }
        }
        while self.reap() && start.elapsed() < PATIENCE {
            // What is left and may not be killed is another user's, and not ours to wait for.
            if signal_all(Signal::KILL) == 0 && !self.reap_soon() {
                return;
            }
            pause(Duration::from_micros(200));
        }
    }

    /// Whether what is dying came to us meanwhile.
    fn reap_soon(&mut self) -> bool {
        pause(Duration::from_millis(1));
        self.reap() && signal_all(Signal::KILL) > 0
    }

    fn say(&self, reply: &Reply) -> io::Result<()> {
        say(&self.channel, reply)
    }
}

/// Sends a signal to everything below us; how many took it.
fn signal_all(signal: Signal) -> usize {
    descendants(|_| false).into_iter().filter(|pid| kill_process(*pid, signal).is_ok()).count()
}

fn pause(time: Duration) {
    let _ = poll(&mut [], Timespec::try_from(time).ok().as_ref());
}

fn say(channel: &OwnedFd, reply: &Reply) -> io::Result<()> {
    let bytes = wire::message(reply)?;
    let mut sent = 0;
    while sent < bytes.len() {
        sent += wire::send(channel.as_fd(), &bytes[sent..], &[])?;
    }
    Ok(())
}
