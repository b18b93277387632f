//! The Messages wire: Anthropic and compatible gateways.

mod decode;
mod encode;

use super::codec::{Codec, CodecSettings, Decoder, Encoded};
use super::{Request, Thinking};

const NAME: &str = "anthropic";
const VERSION: &str = "2023-06-01";

/// See the module.
pub struct Anthropic;

impl Codec for Anthropic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, request: &Request, settings: &CodecSettings) -> Encoded {
        let mut headers = vec![("anthropic-version", VERSION.to_string())];
        if matches!(request.thinking, Thinking::Interleaved(_)) {
            headers.push(("anthropic-beta", "interleaved-thinking-2025-05-14".to_string()));
        }
        Encoded {
            version: "/v1",
            path: "/messages".to_string(),
            query: "",
            headers,
            body: encode::body(request, settings),
        }
    }

    fn listing(&self) -> Encoded {
        Encoded {
            version: "/v1",
            path: "/models".to_owned(),
            query: "limit=1000",
            headers: vec![("anthropic-version", VERSION.to_owned())],
            body: Vec::new(),
        }
    }

    fn decoder(&self, model: &str) -> Box<dyn Decoder> {
        Box::new(decode::Decode::new(model))
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_string())
    }
}
