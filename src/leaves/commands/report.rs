//! What lists say of skills: `/skills`, `cocode skills list`, and what `doctor` has to say.

use std::fmt::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::catalog::Snapshot;
use super::registry::Standing;
use super::skill::{RunsIn, Skill};

/// One skill in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkillRow {
    /// What is typed for it; `None` if nothing starts it.
    pub command: Option<String>,
    pub name: String,
    /// For people: where it is from, why it is not available, what it does.
    pub detail: String,
    /// None for one of the program's own.
    pub path: Option<PathBuf>,
}

/// Every skill, highest priority first.
pub fn rows(now: &Snapshot) -> Vec<SkillRow> {
    let row = |(skill, standing): &(std::sync::Arc<Skill>, Standing)| {
        let mut detail = skill.source.tag().to_owned();
        match standing {
            Standing::Reached => {}
            Standing::BehindBuiltin => detail.push_str(" · hidden by a built-in command"),
            Standing::Shadowed(by) => {
                let _ = write!(detail, " · shadowed by {by}");
            }
        }
        let mut note = |text: &str| {
            detail.push_str(" · ");
            detail.push_str(text);
        };
        if !skill.user_invocable {
            note("model only");
        }
        if skill.disable_model_invocation {
            note("you only");
        } else if !skill.has_description && skill.when_to_use.is_none() {
            note("hidden from the model: no description");
        }
        if skill.context == RunsIn::Fork {
            note("runs as a sub-agent");
        }
        note(&skill.description);
        SkillRow {
            command: command(now, skill, standing),
            name: skill.name.clone(),
            detail,
            path: skill.path().map(PathBuf::from),
        }
    };
    now.skills.iter().map(row).collect()
}

/// What is typed for a skill.
fn command(now: &Snapshot, skill: &Skill, standing: &Standing) -> Option<String> {
    let name = match standing {
        Standing::Reached => skill.name.clone(),
        Standing::BehindBuiltin | Standing::Shadowed(_) => format!("{}:{}", skill.source.tag(), skill.name),
    };
    let (_, found) = now.named(&name)?;
    (found.text == skill.text).then(|| format!("/{name}"))
}

/// All skills, and what is wrong with their files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SkillList {
    pub rows: Vec<SkillRow>,
    /// Files that were reached twice: the one left out, the one loaded.
    pub dropped: Vec<(PathBuf, PathBuf)>,
    /// Remarks on files, and how many of them are errors.
    pub problems: usize,
    pub errors: usize,
}

pub fn list(now: &Snapshot) -> SkillList {
    SkillList { rows: rows(now), dropped: now.dropped.clone(), problems: now.problems.len(), errors: now.errors() }
}

/// The list for programs.
pub fn to_json(now: &Snapshot) -> Value {
    let skill = |(skill, standing): &(std::sync::Arc<Skill>, Standing)| {
        let (state, by) = match standing {
            Standing::Reached => ("active", None),
            Standing::BehindBuiltin => ("behind_builtin", None),
            Standing::Shadowed(by) => ("shadowed", Some(by)),
        };
        json!({
            "name": skill.name,
            "command": command(now, skill, standing),
            "aliases": skill.aliases,
            "description": skill.description,
            "has_description": skill.has_description,
            "when_to_use": skill.when_to_use,
            "argument_hint": skill.argument_hint,
            "source": skill.source,
            "loaded_from": skill.loaded_from,
            "path": skill.path(),
            "state": state,
            "shadowed_by": by,
            "user_invocable": skill.user_invocable,
            "model_invocable": !skill.disable_model_invocation && (skill.has_description || skill.when_to_use.is_some()),
            "allowed_tools": skill.allowed_tools,
            "disallowed_tools": skill.disallowed_tools,
            "model": skill.model,
            "context": match skill.context { RunsIn::Main => "main", RunsIn::Fork => "fork" },
            "agent": skill.agent,
            "interface": skill.interface,
        })
    };
    let dropped = now.dropped.iter().map(|(path, first)| json!({ "path": path, "same_as": first }));
    let problem = |problem: &super::Diagnostic| {
        json!({
            "file": problem.file,
            "line": problem.line,
            "severity": problem.severity,
            "what": problem.what,
            "effect": problem.effect,
            "fix": problem.fix,
        })
    };
    json!({
        "skills": now.skills.iter().map(skill).collect::<Vec<_>>(),
        "duplicates": dropped.collect::<Vec<_>>(),
        "diagnostics": now.problems.iter().map(problem).collect::<Vec<_>>(),
        "legacy_commands": now.legacy,
    })
}
