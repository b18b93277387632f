//! Skills that run as sub-agents (`context: fork`): only what comes of them reaches the conversation.

use serde_json::json;

use super::Expansion;
use crate::commands::Skill;
use crate::message::{Message, Outcome};
use crate::session;
use crate::tools;

/// The type that runs a skill which names none.
const USUAL: &str = "general-purpose";

impl Expansion<'_> {
    /// Lets a sub-agent follow a skill's text, under the rules of every launch, and says what came of it. The run is over
    /// then.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn fork(
        &mut self,
        skill: &Skill,
        text: String,
        attached: Vec<Message>,
    ) -> Result<String, session::Error> {
        let agent = skill.agent.as_deref().unwrap_or(USUAL);
        let prompt = attached.iter().fold(text, |prompt, message| format!("{prompt}\n\n{}", message.text()));
        let input = json!({ "description": format!("/{}", skill.name), "prompt": prompt, "subagent_type": agent });
        let result = self.agent.aside(tools::TASK, input, self.mailbox, self.cancel).await?;
        if let Some(at) = self.agent.runs.running(skill) {
            self.agent.end_runs(at, self.mailbox).await;
        }
        let how = match result.outcome {
            Outcome::Ok => "ran as a sub-agent; the user has not seen its report",
            Outcome::Error => "ran as a sub-agent, which failed",
            Outcome::Denied => "was not run as a sub-agent",
            Outcome::Interrupted => "was interrupted",
        };
        Ok(format!("The skill `{}` {how}:\n\n{}", skill.name, result.text()))
    }
}
