//! Messages as a provider's cache sees them: pieces of bytes in the order in which the model reads them.

use std::borrow::Cow;

use crate::message::tokens;
use crate::message::{Attachment, Block, Content, Kind, Message, Role, Wire};
use crate::stdx::hash;

/// What a piece belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Tools,
    System,
    Params,
    Opening,
    Memory,
    Skills,
    Message,
}

/// One piece of a message.
pub(super) struct Piece<'a> {
    pub(super) part: Part,
    /// Its block of the message.
    pub(super) block: u16,
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) tokens: u64,
}

/// How a memory file begins, as `memory::render` writes it.
const MEMORY: &str = "Contents of ";

impl Piece<'_> {
    pub(super) fn hash(&self, role: Role) -> u64 {
        hash::short(&[if role == Role::User { b"u" } else { b"a" }, &self.bytes])
    }

    /// The memory file that it holds.
    pub(super) fn path(&self) -> Option<&str> {
        let text = str::from_utf8(&self.bytes).ok()?;
        let from = text.find(MEMORY)? + MEMORY.len();
        text[from..].split_once(":\n").map(|(path, _)| path)
    }
}

/// The pieces of a message: its blocks, and of the one that opens a conversation its memory files.
pub(super) fn pieces(message: &Message) -> Vec<Piece<'_>> {
    let part = match message.kind {
        Kind::Attachment(Attachment::Opening { .. }) => Part::Opening,
        Kind::Attachment(Attachment::Memory) => Part::Memory,
        Kind::Attachment(Attachment::SkillList) => Part::Skills,
        _ => Part::Message,
    };
    let mut pieces = Vec::with_capacity(message.blocks.len());
    for (at, block) in message.blocks.iter().enumerate() {
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        match block {
            Block::Text { text, wire: None } => {
                for (part, text) in split(text, part) {
                    let bytes = Cow::Borrowed(text.as_bytes());
                    pieces.push(Piece { part, block: at, bytes, tokens: tokens::text(text) });
                }
            }
            block => {
                let tokens = tokens::load_of(block).total();
                pieces.push(Piece { part, block: at, bytes: Cow::Owned(written(block)), tokens });
            }
        }
    }
    pieces
}

/// The text that opens a conversation, cut where a memory file begins.
fn split(text: &str, part: Part) -> Vec<(Part, &str)> {
    if part != Part::Opening {
        return vec![(part, text)];
    }
    let mut cuts: Vec<usize> = text.match_indices(MEMORY).map(|(at, _)| at).collect();
    cuts.retain(|at| text[..*at].ends_with("\n\n"));
    let ends = cuts.iter().copied().skip(1).chain([text.len()]);
    let files = cuts.iter().zip(ends).map(|(from, to)| (Part::Memory, &text[*from..to]));
    let first = cuts.first().copied().unwrap_or(text.len());
    std::iter::once((Part::Opening, &text[..first])).chain(files).collect()
}

fn written(block: &Block) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |text: &str| {
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    };
    let json = |wire: &Option<Wire>| wire.as_ref().map(|wire| wire.data.to_string()).unwrap_or_default();
    match block {
        Block::Text { text, wire } | Block::Thinking { text, wire } => {
            put(text);
            put(&json(wire));
        }
        Block::ToolCall(call) => {
            put(call.id.as_str());
            put(&call.name);
            put(&call.input.to_string());
            put(&json(&call.wire));
        }
        Block::ToolResult(result) => {
            put(result.id.as_str());
            put(if result.outcome == crate::message::Outcome::Ok { "" } else { "error" });
            for content in &result.content {
                match content {
                    Content::Text { text } => put(text),
                    Content::Media(media) => put(&media.blob.0),
                }
            }
        }
        Block::Media(media) => put(&media.blob.0),
    }
    out
}
