//! What runs in the background, as lines of `stream-json`, and what programs may ask about them.

use serde_json::{Value, json};

use crate::protocol::SessionInfo;
use crate::protocol::task::{Step, Task};
use crate::session::entry::{Begun, Ended, Status, TaskSort};
use crate::session::store::Store;
use crate::tools;

/// Most bytes of output that a program is given: its end.
const OUTPUT: u64 = 8 * 1024;

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// Lets what is waited for continue in the background.
    Move,
    Stop(String),
    Output(String),
}

impl Asked {
    /// Of a request by its name; none where it is about something else.
    pub(super) fn read(name: &str, request: &Value) -> Option<Asked> {
        let task = || request["task_id"].as_str().unwrap_or_default().to_owned();
        match name {
            "background_tasks" => Some(Asked::Move),
            "stop_task" => Some(Asked::Stop(task())),
            "get_task_output" => Some(Asked::Output(task())),
            _ => None,
        }
    }
}

/// Those that were begun in this run.
#[derive(Debug, Default)]
pub(super) struct Background {
    begun: Vec<Begun>,
    running: Vec<Begun>,
}

impl Background {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn runs(&self, task: &str) -> bool {
        self.running.iter().any(|begun| begun.task == task)
    }

    /// Takes what runs now, and how one has ended: the lines that tell it.
    pub(super) fn take(
        &mut self,
        running: Vec<Begun>,
        ended: Option<&Ended>,
        session: Option<&SessionInfo>,
    ) -> Vec<Value> {
        let mut lines = Vec::new();
        for begun in running.iter().filter(|begun| !self.begun.contains(begun)) {
            let mut line = system("task_started", &begun.task, session);
            line["tool_use_id"] = json!(begun.call);
            line["description"] = begun.title().into();
            line["task_type"] = kind(&begun.sort).into();
            line["is_backgrounded"] = true.into();
            if let TaskSort::Agent { agent, .. } = &begun.sort {
                line["subagent_type"] = agent.as_str().into();
                line["spawn_depth"] = 1.into();
                line["prompt"] = begun.command.as_str().into();
            }
            lines.push(line);
        }
        self.begun.extend(running.iter().filter(|begun| !self.begun.contains(begun)).cloned().collect::<Vec<_>>());
        self.running = running;
        if let Some(ended) = ended {
            lines.extend(self.over(ended, session));
        }
        let task = |begun: &Begun| json!({ "task_id": begun.task, "task_type": kind(&begun.sort), "description": begun.title() });
        let mut changed = system("background_tasks_changed", "", session);
        changed.as_object_mut().into_iter().for_each(|line| drop(line.remove("task_id")));
        changed["tasks"] = self.running.iter().map(task).collect();
        lines.push(changed);
        lines
    }

    fn over(&self, ended: &Ended, session: Option<&SessionInfo>) -> [Value; 2] {
        let (told, now) = match ended.status {
            Status::Completed => ("completed", "completed"),
            Status::Failed => ("failed", "failed"),
            Status::Stopped => ("stopped", "killed"),
        };
        let mut updated = system("task_updated", &ended.task, session);
        updated["patch"] = json!({ "status": now });
        let mut line = system("task_notification", &ended.task, session);
        line["tool_use_id"] = json!(self.begun.iter().find(|begun| begun.task == ended.task).map(|begun| &begun.call));
        line["status"] = told.into();
        line["output_file"] = json!(session.map(|session| store(session).task_output(&ended.task)));
        line["summary"] = ended.line().into();
        let (tokens, tools) = ended.report.as_ref().map(|report| (report.tokens, report.tools)).unwrap_or_default();
        line["usage"] = json!({ "total_tokens": tokens, "tool_uses": tools, "duration_ms": ended.millis });
        [updated, line]
    }

    /// How far a sub-agent is, where it runs in the background; what it says goes to the call that launched it.
    pub(super) fn progress(&self, task: &Task, session: Option<&SessionInfo>) -> Option<Value> {
        let Step::Doing { what } = &task.step else { return None };
        let begun = self.running.iter().find(|begun| begun.call == task.call && begun.agent() == Some(&task.id))?;
        let mut line = system("task_progress", &begun.task, session);
        line["tool_use_id"] = json!(begun.call);
        line["description"] = begun.title().into();
        line["usage"] = json!({ "total_tokens": task.tokens, "tool_uses": task.tools, "duration_ms": task.millis });
        line["last_tool_name"] = json!(what.split_once('(').map(|(tool, _)| tool));
        Some(line)
    }

    /// The end of what one has written.
    ///
    /// # Errors
    /// Why there is nothing to give.
    pub(super) fn output(&self, task: &str, session: Option<&SessionInfo>) -> Result<Value, String> {
        let known = self.begun.iter().any(|begun| begun.task == task);
        let session = session.filter(|_| known).ok_or_else(|| unknown(task))?;
        let (bytes, output) = tools::tail(&store(session).task_output(task), OUTPUT)
            .map_err(|error| format!("the output of {task} cannot be read: {error}"))?;
        Ok(json!({ "output": output, "total_bytes": bytes, "truncated": bytes > OUTPUT }))
    }
}

/// As the SDKs call it.
fn kind(sort: &TaskSort) -> &'static str {
    match sort {
        TaskSort::Shell => "local_bash",
        TaskSort::Monitor => "monitor",
        TaskSort::Agent { .. } => "local_agent",
    }
}

pub(super) fn unknown(task: &str) -> String {
    format!("nothing called {task:?} in the background")
}

fn store(session: &SessionInfo) -> Store {
    Store::new(session.log.parent().unwrap_or(&session.log).to_owned())
}

fn system(subtype: &str, task: &str, session: Option<&SessionInfo>) -> Value {
    json!({
        "type": "system",
        "subtype": subtype,
        "task_id": task,
        "uuid": uuid::Uuid::new_v4(),
        "session_id": session.map(|session| &session.id),
    })
}
