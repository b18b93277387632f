//! Claude Code's settings files: the documented keys are read, all others are ignored.

mod sandbox;

use std::path::Path;

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use super::json::object;
use super::layer::{Layer, Problem, Source, read_text};
use crate::hooks::Definitions;
use crate::stdx::nearest::nearest;

/// Keys of `permissions` that mean something here.
const PERMISSIONS: [&str; 6] =
    ["allow", "ask", "deny", "additionalDirectories", "defaultMode", "disableBypassPermissionsMode"];
/// What restricts elsewhere and does not here, with what holds instead: nobody must rely on it.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("permissions.blockReadsOutsideWorkingDirectories", "reading outside of the working folders asks"),
    ("permissions.blockWritesOutsideWorkingDirectories", "writing outside of the working folders asks"),
    ("permissions.denyInsteadOfPrompting", "calls ask as usual; `defaultMode` dontAsk denies instead"),
    ("allowManagedHooksOnly", "hooks of the user and of trusted projects run, too"),
    ("allowManagedPermissionRulesOnly", "rules of the user and of trusted projects also count"),
    ("availableModels", "every model can be chosen"),
    ("deniedModels", "every model can be chosen"),
    ("disableSkillShellExecution", "commands in skills run under the permission rules"),
    ("claudeMdExcludes", "every memory file is read"),
    ("maxEffortLevel", "every thinking level can be chosen"),
    ("disableBundledSkills", "the skills that ship with cocode can be used"),
    ("skillOverrides", "every skill is offered as its own file says"),
    ("strictPluginOnlyCustomization", "skills, agents and hooks of the user and of trusted projects also load"),
    ("strictKnownMarketplaces", "plugins of every marketplace can be installed"),
    ("blockedMarketplaces", "plugins of every marketplace can be installed"),
    ("processWrapper", "commands run without it"),
    ("allowedMcpServers", "every server that you approved or set up yourself can run"),
    ("allowManagedMcpServersOnly", "every server that you approved or set up yourself can run"),
    ("requiredMinimumVersion", "it is about versions of Claude Code"),
    ("requiredMaximumVersion", "it is about versions of Claude Code"),
];
/// Keys that restrict nothing here since there is nothing to restrict.
const NOTHING_TO_DO: [&str; 1] = ["disableAutoMode"];

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
    if let Some(given) = settings.get("cleanupPeriodDays").filter(|given| !given.is_null()) {
        match given.as_i64().filter(|days| (0..=i64::from(u32::MAX)).contains(days)) {
            Some(days) => reading.put("sessions", table("cleanup_period_days", Value::Integer(days))),
            None => reading.wrong("cleanupPeriodDays", "a number of days"),
        }
    }
    if let Some(on) = reading.flag(&settings, "autoCompactEnabled") {
        reading.put("compact", table("auto", Value::Boolean(on)));
    }
    if let Some(off) = reading.flag(&settings, "disableAllHooks") {
        reading.put("disable_all_hooks", Value::Boolean(off));
    }
    if let Some(given) = settings.get("hooks") {
        let (hooks, ignored) = Definitions::read(given);
        ignored.into_iter().for_each(|why| reading.say(why));
        if let Ok(hooks) = Value::try_from(&hooks)
            && hooks.as_table().is_some_and(|table| !table.is_empty())
        {
            reading.put("hooks", hooks);
        }
    }
    match settings.get("editorMode") {
        // `emacs` is what an earlier version called its own way.
        Some(Json::String(mode)) if matches!(mode.as_str(), "normal" | "vim" | "emacs") => {
            let mode = if mode == "vim" { "vim" } else { "normal" };
            reading.put("tui", table("editor_mode", Value::String(mode.to_owned())));
        }
        None | Some(Json::Null) => {}
        Some(_) => reading.wrong("editorMode", "normal or vim"),
    }
    reading.servers(&settings);
    reading.plugins(&settings);
    reading.status_line(&settings);
    if let Some(command) = reading.string(&settings, "apiKeyHelper", "a shell command") {
        // The key that it prints may be one of a gateway: both headers carry it, as wherever else this setting is read.
        let provider = Table::from_iter([
            ("api_key_command".to_owned(), Value::String(command)),
            ("key_header".to_owned(), Value::String("both".into())),
        ]);
        reading.put("providers", table("anthropic", Value::Table(provider)));
    }
    let variables = reading.variables(&settings);
    let Reading { root, mut left_out, .. } = reading;
    let problem = |message: String| Problem { place: file.display().to_string(), message };
    let mut layer = Layer::of_file(source, file, root);
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

    fn put(&mut self, key: &str, value: Value) {
        self.root.insert(key.to_owned(), value);
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
        self.put("plugins", table("enabled", Value::Table(enabled)));
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

    fn without_effect(&mut self, settings: &Map<String, Json>) {
        for &(key, instead) in WITHOUT_EFFECT {
            let value = match key.strip_prefix("permissions.") {
                Some(key) => settings.get("permissions").and_then(|given| given.get(key)),
                None => settings.get(key),
            };
            if value.is_some_and(restricts) {
                self.say(format!("`{key}` has no effect: {instead}"));
            }
        }
        for key in settings.keys() {
            match key.as_str() {
                "allow" | "ask" | "deny" => {
                    self.say(format!("`{key}` is ignored; did you mean `permissions.{key}`?"));
                }
                "permissions" | "hooks" | "disableAllHooks" => {}
                _ => {
                    if let Some(near) = nearest(key, ["permissions", "hooks", "disableAllHooks"]) {
                        self.say(format!("`{key}` is ignored; did you mean `{near}`?"));
                    }
                }
            }
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
        let told = |key: &str| {
            NOTHING_TO_DO.contains(&key) || WITHOUT_EFFECT.iter().any(|(known, _)| known.ends_with(&format!(".{key}")))
        };
        for key in given.keys().filter(|key| !PERMISSIONS.contains(&key.as_str()) && !told(key)) {
            self.say(match nearest(key, PERMISSIONS) {
                Some(near) => format!("`permissions.{key}` is ignored; did you mean `permissions.{near}`?"),
                None => format!("`permissions.{key}` is ignored: cocode does not know it"),
            });
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

fn table(key: &str, value: Value) -> Value {
    Value::Table(Table::from_iter([(key.to_owned(), value)]))
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
        check(r#"{"spinnerVerbs": [], "includeCoAuthoredBy": false}"#, "");
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
        check(r#"{"editorMode": 1}"#, "s.json: `editorMode` is ignored: it must be normal or vim");
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

    #[test]
    fn hooks_are_read_and_mistakes_in_them_named() {
        check(
            r#"{"hooks": {"Stop": 3, "PreToolUse": [{"matcher": "Bash", "hooks": [
                {"type": "command", "command": "a", "timeout": 5}, {"type": "prompt"}]}]}, "disableAllHooks": true}"#,
            "disable_all_hooks = true\n\
             hooks.PreToolUse = [{ hooks = [{ command = \"a\", timeout = 5.0, type = \"command\" }], matcher = \"Bash\" }]\n\
             s.json: `hooks.Stop` is ignored: it must be a list\n\
             s.json: `hooks.PreToolUse[0].hooks[1]` is ignored: type \"prompt\" is not supported: use \"command\" with a shell command, or \"http\"",
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
             s.json: `permissions.elsewhere` is ignored: cocode does not know it",
        );
        check(
            r#"{"permission": {}, "deny": ["Bash"], "hook": {}, "theme": "dark", "permissions": {}, "permissions": {}}"#,
            "s.json: `permissions` is in the file more than once: only the last one counts\n\
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
        check(r#"{"sandbox": {"network": {}}, "availableModels": [], "deniedModels": null}"#, "");
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
            "sandbox.approved = \"workspace\"\n\
             s.json: `permissions.denyInsteadOfPrompting` has no effect: calls ask as usual; `defaultMode` dontAsk denies instead\n\
             s.json: `availableModels` has no effect: every model can be chosen",
        );
        check(
            r#"{"maxEffortLevel": "low", "disableBundledSkills": true, "skillOverrides": {"commit": "off"}}"#,
            "s.json: `maxEffortLevel` has no effect: every thinking level can be chosen\n\
             s.json: `disableBundledSkills` has no effect: the skills that ship with cocode can be used\n\
             s.json: `skillOverrides` has no effect: every skill is offered as its own file says",
        );
        check(
            r#"{"strictPluginOnlyCustomization": true, "processWrapper": "/opt/guard", "requiredMinimumVersion": "2.0"}"#,
            "s.json: `strictPluginOnlyCustomization` has no effect: skills, agents and hooks of the user and of trusted projects also load\n\
             s.json: `processWrapper` has no effect: commands run without it\n\
             s.json: `requiredMinimumVersion` has no effect: it is about versions of Claude Code",
        );
    }
}
