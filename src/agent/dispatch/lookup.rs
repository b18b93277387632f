//! Calls of a summarizer, which may look things up: the way of every call, but nobody is asked, and neither conversation
//! nor screen shows them.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Ready;
use super::admit::Admission;
use super::hooked::Hooked;
use crate::agent::Agent;
use crate::agent::mailbox::Mailbox;
use crate::message::{CallId, Outcome, ToolCall, ToolResult};
use crate::permission::Behavior;
use crate::provider::ToolSpec;
use crate::session;

/// The tool of our own that a summarizer has.
const READ: &str = "Read";

/// What tools of MCP servers begin with.
const MCP: &str = "mcp__";

impl Agent {
    /// What a summarizer may call: Read, and what MCP servers declare to change nothing.
    pub(in crate::agent) fn lookup_specs(&self) -> Vec<ToolSpec> {
        let reads = |name: &str| {
            let tool = self.toolbox.get(name).filter(|_| name.starts_with(MCP));
            name == READ || tool.is_some_and(|tool| tool.read_only(&serde_json::Value::Null))
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
        let refused = |text: &str| ToolResult::of_text(call.id.clone(), Outcome::Denied, text);
        if !self.lookup_specs().iter().any(|spec| spec.name == call.name) {
            return Ok(refused("This tool is not available here: answer with what you know."));
        }
        let Some(tool) = self.toolbox.get(&call.name).cloned().filter(|_| call.invalid.is_none()) else {
            return Ok(refused("The arguments are not valid JSON."));
        };
        let access = match tool.access(&call.input, &self.dirs(), self.settings.user_home.as_deref()) {
            Ok(access) => access,
            Err(problem) => return Ok(ToolResult::of_text(call.id, Outcome::Error, problem)),
        };
        // Nobody watches, and what hooks add is not a part of the conversation.
        let (unheard, _) = mpsc::channel(1);
        let mailbox = Mailbox::new(unheard);
        let beside = std::mem::take(&mut self.hooking.beside_calls);
        let hooked = self.before_call(self.ready(call.clone(), tool, access), &mailbox, cancel).await;
        self.hooking.beside_calls = beside;
        let ready = match hooked? {
            Hooked::On(ready) => ready,
            Hooked::Settled(Admission::Run(ready)) => ready,
            Hooked::Settled(Admission::Refused(result) | Admission::Stopped(result) | Admission::Halted(result)) => {
                return Ok(result);
            }
        };
        let decision = self.decide_ready(&ready);
        if decision.behavior != Behavior::Allow {
            return Ok(refused(
                "Denied: this would need the user's approval, and nobody is asked while a summary is written.",
            ));
        }
        let ready = Ready { quiet_git: decision.quiet_git, ..ready };
        let done = self.run_all(vec![ready], &mailbox, cancel).await?;
        let missing = || ToolResult::of_text(CallId(call.id.0.clone()), Outcome::Interrupted, "It did not run.");
        Ok(done.into_iter().next().map_or_else(missing, |done| done.result))
    }
}
