//! What single lines of `stream-json` hold: the schema that wrappers of Claude Code read.

use serde_json::{Value, json};

use crate::commands::Registry;
use crate::hooks::{Ended, Report};
use crate::message::{Block, Content, Message, Outcome, Role, StopReason, ToolResult, Usage};
use crate::protocol::task::Step;
use crate::protocol::{Compaction, SessionInfo, Task};
use crate::session::entry::CacheBreak;

/// The first line: what the session is, and what may be typed in it.
pub(super) fn init(session: Option<&SessionInfo>, registry: &Registry) -> Value {
    let commands: Vec<&str> =
        registry.all().filter(|command| !command.needs_terminal()).map(|command| command.name.as_str()).collect();
    let servers = session.into_iter().flat_map(|session| &session.servers);
    let servers: Vec<Value> = servers.map(|server| json!({ "name": server.name, "status": server.state })).collect();
    let plugins = session.map(|session| &session.plugins);
    let loaded = plugins.into_iter().flat_map(|plugins| &plugins.loaded);
    let loaded: Vec<Value> = loaded
        .map(|row| json!({ "name": row.name, "path": row.install_path, "source": row.id, "version": row.version }))
        .collect();
    let errors = plugins.into_iter().flat_map(|plugins| &plugins.errors);
    let errors: Vec<Value> = errors
        .map(|(plugin, message)| json!({ "plugin": plugin, "type": "plugin-error", "message": message }))
        .collect();
    let mut line = json!({
        "type": "system",
        "subtype": "init",
        "cwd": session.map(|session| &session.cwd),
        "session_id": session.map(|session| &session.id),
        "tools": session.map_or(&[][..], |session| &session.tools),
        "mcp_servers": servers,
        "model": session.map(|session| &session.model.model),
        "permissionMode": session.map(|session| session.mode),
        "sandbox": session.map(|session| json!({
            "level": session.sandbox.level.name(),
            "reason": &session.sandbox.why,
        })),
        "slash_commands": commands,
        "plugins": loaded,
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
pub(super) fn below(task: &Task, session: Option<&str>) -> Option<Value> {
    let Step::Said { message: said } = &task.step else { return None };
    let mut line = message(said, session)?;
    line["parent_tool_use_id"] = json!(task.call);
    for part in line["message"]["content"].as_array_mut().into_iter().flatten() {
        for key in ["id", "tool_use_id"] {
            if let Some(id) = part.get(key).and_then(Value::as_str) {
                part[key] = format!("{}_{id}", task.id).into();
            }
        }
    }
    Some(line)
}

/// A message as a line; `None` for what only the model reads.
pub(super) fn message(message: &Message, session: Option<&str>) -> Option<Value> {
    if message.role == Role::Assistant {
        let origin = message.origin.as_ref();
        let content: Vec<Value> = message.blocks.iter().filter_map(assistant_block).collect();
        return Some(json!({
            "type": "assistant",
            "message": {
                "type": "message",
                "role": "assistant",
                "model": origin.map(|origin| &origin.model),
                "content": content,
                "stop_reason": message.stop.as_ref().map(stop_word),
                "usage": message.usage.as_ref().map(usage),
            },
            "parent_tool_use_id": null,
            "session_id": session,
        }));
    }
    let results: Vec<Value> = message.results().map(result_block).collect();
    (!results.is_empty()).then(|| {
        json!({
            "type": "user",
            "message": { "role": "user", "content": results },
            "parent_tool_use_id": null,
            "session_id": session,
        })
    })
}

/// A hook that ran.
pub(super) fn hook(report: &Report, session: Option<&str>) -> Value {
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
    json!({
        "type": "system",
        "subtype": "hook_response",
        "hook_name": report.name,
        "hook_event": report.event,
        "stdout": report.stdout,
        "stderr": report.stderr,
        "output": output,
        "exit_code": report.code,
        "outcome": outcome,
        "session_id": session,
    })
}

/// What a request paid for twice, and why.
pub(super) fn cache(broke: &CacheBreak, session: Option<&str>) -> Value {
    json!({ "type": "system", "subtype": "cache_break", "cache_break": broke, "session_id": session })
}

/// What is reported of compaction: that it runs, how it ended, where the conversation was cut, and what was cleared.
pub(super) fn compaction(step: &Compaction, session: Option<&str>) -> Vec<Value> {
    let status =
        |status: Value| json!({ "type": "system", "subtype": "status", "status": status, "session_id": session });
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
                "trigger": receipt.trigger,
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
                "session_id": session,
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
            "session_id": session,
        })],
        Compaction::Progress { .. }
        | Compaction::SessionMemoryApplied { .. }
        | Compaction::ThresholdExceeded { .. } => Vec::new(),
    }
}

fn assistant_block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text, .. } => json!({ "type": "text", "text": text }),
        Block::Thinking { text, .. } => json!({ "type": "thinking", "thinking": text }),
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
    })
}

fn stop_word(stop: &StopReason) -> String {
    match stop {
        StopReason::EndTurn => "end_turn".into(),
        StopReason::ToolUse => "tool_use".into(),
        StopReason::MaxTokens => "max_tokens".into(),
        StopReason::StopSequence => "stop_sequence".into(),
        StopReason::Pause => "pause_turn".into(),
        StopReason::Interrupted => "interrupted".into(),
        StopReason::Refusal(word) | StopReason::Other(word) => word.clone(),
    }
}
