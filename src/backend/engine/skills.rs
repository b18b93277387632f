//! Skills in the engine: where they are looked for, what front ends hear of them, and what has to be settled before one runs.

use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;

use super::doctor::Here;
use super::models::Models;
use super::{Engine, Setup};
use crate::agent::mailbox::{Mailbox, Prompt};
use crate::agent::skill_list::{self, Room};
use crate::agent::skill_runs::{self, Invocation, Named};
use crate::commands::catalog::{Legacy, Snapshot, Tracking};
use crate::commands::discover::{Folders, Hidden, Shown};
use crate::commands::skill::Verbosity;
use crate::commands::usage::Usage;
use crate::commands::{Builtin, Catalog, Kind, Standing};
use crate::config::paths::{Env, Paths};
use crate::config::settings::{ReminderVerbosity, SkillShown};
use crate::config::{Config, Loaded};
use crate::protocol::Event;
use crate::provider::catalog::ModelSpec;

/// Where skills of this user in this folder may be.
fn folders(env: &Env, paths: &Paths, project: &std::path::Path, loaded: &Loaded) -> Folders {
    Folders {
        managed: paths.managed_dir.clone(),
        home: paths.home.clone(),
        user_config: env.config_base.clone(),
        user_home: paths.user_home.clone(),
        project: project.to_owned(),
        legacy: loaded.config.load_legacy_commands,
        plugins: loaded.plugins.for_skills(),
        shown: shown(&loaded.config),
    }
}

/// What the settings say of single skills, and of those that ship with cocode.
pub(super) fn shown(config: &Config) -> Shown {
    let one = |(name, shown): (&String, &SkillShown)| match shown {
        SkillShown::On | SkillShown::NameOnly => None,
        SkillShown::UserInvocableOnly => Some((name.clone(), Hidden::FromModel)),
        SkillShown::Off => Some((name.clone(), Hidden::FromAll)),
    };
    Shown { unbundled: !config.skills.bundled, hidden: config.skills.overrides.iter().filter_map(one).collect() }
}

/// How much of skills a model with this window is told.
fn room(config: &Config, window: Option<u64>) -> Room {
    let skills = &config.skills;
    let bytes = config.compact.approx_bytes_per_token;
    let share = skills.list_share.zip(window).map(|(share, window)| (share * window as f64 * bytes) as usize);
    let bare = skills.overrides.iter().filter(|(_, shown)| **shown == SkillShown::NameOnly);
    Room {
        budget: share.unwrap_or(skills.list_budget),
        description: skills.max_description,
        bare: bare.map(|(name, _)| name.clone()).collect(),
    }
}

/// All commands and skills of a folder, read now.
pub fn snapshot(here: Here<'_>, loaded: &Loaded) -> Snapshot {
    let (folders, config) = (folders(here.env, here.paths, here.cwd, loaded), &loaded.config);
    let half_life = config.skills.usage_half_life_days;
    let usage = if config.skill_usage_tracking { Usage::open(&here.paths.home, half_life).0 } else { Usage::off() };
    Snapshot::load(&folders, &usage, SystemTime::now()).0
}

/// What `doctor` says of skills: one line, and whether something does not work.
pub(super) fn summary(here: Here<'_>, loaded: &Loaded) -> (String, bool) {
    let now = snapshot(here, loaded);
    let list = skill_list::list(&now.registry, &room(&loaded.config, None));
    let behind = now.skills.iter().filter(|(_, standing)| matches!(standing, Standing::Shadowed(_))).count();
    let taken: Vec<String> = now
        .skills
        .iter()
        .filter(|(_, standing)| *standing == Standing::BehindBuiltin)
        .map(|(skill, _)| format!("/{}:{}", skill.source.tag(), skill.name))
        .collect();
    let errors = now.errors();
    let mut text = format!("{} skills, {} for the model", now.skills.len(), list.lines.len());
    let mut note = |count: usize, what: &str| {
        if count > 0 {
            let _ = write!(text, "; {count} {what}");
        }
    };
    note(list.shortened, "descriptions are shortened in the model's list (`skills.list_budget`)");
    note(list.left_out, "omitted from it");
    note(behind, "shadowed by another of the same name (`cocode skills list`)");
    let names = format!(
        "only available by their longer names, because built-in commands use the short ones: {}",
        taken.join(", ")
    );
    note(taken.len(), &names);
    let (file, is) = if now.legacy.len() == 1 { ("file", "is") } else { ("files", "are") };
    note(now.legacy.len(), &format!("{file} in .claude/commands {is} not loaded (`cocode skills migrate`)"));
    note(errors, if errors == 1 { "error (`cocode skills validate`)" } else { "errors (`cocode skills validate`)" });
    (text, errors > 0)
}

/// The catalog of a session; nothing is read yet.
pub(super) fn catalog(setup: &Setup) -> Arc<Catalog> {
    let folders = folders(&setup.env, &setup.paths, &setup.project, &setup.loaded);
    Arc::new(Catalog::new(folders, setup.clocks.wall))
}

/// Whether old commands count as skills, and whether the use of skills is counted.
pub(super) fn switches(config: &Config) -> (Legacy, Tracking) {
    let legacy = if config.load_legacy_commands { Legacy::Load } else { Legacy::Name };
    let on = Tracking::On { half_life_days: config.skills.usage_half_life_days };
    (legacy, if config.skill_usage_tracking { on } else { Tracking::Off })
}

/// Begins to load beside everything else.
pub(super) fn load(catalog: &Arc<Catalog>, loaded: &Loaded) -> tokio::task::JoinHandle<()> {
    let (legacy, tracking) = switches(&loaded.config);
    catalog.take_plugins(loaded.plugins.for_skills());
    let (catalog, shown) = (catalog.clone(), shown(&loaded.config));
    tokio::task::spawn_blocking(move || {
        catalog.configure(legacy, tracking);
        catalog.show(shown);
        catalog.refresh();
    })
}

/// `/skills` with words behind it.
pub(super) async fn act(engine: &mut Engine, args: &str) {
    match args {
        "reload" => {
            let now = engine.catalog.reload();
            publish(&engine.catalog, &engine.mailbox.clone()).await;
            let (count, errors) = (now.skills.len(), now.errors());
            engine.tell(format!("Reloaded {count} skills, {errors} errors.")).await;
        }
        other => {
            let text =
                format!("Unknown: `/skills {other}`. `/skills` lists the skills, `/skills reload` reloads them.");
            engine.fail(text).await;
        }
    }
}

/// What the agent needs.
pub(super) fn settings(
    catalog: &Arc<Catalog>,
    loaded: &Loaded,
    models: &Models,
    spec: &ModelSpec,
) -> skill_runs::Settings {
    let skills = &loaded.config.skills;
    skill_runs::Settings {
        catalog: catalog.clone(),
        models: models.lookup(),
        verbosity: match skills.verbosity {
            ReminderVerbosity::Sparse => Verbosity::Sparse,
            ReminderVerbosity::Normal => Verbosity::Normal,
            ReminderVerbosity::Detailed => Verbosity::Detailed,
        },
        named: if skills.include_name { Named::Yes } else { Named::No },
        room: room(&loaded.config, Some(spec.window)),
        shell: skills.shell,
    }
}

/// Looks for changes, and tells the front ends of them; and what is to be said once.
pub(super) async fn publish(catalog: &Catalog, mailbox: &Mailbox) {
    catalog.refresh();
    if let Some(now) = catalog.take_news() {
        mailbox.emit(Event::Commands { registry: now.registry.clone() }).await;
    }
    for text in catalog.take_notices() {
        mailbox.emit(Event::Notice { text }).await;
    }
}

/// What the name of a command stands for.
pub(super) enum Called {
    Builtin(Builtin),
    /// A skill, as the prompt that runs it.
    Skill(Prompt),
}

/// Looks a command up, among the skills as they are now.
///
/// # Errors
/// No skill has that name; the text may know a near one.
pub(super) fn called(catalog: &Catalog, name: &str, args: &str) -> Result<Called, String> {
    let registry = &catalog.refresh().0.registry;
    match &registry.find(name).ok_or_else(|| registry.unknown(name))?.kind {
        Kind::Builtin(builtin) => Ok(Called::Builtin(*builtin)),
        Kind::Skill(_) => {
            let skill = Invocation { name: name.to_owned(), args: args.to_owned() };
            Ok(Called::Skill(Prompt { skill: Some(skill.clone()), ..Prompt::new(skill.line()) }))
        }
    }
}
