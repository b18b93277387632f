//! A server that is a program: messages are lines of its streams. It runs below our supervisor, and ends with us.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::definition::Way;
use super::inbound::Inbound;
use super::peer::Fault;
use super::servers::Surroundings;
use crate::sandbox::{Policy, Running};
use crate::stdx::fs::private_dir;
use crate::stdx::process::{Run, Streams, command_without};

/// Longest line that is read, in bytes.
const LINE: usize = 16 << 20;
/// Messages that wait until the server reads.
const WAITING: usize = 64;
/// How long the streams of a server that has ended are still read.
const LEFT: Duration = Duration::from_millis(500);

/// See the module.
pub(super) struct Stdio {
    out: mpsc::Sender<String>,
    _task: AbortOnDropHandle<()>,
}

impl Stdio {
    /// Starts the program.
    ///
    /// # Errors
    /// Why it does not start.
    pub(super) async fn start(way: &Way, around: &Surroundings, inbound: &Arc<Inbound>) -> Result<Stdio, Fault> {
        let Way::Program { command, args, env } = way else {
            return Err(Fault::Closed("it is not a program".to_owned()));
        };
        let failed = |error: io::Error| Fault::Unstarted {
            command: command.clone(),
            why: error.to_string(),
            missing: error.kind() == io::ErrorKind::NotFound,
        };
        let mut program = command_without(command, &around.secret_env);
        program.args(args).current_dir(&around.project);
        for (name, value) in around.env.iter().filter(|(name, _)| !around.secret_env.contains(name)) {
            program.env(name, value);
        }
        if let Some(data) = env.get("CLAUDE_PLUGIN_DATA") {
            // One that does not use it runs all the same.
            let _ = private_dir(Path::new(data));
        }
        program.env("CLAUDE_PROJECT_DIR", &around.project).env("COCODE_PROJECT_DIR", &around.project).envs(env);
        let (stdin, feed) = io::pipe().map_err(failed)?;
        let (stdout, out_end) = io::pipe().map_err(failed)?;
        let (stderr, err_end) = io::pipe().map_err(failed)?;
        let streams = Streams { stdin: Some(stdin.into()), stdout: out_end.into(), stderr: err_end.into(), kept: None };
        // It is the user's own program, or one that they agreed to, as hooks are.
        let running = around.sandbox.spawn(&program, streams, &Policy::free()).await.map_err(failed)?;
        let feed = pipe::Sender::from_owned_fd(feed.into()).map_err(failed)?;
        let stdout = pipe::Receiver::from_owned_fd(stdout.into()).map_err(failed)?;
        let stderr = pipe::Receiver::from_owned_fd(stderr.into()).map_err(failed)?;
        let (out, lines) = mpsc::channel(WAITING);
        let served = serve(running, (feed, lines), (stdout, stderr), inbound.clone(), out.clone());
        Ok(Stdio { out, _task: AbortOnDropHandle::new(tokio::spawn(served)) })
    }

    pub(super) async fn send(&self, message: &Value) -> Result<(), Fault> {
        let sent = self.out.send(format!("{message}\n")).await;
        sent.map_err(|_| Fault::Closed("the server has ended".to_owned()))
    }

    /// Sends a message if the server reads what is sent.
    pub(super) fn offer(&self, message: &Value) {
        let _ = self.out.try_send(format!("{message}\n"));
    }
}

/// Reads and writes until the program ends.
async fn serve(
    mut running: Running,
    (mut feed, mut lines): (pipe::Sender, mpsc::Receiver<String>),
    (mut stdout, mut stderr): (pipe::Receiver, pipe::Receiver),
    inbound: Arc<Inbound>,
    out: mpsc::Sender<String>,
) {
    let why = {
        let write = async {
            while let Some(line) = lines.recv().await {
                inbound.sent.fetch_add(line.len() as u64, Ordering::Relaxed);
                if feed.write_all(line.as_bytes()).await.is_err() {
                    break;
                }
            }
            // It reads nothing more: then it ends, or it answers nothing, which is noticed by who waits.
            std::future::pending::<()>().await;
        };
        let errors = async {
            let mut buffer = vec![0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                inbound.wrote(&buffer[..count]);
            }
        };
        let answers = async {
            let mut reader = Lines::default();
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
                for answer in reader.push(&buffer[..count], &inbound) {
                    // A server that asks without reading the answers goes without.
                    let _ = out.try_send(format!("{answer}\n"));
                }
            }
        };
        tokio::pin!(write, errors, answers);
        let (mut told, mut open, mut last) = (true, true, None);
        loop {
            tokio::select! {
                biased;
                () = &mut answers, if open => {
                    // It usually ends then, and how it does says more.
                    (open, last) = (false, Some(Instant::now() + LEFT));
                }
                () = &mut errors, if told => told = false,
                () = &mut write => {}
                () = tokio::time::sleep_until(last.unwrap_or_else(Instant::now)), if last.is_some() => {
                    break "the server closed its output".to_owned();
                }
                ended = running.wait() => {
                    let rest = async {
                        if open {
                            answers.await;
                        }
                        if told {
                            errors.await;
                        }
                    };
                    let _ = tokio::time::timeout(LEFT, rest).await;
                    break match ended {
                        Ok(status) => format!("the server ended ({status})"),
                        Err(error) => format!("the server ended: {error}"),
                    };
                }
            }
        }
    };
    inbound.close(&why);
    running.end().await;
}

/// Lines of any length: those that are too long are passed over.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    over: bool,
}

impl Lines {
    fn push(&mut self, mut bytes: &[u8], inbound: &Inbound) -> Vec<Value> {
        let mut answers = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end], inbound);
            let line = std::mem::take(&mut self.line);
            if !std::mem::take(&mut self.over) {
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_start_matches('\u{feff}').trim();
                if !text.is_empty() {
                    answers.extend(inbound.take(text, None));
                }
            }
            bytes = &bytes[end + 1..];
        }
        self.add(bytes, inbound);
        answers
    }

    fn add(&mut self, bytes: &[u8], inbound: &Inbound) {
        if self.over {
            return;
        }
        if self.line.len() + bytes.len() > LINE {
            self.over = true;
            // Who waits for it is told, where its number comes first, as it does nearly always.
            let start = String::from_utf8_lossy(&self.line[..self.line.len().min(200)]).into_owned();
            let why = format!("its answer is longer than {} MB", LINE >> 20);
            inbound.odd(&why);
            inbound.unreadable(&start, None, &why);
            self.line = Vec::new();
            return;
        }
        self.line.extend_from_slice(bytes);
    }
}
