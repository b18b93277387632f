//! What the user typed.

use ratatui::text::Line;

use super::Detail;
use crate::stdx::text;
use crate::tui::render::Row;
use crate::tui::render::wrap::{self, Prefix};
use crate::tui::theme::Theme;

/// Most rows of a prompt outside of the transcript view.
const MAX_ROWS: usize = 40;
/// Rows of a longer one that are shown before and after the fold.
const HEAD: usize = 24;
const TAIL: usize = 8;

/// A prompt with what was attached to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    pub text: String,
    /// The same with its pastes folded, where that is known.
    pub folded: Option<String>,
    /// One short line each, such as `image/png, 12 kB`.
    pub media: Vec<String>,
}

impl Prompt {
    pub(super) fn rows(&self, width: usize, theme: &Theme, detail: Detail) -> Vec<Row> {
        let (part, left_out) = match detail {
            Detail::Whole => super::whole(self.text.trim_end(), width, theme),
            Detail::Folded | Detail::Live { .. } => (self.folded.as_ref().unwrap_or(&self.text).trim_end(), None),
        };
        let prefix = Prefix::hanging("> ", theme.accent);
        let mut rows = wrap::plain(&text::clean(part), theme.prompt, width, &prefix);
        rows.splice(0..0, left_out);
        if rows.len() > MAX_ROWS && detail != Detail::Whole {
            let more = format!("  … +{} lines (ctrl+o)", rows.len() - HEAD - TAIL);
            let fold = Row::from(Line::styled(text::truncate(&more, width).into_owned(), theme.dim));
            rows.splice(HEAD..rows.len() - TAIL, [fold]);
        }
        // What the text names is not named again.
        let named = match (&self.folded, detail) {
            (Some(folded), Detail::Folded | Detail::Live { .. }) => folded.matches("[Image ").count(),
            _ => 0,
        };
        for media in self.media.iter().skip(named) {
            rows.extend(wrap::plain(&format!("[{}]", text::clean_line(media)), theme.dim, width, &Prefix::indent(2)));
        }
        rows
    }
}
