//! What a project's skill grants, asks and runs, and what of it the user agreed to.

use serde_json::Value;

use super::Runs;
use crate::agent::Policy;
use crate::commands::expand;
use crate::commands::{Skill, Source as From};
use crate::hooks;
use crate::permission::{Bound, Use};
use crate::plugins;
use crate::stdx::ansi::shown;
use crate::stdx::sealed::Sealed;

impl Runs {
    /// What a skill of the project needs the user's word for and has not got.
    pub fn wants_trust(&self, name: &str, policy: &Policy) -> Vec<Use> {
        let now = self.settings.catalog.current();
        let Some((_, skill)) = now.named(name) else { return Vec::new() };
        policy.uses_of(skill).into_iter().filter(|used| !policy.trust.covers(used)).collect()
    }

    /// What the skills of the project need the user's word for, whether they have it or not.
    pub fn uses(&self, policy: &Policy) -> Vec<Use> {
        let now = self.settings.catalog.current();
        let own = now.skills.iter().filter(|(skill, _)| skill.plugin.is_none());
        own.flat_map(|(skill, _)| policy.uses_of(skill)).collect()
    }
}

impl Policy {
    fn uses_of(&self, skill: &Skill) -> Vec<Use> {
        let mut uses = self.granted_by(skill);
        if skill.source == From::ProjectSettings || skill.plugin.is_some() {
            uses.extend(skill.body().ok().and_then(|body| self.run_by(skill, &body)));
        }
        uses
    }

    /// What a skill's head grants, asks and runs, when it is the project's.
    fn granted_by(&self, skill: &Skill) -> Vec<Use> {
        if skill.plugin.is_some() {
            return plugins::uses::granted_by(skill);
        }
        let (mut uses, place) = (Vec::new(), skill.place());
        if skill.source != From::ProjectSettings {
            return uses;
        }
        let mut add = |what: &str, line: String, bound: String, runs: Bound| {
            uses.push(Use::running(format!("{what} of {place}"), shown(&line), &bound, &runs));
        };
        if !skill.allowed_tools.is_empty() {
            let tools = skill.allowed_tools.join(", ");
            add("tools", format!("allowed tools of /{}: {tools}", skill.name), place.clone(), Bound::default());
        }
        if let Some(model) = &skill.model {
            add("model", format!("the model {model} for /{}", skill.name), place.clone(), Bound::default());
        }
        if let Some((given, hooks, runs)) = self.hooks_of(skill) {
            let line = format!("hooks of /{} ({place}): {}", skill.name, hooks.lines().join("; "));
            add("hooks", line, format!("{place}{given}"), runs);
        }
        // Its own folder in the project is read like any other; another place is opened with it.
        let own = skill.path().and_then(|path| path.parent()).filter(|own| own.starts_with(&self.places.project));
        let real = skill.base().and_then(|base| base.canonicalize().ok());
        if let Some(real) = real.filter(|real| own.is_none_or(|own| !real.starts_with(own))) {
            add("folder", format!("/{} reads {} unasked", skill.name, real.display()), place.clone(), Bound::default());
        }
        uses
    }

    /// The hooks of a skill, as written and as read, and what of the project they run.
    fn hooks_of(&self, skill: &Skill) -> Option<(Value, hooks::Definitions, Bound)> {
        let given = Value::Object(skill.hooks.clone()?);
        let (hooks, _) = hooks::Definitions::read(&given);
        let commands: Vec<String> = hooks.all().filter_map(|(_, _, hook)| hook.command()).collect();
        let runs = Bound::commands(&self.places.project, commands.iter().map(String::as_str));
        Some((given, hooks, runs))
    }

    /// Files that must stay as they are while the hooks of a project's skill run.
    pub(super) fn hooks_run(&self, skill: &Skill) -> Sealed {
        if let Some((_, _, bound)) = plugins::uses::hooks_of(skill) {
            return bound.runs().clone();
        }
        let runs = self.hooks_of(skill).filter(|_| skill.source == From::ProjectSettings);
        runs.map(|(_, _, bound)| bound.runs().clone()).unwrap_or_default()
    }

    /// The commands in the text of a skill.
    fn run_by(&self, skill: &Skill, body: &str) -> Option<Use> {
        if skill.plugin.is_some() {
            return plugins::uses::run_by(skill, body);
        }
        let commands = expand::commands(body);
        let place = skill.place();
        let bound = format!("{place}{commands:?}");
        let runs = Bound::commands(&self.places.project, commands.iter().map(String::as_str));
        let line = format!("commands that /{} runs at once ({place}): {}", skill.name, commands.join("; "));
        (!commands.is_empty()).then(|| Use::running(format!("commands of {place}"), shown(&line), &bound, &runs))
    }

    pub(super) fn trusts(&self, skill: &Skill) -> bool {
        self.granted_by(skill).iter().all(|used| self.trust.covers(used))
    }

    /// Whether the commands in this very text may run.
    pub(super) fn trusts_text(&self, skill: &Skill, body: &str) -> bool {
        let asks = skill.source == From::ProjectSettings || skill.plugin.is_some();
        let used = self.run_by(skill, body).filter(|_| asks);
        used.is_none_or(|used| self.trust.covers(&used))
    }
}
