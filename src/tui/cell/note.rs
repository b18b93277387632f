//! What is neither said nor called: the start of a session, notices, errors, and rows about the conversation itself.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ratatui::text::{Line, Span};

use super::Detail;
use crate::protocol::ModelInfo;
use crate::stdx::text;
use crate::tui::render::wrap::{self, Prefix};
use crate::tui::render::{Row, markdown};
use crate::tui::theme::Theme;

/// The first cell of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Welcome {
    pub model: ModelInfo,
    /// Where the session works, as shown.
    pub cwd: PathBuf,
    /// Of a resumed session.
    pub title: Option<String>,
}

impl Welcome {
    pub(super) fn rows(&self, width: usize, theme: &Theme) -> Vec<Row> {
        let model = &self.model;
        let words = match (model.probing, model.model.is_empty()) {
            (true, _) => "looking for a model…".to_string(),
            (false, _) if model.provider == "offline" && model.model == "offline" => {
                "the offline model: no key, no network".to_string()
            }
            (false, true) => text::clean_line(&model.provider),
            (false, false) if model.provider.is_empty() || model.provider == model.model => {
                text::clean_line(&model.model)
            }
            (false, false) => format!("{} · {}", text::clean_line(&model.model), text::clean_line(&model.provider)),
        };
        let room = width.saturating_sub(2);
        let cwd = text::clean_line(&self.cwd.to_string_lossy());
        let name = vec![
            Span::styled("✻ ", theme.spinner),
            Span::styled("cocode", theme.heading),
            Span::styled(format!(" {}", env!("CARGO_PKG_VERSION")), theme.dim),
        ];
        let line = |words: &str| vec![Span::raw("  "), Span::styled(words.to_string(), theme.dim)];
        let mut lines = vec![name, line(&words), line(&text::truncate_start(&cwd, room))];
        if let Some(title) = &self.title {
            lines.push(line(&text::clean_line(title)));
        }
        lines.into_iter().map(|spans| Row::from(Line::from(wrap::clip(spans, width)))).collect()
    }
}

/// A request that is asked again.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub attempt: u32,
    pub of: u32,
    pub reason: String,
    /// When it is asked.
    pub due: Instant,
    pub over: bool,
}

impl Retry {
    pub(super) fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let reason = text::clean_line(&self.reason);
        let words = match detail {
            Detail::Live { now, .. } if !self.over => {
                let left = Duration::from_secs_f64(self.due.saturating_duration_since(now).as_secs_f64().ceil());
                format!("{reason} · retry {} of {} in {}", self.attempt, self.of, text::duration(left))
            }
            _ if self.attempt == 1 => format!("{reason} · retried"),
            _ => format!("{reason} · retried {} times", self.attempt),
        };
        wrap::plain(&words, theme.warning, width, &Prefix::hanging("↻ ", theme.warning))
    }
}

/// A row or two that the program says itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Markdown: an answer of a command, or news.
    Notice(String),
    Error(String),
    /// About the conversation: what left it, how a turn ended. Dim.
    Aside(String),
    /// A turn that took its time.
    Worked(Duration),
}

impl Note {
    /// What the user, or a hook for them, decided; what it was about follows.
    pub fn is_decision(&self) -> bool {
        matches!(self, Note::Aside(text) if text.starts_with(['✓', '✗']))
    }

    pub(super) fn rows(&self, width: usize, theme: &Theme) -> Vec<Row> {
        match self {
            Note::Notice(source) => {
                let mut rows = markdown::render(source.trim(), width.saturating_sub(2).max(1), theme);
                for (index, row) in rows.iter_mut().enumerate() {
                    // The two columns would break a line of code that continues: it stays where it is.
                    let mark = if index == 0 { "· " } else { "  " };
                    if row.continues || width < 4 || row.line.spans.is_empty() {
                        continue;
                    }
                    row.line.spans.insert(0, Span::styled(mark, theme.accent));
                    row.links.iter_mut().for_each(|(span, _)| *span += 1);
                }
                rows
            }
            Note::Error(text) => {
                wrap::plain(&text::clean(text.trim()), theme.error, width, &Prefix::hanging("✗ ", theme.error))
            }
            Note::Aside(text) => {
                let (mark, style, text) = match (text.strip_prefix("✓ "), text.strip_prefix("✗ ")) {
                    (Some(yes), _) => ("✓ ", theme.success, yes),
                    (_, Some(no)) => ("✗ ", theme.warning, no),
                    _ => ("· ", theme.dim, text.as_str()),
                };
                wrap::plain(&text::clean(text.trim()), theme.dim, width, &Prefix::hanging(mark, style))
            }
            Note::Worked(time) => {
                let words = format!("worked for {}", text::duration(*time));
                wrap::plain(&words, theme.dim, width, &Prefix::hanging("✻ ", theme.dim))
            }
        }
    }
}
