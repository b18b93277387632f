//! A tool call: one line that says what and how it went, and its output, folded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::Detail;
use super::{task, words};
use crate::message::{CallId, Content, Display, FileDiff, Outcome, Todo, TodoStatus, ToolResult};
use crate::protocol::Task;
use crate::stdx::text;
use crate::tui::render::wrap::{self, Prefix};
use crate::tui::render::{Row, ansi, diff};
use crate::tui::theme::Theme;

/// Lines of a diff that are shown folded.
const DIFF_LINES: usize = 30;
/// Lines of output that are shown before and after the fold.
const HEAD: usize = 2;
const TAIL: usize = 3;
/// Bytes of live output that are kept.
const LIVE: usize = 8 * 1024;
/// A run shorter than this says nothing of its time.
const NOTABLE: Duration = Duration::from_secs(1);

/// A call of the model.
#[derive(Debug, Clone)]
pub struct Call {
    pub id: CallId,
    pub tool: String,
    /// One line: path, command, pattern. Untrusted.
    pub title: String,
    pub since: Instant,
    /// The end of the output so far.
    pub output: String,
    /// The sub-agent that it launched, as it was last heard of.
    pub task: Option<Task>,
    pub result: Option<Arc<ToolResult>>,
    /// The turn ended without a result.
    pub abandoned: bool,
}

/// The user's own `!` line.
#[derive(Debug, Clone, PartialEq)]
pub struct Shell {
    pub command: String,
    pub since: Instant,
    /// Output and exit status, once it ended; no status when it was killed.
    pub done: Option<(String, Option<i32>)>,
}

/// Adds to the kept end of live output.
fn keep_tail(output: &mut String, text: &str) {
    output.push_str(text);
    if output.len() > 2 * LIVE {
        let cut = output.ceil_char_boundary(output.len() - LIVE);
        output.drain(..cut);
    }
}

impl Call {
    pub fn is_done(&self) -> bool {
        self.result.is_some() || self.abandoned
    }

    /// More of the running call's output.
    pub fn push(&mut self, text: &str) {
        keep_tail(&mut self.output, text);
    }

    /// Rows of at most `width` columns.
    pub fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        if self.is_decision() && detail != Detail::Whole {
            return Vec::new();
        }
        let (mark, style) = match self.result.as_ref().map(|result| result.outcome) {
            Some(Outcome::Ok) => ("●", theme.success),
            Some(Outcome::Error) => ("✗", theme.error),
            Some(Outcome::Denied) => ("⊘", theme.warning),
            Some(Outcome::Interrupted) => ("■", theme.warning),
            None if self.abandoned => ("■", theme.warning),
            None => ("○", theme.accent),
        };
        if let (Some(task), None, Detail::Live { lines: 0, now }) = (&self.task, &self.result, detail) {
            return vec![task::dense(
                task,
                Span::styled(format!("{mark} "), style),
                now.saturating_duration_since(self.since),
                width,
                theme,
            )];
        }
        let mut rows = vec![self.head(mark, style, width, theme, detail)];
        rows.extend(self.body(width, theme, detail));
        rows
    }

    fn head(&self, mark: &'static str, style: Style, width: usize, theme: &Theme, detail: Detail) -> Row {
        let label = self.label(detail);
        let said = if self.told_below(width, detail) { String::new() } else { self.summary(detail) };
        let mut room = width.saturating_sub(2 + label.columns());
        let said = if said.is_empty() { said } else { format!("  {said}") };
        let said = if text::width(&said) + 8 > room && !label.title.is_empty() { String::new() } else { said };
        room = room.saturating_sub(text::width(&said));
        let mut spans = vec![Span::styled(format!("{mark} "), style)];
        spans.push(Span::styled(label.name, theme.text.add_modifier(Modifier::BOLD)));
        if !label.title.is_empty() {
            let [open, close] = label.around;
            spans.push(Span::styled(format!("{open}{}{close}", text::truncate(&label.title, room)), theme.text));
        }
        if !said.is_empty() {
            spans.push(Span::styled(said, theme.dim));
        }
        Row::from(Line::from(wrap::clip(spans, width)))
    }

    /// In words on the screen, with the tool's name in the transcript view.
    fn label(&self, detail: Detail) -> Label {
        match self.words().filter(|_| detail != Detail::Whole) {
            Some((words, title)) => Label { name: words, title: text::clean_line(&title), around: [" ", ""] },
            None => {
                Label { name: text::clean_line(&self.tool), title: text::clean_line(&self.title), around: ["(", ")"] }
            }
        }
    }

    /// Its one line is a sentence that does not fit behind the title, such as what the user answered.
    fn told_below(&self, width: usize, detail: Detail) -> bool {
        const SENTENCE: usize = 24;
        let Some(text) = self.result.as_ref().and_then(|result| result.display.as_ref()?.line()) else {
            return false;
        };
        let told = text::width(&text);
        let label = self.label(detail);
        let head = 2 + label.columns() + text::width(&label.title);
        told > SENTENCE && head + 2 + told > width
    }

    /// What follows the title.
    fn summary(&self, detail: Detail) -> String {
        let Some(result) = &self.result else {
            return match detail {
                _ if self.abandoned => "interrupted".to_string(),
                _ if self.task.is_some() => String::new(),
                Detail::Live { now, .. } if now.saturating_duration_since(self.since) >= NOTABLE => {
                    text::duration(now.saturating_duration_since(self.since))
                }
                _ => String::new(),
            };
        };
        if let Some(commit) = self.commit().filter(|_| detail != Detail::Whole) {
            return commit.size();
        }
        if self.asked_git() && detail != Detail::Whole {
            return match without_asides(&whole_text(result), 0).lines().count() {
                0 => "no output".to_owned(),
                1 => "1 line (ctrl+o)".to_owned(),
                lines => format!("{lines} lines (ctrl+o)"),
            };
        }
        match (result.outcome, &result.display) {
            (Outcome::Denied, Some(Display::Said { .. })) => "you said no".to_string(),
            (Outcome::Denied, _) => "denied".to_string(),
            (Outcome::Interrupted, _) => "interrupted".to_string(),
            (_, Some(Display::Command { code, millis })) => {
                let status = match code {
                    Some(0) => String::new(),
                    Some(code) => format!("exit {code}"),
                    None => "killed".to_string(),
                };
                let took = Duration::from_millis(*millis);
                let took = if took > NOTABLE { text::duration(took) } else { String::new() };
                [status, took].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
            }
            (Outcome::Ok, Some(Display::Diff(diff))) if diff.created && detail != Detail::Whole => {
                diff::summary(diff).trim_start_matches("new, ").to_owned()
            }
            (_, Some(Display::Diff(diff))) => diff::summary(diff),
            (_, Some(told @ (Display::Line { .. } | Display::Said { .. } | Display::Launched { .. }))) => {
                told.line().map(|text| text::clean_line(&text)).unwrap_or_default()
            }
            (_, Some(Display::Todos { items })) if detail == Detail::Whole => {
                format!("{} done", words::progress(items))
            }
            // What is worked at, where the list itself was shown before.
            (_, Some(Display::Todos { items })) if begun(items) => {
                let active = items.iter().find(|item| item.status == TodoStatus::InProgress);
                active.map(|item| text::clean_line(&item.active_form)).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    fn body(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let Some(result) = &self.result else {
            if let Some(task) = &self.task {
                return vec![task::live(task, self.since, width, theme, detail)];
            }
            return match detail {
                Detail::Live { lines, .. } => last_lines(&self.output, lines, theme.dim, width, theme),
                _ => output_rows(&self.output, theme.dim, width, theme, detail),
            };
        };
        // What git said of it is told at the head, or for the model.
        if detail != Detail::Whole && (self.asked_git() || self.commit().is_some()) {
            return Vec::new();
        }
        match (result.outcome, &result.display) {
            (_, Some(Display::Agent { tools, tokens, millis, .. })) => {
                let mut rows = vec![task::done(*tools, *tokens, *millis, width, theme, detail)];
                // The viewer shows all that it did, the report at the end of it.
                if detail != Detail::Whole && result.outcome == Outcome::Error {
                    rows.extend(output_rows(&whole_text(result), theme.dim, width, theme, detail));
                }
                rows
            }
            (Outcome::Ok, Some(Display::Diff(change))) => diff_rows(change, width, theme, detail),
            (Outcome::Ok, Some(Display::Todos { items })) if begun(items) && detail != Detail::Whole => Vec::new(),
            (Outcome::Ok, Some(Display::Todos { items })) => todo_rows(items, width, theme),
            (Outcome::Ok, Some(told @ (Display::Line { .. } | Display::Said { .. } | Display::Launched { .. })))
                if detail != Detail::Whole && self.told_below(width, detail) =>
            {
                let text = told.line().unwrap_or_default();
                wrap::plain(&text::clean_line(&text), theme.dim, width, &Prefix::hanging("  └ ", theme.dim))
            }
            (Outcome::Ok, Some(Display::Line { .. } | Display::Said { .. })) if detail != Detail::Whole => Vec::new(),
            (Outcome::Denied, Some(said @ Display::Said { .. })) if detail != Detail::Whole => {
                output_rows(&said.line().unwrap_or_default(), theme.text, width, theme, detail)
            }
            (Outcome::Interrupted, None) if detail != Detail::Whole => Vec::new(),
            (_, Some(Display::Command { code: Some(code), .. })) if detail != Detail::Whole => {
                output_rows(without_asides(&whole_text(result), *code), theme.dim, width, theme, detail)
            }
            (Outcome::Error, None) => output_rows(&whole_text(result), theme.error, width, theme, detail),
            _ => output_rows(&whole_text(result), theme.dim, width, theme, detail),
        }
    }
}

/// The head of a call, clean.
struct Label {
    name: String,
    title: String,
    /// Before and after the title.
    around: [&'static str; 2],
}

impl Label {
    /// Columns of all but the title.
    fn columns(&self) -> usize {
        let around: usize = self.around.iter().map(|part| text::width(part)).sum();
        text::width(&self.name) + around
    }
}

/// Something on the list is done: the list was shown when it was made.
fn begun(items: &[Todo]) -> bool {
    items.iter().any(|item| item.status == TodoStatus::Completed)
}

impl Shell {
    pub(super) fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let mut spans = vec![Span::styled("! ", theme.accent)];
        spans.push(Span::styled(text::clean_line(&self.command), theme.prompt));
        let said = match (&self.done, detail) {
            (Some((_, Some(0))), _) => String::new(),
            (Some((_, Some(code))), _) => format!("  exit {code}"),
            (Some((_, None)), _) => "  killed".to_string(),
            (None, Detail::Live { now, .. }) if now.saturating_duration_since(self.since) >= NOTABLE => {
                format!("  {}", text::duration(now.saturating_duration_since(self.since)))
            }
            (None, _) => String::new(),
        };
        spans.push(Span::styled(said, theme.dim));
        let mut rows = wrap::cut(spans, width, &[]);
        if let Some((output, code)) = &self.done {
            let output = code.map_or(output.as_str(), |code| without_asides(output, code));
            rows.extend(output_rows(output, theme.dim, width, theme, detail));
        }
        rows
    }
}

/// Output without what only the model is told: the exit code, which follows the title, and that there was no output.
fn without_asides(output: &str, code: i32) -> &str {
    let said = output.trim_end().strip_suffix(&format!("[Exit code {code}]")).unwrap_or(output);
    if said.trim() == "(no output)" { "" } else { said }
}

/// Text of a result, with a line for each part that is not text.
fn whole_text(result: &ToolResult) -> String {
    let part = |content: &Content| match content {
        Content::Text { text } => text.clone(),
        Content::Media(media) => format!("[{}, {} bytes]", media.media_type, media.bytes),
    };
    result.content.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// Lines of output below a call: `  └ ` before the first.
fn hang(lines: Vec<Line<'static>>, width: usize, theme: &Theme) -> Vec<Row> {
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        let mut spans = match (rows.is_empty(), line.width() == 0) {
            (true, _) => vec![Span::styled("  └ ", theme.dim)],
            (false, true) => Vec::new(),
            (false, false) => vec![Span::raw("    ")],
        };
        spans.extend(line.spans);
        rows.push(Row::from(Line::from(wrap::clip(spans, width))));
    }
    rows
}

fn output_rows(output: &str, plain: Style, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
    let mut lines = ansi::lines(output, plain, theme);
    let (head, tail) = match detail {
        Detail::Whole => return whole_rows(lines, width),
        Detail::Folded => (HEAD, TAIL),
        Detail::Live { lines, .. } => (0, lines),
    };
    if lines.len() > head + tail + 1 {
        let more = format!("… +{} lines (ctrl+o)", lines.len() - head - tail);
        lines.splice(head..lines.len() - tail, [Line::from(Span::styled(more, theme.dim))]);
    }
    hang(lines, width, theme)
}

/// All of the output, each line cut where the row is full.
fn whole_rows(lines: Vec<Line<'static>>, width: usize) -> Vec<Row> {
    let lead = |line: &Line<'_>| if line.width() == 0 { Vec::new() } else { vec![Span::raw("  ")] };
    lines.into_iter().flat_map(|line| wrap::cut(line.spans.clone(), width, &lead(&line))).collect()
}

/// The last lines of what is still running.
fn last_lines(output: &str, count: usize, plain: Style, width: usize, theme: &Theme) -> Vec<Row> {
    let mut lines = ansi::lines(output, plain, theme);
    lines.drain(..lines.len().saturating_sub(count));
    hang(lines, width, theme)
}

fn diff_rows(change: &FileDiff, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
    let max = match detail {
        Detail::Whole => None,
        Detail::Folded => Some(DIFF_LINES),
        Detail::Live { lines, .. } => Some(lines),
    };
    let mut rows = diff::rows(change, width.saturating_sub(2).max(1), theme, max);
    if width > 8 {
        for row in &mut rows {
            row.line.spans.insert(0, Span::raw("  "));
        }
    }
    rows
}

/// A todo list: `☐ ◐ ☑`.
pub fn todo_rows(items: &[Todo], width: usize, theme: &Theme) -> Vec<Row> {
    let mut rows = Vec::new();
    for item in items {
        let ((mark, words), style) = (item.line(), theme.todo(item.status));
        let lead = Prefix::hanging(format!("  {mark} "), style);
        rows.extend(wrap::plain(&text::clean_line(words), style, width, &lead));
    }
    rows
}
