//! The Messages wire: Anthropic and compatible gateways.

mod decode;
mod encode;

use super::Request;
use super::codec::{Codec, CodecSettings, Decoder, Encoded};

const NAME: &str = "anthropic";

/// See the module.
pub struct Anthropic;

impl Codec for Anthropic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, request: &Request, settings: &CodecSettings) -> Encoded {
        Encoded {
            version: "/v1",
            path: "/messages".to_string(),
            query: "",
            headers: vec![("anthropic-version", "2023-06-01".to_string())],
            body: encode::body(request, settings),
        }
    }

    fn decoder(&self, model: &str) -> Box<dyn Decoder> {
        Box::new(decode::Decode::new(model))
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_string())
    }
}
