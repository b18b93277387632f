//! How the composer looks.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::chip::Draft;
use super::{Composer, MARGIN, Mode};
use crate::tui::paint;
use crate::tui::theme::Theme;

const PLACEHOLDER: &str = "Ask anything   / commands   @ files   ! shell   ? keys";

impl Composer {
    /// Rows that text (or the search) takes at a width, at most `most`.
    pub fn height(&self, width: u16, most: u16) -> u16 {
        let search = u16::from(self.search.is_some());
        self.editor.height(column(width), most.max(1) as usize) as u16 + search
    }

    /// Keeps the cursor in sight after an edit or a resize.
    pub fn settle(&mut self, width: u16, most: u16) {
        if let Some(vim) = &mut self.vim {
            vim.settle(&mut self.editor);
        }
        self.editor.settle(column(width), most.max(1) as usize);
    }

    pub fn draw(&self, mut area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        if let Some(search) = &self.search {
            let label = "search: ";
            let row = paint::take(&mut area, 1);
            buf.set_stringn(row.x, row.y, label, row.width as usize, theme.accent);
            let shift = (label.len() as u16).min(row.width);
            let field = Rect { x: row.x + shift, width: row.width - shift, ..row };
            let found = search.found(&self.history);
            let style = if found.is_none() && !search.query.is_empty() { theme.error } else { theme.text };
            let text = match found {
                Some(typed) => Draft::of(typed).folded(),
                None if search.query.is_empty() => "type to search earlier prompts".to_owned(),
                None => String::new(),
            };
            let rows = paint::folded(&text, area.width as usize, theme.dim);
            paint::lines(buf, area, &rows);
            return search.query.draw(field, buf, style);
        }
        if area.height == 0 || area.width <= MARGIN {
            return None;
        }
        let (mark, style) = match self.mode {
            Mode::Prompt => ("> ", theme.accent),
            Mode::Shell => ("! ", theme.warning),
        };
        buf.set_stringn(area.x, area.y, mark, MARGIN as usize, style);
        let text = Rect { x: area.x + MARGIN, width: area.width - MARGIN, ..area };
        if self.editor.is_empty() {
            let hint = if self.mode == Mode::Shell { "a command for your shell" } else { PLACEHOLDER };
            buf.set_stringn(text.x, text.y, paint::cut(hint, text.width as usize), text.width as usize, theme.dim);
            return Some(Position { x: text.x, y: text.y });
        }
        let (rows, (row, column)) = self.editor.visible(text.width as usize, text.height as usize);
        let lines: Vec<Line> = rows.into_iter().map(|row| self.line(row, theme)).collect();
        paint::lines(buf, text, &lines);
        if let Some((written, offer)) = &self.offer
            && written == self.editor.text()
            && row == 0
            && column < text.width as usize
        {
            let room = text.width as usize - column;
            buf.set_stringn(text.x + column as u16, text.y, paint::cut(offer, room), room, theme.dim);
        }
        Some(Position { x: text.x + column as u16, y: text.y + (row as u16).min(text.height - 1) })
    }

    fn line(&self, row: Range<usize>, theme: &Theme) -> Line<'static> {
        let mut spans: Vec<Span> = Vec::new();
        let (mut plain, mut style) = (String::new(), theme.text);
        let selected = self.vim.as_ref().and_then(|vim| vim.selected(&self.editor));
        for (at, grapheme) in self.editor.text()[row.clone()].grapheme_indices(true) {
            let chip = grapheme.chars().next().and_then(|c| self.editor.draft().chip(c));
            let lit = self.mode == Mode::Prompt && self.lit.at(row.start + at).is_some();
            let named = self.mode == Mode::Prompt && self.mentions.at(row.start + at);
            let wanted = match (lit, named) {
                (true, _) => theme.accent.add_modifier(Modifier::BOLD),
                (false, true) => theme.accent,
                (false, false) => theme.text,
            };
            let is_selected = selected.as_ref().is_some_and(|selected| selected.contains(&(row.start + at)));
            let reversed = |style: Style| if is_selected { style.add_modifier(Modifier::REVERSED) } else { style };
            let wanted = reversed(wanted);
            if wanted != style {
                spans.push(Span::styled(std::mem::take(&mut plain), style));
                style = wanted;
            }
            match chip {
                Some(chip) => {
                    spans.push(Span::styled(std::mem::take(&mut plain), style));
                    spans.push(Span::styled(chip.label(), reversed(theme.accent)));
                }
                None if grapheme == "\t" => plain.push_str("    "),
                None => plain.push_str(grapheme),
            }
        }
        spans.push(Span::styled(plain, style));
        Line::from(spans)
    }
}

fn column(width: u16) -> usize {
    width.saturating_sub(MARGIN).max(1) as usize
}
