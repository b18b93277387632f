//! Our side of the helper: starts it when it is first needed, hands it commands, and hears how they end.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

use super::level::Found;
use super::{Effect, Policy, PutBack};
use crate::stdx::process::{self, Captured, Run, Streams, Unconfined};

/// Why nothing is confined where there is no helper.
const NO_HELPER: &str = match cfg!(target_os = "linux") {
    true => "the sandbox is turned off: set sandbox.enabled to true",
    false => "cocode confines commands on Linux only",
};

/// Runs commands under a policy. Its clones share one helper, which ends with the last of them and with this process.
#[derive(Debug, Clone)]
pub struct Sandbox {
    way: Way,
    pub(super) found: Found,
    /// Where nothing is confined: who brings the terminal back all the same.
    #[cfg(target_os = "linux")]
    watcher: Option<Arc<below::Helper>>,
}

#[derive(Debug, Clone)]
enum Way {
    /// As our own children, which nothing confines.
    Direct,
    #[cfg(target_os = "linux")]
    Helper(Arc<below::Helper>),
}

impl Sandbox {
    /// Commands run below a helper: the program at the path, run again. `None`: they are our own children.
    pub fn new(program: Option<PathBuf>) -> Sandbox {
        #[cfg(target_os = "linux")]
        if let Some(program) = program {
            let way = Way::Helper(Arc::new(below::Helper::new(program)));
            return Sandbox { way, ..Sandbox::off() };
        }
        let _: (Option<PathBuf>, Option<Arc<()>>) = (program, None);
        Sandbox::off()
    }

    /// The one of this program: its helper is this program again, whatever becomes of the file meanwhile.
    pub fn of_this_program(enabled: bool) -> Sandbox {
        let program = || PathBuf::from("/proc/self/exe");
        match cfg!(target_os = "linux") && enabled {
            true => Sandbox::new(Some(program())),
            false => Sandbox {
                #[cfg(target_os = "linux")]
                watcher: Some(Arc::new(below::Helper::new(program()))),
                ..Sandbox::off()
            },
        }
    }

    /// Whether there is a helper that could confine a command.
    pub(super) fn helps(&self) -> bool {
        !matches!(self.way, Way::Direct)
    }

    /// Without a helper: nothing is confined.
    pub fn off() -> Sandbox {
        Sandbox {
            way: Way::Direct,
            found: Found::default(),
            #[cfg(target_os = "linux")]
            watcher: None,
        }
    }

    /// Has the helper bring a terminal back if this process is killed while it holds it: the terminal, and the memory of how.
    pub fn watch_terminal(&self, shared: (OwnedFd, OwnedFd)) {
        #[cfg(target_os = "linux")]
        match (&self.way, &self.watcher) {
            (Way::Helper(helper), _) | (Way::Direct, Some(helper)) => helper.watch(shared),
            (Way::Direct, None) => {}
        }
        #[cfg(not(target_os = "linux"))]
        drop(shared);
    }

    /// Starts a command in a session of its own, as `process::Running::spawn`, under a policy.
    ///
    /// # Errors
    /// What the system says: no such program, no such folder, arguments too long. Unsupported: the policy cannot be held
    /// here. A command that a policy confines never runs without it.
    pub async fn spawn(&self, command: &Command, streams: Streams, policy: &Policy) -> io::Result<Running> {
        match &self.way {
            #[cfg(target_os = "linux")]
            Way::Helper(helper) => match helper.spawn(command.as_std(), streams, policy).await {
                Ok(below) => Ok(Running(Kind::Below(below))),
                Err(below::Failure::Command(error)) => Err(error),
                // Nothing was to be confined: then it can do without the helper.
                Err(below::Failure::Helper(error, Some(streams))) if policy.is_free() && policy.guard.is_empty() => {
                    tracing::warn!(%error, "the sandbox helper does not start");
                    process::Running::spawn(command, streams, Unconfined::Free).map(|own| Running(Kind::Own(own)))
                }
                Err(below::Failure::Helper(error, _)) => {
                    Err(io::Error::other(format!("the sandbox helper does not start: {error}")))
                }
            },
            Way::Direct if policy.is_free() => {
                process::Running::spawn(command, streams, Unconfined::Free).map(|own| Running(Kind::Own(own)))
            }
            Way::Direct => Err(io::Error::new(io::ErrorKind::Unsupported, NO_HELPER)),
        }
    }

    /// Runs a command to its end under a policy, as `process::run_captured`.
    ///
    /// # Errors
    /// Only when the command cannot be started; how it ended is in the answer.
    pub async fn run_captured(
        &self,
        command: Command,
        policy: &Policy,
        input: &[u8],
        timeout: Duration,
        cap: usize,
    ) -> io::Result<Captured> {
        let begin = |streams| self.spawn(&command, streams, policy);
        process::capture(begin, input, timeout, cap).await
    }
}

/// What a command reports while it runs.
#[derive(Debug)]
pub enum Happening {
    Effect(Effect),
    /// There is no room to save what it is about to change there. It waits for `Running::unrecorded`, or its end.
    Full(PathBuf),
    Ended(ExitStatus),
}

/// A command that runs. Dropping it kills everything that it started.
#[derive(Debug)]
pub struct Running(Kind);

impl Running {
    /// Waits for what comes next. May be dropped and called again.
    ///
    /// # Errors
    /// Nobody knows how it ended.
    pub async fn next(&mut self) -> io::Result<Happening> {
        match &mut self.0 {
            Kind::Own(own) => own.wait().await.map(Happening::Ended),
            #[cfg(target_os = "linux")]
            Kind::Below(below) => below.happening().await,
        }
    }

    /// Ends it with all that it has started, and says what was put back then.
    pub async fn finish(self) -> PutBack {
        match self.0 {
            Kind::Own(own) => {
                own.end().await;
                PutBack::default()
            }
            #[cfg(target_os = "linux")]
            Kind::Below(below) => below.end().await.1,
        }
    }

    /// Lets it continue although nothing more of it can be recorded.
    pub fn unrecorded(&self) {
        match &self.0 {
            Kind::Own(_) => {}
            #[cfg(target_os = "linux")]
            Kind::Below(below) => below.unrecorded(),
        }
    }
}

#[derive(Debug)]
enum Kind {
    Own(process::Running),
    #[cfg(target_os = "linux")]
    Below(below::Below),
}

impl Run for Running {
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.0 {
            Kind::Own(own) => own.wait().await,
            #[cfg(target_os = "linux")]
            Kind::Below(_) => loop {
                if let Happening::Ended(status) = self.next().await? {
                    return Ok(status);
                }
            },
        }
    }

    async fn end(self) -> Option<ExitStatus> {
        match self.0 {
            Kind::Own(own) => own.end().await,
            #[cfg(target_os = "linux")]
            Kind::Below(below) => below.end().await.0,
        }
    }
}

#[cfg(target_os = "linux")]
mod below {
    use std::fs::File;
    use std::os::fd::{AsFd, AsRawFd, RawFd};
    use std::os::unix::process::ExitStatusExt;
    use std::sync::{Mutex, PoisonError};

    use tokio::io::Interest;
    use tokio::net::UnixStream;

    use super::*;
    use crate::sandbox::wire::{self, Reply, Request};
    use crate::sandbox::{helper, keeper};
    use crate::stdx::process::start::{Bonds, Ends, Program, start};
    use crate::stdx::process::{Lifeline, pair};

    /// How long the keeper of a command may take to end it.
    const PATIENCE: Duration = Duration::from_secs(8);

    /// Why a command does not run.
    pub(super) enum Failure {
        Command(io::Error),
        /// It was never handed over: its streams come back.
        Helper(io::Error, Option<Streams>),
    }

    /// The helper, from the first command on.
    #[derive(Debug)]
    pub(super) struct Helper {
        program: PathBuf,
        lifeline: Mutex<Option<Lifeline>>,
        /// What every helper is to watch.
        terminal: Mutex<Option<(OwnedFd, OwnedFd)>>,
    }

    impl Helper {
        pub(super) fn new(program: PathBuf) -> Helper {
            Helper { program, lifeline: Mutex::new(None), terminal: Mutex::new(None) }
        }

        pub(super) async fn spawn(
            self: &Arc<Helper>,
            command: &std::process::Command,
            streams: Streams,
            policy: &Policy,
        ) -> Result<Below, Failure> {
            if process::begins_nothing() {
                return Err(Failure::Command(io::Error::other("the program is ending")));
            }
            let program = Program::of(command).map_err(Failure::Command)?;
            let kept = streams.kept.as_ref().map(AsRawFd::as_raw_fd);
            let request = wire::message(&Request::new(&program, kept, policy.clone()));
            let request = request.map_err(Failure::Command)?;
            let channel = match self.open() {
                Ok(channel) => channel,
                Err(error) => return Err(Failure::Helper(error, Some(streams))),
            };
            let mut below = Below { channel, read: Vec::new(), status: None, pid: None, _helper: self.clone() };
            below.ask(&request, streams).await.map_err(Failure::Command)?;
            match below.next().await.map_err(Failure::Command)? {
                Some(Reply::Started(pid)) => {
                    below.pid = Some(pid);
                    // The code that ends them all may have looked a moment too early; dropping it ends it.
                    match process::begins_nothing() {
                        true => Err(Failure::Command(io::Error::other("the program is ending"))),
                        false => Ok(below),
                    }
                }
                Some(Reply::Failed { os, text }) => {
                    let error = os.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error);
                    Err(Failure::Command(error))
                }
                _ => Err(Failure::Helper(io::Error::other("it ended before it said anything"), None)),
            }
        }

        /// Starts the helper, if it does not run, and has it watch the terminal.
        pub(super) fn watch(&self, shared: (OwnedFd, OwnedFd)) {
            *self.terminal.lock().unwrap_or_else(PoisonError::into_inner) = Some(shared);
            let mut lifeline = self.lifeline.lock().unwrap_or_else(PoisonError::into_inner);
            let watched = match lifeline.as_ref() {
                Some(lifeline) => self.show(lifeline),
                None => self.begin().map(|begun| *lifeline = Some(begun)),
            };
            if let Err(error) = watched {
                tracing::warn!(%error, "nobody brings the terminal back if this process is killed");
            }
        }

        fn begin(&self) -> io::Result<Lifeline> {
            let lifeline = begin(&self.program)?;
            self.show(&lifeline)?;
            Ok(lifeline)
        }

        /// Shows the helper the terminal, if there is one.
        fn show(&self, lifeline: &Lifeline) -> io::Result<()> {
            let terminal = self.terminal.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((tty, way_back)) = &*terminal else { return Ok(()) };
            let beside = [tty.as_raw_fd(), way_back.as_raw_fd()];
            wire::send(lifeline.socket(), &[helper::TERMINAL], &beside).map(|_| ())
        }

        /// A channel to a new keeper. A helper that was killed meanwhile is started again, once.
        fn open(&self) -> io::Result<UnixStream> {
            let mut lifeline = self.lifeline.lock().unwrap_or_else(PoisonError::into_inner);
            let (ours, theirs) = pair(libc::SOCK_STREAM)?;
            let ask = |lifeline: &Lifeline| wire::send(lifeline.socket(), &[helper::COMMAND], &[theirs.as_raw_fd()]);
            if lifeline.as_ref().is_none_or(|lifeline| ask(lifeline).is_err()) {
                // The old one first: it may have to be waited for.
                *lifeline = None;
                ask(lifeline.insert(self.begin()?))?;
            }
            let ours = std::os::unix::net::UnixStream::from(ours);
            ours.set_nonblocking(true)?;
            UnixStream::from_std(ours)
        }
    }

    /// Starts the helper.
    fn begin(program: &std::path::Path) -> io::Result<Lifeline> {
        let (ours, theirs) = pair(libc::SOCK_SEQPACKET)?;
        let mut command = std::process::Command::new(program);
        command.args([helper::WORD, &helper::SOCKET.to_string()]);
        let mut program = Program::of(&command)?;
        // It knows nothing that we do, but where temporary files go.
        program.environment.retain(|entry| entry.as_bytes().starts_with(b"TMPDIR="));
        if let Some(name) = program.arguments.first_mut() {
            *name = c"cocode".to_owned();
        }
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let ends = Ends { streams: [null.as_raw_fd(); 3], kept: Some((theirs.as_raw_fd(), helper::SOCKET)) };
        let pid = start(&program, ends, Bonds { with_us: false, mark: None, confined: None, joined: None })?;
        Ok(Lifeline::new(pid, ours))
    }

    /// A command below the helper.
    #[derive(Debug)]
    pub(super) struct Below {
        channel: UnixStream,
        /// What was read and is not a whole reply yet.
        read: Vec<u8>,
        status: Option<ExitStatus>,
        pid: Option<u32>,
        /// Lives as long as its commands.
        _helper: Arc<Helper>,
    }

    impl Below {
        async fn ask(&self, request: &[u8], streams: Streams) -> io::Result<()> {
            let stdin: OwnedFd = match streams.stdin {
                Some(stdin) => stdin,
                None => File::open("/dev/null")?.into(),
            };
            let all = [Some(&stdin), Some(&streams.stdout), Some(&streams.stderr), streams.kept.as_ref()];
            let all: Vec<RawFd> = all.into_iter().flatten().map(AsRawFd::as_raw_fd).collect();
            let mut sent = 0;
            while sent < request.len() {
                self.channel.writable().await?;
                let beside = if sent == 0 { all.as_slice() } else { &[] };
                let send = || wire::send(self.channel.as_fd(), &request[sent..], beside);
                match self.channel.try_io(Interest::WRITABLE, send) {
                    Ok(count) => sent += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }

        /// The next reply; none when the keeper is gone. May be dropped and called again.
        async fn next(&mut self) -> io::Result<Option<Reply>> {
            loop {
                if let Some(reply) = wire::take(&mut self.read)? {
                    return Ok(Some(reply));
                }
                self.channel.readable().await?;
                match self.channel.try_read_buf(&mut self.read) {
                    Ok(0) => return Ok(None),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
        }

        pub(super) async fn happening(&mut self) -> io::Result<Happening> {
            if let Some(status) = self.status {
                return Ok(Happening::Ended(status));
            }
            loop {
                match self.next().await? {
                    Some(Reply::Ended(status)) => {
                        let status = ExitStatus::from_raw(status);
                        self.status = Some(status);
                        return Ok(Happening::Ended(status));
                    }
                    Some(Reply::Effect(effect)) => return Ok(Happening::Effect(effect)),
                    Some(Reply::Full(path)) => return Ok(Happening::Full(path)),
                    Some(Reply::Started(_) | Reply::Failed { .. } | Reply::PutBack(_)) => {}
                    None => return Err(io::Error::other("its keeper was killed")),
                }
            }
        }

        pub(super) fn unrecorded(&self) {
            // A keeper that is gone has nobody who waits.
            let _ = self.channel.try_write(&[keeper::UNRECORDED]);
        }

        pub(super) async fn end(mut self) -> (Option<ExitStatus>, PutBack) {
            // Gone already where nothing is left.
            let _ = self.channel.try_write(&[keeper::END]);
            let mut put_back = PutBack::default();
            let gone = async {
                while let Ok(Some(reply)) = self.next().await {
                    match reply {
                        Reply::Ended(status) => self.status = Some(ExitStatus::from_raw(status)),
                        Reply::PutBack(all) => put_back = all,
                        _ => {}
                    }
                }
            };
            if tokio::time::timeout(PATIENCE, gone).await.is_err() {
                tracing::warn!(pid = self.pid, "a command does not end");
            }
            (self.status, put_back)
        }
    }
}
