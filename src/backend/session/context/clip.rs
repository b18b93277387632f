//! Blocks that read as head, marker, tail; and the marker of a result that was cleared.

use std::path::Path;

use super::items::{Estimate, Items};
use crate::message::{Block, Content, Media, tokens};
use crate::session::entry::ClippedBlock;

/// How the marker of a cleared result begins.
pub const CLEARED: &str = "[Old tool result content cleared]";

/// A block as it reads when it is clipped, and where it goes.
pub(super) struct Cut {
    item: usize,
    pub(super) at: usize,
    pub(super) block: Block,
}

impl Items {
    /// Cuts the middle out of a block's text; a cut that keeps nothing takes images out, too.
    pub(super) fn clip(&mut self, clipped: &ClippedBlock) {
        let Some(Cut { item: index, at, block }) = self.cut(clipped) else { return };
        if let Block::ToolResult(result) = &block
            && let Some(call) = self.calls.get_mut(&result.id)
        {
            call.tokens = Estimate::default();
        }
        let gone = tokens::load_of(&self.list[index].shown.blocks[at]);
        self.edit(index, |item| item.put(at, block, gone));
    }

    /// What clipping a block comes to; none when it leaves the context as it is.
    pub(super) fn cut(&self, clipped: &ClippedBlock) -> Option<Cut> {
        let index = self.list.iter().rposition(|item| item.seq == clipped.seq)?;
        let item = &self.list[index];
        let at = match &item.kept {
            Some(kept) => kept.iter().position(|original| *original == clipped.block),
            None => Some(clipped.block),
        };
        let at = at.filter(|at| *at < item.shown.blocks.len())?;
        if let Block::ToolResult(result) = &item.shown.blocks[at]
            && self.calls.get(&result.id).is_some_and(|call| call.replaced)
        {
            return None;
        }
        let nothing_kept = clipped.head == 0 && clipped.tail == 0;
        let original = &item.original.blocks[clipped.block];
        let block = match original {
            // Reasoning is signed, and arguments are JSON: neither may be cut.
            Block::Thinking { .. } | Block::ToolCall(_) => return None,
            // Half an image is useless: it leaves, or it stays.
            Block::Media(media) if nothing_kept => Block::text(left_out(media)),
            Block::Media(_) => return None,
            Block::Text { text, .. } => Block::Text { text: head_and_tail(text, clipped), wire: None },
            Block::ToolResult(result) => {
                let mut result = result.clone();
                let text = head_and_tail(&result.text(), clipped);
                if nothing_kept {
                    let media = result.content.iter().filter_map(|part| match part {
                        Content::Media(media) => Some(left_out(media)),
                        Content::Text { .. } => None,
                    });
                    let lines: Vec<String> = std::iter::once(text).chain(media).collect();
                    result.content = vec![Content::text(lines.join("\n").trim_start())];
                } else {
                    result.content.retain(|part| matches!(part, Content::Media(_)));
                    result.content.insert(0, Content::text(text));
                }
                Block::ToolResult(result)
            }
        };
        Some(Cut { item: index, at, block })
    }
}

/// What a cleared result reads as: the words that models and scripts know, then where it is and how long it was.
pub(super) fn cleared_marker(bytes: usize, saved: Option<&Path>) -> String {
    match saved {
        Some(path) => format!("{CLEARED} {bytes} bytes, saved in {}", path.display()),
        None => format!("{CLEARED} {bytes} bytes"),
    }
}

fn left_out(media: &Media) -> String {
    format!("[{} of {} bytes left out]", media.media_type, media.bytes)
}

fn head_and_tail(text: &str, clipped: &ClippedBlock) -> String {
    let head = text.floor_char_boundary(clipped.head);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(clipped.tail));
    if head >= tail {
        return text.to_owned();
    }
    let saved = match &clipped.persisted {
        Some(path) => format!("; the full text is in {}", path.display()),
        None => String::new(),
    };
    format!("{}\n[{} bytes left out{saved}]\n{}", &text[..head], tail - head, &text[tail..])
}
