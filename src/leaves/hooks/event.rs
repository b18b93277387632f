//! What can happen, and what hooks are told of it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::stdx::nearest::nearest;

/// When hooks run. The names are those of Claude Code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Event {
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    PostToolBatch,
    PermissionRequest,
    UserPromptSubmit,
    SessionStart,
    SessionEnd,
    PreCompact,
    PostCompact,
    Stop,
    StopFailure,
    SubagentStart,
    SubagentStop,
    CwdChanged,
    Notification,
    CacheBreak,
    UserPromptExpansion,
    PermissionDenied,
    InstructionsLoaded,
    ConfigChange,
    PreModelSwitch,
    PostModelSwitch,
    TaskCreated,
    TaskCompleted,
}

/// Events of Claude Code that nothing here makes happen: a hook on one of them never runs.
const ELSEWHERE: [&str; 9] = [
    "Setup",
    "DirectoryAdded",
    "FileChanged",
    "Elicitation",
    "ElicitationResult",
    "WorktreeCreate",
    "WorktreeRemove",
    "MessageDisplay",
    "TeammateIdle",
];

impl Event {
    /// Every event, in the order in which help texts list them.
    pub const ALL: [Event; 25] = [
        Event::PreToolUse,
        Event::PostToolUse,
        Event::PostToolUseFailure,
        Event::PostToolBatch,
        Event::PermissionRequest,
        Event::UserPromptSubmit,
        Event::SessionStart,
        Event::SessionEnd,
        Event::PreCompact,
        Event::PostCompact,
        Event::Stop,
        Event::StopFailure,
        Event::SubagentStart,
        Event::SubagentStop,
        Event::CwdChanged,
        Event::Notification,
        Event::CacheBreak,
        Event::UserPromptExpansion,
        Event::PermissionDenied,
        Event::InstructionsLoaded,
        Event::ConfigChange,
        Event::PreModelSwitch,
        Event::PostModelSwitch,
        Event::TaskCreated,
        Event::TaskCompleted,
    ];

    /// Whether it is something that happens to one call of a tool.
    pub(super) fn of_a_call(self) -> bool {
        use Event::{PermissionDenied, PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse};
        matches!(self, PreToolUse | PostToolUse | PostToolUseFailure | PermissionRequest | PermissionDenied)
    }

    /// Whether hooks of it are there to stop something: one that does not run leaves a hole.
    pub fn guards(self) -> bool {
        matches!(self, Event::PreToolUse | Event::PermissionRequest | Event::UserPromptSubmit)
    }

    pub fn name(self) -> &'static str {
        match self {
            Event::PreToolUse => "PreToolUse",
            Event::PostToolUse => "PostToolUse",
            Event::PostToolUseFailure => "PostToolUseFailure",
            Event::PostToolBatch => "PostToolBatch",
            Event::PermissionRequest => "PermissionRequest",
            Event::UserPromptSubmit => "UserPromptSubmit",
            Event::SessionStart => "SessionStart",
            Event::SessionEnd => "SessionEnd",
            Event::PreCompact => "PreCompact",
            Event::PostCompact => "PostCompact",
            Event::Stop => "Stop",
            Event::StopFailure => "StopFailure",
            Event::SubagentStart => "SubagentStart",
            Event::SubagentStop => "SubagentStop",
            Event::CwdChanged => "CwdChanged",
            Event::Notification => "Notification",
            Event::CacheBreak => "CacheBreak",
            Event::UserPromptExpansion => "UserPromptExpansion",
            Event::PermissionDenied => "PermissionDenied",
            Event::InstructionsLoaded => "InstructionsLoaded",
            Event::ConfigChange => "ConfigChange",
            Event::PreModelSwitch => "PreModelSwitch",
            Event::PostModelSwitch => "PostModelSwitch",
            Event::TaskCreated => "TaskCreated",
            Event::TaskCompleted => "TaskCompleted",
        }
    }

    pub fn named(name: &str) -> Option<Event> {
        Event::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Why hooks on an event that does not happen here never run.
    pub(super) fn unknown(name: &str) -> String {
        if ELSEWHERE.contains(&name) {
            return "Claude Code has this event and cocode does not, so its hooks never run".into();
        }
        let near = nearest(name, Event::ALL.iter().map(|event| event.name()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("no such event{hint}")
    }

    /// Whether what a hook prints joins the conversation as it is; of PreCompact, the instructions for the summary.
    pub(super) fn prints_context(self) -> bool {
        matches!(self, Event::UserPromptSubmit | Event::SessionStart | Event::PreCompact)
    }

    /// Whether exit code 2 stops something. Elsewhere there is nothing to stop: the user reads it.
    pub(super) fn blocks(self) -> bool {
        match self {
            Event::PreToolUse
            | Event::PermissionRequest
            | Event::PostToolUse
            | Event::PostToolUseFailure
            | Event::PostToolBatch
            | Event::UserPromptSubmit
            | Event::PreCompact
            | Event::Stop
            | Event::SubagentStop
            | Event::UserPromptExpansion
            | Event::ConfigChange
            | Event::PreModelSwitch
            | Event::TaskCreated
            | Event::TaskCompleted => true,
            Event::SessionStart
            | Event::SessionEnd
            | Event::PostCompact
            | Event::StopFailure
            | Event::SubagentStart
            | Event::CwdChanged
            | Event::Notification
            | Event::CacheBreak
            | Event::PermissionDenied
            | Event::InstructionsLoaded
            | Event::PostModelSwitch => false,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where it happened: what every hook is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub session: String,
    /// The log of the session; it may not exist yet.
    pub transcript: PathBuf,
    /// Where hooks run.
    pub cwd: PathBuf,
    pub project: PathBuf,
    /// The permission mode's name.
    pub mode: &'static str,
    /// The sub-agent in which it happened; none in the main conversation.
    pub agent: Option<Worker>,
}

/// A sub-agent, as hooks are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: String,
    /// `Explore`, for example.
    pub kind: String,
    pub transcript: PathBuf,
}

/// One thing that happened. Made by the constructor of its event, so that no field is forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Occasion {
    pub event: Event,
    /// What matchers look at; none where every hook of the event runs.
    pub(super) subject: Option<String>,
    /// The conditions of hooks that hold for it.
    pub(super) meets: BTreeSet<String>,
    fields: Map<String, Value>,
}

impl Occasion {
    fn new(event: Event, subject: Option<&str>, fields: Value) -> Occasion {
        let fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
        Occasion { event, subject: subject.map(str::to_owned), meets: BTreeSet::new(), fields }
    }

    /// The same, with the conditions of hooks that hold for it.
    pub fn meeting(self, meets: BTreeSet<String>) -> Occasion {
        Occasion { meets, ..self }
    }

    /// A tool is about to be called.
    pub fn pre_tool_use(tool: &str, input: &Value, call: &str) -> Occasion {
        let fields = json!({ "tool_name": tool, "tool_input": input, "tool_use_id": call });
        Occasion::new(Event::PreToolUse, Some(tool), fields)
    }

    /// A call has run and done what it should, in so many milliseconds. `response` is an object.
    pub fn post_tool_use(tool: &str, input: &Value, call: &str, response: Value, millis: u64) -> Occasion {
        let fields = json!({
            "tool_name": tool, "tool_input": input, "tool_response": response, "tool_use_id": call, "duration_ms": millis,
        });
        Occasion::new(Event::PostToolUse, Some(tool), fields)
    }

    /// A call has run and failed.
    pub fn post_tool_use_failure(tool: &str, input: &Value, call: &str, error: &str, millis: u64) -> Occasion {
        let fields = json!({
            "tool_name": tool, "tool_input": input, "error": error, "tool_use_id": call, "duration_ms": millis,
        });
        Occasion::new(Event::PostToolUseFailure, Some(tool), fields)
    }

    /// All calls of a reply have run; `calls` are objects like those of `post_tool_use`.
    pub fn post_tool_batch(calls: &[Value]) -> Occasion {
        Occasion::new(Event::PostToolBatch, None, json!({ "tool_calls": calls }))
    }

    /// A person is about to be asked whether a call may run.
    pub fn permission_request(tool: &str, input: &Value, call: &str) -> Occasion {
        let fields = json!({ "tool_name": tool, "tool_input": input, "tool_use_id": call });
        Occasion::new(Event::PermissionRequest, Some(tool), fields)
    }

    pub fn user_prompt_submit(prompt: &str) -> Occasion {
        Occasion::new(Event::UserPromptSubmit, None, json!({ "prompt": prompt }))
    }

    pub fn session_start(source: StartSource) -> Occasion {
        Occasion::new(Event::SessionStart, Some(source.name()), json!({ "source": source.name() }))
    }

    pub fn session_end(reason: EndReason) -> Occasion {
        Occasion::new(Event::SessionEnd, Some(reason.name()), json!({ "reason": reason.name() }))
    }

    /// The conversation is about to be compacted, by whichever tier. A block keeps it as it is.
    pub fn pre_compact(trigger: Trigger, instructions: &str) -> Occasion {
        let fields = json!({ "trigger": trigger.name(), "custom_instructions": instructions });
        Occasion::new(Event::PreCompact, Some(trigger.name()), fields)
    }

    pub fn post_compact(trigger: Trigger, tier: &str, before: u64, after: u64) -> Occasion {
        let fields = json!({ "trigger": trigger.name(), "tier": tier, "tokens_before": before, "tokens_after": after });
        Occasion::new(Event::PostCompact, Some(trigger.name()), fields)
    }

    /// Tokens that the provider had in its cache were paid for again. `broke` says how many and why.
    pub fn cache_break(why: &str, broke: &Value) -> Occasion {
        Occasion::new(Event::CacheBreak, Some(why), json!({ "cache_break": broke }))
    }

    /// The agent has nothing more to do. `active`: it already continued once because a hook said so. `last` is what it said.
    pub fn stop(active: bool, last: &str) -> Occasion {
        Occasion::new(Event::Stop, None, json!({ "stop_hook_active": active, "last_assistant_message": last }))
    }

    /// The turn ended because of an error: what kind, and in words.
    pub fn stop_failure(kind: &str, words: &str, last: &str) -> Occasion {
        let fields = json!({ "error": kind, "error_details": words, "last_assistant_message": last });
        Occasion::new(Event::StopFailure, Some(kind), fields)
    }

    /// Commands work in another folder from now on.
    pub fn cwd_changed(old: &Path, new: &Path) -> Occasion {
        Occasion::new(Event::CwdChanged, None, json!({ "old_cwd": old, "new_cwd": new }))
    }

    /// `kind` is the agent's type, `Explore` for example.
    pub fn subagent_start(id: &str, kind: &str) -> Occasion {
        Occasion::new(Event::SubagentStart, Some(kind), json!({ "agent_id": id, "agent_type": kind }))
    }

    pub fn subagent_stop(worker: &Worker, active: bool, last: &str) -> Occasion {
        let Worker { id, kind, transcript } = worker;
        let fields = json!({
            "stop_hook_active": active, "agent_id": id, "agent_type": kind, "agent_transcript_path": transcript,
            "last_assistant_message": last,
        });
        Occasion::new(Event::SubagentStop, Some(kind), fields)
    }

    /// The user is wanted: `permission_prompt`, `idle_prompt`.
    pub fn notification(kind: &str, message: &str) -> Occasion {
        let fields = json!({ "notification_type": kind, "message": message });
        Occasion::new(Event::Notification, Some(kind), fields)
    }

    /// A call was denied by rules or by the mode, and why.
    pub fn permission_denied(tool: &str, input: &Value, call: &str, reason: &str) -> Occasion {
        let fields = json!({ "tool_name": tool, "tool_input": input, "tool_use_id": call, "reason": reason });
        Occasion::new(Event::PermissionDenied, Some(tool), fields)
    }

    /// A skill that the user typed, or a prompt of an MCP server, is about to become a prompt.
    pub fn user_prompt_expansion(name: &str, args: &str, prompt: &str) -> Occasion {
        let kind = if name.starts_with("mcp__") { "mcp_prompt" } else { "slash_command" };
        let fields = json!({
            "expansion_type": kind, "command_name": name, "command_args": args, "prompt": prompt,
        });
        Occasion::new(Event::UserPromptExpansion, Some(name), fields)
    }

    /// The model is told of a memory file. `kind` is `User`, `Project` or `Local`.
    pub fn instructions_loaded(file: &Path, kind: &str, reason: &str) -> Occasion {
        let fields = json!({ "file_path": file, "memory_type": kind, "load_reason": reason });
        Occasion::new(Event::InstructionsLoaded, Some(reason), fields)
    }

    /// A file of settings is about to be changed from inside a session.
    pub fn config_change(source: &str, file: &Path) -> Occasion {
        Occasion::new(Event::ConfigChange, Some(source), json!({ "source": source, "file_path": file }))
    }

    pub fn pre_model_switch(from: &str, to: &str) -> Occasion {
        Occasion::new(Event::PreModelSwitch, Some(to), json!({ "from_model": from, "to_model": to }))
    }

    pub fn post_model_switch(from: &str, to: &str) -> Occasion {
        Occasion::new(Event::PostModelSwitch, Some(to), json!({ "from_model": from, "to_model": to }))
    }

    /// The agent put a new todo on its list.
    pub fn task_created(id: &str, subject: &str, description: &str) -> Occasion {
        let fields = json!({ "task_id": id, "task_subject": subject, "task_description": description });
        Occasion::new(Event::TaskCreated, None, fields)
    }

    /// The agent says that a todo is done.
    pub fn task_completed(id: &str, subject: &str, description: &str) -> Occasion {
        let fields = json!({ "task_id": id, "task_subject": subject, "task_description": description });
        Occasion::new(Event::TaskCompleted, None, fields)
    }

    /// As reports name it: `PreToolUse:Bash`.
    pub fn name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{}:{subject}", self.event),
            None => self.event.to_string(),
        }
    }

    /// What the hooks read on standard input.
    pub(super) fn input(&self, place: &Place) -> Vec<u8> {
        let mut input = json!({
            "session_id": place.session,
            "transcript_path": place.transcript,
            "cwd": place.cwd,
            "permission_mode": place.mode,
            "hook_event_name": self.event.name(),
        });
        if let Value::Object(object) = &mut input {
            if let Some(agent) = &place.agent {
                object
                    .extend([("agent_id", &agent.id), ("agent_type", &agent.kind)].map(|(k, v)| (k.into(), json!(v))));
            }
            object.extend(self.fields.clone());
        }
        format!("{input}\n").into_bytes()
    }
}

/// How a session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartSource {
    Startup,
    Resume,
    Clear,
    Compact,
}

impl StartSource {
    fn name(self) -> &'static str {
        match self {
            StartSource::Startup => "startup",
            StartSource::Resume => "resume",
            StartSource::Clear => "clear",
            StartSource::Compact => "compact",
        }
    }
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// `/clear` began another one.
    Clear,
    /// Another one was resumed in its place.
    Resume,
    /// The program ends.
    Exit,
}

impl EndReason {
    fn name(self) -> &'static str {
        match self {
            EndReason::Clear => "clear",
            EndReason::Resume => "resume",
            EndReason::Exit => "prompt_input_exit",
        }
    }
}

/// Who wanted the compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Manual,
    Auto,
}

impl Trigger {
    fn name(self) -> &'static str {
        match self {
            Trigger::Manual => "manual",
            Trigger::Auto => "auto",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_says_what_happened() {
        let place = Place {
            session: "s".into(),
            transcript: "/h/s/transcript.jsonl".into(),
            cwd: "/p/sub".into(),
            project: "/p".into(),
            mode: "plan",
            agent: None,
        };
        let input = json!({ "command": "ls" });
        let worker = Worker { id: "a1".into(), kind: "Explore".into(), transcript: "/h/a1".into() };
        for (occasion, name, fields) in [
            (
                Occasion::pre_tool_use("Bash", &input, "c1"),
                "PreToolUse:Bash",
                r#""tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c1""#,
            ),
            (
                Occasion::post_tool_use("Bash", &input, "c1", json!({ "stdout": "a" }), 5),
                "PostToolUse:Bash",
                r#""tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":{"stdout":"a"},"tool_use_id":"c1","duration_ms":5"#,
            ),
            (
                Occasion::post_tool_use_failure("Bash", &input, "c1", "no", 5),
                "PostToolUseFailure:Bash",
                r#""tool_name":"Bash","tool_input":{"command":"ls"},"error":"no","tool_use_id":"c1","duration_ms":5"#,
            ),
            (
                Occasion::permission_request("Bash", &input, "c1"),
                "PermissionRequest:Bash",
                r#""tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c1""#,
            ),
            (Occasion::user_prompt_submit("hi"), "UserPromptSubmit", r#""prompt":"hi""#),
            (Occasion::session_start(StartSource::Compact), "SessionStart:compact", r#""source":"compact""#),
            (Occasion::session_end(EndReason::Exit), "SessionEnd:prompt_input_exit", r#""reason":"prompt_input_exit""#),
            (
                Occasion::pre_compact(Trigger::Manual, "keep x"),
                "PreCompact:manual",
                r#""trigger":"manual","custom_instructions":"keep x""#,
            ),
            (
                Occasion::post_compact(Trigger::Auto, "prune", 9, 3),
                "PostCompact:auto",
                r#""trigger":"auto","tier":"prune","tokens_before":9,"tokens_after":3"#,
            ),
            (Occasion::post_tool_batch(&[json!({ "a": 1 })]), "PostToolBatch", r#""tool_calls":[{"a":1}]"#),
            (Occasion::stop(true, "Done."), "Stop", r#""stop_hook_active":true,"last_assistant_message":"Done.""#),
            (
                Occasion::stop_failure("rate_limit", "wait", ""),
                "StopFailure:rate_limit",
                r#""error":"rate_limit","error_details":"wait","last_assistant_message":"""#,
            ),
            (
                Occasion::cwd_changed(Path::new("/p"), Path::new("/p/a")),
                "CwdChanged",
                r#""old_cwd":"/p","new_cwd":"/p/a""#,
            ),
            (
                Occasion::subagent_start("a1", "Explore"),
                "SubagentStart:Explore",
                r#""agent_id":"a1","agent_type":"Explore""#,
            ),
            (
                Occasion::subagent_stop(&worker, false, "Found."),
                "SubagentStop:Explore",
                r#""stop_hook_active":false,"agent_id":"a1","agent_type":"Explore","agent_transcript_path":"/h/a1","last_assistant_message":"Found.""#,
            ),
            (
                Occasion::permission_denied("Bash", &input, "c1", "a rule"),
                "PermissionDenied:Bash",
                r#""tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c1","reason":"a rule""#,
            ),
            (
                Occasion::user_prompt_expansion("commit", "all", "/commit all"),
                "UserPromptExpansion:commit",
                r#""expansion_type":"slash_command","command_name":"commit","command_args":"all","prompt":"/commit all""#,
            ),
            (
                Occasion::user_prompt_expansion("mcp__srv__go", "", "/mcp__srv__go"),
                "UserPromptExpansion:mcp__srv__go",
                r#""expansion_type":"mcp_prompt","command_name":"mcp__srv__go","command_args":"","prompt":"/mcp__srv__go""#,
            ),
            (
                Occasion::instructions_loaded(Path::new("/p/CLAUDE.md"), "Project", "session_start"),
                "InstructionsLoaded:session_start",
                r#""file_path":"/p/CLAUDE.md","memory_type":"Project","load_reason":"session_start""#,
            ),
            (
                Occasion::config_change("user_settings", Path::new("/c/config.toml")),
                "ConfigChange:user_settings",
                r#""source":"user_settings","file_path":"/c/config.toml""#,
            ),
            (Occasion::pre_model_switch("a/b", "a/c"), "PreModelSwitch:a/c", r#""from_model":"a/b","to_model":"a/c""#),
            (
                Occasion::post_model_switch("a/b", "a/c"),
                "PostModelSwitch:a/c",
                r#""from_model":"a/b","to_model":"a/c""#,
            ),
            (
                Occasion::task_created("1", "Test it", "Testing it"),
                "TaskCreated",
                r#""task_id":"1","task_subject":"Test it","task_description":"Testing it""#,
            ),
            (
                Occasion::task_completed("1", "Test it", "Testing it"),
                "TaskCompleted",
                r#""task_id":"1","task_subject":"Test it","task_description":"Testing it""#,
            ),
            (
                Occasion::notification("idle_prompt", "x"),
                "Notification:idle_prompt",
                r#""notification_type":"idle_prompt","message":"x""#,
            ),
        ] {
            assert_eq!(occasion.name(), name);
            let common = format!(
                r#"{{"session_id":"s","transcript_path":"/h/s/transcript.jsonl","cwd":"/p/sub","permission_mode":"plan","hook_event_name":"{}""#,
                occasion.event
            );
            assert_eq!(String::from_utf8(occasion.input(&place)).unwrap(), format!("{common},{fields}}}\n"));
        }
    }

    #[test]
    fn a_sub_agent_is_named() {
        let worker = Worker { id: "a1".into(), kind: "Explore".into(), transcript: "/h/a1".into() };
        let place = Place {
            session: "s".into(),
            transcript: "/t".into(),
            cwd: "/p".into(),
            project: "/p".into(),
            mode: "default",
            agent: Some(worker),
        };
        let input = String::from_utf8(Occasion::user_prompt_submit("x").input(&place)).unwrap();
        assert!(input.ends_with("\"agent_id\":\"a1\",\"agent_type\":\"Explore\",\"prompt\":\"x\"}\n"), "{input}");
    }

    #[test]
    fn names_are_found_again() {
        for event in Event::ALL {
            assert_eq!(Event::named(event.name()), Some(event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.name());
        }
        assert_eq!(Event::named("pretooluse"), None);
    }
}
