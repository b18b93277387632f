//! Real commands under the filter, and the undo of everything that they did.

mod fuzz;
mod later;
mod meanwhile;
mod peers;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use super::*;
use crate::message::{CallId, Message};
use crate::protocol::RewindWhat;
use crate::sandbox::record::{Full, Joining, Recording, Watcher};
use crate::sandbox::{Effect, Record};
use crate::session::entry::{EntryKind, Seq};
use crate::session::{Restored, Session};
use crate::stdx::hash::sha256_hex;
use crate::stdx::process::start::Join;

/// Hears of nothing, and loses nothing. It may be gone by the end.
struct Unheard {
    gone: bool,
}

impl Watcher for Unheard {
    fn tell(&mut self, _: Effect) {}

    fn full(&mut self, _: &Path) -> Full {
        Full::Refuse
    }

    fn gone(&self) -> bool {
        self.gone
    }
}

/// Kinds, modes, contents and targets of everything below a folder, and which files have several names.
type Tree = BTreeMap<PathBuf, String>;

struct Fixture {
    temp: tempfile::TempDir,
    session: Session,
    largest: u64,
    runs: usize,
    /// Whether nobody closes records at the end of commands.
    gone: bool,
}

impl Fixture {
    /// A session in a tree that a script makes.
    fn new(script: &str) -> Fixture {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("tree");
        fs::create_dir(&root).unwrap();
        let session = Session::create(&temp.path().join("home"), &root, "1", SystemTime::now);
        let fixture = Fixture { temp, session, largest: 64 << 20, runs: 0, gone: false };
        fixture.by_hand(script);
        fixture
    }

    fn root(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join("tree")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        let name = "cocode";
        command.args(["--norc", "--noprofile", "-c", script]).current_dir(self.root()).stdin(Stdio::null());
        command.env("HOME", self.temp.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            command.env(who, name);
        }
        command
    }

    /// What somebody else does: nobody records it.
    fn by_hand(&self, script: &str) {
        let output = self.shell(script).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn turn(&mut self) -> Seq {
        self.session.append(EntryKind::TurnStarted).unwrap();
        self.session.append(EntryKind::Message { message: Arc::new(Message::prompt("go")) }).unwrap()
    }

    /// Starts a command under the filter, and kills it once its manifest has so many bytes. Its end is waited for by what is
    /// returned.
    fn start(&mut self, script: &str, kill_after: Option<u64>) -> (String, std::thread::JoinHandle<String>) {
        self.runs += 1;
        let record = format!("r{}", self.runs);
        let call = CallId::nth(self.runs as u64);
        let command = script.chars().take(40).collect();
        let entry = EntryKind::CommandRan { call, command, record: Some(record.clone()), agent: None };
        self.session.append(entry).unwrap();
        let recording = Recording::new(
            Some(&Record {
                store: folder(self.session.store(), &record),
                largest: self.largest,
                budget: 1 << 30,
                skip: ["/proc", "/dev", "/tmp"].map(PathBuf::from).to_vec(),
                within: vec![self.root()],
            }),
            Vec::new(),
            Default::default(),
        )
        .unwrap();
        let mut command = self.shell(script);
        // SAFETY: the recording outlives the start, and joining it allocates nothing.
        let joining: Joining<'static> = unsafe { std::mem::transmute(recording.joining()) };
        // SAFETY: as above.
        unsafe {
            command.pre_exec(move || {
                joining.join();
                Ok(())
            })
        };
        let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let serving = recording.serve(None, Unheard { gone: self.gone }).unwrap();
        let manifest = folder(self.session.store(), &record).join(MANIFEST);
        let group = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        let running = std::thread::spawn(move || {
            if let Some(bytes) = kill_after {
                let written = || fs::metadata(&manifest).is_ok_and(|meta| meta.len() >= bytes);
                while !written() && child.try_wait().unwrap().is_none() {
                    std::thread::yield_now();
                }
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            let output = child.wait_with_output().unwrap();
            serving.join().unwrap();
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        });
        (record, running)
    }

    fn end(&mut self, record: &str) -> Finished {
        let finished = finish(self.session.store(), record).unwrap();
        self.session.command_ended(record, &finished).unwrap();
        finished
    }

    /// What the agent runs.
    fn run(&mut self, script: &str) -> Finished {
        let (record, running) = self.start(script, None);
        running.join().unwrap();
        self.end(&record)
    }

    fn tree(&self) -> Tree {
        let (mut tree, mut files) = (Tree::new(), HashMap::new());
        walk(&self.root(), &self.root(), &mut (&mut tree, &mut files));
        for names in files.into_values().filter(|names: &Vec<PathBuf>| names.len() > 1) {
            let first = names.iter().min().unwrap().display().to_string();
            names.iter().for_each(|name| tree.get_mut(name).unwrap().push_str(&format!(" = {first}")));
        }
        tree
    }

    fn undo(&mut self) -> Restored {
        self.session.undo().unwrap()
    }

    /// Resumes the session as after a kill.
    fn resume(&mut self) {
        let (home, id) = (self.temp.path().join("home"), self.session.id().to_owned());
        let other = Session::create(&self.temp.path().join("other"), self.temp.path(), "1", SystemTime::now);
        drop(std::mem::replace(&mut self.session, other));
        self.session = Session::open(&home, &id, SystemTime::now).unwrap();
    }
}

fn walk(root: &Path, folder: &Path, (tree, files): &mut (&mut Tree, &mut HashMap<u64, Vec<PathBuf>>)) {
    let meta = fs::symlink_metadata(folder).unwrap();
    let name = folder.strip_prefix(root).unwrap().to_owned();
    let mode = meta.permissions().mode() & 0o7777;
    let told = match meta.file_type() {
        kind if kind.is_dir() => {
            for entry in fs::read_dir(folder).unwrap() {
                walk(root, &entry.unwrap().path(), &mut (&mut **tree, &mut **files));
            }
            format!("folder {mode:o}")
        }
        kind if kind.is_symlink() => format!("-> {}", fs::read_link(folder).unwrap().display()),
        kind if kind.is_file() && meta.size() < 64 << 20 => match fs::read(folder) {
            Ok(bytes) => format!("{mode:o} {} {}", meta.size(), &sha256_hex(&bytes)[..16]),
            Err(error) => format!("{mode:o} {} {error}", meta.size()),
        },
        _ => format!("{mode:o} {}", meta.size()),
    };
    if meta.is_file() && meta.nlink() > 1 {
        files.entry(meta.ino()).or_default().push(name.clone());
    }
    tree.insert(name, told);
}

fn differ(found: &Tree, want: &Tree, what: &str) -> Result<(), String> {
    let differs = |one: &Tree, other: &Tree| {
        let lines = one.iter().filter(|(path, told)| other.get(*path) != Some(told));
        lines.map(|(path, told)| format!("{} {told}", path.display())).collect::<Vec<_>>()
    };
    let (more, less) = (differs(found, want), differs(want, found));
    if more.is_empty() && less.is_empty() { Ok(()) } else { Err(format!("{what}\nfound: {more:#?}\nwant: {less:#?}")) }
}

fn same(found: &Tree, want: &Tree, what: &str) {
    if let Err(why) = differ(found, want, what) {
        panic!("{why}");
    }
}

/// What one command did is undone, redone and undone again.
fn check(before: &str, script: &str, changed: &[&str]) {
    let mut it = Fixture::new(before);
    let old = it.tree();
    it.turn();
    let finished = it.run(script);
    let root = it.root();
    let name = |path: &Path| path.strip_prefix(&root).unwrap_or(path).display().to_string();
    let line = finished.line(name, |path| path.components().any(|part| part.as_os_str() == "ignored"));
    assert_eq!(line.iter().map(String::as_str).collect::<Vec<_>>(), changed, "{script}");
    let new = it.tree();
    for round in 0..2 {
        let done = it.undo();
        assert_eq!(done.refused, [""; 0], "{script}");
        assert_eq!(done.unseen, [""; 0], "{script}");
        same(&it.tree(), &old, &format!("undo {round} of {script}"));
        let done = it.session.redo().unwrap();
        assert_eq!(done.refused, [""; 0], "{script}");
        same(&it.tree(), &new, &format!("redo {round} of {script}"));
    }
    it.resume();
    it.undo();
    same(&it.tree(), &old, &format!("undo after a resume of {script}"));
}

#[test]
fn what_a_command_did_is_undone_and_redone() {
    let some = "printf 'one\\ntwo\\n' > a; printf b > b; chmod 600 b; mkdir -p d/e; printf f > d/e/f; ln -s a l";
    check(some, "echo three >> a", &["changed a"]);
    check(some, "rm a; echo x > n", &["created n; deleted a"]);
    check(some, "sed -i s/one/ONE/ a", &["changed a"]);
    check(some, "mv a c; mv b a", &["created c; changed a; deleted b"]);
    check(some, "rm -r d", &["deleted d/e/f"]);
    check(some, "mv d g; echo x > g/e/f; echo y > g/h", &["created g/e/f, g/h; deleted d/e/f"]);
    check(some, "rm a; mkdir a; echo x > a/b", &["created a/b; changed a"]);
    check(some, "rm -r d; echo x > d", &["changed d; deleted d/e/f"]);
    check(some, "ln -sf b l; chmod 755 a; chmod 700 d", &["changed l, a, d"]);
    check(some, "rm l; cp a l", &["changed l"]);
    check(some, "chmod 000 b", &["changed b"]);
    check(some, "mkdir n; mkdir n/m", &["created n, n/m"]);
    check(some, "rm d/e/f; chmod 500 d/e d", &["changed d/e, d; deleted d/e/f"]);
    check(some, "mkdir -p x/y; echo z > x/y/z; chmod -R 500 x", &["created x/y/z"]);
    check(some, "truncate -s 3G s; echo x > a", &["created s; changed a"]);
    check(some, "ln a h; echo x > h", &["created h; changed a"]);
    check(some, "mkdir ignored; echo x > ignored/a; echo y > n", &["created n; files that git ignores: 1 created"]);
    check(
        "mkdir ignored; echo a > ignored/a",
        "mv ignored/a ignored/b",
        &["files that git ignores: 1 created, 1 deleted"],
    );
    check(some, "echo new > ignored", &["files that git ignores: 1 created"]);
    check("mkdir ignored; echo a > ignored/a; echo b > b", "rm -r ignored b", &["deleted ignored/a, b"]);
    check("echo SECRET > ignored", "rm ignored", &["deleted ignored"]);
    let linked = "echo 1 > a; ln a b; ln a c; ln a d";
    check(linked, "echo 2 > a", &["changed a"]);
    check(linked, "echo 2 > a; rm a", &["deleted a"]);
    check(linked, "rm a; echo 2 > b; rm b", &["deleted a, b"]);
    check(linked, "rm a; echo 2 > b; mv c e; echo 3 > a", &["created e; changed a, b; deleted c"]);
    check(some, "tar cf t.tar d; rm -r d; tar xf t.tar; rm t.tar; echo x > a", &["changed a"]);
    check("mkfifo p; echo a > a", "rm a; touch -d 2001-01-01 .", &["deleted a"]);
    // Times that were set, before a file is kept under a second name and after it.
    check(some, "touch -c -d 2001-01-01 a; rm a", &["deleted a"]);
    check(some, "chmod 600 a; touch -c -d 2001-01-01 a; rm a", &["deleted a"]);
    check(linked, "rm a; touch -d 2001-01-01 b; rm b; touch -d 2002-02-02 c", &["deleted a, b"]);
    check(some, "mv a c; touch -d 2001-01-01 c; rm c", &["deleted a"]);
    check(some, "chmod 600 a; ln a h; rm a; echo x > h", &["created h; deleted a"]);
    // Of the same size, and with the times of another.
    check("printf 1 > a; printf 2 > b; touch -r a b", "cp -a b a", &["changed a"]);
    check("printf 1 > a; printf 2 > b; touch -r a b", "cp -a b c; mv c a", &["changed a"]);
}

/// What several turns did is undone, redone, undone and redone again, turn by turn.
#[test]
fn turns_are_undone_and_redone_one_by_one() {
    let large = "truncate -s 3M f; printf x | dd of=f bs=1 seek=2000000 conv=notrunc";
    let programs: [(&str, &[&str]); 23] = [
        // What is made again is a further name of the file that it was one of: what is written to one shows under the other.
        ("echo 1 > a", &["ln a b", "echo 2 > b", "echo 3 > a"]),
        ("echo 1 > a; ln a b", &["rm b", "echo 2 > a", "rm a"]),
        ("echo 1 > a; ln a b; ln a c", &["mv b d; rm c", "echo 2 > d", "rm d"]),
        ("mkdir d; echo 1 > d/a; echo 1 > d/b", &["cp -al d e", "echo 2 > e/a; mv e f", "echo 3 > d/a; rm -r f"]),
        // A redo of a folder's mode is not taken for one that was cut short.
        ("mkdir d", &["chmod 700 d", "echo x > c"]),
        ("mkdir d", &["chmod 700 d; echo x > d/a", "chmod 755 d", "echo y > d/b"]),
        // Files with the same content get the numbers of files that are gone: they do not become one.
        ("mkdir d", &["echo 1 > d/a; echo 1 > d/b", "echo 2 >> d/a; echo 2 >> d/b", "echo 3 >> d/b; echo 4 >> d/a"]),
        ("git init -q .", &["echo 1 > a; git add a; git commit -qm 1", "echo 2 > a; git commit -qam 2", "git gc -q"]),
        // Too large to be kept twice: undo keeps a second name of it.
        ("mkdir d", &[large, "mv f d/f; echo 1 >> d/f"]),
        ("mkdir d", &[large, "mv f d/f; echo 1 >> d/f; cp d/f f", "ln f d/g; rm f; printf y | dd of=d/g conv=notrunc"]),
        // Unchanged objects get new times from git whenever they are added again.
        (
            "git init -q .; echo 1 > a; git add a; git commit -qm 1",
            &["touch a; git add -A; rm -r .git/objects", "rm a"],
        ),
        // A folder is not moved over one that holds something, whose files are not new therefore.
        ("mkdir d e; echo 1 > d/a; echo 2 > e/a", &["echo 3 > e/a; mv -T d e", "rm e/a; mv -T d e"]),
        // A file takes the name of another one, which gets its own name back.
        ("echo 1 > a; mkdir d; echo 2 > d/a", &["mv a d/a; echo 3 > d/a", "mv d/a a; echo 2 > d/a"]),
        (": > a; mkdir d; echo 2 > d/a", &["mv a d/a; : > d/a", "rm d/a"]),
        ("mkdir d; echo 1 > d/a; ln d/a b; ln d/a c", &["chmod 600 d/a; rm b", "rm c; chmod 644 d/a", "echo 2 > d/a"]),
        // Names that nobody mentions have the mode of the one that was changed and went.
        ("echo 1 > a; ln a n", &["mv a b; chmod 700 b", "chmod 600 b; mv b c"]),
        ("echo 1 > a; ln a n", &["chmod 700 a; rm a", "chmod 600 n"]),
        // The same of one that is too large to be kept as a command left it, and was written again by an undo.
        ("echo 1 > a; ln a n", &["mv a b", "seq 90000 > b; mv b c", "echo 3 >> c; chmod 600 c", "seq 9 > c; mv c d"]),
        // Another file with the same content is not one of the names.
        ("echo 1 > a", &["ln a b; echo 2 >> a", "cat a > c; mv c a"]),
        ("echo 1 > a; ln a b", &["cp a c; mv c a; cp a c; mv c b", "echo 2 > a"]),
        ("echo 1 > a; ln a b", &["cp a c; mv c a", "cp a c; mv c a; echo 2 > e", "echo 3 > a"]),
        ("echo 1 > a; cp a b", &["mv b a", "ln a c; cp a d; mv d a", "echo 2 > a"]),
        ("echo 1 > a; ln a b", &["touch -d 2001-01-01 a; rm a; touch -d 2002-02-02 b", "rm b"]),
    ];
    for (before, scripts) in programs {
        let mut it = Fixture::new(before);
        let mut trees = vec![it.tree()];
        for script in scripts {
            it.turn();
            it.run(script);
            trees.push(it.tree());
        }
        for round in 0..2 {
            for at in (0..scripts.len()).rev() {
                assert_eq!(it.undo().refused, [""; 0], "{round} undo of {}", scripts[at]);
                same(&it.tree(), &trees[at], &format!("{round} undo of {} after {before}", scripts[at]));
            }
            for at in 0..scripts.len() {
                assert_eq!(it.session.redo().unwrap().refused, [""; 0], "{round} redo of {}", scripts[at]);
                same(&it.tree(), &trees[at + 1], &format!("{round} redo of {} after {before}", scripts[at]));
            }
        }
    }
}

/// Several commands of one turn change one file under several of its names.
#[test]
fn commands_of_one_turn_are_undone_together() {
    let linked = "echo 1 > a; ln a b; ln a c";
    for (before, scripts) in [
        (linked, ["echo 2 > a", "echo 3 > b", "echo 4 >> c"]),
        (linked, ["chmod 600 b", "echo 3 > a", "chmod 755 c"]),
        (linked, ["echo 2 > b", "mv a d", "echo 3 > c; rm b"]),
        (linked, ["rm a", "echo 2 > b; rm b", "echo 3 > c; rm c"]),
        ("echo 1 > a; ln a n", ["mv a b", "chmod 700 b", "chmod 600 b"]),
        ("echo 1 > a; ln a n", ["mv a b", "echo 2 > b", "echo 3 > b"]),
        ("echo 1 > a; ln a n", ["chmod 700 a", "rm a", "echo x > c"]),
        ("mkdir d; echo 1 > d/a; ln d/a b", ["mv d e", "echo 2 > b", "echo 3 >> e/a; rm b"]),
    ] {
        let mut it = Fixture::new(before);
        let old = it.tree();
        it.turn();
        scripts.iter().for_each(|script| drop(it.run(script)));
        let new = it.tree();
        for round in 0..2 {
            assert_eq!(it.undo().refused, [""; 0], "{round} undo of {scripts:?}");
            same(&it.tree(), &old, &format!("{round} undo of {scripts:?}"));
            assert_eq!(it.session.redo().unwrap().refused, [""; 0], "{round} redo of {scripts:?}");
            same(&it.tree(), &new, &format!("{round} redo of {scripts:?}"));
        }
    }
}

#[test]
fn commands_that_change_nothing_leave_nothing() {
    let mut it = Fixture::new("echo a > a; mkdir d");
    it.turn();
    for script in ["cat a", "grep -r a .", "echo x > t; rm t", "cp a a2; mv a2 a", "mkdir -p d; touch a; test -w a"] {
        assert_eq!(it.run(script), Finished::default(), "{script}");
    }
    assert!(matches!(it.session.undo(), Err(crate::session::Error::Nothing("undo"))));
    assert_eq!(fs::read_dir(it.session.store().dir().join(FOLDER)).unwrap().count(), 0);
}

#[test]
fn what_somebody_else_did_since_is_merged_or_refused() {
    let ten = "seq 10 > a; seq 10 > b; echo x > c; mkdir d";
    let mut it = Fixture::new(ten);
    it.turn();
    it.run("sed -i s/3/three/ a; echo two > b; rm c; mkdir -p d/n; echo y > d/n/y; ln -s a l");
    it.by_hand("sed -i s/9/nine/ a; echo mine > b; echo mine > c; echo mine > d/n/mine; ln -sf b l");
    let done = it.undo();
    assert_eq!(fs::read_to_string(it.path("a")).unwrap(), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n10\n");
    let mut refused: Vec<String> = done.refused.clone();
    refused.sort();
    let root = it.root().display().to_string();
    let found: Vec<String> = refused.iter().map(|line| line.replace(&format!("{root}/"), "")).collect();
    let apart =
        "was changed since at line 1, on or right next to what the agent changed; revert that first, then try again";
    assert_eq!(
        found,
        [
            format!("b {apart}"),
            "c was created since: move it away, then try again".to_owned(),
            "l was changed since: revert that first, then try again".to_owned(),
        ]
    );
    // What the command made is gone, what somebody put beside it is not, nor is the folder around that.
    assert_eq!((it.path("d/n/y").exists(), it.path("d/n/mine").exists()), (false, true));
    it.by_hand("echo two > b; rm c; ln -sf a l");
    let done = it.undo();
    assert_eq!(done.refused, [""; 0]);
    it.by_hand("rm -r d/n; sed -i s/nine/9/ a");
    same(&it.tree(), &Fixture::new(ten).tree(), "after the conflicts were resolved");
}

#[test]
fn edits_and_commands_of_one_turn_are_one() {
    let mut it = Fixture::new("echo a0 > a; echo b0 > b");
    let old = it.tree();
    let first = it.turn();
    let path = it.path("a");
    let edit = |it: &mut Fixture, text: &str| {
        let path = it.path("a");
        it.session.before_change(&path).unwrap();
        let blob = it.session.store().keep_blob(text.as_bytes()).unwrap();
        it.session.will_change(&path, blob, it.path("temporary")).unwrap();
        fs::write(&path, text).unwrap();
        it.session.settled(&path).unwrap();
    };
    edit(&mut it, "a1\n");
    it.run("echo a0 > a; echo b1 > b");
    edit(&mut it, "a2\n");
    it.run("echo a3 > a");
    assert_eq!(it.session.files().first_versions().len(), 2);
    assert!(it.session.prompts().unwrap()[0].changed_files);
    let reviewed: Vec<usize> = it.session.reviews(9).iter().map(|scope| scope.files.len()).collect();
    assert_eq!(reviewed, [2, 2]);
    let new = it.tree();
    it.turn();
    it.run("rm a");
    it.undo();
    same(&it.tree(), &new, "the last turn");
    it.undo();
    same(&it.tree(), &old, "the first turn");
    it.session.redo().unwrap();
    same(&it.tree(), &new, "forth again");
    it.session.rewind(first, RewindWhat::Code).unwrap();
    same(&it.tree(), &old, "a rewind");
    assert!(!path.with_file_name("temporary").exists());
}

#[test]
fn a_file_beyond_the_limit_is_refused_honestly() {
    let mut it = Fixture::new("head -c 68157440 /dev/zero | tr '\\0' x > big; cp big gone; echo a > a");
    let old = it.tree();
    it.turn();
    let finished = it.run("echo x >> big; rm gone; echo b > a");
    let why = "it has 65 MiB, more than the 64 MiB that undo keeps of a file";
    assert_eq!(finished.missed, [format!("{}: {why}", it.path("big").display())]);
    let done = it.undo();
    assert_eq!(done.refused, [format!("{} cannot be restored: {why}", it.path("big").display())]);
    assert_eq!(done.unseen.len(), 1);
    // Everything else is as it was, the large file that was deleted included.
    let mut found = it.tree();
    found.insert("big".into(), old[Path::new("big")].clone());
    same(&found, &old, "all but the large file");
}

#[test]
fn a_kill_leaves_a_record_that_is_adopted() {
    let mut it = Fixture::new("for i in $(seq 300); do echo $i > f$i; done");
    let old = it.tree();
    it.turn();
    let (_, running) = it.start("for i in $(seq 300); do rm f$i; echo x > n$i; done", Some(20_000));
    running.join().unwrap();
    // Nobody closed the record.
    it.resume();
    assert!(it.session.files().first_versions().len() > 1);
    let done = it.undo();
    assert_eq!((done.refused, done.unseen), (vec![], vec![]));
    same(&it.tree(), &old, "undo after a kill");
    it.resume();
    assert!(matches!(it.session.undo(), Err(crate::session::Error::Nothing("undo"))));
}

/// The disk was full when the command had ended: it is closed once there is room.
#[test]
fn a_record_that_could_not_be_closed_is_undone() {
    let mut it = Fixture::new("echo a > a; echo b > b");
    let old = it.tree();
    it.turn();
    let (record, running) = it.start("echo x >> a; rm b; echo c > c", None);
    running.join().unwrap();
    let new = it.tree();
    // What must become a file is a folder.
    let changes = folder(it.session.store(), &record).join(CHANGES);
    fs::create_dir_all(changes.join("in the way")).unwrap();
    let finished = finish_or_tell(it.session.store(), &record);
    assert_eq!(finished.changed, ["a", "b", "c"].map(|name| it.path(name)));
    it.session.command_ended(&record, &finished).unwrap();
    assert!(it.session.undo().is_err());
    same(&it.tree(), &new, "nothing is undone before the record is closed");
    fs::remove_dir_all(&changes).unwrap();
    it.resume();
    let done = it.undo();
    assert_eq!((done.refused, done.unseen), (vec![], vec![]));
    same(&it.tree(), &old, "undone");
    it.session.redo().unwrap();
    same(&it.tree(), &new, "redone");
}

#[test]
fn two_agents_at_once() {
    let mut it = Fixture::new("mkdir d; for i in $(seq 20); do echo $i > d/f$i; done");
    let old = it.tree();
    it.turn();
    let script = |own: u32, other: u32| {
        format!(
            "for i in $(seq {own} 2 20); do echo x >> d/f$i; mkdir -p s/t; echo {own} > s/t/n{own}$i; done; rm d/f{own}; ls d/f{other}"
        )
    };
    let one = it.start(&script(1, 2), None);
    let other = it.start(&script(2, 1), None);
    for (record, running) in [other, one] {
        running.join().unwrap();
        it.end(&record);
    }
    let new = it.tree();
    let done = it.undo();
    assert_eq!(done.refused, [""; 0]);
    same(&it.tree(), &old, "both undone");
    it.session.redo().unwrap();
    same(&it.tree(), &new, "both redone");
}

#[test]
fn the_oldest_records_go_first() {
    let mut it = Fixture::new("for n in a b c; do head -c 100000 /dev/urandom > $n; done");
    for name in ["a", "b", "c"] {
        it.turn();
        it.run(&format!("rm {name}"));
    }
    assert_eq!(it.session.retain_records(1 << 20), None);
    let told =
        "what 1 earlier command changed can no longer be undone: its saved files took more than undo.session_mb allows";
    assert_eq!(it.session.retain_records(250_000).unwrap(), told);
    assert_eq!(it.undo().restored, [it.path("c")]);
    assert_eq!(it.undo().restored, [it.path("b")]);
    assert_eq!(it.session.commands_left(), ["rm a"]);
    assert!(matches!(it.session.undo(), Err(crate::session::Error::Nothing("undo"))));
}

/// The same without any right of root's.
#[test]
fn an_unprivileged_user_undoes_the_same() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["session::recorded::tests", "--skip", "unprivileged"]).current_dir(temp.path());
    tests.env("TMPDIR", temp.path()).env("HOME", temp.path()).uid(65_534).gid(65_534);
    let output = tests.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("random_programs_are_undone_exactly ... ok"), "{text}");
}
