//! A call that the model did not make: a command that a skill wants run before its text is sent. It goes the way of every
//! call, and is shown like one; the model reads only what becomes of its output.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::admit::Admission;
use crate::agent::Agent;
use crate::agent::mailbox::Mailbox;
use crate::message::{Block, CallId, Message, Outcome, ToolCall, ToolResult};
use crate::session;

impl Agent {
    /// Runs one call under the rules of all calls.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn aside(
        &mut self,
        tool: &str,
        input: Value,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, session::Error> {
        let id = CallId::nth(self.conversation.session.next_call());
        let call = ToolCall { id: id.clone(), name: tool.into(), input, invalid: None, wire: None };
        let shown = Message::reply(vec![Block::ToolCall(call.clone())]);
        self.push(Message { agent_visible: false, ..shown }, mailbox).await?;
        let result = match self.admit(call, mailbox, cancel).await? {
            Admission::Run(ready) => {
                self.before(&ready).await?;
                let ready = vec![ready];
                let mut watched = self.watch_calls(&ready);
                let done = self.run_all(ready, mailbox, cancel).await?;
                let none = || ToolResult::of_text(id, Outcome::Interrupted, "It did not run.");
                let result = done.into_iter().next().map_or_else(none, |done| done.result);
                watched.note(&result);
                self.after_calls(watched, mailbox, cancel).await?;
                result
            }
            Admission::Refused(result) | Admission::Stopped(result) | Admission::Halted(result) => result,
        };
        let shown = Message::tool_results(vec![result.clone()]);
        self.push(Message { agent_visible: false, ..shown }, mailbox).await?;
        Ok(result)
    }
}
