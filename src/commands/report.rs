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

/// The list as Markdown.
pub fn markdown(now: &Snapshot) -> String {
    let rows = rows(now);
    let mut text = match rows.len() {
        0 => "No skills yet; `cocode skills new <name>` creates one.".to_owned(),
        1 => "One skill:\n\n".to_owned(),
        count => format!("{count} skills, highest priority first:\n\n"),
    };
    for row in &rows {
        let place = row.path.as_ref().map(|path| format!(" (`{}`)", path.display())).unwrap_or_default();
        let name = row.command.clone().unwrap_or_else(|| row.name.clone());
        let _ = writeln!(text, "- `{name}` — {}{place}", row.detail);
    }
    if !now.dropped.is_empty() {
        text.push_str("\nFound twice, loaded once:\n\n");
        for (dropped, first) in &now.dropped {
            let _ = writeln!(text, "- `{}` is `{}`", dropped.display(), first.display());
        }
    }
    let (errors, all) = (now.errors(), now.problems.len());
    if all > 0 {
        let _ = write!(
            text,
            "\n{all} {}, {errors} of them errors: `cocode skills validate` lists them.",
            if all == 1 { "problem" } else { "problems" }
        );
    }
    text
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
