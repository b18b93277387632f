//! How hard the model thinks about the next request: from the user's choices to the parameters that a provider takes.

use std::sync::Arc;

use super::Model;
use super::mailbox::Prompt;
use crate::message::{Block, Kind, Message, Role, Wire};
use crate::protocol::ThinkingInfo;
use crate::provider::Thinking as Parameter;
use crate::provider::catalog::{ModelSpec, ThinkingParam, ThinkingStyle};
use crate::thinking::{Abilities, Asked, Effective, Found, Level, Override, Settings, effective};

/// What of thinking is not in the log: it does not outlive the turn.
#[derive(Debug, Default)]
pub(super) struct Thinking {
    /// What the message that is being answered asks for.
    keyword: Option<Found>,
    /// What its caller asks for.
    turn: Option<Override>,
    /// What the last request was sent with.
    sent: Option<Parameter>,
}

impl Thinking {
    /// Forgets what was sent: another model is asked.
    pub(super) fn forget(&mut self) {
        self.sent = None;
    }

    /// A turn begins: the words of the one before no longer count.
    pub(super) fn begin(&mut self) {
        (self.keyword, self.turn) = (None, None);
    }

    /// Looks for keywords in what the user typed, and at what came with it. A prompt that steers takes the place of the
    /// earlier one.
    pub(super) fn note(&mut self, prompt: &Prompt, settings: &Settings) {
        if let Some(found) = settings.keywords.find(&prompt.typed()) {
            self.keyword = Some(found);
        }
        self.turn = prompt.thinking.or(self.turn);
    }

    /// The settings of sub-agents: what was asked for with the prompt holds for them, too. A word in it is meant for the
    /// agent that reads it.
    pub(super) fn below(&self, settings: &Settings) -> Settings {
        Settings { flag: self.turn.or(settings.flag), ..settings.clone() }
    }

    /// The parameters of the next request of the turn. Where the wire refuses a change while calls are being answered, they
    /// stay as they were until these are.
    pub(super) fn of_request(&mut self, messages: &[Arc<Message>], choice: &Choice<'_>) -> Parameter {
        let spec = &choice.model.spec;
        match &self.sent {
            Some(sent) if spec.thinking_per_turn && answers_calls(messages) => sent.clone(),
            _ => {
                let effective = choice.effective(self.keyword.as_ref(), self.turn);
                let now = parameter(&effective, spec, choice.settings.interleaved);
                self.sent = Some(now.clone());
                now
            }
        }
    }
}

/// What a level is chosen from besides the prompt.
pub(super) struct Choice<'a> {
    pub(super) settings: &'a Settings,
    /// What the user chose for the session.
    pub(super) session: Option<Level>,
    pub(super) model: &'a Model,
}

impl Choice<'_> {
    fn abilities(&self) -> Abilities {
        abilities(&self.model.spec, self.model.provider.wire())
    }

    /// What counts for a message with this keyword, that came with this.
    fn effective(&self, keyword: Option<&Found>, turn: Option<Override>) -> Effective {
        effective(&Asked { keyword, session: self.session, turn }, self.settings, &self.abilities())
    }

    /// How hard the next prompt is thought about, for front ends.
    pub(super) fn info(&self) -> ThinkingInfo {
        let Effective { level, asked, budget, source, .. } = self.effective(None, None);
        ThinkingInfo {
            level,
            asked,
            source,
            budget,
            session: self.session,
            supported: self.abilities().supported,
            locked: self.settings.environment.variable().map(str::to_owned),
            keywords: self.settings.keywords.clone(),
        }
    }
}

/// What the catalog says of a model, in levels.
pub fn abilities(spec: &ModelSpec, wire: &str) -> Abilities {
    let given = &spec.thinking_override;
    let chat = wire == "openai-chat";
    let supported = match (spec.thinking, spec.thinking_param) {
        (ThinkingStyle::None, _) => &Level::ALL[..1],
        (_, ThinkingParam::None) if chat => &Level::ALL[..1],
        // On or off is all that can be said.
        (_, ThinkingParam::EnableThinking) if chat => &Level::ALL[..2],
        _ => &Level::ALL[..],
    };
    let supported = given.supported_levels.clone().unwrap_or_else(|| supported.to_vec());
    let supported = Level::ALL.into_iter().filter(|level| *level == Level::None || supported.contains(level)).collect();
    let takes_budget = spec.thinking == ThinkingStyle::Budget;
    Abilities {
        supported,
        default_level: given.default_level,
        max_budget: takes_budget.then(|| given.max_budget.unwrap_or(spec.max_budget)),
        max_output: spec.max_output,
        deep_budget: given.budget_by_level.deep,
        ultra_budget: given.budget_by_level.ultra,
    }
}

/// No thinking, as the model's provider takes that.
pub(super) fn off(spec: &ModelSpec) -> Parameter {
    if spec.thinking == ThinkingStyle::None { Parameter::Unset } else { Parameter::Off }
}

/// The one place where a level becomes what a provider takes.
pub fn parameter(effective: &Effective, spec: &ModelSpec, interleaved: bool) -> Parameter {
    match (effective.level, spec.thinking, effective.budget) {
        (_, ThinkingStyle::None, _) => Parameter::Unset,
        (Level::None, ..) if !effective.explicit => Parameter::Unset,
        (Level::None, ..) => Parameter::Off,
        (_, ThinkingStyle::Budget, Some(budget)) if interleaved => Parameter::Interleaved(budget),
        (_, ThinkingStyle::Budget, Some(budget)) => Parameter::Budget(budget),
        (level, ThinkingStyle::Adaptive, _) => Parameter::Adaptive { effort: Some(word(level, spec)) },
        (level, ..) => Parameter::Effort(word(level, spec)),
    }
}

/// The model's own word for a level: the first of those meant that it knows.
fn word(level: Level, spec: &ModelSpec) -> String {
    let meant: &[&str] = match (level, spec.thinking) {
        (Level::UltraThink, ThinkingStyle::Level) => &["high"],
        (Level::UltraThink, _) => &["xhigh", "max", "high"],
        (_, ThinkingStyle::Level) => &["medium", "high"],
        _ => &["high", "medium"],
    };
    let known = meant.iter().find(|word| spec.levels.iter().any(|level| level == **word));
    let strongest = || spec.levels.last().cloned().unwrap_or_else(|| "high".to_owned());
    known.map_or_else(strongest, |word| (*word).to_owned())
}

/// Whether the request answers calls of the last reply.
fn answers_calls(messages: &[Arc<Message>]) -> bool {
    let since = messages.iter().rev().take_while(|message| message.role == Role::User);
    since.into_iter().any(|message| message.kind == Kind::ToolResult)
}

/// The messages as another provider may read them: signatures and encrypted reasoning go back only to who made them.
pub(super) fn without_foreign_wire(messages: Vec<Arc<Message>>, provider: &str) -> Vec<Arc<Message>> {
    let own = |message: &Message| message.origin.as_ref().is_none_or(|origin| origin.provider == provider);
    messages
        .into_iter()
        .map(|message| match own(&message) || !message.blocks.iter().any(|block| wire(block).is_some()) {
            true => message,
            false => Arc::new(stripped(&message)),
        })
        .collect()
}

fn wire(block: &Block) -> Option<&Wire> {
    match block {
        Block::Text { wire, .. } | Block::Thinking { wire, .. } => wire.as_ref(),
        Block::ToolCall(call) => call.wire.as_ref(),
        Block::ToolResult(_) | Block::Media(_) => None,
    }
}

fn stripped(message: &Message) -> Message {
    let mut message = message.clone();
    for block in &mut message.blocks {
        match block {
            Block::Text { wire, .. } | Block::Thinking { wire, .. } => *wire = None,
            Block::ToolCall(call) => call.wire = None,
            Block::ToolResult(_) | Block::Media(_) => {}
        }
    }
    message
}

#[cfg(test)]
mod tests;
