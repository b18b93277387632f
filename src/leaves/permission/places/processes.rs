//! What `/proc` and `/dev` show of a process.

use std::path::Path;

use super::folded::folded;

/// Whether the path is one of the kernel's links to what a process has open, or where it is.
pub(super) fn is_of_process(path: &Path) -> bool {
    if ["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|device| path == Path::new(device)) {
        return true;
    }
    let Ok(rest) = path.strip_prefix("/proc") else { return false };
    let mut parts = rest.components().filter_map(|part| part.as_os_str().to_str());
    let process = |part: &str| part.ends_with("self") || part.bytes().all(|b| b.is_ascii_digit());
    parts.next().is_some_and(process) && parts.any(|part| matches!(part, "cwd" | "root" | "exe" | "fd" | "map_files"))
}

/// What the kernel tells of itself and of a process without its variables, its memory or the files that it has open.
const TOLD: &str = "status stat statm limits mounts mountinfo mountstats cgroup comm io sched schedstat wchan oom_score maps smaps \
    smaps_rollup";

/// Whether the path may show what a process was started with, or what it holds.
pub(super) fn shows_processes(path: &Path) -> bool {
    let mut parts = path.components().skip(1).map(folded);
    if parts.next().is_none_or(|first| first != "proc") {
        return false;
    }
    let parts: Vec<_> = parts.collect();
    let process = |part: &str| part.ends_with("self") || part.bytes().all(|b| b.is_ascii_digit());
    // A link is judged by where it leads as well.
    let linked = |part: &str| matches!(part, "cwd" | "root" | "exe" | "fd" | "ns");
    match parts.split_first() {
        Some((first, [])) => !process(first) && *first == "kcore",
        Some((first, [.., last])) if process(first) => {
            !TOLD.split_ascii_whitespace().any(|told| told == *last) && !parts.iter().any(|part| linked(part))
        }
        _ => false,
    }
}
