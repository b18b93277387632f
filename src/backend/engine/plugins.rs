//! Plugins in the engine: what the user agreed to of them is kept with each, and they are read again on request.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::{Engine, Inbox, open, skills};
use crate::agents;
use crate::commands::Severity;
use crate::commands::discover::discover_plugin;
use crate::config::paths::Paths;
use crate::config::trust::{self, Extent};
use crate::hooks::Definitions;
use crate::permission::{Trust, Use};
use crate::plugins::{Fault, Plugin, Plugins};
use crate::tools::RULES;

/// A folder that no plugin has: only its own agents are looked for.
const NOWHERE: &str = ".claude-plugin/nowhere";

/// Remembers what the user agreed to: what a plugin of theirs does holds in every folder, all else in this one.
///
/// # Errors
/// What the file system says.
pub(super) fn remember(
    paths: &Paths,
    project: &Path,
    extent: Extent,
    (uses, plugins): (&[Use], &Plugins),
) -> io::Result<()> {
    let (mut left, known) = (uses.to_vec(), trust::of(paths, project));
    for plugin in plugins.all.iter().filter(|plugin| !plugin.of_project() && !plugin.uses.is_empty()) {
        let own: Vec<Use> = left.extract_if(.., |used| plugin.uses.contains(used)).collect();
        if own.len() == plugin.uses.len() && own.iter().any(|used| !known.covers(used)) {
            trust::remember_plugin(paths, &plugin.id, &own)?;
        }
    }
    // A folder that brings nothing along, and never did, needs no line.
    if left.is_empty() && known.difference(&[]).gone.is_empty() {
        return Ok(());
    }
    trust::remember(paths, project, extent, &left)
}

/// What is wrong with the skills and agents of a plugin.
pub fn faults(plugin: &Plugin) -> Vec<Fault> {
    let found = discover_plugin(&plugin.for_skills());
    let hooks = found.skills.iter().filter_map(|skill| Some((skill.path()?, Value::Object(skill.hooks.clone()?))));
    let rules = found.skills.iter().flat_map(|skill| {
        let wrong = skill.allowed_tools.iter().chain(&skill.disallowed_tools).filter_map(|text| RULES.rule(text).err());
        wrong.filter_map(|fault| {
            let what = format!("{:?} is not a permission rule: {}", fault.rule, fault.problem);
            Some(error(skill.path()?, what, "the rule is ignored", &fault.fix))
        })
    });
    let hooks = hooks.flat_map(|(path, hooks)| {
        let problems = Definitions::read(&hooks).1;
        problems.into_iter().map(move |what| error(path, what, "the other hooks run", "correct it, or remove it"))
    });
    let agents = agents::load(agents::Folders {
        project: &plugin.root.join(NOWHERE),
        home: &plugin.root.join(NOWHERE),
        trust: &Trust::default(),
        plugins: &[plugin.for_agents()],
    });
    let agents = agents.diagnostics().iter().map(|problem| Fault {
        severity: Severity::Warning,
        ..error(&problem.file, problem.problem.clone(), "the agent works without it", "correct it, or remove it")
    });
    let faults: Vec<Fault> = rules.chain(hooks).chain(agents).collect();
    found.problems.into_iter().chain(faults).collect()
}

fn error(file: &Path, what: String, effect: &str, fix: &str) -> Fault {
    let file = file.to_owned();
    Fault { file, line: None, severity: Severity::Error, what, effect: effect.into(), fix: fix.into() }
}

/// `/reload-plugins`: reads all of them again, and asks for what is new.
pub(super) async fn reload(engine: &mut Engine, inbox: &mut Inbox) {
    for text in engine.take_settings() {
        engine.tell(text).await;
    }
    let plugins = &engine.loaded.plugins;
    let (count, errors) = (plugins.loaded().count(), plugins.errors().len());
    let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text = format!("Reloaded {}, {}.", many(count, "plugin"), many(errors, "error"));
    if engine.agent.conversation.session.is_empty() {
        let trust = &engine.agent.policy.trust;
        let definitions = open::definitions(&engine.setup.paths, &engine.setup.project, trust, plugins);
        engine.agent.set_definitions(definitions);
    } else {
        // Their list is part of a tool's description: another one would break the provider's cache.
        text += " Agents stay as they are until the next session.";
    }
    skills::publish(&engine.catalog, &engine.mailbox.clone()).await;
    engine.tell(text).await;
    if !engine.loaded.withheld.is_empty() {
        engine.ask_trust(inbox).await;
    }
}
