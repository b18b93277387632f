//! Claude Code's settings files: the documented keys are read, all others are ignored.

use std::path::Path;

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use super::layer::{Layer, Problem, Source, read_text};
use crate::hooks::Definitions;
use crate::stdx::nearest::nearest;

/// Reads a `settings.json`; `None` if it does not exist. The list is of values that are left out, with the reason.
///
/// # Errors
/// The file cannot be read, is not a JSON object, or holds rules of a wrong type.
pub(crate) fn read(source: Source, file: &Path) -> Result<Option<(Layer, Vec<Problem>)>, Problem> {
    match read_text(file)? {
        Some(text) => parse(source, file, &text).map(Some),
        None => Ok(None),
    }
}

fn parse(source: Source, file: &Path, text: &str) -> Result<(Layer, Vec<Problem>), Problem> {
    let settings = object(file, text)?;
    let problem = |message: String| Problem { place: file.display().to_string(), message };
    let (mut root, mut permissions, mut left_out) = (Table::new(), Table::new(), Vec::new());
    if let Some(given) = settings.get("permissions") {
        let given = given.as_object().ok_or_else(|| problem("`permissions` must be an object".into()))?;
        for (theirs, ours) in
            [("allow", "allow"), ("ask", "ask"), ("deny", "deny"), ("additionalDirectories", "additional_directories")]
        {
            if let Some(list) = given.get(theirs) {
                let list = strings(list)
                    .ok_or_else(|| problem(format!("`permissions.{theirs}` must be a list of strings")))?;
                permissions.insert(ours.into(), Value::Array(list));
            }
        }
        let known = ["allow", "ask", "deny", "additionalDirectories", "defaultMode", "disableBypassPermissionsMode"];
        for key in given.keys().filter(|key| !known.contains(&key.as_str())) {
            if let Some(near) = nearest(key, known) {
                left_out.push(problem(format!("`permissions.{key}` is ignored; did you mean `permissions.{near}`?")));
            }
        }
        match given.get("defaultMode").map(|mode| mode.as_str().unwrap_or_default()) {
            Some(mode @ ("default" | "acceptEdits" | "plan" | "dontAsk")) => {
                permissions.insert("default_mode".into(), Value::String(mode.into()));
            }
            Some("bypassPermissions") => left_out.push(problem(
                "`permissions.defaultMode` bypassPermissions is ignored: it can only be set by flag".into(),
            )),
            Some(_) => left_out.push(problem(
                "`permissions.defaultMode` is ignored: it must be one of default, acceptEdits, plan, dontAsk".into(),
            )),
            None => {}
        }
    }
    if !permissions.is_empty() {
        root.insert("permissions".into(), Value::Table(permissions));
    }
    match settings.get("model") {
        Some(Json::String(model)) if !model.is_empty() && model != "default" => {
            root.insert("model".into(), Value::String(model.clone()));
        }
        None | Some(Json::Null | Json::String(_)) => {}
        Some(_) => left_out.push(problem("`model` is ignored: it must be a string".into())),
    }
    if let Some(days) = settings.get("cleanupPeriodDays") {
        match days.as_i64().filter(|days| (0..=i64::from(u32::MAX)).contains(days)) {
            Some(days) => {
                root.insert(
                    "sessions".into(),
                    Value::Table([("cleanup_period_days".into(), Value::Integer(days))].into_iter().collect()),
                );
            }
            None => left_out.push(problem("`cleanupPeriodDays` is ignored: it must be a number of days".into())),
        }
    }
    match settings.get("autoCompactEnabled") {
        Some(Json::Bool(on)) => {
            let compact = Table::from_iter([("auto".to_owned(), Value::Boolean(*on))]);
            root.insert("compact".into(), Value::Table(compact));
        }
        None | Some(Json::Null) => {}
        Some(_) => left_out.push(problem("`autoCompactEnabled` is ignored: it must be true or false".into())),
    }
    if let Some(given) = settings.get("hooks") {
        let (hooks, ignored) = Definitions::read(given);
        left_out.extend(ignored.into_iter().map(problem));
        if let Ok(hooks) = Value::try_from(&hooks)
            && hooks.as_table().is_some_and(|table| !table.is_empty())
        {
            root.insert("hooks".into(), hooks);
        }
    }
    match settings.get("disableAllHooks") {
        Some(Json::Bool(off)) => {
            root.insert("disable_all_hooks".into(), Value::Boolean(*off));
        }
        None | Some(Json::Null) => {}
        Some(_) => left_out.push(problem("`disableAllHooks` is ignored: it must be true or false".into())),
    }
    match settings.get("editorMode").map(|mode| mode.as_str().unwrap_or_default()) {
        // `emacs` is what an earlier version called its own way.
        Some(mode @ ("normal" | "vim" | "emacs")) => {
            let mode = if mode == "vim" { "vim" } else { "normal" };
            let tui = Table::from_iter([("editor_mode".to_owned(), Value::String(mode.to_owned()))]);
            root.insert("tui".into(), Value::Table(tui));
        }
        None => {}
        Some(_) => left_out.push(problem("`editorMode` is ignored: it must be normal or vim".into())),
    }
    match settings.get("statusLine") {
        Some(Json::Object(given)) => {
            let mut line = Table::new();
            if let Some(command) = given.get("command").and_then(Json::as_str) {
                line.insert("command".into(), Value::String(command.to_owned()));
            }
            for (theirs, ours) in [("padding", "padding"), ("refreshInterval", "refresh_s")] {
                if let Some(count) = given.get(theirs).and_then(Json::as_i64).filter(|count| (0..1000).contains(count))
                {
                    line.insert(ours.into(), Value::Integer(count));
                }
            }
            if line.contains_key("command") {
                root.insert("status_line".into(), Value::Table(line));
            } else {
                left_out.push(problem("`statusLine` is ignored: it has no `command`".into()));
            }
        }
        None | Some(Json::Null) => {}
        Some(_) => left_out.push(problem("`statusLine` is ignored: it must be an object".into())),
    }
    match settings.get("apiKeyHelper") {
        // The key that it prints may be one of a gateway: both headers carry it, as wherever else this setting is read.
        Some(Json::String(command)) if !command.trim().is_empty() => {
            let provider = Table::from_iter([
                ("api_key_command".to_owned(), Value::String(command.clone())),
                ("key_header".to_owned(), Value::String("both".into())),
            ]);
            let providers = Table::from_iter([("anthropic".to_owned(), Value::Table(provider))]);
            root.insert("providers".into(), Value::Table(providers));
        }
        None | Some(Json::Null | Json::String(_)) => {}
        Some(_) => left_out.push(problem("`apiKeyHelper` is ignored: it must be a shell command".into())),
    }
    let mut variables = Table::new();
    match settings.get("env") {
        Some(Json::Object(given)) => {
            variables = given.iter().filter_map(variable).collect();
            root.insert("env".into(), Value::Table(variables.clone()));
        }
        None | Some(Json::Null) => {}
        Some(_) => left_out.push(problem("`env` is ignored: it must be an object".into())),
    }
    let mut layer = Layer::of_file(source, file, root);
    let unread = layer.take_variables(&|name| variables.get(name)?.as_str().map(str::to_owned));
    left_out.extend(unread.into_iter().map(|odd| problem(format!("{odd}"))));
    Ok((layer, left_out))
}

/// Parses the file's one JSON object; an empty file is an empty object.
pub(crate) fn object(file: &Path, text: &str) -> Result<Map<String, Json>, Problem> {
    let place = file.display().to_string();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err(Problem { place, message: "must hold a JSON object".into() }),
        Err(error) => {
            Err(Problem { place: format!("{place}:{}", error.line()), message: format!("not valid JSON: {error}") })
        }
    }
}

fn strings(list: &Json) -> Option<Vec<Value>> {
    list.as_array()?.iter().map(|item| item.as_str().map(|text| Value::String(text.into()))).collect()
}

fn variable((name, value): (&String, &Json)) -> Option<(String, Value)> {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        Json::Bool(flag) => flag.to_string(),
        Json::Null | Json::Array(_) | Json::Object(_) => return None,
    };
    Some((name.clone(), Value::String(text)))
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
             permissions.deny = [\"Read(.env)\"]\nsessions.cleanup_period_days = 7",
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
             s.json: `hooks.PreToolUse[0].hooks[1]` is ignored: type \"prompt\" is not supported: use type \"command\" with a shell command",
        );
        check(
            r#"{"hooks": null, "disableAllHooks": 1}"#,
            "s.json: `disableAllHooks` is ignored: it must be true or false",
        );
    }

    #[test]
    fn rules_that_cannot_be_read_break_the_file() {
        check("[]", "broken: s.json: must hold a JSON object");
        check(r#"{"permissions": {"deny": "Bash"}}"#, "broken: s.json: `permissions.deny` must be a list of strings");
        check(
            r#"{"permissions": {"denny": ["Bash"], "elsewhere": 1}}"#,
            "s.json: `permissions.denny` is ignored; did you mean `permissions.deny`?",
        );
        check(r#"{"permissions": {"deny": [1]}}"#, "broken: s.json: `permissions.deny` must be a list of strings");
        check("{\n\"a\": 1,\n}", "broken: s.json:3: not valid JSON: trailing comma at line 3 column 1");
    }
}
