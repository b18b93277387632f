//! Plays long synthetic sessions through the compaction that the agent uses, and counts what must never happen.
//!
//! `cargo run --release --example compaction_lab -- --sessions 200` draws a table; its last line says `violations: 0`.
//! `… -- money` compares what sessions cost with what they cost if nothing was ever cleared, by window, price list and pauses.
//! `… -- facts` plays sessions with planted facts, and tells which of them survive: `docs/compaction.md` describes it. An
//! example and not a subcommand, since the scripts and the lab would weigh more in the binary than what they are for.

// A figure that cannot be taken is a failure, and its message goes to the terminal.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::print_stderr)]

mod cache;
mod desk;
mod facts;
mod money;
mod recall;
mod script;
mod shapes;
mod sim;
mod survive;
mod tool_context;
mod wires;
mod writers;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use cache::LISTS;
use sim::{Case, Policy, Stats};

/// Windows of the table, in tokens.
const WINDOWS: [u64; 7] = [8_192, 12_000, 16_000, 32_000, 128_000, 200_000, 1_000_000];

/// Those that the sessions take turns with. What is played in the smallest is played in the ones next to it, too.
const TURNS: [&[usize]; 5] = [&[0, 1, 2], &[3], &[4], &[5], &[6]];

struct Arguments {
    sessions: u64,
    turns: u64,
    seed: u64,
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { sessions: 200, turns: 500, seed: 1 };
    while let Some(name) = given.next() {
        let value = given.next().and_then(|value| value.parse::<u64>().ok());
        let value = value.ok_or_else(|| format!("{name} needs a number, as in `--sessions 200`"))?;
        match name.as_str() {
            "--sessions" => arguments.sessions = value,
            "--turns" => arguments.turns = value,
            "--seed" => arguments.seed = value,
            _ => return Err(format!("{name} is unknown: --sessions, --turns and --seed are")),
        }
    }
    Ok(arguments)
}

/// Does so many pieces of work on all cores; the results in order.
fn together<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (next, threads) = (AtomicUsize::new(0), std::thread::available_parallelism().map_or(1, usize::from));
    let some = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return done;
            }
            done.push((at, work(at)));
        }
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        let ended = running.into_iter().map(|thread| thread.join());
        ended.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    // In one order whichever thread was faster, so that sums are the same to the last digit.
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn main() -> std::process::ExitCode {
    let home = folder().expect("a temporary folder");
    let mut given = std::env::args().skip(1).peekable();
    if given.next_if(|word| word == "facts").is_some() {
        return facts::run(given, home.path());
    }
    let money = given.next_if(|word| word == "money").is_some();
    let arguments = match arguments(given) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}");
            return std::process::ExitCode::from(2);
        }
    };
    let started = Instant::now();
    let corpus = shapes::corpus();
    if money {
        return money::run(&arguments, home.path(), &corpus);
    }
    let policies = Policy::ALL.len();
    // The same session under every policy.
    let played = together(arguments.sessions as usize, |session| {
        let seed = arguments.seed.wrapping_mul(0x9E37_79B9).wrapping_add(session as u64);
        let windows = TURNS[session % TURNS.len()].iter();
        let cases = windows.flat_map(|window| Policy::ALL.into_iter().enumerate().map(move |case| (*window, case)));
        let play = |(window, (at, policy)): (usize, (usize, Policy))| {
            let (number, turns, list) = (session as u64, arguments.turns, &LISTS[0]);
            let case = Case { seed, number, window: WINDOWS[window], turns, policy, list, pauses: false };
            (window * policies + at, sim::play(home.path(), &corpus, case))
        };
        cases.map(play).collect::<Vec<_>>()
    });
    let mut all = vec![Stats::default(); WINDOWS.len() * policies];
    played.iter().flatten().for_each(|(row, stats)| all[*row].add(stats));
    report(&all);
    println!(
        "\n{} sessions of {} turns under {} policies in {:.1} s, seed {}",
        arguments.sessions,
        arguments.turns,
        Policy::ALL.len(),
        started.elapsed().as_secs_f64(),
        arguments.seed
    );
    let violations: u64 = all.iter().map(|stats| stats.violations).sum();
    for example in all.iter().flat_map(|stats| &stats.examples).take(10) {
        println!("violation: {example}");
    }
    // In a small window the trim is for what nobody could foresee; a conversation that lives on it forgets what it does.
    let often = |(window, stats): (&u64, &&Stats)| *window < 16_000 && stats.trims * 10 >= stats.requests.max(1);
    let default: Vec<&Stats> = all.iter().step_by(policies).collect();
    let often = WINDOWS.iter().zip(&default).filter(|(window, stats)| often((window, stats))).count();
    println!("small windows with a trim in every tenth request: {often}");
    println!("violations: {violations}");
    if violations == 0 { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// Where sessions are written: in memory where there is room, since what is measured is not the disk.
fn folder() -> std::io::Result<tempfile::TempDir> {
    const MEMORY: &str = "/dev/shm";
    const ROOM: u64 = 1 << 30;
    #[cfg(unix)]
    if rustix::fs::statvfs(MEMORY).is_ok_and(|found| found.f_bavail * found.f_frsize > ROOM)
        && let Ok(folder) = tempfile::tempdir_in(MEMORY)
    {
        return Ok(folder);
    }
    tempfile::tempdir()
}

fn report(all: &[Stats]) {
    let row = |name: &str, stats: &Stats| {
        let sessions = stats.sessions.max(1) as f64;
        let per = |count: u64| count as f64 / sessions;
        println!(
            "| {name} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1}% | {:.0}k | {:.0}k | {:.1} | {:.0}% | ${:.2} | ${:.2} | ${:.2} |",
            stats.sessions,
            per(stats.micro),
            per(stats.rereads),
            per(stats.full),
            per(stats.refused),
            per(stats.trims),
            stats.trims as f64 / stats.requests.max(1) as f64 * 100.0,
            per(stats.summarised) / 1e3,
            per(stats.saved) / 1e3,
            per(stats.invalidated) * 4.0 / 1e6,
            stats.trimmed_sessions as f64 / sessions * 100.0,
            stats.refilled / sessions,
            stats.unread / sessions,
            stats.dollars / sessions,
        );
    };
    println!(
        "| window, policy | sessions | micro | read again | full | refused | trim | of requests | summarized | saved | MB of prefix lost | trimmed | clearing cost | and saved | all |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let policies = Policy::ALL.len();
    for (at, window) in WINDOWS.iter().enumerate() {
        for (policy, stats) in Policy::ALL.iter().zip(&all[at * policies..]) {
            row(&format!("{}k, {}", window / 1000, policy.name()), stats);
        }
    }
    for (at, policy) in Policy::ALL.iter().enumerate() {
        let mut sum = Stats::default();
        all.iter().skip(at).step_by(policies).for_each(|stats| sum.add(stats));
        row(&format!("**all, {}**", policy.name()), &sum);
    }
    println!(
        "\nCounts, tokens and cost are of one session on average; \"trimmed\" is the share of sessions that needed the trim."
    );
}
