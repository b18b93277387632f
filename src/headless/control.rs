//! What the program at the other end may ask for, by the names that the SDKs have for it. Every request is answered: an
//! unknown one with an error.

use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use serde_json::{Value, json};
use uuid::Uuid;

use super::background::{self, Asked};
use super::host::Wanted;
use super::input::{Lines, Request};
use super::{Run, answers, lines};
use crate::commands::{Builtin, ListKind};
use crate::engine::Handle;
use crate::permission::Mode;
use crate::protocol::{Op, ServerChange};
use crate::stdx::outside;
use crate::thinking::Level;

/// Most bytes of a file that a program is given where it does not say.
const FILE: u64 = 1 << 20;

/// What a request is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// An empty object.
    Nothing,
    Initialized,
    Servers,
    ServersChanged,
    Window,
    Models,
    Cost,
    Usage,
    Rules,
    Hooks,
    Skills,
    Plugins,
    Settings,
    /// The prompts, among which is the one to go back to.
    RewindTo,
    /// What going back would change.
    WouldRewind,
    Rewound,
}

/// Does what was asked, and answers, now or once the engine has done it.
pub(super) async fn take(run: &mut Run<'_>, handle: &Handle, request: &Request, prompts: &mut Lines) -> io::Result<()> {
    let Some(answer) = answer(run, handle, request, prompts).await else { return Ok(()) };
    run.line(&lines::control(&request.id, answer))
}

/// The answer; none where it comes later.
async fn answer(run: &mut Run<'_>, handle: &Handle, request: &Request, prompts: &mut Lines) -> Option<outside::Answer> {
    let body = &request.body;
    let text = |key: &str| body[key].as_str();
    if let Some(asked) = Asked::read(request.name(), body) {
        return Some(commands(run, handle, asked).await);
    }
    // An engine that is gone tells so itself, wherever something is sent.
    let (ops, shape) = match request.name() {
        "initialize" => {
            return Some(Err("the session has begun: initialize comes before everything else".to_owned()));
        }
        "interrupt" => return Some(Ok(interrupt(run, handle, body, prompts).await)),
        "set_permission_mode" => return Some(set_mode(run, handle, &body["mode"]).await),
        "set_max_thinking_tokens" => {
            let level = body["max_thinking_tokens"].as_u64().map(|tokens| match tokens {
                0 => Level::None,
                _ => Level::DeepThink,
            });
            let _ = handle.ops.send(Op::SetThinking { level }).await;
            return Some(Ok(json!({})));
        }
        "cancel_async_message" => {
            let meant = text("message_uuid").and_then(|id| Uuid::parse_str(id).ok());
            let dropped = prompts.drop_named(|uuid| Some(uuid) == meant);
            return Some(Ok(json!({ "cancelled": !dropped.is_empty() })));
        }
        "read_file" => return Some(read_file(run, body)),
        "get_binary_version" => return Some(Ok(json!({ "version": env!("CARGO_PKG_VERSION") }))),
        // What a server says by itself needs no answer, and nothing here waits for it.
        "mcp_message" => return Some(Ok(json!({}))),
        "set_model" => {
            let model = text("model").filter(|model| *model != "default").map(str::to_owned);
            (vec![Op::builtin(Builtin::Model, model.unwrap_or_else(|| run.first_model.clone()))], Shape::Nothing)
        }
        "rename_session" => (vec![Op::builtin(Builtin::Rename, text("title").unwrap_or_default())], Shape::Nothing),
        "mcp_status" => (vec![Op::builtin(Builtin::Mcp, "")], Shape::Servers),
        "mcp_set_servers" => {
            let change = ServerChange::Given { servers: body["servers"].clone() };
            let (ops, _) = server(change);
            (ops, Shape::ServersChanged)
        }
        "mcp_reconnect" => server(ServerChange::Reconnect { name: text("serverName").unwrap_or_default().into() }),
        "mcp_toggle" => {
            let name = text("serverName").unwrap_or_default().to_owned();
            server(ServerChange::Switch { name, on: body["enabled"] != false })
        }
        "get_context_usage" => (vec![Op::builtin(Builtin::Context, "")], Shape::Window),
        "list_models" => (vec![Op::builtin(Builtin::Model, "")], Shape::Models),
        "get_session_cost" => (vec![Op::builtin(Builtin::Cost, "")], Shape::Cost),
        "get_usage" => (vec![Op::builtin(Builtin::Cost, "")], Shape::Usage),
        "list_permission_rules" => (vec![Op::builtin(Builtin::Permissions, "")], Shape::Rules),
        "get_hooks_listing" => (vec![Op::builtin(Builtin::Hooks, "")], Shape::Hooks),
        "get_settings" => (vec![Op::builtin(Builtin::Config, "")], Shape::Settings),
        "reload_skills" => (vec![Op::builtin(Builtin::Skills, "")], Shape::Skills),
        "reload_plugins" => {
            let looks = [Builtin::ReloadPlugins, Builtin::Plugin, Builtin::Mcp, Builtin::Agents];
            (looks.map(|builtin| Op::builtin(builtin, "")).to_vec(), Shape::Plugins)
        }
        "rewind_files" => {
            let what = ListKind::Prompts;
            run.host.serve(&request.id, body, vec![Wanted::Listed(what)], Shape::RewindTo);
            let _ = handle.ops.send(Op::List { what }).await;
            return None;
        }
        name => {
            let text = format!("control request {name:?} is not supported");
            // Standard error may be closed; the answer says it all the same.
            let _ = writeln!(run.err, "{text}");
            return Some(Err(text));
        }
    };
    run.host.serve(&request.id, body, ops.iter().cloned().map(Wanted::Done).collect(), shape);
    for op in ops {
        let _ = handle.ops.send(op).await;
    }
    None
}

fn server(change: ServerChange) -> (Vec<Op>, Shape) {
    (vec![Op::Server { change }], Shape::Nothing)
}

/// Asks for all that an answer to `initialize` holds.
pub(super) async fn initialized(run: &mut Run<'_>, handle: &Handle, request: &Request) {
    let ops = [Builtin::Model, Builtin::Agents].map(|builtin| Op::builtin(builtin, ""));
    run.host.serve(&request.id, &request.body, ops.iter().cloned().map(Wanted::Done).collect(), Shape::Initialized);
    for op in ops {
        let _ = handle.ops.send(op).await;
    }
    if let Some(title) = request.body["title"].as_str().filter(|title| !title.trim().is_empty()) {
        let _ = handle.ops.send(Op::builtin(Builtin::Rename, title)).await;
    }
}

/// Does what was asked about commands in the background.
async fn commands(run: &mut Run<'_>, handle: &Handle, asked: Asked) -> outside::Answer {
    let op = match asked {
        Asked::Move => Op::Background,
        Asked::Stop(task) if !run.background.runs(&task) => return Err(background::unknown(&task)),
        Asked::Stop(task) => Op::builtin(Builtin::Tasks, format!("stop {task}")),
        Asked::Output(task) => return run.background.output(&task, run.session.as_ref()),
    };
    let _ = handle.ops.send(op).await;
    Ok(json!({}))
}

/// Stops what runs. Prompts that wait run all the same, unless they are to be dropped, too.
async fn interrupt(run: &mut Run<'_>, handle: &Handle, body: &Value, prompts: &mut Lines) -> Value {
    let mut receipt = json!({});
    if body["cancel_queued"] == true {
        receipt["cancelled"] = json!(prompts.drop_named(|_| true));
        for id in run.steering.ids() {
            let _ = handle.ops.send(Op::Unqueue { id }).await;
        }
    }
    receipt["still_queued"] = json!(prompts.named().collect::<Vec<_>>());
    let _ = handle.ops.send(Op::Interrupt).await;
    receipt
}

async fn set_mode(run: &mut Run<'_>, handle: &Handle, mode: &Value) -> outside::Answer {
    let mode: Mode = serde_json::from_value(mode.clone()).map_err(|_| format!("unknown permission mode {mode}"))?;
    let bypass = mode == Mode::Bypass && !run.may_bypass;
    if bypass {
        return Err("bypassPermissions has to be allowed when the session starts".to_owned());
    }
    let _ = handle.ops.send(Op::SetMode { mode }).await;
    Ok(json!({}))
}

fn read_file(run: &Run<'_>, body: &Value) -> outside::Answer {
    let given = body["path"].as_str().ok_or("`path` is missing")?;
    let cwd = run.session.as_ref().map(|session| session.cwd.as_path()).unwrap_or(Path::new("."));
    let path = cwd.join(given);
    let most = body["max_bytes"].as_u64().unwrap_or(FILE).min(FILE << 4);
    let failed = |error: io::Error| format!("{} cannot be read: {error}", path.display());
    // A pipe would never end.
    if !std::fs::metadata(&path).map_err(failed)?.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    let mut bytes = Vec::new();
    let mut file = std::fs::File::open(&path).map_err(failed)?.take(most + 1);
    file.read_to_end(&mut bytes).map_err(failed)?;
    let truncated = bytes.len() as u64 > most;
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let mut answer = json!({ "absPath": path });
    if body["encoding"] == "base64" {
        answer["encoding"] = "base64".into();
        answer["contents"] = base64::engine::general_purpose::STANDARD.encode(&bytes).into();
    } else {
        let text = String::from_utf8_lossy(&bytes);
        if matches!(text, std::borrow::Cow::Owned(_)) {
            answer["lossy"] = true.into();
        }
        answer["contents"] = text.into();
    }
    if truncated {
        answer["truncated"] = true.into();
    }
    Ok(answer)
}

/// Why nothing can be answered with what the engine told.
pub(super) fn unanswered() -> answers::Answered {
    answers::Answered::Now(Err("cocode could not find that out".to_owned()))
}
