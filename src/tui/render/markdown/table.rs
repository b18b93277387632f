//! Tables fitted to the width: cells wrap; where columns would be too narrow, each row becomes a small list.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use crate::stdx::text;
use crate::tui::render::Row;
use crate::tui::render::wrap::{self, Piece, Prefix, spans_width};
use crate::tui::theme::Theme;

/// Narrowest column that text may be wrapped in.
const MIN_COLUMN: usize = 8;
const SEPARATOR: &str = " │ ";

/// Inline content of a cell.
pub(super) type Cell = Vec<Piece>;

/// A table; its first row is the header.
pub(super) struct Table {
    pub(super) aligns: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Cell>>,
}

pub(super) fn rows(table: &Table, width: usize, theme: &Theme, prefix: &Prefix) -> Vec<Row> {
    let room = width.saturating_sub(prefix.width());
    match columns(table, room) {
        Some(columns) => grid(table, &columns, theme, prefix),
        None => stacked(table, width, theme, prefix),
    }
}

fn cell_width(cell: &Cell) -> usize {
    let whole: String = cell.iter().map(|piece| piece.text.as_str()).collect();
    whole.split('\n').map(text::width).max().unwrap_or(0)
}

/// Widths of the columns; none when they do not fit side by side.
fn columns(table: &Table, room: usize) -> Option<Vec<usize>> {
    let count = table.aligns.len();
    let room = room.checked_sub(SEPARATOR.chars().count() * count.saturating_sub(1))?;
    let mut natural = vec![1; count];
    for row in &table.rows {
        for (column, cell) in row.iter().enumerate().take(count) {
            natural[column] = natural[column].max(cell_width(cell));
        }
    }
    if natural.iter().sum::<usize>() <= room {
        return Some(natural);
    }
    if natural.iter().map(|wide| (*wide).min(MIN_COLUMN)).sum::<usize>() > room {
        return None;
    }
    // Narrow columns keep their width, the others share what is left evenly.
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|column| natural[*column]);
    let (mut left, mut widths) = (room, vec![0; count]);
    for (done, column) in order.into_iter().enumerate() {
        widths[column] = natural[column].min(left / (count - done));
        left -= widths[column];
    }
    Some(widths)
}

fn grid(table: &Table, columns: &[usize], theme: &Theme, prefix: &Prefix) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    // A row that continues is told from the next by its empty first column, unless that one continues, too.
    let wrapped = table.rows.iter().skip(1).any(|row| row.first().is_some_and(|cell| cell_width(cell) > columns[0]));
    let headed = table.rows.first().is_some_and(|header| header.iter().any(|cell| !cell.is_empty()));
    let line = |joint: &str| {
        let parts: Vec<String> = columns.iter().map(|column| "─".repeat(*column)).collect();
        Span::styled(parts.join(joint), theme.border)
    };
    for (index, cells) in table.rows.iter().enumerate().skip(usize::from(!headed)) {
        if (headed && index == 1) || (wrapped && index > 1) {
            let mut spans = prefix.rest.clone();
            spans.push(line("─┼─"));
            rows.push(Row::from(Line::from(spans)));
        }
        let none = Cell::new();
        let drawn: Vec<Vec<Row>> = (0..columns.len())
            .map(|column| {
                let mut cell = cells.get(column).unwrap_or(&none).clone();
                if index == 0 {
                    cell.iter_mut().for_each(|piece| piece.style = piece.style.patch(theme.heading));
                }
                wrap::wrap(&cell, columns[column], &Prefix::default())
            })
            .collect();
        let height = drawn.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let lead = if rows.is_empty() { &prefix.first } else { &prefix.rest };
            let mut row = Row::from(Line::from(lead.clone()));
            for (column, cell) in drawn.iter().enumerate() {
                if column > 0 {
                    row.line.spans.push(Span::styled(SEPARATOR, theme.border));
                }
                let empty = Row::default();
                let cell = cell.get(at).unwrap_or(&empty);
                let free = columns[column].saturating_sub(spans_width(&cell.line.spans));
                let before = match table.aligns[column] {
                    Alignment::Right => free,
                    Alignment::Center => free / 2,
                    Alignment::Left | Alignment::None => 0,
                };
                if before > 0 {
                    row.line.spans.push(Span::raw(" ".repeat(before)));
                }
                let shift = row.line.spans.len();
                row.links.extend(cell.links.iter().map(|(span, link)| (span + shift, link.clone())));
                row.line.spans.extend(cell.line.spans.iter().cloned());
                if column + 1 < columns.len() && free > before {
                    row.line.spans.push(Span::raw(" ".repeat(free - before)));
                }
            }
            rows.push(row);
        }
    }
    rows
}

fn stacked(table: &Table, width: usize, theme: &Theme, prefix: &Prefix) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let Some((header, body)) = table.rows.split_first() else { return rows };
    for (index, cells) in body.iter().enumerate() {
        if index > 0 {
            rows.push(Row::default());
        }
        for (column, cell) in cells.iter().enumerate() {
            if cell.is_empty() {
                continue;
            }
            let name = header.get(column).cloned().unwrap_or_default();
            let mut pieces: Vec<Piece> =
                name.into_iter().map(|piece| Piece { style: piece.style.patch(theme.heading), ..piece }).collect();
            if !pieces.is_empty() {
                pieces.push(Piece::new(": ", theme.dim));
            }
            pieces.extend(cell.iter().cloned());
            let lead = if rows.is_empty() { prefix.first.clone() } else { prefix.rest.clone() };
            rows.extend(wrap::wrap(&pieces, width, &Prefix { first: lead, rest: prefix.rest.clone() }));
        }
    }
    if body.is_empty() {
        for name in header {
            rows.extend(wrap::wrap(name, width, &Prefix { first: prefix.rest.clone(), rest: prefix.rest.clone() }));
        }
    }
    rows
}
