//! `…/responses/compact`: the server gives back the items that stand for a conversation from now on.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{NAME, decode, encode};
use crate::message::Wire;
use crate::provider::codec::{CodecSettings, Compaction, Encoded, malformed, object};
use crate::provider::{Compacted, Error, Request};

impl Compaction for super::OpenaiResponses {
    fn encode(&self, request: &Request, settings: &CodecSettings) -> Encoded {
        let mut head = object(json!({ "model": request.model }));
        if !request.system.is_empty() {
            head.insert("instructions".into(), json!(&*request.system));
        }
        if !request.cache_key.is_empty() {
            head.insert("prompt_cache_key".into(), json!(request.cache_key));
        }
        Encoded {
            version: "/v1",
            path: "/responses/compact".to_string(),
            query: "",
            headers: Vec::new(),
            body: encode::input(request, settings).finish(&head, "input"),
        }
    }

    fn decode(&self, model: &str, body: &[u8]) -> Result<Compacted, Error> {
        #[derive(Deserialize)]
        struct Answer {
            output: Vec<Value>,
            #[serde(default)]
            usage: Value,
        }
        let answer: Answer = serde_json::from_slice(body)
            .map_err(|error| malformed(NAME, format!("cannot read what it compacted: {error}")))?;
        if answer.output.is_empty() {
            return Err(malformed(NAME, "it compacted the conversation into nothing"));
        }
        let data = json!({ "items": answer.output });
        let wire = Wire { wire: NAME.to_string(), model: model.to_string(), data };
        Ok(Compacted { wire, usage: decode::usage(&answer.usage).unwrap_or_default() })
    }
}
