//! Changes on the whole screen, to their end.

use ratatui::text::{Line, Span};

use super::app::App;
use super::render::{Row, diff};
use super::theme::Theme;
use crate::message::FileDiff;

/// One change to its end.
pub(super) fn diff(app: &App, diff: &FileDiff) -> Vec<Row> {
    let mut rows = Vec::new();
    file(&mut rows, diff, usize::from(app.size.0), &app.options.theme);
    rows
}

pub(super) fn section(rows: &mut Vec<Row>, title: &str, files: &[FileDiff], width: usize, theme: &Theme) {
    rows.push(Row::from(Line::styled(title.to_owned(), theme.heading)));
    if files.is_empty() {
        rows.push(Row::from(Line::styled("nothing", theme.dim)));
    }
    for change in files {
        rows.push(Row::from(Line::default()));
        file(rows, change, width, theme);
    }
}

fn file(rows: &mut Vec<Row>, file: &FileDiff, width: usize, theme: &Theme) {
    let name = super::paint::cut(&file.path, width.saturating_sub(12));
    let mut spans = vec![Span::styled(name, theme.accent)];
    // Untracked files and changes of the mode alone have no lines to count.
    if file.created || file.added + file.removed > 0 {
        spans.push(Span::styled(format!("  {}", diff::summary(file)), theme.dim));
    }
    rows.push(Row::from(Line::from(spans)));
    rows.extend(diff::rows(file, width, theme, None));
}
