//! Cells: the things that a conversation is made of on the screen. A cell owns its source and draws itself for a width
//! and a theme; it keeps no rows.

pub mod call;
pub mod compaction;
pub mod note;
pub mod prompt;
pub mod skill;
mod task;
pub mod thinking;

use std::time::Duration;

use self::call::{Call, Shell};
use self::compaction::Compacted;
use self::note::{Note, Retry, Welcome};
use self::prompt::Prompt;
use self::skill::SkillText;
use self::thinking::Thinking;
use crate::tui::render::{Row, markdown};
use crate::tui::theme::Theme;

/// Bytes at the end of a reply that are looked at for its last rows.
const LIVE: usize = 16 * 1024;

/// How much of a cell is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// As it goes to the scrollback: long output folded.
    Folded,
    /// Everything, for the transcript view.
    Whole,
    /// As it runs: at most so many lines of output, and the time at this frame.
    Live { lines: usize, now: Duration },
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
    /// What is drawn of it: its last lines while something before it still runs.
    fn part(&self, detail: Detail) -> &str {
        let Detail::Live { .. } = detail else { return &self.source };
        let from = self.source.ceil_char_boundary(self.source.len().saturating_sub(LIVE));
        let line = if from == 0 { 0 } else { self.source[from..].find('\n').map_or(0, |end| end + 1) };
        &self.source[from + line..]
    }
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

    /// Rows of at most `width` columns; none when there is nothing to show.
    pub fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let width = width.max(1);
        match self {
            Cell::Welcome(welcome) => welcome.rows(width, theme),
            Cell::Prompt(prompt) => prompt.rows(width, theme, detail),
            Cell::Skill(skill) => skill.rows(width, theme, detail),
            Cell::Thinking(thinking) => thinking.rows(width, theme, detail),
            Cell::Reply(reply) => markdown::render(reply.part(detail), width, theme),
            Cell::Call(call) => call.rows(width, theme, detail),
            Cell::Shell(shell) => shell.rows(width, theme, detail),
            Cell::Retry(retry) => retry.rows(width, theme, detail),
            Cell::Compacted(compacted) => compacted.rows(width, theme, detail),
            Cell::Note(note) => note.rows(width, theme),
        }
    }
}

/// A span of time as people say it: `4s`, `1m 12s`, `2h 3m`.
pub fn spell(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests;
