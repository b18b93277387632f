//! The streamGenerateContent wire of Google.

mod decode;
mod encode;
mod schema;

use super::Request;
use super::codec::{Codec, CodecSettings, Decoder, Encoded};

const NAME: &str = "gemini";

/// See the module.
pub struct Gemini;

impl Codec for Gemini {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, request: &Request, settings: &CodecSettings) -> Encoded {
        let model = request.model.strip_prefix("models/").unwrap_or(&request.model);
        // The id is part of the path: nothing in it may end that.
        let model: String = url::form_urlencoded::byte_serialize(model.as_bytes()).collect();
        Encoded {
            version: "/v1beta",
            path: format!("/models/{model}:streamGenerateContent"),
            query: "alt=sse",
            headers: Vec::new(),
            body: encode::body(request, settings),
        }
    }

    fn listing(&self) -> Encoded {
        Encoded {
            version: "/v1beta",
            path: "/models".to_owned(),
            query: "pageSize=1000",
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    fn decoder(&self, model: &str) -> Box<dyn Decoder> {
        Box::new(decode::Decode::new(model))
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-goog-api-key", key.to_string())
    }
}
