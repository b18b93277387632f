//! `cocode find`: words in all sessions.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;

use super::Here;
use crate::session::index::{self, Summary};
use crate::session::recall::{self, Hit, Place, Terms};
use crate::stdx::ansi::{self, visible};
use crate::stdx::git;

/// Most places that are printed.
const PLACES: usize = 30;

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Find {
    /// Words, "a phrase" or /a regular expression/
    #[arg(required = true)]
    words: Vec<String>,
    /// Only sessions of this repository, or of this folder and those below
    #[arg(long)]
    repo: bool,
    /// Only sessions used since then: 12h, 30d, 8w
    #[arg(long, value_name = "AGE", value_parser = age)]
    since: Option<Duration>,
    /// Print one JSON object per place
    #[arg(long)]
    json: bool,
}

/// Reads `30d`.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not an age such as 12h, 30d or 8w");
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 24 * 7,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(hours * 3_600));
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

/// Searches; returns the exit code: 0, 1 when nothing was found, 2 for mistakes in what was typed.
///
/// # Errors
/// `out` or `err` cannot be written to.
pub(super) fn run(find: &Find, here: Here<'_>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let now = SystemTime::now();
    // A phrase that the shell has taken the quotes of is still one.
    let quoted =
        |word: &String| if word.contains(' ') && find.words.len() > 1 { format!("\"{word}\"") } else { word.clone() };
    let terms = match Terms::new(&find.words.iter().map(quoted).collect::<Vec<_>>().join(" "), None) {
        Ok(terms) => terms,
        Err(problem) => return writeln!(err, "error: {problem}").map(|()| 2),
    };
    let top = git::root(here.cwd).unwrap_or(here.cwd);
    let since = find.since.and_then(|age| now.checked_sub(age)).unwrap_or(UNIX_EPOCH);
    let wanted = |session: &Summary| {
        (!find.repo || session.cwd.starts_with(top)) && UNIX_EPOCH + Duration::from_millis(session.changed_ms) >= since
    };
    let hits = match recall::sessions(&here.paths.home, wanted, &terms, PLACES) {
        Ok(hits) => hits,
        Err(error) => return writeln!(err, "error: {error}").map(|()| 1),
    };
    if hits.is_empty() {
        return writeln!(err, "nothing found").map(|()| 1);
    }
    if find.json {
        for hit in &hits {
            writeln!(out, "{}", ansi::json(&to_json(hit)))?;
        }
        return Ok(0);
    }
    // Each session once, where its best place is.
    let mut told = HashSet::new();
    for Hit { session, .. } in &hits {
        if told.insert(&session.id) {
            let when = index::ago(now, UNIX_EPOCH + Duration::from_millis(session.changed_ms));
            let title = session.title.as_deref().unwrap_or("untitled");
            writeln!(out, "{}", visible(&format!("{}  {when}  {title}  {}", session.id, session.cwd.display())))?;
            for Hit { place, .. } in hits.iter().filter(|hit| hit.session.id == session.id) {
                writeln!(out, "{}", visible(&to_text(place)))?;
            }
        }
    }
    Ok(0)
}

fn to_text(place: &Place) -> String {
    let tool = place.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
    format!("    turn {} {}{tool}: {}", place.turn, place.kind.name(), place.excerpt)
}

fn to_json(Hit { session, place }: &Hit) -> serde_json::Value {
    json!({
        "session": session.id,
        "title": session.title,
        "cwd": session.cwd,
        "changed_ms": session.changed_ms,
        "entry": place.seq,
        "turn": place.turn,
        "kind": place.kind,
        "tool": place.tool,
        "text": place.excerpt,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (text, want) in
            [("12h", Some(12 * 3_600)), ("30d", Some(2_592_000)), ("2w", Some(1_209_600)), ("0d", Some(0))]
        {
            assert_eq!(age(text).ok().map(|age| age.as_secs()), want, "{text}");
        }
        for text in ["", "d", "30", "-1d", "3m", "99999999999999999999d", "1é"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
