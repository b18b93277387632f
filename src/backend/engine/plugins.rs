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
use crate::permission::trust::Difference;
use crate::permission::{Trust, Use};
use crate::plugins::{self, Fault, Plugin, Plugins};
use crate::protocol::{Answer, Event, Question};
use crate::tools::RULES;

/// A folder that no plugin has: only its own agents are looked for.
const NOWHERE: &str = ".claude-plugin/nowhere";

/// What the user agrees to by itself: the folder, or one plugin of theirs.
#[derive(Debug)]
pub(super) struct Matter {
    /// Its id; None for the folder.
    pub plugin: Option<String>,
    pub uses: Vec<Use>,
    /// It was named for this session, as the folder was.
    pub named: bool,
}

impl Matter {
    /// The folder first, then each plugin that is the user's own.
    pub(super) fn all(mut uses: Vec<Use>, plugins: &Plugins) -> Vec<Matter> {
        let own = plugins.all.iter().filter(|plugin| !plugin.of_project() && !plugin.uses.is_empty());
        let own: Vec<Matter> = own
            .map(|plugin| Matter {
                plugin: Some(plugin.id.clone()),
                uses: plugin.uses.clone(),
                named: plugin.from == plugins::From::Flag,
            })
            .collect();
        uses.retain(|used| !own.iter().any(|matter| matter.uses.contains(used)));
        [Matter { plugin: None, uses, named: true }].into_iter().chain(own).collect()
    }

    /// Whether something of it needs the user's word, beside what they have said no to.
    pub(super) fn waits(&self, trust: &Trust, refused: &[Use]) -> bool {
        self.uses.iter().any(|used| !trust.covers(used) && !refused.contains(used))
    }

    pub(super) fn agree(&self, trust: &mut Trust) {
        match self.plugin {
            None => trust.agree(&self.uses),
            Some(_) => trust.agree_beside(&self.uses),
        }
    }

    /// Remembers that the user agreed: what a plugin of theirs does holds in every folder, all else in this one.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn remember(&self, paths: &Paths, project: &Path, extent: Extent) -> io::Result<()> {
        let known = trust::of(paths, project);
        match &self.plugin {
            Some(_) if self.uses.iter().all(|used| known.covers(used)) => Ok(()),
            Some(id) => trust::remember_plugin(paths, id, &self.uses),
            // A folder that brings nothing along, and never did, needs no line.
            None if self.uses.is_empty() && known.difference(&[]).gone.is_empty() => Ok(()),
            None => trust::remember(paths, project, extent, &self.uses),
        }
    }
}

/// What `--trust` agrees to: the folder, and plugins that were named with it. A plugin of the user's own is another matter.
pub(super) fn agree_to_named(trust: &mut Trust, uses: Vec<Use>, plugins: &Plugins) {
    for matter in Matter::all(uses, plugins).into_iter().filter(|matter| matter.named) {
        match matter.plugin {
            None => trust.add(&matter.uses),
            Some(_) => trust.agree_beside(&matter.uses),
        }
    }
}

/// Remembers what was agreed to, for this session alone where that fails.
pub(super) async fn remember(engine: &Engine, matter: &Matter) {
    if let Err(error) = matter.remember(&engine.setup.paths, &engine.setup.project, Extent::All) {
        let what = matter.plugin.as_ref().map_or_else(|| "folder".to_owned(), |id| format!("plugin {id}"));
        let text = format!("The {what} is trusted for this session only: {error}");
        engine.mailbox.emit(Event::Notice { text }).await;
    }
}

/// Asks about what is new in one of them, and remembers a yes.
pub(super) async fn agrees(engine: &mut Engine, matter: &Matter, inbox: &mut Inbox) -> bool {
    let Difference { new, kept, gone } = engine.agent.policy.trust.difference(&matter.uses);
    let firsts: Vec<&str> = new.iter().filter_map(|used| used.lines().next()).collect();
    let refused = firsts.join(", ");
    let (folder, plugin) = (engine.setup.project.clone(), matter.plugin.clone());
    // What is gone is gone from the folder.
    let gone = if plugin.is_none() { gone } else { Vec::new() };
    let question = Question::Trust { folder, plugin, uses: new, kept, gone };
    let mailbox = engine.mailbox.clone();
    let cancel = mailbox.begin();
    let answer = inbox.attend(mailbox.ask(question, &cancel)).await;
    mailbox.end();
    let agreed = matches!(answer, Some(Answer::Yes | Answer::Always { .. }));
    let from = matter.plugin.as_ref().map_or_else(|| "this folder".to_owned(), |id| format!("the plugin {id}"));
    if agreed {
        matter.agree(&mut engine.agent.policy.trust);
        remember(engine, matter).await;
    // A front end without a person says so with words, and has told what is not used in its own way.
    } else if matches!(answer, Some(Answer::No { feedback: None })) {
        let text = format!("Ignored from {from}: {refused}. cocode asks again at the next start.");
        mailbox.emit(Event::Notice { text }).await;
    }
    agreed
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
        given: None,
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
        let definitions =
            open::definitions((&engine.setup.paths, &engine.setup.project), trust, plugins, engine.setup.host.as_ref());
        engine.agent.set_definitions(definitions);
    } else {
        // Their list is part of a tool's description: another one would break the provider's cache.
        text += " Agents stay as they are until the next session.";
    }
    if engine.agent.policy.servers.is_none() && !engine.loaded.servers.is_empty() {
        text += " MCP servers start with the next session.";
    }
    skills::publish(&engine.catalog, &engine.mailbox.clone()).await;
    engine.tell(text).await;
    if !engine.loaded.withheld.is_empty() {
        engine.ask_trust(inbox).await;
    }
}
