//! Named styles. Code names what a thing is; the theme says how it looks.

pub mod colour;
pub mod file;

use ratatui::style::Style;

use crate::message::TodoStatus;

pub use colour::Depth;
pub use file::ThemeError;

/// Every style that the screen uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    pub name: String,
    pub text: Style,
    /// Secondary text: hints, paths, times.
    pub dim: Style,
    pub accent: Style,
    /// The user's own words in the transcript.
    pub prompt: Style,
    pub thinking: Style,
    pub success: Style,
    pub warning: Style,
    pub error: Style,
    pub heading: Style,
    pub code: Style,
    pub link: Style,
    pub quote: Style,
    /// Borders of composer and dialogs.
    pub border: Style,
    pub selected: Style,
    pub spinner: Style,
    pub added: Style,
    pub removed: Style,
    /// Changed words inside a changed line.
    pub added_word: Style,
    pub removed_word: Style,
    /// Colors of the permission modes in the status line.
    pub mode_default: Style,
    pub mode_accept_edits: Style,
    pub mode_plan: Style,
    pub mode_bypass: Style,
    /// What confines commands, in the status line.
    pub sandbox: Style,
    /// Name of the syntax theme for highlighting; none draws code in `code` alone.
    pub syntax: Option<String>,
    /// How highlighted code looks.
    pub tokens: Tokens,
    /// Colors that the terminal can show; colors of tool output are reduced to it.
    pub depth: Depth,
}

/// How the parts of highlighted code look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tokens {
    pub plain: Style,
    pub comment: Style,
    pub string: Style,
    pub number: Style,
    pub keyword: Style,
    pub function: Style,
    pub kind: Style,
    pub tag: Style,
}

impl Theme {
    pub fn todo(&self, status: TodoStatus) -> Style {
        match status {
            TodoStatus::Pending => self.text,
            TodoStatus::InProgress => self.accent,
            TodoStatus::Completed => self.dim,
        }
    }

    /// The theme for a dark background with true color.
    pub fn dark() -> Theme {
        Theme::load("dark").expect("the shipped theme parses: tested")
    }

    /// Reduces every color to what the terminal can show.
    pub fn degrade(mut self, depth: Depth) -> Theme {
        for (_, field) in file::STYLES {
            let style = field(&mut self);
            *style = depth.adapt(*style);
        }
        if depth == Depth::Mono {
            self.syntax = None;
        }
        self.depth = depth;
        self
    }
}
