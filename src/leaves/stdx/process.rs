//! Child processes with everything that they start: a session of their own, and an end that leaves nothing behind.

use std::ffi::OsStr;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::Command;

mod child;
#[cfg(target_os = "linux")]
mod lifeline;
mod mark;
#[cfg(target_os = "linux")]
pub mod start;
mod tree;

pub use child::{Child, Streams};
#[cfg(target_os = "linux")]
pub use lifeline::{Lifeline, OVER, pair};
pub use mark::Guest;
#[cfg(target_os = "linux")]
pub use tree::descendants;
pub use tree::{Tree, end_all};

/// The program is being ended by force.
static ENDING: AtomicBool = AtomicBool::new(false);

/// From now on nothing begins anymore: no process is started, no model asked, no call run. Say it before `end_all`, whose
/// victims other threads wait for.
pub fn begin_nothing() {
    ENDING.store(true, Ordering::SeqCst);
}

pub fn begins_nothing() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// Never completes once nothing may start anymore: a caller that waits ends with the program.
pub async fn may_begin() {
    if begins_nothing() {
        std::future::pending::<()>().await;
    }
}

/// Why a program runs without a policy. Everything else is started through `sandbox`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfined {
    /// Its policy takes nothing away: a person approved it, or a rule of theirs did.
    Free,
    /// A command of the user's settings, or of a folder that they trust, which does what they may: hooks, the status line, a
    /// helper that fetches a key.
    Settings,
    /// The program of the desktop that has the clipboard, when the user pastes: it must reach the display.
    Clipboard,
}

/// A child in its own session. Dropping it kills its whole tree.
#[derive(Debug)]
pub struct Running {
    pub child: Child,
    tree: Tree,
    ended: bool,
}

impl Running {
    /// Starts a command in a session and process group of its own, without a controlling terminal: it can neither read what
    /// the user types nor write over the screen. The command's own streams do not count.
    ///
    /// # Errors
    /// What the system says: no such program, no such folder, arguments too long.
    pub fn spawn(command: &Command, streams: Streams, why: Unconfined) -> io::Result<Running> {
        tracing::trace!(?why, program = ?command.as_std().get_program(), "starts unconfined");
        let ending = || io::Error::other("the program is ending");
        if begins_nothing() {
            return Err(ending());
        }
        tree::adopt_orphans();
        let mark = mark::Mark::next();
        let child = Child::spawn(command.as_std(), streams, &mark)?;
        let tree = Tree::new(child.id(), mark);
        let running = Running { child, tree, ended: false };
        // The code that ends them all may have looked a moment too early; dropping it ends it.
        if begins_nothing() { Err(ending()) } else { Ok(running) }
    }
}

/// A command that runs.
pub trait Run: Send {
    /// Waits for its end. May be dropped and called again.
    ///
    /// # Errors
    /// Nobody knows how it ended.
    fn wait(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + Send;

    /// Ends everything that it started, asking first: SIGTERM, 50 ms, SIGKILL. Returns how the command itself ended, as far as
    /// known.
    fn end(self) -> impl Future<Output = Option<ExitStatus>> + Send;
}

impl Run for Running {
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    async fn end(mut self) -> Option<ExitStatus> {
        self.tree.kill(&mut self.child).await;
        self.ended = true;
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody waits anymore, so there is no time to ask.
            self.tree.kill_now();
            self.child.end_now();
        }
    }
}

/// What a captured command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// None when a signal ended it, or the timeout did.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// One of the outputs was longer than the cap.
    pub truncated: bool,
    pub timed_out: bool,
}

/// Runs a command to its end with `input` on its standard input, and keeps at most `cap` bytes of each output. Its tree is
/// gone when this returns, also when the future is dropped.
///
/// # Errors
/// Only when the command cannot be started; how it ended is in the answer.
pub async fn run_captured(
    command: Command,
    why: Unconfined,
    input: &[u8],
    timeout: Duration,
    cap: usize,
) -> io::Result<Captured> {
    let begin = |streams| std::future::ready(Running::spawn(&command, streams, why));
    capture(begin, input, timeout, cap).await
}

/// The same for a command that somebody else starts on the streams that it is given.
///
/// # Errors
/// Those of `begin`.
pub async fn capture<R: Run, F: Future<Output = io::Result<R>>>(
    begin: impl FnOnce(Streams) -> F,
    input: &[u8],
    timeout: Duration,
    cap: usize,
) -> io::Result<Captured> {
    let (stdout, out_end) = io::pipe()?;
    let (stderr, err_end) = io::pipe()?;
    let fed = if input.is_empty() { None } else { Some(io::pipe()?) };
    let (stdin, feed_end) = fed.map_or((None, None), |(reader, writer)| (Some(reader.into()), Some(writer)));
    let streams = Streams { stdin, stdout: out_end.into(), stderr: err_end.into(), kept: None };
    let deadline = tokio::time::Instant::now() + timeout;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not start in time");
    let mut running = tokio::time::timeout_at(deadline, begin(streams)).await.map_err(late)??;
    let stdin = feed_end.map(|end| pipe::Sender::from_owned_fd(end.into())).transpose()?;
    let stdout = pipe::Receiver::from_owned_fd(stdout.into())?;
    let stderr = pipe::Receiver::from_owned_fd(stderr.into())?;
    let (mut out, mut err) = (Sink::new(cap), Sink::new(cap));
    let (timed_out, status) = {
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input has not failed.
                let _ = stdin.write_all(input).await;
            }
        };
        let all = async { tokio::join!(feed, out.drain(stdout), err.drain(stderr)) };
        let deadline = tokio::time::sleep_until(deadline);
        tokio::pin!(all, deadline);
        let mut open = true;
        let timed_out = loop {
            tokio::select! {
                biased;
                _ = &mut all, if open => open = false,
                // The child decides when it is over, not a grandchild that keeps the pipes.
                _ = running.wait() => break false,
                () = &mut deadline => break true,
            }
        };
        let status = running.end().await;
        if open {
            // Nobody holds the pipes anymore but a process that could not be ended.
            let _ = tokio::time::timeout(Duration::from_secs(1), &mut all).await;
        }
        (timed_out, status)
    };
    Ok(Captured {
        code: if timed_out { None } else { status.and_then(|status| status.code()) },
        truncated: out.over || err.over,
        stdout: out.bytes,
        stderr: err.bytes,
        timed_out,
    })
}

/// Keeps the first bytes of a stream and reads past the rest, so that the writer is not held up.
struct Sink {
    bytes: Vec<u8>,
    cap: usize,
    over: bool,
}

impl Sink {
    fn new(cap: usize) -> Sink {
        Sink { bytes: Vec::new(), cap, over: false }
    }

    async fn drain(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let keep = count.min(self.cap - self.bytes.len());
            self.bytes.extend_from_slice(&buffer[..keep]);
            self.over |= keep < count;
        }
    }
}

/// From now on a write beyond the limit on file sizes fails with an error instead of ending the process. Needs a runtime;
/// children get the usual behavior back.
pub fn outlive_size_limits() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // The handler stays when what listens to it is gone.
        if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
            tracing::warn!(%error, "a limit on file sizes would end the process");
        }
    }
}

/// A `Command` that inherits the environment but for these variables.
pub fn command_without(program: impl AsRef<OsStr>, secrets: &[String]) -> Command {
    let mut command = Command::new(program);
    for name in secrets {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    async fn run(script: &str, input: &[u8], timeout: u64, cap: usize) -> Captured {
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-c", script]);
        run_captured(command, Unconfined::Free, input, Duration::from_millis(timeout), cap).await.unwrap()
    }

    fn captured(code: Option<i32>, stdout: &str, stderr: &str) -> Captured {
        let (stdout, stderr) = (stdout.into(), stderr.into());
        Captured { code, stdout, stderr, truncated: false, timed_out: false }
    }

    #[tokio::test]
    async fn captures() {
        assert_eq!(run("echo out; echo err >&2; exit 3", b"", 60_000, 100).await, captured(Some(3), "out\n", "err\n"));
        assert_eq!(run("cat", b"fed", 60_000, 100).await, captured(Some(0), "fed", ""));
        assert_eq!(run("exit 0", &[b'x'; 300_000], 60_000, 100).await, captured(Some(0), "", ""));
        let long = run("yes | head -c 300000", b"", 60_000, 4).await;
        assert_eq!(long, Captured { truncated: true, ..captured(Some(0), "y\ny\n", "") });
        let slow = run("echo begun; sleep 1000", b"", 4000, 100).await;
        assert_eq!(slow, Captured { timed_out: true, ..captured(None, "begun\n", "") });
        // A child in the background holds the pipe, yet nobody waits for it.
        assert_eq!(run("echo on; sleep 1000 &", b"", 60_000, 100).await, captured(Some(0), "on\n", ""));
    }

    #[tokio::test]
    async fn the_start_counts_as_time() {
        let never = |_| std::future::pending::<io::Result<Running>>();
        let error = capture(never, b"", Duration::from_millis(1), 1).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_child_leads_a_session_without_a_terminal() {
        // Own process, group, session, terminal of the session: fields 1, 5, 6, 7.
        let script = "read -r stat < /proc/$$/stat; set -- $stat; echo $(($1 == $5 && $1 == $6)) $7; : < /dev/tty";
        let got = run(script, b"", 60_000, 1000).await;
        let text = String::from_utf8(got.stdout).unwrap();
        assert_eq!((got.code, text.as_str()), (Some(1), "1 0\n"));
        assert!(String::from_utf8(got.stderr).unwrap().contains("/dev/tty"));
    }

    #[tokio::test]
    async fn the_command_decides_what_the_child_gets() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().canonicalize().unwrap();
        let tool = folder.join("a-tool-of-ours");
        std::fs::write(&tool, "#!/bin/sh\necho \"$PWD|$ONE|${HOME-none}|$*\"; trap | grep -c PIPE").unwrap();
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let captured = |command: Command| run_captured(command, Unconfined::Free, b"", Duration::from_secs(60), 1000);
        let mut command = Command::new("a-tool-of-ours");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        command.args(["x", "y z"]).current_dir(&folder).env("PATH", path).env("ONE", "1").env_remove("HOME");
        let got = captured(command).await.unwrap();
        assert_eq!(String::from_utf8(got.stdout).unwrap(), format!("{}|1|none|x y z\n0\n", folder.display()));

        let error = async |command: Command| captured(command).await.unwrap_err().kind();
        assert_eq!(error(Command::new("a-tool-of-nobody")).await, io::ErrorKind::NotFound);
        let mut command = Command::new("bash");
        command.current_dir(folder.join("nowhere"));
        assert_eq!(error(command).await, io::ErrorKind::NotFound);
        let mut command = Command::new("bash");
        command.arg("x".repeat(3_000_000));
        assert_eq!(error(command).await, io::ErrorKind::ArgumentListTooLong);
        let mut command = Command::new("bash");
        command.arg("a\0b");
        assert_eq!(error(command).await, io::ErrorKind::InvalidInput);
    }

    #[tokio::test]
    async fn files_that_are_open_here_are_closed_there() {
        let (_reader, writer) = io::pipe().unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&writer);
        let got = run(&format!("[ -e /proc/$$/fd/{number} ] && echo open || echo closed"), b"", 60_000, 100).await;
        assert_eq!(got, captured(Some(0), "closed\n", ""));
    }
}
