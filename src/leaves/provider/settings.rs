//! `[providers.<name>]` of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which protocol a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WireName {
    /// Messages.
    Anthropic,
    /// Responses.
    Openai,
    /// Chat Completions.
    OpenaiChat,
    /// streamGenerateContent.
    Gemini,
}

/// Which headers carry the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyHeader {
    /// The one of the wire.
    #[default]
    Wire,
    /// `Authorization: Bearer`, which gateways read on every wire.
    Bearer,
    /// Both.
    Both,
}

/// One provider, as configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderSettings {
    pub wire: WireName,
    /// Without a trailing slash; each wire appends its own path.
    pub base_url: String,
    /// Variable that holds the key. None: no key is sent unless a command or the credentials file has one.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Shell command that prints the key.
    #[serde(default)]
    pub api_key_command: Option<String>,
    #[serde(default)]
    pub key_header: KeyHeader,
    /// Sent with every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// PEM file of further roots to trust.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// What the roles mean here: `haiku`, `sonnet`, `opus` → model id.
    #[serde(default)]
    pub models: BTreeMap<String, String>,
    /// Model when none is named.
    #[serde(default)]
    pub default_model: Option<String>,
}
