//! What a process and its descendants cost, read from `/proc`.

use std::collections::HashMap;
use std::fs;

/// The process and all that came from it, as they are now.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((pid, u32::try_from(stat(pid)?.get(1).copied()?).ok()?))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

/// CPU seconds of the tree, waited-for children included.
pub(crate) fn cpu(root: u32) -> f64 {
    tree(root)
        .into_iter()
        .map(|pid| {
            // Clock ticks count threads that have ended, too; the scheduler's own figure is finer.
            let ticks = stat(pid).map_or(0, |fields| fields[11..15].iter().sum::<u64>());
            let threads: u64 = fs::read_dir(format!("/proc/{pid}/task"))
                .into_iter()
                .flatten()
                .filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
                .filter_map(|stat| stat.split(' ').next()?.parse::<u64>().ok())
                .sum();
            (ticks as f64 / 100.0).max(threads as f64 / 1e9)
        })
        .sum()
}

/// CPU nanoseconds of every thread of the tree that lives now.
pub(crate) fn thread_times(root: u32) -> HashMap<u32, u64> {
    let tasks = tree(root).into_iter().filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok()).flatten();
    tasks
        .filter_map(|task| {
            let task = task.ok()?;
            let stat = fs::read_to_string(task.path().join("schedstat")).ok()?;
            Some((task.file_name().to_str()?.parse().ok()?, stat.split(' ').next()?.parse().ok()?))
        })
        .collect()
}

/// CPU seconds that the threads of now have spent since then. (A thread that has ended since would count less than
/// nothing in a difference of sums.)
pub(crate) fn spent_since(before: &HashMap<u32, u64>, root: u32) -> f64 {
    let spent = |(thread, now): (u32, u64)| now - before.get(&thread).copied().unwrap_or(0);
    thread_times(root).into_iter().map(spent).sum::<u64>() as f64 / 1e9
}

/// CPU seconds of the children that this program has waited for.
pub(crate) fn cpu_of_ended_children() -> f64 {
    stat(std::process::id()).map_or(0.0, |fields| (fields[13] + fields[14]) as f64 / 100.0)
}

/// Proportional set size of the tree in MiB.
pub(crate) fn pss(root: u32) -> f64 {
    tree(root).into_iter().map(|pid| kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:")).sum::<f64>() / 1024.0
}

/// What of a tree is in memory, in MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Resident {
    /// Its resident set size. Most of it are pages of programs that lie in the page cache anyway: the kernel maps those
    /// around each one that is used, how many depends on its version.
    pub(crate) all: f64,
    /// What is nobody else's: the heap, stacks, and data that was changed.
    pub(crate) own: f64,
}

impl Resident {
    pub(crate) fn most(self, other: Resident) -> Resident {
        Resident { all: self.all.max(other.all), own: self.own.max(other.own) }
    }
}

/// A child between its birth and its `exec` runs in the memory of its parent: that is counted once.
pub(crate) fn resident(root: u32) -> Resident {
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program(root);
    let counted = tree(root).into_iter().filter(|pid| *pid == root || program(*pid) != own).collect::<Vec<_>>();
    let sum = |name| counted.iter().map(|pid| kib(&format!("/proc/{pid}/status"), name)).sum::<f64>() / 1024.0;
    Resident { all: sum("VmRSS:"), own: sum("RssAnon:") }
}

/// Resident set size of the tree in MiB.
pub(crate) fn rss(root: u32) -> f64 {
    resident(root).all
}

/// The most MiB that the process itself has held.
pub(crate) fn most(pid: u32) -> f64 {
    kib(&format!("/proc/{pid}/status"), "VmHWM:") / 1024.0
}

pub(crate) fn threads(root: u32) -> f64 {
    tree(root).into_iter().map(|pid| kib(&format!("/proc/{pid}/status"), "Threads:")).sum()
}

fn kib(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}

/// The numbers of `/proc/PID/stat` from the state on; the state itself reads as zero.
fn stat(pid: u32) -> Option<Vec<u64>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect())
}
