//! A long session: what a turn leaves in memory, what a compaction gives back, and what its transcript view costs.

use std::time::{Duration, Instant};

use crate::server::Server;
use crate::{Plan, Table, clear_keys, key, launch, millis, process, turn};

/// Every so many turns call a tool.
const TOOLS: usize = 10;

pub(crate) fn measure(plan: &Plan, server: &Server) -> Table {
    let mut table = Table(Vec::new());
    let (turns, compacted) = if plan.smoke { (40, 10) } else { (7_000, 500) };
    let (screen, _home) = launch(plan, server);
    key(&screen);
    clear_keys(&screen);
    let memory = || {
        screen.settle(Duration::from_millis(300));
        process::rss(screen.pid())
    };
    let play = |number: usize| {
        turn(&screen, if number.is_multiple_of(TOOLS) { "tools:1" } else { "plain:0" }, &format!("L{number}"));
    };
    table.add("memory at the start, RSS MiB", memory(), None);
    // Before and after each compaction.
    let mut sizes = Vec::new();
    for number in 1..=turns {
        play(number);
        if number.is_multiple_of(compacted) {
            let before = memory();
            screen.send("/compact\r");
            screen.wait_for("the end of a compaction", |text| {
                text.contains("/compact undo") || text.contains("Nothing was compacted")
            });
            sizes.push((before, memory()));
        }
    }
    let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
    table.add("memory before the first compaction, RSS MiB", first.0, None);
    table.add("memory after it, RSS MiB", first.1, None);
    table.add("memory before the last compaction, RSS MiB", last.0, None);
    table.add("memory after that, RSS MiB", last.1, None);
    // Each compaction keeps the turns that fit into a share of the window: what it keeps grows until they fill it.
    let half = sizes.len() / 2;
    let grown = (last.1 - sizes[half - 1].1) * 1024.0 / ((sizes.len() - half) * compacted) as f64;
    table.add("memory of a turn that was compacted, KiB", grown, 1.0);

    play(turns + 1);
    let before = memory();
    let start = Instant::now();
    screen.send("\x0f");
    let shown = format!("DONEL{}", turns + 1);
    screen.wait_until("the transcript view", |state| {
        state.parser.screen().alternate_screen() && state.parser.screen().contents().contains(&shown)
    });
    table.add("the transcript view opens, ms", millis(start), 200.0);
    table.add("memory for it, MiB", memory() - before, 50.0);
    table
}
