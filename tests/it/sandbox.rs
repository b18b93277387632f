//! The sandbox by its effects: what a command that may only read gets done all the same (nothing), and what must work in it.
//! Every line runs for real below the real helper, as this user and, where that is root, as nobody.

use std::path::Path;
use std::time::Duration;

use cocode::prove::Proof;
use cocode::prove::escapes::ESCAPES;
use cocode::prove::world::{Attempt, NOBODY, World};
use cocode::sandbox::{Level, Network, Policy, Reads, Sandbox};
use tokio::process::Command;

use super::support::program::Program;

/// Longest time of one line; only a fault takes so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// What no line may show.
const SECRET: &str = "TOP-SECRET";

/// As whom lines run here: this user, and nobody where we may become that.
fn users() -> &'static [Option<u32>] {
    if rustix::process::geteuid().is_root() { &[None, Some(NOBODY)] } else { &[None] }
}

fn world(user: Option<u32>) -> World {
    World::new(Path::new(Program::binary()), user).unwrap()
}

/// All that `cocode prove` tries, and what would be too wild for a machine that somebody works on.
#[tokio::test]
async fn nothing_gets_out_of_what_only_reads() {
    let done = Program::new().run(&["prove", "--json"]);
    let proof: Proof = serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"));
    assert_eq!(proof.escapes.len(), users().len());
    for escapes in &proof.escapes {
        assert_eq!(escapes.through, [], "as {}", escapes.user);
        let untried: usize = escapes.untried.iter().map(|(_, times)| times).sum();
        assert!(escapes.held > 90 && escapes.held + untried == ESCAPES.len(), "{escapes:?}");
    }
    let undo = proof.undo.as_ref().unwrap();
    assert_eq!(undo.wrong, []);
    assert!(undo.exact.len() > 12, "{undo:?}");
    assert_eq!((done.code, proof.holds()), (Some(0), true), "{proof:?}");
    for user in users() {
        let mut world = world(*user);
        for wild in ["kill -9 $PPID; kill -9 -1", "kill -9 V"] {
            assert_eq!(world.attempt(wild).await.unwrap(), Attempt::Held, "{user:?}: {wild}");
        }
    }
}

/// Each way to notice an escape notices one: lines that get out of a policy that lets them.
#[tokio::test]
async fn what_gets_out_is_noticed() {
    let mut world = world(None);
    for (line, what) in [
        ("cat O/secret", "TOP-SECRET"),
        ("true && echo BR''EACH", "BREACH"),
        ("echo x > O/new", "it changed"),
        ("rm O/new", "it changed"),
        ("touch -d 2000-01-01 file", "it changed"),
        ("(echo x > /dev/tcp/127.0.0.1/$TCP)", "somebody outside heard of it"),
        ("py:socket.socket(socket.AF_UNIX).connect('U')", "somebody outside heard of it"),
        ("kill -9 V", "it harmed a process outside"),
    ] {
        match world.attempt_under(line, &Policy::free()).await.unwrap() {
            Attempt::Through(said) => assert!(said.contains(what), "{line}: {said}"),
            other => panic!("{line}: {other:?}"),
        }
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
    for user in users() {
        let world = world(*user);
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
            assert_eq!(out, *want, "{user:?}: {line}\n{err}");
        }
    }
}

#[tokio::test]
async fn what_writes_is_held_to_its_folders_and_its_port() {
    for user in users() {
        let world = world(*user);
        let port = world.port().unwrap();
        let policy = |network| Policy {
            reads: Reads::AllBut(vec![world.root().join("home/.ssh")]),
            writes: vec![world.root().join("w")],
            network,
            ..Policy::free()
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
            let done = world.run(&world.line(line).unwrap(), policy).await.unwrap();
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            assert_eq!(out, want, "{user:?}: {line}\n{err}");
        }
    }
}

/// A guard holds without Landlock, and against programs that hide from who looks at their calls.
#[tokio::test]
async fn what_is_guarded_stays_for_every_user() {
    use cocode::sandbox::Guard;

    const HIDDEN: &str = "py:ctypes.CDLL(None).prctl(4, 0)\n\
        try: open('.git/hooks/pre-commit', 'w').write('x')\nexcept OSError: print('denied')";
    for user in users() {
        let world = world(*user);
        let guard = Guard { roots: vec![world.root().join("w")], ..Guard::default() };
        let policy = Policy { guard, ..Policy::free() };
        for (line, want) in [
            ("echo x > .git/hooks/pre-commit || echo denied", "denied\n"),
            (HIDDEN, "denied\n"),
            (
                "unshare -Urm sh -c 'mount --bind .git folder && echo x > folder/hooks/pre-commit'; [ -e .git/hooks/pre-commit ] || echo held",
                "held\n",
            ),
            (
                "unshare -Ur chroot .git /bin/sh -c 'echo x > hooks/pre-commit'; [ -e .git/hooks/pre-commit ] || echo held",
                "held\n",
            ),
            (
                "echo x > new && git add new && git -c user.name=x -c user.email=x commit -qm more && echo works",
                "works\n",
            ),
            ("kill -0 V && echo free", "free\n"),
        ] {
            let done = world.run(&world.line(line).unwrap(), &policy).await.unwrap();
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            assert!(out == want, "{user:?}: {line}\n{out}{err}");
            assert!(!world.root().join("w/.git/hooks/pre-commit").exists(), "{user:?}: {line}");
        }
    }
}

/// What is put back is, also where nobody waits for the command anymore.
#[tokio::test]
async fn what_must_stay_is_put_back() {
    use cocode::stdx::process::{Run, Streams};

    let world = world(None);
    let (file, made) = (world.root().join("w/file"), world.root().join("w/made"));
    let before = std::fs::read_to_string(&file).unwrap();
    let policy = Policy { put_back: vec![file.clone(), made.clone()], ..Policy::free() };
    let streams = || {
        let (_, writer) = std::io::pipe().unwrap();
        Streams { stdin: None, stdout: writer.try_clone().unwrap().into(), stderr: writer.into(), kept: None }
    };
    let line = format!("echo evil > {}; echo evil > {}", file.display(), made.display());
    let command = |line: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", line]);
        command
    };
    let mut process = world.sandbox().spawn(&command(&line), streams(), &policy).await.unwrap();
    process.wait().await.unwrap();
    let told = process.finish().await;
    assert_eq!((told.back, told.lost), (vec![made.clone(), file.clone()], Vec::new()));
    assert_eq!((std::fs::read_to_string(&file).unwrap(), made.exists()), (before.clone(), false));
    // It never ends, and is dropped once it has written.
    let forever = command(&format!("{line}; exec sleep 1000"));
    let process = world.sandbox().spawn(&forever, streams(), &policy).await.unwrap();
    let wait_until = async |done: &dyn Fn() -> bool| {
        let begun = std::time::Instant::now();
        while !done() {
            assert!(begun.elapsed() < PATIENCE);
            tokio::task::yield_now().await;
        }
    };
    wait_until(&|| made.exists()).await;
    drop(process);
    wait_until(&|| !made.exists() && std::fs::read_to_string(&file).is_ok_and(|text| text == before)).await;
}

#[tokio::test]
async fn the_end_of_a_command_is_its_own() {
    let world = world(None);
    for policy in [world.policy(), Policy::free()] {
        let code = async |line: &str| world.run(line, &policy).await.unwrap().code;
        assert_eq!((code("exit 7").await, code("kill -9 $$").await, code("true").await), (Some(7), None, Some(0)));
        // Its keeper is killed, which is the end of what it kept, and of nothing else.
        if policy.is_free() {
            let killed = world.run("kill -9 $PPID; sleep 100", &policy).await;
            assert_eq!(killed.ok().and_then(|done| done.code), None);
        }
        let error = async |command: Command| {
            world.sandbox().run_captured(command, &policy, b"", PATIENCE, 100).await.unwrap_err().kind()
        };
        let mut missing = Command::new("bash");
        missing.current_dir(world.root().join("nowhere"));
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
        assert_eq!(world.sandbox().run_captured(bytes, &policy, b"", PATIENCE, 100).await.unwrap().code, Some(0));
    }
    // Without a helper, what has to be confined does not run, and the rest does.
    for sandbox in
        [Sandbox::off(), Sandbox::new(Some("/nowhere/cocode".into())), Sandbox::new(Some("/bin/true".into()))]
    {
        let touch = || {
            let mut touch = Command::new("touch");
            touch.arg(world.root().join("touched"));
            touch
        };
        let refused = sandbox.run_captured(touch(), &world.policy(), b"", PATIENCE, 100).await;
        assert!(refused.is_err() && !Path::new(&world.root().join("touched")).exists(), "{sandbox:?}: {refused:?}");
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
    // What a killed run has left is cleared away.
    let left = folder.path().join("state/cocode-probe-999999999-x");
    std::fs::create_dir_all(&left).unwrap();
    // Nothing is remembered of what fails.
    assert_eq!((level("/nowhere/cocode").await, file.exists()), (Level::None, false));
    assert_eq!(std::fs::read_dir(folder.path().join("state")).unwrap().count(), 0);
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
