//! What is kept of a prompt while it runs, and written at its end.

use std::io;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::host::Busy;
use super::{Exit, Output, Run, lines};
use crate::engine::Handle;
use crate::message::{Display, Kind, Message, Outcome, Role};
use crate::permission::Mode;
use crate::protocol::{Delta, Event, Item, Turn, restored_line};
use crate::session::entry::{Seq, not_undone};
use crate::session::ids;

impl Run<'_> {
    /// Writes what the format says about the end of a prompt.
    pub(super) fn finish(&mut self, millis: u64) -> io::Result<()> {
        let failed = !matches!(self.exit, Exit::Done | Exit::Refused | Exit::MaxTurns | Exit::Budget);
        if let Some(text) = &self.failed {
            writeln!(self.err, "error: {text}")?;
        }
        if !self.imports.is_empty() {
            let imports = std::mem::take(&mut self.imports).join(", ");
            writeln!(self.err, "left out of memory, since nobody can be asked: {imports}")?;
        }
        if self.exit == Exit::MaxTurns {
            writeln!(self.err, "stopped: reached the limit of model calls (--max-turns)")?;
        }
        if self.output == Output::Text {
            let answer = match &self.structured {
                Some(value) => value.to_string(),
                // A caller that asked for an object does not get prose.
                None if self.turn && self.manner.schema => String::new(),
                None => self.answer.trim_end().to_owned(),
            };
            if !answer.is_empty() {
                writeln!(self.out, "{answer}")?;
            }
            return self.out.flush();
        }
        let subtype = match self.exit {
            Exit::MaxTurns => "error_max_turns",
            Exit::Budget => "error_max_budget_usd",
            Exit::NoAnswer => "error_max_structured_output_retries",
            _ if failed => "error_during_execution",
            _ => "success",
        };
        self.busy = Busy::Not;
        self.millis = millis;
        let models: Map<String, Value> = self
            .models
            .iter()
            .map(|share| (share.model.clone(), lines::model_usage(&share.usage, share.cost_usd, share.limits)))
            .collect();
        let answered = self.prompts.take_turn();
        let mut result = json!({
            "type": "result",
            "subtype": subtype,
            "is_error": failed,
            "duration_ms": millis,
            "duration_api_ms": self.api_millis,
            "num_turns": self.rounds,
            "result": self.failed.as_ref().filter(|_| failed).unwrap_or(&self.answer),
            "stop_reason": self.stopped.as_ref().and_then(lines::stop_word),
            "modelUsage": models,
            "session_id": self.session_id(),
            "model": self.session.as_ref().map(|session| format!("{}/{}", session.model.provider, session.model.model)),
            "total_cost_usd": self.cost.unwrap_or(0.0),
            "usage": lines::usage(&self.usage),
            "permission_denials": self.denials,
        });
        if let Some(value) = &self.structured {
            result["structured_output"] = value.clone();
        }
        if let Some(report) = &self.report {
            result["report"] = json!(report);
        }
        if subtype != "success" {
            let why = self.failed.clone().unwrap_or_else(|| self.why().to_owned());
            result["errors"] = json!([why]);
        }
        result["terminal_reason"] = self.why().into();
        if let Some(last) = answered.last() {
            result["user_message_uuid"] = json!(last);
            result["user_message_uuids"] = json!(answered);
        }
        self.line(&result)?;
        self.state("idle")
    }

    /// Tells a program that asked for it what the session does.
    pub(super) fn state(&mut self, state: &str) -> io::Result<()> {
        let Some(own) = self.states.filter(|_| self.output == Output::StreamJson) else { return Ok(()) };
        let mut line = json!({ "type": "system", "subtype": "session_state_changed", "state": state });
        if own {
            line["sdk_host_only"] = true.into();
        }
        self.line(&line)
    }

    /// What a model holds, and the most of one answer.
    pub(super) fn limits(&self, model: &str) -> Option<(u64, u32)> {
        self.models.iter().find(|share| share.model == model)?.limits
    }

    /// Takes over a mode, and tells it where it is news.
    pub(super) fn told_mode(&mut self, mode: Mode) -> io::Result<()> {
        let Some(session) = self.session.as_mut().filter(|session| session.mode != mode) else { return Ok(()) };
        session.mode = mode;
        if self.output != Output::StreamJson {
            return Ok(());
        }
        let mode = lines::mode(mode);
        self.line(&json!({ "type": "system", "subtype": "status", "status": null, "permissionMode": mode }))
    }

    pub(super) fn retrying(&mut self, (attempt, of): (u32, u32), delay_ms: u64) -> io::Result<()> {
        if self.output != Output::StreamJson {
            return Ok(());
        }
        self.line(&json!({
            "type": "system",
            "subtype": "api_retry",
            "attempt": attempt,
            "max_retries": of,
            "retry_delay_ms": delay_ms,
            "error_status": null,
            "error": "unknown",
        }))
    }

    /// Why a prompt ended, in the words that the SDKs have for it.
    fn why(&self) -> &'static str {
        match self.exit {
            Exit::Done | Exit::Refused => "completed",
            Exit::MaxTurns => "max_turns",
            Exit::Budget => "budget_exhausted",
            Exit::NoAnswer => "structured_output_retry_exhausted",
            Exit::Interrupted | Exit::HungUp | Exit::Terminated => "aborted_streaming",
            Exit::Usage | Exit::Error => "api_error",
        }
    }

    /// Writes the lines of a message, and the events of the reply that it completes.
    fn message_lines(&mut self, message: &Message, seq: Seq) -> io::Result<()> {
        let session = self.session_id().unwrap_or_default().to_owned();
        let id = |part: usize| ids::of_part(&session, seq, part);
        if message.role == Role::Assistant && self.host.talk.partial {
            let (reply, before, end) = self.partial.end(message);
            let mut before = before.into_iter();
            for line in lines::messages(message, &reply, id) {
                before.next().into_iter().flatten().try_for_each(|event| self.event(event))?;
                self.line(&line)?;
            }
            return end.into_iter().try_for_each(|event| self.event(event));
        }
        let reply = format!("msg_{}", id(usize::MAX).simple());
        lines::messages(message, &reply, id).iter().try_for_each(|line| self.line(line))
    }

    /// A part of a reply as it comes.
    pub(super) fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        if !self.host.talk.partial || self.output != Output::StreamJson {
            return Ok(());
        }
        let model = self.session.as_ref().map(|session| session.model.model.clone()).unwrap_or_default();
        self.partial.more(delta, &model).into_iter().try_for_each(|event| self.event(event))
    }

    fn event(&mut self, event: Value) -> io::Result<()> {
        self.line(&json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null }))
    }

    /// A prompt is in the log: its name is known there, and it is repeated where that was asked for. Returns the name.
    fn prompt_logged(&mut self, message: &Message, seq: Seq) -> io::Result<Option<Uuid>> {
        let own = self.session_id().map(|session| ids::of_part(session, seq, 0)).unwrap_or_default();
        let name = self.prompts.logged(&message.text(), seq);
        if self.host.talk.replay && self.output == Output::StreamJson {
            self.line(&lines::replay(message, name.unwrap_or(own)))?;
        }
        Ok(name)
    }

    pub(super) fn item(&mut self, item: Item, told: &mut Vec<String>) -> io::Result<()> {
        match item {
            Item::Message { message, seq } => {
                let name = match message.kind {
                    Kind::Prompt => self.prompt_logged(&message, seq)?,
                    _ => None,
                };
                if message.kind == Kind::Reply && message.agent_visible {
                    self.rounds += 1;
                    (self.last_usage, self.stopped) = (message.usage, message.stop.clone());
                    self.tools.extend(message.calls().map(|call| (call.name.clone(), call.id.clone())));
                    let text = message.text();
                    if !text.is_empty() {
                        self.answer = text;
                    }
                }
                for result in message.results() {
                    if let (Outcome::Ok, Some(Display::Answer { value })) = (result.outcome, &result.display) {
                        self.structured = Some(value.clone());
                    }
                }
                if self.output == Output::StreamJson {
                    self.message_lines(&message, seq)?;
                }
                self.mirrored(|mirror| mirror.add(&message, seq, name))?;
            }
            Item::FilesRestored { how, turn, restored, merged, refused, by, unseen } => {
                let refused_any = !refused.is_empty();
                let mut lines: Vec<String> = restored.iter().map(|path| restored_line(path, &by)).collect();
                let of = turn.map(|turn| format!(" from turn “{turn}”")).unwrap_or_default();
                match lines.is_empty() {
                    true => lines.push(format!("{}{of}", how.nothing())),
                    false => lines.iter_mut().for_each(|line| line.push_str(&of)),
                }
                lines.extend(merged.iter().map(|path| format!("kept later changes in {}", path.display())));
                lines.extend(refused.into_iter().map(|text| format!("left alone: {text}")));
                if refused_any {
                    self.exit = Exit::Error;
                }
                lines.extend(unseen.into_iter().map(|text| not_undone(&text)));
                told.push(lines.join("\n"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes what the interrupted turn still says: the part of the answer that had arrived is its result. Returns how long
    /// the turn took, in milliseconds.
    pub(super) async fn drain(&mut self, handle: &mut Handle) -> io::Result<u64> {
        while let Some(event) = handle.events.recv().await {
            match event {
                Event::Item(item) => self.item(item, &mut Vec::new())?,
                Event::Turn(Turn::Ended { usage, cost_usd, millis, .. }) => {
                    (self.usage, self.cost) = (usage, cost_usd);
                    return Ok(millis);
                }
                Event::Closed => break,
                _ => {}
            }
        }
        Ok(0)
    }
}
