//! Sequences that speak to the window around the terminal: its title, the clipboard, a notification.

use base64::Engine;

use super::{Alert, Traits};
use crate::tui::msg::Progress;

/// Longest title or notification, in characters.
const TEXT_CHARS: usize = 200;
/// Most bytes that are copied through the terminal; many refuse more than about this.
const COPY_BYTES: usize = 74_994;

/// The bytes that set the window's title.
pub fn title(text: &str) -> Vec<u8> {
    format!("\x1b]2;{}\x1b\\", clean(text)).into_bytes()
}

/// The bytes that show one notification, in the way that the terminal is known to have: all at once would alert twice.
pub fn notify(heading: &str, text: &str, traits: Traits) -> Vec<u8> {
    let (heading, text) = (clean(heading).replace(';', ","), clean(text));
    match traits.alert {
        Alert::Osc9 => format!("\x1b]9;{heading}: {text}\x07").into_bytes(),
        Alert::Osc777 => format!("\x1b]777;notify;{heading};{text}\x07").into_bytes(),
        Alert::Bell => vec![b'\x07'],
    }
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

/// The bytes that say what the program is at: a bar of the window (OSC 9;4) and the program status of dashboards
/// (OSC 7501), each where the terminal has it.
pub fn progress(progress: Progress, traits: Traits) -> Vec<u8> {
    let mut bytes = Vec::new();
    if traits.progress {
        let state = match progress {
            Progress::Idle => "0;0",
            Progress::Working => "3;0",
            Progress::Asking => "4;100",
            Progress::Failed => "2;100",
        };
        bytes.extend(outer(&format!("\x1b]9;4;{state}\x1b\\"), traits));
    }
    if traits.status {
        let state = match progress {
            Progress::Idle => "idle",
            Progress::Working => "working",
            Progress::Asking => "blocked:kind=question",
            Progress::Failed => "error",
        };
        bytes.extend(format!("\x1b]7501;state={state}:app=cocode\x1b\\").into_bytes());
    }
    bytes
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
    fn what_the_program_is_at_is_said_where_it_is_understood() {
        let bar = Traits { progress: true, ..Traits::USUAL };
        check(progress(Progress::Working, Traits::USUAL), "");
        check(progress(Progress::Working, bar), "\x1b]9;4;3;0\x1b\\");
        check(progress(Progress::Asking, bar), "\x1b]9;4;4;100\x1b\\");
        check(progress(Progress::Failed, bar), "\x1b]9;4;2;100\x1b\\");
        check(progress(Progress::Idle, bar), "\x1b]9;4;0;0\x1b\\");
        let tmux = Traits { tmux: true, ..bar };
        check(progress(Progress::Idle, tmux), "\x1bPtmux;\x1b\x1b]9;4;0;0\x1b\x1b\\\x1b\\");
        let both = Traits { status: true, ..bar };
        let want = "\x1b]9;4;3;0\x1b\\\x1b]7501;state=working:app=cocode\x1b\\";
        check(progress(Progress::Working, both), want);
        let want = "\x1b]7501;state=blocked:kind=question:app=cocode\x1b\\";
        check(progress(Progress::Asking, Traits { status: true, ..Traits::USUAL }), want);
    }

    #[test]
    fn texts_cannot_end_their_sequence() {
        check(title("a\x07b\x1b]0;c\u{9c}"), "\x1b]2;ab]0;c\x1b\\");
        let tmux = Traits { tmux: true, ..Traits::USUAL };
        check(copy("hi", Traits::USUAL).unwrap(), "\x1b]52;c;aGk=\x07");
        check(copy("hi", tmux).unwrap(), "\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\\x1b]52;c;aGk=\x07");
        for (alert, want) in
            [(Alert::Osc9, "\x1b]9;a,b: c\x07"), (Alert::Osc777, "\x1b]777;notify;a,b;c\x07"), (Alert::Bell, "\x07")]
        {
            check(notify("a;b", "c\n", Traits { alert, ..Traits::USUAL }), want);
        }
        assert_eq!(copy(&"x".repeat(COPY_BYTES + 1), Traits::USUAL), None);
    }
}
