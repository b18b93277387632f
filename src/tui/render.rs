//! Rows: what every cell, dialog and pager draws, and what goes to the scrollback.

pub mod ansi;
pub mod diff;
pub mod highlight;
pub mod markdown;
pub mod wrap;

use std::sync::Arc;

use ratatui::text::Line;

/// One terminal row, at most as wide as it was rendered for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub line: Line<'static>,
    /// Links, by the index of the span in `line`; only `http`, `https` and `file`.
    pub links: Vec<(usize, Arc<str>)>,
    /// The row continues where the one before it was cut by the width: the terminal itself wraps it, so that a copied
    /// line of code has no break. The row before it is full, but for one column where a wide character did not fit.
    pub continues: bool,
}

impl From<Line<'static>> for Row {
    fn from(line: Line<'static>) -> Row {
        Row { line, links: Vec::new(), continues: false }
    }
}
