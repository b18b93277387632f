//! `compaction_lab money`: what clearing saves, by window, price list, and whether the user takes breaks.

use std::path::Path;
use std::process::ExitCode;

use cocode::compact::memory::{self, Costs};
use cocode::compact::{Driver, Window};

use crate::Arguments;
use crate::cache::LISTS;
use crate::desk;
use crate::sim::{self, Case, Policy};

const WINDOWS: [u64; 5] = [8_192, 32_000, 128_000, 200_000, 1_000_000];

/// Plays each session under both policies. Fails where the default costs more than never clearing.
pub(crate) fn run(arguments: &Arguments, home: &Path, corpus: &str) -> ExitCode {
    let mut cells = Vec::new();
    for window in WINDOWS {
        cells.extend(LISTS.iter().flat_map(|list| [(window, list, false), (window, list, true)]));
    }
    let sessions = arguments.sessions as usize;
    let played = crate::together(cells.len() * sessions, |at| {
        let (window, list, pauses) = cells[at / sessions];
        let session = (at % sessions) as u64;
        let seed = arguments.seed.wrapping_mul(0x9E37_79B9).wrapping_add(session);
        // All shapes and all writers come in turn.
        let (number, turns) = (session * 30, arguments.turns);
        [Policy::Default, Policy::Never].map(|policy| {
            let case = Case { seed, number, window, turns, policy, list, pauses };
            let stats = sim::play(home, corpus, case);
            (stats.dollars, stats.violations)
        })
    });
    println!("| window | prices | pauses | default | never cleared | saved | notes | a summary |");
    println!("|--:|---|---|--:|--:|--:|--:|--:|");
    let (mut dearer, mut violations) = (0, 0);
    for ((window, list, pauses), played) in cells.iter().zip(played.chunks(sessions)) {
        let sum = |at: usize| played.iter().map(|both| both[at].0).sum::<f64>() / sessions as f64;
        let (default, never) = (sum(0), sum(1));
        dearer += u64::from(default > never);
        violations += played.iter().flatten().map(|(_, violations)| violations).sum::<u64>();
        let (settings, features) = desk::shipped();
        let driver = Driver::new(settings, features, Window { tokens: Some(*window), max_output: 32_000 });
        let Costs { notes, summary } = memory::costs(&driver, list.prices());
        println!(
            "| {}k | {} | {} | ${default:.2} | ${never:.2} | {:.1}% | ${notes:.3} | ${summary:.3} |",
            window / 1000,
            list.model,
            if *pauses { "yes" } else { "no" },
            (1.0 - default / never) * 100.0,
        );
    }
    println!(
        "\n{sessions} sessions of {} turns a row, seed {}; cost of one session on average. Notes are kept where they cost no \
         more than a summary does when the window is full.",
        arguments.turns, arguments.seed
    );
    println!("violations: {violations}");
    println!("dearer: {dearer}");
    if dearer + violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
