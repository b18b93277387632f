//! Claude Code's settings files: each of its keys becomes a setting of ours, or is named with the reason why not.

pub(super) mod keys;
mod sandbox;

use std::path::Path;

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use self::keys::{As, Fate, Ours};
use super::json::object;
use super::layer::{Layer, Problem, Source, read_text};
use crate::hooks::Definitions;

/// Reads a `settings.json`; `None` if it does not exist. The list is of values that are left out, with the reason.
///
/// # Errors
/// The file cannot be read, or is not a JSON object.
pub(crate) fn read(source: Source, file: &Path) -> Result<Option<(Layer, Vec<Problem>)>, Problem> {
    match read_text(file)? {
        Some(text) => parse(source, file, &text).map(Some),
        None => Ok(None),
    }
}

fn parse(source: Source, file: &Path, text: &str) -> Result<(Layer, Vec<Problem>), Problem> {
    let object = object(file, text)?;
    let mut reading = Reading { place: file.display().to_string(), left_out: Vec::new(), root: Table::new() };
    for key in &object.twice {
        reading.say(format!("`{key}` is in the file more than once: only the last one counts"));
    }
    let settings = object.map;
    reading.without_effect(&settings);
    reading.permissions(&settings);
    reading.sandbox(&settings, source);
    if let Some(model) = reading.string(&settings, "model", "a string").filter(|model| model != "default") {
        reading.put("model", Value::String(model));
    }
    reading.simple(&settings, keys::KEYS, "");
    if source != Source::Policy && reading.root.remove("managed_hooks_only").is_some() {
        reading.say("`allowManagedHooksOnly` only counts in managed settings".into());
    }
    reading.thinking(&settings);
    if reading.flag(&settings, "fileCheckpointingEnabled") == Some(false) {
        reading.put("undo.commands", Value::Boolean(false));
        reading.say("`fileCheckpointingEnabled` only counts for commands: edits can always be undone".into());
    }
    reading.attribution(&settings);
    reading.skill_overrides(&settings);
    let mut unguarded = Vec::new();
    if let Some(given) = settings.get("hooks") {
        let (hooks, ignored) = Definitions::read(given);
        unguarded = hooks.unguarded(given);
        ignored.into_iter().for_each(|why| reading.say(why));
        if let Ok(hooks) = Value::try_from(&hooks)
            && hooks.as_table().is_some_and(|table| !table.is_empty())
        {
            reading.put("hooks", hooks);
        }
    }
    reading.servers(&settings);
    reading.plugins(&settings);
    reading.status_line(&settings);
    if let Some(command) = reading.string(&settings, "apiKeyHelper", "a shell command") {
        // The key that it prints may be one of a gateway: both headers carry it, as wherever else this setting is read.
        reading.put("providers.anthropic.api_key_command", Value::String(command));
        reading.put("providers.anthropic.key_header", Value::String("both".into()));
    }
    let variables = reading.variables(&settings);
    let Reading { root, mut left_out, .. } = reading;
    let problem = |message: String| Problem { place: file.display().to_string(), message };
    let mut layer = Layer::of_file(source, file, root);
    layer.unguarded = unguarded;
    let unread = layer.take_variables(&|name| variables.get(name)?.as_str().map(str::to_owned));
    left_out.extend(unread.into_iter().map(|odd| problem(format!("{odd}"))));
    Ok((layer, left_out))
}

/// One file while it is read: what counts of it, and what was left out. Nothing in it keeps the rest from counting.
struct Reading {
    place: String,
    root: Table,
    left_out: Vec<Problem>,
}

impl Reading {
    fn say(&mut self, message: String) {
        self.left_out.push(Problem { place: self.place.clone(), message });
    }

    fn wrong(&mut self, key: &str, want: &str) {
        self.say(format!("`{key}` is ignored: it must be {want}"));
    }

    /// Sets a setting of ours, by its dotted key.
    fn put(&mut self, key: &str, value: Value) {
        let (tables, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut table = &mut self.root;
        for part in tables.split('.').filter(|part| !part.is_empty()) {
            let inner = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = inner else { return };
            table = inner;
        }
        table.insert(name.to_owned(), value);
    }

    /// A text that is not empty.
    fn string(&mut self, settings: &Map<String, Json>, key: &str, want: &str) -> Option<String> {
        match settings.get(key)? {
            Json::String(text) => return Some(text.clone()).filter(|text| !text.trim().is_empty()),
            Json::Null => {}
            _ => self.wrong(key, want),
        }
        None
    }

    fn flag(&mut self, settings: &Map<String, Json>, key: &str) -> Option<bool> {
        match settings.get(key)? {
            Json::Bool(flag) => return Some(*flag),
            Json::Null => {}
            _ => self.wrong(key, "true or false"),
        }
        None
    }

    /// Which servers of a project's `.mcp.json` may run.
    fn servers(&mut self, settings: &Map<String, Json>) {
        let mut mcp = Table::new();
        if let Some(all) = self.flag(settings, "enableAllProjectMcpServers") {
            mcp.insert("enable_all_project".into(), Value::Boolean(all));
        }
        for (theirs, ours) in
            [("enabledMcpjsonServers", "enabled_project"), ("disabledMcpjsonServers", "disabled_project")]
        {
            match settings.get(theirs) {
                Some(Json::Array(names)) => {
                    let names = names.iter().filter_map(Json::as_str).map(|name| Value::String(name.to_owned()));
                    mcp.insert(ours.into(), Value::Array(names.collect()));
                }
                None | Some(Json::Null) => {}
                Some(_) => self.wrong(theirs, "a list of names"),
            }
        }
        match settings.get("deniedMcpServers") {
            Some(Json::Array(given)) => {
                let words = |words: &Vec<Json>| words.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" ");
                let denied = given.iter().filter_map(|entry| {
                    let text = |key: &str| entry.get(key).and_then(Json::as_str).map(str::to_owned);
                    let command = || entry.get("serverCommand").and_then(Json::as_array).map(words);
                    text("serverName").or_else(|| text("serverUrl")).or_else(command).map(Value::String)
                });
                let denied: Vec<Value> = denied.collect();
                if denied.len() < given.len() {
                    self.wrong(
                        "deniedMcpServers",
                        "a list of objects with `serverName`, `serverUrl` or `serverCommand`",
                    );
                }
                mcp.insert("denied".into(), Value::Array(denied));
            }
            None | Some(Json::Null) => {}
            Some(_) => self.wrong("deniedMcpServers", "a list"),
        }
        if !mcp.is_empty() {
            self.put("mcp", Value::Table(mcp));
        }
    }

    fn plugins(&mut self, settings: &Map<String, Json>) {
        let given = match settings.get("enabledPlugins") {
            Some(Json::Object(given)) => given,
            None | Some(Json::Null) => return,
            Some(_) => return self.wrong("enabledPlugins", "an object"),
        };
        let mut enabled = Table::new();
        for (id, on) in given {
            match on {
                Json::Bool(on) => drop(enabled.insert(id.clone(), Value::Boolean(*on))),
                _ => self.wrong(&format!("enabledPlugins.{id}"), "true or false"),
            }
        }
        self.put("plugins.enabled", Value::Table(enabled));
    }

    fn status_line(&mut self, settings: &Map<String, Json>) {
        match settings.get("statusLine") {
            Some(Json::Object(given)) => {
                let mut line = Table::new();
                if let Some(command) = given.get("command").and_then(Json::as_str) {
                    line.insert("command".into(), Value::String(command.to_owned()));
                }
                for (theirs, ours) in [("padding", "padding"), ("refreshInterval", "refresh_s")] {
                    let count = given.get(theirs).and_then(Json::as_i64).filter(|count| (0..1000).contains(count));
                    line.extend(count.map(|count| (ours.to_owned(), Value::Integer(count))));
                }
                if line.contains_key("command") {
                    self.put("status_line", Value::Table(line));
                } else {
                    self.say("`statusLine` is ignored: it has no `command`".into());
                }
            }
            None | Some(Json::Null) => {}
            Some(_) => self.wrong("statusLine", "an object"),
        }
    }

    /// Names keys that restrict elsewhere and not here, and those that nobody knows.
    fn without_effect(&mut self, settings: &Map<String, Json>) {
        let inner = settings.get("permissions").and_then(Json::as_object);
        let inner = inner.into_iter().flatten().map(|(key, value)| (format!("permissions.{key}"), value));
        for (key, value) in inner.chain(settings.iter().map(|(key, value)| (key.clone(), value))) {
            match keys::fate(&key) {
                Some(Fate::Guard(instead)) if restricts(value) => {
                    self.say(format!("`{key}` has no effect: {instead}"));
                }
                Some(_) => {}
                None if matches!(key.as_str(), "allow" | "ask" | "deny") => {
                    self.say(format!("`{key}` is ignored; did you mean `permissions.{key}`?"));
                }
                None => self.say(match keys::near(&key) {
                    Some(near) => format!("`{key}` is ignored; did you mean `{near}`?"),
                    None => format!("`{key}` is ignored: neither Claude Code nor cocode knows it"),
                }),
            }
        }
    }

    /// Reads what only has to be put into another place.
    fn simple(&mut self, settings: &Map<String, Json>, keys: &[keys::Key], before: &str) {
        for (key, fate) in keys {
            let (Fate::Sets(ours, how), Some(given)) = (fate, settings.get(*key).filter(|given| !given.is_null()))
            else {
                continue;
            };
            match converted(given, *how) {
                Ok(value) => self.put(ours, value),
                Err(want) => self.wrong(&format!("{before}{key}"), &want),
            }
        }
    }

    /// `alwaysThinkingEnabled`, which says more than an effort where it is false.
    fn thinking(&mut self, settings: &Map<String, Json>) {
        match self.flag(settings, "alwaysThinkingEnabled") {
            Some(true) => self.put("thinking.auto_enable", Value::Boolean(true)),
            Some(false) => {
                self.put("thinking.auto_enable", Value::Boolean(false));
                self.put("thinking.default_level", Value::String("none".into()));
            }
            None => {}
        }
    }

    /// What is added to commits and pull requests. `includeCoAuthoredBy` is the older key: it only counts alone.
    fn attribution(&mut self, settings: &Map<String, Json>) {
        let off = self.flag(settings, "includeCoAuthoredBy") == Some(false);
        let mut texts = [("commit", off.then(String::new)), ("pr", off.then(String::new))];
        match settings.get("attribution") {
            None | Some(Json::Null | Json::Bool(true)) => {}
            Some(Json::Bool(false)) => texts.iter_mut().for_each(|(_, text)| *text = Some(String::new())),
            Some(Json::Object(given)) => {
                for (key, text) in &mut texts {
                    match given.get(*key) {
                        None | Some(Json::Null) => {}
                        Some(Json::String(own)) => *text = Some(own.clone()),
                        Some(_) => self.wrong(&format!("attribution.{key}"), "a string"),
                    }
                }
            }
            Some(_) => self.wrong("attribution", "an object"),
        }
        for (key, text) in texts {
            if let Some(text) = text {
                self.put(&format!("attribution.{key}"), Value::String(text));
            }
        }
    }

    fn skill_overrides(&mut self, settings: &Map<String, Json>) {
        const WORDS: [&str; 4] = ["on", "name-only", "user-invocable-only", "off"];
        match settings.get("skillOverrides") {
            None | Some(Json::Null) => {}
            Some(Json::Object(given)) => {
                let mut overrides = Table::new();
                for (name, value) in given {
                    match value.as_str().filter(|word| WORDS.contains(word)) {
                        Some(word) => drop(overrides.insert(name.clone(), Value::String(word.to_owned()))),
                        None => self.wrong(&format!("skillOverrides.{name}"), &format!("one of {}", WORDS.join(", "))),
                    }
                }
                if !overrides.is_empty() {
                    self.put("skills.overrides", Value::Table(overrides));
                }
            }
            Some(_) => self.wrong("skillOverrides", "an object"),
        }
    }

    fn permissions(&mut self, settings: &Map<String, Json>) {
        let mut permissions = Table::new();
        match settings.get("permissions") {
            None | Some(Json::Null) => {}
            Some(Json::Object(given)) => self.rules(given, &mut permissions),
            Some(other) => {
                self.wrong("permissions", "an object");
                // It may have been meant to deny something.
                permissions.insert("deny".into(), Value::Array(vec![Value::String(other.to_string())]));
            }
        }
        if !permissions.is_empty() {
            self.put("permissions", Value::Table(permissions));
        }
        if let Some(Json::Object(given)) = settings.get("permissions") {
            self.simple(given, keys::PERMISSIONS, "permissions.");
        }
    }

    /// Behind the permissions, which its rules join.
    fn sandbox(&mut self, settings: &Map<String, Json>, source: Source) {
        let given = match settings.get("sandbox") {
            Some(Json::Object(given)) => given,
            None | Some(Json::Null) => return,
            Some(_) => return self.wrong("sandbox", "an object"),
        };
        let sandbox::Read { settings, rules, told } = sandbox::read(given, source);
        told.into_iter().for_each(|why| self.say(why));
        if !settings.is_empty() {
            self.put("sandbox", Value::Table(settings));
        }
        for (list, rule) in rules {
            let permissions = self.root.entry("permissions").or_insert_with(|| Value::Table(Table::new()));
            let Some(permissions) = permissions.as_table_mut() else { continue };
            let rules = permissions.entry(list).or_insert_with(|| Value::Array(Vec::new()));
            if let Some(rules) = rules.as_array_mut() {
                rules.push(Value::String(rule));
            }
        }
    }

    fn rules(&mut self, given: &Map<String, Json>, permissions: &mut Table) {
        for (theirs, ours) in
            [("allow", "allow"), ("ask", "ask"), ("deny", "deny"), ("additionalDirectories", "additional_directories")]
        {
            let list = self.list(given.get(theirs), theirs);
            if given.get(theirs).is_some_and(Json::is_array) || !list.is_empty() {
                permissions.insert(ours.into(), Value::Array(list));
            }
        }
        match given.get("defaultMode") {
            None | Some(Json::Null) => {}
            Some(Json::String(mode)) if matches!(mode.as_str(), "default" | "acceptEdits" | "plan" | "dontAsk") => {
                permissions.insert("default_mode".into(), Value::String(mode.clone()));
            }
            Some(Json::String(mode)) if mode == "manual" => {
                permissions.insert("default_mode".into(), Value::String("default".into()));
            }
            Some(Json::String(mode)) if mode == "bypassPermissions" => {
                self.say("`permissions.defaultMode` bypassPermissions is ignored: it can only be set by flag".into());
            }
            Some(_) => self.wrong("permissions.defaultMode", "one of default, acceptEdits, plan, dontAsk"),
        }
        match given.get("disableBypassPermissionsMode") {
            None | Some(Json::Null | Json::Bool(false)) => {}
            Some(other) => {
                if *other != "disable" {
                    self.say(
                        "`permissions.disableBypassPermissionsMode` is read as \"disable\", its only value".into(),
                    );
                }
                permissions.insert("disable_bypass".into(), Value::Boolean(true));
            }
        }
    }

    /// The strings of a list. What else it holds is left out, unless it may have been meant to forbid something: then it stays
    /// as a rule that nobody can read.
    fn list(&mut self, given: Option<&Json>, key: &str) -> Vec<Value> {
        let forbids = matches!(key, "ask" | "deny");
        let one = |item: &Json| Value::String(item.as_str().map_or_else(|| item.to_string(), str::to_owned));
        match given {
            None | Some(Json::Null) => Vec::new(),
            Some(Json::Array(items)) => {
                let mut list = Vec::new();
                for (at, item) in items.iter().enumerate() {
                    if !item.is_string() {
                        self.wrong(&format!("permissions.{key}[{at}]"), "a string");
                    }
                    if item.is_string() || (forbids && !item.is_null()) {
                        list.push(one(item));
                    }
                }
                list
            }
            Some(text @ Json::String(_)) => {
                self.say(format!("`permissions.{key}` should be a list of strings: it is read as a list of one"));
                vec![one(text)]
            }
            Some(other) => {
                self.wrong(&format!("permissions.{key}"), "a list of strings");
                if forbids { vec![one(other)] } else { Vec::new() }
            }
        }
    }

    fn variables(&mut self, settings: &Map<String, Json>) -> Table {
        let mut variables = Table::new();
        match settings.get("env") {
            Some(Json::Object(given)) => {
                for (name, value) in given {
                    match value {
                        Json::String(text) => variables.insert(name.clone(), Value::String(text.clone())),
                        Json::Number(_) | Json::Bool(_) => {
                            variables.insert(name.clone(), Value::String(value.to_string()))
                        }
                        Json::Null | Json::Array(_) | Json::Object(_) => {
                            self.wrong(&format!("env.{name}"), "a string");
                            None
                        }
                    };
                }
                self.put("env", Value::Table(variables.clone()));
            }
            None | Some(Json::Null) => {}
            Some(_) => self.wrong("env", "an object"),
        }
        variables
    }
}

/// Whether a value asks for something: it is not off or empty, and not switched off inside.
fn restricts(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => false,
        Json::Array(items) => !items.is_empty(),
        Json::Object(given) => !given.is_empty() && given.get("enabled") != Some(&Json::Bool(false)),
        Json::Bool(true) | Json::Number(_) | Json::String(_) => true,
    }
}

/// A value as one of ours.
///
/// # Errors
/// What it must be.
fn converted(given: &Json, how: As) -> Result<Value, String> {
    let flag = || given.as_bool().ok_or("true or false".to_owned());
    match how {
        As::Flag => Ok(Value::Boolean(flag()?)),
        As::Off => Ok(Value::Boolean(!flag()?)),
        As::Text => {
            let text = given.as_str().filter(|text| !text.trim().is_empty());
            Ok(Value::String(text.ok_or("a string")?.to_owned()))
        }
        As::Texts => {
            let items = given.as_array().ok_or("a list of strings")?.iter();
            let texts = items.map(|item| item.as_str().map(|text| Value::String(text.to_owned())));
            Ok(Value::Array(texts.collect::<Option<_>>().ok_or("a list of strings")?))
        }
        As::Count(least) => {
            let count = given.as_i64().filter(|count| (least..=i64::from(u32::MAX)).contains(count));
            count.map(Value::Integer).ok_or(format!("a whole number, at least {least}"))
        }
        As::Share => {
            let share = given.as_f64().filter(|share| *share > 0.0 && *share <= 1.0);
            share.map(Value::Float).ok_or("a number above 0, at most 1".into())
        }
        As::Word(words) => {
            let word = given.as_str().and_then(|word| words.iter().find(|(theirs, _)| *theirs == word));
            match word {
                Some((_, Ours::Text(ours))) => Ok(Value::String((*ours).to_owned())),
                Some((_, Ours::Flag(ours))) => Ok(Value::Boolean(*ours)),
                None => Err(format!(
                    "one of {} here",
                    words.iter().map(|(theirs, _)| *theirs).collect::<Vec<_>>().join(", ")
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let shown = match parse(Source::Project, Path::new("s.json"), text) {
            Ok((layer, left_out)) => {
                let mut lines = Vec::new();
                super::super::layer::leaves(&layer.table, "", &mut |key, value| lines.push(format!("{key} = {value}")));
                lines.extend(left_out.iter().map(ToString::to_string));
                lines.join("\n")
            }
            Err(problem) => format!("broken: {problem}"),
        };
        assert_eq!(shown, want, "{text}");
    }

    #[test]
    fn documented_keys_are_read_and_foreign_ones_left_alone() {
        check("", "");
        check(r#"{"spinnerVerbs": [], "$schema": "x"}"#, "");
        check(
            r#"{"statusLine": {"type": "command", "command": "~/.claude/line.sh", "padding": 2, "refreshInterval": 5}}"#,
            "status_line.command = \"~/.claude/line.sh\"\nstatus_line.padding = 2\nstatus_line.refresh_s = 5",
        );
        check(r#"{"statusLine": []}"#, "s.json: `statusLine` is ignored: it must be an object");
        check(r#"{"statusLine": {"type": "command"}}"#, "s.json: `statusLine` is ignored: it has no `command`");
        check(
            r#"{"permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(.env)"], "defaultMode": "plan", "additionalDirectories": ["../docs"]},
                "model": "opus", "env": {"CI": 1, "X": {}}, "cleanupPeriodDays": 7}"#,
            "env.CI = \"1\"\nmodel = \"opus\"\npermissions.additional_directories = [\"../docs\"]\n\
             permissions.allow = [\"Bash(ls:*)\"]\npermissions.default_mode = \"plan\"\n\
             permissions.deny = [\"Read(.env)\"]\nsessions.cleanup_period_days = 7\n\
             s.json: `env.X` is ignored: it must be a string",
        );
        check(r#"{"editorMode": "vim", "model": null}"#, "tui.editor_mode = \"vim\"");
        check(r#"{"editorMode": 1}"#, "s.json: `editorMode` is ignored: it must be one of normal, vim, emacs here");
        check(
            r#"{"env": {"ANTHROPIC_BASE_URL": "http://gate", "ANTHROPIC_AUTH_TOKEN": "t", "DISABLE_COMPACT": "maybe"}, "apiKeyHelper": "cat key"}"#,
            "env.ANTHROPIC_AUTH_TOKEN = \"t\"\nenv.ANTHROPIC_BASE_URL = \"http://gate\"\nenv.DISABLE_COMPACT = \"maybe\"\n\
             providers.anthropic.api_key_command = \"cat key\"\nproviders.anthropic.api_key_env = \"ANTHROPIC_AUTH_TOKEN\"\n\
             providers.anthropic.base_url = \"http://gate\"\nproviders.anthropic.key_header = \"bearer\"\n\
             s.json: variable DISABLE_COMPACT: ignored: it must be 1 or 0, but is \"maybe\"",
        );
        check(r#"{"apiKeyHelper": 3}"#, "s.json: `apiKeyHelper` is ignored: it must be a shell command");
        check(r#"{"autoCompactEnabled": false}"#, "compact.auto = false");
        check(r#"{"autoCompactEnabled": "no"}"#, "s.json: `autoCompactEnabled` is ignored: it must be true or false");
        check(
            r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#,
            "s.json: `permissions.defaultMode` bypassPermissions is ignored: it can only be set by flag",
        );
    }

    /// Every top-level key of Claude Code 2.1.330, as its reference and our specification name them.
    const ALL: &str = "$schema advisorModel agent agentPushNotifEnabled allowAllClaudeAiMcps allowManagedHooksOnly \
        allowManagedMcpServersOnly allowManagedPermissionRulesOnly additionalMarketplaces allowedChannelPlugins \
        allowedHttpHookUrls allowedMarketplaces allowedMcpServers alwaysThinkingEnabled apiKeyHelper appendPlugins \
        askUserQuestionTimeout attribution autoCompactEnabled autoCompactWindow autoContinueAtUsageLimit autoDreamEnabled \
        autoMemoryDirectory autoMemoryEnabled autoMode autoScrollEnabled autoUpdates autoUpdatesChannel availableModels \
        awaySummaryEnabled awsAuthRefresh awsCredentialExport axScreenReader bashEditDiffEnabled bashOutputMaxChars \
        blockedMarketplaces browserExternalPageTools channelsEnabled claudeMd claudeMdExcludes cleanupPeriodDays \
        companyAnnouncements crossSessionInbound defaultShell deniedMcpServers deniedModels dialogExpiry disableAgentView \
        disableAllHooks disableArtifact disableAutoMode disableBrowserExternalNavigation disableBundledSkills \
        disableClaudeAiConnectors disableCommandPluginSources disableDeepLinkRegistration disableDesktopLocalSessions \
        disableMobileSimulatorTools disableRemoteControl disableSideloadFlags disableSkillShellExecution disableWorkflows \
        disabledMcpjsonServers editorMode effortLevel emojiCompletionEnabled enableAllProjectMcpServers enableArtifact \
        enableWorkflows enabledMcpjsonServers enabledPlugins enforceAvailableModels env extraKnownMarketplaces \
        fallbackModel fastMode fastModePerSessionOptIn feedbackSurveyRate feedbackSurveyState fileCheckpointingEnabled \
        fileSuggestion footerLinksRegexes forceLoginGatewayUrl forceLoginMethod forceLoginOrgUUID \
        forceRemoteSettingsRefresh gcpAuthRefresh hooks httpHookAllowedEnvVars idleCompaction includeCoAuthoredBy \
        includeGitInstructions inputNeededNotifEnabled isolatePeerMachines keybindingFlavor language managedMcpServers \
        managedSourcesBehavior maxEffortLevel maxProseWidth minimumVersion model modelOverrides modelPicker modelPricing \
        modelSettings otelHeadersHelper outputStyle parentSettingsBehavior permissions plansDirectory pluginConfigs \
        pluginSuggestionMarketplaces pluginTrustMessage policyHelper prUrlTemplate precomputeCompactionEnabled \
        preferredNotifChannel prefersReducedMotion prependPlugins processWrapper promptCacheTtl promptSuggestionEnabled \
        proxyAuthHelper remote remoteControlAtStartup requiredMaximumVersion requiredMinimumVersion respectGitignore \
        respondToBashCommands sandbox showClearContextOnPlanAccept showMessageTimestamps showThinkingSummaries \
        showTurnDuration skillListingBudgetFraction skillListingMaxDescChars skillOverrides skipAutoPermissionPrompt \
        skipDangerousModePermissionPrompt skipWebFetchPreflight spellcheck spinnerTipsEnabled spinnerTipsOverride \
        spinnerVerbs sshConfigs sshHostAllowlist statusLine strictKnownMarketplaces strictPluginOnlyCustomization \
        subagentPromptCacheTtl subagentStatusLine switchModelsOnFlag syncClaudeAiSkills syntaxHighlightingDisabled \
        taskOutputMaxChars teammateMode terminalProgressBarEnabled terminalTitleFromRename theme timeFormat timeZone \
        todoFeatureEnabled tui ultracode useAutoModeDuringPlan verbose viewMode vimInsertModeRemaps voice voiceEnabled \
        wheelScrollAccelerationEnabled workflowKeywordTriggerEnabled workflowSizeGuideline worktree \
        wslInheritsWindowsSettings permissions.allow permissions.ask permissions.deny permissions.additionalDirectories \
        permissions.defaultMode permissions.disableBypassPermissionsMode permissions.disableAutoMode \
        permissions.blockReadsOutsideWorkingDirectories permissions.blockWritesOutsideWorkingDirectories \
        permissions.denyInsteadOfPrompting";

    /// A value of each key that is read, and what comes of it.
    const EFFECTS: &[(&str, &str, &str)] = &[
        ("model", r#""opus""#, "model = \"opus\""),
        ("availableModels", r#"["sonnet", "haiku"]"#, "available_models = [\"sonnet\", \"haiku\"]"),
        ("deniedModels", r#"["opus"]"#, "denied_models = [\"opus\"]"),
        ("alwaysThinkingEnabled", "true", "thinking.auto_enable = true"),
        ("effortLevel", r#""medium""#, "thinking.default_level = \"deep\""),
        ("maxEffortLevel", r#""low""#, "thinking.max_level = \"none\""),
        ("language", r#""japanese""#, "language = \"japanese\""),
        ("outputStyle", r#""Explanatory""#, "output_style = \"Explanatory\""),
        ("permissions", r#"{"deny": ["Read"]}"#, "permissions.deny = [\"Read\"]"),
        (
            "hooks",
            r#"{"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}"#,
            "hooks.Stop = [{ hooks = [{ command = \"a\", type = \"command\" }] }]",
        ),
        ("disableAllHooks", "true", "disable_all_hooks = true"),
        ("allowManagedHooksOnly", "true", "s.json: `allowManagedHooksOnly` only counts in managed settings"),
        ("allowedHttpHookUrls", r#"["http://a/*"]"#, "allowed_hook_urls = [\"http://a/*\"]"),
        ("httpHookAllowedEnvVars", r#"["A"]"#, "allowed_hook_variables = [\"A\"]"),
        ("sandbox", r#"{"enabled": true}"#, "sandbox.approved = \"workspace\""),
        ("env", r#"{"A": "b"}"#, "env.A = \"b\""),
        ("autoCompactEnabled", "false", "compact.auto = false"),
        ("autoCompactWindow", "500000", "compact.auto_compact_threshold = 500000"),
        ("claudeMdExcludes", r#"["**/x/CLAUDE.md"]"#, "memory.excludes = [\"**/x/CLAUDE.md\"]"),
        (
            "fileCheckpointingEnabled",
            "false",
            "undo.commands = false\ns.json: `fileCheckpointingEnabled` only counts for commands: edits can always be undone",
        ),
        ("skillListingMaxDescChars", "256", "skills.max_description = 256"),
        ("skillListingBudgetFraction", "0.02", "skills.list_share = 0.02"),
        ("cleanupPeriodDays", "20", "sessions.cleanup_period_days = 20"),
        ("theme", r#""light-ansi""#, "tui.theme = \"terminal\""),
        ("tui", r#""fullscreen""#, "tui.fullscreen = true"),
        ("editorMode", r#""vim""#, "tui.editor_mode = \"vim\""),
        ("axScreenReader", "true", "tui.screen_reader = true"),
        ("prefersReducedMotion", "true", "tui.reduced_motion = true"),
        ("syntaxHighlightingDisabled", "true", "tui.highlight = false"),
        ("preferredNotifChannel", r#""notifications_disabled""#, "tui.notifications = false"),
        ("statusLine", r#"{"type": "command", "command": "a"}"#, "status_line.command = \"a\""),
        ("companyAnnouncements", r#"["Hi"]"#, "announcements = [\"Hi\"]"),
        ("todoFeatureEnabled", "false", "tools.todos = false"),
        ("attribution", r#"{"commit": "By: me", "pr": ""}"#, "attribution.commit = \"By: me\"\nattribution.pr = \"\""),
        ("includeCoAuthoredBy", "false", "attribution.commit = \"\"\nattribution.pr = \"\""),
        ("includeGitInstructions", "false", "git_status = false"),
        ("disableBundledSkills", "true", "skills.bundled = false"),
        ("disableSkillShellExecution", "true", "skills.shell = false"),
        ("skillOverrides", r#"{"a": "name-only"}"#, "skills.overrides.a = \"name-only\""),
        (
            "apiKeyHelper",
            r#""key""#,
            "providers.anthropic.api_key_command = \"key\"\nproviders.anthropic.key_header = \"both\"",
        ),
        ("enableAllProjectMcpServers", "true", "mcp.enable_all_project = true"),
        ("enabledMcpjsonServers", r#"["a"]"#, "mcp.enabled_project = [\"a\"]"),
        ("disabledMcpjsonServers", r#"["a"]"#, "mcp.disabled_project = [\"a\"]"),
        ("deniedMcpServers", r#"[{"serverName": "a"}]"#, "mcp.denied = [\"a\"]"),
        ("enabledPlugins", r#"{"a@b": true}"#, "plugins.enabled.a@b = true"),
        ("permissions.allow", r#"["Read"]"#, "permissions.allow = [\"Read\"]"),
        ("permissions.ask", r#"["Read"]"#, "permissions.ask = [\"Read\"]"),
        ("permissions.deny", r#"["Read"]"#, "permissions.deny = [\"Read\"]"),
        ("permissions.additionalDirectories", r#"["../a"]"#, "permissions.additional_directories = [\"../a\"]"),
        ("permissions.defaultMode", r#""plan""#, "permissions.default_mode = \"plan\""),
        ("permissions.disableBypassPermissionsMode", r#""disable""#, "permissions.disable_bypass = true"),
        ("permissions.blockReadsOutsideWorkingDirectories", "true", "permissions.block_outside_reads = true"),
        ("permissions.blockWritesOutsideWorkingDirectories", "true", "permissions.block_outside_writes = true"),
        ("permissions.denyInsteadOfPrompting", "true", "permissions.deny_instead_of_asking = true"),
    ];

    #[test]
    fn every_key_has_its_effect_or_is_named_with_a_reason() {
        let file = |key: &str, value: &str| match key.strip_prefix("permissions.") {
            Some(name) => format!(r#"{{"permissions": {{"{name}": {value}}}}}"#),
            None => format!(r#"{{"{key}": {value}}}"#),
        };
        let shape = super::super::shape::Shape::new();
        for key in ALL.split_whitespace() {
            let fate = keys::fate(key).unwrap_or_else(|| panic!("{key} is neither read nor named"));
            let (told, _) = keys::explain(key).unwrap();
            let effect = EFFECTS.iter().find(|(known, ..)| *known == key);
            match fate {
                Fate::Sets(..) | Fate::Read(_) => {
                    let (_, value, want) = effect.unwrap_or_else(|| panic!("nothing proves what {key} does"));
                    check(&file(key, value), want);
                    let (layer, _) = parse(Source::Project, Path::new("s.json"), &file(key, value)).unwrap();
                    assert_eq!(layer.check(&shape), [], "{key}");
                    assert!(told.contains(" read as `"), "{told}");
                }
                Fate::Guard(why) => {
                    check(&file(key, r#"["x"]"#), &format!("s.json: `{key}` has no effect: {why}"));
                    assert!(told.contains("without effect here: "), "{told}");
                }
                Fate::Not(why) | Fate::Moot(why) => {
                    check(&file(key, r#"["x"]"#), "");
                    assert!(told.ends_with(&format!(" here: {why}.")), "{told}");
                }
            }
        }
        let known = |key: &str| ALL.split_whitespace().any(|known| known == key);
        let inner = keys::PERMISSIONS.iter().map(|(key, _)| format!("permissions.{key}"));
        for key in keys::KEYS.iter().map(|(key, _)| (*key).to_owned()).chain(inner) {
            assert!(known(&key), "{key} is not in the list of this test");
        }
    }

    #[test]
    fn values_of_a_wrong_type_and_unknown_keys_are_named() {
        check(
            r#"{"availableModels": "opus", "effortLevel": "huge", "skillListingBudgetFraction": 2, "language": "", "theme": "dark-daltonized"}"#,
            "s.json: `availableModels` is ignored: it must be a list of strings\n\
             s.json: `effortLevel` is ignored: it must be one of low, medium, high, xhigh, max here\n\
             s.json: `language` is ignored: it must be a string\n\
             s.json: `skillListingBudgetFraction` is ignored: it must be a number above 0, at most 1\n\
             s.json: `theme` is ignored: it must be one of auto, dark, light, dark-ansi, light-ansi here",
        );
        check(
            r#"{"skillOverrides": {"a": "gone", "b": "off"}, "attribution": {"pr": 3}, "alwaysThinkingEnabled": false}"#,
            "skills.overrides.b = \"off\"\nthinking.auto_enable = false\nthinking.default_level = \"none\"\n\
             s.json: `attribution.pr` is ignored: it must be a string\n\
             s.json: `skillOverrides.a` is ignored: it must be one of on, name-only, user-invocable-only, off",
        );
        check(
            r#"{"spinerVerbs": {}, "zzz": 1}"#,
            "s.json: `spinerVerbs` is ignored; did you mean `spinnerVerbs`?\n\
             s.json: `zzz` is ignored: neither Claude Code nor cocode knows it",
        );
    }

    #[test]
    fn hooks_are_read_and_mistakes_in_them_named() {
        check(
            r#"{"hooks": {"Stop": 3, "PreToolUse": [{"matcher": "Bash", "hooks": [
                {"type": "command", "command": "a", "timeout": 5}, {"type": "prompt"}]}]}, "disableAllHooks": true}"#,
            "disable_all_hooks = true\n\
             hooks.PreToolUse = [{ hooks = [{ command = \"a\", timeout = 5.0, type = \"command\" }], matcher = \"Bash\" }]\n\
             s.json: `hooks.Stop` is ignored: it must be a list\n\
             s.json: `hooks.PreToolUse[0].hooks[1]` does not run, so it stops nothing: type \"prompt\" is not supported: use \"command\" with a shell command, or \"http\"",
        );
        check(
            r#"{"hooks": null, "disableAllHooks": 1}"#,
            "s.json: `disableAllHooks` is ignored: it must be true or false",
        );
    }

    #[test]
    fn one_wrong_thing_costs_that_thing() {
        check("[]", "broken: s.json: must hold a JSON object");
        check("null", "");
        check(r#"{"permissions": null, "hooks": null, "env": null, "model": null, "cleanupPeriodDays": null}"#, "");
        check(r#"{"permissions": {"allow": null, "deny": null, "defaultMode": null}}"#, "");
        check("{\n// mine\n\"model\": \"opus\", /* for now */\n}", "model = \"opus\"");
        check("{\n\"a\": 1\n\"b\": 2}", "broken: s.json:3: not valid JSON: expected `,` or `}` at line 3 column 1");
        check(
            r#"{"permissions": {"allow": ["Read", 1, null], "deny": ["Bash(rm:*)", {"a": 1}, null], "ask": {"b": 2}}}"#,
            "permissions.allow = [\"Read\"]\npermissions.ask = ['{\"b\":2}']\n\
             permissions.deny = [\"Bash(rm:*)\", '{\"a\":1}']\n\
             s.json: `permissions.allow[1]` is ignored: it must be a string\n\
             s.json: `permissions.allow[2]` is ignored: it must be a string\n\
             s.json: `permissions.ask` is ignored: it must be a list of strings\n\
             s.json: `permissions.deny[1]` is ignored: it must be a string\n\
             s.json: `permissions.deny[2]` is ignored: it must be a string",
        );
        check(
            r#"{"permissions": {"allow": 3, "deny": "Bash"}}"#,
            "permissions.deny = [\"Bash\"]\n\
             s.json: `permissions.allow` is ignored: it must be a list of strings\n\
             s.json: `permissions.deny` should be a list of strings: it is read as a list of one",
        );
        check(
            r#"{"permissions": ["Bash"]}"#,
            "permissions.deny = ['[\"Bash\"]']\ns.json: `permissions` is ignored: it must be an object",
        );
        check(
            r#"{"permissions": {"denny": ["Bash"], "elsewhere": 1, "disableAutoMode": "disable"}}"#,
            "s.json: `permissions.denny` is ignored; did you mean `permissions.deny`?\n\
             s.json: `permissions.elsewhere` is ignored: neither Claude Code nor cocode knows it",
        );
        check(
            r#"{"permission": {}, "deny": ["Bash"], "hook": {}, "theme": "dark", "permissions": {}, "permissions": {}}"#,
            "tui.theme = \"dark\"\n\
             s.json: `permissions` is in the file more than once: only the last one counts\n\
             s.json: `permission` is ignored; did you mean `permissions`?\n\
             s.json: `deny` is ignored; did you mean `permissions.deny`?\n\
             s.json: `hook` is ignored; did you mean `hooks`?",
        );
    }

    #[test]
    fn a_restriction_holds_or_is_said_not_to() {
        check(r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#, "permissions.disable_bypass = true");
        check(
            r#"{"permissions": {"disableBypassPermissionsMode": true}}"#,
            "permissions.disable_bypass = true\n\
             s.json: `permissions.disableBypassPermissionsMode` is read as \"disable\", its only value",
        );
        check(r#"{"sandbox": {"network": {}}, "deniedModels": null}"#, "");
        check(
            r#"{"permissions": {"deny": ["Bash(rm:*)"]}, "sandbox": {"enabled": true, "allowUnsandboxedCommands": false,
                "excludedCommands": ["docker *", "watchman:*"], "autoAllowBashIfSandboxed": true, "ripgrep": {"command": "rg"},
                "network": {"allowedDomains": ["*.npmjs.org"], "deniedDomains": ["evil.com:80"], "httpProxyPort": 8080},
                "filesystem": {"allowWrite": ["/tmp/build/", "./out", "~/.kube"], "denyWrite": 3, "denyRead": ["~/.aws"]}}}"#,
            "permissions.allow = [\"WebFetch(domain:*.npmjs.org)\", \"Edit(//tmp/build)\", \"Edit(/out)\", \"Edit(~/.kube)\"]\n\
             permissions.deny = [\"Bash(rm:*)\", \"WebFetch(domain:evil.com:80)\", \"Read(~/.aws)\"]\n\
             sandbox.allow_unsandboxed = false\nsandbox.approved = \"workspace\"\nsandbox.auto_allow = true\nsandbox.excluded = [\"docker\", \"watchman\"]\n\
             s.json: `sandbox.filesystem.denyWrite` is ignored: it must be a list of strings\n\
             s.json: `sandbox.ripgrep` has no effect: cocode does not know it\n\
             s.json: `sandbox.network.httpProxyPort` has no effect: cocode does not know it",
        );
        check(r#"{"sandbox": {"enabled": "yes"}}"#, "s.json: `sandbox.enabled` is ignored: it must be true or false");
        check(r#"{"sandbox": true}"#, "s.json: `sandbox` is ignored: it must be an object");
        check(
            r#"{"sandbox": {"enabled": true}, "availableModels": ["sonnet"], "permissions": {"denyInsteadOfPrompting": true}}"#,
            "available_models = [\"sonnet\"]\npermissions.deny_instead_of_asking = true\nsandbox.approved = \"workspace\"",
        );
        check(
            r#"{"maxEffortLevel": "low", "disableBundledSkills": true, "skillOverrides": {"commit": "off"}}"#,
            "skills.bundled = false\nskills.overrides.commit = \"off\"\nthinking.max_level = \"none\"",
        );
        check(
            r#"{"strictPluginOnlyCustomization": true, "processWrapper": "/opt/guard", "requiredMinimumVersion": "2.0"}"#,
            "s.json: `strictPluginOnlyCustomization` has no effect: skills, agents and hooks of the user and of trusted projects also load\n\
             s.json: `processWrapper` has no effect: commands run without it\n\
             s.json: `requiredMinimumVersion` has no effect: it is about versions of Claude Code",
        );
    }
}
