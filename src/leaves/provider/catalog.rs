//! What is known of models: windows, prices, abilities. `config/models.toml` is in the binary; settings override it.

pub mod offered;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use self::offered::Offered;
use super::settings::WireName;
use crate::message::Usage;
use crate::thinking::Level;

const BUILTIN: &str = include_str!("../../../config/models.toml");

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingStyle {
    /// Not at all.
    None,
    /// A budget in tokens.
    Budget,
    /// It decides itself; an effort is a hint.
    Adaptive,
    /// An effort by name.
    Effort,
    /// A level by name.
    Level,
}

/// Which parameter a chat-completions server takes for thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingParam {
    #[default]
    None,
    /// `"reasoning_effort": "high"`
    ReasoningEffort,
    /// `"reasoning": {"effort": "high"}` or `{"max_tokens": n}`
    Reasoning,
    /// `"chat_template_kwargs": {"enable_thinking": true}`
    EnableThinking,
}

/// What a row says of the levels of thinking, where they do not follow from the style.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThinkingOverride {
    pub supported_levels: Option<Vec<Level>>,
    /// What applies by default.
    pub default_level: Option<Level>,
    /// Largest budget in tokens.
    pub max_budget: Option<u32>,
    #[serde(default)]
    pub budget_by_level: BudgetByLevel,
}

/// Budgets of one model, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetByLevel {
    #[serde(alias = "deep_think")]
    pub deep: Option<u32>,
    #[serde(alias = "ultra_think")]
    pub ultra: Option<u32>,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl Prices {
    /// What is paid for input that the cache does not have yet: some providers charge for writing it, others do not.
    pub fn uncached(&self) -> f64 {
        self.cache_write.max(self.input)
    }
}

/// What is known of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// False: the catalog has no such model, and this is what is assumed.
    pub known: bool,
    /// Tokens that fit, answer included.
    pub window: u64,
    /// Most tokens of one answer.
    pub max_output: u32,
    /// None when unknown; a local model is free.
    pub prices: Option<Prices>,
    pub thinking: ThinkingStyle,
    /// Efforts or levels that it knows, weakest first.
    pub levels: Vec<String>,
    /// Largest thinking budget in tokens; 0 where the style is not `budget`.
    pub max_budget: u32,
    pub images: bool,
    pub pdf: bool,
    /// The provider searches the web for it.
    pub web_search: bool,
    pub thinking_param: ThinkingParam,
    /// Chat completions calls the limit `max_completion_tokens`.
    pub completion_tokens: bool,
    /// The wire refuses another way of thinking while calls are being answered: a change waits for the next prompt.
    pub thinking_per_turn: bool,
    pub thinking_override: ThinkingOverride,
}

impl ModelSpec {
    /// Whether what was sent before is cheaper the next time. Unknown prices say nothing: local servers keep it.
    pub fn caches(&self) -> bool {
        self.prices.is_none_or(|prices| prices.input == 0.0 || prices.cache_read < prices.input)
    }

    /// What is assumed of a model that the catalog lacks.
    pub fn unknown(wire: WireName) -> ModelSpec {
        let spec = ModelSpec {
            known: false,
            window: 128_000,
            max_output: 16_384,
            prices: None,
            thinking: ThinkingStyle::None,
            levels: Vec::new(),
            max_budget: 0,
            images: true,
            pdf: true,
            web_search: true,
            thinking_param: ThinkingParam::None,
            completion_tokens: false,
            thinking_per_turn: false,
            thinking_override: ThinkingOverride::default(),
        };
        let levels = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        match wire {
            WireName::Anthropic => ModelSpec {
                window: 200_000,
                max_output: 32_000,
                thinking: ThinkingStyle::Adaptive,
                levels: levels(&["low", "medium", "high"]),
                ..spec
            },
            WireName::Openai => {
                ModelSpec { thinking: ThinkingStyle::Effort, levels: levels(&["low", "medium", "high"]), ..spec }
            }
            WireName::Gemini => ModelSpec {
                window: 1_048_576,
                max_output: 65_536,
                thinking: ThinkingStyle::Level,
                levels: levels(&["low", "high"]),
                ..spec
            },
            // Mostly local servers with small windows, no vision and no search.
            WireName::OpenaiChat => {
                ModelSpec { window: 32_768, max_output: 8_192, images: false, pdf: false, web_search: false, ..spec }
            }
        }
    }

    /// With what the endpoint itself says of the model.
    pub fn told(self, offered: &Offered) -> ModelSpec {
        let Some(window) = offered.window else { return self };
        // Some servers count the answer as part of a window that is no larger than it.
        let most = u32::try_from(window / 4).unwrap_or(u32::MAX);
        let max_output = offered.max_output.unwrap_or(self.max_output).min(most.max(1));
        ModelSpec { known: true, window, max_output, ..self }
    }

    /// With the window that is assumed of a model nobody knows.
    pub fn assuming(self, window: u64) -> ModelSpec {
        ModelSpec { window, ..self }
    }

    /// What a request cost, in dollars. None when the prices are unknown.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let prices = self.prices?;
        let part = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        Some(
            part(usage.input, prices.input)
                + part(usage.output, prices.output)
                + part(usage.cache_read, prices.cache_read)
                + part(usage.cache_write, prices.cache_write),
        )
    }
}

/// One `[models."<id>"]`, in the built-in file and in settings. What is left out keeps its value.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Further ids, matched in the same way.
    #[serde(default)]
    aliases: Vec<String>,
    window: Option<u64>,
    max_output: Option<u32>,
    /// Dollars for a million tokens: input, output, cache read, cache write.
    price: Option<[f64; 4]>,
    thinking: Option<ThinkingStyle>,
    levels: Option<Vec<String>>,
    max_budget: Option<u32>,
    images: Option<bool>,
    pdf: Option<bool>,
    web_search: Option<bool>,
    thinking_param: Option<ThinkingParam>,
    completion_tokens: Option<bool>,
    thinking_per_turn: Option<bool>,
    thinking_override: Option<ThinkingOverride>,
}

impl Row {
    fn apply(&self, spec: &mut ModelSpec) {
        fn set<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        spec.known = true;
        set(&mut spec.window, &self.window);
        set(&mut spec.max_output, &self.max_output);
        if let Some([input, output, cache_read, cache_write]) = self.price {
            spec.prices = Some(Prices { input, output, cache_read, cache_write });
        }
        set(&mut spec.thinking, &self.thinking);
        set(&mut spec.levels, &self.levels);
        set(&mut spec.max_budget, &self.max_budget);
        set(&mut spec.images, &self.images);
        set(&mut spec.pdf, &self.pdf);
        set(&mut spec.web_search, &self.web_search);
        set(&mut spec.thinking_param, &self.thinking_param);
        set(&mut spec.completion_tokens, &self.completion_tokens);
        set(&mut spec.thinking_override, &self.thinking_override);
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Provider → role → model id.
    roles: BTreeMap<String, BTreeMap<String, String>>,
    /// The start of an id → the window of models that are newer than the file.
    families: BTreeMap<String, u64>,
    models: BTreeMap<String, Row>,
}

/// The built-in models with the user's overrides.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    overrides: BTreeMap<String, Row>,
}

impl Catalog {
    /// The built-in catalog. Costs nothing until it is first asked.
    pub fn builtin() -> Catalog {
        Catalog::default()
    }

    /// With `[models."<id>"]` of the settings: ids to rows of the same fields as in `config/models.toml`.
    ///
    /// # Errors
    /// Names the model and the field that is wrong.
    pub fn with_overrides(&self, models: toml::Table) -> Result<Catalog, String> {
        let mut overrides = self.overrides.clone();
        for (id, row) in models {
            let row =
                row.try_into().map_err(|error: toml::de::Error| format!("models.\"{id}\": {}", error.message()))?;
            overrides.insert(id, row);
        }
        Ok(Catalog { overrides })
    }

    /// What is known of the model: by its exact id, else by the longest entry that its id begins with.
    pub fn get(&self, wire: WireName, id: &str) -> ModelSpec {
        let mut spec = ModelSpec::unknown(wire);
        let mut per_turn = None;
        for rows in [&file().models, &self.overrides] {
            if let Some(row) = find(rows, id) {
                row.apply(&mut spec);
                per_turn = row.thinking_per_turn.or(per_turn);
            }
        }
        // With a budget the Messages API wants a whole tool loop to think in one way.
        let refuses = wire == WireName::Anthropic && spec.thinking == ThinkingStyle::Budget;
        spec.thinking_per_turn = per_turn.unwrap_or(refuses);
        // Chat completions has no server-side search, whatever the model can do elsewhere.
        spec.web_search &= wire != WireName::OpenaiChat;
        spec
    }

    /// The window that is assumed of a model by the family in its name, where the catalog lacks it.
    pub fn family(&self, id: &str) -> Option<u64> {
        let id = id.to_lowercase();
        let [_, bare, own] = spellings(&id);
        let mut families = file().families.iter();
        families.find(|(name, _)| [bare, own].iter().any(|id| id.starts_with(name.as_str()))).map(|(_, window)| *window)
    }

    /// What `haiku`, `sonnet` or `opus` means at a provider of this name. None for other words and unknown providers.
    pub fn role(&self, provider: &str, role: &str) -> Option<&'static str> {
        file().roles.get(provider)?.get(role).map(String::as_str)
    }
}

fn file() -> &'static File {
    static FILE: OnceLock<File> = OnceLock::new();
    FILE.get_or_init(|| toml::from_str(BUILTIN).expect("config/models.toml is checked by a test"))
}

/// An id as it is, without the prefix of a router (`anthropic/claude-…`), and without those of a cloud that hosts models of
/// others (`us.anthropic.claude-…`). What has a digit is a part of the model's name (`gpt-4.1`).
fn spellings(id: &str) -> [&str; 3] {
    let bare = id.rsplit('/').next().unwrap_or(id);
    let mut own = bare;
    while let Some((before, rest)) = own.split_once('.')
        && before.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
    {
        own = rest;
    }
    [id, bare, own]
}

/// The row of an id. Neither prefixes nor a tag (`qwen3:8b`) hide a model.
fn find<'a>(rows: &'a BTreeMap<String, Row>, id: &str) -> Option<&'a Row> {
    if let Some(row) = rows.get(id) {
        return Some(row);
    }
    let id = id.to_lowercase();
    let spelled = spellings(&id);
    let mut best: Option<(usize, &Row)> = None;
    for (name, row) in rows {
        for name in std::iter::once(name).chain(&row.aliases) {
            let matches = spelled.iter().any(|id| id.starts_with(name.as_str()));
            if matches && best.is_none_or(|(length, _)| name.len() > length) {
                best = Some((name.len(), row));
            }
        }
    }
    best.map(|(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hosts_a_model_does_not_hide_it() {
        let catalog = Catalog::builtin();
        let known = catalog.get(WireName::Anthropic, "claude-sonnet-4-5-20250929");
        assert!(known.known);
        for id in [
            "anthropic/claude-sonnet-4-5-20250929",
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
        ] {
            assert_eq!(catalog.get(WireName::Anthropic, id), known, "{id}");
        }
        assert_eq!(spellings("gpt-4.1"), ["gpt-4.1"; 3]);
        assert_eq!(spellings("qwen2.5-coder:7b"), ["qwen2.5-coder:7b"; 3]);
    }

    #[test]
    fn the_built_in_file_is_valid() {
        let catalog = Catalog::builtin();
        for provider in ["anthropic", "openai", "gemini"] {
            let wire = match provider {
                "anthropic" => WireName::Anthropic,
                "openai" => WireName::Openai,
                _ => WireName::Gemini,
            };
            for role in ["haiku", "sonnet", "opus"] {
                let spec = catalog.get(wire, catalog.role(provider, role).expect("every role is mapped"));
                assert!(spec.known && spec.prices.is_some() && spec.images, "{provider} {role}: {spec:?}");
            }
        }
        for id in file().models.keys() {
            let spec = catalog.get(WireName::OpenaiChat, id);
            assert!(u64::from(spec.max_output) <= spec.window, "{id}");
            assert_eq!(spec.thinking == ThinkingStyle::Budget, spec.max_budget > 0, "{id}");
        }
    }

    #[test]
    fn ids_match_exactly_then_by_the_longest_prefix() {
        let table: toml::Table =
            "[\"x-1\"]\nwindow = 1\n[\"x-1-mini\"]\nwindow = 2\n[\"y\"]\nwindow = 3\naliases = [\"x-1-m\"]"
                .parse()
                .unwrap();
        let catalog = Catalog::builtin().with_overrides(table).unwrap();
        let check = |id: &str, window: u64, known: bool| {
            let spec = catalog.get(WireName::OpenaiChat, id);
            assert_eq!((spec.window, spec.known), (window, known), "{id}");
        };
        check("x-1", 1, true);
        check("x-1-2026", 1, true);
        check("x-1-mini-3", 2, true);
        check("x-1-max", 3, true);
        check("vendor/X-1-Mini", 2, true);
        check("unheard-of", 32_768, false);
    }

    #[test]
    fn overrides_change_single_fields_and_name_their_errors() {
        let table = |text: &str| text.parse::<toml::Table>().unwrap();
        let plain = Catalog::builtin().get(WireName::Anthropic, "claude-haiku-4-5");
        let changed = Catalog::builtin().with_overrides(table("[\"claude-haiku-4-5\"]\nwindow = 9")).unwrap();
        assert_eq!(changed.get(WireName::Anthropic, "claude-haiku-4-5"), ModelSpec { window: 9, ..plain });
        let error = Catalog::builtin().with_overrides(table("[\"m\"]\nwindwo = 9")).unwrap_err();
        assert!(error.contains("models.\"m\"") && error.contains("windwo"), "{error}");
    }

    #[test]
    fn cost() {
        let prices = Prices { input: 1.0, output: 2.0, cache_read: 0.5, cache_write: 4.0 };
        let spec = ModelSpec { prices: Some(prices), ..ModelSpec::unknown(WireName::Openai) };
        let usage =
            Usage { input: 1_000_000, output: 500_000, cache_read: 2_000_000, cache_write: 250_000, reasoning: 9 };
        assert_eq!(spec.cost(&usage), Some(4.0));
        assert_eq!(ModelSpec::unknown(WireName::Openai).cost(&usage), None);
    }
}
