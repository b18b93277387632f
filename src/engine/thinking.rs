//! `/thinking`, and a level chosen by key.

use super::Engine;
use crate::protocol::ThinkingInfo;
use crate::thinking::{Level, Source};

impl Engine {
    /// Chooses a level for the session; none takes the choice back.
    pub(super) async fn set_thinking(&mut self, level: Option<Level>) {
        if let Err(error) = self.agent.set_thinking(level, &self.mailbox).await {
            self.fail(error).await;
        }
    }

    /// `/thinking [none|deep|ultra|auto]`, and `/effort` with the words of other programs.
    pub(super) async fn thinking(&mut self, args: &str) {
        let level = match args {
            "" => return self.tell(report(&self.agent.thinking_info())).await,
            "auto" => None,
            word => match Level::of_effort(word).map_or_else(|| word.parse(), Ok) {
                Ok(level) => Some(level),
                Err(problem) => return self.fail(format!("{problem}, or auto to leave it to the configuration")).await,
            },
        };
        let info = self.agent.thinking_info();
        if let Some(variable) = info.locked {
            return self.fail(format!("The level is locked by {variable}: start without it to choose another.")).await;
        }
        if self.agent.session.read_only() {
            return self.fail("This session is open read-only.").await;
        }
        self.set_thinking(level).await;
        self.tell(report(&self.agent.thinking_info())).await;
    }
}

/// What holds, why, and what else there is.
fn report(info: &ThinkingInfo) -> String {
    let mut text = format!("Thinking: **{}**", info.level);
    if let Some(budget) = info.budget {
        text.push_str(&format!(", at most {budget} tokens"));
    }
    let source = match (info.source, &info.locked) {
        (Source::Environment, variable) => format!("by {}", variable.as_deref().unwrap_or("the environment")),
        (Source::Session, _) => "for this session (`/thinking auto` resets it)".into(),
        (Source::Flag, _) => "by `--thinking`".into(),
        (Source::Configuration, _) => "by the setting `thinking.default_level`".into(),
        (Source::Model, _) => "as the default of this model".into(),
        (Source::Keyword, _) => "by a word in the message".into(),
        (Source::Default, _) => String::new(),
    };
    if !source.is_empty() {
        text.push_str(&format!(", chosen {source}"));
    }
    text.push('.');
    if info.asked != info.level {
        text.push_str(&format!(" {} was requested, but this model does not support it.", info.asked));
    }
    let known: Vec<String> = info.supported.iter().map(|level| format!("`{level}`")).collect();
    text.push_str(&format!("\n\nThis model supports {}.", known.join(", ")));
    if info.supported.len() > 1 {
        text.push_str(" `deepthink` or `ultrathink` in a message applies to that message.");
    }
    text
}
