//! What an endpoint says of its own models. One reader for every wire, since gateways answer in each other's shapes.

use serde_json::Value;

/// Words in the ids of models that answer no prompt.
const OTHER_WORK: [&str; 13] = [
    "embed",
    "whisper",
    "tts",
    "dall-e",
    "moderation",
    "image",
    "realtime",
    "audio",
    "transcribe",
    "sora",
    "davinci",
    "babbage",
    "rerank",
];

/// One model of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub id: String,
    /// Tokens that fit, where the endpoint says so.
    pub window: Option<u64>,
    /// Most tokens of one answer, where the endpoint says so.
    pub max_output: Option<u32>,
}

/// Reads the answer to `GET …/models`, without models that answer no prompt. What cannot be read is left out.
pub fn read(body: &Value) -> Vec<Offered> {
    let rows = ["data", "models"].iter().find_map(|name| body.get(name)?.as_array()).or_else(|| body.as_array());
    rows.into_iter().flatten().filter_map(offered).collect()
}

fn offered(row: &Value) -> Option<Offered> {
    let id = ["id", "name", "model"].iter().find_map(|name| row.get(name)?.as_str())?;
    let id = id.strip_prefix("models/").unwrap_or(id);
    let ways = row.get("supportedGenerationMethods").and_then(Value::as_array);
    let answers = ways.is_none_or(|ways| ways.iter().any(|way| way == "generateContent"));
    let lower = id.to_ascii_lowercase();
    if !answers || id.is_empty() || OTHER_WORK.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let number = |places: &[&str]| places.iter().find_map(|place| row.pointer(place)?.as_u64()).filter(|n| *n > 0);
    let window = number(&[
        "/max_model_len",
        "/context_length",
        "/context_window",
        "/max_input_tokens",
        "/inputTokenLimit",
        "/loaded_context_length",
        "/meta/n_ctx",
    ]);
    let max_output =
        number(&["/max_output_tokens", "/outputTokenLimit", "/top_provider/max_completion_tokens", "/max_tokens"]);
    Some(Offered { id: id.to_owned(), window, max_output: max_output.and_then(|tokens| u32::try_from(tokens).ok()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_every_wire_are_read() {
        let check = |body: Value, want: &[(&str, Option<u64>, Option<u32>)]| {
            let found = read(&body);
            let found: Vec<_> = found.iter().map(|one| (one.id.as_str(), one.window, one.max_output)).collect();
            assert_eq!(found, want, "{body}");
        };
        check(
            json!({"data": [{"type": "model", "id": "claude-next", "max_input_tokens": 1_000_000, "max_tokens": 64_000}]}),
            &[("claude-next", Some(1_000_000), Some(64_000))],
        );
        check(
            json!({"object": "list", "data": [{"id": "gpt-9"}, {"id": "text-embedding-3-large"}, {"id": "tts-1"}]}),
            &[("gpt-9", None, None)],
        );
        check(
            json!({"models": [
                {"name": "models/gemini-9", "inputTokenLimit": 2_000_000, "outputTokenLimit": 65_536,
                 "supportedGenerationMethods": ["generateContent", "countTokens"]},
                {"name": "models/aqa", "supportedGenerationMethods": ["generateAnswer"]},
            ]}),
            &[("gemini-9", Some(2_000_000), Some(65_536))],
        );
        check(
            json!({"data": [{"id": "v/m", "context_length": 131_072, "top_provider": {"max_completion_tokens": 8_192}}]}),
            &[("v/m", Some(131_072), Some(8_192))],
        );
        check(json!({"data": [{"id": "q", "max_model_len": 40_960}]}), &[("q", Some(40_960), None)]);
        check(json!([{"id": "bare"}]), &[("bare", None, None)]);
        check(json!({"error": "no"}), &[]);
    }
}
