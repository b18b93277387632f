//! Cells: the things that a conversation is made of on the screen. A cell owns its source and draws itself for a width
//! and a theme; it keeps no rows.

pub mod call;
pub mod compaction;
pub mod note;
pub mod prompt;
pub mod skill;
mod task;
pub mod thinking;
pub mod words;

use std::time::Instant;

use ratatui::text::Line;

use self::call::{Call, Shell};
use self::compaction::Compacted;
use self::note::{Note, Retry, Welcome};
use self::prompt::Prompt;
use self::skill::SkillText;
use self::thinking::Thinking;
use crate::stdx::text;
use crate::tui::render::{Row, markdown};
use crate::tui::theme::Theme;

/// Bytes at the end of a reply that are looked at for its last rows.
const LIVE: usize = 16 * 1024;

/// Bytes at the end of one text that the transcript view lays out: some thousand rows.
const WHOLE: usize = 64 * 1024;

/// How much of a cell is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// As it goes to the scrollback: long output folded.
    Folded,
    /// Everything, for the transcript view.
    Whole,
    /// As it runs: at most so many lines of output, and the time at this frame.
    Live { lines: usize, now: Instant },
}

/// One thing in the transcript.
#[derive(Debug, Clone)]
pub enum Cell {
    Welcome(Welcome),
    Prompt(Prompt),
    Skill(SkillText),
    Thinking(Thinking),
    Reply(Reply),
    Call(Call),
    Shell(Shell),
    Retry(Retry),
    Compacted(Compacted),
    Note(Note),
}

/// What the model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Markdown, as it came.
    pub source: String,
    /// Nothing will be added.
    pub closed: bool,
}

impl Reply {
    /// Its last lines while something before it still runs, and in the transcript view.
    fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let part = match detail {
            Detail::Folded => &self.source,
            Detail::Live { .. } => end_of(&self.source, LIVE),
            Detail::Whole => end_of(&self.source, WHOLE),
        };
        let before = &self.source[..self.source.len() - part.len()];
        // Its end may lie within a block of code that began before.
        let fences = before.lines().filter(|line| line.starts_with("```"));
        let open = detail == Detail::Whole && fences.count() % 2 == 1;
        let rows = if open {
            markdown::render(&format!("```\n{part}"), width, theme)
        } else {
            markdown::render(part, width, theme)
        };
        match detail {
            Detail::Whole => left_out(before.len(), width, theme).into_iter().chain(rows).collect(),
            Detail::Folded | Detail::Live { .. } => rows,
        }
    }
}

/// The last lines of a text, about so many bytes. One line that is longer is cut within.
fn end_of(text: &str, bytes: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    let end = text[from..].find('\n').filter(|end| from > 0 && *end < bytes / 4);
    &text[from + end.map_or(0, |end| end + 1)..]
}

/// What the transcript view shows of a text, and the row above it where that is not all.
fn whole<'a>(text: &'a str, width: usize, theme: &Theme) -> (&'a str, Option<Row>) {
    let part = end_of(text, WHOLE);
    (part, left_out(text.len() - part.len(), width, theme))
}

fn left_out(bytes: usize, width: usize, theme: &Theme) -> Option<Row> {
    let words = format!("… {} kB before this: /export writes all of it", bytes.div_ceil(1024));
    (bytes > 0).then(|| Row::from(Line::styled(text::truncate(&words, width).into_owned(), theme.dim)))
}

impl Cell {
    /// Whether the cell will not change, so that it may be handed out.
    pub fn is_final(&self) -> bool {
        match self {
            Cell::Welcome(welcome) => !welcome.model.probing,
            Cell::Prompt(_) | Cell::Skill(_) | Cell::Compacted(_) | Cell::Note(_) => true,
            Cell::Thinking(thinking) => thinking.took.is_some() || thinking.closed,
            Cell::Reply(reply) => reply.closed,
            Cell::Call(call) => call.is_done(),
            Cell::Shell(shell) => shell.done.is_some(),
            Cell::Retry(retry) => retry.over,
        }
    }

    /// It shows nothing, or nothing yet.
    pub fn is_silent(&self) -> bool {
        match self {
            Cell::Reply(reply) => reply.source.trim().is_empty(),
            Cell::Thinking(thinking) => thinking.source.trim().is_empty(),
            Cell::Call(call) => call.is_decision(),
            _ => false,
        }
    }

    /// Rows of at most `width` columns; none when there is nothing to show.
    pub fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let width = width.max(1);
        match self {
            Cell::Welcome(welcome) => welcome.rows(width, theme),
            Cell::Prompt(prompt) => prompt.rows(width, theme, detail),
            Cell::Skill(skill) => skill.rows(width, theme, detail),
            Cell::Thinking(thinking) => thinking.rows(width, theme, detail),
            Cell::Reply(reply) => reply.rows(width, theme, detail),
            Cell::Call(call) => call.rows(width, theme, detail),
            Cell::Shell(shell) => shell.rows(width, theme, detail),
            Cell::Retry(retry) => retry.rows(width, theme, detail),
            Cell::Compacted(compacted) => compacted.rows(width, theme, detail),
            Cell::Note(note) => note.rows(width, theme),
        }
    }
}

#[cfg(test)]
mod tests;
