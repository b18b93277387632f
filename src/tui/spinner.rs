//! What the agent is doing right now: folded from events, drawn as one line.

use std::time::{Duration, Instant};

use ratatui::text::{Line, Span};

use super::paint;
use super::theme::Theme;
use crate::protocol::{Compaction, Delta, Event, Item, Turn};
use crate::stdx::text::short;

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
    verb: String,
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

    pub fn apply(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Session(_) | Event::Turn(Turn::Ended { .. }) | Event::Closed => *self = Spinner::default(),
            Event::Turn(Turn::Started) => {
                *self = Spinner { since: Some(now), shell: self.shell.take(), ..Spinner::default() };
                self.verb = "Waiting for the model".into();
            }
            Event::Retrying { attempt, of, delay_ms, .. } => {
                let at = now + Duration::from_millis(*delay_ms);
                self.retry = Some(Retry { attempt: *attempt, of: *of, at });
            }
            Event::Compaction(step) => self.compaction(step, now),
            Event::Delta(delta) => self.delta(delta),
            Event::Item(Item::CallStarted { tool, .. }) => self.say(format!("Running {tool}")),
            Event::Item(Item::Message { .. }) => self.say("Waiting for the model".into()),
            Event::Item(Item::ShellStarted { command }) => {
                self.shell = Some(command.clone());
                self.since.get_or_insert(now);
            }
            Event::Item(Item::ShellDone { .. }) => {
                self.shell = None;
                if self.verb.is_empty() {
                    self.since = None;
                }
            }
            _ => {}
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
        let (verb, rest) = match (&self.retry, &self.shell) {
            _ if let Some(compacting) = &self.compacting => {
                let count = match compacting.received {
                    0 => String::new(),
                    received => format!(" · ↓ {} tokens", short(received)),
                };
                (compacting.phase.clone(), format!("{}{count} · esc to cancel", seconds(elapsed)))
            }
            (Some(retry), _) => {
                let left = retry.at.saturating_duration_since(now).as_millis().div_ceil(1000);
                (format!("Retrying in {left} s"), format!("attempt {} of {} · esc to stop", retry.attempt, retry.of))
            }
            (None, Some(command)) => (format!("! {command}"), format!("{} · esc to interrupt", seconds(elapsed))),
            (None, None) => {
                let tokens = self.bytes.div_ceil(4);
                let count = if tokens > 0 { format!(" · ↓ {} tokens", short(tokens)) } else { String::new() };
                (self.verb.clone(), format!("{}{count} · esc to interrupt", seconds(elapsed)))
            }
        };
        let room = (width as usize).saturating_sub(2);
        let rest = paint::cut(&format!(" ({rest})"), room);
        let verb = paint::cut(&verb, room.saturating_sub(paint::width(&rest)).max(room / 3));
        let rest = paint::cut(&rest, room.saturating_sub(paint::width(&verb)));
        let style = match (&self.compacting, &self.retry) {
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

    fn compaction(&mut self, step: &Compaction, now: Instant) {
        match step {
            Compaction::Started { .. } => {
                let alone = self.since.is_none();
                self.since.get_or_insert(now);
                self.compacting = Some(Compacting { phase: "Compacting…".into(), received: 0, alone });
            }
            Compaction::Progress { phase, received } => {
                if let Some(compacting) = &mut self.compacting {
                    (compacting.phase, compacting.received) = (phase.clone(), *received);
                }
            }
            Compaction::Completed { .. } | Compaction::Failed { .. } => {
                if self.compacting.take().is_some_and(|compacting| compacting.alone) {
                    self.since = None;
                }
            }
            Compaction::MicroApplied { .. }
            | Compaction::SessionMemoryApplied { .. }
            | Compaction::ThresholdExceeded { .. } => {}
        }
    }

    fn delta(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { text } => {
                self.bytes += text.len() as u64;
                self.say_static("Writing");
            }
            Delta::Thinking { text } => {
                self.bytes += text.len() as u64;
                self.say_static("Thinking");
            }
            Delta::ToolArgs { name, bytes } => {
                self.bytes += bytes;
                let verb = format!("Preparing {name}");
                self.say(verb);
            }
            Delta::ToolOutput { .. } | Delta::Discarded { .. } => {}
        }
    }

    /// Spares an allocation for each delta of a stream.
    fn say_static(&mut self, verb: &'static str) {
        self.retry = None;
        if self.verb != verb {
            self.verb = verb.to_owned();
        }
    }

    fn say(&mut self, verb: String) {
        self.retry = None;
        if !self.verb.is_empty() {
            self.verb = verb;
        }
    }
}

fn seconds(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} m {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} m", seconds / 3600, seconds / 60 % 60),
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
        let mut check = |event: Event, seconds: u64, want: Option<&str>| {
            spinner.apply(&event, at(seconds));
            assert_eq!(line(&spinner, at(seconds), 70).as_deref(), want);
        };
        check(Event::Notice { text: "x".into() }, 0, None);
        check(Event::Turn(Turn::Started), 0, Some("● Waiting for the model (0 s · esc to interrupt)"));
        check(
            Event::Delta(Delta::Text { text: "x".repeat(4_900) }),
            65,
            Some("● Writing (1 m 5 s · ↓ 1.2k tokens · esc to interrupt)"),
        );
        check(
            Event::Retrying { attempt: 2, of: 10, delay_ms: 5_000, reason: "overloaded".into() },
            66,
            Some("● Retrying in 5 s (attempt 2 of 10 · esc to stop)"),
        );
        let call = Item::CallStarted { call: crate::message::CallId::nth(1), tool: "Bash".into(), title: "ls".into() };
        check(Event::Item(call), 70, Some("● Running Bash (1 m 10 s · ↓ 1.2k tokens · esc to interrupt)"));
        assert_eq!(spinner.wake(at(70), true), Some(at(71)));
        assert_eq!(spinner.wake(at(70), false), Some(at(70) + FRAME));
        assert!(line(&spinner, at(70), 20).unwrap().chars().count() <= 20);
        let end =
            Turn::Ended { end: crate::protocol::TurnEnd::Done, usage: Default::default(), cost_usd: None, millis: 1 };
        spinner.apply(&Event::Turn(end), at(71));
        assert_eq!((spinner.busy(), spinner.wake(at(71), false)), (false, None));
    }

    #[test]
    fn compaction_has_its_own_words_and_colour() {
        use crate::protocol::Trigger;
        let (start, theme) = (Instant::now(), Theme::dark());
        let mut spinner = Spinner::default();
        let mut check = |step: Compaction, seconds: u64, want: Option<&str>| {
            let now = start + Duration::from_secs(seconds);
            spinner.apply(&Event::Compaction(step), now);
            let line = spinner.line(now, true, 70, &theme);
            assert_eq!(line.as_ref().map(ToString::to_string).as_deref(), want);
            line.into_iter().for_each(|line| assert_eq!(line.spans[1].style, theme.accent));
        };
        check(
            Compaction::Started { trigger: Trigger::Manual, tokens: 9 },
            0,
            Some("● Compacting… (0 s · esc to cancel)"),
        );
        check(
            Compaction::Progress { phase: "Summarising…".into(), received: 1_250 },
            3,
            Some("● Summarising… (3 s · ↓ 1.2k tokens · esc to cancel)"),
        );
        check(Compaction::Completed { receipt: Default::default(), summary: String::new() }, 4, None);
        // In a turn the turn continues.
        spinner.apply(&Event::Turn(Turn::Started), start);
        spinner.apply(
            &Event::Compaction(Compaction::Started { trigger: crate::protocol::Trigger::Auto, tokens: 9 }),
            start,
        );
        let failed = Compaction::Failed {
            trigger: crate::protocol::Trigger::Auto,
            reason: crate::protocol::FailureReason::NoSummary,
            text: String::new(),
        };
        spinner.apply(&Event::Compaction(failed), start);
        assert!(spinner.in_turn());
    }

    #[test]
    fn a_shell_line_beside_a_turn_or_alone() {
        let now = Instant::now();
        let mut spinner = Spinner::default();
        let mut check = |event: Event, busy: bool, in_turn: bool| {
            spinner.apply(&event, now);
            assert_eq!((spinner.busy(), spinner.in_turn()), (busy, in_turn));
        };
        let started = || Event::Item(Item::ShellStarted { command: "sleep 9".into() });
        let done = || Event::Item(Item::ShellDone { command: "sleep 9".into(), output: String::new(), code: Some(0) });
        check(started(), true, false);
        check(done(), false, false);
        check(Event::Turn(Turn::Started), true, true);
        check(started(), true, false);
        check(done(), true, true);
    }
}
