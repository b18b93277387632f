//! A folder that a command may read, what is outside of it, and who listens there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use tokio::process::Command;

use super::escapes;
use crate::sandbox::{Policy, Sandbox};
use crate::stdx::process::Captured;

/// Longest time of one line; only a fault takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// What no line may show.
const SECRET: &str = "TOP-SECRET";
/// What a line says where it got through. It is never written in one piece, since messages quote lines.
const BREACH: &str = "BREACH";
/// The system's programs, so that each finds what it needs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The user that owns nothing, on every Linux.
pub const NOBODY: u32 = 65534;

/// How one line ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    Held,
    /// What it got done.
    Through(String),
    /// Why it proves nothing here.
    Untried(String),
}

/// The folder `w` that may be read; beside it `o`, with a secret, a process and sockets; and a home.
#[derive(Debug)]
pub struct World {
    root: PathBuf,
    sandbox: Sandbox,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    hidden: UnixListener,
    datagrams: UnixDatagram,
    name: String,
    _temp: tempfile::TempDir,
}

/// Everything about a path that a command could change: mode, owner, time of change, content.
type State = BTreeMap<PathBuf, (u32, u32, i64, i64, Vec<u8>)>;

impl World {
    /// Lays it out. `program` is this binary. `user` owns all of it and runs the lines, so that nothing but the sandbox holds them
    /// back; without one that is us. Another user takes root.
    ///
    /// # Errors
    /// What the system says, or which program is missing.
    pub fn new(program: &Path, user: Option<u32>) -> io::Result<World> {
        let temp = tempfile::tempdir()?;
        let root = temp.path().canonicalize()?;
        let at = |path: &str| root.join(path);
        for folder in ["w/folder", "o", "home/.ssh", "home/.cargo"] {
            fs::create_dir_all(at(folder))?;
        }
        for file in ["o/secret", "home/.ssh/id", "home/.cargo/credentials.toml"] {
            fs::write(at(file), SECRET)?;
        }
        fs::write(at("w/file"), "one\n")?;
        for arguments in ["init -q", "add file", "commit -qm first"] {
            let mut git = std::process::Command::new("git");
            git.args(["-c", "user.name=x", "-c", "user.email=x@y"]).args(arguments.split(' '));
            ended(git.current_dir(at("w")).env("HOME", at("home")))?;
        }
        fs::write(at("w/file"), "one\ntwo\n")?;
        let name = format!("cocode-escape-{}", root.file_name().unwrap_or_default().display());
        let (unix, datagrams) = (UnixListener::bind(at("o/unix"))?, UnixDatagram::bind(at("o/datagrams"))?);
        let mut victim = std::process::Command::new("bash");
        victim.args(["-c", "exec 3< secret; echo up; while read -r line; do echo $line; done"]);
        victim.current_dir(at("o")).env("WORD", SECRET).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut helper = program.to_owned();
        if let Some(user) = user {
            helper = at("helper");
            let become_them = format!("setpriv --reuid {user} --regid {user} --clear-groups");
            fs::write(&helper, format!("#!/bin/sh\nexec {become_them} '{}' \"$@\"\n", program.display()))?;
            fs::set_permissions(&helper, PermissionsExt::from_mode(0o755))?;
            ended(std::process::Command::new("chown").args(["-R", &user.to_string()]).arg(&root))?;
            victim.uid(user);
        }
        let mut world = World {
            sandbox: Sandbox::new(Some(helper)),
            victim: victim.spawn()?,
            tcp: TcpListener::bind("127.0.0.1:0")?,
            udp: UdpSocket::bind("127.0.0.1:0")?,
            hidden: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?,
            unix,
            datagrams,
            name,
            root,
            _temp: temp,
        };
        world.hears()?;
        world.tcp.set_nonblocking(true)?;
        world.udp.set_nonblocking(true)?;
        world.unix.set_nonblocking(true)?;
        world.hidden.set_nonblocking(true)?;
        world.datagrams.set_nonblocking(true)?;
        Ok(world)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Where somebody listens on loopback.
    ///
    /// # Errors
    /// What the system says.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.tcp.local_addr()?.port())
    }

    /// Of a line that only reads, in `w`.
    pub fn policy(&self) -> Policy {
        Policy::reading(vec![self.root.join("home/.gitconfig"), self.root.join("w")])
    }

    /// Runs a line of bash in `w`.
    ///
    /// # Errors
    /// It cannot be started under this policy.
    pub async fn run(&self, line: &str, policy: &Policy) -> io::Result<Captured> {
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-c", line]).current_dir(self.root.join("w")).env("PATH", PATH);
        command.env("HOME", self.root.join("home")).env("GIT_OPTIONAL_LOCKS", "0");
        command.env("TCP", self.port()?.to_string()).env("UDP", self.udp.local_addr()?.port().to_string());
        self.sandbox.run_captured(command, policy, b"", PATIENCE, 1 << 20).await
    }

    /// Lets a line of `escapes` try to get out of what lets it read.
    ///
    /// # Errors
    /// It cannot be started, or what it did cannot be seen.
    pub async fn attempt(&mut self, escape: &str) -> io::Result<Attempt> {
        let policy = self.policy();
        Box::pin(self.attempt_under(escape, &policy)).await
    }

    /// The same under any policy, so that it can be seen that an escape is noticed.
    ///
    /// # Errors
    /// Those of `attempt`.
    pub async fn attempt_under(&mut self, escape: &str, policy: &Policy) -> io::Result<Attempt> {
        if let Some(program) = escapes::program(escape)
            && !installed(program)
        {
            return Ok(Attempt::Untried(format!("{program} is not installed")));
        }
        if !escapes::fits(escape) {
            return Ok(Attempt::Untried("it names system calls of another processor".to_owned()));
        }
        let before = self.state()?;
        let done = self.run(&self.line(escape)?, policy).await?;
        let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        let after = self.state()?;
        let changed = after.iter().find(|(path, state)| before.get(*path) != Some(state)).map(|(path, _)| path);
        let changed = changed.or_else(|| before.keys().find(|path| !after.contains_key(*path)));
        let through = if said.contains(SECRET) || said.contains(BREACH) {
            said
        } else if done.timed_out {
            "it hangs".to_owned()
        } else if self.heard() {
            "somebody outside heard of it".to_owned()
        } else if !self.answers() {
            "it harmed a process outside".to_owned()
        } else if let Some(path) = changed {
            format!("it changed {}", path.display())
        } else {
            return Ok(Attempt::Held);
        };
        Ok(Attempt::Through(through))
    }

    fn state(&self) -> io::Result<State> {
        let (mut state, mut open) = (State::new(), vec![self.root.clone()]);
        while let Some(path) = open.pop() {
            let data = path.symlink_metadata()?;
            if data.is_dir() {
                for entry in fs::read_dir(&path)? {
                    open.push(entry?.path());
                }
            }
            let content = if data.is_file() { fs::read(&path)? } else { Vec::new() };
            state.insert(path, (data.mode(), data.uid(), data.mtime(), data.mtime_nsec(), content));
        }
        Ok(state)
    }

    /// Whether anybody outside heard of a line.
    fn heard(&self) -> bool {
        let mut byte = [0];
        self.tcp.accept().is_ok()
            || self.udp.recv(&mut byte).is_ok()
            || self.unix.accept().is_ok()
            || self.hidden.accept().is_ok()
            || self.datagrams.recv(&mut byte).is_ok()
    }

    /// Whether the process outside is there and answers.
    fn answers(&mut self) -> bool {
        let asked = self.victim.stdin.as_mut().map(|input| input.write_all(b"ping\n"));
        asked.is_some_and(|asked| asked.is_ok()) && self.hears().is_ok_and(|line| line == "ping\n")
    }

    /// The next line of the process outside.
    fn hears(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if let Some(output) = self.victim.stdout.as_mut() {
            BufReader::new(output).read_line(&mut line)?;
        }
        Ok(line)
    }

    /// A line with what its letters stand for.
    ///
    /// # Errors
    /// What the system says of our sockets.
    pub fn line(&self, line: &str) -> io::Result<String> {
        let (python, line) = line.strip_prefix("py:").map_or((false, line), |line| (true, line));
        let outside = self.root.join("o").display().to_string();
        let mut text = line
            .replace("'U'", &format!("'{outside}/unix'"))
            .replace("'D'", &format!("'{outside}/datagrams'"))
            .replace("\\0A'", &format!("\\0{}'", self.name))
            .replace("HOME/", &format!("{}/home/", self.root.display()));
        for (from, to) in [("O/", format!("{outside}/")), ("O ", format!("{outside} "))] {
            for before in [" ", "'", "\""] {
                text = text.replace(&format!("{before}{from}"), &format!("{before}{to}"));
            }
            text = text.replace(&format!("/{from}"), &to);
        }
        let victim = self.victim.id().to_string();
        for (before, after) in [("/", "/"), (" ", ""), ("(", "")] {
            text = text.replace(&format!("{before}V{after}"), &format!("{before}{victim}{after}"));
        }
        if python {
            text = text.replace("TCP", &self.port()?.to_string());
            text = text.replace("UDP", &self.udp.local_addr()?.port().to_string());
            text = format!("exec python3 - <<'END'\n{}{text}\nEND", escapes::CALL);
        }
        Ok(text)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Runs a program that lays something out.
fn ended(command: &mut std::process::Command) -> io::Result<()> {
    let done = command.output()?;
    let failed = || {
        let name = command.get_program().display();
        io::Error::other(format!("{name} fails: {}", String::from_utf8_lossy(&done.stderr).trim()))
    };
    if done.status.success() { Ok(()) } else { Err(failed()) }
}

fn installed(program: &str) -> bool {
    PATH.split(':').any(|folder| Path::new(folder).join(program).exists())
}
