//! Reads the calls of a reply, each once: what its tool makes of the input goes with the call until it has run.

use std::path::PathBuf;

use crate::message::{CallId, ToolCall};
use crate::tools::{Call, Dirs, Manners, Toolbox, answer, mcp_call};

/// A call that was read, and not decided about yet.
#[derive(Debug)]
pub(in crate::agent) struct Prepared {
    pub(super) call: ToolCall,
    /// Those of its tool; None where there is no such tool.
    manners: Option<Manners>,
    /// What it will do, or what the model is told instead.
    pub(super) read: Result<Call, String>,
    /// The folder that its paths start from.
    pub(super) cwd: PathBuf,
}

impl Prepared {
    /// The id of a call that brings the answer in the shape that was asked for.
    pub(in crate::agent) fn answer(&self) -> Option<CallId> {
        (self.call.name == answer::NAME).then(|| self.call.id.clone())
    }
}

impl Prepared {
    /// Reads a call that is made in these folders.
    pub(super) fn read(call: ToolCall, toolbox: &Toolbox, dirs: Dirs) -> Prepared {
        let call = mcp_call::named(call);
        let tool = toolbox.get(&call.name);
        let read = match (tool, &call.invalid) {
            (None, _) => {
                let specs = toolbox.specs();
                let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
                Err(format!("There is no tool named {:?}. The tools are: {}.", call.name, names.join(", ")))
            }
            (_, Some(raw)) => {
                let start: String = raw.chars().take(200).collect();
                Err(format!(
                    "The arguments are not valid JSON: {start:?}. Send one JSON object that matches the schema."
                ))
            }
            (Some(tool), None) => tool.call_named(&call.name, &call.input, &dirs),
        };
        let title = read.as_ref().ok().map(|read| read.title().to_owned());
        let manners = tool.map(|tool| tool.manners());
        Prepared { call: ToolCall { title, ..call }, manners, read, cwd: dirs.cwd }
    }

    /// Whether it may run beside its neighbours.
    pub(super) fn reads(&self) -> bool {
        self.call.invalid.is_none() && self.manners.is_some_and(|manners| manners.reads)
    }
}
