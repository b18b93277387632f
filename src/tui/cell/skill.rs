//! The instructions of a skill: one line, and all of it in the transcript view.

use ratatui::text::{Line, Span};

use super::Detail;
use crate::stdx::text;
use crate::tui::render::Row;
use crate::tui::render::wrap::{self, Prefix};
use crate::tui::theme::Theme;

#[derive(Debug, Clone, PartialEq)]
pub struct SkillText {
    pub text: String,
}

impl SkillText {
    pub(super) fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let text = text::clean(self.text.trim());
        if detail == Detail::Whole {
            return wrap::plain(&text, theme.dim, width, &Prefix::indent(2));
        }
        let lines = text.lines().count();
        let words = format!("  {lines} line{} of instructions (ctrl+o)", if lines == 1 { "" } else { "s" });
        let spans = vec![Span::styled(words, theme.dim)];
        vec![Row::from(Line::from(wrap::clip(spans, width)))]
    }
}
