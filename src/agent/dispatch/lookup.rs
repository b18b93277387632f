//! Calls of a summarizer, which may look things up: nobody is asked, and neither conversation nor screen shows them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::admit::Admission;
use super::{Heard, Policy};
use crate::agent::Agent;
use crate::agent::mailbox::Mailbox;
use crate::message::{Outcome, ToolCall, ToolResult};
use crate::provider::ToolSpec;
use crate::session;
use crate::tools;

/// What tools of MCP servers begin with.
const MCP: &str = "mcp__";

impl Agent {
    /// What a summarizer may call: Read, and what MCP servers declare to change nothing.
    pub(in crate::agent) fn lookup_specs(&self) -> Vec<ToolSpec> {
        let reads = |name: &str| {
            let tool = self.toolbox.get(name).filter(|_| name.starts_with(MCP));
            name == tools::READ || tool.is_some_and(|tool| tool.manners().reads)
        };
        self.tool_specs.iter().filter(|spec| reads(&spec.name)).cloned().collect()
    }

    /// Answers one of its calls.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn look_up(
        &mut self,
        call: ToolCall,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, session::Error> {
        if !self.lookup_specs().iter().any(|spec| spec.name == call.name) {
            let text = "This tool is not available here: answer with what you know.";
            return Ok(ToolResult::of_text(call.id, Outcome::Denied, text));
        }
        let (mailbox, prepared) = (Mailbox::unattended(), self.prepare_call(call));
        let permitted = match self.admit(prepared, Policy::LOOKUP, &mailbox, cancel).await? {
            Admission::Run(permitted) => permitted,
            Admission::Refused(result) | Admission::Stopped(result) | Admission::Halted(result) => return Ok(result),
        };
        let host = Arc::new(self.host(&mailbox, cancel));
        Ok(self.runner(host, cancel).run(permitted, Heard::Nobody).await.result)
    }
}
