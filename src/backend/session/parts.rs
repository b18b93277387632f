//! What has arrived of a reply that has no message of its own yet.

use crate::message::{Block, Message, StopReason};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parts {
    text: String,
    thinking: String,
}

impl Parts {
    pub(super) fn add(&mut self, text: &str, thinking: &str) {
        self.text.push_str(text);
        self.thinking.push_str(thinking);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Parts::default();
    }

    /// What never got its message, as an interrupted reply; nothing of it is left here.
    pub(super) fn reply(&mut self) -> Option<Message> {
        let Parts { text, thinking } = std::mem::take(self);
        // Reasoning alone, without its signature, is nothing that could be sent.
        let agent_visible = !text.is_empty();
        let thinking = (!thinking.is_empty()).then_some(Block::Thinking { text: thinking, wire: None });
        let text = (!text.is_empty()).then(|| Block::text(text));
        let blocks: Vec<Block> = thinking.into_iter().chain(text).collect();
        if blocks.is_empty() {
            return None;
        }
        Some(Message { stop: Some(StopReason::Interrupted), agent_visible, ..Message::reply(blocks) })
    }
}
