//! Skills in the engine: where they are looked for, what front ends hear of them, and what has to be settled before one runs.

use std::sync::Arc;

use super::models::Models;
use super::{Engine, Inbox, Setup};
use crate::agent::desk::{Desk, Prompt};
use crate::agent::runs::{self, Invocation, Named};
use crate::commands::catalog::{Legacy, Tracking};
use crate::commands::discover::Folders;
use crate::commands::skill::Verbosity;
use crate::commands::{Catalog, report};
use crate::config::paths::{Env, Paths};
use crate::config::settings::ReminderVerbosity;
use crate::config::{Config, Loaded};
use crate::protocol::Event;

/// Where skills of this user in this folder may be.
pub fn folders(env: &Env, paths: &Paths, project: &std::path::Path, config: &Config) -> Folders {
    Folders {
        managed: paths.managed_dir.clone(),
        home: paths.home.clone(),
        user_config: env.config_base.clone(),
        user_home: paths.user_home.clone(),
        project: project.to_owned(),
        legacy: config.load_legacy_commands,
    }
}

/// The catalog of a session; nothing is read yet.
pub(super) fn catalog(setup: &Setup) -> Arc<Catalog> {
    let folders = folders(&setup.env, &setup.paths, &setup.project, &setup.loaded.config);
    Arc::new(Catalog::new(folders, setup.clocks.wall))
}

/// Begins to load beside everything else.
pub(super) fn load(catalog: &Arc<Catalog>, loaded: &Loaded) -> tokio::task::JoinHandle<()> {
    let config = &loaded.config;
    let legacy = if config.load_legacy_commands { Legacy::Load } else { Legacy::Name };
    let tracking = if config.skill_usage_tracking { Tracking::On } else { Tracking::Off };
    let catalog = catalog.clone();
    tokio::task::spawn_blocking(move || {
        catalog.configure(legacy, tracking);
        catalog.refresh();
    })
}

/// What the agent needs.
pub(super) fn settings(catalog: &Arc<Catalog>, loaded: &Loaded, models: &Models) -> runs::Settings {
    let skills = &loaded.config.skills;
    runs::Settings {
        catalog: catalog.clone(),
        models: models.lookup(),
        verbosity: match skills.verbosity {
            ReminderVerbosity::Sparse => Verbosity::Sparse,
            ReminderVerbosity::Normal => Verbosity::Normal,
            ReminderVerbosity::Detailed => Verbosity::Detailed,
        },
        named: if skills.include_name { Named::Yes } else { Named::No },
        list_budget: skills.list_budget,
    }
}

/// Tells the front ends of all commands, and what is to be said once.
pub(super) async fn publish(catalog: &Catalog, desk: &Desk) {
    desk.emit(Event::Commands { registry: catalog.current().registry.clone() }).await;
    for text in catalog.take_notices() {
        desk.emit(Event::Notice { text }).await;
    }
}

/// Looks for changes; front ends hear of them.
pub(super) async fn refresh(catalog: &Catalog, desk: &Desk) {
    if catalog.refresh().1 {
        publish(catalog, desk).await;
    }
}

/// A typed command as a prompt, when it stands for a skill.
pub(super) fn prompt(catalog: &Catalog, name: &str, args: &str) -> Option<Prompt> {
    catalog.refresh().0.named(name)?;
    let skill = Invocation { name: name.to_owned(), args: args.to_owned() };
    Some(Prompt { text: skill.line(), attachments: Vec::new(), skill: Some(skill) })
}

impl Engine {
    /// Whether the skill that a prompt asks for can run now. Asks for trust, where the skill wants what needs it.
    pub(super) async fn can_run(&mut self, prompt: &Prompt, inbox: &mut Inbox) -> bool {
        let Some(skill) = &prompt.skill else { return true };
        if let Some(text) = self.agent.refuses_skill(&skill.name) {
            let restore = Some(prompt.text.clone());
            self.desk.emit(Event::Error { text, restore }).await;
            return false;
        }
        let wants = self.agent.wants_trust(&skill.name);
        if !wants.is_empty() && !self.trust_asked {
            self.ask_trust(wants, inbox).await;
        }
        true
    }

    pub(super) async fn skills(&mut self, args: &str) {
        match args {
            "" => self.tell(report::markdown(&self.catalog.refresh().0)).await,
            "reload" => {
                let now = self.catalog.reload();
                publish(&self.catalog, &self.desk.clone()).await;
                let (count, errors) = (now.skills.len(), now.errors());
                self.tell(format!("{count} skills were loaded anew; {errors} errors.")).await;
            }
            other => {
                self.fail(format!(
                    "`/skills {other}` does nothing: `/skills` lists them, `/skills reload` loads them anew."
                ))
                .await
            }
        }
    }
}
