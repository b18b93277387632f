//! Servers behind HTTP: streamable, with streams and without, in both eras, and in the older way.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cocode::permission::Mode;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::support::harness::Harness;

/// How a server answers.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// One JSON object.
    Json,
    /// A stream, with a notice before the answer.
    Stream,
    /// Without a handshake.
    Modern,
    /// All on one stream.
    Sse,
    /// It wants a login.
    Login,
    /// A web page.
    Page,
    /// Its stream ends before the answer to a call.
    Torn,
    /// The same, and the answer is on another stream.
    Resumes,
    /// It forgets its session once.
    Forgets,
}

struct Server {
    way: Way,
    heard: Mutex<Vec<(HeaderMap, Value)>>,
    /// Where answers go in the older way.
    streams: Mutex<Vec<mpsc::UnboundedSender<String>>>,
    sessions: Mutex<VecDeque<&'static str>>,
}

fn result(way: Way, message: &Value) -> Value {
    let id = &message["id"];
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tools = json!({"tools": [{"name": "echo", "inputSchema": schema}]});
    let fail = |code: i64| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}});
    let result = match message["method"].as_str().unwrap_or_default() {
        "server/discover" if way == Way::Modern => {
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        }
        "initialize" if way != Way::Modern => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}),
        "tools/list" => tools,
        "tools/call" => json!({"content": [{"type": "text", "text": "said"}]}),
        _ => return fail(-32601),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

async fn post(State(server): State<Arc<Server>>, headers: HeaderMap, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    server.heard.lock().unwrap().push((headers.clone(), message.clone()));
    let json = |value: Value| ([("content-type", "application/json")], value.to_string()).into_response();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    match server.way {
        Way::Login => return StatusCode::UNAUTHORIZED.into_response(),
        Way::Page => return ([("content-type", "text/html")], "<h1>Hello</h1>").into_response(),
        _ => {}
    }
    if message.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let answer = result(server.way, &message);
    let event = |value: &Value| format!("event: message\ndata: {value}\n\n");
    let streamed = |text: String| ([("content-type", "text/event-stream")], text).into_response();
    match server.way {
        Way::Sse => {
            server.streams.lock().unwrap().retain(|stream| stream.send(event(&answer)).is_ok());
            StatusCode::ACCEPTED.into_response()
        }
        Way::Torn if method == "tools/call" => streamed(": nothing\n\n".to_owned()),
        Way::Resumes if method == "tools/call" => streamed("id: one\nretry: 1\ndata:\n\n".to_owned()),
        Way::Stream | Way::Torn | Way::Resumes => {
            let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}});
            streamed(format!("{}{}", event(&notice), event(&answer)))
        }
        Way::Forgets if method == "initialize" => {
            let session = server.sessions.lock().unwrap().pop_front().unwrap();
            ([("content-type", "application/json"), ("mcp-session-id", session)], answer.to_string()).into_response()
        }
        // The first session is known until the first call.
        Way::Forgets if method == "tools/call" && headers.get("mcp-session-id").is_some_and(|id| id == "one") => {
            StatusCode::NOT_FOUND.into_response()
        }
        _ => json(answer),
    }
}

async fn listen(State(server): State<Arc<Server>>, headers: HeaderMap) -> Response {
    if let Some(last) = headers.get("last-event-id").filter(|_| server.way == Way::Resumes) {
        // The first try brings nothing new but another place, the second one the answer.
        let event = match last.to_str().unwrap() {
            "one" => "id: two\ndata:\n\n".to_owned(),
            _ => {
                let heard = server.heard.lock().unwrap();
                let call = heard.iter().find(|(_, message)| message["method"] == "tools/call").unwrap();
                assert_eq!(headers["mcp-protocol-version"], call.0["mcp-protocol-version"]);
                format!("id: three\ndata: {}\n\n", result(server.way, &call.1))
            }
        };
        return ([("content-type", "text/event-stream")], event).into_response();
    }
    if server.way != Way::Sse {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    sender.send("event: endpoint\ndata: /mcp?session=1\n\n".to_owned()).unwrap();
    server.streams.lock().unwrap().push(sender);
    let events = stream::unfold(receiver, |mut receiver| async move {
        let event = receiver.recv().await?;
        Some((Ok::<_, Infallible>(event), receiver))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
}

async fn serve(way: Way) -> (Arc<Server>, String) {
    let sessions = Mutex::new(VecDeque::from(["one", "two"]));
    let server = Arc::new(Server { way, heard: Mutex::default(), streams: Mutex::default(), sessions });
    let router = Router::new().route("/mcp", get(listen).post(post)).with_state(server.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (server, url)
}

/// What the model reads of a search and two calls.
async fn results(way: Way, calls: usize) -> (Arc<Server>, Vec<String>) {
    let (server, url) = serve(way).await;
    let kind = if way == Way::Sse { "sse" } else { "http" };
    let entry = json!({"type": kind, "url": url, "headers": {"Authorization": "Bearer ${TOKEN_OF_TEST}"}});
    let own = json!({"mcpServers": {"srv": entry}}).to_string();
    let search = "- reply: [tool: {name: ToolSearch, input: {query: echo}}]\n";
    let call = "- reply: [tool: {name: McpCall, input: {tool: mcp__srv__echo, arguments: {region: eu}}}]\n";
    let script = format!("{search}{}- reply: [text: Done.]\n", format!("{call}{search}").repeat(calls));
    let harness = Harness::new().home("../.claude.json", &own).env("TOKEN_OF_TEST", "t0ken").mode(Mode::Bypass);
    let ran = harness.prompt("go").script(&script).run().await;
    (server, super::mcp::results(&ran.log()))
}

fn methods(server: &Server) -> Vec<String> {
    let heard = server.heard.lock().unwrap();
    heard.iter().filter_map(|(_, message)| Some(message["method"].as_str()?.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_each_way() {
    for way in [Way::Json, Way::Stream, Way::Resumes, Way::Modern, Way::Sse] {
        let (server, results) = results(way, 1).await;
        assert!(results[0].contains("mcp__srv__echo"), "{results:?}");
        assert_eq!(results[1], "ok: said");
        let (methods, heard) = (methods(&server), server.heard.lock().unwrap());
        assert!(heard.iter().all(|(headers, _)| headers["authorization"] == "Bearer t0ken"));
        assert_eq!(methods.iter().any(|method| method == "initialize"), way != Way::Modern, "{methods:?}");
        assert_eq!(methods.iter().any(|method| method == "server/discover"), way != Way::Sse, "{methods:?}");
        let call = heard.iter().find(|(_, message)| message["method"] == "tools/call").unwrap();
        let version = call.0["mcp-protocol-version"].to_str().unwrap();
        let meta = &call.1["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(call.0.get("mcp-param-region").map(|region| region == "eu"), (way == Way::Modern).then_some(true));
        if way == Way::Modern {
            assert_eq!((version, meta), ("2026-07-28", &json!("2026-07-28")));
            assert_eq!(
                (&call.0["mcp-method"], &call.0["mcp-name"]),
                (&"tools/call".parse().unwrap(), &"echo".parse().unwrap())
            );
        } else {
            assert_eq!((version, meta), ("2025-06-18", &Value::Null));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_named() {
    let (_, got) = results(Way::Login, 0).await;
    assert!(got[0].contains("srv: the server wants a login (401), which cocode does not support yet"), "{got:?}");
    let (server, got) = results(Way::Page, 0).await;
    assert!(
        got[0].contains("srv: the answer is text/html, not JSON: is this the address of an MCP server?"),
        "{got:?}"
    );
    assert!(!methods(&server).contains(&"initialize".to_owned()), "a web page is not a sign of the older era");
    let (_, got) = results(Way::Torn, 1).await;
    assert_eq!(got[1], "error: The call failed: the stream broke off before the answer.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_is_begun_again() {
    let (server, got) = results(Way::Forgets, 2).await;
    assert_eq!(got[1], "error: The call failed: the server has ended the session.");
    assert_eq!(got[3], "ok: said");
    assert_eq!(methods(&server).iter().filter(|method| *method == "initialize").count(), 2);
}
