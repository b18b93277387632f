//! What single lines of `stream-json` hold: the schema that wrappers of Claude Code read.

use serde_json::{Value, json};

use uuid::Uuid;

use crate::commands::{Command, Kind, Registry};
use crate::hooks::{Ended, Report};
use crate::message::{Block, Content, Display, Message, Outcome, Role, StopReason, ToolResult, Usage};
use crate::permission::Mode;
use crate::protocol::task::Step;
use crate::protocol::{Compaction, SessionInfo, Task, Trigger};
use crate::session::entry::CacheBreak;

/// The version of Claude Code whose lines these are.
pub(super) const CC_COMPAT: &str = "2.1.330";

/// What a program may count on, by the names that the SDKs have for it.
const CAPABILITIES: [&str; 2] = ["interrupt_receipt_v1", "interrupt_cancel_queued_v1"];

/// The modes as the SDKs know them.
pub(super) fn mode(mode: Mode) -> Value {
    match mode {
        // A yes to all edits of a session.
        Mode::Edits => "acceptEdits".into(),
        mode => json!(mode),
    }
}

/// The first line of a turn: what the session is, and what may be typed in it.
pub(super) fn init(session: Option<&SessionInfo>, registry: &Registry) -> Value {
    let named = |command: &&Command| !command.needs_terminal();
    let commands: Vec<&str> = registry.all().filter(named).map(|command| command.name.as_str()).collect();
    let skills = registry.all().filter(|command| matches!(command.kind, Kind::Skill(_)));
    let skills: Vec<&str> = skills.map(|command| command.name.as_str()).collect();
    let servers = session.into_iter().flat_map(|session| &session.servers);
    let servers: Vec<Value> = servers.map(|server| json!({ "name": server.name, "status": server.state })).collect();
    let plugins = session.map(|session| &session.plugins);
    let loaded = plugins.into_iter().flat_map(|plugins| &plugins.loaded);
    let loaded: Vec<Value> = loaded
        .map(|row| {
            let mut plugin = json!({ "name": row.name, "path": row.install_path, "source": row.id });
            if let Some(version) = &row.version {
                plugin["version"] = version.as_str().into();
            }
            plugin
        })
        .collect();
    let errors = plugins.into_iter().flat_map(|plugins| &plugins.errors);
    let errors: Vec<Value> = errors
        .map(|(plugin, message)| json!({ "plugin": plugin, "type": "plugin-error", "message": message }))
        .collect();
    let mut line = json!({
        "type": "system",
        "subtype": "init",
        "apiKeySource": "none",
        "claude_code_version": CC_COMPAT,
        "cocode_version": env!("CARGO_PKG_VERSION"),
        "cwd": session.map(|session| &session.cwd),
        "session_id": session.map(|session| &session.id),
        "tools": session.map_or(&[][..], |session| &session.tools),
        "mcp_servers": servers,
        "model": session.map(|session| &session.model.model),
        "permissionMode": session.map(|session| mode(session.mode)),
        "sandbox": session.map(|session| json!({
            "level": session.sandbox.level.name(),
            "reason": &session.sandbox.why,
        })),
        "slash_commands": commands,
        "output_style": session.map_or("default", |session| session.output_style.as_str()),
        "skills": skills,
        "agents": session.map_or(&[][..], |session| &session.agents),
        "plugins": loaded,
        "capabilities": CAPABILITIES,
    });
    if !errors.is_empty() {
        line["plugin_errors"] = errors.into();
    }
    line
}

/// The answer to a request, or why it failed.
pub(super) fn control(id: &str, answer: Result<Value, String>) -> Value {
    let response = match answer {
        Ok(answer) => json!({ "subtype": "success", "request_id": id, "response": answer }),
        Err(problem) => json!({ "subtype": "error", "request_id": id, "error": problem }),
    };
    json!({ "type": "control_response", "response": response })
}

/// What a sub-agent said as a line, tied to the call that launched it. Sub-agents count their calls from 1, too, so their
/// ids bear its name.
pub(super) fn below(task: &Task) -> Vec<Value> {
    let Step::Said { message } = &task.step else { return Vec::new() };
    let mut lines = messages(message, &format!("msg_{}", Uuid::new_v4().simple()), |_| Uuid::new_v4());
    for line in &mut lines {
        line["parent_tool_use_id"] = json!(task.call);
        line["agent_id"] = task.id.as_str().into();
        line["subagent_type"] = task.agent.as_str().into();
        line["task_description"] = task.description.as_str().into();
        for part in line["message"]["content"].as_array_mut().into_iter().flatten() {
            for key in ["id", "tool_use_id"] {
                if let Some(id) = part.get(key).and_then(Value::as_str) {
                    part[key] = format!("{}_{id}", task.id).into();
                }
            }
        }
    }
    lines
}

/// A message as lines, one for each block of a reply and for each result; none for what only the model reads. `reply` is
/// what the provider might call it; each line has an id of its own.
pub(super) fn messages(message: &Message, reply: &str, id: impl Fn(usize) -> Uuid) -> Vec<Value> {
    if message.role == Role::Assistant {
        let model = message.origin.as_ref().map_or("", |origin| origin.model.as_str());
        let usage = message.usage.unwrap_or_default();
        let shown: Vec<Value> = message.blocks.iter().filter_map(assistant_block).collect();
        let last = shown.len().saturating_sub(1);
        let line = |(at, block): (usize, Value)| {
            // Why the reply ended is known with its last block.
            let stop = message.stop.as_ref().filter(|_| at == last).and_then(stop_word);
            json!({
                "type": "assistant",
                "message": self::reply(reply, model, vec![block], json!(stop), &usage),
                "parent_tool_use_id": null,
                "uuid": id(at),
            })
        };
        return shown.into_iter().enumerate().map(line).collect();
    }
    let line = |(at, result): (usize, &ToolResult)| {
        json!({
            "type": "user",
            "message": { "role": "user", "content": [result_block(result)] },
            "parent_tool_use_id": null,
            "tool_use_result": outcome(result),
            "uuid": id(at),
        })
    };
    message.results().enumerate().map(line).collect()
}

/// A reply of Anthropic's API.
pub(super) fn reply(id: &str, model: &str, content: Vec<Value>, stop: Value, usage: &Usage) -> Value {
    json!({
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "stop_details": null,
        "container": null,
        "context_management": null,
        "diagnostics": null,
        "usage": self::usage(usage),
    })
}

/// A prompt that came in, repeated with its id.
pub(super) fn replay(message: &Message, id: Uuid) -> Value {
    json!({
        "type": "user",
        "message": { "role": "user", "content": message.text() },
        "parent_tool_use_id": null,
        "isReplay": true,
        "uuid": id,
    })
}

/// What a call did, as data.
fn outcome(result: &ToolResult) -> Value {
    let text = result.text();
    match (&result.display, result.outcome) {
        (_, Outcome::Error | Outcome::Denied | Outcome::Interrupted) => format!("Error: {text}").into(),
        (Some(Display::Command { code, millis }), _) => json!({
            "stdout": text,
            "stderr": "",
            "interrupted": code.is_none(),
            "isImage": false,
            "exitCode": code,
            "durationMs": millis,
        }),
        (Some(Display::Diff(diff)), _) => json!({
            "type": if diff.created { "create" } else { "update" },
            "filePath": diff.path,
            "diff": diff.unified,
            "linesAdded": diff.added,
            "linesRemoved": diff.removed,
        }),
        (Some(Display::Todos { items }), _) => json!({ "newTodos": items }),
        (Some(Display::Agent { id, tools, tokens, millis }), _) => json!({
            "status": "completed",
            "agentId": id,
            "content": [{ "type": "text", "text": text }],
            "totalToolUseCount": tools,
            "totalTokens": tokens,
            "totalDurationMs": millis,
        }),
        (Some(Display::Launched { id, output, .. }), _) => json!({
            "status": "async_launched",
            "agentId": id,
            "outputFile": output,
            "canReadOutputFile": true,
        }),
        (Some(Display::Answer { value }), _) => value.clone(),
        (Some(Display::Line { .. } | Display::Said { .. }) | None, _) => text.into(),
    }
}

/// A hook that ran: that it began, and how it ended.
pub(super) fn hook(report: &Report) -> [Value; 2] {
    let id = Uuid::new_v4();
    let mut begun = json!({
        "type": "system",
        "subtype": "hook_started",
        "hook_id": id,
        "hook_name": report.name,
        "hook_event": report.event,
    });
    let outcome = match report.ended {
        Ended::Done => "success",
        Ended::Blocked | Ended::Failed => "error",
        Ended::TimedOut => "cancelled",
    };
    let mut output = format!("{}{}", report.stdout, report.stderr);
    // Why it failed is not always among what it wrote.
    if let Some(note) = report.note.as_ref().filter(|_| report.ended != Ended::Done && report.stderr.trim().is_empty())
    {
        output.push_str(note);
    }
    let mut ended = begun.clone();
    ended["subtype"] = "hook_response".into();
    ended["stdout"] = report.stdout.as_str().into();
    ended["stderr"] = report.stderr.as_str().into();
    ended["output"] = output.into();
    ended["outcome"] = outcome.into();
    if let Some(code) = report.code {
        ended["exit_code"] = code.into();
    }
    begun["uuid"] = json!(Uuid::new_v4());
    [begun, ended]
}

/// What a request paid for twice, and why.
pub(super) fn cache(broke: &CacheBreak) -> Value {
    json!({ "type": "system", "subtype": "cache_break", "cache_break": broke })
}

/// What is reported of compaction: that it runs, how it ended, where the conversation was cut, and what was cleared.
pub(super) fn compaction(step: &Compaction) -> Vec<Value> {
    let status = |status: Value| json!({ "type": "system", "subtype": "status", "status": status });
    match step {
        Compaction::Started { .. } => vec![status("compacting".into())],
        Compaction::Failed { trigger, reason, text, usage: spent, cost_usd } => {
            let mut ended = status(Value::Null);
            ended["compact_result"] = "failed".into();
            ended["compact_error"] = text.as_str().into();
            ended["compact_metadata"] = json!({
                "trigger": trigger,
                "reason": reason,
                "total_cost_usd": cost_usd.unwrap_or(0.0),
                "usage": usage(spent),
            });
            vec![ended]
        }
        Compaction::Completed { receipt, .. } => {
            let metadata = json!({
                "trigger": trigger(receipt.trigger),
                "tier": receipt.tier,
                "pre_tokens": receipt.before,
                "post_tokens": receipt.after,
                "saved_tokens": receipt.before.saturating_sub(receipt.after),
                "duration_ms": receipt.millis,
                "total_cost_usd": receipt.cost_usd.unwrap_or(0.0),
                "usage": usage(&receipt.usage),
            });
            let boundary = json!({
                "type": "system",
                "subtype": "compact_boundary",
                "compact_metadata": metadata,
            });
            let mut ended = status(Value::Null);
            ended["compact_result"] = "success".into();
            vec![ended, boundary]
        }
        Compaction::MicroApplied { trigger, removed_results, saved_tokens } => vec![json!({
            "type": "system",
            "subtype": "microcompact_boundary",
            "microcompact_metadata": {
                "trigger": trigger,
                "removed_results": removed_results,
                "saved_tokens": saved_tokens,
            },
        })],
        Compaction::Progress { .. }
        | Compaction::SessionMemoryApplied { .. }
        | Compaction::ThresholdExceeded { .. } => Vec::new(),
    }
}

/// Who asked for a compaction, in the words that the SDKs have for it.
fn trigger(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Manual | Trigger::Plan => "manual",
        Trigger::Auto => "auto",
    }
}

pub(super) fn assistant_block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text, .. } => json!({ "type": "text", "text": text, "citations": null }),
        Block::Thinking { text, wire } => {
            let signature = wire.as_ref().and_then(|wire| wire.data["signature"].as_str()).unwrap_or_default();
            json!({ "type": "thinking", "thinking": text, "signature": signature })
        }
        Block::ToolCall(call) => json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.input }),
        Block::ToolResult(_) | Block::Media(_) => return None,
    })
}

fn result_block(result: &ToolResult) -> Value {
    let content: Vec<Value> = result
        .content
        .iter()
        .map(|part| match part {
            Content::Text { text } => json!({ "type": "text", "text": text }),
            Content::Media(media) => {
                json!({ "type": "text", "text": format!("[{} of {} bytes]", media.media_type, media.bytes) })
            }
        })
        .collect();
    json!({ "type": "tool_result", "tool_use_id": result.id, "content": content, "is_error": result.outcome != Outcome::Ok })
}

pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "cache_creation": { "ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0 },
        "server_tool_use": { "web_search_requests": 0, "web_fetch_requests": 0 },
        "output_tokens_details": { "thinking_tokens": usage.reasoning },
        "service_tier": "standard",
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
    })
}

/// The same at the end of a reply that came in parts.
pub(super) fn delta_usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "output_tokens_details": { "thinking_tokens": usage.reasoning },
        "server_tool_use": null,
        "iterations": null,
    })
}

/// What a model was asked for.
pub(super) fn model_usage(usage: &Usage, cost: Option<f64>, limits: Option<(u64, u32)>) -> Value {
    let (window, output) = limits.unwrap_or_default();
    json!({
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "thinkingTokens": usage.reasoning,
        "cacheReadInputTokens": usage.cache_read,
        "cacheCreationInputTokens": usage.cache_write,
        "webSearchRequests": 0,
        "costUSD": cost.unwrap_or(0.0),
        "contextWindow": window,
        "maxOutputTokens": output,
    })
}

/// Why a reply ended; none where Anthropic's API has no word for it.
pub(super) fn stop_word(stop: &StopReason) -> Option<&'static str> {
    match stop {
        StopReason::EndTurn => Some("end_turn"),
        StopReason::ToolUse => Some("tool_use"),
        StopReason::MaxTokens => Some("max_tokens"),
        StopReason::StopSequence => Some("stop_sequence"),
        StopReason::Pause => Some("pause_turn"),
        StopReason::Refusal(_) => Some("refusal"),
        StopReason::Interrupted | StopReason::Other(_) => None,
    }
}
