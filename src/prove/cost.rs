//! What it costs to run a command confined and recorded, beside one that nothing holds.

use std::io;
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::Cost;
use crate::sandbox::{Level, Policy, Record, Sandbox};

/// How often each is run, in turns, so that a busy moment hits all of them.
const RUNS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures all four; what this machine cannot do costs nothing more.
///
/// # Errors
/// `true` cannot be started.
pub(super) async fn measured(sandbox: &Sandbox, level: Level) -> io::Result<Cost> {
    let temp = tempfile::tempdir()?;
    let own = Sandbox::off();
    let record = |run: usize| Record {
        store: temp.path().join(run.to_string()),
        largest: 1 << 20,
        budget: 1 << 20,
        skip: Vec::new(),
        within: Vec::new(),
    };
    let mut times = [const { Vec::new() }; 4];
    for run in 0..RUNS {
        let recorded = Policy { record: Some(record(run)), ..Policy::free() };
        let confined = if level > Level::None { Policy::reading(Vec::new()) } else { Policy::free() };
        for (times, (sandbox, policy)) in times.iter_mut().zip([
            (&own, Policy::free()),
            (sandbox, Policy::free()),
            (sandbox, confined),
            (sandbox, recorded),
        ]) {
            let begun = Instant::now();
            Box::pin(sandbox.run_captured(Command::new("true"), &policy, &[], PATIENCE, 1024)).await?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let [plain, free, confined, recorded] = times.map(median);
    Ok(Cost { plain, free, confined, recorded })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
