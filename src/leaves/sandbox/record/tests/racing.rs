//! Programs that change what a call is given while it waits for its answer, and programs that give calls odd things: for them
//! everything is as without a supervisor, but that nothing happens unseen.

use super::*;

/// `race` makes a call again and again while another thread writes one path over the other.
const RACE: &str = r"
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
sys.setswitchinterval(1e-5)
def race(call, one, two, times=400):
    text, done = ctypes.create_string_buffer(64), []
    text.value = one
    def swap():
        while not done:
            text.value = two
            text.value = one
    other = threading.Thread(target=swap, daemon=True)
    other.start()
    for n in range(times): call(text)
    done.append(1)
    other.join()
def exchange(call, one, two, times=400):
    done = []
    def swap():
        while not done: libc.renameat2(-100, one, -100, two, 2)
    other = threading.Thread(target=swap, daemon=True)
    other.start()
    for n in range(times): call()
    done.append(1)
    other.join()
def write(fd):
    if fd >= 0:
        try: os.write(fd, b'evil\n')
        except OSError: pass
        os.close(fd)
os.mkfifo('pipe') if not os.path.exists('pipe') else None
new = os.O_WRONLY | os.O_CREAT
";

#[test]
fn what_is_guarded_stays_whatever_another_thread_does_to_the_path() {
    let before = "mkdir -p .git/hooks src k; echo own > .npmrc; echo own > .git/config; echo own > free01; echo x > src/x; \
        ln -s src way; ln -s .git/hooks yaw; ln -s .git gaw; echo evil > evil; for n in {0..400}; do echo evil > k/$n; done";
    for script in [
        // The text of the path.
        "race(lambda text: write(libc.open(text, new, 0o644)), b'free01', b'.npmrc')",
        "race(lambda text: libc.truncate(text, 0), b'free01', b'.npmrc')",
        "race(lambda text: libc.chmod(text, 0o777), b'free01', b'.npmrc')",
        "race(lambda text: libc.unlink(text), b'free01', b'.npmrc')",
        "race(lambda text: libc.symlink(b'/evil', text), b'free02', b'.envrc')",
        "race(lambda text: libc.mkdir(text, 0o755), b'free02', b'.envrc')",
        "race(lambda text: (libc.link(b'evil', text), libc.unlink(b'free02')), b'free02', b'.envrc')",
        "names = iter(range(400)); race(lambda text: libc.rename(b'k/%d' % next(names), text), b'free02', b'.npmrc')",
        // What is first a pipe, and one for which nobody waits.
        "race(lambda text: write(libc.open(text, new | os.O_NONBLOCK, 0o644)), b'./pipe', b'.npmrc')",
        // A link on the way, and one at the end.
        "exchange(lambda: write(libc.open(b'way/pre-commit', new, 0o644)), b'way', b'yaw')",
        "names = iter(range(400)); exchange(lambda: libc.rename(b'k/%d' % next(names), b'way/pre-commit'), b'way', b'yaw')",
        "os.symlink('free01', 'l1'); os.symlink('.npmrc', 'l2'); exchange(lambda: write(libc.open(b'l1', os.O_WRONLY)), b'l1', b'l2')",
        // The structure that holds the flags, and the open file that is meant.
        "how = (ctypes.c_uint64 * 3)(0, 0, 0); race(lambda text: write(libc.syscall(437, -100, b'.npmrc', text, 24)), \
            bytes([0]), bytes([1]))",
        "one, two = os.open('free01', os.O_RDONLY), os.open('.npmrc', os.O_RDONLY); fd, done = os.dup(one), []\n\
            def swap():\n    while not done: os.dup2(two, fd); os.dup2(one, fd)\n\
            t = threading.Thread(target=swap, daemon=True); t.start()\n\
            for n in range(400): libc.fchmod(fd, 0o777)\n\
            done.append(1); t.join()",
    ] {
        let mut fixture = Fixture::new();
        let root = fixture.root();
        let made = Command::new("bash").args(["-c", before]).current_dir(&root).status().unwrap();
        assert!(made.success());
        fixture.guard = Guard { roots: vec![root.clone()], ..Guard::default() };
        fs::write(fixture.temp.path().join("race.py"), format!("{RACE}{script}\nprint('over')\n")).unwrap();
        let ran = fixture.run("exec python3 ../race.py");
        assert_eq!(String::from_utf8_lossy(&ran.output.stdout), "over\n", "{script}: {:?}", ran.output);
        for file in [".npmrc", ".git/config"] {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(root.join(file)).unwrap().permissions());
            let text = fs::read_to_string(root.join(file)).unwrap();
            assert_eq!((text.as_str(), mode & 0o777), ("own\n", 0o644), "{script}: {file}");
        }
        for file in [".git/hooks/pre-commit", ".envrc"] {
            assert!(fs::symlink_metadata(root.join(file)).is_err(), "{script}: {file}");
        }
    }
}

/// Where nothing is guarded, what is changed is known all the same.
#[test]
fn what_changes_is_saved_whatever_another_thread_does_to_the_path() {
    let fixture = Fixture::new();
    let root = fixture.root();
    fs::write(root.join("other"), "own").unwrap();
    for n in 0..200 {
        fs::write(root.join(format!("f{n:04}")), "own").unwrap();
    }
    let script =
        "for n in range(200): race(lambda text: write(libc.open(text, new, 0o644)), b'other', b'f%04d' % n, 4)";
    fs::write(fixture.temp.path().join("race.py"), format!("{RACE}{script}\nprint('over')\n")).unwrap();
    let ran = fixture.run("exec python3 ../race.py");
    assert_eq!(String::from_utf8_lossy(&ran.output.stdout), "over\n", "{:?}", ran.output);
    let mut changed = 0;
    for n in 0..200 {
        let path = root.join(format!("f{n:04}"));
        if fs::read_to_string(&path).unwrap() == "own" {
            continue;
        }
        changed += 1;
        let saved = ran.manifest.touched.iter().find(|touched| touched.path == path).and_then(Touched::saved);
        let saved = saved.map(|name| fs::read_to_string(fixture.store().join(name)).unwrap());
        assert_eq!(saved.as_deref(), Some("own"), "{}", path.display());
    }
    assert!(changed > 0);
}

/// What a program sees of calls that the kernel does not make for it.
#[cfg(target_arch = "x86_64")]
const ODD: &str = r#"
import ctypes, errno, fcntl, os, socket, stat, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def tell(name, call):
    try: told = call()
    except OSError as error: told = errno.errorcode[error.errno]
    print(name, told)
def raw(number, *arguments):
    done = libc.syscall(number, *arguments)
    if done < 0: raise OSError(ctypes.get_errno(), '')
    return done
def opened(*arguments, **named):
    fd = os.open(*arguments, **named)
    told = oct(fcntl.fcntl(fd, fcntl.F_GETFL)), os.get_inheritable(fd), oct(os.fstat(fd).st_mode)
    os.close(fd)
    return told
W, R, C, X, T, N = os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_NOFOLLOW
os.umask(0o027)
os.makedirs('d/e'); open('f', 'w').write('text'); os.symlink('f', 'l'); os.symlink('new', 'dangling'); os.symlink('d', 'ld')
os.symlink('loop', 'loop'); os.mkfifo('p')
names = ['f', 'f/', 'd', 'd/', 'd/.', 'd/..', '.', '..', '/', '', 'l', 'l/', 'ld', 'ld/', 'loop', 'no', 'no/', 'no/x', 'f/x',
    'loop/x', 'x' * 256, 'd//e///', './/f', '/proc/self/cwd/f', '/proc/thread-self/cwd/f', '/proc/self/root/' + os.getcwd() + '/f',
    '/dev/fd/0', '/dev/null', '/dev/null/', '/proc/self/exe', '/proc/self/nothing', '/proc/self/cwd', '/proc/self']
for name in names:
    tell('open ' + name, lambda: opened(name, W))
    tell('nofollow ' + name, lambda: opened(name, R | N))
    tell('folder ' + name, lambda: opened(name, W | os.O_DIRECTORY))
    tell('exclusive ' + name, lambda: opened(name, W | C | X) if os.path.lexists(name) or name[-1:] in ('/', '') or '/' in name else 0)
    tell('unlink ' + name, lambda: os.unlink(name) if name[-1:] in ('/', '.', '') or not os.path.lexists(name) else 0)
    tell('rmdir ' + name, lambda: os.rmdir(name) if 'e///' not in name else 0)
    tell('mkdir ' + name, lambda: os.mkdir(name) if os.path.lexists(name) or 'x' in name or not name else 0)
    tell('symlink ' + name, lambda: os.symlink('x', name) if os.path.lexists(name) or '/' in name or not name else 0)
    tell('link ' + name, lambda: os.link('f', name) if os.path.lexists(name) or '/' in name or not name else 0)
    tell('rename ' + name, lambda: os.rename('f', name) if name not in ('l', 'loop', 'no') and not name.startswith('/dev') and len(name) < 99 else 0)
    tell('rename from ' + name, lambda: os.rename(name, 'none/x'))
    tell('truncate ' + name, lambda: os.truncate(name, 3) if not name.startswith('/proc/self/exe') else 0)
    tell('chmod ' + name, lambda: os.chmod(name, stat.S_IMODE(os.stat(name).st_mode)) if not name.startswith(('/dev', '/')) else 0)
    tell('utime ' + name, lambda: os.utime(name, (5, 6), follow_symlinks=False) if not name.startswith('/') else 0)
print(sorted(os.listdir('.')), open('f').read(), os.lstat('l').st_mtime)
# Modes, and what a program keeps.
tell('modes', lambda: (opened('m1', W | C, 0o777), opened('m2', W | C | os.O_CLOEXEC | os.O_APPEND, 0o4666)))
tell('exists', lambda: opened('m1', W | C | X))
tell('mkdir', lambda: (os.mkdir('md', 0o1777), oct(os.stat('md').st_mode)))
tell('mkfifo', lambda: (os.mkfifo('mp', 0o666), oct(os.stat('mp').st_mode)))
tell('dangling', lambda: (opened('dangling', W | C, 0o666), os.path.exists('new')))
tell('lowest', lambda: (os.dup2(0, 50), os.close(50), os.open('f', R), os.open('f', R)))
tell('text busy', lambda: opened(sys.executable, W))
tell('no tty', lambda: opened('/dev/tty', R))
tell('socket', lambda: (socket.socket(socket.AF_UNIX).bind('s'), opened('s', W)))
tell('directory', lambda: opened('d', os.O_RDONLY | C))
# Without a name.
tmp = os.open('.', os.O_TMPFILE | R, 0o600)
os.write(tmp, b'tmp')
tell('name it', lambda: (raw(265, -100, b'/proc/self/fd/%d' % tmp, -100, b'named', 0x400), open('named').read()))
mem = os.memfd_create('mem')
os.write(mem, b'mem')
tell('memory', lambda: (opened('/proc/self/fd/%d' % mem, R), opened('/dev/fd/%d' % mem, W | C | T), os.fstat(mem).st_size))
r, w = os.pipe()
tell('pipe', lambda: (opened('/dev/fd/%d' % w, W), opened('/proc/self/fd/%d' % r, R)))
gone = os.open('gone', R | C)
os.write(gone, b'gone'); os.unlink('gone')
tell('gone', lambda: (opened('/proc/self/fd/%d' % gone, W | T), os.fstat(gone).st_size))
tell('empty', lambda: (raw(260, gone, b'', os.getuid(), os.getgid(), 0x1000), raw(268, gone, b'', 0)))
tell('closed', lambda: os.fchmod(99, 0o600))
tell('far', lambda: raw(257, 99, b'x', W))
tell('bad', lambda: raw(257, -100, 1, W))
tell('fchmod', lambda: (os.fchmod(tmp, 0o6711), oct(os.fstat(tmp).st_mode)))
tell('futimens', lambda: (os.utime(tmp, ns=(7, 8)), os.fstat(tmp).st_mtime_ns))
tell('old times', lambda: (raw(235, b'f', struct.pack('4q', 1, 2, 3, 4)), os.stat('f').st_mtime_ns, raw(132, b'f', struct.pack('2q', 9, 10)),
    os.stat('f').st_mtime_ns, raw(261, -100, b'f', struct.pack('4q', 1, 2, 3, 1000000))))
tell('attributes', lambda: (os.setxattr('f', 'user.a', b'b' * 300), os.getxattr('f', 'user.a')[:2], os.removexattr('f', 'user.a'), os.listxattr('f')))
tell('no attribute', lambda: os.removexattr('f', 'user.a'))
tell('exchange', lambda: (raw(316, -100, b'm1', -100, b'md', 2), os.path.isdir('m1')))
tell('keep', lambda: raw(316, -100, b'm1', -100, b'm2', 1))
tell('own', lambda: open('/proc/self/oom_score_adj', 'w').write(open('/proc/self/oom_score_adj').read()))
tell('name', lambda: (open('/proc/thread-self/comm', 'w').write('odd'), open('/proc/self/comm').read()))
# Pipes with names: who writes waits for who reads.
got = []
reader = threading.Thread(target=lambda: got.append(open('p').read()))
tell('no reader', lambda: opened('p', W | os.O_NONBLOCK))
reader.start()
tell('fifo', lambda: open('p', 'w').write('through'))
reader.join()
tell('got', lambda: got)
tell('both', lambda: opened('p', R))
# A signal ends the wait.
import signal
class Rang(Exception): pass
def ring(*_): raise Rang
signal.signal(signal.SIGALRM, ring)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    open('p', 'w')
except Rang: print('rang')
# In another root.
if os.getuid() == 0:
    os.symlink('/f2', 'd/abs'); open('d/f2', 'w').close()
    child = os.fork()
    if child == 0:
        os.chroot('d'); os.chdir('/')
        tell('inside', lambda: (open('/abs', 'w').write('x'), open('../../f3', 'w').write('y'), sorted(os.listdir('/'))))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print(open('d/f2').read(), sorted(os.listdir('.')))
    # As somebody else.
    os.chmod('.', 0o777); os.mkdir('closed', 0o700); open('closed/x', 'w').close()
    child = os.fork()
    if child == 0:
        os.setgroups([7]); os.setgid(65534); os.setuid(65534)
        tell('theirs', lambda: (open('theirs', 'w').close(), os.stat('theirs').st_uid, os.stat('theirs').st_gid))
        tell('not theirs', lambda: opened('f', W))
        tell('closed', lambda: opened('closed/x', W))
        tell('chown', lambda: os.chown('theirs', 0, 0))
        tell('remove', lambda: os.unlink('closed/x'))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print(sorted(os.listdir('.')), os.path.exists('closed/x'))
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_do_what_they_do_without_a_supervisor() {
    for guarded in [false, true] {
        let mut fixture = Fixture::new();
        fs::write(fixture.temp.path().join("odd.py"), ODD).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(fixture.temp.path(), open).unwrap();
        let alone = fixture.temp.path().join("alone");
        fs::create_dir(&alone).unwrap();
        let run = |folder: &Path| {
            let mut command = Command::new("python3");
            command.arg("../odd.py").current_dir(folder).stdin(Stdio::null());
            command
        };
        let wanted = run(&alone).output().unwrap();
        if guarded {
            fixture.guard = Guard { roots: vec![fixture.root()], ..Guard::default() };
        }
        let ran = fixture.run("exec python3 ../odd.py");
        let text = |output: &[u8], folder: &str| String::from_utf8_lossy(output).replace(folder, "ROOT");
        let want = text(&wanted.stdout, "/alone/") + &text(&wanted.stderr, "/alone/");
        let told = text(&ran.output.stdout, "/tree/") + &text(&ran.output.stderr, "/tree/");
        let other = want.lines().zip(told.lines()).filter(|(want, told)| want != told);
        assert_eq!(other.collect::<Vec<_>>(), [], "guarded: {guarded}");
        assert_eq!(told.lines().count(), want.lines().count(), "{told}");
        assert!(want.contains("rang") && want.contains("through"), "{want}");
        assert_eq!(ran.effects, [], "guarded: {guarded}");
    }
}
