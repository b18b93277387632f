//! Keeps one command: starts it under its policy, tells how it ended, and ends everything that it started. Whatever that does,
//! it stays below the keeper, to which the kernel hands the orphans.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use super::confine::Confinement;
use super::helper::{Signals, name};
use super::kept::Kept;
use super::record::{Full, Recording, Watcher};
use super::wire::{self, Reply, Request};
use super::{Effect, Policy};
use crate::stdx::process::descendants;
use crate::stdx::process::start::{Bonds, Ends, Join, start};

/// The byte that asks for the end of the command.
pub(super) const END: u8 = b'e';
/// The byte that lets it continue although nothing of it can be recorded anymore.
pub(super) const UNRECORDED: u8 = b'u';

/// How long a process may take after SIGTERM.
const GRACE: Duration = Duration::from_millis(50);
/// How long what does not die is killed again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command that comes on the channel, until it and all that it started is gone.
pub(super) fn keep(channel: OwnedFd, signals: &Signals, scratch: Option<&Path>) {
    // The setting is not inherited.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    name(c"sbx-keeper");
    let channel = Channel::new(channel);
    match begin(&channel, scratch) {
        Ok(Some(mut command)) => {
            let began = channel.say(&Reply::Started(command.root.as_raw_nonzero().get().cast_unsigned()));
            let asked = began.is_ok() && command.watch(signals);
            let kept = command.kept.take();
            command.end(if asked { GRACE } else { Duration::ZERO });
            // Also where nobody hears of it anymore.
            let _ = kept.map(|kept| channel.say(&Reply::PutBack(kept.put_back())));
        }
        // The other end is gone already.
        Ok(None) => {}
        Err(error) => {
            let _ = channel.say(&Reply::failed(&error));
        }
    }
}

/// Reads the request and starts the command.
fn begin(channel: &Channel, scratch: Option<&Path>) -> io::Result<Option<Command>> {
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
    let kept = match request.policy.put_back.as_slice() {
        [] => None,
        paths => Some(Kept::save(paths).map_err(io::Error::other)?),
    };
    let recording = recording(&request.policy)?;
    let joining = recording.as_ref().map(Recording::joining);
    let joined = joining.as_ref().map(|joining| joining as &dyn Join);
    let root = start(&program, ends, Bonds { with_us: true, mark: None, confined, joined })?;
    let (full, allowed) = mpsc::channel();
    let watching = Watching { channel: channel.clone(), allowed };
    let serving = match recording.map(|recording| recording.serve(confined, watching)).transpose() {
        // One that could not join is not recorded: its manifest never begins, and so undo knows.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
        Err(error) => {
            // Nobody answers its calls.
            let _ = kill_process(root, Signal::KILL);
            return Err(io::Error::other(format!("what it changes cannot be recorded for undo: {error}")));
        }
        Ok(serving) => serving,
    };
    Ok(Some(Command { channel: channel.clone(), root, running: true, serving, full: Some(full), kept }))
}

/// Records what the command changes and protects what it must not; none where neither is wanted, or the kernel cannot.
fn recording(policy: &Policy) -> io::Result<Option<Recording>> {
    if policy.record.is_none() && policy.protected.is_empty() && policy.guard.is_empty() {
        return Ok(None);
    }
    match Recording::new(policy.record.as_ref(), policy.protected.clone(), policy.guard.clone()) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        // The one who wants the command decides what becomes of it then.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(error),
        Err(error) => Err(io::Error::other(format!("what it changes cannot be recorded for undo: {error}"))),
        recording => recording.map(Some),
    }
}

/// The way to the one who wants the command. Its threads take turns.
#[derive(Debug, Clone)]
struct Channel(Arc<(OwnedFd, Mutex<()>)>);

impl Channel {
    fn new(socket: OwnedFd) -> Channel {
        Channel(Arc::new((socket, Mutex::new(()))))
    }

    fn say(&self, reply: &Reply) -> io::Result<()> {
        let (socket, turn) = &*self.0;
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = wire::message(reply)?;
        let mut sent = 0;
        while sent < bytes.len() {
            sent += wire::send(socket.as_fd(), &bytes[sent..], &[])?;
        }
        Ok(())
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

/// Tells what comes up while the command is recorded.
struct Watching {
    channel: Channel,
    /// Something comes where the command may continue unrecorded.
    allowed: Receiver<()>,
}

impl Watcher for Watching {
    fn tell(&mut self, effect: Effect) {
        let _ = self.channel.say(&Reply::Effect(effect));
    }

    fn full(&mut self, path: &Path) -> Full {
        match self.channel.say(&Reply::Full(path.to_owned())).is_ok() && self.allowed.recv().is_ok() {
            true => Full::Unrecorded,
            false => Full::Refuse,
        }
    }

    fn gone(&self) -> bool {
        let mut other = [PollFd::new(&self.channel, PollFlags::empty())];
        poll(&mut other, Some(&Timespec::default())).is_ok() && other[0].revents().contains(PollFlags::HUP)
    }
}

struct Command {
    channel: Channel,
    root: Pid,
    running: bool,
    serving: Option<JoinHandle<()>>,
    full: Option<Sender<()>>,
    kept: Option<Kept>,
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
            let mut byte = [0];
            match said.then(|| wire::receive(self.channel.as_fd(), &mut byte)) {
                None => {}
                Some(Ok((1, _))) if byte[0] == UNRECORDED => {
                    let _ = self.full.as_ref().map(|full| full.send(()));
                }
                Some(received) => return matches!(received, Ok((1, _)) if byte[0] == END),
            }
        }
    }

    /// Takes the status of whatever ended, and tells that of the command. Whether children are left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.root && self.running => {
                    self.running = false;
                    let _ = self.channel.say(&Reply::Ended(status.as_raw()));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Ends everything that is left: SIGTERM, up to the grace, SIGKILL. What was recorded is whole then.
    fn end(mut self, grace: Duration) {
        // A call that waits for an answer gets none anymore.
        self.full = None;
        self.end_all(grace);
        let Some(serving) = self.serving.take() else { return };
        let until = Instant::now() + PATIENCE;
        while !serving.is_finished() && Instant::now() < until {
            pause(Duration::from_micros(50));
        }
        if serving.is_finished() {
            let _ = serving.join();
        }
    }

    fn end_all(&mut self, grace: Duration) {
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
}

/// Sends a signal to everything below us; how many took it.
fn signal_all(signal: Signal) -> usize {
    descendants(|_| false).into_iter().filter(|pid| kill_process(*pid, signal).is_ok()).count()
}

fn pause(time: Duration) {
    let _ = poll(&mut [], Timespec::try_from(time).ok().as_ref());
}
