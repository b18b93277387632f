//! What comes in bulk: one endless word, one endless list, keys without a pause, a file that is a single line.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::{KEY, KEYS, Plan, Table, clear_keys, key, keys_shown, launch, millis, p95, pause, process, screen, turn};

/// # Errors
/// The file to be searched cannot be written.
pub(crate) fn measure(plan: &Plan, server: &Server) -> std::io::Result<Table> {
    let mut table = Table(Vec::new());
    let part = if plan.smoke { 100 } else { 1 };
    let fresh = || {
        let (screen, home) = launch(plan, server);
        key(&screen);
        clear_keys(&screen);
        (screen, home)
    };
    for (name, kind, count) in [
        ("key to screen while a word of 50 MB comes, p95 ms", "word", 50_000_000 / part),
        ("key to screen while 300,000 list items come, p95 ms", "items", 300_000 / part),
    ] {
        let (screen, _home) = fresh();
        screen.send(format!("BENCH:{kind}:{count}:F1\r"));
        screen.wait_text(if kind == "word" { "xxxxxx" } else { "item" });
        table.add(name, keys_until(&screen, "DONEF1"), 50.0);
    }

    let (screen, _home) = fresh();
    let cpu = process::cpu(screen.pid());
    screen.send(format!("{}the end", "many words ".repeat(50_000 / part / 11)));
    screen.wait_for("the end of the text", |text| text.contains("[Pasted") || text.contains("the end"));
    screen.settle(Duration::from_secs(1));
    table.add("50,000 keys at once, CPU s", process::cpu(screen.pid()) - cpu, 1.0);

    let (screen, home) = fresh();
    let mut file = BufWriter::new(File::create(home.path().join("line.txt"))?);
    for _ in 0..600 / part {
        file.write_all(&[b'x'; 1_000_000])?;
    }
    file.write_all(b"needle\n")?;
    file.flush()?;
    turn(&screen, "grep:1", "F2");
    table.add("Grep over a line of 600 MB, most memory, RSS MiB", process::most(screen.pid()), 100.0);
    Ok(table)
}

/// The 95th percentile of key times until a text is on the screen, in milliseconds.
fn keys_until(screen: &screen::Screen, end: &str) -> f64 {
    let mut times = Vec::new();
    while !screen.text().contains(end) {
        pause(times.len());
        // A frame that is half there shows fewer keys than were typed, so they are counted here.
        let shown = times.len() % KEYS + 1;
        let start = Instant::now();
        screen.send(KEY.to_string());
        screen.wait_for("the key", |text| keys_shown(text) == shown);
        times.push(millis(start));
        if shown == KEYS {
            screen.send("\x15");
            screen.wait_for("an empty prompt", |text| keys_shown(text) == 0);
        }
    }
    p95(times)
}
