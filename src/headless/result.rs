//! What is kept of a prompt while it runs, and written at its end.

use std::io;

use serde_json::json;

use super::{Exit, Output, Run, lines};
use crate::engine::Handle;
use crate::message::{Display, Kind, Outcome};
use crate::protocol::{Event, Item, Turn, restored_line};
use crate::session::entry::not_undone;

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
        let mut result = json!({
            "type": "result",
            "subtype": subtype,
            "is_error": failed,
            "duration_ms": millis,
            "num_turns": self.rounds,
            "result": self.failed.as_ref().filter(|_| failed).unwrap_or(&self.answer),
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
        self.line(&result)
    }

    pub(super) fn item(&mut self, item: Item, told: &mut Vec<String>) -> io::Result<()> {
        match item {
            Item::Message { message, .. } => {
                if message.kind == Kind::Reply && message.agent_visible {
                    self.rounds += 1;
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
                if self.output == Output::StreamJson
                    && let Some(line) = lines::message(&message, self.session_id())
                {
                    self.line(&line)?;
                }
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
