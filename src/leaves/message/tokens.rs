//! Estimates how many tokens something will cost before the provider has counted it.

use super::{Block, Content, Message};

/// Tokens that an image counts for.
pub const IMAGE: u64 = 2_000;

/// Runs of at least this many bytes without white space read as base64 and cost far more than prose.
const LONG_RUN: u64 = 200;

/// Bytes of a word's beginning that are counted at once.
const STEP: usize = 64;

/// Estimates the tokens of a text: ASCII bytes / 4 plus one for each other character, rounded up; unbroken ASCII runs of
/// over 200 bytes count one token for 1.4 characters.
pub fn text(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let (mut ascii, mut wide) = (0u64, 0u64);
    for block in bytes.chunks(STEP) {
        let (mut plain, mut starts) = (0u8, 0u8);
        for byte in block {
            plain += u8::from(byte.is_ascii());
            // Continuation bytes are 10xxxxxx; every other non-ASCII byte starts one character.
            starts += u8::from(*byte >= 0xC0);
        }
        ascii += u64::from(plain);
        wide += u64::from(starts);
    }
    let long = long_runs(bytes);
    (ascii - long).div_ceil(4) + wide + (long * 10).div_ceil(14)
}

/// ASCII bytes in runs that have more of them than `LONG_RUN`.
fn long_runs(bytes: &[u8]) -> u64 {
    let (mut long, mut at) = (0, 0);
    // A run that is long enough covers the last byte of some step, so that most bytes need no look.
    while let Some(probe) = bytes.get(at + LONG_RUN as usize) {
        if probe.is_ascii_whitespace() {
            at += LONG_RUN as usize + 1;
            continue;
        }
        let before = &bytes[at..at + LONG_RUN as usize];
        let start = before.iter().rposition(u8::is_ascii_whitespace).map_or(at, |space| at + space + 1);
        // Within the step there was a space: nothing before `start` can be part of a long run.
        if start > at {
            at = start;
            continue;
        }
        let end = bytes[at..].iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |space| at + space);
        let plain = bytes[at..end].iter().filter(|byte| byte.is_ascii()).count() as u64;
        if plain > LONG_RUN {
            long += plain;
        }
        at = end + 1;
    }
    long
}

/// What is in the window without having been counted: tokens of text by estimate, and images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    pub text: u64,
    pub images: u64,
}

impl Load {
    /// Tokens when an image counts `IMAGE`.
    pub fn total(self) -> u64 {
        self.text + self.images * IMAGE
    }
}

impl std::ops::Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        Load { text: self.text + other.text, images: self.images + other.images }
    }
}

impl std::ops::Sub for Load {
    type Output = Load;

    fn sub(self, other: Load) -> Load {
        Load { text: self.text.saturating_sub(other.text), images: self.images.saturating_sub(other.images) }
    }
}

impl std::iter::Sum for Load {
    fn sum<I: Iterator<Item = Load>>(loads: I) -> Load {
        loads.fold(Load::default(), std::ops::Add::add)
    }
}

/// Estimates one block.
pub fn load_of(block: &Block) -> Load {
    const MEDIA: Load = Load { text: 0, images: 1 };
    let of_text = |text| Load { text, images: 0 };
    match block {
        Block::Text { text: body, .. } | Block::Thinking { text: body, .. } => of_text(text(body)),
        Block::ToolCall(call) => of_text(text(&call.name) + text(&call.input.to_string())),
        Block::ToolResult(result) => result
            .content
            .iter()
            .map(|part| match part {
                Content::Text { text: body } => of_text(text(body)),
                Content::Media(_) => MEDIA,
            })
            .sum(),
        Block::Media(_) => MEDIA,
    }
}

/// Estimates a message; what the model does not see counts nothing.
pub fn load(message: &Message) -> Load {
    if !message.agent_visible {
        return Load::default();
    }
    message.blocks.iter().map(load_of).sum()
}

/// Estimates the tokens of a message; what the model does not see counts nothing.
pub fn message(message: &Message) -> u64 {
    load(message).total()
}

#[cfg(test)]
mod tests {
    #[test]
    fn estimates() {
        for (text, want) in
            [("", 0), ("abcd", 1), ("abcde", 2), ("日本", 2), ("ab é", 2), (&"x".repeat(280), 200), ("\u{1F600}", 1)]
        {
            assert_eq!(super::text(text), want, "{text:?}");
        }
    }

    /// The same, word by word.
    fn slowly(text: &str) -> u64 {
        let words = text.as_bytes().split(u8::is_ascii_whitespace);
        let plain = words.map(|word| word.iter().filter(|byte| byte.is_ascii()).count() as u64);
        let long: u64 = plain.filter(|plain| *plain > super::LONG_RUN).sum();
        let ascii = text.chars().filter(char::is_ascii).count() as u64;
        (ascii - long).div_ceil(4) + (text.chars().count() as u64 - ascii) + (long * 10).div_ceil(14)
    }

    #[test]
    fn runs_are_found_wherever_they_stand() {
        for before in [0, 1, 63, 199, 200, 201, 202, 400, 403] {
            for run in [0, 1, 199, 200, 201, 202, 399, 400, 401, 402, 900] {
                for wide in ["", "é"] {
                    let text = format!("{}\n{}{wide} {}", "w ".repeat(before), "x".repeat(run), "y".repeat(before));
                    assert_eq!(super::text(&text), slowly(&text), "{before} {run} {wide:?}");
                }
            }
        }
    }
}
