//! Calls that the model did not make: a command that a skill wants run before its text is sent, a `!` line, a file that a
//! prompt or a skill brings along. The model reads only what becomes of their output.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::admit::Admission;
use super::{Grounds, Heard, Policy, Ready};
use crate::agent::Agent;
use crate::agent::mailbox::Mailbox;
use crate::message::{Block, CallId, Message, Outcome, ToolCall, ToolResult};
use crate::permission::{Consent, Decision, Permit, Places};
use crate::session;
use crate::tools;

impl Agent {
    /// Runs one call under the rules of all calls, and shows it like one.
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
        let prepared = self.prepare_call(ToolCall::new(id.clone(), tool, input));
        let shown = Message::reply(vec![Block::ToolCall(prepared.call.clone())]);
        self.push(Message { agent_visible: false, ..shown }, mailbox).await?;
        let result = match self.admit(prepared, Policy::ASKING, mailbox, cancel).await? {
            Admission::Run(permitted) => {
                self.before(&permitted).await?;
                let permitted = vec![permitted];
                let mut watched = self.watch_calls(&permitted);
                let done = self.run_all(permitted, mailbox, cancel).await?;
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

    /// Runs a line of the user's own through the shell tool; nobody is asked.
    ///
    /// # Errors
    /// The log cannot be written; the command did not run.
    pub async fn user_command(
        &mut self,
        command: &str,
        cancel: &CancellationToken,
        mailbox: &Mailbox,
    ) -> Result<ToolResult, session::Error> {
        let id = CallId(format!("user_{}", self.conversation.session.next_seq()));
        let permitted = match self.of_hand(id, tools::BASH, json!({ "command": command })) {
            Ok(ready) => ready.with(Permit::by_hand(), Consent::Given),
            Err((id, problem)) => return Ok(ToolResult::of_text(id, Outcome::Error, problem)),
        };
        self.before(&permitted).await?;
        let host = Arc::new(self.host(mailbox, cancel));
        Ok(self.runner(host, cancel).run(permitted, Heard::Output(mailbox)).await.result)
    }

    /// Reads a file through the Read tool, so that its limits hold, where reading it needs no question in these places. An
    /// error is the decision that forbids it.
    pub(in crate::agent) async fn attach(
        &self,
        path: &Path,
        places: Places,
        mailbox: &Mailbox,
    ) -> Result<ToolResult, Decision> {
        let ready = match self.of_hand(CallId("attachment".into()), tools::READ, json!({ "file_path": path })) {
            Ok(ready) => ready,
            Err((id, problem)) => return Ok(ToolResult::of_text(id, Outcome::Error, problem)),
        };
        let permitted = Grounds { places, ..self.grounds() }.admit(ready)?;
        let cancel = CancellationToken::new();
        let host = Arc::new(self.host(mailbox, &cancel));
        Ok(self.runner(host, &cancel).run(permitted, Heard::Nobody).await.result)
    }

    fn of_hand(&self, id: CallId, tool: &str, input: Value) -> Result<Ready, (CallId, String)> {
        if self.toolbox.get(tool).is_none() {
            return Err((id, format!("the {tool} tool is switched off")));
        }
        self.ready(self.prepare_call(ToolCall::new(id, tool, input)))
    }
}
