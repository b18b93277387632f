//! What of an entry can be found again, in words.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{self, Attachment, Block, CallId, Message};
use crate::session::entry::EntryKind;

// Who said it, and how. No doc comment: it would be sent with the schema of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Prompt,
    Reply,
    Call,
    Result,
    Summary,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Prompt => "prompt",
            Kind::Reply => "reply",
            Kind::Call => "call",
            Kind::Result => "result",
            Kind::Summary => "summary",
        }
    }

    /// What the user said counts most, and what was said before what was printed.
    pub(super) fn weight(self) -> f32 {
        match self {
            Kind::Prompt => 1.3,
            Kind::Reply => 1.0,
            Kind::Summary | Kind::Result => 0.9,
            Kind::Call => 0.8,
        }
    }
}

/// A text in an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    pub kind: Kind,
    /// Of a call and of a result.
    pub call: Option<CallId>,
    /// Of a call; a result does not know it.
    pub tool: Option<String>,
    pub text: String,
}

impl Piece {
    fn of(kind: Kind, text: String) -> Piece {
        Piece { kind, call: None, tool: None, text }
    }
}

/// What an entry says; neither thoughts nor what the program itself tells the model again and again.
pub fn pieces(entry: &EntryKind) -> Vec<Piece> {
    let mut pieces = match entry {
        EntryKind::Message { message } => of_message(message),
        EntryKind::ToolResultsArchived { digest, .. } => vec![Piece::of(Kind::Summary, digest.text())],
        EntryKind::CompactBoundary(boundary) => vec![Piece::of(Kind::Summary, boundary.told())],
        _ => Vec::new(),
    };
    pieces.retain(|piece| !piece.text.trim().is_empty());
    pieces
}

fn of_message(message: &Message) -> Vec<Piece> {
    let kind = match message.kind {
        message::Kind::Prompt | message::Kind::Attachment(Attachment::Review) => Kind::Prompt,
        message::Kind::Reply => Kind::Reply,
        message::Kind::ToolResult | message::Kind::ToolResultArchived => Kind::Result,
        message::Kind::Attachment(Attachment::Shell | Attachment::Task | Attachment::File | Attachment::Hook) => {
            Kind::Result
        }
        message::Kind::ToolSummary | message::Kind::CompactSummary => Kind::Summary,
        message::Kind::Skill | message::Kind::Notice | message::Kind::Attachment(_) => return Vec::new(),
    };
    let piece = |block: &Block| match block {
        Block::Text { .. } if matches!(message.kind, message::Kind::Attachment(_)) => {
            Some(Piece::of(kind, message.attached()))
        }
        Block::Text { text, .. } => Some(Piece::of(kind, text.clone())),
        Block::ToolCall(call) => {
            let text = call.invalid.clone().unwrap_or_else(|| arguments(&call.input));
            let (call, tool) = (Some(call.id.clone()), Some(call.name.clone()));
            Some(Piece { kind: Kind::Call, call, tool, text })
        }
        Block::ToolResult(result) => {
            Some(Piece { call: Some(result.id.clone()), ..Piece::of(Kind::Result, result.text()) })
        }
        Block::Thinking { .. } | Block::Media(_) => None,
    };
    message.blocks.iter().filter_map(piece).collect()
}

/// The arguments of a call, a line each.
fn arguments(input: &Value) -> String {
    let Some(object) = input.as_object() else { return input.to_string() };
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    object.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The tool of a call, by the reply that made it, which is shortly before its result.
pub(super) fn tool_of(log: &mut File, result: u64, call: &CallId) -> io::Result<Option<String>> {
    let mark = format!("\"id\":\"{call}\",\"name\":\"");
    for reach in [4 << 10, 64 << 10, 4 << 20] {
        let from = result.saturating_sub(reach);
        let mut bytes = Vec::new();
        log.seek(SeekFrom::Start(from))?;
        log.by_ref().take(result - from).read_to_end(&mut bytes)?;
        if let Some(at) = bytes.windows(mark.len()).rposition(|window| window == mark.as_bytes()) {
            let name: Vec<u8> = bytes[at + mark.len()..].iter().copied().take_while(|byte| *byte != b'"').collect();
            return Ok(String::from_utf8(name).ok());
        }
        if from == 0 {
            break;
        }
    }
    Ok(None)
}

/// The text around a place in which a key at that place is whole: its line, and the lines that a longer one spans.
pub(super) fn around(text: &str, range: Range<usize>) -> &str {
    /// Bytes on each side: of several lines, and of one.
    const LINES: usize = 8 << 10;
    const LINE: usize = 64 << 10;
    let (start, end) = (range.start.saturating_sub(LINES), (range.end + LINES).min(text.len()));
    let bytes = text.as_bytes();
    let line = |bytes: &[u8]| bytes.iter().take(LINE).position(|byte| *byte == b'\n').unwrap_or(bytes.len().min(LINE));
    let mut end = end + line(&bytes[end..]);
    let before = bytes[..start].iter().rev().take(LINE).position(|byte| *byte == b'\n');
    let mut start = start - before.unwrap_or(start.min(LINE));
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    &text[start..end]
}

/// A place in its surroundings: one line, cut between words.
pub(super) fn excerpt(text: &str, range: Range<usize>, width: usize) -> String {
    let room = width.saturating_sub(range.len());
    let start = range.start.saturating_sub(room / 3);
    let start = (start..=range.start).find(|at| text.is_char_boundary(*at)).unwrap_or(range.start);
    let head = &text[start..range.start];
    // Arguments are JSON, with few spaces or none: what surrounds a value ends a word, too.
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | ',' | ';' | '{' | '}' | '[' | ']' | '(' | ')');
    let start = match (head.rfind('\n'), head.find(ends)) {
        (Some(line), _) => start + line + 1,
        (None, Some(word)) if start > 0 => start + word + 1,
        _ => start,
    };
    let end = (start + width).max(range.end).min(text.len());
    let end = (range.end..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(range.end);
    let tail = &text[range.end..end];
    let end = match tail.rfind(ends) {
        Some(word) if end < text.len() => range.end + word,
        _ => end,
    };
    let words: Vec<&str> = text[start..end].split_whitespace().collect();
    let (first, last) = (if start > 0 { "…" } else { "" }, if end < text.trim_end().len() { "…" } else { "" });
    format!("{first}{}{last}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_cut_between_words() {
        let text = "one two three\nfour five six seven eight nine ten";
        for (word, width, want) in [
            ("six", 100, "…four five six seven eight nine ten"),
            ("six", 12, "…six seven…"),
            ("one", 8, "one two…"),
            ("ten", 6, "…ten"),
        ] {
            let at = text.find(word).unwrap();
            assert_eq!(excerpt(text, at..at + word.len(), width), want, "{word} {width}");
        }
        // What is before a word in the same value stays, however far the last space is.
        let todos = r#"{"a":"b c","status":"in_progress_or_so"},{"activeForm":"Replaying","content":"Replay the capture","x":1}"#;
        let at = todos.find("capture").unwrap();
        assert!(excerpt(todos, at..at + 7, 150).contains("Replay the capture"), "{}", excerpt(todos, at..at + 7, 150));
        // Wherever it is cut, characters stay whole.
        let wide = "日本語のテキスト".repeat(40);
        for width in 0..60 {
            excerpt(&wide, 300..303, width);
            around(&wide, 300 + 3 * width..303 + 3 * width);
        }
    }
}
