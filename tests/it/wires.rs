//! All four wires over real HTTP: whole turns, and everything that goes wrong on the way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cocode::message::{Block, Message, Origin, Outcome, StopReason, ToolResult, Usage};
use cocode::provider::http::{Client, HttpProvider, Timeouts};
use cocode::provider::key::Key;
use cocode::provider::reply::Fold;
use cocode::provider::settings::{ProviderSettings, WireName};
use cocode::provider::{Error, Provider, Purpose, Request, StreamEvent, Thinking, ToolSpec};
use futures_util::StreamExt;
use serde_json::json;

use crate::support::fake_api::{FakeApi, Reply};

mod encoded;
mod local;
mod recorded;

const WIRES: [WireName; 4] = [WireName::Anthropic, WireName::Openai, WireName::OpenaiChat, WireName::Gemini];
const SECRET: &str = "sk-never-to-be-seen";

fn settings(wire: WireName, base_url: String) -> ProviderSettings {
    ProviderSettings {
        key_header: Default::default(),
        wire,
        base_url,
        api_key_env: Some("TEST_API_KEY".into()),
        api_key_command: None,
        headers: Default::default(),
        ca_file: None,
        models: Default::default(),
        default_model: None,
    }
}

fn provider(wire: WireName, base_url: String, key: Option<&str>, idle: Duration) -> HttpProvider {
    let settings = settings(wire, base_url);
    let key = Key::new("test", &settings, key, None);
    HttpProvider::new("test", settings, key, Client::new(Timeouts { idle, local_idle: idle, ..Timeouts::default() }))
}

fn patient(wire: WireName, api: &FakeApi) -> HttpProvider {
    provider(wire, api.base_url(wire), Some(SECRET), Duration::from_secs(60))
}

fn model(wire: WireName) -> &'static str {
    match wire {
        WireName::Anthropic => "claude-sonnet-5",
        WireName::Openai => "gpt-5.4",
        WireName::OpenaiChat => "some-local-model",
        WireName::Gemini => "gemini-3-flash-preview",
    }
}

fn request(wire: WireName, messages: &[Message]) -> Arc<Request> {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    Arc::new(Request {
        model: model(wire).into(),
        system: "Be brief.".into(),
        tools: Arc::new([ToolSpec { name: "Read".into(), description: "Reads a file.".into(), schema }]),
        messages: messages.iter().cloned().map(Arc::new).collect(),
        media: HashMap::new(),
        max_output: 4_096,
        thinking: Thinking::Unset,
        purpose: Purpose::Main,
        cache_key: "session".into(),
        web_search: None,
        frontier: None,
    })
}

async fn ask(provider: &HttpProvider, request: Arc<Request>, first_call: u64) -> Result<Message, Error> {
    let mut stream = provider.stream(request.clone());
    let mut fold = Fold::new(first_call);
    while let Some(event) = stream.next().await {
        fold.push(event?);
    }
    Ok(fold.finish(Origin { provider: "test".into(), model: request.model.clone() }))
}

async fn fail(provider: &HttpProvider, wire: WireName) -> Error {
    ask(provider, request(wire, &[Message::prompt("hi")]), 0).await.expect_err("it cannot succeed")
}

#[tokio::test]
async fn a_turn_with_calls_over_every_wire() {
    for wire in WIRES {
        let api = FakeApi::start([
            Reply::turn()
                .thinking("Two files, I think.")
                .text("Reading both: é日本\u{1F600}.")
                .call("Read", json!({ "path": "a.txt" }))
                .call("Read", json!({ "path": "b \"quoted\".txt" }))
                .chunks(7),
            Reply::turn().thinking("Done.").text("They say one and two.").chunks(1),
            Reply::turn().text("You are welcome."),
        ]);
        let provider = patient(wire, &api);
        let mut messages = vec![Message::reminder("Today is Saturday."), Message::prompt("What do the files say?")];
        let reply = ask(&provider, request(wire, &messages), 7).await.unwrap();
        let calls: Vec<(String, String)> =
            reply.calls().map(|call| (call.id.to_string(), call.input["path"].as_str().unwrap().to_string())).collect();
        let want = [("call_7".to_string(), "a.txt".to_string()), ("call_8".into(), "b \"quoted\".txt".into())];
        assert_eq!(calls, want, "{wire:?}");
        assert_eq!(reply.text(), "Reading both: é日本\u{1F600}.", "{wire:?}");
        assert!(matches!(&reply.blocks[0], Block::Thinking { text, .. } if text == "Two files, I think."), "{wire:?}");
        assert_eq!(reply.stop, Some(StopReason::ToolUse), "{wire:?}");
        let results = reply
            .calls()
            .map(|call| match call.id.as_str() {
                "call_7" => ToolResult::of_text(call.id.clone(), Outcome::Ok, "one"),
                _ => ToolResult::of_text(call.id.clone(), Outcome::Error, "no such file"),
            })
            .collect();
        messages.extend([reply, Message::tool_results(results), Message::reminder("A file changed.")]);
        let reply = ask(&provider, request(wire, &messages), 9).await.unwrap();
        assert_eq!((reply.text().as_str(), reply.stop.clone()), ("They say one and two.", Some(StopReason::EndTurn)));
        let usage = reply.usage.expect("every wire counts");
        let counted = Usage { reasoning: 0, cache_write: 0, input: usage.input + usage.cache_write, ..usage };
        assert_eq!(counted, Usage { input: 13, output: 20, cache_read: 5, cache_write: 0, reasoning: 0 }, "{wire:?}");
        messages.extend([reply, Message::prompt("Thanks")]);
        ask(&provider, request(wire, &messages), 9).await.unwrap();
        api.assert_clean();
        let sent = &api.received()[1];
        // What the server signed comes back to it; its odd call ids do not.
        let signed = match wire {
            WireName::Anthropic | WireName::Gemini => "c2lnbmVk",
            WireName::Openai => "ZW5jcnlwdGVk",
            WireName::OpenaiChat => "Two files, I think.",
        };
        assert!(sent.raw.contains(signed), "{wire:?}: {}", sent.raw);
        assert!(["toolu_", "call_x", "chatcmpl-tool"].iter().all(|id| !sent.raw.contains(id)), "{wire:?}");
    }
}

#[tokio::test]
async fn refusals_say_who_must_act() {
    for wire in WIRES {
        let json = |status, message: &str| {
            Reply::raw(status, "application/json", &json!({ "error": { "message": message } }).to_string())
        };
        let api = FakeApi::start([
            json(401, &format!("Incorrect API key provided: {SECRET}")),
            json(404, "no such model"),
            json(429, "slow down").header("retry-after", "7"),
            json(500, "oops"),
            json(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            Reply::raw(200, "text/html", "<!doctype html><title>Welcome</title>"),
            Reply::raw(200, "text/event-stream", "<!doctype html><title>Welcome</title>"),
            Reply::raw(200, "application/json", r#"{"error":{"message":"overloaded","type":"overloaded_error"}}"#),
            Reply::raw(200, "application/json", r#"{"object":"chat.completion"}"#),
            Reply::raw(
                200,
                "text/event-stream",
                "data: {\"error\":{\"message\":\"Context size has been exceeded.\"}}\n\n",
            ),
            Reply::raw(200, "text/event-stream", "data: {\"a\": nonsense\n\n"),
            Reply::raw(200, "text/event-stream", ": alive\n\n"),
            Reply::raw(307, "text/plain", "").header("location", "https://elsewhere.example/"),
        ]);
        let provider = patient(wire, &api);
        let mut errors = Vec::new();
        for _ in 0..13 {
            errors.push(fail(&provider, wire).await);
        }
        assert!(
            matches!(&errors[0], Error::Auth { status: 401, hint, .. } if hint.contains("TEST_API_KEY")),
            "{:?}",
            errors[0]
        );
        assert!(errors.iter().all(|error| !format!("{error} {error:?}").contains(SECRET)), "{errors:?}");
        assert!(matches!(&errors[1], Error::NotFound { status: 404, hint, .. } if hint.contains("base_url")));
        let limited = Error::RateLimited { message: "slow down".into(), retry_after: Some(Duration::from_secs(7)) };
        assert_eq!(errors[2], limited);
        assert_eq!(errors[3], Error::Server { status: 500, message: "oops".into(), retry_after: None });
        assert_eq!(errors[4], Error::ContextTooLong { tokens: Some(210_000), limit: Some(200_000) });
        for error in [&errors[5], &errors[6], &errors[8], &errors[10], &errors[12]] {
            assert!(matches!(error, Error::Malformed { url, .. } if url.starts_with(api.url())), "{wire:?}: {error:?}");
        }
        assert_eq!(errors[7], Error::Server { status: 529, message: "overloaded".into(), retry_after: None });
        assert_eq!(errors[9], Error::ContextTooLong { tokens: None, limit: None });
        assert_eq!(errors[11], Error::EndedEarly);
        api.assert_clean();
    }
}

#[tokio::test]
async fn a_damaged_event_of_a_good_stream_is_asked_again() {
    for wire in WIRES {
        let text = match wire {
            WireName::Anthropic => {
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#
            }
            WireName::Openai => r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hel"}"#,
            WireName::OpenaiChat => r#"{"choices":[{"delta":{"content":"Hel"}}]}"#,
            WireName::Gemini => r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}"#,
        };
        let body = format!("data: {text}\n\ndata: {}\n\n", &text[..text.len() / 2]);
        let api = FakeApi::start([Reply::raw(200, "text/event-stream", &body)]);
        let error = fail(&patient(wire, &api), wire).await;
        assert!(matches!(&error, Error::Broken { .. }) && error.retryable(), "{wire:?}: {error:?}");
        assert!(!error.to_string().contains("base_url"), "{error}");
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_is_not_a_wrong_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 1024];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut bytes).await;
        }
    });
    for wire in WIRES {
        let error = fail(&provider(wire, base.clone(), Some(SECRET), Duration::from_secs(60)), wire).await;
        assert!(matches!(&error, Error::Broken { .. }) && error.retryable(), "{wire:?}: {error:?}");
    }
    server.abort();
}

#[tokio::test]
async fn another_api_is_named() {
    let check = async |wire: WireName, kind: &str, body: &str, want: &str| {
        let api = FakeApi::start([Reply::raw(200, kind, body)]);
        let error = fail(&patient(wire, &api), wire).await;
        assert!(
            matches!(&error, Error::Malformed { message, .. } if message.contains(want)),
            "{wire:?} {body}: {error:?}"
        );
    };
    let (stream, chat) = ("text/event-stream", WireName::OpenaiChat);
    let legacy =
        r#"{"id":"cmpl-1","object":"text_completion","choices":[{"text":"Hel","index":0,"finish_reason":null}]}"#;
    for wire in [WireName::OpenaiChat, WireName::Openai, WireName::Anthropic] {
        check(wire, stream, &format!("data: {legacy}\n\ndata: [DONE]\n\n"), "chunks of legacy completions").await;
    }
    check(chat, "application/json", legacy, "chunks of legacy completions").await;
    let delta = r#"{"object":"chat.completion.chunk","choices":[{"delta":{"content":"x"}}]}"#;
    check(WireName::Openai, stream, &format!("data: {delta}\n\n"), "set wire = \"openai-chat\"").await;
    let created = r#"{"type":"response.created","response":{}}"#;
    check(chat, stream, &format!("data: {created}\n\n"), "set wire = \"openai\"").await;
    let start = r#"{"type":"message_start","message":{}}"#;
    check(chat, stream, &format!("event: message_start\ndata: {start}\n\n"), "set wire = \"anthropic\"").await;
    check(chat, stream, "data: {\"candidates\":[]}\n\n", "set wire = \"gemini\"").await;
    let ollama = "{\"model\":\"m\",\"message\":{\"content\":\"x\"},\"done\":false}\n{\"model\":\"m\",\"done\":true}\n";
    check(chat, "application/x-ndjson", ollama, "Ollama's own API").await;
    // Some label their chunks wrongly.
    let odd = r#"{"object":"text_completion","choices":[{"delta":{"content":"Fine."},"finish_reason":"stop"}]}"#;
    let api = FakeApi::start([Reply::raw(200, stream, &format!("data: {odd}\n\ndata: [DONE]\n\n"))]);
    let reply = ask(&patient(chat, &api), request(chat, &[Message::prompt("hi")]), 0).await.unwrap();
    assert_eq!(reply.text(), "Fine.");
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let idle = Duration::from_millis(200);
    for wire in WIRES {
        let reply = Reply::turn().text("Hello, this will stop in the middle of a word.");
        let api = FakeApi::start([reply.clone().hang_after(0), reply.hang_after(700)]);
        let provider = provider(wire, api.base_url(wire), Some(SECRET), idle);
        assert_eq!(fail(&provider, wire).await, Error::Idle(idle), "{wire:?}");
        assert_eq!(fail(&provider, wire).await, Error::Idle(idle), "{wire:?}");
    }
}

#[tokio::test]
async fn a_cut_stream_is_never_a_finished_answer() {
    for wire in WIRES {
        let reply = Reply::turn().text("Hello").call("Read", json!({ "path": "a.txt" }));
        let cuts = [1, 100, 400, 700];
        let api = FakeApi::start(cuts.map(|bytes| reply.clone().cut_after(bytes)));
        let provider = patient(wire, &api);
        for bytes in cuts {
            assert_eq!(fail(&provider, wire).await, Error::EndedEarly, "{wire:?} after {bytes}");
        }
    }
}

#[tokio::test]
async fn what_came_before_a_failure_is_handed_out() {
    let api = FakeApi::start([Reply::raw(
        200,
        "text/event-stream",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"error\":{\"message\":\"oops\"}}\n\n",
    )]);
    let provider = patient(WireName::OpenaiChat, &api);
    let events: Vec<_> = provider.stream(request(WireName::OpenaiChat, &[Message::prompt("hi")])).collect().await;
    assert!(
        events.iter().any(|event| matches!(event, Ok(StreamEvent::Text { text, .. }) if text == "Hel")),
        "{events:?}"
    );
    let failure = Err(Error::Server { status: 500, message: "oops".into(), retry_after: None });
    assert_eq!(events.last(), Some(&failure));
}

#[tokio::test]
async fn nobody_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for wire in WIRES {
        let provider = provider(wire, base.clone(), Some(SECRET), Duration::from_secs(60));
        let error = fail(&provider, wire).await;
        assert!(matches!(&error, Error::NoServer { url } if url.starts_with(&base)), "{error:?}");
        assert!(error.retryable());
    }
}

#[tokio::test]
async fn keys_are_needed_where_a_provider_is_hosted() {
    for wire in WIRES {
        let hosted = provider(wire, "https://model.invalid".into(), None, Duration::from_secs(60));
        let hint = "set TEST_API_KEY".to_string();
        assert_eq!(fail(&hosted, wire).await, Error::NoKey { provider: "test".into(), hint });
        let api = FakeApi::start([Reply::turn().text("No key needed.")]);
        let local = provider(wire, api.base_url(wire), None, Duration::from_secs(60));
        let reply = ask(&local, request(wire, &[Message::prompt("hi")]), 0).await.unwrap();
        assert_eq!(reply.text(), "No key needed.");
        let sent = &api.received()[0].headers;
        assert!(["authorization", "x-api-key", "x-goog-api-key"].iter().all(|name| !sent.contains_key(*name)));
    }
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    let api = FakeApi::start([Reply::turn().text("Hello, and so on.").hang_after(700)]);
    let provider = patient(WireName::Anthropic, &api);
    let mut stream = provider.stream(request(WireName::Anthropic, &[Message::prompt("hi")]));
    assert!(matches!(stream.next().await, Some(Ok(StreamEvent::Start { .. }))));
    drop(stream);
    api.push(Reply::turn().text("Again."));
    api.allow_other_prefix();
    let reply = ask(&provider, request(WireName::Anthropic, &[Message::prompt("again")]), 0).await.unwrap();
    assert_eq!(reply.text(), "Again.");
    let variables: Vec<&str> = api.env(WireName::Gemini).iter().map(|(name, _)| *name).collect();
    assert_eq!(variables, ["GEMINI_API_KEY", "GEMINI_BASE_URL"]);
}
