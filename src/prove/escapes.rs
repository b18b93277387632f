//! Lines that try to get out of a sandbox that lets them read one folder, and nothing else.

use std::io;
use std::path::Path;

use super::Escapes;
use super::world::{Attempt, World};

/// Lines that try to get out, `O` being the folder outside, `V` a process outside, and `$TCP`, `$UDP`, `U`, `D`, `A` who listens
/// there. What follows `py:` is Python. None of them does harm where it gets through: a sandbox that is tried may be broken.
pub const ESCAPES: &[&str] = &[
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
    "kill -0 V && echo BR''EACH",
    "kill -STOP V",
    "kill -9 $PPID",
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

/// Python that makes a system call by its number and says so where it works.
pub(super) const CALL: &str = "import ctypes, os, socket, fcntl\nlibc = ctypes.CDLL(None, use_errno=True)\n\
    def call(*a):\n    if libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a]) >= 0: print('BR' 'EACH')\n";

/// What the shell does itself.
const BUILTINS: &[&str] = &["cd", "echo", "kill"];

/// The program without which a line would fail for another reason than the sandbox. None: the shell does it itself.
pub(super) fn program(line: &str) -> Option<&str> {
    if line.starts_with("py:") {
        return Some("python3");
    }
    let word = line.split([' ', ';']).next()?;
    let is_name = word.starts_with('/') || word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '3');
    (is_name && !BUILTINS.contains(&word)).then_some(word)
}

/// Whether a line names system calls by the numbers that they have here.
pub(super) fn fits(line: &str) -> bool {
    cfg!(target_arch = "x86_64") || !line.contains("call(")
}

/// Tries them all as one user; none: as we are.
///
/// # Errors
/// The scratch folder cannot be laid out, or the helper does not start.
pub async fn tried(program: &Path, user: Option<u32>) -> io::Result<Escapes> {
    let mut world = World::new(program, user)?;
    let us = rustix::process::geteuid();
    let name = match user {
        Some(_) => "nobody".to_owned(),
        None if us.is_root() => "root".to_owned(),
        None => format!("user {}", us.as_raw()),
    };
    let mut escapes = Escapes { user: name, ..Escapes::default() };
    for escape in ESCAPES {
        match world.attempt(escape).await? {
            Attempt::Held => escapes.held += 1,
            Attempt::Through(what) => escapes.through.push(((*escape).to_owned(), what)),
            Attempt::Untried(why) => count(&mut escapes.untried, why),
        }
    }
    Ok(escapes)
}

/// One more for this reason.
pub(super) fn count(reasons: &mut Vec<(String, usize)>, why: String) {
    match reasons.iter_mut().find(|(reason, _)| *reason == why) {
        Some((_, times)) => *times += 1,
        None => reasons.push((why, 1)),
    }
}
