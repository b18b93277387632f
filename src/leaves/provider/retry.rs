//! When to ask again. Pure: the caller waits and shows the countdown.

use std::time::Duration;

use super::Error;

/// Most tries of one request, the first included.
pub const TRIES: u32 = 10;

/// Most tries where this machine refuses the connection: a server that is being started answers soon, or never.
const TRIES_HERE: u32 = 3;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(32);

/// Longest wait that a server may ask for; beyond it the user should decide.
const LONGEST_ASKED: Duration = Duration::from_secs(600);

/// Most tries of a request that fails like this.
pub fn tries(error: &Error) -> u32 {
    match error {
        Error::NoServer { .. } => TRIES_HERE,
        _ => TRIES,
    }
}

/// How long to wait before the next try, after `attempt` tries (from 1) of which the last failed with `error`. `jitter` is
/// random in 0..1 and takes up to a quarter off. None: do not ask again.
pub fn delay(attempt: u32, error: &Error, jitter: f64) -> Option<Duration> {
    if !error.retryable() || attempt >= tries(error) {
        return None;
    }
    let asked = match error {
        Error::RateLimited { retry_after, .. } | Error::Server { retry_after, .. } => *retry_after,
        _ => None,
    };
    match asked {
        Some(asked) if asked > LONGEST_ASKED => None,
        Some(asked) => Some(asked),
        None => {
            let doubled = FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST);
            Some(doubled.mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(retry_after: Option<u64>) -> Error {
        Error::Server { status: 503, message: String::new(), retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn delays() {
        let check = |attempt, error: Error, jitter, want: Option<u64>| {
            assert_eq!(delay(attempt, &error, jitter), want.map(Duration::from_millis), "{attempt} {error:?} {jitter}");
        };
        check(1, server(None), 0.0, Some(500));
        check(1, server(None), 1.0, Some(375));
        check(2, Error::EndedEarly, 0.0, Some(1_000));
        check(7, Error::Idle(LONGEST), 0.0, Some(32_000));
        check(9, server(None), 0.0, Some(32_000));
        check(10, server(None), 0.0, None);
        check(1, server(Some(7)), 1.0, Some(7_000));
        check(10, server(Some(7)), 0.0, None);
        check(1, server(Some(0)), 0.5, Some(0));
        check(1, server(Some(86_400)), 0.0, None);
        check(u32::MAX, server(None), 0.0, None);
        check(2, Error::NoServer { url: String::new() }, 0.0, Some(1_000));
        check(3, Error::NoServer { url: String::new() }, 0.0, None);
        check(1, Error::BadRequest { status: 400, message: String::new() }, 0.0, None);
        check(1, Error::ContextTooLong { tokens: None, limit: None }, 0.0, None);
    }
}
