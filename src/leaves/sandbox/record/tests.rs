//! A real bash under the filter, with the supervisor in the test's own process.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::*;
use crate::sandbox::{Before, Denied, Effect, Guard, Record, Refused, Saved};
use crate::stdx::process::start::Join;

mod racing;

struct Fixture {
    temp: tempfile::TempDir,
    largest: u64,
    budget: u64,
    protected: Vec<PathBuf>,
    guard: Guard,
}

/// What a command left.
struct Ran {
    output: Output,
    manifest: Manifest,
    effects: Vec<Effect>,
}

impl Fixture {
    fn new() -> Fixture {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("tree")).unwrap();
        Fixture { temp, largest: 1 << 20, budget: 4 << 20, protected: Vec::new(), guard: Guard::default() }
    }

    fn root(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join("tree")
    }

    fn store(&self) -> PathBuf {
        self.temp.path().join("store")
    }

    fn run(&self, script: &str) -> Ran {
        let record = Record {
            store: self.store(),
            largest: self.largest,
            budget: self.budget,
            skip: [Path::new("/proc"), Path::new("/dev"), self.temp.path()].map(PathBuf::from).to_vec(),
            within: vec![self.root()],
        };
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-c", script]).current_dir(self.root());
        let (output, effects) = supervised(command, &record, (&self.protected, &self.guard)).unwrap();
        Ran { output, manifest: Manifest::read(&self.store()).unwrap(), effects }
    }

    /// Runs `before` alone, then the script, and says of every path below the tree what was there, and what was kept.
    fn touched(&self, script: &str) -> Vec<String> {
        let ran = self.run(script);
        let root = self.root();
        let told = |touched: &Touched| {
            let path = touched.path.strip_prefix(&root).unwrap_or(&touched.path).display();
            let kept = touched.saved().map(|name| fs::read_to_string(self.store().join(name)).unwrap());
            match (&touched.before, kept) {
                (Before::File { mode, .. }, Some(text)) => format!("{path} {mode:o} {text}"),
                (Before::File { mode, saved: Saved::Untouched, .. }, _) => format!("{path} {mode:o}"),
                (Before::File { saved, .. }, _) => format!("{path} {saved:?}"),
                (Before::Link { target }, _) => format!("{path} -> {}", target.display()),
                (Before::Folder { mode }, _) => format!("{path}/ {mode:o}"),
                (Before::Absent, _) => format!("{path} -"),
                (Before::Special, _) => format!("{path} special"),
            }
        };
        let missed = ran.manifest.missed.iter().map(|why| format!("missed: {why}"));
        let named = ran.manifest.touched.iter().filter(|touched| touched.path.starts_with(&root));
        let mut told: Vec<String> = named.map(told).chain(missed).collect();
        told.sort();
        told
    }
}

/// Keeps what is told, and refuses what there is no room for.
struct Told(std::sync::mpsc::Sender<Effect>);

impl Watcher for Told {
    fn tell(&mut self, effect: Effect) {
        self.0.send(effect).unwrap();
    }

    fn full(&mut self, _: &Path) -> Full {
        Full::Refuse
    }
}

/// Runs a command under the filter to its end, and answers its calls.
fn supervised(
    mut command: Command,
    record: &Record,
    (protected, guard): (&[PathBuf], &Guard),
) -> io::Result<(Output, Vec<Effect>)> {
    let recording = Recording::new(Some(record), protected.to_vec(), guard.clone())?;
    let child = {
        // SAFETY: the recording outlives the start, and joining it allocates nothing.
        let joining: Joining<'static> = unsafe { std::mem::transmute(recording.joining()) };
        // SAFETY: as above.
        unsafe {
            command.pre_exec(move || {
                joining.join();
                Ok(())
            })
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?
    };
    let (sender, effects) = std::sync::mpsc::channel();
    let serving = recording.serve(None, Told(sender))?;
    let output = child.wait_with_output()?;
    serving.join().unwrap();
    Ok((output, effects.into_iter().collect()))
}

/// What `script` touches in a tree that `before` makes.
fn check(before: &str, script: &str, want: &[&str]) {
    let fixture = Fixture::new();
    let made = Command::new("bash").args(["-c", before]).current_dir(fixture.root()).status().unwrap();
    assert!(made.success(), "{before}");
    assert_eq!(fixture.touched(script), want, "{script}");
}

#[test]
fn what_is_touched_is_saved_before() {
    let a = "printf one > a; chmod 640 a";
    // Reading, and failing, leave nothing.
    check(a, "cat a; ls; grep one a; test -w a; : < a; exec 3< a", &[]);
    check(a, "rm b; rmdir a; mkdir a; ln -s x a; rm -r nowhere; mv b c; truncate -s 1 -c no", &[]);
    check(a, "echo two > /dev/null; (exec 2>/dev/null; echo x >&2)", &[]);
    // Contents.
    check(a, "echo two > a", &["a 640 one"]);
    check(a, "echo two >> a", &["a 640 one"]);
    check(a, "echo two > a; echo three > a; rm a; echo x > a", &["a 640 one"]);
    check(a, "truncate -s 1 a", &["a 640 one"]);
    check(a, ": <> a", &["a 640 one"]);
    // Births, where nothing had that name before.
    check(a, "echo x > b; mkdir c; ln -s a d; mkfifo e; echo y > c/f", &["b -", "c -", "c/f -", "d -", "e -"]);
    check(a, "echo x > b; rm b", &["b -"]);
    // Names.
    check(a, "rm a", &["a 640 one"]);
    check(a, "mv a b", &["a 640 one", "b -"]);
    check("printf one > a; printf two > b", "mv a b", &["a 644 one", "b 644 two"]);
    check("ln -s a b; mkdir -m 750 c", "rm b; rmdir c", &["b -> a", "c/ 750"]);
    check("ln -s a b", "echo x > b", &["a -"]);
    check("mkdir d; ln -s d l; printf x > d/f", "rm l/f", &["d/f 644 x"]);
    check(
        "mkdir -p d/e; printf x > d/e/f; ln -s f d/l",
        "mv d g",
        &["d/ 755", "d/e/ 755", "d/e/f 644 x", "d/l -> f", "g -", "g/e -", "g/e/f -", "g/l -"],
    );
    // Modes and times.
    check(a, "chmod 600 a; chmod 700 a", &["a 640"]);
    check(a, "chmod 600 a; echo x > a", &["a 640 one"]);
    check("mkdir -m 750 d", "chmod 700 d", &["d/ 750"]);
    check(a, "touch -c -d 2001-01-01 a", &["a 640"]);
    // Where the shell is, and what it opened, count.
    check("mkdir d; printf x > d/a", "cd d; rm ../d/./a", &["d/a 644 x"]);
}

#[test]
fn a_file_that_was_kept_by_name_is_copied_before_it_is_written() {
    check("printf one > a", "mv a b; echo two > b", &["a 644 one", "b -"]);
    check("printf one > a", "mv a b; echo two >> b; mv b c; echo x >> c", &["a 644 one", "b -", "c -"]);
    check("printf one > a", "ln a b; echo two > b", &["a 644 one", "b -"]);
    check("printf one > a; ln a b", "rm a; echo two > b", &["a 644 one", "b 644 one"]);
    check("printf one > a; ln a b", "echo two > a; mv b c", &["a 644 one", "b 644 one", "c -"]);
    check("mkdir d; printf one > d/a", "mv d e; echo two > e/a", &["d/ 755", "d/a 644 one", "e -", "e/a -"]);
}

#[test]
fn names_that_are_not_text_are_kept() {
    let fixture = Fixture::new();
    let ran = fixture.run(r"touch $'a\xff'; ln -s $'\xfe' l; rm l; ln -s $'x\xfe' l; rm l");
    let found: Vec<&Path> = ran.manifest.touched.iter().map(|touched| touched.path.as_path()).collect();
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"a\xff");
    assert_eq!(found, [fixture.root().join(name), fixture.root().join("l")]);
}

#[test]
fn what_is_too_large_is_told_before_it_is_lost() {
    let fixture = Fixture::new();
    let big = fixture.root().join("big");
    fs::write(&big, vec![7; (1 << 20) + 1]).unwrap();
    fs::write(fixture.root().join("holes"), "x").unwrap();
    let ran = fixture.run("truncate -s 1G holes; echo x >> holes; echo x > big; rm big");
    let why = "it has 2 MiB, more than the 1 MiB that undo keeps of a file";
    let before = Before::File { mode: 0o644, size: (1 << 20) + 1, saved: Saved::Lost(why.into()) };
    assert_eq!(ran.effects, [Effect::Touched { path: big.clone(), before: before.clone() }]);
    assert!(ran.manifest.touched.iter().any(|touched| touched.path == big && touched.before == before));
    // A name costs nothing, however large the file is.
    fs::write(&big, vec![7; (1 << 20) + 1]).unwrap();
    let fixture = Fixture { temp: fixture.temp, ..Fixture::new() };
    fs::remove_dir_all(fixture.store()).unwrap();
    let ran = fixture.run("rm big; truncate -s 5 holes");
    assert_eq!(ran.effects, []);
    let sizes: Vec<u64> = ran
        .manifest
        .touched
        .iter()
        .map(|it| fs::metadata(fixture.store().join(it.saved().unwrap())).unwrap().len())
        .collect();
    assert_eq!(sizes, [(1 << 20) + 1, (1 << 30) + 2]);
}

#[test]
fn a_command_has_a_budget() {
    let mut fixture = Fixture::new();
    fixture.budget = 8192;
    check_budget(&fixture);
}

fn check_budget(fixture: &Fixture) {
    for name in ["a", "b", "c"] {
        fs::write(fixture.root().join(name), vec![1; 4096]).unwrap();
    }
    let ran = fixture.run("for f in a b c; do echo x > $f; done");
    let lost: Vec<PathBuf> = ran
        .effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Touched { path, .. } => Some(path),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [fixture.root().join("c")]);
}

#[test]
fn protected_paths_stay_as_they_are() {
    let mut fixture = Fixture::new();
    fs::create_dir_all(fixture.root().join("x/hooks")).unwrap();
    fixture.protected = vec![fixture.root().join("x/hooks")];
    let ran =
        fixture.run("echo a > x/hooks/pre; mkdir x/hooks/d; mv x/hooks y; chmod 700 x/hooks; echo b > x/ok; echo $?");
    let denied: Vec<&Effect> = ran.effects.iter().collect();
    let want = ["x/hooks/pre", "x/hooks/d", "x/hooks", "x/hooks"]
        .map(|name| Effect::Denied { what: Denied::Write(fixture.root().join(name)) });
    assert_eq!(denied, want.iter().collect::<Vec<_>>());
    assert_eq!(String::from_utf8_lossy(&ran.output.stdout), "0\n");
    assert!(fixture.root().join("x/hooks").is_dir() && fixture.root().join("x/ok").is_file());
}

/// By its name a rule refuses what is not there yet, too.
#[test]
fn what_rules_refuse_by_name_is_not_made() {
    let mut fixture = Fixture::new();
    let refused =
        |parts: &[&str]| Refused { base: fixture.root(), parts: parts.iter().map(|part| (*part).to_owned()).collect() };
    let refused = vec![refused(&["**", "*.lock"]), refused(&["gen", "*.txt"]), refused(&["new", "**"])];
    fixture.guard = Guard { refused, ..Guard::default() };
    let ran = fixture.run(
        "echo x > a.lock; echo x > t; mv t B.LOCK; ln t c.lock; ln -s t d.lock; mkdir e.lock; mkdir -p new/x; mkdir gen
        echo x > gen/a.txt; (cd gen; echo x > ../gen/b.txt); rmdir gen; mkdir d; echo x > d/a.txt; mv -T d gen
        mkdir .git node_modules; echo x > .git/index.lock; echo x > node_modules/y.lock; echo x > gen.md; mv gen.md t2",
    );
    let told = |effect: &Effect| match effect {
        Effect::Denied { what: Denied::Write(path) } => {
            path.strip_prefix(fixture.root()).unwrap().display().to_string()
        }
        other => format!("{other:?}"),
    };
    let denied: Vec<String> = ran.effects.iter().map(told).collect();
    let want = "a.lock B.LOCK c.lock d.lock e.lock new gen/a.txt gen/b.txt gen/a.txt";
    assert_eq!(denied.join(" "), want, "{:?}", ran.output);
    assert!(fixture.root().join(".git/index.lock").is_file() && fixture.root().join("t2").is_file());
}

/// Each row: what is there, what a command tries, and what it is denied. Nothing that is guarded is another one afterwards.
#[test]
fn what_is_guarded_stays() {
    let before = "mkdir -p .git/hooks .claude sub/.git/hooks node_modules/a/.claude .cargo src; echo own > .git/config; \
        echo own > .claude/s; echo own > sub/.git/config; echo own > .npmrc; echo own > .cargo/config.toml; echo x > src/a; \
        echo evil > src/hook; mkdir -p new/.claude; echo evil > node_modules/a/.claude/s";
    for (script, denied) in [
        ("echo x > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("cp src/hook .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("mv src/hook .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("ln src/hook .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("ln -s ../../src/hook .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("ln .git/config src/c; echo x >> src/c", ".git/config"),
        ("ln -s ../.git src/g; echo x >> src/g/config", ".git/config"),
        ("rm .npmrc; mv .npmrc x; chmod 777 .npmrc; truncate -s 0 .npmrc", ".npmrc .npmrc .npmrc .npmrc"),
        // The folder above goes away, and comes back with more in it.
        ("mv .git x && echo x > x/hooks/pre-commit && mv x .git", ".git"),
        ("mv .cargo x && echo x > x/config.toml && mv x .cargo", ".cargo/config.toml"),
        ("mv sub OUT/x && echo x > OUT/x/.git/config && mv OUT/x sub", "sub/.git"),
        ("mv .claude src/c", ".claude"),
        ("rm -rf .git; mkdir -p .git/hooks && echo x > .git/hooks/a", ".git/config .git/hooks .git/hooks/a"),
        ("mkdir src/.cocode; echo x > src/.cocode/config.toml", "src/.cocode"),
        ("mkdir x; echo x > x/config.toml; mv x src/.cargo", "src/.cargo/config.toml"),
        ("mkdir -p OUT/y/.claude; mv OUT/y src/y", "src/y/.claude"),
        ("mv node_modules/a src/a2", "src/a2/.claude"),
        // Another could be made where a repository was.
        ("mv sub sub2", "sub/.git"),
        ("mkdir -p a/.git; mv sub a/.git/sub", "sub/.git"),
        // A name is not its own because a call failed that was to give it one.
        ("mkdir -p k/.git; mv k/.git y; mv -T y src; echo x > src/.mcp.json", "src/.mcp.json"),
        ("mkdir -p k/.git; mv -T k/.git .git; echo x > .git/hooks/pre-commit", ".git .git/hooks/pre-commit"),
        ("mkdir -p k/.git; mv -T k sub; echo x > sub/.git/config", "sub/.git/config"),
        // A link in place of a folder with protected names.
        ("mkdir e; echo x > e/config.toml; ln -s e src/.cargo; ln -s e x; mv x src/.cargo", "src/.cargo src/.cargo"),
        // Names that look like those of nothing.
        (
            "mkdir 'd (deleted)'; echo x > 'd (deleted)/x'; mv 'd (deleted)/x' .git/hooks/pre-commit",
            ".git/hooks/pre-commit",
        ),
        (
            "ln -s .git/hooks/pre-commit l1; for n in {2..40}; do ln -s l$((n - 1)) l$n; done; echo x > l40",
            ".git/hooks/pre-commit",
        ),
        (
            "python3 -c 'import ctypes, os; tree = ctypes.CDLL(None).syscall(467, -100, b\".\", 1, 0, 0); \
            os.write(os.open(\".npmrc\", os.O_WRONLY, dir_fd=tree), b\"evil\")'",
            "",
        ),
        // By way of what the kernel shows of the process itself.
        ("exec 3< .git/config; echo x >> /proc/self/fd/3", ".git/config"),
        ("exec 3< .git/config; echo x >> /dev/fd/3", ".git/config"),
        ("exec 3< .git/config; echo x >> /proc/thread-self/fd/3", ".git/config"),
        ("exec 3< .git; echo x >> /proc/self/fd/3/config", ".git/config"),
        ("echo x >> /proc/self/cwd/.git/config", ".git/config"),
        ("echo x >> /proc/self/root$PWD/.git/config", ".git/config"),
        ("ln -s /proc/self/cwd src/w; echo x >> src/w/.git/config", ".git/config"),
        ("cd src; echo x >> /proc/self/task/../cwd/../.git/config", ".git/config"),
        ("mount --bind .git src; echo x >> src/config", ""),
        (
            "python3 -c 'import ctypes, os, struct; how = struct.pack(\"QQQ\", 2, 0, 16); f = ctypes.CDLL(None).syscall(437, \
            os.open(\".\", os.O_RDONLY), b\"/.git/config\", how, 24); os.write(f, b\"evil\")'",
            "",
        ),
        // What the kernel writes by itself, and flags that outlive a mode.
        ("python3 -c 'import ctypes; print(ctypes.CDLL(None).acct(b\".npmrc\"))'", ""),
        ("chattr +i .npmrc", ".npmrc"),
        (
            "python3 -c 'import fcntl, os, struct; fcntl.ioctl(os.open(\".npmrc\", os.O_RDONLY), 0x401c5820, bytes(28))'",
            ".npmrc",
        ),
        // All else works.
        (
            "echo x > .git/HEAD; echo x > .git/index; mkdir .git/refs; echo x > src/a; mv src src2; rm -r src2; touch .git",
            "",
        ),
        ("mkdir node_modules/b; echo x > node_modules/b/.npmrc; mv node_modules/a node_modules/c", ""),
        ("mkdir -p OUT/t; mv OUT/t src/t; mv src/t OUT/t2", ""),
        ("mkdir src/many; (cd src/many; seq 1500 | xargs mkdir); mv src/many src/more", ""),
        ("git init -q r && mkdir s && mv r s/r && echo x > s/r/.git/hooks/a && mv -T s t && rm -r t/r", ""),
        ("ln -s l1 l2; ln -s l2 l1; echo x > l1; ln -s a src/l; echo x > src/l", ""),
        ("echo x > /dev/null; echo x > /dev/stdout; exec 4> src/a; echo y > /dev/fd/4", ""),
        ("git init -q src/own && git -C src/own config a.b c && echo x > src/own/.git/hooks/a && rm -r src/own", ""),
        ("git init -q OUT/own && mv OUT/own src/own", ""),
    ] {
        let mut fixture = Fixture::new();
        let (root, out) = (fixture.root(), fixture.temp.path().canonicalize().unwrap());
        let made = Command::new("bash").args(["-c", before]).current_dir(&root).status().unwrap();
        assert!(made.success());
        fixture.guard = Guard { roots: vec![root.clone()], ..Guard::default() };
        let ran = fixture.run(&format!("export HOME=/nowhere; {}", script.replace("OUT", &out.display().to_string())));
        let told: Vec<String> = ran
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Denied { what: Denied::Write(path) } => {
                    Some(path.strip_prefix(&root).unwrap_or(path).display().to_string())
                }
                _ => None,
            })
            .collect();
        assert_eq!(told.join(" "), denied, "{script}: {:?}", ran.output);
        let blind = ran.effects.iter().any(|effect| matches!(effect, Effect::Denied { what: Denied::Call(_) }));
        assert!(!blind || script.contains("mount") || script.contains("python3"), "{script}: {:?}", ran.effects);
        let text = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
        for file in [".git/config", ".npmrc", ".cargo/config.toml", ".claude/s"] {
            assert_eq!(text(file), "own\n", "{script}: {file}");
        }
        assert!(!root.join(".git/hooks/pre-commit").exists(), "{script}");
    }
}

/// A file system's own commands make and remove trees without any call that names a path.
#[test]
fn commands_of_a_file_system_are_refused_or_told() {
    let make = "import fcntl, os\ntry: fcntl.ioctl(os.open('.', os.O_RDONLY), 0x5000940e, bytearray(4096))\nexcept OSError as e: \
        print(e.errno)";
    let mut fixture = Fixture::new();
    let ran = fixture.run(&format!("python3 -c \"{make}\"; echo x > a; cp --reflink=auto a b"));
    assert_eq!((ran.manifest.missed.len(), ran.effects.len()), (1, 0), "{:?}", ran.effects);
    fixture.guard = Guard { roots: vec![fixture.root()], ..Guard::default() };
    let ran = fixture.run(&format!("python3 -c \"{make}\"; cp --reflink=auto a c"));
    assert!(matches!(ran.effects[..], [Effect::Denied { what: Denied::Call(_) }]), "{:?}", ran.effects);
    assert_eq!(fs::read_to_string(fixture.root().join("c")).unwrap(), "x\n");
}

/// Flags in memory could be others by the time at which the kernel reads them.
#[test]
fn an_open_with_its_flags_in_memory_is_left_to_an_older_call() {
    let fixture = Fixture::new();
    let ran = fixture.run(
        "echo x > a; python3 -c 'import ctypes; libc = ctypes.CDLL(None, use_errno=True); how = (ctypes.c_uint64 * 3)(); \
        print(libc.syscall(437, -100, b\"a\", how, 24), ctypes.get_errno())'",
    );
    assert_eq!(String::from_utf8_lossy(&ran.output.stdout).trim(), format!("-1 {}", libc::ENOSYS));
}

/// Where a file goes that loses its name, others may write to it unseen.
#[test]
fn what_moves_to_where_nothing_is_recorded_is_kept_as_a_copy() {
    let fixture = Fixture::new();
    let root = fixture.root();
    fs::create_dir(root.join("d")).unwrap();
    for file in ["a", "b", "c", "d/f"] {
        fs::write(root.join(file), "one").unwrap();
    }
    fs::hard_link(root.join("c"), fixture.temp.path().join("c")).unwrap();
    let ran = fixture.run(
        "mv a ../a; echo evil > ../a; ln b ../b; echo evil > ../b; rm c; echo evil > ../c; mv d ../d; echo evil > ../d/f",
    );
    for (path, want) in [("a", "evil\n"), ("b", "evil\n"), ("c", "evil\n"), ("d/f", "evil\n")] {
        let touched = ran.manifest.touched.iter().find(|touched| touched.path == root.join(path)).unwrap();
        let kept = touched.saved().map(|name| fs::read_to_string(fixture.store().join(name)).unwrap());
        assert_eq!(kept.as_deref(), Some("one"), "{path}");
        assert_eq!(fs::read_to_string(fixture.temp.path().join(path)).unwrap(), want, "{path}");
    }
    // By a later command.
    let ran = Fixture::new();
    fs::write(ran.root().join("a"), "one").unwrap();
    let manifest = ran.run("mv a ../a").manifest;
    fs::write(ran.temp.path().join("a"), "evil").unwrap();
    let kept = manifest.touched[0].saved().map(|name| fs::read_to_string(ran.store().join(name)).unwrap());
    assert_eq!(kept.as_deref(), Some("one"));
}

/// What the kernel refuses before it does anything.
#[test]
fn calls_that_cannot_succeed_change_nothing() {
    let fixture = Fixture::new();
    fs::write(fixture.root().join("a"), "one").unwrap();
    let ran = fixture.run(
        "python3 -c 'import ctypes, os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)); os.dup(0)
for path, flags in [(\"a\", os.O_WRONLY | os.O_TRUNC), (\"b\", os.O_WRONLY | os.O_CREAT)]:
    try: os.open(path, flags)
    except OSError as e: print(e.errno)
libc = ctypes.CDLL(None, use_errno=True)
print(libc.linkat(-100, b\"a\", -100, b\"c\", 8), ctypes.get_errno(), libc.utimensat(-100, b\"a\", 0, 8), ctypes.get_errno())'",
    );
    let said = String::from_utf8_lossy(&ran.output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said, "24 24 -1 22 -1 22", "{:?}", ran.output);
    assert_eq!(fs::read_to_string(fixture.root().join("a")).unwrap(), "one");
    assert!(!fixture.root().join("b").exists() && !fixture.root().join("c").exists());
}

/// A file that is only held by its path is not open, a lease makes one call wait and no other, and nothing leaves a core.
#[test]
fn calls_wait_and_fail_as_the_kernel_says() {
    let fixture = Fixture::new();
    fs::write(fixture.root().join("a"), "one").unwrap();
    fs::write(fixture.root().join("core"), "own").unwrap();
    let ran = fixture.run(
        "python3 -uc 'import ctypes, fcntl, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
held = os.open(\"a\", os.O_PATH)
print(libc.fchmod(held, 0o600), ctypes.get_errno(), libc.fchown(held, 0, 0), ctypes.get_errno())
print(libc.futimens(held, None), ctypes.get_errno())
print(resource.getrlimit(resource.RLIMIT_CORE))
os.chmod(\"a\", 0o644)
def give_up(*_):
    # Another call meanwhile.
    open(\"b\", \"w\").close()
    print(\"given up\", flush=True)
    fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_UNLCK)
signal.signal(signal.SIGIO, give_up)
leased = os.open(\"a\", os.O_RDONLY)
fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_RDLCK)
child = os.fork()
if child == 0:
    os.truncate(\"a\", 1)
    print(\"cut\", flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], os.stat(\"a\").st_size)
if os.fork() == 0: os.abort()
os.wait()'",
    );
    let said = String::from_utf8_lossy(&ran.output.stdout).into_owned();
    let want = "-1 9 -1 9\n-1 9\n(0, 0)\ngiven up\ncut\n0 1\n";
    assert_eq!(said, want, "{:?}", ran.output);
    assert_eq!(fs::read_to_string(fixture.root().join("core")).unwrap(), "own");
}

/// Who may have a user namespace of their own has one, and is root in there.
#[test]
fn a_program_is_root_in_a_namespace_of_its_own() {
    let script = "unshare -r id -u; unshare -rm sh -c 'id -g'";
    let fixture = Fixture::new();
    let alone = Command::new("bash").args(["-c", script]).output().unwrap();
    let ran = fixture.run(script);
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text(&ran.output), text(&alone), "{:?}", ran.output);
}

/// In a folder that all share a command changes what it has made.
#[test]
fn what_others_left_in_a_shared_folder_stays() {
    let mut fixture = Fixture::new();
    let shared = fixture.root().join("shm");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("others"), "own").unwrap();
    fixture.guard = Guard { shared: vec![shared.clone()], ..Guard::default() };
    let ran = fixture
        .run("cd shm; echo x > a; echo y >> a; mv a b; echo z >> b; echo x >> others; rm others; mv b c; cat c; rm c");
    let denied = Effect::Denied { what: Denied::Write(shared.join("others")) };
    assert_eq!(ran.effects, [denied.clone(), denied]);
    assert_eq!(String::from_utf8_lossy(&ran.output.stdout), "x\ny\nz\n");
    assert_eq!(fs::read_to_string(shared.join("others")).unwrap(), "own");
}

#[test]
fn a_kill_in_the_middle_ends_the_supervisor_with_what_was_saved() {
    let fixture = Fixture::new();
    fs::write(fixture.root().join("a"), "one").unwrap();
    let ran = fixture.run("echo two > a; (while :; do echo x > b; rm b; done) & sleep 0.05; kill -9 $!; kill -9 $$");
    assert_eq!(ran.output.status.code(), None);
    assert_eq!(
        ran.manifest.touched[0].saved().map(|name| fs::read_to_string(fixture.store().join(name)).unwrap()),
        Some("one".into())
    );
}

#[test]
fn signals_that_come_meanwhile_do_no_harm() {
    let fixture = Fixture::new();
    let script = "trap 'n=$((n+1))' USR1; p=$$; (for i in $(seq 200); do kill -USR1 $p; done) & \
        for i in $(seq 200); do echo x > f$i; done; wait; wait; ls | wc -l";
    let ran = fixture.run(script);
    assert_eq!(String::from_utf8_lossy(&ran.output.stdout).trim(), "200");
    assert_eq!(ran.manifest.touched.len(), 200);
}

#[test]
fn a_second_supervisor_is_refused() {
    let fixture = Fixture::new();
    let filter = super::filter::Filter::new().unwrap();
    let mut inner = Command::new("true");
    // SAFETY: as for the first one.
    unsafe {
        inner.pre_exec(move || {
            filter.install()?;
            filter.install().map(drop)
        })
    };
    assert_eq!(inner.status().unwrap_err().raw_os_error(), Some(libc::EBUSY));
    drop(fixture);
}

#[test]
fn a_manifest_that_was_cut_short_is_read_to_there() {
    let fixture = Fixture::new();
    fixture.run("echo x > a; echo x > b");
    let path = fixture.store().join(MANIFEST);
    let bytes = fs::read(&path).unwrap();
    for cut in 0..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
        let manifest = Manifest::read(&fixture.store()).unwrap();
        let at_end = usize::from(bytes[cut] == b'\n');
        let ends = usize::from(manifest.began) + usize::from(manifest.ended.is_some());
        assert_eq!(ends + manifest.touched.len(), whole + at_end, "{cut}");
    }
}
