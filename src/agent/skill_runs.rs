//! Runs of skills: from the expansion of the text to the end of the turn. Lock, rules and model hold that long, however
//! the turn ends.

mod expansion;
mod forked_skills;
mod preload;
mod view;
mod wants;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(super) use self::expansion::Expansion;
pub(super) use self::view::{Caller, View};
use super::mailbox::Mailbox;
use super::{Agent, Model, Policy};
use crate::commands::skill::Verbosity;
use crate::commands::{Catalog, Skill, Source as From};
use crate::hooks::{Origin, Registration};
use crate::message::Message;
use crate::permission::{Behavior, Disk, Rule, Source, Use};
use crate::protocol::Event;
use crate::session::entry::EntryKind;
use crate::session::{self, Session};
use crate::tools;

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
    /// Most characters of the list that the model is given.
    pub list_budget: usize,
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
pub(super) struct Runs {
    pub(super) settings: Settings,
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
    /// The user's words behind its name.
    said: String,
    hooks: Option<Registration>,
    /// The model and limits before, when the skill has others.
    before: Option<(Model, Arc<tools::Settings>)>,
}

/// Whether the user's words reach as far as a rule of a skill that ships with the program: nothing is staged unasked.
fn asked_for(skill: &Skill, rule: &str, said: &str) -> bool {
    let mut words = said.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).filter(|word| !word.is_empty());
    match rule {
        _ if skill.source != From::Bundled => true,
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
}

impl Policy {
    /// What a run of the skill grants and forbids.
    fn rules_of<'a>(&self, skill: &'a Skill, said: &str) -> Vec<(Behavior, &'a str)> {
        let granted = skill.allowed_tools.iter().filter(|text| self.trusts(skill) && asked_for(skill, text, said));
        let granted = granted.map(|text| (Behavior::Allow, text.as_str()));
        granted.chain(skill.disallowed_tools.iter().map(|text| (Behavior::Deny, text.as_str()))).collect()
    }
}

/// Folders that invoked skills opened for reading.
pub(super) fn opened(session: &Session) -> impl Iterator<Item = PathBuf> {
    session.facts().invoked.iter().filter_map(|invoked| invoked.opened.clone())
}

impl Agent {
    /// Takes over settings, and models, that were not there at the start.
    pub fn set_skills(&mut self, settings: Settings) {
        self.runs.settings = settings;
    }

    /// Finds a model by name or role.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub(super) fn model_named(&self, name: &str) -> Result<Model, String> {
        (self.runs.settings.models)(name).map(|(model, _)| model)
    }

    /// What a skill of the project needs the user's word for and has not got.
    pub fn wants_trust(&self, name: &str) -> Vec<Use> {
        self.runs.wants_trust(name, &self.policy)
    }

    /// What the skills of the project need the user's word for, whether they have it or not.
    pub fn skill_uses(&self) -> Vec<Use> {
        self.runs.uses(&self.policy)
    }

    /// Why the user cannot run a skill now; none when they can.
    pub fn refuses_skill(&self, name: &str) -> Option<String> {
        self.runs.view().find(name, Caller::User).err()
    }

    /// The folder that a skill opens for reading: where it really is, and only while nothing but the skill's own can be
    /// meant by it. A project's stays in its repository, wherever links lead.
    fn opens(&self, skill: &Skill) -> Option<PathBuf> {
        let base = skill.base().filter(|_| self.policy.trusts(skill))?.canonicalize().ok()?;
        let project = &self.policy.places.project;
        let top = || project.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(project);
        let fits = match skill.source {
            From::PolicySettings => true,
            From::ProjectSettings if !base.starts_with(top().canonicalize().ok()?) => false,
            _ => !self.policy.places.too_wide(&base, &Disk),
        };
        fits.then_some(base)
    }

    /// Begins the run that a prompt asks for. None for a prompt without a skill.
    ///
    /// # Errors
    /// The inner error says why the skill cannot run.
    pub(super) async fn start_skill(
        &mut self,
        skill: Option<&Invocation>,
        mailbox: &Mailbox,
    ) -> Result<Option<Arc<Skill>>, String> {
        self.runs.turn += 1;
        let Some(call) = skill else { return Ok(None) };
        let skill = self.runs.view().find(&call.name, Caller::User)?;
        self.begin_run(&skill, &call.args, mailbox).await;
        Ok(Some(skill))
    }

    /// Runs a skill that the model has called.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn run_skill(
        &mut self,
        call: Invocation,
        mailbox: &Mailbox,
        cancel: &CancellationToken,
    ) -> Result<(), session::Error> {
        match self.runs.view().find(&call.name, Caller::Model) {
            Ok(skill) => {
                let before = self.model.clone();
                self.begin_run(&skill, "", mailbox).await;
                if self.model.name() != before.name() {
                    // What was answered until now counts for the model that did.
                    self.spending.turn.settle(&before.spec);
                    self.conversation.append(self.model_entry())?;
                }
                Expansion { agent: self, mailbox, cancel }.push(&skill, &call.args).await
            }
            Err(problem) => self.conversation.push(Message::reminder(&problem), mailbox).await,
        }
    }

    /// Takes lock, rules, hooks and model for the run; `said` is what the user, not the model, wants of it.
    async fn begin_run(&mut self, skill: &Arc<Skill>, said: &str, mailbox: &Mailbox) {
        for (behavior, text) in self.policy.rules_of(skill, said) {
            match Rule::parse(text) {
                Ok(rule) => self.policy.rules.add(behavior, rule, Source::Skill),
                Err(problem) => {
                    let text = format!("`/{}` {}: {problem}. The rule is ignored.", skill.name, skill.place());
                    mailbox.emit(Event::Notice { text }).await;
                }
            }
        }
        let mut run = Run { skill: skill.clone(), said: said.to_owned(), hooks: None, before: None };
        if let Some(hooks) = skill.hooks.clone().filter(|_| self.policy.trusts(skill)) {
            let origin = Origin::Skill(skill.name.clone());
            let base = skill.base().map(PathBuf::from);
            let (hooks, sealed) = (Value::Object(hooks), self.policy.hooks_run(skill));
            let (registration, problems) = self.hooking.hooks.register(origin, base, &hooks, &sealed);
            run.hooks = Some(registration);
            for problem in problems {
                mailbox.emit(Event::Notice { text: format!("`/{}` {}: {problem}", skill.name, skill.place()) }).await;
            }
        }
        if let Some(name) = skill.model.as_ref().filter(|_| self.policy.trusts(skill)) {
            match (self.runs.settings.models)(name) {
                Ok((model, tools)) if model.name() != self.model.name() => {
                    run.before = Some((self.model.clone(), self.settings.tools.clone()));
                    self.set_model(model, tools);
                    mailbox.emit(Event::Model(self.model.info())).await;
                }
                Ok(_) => {}
                Err(problem) => {
                    let text = format!(
                        "`/{}` asks for the model `{name}`, but {problem}. Using the session's model.",
                        skill.name
                    );
                    mailbox.emit(Event::Notice { text }).await;
                }
            }
        }
        self.runs.running.push(run);
    }

    /// Ends the run of a skill before the turn ends: the last that began. Those before it continue.
    pub(super) async fn end_run(&mut self, skill: &Skill, mailbox: &Mailbox) {
        let Some(at) = self.runs.running.iter().rposition(|run| run.skill.name == skill.name) else { return };
        self.end_from(at, mailbox).await;
    }

    /// The model that is asked from now on, as the log has it.
    pub(super) fn model_entry(&self) -> EntryKind {
        let borrowed = self.runs.running.iter().any(|run| run.before.is_some());
        EntryKind::ModelChanged { model: self.model.name(), borrowed }
    }

    /// Ends all runs with the turn, however it ended.
    pub(super) async fn end_runs(&mut self, mailbox: &Mailbox) {
        self.end_from(0, mailbox).await;
    }

    /// Gives back what these runs took.
    async fn end_from(&mut self, first: usize, mailbox: &Mailbox) {
        let ended = self.runs.running.split_off(first);
        if ended.is_empty() {
            return;
        }
        let mut before = None;
        for run in ended.into_iter().rev() {
            if let Some(registration) = run.hooks {
                self.hooking.hooks.remove(registration);
            }
            before = run.before.or(before);
        }
        self.policy.rules.clear(Source::Skill);
        let left: Vec<(Arc<Skill>, String)> =
            self.runs.running.iter().map(|run| (run.skill.clone(), run.said.clone())).collect();
        for (skill, said) in left {
            for (behavior, text) in self.policy.rules_of(&skill, &said) {
                // What is not a rule was told when the run began.
                if let Ok(rule) = Rule::parse(text) {
                    self.policy.rules.add(behavior, rule, Source::Skill);
                }
            }
        }
        if let Some((model, tools)) = before {
            self.set_model(model, Arc::unwrap_or_clone(tools));
            mailbox.emit(Event::Model(self.model.info())).await;
            if let Err(error) = self.conversation.append(self.model_entry()) {
                tracing::error!(%error, "cannot record the session's model");
            }
        }
    }

    /// Opens the skill's folder, and keeps what the model reads of it.
    fn note_invoked(&mut self, skill: &Skill, text: &str) -> Result<(), session::Error> {
        let opened = self.opens(skill);
        self.policy.places.free_reads.extend(opened.clone());
        self.conversation.append(EntryKind::SkillInvoked {
            name: skill.name.clone(),
            path: skill.path().map(PathBuf::from),
            opened,
            content: text.to_owned(),
        })?;
        Ok(())
    }

    /// Lets skills recall themselves: those that run or ran lately, once a turn.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) async fn remind_of_skills(&mut self, mailbox: &Mailbox) -> Result<(), session::Error> {
        let turn = self.runs.turn;
        if std::mem::replace(&mut self.runs.reminded, turn) == turn {
            return Ok(());
        }
        self.runs.recent.retain(|(_, invoked)| turn <= invoked + RECENT);
        let settings = &self.runs.settings;
        let texts: Vec<String> = self
            .runs
            .recent
            .iter()
            .filter_map(|(skill, _)| {
                let text = skill.reminders.at(settings.verbosity)?;
                Some(match settings.named {
                    Named::Yes => format!("{}: {text}", skill.name),
                    Named::No => text.to_owned(),
                })
            })
            .collect();
        for text in texts {
            self.conversation.push(Message::reminder(&text), mailbox).await?;
        }
        Ok(())
    }
}
