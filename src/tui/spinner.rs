//! What the agent is doing right now, drawn as one line.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use ratatui::text::{Line, Span};

use super::paint;
use super::theme::Theme;
use crate::stdx::text::{duration, short};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Time of one frame.
pub const FRAME: Duration = Duration::from_millis(100);

/// A request that failed and waits to be asked again.
#[derive(Debug, Clone, PartialEq)]
struct Retry {
    attempt: u32,
    of: u32,
    at: Instant,
}

/// The turn under way, or the user's own command.
#[derive(Debug, Clone, Default)]
pub struct Spinner {
    /// None when nothing runs.
    since: Option<Instant>,
    /// The user's `!` line that runs.
    shell: Option<String>,
    verb: Cow<'static, str>,
    /// Bytes received in this turn; tokens are told from them until they are counted.
    bytes: u64,
    retry: Option<Retry>,
    compacting: Option<Compacting>,
}

/// The conversation is being made to fit.
#[derive(Debug, Clone, PartialEq)]
struct Compacting {
    phase: String,
    /// Tokens of the summary so far.
    received: u64,
    /// No turn runs beside it: the spinner is here for it alone.
    alone: bool,
}

impl Spinner {
    /// Something runs that Esc can interrupt.
    pub fn busy(&self) -> bool {
        self.since.is_some() || self.shell.is_some()
    }

    /// A turn runs: a prompt now steers it.
    pub fn in_turn(&self) -> bool {
        self.since.is_some() && self.shell.is_none()
    }

    pub fn turn_started(&mut self, now: Instant) {
        let (since, verb) = (Some(now), "Waiting for the model".into());
        *self = Spinner { since, verb, shell: self.shell.take(), ..Spinner::default() };
    }

    /// Nothing runs anymore.
    pub fn stop(&mut self) {
        *self = Spinner::default();
    }

    /// The request is asked again at that time.
    pub fn retrying(&mut self, attempt: u32, of: u32, at: Instant) {
        self.retry = Some(Retry { attempt, of, at });
    }

    /// So many more bytes of the reply.
    pub fn received(&mut self, bytes: u64, verb: impl Into<Cow<'static, str>>) {
        self.bytes += bytes;
        self.say(verb);
    }

    /// What the turn under way does now.
    pub fn say(&mut self, verb: impl Into<Cow<'static, str>>) {
        self.retry = None;
        if !self.verb.is_empty() {
            self.verb = verb.into();
        }
    }

    pub fn shell_started(&mut self, command: String, now: Instant) {
        self.shell = Some(command);
        self.since.get_or_insert(now);
    }

    pub fn shell_done(&mut self) {
        self.shell = None;
        if self.verb.is_empty() {
            self.since = None;
        }
    }

    pub fn compacting(&mut self, now: Instant) {
        let alone = self.since.is_none();
        self.since.get_or_insert(now);
        self.compacting = Some(Compacting { phase: "Compacting…".into(), received: 0, alone });
    }

    /// What compaction does now, and how many tokens of the summary there are.
    pub fn compacted_so_far(&mut self, phase: String, received: u64) {
        if let Some(compacting) = &mut self.compacting {
            (compacting.phase, compacting.received) = (phase, received);
        }
    }

    /// Compaction ended, well or not.
    pub fn compacted(&mut self) {
        if self.compacting.take().is_some_and(|compacting| compacting.alone) {
            self.since = None;
        }
    }

    /// When the line looks different next; none while nothing runs.
    pub fn wake(&self, now: Instant, still: bool) -> Option<Instant> {
        let since = self.since?;
        let period = if still { Duration::from_secs(1) } else { FRAME };
        let steps = now.saturating_duration_since(since).as_nanos() / period.as_nanos() + 1;
        Some(since + Duration::from_nanos((period.as_nanos() * steps) as u64))
    }

    /// The line, when something runs. `still` shows no motion.
    pub fn line(&self, now: Instant, still: bool, width: u16, theme: &Theme) -> Option<Line<'static>> {
        let elapsed = now.saturating_duration_since(self.since?);
        let frame = match still {
            true => "●",
            false => FRAMES[(elapsed.as_millis() / FRAME.as_millis()) as usize % FRAMES.len()],
        };
        // Once it is asked again, the wait is for the model.
        let retry = self.retry.as_ref().filter(|retry| retry.at > now);
        let (verb, rest) = match (retry, &self.shell) {
            _ if let Some(compacting) = &self.compacting => {
                let count = match compacting.received {
                    0 => String::new(),
                    received => format!(" · ↓ {} tokens", short(received)),
                };
                (compacting.phase.clone(), format!("{}{count} · esc to cancel", duration(elapsed)))
            }
            (Some(retry), _) => {
                let left = retry.at.saturating_duration_since(now).as_millis().div_ceil(1000);
                let left = duration(Duration::from_secs(left as u64));
                (format!("Retrying in {left}"), format!("attempt {} of {} · esc to stop", retry.attempt, retry.of))
            }
            (None, Some(command)) => (format!("! {command}"), format!("{} · esc to interrupt", duration(elapsed))),
            (None, None) => {
                let tokens = self.bytes.div_ceil(4);
                let count = if tokens > 0 { format!(" · ↓ {} tokens", short(tokens)) } else { String::new() };
                (self.verb.to_string(), format!("{}{count} · esc to interrupt", duration(elapsed)))
            }
        };
        let room = (width as usize).saturating_sub(2);
        let rest = paint::cut(&format!(" ({rest})"), room);
        let verb = paint::cut(&verb, room.saturating_sub(paint::width(&rest)).max(room / 3));
        let rest = paint::cut(&rest, room.saturating_sub(paint::width(&verb)));
        let style = match (&self.compacting, retry) {
            (Some(_), _) => theme.accent,
            (None, Some(_)) => theme.warning,
            (None, None) => theme.spinner,
        };
        Some(Line::from(vec![
            Span::styled(format!("{frame} "), style),
            Span::styled(verb, style),
            Span::styled(rest, theme.dim),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_goes_on() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let line = |spinner: &Spinner, now: Instant, width: u16| -> Option<String> {
            spinner.line(now, true, width, &Theme::dark()).map(|line| line.to_string())
        };
        let mut spinner = Spinner::default();
        let mut check = |heard: &dyn Fn(&mut Spinner), seconds: u64, want: Option<&str>| {
            heard(&mut spinner);
            assert_eq!(line(&spinner, at(seconds), 70).as_deref(), want);
        };
        check(&|_| (), 0, None);
        check(&|spinner| spinner.turn_started(at(0)), 0, Some("● Waiting for the model (0 s · esc to interrupt)"));
        check(
            &|spinner| spinner.received(4_900, "Writing"),
            65,
            Some("● Writing (1 m 5 s · ↓ 1.2k tokens · esc to interrupt)"),
        );
        let retry = Some("● Retrying in 5 s (attempt 2 of 10 · esc to stop)");
        check(&|spinner| spinner.retrying(2, 10, at(71)), 66, retry);
        let again = Some("● Writing (1 m 12 s · ↓ 1.2k tokens · esc to interrupt)");
        check(&|_| (), 72, again);
        let runs = Some("● Running Bash (1 m 10 s · ↓ 1.2k tokens · esc to interrupt)");
        check(&|spinner| spinner.say("Running Bash"), 70, runs);
        assert_eq!(spinner.wake(at(70), true), Some(at(71)));
        assert_eq!(spinner.wake(at(70), false), Some(at(70) + FRAME));
        assert!(line(&spinner, at(70), 20).unwrap().chars().count() <= 20);
        spinner.stop();
        assert_eq!((spinner.busy(), spinner.wake(at(71), false)), (false, None));
    }

    #[test]
    fn compaction_has_its_own_words_and_colour() {
        let (start, theme) = (Instant::now(), Theme::dark());
        let mut spinner = Spinner::default();
        let mut check = |heard: &dyn Fn(&mut Spinner), seconds: u64, want: Option<&str>| {
            heard(&mut spinner);
            let line = spinner.line(start + Duration::from_secs(seconds), true, 70, &theme);
            assert_eq!(line.as_ref().map(ToString::to_string).as_deref(), want);
            line.into_iter().for_each(|line| assert_eq!(line.spans[1].style, theme.accent));
        };
        check(&|spinner| spinner.compacting(start), 0, Some("● Compacting… (0 s · esc to cancel)"));
        let so_far = Some("● Summarizing… (3 s · ↓ 1.2k tokens · esc to cancel)");
        check(&|spinner| spinner.compacted_so_far("Summarizing…".into(), 1_250), 3, so_far);
        check(&Spinner::compacted, 4, None);
        // In a turn the turn continues.
        spinner.turn_started(start);
        spinner.compacting(start);
        spinner.compacted();
        assert!(spinner.in_turn());
    }

    #[test]
    fn a_shell_line_beside_a_turn_or_alone() {
        let now = Instant::now();
        let mut spinner = Spinner::default();
        let mut check = |heard: &dyn Fn(&mut Spinner), busy: bool, in_turn: bool| {
            heard(&mut spinner);
            assert_eq!((spinner.busy(), spinner.in_turn()), (busy, in_turn));
        };
        let started = |spinner: &mut Spinner| spinner.shell_started("sleep 9".into(), now);
        check(&started, true, false);
        check(&Spinner::shell_done, false, false);
        check(&|spinner| spinner.turn_started(now), true, true);
        check(&started, true, false);
        check(&Spinner::shell_done, true, true);
    }
}
