//! Keys that a sequence gives by a number.

use crossterm::event::{KeyCode, KeyModifiers};

use ratatui::layout::Position;

use super::{Input, key};
use crate::tui::terminal::input::Mouse;

pub(super) fn modifiers(mask: u8) -> KeyModifiers {
    let bits = mask.saturating_sub(1);
    let mut modifiers = KeyModifiers::NONE;
    for (bit, modifier) in [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
        (8, KeyModifiers::SUPER),
        (16, KeyModifiers::HYPER),
        (32, KeyModifiers::META),
    ] {
        modifiers.set(modifier, bits & bit != 0);
    }
    modifiers
}

pub(super) fn numbered_key(number: u32) -> Option<KeyCode> {
    let function = |number: u32, less: u32| u8::try_from(number - less).ok().map(KeyCode::F);
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => function(number, 10),
        17..=21 => function(number, 11),
        23..=26 => function(number, 12),
        28..=29 => function(number, 13),
        31..=34 => function(number, 14),
        _ => None,
    }
}

/// A key given by its code point, as in the kitty protocol and xterm's modifyOtherKeys.
pub(super) fn code_key(code: u32, modifiers: KeyModifiers) -> Option<Input> {
    /// Keys of the keypad from 57409 on, as the kitty protocol numbers them.
    const KEYPAD: [KeyCode; 18] = [
        KeyCode::Char('.'),
        KeyCode::Char('/'),
        KeyCode::Char('*'),
        KeyCode::Char('-'),
        KeyCode::Char('+'),
        KeyCode::Enter,
        KeyCode::Char('='),
        KeyCode::Char(','),
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Insert,
        KeyCode::Delete,
    ];
    let code = match code {
        9 if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        57376..=57398 => KeyCode::F(u8::try_from(code - 57376 + 13).ok()?),
        57399..=57408 => KeyCode::Char(char::from_digit(code - 57399, 10)?),
        57409..=57426 => KEYPAD[usize::try_from(code - 57409).ok()?],
        // Lock, media and modifier keys.
        57344..=63743 => return None,
        code => KeyCode::Char(char::from_u32(code).filter(|c| !c.is_control())?),
    };
    Some(key(code, modifiers))
}

/// What a report of the mouse means (SGR, without its beginning): `button;column;row`. Other buttons than the left one are
/// left to nobody.
pub(super) fn mouse(body: &str, last: u8) -> Option<Mouse> {
    /// Shift, Alt and Ctrl, which change nothing.
    const HELD: u16 = 4 | 8 | 16;
    let mut fields = body.split(';').map(|field| field.parse::<u16>().ok());
    let (button, column, row) = (fields.next()??, fields.next()??, fields.next()??);
    let place = Position::new(column.checked_sub(1)?, row.checked_sub(1)?);
    match (button & !HELD, last) {
        (0, b'M') => Some(Mouse::Pressed(place)),
        (32, b'M') => Some(Mouse::Dragged(place)),
        (0 | 32, _) => Some(Mouse::Released(place)),
        (64, b'M') => Some(Mouse::WheelUp),
        (65, b'M') => Some(Mouse::WheelDown),
        _ => None,
    }
}
