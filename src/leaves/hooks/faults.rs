//! What keeps a hook from running that has the right shape.

use super::config::{Definition, Does};
use super::event::Event;
use super::matcher::Matcher;

/// Longest timeout that a hook may ask for, in seconds.
const MAX_TIMEOUT: f64 = 86_400.0;

/// Only what happens to a call can be about one.
pub(super) fn condition_fault(event: Event, condition: Option<&str>) -> Option<String> {
    condition
        .filter(|_| !event.of_a_call())
        .map(|_| format!("`if` has no meaning for {event}: it is about a tool call"))
}

pub(super) fn matcher_fault(matcher: Option<&str>, key: &str) -> Option<String> {
    let error = Matcher::parse(matcher?).err()?;
    Some(format!("`{key}` is ignored: {error}"))
}

pub(super) fn fault(event: Event, hook: &Definition) -> Option<String> {
    let words: Vec<&String> = match &hook.does {
        Does::Line(line) => vec![line],
        Does::Program(program, arguments) => [program].into_iter().chain(arguments).collect(),
        Does::Request(request) => {
            if event == Event::SessionStart {
                return Some("cannot be of type \"http\": a session does not wait for a server to start".into());
            }
            return request.fault().or_else(|| timeout_fault(hook.timeout));
        }
        Does::Outside(_) => return timeout_fault(hook.timeout),
    };
    if words[0].trim().is_empty() {
        return Some("`command` is empty".into());
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Some("`command` contains a NUL character".into());
    }
    timeout_fault(hook.timeout)
}

fn timeout_fault(timeout: Option<f64>) -> Option<String> {
    let wrong = |seconds: &f64| !(*seconds > 0.0 && *seconds <= MAX_TIMEOUT);
    timeout.filter(wrong).map(|_| format!("`timeout` must be more than 0 and at most {MAX_TIMEOUT} seconds"))
}
