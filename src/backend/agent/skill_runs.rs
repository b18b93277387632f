//! Runs of skills: from the expansion of the text to the end of the turn. Lock, rules and model hold that long, however
//! the turn ends.

mod expansion;
mod forked_skills;
mod preload;
mod view;
mod wants;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use self::expansion::Expansion;
pub(super) use self::view::{Caller, View};
use super::mailbox::Mailbox;
use super::{Conversation, Model, Policy};
use crate::commands::skill::Verbosity;
use crate::commands::{Catalog, Skill, Source as From};
use crate::hooks::{Hooks, Origin, Registration};
use crate::message::Message;
use crate::permission::{Behavior, Disk, Source};
use crate::protocol::Event;
use crate::session::entry::EntryKind;
use crate::session::{self, Session};
use crate::stdx::git;
use crate::tools::{self, RULES};
use serde_json::Value;

/// The skill that ships with the program and is of no use outside a repository.
const COMMIT: &str = "commit";
/// Turns after an invocation in which a skill may recall itself.
const RECENT: u64 = 3;

/// Finds a model by name or role, with the limits that fit it.
///
/// Its error says why the model cannot be asked.
pub type Lookup = Arc<dyn Fn(&str) -> Result<(Model, tools::Settings), String> + Send + Sync>;

/// What skills need that is set for the session.
#[derive(Clone)]
pub struct Settings {
    pub catalog: Arc<Catalog>,
    pub models: Lookup,
    pub verbosity: Verbosity,
    pub named: Named,
    /// How much of the list the model is given.
    pub room: super::skill_list::Room,
    /// Whether commands in the text of skills run.
    pub shell: bool,
}

/// Whether a reminder begins with the name of its skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Yes,
    No,
}

/// A skill that is asked for, as it was typed or called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Without the slash.
    pub name: String,
    pub args: String,
}

impl Invocation {
    /// As it would be typed.
    pub fn line(&self) -> String {
        if self.args.is_empty() { format!("/{}", self.name) } else { format!("/{} {}", self.name, self.args) }
    }
}

/// The skills of an agent: what is set, and what runs.
pub struct Runs {
    pub settings: Settings,
    /// The one that began last is the first to end.
    running: Vec<Run>,
    /// Skills that were invoked, with the turn of it.
    recent: Vec<(Arc<Skill>, u64)>,
    turn: u64,
    /// The turn in which was reminded last.
    reminded: u64,
}

/// What a skill took for its run.
struct Run {
    skill: Arc<Skill>,
    /// The user's words behind its name; none where the model called it.
    said: Option<String>,
    hooks: Option<Registration>,
    /// The model and limits before, when the skill has others.
    before: Option<(Model, Arc<tools::Settings>)>,
}

/// Whether the user's words reach as far as a rule of a skill that ships with the program: nothing is staged unasked, and the
/// model cannot give itself what only `/name` of the user's gives.
fn asked_for(skill: &Skill, rule: &str, said: Option<&str>) -> bool {
    if skill.source != From::Bundled {
        return true;
    }
    let Some(said) = said else { return false };
    let mut words = said.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).filter(|word| !word.is_empty());
    match rule {
        "Bash(git add --all)" => words.any(|word| word == "all" || word == "everything"),
        "Bash(git add --:*)" => words.next().is_some(),
        _ => true,
    }
}

impl Runs {
    pub(super) fn new(settings: Settings) -> Runs {
        Runs { settings, running: Vec::new(), recent: Vec::new(), turn: 0, reminded: 0 }
    }

    /// Another session begins: nothing was invoked in it.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
    }

    /// The own name of the skill that another one reaches: an alias, or one with its source.
    pub(super) fn own_name(&self, name: &str) -> Option<String> {
        let (now, _) = self.settings.catalog.refresh();
        now.named(name.trim()).map(|(_, skill)| skill.name.clone())
    }

    /// What tools see of the skills.
    pub(super) fn view(&self) -> View {
        View {
            catalog: self.settings.catalog.clone(),
            running: self.running.iter().map(|run| run.skill.name.clone()).collect(),
        }
    }

    /// A turn begins. Finds the skill that its prompt asks for; None for a prompt without one.
    ///
    /// # Errors
    /// Why the skill cannot run.
    pub(super) fn next_turn(&mut self, call: Option<&Invocation>) -> Result<Option<Arc<Skill>>, String> {
        self.turn += 1;
        call.map(|call| self.view().find(&call.name, Caller::User)).transpose()
    }

    /// Takes lock, rules and hooks for a run; `said` is what the user, not the model, wants of it, where they called it. Returns the
    /// model that the skill asks for.
    pub(super) async fn begin(
        &mut self,
        (skill, said): (&Arc<Skill>, Option<&str>),
        policy: &mut Policy,
        hooks: &mut Hooks,
        mailbox: &Mailbox,
    ) -> Option<(Model, tools::Settings)> {
        for (behavior, text) in policy.rules_of(skill, said) {
            match RULES.rule(text) {
                Ok(rule) => policy.rules.add(behavior, rule, Source::Skill),
                Err(problem) => {
                    let text = format!("`/{}` {}: {problem}. The rule is ignored.", skill.name, skill.place());
                    mailbox.emit(Event::Notice { text }).await;
                }
            }
        }
        let mut run = Run { skill: skill.clone(), said: said.map(str::to_owned), hooks: None, before: None };
        if let Some(given) = skill.hooks.clone().filter(|_| policy.trusts(skill)) {
            let origin = Origin::Skill(skill.name.clone());
            let owner = skill.plugin.as_ref().map(|plugin| plugin.root.clone());
            let base = owner.or_else(|| skill.base().map(PathBuf::from));
            let (given, sealed) = (Value::Object(given), policy.hooks_run(skill));
            let (registration, problems) = hooks.register(origin, base, &given, &sealed);
            run.hooks = Some(registration);
            for problem in problems {
                mailbox.emit(Event::Notice { text: format!("`/{}` {}: {problem}", skill.name, skill.place()) }).await;
            }
        }
        self.running.push(run);
        let name = skill.model.as_ref().filter(|_| policy.trusts(skill))?;
        match (self.settings.models)(name) {
            Ok(found) => Some(found),
            Err(problem) => {
                let text =
                    format!("`/{}` asks for the model `{name}`, but {problem}. Using the session's model.", skill.name);
                mailbox.emit(Event::Notice { text }).await;
                None
            }
        }
    }

    /// Where the run of a skill is that began last.
    pub(super) fn running(&self, skill: &Skill) -> Option<usize> {
        self.running.iter().rposition(|run| run.skill.name == skill.name)
    }

    /// Keeps the model and limits that the run that began last gives back.
    pub(super) fn keep_model(&mut self, model: Model, tools: Arc<tools::Settings>) {
        if let Some(run) = self.running.last_mut() {
            run.before = Some((model, tools));
        }
    }

    /// The model that is asked from now on, as the log has it.
    pub(super) fn model_entry(&self, model: &Model) -> EntryKind {
        let borrowed = self.running.iter().any(|run| run.before.is_some());
        EntryKind::ModelChanged { model: model.name(), borrowed }
    }

    /// Ends runs from this one on, and gives back what they took. Returns the model that counts again, where they had
    /// another one.
    pub(super) fn end_from(
        &mut self,
        first: usize,
        policy: &mut Policy,
        hooks: &mut Hooks,
    ) -> Option<(Model, Arc<tools::Settings>)> {
        let ended = self.running.split_off(first);
        if ended.is_empty() {
            return None;
        }
        let mut before = None;
        for run in ended.into_iter().rev() {
            if let Some(registration) = run.hooks {
                hooks.remove(registration);
            }
            before = run.before.or(before);
        }
        policy.rules.clear(Source::Skill);
        for run in &self.running {
            for (behavior, text) in policy.rules_of(&run.skill, run.said.as_deref()) {
                // What is not a rule was told when the run began.
                if let Ok(rule) = RULES.rule(text) {
                    policy.rules.add(behavior, rule, Source::Skill);
                }
            }
        }
        before
    }

    /// Lets skills recall themselves: those that run or ran lately, once a turn.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn remind(
        &mut self,
        conversation: &mut Conversation,
        mailbox: &Mailbox,
    ) -> Result<(), session::Error> {
        let turn = self.turn;
        if std::mem::replace(&mut self.reminded, turn) == turn {
            return Ok(());
        }
        self.recent.retain(|(_, invoked)| turn <= invoked + RECENT);
        for (skill, _) in &self.recent {
            let Some(text) = skill.reminders.at(self.settings.verbosity) else { continue };
            let text = match self.settings.named {
                Named::Yes => format!("{}: {text}", skill.name),
                Named::No => text.to_owned(),
            };
            conversation.push(Message::reminder(&text), mailbox).await?;
        }
        Ok(())
    }

    /// Why the user cannot run a skill now, in this folder; none when they can.
    pub fn refuses(&self, name: &str, folder: &Path) -> Option<String> {
        match self.view().find(name, Caller::User) {
            Err(why) => Some(why),
            Ok(skill) if skill.source == From::Bundled && skill.name == COMMIT && git::root(folder).is_none() => Some(
                "This folder is not a git repository, so there is nothing to commit. `git init` makes it one.".into(),
            ),
            Ok(_) => None,
        }
    }
}

impl Policy {
    /// What a run of the skill grants and forbids.
    fn rules_of<'a>(&self, skill: &'a Skill, said: Option<&str>) -> Vec<(Behavior, &'a str)> {
        let granted = skill.allowed_tools.iter().filter(|text| self.trusts(skill) && asked_for(skill, text, said));
        let granted = granted.map(|text| (Behavior::Allow, text.as_str()));
        granted.chain(skill.disallowed_tools.iter().map(|text| (Behavior::Deny, text.as_str()))).collect()
    }

    /// The folder that a skill opens for reading: where it really is, and only while nothing but the skill's own can be
    /// meant by it. A project's stays in its repository, wherever links lead.
    fn opens(&self, skill: &Skill) -> Option<PathBuf> {
        let base = skill.base().filter(|_| self.trusts(skill))?.canonicalize().ok()?;
        let project = &self.places.project;
        let top = || git::root(project).unwrap_or(project);
        let fits = match skill.source {
            From::PolicySettings => true,
            From::ProjectSettings if !base.starts_with(top().canonicalize().ok()?) => false,
            _ => !self.places.too_wide(&base, &Disk),
        };
        fits.then_some(base)
    }

    /// Opens the skill's folder, and keeps what the model reads of it.
    fn note_invoked(
        &mut self,
        skill: &Skill,
        text: &str,
        conversation: &mut Conversation,
    ) -> Result<(), session::Error> {
        let opened = self.opens(skill);
        self.places.free_reads.extend(opened.clone());
        conversation.append(EntryKind::SkillInvoked {
            name: skill.name.clone(),
            path: skill.path().map(PathBuf::from),
            opened,
            content: text.to_owned(),
        })?;
        Ok(())
    }
}

/// Folders that invoked skills opened for reading.
pub(super) fn opened(session: &Session) -> impl Iterator<Item = PathBuf> {
    session.facts().invoked.iter().filter_map(|invoked| invoked.opened.clone())
}
