//! What is written at the end of a prompt.

use std::io;

use serde_json::json;

use super::{Exit, Output, Run, lines};

impl Run<'_> {
    /// Writes what the format says about the end of a prompt.
    pub(super) fn finish(&mut self, millis: u64) -> io::Result<()> {
        let failed =
            matches!(self.exit, Exit::Error | Exit::Usage | Exit::HungUp | Exit::Interrupted | Exit::Terminated);
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
                None => self.answer.trim_end().to_owned(),
            };
            if !answer.is_empty() {
                writeln!(self.out, "{answer}")?;
            }
            return self.out.flush();
        }
        let subtype = match self.exit {
            Exit::MaxTurns => "error_max_turns",
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
}
