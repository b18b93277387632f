//! The status line: mode, model, context left, cost, branch, hint. What does not fit is left out, least needed first.

pub mod own;

use std::borrow::Cow;
use std::path::PathBuf;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::paint;
use super::theme::Theme;
use super::thinking::Thinking;
use crate::permission::Mode;
use crate::protocol::{Fullness, ModelInfo, SessionInfo, UsageInfo};
use crate::sandbox::Level;
use crate::stdx::text::short;

/// Cells of the bar that shows how much context is left.
const BAR: usize = 5;

/// What the status line shows.
#[derive(Debug, Clone, Default)]
pub struct Status {
    pub mode: Mode,
    pub(super) thinking: Thinking,
    pub(super) model: Option<ModelInfo>,
    pub(super) usage: Option<UsageInfo>,
    pub branch: Option<String>,
    /// Commands that run in the background.
    pub background: usize,
    /// The user's own line; none is set.
    pub(super) own: Option<own::Own>,
    id: String,
    log: PathBuf,
    title: String,
    /// Lines that the agent has added and removed, and turns that have ended.
    pub(super) lines: (u64, u64),
    pub(super) turns: u64,
    pub(super) api: own::Waited,
    /// What vim mode says of itself; empty: it is off.
    pub(super) editing: String,
    read_only: bool,
    /// How far commands are confined, once a session says.
    sandbox: Option<Level>,
    /// Bypass or don't-ask, when the session began in it: then it is in the cycle.
    extra: Option<Mode>,
}

impl Status {
    /// Another session begins.
    pub fn begin(&mut self, session: &SessionInfo) {
        self.mode = session.mode;
        self.extra = Some(session.mode).filter(|mode| matches!(mode, Mode::Bypass | Mode::DontAsk));
        self.model = Some(session.model.clone());
        self.usage = None;
        self.background = 0;
        self.read_only = session.read_only;
        self.sandbox = Some(session.sandbox.level);
        (self.id, self.log) = (session.id.clone(), session.log.clone());
        self.title = session.title.clone().unwrap_or_default();
    }

    /// What the user's own line is told, for a folder and the one that the program began in.
    pub(super) fn facts(&self, cwd: PathBuf, project: PathBuf) -> own::Facts {
        let mode = self.editing.trim_start_matches("-- ").split(" --").next();
        own::Facts {
            session: self.id.clone(),
            title: self.title.clone(),
            log: self.log.clone(),
            cwd,
            project,
            model: self.model.clone(),
            usage: self.usage.clone(),
            lines: self.lines,
            vim: mode.unwrap_or_default().to_owned(),
            turns: self.turns,
            api: self.api.total,
            level: self.thinking.asked(),
        }
    }

    /// What the model is waited for with: one on this machine reads its prompt for a while before it answers.
    pub(super) fn waits(&self) -> Cow<'static, str> {
        let local = self.model.as_ref().is_some_and(|model| model.local);
        match self.usage.as_ref().filter(|usage| local && usage.context > 0) {
            Some(usage) => format!("Waiting for the model to read {} tokens", short(usage.context)).into(),
            None => "Waiting for the model".into(),
        }
    }

    /// The mode that Shift+Tab goes to.
    pub fn next_mode(&self) -> Mode {
        match self.mode {
            Mode::Default => Mode::AcceptEdits,
            Mode::AcceptEdits => Mode::Plan,
            Mode::Plan => self.extra.unwrap_or(Mode::Default),
            Mode::Edits | Mode::Bypass | Mode::DontAsk => Mode::Default,
        }
    }

    /// The line; `hint` is at its right end as long as there is room. An urgent one comes before everything else but a mode
    /// that asks less, or other things, than the default one: what Enter may do is never hidden.
    pub fn line(&self, hint: &str, urgent: bool, width: u16, theme: &Theme) -> Line<'static> {
        let width = width as usize;
        let (mode, style) = mode(self.mode, theme);
        if urgent {
            let before = match self.mode {
                Mode::Default => Vec::new(),
                _ => vec![Span::styled(mode, style), Span::styled(" · ", theme.border)],
            };
            let left = width.saturating_sub(before.iter().map(|span| paint::width(&span.content)).sum());
            let mut line = Line::from(before);
            line.push_span(Span::styled(paint::cut(hint, left), theme.warning));
            return line;
        }
        // Parts with how much they are needed: the lowest goes first.
        let mut parts: Vec<(u8, Vec<Span<'static>>)> = Vec::new();
        if !self.editing.is_empty() {
            parts.push((9, vec![Span::styled(self.editing.clone(), theme.dim)]));
        }
        parts.push((9, vec![Span::styled(mode, style)]));
        if let Some(part) = self.thinking.part(theme) {
            parts.push((8, vec![part]));
        }
        if self.background > 0 {
            parts.push((8, vec![Span::styled(format!("{} in background", self.background), theme.accent)]));
        }
        if self.read_only {
            parts.push((8, vec![Span::styled("read only", theme.warning)]));
        }
        // Quiet as it should be, and never silent where nothing confines a command.
        match self.sandbox {
            None => {}
            Some(Level::None) => parts.push((9, vec![Span::styled("sbx:off", theme.warning)])),
            Some(level) => parts.push((1, vec![Span::styled(format!("sbx:{}", level.name()), theme.sandbox)])),
        }
        // The user's own line says the rest.
        let whole = self.own.is_none();
        match &self.model {
            _ if !whole => {}
            Some(model) => {
                let name = if model.probing { "…".to_owned() } else { paint::cut(&model.model, 30) };
                parts.push((6, vec![Span::styled(name, theme.dim)]));
            }
            None => parts.push((6, vec![Span::styled("…", theme.dim)])),
        }
        let counts = |usage: &UsageInfo| usage.window > 0 && (whole || usage.fullness != Fullness::Fine);
        if let Some(usage) = self.usage.as_ref().filter(|usage| counts(usage)) {
            let needed = if usage.fullness == Fullness::Fine { 7 } else { 10 };
            parts.push((needed, bar(usage.left, usage.fullness, theme)));
        }
        if let Some(usage) = self.usage.as_ref().filter(|_| whole) {
            let tokens = usage.total.input + usage.total.output + usage.total.cache_read + usage.total.cache_write;
            let text = match usage.cost_usd {
                Some(cost) if cost > 0.0 => format!("${cost:.2}"),
                _ => format!("{} tokens", short(tokens)),
            };
            parts.push((4, vec![Span::styled(text, theme.dim)]));
        }
        if let Some(branch) = self.branch.as_ref().filter(|_| whole) {
            parts.push((3, vec![Span::styled(paint::cut(branch, 24), theme.dim)]));
        }
        if !hint.is_empty() {
            parts.push((2, vec![Span::styled(paint::cut(hint, width), theme.dim)]));
        }
        let cells = |parts: &[(u8, Vec<Span>)]| -> usize {
            let spans: usize = parts.iter().flat_map(|(_, spans)| spans).map(|span| paint::width(&span.content)).sum();
            spans + 3 * parts.len().saturating_sub(1)
        };
        while parts.len() > 1 && cells(&parts) > width {
            let least = (0..parts.len()).min_by_key(|at| parts[*at].0).unwrap_or(0);
            parts.remove(least);
        }
        let mut line: Vec<Span> = Vec::new();
        for (at, (_, spans)) in parts.into_iter().enumerate() {
            if at > 0 {
                line.push(Span::styled(" · ", theme.border));
            }
            line.extend(spans);
        }
        Line::from(line)
    }
}

/// A mode's name for people and its color.
pub fn mode(mode: Mode, theme: &Theme) -> (&'static str, Style) {
    let style = match mode {
        Mode::Default | Mode::DontAsk => theme.mode_default,
        Mode::AcceptEdits | Mode::Edits => theme.mode_accept_edits,
        Mode::Plan => theme.mode_plan,
        Mode::Bypass => theme.mode_bypass,
    };
    (mode.label(), style)
}

/// How much room is left before the conversation is compacted, or before the end when nothing does that.
fn bar(left: u8, fullness: Fullness, theme: &Theme) -> Vec<Span<'static>> {
    let (style, words) = match fullness {
        Fullness::Fine => (theme.dim, format!(" {left}% free")),
        Fullness::Warning => (theme.warning, format!(" {left}% free")),
        Fullness::Error => (theme.error, format!(" {left}% free")),
        Fullness::Blocking => (theme.error, " full".to_owned()),
    };
    let full = (usize::from(left) * BAR).div_ceil(100).min(BAR);
    let bar = "█".repeat(full) + &"░".repeat(BAR - full);
    vec![Span::styled("context ", theme.dim), Span::styled(bar, style), Span::styled(words, style)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Usage;

    #[test]
    fn a_local_model_is_waited_for_with_what_it_reads() {
        let usage = UsageInfo {
            total: Usage::default(),
            cost_usd: None,
            context: 12_300,
            window: 32_000,
            left: 60,
            fullness: Fullness::Fine,
            cache: None,
        };
        for (local, want) in [(true, "Waiting for the model to read 12k tokens"), (false, "Waiting for the model")] {
            let (provider, model) = ("mine".into(), "m".into());
            let model = ModelInfo { provider, model, window: 32_000, known: true, probing: false, local };
            let status = Status { model: Some(model), usage: Some(usage.clone()), ..Status::default() };
            assert_eq!(status.waits(), want);
        }
    }

    #[test]
    fn leaves_out_what_does_not_fit() {
        let model = ModelInfo {
            provider: "anthropic".into(),
            model: "claude-sonnet-4-5".into(),
            window: 200_000,
            known: true,
            probing: false,
            local: false,
        };
        let total = Usage { input: 10_000, output: 2_000, ..Usage::default() };
        let usage = UsageInfo {
            total,
            cost_usd: Some(0.123),
            context: 50_000,
            window: 200_000,
            left: 70,
            fullness: Default::default(),
            cache: None,
        };
        let mut status = Status {
            mode: Mode::Plan,
            model: Some(model),
            usage: Some(usage),
            branch: Some("main".into()),
            ..Status::default()
        };
        let check = |width: u16, want: &str| {
            assert_eq!(status.line("? keys", false, width, &Theme::dark()).to_string(), want);
        };
        check(80, "plan · claude-sonnet-4-5 · context ████░ 70% free · $0.12 · main · ? keys");
        check(66, "plan · claude-sonnet-4-5 · context ████░ 70% free · $0.12 · main");
        check(50, "plan · claude-sonnet-4-5 · context ████░ 70% free");
        check(40, "plan · context ████░ 70% free");
        check(20, "plan");
        check(4, "plan");
        for (left, fullness, width, want) in [
            (9, Fullness::Warning, 50, "plan · claude-sonnet-4-5 · context █░░░░ 9% free"),
            (1, Fullness::Error, 40, "plan · context █░░░░ 1% free"),
            (0, Fullness::Blocking, 20, "context ░░░░░ full"),
        ] {
            let mut full = status.clone();
            full.usage = full.usage.map(|usage| UsageInfo { left, fullness, ..usage });
            assert_eq!(full.line("? keys", false, width, &Theme::dark()).to_string(), want);
        }
        let busy = Status { background: 2, ..status.clone() };
        for (width, want) in [
            (80, "plan · 2 in background · claude-sonnet-4-5 · context ████░ 70% free · $0.12"),
            (40, "plan · 2 in background"),
        ] {
            assert_eq!(busy.line("? keys", false, width, &Theme::dark()).to_string(), want);
        }
        for (level, width, want) in [
            (Level::Kernel, 80, "plan · sbx:kernel · claude-sonnet-4-5 · context ████░ 70% free · $0.12 · main"),
            (Level::Mount, 66, "plan · claude-sonnet-4-5 · context ████░ 70% free · $0.12 · main"),
            (Level::None, 80, "plan · sbx:off · claude-sonnet-4-5 · context ████░ 70% free · $0.12 · main"),
            (Level::None, 20, "plan · sbx:off"),
        ] {
            status.sandbox = Some(level);
            assert_eq!(status.line("", false, width, &Theme::dark()).to_string(), want);
        }
        for (mode, width, want) in [
            (Mode::Default, 40, "Ctrl+C again"),
            (Mode::AcceptEdits, 40, "accept edits · Ctrl+C again"),
            (Mode::Bypass, 26, "bypass permissions · Ctrl…"),
        ] {
            status.mode = mode;
            assert_eq!(status.line("Ctrl+C again", true, width, &Theme::dark()).to_string(), want);
        }
    }
    #[test]
    fn bypass_is_in_the_cycle_only_where_the_session_began_in_it() {
        let check = |start: Mode, want: &[Mode]| {
            let extra = Some(start).filter(|mode| *mode == Mode::Bypass);
            let mut status = Status { mode: start, extra, ..Status::default() };
            for mode in want {
                status.mode = status.next_mode();
                assert_eq!(status.mode, *mode, "from {start:?}");
            }
        };
        check(Mode::Default, &[Mode::AcceptEdits, Mode::Plan, Mode::Default]);
        check(Mode::Bypass, &[Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::Bypass]);
    }
}
