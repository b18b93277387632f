//! `Program`: the real binary without a screen, in a home and a project of its own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest wait for an end; only a hang takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home and a project, waiting for runs.
pub(crate) struct Program {
    root: tempfile::TempDir,
    env: Vec<(String, String)>,
    stdin: String,
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Done {
    /// None when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Program {
    pub(crate) fn new() -> Program {
        let program = Program { root: tempfile::tempdir().unwrap(), env: Vec::new(), stdin: String::new() };
        std::fs::create_dir_all(program.project()).unwrap();
        // Whatever listens on the machine of the test must not matter to it.
        program.home_file(".config/cocode/config.toml", "probe_local = false\n")
    }

    /// The binary under test.
    pub(crate) fn binary() -> &'static str {
        env!("CARGO_BIN_EXE_cocode")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn home_file(self, path: &str, text: &str) -> Program {
        put(&self.home().join(path), text);
        self
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Program {
        put(&self.project().join(path), text);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Program {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Program {
        text.clone_into(&mut self.stdin);
        self
    }

    /// The variables that were set for it.
    pub(crate) fn vars(&self) -> &[(String, String)] {
        &self.env
    }

    /// Writes steps of a conversation and names their file, for `--offline-script`.
    pub(crate) fn script(&self, name: &str, yaml: &str) -> String {
        let path = self.root.path().join(name);
        put(&path, yaml);
        path.to_string_lossy().into_owned()
    }

    /// The command with its environment, not started.
    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.project()).env_clear();
        command.env("HOME", self.home()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        hears_signals(&mut command);
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.wait(self.command(Program::binary(), args))
    }

    /// Runs a command to its end, with the standard input that was given.
    pub(crate) fn wait(&self, mut command: Command) -> Done {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let text = self.stdin.clone();
        // A program that reads none of it closes the pipe.
        std::thread::spawn(move || stdin.write_all(text.as_bytes()));
        end(child)
    }

    /// The logs of all sessions, oldest first.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.home().join(".claude")) else { return Vec::new() };
        let mut logs: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path().join("transcript.jsonl")).filter(|log| log.exists()).collect();
        logs.sort();
        logs
    }
}

/// A test run that was started in the background of a shell ignores SIGINT, and what it starts would inherit that.
fn hears_signals(command: &mut Command) {
    let heard = || {
        // SAFETY: resets one signal, which is allowed between fork and exec.
        match unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) } {
            libc::SIG_ERR => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: see above.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, heard) };
}

impl Done {
    /// The lines of standard output, each of which has to be JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
    }
}

/// Collects what a program writes until it ends.
pub(crate) fn end(mut child: Child) -> Done {
    let drain = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(&mut bytes).unwrap();
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = drain(child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let err = drain(child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let last = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > last {
            let _ = child.kill();
            panic!("the program does not end; it wrote\n{}\n{}", out.join().unwrap(), err.join().unwrap());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Done { code: status.code(), out: out.join().unwrap(), err: err.join().unwrap() }
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
