//! Sequences that speak to the window around the terminal: its title, the clipboard, a notification.

use base64::Engine;

use super::Traits;

/// Longest title or notification, in characters.
const TEXT_CHARS: usize = 200;
/// Most bytes that are copied through the terminal; many refuse more than about this.
const COPY_BYTES: usize = 74_994;

/// The bytes that set the window's title.
pub fn title(text: &str) -> Vec<u8> {
    format!("\x1b]2;{}\x1b\\", clean(text)).into_bytes()
}

/// The bytes that show a notification: the two common sequences and the bell, of which a terminal ignores what it
/// does not know.
pub fn notify(heading: &str, text: &str, traits: Traits) -> Vec<u8> {
    let (heading, text) = (clean(heading).replace(';', ","), clean(text));
    let mut bytes = outer(&format!("\x1b]9;{heading}: {text}\x07"), traits);
    bytes.extend(outer(&format!("\x1b]777;notify;{heading};{text}\x07"), traits));
    bytes.push(b'\x07');
    bytes
}

/// The bytes that copy `text` to the clipboard of the machine that shows the terminal (OSC 52), or none when it is
/// too long for that.
pub fn copy(text: &str, traits: Traits) -> Option<Vec<u8>> {
    if text.len() > COPY_BYTES {
        return None;
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let sequence = format!("\x1b]52;c;{encoded}\x07");
    // tmux keeps a copy in its own buffer when it gets the plain sequence, and hands the wrapped one through.
    let mut bytes = outer(&sequence, traits);
    if traits.tmux {
        bytes.extend_from_slice(sequence.as_bytes());
    }
    Some(bytes)
}

/// Text without control characters and not too long.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS).collect()
}

/// The sequence as the terminal around tmux gets it.
fn outer(sequence: &str, traits: Traits) -> Vec<u8> {
    if traits.tmux {
        format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b")).into_bytes()
    } else {
        sequence.as_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: Vec<u8>, want: &str) {
        assert_eq!(String::from_utf8(bytes).unwrap(), want);
    }

    #[test]
    fn texts_cannot_end_their_sequence() {
        check(title("a\x07b\x1b]0;c\u{9c}"), "\x1b]2;ab]0;c\x1b\\");
        let tmux = Traits { tmux: true, ..Traits::USUAL };
        check(copy("hi", Traits::USUAL).unwrap(), "\x1b]52;c;aGk=\x07");
        check(copy("hi", tmux).unwrap(), "\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\\x1b]52;c;aGk=\x07");
        check(notify("a;b", "c\n", Traits::USUAL), "\x1b]9;a,b: c\x07\x1b]777;notify;a,b;c\x07\x07");
        assert_eq!(copy(&"x".repeat(COPY_BYTES + 1), Traits::USUAL), None);
    }
}
