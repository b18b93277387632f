//! The Responses wire of OpenAI.

mod compaction;
mod decode;
mod encode;

use super::Request;
use super::codec::{Codec, CodecSettings, Compaction, Decoder, Encoded, bearer};

const NAME: &str = "openai";

/// See the module.
pub struct OpenaiResponses;

impl Codec for OpenaiResponses {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, request: &Request, settings: &CodecSettings) -> Encoded {
        Encoded::v1("/responses", encode::body(request, settings))
    }

    fn decoder(&self, model: &str) -> Box<dyn Decoder> {
        Box::new(decode::Decode::new(model))
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        bearer(key)
    }

    fn compaction(&self) -> Option<&'static dyn Compaction> {
        Some(&OpenaiResponses)
    }
}
