//! The sandbox by its effects: what a command that may only read gets done all the same (nothing), and what must work in it.
//! Every line runs for real below the real helper, as this user and, where that is root, as nobody.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use cocode::sandbox::{Level, Network, Policy, Reads, Sandbox};
use cocode::stdx::process::Captured;
use tokio::process::Command;

use super::support::program::Program;

/// Longest time of one line; only a fault takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// What no line may show.
const SECRET: &str = "TOP-SECRET";
/// What a line says where it got through. It is never written in one piece, since messages quote lines.
const BREACH: &str = "BREACH";
const NOBODY: u32 = 65534;

/// Python that makes a system call by its number and says so where it works.
const CALL: &str = "import ctypes, os, socket, fcntl\nlibc = ctypes.CDLL(None, use_errno=True)\n\
    def call(*a):\n    if libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a]) >= 0: print('BR' 'EACH')\n";

/// Lines that try to get out, `O` being the folder outside, `V` a process outside, and `$TCP`, `$UDP`, `U`, `A` who listens there.
/// Behind `py:` stands Python.
const ESCAPES: &[&str] = &[
    // Writing beside, through links, by moving, by another name.
    "echo x > O/new",
    "echo x >> O/secret",
    "echo x > ../o/new",
    "ln -s O l; echo x > l/new",
    "ln O/secret h; cat h",
    "mv O/secret .; cat secret",
    "mv file O/moved",
    "cp O/secret . ; cat secret",
    "cat O/secret",
    "head -c 9 < O/secret",
    "cat /proc/self/root/O/secret",
    "cat /proc/self/cwd/../o/secret",
    "cd O && cat secret",
    "cd O && echo x > new",
    "py:os.rename('O/secret', 'O/other')",
    "py:print(open('O/secret').read())",
    "py:os.truncate('O/secret', 0)",
    "py:os.open('O/secret', os.O_RDONLY | os.O_TRUNC)",
    "py:os.open('file', os.O_RDONLY | os.O_TRUNC)",
    // Writing inside: it only reads.
    "echo x > new",
    "rm -f file",
    "rmdir folder",
    "mkdir made",
    "mkfifo pipe",
    "touch file",
    "touch -t 200001010000 file",
    "chmod 777 file",
    "py:os.fchmod(os.open('file', os.O_RDONLY), 0o777)",
    "py:os.setxattr('file', 'user.x', b'1')",
    "py:os.utime('file', (1, 1))",
    "py:os.chown('file', 1, 1)",
    "py:os.lchown('file', 1, 1)",
    "py:fcntl.ioctl(os.open('file', os.O_RDONLY), 0x40086602, b'\\x40\\0\\0\\0\\0\\0\\0\\0')",
    "chattr +A file",
    "sed -i s/one/two/ file",
    "dd if=/dev/zero of=file bs=1 count=1",
    "py:import mmap; mmap.mmap(os.open('file', os.O_RDWR), 3)[0] = 65",
    "echo 'touch O/new' > .git/hooks/post-checkout",
    "git config core.hooksPath /nowhere",
    "git commit --allow-empty -m x",
    "git init --bare bare",
    "echo 'touch O/new' > .envrc",
    // Elsewhere on the machine.
    "echo x > /tmp/cocode-escape-$$ && echo BR''EACH; rm -f /tmp/cocode-escape-$$",
    "echo x > /var/tmp/cocode-escape-$$ && echo BR''EACH; rm -f /var/tmp/cocode-escape-$$",
    "echo x > /dev/shm/cocode-escape-$$ && echo BR''EACH; rm -f /dev/shm/cocode-escape-$$",
    "(: >> /etc/passwd) && echo BR''EACH",
    "(: >> /etc/cron.d/cocode-escape) && echo BR''EACH",
    "(: >> /proc/sys/kernel/core_pattern) && echo BR''EACH",
    "(: >> /proc/self/oom_score_adj) && echo BR''EACH",
    "cat /etc/shadow >/dev/null && echo BR''EACH",
    "cat /etc/sudoers >/dev/null && echo BR''EACH",
    "cat /etc/ssh/ssh_host_* >/dev/null && echo BR''EACH",
    "cat HOME/.ssh/id; cat HOME/.cargo/credentials.toml",
    "ls O && echo BR''EACH",
    // Other processes.
    "cat /proc/V/environ",
    "cat /proc/V/cwd/secret",
    "cat /proc/V/root/O/secret",
    "cat /proc/V/fd/3",
    "(: < /proc/V/mem) && echo BR''EACH",
    "cat /proc/V/maps > /dev/null && echo BR''EACH",
    "kill -9 V",
    "kill -STOP V",
    "kill -9 $PPID; kill -9 -1",
    "renice 5 V && echo BR''EACH",
    "prlimit --pid V --nofile=5 && echo BR''EACH",
    "taskset -p 1 V && echo BR''EACH",
    "py:call(101, 16, V, 0, 0)",
    "py:b = ctypes.create_string_buffer(8); v = (ctypes.c_long * 2)(ctypes.addressof(b), 8); call(310, V, v, 1, v, 1, 0)",
    "py:call(438, os.pidfd_open(V), 3, 0)",
    "py:call(424, os.pidfd_open(V), 9, 0, 0)",
    "py:fcntl.ioctl(0, 0x5412, b'x'); print('BR' 'EACH')",
    // The network.
    "(echo x > /dev/tcp/127.0.0.1/$TCP) && echo BR''EACH",
    "(echo x > /dev/udp/127.0.0.1/$UDP) && echo BR''EACH",
    "py:socket.create_connection(('127.0.0.1', TCP))",
    "py:socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
    "py:socket.socket(socket.AF_INET6, socket.SOCK_STREAM); print('BR' 'EACH')",
    "py:socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('BR' 'EACH')",
    "py:socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('BR' 'EACH')",
    "py:socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); print('BR' 'EACH')",
    "py:socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); print('BR' 'EACH')",
    "py:socket.socket(38, socket.SOCK_SEQPACKET); print('BR' 'EACH')",
    "py:socket.socket(socket.AF_UNIX).connect('U')",
    "py:socket.socket(socket.AF_UNIX).connect('\\0A')",
    "py:a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', 'D')",
    "py:a, b = socket.socketpair(); a.connect('U')",
    // The kernel.
    "unshare -Ur true && echo BR''EACH",
    "unshare -m true && echo BR''EACH",
    "nsenter -t V -m true && echo BR''EACH",
    "mount -t tmpfs none folder && echo BR''EACH",
    "mount --bind O folder && cat folder/secret",
    "chroot / true && echo BR''EACH",
    "hostname \"$(hostname)\" && echo BR''EACH",
    "py:call(425, 8, ctypes.create_string_buffer(120))",
    "py:call(321, 0, ctypes.create_string_buffer(72), 72)",
    "py:call(323, 0)",
    "py:call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)",
    "py:call(300, 0, 0)",
    "py:call(435, ctypes.create_string_buffer(b'\\0\\0\\0\\x10', 88), 88)",
    "py:call(248, b'user\\0', b'x\\0', b'y\\0', 1, -2)",
    "py:call(29, 77, 4096, 0o1600)",
    "py:call(240, b'cocode-escape\\0', 0o102, 0o600, 0)",
    "py:call(304, -100, ctypes.create_string_buffer(b'\\x08', 200), 0)",
    "py:call(0x40000000 + 39)",
    // Another program does it.
    "py:f = os.memfd_create('x'); os.write(f, open('/bin/cp', 'rb').read()); os.execv(f'/proc/self/fd/{f}', ['cp', 'O/secret', '/dev/stdout'])",
    "echo 'cat O/secret' | bash",
    "env -i /bin/cat O/secret",
    "sudo -n cat O/secret",
    "su -c 'cat O/secret' </dev/null",
    "setsid -f bash -c 'sleep 0.1; echo x > O/new'; sleep 0.3",
    "/lib64/ld-linux-x86-64.so.2 /bin/cat O/secret",
    "python3 -c 'import subprocess; print(subprocess.run([\"cat\", \"O/secret\"], capture_output=True))'",
    "tar cf - O | tar xOf -",
    "find O -name secret -exec cat {} +",
];

/// A workspace, what is outside of it, and who listens there.
struct World {
    _temp: tempfile::TempDir,
    root: PathBuf,
    sandbox: Sandbox,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    hidden: UnixListener,
    datagrams: UnixDatagram,
    name: String,
}

impl World {
    fn new(nobody: bool) -> World {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        for folder in ["w/folder", "o", "home/.ssh", "home/.cargo"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["o/secret", "home/.ssh/id", "home/.cargo/credentials.toml"] {
            std::fs::write(at(file), SECRET).unwrap();
        }
        std::fs::write(at("w/file"), "one\n").unwrap();
        let git = |args: &str| {
            let all = ["-C", at("w").to_str().unwrap(), "-c", "user.name=x", "-c", "user.email=x@y"].map(str::to_owned);
            let args = all.into_iter().chain(args.split(' ').map(str::to_owned));
            let mut git = std::process::Command::new("git");
            assert!(git.args(args).env("HOME", at("home")).output().unwrap().status.success());
        };
        for args in ["init -q", "add file", "commit -qm first"] {
            git(args);
        }
        std::fs::write(at("w/file"), "one\ntwo\n").unwrap();
        let mut victim = std::process::Command::new("bash");
        victim.args(["-c", "exec 3< secret; echo up; while read -r line; do echo $line; done"]);
        victim.current_dir(at("o")).env("WORD", SECRET).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = PathBuf::from(Program::binary());
        let name = format!("cocode-escape-{}", root.file_name().unwrap().display());
        let unix = UnixListener::bind(at("o/unix")).unwrap();
        let datagrams = UnixDatagram::bind(at("o/datagrams")).unwrap();
        if nobody {
            program = at("helper");
            let script = format!(
                "#!/bin/sh\nexec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {} \"$@\"\n",
                Program::binary()
            );
            std::fs::write(&program, script).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            // All of it is theirs: only the sandbox stands between.
            let owned =
                std::process::Command::new("chown").args(["-R", &NOBODY.to_string()]).arg(&root).status().unwrap();
            assert!(owned.success());
            std::os::unix::process::CommandExt::uid(&mut victim, NOBODY);
        }
        let mut victim = victim.spawn().unwrap();
        BufReader::new(victim.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        let world = World {
            sandbox: Sandbox::new(Some(program)),
            victim,
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            unix,
            hidden: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
            datagrams,
            name,
            root,
            _temp: temp,
        };
        world.tcp.set_nonblocking(true).unwrap();
        world.udp.set_nonblocking(true).unwrap();
        world.unix.set_nonblocking(true).unwrap();
        world.hidden.set_nonblocking(true).unwrap();
        world.datagrams.set_nonblocking(true).unwrap();
        world
    }

    /// Every name in it, with all that a command could change.
    fn state(&self) -> BTreeMap<PathBuf, (u32, u32, i64, i64, Vec<u8>)> {
        let (mut state, mut open) = (BTreeMap::new(), vec![self.root.clone()]);
        while let Some(path) = open.pop() {
            let data = path.symlink_metadata().unwrap();
            if data.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            let content = if data.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            state.insert(path, (data.mode(), data.uid(), data.mtime(), data.mtime_nsec(), content));
        }
        state
    }

    /// Whether anybody outside heard of it.
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
        use std::io::Write;

        let asked = self.victim.stdin.as_mut().unwrap().write_all(b"ping\n");
        let mut line = String::new();
        asked.is_ok()
            && BufReader::new(self.victim.stdout.as_mut().unwrap()).read_line(&mut line).is_ok()
            && line == "ping\n"
    }

    fn policy(&self) -> Policy {
        let home = self.root.join("home");
        Policy::reading(vec![home.join(".gitconfig"), self.root.join("w")])
    }

    async fn run(&self, line: &str, policy: &Policy) -> std::io::Result<Captured> {
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-c", line]).current_dir(self.root.join("w"));
        command.env("HOME", self.root.join("home")).env("GIT_OPTIONAL_LOCKS", "0");
        // The system's programs, so that each finds what it needs: lines that fail for another reason would prove nothing.
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("TCP", self.tcp.local_addr().unwrap().port().to_string());
        command.env("UDP", self.udp.local_addr().unwrap().port().to_string());
        self.sandbox.run_captured(command, policy, b"", PATIENCE, 1 << 20).await
    }

    /// A line with what stands for something in it.
    fn line(&self, line: &str) -> String {
        let (python, line) = line.strip_prefix("py:").map_or((false, line), |line| (true, line));
        let outside = self.root.join("o").display().to_string();
        let port = |address: std::net::SocketAddr| address.port().to_string();
        let mut text =
            line.replace("'U'", &format!("'{outside}/unix'")).replace("'D'", &format!("'{outside}/datagrams'"));
        text = text
            .replace("\\0A'", &format!("\\0{}'", self.name))
            .replace("HOME/", &format!("{}/home/", self.root.display()));
        for (from, to) in [("O/", format!("{outside}/")), ("O ", format!("{outside} "))] {
            text = text.replace(&format!(" {from}"), &format!(" {to}")).replace(&format!("'{from}"), &format!("'{to}"));
            text = text.replace(&format!("/{from}"), &to).replace(&format!("\"{from}"), &format!("\"{to}"));
        }
        let pid = self.victim.id().to_string();
        text = text
            .replace("/V/", &format!("/{pid}/"))
            .replace(" V", &format!(" {pid}"))
            .replace("(V", &format!("({pid}"));
        if python {
            text = text.replace("TCP", &port(self.tcp.local_addr().unwrap()));
            text = text.replace("UDP", &port(self.udp.local_addr().unwrap()));
            return format!("exec python3 - <<'END'\n{CALL}{text}\nEND");
        }
        text
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// As whom lines run here: this user, and nobody where we may become that.
fn users() -> &'static [bool] {
    if rustix::process::geteuid().is_root() { &[false, true] } else { &[false] }
}

#[tokio::test]
async fn nothing_gets_out_of_what_only_reads() {
    for nobody in users() {
        let mut world = World::new(*nobody);
        let (policy, before) = (world.policy(), world.state());
        let mut faults = Vec::new();
        for escape in ESCAPES {
            let line = world.line(escape);
            let done = world.run(&line, &policy).await.unwrap();
            let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
            let mut fault = |what: &str| faults.push(format!("nobody {nobody}: {what}: {line}\n{said}"));
            if said.contains(SECRET) || said.contains(BREACH) {
                fault("it got through");
            }
            if done.timed_out {
                fault("it hangs");
            }
            if world.heard() {
                fault("somebody heard of it");
            }
            if !world.answers() {
                panic!("a process outside was harmed: {line}");
            }
            let after = world.state();
            if after != before {
                let changed = after.iter().filter(|(path, state)| before.get(*path) != Some(state));
                fault(&format!("it changed {:?}", changed.map(|(path, _)| path).collect::<Vec<_>>()));
                break;
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    }
}

/// Lines that only read and have to work, with what they say. Left out where the program is missing.
const WORK: &[(&str, &str, &str)] = &[
    ("cat", "cat file", "one\ntwo\n"),
    ("ls", "ls", "file\nfolder\n"),
    ("git", "git status --short", " M file\n"),
    ("git", "git diff --stat | tail -n 1", " 1 file changed, 1 insertion(+)\n"),
    ("git", "git log --format=%s", "first\n"),
    ("git", "git -C folder rev-parse --show-prefix", "folder/\n"),
    ("grep", "grep -rl two . --include=file", "./file\n"),
    ("find", "find . -name file -newer . -o -name fil?", "./file\n"),
    ("python3", "python3 -c 'print(open(\"file\").read(), end=\"\")'", "one\ntwo\n"),
    (
        "python3",
        "python3 -c 'import json, subprocess; print(subprocess.run([\"cat\", \"file\"]).returncode)'",
        "one\ntwo\n0\n",
    ),
    ("python3", "python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); print(f.write(b\"x\"))'", "1\n"),
    ("cat", "cat <<END\nin a heredoc\nEND", "in a heredoc\n"),
    ("cat", "cat <(echo one) <(echo two)", "one\ntwo\n"),
    ("sort", "seq 200000 | sort -S 1M -n | tail -n 1", "200000\n"),
    ("mktemp", "f=$(mktemp) && echo x > $f && cat $f && rm $f", "x\n"),
    ("ps", "ps -o comm= -p $$ | cat", "bash\n"),
    ("make", "printf 'all:\\n\\techo hi\\n' | make -n -f -", "echo hi\n"),
    ("sqlite3", "sqlite3 :memory: 'select 1 + 1'", "2\n"),
    ("awk", "awk 'END { print NR }' file", "2\n"),
    ("sleep", "sleep 100 & kill $! && wait $!; echo $?", "143\n"),
    ("sleep", "timeout 0.1 sleep 100; echo $?", "124\n"),
    ("id", "id -un >/dev/null && echo named", "named\n"),
    ("date", "date -u -d @0 +%Y", "1970\n"),
    ("cat", "ulimit -n 64; nice -n 5 cat file", "one\ntwo\n"),
    ("tee", "echo x | tee /dev/null", "x\n"),
    ("xargs", "echo file | xargs -P 4 cat", "one\ntwo\n"),
    ("perl", "perl -ne 'print if /two/' file", "two\n"),
    ("stat", "stat -c %s file", "8\n"),
    ("nproc", "[ $(nproc) -gt 0 ] && echo some", "some\n"),
];

#[tokio::test]
async fn what_only_reads_works() {
    for nobody in users() {
        let world = World::new(*nobody);
        let policy = world.policy();
        for (program, line, want) in WORK {
            // What everything else here rests on has to be there.
            let asked = world.run(&format!("command -v {program}"), &Policy::free()).await.unwrap();
            if asked.code != Some(0) {
                assert!(!["python3", "git", "cat"].contains(program), "{program} is missing");
                continue;
            }
            let done = world.run(line, &policy).await.unwrap();
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            assert_eq!(out, *want, "nobody {nobody}: {line}\n{err}");
        }
    }
}

#[tokio::test]
async fn what_writes_is_held_to_its_folders_and_its_port() {
    for nobody in users() {
        let world = World::new(*nobody);
        let port = world.tcp.local_addr().unwrap().port();
        let policy = |network| Policy {
            reads: Reads::AllBut(vec![world.root.join("home/.ssh")]),
            writes: vec![world.root.join("w")],
            protected: Vec::new(),
            network,
            record: None,
        };
        let (closed, open) = (policy(Network::Closed), policy(Network::Proxy { port }));
        let hides = Policy { reads: closed.reads.clone(), ..Policy::free() };
        for (policy, line, want) in [
            (&closed, "echo x > new && chmod 700 new && mv new folder/ && cat folder/new && rm folder/new", "x\n"),
            (&closed, "echo x > O/new; echo $?", "1\n"),
            (&closed, "cat O/secret", SECRET),
            (&closed, "cat HOME/.ssh/id; echo $?", "1\n"),
            (&closed, "cat HOME/.cargo/credentials.toml", SECRET),
            (
                &closed,
                "git add file && git -c user.name=x -c user.email=x commit -qm second && git log --format=%s -1",
                "second\n",
            ),
            (&closed, "(echo x > /dev/tcp/127.0.0.1/$TCP) && echo out", ""),
            (&open, "(echo x > /dev/tcp/127.0.0.1/$TCP) && echo out", "out\n"),
            (
                &open,
                "(echo x > /dev/tcp/127.0.0.1/1) 2>&1 | grep -o 'Permission denied' | head -n 1",
                "Permission denied\n",
            ),
            (&open, "(echo x > /dev/udp/127.0.0.1/$UDP) && echo out", ""),
            // What rules hide stays hidden in a namespace, too, which such a command may make.
            (&hides, "cat HOME/.ssh/id; echo $?", "1\n"),
            (&hides, "unshare -r cat HOME/.ssh/id; echo $?", "1\n"),
            (
                &hides,
                "unshare -rm sh -c 'mount --bind HOME/.ssh folder && cat folder/id'; cat folder/id; echo $?",
                "1\n",
            ),
        ] {
            let done = world.run(&world.line(line), policy).await.unwrap();
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            assert_eq!(out, want, "nobody {nobody}: {line}\n{err}");
        }
    }
}

#[tokio::test]
async fn the_end_of_a_command_is_its_own() {
    let world = World::new(false);
    for policy in [world.policy(), Policy::free()] {
        let code = async |line: &str| world.run(line, &policy).await.unwrap().code;
        assert_eq!((code("exit 7").await, code("kill -9 $$").await, code("true").await), (Some(7), None, Some(0)));
        // Its keeper is killed, which is the end of what it kept, and of nothing else.
        if policy.is_free() {
            let killed = world.run("kill -9 $PPID; sleep 100", &policy).await;
            assert_eq!(killed.ok().and_then(|done| done.code), None);
        }
        let error = async |command: Command| {
            world.sandbox.run_captured(command, &policy, b"", PATIENCE, 100).await.unwrap_err().kind()
        };
        let mut missing = Command::new("bash");
        missing.current_dir(world.root.join("nowhere"));
        assert_eq!(error(missing).await, std::io::ErrorKind::NotFound);
        let mut large = Command::new("bash");
        large.env("LARGE", "x".repeat(3 << 20));
        assert_eq!(error(large).await, std::io::ErrorKind::ArgumentListTooLong);
        let mut bytes = Command::new("bash");
        let name: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(b"\xff\xfe".to_vec());
        bytes
            .args(["-c", "[ \"$0\" = $'\\xff\\xfe' ] && [ ${#TEXT} = 100000 ]"])
            .arg(name)
            .env("TEXT", "x".repeat(100_000));
        assert_eq!(world.sandbox.run_captured(bytes, &policy, b"", PATIENCE, 100).await.unwrap().code, Some(0));
    }
    // Without a helper, what has to be confined does not run, and the rest does.
    for sandbox in
        [Sandbox::off(), Sandbox::new(Some("/nowhere/cocode".into())), Sandbox::new(Some("/bin/true".into()))]
    {
        let touch = || {
            let mut touch = Command::new("touch");
            touch.arg(world.root.join("touched"));
            touch
        };
        let refused = sandbox.run_captured(touch(), &world.policy(), b"", PATIENCE, 100).await;
        assert!(refused.is_err() && !Path::new(&world.root.join("touched")).exists(), "{sandbox:?}: {refused:?}");
    }
    let done = Sandbox::new(Some("/nowhere/cocode".into()));
    let done = done.run_captured(Command::new("true"), &Policy::free(), b"", PATIENCE, 100).await;
    assert_eq!(done.unwrap().code, Some(0));
}

/// What a run has found out is found at the next start, as long as all is the same.
#[tokio::test]
async fn the_level_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state/sandbox");
    let level = async |program: &str| Sandbox::new(Some(program.into())).remembered_in(file.clone()).probe().await;
    // Nothing is remembered of what fails.
    assert_eq!((level("/nowhere/cocode").await, file.exists()), (Level::None, false));
    if level(Program::binary()).await == Level::None {
        return;
    }
    assert_eq!(level("/nowhere/cocode").await, Level::Kernel, "without a run");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("Uid", "Gid")).unwrap();
    assert_eq!(level("/nowhere/cocode").await, Level::None, "somewhere else");
}

/// A program that the rules take for one that only reads, and that does more: what runs without a yes costs nothing.
#[tokio::test]
async fn a_wrong_verdict_costs_nothing() {
    use std::os::unix::fs::PermissionsExt;

    use crate::support::harness::Harness;

    let script = "- reply: [tool: {name: Bash, input: {command: rg word a.txt}}]\n- reply: [text: Done.]\n";
    let harness = Harness::new().file("a.txt", "word\n").file(".env", "KEY=5ecret\n").script(script);
    let bin = harness.project().parent().unwrap().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let hostile = "#!/bin/sh\ntouch mark\ncat .env\ncat a.txt\n";
    std::fs::write(bin.join("rg"), hostile).unwrap();
    std::fs::set_permissions(bin.join("rg"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let settings = serde_json::json!({ "env": { "PATH": path } }).to_string();
    let run = harness.home("settings.json", &settings).prompt("go").run().await;
    let told = std::fs::read_to_string(run.log()).unwrap();
    assert!(told.contains("word\\n") && !told.contains("5ecret"), "{told}");
    assert!(!run.project().join("mark").exists(), "{told}");
}
