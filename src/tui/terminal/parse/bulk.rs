//! Text that comes as keys, but faster than anybody types: a paste through a terminal that does not mark pastes.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};

use super::{Input, Token, clean_paste, plain};

/// Characters of one burst from which on they are a paste.
pub(super) const CHARS: usize = 16;
/// A burst is over when nothing came for this long. Held keys repeat more slowly.
pub(super) const GAP: Duration = Duration::from_millis(10);
/// Most bytes that are held back; more of them are another paste.
const BYTES: usize = 10 * 1024 * 1024;

/// Characters that follow each other without a pause. The first few are passed on as the keys they may be.
#[derive(Default)]
pub(super) struct Burst {
    /// Characters that were passed on as keys.
    typed: usize,
    held: Vec<u8>,
}

impl Burst {
    /// More of it may come.
    pub(super) fn open(&self) -> bool {
        self.typed > 0 || !self.held.is_empty()
    }

    /// Takes the text that `bytes` begin with, once it is too much for keys; returns how many bytes it took.
    pub(super) fn take(&mut self, bytes: &[u8], emit: &mut impl FnMut(Input)) -> usize {
        // Nobody's text begins with Enter or Tab: these are keys.
        if self.held.is_empty() && bytes.first().is_some_and(|byte| *byte < b' ') {
            return 0;
        }
        let left = if self.held.is_empty() { CHARS.saturating_sub(self.typed) } else { 0 };
        let text = text(bytes);
        if left > 0 && std::str::from_utf8(&bytes[..text]).is_ok_and(|text| text.chars().nth(left - 1).is_none()) {
            return 0;
        }
        self.held.extend_from_slice(&bytes[..text]);
        if self.held.len() > BYTES {
            emit(Input::Paste(clean_paste(&std::mem::take(&mut self.held))));
        }
        text
    }

    /// A key is passed on that begins with `byte`: what is held goes first. Another key than a character ends the burst,
    /// and so does Enter: the sender may continue as soon as the answer is there.
    pub(super) fn end_before(&mut self, byte: u8, emit: &mut impl FnMut(Input)) {
        let typed = self.typed;
        self.end(emit);
        self.typed = if is_text(byte) && byte != b'\r' { typed + 1 } else { 0 };
    }

    /// Passes on what is held. One line with Enter behind it is typed ahead, or comes from a script; Tab likewise completes.
    pub(super) fn end(&mut self, emit: &mut impl FnMut(Input)) {
        self.typed = 0;
        let held = std::mem::take(&mut self.held);
        let Some((last, line)) = held.split_last() else { return };
        let one_line = !line.iter().any(|byte| *byte < b' ');
        let code = match last {
            b'\r' if one_line => KeyCode::Enter,
            b'\t' if one_line => KeyCode::Tab,
            _ => return emit(Input::Paste(clean_paste(&held))),
        };
        emit(Input::Paste(clean_paste(line)));
        emit(Input::Written(KeyEvent::from(code)));
    }
}

fn is_text(byte: u8) -> bool {
    byte >= b' ' && byte != 0x7f || matches!(byte, b'\r' | b'\n' | b'\t')
}

/// How many bytes at the start are text and line ends.
fn text(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at).filter(|byte| is_text(**byte)) {
        at += match byte {
            0x80.. => match plain(&bytes[at..]) {
                Token::Whole(length, Some(_)) if length > 1 => length,
                _ => break,
            },
            _ => 1,
        };
    }
    at
}
