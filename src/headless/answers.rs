//! What the program at the other end is answered: the data of reports in the shapes that the SDKs read.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::control::{self, Shape};
use super::host::Found;
use super::{Run, lines};
use crate::commands::{Command, Kind, ListKind, Registry};
use crate::hooks;
use crate::permission::Behavior;
use crate::plugins;
use crate::protocol::report::{Agents, Cost, Part, Report, ServerRow, ServersChanged, Setting, Window};
use crate::protocol::{Changes, Item, Listed, ModelList, Op, PromptRow, RewindWhat, RuleRow, restored_line};
use crate::report;
use crate::session::entry::Seq;
use crate::session::ids;
use crate::stdx::outside;

/// What comes of what was found.
pub(super) enum Answered {
    Now(outside::Answer),
    /// First this has to be done.
    After(Op, Shape),
}

/// Answers a request with what the engine told.
pub(super) fn answer(run: &Run<'_>, shape: Shape, body: &Value, found: &[Found]) -> Answered {
    let failed = found.iter().find_map(|found| match found {
        Found::Failed(text) => Some(text.clone()),
        _ => None,
    });
    let reports = || {
        found.iter().filter_map(|found| match found {
            Found::Report(report) => Some(&**report),
            _ => None,
        })
    };
    let first = || reports().next();
    if let Some(text) = failed.clone().filter(|_| shape != Shape::Rewound) {
        return Answered::Now(Err(text));
    }
    Answered::Now(Ok(match (shape, first()) {
        (Shape::Nothing, Some(Report::ServersChanged(ServersChanged { errors, .. }))) if !errors.is_empty() => {
            return Answered::Now(Err(errors[0].1.clone()));
        }
        (Shape::Nothing, _) => json!({}),
        (Shape::Initialized, _) => initialized(run, body, reports()),
        (Shape::Servers, Some(Report::Servers(rows))) => json!({ "mcpServers": servers(rows) }),
        // The session began without servers, and there is nothing that could reach them.
        (Shape::ServersChanged, Some(Report::ServersChanged(change))) => changed(change),
        (Shape::Window, Some(Report::Window(window))) => usage(run, window),
        (Shape::Models, Some(Report::Models(list))) => json!({ "models": models(&run.first_model, list) }),
        (Shape::Cost, Some(Report::Cost(cost))) => json!({ "text": report::markdown(&Report::Cost(cost.clone())) }),
        (Shape::Usage, Some(Report::Cost(cost))) => session_usage(run, cost),
        (Shape::Rules, Some(Report::Rules(rows))) => rules(rows),
        (Shape::Hooks, Some(Report::Hooks(rows))) => hooks(rows),
        (Shape::Skills, _) => json!({ "skills": skills(&run.registry) }),
        (Shape::Plugins, _) => reloaded(run, reports()),
        (Shape::Settings, Some(Report::Settings(settings))) => set(&settings.settings),
        (Shape::RewindTo, _) => return rewind_to(run, body, found),
        (Shape::WouldRewind, _) => would_rewind(run, body, found),
        (Shape::Rewound, _) => rewound(found, failed),
        _ => return control::unanswered(),
    }))
}

fn initialized<'a>(run: &Run<'_>, body: &Value, reports: impl Iterator<Item = &'a Report>) -> Value {
    let mut answer = json!({
        "commands": commands(&run.registry),
        "agents": [],
        "models": [],
        "output_style": run.session.as_ref().map_or("default", |session| session.output_style.as_str()),
        "available_output_styles": ["default"],
        "account": {},
        "hook_on_failure_supported": true,
        "claude_code_version": lines::CC_COMPAT,
        "cocode_version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
    });
    for report in reports {
        match report {
            Report::Agents(found) => answer["agents"] = agents(found),
            Report::Models(list) => answer["models"] = models(&run.first_model, list).into(),
            _ => {}
        }
    }
    if body["hooks"].is_object() {
        answer["hooks_applied"] = true.into();
    }
    if body["plugins"].is_array() {
        answer["plugins_applied"] = true.into();
    }
    if body["mcpServers"].is_object() {
        answer["mcp_servers_applied"] = true.into();
    }
    if let Some(manifests) = body["sdkMcpServerManifests"].as_object() {
        let parked = |(name, given): (&String, &Value)| {
            let word = if given["initializeResult"].is_object() { "parked" } else { "malformed" };
            (name.clone(), Value::from(word))
        };
        answer["sdk_mcp_manifests_parked"] = manifests.iter().map(parked).collect::<Map<_, _>>().into();
    }
    answer
}

fn command(command: &Command) -> Value {
    let mut row = json!({
        "name": command.name,
        "description": command.description,
        "argumentHint": command.argument_hint.as_deref().unwrap_or_default(),
    });
    if !command.aliases.is_empty() {
        row["aliases"] = json!(command.aliases);
    }
    if matches!(command.kind, Kind::Builtin(_)) {
        row["builtin"] = true.into();
    }
    row
}

fn listed(registry: &Registry) -> impl Iterator<Item = &Command> {
    registry.all().filter(|command| !command.needs_terminal() && !command.hidden)
}

fn commands(registry: &Registry) -> Vec<Value> {
    listed(registry).map(command).collect()
}

fn skills(registry: &Registry) -> Vec<Value> {
    listed(registry).filter(|command| matches!(command.kind, Kind::Skill(_))).map(command).collect()
}

fn agents(found: &Agents) -> Value {
    let counts = found.agents.iter().filter(|row| row.shadowed_by.is_none());
    counts
        .map(|row| {
            let mut agent = json!({ "name": row.name, "description": row.description });
            if let Some(model) = &row.model {
                agent["model"] = model.as_str().into();
            }
            agent
        })
        .collect()
}

/// The one that the session began with comes first, by the name that the SDKs give it.
fn models(first: &str, list: &ModelList) -> Vec<Value> {
    let row = |provider: &str, id: &str, detail: &str| json!({ "value": id, "resolvedModel": id, "displayName": id, "description": format!("{provider} · {detail}") });
    let all = list
        .providers
        .iter()
        .flat_map(|provider| provider.models.iter().map(move |model| row(&provider.title, &model.id, &model.detail)));
    let own = json!({ "value": "default", "resolvedModel": first, "displayName": "Default", "description": first });
    std::iter::once(own).chain(all).collect()
}

fn servers(rows: &[ServerRow]) -> Vec<Value> {
    let row = |row: &ServerRow| {
        let mut server = json!({ "name": row.name, "status": row.state, "scope": row.scope });
        if let Some(error) = &row.error {
            server["error"] = error.as_str().into();
        }
        if !row.offers.is_empty() {
            server["tools"] = row.offers.iter().map(|name| json!({ "name": name })).collect();
        }
        server
    };
    rows.iter().map(row).collect()
}

fn changed(change: &ServersChanged) -> Value {
    let errors: Map<String, Value> =
        change.errors.iter().map(|(name, why)| (name.clone(), why.as_str().into())).collect();
    json!({ "added": change.added, "removed": change.removed, "errors": errors })
}

/// What fills the window, part by part.
fn usage(run: &Run<'_>, window: &Window) -> Value {
    let most = window.tokens.unwrap_or(window.marks.available).max(1);
    let mut categories = Vec::new();
    let mut add = |id: &str, name: &str, tokens: u64, kind: &str, color: &str| {
        if tokens > 0 {
            categories.push(json!({ "id": id, "name": name, "tokens": tokens, "color": color, "kind": kind }));
        }
    };
    for (part, tokens) in window.parts.iter().filter(|(part, _)| !part.inner()) {
        let (id, name, color) = match part {
            Part::SystemPrompt => ("system_prompt", "System prompt", "promptBorder"),
            Part::Tools => ("system_tools", "System tools", "inactive"),
            Part::MemoryFiles => ("memory_files", "Memory files", "claude"),
            Part::Skills => ("skills", "Skills", "warning"),
            _ => ("messages", "Messages", "purple_FOR_SUBAGENTS_ONLY"),
        };
        add(id, name, *tokens, "used", color);
    }
    let buffer = if window.auto { most.saturating_sub(window.marks.target) } else { 0 };
    add("autocompact_buffer", "Autocompact buffer", buffer, "buffer", "inactive");
    add("free_space", "Free space", most.saturating_sub(window.used + buffer), "free", "promptBorder");
    let last = run.last_usage;
    let mut answer = json!({
        "categories": categories,
        "totalTokens": window.used,
        "maxTokens": most,
        "rawMaxTokens": most,
        "percentage": window.used * 100 / most,
        "gridRows": [],
        "model": window.model,
        "memoryFiles": [],
        "mcpTools": [],
        "agents": [],
        "isAutoCompactEnabled": window.auto,
        "apiUsage": last.map(|usage| json!({
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
        })),
    });
    if window.auto {
        answer["autoCompactThreshold"] = window.marks.target.into();
    }
    answer
}

fn session_usage(run: &Run<'_>, cost: &Cost) -> Value {
    let models: Map<String, Value> = cost
        .models
        .iter()
        .map(|row| (row.model.clone(), lines::model_usage(&row.usage, row.usd, run.limits(&row.model))))
        .collect();
    json!({
        "session": {
            "total_cost_usd": cost.models.iter().filter_map(|row| row.usd).sum::<f64>(),
            "total_api_duration_ms": run.api_millis,
            "total_duration_ms": run.millis,
            "total_lines_added": 0,
            "total_lines_removed": 0,
            "model_usage": models,
        },
        "subscription_type": null,
        "rate_limits_available": false,
        "rate_limits": null,
        "behaviors": null,
    })
}

fn rules(rows: &[RuleRow]) -> Value {
    let of = |behavior: Behavior| -> Vec<Value> {
        let rows = rows.iter().filter(|row| row.behavior == behavior);
        rows.map(|row| json!({ "rule": row.rule, "source": row.source })).collect()
    };
    json!({ "state": { "allow": of(Behavior::Allow), "ask": of(Behavior::Ask), "deny": of(Behavior::Deny) } })
}

fn hooks(rows: &[hooks::Row]) -> Value {
    let event = |event: &hooks::Event| {
        let count = rows.iter().filter(|row| row.event == *event).count();
        json!({ "name": event.name(), "summary": "", "supportsMatcher": true, "hookCount": count })
    };
    let catalog = |event: &hooks::Event| json!({ "name": event.name(), "summary": "", "supportsMatcher": true });
    let row = |row: &hooks::Row| {
        json!({
            "event": row.event,
            "matcher": row.matcher.as_deref().unwrap_or_default(),
            "source": row.origin.to_string(),
            "sourceLabel": row.origin.to_string(),
            "type": "command",
            "displayText": row.command,
            "commandText": row.command,
            "contentLabel": "Command",
            "runsOnce": row.once,
            "runsInBackground": row.beside,
        })
    };
    json!({
        "events": hooks::Event::ALL.iter().map(event).collect::<Vec<_>>(),
        "hooks": rows.iter().map(row).collect::<Vec<_>>(),
        "eventCatalog": hooks::Event::ALL.iter().map(catalog).collect::<Vec<_>>(),
        "policy": {
            "disabledByPolicy": false,
            "managedOnly": false,
            "pluginOnly": false,
            "allDisabled": rows.iter().all(|row| row.off) && !rows.is_empty(),
            "policyHookCount": rows.iter().filter(|row| matches!(row.origin, hooks::Origin::Managed(_))).count(),
        },
    })
}

fn reloaded<'a>(run: &Run<'_>, reports: impl Iterator<Item = &'a Report>) -> Value {
    let mut answer =
        json!({ "commands": commands(&run.registry), "agents": [], "plugins": [], "mcpServers": [], "error_count": 0 });
    for report in reports {
        match report {
            Report::Agents(found) => answer["agents"] = agents(found),
            Report::Servers(rows) => answer["mcpServers"] = servers(rows).into(),
            Report::Plugins(rows) => {
                let enabled = rows.iter().filter(|row| row.enabled);
                answer["plugins"] = enabled.map(plugin).collect();
            }
            _ => {}
        }
    }
    answer
}

fn plugin(row: &plugins::Row) -> Value {
    let mut plugin = json!({ "name": row.name, "path": row.install_path, "source": row.id });
    if let Some(version) = &row.version {
        plugin["version"] = version.as_str().into();
    }
    plugin
}

fn set(settings: &[Setting]) -> Value {
    let value = |setting: &Setting| {
        let text = setting.value.as_deref().unwrap_or_default();
        let read = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
        let value = read.and_then(|mut table| table.remove("value")).and_then(|value| serde_json::to_value(value).ok());
        (setting.key.clone(), value.unwrap_or_else(|| text.into()))
    };
    json!({ "effective": settings.iter().map(value).collect::<Map<_, _>>(), "sources": [] })
}

/// The prompt that a request names by the id that the program, or we, gave it.
fn prompt(run: &Run<'_>, body: &Value, found: &[Found]) -> Option<PromptRow> {
    let id = body["user_message_id"].as_str().and_then(|id| Uuid::parse_str(id).ok())?;
    let session = run.session.as_ref()?.id.as_str();
    let rows = found.iter().find_map(|found| match found {
        Found::Listed(listed) => match &**listed {
            Listed::Prompts(rows) => Some(rows),
            _ => None,
        },
        _ => None,
    })?;
    let named: Option<Seq> = run.prompts.seq(id);
    rows.iter().find(|row| named == Some(row.seq) || ids::of_part(session, row.seq, 0) == id).cloned()
}

fn rewind_to(run: &Run<'_>, body: &Value, found: &[Found]) -> Answered {
    let Some(prompt) = prompt(run, body, found) else {
        return Answered::Now(Ok(json!({ "canRewind": false, "error": "no message of this session has that id" })));
    };
    match body["dry_run"] == true {
        true => Answered::After(Op::List { what: ListKind::Changes }, Shape::WouldRewind),
        false => Answered::After(Op::Rewind { to: prompt.seq, what: RewindWhat::Code }, Shape::Rewound),
    }
}

/// The files that going back would change, as the list of changes has them.
fn would_rewind(run: &Run<'_>, body: &Value, found: &[Found]) -> Value {
    let to = prompt(run, body, found).map(|prompt| prompt.seq).unwrap_or_default();
    let changes = found.iter().find_map(|found| match found {
        Found::Listed(listed) => match &**listed {
            Listed::Changes(changes) => Some(changes),
            _ => None,
        },
        _ => None,
    });
    let scopes = changes.map_or(&[][..], |changes: &Changes| &changes.scopes);
    let later = scopes.iter().filter(|scope| scope.turn.is_some_and(|turn| turn >= to));
    let files: BTreeSet<String> =
        later.flat_map(|scope| &scope.files).map(|file| file.path.display().to_string()).collect();
    json!({ "canRewind": true, "filesChanged": files })
}

fn rewound(found: &[Found], failed: Option<String>) -> Value {
    let mut answer = json!({ "canRewind": true, "filesChanged": [] });
    if let Some(text) = failed {
        answer = json!({ "canRewind": false, "error": text });
    }
    for found in found {
        let Found::Restored(item) = found else { continue };
        let Item::FilesRestored { restored, refused, by, .. } = &**item else { continue };
        answer["filesChanged"] = restored.iter().map(|path| path.display().to_string()).collect();
        answer["restored"] = restored.iter().map(|path| restored_line(path, by)).collect();
        if !refused.is_empty() {
            answer["error"] = refused.join("; ").into();
        }
    }
    answer
}
