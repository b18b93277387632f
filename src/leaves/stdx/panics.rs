//! Panics are kept until they can be reported: a message on a screen that is being drawn is lost, or spoils it.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ansi::Shown;
use super::text::truncate;

/// Most messages that are kept; one fault may repeat without end.
const MOST: usize = 16;

// A panic may come from any thread; the hook is the process's own, too.
static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<String>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the program. Its panic, and those of its threads that nobody took, are printed on standard error at its end, when
/// the terminal is the shell's again. None when it panicked.
pub fn reported<T>(run: impl FnOnce() -> T) -> Option<T> {
    set_hook(Box::new(|info| {
        tracing::error!("{info}");
        let thread = std::thread::current();
        let mut kept = kept();
        if kept.len() < MOST {
            kept.push(format!("thread '{}' {info}", thread.name().unwrap_or("<unnamed>")));
        }
    }));
    // Nothing of what ran is used again.
    let ended = catch_unwind(AssertUnwindSafe(run)).ok();
    let mut out = Shown::new(std::io::stderr());
    for text in take() {
        // Without a reader of our errors there is nobody left to tell.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
    ended
}

/// Takes the messages, to report them.
pub fn take() -> Vec<String> {
    std::mem::take(&mut *kept())
}

/// What a panic said, with its place where the hook has kept it.
pub fn said(panic: &(dyn Any + Send)) -> String {
    // A reason may quote what somebody sent: a screenful of it would push the rest away.
    const COLUMNS: usize = 400;
    let kept = take();
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = if kept.is_empty() { text.unwrap_or("no reason was given").to_owned() } else { kept.join("; ") };
    truncate(&text, COLUMNS).into_owned()
}
