//! Estimates how many tokens something will cost before the provider has counted it.

use super::{Block, Content, Message};

/// Tokens that an image counts for.
pub const IMAGE: u64 = 2_000;

/// Runs of at least this many bytes without white space read as base64 and cost far more than prose.
const LONG_RUN: u64 = 200;

/// Estimates the tokens of a text: ASCII bytes / 4 plus one for each other character, rounded up; unbroken ASCII runs of
/// over 200 bytes count one token for 1.4 characters.
pub fn text(text: &str) -> u64 {
    let (mut ascii, mut wide, mut long) = (0u64, 0u64, 0u64);
    for word in text.as_bytes().split(|byte| byte.is_ascii_whitespace()) {
        let plain = word.iter().filter(|byte| byte.is_ascii()).count() as u64;
        // Continuation bytes are 10xxxxxx; every other non-ASCII byte starts one character.
        wide += word.iter().filter(|byte| **byte >= 0xC0).count() as u64;
        if plain > LONG_RUN {
            long += plain;
        } else {
            ascii += plain;
        }
    }
    let spaces = text.len() as u64 - (ascii + long) - text.bytes().filter(|byte| !byte.is_ascii()).count() as u64;
    (ascii + spaces).div_ceil(4) + wide + (long * 10).div_ceil(14)
}

/// Estimates the tokens of one block.
pub fn block(block: &Block) -> u64 {
    match block {
        Block::Text { text: body, .. } | Block::Thinking { text: body, .. } => text(body),
        Block::ToolCall(call) => text(&call.name) + text(&call.input.to_string()),
        Block::ToolResult(result) => result
            .content
            .iter()
            .map(|part| match part {
                Content::Text { text: body } => text(body),
                Content::Media(_) => IMAGE,
            })
            .sum(),
        Block::Media(_) => IMAGE,
    }
}

/// Estimates the tokens of a message; what the model does not see counts nothing.
pub fn message(message: &Message) -> u64 {
    if !message.agent_visible {
        return 0;
    }
    message.blocks.iter().map(block).sum()
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
}
