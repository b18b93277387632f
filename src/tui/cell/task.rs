//! The line below a call that launched a sub-agent: how many calls, how many tokens, how long, and what it does now.

use std::time::{Duration, Instant};

use ratatui::text::{Line, Span};

use super::Detail;
use crate::protocol::Task;
use crate::protocol::task::Step;
use crate::stdx::text::{self, short};
use crate::tui::render::Row;
use crate::tui::render::wrap;
use crate::tui::theme::Theme;

/// While it runs. `since` is when the call began.
pub(super) fn live(task: &Task, since: Instant, width: usize, theme: &Theme, detail: Detail) -> Row {
    let took = match detail {
        Detail::Live { now, .. } => now.saturating_duration_since(since),
        Detail::Folded | Detail::Whole => Duration::from_millis(task.millis),
    };
    let doing = match &task.step {
        Step::Doing { what } => format!(" · {}", text::clean_line(what)),
        Step::Started | Step::Said { .. } | Step::Done { .. } => String::new(),
    };
    row(format!("{}{doing}", figures(task.tools, task.tokens, took)), width, theme)
}

/// While it runs, where there is room for one row only: who, and its figures in short.
pub(super) fn dense(task: &Task, mark: Span<'static>, took: Duration, width: usize, theme: &Theme) -> Row {
    let calls = if task.tools == 1 { "call" } else { "calls" };
    let figures = format!("  {} {calls} · {} · {}", task.tools, short(task.tokens), text::duration(took));
    let who = text::clean_line(&format!("{}: {}", task.agent, task.description));
    let room = width.saturating_sub(2 + text::width(&figures)).max(8);
    let who = text::truncate(&who, room).into_owned();
    Row::from(Line::from(wrap::clip(
        vec![mark, Span::styled(who, theme.text), Span::styled(figures, theme.dim)],
        width,
    )))
}

/// Once it ended.
pub(super) fn done(tools: u32, tokens: u64, millis: u64, width: usize, theme: &Theme, detail: Detail) -> Row {
    // What it did is in the viewer.
    let hint = if tools > 0 && detail != Detail::Whole { " (ctrl+o)" } else { "" };
    row(format!("{}{hint}", figures(tools, tokens, Duration::from_millis(millis))), width, theme)
}

fn figures(tools: u32, tokens: u64, took: Duration) -> String {
    let calls = if tools == 1 { "call" } else { "calls" };
    format!("{tools} {calls} · {} tokens · {}", short(tokens), text::duration(took))
}

fn row(said: String, width: usize, theme: &Theme) -> Row {
    let lead = "  └ ";
    let said = text::truncate(&said, width.saturating_sub(text::width(lead))).into_owned();
    Row::from(Line::from(wrap::clip(vec![Span::styled(lead, theme.dim), Span::styled(said, theme.dim)], width)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::CallId;

    #[test]
    fn the_line_fits_narrow_screens() {
        let task = |tools, tokens, step| Task {
            id: "a1".into(),
            call: CallId::nth(1),
            agent: "Explore".into(),
            description: "d".into(),
            step,
            tools,
            tokens,
            millis: 0,
        };
        let theme = Theme::dark();
        let start = Instant::now();
        let live = Detail::Live { lines: 3, now: start + Duration::from_secs(72) };
        let said = |task: &Task, width| {
            let row = row_text(&super::live(task, start, width, &theme, live));
            assert!(text::width(&row) <= width, "{row}");
            row
        };
        let doing = task(12, 34_567, Step::Doing { what: "Grep(fn parse\u{1b}[31m)".into() });
        assert_eq!(said(&doing, 80), "  └ 12 calls · 34k tokens · 1 m 12 s · Grep(fn parse␛[31m)");
        assert_eq!(said(&doing, 40), "  └ 12 calls · 34k tokens · 1 m 12 s · …");
        assert_eq!(said(&task(1, 999, Step::Started), 40), "  └ 1 call · 999 tokens · 1 m 12 s");
        let dense = |task: &Task, width| {
            let row = row_text(&super::dense(task, Span::raw("○ "), Duration::from_secs(72), width, &theme));
            assert!(text::width(&row) <= width, "{row}");
            row
        };
        assert_eq!(dense(&doing, 80), "○ Explore: d  12 calls · 34k · 1 m 12 s");
        let long = Task { description: "where the parser is called".into(), ..doing.clone() };
        assert_eq!(dense(&long, 40), "○ Explore: w…  12 calls · 34k · 1 m 12 s");
        let done = |tools, detail| row_text(&super::done(tools, 2_000_000, 900, 40, &theme, detail));
        assert_eq!(done(0, Detail::Folded), "  └ 0 calls · 2.0M tokens · 0 s");
        assert_eq!(done(3, Detail::Folded), "  └ 3 calls · 2.0M tokens · 0 s (ctrl+o)");
        assert_eq!(done(3, Detail::Whole), "  └ 3 calls · 2.0M tokens · 0 s");
    }

    fn row_text(row: &Row) -> String {
        row.line.spans.iter().map(|span| span.content.as_ref()).collect()
    }
}
