//! What of a plugin runs, and what it grants: line by line, as the user is asked for it.
//!
//! A line stands for the files of the plugin that it runs, so that an update which changes one of them asks again. It holds
//! no path of this machine: where a plugin lies changes with every version of it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Plugin;
use super::told::{Fault, fault};
use crate::commands::{Plugin as Owner, Severity, Skill, expand};
use crate::hooks::{self, Definitions};
use crate::permission::{Bound, Use};
use crate::stdx::ansi::shown;
use crate::stdx::sealed::Sealed;

/// Everything of a plugin.
#[derive(Default)]
pub(super) struct Found {
    pub(super) uses: Vec<Use>,
    /// Files that its hooks run, by line, and those that its servers run, by name.
    pub(super) sealed: BTreeMap<String, Sealed>,
    pub(super) served: BTreeMap<String, Sealed>,
    pub(super) faults: Vec<Fault>,
}

pub(super) fn of(plugin: &Plugin, skills: &[Skill]) -> Found {
    let Found { mut uses, mut sealed, mut served, mut faults } = Found::default();
    let (name, id) = (&plugin.manifest.name, &plugin.id);
    let single = |(event, matcher, hook): (hooks::Event, Option<&str>, &hooks::Definition)| {
        let group = hooks::Group { matcher: matcher.map(str::to_owned), hooks: vec![hook.clone()] };
        (hook.line(), hook.command(), Definitions([(event, vec![group])].into()))
    };
    for (at, (line, command, hook)) in plugin.manifest.hooks.all().map(single).enumerate() {
        let runs = runs(&plugin.root, command.iter().map(String::as_str));
        sealed.insert(line, runs.runs().clone());
        let event = hook.0.keys().next().map(ToString::to_string).unwrap_or_default();
        let bound = serde_json::to_string(&hook).unwrap_or_default();
        let line = shown(&format!("plugin {name}: {}", hook.lines().join("; ")));
        uses.push(Use::running(format!("hook {at} {event} of the plugin {id}"), line, &bound, &runs));
    }
    for (server, read) in plugin.servers(&plugin.root, None, &mut |_, _| ()) {
        let own = &server.name;
        match read {
            Ok(definition) => {
                let runs = runs(&plugin.root, definition.program().into_iter());
                served.insert(own.clone(), runs.runs().clone());
                let line = shown(&format!("plugin {name}: MCP server {own}: {definition}"));
                let key = format!("server {own} of the plugin {id}");
                uses.push(Use::running(key, line, &definition.bound, &runs));
            }
            Err(what) => {
                let words =
                    [&*format!("MCP server `{own}`: {what}"), "the server is ignored", "correct it, or remove it"];
                faults.push(fault(&server.file, Severity::Error, words));
            }
        }
    }
    for skill in skills {
        uses.extend(granted_by(skill));
        uses.extend(skill.body().ok().and_then(|body| run_by(skill, &body)));
    }
    Found { uses, sealed, served, faults }
}

/// What the head of a plugin's skill grants and runs.
pub fn granted_by(skill: &Skill) -> Vec<Use> {
    let Some(plugin) = &skill.plugin else { return Vec::new() };
    let (mut uses, place) = (Vec::new(), place(skill, plugin));
    if !skill.allowed_tools.is_empty() {
        let tools = skill.allowed_tools.join(", ");
        let line = shown(&format!("plugin {}: allowed tools of /{}: {tools}", plugin.name, skill.name));
        uses.push(Use::new(format!("tools of {place}"), line, &place));
    }
    if let Some((given, hooks, runs)) = hooks_of(skill) {
        let line = format!("plugin {}: hooks of /{}: {}", plugin.name, skill.name, hooks.lines().join("; "));
        uses.push(Use::running(format!("hooks of {place}"), shown(&line), &given.to_string(), &runs));
    }
    uses
}

/// The commands in the text of a plugin's skill.
pub fn run_by(skill: &Skill, body: &str) -> Option<Use> {
    let plugin = skill.plugin.as_ref()?;
    let commands = expand::commands(body);
    if commands.is_empty() {
        return None;
    }
    let runs = runs(&plugin.root, commands.iter().map(String::as_str));
    let (place, told) = (place(skill, plugin), commands.join("; "));
    let line = format!("plugin {}: commands that /{} runs at once: {told}", plugin.name, skill.name);
    Some(Use::running(format!("commands of {place}"), shown(&line), &format!("{place}{commands:?}"), &runs))
}

/// The hooks of a plugin's skill, as written and as read, and what of the plugin they run.
pub fn hooks_of(skill: &Skill) -> Option<(Value, Definitions, Bound)> {
    let plugin = skill.plugin.as_ref()?;
    let given = Value::Object(skill.hooks.clone()?);
    let (hooks, _) = Definitions::read(&given);
    let commands: Vec<String> = hooks.all().filter_map(|(_, _, hook)| hook.command()).collect();
    let runs = runs(&plugin.root, commands.iter().map(String::as_str));
    Some((given, hooks, runs))
}

/// A skill's file in its plugin, with the plugin's id.
fn place(skill: &Skill, plugin: &Owner) -> String {
    let path = skill.path().unwrap_or(Path::new(""));
    format!("{} {}", plugin.id, path.strip_prefix(&plugin.root).unwrap_or(path).display())
}

/// What of the plugin in `root` these lines run.
fn runs<'a>(root: &Path, lines: impl Iterator<Item = &'a str>) -> Bound {
    let lines: Vec<String> = lines.map(|line| as_run(line, root)).collect();
    Bound::commands(root, lines.iter().map(String::as_str))
}

/// A line with the plugin's folder where it is named. The project's is not the folder that is looked through here, so its
/// variable gets a name that leads nowhere.
fn as_run(line: &str, root: &Path) -> String {
    let line = line.replace("CLAUDE_PROJECT_DIR", "COCODE_PROJECT_DIR");
    let Some(root) = hooks::plain(root).filter(|root| !root.contains(' ')) else { return line };
    let mut line = line;
    for owner in ["CLAUDE", "COCODE"] {
        line = line.replace(&format!("${{{owner}_PLUGIN_ROOT}}"), root);
        line = line.replace(&format!("${owner}_PLUGIN_ROOT"), root);
    }
    line
}
