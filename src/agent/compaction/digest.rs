//! After a round of calls: puts the oldest results behind a digest, where the settings want that.

use std::sync::Arc;

use crate::agent::side_request;
use crate::agent::turn::Turn;
use crate::compact::{Summary, digest};
use crate::message::{Message, Usage};
use crate::provider::{Purpose, Request, Thinking};
use crate::session;
use crate::session::entry::EntryKind;

/// Who speaks when a digest is asked for.
const SYSTEM: &str = "You condense tool results for a programmer who continues to work with them.";

impl Turn<'_> {
    /// Archives what is more than the settings leave visible.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn digest_results(&mut self) -> Result<(), session::Error> {
        let output = &self.agent.settings.compact.tool_output;
        if output.summary == Summary::Off || !self.agent.settings.compact.enabled {
            return Ok(());
        }
        let Some(plan) = digest::plan(self.agent.conversation.context(), output.visible) else { return Ok(()) };
        let (most, heuristic) = (output.output_chars, output.heuristic_chars);
        let asked = match output.summary {
            Summary::Llm => {
                let text = plan.instruction(output.input_chars, most);
                self.ask_digest(text).await?
            }
            Summary::Heuristic | Summary::Off => None,
        };
        let text = asked.map_or_else(|| plan.heuristic(heuristic), |text| digest::clipped(&text, most));
        let digest = Arc::new(plan.message(&text));
        self.agent.conversation.append(EntryKind::ToolResultsArchived { calls: plan.calls, digest })?;
        Ok(())
    }

    /// What a model makes of the results; none when it fails.
    async fn ask_digest(&mut self, text: String) -> Result<Option<String>, session::Error> {
        let (model, request) = self.agent.request_beside();
        let request = Request {
            system: SYSTEM.into(),
            tools: Arc::new([]),
            messages: vec![Arc::new(Message::prompt(text))],
            max_output: model.spec.max_output.min(4_000),
            thinking: Thinking::Unset,
            purpose: Purpose::Summary,
            cache_key: String::new(),
            ..request
        };
        let (reply, usage) = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Ok(None),
            asked = side_request::send(&model, request, 0) => asked,
        };
        if usage != Usage::default() {
            let session = &mut self.agent.conversation.session;
            self.agent.spending.note(session, "digest of tool results", (model.name(), &model.spec), usage)?;
        }
        match reply {
            Ok(reply) => Ok(Some(reply.text().trim().to_owned()).filter(|text| !text.is_empty())),
            Err(error) => {
                tracing::info!(%error, "the model returned no digest");
                Ok(None)
            }
        }
    }
}
