//! What the read-only list says of programs is tried: every listed option in every position, in other spellings and beside
//! letters that are not listed. Each line that is let pass is run by the program itself, under a filter of system calls that
//! ends it when it writes, removes, runs, connects or signals; a file beside the project and one with secrets in it tell when
//! they were opened.
//!
//! Each program has its share of lines; `COCODE_OPTION_FUZZ=all cargo test --test it option_fuzz` tries all of them, and a
//! program's name in place of `all` those of the program.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cocode::permission::{Access, Behavior, Disk, Mode, Places, Query, RuleSet, decide, listed_options};

/// Lines of a program that are tried where not all are asked for.
const SHARE: usize = 12;

/// Programs with a language of their own: words that are put together, up to three at a time.
#[rustfmt::skip]
const LANGUAGES: &[(&str, &[&str])] = &[
    ("sed", &["-n", "-i", "-e", "p", "w new.txt", "-ne", "-f", "run.sed", "--expression", "-s", "-E", "--", "1e touch new.txt", "s/o/p/w new.txt", "-z", "--in-place", "-fp", "-nf"]),
    ("date", &["+%s", "-d", "now", "-s", "01010101", "-u", "-r", "a.txt", "--date", "--set", "-I", "--", "-us", "-f", "-d@0"]),
    ("xxd", &["-a", "-ac", "-c", "8", "-r", "a.txt", "new.txt", "-p", "-pr", "-l4", "-s", "-cols", "-", "--", "-u", "--revert", "-i", "-E", "-name"]),
    ("find", &[".", "-name", "*", "-print", "-delete", "-fprint", "new.txt", "-exec", "rm", ";", "-ls", "-fls", "-P", "-newer", "a.txt", "-o", "-printf", "-prune", "!", "-files0-from"]),
    ("jq", &[".", "-n", "-r", "a.json", "-f", "run.sed", "--arg", "x", "env", "--indent", "1", "--slurpfile", "-rn", "input", "-L"]),
    ("ps", &["-e", "-f", "-ef", "aux", "-o", "pid", "-p", "1", "e", "-C", "x", "-eL", "--sort", "pid", "-y"]),
    ("tar", &["tf", "a.tar", "-tf", "xf", "-tvf", "-x", "--to-command=./run.sh", "a.txt", "-f", "-C", "sub", "tzf", "cf"]),
    ("awk", &["{ print }", "-F:", "-v", "x=1", "a.txt", "-f", "run.awk", "{ print > \"new.txt\" }", "BEGIN { system(\"touch new.txt\") }", "--", "-W", "exec"]),
    ("hostname", &["-f", "-s", "-b", "x", "-F", "a.txt", "-i"]),
    ("bash", &["--version", "-c", "touch new.txt"]),
    ("tar", &["--version", "-cf", "new.txt", "a.txt"]),
    ("gzip", &["--version", "a.txt", "-k"]),
    ("curl", &["--version", "-o", "new.txt"]),
    ("gcc", &["--version", "a.c", "-o", "new.txt", "@args"]),
    ("make", &["--version", "-f", "a.mk", "-v", "--eval=x:;touch new.txt"]),
];

/// Programs that wait for what never comes, or ask the network for their answer.
const LEFT_OUT: &[&str] = &["sleep", "hostname", "whereis"];

/// Scripts that start the program they stand for, and one that starts what reads the archive.
const STARTERS: &[&str] = &["egrep", "fgrep", "which", "tar", "shasum"];

/// Programs that open for writing what they do not write: their terminal, or a folder to hear that it is one.
const OPENERS: &[&str] = &["bash", "shasum"];

/// A folder with something to destroy, and a secret beside it.
fn victim(root: &Path) -> Places {
    let project = root.join("project");
    std::fs::create_dir_all(project.join("sub")).unwrap();
    std::fs::create_dir_all(root.join("home")).unwrap();
    std::fs::write(root.join("secret.txt"), "secret\n").unwrap();
    for (name, text) in [
        ("a.txt", "one two\nthree\n"),
        ("b.txt", "one\n"),
        ("new.txt", "old\n"),
        ("1", "one\n"),
        ("x", "x\n"),
        ("a.json", "{\"a\": 1}\n"),
        ("args", "-o new.txt\n"),
        ("run.sed", "w new.txt\n"),
        ("run.awk", "{ print > \"new.txt\" }\n"),
        ("run.sh", "#!/bin/sh\n: > new.txt\n"),
        ("sub/c.txt", "c\n"),
        ("sub/.env", "KEY=one\n"),
    ] {
        std::fs::write(project.join(name), text).unwrap();
    }
    let home = root.join("home");
    Places { cwd: project.clone(), project, cocode_home: home.join(".claude"), home: Some(home), ..Places::default() }
}

/// All lines for one program of the list.
fn spelled(name: &str, options: &[(String, bool)]) -> Vec<Vec<String>> {
    const VALUES: [&str; 5] = ["1", "a.txt", "x", "../secret.txt", "@args"];
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| lines.push(words.iter().map(|word| (*word).to_owned()).collect());
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(['@', '.']).collect();
    for (option, valued) in options {
        let option = option.as_str();
        let values: &[&str] = if *valued { &VALUES } else { &["1"] };
        for value in values {
            let next: &[&str] = if *valued { &[option, value] } else { &[option] };
            for line in [
                [next, &["a.txt"]].concat(),
                [&["a.txt"], next].concat(),
                [next, &["a.txt", "new.txt"]].concat(),
                [&["a.txt"], next, &["new.txt"]].concat(),
                [&["a.txt", "new.txt"], next].concat(),
                [&["--", "a.txt"], next].concat(),
                [&["-", "--"], next].concat(),
                [next, &["--", "new.txt", "a.txt"]].concat(),
                [next, next, &["a.txt"]].concat(),
                [next, &["one", "sub"]].concat(),
                [next, &["one"]].concat(),
                [next, &["sub", "."]].concat(),
            ] {
                add(&line);
            }
        }
        for value in VALUES.into_iter().chain(["new.txt"]) {
            add(&[option, value]);
            add(&[option, value, "new.txt"]);
            add(&[&format!("{option}{value}"), "a.txt"]);
            add(&[&format!("{option}={value}"), "a.txt"]);
        }
        if let Some(long) = option.strip_prefix("--") {
            for end in 1..long.len() {
                add(&[&format!("--{}", &long[..end]), "a.txt", "new.txt"]);
            }
            add(&[&option[1..], "a.txt", "new.txt"]);
            add(&[&format!("{option}x"), "a.txt"]);
        } else {
            for letter in &letters {
                add(&[&format!("{option}{letter}"), "a.txt", "new.txt"]);
                add(&[&format!("{option}{letter}"), "a.txt"]);
                add(&[&format!("{option}{letter}new.txt"), "a.txt"]);
                add(&[&format!("-{letter}{}", &option[1..]), "a.txt", "new.txt"]);
                add(&[&format!("+{letter}"), option, "a.txt", "new.txt"]);
            }
        }
    }
    for letter in &letters {
        add(&[&format!("-{letter}"), "a.txt", "new.txt"]);
        add(&["a.txt", &format!("-{letter}new.txt")]);
        add(&["a.txt", &format!("-{letter}")]);
    }
    for word in
        ["output", "compress-program", "files0-from", "to-file", "pre", "compile", "magic-file", "check", "debug"]
    {
        add(&[&format!("--{word}"), "new.txt", "a.txt"]);
        add(&[&format!("--{word}=new.txt"), "a.txt"]);
    }
    // What only hangs proves nothing.
    lines.retain(|words| {
        name != "tail"
            || !words.iter().any(|word| {
                word.starts_with("--fo")
                    || word.starts_with("--re")
                    || word.starts_with('-') && !word.starts_with("--") && word.contains(['f', 'F'])
            })
    });
    lines
}

/// All lines of up to three words of a language.
fn combined(words: &[&str]) -> Vec<Vec<String>> {
    let mut lines = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..3 {
        let until = lines.len();
        for at in from..until {
            for word in words {
                let mut line: Vec<String> = lines[at].clone();
                line.push((*word).to_owned());
                lines.push(line);
            }
        }
        from = until;
    }
    lines
}

fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=+:,@".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Where the program is.
fn installed(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

/// The filter: what changes anything ends the process. Only the first start, told by where its path lies, is let pass.
fn filter(path: *const libc::c_char, name: &str) -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const SET: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let op = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let argument = |at: u32| op(LOAD, 16 + 8 * at, 0, 0);
    let number = |number: libc::c_long| u32::try_from(number).unwrap();
    let kill = op(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0);
    let pass = op(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let mut program = vec![op(LOAD, 0, 0, 0)];
    let mut never = vec![
        libc::SYS_renameat2,
        libc::SYS_unlinkat,
        libc::SYS_mkdirat,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_mknodat,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_truncate,
        libc::SYS_ftruncate,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_fsetxattr,
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_sethostname,
        libc::SYS_mount,
        libc::SYS_ptrace,
        libc::SYS_openat2,
        libc::SYS_execveat,
        libc::SYS_copy_file_range,
        libc::SYS_bind,
    ];
    #[cfg(target_arch = "x86_64")]
    never.extend([
        libc::SYS_creat,
        libc::SYS_rename,
        libc::SYS_renameat,
        libc::SYS_unlink,
        libc::SYS_rmdir,
        libc::SYS_mkdir,
        libc::SYS_link,
        libc::SYS_symlink,
        libc::SYS_mknod,
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_lchown,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
    ]);
    for call in never {
        program.extend([op(EQUAL, number(call), 0, 1), kill]);
    }
    let both = if OPENERS.contains(&name) { 0 } else { libc::O_RDWR };
    let writes = u32::try_from(both | libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND).unwrap();
    #[cfg(target_arch = "x86_64")]
    program.extend([op(EQUAL, number(libc::SYS_open), 0, 4), argument(1), op(SET, writes, 0, 1), kill, pass]);
    program.extend([op(EQUAL, number(libc::SYS_openat), 0, 4), argument(2), op(SET, writes, 0, 1), kill, pass]);
    // The name service is asked through a socket of the machine.
    let local = u32::try_from(libc::AF_UNIX).unwrap();
    program.extend([op(EQUAL, number(libc::SYS_socket), 0, 4), argument(0), op(EQUAL, local, 1, 0), kill, pass]);
    if !STARTERS.contains(&name) {
        let at = path as u64;
        let (low, high) = (at as u32, (at >> 32) as u32);
        program.extend([
            op(EQUAL, number(libc::SYS_execve), 0, 6),
            argument(0),
            op(EQUAL, low, 0, 3),
            op(LOAD, 20, 0, 0),
            op(EQUAL, high, 0, 1),
            pass,
            kill,
        ]);
    }
    program.push(pass);
    program
}

/// How a run ended.
enum End {
    Quiet,
    /// It was ended by the filter.
    Marked,
    /// This machine takes no filter.
    Unfiltered,
}

fn is_marked(status: ExitStatus) -> bool {
    // A script tells the end of what it started as its own.
    status.signal() == Some(libc::SIGSYS) || status.code() == Some(128 + libc::SIGSYS)
}

fn run(program: &Path, name: &str, words: &[String], places: &Places, strict: bool) -> End {
    let path = CString::new(program.as_os_str().as_bytes()).unwrap();
    let mut command = Command::new(program);
    command
        .args(words)
        .current_dir(&places.project)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", places.home.as_ref().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut set = vec![
        CString::new([b"PATH=", std::env::var_os("PATH").unwrap().as_bytes()].concat()).unwrap(),
        CString::new([b"HOME=", places.home.as_ref().unwrap().as_os_str().as_bytes()].concat()).unwrap(),
    ];
    if strict {
        set.push(c"POSIXLY_CORRECT=1".to_owned());
    }
    let given: Vec<CString> = std::iter::once(CString::new(name).unwrap())
        .chain(words.iter().map(|word| CString::new(word.as_str()).unwrap()))
        .collect();
    let pointers =
        |all: &[CString]| -> Vec<usize> { all.iter().map(|text| text.as_ptr() as usize).chain([0]).collect() };
    let (arguments, environment) = (pointers(&given), pointers(&set));
    let rules = filter(path.as_ptr(), name);
    let start = move || {
        // SAFETY: only system calls, on memory that lives until the new program replaces it.
        unsafe {
            let rules =
                libc::sock_fprog { len: u16::try_from(rules.len()).unwrap(), filter: rules.as_ptr().cast_mut() };
            libc::alarm(5);
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const rules) != 0
            {
                return Err(std::io::Error::last_os_error());
            }
            libc::execve(path.as_ptr(), arguments.as_ptr().cast(), environment.as_ptr().cast());
        }
        let _ = (&path, &arguments, &environment, &given, &set);
        Err(std::io::Error::last_os_error())
    };
    // SAFETY: the closure allocates nothing.
    unsafe { command.pre_exec(start) };
    match command.status() {
        Ok(status) if is_marked(status) => End::Marked,
        Ok(_) => End::Quiet,
        Err(_) => End::Unfiltered,
    }
}

/// Tells whether one of some files was opened since it was last asked.
pub(crate) struct Watch(libc::c_int);

impl Watch {
    pub(crate) fn new(files: &[&Path]) -> Watch {
        // SAFETY: plain system calls.
        let watch = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        assert!(watch >= 0);
        for file in files {
            let file = CString::new(file.as_os_str().as_bytes()).unwrap();
            // SAFETY: as above.
            assert!(unsafe { libc::inotify_add_watch(watch, file.as_ptr(), libc::IN_OPEN) } >= 0);
        }
        Watch(watch)
    }

    pub(crate) fn was_opened(&self) -> bool {
        let mut room = [0_u8; 4096];
        // SAFETY: the buffer is as long as is said.
        unsafe { libc::read(self.0, room.as_mut_ptr().cast(), room.len()) > 0 }
    }
}

#[test]
fn what_the_list_lets_pass_only_reads() {
    let asked = std::env::var("COCODE_OPTION_FUZZ").unwrap_or_default();
    let all = !asked.is_empty();
    let mut programs: Vec<(&str, Vec<Vec<String>>)> =
        listed_options().into_iter().map(|(name, options)| (name, spelled(name, &options))).collect();
    programs.extend(LANGUAGES.iter().map(|(name, words)| (*name, combined(words))));
    let wanted = |name: &str| matches!(asked.as_str(), "" | "all") || name == asked;
    programs.retain(|(name, _)| !LEFT_OUT.contains(name) && wanted(name));
    let (next, made, ran) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let (wrong, missing) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let temp = tempfile::tempdir().unwrap();
                let root = temp.path().canonicalize().unwrap();
                let places = victim(&root);
                let before = super::plan_enforced::snapshot(&root);
                let watch = Watch::new(&[&root.join("secret.txt"), &places.project.join("sub/.env")]);
                while let Some((name, lines)) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(program) = installed(name) else {
                        missing.lock().unwrap().push(*name);
                        continue;
                    };
                    // An odd step meets every kind of line.
                    let step = if all { 1 } else { (lines.len() / SHARE).max(1) | 1 };
                    // A value that is really an operand is read: cheap to try, and easy to get wrong.
                    let always = |words: &[String]| words.len() == 2 && words[1] == "../secret.txt";
                    let chosen = lines.iter().enumerate().filter(|(at, words)| at % step == 0 || always(words));
                    for (_, words) in chosen {
                        made.fetch_add(1, Ordering::Relaxed);
                        let line: Vec<String> =
                            std::iter::once((*name).to_owned()).chain(words.iter().map(|word| quoted(word))).collect();
                        let line = line.join(" ");
                        if judged(&line, &places) != Behavior::Allow {
                            continue;
                        }
                        for strict in [false, true] {
                            ran.fetch_add(1, Ordering::Relaxed);
                            let end = run(&program, name, words, &places, strict);
                            let opened = watch.was_opened() && !super::permission_fuzz::keeps_closed(&line, &places);
                            if matches!(end, End::Marked) || opened {
                                wrong.lock().unwrap().push(format!("{line} (POSIXLY_CORRECT: {strict})"));
                            }
                            assert!(!matches!(end, End::Unfiltered), "{line}: no filter can be set here");
                        }
                    }
                    if super::plan_enforced::snapshot(&root) != before {
                        wrong.lock().unwrap().push(format!("{name} changed the folder"));
                    }
                    // Looking at the folder opened it, too.
                    watch.was_opened();
                }
            });
        }
    });
    let (wrong, missing) = (wrong.into_inner().unwrap(), missing.into_inner().unwrap());
    let (made, ran) = (made.into_inner(), ran.into_inner());
    println!("{made} lines made, {ran} run, {} marks; not installed: {}", wrong.len(), missing.join(" "));
    assert!(wrong.is_empty(), "{} of {ran}:\n{}", wrong.len(), wrong.join("\n"));
    // Lines that are never let pass prove nothing.
    assert!(ran * 4 >= made, "only {ran} runs of {made} lines");
}

/// What is decided about a line in plan mode, without rules.
pub(super) fn judged(line: &str, places: &Places) -> Behavior {
    let access = Access::Shell { command: line.into(), cwd: places.project.clone() };
    let rules = RuleSet::default();
    let query = Query {
        tool: "Bash",
        access: &access,
        mode: Mode::Plan,
        rules: &rules,
        places,
        vocabulary: cocode::tools::RULES,
        level: cocode::sandbox::Level::Kernel,
    };
    decide(&query, &Disk).behavior
}
