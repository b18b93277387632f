//! A one-line field: dialogs, pickers and searches write into it. Scrolls sideways.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use tui_textarea::{CursorMove, TextArea};
use unicode_segmentation::UnicodeSegmentation;

use super::chip;
use crate::tui::paint;

/// Longest text of a field, in characters.
const MOST: usize = 4_000;

/// One line of text with a cursor.
#[derive(Debug, Clone)]
pub struct Field {
    area: TextArea<'static>,
}

impl Default for Field {
    fn default() -> Field {
        let mut area = TextArea::default();
        // The real cursor is placed by us, so that input methods find it.
        area.set_cursor_style(Style::default());
        area.set_cursor_line_style(Style::default());
        Field { area }
    }
}

impl Field {
    pub fn text(&self) -> &str {
        self.area.lines().first().map_or("", String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// Inserts text; line ends become spaces.
    pub fn insert(&mut self, text: &str) {
        let room = MOST.saturating_sub(self.text().chars().count());
        let text: String = chip::tidy(text).replace(['\n', '\t'], " ").chars().take(room).collect();
        self.area.insert_str(text);
    }

    /// Takes a key. False when the key means nothing to a field.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let (before, after) = self.split();
        // The widget moves and deletes by `char`; a person sees graphemes.
        let back = before.graphemes(true).next_back().map_or(0, |grapheme| grapheme.chars().count());
        let forward = after.graphemes(true).next().map_or(0, |grapheme| grapheme.chars().count());
        match key.code {
            KeyCode::Char('a') if control => self.area.move_cursor(CursorMove::Head),
            KeyCode::Char('e') if control => self.area.move_cursor(CursorMove::End),
            KeyCode::Char('u') if control => drop(self.area.delete_line_by_head()),
            KeyCode::Char('k') if control => drop(self.area.delete_line_by_end()),
            KeyCode::Char('w') if control => drop(self.area.delete_word()),
            KeyCode::Char('h') if control => drop(self.area.delete_char()),
            KeyCode::Char(c) if !control && !alt && !c.is_control() => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => drop(self.area.delete_word()),
            KeyCode::Backspace => {
                for _ in 0..back {
                    self.area.delete_char();
                }
            }
            KeyCode::Delete => {
                for _ in 0..forward {
                    self.area.delete_next_char();
                }
            }
            KeyCode::Left => (0..back).for_each(|_| self.area.move_cursor(CursorMove::Back)),
            KeyCode::Right => (0..forward).for_each(|_| self.area.move_cursor(CursorMove::Forward)),
            KeyCode::Home => self.area.move_cursor(CursorMove::Head),
            KeyCode::End => self.area.move_cursor(CursorMove::End),
            _ => return false,
        }
        true
    }

    /// Draws the part around the cursor on the first row of `area` and says where the cursor is.
    pub fn draw(&self, area: Rect, buf: &mut Buffer, style: Style) -> Option<Position> {
        let room = area.width as usize;
        if room == 0 || area.height == 0 {
            return None;
        }
        let (before, after) = self.split();
        let mut shown = String::new();
        let mut used = 0;
        for grapheme in before.graphemes(true).rev() {
            let cells = paint::width(grapheme);
            if used + cells >= room {
                break;
            }
            used += cells;
            shown.insert_str(0, grapheme);
        }
        buf.set_stringn(area.x, area.y, shown + &after, room, style);
        Some(Position { x: area.x + used as u16, y: area.y })
    }

    fn split(&self) -> (String, String) {
        let tui_textarea::DataCursor(_, column) = self.area.cursor();
        let text = self.text();
        let at = text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
        (text[..at].to_owned(), text[at..].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_graphemes_and_scrolls_sideways() {
        let mut field = Field::default();
        field.insert("né👩‍👩‍👧\nx");
        field.key(KeyEvent::from(KeyCode::Left));
        field.key(KeyEvent::from(KeyCode::Left));
        field.key(KeyEvent::from(KeyCode::Backspace));
        assert_eq!(field.text(), "né x");
        let mut buf = Buffer::empty(Rect::new(0, 0, 4, 1));
        field.insert("日本");
        let cursor = field.draw(buf.area, &mut buf, Style::default());
        assert_eq!((cursor, buf[(0, 0)].symbol()), (Some(Position { x: 2, y: 0 }), "本"));
    }
}
