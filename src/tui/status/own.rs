//! The user's own status line: a command that is told what there is to know as JSON, and prints what is shown. Says when to
//! run it and draws what it printed; the loop runs it. Pure.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ratatui::text::Line;
use serde_json::{Value, json};

use crate::protocol::{ModelInfo, StatusLine, UsageInfo};
use crate::thinking::Level;
use crate::tui::paint;
use crate::tui::render::ansi;
use crate::tui::theme::Theme;

/// How long changes are gathered before it runs.
const REST: Duration = Duration::from_millis(300);
/// Most rows of it that are shown, and on a small screen.
const ROWS: usize = 3;
const FEW: usize = 1;
/// Screens with fewer rows are small.
const SMALL: u16 = 16;
/// Tokens above which other programs warn.
const LONG: u64 = 200_000;

/// How long the model was waited for in this run, tools and questions aside.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waited {
    since: Option<Instant>,
    pub total: Duration,
}

impl Waited {
    pub fn asked(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    pub fn answered(&mut self, now: Instant) {
        self.total += self.since.take().map_or(Duration::ZERO, |since| now.duration_since(since));
    }
}

/// What the command is told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    pub session: String,
    pub title: String,
    pub log: PathBuf,
    pub cwd: PathBuf,
    pub project: PathBuf,
    pub model: Option<ModelInfo>,
    pub usage: Option<UsageInfo>,
    /// Lines that the agent has added and removed since the program began.
    pub lines: (u64, u64),
    /// `NORMAL` and the like; empty without vim keys.
    pub vim: String,
    /// So many turns have ended.
    pub turns: u64,
    pub api: Duration,
    pub level: Level,
}

/// The command with what it printed last.
#[derive(Debug, Clone)]
pub struct Own {
    settings: StatusLine,
    begun: Instant,
    facts: Facts,
    due: Option<Instant>,
    running: bool,
    printed: String,
}

impl Own {
    pub fn new(settings: StatusLine, now: Instant) -> Own {
        let (facts, printed) = (Facts::default(), String::new());
        Own { settings, begun: now, facts, due: None, running: false, printed }
    }

    pub fn settings(&self) -> &StatusLine {
        &self.settings
    }

    /// Takes over what there is to know. It runs soon when that is something else.
    pub fn heed(&mut self, facts: Facts, now: Instant) {
        if !facts.session.is_empty() && facts != self.facts {
            self.facts = facts;
            let rest = now + REST;
            self.due = Some(self.due.map_or(rest, |due| due.min(rest)));
        }
    }

    pub fn wake(&self) -> Option<Instant> {
        self.due.filter(|_| !self.running)
    }

    /// What the command is to be told, when it is to run now. One runs at a time.
    pub fn take(&mut self, now: Instant) -> Option<String> {
        if self.wake().is_none_or(|due| due > now) {
            return None;
        }
        (self.due, self.running) = (None, true);
        Some(self.told(now).to_string())
    }

    /// The command has ended. One that failed or printed nothing leaves nothing.
    pub fn printed(&mut self, text: String, now: Instant) {
        (self.running, self.printed) = (false, text);
        if let (None, 1..) = (self.due, self.settings.refresh_s) {
            self.due = Some(now + Duration::from_secs(self.settings.refresh_s));
        }
    }

    /// What it printed, in its colors, on a screen of so many columns and rows.
    pub fn rows(&self, (width, height): (u16, u16), theme: &Theme) -> Vec<Line<'static>> {
        let padding = usize::from(self.settings.padding.min(width / 4));
        let room = usize::from(width).saturating_sub(2 * padding);
        let most = if height < SMALL { FEW } else { ROWS };
        let lines = ansi::lines(self.printed.trim_end(), theme.dim, theme);
        lines.into_iter().take(most).map(|line| fitted(line, padding, room)).collect()
    }

    fn told(&self, now: Instant) -> Value {
        let Facts { session, title, log, cwd, project, model, usage, lines, vim, api, level, turns: _ } = &self.facts;
        let usage = usage.as_ref();
        let effort = match level {
            Level::None => "low",
            Level::DeepThink => "medium",
            Level::UltraThink => "high",
        };
        let name = model.as_ref().map_or("", |model| model.model.as_str());
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut told = json!({
            "hook_event_name": "Status",
            "session_id": session,
            "transcript_path": log,
            "cwd": cwd,
            "model": { "id": name, "display_name": name },
            "workspace": { "current_dir": cwd, "project_dir": project, "added_dirs": [] },
            "version": env!("CARGO_PKG_VERSION"),
            "output_style": { "name": "default" },
            "cost": {
                "total_cost_usd": usage.and_then(|usage| usage.cost_usd).filter(|cost| *cost > 0.0).unwrap_or(0.0),
                "total_duration_ms": millis(now.duration_since(self.begun)),
                "total_api_duration_ms": millis(*api),
                "total_lines_added": lines.0,
                "total_lines_removed": lines.1,
            },
            "exceeds_200k_tokens": usage.is_some_and(|usage| usage.context > LONG),
            "effort": { "level": effort },
            "thinking": { "enabled": *level != Level::None },
        });
        if !title.is_empty() {
            told["session_name"] = json!(title);
        }
        if let Some(UsageInfo { total, context, window, .. }) = usage {
            let used = (100 * context).checked_div(*window).unwrap_or(0).min(100);
            told["context_window"] = json!({
                "total_input_tokens": total.input + total.cache_read + total.cache_write,
                "total_output_tokens": total.output,
                "context_window_size": window,
                "used_percentage": used,
                "remaining_percentage": 100 - used,
                // What is in the window, however it came there.
                "current_usage": {
                    "input_tokens": context,
                    "output_tokens": 0,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                },
            });
        }
        if !vim.is_empty() {
            told["vim"] = json!({ "mode": vim });
        }
        told
    }
}

/// A line cut to its room, behind some blanks.
fn fitted(line: Line<'static>, padding: usize, room: usize) -> Line<'static> {
    let mut left = room;
    let mut fitted = Line::from(" ".repeat(padding));
    for mut span in line.spans {
        let text = paint::cut(&span.content, left);
        left -= paint::width(&text).min(left);
        span.content = text.into();
        fitted.push_span(span);
        if left == 0 {
            break;
        }
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Usage;
    use crate::protocol::Fullness;

    fn settings(refresh_s: u64) -> StatusLine {
        StatusLine { command: "x".into(), padding: 1, refresh_s }
    }

    fn facts(session: &str) -> Facts {
        Facts { session: session.into(), ..Facts::default() }
    }

    #[test]
    fn it_runs_once_for_changes_that_come_together() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut own = Own::new(settings(0), start);
        own.heed(facts(""), at(0));
        assert_eq!(own.wake(), None);
        own.heed(facts("a"), at(0));
        own.heed(facts("b"), at(200));
        assert_eq!((own.wake(), own.take(at(299))), (Some(at(300)), None));
        assert!(own.take(at(300)).is_some_and(|told| told.contains(r#""session_id":"b""#)));
        // It runs: what changes meanwhile waits for its end.
        own.heed(facts("c"), at(310));
        assert_eq!((own.wake(), own.take(at(900))), (None, None));
        own.printed("one".into(), at(900));
        assert!(own.take(at(900)).is_some());
        own.printed("two".into(), at(950));
        own.heed(facts("c"), at(960));
        assert_eq!(own.wake(), None);
    }

    #[test]
    fn it_runs_again_by_itself_where_that_is_wanted() {
        let start = Instant::now();
        let mut own = Own::new(settings(5), start);
        own.heed(facts("a"), start);
        assert!(own.take(start + REST).is_some());
        own.printed(String::new(), start);
        assert_eq!(own.wake(), Some(start + Duration::from_secs(5)));
    }

    #[test]
    fn what_it_prints_keeps_its_colors_and_fits() {
        let mut own = Own::new(settings(0), Instant::now());
        own.printed("\x1b[31mred\x1b[0m plain 日本語\x1b]0;x\x07\nsecond\nthird\nfourth\n\n".into(), Instant::now());
        let shown =
            |size: (u16, u16)| -> Vec<String> { own.rows(size, &Theme::dark()).iter().map(Line::to_string).collect() };
        assert_eq!(shown((40, 24)), [" red plain 日本語", " second", " third"]);
        assert_eq!(shown((40, 12)), [" red plain 日本語"]);
        assert_eq!(shown((12, 12)), [" red plain…"]);
        let rows = own.rows((40, 12), &Theme::dark());
        assert_eq!(rows[0].spans[1].style.fg, Some(ratatui::style::Color::Red));
    }

    #[test]
    fn only_the_model_is_waited_for() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut waited = Waited::default();
        // A call that asks somebody between two replies, and a turn that ends with the last.
        for (asked, answered) in [(0, 2), (60, 61)] {
            waited.asked(at(asked));
            waited.asked(at(asked + 1));
            waited.answered(at(answered));
        }
        waited.answered(at(90));
        assert_eq!(waited.total, Duration::from_secs(3));
    }

    #[test]
    fn the_command_is_told_what_claude_code_tells() {
        let start = Instant::now();
        let mut own = Own::new(settings(0), start);
        let model = ModelInfo {
            provider: "anthropic".into(),
            model: "claude-sonnet-4-5".into(),
            window: 200_000,
            known: true,
            probing: false,
            local: false,
        };
        let total = Usage { input: 10, output: 2, cache_read: 5, cache_write: 1, ..Usage::default() };
        let (cost_usd, fullness) = (Some(0.5), Fullness::Fine);
        let usage = UsageInfo { total, cost_usd, context: 50_000, window: 200_000, left: 70, fullness, cache: None };
        let facts = Facts {
            session: "s".into(),
            title: "greet".into(),
            log: "/h/s/transcript.jsonl".into(),
            cwd: "/p/a".into(),
            project: "/p".into(),
            model: Some(model),
            usage: Some(usage),
            lines: (3, 1),
            vim: "NORMAL".into(),
            turns: 1,
            api: Duration::from_millis(700),
            level: Level::DeepThink,
        };
        own.heed(facts, start);
        let told: Value = serde_json::from_str(&own.take(start + Duration::from_secs(1)).unwrap()).unwrap();
        let want = json!({
            "hook_event_name": "Status",
            "session_id": "s",
            "session_name": "greet",
            "transcript_path": "/h/s/transcript.jsonl",
            "cwd": "/p/a",
            "model": { "id": "claude-sonnet-4-5", "display_name": "claude-sonnet-4-5" },
            "workspace": { "current_dir": "/p/a", "project_dir": "/p", "added_dirs": [] },
            "version": env!("CARGO_PKG_VERSION"),
            "output_style": { "name": "default" },
            "cost": {
                "total_cost_usd": 0.5,
                "total_duration_ms": 1000,
                "total_api_duration_ms": 700,
                "total_lines_added": 3,
                "total_lines_removed": 1,
            },
            "exceeds_200k_tokens": false,
            "effort": { "level": "medium" },
            "thinking": { "enabled": true },
            "context_window": {
                "total_input_tokens": 16,
                "total_output_tokens": 2,
                "context_window_size": 200_000,
                "used_percentage": 25,
                "remaining_percentage": 75,
                "current_usage": {
                    "input_tokens": 50_000,
                    "output_tokens": 0,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                },
            },
            "vim": { "mode": "NORMAL" },
        });
        assert_eq!(told, want);
    }
}
