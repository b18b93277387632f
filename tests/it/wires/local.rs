//! Finding a model server on this machine.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::{StatusCode, Uri};
use cocode::provider::http::{Client, HttpProvider, Timeouts};
use cocode::provider::key::Key;
use cocode::provider::probe::{Found, Server, local_server};
use cocode::provider::settings::{ProviderSettings, WireName};

/// Busy machines are slow to answer.
fn patient() -> Client {
    Client::new(Timeouts { probe: Duration::from_secs(3), ..Timeouts::default() })
}

/// A server that knows these paths.
async fn serve(paths: &[(&str, &str)]) -> String {
    let paths: BTreeMap<String, String> =
        paths.iter().map(|(path, body)| (path.to_string(), body.to_string())).collect();
    let app = axum::Router::new().fallback(move |uri: Uri| {
        let body = paths.get(uri.path()).cloned();
        async move { body.map_or((StatusCode::NOT_FOUND, String::new()), |body| (StatusCode::OK, body)) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, app).into_future());
    address
}

async fn check(server: Server, paths: &[(&str, &str)], want: Option<(&str, Option<u64>)>) {
    let base = serve(paths).await;
    let found = local_server(&patient(), &[(&base, server)]).await;
    let want = want.map(|(model, window)| Found {
        base_url: format!("{base}/v1"),
        wire: WireName::OpenaiChat,
        model: model.to_string(),
        window,
        others: if server == Server::LmStudio { vec!["a".to_owned()] } else { Vec::new() },
    });
    assert_eq!(found, want, "{server:?} {paths:?}");
}

#[tokio::test]
async fn each_server_answers_its_own_question() {
    let ollama: &[_] = &[
        ("/api/version", r#"{"version":"0.12.6"}"#),
        ("/api/tags", r#"{"models":[{"name":"nomic-embed-text:latest"},{"name":"qwen3:8b"}]}"#),
    ];
    let llama: &[_] = &[
        ("/props", r#"{"default_generation_settings":{"n_ctx":16384},"total_slots":1,"chat_template":"x"}"#),
        ("/v1/models", r#"{"object":"list","data":[{"id":"qwen2.5-coder","object":"model"}]}"#),
    ];
    let studio: &[_] = &[(
        "/api/v0/models",
        r#"{"data":[{"id":"e","type":"embeddings","state":"loaded"},{"id":"a","type":"llm","state":"not-loaded"},{"id":"b","type":"llm","state":"loaded","loaded_context_length":4096}]}"#,
    )];
    let something: &[_] = &[("/v1/models", r#"{"data":[{"id":"x"}]}"#), ("/", "<html></html>")];
    check(Server::Ollama, ollama, Some(("qwen3:8b", None))).await;
    check(Server::LlamaCpp, llama, Some(("qwen2.5-coder", Some(16384)))).await;
    check(Server::LmStudio, studio, Some(("b", Some(4096)))).await;
    check(Server::LlamaCpp, ollama, None).await;
    check(Server::LmStudio, llama, None).await;
    check(Server::Ollama, &[("/api/version", r#"{"version":"1"}"#), ("/api/tags", r#"{"models":[]}"#)], None).await;
    for server in [Server::Ollama, Server::LlamaCpp, Server::LmStudio] {
        check(server, something, None).await;
    }
}

#[tokio::test]
async fn the_first_address_with_a_model_wins() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // Accepts connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_address = format!("http://{}", silent.local_addr().unwrap());
    let llama =
        serve(&[("/props", r#"{"default_generation_settings":{}}"#), ("/v1/models", r#"{"data":[{"id":"here"}]}"#)])
            .await;
    let addresses = [
        (format!("http://{free}"), Server::Ollama),
        (silent_address, Server::LmStudio),
        (llama.clone(), Server::LlamaCpp),
    ];
    let addresses: Vec<(&str, Server)> =
        addresses.iter().map(|(address, server)| (address.as_str(), *server)).collect();
    assert_eq!(local_server(&patient(), &addresses).await.map(|found| found.model), Some("here".to_string()));
    assert_eq!(local_server(&Client::default(), &addresses[..2]).await, None);
}

#[tokio::test]
async fn endpoints_are_asked_for_their_models_on_every_wire() {
    let list = r#"{"data":[{"id":"one","max_model_len":4096},{"id":"text-embedding"}]}"#;
    let base = serve(&[("/v1/models", list), ("/v1beta/models", list)]).await;
    for wire in [WireName::Anthropic, WireName::Openai, WireName::OpenaiChat, WireName::Gemini] {
        let check = async |base: &str, want: Result<Vec<(String, Option<u64>)>, &str>| {
            let settings = ProviderSettings {
                wire,
                base_url: base.to_owned(),
                api_key_env: None,
                api_key_command: None,
                key_header: Default::default(),
                headers: Default::default(),
                ca_file: None,
                models: Default::default(),
                default_model: None,
            };
            let key = Key::new("p", &settings, Some("sk-secret"), None);
            let offers = HttpProvider::new("p", settings, key, patient()).offers().await;
            let found = offers.map(|list| list.into_iter().map(|one| (one.id, one.window)).collect());
            match (found, want) {
                (Err(error), Err(want)) => assert!(error.to_string().contains(want), "{error}"),
                (found, want) => assert_eq!(found.map_err(|error| error.to_string()), want.map_err(str::to_owned)),
            }
        };
        check(&base, Ok(vec![("one".to_owned(), Some(4096))])).await;
        check(&format!("{base}/elsewhere"), Err("404")).await;
    }
}
