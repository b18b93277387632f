//! The Chat Completions wire: whatever calls itself compatible with it.

mod decode;
mod encode;

use super::Request;
use super::codec::{Codec, CodecSettings, Decoder, Encoded, bearer};

const NAME: &str = "openai-chat";

/// See the module.
pub struct OpenaiChat;

impl Codec for OpenaiChat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, request: &Request, settings: &CodecSettings) -> Encoded {
        Encoded::v1("/chat/completions", encode::body(request, settings))
    }

    fn decoder(&self, model: &str) -> Box<dyn Decoder> {
        Box::new(decode::Decode::new(model))
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        bearer(key)
    }
}
