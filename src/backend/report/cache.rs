//! What was paid for twice, and why, in words.

use std::fmt::Write;

use super::grouped;
use crate::protocol::report::{Broken, CacheReport, Forecast};
use crate::session::entry::{By, CacheBreak, Cause};
use crate::stdx::text::short;

/// Tokens of a request that are worth a forecast.
const WORTH: u64 = 20_000;
/// Breaks that are listed, the newest ones.
const LISTED: usize = 20;

/// One line for the end of a turn.
pub fn line(broke: &CacheBreak, more: usize) -> String {
    let more = match more {
        0 => String::new(),
        more => format!(" (and {more} more: /cost why)"),
    };
    format!("cache: {}: {}{more}", again(broke), cause(broke))
}

fn again(broke: &CacheBreak) -> String {
    format!("{} tokens written again{}", short(broke.again), money(broke.cost_usd))
}

fn money(usd: Option<f64>) -> String {
    match usd {
        Some(0.0) => String::new(),
        Some(usd) if usd < 0.01 => " (under $0.01)".to_owned(),
        Some(usd) => format!(" (${usd:.2})"),
        None => " (cost unknown)".to_owned(),
    }
}

fn cause(broke: &CacheBreak) -> String {
    match &broke.cause {
        Cause::Expired { gap, ttl } => {
            format!("it expired ({} since the last request, kept for {})", time(*gap), time(*ttl))
        }
        Cause::Changed { segment, by, .. } => who(by, segment),
        Cause::BelowMinimum { minimum } => {
            format!("the provider caches nothing below {} tokens", grouped(*minimum))
        }
        Cause::BreakpointLimit { blocks } => {
            format!("{blocks} blocks since the last breakpoint, more than the provider looks back")
        }
        Cause::Route { from, to } => format!("sent to {to} instead of {from}"),
        Cause::Provider => format!(
            "the provider lost it (entries {} and {} have the same prefix, within its lifetime)",
            broke.before, broke.request
        ),
    }
}

fn who(by: &By, segment: &str) -> String {
    match by {
        By::Tools { added, removed, changed } => {
            let part = |names: &[String], what: &str| match names {
                [] => None,
                [one, two, three, rest @ ..] if !rest.is_empty() => {
                    Some(format!("{one}, {two}, {three} and {} more {what}", rest.len()))
                }
                names => Some(format!("{} {what}", names.join(", "))),
            };
            let parts = [part(added, "added"), part(removed, "removed"), part(changed, "changed")];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            match parts.is_empty() {
                true => "tool list changed".into(),
                false => format!("tool list changed: {}", parts.join("; ")),
            }
        }
        By::System => "system prompt changed".into(),
        By::Model { from, to } => format!("model changed from {from} to {to}"),
        By::Thinking { from, to } => format!("thinking changed from {} to {}", level(from), level(to)),
        By::Compaction { number } => format!("compaction {number}"),
        By::CompactionUndone => "compaction undone".into(),
        By::Rewind => "rewind".into(),
        By::Cleared => "old tool results cleared".into(),
        By::Clipped => "large blocks trimmed".into(),
        By::Archived => "old tool results replaced by a digest".into(),
        By::Signatures => "signatures of another model dropped".into(),
        By::Unknown => format!("{segment} changed"),
    }
}

fn level(level: &str) -> &str {
    if level.is_empty() { "the default" } else { level }
}

fn time(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

/// What is worth knowing of the next request before it is sent: that all of it will be paid in full.
pub fn forecast(forecast: &Forecast) -> Option<String> {
    let cost = cold(forecast)?;
    Some(format!("next request: {} tokens, cache cold{cost}", short(forecast.tokens)))
}

/// What is worth knowing of several sub-agents before they begin.
pub fn fan_out(agents: usize, forecast: &Forecast) -> Option<String> {
    let cost = cold(forecast).filter(|_| agents > 1)?;
    Some(format!(
        "starting {agents} agents: {} tokens before they do any work, cache cold{cost}",
        short(forecast.tokens)
    ))
}

/// What tokens cost that no cache has, where that is worth a word.
fn cold(forecast: &Forecast) -> Option<String> {
    if !forecast.cold || forecast.tokens < WORTH {
        return None;
    }
    Some(match (forecast.usd, forecast.warm_usd) {
        (Some(0.0), _) => return None,
        (Some(usd), Some(warm)) => format!(": ≈ ${usd:.2} (warm: ${warm:.2})"),
        (Some(usd), None) => format!(": ≈ ${usd:.2}"),
        _ => " (cost unknown)".into(),
    })
}

/// The lines under the table of `/cost`.
pub(super) fn summary(text: &mut String, cache: &CacheReport) {
    if cache.prompt == 0 || cache.read == 0 && cache.breaks == 0 {
        return;
    }
    let _ = write!(text, "\n\n{} of {} input tokens came from the cache", grouped(cache.read), grouped(cache.prompt));
    match cache.breaks {
        0 => text.push_str("; nothing was written twice."),
        breaks => {
            let times = if breaks == 1 { "once".to_owned() } else { format!("{breaks} times") };
            let (again, usd) = (short(cache.again), money(cache.usd));
            let _ = write!(text, ". It broke {times}: {again} tokens written again{usd}; `/cost why` tells why.");
        }
    }
}

/// `/cost why`: every break in a line, or one in detail.
pub(super) fn why(Broken { breaks, number }: &Broken) -> String {
    if let Some((ts, broke)) = number.and_then(|number| breaks.get(number.checked_sub(1)?)) {
        return detail(ts, broke);
    }
    if breaks.is_empty() {
        return "The cache held: no request had to write again what an earlier one had cached.".into();
    }
    let mut text = String::from("| # | When (UTC) | Written again | Why |\n|--:|---|---|---|\n");
    let first = breaks.len().saturating_sub(LISTED);
    for (at, (ts, broke)) in breaks.iter().enumerate().skip(first) {
        let again = again(broke);
        let again = again.replacen(" tokens written again", "", 1);
        let _ = writeln!(text, "| {} | {} | {again} | {} |", at + 1, clock(ts), cause(broke).replace('|', "\\|"));
    }
    text.push_str("\n`/cost why <#>` shows the place where the request changed.");
    text
}

fn detail(ts: &str, broke: &CacheBreak) -> String {
    let mut text = format!("At {} UTC: {}, because of this: {}.\n\n", clock(ts), again(broke), cause(broke));
    if let Cause::Changed { segment, offset, .. } = &broke.cause {
        let _ = writeln!(text, "- First difference: `{segment}`, byte {} of the request", grouped(*offset));
    }
    let expected = match broke.expected {
        0 => "none expected, since nothing before that place is cached on its own".to_owned(),
        expected => format!("{} expected, by what the request has in common with an earlier one", grouped(expected)),
    };
    let _ = writeln!(text, "- Read from the cache: {} tokens; {expected}", grouped(broke.read));
    let _ = write!(text, "- Requests: entries {} and {} of the log", broke.before, broke.request);
    text
}

/// Of an RFC 3339 time, date and minute.
fn clock(ts: &str) -> String {
    ts.get(..16).unwrap_or(ts).replace('T', " ")
}
