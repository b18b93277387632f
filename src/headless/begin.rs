//! How a program that starts us says what the session is to be: `initialize`, before there is one.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::input::{Line, Lines, Request};
use super::lines;
use crate::engine::{Host, Setup};
use crate::hooks::{Definition, Definitions, Does, Event, Group, OnFailure};
use crate::mcp::Manifest;
use crate::stdx::schema::Schema;

/// What of `initialize` means nothing here.
const WITHOUT_EFFECT: [&str; 7] = [
    "planModeInstructions",
    "toolAliases",
    "excludeDynamicSections",
    "skills",
    "promptSuggestions",
    "agentProgressSummaries",
    "systemPromptSnapshot",
];

/// Waits for the first line that begins something. What comes before it is kept for later. Returns the request to begin.
///
/// # Errors
/// `out` cannot be written.
pub(super) async fn initialize(
    setup: &mut Setup,
    lines: &mut Lines,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Option<Request>> {
    let mut before = Vec::new();
    let begun = loop {
        match lines.next().await {
            Some(Line::Request(request)) if request.name() == "initialize" => match apply(setup, &request.body) {
                Ok(told) => {
                    for text in told {
                        writeln!(err, "{text}")?;
                    }
                    break Some(request);
                }
                Err(why) => {
                    writeln!(out, "{}", lines::control(&request.id, Err(why)))?;
                    out.flush()?;
                }
            },
            Some(line @ Line::Prompt(_)) => {
                before.push(line);
                break None;
            }
            Some(line) => before.push(line),
            None => break None,
        }
    };
    for line in before.into_iter().rev() {
        lines.keep_first(line);
    }
    Ok(begun)
}

/// Makes the session what the request says. Returns what of it means nothing here.
///
/// # Errors
/// What cannot be used, and nothing was changed.
fn apply(setup: &mut Setup, body: &Value) -> Result<Vec<String>, String> {
    let mut told = Vec::new();
    let schema = match &body["jsonSchema"] {
        Value::Null => None,
        given => Some(Schema::new(given.clone()).map_err(|error| format!("jsonSchema: {error}"))?),
    };
    let host = Host::new(hooks(&body["hooks"], &mut told)?, agents(&body["agents"])?, manifests(body));
    setup.output_schema = schema.or(setup.output_schema.take());
    let parts = body["systemPrompt"].as_array().map(|parts| parts.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    setup.system = parts.map(|parts| parts.join("\n\n")).or(setup.system.take());
    if let Some(text) = body["appendSystemPrompt"].as_str() {
        let before = setup.append_system.take().map(|before| before + "\n\n").unwrap_or_default();
        setup.append_system = Some(before + text);
    }
    let mut servers = body["mcpServers"].as_object().cloned().unwrap_or_default();
    for name in body["sdkMcpServers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let timeout = &body["sdkMcpServerConfigs"][name]["timeout"];
        servers.insert(name.to_owned(), json!({ "type": "sdk", "timeout": timeout }));
    }
    if !servers.is_empty() {
        setup.loaded = setup.loaded.clone().with_servers(json!({ "mcpServers": servers }).to_string());
    }
    let plugins = body["plugins"].as_array().into_iter().flatten().filter_map(|plugin| plugin["path"].as_str());
    setup.loaded.plugin_dirs.extend(plugins.map(|path| setup.project.join(path)));
    setup.host = Some(host);
    let given = |key: &&&str| !matches!(body.get(**key), None | Some(Value::Null | Value::Bool(false)));
    let idle: Vec<&str> = WITHOUT_EFFECT.iter().filter(given).copied().collect();
    if !idle.is_empty() {
        told.push(format!("initialize: without effect in cocode: {}", idle.join(", ")));
    }
    Ok(told)
}

fn agents(given: &Value) -> Result<Map<String, Value>, String> {
    match given {
        Value::Null => Ok(Map::new()),
        Value::Object(agents) => Ok(agents.clone()),
        _ => Err("agents must be an object".to_owned()),
    }
}

/// The hooks that the program answers for. Those of events that never happen here are named, not refused.
fn hooks(given: &Value, told: &mut Vec<String>) -> Result<Definitions, String> {
    let mut read = BTreeMap::new();
    let events = match given {
        Value::Null => return Ok(Definitions::default()),
        Value::Object(events) => events,
        _ => return Err("hooks must be an object".to_owned()),
    };
    for (name, matchers) in events {
        let Ok(event) = serde_json::from_value::<Event>(name.as_str().into()) else {
            told.push(format!("initialize: hooks for {name} never run in cocode"));
            continue;
        };
        let matchers = matchers.as_array().ok_or_else(|| format!("hooks.{name} must be a list"))?;
        let groups = matchers.iter().map(group).collect::<Vec<Group>>();
        read.insert(event, groups);
    }
    Ok(Definitions(read))
}

fn group(given: &Value) -> Group {
    // Where it says what we do not know, it blocks: it may be a guard.
    let on_failure = match given["onFailure"].as_str() {
        None | Some("continue") => OnFailure::Continue,
        Some(_) => OnFailure::Block,
    };
    let hook = |name: &str| Definition {
        does: Does::Outside(name.to_owned()),
        timeout: given["timeout"].as_f64().filter(|seconds| *seconds > 0.0),
        once: false,
        condition: None,
        beside: false,
        on_failure,
    };
    let names = given["hookCallbackIds"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Group { matcher: given["matcher"].as_str().map(str::to_owned), hooks: names.map(hook).collect() }
}

/// What the program says in advance of its servers.
fn manifests(body: &Value) -> BTreeMap<String, Manifest> {
    let given = body["sdkMcpServerManifests"].as_object().into_iter().flatten();
    let object = |value: &Value| Some(value.clone()).filter(Value::is_object);
    let manifest = |(name, given): (&String, &Value)| {
        let hello = object(&given["initializeResult"])?;
        Some((name.clone(), Manifest { hello: Some(hello), tools: object(&given["toolsListResult"]) }))
    };
    given.filter_map(manifest).collect()
}

/// Reads lines in a thread of its own, since nothing else can wait for standard input.
pub(super) fn reader(from: Box<dyn io::BufRead + Send>) -> Lines {
    let (send, lines) = mpsc::channel(64);
    // Blocked on standard input, it ends with the process.
    std::thread::spawn(move || super::input::read_lines(from, &send));
    Lines::new(lines)
}
