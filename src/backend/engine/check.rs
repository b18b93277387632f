//! `cocode permissions check --json`: tries a policy on one call, without running anything. What judges here is what judges
//! in a session: the toolbox reads the call, and the agent decides.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::doctor::Here;
use super::{open, places, skills};
use crate::agent::Grounds;
use crate::commands::catalog::Snapshot;
use crate::config::{self, trust};
use crate::permission::files::lexical;
use crate::permission::{Access, Mode, PermissionSettings, Places, RuleSet, Source};
use crate::sandbox::Level;
use crate::stdx::schema::Schema;
use crate::tools::answer::Answer;
use crate::tools::{Dirs, RULES, Tool, Toolbox, input};

#[derive(Deserialize)]
struct Line {
    id: Option<Value>,
    tool: String,
    input: Option<Map<String, Value>>,
    command: Option<String>,
    /// In place of those that are configured.
    rules: Option<Rules>,
    #[serde(default)]
    mode: Option<String>,
    cwd: Option<PathBuf>,
    /// What confines commands where the policy is to hold: nothing, unless the line says so.
    #[serde(default = "unconfined")]
    sandbox: Level,
}

fn unconfined() -> Level {
    Level::None
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rules {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

impl Rules {
    fn read(self) -> Result<RuleSet, String> {
        let Rules { allow, ask, deny } = self;
        let mut rules = RuleSet::default();
        let settings = PermissionSettings { allow, ask, deny, ..PermissionSettings::default() };
        let problems = settings.add_to(&mut rules, Source::CommandLine, RULES);
        problems.into_iter().next().map_or(Ok(rules), Err)
    }
}

/// Judges calls of one user.
pub struct Check<'a> {
    here: Here<'a>,
    /// The folder of the last line, with what a session in it would begin with.
    folder: Option<Folder>,
}

struct Folder {
    places: Places,
    toolbox: Toolbox,
    /// None where the configuration cannot be read.
    skills: Option<Snapshot>,
    rules: RuleSet,
    mode: Mode,
}

impl<'a> Check<'a> {
    /// For calls in `here.cwd`, where a line names no other folder.
    pub fn new(here: Here<'a>) -> Check<'a> {
        Check { here, folder: None }
    }

    /// Judges one line of JSON, by default as a session in its `cwd` would begin; its `rules` replace every configured source.
    ///
    /// # Errors
    /// What is wrong with the line and how to write it.
    pub fn line(&mut self, line: &str) -> Result<String, String> {
        let line: Line = serde_json::from_str(line).map_err(|error| format!("not a check: {error}"))?;
        let mut input = line.input.unwrap_or_default();
        if let Some(command) = line.command {
            input.insert("command".into(), Value::String(command));
        }
        let given = line.rules.map(Rules::read).transpose()?;
        let Folder { places, toolbox, skills, rules, mode } = self.folder(line.cwd.as_deref())?;
        let mode = line.mode.map_or(Ok(*mode), |mode| mode.parse())?;
        let rules = given.map_or(Cow::Borrowed(rules), Cow::Owned);
        let grounds = Grounds { mode, rules, places: places.clone(), level: line.sandbox };
        let dirs = Dirs {
            project: places.project.clone(),
            added: Vec::new(),
            cwd: places.cwd.clone(),
            home: places.home.clone(),
        };
        let access = access(toolbox, &line.tool, input, &dirs)?;
        let own_name = |name: &str| Some(skills.as_ref()?.named(name)?.1.name.clone());
        let decision = grounds.try_out(&line.tool, access, own_name);
        let mut answer = Map::new();
        if let Some(id) = line.id {
            answer.insert("id".into(), id);
        }
        answer.insert("decision".into(), json!(decision.behavior));
        answer.insert("reasons".into(), json!(decision.reasons));
        answer.insert("relies_on_sandbox".into(), json!(decision.confined));
        Ok(Value::Object(answer).to_string())
    }

    fn folder(&mut self, cwd: Option<&Path>) -> Result<&Folder, String> {
        let cwd = match cwd {
            Some(cwd) if !cwd.is_absolute() => {
                return Err(format!("cwd {:?} is not absolute: write it from / on", cwd.display().to_string()));
            }
            Some(cwd) => lexical(cwd),
            None => self.here.cwd.to_owned(),
        };
        let known = self.folder.take().filter(|folder| folder.places.cwd == cwd);
        let folder = match known {
            Some(folder) => folder,
            None => Folder::open(Here { cwd: &cwd, ..self.here })?,
        };
        Ok(self.folder.insert(folder))
    }
}

impl Folder {
    fn open(here: Here<'_>) -> Result<Folder, String> {
        let trusted = trust::of(here.paths, here.cwd);
        let own = config::load(here.paths, here.env, toml::Table::new()).ok();
        let loaded = own.map(|own| own.with_project(here.cwd, &trusted));
        let skills = loaded.as_ref().map(|loaded| skills::snapshot(here, loaded));
        let git = loaded.as_ref().map(|loaded| places::git_variables(here.env, loaded)).unwrap_or_default();
        let rules = loaded.as_ref().map(|loaded| open::rules(loaded).0).unwrap_or_default();
        let git_hooks = loaded.as_ref().map(|loaded| loaded.git_hooks.clone()).unwrap_or_default();
        let plugins = loaded.as_ref().map(|loaded| loaded.plugins.clone()).unwrap_or_default();
        let mode = loaded.map(|loaded| loaded.config.permissions.default_mode).unwrap_or_default();
        let definitions = open::definitions((here.paths, here.cwd), &trusted, &plugins, None);
        let any = Answer::new(Schema::new(json!({ "type": "object" }))?);
        let toolbox = Toolbox::builtin().with_agents(definitions).with(Arc::new(any));
        let places = Places { git, git_hooks, ..places::places(here.paths, here.cwd, &[]) };
        Ok(Folder { places, toolbox, skills, rules, mode })
    }
}

/// What a call would touch, of which only what rules look at has to be given. The inner error is why its tool would not do
/// it.
///
/// # Errors
/// There is no such tool, or the input is not one of its.
fn access(
    toolbox: &Toolbox,
    name: &str,
    input: Map<String, Value>,
    dirs: &Dirs,
) -> Result<Result<Access, String>, String> {
    // Its server is not asked.
    if name.starts_with("mcp__") {
        return Ok(Ok(Access::Foreign { read_only: false, whole: None, changed: None }));
    }
    let named = |tool: &&dyn Tool| tool.spec().name == name || tool.manners().aliases.contains(&name);
    let Some(tool) = toolbox.iter().find(named) else {
        let names: Vec<&str> = toolbox.iter().map(|tool| tool.spec().name.as_str()).collect();
        return Err(format!("unknown tool {name:?}: use one of {}, or mcp__server__tool", names.join(", ")));
    };
    let schema = &tool.spec().schema;
    let input = input::completed(input, schema, tool.manners().matched);
    input::parse::<Value>(&input, &input::check(schema)?).map_err(|problem| format!("{name}: {problem}"))?;
    Ok(tool.call(&input, dirs).map(|call| call.access().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::paths::{Env, Paths};

    /// Judges lines in a home with a skill and a sub-agent of its own, and a link out of the project.
    fn judge(line: &str) -> Result<Value, String> {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::fake(dir.path(), &[]);
        let paths = Paths::new(&env).unwrap();
        let project = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&project).unwrap();
        std::os::unix::fs::symlink("/etc", project.join("link")).unwrap();
        for (file, text) in [
            ("skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\naliases: [clean]\n---\nTidy up.\n"),
            ("settings.json", r#"{"permissions": {"deny": ["Bash(docker:*)"]}}"#),
            ("agents/reader.md", "---\nname: reader\ndescription: Reads\ntools: Read, Grep\n---\nRead.\n"),
        ] {
            let file = paths.home.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let answer = Check::new(Here { env: &env, paths: &paths, cwd: &project }).line(line)?;
        Ok(serde_json::from_str(&answer).unwrap())
    }

    #[test]
    fn decisions() {
        for (want, line) in [
            ("allow", r#"{"tool":"Bash","command":"ls","cwd":"/r"}"#),
            ("allow", r#"{"tool":"Bash","input":{"command":"ls"},"cwd":"/r"}"#),
            ("deny", r#"{"tool":"Bash","command":"ls; rm x","rules":{"deny":["Bash(rm:*)"]},"cwd":"/r"}"#),
            ("deny", r#"{"tool":"Bash","command":"docker ps","cwd":"/r"}"#),
            ("ask", r#"{"tool":"Bash","command":"docker ps","rules":{},"cwd":"/r"}"#),
            ("allow", r#"{"tool":"Read","input":{"file_path":"a"},"cwd":"/r"}"#),
            ("ask", r#"{"tool":"Read","input":{"file_path":"../a"},"cwd":"/r"}"#),
            ("ask", r#"{"tool":"Read","input":{"file_path":"link/passwd"}}"#),
            ("deny", r#"{"tool":"Read","input":{"file_path":"x/../.env"},"rules":{"deny":["Read(.env)"]},"cwd":"/r"}"#),
            (
                "deny",
                r#"{"tool":"Grep","input":{"pattern":"x","path":"secrets"},"rules":{"deny":["Read(secrets/**)"]},"cwd":"/r"}"#,
            ),
            ("allow", r#"{"tool":"Grep","cwd":"/r"}"#),
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
            ("deny", r#"{"tool":"MultiEdit","input":{"file_path":"a"},"rules":{"deny":["Edit"]},"cwd":"/r"}"#),
            ("deny", r#"{"tool":"NotebookEdit","input":{"notebook_path":"a"},"rules":{"deny":["Edit"]},"cwd":"/r"}"#),
            ("deny", r#"{"tool":"Write","input":{"file_path":"a"},"mode":"dontAsk","cwd":"/r"}"#),
            ("ask", r#"{"tool":"WebFetch","input":{"url":"https://a.b/c"}}"#),
            (
                "allow",
                r#"{"tool":"WebFetch","input":{"url":"https://a.b/c"},"rules":{"allow":["WebFetch(domain:a.b)"]}}"#,
            ),
            (
                "deny",
                r#"{"tool":"WebFetch","input":{"url":"https://a.b@evil/c"},"rules":{"allow":["WebFetch(domain:a.b)"]}}"#,
            ),
            (
                "deny",
                r#"{"tool":"WebFetch","input":{"url":"https://A.B./c"},"rules":{"deny":["WebFetch(domain:a.b)"]}}"#,
            ),
            ("ask", r#"{"tool":"WebSearch"}"#),
            ("allow", r#"{"tool":"TodoWrite"}"#),
            ("allow", r#"{"tool":"AskUserQuestion"}"#),
            ("allow", r#"{"tool":"ExitPlanMode","mode":"plan"}"#),
            ("allow", r#"{"tool":"StructuredOutput","input":{"any":"shape"}}"#),
            ("ask", r#"{"tool":"mcp__a__b"}"#),
            ("allow", r#"{"tool":"mcp__a__b","rules":{"allow":["mcp__a__*"]}}"#),
            ("deny", r#"{"tool":"mcp__a__b","rules":{"allow":["mcp__a__*"]},"mode":"plan"}"#),
            ("allow", r#"{"tool":"Task","input":{"subagent_type":"Explore"},"mode":"plan"}"#),
            ("allow", r#"{"tool":"Task","input":{"subagent_type":"reader"},"mode":"plan"}"#),
            ("deny", r#"{"tool":"Task","input":{"subagent_type":"general-purpose"},"mode":"plan"}"#),
            ("deny", r#"{"tool":"Task","input":{"subagent_type":"Coder"},"mode":"plan"}"#),
            ("deny", r#"{"tool":"Agent","input":{"subagent_type":"Explore"},"rules":{"deny":["Task(Explore)"]}}"#),
            ("deny", r#"{"tool":"Skill","input":{"skill":"commit"},"rules":{"deny":["Skill(commit)"]}}"#),
            ("deny", r#"{"tool":"Skill","input":{"skill":"clean"},"rules":{"deny":["Skill(tidy)"]}}"#),
            ("deny", r#"{"tool":"Skill","input":{"skill":"clean"},"rules":{"deny":["Skill(clean)"]}}"#),
            ("deny", r#"{"tool":"Skill","input":{"skill":"user:tidy"},"rules":{"deny":["Skill(tidy)"]}}"#),
            ("allow", r#"{"tool":"Skill","input":{"skill":"tidy"}}"#),
        ] {
            assert_eq!(judge(line).unwrap()["decision"], want, "{line}");
        }
        assert_eq!(judge(r#"{"id":7,"tool":"TodoWrite"}"#).unwrap()["id"], 7);
    }

    #[test]
    fn a_verdict_says_whether_it_relies_on_the_sandbox() {
        for (command, level, decision, relies) in [
            ("ls", "", "allow", false),
            ("ls", r#","sandbox":"kernel""#, "allow", false),
            ("ls | xargs wc -l", "", "ask", false),
            ("sort README.md | od -c", "", "ask", false),
            ("sort README.md | od -c", r#","sandbox":"none""#, "ask", false),
            ("sort README.md | od -c", r#","sandbox":"kernel""#, "allow", true),
            ("sort README.md | od -c", r#","sandbox":"mount""#, "allow", true),
            ("docker ps", r#","sandbox":"kernel""#, "deny", false),
        ] {
            let answer = judge(&format!(r#"{{"tool":"Bash","command":"{command}"{level}}}"#)).unwrap();
            assert_eq!(answer["decision"], decision, "{command} {level}: {answer}");
            assert_eq!(answer["relies_on_sandbox"], relies, "{command} {level}: {answer}");
        }
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        for (line, want) in [
            ("", "not a check"),
            ("{", "not a check"),
            (r#"{"command":"ls"}"#, "tool"),
            (r#"{"tool":"Bash"}"#, "Bash: Parameter `command` is missing"),
            (r#"{"tool":"Bash","input":{"command":[1]}}"#, "must be a string"),
            (r#"{"tool":"Foo"}"#, "unknown tool"),
            (r#"{"tool":"Bash","command":"ls","mode":"yolo"}"#, "acceptEdits"),
            (r#"{"tool":"Bash","command":"ls","cwd":"x"}"#, "not absolute"),
            (r#"{"tool":"Bash","command":"ls","sandbox":"yes"}"#, "`none`, `kernel`, `mount`"),
            (r#"{"tool":"Bash","command":"ls","rules":{"alow":[]}}"#, "alow"),
            (r#"{"tool":"Bash","command":"ls","rules":{"deny":["Bash("]}}"#, "closing parenthesis"),
        ] {
            let error = judge(line).unwrap_err();
            assert!(error.contains(want), "{line}: {error}");
        }
    }

    #[test]
    fn every_tool_can_be_tried_with_what_its_rules_match() {
        let toolbox = Toolbox::builtin();
        for tool in toolbox.iter() {
            let name = &tool.spec().name;
            let matched = match tool.manners().matched {
                "" => String::new(),
                "url" => r#""url":"https://a.b""#.to_owned(),
                "subagent_type" => r#""subagent_type":"Plan""#.to_owned(),
                other => format!("{other:?}:\"x\""),
            };
            let answer = judge(&format!(r#"{{"tool":"{name}","input":{{{matched}}}}}"#)).unwrap();
            assert_ne!(answer["decision"], "deny", "{name}: {answer}");
        }
    }
}
