//! What configuration and environment say about thinking.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::paths::Env;
use super::{Loaded, Problem, Source, find};
use crate::thinking::{Budgets, Environment, Keywords, Level, Override, Settings};

/// Variables that are not settings and override everything else.
const LEVEL: &str = "COCODE_THINKING_LEVEL";
const MAX_TOKENS: &str = "COCODE_MAX_THINKING_TOKENS";
pub(super) const VARIABLES: [&str; 2] = [LEVEL, MAX_TOKENS];
/// The name by which other programs know `thinking.interleaved`.
pub(super) const INTERLEAVED: &str = "COCODE_INTERLEAVED_THINKING";

/// `[thinking]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    #[schemars(schema_with = "level_schema")]
    pub default_level: Level,
    pub auto_enable: bool,
    pub interleaved: bool,
    #[serde(default)]
    #[schemars(range(min = 1024))]
    pub budget_tokens: Option<u32>,
    #[schemars(schema_with = "level_schema")]
    pub max_level: Level,
    pub keywords: Keywords,
    pub budgets: ByLevel,
}

/// `[thinking.budgets]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByLevel {
    #[schemars(range(min = 1024))]
    pub deep: u32,
    #[schemars(range(min = 1024))]
    pub ultra: u32,
}

pub(super) fn level_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Level::NAMES, "examples": Level::ALL })
}

/// What may be written for a level, as a schema; only the examples are shown.
pub(super) fn level() -> serde_json::Value {
    serde_json::json!({ "type": "string", "enum": Level::NAMES, "examples": Level::ALL })
}

/// Reads the two variables.
///
/// # Errors
/// Each that cannot be read, with what may be written.
pub(super) fn environment(env: &Env) -> Result<Environment, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut wrong = |name: &str, message: String| problems.push(Problem { place: format!("variable {name}"), message });
    let level = env.get(LEVEL).and_then(|text| text.parse().map_err(|message| wrong(LEVEL, message)).ok());
    let max_tokens = env.get(MAX_TOKENS).and_then(|text| {
        let count = text.trim().replace('_', "").parse();
        let message = || format!("must be a number of tokens, or 0 for no thinking, not {text:?}");
        count.map_err(|_| wrong(MAX_TOKENS, message())).ok()
    });
    if problems.is_empty() { Ok(Environment { level, max_tokens }) } else { Err(problems) }
}

impl Loaded {
    /// The thinking settings in effect, including those of the command line.
    pub fn thinking(&self, env: &Env, flag: Option<Override>) -> Settings {
        let thinking = &self.config.thinking;
        let key = ["thinking", "default_level"].map(str::to_owned);
        // The program's default is not a choice: the model's own default is next.
        let chosen =
            self.layers.iter().any(|layer| layer.source != Source::Default && find(&layer.table, &key).is_some());
        Settings {
            // Read when the program started; what was wrong then ended it.
            environment: environment(env).unwrap_or_default(),
            flag,
            default_level: chosen.then_some(thinking.default_level),
            auto_enable: thinking.auto_enable,
            interleaved: thinking.interleaved,
            budget_tokens: thinking.budget_tokens,
            max_level: thinking.max_level,
            keywords: thinking.keywords.clone(),
            budgets: Budgets { deep: thinking.budgets.deep, ultra: thinking.budgets.ultra },
        }
    }
}
