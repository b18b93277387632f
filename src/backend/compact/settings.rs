//! `[compact]` and `[features]`: every constant of compaction. Defaults stand in `config/default.toml`.

use schemars::JsonSchema;
use serde::Deserialize;

/// `[features]`: parts that can be switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Features {
    pub micro_compact: bool,
    pub session_memory: bool,
    pub session_memory_compact: bool,
    pub remote_compaction: bool,
    pub compact_streaming_retry: bool,
}

/// `[compact]`. All budgets are tokens, and shrink with small windows: see `Limits`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub enabled: bool,
    pub auto: bool,
    /// Tokens; up to 1 a share of what is available.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub auto_compact_threshold: Option<f64>,
    /// Percent of what is available.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub auto_compact_pct_override: Option<f64>,
    #[serde(default)]
    pub blocking_limit: Option<u64>,
    #[serde(default)]
    pub reserved_output: Option<u64>,
    pub max_reserved_output: u64,
    pub free_space_buffer: u64,
    pub warning_threshold: u64,
    pub error_threshold: u64,
    pub min_context_remaining: u64,
    pub fallback_context_window: u64,
    pub max_messages: u64,
    pub min_messages_before_compact: u64,
    #[schemars(range(min = 1))]
    pub token_safety_multiplier: f64,
    #[schemars(range(min = 1))]
    pub approx_bytes_per_token: f64,
    pub tokens_per_image: u64,
    #[serde(default)]
    pub summarization_model: Option<String>,
    #[serde(default)]
    pub summarization_model_provider_id: Option<String>,
    #[serde(default)]
    pub compact_prompt: Option<String>,
    pub max_summary_retries: u32,
    pub max_summary_tokens: u64,
    pub summary_rounds: u32,
    pub summary_result_chars: usize,
    pub user_message_max_tokens: u64,
    pub carry_tokens: u64,
    pub ledger_tokens: u64,
    pub keep_recent_tokens: u64,
    pub keep_recent_messages: u64,
    pub keep_recent_results: usize,
    pub micro: Micro,
    pub session_memory: Memory,
    pub restore: Restore,
    pub tool_output: ToolOutput,
    pub guards: Guards,
}

/// `[compact.micro]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Micro {
    pub trigger: MicroTrigger,
    pub keep_last: usize,
    pub target: u64,
    pub min_saving: u64,
    pub persist_above: u64,
    pub weigh_cost: bool,
}

/// When old results are cleared without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MicroTrigger {
    /// As soon as it saves more than it costs.
    Paying,
    /// The same, but only once usage is above the warning threshold.
    Warning,
    /// As soon as it saves enough tokens, whatever it costs.
    Always,
}

/// `[compact.session_memory]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub first_tokens: u64,
    #[schemars(range(min = 0, max = 1))]
    pub extraction_start_fraction: f64,
    pub start_tokens: u64,
    pub update_tokens: u64,
    pub update_tool_calls: u64,
    pub cooldown_s: u64,
    pub wait_s: u64,
    pub stale_s: u64,
    pub max_tokens: u64,
    pub min_net_saving: u64,
    pub max_summary: u64,
    pub weigh_cost: bool,
}

/// `[compact.restore]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    pub max_files: usize,
    pub tokens_per_file: u64,
    pub total_file_budget: u64,
    pub todos: bool,
    pub todos_tokens: u64,
    pub plan: bool,
    pub plan_tokens: u64,
    pub tokens_per_skill: u64,
    pub total_skill_budget: u64,
    pub tasks_tokens: u64,
    pub hook_tokens: u64,
}

/// `[compact.tool_output]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolOutput {
    pub summary: Summary,
    pub visible: usize,
    pub input_chars: usize,
    pub output_chars: usize,
    pub heuristic_chars: usize,
}

/// Who writes the digest of old tool results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    Off,
    Heuristic,
    Llm,
}

/// `[compact.guards]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guards {
    /// Share by which a tier must shrink the context.
    #[schemars(range(min = 0, max = 1))]
    pub min_shrink: f64,
    /// Or the share of what is available that it must come down to.
    #[schemars(range(min = 0, max = 1))]
    pub max_share: f64,
    pub tier_gap: u64,
    pub report_within: u64,
    pub max_failures: u32,
    pub max_recoveries: u32,
    pub clip_tokens: u64,
    pub note_tokens: u64,
}
