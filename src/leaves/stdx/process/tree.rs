//! Finds and ends every process that a child started, those that left its group, session and parent too.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Child;
#[cfg(target_os = "linux")]
use super::lifeline;
use super::mark::{self, Mark};

/// How long a process may take after SIGTERM.
const GRACE: Duration = Duration::from_millis(50);
/// Time for an editor to save what it holds: with it, the whole end stays below a second.
const SAVING: Duration = Duration::from_millis(250);
static ENDING: Mutex<()> = Mutex::new(());
/// How often what is still found is killed: a process may fork while the list of all is made.
const ROUNDS: usize = 20;

/// Everything below one child. Several trees live side by side; each touches its own processes only.
#[derive(Debug)]
pub struct Tree {
    /// The child, which leads the session.
    root: u32,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "held until the tree ends"))]
    mark: Mark,
}

impl Tree {
    pub(super) fn new(root: u32, mark: Mark) -> Tree {
        Tree { root, mark }
    }

    /// Ends every process of the tree: SIGTERM, up to 50 ms, SIGKILL until none is left. Reaps the child through its handle
    /// and adopted orphans itself. Takes well under 100 ms.
    pub async fn kill(&self, child: &mut Child) {
        let mut known = HashSet::new();
        // Usual case: the shell has ended and nothing else is there.
        let mut members = self.members(&mut known);
        if self.remains(&members, child) {
            self.signal(&members, Signal::Term);
            let start = tokio::time::Instant::now();
            while start.elapsed() < GRACE && self.remains(&members, child) {
                tokio::time::sleep(Duration::from_millis(5)).await;
                members = self.members(&mut known);
            }
        }
        for _ in 0..ROUNDS {
            if !self.remains(&members, child) {
                break;
            }
            self.signal(&members, Signal::Kill);
            tokio::time::sleep(Duration::from_millis(1)).await;
            members = self.members(&mut known);
        }
        // The dead children of those that died last came to us only now.
        if known.len() > 1 {
            self.reap(&self.members(&mut known));
        }
    }

    /// Ends every process of the tree at once, without waiting; for when nobody is there to wait.
    pub fn kill_now(&self) {
        let mut known = HashSet::new();
        // A process may fork while the list is made: go round until nothing lives.
        for _ in 0..ROUNDS {
            let members = self.members(&mut known);
            self.signal(&members, Signal::Kill);
            self.reap(&members);
            if members.iter().all(|member| member.zombie) {
                break;
            }
        }
    }

    /// Reaps what it can; whether anything is left to end or to reap. The dead child of another process is not ours to reap.
    fn remains(&self, members: &[Process], child: &mut Child) -> bool {
        self.reap(members);
        let ended = matches!(child.try_wait(), Ok(Some(_)) | Err(_));
        !ended || members.iter().any(|member| !member.zombie)
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Term,
    Kill,
}

/// One process as /proc tells it.
#[derive(Debug, Clone, PartialEq)]
struct Process {
    pid: u32,
    parent: u32,
    group: u32,
    session: u32,
    zombie: bool,
}

/// Ends everything that was ever started through this module and still lives, as a last act: asks first, and takes at most
/// some 100 ms. The user's own programs that have our terminal are asked too, given `SAVING`, and never killed.
pub fn end_all() {
    // One thread enforces the end, and another may come here because the editor's shell ended.
    let _alone = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(target_os = "linux")]
    let helpers = lifeline::cut_all();
    // That shell may end first: the editor is nobody's child then.
    let mut guests = guests();
    for guest in &guests {
        end(*guest, rustix::process::Signal::TERM);
    }
    let start = std::time::Instant::now();
    end_ours(start);
    #[cfg(target_os = "linux")]
    lifeline::wait_all(helpers);
    // The kernel hangs up on the terminal's processes as soon as we are gone.
    loop {
        guests.retain(|guest| rustix::process::test_kill_process(*guest).is_ok());
        if guests.is_empty() || start.elapsed() > SAVING {
            return;
        }
        std::thread::sleep(GRACE / 10);
    }
}

fn end_ours(start: std::time::Instant) {
    for round in 0..ROUNDS {
        let left = everybody();
        if left.is_empty() {
            return;
        }
        let asking = start.elapsed() < GRACE;
        if round == 0 || !asking {
            let signal = if asking { rustix::process::Signal::TERM } else { rustix::process::Signal::KILL };
            for pid in left {
                end(pid, signal);
            }
        }
        std::thread::sleep(if asking { GRACE / 10 } else { Duration::from_millis(1) });
    }
}

/// The living processes of all our trees so far.
#[cfg(target_os = "linux")]
fn everybody() -> Vec<rustix::process::Pid> {
    let ours = std::process::id();
    let ended = |process: &Process| process.parent == ours && pid(process).is_some_and(mark::marked);
    let members = with_descendants(below(ours), ended);
    members.iter().filter(|member| !member.zombie).filter_map(pid).collect()
}

/// The user's own programs that have our terminal, such as an editor, and live.
#[cfg(target_os = "linux")]
fn guests() -> Vec<rustix::process::Pid> {
    let guests = mark::guests().clone();
    if guests.is_empty() {
        return Vec::new();
    }
    let members = with_descendants(below(std::process::id()), |process| guests.contains(&process.pid));
    members.iter().filter(|member| !member.zombie).filter_map(pid).collect()
}

#[cfg(not(target_os = "linux"))]
fn guests() -> Vec<rustix::process::Pid> {
    Vec::new()
}

/// Those that are chosen, and everything below them.
#[cfg(target_os = "linux")]
fn with_descendants(all: Vec<Process>, chosen: impl Fn(&Process) -> bool) -> Vec<Process> {
    let (mut members, mut others): (Vec<Process>, Vec<Process>) = all.into_iter().partition(chosen);
    let mut next = 0;
    while next < members.len() {
        let parent = members[next].pid;
        members.extend(others.extract_if(.., |process| process.parent == parent));
        next += 1;
    }
    members
}

#[cfg(target_os = "linux")]
fn end(pid: rustix::process::Pid, signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(pid, signal);
}

/// Without /proc the groups of the children stand for all.
#[cfg(not(target_os = "linux"))]
fn everybody() -> Vec<rustix::process::Pid> {
    mark::roots().into_iter().filter(|root| rustix::process::test_kill_process_group(*root).is_ok()).collect()
}

#[cfg(not(target_os = "linux"))]
fn end(pid: rustix::process::Pid, signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process_group(pid, signal);
}

/// Asks the kernel, once, to hand us orphans of our children instead of to process 1.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        });
    }
}

#[cfg(target_os = "linux")]
impl Tree {
    /// The processes of this tree: the child's descendants, and every process in its session or group or with its mark, with
    /// their descendants. `known` are those found before.
    fn members(&self, known: &mut HashSet<u32>) -> Vec<Process> {
        let ours = std::process::id();
        let members = with_descendants(below(ours), |process| {
            let root = process.pid == self.root;
            let near = process.session == self.root || process.group == self.root;
            let marked = |pid| self.mark.is_on(pid) || (process.parent == ours && mark::stray(pid));
            process.pid != ours && (root || near || known.contains(&process.pid) || pid(process).is_some_and(marked))
        });
        known.extend(members.iter().map(|member| member.pid));
        members
    }

    fn signal(&self, members: &[Process], signal: Signal) {
        let signal = match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        for member in members.iter().filter(|member| !member.zombie) {
            if let Some(pid) = pid(member) {
                // Gone meanwhile, or not ours to end (a set-user-id program): nothing can be done about either.
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
    }

    /// Takes the exit status of dead orphans that were handed to us, never of the child itself: its handle does.
    fn reap(&self, members: &[Process]) {
        let ours = std::process::id();
        for member in members {
            if member.parent == ours
                && member.pid != self.root
                && let Some(pid) = pid(member)
            {
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
            }
        }
    }
}

/// Everything below a process. As orphans come to us, all that our children ever started is below us.
#[cfg(target_os = "linux")]
fn below(pid: u32) -> Vec<Process> {
    let Some(mut pids) = children(pid) else { return processes() };
    // The kernel may pass one over while another ends beside it; hardly twice.
    pids.extend(children(pid).into_iter().flatten());
    let (mut below, mut met) = (Vec::new(), HashSet::new());
    while let Some(pid) = pids.pop() {
        if met.insert(pid)
            && let Some(process) = stat(pid)
        {
            below.push(process);
            pids.extend(children(pid).into_iter().flatten());
        }
    }
    below
}

/// The living processes below this one, without those that are spared and what is below them. A parent comes before its
/// children.
#[cfg(target_os = "linux")]
pub fn descendants(spared: impl Fn(&rustix::process::Pid) -> bool) -> Vec<rustix::process::Pid> {
    let ours = std::process::id();
    let chosen = |process: &Process| process.parent == ours && !pid(process).is_some_and(|pid| spared(&pid));
    let members = with_descendants(below(ours), chosen);
    members.iter().filter(|member| !member.zombie).filter_map(pid).collect()
}

/// The children of a process; none where the kernel does not list them. Costs far less than a look at every process.
#[cfg(target_os = "linux")]
pub(super) fn children(pid: u32) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let Ok(thread) = thread else { continue };
        match std::fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok())),
            // The thread has ended; a missing file in our own first thread is a kernel without the list.
            Err(_) if thread.file_name().to_str() == Some(&std::process::id().to_string()) => return None,
            Err(_) => {}
        }
    }
    Some(found)
}

#[cfg(target_os = "linux")]
fn pid(process: &Process) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(process.pid.cast_signed())
}

#[cfg(target_os = "linux")]
fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| stat(entry.ok()?.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(target_os = "linux")]
fn stat(pid: u32) -> Option<Process> {
    parse_stat(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads the line of `/proc/<pid>/stat`. The name in it may hold anything, parentheses and line ends too.
#[cfg(target_os = "linux")]
fn parse_stat(pid: u32, stat: &[u8]) -> Option<Process> {
    let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after..]).ok()?.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let mut number = || fields.next().and_then(|field| field.parse::<i64>().ok()).and_then(|n| u32::try_from(n).ok());
    Some(Process { pid, zombie, parent: number()?, group: number()?, session: number()? })
}

#[cfg(not(target_os = "linux"))]
impl Tree {
    /// Without /proc only the child's group is known; one entry stands for it.
    fn members(&self, _known: &mut HashSet<u32>) -> Vec<Process> {
        let pid = self.root;
        if !self.group_lives() {
            return Vec::new();
        }
        vec![Process { pid, parent: std::process::id(), group: pid, session: pid, zombie: false }]
    }

    #[cfg(unix)]
    fn group_lives(&self) -> bool {
        let pid = rustix::process::Pid::from_raw(self.root.cast_signed());
        pid.is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
    }

    #[cfg(not(unix))]
    fn group_lives(&self) -> bool {
        false
    }

    #[cfg(unix)]
    fn signal(&self, members: &[Process], signal: Signal) {
        let signal = match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        for member in members {
            if let Some(group) = rustix::process::Pid::from_raw(member.group.cast_signed()) {
                let _ = rustix::process::kill_process_group(group, signal);
            }
        }
    }

    #[cfg(not(unix))]
    fn signal(&self, _members: &[Process], _signal: Signal) {}

    fn reap(&self, _members: &[Process]) {}
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io;

    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::net::unix::pipe;
    use tokio::process::Command;

    use super::super::{Run, Running, Streams};
    use super::*;

    #[test]
    fn stat_lines() {
        let process = |zombie| Process { pid: 7, parent: 2, group: 3, session: 4, zombie };
        for (stat, want) in [
            ("7 (bash) S 2 3 4 0 -1", Some(process(false))),
            ("7 (a) b) Z 9 9) Z 2 3 4 0", Some(process(true))),
            ("7 (x\ny) R 2 3 4", Some(process(false))),
            ("7 (short) S 2", None),
            ("", None),
        ] {
            assert_eq!(parse_stat(7, stat.as_bytes()), want, "{stat:?}");
        }
    }

    /// Starts a script that prints `count` process ids, and returns them with the running child.
    async fn start(script: &str, count: usize) -> (Running, Vec<u32>) {
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-c", script]);
        let (output, writer) = io::pipe().unwrap();
        let stdout = writer.try_clone().unwrap().into();
        let streams = Streams { stdin: None, stdout, stderr: writer.into(), kept: None };
        let running = Running::spawn(&command, streams, crate::stdx::process::Unconfined::Free).unwrap();
        let mut lines = BufReader::new(pipe::Receiver::from_owned_fd(output.into()).unwrap()).lines();
        let mut pids = Vec::new();
        while pids.len() < count {
            pids.push(lines.next_line().await.unwrap().expect("a process id").trim().parse().unwrap());
        }
        (running, pids)
    }

    fn living(pids: &[u32]) -> Vec<u32> {
        let all = processes();
        pids.iter().copied().filter(|pid| all.iter().any(|process| process.pid == *pid)).collect()
    }

    /// A shell that ignores SIGTERM, with a grandchild, a `setsid` child, a daemon that was orphaned, and one that has
    /// nothing left by which it could be known: no parent, session, variable or open file of its own start.
    const STUBBORN: &str = "trap '' TERM; echo $$
        bash -c 'trap \"\" TERM; bash -c \"trap \\\"\\\" TERM; echo \\$\\$; while :; do sleep 1; done\" & wait' &
        setsid bash -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' &
        (setsid bash -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' &)
        (setsid env -i bash -c 'trap \"\" TERM; echo $$; exec <&- >&- 2>&-; while :; do /bin/sleep 1; done' &)
        while :; do sleep 1; done";

    #[tokio::test]
    async fn nothing_survives_the_end() {
        let (other, others) = start("echo $$; sleep 1000", 1).await;
        let (running, pids) = start(STUBBORN, 5).await;
        assert_eq!(living(&pids), pids);
        running.end().await;
        assert_eq!(living(&pids), Vec::<u32>::new(), "every process is gone and reaped");
        assert_eq!(living(&others), others, "another tree is untouched");
        other.end().await;
        assert_eq!(living(&others), Vec::<u32>::new());
    }

    #[tokio::test]
    async fn nothing_survives_a_drop() {
        let (running, pids) = start(STUBBORN, 5).await;
        drop(running);
        let all = processes();
        let left: Vec<_> = all.iter().filter(|process| pids.contains(&process.pid) && !process.zombie).collect();
        // SIGKILL was sent to all; the kernel may still be at it.
        for process in left {
            while stat(process.pid).is_some_and(|process| !process.zombie) {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn orphans_are_reaped_while_their_tree_runs() {
        // Fifty that end at once and one that stays, each handed to us.
        let script = "for n in {1..50}; do (setsid env -i bash -c 'echo $$' &); done; while :; do sleep 1; done";
        let (mut running, pids) = start(script, 50).await;
        let zombies = || processes().iter().filter(|process| process.zombie && pids.contains(&process.pid)).count();
        let wait = running.child.wait();
        let gone = async {
            while zombies() > 0 || !living(&pids).is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let patience = tokio::time::sleep(Duration::from_secs(30));
        tokio::select! {
            _ = wait => panic!("the shell ended"),
            () = gone => {}
            () = patience => panic!("{} zombies are left", zombies()),
        }
        running.end().await;
    }

    #[tokio::test]
    async fn a_child_of_somebody_else_keeps_its_exit_status() {
        let mut mine = Command::new("bash").args(["-c", "exit 7"]).spawn().unwrap();
        let (running, _) = start("echo $$; sleep 1000", 1).await;
        running.end().await;
        assert_eq!(mine.wait().await.unwrap().code(), Some(7));
    }
}
