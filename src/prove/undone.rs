//! Programs that change and destroy, and whether undo and redo bring everything back.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::process::Command;

use super::Undone;
use super::escapes::count;
use crate::message::{CallId, Message};
use crate::sandbox::{Policy, Record, Sandbox};
use crate::session::entry::EntryKind;
use crate::session::{Session, recorded};
use crate::stdx::hash::sha256_hex;
use crate::stdx::programs;

/// Longest time of one program.
const PATIENCE: Duration = Duration::from_secs(60);

/// Files up to this size are compared by what they hold, in bytes; sparse ones by their size.
const LARGEST: u64 = 64 << 20;

/// What is there before each program: a repository with files that git ignores, and some that it does not know.
const TREE: &str = "
    git init -q && printf 'out/\\n.env\\n' > .gitignore && mkdir -p src/deep out docs
    printf 'one\\ntwo\\n' > src/a && printf 'b\\n' > src/deep/b && printf 'guide\\n' > docs/guide
    git add . && git -c user.name=x -c user.email=x@y commit -qm first
    printf 'KEY=1\\n' > .env && printf 'built\\n' > out/result && printf 'mine\\n' > notes && chmod 600 notes
    printf 'three\\n' >> src/a && ln -s src/a link && mkdir -m 700 empty";

/// Names of programs, what has to be installed for them, and lines of bash.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("delete a folder", "rm", "rm -rf src docs"),
    ("delete everything but .git", "find", "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +"),
    ("delete the repository itself", "rm", "rm -rf .git src"),
    ("edit in place", "sed", "sed -i s/one/ONE/ src/a docs/guide .env"),
    ("append and truncate", "truncate", "echo x >> notes; : > .env; truncate -s 1 out/result"),
    ("a chain of renames", "mv", "mv src/a t && mv notes src/a && mv t notes && mv src moved"),
    (
        "a file becomes a folder",
        "mkdir",
        "rm notes && mkdir notes && echo x > notes/inside; rm -r docs && echo x > docs",
    ),
    ("modes and links", "chmod", "chmod 755 notes; chmod 500 src/deep; ln -sf docs/guide link; ln notes twin"),
    ("git clean of what is ignored", "git", "git clean -fdxq"),
    ("git reset, hard", "git", "git reset -q --hard"),
    ("git stash with what is untracked", "git", "git -c user.name=x -c user.email=x@y stash -qu"),
    ("git checkout of everything", "git", "git checkout -q . && git checkout -q -b other && git rm -q -r src"),
    (
        "an archive unpacked over it",
        "tar",
        "tar cf /dev/stdout src | (mkdir n && cd n && tar xf -) && cp -r n/src/. docs",
    ),
    (
        "a program that writes by itself",
        "python3",
        "python3 -c \"open('src/a', 'r+').write('X'); open('new', 'w').write('y')\"",
    ),
    ("a database", "sqlite3", "sqlite3 data.db 'create table t(a); insert into t values (1)' && rm notes"),
    ("a large sparse file", "truncate", "truncate -s 1G large && echo x > out/result"),
    (
        "a child that outlives its parent",
        "setsid",
        "setsid -f sh -c 'echo late > notes; rm .env'; while [ -e .env ]; do sleep 0.01; done",
    ),
    ("a script that fails half way", "false", "set -e; rm notes; echo x > src/deep/b; false; rm -r src"),
];

/// Kinds, modes, contents and targets of everything below a folder.
type Tree = BTreeMap<PathBuf, String>;

/// Runs each in a tree of its own.
///
/// # Errors
/// A scratch folder cannot be made or read.
pub async fn tried(sandbox: &Sandbox) -> io::Result<Undone> {
    let mut undone = Undone::default();
    for (name, needed, program) in PROGRAMS {
        if programs::find(needed, std::env::var_os("PATH").as_deref()).is_err() {
            count(&mut undone.untried, format!("{needed} is not installed"));
            continue;
        }
        match Box::pin(tried_one(sandbox, program)).await? {
            Ok(()) => undone.exact.push((*name).to_owned()),
            Err(wrong) => undone.wrong.push(((*name).to_owned(), wrong)),
        }
    }
    Ok(undone)
}

/// What went wrong, if anything did.
async fn tried_one(sandbox: &Sandbox, program: &str) -> io::Result<Result<(), String>> {
    let temp = tempfile::tempdir()?;
    let top = temp.path().canonicalize()?;
    let root = top.join("project");
    fs::create_dir(&root)?;
    let run = async |line: &str, policy: &Policy| {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "--noprofile", "-c", line]).current_dir(&root).env("HOME", &top);
        let done = Box::pin(sandbox.run_captured(bash, policy, b"", PATIENCE, 1 << 16)).await?;
        Ok::<_, io::Error>((done.code, String::from_utf8_lossy(&done.stderr).trim().to_owned()))
    };
    let (code, said) = run(TREE, &Policy::free()).await?;
    if code != Some(0) {
        return Err(io::Error::other(format!("the scratch folder cannot be laid out: {said}")));
    }
    let before = tree(&root)?;
    let mut session = Session::create(&top.join("home"), &root, env!("CARGO_PKG_VERSION"), SystemTime::now);
    let failed = |error: crate::session::Error| io::Error::other(error.to_string());
    session.append(EntryKind::TurnStarted).map_err(failed)?;
    session.append(EntryKind::Message { message: Arc::new(Message::prompt("go")) }).map_err(failed)?;
    let record = Record {
        store: recorded::folder(session.store(), "1"),
        largest: 64 << 20,
        budget: 1 << 30,
        skip: ["/proc", "/dev", "/sys"].map(PathBuf::from).to_vec(),
        within: vec![root.clone()],
    };
    let call = CallId::nth(1);
    let entry = EntryKind::CommandRan { call, command: program.to_owned(), record: Some("1".to_owned()), agent: None };
    session.append(entry).map_err(failed)?;
    run(program, &Policy { record: Some(record), ..Policy::free() }).await?;
    let finished = recorded::finish(session.store(), "1")?;
    session.command_ended("1", &finished).map_err(failed)?;
    let after = tree(&root)?;
    if after == before {
        return Ok(Err("it changed nothing".to_owned()));
    }
    for (what, want) in [("undo", &before), ("redo", &after), ("the second undo", &before)] {
        match if what == "redo" { session.redo() } else { session.undo() } {
            Err(error) => return Ok(Err(format!("{what}: {error}"))),
            Ok(done) => {
                if let Some(why) = done.refused.first().or(done.unseen.first()) {
                    return Ok(Err(format!("{what}: {why}")));
                }
            }
        }
        let found = tree(&root)?;
        let differs = want.iter().find(|(path, told)| found.get(*path) != Some(told));
        let differs = differs.or_else(|| found.iter().find(|(path, _)| !want.contains_key(*path)));
        if let Some((path, _)) = differs {
            return Ok(Err(format!("{what} leaves {} different", path.display())));
        }
    }
    Ok(Ok(()))
}

fn tree(root: &Path) -> io::Result<Tree> {
    let (mut tree, mut open) = (Tree::new(), vec![root.to_owned()]);
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata()?;
        let mode = meta.permissions().mode() & 0o7777;
        let told = if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
            format!("folder {mode:o}")
        } else if meta.is_symlink() {
            format!("-> {}", fs::read_link(&path)?.display())
        } else if meta.len() > LARGEST {
            format!("{mode:o} {}", meta.len())
        } else {
            format!("{mode:o} {}", sha256_hex(&fs::read(&path)?))
        };
        tree.insert(path, told);
    }
    Ok(tree)
}
