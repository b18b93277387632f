//! `/diff` on the whole screen: what the session changed, and what is not committed.

use ratatui::text::{Line, Span};

use super::app::App;
use super::pager::Pager;
use super::render::{Row, diff};
use super::theme::Theme;
use crate::message::FileDiff;
use crate::protocol::Changes;

/// Opens the changes as they are now.
pub(super) fn pager(app: &App, changes: &Changes) -> Pager {
    let (theme, width) = (&app.options.theme, usize::from(app.size.0));
    let mut rows = Vec::new();
    section(&mut rows, "Changed in this session", &changes.session, width, theme);
    if let Some(files) = &changes.uncommitted {
        rows.push(Row::from(Line::default()));
        section(&mut rows, "Not committed, says git", files, width, theme);
    }
    Pager::text(rows)
}

fn section(rows: &mut Vec<Row>, title: &str, files: &[FileDiff], width: usize, theme: &Theme) {
    rows.push(Row::from(Line::styled(title.to_owned(), theme.heading)));
    if files.is_empty() {
        rows.push(Row::from(Line::styled("nothing", theme.dim)));
    }
    for file in files {
        rows.push(Row::from(Line::default()));
        let name = super::paint::cut(&file.path, width.saturating_sub(12));
        let spans =
            vec![Span::styled(name, theme.accent), Span::styled(format!("  {}", diff::summary(file)), theme.dim)];
        rows.push(Row::from(Line::from(spans)));
        rows.extend(diff::rows(file, width, theme, None));
    }
}
