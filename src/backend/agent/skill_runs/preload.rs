//! Skills that a sub-agent begins with: their text is in its context before its prompt, as if it had called them.

use std::sync::Arc;

use super::{Caller, Expansion};
use crate::commands::Skill;
use crate::message::Message;
use crate::permission::{Entry, Source};
use crate::protocol::Event;
use crate::session;
use crate::tools::RULES;

impl Expansion<'_> {
    /// Reads the skills of these names into the conversation, each once; one that continues later has them already. What
    /// cannot be had is told, and costs nothing else. Of a skill only the text counts here: neither its model nor its
    /// hooks, and its rules only for the commands in the text.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::agent) async fn preload(&mut self, names: &[String]) -> Result<(), session::Error> {
        for name in names {
            match self.agent.runs.view().find(name, Caller::Model) {
                Ok(skill) if self.knows(&skill) => {}
                Ok(skill) => self.preload_one(&skill).await?,
                Err(problem) => {
                    self.mailbox.emit(Event::Notice { text: format!("`skills` of its definition: {problem}") }).await;
                }
            }
        }
        Ok(())
    }

    fn knows(&self, skill: &Skill) -> bool {
        self.agent.conversation.facts().invoked.iter().any(|invoked| invoked.name == skill.name)
    }

    async fn preload_one(&mut self, skill: &Arc<Skill>) -> Result<(), session::Error> {
        let body = match skill.body() {
            Ok(body) => body,
            Err(problem) => {
                self.mailbox
                    .emit(Event::Notice { text: format!("the skill `{}` cannot be read: {problem}", skill.name) })
                    .await;
                return Ok(());
            }
        };
        // An invalid one is reported where the skill is checked. A skill that runs as this agent may have brought the same.
        let rules = self.agent.policy.rules_of(skill, None).into_iter();
        let entries: Vec<Entry> = rules
            .filter_map(|(behavior, text)| {
                Some(Entry { behavior, rule: RULES.rule(text).ok()?, source: Source::Skill })
            })
            .filter(|entry| !self.agent.policy.rules.entries().contains(entry))
            .collect();
        for Entry { behavior, rule, source } in entries.clone() {
            self.agent.policy.rules.add(behavior, rule, source);
        }
        let told = self.text(skill, &body, "").await;
        for Entry { behavior, rule, source } in &entries {
            self.agent.policy.rules.remove(*behavior, rule, *source);
        }
        let (text, attached) = told?;
        self.agent.policy.note_invoked(skill, &text, &mut self.agent.conversation)?;
        for message in std::iter::once(Message::skill(text)).chain(attached) {
            self.agent.conversation.push(message, self.mailbox).await?;
        }
        Ok(())
    }
}
