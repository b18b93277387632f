//! Turns what a program wrote for a terminal into plain text: overwriting is applied, every control sequence is dropped.

use std::io::{self, IsTerminal, Write};

/// Longest line that can still be overwritten, in characters; a longer one is passed on in pieces.
const LINE: usize = 16 * 1024;

/// Longest operating-system command or similar string that is skipped, in bytes; what follows counts as text again.
const STRING: usize = 4096;

/// Cleans a stream, in pieces of any size. Lines come out whole.
#[derive(Debug, Default)]
pub struct Cleaner {
    /// The line that is being written.
    line: Vec<char>,
    /// Where the next character goes in `line`.
    column: usize,
    state: State,
    /// Bytes of a character that is not complete yet.
    partial: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// In a control sequence; the first parameter as far as it is a number.
    Csi(u32),
    /// In a string that BEL, ST or a line end closes; its length so far.
    Text(usize),
    /// An escape inside such a string: only a backslash closes it.
    TextEscape(usize),
}

impl Cleaner {
    pub fn new() -> Cleaner {
        Cleaner::default()
    }

    /// Takes more bytes and appends the lines that they complete, each with its line end. Invalid UTF-8 becomes U+FFFD.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut bytes = bytes;
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.partial);
            bytes = &joined;
        }
        while !bytes.is_empty() {
            let plain = self.plain(bytes, out);
            bytes = &bytes[plain..];
            // Up to the next plain run, character by character.
            let end =
                bytes.iter().position(|byte| is_plain(*byte) && self.state == State::Ground).unwrap_or(bytes.len());
            let step = if end == 0 && !bytes.is_empty() { 1 } else { end };
            let (head, rest) = bytes.split_at(step);
            match std::str::from_utf8(head) {
                Ok(text) => text.chars().for_each(|character| self.character(character, out)),
                Err(_) => {
                    let (taken, partial) = decode(head, rest.is_empty());
                    taken.chars().for_each(|character| self.character(character, out));
                    self.partial = partial.to_vec();
                }
            }
            bytes = rest;
        }
    }

    /// Ends the stream: appends the last line if it has no line end.
    pub fn finish(mut self, out: &mut String) {
        let partial = std::mem::take(&mut self.partial);
        String::from_utf8_lossy(&partial).chars().for_each(|character| self.character(character, out));
        out.extend(self.line);
    }

    /// Copies a run that needs no care; returns its length.
    fn plain(&mut self, bytes: &[u8], out: &mut String) -> usize {
        if self.state != State::Ground {
            return 0;
        }
        let end = bytes.iter().position(|byte| !is_plain(*byte)).unwrap_or(bytes.len());
        // ASCII throughout, so it is UTF-8.
        let run = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
        let rest = match run.rfind('\n') {
            Some(at) => {
                let (whole, rest) = run.split_at(at + 1);
                let mut whole = whole;
                if !self.line.is_empty() {
                    let (first, others) = whole.split_at(whole.find('\n').map_or(whole.len(), |at| at + 1));
                    first.chars().for_each(|character| self.character(character, out));
                    whole = others;
                }
                out.push_str(whole);
                rest
            }
            None => run,
        };
        rest.chars().for_each(|character| self.print(character, out));
        end
    }

    fn character(&mut self, character: char, out: &mut String) {
        match self.state {
            State::Ground => self.ground(character, out),
            State::Escape => {
                self.state = match character {
                    '[' => State::Csi(0),
                    ']' | 'P' | 'X' | '^' | '_' => State::Text(0),
                    // Intermediates: the final character is still to come.
                    ' '..='/' => State::Escape,
                    '0'..='~' => State::Ground,
                    _ => return self.again(character, out),
                }
            }
            State::Csi(parameter) => {
                self.state = match character {
                    '0'..='9' => {
                        let digit = character as u32 - '0' as u32;
                        State::Csi(parameter.saturating_mul(10).saturating_add(digit))
                    }
                    ' '..='?' => State::Csi(parameter),
                    '@'..='~' => {
                        self.sequence(character, parameter);
                        State::Ground
                    }
                    _ => return self.again(character, out),
                }
            }
            State::Text(length) => {
                self.state = match character {
                    '\u{7}' | '\u{9c}' => State::Ground,
                    '\u{1b}' => State::TextEscape(length),
                    '\n' | '\u{18}' | '\u{1a}' => return self.again(character, out),
                    _ if length >= STRING => State::Ground,
                    _ => State::Text(length + character.len_utf8()),
                }
            }
            State::TextEscape(_) if character == '\\' => self.state = State::Ground,
            State::TextEscape(_) => {
                self.state = State::Escape;
                self.character(character, out);
            }
        }
    }

    /// A sequence was broken off: the character counts by itself.
    fn again(&mut self, character: char, out: &mut String) {
        self.state = State::Ground;
        self.ground(character, out);
    }

    fn ground(&mut self, character: char, out: &mut String) {
        match character {
            '\n' => {
                out.extend(self.line.drain(..));
                out.push('\n');
                self.column = 0;
            }
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Csi(0),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.state = State::Text(0),
            '\t' => self.print(character, out),
            other if other.is_control() => {}
            other => self.print(other, out),
        }
    }

    /// The few sequences that change what a line says.
    fn sequence(&mut self, end: char, parameter: u32) {
        match (end, parameter) {
            ('K', 0) => self.line.truncate(self.column),
            ('K', 2) => {
                self.line.clear();
                self.column = 0;
            }
            ('G', column) => self.column = (column.max(1) as usize - 1).min(self.line.len()),
            ('D', columns) => self.column = self.column.saturating_sub(columns.max(1) as usize),
            _ => {}
        }
    }

    fn print(&mut self, character: char, out: &mut String) {
        match self.line.get_mut(self.column) {
            Some(place) => *place = character,
            None => self.line.push(character),
        }
        self.column += 1;
        if self.line.len() >= LINE {
            out.extend(self.line.drain(..));
            self.column = 0;
        }
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n')
}

/// Decodes bytes; what may be the start of a character is returned apart when more can follow.
fn decode(bytes: &[u8], open: bool) -> (std::borrow::Cow<'_, str>, &[u8]) {
    let mut end = bytes.len();
    if open {
        let mut rest = bytes;
        while let Err(error) = std::str::from_utf8(rest) {
            let valid = error.valid_up_to();
            match error.error_len() {
                Some(length) => rest = &rest[valid + length..],
                None => {
                    end = bytes.len() - (rest.len() - valid);
                    break;
                }
            }
        }
    }
    (String::from_utf8_lossy(&bytes[..end]), &bytes[end..])
}

/// Cleans a whole text.
pub fn clean(text: &str) -> String {
    let (mut cleaner, mut out) = (Cleaner::new(), String::with_capacity(text.len()));
    cleaner.push(text.as_bytes(), &mut out);
    cleaner.finish(&mut out);
    out
}

/// Shows control characters as pictures instead of dropping them, for text whose every character matters, such as a diff.
/// Tabs and line ends stay; a carriage return before a line end goes. What turns the direction of writing would show
/// another text than there is, as do tags that nobody sees, so both become pictures, too.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\t' | '\n' => out.push(character),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\u{7f}' => out.push('\u{2421}'),
            '\0'..='\u{1f}' => out.push(char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}')),
            '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' => {
                out.push('\u{fffd}');
            }
            other => out.push(other),
        }
    }
    out
}

/// Where text for people or programs goes. A terminal gets it with control characters made visible, since text of a model,
/// a page or a file could command it otherwise; a file or a pipe gets the bytes as they are.
#[derive(Debug)]
pub struct Shown<W> {
    out: W,
    terminal: bool,
    /// Bytes of a character that is not complete yet.
    partial: Vec<u8>,
}

impl<W: Write + IsTerminal> Shown<W> {
    pub fn new(out: W) -> Shown<W> {
        let terminal = out.is_terminal();
        Shown { out, terminal, partial: Vec::new() }
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.out.write(bytes);
        }
        let joined = [std::mem::take(&mut self.partial).as_slice(), bytes].concat();
        let (text, partial) = decode(&joined, true);
        self.partial = partial.to_vec();
        self.out.write_all(visible(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let partial = std::mem::take(&mut self.partial);
        self.out.write_all(visible(&String::from_utf8_lossy(&partial)).as_bytes())?;
        self.out.flush()
    }
}

/// Text of a file as it may be printed: nothing in it moves the cursor or turns the reading direction.
pub fn shown(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    visible(text).replace(turns, "\u{fffd}")
}

/// The text in one line: what would begin another one is escaped.
pub fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t").replace(['\u{2028}', '\u{2029}'], "\u{fffd}")
}

/// JSON in one line in which nothing commands a terminal, turns the reading direction or hides: such characters are escaped.
pub fn json(value: &serde_json::Value) -> String {
    let mut out = String::new();
    for character in value.to_string().chars() {
        match character {
            '\u{7f}'..='\u{9f}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => {
                let units =
                    character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
                out.push_str(&units);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &[u8], want: &str) {
        for size in [1, 2, 3, 7, raw.len().max(1)] {
            let (mut cleaner, mut out) = (Cleaner::new(), String::new());
            raw.chunks(size).for_each(|piece| cleaner.push(piece, &mut out));
            cleaner.finish(&mut out);
            assert_eq!(out, want, "{:?} in pieces of {size}", String::from_utf8_lossy(raw));
        }
    }

    #[test]
    fn sequences_go_and_text_stays() {
        for (raw, want) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[31mred\x1b[0m\n", "red\n"),
            ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "ablink"),
            ("\x1bPq#0;2\x1b\\x\x1b_apc\x1b\\y\x1b^pm\x1b\\z", "xyz"),
            ("\u{9b}31mred\u{9d}title\u{9c}.", "red."),
            ("10%\r20%\r100%\n", "100%\n"),
            ("long line\rshort\n", "shortline\n"),
            ("long line\r\x1b[Kshort\n", "short\n"),
            ("abc\x08\x08X\n", "aXc\n"),
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("bell\x07 null\0 del\x7f.", "bell null del."),
            ("\x1b[2J\x1b[1;1Hhome", "home"),
            ("\x1b]0;never closed\nnext", "\nnext"),
            ("\x1b[31\x1b[32mx", "x"),
            ("\x1b(Bcharset\x1b=", "charset"),
            ("日本\r語\n", "語本\n"),
            ("é", "é"),
            ("\x1b", ""),
        ] {
            check(raw.as_bytes(), want);
        }
    }

    #[test]
    fn invalid_bytes_are_replaced() {
        check(b"a\xffb\n", "a\u{fffd}b\n");
        check(b"\xe6\x97", "\u{fffd}");
        check(b"\xe6\x97\xa5\xf0\x9f\n", "日\u{fffd}\n");
    }

    #[test]
    fn an_endless_line_and_string_are_bounded() {
        let raw = format!("\x1b]{}{}", "x".repeat(STRING + 1), "y".repeat(LINE * 3));
        let (mut cleaner, mut out) = (Cleaner::new(), String::new());
        cleaner.push(raw.as_bytes(), &mut out);
        assert!(cleaner.line.len() < LINE);
        cleaner.finish(&mut out);
        assert_eq!(out.trim_start_matches('x'), "y".repeat(LINE * 3));
    }

    #[test]
    fn pictures() {
        assert_eq!(visible("a\x1b[0m\tb\r\nc\rd\u{9b}"), "a\u{241b}[0m\tb\nc\u{240d}d\u{fffd}");
        assert_eq!(
            visible("if \u{202e}eslaf\u{202c} \u{2066}x\u{2069} שלום"),
            "if \u{fffd}eslaf\u{fffd} \u{fffd}x\u{fffd} שלום"
        );
    }

    #[test]
    fn json_escapes_what_nobody_should_see() {
        let text = "a\u{9b}\u{7f}\u{202e}\u{e0041}\u{200b}é\"\n";
        let shown = json(&serde_json::json!({ "x": text }));
        assert_eq!(shown, r#"{"x":"a\u009b\u007f\u202e\udb40\udc41\u200bé\"\n"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["x"], text);
        assert_eq!(visible("a\u{e0041}"), "a\u{fffd}");
    }

    #[test]
    fn a_terminal_gets_pictures_and_a_pipe_the_bytes() {
        for (terminal, want) in
            [(true, "1\u{241b}]8;;x\u{241b}\\é\u{fffd}\n\u{fffd}"), (false, "1\x1b]8;;x\x1b\\é\u{9b}\n\u{fffd}")]
        {
            for size in [1, 2, 3, 100] {
                let mut shown = Shown { out: Vec::new(), terminal, partial: Vec::new() };
                for piece in b"1\x1b]8;;x\x1b\\\xc3\xa9\xc2\x9b\n\xff".chunks(size) {
                    io::Write::write_all(&mut shown, piece).unwrap();
                }
                io::Write::flush(&mut shown).unwrap();
                let got = String::from_utf8_lossy(&shown.out).into_owned();
                assert_eq!(got, want, "{terminal}, in pieces of {size}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_but_text_comes_out(raw: Vec<u8>) {
            let (mut cleaner, mut out) = (Cleaner::new(), String::new());
            cleaner.push(&raw, &mut out);
            cleaner.finish(&mut out);
            assert!(out.chars().all(|character| !character.is_control() || character == '\n' || character == '\t'));
        }
    }
}
