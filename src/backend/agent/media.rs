//! Base64 of the images and documents in the conversation, made once each.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;

use crate::message::{BlobId, Block, Content, Media, Message};
use crate::session::store::Store;

/// Caches what was encoded, since every request of the session sends it again.
#[derive(Debug, Default)]
pub(super) struct MediaCache {
    encoded: HashMap<BlobId, Arc<str>>,
}

impl MediaCache {
    /// Encodes what the messages mention. A blob that cannot be read is left out: the codec puts a note in its place.
    pub(super) fn of(&mut self, messages: &[Arc<Message>], store: &Store) -> HashMap<BlobId, Arc<str>> {
        let mut needed = HashMap::new();
        for media in messages.iter().flat_map(|message| message.blocks.iter()).flat_map(mentioned) {
            if let Some(text) = self.encode(media, store) {
                needed.insert(media.blob.clone(), text);
            }
        }
        // What left the context will not come back soon.
        self.encoded.retain(|blob, _| needed.contains_key(blob));
        needed
    }

    fn encode(&mut self, media: &Media, store: &Store) -> Option<Arc<str>> {
        if let Some(text) = self.encoded.get(&media.blob) {
            return Some(text.clone());
        }
        let bytes = store.blob(&media.blob).ok()?;
        let text: Arc<str> = base64::engine::general_purpose::STANDARD.encode(bytes).into();
        self.encoded.insert(media.blob.clone(), text.clone());
        Some(text)
    }
}

fn mentioned(block: &Block) -> Vec<&Media> {
    match block {
        Block::Media(media) => vec![media],
        Block::ToolResult(result) => result
            .content
            .iter()
            .filter_map(|part| match part {
                Content::Media(media) => Some(media),
                Content::Text { .. } => None,
            })
            .collect(),
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolCall(_) => Vec::new(),
    }
}
