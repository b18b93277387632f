//! Nothing that was started stays behind, nothing that ends the program waits for anybody, and no process of an agent reads
//! what the program knows.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cocode::permission::Mode;
use cocode::protocol::Op;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode as FileMode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;

use super::support::harness::Harness;
use super::support::program::Program;

/// Longest wait for anything; only a fault takes so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// A second, and what a slow and busy machine adds. A program that waits for a reader never ends.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
/// What ends the program, and its exit code.
const ENDS: [(Signal, i32); 3] = [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)];

/// Processes whose command line holds this word.
fn alive(word: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let folder = entry.path();
            let line = std::fs::read(folder.join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            // A zombie has no command line; this test has another one.
            line.contains(word).then_some(line)
        })
        .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_interrupt_kills_whatever_a_command_has_started() {
    // A length of sleep that names the processes of this run.
    let word = format!("{}.{}", 6000, std::process::id());
    let command = format!(
        "trap '' TERM; (trap '' TERM; sleep {word} & sleep {word}) & setsid sh -c 'trap \"\" TERM; sleep {word}; :' & \
         until [ $(pgrep -f -c '^sleep {word}') = 3 ]; do :; done; echo begun; while :; do sleep {word}; done"
    );
    let script =
        format!("- reply: [tool: {{name: Bash, input: {{command: {}}}}}]", serde_json::to_string(&command).unwrap());
    let begun = Instant::now();
    let run = Harness::new()
        .script(&script)
        .mode(Mode::Bypass)
        .env("COCODE_SANDBOXED", "1")
        .prompt("go")
        .at("output begun", Op::Interrupt)
        .run()
        .await;
    assert!(run.trace().ends_with("turn ended Interrupted"), "{}", run.trace());
    assert_eq!(alive(&word), Vec::<String>::new());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// A script of Bash calls, each answering the one before, which has to have said so.
fn script(calls: &[(&str, &str)]) -> String {
    let mut steps = Vec::new();
    let mut said = None;
    for (command, says) in calls {
        let call = json!({"tool": {"name": "Bash", "input": {"command": command}}});
        steps.push(match said {
            None => json!({"reply": [call]}),
            Some(said) => json!({"expect": {"contains": said}, "reply": [call]}),
        });
        said = Some(*says);
    }
    steps.push(json!({"expect": {"contains": said}, "reply": [{"text": "As expected."}]}));
    serde_json::to_string(&steps).unwrap()
}

/// A program whose agent may do anything.
fn program() -> Program {
    Program::new().env("COCODE_SANDBOXED", "1")
}

fn run(program: &Program, calls: &[(&str, &str)]) {
    let script = program.script("script.yaml", &script(calls));
    let done = program.run(&["-p", "go", "--offline-script", &script, "--dangerously-skip-permissions"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "As expected.\n"), "{}", done.err);
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let last = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < last, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_hides_goes_with_its_command_and_leaves_no_dead() {
    let word = format!("{}.{}", 6001, std::process::id());
    // Ten that have no parent, session, variable or file in common with the command, and two hundred that end at once.
    let hide = format!(
        "for n in {{1..10}}; do (setsid env -i /bin/sleep {word} >&- 2>&- <&- &); done; \
         for n in {{1..200}}; do (setsid env -i /bin/true &); done; \
         until [ $(pgrep -f -c '^/bin/sleep {word}') = 10 ]; do :; done; echo all hidden"
    );
    let count = format!(
        "echo \"$(pgrep -f -c '^/bin/sleep {word}') live, \
         $(grep -l $'^PPid:\\t'$PPID'$' /proc/[0-9]*/status | xargs grep -l '^State:.Z' | wc -l) dead\""
    );
    run(&program(), &[(&hide, "all hidden"), (&count, "0 live, 0 dead")]);
    assert_eq!(alive(&word), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn no_command_reads_a_key_out_of_the_program() {
    let program = program().env("ANTHROPIC_API_KEY", "sk-ant-0123456789").env("ANOTHER_KEY", "hidden-0123456789");
    let look = "for file in environ cmdline; do tr '\\0' '\\n' </proc/$PPID/$file | grep -cE '^(ANTHROPIC|ANOTHER)_KEY|0123456789'; done; \
                echo \"$(tr -d '\\0' </proc/$PPID/environ | wc -c) left, ${ANTHROPIC_API_KEY:-none}, $ANOTHER_KEY\"";
    run(&program, &[(look, "0\n0\n0 left, none, hidden-0123456789")]);
}

/// An output that nobody reads: its end to read, and the end that the program writes to.
struct Unread {
    reads: OwnedFd,
    writes: OwnedFd,
}

impl Unread {
    /// Waits until no more is taken, though there is more to come.
    #[track_caller]
    fn wait_until_full(&self, child: &mut Child) {
        let last = Instant::now() + PATIENCE;
        loop {
            let ended = child.try_wait().unwrap();
            let mut takes = [PollFd::new(&self.writes, PollFlags::OUT)];
            let full = rustix::event::poll(&mut takes, Some(&Timespec::default())).unwrap() == 0;
            if full && ended.is_none() {
                return;
            }
            if ended.is_some() || Instant::now() > last {
                panic!("not full: ended {ended:?}, threads {}, written {:?}", threads(child.id()), self.waiting());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What waits to be read, as far as the kernel has it ready.
    fn waiting(&self) -> String {
        let count = rustix::io::ioctl_fionread(&self.reads).unwrap_or(0);
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
        let count = if bytes.is_empty() { 0 } else { rustix::io::read(&self.reads, &mut bytes).unwrap_or(0) };
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }
}

/// What each thread of a process waits for in the kernel.
fn threads(process: u32) -> String {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let file =
        |entry: &std::fs::DirEntry, name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
    entries.map(|entry| format!("{} {}; ", file(&entry, "comm").trim(), file(&entry, "wchan"))).collect()
}

/// The program with all signals as a shell gives them: a test below `nohup` or in a background job ignores some.
fn heeding(program: &Program, args: &[&str]) -> Command {
    program.command("env", &[&["--default-signal", Program::binary()], args].concat())
}

/// The program in a terminal that nobody reads.
fn unread(program: &Program, args: &[&str]) -> (Child, Unread) {
    let reads = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&reads).unwrap();
    rustix::pty::unlockpt(&reads).unwrap();
    tcsetwinsize(&reads, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = rustix::pty::ptsname(&reads, Vec::new()).unwrap();
    let writes = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, FileMode::empty()).unwrap();
    let end = || Stdio::from(writes.try_clone().unwrap());
    let mut command = heeding(program, args);
    let child = command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    (child, Unread { reads, writes })
}

/// Ends the program by a signal; how it ended, and how long that took.
fn end_by(signal: Signal, child: &mut Child) -> (std::process::ExitStatus, Duration) {
    let begun = Instant::now();
    kill_process(Pid::from_child(child), signal).unwrap();
    wait_until("the end", || child.try_wait().unwrap().is_some());
    (child.wait().unwrap(), begun.elapsed())
}

#[cfg(target_os = "linux")]
#[test]
fn signals_end_it_where_nobody_reads_the_terminal() {
    for (nth, (signal, code)) in ENDS.into_iter().chain([(Signal::QUIT, -1), (Signal::ABORT, -1)]).enumerate() {
        let word = format!("{}{nth}.{}", 6002, std::process::id());
        let program = program();
        let text: String = (0..20_000).map(|n| format!("row {n} of many\n\n")).collect();
        let command = format!("(setsid env -i /bin/sleep {word} &); /bin/sleep {word}; :");
        let steps = json!([{"chunk": 4000, "reply": [{"text": text}, {"tool": {"name": "Bash", "input": {"command": command}}}]}]);
        let file = program.script("script.yaml", &steps.to_string());
        let (mut child, terminal) =
            unread(&program, &["go", "--offline-script", &file, "--dangerously-skip-permissions"]);
        terminal.wait_until_full(&mut child);
        let (status, took) = end_by(signal, &mut child);
        assert!(took < ENDS_WITHIN, "{signal:?}: {took:?}");
        let ended = std::os::unix::process::ExitStatusExt::signal(&status).map_or(status.code(), |_| Some(-1));
        assert_eq!(ended, Some(code), "{signal:?}");
        assert!(
            tcgetattr(&terminal.reads).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO),
            "{signal:?}"
        );
        assert_eq!(alive(&word), Vec::<String>::new(), "{signal:?}");
    }
}

/// The call that the signal ends is answered in vain: no other call runs, and no other program starts.
#[cfg(target_os = "linux")]
#[test]
fn nothing_begins_any_more_once_it_is_ended_by_force() {
    for nth in 0..6 {
        let word = format!("{}{nth}.{}", 6003, std::process::id());
        let program = program();
        let bash = |command: &str| json!({"tool": {"name": "Bash", "input": {"command": command}}});
        let steps = json!([
            {"reply": [bash(&format!("/bin/sleep {word}")), bash("touch same-reply")]},
            {"reply": [{"tool": {"name": "Write", "input": {"file_path": "next-reply", "content": "x"}}}]},
        ]);
        let file = program.script("script.yaml", &steps.to_string());
        let args = ["-p", "go", "--offline-script", &file, "--dangerously-skip-permissions"];
        let mut child = heeding(&program, &args).spawn().unwrap();
        wait_until("the call", || !alive(&word).is_empty());
        end_by(Signal::QUIT, &mut child);
        let made = ["same-reply", "next-reply"].map(|name| program.project().join(name).exists());
        assert_eq!((made, alive(&word)), ([false, false], vec![]));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn signals_end_it_where_nobody_reads_its_output() {
    for (signal, code) in ENDS {
        let program = program();
        let steps = json!([{"chunk": 100_000, "reply": [{"text": "x".repeat(400_000)}]}]);
        let file = program.script("script.yaml", &steps.to_string());
        let args = ["-p", "go", "--offline-script", &file, "--output-format", "stream-json"];
        let (reads, writes) = std::io::pipe().unwrap();
        let out = Unread { reads: reads.into(), writes: writes.into() };
        let mut child = heeding(&program, &args).stdout(out.writes.try_clone().unwrap()).spawn().unwrap();
        out.wait_until_full(&mut child);
        let (status, took) = end_by(signal, &mut child);
        assert!(took < ENDS_WITHIN, "{signal:?}: {took:?}");
        assert_eq!(status.code(), Some(code), "{signal:?}");
    }
}
