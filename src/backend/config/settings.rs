//! The typed configuration. Defaults are not here: `config/default.toml` has them and says what each setting means.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::thinking::Thinking;
use crate::compact;
use crate::hooks;
use crate::permission::{self, Mode};
use crate::protocol::{Interface, StatusLine};
use crate::provider::catalog::ModelSpec;
use crate::provider::settings::ProviderSettings;
use crate::sandbox::presets::Preset;
use crate::tools;

/// All settings, merged. Hand its parts on in slices.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub model: Option<String>,
    pub available_models: Vec<String>,
    pub denied_models: Vec<String>,
    #[serde(default)]
    pub language: Option<String>,
    pub output_style: String,
    pub git_status: bool,
    pub announcements: Vec<String>,
    pub probe_local: bool,
    pub reminders: bool,
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    pub disable_all_hooks: bool,
    pub managed_hooks_only: bool,
    #[serde(default)]
    pub allowed_hook_urls: Option<Vec<String>>,
    #[serde(default)]
    pub allowed_hook_variables: Option<Vec<String>>,
    pub idle_notification_s: u64,
    pub skill_usage_tracking: bool,
    pub load_legacy_commands: bool,
    pub permissions: Permissions,
    pub plan: Plan,
    pub tools: Tools,
    #[serde(default)]
    pub budget: Budget,
    pub compact: compact::Settings,
    pub features: compact::Features,
    /// Of all files together; `Loaded::hooks` hands them out with their sources.
    #[schemars(schema_with = "hooks_schema")]
    pub hooks: hooks::Definitions,
    pub agents: Agents,
    pub mcp: Mcp,
    pub sandbox: Sandbox,
    pub undo: Undo,
    pub sessions: Sessions,
    pub memory: Memory,
    pub thinking: Thinking,
    pub skills: Skills,
    #[serde(default)]
    pub plugins: Plugins,
    #[serde(default)]
    pub attribution: Attribution,
    pub tui: Tui,
    pub status_line: StatusLine,
    pub keys: BTreeMap<String, Vec<String>>,
    pub env: BTreeMap<String, String>,
    /// Rows for the catalog, which reads them.
    #[schemars(schema_with = "models_schema")]
    pub models: toml::Table,
    pub network: Network,
    pub log: Log,
    pub providers: BTreeMap<String, ProviderSettings>,
}

impl Config {
    /// What the tools need, for a model.
    pub fn tool_settings(&self, model: &ModelSpec) -> tools::Settings {
        let tools = &self.tools;
        let window = compact::Window::of(model.window, model.known, model.max_output, &self.compact);
        let available = compact::Thresholds::new(window, &self.compact).available;
        tools::Settings {
            max_lines: tools.max_lines,
            max_bytes: tools.max_bytes,
            max_tokens: available / u64::from(tools.window_share.max(1)),
            keep: match tools.keep {
                Keep::HeadTail => tools::Keep::HeadTail,
                Keep::Head => tools::Keep::Head,
            },
            bash_timeout_ms: tools.bash_timeout_ms,
            bash_max_timeout_ms: tools.bash_max_timeout_ms,
            fetch_private: tools.fetch_private,
            search_url: tools.search_url.clone(),
            secret_env: self.secret_env(),
            // A variable that no process can be given would keep every command from starting.
            env: self.env.clone().into_iter().filter(|(name, value)| can_be_set(name, value)).collect(),
            undo: self.undo.limits(),
        }
    }

    /// Names of all variables that hold keys: those of the providers, and the usual ones whether configured or not.
    pub fn secret_env(&self) -> Vec<String> {
        let usual = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"];
        let configured = self.providers.values().filter_map(|provider| provider.api_key_env.clone());
        let configured = configured.filter(|name| !name.is_empty());
        usual.into_iter().map(str::to_owned).chain(configured).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl Config {
    /// What front ends look like and listen to.
    pub fn interface(&self) -> Interface {
        let Tui {
            theme,
            notifications,
            highlight,
            reduced_motion,
            editor_mode,
            resize,
            screen_reader: _,
            fullscreen: _,
        } = self.tui.clone();
        let (vim, rebuild) = (editor_mode == EditorMode::Vim, resize == OnResize::Rebuild);
        let (keys, status_line) = (self.keys.clone(), self.status_line.clone());
        Interface { theme, notifications, highlight, reduced_motion, vim, rebuild, keys, status_line }
    }
}

fn can_be_set(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
}

/// `[plugins]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Plugins {
    /// Whether they are loaded, by id.
    pub enabled: BTreeMap<String, bool>,
}

/// `[budget]`, in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    #[schemars(range(min = 0))]
    pub request_usd: Option<f64>,
    #[schemars(range(min = 0))]
    pub turn_usd: Option<f64>,
    #[schemars(range(min = 0))]
    pub session_usd: Option<f64>,
    #[schemars(range(min = 0))]
    pub day_usd: Option<f64>,
    #[schemars(range(min = 0))]
    pub confirm_usd: Option<f64>,
}

/// `[permissions]`. The rules are handed out with their sources by `Loaded::rules`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    #[schemars(schema_with = "mode_schema")]
    pub default_mode: Mode,
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
    pub additional_directories: Vec<PathBuf>,
    pub disable_bypass: bool,
    pub block_outside_reads: bool,
    pub block_outside_writes: bool,
    pub deny_instead_of_asking: bool,
}

// Bypass is left out: it can only be set by flag, and flags are not checked against the schema.
fn mode_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["default", "acceptEdits", "plan", "dontAsk"] })
}

// The catalog keeps the row's type to itself; this is what may be written.
fn models_schema(_: &mut SchemaGenerator) -> Schema {
    let (flag, count) = (json!({ "type": "boolean" }), json!({ "type": "integer", "minimum": 1 }));
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let level = super::thinking::level();
    json_schema!({ "type": "object", "additionalProperties": { "type": "object", "additionalProperties": false, "properties": {
        "aliases": texts, "window": count, "max_output": count,
        "price": { "type": "array", "items": { "type": "number" }, "minItems": 4, "maxItems": 4 },
        "thinking": { "type": "string", "enum": ["none", "budget", "adaptive", "effort", "level"] },
        "levels": texts, "max_budget": { "type": "integer", "minimum": 0 },
        "thinking_param": { "type": "string", "enum": ["none", "reasoning_effort", "reasoning", "enable_thinking"] },
        "images": flag, "pdf": flag, "web_search": flag, "completion_tokens": flag, "thinking_per_turn": flag,
        "thinking_override": { "type": "object", "additionalProperties": false, "properties": {
            "supported_levels": { "type": "array", "items": level }, "default_level": level, "max_budget": count,
            "budget_by_level": { "type": "object", "additionalProperties": false, "properties": {
                "deep": count, "ultra": count, "deep_think": count, "ultra_think": count,
            }},
        }},
    }}})
}

// The events are named, so that a mistake in one is found.
fn hooks_schema(_: &mut SchemaGenerator) -> Schema {
    let hook = json!({ "type": "object", "additionalProperties": false, "properties": {
        "type": { "type": "string", "enum": ["command", "http"] },
        "command": { "type": "string" },
        "args": { "type": "array", "items": { "type": "string" } },
        "url": { "type": "string" },
        "headers": { "type": "object", "additionalProperties": { "type": "string" } },
        "allowed_env_vars": { "type": "array", "items": { "type": "string" } },
        "timeout": { "type": "number" },
        "once": { "type": "boolean" },
        "if": { "type": "string" },
        "async": { "type": "boolean" },
        "on_failure": { "type": "string", "enum": ["continue", "block"] },
    }});
    let group = json!({ "type": "object", "additionalProperties": false, "properties": {
        "matcher": { "type": "string" },
        "hooks": { "type": "array", "items": hook },
    }});
    let event = |event: hooks::Event| (event.name().to_owned(), json!({ "type": "array", "items": group }));
    let events: serde_json::Map<String, serde_json::Value> = hooks::Event::ALL.into_iter().map(event).collect();
    json_schema!({ "type": "object", "additionalProperties": false, "properties": events })
}

/// `[plan]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    #[schemars(range(min = 1, max = 5))]
    pub explore_agents: u32,
    #[schemars(range(min = 1, max = 5))]
    pub plan_agents: u32,
}

/// `[tools]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    #[schemars(range(min = 1))]
    pub max_lines: usize,
    #[schemars(range(min = 256))]
    pub max_bytes: usize,
    #[schemars(range(min = 1))]
    pub window_share: u32,
    pub keep: Keep,
    #[schemars(range(min = 1))]
    pub bash_timeout_ms: u64,
    #[schemars(range(min = 1))]
    pub bash_max_timeout_ms: u64,
    pub fetch_private: bool,
    pub todos: bool,
    #[serde(default)]
    pub search_url: Option<String>,
}

/// Which end of a long result survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    HeadTail,
    Head,
}

/// `[agents]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agents {
    #[schemars(range(min = 1, max = 32))]
    pub max_parallel: usize,
}

/// `[mcp]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    pub enable_all_project: bool,
    pub enabled_project: Vec<String>,
    pub disabled_project: Vec<String>,
    pub denied: Vec<String>,
}

/// `[sandbox]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    pub enabled: bool,
    pub required: bool,
    pub approved: Profile,
    pub auto_allow: bool,
    pub allow_unsandboxed: bool,
    pub excluded: Vec<String>,
}

/// What approved commands run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    Off,
    Workspace,
}

impl Sandbox {
    /// What commands run in that somebody approved. `variable` tells where the environment puts caches.
    pub fn approved(&self, variable: impl Fn(&str) -> Option<String>) -> permission::Approved {
        permission::Approved {
            profile: match self.approved {
                Profile::Workspace if self.enabled => permission::Profile::Workspace,
                Profile::Off | Profile::Workspace => permission::Profile::Off,
            },
            escapes: if self.allow_unsandboxed { permission::Escapes::Asked } else { permission::Escapes::Ignored },
            excluded: self.excluded.clone(),
            unasked: self.enabled && self.auto_allow,
            required: self.required,
            caches: Preset::variables().filter_map(|name| Some((name.to_owned(), variable(name)?.into()))).collect(),
        }
    }
}

/// `[undo]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    pub commands: bool,
    #[schemars(range(min = 1))]
    pub file_mb: u64,
    #[schemars(range(min = 1))]
    pub command_mb: u64,
    #[schemars(range(min = 1))]
    pub session_mb: u64,
}

impl Undo {
    fn limits(&self) -> Option<tools::Undo> {
        const MB: u64 = 1 << 20;
        let bytes = |mb: u64| mb.saturating_mul(MB);
        self.commands.then(|| tools::Undo {
            largest: bytes(self.file_mb),
            budget: bytes(self.command_mb),
            session: bytes(self.session_mb),
        })
    }
}

/// `[sessions]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// 0: never.
    pub cleanup_period_days: u32,
    /// Unset: where an SDK has started the program.
    pub claude_mirror: Option<bool>,
}

/// `[memory]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub files: Vec<String>,
    pub excludes: Vec<String>,
}

/// `[skills]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skills {
    pub verbosity: ReminderVerbosity,
    pub include_name: bool,
    pub list_budget: usize,
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub list_share: Option<f64>,
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_description: Option<usize>,
    pub bundled: bool,
    pub shell: bool,
    #[schemars(range(min = 1))]
    pub usage_half_life_days: u32,
    pub overrides: BTreeMap<String, SkillShown>,
}

/// Who is told of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkillShown {
    On,
    NameOnly,
    UserInvocableOnly,
    Off,
}

/// `[attribution]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Attribution {
    pub commit: Option<String>,
    pub pr: Option<String>,
}

/// How much of themselves skills repeat in reminders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReminderVerbosity {
    Sparse,
    Normal,
    Detailed,
}

/// `[tui]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tui {
    /// Checked against `themes` when it is read.
    pub theme: String,
    pub notifications: bool,
    pub highlight: bool,
    pub reduced_motion: bool,
    /// Only at the start: a terminal is written in one way.
    pub screen_reader: bool,
    /// Only at the start, as well.
    pub fullscreen: bool,
    pub editor_mode: EditorMode,
    pub resize: OnResize,
}

/// How the prompt is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditorMode {
    Normal,
    Vim,
}

/// What a new width of the terminal does to the scrollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnResize {
    Keep,
    Rebuild,
}

/// `[network]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    #[schemars(range(min = 1))]
    pub connect_timeout_s: u64,
    #[schemars(range(min = 1))]
    pub idle_timeout_s: u64,
    #[schemars(range(min = 1))]
    pub local_idle_timeout_s: u64,
    #[schemars(range(max = 10))]
    pub max_retries: u32,
}

impl Network {
    pub fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.connect_timeout_s)
    }

    pub fn local_idle_timeout(&self) -> Duration {
        Duration::from_secs(self.local_idle_timeout_s)
    }

    pub fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_s)
    }
}

/// `[log]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub level: LogLevel,
}

/// Least severity that reaches the log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
}
