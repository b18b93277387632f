//! How hard the model thinks: levels, who may choose one, and what becomes of the choice on a given model. Pure.

mod keywords;
mod level;

pub use keywords::{Found, Keywords, Position, extract_keyword_positions};
pub use level::Level;

/// The smallest budget that every provider takes, in tokens; also what is left for the answer.
pub const LEAST_BUDGET: u32 = 1_024;

/// What the variables say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Environment {
    /// `COCODE_THINKING_LEVEL`
    pub level: Option<Level>,
    /// `COCODE_MAX_THINKING_TOKENS`; 0 switches thinking off.
    pub max_tokens: Option<u32>,
}

impl Environment {
    /// The variable that decides; none when the environment says nothing.
    pub fn variable(self) -> Option<&'static str> {
        match (self.level, self.max_tokens) {
            (_, Some(0)) | (None, Some(_)) => Some("COCODE_MAX_THINKING_TOKENS"),
            (Some(_), _) => Some("COCODE_THINKING_LEVEL"),
            (None, None) => None,
        }
    }
}

/// What a caller asks for: a flag, or a program that speaks the protocol, with one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Override {
    pub level: Level,
    /// In tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
}

impl Override {
    /// Reads `LEVEL[:BUDGET]`.
    ///
    /// # Errors
    /// A sentence that says what may be written.
    pub fn parse(text: &str) -> Result<Override, String> {
        let (level, budget) = match text.split_once(':') {
            Some((level, budget)) => (level, Some(budget)),
            None => (text, None),
        };
        let budget = budget
            .map(|budget| {
                let count = budget.trim().replace('_', "").parse::<u32>().ok().filter(|count| *count > 0);
                count.ok_or_else(|| format!("a budget is a number of tokens, as in `deep:12000`, not {budget:?}"))
            })
            .transpose()?;
        Ok(Override { level: level.parse()?, budget })
    }
}

/// Tokens to think with, by level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    pub deep: u32,
    pub ultra: u32,
}

/// What holds for the whole process: variables, flags and configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub environment: Environment,
    pub flag: Option<Override>,
    /// `None` if no file and no flag says anything: the program's default is not an answer.
    pub default_level: Option<Level>,
    /// Deep by default on models that can.
    pub auto_enable: bool,
    /// Thinks between tool calls, too, where that has to be asked for.
    pub interleaved: bool,
    /// Replaces the budget of every level.
    pub budget_tokens: Option<u32>,
    /// More than this is never asked of a model.
    pub max_level: Level,
    pub keywords: Keywords,
    pub budgets: Budgets,
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// In order; `none` is among them.
    pub supported: Vec<Level>,
    pub default_level: Option<Level>,
    /// Largest budget in tokens; none for a model that takes no budget.
    pub max_budget: Option<u32>,
    /// Most tokens of an answer, thoughts included.
    pub max_output: u32,
    pub deep_budget: Option<u32>,
    pub ultra_budget: Option<u32>,
}

/// What the user asks for now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// In the message that is being answered.
    pub keyword: Option<&'a Found>,
    /// By key or command; none until first used.
    pub session: Option<Level>,
    /// With the prompt of this turn; it takes the place of the flag.
    pub turn: Option<Override>,
}

/// Who decided, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Environment,
    Keyword,
    Session,
    Flag,
    Configuration,
    Model,
    /// Nobody.
    Default,
}

/// What counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// What the model is asked for.
    pub level: Level,
    /// What was chosen; more than `level` where the model cannot do that much.
    pub asked: Level,
    /// Tokens to think with; none without thinking and for a model that takes no budget.
    pub budget: Option<u32>,
    /// The words that chose, as they stand in the message.
    pub keyword: Option<String>,
    pub source: Source,
    /// Somebody chose: the parameter is sent also when it says no.
    pub explicit: bool,
}

/// Decides how hard to think: the first source that answers counts, then the model's limits.
pub fn effective(asked: &Asked<'_>, settings: &Settings, model: &Abilities) -> Effective {
    let (source, level) = choose(asked, settings, model);
    let most = level.min(settings.max_level);
    let can = model.supported.iter().copied().filter(|can| *can <= most).max().unwrap_or(Level::None);
    Effective {
        level: can,
        asked: level,
        budget: budget(can, asked.turn, settings, model),
        keyword: asked.keyword.filter(|_| source == Source::Keyword).map(|found| found.words.clone()),
        source,
        explicit: source != Source::Default,
    }
}

fn choose(asked: &Asked<'_>, settings: &Settings, model: &Abilities) -> (Source, Level) {
    let environment = match settings.environment {
        Environment { max_tokens: Some(0), .. } => Some(Level::None),
        Environment { level: Some(level), .. } => Some(level),
        Environment { max_tokens: Some(tokens), level: None } => Some(nearest(tokens, settings, model)),
        Environment { max_tokens: None, level: None } => None,
    };
    let able = model.supported.iter().any(|level| *level > Level::None);
    let auto = (settings.auto_enable && able).then_some(Level::DeepThink);
    [
        (Source::Environment, environment),
        (Source::Keyword, asked.keyword.map(|found| found.level)),
        (Source::Session, asked.session),
        (Source::Flag, asked.turn.or(settings.flag).map(|flag| flag.level)),
        (Source::Configuration, settings.default_level),
        (Source::Model, model.default_level.or(auto)),
    ]
    .into_iter()
    .find_map(|(source, level)| Some((source, level?)))
    .unwrap_or((Source::Default, Level::None))
}

/// The level whose budget is nearest; a budget asks to think, so never none.
fn nearest(tokens: u32, settings: &Settings, model: &Abilities) -> Level {
    let of = |level| usual(level, settings, model).abs_diff(tokens);
    if of(Level::UltraThink) < of(Level::DeepThink) { Level::UltraThink } else { Level::DeepThink }
}

/// The default budget of a level.
fn usual(level: Level, settings: &Settings, model: &Abilities) -> u32 {
    match level {
        Level::None => 0,
        Level::DeepThink => model.deep_budget.unwrap_or(settings.budgets.deep),
        Level::UltraThink => model.ultra_budget.unwrap_or(settings.budgets.ultra),
    }
}

fn budget(level: Level, turn: Option<Override>, settings: &Settings, model: &Abilities) -> Option<u32> {
    let most = model.max_budget.filter(|_| level != Level::None)?;
    let asked = settings
        .environment
        .max_tokens
        .or(turn.or(settings.flag).and_then(|asked| asked.budget))
        .or(settings.budget_tokens)
        .unwrap_or_else(|| usual(level, settings, model));
    Some(asked.max(LEAST_BUDGET).min(most).min(model.max_output.saturating_sub(LEAST_BUDGET)))
}

#[cfg(test)]
mod tests;
