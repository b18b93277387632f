//! What a refusal means, in the shape of any vendor.

use std::time::Duration;

use serde_json::Value;

use super::Error;
use super::codec::malformed;
use crate::stdx::address::bare;

/// Longest part of a server's text that is shown.
const SHOWN: usize = 600;

/// A failure as a server reported it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Failure {
    /// HTTP status, or the one that the report names.
    pub(super) status: Option<u16>,
    /// The vendor's own words for it: type, code, status.
    pub(super) kinds: Vec<String>,
    pub(super) message: String,
    pub(super) tokens: Option<u64>,
    pub(super) limit: Option<u64>,
    pub(super) retry_after: Option<Duration>,
}

impl Failure {
    /// Finds the report in a JSON value: `{"error": {…}}`, `{"error": "…"}`, `{"type": "error", …}`, a list of those, and the
    /// flat forms of FastAPI (`detail`) and older servers (`object: "error"`). None: this reports no failure.
    pub(super) fn find(value: &Value) -> Option<Failure> {
        match value {
            Value::Array(items) => items.first().and_then(Failure::find),
            Value::Object(map) => match map.get("error") {
                Some(Value::Object(_)) => Some(Failure::read(&map["error"])),
                Some(Value::String(message)) => {
                    let mut failure = Failure::read(value);
                    // Some put a code into `error` and the text beside it.
                    if failure.message.is_empty() {
                        failure.message = message.clone();
                    } else {
                        failure.kinds.push(message.clone());
                    }
                    Some(failure)
                }
                _ => {
                    let says_error = ["type", "object"]
                        .iter()
                        .any(|key| map.get(*key).and_then(Value::as_str).is_some_and(|kind| kind == "error"));
                    (says_error || map.contains_key("detail")).then(|| Failure::read(value))
                }
            },
            _ => None,
        }
    }

    /// Reads what is known to be a report, whatever its shape.
    pub(super) fn reported(value: &Value) -> Failure {
        Failure::find(value).unwrap_or_else(|| {
            let failure = Failure::read(value);
            if failure.message.is_empty() && !value.is_null() {
                return Failure { message: value.to_string(), ..failure };
            }
            failure
        })
    }

    fn read(value: &Value) -> Failure {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let mut failure = Failure::default();
        for key in ["type", "code", "status", "reason"] {
            match value.get(key) {
                Some(Value::String(kind)) if kind != "error" => failure.kinds.push(kind.clone()),
                Some(Value::Number(number)) => {
                    failure.status =
                        number.as_u64().and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n));
                }
                _ => {}
            }
        }
        failure.message = match (text("message"), value.get("detail")) {
            (Some(message), _) => message.to_string(),
            (None, Some(Value::String(detail))) => detail.clone(),
            (None, Some(detail)) => detail.to_string(),
            (None, None) => String::new(),
        };
        failure.tokens = value.get("n_prompt_tokens").and_then(Value::as_u64);
        failure.limit = value.get("n_ctx").and_then(Value::as_u64);
        if let Some(Value::Array(details)) = value.get("details") {
            for detail in details {
                if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                    failure.retry_after = duration(delay);
                }
                if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                    failure.kinds.push(reason.to_string());
                }
                // Gemini says `RESOURCE_EXHAUSTED` of a minute and of a day.
                let violations = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
                let mut ids = violations.filter_map(|violation| violation.get("quotaId")?.as_str());
                if ids.any(|id| id.contains("PerDay")) {
                    failure.kinds.push("insufficient_quota".to_string());
                }
            }
        }
        // OpenRouter hides the vendor's own report in a string.
        if let Some(raw) = value.pointer("/metadata/raw").and_then(Value::as_str) {
            failure.message = format!("{}: {raw}", failure.message);
        }
        failure
    }

    /// Splits by who must act.
    pub(super) fn into_error(self, wire: &'static str) -> Error {
        let kind = |word: &str| self.kinds.iter().any(|kind| kind.eq_ignore_ascii_case(word));
        let text = self.message.to_lowercase();
        let status = self.status.unwrap_or_else(|| implied_status(&kind));
        let limited = status == 429 || kind("rate_limit_error") || kind("rate_limit_exceeded");
        let overflows = kind("context_length_exceeded")
            || kind("exceed_context_size_error")
            || kind("request_too_large")
            || status == 413
            || says_too_long(&text);
        let message = self.shown();
        if overflows && !limited {
            let (tokens, limit) = figures(&text);
            return Error::ContextTooLong { tokens: self.tokens.or(tokens), limit: self.limit.or(limit) };
        }
        if status == 402 || SPENT.iter().any(|word| kind(word)) || says_spent(&text) {
            return Error::Quota { status, message };
        }
        if kind("api_key_invalid") || kind("invalid_api_key") || text.contains("api key not valid") {
            return Error::Auth { status, message, hint: String::new() };
        }
        if kind("model_not_found") || kind("model_not_found_error") {
            return Error::NotFound { status, message, hint: String::new() };
        }
        match status {
            _ if limited => {
                let retry_after = self.retry_after.or_else(|| asked_in_text(&text));
                Error::RateLimited { message, retry_after }
            }
            401 | 403 => Error::Auth { status, message, hint: String::new() },
            404 => Error::NotFound { status, message, hint: String::new() },
            408 | 409 | 425 | 500..=599 => Error::Server { status, message, retry_after: self.retry_after },
            400..=499 if refuses_tools(&text) => {
                let message =
                    format!("{message}; cocode needs a model that can call tools: choose another with /model");
                Error::BadRequest { status, message }
            }
            400..=499 => Error::BadRequest { status, message },
            _ => malformed(wire, format!("status {status}: {message}")),
        }
    }

    fn shown(&self) -> String {
        let text = if self.message.is_empty() { self.kinds.join(", ") } else { self.message.clone() };
        clip(&text)
    }
}

/// Reads a refusal that came with an HTTP status. Header names in lower case.
pub(super) fn classify(wire: &'static str, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Error {
    let text = String::from_utf8_lossy(body);
    let mut failure = match serde_json::from_str::<Value>(&text) {
        Ok(value) => Failure::reported(&value),
        Err(_) => Failure { message: page_text(&text), ..Failure::default() },
    };
    if status >= 400 {
        failure.status = Some(status);
    } else if failure.status.is_none() && failure.kinds.is_empty() {
        // A success that says nothing but that it failed.
        failure.status = Some(500);
    }
    if (300..400).contains(&status) {
        let target = headers.iter().find(|(name, _)| *name == "location").map_or("elsewhere", |(_, value)| value);
        return malformed(wire, format!("it redirects ({status}) to {}", clip(target)));
    }
    failure.retry_after = retry_after(headers).or(failure.retry_after);
    failure.into_error(wire)
}

/// The status that a report without one stands for.
fn implied_status(kind: &impl Fn(&str) -> bool) -> u16 {
    const KINDS: &[(&str, u16)] = &[
        ("overloaded_error", 529),
        ("rate_limit_error", 429),
        ("rate_limit_exceeded", 429),
        ("RESOURCE_EXHAUSTED", 429),
        ("authentication_error", 401),
        ("UNAUTHENTICATED", 401),
        ("permission_error", 403),
        ("PERMISSION_DENIED", 403),
        ("not_found_error", 404),
        ("NOT_FOUND", 404),
        ("invalid_request_error", 400),
        ("invalid_prompt", 400),
        ("INVALID_ARGUMENT", 400),
        ("FAILED_PRECONDITION", 400),
        ("BadRequestError", 400),
        ("timeout_error", 504),
    ];
    KINDS.iter().find(|(word, _)| kind(word)).map_or(500, |(_, status)| *status)
}

/// Vendors' words for an account that has nothing left.
const SPENT: [&str; 7] = [
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "exceeded_current_quota_error",
    "insufficient_credits",
    "Arrearage",
];

/// The same as a sentence, in lower case.
fn says_spent(text: &str) -> bool {
    const PHRASES: &[&str] = &[
        "credit balance is too low",
        "insufficient credits",
        "insufficient balance",
        "insufficient funds",
        "used all available credits",
        "doesn't have any credits",
        "monthly spending limit",
        "billing hard limit",
    ];
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Whether the text, in lower case, says that the model cannot call tools.
fn refuses_tools(text: &str) -> bool {
    const PHRASES: &[&str] = &[
        // Ollama; vLLM; OpenRouter; llama.cpp.
        "does not support tools",
        "--enable-auto-tool-choice",
        "no endpoints found that support tool use",
        "tools param requires --jinja",
        "function calling is not enabled",
        "does not support function calling",
    ];
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Whether the text, in lower case, says in some vendor's words that the conversation does not fit.
fn says_too_long(text: &str) -> bool {
    const PHRASES: &[&str] = &[
        "prompt is too long",
        "input is too long",
        "exceed context limit",
        "maximum context length",
        "context_length_exceeded",
        "exceeds the context window",
        "exceeds the context length",
        "exceed the context length",
        "exceeds context length",
        "context window exceeds",
        "context window is full",
        "exceeds the available context size",
        "exceeds the maximum number of tokens allowed",
        "maximum prompt length",
        "exceeds the maximum model length",
        "longer than the maximum model length",
        "is greater than the context length",
        "context length of only",
        "context the overflows",
        "exceeded model token limit",
        "exceeds the model's maximum context",
        "too large for model with",
        "reduce the length of the messages",
        "prompt token count of",
        "input length exceeds",
        "context size has been exceeded",
        "maximum allowed input length",
        "request exceeds the maximum size",
    ];
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Tokens and limit that a text names.
fn figures(text: &str) -> (Option<u64>, Option<u64>) {
    const BEFORE_LIMIT: &[&str] = &[
        "maximum context length is",
        "maximum context length of",
        "maximum prompt length is",
        "maximum model length of",
        "number of tokens allowed",
        "available context size",
        "context length of only",
        "context length is only",
        "token limit",
        "the limit of",
        "context limit",
        "model with",
        " > ",
    ];
    let numbers = numbers(text);
    // The one that a text names last wins: "exceed context limit: 190000 + 20000 > 200000".
    let marker = BEFORE_LIMIT.iter().rev().find_map(|marker| text.find(marker).map(|at| at + marker.len()));
    let limit = marker.and_then(|after| numbers.iter().position(|(at, _)| *at >= after));
    match (limit, numbers.len()) {
        (Some(limit), _) => {
            let others = || numbers.iter().enumerate().filter(|(at, _)| *at != limit).map(|(_, (_, number))| *number);
            let sum = text.contains(" + ").then(|| others().sum());
            (sum.or_else(|| others().max()), Some(numbers[limit].1))
        }
        (None, 2) => {
            let (a, b) = (numbers[0].1, numbers[1].1);
            (Some(a.max(b)), Some(a.min(b)))
        }
        (None, _) => (None, None),
    }
}

/// Positions and values of the whole numbers above 255; neither parts of names such as `gpt-4-32k` nor versions.
fn numbers(text: &str) -> Vec<(usize, u64)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len()
            && (bytes[at].is_ascii_digit()
                || (matches!(bytes[at], b',' | b'_') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)))
        {
            at += 1;
        }
        let named =
            start > 0 && (bytes[start - 1].is_ascii_alphanumeric() || matches!(bytes[start - 1], b'-' | b'.' | b'_'));
        let unit = bytes.get(at).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'-');
        let digits: String = text[start..at].chars().filter(char::is_ascii_digit).collect();
        if let (false, false, Ok(number)) = (named, unit, digits.parse::<u64>())
            && number > 255
        {
            found.push((start, number));
        }
    }
    found
}

/// The wait that a server asks for in its headers: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after(headers: &[(&str, &str)]) -> Option<Duration> {
    let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.trim());
    if let Some(millis) = header("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return seconds(millis / 1000.0);
    }
    let value = header("retry-after")?;
    if let Ok(number) = value.parse::<f64>() {
        return seconds(number);
    }
    // Without a clock of its own, this module counts from the server's.
    let until = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    let now = jiff::fmt::rfc2822::parse(header("date")?).ok()?.timestamp();
    seconds((until.as_second() - now.as_second()).max(0) as f64)
}

/// "… try again in 1.242s", "… in 20ms".
fn asked_in_text(text: &str) -> Option<Duration> {
    let rest = text.split("try again in ").nth(1)?;
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
    duration(rest[..end].trim_end_matches('.'))
}

/// `33s`, `1.5s`, `20ms`.
fn duration(text: &str) -> Option<Duration> {
    if let Some(millis) = text.strip_suffix("ms") {
        return seconds(millis.parse::<f64>().ok()? / 1000.0);
    }
    seconds(text.strip_suffix('s')?.parse().ok()?)
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// What a person can read of a body that is not JSON: the title of a page, else its beginning.
fn page_text(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if let (Some(start), Some(end)) = (lower.find("<title>"), lower.find("</title>"))
        && start + 7 <= end
    {
        return clip(&format!("a web page: {}", text[start + 7..end].trim()));
    }
    if lower.trim_start().starts_with('<') {
        return "a web page".to_string();
    }
    if text.trim().is_empty() { "no further explanation".to_string() } else { clip(text) }
}

/// One line of at most 600 bytes, without control characters and without what may be secret in addresses.
pub(super) fn clip(text: &str) -> String {
    // No more is shown, and a server's text may be of any length.
    let text = bare(&text[..text.floor_char_boundary(8 * SHOWN)]);
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() <= SHOWN {
        return line;
    }
    let end = (0..=SHOWN).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, headers: &[(&str, &str)], body: &str, want: Error) {
        assert_eq!(classify("openai", status, headers, body.as_bytes()), want, "{status} {body}");
    }

    fn too_long(status: u16, body: &str, tokens: Option<u64>, limit: Option<u64>) {
        check(status, &[], body, Error::ContextTooLong { tokens, limit });
    }

    #[test]
    fn overflow_in_everybodys_words() {
        let rows: &[(u16, &str, Option<u64>, Option<u64>)] = &[
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                Some(210_000),
                Some(200_000),
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
                Some(210_000),
                Some(200_000),
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                None,
                None,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                Some(130_001),
                Some(128_000),
            ),
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
                None,
                None,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
                Some(1_200_000),
                Some(1_048_576),
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
                Some(1_200_000),
                Some(1_048_576),
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
                Some(9000),
                Some(4096),
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}"#,
                None,
                None,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}"#,
                Some(5000),
                Some(4096),
            ),
            (
                400,
                r#"{"error":{"message":"'max_tokens' is too large: 8192. This model's maximum context length is 32768 tokens and your request has 30000 input tokens","type":"BadRequestError","code":400}}"#,
                Some(30_000),
                Some(32_768),
            ),
            (
                400,
                r#"{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough"}"#,
                Some(9000),
                Some(4096),
            ),
            (
                400,
                r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
                Some(537_812),
                Some(131_072),
            ),
            (
                400,
                r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error"}"#,
                Some(40_000),
                Some(32_768),
            ),
            (
                400,
                r#"{"error":{"message":"prompt token count of 70000 exceeds the limit of 64000","code":"model_max_prompt_tokens_exceeded"}}"#,
                Some(70_000),
                Some(64_000),
            ),
            (
                400,
                r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144","type":"invalid_request_error"}}"#,
                None,
                Some(262_144),
            ),
            (422, r#"{"detail":"gpt-4-32k: input is too long for requested model"}"#, None, None),
            (
                200,
                r#"{"error":{"message":"prompt is too long: 1,210,000 tokens > 1,000,000 maximum","type":"invalid_request_error"}}"#,
                Some(1_210_000),
                Some(1_000_000),
            ),
        ];
        for (status, body, tokens, limit) in rows {
            too_long(*status, body, *tokens, *limit);
        }
    }

    #[test]
    fn who_must_act() {
        let hint = String::new;
        let ms = Duration::from_millis;
        let limited = |message: &str, retry_after| Error::RateLimited { message: message.into(), retry_after };
        let server = |status, message: &str| Error::Server { status, message: message.into(), retry_after: None };
        let error = |kind: &str| format!(r#"{{"error":{{"type":"{kind}","message":"m"}}}}"#);
        check(429, &[("retry-after", "7")], &error("rate_limit_error"), limited("m", Some(ms(7000))));
        check(
            429,
            &[("retry-after-ms", "250"), ("retry-after", "7")],
            "",
            limited("no further explanation", Some(ms(250))),
        );
        check(
            429,
            &[("retry-after", "Sat, 21 Nov 2026 10:00:30 GMT"), ("date", "Sat, 21 Nov 2026 10:00:00 GMT")],
            "slow down",
            limited("slow down", Some(ms(30_000))),
        );
        check(
            429,
            &[],
            r#"{"error":{"message":"Please try again in 1.5s. Visit us","code":"rate_limit_exceeded"}}"#,
            limited("Please try again in 1.5s. Visit us", Some(ms(1500))),
        );
        check(
            429,
            &[],
            r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"33s"}]}}"#,
            limited("m", Some(ms(33_000))),
        );
        check(429, &[("retry-after", "-1")], &error("x"), limited("m", None));
        check(429, &[], &error("insufficient_quota"), Error::Quota { status: 429, message: "m".into() });
        for (status, body) in [
            (402, r#"{"error":{"message":"m"}}"#),
            (
                403,
                r#"{"code":"permission denied","error":"Your team has used all available credits or reached its monthly spending limit."}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            ),
            (
                429,
                r#"{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"40s"}]}}"#,
            ),
        ] {
            let error = classify("openai", status, &[], body.as_bytes());
            assert!(matches!(error, Error::Quota { .. }) && !error.retryable(), "{body}: {error:?}");
            assert!(!error.to_string().contains("key"), "{error}");
        }
        let refused = classify("openai", 403, &[], error("permission_error").as_bytes()).to_string();
        assert!(refused.starts_with("the provider refused access (403): m"), "{refused}");
        check(401, &[], &error("authentication_error"), Error::Auth { status: 401, message: "m".into(), hint: hint() });
        check(
            400,
            &[],
            r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            Error::Auth { status: 400, message: "API key not valid.".into(), hint: hint() },
        );
        check(
            404,
            &[],
            "<html><title>Not Found</title>",
            Error::NotFound { status: 404, message: "a web page: Not Found".into(), hint: hint() },
        );
        check(400, &[], &error("model_not_found"), Error::NotFound { status: 400, message: "m".into(), hint: hint() });
        check(400, &[], &error("invalid_request_error"), Error::BadRequest { status: 400, message: "m".into() });
        let message =
            "gemma does not support tools; cocode needs a model that can call tools: choose another with /model";
        let body = r#"{"error":{"message":"gemma does not support tools","type":"invalid_request_error"}}"#;
        check(400, &[], body, Error::BadRequest { status: 400, message: message.into() });
        check(529, &[], &error("overloaded_error"), server(529, "m"));
        check(200, &[], &error("overloaded_error"), server(529, "m"));
        check(502, &[], "<html></html>", server(502, "a web page"));
        check(500, &[], r#"{"detail":[{"msg":"x"}]}"#, server(500, r#"[{"msg":"x"}]"#));
        check(
            301,
            &[("location", "https://example.com/")],
            "",
            malformed("openai", "it redirects (301) to https://example.com/"),
        );
    }

    #[test]
    fn long_texts_are_clipped_on_a_character() {
        assert_eq!(clip(&"é".repeat(1000)).len(), SHOWN + "…".len());
    }
}
