//! Bytes from the terminal become keys, pastes and answers. An answer never becomes a key, however late or torn.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Position;

use self::bulk::Burst;
use self::codes::{code_key, modifiers, mouse, numbered_key};
use super::input::{Input, Queries, Report};

mod bulk;
mod codes;

/// How long the rest of a begun sequence is waited for.
const REST_TIME: Duration = Duration::from_millis(50);
/// The same for an answer that is under way, which a slow line may tear.
const ANSWER_REST_TIME: Duration = Duration::from_millis(500);
/// How long the tail of a torn sequence is still its own: every byte of it would be a key otherwise.
const TAIL_TIME: Duration = Duration::from_secs(1);
/// Longest tail of a torn sequence.
const TAIL_BYTES: usize = 64;
/// How long a paste may stand still before what has come of it is passed on.
const PASTE_TIME: Duration = Duration::from_secs(1);
/// Longest paste; the rest of it is dropped.
const PASTE_BYTES: usize = 10 * 1024 * 1024;
/// Longest sequence that is waited for.
const SEQUENCE_BYTES: usize = 4096;
const PASTE_END: &[u8] = b"\x1b[201~";
/// A read of at most this many bytes after a paste has stalled is a key, not its continuation.
const KEY_BYTES: usize = 8;

/// The state between two reads.
pub(super) struct Parser {
    queries: Queries,
    buffer: Vec<u8>,
    /// The sequence in the buffer stood still after so many bytes.
    torn: Option<usize>,
    paste: Option<Paste>,
    burst: Burst,
}

#[derive(Default)]
struct Paste {
    bytes: Vec<u8>,
    /// Nothing came for a while; its beginning has been passed on.
    stalled: bool,
}

/// What the buffer begins with.
enum Token {
    /// So many bytes, and what they mean, if anything.
    Whole(usize, Option<Input>),
    /// A paste begins after so many bytes.
    Paste(usize),
    /// More must come.
    Partial,
}

impl Parser {
    pub(super) fn new(queries: Queries) -> Parser {
        Parser { queries, buffer: Vec::new(), torn: None, paste: None, burst: Burst::default() }
    }

    /// Longest wait for the next bytes before `flush`; none waits for ever.
    pub(super) fn patience(&self) -> Option<Duration> {
        match (&self.paste, self.buffer.as_slice()) {
            (Some(paste), _) => (!paste.stalled).then_some(PASTE_TIME),
            (None, []) => self.burst.open().then_some(bulk::GAP),
            (None, _) if self.torn.is_some() => Some(TAIL_TIME),
            (None, [0x1b]) if self.queries.waiting().is_none() => Some(Duration::ZERO),
            (None, [0x1b, b'[' | b']' | b'P', ..]) if self.queries.waiting().is_some() => Some(ANSWER_REST_TIME),
            (None, _) => Some(REST_TIME),
        }
    }

    /// Takes bytes in and emits what is complete.
    pub(super) fn feed(&mut self, bytes: &[u8], emit: &mut impl FnMut(Input)) {
        if self.paste.as_ref().is_some_and(|paste| paste.stalled && bytes.len() <= KEY_BYTES && bytes != PASTE_END) {
            self.paste = None;
        }
        if let Some(length) = self.torn
            && !is_tail(&self.buffer[..length], &self.buffer[length..], bytes)
        {
            self.buffer.clear();
            self.torn = None;
        }
        self.buffer.extend_from_slice(bytes);
        let mut inputs = Vec::new();
        self.advance(&mut |input| inputs.push(input));
        let text = inputs.iter().filter(|input| is_text(input)).count();
        let written = text > 1 && inputs.iter().any(is_character);
        for input in inputs {
            emit(match input {
                Input::Key(event) if written && is_text(&input) => Input::Written(event),
                input => input,
            });
        }
    }

    /// Nothing came for as long as `patience` says: what is there is all there is.
    pub(super) fn flush(&mut self, emit: &mut impl FnMut(Input)) {
        if let Some(paste) = &mut self.paste {
            if !paste.bytes.is_empty() {
                emit(Input::Paste(clean_paste(&paste.bytes)));
            }
            *paste = Paste { bytes: Vec::new(), stalled: true };
            return;
        }
        self.burst.end(emit);
        match self.buffer.as_slice() {
            [] => return,
            [0x1b] => {
                self.buffer.clear();
                emit(key(KeyCode::Esc, KeyModifiers::NONE));
            }
            // Nothing came behind it for a while: the rest is lost, and what comes next is a key.
            [0x1b, ..] if self.torn.take().is_some() => self.buffer.clear(),
            // More of it may be under way, so it stays; all the same, a beginning alone is Alt and a letter.
            [0x1b, rest @ ..] => {
                let letter = match rest {
                    [letter] => Some(char::from(*letter)),
                    _ => None,
                };
                self.torn = Some(self.buffer.len());
                if let Some(letter) = letter {
                    emit(with_alt(character(letter)));
                }
                emit(Input::Torn);
                return;
            }
            // Half a character: another encoding than UTF-8.
            [first, ..] => {
                let first = *first;
                self.buffer.remove(0);
                emit(character(char::from(first)));
            }
        }
        self.advance(emit);
    }

    fn advance(&mut self, emit: &mut impl FnMut(Input)) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut start = 0;
        while start < buffer.len() {
            if let Some(paste) = &mut self.paste {
                let Some(rest) = paste.take(&buffer[start..]) else {
                    start = buffer.len();
                    break;
                };
                if !(paste.stalled && paste.bytes.is_empty()) {
                    emit(Input::Paste(clean_paste(&paste.bytes)));
                }
                self.paste = None;
                start = buffer.len() - rest;
                continue;
            }
            let bulk = self.burst.take(&buffer[start..], emit);
            if bulk > 0 {
                start += bulk;
                continue;
            }
            match token(&buffer[start..], &self.queries) {
                Token::Whole(length, input) => {
                    // What the terminal says of itself may come in the middle of a text.
                    if let Some(Input::Key(_)) = input {
                        self.burst.end_before(buffer[start], emit);
                    }
                    start += length;
                    if let Some(input) = input {
                        emit(input);
                    }
                }
                Token::Paste(length) => {
                    self.burst.end(emit);
                    start += length;
                    self.paste = Some(Paste::default());
                }
                Token::Partial => break,
            }
        }
        if start > 0 {
            self.torn = None;
        }
        buffer.drain(..start);
        self.buffer = buffer;
    }
}

impl Paste {
    /// Takes bytes of the paste; at its end, returns how many bytes follow it.
    fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let seen = self.bytes.len().saturating_sub(PASTE_END.len());
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes[seen..].windows(PASTE_END.len()).position(|window| window == PASTE_END);
        if let Some(end) = end {
            let end = seen + end;
            let rest = self.bytes.len() - end - PASTE_END.len();
            self.bytes.truncate(end.min(PASTE_BYTES));
            return Some(rest);
        }
        if self.bytes.len() > PASTE_BYTES + PASTE_END.len() {
            // The last bytes stay, as they may be the beginning of the end.
            let tail = self.bytes.split_off(self.bytes.len() - PASTE_END.len());
            self.bytes.truncate(PASTE_BYTES);
            self.bytes.extend_from_slice(&tail);
        }
        None
    }
}

/// Whether a read continues with a torn sequence, of which `tail` has come since it was torn.
fn is_tail(head: &[u8], tail: &[u8], read: &[u8]) -> bool {
    if tail.len() >= TAIL_BYTES {
        return false;
    }
    match (head, tail, read.first()) {
        // What was typed behind Alt and such a letter is not what the terminal says.
        ([0x1b, b'O'], [], Some(&byte)) => byte == b'M' || letter_key(byte).is_some(),
        ([0x1b, b']' | b'P' | b'X' | b'^' | b'_'], [], Some(byte)) => (b'!'..b'@').contains(byte),
        // Ctrl+C and Enter are keys wherever they come.
        ([0x1b, b']' | b'P' | b'X' | b'^' | b'_', ..], _, Some(byte)) => *byte >= b' ' || matches!(byte, 0x07 | 0x1b),
        _ => true,
    }
}

/// Whether it belongs to what somebody writes: a character, or what ends or fixes a line.
fn is_text(input: &Input) -> bool {
    is_character(input)
        || matches!(input, Input::Key(event) if event.modifiers.is_empty()
            && matches!(event.code, KeyCode::Enter | KeyCode::Tab | KeyCode::Backspace))
}

fn is_character(input: &Input) -> bool {
    let shift = KeyModifiers::SHIFT;
    matches!(input, Input::Key(event) if matches!(event.code, KeyCode::Char(_)) && shift.contains(event.modifiers))
}

fn clean_paste(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}

fn token(bytes: &[u8], queries: &Queries) -> Token {
    match bytes {
        [0x1b] => Token::Partial,
        [0x1b, b'[', ..] => csi(bytes, queries),
        [0x1b, b'O', ..] => ss3(bytes),
        [0x1b, b']' | b'P' | b'X' | b'^' | b'_', ..] => string(bytes),
        // Some terminals send Alt with a cursor key this way.
        [0x1b, 0x1b, b'[' | b'O', ..] => match token(&bytes[1..], queries) {
            Token::Whole(length, Some(input @ Input::Key(_))) => Token::Whole(length + 1, Some(with_alt(input))),
            Token::Partial => Token::Partial,
            // What the terminal says by itself may come right behind a press of Esc.
            Token::Whole(..) | Token::Paste(_) => Token::Whole(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        },
        [0x1b, 0x1b, ..] => Token::Whole(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        [0x1b, rest @ ..] => match plain(rest) {
            Token::Whole(length, input) => Token::Whole(length + 1, input.map(with_alt)),
            other => other,
        },
        _ => plain(bytes),
    }
}

/// A control byte or a character.
fn plain(bytes: &[u8]) -> Token {
    let one = |input| Token::Whole(1, Some(input));
    match bytes[0] {
        b'\r' => one(key(KeyCode::Enter, KeyModifiers::NONE)),
        b'\t' => one(key(KeyCode::Tab, KeyModifiers::NONE)),
        0x7f => one(key(KeyCode::Backspace, KeyModifiers::NONE)),
        0 => one(key(KeyCode::Char(' '), KeyModifiers::CONTROL)),
        byte @ 1..=0x1a => one(key(KeyCode::Char(char::from(byte - 1 + b'a')), KeyModifiers::CONTROL)),
        byte @ 0x1b..=0x1f => one(key(KeyCode::Char(char::from(byte + 0x40)), KeyModifiers::CONTROL)),
        byte @ 0x20..0x80 => one(character(char::from(byte))),
        first => {
            let length = match first {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            let whole = &bytes[..length.min(bytes.len())];
            match std::str::from_utf8(whole).map(|text| text.chars().next()) {
                Ok(Some(c)) => Token::Whole(length, (!c.is_control()).then(|| character(c))),
                Err(error) if error.error_len().is_none() => Token::Partial,
                // Not UTF-8: a terminal with a Latin-1 locale.
                Ok(None) | Err(_) => Token::Whole(1, (first >= 0xa0).then(|| character(char::from(first)))),
            }
        }
    }
}

fn character(c: char) -> Input {
    key(KeyCode::Char(c), if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE })
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Input {
    Input::Key(KeyEvent::new(code, modifiers))
}

fn with_alt(input: Input) -> Input {
    match input {
        Input::Key(event) => key(event.code, event.modifiers | KeyModifiers::ALT),
        other => other,
    }
}

/// `ESC O letter`: cursor and function keys in application mode.
fn ss3(bytes: &[u8]) -> Token {
    let Some(&letter) = bytes.get(2) else { return Token::Partial };
    match letter_key(letter) {
        Some(code) => Token::Whole(3, Some(key(code, KeyModifiers::NONE))),
        None if letter == b'M' => Token::Whole(3, Some(key(KeyCode::Enter, KeyModifiers::NONE))),
        // Alt+O and another key typed at once.
        None => Token::Whole(2, Some(with_alt(character('O')))),
    }
}

fn letter_key(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'R' => KeyCode::F(3),
        b'S' => KeyCode::F(4),
        _ => return None,
    })
}

/// OSC, DCS and their like, up to their terminator: answers all of them.
fn string(bytes: &[u8]) -> Token {
    let body = &bytes[2..];
    for (index, &byte) in body.iter().enumerate() {
        let length = match (byte, body.get(index + 1)) {
            (0x07, _) => 1,
            (0x1b, Some(b'\\')) => 2,
            // Another sequence began: this one was cut off.
            (0x1b, Some(_)) => 0,
            _ => continue,
        };
        return Token::Whole(2 + index + length, string_report(bytes[1], &body[..index]));
    }
    if bytes.len() > SEQUENCE_BYTES { Token::Whole(bytes.len(), None) } else { Token::Partial }
}

fn string_report(kind: u8, body: &[u8]) -> Option<Input> {
    let body = std::str::from_utf8(body).ok()?;
    let report = match kind {
        b']' if body == "7501;?" => Report::Status,
        b']' => background(body.strip_prefix("11;")?)?,
        b'P' => Report::Version(body.strip_prefix(">|")?.chars().filter(|c| !c.is_control()).collect()),
        _ => return None,
    };
    Some(Input::Report(report))
}

/// `rgb:rrrr/gggg/bbbb` with one to four digits each, or `#rrggbb`.
fn background(color: &str) -> Option<Report> {
    let channel = |digits: &str| {
        let most = 16_u32.checked_pow(u32::try_from(digits.len()).ok()?)?.checked_sub(1)?;
        let value = u32::from_str_radix(digits, 16).ok()?;
        u8::try_from(value.checked_mul(255)?.checked_div(most)?).ok()
    };
    let (r, g, b) = match color.strip_prefix('#') {
        Some(hex) if hex.len() == 6 && hex.is_ascii() => (&hex[..2], &hex[2..4], &hex[4..]),
        _ => {
            let mut parts = color.strip_prefix("rgb:").or(color.strip_prefix("rgba:"))?.split('/');
            (parts.next()?, parts.next()?, parts.next()?)
        }
    };
    Some(Report::Background(channel(r)?, channel(g)?, channel(b)?))
}

fn csi(bytes: &[u8], queries: &Queries) -> Token {
    // The Linux console's first function keys.
    if let [_, _, b'[', rest @ ..] = bytes {
        return match rest.first() {
            None => Token::Partial,
            Some(letter @ b'A'..=b'E') => Token::Whole(4, Some(key(KeyCode::F(letter - b'A' + 1), KeyModifiers::NONE))),
            Some(_) => Token::Whole(3, None),
        };
    }
    let Some(end) = bytes[2..].iter().position(|byte| !(0x20..0x40).contains(byte)) else {
        return if bytes.len() > SEQUENCE_BYTES { Token::Whole(bytes.len(), None) } else { Token::Partial };
    };
    let end = 2 + end;
    let last = bytes[end];
    if !(0x40..0x7f).contains(&last) {
        // Cut off by a control byte, which counts by itself.
        return Token::Whole(end, None);
    }
    let body = std::str::from_utf8(&bytes[2..end]).unwrap_or_default();
    if last == b'M' && body.is_empty() {
        // A mouse event of the oldest kind: three bytes follow.
        return if bytes.len() < end + 4 { Token::Partial } else { Token::Whole(end + 4, None) };
    }
    if last == b'~' && body == "200" {
        return Token::Paste(end + 1);
    }
    Token::Whole(end + 1, csi_input(body, last, queries))
}

fn csi_input(body: &str, last: u8, queries: &Queries) -> Option<Input> {
    if let Some(body) = body.strip_prefix('?') {
        let report = match last {
            b'u' => Report::Kitty(body.parse().ok()?),
            b'c' => {
                queries.all_answered();
                Report::Attributes
            }
            b'R' => cursor(body)?,
            _ => return None,
        };
        return Some(Input::Report(report));
    }
    if let (Some(body), b'M' | b'm') = (body.strip_prefix('<'), last) {
        return mouse(body, last).map(Input::Mouse);
    }
    if body.starts_with(['<', '=', '>']) {
        return None;
    }
    // Only an open question makes it a position: otherwise it is F3 with a modifier.
    if last == b'R' && body.contains(';') && queries.answered() {
        return cursor(body).map(Input::Report);
    }
    let mut fields = body.split(';');
    let mut first = fields.next().unwrap_or_default().split(':');
    let number: u32 = match first.next() {
        None | Some("") => 1,
        Some(digits) => digits.parse().ok()?,
    };
    let mut second = fields.next().unwrap_or_default().split(':');
    let mask = second.next().and_then(|mask| mask.parse::<u8>().ok()).unwrap_or(1);
    if second.next() == Some("3") {
        return None;
    }
    let modifiers = modifiers(mask);
    match last {
        b'I' if body.is_empty() => Some(Input::Focus(true)),
        b'O' if body.is_empty() => Some(Input::Focus(false)),
        b'Z' => Some(key(KeyCode::BackTab, modifiers | KeyModifiers::SHIFT)),
        b'u' => code_key(number, modifiers),
        b'~' if number == 27 => code_key(fields.next()?.parse().ok()?, modifiers),
        b'~' => Some(key(numbered_key(number)?, modifiers)),
        letter => Some(key(letter_key(letter)?, modifiers)),
    }
}

fn cursor(body: &str) -> Option<Report> {
    let mut fields = body.split(';').map(|field| field.parse::<u16>().ok()?.checked_sub(1));
    let (row, column) = (fields.next()??, fields.next()??);
    Some(Report::Cursor(Position::new(column, row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::terminal::Mouse;

    fn parse(parser: &mut Parser, reads: &[&[u8]]) -> Vec<Input> {
        marked(parser, reads).into_iter().map(key_of).collect()
    }

    fn key_of(input: Input) -> Input {
        if let Input::Written(event) = input { Input::Key(event) } else { input }
    }

    fn marked(parser: &mut Parser, reads: &[&[u8]]) -> Vec<Input> {
        let mut inputs = Vec::new();
        for read in reads {
            parser.feed(read, &mut |input| inputs.push(input));
            if parser.patience() == Some(Duration::ZERO) {
                parser.flush(&mut |input| inputs.push(input));
            }
        }
        inputs
    }

    fn name(input: &Input) -> String {
        let Input::Key(event) = input else { return format!("{input:?}") };
        let mut name = String::new();
        for (modifier, letter) in
            [(KeyModifiers::CONTROL, "C-"), (KeyModifiers::ALT, "A-"), (KeyModifiers::SHIFT, "S-")]
        {
            if event.modifiers.contains(modifier) {
                name.push_str(letter);
            }
        }
        match event.code {
            KeyCode::Char(c) => name.push(c),
            code => name.push_str(&format!("{code:?}")),
        }
        name
    }

    /// Every row is one read; the names of its keys, separated by spaces.
    fn check(read: &[u8], want: &str) {
        let mut parser = Parser::new(Queries::default());
        let inputs = parse(&mut parser, &[read]);
        let names: Vec<_> = inputs.iter().map(name).collect();
        assert_eq!(names.join(" "), want, "{:?}", String::from_utf8_lossy(read));
    }

    #[test]
    fn keys() {
        check(b"aB", "a S-B");
        check("é日👍".as_bytes(), "é 日 👍");
        check(b"\xe9t\xe9 ", "é t é  ");
        check(b"\r\n\t\x7f", "Enter C-j Tab Backspace");
        check(b"\x03\x1a\0\x1f", "C-c C-z C-  C-_");
        check(b"\x1b", "Esc");
        check(b"\x1b\x1b", "Esc Esc");
        check(b"\x1bt\x1bT", "A-t A-S-T");
        check(b"\x1b\r\x1b\x7f", "A-Enter A-Backspace");
        check(b"\x1b[A\x1bOB\x1b[1;5C\x1b[1;3D\x1b\x1b[A", "Up Down C-Right A-Left A-Up");
        check(b"\x1b[Z\x1b[3~\x1b[3;5~\x1b[5~\x1b[H\x1b[4~", "S-BackTab Delete C-Delete PageUp Home End");
        check(b"\x1bOP\x1b[15~\x1b[24~\x1b[[B\x1b[1;2R\x1b[R", "F(1) F(5) F(12) F(2) S-F(3) F(3)");
        check(b"\x1b[13;2u\x1b[27;5;13~\x1b[9;2u\x1b[27u", "S-Enter C-Enter S-BackTab Esc");
        check(b"\x1b[97;5u\x1b[97;5:3u\x1b[97:65;6u\x1b[57414u\x1b[57441;2u", "C-a C-S-a Enter");
    }

    #[test]
    fn what_is_not_a_key_is_not_typed() {
        check(b"\x1b[<2;1;2Mx\x1b[M !!y\x1b[?997;1nz", "x y z");
        check(b"\x1b_Gi=1;OK\x1b\\a\x1b[200Xb\x1b[?2026;2$yc", "a b c");
        check(b"\x1b[12\x03", "C-c");
        check(b"\x1b\x1b[?997;1n\x1b\x1b[<2;1;2M\x1b\x1b[I", "Esc Esc Esc Focus(true)");
        check(b"\x1b[I\x1b[O", "Focus(true) Focus(false)");
    }

    #[test]
    fn the_mouse() {
        let at = |x: u16, y: u16| Position::new(x, y);
        for (read, want) in [
            ("<0;1;2M", Some(Mouse::Pressed(at(0, 1)))),
            ("<4;300;90M", Some(Mouse::Pressed(at(299, 89)))),
            ("<32;3;4M", Some(Mouse::Dragged(at(2, 3)))),
            ("<0;3;4m", Some(Mouse::Released(at(2, 3)))),
            ("<64;1;1M", Some(Mouse::WheelUp)),
            ("<81;1;1M", Some(Mouse::WheelDown)),
            ("<2;1;1M", None),
            ("<35;1;1M", None),
            ("<0;0;1M", None),
            ("<0;1M", None),
        ] {
            let mut parser = Parser::new(Queries::default());
            let inputs = parse(&mut parser, &[b"\x1b[", read.as_bytes(), b"x"]);
            let want: Vec<Input> = want.map(Input::Mouse).into_iter().chain([character('x')]).collect();
            assert_eq!(inputs, want, "{read}");
        }
    }

    #[test]
    fn answers_between_keys_at_every_split() {
        let read = b"a\x1b[5;3R\x1b[?1u\x1b]11;rgb:1e1e/1e/f\x1b\\b\x1bP>|tmux 3.3a\x1b\\\x1b[?62;4cc";
        let want = vec![
            character('a'),
            Input::Report(Report::Cursor(Position::new(2, 4))),
            Input::Report(Report::Kitty(1)),
            Input::Report(Report::Background(30, 30, 255)),
            character('b'),
            Input::Report(Report::Version("tmux 3.3a".into())),
            Input::Report(Report::Attributes),
            character('c'),
        ];
        for split in 0..read.len() {
            let queries = Queries::default();
            queries.ask();
            let mut parser = Parser::new(queries);
            assert_eq!(parse(&mut parser, &[&read[..split], &read[split..]]), want, "split at {split}");
        }
    }

    #[test]
    fn pastes_are_cleaned_at_every_split() {
        let read = b"\x1b[200~a\r\nb\rc\td\x1b[31m\x07\xc3\xa9\x1b[201~z";
        let want = vec![Input::Paste("a\nb\nc\td[31mé".into()), character('z')];
        for split in 6..read.len() {
            let mut parser = Parser::new(Queries::default());
            assert_eq!(parse(&mut parser, &[&read[..split], &read[split..]]), want, "split at {split}");
        }
    }

    #[test]
    fn a_paste_without_end_is_passed_on_and_keys_work_again() {
        let mut parser = Parser::new(Queries::default());
        let mut inputs = parse(&mut parser, &[b"\x1b[200~half"]);
        parser.flush(&mut |input| inputs.push(input));
        assert_eq!(parser.patience(), None);
        inputs.extend(parse(&mut parser, &[b"x"]));
        assert_eq!(inputs, [Input::Paste("half".into()), character('x')]);
    }

    #[test]
    fn a_stalled_paste_goes_on() {
        let mut parser = Parser::new(Queries::default());
        let mut inputs = parse(&mut parser, &[b"\x1b[200~half"]);
        parser.flush(&mut |input| inputs.push(input));
        inputs.extend(parse(&mut parser, &[b" of it\rand the rest\x1b[201~x"]));
        let want = [Input::Paste("half".into()), Input::Paste(" of it\nand the rest".into()), character('x')];
        assert_eq!(inputs, want);
    }

    /// Reads follow each other at once; then nothing comes for a while.
    fn check_bulk(reads: &[&str], want: &str) {
        let mut parser = Parser::new(Queries::default());
        let reads: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
        let mut inputs = parse(&mut parser, &reads);
        parser.flush(&mut |input| inputs.push(key_of(input)));
        assert_eq!(parser.patience(), None);
        let names: Vec<_> = inputs.iter().map(name).collect();
        assert_eq!(names.join(" "), want, "{reads:?}");
    }

    #[test]
    fn text_in_bulk_is_a_paste_and_a_typed_line_is_not() {
        // A line as it is typed, and one typed ahead with its Enter or Tab.
        check_bulk(&["fix it\r"], "f i x   i t Enter");
        check_bulk(&["fix the failing test", "\r"], r#"Paste("fix the failing test") Enter"#);
        check_bulk(&["/review-everything\t"], r#"Paste("/review-everything") Tab"#);
        check_bulk(&["!cargo test --all\r"], r#"Paste("!cargo test --all") Enter"#);
        check_bulk(&["!cargo test --all\rls"], r#"Paste("!cargo test --all\nls")"#);
        // Lines end inside of a text, and at its end.
        check_bulk(&["one line of it\rand another\r"], r#"Paste("one line of it\nand another\n")"#);
        check_bulk(&["a row of a\ttable\n"], r#"Paste("a row of a\ttable\n")"#);
        check_bulk(&["one line of it, long\r", "and another\r"], r#"Paste("one line of it, long\nand another\n")"#);
        // Keys are not part of it, wherever they stand.
        check_bulk(&["\r0123456789abcdef"], r#"Enter Paste("0123456789abcdef")"#);
        check_bulk(
            &["\x030123456789abcdefg\x1b[A0123456789abcdef\r\x1b[B"],
            r#"C-c Paste("0123456789abcdefg") Up Paste("0123456789abcdef") Enter Down"#,
        );
        check_bulk(&["0123456789abcdef\x7f\x7f"], r#"Paste("0123456789abcdef") Backspace Backspace"#);
        check_bulk(&["0123456789abcdef\x1b\r"], r#"Paste("0123456789abcdef") A-Enter"#);
        check_bulk(&["line0\r", "line1\r", "line2\r"], "l i n e 0 Enter l i n e 1 Enter l i n e 2 Enter");
        check_bulk(&["jjjj", "jjjj", "\x1b[6~"], "j j j j j j j j PageDown");
        // What the terminal says of itself does not cut it.
        check_bulk(&["0123456789abcdef\r\x1b[Iand more"], r#"Focus(true) Paste("0123456789abcdef\nand more")"#);
        check_bulk(&["日本語の文章をまとめて貼り付けた時"], r#"Paste("日本語の文章をまとめて貼り付けた時")"#);
    }

    #[test]
    fn a_flood_of_keys_is_one_paste_however_it_is_cut() {
        let text = "println!(\"é isn't e\");\r".repeat(50_000 / 24);
        for size in [1, 2, 7, 100, 4095, 65_536] {
            let mut parser = Parser::new(Queries::default());
            let reads: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let mut inputs = parse(&mut parser, &reads);
            parser.flush(&mut |input| inputs.push(input));
            let pasted: usize =
                inputs.iter().map(|input| if let Input::Paste(text) = input { text.chars().count() } else { 1 }).sum();
            assert_eq!(pasted, text.chars().count(), "reads of {size}");
            assert!(inputs.len() <= bulk::CHARS + 1, "reads of {size}: {} inputs", inputs.len());
        }
    }

    #[test]
    fn huge_pastes_are_cut() {
        let mut parser = Parser::new(Queries::default());
        let chunk = vec![b'x'; 1 << 20];
        let mut inputs = parse(&mut parser, &[b"\x1b[200~"]);
        for _ in 0..12 {
            inputs.extend(parse(&mut parser, &[&chunk]));
        }
        inputs.extend(parse(&mut parser, &[b"\x1b[201~y"]));
        let lengths: Vec<_> = inputs
            .iter()
            .map(|input| match input {
                Input::Paste(text) => text.len(),
                _ => 1,
            })
            .collect();
        assert_eq!(lengths, [PASTE_BYTES, 1]);
    }

    #[test]
    fn text_that_comes_at_once_is_marked() {
        for (reads, want) in [
            (&["yes please"][..], "wwwwwwwwww"),
            (&["1+1\r"], "wwww"),
            (&["y\r"], "ww"),
            (&["\ry"], "ww"),
            (&["yy"], "ww"),
            (&["y\x1b[By"], "wkw"),
            (&["\x1b[121u\x1b[121u"], "ww"),
            (&["é日"], "ww"),
            (&["y", "y"], "kk"),
            (&["y"], "k"),
            (&["\r"], "k"),
            // One key, in as many bytes as it takes; and keys that repeat while the reader was away.
            (&["日", "\x1b[B", "\x1by", "\x1b[121u"], "kkkk"),
            (&["\x1b[B\x1b[B\r", "\x7f\x7f", "\x1b\x1b"], "kkkkkkk"),
            (&["\x03y"], "kk"),
        ] {
            let mut parser = Parser::new(Queries::default());
            let reads: Vec<&[u8]> = reads.iter().map(|read| read.as_bytes()).collect();
            let kind = |input: &Input| match input {
                Input::Key(_) => 'k',
                Input::Written(_) => 'w',
                _ => '?',
            };
            assert_eq!(marked(&mut parser, &reads).iter().map(kind).collect::<String>(), want, "{reads:?}");
        }
    }

    /// Reads with so long a pause between them that what has begun is flushed.
    fn paused(parser: &mut Parser, reads: &[&[u8]]) -> String {
        let mut inputs = Vec::new();
        for read in reads {
            inputs.extend(parse(parser, &[read]));
            parser.flush(&mut |input| inputs.push(input));
        }
        inputs.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_torn_sequence_keeps_its_tail() {
        for (reads, want) in [
            (&[&b"\x1b[?62;"[..], b"1;2c", b"1"][..], "Torn Report(Attributes) 1"),
            (&[b"\x1b]11;rgb:0000/0000/", b"1111\x1b\\", b"y"], "Torn Report(Background(0, 0, 17)) y"),
            (&[b"\x1b]11;rgb:0000/", b"0000/1111\x07y"], "Torn Report(Background(0, 0, 17)) y"),
            (&[b"\x1bP>|tmux", b" 3.3a\x1b\\1"], "Torn Report(Version(\"tmux 3.3a\")) 1"),
            (&[b"\x1b[<2;", b"12;5My"], "Torn y"),
            (&[b"\x1b[", b"1"], "A-[ Torn"),
            (&[b"\x1b[", b"1;5B"], "A-[ Torn C-Down"),
            (&[b"\x1b[1", b"3u"], "Torn Enter"),
            (&[b"\x1bO", b"B"], "A-S-O Torn Down"),
            (&[b"\x1b[200", b"~1\ry\x1b[201~"], "Torn Paste(\"1\\ny\")"),
            // The rest never comes.
            (&[b"\x1b[?62;", b"", b"1"], "Torn 1"),
            (&[b"\x1b]11;rgb", b"", b"y"], "Torn y"),
            (&[b"\x1b]11;rgb", b"\x03"], "Torn C-c"),
            (&[b"\x1b]11;rgb", b"\ry"], "Torn Enter y"),
            (&[b"\x1b[12", b"\x03"], "Torn C-c"),
            // Typed by somebody, one after the other.
            (&[b"\x1b", b"[", b"1"], "Esc [ 1"),
            (&[b"\x1bO", b"k"], "A-S-O Torn k"),
            (&[b"\x1b]", b"y"], "A-] Torn y"),
            (&[b"\x1bP", b"yes"], "A-S-P Torn y e s"),
            (&[b"\xc3", b"x"], "S-Ã x"),
        ] {
            let mut parser = Parser::new(Queries::default());
            assert_eq!(paused(&mut parser, reads), want, "{reads:?}");
        }
    }

    #[test]
    fn a_tail_without_an_end_is_let_go() {
        let mut parser = Parser::new(Queries::default());
        let mut inputs = parse(&mut parser, &[b"\x1b]11;rgb:"]);
        assert_eq!(parser.patience(), Some(REST_TIME));
        parser.flush(&mut |input| inputs.push(input));
        assert_eq!(parser.patience(), Some(TAIL_TIME));
        inputs.extend(parse(&mut parser, &[b"x".as_slice(); TAIL_BYTES + 2]));
        assert_eq!(inputs.iter().map(name).collect::<Vec<_>>(), ["Torn", "x", "x"]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken(bytes: Vec<u8>) {
            let mut parser = Parser::new(Queries::default());
            parse(&mut parser, &[&bytes]);
        }
    }
}
