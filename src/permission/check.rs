//! `cocode permissions check --json`: tries a policy on one call, without running anything.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::decide::{Decision, Query, decide};
use super::files::{Files, lexical};
use super::places::Places;
use super::rule::{RuleSet, Source};
use super::settings::PermissionSettings;
use super::{Access, Mode};

#[derive(Deserialize)]
struct Line {
    id: Option<Value>,
    tool: String,
    input: Option<Map<String, Value>>,
    command: Option<String>,
    #[serde(default)]
    rules: Rules,
    #[serde(default)]
    mode: Option<String>,
    cwd: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rules {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

/// Judges one line of JSON; `rules` replaces every configured source. `places` gives home and protected folders, and
/// the working directory of lines that name none; the line's `cwd` is the project.
///
/// # Errors
/// What is wrong with the line and how to write it.
pub fn check_line(line: &str, places: &Places, files: &dyn Files) -> Result<String, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| format!("not a check: {error}"))?;
    let mode: Mode = line.mode.as_deref().unwrap_or("default").parse()?;
    let mut places = places.clone();
    if let Some(cwd) = &line.cwd {
        if !cwd.is_absolute() {
            return Err(format!("cwd {:?} is not absolute: write it from / on", cwd.display().to_string()));
        }
        places.cwd = lexical(cwd);
        places.project = places.cwd.clone();
    }
    let mut input = line.input.unwrap_or_default();
    if let Some(command) = line.command {
        input.insert("command".into(), Value::String(command));
    }
    let access = access(&line.tool, &input, &places)?;
    let mut rules = RuleSet::default();
    let settings = PermissionSettings {
        allow: line.rules.allow,
        ask: line.rules.ask,
        deny: line.rules.deny,
        ..PermissionSettings::default()
    };
    if let Some(problem) = settings.add_to(&mut rules, Source::CommandLine).into_iter().next() {
        return Err(problem);
    }
    let query = Query { tool: &line.tool, access: &access, mode, rules: &rules, places: &places };
    let decision = decide(&query, files);
    let mut answer = Map::new();
    if let Some(id) = line.id {
        answer.insert("id".into(), id);
    }
    answer.insert("decision".into(), json!(decision.behavior));
    answer.insert("reasons".into(), json!(decision.reasons));
    Ok(Value::Object(answer).to_string())
}

/// Explains part by part what would happen with a shell line, for `/permissions test`.
pub fn explain(command: &str, mode: Mode, rules: &RuleSet, places: &Places, files: &dyn Files) -> Decision {
    let access = Access::Shell { command: command.to_owned(), cwd: places.cwd.clone() };
    decide(&Query { tool: "Bash", access: &access, mode, rules, places }, files)
}

/// What a call with this input touches, as the tools of engine.md section 3 declare it.
fn access(tool: &str, input: &Map<String, Value>, places: &Places) -> Result<Access, String> {
    let text = |key: &str| match input.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("{tool}: input.{key} must be a string")),
    };
    let needed = |key: &str| text(key)?.ok_or_else(|| format!("{tool}: input.{key} is missing"));
    let absolute = |path: &str| match (path.strip_prefix("~/"), &places.home) {
        (Some(rest), Some(home)) => lexical(&home.join(rest)),
        _ => lexical(&places.cwd.join(path)),
    };
    let optional = |key: &str| Ok::<PathBuf, String>(text(key)?.map_or_else(|| places.cwd.clone(), absolute));
    Ok(match tool {
        "Bash" => Access::Shell { command: needed("command")?.to_owned(), cwd: places.cwd.clone() },
        "Read" => Access::Read { path: absolute(needed("file_path")?) },
        "LS" => Access::Read { path: optional("path")? },
        "Write" | "Edit" | "MultiEdit" => Access::Write { path: absolute(needed("file_path")?) },
        "NotebookEdit" => Access::Write { path: absolute(needed("notebook_path")?) },
        "Grep" => Access::Search { root: optional("path")? },
        "Glob" => {
            // A pattern may lead out of the folder by itself.
            let root = optional("path")?;
            let literal = text("pattern")?.unwrap_or_default().split(['*', '?', '[', '{']).next().unwrap_or_default();
            let literal = literal.rfind('/').map_or("", |end| &literal[..=end]);
            Access::Search { root: lexical(&root.join(literal)) }
        }
        "WebFetch" => Access::Fetch { url: needed("url")?.to_owned() },
        "WebSearch" => Access::WebSearch,
        "TodoWrite" => Access::Free,
        "Task" | "Agent" => {
            let kind = text("subagent_type")?.map(str::to_owned);
            let read_only = kind.as_deref().is_some_and(|kind| matches!(kind, "Explore" | "Plan"));
            Access::Other { specifier: kind, read_only }
        }
        "Skill" => {
            let name = text("skill")?.or(text("name")?).or(text("command")?);
            Access::Other { specifier: name.map(str::to_owned), read_only: true }
        }
        "AskUserQuestion" | "EnterPlanMode" | "ExitPlanMode" | "TaskOutput" | "TaskStop" | "ToolSearch" => {
            Access::Other { specifier: None, read_only: true }
        }
        _ if tool.starts_with("mcp__") => Access::Other { specifier: None, read_only: false },
        _ => {
            return Err(format!(
                "unknown tool {tool:?}: use Bash, Read, Write, Edit, Grep, Glob, LS, WebFetch, … or mcp__server__tool"
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::files::fake::Table;
    use super::*;

    fn answer(line: &str) -> Result<Value, String> {
        let answer = check_line(line, &Places::for_tests(), &Table(&[("/r/link", "/etc")]))?;
        Ok(serde_json::from_str(&answer).unwrap())
    }

    #[test]
    fn decisions() {
        for (want, line) in [
            ("allow", r#"{"tool":"Bash","command":"ls","cwd":"/r"}"#),
            ("allow", r#"{"tool":"Bash","input":{"command":"ls"},"cwd":"/r"}"#),
            ("deny", r#"{"tool":"Bash","command":"ls; rm x","rules":{"deny":["Bash(rm:*)"]},"cwd":"/r"}"#),
            ("allow", r#"{"tool":"Read","input":{"file_path":"a"},"cwd":"/r"}"#),
            ("ask", r#"{"tool":"Read","input":{"file_path":"../a"},"cwd":"/r"}"#),
            ("ask", r#"{"tool":"Read","input":{"file_path":"link/passwd"},"cwd":"/r"}"#),
            ("deny", r#"{"tool":"Read","input":{"file_path":"x/../.env"},"rules":{"deny":["Read(.env)"]},"cwd":"/r"}"#),
            (
                "deny",
                r#"{"tool":"Grep","input":{"pattern":"x","path":"secrets"},"rules":{"deny":["Read(secrets/**)"]},"cwd":"/r"}"#,
            ),
            ("ask", r#"{"tool":"Glob","input":{"pattern":"/etc/*"},"cwd":"/r"}"#),
            ("ask", r#"{"tool":"Write","input":{"file_path":"a"},"cwd":"/r"}"#),
            ("allow", r#"{"tool":"Write","input":{"file_path":"a"},"mode":"acceptEdits","cwd":"/r"}"#),
            ("ask", r#"{"tool":"Write","input":{"file_path":".git/x"},"mode":"acceptEdits","cwd":"/r"}"#),
            ("ask", r#"{"tool":"Write","input":{"file_path":".git/x"},"mode":"bypassPermissions","cwd":"/r"}"#),
            ("ask", r#"{"tool":"Edit","input":{"file_path":".claude/x"},"rules":{"allow":["Edit"]},"cwd":"/r"}"#),
            (
                "deny",
                r#"{"tool":"Edit","input":{"file_path":"a"},"mode":"plan","rules":{"allow":["Edit"]},"cwd":"/r"}"#,
            ),
            ("deny", r#"{"tool":"NotebookEdit","input":{"notebook_path":"a"},"rules":{"deny":["Edit"]},"cwd":"/r"}"#),
            ("deny", r#"{"tool":"Write","input":{"file_path":"a"},"mode":"dontAsk","cwd":"/r"}"#),
            ("ask", r#"{"tool":"WebFetch","input":{"url":"https://a.b/c"}}"#),
            (
                "allow",
                r#"{"tool":"WebFetch","input":{"url":"https://a.b/c"},"rules":{"allow":["WebFetch(domain:a.b)"]}}"#,
            ),
            (
                "ask",
                r#"{"tool":"WebFetch","input":{"url":"https://a.b@evil/c"},"rules":{"allow":["WebFetch(domain:a.b)"]}}"#,
            ),
            (
                "deny",
                r#"{"tool":"WebFetch","input":{"url":"https://A.B./c"},"rules":{"deny":["WebFetch(domain:a.b)"]}}"#,
            ),
            ("ask", r#"{"tool":"WebSearch"}"#),
            ("allow", r#"{"tool":"TodoWrite"}"#),
            ("ask", r#"{"tool":"mcp__a__b"}"#),
            ("allow", r#"{"tool":"mcp__a__b","rules":{"allow":["mcp__a__*"]}}"#),
            ("deny", r#"{"tool":"mcp__a__b","rules":{"allow":["mcp__a__*"]},"mode":"plan"}"#),
            ("allow", r#"{"tool":"Task","input":{"subagent_type":"Explore"},"mode":"plan"}"#),
            ("deny", r#"{"tool":"Task","input":{"subagent_type":"Coder"},"mode":"plan"}"#),
            ("deny", r#"{"tool":"Agent","input":{"subagent_type":"Explore"},"rules":{"deny":["Task(Explore)"]}}"#),
            ("deny", r#"{"tool":"Skill","input":{"skill":"commit"},"rules":{"deny":["Skill(commit)"]}}"#),
        ] {
            assert_eq!(answer(line).unwrap()["decision"], want, "{line}");
        }
        assert_eq!(answer(r#"{"id":7,"tool":"TodoWrite"}"#).unwrap()["id"], 7);
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        for (line, want) in [
            ("", "not a check"),
            ("{", "not a check"),
            (r#"{"command":"ls"}"#, "tool"),
            (r#"{"tool":"Bash"}"#, "input.command is missing"),
            (r#"{"tool":"Bash","input":{"command":1}}"#, "must be a string"),
            (r#"{"tool":"Foo"}"#, "unknown tool"),
            (r#"{"tool":"Bash","command":"ls","mode":"yolo"}"#, "acceptEdits"),
            (r#"{"tool":"Bash","command":"ls","cwd":"x"}"#, "not absolute"),
            (r#"{"tool":"Bash","command":"ls","rules":{"alow":[]}}"#, "alow"),
            (r#"{"tool":"Bash","command":"ls","rules":{"deny":["Bash("]}}"#, "closing parenthesis"),
        ] {
            let error = answer(line).unwrap_err();
            assert!(error.contains(want), "{line}: {error}");
        }
    }
}
