//! How a list is laid out and drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::{Choice, Item, Over, Picker};
use crate::protocol::{ListKind, SettingPlace, Word};
use crate::tui::dialog::fitting;
use crate::tui::paint;
use crate::tui::theme::Theme;

/// Rows of a list that what the selected row means leaves it, and the keys.
const FEW: u16 = 4;
/// Most rows of a list on a screen of the usual height, and of what the selected row means.
const ROWS: usize = 12;
const MEANING: usize = 5;
/// Columns that a filter wants beside the title.
const FILTER: usize = 16;
/// Columns below which the source of a value has no room.
const NARROW: usize = 56;
/// Most columns: farther apart, the two ends of a row are hard to read as one.
const WIDE: u16 = 120;

impl Picker {
    /// Rows that it wants at a width, at most `most`.
    pub fn height(&self, width: u16, most: u16, theme: &Theme) -> u16 {
        let (width, rows) = (width.min(WIDE), ROWS.max(usize::from(most) / 2));
        let rows = match &self.over {
            Some(Over::Entry(entry)) => return entry.height(width).min(most),
            Some(Over::Values(values)) => return values.height(width, most, theme),
            // The height does not follow the filter: a list that jumps is hard to read.
            None if self.wait.is_some() => 8,
            // Room for the text of the selected row.
            None if self.kind == Some(ListKind::Found) => self.items.len().clamp(5, rows),
            None => self.items.len().clamp(1, rows),
        };
        let head = if self.beside(usize::from(width)) { 2 } else { 3 };
        (rows as u16 + head + 1 + self.meaning(usize::from(width), theme).len() as u16).min(most)
    }

    /// The filter has room in the row of the title.
    fn beside(&self, width: usize) -> bool {
        paint::width(&self.title()) + 10 + FILTER <= width
    }

    fn title(&self) -> String {
        match self.place {
            SettingPlace::User => self.title.clone(),
            SettingPlace::Project => format!("{} for this project", self.title),
        }
    }

    /// What the selected row means, as far as it is asked for: of a theme what things look like in it.
    fn meaning(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        match self.selected_item().map(|item| &item.choice) {
            Some(Choice::Setting(row)) if self.explains => {
                let rows = paint::fold(&row.meaning(), width.saturating_sub(2).max(1)).into_iter().take(MEANING);
                rows.map(|row| Line::styled(format!("  {row}"), theme.dim)).collect()
            }
            Some(Choice::Found(row)) => {
                let folder = row.folder.as_ref().map(|folder| format!(" · {}", folder.display())).unwrap_or_default();
                let room = width.saturating_sub(2).max(1);
                let head =
                    Line::styled(format!("  {}", paint::cut(&format!("{}{folder}", row.place), room)), theme.dim);
                let text = paint::fold(&row.text, room).into_iter().take(MEANING - 1);
                std::iter::once(head).chain(text.map(|row| Line::styled(format!("  {row}"), theme.text))).collect()
            }
            Some(Choice::Value { .. }) if self.preview().is_some() => sample(theme),
            _ => Vec::new(),
        }
    }

    pub fn draw(&self, mut area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        match &self.over {
            Some(Over::Entry(entry)) => return entry.draw(area, buf, theme),
            Some(Over::Values(values)) => return values.draw(area, buf, theme),
            None => {}
        }
        paint::rule(buf, paint::take(&mut area, 1), "", theme.border);
        area.width = area.width.min(WIDE);
        let width = area.width as usize;
        let cursor = self.draw_head(&mut area, buf, theme);
        let mut meaning = self.meaning(width, theme);
        // The list keeps a row of its own.
        meaning.truncate(usize::from(area.height.saturating_sub(FEW)));
        let rest = area.height.saturating_sub(meaning.len() as u16);
        let list = paint::take(&mut area, rest.saturating_sub(1).max(1));
        let rows = list.height as usize;
        let first = (self.selected + 1).saturating_sub(rows);
        let lines: Vec<Line> = match (self.wait, self.shown.is_empty()) {
            (Some(_), _) => vec![Line::styled("  gathering…", theme.dim)],
            (None, true) => vec![Line::styled(paint::cut(&format!("  {}", self.nothing()), width), theme.dim)],
            (None, false) => {
                let columns = self.columns(width);
                let shown = self.shown.iter().enumerate().skip(first).take(rows);
                shown.map(|(row, at)| self.line(row, &self.items[*at], (width, columns), theme)).collect()
            }
        };
        paint::lines(buf, list, &lines);
        paint::lines(buf, paint::take(&mut area, meaning.len() as u16), &meaning);
        let (hint, style) = match &self.word {
            Some(Word::Done { text }) => (text.clone(), theme.success),
            Some(Word::Failed { text }) => (text.clone(), theme.warning),
            None => (fitting(&self.hints(), width), theme.dim),
        };
        paint::lines(buf, area, &[Line::styled(paint::cut(&hint, width), style)]);
        cursor
    }

    /// The title, the filter, and how many rows match it.
    fn draw_head(&self, area: &mut Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let (width, title) = (usize::from(area.width), self.title());
        let row = paint::take(area, 1);
        paint::lines(buf, row, &[Line::styled(paint::cut(&title, width), theme.heading)]);
        let most = self.items.len();
        let count = if self.wait.is_none() && (!self.filter.is_empty() || most > ROWS) {
            format!("{} of {most}", self.shown.len())
        } else {
            String::new()
        };
        let beside = self.beside(width);
        let rest = area.height;
        let field = match beside {
            true => {
                let from = (paint::width(&title) + 3) as u16;
                Rect { x: row.x + from, width: row.width - from, ..row }
            }
            false => paint::take(area, u16::from(rest > 2)),
        };
        if field.height == 0 {
            return None;
        }
        let right = (paint::width(&count) as u16).min(field.width);
        buf.set_stringn(field.right() - right, field.y, &count, usize::from(right), theme.dim);
        buf.set_stringn(field.x, field.y, "filter: ", usize::from(field.width), theme.dim);
        let room = field.width.saturating_sub(8 + right + u16::from(right > 0));
        let input = Rect { x: field.x + 8.min(field.width), width: room, ..field };
        self.filter.draw(input, buf, theme.text)
    }

    /// The keys, the most needed first.
    fn hints(&self) -> Vec<&'static str> {
        match self.kind {
            Some(ListKind::Rules) => vec!["type to filter", "Enter revoke", "Esc close", "Tab test what you typed"],
            Some(ListKind::Settings) if self.moved => vec![
                "Space change",
                "d default",
                if self.place == SettingPlace::User { "p for this project" } else { "p for all projects" },
                "? what it means",
                "Esc close",
            ],
            Some(ListKind::Settings) => {
                vec!["type to filter", "↑↓ move", "Space change", "? what it means", "Esc close"]
            }
            Some(ListKind::Found) => vec!["type words", "↑↓ move", "Enter resume", "Tab quote", "Esc close"],
            Some(ListKind::Models) => {
                vec!["type to filter", "↑↓ Enter choose", "Esc close", "prices: input/output per 1M tokens"]
            }
            _ => vec!["type to filter", "↑↓ Enter choose", "Esc close"],
        }
    }

    /// Why no row is shown.
    fn nothing(&self) -> &'static str {
        match self.kind {
            _ if !self.items.is_empty() => "nothing matches",
            Some(ListKind::Found) if self.filter.is_empty() => "type words that were used in any session",
            Some(ListKind::Found) => "nothing found",
            Some(ListKind::Sessions) => "no earlier sessions in this folder",
            Some(ListKind::Rules) => "no rules yet: anything not known to be read-only asks",
            Some(ListKind::Prompts) => "no prompts yet",
            Some(ListKind::Skills) => "no skills yet: `cocode skills new <name>` creates one",
            _ => "nothing there",
        }
    }

    /// Columns of label and value, where the list has such.
    fn columns(&self, width: usize) -> Option<(usize, usize)> {
        let widest = |text: &dyn Fn(&Item) -> usize| self.items.iter().map(text).max().unwrap_or(0);
        let name = widest(&|item: &Item| paint::width(self.name(item)));
        match self.kind {
            Some(ListKind::Models) => Some((name.min(width * 3 / 5), 0)),
            Some(ListKind::Settings) => {
                let label = name.min(if width < NARROW { width * 3 / 5 } else { width * 9 / 20 });
                Some((label, widest(&|item: &Item| paint::width(&item.value)).min(width / 5).max(8)))
            }
            _ => None,
        }
    }

    /// What an item is called among those that are shown.
    fn name<'a>(&self, item: &'a Item) -> &'a str {
        item.alone.as_ref().filter(|_| !self.filter.is_empty()).unwrap_or(&item.label)
    }

    fn line(
        &self,
        row: usize,
        item: &Item,
        (width, columns): (usize, Option<(usize, usize)>),
        theme: &Theme,
    ) -> Line<'static> {
        let chosen = row == self.selected;
        let style = if chosen { theme.selected } else { theme.text };
        let mark = Span::styled(if chosen { "› " } else { "  " }, theme.accent);
        let room = width.saturating_sub(2);
        let filled = |text: &str, cells: usize| {
            let text = paint::cut(text, cells);
            let gap = cells.saturating_sub(paint::width(&text));
            format!("{text}{}", " ".repeat(gap))
        };
        if let Some((label, value)) = columns {
            let mut spans = vec![mark, Span::styled(filled(self.name(item), label), style)];
            let mut left = room.saturating_sub(label + 2);
            if value > 0 {
                let value = value.min(left);
                spans.push(Span::styled(format!("  {}", filled(&item.value, value)), style));
                left = left.saturating_sub(value + 2);
            }
            // Of a few cells nobody can tell what is cut.
            if left >= 6 || paint::width(&item.detail) <= left {
                spans.push(Span::styled(format!("  {}", paint::cut(&item.detail, left)), theme.dim));
            }
            return Line::from(spans);
        }
        let beside = room.saturating_sub(paint::width(&item.label) + 2);
        let detail = paint::cut(&item.detail, beside.max(room / 2));
        let label = paint::cut(&item.label, room.saturating_sub(paint::width(&detail) + 2));
        let gap = room.saturating_sub(paint::width(&label) + paint::width(&detail));
        Line::from(vec![mark, Span::styled(label, style), Span::raw(" ".repeat(gap)), Span::styled(detail, theme.dim)])
    }
}

/// What a theme looks like: code, a change, and the colors that mean something.
fn sample(theme: &Theme) -> Vec<Line<'static>> {
    let span = |text: &str, style| Span::styled(text.to_owned(), style);
    let tokens = &theme.tokens;
    vec![
        Line::from(vec![
            span("  ", theme.text),
            span("fn ", tokens.keyword),
            span("greet", tokens.function),
            span("(n: ", tokens.plain),
            span("u8", tokens.kind),
            span(") { ", tokens.plain),
            span("\"hi\"", tokens.string),
            span(" } ", tokens.plain),
            span("// why", tokens.comment),
        ]),
        Line::from(vec![span("  - ", theme.removed), span("before", theme.removed)]),
        Line::from(vec![span("  + ", theme.added), span("after", theme.added)]),
        Line::from(vec![
            span("  ✓ done", theme.success),
            span("  ! careful", theme.warning),
            span("  ✗ failed", theme.error),
            span("  > you", theme.prompt),
            span("  hints", theme.dim),
        ]),
    ]
}
