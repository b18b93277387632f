//! Every key of Claude Code's settings.json, with what becomes of it here. Whatever is neither read nor named in this table is
//! unknown, and said to be.

use crate::stdx::nearest::nearest;

/// What becomes of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// Its value becomes this setting.
    Sets(&'static str, As),
    /// `claude.rs` reads it; these settings come of it.
    Read(&'static str),
    /// It has no effect, and why.
    Not(&'static str),
    /// The same, and a value that would restrict something is named at the start, with what holds instead.
    Guard(&'static str),
    /// What it turns off is not there, or what it turns on always holds.
    Moot(&'static str),
}

/// How a value becomes one of ours.
#[derive(Debug, Clone, Copy)]
pub(super) enum As {
    Flag,
    /// The opposite.
    Off,
    Text,
    Texts,
    /// A whole number of at least so much.
    Count(i64),
    /// A number above 0, at most 1.
    Share,
    /// One of these words, each with ours.
    Word(&'static [(&'static str, Ours)]),
}

/// A value of ours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ours {
    Text(&'static str),
    Flag(bool),
}

use As::{Count, Flag, Off, Share, Text, Texts, Word};
use Fate::{Guard, Moot, Not, Read, Sets};

/// A key and its fate.
pub(super) type Key = (&'static str, Fate);

const SERVICE: Fate = Not("it is about Claude Code's own service");
const APP: Fate = Not("only Claude Code's desktop app reads it");
const PLUGINS: Fate = Not("cocode does not read this setting of plugins and marketplaces yet");
const SERVERS: Fate = Not("servers come from `.mcp.json` and `cocode mcp add`");
const NEVER: Fate = Moot("cocode does not have what it turns off");

const THEMES: &[(&str, Ours)] = &[
    ("auto", Ours::Text("auto")),
    ("dark", Ours::Text("dark")),
    ("light", Ours::Text("light")),
    ("dark-ansi", Ours::Text("terminal")),
    ("light-ansi", Ours::Text("terminal")),
];
const EFFORTS: &[(&str, Ours)] = &[
    ("low", Ours::Text("none")),
    ("medium", Ours::Text("deep")),
    ("high", Ours::Text("ultra")),
    ("xhigh", Ours::Text("ultra")),
    ("max", Ours::Text("ultra")),
];
const CHANNELS: &[(&str, Ours)] = &[("auto", Ours::Flag(true)), ("notifications_disabled", Ours::Flag(false))];
const SCREENS: &[(&str, Ours)] = &[("default", Ours::Flag(false)), ("fullscreen", Ours::Flag(true))];
const EDITORS: &[(&str, Ours)] =
    // `emacs` is what an earlier version called its own way.
    &[("normal", Ours::Text("normal")), ("vim", Ours::Text("vim")), ("emacs", Ours::Text("normal"))];

/// In the order of Claude Code's own reference.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    ("$schema", Moot("it only helps editors")),
    // The model and its replies.
    ("model", Read("model")),
    ("availableModels", Sets("available_models", Texts)),
    ("deniedModels", Sets("denied_models", Texts)),
    ("enforceAvailableModels", Moot("a default model that `availableModels` does not list is never chosen")),
    ("alwaysThinkingEnabled", Read("thinking.auto_enable, thinking.default_level")),
    ("effortLevel", Sets("thinking.default_level", Word(EFFORTS))),
    ("maxEffortLevel", Sets("thinking.max_level", Word(EFFORTS))),
    ("showThinkingSummaries", Not("what the provider shows of the thinking is always shown; ctrl+o unfolds it")),
    ("fallbackModel", Not("a failed request is retried with the same model; `/model` switches")),
    ("modelOverrides", Not("`providers.<name>.models` says which model a role is")),
    ("modelPicker", Not("`/model` lists what the providers offer")),
    ("modelSettings", Not("`[models.\"<id>\"]` in config.toml has settings for a model")),
    ("modelPricing", Not("`price` below `[models.\"<id>\"]` in config.toml has the price of a model")),
    ("promptCacheTtl", Not("requests use the provider's usual cache lifetime")),
    ("subagentPromptCacheTtl", Not("requests use the provider's usual cache lifetime")),
    ("outputStyle", Sets("output_style", Text)),
    ("language", Sets("language", Text)),
    ("switchModelsOnFlag", SERVICE),
    ("advisorModel", SERVICE),
    ("fastMode", SERVICE),
    ("fastModePerSessionOptIn", SERVICE),
    ("ultracode", SERVICE),
    // Permissions, hooks, the sandbox.
    ("permissions", Read("permissions")),
    ("hooks", Read("hooks")),
    ("disableAllHooks", Sets("disable_all_hooks", Flag)),
    ("allowManagedHooksOnly", Sets("managed_hooks_only", Flag)),
    ("allowManagedPermissionRulesOnly", Guard("rules of the user and of trusted projects also count")),
    ("allowedHttpHookUrls", Sets("allowed_hook_urls", Texts)),
    ("httpHookAllowedEnvVars", Sets("allowed_hook_variables", Texts)),
    ("sandbox", Read("sandbox, permissions.allow, permissions.deny")),
    ("env", Read("env")),
    ("autoMode", SERVICE),
    ("disableAutoMode", NEVER),
    ("useAutoModeDuringPlan", SERVICE),
    ("skipAutoPermissionPrompt", SERVICE),
    ("skipDangerousModePermissionPrompt", Not("bypassPermissions starts by flag only, and its warning is always shown")),
    // Memory and context.
    ("autoCompactEnabled", Sets("compact.auto", Flag)),
    ("autoCompactWindow", Sets("compact.auto_compact_threshold", Count(1))),
    ("idleCompaction", Not("cocode only compacts when the window fills up, or with /compact")),
    ("precomputeCompactionEnabled", Not("`features.session_memory` prepares summaries in the background")),
    ("autoMemoryEnabled", NEVER),
    ("autoMemoryDirectory", Not("cocode does not write memory by itself; `/memory add` does")),
    ("autoDreamEnabled", NEVER),
    ("claudeMd", Guard("instructions only come from memory files")),
    ("claudeMdExcludes", Sets("memory.excludes", Texts)),
    ("fileCheckpointingEnabled", Read("undo.commands")),
    ("plansDirectory", Not("plans are in `plans` below ~/.claude")),
    ("showClearContextOnPlanAccept", Not("the question about a plan always offers what it offers")),
    ("skillListingMaxDescChars", Sets("skills.max_description", Count(1))),
    ("skillListingBudgetFraction", Sets("skills.list_share", Share)),
    ("cleanupPeriodDays", Sets("sessions.cleanup_period_days", Count(0))),
    // The terminal.
    ("theme", Sets("tui.theme", Word(THEMES))),
    ("tui", Sets("tui.fullscreen", Word(SCREENS))),
    ("editorMode", Sets("tui.editor_mode", Word(EDITORS))),
    ("axScreenReader", Sets("tui.screen_reader", Flag)),
    ("prefersReducedMotion", Sets("tui.reduced_motion", Flag)),
    ("syntaxHighlightingDisabled", Sets("tui.highlight", Off)),
    ("preferredNotifChannel", Sets("tui.notifications", Word(CHANNELS))),
    ("statusLine", Read("status_line")),
    ("companyAnnouncements", Sets("announcements", Texts)),
    ("askUserQuestionTimeout", Not("questions wait until they are answered")),
    ("autoContinueAtUsageLimit", SERVICE),
    ("autoScrollEnabled", Not("the full screen follows new output until you scroll")),
    ("bashEditDiffEnabled", Not("the review shows what commands changed")),
    ("bashOutputMaxChars", Not("`tools.max_bytes` limits every tool's result")),
    ("defaultShell", Not("commands run with bash")),
    ("dialogExpiry", SERVICE),
    ("emojiCompletionEnabled", NEVER),
    ("fileSuggestion", Not("completion after @ lists the files of the project itself")),
    ("footerLinksRegexes", Not("the footer shows no links")),
    ("keybindingFlavor", Not("`[keys]` in config.toml binds keys")),
    ("maxProseWidth", Not("replies use the width of the terminal")),
    ("promptSuggestionEnabled", NEVER),
    ("respectGitignore", Not("completion after @ leaves out what git ignores")),
    ("respondToBashCommands", Not("the model reads the output of a `!` line with your next prompt")),
    ("showMessageTimestamps", Not("messages are shown without their time")),
    ("showTurnDuration", Not("a long turn always ends with how long it took")),
    ("spellcheck", Not("cocode does not check spelling")),
    ("spinnerTipsEnabled", NEVER),
    ("spinnerTipsOverride", Not("the line below the reply shows no tips")),
    ("spinnerVerbs", Not("the line below the reply says what is being done")),
    ("subagentStatusLine", Not("the rows of sub-agents look the same everywhere")),
    ("terminalProgressBarEnabled", NEVER),
    ("terminalTitleFromRename", Not("the terminal's title stays as the terminal sets it")),
    ("timeFormat", Not("times are shown as 24 hours")),
    ("timeZone", Not("times are those of this machine")),
    ("todoFeatureEnabled", Sets("tools.todos", Flag)),
    ("verbose", Not("ctrl+o shows every call in full")),
    ("viewMode", Not("ctrl+o shows every call in full")),
    ("vimInsertModeRemaps", Not("vim's insert mode ends with Esc")),
    ("voice", SERVICE),
    ("voiceEnabled", SERVICE),
    ("wheelScrollAccelerationEnabled", NEVER),
    ("taskOutputMaxChars", Not("Claude Code no longer reads it either")),
    // Git.
    ("attribution", Read("attribution.commit, attribution.pr")),
    ("includeCoAuthoredBy", Read("attribution.commit, attribution.pr")),
    ("includeGitInstructions", Sets("git_status", Flag)),
    ("prUrlTemplate", Not("links to pull requests are shown as they come")),
    ("worktree", Not("cocode does not make worktrees")),
    // Skills, plugins, servers.
    ("disableBundledSkills", Sets("skills.bundled", Off)),
    ("disableSkillShellExecution", Sets("skills.shell", Off)),
    ("skillOverrides", Read("skills.overrides")),
    ("syncClaudeAiSkills", SERVICE),
    ("agent", Not("the main conversation always has cocode's own system prompt and tools")),
    ("enabledPlugins", Read("plugins.enabled")),
    ("extraKnownMarketplaces", PLUGINS),
    ("additionalMarketplaces", PLUGINS),
    ("strictKnownMarketplaces", Guard("plugins of every marketplace can be installed")),
    ("allowedMarketplaces", Guard("plugins of every marketplace can be installed")),
    ("blockedMarketplaces", Guard("plugins of every marketplace can be installed")),
    ("strictPluginOnlyCustomization", Guard("skills, agents and hooks of the user and of trusted projects also load")),
    ("disableCommandPluginSources", Guard("what a plugin runs is shown and asked about first")),
    ("disableSideloadFlags", Guard("flags can add agents and plugins")),
    ("pluginConfigs", PLUGINS),
    ("pluginTrustMessage", PLUGINS),
    ("pluginSuggestionMarketplaces", PLUGINS),
    ("prependPlugins", PLUGINS),
    ("appendPlugins", PLUGINS),
    ("allowedChannelPlugins", SERVICE),
    ("channelsEnabled", SERVICE),
    ("enableAllProjectMcpServers", Read("mcp.enable_all_project")),
    ("enabledMcpjsonServers", Read("mcp.enabled_project")),
    ("disabledMcpjsonServers", Read("mcp.disabled_project")),
    ("managedMcpServers", SERVERS),
    ("allowedMcpServers", Guard("every server that you approved or set up yourself can run")),
    ("deniedMcpServers", Read("mcp.denied")),
    ("allowManagedMcpServersOnly", Guard("every server that you approved or set up yourself can run")),
    ("allowAllClaudeAiMcps", SERVICE),
    ("disableClaudeAiConnectors", NEVER),
    // Agents, remote sessions, notifications.
    ("crossSessionInbound", SERVICE),
    ("isolatePeerMachines", SERVICE),
    ("disableAgentView", NEVER),
    ("teammateMode", SERVICE),
    ("enableWorkflows", SERVICE),
    ("disableWorkflows", NEVER),
    ("workflowKeywordTriggerEnabled", SERVICE),
    ("workflowSizeGuideline", SERVICE),
    ("processWrapper", Guard("commands run without it")),
    ("agentPushNotifEnabled", SERVICE),
    ("inputNeededNotifEnabled", SERVICE),
    ("awaySummaryEnabled", NEVER),
    ("enableArtifact", SERVICE),
    ("disableArtifact", NEVER),
    ("disableDeepLinkRegistration", NEVER),
    ("disableRemoteControl", NEVER),
    ("remote", SERVICE),
    ("remoteControlAtStartup", SERVICE),
    ("disableDesktopLocalSessions", APP),
    ("sshConfigs", APP),
    ("sshHostAllowlist", APP),
    ("browserExternalPageTools", APP),
    ("disableBrowserExternalNavigation", APP),
    ("disableMobileSimulatorTools", APP),
    // Keys, accounts, versions.
    ("apiKeyHelper", Read("providers.anthropic.api_key_command")),
    ("proxyAuthHelper", Not("a proxy's password belongs into the proxy's address")),
    ("awsAuthRefresh", Not("cocode does not use Amazon Bedrock")),
    ("awsCredentialExport", Not("cocode does not use Amazon Bedrock")),
    ("gcpAuthRefresh", Not("cocode does not use Google Cloud's Agent Platform")),
    ("otelHeadersHelper", Not("cocode sends no telemetry")),
    ("forceLoginMethod", SERVICE),
    ("forceLoginGatewayUrl", SERVICE),
    ("forceLoginOrgUUID", SERVICE),
    ("forceRemoteSettingsRefresh", SERVICE),
    ("autoUpdatesChannel", SERVICE),
    ("autoUpdates", SERVICE),
    ("minimumVersion", SERVICE),
    ("requiredMinimumVersion", Guard("it is about versions of Claude Code")),
    ("requiredMaximumVersion", Guard("it is about versions of Claude Code")),
    ("feedbackSurveyRate", SERVICE),
    ("feedbackSurveyState", SERVICE),
    ("skipWebFetchPreflight", Moot("addresses are never sent to a service before they are fetched")),
    ("parentSettingsBehavior", Not("only files in /etc are policy")),
    ("managedSourcesBehavior", Not("only files in /etc are policy")),
    ("policyHelper", Guard("policy only comes from files in /etc")),
    ("wslInheritsWindowsSettings", Guard("policy only comes from files in /etc")),
];

/// Keys of `permissions`, as in `KEYS`.
#[rustfmt::skip]
pub(super) const PERMISSIONS: &[Key] = &[
    ("allow", Read("permissions.allow")),
    ("ask", Read("permissions.ask")),
    ("deny", Read("permissions.deny")),
    ("additionalDirectories", Read("permissions.additional_directories")),
    ("defaultMode", Read("permissions.default_mode")),
    ("disableBypassPermissionsMode", Read("permissions.disable_bypass")),
    ("disableAutoMode", NEVER),
    ("blockReadsOutsideWorkingDirectories", Sets("permissions.block_outside_reads", Flag)),
    ("blockWritesOutsideWorkingDirectories", Sets("permissions.block_outside_writes", Flag)),
    ("denyInsteadOfPrompting", Sets("permissions.deny_instead_of_asking", Flag)),
];

/// The fate of a key, `permissions.allow` among them.
pub(super) fn fate(key: &str) -> Option<&'static Fate> {
    let found = |keys: &'static [Key], name: &str| keys.iter().find(|(known, _)| *known == name).map(|(_, fate)| fate);
    match key.strip_prefix("permissions.") {
        Some(name) => found(PERMISSIONS, name),
        None => found(KEYS, key),
    }
}

/// What `config explain` says of a key of Claude Code's; the settings of ours that it sets come with it.
pub(in super::super) fn explain(key: &str) -> Option<(String, Vec<&'static str>)> {
    let it = format!("`{key}` is a key of Claude Code's settings.json");
    Some(match fate(key)? {
        Sets(ours, _) | Read(ours) => {
            let ours: Vec<&str> = ours.split(", ").collect();
            let names: Vec<String> = ours.iter().map(|name| format!("`{name}`")).collect();
            (format!("{it}, read as {} here.", names.join(" and ")), ours)
        }
        Not(why) | Guard(why) => (format!("{it}, without effect here: {why}."), Vec::new()),
        Moot(why) => (format!("{it}, with nothing to do here: {why}."), Vec::new()),
    })
}

/// The known key that a wrong one resembles.
pub(in super::super) fn near(key: &str) -> Option<String> {
    let (own, before) = match key.strip_prefix("permissions.") {
        Some(name) => (nearest(name, PERMISSIONS.iter().map(|(known, _)| *known)), "permissions."),
        None => (nearest(key, KEYS.iter().map(|(known, _)| *known)), ""),
    };
    own.map(|own| format!("{before}{own}"))
}

#[cfg(test)]
mod tests {
    use super::super::super::docs;
    use super::*;

    #[test]
    fn every_setting_that_a_key_becomes_is_one_of_ours() {
        let known = docs::settings();
        for (key, fate) in KEYS.iter().chain(PERMISSIONS) {
            let (Sets(ours, _) | Read(ours)) = fate else { continue };
            for name in ours.split(", ") {
                let is = |setting: &docs::Setting| {
                    setting.key == name || setting.key.starts_with(&format!("{name}.")) || name == "permissions"
                };
                assert!(known.iter().any(is), "{key}: {name}");
            }
        }
        let mut names: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "a key is in the table twice");
    }
}
